/* cluster_impl.h - clustering under way: what bandwidth (cluster.c) and latency (latency.c) make of
 * each pair. */
#ifndef RG_CLUSTER_IMPL_H
#define RG_CLUSTER_IMPL_H

#include "cost/fit/cluster.h"

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
