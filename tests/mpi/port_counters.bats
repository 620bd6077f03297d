#!/usr/bin/env bats
# port_counters.bats - a NIC that counts errors while something is measured taints what crosses hosts, by its name.

bats_require_minimum_version 1.5.0
load helper

# Four ranks that a topology puts on two hosts with a NIC each, and a made /sys with what these NICs count.
setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    export LIMIT=60 RAILGAUGE_COUNTERS=$PWD/root RAILGAUGE_WATCH=off
    ranks 4 "$probe" discover -q -o live.json
    jq 'def rows(all): .columns as $c | .rows = [all | . as $one | [$c[] | $one[.]]];
        def nic(host; name; link; use): {host: host, name: name, link_layer: link, rate_Bps: 5e10, up: true,
            rdma: (link == "infiniband"), source: "sysfs", use: use, why: "told", leaf_source: "none", rail_source: "none",
            plane_source: "none", use_source: "sysfs"};
        [nic(0; "eno1"; "ethernet"; "compute"), nic(1; "mlx5_2"; "infiniband"; "compute"),
         nic(1; "mlx5_3"; "infiniband"; "compute"), nic(1; "eth0"; "ethernet"; "management")] as $nics
        | .hosts.rows = [.hosts.rows[0] | .[0] = ("node01", "node03")]
        | .nics |= rows($nics[]) | .ports |= rows($nics | to_entries[] | .value + {nic: .key})
        | .endpoints.rows = [.endpoints.rows | to_entries[] | .value[0] = (.key / 2 | floor)
            | .value[5] = .key % 2 | .value[8] = null | .value]' live.json >two.json
    railgauge seal two.json
    ib=root/sys/class/infiniband/mlx5_2/ports/1
    mkdir -p $ib/counters $ib/hw_counters root/sys/class/infiniband/mlx5_3/ports/1/counters root/sys/class/net/{eno1,eth0}/statistics
    echo 7 >$ib/counters/symbol_error
    echo 0 >$ib/hw_counters/np_cnp_sent
    echo 15 >root/sys/class/infiniband/mlx5_3/ports/1/counters/local_link_integrity_errors
    echo 0 | tee root/sys/class/net/{eno1,eth0}/statistics/rx_crc_errors >/dev/null
}

# A rank of this test that stands still; its number is printed.
stopped() {
    local comm pid
    for comm in $(grep -lsx railgauge-probe /proc/[0-9]*/comm); do
        pid=${comm//[!0-9]/}
        [ "$(readlink "/proc/$pid/cwd")" != "$PWD" ] || ! grep -qs '^State:.T' "/proc/$pid/status" || echo "$pid"
    done
}

# during RANK POINT COMMAND... - a campaign, and this command while that rank stands still in that point.
during() {
    local rank=$1 point=$2 pid
    shift 2
    RAILGAUGE_FAULT=stop:$rank:$point ranks 4 "$probe" probe --topology two.json "${how[@]}" 2>err.txt &
    while pid=$(stopped) && [ -z "$pid" ]; do
        kill -0 $! || { cat err.txt; return 1; } # it ended before
        sleep 0.1
    done
    "$@"
    kill -CONT "$pid"
    wait $!
    cat points.tsv err.txt
}

errors() {
    echo 19 >$ib/counters/symbol_error
    echo 40 >$ib/hw_counters/np_cnp_sent
    echo 99 >root/sys/class/net/eth0/statistics/rx_crc_errors # not for compute: nobody looks
}

@test "a symbol error during a point: note, warning, finding; congestion is said once and no taint" {
    plan "collective all_reduce 1024 16384 2 0 0-3" >plan.tsv
    how=(--plan plan.tsv -n 2 -w 0 --no-retest)
    during 3 3 errors
    words="tainted: mlx5_2 port 1 on node03: 12 symbol errors"
    [ "$(column note points.tsv | paste -sd'|')" = "||$words||" ]
    grep -q "1 of 5 points are tainted; first: $words" err.txt
    [ "$(grep -c "during the campaign, mlx5_2 port 1 on node03: 12 symbol errors$" err.txt)" -eq 1 ]
    grep -q "congestion during the campaign, mlx5_2 port 1 on node03: 40 congestion notifications sent$" err.txt
    grep -q "mlx5_3 port 1 on node03: local_link_integrity_errors is at its end, 15, and new errors do not show$" err.txt
    run ! grep -q CRC err.txt
    cp two.json topology.json
    railgauge fit . -o m.json
    [ "$(jq -r '.findings[] | select(.kind == "tainted").text' m.json)" = \
        "mlx5_2 port 1 on node03 while 1 of 5 points were measured: 12 symbol errors" ]
    run -0 railgauge show m.json
    [[ $output == *"mlx5_2 port 1 on node03"* ]]
}

both() {
    errors
    echo 3 >root/sys/class/net/eno1/statistics/rx_crc_errors
    echo 1 >root/sys/class/infiniband/mlx5_3/ports/1/counters/local_link_integrity_errors
}

@test "what stays inside a host is not tainted by its NICs; of several ports the first is named" {
    plan "class pair_bw 1024 1024 2 0 0>1;2>3" "class pair_bw 1024 1024 2 0 2>0;1>3" | tr ';' ' ' >plan.tsv
    how=(--plan plan.tsv -n 2 -w 0 --no-retest)
    during 0 1 both
    [ "$(column note points.tsv | sort -u)" = "" ]
    grep -q "during the campaign, eno1 on node01: 3 CRC errors$" err.txt
    rm points.tsv
    setup
    # Those who look have measured, and wait for the one that has not.
    during 1 2 both
    [ "$(column note points.tsv | head -2 | sort -u)" = "" ]
    [ "$(column note points.tsv | tail -2 | sort)" = "tainted: eno1 on node01: 3 CRC errors
tainted: mlx5_2 port 1 on node03: 12 symbol errors, and 1 more port" ]
}

@test "off: nobody looks" {
    export RAILGAUGE_COUNTERS=off
    plan "collective all_reduce 1024 4096 2 0 0-3" >plan.tsv
    how=(--plan plan.tsv -n 2 -w 0 --no-retest)
    during 3 2 errors
    [ "$(column note points.tsv | sort -u)" = "" ]
    run ! grep -qE "mlx5|congestion" err.txt
}
