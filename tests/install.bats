#!/usr/bin/env bats
# install.bats - what make install puts where, and that it works from there.

bats_require_minimum_version 1.5.0

setup_file() {
    export ROOT="$BATS_FILE_TMPDIR/a root"
    make -s install DESTDIR="$ROOT" SAN="$RG_SAN" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
        { cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

@test "programs, library, header, .pc, manual and data are there and nothing is outside the prefix" {
    cd "$ROOT"
    [ -x usr/local/bin/railgauge ]
    [ -f usr/local/lib/librailgauge.so.0 ]
    [ "$(readlink usr/local/lib/librailgauge.so)" = librailgauge.so.0 ]
    [ "$(readlink usr/local/lib/libnccl-profiler-railgauge.so)" = librailgauge-nccl.so ]
    [ -f usr/local/lib/librailgauge-nccl.so ]
    [ -f usr/local/include/railgauge.h ]
    for page in man1/railgauge.1 man1/railgauge-check-placement.1 man3/railgauge.3 man5/railgauge-matrix.5; do
        [ -f "usr/local/share/man/$page" ]
    done
    for script in bash-completion/completions/railgauge zsh/site-functions/_railgauge fish/vendor_completions.d/railgauge.fish; do
        grep -q 'made by: railgauge completion' "usr/local/share/$script"
    done
    [ -f usr/local/share/railgauge/jobs/slurm/job_submit.lua ]
    [ -f usr/local/share/railgauge/topo/fabrics/gb200-nvl72.json ]
    for job in mpirun.sh slurm/gb200-nvl72.sbatch kubernetes/mpijob-gb200.yaml python/pyproject.toml python/railgauge/matrix.py; do
        cmp "$OLDPWD/jobs/$job" "usr/local/share/railgauge/jobs/$job"
    done
    [ -x usr/local/share/railgauge/jobs/mpirun.sh ]
    [ "$(find . -type f ! -path './usr/local/*' | wc -l)" -eq 0 ]
}

@test "PREFIX moves everything" {
    run make -n install DESTDIR=/dest PREFIX=/opt/rg SAN="$RG_SAN"
    [ "$status" -eq 0 ]
    grep -q '/dest/opt/rg/bin' <<<"$output"
    grep -q 's|@PREFIX@|/opt/rg|' <<<"$output"
    ! grep -vE '/bin/(nvcc|ptxas)' <<<"$output" | grep -q '/usr/local'
}

@test "the installed program finds its data beside itself" {
    cd "$BATS_TEST_TMPDIR"
    run "$ROOT/usr/local/bin/railgauge" predict --fabric no-such-fabric
    [ "$status" -ne 0 ]
    run "$ROOT/usr/local/bin/railgauge" run --transport sim --fabric gb200-nvl72 --racks 1 --dry-run
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "the library has its SONAME and exports the public functions only" {
    lib="$ROOT/usr/local/lib/librailgauge.so.0"
    readelf -d "$lib" | grep -F 'Library soname: [librailgauge.so.0]'
    exported=$(nm -D --defined-only "$lib" | awk '$2 ~ /[TDBRW]/ { sub(/@.*/, "", $3); print $3 }' | grep -v '^RAILGAUGE_' | sort)
    declared=$(grep -oE 'railgauge_[a-z_]+\(' src/railgauge.h | tr -d '(' | sort -u)
    [ "$exported" = "$declared" ]
}

@test "the profiler plugin exports NCCL's tables only and needs libc only" {
    lib="$ROOT/usr/local/lib/librailgauge-nccl.so"
    exported=$(nm -D --defined-only "$lib" | awk '$2 ~ /[TDBRW]/ && $3 !~ /^_/ { print $3 }' | sort | xargs)
    [ "$exported" = "$(printf 'ncclProfiler_v%d\n' 1 2 3 4 5 6 7 | xargs)" ]
    [ -n "$RG_SAN" ] || [ "$(readelf -d "$lib" | grep -c '(NEEDED)')" -eq "$(readelf -d "$lib" | grep -c 'libc\.so\.6')" ]
}

@test "a program builds with pkg-config's answer alone" {
    ln -s "$ROOT" "$BATS_TEST_TMPDIR/root" # a sysroot may not have spaces
    export PKG_CONFIG_PATH="$BATS_TEST_TMPDIR/root/usr/local/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$BATS_TEST_TMPDIR/root"
    [ "$(pkg-config --modversion railgauge)" = "$("$RG_BUILD/railgauge" --version | cut -d' ' -f2)" ]
    cat >"$BATS_TEST_TMPDIR/x.c" <<-END
	#include <railgauge.h>
	#include <stdio.h>
	int main(void)
	{
	    struct railgauge *r;
	    char err[256];

	    if (railgauge_open(&r, "/nonexistent/matrix.json", err) == 0)
	        return 1;
	    puts(err);
	    return 0;
	}
	END
    # shellcheck disable=SC2046
    cc ${RG_SAN:+-fsanitize=$RG_SAN} -o "$BATS_TEST_TMPDIR/x" "$BATS_TEST_TMPDIR/x.c" $(pkg-config --cflags --libs railgauge)
    run env LD_LIBRARY_PATH="$ROOT/usr/local/lib" "$BATS_TEST_TMPDIR/x"
    [ "$status" -eq 0 ]
    [ "$output" = "/nonexistent/matrix.json: No such file or directory" ]
}

@test "the manual pages are clean, and each command has one" {
    cd "$ROOT/usr/local/share/man"
    mandoc -T lint -W warning man?/*
    for c in $(railgauge --help | awk '/^  [a-z]/ {print $1}'); do
        help=$(railgauge --help | sed -nE "s/^  $c +//p")
        mandoc -T ascii "man1/railgauge-$c.1" | sed 's/.\x08//g' | tr -s ' \n' ' ' >"$BATS_TEST_TMPDIR/page"
        grep -qF "railgauge-$c - $help" "$BATS_TEST_TMPDIR/page"
        grep -qF "SYNOPSIS railgauge $c [option ...]" "$BATS_TEST_TMPDIR/page"
    done
    [ "$(find man1 -name 'railgauge-*.1' | wc -l)" -eq "$(railgauge --help | grep -c '^  [a-z]')" ]
}

@test "a release is this commit's files; readers of C learn how each is compiled; objects go where BUILD says" {
    git rev-parse HEAD >/dev/null 2>&1 || skip "not a clone"
    make -s dist BUILD="$BATS_TEST_TMPDIR/b"
    [ "$(tar tf "$BATS_TEST_TMPDIR"/b/railgauge-*.tar.gz | grep -vc '/$')" -eq "$(git ls-tree -r --name-only HEAD | wc -l)" ]
    make -s compile_commands.json
    jq -r '.[] | select(.file == "src/base/mem.c") | .command + " -fsyntax-only"' compile_commands.json >"$BATS_TEST_TMPDIR/command"
    sh "$BATS_TEST_TMPDIR/command"
    make -s BUILD="$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/b/src/base/mem.c.o"
    [ -s "$BATS_TEST_TMPDIR/b/src/base/mem.c.o" ]
}

@test "railgauge(3) has every function of the header, with its arguments" {
    missing=
    cc -fpreprocessed -dD -E -P src/railgauge.h >"$BATS_TEST_TMPDIR/header" # without comments
    for f in $(grep -oE 'railgauge_[a-z_]+\(' "$BATS_TEST_TMPDIR/header" | tr -d '('); do
        # names of the arguments, in the header and in the page
        have=$(tr -d '\n' <"$BATS_TEST_TMPDIR/header" | sed -E "s/.*[ *]$f\(([^)]*)\).*/\1/" | tr , '\n' | sed -E 's/(\[256\])?$//; s/.*[ *]//')
        page=$(sed '/^\.Sh DESCRIPTION/,$d' src/railgauge.3 | sed -n "/^\.F[no] $f\( \|\$\)/,/^\.F[ct]/p" | sed '/^\.F[ct]/d; s/^\.Fa //' |
            grep -oE '"[^"]*"' | sed -E 's/(\[256\])?"$//; s/.*[ *"]//')
        [ "$have" = "$page" ] || missing+=" $f($have | $page)"
    done
    echo "not the same:$missing"
    [ -z "$missing" ]
}

@test "railgauge-matrix(5) has every key of the schema as an item" {
    keys=$(jq -r '[.. | objects | (.properties? // empty) | objects | select(all(.[]; type == "object")) | keys[]] | unique[]' src/schema/matrix.schema.json)
    [ "$(wc -w <<<"$keys")" -gt 80 ]
    items=$(sed -n 's/^\.It Cm //p' src/railgauge-matrix.5 | sed 's/ , Cm /\n/g')
    missing=$(comm -23 <(sort -u <<<"$keys") <(sort -u <<<"$items"))
    unknown=$(comm -13 <(sort -u <<<"$keys") <(sort -u <<<"$items"))
    echo "missing: $missing; not in the schema: $unknown"
    [ -z "$missing$unknown" ]
}

# Commands that share the options of another say so in their section.
declare -gA lender=([place]=predict [search]=predict [replay]=predict
    [check]=run [lint]=discover [explain]=discover [declared]=discover [check-placement]=discover)

# section COMMAND < page: what railgauge(1) says of it.
section() { awk -v c="$1" '/^[A-Z]/ {on = 0} /^   [a-zA-Z]/ {on = $0 ~ "^   railgauge " c "( |$)"} on'; }
names() { grep -oE -- '--[a-z][a-z_-]+' | sort -u; }
options_of() { # COMMAND: with aliases, without what its help says beside them
    railgauge "$1" --help=all | sed -nE 's/^ {2,6}(-., )?(--[a-z].*)/\2/p' | sed 's/  .*//; s/=[^,]*//' | names |
        grep -vxE -- '--(help|usage|version|cfg)'
}

@test "railgauge(1) has every option of every command, in its section or where that points to" {
    page=$(mandoc -T ascii src/railgauge.1 | sed 's/.\x08//g')
    shared=$(awk '/^[A-Z]/ {on = /^SHARED OPTIONS/} on' <<<"$page")
    missing=
    for c in $(railgauge --help | awk '/^  [a-z]/ {print $1}'); do
        own=$(section "$c" <<<"$page")
        [ -n "$own" ] || missing+=" $c"
        from=${lender[$c]-}
        [ -z "$from" ] || grep -qw "$from" <<<"$own" || missing+=" $c: that it takes options of $from"
        known=$({ echo "$own"; echo "$shared"; [ -z "$from" ] || section "$from" <<<"$page"; } | names)
        for o in $(comm -23 <(options_of "$c") <(echo "$known")); do missing+=" $c $o"; done
    done
    echo "missing:$missing"
    [ -z "$missing" ]
}

@test "railgauge(1) has no option that no command takes, and every variable that is asked for" {
    taken=$({ for c in $(railgauge --help | awk '/^  [a-z]/ {print $1}'); do railgauge "$c" --help=all; done
        for c in discover probe replay; do railgauge-probe $c --help=all; done; } | names)
    said=$(grep '^\.It .*Fl -' src/railgauge.1 | grep -oE 'Fl -[a-z][a-z_-]+' | sed 's/Fl -/--/' | sort -u)
    unknown=$(comm -23 <(echo "$said") <(echo "$taken"))
    echo "unknown: $unknown"
    [ -z "$unknown" ]
    told=$(awk '/^\.Sh ENVIRONMENT/ {on = 1} /^\.Sh FILES/ {on = 0} on' src/railgauge.1)
    for v in $(grep -rhoE 'getenv\("[A-Z_]+"\)' src topo jobs | grep -oE '[A-Z_]{2,}' | sort -u); do
        case $v in NCCL_*) continue ;; esac
        grep -qw "$v" <<<"$told" || { echo "$v is not in ENVIRONMENT"; false; }
    done
}

@test "uninstall takes away what install put there" {
    make -s uninstall DESTDIR="$ROOT" SAN="$RG_SAN" >/dev/null
    [ "$(find "$ROOT" -type f -o -type l | wc -l)" -eq 0 ]
}
