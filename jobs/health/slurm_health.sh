#!/bin/sh
# slurm_health.sh - HealthCheckProgram: a node whose last railgauge check failed is drained with the reason, and comes
# back when a later one passes.  It measures nothing and takes milliseconds; nothing is asked of slurmctld before
# something changes.  Who resumes a node by hand is not overruled until a check says something else, and who drains one
# for another reason is never overruled: STATE/NODE.drained has the reason of this script, and outlives a reboot.
#   slurm.conf:  HealthCheckProgram=/etc/slurm/slurm_health.sh  HealthCheckInterval=60  HealthCheckNodeState=ANY
# Checks come from slurm_epilog.sh or railgauge-check.timer with the same STATE, and from health.sbatch by SHARED.
# Results: sinfo -R
STATE=${RAILGAUGE_STATE:-/var/lib/railgauge} # of this node; root's, and nobody else's
SHARED=${RAILGAUGE_SHARED:-}                 # STATE of health.sbatch; only its user may write there
AGE=${RAILGAUGE_MAX_AGE:-48h}                # what an older check said drains nobody
PATH=/usr/local/bin:/usr/bin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
mark=$STATE/$node.drained

[ -z "$SHARED" ] || railgauge check --take "$SHARED" "$node" --state "$STATE" --quiet >/dev/null
said=$(railgauge check --last "$node" --state "$STATE" --max-age "$AGE" --reason)
case $? in
    0)
        [ -e "$mark" ] && now=$(scontrol -o show node "$node") || exit 0
        case $now in
            *" Reason=$(cat "$mark") ["*) scontrol update NodeName="$node" State=RESUME || exit 0 ;;
        esac
        rm -f "$mark"
        ;;
    1)
        [ "$(cat "$mark" 2>/dev/null)" = "${said#* }" ] ||
            { scontrol update NodeName="$node" State=DRAIN Reason="${said#* }" && echo "${said#* }" >"$mark"; }
        ;;
esac
