#!/bin/sh
# house.sh - what the object files say of the walls: symbols point only down (an include check cannot see a
# function declared in one folder and defined in another), files do not call in circles, folders stay small.
# What it finds is printed; the limits are what CONTRIBUTING.md says.
cd "$(dirname "$0")/.." || exit 1
BUILD=${RG_BUILD:-build}
max_files=480 max_folder=35 max_circles=0 max_alone=45 max_public=1330

# FILE SYMBOL T|U, of the objects whose source is still there.
symbols() {
    find "$BUILD/src" "$BUILD/topo" "$BUILD/kernels" -name '*.c.o' | while read -r object; do
        source=${object#"$BUILD/"}
        [ ! -e "${source%.o}" ] || echo "$object"
    done | xargs nm -A | awk -v skip="$BUILD/" '
        { at = index($0, ".c.o:"); file = substr($0, length(skip) + 1, at + 1 - length(skip)); n = split($0, w, " ") }
        w[n - 1] ~ /^[TDRBVWC]$/ { print file, w[n], "T" }
        w[n - 1] == "U" { print file, w[n], "U" }'
}

[ -d "$BUILD/src" ] || { echo "1..0 # skip nothing is built in $BUILD"; exit 0; }
{ symbols; find src topo kernels -name '*.[ch]' -o -name '*.cu' | sed 's/$/ - F/'; } | awk -v max_files=$max_files -v max_folder=$max_folder \
    -v max_circles=$max_circles -v max_alone=$max_alone -v max_public=$max_public '
function folder(file) { sub(/\/[^\/]*$/, "", file); return file }
function rank(file,    f)
{
    f = folder(file)
    if (f == "src") return n + 1
    sub(/^src\//, "", f); sub(/\/.*/, "", f)
    return at[f]
}
function bad(part, why) { printf "# %s\n", why; failed[part] = 1 }
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
        if (across) failed[2] = 1
    }
    return count + 0
}
BEGIN { n = split("base kernels topo probe cost step place verdict emit cmd", order, " "); for (i = 1; i <= n; i++) at[order[i]] = i }
$3 == "F" { files++; in_folder[folder($1)]++; next }
$3 == "T" { where[$2] = $1; public++ }
$3 == "U" { asks[$1 " " $2] }
END {
    for (a in asks) {
        split(a, w, " ")
        if (!(w[2] in where) || where[w[2]] == w[1]) continue
        to = where[w[2]]
        if (rank(to) > rank(w[1])) bad(1, w[1] " -> " to ": " w[2])
        if (!((w[1], to) in edge)) { edge[w[1], to] = 1; clients[to]++; client[to] = w[1]; left[w[1]]; left[to] }
    }
    for (f in clients) if (clients[f] == 1 && folder(client[f]) == folder(f)) { alone++; printf "# one client: %s -> %s\n", f, client[f] }
    if ((c = circles()) > max_circles) failed[2] = 1
    for (f in in_folder) if (in_folder[f] > max_folder) bad(3, f ": " in_folder[f] " files")
    if (files > max_files) failed[3] = 1
    print "1..5"
    title[1] = "symbols point down"
    title[2] = "circles of files: " c ", at most " max_circles ", none across folders"
    title[3] = "files: " files ", at most " max_files ", " max_folder " a folder"
    title[4] = "files with one client, beside it: " alone + 0 ", at most " max_alone
    title[5] = "public symbols: " public ", at most " max_public
    failed[4] = alone > max_alone; failed[5] = public > max_public
    for (i = 1; i <= 5; i++) { printf "%sok %d - %s\n", failed[i] ? "not " : "", i, title[i]; sum += failed[i] }
    exit sum > 0
}'
