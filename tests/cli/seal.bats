#!/usr/bin/env bats
# seal.bats - files that carry a checksum: what happens to one that was changed, and railgauge seal.

bats_require_minimum_version 1.5.0
load rejects

setup() {
    PATH=${RG_BUILD:-build}:$PATH
    cp tests/golden/topology.json tests/golden/matrix.json "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return
}

@test "a changed file is refused, sealed and read" {
    sed -i 's/"transport": "mpi"/"transport": "nccl"/' matrix.json
    rejects show 65 '"railgauge seal matrix.json" makes it valid' matrix.json
    sed -i 's/"name"/"name" /' topology.json
    run --separate-stderr railgauge discover topology.json
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
    cp matrix.json was.json
    railgauge seal matrix.json topology.json
    run --separate-stderr railgauge show matrix.json tiers
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
    [ "$(diff was.json matrix.json | grep -c '^>')" -eq 1 ]
    diff was.json matrix.json | grep '^> *"checksum": "[0-9a-f]\{8\}"$'
}

@test "a file without a checksum is read with a note, and sealed where it should be" {
    jq 'del(.checksum)' matrix.json >plain.json
    run --separate-stderr railgauge show plain.json tiers
    [ "$status" -eq 0 ]
    [[ $stderr == *"plain.json has no checksum"*"railgauge seal adds one" ]]
    railgauge seal plain.json
    run --separate-stderr railgauge show plain.json tiers
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
}

@test "a checksum that was removed is as one that is wrong" {
    railgauge run -t sim --fabric hgx-h100 --racks 1 -b 1M -e 1M --op pairs --no-plots -o c >/dev/null 2>&1
    for f in topology matrix; do
        command=show
        [ $f = matrix ] || command=discover
        jq 'del(.checksum)' c/$f.json >$f.json
        rejects $command 65 "$f.json: its checksum was removed; if you changed the file, \"railgauge seal $f.json\" makes it valid" $f.json
        railgauge seal $f.json
        railgauge $command $f.json >/dev/null
    done
}

@test "what cannot be read is not sealed" {
    echo '{"format": "railgauge-matrix", "version": 1, "transport": "mpi"}' >bad.json
    cp bad.json was.json
    rejects seal 65 'key "provenance" is missing' bad.json
    cmp bad.json was.json
    rejects seal 66 "none.json: No such file" none.json
    rejects seal 64 "which topology.json or matrix.json?"
}

@test "points belong to their endpoints: another machine's topology is refused, a better known one is not" {
    railgauge run -t sim --fabric hgx-h100 --racks 1 -b 1M -e 1M --op pairs --no-plots -o c >/dev/null 2>&1
    sed 's/r00n02/r00n99/' c/topology.json >other.json
    sed 's/leaf-00-3/leaf-00-x/' c/topology.json >better.json
    railgauge seal other.json better.json
    rejects fit 65 "was measured on" other.json c/plan.tsv c/points.tsv -o m.json
    [ ! -e m.json ]
    railgauge fit better.json c/plan.tsv c/points.tsv -o m.json
    sed -i '1s/transport=sim/transport=sin/' c/points.tsv
    rejects fit 65 "was measured on" c
}
