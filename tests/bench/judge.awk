# judge.awk - does the ratio of two programs' times hold a target, or is the miss within the noise?
#
#   awk -f judge.awk -v way=latency|bandwidth -v op="<=" -v limit=1.05 TURNS
#
# A line of TURNS is a turn: seconds of the yardstick and of the program under test, each the best of a few
# medians.  What else runs on the machine only ever adds time, so that the lower quartile over the turns is what
# is compared: half of the turns may be disturbed, and the one that was lucky with its memory does not
# count either.  latency: program / yardstick; bandwidth: the inverse.  Prints "RATIO LO HI VERDICT"; LO to HI
# is the 95 % interval over turns drawn again with replacement, and the verdict met, missed (all of the
# interval misses) or noise (the ratio misses, but not all of the interval).

function lower_quartile(v, n,    i, j, x, sorted) {
    for (i = 1; i <= n; i++) {
        x = v[i]
        for (j = i - 1; j > 0 && sorted[j] > x; j--)
            sorted[j + 1] = sorted[j]
        sorted[j + 1] = x
    }
    return sorted[int((n + 3) / 4)]
}

function ratio(a, b) { return way == "latency" ? b / a : a / b }
function holds(r) { return op == "<=" ? r <= limit : r >= limit }

$1 > 0 && $2 > 0 { bare[++n] = $1; ours[n] = $2 }

END {
    if (n < 4) {
        print "judge.awk: " n + 0 " turns where 4 are needed" >"/dev/stderr"
        exit 2
    }
    srand(1)
    for (k = 1; k <= 400; k++) {
        for (i = 1; i <= n; i++) {
            at = int(rand() * n) + 1
            a[i] = bare[at]
            at = int(rand() * n) + 1
            b[i] = ours[at]
        }
        r = ratio(lower_quartile(a, n), lower_quartile(b, n))
        for (j = k - 1; j > 0 && drawn[j] > r; j--)
            drawn[j + 1] = drawn[j]
        drawn[j + 1] = r
    }
    lo = drawn[10]
    hi = drawn[391]
    r = ratio(lower_quartile(bare, n), lower_quartile(ours, n))
    printf "%.3f %.3f %.3f %s\n", r, lo, hi, holds(r) ? "met" : holds(lo) || holds(hi) ? "noise" : "missed"
}
