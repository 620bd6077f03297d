#!/usr/bin/env bats
# accept.bats - railgauge accept: the verdict of a campaign, its limits, references and exit codes.

bats_require_minimum_version 1.5.0

load rejects

top=$BATS_TEST_DIRNAME/../..

# campaign NAME OPTION...: two racks, 2 % noise.
campaign() {
    railgauge run --transport sim --no-plots --racks 2 --noise 2% --no-verdict -o "$@"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    # The same fabric with every NIC at half its rate, and none of it odd among its peers.
    jq '.name = "half" | (.tiers[] | select(.nic) | .bandwidth_Bps.value, .bidirectional_Bps.value) /= 2' \
        "$top/topo/fabrics/gb200-nvl72.json" > half.json
    campaign good --fabric gb200-nvl72 --sim-seed 1
    campaign again --fabric gb200-nvl72 --sim-seed 2
    campaign half --fabric ./half.json
    campaign slow --fabric gb200-nvl72 --fault slow-nic=17:0.6
    campaign wrong --fabric gb200-nvl72 --fault corrupt=3
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

# limits ROW...: site.json with these rows.
limits() {
    local IFS=,
    echo "{\"format\": \"railgauge-limits\", \"version\": 1, \"title\": \"site\", \"limits\": [$*]}" > site.json
}

@test "a healthy fabric passes, and what was not compared is not called good" {
    run -0 railgauge accept good
    [[ ${lines[0]} == "PASS: "*" checks pass" ]]
    [[ ${lines[1]} == "good compared with gb200-nvl72, limits: defaults of railgauge" ]]
    [[ ${lines[2]} =~ ^"passed: "[0-9]+" checks, listed with --all"$ ]]
    [[ $output != *"tier rail"* ]]
    railgauge accept good --all | grep -qE "^tier rail, bandwidth of a pair +[0-9.]+ GB/s .* GB/s +>= 44.3 GB/s$"
    run -0 railgauge accept good --json
    [ "$(jq '[.failed, .unknown, .warnings] | add' <<< "$output")" = 0 ]
    # Published: 836.9 GB/s of all_reduce over 72 GPUs, measured within the noise of it.
    [ "$(jq '.checks[] | select(.what | startswith("all_reduce 72 ranks")) | .value / 837e9 | . > 0.97 and . < 1.03' <<< "$output")" = true ]
    run -2 railgauge accept good/matrix.json --json
    # Without the points nobody knows how many were verified.
    [ "$(jq -r '.verdict' <<< "$output")" = UNKNOWN ]
}

@test "the whole fabric at half its rate fails, with the reason in the first line" {
    run -0 railgauge show half findings
    [[ $output == "No slow part found"* ]]
    run -1 railgauge accept half --against gb200-nvl72
    [[ ${lines[0]} == "FAIL: "*"tier rail, bandwidth of a pair: 24."*" GB/s, limit 44.3 GB/s, 90.0 % of gb200-nvl72 (49.2 GB/s)" ]]
    [[ $output == *"the whole fabric, beside gb200-nvl72: 50 % of normal, "* ]]
    [[ $output == *$'\nfailed ('*$'\ntier rail, '* ]]
    run -0 railgauge show half parts
    [[ $output == "No slow part found" ]]
}

@test "one part, wrong data: each its own line" {
    run -1 railgauge accept slow
    [[ ${lines[0]} == "FAIL: 1 of "*" checks fails; NIC mlx5_1 of r00n04 (GPU 1), speed over all NICs: "*" %, limit 90.0 %" ]]
    run -1 railgauge accept wrong
    [[ ${lines[0]} == "FAIL: "*"points with wrong data, of "*" that were verified: "*", limit 0" ]]
}

@test "another campaign as the reference; nothing known is unknown, one of other GPUs is refused" {
    run -0 railgauge accept again --against good
    [[ ${lines[1]} == "again compared with good, "* ]]
    run -1 railgauge accept half --against good/matrix.json
    run -0 railgauge accept half --against half
    # A fabric of no preset, and of GPUs that none has.
    jq --slurpfile gpu "$BATS_TEST_DIRNAME/../../topo/gpus/$(jq -r .gpu half.json).json" '
        .gpu = $gpu[0].gpu | .gpu.name = "Model T" | .sources += $gpu[0].sources | .name = "home"' half.json > home.json
    campaign home --fabric ./home.json
    run -2 railgauge accept home
    [[ $output == *"not judged ("*"tier rail, bandwidth of a pair; no preset is known for this machine; --against names one"* ]]
    rejects accept 65 "--against hgx-h100: that is of NVIDIA H100 SXM, the campaign of NVIDIA GB200" good --against hgx-h100
    rejects accept 66 "nowhere" good --against ./nowhere.json
}

@test "limits of a site: bounds with their units, judged by the whole interval" {
    limits '{"check": "tier-bandwidth", "tier": "rail", "at_least": "360 Gb/s", "source": "contract 4.2"}' \
        '{"check": "busbw", "op": "all_reduce", "ranks": 72, "bytes": "1G", "at_least": "600 GB/s", "warn": "750 GB/s", "source": "contract 4.3"}'
    run -0 railgauge accept good --limits site.json -o accept.json
    [[ ${lines[0]} == "WARN: 1 of 2 checks warns; all_reduce 72 ranks, 1 domain, 1 GiB: "* ]]
    [ "$(jq -r '.checks[1] | "\(.limit) \(.unit) \(.source)"' accept.json)" = "45000000000 Bps contract 4.2" ]
    # As many GPUs of one domain and one of each domain are not the same.
    campaign wide --fabric hgx-h100 --racks 8
    for domains in 1 8; do
        limits "{\"check\": \"busbw\", \"op\": \"all_reduce\", \"ranks\": 8, \"domains\": $domains, \"at_least\": \"300 GB/s\", \"source\": \"x\"}"
        run -$((domains > 1)) railgauge accept wide --limits site.json
        [[ ${lines[0]} == *"all_reduce 8 ranks, 8 domains of 1, "* || $domains == 1 ]]
    done
    run -0 railgauge accept wide
    # Above what was measured, but inside of its interval: neither good nor bad.
    bound=$(jq '.checks[1] | (.value + .high) / 2e9' accept.json)
    limits "{\"check\": \"tier-bandwidth\", \"tier\": \"rail\", \"at_least\": \"$bound GB/s\", \"source\": \"x\"}"
    run -0 railgauge accept good --limits site.json
    [[ $output == *"warnings (1)"*"the limit lies inside of the interval"* ]]
}

@test "a limit whose measurement is missing is unknown and exit 2; an optional one does not count" {
    limits '{"check": "busbw", "op": "all_reduce", "ranks": 72, "bytes": "64G", "at_least": "600 GB/s", "source": "x"}'
    run -2 railgauge accept good --limits site.json
    [[ ${lines[0]} == "UNKNOWN: 1 of 1 checks could not be judged; all_reduce 72 ranks, 1 domain, 64 GiB: measured only to 8 GiB" ]]
    limits '{"check": "tier-bandwidth", "tier": "moon", "at_least": "1 GB/s", "source": "x"}'
    run -2 railgauge accept good --limits site.json
    limits '{"check": "tier-bandwidth", "tier": "moon", "at_least": "1 GB/s", "optional": true, "source": "x"}' \
        '{"check": "dead-parts", "at_most": "0", "source": "x"}'
    run -0 railgauge accept good --limits site.json
    limits
    run -2 railgauge accept good --limits site.json
}

@test "bad limits are refused with file, row, key and value" {
    limits '{"check": "busbw", "domains": 0, "at_least": "1 GB/s", "source": "x"}'
    rejects accept 65 'site.json: limits[0]: domains is not a whole number from 1 on' good --limits site.json
    limits '{"check": "speed", "at_least": "1 GB/s", "source": "x"}'
    rejects accept 65 'site.json: limits[0]: no check "speed"' good --limits site.json
    limits '{"check": "tier-bandwidth", "at_least": "12 us", "source": "x"}'
    rejects accept 65 'site.json: limits[0]: at_least: "12 us" is not a rate such as 45 GB/s' good --limits site.json
    limits '{"check": "tier-bandwidth", "at_least": "450", "source": "x"}'
    rejects accept 65 '"450" is not a rate' good --limits site.json
    limits '{"check": "tier-bandwidth", "at_most": "450 GB/s", "source": "x"}'
    rejects accept 65 'check "tier-bandwidth" needs "at_least" and nothing else' good --limits site.json
    limits '{"check": "tier-latency", "at_most": "9", "source": "x"}'
    rejects accept 65 '"9" is not a time such as 12 us' good --limits site.json
    limits '{"check": "tier-spread", "at_most": "5 %", "of": "reference", "source": "x"}'
    rejects accept 65 'check "tier-spread" has no share of "reference"' good --limits site.json
    limits '{"check": "dead-parts", "at_most": "0", "tier": "rail", "source": "x"}'
    rejects accept 65 'check "dead-parts" has no "tier"' good --limits site.json
    limits '{"check": "busbw", "op": "allsum", "at_least": "1 GB/s", "source": "x"}'
    rejects accept 65 'no operation "allsum"' good --limits site.json
    limits '{"check": "part-speed", "at_least": "90 %", "warn": "80 %", "source": "x"}'
    rejects accept 65 'warn 80 % lies beyond the bound 90 %' good --limits site.json
    limits '{"check": "dead-parts", "at_most": "0", "colour": "red", "source": "x"}'
    rejects accept 65 'colour' good --limits site.json
    limits '{"check": "dead-parts", "at_most": "0"}'
    rejects accept 65 'source' good --limits site.json
    rejects accept 66 'none.json' good --limits none.json
}

@test "nagios: one line, figures behind the bar, 0 1 2 3" {
    run -0 railgauge accept good --exit-style nagios
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "RAILGAUGE OK - "*" | "*"'tier rail, bandwidth of a pair'="*";;4.428e+10:"* ]]
    run -2 railgauge accept half --against gb200-nvl72 --exit-style nagios
    [[ $output == "RAILGAUGE CRITICAL - "* ]]
    run -3 railgauge accept good/matrix.json --exit-style nagios
    limits '{"check": "part-speed", "at_least": "50 %", "warn": "99 %", "source": "x"}'
    run -1 railgauge accept slow --limits site.json --exit-style nagios
    [[ $output == "RAILGAUGE WARNING - "* ]]
}

@test "limits and verdicts keep to their schemas, and every check is listed" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    railgauge accept slow -o slow.json -q || [ $? -eq 1 ]
    railgauge accept good/matrix.json -o matrix.json -q || [ $? -eq 2 ]
    for f in slow.json matrix.json; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$top/src/schema/accept.schema.json" $f
    done
    for f in "$top"/jobs/limits/*.json; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$top/src/schema/limits.schema.json" "$f"
    done
    run -0 railgauge accept --list-checks
    [ "$(jq -r '.properties.limits.items.properties.check.enum[]' "$top/src/schema/limits.schema.json")" = "$(awk '{ print $1 }' <<< "$output")" ]
}

@test "what no pair met is not accepted: NICs of a rack without the pass through them, and with it" {
    rack() { railgauge run --fabric gb200-nvl72 --noise 2% --op pairs -f 16 --no-plots -o "$@" >/dev/null; }
    rack blind --no-nic-pass
    run -2 railgauge accept blind -o a.json
    [[ ${lines[0]} == *"parts of kind nic: share that can be judged: 72 of 72 met too few others" ]]
    [ "${lines[-1]}" = "checked: 72 of 72 GPUs, 0 of 72 NICs, 18 of 18 hosts, 0 of 4 leaves, 0 of 4 leaves' uplinks" ]
    [ "$(jq -c '.seen[1] | [.part, .parts == 72, .judged == 0]' a.json)" = '["nic",true,true]' ]
    [ "$(jq -c '[.seen[] | select(.part == "nic") | .judged == 0]' blind/matrix.json)" = "[true]" ]
    rack seen
    run -0 railgauge accept seen
    [[ ${lines[-1]} == "checked: 72 of 72 GPUs, 72 of 72 NICs, 18 of 18 hosts, 4 of 4 leaves, 4 of 4 leaves' uplinks, cables: "*" % of 2,556 pairs of NICs" ]]
    railgauge show seen | grep -q "^checked: 72 of 72 GPUs, 72 of 72 NICs"
    printf '{"format": "railgauge-limits", "version": 1, "title": "site", "limits": [{"check": "seen", "part": "cable", "at_least": "99 %%", "source": "site"}]}' >l.json
    run -2 railgauge accept seen --limits l.json
    [[ ${lines[0]} == "UNKNOWN: 1 of 1 checks could not be judged; parts of kind cable: share that can be judged: "*" of 2556 met too few others" ]]
}

@test "between domains a publisher's curve is an expectation, another campaign of the machine a bound" {
    campaign spread --fabric hgx-h100 --racks 4 --op all_reduce
    between='[.checks[] | select(.what | contains(" 4 domains of 8")) | .check] | unique'
    railgauge accept spread -o preset.json || true
    [ "$(jq -c "$between" preset.json)" = '["collective"]' ]
    railgauge accept spread --against spread -o own.json || true
    [ "$(jq -c "$between" own.json)" = '["busbw"]' ]
}

# --- limits of a site ---

@test "limits are learned from good campaigns: the end of an interval for one more, at least 3 % away" {
    for i in 0 1 2; do # NICs 1 % slower and faster, without noise
        jq --arg f "0.9$((9 - i))" '.name = "nic" | (.tiers[] | select(.nic) | .bandwidth_Bps.value, .bidirectional_Bps.value) *= ($f | tonumber)' \
            "$top/topo/fabrics/gb200-nvl72.json" >"nic$i.json"
        railgauge run -t sim --no-plots -q --racks 2 --no-verdict --fabric "./nic$i.json" -o "day$i"
        railgauge run -t sim --no-plots -q --racks 2 --no-verdict --fabric gb200-nvl72 --sim-seed "$i" -o "same$i"
    done
    for day in day{0,1,2} same1; do railgauge accept "$day" -q -o "$day.json" --against gb200-nvl72; done
    railgauge accept --learn days.json day0 day1 day2 --against gb200-nvl72
    railgauge accept --learn same.json same0 same1 same2
    railgauge accept same1 --limits same.json --against gb200-nvl72
    python3 - <<-'END'
	import json, math
	def rows(file): return {(r["check"], r.get("tier"), r.get("op"), r.get("ranks")): r for r in json.load(open(file))["limits"]}
	def number(text): return float(text.split()[0])
	def rate(day, tier):
	    return next(c["value"] for c in json.load(open(day + ".json"))["checks"] if c["what"] == f"tier {tier}, bandwidth of a pair") / 1e9
	days, same = rows("days.json"), rows("same.json")
	logs = {t: [math.log(rate(f"day{i}", t)) for i in range(3)] for t in ("mnnvl", "rail", "fabric")}
	squares = sum((x - sum(v) / 3) ** 2 for v in logs.values() for x in v)
	away = 6.9646 * math.sqrt(squares / 6) * math.sqrt(4 / 3) # t of 2 degrees of freedom, 99 % to one side
	assert away > 0.05
	for tier, v in logs.items():
	    want = math.exp(sum(v) / 3 - away)
	    got = number(days["tier-bandwidth", tier, None, None]["at_least"])
	    assert abs(got / want - 1) < 0.006, (tier, got, want) # three digits are written
	    got, want = number(same["tier-bandwidth", tier, None, None]["at_least"]), 0.97 * rate("same1", tier)
	    assert abs(got / want - 1) < 0.006, (tier, got, want)
	assert same["busbw", None, "all_reduce", 72]["bytes"] == "8589934592" and ("busbw", None, "all_reduce", 2) in same
	assert days["wrong-data", None, None, None]["at_most"] == "0" and not any(k[0] == "busbw" and not k[2] for k in same)
	END
    # what is 4 % below fails, what is 2 % below does not
    for share in 0.96 0.98; do
        jq --arg f $share '(.tiers[] | select(.nic) | .bandwidth_Bps.value, .bidirectional_Bps.value) *= ($f | tonumber)' \
            "$top/topo/fabrics/gb200-nvl72.json" >less.json
        rm -rf less
        railgauge run -t sim --no-plots -q --racks 2 --no-verdict --fabric ./less.json -o less
        run railgauge accept less --limits same.json --against gb200-nvl72
        echo "$share: $status"
        [ "$status" -eq $([ $share = 0.96 ] && echo 1 || echo 0) ]
    done
}

@test "limits are not learned from two campaigns, nor from one that fails" {
    run -64 railgauge accept --learn none.json good again
    [[ $output == *"2 campaigns: limits are learned from 3 or more"* ]]
    run -1 railgauge accept --learn none.json good again slow
    [[ $output == *"slow is no good campaign to learn from: FAIL: "* ]]
    run -64 railgauge accept good again
    [[ $output == *"again: one campaign is judged at a time"* ]]
    [ ! -e none.json ]
}

@test "each rack has a verdict: text, JSON and JUnit; a rack without a part is not judged where parts were not" {
    railgauge run -t sim --no-plots -q --racks 3 --no-verdict --fabric gb200-nvl72 --fault slow-nic=80:0.6 --fault slow-gpu=150:0.93 -o racks
    run -1 railgauge accept racks
    [[ $output == *"racks: 1 of 3 pass; rack-01 fails, rack-02 warns"* ]]
    run -1 railgauge accept racks --json
    [ "$(jq -r '.racks[] | "\(.rack) \(.verdict) \(.parts != "")"' <<<"$output" | xargs)" = "rack-00 PASS false rack-01 FAIL true rack-02 WARN true" ]
    railgauge export -f junit racks >racks.xml || true
    [ "$(grep -c 'classname="railgauge.rack"' racks.xml)" -eq 3 ]
    railgauge export -f ctrf racks >racks.ctrf || true
    [ "$(jq '.results.summary.start / 1000 - now | . > -3600 and . <= 1' racks.ctrf)" = true ]
    grep -A1 'name="rack-01"' racks.xml | grep -q '<failure'
    run ! grep -A1 'name="rack-02"' racks.xml --max-count 1 -e '<failure'
    # with one partner of each tier no host of a healthy fabric is called misplaced
    railgauge run -t sim --no-plots -q --racks 3 --no-verdict --fabric gb200-nvl72 --matchings 1 --epochs 1 -o few
    run railgauge accept few --json
    [ "$(jq -r '.verdict + " " + ([.racks[].verdict] | unique | join(","))' <<<"$output")" = "UNKNOWN UNKNOWN" ]
}
