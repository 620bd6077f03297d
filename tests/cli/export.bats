#!/usr/bin/env bats
# export.bats - files of other tools, and words that are refused.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "a preset becomes a platform that is well-formed XML, and a host file" {
    railgauge export --format simgrid --fabric gb200-nvl72 --racks 4 -o p.xml --hostfile hosts
    [ "$(wc -l <hosts)" -eq 72 ]
    [ "$(sed -n 19p hosts)" = r01n00 ]
    python3 - <<'PY'
import xml.etree.ElementTree as tree

zone = tree.parse("p.xml").getroot().find("zone")
links = {l.get("id") for l in zone.findall("link")}
hosts = {h.get("id") for h in zone.findall("host")}
routes = zone.findall("route")
assert len(hosts) == 72 and len(routes) == 72 * 71 // 2
for r in routes:
    assert r.get("src") in hosts and r.get("dst") in hosts
    assert all(c.get("id") in links for c in r.findall("link_ctn"))
PY
}

@test "hosts per rack cut the platform" {
    railgauge export --format simgrid --fabric gb300-nvl72 --racks 3 --hosts-per-rack 2 -o p.xml --hostfile hosts
    [ "$(paste -sd, hosts)" = r00n00,r00n01,r01n00,r01n01,r02n00,r02n01 ]
}

@test "words that are missing or unknown are usage" {
    run railgauge export --fabric gb200-nvl72 -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *"--format is needed; --list-formats prints them"* ]]
    run railgauge export --format visio --fabric gb200-nvl72 -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *'no format "visio"; known: '*simgrid* ]]
    run railgauge export --format simgrid -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *"give one of MATRIX and --fabric"* ]]
    run railgauge export --format simgrid --fabric gb200-nvl72 --per rack -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *'--per: host or endpoint, not "rack"'* ]]
    [ ! -e p.xml ]
}

@test "a refused platform leaves no file behind" {
    run railgauge export --format simgrid --fabric gb200-nvl72 --racks 120 -o p.xml --hostfile hosts
    [ "$status" -eq 64 ]
    [ "$output" = "railgauge export: 2160 nodes have 4663440 pairs, as a SimGrid platform 445 MiB: more than 2048 nodes are not written; choose --per host, fewer --racks or --hosts-per-rack" ]
    [ -z "$(ls)" ]
}

@test "a missing matrix and a folder that is not there are named" {
    run railgauge export --format simgrid none.json -o p.xml
    [ "$status" -eq 66 ]
    [[ $output == *"none.json: No such file or directory"* ]]
    run railgauge export --format simgrid --fabric gb200-nvl72 -o no/p.xml
    [ "$status" -eq 74 ]
    [[ $output == *"no/p.xml"* ]]
}

@test "formats are listed with their help, and the manual has them all and no other" {
    railgauge export --list-formats >list
    [ "$(awk 'NF < 4' list)" = "" ]
    awk '{ print $1 }' list | sort >listed
    sed -n '/^\.It Fl f , Fl -format Ar name/,/^\.El/s/^\.It Cm //p' "$BATS_TEST_DIRNAME/../../src/railgauge.1" |
        sed 's/ , /\n/g' | sort >manual
    diff listed manual
}

@test "a file for Slurm says what it was made from" {
    golden=$BATS_TEST_DIRNAME/../golden/matrix.json
    railgauge export -f slurm-tree "$golden" | head -1 | grep -q " from a matrix measured over $(jq -r .transport "$golden")"
    railgauge export -f slurm-tree --fabric gb200-nvl72 --racks 2 | head -1 | grep -q ' from the preset gb200-nvl72: 36 hosts'
    railgauge discover -q --fabric gb200-nvl72 --racks 2 -o t.json
    railgauge export -f slurm-tree t.json | head -1 | grep -q ' from a topology that nobody measured: 36 hosts'
}

@test "a tree of five tiers comes back as deep as it was" {
    cat >five.conf <<'X'
SwitchName=top Switches=core[0-1]
SwitchName=core0 Switches=grp[0-1]
SwitchName=core1 Switches=grp[2-3]
SwitchName=grp0 Switches=pod[0-1]
SwitchName=grp1 Switches=pod[2-3]
SwitchName=grp2 Switches=pod[4-5]
SwitchName=grp3 Switches=pod[6-7]
X
    for p in 0 1 2 3 4 5 6 7; do
        echo "SwitchName=pod$p Switches=l$((2 * p)),l$((2 * p + 1))"
    done | sed 's/l\([0-9]*\),l\([0-9]*\)/l[\1-\2]/; s/l\[\([0-9]\)-10\]/l\1,l10/' >>five.conf
    for l in {0..15}; do
        printf 'SwitchName=l%d Nodes=n[%02d-%02d]\n' "$l" $((2 * l)) $((2 * l + 1))
    done >>five.conf
    railgauge discover -q --slurm five.conf --gpus-per-host 1 -o t.json
    railgauge export -f slurm-tree t.json | grep -v '^#' >again.conf
    railgauge discover -q --slurm again.conf --gpus-per-host 1 -o again.json
    [ "$(grep -c ^SwitchName again.conf)" -eq "$(grep -c ^SwitchName five.conf)" ]
    diff <(jq -c '.claims.rows[] | [.[0, 1, 3, 4]]' t.json) <(jq -c '.claims.rows[] | [.[0, 1, 3, 4]]' again.json)
    [ "$(jq -r '[.claims.rows[][1]] | unique | join(" ")' t.json)" = "leaf spine spine+1 spine+2" ]
}
