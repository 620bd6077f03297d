#!/usr/bin/env bats
# coverage.bats - tests/coverage.sh counts what ran, also of a program that ends by _exit(), and its floors can fail.

bats_require_minimum_version 1.5.0

setup() {
    command -v gcov >/dev/null || skip "gcov is not installed"
    [ -z "${RG_SAN:-}" ] || skip "counters are not for sanitizers"
    here=$BATS_TEST_DIRNAME
    cd "$BATS_TEST_TMPDIR" || exit 1
    mkdir -p b/src b/topo src
    printf '%s\n' '#include <unistd.h>' 'int main(int n, char **v)' '{' '    (void)v;' '    if (n > 1)' \
        '        n = 7;' '    _exit(n - 1);' '}' >src/half.c
    gcc -O0 --coverage -c -o b/src/half.c.o src/half.c
    gcc -fPIC -c -o b/exit.o "$here/../coverage.c"
    gcc --coverage -Wl,--wrap=_exit -o half b/src/half.c.o b/exit.o
}

@test "lines that ran, a floor that is met and one that is not" {
    ./half
    run "$here/../coverage.sh" b 'src/h*.c=70'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *" 75.0 %      3 of     4  src/half.c"* ]]
    run "$here/../coverage.sh" b 'src/half.c=90'
    [ "$status" -eq 1 ]
    [[ $output == *"src/half.c: 75.0 % of 4 lines, BELOW 90 %"* ]]
    run "$here/../coverage.sh" b 'src/whole.c=1'
    [ "$status" -eq 1 ]
    [[ $output == *"src/whole.c: no such file in this build"* ]]
    ./half more || true
    run "$here/../coverage.sh" b 'src/half.c=100'
    [ "$status" -eq 0 ]
}
