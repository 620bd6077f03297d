#!/usr/bin/env bats
# help.bats - --help of each command: own options, groups, examples, exit codes; all from the same rows.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    commands=$(railgauge --help | awk '/^  [a-z]/ {print "railgauge " $1}'; railgauge-calibrate --help | awk '/^  [a-z]/ {print "railgauge-calibrate " $1}')
    [ "$(wc -l <<<"$commands")" -gt 30 ]
}

# rows PROGRAM COMMAND KIND: lines of --help=tsv.
rows() { "$1" "$2" --help=tsv | awk -F'\t' -v kind="$3" '$1 == kind'; }
groups() { rows "$@" option | cut -f2 | grep -vxE 'own|every' | sort -u; }
# shown: long options that stand on a page of help.
shown() { sed -n '/^Examples:/q;p' | grep -oE '^ {2,6}(-., )?--[a-z0-9_-]+' | grep -oE -- '--[a-z0-9_-]+$' | grep -v '^--help$' | sort; }

@test "a command has at most 25 options of its own, and prints no others but those of every command" {
    while read -r p c; do
        own=$(rows "$p" "$c" option | awk -F'\t' '$2 == "own" {print "--" $3}')
        [ "$(grep -c . <<<"$own")" -le 25 ] || { echo "$c: $(wc -l <<<"$own")"; false; }
        every=$(rows "$p" "$c" option | awk -F'\t' '$2 == "every" && $3 != "help" {print "--" $3}')
        diff <(sort <<<"$own"$'\n'"$every" | grep .) <("$p" "$c" --help | shown) || { echo "$c"; false; }
    done <<<"$commands"
}

@test "groups: a line in --help with its number of options, a page each, all of them in --help=all" {
    while read -r p c; do
        "$p" "$c" --help >help
        for g in $(groups "$p" "$c"); do
            want=$(rows "$p" "$c" option | awk -F'\t' -v g="$g" '$2 == g {print "--" $3}' | sort)
            said=$(tr -s ' \n' ' ' <help | grep -oE -- "--help=$g [^=]*\(([0-9]+) options?\)" | grep -oE '[0-9]+ options?\)$' | grep -oE '[0-9]+')
            [ "$said" = "$(wc -l <<<"$want")" ] || { echo "$c $g: $said"; false; }
            diff <(echo "$want") <("$p" "$c" --help="$g" | shown) || { echo "$c $g"; false; }
        done
        diff <(rows "$p" "$c" option | awk -F'\t' '$3 != "help" {print "--" $3}' | sort) <("$p" "$c" --help=all | shown) || { echo "$c"; false; }
    done <<<"$commands"
    [ "$(groups railgauge run | xargs)" = "gpu measuring network simulation" ]
    [ "$(groups railgauge predict | xargs)" = "budget machine recipe" ]
    [ -z "$(groups railgauge show)" ]
    ! railgauge show --help | grep -q 'More options'
}

@test "an option's row has a plain text and, if it belongs to a group, the group has a headline" {
    while read -r p c; do
        rows "$p" "$c" option | awk -F'\t' '$7 == "" || $7 ~ /^of |^what |[^.]\.$/ {print; bad = 1} END {exit bad}'
        for g in $(groups "$p" "$c"); do
            rows "$p" "$c" headline | cut -f2 | grep -qx "$g" || { echo "$c $g"; false; }
        done
    done <<<"$commands"
}

@test "an unknown group is usage, and the known ones are named" {
    run --separate-stderr railgauge run --help=gpus
    [ "$status" -eq 64 ]
    [ -z "$output" ]
    [[ $stderr == 'railgauge run: --help: no group "gpus"; known are measuring, simulation, gpu, network, all'* ]]
    run --separate-stderr railgauge-probe probe --help=gpus
    [ "$status" -eq 64 ]
    run --separate-stderr railgauge show --help=measuring
    [[ $stderr == 'railgauge show: --help: no group "measuring"; known are all'* ]]
}

@test "pages fit the terminal, but for lines that are pasted" {
    while read -r p c; do
        "$p" "$c" --help=all | awk -v c="$c" '/^Examples:/ {examples = 1} /^Exit codes:/ {examples = 0}
            /^Usage:|^  or:/ {next} length($0) > (examples ? 90 : 80) && !/all_gather,reduce_scatter/ {print c ": " $0; bad = 1} END {exit bad}'
    done <<<"$commands"
}

@test "railgauge-calibrate: its own commands, version, unknown words" {
    [ "$(railgauge-calibrate --help | awk '/^  [a-z]/ {print $1}' | xargs)" = "refit score claims curves completion" ]
    [ "$(railgauge-calibrate --version | cut -d' ' -f1)" = railgauge-calibrate ]
    run --separate-stderr railgauge-calibrate scoer
    [ "$status" -eq 64 ]
    [ "$stderr" = 'railgauge-calibrate: no command "scoer" (did you mean "score"?); railgauge-calibrate --help lists them' ]
    run railgauge-calibrate refit --nonsense
    [[ $output == "railgauge-calibrate refit: unrecognized option"* ]]
    ! railgauge --help | grep -qE '^  (calibrate|curves) '
}

# same HINT OLD... -- NEW...: both print the same and end alike; the old one says where it is now.
same() {
    local hint=$1 old=() code=0
    shift
    while [ "$1" != -- ]; do old+=("$1") && shift; done
    shift
    run --separate-stderr railgauge "${old[@]}"
    [[ $stderr == *"$hint"* ]] || { echo "${old[*]}: $stderr"; return 1; }
    railgauge-calibrate "$@" >new 2>/dev/null || code=$?
    [ "$code" -eq "$status" ] && [ -s new ] && [ "$output" = "$(cat new)" ] || { echo "${old[*]}: $status, $code"; return 1; }
}

@test "commands and options that moved to railgauge-calibrate work by their old names, with a hint" {
    top=$BATS_TEST_DIRNAME/../..
    ln -s "$top/jobs/training/steps.tsv" steps.tsv
    printf 'system\tnccl_version\top\tranks\tbytes\tlatency_us\n' >curves.tsv
    for b in 1024 2048 4096 8192 16384; do printf 'x\t2.28\tall_gather\t8\t%s\t%s\n' $b $((10 + b / 100)) >>curves.tsv; done
    same "railgauge calibrate is now railgauge-calibrate refit; the old name ends" calibrate steps.tsv --dry-run -- refit steps.tsv --dry-run
    same "is now railgauge-calibrate curves;" curves curves.tsv --every 2 -- curves curves.tsv --every 2
    same "predict --batch TABLE is now railgauge-calibrate score; the old options end" predict --batch steps.tsv -- score --rows steps.tsv
    same "is now railgauge-calibrate score;" predict --batch steps.tsv --score --leave-out 'tp>4' -- score steps.tsv --leave-out 'tp>4'
    same "is now railgauge-calibrate score;" predict --batch steps.tsv --score --leave-one-out gpu --constants "$top/jobs/training/constants.json" \
        -- score steps.tsv --leave-one-out gpu
    same "predict --case is now railgauge-calibrate claims;" predict --case llama-8b-gb200-h100 --markdown -- claims llama-8b-gb200-h100 --markdown
    run --separate-stderr railgauge predict --case llama-8b-gb200-h100 --fabric hgx-h100
    [ "$status" -eq 64 ]
    run --separate-stderr railgauge predict --fabric hgx-h100 --layout dp=8 --leave-out 'pp>1'
    [ "$status" -eq 64 ]
    [[ $stderr == *"--leave-one-out and --leave-out belong to railgauge-calibrate score"* ]]
}
