#!/bin/sh
# mpirun.sh - a campaign over several hosts with Open MPI, the launch line spelled out.
#
#   jobs/mpirun.sh HOSTFILE RANKS_PER_HOST [option of railgauge run ...]
#   jobs/mpirun.sh hosts.txt 8 --full                                CPUs: host memory over MPI
#   NCCL_IB_HCA=mlx5 jobs/mpirun.sh hosts.txt 8 --transport nccl     GPUs: one rank each
#
# HOSTFILE has one line a host: "node01 slots=8".  railgauge and railgauge-probe must be at the same
# place on every host; railgauge itself stays here and needs no MPI.  Results: in the folder of -o, else where
# "last" leads.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: jobs/mpirun.sh HOSTFILE RANKS_PER_HOST [option of railgauge run ...]" >&2
    exit 64
fi
[ -r "$1" ] || { echo "jobs/mpirun.sh: $1: cannot be read" >&2; exit 66; }
hostfile=$1 ranks=$2
shift 2

# One rank a GPU (or socket), ranks of a host numbered one after another:  --map-by ppr:N:node
# ranks may move between the cores of their NUMA node, near their NIC:      --bind-to numa
# ranks that are not measured sleep instead of spinning:                    mpi_yield_when_idle
# mpirun hands on no variables but its own:                                 -x each of NCCL_*
launch="mpirun --hostfile $hostfile --map-by ppr:$ranks:node --bind-to numa --mca mpi_yield_when_idle 1"
[ "$(id -u)" -ne 0 ] || launch="$launch --allow-run-as-root"
for name in $(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\)=.*/\1/p') ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH}; do
    launch="$launch -x $name"
done

PATH=$(cd "$(dirname "$0")/.." && pwd)/build:$PATH
exec railgauge run --launch "$launch" "$@"
