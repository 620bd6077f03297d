#!/usr/bin/env bats
# threats.bats - each line of docs/threats.md and each promise of docs/faults.md names a test, and that test exists.

bats_require_minimum_version 1.5.0

top=$BATS_TEST_DIRNAME/../..

# named: FILE and the words behind it, in the last cell of each row.
named() { sed -nE 's/^\|.*\| `(tests\/[^`]*)` ?(.*) \|$/\1\t\2/p' "$1"; }

# exist PAGE LEAST
exist() {
    [ "$(named "$1" | wc -l)" -gt "$2" ] || return 1
    while IFS=$'\t' read -r file words; do
        case $words in
        \"*\") grep -qF "@test $words {" "$top/$file" ;;
        "") [ -x "$top/$file" ] ;;
        *) grep -q "cmocka_unit_test[a-z_]*($words\b\|^ *TEST[A-Z_]*($words\b" "$top/$file" ;;
        esac || { echo "$file has no test $words"; return 1; }
    done < <(named "$1")
}

@test "each line of the threat model names a test that exists; lines without one are the ones that say so" {
    page=$top/docs/threats.md
    exist "$page" 20
    rows=$(grep -c '^| [^-]' "$page")
    [ "$((rows - $(named "$page" | wc -l)))" -eq 3 ] # two heads, and what is possible
    grep -c '| possible: ' "$page"
    # A name that is none is found.
    sed 's/only_the_group_may_read/nobody_may_read/' "$page" >"$BATS_TEST_TMPDIR/page"
    run ! exist "$BATS_TEST_TMPDIR/page" 20
    [[ $output == *"tests/unit/profiler.c has no test nobody_may_read"* ]]
}

@test "each promise about faults names a test that exists" {
    page=$top/docs/faults.md
    exist "$page" 25
    # Each row behind the measured table but the two heads.
    rows=$(sed '1,/end of faults/d' "$page" | grep -c '^| [^-]')
    [ "$((rows - $(named "$page" | wc -l)))" -eq 2 ]
}

@test "a program without hardening is found, by each of its lacks" {
    cd "$BATS_TEST_TMPDIR"
    printf '#include <stdio.h>\n#include <string.h>\nint main(int c, char **v) { char b[8]; strcpy(b, v[c - 1]); return puts(b); }\n' >x.c
    hard=(-O2 -fPIE -pie -Wl,-z,relro,-z,now -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    lacks() { # WORDS OPTION...
        ${CC:-cc} "${hard[@]}" "${@:2}" x.c -o x
        run -1 "$top/tests/hardened.sh" x
        [[ $output == *"x: no $1"* ]] || { echo "$1: $output"; false; }
    }
    lacks "position independence" -fno-pie -no-pie
    lacks "read-only relocations" -Wl,-z,norelro
    lacks "binding at the start" -Wl,-z,lazy
    lacks "stack without code" -Wl,-z,execstack
    lacks "freedom from RPATH" -Wl,-rpath,/tmp
    lacks "stack protector" -fno-stack-protector
    lacks "checked calls" -U_FORTIFY_SOURCE
    [ "$(uname -m)" != x86_64 ] || lacks "control-flow protection" -fcf-protection=none
    run -1 "$top/tests/hardened.sh" nowhere
    [ -n "${RG_SAN-}" ] || for f in railgauge railgauge-probe librailgauge.so.0 librailgauge-nccl.so; do
        [ ! -e "$RG_BUILD/$f" ] || "$top/tests/hardened.sh" "$RG_BUILD/$f"
    done
}
