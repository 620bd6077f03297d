#!/usr/bin/env bats
# shellcheck disable=SC2154 # top comes from the helper
# The lab itself keeps its promises: its links have the rates and delays that its truth states.

load helper

setup() {
    need_lab
    lab_alone
    export LAB=rgfab$$
}

teardown() {
    [ -z "${LAB-}" ] || lab down
}

# The namespaces, relays and files of this test's lab.
leftovers() {
    ip netns list | grep "^$LAB-" || true
    pgrep -f "^/run/railgauge-lab/$LAB/" || true
    ls -d "/run/railgauge-lab/$LAB" 2>/dev/null || true
}

@test "a parameter that is no number is refused by name and value" {
    NIC=fast run lab up
    [ "$status" -eq 1 ]
    [ "$output" = 'lab: NIC "fast" is not a whole number from 10 to 40000' ]
}

@test "a degraded host that does not exist is refused" {
    RACKS=2 PER=2 DEGRADE='1:300 4:300' run lab up
    [ "$status" -eq 1 ]
    [ "$output" = 'lab: DEGRADE "4:300" is not HOST:MBIT with HOST from 0 to 3' ]
}

@test "a lab's name cannot reach another lab's namespaces" {
    LAB='a-b' run lab down
    [ "$status" -eq 1 ]
    [[ "$output" == 'lab: LAB "a-b" is not 1 to 16 lower-case letters'* ]]
}

@test "a second lab of the same name is refused and the first one stays" {
    RACKS=1 PER=2 lab up
    run lab up
    [ "$status" -eq 1 ]
    [[ "$output" == "lab: a lab \"$LAB\" is up already"* ]]
    [ "$(lab hosts)" = "$LAB-h0
$LAB-h1" ]
}

@test "the truth is the slowest part of the path, and the delay between racks only" {
    RACKS=2 PER=2 NIC=1000 TRUNK=400 DELAY_US=70 DEGRADE='1:300' lab up
    [ "$(lab truth | awk '$1 == 0')" = "$(printf '0\t1\t286.92\t0\n0\t2\t382.56\t70\n0\t3\t382.56\t70')" ]
    [ "$(lab truth | awk '$1 == 1 && $2 == 2')" = "$(printf '1\t2\t286.92\t70')" ]
}

# inside HOST NAME: does a program of that name run there?
inside() { ip netns pids "$LAB-h$1" | xargs -r ps -o comm= -p | grep -qx "$2"; }

@test "down removes every namespace, process and file, running programs too" {
    RACKS=2 PER=1 DELAY_US=50 lab up
    lab exec 1 sleep 300 &
    await 30 inside 1 sleep
    lab down
    [ -z "$(leftovers)" ]
    ended $!
    run lab hosts
    [ "$output" = "lab: no lab \"$LAB\" is up; 'lab.sh up' builds it" ]
}

# One message time by the bare loop, in a lab that is up: pingpong KIND BYTES BLOCKS LOOPS SRC DST.
pingpong() {
    [ -x "$BATS_RUN_TMPDIR/pingpong" ] ||
        mpicc -O2 -o "$BATS_RUN_TMPDIR/pingpong" "$top/tests/bench/pingpong.c"
    lab mpirun "$BATS_RUN_TMPDIR/pingpong" "$@" 2>/dev/null
}

# bats test_tags=nightly
@test "bandwidth of a near, a far and a degraded pair is what the truth says within 3 %" {
    RACKS=2 PER=2 NIC=800 TRUNK=300 DELAY_US=60 DEGRADE='3:150' lab up
    local pair src dst truth sec
    for pair in '0 1' '0 2' '2 3'; do
        read -r src dst <<<"$pair"
        truth=$(lab truth | awk -v s="$src" -v d="$dst" '$1 == s && $2 == d {print $3}')
        sec=$(pingpong bandwidth 1048576 5 1 "$src" "$dst")
        awk -v t="$truth" -v s="$sec" -v p="$pair" 'BEGIN {
            mbit = 1048576 * 8e-6 / s
            printf "pair %s: %.1f Mbit/s, truth %.1f\n", p, mbit, t
            exit !(mbit > 0.97 * t && mbit < 1.03 * t)
        }'
    done
}

# soonest SRC DST: what else runs on these cores makes messages later and never earlier, so the least of five counts.
soonest() {
    local once=(latency 8 40 10)
    pingpong "${once[@]}" "${once[@]}" "${once[@]}" "${once[@]}" "${once[@]}" "$@" | sort -g | head -n 1
}

# A core that slept through the delay wakes late, by 20 to 80 us here and by the same for any delay: two labs' difference
# is the delay alone.
# bats test_tags=nightly
@test "a longer delay between racks is longer by what the truth says within 40 us; a near pair has none" {
    local us near far=()
    for us in 60 260; do
        RACKS=2 PER=2 NIC=800 TRUNK=300 DELAY_US=$us lab up
        far+=("$(soonest 0 2)")
        [ "$us" = 260 ] || lab down
    done
    near=$(soonest 0 1)
    awk -v n="$near" -v a="${far[0]}" -v b="${far[1]}" 'BEGIN {
        us = (b - a) * 1e6
        printf "near %.1f us, far %.1f and %.1f us, difference %.1f us, truth 200\n", n * 1e6, a * 1e6, b * 1e6, us
        exit !(us > 160 && us < 240 && a > 60e-6 && n < 60e-6)
    }'
}
