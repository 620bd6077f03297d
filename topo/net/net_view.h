/* net_view.h - hosts, and groups of leaves, as a network alone shows them.
 *
 * A port is one cabled port of a host's adapter at a switch.  With rails every adapter of a host is
 * on a leaf of its own, and hosts with the same leaves are a group: what schedulers call a leaf.
 * Hosts that miss a leaf of most others, or sit on one of another group by a wrong cable, still
 * belong where most of their leaves are.  Groups are made in each part of the network by itself. */
#ifndef RG_NET_VIEW_H
#define RG_NET_VIEW_H

#include <stdio.h>

#include "topo/net/net.h"

struct net_port {
    int hca, leaf; /* nodes */
    int port, leaf_port;
    int cable;
    int host; /* index into net_view.host */
    char device[32];
};

struct net_host {
    char *name;
    int first, ports; /* its ports are together */
};

struct net_group {
    char *name; /* "leaf-su0-r[0-3]" */
    int part;
    int *leaf, leaves; /* nodes, in the order of their labels */
    int *host, hosts;
};

struct net_view {
    const struct net *net;
    char **label; /* net_labels() */
    int *part, parts;
    struct net_port *port; /* by host, device and port */
    int ports;
    struct net_host *host; /* by name */
    int hosts;
    struct net_group *group; /* by part and name */
    int groups;
    int unnamed; /* HCAs that cannot be given to a host */
};

/* t: for the names of hosts that GUIDs gave to HCAs (net_hosts()); both are borrowed. */
void net_view_make(struct net_view *v, const struct net *n, const struct topo *t);
void net_view_free(struct net_view *v);

/* A description as host and device: "node01 mlx5_0", "node01 HCA-1", "node01"; false for what their
 * makers call them, and for "localhost". */
bool net_described(const char *name, char host[65], char device[32]);
/* Of each HCA whether another one has its description: hosts that were never named share one. */
bool *net_described_again(const struct net *n); /* by node; the caller frees */

/* "leaf-03[17]" in buf */
enum { NET_END = 80 };
char *net_end_text(char buf[NET_END], const struct net_view *v, int node, int port);

/* Lines of topo_print(): switches by tier, adapters, cables by rate, and the parts where there are
 * several; nothing without a net. */
void net_print(FILE *f, const struct topo *t);

#endif
