#!/usr/bin/env bats
# nccl_record.bats - librailgauge-nccl.so in jobs of the stand-in for NCCL, which finds, asks and tells a
# profiler plugin as the real one does: every operation, in every version of the interface.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_stand_ins "devices 8"
    [ -e "$build/librailgauge-nccl.so" ] || skip "the plugin is not built"
    command -v python3 >/dev/null || skip "python3 is not installed"
    export NCCL_PROFILER_PLUGIN=$build/librailgauge-nccl.so RAILGAUGE_NCCL_DIR=$PWD/rec RAILGAUGE_NCCL_MB=4
}

collectives=(-b 1K -e 1K -n 2 -w 0 --epochs 1 --no-retest --max-run 60s --op "collectives")

# record N WORDS... - a job of N ranks, and records.txt of its files.
record() {
    local n=$1
    shift
    rm -rf rec -- *.tsv
    run ranks "$n" "$probe" probe -t nccl "${collectives[@]}" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(find rec -name '*.rgnccl' | wc -l)" -eq "$n" ]
    python3 "$BATS_TEST_DIRNAME/record.py" rec/*.rgnccl >records.txt
    head -n 5 records.txt
    ! grep -E '^file .*(dropped|foreign)=[1-9]' records.txt
    ! grep '^file .* closed=0' records.txt
}

# tally WORD... - how many records have all of these words.
tally() {
    awk -v want="$*" 'BEGIN { n = split(want, w, " ") } $1 == "record" {
        for (i = 1; i <= n; i++) if (index($0 " ", " " w[i] " ") == 0) next
        found++ } END { print found + 0 }' records.txt
}

@test "every operation on every rank, in each version of the interface" {
    local v version ranks=2
    for v in 1:22304 2:22403 3:22605 4:22707 5:22809 6:22907 7:23203; do
        version=${v#*:} v=${v%:*}
        FAKE_NCCL_VERSION=$version record $ranks
        [ "$(grep -c "^file abi=$v nccl=$version " records.txt)" -eq $ranks ]
        for op in AllReduce AllGather ReduceScatter Broadcast Reduce; do
            n=$(tally kind=COLL op=$op)
            [ "$n" -gt 0 ] || { echo "v$v: no $op"; false; }
            # All ranks have the same ones, and each has ended.
            [ $((n % ranks)) -eq 0 ]
            [ "$n" -eq "$(tally kind=COLL op=$op ended=1)" ]
            [ "$n" -eq "$(tally kind=COLL op=$op algo=RING proto=LL)" ] || [ "$n" -eq "$(tally kind=COLL op=$op channels=16)" ]
            [ "$v" -lt 3 ] || [ "$n" -eq "$(tally kind=COLL op=$op started=16 stopped=16)" ]
            [ "$v" -lt 4 ] || [ "$n" -eq "$(tally kind=COLL op=$op timed=1)" ]
        done
        n=$(tally kind=P2P op=Send) # of sendrecv, and of all_to_all
        [ "$n" -gt 0 ]
        [ "$n" -eq "$(tally kind=P2P op=Recv)" ]
        [ "$(tally kind=P2P)" -eq "$(tally kind=P2P ended=1)" ]
        [ "$(grep -c '^comm state=2 ' records.txt)" -ge $ranks ]
        [ "$v" -lt 4 ] || [ "$(grep -c "^comm state=2 rank=[01] ranks=2 nodes=1 " records.txt)" -ge $ranks ]
    done
}

@test "an interface may be forced; none but ours may be there" {
    FAKE_NCCL_PROFILER=2 record 2
    [ "$(grep -c '^file abi=2 ' records.txt)" -eq 2 ]
}

@test "bytes are those that were asked for" {
    record 2 --op all_reduce,all_gather -d float -b 4K -e 4K
    [ "$(tally kind=COLL op=AllReduce bytes=4096 count=1024 dtype=ncclFloat32)" -gt 0 ]
    # NCCL has made bytes of it: one rank's share.
    [ "$(tally kind=COLL op=AllGather bytes=2048 count=2048 dtype=ncclInt8)" -gt 0 ]
    # What one rank did, the others did, under one name of the communicator.
    [ "$(awk '/^comm/ { print $6 }' records.txt | sort | uniq -c | awk '{ print $1 }' | sort -u)" = 2 ]
}

@test "proxies: what goes to other hosts, by channel and peer" {
    printf '%s\n' "host 0 a" "host 1 b" "nic mlx5_0:1/IB" "channels 4" >nccl.txt
    for version in 22304 22605 22707 22809 22907; do
        FAKE_NCCL_VERSION=$version FAKE_NCCL=$PWD/nccl.txt RAILGAUGE_NCCL_EVENTS=proxy record 2 --op all_reduce -b 64K -e 64K
        n=$(tally kind=COLL op=AllReduce bytes=65536)
        [ "$n" -gt 0 ]
        # 2 x (n - 1) / n of the bytes go to the next rank and come from the last one, in 4 channels of 4 steps.
        [ "$(tally kind=COLL op=AllReduce bytes=65536 sent=65536 received=65536 proxy_started=8 proxy_stopped=8 steps=32)" -eq "$n" ]
        [ "$(tally kind=PROXY op=AllReduce flags=1 sent=16384 received=0 steps=4)" -eq $((4 * n)) ]
        [ "$(tally kind=PROXY op=AllReduce flags=0 sent=0 received=16384 steps=4)" -eq $((4 * n)) ]
        [ "$(tally kind=GROUP ended=1)" -gt 0 ]
        # Each rank's peers are the other one.
        [ "$(tally kind=PROXY peer=0)" -eq "$(tally kind=PROXY peer=1)" ]
    done
}

@test "calls of the application, and graphs that are replayed" {
    RAILGAUGE_NCCL_EVENTS=all record 2 --op all_reduce
    [ "$(tally kind=CALL op=AllReduce ended=1 flags=0)" -gt 0 ]
    [ "$(tally kind=GROUP_CALL ended=1)" -gt 0 ]
    [ "$(tally kind=COLL parent=0)" -eq 0 ]
    RAILGAUGE_NCCL_EVENTS=all record 2 --op all_reduce --graph
    [ "$(tally kind=CALL op=AllReduce flags=2)" -gt 0 ]
    [ "$(tally kind=COLL op=AllReduce flags=2)" -gt 0 ]
}

@test "found by a short name; none means none" {
    NCCL_PROFILER_PLUGIN=railgauge LD_LIBRARY_PATH=$build:$LD_LIBRARY_PATH record 2 --op all_reduce
    rm -rf rec
    NCCL_PROFILER_PLUGIN=none run ranks 2 "$probe" probe -t nccl "${collectives[@]}" --op all_reduce
    [ "$status" -eq 0 ]
    [ ! -e rec ]
}

@test "a job whose folder cannot be made runs as before, and is told once a process" {
    touch file
    RAILGAUGE_NCCL_DIR=$PWD/file/rec run ranks 2 "$probe" probe -t nccl "${collectives[@]}" --op all_reduce
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'railgauge-nccl\[.*nothing is recorded: .*file/rec cannot be made: Not a directory' <<<"$output")" -eq 2 ]
}

@test "a rank that dies leaves what it did; the others show what they waited for" {
    # It dies some tenths of a second after the first: what was older than the last 0.1 s is in the file.
    FAKE_FAULT=die:1:8000 run ranks 2 "$probe" probe -t nccl "${collectives[@]}" --op all_reduce -n 20000 --half-width 0.001% --hang-after 3s
    echo "$output"
    [ "$(find rec -name '*.rgnccl' | wc -l)" -eq 2 ]
    python3 "$BATS_TEST_DIRNAME/record.py" rec/*.rgnccl >records.txt
    grep '^file' records.txt
    [ "$(grep -c '^file .* closed=0' records.txt)" -ge 1 ]
    # The one that is left had begun the channels of what was not finished; of the dead one most is known.
    [ "$(tally kind=COLL started=16 stopped=0)" -ge 1 ]
    for n in $(sed -n 's/^file .* begun=\([0-9]*\) .*/\1/p' records.txt); do
        [ "$n" -gt 100 ]
    done
}

@test "the libnccl of this machine asks for no interface but these" {
    local lib="" l
    for l in "${CUDA_HOME:-/usr/local/cuda}"/lib*/libnccl.so.2 /usr/lib/*/libnccl.so.2; do
        [ ! -e "$l" ] || lib=$l
    done
    [ -n "$lib" ] || skip "NCCL is not installed"
    grep -aoE 'ncclProfiler_v[0-9]+' "$lib" | sort -u >asked.txt
    [ -s asked.txt ]
    nm -D --defined-only "$build/librailgauge-nccl.so" | awk '{ print $3 }' | sort >there.txt
    [ -z "$(comm -23 asked.txt there.txt)" ]
}
