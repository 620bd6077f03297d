/* curve.h - size -> time: measured medians with their interval, log-log interpolated.
 *
 * Between two points log t is linear in log size; outside, the end slopes go on: below the first size
 * the time is the first point's, above the last one the slope of the last segment (at least 1 in log-log
 * for sizes beyond the ladder, so that bandwidth never grows without evidence).  alpha and beta are a
 * summary only: one straight line misses real NCCL curves by a median of 8.6 %. */
#ifndef RG_CURVE_H
#define RG_CURVE_H

#include <stddef.h>

#include "base/err.h"

struct curve_point {
    double bytes, sec;
    double lo, hi; /* 95 % interval of sec */
    int n;         /* samples behind it; 0: not measured (preset, model) */
};

struct curve {
    struct curve_point *point; /* ascending in bytes */
    int points;
    double alpha, beta; /* s, s/B; summary by curve_summarise() */
};

void curve_add(struct curve *c, struct curve_point p); /* any order; equal sizes are refused by assert */
double curve_time(const struct curve *c, double bytes); /* NAN when empty */
void curve_interval(const struct curve *c, double bytes, double *lo, double *hi);
void curve_summarise(struct curve *c); /* alpha: time of the smallest; beta: slope of the largest octaves */
void curve_free(struct curve *c);

#endif
