# summary.awk - behind prove: what it prints, then the ten slowest files and the skipped tests (of the file `skipped`),
# and its summary last.
function slowest(    i, j, best, n)
{
    for (n = 0; n < 10 && n < files; n++) {
        best = 0
        for (i = 1; i <= files; i++) if (!(i in told) && (!best || ms[i] > ms[best])) best = i
        told[best]
        if (!n) print "slowest:"
        printf "  %7.1f s %7.1f s CPU  %s\n", ms[best] / 1000, cpu[best], file[best]
    }
}
/^\[[0-9:]+\] [^ ]+ \.+/ { name = $2 }
match($0, /ok +[0-9]+ ms \(/) || match($0, /^ok +[0-9]+ ms \(/) {
    split(substr($0, RSTART), w, " ")
    cost = $0
    sub(/.*= */, "", cost)
    files++; file[files] = name; ms[files] = w[2]; cpu[files] = cost + 0
}
/^(All tests successful|Test Summary Report)/ { held = 1 }
held { last[held++] = $0; next }
{ print; fflush() }
END {
    slowest()
    while ((getline line <skipped) > 0) { if (!heads++) print "skipped:"; print "  " line }
    for (i = 1; i < held; i++) print last[i]
}
