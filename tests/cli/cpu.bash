# shellcheck shell=bash
# cpu_seconds COMMAND... - what COMMAND took of processors itself goes into $cpu: a machine that is busy with other
# work makes it wait, and that is not what is tested.  Its exit code is kept.
cpu_seconds() {
    local TIMEFORMAT='%3U %3S' code=0
    { time "$@" 2>&"$said"; } {said}>&2 2>"$BATS_TEST_TMPDIR/cpu" || code=$?
    exec {said}>&-
    # shellcheck disable=SC2034 # for the caller
    cpu=$(awk '{ print $1 + $2 }' "$BATS_TEST_TMPDIR/cpu")
    return $code
}
