/* collective.h - a collective on one group resolved once: which curves answer for it and which
 * parts slow it.  Then any size is a few multiplications, without words and without allocation;
 * matrix_collective() is the same with words.
 *
 * One rule for all groups, measured or not.  Inside the sizes of a curve its points answer.  Beyond
 * the largest a time goes on from its last points by the slope of the tiers' model, and the more of
 * the last time was spent moving bytes, the more by the slope of the last two octaves: cut at 16
 * MiB, 133 NCCL curves are met at 128 MiB with a median error of 18 % where constant bus bandwidth
 * misses by 49 %, cut at 128 MiB at 512 MiB with 3 % and 9 %.  Below the smallest size the model's
 * ratio is kept.  Intervals there widen with the distance from the curve.
 *
 * Measured and modelled shapes meet here, and may not contradict what the tiers say: a group that
 * lies in several domains costs no less than as many ranks inside one, where one holds them, unless
 * it was measured at that size or the tiers themselves say so. */
#ifndef RG_COLLECTIVE_H
#define RG_COLLECTIVE_H

#include "cost/model.h"

/* Curves that may stand in for the group: same op, same domain pattern; below and above in ranks.
 */
struct found {
    const struct collective *same, *below, *above;
    bool gpus; /* of a matrix of GPUs: rings are pipelined */
};

/* A size, what the curves say there, and what the model says of the healthy group. */
struct anchor {
    double bytes, sec, model;
    double moving; /* share of sec that grows with the size; of the first size: that does not */
};

/* One healthy group: its curves, and how they go on beyond their ends. */
struct reading {
    struct ways ways;
    struct found found;
    struct anchor first, last; /* of all curves that answer; of no curves: not set */
    double slope;              /* times the model's beyond the last */
    double slopes;             /* the curves' there, of the model's */
};

struct quote {
    enum op op;
    struct ways ways;
    struct reading own, near; /* near: as many ranks inside one domain */
    bool floored;             /* there is such a domain */
};

/* ways: ways_of() of the group and op, at_once set.  A collective of at least two ranks.  The
 * matrix must outlive the quote.  published: measured curves are not looked at. */
void quote_of(struct quote *q, const struct matrix *m, enum op op, const struct ways *ways,
              bool published);
/* Seconds: what matrix_collective_beside() says.  NAN when unknown, INFINITY when a part is dead.
 */
double quote_time(const struct quote *q, const struct matrix *m, double bytes);

#endif
