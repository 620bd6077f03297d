#!/usr/bin/env bats
# run.bats - the whole chain on the simulated fabric returns the truth that was put in.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# sim DIR OPTION...: one campaign without pictures.
sim() {
    local dir=$1
    shift
    railgauge run --transport sim --no-plots -o "$dir" "$@"
}

# share A B: |A/B - 1| in thousandths, rounded down.
apart() {
    awk -v a="$1" -v b="$2" 'BEGIN { d = a / b - 1; print int(1000 * (d < 0 ? -d : d)) }'
}

# beta DIR TIER: seconds a byte of the tier's one-way bandwidth.
beta() { railgauge show "$1/matrix.json" tiers --json | jq -r --arg t "$2" ".tiers[] | select(.name == \$t) | 1 / .Bps"; }

@test "eight racks with a slow NIC: racks found, endpoint 17 named, every tier within 1 %" {
    run sim c --fabric gb200-nvl72 --racks 8 --noise 3% --fault slow-nic=17:0.6
    [ "$status" -eq 1 ]
    [[ $output == *"c: 576 GPUs on 144 hosts, simulated gb200-nvl72; declared: 8 racks, 8 domains"* ]]
    [[ $output == *"8 racks: the measured groups of hosts are the declared ones"* ]]
    [ "$(jq '.exceptions | length' c/matrix.json)" -eq 1 ]
    [ "$(jq -r '.exceptions[0] | "\(.part) \(.a)"' c/matrix.json)" = "endpoint 17" ]
    [ "$(apart "$(jq '.exceptions[0].factor' c/matrix.json)" 0.6)" -le 20 ]
    for pair in mnnvl:770e9 rail:49.2e9 fabric:49.2e9; do
        [ "$(apart "$(beta c "${pair%:*}")" "$(awk -v r="${pair#*:}" 'BEGIN { print 1 / r }')")" -lt 10 ]
    done
    for file in topology.json plan.tsv points.tsv matrix.json prediction.json; do [ -s "c/$file" ]; done
    [ "$(jq -r '.format, (.predictions | length)' c/prediction.json | xargs)" = "railgauge-predictions 2" ]
    if python3 -c 'import jsonschema' 2>/dev/null; then
        python3 -m jsonschema -i c/prediction.json "$BATS_TEST_DIRNAME/../../src/schema/predictions.schema.json"
    fi
}

@test "blind, the same racks are found from measured pairs alone" {
    run sim c --fabric gb200-nvl72 --racks 4 --noise 3% --blind --op pairs
    [ "$status" -eq 0 ]
    [[ $output == *"; found by measuring: 4 racks"* ]]
    [[ $output == *"r00n[00-17]; r01n[00-17]; r02n[00-17]; r03n[00-17]"* ]]
    run jq -e '.places | tostring | contains("measured")' c/matrix.json
    [ "$status" -eq 0 ]
}

@test "each kind of fault is named as what it is" {
    run -1 sim a --fabric gb200-nvl72 --racks 4 --noise 2% --op pairs --fault slow-racks=1-3:0.5
    [ "$(jq -r '.exceptions[] | "\(.part) \(.a) \(.b)"' a/matrix.json)" = "rack_pair 1 3" ]
    run -1 sim b --fabric gb200-nvl72 --racks 2 --noise 2% --op pairs --fault dead-host=5
    [ "$(jq -r '.exceptions[] | "\(.part) \(.a) \(.factor == 0)"' b/matrix.json)" = "host 5 true" ]
    run -1 sim e --fabric hgx-h100 --noise 2% --op pairs --fault slow-nic=33:0.85:rx
    [ "$(jq -r '.exceptions[] | "\(.part) \(.a) \(.side)"' e/matrix.json)" = "endpoint 33 rx" ]
    run -1 sim d --fabric gb200-nvl72 --racks 2 --noise 2% --op pair_bw,pair_latency --exact --epochs 1 --fault slow-link=10-100:0.5
    [ "$(jq -r '.exceptions[] | "\(.part) \(.a) \(.b)"' d/matrix.json)" = "pair 10 100" ]
}

@test "what was looked at is told: a bad cable that was not measured is no clean bill; --exact finds it" {
    run -0 sim c --fabric gb200-nvl72 --racks 2 --noise 2% --op pair_bw --fault slow-link=10-100:0.5
    [[ $output == *"No slow part found among the "*" % of all pairs that were measured"* ]]
    [[ $output == *"coverage: "*"rail "*" each)"*"shows only where that pair is among them; --exact measures all, about "* ]]
    [ "$(jq '[.tiers[].coverage.possible_pairs] | add' c/matrix.json)" -eq $((144 * 143 / 2)) ]
    railgauge show c/matrix.json tiers --json | jq -e 'all(.tiers[]; .coverage.measured_pairs < .coverage.possible_pairs)'
    run -0 sim c --fabric gb200-nvl72 --racks 2 --cables 5m --dry-run
    [[ ${lines[-1]} == "5184 of 5184 pairs of NICs are measured, 100 %" ]]
    run -0 sim c --fabric gb200-nvl72 --racks 2 --cables 5s --dry-run
    [[ ${lines[-1]} =~ ^[0-9]+\ of\ 5184\ pairs\ of\ NICs\ are\ measured,\ [34][0-9.]*\ %\;\ --cables\ TIME\ adds\ what\ fits\ into\ it$ ]]
    run -1 sim e --fabric gb200-nvl72 --racks 2 --noise 2% --op pair_bw --cables 5m --fault slow-cable=10-100:0.5
    [ "$(jq -c '[.exceptions[] | [.part, .a, .b]]' e/matrix.json)" = '[["pair",10,100]]' ]
    run -0 sim d --fabric hgx-h100 --racks 1 --noise 1% --op pair_bw --exact --epochs 1
    [[ $output == *$'\nNo slow part found\n'* ]]
    [[ $output != *"coverage: "* ]]
}

@test "one rack, where no pair crosses a NIC: a second pass does, is resumed where it was cut, and left out on request" {
    run -0 sim x --fabric gb200-nvl72 --dry-run
    [[ $output == *"153 of the rounds, "*" are a second pass through the NICs, which no pair crosses otherwise (--no-nic-pass leaves it out)"* ]]
    local rack=(--fabric gb200-nvl72 --noise 3% --op pairs -f 8 --fault slow-nic=17:0.6)
    run -1 sim c "${rack[@]}"
    [[ $output == *$'\n1 slow part found (exit code 1)\n\nNIC mlx5_1 of r00n04 (GPU 1): 60 % of normal, '*"  next step   railgauge show c parts"* ]]
    [ "$(jq -r '.exceptions[] | "\(.part) \(.a) \(.tier)"' c/matrix.json)" = "endpoint 17 null" ]
    [ "$(apart "$(beta c rail)" "$(awk 'BEGIN { print 1 / 49.2e9 }')")" -lt 10 ]
    railgauge cost c/matrix.json 17 18 64M | grep -q "pair of tier mnnvl" # what goes over NVLink is as it was
    # cut in the second pass: so many rows are left
    local first
    first=$(awk -F'\t' '$4 ~ /^nic/ { print NR; exit }' c/points.tsv)
    mkdir d
    cp c/topology.json c/plan.tsv c/campaign.json d/
    head -n $((first + 700)) c/points.tsv >d/points.tsv
    run -1 railgauge run --resume -o d --no-plots
    cmp c/points.tsv d/points.tsv
    run -0 sim e "${rack[@]}" --no-nic-pass
    [[ $output != *"NIC mlx5"* ]]
    ! grep -q nic e/plan.tsv
}

@test "without a fault nothing is named" {
    sim c --fabric hgx-h200 --noise 3% --op pairs
    [ "$(jq '.exceptions | length' c/matrix.json)" -eq 0 ]
}

@test "wrong data is the first part named, no job is placed on it, and no step is told" {
    run -1 sim c --fabric hgx-h100 --racks 2 --noise 1% -f 16 --fault slow-gpu=40:0.6 --fault corrupt=5
    [[ $output == *"railgauge run: warning: c: data were wrong in "*"endpoint 5: byte "* ]]
    run -0 railgauge show c/matrix.json findings
    [ "${lines[0]}" = "2 faulty parts found: 1 with wrong data, 1 slow" ]
    [[ ${lines[1]} == "GPU 5 of r00n00: wrong data in "*" of "*" checks, confidence "* ]]
    [[ $output == *$'\nGPU 0 of r01n01: 60 % of normal, '* ]]
    [[ $output == *"  evidence    received wrong data in "*": "*": endpoint 5: byte "* ]]
    [ "$(jq -c '[.exceptions[] | .a, .wrong]' c/matrix.json)" = '[5,true,40,null]' ]
    run -0 railgauge cost c/matrix.json 5 9 1M
    [[ $output == *"wrong data: GPU 5 of r00n00"* ]]
    run -0 railgauge place c/matrix.json --model llama3.1-8b --layout dp_shard=32 --gpus 32
    [[ $output != *"r00n00"* ]]
    run -2 railgauge predict c/matrix.json --model llama3.1-8b --layout dp_shard=64
    [[ $output == *"dead or gives wrong data"* ]]
}

@test "exit code 1 where a part is named, for the campaign and for its fit; --no-verdict: 0" {
    slow=(--fabric hgx-h100 --racks 1 --noise 1% --op pairs --fault slow-gpu=3:0.5)
    run -1 sim c "${slow[@]}"
    run -1 railgauge fit c
    run -0 railgauge fit c --no-verdict
    run -0 railgauge show c
    run -0 sim d "${slow[@]}" --no-verdict
    run -0 sim e --fabric hgx-h100 --racks 1 --noise 1% --op pairs
    run -0 railgauge fit e
}

@test "the same command gives the same points" {
    sim a --fabric hgx-b200 --racks 1 --noise 3% --op pairs --sim-seed 4
    sim b --fabric hgx-b200 --racks 1 --noise 3% --op pairs --sim-seed 4
    cmp <(grep -v '^#' a/points.tsv) <(grep -v '^#' b/points.tsv)
    sim c --fabric hgx-b200 --racks 1 --noise 3% --op pairs --sim-seed 5
    ! cmp -s <(grep -v '^#' a/points.tsv) <(grep -v '^#' c/points.tsv)
}

@test "a folder with a campaign is not overwritten; --resume finishes a torn one" {
    sim c --fabric hgx-h100 --racks 1 --op pairs
    run --separate-stderr sim c --fabric hgx-h100 --racks 1 --op pairs
    [ "$status" -eq 78 ]
    [[ $stderr == *"c already holds a campaign; --resume finishes it, another -o starts a new one"* ]]
    rows=$(grep -vc '^#' c/points.tsv)
    truncate -s $(($(stat -c %s c/points.tsv) / 2)) c/points.tsv
    run sim c --fabric hgx-h100 --racks 1 --op pairs --resume
    [ "$status" -eq 0 ]
    [ "$(grep -vc '^#' c/points.tsv)" -eq "$rows" ]
}

@test "without -o a campaign is called by when it began and what it measured, none replaces another, last leads to it" {
    words=(-t sim --fabric hgx-h100 --racks 1 -b 1M -e 1M --op pairs --no-plots)
    for _ in 1 2 3; do run -0 railgauge run "${words[@]}"; done
    [ "$(find . -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 3 ]
    for d in campaign-*; do
        [[ $d =~ ^campaign-20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9][0-5][0-9]-hgx-h100(-[23])?$ ]]
        [ -s "$d/matrix.json" ]
    done
    [ -L last ]
    [ "$(stat -Lc %i last)" = "$(find . -mindepth 1 -maxdepth 1 -type d -printf '%i %T@\n' | sort -k 2n | awk 'END { print $1 }')" ]
    newest=$(readlink last)
    truncate -s $(($(stat -c %s last/points.tsv) / 2)) last/points.tsv
    run -0 railgauge run --resume --no-plots
    [[ $output == *"$newest: 32 endpoints"* ]]
    [ "$(find . -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 3 ]
    railgauge show last | grep -q '^nvlink '
}

@test "what is called last and is no link stays; a campaign that finds nothing leaves no folder" {
    mkdir last
    run -0 railgauge run -t sim --fabric hgx-h100 --racks 1 -b 1M -e 1M --op pair_bw --no-plots
    [[ $output == *"last is no link and stays as it is; the campaign is campaign-"* ]]
    [ ! -L last ]
    rm -r last campaign-*
    run -66 railgauge run --resume
    [[ $output == *"no campaign to resume: last: No such file or directory; -o names one"* ]]
    run -78 railgauge run -t mpi --launch false
    [ -z "$(ls -A)" ]
    printf '#!/bin/sh\nexit 75\n' >cut
    chmod +x cut
    run -75 railgauge run -t mpi --launch ./cut
    [ "$(ls -A)" = cut ]
}

@test "two runs in one folder: the second is refused" {
    mkdir c
    exec 9<c
    flock -n 9
    run --separate-stderr sim c --fabric hgx-h100 --racks 1
    [ "$status" -eq 74 ]
    [[ $stderr == *"c: another run is using this folder"* ]]
}

# lacking "NAME=ERRNO ..." COMMAND...: on a file system without these calls.
lacking() { FAULTY=$1 LD_PRELOAD=$RG_BUILD/fake/libfaulty.so "${@:2}"; }

@test "a file system without flock: fcntl, then a file of the owner; only a lock that is held is another run" {
    [ -e "$RG_BUILD/fake/libfaulty.so" ] || skip "the stand-ins are not built (make check builds them)"
    [ -z "${RG_SAN-}" ] || skip "sanitizers come first"
    words=(railgauge run --transport sim --fabric hgx-h100 --racks 1 --op pair_bw -b 1M -e 1M --no-plots --no-verdict)
    for errno in 38 95 37; do # ENOSYS, EOPNOTSUPP, ENOLCK
        run -0 lacking "flock=$errno" "${words[@]}" -o c$errno
        [ ! -e c$errno/.owner ]
        run -0 lacking "flock=$errno fcntl=$errno" "${words[@]}" -o d$errno
        [[ $output == *"d$errno: no locks here; d$errno/.owner marks this run instead"* ]]
        [ ! -e d$errno/.owner ] && [ ! -e d$errno/.lock ] # given back
        run -0 lacking "flock=$errno fcntl=$errno" railgauge run --resume -o d$errno --no-plots --no-verdict
    done
    # Held: by flock (EWOULDBLOCK), by fcntl (EAGAIN, EACCES), by a file of a process that is there.
    for held in flock=11 "flock=38 fcntl=11" "flock=38 fcntl=13"; do
        run -74 lacking "$held" "${words[@]}" -o e
        [[ $output == *"e: another run is using this folder" ]]
    done
    rm -rf f && mkdir f
    echo "$(hostname) $$ $(awk '{ print $22 }' /proc/$$/stat)" >f/.owner
    cp f/.owner owner
    run -74 lacking "flock=38 fcntl=38" "${words[@]}" -o f
    [[ $output == *"f: another run is using this folder: host, process and start $(<owner); if it is gone, remove f/.owner" ]]
    cmp owner f/.owner
    # Nor is one taken over that another host, or nobody, has written.
    for text in "elsewhere 1 1" ""; do
        echo "$text" >f/.owner
        run -74 lacking "flock=38 fcntl=38" "${words[@]}" -o f
        [ "$(<f/.owner)" = "$text" ]
    done
    # Its process is gone, or its number has another process now.
    for text in "$(hostname) 4194999 5" "$(hostname) $$ 5"; do
        echo "$text" >f/.owner
        rm -f f/points.tsv
        run -0 lacking "flock=38 fcntl=38" "${words[@]}" -o f
        [ "$(find f -name '.owner*' | wc -l)" -eq 0 ]
    done
}

@test "a folder whose fsync fails is told; one that has no such call is not" {
    [ -e "$RG_BUILD/fake/libfaulty.so" ] || skip "the stand-ins are not built (make check builds them)"
    [ -z "${RG_SAN-}" ] || skip "sanitizers come first"
    railgauge discover --fabric hgx-h100 --racks 1 -o t.json -q
    for errno in 22 95; do # EINVAL, EOPNOTSUPP
        run -0 lacking "dirsync=$errno" railgauge plan t.json -o plan.tsv
        [ "$output" = "${output/power cut/}" ]
    done
    for errno in 5 28; do # EIO, ENOSPC
        run -74 lacking "dirsync=$errno" railgauge plan t.json -o plan.tsv
        [[ $output == *"plan.tsv: written, but may not outlive a power cut: its folder: "* ]]
    done
}

@test "a signal ends a campaign with 75 and a resume continues it" {
    # Three million points: it is not done before the signal comes, however late that is.
    words=(--transport sim --no-plots -o c --fabric gb200-nvl72 --racks 20 --op pairs --exact)
    railgauge run "${words[@]}" 3>&- &
    pid=$!
    for _ in $(seq 600); do
        [ ! -s c/points.tsv ] || break
        sleep 0.1
    done
    kill -TERM "$pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 75 ]
    run railgauge run --resume "${words[@]}" --budget 1ms
    [ "$status" -eq 75 ]
    [[ $output == *"the budget of 0.001 s is spent; --resume measures what is missing"* ]]
}

@test "a signal as soon as the launcher runs is passed on to it" {
    [ -x "$RG_BUILD/railgauge-probe" ] || skip "railgauge-probe is not built: no MPI was found"
    printf '%s\n' '#!/bin/sh' 'trap "echo passed on >passed; exit 1" TERM' 'kill -TERM $PPID' \
        'i=0; while [ $i -lt 600 ]; do i=$((i + 1)); sleep 0.1; done' >launcher
    chmod +x launcher
    run railgauge run --transport mpi --launch ./launcher -o c
    [ "$status" -eq 75 ]
    [[ $output == *"probe was cut short" ]] # and there is nothing to resume
    [ "$(cat passed)" = "passed on" ]
}

@test "a dry run prints the plan's cost and writes nothing" {
    run sim c --fabric gb200-nvl72 --racks 8 --dry-run
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "576 endpoints, "*" rounds, about "*" points, "*" moved, about "*" of measuring" ]]
    [ ! -e c ]
}

# racks N BYTES: N racks of 72 endpoints, and a matrix of less.
racks() {
    run -0 sim c --fabric gb200-nvl72 --racks "$1" --matchings 1 --op pair_bw --no-retest --noise 1%
    [[ $output == *"$(($1 * 72)) GPUs on $(($1 * 18)) hosts"* ]]
    [ "$(stat -c %s c/matrix.json)" -lt "$2" ]
}
@test "10,008 endpoints are simulated in one process" { racks 139 1000000; }
# bats test_tags=nightly
@test "100,008 endpoints are simulated in one process" { racks 1389 10000000; }

@test "options that contradict each other are refused" {
    run --separate-stderr railgauge run --transport sim
    [ "$status" -eq 64 ]
    [[ $stderr == *"--transport sim needs --fabric NAME"* ]]
    run --separate-stderr railgauge run --transport mpi --fabric hgx-h100
    [ "$status" -eq 64 ]
    [[ $stderr == *"--fabric hgx-h100 belongs to --transport sim"* ]]
    run --separate-stderr railgauge run --transport carrier-pigeon
    [ "$status" -eq 64 ]
    [[ $stderr == *'no transport "carrier-pigeon"; known are auto, mpi, nccl, copy, verbs and sim'* ]]
    run --separate-stderr railgauge run -e 8X
    [ "$status" -eq 64 ]
    [[ $stderr == *'"8X" is not a size such as 8, 32K, 1M or 8G'* ]]
}

@test "--resume knows the campaign's options, and refuses others by name" {
    words=(--transport sim --fabric hgx-h100 --racks 1 --noise 4% --sim-seed 7 -b 1M -e 1M --op pairs
        --fault slow-nic=3:0.5 --fault slow-host=1:0.5)
    run -1 railgauge run "${words[@]}" --no-plots -o c # a part is named
    python3 - "$BATS_TEST_DIRNAME/../../src/schema/campaign.schema.json" c/campaign.json <<'PY' || ! python3 -c 'import jsonschema'
import json, sys, jsonschema
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))
PY
    cp c/points.tsv was
    for again in "" "--noise=4% -t sim --model llama3.1-70b" "--fault slow-nic=3:0.5 --fault slow-host=1:0.5"; do
        head -n 30 was >c/points.tsv
        # shellcheck disable=SC2086 # words are wanted
        run -1 railgauge run --resume -o c --no-plots $again
        cmp was c/points.tsv
    done
    cut() { run -64 railgauge run --resume -o c --no-plots "$@"; }
    cut --noise 5%
    [[ $output == *"--noise is 5% and was 4% when c was begun; --resume needs no options but -o"* ]]
    cut --blind
    [[ $output == *"--blind is given and was not given when c was begun"* ]]
    cut --fault slow-nic=3:0.5
    [[ $output == *"--fault is slow-nic=3:0.5 and was slow-nic=3:0.5, slow-host=1:0.5 when"* ]]
    cut -t mpi
    cmp was c/points.tsv
    rm c/campaign.json # as an older version leaves it
    run -1 railgauge run --resume -o c --no-plots "${words[@]}"
    echo '{"format": "railgauge-campaign", "version": 1, "provenance": {}, "options": {"noise": [4]}}' >c/campaign.json
    run -65 railgauge run --resume -o c
    [[ $output == *"c/campaign.json: options.noise[0] is neither text nor null"* ]]
}

@test "too few files, a file that may not grow, a dry run on other hosts: said, nothing hangs or starts" {
    if [ -x "$RG_BUILD/railgauge-probe" ]; then
        code=0
        (ulimit -n 24 && exec timeout 60 railgauge run -t mpi --ranks 2 -o few) 2>said || code=$?
        [ "$code" -eq 78 ]
        [[ $(<said) == *"only 24 files may be open at once (ulimit -n): ranks need 128 or more"* ]]
    fi
    sim c --fabric hgx-h100 --racks 1 -b 1M -e 1M --op pairs
    cat c/matrix.json >old.json
    code=0
    (ulimit -f 1 && exec railgauge fit c -o old.json) 2>said || code=$?
    [ "$code" -eq 74 ]
    [[ $(<said) == *"old.json: cannot write: File too large"* ]]
    cmp c/matrix.json old.json
    printf '#!/bin/sh\ntouch started\n' >mpirun
    chmod +x mpirun
    PATH=$PWD:$PATH run -0 railgauge run -t mpi --dry-run --hosts 'n[1-2]'
    [[ $output == *"mpirun -n 2 "*"-H n1:1,n2:1"*"railgauge-probe probe -t mpi"* ]]
    [ ! -e started ]
    [ "$(stat -c %a c)" = "$(printf %o $((0770 & ~$(umask))))" ]
    [ -z "$(find . -name '*.tmp.*')" ]
}

@test "more ranks than a machine bears are refused before anything starts, by run and replay" {
    [ -x "$RG_BUILD/railgauge-probe" ] || skip "railgauge-probe is not built: no MPI was found"
    printf '#!/bin/sh\ntouch %s/started\nexit 78\n' "$PWD" >mpirun
    chmod +x mpirun
    most=$((32 * $(env -u OMP_NUM_THREADS nproc)))
    for ranks in $((most + 1)) 1000000; do
        run -64 env PATH="$PWD:$PATH" railgauge run -t mpi --ranks $ranks -o c --no-plots
        [[ $output == *"$ranks ranks are too many for this machine: at most $most, 32 for each of its $((most / 32)) cores (--hosts or --launch start them elsewhere)" ]]
        [ ! -e started ]
    done
    run -78 env PATH="$PWD:$PATH" railgauge run -t mpi --ranks $most -o d --no-plots
    [ -e started ]
    rm started
    # A simulated matrix has a rank for each of its endpoints.
    racks=$((most / 72 + 1))
    railgauge run -t sim --fabric gb200-nvl72 --racks $racks --op pair_bw -b 1M -e 1M --no-plots --no-verdict -o e >/dev/null
    run -64 env PATH="$PWD:$PATH" railgauge replay e/matrix.json --model llama3.1-8b --layout dp_shard=$((72 * racks))
    [[ $output == *"$((72 * racks)) ranks are too many for this machine"* ]]
    [ ! -e started ]
}

@test "a slow GPU of one rack is a slow part, and its slow pairs are no riddle about racks" {
    run railgauge run -t sim --fabric gb200-nvl72 --noise 3% --fault slow-gpu=40:0.7 --no-nic-pass --no-plots \
        -o "$BATS_TEST_TMPDIR/c"
    [ "$status" -eq 1 ]
    grep -q '^GPU 0 of r00n10: ' <<<"$output"
    ! grep -q '^racks: pairs of hosts fall' <<<"$output" || false
}

@test "rails that nobody sees make no endpoint late: its pairs answer as the wider tier's do" {
    for seed in 1011 2; do
        run railgauge run -t sim --fabric gb300-nvl72-spectrumx --racks 9 --blind --noise 4.4% --sim-seed $seed \
            --op pair_latency,pair_bw --no-plots -o "$BATS_TEST_TMPDIR/c$seed"
        [ "$status" -eq 0 ]
        [ "$(jq '.exceptions | length' "$BATS_TEST_TMPDIR/c$seed/matrix.json")" -eq 0 ]
    done
}

@test "two racks that are slow one way: one line, and the tiers are what they are without it" {
    run railgauge run -t sim --fabric gb200-nvl72 --racks 2 --noise 2% --fault slow-rack-uplinks=0:0.5:tx --op pairs --no-plots \
        -o "$BATS_TEST_TMPDIR/c"
    [ "$status" -eq 1 ]
    [ "$(jq -r '.exceptions[] | "\(.part) \(.side) \(.a) \(.b)"' "$BATS_TEST_TMPDIR/c/matrix.json")" = "rack_pair tx 0 1" ]
    run railgauge show "$BATS_TEST_TMPDIR/c" tiers --json
    jq -e '[.tiers[] | select(.nic) | .Bps / 49.2e9 | . > 0.98 and . < 1.02] | length == 2 and all' <<<"$output"
}
