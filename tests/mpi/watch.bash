# watch.bash - what the tests of the watch share: its verdict, and what is left of a campaign.
# shellcheck shell=bash disable=SC2154,SC2034

here=$(hostname)

# verdict FILE KIND RANK - what verdict.json says; its points are those of the file beside it.
verdict() {
    jq -e --arg kind "$2" --argjson rank "$3" --arg host "$here" --argjson kept "$(rows "${1%verdict.json}points.tsv")" \
        '.format == "railgauge-verdict" and .kind == $kind and .culprit.rank == $rank and .culprit.endpoint == $rank
            and .culprit.host == $host and .points.kept == $kept and .ranks[$rank].pid == .culprit.pid' "$1"
}

# Ended, or another one has its number by now.
gone() { ended "$1" || ! grep -qs '^railgauge-probe' "/proc/$1/comm"; }

# struck RANKS VERDICT RANK WORDS - `railgauge run "${args[@]}"` with the fault that is in the environment; then,
# without it, to the end.
struck() {
    run timeout 300 railgauge run -o dir --ranks "$1" "${args[@]}"
    ended=$(date +%s.%N)
    echo "$output"
    [ "$status" -eq 75 ]
    cp -p dir/verdict.json verdict.kept
    verdict dir/verdict.json "$2" "$3"
    local who
    who="rank $3 (host $here, pid $(jq .culprit.pid dir/verdict.json))"
    [ "$(grep -c "^railgauge run: $who.*; $(rows dir/points.tsv) of [0-9]* points are kept, --resume measures the rest" <<<"$output")" -eq 1 ]
    [[ $output == *"$who"*"$4"* ]]
    for pid in $(jq '.ranks[].pid' dir/verdict.json); do
        await 30 gone "$pid"
    done
    cp dir/points.tsv kept.tsv
    [[ " $(column stop kept.tsv | xargs) " != *" failed "* ]]
    unset FAKE_FAULT RAILGAUGE_FAULT
    run -0 timeout 300 railgauge run --no-verdict --resume -o dir --ranks "$1" "${args[@]}" --hang-after 60s
    cmp <(head -c "$(stat -c %s kept.tsv)" dir/points.tsv) kept.tsv
    [ "$(rows dir/points.tsv)" -gt "$(rows kept.tsv)" ]
    [ ! -e dir/verdict.json ]
}

# Also: the token of the watch is nobody's business.
keeps_to_schema() {
    run ! grep -q RAILGAUGE_WATCH= "$1"
    python3 -c 'import jsonschema' 2>/dev/null || return 0
    python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
        "$BATS_TEST_DIRNAME/../../src/schema/verdict.schema.json" "$1"
}
