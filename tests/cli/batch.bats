#!/usr/bin/env bats
# batch.bats - railgauge-calibrate score --rows: tables of measured steps, their errors, what is refused.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    # Two recipes at two scales, a claim and a row that nobody can predict.
    cat >steps.tsv <<'TABLE'
id	model	hardware	gpus	dtype	seq_len	global_batch	micro_batch	tp	pp	cp	vp	zero_stage/fsdp	recompute	metric	value	unit	source	split	colour
small	llama3.1-405b	H100	576	fp8	8192	1152	1	8	8	1	1	dist-opt (ZeRO-1)	none	step_time	50	s	x	calib	red
large	llama3.1-405b	H100	1152	fp8	8192	1152	1	8	8	1	1	dist-opt (ZeRO-1)	none	step_time	25.6	s	x	test_scale	blue
eight	llama3.1-8b	B200	8	bf16	8192	128	2	1	1	1	1	FSDP2 full	none	tps_per_gpu	18000	tok/s/GPU	y	calib	blue
ratio	llama3.1-8b	B200	16	bf16	8192	128	2	1	1	1	1	FSDP2 full	none	scaling_eff	97	%	y	test_seed	blue
blind	llama3.1-8b	B200	16	bf16								FSDP2 full	none	step_time	4	s	y	test_seed	blue
TABLE
}

cell() { awk -F'\t' -v id="$1" -v name="$2" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) c = i} $1 == id {print $c}' out.tsv; }

@test "every row is answered, and none is dropped" {
    run --separate-stderr railgauge-calibrate score --rows steps.tsv
    [ "$status" -eq 0 ]
    echo "$output" >out.tsv
    [ "$(wc -l <out.tsv)" -eq 6 ]
    # shellcheck disable=SC2154 # bats sets stderr
    [[ $stderr == *'steps.tsv: column "colour" is not known and was ignored'* ]]
    [ "$(cell small status)" = predicted ]
    [ "$(cell eight measured_s)" = 7.28178 ]
    [ "$(cell ratio status)" = claim ]
    [[ $(cell ratio reason) == "scaling_eff: a ratio of two steps" ]]
    [ "$(cell blind status)" = miss ]
    [[ $(cell blind reason) == "global_batch and seq_len are not stated"* ]]
}

@test "rows name their model and hardware, which colour a plot" {
    railgauge-calibrate score --rows steps.tsv >out.tsv 2>/dev/null
    [ "$(cell small model)" = llama3.1-405b ]
    [ "$(cell small hardware)" = H100 ]
    [ "$(cell ratio hardware)" = B200 ]
    railgauge plot -t score out.tsv >plot.txt
    grep -q ' H100 *2 ' plot.txt
    grep -q ' B200 *1 ' plot.txt
    railgauge plot -t score out.tsv --by model | grep -q ' llama3.1-8b *1 '
}

@test "what a row leaves unsaid is read so that the job fits, and the reason says so" {
    cat >steps.tsv <<'TABLE'
id	model	hardware	gpus	dtype	seq_len	global_batch	micro_batch	ep	zero_stage/fsdp	recompute	metric	value	unit	source	split
full	llama4-scout	GB200	256	bf16	8192	2560	10	16	FSDP2 full	none	tps_per_gpu	6000	tok/s/GPU	pytorch/torchtitan@1 x	calib
TABLE
    railgauge-calibrate score --rows steps.tsv >out.tsv 2>/dev/null
    [[ $(cell full reason) == '"torchtitan": stack=torchtitan '*"; 16 of the 18 hosts of a rack are taken; "* ]]
    [[ $(cell full reason) == *"; recompute full assumed: without it "*" GB of 198" ]]
}

@test "an anchor is met by itself and changes the other scale" {
    railgauge-calibrate score --rows steps.tsv >out.tsv 2>/dev/null
    [ "$(cell small anchor)" = small ]
    [ "$(cell large anchor)" = small ]
    [ "$(cell small anchored_s)" = 50 ]
    [ "$(cell small anchored_error)" = "" ]
    [ "$(cell large stretch)" = "$(cell small stretch)" ]
    awk -v a="$(cell large anchored_s)" -v p="$(cell large predicted_s)" -v s="$(cell large stretch)" \
        'BEGIN {exit !(s > 1 ? a > p : a < p)}'
    awk -v e="$(cell large anchored_error)" -v a="$(cell large anchored_s)" \
        'BEGIN {d = e - (a / 25.6 - 1); exit !(d < 1e-4 && d > -1e-4)}'
}

@test "JSON holds rows, errors and targets that agree with the table" {
    railgauge-calibrate score --rows steps.tsv --json -o file.json >out.json 2>/dev/null
    railgauge-calibrate score --rows steps.tsv >out.tsv 2>/dev/null
    jq -e '.format == "railgauge-batch" and .counts == {rows: 5, predicted: 3, misses: 1, claims: 1}' out.json
    jq -e --argjson e "$(cell large anchored_error)" \
        '[.errors[] | select(.with == "one anchor" and .by == "test")][0] | .n == 1 and (.median - ($e | fabs) | fabs < 1e-4)' out.json
    jq -e '[.rows[].id] == ["small", "large", "eight", "ratio", "blind"]' out.json
    jq -e '.targets | length == 12 and all(.[]; has("met"))' out.json
    diff <(jq 'del(.provenance)' out.json) <(jq 'del(.provenance)' file.json)
}

@test "the score names figures, targets, misses and claims" {
    run railgauge-calibrate score steps.tsv
    [ "$status" -eq 0 ]
    [[ $output == *"5 rows, 3 predicted"* ]]
    [[ $output == *"test rows, one anchor, median"*"<= 3"* ]]
    [[ $output == *"misses: 1"*"blind (test_seed): global_batch and seq_len"* ]]
    [[ $output == *"claims that are no step time: 1"*"ratio (test_seed)"* ]]
}

@test "a number is still the batch of one step" {
    run railgauge predict --fabric hgx-h100 --layout dp=8 --batch 64
    [ "$status" -eq 0 ]
    [[ $output == *"batch 64 x 8,192 tokens"* ]]
    run railgauge predict --fabric hgx-h100 --layout dp=8 --batch 0
    [ "$status" -eq 64 ]
}

@test "all published rows are answered in time" {
    table=$top/../shared/datasets/measured_steps.tsv
    [ -r "$table" ] || skip "no ../shared/datasets/measured_steps.tsv"
    railgauge-calibrate score --rows "$table" >out.tsv 2>/dev/null
    [ "$(wc -l <out.tsv)" -eq "$(grep -c . "$table")" ]
    awk -F'\t' 'NR > 1 && $2 != "predicted" && $NF == "" {print; bad = 1} END {exit bad}' out.tsv
    awk -F'\t' 'NR > 1 {n[$2]++} END {exit !(n["predicted"] >= 300 && n["claim"] == 19)}' out.tsv
}

@test "the bench runs without tables and refuses one that is not there" {
    mkdir -p build tree/tests/bench # where it writes, and a tree with no tables beside it
    ln -s "$(command -v railgauge-calibrate)" build
    cp "$top/tests/bench/steps.sh" tree/tests/bench
    RG_BUILD=$PWD/build run tree/tests/bench/steps.sh steps.tsv nosuch.tsv
    [ "$status" -eq 66 ]
    [[ $output == *"nosuch.tsv cannot be read"* ]]
}

@test "the command line's words are columns, and both have the same answer" {
    printf '%s\t' model hardware gpus value fabric seq_len global_batch tp strategy stack cuda_graphs release >steps.tsv
    printf 'gpus_per_node\n' >>steps.tsv
    printf '%s\t' llama3.1-70b H100 64 10 hgx-h100-efa 4096 256 8 zero1 eager layers "mine 1.0" >>steps.tsv
    printf '4\n' >>steps.tsv
    railgauge-calibrate score --rows steps.tsv >out.tsv 2>err
    [ ! -s err ]
    railgauge predict --fabric hgx-h100-efa --gpus-per-node 4 --model llama3.1-70b --gpus 64 --layout tp=8,dp=auto --seq 4096 \
        --batch 256 --strategy zero1 --stack eager --cuda-graphs layers --release "mine 1.0" --json >p.json || [ $? -eq 1 ]
    [ "$(cell 'line 2' predicted_s)" = "$(jq -r .step_s p.json | awk '{ printf "%.6g", $1 }')" ]
}

@test "a config.json of Transformers is a model" {
    cat >config.json <<'JSON'
{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
 "intermediate_size": 14336, "vocab_size": 128256}
JSON
    [ "$(railgauge models ./config.json | tail -n +3)" = "$(railgauge models llama3.1-8b | tail -n +3)" ]
    railgauge predict --model ./config.json --fabric hgx-h100 --layout dp=8 | grep -q '^llama, dp_shard=8'
}
