#!/usr/bin/env bats
# main.bats - the program's front door: help, version, unknown words, what it links.

bats_require_minimum_version 1.5.0
golden=$PWD/tests/golden/matrix.json

setup() {
    commands=$(railgauge --help | awk '/^  [a-z]/ {print $1}') && [ -n "$commands" ]
}

@test "help lists every command on stdout and is good" {
    [ "$(wc -w <<<"$commands")" -ge 23 ]
    run --separate-stderr railgauge --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    for c in $commands; do
        grep -qE "^  $c +[a-zA-Z]" <<<"$output"
    done
}

@test "no command at all is usage, on stderr" {
    run --separate-stderr railgauge
    [ "$status" -eq 64 ]
    [ -z "$output" ]
    [[ $stderr == "usage: railgauge COMMAND"* ]]
}

@test "an unknown command is named" {
    run --separate-stderr railgauge mesure
    [ "$status" -eq 64 ]
    [ "$stderr" = 'railgauge: no command "mesure"; railgauge --help lists them' ]
}

@test "help groups the commands by what one wants, each group with some" {
    run railgauge --help
    for title in measure "judge what was measured" "predict and place jobs" "hand on to other tools"; do
        grep -A1 -Fx "$title:" <<<"$output" | grep -qE '^  [a-z]' || { echo "$title"; false; }
    done
    [ "$(wc -L <<<"$output")" -le 100 ]
}

@test "of a word that is not known the one that was meant is said" {
    cd "$BATS_TEST_TMPDIR"
    while IFS='|' read -r words meant; do
        reads "" "$words"
        [ "$status" -eq 64 ] || { echo "$words: $status $stderr"; false; }
        [[ $stderr == "railgauge"*"did you mean $meant?"* ]] || { echo "$words: $stderr"; false; }
    done <<EOF
perdict|"predict"
run --nosie 3%|--noise
predict x --layuot tp=8|--layout
models llama3-8b|"llama3.1-8b"
predict --fabric gb200 --model llama3.1-8b|"gb200-nvl72"
claims mlperfv6|"mlperf-v6"
predict --fabric hgx-h100 --model llama3.1-8b --layout dpshard=8|"dp_shard"
show $golden teirs|"tiers"
export -f slurm_blok $golden|"slurm-block"
place $golden --write rankfle|"rankfile"
plot $golden heta|"heat"
plan --op al_gather x|"all_gather"
cost $golden allgahter 0-3 1M|"all_gather"
cost $golden m00 n01 1M|"n00"
import --op allreduc x|"all_reduce"
run -t simm|"sim"
run --fabric hgx-h100 --fault slow_nick=1:.5|"slow-nic"
EOF
    echo '{"format": "railgauge-limits", "version": 1, "title": "x", "limits": [{"check": "dead-parts", "atmost": "0", "source": "x"}]}' >l.json
    run --separate-stderr railgauge accept "$golden" --limits l.json
    [ "$status" -eq 65 ]
    [ "$stderr" = 'railgauge accept: l.json: limits[0]: unknown key: atmost (did you mean "at_most"?)' ]
    run --separate-stderr railgauge nodes "$golden" --job 'all_gather 1M' --nodes n0O
    [ "$stderr" = 'railgauge nodes: --nodes: node "n0O" is not among the 8 of the matrix (did you mean "n00"?)' ]
    # What is a value, or the beginning of an option, is no mistake of that kind.
    run --separate-stderr railgauge export --list --name --nosie
    [ "$status" -eq 0 ]
    run --separate-stderr railgauge export --zzzz
    [[ $stderr != *"did you mean"* ]]
}

@test "another file of a campaign where a matrix is wanted is called by its name" {
    cd "$BATS_TEST_TMPDIR"
    railgauge run --fabric hgx-h100 --racks 1 -b 1M -e 1M --no-plots -o c >/dev/null || [ $? -le 2 ]
    for c in "show {}" "cost {} 0 1 1M" "predict {}" "nodes {} --need 1 --job all_gather~1M" "export -f tsv {}" "accept {}"; do
        reads c/points.tsv "$c"
        [ "$status" -eq 65 ]
        [[ $stderr == "railgauge ${c%% *}: c/points.tsv is a campaign's points: give its directory"*"railgauge fit" ]] || { echo "$stderr"; false; }
        reads c/plan.tsv "$c"
        [[ $stderr == *"c/plan.tsv is the plan of a campaign"* ]] || { echo "$stderr"; false; }
    done
    reads c/topology.json "show {}"
    [[ $stderr == *"c/topology.json is a topology, in which nothing is measured"* ]]
    reads c/points.tsv "lint {}"
    [ "$stderr" = 'railgauge lint: c/points.tsv: this is railgauge-points where "railgauge-topology" is needed' ]
}

@test "version says name and number" {
    run railgauge --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^railgauge\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "every command has help with an example, and exits good" {
    for c in $commands; do
        run --separate-stderr railgauge "$c" --help
        [ "$status" -eq 0 ] || { echo "$c: $status $stderr"; false; }
        [[ $output == Usage:* ]] || { echo "$c: $output"; false; }
        grep -q "railgauge $c" <<<"$output" || { echo "$c has no example"; false; }
    done
}

@test "an unknown option of any command is usage and names itself" {
    for c in $commands; do
        run --separate-stderr railgauge "$c" --no-such-option
        [ "$status" -eq 64 ] || { echo "$c: $status"; false; }
        [[ $stderr == *"$c: unrecognized option '--no-such-option'"* ]] || { echo "$c: $stderr"; false; }
    done
}

@test "a missing file of any reader is no input and named" {
    for c in "fit /nonexistent/points.tsv" "show /nonexistent/m.json" "plot /nonexistent/m.json"; do
        # shellcheck disable=SC2086
        run --separate-stderr railgauge $c
        [ "$status" -eq 66 ] || { echo "$c: $status $stderr"; false; }
        [[ $stderr == *"/nonexistent/"*"No such file or directory"* ]] || { echo "$c: $stderr"; false; }
    done
}

@test "railgauge links neither MPI nor hwloc nor CUDA" {
    run ldd "$RG_BUILD/railgauge"
    [ "$status" -eq 0 ]
    [[ $output == *libjansson* ]]
    ! grep -E 'libmpi|libopen-|libpmix|libhwloc|libcuda|libnccl' <<<"$output"
}

@test "every command takes -v, -q and --color, and names them in its help" {
    for c in $commands; do
        run railgauge "$c" --help
        for o in --verbose --quiet --color; do
            grep -qE "^ {2,6}(-., )?$o" <<<"$output" || { echo "$c: no $o"; false; }
        done
    done
    run --separate-stderr railgauge show "$golden" --color=sometimes
    [ "$status" -eq 64 ]
    [[ $stderr == *'--color: "sometimes" is none of auto, always, never'* ]]
}

@test "-v says which files are read and written, -q leaves nothing but errors beside the answer" {
    cd "$BATS_TEST_TMPDIR"
    plain=$(railgauge show "$golden" 2>err)
    [ ! -s err ]
    [ "$(railgauge show "$golden" -v 2>err)" = "$plain" ]
    grep -Fxq "railgauge show: debug: reading $golden" err
    railgauge export -f tsv "$golden" -o x.tsv -v 2>err
    grep -Fxq "railgauge export: debug: wrote x.tsv" err
    jq 'del(.checksum)' "$golden" >bare.json
    railgauge show bare.json 2>err >/dev/null
    grep -q checksum err
    railgauge show -q bare.json 2>err >/dev/null
    [ ! -s err ]
    run --separate-stderr railgauge show -q nowhere
    [ "$status" -eq 66 ]
    [ -n "$stderr" ]
}

@test "colour: on a terminal alone, unless it is asked for or forbidden" {
    cd "$BATS_TEST_TMPDIR"
    red=$'\e[31m'
    slow=$BATS_TEST_DIRNAME/../golden/export/campaign/matrix.json
    on_terminal() { TERM=xterm script -qec "railgauge $1" /dev/null </dev/null | cat; }
    [[ $(railgauge accept "$slow") != *$'\e'* ]]
    [[ $(railgauge accept "$slow" --color=always) == "${red}FAIL"$'\e[0m'*"$red"* ]]
    [[ $(railgauge show "$slow" --color=always) == *"${red}NIC of n01"* ]]
    [[ $(railgauge show "$slow" --color=always --json) != *$'\e'* ]]
    # Columns stay where they are.
    [ "$(railgauge accept "$slow" --color=always | sed 's/\x1b\[[0-9]*m//g')" = "$(railgauge accept "$slow")" ]
    command -v script >/dev/null || skip "no script here (package bsdutils)"
    [[ $(on_terminal "accept $slow") == *"${red}FAIL"* ]]
    [[ $(on_terminal "accept $slow --color=never") != *$'\e'* ]]
    [[ $(NO_COLOR=1 on_terminal "accept $slow") != *$'\e'* ]]
    [[ $(NO_COLOR=1 on_terminal "accept $slow --color=always") == *"${red}FAIL"* ]]
}

@test "a full disk under stdout is not good, whatever was to be printed" {
    run bash -c 'railgauge --help >/dev/full'
    [ "$status" -eq 74 ]
    for c in $commands; do
        for o in --help --usage; do
            run bash -c "railgauge $c $o >/dev/full"
            [ "$status" -eq 74 ] || { echo "$c $o: $status"; false; }
            [[ $output == "railgauge"*"cannot write to standard output: No space left on device" ]] || { echo "$c $o: $output"; false; }
        done
    done
    for c in "show $golden" "show $golden --json" "cost $golden 0 9 1M" models "discover --list-fabrics" \
        "export -f tsv $golden" "nodes $golden --need 2 --job 'all_gather 1M'"; do
        run bash -c "railgauge $c >/dev/full"
        [ "$status" -eq 74 ] || { echo "$c: $status"; false; }
        [[ $output == "railgauge ${c%% *}: "*"No space left on device" ]] || { echo "$c: $output"; false; }
    done
}

@test "a reader that goes away early ends a command without a word" {
    for c in "show $golden pairs --json" "export -f tsv --per endpoint $golden" "search --help"; do
        run --separate-stderr env --default-signal=PIPE bash -c "railgauge $c | head -1"
        [ -z "$stderr" ] || { echo "$c: $stderr"; false; }
        [ "${#lines[@]}" -eq 1 ]
    done
}

# program WORDS: the program that has this command.
program() { case $1 in refit* | curves* | score* | claims*) echo railgauge-calibrate ;; *) echo railgauge ;; esac; }

# reads FILE WORDS: the program with these words, where {} stands for FILE and ~ for a blank within a word.
reads() {
    local words
    read -ra words <<<"${2//"{}"/$1}"
    run --separate-stderr "$(program "$2")" "${words[@]//"~"/ }"
}

# Each reader with its one file.
readers=("fit {} x y" "show {}" "cost {} 0 1 1M" "predict {}" "place {}" "search {}" "replay {}" "plot {}" "export -f npy {}"
    "plan {}" "lint {}" "declared {}" "explain {} 0 1" "curves {}" "import {}" "refit {}" "score {}" "discover {}"
    "nodes {} --need 1 --job all_gather~1M" "check-placement --segment 4 --hosts {}" "probe --fabric hgx-h100 --plan {}")

refused_by_each() { # FILE CODE TEXT
    for c in "${readers[@]}"; do
        reads "$1" "$c"
        [ "$status" -eq "$2" ] || { echo "$c: $status $stderr"; return 1; }
        [[ $stderr == "$(program "$c") ${c%% *}: $3"* ]] || { echo "$c: $stderr"; return 1; }
        [ -z "$output" ] || { echo "$c: $output"; return 1; }
    done
}

@test "a file that is not there, or is empty, is an error of every reader, which names it" {
    cd "$BATS_TEST_TMPDIR"
    refused_by_each ./gone/file 66 "./gone/file: No such file or directory"
    : >void
    refused_by_each ./void 65 "./void:"
}

# What takes a matrix takes the folder of its campaign.
on_matrix=("show {} tiers" "cost {} 0 9 1M" "nodes {} --need 2 --job all_gather~1M" "predict {} --flops 1e14"
    "place {} --flops 1e14 --layout dp=8 --write order" "search {} --flops 1e14 --tsv -" "explain {} 0 9" "export -f tsv {}")

@test "the folder of a campaign stands for its matrix; without one it is no input" {
    cd "$BATS_TEST_TMPDIR"
    mkdir bare campaign
    cp "$golden" campaign/matrix.json
    for c in "${on_matrix[@]}"; do
        reads bare "$c"
        [ "$status" -eq 66 ] || { echo "$c: $status $stderr"; false; }
        [ "$stderr" = "railgauge ${c%% *}: bare/matrix.json: No such file or directory" ] || { echo "$c: $stderr"; false; }
        reads "$golden" "$c"
        [ "$status" -eq 0 ] || { echo "$c: $status $stderr"; false; }
        same=$output
        reads campaign "$c"
        [ "$output" = "$same" ] || { echo "$c: $output $stderr, not $same"; false; }
    done
}

@test "numbers keep their point in any locale, without HOME and without a terminal" {
    here=$(railgauge cost "$golden" 0 9 1M --json)
    for l in de_DE.UTF-8 fr_FR C POSIX tr_TR.UTF-8; do
        [ "$(env -u HOME -u TERM LC_ALL=$l LANG=$l COLUMNS=60 NO_COLOR=1 railgauge cost "$golden" 0 9 1M --json)" = "$here" ]
    done
    [ "$(COLUMNS=60 railgauge show "$golden" pairs | wc -L)" -le 60 ]
}

# mpicc WORDS... - a site's mpicc, which says that it would run these words.
mpicc() {
    mkdir -p bin
    printf '#!/bin/sh\n[ "$1" = -show ] && cat <<"E"\n%s\nE\n' "$*" >bin/mpicc
    chmod +x bin/mpicc
}
builds() { MAKEFLAGS='' PATH="$PWD/bin:$PATH" make --no-print-directory -n -C "$BATS_TEST_DIRNAME/../.." BUILD="$PWD/b" "$@" 2>&1; }

@test "an MPI is found by its mpicc, as sites have it; without any, a probe that was asked for is an error" {
    pkg-config --exists hwloc || skip "needs hwloc"
    cd "$BATS_TEST_TMPDIR" || return 1
    i=/opt/intel/oneapi/mpi/2021.17
    while IFS='|' read -r says compiled linked; do
        mpicc "$says"
        run builds railgauge-probe
        [ "$status" -eq 0 ] || { echo "$says: $output"; false; }
        [[ $(grep -e '-c -o .*/src/probe_main.c.o' <<<"$output") == *" $compiled "* ]]
        [[ $(grep -e "-o $PWD/b/railgauge-probe " <<<"$output") == *" $linked "* ]] || { echo "$says: $output" | tail -n 1; false; }
    done <<TXT
gcc -I"$i/include" -L"$i/lib" -Xlinker --enable-new-dtags -Xlinker -rpath -Xlinker "$i/lib" -lmpifort -lmpi -ldl|-I"$i/include"|-L"$i/lib" -Wl,--enable-new-dtags -Wl,-rpath -Wl,"$i/lib" -lmpifort -lmpi -ldl
gcc -I/opt/hpcx/ompi/include -pthread -L/opt/hpcx/ompi/lib -Wl,-rpath -Wl,/opt/hpcx/ompi/lib -lmpi|-I/opt/hpcx/ompi/include -pthread|-pthread -L/opt/hpcx/ompi/lib -Wl,-rpath -Wl,/opt/hpcx/ompi/lib -lmpi
craycc -I/opt/cray/pe/mpich/8.1.30/ofi/crayclang/17.0/include -L/opt/cray/pe/mpich/8.1.30/ofi/crayclang/17.0/lib -lmpi_cray|-I/opt/cray/pe/mpich/8.1.30/ofi/crayclang/17.0/include|-L/opt/cray/pe/mpich/8.1.30/ofi/crayclang/17.0/lib -lmpi_cray
clang -fprofile-use=/x/p.profdata -fPIC -Wl,-z,noexecstack -I/opt/mvapich/include -L/opt/mvapich/lib -Wl,-rpath -Wl,/opt/mvapich/lib -lmpi|-I/opt/mvapich/include|-Wl,-z,noexecstack -L/opt/mvapich/lib -Wl,-rpath -Wl,/opt/mvapich/lib -lmpi
TXT
    # One for each of two MPIs: objects and program have its name, and what is of no MPI is compiled once.
    run builds MPI=intel railgauge-probe
    [[ $(tail -n 1 <<<"$output") == *"-o $PWD/b/railgauge-probe-intel $PWD/b/mpi-intel/src/probe_main.c.o "* ]]
    [[ $output != *mpi-intel/src/base* ]]
    # No mpicc: a Cray's folder, then pkg-config, and at last the end says what is missing.
    printf '#!/bin/sh\nexit 1\n' >bin/mpicc
    # shellcheck disable=SC2016
    printf '#!/bin/sh\ncase "$*" in *ompi-c* | *mpich*) exit 1 ;; esac\nexec pkg-config "$@"\n' >pkg
    chmod +x pkg
    run builds PKG="$PWD/pkg" CRAY_MPICH_DIR=/opt/cray/mpich railgauge-probe
    [[ $(tail -n 1 <<<"$output") == *" -L/opt/cray/mpich/lib -Wl,-rpath,/opt/cray/mpich/lib -lmpi "* ]]
    run builds PKG="$PWD/pkg"
    [ "$status" -eq 0 ]
    [[ $output == *"*** not built: %s"*"'railgauge-probe: mpicc -show names no MPI, and $PWD/pkg knows none'"* ]]
    for asked in railgauge-probe MPI=intel MPICC=/nowhere/mpicc; do
        run builds PKG="$PWD/pkg" "$asked"
        [ "$status" -ne 0 ]
        [[ $output == *"*** railgauge-probe: "*"mpicc -show names no MPI"* ]]
    done
    run builds PKG="$PWD/pkg" MPICC=/nowhere/mpicc clean
    [ "$status" -eq 0 ]
    printf '#!/bin/sh\ncase "$*" in *hwloc*) exit 1 ;; esac\nexec pkg-config "$@"\n' >pkg
    run builds PKG="$PWD/pkg" railgauge-probe
    [[ $output == *"railgauge-probe: $PWD/pkg finds no hwloc (packages libhwloc-dev, hwloc-devel)"* ]]
}

@test "a probe of another MPI is found by its name" {
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -p bin
    printf '#!/bin/sh\n' | tee bin/railgauge-probe-intel >bin/railgauge-probe
    chmod +x bin/*
    cp "$RG_BUILD/railgauge" .
    dry() { env PATH="$PWD/bin:/usr/bin:/bin" "$@" ./railgauge run --ranks 2 --dry-run --launch "echo started" 2>&1; }
    cp bin/railgauge-probe .
    run dry env
    [[ $output == *"started $PWD/railgauge-probe "* ]]
    run dry RAILGAUGE_MPI=intel
    [[ $output == *"started $PWD/bin/railgauge-probe-intel "* ]]
    run dry RAILGAUGE_MPI=mvapich
    [ "$status" -eq 78 ]
    [[ $output == *"railgauge-probe-mvapich is neither beside railgauge nor in PATH (build it with make MPI=mvapich)"* ]]
    run dry RAILGAUGE_MPI=../intel
    [ "$status" -eq 64 ]
}

@test "whose mpirun it is, its file tells: Hydra has other words than Open MPI" {
    cd "$BATS_TEST_TMPDIR" || return 1
    printf '#!/bin/sh\n' >railgauge-probe
    chmod +x railgauge-probe
    cp "$RG_BUILD/railgauge" .
    root=$([ "$(id -u)" -ne 0 ] || echo "--allow-run-as-root ")
    mkdir -p bin
    while IFS='|' read -r file words; do
        mkdir -p "${file%/*}"
        printf '#!/bin/sh\ntouch "%s/started"\n' "$PWD" >"$file"
        chmod +x "$file"
        ln -sf "../$file" bin/mpirun
        run env PATH="$PWD/bin:/usr/bin:/bin" ./railgauge run --ranks 2 --hosts n1:1,n2:1 --dry-run
        echo "$file: $output"
        [[ $output == *"mpirun $words $PWD/railgauge-probe "* ]]
        [ ! -e started ]
    done <<TXT
usr/bin/mpiexec.hydra|-n 2 -hosts n1:1,n2:1
opt/mvapich-4.0/bin/mpirun|-n 2 -hosts n1:1,n2:1
opt/intel/oneapi/mpi/2021.17/bin/mpirun|-n 2 -hosts n1:1,n2:1
opt/intel/compilers_and_libraries_2019.5.281/linux/mpi/intel64/bin/mpirun|-n 2 -hosts n1:1,n2:1
opt/hpcx/ompi/bin/orterun|-n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 $root-H n1:1,n2:1
opt/intel/openmpi-5/bin/prterun|-n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 $root-H n1:1,n2:1
TXT
}
