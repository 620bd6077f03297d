#!/usr/bin/env bats
# import_record.bats - railgauge import --nccl-profile: what was put into a job's records is named, and
# nothing else.

bats_require_minimum_version 1.5.0
# shellcheck disable=SC2154  # stderr is run's

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || return
    cc -std=c11 -O1 -D_GNU_SOURCE -Isrc -I. -o "$BATS_FILE_TMPDIR/scene" tests/cli/record_scene.c \
        src/base/stats.c src/base/mem.c src/base/err.c -lm
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/here" # bats leaves files of its own outside
    cd "$BATS_TEST_TMPDIR/here" || exit 1
    seed=${RG_SEED:-$((${RG_ALL:-0} ? RANDOM * 32768 + RANDOM : 1))}
    echo "seed $seed"
}

# scene DIR KEY=VALUE...: records of a job of 16 ranks on 4 hosts
scene() {
    "$BATS_FILE_TMPDIR/scene" "$@" seed="$seed"
}

# poke FILE BYTE HEX: other bytes there
poke() {
    # shellcheck disable=SC2001,SC2059  # the format is the bytes
    printf "$(sed 's/../\\x&/g' <<<"$3")" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

fails() {
    run --separate-stderr railgauge import --nccl-profile d
    [ "$status" -eq "$1" ]
    [[ $stderr == *"$2"* ]]
    [ ! -e points.tsv ]
}

@test "points, traffic of a step and clocks of a job where nobody is late" {
    for gpu in 0 1; do
        scene d$gpu exchange=1 gpu=$gpu
        railgauge import --nccl-profile d$gpu --json -o c$gpu/points.tsv 2>/dev/null >answer
        jq -e '.recorded | .late == [] and .late_judged == 16 and (.steps.count | . >= 18 and . <= 20)' answer
        jq -e '[.recorded.traffic[] | [.op, .ranks, .stride, .bytes, .count, .groups]] | sort == ([
            ["all_gather", 4, 4, 67108864, 12, 4], ["all_reduce", 16, 1, 4, 1, 1],
            ["all_reduce", 4, 1, 16777216, 12, 4], ["all_to_all", 16, 1, 65536, 1, 1],
            ["reduce_scatter", 4, 4, 67108864, 6, 4]] | sort)' answer
        jq -e '.recorded.processes | length == 16 and all(.unsure_s < 5e-6)' answer
        jq -e '.recorded.traffic[] | select(.ranks == 4 and .stride == 1) |
            .inside_host and .algorithm == "RING" and .protocol == "SIMPLE" and .channels == 4 and .overlap > 0.3' answer
        # What was put in: 0.9 ms and 2 % of noise at most, usually.
        jq -e '.recorded.traffic[] | select(.op == "all_gather") | .s / .count | . > 0.9e-3 and . < 0.94e-3' answer
        jq -e '.recorded.traffic[] | select(.op == "all_gather") | .proxy_wait_s | . > 12 * 0.299e-3 and . < 12 * 0.301e-3' answer
        railgauge fit -q c$gpu
        railgauge show c$gpu/matrix.json >/dev/null
        railgauge cost c$gpu/matrix.json all_gather 0,4,8,12 64M --json |
            jq -e '[.. | numbers] | any(. > 0.9e-3 and . < 0.94e-3)'
    done
}

@test "clocks that were set in between: refused, not a waiting time beyond all that was recorded" {
    scene d jump=30
    fails 65 "d: the clocks do not fit: the 16 processes would have waited "
}

@test "who is late is named, and nobody else: a rank, a host, on one axis, now and then" {
    # 3 of the other seed: late in all calls, and far beyond that in a few
    for case in "$seed 1" "$seed 2" "$seed 3" "$seed 4" "650088454 3"; do
        read -r seed fault <<<"$case"
        culprit=$((seed % 16))
        host=$(printf 'n%02d' $((culprit / 4)))
        rm -rf d
        scene d fault=$fault culprit=$culprit gpu=$((fault % 2)) steps=$((fault == 4 ? 80 : 20)) \
            overlap=$((fault == 3 || seed % 2)) compute=$((fault == 3 ? 3 : 0))e-3
        railgauge import --nccl-profile d --json -o "c$fault-$seed/points.tsv" 2>/dev/null >answer
        jq -c '.recorded.late' answer
        jq -e --argjson rank $culprit --arg host "$host" --argjson fault $fault '.recorded.late |
            length == 1 and (.[0] | .host == $host and .whole_host == ($fault == 2) and .share > 0.01 and
                (.rank == $rank or $fault == 2) and .how == (if $fault == 4 then "sometimes" else "usually" end) and
                .only_there == ($fault == 3) and
                (.behind_s | if $fault == 4 then . > 6e-3 and . < 9e-3 else . > 130e-6 and . < 230e-6 end))' answer
    done
}

@test "against the matrix of a healthy run, the groups of a slow NIC are listed, and only those" {
    scene d steps=40
    railgauge import -q --nccl-profile d -o healthy/points.tsv
    railgauge fit -q healthy
    rm -r d
    scene d steps=40 slow=1.6 culprit=6
    railgauge import --nccl-profile d --against healthy/matrix.json --json -o c/points.tsv 2>/dev/null >answer
    jq -e '[.recorded.priced[] | select(.verdict == "slow") | [.op, .bytes, .slow_groups, .worst]] | sort ==
        [["all_gather", 67108864, 1, "n00:2 .. n03:2"], ["reduce_scatter", 67108864, 1, "n00:2 .. n03:2"]]' answer
    run railgauge import --nccl-profile d --against healthy/matrix.json -o again/points.tsv
    [[ $output == *"slower than the matrix says"*"n00:2 .. n03:2"* ]]
    jq -e '.endpoints.count // 1' healthy/topology.json >/dev/null
    # Hosts that it does not have.
    scene e hosts=5
    run --separate-stderr railgauge import --nccl-profile e --against healthy/matrix.json -o more/points.tsv
    [ "$status" -eq 65 ]
    [[ $stderr == *"healthy/matrix.json has no device 0 of host n04, on which the job ran" ]]
}

# With the other seed, a call at the cut of the steps was in another step on some groups.
@test "a step's calls are counted whole, whatever the clocks say at its cut" {
    for seed in "$seed" 30283406; do
        scene d
        railgauge import --nccl-profile d --json -o "c$seed/points.tsv" 2>/dev/null |
            jq -e '[.recorded.traffic[].count] | sort == [1, 6, 12, 12]'
        rm -r d
    done
}

@test "a step's bytes are what railgauge place reads, and predict's messages stand beside them" {
    scene d
    railgauge import --nccl-profile d --traffic t.tsv --json -o c/points.tsv 2>/dev/null \
        --for-job '--model llama3.1-8b --layout tp=4,dp=4 --strategy fsdp' >answer
    # Ring of dp: 12 + 6 times 3/4 of 64 MiB, to the same device of the next host; 4 B go along the world.
    awk -F'\t' '$1 == 2 && $2 == 6 { found = $3 == 18 * 0.75 * 67108864 } END { exit !found }' t.tsv
    jq -e '[.recorded.predicted[] | .verdict] | index("other sizes") and index("not predicted")' answer
    jq -e '[.recorded.predicted[] | select(.op == "all_gather" and .ranks == 4 and .stride == 4)] |
        length == 1 and .[0].sent_count == 12 and .[0].sent_bytes == 67108864 and .[0].verdict == "other sizes"' answer
    railgauge place --fabric hgx-h100 --racks 1 --traffic t.tsv >/dev/null
}

@test "its JSON is what the schema says" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    scene d exchange=1 fault=1 culprit=5
    railgauge import -q --nccl-profile d -o c/points.tsv
    railgauge fit -q c
    for more in "" "--against c/matrix.json" "--for-job --layout=dp=16"; do
        rm -rf e
        # shellcheck disable=SC2086
        railgauge import --nccl-profile d --json -o e/points.tsv ${more/ /=} >answer 2>/dev/null
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
            "$BATS_TEST_DIRNAME/../../src/schema/import.schema.json" answer
    done
}

@test "what is lost or missing is said: overwritten records, a rank without a file, calls under way" {
    scene d capacity=300
    railgauge import --nccl-profile d -o c/points.tsv 2>said >answer
    grep -q "n00-4000.rgnccl: its oldest 320 records were overwritten" said
    grep -q "steps: [789]," answer
    scene e
    rm e/n01-4006.rgnccl
    railgauge import --nccl-profile e --json -o e/points.tsv 2>said >answer
    grep -q "communicators of which files are missing: 3 of 9; the largest, of 16 ranks, lacks its rank 6" said
    jq -e '.endpoints == 15 and .recorded.late_judged > 0 and .recorded.late == []' answer
    # The last record's channels have not stopped.
    scene f capacity=620
    poke f/n02-4009.rgnccl $((9216 + 619 * 192 + 106)) 0000
    railgauge import --nccl-profile f -o f/points.tsv 2>said >answer
    grep -q "n02-4009.rgnccl: under way when it ends: 1, the first is record 619" said
    # One that was being written.
    poke f/n02-4009.rgnccl $((9216 + 618 * 192)) 0080
    railgauge import --nccl-profile f -o g/points.tsv 2>said >answer
    grep -q "n02-4009.rgnccl: records that are not whole: 1" said
}

@test "collectives of copy engines have no end, and that is why they are left out" {
    scene a capacity=620
    # one record: its times, channels and proxies, and the flag
    at=$((9216 + 618 * 192))
    poke a/n02-4009.rgnccl $((at + 24)) 00000000000000000000000000000000
    poke a/n02-4009.rgnccl $((at + 102)) 000000000000
    poke a/n02-4009.rgnccl $((at + 109)) 04
    poke a/n02-4009.rgnccl $((at + 116)) 0000000000000000
    railgauge import --nccl-profile a -o a/points.tsv 2>said >answer
    cat said
    grep -q "n02-4009.rgnccl: left out, for copy engines ran them, of which NCCL tells a profiler when they were enqueued and not when they ended (ceColl): 1; NCCL_CTA_POLICY=DEFAULT" said
    run ! grep -q "told no times of their channels" said
    scene b ce=1
    run railgauge import --nccl-profile b -o b/points.tsv
    echo "$output"
    [ "$status" -eq 65 ]
    [[ $output == *"no collective was recorded, nor in the other files, of which NCCL told the end: copy engines ran them (NCCL_CTA_POLICY=DEFAULT runs kernels)"* ]]
}

@test "what is no record is refused with file and place" {
    mkdir d
    fails 66 "d: no file NAME.rgnccl in it"
    rmdir d
    fails 66 "d: No such file or directory"
    scene d
    cp -r d good
    truncate -s 50000 d/n01-4005.rgnccl
    fails 65 "d/n01-4005.rgnccl: cut at byte 50000: its ring is cut short, of 4096 records from byte 9216 on"
    truncate -s 5000 d/n01-4005.rgnccl
    fails 65 "d/n01-4005.rgnccl: too short for a header, of 5000 bytes"
    cp good/n01-4005.rgnccl d
    poke d/n01-4005.rgnccl 12 07
    fails 65 "d/n01-4005.rgnccl: version 7 of the record format; this program reads 1"
    cp good/n01-4005.rgnccl d
    poke d/n01-4005.rgnccl 0 58
    fails 65 "d/n01-4005.rgnccl: no record of NCCL (magic), of"
    cp good/n01-4005.rgnccl d
    poke d/n01-4005.rgnccl 8196 40
    fails 65 "d/n01-4005.rgnccl: byte 8192: rank 64 of 4 in a communicator"
    cp good/n01-4005.rgnccl d
    scene e
    cp e/n00-4000.rgnccl d/other.rgnccl
    fails 65 "d/other.rgnccl: rank 0 of communicator 00000000000003e8 is in d/n00-4000.rgnccl already: are these of one job?"
}

@test "options that do not go together" {
    run --separate-stderr railgauge import
    [ "$status" -eq 64 ]
    [[ $stderr == *"give the output of nccl-tests or the file of its -J, or with --nccl-profile the folder of a job's records"* ]]
    run --separate-stderr railgauge import --nccl-profile d file
    [ "$status" -eq 64 ]
    run --separate-stderr railgauge import file --against m.json
    [ "$status" -eq 64 ]
    [[ $stderr == *"--against is of a job's records: it needs --nccl-profile"* ]]
}

# tests/unit/profiler judges the microsecond.
@test "at a microsecond a collective, recording is far below 1 % of the steps of known jobs" {
    local fabric model layout
    while read -r fabric model layout; do
        railgauge predict --fabric "$fabric" --model "$model" --layout "$layout" --json >step.json
        jq -r --arg job "$model $layout" '([.terms[].message.count // 0] | add) as $n
            | "\($job): \($n) collectives, \(100 * $n * 1e-6 / .step_s) % of \(.step_s) s",
            if $n > 0 and $n * 1e-6 < 0.002 * .step_s then empty else error("too much") end' step.json
    done <<'END'
hgx-h100 llama3.1-8b dp=8
hgx-h100 llama3.1-70b dp=16,tp=8
hgx-h100 llama3.1-405b tp=8,pp=16,dp=8
gb200-nvl72 deepseek-v3 pp=16,ep=32,dp=64
hgx-h100 mixtral-8x7b tp=4,ep=8,dp=8
gb200-nvl72 llama4-scout dp=64,ep=16
rtxpro6000-100gbe gpt-oss-20b dp=8,ep=8
END
}
