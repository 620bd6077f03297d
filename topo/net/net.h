/* net.h - a switched network as its switches tell it: switches, host adapters, and every cable
 * between them with its speed.
 *
 * From the live subnet through libibnetdisc, or from the text of ibnetdiscover (ibnet.h).  One net
 * holds all networks that were read (compute and storage subnets are parts that no cable joins).
 * net_view.h derives hosts and groups of leaves from it, lint.h what is odd. */
#ifndef RG_NET_H
#define RG_NET_H

#include <stdint.h>

#include "base/err.h"
#include "topo/topo.h"

enum net_kind { NET_SWITCH, NET_HCA, NET_AGGREGATION, NET_ROUTER, NET_KINDS };

enum { NET_PORTS = 254 }; /* of a node at most; they count from 1 */

struct net_node {
    enum net_kind kind;
    uint64_t guid;   /* of the node; 0: not told */
    char name[65];   /* node description; HCAs with their maker's default name: see host */
    int ports;       /* that it has */
    int tier;        /* switches: 0 has HCAs, 1 has tier-0 switches ...; -1: others */
    int host;        /* HCA: index into topo.host, -1 not known */
    char device[32]; /* HCA: "mlx5_0" as its host calls it, "" not known */
};

struct net_cable {
    int a, b;                /* nodes, a <= b */
    int port_a, port_b;      /* port numbers */
    uint64_t guid_a, guid_b; /* port GUIDs, 0 not told (ports of switches share their node's) */
    int width;               /* lanes: 4; 0: not told */
    char speed[8];           /* of a lane, as InfiniBand says: "HDR", "NDR"; "": not told */
    double Bps;              /* per direction, both together: 50e9 for 4xNDR; 0: not told */
    int lid_a, lid_b;        /* 0: not told */
    bool differ;             /* its ends told different rates; the lower one is kept */
};

struct net {
    struct net_node *node;
    int nodes;
    struct net_cable *cable;
    int cables;
};

void net_free(struct net *n); /* NULL is fine */
struct net *net_copy(const struct net *n);

/* Data rate per direction in B/s, 0 for a speed that is not known.  Per lane: SDR 2, DDR 4, QDR 8,
 * FDR10 10, FDR 13.64, EDR 25, HDR 50, NDR 100, XDR 200 Gb/s: what is left after the line code of
 * 8b/10b or 64b/66b (InfiniBand roadmap of the IBTA).  sysfs counts bits on the wire up to FDR. */
double net_rate(int width, const char *speed);
bool net_width(int width); /* 1, 2, 4, 8 or 12 lanes */

/* Put a cable in order (a <= b), set its rate and append it. */
void net_add_cable(struct net *n, struct net_cable c);
int net_count(const struct net *n, enum net_kind kind); /* nodes of a kind */
/* Two nodes with one GUID, or two cables at one port: their indices; false when there are none. */
bool net_twins(const struct net *n, int *x, int *y);
bool net_clash(const struct net *n, int *x, int *y);
/* Set every tier.  A few HCAs on a switch whose neighbours have many times as many (the subnet
 * manager's host on a spine) make no tier 0. */
void net_tiers(struct net *n);
/* Parts that no cable joins: part of each node, the one with the most HCAs is 0; the caller frees.
 */
int *net_parts(const struct net *n, int *count);
/* What to call each node: "leaf-03" for the description "MF0;leaf-03:MQM9700/U1" of NVIDIA's
 * switches, the description otherwise, "S-2c5eab0300b87b40" where these are empty or shared. */
char **net_labels(const struct net *n); /* of all nodes; free with hostlist_free(list, nodes) */
/* Of each text (NULL: none) whether another one is like it; the caller frees. */
bool *net_texts_again(const char *const *text, int count);
/* Add what another file or port told.  Nodes with the same GUID are one; a port with two different
 * cables is EXIT_DATA, and `to` stays as it was.  path is for the message. */
int net_merge(struct net *to, const struct net *from, const char *path, struct err *err);

/* Sets of nodes: up[i] is a lower member of the set of i, or itself. */
int net_root(int *up, int i); /* the lowest */
void net_join(int *up, int a, int b);

/* NICs by host: those of host h are nic[first[h]] .. nic[first[h + 1] - 1], by their names or else
 * in the order of their rows. */
struct net_nics {
    int *first, *nic;
};
struct net_nics net_nics_of(const struct topo *t, bool by_name);
void net_nics_free(struct net_nics *n);

/* --- what a network says of the hosts of a topology: who belongs together, and which switch each
 * NIC is cabled to (net_topo.c) --- */

/* Set host and device of each HCA: by the GUIDs of t's NICs (port or node), else by descriptions as
 * "node01 mlx5_0".  A description that several HCAs have tells nothing. */
void net_hosts(struct net *n, const struct topo *t);

/* Declares what n tells: LEVEL_LEAF, a group of leaves and its hosts; LEVEL_SPINE, groups below the
 * same second-tier switches, and so on above, where there are several.  The part with most hosts is
 * `origin`, others are "ORIGIN subnet 2" ... */
void net_declare(struct topo *t, const struct net *n, const char *origin);

/* From t->net, all of SOURCE_IBNET: hosts of HCAs; leaf, leaf_port, GUID and rate of NICs, which
 * are added where the host has none of that device; of endpoints the leaf of their nearest NIC, or
 * the group of leaves of a host of which that is not known.  What is there stays.  Again is
 * harmless. */
void net_apply(struct topo *t);

#endif
