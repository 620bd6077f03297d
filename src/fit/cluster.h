/* cluster.h - groups of hosts, found from measured pairs alone.
 *
 * The bandwidth of a pair is the minimum of both NICs and the path between, never their product.  The cap of
 * a unit is the best bandwidth that the unit reaches with any other.  A pair far below both caps is limited
 * by the path ("far").  A pair at its smaller cap is "near" only if that cap exceeds the bandwidth of far
 * pairs; otherwise the pair is unknown.  Near pairs join units; a far pair inside a group contradicts the
 * group.
 *
 * A unit that bandwidth cannot place is placed by latency, then by the bandwidth that remains under load; if
 * that fails, the unit is left out and reported.  Latency also gives a grouping of its own: pairs on the
 * lowest level are near, pairs above are far, and the inner of two groupings wins.  Pairs may be missing: a
 * group that may belong to another group without a common pair is left out too. */
#ifndef RG_CLUSTER_H
#define RG_CLUSTER_H

#include <stdbool.h>
#include <stdlib.h>

/* One unordered pair of units; NAN: not measured. */
struct edge {
    int a, b;
    double Bps;    /* best of both directions */
    double sec;    /* one-way latency */
    double shared; /* bandwidth under load / alone */
    double noise;  /* standard error of sec as a share; 0: unknown */
};

enum clue { CLUE_NONE, CLUE_BANDWIDTH, CLUE_LATENCY };

struct clusters {
    int *of;        /* group of each unit, numbered by first member; -1: unresolved */
    int groups;     /* 0 or 1: no structure was found */
    int unresolved; /* units with of = -1 */
    enum clue clue;
    double near, far;   /* medians: B/s or s, by clue */
    int contradictions; /* far pairs inside groups when that is why nothing was found */
};

/* A gap in bandwidth counts above this share and 5 robust standard deviations.  Levels of latency need 3 %
 * and 4.5 deviations if the noise of each pair is known and there are several pairs. */
#define CLUSTER_GAP 0.15

void cluster_units(struct clusters *c, int units, const struct edge *e, int edges);
static inline void cluster_free(struct clusters *c)
{
    free(c->of);
    *c = (struct clusters){.of = NULL};
}

/* --- clustering in progress: labels of pairs by bandwidth (cluster.c) and latency (latency.c) --- */

enum label { EDGE_UNKNOWN, EDGE_NEAR, EDGE_FAR };

struct clustering {
    int units, edges;
    const struct edge *e;
    enum label *label;
    int *parent; /* union-find */
    double *cap;
    double *v; /* scratch, one per edge */
};

/* Find the levels of all latencies, like stats_levels(). */
int cluster_levels(struct clustering *w, double *level);
/* Label edges by latency: EDGE_NEAR or EDGE_FAR, given two levels (logarithms).  EDGE_UNKNOWN: edges near the midpoint
 * and edges that others contradict.  Returns false if too many are contradicted. */
int cluster_by_latency(struct clustering *w, double near, double far);

#endif
