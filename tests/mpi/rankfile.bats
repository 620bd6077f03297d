#!/usr/bin/env bats
# rankfile.bats - real mpirun reads what railgauge place writes, and ranks land where it says.

bats_require_minimum_version 1.5.0
load helper
load nodes

setup() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    cd "$BATS_TEST_TMPDIR" || return 1
    golden=$BATS_TEST_DIRNAME/../golden/matrix.json
    me=$(hostname)
}

@test "a rankfile binds each rank to the core that it names, on this node" {
    [ "$(nproc)" -ge 2 ] || skip "one core"
    mpirun --version | grep -q 'Open MPI) 4\.' || skip "the option is that of Open MPI 4"
    sed "s/n\[00-07\]/$me,x[1-7]/" "$golden" >matrix.json
    railgauge seal matrix.json
    printf 'src\tdst\tbytes\n0\t1\t1e9\n' >bytes
    railgauge place matrix.json --traffic bytes --nodes "$me" --write rankfile=ranks --write order=order
    grep -qx "rank 1=$me slot=1" ranks
    # shellcheck disable=SC2016 # the ranks expand it
    timeout 300 mpirun -n 2 --rankfile ranks --mca btl vader,self \
        sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname) $(taskset -pc $$ | sed "s/.*: //")' | sort >landed
    cat landed
    [ "$(cut -d' ' -f1,2 landed)" = "$(printf '0 %s\n1 %s' "$me" "$me")" ]
    [ "$(cut -d' ' -f3 landed | sort -u | wc -l)" -eq 2 ] # two cores
}

@test "Open MPI 4 binds each rank of a rankfile to the core of the node that it names" {
    [ "$(nproc)" -ge 2 ] || skip "one core"
    mpirun --version | grep -q 'Open MPI) 4\.' || skip "the option is that of Open MPI 4"
    nodes_make .
    nodes_placed
    timeout 300 mpirun -n 6 --rankfile rankfile --mca plm_rsh_agent "$PWD/ssh" ./say >landed
    cat landed
    nodes_cores
}

@test "a hostfile deals ranks over nodes in the order that was found" {
    nodes_make .
    nodes_placed
    timeout 300 mpirun -n 6 --hostfile hostfile --map-by slot --bind-to none --mca plm_rsh_agent "$PWD/ssh" ./say >landed
    cat landed
    diff wanted <(sort -n landed | cut -d' ' -f1,2)
}
