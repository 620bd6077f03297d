#!/usr/bin/env bats
# trixie.bats - Slurm 24.11 (Debian 13): topology.conf, segments, checks inside of jobs.

load slurm

setup_file() { slurm_enter trixie; }
teardown_file() { slurm_leave; }

setup() {
    need_slurm
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() { [ -n "${SLURM_WHY-}" ] || slurm_down; }

# two_racks [LAST]: topology.json of node[01-08] in racks of four, in the words of Slurm 26.05.
two_racks() {
    printf 'BlockName=rack1 Nodes=node[01-04]\nBlockName=rack2 Nodes=node[05-0%d]\n' "${1-8}" >declared.conf
    railgauge discover -q --slurm declared.conf --gpus-per-host 4 -o topology.json
}

# four_racks: pairs of nodes; racks 1 and 3 are near each other, as 2 and 4 are: measured, not told.
four_racks() {
    for i in 1 2 3 4; do printf 'BlockName=rack%d Nodes=node0[%d-%d]\n' $i $((2 * i - 1)) $((2 * i)); done >declared.conf
    railgauge discover -q --slurm declared.conf --gpus-per-host 2 -o topology.json
    railgauge export -f slurm-tree topology.json >tree.conf
    {
        grep -v root tree.conf
        echo "SwitchName=su1 Switches=rack1,rack3"
        echo "SwitchName=su2 Switches=rack2,rack4"
        echo "SwitchName=top Switches=su[1-2]"
    } >pods.conf
    railgauge discover -q topology.json --slurm pods.conf -o topology.json
}

@test "24.11: exported blocks start the controller" {
    slurm_conf 8 TopologyPlugin=topology/block
    two_racks
    railgauge export -f slurm-block --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_takes
    [[ $words != *"lack access"* ]]
    two_racks 7 # one node fewer in rack 2: the base size is the smaller one
    railgauge export -f slurm-block --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    grep -qx BlockSizes=3 "$R/etc/slurm/topology.conf"
    slurm_takes
}

@test "24.11: an exported tree starts the controller, near blocks are joined" {
    four_racks
    slurm_conf 8 TopologyPlugin=topology/tree
    railgauge export -f slurm-tree --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_takes
    [[ $words != *"lack access"* && $words != *"no switch can reach all"* ]]
    slurm_conf 8 TopologyPlugin=topology/block
    railgauge export -f slurm-block --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_up 8
    slurm scontrol show topology >shown
    cat shown
    grep -q 'AggregatedBlock=rack\[1,3\] .*Nodes=node\[01-02,05-06\] BlockSize=4' shown
    # What scontrol prints says the same as the file.
    railgauge discover -q --slurm shown -o shown.json
    railgauge discover -q --slurm "$R/etc/slurm/topology.conf" -o file.json
    [ "$(jq -c '[.claims.rows[][3:5]]' shown.json)" = "$(jq -c '[.claims.rows[][3:5]]' file.json)" ]
}

# refused_by_both WORDS_OF_SLURM WORDS_OF_OURS: the lines of topology.conf on standard input.
refused_by_both() {
    cat >bad.conf
    cp bad.conf "$R/etc/slurm/topology.conf"
    slurm_refuses
    [[ $words == *"$1"* ]]
    run railgauge discover --slurm bad.conf
    echo "$output"
    [ "$status" -eq 65 ]
    [[ $output == *"bad.conf:"*"$2"* ]]
}

@test "24.11: what the controller refuses, we refuse for the same reason" {
    slurm_conf 8 TopologyPlugin=topology/block
    local racks=$'BlockName=rack1 Nodes=node[01-04]\nBlockName=rack2 Nodes=node[05-08]\n'
    refused_by_both "Invalid BlockSizes value: 12" "block size 12 is not 4 times a power of two" <<<"${racks}BlockSizes=4,12"
    refused_by_both "Invalid BlockSizes value: 6" "block size 6 is not 4 times a power of two" <<<"${racks}BlockSizes=4,6"
    refused_by_both "Block (rack1) has already been defined" 'block "rack1" is there twice' <<<"${racks}BlockName=rack1 Nodes=node01"
    slurm_conf 8 TopologyPlugin=topology/tree
    refused_by_both "Switch (a) has already been defined" 'switch "a" is there twice' <<<$'SwitchName=a Nodes=node[01-04]\nSwitchName=a Nodes=node[05-08]'
    refused_by_both "has both child switches and nodes" 'switch "a" has both nodes and switches' <<<$'SwitchName=a Nodes=node[01-08] Switches=b\nSwitchName=b Nodes=node01'
    refused_by_both "is not a tree" 'is above itself: not a tree' <<<$'SwitchName=a Switches=b\nSwitchName=b Switches=a'
    refused_by_both "has invalid child (c)" 'is above "c", which is no switch' <<<$'SwitchName=a Nodes=node[01-08]\nSwitchName=b Switches=a,c'
    # A short block: this release refuses it, so the exporter for it does.
    slurm_conf 8 TopologyPlugin=topology/block
    two_racks 6
    run railgauge export -f slurm-block --release 24.11 topology.json
    [ "$status" -eq 64 ]
    [[ $output == *"children count lower than bblock_node_cnt"*"rack2 has 2, the base size is 4"* ]]
    railgauge export -f slurm-block --release 25.05 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_refuses
    [[ $words == *"Block configuration (rack2) children count lower than bblock_node_cnt"* ]]
}

# job SEGMENT LIST CHECK: a batch job on these nodes (- any) that checks itself; its output and code.
job() {
    local where=()
    [ "$2" = - ] || where=(-w "$2")
    cat >"$R/tmp/job.sh" <<END
#!/bin/sh
/usr/local/bin/railgauge check-placement --segment $3
echo "exit \$?"
srun --ntasks-per-node=1 sh -c 'echo "at \$SLURM_NODEID \$SLURMD_NODENAME"' | sort -k 2n
END
    rm -f "$R/tmp/job.out"
    slurm sbatch --wait -Q -N4 --segment="$1" "${where[@]}" -o /tmp/job.out /tmp/job.sh || true
    cat "$R/tmp/job.out"
}

# busy NODES: do jobs have so many?
busy() { [ "$(slurm sinfo -h -t alloc -o %D -p all)" = "$1" ]; }

@test "24.11: --segment=4 lands as predicted; a split segment is found inside the job" {
    need_railgauge
    slurm_conf 8 TopologyPlugin=topology/block
    two_racks
    railgauge export -f slurm-block --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_up 8

    job 4 - 4 >out
    cat out
    grep -qx 'exit 0' out
    grep -qx 'segments   1 of 1 together' out
    # The same by the topology that the file was made from.
    sed -n 's/^at [0-9]* //p' out | railgauge check-placement --hosts - --topology topology.json --segment 4

    # One rack has two nodes that are busy: four nodes in segments of two come from both.
    slurm sbatch -Q -N2 --exclusive -w 'node[01-02]' --wrap 'sleep 600' -o /dev/null
    slurm sbatch -Q -N2 --exclusive -w 'node[05-06]' --wrap 'sleep 600' -o /dev/null
    await 120 busy 4
    job 2 - 4 >out
    cat out
    grep -qx 'exit 1' out
    grep -q 'segment 1 wants 4 nodes of one block, SLURM_TOPOLOGY_ADDR: node\[03-04\] in rack1, node\[07-08\] in rack2' out
    sed -n 's/^at [0-9]* //p' out >hosts
    run railgauge check-placement --hosts hosts --topology topology.json --segment 4
    [ "$status" -eq 1 ]
    railgauge check-placement --hosts hosts --topology topology.json --segment 2
}

@test "24.11: as a step of the job, and in a tree" {
    need_railgauge
    slurm_conf 8 TopologyPlugin=topology/tree
    two_racks
    railgauge export -f slurm-tree --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_up 8
    run slurm srun -N4 -w 'node[01-04]' railgauge check-placement --segment 4
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"SLURM_TOPOLOGY_ADDR, 4 nodes"* ]]
    run slurm srun -N4 -w 'node[03-06]' railgauge check-placement --segment 4
    [ "$status" -eq 1 ]
    [[ $output == *"node[03-04] in rack1, node[05-06] in rack2"* ]]
}

# median COMMAND...: milliseconds of the third of five.
median() {
    local from
    for _ in 1 2 3 4 5; do
        from=$(date +%s%N)
        "$@" >said 2>&1 || cat said >&2
        echo $((($(date +%s%N) - from) / 1000000))
    done | sort -n | sed -n 3p
}

@test "24.11: ranks land where slurm-hostfile and the sbatch line say; the check is quick" {
    slurm_conf 8 TopologyPlugin=topology/tree
    two_racks
    railgauge export -f slurm-tree --release 24.11 topology.json -o "$R/etc/slurm/topology.conf"
    slurm_up 8
    # Partners come together, so ranks come back to a node; nodes are not in Slurm's order.
    seats node07,node02 0-3 3-0 1-2 2-1
    batch -n 4 -m arbitrary | tee out
    diff wanted out
    [ "$(awk '{ print $2 }' out | uniq | wc -l)" -eq 3 ]
    seats 'node08,node[03-05]' 0-1 2-3 4-5 6-7
    batch -n 8 -m arbitrary | tee out
    diff wanted out
    [ "$(head -n 1 out)" = "0 node08" ]
    # The sbatch line gives those nodes, which Slurm sorts: ascending ones keep their order.
    batch | tee out
    [ "$(awk '{ print $2 }' out | sort -u)" = "$(awk '{ print $2 }' wanted | sort -u)" ]
    [ "$(head -n 1 out)" = "0 node03" ]
    seats 'node[02-03,06-07]' 0-1 2-3 4-5 6-7
    grep -q -- '--segment=2 --nodelist=node\[02-03,06-07\]$' job
    batch | tee out
    diff wanted out

    need_railgauge
    check=$(median slurm srun -N4 -w 'node[01-04]' railgauge check-placement --segment 4)
    empty=$(median slurm srun -N4 -w 'node[01-04]' true)
    echo "# check-placement in a job of 4 nodes: $check ms with srun; srun true: $empty ms" >&3
    [ $((check - empty)) -lt 3000 ]
}
