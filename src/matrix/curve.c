/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/curve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SUMMARY_OCTAVES = 4, /* beta comes from sizes >= largest / 2^4 */
    KNEE_GAP = 8,        /* sizes further apart tell nothing of where they meet */
    FALL = 16            /* a fall happens in the first sixteenth of its segment */
};

/* Points of a curve, which only this file changes. */
static struct curve_point *own(const struct curve *c)
{
    return (struct curve_point *)c->point;
}

static double slope(const struct curve_point *a, const struct curve_point *b)
{
    return (b->sec - a->sec) / (b->bytes - a->bytes);
}

/* Point where the lines of the segments around i..i+1 meet inside it, from below: half as far above the
 * chord as that.  Else no knee: the end of the segment. */
static struct curve_point knee(const struct curve *c, int i)
{
    const struct curve_point *a = &c->point[i], *b = a + 1;

    if (b->sec < a->sec)
        return (struct curve_point){a->bytes + (b->bytes - a->bytes) / FALL, b->sec, 0, 0, 0};
    if (i == 0 || i + 2 >= c->points || b->bytes > KNEE_GAP * a->bytes)
        return *b;
    double left = slope(a - 1, a), right = slope(b, b + 1);
    double at = a->bytes + (slope(a, b) - right) * (b->bytes - a->bytes) / (left - right);
    if (!(right >= 0 && left > right && at > a->bytes && at < b->bytes))
        return *b;
    double chord = a->sec + slope(a, b) * (at - a->bytes), lines = a->sec + left * (at - a->bytes);
    return (struct curve_point){at, (chord + lines) / 2, 0, 0, 0};
}

/* at + slope * bytes through two points; the same one twice: never asked. */
static struct curve_line line(const struct curve_point *a, const struct curve_point *b)
{
    double rise = a->bytes < b->bytes ? slope(a, b) : 0;

    return (struct curve_line){a->sec - rise * a->bytes, rise};
}

/* Pieces from..to, those that there are. */
static void draw(struct curve *c, int from, int to)
{
    for (int i = from > 0 ? from : 0; i <= to && i < c->points; i++) {
        const struct curve_point *a = &c->point[i];
        struct curve_point k = i + 1 < c->points ? knee(c, i) : *a;
        c->piece[i] = (struct curve_piece){
            a->bytes, k.bytes, {line(a, &k), i + 1 < c->points ? line(&k, a + 1) : line(a, a)}};
    }
}

void curve_add(struct curve *c, struct curve_point p)
{
    struct curve_point *point = own(c);
    int at = c->points, pieces = at;

    MEM_PUSH(c->piece, pieces) = (struct curve_piece){0};
    while (at > 0 && c->point[at - 1].bytes > p.bytes)
        at--;
    assert(at == 0 || c->point[at - 1].bytes < p.bytes);
    MEM_PUSH(point, c->points) = p;
    memmove(point + at + 1, point + at, (size_t)(c->points - 1 - at) * sizeof(p));
    point[at] = p;
    c->point = point;
    memmove(c->piece + at + 1, c->piece + at, (size_t)(c->points - 1 - at) * sizeof(*c->piece));
    draw(c, at - 2, at + 1);
}

/* Index i of the segment i..i+1 for bytes; points - 2 for everything above. */
static int segment(const struct curve *c, double bytes)
{
    int lo = 0;

    for (int n = c->points - 1; n > 1; n -= n / 2)
        lo += c->piece[lo + n / 2].bytes <= bytes ? n / 2 : 0;
    return lo;
}

/* Seconds a byte beyond the last point. */
static double end_slope(const struct curve *c)
{
    const struct curve_point *last = &c->point[c->points - 1];

    return c->beta > 0 ? c->beta : last->sec / last->bytes;
}

double curve_time(const struct curve *c, double bytes)
{
    if (c->points == 0)
        return NAN;
    const struct curve_point *last = &c->point[c->points - 1];
    if (!(bytes > c->point[0].bytes))
        return c->point[0].sec;
    if (bytes >= last->bytes)
        return last->sec + (bytes - last->bytes) * end_slope(c);
    const struct curve_piece *p = &c->piece[segment(c, bytes)];
    const struct curve_line *l = &p->line[bytes >= p->knee];
    return l->at + l->slope * bytes;
}

/* Relative error that the distance from the points adds. */
static double far_error(const struct curve *c, double bytes)
{
    const struct curve_point *last = &c->point[c->points - 1];
    double end = curve_end(c, bytes), moving = fmin(1, fmax(0, c->beta * last->bytes / last->sec));

    return !(end > 0)            ? 0
           : bytes > last->bytes ? curve_unsure(end, bytes, moving, 1)
                                 : curve_unsure(end, bytes, 0, 1);
}

void curve_interval(const struct curve *c, double bytes, double *lo, double *hi)
{
    double t = curve_time(c, bytes);

    *lo = *hi = t;
    if (c->points == 0)
        return;
    double far = 1 + far_error(c, bytes);
    int i = c->points > 1 ? segment(c, bytes) : 0, j = i + 1 < c->points ? i + 1 : i;
    const struct curve_point *a = &c->point[i], *b = &c->point[j];
    /* the wider of the two relative intervals around */
    *lo = t * fmin(a->lo / a->sec, b->lo / b->sec) / far;
    *hi = t * fmax(a->hi / a->sec, b->hi / b->sec) * far;
}

/* Neighbouring points that have one time. */
struct pool {
    int from;
    double sec, lo, hi, n;
};

static struct pool merged(const struct pool *a, const struct pool *b)
{
    double n = a->n + b->n;

    return (struct pool){a->from, (a->sec * a->n + b->sec * b->n) / n,
                         (a->lo * a->n + b->lo * b->n) / n, (a->hi * a->n + b->hi * b->n) / n, n};
}

void curve_settle(struct curve *c)
{
    struct pool *v = mem_calloc((size_t)c->points + 1, sizeof(*v));
    int n = 0;

    for (int i = 0; i < c->points; i++) {
        const struct curve_point *p = &c->point[i];
        v[n++] = (struct pool){i, p->sec, p->lo, p->hi, p->n > 0 ? p->n : 1};
        for (; n > 1 && v[n - 1].sec < v[n - 2].sec && v[n - 1].hi >= v[n - 2].lo; n--)
            v[n - 2] = merged(&v[n - 2], &v[n - 1]);
    }
    for (int k = n - 1, end = c->points; k >= 0; end = v[k--].from)
        for (int i = v[k].from; i < end; i++) {
            struct curve_point *p = &own(c)[i];
            *p = (struct curve_point){p->bytes, v[k].sec, fmin(p->lo, v[k].sec),
                                      fmax(p->hi, v[k].sec), p->n};
        }
    draw(c, 0, c->points - 1);
    free(v);
}

/* Least squares on relative error over the points from `from` on, weighted by what is behind them;
 * the slope, or 0 when there is none. */
static double weighted_slope(const struct curve *c, int from)
{
    double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;

    for (int i = from; i < c->points; i++) {
        const struct curve_point *p = &c->point[i];
        double w = (p->n > 0 ? p->n : 1) / (p->sec * p->sec);
        sw += w;
        sx += w * p->bytes;
        sy += w * p->sec;
        sxx += w * p->bytes * p->bytes;
        sxy += w * p->bytes * p->sec;
    }
    double det = sw * sxx - sx * sx;
    if (!(det > 1e-12 * sw * sxx))
        return 0;
    double beta = (sw * sxy - sx * sy) / det;
    return (sy - beta * sx) / sw < 0 ? sxy / sxx : beta; /* no negative latency */
}

void curve_summarise(struct curve *c)
{
    if (c->points == 0)
        return;
    const struct curve_point *last = &c->point[c->points - 1];
    int from = c->points - 1;
    while (from > 0 && (from > c->points - 2 ||
                        c->point[from - 1].bytes >= ldexp(last->bytes, -SUMMARY_OCTAVES)))
        from--;
    double beta = weighted_slope(c, from);
    c->alpha = c->point[0].sec;
    c->beta = beta > 0 ? beta : last->sec / last->bytes;
    draw(c, 0, c->points - 1);
}

void curve_scale(struct curve *c, const double *ratio)
{
    for (int i = 0; i < c->points; i++) {
        struct curve_point *p = &own(c)[i];
        p->sec *= ratio[i];
        p->lo *= ratio[i];
        p->hi *= ratio[i];
    }
    curve_summarise(c);
}

void curve_line(struct curve *c, double alpha, double Bps)
{
    for (double octave = 8; octave <= 0x1p34; octave *= 2)
        for (double bytes = octave; bytes < 2 * octave; bytes += octave / 2) {
            double sec = alpha + bytes / Bps;
            curve_add(c, (struct curve_point){bytes, sec, sec, sec, 0});
        }
    c->alpha = alpha;
    c->beta = 1 / Bps;
}

void curve_free(struct curve *c)
{
    free(own(c));
    free(c->piece);
    *c = (struct curve){0};
}
