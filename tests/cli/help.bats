#!/usr/bin/env bats
# help.bats - --help of each command: own options, groups, examples, exit codes; all from the same rows.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    commands=$(railgauge --help | awk '/^  [a-z]/ {print $1}') && [ -n "$commands" ]
}

# rows PROGRAM COMMAND KIND: lines of --help=tsv.
rows() { "$1" "$2" --help=tsv | awk -F'\t' -v kind="$3" '$1 == kind'; }
groups() { rows "$@" option | cut -f2 | grep -vxE 'own|every' | sort -u; }
# shown: long options that stand on a page of help.
shown() { sed -n '/^Examples:/q;p' | grep -oE '^ {2,6}(-., )?--[a-z0-9_-]+' | grep -oE -- '--[a-z0-9_-]+$' | grep -v '^--help$' | sort; }

@test "a command has at most 25 options of its own, and prints no others but those of every command" {
    for c in $commands; do
        own=$(rows railgauge "$c" option | awk -F'\t' '$2 == "own" {print "--" $3}')
        [ "$(grep -c . <<<"$own")" -le 25 ] || [ "$c" = predict ] || { echo "$c: $(wc -l <<<"$own")"; false; }
        every=$(rows railgauge "$c" option | awk -F'\t' '$2 == "every" && $3 != "help" {print "--" $3}')
        diff <(sort <<<"$own"$'\n'"$every" | grep .) <(railgauge "$c" --help | shown) || { echo "$c"; false; }
    done
}

@test "groups: a line in --help with its number of options, a page each, all of them in --help=all" {
    for c in $commands; do
        railgauge "$c" --help >help
        for g in $(groups railgauge "$c"); do
            want=$(rows railgauge "$c" option | awk -F'\t' -v g="$g" '$2 == g {print "--" $3}' | sort)
            said=$(tr -s ' \n' ' ' <help | grep -oE -- "--help=$g [^=]*\(([0-9]+) options?\)" | grep -oE '[0-9]+ options?\)$' | grep -oE '[0-9]+')
            [ "$said" = "$(wc -l <<<"$want")" ] || { echo "$c $g: $said"; false; }
            diff <(echo "$want") <(railgauge "$c" --help="$g" | shown) || { echo "$c $g"; false; }
        done
        diff <(rows railgauge "$c" option | awk -F'\t' '$3 != "help" {print "--" $3}' | sort) <(railgauge "$c" --help=all | shown) || { echo "$c"; false; }
    done
    [ "$(groups railgauge run | xargs)" = "gpu measuring network simulation" ]
    [ "$(groups railgauge predict | xargs)" = "budget machine recipe" ]
    [ -z "$(groups railgauge show)" ]
    ! railgauge show --help | grep -q 'More options'
}

@test "an option's row has a plain text and, if it belongs to a group, the group has a headline" {
    for c in $commands; do
        rows railgauge "$c" option | awk -F'\t' '$7 == "" || $7 ~ /^of |^what |[^.]\.$/ {print; bad = 1} END {exit bad}'
        for g in $(groups railgauge "$c"); do
            rows railgauge "$c" headline | cut -f2 | grep -qx "$g" || { echo "$c $g"; false; }
        done
    done
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
    for c in $commands; do
        railgauge "$c" --help=all | awk -v c="$c" '/^Examples:/ {examples = 1} /^Exit codes:/ {examples = 0}
            /^Usage:|^  or:/ {next} length($0) > (examples ? 90 : 80) && !/all_gather,reduce_scatter/ {print c ": " $0; bad = 1} END {exit bad}'
    done
}
