#!/bin/bash
# slurm_epilog.sh - Epilog: after each job a minute of measuring on this node alone, its own GPUs and NICs; a node that
# fails is drained with the reason before another job comes.  Between nodes: health.sbatch.
#   slurm.conf:  Epilog=/etc/slurm/slurm_epilog.sh
# The user railgauge measures (useradd -r railgauge, in the groups that may use GPUs and NICs); root takes the result.
# Yours: where nodes are shared by jobs, leave at once unless this was the last one.
# Results: sinfo -R; what was said: STATE/NODE.json
STATE=${RAILGAUGE_STATE:-/var/lib/railgauge}   # as in slurm_health.sh
LIMIT=${RAILGAUGE_LIMIT:-1m}                   # PrologEpilogTimeout must be longer
AGAINST=${RAILGAUGE_AGAINST:-}                 # a matrix of this site: better than published figures
WHO=${RAILGAUGE_USER:-railgauge}
export PATH=/usr/local/bin:/usr/bin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
unset "${!SLURM_@}" # with them MPI would look for the job that has ended

id "$WHO" >/dev/null || exit 0 # nobody measures as root
work=$(mktemp -d /run/railgauge-check.XXXXXX) && chown "$WHO" "$work" || exit 0
# Nothing of the job's environment.
env -i PATH="$PATH" HOME="$work" TMPDIR="$work" SLURMD_NODENAME="$node" \
    setpriv --reuid="$WHO" --regid="$(id -g "$WHO")" --init-groups --no-new-privs --inh-caps=-all \
    railgauge check --limit "$LIMIT" --state "$work/state" --quiet ${AGAINST:+--against "$AGAINST"} || true
railgauge check --take "$work/state" "$node" --state "$STATE" --quiet || true
rm -rf --one-file-system "$work"
SLURMD_NODENAME=$node RAILGAUGE_STATE=$STATE exec "$(dirname "$0")/slurm_health.sh"
