#!/bin/sh
# doors.sh - the example of each room's first door compiles: the first header that the map of CONTRIBUTING.md says to
# read, or any other header with a line "Example:" in its first comment.  The code is indented by five spaces behind the
# star, with its further includes first; statements are the body of a function that may return -1 with err.
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
CC=${CC:-cc}
flags=$(MAKEFLAGS='' make -s warnings)
failed=0

example() {
    sed -n '/^ \* Example:/,/\*\/$/p' "$1" | sed -n 's/^ \*     \(.*\)$/\1/p; s/^ \*$//p' | sed 's/ \*\/$//'
}

# HEADER, relative to the root.
compile() {
    example "$1" >"$work/text"
    {
        echo "#include <string.h>"
        echo "#include \"${1#src/}\""
        grep '^#include' "$work/text"
        if grep -q '^{' "$work/text"; then
            grep -v '^#include' "$work/text"
        else
            printf 'int example(struct err *err);\nint example(struct err *err)\n{\n'
            grep -v '^#include' "$work/text"
            echo '}'
        fi
    } >"$work/example.c"
    # shellcheck disable=SC2086  # flags are words
    $CC $flags -Werror -Wno-unused-function -Wno-unused-const-variable -D_GNU_SOURCE -Isrc -I. -fsyntax-only "$work/example.c" || {
        echo "$1: the example does not compile"
        failed=1
    }
}

# One line "FOLDER HEADER" per room with doors: the first of the last column.
# shellcheck disable=SC2013  # file names of this tree have no spaces
for room in $(awk -F' *[|] *' '/^\| `/ && $3 + 0 { split($2, r, "`"); split($5, h, "`"); print r[2] ":" h[2] }' CONTRIBUTING.md); do
    folder=${room%%:*} name=${room#*:}
    header=$(find "${folder%%/\{*}" -name "$name" | head -1)
    grep -q '^ \* Example:' "$header" || {
        echo "$folder: $name has no example"
        failed=1
    }
done
# shellcheck disable=SC2013
for header in $(grep -rl --include='*.h' '^ \* Example:' src topo kernels | sort); do
    compile "$header"
done
exit $failed
