#!/usr/bin/env bats
# check_placement.bats - nodes of a job and its segments, with launchers that are stand-ins; the real
# Slurm is in tests/slurm.

bats_require_minimum_version 1.5.0
load cpu

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    build=${RG_BUILD:-$top/build}
    cd "$BATS_TEST_TMPDIR" || return 1
    unset SLURM_JOB_ID SLURM_PROCID SLURM_STEP_ID
}

# An srun that starts its command once for each word of NODES, as task after task.
stand_in() {
    mkdir -p bin
    cat >bin/srun <<'SRUN'
#!/bin/bash
printf '%s\n' "$@" >words
while [[ $1 == --* ]]; do shift; done
i=0
for n in $NODES; do
    SLURMD_NODENAME=${n#*.} SLURM_NODEID=$i SLURM_TOPOLOGY_ADDR=$n SLURM_TOPOLOGY_ADDR_PATTERN=block.node "$@"
    i=$((i + 1))
done
exit ${SRUN_EXIT:-0}
SRUN
    chmod +x bin/srun
    export PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=4
}

@test "in a job srun asks the nodes, and all is well" {
    stand_in
    NODES="r1.n1 r1.n2 r2.n5 r2.n6" run railgauge check-placement --segment 2
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "placement  4 nodes, 2 segments of 2" ]
    [ "${lines[2]}" = "segments   2 of 2 together" ]
    grep -qx -- --ntasks-per-node=1 words
    grep -qx -- --nodes=4 words
}

@test "a node in another rack is named, exit 1" {
    stand_in
    NODES="r1.n1 r1.n2 r1.n3 r2.n5" run railgauge check-placement --segment 4
    [ "$status" -eq 1 ]
    [[ $output == *"segment 1 wants 4 nodes of one block, SLURM_TOPOLOGY_ADDR: n[1-3] in r1, n5 in r2"* ]]
}

@test "right nodes in a wrong order are told from wrong nodes" {
    stand_in
    NODES="r1.n1 r2.n5 r1.n2 r2.n6" run railgauge check-placement --segment 2
    [ "$status" -eq 1 ]
    [[ $output == *"in another order the same nodes make whole segments: n[1-2,5-6]"* ]]
}

@test "as a step of many tasks the first one speaks for all" {
    stand_in
    SLURM_STEP_ID=0 SLURM_PROCID=3 NODES=none run railgauge check-placement --segment 2
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ ! -e words ]
}

@test "an srun that fails, says nothing or is not there" {
    stand_in
    SRUN_EXIT=3 NODES=r1.n1 run railgauge check-placement --segment 2
    [ "$status" -eq 78 ]
    [[ $output == *"srun failed (exit 3)"* ]]
    printf '#!/bin/sh\nexec sleep 60\n' >bin/srun
    run railgauge check-placement --segment 2 --patience 200ms
    [ "$status" -eq 2 ]
    [[ $output == *"srun gave no answer within 0.2 s (--patience)"* ]]
    rm bin/srun
    PATH=$build:/nonexistent run railgauge check-placement --segment 2
    [ "$status" -eq 78 ]
    [[ $output == *"cannot start srun: No such file or directory"* ]]
}

@test "GPUs tell their NVLink domain, an environment variable a label" {
    [ -e "$build/fake/libnvidia-ml.so.1" ] || skip "the stand-in for libnvidia-ml is not built"
    RAILGAUGE_NVML=$build/fake/libnvidia-ml.so.1 FAKE_NVML=$top/tests/fake/nvml/gb300.txt \
        SLURMD_NODENAME=n1 SLURM_NODEID=4 BLOCK="su 1" run railgauge check-placement --tell --label BLOCK
    [ "$output" = "n1 rank=4 nvlink=00000001-0000-0000-0000-000000000001.32766 label=su?1" ]
    # A box without a domain across hosts tells none.
    RAILGAUGE_NVML=$build/fake/libnvidia-ml.so.1 FAKE_NVML=$top/tests/fake/nvml/rtxpro6000.txt \
        SLURMD_NODENAME=n1 run railgauge check-placement --tell
    [ "$output" = n1 ]
}

@test "without Slurm: lines of any launcher, a hostfile and a topology" {
    printf 'n2 rank=1 nvlink=A.1\nn1 rank=0 nvlink=A.1\n' | railgauge check-placement --hosts - --segment 2 -q >out
    [ ! -s out ]
    printf 'r00n00 slots=4\nr00n01 slots=4\nr01n00\nr01n17\n' >hostfile
    railgauge discover -q --fabric gb200-nvl72 --racks 2 -o topology.json
    railgauge check-placement --hosts hostfile --topology topology.json --segment 2
    run --separate-stderr railgauge check-placement --hosts hostfile --topology topology.json --segment 4 --json
    [ "$status" -eq 1 ]
    [ "$(jq -r .verdict <<<"$output")" = split ]
    [[ $(jq -r '.findings[0]' <<<"$output") == *"topology.json (domain): r00n[00-01] in domain-00, r01n[00,17] in domain-01" ]]
}

@test "sources that disagree are named" {
    printf 'n%d nvlink=%s.1\n' 1 A 2 A 3 B 4 B >told
    printf 'BlockName=r1 Nodes=n[1-3]\nBlockName=r2 Nodes=n4\n' >topology.conf
    run railgauge check-placement --hosts told --slurm topology.conf --segment 2
    [ "$status" -eq 1 ]
    [[ $output == *"NVML and topology.conf (domain) disagree: n3 and n4 are in r1 and in r2"* ]]
}

@test "nobody knows: exit 2; words that make no sense: 64" {
    echo 'n[1-4]' >hosts
    run railgauge check-placement --hosts hosts --segment 2
    [ "$status" -eq 2 ]
    [[ $output == *"nobody tells where the nodes of 2 of 2 segments are"* ]]
    run railgauge check-placement --hosts hosts
    [ "$status" -eq 64 ]
    [[ $output == *"--segment N is needed"* ]]
    run railgauge check-placement --segment 2
    [ "$status" -eq 64 ]
    [[ $output == *"this is no job of Slurm"* ]]
    run railgauge check-placement --tell --segment 2
    [ "$status" -eq 64 ]
}

@test "a check of 4,096 nodes takes less than a second" {
    for ((i = 0; i < 4096; i++)); do
        echo "n$i rank=$i addr=r$((i / 16)).n$i pattern=block.node nvlink=X.$((i / 16))"
    done >told
    cpu_seconds railgauge check-placement --hosts told --segment 16
    awk -v t="$cpu" 'BEGIN { exit !(t < 1) }'
}

@test "JSON keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    printf 'n%d rank=%d nvlink=%s.1\n' 1 0 A 2 1 B 3 2 A 4 3 B >split
    printf 'n%d nvlink=A.1\n' 1 2 >good
    printf 'n1\nn2\n' >unknown
    for f in split good unknown; do
        railgauge check-placement --hosts $f --segment 2 --json >$f.json || true
        [ "$(jq -r .verdict $f.json)" = $f ]
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
            "$top/src/schema/placement.schema.json" $f.json
    done
}
