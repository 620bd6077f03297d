# helper.bash - what the lab's tests share: is there a lab to test in, and where things are.
# shellcheck shell=bash disable=SC2034 # top is used by the tests

. "$BATS_TEST_DIRNAME/../await.bash"
top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
export PATH=${RG_BUILD:-$top/build}:$PATH

lab() { "$BATS_TEST_DIRNAME/lab.sh" "$@"; }

# Until this process ends: another lab on these cores would be measured, too.
lab_alone() {
    exec {lab_lock}>/run/lock/railgauge-lab.lock
    flock -w 3600 "$lab_lock" || { echo "another lab has had these cores for an hour"; return 1; }
}

# Without root or the kernel's help there is no lab: a reason to skip at home, a failure in CI.
need_lab() {
    local why
    why=$(lab usable 2>&1) && return 0
    [ "${CI-}" != true ] || {
        echo "no lab in CI: $why"
        return 1
    }
    skip "no lab here: $why"
}
