/* curve.h - size -> time: measured medians with their interval, interpolated.
 *
 * Inside one protocol a collective takes alpha + beta * bytes, a straight line, and of two protocols
 * the faster one is taken, so that time bends down where their lines meet: it lies between the chord
 * of two points and the lines that the segments before and after them carry on.  Halfway is taken,
 * one knee where the two meet, if they do inside and the points are at most x8 apart.  Where time
 * falls from a point to the next one, a larger message that takes less, it is the next one's from
 * the first sixteenth on: noise, or a protocol that NCCL left too late.  Misses where inner points
 * of 133 NCCL curves are left out (`railgauge-calibrate curves`), median (p90, worst) in percent:
 *
 *                             each point alone     x8 ladders          x16 ladders
 *   this                      1.8 (10.9,  78)      2.7 (13.7, 111)     3.8 (17.4, 121)
 *   chords alone              1.9 (11.9, 105)      2.9 (14.6, 131)     3.9 (17.6, 143)
 *   the two lines, clipped    2.1 (11.7, 105)      3.8 (18.2, 131)     7.1 (32.7, 304)
 *   log-log lines             2.8 (12.6)                               6.9
 *   monotone cubics in logs   2.1 (12.5)                               4.7
 *
 * A regression on eight neighbours (gradient boosting, fitted without the machine that it was asked
 * about) came to 1.7 (11.0, 99): what is left is not in the neighbours.  Half of the misses above
 * 8 % lie at a rise by more than x1.6 between two sizes, of which nobody knows the side; a quarter
 * at a fall.  Two NCCL versions on the same H100s differ by 3.2 (19.8).
 *
 *   size                 time                                         interval
 *   below the first      that of the first point                      widens with the distance
 *   between two points   a line with a knee, or none                  the wider one of the two
 *   above the last       t(last) + (bytes - last) * beta              widens with the distance
 *
 *   symbol   meaning                                                           unit
 *   alpha    time of the smallest size                                         s
 *   beta     what a byte of the last four octaves took: least squares,         s/B
 *            weighted by n; without a summary t(last) / last
 *   floor    t(first) - first * beta, at least 0: what does not grow           s
 *
 * Above the last size bandwidth so rises towards its asymptote.  (Collectives go on by the slope of
 * the tiers: collective.h.)  alpha and beta are a summary only: one straight line misses real NCCL
 * curves by a median of 8.6 %. */
#ifndef RG_CURVE_H
#define RG_CURVE_H

#include <math.h>
#include <stddef.h>

#include "base/err.h"

struct curve_point {
    double bytes, sec;
    double lo, hi; /* 95 % interval of sec */
    int n;         /* samples behind it; 0: not measured (preset, model) */
};

/* Piece between two points: a line up to the knee and another from there. */
struct curve_piece {
    double bytes, knee;
    struct curve_line {
        double at, slope; /* s, s/B: at + slope * bytes */
    } line[2];
};

struct curve {
    const struct curve_point *point; /* ascending in bytes; changed by curve.c alone */
    struct curve_piece *piece;       /* as many */
    int points;
    double alpha, beta; /* s, s/B; summary by curve_summarise() */
};

/* Add a point, in any order; equal sizes are refused by assert. */
void curve_add(struct curve *c, struct curve_point p);
double curve_time(const struct curve *c, double bytes); /* NAN when empty */
/* The end that a size lies beyond: the largest or the smallest point's bytes; 0: it is inside. */
static inline double curve_end(const struct curve *c, double bytes)
{
    if (c->points == 0)
        return 0;
    double first = c->point[0].bytes, last = c->point[c->points - 1].bytes;
    return bytes > last ? last : bytes < first ? first : 0;
}
/* Relative error of a time at `bytes` that goes on from a curve's end: moving is the share of the
 * end's time that grows with the size, slopes how much steeper the curve is there than what it goes
 * on by is.  Nine of ten of 133 NCCL curves, cut at 1 to 128 MiB and met at 2 to 32 times that, lie
 * within. */
static inline double curve_unsure(double end, double bytes, double moving, double slopes)
{
    double near = fmin(bytes, end) / fmax(bytes, end);

    return (0.15 + 0.6 * (1 - moving * moving) + 0.6 * fabs(log(slopes))) * (1 - near);
}
void curve_interval(const struct curve *c, double bytes, double *lo, double *hi);
/* A larger size that took less time is noise if the two intervals meet: neighbours get
 * their mean, weighted by n, until time rises with the size (pool adjacent violators: Ayer and
 * others 1955).  A fall that is wider than the intervals was measured and stays. */
void curve_settle(struct curve *c);
/* alpha: time of the smallest size; beta: slope of the least-squares line (relative error, weighted
 * by n) through the sizes from 1/16 of the largest on: a slope and no quotient, so that
 * acknowledgements and the first hop stay out of it. */
void curve_summarise(struct curve *c);
/* The part of the time that does not grow with the size: t(first) - first * beta, at least 0.  Slow
 * parts stretch the rest: t' = floor + (t - floor) / factor. */
static inline double curve_floor(const struct curve *c)
{
    return c->points ? fmax(0, c->point[0].sec - c->point[0].bytes * c->beta) : 0;
}
/* Multiply the time and the interval of point i by ratio[i], and summarise. */
void curve_scale(struct curve *c, const double *ratio);
/* Points of alpha + bytes / Bps at two sizes an octave from 8 B to 24 GiB, n = 0: a published
 * number as a curve; exact between them. */
void curve_line(struct curve *c, double alpha, double Bps);
void curve_free(struct curve *c);

#endif
