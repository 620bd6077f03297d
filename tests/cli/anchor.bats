#!/usr/bin/env bats
# anchor.bats - railgauge predict --anchor: met by its own job, carried to others, refused elsewhere.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    job=(--fabric hgx-h100 --model llama3.1-8b --strategy zero1)
    railgauge predict "${job[@]}" --layout tp=2,dp=4 --batch 64 --measured 7.5s --release "mine 1" \
        --save-anchor a.json --json >own.json
}

step() { railgauge predict --json "$@" | jq .step_s; }
near() { awk -v a="$1" -v b="$2" 'BEGIN {d = a / b - 1; exit !(d < 1e-6 && d > -1e-6)}'; }

@test "a job is predicted at what it was measured" {
    near "$(jq .step_s own.json)" 7.5
    jq -e '.anchored' own.json
    near "$(step "${job[@]}" --layout tp=2,dp=4 --batch 64 --anchor a.json)" 7.5
    jq -e '.seconds == 7.5 and .release == "mine 1" and .job.layout == "dp_shard=4,tp=2" and .job.strategy == "zero1"' a.json
}

@test "another scale moves with it, and the answer says by how much" {
    with=$(step "${job[@]}" --layout tp=2,dp=32 --batch 512 --anchor a.json)
    without=$(step "${job[@]}" --layout tp=2,dp=32 --batch 512)
    own=$(step "${job[@]}" --layout tp=2,dp=4 --batch 64)
    awk -v w="$with" -v o="$without" -v m="$own" 'BEGIN {exit !((w > o) == (7.5 > m) && w != o)}'
    run railgauge predict "${job[@]}" --layout tp=2,dp=32 --batch 512 --anchor a.json
    [[ $output == *"note: anchored: "* ]]
    [[ $output == *"note: anchor a.json: 7.50 s measured, "*" predicted without it; without it this step is "* ]]
    [[ $output != *"interval is wider"* ]]
}

@test "an anchor narrows the interval, one of another recipe less" {
    width() { railgauge predict "$@" --json | jq '(.hi_s - .lo_s) / .step_s'; }
    alone=$(width "${job[@]}" --layout tp=2,dp=8)
    same=$(width "${job[@]}" --layout tp=2,dp=8 --anchor a.json)
    other=$(width "${job[@]}" --layout tp=2,dp=8 --dtype fp8 --anchor a.json)
    awk -v a="$alone" -v s="$same" -v o="$other" 'BEGIN {exit !(s < a && s < o)}'
    run railgauge predict "${job[@]}" --layout tp=2,dp=8 --dtype fp8 --anchor a.json --release "mine 2"
    [[ $output == *"the anchor is of another recipe (dtype bf16, release mine 1): the interval is wider"* ]]
}

@test "a row of a table is an anchor too" {
    printf 'id\tmodel\thardware\tgpus\tseq_len\tglobal_batch\ttp\tzero_stage/fsdp\tvalue\tsource\n' >t.tsv
    printf 'x1\tllama3.1-8b\tH100\t8\t8192\t64\t2\tZeRO-1\t7.5\tours\n' >>t.tsv
    near "$(step "${job[@]}" --layout tp=2,dp=32 --batch 512 --anchor t.tsv:x1)" \
        "$(step "${job[@]}" --layout tp=2,dp=32 --batch 512 --anchor a.json)"
    run railgauge predict "${job[@]}" --layout tp=2,dp=4 --batch 64 --anchor t.tsv:x1
    [[ $output == *"note: anchor row x1 of t.tsv: 7.50 s measured"* ]]
}

@test "what no software explains is said" {
    jq '.seconds = 60' a.json >slow.json
    run railgauge predict "${job[@]}" --layout tp=2,dp=8 --anchor slow.json
    [ "$status" -eq 0 ]
    [[ $output == *"no software explains that"*"the interval is wider"* ]]
}

@test "an anchor file keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    python3 - "$top/src/schema/anchor.schema.json" a.json <<'PY'
import json, sys, jsonschema
schema, anchor = (json.load(open(f)) for f in sys.argv[1:])
jsonschema.validate(anchor, schema)
PY
}
