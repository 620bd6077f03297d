#!/usr/bin/env bats
# packages.bats - the packages of jobs/packages: built by the distribution's tools, judged by its linters, installed, used
# and taken away again.
# bats file_tags=nightly

bats_require_minimum_version 1.5.0

setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export top
    git -C "$top" rev-parse HEAD >/dev/null 2>&1 || skip "not a clone"
}

teardown_file() { "$top/tests/chroot.sh" --leave trixie 2>/dev/null || true; }

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# in_root COMMAND
in_root() { timeout 900 chroot "$root" env -u PYTHONPATH HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec "$1" 3>&-; }

@test "Debian 13: four packages, without an error of lintian's; they install, measure, answer a C program, and leave nothing" {
    root=$("$top/tests/chroot.sh" --user $$ trixie build-essential debhelper dpkg-dev git lintian libjansson-dev libexpat1-dev libyaml-dev libhwloc-dev \
        libopenmpi-dev openmpi-bin pkg-config 2>why) || skip "$(tail -n 1 why)"
    rm -rf "${root:?}/opt/rg/packages" && mkdir -p "$root/opt/rg/packages"
    git clone -q --no-hardlinks "$top" "$root/opt/rg/packages/src"
    in_root 'cd /opt/rg/packages; git config --global --add safe.directory "*"
        DEB_BUILD_OPTIONS="nocheck parallel=2" DEB_BUILD_PROFILES=nocheck sh src/jobs/packages/build.sh deb out' >log 2>&1 || { tail -20 log; false; }
    in_root 'cd /opt/rg/packages/out; lintian --fail-on error --tag-display-limit 0 *.changes' >lintian 2>&1 || { cat lintian; false; }
    cat lintian
    before=$(in_root 'find /usr /etc -newer /opt/rg/packages/out -path "*railgauge*"')
    [ -z "$before" ]
    in_root 'cd /opt/rg/packages/out; dpkg -i ./*railgauge*.deb' >log 2>&1 || { cat log; false; }
    in_root 'cd /tmp; rm -rf c; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        railgauge run --transport sim --fabric gb200-nvl72 -o c --no-plots --quiet
        railgauge-probe --version
        test -e "$(dpkg -L libnccl-profiler-railgauge | grep libnccl-profiler-railgauge.so)"
        test "$(dpkg -L railgauge | grep -c systemd/system/railgauge-check)" = 2
        printf "#include <railgauge.h>\n#include <stdio.h>\nint main(void) { struct railgauge *r; char e[256];
            if (railgauge_open(&r, \"c\", e)) return puts(e), 1; printf(\"%%d\\\\n\", railgauge_count(r)); railgauge_close(r); return 0; }\n" >x.c
        gcc -o x x.c $(pkg-config --cflags --libs railgauge)
        test "$(./x)" = 72'
    in_root 'dpkg -P $(dpkg-query -W -f "\${Package} " "*railgauge*"); test -z "$(find /usr /etc -path "*railgauge*" ! -path "/usr/local/*")"'
}

@test "RPMs: four packages, without an error of rpmlint's that is ours; each file is in one of them" {
    command -v rpmbuild >/dev/null || skip "no rpmbuild (package rpm)"
    # There is no database of RPMs here: what is needed is not asked for.
    RPMFLAGS="--nodeps" sh "$top/jobs/packages/build.sh" rpm out >log 2>&1 || { tail -20 log; false; }
    [ "$(find out/rpm/RPMS -name '*.rpm' ! -name '*debug*' | wc -l)" -eq 4 ]
    rpm -qlp out/rpm/RPMS/*/railgauge-0*.rpm | grep -q '/bin/railgauge-probe$'
    rpm -qlp out/rpm/RPMS/*/railgauge-nccl-0*.rpm | grep -q '/libnccl-profiler-railgauge.so$'
    if command -v rpmlint >/dev/null; then
        rpmlint out/rpm/RPMS/*/*.rpm >lint 2>&1 || true
        # Signatures and tags are the distributor's; ldconfig runs by itself since RPM 4.14, and the older hash is not missed.
        run grep ': E: ' lint
        echo "$output"
        run ! grep -vE 'no-signature|no-(group|packager|changelogname)-tag|library-without-ldconfig|missing-hash-section|outside-libdir-files .*LICENSE|/usr/lib/.build-id' <<<"$output"
    fi
}
