/* ladder.h - error of curve_time() between the sizes of a ladder: a table of measured
 * curves, points of which are left out and predicted from the rest.
 *
 * The table is TSV with the columns system, nccl_version, op, ranks, bytes (op.h's S) and
 * latency_us, as AIConfigurator's nccl_perf tables give them; further columns are not looked at.
 * One curve is what shares the first four. */
#ifndef RG_LADDER_H
#define RG_LADDER_H

#include "base/err.h"
#include "base/tsv.h"
#include "matrix/curve.h"

struct ladder {
    const char *system, *version, *op; /* cells of the table */
    int ranks;
    struct curve curve; /* s; n = 1 */
};

struct ladders {
    struct tsv table;
    struct ladder *ladder; /* ladders in the order of the table */
    int count;
};

/* One prediction: the point left out and predicted / measured - 1. */
struct miss {
    int ladder;
    double bytes, error;
};

int ladders_load(struct ladders *l, const char *path, struct err *err);
void ladders_free(struct ladders *l);

/* Predict inner points; appended to *miss (the caller frees).  spacing <= 1: each inner point alone
 * from all others.  spacing > 1: thinned ladders, sizes at least that factor apart kept from each
 * of the first sizes on, predict the points between them. */
void ladders_predict(const struct ladders *l, double spacing, struct miss **miss, int *count);

#endif
