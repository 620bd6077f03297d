#!/usr/bin/env bats
# replay.bats - a step's messages beside their prediction: layouts that run, and words that are refused.

bats_require_minimum_version 1.5.0
load helper

# Curves of this machine; where others have its cores, every pair of ranks may look slow: then once more.
setup_file() {
    command -v mpirun >/dev/null || return 0
    export campaign
    for campaign in "$BATS_FILE_TMPDIR"/campaign.{1,2,3}; do
        railgauge run --transport mpi --launch "${mpirun[*]} -n 4" \
            -o "$campaign" --no-verdict --no-plots --epochs 1 -n 4 -b 1K -e 256K -f 4 --max-run 60s --op pair_latency,pair_bw \
            --for-job "--layout dp_shard=4" --for-job "--layout tp=2,dp_shard=2 --strategy zero1" >/dev/null 2>&1
        ! jq -e '.tiers[0].curves == {}' "$campaign/matrix.json" >/dev/null || continue
        break
    done
}

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    matrix=$campaign/matrix.json
}

replay() { ranks 4 "$probe" replay "$matrix" --flops 1e11 --seconds 0.1 --steps 2 "$@"; }

# What every replay's JSON says.
sound() {
    jq -e '.format == "railgauge-replay" and (.steps_s | length) == 2 and .measured_s > 0' out.json
    jq -e '.terms[0] | .term == "compute" and .measured_s / .predicted_s > 0.9' out.json
    jq -e '[.terms[] | select(.term != "compute") | .one_predicted_s > 0] | length > 0 and all' out.json
    jq -e '.measured_s >= .terms[0].measured_s * 0.99' out.json
    jq -e '.compute_share > 0 and .compute_share < 1 and .messages.seen.measured_s > 0' out.json
    # totals are those of the terms; the bubble is no message
    jq -e '([.terms[1:][] | .predicted_s - (.bubble_s // 0)] | add) as $seen | ([.terms[] | .calls_measured_s // 0] | add) as $calls
        | .messages | (.seen.predicted_s - $seen | fabs) < 1e-6 and (.calls.measured_s - $calls | fabs) < 1e-6' out.json
}

# runs LAYOUT... - every term is there, and compute takes what it was set to, never less; more is what others have of the
# cores (tests/lab/replay.bats is alone with them).
runs() {
    ranks 4 "$probe" replay "$matrix" --compute-share 80% --seconds 0.1 --steps 2 --json --layout "$@" >out.json
    sound
}

@test "a job's own groups are in the plan, side by side" {
    grep -qP 'collective\tall_gather\t.*\t0-3$' "$campaign/plan.tsv"
    grep -qP 'collective\treduce_scatter\t.*\t0,2 1,3$' "$campaign/plan.tsv"
    jq -e '[.collectives[] | select(.at_once == 2)] | length > 0' "$matrix"
}

@test "fsdp" { runs dp_shard=4; }
@test "tp beside zero1" { runs tp=2,dp_shard=2 --strategy zero1; }
@test "cp" { runs cp=2,dp_shard=2; }
@test "1f1b" { runs pp=4 --batch 8; }
@test "interleaved" { runs pp=2,dp_shard=2 --strategy zero1 --batch 8 --stages-per-rank 2; }

@test "the order of ranks decides who talks to whom" {
    printf '%s\n' 3 1 2 0 >order
    runs dp_shard=4 --order order
}

@test "the table has a line for each term and for the step" {
    run replay --layout dp_shard=4
    [ "$status" -eq 0 ]
    [[ $output == *"llama3.1-8b, dp_shard=4, fsdp: 4 ranks, 1 microbatch, shrunk by "*"compute by "* ]]
    for term in compute "weights all_gather forward" "gradients reduce_scatter" "messages, seen" "messages, in calls" step; do
        [[ $output == *$'\n'"$term "* ]]
    done
    [[ $output == *"of the time in calls "*" % is hidden, predicted "* ]]
    [[ $output == *"compute is a wait of set length, "* ]]
}

@test "JSON keeps to its schemas, and a changed one does not" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    cat >validate.py <<'PY'
import json, jsonschema, sys
for pair in sys.argv[1:]:
    schema, path = pair.split("=")
    schema = json.load(open(schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.load(open(path)), schema)
PY
    schemas=$BATS_TEST_DIRNAME/../../src/schema
    replay --layout tp=2,dp_shard=2 --strategy zero1 -o out.json
    jq .prediction out.json >prediction.json
    python3 validate.py "$schemas/replay.schema.json=out.json" "$schemas/prediction.schema.json=prediction.json"
    for change in '.burn = "nap"' 'del(.steps_s)' '.steps_s = []' '.terms[0].seconds = 1' '.prediction.format = "x"'; do
        jq "$change" out.json >wrong.json
        run ! python3 validate.py "$schemas/replay.schema.json=wrong.json"
    done
}

@test "railgauge replay starts the ranks itself" {
    railgauge replay "$matrix" --layout dp_shard=4 --flops 1e11 --seconds 0.2 --steps 1 -o out.json
    jq -e '.prediction.layout == "dp_shard=4"' out.json
    railgauge replay --launch "mpirun -n 4 --oversubscribe" "$matrix" --layout dp_shard=4 --flops 1e11 \
        --seconds 0.2 --steps 1 --json | jq -e '.steps_s | length == 1'
}

# refuse CODE TEXT OPTION...
refuse() {
    local code=$1 text=$2
    shift 2
    run replay "$@"
    echo "$output"
    [ "$status" -eq "$code" ]
    [[ $output == *"$text"* ]]
}

@test "what cannot be replayed is refused with the reason" {
    refuse 64 "schedule zb-h1 cannot be replayed (1f1b and interleaved can)" --layout pp=4 --schedule zb-h1
    refuse 64 "the layout needs 8 ranks and the matrix has 4 endpoints" --layout dp_shard=8
    refuse 64 '--burn: burn "nap" is not known (known: auto, sleep, spin)' --burn nap
    refuse 64 '--steps: ' --steps none
    sed 's/"transport": "mpi"/"transport": "sim"/' "$matrix" >sim.json
    railgauge seal sim.json
    matrix=sim.json refuse 78 "sim.json was measured over sim, and a replay runs over mpi" --layout dp_shard=4
    matrix=none.json refuse 66 "none.json"
    host=$(hostname)
    sed "s/\"$host\"/\"elsewhere\"/" "$matrix" >other.json
    railgauge seal other.json
    matrix=other.json refuse 78 "endpoint 0 of the matrix is on elsewhere, and rank 0 of the world is on $host" \
        --layout dp_shard=4
}

@test "fewer ranks than endpoints is refused" {
    run ranks 2 "$probe" replay "$matrix" --layout dp_shard=4 --flops 1e11
    [ "$status" -eq 78 ]
    [[ $output == *"rank 2 of the job runs on endpoint 2, and only 2 ranks were started"* ]]
}
