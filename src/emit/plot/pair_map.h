/* pair_map.h - the bandwidth of every pair, in the order in which pictures show endpoints.
 *
 * What was measured of a pair is used first: the probe that ran alone (retest, isolated) before the
 * one that ran beside others, the median over epochs.  Pairs that were not measured get what the
 * cost matrix says.  "Expected" is the curve of the pair's tier: what a healthy pair of its kind
 * gives. */
#ifndef RG_PAIR_MAP_H
#define RG_PAIR_MAP_H

#include <jansson.h>
#include <stdio.h>

#include "cost/matrix.h"
#include "emit/plot/heat.h"
#include "probe/point.h"

struct pair_sample {
    int src, dst;
    int rank;   /* 1: ran alone; such a sample hides the others of its pair */
    double Bps; /* NAN: failed, or its data was wrong */
};

struct pair_map {
    const struct matrix *m;
    double bytes;               /* message size of everything below */
    enum direction dir;         /* DIR_UNI or DIR_BI (each direction while both run) */
    int n;                      /* places */
    int *order;                 /* place in pictures -> endpoint id */
    int *place;                 /* endpoint id -> place in pictures; -1: not in them */
    struct pair_sample *sample; /* sorted by (src, dst), one a pair */
    int samples;
    int *first; /* by sender, one more than there are endpoints: its samples begin there */
    double expected[TIER_MAX]; /* B/s; NAN: tier without a curve */
    unsigned char *odd;        /* by id: is it of a part that an exception slows? */
    int *key; /* by id, one for each tier but the last: the first that two share is their tier */
};

/* Names of tiers and racks: pairs of these alone, where any is named.  Nothing is owned. */
struct pair_only {
    const char **name;
    int names;
};
/* Every name is a tier or a rack of the matrix: else EXIT_USAGE with what there is. */
int pair_only_check(const struct pair_only *o, const struct matrix *m, struct err *err);
/* Is it named, or is none? */
bool pair_only_tier(const struct pair_only *o, const struct matrix *m, int tier);

/* p may be NULL.  m must outlive it.  only: these alone are in the map, others have no place (-1), or no
 * expected rate; NULL: all.  Fewer than two endpoints, a matrix without a pair curve, or no pair that is
 * left: EXIT_DATA. */
int pair_map_init(struct pair_map *ps, const struct matrix *m, const struct points *p,
                  const struct pair_only *only, struct err *err);
void pair_map_free(struct pair_map *ps);

/* topo_tier() of two that are not one, at every turn in the same few steps: millions are asked for. */
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

/* of the expected rate */
static inline double pair_map_share(const struct pair_map *ps, int src, int dst, double rate)
{
    return rate / ps->expected[pair_map_tier(ps, src, dst)];
}

/* The measured sample of a pair, or NULL. */
const struct pair_sample *pair_map_sample(const struct pair_map *ps, int src, int dst);

/* A list of all directed pairs, endpoints by id; new reference. */
enum { PAIR_MAP_LIST_MAX = 4096 }; /* endpoints; more are too long a list */
json_t *pair_map_json(const struct pair_map *ps);
/* The share of expected (percent) or the bandwidth (GB/s; the share is then its second table) of every
 * pair; *ps must outlive it. */
struct heat pair_map_heat(const struct pair_map *ps, enum heat_palette palette);
/* Both maps, share of expected and GB/s, in the terminal (see heat.h). */
void pair_map_print(FILE *out, const struct pair_map *ps, int columns, bool colour);

#endif
