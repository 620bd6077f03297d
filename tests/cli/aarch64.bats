#!/usr/bin/env bats
# aarch64.bats - Grace nodes are no surprise: the host code compiles for them without a warning, and
# where arm64 libraries are (AARCH64_ROOT) the program runs and says what it says here.

bats_require_minimum_version 1.5.0

setup_file() {
    export ROOT=$BATS_TEST_DIRNAME/../.. CC64=aarch64-linux-gnu-gcc
    export LIBS=${AARCH64_ROOT:-/}/usr/lib/aarch64-linux-gnu
}

need_compiler() {
    command -v $CC64 >/dev/null || skip "$CC64 is not installed"
}

# What warns without optimisation warns without code, too, in a third of the time.
warns() { # FILE...
    local flags
    read -ra flags < <(env -u MAKEFLAGS make -s CC=$CC64 warnings)
    $CC64 -fsyntax-only -Werror -Wcast-align=strict -Wno-format-truncation -idirafter /usr/include \
        -idirafter "/usr/include/$(cc -print-multiarch)" "${flags[@]}" -D_GNU_SOURCE -DRG_VERSION='""' -DRG_DATADIR='""' -Isrc -I. "$@"
}

# Each day the files that name a processor, an instruction or a system call, and one of sixteen others.
@test "host code that names a processor does not warn for aarch64, nor does a sample of the other" {
    need_compiler
    cd "$ROOT"
    mapfile -t all < <(find src topo kernels -name '*.c' | sort)
    mapfile -t files < <(grep -lE '__asm|__(x86_64|aarch64)__|intrin\.h|__builtin_ia32|SYS_|syscall\(|long double' "${all[@]}")
    [ ${#files[@]} -ge 5 ]
    for ((i = 0; i < ${#all[@]}; i += 16)); do files+=("${all[i]}"); done
    warns "${files[@]}"
}

# bats test_tags=nightly
@test "no host code warns for aarch64" {
    need_compiler
    cd "$ROOT"
    # Objects of sources that moved stay in an older build.
    mapfile -t files < <(cd "$RG_BUILD" && find src topo kernels -name '*.c.o' | sed 's/\.o$//' |
        while read -r file; do [ ! -e "$ROOT/$file" ] || echo "$file"; done)
    [ ${#files[@]} -gt 100 ]
    warns "${files[@]}"
}

# bats test_tags=nightly
@test "all host code compiles for aarch64, warnings are errors" {
    need_compiler
    # Quick; what differs is seen without optimisation: signs of characters, sizes, alignment.
    run env -u MAKEFLAGS make -s -C "$ROOT" -j2 aarch64 CFLAGS='-O0 -Wcast-align=strict -Wno-format-truncation'
    echo "$output" | tail -30
    [ "$status" -eq 0 ]
    # What this machine compiles, that one does.
    objects=$(cd "$RG_BUILD" && find src topo -name '*.c.o')
    [ "$(wc -l <<<"$objects")" -gt 100 ]
    for o in $objects; do
        [ ! -e "$ROOT/${o%.o}" ] || [ "$ROOT/build-aarch64/$o" -nt "$ROOT/${o%.o}" ] || { echo "$o is missing"; false; }
    done
    run readelf -h "$ROOT/build-aarch64/src/measure/verify.c.o"
    [[ $output == *AArch64* ]]
}

# bats test_tags=nightly
@test "the aarch64 program predicts what this one predicts" {
    need_compiler
    command -v qemu-aarch64 >/dev/null || skip "qemu-aarch64 is not installed (package qemu-user)"
    for l in $(pkg-config --libs-only-l jansson expat); do
        [ -e "$LIBS/lib${l#-l}.so" ] || skip "no arm64 lib${l#-l} below ${AARCH64_ROOT:-/} (AARCH64_ROOT)"
    done
    program=$ROOT/build-aarch64/railgauge
    [ -x "$program" ]
    elsewhere() { qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$LIBS" "$program" "$@"; }
    [ "$(elsewhere --version)" = "$(railgauge --version)" ]
    job=(predict --fabric gb200-nvl72 --model llama3.1-70b --layout tp=4,dp_shard=18 --json)
    RAILGAUGE_DATA=$ROOT elsewhere "${job[@]}" >"$BATS_TEST_TMPDIR/there.json"
    railgauge "${job[@]}" >"$BATS_TEST_TMPDIR/here.json"
    # Fused multiplications round differently in the last digits only.
    jq -es '[.[] | [.. | numbers]] | (.[0] | length) > 20 and (.[0] | length) == (.[1] | length)
        and (. as [$a, $b] | all(range($a | length); ($a[.] - $b[.] | fabs) <= 1e-9 * ($a[.] | fabs)))' \
        "$BATS_TEST_TMPDIR/there.json" "$BATS_TEST_TMPDIR/here.json"
}
