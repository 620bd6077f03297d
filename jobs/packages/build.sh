#!/bin/sh
# build.sh deb|rpm DIR - packages of this commit, made in DIR by the distribution's own tools.
#   sh jobs/packages/build.sh deb /tmp/packages     # dpkg-dev debhelper and what debian/control names
#   sh jobs/packages/build.sh rpm /tmp/packages     # rpm-build (Debian: rpm) and what railgauge.spec names
# Environment: DEB_BUILD_OPTIONS and DEB_BUILD_PROFILES, as dpkg-buildpackage has them (nocheck in both: no unit tests);
# RPMFLAGS, words for rpmbuild.
set -eu
[ $# -eq 2 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
kind=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
make -s dist BUILD="$out/dist" >/dev/null
tar=$(echo "$out"/dist/railgauge-*.tar.gz)
version=${tar##*/railgauge-} version=${version%.tar.gz}
case $kind in
deb)
    mv "$tar" "$out/railgauge_$version.orig.tar.gz"
    rm -rf "$out/railgauge-$version"
    tar -xzf "$out/railgauge_$version.orig.tar.gz" -C "$out"
    cp -r jobs/packages/debian "$out/railgauge-$version"
    cd "$out/railgauge-$version"
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: railgauge\n\n'
        sed -n 's/^Copyright (c) \(.*\)/Files: *\nCopyright: \1\nLicense: BSD-3-clause/p' LICENSE
        sed -e '1,/^Copyright/d' -e 's/^$/./' -e 's/^/ /' LICENSE | sed 1d
    } >"$out/railgauge-$version/debian/copyright"
    # The date of the commit, so that the same sources make the same packages.
    printf 'railgauge (%s-1) unstable; urgency=medium\n\n  * New upstream release: NEWS.md says what changed.\n\n -- %s  %s\n' "$version" \
        "$(sed -n 's/^Maintainer: //p' debian/control)" "$(date -u -R -d "@$(stat -c %Y LICENSE)")" >debian/changelog
    dpkg-buildpackage -us -uc
    ;;
rpm)
    mkdir -p "$out/rpm/SOURCES"
    mv "$tar" "$out/rpm/SOURCES"
    # shellcheck disable=SC2086
    rpmbuild -ba --define "_topdir $out/rpm" --define "rg_version $version" ${RPMFLAGS:-} jobs/packages/railgauge.spec
    ;;
*) echo "build.sh: $kind: not a kind of package (deb or rpm)" >&2; exit 64 ;;
esac
rm -rf "$out/dist"
