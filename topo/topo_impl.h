/* topo_impl.h - what the reader and the writer of topology.json agree on: its tables. */
#ifndef RG_TOPO_IMPL_H
#define RG_TOPO_IMPL_H

#include <stdio.h>

#include "topo/topo.h"
#include "topo/topo_table.h"

/* The levels that an endpoint row tells; spines belong to hosts and have a table of their own. */
enum { LEVEL_PLACES = LEVEL_SPINE };
enum { ENDPOINT_COLUMNS = LEVEL_PLACES + 7 };
enum { TOPO_NAME_MAX = 255 };

/* A row of the table of hosts. */
struct host_row {
    char name[TOPO_NAME_MAX + 1], cpu[TOPO_NAME_MAX + 1];
    int sockets, cores;
    double memory_bytes;
};

/* Distinct values of a column that repeats: models, and the five sources of an endpoint's place. */
struct topo_distinct {
    json_t *values;
    size_t last;
};

/* Where rows are written. */
struct topo_writer {
    FILE *f;
    const struct topo *t;
    struct topo_distinct models, sources;
};

/* A table of topology.json. */
struct topo_rows {
    const char *key;
    const struct topo_column *column;
    int columns;
    bool always; /* there without a row, too */
    /* Of an int of struct topo: how many rows there may be; not used of a network's. */
    size_t count;
    json_t *(*row)(struct topo_writer *w, int i); /* new reference; NULL: there is no such row */
    /* Where it is not topo_load.c that reads them; table: as in the file. */
    int (*load)(struct topo *t, json_t *table, const char *path, struct err *err);
};

/* In their order in the file.  Of the columns of endpoints the levels come first, in the order of
 * enum level. */
enum {
    ROWS_HOSTS,
    ROWS_NICS,
    ROWS_PORTS,
    ROWS_GPUDIRECT,
    ROWS_GPUS,
    ROWS_TRIALS,
    ROWS_ENDPOINTS,
    ROWS_SPINES,
    ROWS_CLAIMS,
    ROWS_TABLES
};
extern const struct topo_rows *const topo_rows[ROWS_TABLES];

/* GPUs (host/gpu.c); files of before it have none.  What else is known of NICs, a row for each of
 * which something is, and how NICs reach GPU memory; switches and adapters, and cables, only where a
 * network was read (net/net_rows.c). */
extern const struct topo_rows gpu_rows, port_rows, gpudirect_rows, net_node_rows, cable_rows;
/* Both; NULL: not in the file. */
int net_rows_load(struct topo *t, json_t *nodes, json_t *cables, const char *path, struct err *err);

#endif
