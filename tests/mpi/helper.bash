# helper.bash - what the MPI tests share: how ranks are started and how points are read.
# shellcheck shell=bash

. "$BATS_TEST_DIRNAME/../await.bash"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# With sanitizers every start takes many seconds: MPI's own leaks are not looked for.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
build=${RG_BUILD:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build}
export PATH=$build:$PATH
probe=$build/railgauge-probe

need_mpi() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    [ -x "$probe" ] || skip "railgauge-probe is not built: no MPI was found"
}

# need_memory GIB - a check for it refuses with other words than those that are tested.
need_memory() {
    local free
    free=$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
    [ "$free" -ge "$1" ] || skip "needs $1 GiB of memory, $free GiB are free"
}

# need_stand_ins PROFILE_LINE... - GPUs and what drives them are the stand-ins' (tests/fake), as these lines say.
need_stand_ins() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    for l in cuda.so.1 nccl.so.2 cublasLt.so.13; do
        [ -e "$build/fake/lib$l" ] || skip "the stand-ins are not built (make check builds them)"
    done
    printf '%s\n' "$@" >gpus.txt
    export LD_LIBRARY_PATH=$build/fake FAKE_GPU=$PWD/gpus.txt
}

# The stand-in of libibverbs, for what devices says (tests/fake/verbs_fake_text.c).
need_fake_verbs() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    [ -e "$build/fake/libverbs_fake.so.1" ] || skip "the stand-in is not built (make check builds it)"
    export RAILGAUGE_IBVERBS=$build/fake/libverbs_fake.so.1 FAKE_VERBS=$PWD/devices.txt
}
devices() { printf '%s\n' "$@" >devices.txt; }
need_verbs() {
    "$probe" probe --help=network 2>&1 | grep -q -- --hca || skip "railgauge-probe has no transport verbs"
}

# More ranks than cores are fine.
mpirun=(mpirun --oversubscribe --bind-to none --mca btl vader,self --mca mpi_yield_when_idle 1)

# ranks N PROGRAM... - what takes longer than this will never end.
ranks() { timeout 300 "${mpirun[@]}" -n "$@"; }

# rows [FILE] - how many points it has; has_rows N [FILE] - at least so many?
rows() { grep -vc '^[#r]' "${1:-points.tsv}"; }
has_rows() { [ -s "${2:-points.tsv}" ] && [ "$(rows "${2:-points.tsv}")" -ge "$1" ]; }

# column NAME FILE - the cells of one column of points.tsv.
column() {
    awk -F'\t' -v name="$1" '/^#/ { next } !c { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        { print $c }' "$2"
}

# plan LINE... - a plan.tsv of these rounds (without their number): stage op from to factor epochs groups
plan() {
    local i=0 line
    printf '# railgauge-plan 1\nround\tstage\top\tbytes_from\tbytes_to\tfactor\tepochs\tgroups\n'
    for line; do
        printf '%s\t%s\n' "$((i++))" "${line// /$'\t'}"
    done
}
