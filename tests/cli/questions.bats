#!/usr/bin/env bats
# questions.bats - what predict says beside the time of a step: the run it is of, other machines and GPU counts.

bats_require_minimum_version 1.5.0
load rejects

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    job=(--fabric hgx-h100 --model llama3.1-70b --layout "tp=8,pp=4,dp=4" --strategy zero1 --batch 64)
}

refuse() { rejects predict "$@"; }

# schema NAME FILE
schema() {
    python3 -c 'import jsonschema' 2>/dev/null || return 0
    python3 -W ignore -c 'import json, jsonschema, os, sys
path = os.path.abspath(sys.argv[1])
schema = json.load(open(path))
resolver = jsonschema.RefResolver("file://" + path, schema)
jsonschema.Draft202012Validator(schema, resolver=resolver).validate(json.load(open(sys.argv[2])))' \
        "$top/src/schema/$1.schema.json" "$2"
}

# --- a run ---

@test "tokens: steps, days, GPU-hours, cost and energy follow from the step and carry its interval" {
    railgauge predict "${job[@]}" --tokens 1T --price 2.5EUR --power 700W --pue 1.25 --json >p.json
    schema prediction p.json
    jq -e '.run.steps == (1e12 / .tokens | ceil) and .run.tokens == 1e12' p.json
    jq -e 'def near(x): (. / x - 1 | fabs) < 1e-6;
        (.run.s | near(.)) and (.step_s * .run.steps - .run.s | fabs) < 1e-6 * .run.s
        and (.lo_s * .run.steps - .run.lo_s | fabs) < 1e-6 * .run.s and (.hi_s * .run.steps - .run.hi_s | fabs) < 1e-6 * .run.s' p.json
    jq -e '(.run.gpu_hours - .run.s * 128 / 3600 | fabs) < 1 and (.run.cost - 2.5 * .run.gpu_hours | fabs) < 1' p.json
    jq -e '.run.currency == "EUR" and (.run.mwh / (.run.s * 128 * 700 * 1.25 / 3.6e9) - 1 | fabs) < 1e-6' p.json
    run railgauge predict "${job[@]}" --tokens 1T --price 2.5EUR --power 700W --pue 1.25
    [[ $output == *$'\n1.00 trillion tokens in 1907349 steps: '*" days ("*" .. "*"), "*" GPU-hours ("* ]]
    [[ $output == *$'\ncost '*" EUR ("*") at 2.5 a GPU-hour"* ]]
    [[ $output == *$'\nenergy of a step '*" kWh at 700 W a GPU x 1.25; of the run "*" MWh ("* ]]
}

@test "goodput: failures of GPUs, nodes and the job; shares add up; the interval is Daly's or as given" {
    railgauge predict "${job[@]}" --tokens 1T --mtbf 50000h/gpu --checkpoint 30s --restart 5m --json >gpu.json
    railgauge predict "${job[@]}" --tokens 1T --mtbf 6250h/node --checkpoint 30s --restart 5m --json >node.json
    railgauge predict "${job[@]}" --tokens 1T --mtbf 390.625h --checkpoint 30s --restart 5m --json >job.json
    schema prediction gpu.json
    for f in node job; do diff <(jq .run gpu.json) <(jq .run $f.json); done
    jq -e '.run.goodput | .mtbf_s == 1406250 and ([.share, .checkpoint_share, .rework_share, .restart_share] | add - 1 | fabs < 1e-8)' gpu.json
    jq -e '(.run.s * .run.goodput.share / (.step_s * .run.steps) - 1 | fabs) < 1e-6' gpu.json
    jq -e '(.run.tokens_per_s * .step_s / .tokens / .run.goodput.share - 1 | fabs) < 1e-6' gpu.json
    run railgauge predict "${job[@]}" --mtbf 3h --checkpoint 1m --restart 10m
    [[ $output == *$'\ngoodput '*" %: checkpoints take "*" %, work done again "*" %, restarts "* ]]
    [[ $output == *"(Daly 2006; Young 1974: 18 m 58 s), a failure each 3 h 00 m of 128 GPUs on 16 nodes"* ]]
    run railgauge predict "${job[@]}" --checkpoint 60s --checkpoint-every 9m
    [[ $output == *$'\ngoodput 90.0 %: checkpoints take 10.0 %; '* ]]
}

@test "a run that cannot be is refused with what is missing" {
    refuse 64 "--price is of GPU-hours, and --tokens says how many" "${job[@]}" --price 2
    refuse 64 '"3X" is no number of tokens such as 300B' "${job[@]}" --tokens 3X
    refuse 64 '"-1" is no number of tokens' "${job[@]}" --tokens=-1
    refuse 64 '"x2" is no price' "${job[@]}" --tokens 1T --price x2
    refuse 64 '"700" is no power such as 700W' "${job[@]}" --power 700
    refuse 64 "--pue belongs to --power" "${job[@]}" --pue 1.2
    refuse 64 "--mtbf asks for --checkpoint" "${job[@]}" --mtbf 3h
    refuse 64 "--checkpoint asks for --mtbf or --checkpoint-every" "${job[@]}" --checkpoint 30s
    refuse 64 "--restart asks for --mtbf" "${job[@]}" --checkpoint 30s --checkpoint-every 1h --restart 1m
    refuse 64 '"rack" is not known (known: job, node, gpu)' "${job[@]}" --mtbf 3h/rack --checkpoint 30s
    refuse 64 "would count them again" "${job[@]}" --checkpoint-seconds 1 --checkpoint 30s --mtbf 3h
    refuse 2 "nothing gets done" "${job[@]}" --mtbf 1s --checkpoint 1h --restart 1h
}
