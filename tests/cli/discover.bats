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
    [ "${#lines[@]}" -eq "$(find "$top/topo/fabrics" -name '*.json' | wc -l)" ]
    [[ ${lines[0]} == "gb200-nvl72 "*"GB200 NVL72 racks, InfiniBand NDR"* ]]
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
    python3 validate.py "$top/topo/schema/topology.schema.json" t.json "$top/tests/golden/topology.json"
    python3 validate.py "$top/topo/schema/fabric.schema.json" "$top"/topo/fabrics/*.json
    run ! python3 validate.py "$top/topo/schema/topology.schema.json" bad.json
    [[ $output == *"'tpu' is not one of ['cpu', 'gpu']"* ]]
}

@test "an unknown fabric is answered with the known ones" {
    run --separate-stderr railgauge discover --fabric gb200
    [ "$status" -eq 64 ]
    [ -z "$output" ]
    [[ $stderr == 'railgauge discover: no fabric "gb200"; known: gb200-nvl72, gb300-nvl72, '* ]]
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
    [[ $output == *"--racks and --blind need --fabric"* ]]
    run railgauge discover --fabric gb200-nvl72 t.json
    [ "$status" -eq 64 ]
    [[ $output == *"choose one of FILE, --fabric, --root and --list-fabrics"* ]]
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
