#!/usr/bin/env bats
# readme.bats - what the README and the pages behind it say their commands print is what they print.

bats_require_minimum_version 1.5.0

# The commands of the pages stand in indented lines; a comment behind one may say how it ends ("exit 1",
# "1 if ..."; else 0) or what it needs that is not here.
commands() { sed -n 's/^    \(\(railgauge\|jobs\/\|sh\|make\|export\|sbatch\|kubectl\|mpirun\) *.*\)/\1/p;s/^    make$/make/p' "${pages[@]/#/$top/}"; }
pages=(README.md docs/tour.md docs/gpus.md docs/kubernetes.md)

# A copy of what is kept, with this build: as in a fresh clone after make.
setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_FILE_TMPDIR" || return 1
    (cd "$top" && { git ls-files -coz --exclude-standard 2>/dev/null || find . -type f -not -path './build*' -print0; }) |
        (cd "$top" && xargs -0 cp --parents -t "$BATS_FILE_TMPDIR")
    ln -s "$RG_BUILD" build
    local line note code want
    while IFS= read -r line; do
        note=${line#*  \# }
        [ "$note" != "$line" ] || note=
        note=${note#"${note%%[! ]*}"}
        want=0
        [[ $note != *"exit 1"* ]] || want=1
        [[ $note != *"1 if "* ]] || want="0 or 1"
        case $line in
        *"# needs "*) [[ $line != railgauge* ]] || line="${line%%  \#*} --help" ;;
        make* | sh*quickstart*) line="${line%%  \#*} -n"; [[ $line == make* ]] || line="${line% -n} --dry-run" ;;
        esac
        [[ ${line%%  \#*} != sbatch* && $line != kubectl* && $line != mpirun* && $line != jobs/* ]] ||
            { [[ $line == mpirun* || $line != *jobs/* ]] || ls "$(grep -oE 'jobs/[a-z0-9/.-]*' <<<"$line" | head -1)" >/dev/null || return 1; continue; }
        if [[ $line == export* ]]; then
            eval "$line"
            continue
        fi
        code=0
        printf '$ %s\n' "$line" >>log
        COLUMNS=80 bash -c "$line" >out 2>>log || code=$?
        cat out >>log
        [[ $line != *" -o demo "* ]] || cp out summary
        [[ " $want " == *" $code "* ]] || { echo "exit $code, not $want: $line"; tail -5 log; return 1; }
        printf '%s\n' "$line" >>ran
    done < <(commands)
}

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_FILE_TMPDIR" || return 1
    readme=$(cat "${pages[@]/#/$top/}" | tr -s '\n ' '  ' | tr -d '*')
}

@test "every command of the pages runs as it is written, in order, from a fresh clone" {
    [ "$(wc -l <ran)" -gt 30 ]
    [ "$(grep -c '^railgauge' ran)" -eq "$(commands | grep -c '^railgauge')" ]
}

@test "the tiers of the simulated racks, and what is slow in them" {
    sed -n '/^    1 slow part/,/^    fabric /p' "$top/README.md" | sed 's/^    //' >said
    [ "$(wc -l <said)" -eq 20 ] # the part that is slow, with its evidence and the next step, and the tiers
    sed -n '/^1 slow part/,/^fabric /p' summary | diff said -
}

@test "explain: the share of the narrowest hop, and the endpoint" {
    run -0 railgauge explain demo r00n04:1 r01n04:1
    words=$(sed -n 's/^\([0-9.]* GB.s\) .*\( of the .* should give: [0-9]* %\)$/\1\2/p' <<<"$output")
    [ -n "$words" ]
    [[ $readme == *"$words and names the NIC"* ]]
    [[ $output == *"NIC mlx5_1 of r00n04 (GPU 1): 60 % of normal"* ]]
}

@test "declared: one pair of hosts swapped in the file of Slurm" {
    railgauge export -f slurm-block --release 24.11 demo |
        sed 's/r01n\[00-17\]/r01n[00-16],r02n00/; s/=r02n\[00-17\]/=r01n17,r02n[01-17]/' >topology.conf
    run -1 railgauge declared demo --slurm topology.conf
    words=$(sed -n 's/^DIFFER .*: crossing: \(.*measured with.*\)/\1/p' <<<"$output")
    [ -n "$words" ]
    [[ $readme == *"$words"* ]]
}

# shellcheck disable=SC2154 # declare sets the four
@test "place: the step, that of the default order, of a random one, and the bound" {
    read -ra words <<<"$(grep -m1 -o 'place demo/matrix.json .*' "$top/docs/tour.md")"
    run -0 railgauge "${words[@]:0:6}"
    for row in placed default random bound; do
        declare "$row=$(awk -v r=$row '$1 == r {print $2, $3; exit}' <<<"$output")"
    done
    [[ $readme == *"the step takes $placed instead of $default in the default order (random: $random; no order can be faster than $bound)"* ]]
}
