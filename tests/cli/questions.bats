#!/usr/bin/env bats
# questions.bats - what predict says beside the time of a step: the run it is of, other machines and GPU counts, a timeline.

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

# --- GPU counts ---

@test "GPU counts: the data-parallel axis grows, each row is the prediction of that count" {
    railgauge predict "${job[@]}" --gpus 64,128,256 --tokens 1T --json >v.json
    schema variants v.json
    jq -e '[.rows[] | [.gpus, .batch, .layout]] == [[64, 64, "pp=4,dp_shard=2,tp=8"], [128, 64, "pp=4,dp_shard=4,tp=8"], [256, 64, "pp=4,dp_shard=8,tp=8"]]' v.json
    for dp in 2 4 8; do
        railgauge predict --fabric hgx-h100 --model llama3.1-70b --layout "tp=8,pp=4,dp=$dp" --strategy zero1 --batch 64 --tokens 1T --json |
            jq -c '[.step_s, .tokens_per_s_per_gpu, .run]'
    done >want
    jq -c '.rows[] | [.step_s, .tokens_per_s_per_gpu, .run]' v.json | diff - want
    jq -e '.rows as $r | $r[0].efficiency == 1 and ([$r[] | (.efficiency - .tokens_per_s_per_gpu / $r[0].tokens_per_s_per_gpu | fabs) < 1e-6] | all)' v.json
    run railgauge predict "${job[@]}" --gpus 64,128
    [[ ${lines[1]} == "GPUs  layout "*"efficiency" && ${lines[2]} == "  64  pp=4,dp_shard=2,tp=8 "*" 100.0 %" ]]
}

@test "GPU counts: the batch stays, or the tokens of a GPU do; what cannot be laid out says why" {
    batches() { railgauge predict --fabric hgx-h100 --layout tp=8,dp=auto --json "$@" | jq -c '[.rows[].batch]'; }
    [ "$(batches --gpus 64,128,256)" = "[32,32,32]" ]
    [ "$(batches --gpus 256,64 --weak)" = "[32,8]" ]
    [ "$(batches --gpus 64,128 --weak --batch 48)" = "[48,96]" ]
    [ "$(batches --gpus 64,128 --accumulation 3)" = "[24,48]" ]
    [ "$(batches --gpus 64,128 --batch 8)" = "[8,null]" ]
    run railgauge predict --fabric hgx-h100 --layout tp=8,dp=2 --batch 64 --gpus 64,100,8192
    [ "$status" -eq 0 ]
    [[ $output == *" 100  -"*"cannot be"* && $(echo $output) == *"100 GPUs: "*"cannot be filled"*"do not divide 100 GPUs 8192 GPUs: "* ]]
    [[ $(railgauge predict --fabric hgx-h100 --layout dp=8 --strategy hsdp --gpus 16,32 --json | jq -c '[.rows[].layout]') == \
        '["dp_replicate=2,dp_shard=8","dp_replicate=4,dp_shard=8"]' ]]
}

@test "GPU counts that make no table are refused" {
    refuse 64 '--gpus: "8,,16" has an empty place' --fabric hgx-h100 --gpus 8,,16
    refuse 64 '"x" is not a whole number' --fabric hgx-h100 --gpus 8,x
    refuse 64 "0 is outside" --fabric hgx-h100 --gpus 0,8
    for gpus in 9,10 9 9,10,11,12,13; do # no row has a step to compare with
        refuse 64 "cannot be filled" --fabric hgx-h100 --layout tp=8,dp=auto --gpus "$gpus"
    done
    refuse 64 "--mtbf of a job is of one GPU count" --fabric hgx-h100 --gpus 8,16 --mtbf 3h --checkpoint 30s
    refuse 64 "--weak is about several counts" --fabric hgx-h100 --gpus 8 --weak
    refuse 64 "no --explain" --fabric hgx-h100 --gpus 8,16 --explain
}

# --- other machines ---

# A preset without published collectives, and the same with NICs of twice the rate and half the latency everywhere.
twins() {
    jq --slurpfile gpu "$top/topo/gpus/h100-sxm.json" '.name = "plain" | .collectives = [] | .gpu = $gpu[0].gpu | .sources += $gpu[0].sources' \
        "$top/topo/fabrics/hgx-h100.json" >plain.json
    jq '(.tiers[] | select(.nic) | .bandwidth_Bps, .bidirectional_Bps, .peak_Bps).value *= 2 | .tiers[].alpha_s.value /= 2
        | .gpu.hbm_Bps.value *= 1.2 | .gpu.peaks[].flops.value *= 1.5' plain.json >other.json
}

@test "what if: a preset with other numbers gives what the change of them gives" {
    twins
    for layout in "dp=64" "tp=8,dp=8" "tp=4,pp=2,dp=8"; do
        want=$(railgauge predict --fabric ./other.json --layout "$layout" --json | jq .step_s)
        railgauge predict --fabric ./plain.json --layout "$layout" --json --what-if nic=2x,latency=0.5x,hbm=1.2x,flops=1.5x \
            --what-if nic=800G,latency=0.5x,hbm=1.2x,flops=1.5x >v.json
        jq -e "([.rows[1, 2].step_s / $want - 1 | fabs] | max) < 1e-6" v.json
        jq -e '(.rows[1].gain * .rows[1].step_s / .rows[0].step_s - 1 | fabs) < 1e-6 and .rows[0].gain == null' v.json
    done
    schema variants v.json
    railgauge predict --fabric ./plain.json --layout tp=8,dp=8 --json | jq .step_s >plain
    jq '.rows[0].step_s' v.json >/dev/null
    railgauge predict --fabric ./plain.json --layout tp=8,dp=8 --json --what-if nic=1x,hbm=1x | jq '.rows[].step_s' | uniq | diff - plain
}

@test "what if: published collectives gain no more than their NICs, nothing inside a node" {
    gain() { railgauge predict --fabric hgx-h100 --layout "$1" --what-if "$2" --json | jq '.rows[1].gain'; }
    [ "$(gain tp=8 nic=4x)" = 1 ]
    jq -en "$(gain dp=8 nvlink=2x) >= 1 and $(gain dp=16,tp=8 nic=2x) > 1 and $(gain dp=16,tp=8 nic=2x) < 2"
    jq -en "$(gain dp=16,tp=8 nic=0.5x) < 1"
}

@test "what if: without exceptions it is what the slow NIC costs, and the term that it slows is named" {
    railgauge run --fabric hgx-h100 --racks 2 --noise 2% --sim-seed 7 --fault slow-nic=17:0.5 --no-plots -o c -b 1K -e 64M -f 16 >/dev/null || [ $? -eq 1 ]
    [ "$(jq '.exceptions | length' c/matrix.json)" -ge 1 ]
    jq '.exceptions = []' c/matrix.json >whole.json
    railgauge seal whole.json
    railgauge predict c --layout dp=auto --what-if exceptions=none --json >v.json
    [ "$(jq '.rows[1].step_s' v.json)" = "$(railgauge predict whole.json --layout dp=auto --json | jq .step_s)" ]
    jq -e '.rows[1].gain > 1.02 and (.rows[1].moved[0].label | startswith("gradients"))' v.json
    run railgauge predict c --layout dp=auto --what-if exceptions=none
    [[ $output == *$'\nexceptions=none (64 GPUs) moves gradients reduce_scatter '* ]]
    # A part of no use: as it is there is no step.
    railgauge run --fabric hgx-h100 --racks 2 --sim-seed 7 --fault corrupt=17 --no-plots -o d -b 1K -e 64M -f 16 >/dev/null || [ $? -eq 1 ]
    run railgauge predict d --layout dp=auto --what-if exceptions=none
    [ "$status" -eq 0 ]
    [[ $(echo $output) == *"64 GPUs: "*"dead"* ]]
}

@test "what-if on a measured matrix says what a campaign of that machine says" {
    run -0 python3 "$BATS_TEST_DIRNAME/../random/twins.py" --presets "${RG_ALL:+gb200-nvl72/2,hgx-h200/2,hgx-b200/2,h200-nvl/2,}rtxpro6000-100gbe/2,hgx-h100/2"
    [[ $output == *"hgx-h100 nic=0.5x llama3.1-70b: "* && $output == *" twins, 0 off, "* ]] || { echo "$output"; false; }
}

@test "what if: what is not understood is refused" {
    refuse 64 '--what-if "nics" is not known (known: nic, nvlink, latency, hbm, flops, exceptions)' "${job[@]}" --what-if nics=2x
    refuse 64 "nic=2: a factor of 0.001x to 1000x is asked, such as 2x, or a rate such as 400G" "${job[@]}" --what-if nic=2
    refuse 64 "hbm=0x: a factor" "${job[@]}" --what-if hbm=0x
    refuse 64 "exceptions=all: only none" "${job[@]}" --what-if exceptions=all
    refuse 64 '"nic": what it would be is missing' "${job[@]}" --what-if nic
    refuse 64 "nothing is changed" "${job[@]}" --what-if ""
    refuse 64 "no --save-anchor" "${job[@]}" --what-if nic=2x --measured 3s --save-anchor a.json
    refuse 64 "--case takes none of" --case all --what-if nic=2x
}

# --- the timeline ---

# read TRACE PREDICTION MOST - a reader of the format: events of a track end before the next begins, each has a name, the
# device has no hole, and by category it adds up to the terms of the prediction; at most the share MOST longer.
read_trace() {
    python3 - "$@" <<'PY'
import json, sys
trace, prediction, most = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), float(sys.argv[3])
facts, tracks, names = trace["otherData"], {}, set()
for e in trace["traceEvents"]:
    assert e["ph"] in "XM", e
    key = e["pid"], e["tid"]
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name") and e["args"]["name"]
        names.add(key)
    else:
        assert e["dur"] > 0 and e["ts"] >= 0 and e["name"], e
        tracks.setdefault(key, []).append(e)
assert set(tracks) <= names
near = lambda a, b, share: abs(a - b) <= share * facts["predicted_s"]
for key, events in tracks.items():
    for a, b in zip(events, events[1:]):
        assert b["ts"] >= a["ts"] + a["dur"] - 1e-3, (key, a, b)
for stage in {pid for pid, _ in tracks}:
    device = tracks[stage, 0]
    for a, b in zip(device, device[1:]):
        assert abs(b["ts"] - a["ts"] - a["dur"]) < 1e-3, (stage, a, b)
    assert near(sum(e["dur"] for e in device) / 1e6, facts["drawn_s"], 1e-6), stage
    passes = {}
    for e in device:
        if e["cat"] == "compute":
            passes.setdefault(e["name"], []).append((e["args"]["microbatch"], e["args"]["chunk"]))
    for done in passes.values():
        assert len(set(done)) == len(done)
    assert len(passes["forward"]) == len(passes.get("backward", [])) + len(passes.get("backward inputs", []))
    assert len(passes["forward"]) % prediction["microbatches"] == 0
is_, should = {}, {}
for e in tracks[facts["slowest_stage"], 0]:
    is_[e["cat"]] = is_.get(e["cat"], 0) + e["dur"] / 1e6
for t in prediction["terms"]:
    should[t["kind"]] = should.get(t["kind"], 0) + t["s"]
more = facts["drawn_s"] - prediction["step_s"]
assert near(facts["predicted_s"], prediction["step_s"], 1e-8) and -1e-6 <= more <= most * prediction["step_s"] + 1e-6, facts
for kind in should:
    assert near(is_.get(kind, 0), should[kind] + (more if kind == "bubble" else 0), 1e-5), (kind, is_, should)
seen = sum(e["dur"] for k, l in tracks.items() if k[0] == facts["slowest_stage"] for e in l if e["cat"] == "seen") / 1e6
assert near(seen, prediction["exposed_s"], 1e-5), (seen, prediction["exposed_s"])
PY
}

# draw MOST OPTION...
draw() {
    local most=$1
    shift
    railgauge predict --fabric hgx-h100 "$@" --trace t.json --json >p.json || [ $? -eq 1 ]
    read_trace t.json p.json "$most"
}

@test "timeline: a lone stage, whatever hides its messages, adds up to the step" {
    draw 0 --layout dp=64
    draw 0 --layout dp=16,tp=4 --accumulation 4
    draw 0 --layout dp=16,tp=4 --accumulation 4 --strategy ddp
    draw 0 --layout dp=16,tp=4 --strategy zero1 --checkpoint-seconds 0.01 --fixed-seconds 0.02
    jq -e '[.traceEvents[] | select(.cat == "fixed") | .name] | contains(["fixed", "checkpoints", "given"])' t.json
    draw 0 --model mixtral-8x7b --layout dp=16,ep=8 --strategy zero1
    jq -e '[.traceEvents[] | select(.name == "thread_name") | .args.name] == ["device", "ep", "data parallel"]' t.json
}

@test "timeline: stages of every schedule; the bubble drawn is the predicted one within what is said" {
    stages=(--model llama3.1-70b --layout "tp=8,pp=4,dp=4" --strategy zero1)
    draw 0 "${stages[@]}"
    jq -e '[.traceEvents[] | select(.name == "process_name") | .args.name] | length == 4 and (.[3] | startswith("stage 3 of 4"))' t.json
    draw 1e-3 "${stages[@]}" --stages-per-rank 5
    draw 5e-3 "${stages[@]}" --schedule zb-h1
    draw 5e-3 "${stages[@]}" --schedule zb-h2
    jq -e '[.traceEvents[] | select(.name == "backward weights")] | length == 4 * 16' t.json
    draw 5e-3 "${stages[@]}" --schedule dualpipe
    draw 5e-3 --model llama3.1-405b --layout tp=8,pp=8,cp=2,dp=2 --strategy zero1 --batch 64 --recompute full
    draw 5e-2 --model deepseek-v3 --layout pp=8,dp=64,ep=64 --strategy zero1 --batch 2048 --schedule dualpipe
    if jq -e '.otherData | .drawn_s > 1.001 * .predicted_s' t.json; then
        jq -e '[.notes[] | select(startswith("the timeline has the order of the schedule and takes "))] | length == 1' p.json
    fi
}

@test "timeline: what it cannot draw is refused, and no file is left" {
    refuse 64 "--trace draws one step" --fabric hgx-h100 --gpus 8,16 --trace t.json
    refuse 64 "--case takes none of" --case all --trace t.json
    refuse 64 "too many pieces of work for a timeline" --fabric hgx-h100 --layout tp=8 --batch 1000000 --trace t.json
    [ ! -e t.json ]
    run railgauge predict --fabric hgx-h100 --layout dp=8 --trace missing/t.json
    [ "$status" -eq 74 ]
}
