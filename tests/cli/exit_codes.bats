#!/usr/bin/env bats
# exit_codes.bats - each command ends with each code that its --help promises, and with no other: exit_codes.tsv
# has a command line for each.  The man page tells what they mean.

bats_require_minimum_version 1.5.0

# measured - steps.tsv and curves.tsv, of which there is something to tell.
measured() {
    printf 'id\tmodel\thardware\tgpus\tglobal_batch\ttp\tseq_len\tdtype\tzero_stage/fsdp\tvalue\tsplit\n' >steps.tsv
    printf 'tp%d\tllama3.1-8b\tH100\t16\t64\t%d\t8192\tbf16\tZeRO-1\t1%d\tcalib\n' 1 1 2 2 2 3 4 4 4 8 8 6 >>steps.tsv
    printf 'system\tnccl_version\top\tranks\tbytes\tlatency_us\n' >curves.tsv
    for n in 1 2 3 4 5 6; do printf 'hgx\t2.29.2\tall_gather\t8\t%d\t%d\n' $((1024 << n)) $((10 << n)); done >>curves.tsv
}

# What the lines of the table are about.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    local healthy=(--transport sim --no-plots --fabric hgx-h100 --racks 1 --noise 1% --op "pair_bw,pair_latency")
    railgauge run "${healthy[@]}" -o good || return 1
    railgauge run "${healthy[@]}" -o slow --fault slow-gpu=3:0.5 --no-verdict || return 1
    # Two GPUs over MPI would be as few points as these: of every figure the first row.
    mkdir few
    cp good/{topology,matrix}.json few/
    { head -3 good/points.tsv; awk -F'\t' 'NR > 3 && !seen[$5]++' good/points.tsv; } >few/points.tsv
    railgauge run --transport sim --no-plots --fabric hgx-b200 --racks 1 --op pair_bw -o other || return 1
    railgauge run "${healthy[@]}" -o dead --fault dead-host=1 --no-verdict || return 1
    mkdir empty lone
    cp "$(command -v railgauge)" lone/ # no railgauge-probe is beside it
    echo '{' >torn.json
    railgauge discover --fabric hgx-h100 --racks 2 -o all.json -q
    jq '.nics.rows[19][5] = false' all.json >odd.json
    jq '.hosts.rows |= .[:1] | .nics.rows |= .[:8] | .endpoints.rows |= .[:8]' all.json >one.json
    jq '.hosts.rows |= .[:1] | .nics.rows |= .[:1] | .endpoints.rows |= .[:1]' all.json >lonely.json
    railgauge seal odd.json one.json lonely.json
    jq -r '.hosts.rows[][0]' all.json >hostfile
    jq '.claims[0].published = 50' "$BATS_TEST_DIRNAME/../bad/case/good.json" >wrong-case.json
    jq '.claims[0].value = "1 / (two.gpus - 16)" | .claims[0].readings = []' "$BATS_TEST_DIRNAME/../bad/case/good.json" >nan-case.json
    railgauge discover --topograph "$BATS_TEST_DIRNAME/../fuzz/seeds/topograph/model.yaml" --gpus-per-host 4 -q -o half.json
    printf 'BlockName=b%d Nodes=r0%dn[00-03]\n' 0 0 1 1 >same.conf
    sed 's/r00n\[00-03\]/r00n[00-02],r01n03/; s/r01n\[00-03\]/r01n[00-02],r00n03/' same.conf >swapped.conf
    echo BlockSizes=4 | tee -a same.conf >>swapped.conf
    cp -r "$BATS_TEST_DIRNAME/../golden/export/campaign" torn-sweep
    for f in torn-sweep/sweep/*-*.tsv; do echo '{' >"$f"; done
    measured
    # shellcheck disable=SC2016 # its own first word
    printf '#!/bin/sh\nexit "$1"\n' >ends # a launcher
    chmod +x ends
}

# shellcheck disable=SC2034 # lines of the table have these words
setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    golden=$BATS_TEST_DIRNAME/../golden bad=$BATS_TEST_DIRNAME/../bad
    sim="--fabric hgx-h100 --racks 1 -n 4 --op pair_bw --pair-bytes 1M -e 1M"
    new="--transport sim --no-plots $sim"
    fits="--fabric hgx-h100 --racks 2 --layout tp=8,dp_shard=8 --model llama3.1-8b"
    large="--fabric hgx-h100 --racks 2 --layout dp_shard=64 --model llama3.1-405b"
    narrow="--fabric hgx-h100 --racks 1 --constraint pp=1,tp=8,cp=1"
    hybrid="good/matrix.json --layout tp=8,dp_shard=4 --model llama3.1-8b"
    table=$BATS_TEST_DIRNAME/exit_codes.tsv
}

@test "each command ends with each of its codes, and says why" {
    n=0 wrong=0
    while IFS=$'\t' read -r code word line; do
        [[ $code != \#* ]] || continue
        mkdir "$BATS_TEST_TMPDIR/$((++n))"
        got=0
        eval "${line//\{\}/$BATS_TEST_TMPDIR/$n}" >"$BATS_TEST_TMPDIR/said" 2>&1 </dev/null || got=$?
        [ "$got" -eq "$code" ] && { [ "$word" = - ] || grep -qF -- "$word" "$BATS_TEST_TMPDIR/said"; } && continue
        echo "$line: $got where $code is promised, and \"$word\" in: $(head -c 600 "$BATS_TEST_TMPDIR/said")"
        wrong=$((wrong + 1))
    done <"$table"
    [ "$n" -gt 100 ] && [ "$wrong" -eq 0 ]
}

# codes - the numbers before each meaning of the sentence "Exit codes: 0 good, ... ." on stdin.
codes() {
    tr -s ' \n' ' ' | sed 's/.*Exit codes: //; s/([^)]*)//g' | grep -oE '(^|, )[0-9]+ ' | tr -dc '0-9\n' | sort -nu | xargs
}

@test "--help of each command promises the codes of the table, no more and no fewer" {
    for program in railgauge railgauge-calibrate; do
        for command in $($program --help | awk '/^  [a-z]/ {print $1}'); do
            [ "$program $command" != "railgauge-calibrate completion" ] || continue
            promised=$($program "$command" --help | codes)
            forced=$(grep -v '^#' "$table" | grep -E "$program $command( |\$)" | cut -f1 | sort -nu | xargs)
            [ "$promised" = "$forced" ] || echo "$command: --help promises $promised; the table has $forced"
        done
    done >wrong
    cat wrong
    [ ! -s wrong ]
}

@test "the man page tells what 1, 2, 75 and 78 mean for each command that ends with them" {
    man=$(sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$BATS_TEST_DIRNAME/../../src/railgauge.1")
    for code in $(sed -n 's/^ *EXIT_[A-Z]* = \([0-9]*\),.*/\1/p' "$BATS_TEST_DIRNAME/../../src/base/err.h"); do
        grep -qx "\.It $code" <<<"$man"
    done
    for code in 1 2 75 78; do
        said=" $(sed -n "/^\.It $code\$/,/^\.\(It\|El\)/{/^\.It/d;p}" <<<"$man" | tr '\n' ' ') "
        for command in $(grep -E "^$code"$'\t' "$table" | grep -oE 'railgauge [a-z-]+' | cut -d' ' -f2 | sort -u); do
            [[ $said == *"m $command "* ]] || {
                echo "$code: nothing of $command in:$said"
                false
            }
        done
    done
    for command in show cost explain export; do
        grep -qE "^\.Cm $command( |$)" <<<"$man"
    done
}
