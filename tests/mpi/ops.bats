#!/usr/bin/env bats
# ops.bats - every operation moves the right bytes, on even and odd numbers of ranks; a wrong one is named.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
}

every_op="all_gather all_reduce all_to_all broadcast pair_bibw pair_bw pair_latency reduce reduce_scatter sendrecv"

# 7 bytes to 448 KiB in steps that are not powers of two: odd blocks, eager and rendezvous messages.
ops_are_right_on() {
    run ranks "$1" "$probe" probe -b 7 -e 448K -f 16 -n 2 -w 0 --epochs 1 --no-retest --max-run 60s --pair-bytes 64K \
        --op collectives,pairs
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(column op points.tsv | sort -u | xargs)" = "$every_op" ]
    [ "$(column check points.tsv | sort -u)" = ok ]
    [ "$(column stop points.tsv | sort -u)" = count ]
}

@test "every op is verified on 2 ranks" { ops_are_right_on 2; }
@test "every op is verified on 3 ranks" { ops_are_right_on 3; }
@test "every op is verified on 4 ranks" { ops_are_right_on 4; }
@test "every op is verified on 8 ranks" { ops_are_right_on 8; }

@test "one flipped bit in one rank's receive buffer is named: op, rank, offset, values" {
    flips=""
    expected=(all_gather:2050:1 reduce_scatter:77:- all_to_all:100:0 all_reduce:4095:- broadcast:0:0
        sendrecv:9:0 pair_latency:10:0 pair_bw:11:0 pair_bibw:12:0)
    for e in "${expected[@]}"; do
        IFS=: read -r op offset _ <<<"$e"
        flips+="${flips:+,}$op:1:$offset:3"
    done
    RAILGAUGE_FLIP=$flips run ranks 2 "$probe" probe -b 4K -e 4K --pair-bytes 4K -n 1 -w 0 --epochs 1 --no-retest
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *"points.tsv: data were wrong in "*" points and 0 failed; first: pair_bw of 4096 bytes: rank 1 "* ]]
    for e in "${expected[@]}"; do
        IFS=: read -r op offset source <<<"$e"
        from="block of rank $source"
        [ "$source" != - ] || from="sum over 2 ranks"
        note=$(grep -P "\t$op\t.*\twrong\t" points.tsv | head -n 1 | cut -f 25)
        echo "$op: $note"
        [[ $note =~ ^"$op of 4096 bytes: rank 1 (host $(hostname)): byte $offset ($from) is 0x"(..)", expected 0x"(..)$ ]]
        [ $((0x${BASH_REMATCH[1]} ^ 0x${BASH_REMATCH[2]})) -eq 8 ]
    done
}

@test "of a reduce the root looks at the sum" {
    RAILGAUGE_FLIP=reduce:0:77:3,reduce:1:77:3 run ranks 3 "$probe" probe -b 4K -e 4K -n 1 -w 0 --epochs 1 --op reduce
    [[ $(column note points.tsv | tail -n 1) == "reduce of 4096 bytes: rank 0 (host $(hostname)): byte 77 (sum over 3 ranks) is 0x"* ]]
}

@test "without verification the same flips go unseen" {
    RAILGAUGE_FLIP=all_reduce:1:0:0 ranks 2 "$probe" probe -b 4K -e 4K -n 1 -w 0 --epochs 1 --op all_reduce --no-check
    [ "$(column check points.tsv | sort -u)" = no ]
}

@test "a malformed flip is refused where it is looked at" {
    RAILGAUGE_FLIP=gather:1:0:0 run ranks 2 "$probe" probe -b 4K -e 4K -n 1 -w 0 --epochs 1 --op all_reduce
    [[ $(column note points.tsv) == 'RAILGAUGE_FLIP="gather:1:0:0": no operation "gather"'* ]]
}

@test "the table of nccl-tests" {
    run ranks 2 "$probe" probe -b 1K -e 4K -n 4 --epochs 1 --max-run 60s --op all_reduce --format nccl-tests
    [ "$status" -eq 0 ]
    [[ $output == *"# Collective test starting: all_reduce_perf"* ]]
    [ "$(grep -c ' sum ' <<<"$output")" -eq 3 ]
}

# calls WORDS... - what the ranks of this program ask of MPI, once each.
calls() {
    rm -f calls points.tsv
    # A sanitizer wants to be the first library.
    ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" LD_PRELOAD=$build/fake/libcalls.so MPI_CALLS=$PWD/calls ranks 2 "$probe" "$@"
    sort -u calls
}

# note NAME - this fact in the provenance of points.tsv.
note() { sed -n 2p points.tsv | cut -c3- | jq -r ".$1"; }

once=(-n 1 -w 0 --epochs 1 --no-retest)

@test "MPI is asked for locks only where a library has threads: they would cost a third of 8 B's latency" {
    need_stand_ins 'devices 2'
    for row in 'mpi 0 single' 'nccl 1 funneled' 'copy 1 funneled' 'auto 1 funneled'; do
        read -r transport asked level <<<"$row"
        echo "$row"
        calls discover -t "$transport" -q -o t.json | grep -qx "MPI_Init_thread $asked"
        [ "$(jq -r .provenance.mpi_threads t.json)" = "$level" ]
    done
    LD_LIBRARY_PATH='' ranks 2 "$probe" discover -t auto -q -o t.json # becomes mpi
    jq -e '.provenance | .transport == "mpi" and .mpi_threads == "single"' t.json
    calls probe -b 8 -e 8 --pair-bytes 8 "${once[@]}" --op pair_latency | grep -qx "MPI_Init_thread 0"
    [ "$(note mpi_threads)" = single ]
}

@test "reduce_scatter is MPI_Reduce_scatter, or the call that was asked for, and the points say which" {
    few=(--op reduce_scatter -b 64 -e 64 "${once[@]}")
    calls probe "${few[@]}" | grep Reduce_scatter | diff - <(echo MPI_Reduce_scatter 0)
    [ "$(note reduce_scatter)" = MPI_Reduce_scatter ]
    calls probe "${few[@]}" --reduce-scatter block | grep Reduce_scatter | diff - <(echo MPI_Reduce_scatter_block 0)
    [ "$(note reduce_scatter)" = MPI_Reduce_scatter_block ]
    [ "$(column check points.tsv)" = ok ]
    run ranks 2 "$probe" probe --reduce-scatter ring
    [ "$status" -eq 64 ]
    [[ $output == *'--reduce-scatter: "ring" is neither counts nor block'* ]]
}

@test "64 small messages are in flight, 4 large ones, or as many as was asked for; all are verified" {
    few=(--op pair_bw -b 65535 -e 64K --pair-bytes 64K --pairs isolated "${once[@]}")
    calls probe "${few[@]}" | grep Waitall | sort | diff - <(printf 'MPI_Waitall %d\n' 4 64)
    [ "$(note pair_window)" = "64 messages below 65536 bytes, else 4" ]
    calls probe "${few[@]}" --window 7 | grep Waitall | diff - <(echo MPI_Waitall 7)
    [ "$(note pair_window)" = "7 messages" ]
    [ "$(column check points.tsv | sort -u)" = ok ]
    # A flip in the last message of the window is seen.
    rm points.tsv
    RAILGAUGE_FLIP=pair_bw:1:$((6 * 4096 + 5)):3 ranks 2 "$probe" probe --op pair_bw -b 4K -e 4K --pair-bytes 4K --window 7 \
        "${once[@]}" || true
    [[ $(column note points.tsv | sort -u) == *"byte $((6 * 4096 + 5)) (block of rank 0)"* ]]
    run ranks 2 "$probe" probe --window 0
    [ "$status" -eq 64 ]
}

@test "run passes both on" {
    run -0 railgauge run --dry-run -t mpi --ranks 2 --window 9 --reduce-scatter block
    [[ $output == *" --window=9 --reduce-scatter=block"* ]]
}

@test "what it will take is told before the first round, by turns that are measured once like all others" {
    words=(-t mpi --ranks 3 --op pair_bw,all_reduce -e 64K --max-run 60s --no-retest)
    run -0 railgauge run "${words[@]}" --dry-run
    [[ ${lines[1]} =~ ^"3 endpoints, "([0-9]+)" rounds, about "([0-9]+)" points, " ]]
    points=${BASH_REMATCH[2]}
    [ "${lines[2]}" = "one host: no NIC is measured" ]
    [[ ${lines[3]} =~ ^"about "[0-9.]+" "m?s" here, by "([0-9]+)" of its points"$ ]]
    ((BASH_REMATCH[1] > 0 && BASH_REMATCH[1] < points))
    [ -z "$(ls -A)" ]
    run -0 --separate-stderr railgauge run "${words[@]}" --no-plots -o c
    # shellcheck disable=SC2154 # set by run
    [[ $stderr == "railgauge-probe: 3 endpoints, "*" rounds over mpi: about "* ]]
    # How near it was is judged in simulated time (smpi.bats): others may get the processors meanwhile.
    jq -e '.measured[0] | .estimated_seconds > .start_seconds and .took_seconds > .start_seconds' c/campaign.json
    # none is missing or there twice, and data were checked in the first epoch alone
    grep -v '^#' c/points.tsv | sed 1d >rows
    [ "$(wc -l <rows)" -eq "$points" ]
    [ "$(cut -f1-3,10 rows | sort -u | wc -l)" -eq "$points" ]
    [ "$(awk -F'\t' '{print ($3 == 0) == ($24 == "ok")}' rows | sort -u)" = 1 ]
}

@test "what it took is told beside what was estimated, with its parts, and is no less than the plan's least" {
    ranks 2 "$probe" discover --quiet -o topology.json
    run -0 --separate-stderr railgauge plan --dry-run --json --op pair_latency,pair_bw topology.json
    range=$output
    run -0 --separate-stderr railgauge run -t mpi --ranks 2 --op pair_latency,pair_bw --no-plots -o timed
    # shellcheck disable=SC2154 # set by run
    [[ $stderr =~ "took "[0-9.]+\ m?s", estimated "[0-9.]+\ m?s" at its start: "[0-9]+" % of it samples ("[0-9.]+\ m?s"), "[0-9]+" % start, " ]]
    jq -e '.measured | length == 1' timed/campaign.json
    # How much the parts leave out and what the plan allows at most are judged in simulated time (smpi.bats).
    jq -e '.measured[0] | (.start_seconds + .samples_seconds + .opening_seconds + .exchanges_seconds) / .took_seconds
        | . > 0 and . <= 1.0001' timed/campaign.json
    jq -e '.measured[0] | .warmup_seconds > 0 and .warmup_seconds < .samples_seconds and .estimated_seconds > .start_seconds' \
        timed/campaign.json
    jq -e --argjson plan "$range" '.measured[0].took_seconds > $plan.seconds' timed/campaign.json
    python3 - "$BATS_TEST_DIRNAME/../../src/schema/campaign.schema.json" timed/campaign.json <<'PY' || ! python3 -c 'import jsonschema'
import json, sys, jsonschema
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))
PY
    run -0 --separate-stderr railgauge run -q --resume -o timed --no-plots
    [ -z "$stderr" ]
    jq -e '.measured | length == 2' timed/campaign.json
}

@test "--quick: all pairs once, at least ten messages a point, a few suspects again" {
    run -0 ranks 4 "$probe" probe --quick -o quick.tsv
    count() { awk -F'\t' -v s="$1" -v o="$2" '$4 == s && $5 == o' quick.tsv | wc -l; }
    [ "$(count tournament pair_latency)" -eq 6 ]
    [ "$(count tournament pair_bw)" -eq 12 ]
    [ "$(awk -F'\t' '/^[0-9]/ && $4 != "tournament"' quick.tsv | wc -l)" -le 16 ] # none where nothing stands out
    # suspects of a busy machine are measured again in blocks of time of their own
    [ "$(awk -F'\t' '$4 == "tournament" { print $3 }' quick.tsv | sort -u)" = 0 ]
    awk -F'\t' '/^[0-9]/ && $11 < ($5 == "pair_bw" ? 3 : 10)' quick.tsv >few
    [ ! -s few ]
}
