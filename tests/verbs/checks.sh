#!/bin/bash
# checks.sh - what verbs.bats judges, done in one boot of two machines (vm.sh): this runs on node1.
#
# Each check leaves NAME.out (what it printed), NAME.code and NAME.seconds in /vm.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm_rsh_agent=/vm/.bin/remote OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
export OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_mpi_yield_when_idle=1

check() {
    local name=$1 begin=$EPOCHREALTIME
    shift
    "$@" >"$name.out" 2>&1
    echo $? >"$name.code"
    awk -v from="$begin" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }' >"$name.seconds"
    echo "$name: $(<"$name.code") after $(<"$name.seconds") s"
}

# Both ends of a program of perftest; prints what the asking end says.  On a busy machine they may miss each other.
perftest() {
    local program=$1 server
    shift
    for _ in 1 2 3; do
        remote node2 "timeout 60 $program -d rxe0 -x 1 -F $* >/dev/null" &
        server=$!
        while kill -0 $server 2>/dev/null && ! remote node2 'ss -Hltn sport = :18515 | grep -q .'; do sleep 0.1; done
        if timeout 60 "$program" -d rxe0 -x 1 -F "$@" 10.8.0.2 >answer 2>refusal; then
            cat answer
            wait $server
            return
        fi
        remote node2 "pkill -x $program"
        wait $server
    done
    cat answer refusal
    return 1
}

rdma_devices() {
    "$here/nics.sh" 0 1 2 3 && remote node2 "$here/nics.sh" 0 1 2 3 || return 1
    rdma link
    remote node2 rdma link
}

# Output, errors, input and the exit code of a command there; one that is killed here ends there.
carried() {
    echo word | remote node2 'hostname; cat; echo wrong >&2; exit 7' 2>errors
    echo "code $? errors $(<errors)"
    remote node2 'exec sleep 4321' &
    until remote node2 'pgrep -x sleep' >/dev/null; do sleep 0.1; done
    kill -9 $!
    wait $! 2>/dev/null
    while remote node2 'pgrep -x sleep' >/dev/null; do sleep 0.1; done
    echo ended
}

# shellcheck disable=SC2016  # each rank says its own
ranks_by_mpirun() { mpirun -H node1,node2 sh -c 'echo "rank $OMPI_COMM_WORLD_RANK on $(hostname)"'; }

campaign_over_mpi() {
    railgauge run -t mpi --hosts node1,node2 -o mpi --op pair_latency -b 8 -e 8 --epochs 1 --no-plots --no-verdict
}

# --- beside perftest: each in turn, one rank a machine, the same NICs ---

turns=3 sizes='65536 1048576' in_flight=8

# NAME BYTES FIGURE..., one line a size and turn: microseconds of 8 bytes, MB/s of the others
beside_perftest() {
    local turn s
    for turn in $(seq $turns); do
        perftest ib_write_lat -s 8 -n 300 | awk '/^ *8 / { print "perftest", 8, $5 }' || return 1
        for s in $sizes; do
            perftest ib_write_bw -s "$s" -n $((16 + 2097152 / s)) -t $in_flight |
                awk -v s="$s" '$1 == s { print "perftest", s, $4 * 1.048576 }' || return 1
        done
        pairs "turn$turn.tsv" --verb write || return 1
    done
}

# pairs FILE OPTION...: the plan of pairs.tsv between rxe0 and rxe0.
pairs() {
    local file=$1
    shift
    mpirun -H node1,node2 railgauge-probe probe -q -t verbs --topology two.json --plan pairs.tsv --hca rxe0 \
        --depth $in_flight --ib-timeout 16 --time-cap 500ms -o "$file" "$@"
}

# --- faults ---

# Every NIC sends and receives at one rate, one of them at a third of it.
shape() {
    local i
    for i in 0 1 2; do
        tc qdisc replace dev "nic$i" root tbf rate 24mbit burst 16k latency 400ms
        tc qdisc replace dev "port$i" root tbf rate 24mbit burst 16k latency 400ms
    done
}
unshape() {
    local i
    for i in 0 1 2; do
        tc qdisc del dev "nic$i" root
        tc qdisc del dev "port$i" root
    done
}
slow_nic() {
    shape
    remote node2 "$(declare -f shape); shape; for d in nic1 port1; do
        tc qdisc replace dev \$d root tbf rate 8mbit burst 16k latency 400ms; done"
    # Step by step: three ranks on the one core of a machine end too slowly for railgauge run.
    local six="mpirun -H node1:3,node2:3 --oversubscribe railgauge-probe"
    $six discover -q -o six.json &&
        railgauge plan six.json --op pair_bw -b 64K -e 64K --pair-bytes 64K --pairs tournament --epochs 1 -o six.tsv &&
        $six probe -q -t verbs --topology six.json --plan six.tsv --hca rxe0,rxe1,rxe2 --ib-timeout 16 --depth 4 \
            --time-cap 200ms -o slow.tsv &&
        railgauge fit six.json six.tsv slow.tsv -o slow.json
    local code=$?
    unshape
    remote node2 "$(declare -f unshape); unshape"
    return $code
}

# A wire that loses packets and flips bits: what arrives is right, and how it came is told.
lossy_wire() {
    tc qdisc replace dev nic0 root netem loss 1% corrupt 1%
    pairs lossy.tsv
    local code=$?
    tc qdisc del dev nic0 root
    return $code
}

peer_killed() {
    railgauge run -t verbs --hosts node1,node2 --hca rxe0 --op pair_bw -b 1M -e 1M --epochs 5 --half-width 0.1% \
        --time-cap 4s --no-plots --no-verdict -o killed &
    local run=$!
    until grep -qs '^[0-9]' killed/points.tsv; do
        kill -0 $run 2>/dev/null || return 1
        sleep 0.2
    done
    remote node2 'pkill -9 -x railgauge-probe'
    wait $run
}

check rdma_devices rdma_devices
check discovered mpirun -H node1,node2 railgauge-probe discover -o two.json
check carried carried
check ranks_by_mpirun ranks_by_mpirun
check campaign_over_mpi campaign_over_mpi
check perftest_lat perftest ib_write_lat -s 8 -n 500
check perftest_bw perftest ib_write_bw -s 65536 -n 100 -t 4
printf '%s\n' '# railgauge-plan 1' 'round stage op bytes_from bytes_to factor epochs groups' \
    '0 ladder pair_latency 8 8 2 0 0>1' '1 ladder pair_bw 65536 65536 2 0 0>1' \
    '2 ladder pair_bw 1048576 1048576 2 0 0>1' | sed '2,$s/ /\t/g' >pairs.tsv
check by_read pairs read.tsv --verb read
check by_send pairs send.tsv --verb send --qps 2
check empty_gid pairs empty.tsv --gid-index 200
remote node2 'ip addr del 10.9.0.23/24 dev nic3; ip -6 addr add fd00::23/64 nodad dev nic3'
check other_gid pairs other.tsv --hca rxe3 --gid-index 1
check lossy_wire lossy_wire
check peer_killed peer_killed
check beside_perftest beside_perftest
check slow_nic slow_nic
