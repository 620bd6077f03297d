#!/bin/bash
# shellcheck disable=SC1091,SC2015 source-path=SCRIPTDIR # in "test && test || die", die does not return
# lab.sh - a fabric on one machine whose truth is known: network namespaces as hosts, shaped links.
#
#   lab.sh usable               can this machine carry a lab?  Says why not.
#   lab.sh up                   build it; refused while a lab of that name is up
#   lab.sh hosts                names of its hosts, one a line
#   lab.sh truth                what a perfect probe finds, TSV: src dst mbit extra_us
#   lab.sh mpirun ARGS...       Open MPI over the hosts, rank i on host i
#   lab.sh exec HOST CMD...     a command on host number HOST
#   lab.sh slow nic|uplink N MBIT   from now on host N's NIC, or rack N's uplink, each direction, has this rate
#   lab.sh down                 remove all of it; nothing to do is no error
#
# Parameters are environment variables; up writes them down, the other commands read what up wrote.
#
#   LAB=rglab       name: prefix of every namespace, letters and digits; several labs can be up at once
#   RACKS=2 PER=4   racks, hosts per rack; host i stands in rack i / PER
#   NIC=1000        Mbit/s of a host's NIC, each direction
#   TRUNK=400       Mbit/s of a rack's uplink, each direction
#   DELAY_US=0      microseconds from rack to rack, each direction, on top of what the machine takes
#   DEGRADE=""      slower NICs, "HOST:MBIT HOST:MBIT ..."
#
# Everything lives inside the namespaces and dies with them; build.sh says how it is made.  The rates of
# transfers at the same time should stay below 4 Gbit/s together on two cores, or the cores are what is
# measured.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB=${LAB:-rglab}
FAB=$LAB-fab
STATE=/run/railgauge-lab/$LAB
PARAMETERS='RACKS PER NIC TRUNK DELAY_US DEGRADE'

MTU=1500
# A message of 1 MiB and its header goes eagerly: a rendezvous' control messages queue behind data in the
# one socket and make two directions at once look like half duplex, and cost two more trips between racks.
EAGER=1052672

# shellcheck source=build.sh
. "$HERE/build.sh"

die() {
    echo "lab: $*" >&2
    exit 1
}

# whole NAME MIN MAX: the parameter is a whole number in that range.
whole() {
    [[ ${!1} =~ ^[0-9]{1,6}$ ]] && [ "$((10#${!1}))" -ge "$2" ] && [ "$((10#${!1}))" -le "$3" ] ||
        die "$1 \"${!1}\" is not a whole number from $2 to $3"
}

parameters() {
    local d
    RACKS=${RACKS:-2} PER=${PER:-4} NIC=${NIC:-1000} TRUNK=${TRUNK:-400}
    DELAY_US=${DELAY_US:-0} DEGRADE=${DEGRADE:-}
    whole RACKS 1 16
    whole PER 1 64
    whole NIC 10 40000
    whole TRUNK 10 40000
    whole DELAY_US 0 10000
    HOSTS=$((RACKS * PER))
    [ "$HOSTS" -ge 2 ] || die "a lab of $HOSTS host has no pair"
    [ "$HOSTS" -le 128 ] || die "RACKS $RACKS times PER $PER is more than 128 hosts"
    for d in $DEGRADE; do
        [[ $d =~ ^[0-9]{1,3}:[1-9][0-9]{1,4}$ ]] && [ "$((10#${d%:*}))" -lt "$HOSTS" ] ||
            die "DEGRADE \"$d\" is not HOST:MBIT with HOST from 0 to $((HOSTS - 1))"
    done
}

# Is it up?  Then its parameters are those that up wrote down.
is_up() { [ -e "$STATE/parameters" ]; }

need_up() {
    local name value
    is_up || die "no lab \"$LAB\" is up; 'lab.sh up' builds it"
    while IFS='=' read -r name value; do
        printf -v "$name" '%s' "$value"
    done <"$STATE/parameters"
    parameters
}

# The launcher's way onto a host: AGENT HOST COMMAND...  Each host has its own UTS name, or Open MPI takes
# them for one machine.  Ranks run ahead of the machine's other work, which is no part of the fabric: they
# wait by sched_yield, which at the usual priority hands a busy core away for milliseconds.  The round
# robin lets them take turns, relay.c stands above them.
write_agent() {
    cat >"$STATE/agent" <<'AGENT'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec chrt -r 1 ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
AGENT
    chmod 755 "$STATE/agent"
}

# Namespaces of this lab and of no other.
namespaces() { ip netns list | awk -v lab="$LAB" '$1 ~ "^" lab "-(fab|h[0-9]+)$" {print $1}'; }

# Processes in these namespaces.
inhabitants() {
    local ns
    for ns in $(namespaces); do ip netns pids "$ns"; done
}

cmd_up() {
    local name
    parameters
    [ "$(id -u)" = 0 ] || die "only root can build network namespaces"
    [ -z "$(namespaces)" ] && mkdir -p "${STATE%/*}" && mkdir "$STATE" 2>/dev/null ||
        die "a lab \"$LAB\" is up already (LAB=other for a second one, 'lab.sh down' removes it)"
    trap cmd_down EXIT
    mkdir -m 700 "$STATE/tmp"
    write_agent
    build
    for name in $PARAMETERS; do echo "$name=${!name}"; done >"$STATE/parameters"
    trap - EXIT
}

# Processes inside a namespace die with it: asked first, then made to.
cmd_down() {
    local ns pids signal i
    for signal in TERM KILL; do
        pids=$(inhabitants)
        [ -n "$pids" ] || break
        # shellcheck disable=SC2086 # a list of numbers
        kill -s "$signal" $pids 2>/dev/null || true
        for ((i = 0; i < 50; i++)); do
            [ -n "$(inhabitants)" ] || break
            sleep 0.1
        done
    done
    for ns in $(namespaces); do ip netns del "$ns"; done
    rm -rf "$STATE"
    rmdir "${STATE%/*}" 2>/dev/null || true
}

cmd_usable() {
    local tool try=$LAB-try rc=0
    [ "$(id -u)" = 0 ] || die "needs root to build network namespaces"
    for tool in ip tc unshare chrt mpirun sysctl awk cc; do
        command -v "$tool" >/dev/null || die "needs the command '$tool'"
    done
    chrt -r 1 true 2>/dev/null || die "may not run programs ahead of others here (chrt -r)"
    [ -c /dev/net/tun ] || die "needs /dev/net/tun for the delay"
    mountpoint -q / || die '"/" is no mount point (a plain chroot), which ip-netns needs'
    ip netns add "$try" || die "may not make network namespaces here"
    {
        ip -n "$try" link add veth0 type veth peer name veth1 &&
            ip -n "$try" link add bridge0 type bridge && tc -n "$try" qdisc add dev veth0 root tbf rate 100mbit burst 20000 limit 40000
    } || rc=1
    ip netns del "$try"
    [ "$rc" = 0 ] || die "this kernel lacks veth, bridge or tbf"
}

cmd_hosts() {
    local i
    for ((i = 0; i < HOSTS; i++)); do echo "$LAB-h$i"; done
}

# Payload of a TCP segment with timestamps over the bytes that tbf counts, Ethernet header included.
cmd_truth() {
    local i
    for ((i = 0; i < HOSTS; i++)); do nic_rate "$i"; done |
        awk -v per="$PER" -v trunk="$TRUNK" -v delay="$DELAY_US" -v mtu="$MTU" '
            function min(a, b) { return a < b ? a : b }
            { nic[NR - 1] = $1 }
            END {
                OFS = "\t"
                print "src", "dst", "mbit", "extra_us"
                for (i = 0; i < NR; i++)
                    for (j = 0; j < NR; j++) {
                        if (i == j) continue
                        far = int(i / per) != int(j / per)
                        rate = min(min(nic[i], nic[j]), far ? trunk : nic[i])
                        print i, j, sprintf("%.2f", rate * (mtu - 52) / (mtu + 14)), far ? delay : 0
                    }
            }'
}

cmd_mpirun() {
    local hosts
    hosts=$(cmd_hosts | paste -sd,)
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec ip netns exec "$FAB" unshare -u sh -c 'hostname "$0"; exec "$@"' "$FAB" \
        mpirun --allow-run-as-root --oversubscribe --bind-to none --map-by node \
        -H "$hosts" --mca plm_rsh_agent "$STATE/agent" --mca plm_rsh_no_tree_spawn 1 \
        --mca orte_keep_fqdn_hostnames 1 --mca orte_tmpdir_base "$STATE/tmp" \
        --mca oob_tcp_if_include 10.98.0.0/16 --mca pml ob1 --mca btl tcp,self \
        --mca btl_tcp_if_include 10.97.0.0/16 --mca btl_tcp_eager_limit "$EAGER" \
        --mca btl_tcp_rndv_eager_limit "$EAGER" --mca mpi_yield_when_idle 1 "$@"
}

cmd_slow() {
    [ $# = 3 ] || die "slow: nic or uplink, which one, and how many Mbit/s?"
    local N=$2 MBIT=$3 i
    whole MBIT 10 40000
    case $1 in
    nic)
        whole N 0 $((HOSTS - 1))
        shape "$LAB-h$N" hsn0 "$MBIT"
        shape "$FAB" "p$N" "$MBIT"
        ;;
    uplink)
        whole N 0 $((RACKS - 1))
        for i in up dn; do shape "$FAB" "$i$N" "$MBIT"; done
        ;;
    *) die "slow: \"$1\" is neither nic nor uplink" ;;
    esac
}

cmd_exec() {
    [[ ${1-} =~ ^[0-9]{1,3}$ ]] && [ "$((10#$1))" -lt "$HOSTS" ] ||
        die "exec: \"${1-}\" is not a host from 0 to $((HOSTS - 1))"
    [ $# -ge 2 ] || die "exec: which command on host $1?"
    exec ip netns exec "$LAB-h$((10#$1))" "${@:2}"
}

# The name is a prefix of namespaces and of a path that down removes: nothing but letters and digits.
[[ $LAB =~ ^[a-z][a-z0-9]{0,15}$ ]] ||
    die "LAB \"$LAB\" is not 1 to 16 lower-case letters and digits, a letter first"
case ${1-} in
    usable | up | down) "cmd_$1" ;;
    hosts | truth) need_up && "cmd_$1" ;;
    mpirun | exec | slow) need_up && "cmd_$1" "${@:2}" ;;
    *)
        sed -n '3,/^set/{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
        exit 64
        ;;
esac
