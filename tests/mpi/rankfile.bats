#!/usr/bin/env bats
# rankfile.bats - real mpirun reads what railgauge place writes, and ranks land where it says.

bats_require_minimum_version 1.5.0
load helper

setup() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    cd "$BATS_TEST_TMPDIR" || return 1
    golden=$BATS_TEST_DIRNAME/../golden/matrix.json
    me=$(hostname)
}

# map FILE - "rank node" lines of what mpirun printed with --display-map
map() {
    awk '/Data for node:/ { node = $4 } /Process rank:/ { for (i = 1; i < NF; i++) if ($i == "rank:") print $(i + 1), node }' "$1" |
        sort -n
}

@test "a rankfile binds each rank to the core that it names, on this node" {
    [ "$(nproc)" -ge 2 ] || skip "one core"
    mpirun --version | grep -q 'Open MPI) 4\.' || skip "the option is that of Open MPI 4"
    sed "s/n\[00-07\]/$me,x[1-7]/" "$golden" >matrix.json
    printf 'src\tdst\tbytes\n0\t1\t1e9\n' >bytes
    railgauge place matrix.json --traffic bytes --nodes "$me" --write rankfile=ranks --write order=order
    grep -qx "rank 1=$me slot=1" ranks
    # shellcheck disable=SC2016 # the ranks expand it
    timeout 120 mpirun -n 2 --rankfile ranks --mca btl vader,self \
        sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname) $(taskset -pc $$ | sed "s/.*: //")' | sort >landed
    cat landed
    [ "$(cut -d' ' -f1,2 landed)" = "$(printf '0 %s\n1 %s' "$me" "$me")" ]
    [ "$(cut -d' ' -f3 landed | sort -u | wc -l)" -eq 2 ] # two cores
}

@test "a hostfile deals ranks over nodes in the order that was found" {
    printf 'src\tdst\tbytes\n' >bytes # three nodes of two ranks, listed the wrong way round
    printf '%s\n' "0	1	1e9" "2	3	1e9" "4	5	1e9" >>bytes
    railgauge place "$golden" --traffic bytes --nodes "n[06,02,04]" --write hostfile=hosts --write order=order
    # Nobody is started: the far nodes do not exist, and the map is what is asked for.
    timeout 120 mpirun -n 6 --hostfile hosts --map-by slot --bind-to none --do-not-launch --display-map --mca plm_rsh_agent false true \
        >said 2>&1 || true
    map said >landed
    awk '!/^#/ { print n++, $1 }' order >wanted
    cat said
    diff wanted landed
    [ "$(head -1 wanted)" = "0 n06" ]
}
