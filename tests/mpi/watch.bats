#!/usr/bin/env bats
# watch.bats - a rank dies, stops, spins or complains: it is named, what was measured is kept, and a resume
# measures the rest.  RAILGAUGE_FAULT (src/measure/fault.h) strikes at the third point of one rank.

bats_require_minimum_version 1.5.0
load helper
load watch

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
}

# Exactly these points, in this order: 12 in all.
small_plan() {
    plan "collective all_reduce 8 32768 8 0 0-$(($1 - 1))" "isolated pair_bw 65536 65536 2 0 0>1" \
        "collective all_gather 8 32768 8 0 0-$(($1 - 1))" "isolated pair_bw 131072 131072 2 0 1>0" \
        "isolated pair_latency 8 8 2 0 0>1"
}
# On a busy machine no size is too slow to be measured: the points are counted.
words=(-n 4 -w 1 --no-retest --max-run 60s --hang-after 2s)
args=("${words[@]}" -t mpi --no-plots -b 8 -e 32K -f 8 --op all_reduce,pair_bw --pair-bytes 64K --epochs 1)

# under FAULT RANKS VERDICT RANK WORDS - railgauge run with that fault of that rank.
under() {
    export RAILGAUGE_FAULT=$1:$4:3
    shift
    struck "$@"
}
# bare RANKS KIND RANK VERDICT STATUS WORDS - the same under mpirun alone.
bare() {
    small_plan "$1" >plan.tsv
    RAILGAUGE_FAULT=$2:$3:3 run ranks "$1" "$probe" probe --plan plan.tsv "${words[@]}"
    echo "$output"
    [ "$status" -eq "$5" ]
    verdict verdict.json "$4" "$3"
    [ "$(grep -c "^railgauge-probe: rank $3 (host $here, pid [0-9]*).*; 2 of 13 points are kept, --resume measures the rest" <<<"$output")" -eq 1 ]
    [[ $output == *"$6"* ]]
    [ "$(rows points.tsv)" -eq 2 ]
    keeps_to_schema verdict.json
    cp points.tsv kept.tsv
    ranks "$1" "$probe" probe --plan plan.tsv "${words[@]}" --hang-after 60s
    [ "$(rows points.tsv)" -eq 13 ]
    cmp <(head -n "$(wc -l <kept.tsv)" points.tsv) kept.tsv
    [ ! -e verdict.json ]
}

@test "railgauge run, SIGSEGV of rank 0" { under segv 4 dead 0 "died in "; }
@test "railgauge run, _exit(0) of one of eight" { under exit 8 dead 5 "died in "; }
@test "railgauge run, SIGSTOP" { under stop 4 silent 0 "it is stopped, or its node is gone"; }
@test "railgauge run, a rank that spins" { under spin 4 hung 1 "and its measuring thread spins in one place"; }

@test "mpirun, SIGKILL of rank 0" { bare 4 kill 0 dead 137 "died in all_reduce of 512 B (round 0)"; }
@test "mpirun, SIGSTOP of rank 0" { bare 4 stop 0 silent 75 "in all_reduce of 512 B (round 0): it is stopped"; }
@test "mpirun, a rank of eight that spins" { bare 8 spin 6 hung 75 "hangs in all_reduce of 512 B (round 0): nothing moved for "; }
# after_last TRANSPORT... - a rank stops itself in MPI_Finalize: under mpirun alone, then under railgauge run.
after_last() {
    [ -z "${RG_SAN-}" ] || skip "sanitizers come first"
    [ -e "$build/fake/libfaulty.so" ] || skip "the stand-ins are not built (make check builds them)"
    local began=$SECONDS
    small_plan 3 >plan.tsv
    FAULTY=stop=1 LD_PRELOAD=$build/fake/libfaulty.so run -75 ranks 3 "$probe" probe --plan plan.tsv "${words[@]}" "$@"
    [[ $output == *"railgauge-probe: rank 1 (host $here, pid "*") said nothing for "*" in the end (MPI_Finalize): it is stopped"* ]]
    verdict verdict.json silent 1
    [ "$(rows points.tsv)" -eq 13 ]
    printf '#!/bin/sh\nFAULTY=stop=2 LD_PRELOAD=%s/fake/libfaulty.so exec "$@"\n' "$build" >faulty.sh
    chmod +x faulty.sh
    run -75 railgauge run "${args[@]}" "$@" -o dir --launch "mpirun -n 3 --oversubscribe --bind-to none ./faulty.sh"
    verdict dir/verdict.json silent 2
    sed -i s/stop=2/linger=0/ faulty.sh # after its goodbye
    run -75 railgauge run "${args[@]}" "$@" -o late --launch "mpirun -n 3 --oversubscribe --bind-to none ./faulty.sh"
    verdict late/verdict.json hung 0
    [[ $output == *"rank 0 (host $here, pid "*") did not end within "*" of its goodbye; "* ]]
    [ $((SECONDS - began)) -lt 60 ]
}
@test "a rank that stops after its last point: named, and nothing waits for it" { after_last; }

@test "mpirun, a rank that says what ails it" { bare 4 ill 2 gpu 75 ": device does not answer, in all_reduce of 512 B (round 0)"; }

# freezes KIND COUNT LEAST - the measuring thread of a rank by chance stands still at a moment by chance, COUNT times;
# at least LEAST times it is named, and never another.
freezes() {
    local turn=0 ranks victim job launcher pid frozen named right=0 wrong=0
    RANDOM=${RG_SEED:-$(date +%s)}
    echo "seed $RANDOM"
    while [ $turn -lt "$2" ]; do
        ranks=$((3 + RANDOM % 3)) victim=$((RANDOM % ranks))
        rm -rf dir
        railgauge run -t mpi -o dir --ranks $ranks --no-plots --no-retest --hang-after 2s --pair-bytes 64K -b 8 -e 4M -f 4 \
            --op all_reduce,all_gather,all_to_all,pair_bw,pair_latency >out 2>&1 3>&- &
        job=$!
        await 60 has_rows 1 dir/points.tsv
        sleep "$(awk -v r=$RANDOM 'BEGIN { print r / 32768 }')"
        launcher=$(pgrep --parent "$job")
        pid=$(for pid in $(pgrep --parent "$launcher"); do
            ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$victim" || echo "$pid"
        done)
        frozen=0
        timeout 100 python3 "$BATS_TEST_DIRNAME/freeze.py" "$1" "$pid" 3>&- || frozen=$?
        wait "$job" || true
        [ "$frozen" -ne 77 ] || skip "no other process can be traced here"
        [ "$frozen" -eq 0 ] || continue # the campaign had ended
        turn=$((turn + 1))
        named=$(jq '.culprit.rank' dir/verdict.json)
        jq -r .text dir/verdict.json
        [ "$named" != "$victim" ] || right=$((right + 1))
        [ "$named" = "$victim" ] || [ "$named" = null ] || wrong=$((wrong + 1))
        keeps_to_schema dir/verdict.json
        # within --hang-after, whatever the step may wait for (opening a group: 20 s); the load of the machine
        jq -e '.since_s < 2 + 0.7 + 1' dir/verdict.json
    done
    echo "$right of $2 right, $wrong wrong"
    [ "$right" -ge "$3" ]
    [ "$wrong" -eq 0 ]
}

@test "a measuring thread that is held at any moment" { freezes stop 3 3; }
@test "a measuring thread that spins at any moment" { freezes spin 3 3; }
# bats test_tags=nightly
@test "twenty measuring threads that are held: 19 are named, and no other rank" { freezes stop 20 19; }
# bats test_tags=nightly
@test "twenty measuring threads that spin: 19 are named, and no other rank" { freezes spin 20 19; }

@test "a wrong token is refused: said once, and the campaign goes on unwatched" {
    cat >wrong <<'END'
#!/bin/sh
RAILGAUGE_WATCH=${RAILGAUGE_WATCH%:*}:00112233445566778899aabbccddeeff
exec "$@"
END
    chmod +x wrong
    run timeout 300 railgauge run -t mpi -o dir --launch "mpirun -n 2 --oversubscribe --bind-to none ./wrong" -b 8 -e 8 \
        --op all_reduce --epochs 1 "${words[@]}" --no-plots
    echo "$output"
    [ "$status" -eq 0 ]
    # ranks are started once
    [ "$(grep -c 'railgauge-probe: warning: the watch does not know us' <<<"$output")" -eq 1 ]
}

@test "RAILGAUGE_WATCH: what cannot be reached or read is warned about, off is silent" {
    small_plan 2 >plan.tsv
    RAILGAUGE_WATCH=127.0.0.1:1:00 run ranks 2 "$probe" probe --plan plan.tsv "${words[@]}"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'warning: no connection to 127.0.0.1:1: Connection refused: a rank that hangs or dies will not be named' <<<"$output")" -eq 1 ]
    RAILGAUGE_WATCH=on run ranks 2 "$probe" probe --plan plan.tsv "${words[@]}"
    [ "$status" -eq 0 ]
    [[ $output == *'RAILGAUGE_WATCH="on" is neither off nor ADDRESS:PORT:TOKEN'* ]]
    RAILGAUGE_WATCH=off run ranks 2 "$probe" probe --plan plan.tsv "${words[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *warning* ]]
}

# Starts a campaign that takes a minute and waits until it measures; $job and $launcher are its processes.  It ends
# with its terminal, even where the tests do not (nohup).
start_long() {
    env --default-signal=HUP railgauge run -t mpi -o dir --ranks 4 --op pair_bw -b 1M -e 1M --pair-bytes 1M --half-width 0 \
        --time-cap 500ms --no-retest --no-plots "$@" >out 2>&1 3>&- &
    job=$!
    await 60 has_rows 1 dir/points.tsv
    launcher=$(pgrep --parent "$job")
    mapfile -t workers < <(pgrep --parent "$launcher")
}

# ends_with STATUS - how the campaign ended; nothing of it is left.
ends_with() {
    status=0
    wait "$job" || status=$?
    cat out
    [ "$status" -eq "$1" ]
    for pid in "$launcher" "${workers[@]}"; do
        await 30 ended "$pid"
    done
}

@test "a signal, a closed terminal: a clean cut without a culprit, at once" {
    for signal in TERM HUP QUIT INT; do
        rm -rf dir
        start_long
        began=$(date +%s%N)
        kill -s "$signal" "$job"
        ends_with 75
        echo "SIG$signal: $((($(date +%s%N) - began) / 1000000)) ms"
        [[ $(<out) == *"railgauge run: probe was cut short; --resume -o dir continues"* ]]
        [[ $(<out) != *"died in"* && $(<out) != *mpirun* ]]
        [ ! -e dir/verdict.json ]
    done
}

@test "railgauge run is killed: its launcher and ranks end, what was measured is kept" {
    start_long
    had=$(rows dir/points.tsv)
    kill -s KILL "$job"
    ends_with 137
    [ "$(rows dir/points.tsv)" -ge "$had" ]
    [ "$(rows dir/points.tsv)" -lt 30 ]
}

@test "a launcher that is killed, and one that does not end when its ranks have: 75 and how to go on" {
    start_long
    kill -s TERM "$launcher"
    ends_with 75
    [[ $(<out) == *"mpirun ended with exit code "*" while its ranks were at work; --resume -o dir continues"* ]]
    rm -rf dir
    start_long --epochs 1
    kill -s STOP "$launcher"
    ends_with 75
    [[ $(<out) == *"mpirun was still there 5 s after its ranks had ended and was ended; --resume -o dir continues"* ]]
    run -0 railgauge run --resume --no-verdict -t mpi -o dir --ranks 4 --op pair_bw -b 1M -e 1M --pair-bytes 1M --half-width 0 \
        --time-cap 500ms --no-retest --no-plots --epochs 1
}

@test "a launcher that starts nobody: 78, with the hosts" {
    run -78 railgauge run -t mpi -o dir --launch false
    [[ $output == *"railgauge run: false ended with exit code 1 and no rank began on this machine: "* ]]
    printf '#!/bin/sh\nexit 255\n' >mpirun
    chmod +x mpirun
    PATH=$PWD:$PATH run -78 railgauge run -t mpi -o dir --hosts 'n[1-2]'
    [[ $output == *"mpirun ended with exit code 255 and no rank began on n[1-2]: "* ]]
    run -78 railgauge run -t mpi -o dir --launch /nowhere/launcher
    [[ $output == *"cannot start /nowhere/launcher: No such file"* ]]
}

@test "a fault that nobody knows: 78" {
    small_plan 2 >plan.tsv
    RAILGAUGE_FAULT=faint:1:1 run ranks 2 "$probe" probe --plan plan.tsv "${words[@]}"
    [ "$status" -eq 78 ]
    [[ $output == *'RAILGAUGE_FAULT="faint:1:1": not KIND:RANK:POINT'* ]]
    run timeout 300 "$probe" probe --hang-after 0.1
    [ "$status" -eq 64 ]
    [[ $output == *"--hang-after: 0.1 is less than 0.5 s"* ]]
    run "$probe" watch 3
    [ "$status" -eq 64 ]
    [[ $output == *"watch is for rank 0, which starts it"* ]]
}

@test "what is missing is said: mpirun, shared memory, a campaign; and what a simulation has no use for" {
    mkdir bin
    ln -s "$(command -v sh)" bin
    PATH=$PWD/bin run -78 "$build/railgauge" run -t mpi -o none
    [[ ${lines[-1]} == "railgauge run: no mpirun in PATH: install Open MPI (Debian: openmpi-bin, RHEL: openmpi)"* ]]
    RAILGAUGE_SHM=/proc run railgauge run -t mpi -o small --ranks 2 --op all_reduce -b 8 -e 8 --epochs 1 --no-plots
    [[ $output == *"/proc has 0 B left, Open MPI takes 4 MiB of it for each of 2 ranks"* ]]
    # Ranks that die of it: that is the reason, for the launcher of this machine and for ranks of pods.
    if [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs -o size=64k none /dev/shm 2>/dev/null; then
        run ! unshare -m sh -c 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"' - \
            railgauge run -t mpi -o tiny --ranks 2 --op all_reduce -b 8 -e 8 --epochs 1 --no-plots
        [[ ${lines[-1]} == "railgauge run: "*"/dev/shm has 64 KiB left, Open MPI takes 4 MiB of it for each of 2 ranks; make it larger"* ]]
        run unshare -m sh -c 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"' - "$probe" discover -q
        [[ $output == *"railgauge-probe: warning: $(hostname): /dev/shm has 64 KiB left, less than MPI maps for one rank: if ranks die of signal 7, mount an emptyDir"* ]]
    fi
    rm -f last
    run -66 railgauge run -t mpi -o last/below
    [[ $output == *"last/below: no campaign is here yet for last to link to" ]]
    [ ! -e last ]
    run -64 railgauge run --fabric hgx-h100 --hosts 'n[1-2]' -o sim
    [[ $output == *"--hosts is not for --transport sim, which simulates all hosts here" ]]
    [ ! -e sim ]
    run -0 "$probe" --help
    [[ ${lines[0]} == "Usage: railgauge-probe COMMAND "* ]]
}

@test "the reason of a failed run is its last line" {
    run railgauge run -t verbs --hca nowhere -o failed --ranks 2 --no-plots
    [ "$status" -eq 78 ]
    [[ ${lines[-1]} == "railgauge run: "*" failed: "* ]]
    [ "$(grep -cF "${lines[-1]#*failed: }" <<<"$output")" -eq 2 ] # the rank's own, far above
}
