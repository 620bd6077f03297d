#!/usr/bin/env bats
# report.bats - railgauge report: the page of a campaign, the data in it, and what a browser makes of it.

bats_require_minimum_version 1.5.0

load rejects

top=$BATS_TEST_DIRNAME/../..
text="python3 $top/tests/page_text.py"

# campaign NAME OPTION...
campaign() {
    railgauge run --transport sim --no-plots --no-verdict --sim-seed 5 --seed 5 -o "$@"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    campaign small --fabric hgx-h100 --racks 1 --noise 2% --op "pair_bw,pair_latency,all_reduce" -e 64M --fault slow-nic=17:0.6 --fault corrupt=3
    campaign racks --fabric gb200-nvl72 --racks 8 --noise 3% --fault slow-nic=17:0.6 --fault corrupt=33 --fault slow-host=77:0.8
    campaign blind --fabric gb200-nvl72 --racks 2 --blind --noise 2% --fault dead-host=3
    cat >site.json <<'END'
{"format": "railgauge-limits", "version": 1, "title": "site", "limits": [
 {"check": "wrong-data", "at_most": "0", "source": "contract 4.1"},
 {"check": "part-speed", "at_least": "90 %", "source": "contract 4.2"},
 {"check": "tier-bandwidth", "tier": "shm", "at_least": "8 Gb/s", "source": "contract 4.3"}]}
END
}

setup() { cd "$BATS_FILE_TMPDIR" || return 1; }

# page NAME CODE OPTION...: $NAME.html
page() {
    local name=$1 code=$2
    shift 2
    run -"$code" railgauge report "$@" -o "$name.html"
}

# valid FILE: by the schema
valid() {
    python3 - "$top/src/schema" "$1" <<'END'
import json, sys
import jsonschema
from referencing import Registry, Resource
of = {n: json.load(open(f"{sys.argv[1]}/{n}.schema.json")) for n in ("accept", "history", "report")}
about = Registry().with_resources((f"{n}.schema.json", Resource.from_contents(s)) for n, s in of.items())
jsonschema.Draft202012Validator(of["report"], registry=about).validate(json.load(open(sys.argv[2])))
END
}

@test "what a page says, word for word" {
    page lab 1 "$top/tests/golden/plots/lab" --limits site.json --title "Row 3"
    $text lab.html >lab.txt
    diff "$top/tests/golden/report.txt" lab.txt
}

@test "a page needs nothing else: no reference outside, and its policy knows its own script alone" {
    page racks 1 racks
    page blind 1 blind
    page matrix 1 small/matrix.json --against hgx-h100
    $text racks.html --check
    $text blind.html --check
    $text matrix.html --check
    run ! grep -i 'https\?:' racks.html
}

@test "the terminal says first what accept says; without -o the page is in the campaign" {
    run -1 railgauge accept racks
    first=${lines[0]}
    run -1 railgauge report racks
    [ "${lines[0]}" = "$first" ]
    [[ $output == *"NIC mlx5_1 of r00n04 (GPU 1)"*$'\nracks/report.html' ]]
    [ -s racks/report.html ]
    cp -r racks/matrix.json alone.json
    run -1 railgauge report alone.json -q
    [ -z "$output" ] && [ -s report.html ]
}

@test "the data in a page is what --json prints, by its schema" {
    page racks 1 racks --title "<i>eight</i>"
    $text racks.html --data >held.json
    run -1 railgauge report racks --title "<i>eight</i>" --json
    echo "$output" >printed.json
    # by value: jq 1.7 keeps how a number is written
    run -0 jq -ne --slurpfile a held.json --slurpfile b printed.json '($a[0] | del(.provenance)) == ($b[0] | del(.provenance))'
    [ "$(jq -r .title held.json)" = "<i>eight</i>" ]
    run ! railgauge report racks --json -o x.html
    python3 -c 'import jsonschema, referencing' || skip "no python3 jsonschema with referencing"
    for c in small racks blind small/matrix.json "$top"/tests/golden/plots/{lab,shm,names} "$top/tests/golden/export/campaign"; do
        railgauge report "$c" --json >printed.json || [ $? -le 2 ]
        valid printed.json
    done
}

@test "pairs in the data are those of the points" {
    railgauge report racks --json >data.json || [ $? -eq 1 ]
    python3 - <<'END'
import base64, json, struct
d = json.load(open("data.json"))
p = d["pairs"]
rows = list(struct.iter_unpack("<5H", base64.b64decode(p["rows"])))
assert len(rows) == p["kept"] == p["measured"]
at = d["ends"]["endpoint"]
points = {}
for line in open("racks/points.tsv"):
    w = line.split("\t")
    if len(w) > 20 and w[4] == "pair_bw" and int(w[9]) == d["pair_bytes"]:
        points.setdefault((int(w[6]), int(w[7])), []).append(w)
assert {(at[r[0]], at[r[1]]) for r in rows} == set(points)
wrong = {k for k, v in points.items() if any(w[23] == "wrong" for w in v)}
assert {(at[r[0]], at[r[1]]) for r in rows if r[2] & 0x7fff == 0x7fff} == wrong and p["wrong"] == len(wrong)
slow = [r for r in rows if r[2] & 0x7fff < 0x7ffe and (r[2] & 0x7fff) * p["unit"] < d["slow_below"]]
assert abs(len(slow) - p["slow"]) <= 1, (len(slow), p["slow"])
nic = [r for r in rows if at[r[0]] == 17 and d["ends"]["rack"][r[1]] != d["ends"]["rack"][r[0]] and r[2] & 0x7fff < 0x7ffe]
assert nic and all(0.4 < (r[2] & 0x7fff) * p["unit"] < 0.68 for r in nic)
assert all(r[3] & 0x7fff <= (r[2] & 0x7fff) <= r[4] for r in rows if r[2] & 0x7fff < 0x7ffe)
END
}

@test "checksums are those of sha256sum" {
    page small 1 small
    for f in small/*.json small/*.tsv; do
        grep -q ">${f#small/}</th>.*$(sha256sum <"$f" | cut -d' ' -f1)" small.html || [[ $f == *diagnosis* ]]
    done
}

@test "names from other machines stay text" {
    mkdir -p hostile "<b>dir"
    evil='<script>alert(1)<\/script><img src=x onerror=alert(2)>"\&'"'"
    for f in matrix topology; do
        sed "s/r00n/${evil//\"/\\\\\"}/g; s/mlx5_/<u>/g" small/$f.json >hostile/$f.json || return 1
    done
    railgauge seal hostile/matrix.json hostile/topology.json
    page hostile 1 hostile --title "</title><script>alert(3)</script>"
    grep -q '&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;&quot;&amp;&#39;' hostile.html
    $text hostile.html --check
    run -1 railgauge report small -o "<b>dir/page.html"
    mv small "<i>small"
    page path 1 "<i>small"
    mv "<i>small" small
    $text path.html --check
    rejects report 64 "--title is not UTF-8" small --title $'\xff'
}

@test "a page of 576 GPUs has less than 500 KB, one of 10,008 less than 3 MB" {
    page racks 1 racks
    [ "$(stat -c %s racks.html)" -le 500000 ]
    [ -z "$RG_SAN" ] || skip "10,008 GPUs take minutes under a sanitizer"
    campaign large --fabric gb200-nvl72 --racks 139 --noise 3% --fault slow-nic=17:0.6 --fault corrupt=330 --fault slow-host=770:0.8
    page large 1 large
    [ "$(stat -c %s large.html)" -le 3000000 ]
    $text large.html --data >large.json
    [ "$(jq '.pairs | .kept < .measured and .kept == 80000' large.json)" = true ]
    grep -q 'and a sample of the others' large.html
    rm -r large
}

@test "where GPUs tell their slots, rows of a rack are in that order; their counters are told" {
    cp -r small slots
    python3 - "$top/tests/golden/topology-gb300.json" <<'END'
import json, sys
like = json.load(open(sys.argv[1]))["gpus"]
t = json.load(open("slots/topology.json"))
rows = []
for e in t["endpoints"]["rows"]:
    e = dict(zip(t["endpoints"]["columns"], e))
    gpu = dict(zip(like["columns"], like["rows"][0]), host=e["host"], index=e["local"], busid=e["busid"], uuid=f"GPU-{len(rows)}", remote=[], path=[])
    gpu.update(slot=[12, 3, 17, 5][e["host"]], ecc_uncorrected=7 if (e["host"], e["local"]) == (2, 1) else 0)
    rows.append([gpu[c] for c in like["columns"]])
t["gpus"] = {"columns": like["columns"], "rows": rows}
del t["checksum"]
json.dump(t, open("slots/topology.json", "w"))
END
    railgauge seal slots/topology.json
    page slots 1 slots
    $text slots.html --check
    [ "$($text slots.html --data | jq -c '.blocks[0].rows')" = "[1,3,0,2]" ]
    grep -q 'in the order of slots' slots.html
    grep -q '7 uncorrected' slots.html
}

# week K OPTION...: the campaign of a week.
week() {
    campaign "w$1" --fabric hgx-h100 --racks 2 --noise 3% --op "pair_bw,pair_latency" -b 64M -e 64M --epochs 2 "${@:2}"
    sed -i "2s/\"time_utc\":\"[^\"]*/\"time_utc\":\"2026-01-0$1T00:00:00Z/" "w$1/points.tsv"
}

@test "a history: the page is of the last campaign, the others are before it" {
    for k in 1 2 3; do week $k --sim-seed $k; done
    week 4 --sim-seed 4 --fault slow-nic=9:0.6
    page aged 1 w4 --history w[1-4]
    $text aged.html --check
    $text aged.html | grep -qF "## 4 campaigns: "
    grep -q '<th scope="row">tier rail, pair_bw' aged.html
    $text aged.html --data >aged.json
    [ "$(jq '.history | (.campaigns | length), (.parts | length)' aged.json | xargs)" = "4 1" ]
    python3 -c 'import jsonschema, referencing' 2>/dev/null && valid aged.json
    rejects report 65 "w4 is later than w2, whose page this is" w2 --history w1 w3 w4
    rejects report 64 "--history needs 3 campaigns" w4 --history w4 w3
    rejects report 64 "others are for --history" w4 w3
    run ! grep -q 'href="#history"' racks.html
}

@test "recordings and machines of all kinds: a page each" {
    for c in "$top"/tests/golden/plots/{lab,shm,names} "$top/tests/golden/export/campaign" "$top/tests/golden/matrix.json"; do
        railgauge report "$c" -o any.html -q || [ $? -le 2 ]
        $text any.html --check
    done
    for fabric in gb300-nvl72-spectrumx rtxpro6000-100gbe; do
        campaign any --fabric $fabric --racks 2 --noise 5% --op "pair_bw,pair_latency" --fault dead-host=1
        railgauge report any -q || [ $? -le 2 ]
        $text any/report.html --check
        rm -r any
    done
}

@test "in a browser: nothing in the console, the map and tables work, it fits 320 px and prints" {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || skip "no chromium: apt-get install chromium"
    page racks 1 racks
    page blind 1 blind
    for p in racks blind; do
        run -0 python3 "$top/tests/browser.py" $p.html
        echo "$output"
        [ "$(grep -c '^ok' <<<"$output")" -ge 20 ]
    done
    if [ -s hostile.html ]; then
        run -0 python3 "$top/tests/browser.py" hostile.html
    fi
}
