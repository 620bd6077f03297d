# sim.bash - one ibsim per test: a subnet without hardware.  Sourced by bats files.
#
# ibsim ends when its standard input does: a fifo that stays open is its console.  Each simulator
# has a socket name of its own, and a client blocks for ever when its simulator is gone: timeouts.

. "$BATS_TEST_DIRNAME/../await.bash"

need_ibsim() {
    for p in ibsim ibsim-run; do
        command -v $p >/dev/null || skip "no $p (package ibsim-utils)"
    done
    [ -e /usr/lib/x86_64-linux-gnu/libibnetdisc.so.5 ] || ldconfig -p | grep -q 'libibnetdisc\.so\.5' ||
        skip "no libibnetdisc.so.5 (package libibnetdisc5)"
}

prompted() { [ "$(grep -o 'sim> ' ibsim.log | wc -l)" -ge "$1" ]; }
ready_or_ended() { prompted 1 || ended "$sim_pid"; }

# sim_start NET: simulate it until sim_stop.
sim_start() {
    export IBSIM_SOCKNAME="rg.$$.$BATS_TEST_NUMBER"
    mkfifo console
    : >ibsim.log
    # Whoever opens a fifo for reading and writing never waits.
    exec 7<>console
    timeout 300 ibsim -s "$1" <&7 >ibsim.log 2>&1 3>&- &
    sim_pid=$!
    await 60 ready_or_ended || true
    prompted 1 || { cat ibsim.log; return 1; }
}

# sim_do COMMAND: on the console; waits for the next prompt.
sim_do() {
    local before
    before=$(grep -o 'sim> ' ibsim.log | wc -l)
    echo "$1" >&7
    await 60 prompted $((before + 1)) || { cat ibsim.log; return 1; }
}

sim_stop() {
    [ -z "${sim_pid:-}" ] || kill "$sim_pid" 2>/dev/null || true
    sim_pid=
    exec 7>&- || true
}

# sim_run COMMAND...: as a client of the simulator.  Its library is loaded before that of a sanitizer.
sim_run() {
    local dir=$BATS_TEST_DIRNAME
    ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:suppressions=$dir/asan.supp" \
        LSAN_OPTIONS="suppressions=$dir/lsan.supp:print_suppressions=0" timeout 120 ibsim-run "$@" 7>&-
}
