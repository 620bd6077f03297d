#!/usr/bin/env bats
# The suite for machines with a GPU, run on the libraries of tests/fake: that the script itself is right.
# Its figures say nothing here, and no results page is written.

setup() {
    load helper
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    need_mpi
    [ -x "$build/tests/gpu/loop" ] || skip "tests/gpu/loop is not built"
}

@test "the suite for GPU machines passes on the stand-ins and says that they are none" {
    [ -z "${RG_SAN:-}" ] || skip "with sanitizers its starts take minutes"
    RG_BUILD=$build run tests/gpu/run.sh --fake --page "$BATS_TEST_TMPDIR/page.md"
    echo "$output"
    [ "$status" = 0 ]
    [[ ${lines[0]} == '# FAKE'* ]]
    [ "$(grep -c '^ok ' <<<"$output")" = 9 ]
    ! grep -q '^not ok' <<<"$output"
    [ ! -e "$BATS_TEST_TMPDIR/page.md" ]
    grep -q 'FAKE: not on a GPU' "$build/gpu-fake/results.md"
    grep -q 'ours against the bare loop' "$build/gpu-fake/results.md"
}

@test "without time left the rest is skipped, and the page is there" {
    RG_GPU_SECONDS=5 RG_BUILD=$build run tests/gpu/run.sh --fake
    echo "$output"
    [ "$status" = 0 ]
    [ "$(grep -c '^ok .* # SKIP no time is left of 5 s$' <<<"$output")" = 9 ]
    grep -q '^| what | figure' "$build/gpu-fake/results.md"
}

@test "a machine without a GPU skips it with the reason" {
    RG_BUILD=$build LD_LIBRARY_PATH='' run tests/gpu/run.sh
    [[ $output != '# GPU'* ]] || skip "there is a GPU here: make bench-gpu"
    [ "$status" = 0 ]
    [[ $output == '1..0 # SKIP no GPU: '* ]]
}

@test "the bare loop finds wrong data" {
    export LD_LIBRARY_PATH=$build/fake
    for op in all_reduce all_gather broadcast reduce_scatter; do
        "$build/tests/gpu/loop" $op 1 3 4K
        FAKE_FAULT=corrupt:0:1 run "$build/tests/gpu/loop" $op 1 3 4K
        [ "$status" = 1 ]
        [[ $output == *"loop: rank 0: $op: wrong data"* ]]
    done
}
