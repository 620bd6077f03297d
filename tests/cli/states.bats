#!/usr/bin/env bats
# states.bats - a part in any state has the same name, state and effect on every surface, and an exit code.

bats_require_minimum_version 1.5.0

# Every kind of part, in a fabric of 2 racks x 4 hosts x 8 GPUs with leaves and rails of its own.
parts='{"endpoint": [9, -1], "host": [2, -1], "pair": [1, 57], "leaf": [1, -1], "rack": [1, -1],
        "rack_pair": [0, 1], "rack_uplinks": [0, -1]}'

# State, depth, share, bytes, and what files and screens say of it.
states() {
    cat <<'END'
slow|0.5|0|0|0.50|50 % of normal
intermittent|0.5|0.4|0|0.50 in 40 % of the time|50 % of normal in 40 % of the time
under-load|0.45|0|0|0.45 beside other traffic|45 % of normal beside other traffic
both-ways|0.6|0|0|0.60 both ways at once|60 % of normal both ways at once
small-sizes|0.3|0|65536|0.30 up to 64 KiB|30 % of normal up to 64 KiB
large-sizes|0.3|0|134217728|0.30 from 128 MiB on|30 % of normal from 128 MiB on
slow-samples|0.5|0.1|0|10 % of messages at 0.50|10 % of messages at 50 % of normal
lost-uplinks|0.5|0|0|0.50 of its uplinks|50 % of its uplinks
late|0|0|0|+3.00 us|3.00 us more latency
dead|0|0|0|no answer|no answer
wrong|0|0.075|0|wrong data in 3 of 40 checks|wrong data in 3 of 40 checks
END
}

# with_state STATE DEPTH SHARE BYTES: the campaign `case` with every kind of part in this state.
with_state() {
    jq -c --argjson parts "$parts" --arg s "$1" --argjson d "$2" --argjson q "$3" --argjson b "$4" '
        ({slow: $d, intermittent: (1 / (1 - $q + $q / (if $d > 0 then $d else 1 end))), dead: 0, wrong: 0}[$s] // 1) as $f |
        .exceptions = [$parts | to_entries[] | {part: .key, side: "both", a: .value[0], b: .value[1],
            factor: $f, alpha_add_s: (if $s == "late" then 3e-6 else 0 end), evidence: 3, alone: 2, partners: 3,
            wrong: ($s == "wrong"), state: $s, depth: $d, share: $q, bytes: $b, why: "3 checks"}
            | if .b < 0 then del(.b) else . end | if .wrong then . else del(.wrong) end]' good/matrix.json > case/matrix.json
    railgauge seal case/matrix.json > /dev/null
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    railgauge run --transport sim --fabric hgx-h100 --racks 2 --noise 2% --no-plots -o good > /dev/null
    cp -r good case
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

# none FILE: no surface prints what is not known as a number.
none() {
    ! grep -niw nan "$1" || return 1
}

# count N TEXT FILE: at least so many lines have it.
count() {
    local n
    n=$(grep -cF -- "$2" "$3") || true
    [ "$n" -ge "$1" ] || { echo "$3: $n of $1 lines with \"$2\""; return 1; }
}

@test "every kind of part in every state is on every surface" {
    while IFS='|' read -r state depth share bytes effect words; do
        with_state "$state" "$depth" "$share" "$bytes"
        echo "# $state"
        railgauge show case parts > parts.txt
        count 7 ": $words, confidence " parts.txt
        count 7 "  next step   " parts.txt
        none parts.txt
        railgauge show case parts --json | jq -e --arg s "$state" --arg e "$effect" \
            '[.parts[] | select(.state == $s and .effect == $e and (.next | length > 9))] | length == 7'
        railgauge show case findings > findings.txt
        count 7 "$words" findings.txt
        none findings.txt
        rc=0
        railgauge accept case -o accept.json > accept.txt || rc=$?
        [ "$rc" = 1 ] || { head -3 accept.txt; return 1; }
        count 5 "$words" accept.txt
        none accept.txt
        jq -e --arg s "$state" '.verdict != "PASS" and ([.parts[] | select(.state == $s)] | length == 7)' accept.json
        railgauge export --format openmetrics case > m.prom
        count 7 "state=\"$state\"" m.prom
        none m.prom
        railgauge export --format junit case > j.xml || true
        count 1 "$effect" j.xml
        none j.xml
        railgauge report case -o r.html > report.txt || true
        count 7 "$state" r.html
        count 5 "$words" report.txt
        railgauge explain case 9 57 > e.txt
        count 1 "$words" e.txt
    done < <(states)
}

@test "one part has one name on every surface" {
    with_state intermittent 0.5 0.4 0
    name='NIC mlx5_1 of su0n01 (GPU 1)'
    name=$(railgauge show case parts --json | jq -r '.parts[] | select(.kind == "nic").name')
    [[ $name == "NIC "*" (GPU 1)" ]]
    for command in "show case parts" "show case findings" "accept case" "export --format junit case" \
        "export --format openmetrics case" "explain case 9 57" "cost case/matrix.json 9 57 64M"; do
        run railgauge $command
        [[ $output == *"$name"* ]] || { echo "$command: $output"; return 1; }
    done
}

@test "a part that became intermittent is new, one that is slow at all times is worse" {
    railgauge run --transport sim --fabric hgx-h100 --racks 2 --noise 2% --no-plots -o became --sim-seed 2 \
        --fault slow-nic=9:0.5@time=0.5 > /dev/null || true
    run -1 railgauge compare good became
    [[ $output == *"1 part new"* ]]
    [[ $output == *" % of the time"* ]]
    # A part that a matrix names and no point shows is noise.
    with_state intermittent 0.5 0.4 0
    run -0 railgauge compare good case
    cp -r case then
    with_state slow 0.5 0 0
    run -1 railgauge compare then case
    [[ $output == *"7 parts worse"* ]]
    run -0 railgauge compare case then
    [[ $output == *"7 parts better"* ]]
}

@test "prices expect the average of an intermittent part, and no effect of other conditions" {
    sec() { railgauge cost case/matrix.json 9 20 1G --json | jq '.seconds // .time_s // .s'; }
    with_state late 0 0 0
    jq '.exceptions = []' good/matrix.json > case/matrix.json && railgauge seal case/matrix.json > /dev/null
    usual=$(sec)
    with_state intermittent 0.5 0.4 0
    jq -n --argjson a "$(sec)" --argjson b "$usual" '$a / $b | . > 1.39 and . < 1.41' | grep -q true
    with_state under-load 0.45 0 0
    [ "$(sec)" = "$usual" ]
}

@test "a state that contradicts its factor is refused" {
    jq -c '.exceptions = [{part: "endpoint", side: "both", a: 1, factor: 0.5, alpha_add_s: 0, evidence: 1, state: "dead"}]' \
        good/matrix.json > case/matrix.json
    run -65 railgauge seal case/matrix.json
    [[ $output == *"exceptions[0]: state dead at a factor of 0.5; it must be 0"* ]]
}

@test "uplinks that one leaf lost are a part, and end with 1" {
    run -1 railgauge run --transport sim --fabric hgx-h100 --racks 16 --noise 3% --fault lost-uplinks=2:0.5 --no-plots -o lost
    [[ $output == *$'\nuplinks of leaf-00-2: '*" % of its uplinks, confidence "* ]]
    run -1 railgauge accept lost
    [[ ${lines[0]} == "FAIL: "*"uplinks of leaf-00-2"* ]]
    run -0 railgauge show lost parts
    [[ $output == *"next step   1. check uplinks of leaf-00-2: number of links that are up"* ]]
}

@test "a collective across domains that is slow though all pairs are fine fails, a healthy one passes" {
    railgauge accept good --json | jq -e '[.checks[] | select(.check == "collective")] | length > 3 and all(.verdict == "PASS")'
    jq -c '(.collectives[] | select(.op == "reduce_scatter" and .domains > 1) | .curve) |=
        (.alpha_s *= 2 | .beta_s_per_B *= 2 | .points[] |= [.[0], .[1] * 2, .[2] * 2, .[3] * 2, .[4]])' \
        good/matrix.json > case/matrix.json
    railgauge seal case/matrix.json > /dev/null
    run -1 railgauge accept case/matrix.json # its points say otherwise
    echo "${lines[0]}"
    [[ ${lines[0]} == "FAIL: "*"; reduce_scatter "*" ranks, "*" domains of "*": "[45]*" %, limit 75.0 %, preset hgx-h100, modelled within "[23]?" %" ]]
}
