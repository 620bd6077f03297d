#!/bin/sh
# node_condition.sh - measure on this node alone and say it as a condition of the node in Kubernetes: RailgaugeFault is
# True with the reason, False, or Unknown where it could not be judged.  For the pods of cronjob.yaml, which has the rights.
#   NODE=node01 jobs/health/node_condition.sh
# Results: kubectl describe node node01
set -u
: "${NODE:?the name of the node}"
said=$(railgauge check --limit "${RAILGAUGE_LIMIT:-1m}" --state /tmp/railgauge --exit-style nagios)
case $? in
    0 | 1) status=False reason=NoFault ;;
    2) status=True reason=Fault ;;
    *) status=Unknown reason=NotJudged ;;
esac
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
# Without the figures, and without what JSON would take for its own.
text=$(printf '%s' "${said%% | *}" | tr -d '"\\[:cntrl:]')
was=$(kubectl get node "$NODE" -o jsonpath='{.status.conditions[?(@.type=="RailgaugeFault")].status}')
[ "$was" = $status ] && since= || since=", \"lastTransitionTime\": \"$now\""
kubectl patch node "$NODE" --subresource=status --type=strategic -p "{\"status\": {\"conditions\": [{
    \"type\": \"RailgaugeFault\", \"status\": \"$status\", \"reason\": \"$reason\", \"message\": \"$text\",
    \"lastHeartbeatTime\": \"$now\"$since}]}}"
