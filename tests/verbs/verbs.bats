#!/usr/bin/env bats
# bats file_tags=nightly
# verbs.bats - real RDMA verbs without hardware: two small machines with soft-RoCE NICs (vm.sh), in which checks.sh does
# everything in one boot; here is judged what it left.

bats_require_minimum_version 1.5.0

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
export RG_BUILD=${RG_BUILD:-$top/build}

setup_file() {
    local rc=0 why=$BATS_FILE_TMPDIR/why
    export VM=$BATS_FILE_TMPDIR/vm
    if [ -n "${RG_SAN-}" ]; then
        VM_WHY="programs with sanitizers are too slow in an emulated machine"
    elif [ ! -x "$RG_BUILD/railgauge-probe" ]; then
        VM_WHY="railgauge-probe is not built: no MPI was found"
    else
        "$BATS_TEST_DIRNAME/vm.sh" --limit 700 "$VM" "$BATS_TEST_DIRNAME/checks.sh" 2>"$why" || rc=$?
        [ $rc -eq 0 ] || cat "$why" >&2
        [ $rc -ne 77 ] || VM_WHY=$(<"$why")
        [ $rc -eq 0 ] || [ $rc -eq 77 ]
    fi
    export VM_WHY
}

setup() {
    [ -z "${VM_WHY-}" ] || skip "$VM_WHY"
    cd "$VM" || return 1
}

# did NAME [CODE]: the check ended with this exit code (0); shows what it said.
did() {
    cat "$1.out"
    echo "exit code $(<"$1.code") after $(<"$1.seconds") s"
    [ "$(<"$1.code")" = "${2:-0}" ]
}

@test "each machine has four RDMA devices of rdma_rxe, up" {
    did rdma_devices
    [ "$(grep -c '^link rxe[0-3]/1 state ACTIVE physical_state LINK_UP netdev nic[0-3]' rdma_devices.out)" -eq 8 ]
}

# In columns of topology.json: rows TABLE COLUMN...
rows() {
    jq -r --arg table "$1" '.[$table] as $t | $t.rows[] | [.[($ARGS.positional | map(. as $c | $t.columns | index($c)))[]]]
        | @tsv' two.json --args "${@:2}"
}

@test "discover reads the ports through libibverbs as the kernel has them" {
    did discovered
    rows verbs up link_layer mtu gid | tee verbs
    rows ports netdev gid_type gid_index gid | grep '^nic' | tee ports
    for node in 1 2; do
        for i in 0 1 2 3; do
            grep -qx "true	ethernet	4096	::ffff:10.9.0.$node$i" verbs
            grep -qx "nic$i	RoCE v2	1	::ffff:10.9.0.$node$i" ports
        done
    done
}

@test "a command on the other machine: input, output, errors, exit code, its end" {
    did carried
    [ "$(<carried.out)" = $'node2\nword\ncode 7 errors wrong\nended' ]
}

@test "mpirun and railgauge run --hosts start ranks on both machines" {
    did ranks_by_mpirun
    [ "$(sort ranks_by_mpirun.out)" = $'rank 0 on node1\nrank 1 on node2' ]
    did campaign_over_mpi
    [ "$(jq -r '.hosts | length' mpi/topology.json)" -eq 2 ]
    [ "$(grep -vc '^[#r]' mpi/points.tsv)" -ge 1 ]
}

# Its last line of numbers: size, iterations, ...
figures() { awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { last = $0 } END { print last }' "$1.out"; }

@test "perftest writes from one machine into the other" {
    did perftest_lat
    [ "$(figures perftest_lat | awk '{ print $1, $2, ($5 > 0) }')" = "8 500 1" ]
    did perftest_bw
    [ "$(figures perftest_bw | awk '{ print $1, $2, ($4 > 0) }')" = "65536 100 1" ]
}

# column NAME FILE - the cells of one column of points
column() {
    awk -F'\t' -v name="$1" '/^#/ { next } !c { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$2"
}

# all_right FILE: it has the three points of pairs.tsv, none failed, the data of each verified.
all_right() {
    column bytes "$1" | tee sizes
    [ "$(paste -sd' ' sizes)" = "8 65536 1048576" ]
    ! column stop "$1" | grep -x failed
    [ "$(column check "$1" | sort -u)" = ok ]
}

@test "verbs: what is written, read and sent arrives, verified" {
    for way in read send; do
        did by_$way
        all_right $way.tsv
    done
    did beside_perftest
    all_right turn1.tsv
}

@test "verbs: a GID that is empty, or does not meet the peer's, is refused with the reason" {
    did empty_gid 78
    grep -F -- '--gid-index 200: that entry of rxe0 port 1 is empty' empty_gid.out
    did other_gid 78
    grep -E 'GID 1 of rxe3 port 1 on node[12] is RoCE v2 [^;]*; peer node[12] uses RoCE v2 .*: no packet would arrive' \
        other_gid.out
    grep -F fd00::23 other_gid.out
}

@test "verbs: on a wire that loses packets and flips bits the data is right, and retries are named" {
    did lossy_wire
    all_right lossy.tsv
    column note lossy.tsv | grep -E '^tainted: rxe0 port 1 on node1: .*[0-9]+ sequence error NAKs?'
    # On a busy machine time runs out in between, but nothing is lost.
    ! column note send.tsv | grep 'sequence error'
}

@test "verbs: a peer that is killed in flight is named within 2 s" {
    did peer_killed 75
    # Killed at any moment: in a point of up to 4 s mostly, seldom between two of them.
    grep -E 'railgauge run: rank 1 \(host node2, pid [0-9]+\) died in (pair_bw of 1 MiB|no operation, between two points)' \
        peer_killed.out
    [ "$(jq -r '.culprit.host' killed/verdict.json)" = node2 ]
    # From its last word, before it died, to the verdict.
    jq -e '.since_s < 2' killed/verdict.json
}

@test "verbs: a slow NIC is named" {
    did slow_nic 1
    # rxe1 of node2, at a third; a busy machine may make another look slower, never by half.
    jq -c '.exceptions[]' slow.json
    jq -e '[.exceptions[] | select(.part == "endpoint")] | any(.a == 4 and .factor > 0.2 and .factor < 0.5)
        and all(.a == 4 or .factor > 0.5)' slow.json
}

# beside BYTES FACTOR: medians of both, in us or MB/s; exit 1 where ours is worse by more than the factor beyond what
# perftest itself moved by.  (On a busy machine perftest may take a mistaken clock and say 0.)
beside() {
    local op=pair_bw
    [ "$1" != 8 ] || op=pair_latency
    {
        awk -v s="$1" '$1 == "perftest" && $2 == s && $3 > 0 { print "p", $3 }' beside_perftest.out
        for t in turn*.tsv; do
            paste <(column op "$t") <(column bytes "$t") <(column sec "$t") |
                awk -v s="$1" -v op=$op '$1 == op && $2 == s { print "o", s == 8 ? $3 * 1e6 : s / $3 / 1e6 }'
        done
    } | sort -k1,1 -k2,2g | awk -v s="$1" -v most="$2" '
        { v[$1, ++n[$1]] = $2 }
        END {
            if (n["p"] < 2 || n["o"] < 3) { print "too few"; exit 1 }
            p = v["p", int((n["p"] + 1) / 2)]; o = v["o", int((n["o"] + 1) / 2)]
            noise = v["p", n["p"]] / v["p", 1]
            printf "%d B: perftest %.4g (%.4g to %.4g), railgauge %.4g (%.4g to %.4g) %s: %.2f of it\n", s, p,
                v["p", 1], v["p", n["p"]], o, v["o", 1], v["o", n["o"]], s == 8 ? "us" : "MB/s", o / p
            exit (s == 8 ? o / p : p / o) > most * noise
        }'
}

@test "verbs: latency and bandwidth beside perftest, in turns" {
    did beside_perftest
    beside 8 1.25
    beside 65536 1.25
    beside 1048576 1.25
}
