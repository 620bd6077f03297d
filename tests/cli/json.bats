#!/usr/bin/env bats
# json.bats - in every JSON that a command prints or writes, whole numbers are written whole: jq 1.7 keeps 4096.0.

bats_require_minimum_version 1.5.0

top=$BATS_TEST_DIRNAME/../..

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    railgauge run --fabric gb200-nvl72 --racks 2 --noise 3% --sim-seed 7 --no-plots -o c -b 1K -e 64M -f 16 >/dev/null || [ $? -eq 1 ]
    for day in 2 3; do
        cp -r c c$day
        sed -i "2s/\"time_utc\":\"[^\"]*/\"time_utc\":\"2026-01-0${day}T00:00:00Z/" c$day/points.tsv
    done
}

setup() { cd "$BATS_FILE_TMPDIR" || return 1; }

# whole FILE - no number ends in ".0", and every count of bytes is an integer or null.  Texts are left out.
whole() {
    [ -s "$1" ]
    jq -e . "$1" >/dev/null
    sed -E 's/: "([^"\\]|\\.)*"/: ""/' "$1" >numbers
    if grep -nE '[0-9]\.0([],} ]|$)' numbers; then return 1; fi
    if grep -nE '"([a-z_]*_)?bytes": ' numbers | grep -vE ': (-?[0-9]+|null|[[{"].*),?$'; then return 1; fi
}

@test "files of a campaign" {
    for file in c/*.json; do
        echo "$file"
        whole "$file"
    done
    [ "$(grep -c '"total_bytes"' c/prediction.json)" -ge 1 ]
}

@test "what commands print, all that have --json, with a format and its version" {
    matrix=c/matrix.json
    job=(--model llama3.1-8b --layout dp_shard=64 --gpus 64)
    mkdir -p imported
    railgauge export -f nccl-tests c -o r.json
    cat >commands <<EOF
accept c
check --fabric hgx-h100 --racks 1 --state state
check --last r00n00 --state state
compare c c
compare --history c c2 c3
cost $matrix 0 8 4K
cost $matrix all_gather 0-7 4K
curves $top/tests/bad/curves/good.tsv
declared c
discover --fabric gb200-nvl72 --racks 1
discover --libraries
explain c 0 8
fit c -o fitted.json
import r.json -o imported/points.tsv
lint c/topology.json
models
models llama3.1-8b
nodes $matrix --need 8 --job all_reduce_64M
place $matrix ${job[*]}
predict $matrix --model llama3.1-8b --layout dp_shard=144
predict $matrix --layout dp=auto --gpus 72,144 --what-if exceptions=none --tokens 1T --power 1kW
predict --case all
plan c/topology.json --dry-run
plot c heat -o pictures
run --fabric hgx-h100 --racks 1 --no-plots -b 1M -e 1M -o quick
seal fitted.json
tune $top/tests/golden/export/campaign
report c
search $matrix --model llama3.1-8b --gpus 72
show c
show c collectives
show c collectives --bytes 4K
show c findings
show c pairs
show c parts
show c points
show c tiers --bytes 4K
EOF
    seen="" answers=0
    while read -ra words; do
        echo "${words[*]}"
        railgauge "${words[@]//_64M/ 64M}" --json >out.json || [ $? -le 2 ]
        whole out.json
        jq -e '(.format | startswith("railgauge-")) and .version == 1' out.json >/dev/null || { cat out.json && return 1; }
        mkdir -p answers && cp out.json "answers/$((++answers)).json"
        seen+=" ${words[0]}"
    done <commands
    # What it looks like stands in a schema of the format's name.
    if python3 -c 'import jsonschema' 2>/dev/null; then
        python3 -W ignore - "$top" answers/*.json <<'PY'
import json, os, sys
import jsonschema
top = sys.argv[1]
for path in sys.argv[2:]:
    answer = json.load(open(path))
    name = answer["format"].removeprefix("railgauge-")
    schema = [f for f in (f"{top}/{d}/schema/{name}.schema.json" for d in ("src", "topo")) if os.path.exists(f)]
    assert schema, f"no schema of {answer['format']}"
    base = f"file://{os.path.abspath(schema[0])}"
    schema = json.load(open(schema[0]))
    resolver = jsonschema.RefResolver(base, schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema, resolver=resolver)
    errors = [f"{list(e.path)}: {e.message[:300]}" for e in validator.iter_errors(answer)]
    assert not errors, (answer["format"], errors[:3])
PY
    fi
    # A command that learns --json is to be added above; these need ranks or a scheduler's words.
    for command in $(railgauge --help | awk '/^  [a-z]/ {print $1}'); do
        [[ " check-placement replay $seen " != *" $command "* ]] || continue
        if railgauge "$command" --help=all | grep -- ' --json'; then echo "$command" && return 1; fi
    done
}
