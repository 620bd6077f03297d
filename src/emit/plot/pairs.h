/* pairs.h - the bandwidth of every pair, in the order in which pictures show endpoints.
 *
 * What was measured of a pair is used first: the probe that ran alone (retest, isolated) before the
 * one that ran beside others, the median over epochs.  Pairs that were not measured get what the
 * cost matrix says.  "Expected" is the curve of the pair's tier: what a healthy pair of its kind
 * gives. */
#ifndef RG_PAIRS_H
#define RG_PAIRS_H

#include <jansson.h>
#include <stdio.h>

#include "cost/matrix.h"
#include "probe/point.h"

struct pair_sample {
    int src, dst;
    int rank;   /* 1: ran alone; such a sample hides the others of its pair */
    double Bps; /* NAN: failed, or its data was wrong */
};

struct pairs {
    const struct matrix *m;
    double bytes;       /* message size of everything below */
    enum direction dir; /* DIR_UNI or DIR_BI (each direction while both run) */
    int n;
    int *order;                 /* place in pictures -> endpoint id */
    int *place;                 /* endpoint id -> place in pictures */
    struct pair_sample *sample; /* sorted by (src, dst), one a pair */
    int samples;
    double expected[TIER_MAX]; /* B/s; NAN: tier without a curve */
    bool *special;             /* by id: an exception touches it */
};

/* p may be NULL.  m must outlive it.  Fewer than two endpoints, or a matrix without a pair curve:
 * EXIT_DATA. */
int pairs_init(struct pairs *ps, const struct matrix *m, const struct points *p, struct err *err);
void pairs_free(struct pairs *ps);

int pairs_tier(const struct pairs *ps, int src, int dst);
/* B/s; NAN: no data (failed, dead part, tier without a curve, src == dst). */
double pairs_rate(const struct pairs *ps, int src, int dst);
double pairs_share(const struct pairs *ps, int src, int dst,
                   double rate); /* of the expected rate */
/* The measured sample of a pair, or NULL. */
const struct pair_sample *pairs_sample(const struct pairs *ps, int src, int dst);

/* A list of all directed pairs, endpoints by id; new reference. */
enum { PAIRS_LIST_MAX = 4096 }; /* endpoints; more are too long a list */
json_t *pairs_json(const struct pairs *ps);
/* Both maps, share of expected and GB/s, in the terminal (see heat.h). */
void pairs_print(FILE *out, const struct pairs *ps, int columns, bool colour);

#endif
