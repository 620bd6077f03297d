#!/bin/sh
# layers.sh - includes point only down: base < topo < probe < cost < step < verdict < emit < cmd < main.
# Also: MPI, hwloc and HAVE_* stay in the few files that are allowed to know them.
cd "$(dirname "$0")/.." || exit 1

# shellcheck disable=SC2046  # file names of this tree have no spaces
awk '
function layer(path)
{
    if (path ~ /^topo\//) return 2
    if (path ~ /^kernels\//) return 3
    if (path ~ /^src\/probe\/probe_main[a-z_]*\.c$/) return 9
    if (path ~ /^src\/railgauge\.h$/) return 0
    if (path ~ /^src\/[a-z_]+\.[ch]$/) return 9
    sub(/^src\//, "", path)
    sub(/\/.*/, "", path)
    return rank[path]
}
function bad(why) { printf "# %s:%d: %s\n", FILENAME, FNR, why; failed[part] = 1 }
BEGIN {
    n = split("base topo probe cost step verdict emit cmd", name, " ")
    for (i = 1; i <= n; i++) rank[name[i]] = i
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    part = 1
    split($0, q, "\"")
    target = q[2] ~ /^(topo|kernels)\// ? q[2] : "src/" q[2]
    if (q[2] !~ /\// && q[2] != "railgauge.h") bad("\"" q[2] "\" is not included by its folder")
    else if (layer(target) == "") bad("\"" q[2] "\" is in no known layer")
    else if (layer(target) > layer(FILENAME)) bad("includes upwards: \"" q[2] "\"")
}
/^[ \t]*#[ \t]*include[ \t]*<mpi\.h>/ && FILENAME !~ /^(src\/probe\/(world_mpi|probe_main)\.c|src\/probe\/mpi_[a-z]+\.h|topo\/gather\.[ch])$/ {
    part = 2; bad("mpi.h is not for this file")
}
/^[ \t]*#[ \t]*include[ \t]*<hwloc/ && FILENAME != "topo/hwloc.c" { part = 3; bad("hwloc is for topo/hwloc.c only") }
/HAVE_[A-Z]/ && FILENAME != "src/probe/transport.c" { part = 4; bad("HAVE_* is for src/probe/transport.c only") }
END {
    split("includes point down|mpi.h stays in the MPI files|hwloc.h stays in topo/hwloc.c|HAVE_* stays in the table of transports", title, "|")
    print "1..4"
    for (i = 1; i <= 4; i++) { printf "%sok %d - %s\n", failed[i] ? "not " : "", i, title[i]; sum += failed[i] }
    exit sum > 0
}' $(find src topo kernels -name '*.[ch]' | sort)
