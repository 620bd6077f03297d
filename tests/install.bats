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
    [ "$(readlink usr/local/bin/railgauge-calibrate)" = railgauge ]
    [[ $(usr/local/bin/railgauge-calibrate --help) == *"  refit  "* ]]
    version=$(usr/local/bin/railgauge --version | cut -d' ' -f2)
    [ -f "usr/local/lib/librailgauge.so.$version" ]
    [ "$(readlink usr/local/lib/librailgauge.so.0)" = "librailgauge.so.$version" ]
    [ "$(readlink usr/local/lib/librailgauge.so)" = librailgauge.so.0 ]
    [ "$(readlink usr/local/lib/libnccl-profiler-railgauge.so)" = railgauge/librailgauge-nccl.so ]
    [ -f usr/local/lib/libnccl-profiler-railgauge.so ]
    for page in LICENSE README.md NEWS.md design.md; do [ -f "usr/local/share/doc/railgauge/$page" ]; done
    [ -f usr/local/lib/systemd/system/railgauge-check.timer ]
    [ -f usr/local/include/railgauge.h ]
    for page in man1/railgauge.1 man1/railgauge-check-placement.1 man1/railgauge-calibrate.1 man1/railgauge-calibrate-refit.1 man3/railgauge.3 man5/railgauge-matrix.5; do
        [ -f "usr/local/share/man/$page" ]
    done
    for script in bash-completion/completions/railgauge zsh/site-functions/_railgauge fish/vendor_completions.d/railgauge.fish \
        bash-completion/completions/railgauge-calibrate zsh/site-functions/_railgauge-calibrate fish/vendor_completions.d/railgauge-calibrate.fish; do
        grep -qE 'made by: railgauge(-calibrate)? completion' "usr/local/share/$script"
    done
    [ -f usr/local/share/railgauge/jobs/slurm/job_submit.lua ]
    [ -f usr/local/share/railgauge/topo/fabrics/gb200-nvl72.json ]
    for job in mpirun.sh slurm/gb200-nvl72.sbatch kubernetes/mpijob-gb200.yaml python/pyproject.toml python/railgauge/matrix.py; do
        cmp "$OLDPWD/jobs/$job" "usr/local/share/railgauge/jobs/$job"
    done
    [ -x usr/local/share/railgauge/jobs/mpirun.sh ]
    [ "$(find . -type f ! -path './usr/local/*' | wc -l)" -eq 0 ]
}

# A build with other folders than this one's: objects are the same but for what holds the path of the data.
@test "each folder is where it is said to be, with spaces too, and no file names another" {
    cd "$BATS_TEST_TMPDIR"
    mkdir b
    cp -a "$RG_BUILD"/{flags,mpi_flags,src,topo,kernels,lib,railgauge,railgauge-probe,librailgauge*} b/ 2>/dev/null || true
    words=(-C "$OLDPWD" BUILD="$PWD/b" DESTDIR="$PWD/dest" PREFIX="/opt/my gauge" LIBDIR=/usr/lib/x86_64-linux-gnu MANDIR=/man DOCDIR=/doc UNITDIR=/units)
    make -s "${words[@]}" SAN="$RG_SAN" install
    [ -x "dest/opt/my gauge/bin/railgauge" ]
    for f in usr/lib/x86_64-linux-gnu/{librailgauge.so,railgauge/librailgauge-nccl.so,pkgconfig/railgauge.pc} man/man1/railgauge.1 doc/README.md; do
        [ -f "dest/$f" ]
    done
    grep -qx 'ExecStart=/opt/my gauge/bin/railgauge check .*' dest/units/railgauge-check.service
    # what runs on the machine itself; a container has the image's own folders, and pages speak of the usual ones
    run ! grep -rIl --exclude='*.yaml' --exclude=Containerfile --exclude-dir=man --exclude-dir=doc /usr/local dest
    [ "$(sed -n 's/^libdir=//p' dest/usr/lib/x86_64-linux-gnu/pkgconfig/railgauge.pc)" = /usr/lib/x86_64-linux-gnu ]
    [[ $(PKG_CONFIG_PATH=dest/usr/lib/x86_64-linux-gnu/pkgconfig pkg-config --cflags railgauge) == '-I/opt/my\ gauge/include '* ]]
    mv "dest/opt/my gauge/share" "dest/elsewhere" # not beside the program: only the path within it is left
    run "dest/opt/my gauge/bin/railgauge" models
    [ "$status" -ne 0 ]
    grep -qF "/opt/my gauge/share/railgauge" "dest/opt/my gauge/bin/railgauge"
    make -s "${words[@]}" uninstall >/dev/null
    rm -r dest/elsewhere
    [ "$(find dest -type f -o -type l | wc -l)" -eq 0 ]
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
    lib="$ROOT/usr/local/lib/railgauge/librailgauge-nccl.so"
    exported=$(nm -D --defined-only "$lib" | awk '$2 ~ /[TDBRW]/ && $3 !~ /^_/ { print $3 }' | sort | xargs)
    readelf -d "$lib" | grep -F 'Library soname: [libnccl-profiler-railgauge.so]'
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

# each_command FUNCTION: call it with each program, command and purpose that has a page.
each_command() {
    for p in railgauge railgauge-calibrate; do
        "$p" --help | sed -nE 's/^  ([a-z-]+) +(.*)/\1\t\2/p' | while IFS=$'\t' read -r c help; do
            [ "$p $c" = "railgauge-calibrate completion" ] || "$1" "$p" "$c" "$help" || return 1
        done || return 1
    done
}
text() { mandoc -T ascii "$1" | sed 's/.\x08//g'; }

has_page() {
    text "man1/$1-$2.1" >"$BATS_TEST_TMPDIR/page"
    tr -s ' \n' ' ' <"$BATS_TEST_TMPDIR/page" >"$BATS_TEST_TMPDIR/words"
    grep -qF -- "$1-$2 - $3" "$BATS_TEST_TMPDIR/words" && grep -qF "SYNOPSIS $1 $2 [option ...]" "$BATS_TEST_TMPDIR/words" &&
        [ "$(grep -xE '[A-Z][A-Z ]+' "$BATS_TEST_TMPDIR/page" | xargs)" = "NAME SYNOPSIS DESCRIPTION OPTIONS FILES EXIT STATUS EXAMPLES SEE ALSO" ] || {
        echo "$1 $2"
        return 1
    }
    echo . >>"$BATS_TEST_TMPDIR/pages"
}

@test "the manual pages are clean, and each command has one, with all sections" {
    cd "$ROOT/usr/local/share/man"
    mandoc -T lint -W warning man?/*
    each_command has_page
    [ "$(find man1 -name 'railgauge-*-*.1' -o -name 'railgauge-[a-z]*.1' ! -name railgauge-calibrate.1 | sort -u | wc -l)" -eq "$(wc -l <"$BATS_TEST_TMPDIR/pages")" ]
}

# Options, headlines of groups, exit codes and examples of the page are those of the rows.
is_of_rows() {
    "$1" "$2" --help=tsv >"$BATS_TEST_TMPDIR/rows"
    text "man1/$1-$2.1" >"$BATS_TEST_TMPDIR/page"
    sed -n '/^OPTIONS/,/^FILES/p' "$BATS_TEST_TMPDIR/page" | grep -E '^ {5}-' | sed -E 's/^ +//; s/  .*//' | grep -oE -- '--[a-z][a-z0-9_-]*' | sort >"$BATS_TEST_TMPDIR/said"
    diff <(awk -F'\t' '$1 == "option" || $1 == "alias" {print "--" $3}' "$BATS_TEST_TMPDIR/rows" | sort) "$BATS_TEST_TMPDIR/said" || { echo "$1 $2"; return 1; }
    diff <(awk -F'\t' '$1 == "headline" {print toupper(substr($7, 1, 1)) substr($7, 2)}' "$BATS_TEST_TMPDIR/rows") \
        <(sed -n '/^OPTIONS/,/^FILES/s/^   \([A-Z].*\)/\1/p' "$BATS_TEST_TMPDIR/page" | grep -vx 'Every command') || { echo "$1 $2"; return 1; }
    sed -n '/^EXAMPLES/,/^SEE ALSO/p' "$BATS_TEST_TMPDIR/page" | tr -d '\\' | tr -s ' \n' ' ' >"$BATS_TEST_TMPDIR/examples"
    awk -F'\t' '$1 == "example" {print $4}' "$BATS_TEST_TMPDIR/rows" | tr -d '\\' | while read -r line; do
        grep -qF -- "$line" "$BATS_TEST_TMPDIR/examples" || { echo "$1 $2: no example $line"; return 1; }
    done || return 1
    # completion offers the same
    [ "$("$1" completion fish | grep -oE -- "seen_subcommand_from $2'.* -l [a-z0-9_-]+" | grep -oE -- '[a-z0-9_-]+$' | sort | sed 's/^/--/')" = "$(cat "$BATS_TEST_TMPDIR/said")" ] ||
        { echo "$1 $2: completion"; return 1; }
}

@test "each page has all options by group, exit codes and examples, and completion has the same options" {
    cd "$ROOT/usr/local/share/man"
    each_command is_of_rows
}

@test "a release is this commit's files; readers of C learn how each is compiled; objects go where BUILD says" {
    git rev-parse HEAD >/dev/null 2>&1 || skip "not a clone"
    make -s dist BUILD="$BATS_TEST_TMPDIR/b"
    [ "$(tar tf "$BATS_TEST_TMPDIR"/b/railgauge-*.tar.gz | grep -vc '/$')" -eq "$(git ls-tree -r --name-only HEAD | wc -l)" ]
    make -s compile_commands.json
    jq -r '.[] | select(.file == "src/base/mem.c") | .command + " -fsyntax-only"' compile_commands.json >"$BATS_TEST_TMPDIR/command"
    sh "$BATS_TEST_TMPDIR/command"
    make -s BUILD="$BATS_TEST_TMPDIR/b" CPPFLAGS=-DSITE=1 "$BATS_TEST_TMPDIR/b/src/base/mem.c.o" # a site's words add to ours
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

names() { grep -oE -- '--[a-z][a-z_-]+' | sort -u; }
taken() { "$1" "$2" --help=all; }

@test "railgauge(1) has no option that no command takes, and every variable that is asked for" {
    taken=$({ each_command taken
        for c in discover probe replay; do railgauge-probe $c --help=all; done; } | names)
    said=$(grep -h '^\.It .*Fl -' src/railgauge.1 src/railgauge-calibrate.1 | grep -oE 'Fl -[a-z][a-z_-]+' | sed 's/Fl -/--/' | sort -u)
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
