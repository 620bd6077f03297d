/* nodes_rows.h - the answers of railgauge nodes: sets of nodes and what a step costs on each. */
#ifndef RG_NODES_ROWS_H
#define RG_NODES_ROWS_H

#include <jansson.h>
#include <stdio.h>

#include "place/nodes.h"

/* One answer: a row of the table. */
struct row {
    double sec;
    int segment; /* 0: not asked */
    char *nodes;
};

struct rows {
    struct row *row;
    int count;
    bool exact;  /* no other set is better */
    long priced; /* sets; 0: not counted */
};

/* What is chosen of the free hosts, in words as typed. */
struct rows_ask {
    const char *free_nodes; /* NULL: all */
    int need, best;
};

/* Each adds rows; -1 with err.  The listed hosts; the best sets of them; each size of segment, as
 * wide as it may lie. */
int rows_price(struct rows *rows, const struct nodes_job *j, const int *host, int hosts,
               struct err *err);
int rows_sets(struct rows *rows, const struct nodes_job *j, const struct rows_ask *a,
              const int *host, int hosts, struct err *err);
int rows_segments(struct rows *rows, const struct nodes_job *j, const struct rows_ask *a,
                  struct err *err);
void rows_free(struct rows *rows);

/* A header and a line per row, with tabs. */
void rows_table(FILE *out, const struct rows *rows, bool segments);
json_t *rows_json(const struct rows *rows, const char *job); /* new reference */

#endif
