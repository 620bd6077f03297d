/* net_view.h - hosts and groups of leaves, derived from a network alone.
 *
 * A port is one cabled port of a host's NIC at a switch.  With rails every NIC of a host is on a
 * leaf of its own, and hosts with the same leaves form a group, which schedulers call a leaf.  A
 * host that lacks a leaf, or is wrongly cabled to a leaf of another group, belongs where most of
 * its leaves are.  Parts of the network are grouped separately. */
#ifndef RG_NET_VIEW_H
#define RG_NET_VIEW_H

#include <stdio.h>

#include "topo/net.h"

struct net_port {
    int hca, leaf; /* nodes */
    int port, leaf_port;
    int cable;
    int host; /* index into net_view.host */
    char device[32];
};

struct net_host {
    char *name;
    int first, ports; /* ports of a host are consecutive */
};

struct net_group {
    char *name; /* "leaf-su0-r[0-3]" */
    int part;
    int *leaf, leaves; /* nodes, in the order of their labels */
    int *host, hosts;
};

struct net_view {
    const struct net *net;
    char **label; /* see net_labels() */
    int *part, parts;
    struct net_port *port; /* sorted by host, device and port */
    int ports;
    struct net_host *host; /* sorted by name */
    int hosts;
    struct net_group *group; /* sorted by part and name */
    int groups;
    int unnamed; /* number of HCAs without a known host */
};

/* t supplies host names that GUIDs assigned to HCAs (net_hosts()).  n and t are borrowed. */
void net_view_make(struct net_view *v, const struct net *n, const struct topo *t);
void net_view_free(struct net_view *v);

/* Split a description into host and device: "node01 mlx5_0", "node01 HCA-1", "node01".  False for
 * makers' default descriptions and for "localhost". */
bool net_described(const char *name, char host[65], char device[32]);
/* True for each HCA that shares its description: hosts that were never named have the same. */
bool *net_described_again(const struct net *n); /* indexed by node; the caller frees */

/* "leaf-03[17]" in buf */
enum { NET_END = 80 };
char *net_end_text(char buf[NET_END], const struct net_view *v, int node, int port);

/* Print the network's lines of discover_report(): switches by tier, NICs, cables by rate, and the parts
 * if there are several; nothing without a net. */
void net_print(FILE *f, const struct topo *t);

#endif
