#!/bin/bash
# build.sh - the lab's wires, switches and hosts; a part of lab.sh, which sets the parameters.
#
#   host i [hsn0]---[p i] leaf r [up r]---[dn r] spine [dn s]---[up s] leaf s [p j]---[hsn0] host j
#     tbf -> NIC     NIC <- tbf     tbf -> TRUNK   TRUNK <- tbf
#
# Leaves and spine are bridges in the namespace LAB-fab; with a delay the spine is relay.c.  A second
# network (mgmt0) carries the launcher's traffic.

# A token bucket must hold at least one segmentation-offload frame, or the kernel splits the frame on the
# CPU; and the rate times the longest gap between acknowledgements, or the rate is not reached.  400 us
# reaches the nominal rate within 0.1 % from 100 Mbit/s to 8 Gbit/s; 100 us misses up to 0.3 %.
GSO=16384
BUCKET_MIN=20000 BUCKET_US=400
# Every queue holds what all hosts may have in flight, one receive window each: nothing is ever dropped, as
# on a fabric with link-level flow control.  With shorter queues TCP's recoveries take up to 8 % of a fast
# far link, and an all_to_all of 8 hosts collapses.  A window of 1 MiB keeps a link of 100 Mbit/s busy while
# a rank has to wait some tens of milliseconds for a core.  The kernel advertises half of the receive buffer.
WINDOW=1048576

in_fab() { ip -n "$FAB" "$@"; }

# Mbit/s of a host's NIC.
nic_rate() {
    local d rate=$NIC
    for d in $DEGRADE; do
        [ "$((10#${d%:*}))" != "$1" ] || rate=${d#*:}
    done
    echo "$rate"
}

# shape NAMESPACE DEVICE MBIT: what leaves by that device leaves at this rate.
shape() {
    local bucket=$(($3 * BUCKET_US / 8)) limit
    [ "$bucket" -ge "$BUCKET_MIN" ] || bucket=$BUCKET_MIN
    limit=$((HOSTS * WINDOW + bucket))
    tc -n "$1" qdisc replace dev "$2" root tbf rate "${3}mbit" burst "$bucket" limit "$limit"
}

# A switch in the fabric's namespace.
bridge() {
    in_fab link add "$1" type bridge mcast_snooping 0
    in_fab link set "$1" mtu "$MTU" up
}

# wire BRIDGE PORT: an existing device becomes a port of that bridge.
wire() { in_fab link set "$2" mtu "$MTU" master "$1" up; }

# The relay, its ports named as its arguments; each is wired to the bridge edge N by the caller.
start_relay() {
    local i pid
    (
        # It outlives us: a lock that our caller holds is not for it.
        for i in /proc/"$BASHPID"/fd/*; do [ "${i##*/}" -le 2 ] || eval "exec ${i##*/}>&-"; done
        exec ip netns exec "$FAB" "$STATE/relay" "$DELAY_US" "$@"
    ) </dev/null >/dev/null 2>"$STATE/relay.log" &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        ! in_fab link show "${*: -1}" >/dev/null 2>&1 || return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    die "the relay did not start: $(cat "$STATE/relay.log")"
}

build_spine() {
    local r taps=()
    if [ "$DELAY_US" = 0 ]; then
        bridge spine
    else
        # shellcheck disable=SC2086 # the compiler may be words: ccache gcc
        ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -o "$STATE/relay" "$HERE/relay.c"
        for ((r = 0; r < RACKS; r++)); do taps+=("tap$r"); done
        start_relay "${taps[@]}"
    fi
    for ((r = 0; r < RACKS; r++)); do
        bridge "leaf$r"
        in_fab link add "up$r" type veth peer name "dn$r"
        wire "leaf$r" "up$r"
        if [ "$DELAY_US" = 0 ]; then
            wire spine "dn$r"
        else
            bridge "edge$r"
            wire "edge$r" "dn$r"
            wire "edge$r" "tap$r"
        fi
        shape "$FAB" "up$r" "$TRUNK"
        shape "$FAB" "dn$r" "$TRUNK"
    done
}

# TCP of one namespace: reno, because a namespace may not choose cubic everywhere and bbr, the default of
# some kernels, paces itself below the shaped rate; and no memory of earlier connections.
quiet_tcp() {
    ip netns exec "$1" sysctl -qw net.ipv4.tcp_congestion_control=reno \
        net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_no_metrics_save=1 \
        net.ipv4.tcp_rmem="4096 $((2 * WINDOW)) $((2 * WINDOW))" \
        net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    ip -n "$1" link set lo up
}

build_host() {
    local i=$1 host=$LAB-h$1 rate
    rate=$(nic_rate "$i")
    ip netns add "$host"
    quiet_tcp "$host"
    in_fab link add "p$i" type veth peer name hsn0 netns "$host"
    wire "leaf$((i / PER))" "p$i"
    ip -n "$host" link set hsn0 mtu "$MTU" gso_max_size "$GSO" up
    ip -n "$host" addr add "10.97.$((i / PER)).$((i % PER + 1))/16" dev hsn0
    shape "$host" hsn0 "$rate"
    shape "$FAB" "p$i" "$rate"
    in_fab link add "m$i" type veth peer name mgmt0 netns "$host"
    wire mgmt "m$i"
    ip -n "$host" link set mgmt0 up
    ip -n "$host" addr add "10.98.0.$((i + 1))/16" dev mgmt0
}

build() {
    local i
    ip netns add "$FAB"
    quiet_tcp "$FAB"
    bridge mgmt
    in_fab addr add 10.98.255.254/16 dev mgmt
    build_spine
    for ((i = 0; i < HOSTS; i++)); do build_host "$i"; done
}
