#!/usr/bin/env bats
# reframe.bats - jobs/reframe/railgauge_check.py, run by ReFrame itself on the simulator.

bats_require_minimum_version 1.5.0

setup_file() {
    run tests/venv.sh reframe ReFrame-HPC==4.10.4
    [ "$status" -ne 77 ] || skip "${lines[-1]}"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    export REFRAME=${lines[-1]%/*}/reframe top=$PWD HOME=$BATS_FILE_TMPDIR
}

# reframes WORD... - the check on a simulated rack, with these words of run behind.
reframes() {
    local options=--fabric,gb200-nvl72,--racks,1,--sim-seed,7,-b,1M,-e,64M,-f,64
    for word; do options+=,$word; done
    run env TMPDIR="$BATS_TEST_TMPDIR" "$REFRAME" --nocolor -c "$top/jobs/reframe/railgauge_check.py" -r -S "options=$options" \
        -S preset=gb200-nvl72 --prefix "$BATS_TEST_TMPDIR" --report-file "$BATS_TEST_TMPDIR/report.json"
}

@test "a healthy rack passes, every figure beside its reference" {
    reframes --noise 1%
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [[ $output == *"PASSED"*"Ran 1/1 test case(s)"*"0 failure(s)"* ]]
    grep -qE '^P: rail: 49\.[0-9]+ GB/s \(r:49\.2, l:-0\.05, u:None\)$' <<<"$output"
    grep -qE '^P: all_reduce 72 ranks, 1 domain: 5[0-9]{2}\.[0-9]+ GB/s \(r:5[0-9.]+, l:-0\.05, u:None\)$' <<<"$output"
}

@test "a slow NIC fails the test, named with what to do" {
    reframes --noise 1% --fault slow-nic=17:0.6
    [ "$status" -ne 0 ]
    [[ $output == *"sanity error: NIC mlx5_1 of r00n04"*"speed over all NICs"*"limit 0.9"* ]]
    [[ $output == *"clean and reseat"* ]]
}

# bats test_tags=nightly
@test "7 % less over all NICs is no fault of a part, and below the reference by more than 5 %" {
    reframes --fault slow-fabric=0.93
    [ "$status" -ne 0 ]
    [[ $output == *"performance error:"*"rail=45.7"*"expected 49.2 (l=46.74, u=inf)"* ]]
}

# bats test_tags=nightly
@test "a site's own reference rules" {
    cat >"$BATS_TEST_TMPDIR/site.py" <<EOF
import os
import sys
sys.path.insert(0, '$top/jobs/reframe')
import reframe as rfm
from railgauge_check import RailgaugeCheck
@rfm.simple_test
class Ours(RailgaugeCheck):
    options = ['--fabric', 'gb200-nvl72', '--racks', '1', '-b', '1M', '-e', '1M', '--op', 'pair_bw,pair_latency']
    reference = {'generic:default': {'rail': (60, -0.05, None, 'GB/s')}}
EOF
    run env TMPDIR="$BATS_TEST_TMPDIR" "$REFRAME" --nocolor -c "$BATS_TEST_TMPDIR/site.py" -n Ours -r --prefix "$BATS_TEST_TMPDIR"
    [ "$status" -ne 0 ]
    [[ $output == *"rail=49.2"*"expected 60"* ]] || { echo "$output"; false; }
}
