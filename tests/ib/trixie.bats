#!/usr/bin/env bats
# trixie.bats - a real NDR fabric of 582 adapters, simulated by an ibsim that knows NDR (0.12, that of
# Debian 13, in a chroot) and read through its libibnetdisc.

bats_require_minimum_version 1.5.0

setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export top
    export real=$top/../shared/fixtures/ibnetdiscover/example.out
    [ -r "$real" ] || return 0
    trixie=$("$top/tests/chroot.sh" --user $$ trixie ibsim-utils infiniband-diags libjansson4 libexpat1 \
        libyaml-0-2 2>"$BATS_FILE_TMPDIR/why") || trixie=
    export trixie
    [ -z "$trixie" ] || install -D "$RG_BUILD/railgauge" "$trixie/opt/rg/railgauge"
}

teardown_file() {
    [ -z "${trixie:-}" ] || "$top/tests/chroot.sh" --leave trixie
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    # shellcheck source=tests/ib/sim.bash
    . "$BATS_TEST_DIRNAME/sim.bash"
    [ -r "$real" ] || skip "the real dump is not here"
    [ -n "$trixie" ] || skip "$(tail -n 1 "$BATS_FILE_TMPDIR/why")"
    [[ $RG_BUILD != *address* ]] || skip "no sanitizer's library in the chroot"
}

teardown() {
    sim_stop
}

@test "a real fabric, simulated: 40 switches, 582 adapters, 2,228 ports of 4xNDR, six pairs with one cable" {
    install -D -m 644 "$real" "$trixie/opt/rg/real.net"
    export IBSIM_SOCKNAME="rg.$$"
    mkfifo console
    : >ibsim.log
    exec 7<>console
    timeout 600 chroot "$trixie" ibsim -s /opt/rg/real.net <&7 >ibsim.log 2>&1 3>&- 7>&- &
    sim_pid=$!
    await 120 ready_or_ended || true
    prompted 1 || { cat ibsim.log; return 1; }
    run -0 --separate-stderr timeout 300 chroot "$trixie" ibsim-run /opt/rg/railgauge discover --ibnet live -o /opt/rg/live.json 7>&-
    [[ $output == *"network    31 leaves, 9 spines; 470 adapters of 121 hosts, 72 of unknown ones; 40 SHARP engines"* ]]
    [[ $output == *"cables     1114: 4xNDR (50.0 GB/s)"* ]]
    cp "$trixie/opt/rg/live.json" .
    [ "$(jq '[.net_nodes.rows[] | select(.[0] == "switch")] | length' live.json)" -eq 40 ]
    [ "$(jq '[.net_nodes.rows[] | select(.[0] != "switch")] | length' live.json)" -eq 582 ]
    [ "$(jq '[.cables.rows[] | select(.[4] == "4xNDR")] | length * 2' live.json)" -eq 2228 ]
    # What ibnetdiscover of that release prints says the same.
    timeout 300 chroot "$trixie" ibsim-run ibnetdiscover >dump.txt 2>/dev/null 7>&-
    [ "$(grep -c '4xNDR$' dump.txt)" -eq 2228 ]
    railgauge discover -q --ibnet dump.txt -o text.json
    cables='.net_nodes.rows as $n | .cables.rows[] | "\([$n[.[0]][1], .[1]] as $a | [$n[.[2]][1], .[3]] as $b | [$a, $b] | sort) \(.[4])"'
    diff <(jq -r "$cables" live.json | sort) <(jq -r "$cables" text.json | sort)
    run -1 railgauge lint live.json
    [ "$(grep -c '1 cable where 263 of 269 pairs' <<<"$output")" -eq 6 ]
}
