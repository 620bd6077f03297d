/* net.h - a switched network: switches, host NICs, and every cable between them with its speed.
 *
 * Read from the live subnet with libibnetdisc, or from the text of ibnetdiscover (ibnet.h).  One
 * net holds all networks that were read: compute and storage subnets are parts that no cable
 * joins.  net_view.h derives hosts and groups of leaves, lint.h finds oddities. */
#ifndef RG_NET_H
#define RG_NET_H

#include <stdint.h>

#include "base/err.h"
#include "topo/topo.h"

enum net_kind { NET_SWITCH, NET_HCA, NET_AGGREGATION, NET_ROUTER, NET_KINDS };

enum { NET_PORTS = 254 }; /* maximum per node; ports are numbered from 1 */

struct net_node {
    enum net_kind kind;
    uint64_t guid;   /* GUID of the node; 0: unknown */
    char name[65];   /* node description, also a maker's default; see host */
    int ports;       /* number of ports */
    int tier;        /* switches: 0 has HCAs, 1 has tier-0 switches ...; -1: others */
    int host;        /* HCA: index into topo.host; -1: unknown */
    char device[32]; /* HCA: name on its host, "mlx5_0"; "": unknown */
};

struct net_cable {
    int a, b;                /* nodes, a <= b */
    int port_a, port_b;      /* port numbers */
    uint64_t guid_a, guid_b; /* port GUIDs, 0: unknown (switch ports share their node's) */
    int width;               /* lanes: 4; 0: unknown */
    char speed[8];           /* lane speed in InfiniBand's words: "HDR", "NDR"; "": unknown */
    double Bps;              /* per direction, all lanes: 50e9 for 4xNDR; 0: unknown */
    int lid_a, lid_b;        /* 0: unknown */
    bool differ;             /* the ends reported different rates; the lower is kept */
};

struct net {
    struct net_node *node;
    int nodes;
    struct net_cable *cable;
    int cables;
};

void net_free(struct net *n); /* NULL is allowed */
struct net *net_copy(const struct net *n);

/* Data rate per direction, B/s; 0: unknown speed.  Per lane: SDR 2, DDR 4, QDR 8, FDR10 10, FDR
 * 13.64, EDR 25, HDR 50, NDR 100, XDR 200 Gb/s: what remains after the line code 8b/10b or 64b/66b
 * (InfiniBand roadmap of the IBTA).  sysfs counts bits on the wire up to FDR. */
double net_rate(int width, const char *speed);
bool net_width(int width); /* true for 1, 2, 4, 8 or 12 lanes */

/* Order the ends of a cable (a <= b), set its rate and append it. */
void net_add_cable(struct net *n, struct net_cable c);
int net_count(const struct net *n, enum net_kind kind); /* number of nodes of a kind */
/* Find two nodes with the same GUID, or two cables at the same port; sets *x and *y to the
 * indices.  False if there are none. */
bool net_twins(const struct net *n, int *x, int *y);
bool net_clash(const struct net *n, int *x, int *y);
/* Set all tiers.  A few HCAs on a switch whose neighbours have many times as many (the subnet
 * manager's host on a spine) do not make it tier 0. */
void net_tiers(struct net *n);
/* Part of each node; no cable joins parts, part 0 has the most HCAs.  The caller frees. */
int *net_parts(const struct net *n, int *count);
/* Labels of nodes: "leaf-03" for the description "MF0;leaf-03:MQM9700/U1" of NVIDIA's switches,
 * otherwise the description, or "S-2c5eab0300b87b40" if that is empty or shared. */
char **net_labels(const struct net *n); /* one per node; free with hostlist_free(list, nodes) */
/* True for each text (NULL: none) that occurs again.  The caller frees. */
bool *net_texts_again(const char *const *text, int count);
/* Add a network from another file or port.  Nodes with the same GUID are one.  A port with two
 * different cables is EXIT_DATA, and `to` is unchanged.  path is used in the message. */
int net_merge(struct net *to, const struct net *from, const char *path, struct err *err);

/* Sets of nodes: up[i] is a lower member of the set that contains i, or i itself. */
int net_root(int *up, int i); /* lowest member of the set */
void net_join(int *up, int a, int b);

/* NICs by host: host h has nic[first[h]] .. nic[first[h + 1] - 1], by name or in topology order. */
struct net_nics {
    int *first, *nic;
};
struct net_nics net_nics_of(const struct topo *t, bool by_name);
void net_nics_free(struct net_nics *n);

/* --- hosts of a topology in a network: groups, and the switch that each NIC is cabled to
 * (net_topo.c) --- */

/* Set host and device of each HCA: by GUIDs of t's NICs (port or node), else by descriptions such
 * as "node01 mlx5_0".  A description that several HCAs share is ignored. */
void net_hosts(struct net *n, const struct topo *t);

/* Declare the groups of n: LEVEL_LEAF, a group of leaves with its hosts; LEVEL_SPINE, groups below
 * the same second-tier switches; likewise above, where there are several.  The part with most
 * hosts has the origin `origin`, others "ORIGIN subnet 2" ... */
void net_declare(struct topo *t, const struct net *n, const char *origin);

/* Apply t->net with SOURCE_IBNET: hosts of HCAs; leaf, leaf_port, GUID and rate of NICs, which are
 * added if the host has none of that device; leaf of endpoints, from their nearest NIC, else the
 * group of leaves of their host.  Existing facts stay, so repeated calls are harmless. */
void net_apply(struct topo *t);

#endif
