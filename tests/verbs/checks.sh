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

check rdma_devices rdma_devices
check carried carried
check ranks_by_mpirun ranks_by_mpirun
check campaign_over_mpi campaign_over_mpi
check perftest_lat perftest ib_write_lat -s 8 -n 500
check perftest_bw perftest ib_write_bw -s 65536 -n 100 -t 4
