/* topo_impl.h - what the reader and the writer of topology.json agree on. */
#ifndef RG_TOPO_IMPL_H
#define RG_TOPO_IMPL_H

#include <jansson.h>
#include <stdbool.h>

#include "topo/host/gpu.h"
#include "topo/host/mnnvl.h"
#include "topo/host/nic.h"
#include "topo/topo.h"
#include "topo/topo_column.h"

enum { TABLE_ROWS_MAX = 1 << 20 };

/* The levels that an endpoint row tells; spines belong to hosts and have a table of their own. */
enum { LEVEL_PLACES = LEVEL_SPINE };
enum { HOST_COLUMNS = 5, NIC_COLUMNS = 9, ENDPOINT_COLUMNS = LEVEL_PLACES + 7 };
extern const char *const host_columns[HOST_COLUMNS];
extern const char *const nic_columns[NIC_COLUMNS];
/* The levels come first, in the order of enum level. */
extern const char *const endpoint_columns[ENDPOINT_COLUMNS];

/* The table of GPUs (gpu_rows.c); files of before it have none. */
enum { GPU_COLUMNS = 39 };
extern const struct topo_column gpu_columns[GPU_COLUMNS];
json_t *gpu_row(const struct gpu *g); /* new reference */
int gpu_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);

/* The table of trials (trial_rows.c); only where something was tried. */
enum { TRIAL_COLUMNS = 6 };
extern const struct topo_column trial_columns[TRIAL_COLUMNS];
int trial_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);

/* What else is known of NICs, a row for each of which something is, and how NICs reach GPU memory
 * (net/net_rows.c); only where there is some. */
enum { NIC_PORT_COLUMNS = 17, GPUDIRECT_COLUMNS = 2 };
extern const struct topo_column port_columns[NIC_PORT_COLUMNS],
    gpudirect_columns[GPUDIRECT_COLUMNS];
bool port_told(const struct nic *n);
json_t *port_row(const struct topo *t, int nic);       /* new reference */
json_t *gpudirect_row(const struct topo *t, int host); /* new reference */
int port_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);
int gpudirect_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);

/* What sources declare, and spines (claim_rows.c); only where there are some. */
enum { CLAIM_COLUMNS = 5, SPINE_COLUMNS = 3 };
extern const char *const claim_columns[CLAIM_COLUMNS], *const spine_columns[SPINE_COLUMNS];
json_t *claim_row(const struct declared_group *c); /* new reference */
int claim_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);
json_t *spine_row(const struct topo *t, int spine); /* new reference */
int spine_rows_load(struct topo *t, json_t *table, const char *path, struct err *err);

/* Switches, adapters and cables (net/net_rows.c); only where a network was read. */
struct net_node;
struct net_cable;
enum { NET_NODE_COLUMNS = 6, CABLE_COLUMNS = 10 };
extern const struct topo_column net_node_columns[NET_NODE_COLUMNS], cable_columns[CABLE_COLUMNS];
json_t *net_node_row(const struct net_node *n); /* new reference */
json_t *cable_row(const struct net_cable *c);   /* new reference */
int net_rows_load(struct topo *t, json_t *nodes, json_t *cables, const char *path, struct err *err);

extern const char *const link_layer_name[3]; /* by enum link_layer */

/* One table while its rows are read; the place is put into words only when something is wrong. */
struct topo_table {
    const char *path, *name;
    const char *const *columns;
    const char *name_of[TOPO_COLUMNS_MAX]; /* columns, of topo_columns_open() */
    json_t *rows, *row;
    size_t at;
    struct err *err;
};

/* Checks columns and rows of {"columns": [...], "rows": [[...], ...]}; path and err are kept. */
int topo_table_open(struct topo_table *b, const char *path, const char *name, json_t *from,
                    const char *const *columns, int count, struct err *err);
/* The next row into b->row; 0 when there is none, or when *rc is or becomes -1. */
int topo_table_next(struct topo_table *b, int columns, int *rc);
/* "PATH: NAME.rows[17]: COLUMN is VALUE, what"; returns -1. */
int cell_bad(const struct topo_table *b, int col, const char *what);
/* A whole number of 0..max-1; where null is allowed it gives -1. */
int cell_index(const struct topo_table *b, int col, int max, bool null, int *out);
int cell_number(const struct topo_table *b, int col, double max,
                double *out); /* > 0; null gives 0 */
int cell_flag(const struct topo_table *b, int col, bool *out);
int cell_maybe(const struct topo_table *b, int col, int *out); /* true, false or null: 1, 0, -1 */
/* *out borrows from the row; null gives NULL. */
int cell_text(const struct topo_table *b, int col, size_t max, bool null, const char **out);
/* The same into to[size]; null gives "". */
int cell_copy(const struct topo_table *b, int col, bool null, char *to, size_t size);
int cell_name(const struct topo_table *b, int col, const char *const *names, int count, int *out);

#endif
