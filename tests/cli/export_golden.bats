#!/usr/bin/env bats
# export_golden.bats - every format of a tiny machine, byte by byte, and its numbers against `railgauge cost`.
#
# tests/golden/export/campaign/matrix.json: 2 racks of 2 hosts of 2 GPUs; sending of n01:0 is half as fast as it
# should be.  tests/golden/export/measured: 2 hosts of 8 GPUs of the simulator, where GPU 3 of the first is slow, a
# few pairs and two collectives of them; limits.json: what junit and openmetrics are judged by.  tests/golden/export/FORMAT and FORMAT.second are what is written from it; with
# UPDATE_GOLDEN=1 they are written anew (look at the difference before you keep it).

bats_require_minimum_version 1.5.0

setup() {
    golden=$(cd "$BATS_TEST_DIRNAME/../golden/export" && pwd)
    matrix=$golden/campaign/matrix.json
    cd "$BATS_TEST_TMPDIR" || return 1
}

# same FILE NAME - FILE is golden NAME but for the version of the program.
same() {
    if LC_ALL=C grep -aq 'railgauge [0-9]' "$1"; then
        sed -i -E 's/railgauge,?[ ,][0-9]+(\.[0-9]+)*/railgauge VERSION/' "$1"
    fi
    sed -i -E 's/^railgauge,[0-9.]+,/railgauge,VERSION,/; s/^(railgauge_info.*version=)"[^"]*"/\1"VERSION"/' "$1"
    [ -z "${UPDATE_GOLDEN-}" ] || cp "$1" "$golden/$2"
    cmp "$1" "$golden/$2"
}

# golden FORMAT INPUT [WORDS...] - written, and compared with the second file when there is one.
golden() {
    local format=$1 input=$2 second=()
    shift 2
    if railgauge export --list-formats | grep "^$format " | grep -q -- --second; then second=(--second out.second); fi
    railgauge export --format "$format" "$@" "$input" -o out "${second[@]}"
    same out "$format"
    [ ${#second[@]} -eq 0 ] || same out.second "$format.second"
}

@test "scotch-tleaf" { golden scotch-tleaf "$matrix" --per endpoint; }
@test "scotch-deco" { golden scotch-deco "$matrix" --per endpoint; }
@test "simgrid" { golden simgrid "$matrix" --per endpoint; }
@test "astra-sim" { golden astra-sim "$matrix"; }
@test "calculon" { golden calculon "$matrix"; }
@test "aiconfigurator" { golden aiconfigurator "$matrix"; }
@test "nccl-tuner" { golden nccl-tuner "$golden/campaign"; }
@test "hwloc" { golden hwloc "$matrix" --per endpoint; }
@test "matrix-market" { golden matrix-market "$matrix"; }
@test "tsv" { golden tsv "$matrix" --bytes 1M; }
@test "npy" { golden npy "$matrix" --quantity time; }
@test "slurm-block" { golden slurm-block "$matrix" --release 24.11; }
@test "slurm-tree" { golden slurm-tree "$matrix" --release 24.11; }
@test "slurm-yaml" { golden slurm-yaml "$matrix" --release 26.05; }
@test "k8s-labels" { golden k8s-labels "$matrix"; }
@test "kueue" { golden kueue "$matrix"; }
@test "kai" { golden kai "$matrix"; }
@test "volcano" { golden volcano "$matrix"; }
@test "network-topology" { golden network-topology "$matrix"; }
@test "topograph" { golden topograph "$matrix"; }

@test "csv" { golden csv "$golden/measured"; }
@test "nccl-tests" { golden nccl-tests "$golden/measured" --name all_reduce; }
@test "junit" { golden junit "$matrix" --limits "$golden/limits.json"; }
@test "openmetrics" { golden openmetrics "$matrix" --limits "$golden/limits.json" --name 'rack "03"'; }

@test "no format is without its golden file" {
    while read -r format _; do
        [ -e "$golden/$format" ] || { echo "$format has none"; return 1; }
    done < <(railgauge export --list-formats)
}

@test "every pair of the table is what railgauge cost says, at any size" {
    for bytes in 8 1M 64M; do
        railgauge export --format tsv --per endpoint --bytes $bytes "$matrix" -o pairs.tsv
        [ "$(wc -l <pairs.tsv)" -eq $((8 * 7 + 1)) ]
        while IFS=$'\t' read -r src dst op size us rate; do
            railgauge cost "$matrix" "$src" "$dst" $bytes --json | jq -e --arg us "$us" --arg rate "$rate" --arg op "$op" \
                --argjson size "$size" '(.seconds * 1e6 / ($us | tonumber) - 1 | fabs) < 1e-8
                and (.algbw_Bps / 1e9 / ($rate | tonumber) - 1 | fabs) < 1e-8 and .op == $op and .bytes == $size' >/dev/null ||
                { echo "$src $dst $bytes: $us us, $rate GB/s"; return 1; }
        done < <(sed 1d pairs.tsv | awk -v each=$([ $bytes = 64M ] && echo 1 || echo 5) 'NR % each == 0')
    done
    # The slow sender shows in its direction only.
    awk -F'\t' '$1 == "n01:0" && $2 == "n00:0" { there = $6 } $1 == "n00:0" && $2 == "n01:0" { back = $6 }
        END { exit !(there / back > 0.49 && there / back < 0.51) }' pairs.tsv
}

@test "tables of tiers give the time of railgauge cost between neighbours" {
    healthy=$(railgauge cost "$matrix" n00:0 n02:0 64M --json | jq .seconds)
    railgauge export --format astra-sim "$matrix" | awk -v want="$healthy" '
        /^bandwidth/ { gsub(/[^0-9., ]/, ""); n = split($0, b, ",") } /^latency/ { gsub(/[^0-9., ]/, ""); split($0, l, ",") }
        END { got = 2 * l[n] * 1e-9 + 67108864 / (b[n] * 1073741824); d = got / want - 1; exit !(d < 1e-6 && d > -1e-6) }'
    railgauge export --format calculon "$matrix" | jq -e --argjson want "$healthy" '
        .networks[-1] | .latency + 67108864 / (.bandwidth * 1e9 * .efficiency) | (. / $want - 1 | fabs) < 1e-6'
}

@test "a campaign's folder is taken for its matrix" {
    railgauge export --format tsv "$golden/campaign" -o a.tsv
    railgauge export --format tsv "$matrix" -o b.tsv
    cmp a.tsv b.tsv
    mkdir empty
    run railgauge export --format tsv empty
    [ "$status" -eq 66 ]
    [[ $output == *"empty/matrix.json: No such file or directory"* ]]
    run railgauge export --format nccl-tuner empty
    [ "$status" -eq 66 ]
    [[ $output == *"empty holds no sweep"* ]]
    run railgauge export --format nccl-tuner "$matrix"
    [ "$status" -eq 64 ]
    [[ $output == *"made from a campaign's folder"* ]]
}

@test "formats without a place for slow parts say what they leave out" {
    for format in scotch-tleaf astra-sim calculon aiconfigurator; do
        run railgauge export --format $format "$matrix" -o out
        [ "$status" -eq 0 ]
        [[ $output == "railgauge export: warning: $format has no place for slow parts: 1 of the matrix are left out, for instance NIC of n01 (GPU 0), sending" ]]
    done
    run railgauge export --format scotch-deco "$matrix" -o out
    [ -z "$output" ]
}
