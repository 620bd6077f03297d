#!/usr/bin/env bats
# check.bats - railgauge check: a verdict for each host, kept and answered from; what it starts, and when it ends.

bats_require_minimum_version 1.5.0

load cpu.bash
load ../stranger.bash

top=$BATS_TEST_DIRNAME/../..

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export RAILGAUGE_STATE=$PWD/state
    unset "${!SLURM_@}"
}

simulated() { railgauge check --fabric gb200-nvl72 --racks 2 --noise 2% "$@"; }
# said HOST: its verdict.
said() { jq -r .verdict "state/$1.json"; }

@test "a host fails by its own parts, and nobody else with it" {
    run -0 simulated
    [[ ${lines[0]} == PASS:* ]]
    [ "$(jq -r .verdict state/*.json | sort | uniq -c | xargs)" = "36 PASS" ]
    run -1 simulated --fault slow-nic=17:0.52
    [[ ${lines[0]} == "FAIL: 1 of "* ]]
    [[ ${lines[1]} =~ ^"FAIL r00n04: railgauge: NIC mlx5_1 of r00n04 (GPU 1) at 5"[123]" % of normal over all NICs, "[0-9]+" partners"$ ]]
    [ "$(jq -r .verdict state/*.json | sort | uniq -c | xargs)" = "1 FAIL 35 PASS" ]
    for fault in dead-host=3 corrupt=13 slow-gpu=12:0.6 slow-host=3:0.5; do
        run -1 simulated --fault $fault --reason
        [[ $output == "r00n03 railgauge: "* ]]
        [ "${#lines[@]}" -eq 1 ]
        [ "$(said r00n03)" = FAIL ]
    done
}

@test "what is beyond a host fails the check and warns its hosts; alone a host fails by any figure" {
    run -1 simulated --fault slow-racks=0-1:0.5
    [[ ${lines[1]} == "WARN r00n[00-17],r01n[00-17]: railgauge: "* ]]
    run -0 railgauge check --last r00n03 --reason
    [ -z "$output" ]
    run -0 railgauge check --last r00n03
    [[ $output == "WARN: r00n03: railgauge: "* ]]
    echo '{"format": "railgauge-limits", "version": 1, "title": "x", "limits": [
        {"check": "tier-latency", "at_most": "1 ns", "source": "nothing is so quick"}]}' >strict.json
    run -1 simulated --limits strict.json --reason
    [ -z "$output" ]
    # A host alone is simulated, too: other processes decide what a real one measures.
    jq '.name = "one" | .layout += {hosts_per_rack: 1, hosts_per_leaf: 1, default_racks: 1}' "$top/topo/fabrics/hgx-h100.json" >one.json
    run -0 railgauge check --fabric ./one.json --noise 2% --reason
    run -1 railgauge check --fabric ./one.json --noise 2% --limits strict.json --reason
    [[ $output == "r00n00 railgauge: tier nvlink, latency of a pair: "*", limit 1.00 ns" ]]
}

@test "the last verdict: of this host or another, as text, reason, nagios and JSON; nothing is started" {
    run -1 simulated --fault slow-nic=17:0.52
    run -1 railgauge check --last r00n04
    [[ $output == "FAIL: r00n04: railgauge: NIC mlx5_1"* ]]
    run -1 railgauge check --last r00n04 -q
    [ -z "$output" ]
    run -2 railgauge check --last r00n04 --exit-style nagios
    [[ $output == "RAILGAUGE CRITICAL - r00n04: railgauge: NIC"* ]]
    run -0 env SLURMD_NODENAME=r00n05 railgauge check --last
    [ "$output" = "PASS: r00n05" ]
    [ "$(railgauge check --last r00n05 --json | jq -c '[.host, .verdict, .reason, .check.verdict]')" = '["r00n05","PASS","","FAIL"]' ]
    # With its domain or without, it is the same host.
    run -0 railgauge check --last r00n05.example.org -q
    # A plugin of a monitoring system has four codes, and one line.
    run -3 railgauge check --fabric ./nowhere.json --exit-style nagios
    [[ $output == "RAILGAUGE UNKNOWN - "*"nowhere.json"* ]]
    [ -z "${RG_SAN-}" ] || return 0 # sanitizers take their time
    # No program is found that could be started, and it is done in 10 ms of processor time.
    railgauge=$(command -v railgauge)
    for _ in 1 2 3 4 5; do
        cpu_seconds env PATH=/nowhere "$railgauge" check --last r00n05 >/dev/null && echo "$cpu"
    done | sort -g | head -1 | awk '{ print; exit !($1 < 0.01) }'
}

@test "no verdict, an old one, one of tomorrow, a torn one, another host's: could not judge" {
    simulated -q
    unknown() { run -2 railgauge check --last "${@:2}"; [[ $output == "UNKNOWN: $2: railgauge: could not judge: "*"$1"* ]] || { echo "$output"; false; }; }
    unknown "No such file" r09n09
    unknown "is no name of a host" ../r00n00
    jq --argjson t $(($(date +%s) - 259200)) '.time_s = $t' state/r00n00.json >old && cp old state/r00n00.json
    unknown "last check is 72 h 00 m old, more than 24 h 00 m" r00n00
    run -0 railgauge check --last r00n00 --max-age 96h
    [ "$(railgauge check --last r00n00 --json | jq -r .verdict)" = UNKNOWN ]
    run -3 railgauge check --last r00n00 --exit-style nagios
    jq --argjson t $(($(date +%s) + 86400)) '.time_s = $t' old >state/r00n00.json
    unknown "a time to come" r00n00
    head -c 300 old >state/r00n00.json
    unknown "state/r00n00.json" r00n00
    jq '.verdict = "GOOD"' old >state/r00n00.json
    unknown "no verdict " r00n00
    jq '.reason = "a\"b`c$(d)\u00e9"' old >state/r00n00.json
    run -0 railgauge check --last r00n00 --max-age 96h
    [ "$output" = 'PASS: r00n00: a b c (d)  ' ]
}

@test "what is kept and printed keeps to its schemas; -o keeps the campaign, else nothing stays" {
    mkdir tmp
    TMPDIR=$PWD/tmp simulated --fault slow-nic=17:0.52 --json >check.json || [ $? -eq 1 ]
    [ -z "$(ls tmp)" ]
    TMPDIR=$PWD/tmp run -1 simulated --fault slow-nic=17:0.52 -o kept
    [ -s kept/matrix.json ]
    run -1 railgauge accept kept
    run -78 simulated -o kept
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    for pair in check:check.json health:state/r00n04.json health:state/r00n05.json; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$top/src/schema/${pair%:*}.schema.json" "${pair#*:}"
    done
}

@test "the nodes of a job of Slurm, a rank for each GPU; an epilog's variables are not those of a job" {
    [ -x "$RG_BUILD/railgauge-probe" ] || skip "railgauge-probe is not built: no MPI was found"
    mkdir bin
    # shellcheck disable=SC2016 # its own words
    printf '#!/bin/sh\necho "$*" >>%s/started\nexit 78\n' "$PWD" >bin/mpirun
    chmod +x bin/mpirun
    export PATH=$PWD/bin:$PATH SLURM_JOB_NODELIST='n[1-2],m7' SLURM_JOB_NUM_NODES=3 SLURM_GPUS_ON_NODE=4
    run -78 railgauge check -t mpi
    grep -qE -- '^-n 12 .* -H n1:4,n2:4,m7:4 ' started
    run -78 env SLURM_SCRIPT_CONTEXT=epilog_slurmd railgauge check -t mpi
    ! tail -n 1 started | grep -q -- '-H'
    run -78 railgauge check -t mpi --hosts a,b
    tail -n 1 started | grep -q -- '-H a:1,b:1 '
    [ ! -e state ]
}

@test "alone: a rank for each GPU that the driver tells of; points that fail say why" {
    fake=$RG_BUILD/fake
    [ -e "$fake/libnvidia-ml.so.1" ] && [ -x "$RG_BUILD/railgauge-probe" ] || skip "no stand-ins for NVIDIA's libraries, or no MPI"
    mkdir bin
    # shellcheck disable=SC2016 # its own words
    printf '#!/bin/sh\necho "$*" >%s/started\nexit 78\n' "$PWD" >bin/mpirun
    chmod +x bin/mpirun
    run -78 env PATH="$PWD/bin:$PATH" RAILGAUGE_NVML="$fake/libnvidia-ml.so.1" FAKE_NVML="$top/tests/fake/nvml/b200.txt" railgauge check
    [[ $(<started) == "-n $(awk '$1 == "gpus" { print $2 }' "$top/tests/fake/nvml/b200.txt") "* ]]
    # The stand-in's memory does not hold 4 GiB.
    LD_LIBRARY_PATH=$fake:${LD_LIBRARY_PATH-} run -1 railgauge check -t nccl --ranks 2 --op all_reduce,pair_bw -b 4G -e 4G -n 2 --pair-bytes 1M --reason
    [[ $output == *" railgauge: data were wrong in 0 of "*" failed; first: rank "*"CUDA_ERROR_OUT_OF_MEMORY"* ]]
}

@test "the limit: less is measured, what was is judged, and it ends in time" {
    # What is missing may be what is bad: nobody is good then.
    run -2 --separate-stderr simulated --epochs 5 --matchings 64 --budget 30ms --limit 10s --json
    if [ -n "$output" ]; then
        [ "$(jq -c '[.complete, .verdict, ([.hosts[].verdict] | unique)]' <<<"$output")" = '[false,"UNKNOWN",["UNKNOWN"]]' ]
        [[ $(jq -r .line <<<"$output") == "UNKNOWN: the limit was spent after "*" of "*" points" ]]
    fi
    run -64 railgauge check --limit 9s
    [ -x "$RG_BUILD/railgauge-probe" ] || return 0
    printf '#!/bin/sh\nexec sleep 600\n' >never
    chmod +x never
    mkdir tmp
    TMPDIR=$PWD/tmp run -2 timeout 300 railgauge check -t mpi --launch ./never --limit 10s
    [[ $output == *"the limit was spent before there was anything to judge"* ]]
    [ -z "$(ls tmp)" ]
}

# as_stranger COMMAND...: as a user without rights.
as_stranger() {
    setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"
}

@test "an unprivileged user measures, root takes the result and believes no file that others can write" {
    [ "$(id -u)" -eq 0 ] || skip "giving files away needs root"
    stranger=$(install_for_strangers)
    mkdir theirs
    chown 65534 theirs
    run -1 as_stranger "$stranger" check --fabric hgx-h100 --racks 1 --noise 2% --fault slow-nic=1:0.5 --state theirs/state -q
    run -1 railgauge check --take theirs/state r00n00
    [[ $output == "FAIL: r00n00: railgauge: NIC mlx5_1"* ]]
    [ "$(stat -c %u state/r00n00.json)" -eq 0 ]
    run -1 railgauge check --last r00n00 --reason
    # Straight from the user's folder it is no verdict for root, for others it is one.
    run -2 railgauge check --last r00n00 --state theirs/state
    [[ $output == *"could not judge: "*"belongs to user 65534"* ]]
    run -1 railgauge check --last r00n00 --state theirs/state --trust-owner
    run -1 as_stranger "$stranger" check --last r00n00 --state theirs/state
    # An older result does not replace a newer one, and it is the newer one that is told.
    jq '.time_s -= 60 | .verdict = "PASS" | .reason = ""' theirs/state/r00n00.json >x && cp x theirs/state/r00n00.json
    run -1 railgauge check --take theirs/state r00n00
    jq '.time_s += 60 | .verdict = "PASS" | .reason = ""' theirs/state/r00n00.json >x && cp x theirs/state/r00n00.json
    run -1 railgauge check --take theirs/state r00n00
    jq '.time_s += 1' x >theirs/state/r00n00.json
    run -0 railgauge check --take theirs/state r00n00
}

@test "root takes no result by a link, a FIFO, for another host, of times to come, or from a folder of many" {
    [ "$(id -u)" -eq 0 ] || skip "giving files away needs root"
    railgauge check --fabric hgx-h100 --racks 1 --noise 2% --state theirs -q
    railgauge check --fabric hgx-h100 --racks 1 --noise 2% -q
    chown -R 65534 theirs
    mkdir victim
    cp theirs/r00n00.json victim/secret.json
    refused() { # REASON
        cp state/r00n00.json before
        run -2 timeout 20 railgauge check --take theirs r00n00
        [[ $output == "UNKNOWN: r00n00: railgauge: could not judge: "*"$1"* ]] || { echo "$output"; false; }
        cmp before state/r00n00.json
    }
    newer() { jq --argjson s "$1" '.time_s += $s' victim/secret.json >theirs/r00n00.json; }
    newer 3590
    run -0 railgauge check --take theirs r00n00 --quiet
    newer 3620
    refused "of a time to come"
    newer 3600 # later than the last
    jq '.host = "r00n01"' theirs/r00n00.json >x && cp x theirs/r00n00.json
    refused "of host r00n01, not of r00n00"
    jq '.host = "r00n000"' x >theirs/r00n00.json
    refused "of host r00n000, not of r00n00"
    jq '.host = "r00n00.example.org"' x >good
    cp good theirs/r00n00.json
    chmod g+w theirs
    refused "not a folder that only its owner may write to"
    chmod g-w theirs
    rm theirs/r00n00.json
    ln -s "$PWD/victim/secret.json" theirs/r00n00.json
    refused "not a file of the owner of its folder (user 65534)"
    rm theirs/r00n00.json
    mkfifo theirs/r00n00.json
    chown 65534 theirs/r00n00.json
    refused "not a regular file"
    rm theirs/r00n00.json
    refused "No such file or directory"
    ln -s theirs link
    cp good theirs/r00n00.json
    chown 65534 theirs/r00n00.json
    run -2 railgauge check --take link r00n00
    [[ $output == *"not a folder that only its owner may write to"* ]]
    run -0 railgauge check --take theirs r00n00 -q
}

@test "a program that runs as another user than its caller has no environment" {
    [ "$(id -u)" -eq 0 ] || skip "a set-user-ID program needs root"
    # The caller is root, the program 65534's: as unequal as the other way round (AT_SECURE).
    install -o 65534 -m 4755 "$(command -v railgauge)" other
    chmod a+x . .. ../..
    RAILGAUGE_NCCL=/nowhere/else.so run railgauge discover --libraries
    [[ $output == *"/nowhere/else.so"* ]]
    RAILGAUGE_NCCL=/nowhere/else.so run ./other discover --libraries
    [[ $output == *NCCL* && $output != *"/nowhere/else.so"* ]]
}

left() { compgen -G "$PWD/tmp/railgauge-check-*" >/dev/null; }

@test "what a killed check leaves is cleared by the next one, unless it is young enough to be starting" {
    [ -x "$RG_BUILD/railgauge-probe" ] || skip "railgauge-probe is not built: no MPI was found"
    . "$BATS_TEST_DIRNAME/../await.bash"
    printf '#!/bin/sh\nexec sleep 600\n' >never
    chmod +x never
    mkdir tmp
    TMPDIR=$PWD/tmp railgauge check -t mpi --launch ./never --limit 5m 3>&- &
    job=$!
    await 60 left
    sleep 0.2
    kill -9 $job
    wait $job || true
    left
    # One that is in use is not touched, however old it is.
    mkdir tmp/railgauge-check-inuse0
    exec 9<tmp/railgauge-check-inuse0
    flock -n 9
    touch -d '-2 days' tmp/railgauge-check-inuse0
    touch -d '-40 sec' tmp/railgauge-check-[!i]*
    TMPDIR=$PWD/tmp simulated -q
    [ "$(find tmp -name 'railgauge-check-*' -maxdepth 1 | wc -l)" -eq 2 ]
    touch -d '-62 sec' tmp/railgauge-check-[!i]*
    TMPDIR=$PWD/tmp simulated -q
    [ "$(ls tmp)" = railgauge-check-inuse0 ]
}
