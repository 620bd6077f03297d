#!/usr/bin/env bats
# bats file_tags=nightly
# verbs_slow.bats - a NIC of the stand-in that is slow: judged by times, so nothing else runs beside it.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_fake_verbs
    need_verbs
}

@test "railgauge run: a slow NIC is the part that is named, with its factor" {
    devices "device mlx5_0-5 rate=1e8"
    FAKE_VERBS_FAULT=slow@mlx5_4:1:5e7 run timeout 280 railgauge run -o dir -t verbs --ranks 6 --no-plots --op pairs \
        --pair-bytes 256K --depth 4 -n 3 -w 1 --no-retest
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$(jq -r '[.exceptions[] | "\(.part) \(.a)"] | join(",")' dir/matrix.json)" = "endpoint 4" ]
    jq -e '.exceptions[0].factor > 0.4 and .exceptions[0].factor < 0.6' dir/matrix.json
}
