/* compute.h - what this host computes per second, for machines whose rate no data sheet gives.
 *
 * A plain fp32 matrix product, one core, medians of many runs: an honest lower mark, not a tuned
 * library's rate.  The sentence in `source` says exactly that and goes beside every number built on
 * it. */
#ifndef RG_COMPUTE_H
#define RG_COMPUTE_H

#include "base/err.h"

enum {
    COMPUTE_SIZE = 256
}; /* the product is COMPUTE_SIZE^3; its three matrices fit a 1 MiB cache */

struct compute {
    double flops;  /* FLOP/s, median; a multiply-add counts as two */
    double lo, hi; /* 95 % interval of the median */
    double spread; /* of single runs: one standard deviation as a share, from their 5th and 95th
                      percentiles.  On a busy host it is what the next minute may bring. */
    int runs;
    char source[160]; /* "fp32 matmul 256x256 measured on this host, 1 core, 91 runs" */
};

/* Measure for about `seconds` (0.01 .. 60, at least 5 runs), on the calling thread. */
int compute_measure(struct compute *c, double seconds, struct err *err);

#endif
