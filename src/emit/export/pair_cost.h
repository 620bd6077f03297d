/* pair_cost.h - what a pair costs, as one number: for exports that ask for every pair.
 *
 * The numbers are matrix_pair()'s; pairs that no exception touches are looked up by tier, so that a
 * billion of them take seconds. */
#ifndef RG_PAIR_COST_H
#define RG_PAIR_COST_H

#include <stdbool.h>

#include "cost/matrix.h"

enum quantity { QUANTITY_OWN, QUANTITY_BANDWIDTH, QUANTITY_LATENCY, QUANTITY_TIME, QUANTITY_COUNT };
extern const char *const quantity_name[QUANTITY_COUNT]; /* as --quantity has them; NULL of own */

struct pair_cost {
    const struct matrix *m;
    enum quantity quantity;
    double bytes;         /* of messages; of latency 1 */
    double sec[TIER_MAX]; /* of healthy pairs */
    bool *odd;            /* by endpoint: an exception may concern it */
};

enum { PAIR_COST_BYTES = 64 << 20 }; /* where no size is asked for */

void pair_cost_init(struct pair_cost *q, const struct matrix *m, enum quantity quantity,
                    double bytes);
void pair_cost_free(struct pair_cost *q);

/* One way, src -> dst.  Latency and time in s, INFINITY when a part on the way is dead; bandwidth
 * in bytes/s, then 0.  NAN: not known.  src == dst: 0 s, and bandwidth NAN. */
double pair_cost_of(const struct pair_cost *q, int src, int dst);
/* NAN is an error (EXIT_DATA) that names both. */
int pair_cost_known(const struct pair_cost *q, double value, int src, int dst, struct err *err);

/* A healthy tier as latency and bandwidth, for programs that add alpha + bytes / Bps: exact at 8
 * bytes and at `bytes`.  EXIT_DATA: the tier has no curve. */
struct pair_line {
    double alpha, Bps;
};
int pair_cost_line(struct pair_line *l, const struct matrix *m, int tier, double bytes,
                   struct err *err);

#endif
