#!/usr/bin/env bats
# k8s.bats - Kubernetes and topograph: what is exported is what their schemas take, and reads back.

bats_require_minimum_version 1.5.0

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    fixtures=${RAILGAUGE_K8S:-$root/../shared/fixtures/k8s}
    seeds=$root/tests/fuzz/seeds
    cd "$BATS_TEST_TMPDIR" || return 1
}

# Every document of FILE that has a CRD here is valid, and at least MANY are.
valid() { # FILE MANY
    run /usr/bin/python3 "$root/tests/k8s/check.py" "$1" "$fixtures"/*-crd.yaml
    echo "$output"
    [[ $output != "not checked: No module"* ]] || skip "$output"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
    [ "$(grep -c ^valid <<<"$output")" -ge "$2" ]
}

@test "CRDs of Kueue, KAI and Volcano take what is exported" {
    [ -d "$fixtures" ] || skip "no CRDs at ../shared/fixtures/k8s (RAILGAUGE_K8S)"
    [ -x /usr/bin/python3 ] || skip "no Python"
    railgauge discover --topograph "$seeds/topograph/model.yaml" --gpus-per-host 4 --quiet -o model.json
    for from in "--fabric gb200-nvl72 --racks 3" "--fabric hgx-h100 --racks 5" model.json; do
        # shellcheck disable=SC2086  # words
        railgauge export --format volcano $from --partial -o volcano.yaml
        valid volcano.yaml 2
        [ "$from" != model.json ] || continue
        for f in kueue kai; do
            # shellcheck disable=SC2086
            railgauge export --format $f $from -o $f.yaml
            valid $f.yaml 1
        done
    done
    # The check sees a HyperNode without a tier and a level that Kueue does not know.
    grep -v "  tier: 1" volcano.yaml >bad.yaml
    run /usr/bin/python3 "$root/tests/k8s/check.py" bad.yaml "$fixtures"/*-crd.yaml
    [ "$status" -eq 1 ]
    [[ $output == *"'tier' is a required property"* ]]
    sed 's/nodeLabel: .*tier-0/label: x/' kueue.yaml >bad.yaml
    run /usr/bin/python3 "$root/tests/k8s/check.py" bad.yaml "$fixtures"/*-crd.yaml
    [ "$status" -eq 1 ]
    [[ $output == *"'nodeLabel' is a required property"* ]]
}

@test "every exported YAML is YAML to others too" {
    /usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "Python has no yaml"
    for f in k8s-labels kueue kai volcano network-topology topograph; do
        railgauge export --format $f --fabric gb200-nvl72 --racks 2 -o $f.out
    done
    railgauge export --format network-topology --fabric gb200-nvl72 --racks 2 -o nt.yaml --second zones.yaml
    /usr/bin/python3 - <<'PY'
import json
import yaml

docs = {f: [d for d in yaml.safe_load_all(open(f + ".out"))] for f in
        ("k8s-labels", "kueue", "kai", "volcano", "network-topology")}
nodes = docs["k8s-labels"][0]["items"]
assert len(nodes) == 36 and all(isinstance(v, str) for n in nodes for v in n["metadata"]["labels"].values())
assert [d["kind"] for d in docs["kueue"]] == ["Topology", "ResourceFlavor"]
assert docs["kueue"][0]["spec"] == docs["kai"][0]["spec"]
used = {level["nodeLabel"] for level in docs["kueue"][0]["spec"]["levels"]} - {"kubernetes.io/hostname"}
assert used and all(used <= set(n["metadata"]["labels"]) for n in nodes)
assert len(json.load(open("topograph.out"))["instances"]) == 36
cost = docs["network-topology"][0]["spec"]["weights"][0]["topologyList"][0]
zones = {n["metadata"]["labels"][cost["topologyKey"]] for n in yaml.safe_load(open("zones.yaml"))["items"]}
assert {o["origin"] for o in cost["originList"]} == zones == {"domain-00", "domain-01"}
PY
}

@test "labels that were exported are the same groups when they are read" {
    railgauge discover --topograph "$seeds/topograph/model.yaml" --gpus-per-host 4 --quiet -o a.json
    railgauge export --format k8s-labels a.json --partial -o nodes.yaml
    railgauge discover --labels nodes.yaml --gpus-per-host 4 --quiet -o b.json
    places='.endpoints.columns as $c | [.endpoints.rows[] | [.[$c | index("host")], .[$c | index("domain")], .[$c | index("leaf")], .[$c | index("rack")]]] | .[:24]'
    [ "$(jq -c "$places" a.json)" = "$(jq -c "$places" b.json)" ]
    [ "$(jq -c .levels.domain a.json)" = '["nvl-a","nvl-b"]' ]
    [ "$(jq -c .levels b.json)" = "$(jq -c .levels a.json)" ]
}

@test "nodes that take no work and labels that are wider than a spine are told" {
    run railgauge discover --labels "$seeds/labels/topograph.json" -o t.json
    [ "$status" -eq 0 ]
    [[ $output == *"8 hosts (label), 4 domains (label), 4 leaves (label), 4 racks (label), 2 spines (label)"* ]]
    [[ $output == *"nodes not ready or cordoned 2 of 8: gb06, gb07 (cordoned)"* ]]
    [[ $output == *" group 1 above spines by label fabric.topograph.run/tier-2: "* ]]
    [ "$(jq -r '.endpoints.rows | length' t.json)" -eq 32 ]
}

@test "two families of labels that disagree are both kept" {
    railgauge discover --labels "$seeds/labels/coreweave.json" --quiet -o t.json
    [ "$(jq -c '[.claims.rows[] | select(.[1] == "leaf") | .[2]] | unique' t.json)" = \
        '["backend.coreweave.cloud/leafgroup","ib.coreweave.cloud/leafgroup"]' ]
}

@test "old names of labels, names of objects and releases are asked for or refused" {
    railgauge export --format k8s-labels --fabric gb200-nvl72 --racks 2 --release 0.5 | grep -q "network.topology.nvidia.com/accelerator: domain-01"
    railgauge export --format kueue --fabric gb200-nvl72 --racks 2 --release 0.14 --name tas | grep -q "topologyName: tas"
    run railgauge export --format kueue --fabric gb200-nvl72 --racks 2 --release 0.3 -o no.yaml
    [ "$status" -eq 64 ]
    [ "$output" = "railgauge export: Kueue 0.3 knows no topologies: they came with 0.9" ]
    run railgauge export --format k8s-labels --fabric gb200-nvl72 --racks 2 --release new -o no.yaml
    [ "$status" -eq 64 ]
    run railgauge export --format kai --fabric gb200-nvl72 --racks 2 --name "My Topology" -o no.yaml
    [ "$status" -eq 64 ]
    [[ $output == *'"My Topology" cannot be the name of an object: names are RFC 1123 subdomains'* ]]
    [ ! -e no.yaml ]
}

@test "the level that the job for Kueue asks for is one that the export makes" {
    job=$root/jobs/kubernetes/mpijob-kueue.yaml
    level=$(sed -nE 's|.*kueue.x-k8s.io/podset-required-topology: ([a-z0-9./-]+).*|\1|p' "$job")
    railgauge discover --topograph "$seeds/topograph/model.yaml" --gpus-per-host 8 --quiet -o t.json
    railgauge export --format k8s-labels t.json --partial | grep -q "      $level: leaf-1"
    railgauge export --format kueue --fabric gb200-nvl72 --racks 2 | grep -q "  - nodeLabel: $level\$"
}

@test "kubectl takes the files, and what it prints of nodes is read" {
    command -v kubectl >/dev/null || skip "kubectl is not installed"
    export KUBECONFIG=/dev/null
    for f in k8s-labels kueue kai volcano network-topology; do
        railgauge export --format $f --fabric gb200-nvl72 --racks 2 -o $f.yaml
        timeout 60 kubectl annotate --local -f $f.yaml seen=yes -o json >$f.json || skip "kubectl does not work here"
    done
    [ "$(jq -s length k8s-labels.json)" -eq 36 ]
    [ "$(jq -sr '[.[].kind] | join(" ")' kueue.json)" = "Topology ResourceFlavor" ]
    [ "$(jq -s '[.[] | select(.spec.tier == 1) | .spec.members | length] | add' volcano.json)" -eq 36 ]
    [ "$(jq -r '.metadata.name' network-topology.json)" = railgauge ]
    # One node as kubectl writes it, and all of them in the list that kubectl get would make.
    jq -s '.[35]' k8s-labels.json >one.json
    kubectl annotate --local -f one.json more=yes -o yaml >one.yaml
    grep -q '^kind: Node' one.yaml
    railgauge discover --labels one.yaml --quiet -o t.json
    [ "$(jq -c '[.claims.rows[] | .[1:4]] | sort' t.json)" = \
        '[["domain","accelerator.topograph.run/domain","domain-01"],["leaf","fabric.topograph.run/tier-0","leaf-00-0..leaf-00-3-4"],["rack","accelerator.topograph.run/sub-domain","rack-01"]]' ]
    jq -s '{apiVersion: "v1", kind: "List", items: .}' k8s-labels.json >list.json
    railgauge discover --labels list.json --gpus-per-host 4 --quiet -o t.json
    [ "$(jq -c .levels.domain t.json)" = '["domain-00","domain-01"]' ]
}
