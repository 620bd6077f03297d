#!/bin/bash
# steps.sh - how good step predictions are, over a table of published steps and one of NCCL curves.
#
#   RG_BUILD=build tests/bench/steps.sh [STEPS.tsv [CURVES.tsv]]
#
# Without tables, those beside this tree are taken if they are there.  The figures and their targets are
# printed as tables and go to RG_BUILD/steps.json, those of rows whose source, release, model, GPU or family was left out
# of the fit to RG_BUILD/left_GROUP.json (minutes), rows to RG_BUILD/steps.tsv, curves to RG_BUILD/curves.json.  A missed target is printed as
# such and is no failure: the exit code says only whether everything could be judged.
set -euo pipefail
build=$(realpath "${RG_BUILD:-$(dirname "${BASH_SOURCE[0]}")/../../build}")
beside=$(dirname "${BASH_SOURCE[0]}")/../../../shared/datasets
steps=${1:-$beside/measured_steps.tsv}
curves=${2:-$beside/nccl_curves.tsv}

# absent FILE GIVEN: a table that was asked for must be there; a default one may be missing.
absent() {
    [ ! -r "$1" ] || return 1
    [ -z "$2" ] || { echo "steps.sh: $1 cannot be read" >&2 && exit 66; }
    echo "steps.sh: $1 is not there: skipped"
}

# verdict NAME FIGURE ASKED: at most.
verdict() {
    awk -v name="$1" -v x="$2" -v most="$3" 'BEGIN {
        printf "%-40s %8.2f  <= %-5g %s\n", name, x, most, x <= most ? "met" : sprintf("missed by %.2f", x - most)
    }'
}

if ! absent "$steps" "${1-}"; then
    started=$EPOCHREALTIME
    "$build/railgauge-calibrate" score "$steps" -o "$build/steps.json"
    took=$(awk "BEGIN {print $EPOCHREALTIME - $started}")
    "$build/railgauge-calibrate" score --rows "$steps" >"$build/steps.tsv" 2>/dev/null
    verdict "the whole table, s" "$took" 2
    echo
fi
# Layouts, some with the memory that was read: groups.tsv holds it beside the steps.
layouts=$beside/layouts
if [ -r "$layouts/groups.tsv" ]; then
    awk -F'\t' -v OFS='\t' 'NR == FNR {read_gb[$1] = $3; next} {print $0, FNR == 1 ? "memory_read_GB" : read_gb[$1]}' \
        "$layouts/groups.tsv" "$layouts/steps.tsv" >"$build/layouts.tsv"
    (cd "$layouts" && "$build/railgauge-calibrate" score "$build/layouts.tsv" 2>/dev/null) >"$build/layouts.txt"
    sed -n '/^memory, error/,/^$/p' "$build/layouts.txt"
    read -r median inside < <(awk '/^memory, error/ {getline; print $3, $NF; exit}' "$build/layouts.txt")
    verdict "memory of layouts, median %" "$median" 10
    verdict "memory of layouts, outside the interval %" "$(awk "BEGIN {print 100 - $inside}")" 14
    echo
fi
# Without each group in turn, over all tables; rows of nanotron with pipelines or tp over hosts were read while nodes were
# starting, 10 to 100 times slow.
tables=("$steps")
for more in "$beside"/fresh/steps.tsv "$layouts/steps.tsv" "$beside"/fresh3/steps.tsv "$beside"/fresh3/simumax/steps.tsv; do
    [ ! -r "$more" ] || tables+=("$more")
done
for group in source release model gpu family; do
    [ -r "$steps" ] || break
    "$build/railgauge-calibrate" score "${tables[@]}" --leave-out 'id=nt_*,pp>1' --leave-out 'id=nt_*,tp>8' \
        --leave-one-out "$group" -o "$build/left_$group.json" 2>/dev/null >"$build/left_$group.txt"
    echo "without each $group in turn"
    sed -n -e '/^publishers alike/p' -e '/^error, %/,/^$/p' -e '/^known /,/^$/p' -e '/^left out /,/^$/p' "$build/left_$group.txt"
done
if ! absent "$curves" "${2-}"; then
    "$build/railgauge-calibrate" curves "$curves" --json >"$build/curves.json"
    "$build/railgauge-calibrate" curves "$curves" | tee "$build/curves.txt"
    echo
    read -r median p90 < <(awk '$1 == "total" {print $4, $6}' "$build/curves.txt")
    verdict "NCCL curves, one size left out, median %" "$median" 2
    verdict "NCCL curves, one size left out, p90 %" "$p90" 8
fi
