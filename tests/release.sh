#!/bin/sh
# release.sh VERSION - what has to be true before a version is given away, one line each; exit 1: something is not.
#
# The version stands in jobs/python/railgauge/__init__.py alone.  A file that states it besides is found here.
cd "$(dirname "$0")/.." || exit 1
version=$1 failed=0
say() { # say TEXT STATUS
    if [ "$2" -eq 0 ]; then echo "ok       $1"; else echo "not yet  $1"; failed=$((failed + 1)); fi
}

expr "$version" : '[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*$' >/dev/null
say "version \"$version\" is three numbers" $?
[ -z "$(git status --porcelain)" ]
say "everything is committed" $?
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null
say "v$version is no tag yet" $?
grep -m1 '^## ' NEWS.md | grep -qE "^## $version, [0-9]{4}-[0-9]{2}-[0-9]{2}$"
say "NEWS.md begins with \"## $version, YEAR-MONTH-DAY\"" $?
[ "$(sed -n '/^## /,$p' NEWS.md | awk '/^## / { if (n++) exit } /^- / { rows++ } END { print rows + 0 }')" -le 30 ]
say "NEWS.md has at most 30 entries for it" $?
# Third-party versions in data and formats that older files had are no statement of ours.
! git grep -nF "\"$version\"" -- Makefile src topo/*.c topo/*.h jobs docs '*.md' ':!jobs/python/railgauge/__init__.py' ':!jobs/training'
say "no other file states the version" $?

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unpack() {
    make -s dist BUILD="$dir/dist" && tar -xzf "$dir/dist/railgauge-$version.tar.gz" -C "$dir" &&
        make -s -j2 -C "$dir/railgauge-$version" BUILD="$dir/build" && [ "$("$dir/build/railgauge" --version)" = "railgauge $version" ]
}
install() {
    make -s -C "$dir/railgauge-$version" BUILD="$dir/build" DESTDIR="$dir/root" install &&
        grep -qx "Version: $version" "$dir/root/usr/local/lib/pkgconfig/railgauge.pc" && "$dir/root/usr/local/bin/railgauge" models >/dev/null
}
for step in unpack install; do
    $step >"$dir/log" 2>&1
    status=$?
    [ "$status" -eq 0 ] || tail -5 "$dir/log"
    case $step in
    unpack) say "the tar file of \"make dist\" builds, and says its version" "$status" ;;
    install) say "it installs, and pkg-config says its version" "$status" ;;
    esac
done

[ "$failed" -eq 0 ] || { echo "$failed of 8 are not yet true"; exit 1; }
echo "v$version can be given away; make check-all, and git tag v$version come next"
