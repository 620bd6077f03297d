#!/usr/bin/env bats
# bats file_tags=nightly
# parts.bats - parts that are slowed in a lab of three racks, by name: by itself where its like are well, beside the
# site's own reference where they are not.

load helper

setup_file() {
    lab usable >/dev/null 2>&1 || return 0 # each test says why it is skipped
    export LAB=rgparts$$ RACKS=3 PER=2 NIC=800 TRUNK=400
    lab_alone
    lab up
    cd "$BATS_FILE_TMPDIR" || return 1
    measure good
}

setup() {
    need_lab
    cd "$BATS_FILE_TMPDIR" || return 1
}

teardown_file() {
    [ -z "${LAB-}" ] || lab down
}

# measure NAME: a campaign of large messages between all pairs.
measure() {
    railgauge run -t mpi --launch "$BATS_TEST_DIRNAME/lab.sh mpirun" -o "$1" --no-verdict --no-plots --op pair_bw \
        --pair-bytes 64K --epochs 2 -f 4 -b 64K -e 256K --time-cap 20ms >"$1.log" 2>&1 || {
        cat "$1.log"
        return 1
    }
}

# Names and shares of the parts that accept shows beside the reference, one a line.
parts() {
    railgauge accept "$1" --against good --json | jq -r '.parts[] | "\(.name) \(.factor * 20 | round / 20)"'
}

@test "one rack's uplinks at a half: they are named, alone among the racks and beside the reference" {
    lab slow uplink 1 200
    measure half
    lab slow uplink 1 400
    run parts half
    echo "$output"
    [ "$output" = "uplinks of rack-01 0.5" ]
    run railgauge accept half --against good
    [ "$status" -eq 1 ]
}

@test "one rack's uplinks at a quarter" {
    lab slow uplink 2 100
    measure quarter
    lab slow uplink 2 400
    run parts quarter
    echo "$output"
    [ "$output" = "uplinks of rack-02 0.25" ]
}

@test "one host's NIC below the uplinks" {
    lab slow nic 3 240
    measure nic
    lab slow nic 3 800
    run parts nic
    echo "$output"
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "NIC hsn0 of $LAB-h3 "* ]]
}

@test "all uplinks at a half: no part stands out, and the reference tells" {
    for rack in 0 1 2; do lab slow uplink $rack 200; done
    measure all
    run railgauge show all parts
    [ "$output" = "No slow part found" ]
    run parts all
    echo "$output"
    [ "$output" = "all pairs of fabric, beside good 0.5" ]
    run railgauge accept all --against good
    echo "${lines[0]}"
    [ "$status" -eq 1 ]
    # 200 Mbit/s are 23.9 MB/s of data in frames of 1,500 bytes.
    [[ ${lines[0]} =~ ^FAIL:.*"tier fabric, bandwidth of a pair: "([0-9.]+)" MB/s, limit 4" ]]
    awk -v v="${BASH_REMATCH[1]}" 'BEGIN {exit !(v > 0.96 * 23.9 && v < 1.04 * 23.9)}'
}

@test "a healthy fabric beside itself names nothing" {
    for rack in 0 1 2; do lab slow uplink $rack 400; done
    measure again
    run parts again
    echo "$output"
    [ -z "$output" ]
}
