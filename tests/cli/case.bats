#!/usr/bin/env bats
# case.bats - published claims and our verdicts: text, JSON, Markdown, exit codes, the table of claims.md.

bats_require_minimum_version 1.5.0

# All cases once, as a table and for programs: some seconds.
setup_file() {
    railgauge-calibrate claims all --markdown -o "$BATS_FILE_TMPDIR/v.json" >"$BATS_FILE_TMPDIR/v.md" || echo $? >"$BATS_FILE_TMPDIR/code"
    # A case of many unknowns takes as long as a tenth of all others.
    railgauge-calibrate claims "$BATS_TEST_DIRNAME/../bad/case/good.json" llama-8b-gb200-h100 -o "$BATS_FILE_TMPDIR/two.json" \
        >"$BATS_FILE_TMPDIR/two.txt"
}

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "every shipped case keeps the verdicts that it states" {
    [ ! -e "$BATS_FILE_TMPDIR/code" ] || { railgauge-calibrate claims all | grep -B3 -A2 "expected:"; false; }
    for f in "$top"/jobs/training/cases/*.json; do
        jq -e --slurpfile case "$f" 'any(.cases[]; .title == $case[0].title and .claims[0].claim == $case[0].claims[0].claim)' \
            "$BATS_FILE_TMPDIR/v.json" >/dev/null
    done
}

@test "a verdict that is not the expected one is exit 1 and said" {
    jq '.claims[0].published = 50' "$top/tests/bad/case/good.json" >c.json
    run railgauge-calibrate claims c.json
    [ "$status" -eq 1 ]
    [[ $output == *"published 50.0 %, ours "*": cannot follow (anchored); expected: reproduced"* ]]
    [[ $output == *"the claim needs "* ]]
}

@test "several cases are judged in turn, as JSON that keeps to what the files say" {
    cp "$BATS_FILE_TMPDIR/two.json" out.json
    jq -e '.format == "railgauge-verdicts" and (.cases | length) == 2' out.json
    jq -e 'all(.cases[].claims[]; .reason != "" and .lo <= .ours and .ours <= .hi)' out.json
    jq -e '.cases[1].claims[] | select(.claim == "24 H100") | .kind == "time" and .factor > 1 and .choosers > 0' out.json
    jq -e '.counts | [.[][]] | add == ([input.cases[].claims | length] | add)' out.json out.json
    jq -e '.cases[0].solved[0] | .setting == "stretch" and .found > 1' out.json
    railgauge-calibrate claims "$top/tests/bad/case/good.json" --json -o v.json >good.json
    diff <(jq 'del(.provenance)' good.json) <(jq 'del(.provenance)' v.json)
}

@test "an excluded claim says what the set-up gives and what would be needed" {
    output=$(<"$BATS_FILE_TMPDIR/two.txt")
    [[ $output == *"24 to 32 H100"*"cannot follow"*"h32: "*" of messages (the claim needs "* ]]
    [[ $output == *"176.7 %, -1.3 points: the published figures contradict each other"* ]]
}

# Claim, published figure and verdict exactly; our figure within 5 %.
@test "claims.md has the table of the command" {
    cp "$BATS_FILE_TMPDIR/v.md" want
    sed -n '/^<!-- cases/,/^<!-- end of cases/{/^<!--/d;p}' "$top/jobs/training/claims.md" >have
    paste -d '\n' want have | awk -F ' [|] ' '
        NR % 2 { n = split($0, want, FS); next }
        {
            split(want[4], a, /[:|]/); split($4, b, /[:|]/)
            x = want[3] + 0; y = $3 + 0
            if (want[1] != $1 || want[2] != $2 || a[1] != b[1] || (x - y) ^ 2 > (0.05 * x) ^ 2 + 0.01) {
                print "have " $0 "\nwant " want[1] " | " want[2] " | " want[3] " | " want[4]
                bad = 1
            }
        }
        END { exit bad }' || { echo "make tables puts it there"; false; }
}

@test "what is not stated is not chosen by the row that is judged, and the foot counts kinds apart" {
    jq '.unknown = [{setting: "seq", values: [4096, 2048], why: "w"}] | del(.solve)
        | .claims = [.claims[0] | .value = "one.step_s" | .unit = "s" | .expect = "undecided" | del(.readings)]' \
        "$top/tests/bad/case/good.json" >one.json
    railgauge-calibrate claims one.json --json >short.json || true
    jq --argjson s "$(jq '.cases[0].claims[0].lo * 1.02' short.json)" '.claims[0].published = $s' one.json >c.json
    run railgauge-calibrate claims c.json
    [ "$status" -eq 0 ]
    [[ $output == *": undecided"*", open: seq; so with seq 2048, not with seq 4096"* ]]
    [[ $output == *"predicted times: 1 undecided"* ]]
    jq '.claims += [{claim: "tokens", value: "one.tokens", published: 16384, unit: "", expect: "undecided"}]' c.json >two.json
    run railgauge-calibrate claims two.json
    [[ $output == *", with seq 2048 as 1 other row chooses"* ]]
    [[ $output == *"arithmetic of the published figures: 1 "* ]]
    railgauge-calibrate claims two.json --markdown | grep -F '| **predicted times** | | | 1 '
}

@test "case files and verdicts keep to their schemas" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    python3 - "$top/src/schema" "$BATS_FILE_TMPDIR/v.json" "$top"/jobs/training/cases/*.json "$top/tests/bad/case/good.json" <<'PY'
import json, jsonschema, sys
schemas, verdicts, *cases = sys.argv[1:]
for schema, files in ("verdicts", [verdicts]), ("case", cases):
    schema = json.load(open(f"{schemas}/{schema}.schema.json"))
    for f in files:
        jsonschema.validate(json.load(open(f)), schema)
PY
}

@test "constants of the command line are those of the jobs" {
    jq '(.constants[] | select(.name == "efficiency.hopper.bf16") | .value) |= . / 2' \
        "$top/jobs/training/constants.json" >slow.json
    jq '.claims[0].value = "one.step_s" | .claims[0].unit = "s" | del(.solve)' "$top/tests/bad/case/good.json" >c.json
    fast=$(railgauge-calibrate claims c.json --json | jq '.cases[0].claims[0].ours') || true
    slow=$(railgauge-calibrate claims c.json --constants slow.json --json | jq '.cases[0].claims[0].ours') || true
    jq -en "$slow > 1.3 * $fast"
}
