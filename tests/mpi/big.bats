#!/usr/bin/env bats
# big.bats - messages over 2 GiB: derived datatypes, and reductions in slices.

# bats file_tags=nightly
bats_require_minimum_version 1.5.0
load helper

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    [ -z "${RG_SAN:-}" ] || skip "sanitizers need more memory than there is"
    need_memory 10
}

@test "2 GiB + 64 KiB: all_gather and sendrecv arrive whole" {
    plan "collective sendrecv 2147549184 2147549184 2 0 0-1" \
        "collective all_gather 2147549184 2147549184 2 0 0-1" \
        "collective all_reduce 1073807360 1073807360 2 0 0-1" >plan.tsv
    run ranks 2 "$probe" probe --plan plan.tsv -n 1 -w 0
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(column bytes points.tsv | xargs)" = "2147549184 2147549184 1073807360" ]
    [ "$(column check points.tsv | xargs)" = "ok ok ok" ]
    [ "$(column stop points.tsv | xargs)" = "count count count" ]
}
