# table.bash - the table that the benchmarks print and write: name, value, unit, goal, peer, ratio, verdict.
# shellcheck shell=bash

# table_open OUT.tsv
table_open() {
    out=$1 missed=0
    printf 'name\tvalue\tunit\tgoal\tpeer\tratio\tverdict\n' >"$out"
    printf '  %-52s %10s %-6s %8s  %s\n' what ours unit goal verdict
}

# line NAME VALUE UNIT GOAL PEER RATIO VERDICT: what is not there is "-".
line() {
    set -- "${@:1:4}" "${5:--}" "${@:6}"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@" >>"$out"
    [ "$5" = - ] || set -- "${@:1:6}" "$7  $6 of $5"
    printf '  %-52s %10s %-6s %8s  %s\n' "${@:1:4}" "$7"
}

# row NAME VALUES UNIT [GOAL [PEER [VALUES]]]: a value a turn, told as the median.  GOAL is "<= X" or ">= X", of the ratio
# to the peer (a turn beside a turn) where one was measured.  What else the machine does moves a turn, hardly
# all of them: a goal is missed where every turn misses it, and is open, "within the noise", where some do.
row() {
    local verdict=- ratio=- goal=${4:--} judged=$2 limits
    if [ -n "${6-}" ]; then
        judged=$(paste -d' ' <(words "$2") <(words "$6") | awk '{printf "%.4g ", $1 / $2}')
        ratio=$(median < <(words "$judged"))
    fi
    if [ "$goal" != - ]; then
        read -r verdict limits < <(words "$judged" | awk -v op="${goal% *}" -v t="${goal#* }" '
            {bad += op == "<=" ? $1 > t : $1 < t; if (NR == 1 || $1 < lo) lo = $1; if (NR == 1 || $1 > hi) hi = $1}
            END {print (bad == 0 ? "met" : bad < NR ? "noise" : "missed"), "(" lo " to " hi ")"}')
        [ "$verdict" != missed ] || missed=1
        [ "$verdict" != noise ] || verdict='missed within the noise'
        [ "$verdict" = met ] || verdict="$verdict $limits"
    fi
    line "$1" "$(median < <(words "$2"))" "$3" "$goal" "${5:+$5 $(median < <(words "${6-}"))}" "$ratio" "$verdict"
}

# table_close: where JSON names a file, the table is added to it as one line. The exit code is 1 where a goal is missed.
table_close() {
    [ -z "${JSON-}" ] || awk -F'\t' -v table="$(basename "$out" .tsv)" -v time="$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        -v version="$(git describe --always --dirty 2>/dev/null || echo unknown)" -v cores="$(nproc)" \
        -v machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" '
        function text(s) {gsub(/[\\"]/, "\\\\&", s); return "\"" s "\""}
        BEGIN {printf "{\"table\": %s, \"time_utc\": %s, \"commit\": %s, \"machine\": %s, \"cores\": %d, \"rows\": [",
            text(table), text(time), text(version), text(machine), cores}
        NR == 1 {for (i = 1; i <= NF; i++) name[i] = $i; next}
        {printf("%s{", NR > 2 ? ", " : "")
         for (i = 1; i <= NF; i++) {
            cell = $i == "-" ? "null" : text($i)
            if (cell != "null" && (name[i] == "value" || name[i] == "ratio")) cell = $i
            printf("%s%s: %s", i > 1 ? ", " : "", text(name[i]), cell)
         }
         printf "}"}
        END {print "]}"}' "$out" >>"$JSON"
    echo "  values: $out"
    return "$missed"
}

# shellcheck disable=SC2086 # its words are the values
words() { printf '%s\n' $1; }
median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
each() { words "$2" | awk "{v = \$1; printf \"%.4g \", $1}"; } # FORMULA-OF-v VALUES
calc() { awk "BEGIN {printf \"%.4g\", $*}"; }

# Ahead of whatever else the machine does, where that is allowed: ranks wait by sched_yield.
ahead=()
! chrt -r 1 true 2>/dev/null || ahead=(chrt -r 1)

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() {
    "${ahead[@]}" mpirun -n "$1" --oversubscribe --mca mpi_yield_when_idle 1 "${@:2}"
}
