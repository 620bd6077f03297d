#!/usr/bin/env bats
# search.bats - the best layouts: list, reasons, what was dropped, JSON, TSV, the command that repeats it.

bats_require_minimum_version 1.5.0
load rejects

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
}

# refuse CODE TEXT OPTION...: exit code and a line of stderr.
refuse() { rejects search "$@"; }

@test "the list, why the first wins, what was dropped and how to repeat it" {
    run railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 --top 5
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "llama3.1-70b on 64 of 64 endpoints of hgx-h100, batch 64 x 8192 tokens, bf16" ]
    [[ ${lines[2]} == "fastest: "*" (90 % interval: "*" to "*"), "*" tokens/s per GPU" ]]
    [[ ${lines[3]} == "#  "*step*"than fastest"*MFU*memory*"layout and recipe" ]]
    COLUMNS=80 railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 --top 5 | sed '/the first with every/,$d' >narrow
    [ "$(wc -L <narrow)" -le 80 ]
    [[ $output == *$'\n5  '* && $output != *$'\n6  '* ]]
    [[ $output == *"why the first wins"*"over the next ("*"over the best of "* ||
       $output == *"the first, beside others"*"over the next ("*"over the best of "* ]]
    [[ $output == *"dropped, of "*" meshes and "*" recipes on them"* ]]
    [[ $output == *"the first with every term:"*"railgauge predict --model llama3.1-70b --fabric hgx-h100 --layout "* ]]
}

@test "the command that is printed gives the step that is printed" {
    for how in "--fabric hgx-h100 --model llama3.1-70b --gpus 64" \
        "--fabric gb200-nvl72 --racks 2 --model mixtral-8x7b --gpus 64 --batch 256 --seq 4096 --mesh-order torchtitan" \
        "--fabric gb200-nvl72 --model llama3.1-8b --gpus 16 --nodes r00n[00-01],r01n[00-01] --dtype fp8 --fixed-seconds 20ms"; do
        # shellcheck disable=SC2086 # words
        railgauge search $how --json >s.json
        eval "$(jq -r .command s.json) --json" >p.json
        jq -en --slurpfile s s.json --slurpfile p p.json \
            '$s[0].best[0].step_s == $p[0].step_s and $s[0].best[0].hi_s == $p[0].hi_s'
        jq -e '.best[0] | .table_step_s / .step_s - 1 | fabs < 0.01' s.json
    done
}

@test "a matrix file and an order with odd names are quoted" {
    cp "$top/tests/golden/matrix.json" "my matrix.json"
    seq 7 -1 0 >"it's order"
    run railgauge search "my matrix.json" --flops 1e12 --order "it's order" --top 1
    [ "$status" -eq 0 ]
    [[ $output == *"railgauge predict 'my matrix.json' "*"--order 'it'\\''s order' "* ]]
    eval "${lines[-1]} --json" | jq -e .step_s
}

@test "JSON keeps to its schema, and -o writes the same" {
    railgauge search --fabric gb200-nvl72 --model mixtral-8x7b --gpus 64 --json -o s.json >out.json
    diff <(jq 'del(.provenance)' out.json) <(jq 'del(.provenance)' s.json)
    jq -e '.walk.priced + .walk.bounded + .walk.do_not_fit + .walk.refused_settings == .walk.candidates' s.json
    jq -e '.best | length == 10 and ([.[].step_s] | min) == (.[] | select(.over_fastest == 1) | .step_s)' s.json
    jq -e '[.best[] | select(.over_fastest > 1.02 or (.alike | not)) | .step_s] | . == sort' s.json
    jq -e 'all(.best[], .front[], .rivals[]; .alike == ((.over_fastest | log) <= .over_error))' s.json
    jq -e '[.rivals[].family] | unique | length == ([.[]] | length)' s.json
    jq -e 'all(.best[]; .axes as $a | $a.tp * $a.cp * $a.pp * $a.dp_shard * $a.dp_replicate == 64)' s.json
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
        "$top/src/schema/search.schema.json" s.json
}

@test "TSV on standard output and in a file" {
    railgauge search --fabric hgx-h100 --gpus 16 --top 7 --tsv - >a.tsv
    railgauge search --fabric hgx-h100 --gpus 16 --top 7 --tsv b.tsv >text
    diff a.tsv b.tsv
    grep -q "why the first wins" text
    [ "$(wc -l <a.tsv)" -eq 8 ]
    [ "$(awk -F'\t' '{print NF}' a.tsv | sort -u)" = 18 ]
    [ "$(awk -F'\t' 'NR > 1 && $16 > 1.02 {print $2}' a.tsv)" = "$(awk -F'\t' 'NR > 1 && $16 > 1.02 {print $2}' a.tsv | sort -g)" ]
}

@test "what cannot be told apart is said, and of equals the simplest is first" {
    railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 --json >s.json
    jq -e '.best[0] | .axes.cp == 1 and .alike and .over_fastest < 1.02' s.json
    jq -e '[.best[] | [.layout, .recipe.strategy]] | length == 10 and (unique | length) == 10' s.json
    railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 >text
    grep -q "^ 1 .*= " text
    grep -q "^ *[0-9]* .*= fastest" text
    tr '\n' ' ' <text | tr -s ' ' | grep -q "none of 1-10 can be told apart from the fastest: a comparison of two layouts is good for"
    grep -q ", not told apart): " text
    railgauge plot step --terminal s.json | grep -q "the 10 cannot be told apart"
    jq '(.best[3:][] | .alike) = false' s.json >few.json
    railgauge plot step --terminal few.json | grep -q "the first 3 cannot be told apart"
}

@test "what fits comes before what may not, and the faster first" {
    # 16 GPUs for 70B: four meshes fit for sure, and all others that may are faster.
    railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 16 --json >s.json
    jq -e '[.best[].memory_verdict] | index("may not fit") as $k | $k > 0 and $k < length and
           (.[:$k] | all(. == "fits")) and (.[$k:] | all(. == "may not fit"))' s.json
    jq -e '.best[0].over_fastest == 1 and ([.best[] | select(.memory_verdict != "fits") | .over_fastest] | . == sort)' s.json
    # Where nothing fits for sure, the fastest that may is first.
    railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 8 --lora all --strategy zero1 --json >s.json || true
    jq -e '.best[0].over_fastest >= 1' s.json
}

@test "the first layout in the words of a framework, and what that cannot do" {
    railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 --json -c 'strategy=zero1,tp=4,pp=4,stages_per_rank=1|5|10|20' >s.json
    run railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 -c 'strategy=zero1,tp=4,pp=4,stages_per_rank=1|5|10|20' --flags megatron
    [ "$status" -eq 0 ]
    for line in "--tensor-model-parallel-size 4" "--pipeline-model-parallel-size 4" --sequence-parallel \
        "--context-parallel-size $(jq '.best[0].axes.cp' s.json)" --use-distributed-optimizer "--global-batch-size 64" \
        "--micro-batch-size $(jq '.best[0].recipe["micro-batch"]' s.json)" "--seq-length 8192" --bf16; do
        [[ $'\n'$output$'\n' == *$'\n'"$line"$'\n'* ]]
    done
    [[ $output != *expert* && $output != *"cannot"* ]]
    run railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 -c 'strategy=zero1,tp=4,pp=4,stages_per_rank=1|5|10|20' --flags torchtitan
    [[ $output == *"# cannot: zero1; it shards weights too (fsdp, hsdp)"* ]]
    railgauge predict --fabric hgx-h100 --layout pp=4,dp=8 --stack torchtitan --mesh-order torchtitan --stages-per-rank 2 \
        --batch 64 --recompute full --flags torchtitan >t.toml
    python3 -c 'import sys, tomllib
t = tomllib.load(open(sys.argv[1], "rb")); p = t["parallelism"]
assert p["pipeline_parallel_schedule"] == "Interleaved1F1B" and p["pipeline_parallel_layers_per_stage"] == 4
assert p["data_parallel_shard_degree"] == 8 and p["pipeline_parallel_degree"] == 4 and t["training"]["local_batch_size"] == 8
assert t["activation_checkpoint"]["mode"] == "full"' t.toml
    run railgauge predict --fabric hgx-h100 --layout pp=4,dp=8 --strategy zero1 --schedule zb-h2 --flags megatron
    [[ $output == *"# cannot: schedule zb-h2; it has 1f1b and interleaved"* ]]
    refuse 64 'framework "nemo" is not known (known: megatron, torchtitan)' --fabric hgx-h100 --flags nemo
}

@test "constraints and options narrow it" {
    railgauge search --fabric hgx-h100 --model llama3.1-70b --gpus 64 --json --top 1000 \
        --constraint 'tp=4|8,strategy=fsdp|hsdp' -c 'micro-batch<=2' --recompute selective >s.json
    jq -e 'all(.best[]; (.axes.tp == 4 or .axes.tp == 8) and (.recipe.strategy | IN("fsdp", "hsdp")) and
        .recipe["micro-batch"] <= 2 and .recipe.recompute == "selective")' s.json
}

@test "an anchor stretches the compute of all layouts alike" {
    railgauge predict --fabric hgx-h100 --layout dp=16 --measured 3s --save-anchor a.json >/dev/null
    railgauge search --fabric hgx-h100 --gpus 16 --json >plain.json
    railgauge search --fabric hgx-h100 --gpus 16 --anchor a.json --json >s.json
    jq -en --slurpfile s s.json --slurpfile p plain.json '$s[0].best[0].step_s > 1.1 * $p[0].best[0].step_s'
    eval "$(jq -r .command s.json) --json" >p.json
    jq -en --slurpfile s s.json --slurpfile p p.json '$s[0].best[0].step_s == $p[0].step_s'
    jq -e '.best[0] | .table_step_s / .step_s - 1 | fabs < 0.005' s.json
    refuse 66 "none.json" --fabric hgx-h100 --gpus 16 --anchor none.json
}

@test "8,192 GPUs" {
    railgauge search --fabric gb200-nvl72 --model llama3.1-405b --gpus 8192 --json >s.json
    jq -e '.ranks == 8192 and .walk.candidates > 200000' s.json
}

@test "what is wrong is said with its place" {
    refuse 64 'constraint "tp<=8,pq=1": at 7: key "pq" is not known (known: tp, cp,' \
        --fabric hgx-h100 --constraint "tp<=8,pq=1"
    refuse 64 "seq is the same for all layouts of a search: give it as --seq" --fabric hgx-h100 -c seq=4096
    refuse 64 'a search finds the layout: say --constraint "tp=8" where it is to be kept' \
        --fabric hgx-h100 --layout tp=8
    refuse 64 "--top: 0 is " --fabric hgx-h100 --top 0
    refuse 64 "neither MATRIX nor --fabric is given" --model llama3.1-8b
    refuse 64 "no layout of 7 GPUs divides the model" --fabric hgx-h100 --gpus 7 --constraint tp=7
    refuse 64 "no layout of 16 GPUs meets the constraints" --fabric hgx-h100 --gpus 16 -c tp=5
    refuse 66 "nowhere.json" nowhere.json
    refuse 2 "no nvfp4 peak rate of NVIDIA H100 SXM is known" --fabric hgx-h100 --dtype nvfp4
    refuse 74 "/nonexistent/s.json" --fabric hgx-h100 --gpus 8 -o /nonexistent/s.json
}

@test "help shows examples" {
    run railgauge search --help
    [ "$status" -eq 0 ]
    [[ $output == *"railgauge search --fabric gb200-nvl72 --model llama3.1-405b --gpus 1024"* ]]
    [[ $output == *"Exit codes:"* ]]
}
