#!/usr/bin/env bats
# trixie.bats - the launchers of Debian 13, Open MPI 5 and MPICH in a chroot, read what railgauge place
# writes, by the very commands that it prints, and start each rank where it says.

bats_require_minimum_version 1.5.0

setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export top
    trixie=$("$top/tests/chroot.sh" --user $$ trixie openmpi-bin mpich libmpich-dev libjansson4 libyaml-0-2 libexpat1 2>"$BATS_FILE_TMPDIR/why") || trixie=
    export trixie
}

teardown_file() {
    [ -z "${trixie:-}" ] || "$top/tests/chroot.sh" --leave trixie
}

setup() {
    load helper
    load nodes
    [ -n "$trixie" ] || skip "$(tail -n 1 "$BATS_FILE_TMPDIR/why")"
    cd "$BATS_TEST_TMPDIR" || return 1
    golden=$top/tests/golden/matrix.json
    at=/opt/rg/launch
    rm -rf "${trixie:?}$at"
    mkdir -p "$trixie$at"
    nodes_make "$trixie$at"
}

# inside COMMAND - in the chroot, where the files are. A launcher that hangs is started once more: its daemons
# wait for each other for ever, now and then, on a busy machine.
inside() {
    cp wanted rankfile hostfile mpich "$trixie$at/" 2>/dev/null || true
    local try code
    for try in 1 2; do
        timeout 100 chroot "$trixie" sh -c "cd $at && $1" 3>&- >said && break
        code=$?
        [ "$code" = 124 ] && [ "$try" = 1 ] || return "$code"
        echo "# it hung: once more" >&2
    done
    cat said
}

# said FORM BEFORE - the command that its first line prints after BEFORE.
said() {
    sed -n "1s/^.*$2\\([^;]*\\).*/\\1/p" "$1" | sed "s/FILE/$1/g"
}

@test "Open MPI 5 binds each rank of a rankfile to the core of the node that it names" {
    [ "$(nproc)" -ge 2 ] || skip "one core"
    nodes_placed
    command=$(said rankfile "Open MPI 5: ")
    [[ $command == "mpirun -n 6 "* ]]
    inside "${command/mpirun/mpirun.openmpi --prtemca plm_ssh_agent $at/ssh} $at/say" >landed
    cat landed
    nodes_cores
}

@test "Open MPI 5 deals ranks over the nodes of a hostfile in the order that was found" {
    nodes_placed
    command=$(said hostfile "# ")
    [[ $command == "mpirun -n 6 "* ]]
    inside "${command/mpirun/mpirun.openmpi --prtemca plm_ssh_agent $at/ssh} $at/say" | sort -n >landed
    cat landed
    diff wanted <(cut -d' ' -f1,2 landed)
}

@test "the probe for MPICH, built beside the other, measures; a launcher of another MPI is an error" {
    printf '#!/bin/sh\nchroot "%s" mpicc.mpich -show | sed "s|/usr/|%s/usr/|g"\n' "$trixie" "$trixie" >mpicc
    chmod +x mpicc
    [ -z "${RG_SAN:-}" ] || skip "the chroot has no libraries of sanitizers"
    mkdir b # a copy: other tests run the programs of this build, whose flags may be others
    cp -a "$RG_BUILD"/{src,topo,kernels,lib,flags,prefix} b
    MAKEFLAGS='' make -C "$top" BUILD="$PWD/b" MPI=mpich MPICC="$PWD/mpicc" LDFLAGS=-Wl,--allow-shlib-undefined \
        railgauge-probe >made 2>&1 || { cat made; false; }
    cp "$RG_BUILD/railgauge" b/railgauge-probe-mpich "$trixie$at/"
    inside "RAILGAUGE_MPI=mpich ./railgauge run --launch 'mpiexec.hydra -n 2' --op pair_bw -b 8 -e 8K --epochs 1 -n 3 \
        --no-plots --no-retest --no-verdict -o o"
    grep -q '^MPI: MPICH' said
    grep -q pair_bw "$trixie$at/o/points.tsv"
    # The mpirun in PATH is another than Open MPI's.
    mkdir "$trixie$at/mpich"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nexec /usr/bin/mpirun.mpich "$@"\n' >"$trixie$at/mpich/mpirun"
    chmod +x "$trixie$at/mpich/mpirun"
    inside "PATH=$at/mpich:/usr/bin:/bin RAILGAUGE_MPI=mpich ./railgauge run --ranks 2 --op pair_bw -b 8 -e 8 --epochs 1 -n 3 \
        --no-plots --no-retest --no-verdict -o own"
    grep -q '^MPI: MPICH' said
    run inside "mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 ./railgauge-probe-mpich probe -o p.tsv 2>&1"
    [ "$status" -eq 78 ]
    grep -q 'the launcher started 2 processes (OMPI_COMM_WORLD_SIZE), but each is alone in its MPI (MPICH' said
    [ ! -e "$trixie$at/p.tsv" ]
}

@test "MPICH deals ranks over the nodes of its hostfile in the order that was found" {
    nodes_placed
    command=$(said mpich "# ")
    [[ $command == "mpiexec -n 6 "* ]]
    inside "${command/mpiexec/mpiexec.hydra -launcher ssh -launcher-exec $at/ssh} $at/say" | sort -n >landed
    cat landed
    diff wanted <(cut -d' ' -f1,2 landed)
}
