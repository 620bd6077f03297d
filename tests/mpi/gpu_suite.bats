#!/usr/bin/env bats
# The suite for machines with a GPU, run on the libraries of tests/fake: that the script itself is right.
# Its figures say nothing here, and no results page is written.

setup() {
    load helper
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    need_mpi
    [ -x "$build/tests/gpu/loop" ] || skip "tests/gpu/loop is not built"
}

# The verdict of one check in checks.tsv
verdict() { awk -F'\t' -v c="$1" '$1 == c {print $2}' "${2:-$build/gpu-fake/checks.tsv}"; }

# bats test_tags=nightly
@test "the suite for GPU machines passes on the stand-ins and says that they are none" {
    [ -z "${RG_SAN:-}" ] || skip "with sanitizers its starts take minutes"
    RG_BUILD=$build run tests/gpu/run.sh --fake --page "$BATS_TEST_TMPDIR/page.md" --out "$BATS_TEST_TMPDIR/out"
    echo "$output"
    [ "$status" = 0 ]
    [[ ${lines[0]} == '# FAKE'* ]]
    ! grep -q '^not ok' <<<"$output"
    for c in kernels single shared_ranks discover compute yardstick graphs faults whole_run corruption places \
        copies registered pair_comms sweep plugin_probe types; do
        [ "$(verdict $c)" = PASS ]
    done
    [ "$(awk -F'\t' '$1 == "several" {print $2 "|" $4}' "$build/gpu-fake/checks.tsv")" = 'NOT RUN|one GPU is here; it needs two' ]
    [ ! -e "$BATS_TEST_TMPDIR/page.md" ]
    grep -q 'FAKE: not on a GPU' "$build/gpu-fake/results.md"
    grep -q 'ours against the bare loop' "$build/gpu-fake/figures.tsv"
    cmp "$build/gpu-fake/checks.tsv" "$BATS_TEST_TMPDIR/out/checks.tsv"
    [ "$(find "$BATS_TEST_TMPDIR/out" -type f | wc -l)" -le 8 ]
    tar -tzf "$BATS_TEST_TMPDIR/out/logs.tar.gz" | grep -q 'gpu-fake/03-shared_ranks.log'
}

@test "with two GPUs their pairs are measured, by NCCL and by copies" {
    [ -z "${RG_SAN:-}" ] || skip "with sanitizers its starts take minutes"
    RG_GPU_FAKES=2 RG_GPU_ONLY=several RG_BUILD=$build run tests/gpu/run.sh --fake
    echo "$output"
    [ "$status" = 0 ]
    [ "$(verdict several)" = PASS ]
    [ "$(grep -c '^pairs of 2 GPUs by ' "$build/gpu-fake/figures.tsv")" = 2 ]
}

# bats test_tags=nightly
@test "the suites for eight GPUs and for two trays pass on the stand-ins, as far as these go" {
    [ -z "${RG_SAN:-}" ] || skip "with sanitizers its starts take minutes"
    RG_GPU_EIGHT=4 RG_BUILD=$build run tests/gpu/eight.sh --fake
    echo "$output"
    [ "$status" = 0 ]
    for c in kernels nvls types_of_eight symmetric; do
        [ "$(verdict $c)" = PASS ]
    done
    [ "$(verdict nic_pass)" = 'NOT RUN' ] || [ "$(verdict nic_pass)" = PASS ]
}

@test "two trays on the stand-ins: NVLink between them is proven, and a broken IMEX is exit code 78" {
    [ -z "${RG_SAN:-}" ] || skip "with sanitizers its starts take minutes"
    unshare -u true 2>/dev/null || skip "unshare -u is not allowed here"
    RG_BUILD=$build run tests/gpu/trays.sh --fake
    echo "$output"
    [ "$status" = 0 ]
    [ "$(verdict mnnvl) $(verdict imex_broken)" = 'PASS PASS' ]
    [[ $output == *"exit code with IMEX broken: 78"* ]]
    # One tray, and nothing to break: said, and none of it runs.
    RG_BUILD=$build run tests/gpu/trays.sh
    [ "$status" = 2 ]
}

# bats test_tags=nightly
@test "the third call: copies, registration, communicators of pairs, the sweep, the plugin, types" {
    [ -z "${RG_SAN:-}" ] || skip "with sanitizers its starts take minutes"
    RG_GPU_ONLY="copies registered pair_comms sweep plugin_probe types" RG_BUILD=$build run tests/gpu/run.sh --fake
    echo "$output"
    [ "$status" = 0 ]
    for c in copies registered pair_comms sweep plugin_probe types; do
        [ "$(verdict $c)" = PASS ]
    done
}

@test "wrong data on the GPU is a check that failed, in the page and in the exit code" {
    FAKE_FAULT=corrupt:0:1 RG_GPU_ONLY=single RG_BUILD=$build run tests/gpu/run.sh --fake
    echo "$output"
    [ "$status" = 1 ]
    [ "$(verdict single)" = FAIL ]
    grep -q '^not ok 2 ' <<<"$output"
    grep -q '| FAIL | [0-9]* | loop: rank 0: all_reduce: wrong data |' "$build/gpu-fake/results.md"
}

@test "without time left the rest is not run, and the page is there" {
    RG_GPU_SECONDS=5 RG_BUILD=$build run tests/gpu/run.sh --fake
    echo "$output"
    [ "$status" = 2 ]
    [ "$(grep -c '^ok .* # SKIP no time is left of 5 s$' <<<"$output")" = 21 ]
    grep -q '^| check | verdict' "$build/gpu-fake/results.md"
}

@test "who is cut off has a page that says what was running and what was not reached" {
    # In the background of a shell that controls jobs, so that the whole group can be ended.
    set -m
    RG_BUILD=$build tests/gpu/run.sh --fake >/dev/null 2>&1 3>&- &
    set +m
    await 60 grep -qs 'CUT OFF' "$build/gpu-fake/checks.tsv"
    kill -KILL -- -$!
    cat "$build/gpu-fake/checks.tsv"
    [ "$(grep -c 'CUT OFF' "$build/gpu-fake/checks.tsv")" = 1 ]
    [ "$(verdict verbs)" = 'NOT RUN' ]
    grep -q 'it was not reached' "$build/gpu-fake/results.md"
}

@test "a machine without a GPU says what each check lacks" {
    RG_BUILD=$build LD_LIBRARY_PATH='' run tests/gpu/run.sh
    [[ $output != *'- 0: '* ]] || skip "there is a GPU here: make bench-gpu"
    [ "$status" = 2 ]
    [ "$(grep -c '^ok .* # SKIP the CUDA driver cannot be loaded: libcuda' <<<"$output")" = 21 ]
}

# What is kept is the same bytes; the others are left out of a fat binary, whose rest still loads.
@test "a fat binary is cut to one architecture" {
    image=$build/kernels/kernels.fatbin
    [ -s "$image" ] || skip "built without nvcc"
    run "$build/tests/gpu/cut" 90 "$image" "$BATS_TEST_TMPDIR/90"
    echo "$output"
    [ "$status" = 0 ]
    [ "$(awk -F'\t' '$5 == "yes" {print $1, $2}' <<<"$output")" = 'cubin 90' ]
    kept=$(awk -F'\t' '$5 == "yes" {print $4}' <<<"$output")
    # Its header of 16 bytes, and behind it what was kept, found in the whole one.
    [ "$(od -An -tu8 -j8 -N8 "$BATS_TEST_TMPDIR/90" | tr -d ' ')" = "$kept" ]
    tail -c +17 "$BATS_TEST_TMPDIR/90" | head -c "$kept" >"$BATS_TEST_TMPDIR/piece"
    LC_ALL=C grep -qaF "$(head -c 64 "$BATS_TEST_TMPDIR/piece" | tr -d '\0\n')" <(tr -d '\0\n' <"$image")
    run "$build/tests/gpu/cut" 90 "$BATS_TEST_TMPDIR/90" "$BATS_TEST_TMPDIR/again"
    [ "$status" = 0 ]
    cmp "$BATS_TEST_TMPDIR/90" "$BATS_TEST_TMPDIR/again"
    run "$build/tests/gpu/cut" 35 "$image" "$BATS_TEST_TMPDIR/35"
    [ "$status" = 65 ]
    [[ $output == *'no code for sm_35 in it'* ]]
    [ ! -e "$BATS_TEST_TMPDIR/35" ]
    head -c 3000 "$image" >"$BATS_TEST_TMPDIR/short"
    run "$build/tests/gpu/cut" 90 "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/90"
    [ "$status" = 65 ]
    [[ $output == *'does not begin a fat binary'* ]]
    run "$build/tests/gpu/cut" 90 "$build/railgauge" "$BATS_TEST_TMPDIR/90"
    [ "$status" = 65 ]
    [[ $output == *'no device code in it'* ]]
}

@test "what is carried fits its size, says what is in it and runs from there" {
    [ -z "${RG_SAN:-}" ] || skip "a sanitizer's library is not carried"
    run tests/gpu/carry.sh --nccl none --most 30M "$BATS_TEST_TMPDIR/carry"
    echo "$output"
    [ "$status" = 0 ]
    [ "$(du -sb "$BATS_TEST_TMPDIR/carry" | cut -f1)" -le $((30 << 20)) ]
    grep -q $'^libnccl.so.2\t0\t0\tleft out: not asked for$' "$BATS_TEST_TMPDIR/carry/sizes.tsv"
    RAILGAUGE_CARRY=$BATS_TEST_TMPDIR/there LD_LIBRARY_PATH=$build/fake RG_GPU_ONLY="kernels single shared_ranks" \
        RG_GPU_SMALL=1 run "$BATS_TEST_TMPDIR/carry/run.sh" --out "$BATS_TEST_TMPDIR/out"
    echo "$output"
    [ "$status" = 0 ]
    [ "$(verdict shared_ranks "$BATS_TEST_TMPDIR/out/checks.tsv")" = PASS ]
    run tests/gpu/carry.sh --nccl none --most 1M "$BATS_TEST_TMPDIR/carry"
    [ "$status" = 65 ]
    [[ $output == *'without NCCL it is '*' bytes already'* ]]
}

@test "what is carried by default leaves room for the repository beside it" {
    [ -z "${RG_SAN:-}" ] || skip "a sanitizer's library is not carried"
    git rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip "no git checkout"
    run tests/gpu/carry.sh --nccl none "$BATS_TEST_TMPDIR/carry"
    [ "$status" = 0 ]
    most=$(awk -F'\t' '$1 == "all" {sub("at most ", "", $4); print $4}' "$BATS_TEST_TMPDIR/carry/sizes.tsv")
    files=$(git ls-files -coz --exclude-standard | xargs -0 -r stat -c %s 2>/dev/null | awk '{n += $1} END {print n}')
    [ $((most + files)) -le $((60 << 20)) ]
    [ $((most + files)) -ge $((59 << 20)) ]
    # Without NCCL, for a machine that has it: small.
    [ "$(du -sb "$BATS_TEST_TMPDIR/carry" | cut -f1)" -le $((9 << 20)) ]
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
