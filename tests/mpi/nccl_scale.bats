#!/usr/bin/env bats
# nccl_scale.bats - communicators of many ranks on several hosts of the stand-ins, where making and using them costs what
# FAKE_NCCL_COST says: what splits and a communicator that pairs share save, and what may not share.

. "$BATS_TEST_DIRNAME/helper.bash"

setup() {
    unshare --uts true 2>/dev/null || skip "host names cannot be had here (unshare --uts)"
    need_stand_ins "devices 4"
    printf 'host %s\n' "0-3 h0" "4-7 h1" "8-11 h2" "12-15 h3" >nccl.txt
    printf 'nvls 16\n' >>nccl.txt
    cat >on_host.sh <<'END'
#!/bin/sh
n=$((OMPI_COMM_WORLD_RANK / 4))
export OMPI_COMM_WORLD_LOCAL_RANK=$((OMPI_COMM_WORLD_RANK % 4))
exec unshare --uts sh -c 'hostname "$0"; exec "$@"' "h$n" "$@"
END
    chmod +x on_host.sh
    export FAKE_NCCL=$PWD/nccl.txt FAKE_NCCL_COST=init=0.05,rank=0.01,root=0.03,parent=0.002,p2p=0.02,near=10
}

# pairs N HOW [OPTION...] - all pairs of N ranks, in $HOW/; what NCCL itself says it made is in $HOW/log.*
pairs() {
    local n=$1 how=$2
    shift 2
    mkdir "$how"
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT NCCL_DEBUG_FILE=$PWD/$how/log.%p ranks "$n" ./on_host.sh "$probe" probe -t nccl \
        -b 8 -e 8 -n 2 -w 0 --epochs 1 --no-retest --op pairs --pair-bytes 64K --pairs tournament --pool 2 \
        --pair-comms "$how" -o "$how/points.tsv" "$@" 2>&1
}

# made HOW - ranks' inits and splits by NCCL's own log: "inits splits"
made() {
    cat "$1"/log.* | awk '/ncclCommInitRankConfig .* Init COMPLETE/ { i++ } /ncclCommSplit .* Init COMPLETE/ { s++ }
        END { print i + 0, s + 0 }'
}

# how_of HOW - the ways of connections.tsv, once each
how_of() { column how "$1/connections.tsv" | sort -u | xargs; }

whole() { [ "$(rows "$1/points.tsv")" -eq "$(rows own/points.tsv)" ] && [ "$(column stop "$1/points.tsv" | sort -u)" = count ]; }

@test "pairs by splits, on the communicator of all, or each where it measures the same: as many points, fewer inits" {
    run pairs 8 own
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(how_of own)" = own ]
    run pairs 8 split
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *" of them by "*" splits of all ranks' ("* ]]
    [ "$(how_of split)" = "own split" ]
    whole split
    run pairs 8 shared
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"1 communicator: made in "*" pairs on one that all share"* ]]
    whole shared
    read -r inits splits <<<"$(made own)"
    echo "own: $inits inits, $splits splits; split: $(made split); shared: $(made shared)"
    [ "$inits" -ge 56 ] && [ "$splits" -eq 0 ] # 28 pairs of two
    read -r inits splits <<<"$(made split)"
    [ "$inits" -eq 8 ] && [ "$splits" -ge 56 ] # that of all
    [ "$(made shared)" = "8 0" ]
    sed -n 2p split/points.tsv | cut -c 3- | jq -e '.pair_comms == "host split, tcp split"'
}

# bats test_tags=nightly
@test "on the communicator of all a pair of one host is told to be ten times as slow, and is" {
    pairs 8 own
    pairs 8 shared
    awk -F'\t' '!/^#/ && $5 == "pair_latency" && $10 == 8 { t[FILENAME, int($7 / 4) == int($8 / 4)] = $12 }
        END { near = t["shared/points.tsv", 1] / t["own/points.tsv", 1]; far = t["shared/points.tsv", 0] / t["own/points.tsv", 0]
            print near, far; exit !(near > 8 && near < 12 && far > 0.8 && far < 1.25) }' own/points.tsv shared/points.tsv
}

# bats test_tags=nightly
@test "auto shares between hosts and not within, says so with figures, and the points are those of own communicators" {
    run pairs 16 auto
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"pairs of tier host have communicators of their own"*" us, "*" GB/s (shared against own)"* ]]
    [[ $output == *"pairs of tier tcp share one communicator: "*" us, "*" GB/s (shared against own); an init took "* ]]
    awk -F'\t' '!/^#/ && $5 == "pair_latency" && $10 == 8 && ($12 < 0.016 || $12 > 0.03) { print; bad = 1 } END { exit bad }' \
        auto/points.tsv
    echo "16 ranks, auto: $(made auto) of ranks"
    read -r inits _ <<<"$(made auto)"
    [ "$inits" -le $((16 + 2 * 12)) ] # that of all, and what was tried
    sed -n 2p auto/points.tsv | cut -c 3- | jq -e '.pair_comms | test("host (own|split), tcp shared")'
}

# bats test_tags=nightly
@test "sixteen ranks on four hosts: every algorithm that they allow, and what they do not is the point's reason" {
    export FAKE_NCCL_COST=init=0.01,rank=0.001,root=0.001
    run ranks 16 ./on_host.sh "$probe" probe -t nccl -b 64 -e 64 -n 1 -w 0 --epochs 1 --no-retest --op all_reduce,all_gather --sweep
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(find sweep -name '*-*.tsv' | wc -l)" -eq 21 ]
    # All 16 ranks and any other group: which algorithms did any group finish?
    for f in sweep/*-Simple.tsv; do
        awk -F'\t' -v f="$(basename "$f" -Simple.tsv)" '!/^#/ && /count/ { n[$5]++ } END { printf "%s", f; for (o in n) printf " %s", o; print "" }' "$f"
    done | sort >done.txt
    cat done.txt
    grep -q '^Ring.*all_gather' done.txt && grep -q '^Ring.*all_reduce' done.txt
    grep -q '^Tree all_reduce$' done.txt
    grep -q '^NVLSTree all_reduce$' done.txt
    grep -q '^NVLS .*all_reduce' done.txt # within a host
    grep -q '^PAT all_gather$' done.txt   # one rank a host
    grep -q '^CollNetDirect$' done.txt    # nobody has it
}

@test "who dies on the communicator of all is named, and the others go on with their own" {
    export FAKE_NCCL_COST=init=0.01
    FAKE_FAULT=async:3:9 run pairs 8 shared
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *"pairs get communicators of their own from here on: the communicator of all ranks was lost"* ]]
    [[ $(column note shared/points.tsv) == *"rank 3 (host h0, "* ]]
    # A check that a victim could not end is no data that were wrong.
    awk -F'\t' '!/^#/ && $24 == "wrong" && $25 !~ /remote process exited|injected fault/ { print; bad = 1 } END { exit bad }' shared/points.tsv
    [ "$(column stop shared/points.tsv | grep -c count)" -ge 40 ]
}

@test "fields of ncclConfig_t are given to NCCL and recorded; what the library has not, or refuses, is said" {
    local one=(-b 8 -e 8 -n 1 -w 0 --epochs 1 --no-retest --op all_reduce)
    run ranks 2 "$probe" probe -t nccl "${one[@]}" --nccl-config ctapolicy=2,minCTAs=1,maxCTAs=8
    echo "$output"
    [ "$status" -eq 0 ]
    sed -n 2p points.tsv | cut -c 3- | jq -e '.nccl_config == "ctapolicy=2,minCTAs=1,maxCTAs=8"'
    run ranks 2 "$probe" probe -t nccl "${one[@]}" -o b.tsv --nccl-config CTAPolicy=7
    [ "$status" -eq 2 ]
    [[ $(column note b.tsv) == *"Invalid config policy attribute value 7"* ]]
    run ranks 2 "$probe" probe -t nccl "${one[@]}" -o c.tsv --nccl-config graphUsageMode=1
    [ "$status" -eq 78 ]
    [[ $output == *"--nccl-config graphUsageMode needs NCCL 2.29.0 or newer: this is NCCL 2.28.9"* ]]
    FAKE_NCCL_VERSION=22907 ranks 2 "$probe" probe -t nccl "${one[@]}" -o d.tsv --nccl-config graphUsageMode=1
    for wrong in blocking=1 CTAPolicy CTAPolicy=x CTAPolicy=-1 CTAPolicy=1=2; do
        run ranks 1 "$probe" probe -t nccl "${one[@]}" -o e.tsv --nccl-config "$wrong"
        [ "$status" -eq 64 ]
    done
}
