#!/usr/bin/env bats
# calibrate.bats - railgauge-calibrate refit: constants come back, test rows stay out, equal runs are equal.

bats_require_minimum_version 1.5.0

# Four steps that the shipped constants predict, made a fifth slower.
setup() {
    RAILGAUGE_TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    head=$'id\tmodel\thardware\tgpus\tglobal_batch\ttp\tseq_len\tdtype\tzero_stage/fsdp\tvalue\tsplit'
    {
        echo "$head"
        for tp in 1 2 4 8; do
            printf 'tp%s\tllama3.1-8b\tH100\t16\t64\t%s\t8192\tbf16\tZeRO-1\t1\tcalib\n' $tp $tp
        done
    } >guess.tsv
    railgauge-calibrate score --rows guess.tsv | awk -F'\t' 'NR > 1 {print $1 "\t" 1.2 * $6}' >times.tsv
    awk -F'\t' -v OFS='\t' 'NR == FNR {t[$1] = $2; next} FNR > 1 {$10 = t[$1]} {print}' times.tsv guess.tsv >steps.tsv
}

constant() { jq --arg n "$2" '.constants[] | select(.name == $n) | .value' "$1"; }

@test "what is fitted predicts the table, what is not stays" {
    run railgauge-calibrate refit steps.tsv -o c.json
    [ "$status" -eq 0 ]
    [[ $output == *"4 steps: 4 jobs of 1 models; left out: 0 test rows"* ]]
    [[ $output == *"efficiency.hopper.bf16 "* ]]
    [[ $output == *"wrote c.json"* ]]
    railgauge-calibrate score --rows steps.tsv --constants c.json |
        awk -F'\t' 'NR > 1 && ($9 > 0.02 || $9 < -0.02) {print; bad = 1} END {exit bad}'
    [ "$(constant c.json error.preset)" = "$(constant "$RAILGAUGE_TOP/jobs/training/constants.json" error.preset)" ]
    jq -e '.constants[] | select(.name == "efficiency.hopper.bf16") | .source | startswith("railgauge-calibrate refit: ")' c.json
}

@test "equal runs write equal files" {
    railgauge-calibrate refit steps.tsv -o a.json >a.txt
    railgauge-calibrate refit steps.tsv -o b.json >b.txt
    cmp a.json b.json
    diff <(sed 's/a.json//' a.txt) <(sed 's/b.json//' b.txt)
}

@test "rows of test splits take no part, whatever they say" {
    railgauge-calibrate refit steps.tsv -o without.json >/dev/null
    sed -n 's/^tp4/absurd/; s/calib/test_hw/; s/\t[0-9.]*\ttest/\t99\ttest/; /^absurd/p' steps.tsv >>steps.tsv
    run railgauge-calibrate refit steps.tsv -o with.json
    [[ $output == *"left out: 1 test rows"* ]]
    diff <(jq '[.constants[].value]' without.json) <(jq '[.constants[].value]' with.json)
}

@test "only what is named changes" {
    railgauge-calibrate refit steps.tsv --only fixed.seconds,efficiency.hopper.bf16 -o c.json >/dev/null
    shipped=$RAILGAUGE_TOP/jobs/training/constants.json
    jq -r --slurpfile s "$shipped" '.constants[] | .name as $n | select(.value != ($s[0].constants[] | select(.name == $n) | .value)) | .name' c.json >changed
    # The rate alone may explain all steps; then fixed.seconds stays as it was.
    grep -qx efficiency.hopper.bf16 changed
    run ! grep -vxE 'efficiency\.hopper\.bf16|fixed\.seconds' changed
}

@test "a dry run writes nothing" {
    run railgauge-calibrate refit steps.tsv --dry-run -o c.json
    [ "$status" -eq 0 ]
    [[ $output == *"4 steps"*"efficiency.hopper.bf16"* ]]
    [[ $output != *"wrote"* ]]
    [ ! -e c.json ]
}

@test "a limit ends it with what was found and its own exit code" {
    run railgauge-calibrate refit steps.tsv --limit 1us -o c.json
    [ "$status" -eq 75 ]
    [[ $output == *"the limit stopped the fit"* ]]
    [ -s c.json ]
}

@test "several tables are one, and rows are left out by what is in their columns" {
    sed 's/^tp/more/' steps.tsv >more.tsv
    run railgauge-calibrate refit steps.tsv more.tsv -o both.json
    [[ $output == *"8 steps: 4 jobs of 1 models; "*" 0 as asked"* ]]
    run railgauge-calibrate refit steps.tsv more.tsv --leave-out 'id=more*,tp>2' --leave-out 'tp=1' -o c.json
    [ "$status" -eq 0 ]
    [[ $output == *"4 steps: "*" 4 as asked"* ]]
    run railgauge-calibrate refit steps.tsv --leave-out 'colour=red'
    [ "$status" -eq 64 ]
    [[ $output == *'no table has a column "colour"'* ]]
    run railgauge-calibrate refit steps.tsv --leave-out 'tp'
    [ "$status" -eq 64 ]
    [[ $output == *'"tp" is no condition: COLUMN=VALUE'* ]]
    run railgauge-calibrate refit steps.tsv steps.tsv
    [ "$status" -eq 65 ]
    [[ $output == *'a second row with the id "tp1"'* ]]
}

@test "effects and intervals are in the file, and keep to its schema" {
    railgauge-calibrate refit steps.tsv -o c.json >c.txt
    grep -q '^model x release  *0 levels, one deviation' c.txt
    jq -e '.effects.levels | map(select(.factor == "model")) | length == 1 and .[0].n == 4' c.json
    jq -e '.effects.intervals | length == 10 and all(.lo < 0 and .hi > 0)' c.json
    python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open("c.json")), json.load(open(sys.argv[1])))' "$RAILGAUGE_TOP/src/schema/constants.schema.json"
    run railgauge predict --fabric hgx-h100 --model llama3.1-8b --layout dp=8 --constants c.json --explain
    [[ $output == *"effect on compute "*"llama3.1-8b"* ]]
}

@test "a group that is left out says nothing of its own rows" {
    sed 's/llama3.1-8b/llama3.1-70b/; s/^tp/big/' steps.tsv | sed 1d >>steps.tsv
    railgauge-calibrate score steps.tsv --leave-one-out model --json >a.json
    jq -e '[.errors[] | select(.with == "no anchor" and .by == "left out")] | map(.value) == ["llama3.1-8b", "llama3.1-70b"]' a.json
    awk -F'\t' -v OFS='\t' '/^big/ {$10 *= 3} {print}' steps.tsv >slow.tsv
    railgauge-calibrate score slow.tsv --leave-one-out model --json >b.json
    told() { jq -c --arg m "$2" '[.rows[] | select(.model == $m) | [.predicted_s, .lo_s, .hi_s]]' "$1"; }
    [ "$(told a.json llama3.1-70b)" = "$(told b.json llama3.1-70b)" ]
    [ "$(told a.json llama3.1-8b)" != "$(told b.json llama3.1-8b)" ]
    run railgauge predict --fabric hgx-h100 --layout dp=8 --leave-one-out model
    [ "$status" -eq 64 ]
    [[ $output == *"belong to railgauge-calibrate score"* ]]
}
