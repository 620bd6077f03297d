#!/usr/bin/env bats
# verbs.bats - real RDMA verbs without hardware: two small machines with soft-RoCE NICs (vm.sh), in which checks.sh does
# everything in one boot; here is judged what it left.

bats_require_minimum_version 1.5.0

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
export RG_BUILD=${RG_BUILD:-$top/build}

setup_file() {
    local rc=0 why=$BATS_FILE_TMPDIR/why
    export VM=$BATS_FILE_TMPDIR/vm
    if [ -n "${RG_SAN-}" ]; then
        VM_WHY="programs with sanitizers are too slow in an emulated machine"
    elif [ ! -x "$RG_BUILD/railgauge-probe" ]; then
        VM_WHY="railgauge-probe is not built: no MPI was found"
    else
        "$BATS_TEST_DIRNAME/vm.sh" --limit 400 "$VM" "$BATS_TEST_DIRNAME/checks.sh" 2>"$why" || rc=$?
        [ $rc -eq 0 ] || cat "$why" >&2
        [ $rc -ne 77 ] || VM_WHY=$(<"$why")
        [ $rc -eq 0 ] || [ $rc -eq 77 ]
    fi
    export VM_WHY
}

setup() {
    [ -z "${VM_WHY-}" ] || skip "$VM_WHY"
    cd "$VM" || return 1
}

# did NAME [CODE]: the check ended with this exit code (0); shows what it said.
did() {
    cat "$1.out"
    echo "exit code $(<"$1.code") after $(<"$1.seconds") s"
    [ "$(<"$1.code")" = "${2:-0}" ]
}

@test "each machine has four RDMA devices of rdma_rxe, up" {
    did rdma_devices
    [ "$(grep -c '^link rxe[0-3]/1 state ACTIVE physical_state LINK_UP netdev nic[0-3]' rdma_devices.out)" -eq 8 ]
}

# In columns of topology.json: rows TABLE COLUMN...
rows() {
    jq -r --arg table "$1" '.[$table] as $t | $t.rows[] | [.[($ARGS.positional | map(. as $c | $t.columns | index($c)))[]]]
        | @tsv' two.json --args "${@:2}"
}

@test "discover reads the ports through libibverbs as the kernel has them" {
    did discovered
    rows verbs up link_layer mtu gid | tee verbs
    rows ports netdev gid_type gid_index gid | grep '^nic' | tee ports
    for node in 1 2; do
        for i in 0 1 2 3; do
            grep -qx "true	ethernet	4096	::ffff:10.9.0.$node$i" verbs
            grep -qx "nic$i	RoCE v2	1	::ffff:10.9.0.$node$i" ports
        done
    done
}

@test "a command on the other machine: input, output, errors, exit code, its end" {
    did carried
    [ "$(<carried.out)" = $'node2\nword\ncode 7 errors wrong\nended' ]
}

@test "mpirun and railgauge run --hosts start ranks on both machines" {
    did ranks_by_mpirun
    [ "$(sort ranks_by_mpirun.out)" = $'rank 0 on node1\nrank 1 on node2' ]
    did campaign_over_mpi
    [ "$(jq -r '.hosts | length' mpi/topology.json)" -eq 2 ]
    [ "$(grep -vc '^[#r]' mpi/points.tsv)" -ge 1 ]
}

# Its last line of numbers: size, iterations, ...
figures() { awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { last = $0 } END { print last }' "$1.out"; }

@test "perftest writes from one machine into the other" {
    did perftest_lat
    [ "$(figures perftest_lat | awk '{ print $1, $2, ($5 > 0) }')" = "8 500 1" ]
    did perftest_bw
    [ "$(figures perftest_bw | awk '{ print $1, $2, ($4 > 0) }')" = "65536 100 1" ]
}
