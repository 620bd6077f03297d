#!/bin/bash
# tap.sh FILE - run one test file and print TAP for prove: a cmocka program, a .bats file or a script.
# In continuous integration (CI=true) a skipped test of the lab is a failed one.  A skipped test is a line of
# the file that RG_SKIPPED names, and a file with nothing but skipped tests is no "ok" but skipped itself.  What the
# file took is a line of the file that RG_TIMES names: seconds, CPU seconds of the user and of the system, its name.
# Tests of bats with the tag "nightly" run where RG_ALL is set (make check-all).
set -o pipefail

RG_BUILD=$(cd "${RG_BUILD:-build}" && pwd) || exit 1
export RG_BUILD PATH="$RG_BUILD:$PATH" CMOCKA_MESSAGE_OUTPUT=TAP LC_ALL=C.UTF-8
export COLUMNS=1000 # whole lines: what folds at 80 columns is judged by tests that say so
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# cmocka writes "not ok N # SKIP name"; the Test Anything Protocol calls a skipped test ok.
strict='s/^not ok ([0-9]+ # SKIP)/ok \1/'
[[ ${CI:-} == true && $1 == tests/lab/* ]] && strict='s/^ok (.*# *skip)/not ok \1/I; s/^1\.\.0.*# *skip/1..1\nnot ok 1 - skipped:/I'

daily=()
[ -n "${RG_ALL-}" ] || daily=(--filter-tags '!nightly')

run() {
    case $1 in
    *.bats) bats --tap "${daily[@]}" "$1" ;;
    */*) "$1" ;;
    *) "./$1" ;;
    esac | sed -E -u "$strict" | awk -v file="$1" -v list="${RG_SKIPPED:-/dev/null}" '
        function say(text) { print text; fflush() }
        function release(    i) { for (i = 1; i <= held; i++) say(line[i]); held = -1 }
        tolower($0) ~ /^(ok|1\.\.0) .*# *skip/ {
            why = $0
            sub(/^(ok [0-9]+|1\.\.0) (- )?/, "", why)
            print file ": " why >>list
            skips++
        }
        held >= 0 && (/^1\.\.[1-9]/ || /^#/ || tolower($0) ~ /^ok .*# *skip/) { line[++held] = $0; next }
        { if (held >= 0) release(); say($0) }
        END {
            if (held < 0 || !skips) { if (held > 0) release(); exit }
            sub(/.*# *[Ss][Kk][Ii][Pp] */, "", why)
            say("1..0 # SKIP " (why == "" ? "all tests" : why))
        }'
}
TIMEFORMAT="%R %U %S $1"
{ time run "$1" 2>&"$said" {said}>&-; } {said}>&2 2>>"${RG_TIMES:-/dev/null}"
