#!/bin/sh
# slurm_health.sh - HealthCheckProgram: a node whose last railgauge check failed is drained with the reason, and comes
# back when a later one passes.  It measures nothing and takes milliseconds; nothing is asked of slurmctld before
# something changes.  Who resumes a node by hand is not overruled until a check says something else.
#   slurm.conf:  HealthCheckProgram=/etc/slurm/slurm_health.sh  HealthCheckInterval=60  HealthCheckNodeState=ANY
# Checks come from slurm_epilog.sh, health.sbatch or railgauge-check.timer, all with the same STATE.
# Results: sinfo -R
STATE=${RAILGAUGE_STATE:-/var/lib/railgauge} # of each node, or on a file system that all see
AGE=${RAILGAUGE_MAX_AGE:-48h}                # what an older check said drains nobody
PATH=/usr/local/bin:/usr/bin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
mark=/run/railgauge-drained.$node

said=$(railgauge check --last "$node" --state "$STATE" --max-age "$AGE" --reason)
case $? in
    0)
        [ -e "$mark" ] || exit 0
        case $(scontrol -o show node "$node") in
            *" Reason=railgauge:"*) scontrol update NodeName="$node" State=RESUME ;;
        esac
        rm -f "$mark"
        ;;
    1)
        [ "$(cat "$mark" 2>/dev/null)" = "$said" ] ||
            { scontrol update NodeName="$node" State=DRAIN Reason="${said#* }" && echo "$said" >"$mark"; }
        ;;
esac
