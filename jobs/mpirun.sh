#!/bin/sh
# mpirun.sh - a campaign over several hosts with the mpirun of PATH, the launch line spelled out.
#
#   jobs/mpirun.sh HOSTFILE RANKS_PER_HOST [option of railgauge run ...]
#   jobs/mpirun.sh hosts.txt 8 --full                                CPUs: host memory over MPI
#   NCCL_IB_HCA=mlx5 jobs/mpirun.sh hosts.txt 8 --transport nccl     GPUs: one rank each
#   jobs/mpirun.sh "$PBS_NODEFILE" 4 --transport nccl                in a job of PBS, also with Cray's PALS
#
# HOSTFILE has one line a host: "node01 slots=8".  railgauge and railgauge-probe must be at the same place on every
# host; railgauge itself stays here and needs no MPI.  Results: in the folder of -o, else where "last" leads.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: jobs/mpirun.sh HOSTFILE RANKS_PER_HOST [option of railgauge run ...]" >&2
    exit 64
fi
[ -r "$1" ] || { echo "jobs/mpirun.sh: $1: cannot be read" >&2; exit 66; }
hostfile=$1 ranks=$2
shift 2
PATH=$(cd "$(dirname "$0")/.." && pwd)/build:$PATH
hosts=$(sed -e 's/#.*//' -e 's/[ :].*//' -e '/^$/d' "$hostfile" | awk '!seen[$1]++' | paste -s -d , -)
all=$((ranks * $(echo "$hosts" | tr , '\n' | wc -l)))
program=$(command -v mpirun || command -v mpiexec || echo mpirun)

# One rank a GPU (or socket), ranks of a host numbered one after another, near their NIC.
case "$(readlink -f "$program") $("$program" --version 2>&1)" in
*/pals/*) launch="$program --hosts $hosts --ppn $ranks -n $all --cpu-bind numa" ;; # Cray MPICH
*HYDRA* | *"Intel(R) MPI"*) launch="$program -hosts $hosts -ppn $ranks -n $all -genvall" ;; # MPICH, Intel MPI, MVAPICH
*) # Open MPI: ranks that are not measured sleep instead of spinning; it hands on no variables but its own
    launch="$program --hostfile $hostfile --map-by ppr:$ranks:node --bind-to numa --mca mpi_yield_when_idle 1"
    [ "$(id -u)" -ne 0 ] || launch="$launch --allow-run-as-root"
    for name in $(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\|LD_LIBRARY_PATH\)=.*/\1/p') RAILGAUGE_WATCH RAILGAUGE_PROGRESS; do
        launch="$launch -x $name"
    done ;;
esac
exec railgauge run --launch "$launch" "$@"
