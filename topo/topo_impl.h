/* topo_impl.h - the tables of topology.json, each once for its writer and its reader. */
#ifndef RG_TOPO_IMPL_H
#define RG_TOPO_IMPL_H

#include "topo/topo.h"
#include "topo/topo_table.h"

/* The levels that an endpoint row tells; spines belong to hosts and have a table of their own. */
enum { LEVEL_PLACES = LEVEL_SPINE };
enum { TOPO_NAME_MAX = 255, TOPO_NUMBER_MAX = 65535 };

/* Distinct values of a column that repeats: models, and the five sources of an endpoint's place. */
struct topo_distinct {
    json_t *values;
    int last; /* the one that was asked for last */
};

struct topo_writer {
    const struct topo *t;
    FILE *f;
    const char *before; /* the row that is next */
    struct topo_distinct models, sources;
};

/* Write the next row, which is there. */
static inline bool topo_writer_row(struct topo_writer *w, const struct topo_column *c, int columns,
                                   const void *object)
{
    fputs(w->before, w->f);
    w->before = ",\n  ";
    topo_row_put(w->f, c, columns, object);
    return true;
}

/* What a CELL_PARENT may be the number of: a name of a level, or one of these. */
enum { OF_NIC = LEVEL_PLACES, OF_MODEL, OF_SOURCES, OF_NODE, OF_COUNT };
struct topo_reader {
    struct topo *t;
    json_t *models, *sources;
    int rows[OF_COUNT]; /* how many of each are known by now */
    int *spine;         /* of each host: row << 8 | source, 0: none */
};

/* A table.  Its rows are the objects of an array of struct topo, or of struct net. */
struct topo_rows {
    const char *key;
    const struct topo_column *column;
    int columns,
        before;   /* before: in files of 0.1.0 and older, to be read for one release; 0: all */
    bool always;  /* there without a row, too */
    bool net;     /* of struct net, and there where one was read */
    size_t count; /* of the int that says how many objects there are */
    size_t array, size; /* of the pointer to them, and of each */
    /* Where a row is not just the object's columns: topo_writer_row(); false: there is no such row. */
    bool (*row)(struct topo_writer *w, int i);
    int (*load)(struct topo_reader *r, struct topo_table *b); /* the row at hand */
    int (*end)(struct topo_reader *r,
               struct topo_table *b); /* NULL: nothing to do after the last */
};
#define TOPO_ROWS(name, columns_of, of, member, members)                                           \
    .key = name, .column = columns_of, .columns = sizeof(columns_of) / sizeof(*(columns_of)),      \
    .count = offsetof(of, members), .array = offsetof(of, member),                                 \
    .size = sizeof(*((of *)0)->member)

/* In their order in the file; a table comes after those that its rows refer to. */
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
