/* topo_impl.h - tables of topology.json, each defined once for writer and reader. */
#ifndef RG_TOPO_IMPL_H
#define RG_TOPO_IMPL_H

#include "topo/topo.h"
#include "topo/topo_table_impl.h"

/* Number of levels in an endpoint row; spines belong to hosts and have a table of their own. */
enum { LEVEL_PLACES = LEVEL_SPINE };
enum { TOPO_NAME_MAX = 255, TOPO_NUMBER_MAX = 65535 };

/* Distinct values of a repetitive column: models, and the five sources of an endpoint's place. */
struct topo_distinct {
    json_t *values;
    int last; /* index of the last value looked up */
};

struct topo_writer {
    const struct topo *t;
    FILE *f;
    const char *before; /* text before the next row */
    struct topo_distinct models, sources;
};

/* Write the next row; returns true: the row exists. */
static inline bool topo_writer_row(struct topo_writer *w, const struct topo_column *c, int columns,
                                   const void *object)
{
    fputs(w->before, w->f);
    w->before = ",\n  ";
    topo_row_put(w->f, c, columns, object);
    return true;
}

/* Tables that a CELL_PARENT can refer to: a level, or one of these. */
enum { OF_NIC = LEVEL_PLACES, OF_MODEL, OF_SOURCES, OF_NODE, OF_COUNT };
struct topo_reader {
    struct topo *t;
    json_t *models, *sources;
    int rows[OF_COUNT]; /* number of rows of each read so far */
    int *spine;         /* for each host: row << 8 | source; 0: unknown */
};

/* Table.  Its rows are the objects of an array in struct topo or struct net. */
struct topo_rows {
    const char *key;
    const struct topo_column *column;
    /* Number of columns.  before: in files of 0.1.0 and older, accepted for one release; 0: all. */
    int columns, before;
    bool always;        /* written even without rows */
    bool net;           /* array of struct net; exists only if a network was read */
    size_t count;       /* offset of the int with the number of objects */
    size_t array, size; /* offset of the pointer to the objects; size of each */
    /* NULL: rows are the object's columns.  Else topo_writer_row() for row i; false: no such
     * row. */
    bool (*row)(struct topo_writer *w, int i);
    int (*load)(struct topo_reader *r, struct topo_table *b); /* current row */
    int (*end)(struct topo_reader *r,
               struct topo_table *b); /* called after the last row; NULL: no call */
};
#define TOPO_ROWS(name, columns_of, of, member, members)                                           \
    .key = name, .column = columns_of, .columns = sizeof(columns_of) / sizeof(*(columns_of)),      \
    .count = offsetof(of, members), .array = offsetof(of, member),                                 \
    .size = sizeof(*((of *)0)->member)

/* Order of the tables in the file; a table follows those that its rows refer to. */
enum {
    ROWS_HOSTS,
    ROWS_NICS,
    ROWS_PORTS,
    ROWS_NIC_VERSIONS,
    ROWS_VERBS,
    ROWS_GPUDIRECT,
    ROWS_GPUS,
    ROWS_TRIALS,
    ROWS_ENDPOINTS,
    ROWS_SPINES,
    ROWS_GROUPS,
    ROWS_NET_NODES,
    ROWS_CABLES,
    ROWS_TABLES
};
extern const struct topo_rows *const topo_rows[ROWS_TABLES];
extern const struct topo_rows gpu_rows, port_rows, nic_version_rows, nic_verbs_rows, gpudirect_rows,
    net_node_rows, cable_rows;

#endif
