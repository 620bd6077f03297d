#!/usr/bin/env bats
# smpi.bats - the MPI program, compiled from the same sources, under SimGrid: 36 ranks on a platform that
# `railgauge export` wrote; the fitted matrix must return the platform's numbers.  Simulated time has no
# noise, so few samples do; every poll of a rank that waits is simulated, so few ranks do, too.  A caught SIGTERM ends the simulation late: limits kill.

bats_require_minimum_version 1.5.0

have_simgrid() { command -v smpicc >/dev/null && command -v smpirun >/dev/null; }

setup_file() {
    local top build
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    build=$(cd "${RG_BUILD:-$top/build}" && pwd)
    export SMPI_PROBE=$build/railgauge-probe-smpi
    [ -n "${RG_SAN-}" ] || ! have_simgrid || make -s -C "$top" BUILD="$build" "$SMPI_PROBE"
}

setup() {
    [ -z "${RG_SAN-}" ] || skip "SimGrid's context switches and sanitizers do not go together"
    have_simgrid || skip "no SimGrid here (libsimgrid-dev)"
    cd "$BATS_TEST_TMPDIR" || return 1
}

# smpi RANKS WORDS... - run the MPI program on platform.xml.
smpi() {
    local ranks=$1
    shift
    timeout -s KILL 300 smpirun -np "$ranks" -platform platform.xml -hostfile hosts \
        --log=root.thresh:error --cfg=network/model:CM02 --cfg=network/crosstraffic:0 \
        --cfg=smpi/simulate-computation:false "$SMPI_PROBE" "$@"
}

# near TIER PATH WANTED - the number of matrix.json is within 2 % of what the preset says.
near() {
    jq -e --arg tier "$1" --argjson wanted "$3" \
        '.tiers[] | select(.name == $tier) | .curves | '"$2"' | (. - $wanted) / $wanted | fabs < 0.02' matrix.json
}

preset() {
    jq -r --arg tier "$1" '.tiers[] | select(.name == $tier) | '"$2"'.value' \
        "$BATS_TEST_DIRNAME/../../topo/fabrics/gb200-nvl72.json"
}

@test "2 racks of 18 hosts: the matrix returns latency and bandwidth of both tiers within 2 %" {
    railgauge export --format simgrid --fabric gb200-nvl72 --racks 2 --hosts-per-rack 18 -o platform.xml --hostfile hosts
    railgauge discover --fabric gb200-nvl72 --racks 2 -q -o all.json
    # One rank a host: the first GPU of each.
    jq -c '.endpoints.rows |= map(select(.[5] == 0))' all.json >topology.json
    railgauge seal topology.json
    railgauge plan topology.json --pairs class --matchings 1 --op pair_latency,pair_bw --epochs 1 \
        -b 64 -e 4M -f 16 --pair-bytes 256K
    smpi 36 probe --topology topology.json --plan plan.tsv -n 4 -w 1 --no-check --no-retest
    railgauge fit -q --no-verdict -o matrix.json topology.json plan.tsv points.tsv
    for tier in mnnvl rail; do
        near "$tier" .oneway.alpha_s "$(preset "$tier" .alpha_s)"
        near "$tier" '.uni.beta_s_per_B | 1 / .' "$(preset "$tier" .bandwidth_Bps)"
    done
}

@test "4 racks of 2 hosts are found by measuring, without being told" {
    railgauge export --format simgrid --fabric gb200-nvl72 --racks 4 --hosts-per-rack 2 -o platform.xml --hostfile hosts
    smpi 8 probe --op pair_latency,pair_bw --epochs 1 -b 64 -e 1M -f 64 --pair-bytes 256K -n 4 -w 1 --no-check --no-retest
    [ "$(jq -r '[.hosts.rows[][0]] | join(" ")' topology.json)" = "$(paste -sd' ' hosts)" ]
    [ "$(jq '.levels.rack | length' topology.json)" -eq 0 ]
    railgauge fit -q --no-verdict -o matrix.json topology.json plan.tsv points.tsv
    run railgauge show matrix.json
    [[ $output == *"4 racks"* ]]
}

# A host a rank, nothing told: tiers are found by measuring, and every pair, the slow sender's too, costs
# what it costs in the matrix that the platform was made from.
@test "three tiers and a slow sender: every pair's latency and time come back within 2 %" {
    matrix=$(cd "$BATS_TEST_DIRNAME/../golden/export" && pwd)/campaign/matrix.json
    railgauge export --format simgrid --per endpoint "$matrix" -o platform.xml --hostfile hosts
    smpi 8 probe --op pair_latency,pair_bw --exact --epochs 1 -b 64 -e 64K -f 1024 --pair-bytes 32M \
        -n 4 -w 1 --no-check --no-retest
    railgauge fit -q --no-verdict -o measured.json topology.json plan.tsv points.tsv
    [ "$(jq -r '[.tiers[].curves | has("oneway") and has("uni")] | tostring' measured.json)" = "[true,true,true]" ]
    for bytes in 64 32M; do
        railgauge export --format tsv --per endpoint --bytes $bytes "$matrix" -o there.tsv
        railgauge export --format tsv --per endpoint --bytes $bytes measured.json -o back.tsv
        paste there.tsv back.tsv | awk -F'\t' 'NR > 1 { d = $11 / $5 - 1; n++; if (d > 0.02 || d < -0.02) { print; bad = 1 } }
            END { exit bad || n != 56 }'
    done
}
