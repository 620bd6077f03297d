#!/usr/bin/env bats
# exit_codes.bats - each command ends with each of the codes that it promises; the man page has the table.

bats_require_minimum_version 1.5.0

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    healthy=(--transport sim --no-plots --fabric hgx-h100 --racks 1 --noise 1% --op "pair_bw,pair_latency")
    railgauge run "${healthy[@]}" -o good || return 1
    railgauge run "${healthy[@]}" -o slow --fault slow-gpu=3:0.5 || [ $? -eq 1 ] || return 1
    railgauge run "${healthy[@]}" -o dead --fault dead-host=1 || [ $? -eq 1 ] || return 1
    echo '{' >torn.json
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    new=(--transport sim --no-plots --fabric hgx-h100 --racks 1 -n 4 --op pair_bw --pair-bytes 1M -e 1M)
    fits=(--fabric hgx-h100 --racks 2 --layout "tp=8,dp_shard=8" --model llama3.1-8b)
    large=(--fabric hgx-h100 --racks 2 --layout dp_shard=64 --model llama3.1-405b)
}

# ends CODE WORD...: railgauge WORD... ends with that code.
ends() {
    local want=$1
    shift
    run railgauge "$@"
    [ "$status" -eq "$want" ] || {
        echo "railgauge $*: $status where $want is promised: $output"
        return 1
    }
}

@test "run and fit: 0, 1 where a part is named, 64, 65, 66, 74, 75, 78" {
    ends 0 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c1"
    ends 78 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c1" # it holds a campaign
    ends 75 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c2" --budget 1ns
    ends 1 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c3" --fault slow-host=1:0.5
    ends 0 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c4" --fault slow-host=1:0.5 --no-verdict
    ends 1 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c5" --fault corrupt=3
    ends 64 run "${new[@]}" -o "$BATS_TEST_TMPDIR/c6" --fault fire=3
    ends 66 run --resume -o nowhere
    ends 74 run "${new[@]}" -o /proc/none
    ends 0 fit good
    ends 1 fit slow
    ends 1 fit dead -q
    ends 0 fit slow --no-verdict
    ends 64 fit
    ends 65 fit torn.json good/plan.tsv good/points.tsv -o m.json
    ends 66 fit nowhere
    ends 74 fit good -o /proc/none/m.json
}

@test "show, cost and explain only look: 0 whatever they show, 64, 65, 66" {
    for look in "show DIR" "cost DIR 0 9 1M" "explain DIR 0 9"; do
        for case in 0:good 0:slow 0:dead 65:torn.json 66:nowhere; do
            # shellcheck disable=SC2086 # words
            ends "${case%:*}" ${look/DIR/${case#*:}}
        done
        # shellcheck disable=SC2086 # words
        ends 64 ${look/DIR/good} --no-such-option
    done
}

@test "predict, place and search: 0, 1 where nothing fits, 2 where there is no price, 64, 65, 66" {
    ends 0 predict "${fits[@]}"
    ends 1 predict "${large[@]}"
    [[ ${lines[0]} == "DOES NOT FIT: "*" GB too much"* ]]
    ends 2 predict dead --layout tp=8,dp_shard=4 --model llama3.1-8b
    ends 0 place "${fits[@]}"
    ends 1 place "${large[@]}"
    [[ ${lines[0]} == "DOES NOT FIT: "* ]]
    ends 0 search --fabric hgx-h100 --racks 1 --model llama3.1-8b --constraint 'pp=1,tp=8,cp=1'
    ends 1 search --fabric hgx-h100 --racks 1 --model llama3.1-405b --constraint 'pp=1,tp=8,cp=1'
    for command in predict place search; do
        ends 64 "$command" good --no-such-option
        ends 65 "$command" torn.json --model llama3.1-8b
        ends 66 "$command" nowhere.json --model llama3.1-8b
    done
}

@test "the man page tells what 1 means for each command that ends with it" {
    table=$(sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$BATS_TEST_DIRNAME/../../src/railgauge.1")
    one=$(sed -n '/^\.It 1$/,/^\.It 2$/p' <<<"$table" | tr '\n' ' ')
    for command in run fit predict place search lint declared check-placement discover show cost explain export; do
        [[ $one == *" $command "* ]]
    done
    for code in $(sed -n 's/^ *EXIT_[A-Z]* = \([0-9]*\),.*/\1/p' "$BATS_TEST_DIRNAME/../../src/base/err.h"); do
        grep -qx "\.It $code" <<<"$table"
    done
}
