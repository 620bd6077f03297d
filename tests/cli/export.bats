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
    [[ $output == *"--format is needed: simgrid"* ]]
    run railgauge export --format visio --fabric gb200-nvl72 -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *'no format "visio"; known: simgrid'* ]]
    run railgauge export --format simgrid --fabric gb200-nvl72
    [ "$status" -eq 64 ]
    [[ $output == *"-o FILE is needed"* ]]
    run railgauge export --format simgrid -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *"give one of MATRIX and --fabric"* ]]
    run railgauge export --format simgrid --fabric gb200-nvl72 --per rack -o p.xml
    [ "$status" -eq 64 ]
    [[ $output == *'--per is host or endpoint, not "rack"'* ]]
    [ ! -e p.xml ]
}

@test "a refused platform leaves no file behind" {
    run railgauge export --format simgrid --fabric gb200-nvl72 --racks 120 -o p.xml --hostfile hosts
    [ "$status" -eq 64 ]
    [ "$output" = "railgauge export: more than 2048 nodes: a platform has a route for each pair; choose fewer racks or --hosts-per-rack" ]
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
