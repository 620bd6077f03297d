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

# Both ends of a program of perftest; prints what the asking end says.  A server that was not there yet refuses.
perftest() {
    local program=$1 end=$((SECONDS + 30))
    shift
    remote node2 "timeout 60 $program -d rxe0 -x 1 -F $* >/dev/null" &
    until timeout 60 "$program" -d rxe0 -x 1 -F "$@" 10.8.0.2 2>asked; do
        [ $SECONDS -lt $end ] || { cat asked; return 1; }
        sleep 0.3
    done
    wait $!
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

rounds=3 sizes='65536 1048576' in_flight=8

# NAME BYTES FIGURE..., one line a size and turn: microseconds of 8 bytes, MB/s of the others
beside_perftest() {
    local turn s
    printf '%s\n' '# railgauge-plan 1' 'round stage op bytes_from bytes_to factor epochs groups' \
        '0 ladder pair_latency 8 8 2 0 0>1' '1 ladder pair_bw 65536 1048576 16 0 0>1' | sed '2,$s/ /\t/g' >pairs.tsv
    for turn in $(seq $rounds); do
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
        --depth $in_flight --time-cap 500ms -o "$file" "$@"
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
    railgauge run -t verbs --hosts node1:3,node2:3 --hca rxe0,rxe1,rxe2 --op pair_bw -b 64K -e 64K --pair-bytes 64K \
        --depth 4 --pairs tournament --epochs 1 --time-cap 200ms --no-plots -o slow
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

# When it was killed, and when the campaign had ended.
peer_killed() {
    railgauge run -t verbs --hosts node1,node2 --hca rxe0 --op pair_bw -b 1M -e 1M --epochs 5 --half-width 0.1% \
        --time-cap 4s --no-plots --no-verdict -o killed &
    until grep -qs '^[0-9]' killed/points.tsv; do
        kill -0 $! 2>/dev/null || return 1
        sleep 0.2
    done
    echo "killed $EPOCHREALTIME"
    remote node2 'pkill -9 -x railgauge-probe'
    wait $!
    local code=$?
    echo "ended $EPOCHREALTIME"
    return $code
}

check rdma_devices rdma_devices
check discovered mpirun -H node1,node2 railgauge-probe discover -o two.json
check carried carried
check ranks_by_mpirun ranks_by_mpirun
check campaign_over_mpi campaign_over_mpi
check perftest_lat perftest ib_write_lat -s 8 -n 500
check perftest_bw perftest ib_write_bw -s 65536 -n 100 -t 4
railgauge run --help | grep -q -- --gid-index || exit 0
check beside_perftest beside_perftest
check by_read pairs read.tsv --verb read
check by_send pairs send.tsv --verb send --qps 2
check lossy_wire lossy_wire
check peer_killed peer_killed
check empty_gid pairs empty.tsv --gid-index 200
remote node2 'ip addr del 10.9.0.20/24 dev nic0; ip -6 addr add fd00::20/64 nodad dev nic0'
check other_gid pairs other.tsv --gid-index 1
check slow_nic slow_nic
