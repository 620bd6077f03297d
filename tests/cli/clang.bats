#!/usr/bin/env bats
# clang.bats - clang takes files without a warning, and what is undefined in C is not in the stand-ins.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    set -o pipefail
    for clang in clang clang-19 clang-16 clang-14 ""; do ! command -v "$clang" >/dev/null || break; done
    [ -n "$clang" ] || skip "clang is not installed"
    read -ra flags < <(make -s CC="$clang" warnings)
    flags+=(-D_GNU_SOURCE -DRG_VERSION='""' -DRG_DATADIR='""' -Isrc -I. -Itests/fake)
}

@test "no file of the base, the commands and the stand-ins warns; make lint compiles them all" {
    mapfile -t files < <(find src/base src/cmd tests/fake -name '*.c')
    [ ${#files[@]} -gt 60 ]
    "$clang" -fsyntax-only -Werror "${flags[@]}" "${files[@]}" 2>&1 | head -40
}

@test "the stand-in for NVML that clang builds counts as the one of the other compiler" {
    test=${RG_BUILD:-build}/tests/unit/nvml
    [ -x "$test" ] || skip "$test is not built"
    mkdir -p "$BATS_TEST_TMPDIR/fake"
    "$clang" "${flags[@]}" -fPIC -shared -o "$BATS_TEST_TMPDIR/fake/libnvidia-ml.so.1" tests/fake/nvidia-ml*.c -lm
    RG_BUILD=$BATS_TEST_TMPDIR LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/fake "$test"
}
