# helper.bash - what the lab's tests share: is there a lab to test in, and where things are.
# shellcheck shell=bash disable=SC2034 # top is used by the tests

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
export PATH=${RG_BUILD:-$top/build}:$PATH

lab() { "$BATS_TEST_DIRNAME/lab.sh" "$@"; }

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
