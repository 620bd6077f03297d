#!/usr/bin/env bats
# models.bats - railgauge models: the list, one model, JSON, and files that keep to their schema.

bats_require_minimum_version 1.5.0
load rejects
top=$BATS_TEST_DIRNAME/../..

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "the list has a row for every shipped file" {
    run railgauge models
    [ "$status" -eq 0 ]
    for f in "$top"/jobs/training/models/*.json; do
        grep -q "^$(basename "$f" .json) " <<<"$output" || { echo "$f is not in the list"; false; }
    done
    [[ $output == *"llama3.1-8b  "*"32   8.03 B   8.03 B        51.47  Llama 3.1 8B"* ]]
    [[ ${lines[-1]} == "sequences of 8192 tokens, causal mask;"* ]]
}

@test "the list as JSON says the same, for the sequence asked for" {
    railgauge models --json --seq 4096 >list.json
    [ "$(jq '.models | length' list.json)" -eq "$(find "$top/jobs/training/models" -name '*.json' | wc -l)" ]
    jq -e '.models[] | select(.name == "deepseek-v3") | .seq == 4096 and .layers == 61 and
        (.flops_per_token / 250.5e9 - 1 | fabs < 0.003) and
        (.mtp_flops_per_token > 9e9) and .params > .expert_params' list.json
    jq -e 'all(.models[]; .active_params <= .params and .source != "" and
        .flops_per_token_not_causal > .flops_per_token)' list.json
}

@test "one model: its parts add up to it" {
    for name in deepseek-v3 gpt-oss-20b nemotron_3_super grok1-314b gpt3-175b; do
        railgauge models $name --json >one.json
        jq -e '([.parts[].params] | add) / .params - 1 | fabs < 1e-7' one.json
        jq -e '([.parts[].active_params] | add) / .active_params - 1 | fabs < 1e-7' one.json
        jq -e '([.parts[].flops_per_token] | add) / .flops_per_token - 1 | fabs < 1e-7' one.json
        jq -e '([.parts[] | select(.part == "experts") | .params] | add) == .expert_params' one.json
    done
}

@test "one model as text: layers by kind, parts, both conventions, predicted tokens" {
    run railgauge models deepseek-v3 --seq 4096
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "DeepSeek-V3 (deepseek-v3): hidden 7168, vocabulary 129280" ]]
    [[ ${lines[1]} == "from "*"config.json" ]]
    [[ $output == *"58  mla 128 x (128+64, 128) by 1536, 512  swiglu 2048 x 8 of 256 experts, 4 of 8 groups + shared 2048"* ]]
    [[ $output == *"experts         653.9 B   20.4 B "* ]]
    [[ $output == *"without it 281.2 GFLOP/token"* ]]
    [[ $output == *"+1: trained beside to predict more tokens, 11.6 B parameters"* ]]
    run railgauge models gpt-oss-20b
    [[ $output == *"gqa 64/8 x 64, window 128"* ]]
    run railgauge models nemotron_3_nano
    [[ $output == *"23  mamba2 64 x 64, state 128  -"* ]]
    [[ $output != *"trained beside"* ]]
}

@test "a file of one's own is described like a shipped one" {
    jq '.name = "mine" | .layers[0].count = 16' "$top/jobs/training/models/llama3.1-8b.json" >mine.json
    run railgauge models mine.json
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "Llama 3.1 8B (mine):"* ]]
}

refused() { rejects models "$@"; }

@test "wrong words are refused" {
    refused 64 'no model "llama9"' llama9
    refused 64 'one model at a time: "b" after "a"' a b
    refused 64 '--seq: 0 is outside' --seq 0
    refused 64 '--seq: "long" is not a whole number' --seq long
    refused 66 'none.json: No such file or directory' ./none.json
}

@test "every shipped model keeps to the schema, and a wrong one does not" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    cat >validate.py <<'PY'
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
for path in sys.argv[2:]:
    jsonschema.validate(json.load(open(path)), schema)
PY
    schema=$top/src/schema/model.schema.json
    python3 validate.py "$schema" "$top"/jobs/training/models/*.json
    for edit in '.layers[0].attention.window = 0' 'del(.layers[0].mlp.ffn)' '.mtp_layers = 1' \
        '.layers[1].mlp |= del(.topk)' '.layers[1].mlp |= del(.nodes_max)' \
        '.layers[0].attention.state = 3' '.layers[0].mlp.topk = 2' '.layers = []'; do
        jq "$edit" "$top/jobs/training/models/deepseek-v3.json" >wrong.json
        run ! python3 validate.py "$schema" wrong.json
        run railgauge models ./wrong.json
        [ "$status" -eq 65 ] || { echo "$edit: $status $output"; false; }
    done
}
