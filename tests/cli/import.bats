#!/usr/bin/env bats
# import.bats - railgauge import: recordings of nccl-tests of several releases become campaigns.

bats_require_minimum_version 1.5.0

setup() {
    golden=$BATS_TEST_DIRNAME/../golden/nccl-tests
    mkdir "$BATS_TEST_TMPDIR/here" # bats leaves files of its own outside
    cd "$BATS_TEST_TMPDIR/here" || exit 1
}

# cells NAME: that column of points.tsv, row by row
cells() {
    awk -F'\t' -v name="$1" '/^#/ { next } !c { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        { print $c }' points.tsv
}

@test "2.13, one host of 8 GPUs: sizes and times are the table's, what it lacks is asked for" {
    run --separate-stderr railgauge import "$golden/2.13-hgx.txt"
    [ "$status" -eq 65 ]
    [[ $stderr == *"2.13-hgx.txt:1: which collective this is was printed from nccl-tests 2.16 on only: say it with --op" ]]
    run --separate-stderr railgauge import "$golden/2.13-hgx.txt" --op all_reduce
    [ "$status" -eq 0 ]
    [ "$output" = "points.tsv: 1 runs on 8 GPUs, 1 hosts: 10 points" ]
    rows=$(grep -E '^ +[0-9]' "$golden/2.13-hgx.txt")
    [ "$(cells bytes)" = "$(awk '{ print $1 }' <<<"$rows")" ]
    [ "$(cells sec)" = "$(awk '{ printf "%.7g\n", $6 * 1e-6 }' <<<"$rows")" ]
    [ "$(cells n | sort -u)" = 20 ]
    [ "$(cells check | sort -u)" = ok ]
    [ "$(cells note | sort -u)" = "mean of 20 iterations" ]
    [ "$(jq -r '.hosts.rows[0][0]' topology.json)" = hgx01 ]
}

@test "type and reduction are kept, and another type is another campaign" {
    railgauge import -q "$golden/2.13-hgx.txt" --op all_reduce
    [ "$(paste -d' ' <(cells dtype) <(cells redop) <(cells registration) | sort -u)" = "float32 sum -" ]
    sed 's/ float / bfloat16 /' "$golden/2.13-hgx.txt" | sed 's/ float  /bfloat16 /' >other.txt
    mkdir both
    run --separate-stderr railgauge import "$golden/2.13-hgx.txt" other.txt --op all_reduce -o both/points.tsv
    [ "$status" -eq 65 ]
    [[ $stderr == *"other.txt:"*": all_reduce of bfloat16 sum, but earlier ones are of float32 sum: times of different types are not mixed"* ]]
    [ ! -e both/points.tsv ]
}

@test "the in-place half is the other one" {
    railgauge import -q "$golden/2.13-hgx.txt" --op all_reduce --in-place
    [ "$(cells sec)" = "$(grep -E '^ +[0-9]' "$golden/2.13-hgx.txt" | awk '{ printf "%.7g\n", $10 * 1e-6 }')" ]
}

@test "2.19 under mpirun, two programs, two hosts: noise is passed over, PCI addresses are kept" {
    run --separate-stderr railgauge import "$golden/2.19-mpirun.txt"
    [ "$status" -eq 0 ]
    [ "$output" = "points.tsv: 2 runs on 8 GPUs, 2 hosts: 20 points" ]
    [[ $stderr == *"rows of 0 bytes left out (less than 16 bytes a rank): 1"* ]]
    [ "$(cut -f3,8 plan.tsv | tail -n +3)" = $'all_gather\t0-7\nall_to_all\t0-7' ]
    [ "$(cells op | uniq -c | awk '{ print $2, $1 }')" = $'all_gather 10\nall_to_all 10' ]
    [ "$(cells n | sort -u)" = 50 ]
    grep -q '"0009:01:00.0"' topology.json
    jq -e '.unseen | map(.what) | index("NVLink domains")' topology.json
    grep -q '"nccl":"2.28.9","nccl_tests":"2.19.6"' points.tsv
}

@test "a half that was not checked says so" {
    railgauge import -q "$golden/2.19-mpirun.txt" --in-place
    [ "$(paste <(cells op) <(cells check) | sort -u)" = $'all_gather\tok\nall_to_all\tno' ]
}

@test "JSON with iterations: their median, not their mean; the environment stays behind" {
    railgauge import -q "$golden/2.19-iterations.json"
    want=$(jq -r '.results[].out_of_place_per_iter.times_us[1:] | sort | .[4]' "$golden/2.19-iterations.json")
    [ "$(cells sec)" = "$(awk '{ printf "%.7g\n", $1 * 1e-6 }' <<<"$want")" ]
    [ "$(cells n | sort -u)" = 9 ]
    [ -z "$(cells note | tr -d '\n')" ]
    ! grep -rq SECRET_TOKEN .
}

@test "2.9 has neither redop nor root, and a difference instead of a count" {
    railgauge import -q "$golden/2.9-gather.txt" --op all_gather
    [ "$(cells bytes | tr '\n' ' ')" = "4194304 8388608 12582912 16777216 " ]
    [ "$(cells check | sort -u)" = no ]
}

@test "fit takes what import makes, and cost says the measured time" {
    railgauge import -q "$golden/2.19-mpirun.txt" "$golden/2.19-iterations.json"
    run railgauge fit .
    [ "$status" -eq 0 ]
    [[ $output == *"8 endpoints"*"3 collective curves"* ]]
    want=$(awk -F'\t' '$5 == "all_gather" && $10 == 67108864 { print $12 }' points.tsv)
    jq -e --argjson want "$want" \
        '[.. | objects | select(.op? == "all_gather") | .. | numbers] | any(. / $want - 1 | fabs < 1e-3)' matrix.json
    railgauge cost matrix.json all_gather 0-7 64M
}

@test "several runs with the same GPUs share endpoints; repeated sizes are epochs" {
    sed -n '/Collective/,$p' "$BATS_TEST_DIRNAME/../bad/recording/good.txt" >one
    awk '{ print } /2097152/ { for (i = 0; i < 9; i++) print }' one >more
    run --separate-stderr railgauge import one more
    [ "$status" -eq 0 ]
    [ "$output" = "points.tsv: 2 runs on 4 GPUs, 1 hosts: 13 points" ]
    [[ $stderr == *"more: rows of sizes that came 8 times already left out: 2"* ]]
    [ "$(cells epoch | tr -d '\n')" = 0000012345670 ]
    railgauge fit -q .
}

@test "groups that ran side by side stay side by side" {
    run --separate-stderr railgauge import "$BATS_TEST_DIRNAME/../fuzz/seeds/recording/split.txt"
    [ "$status" -eq 0 ]
    [ "$(cut -f8 plan.tsv | tail -1)" = "0,2,4,6 1,3,5,7" ]
    [ "$(cells flows | sort -u)" = 2 ]
    [[ $(cells note | head -1) == *"average of 2 groups" ]]
    [[ $stderr == *"the run was cut: its last line is not there"* ]]
}

@test "a table without rank lines takes hosts from the options, in blocks" {
    grep -v Rank "$BATS_TEST_DIRNAME/../bad/recording/good.txt" >pasted
    run --separate-stderr railgauge import pasted --hosts 'n[1-2]' --ranks 4
    [ "$status" -eq 0 ]
    [ "$output" = "points.tsv: 1 runs on 4 GPUs, 2 hosts: 3 points" ]
    rm ./*.tsv topology.json
    run --separate-stderr railgauge import pasted --hosts 'n[1-2]' --ranks 8
    [ "$status" -eq 65 ]
    [[ $stderr == *"busbw / algbw is 1.500, but all_reduce of 8 ranks has 1.750: another operation or number of ranks" ]]
}

@test "with a topology the ranks are its endpoints, in the run's order" {
    railgauge import -q "$golden/2.19-mpirun.txt"
    mkdir again
    awk '/Rank/ { sub(/Rank  0/, "Rank  X"); sub(/Rank  7/, "Rank  0"); sub(/Rank  X/, "Rank  7") } 1' "$golden/2.19-mpirun.txt" >swapped
    railgauge import -q swapped --topology topology.json -o again/points.tsv
    [ "$(cut -f8 again/plan.tsv | tail -1)" = "7,1-6,0" ]
    [ ! -e again/topology.json ]
    sed 's/on       gb02/on       gb99/' "$golden/2.19-mpirun.txt" >elsewhere
    run --separate-stderr railgauge import elsewhere --topology topology.json -o other/points.tsv
    [ "$status" -eq 65 ]
    [[ $stderr == *"rank 4 ran on host gb99, which the topology does not have" ]]
    [ ! -e other ]
}

@test "a campaign that is there is not touched" {
    railgauge import -q "$golden/2.19-mpirun.txt"
    sum=$(cksum ./*)
    run --separate-stderr railgauge import "$golden/2.19-iterations.json"
    [ "$status" -eq 78 ]
    [[ $stderr == *"topology.json is there already; another -o starts a new campaign" ]]
    [ "$(cksum ./*)" = "$sum" ]
}

@test "what railgauge prints as nccl-tests comes back" {
    railgauge probe --fabric hgx-h100 --racks 1 --op all_reduce -b 1M -e 64M --epochs 1 --format nccl-tests \
        -o first.tsv >table 2>/dev/null
    rm -f plan.tsv topology.json
    railgauge import -q table
    # Tables are in the order of round, group and size, with two decimals of a microsecond.
    seconds() { awk -F'\t' '/^[0-9]/ { print $1, $2, $6, $10, $12 }' "$1" | sort -n -k1,1 -k2,2 -k4,4; }
    paste -d ' ' <(seconds first.tsv) <(seconds points.tsv) | awk '
        $3 != $8 || $4 != $9 || ($5 / $10 - 1) ^ 2 > 1e-6 { print "differ:", $0; exit 1 }
        { n++ } END { if (n < 14) exit 1 }'
}
