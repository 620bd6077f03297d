#!/bin/sh
# node_condition.sh - measure on this node alone and say it as a condition of the node in Kubernetes: RailgaugeFault is
# True with the reason, False, or Unknown where it could not be judged.  For the pods of cronjob.yaml: one container
# measures without rights, the other tells what the first left in a folder of both, and has the rights.
#   node_condition.sh measure FOLDER; NODE=node01 node_condition.sh tell FOLDER
# Results: kubectl describe node node01
set -u
said=$2/said

if [ "$1" = measure ]; then
    railgauge check --limit "${RAILGAUGE_LIMIT:-1m}" --state "$2/state" --exit-style nagios >"$said.text"
    echo $? >"$said"
    exit 0
fi
: "${NODE:?the name of the node}"
# A link would show a file of this container, such as its token.
[ ! -L "$said" ] && [ ! -L "$said.text" ] || exit 1
case $(head -c 2 "$said") in
    0 | 1) status=False reason=NoFault ;;
    2) status=True reason=Fault ;;
    *) status=Unknown reason=NotJudged ;;
esac
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
# Without the figures, and without what JSON would take for its own.
text=$(head -n 1 "$said.text" | head -c 1000 | tr -d '"\\[:cntrl:]')
was=$(kubectl get node "$NODE" -o jsonpath='{.status.conditions[?(@.type=="RailgaugeFault")].status}')
[ "$was" = $status ] && since= || since=", \"lastTransitionTime\": \"$now\""
kubectl patch node "$NODE" --subresource=status --type=strategic -p "{\"status\": {\"conditions\": [{
    \"type\": \"RailgaugeFault\", \"status\": \"$status\", \"reason\": \"$reason\", \"message\": \"${text%% | *}\",
    \"lastHeartbeatTime\": \"$now\"$since}]}}"
