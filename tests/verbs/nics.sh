#!/bin/bash
# nics.sh NUMBER... - on a machine of vm.sh: NICs rxe0, rxe1 ... on nic0, nic1 ... (10.9.0.<10 node + i>, GID index 1),
# each a cable into a switch that reaches those of the other machine over eth1.
#
# RDMA between two NICs of one machine must take the cables, too: the kernel would keep it inside (lo), where rdma_rxe
# hears nothing.  So each NIC has a route of its own, asked before those to this machine.
set -euo pipefail
ip link add switch type bridge
ip link set eth1 mtu 5000 master switch up
ip link set switch mtu 5000 up
ip rule add pref 30000 lookup local
ip rule del pref 0
sysctl -q net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 net.ipv4.conf.all.accept_local=1 \
    net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
for i in "$@"; do
    ip link add "nic$i" mtu 5000 type veth peer "port$i" mtu 5000
    ip link set "port$i" master switch up
    ip addr add "10.9.0.$((${HOSTNAME#node} * 10 + i))/24" dev "nic$i"
    ip link set "nic$i" up
    ip route add 10.9.0.0/24 dev "nic$i" table $((100 + i))
    ip rule add pref $((100 + i)) oif "nic$i" lookup $((100 + i))
    rdma link add "rxe$i" type rxe netdev "nic$i"
done
