#!/usr/bin/env bats
# export_consumers.bats - what is exported is loaded by the programs that it is for: Scotch, hwloc, NumPy's
# format by its own rules (and NumPy), Matrix Market by a reader written here, YAML and JSON by the rules of
# the parsers that ASTRA-sim, Calculon and aiconfigurator have.

bats_require_minimum_version 1.5.0

setup() {
    matrix=$(cd "$BATS_TEST_DIRNAME/../golden/export" && pwd)/campaign/matrix.json
    cd "$BATS_TEST_TMPDIR" || return 1
}

need() { command -v "$1" >/dev/null || skip "no $1 here (package $2)"; }

# A graph of communication in Scotch's format: $1 vertices, vertex i talks much to its partner ($2 apart)
# and little to its neighbour.
graph() {
    awk -v n="$1" -v far="$2" 'BEGIN {
        printf "0\n%d\t%d\n0\t010\n", n, 3 * n
        for (i = 0; i < n; i++) {
            p = i % (2 * far) < far ? i + far : i - far
            printf "3\t100 %d\t1 %d\t1 %d\n", p, (i + 1) % n, (i + n - 1) % n
        }
    }'
}

# together GROUP MAP - every heavy pair (vertices i and i + far) of graph N FAR is in one group of GROUP terminals.
together() {
    awk -v group="$1" -v far="$2" 'NR > 1 { at[$1] = int($2 / group); n++ }
        END { for (i = 0; i < n; i++) if (i % (2 * far) < far && at[i] != at[i + far]) { print i, at[i], at[i + far]; bad = 1 }
              exit bad || n == 0 }' "$3"
}

@test "Scotch loads a tree of two racks and maps partners into one rack" {
    need scotch_gmap scotch
    railgauge export --format scotch-tleaf --fabric gb200-nvl72 --racks 2 --hosts-per-rack 8 -o t.tgt --second names
    [ "$(wc -l <names)" -eq 16 ]
    atst t.tgt | grep -q 'Terminals.nbr=16$'
    # Distances add up on the way: the farthest are as far as the ratio of the times says, in tenths.
    want=$(awk -v a="$(railgauge cost --fabric gb200-nvl72 --racks 2 r00n00:0 r00n01:0 64M --json | jq .seconds)" \
        -v b="$(railgauge cost --fabric gb200-nvl72 --racks 2 r00n00:0 r01n00:0 64M --json | jq .seconds)" 'BEGIN { printf "%.0f", 10 * b / a }')
    atst t.tgt | grep -q "max=$want.avg"
    graph 16 8 >g.grf
    gtst g.grf >/dev/null
    scotch_gmap g.grf t.tgt map
    together 8 8 map
}

@test "Scotch loads any machine: a slow sender is far from everybody" {
    need scotch_gmap scotch
    railgauge export --format scotch-deco --per endpoint "$matrix" -o d.tgt
    atst d.tgt | grep -q 'Terminals.nbr=8$'
    slow=$(railgauge cost "$matrix" n01:0 n02:0 64M --json | jq .seconds)
    fast=$(railgauge cost "$matrix" n00:0 n00:1 64M --json | jq .seconds)
    atst d.tgt | grep -q "max=$(awk -v a="$fast" -v b="$slow" 'BEGIN { printf "%.0f", 10 * b / a }').avg"
    graph 8 4 >g.grf
    scotch_gmap g.grf d.tgt map
    together 2 4 map
}

@test "Scotch loads machines whose racks are uneven or odd in number" {
    need atst scotch
    for n in 3 5 7; do
        railgauge export --format scotch-deco --fabric gb200-nvl72 --racks $n --hosts-per-rack 3 -o d.tgt
        atst d.tgt | grep -q "Terminals.nbr=$((3 * n))\$"
    done
}

@test "lstopo reads the topology and its distances are the matrix's" {
    need lstopo-no-graphics hwloc-nox
    railgauge export --format hwloc --per endpoint "$matrix" -o m.xml
    lstopo-no-graphics -i m.xml --distances >out
    grep -q 'bandwidth matrix (name RailgaugeBandwidth kind 10) between 8 PUs' out
    grep -q 'latency matrix (name RailgaugeLatency kind 6) between 8 PUs' out
    [ "$(hwloc-calc -i m.xml --number-of package machine:0)" -eq 4 ]
    [ "$(hwloc-calc -i m.xml --number-of pu group:1)" -eq 4 ]
    lstopo-no-graphics -i m.xml --of xml again.xml
    # Row of n01:0 (PU 2), column of n02:1 (PU 5): MB/s and ns of railgauge cost.
    for cell in 'Bandwidth 2 5' 'Bandwidth 5 2' 'Bandwidth 0 1' 'Latency 2 5' 'Latency 0 7'; do
        read -r name row column <<<"$cell"
        got=$(awk -v name="$name" -v row="$row" -v col="$column" '$0 ~ name { on = 1; next } / matrix / { on = 0 }
            on && $1 == row { print $(col + 2) }' out)
        host() { echo "n0$(($1 / 2)):$(($1 % 2))"; }
        bytes=$([ "$name" = Latency ] && echo 1 || echo 64M)
        want=$(railgauge cost "$matrix" "$(host "$row")" "$(host "$column")" "$bytes" --json |
            jq "if \"$name\" == \"Latency\" then .seconds * 1e9 else .algbw_Bps / 1e6 end | round")
        [ "$got" = "$want" ]
    done
}

@test "hwloc-annotate adds the second file to a machine" {
    need hwloc-annotate hwloc-nox
    lstopo-no-graphics -i "pack:4 core:2 pu:1" --of xml plain.xml
    for quantity in bandwidth latency; do
        railgauge export --format hwloc --per endpoint --quantity $quantity "$matrix" -o m.xml --second d.txt
        hwloc-annotate plain.xml annotated.xml root distances d.txt
        lstopo-no-graphics -i annotated.xml --distances | sed -n "/${quantity^}/,\$p" | sed 1d >got
        lstopo-no-graphics -i m.xml --distances | awk -v q="${quantity^}" '/ matrix / { on = $0 ~ q; next } on' >want
        diff got want
        [ "$(wc -l <got)" -eq 9 ]
    done
}

@test "NumPy's format: header, shape and every number; NumPy reads the same" {
    railgauge export --format tsv --per endpoint --bytes 1M "$matrix" -o m.tsv
    for quantity in bandwidth time latency; do
        railgauge export --format npy --per endpoint --quantity $quantity --bytes 1M "$matrix" -o m.npy --second names
        python3 - $quantity <<'PY'
import ast, csv, math, struct, sys
quantity = sys.argv[1]
data = open("m.npy", "rb").read()
assert data[:8] == b"\x93NUMPY\x01\x00"
length, = struct.unpack("<H", data[8:10])
assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n"
head = ast.literal_eval(data[10:10 + length].decode("latin1"))
assert head == {"descr": "<f8", "fortran_order": False, "shape": (8, 8)}
v = struct.unpack("<64d", data[10 + length:])
names = open("names").read().split()
for row in csv.DictReader(open("m.tsv"), delimiter="\t"):
    got = v[8 * names.index(row["src"]) + names.index(row["dst"])]
    want = {"bandwidth": float(row["GB/s"]) * 1e9, "time": float(row["us"]) / 1e6}.get(quantity)
    assert want is None and 0 < got < 1e-4 or abs(got / want - 1) < 1e-8, (row, got)
for i in range(8):
    assert math.isnan(v[9 * i]) if quantity == "bandwidth" else v[9 * i] == 0
try:
    import numpy
except ImportError:
    sys.exit(0)
a = numpy.load("m.npy")
assert a.shape == (8, 8) and a.dtype == numpy.float64
assert all(x == y or math.isnan(x) and math.isnan(y) for x, y in zip(a.flatten(), v))
PY
    done
}

@test "Matrix Market: entries, symmetry where there is some, names" {
    railgauge export --format matrix-market --per endpoint --bytes 1M "$matrix" -o m.mtx
    railgauge export --format tsv --per endpoint --bytes 1M "$matrix" -o m.tsv
    python3 - <<'PY'
import csv
lines = open("m.mtx").read().splitlines()
assert lines[0] == "%%MatrixMarket matrix coordinate real general"
names = [l.split(None, 2)[2] for l in lines[2:10]]
assert [int(l.split()[1]) for l in lines[2:10]] == list(range(1, 9))
body = [l.split() for l in lines if not l.startswith("%")]
rows, columns, count = map(int, body[0])
assert (rows, columns, count) == (8, 8, 56) and len(body) == 57
entry = {(int(i), int(j)): float(v) for i, j, v in body[1:]}
assert len(entry) == 56 and all(i != j and 1 <= i <= 8 and 1 <= j <= 8 for i, j in entry)
one_way = {(i, j) for i, j in entry if entry[i, j] != entry[j, i]}
slow = names.index("n01:0") + 1          # sends at half speed over its NIC: to 6 of 7
assert len(one_way) == 12 and all(slow in p for p in one_way)
for row in csv.DictReader(open("m.tsv"), delimiter="\t"):
    got = entry[names.index(row["src"]) + 1, names.index(row["dst"]) + 1]
    assert abs(got / (float(row["GB/s"]) * 1e9) - 1) < 1e-8
PY
}

@test "ASTRA-sim: the lists and limits of its analytical network parser" {
    python3 -c 'import yaml' 2>/dev/null || skip "no YAML for Python here (package python3-yaml)"
    railgauge export --format astra-sim --fabric gb300-nvl72 --racks 8 -o n.yml
    python3 - <<'PY'
import yaml
n = yaml.safe_load(open("n.yml"))
dims = len(n["topology"])
assert set(n) == {"topology", "npus_count", "bandwidth", "latency"}
assert all(t in ("Ring", "FullyConnected", "Switch") for t in n["topology"])
assert all(len(n[k]) == dims for k in n)
assert all(isinstance(c, int) and c > 1 for c in n["npus_count"])
assert all(b > 0 for b in n["bandwidth"]) and all(l >= 0 for l in n["latency"])
assert n["npus_count"] == [72, 4, 2]          # four racks hang on one set of leaves
PY
}

@test "Calculon: keys and limits of its network class" {
    railgauge export --format calculon --fabric gb300-nvl72 --racks 8 -o n.json
    python3 - <<'PY'
import json
keys = {"bandwidth", "efficiency", "size", "latency", "ops", "must_be_filled", "processor_usage"}
nets = json.load(open("n.json"))["networks"]
assert [n["size"] for n in nets] == [72, 288, 576]
for n in nets:
    assert set(n) == keys and n["bandwidth"] > 0 and 0 < n["efficiency"] <= 1
    assert 0 <= n["processor_usage"] < 1 and isinstance(n["must_be_filled"], bool) and n["latency"] >= 0
    assert set(n["ops"]) == {"p2p", "reduce_scatter", "all_gather", "all_reduce"}
    for op, (scalar, offset) in n["ops"].items():
        assert scalar > 0 and (offset is None) == (op == "p2p")
PY
    # Its formula gives back the time of the collective: latency + S * scalar * (1 + offset / n) / rate.
    want=$(railgauge cost --fabric gb300-nvl72 --racks 8 all_reduce 0-71 64M --json | jq .seconds)
    jq -e --argjson want "$want" '.networks[0] | (67108864 * .ops.all_reduce[0] * (1 - 1 / 72) / (.bandwidth * 1e9 * .efficiency)
        + .latency) / $want - 1 | fabs < 1e-6' n.json
}

@test "aiconfigurator: a system's node section, and nccl_perf in elements and ms" {
    python3 -c 'import yaml' 2>/dev/null || skip "no YAML for Python here (package python3-yaml)"
    railgauge export --format aiconfigurator "$matrix" -o s.yaml --second perf.txt
    S=$(railgauge cost "$matrix" all_reduce 0-7 64M --json | jq .seconds) python3 - <<'PY'
import csv, os, yaml
node = yaml.safe_load(open("s.yaml"))["node"]
assert node["num_gpus_per_node"] == 2 and node["num_gpus_per_rack"] == 4
assert abs(node["intra_node_bw"] / 360e9 - 1) < 1e-6    # bytes/s
assert abs(node["inter_node_bw"] / 48e9 - 1) < 1e-6 and abs(node["inter_rack_bw"] / 24e9 - 1) < 1e-6
assert abs(node["p2p_latency"] - 5e-6) < 1e-9 and abs(node["inter_rack_latency"] - 8e-6) < 1e-9
rows = list(csv.DictReader(open("perf.txt")))
assert list(rows[0]) == "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency".split(",")
assert {r["device"] for r in rows} == {"NVIDIA H100, made up"} and {r["nccl_dtype"] for r in rows} == {"half"}
big, = [r for r in rows if r["op_name"] == "all_reduce" and int(r["message_size"]) == 32 << 20]  # 64 MiB of half
assert int(big["num_gpus"]) == 8 and abs(float(big["latency"]) / 1e3 - 40e-6 * 2 - 1.75 * (64 << 20) / 22e9) < 1e-9
assert float(os.environ["S"]) >= float(big["latency"]) / 1e3 - 1e-9   # cost counts the slow sender too
PY
    railgauge export --format aiconfigurator --fabric gb200-nvl72 --racks 2 | python3 -c '
import sys, yaml
s = yaml.safe_load(sys.stdin)
assert s["gpu"]["mem_bw"] == 8000000000000 and s["node"]["num_gpus_per_rack"] == 72'
}

@test "NCCL's example tuner: field rules of its parser, and one line a size" {
    dir=$(dirname "$matrix")
    railgauge export --format nccl-tuner "$dir" -o tuner.conf --second records.csv
    python3 - <<'PY'
import csv
ops = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}
algos = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
protos = {"ll", "ll128", "simple"}
config = []
for line in open("tuner.conf"):
    assert len(line) < 256                  # MAX_LINE_LENGTH
    if line[0] in "#\n":
        continue
    f = line.rstrip("\n").split(",")
    assert len(f) == 10 and f[0] in ops and f[3] in algos and f[4] in protos
    config.append((f[0], *map(int, f[1:3]), f[3], f[4], *map(int, f[5:])))
def lookup(op, size, nodes, ranks):          # the first match counts
    return next((c[3:5] for c in config if c[0] == op and c[1] <= size <= c[2] and c[6] in (-1, nodes) and c[7] in (-1, ranks)), None)
rows = list(csv.DictReader(open("records.csv")))
assert ",".join(rows[0]) == "collective,size_bytes,algorithm,protocol,channels,nodes,ranks,pipeOps,regBuff,cost_metric,bandwidth_gbps,latency_us"
assert len(rows) == 15
best = {}
for r in rows:
    key, us = (r["collective"], int(r["size_bytes"])), float(r["latency_us"])
    steps = {"allgather": 0.75, "allreduce": 1.5}[r["collective"]]      # busbw of 4 ranks
    assert abs(float(r["bandwidth_gbps"]) * us * 1e3 / (key[1] * steps) - 1) < 1e-6
    if key not in best or us < best[key][0]:
        best[key] = us, (r["algorithm"], r["protocol"])
for (op, size), (_, combination) in best.items():
    assert lookup(op, size, 1, 4) == combination and lookup(op, size, 1, 8) is None
assert lookup("allreduce", 1 << 31, 1, 4) == best["allreduce", 65536][1]
PY
}

@test "what is dead or not known is told apart in numeric formats" {
    "$BATS_TEST_DIRNAME/../bad/expand.sh" "$BATS_TEST_TMPDIR/expanded"
    bad=$BATS_TEST_TMPDIR/expanded/bad/export
    railgauge export --format tsv "$bad/pair-dead.json" -o dead.tsv
    [ "$(awk -F'\t' '$1 == "n00" && $2 == "n02" { print $5, $6 }' dead.tsv)" = "inf 0" ]
    [ "$(awk -F'\t' '$1 == "n02" && $2 == "n00" { print ($5 > 0 && $6 > 0) }' dead.tsv)" = 1 ]
    railgauge export --format matrix-market "$bad/pair-dead.json" -o dead.mtx
    grep -q '^4 4 11$' dead.mtx
    run grep -c '^1 3 ' dead.mtx
    [ "$output" = 0 ]
    railgauge export --format tsv "$bad/tier-unmeasured.json" -o unknown.tsv
    [ "$(awk -F'\t' '$1 == "n00" && $2 == "n02" { print $5, $6 }' unknown.tsv | tr -d -)" = "nan nan" ]
    for file in pair-dead tier-unmeasured; do
        railgauge export --format npy --quantity time "$bad/$file.json" -o $file.npy
    done
    python3 - <<'PY'
import math, struct
dead, unknown = (struct.unpack("<16d", open(f, "rb").read()[128:]) for f in ("pair-dead.npy", "tier-unmeasured.npy"))
assert [i for i, v in enumerate(dead) if math.isinf(v)] == [2]
assert [i for i, v in enumerate(unknown) if math.isnan(v)] == [2, 3, 6, 7, 8, 9, 12, 13]
PY
}

@test "names full of marks come back from XML as they were" {
    jq '.places.levels.host.names = ["a<b&c", "it'\''s \"x\"", "ü]]>", "&lt;"] | .places.levels.rack.names = ["</object>", "<!--"]' "$matrix" >wild.json
    railgauge seal wild.json
    railgauge export --format simgrid wild.json -o p.xml
    railgauge export --format hwloc wild.json -o h.xml
    python3 - <<'PY'
import xml.etree.ElementTree as tree
names = ["a<b&c", "it's \"x\"", "ü]]>", "&lt;"]
assert [h.get("id") for h in tree.parse("p.xml").iter("host")] == names
info = [i.get("value") for i in tree.parse("h.xml").iter("info") if i.get("name") == "HostName"]
assert info == names
racks = [o.find("info").get("value") for o in tree.parse("h.xml").iter("object") if o.get("subtype") == "Rack"]
assert racks == ["</object>", "<!--"]
PY
    if command -v lstopo-no-graphics >/dev/null; then
        lstopo-no-graphics -i h.xml --of xml again.xml
        python3 -c 'import sys, xml.etree.ElementTree as t; sys.exit("a<b&c" not in [i.get("value") for i in t.parse("again.xml").iter("info")])'
    fi
    # A comment of Matrix Market and a name list take them as they are, one a line.
    railgauge export --format matrix-market wild.json --second names -o m.mtx
    [ "$(sed -n 1p names)" = "a<b&c" ]
    grep -qxF "% 2 it's \"x\"" m.mtx
}

@test "promtool reads the metrics without a remark; each series is there once and says what show says" {
    promtool=$(command -v promtool) || skip "no promtool here (package prometheus)"
    railgauge run --fabric gb200-nvl72 --racks 2 --noise 3% --sim-seed 7 --fault slow-nic=17:0.6 --fault dead-host=r01n03 -b 1M -e 16M -f 16 \
        --no-plots -o 'c"1' >/dev/null || [ $? -le 2 ]
    for c in "$matrix" 'c"1'; do
        for name in "" '--name=a "b" \ c'; do
            railgauge export -f openmetrics ${name:+"$name"} "$c" -o m.prom
            remark=$("$promtool" check metrics <m.prom 2>&1) || { echo "$remark"; false; }
            [ -z "$remark" ] || { echo "$remark"; false; }
            [ "$(tail -1 m.prom)" = "# EOF" ]
            [ -z "$(grep -v '^#' m.prom | sed 's/ [^ ]*$//' | sort | uniq -d)" ]
        done
    done
    grep -q '^railgauge_verdict{campaign="a \\"b\\" \\\\ c",verdict="FAIL"} 1$' m.prom
    railgauge export -f openmetrics 'c"1' -o m.prom
    railgauge show 'c"1' --json >show.json
    for tier in mnnvl rail fabric; do
        got=$(awk -v t="$tier" '$1 == "railgauge_tier_bandwidth_bytes_per_second{tier=\"" t "\"}" { print $2 }' m.prom)
        want=$(jq --arg t $tier '.tiers[] | select(.name == $t) | .Bps' show.json)
        awk -v a="$got" -v b="$want" 'BEGIN { exit !(a > 0 && b > 0 && a / b > 0.999 && a / b < 1.001) }' || { echo "$tier: $got, not $want"; false; }
    done
    grep -q '^railgauge_part_speed_ratio{kind="nic",.*host="r00n04".* 0\.[56][0-9]*$' m.prom
    grep -q '^railgauge_part_speed_ratio{kind="host",.*state="dead",host="r01n03".* 0$' m.prom
    grep -qx 'railgauge_parts{kind="host"} 1' m.prom
    made=$(awk '/^railgauge_campaign_timestamp_seconds/ { print $2 }' m.prom)
    [ "$(date -u -d "@$made" +%FT%TZ)" = "$(jq -r .provenance.time_utc 'c"1/matrix.json')" ]
}

@test "JUnit's XML is well formed, its counts are those of its cases, and a fault is its host's failure" {
    need xmllint libxml2-utils
    railgauge run --fabric gb200-nvl72 --racks 2 --noise 3% --sim-seed 7 --fault slow-nic=17:0.6 --fault dead-host=r01n03 -b 1M -e 16M -f 16 \
        --no-plots -o c >/dev/null || [ $? -le 2 ]
    railgauge export -f junit c -o j.xml
    xmllint --noout j.xml
    railgauge accept c --json >accept.json || [ $? -eq 1 ]
    python3 - <<'PY'
import json, xml.etree.ElementTree as tree
root = tree.parse("j.xml").getroot()
accept = json.load(open("accept.json"))
assert root.tag == "testsuites"
for suite in [root] + list(root):
    cases = list(suite.iter("testcase"))
    assert int(suite.get("tests")) == len(cases) > 0
    for kind in ("failure", "error"):
        assert int(suite.get(kind + "s")) == sum(c.find(kind) is not None for c in cases), (suite.get("name"), kind)
    assert int(suite.get("skipped")) == sum(c.find("skipped") is not None for c in cases)
checks, hosts, racks = root
names = [(c.get("classname"), c.get("name")) for c in root.iter("testcase")]
assert len(checks) == len(accept["checks"])
assert {c.get("name") for c in checks if c.find("failure") is not None} == {c["what"] for c in accept["checks"] if c["verdict"] == "FAIL"}
bad = {c.get("name"): c.find("failure").get("message") for c in hosts if c.find("failure") is not None}
assert set(bad) == {"r00n04", "r01n03"}, bad
assert [c.find("failure") is not None for c in racks] == [r["verdict"] == "FAIL" for r in accept["racks"]] == [True, True]
assert "NIC" in bad["r00n04"] and "no answer" in bad["r01n03"]
PY
    # UNKNOWN is an error, or skipped where the limits do not ask for it.
    railgauge export -f junit "$matrix" -o j.xml
    [ "$(xmllint --xpath 'string(/testsuites/@errors)' j.xml)" -gt 0 ]
    [ "$(xmllint --xpath 'count(//testcase/error[@type="UNKNOWN"])' j.xml)" = "$(xmllint --xpath 'string(/testsuites/@errors)' j.xml)" ]
    # What accept is told, export is told.
    cat >site.json <<EOF
{"format": "railgauge-limits", "version": 1, "title": "loose", "limits": [{"check": "part-speed", "at_least": "10 %", "source": "a test"}]}
EOF
    railgauge export -f junit "$matrix" --limits site.json -o j.xml
    [ "$(xmllint --xpath 'string(/testsuites/@failures)' j.xml)" = 0 ]
}

@test "CSV by the rules of RFC 4180: a row for each measured pair, with the figures of show pairs" {
    measured=${matrix%/campaign/matrix.json}/measured
    railgauge export -f csv "$measured" -o p.csv
    railgauge show "$measured" pairs --json >pairs.json
    python3 - "$measured" <<'PY'
import csv, json, sys
raw = open("p.csv", "rb").read()
assert raw.count(b"\r\n") == raw.count(b"\n") and raw.endswith(b"\r\n")
rows = list(csv.DictReader(open("p.csv", newline=""), strict=True))
pairs = {(p["src"], p["dst"]): p for p in json.load(open("pairs.json"))["pairs"] if p["measured"]}
assert len(rows) == len(pairs) == 15
for r in rows:
    src, dst = (8 * int(r[e + "_host"][-1]) + int(r[e + "_gpu"]) for e in ("src", "dst"))
    p = pairs[src, dst]
    assert abs(float(r["bandwidth_GB_per_s"]) * 1e9 / p["Bps"] - 1) < 1e-8
    assert abs(float(r["share_of_tier"]) / p["of_expected"] - 1) < 1e-8
    assert r["tier"] == p["tier"] and r["src_nic"] == "eth0" and int(r["message_bytes"]) == p["bytes"] == 4194304
    assert (src, dst) not in ((3, 9), (0, 8)) or r["measured"] == ("alone" if src else "loaded")
    assert bool(r["latency_us"]) == (abs(src - dst) == 8)
PY
    run railgauge export -f csv "$matrix"
    [ "$status" -eq 64 ]
    [[ $output == "railgauge export: csv is made from what was measured: give a campaign's directory, not "* ]]
    run railgauge export -f csv --fabric hgx-h100
    [[ $output == *"not a preset" ]]
}

@test "nccl-tests' JSON comes back through import with the same figures" {
    measured=${matrix%/campaign/matrix.json}/measured
    railgauge export -f nccl-tests "$measured" -o r.json
    jq -e '.version == 2 and (.config.devices | length) == 16 and .config.devices[9].hostname == "r00n01" and .results[0].root == "    -1"
        and (.results | map(.size)) == [1048576, 4194304] and ([.results[] | .out_of_place | .bus_bw / .alg_bw - 1.875 | fabs < 1e-8] | all)
        and .out_of_bounds == {count: 0, okay: "true"} and .env == []' r.json
    mkdir back
    railgauge import r.json -o back/points.tsv >/dev/null 2>&1
    want=$(awk -F'\t' '$5 == "all_reduce" { print $10, $12 }' "$measured/points.tsv")
    got=$(awk -F'\t' '$5 == "all_reduce" { print $10, $12 }' back/points.tsv)
    [ -n "$want" ]
    paste -d' ' <(echo "$want") <(echo "$got") | awk '$1 != $3 || $2 / $4 > 1.0001 || $2 / $4 < 0.9999 { bad = 1 } END { exit bad || NR != 2 }'
    [ "$(railgauge export -f nccl-tests "$measured" --name all_gather | jq '.config.devices | length')" = 8 ]
    run railgauge export -f nccl-tests "$measured" --name all_to_all
    [ "$status" -eq 65 ]
    [[ $output == *"all_to_all was not measured"* ]]
    run railgauge export -f nccl-tests "$measured" --name allgather
    [ "$status" -eq 0 ]
    run railgauge export -f nccl-tests "$measured" --name al_gather
    [ "$status" -eq 64 ]
    [[ $output == *'no collective "al_gather" (did you mean "all_gather"?)' ]]
}
