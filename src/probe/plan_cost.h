/* plan_cost.h - what a plan will cost: points, bytes, time. */
#ifndef RG_PLAN_COST_H
#define RG_PLAN_COST_H

#include <stdio.h>

#include "probe/measure.h"

/* Points of a plan: (group, size, epoch). */
double plan_points(const struct plan *p);

/* The time cap in force: `asked`, or for 0 one that lets the campaign take about 40 s, 20..100 ms.
 */
double plan_time_cap(const struct plan *p, double asked);

/* The longest message in force: `asked`, or for 0 what suits the endpoints. */
double plan_max_run(const struct topo *t, double asked);

/* "8 endpoints, 61 rounds, about 3410 points, 1.2 GiB moved, about 12 s to 40 s of measuring\n".
 * The time is a guess: nothing is measured yet (10 us a rank are assumed, and 10 GB/s between CPUs
 * or 100 GB/s between GPUs).  The second time is what the stop rule allows, every size up to its
 * cap; starting ranks, retests and pictures come on top. */
void plan_cost_print(FILE *out, const struct plan *p, const struct topo *t,
                     const struct measure_opts *o);

/* Seconds, by the same guess, of --exact: latency and both ways' bandwidth at `bytes` of every
 * pair, once. */
double plan_exact_seconds(const struct topo *t, size_t bytes);

#endif
