/* cluster_state.h - what cluster.c, cluster_latency.c and cluster_rest.c share. */
#ifndef RG_CLUSTER_STATE_H
#define RG_CLUSTER_STATE_H

#include "cost/fit/cluster.h"

enum { LATENCY_LEVELS = 5 };

enum label { UNKNOWN, NEAR, FAR };

struct work {
    int units, edges;
    const struct edge *e;
    enum label *label;
    int *parent; /* union-find */
    double *cap;
    double *v; /* scratch, one per edge */
};

/* Where not all pairs were measured two groups may be one that no near pair joined: those without a
 * far pair between them that are together no larger than the largest.  Only the larger one is kept,
 * of equal ones the earlier; units of the other are unresolved. */
void cluster_leave_parts(struct clusters *c, const struct work *w);
/* Units without a group go to the one that stands out by latency and is as near as near pairs are,
 * else to the one that stands out by what parallel traffic leaves. */
void cluster_place_rest(struct clusters *c, struct work *w);

/* Levels of v (sorted logarithms) that noise, a standard deviation, does not explain: how many, 0
 * for fewer than two; level[] gets their medians, ascending. */
int latency_levels(const double *v, int n, double noise, double *level);
/* The same of the edges' latencies. */
int cluster_levels(struct work *w, double *level);
/* Label edges with a latency NEAR or FAR of two levels (logarithms), UNKNOWN about the middle and
 * where others contradict; false when they contradict too many. */
int cluster_label_latency(struct work *w, double near, double far);

#endif
