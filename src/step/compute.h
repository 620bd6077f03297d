/* compute.h - compute rate measured on this host, for machines without a data sheet rate.
 *
 * A plain fp32 matrix product on one core, median of many runs: a conservative lower bound, not the
 * rate of a tuned library.  The sentence in `source` states this and accompanies every number built
 * on it. */
#ifndef RG_COMPUTE_H
#define RG_COMPUTE_H

#include "base/err.h"

enum { COMPUTE_SIZE = 256 }; /* edge of the matrices; all three fit a 1 MiB cache */

struct compute {
    double flops;  /* FLOP/s, median; a multiply-add counts as two */
    double lo, hi; /* 95 % interval of the median */
    /* Standard deviation of single runs, as a share, from their 5th and 95th percentiles.  On a
     * busy host it covers the changes of the next minutes. */
    double spread;
    int runs;
    char source[160]; /* "fp32 matmul 256x256 measured on this host, 1 core, 91 runs" */
};

/* Measure for about `seconds` (0.01 .. 60, at least 5 runs), on the calling thread. */
int compute_measure(struct compute *c, double seconds, struct err *err);

#endif
