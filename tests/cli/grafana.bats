#!/usr/bin/env bats
# grafana.bats - what jobs/grafana asks Prometheus for is what railgauge export -f openmetrics says, in good PromQL.

bats_require_minimum_version 1.5.0

setup() {
    top=$PWD
    cd "$BATS_TEST_TMPDIR" || return 1
}

need() { command -v "$1" >/dev/null || skip "no $1 here (package $2)"; }

@test "every metric and label of the dashboard and the alerts is in the export; every panel has what it needs" {
    railgauge run --fabric gb200-nvl72 --racks 1 --noise 1% --fault slow-nic=17:0.6 --no-plots -b 1M -e 1M -o c >/dev/null || [ $? -eq 1 ]
    railgauge export -f openmetrics --name ours c -o m.prom
    python3 - "$top/jobs/grafana/railgauge.json" "$top/jobs/grafana/alerts.yml" m.prom <<'PY'
import json, re, sys
dashboard, alerts, prom = sys.argv[1:4]
labels = {}
for line in open(prom):
    if not line.startswith("#"):
        name, rest = re.match(r"(\w+)(.*)", line).groups()
        labels.setdefault(name, set()).update(re.findall(r'[{,](\w+)="', rest))
scraped = {"instance", "job"}  # what Prometheus adds
board = json.load(open(dashboard))
wanted = [t["expr"] for p in board["panels"] for t in p["targets"]] + re.findall(r"expr: (.*)", open(alerts).read())
wanted += [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
seen = set()
for expr in wanted:
    for name, matchers in re.findall(r"(railgauge_\w+)(\{[^}]*\})?", expr):
        assert name in labels, name + " is not exported"
        unknown = set(re.findall(r"[{,](\w+)[=!]", matchers)) - labels[name] - scraped
        assert not unknown, (expr, unknown)
        seen.add(name)
for t in (t for p in board["panels"] for t in p["targets"]):
    name = re.search(r"railgauge_\w+", t["expr"]).group()
    assert set(re.findall(r"{{(\w+)}}", t["legendFormat"])) <= labels[name], t
for name, label in re.findall(r"label_values\((\w+), (\w+)\)", " ".join(wanted)):
    assert label in labels[name] | scraped, (name, label)
known = {v["name"] for v in board["templating"]["list"]}
assert set(re.findall(r"\$(\w+)", " ".join(wanted).replace("$__all", ""))) <= known
assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
places = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"], p["gridPos"]["h"]) for p in board["panels"]]
for i, a in enumerate(places):
    assert a[0] + a[2] <= 24
    for b in places[:i]:
        assert a[0] >= b[0] + b[2] or b[0] >= a[0] + a[2] or a[1] >= b[1] + b[3] or b[1] >= a[1] + a[3], (a, b)
left = set(labels) - seen - {"railgauge_checks", "railgauge_collective_seconds", "railgauge_part_latency_seconds"}
assert not left, left  # what is exported is shown
PY
}

@test "the expressions are PromQL, and the alerts rise when they should" {
    need promtool prometheus
    promtool check rules "$top/jobs/grafana/alerts.yml"
    { printf 'groups:\n  - name: panels\n    rules:\n'
      jq -r '.panels[].targets[].expr' "$top/jobs/grafana/railgauge.json" | awk '{ printf "      - {record: panel_%d, expr: %s}\n", NR, "\047" $0 "\047" }'; } >panels.yml
    promtool check rules panels.yml
    railgauge export -f openmetrics "$top/tests/golden/export/campaign/matrix.json" | grep -v '^#' >now.prom
    part=$(awk '/^railgauge_part_speed_ratio/ { sub(/ [^ ]*$/, ""); print }' now.prom)
    cat >test.yml <<EOF
rule_files: [$top/jobs/grafana/alerts.yml]
tests:
  - interval: 1m
    input_series:
$(awk '{ value = $NF; sub(/ [^ ]*$/, ""); gsub(/\047/, "\047\047"); printf "      - {series: \047%s\047, values: \047%s\047}\n", $0, value }' now.prom)
    alert_rule_test:
      - {eval_time: 0s, alertname: RailgaugeFail, exp_alerts: [{exp_labels: {severity: critical, verdict: FAIL},
          exp_annotations: {summary: 'The GPU fabric fails acceptance ( )'}}]}
      - {eval_time: 0s, alertname: RailgaugeOld, exp_alerts: []}
    promql_expr_test:
      - {expr: 'count(railgauge_part_speed_ratio < 0.9)', eval_time: 0s, exp_samples: [{value: 1}]}
EOF
    [ -n "$part" ]
    promtool test rules test.yml
}
