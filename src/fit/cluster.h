/* cluster.h - which hosts belong together, found from measured pairs alone.
 *
 * A pair's bandwidth is the minimum of both NICs and what lies between, never their product.  So
 * each unit's own cap is the best it reaches with anybody; a pair far below both caps is limited by
 * what lies between
 * ("far"), a pair at its smaller cap is "near" only when that cap exceeds what far pairs get, else
 * nothing is known.  Near pairs join units; far pairs inside a group would contradict it.  A unit
 * that bandwidth cannot place is placed by latency, then by what parallel traffic leaves of its
 * bandwidth; else it is left out and named.  Latency is asked by itself as well: pairs on its
 * lowest level are near, those above are far, and of two groupings the inner one is taken.  Not
 * every pair need be there: a group that may be a part of another that it never met is left out
 * too. */
#ifndef RG_CLUSTER_H
#define RG_CLUSTER_H

#include <stdbool.h>
#include <stdlib.h>

/* One unordered pair of units; NAN: not measured. */
struct edge {
    int a, b;
    double Bps;    /* best of both directions */
    double sec;    /* one-way latency */
    double shared; /* bandwidth among parallel pairs / alone */
    double noise;  /* standard error of sec, share; 0: not known */
};

enum clue { CLUE_NONE, CLUE_BANDWIDTH, CLUE_LATENCY };

struct clusters {
    int *of;    /* group of each unit, -1: cannot be told; groups are numbered by first member */
    int groups; /* 0 or 1: no structure was found */
    int unresolved; /* units with of = -1 */
    enum clue clue;
    double near, far;   /* medians: B/s or s, by clue */
    int contradictions; /* far pairs inside groups when that is why nothing was found */
};

/* A gap in bandwidth must exceed this share and 5 robust standard deviations to count.  Levels of
 * latency need not: where the noise of each pair is known and there are several pairs, 3 % are
 * enough, if that is 4.5 deviations. */
#define CLUSTER_GAP 0.15

void cluster_units(struct clusters *c, int units, const struct edge *e, int edges);
static inline void cluster_free(struct clusters *c)
{
    free(c->of);
    *c = (struct clusters){.of = NULL};
}

/* --- clustering under way: what bandwidth (cluster.c) and latency (latency.c) make of each pair --- */

enum label { UNKNOWN, NEAR, FAR };

struct clustering {
    int units, edges;
    const struct edge *e;
    enum label *label;
    int *parent; /* union-find */
    double *cap;
    double *v; /* scratch, one per edge */
};

/* Levels of all latencies, as stats_levels(). */
int cluster_levels(struct clustering *w, double *level);
/* Label edges with a latency NEAR or FAR of two levels (logarithms), UNKNOWN about the middle and
 * where others contradict; false when they contradict too many. */
int cluster_by_latency(struct clustering *w, double near, double far);

#endif
