#!/bin/bash
# slurm_epilog.sh - Epilog: after each job a minute of measuring on this node alone, its own GPUs and NICs; a node that
# fails is drained with the reason before another job comes.  Between nodes: health.sbatch.
#   slurm.conf:  Epilog=/etc/slurm/slurm_epilog.sh
# Yours: where nodes are shared by jobs, leave at once unless this was the last one.
# Results: sinfo -R; what was said: STATE/NODE.json
STATE=${RAILGAUGE_STATE:-/var/lib/railgauge}   # as in slurm_health.sh
LIMIT=${RAILGAUGE_LIMIT:-1m}                   # PrologEpilogTimeout must be longer
AGAINST=${RAILGAUGE_AGAINST:-}                 # a matrix of this site: better than published figures
PATH=/usr/local/bin:/usr/bin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
unset "${!SLURM_@}" # with them MPI would look for the job that has ended

railgauge check --limit "$LIMIT" --state "$STATE" --quiet ${AGAINST:+--against "$AGAINST"} || true
SLURMD_NODENAME=$node RAILGAUGE_STATE=$STATE exec "$(dirname "$0")/slurm_health.sh"
