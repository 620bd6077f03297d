/* pair_cost.h - cost of a pair as one number, for exports that need every pair.
 *
 * The numbers equal those of matrix_pair().  Pairs without an exception are looked up by tier, so
 * that a billion pairs take seconds; other pairs ask only the exceptions of their own parts. */
#ifndef RG_PAIR_COST_H
#define RG_PAIR_COST_H

#include "base/map.h"
#include "matrix/matrix.h"

enum quantity { QUANTITY_OWN, QUANTITY_BANDWIDTH, QUANTITY_LATENCY, QUANTITY_TIME, QUANTITY_COUNT };
/* words of --quantity; NULL for QUANTITY_OWN */
extern const char *const quantity_name[QUANTITY_COUNT];

struct pair_cost {
    const struct matrix *m;
    enum quantity quantity;
    double bytes;         /* message size; 1 for latency */
    double sec[TIER_MAX]; /* time of healthy pairs */
    struct lists odd;     /* by endpoint: exceptions of its parts */
};

enum { PAIR_COST_BYTES = 64 << 20 }; /* default message size */

void pair_cost_init(struct pair_cost *q, const struct matrix *m, enum quantity quantity,
                    double bytes);
void pair_cost_free(struct pair_cost *q);

/* Cost of src -> dst.  Latency and time in s, INFINITY if a part on the path is dead; bandwidth in
 * bytes/s, 0 if dead.  NAN: not known.  src == dst: 0 s, and bandwidth NAN. */
double pair_cost_of(const struct pair_cost *q, int src, int dst);
/* True if no exception concerns a part of this endpoint. */
static inline bool pair_cost_plain(const struct pair_cost *q, int endpoint)
{
    return q->odd.start[endpoint] == q->odd.start[endpoint + 1];
}
/* EXIT_DATA with both names if value is NAN. */
int pair_cost_known(const struct pair_cost *q, double value, int src, int dst, struct err *err);

/* Healthy tier as latency and bandwidth, for programs that use alpha + bytes / Bps: exact at 8
 * bytes and at `bytes`.  EXIT_DATA: the tier has no curve. */
struct pair_line {
    double alpha, Bps;
};
int pair_cost_line(struct pair_line *l, const struct matrix *m, int tier, double bytes,
                   struct err *err);

#endif
