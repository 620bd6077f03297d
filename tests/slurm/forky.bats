#!/usr/bin/env bats
# bats file_tags=nightly
# forky.bats - Slurm 26.05 (Debian testing): topology.yaml, several topologies at once.

load slurm

setup_file() { slurm_enter forky; }
teardown_file() { slurm_leave; }

setup() {
    need_slurm
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() { [ -n "${SLURM_WHY-}" ] || slurm_down; }

# racks NODES...: topology.json of racks with so many of node01, node02 ...
racks() {
    local first=1 r=0 n
    for n in "$@"; do
        r=$((r + 1))
        printf 'BlockName=rack%d Nodes=node[%02d-%02d]\n' $r $first $((first + n - 1))
        first=$((first + n))
    done >declared.conf
    railgauge discover -q --slurm declared.conf --gpus-per-host 4 -o topology.json
}

# pods RACKS: so many racks hang below each spine.
pods() {
    local r
    sed 's/BlockName/SwitchName/' declared.conf >pods.conf
    for ((r = 1; r <= $(wc -l <declared.conf); r += $1)); do
        echo "SwitchName=su$r Switches=$(seq -f rack%g -s, "$r" $((r + $1 - 1)))"
    done >>pods.conf
    railgauge discover -q topology.json --slurm pods.conf -o topology.json
}

exported() {
    railgauge export -f slurm-yaml "$@" topology.json -o "$R/etc/slurm/topology.yaml"
}

@test "26.05: exported topology.yaml starts the controller" {
    slurm_conf 8 "PartitionName=probe Nodes=ALL Topology=probe"
    racks 4 4
    exported
    slurm_takes
    racks 4 3 # short blocks are taken
    exported --release 25.05
    grep -q 'block_sizes: \[4\]' "$R/etc/slurm/topology.yaml"
    slurm_takes
    racks 1 1 1 2 2 1 # three racks below each spine: empty blocks keep four aligned
    pods 3
    exported
    cat "$R/etc/slurm/topology.yaml"
    grep -q 'railgauge-empty1' "$R/etc/slurm/topology.yaml"
    slurm_takes
    # topology.conf is read still.
    slurm_conf 8 TopologyPlugin=topology/block
    railgauge export -f slurm-block topology.json -o "$R/etc/slurm/topology.conf"
    slurm_takes
    slurm_conf 8 TopologyPlugin=topology/tree
    railgauge export -f slurm-tree topology.json -o "$R/etc/slurm/topology.conf"
    slurm_takes
}

@test "26.05: a forbidden ratio is refused by the controller and by us" {
    slurm_conf 8
    racks 4 4
    exported
    sed -i 's/block_sizes: .*/block_sizes: [4, 12]/' "$R/etc/slurm/topology.yaml"
    cp "$R/etc/slurm/topology.yaml" bad.yaml
    slurm_refuses
    [[ $words == *"Invalid BlockSizes value in topology blocks"* ]]
    run railgauge discover --slurm bad.yaml
    [ "$status" -eq 65 ]
    [[ $output == *"bad.yaml:"*": block size 12 is not 4 times a power of two"* ]]
    sed -i 's/block_sizes: .*/block_sizes: [4]/; s/rack2/rack1/' "$R/etc/slurm/topology.yaml"
    cp "$R/etc/slurm/topology.yaml" bad.yaml
    slurm_refuses
    [[ $words == *"Block (rack1) has already been defined"* ]]
    run railgauge discover --slurm bad.yaml
    [[ $output == *'block "rack1" is there twice'* ]]
}

@test "26.05: segments land in blocks, pairs can be measured in the flat topology, splits are found" {
    need_railgauge
    slurm_conf 8 "PartitionName=probe Nodes=ALL Topology=probe"
    racks 4 4
    exported
    slurm_up 8
    slurm scontrol show topology blocks >shown
    cat shown
    railgauge discover -q --slurm shown -o shown.json
    [ "$(jq -c '[.claims.rows[][3:5]]' shown.json)" = "$(jq -c '[.claims.rows[][3:5]]' topology.json)" ]

    slurm srun -N8 --segment=4 sh -c 'echo "$SLURM_NODEID $SLURMD_NODENAME"' | sort -n | sed 's/^[0-9]* //' >hosts
    cat hosts
    [ "$(wc -l <hosts)" -eq 8 ]
    railgauge check-placement --hosts hosts --topology topology.json --segment 4
    slurm srun -N8 --segment=4 railgauge check-placement --segment 4

    run slurm srun -p probe -w node01,node05 -N2 railgauge check-placement --segment 2
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"SLURM_TOPOLOGY_ADDR: node01 in rack1, node05 in rack2"* ]]
}

@test "26.05: slurm-hostfile is refused with blocks, as we say, and works without; the sbatch line works" {
    slurm_conf 8 "PartitionName=probe Nodes=ALL Topology=probe"
    racks 4 4
    exported
    slurm_up 8
    seats node07,node02 0-3 3-0 1-2 2-1
    grep -q '^# .* -m arbitrary, without -N; not with topology/block of 26.05; ' "$R/tmp/hosts"
    run slurm env SLURM_HOSTFILE=/tmp/hosts srun -n 4 -m arbitrary true
    echo "$output"
    [ "$status" -ne 0 ]
    [[ $output == *"Requested operation not supported"* ]]
    grep -q 'topology block does not support arbitrary tasks distribution' "$R/var/log/slurm/slurmctld.log"
    landed env SLURM_HOSTFILE=/tmp/hosts srun -p probe -n 4 -m arbitrary | tee out
    diff wanted out
    seats 'node[02-03,06-07]' 0-1 2-3 4-5 6-7
    grep -q -- '--segment=2 --nodelist=node\[02-03,06-07\]$' job
    batch | tee out
    diff wanted out
}
