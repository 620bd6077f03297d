#!/usr/bin/env bats
# readme.bats - what the README says its commands print is what they print.

bats_require_minimum_version 1.5.0

setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_FILE_TMPDIR" || return 1
    ln -s "$RG_BUILD" build
    # The command of the simulated campaign, as it stands there; pictures are plot.bats' matter.
    read -ra demo <<<"$(grep -m1 -o 'build/railgauge run .* -o demo$' "$top/README.md")"
    [ "${#demo[@]}" -gt 8 ] || return 1
    "${demo[@]}" --no-plots >summary 2>/dev/null || [ $? -eq 1 ] # a part is named
}

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_FILE_TMPDIR" || return 1
    readme=$(tr -s '\n ' '  ' <"$top/README.md" | tr -d '*')
}

@test "the tiers of the simulated racks" {
    sed -n 's/^    \(tier  *pairs .*\|[a-z]*  *[0-9]*  *[0-9.]* us .*\)/\1/p' "$top/README.md" >said
    [ "$(wc -l <said)" -eq 4 ]
    sed -n '/^tier  *pairs/,/^$/p' summary | sed '/^$/d' | diff said -
}

@test "explain: the share of the narrowest hop, and the endpoint" {
    run -0 railgauge explain demo r00n04:1 r01n04:1
    words=$(sed -n 's/^\([0-9.]* GB.s\) .*\( of the .* should give: [0-9]* %\)$/\1\2/p' <<<"$output")
    [ -n "$words" ]
    [[ $readme == *"$words and names endpoint 17"* ]]
    [[ $output == *"endpoint 17 "* ]]
}

@test "declared: one pair of hosts swapped in the file of Slurm" {
    railgauge export -f slurm-block --release 24.11 demo |
        sed 's/r01n\[00-17\]/r01n[00-16],r02n00/; s/=r02n\[00-17\]/=r01n17,r02n[01-17]/' >topology.conf
    run -1 railgauge declared demo --slurm topology.conf
    words=$(sed -n 's/^DIFFER .*: crossing: \(.*measured with.*\)/\1/p' <<<"$output")
    [ -n "$words" ]
    [[ $readme == *"$words"* ]]
}

@test "place: the step, that of the default order, of a random one, and the bound" {
    read -ra words <<<"$(grep -m1 -o 'place demo/matrix.json .*' "$top/README.md")"
    run -0 railgauge "${words[@]:0:6}"
    for row in placed default random bound; do
        declare "$row=$(awk -v r=$row '$1 == r {print $2, $3; exit}' <<<"$output")"
    done
    [[ $readme == *"the step takes $placed instead of $default in the default order (random: $random; no order can be faster than $bound)"* ]]
}
