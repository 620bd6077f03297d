#!/usr/bin/env bats
# plot.bats - pictures from small campaigns, without gnuplot, with a broken one, and with hostile names.
# shellcheck disable=SC2016  # what looks like a command must stay text

bats_require_minimum_version 1.5.0
load rejects

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    railgauge=$(command -v railgauge)
    cd "$BATS_TEST_TMPDIR" || return 1
    cp -r "$top/tests/golden/plots/lab" "$top/tests/golden/plots/shm" "$top/tests/golden/plots/names" .
}

need_gnuplot() {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
}

# A folder with a program named gnuplot that runs this script.
fake_gnuplot() {
    mkdir -p fake
    printf '#!/bin/sh\n%s\n' "$1" >fake/gnuplot
    chmod +x fake/gnuplot
}

@test "tiers, busbw, heat and dist as png, svg and pdf, each whole" {
    need_gnuplot
    for format in png svg pdf; do
        for campaign in lab shm; do
            run --separate-stderr railgauge plot "$campaign" --format "$format"
            [ "$status" -eq 0 ]
            [ -z "$stderr" ]
            [ "$output" = "$(printf "$campaign/plots/%s.$format\n" tiers busbw heat dist)" ]
        done
    done
    for name in tiers busbw heat dist; do
        [ "$(head -c 4 "lab/plots/$name.png" | tail -c 3)" = PNG ]
        tail -c 8 "lab/plots/$name.png" | head -c 4 | grep -q IEND
        tail -n 2 "lab/plots/$name.svg" | grep -qx "</svg>"
        [ "$(head -c 5 "lab/plots/$name.pdf")" = "%PDF-" ]
    done
    [ -z "$(find . -name '.*.png' -o -name '.*.svg' -o -name '.*.pdf')" ]
}

@test "the title of tiers says what is reached inside and between, and how many times more" {
    title() { sed -n 's/^title\t//p' "$1/plots/data/tiers_meta.tsv"; }
    railgauge plot lab tiers >/dev/null 2>&1
    [[ $(title lab) =~ ^Inside\ a\ (rack|host)\ ([0-9.]+)\ GB/s,\ between\ (racks|hosts)\ ([0-9.]+)\ GB/s ]]
    inside=${BASH_REMATCH[2]} between=${BASH_REMATCH[4]}
    # The same figures by another road: the largest size of each line.
    awk -F'\t' -v i="$inside" -v b="$between" 'NR > 1 {last[$1] = $3} END {for (k in last) {r = sprintf("%.3g", last[k]); i_ok += r == i + 0; b_ok += r == b + 0}
        exit !(i_ok && b_ok)}' lab/plots/data/tiers.tsv
    railgauge plot shm tiers >/dev/null 2>&1
    [[ $(title shm) == "Inside a host "*" GB/s, a message takes "*" µs at least" ]]
}

@test "the degraded host is written beside the map, and only it" {
    need_gnuplot
    railgauge plot lab heat --format svg
    [ "$(tail -n +2 lab/plots/data/heat_call.tsv | cut -f 3,4)" = $'node-05\t50% of expected' ]
    grep -q '>node-05<' lab/plots/heat.svg
    grep -q '50% of expected' lab/plots/heat.svg
    railgauge plot shm heat --format svg
    [ "$(wc -l <shm/plots/data/heat_call.tsv)" -eq 1 ]
}

@test "the same campaign gives the same tables" {
    railgauge plot lab -o one >/dev/null 2>&1
    railgauge plot lab -o two >/dev/null 2>&1
    diff -r one/data two/data
}

# margin FILE.png: is the right edge, a hundredth of the width, white beside the title?
margin() {
    python3 - "$1" <<'END'
import struct, sys, zlib
png, at, data = open(sys.argv[1], "rb").read(), 8, b""
while at < len(png):
    n, kind = struct.unpack(">I4s", png[at:at + 8])
    if kind == b"IHDR":
        width, height, depth, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
    data += png[at + 8:at + 8 + n] if kind == b"IDAT" else b""
    at += 12 + n
assert depth == 8 and colour in (2, 6)
size, raw = {2: 3, 6: 4}[colour], zlib.decompress(data)
before, stride = bytes(width * size), width * size + 1
for y in range(95):
    how, line = raw[y * stride], bytearray(raw[y * stride + 1:(y + 1) * stride])
    if how == 2:
        line = bytearray(x + b & 255 for x, b in zip(line, before))
    for i in range(len(line) if how not in (0, 2) else 0):
        a, b, c = (line[i - size], before[i], before[i - size]) if i >= size else (0, before[i], 0)
        if how == 4:
            to_a, to_b, to_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            paeth = a if to_a <= to_b and to_a <= to_c else b if to_b <= to_c else c
        line[i] = line[i] + (a if how == 1 else (a + b) // 2 if how == 3 else paeth) & 255
    before = bytes(line)
    assert set(before[-(width // 100) * size:]) == {255}, f"row {y}"
END
}

@test "a long title is as wide as the picture at most" {
    need_gnuplot
    words="Bandwidth of the second rack after its switch was changed for the one of the first rack, which is older and has another firmware, in May"
    run railgauge plot lab --title "$words"
    [ "$status" -eq 0 ]
    for name in tiers busbw heat dist; do margin "lab/plots/$name.png"; done
}

@test "a matrix alone is enough, and the pictures go beside it" {
    need_gnuplot
    rm lab/points.tsv
    run railgauge plot lab/matrix.json heat
    [ "$status" -eq 0 ]
    [ "$output" = lab/plots/heat.png ]
    grep -q 'from the tiers and exceptions of the cost matrix' lab/plots/data/heat_meta.tsv
}

@test "names of hosts are shown as they are and run nothing" {
    need_gnuplot
    for format in png svg pdf; do
        run --separate-stderr railgauge plot names --format "$format"
        [ "$status" -eq 0 ]
        [ -z "$stderr" ]
    done
    [ -z "$(find . -name pwned)" ]
    grep -q '`touch pwned`' names/plots/heat.svg
    grep -Fq "x'y_z^{2}" names/plots/heat.svg
    grep -Fq '%d%s@&amp;~/U+263a' names/plots/heat.svg
    grep -Fq '&lt;|cat>&amp;amp;' names/plots/heat.svg
    ! command -v rsvg-convert || rsvg-convert names/plots/heat.svg -o x.png
}

@test "a slow host is named as it is beside the map too" {
    need_gnuplot
    sed -i 's/node-/node_{x/g' lab/matrix.json
    railgauge seal lab/matrix.json
    run railgauge plot lab heat --format svg
    [ "$status" -eq 0 ]
    [ "$(tail -n +2 lab/plots/data/heat_call.tsv | cut -f 3)" = 'node_{x05' ]
    [ "$(grep -c '>node_{x05<' lab/plots/heat.svg)" -ge 1 ]
    ! grep -q '>node</tspan>' lab/plots/heat.svg
}

@test "without gnuplot: tables, the map in the terminal, and how to get pictures" {
    mkdir empty
    run --separate-stderr env PATH="$PWD/empty" "$railgauge" plot lab
    [ "$status" -eq 0 ]
    [[ $stderr == "railgauge plot: warning: no pictures: gnuplot was not found in PATH (Debian: apt-get install gnuplot-nox)"* ]]
    [[ $output == "share of expected bandwidth, row sends to column"* ]]
    [[ $output == *"node-05   5 "* ]]
    [[ $output == *"░"*"█"*"GB/s"* ]]
    [ -s lab/plots/data/busbw.tsv ]
    [ ! -e lab/plots/heat.png ]
}

@test "--terminal prints the maps and draws nothing" {
    run --separate-stderr railgauge plot --terminal shm
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == *"bandwidth"*"GB/s"* ]]
    [ ! -e shm/plots ]
}

@test "half a picture is an error, and the old one stays" {
    mkdir -p lab/plots
    echo old >lab/plots/heat.png
    fake_gnuplot 'printf "\211PNG half" >"$5"'
    run env PATH="$PWD/fake:$PATH" "$railgauge" plot lab heat
    [ "$status" -eq 74 ]
    [[ $output == *"wrote half a picture; is the disk full?" ]]
    [ "$(cat lab/plots/heat.png)" = old ]
    [ -z "$(find lab -name '.heat*')" ]
}

@test "what gnuplot says when it fails is passed on" {
    fake_gnuplot 'echo "line 7: undefined variable: X" >&2; exit 3'
    run env PATH="$PWD/fake:$PATH" "$railgauge" plot lab dist
    [ "$status" -eq 65 ]
    [[ $output == *"exit status 3: line 7: undefined variable: X" ]]
    fake_gnuplot 'kill -9 $$'
    run env PATH="$PWD/fake:$PATH" "$railgauge" plot lab dist
    [ "$status" -eq 74 ]
    [[ $output == *"gnuplot died of signal 9 (Killed)" ]]
}

@test "the scripts refuse tables without rows, saying which" {
    need_gnuplot
    railgauge plot lab >/dev/null
    for name in tiers busbw heat dist; do
        cp -r lab/plots/data none
        for file in none/*.tsv; do
            head -n 1 "$file" >x
            mv x "$file"
        done
        run gnuplot -c "$top/plots/$name.gp" none out.png png
        [ "$status" -eq 65 ]
        [[ $output == *"no bus bandwidth in none/busbw.tsv"* || $output == *"no "*" in none/${name}_meta.tsv"* ]]
        rm -rf none
    done
}

@test "the scripts refuse commands for paths, unknown formats and a wrong count" {
    need_gnuplot
    for name in tiers busbw heat dist; do
        run gnuplot -c "$top/plots/$name.gp" '<touch pwned' out.png png
        [ "$status" -eq 64 ]
        [[ $output == *"a path must not begin with '<' or '|'"* ]]
        run gnuplot -c "$top/plots/$name.gp" . '|touch pwned' png
        [ "$status" -eq 64 ]
        run gnuplot -c "$top/plots/$name.gp" . out.gif gif
        [ "$status" -eq 64 ]
        [[ $output == *'format "gif" is none of png, svg, pdf'* ]]
        run gnuplot -c "$top/plots/$name.gp" .
        [ "$status" -eq 64 ]
        [[ $output == *"IN OUT png|svg|pdf"* ]]
    done
    [ ! -e pwned ]
}

@test "a campaign folder whose name is a command is only a name" {
    need_gnuplot
    mv shm '<touch pwned;`touch pwned`'
    run railgauge plot '<touch pwned;`touch pwned`' dist
    [ "$status" -eq 0 ]
    [ -s '<touch pwned;`touch pwned`/plots/dist.png' ]
    [ ! -e pwned ]
}

@test "a figure without data is left out with its reason; asked for alone it is an error" {
    need_gnuplot
    jq -c '.collectives = []' lab/matrix.json >x && mv x lab/matrix.json
    railgauge seal lab/matrix.json
    run --separate-stderr railgauge plot lab
    [ "$status" -eq 0 ]
    [ "$output" = "$(printf 'lab/plots/%s.png\n' tiers heat dist)" ]
    [ "$stderr" = "railgauge plot: warning: busbw: no bus bandwidth to plot: the matrix has no collective" ]
    run railgauge plot lab busbw
    [ "$status" -eq 65 ]
    [ "$output" = "railgauge plot: no bus bandwidth to plot: the matrix has no collective" ]
}

@test "damaged points are said with their line; what is not drawn of pairs does not need them" {
    need_gnuplot
    railgauge plot lab -o whole >/dev/null
    sed -i '9s/\t[0-9a-f]*$/\t00000000/' lab/points.tsv
    for figures in "" heat dist; do
        # shellcheck disable=SC2086  # one word or none
        run railgauge plot lab $figures
        [ "$status" -eq 65 ]
        [ "$output" = "railgauge plot: lab/points.tsv:9: CRC does not match the row" ]
    done
    [ ! -e lab/plots/heat.png ]
    run --separate-stderr railgauge plot lab busbw
    [ "$output" = lab/plots/busbw.png ]
    cmp lab/plots/busbw.png whole/busbw.png
}

@test "words that are refused" {
    run railgauge plot
    [ "$status" -eq 64 ]
    [[ $output == *"which campaign or matrix?"* ]]
    run railgauge plot lab pie
    [ "$status" -eq 64 ]
    [[ $output == *'no picture "pie"; there are tiers, busbw, heat, dist, step and all'* ]]
    run railgauge plot lab --format gif
    [ "$status" -eq 64 ]
    [[ $output == *'--format: "gif" is none of png, svg, pdf'* ]]
    run railgauge plot nowhere
    [ "$status" -eq 66 ]
    [[ $output == *"nowhere: No such file or directory"* ]]
    echo '{"format": "railgauge-matrix", "version": 1' >bad.json
    run railgauge plot bad.json
    [ "$status" -eq 65 ]
    [[ $output == "railgauge plot: bad.json:"* ]]
}

# --- predictions ---

steps() {
    cp -r "$top/tests/golden/plots/steps" .
    cd steps || return 1
}

# Is a picture more than paper?  Every colour of the list is in the svg.
holds() {
    local svg=$1 what
    shift
    for what in "$@"; do
        grep -qi -- "$what" "$svg" || { echo "$svg lacks $what"; return 1; }
    done
}

@test "the tables of steps, scaling and score are those of the hand-made predictions" {
    steps
    railgauge plot step two.json --measured 7.2,- -o out >/dev/null 2>&1
    railgauge plot scaling scaling.tsv -o out >/dev/null 2>&1
    railgauge plot score score.tsv -o out >/dev/null 2>&1
    diff -r expected out/data
}

@test "step, scaling and score as png, svg and pdf, each whole and not blank" {
    need_gnuplot
    steps
    for format in png svg pdf; do
        for name in step scaling score; do
            case $name in
                step) words=(two.json --measured 7.2,-) ;;
                scaling) words=(scaling.tsv) ;;
                score) words=(score.tsv) ;;
            esac
            run --separate-stderr railgauge plot "$name" "${words[@]}" -f "$format" -o plots
            [ "$status" -eq 0 ]
            [ -z "$stderr" ]
            [ "$output" = "plots/$name.$format" ]
        done
    done
    for name in step scaling score; do
        [ "$(head -c 4 "plots/$name.png" | tail -c 3)" = PNG ]
        tail -c 8 "plots/$name.png" | head -c 4 | grep -q IEND
        tail -n 2 "plots/$name.svg" | grep -qx "</svg>"
        [ "$(head -c 5 "plots/$name.pdf")" = "%PDF-" ]
    done
    holds plots/step.svg '00527f\|rgb( *0, *82, *127)' 'f0a830\|rgb(240, *168, *48)' 'pp=2,dp_shard=4,tp=8' '81%' \
        'measured 7.20 s: +3.5%' 'pipeline bubble'
    holds plots/scaling.svg '0072b2\|rgb( *0, *114, *178)' 'rails, cyclic' '67% at 512 GPUs, 600 tokens/s/GPU'
    holds plots/score.svg 'median error 10.0%' 'llama, H100: 2, median 12.5%' 'With one measured step'
}

@test "pictures of a file go into a folder of its own, never into somebody's plots" {
    steps
    mkdir plots
    railgauge plot step one.json >/dev/null 2>&1
    [ -s one-plots/data/step.tsv ]
    [ -z "$(ls plots)" ]
}

@test "each sentence stands once, and no cell of a table of words is empty" {
    need_gnuplot
    railgauge plot lab --format svg >/dev/null 2>&1
    railgauge plot step "$top"/tests/golden/plots/steps/two.json -f svg -o lab/plots >/dev/null 2>&1
    for meta in lab/plots/data/*_meta.tsv; do
        ! grep -nP '\t$' "$meta" || { echo "$meta"; false; }
    done
    for word in title subtitle notes; do
        while IFS=$'\t' read -r _ text; do
            [ "$(grep -cF -- "$text<" lab/plots/step.svg)" -le 1 ] || { echo "twice: $text"; false; }
        done < <(grep "^$word" lab/plots/data/step_meta.tsv)
    done
}

@test "--terminal shows what was named, or says where it is" {
    cp "$top/tests/golden/plots/steps/two.json" lab/prediction.json
    run railgauge plot -t lab step
    [ "$status" -eq 0 ]
    [[ $output == *"pp=2,dp_shard=4,tp=8"* && $output != *"row sends to column"* ]]
    run railgauge plot -t lab heat
    [ "$status" -eq 0 ]
    [[ $output == *"row sends to column"* ]]
    for name in busbw dist; do
        run railgauge plot -t lab "$name"
        [ "$status" -eq 64 ]
        [[ $output == *"--terminal shows heat and step"* ]]
    done
}

@test "labels come from LABEL=FILE, and a name with an equals sign is a name" {
    steps
    cp one.json 'x=one.json'
    run railgauge plot -t step 'tuned_a=one.json' 'x=one.json'
    [ "$status" -eq 0 ]
    [[ $output == *$'\n'"tuned_a "* ]]
    [[ $output == *$'\n'"dp_shard=64 "* ]]
    run railgauge plot -t scaling rail=tp8-64.json rail=tp8-512.json tp8-128.json
    [ "$status" -eq 0 ]
    [[ $output == *"rail "*"64"*"100.0 %"*"512"*"89.1 %"*"llama3.1-70b, tp=8, fsdp"*"128"*"100.0 %"* ]]
}

@test "hostile labels are shown as they are and run nothing" {
    need_gnuplot
    steps
    run --separate-stderr railgauge plot step '`touch pwned` a_b^{c}@&~%d<>=one.json' -f svg -o plots
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    grep -Fq '`touch pwned` a_b^{c}@&amp;~%d&lt;>' plots/step.svg
    [ ! -e pwned ]
}

@test "predictions without gnuplot are printed" {
    steps
    mkdir empty
    for name in step scaling score; do
        file=$name.tsv
        [ "$name" = step ] && file=two.json
        run --separate-stderr env PATH="$PWD/empty" "$railgauge" plot "$name" "$file"
        [ "$status" -eq 0 ]
        [[ $stderr == "railgauge plot: warning: no pictures: gnuplot was not found in PATH"* ]]
        [ -s "${file%.*}-plots/data/$name.tsv" ]
        printed=$output
        run railgauge plot "$name" "$file" --terminal
        [ "$output" = "$printed" ]
    done
    [[ $output == *"Without an anchor"*"all"*"3"*"10.0 %"*"67 %"* ]]
}

@test "the JSON of predict and of predict --batch" {
    steps
    railgauge predict --fabric hgx-h100 --gpus 16 --layout dp=auto,tp=2 -o p.json >/dev/null
    run railgauge plot -t step p.json
    [ "$status" -eq 0 ]
    [[ $output == *"dp_shard=8,tp=2 "*"█"* ]]
    run railgauge plot -t step batch.json
    [ "$status" -eq 0 ]
    [ "$(wc -l <<<"$output")" -eq 4 ] # a row that was missed is none
    run railgauge plot -t score batch.json --by split
    [ "$status" -eq 0 ]
    [[ $output == *"calib"*"test_scale"* ]]
}

@test "the JSON of search: its best, with what each is made of" {
    steps
    railgauge search --fabric hgx-h100 --model llama3.1-8b --gpus 16 --json >s.json
    run railgauge plot step s.json --top 3
    [ "$status" -eq 0 ]
    [ "$(tail -n +2 s-plots/data/step.tsv | wc -l)" -eq 3 ]
    [ "$(tail -n +2 s-plots/data/step.tsv | cut -f 5 | head -1)" = "$(jq -r '.best[0].layout' s.json)" ]
    cut -f 3 s-plots/data/step_part.tsv | grep -qx "matrix products"
}

@test "a campaign that predicted has the step among its pictures" {
    need_gnuplot
    cp "$top/tests/golden/plots/steps/two.json" lab/prediction.json
    run --separate-stderr railgauge plot lab
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "$output" = "$(printf 'lab/plots/%s.png\n' tiers busbw heat dist step)" ]
    jq '.predictions = []' lab/prediction.json >x && mv x lab/prediction.json
    run --separate-stderr railgauge plot lab
    [ "$status" -eq 0 ]
    [ "$stderr" = "railgauge plot: warning: step: lab/prediction.json: it holds no predicted step" ]
    run railgauge plot lab step
    [ "$status" -eq 65 ]
    rm lab/prediction.json
    run railgauge plot lab step
    [ "$status" -eq 66 ]
    [[ $output == *"lab/prediction.json: No such file or directory"* ]]
}

@test "the scripts of predictions refuse tables without rows" {
    need_gnuplot
    steps
    for name in step scaling score; do
        cp -r expected none
        for file in none/*.tsv; do
            head -n 1 "$file" >x
            mv x "$file"
        done
        run gnuplot -c "$top/plots/$name.gp" none out.png png
        [ "$status" -eq 65 ]
        [[ $output == *"in none/${name}_meta.tsv"* ]]
        rm -rf none
    done
}

@test "words about predictions that are refused" {
    steps
    for name in step scaling score; do
        rejects plot 64 "$name: which " "$name"
    done
    rejects plot 64 "score is drawn of files: railgauge plot score FILE..." ../lab score
    rejects plot 64 "score is drawn of one table, and 2 are given" score score.tsv score.tsv
    rejects plot 64 '--measured: "1" has 1 of the 2 steps; - stands for one that was not measured' step two.json --measured 1
    rejects plot 64 "--measured: scaling.tsv has a column for that" scaling scaling.tsv --measured 1
    rejects plot 64 "--measured is for step and scaling" score score.tsv --measured 1
    rejects plot 64 "--top is for step" score score.tsv --top 3
    rejects plot 64 "--top: 61 is outside 1..60" step two.json --top 61
    rejects plot 64 "--by is for score" step two.json --by split
    rejects plot 65 'series "llama3.1-70b, tp=8, fsdp" has 64 GPUs twice; LABEL=FILE tells series apart' \
        scaling tp8-64.json tp8-64.json
    rejects plot 66 "nowhere.json: No such file or directory" step nowhere.json
}

# --- several campaigns, and how pictures look ---

# Four small campaigns a week apart; a NIC is slow from the second on, the third has other firmware.
campaigns() {
    for k in 1 2 3 4; do
        faults=()
        [ $k -lt 2 ] || faults=(--fault slow-nic=9:0.6)
        railgauge run --transport sim --no-plots --fabric hgx-h100 --racks 2 --noise 2% --no-verdict -o "c$k" \
            --op pair_bw,all_reduce -b 64K -e 16M -f 16 --epochs 2 --sim-seed $k "${faults[@]}" >/dev/null 2>&1
        sed -i "2s/\"time_utc\":\"[^\"]*/\"time_utc\":\"2026-03-0${k}T00:00:00Z/" "c$k/points.tsv"
    done
    jq -c 'del(.checksum) | .nic_versions = {columns: ["nic", "firmware", "driver"], rows: [[0, "28.40\"`id`", null]]}' c3/topology.json >t.json
    mv t.json c3/topology.json
    railgauge seal c3/topology.json
}

@test "history and compare: tables, pictures in each format, numbers without gnuplot" {
    campaigns
    mkdir none
    run env PATH="$PWD/none" "$railgauge" plot history c2 c1 c4 c3 -o out
    [ "$status" -eq 0 ]
    [[ $output == *"tier nvlink, pair_bw"*"NIC mlx5_1 of r00n01 (GPU 1)"* ]]
    [ "$(cut -f 2,4 out/data/history_version.tsv | sed -n 2p)" = $'1772496000\t1' ]
    [[ $(cut -f 3 out/data/history_version.tsv | sed -n 2p) == "NIC firmware: not told → 28.40'"* ]]
    # From the second campaign on, in one run, with its name once.
    [ "$(tail -n +2 out/data/history_part.tsv | cut -f 1,2 | paste -sd' ')" = $'1\t1772409600 1\t1772496000 1\t1772582400' ]
    [ "$(grep -c 'NIC mlx5_1 of r00n01' out/data/history_part.tsv)" -eq 1 ]
    rejects plot 64 "--only rack-01: a history is of tiers, not of racks" history c1 c2 c3 --only rack-01
    railgauge plot history c1 c2 c3 --only rail -o rail >/dev/null
    [ "$(awk -F'\t' '$1 == 1 {print $3}' rail/data/history.tsv | sort -u)" = "tier rail, pair_bw" ]
    [ "$(awk -F'\t' '$3 == "tier nvlink, pair_bw"' out/data/history.tsv | wc -l)" -eq 4 ]
    run env PATH="$PWD/none" "$railgauge" plot compare old=c1 c2 -o out
    [ "$status" -eq 0 ]
    [[ $output == *"figure "*" old "*" c2 "*"speed"*"tier rail "*"all_reduce, 32 ranks, 4 domains of 8, "* ]]
    [ "$(grep -c '^[12]	6[01]' out/data/compare_share.tsv)" -gt 0 ]
    run ! grep -q '^1	[67]' out/data/compare_share.tsv
    run -0 railgauge plot compare ./c1/matrix.json sheet=hgx-h100 --terminal
    [[ ${lines[0]} == "figure "*" c1 "*" sheet "*"speed" ]]
    [[ $output == *"tier fabric "*" GB/s "*" GB/s  "[+-]*" %"* ]]
    rejects plot 66 "hgx-h10: No such file" compare c1 hgx-h10
    command -v gnuplot >/dev/null || return 0
    for format in png svg pdf; do
        run --separate-stderr railgauge plot history c1 c2 c3 c4 --format $format
        [ "$output" = "c4/plots/history.$format" ]
        [ -z "$stderr" ]
        run --separate-stderr railgauge plot compare c1 c2 --format $format
        [ "$output" = "c2/plots/compare.$format" ]
        [ -z "$stderr" ]
    done
    # Numbers with an exponent are read, too.
    sed -i 's/^rare	.*/rare	1e-05/' out/data/compare_meta.tsv
    gnuplot -c "$top/plots/compare.gp" out/data tail.svg svg
    holds tail.svg '>0.01%<'
    holds c4/plots/history.svg '>Parts to act on<' 'rgb( *0, *114, *178)' "28.40'.id"
    holds c2/plots/compare.svg '>c1<' 'rgb(213, *94, *0)' '>The slow tail of all pairs<'
}

@test "title, size, palette and --only are for every picture, and hostile ones are refused or only text" {
    need_gnuplot
    railgauge plot lab --title '`id` _of_ $(id) "x"' --size 1000x600 --palette tol-bright --format svg >/dev/null
    for name in tiers busbw heat dist; do
        grep -q 'width="1000" height="600"' "lab/plots/$name.svg"
        holds "lab/plots/$name.svg" '`id` _of_ $(id)'
    done
    holds lab/plots/busbw.svg 'rgb( *68, *119, *170)'
    run ! grep -q 'rgb( *0, *114, *178)' lab/plots/busbw.svg
    railgauge plot lab dist --size slide >/dev/null
    [ "$(od -An -tx1 -j16 -N8 lab/plots/dist.png | tr -d ' ')" = 00000a00000005a0 ]
    railgauge run --transport sim --no-plots --fabric hgx-h100 --racks 2 --no-verdict -o two --op pair_bw -b 64K -e 64K --epochs 1 >/dev/null 2>&1
    railgauge plot two dist heat --only nvlink,rail >/dev/null
    [ "$(tail -n +2 two/plots/data/dist_tier.tsv | cut -f 2 | paste -sd' ')" = "nvlink rail" ]
    railgauge plot two heat --only rack-01 >/dev/null
    grep -q $'^title\tPair bandwidth, 32 GPUs on 4 hosts$' two/plots/data/heat_meta.tsv
    rejects plot 64 '--only: "rack-07" is no tier and no rack here (did you mean' two heat --only rack-07
    rejects plot 64 "--only is for heat, dist, history and compare" two --only nvlink
    rejects plot 64 '--size: "10x10" is none of slide, paper, and WIDTHxHEIGHT' two --size 10x10
    rejects plot 64 'no palette "okabe" (did you mean "okabe-ito"?)' two --palette okabe
    rejects plot 64 "a history is of 3 campaigns or more" history two two
    rejects plot 64 "two campaigns are compared; history takes more" compare two two two
}
