#!/bin/sh
# expand.sh DIR - put this folder's files into DIR/bad, those of its "edits" written out, with a link DIR/golden.
#
# FOLDER/edits, for files that differ from another file of the folder in a few lines, as diff -e has it but ascending:
#
#   == NAME BASE        the file NAME is BASE with these edits, line numbers of BASE
#   12c   12,14c   7a   lines replaced; lines added behind line 7 (0: before the first); the new lines follow, then "."
#   3d   3,5d           lines deleted
mkdir -p "$1/bad" && to=$(cd "$1" && pwd) && cd "$(dirname "$0")" || exit 1
cp -r . "$to/bad" && ln -sfn "$(cd ../golden && pwd)" "$to/golden" && cd "$to/bad" || exit 1
for edits in */edits; do
    LC_ALL=C awk -v dir="${edits%/*}" '
    function wrong(why) { printf "%s/edits:%d: %s\n", dir, NR, why >"/dev/stderr"; failed = 1; exit 1 }
    function upto(line) { while (at < line) print base[++at] >out }
    function finish() { if (out != "") { upto(lines); close(out) } }
    /^== / {
        finish()
        out = dir "/" $2; from = dir "/" $3; lines = at = 0
        while ((got = (getline text <from)) > 0) base[++lines] = text
        close(from)
        if (got < 0 || !lines) wrong("no file " from " to begin with")
        printf "" >out
        next
    }
    adding && $0 == "." { adding = 0; next }
    adding { print >out; next }
    !/^[0-9]+(,[0-9]+)?[acd]$/ { wrong("\"" $0 "\" is no edit") }
    {
        split(substr($0, 1, length($0) - 1), range, ",")
        first = range[1] + 0; last = (2 in range) ? range[2] + 0 : first; verb = substr($0, length($0))
        if (last > lines || last < first || at > (verb == "a" ? first : first - 1)) wrong("line " last " of " lines ", after line " at)
        upto(verb == "a" ? first : first - 1)
        if (verb != "a") at = last
        adding = verb != "d"
        delete range
    }
    END { if (!failed) { if (adding) wrong("the last edit has no end"); finish() } exit failed }' "$edits" || exit 1
    rm "$edits"
done
