#!/bin/bash
# curves.sh - how well curves are interpolated and how fast they and the collectives built on them answer.
#
#   RG_BUILD=build tests/bench/curves.sh [CURVES.tsv] [OUT.tsv]
#
# CURVES.tsv (default $RAILGAUGE_CURVES, else ../shared/datasets/nccl_curves.tsv) holds measured curves; without
# it only speed is printed.  Values also go to OUT.tsv (default RG_BUILD/curves.tsv).  A missed target is no failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/bench/table.bash

build=${RG_BUILD:-build}
curves=${1:-${RAILGAUGE_CURVES:-../shared/datasets/nccl_curves.tsv}}
out=${2:-$build/curves.tsv}
[ -x "$build/tests/bench/collective" ] || {
    echo "curves.sh: $build/tests/bench/collective is not built: make bench builds and runs it" >&2
    exit 1
}

# score NAME MEDIAN P90 [OPTION...]: the two limits may be empty.
score() {
    local total
    total=$("$build/railgauge-calibrate" curves "$curves" --json "${@:4}" | awk '/"total"/ {t = 1} t && /_pct/ {
        gsub(/[",:]/, ""); v[$1] = $2} END {print v["median_pct"], v["p90_pct"]}')
    row "$1, median error" "${total% *}" % "${2:+<= $2}"
    row "$1, 90th percentile" "${total#* }" % "${3:+<= $3}"
}

table_open "$out"
if [ -r "$curves" ]; then
    score "curves, one size left out" 2 8
    score "curves, sizes x8 apart" "" "" --every 8
    score "curves, sizes x16 apart" "" "" --every 16
else
    echo "curves.sh: no table of measured curves ($curves)" >&2
fi
"$build/tests/bench/collective" | while read -r name value unit; do
    row "${name//_/ }" "$value" "$unit"
done
table_close || true
