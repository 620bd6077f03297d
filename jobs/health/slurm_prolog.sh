#!/bin/sh
# slurm_prolog.sh - Prolog: no job starts on a node whose last railgauge check failed.  A prolog has seconds
# (MessageTimeout): it reads what is known, in milliseconds, and measures nothing.
#   slurm.conf:  Prolog=/etc/slurm/slurm_prolog.sh
# The node is drained with the reason by slurm_health.sh, the job is requeued.  What could not be judged starts.
# Results: sinfo -R
STATE=${RAILGAUGE_STATE:-/var/lib/railgauge} # as in slurm_health.sh
AGE=${RAILGAUGE_MAX_AGE:-48h}
PATH=/usr/local/bin:/usr/bin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}

railgauge check --last "$node" --state "$STATE" --max-age "$AGE" --quiet
[ $? -eq 1 ] || exit 0
SLURMD_NODENAME=$node "$(dirname "$0")/slurm_health.sh"
exit 1
