/* pair_map.h - bandwidth of every pair, in the order of endpoints in pictures.
 *
 * Measured values come first: the probe that ran alone (retest, isolated) before the one under
 * load, the median over epochs.  Pairs that were not measured get the value of the cost matrix.
 * "Expected" is the curve of the pair's tier: the speed of a healthy pair of its kind. */
#ifndef RG_PAIR_MAP_H
#define RG_PAIR_MAP_H

#include <jansson.h>
#include <stdio.h>

#include "matrix/matrix.h"
#include "measure/point.h"
#include "report/plot/heat.h"

struct pair_sample {
    int src, dst;
    int rank;   /* 1: ran alone, which hides other samples of the pair */
    double Bps; /* NAN: failed, or wrong data */
};

struct pair_map {
    const struct matrix *m;
    double bytes;               /* message size of all values below */
    enum direction dir;         /* DIR_UNI, or DIR_BI (each direction while both run) */
    int n;                      /* number of positions */
    int *order;                 /* position in pictures -> endpoint id */
    int *place;                 /* endpoint id -> position in pictures; -1: not shown */
    struct pair_sample *sample; /* sorted by (src, dst), one per pair */
    int samples;
    int *first; /* by sender, one entry more than endpoints: index of the first sample */
    double expected[TIER_MAX]; /* B/s; NAN: tier without a curve */
    unsigned char *odd;        /* by id: true if the endpoint belongs to a part with an exception */
    /* by id, an entry per tier except the last: the first tier with equal keys is the tier of a
     * pair */
    int *key;
};

/* Names of tiers and racks: show only their pairs, if any is named.  All pointers are borrowed. */
struct pair_only {
    const char **name;
    int names;
};
/* Check that every name is a tier or a rack of the matrix.  EXIT_USAGE with the existing names if
 * not. */
int pair_only_check(const struct pair_only *o, const struct matrix *m, struct err *err);
/* True if the tier is named, or none is. */
bool pair_only_tier(const struct pair_only *o, const struct matrix *m, int tier);

/* Make the map.  p may be NULL.  m must outlive ps.  only: show only these; others have no position
 * (-1) or no expected rate; NULL: all.  EXIT_DATA: fewer than two endpoints, a matrix without a
 * pair curve, or no pair left. */
int pair_map_init(struct pair_map *ps, const struct matrix *m, const struct points *p,
                  const struct pair_only *only, struct err *err);
void pair_map_free(struct pair_map *ps);

/* topo_tier() of two different endpoints, in a constant number of steps, because it is called
 * millions of times. */
static inline int pair_map_tier(const struct pair_map *ps, int src, int dst)
{
    const int last = ps->m->topo.tiers - 1;
    const int *a = ps->key + (size_t)src * (size_t)last, *b = ps->key + (size_t)dst * (size_t)last;
    int tier = last;

    for (int i = last - 1; i >= 0; i--)
        tier = a[i] == b[i] ? i : tier;
    return tier;
}

/* B/s; NAN: no data (failed, dead part, tier without a curve, src == dst). */
double pair_map_rate(const struct pair_map *ps, int src, int dst);

/* share of the expected rate */
static inline double pair_map_share(const struct pair_map *ps, int src, int dst, double rate)
{
    return rate / ps->expected[pair_map_tier(ps, src, dst)];
}

/* Measured sample of a pair, or NULL. */
const struct pair_sample *pair_map_sample(const struct pair_map *ps, int src, int dst);

/* List of all directed pairs, endpoints by id; a new reference. */
enum { PAIR_MAP_LIST_MAX = 4096 }; /* endpoints; the list would be too long for more */
json_t *pair_map_json(const struct pair_map *ps);
/* Share of expected (percent) or bandwidth (GB/s; the share is then the second table) of every
 * pair; *ps must outlive the result. */
struct heat pair_map_heat(const struct pair_map *ps, enum heat_palette palette);
/* Print both maps, share of expected and GB/s, in the terminal (see heat.h). */
void pair_map_print(FILE *out, const struct pair_map *ps, int columns, bool colour);

#endif
