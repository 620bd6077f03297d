#!/usr/bin/env bats
# idle.bats - ranks that have nothing to measure sleep.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_mpi
    [ -z "${RG_SAN:-}" ] || skip "a sanitizer's start takes more time than the measurement"
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "idle ranks use less than a fifth of a core while one pair measures" {
    plan "isolated pair_bw 1048576 1048576 2 0,1,2,3,4 0>1" >plan.tsv
    cat >timed <<'END'
#!/bin/bash
TIMEFORMAT='%R %U %S'
{ time "$@"; } 2>"time.$OMPI_COMM_WORLD_RANK"
END
    chmod +x timed
    ranks 4 ./timed "$probe" probe --plan plan.tsv --half-width 0 --time-cap 800ms --no-retest
    [ "$(column n points.tsv | sort -n | head -n 1)" -gt 20 ]
    for r in 2 3; do
        read -r wall user sys <"time.$r"
        echo "rank $r: $wall s on the wall, $user s user, $sys s system"
        awk -v w="$wall" -v u="$user" -v s="$sys" 'BEGIN { exit !(w > 4 && u + s < 0.2 * w) }'
    done
}

@test "twenty ranks, more than the first ranks of the tree: what the last ones measured comes home" {
    plan "collective all_reduce 64 64 2 0 0-19" \
        "tournament pair_latency 8 8 2 0 0>1+18>19" \
        "isolated pair_latency 8 8 2 0 19>17" | tr + " " >plan.tsv
    run ranks 20 "$probe" probe --plan plan.tsv --time-cap 200ms --no-retest
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(column src points.tsv | xargs)" = "0 0 18 19" ]
    [ "$(column check points.tsv | xargs)" = "ok ok ok ok" ]
}
