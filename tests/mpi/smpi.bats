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

# smpi RANKS [--cfg=...] WORDS... - run the MPI program on platform.xml.
smpi() {
    local ranks=$1 config=()
    shift
    while [[ $1 == --cfg=* ]]; do config+=("$1") && shift; done
    timeout -s KILL 300 smpirun -np "$ranks" -platform platform.xml -hostfile hosts \
        --log=root.thresh:error --cfg=network/model:CM02 --cfg=network/crosstraffic:0 \
        --cfg=smpi/simulate-computation:false "${config[@]}" "$SMPI_PROBE" "$@"
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
    # The simulator copies every message: no larger ones than the limits below need.
    smpi 8 probe --op pair_latency,pair_bw --exact --epochs 1 -b 64 -e 64K -f 1024 --pair-bytes 8M \
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

# In simulated time nobody else has the processors. The start alone is the machine's own time, and is left out.
@test "what it takes is what was estimated before the first round, is told in its parts and below what the plan allows" {
    railgauge export --format simgrid --fabric gb200-nvl72 --racks 2 --hosts-per-rack 2 -o platform.xml --hostfile hosts
    for words in '3 --op pair_bw,all_reduce -e 64K --no-retest' '2 --op pair_latency,pair_bw'; do
        # shellcheck disable=SC2086 # words
        set -- $words
        rm -f points.tsv plan.tsv topology.json
        echo '{}' >campaign.json
        smpi "$1" probe "${@:2}"
        railgauge plan --dry-run --json "${@:2}" topology.json >range.json
        jq -e --slurpfile plan range.json '.measured[0] | (.took_seconds - .start_seconds) as $took | [
            (.estimated_seconds - .start_seconds) / $took,
            (.samples_seconds + .opening_seconds + .exchanges_seconds) / $took,
            .warmup_seconds / .samples_seconds, $took / $plan[0].at_most_seconds] | debug
            | .[0] > 0.8 and .[0] < 1.25 and .[1] > 0.9 and .[1] <= 1.0001 and .[2] > 0 and .[2] < 1 and .[3] < 1' campaign.json
    done
}

# --- two orders of one job, by our price and by SimGrid ---

# Two nodes more than the job needs, of a fabric in a random order, the second of them slow; the job on the first of them in turn, and as
# `railgauge place` puts it.  Nothing hides a message, so the step is compute and the sum of its messages.
instance() { # SEED FABRIC RACKS JOB...
    local seed=$1 fabric=$2 racks=$3 per slow node list
    shift 3
    rm -rf machine
    railgauge discover --fabric "$fabric" --racks "$racks" -q -o fabric.json
    per=$(jq '(.endpoints.rows | length) / (.hosts.rows | length)' fabric.json)
    mapfile -t node < <(jq -r '.hosts.rows[][0]' fabric.json | awk -v s="$seed" 'BEGIN { srand(s) } { print rand() "\t" $0 }' |
        sort -n | cut -f2 | head -n $((32 / per + 2)))
    slow=$(jq -r --arg name "${node[1]}" '.hosts.rows | map(.[0]) | index($name)' fabric.json)
    railgauge run -q -t sim --fabric "$fabric" --racks "$racks" --fault "slow-host=$slow:0.6" --no-plots --no-verdict -o machine >/dev/null
    list=$(IFS=,; echo "${node[*]}")
    railgauge place machine/matrix.json "$@" --gpus 32 --nodes "$list" --write order=placed -q -o place.json >/dev/null
    printf '%s\n' "${node[@]}" | awk -v per="$per" '{ for (k = 0; k < per; k++) print $0, k }' | head -n 32 >default
    railgauge export --format simgrid --per endpoint machine/matrix.json -o platform.xml --hostfile all
}

# messages ORDER JOB...: of each message op, bytes in whole words of each rank, ranks of a group, how often, seconds.
messages() {
    railgauge predict machine/matrix.json "${@:2}" --order "$1" --json | jq -r '.terms[] | select(.kind == "message") | .message |
        (4 * .shape.ranks) as $unit | [.op, (.bytes / $unit | round) * $unit, .shape.ranks, .count, .one_s] | @tsv'
}

# Seconds of all messages of ORDER, each on all its groups at once: our price, and SimGrid's time.  Its MPI walks one ring a
# group where NCCL walks one a NIC: the two shares need not be equal where hosts have several NICs.
played() { # ORDER JOB...
    local rings=(--cfg=smpi/{allgather:ring,reduce_scatter:ompi_ring,allreduce:lr,alltoall:pair})
    awk '!/^#/ { print $1 "-" $2 }' "$1" >hosts
    messages "$@" >"$1.messages"
    smpi 32 discover -q -o topology.json >/dev/null
    railgauge plan topology.json --op all_reduce --for-job "${*:2}" --epochs 1 -q -o groups.tsv >/dev/null
    awk -F'\t' -v OFS='\t' 'NR == FNR { if (FNR < 3) print; split($8, g, /[ ]/); n = split(g[1], m, /,/); if (split(m[1], r, /-/) == 2) n += r[2] - r[1]
            if ($2 == "collective" && !(($3, n) in groups)) groups[$3, n] = $8; next }
        !(($1, $3) in groups) { print "no group of", $0 >"/dev/stderr"; exit 1 }
        { print FNR - 1, "collective", $1, $2, $2, 2, 0, groups[$1, $3] }' groups.tsv "$1.messages" >plan.tsv
    rm -f points.tsv
    smpi 32 "${rings[@]}" probe --topology topology.json --plan plan.tsv -n 1 -w 0 --no-check --no-retest -q --max-run 100s >/dev/null
    awk -F'\t' 'NR == FNR { if ($1 ~ /^[0-9]/ && $12 > took[$1]) took[$1] = $12; next }
        { ours += $4 * $5; theirs += $4 * took[FNR - 1] } END { print ours, theirs }' points.tsv "$1.messages"
}

# agree SEED FABRIC RACKS JOB...: the order of ranks that place prefers is the one whose messages SimGrid ends first.
agree() {
    local model heads only=(--strategy zero1 --dp-overlap off --tp-overlap off --cuda-graphs step --seq 1024)
    for model in dense:16 moe:8; do # all ranks' messages are in one machine's memory
        heads=${model#*:} model=${model%:*}
        jq --argjson heads "$heads" '.hidden = 64 * $heads | .layers[0] |= (.count = 4
            | .attention |= (.heads = $heads | .head_dim = 64) | .mlp.ffn = 128 * $heads)' \
            "$BATS_TEST_DIRNAME/../lab/jobs/$model.json" >$model.json
    done
    instance "$@" "${only[@]}"
    echo "$(played default "${@:4}" "${only[@]}") $(played placed "${@:4}" "${only[@]}")" >sums
    awk '{ printf "messages placed / default %.2f by our price, %.2f by SimGrid\n", $3 / $1, $4 / $2
        exit !($3 < 0.95 * $1 && $4 < $2) }' sums
}

# exact MOST SEED FABRIC RACKS JOB...: each message of a step costs what SimGrid takes for it, within MOST %; no factor is fitted to it.
exact() {
    local most=$1 only=(--strategy zero1 --dp-overlap off --tp-overlap off --cuda-graphs step --seq 1024)
    shift
    jq '.hidden = 1024 | .layers[0] |= (.count = 4 | .attention |= (.heads = 16 | .head_dim = 64) | .mlp.ffn = 2048)' \
        "$BATS_TEST_DIRNAME/../lab/jobs/dense.json" >dense.json
    instance "$@" "${only[@]}"
    played placed "${@:4}" "${only[@]}" >sums
    awk -F'\t' -v most="$most" 'NR == FNR { if ($1 ~ /^[0-9]/ && $12 > took[$1]) took[$1] = $12; next }
        { off = 100 * ($5 / took[FNR - 1] - 1); printf "%s of %d bytes by %d ranks: %.3g s, %+.1f %%\n", $1, $2, $3, $5, off
          bad += off > most || off < -most }
        END { exit bad || FNR < 2 }' points.tsv placed.messages
}

@test "messages of a step cost what SimGrid takes for them, within 15 %" {
    exact 15 3 rtxpro6000-100gbe 4 -m ./dense.json --layout dp=32 --batch 32
}

@test "the order that place prefers is SimGrid's: experts on racks" {
    agree 4 gb200-nvl72 3 -m ./moe.json --layout dp=32,ep=8 --batch 32
}
# bats test_tags=nightly
@test "the order that place prefers is SimGrid's: stages over hosts without NVLink" {
    agree 3 rtxpro6000-100gbe 4 -m ./dense.json --layout tp=2,pp=2,dp=8 --batch 16
}
# bats test_tags=nightly
@test "the order that place prefers is SimGrid's: tensor parallel on racks" {
    agree 5 gb200-nvl72 2 -m ./dense.json --layout tp=8,dp=4 --batch 16
}
