#!/bin/sh
# quickstart.sh - from a bare Debian or Ubuntu to a finished campaign, or to finished tests.
#
#   sh jobs/quickstart.sh            install what building needs, build, measure this machine
#   sh jobs/quickstart.sh check      install what testing needs too, run make check
#   sh jobs/quickstart.sh --dry-run [check]      only say what would be done
set -eu

usage='usage: sh jobs/quickstart.sh [--dry-run] [check]'

# package and what it is for, one a line
for_building='
gcc              C compiler
libc6-dev        C library headers
make             runs the Makefile
pkg-config       tells the Makefile where libraries are
libjansson-dev   reads and writes JSON files
libexpat1-dev    reads the topology files of NCCL, hwloc and nvidia-smi (XML)
libyaml-dev      reads topology.yaml, node labels and models of topograph (YAML)
libhwloc-dev     reads the topology of a machine
libopenmpi-dev   MPI headers and compiler settings
openmpi-bin      mpirun starts the ranks
openssh-client   mpirun looks for it, also on one machine
gnuplot-nox      draws the pictures
fonts-dejavu-core   letters for the pictures
'
for_testing='
libcmocka-dev    C unit tests
bats             tests of the command line
perl             runs the tests side by side and sums them up
jq               tests look into JSON files
iproute2         the lab builds two racks of network namespaces
ibsim-utils      an InfiniBand subnet to read, without hardware
infiniband-diags ibnetdiscover, whose text is read
libibnetdisc-dev its library, and the headers that ours must agree with
libibmad-dev     those headers take these
libibumad-dev    and these
qemu-system-x86  two machines with soft-RoCE NICs, whose kernel apt-get downloads (tests/verbs/vm.sh)
busybox-static   what those machines start with
cpio             packs that
kmod             and knows which modules it needs
ibverbs-providers    RDMA without hardware, in those machines
rdma-core        its devices and their rules
perftest         measures there beside railgauge
debootstrap      other releases of Debian, for the real Slurm, Open MPI 5, MPICH, ibsim (tests/chroot.sh)
procps           the lab looks for processes it started
libsimgrid-dev   the MPI program on a simulated cluster
g++              smpicc of SimGrid
mandoc           checks the manual pages
lua5.4           runs the example of a job_submit script for Slurm
python3          reads campaigns, checks what was written
python3-pip      builds and installs the Python package
python3-venv     apart from the Python of the system
gcc-aarch64-linux-gnu   host code for Grace nodes compiles too
libc6-dev-arm64-cross   C library headers for it
python3-jsonschema   job files against the schemas of Kubernetes
python3-yaml         reads them
shellcheck           job scripts
scotch           maps onto exported machines
hwloc-nox            lstopo and hwloc-annotate read exported machines
libxml2-utils        xmllint reads exported verdicts
zsh                  completes commands
fish                 and so does this one
'

say() { printf 'quickstart: %s\n' "$*"; }
refuse() { printf 'quickstart: %s\n' "$*" >&2; exit 78; }

dry=false
task=run
for word in "$@"; do
    case $word in
    --dry-run) dry=true ;;
    check) task=check ;;
    -h | --help) echo "$usage"; sed -n 's/^#  *\(sh jobs\)/  \1/p' "$0"; exit 0 ;;
    *) printf 'quickstart: what is "%s"? %s\n' "$word" "$usage" >&2; exit 64 ;;
    esac
done
cd "$(dirname "$0")/.."

# Show a command; run it unless this is a dry run.
run() {
    printf '+ %s\n' "$*"
    $dry || "$@"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        run env DEBIAN_FRONTEND=noninteractive "$@"
    else
        run sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# need LIST: install what is missing from LIST, after saying why.
need() {
    missing=$(printf '%s\n' "$1" | while read -r package why; do
        [ -z "$package" ] || installed "$package" || printf '  %-18s %s\n' "$package" "$why"
    done)
    if [ -z "$missing" ]; then
        say "every package is here already"
        return
    fi
    say "to be installed from this system's package archive:"
    printf '%s\n' "$missing"
    names=$(printf '%s\n' "$missing" | awk '{ printf "%s ", $1 }')
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        refuse "neither root nor sudo: ask the administrator for: apt-get install $names"
    fi
    as_root apt-get -q update
    # shellcheck disable=SC2086  # one word per package
    as_root apt-get -q -y --no-install-recommends install $names
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    refuse "this system is not Debian or Ubuntu. Install a C compiler, make, pkg-config, jansson, expat, libyaml," \
        "hwloc, an MPI and gnuplot by its own means, then: make && build/railgauge run"
fi

if [ $task = check ]; then
    need "$for_building$for_testing"
else
    need "$for_building"
fi

# Open MPI refuses root unless told twice; a bare container may lack /dev/shm.
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if [ ! -w /dev/shm ]; then
    export OMPI_MCA_btl_vader_backing_directory="${TMPDIR:-/tmp}"
fi

run make -j "$(nproc)"
if [ $task = check ]; then
    run make -j "$(nproc)" check
    exit
fi

# 1: measured, and a part was named; that is a result, too.
judged() {
    code=0
    run "$@" || code=$?
    [ "$code" -le 1 ] || exit "$code"
}

say "measuring this machine:"
judged build/railgauge run
out=$(readlink last) || out=
say "SIMULATED, nothing of this machine in it: two racks of GB200 NVL72, the NIC of GPU 17 at 60 % of its rate;"
say "what a campaign says there, and a training step on it:"
judged build/railgauge run --transport sim --fabric gb200-nvl72 --racks 2 --noise 3% --fault slow-nic=17:0.6
$dry && exit
simulated=$(readlink last)
say "measured here: $out; simulated: $simulated. In both:"
for file in "$simulated"/*; do
    printf '  %s\n' "${file##*/}"
done
say "look again with:  build/railgauge show $out/matrix.json"
say "install with:     make install PREFIX=\$HOME/.local"
