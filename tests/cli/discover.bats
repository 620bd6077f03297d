#!/usr/bin/env bats
# discover.bats - presets and files as pictures and topology.json; words that are refused.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "every shipped fabric is listed with a title" {
    run railgauge discover --list-fabrics
    [ "$status" -eq 0 ]
    [ "$(grep -c '^[a-z]' <<<"$output")" -eq "$(find "$top/topo/fabrics" -name '*.json' | wc -l)" ]
    # Each number says how it is known and by which of the sources below.
    [ "$(grep -c '^  [^( ]' <<<"$output")" -gt 60 ]
    ! grep '^  [^( ]' <<<"$output" | grep -vE ' (measured|stated|spec|inferred) \([0-9]+\)$'
    [ "$(grep -cE '^  \(1\) [A-Za-z]' <<<"$output")" -eq "$(grep -c '^[a-z]' <<<"$output")" ]
    [[ ${lines[0]} == "gb200-nvl72 "*"GB200 NVL72 racks, InfiniBand NDR"* ]]
}

@test "every shipped world is listed with its kinds and their sources" {
    run railgauge discover --list-worlds
    [ "$status" -eq 0 ]
    [ "$(grep -c '^[a-z]' <<<"$output")" -eq "$(find "$top/topo/worlds" -name '*.json' | wc -l)" ]
    ! grep '^  ' <<<"$output" | grep -vE '^  [a-z-]+ +[a-z_]+ [^:]+: .'
    [[ $output == *"stray5 "*"  stray             share 0.05, alone 0.05, factor 0.8: "* ]]
}

@test "eight racks of a preset as a picture" {
    run railgauge discover --fabric gb200-nvl72 --racks 8
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "topology   144 hosts, 576 endpoints (preset gb200-nvl72)" ]
    [[ $output == *"144 hosts (preset), 8 domains (preset), 8 leaves (preset), 8 racks (preset), 4 rails"* ]]
    [[ $output == *"tiers      mnnvl    same domain, 20448 pairs"* ]]
    [[ $output == *"NICs       mlx5_[0-3]: InfiniBand, 50.0 GB/s, up; 576 in all (preset)"* ]]
    [ "${#lines[@]}" -le 25 ]
}

@test "what is written is what is read: picture of the preset and of its file are equal" {
    railgauge discover --fabric hgx-h200 --racks 2 -o t.json >preset.txt
    railgauge discover t.json >file.txt
    diff preset.txt file.txt
    [ "$(jq -r .format t.json)" = railgauge-topology ]
    [ "$(jq '.endpoints.rows | length' t.json)" = 64 ]
    [ "$(jq -c .provenance.command t.json)" = '["railgauge","discover","--fabric","hgx-h200","--racks","2","-o","t.json"]' ]
}

@test "blind tells hosts only and says what it hides" {
    run railgauge discover --fabric gb200-nvl72 --racks 2 --blind
    [ "$status" -eq 0 ]
    [[ $output == *"levels     36 hosts (preset)"* ]]
    [[ $output == *"  rack                 hidden by --blind"* ]]
    [[ $output != *mnnvl* ]]
}

@test "schemas accept what we write and the presets, and refuse a changed word" {
    python3 -c 'import jsonschema' 2>/dev/null || skip "no python3-jsonschema here"
    railgauge discover --fabric gb300-nvl72-spectrumx --racks 2 -q -o t.json
    jq '.endpoints.rows[0][6] = "tpu"' t.json >bad.json
    cat >validate.py <<'PY'
import json, sys
import jsonschema

schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
for path in sys.argv[2:]:
    jsonschema.Draft202012Validator(schema).validate(json.load(open(path)))
PY
    python3 validate.py "$top/topo/schema/topology.schema.json" t.json "$top"/tests/golden/topology*.json
    python3 validate.py "$top/topo/schema/fabric.schema.json" "$top"/topo/fabrics/*.json
    python3 validate.py "$top/topo/schema/gpu.schema.json" "$top"/topo/gpus/*.json
    python3 validate.py "$top/topo/schema/world.schema.json" "$top"/topo/worlds/*.json
    run ! python3 validate.py "$top/topo/schema/topology.schema.json" bad.json
    [[ $output == *"'tpu' is not one of ['cpu', 'gpu']"* ]]
}

@test "the verdict on NVLink from a file, for people, programs and exit codes" {
    run railgauge discover "$top/tests/golden/topology-gb300.json"
    [ "$status" -eq 0 ]
    [[ $output == *"GPUs       4 x NVIDIA GB300, 18 of 18 NVLinks at 53.1 GB/s to switches, PCIe 6 x16, driver 580.173.02 (nvml)"* ]]
    [[ $output == *"tray15: bad: no IMEX channel"*"; memory with a FABRIC handle is not imported: CUDA_ERROR_NOT_PERMITTED"* ]]
    railgauge discover "$top/tests/golden/topology-gb300.json" --json >v.json
    [ "$(jq -r '.format + " " + (.nvlink.hosts[0] | .host + " " + .verdict)' v.json)" = "railgauge-discover tray15 bad" ]
    run --separate-stderr railgauge discover "$top/tests/golden/topology-gb300.json" --check -q
    [ "$status" -eq 1 ]
    [ "$stderr" = "railgauge discover: NVLink is bad on 1 of 1 host: tray15" ]
    run --separate-stderr railgauge discover "$top/tests/golden/topology.json" --check -q
    [ "$status" -eq 2 ]
    [ "$stderr" = "railgauge discover: no verdict on NVLink: NVML told of no GPU" ]
}

@test "an unknown fabric is answered with the known ones" {
    run --separate-stderr railgauge discover --fabric gb200
    [ "$status" -eq 64 ]
    [ -z "$output" ]
    [[ $stderr == 'railgauge discover: no fabric "gb200" (did you mean "gb200-nvl72"?); known: gb200-nvl72, gb300-nvl72, '* ]]
}

@test "files that are none of ours are refused by name and line" {
    echo '{"format": "railgauge-matrix", "version": 1}' >m.json
    run railgauge discover m.json
    [ "$status" -eq 65 ]
    [ "$output" = 'railgauge discover: m.json: format is "railgauge-matrix" where "railgauge-topology" is needed' ]
    printf '{\n "format": oops' >x.json
    run railgauge discover x.json
    [ "$status" -eq 65 ]
    [[ $output == "railgauge discover: x.json:2: "* ]]
    run railgauge discover none.json
    [ "$status" -eq 66 ]
    [[ $output == *"none.json: No such file or directory"* ]]
}

@test "options that do not go together are usage" {
    run railgauge discover --racks 3
    [ "$status" -eq 64 ]
    [[ $output == *"--racks needs --fabric"* ]]
    run railgauge discover --fabric gb200-nvl72 t.json
    [ "$status" -eq 64 ]
    [[ $output == *'choose one of "t.json" and --fabric'* ]]
    run railgauge discover --fabric gb200-nvl72 --list-paths
    [ "$status" -eq 64 ]
    [[ $output == *"choose one of FILE, --fabric, --root, --list-fabrics, --list-worlds and --list-paths"* ]]
    run railgauge discover --fabric gb200-nvl72 --racks 0
    [ "$status" -eq 64 ]
    [[ $output == *'--racks: '*'0'* ]]
    run railgauge discover --fabric gb200-nvl72 --racks 99999
    [ "$status" -eq 64 ]
    [[ $output == *"99999 racks of gb200-nvl72 are 7199928 endpoints, more than 1048576"* ]]
}

@test "help has examples" {
    run railgauge discover --help
    [ "$status" -eq 0 ]
    [[ $output == *"railgauge discover --fabric gb200-nvl72 --racks 8"* ]]
}

@test "what NCCL built is printed from the file, with what is odd in it" {
    run railgauge discover "$top/tests/golden/topology-nccl.json"
    [ "$status" -eq 0 ]
    [[ $output == *"NCCL       2.28.9+cuda13.0, 16 ranks reported"* ]]
    [[ $output == *"ring            2 x 20.0 GB/s, 10.0 GB/s to other hosts, NVL/PIX"* ]]
    [[ $output == *"used       P2P         within a host: 14 connections"* ]]
    [[ $output == *"NET/IB      between hosts: 2 connections, 2 with GPUDirect RDMA"* ]]
    [[ $output == *"chosen     all_reduce     1 KiB to 64 KiB: tree ll, 2 channels"* ]]
    grep -qE '^ +7 +NVL .* - +PXN .* PIX$' <<<"$output"
    [[ $output == *"GPU to NIC 8 PIX (48.0 GB/s) 56 PXN (48.0 GB/s) by NCCL's rules"* ]]
    [[ $output == *"  rank 5: 2 ring channels where the others have 16"* ]]
    [[ $output == *"  rank 7 sends through mlx5_4 (PXN), its nearest NIC is mlx5_7 (PIX)"* ]]
    railgauge discover "$top/tests/golden/topology-nccl.json" -q -o again.json
    cmp <(jq -S .nccl again.json) <(jq -S .nccl "$top/tests/golden/topology-nccl.json")
    jq 'del(.nccl.links, .checksum)' again.json >less.json
    run railgauge discover less.json
    [ "$status" -eq 65 ]
    [[ $output == *'less.json: nccl: key "links" is missing'* ]]
}

@test "the paths that can be asked of NCCL, and what they set" {
    run railgauge discover --list-paths
    [ "$status" -eq 0 ]
    [[ ${lines[3]} == *"\`mnnvl\`"*"NCCL_MNNVL_ENABLE=1"* ]]
    [ "${#lines[@]}" -eq 11 ]
    run railgauge discover --nccl --list-paths
    [ "$status" -eq 64 ]
}

@test "files of others alone: what each of them declares, in its order" {
    printf '%s\n' 'BlockName=b2 Nodes=n[3-4]' 'BlockName=b1 Nodes=n[1-2]' 'BlockSizes=2' >topology.conf
    run railgauge discover --slurm topology.conf
    [ "$status" -eq 0 ]
    [[ $output == *"topology   4 hosts, 0 endpoints"* ]]
    [[ $output == *"declared   2 domains by slurm topology.conf: b[2,1]"* ]]
    [[ $output != *"tiers"* && $output != *"()"* ]]
    run railgauge discover --slurm topology.conf --gpus-per-host 4
    [[ $output == *"levels     4 hosts (user), 2 domains (slurm)"* ]]
    [[ $output == *"mnnvl    same domain, 32 pairs"* ]]
}

@test "no line of the picture is wider than the terminal" {
    for columns in 60 80; do
        for file in "$top"/tests/golden/topology*.json; do
            COLUMNS=$columns railgauge discover "$file" >picture
            [ "$(wc -L <picture)" -le $columns ]
        done
    done
    [ "$(COLUMNS=80 railgauge models llama3.1-8b | wc -L)" -le 80 ]
}
