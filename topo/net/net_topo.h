/* net_topo.h - what a network says of the hosts of a topology: who belongs together, and which
 * switch each NIC is cabled to. */
#ifndef RG_NET_TOPO_H
#define RG_NET_TOPO_H

#include "topo/net/net.h"

/* Set host and device of each HCA: by the GUIDs of t's NICs (port or node), else by descriptions as
 * "node01 mlx5_0".  A description that several HCAs have tells nothing. */
void net_hosts(struct net *n, const struct topo *t);

/* Claims of n: LEVEL_LEAF, a group of leaves and its hosts; LEVEL_SPINE, groups below the same
 * second-tier switches, and so on above, where there are several.  The part with most hosts is
 * `origin`, others are "ORIGIN subnet 2" ... */
void net_claim(struct topo *t, const struct net *n, const char *origin);

/* From t->net, all of SOURCE_IBNET: hosts of HCAs; leaf, leaf_port, GUID and rate of NICs, which
 * are added where the host has none of that device; of endpoints the leaf of their nearest NIC, or
 * the group of leaves of a host of which that is not known.  What is there stays.  Again is
 * harmless. */
void net_apply(struct topo *t);

#endif
