#!/usr/bin/env bats
# predict.bats - step times from presets: text, JSON, placement, and words that are refused.

bats_require_minimum_version 1.5.0
load rejects

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
}

# refuse CODE TEXT OPTION...: exit code and a line of stderr.
refuse() { rejects predict "$@"; }

step() { railgauge predict --json "$@" | jq .step_s; }

@test "a preset and a layout give a step with every term" {
    run railgauge predict --fabric gb200-nvl72 --racks 1 --model llama3.1-8b --layout dp_shard=72
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "step "*" (90 % interval: "*"), "*" tokens/s per GPU, MFU "*" of 2,500 TFLOP/s (causal)" ]]
    [ "${lines[1]}" = "llama3.1-8b, dp_shard=72, fsdp, bf16: 72 of 72 GPUs of gb200-nvl72" ]
    for term in "matrix products" "attention core" "weights all_gather forward" \
        "gradients reduce_scatter" optimizer fixed; do
        [[ $output == *$'\n'"  $term "* ]]
    done
    # each group is the sum of its terms, and both are the step
    awk '/^(compute, overheads|communication) / { sub(/.*overheads|communication/, ""); sum += $3 }
        /^  .* (fitted|measured|modelled|preset|extrapolated)$/ { for (i = 2; i <= NF; i++) if ($i == "%") terms += $(i - 1) }
        END { exit !(sum > 99.8 && sum < 100.2 && terms > 99 && terms < 100.6) }' <<<"$output"
    [[ $output == *"note: no anchor: "* ]]
}

@test "explain names source, group, shape and formula" {
    run railgauge predict --fabric hgx-h100 --layout tp=8,dp=auto --gpus 64 --explain
    [ "$status" -eq 0 ]
    [[ $output == *"H100"*" bf16 peak 989 TFLOP/s (data sheet) x efficiency.hopper.bf16"* ]]
    [[ $output == *"all_gather over tp, 8 ranks, 1 domain on 1 node with 8 NICs a domain; 8 groups, 1 unlike"* ]]
    [[ $output == *"bytes: s b h 2 / cp; a half of a layer: all_gather before, reduce_scatter after"* ]]
    [[ $output == *"slowest: group 1 of 8: ranks 0, 1 .. 7 on r00n00"* ]]
}

@test "JSON holds the terms, they add up, and -o writes the same" {
    railgauge predict --fabric hgx-h100 --model llama3.1-70b --layout tp=8,pp=4,dp=2 --strategy zero1 \
        --stages-per-rank 2 --batch 32 --json -o p.json >out.json
    jq -e '.format == "railgauge-prediction" and .microbatches == 16' out.json
    jq -e '([.terms[].s] | add) - .step_s | fabs < 1e-6' out.json
    jq -e '.bubble_share - 3 / 32 | fabs < 1e-9' out.json
    jq -e 'all(.terms[]; .source != "" and (.basis | IN("measured", "fitted", "preset", "modelled", "assumed")))' out.json
    jq -e '.lo_s < .step_s and .step_s < .hi_s and .anchored == false' out.json
    diff <(jq 'del(.provenance)' out.json) <(jq 'del(.provenance)' p.json)
}

@test "a GPU of which no step was fitted is told" {
    run railgauge predict --fabric rtxpro6000-100gbe --layout dp=16
    [[ $status -eq 0 ]]
    [[ $(echo $output) == *"no efficiency of bf16 products is known for NVIDIA RTX PRO 6000"*"efficiency.default is assumed"* ]]
    run railgauge predict --fabric hgx-h100 --layout tp=8,dp=2
    [[ $output != *"efficiency.default"* ]]
}

@test "JSON keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    railgauge predict --fabric hgx-h100 --layout tp=4,dp=8 -o p.json
    for pair in prediction:p.json "constants:$top/jobs/training/constants.json" \
        "publications:$top/jobs/training/publications.json"; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
            "$top/src/schema/${pair%%:*}.schema.json" "${pair#*:}"
    done
}

@test "ranks scattered over two racks are slower than ranks in rack order" {
    seq 0 143 >near
    for ((i = 0; i < 72; i++)); do printf '%d\n%d\n' "$i" $((i + 72)); done >far
    near=$(step --fabric gb200-nvl72 --racks 2 --layout tp=8,dp=18 --strategy zero1 --order near)
    far=$(step --fabric gb200-nvl72 --racks 2 --layout tp=8,dp=18 --strategy zero1 --order far)
    plain=$(step --fabric gb200-nvl72 --racks 2 --layout tp=8,dp=18 --strategy zero1)
    [ "$near" = "$plain" ]
    jq -en "$far > 1.02 * $near"
}

@test "a hostfile places ranks by host name" {
    printf 'r00n01 slots=8\nr00n00 slots=8\n' >hosts
    run railgauge predict --fabric hgx-h100 --layout tp=8,dp=2 --order hosts --explain
    [ "$status" -eq 0 ]
    [[ $output == *"slowest: group 1 of 2: ranks 0, 1 .. 7 on r00n01"* ]]
}

@test "schedule, precision, recompute and strategy change the answer the right way" {
    base=(--fabric hgx-h100 --model llama3.1-70b --layout "tp=4,pp=4,dp=4" --batch 64)
    jq -en "$(step "${base[@]}" --strategy zero1 --stages-per-rank 5) < $(step "${base[@]}" --strategy zero1)"
    jq -en "$(step "${base[@]}" --dtype fp8) < $(step "${base[@]}")"
    jq -en "$(step "${base[@]}" --recompute full) > $(step "${base[@]}" --recompute selective)"
    jq -en "$(step "${base[@]}" --recompute selective) > $(step "${base[@]}")"
    jq -en "$(step "${base[@]}" --strategy zero1) < $(step "${base[@]}" --strategy zero3)"
    jq -en "$(step "${base[@]}" --causal off) > $(step "${base[@]}")"
}

@test "facts of the software and the machine change the answer, and a stack is a set of them" {
    base=(--fabric hgx-h100 --model llama3.1-8b --layout dp_shard=8 --seq 8192)
    jq -en "$(step "${base[@]}" --flash 2) > $(step "${base[@]}" --flash new)"
    jq -en "$(step "${base[@]}" --flash new) == $(step "${base[@]}")"
    jq -en "$(step "${base[@]}" --pointwise separate) > $(step "${base[@]}" --pointwise compiled)"
    jq -en "$(step "${base[@]}" --pointwise library) == $(step "${base[@]}")"
    jq -en "$(step "${base[@]}" --memory-rate 2.41) > $(step "${base[@]}")"
    jq -en "$(step "${base[@]}" --memory-rate 3.35) == $(step "${base[@]}")"
    # 700 W is the data sheet's: a limit slows only below it.
    jq -en "$(step "${base[@]}" --power-limit 500) > $(step "${base[@]}" --power-limit 699)"
    jq -en "$(step "${base[@]}" --power-limit 699) > $(step "${base[@]}" --power-limit 700)"
    jq -en "$(step "${base[@]}" --power-limit 900) == $(step "${base[@]}")"
    # FlashAttention 2 is the fastest kernel of an A100.
    jq -en "$(step "${base[@]/hgx-h100/hgx-a100}" --flash 2) == $(step "${base[@]/hgx-h100/hgx-a100}")"
    railgauge predict "${base[@]}" --power-limit 500 --flash 2 --explain >"$BATS_TEST_TMPDIR/out"
    grep -q ' at 500 W' "$BATS_TEST_TMPDIR/out" && grep -q 'for FlashAttention 2' "$BATS_TEST_TMPDIR/out"
    refuse 2 "power-limit: the power of the data sheet of NVIDIA B300 SXM is not known" --fabric hgx-b300 --power-limit 500
    refuse 64 "power-limit" --fabric hgx-h100 --power-limit 49
}

@test "a given compute rate is used and its source said" {
    run railgauge predict --fabric rtxpro6000-100gbe --layout dp=16 --flops 200e12
    [ "$status" -eq 0 ]
    [[ $output == *"compute at FLOP/s as given with --flops"* ]]
}

@test "uneven stages run and are told" {
    run railgauge predict --fabric hgx-h100 --racks 1 --layout pp=5,dp=1 --strategy zero1
    [ "$status" -eq 0 ]
    [[ $output == *"layers do not divide evenly: stages of 7 (4 times) and 4 layers"* ]]
}

@test "a placement that is faster is said with its gain, and following it gives that step" {
    local job=(--fabric gb200-nvl72 --model deepseek-v3 --strategy zero1 --batch 4096 --gpus 512 --layout pp=4,ep=64,dp=auto)
    local whole=("${job[@]}" --segment 18)
    local spread=(--fabric gb200-nvl72 --gpus 144 --layout tp=4,dp=36 --spread cyclic)
    railgauge predict "${whole[@]}" --json >j.json || [ $? -eq 1 ]
    jq -e '.faster_placement | .groups == "ep groups of 64 straddle racks" and .option == "--segment 16"' j.json
    jq -e '.faster_placement.step_s < 0.8 * .step_s' j.json
    [ "$(step "${job[@]}" --segment 16)" = "$(jq .faster_placement.step_s j.json)" ]
    run railgauge predict "${job[@]}" # as jobs on NVL72 racks are
    [[ $output == *"16 of the 18 hosts of a rack are taken, as jobs on gb200-nvl72 do; --segment 18 takes all"* ]]
    [ "$(step "${job[@]}")" = "$(jq .faster_placement.step_s j.json)" ]
    run railgauge predict "${whole[@]}"
    [[ $output == *"placement: ep groups of 64 straddle racks: "*" s; --segment 16: "*" s"* ]]
    (railgauge predict "${job[@]}" --segment 16 --json || true) | jq -e '.faster_placement == null'
    railgauge predict "${spread[@]}" --json >p.json
    jq -e '.faster_placement.option == "--spread block"' p.json
    [ "$(step "${spread[@]}" --spread block)" = "$(jq .faster_placement.step_s p.json)" ]
    seq 15 -1 0 >order
    railgauge predict --fabric hgx-h100 --layout tp=8,dp=2 --strategy zero1 --accumulation 16 --order order --json | jq -e '.faster_placement == null'
    { seq 0 2 14; seq 1 2 15; } >order
    railgauge predict --fabric hgx-h100 --layout tp=8,dp=2 --strategy zero1 --accumulation 16 --order order --json |
        jq -e '.faster_placement | .option == "without --order" and .groups == "tp groups of 8 straddle hosts"'
}

@test "what does not divide is refused with axis and reason" {
    refuse 64 "tp=6 does not divide the 32 heads of llama3.1-8b" --fabric hgx-h100 --layout tp=6
    refuse 64 "pp=35 with 1 stages per rank makes 35 chunks, and llama3.1-8b has 32 layers, 34 with" \
        --fabric hgx-h100 --layout pp=35
    refuse 64 "axis ep shards experts, and llama3.1-8b has none" --fabric hgx-h100 --layout dp=8,ep=8
    refuse 64 "the other axes take 5 ranks, which do not divide 32 GPUs" \
        --fabric hgx-h100 --layout pp=5,dp=auto --gpus 32
    refuse 64 "the layout has 16 ranks and 8 GPUs are given" --fabric hgx-h100 --layout tp=8,dp=2 --gpus 8
    refuse 64 "the layout needs 64 ranks and the matrix has 32 endpoints" \
        --fabric hgx-h100 --racks 1 --layout dp=64
    refuse 64 "a batch of 7 is not a multiple of 2" --fabric hgx-h100 --layout tp=4,dp=2 --batch 7
}

@test "words and numbers that are wrong are refused with what is known" {
    refuse 64 'strategy "zero9" is not known (known: ddp, zero1, zero2, zero3, fsdp, hsdp)' \
        --fabric hgx-h100 --strategy zero9
    refuse 64 'dtype "int4" is not known' --fabric hgx-h100 --dtype int4
    refuse 64 'schedule "zb" is not known (known: 1f1b, interleaved, zb-h1, zb-h2, dualpipe)' --fabric hgx-h100 --schedule zb
    refuse 64 'axis "tensor" is not known' --fabric hgx-h100 --layout tensor=8
    refuse 64 '"many"' --fabric hgx-h100 --batch many
    refuse 64 "neither MATRIX nor --fabric is given"
    refuse 64 'one matrix at a time: "b" after "a"' a b
    refuse 64 "the interleaved schedule needs at least 2 stages per rank, not 1" \
        --fabric hgx-h100 --layout pp=4,dp=2 --schedule interleaved
    refuse 64 'no model "llama9"; "railgauge models" lists' --fabric hgx-h100 --model llama9
    refuse 64 'no fabric "x"; known: gb200-nvl72' --fabric x
    refuse 66 missing.json missing.json
    refuse 2 "no nvfp4 peak rate of" --fabric hgx-h100 --dtype nvfp4
}

@test "files that are wrong are refused with their place" {
    echo '{"format": "railgauge-model", "version": 1,' >m.json
    refuse 65 "m.json:2: " --fabric hgx-h100 --model ./m.json
    printf 'r00n00\nnowhere\n' >order
    refuse 65 'order:2: host "nowhere" is not in the matrix' --fabric hgx-h100 --order order
    echo '{"format": "railgauge-constants", "version": 1, "constants": []}' >c.json
    refuse 65 'c.json: constant "efficiency.default" is missing' --fabric hgx-h100 --constants c.json
    refuse 74 "/nonexistent/p.json" --fabric hgx-h100 -o /nonexistent/p.json --json
}

@test "help shows examples" {
    run railgauge predict --help
    [ "$status" -eq 0 ]
    [[ $output == *"railgauge predict --fabric gb200-nvl72 --model llama3.1-8b --layout"* ]]
}

@test "cp and pipelines: an order that tears their groups apart is refused, and is no hint" {
    cut=(--fabric hgx-h100 --model llama3.1-70b --layout "tp=8,pp=4,cp=2,dp=2" --strategy zero1)
    refuse 64 "with order tp-pp-dp the pp=4 stages lie between cp=2 and dp" "${cut[@]}" --mesh-order tp-pp-dp
    run railgauge predict "${cut[@]}"
    [ "$status" -le 1 ]
    [[ $output == *"llama3.1-70b, pp=4,dp_shard=2,cp=2,tp=8, zero1, bf16"* ]]
}
