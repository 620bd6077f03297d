/* curve.h - size -> time: measured medians with their interval, log-log interpolated.
 *
 * Between two points log t is linear in log size.  Below the first size the time is the first
 * point's.  Above the last one each further byte takes what a byte of the last segment took, and no
 * less than a byte of the last size took on average, so that bandwidth never grows without
 * evidence; the log-log slope would carry 2 % of noise in the last point to 8 % at 64 times its
 * size.  alpha and beta are a summary only: one straight line misses real NCCL curves by a median
 * of 8.6 %. */
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

void curve_add(struct curve *c,
               struct curve_point p); /* any order; equal sizes are refused by assert */
double curve_time(const struct curve *c, double bytes); /* NAN when empty */
void curve_interval(const struct curve *c, double bytes, double *lo, double *hi);
/* alpha: time of the smallest size; beta: slope of the least-squares line (relative error, weighted
 * by n) through the sizes from 1/16 of the largest on: a slope and no quotient, so that
 * acknowledgements and the first hop stay out of it. */
void curve_summarise(struct curve *c);
/* The part of the time that does not grow with the size: t(first) - first * beta, at least 0.  Slow
 * parts stretch the rest: t' = floor + (t - floor) / factor. */
double curve_floor(const struct curve *c);
/* Points of alpha + bytes / Bps at two sizes an octave from 8 B to 24 GiB, n = 0: a published
 * number as a curve; log-log interpolation between them is within 0.6 % of the line. */
void curve_line(struct curve *c, double alpha, double Bps);
void curve_free(struct curve *c);

#endif
