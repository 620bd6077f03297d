#!/usr/bin/env bats
# exam.bats - a sample of the exam (tests/random/worlds.py): faults in simulated fabrics with the noise of real ones, within
# the limits that `make worlds` holds a larger sample against.  A line of its output is repeated by
# tests/random/worlds.py --only LINE'S-NAME.

bats_require_minimum_version 1.5.0

top=$BATS_TEST_DIRNAME/../..

# worlds OPTION...: within the limits, which are printed.
worlds() {
    command -v python3 >/dev/null || skip "no python3"
    run python3 "$top/tests/random/worlds.py" --dir "$BATS_TEST_TMPDIR" -j 2 --limits "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"limits (plausible worlds)"* ]]
    [[ $output != *BROKEN* ]]
}

@test "faults in plausible worlds are named in their state, healthy fabrics pass, nothing else is named" {
    [ -z "${RG_SAN-}" ] || skip "sanitizers take ten times as long"
    worlds -n 180 --worlds plausible --seed 1
}

# Each was missed once: one slow NIC or GPU was taken for its host, collisions for noise of parts, a leaf's own rate for usual,
# collisions for too few uplinks; a host that is slow now and then was seen within only, or beside its NICs and pairs.
@test "campaigns that were missed are named as they should be" {
    command -v python3 >/dev/null || skip "no python3"
    [ -z "${RG_SAN-}" ] || skip "sanitizers take ten times as long"
    for name in collisions-kept:nic:gb300-nvl72-spectrumx/4:12001.1 stray10:gpu:gb200-nvl72/4:12001.1 \
        collisions:uplinks:rtxpro6000-100gbe/16:12001.1 contention10:uplinks:gb200-nvl72/4:12002.1 \
        collisions-kept:leaf:hgx-h100/24:12003.1 collisions:time40:hgx-h100/16:12004.1 \
        collisions:healthy:gb300-nvl72-spectrumx/4:12005.1 collisions:healthy:rtxpro6000-100gbe/16:12004.1 \
        collisions-kept:nic:way:hgx-h100/24:12006.1 collisions:host-time60:rtxpro6000-100gbe/16:12006.1 \
        host-minute:host-time60:hgx-h100/16:12004.1 stray2:host-time60:rtxpro6000-100gbe/16:12004.1 \
        collisions:nic:way:rtxpro6000-100gbe/16:12011.1 mix:host-time60:gb300-nvl72-spectrumx/4:12011.1 \
        drift10:rack-pair:hgx-h100/16:12011.1 collisions:leaf:gb200-nvl72/4:12013.1 \
        collisions-kept:host-time60:rtxpro6000-100gbe/16:12014.1; do
        run python3 "$top/tests/random/worlds.py" --dir "$BATS_TEST_TMPDIR" --only "$name"
        echo "$name: $output"
        [ "$status" -eq 0 ]
        [[ $output == *"as it should be" ]]
    done
}

@test "compare sees a change of 2 % in each world and no other" {
    [ -z "${RG_SAN-}" ] || skip "sanitizers take ten times as long"
    worlds -n 0 --worlds plausible --seed 1 --compare 1
}

@test "check lets healthy busy hosts be and finds a NIC at 0.6" {
    worlds -n 0 --seed 1 --check 15
}

@test "a program that dies is no score, and an unknown world is refused" {
    command -v python3 >/dev/null || skip "no python3"
    run python3 "$top/tests/random/worlds.py" -n 2 --worlds clean,mars
    [ "$status" -eq 2 ]
    [[ $output == *"--worlds mars: known are clean "* ]]
    mkdir "$BATS_TEST_TMPDIR/empty"
    printf '#!/bin/sh\nkill -SEGV $$\n' >"$BATS_TEST_TMPDIR/empty/railgauge"
    chmod +x "$BATS_TEST_TMPDIR/empty/railgauge"
    run python3 "$top/tests/random/worlds.py" -n 1 --build "$BATS_TEST_TMPDIR/empty"
    [ "$status" -ne 0 ]
}
