#!/bin/bash
# coverage.sh BUILD [FLOOR...] - lines that ran in the programs below BUILD, by file, from gcov's own counters.
#
# FLOOR is PATTERN=PERCENT: the files that match it are summed up, and less than that fails.
build=$1
shift
temp=$(mktemp)
trap 'rm -f "$temp"' EXIT

# "File 'src/a.c'" and "Lines executed:91.30% of 46"; a file in several programs counts where it ran most.
find "$build/src" "$build/topo" -name '*.gcno' | while read -r notes; do
    gcov -n -r -o "$notes" "${notes%.gcno}" 2>/dev/null
done | awk -F"'" '
    /^File / { file = $2 }
    /^Lines executed:/ && file ~ /\.c$/ {
        split($0, w, /[:% ]+/)
        ran = w[3] / 100 * w[5]
        if (!(file in all) || ran > most[file]) { most[file] = ran; all[file] = w[5] }
        file = ""
    }
    END { for (f in all) printf "%s %d %d\n", f, most[f] + 0.5, all[f] }' | sort >"$temp"

awk '{ printf "%6.1f %%  %5d of %5d  %s\n", 100 * $2 / $3, $2, $3, $1; ran += $2; all += $3 }
    END { if (!all) { print "no counters: nothing ran"; exit 1 } printf "%6.1f %%  %5d of %5d  all files\n", 100 * ran / all, ran, all }' "$temp" || exit 1
rc=0
for floor; do
    awk -v pattern="${floor%=*}" -v least="${floor#*=}" '
        BEGIN { glob = pattern; gsub(/\./, "\\.", glob); gsub(/\*/, "[^/]*", glob) }
        $1 ~ "^" glob "$" { ran += $2; all += $3 }
        END {
            if (!all) { print pattern ": no such file in this build"; exit 1 }
            share = 100 * ran / all
            printf "%s: %.1f %% of %d lines, %s %s %%\n", pattern, share, all, share < least ? "BELOW" : "at least", least
            exit share < least
        }' "$temp" || rc=1
done
exit $rc
