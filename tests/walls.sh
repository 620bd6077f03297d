#!/bin/sh
# walls.sh - the walls of the house, as the includes draw them and as the linker sees them (an include check
# cannot see a function declared in one folder and defined in another): everything points only down, MPI, hwloc
# and HAVE_* stay in the few files that are allowed to know them, files do not call in circles, folders stay small.
# What it finds is printed; the limits are what CONTRIBUTING.md says.
#
#   walls.sh           test the limits
#   walls.sh --raised  limits that this change raised: the working tree beside the last commit or, where that has the
#                      same limits, the last commit beside the one before it.  A commit that raises one says why in its body.
cd "$(dirname "$0")/.." || exit 1
BUILD=${RG_BUILD:-build}

limits() { tr ' ' '\n' | sed -n 's/^\(max_[a-z]*\)=\([0-9]*\)$/\1 \2/p' | sort; }
raised() {
    { git show "$1:tests/walls.sh" 2>/dev/null | limits; echo -; limits; } |
        awk '$1 == "-" { now = 1; next } !now { was[$1] = $2; next } $1 in was && $2 > was[$1] { print $1 ": " was[$1] " -> " $2 }'
}
if [ "$1" = --raised ]; then
    found=$(raised HEAD <tests/walls.sh)
    [ -z "$found" ] || { echo "$found"; echo "(not committed yet: its body has to say why)"; exit 0; }
    found=$(git show HEAD:tests/walls.sh 2>/dev/null | raised HEAD^)
    [ -n "$found" ] || exit 0
    echo "$found"
    git log -1 --format=%b | grep -q '[[:alpha:]]' || { echo "the last commit raises this and its body does not say why"; exit 1; }
    exit 0
fi

max_files=618 max_folder=35 max_circles=0 max_alone=74 max_public=1860 max_doors=110 max_twins=0 max_same=20

# FILE SYMBOL T|U, of the objects whose source is still there.
symbols() {
    [ -d "$BUILD/src" ] || return
    find "$BUILD/src" "$BUILD/topo" "$BUILD/kernels" -name '*.c.o' | while read -r object; do
        source=${object#"$BUILD/"}
        [ ! -e "${source%.o}" ] || echo "$object"
    done | xargs nm -A | awk -v skip="$BUILD/" '
        { at = index($0, ".c.o:"); file = substr($0, length(skip) + 1, at + 1 - length(skip)); n = split($0, w, " ") }
        w[n] ~ /^__odr_asan/ { next } # a sanitizer says them of each variable
        w[n - 1] ~ /^[TDRBVWC]$/ { print file, w[n], "T" }
        w[n - 1] == "U" { print file, w[n], "U" }'
}

# shellcheck disable=SC2046  # file names of this tree have no spaces
{ find src topo kernels -name '*.[ch]' -o -name '*.cu' | sed 's/$/ - F/'; symbols; } | awk -v build="$BUILD" -v max_files=$max_files \
    -v max_folder=$max_folder -v max_circles=$max_circles -v max_alone=$max_alone -v max_public=$max_public \
    -v max_doors=$max_doors -v max_twins=$max_twins -v max_same=$max_same '
# A folder belongs to the room with the longest name that begins it.
BEGIN {
    n = split("src/base kernels topo topo/sources topo/lint src/noise src/watch src/measure src/matrix src/fit src/transport " \
              "src/step src/record src/place src/calibrate src/verdict src/report src/export src/cmd", order, " ")
    for (i = 1; i <= n; i++) at[order[i]] = i
}
function folder(file) { sub(/\/[^\/]*$/, "", file); return file }
# Where a file stands in the order: the C API below everything, the two programs above; "": nowhere.
function rank(file)
{
    if (file == "src/railgauge.h") return 0
    if (folder(file) == "src") return n + 1
    while (file ~ /\// && !(file in at)) file = folder(file)
    return at[file]
}
function bad(part, why) { printf "# %s\n", why; failed[part] = 1 }
function stray(part, why) { bad(part, FILENAME ":" FNR ": " why) }

# --- the sources ---
sources && /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, q, "\"")
    target = q[2] ~ /^(topo|kernels)\// ? q[2] : "src/" q[2]
    if (q[2] !~ /\// && folder(FILENAME) != "src" && q[2] != "railgauge.h") stray(1, "\"" q[2] "\" is not included by its folder")
    else if (rank(target) == "") stray(1, "\"" q[2] "\" is in no known layer")
    else if (rank(target) > rank(FILENAME)) stray(1, "includes upwards: \"" q[2] "\"")
    else if (rank(target) && rank(target) < rank(FILENAME)) door[target]
}
sources && /^[ \t]*#[ \t]*include[ \t]*<mpi\.h>/ && FILENAME !~ /^(src\/transport\/mpi\/(world_mpi\.c|mpi_[a-z_]+\.h)|src\/probe_main\.c|topo\/sources\/gather\.[ch])$/ {
    stray(2, "mpi.h is not for this file")
}
sources && /^[ \t]*#[ \t]*include[ \t]*<hwloc/ && FILENAME != "topo/sources/host/hwloc.c" { stray(3, "hwloc is for topo/sources/host/hwloc.c only") }
sources && /HAVE_[A-Z]/ && FILENAME != "src/measure/transports/transport.c" { stray(4, "HAVE_* is for src/measure/transports/transport.c only") }
# A function of this file only: its name.
sources && /^static [^=;"]*\(/ {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    if (!((name, FILENAME) in static)) { static[name, FILENAME]; same[name]++; in_files[name] = in_files[name] " " FILENAME }
}
sources { next }

# --- the map of CONTRIBUTING.md: | `ROOM`, ... | doors | ... ---
FILENAME == "CONTRIBUTING.md" && /^\| `/ {
    split($0, q, / *\| */)
    sub(/^`/, "", q[2])
    sub(/\/?[`{].*/, "", q[2])
    if (q[3] + 0) told[q[2]] = q[3] + 0
}
FILENAME == "CONTRIBUTING.md" { next }

# --- the objects ---
# Files that neither call nor are called by one that is left are in no circle.
function trim(    f, g, again, in_, out)
{
    do {
        again = 0
        for (f in left) {
            in_ = out = 0
            for (g in left) { if ((g, f) in edge) in_ = 1; if ((f, g) in edge) out = 1 }
            if (!in_ || !out) { delete left[f]; again = 1 }
        }
    } while (again)
}
function circles(    f, g, h, text, across, count)
{
    trim()
    for (f in left) for (g in left) if ((f, g) in edge) reach[f, g] = 1
    for (h in left) for (f in left) if ((f, h) in reach) for (g in left) if ((h, g) in reach) reach[f, g] = 1
    for (f in left) {
        if (f in seen) continue
        text = f; across = 0
        for (g in left)
            if (g != f && (f, g) in reach && (g, f) in reach) { seen[g] = 1; text = text " " g; across += folder(g) != folder(f) }
        if (text == f) continue
        count++
        printf "# circle: %s\n", text
        if (across) failed[7] = 1
    }
    return count + 0
}
$3 == "F" { files++; in_folder[folder($1)]++; next }
$3 == "T" { where[$2] = $1; public++ }
$3 == "U" { asks[$1 " " $2] }
END {
    for (a in asks) {
        split(a, w, " ")
        if (!(w[2] in where) || where[w[2]] == w[1]) continue
        to = where[w[2]]
        if (rank(to) > rank(w[1])) bad(6, w[1] " -> " to ": " w[2])
        if (!((w[1], to) in edge)) { edge[w[1], to] = 1; clients[to]++; client[to] = w[1]; left[w[1]]; left[to] }
    }
    for (f in clients) if (clients[f] == 1 && folder(client[f]) == folder(f)) { alone++; printf "# one client: %s -> %s\n", f, client[f] }
    if ((c = circles()) > max_circles) failed[7] = 1
    for (f in in_folder) if (in_folder[f] > max_folder) bad(5, f ": " in_folder[f] " files")
    if (files > max_files) failed[5] = 1
    if (alone > max_alone) failed[8] = 1
    if (public > max_public) failed[9] = 1
    for (f in door) { doors++; has[order[rank(f)]]++ }
    for (i = 1; i <= n; i++)
        if (told[order[i]] != has[order[i]]) bad(10, order[i] ": " has[order[i]] " doors, not " told[order[i]] + 0 " as in CONTRIBUTING.md")
    if (doors > max_doors) failed[10] = 1
    for (f in same) {
        if (f in where) { twins++; printf "# twin of %s: %s in%s\n", where[f], f, in_files[f] }
        if (same[f] > most) { most = same[f]; named = f }
    }
    if (twins > max_twins || most > max_same) failed[11] = 1
    tests = split("includes point down|mpi.h stays in the MPI files|hwloc.h stays in topo/sources/host/hwloc.c|HAVE_* stays in the table of transports", title, "|")
    title[++tests] = "files: " files ", at most " max_files ", " max_folder " a folder"
    title[++tests] = "symbols point down"
    title[++tests] = "circles of files: " c ", at most " max_circles ", none across folders"
    title[++tests] = "files with one client, beside it: " alone + 0 ", at most " max_alone
    title[++tests] = "public symbols: " public + 0 ", at most " max_public
    title[++tests] = "doors, headers that other rooms include: " doors ", at most " max_doors ", as in CONTRIBUTING.md"
    title[++tests] = "static namesakes of public functions: " twins + 0 ", at most " max_twins "; most files with one static name (" named "): " most ", at most " max_same
    print "1.." tests
    for (i = 1; i <= tests; i++) {
        skip = i > 5 && i < 10 && !public ? " # skip nothing is built in " build : ""
        printf "%sok %d - %s%s\n", failed[i] ? "not " : "", i, title[i], skip
        sum += failed[i]
    }
    exit sum > 0
}' sources=1 $(find src topo kernels -name '*.[ch]' | sort) sources=0 CONTRIBUTING.md -
