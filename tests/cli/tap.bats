#!/usr/bin/env bats
# tap.bats - what tests/tap.sh makes of skipped tests: listed with their reasons, and no "ok" of a file of them.

bats_require_minimum_version 1.5.0

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# tap LINE... - the TAP that prove gets from a program which prints these lines.
tap() {
    { echo '#!/bin/sh' && printf "echo '%s'\n" "$@"; } >file.sh
    chmod +x file.sh
    RG_SKIPPED=$PWD/skipped RG_TIMES=$PWD/times "$BATS_TEST_DIRNAME/../tap.sh" ./file.sh
}

@test "a file of skipped tests is skipped, with its reason; each is listed" {
    [ "$(tap 1..2 'ok 1 a # skip no x' 'ok 2 b # skip no x')" = "1..0 # SKIP no x" ]
    diff skipped <(printf './file.sh: %s\n' 'a # skip no x' 'b # skip no x')
    [ "$(tap '1..0 # skip no lab')" = '1..0 # skip no lab' ]
}

@test "one test that ran or failed is told as it was" {
    for other in 'ok 2 b' 'not ok 2 b'; do
        [ "$(tap 1..2 'ok 1 a # skip no x' "$other")" = $'1..2\nok 1 a # skip no x\n'"$other" ]
    done
    [ "$(wc -l <skipped)" -eq 2 ]
    rm skipped
    [ "$(tap 1..1 'ok 1 a')" = $'1..1\nok 1 a' ]
    [ ! -s skipped ]
}

@test "what a file took is told: seconds, CPU seconds of the user and of the system, its name" {
    tap 1..1 'ok 1 a'
    grep -qxE '([0-9]+\.[0-9]{3} ){3}\./file\.sh' times
}

# files - one test for each day and one for each night, and a file for the night alone.
files() {
    printf '%s\n' '@test "day" { :; }' '# bats test_tags=nightly' '@test "night" { :; }' >some.bats
    printf '%s\n' '# bats file_tags=nightly' '@test "dark" { :; }' '@test "darker" { :; }' >whole.bats
}

@test "what is nightly is left out by day, and counted; RG_ALL runs it" {
    files
    local tests=$BATS_TEST_DIRNAME/..
    names() { RG_ALL=$1 "$tests/tap.sh" some.bats | sed -n 's/^ok [0-9]* //p' | xargs; }
    [ "$(names '')" = day ]
    [ "$(names 1)" = "day night" ]
    ln -s "$(cd "$tests" && pwd)" tests
    mkdir build
    suite() { env -u RG_BUILD RG_ALL="$1" RG_JOBS=1 perl tests/suite.pl some.bats whole.bats; }
    run -0 suite ''
    [[ $output == *$'left to make check-all, 3 tests:\n  some.bats 1\n  whole.bats 2\n'*"Files=1, Tests=1,"* ]]
    run -0 suite 1
    [[ $output == *"Files=2, Tests=4,"* && $output != *"check-all"* ]]
}

@test "bad files are written out of their edits, and an edit that does not fit is refused" {
    mkdir -p tests/golden tests/bad/x
    cp "$BATS_TEST_DIRNAME/../bad/expand.sh" tests/bad
    printf '%s\n' one two three four >tests/bad/x/good
    printf '%s\n' '== a good' 0a zero . 2,3d '== b good' 4c five six . 4a end . '== c good' 1d '== d a' 1c 0 . >tests/bad/x/edits
    tests/bad/expand.sh out
    [ "$(paste -sd' ' out/bad/x/a)" = "zero one four" ]
    [ "$(paste -sd' ' out/bad/x/b)" = "one two three five six end" ]
    [ "$(paste -sd' ' out/bad/x/c)" = "two three four" ]
    [ "$(paste -sd' ' out/bad/x/d)" = "0 one four" ]
    [ ! -e out/bad/x/edits ]
    for bad in '5d' '3,2d' '2x' '2d 1d' '9a y .' '1c y'; do
        # shellcheck disable=SC2086  # a word is a line
        printf '%s\n' '== a good' $bad >tests/bad/x/edits
        run -1 tests/bad/expand.sh "out-$bad"
        [[ $output == "x/edits:"* ]] || { echo "$bad: $output"; false; }
    done
    echo '== a none' >tests/bad/x/edits
    run -1 tests/bad/expand.sh out-none
    [[ $output == "x/edits:1: no file x/none to begin with" ]]
}
