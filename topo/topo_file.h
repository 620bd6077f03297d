/* topo_file.h - what the reader and the writer of topology.json agree on. */
#ifndef RG_TOPO_FILE_H
#define RG_TOPO_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "topo/topo.h"

#define TOPO_FORMAT "railgauge-topology"
enum { TOPO_VERSION = 1, TABLE_ROWS_MAX = 1 << 20 };

enum { HOST_COLUMNS = 5, NIC_COLUMNS = 9, ENDPOINT_COLUMNS = LEVEL_COUNT + 7 };
extern const char *const host_columns[HOST_COLUMNS];
extern const char *const nic_columns[NIC_COLUMNS];
/* The levels come first, in the order of enum level. */
extern const char *const endpoint_columns[ENDPOINT_COLUMNS];

extern const char *const link_layer_name[3];    /* by enum link_layer */
extern const char *const endpoint_kind_name[2]; /* by enum endpoint_kind */

/* One table while its rows are read; the place is put into words only when something is wrong. */
struct table {
    const char *path, *name;
    const char *const *columns;
    json_t *rows, *row;
    size_t at;
    struct err *err;
};

/* Checks columns and rows of {"columns": [...], "rows": [[...], ...]}; path and err are kept. */
int table_open(struct table *b, const char *path, const char *name, json_t *from,
               const char *const *columns, int count, struct err *err);
/* The next row into b->row; 0 when there is none, or when *rc is or becomes -1. */
int table_next(struct table *b, int columns, int *rc);
/* "PATH: NAME.rows[17]: COLUMN is VALUE, what"; returns -1. */
int cell_bad(const struct table *b, int col, const char *what);
/* A whole number of 0..max-1; where null is allowed it gives -1. */
int cell_index(const struct table *b, int col, int max, bool null, int *out);
int cell_number(const struct table *b, int col, double max, double *out); /* > 0; null gives 0 */
int cell_flag(const struct table *b, int col, bool *out);
/* *out borrows from the row; null gives NULL. */
int cell_text(const struct table *b, int col, size_t max, bool null, const char **out);
int cell_name(const struct table *b, int col, const char *const *names, int count, int *out);

#endif
