#!/bin/sh
# layers.sh - includes point only down: base < kernels < topo < probe < cost < step < place < verdict <
# emit < cmd < the two programs.
# Also: MPI, hwloc and HAVE_* stay in the few files that are allowed to know them.
cd "$(dirname "$0")/.." || exit 1

# shellcheck disable=SC2046  # file names of this tree have no spaces
awk '
function layer(path)
{
    if (path ~ /^src\/railgauge\.h$/) return 0
    if (path ~ /^src\/[a-z_]+\.[ch]$/) return n + 1
    sub(/^src\//, "", path)
    sub(/\/.*/, "", path)
    return rank[path]
}
function bad(why) { printf "# %s:%d: %s\n", FILENAME, FNR, why; failed[part] = 1 }
BEGIN {
    n = split("base kernels topo probe cost step place verdict emit cmd", name, " ")
    for (i = 1; i <= n; i++) rank[name[i]] = i
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    part = 1
    split($0, q, "\"")
    target = q[2] ~ /^(topo|kernels)\// ? q[2] : "src/" q[2]
    if (q[2] !~ /\// && FILENAME !~ /^src\/[a-z_]+\.[ch]$/ && q[2] != "railgauge.h") bad("\"" q[2] "\" is not included by its folder")
    else if (layer(target) == "") bad("\"" q[2] "\" is in no known layer")
    else if (layer(target) > layer(FILENAME)) bad("includes upwards: \"" q[2] "\"")
}
/^[ \t]*#[ \t]*include[ \t]*<mpi\.h>/ && FILENAME !~ /^(src\/probe\/mpi\/(world_mpi\.c|mpi_[a-z]+\.h)|src\/probe_main\.c|topo\/gather\.[ch])$/ {
    part = 2; bad("mpi.h is not for this file")
}
/^[ \t]*#[ \t]*include[ \t]*<hwloc/ && FILENAME != "topo/host/hwloc.c" { part = 3; bad("hwloc is for topo/host/hwloc.c only") }
/HAVE_[A-Z]/ && FILENAME != "src/probe/transport.c" { part = 4; bad("HAVE_* is for src/probe/transport.c only") }
END {
    split("includes point down|mpi.h stays in the MPI files|hwloc.h stays in topo/host/hwloc.c|HAVE_* stays in the table of transports", title, "|")
    print "1..4"
    for (i = 1; i <= 4; i++) { printf "%sok %d - %s\n", failed[i] ? "not " : "", i, title[i]; sum += failed[i] }
    exit sum > 0
}' $(find src topo kernels -name '*.[ch]' | sort)
