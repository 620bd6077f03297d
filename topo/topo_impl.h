/* topo_impl.h - what the reader and the writer of topology.json agree on: its tables. */
#ifndef RG_TOPO_IMPL_H
#define RG_TOPO_IMPL_H

#include "topo/topo.h"
#include "topo/topo_table.h"

/* The levels that an endpoint row tells; spines belong to hosts and have a table of their own. */
enum { LEVEL_PLACES = LEVEL_SPINE };
enum { HOST_COLUMNS = 5, NIC_COLUMNS = 9, ENDPOINT_COLUMNS = LEVEL_PLACES + 7, TRIAL_COLUMNS = 6 };
enum { CLAIM_COLUMNS = 5, SPINE_COLUMNS = 3, GPU_COLUMNS = 39 };
enum { TOPO_NAME_MAX = 255 };

/* A row of the table of hosts. */
struct host_row {
    char name[TOPO_NAME_MAX + 1], cpu[TOPO_NAME_MAX + 1];
    int sockets, cores;
    double memory_bytes;
};
extern const struct topo_column host_columns[HOST_COLUMNS], nic_columns[NIC_COLUMNS],
    trial_columns[TRIAL_COLUMNS], claim_columns[CLAIM_COLUMNS], spine_columns[SPINE_COLUMNS];
/* The levels come first, in the order of enum level. */
extern const struct topo_column endpoint_columns[ENDPOINT_COLUMNS];

/* The table of GPUs (host/gpu.c); files of before it have none. */
struct gpu;
extern const struct topo_column gpu_columns[GPU_COLUMNS];
json_t *gpu_row(const struct gpu *g); /* new reference */
int gpu_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);

/* What else is known of NICs, a row for each of which something is, and how NICs reach GPU memory
 * (net/net_rows.c); only where there is some. */
enum { NIC_PORT_COLUMNS = 17, GPUDIRECT_COLUMNS = 2 };
extern const struct topo_column port_columns[NIC_PORT_COLUMNS],
    gpudirect_columns[GPUDIRECT_COLUMNS];
struct nic;
bool port_told(const struct nic *n);
json_t *port_row(const struct topo *t, int nic);       /* new reference */
json_t *gpudirect_row(const struct topo *t, int host); /* new reference */
int port_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);
int gpudirect_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);

/* Switches, adapters and cables (net/net_rows.c); only where a network was read. */
struct net_node;
struct net_cable;
enum { NET_NODE_COLUMNS = 6, CABLE_COLUMNS = 10 };
extern const struct topo_column net_node_columns[NET_NODE_COLUMNS], cable_columns[CABLE_COLUMNS];
json_t *net_node_row(const struct net_node *n); /* new reference */
json_t *cable_row(const struct net_cable *c);   /* new reference */
int net_rows_load(struct topo *t, json_t *nodes, json_t *cables, const char *path, struct err *err);

#endif
