/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/curve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

enum { SUMMARY_OCTAVES = 3 }; /* beta comes from sizes >= largest / 2^3 */

void curve_add(struct curve *c, struct curve_point p)
{
    int at = c->points;

    while (at > 0 && c->point[at - 1].bytes > p.bytes)
        at--;
    assert(at == 0 || c->point[at - 1].bytes < p.bytes);
    MEM_PUSH(c->point, c->points) = p;
    memmove(c->point + at + 1, c->point + at, (size_t)(c->points - 1 - at) * sizeof(p));
    c->point[at] = p;
}

/* Index i of the segment i..i+1 for bytes; points - 2 for everything above. */
static int segment(const struct curve *c, double bytes)
{
    int lo = 0, hi = c->points - 1;

    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (c->point[mid].bytes <= bytes)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static double slope(const struct curve_point *a, const struct curve_point *b)
{
    return log(b->sec / a->sec) / log(b->bytes / a->bytes);
}

double curve_time(const struct curve *c, double bytes)
{
    if (c->points == 0)
        return NAN;
    const struct curve_point *last = &c->point[c->points - 1];
    if (!(bytes > c->point[0].bytes))
        return c->point[0].sec;
    if (bytes >= last->bytes) {
        double s = c->points > 1 ? slope(last - 1, last) : 1;
        return last->sec * pow(bytes / last->bytes, s > 1 ? s : 1);
    }
    const struct curve_point *a = &c->point[segment(c, bytes)];
    return a->sec * pow(bytes / a->bytes, slope(a, a + 1));
}

void curve_interval(const struct curve *c, double bytes, double *lo, double *hi)
{
    double t = curve_time(c, bytes);

    *lo = *hi = t;
    if (c->points == 0)
        return;
    int i = c->points > 1 ? segment(c, bytes) : 0, j = i + 1 < c->points ? i + 1 : i;
    const struct curve_point *a = &c->point[i], *b = &c->point[j];
    /* the wider of the two relative intervals around */
    *lo = t * fmin(a->lo / a->sec, b->lo / b->sec);
    *hi = t * fmax(a->hi / a->sec, b->hi / b->sec);
}

void curve_summarise(struct curve *c)
{
    double bytes[64], sec[64], unused;
    int n = 0;

    if (c->points == 0)
        return;
    const struct curve_point *last = &c->point[c->points - 1];
    c->alpha = c->point[0].sec;
    c->beta = last->sec / last->bytes;
    for (int i = c->points - 1; i >= 0 && n < 64; i--)
        if (n < 2 || c->point[i].bytes >= ldexp(last->bytes, -SUMMARY_OCTAVES)) {
            bytes[n] = c->point[i].bytes;
            sec[n++] = c->point[i].sec;
        }
    double beta;
    if (stats_line(&unused, &beta, bytes, sec, n) == 0 && beta > 0)
        c->beta = beta;
}

double curve_floor(const struct curve *c)
{
    if (c->points == 0)
        return 0;
    return fmax(0, c->point[0].sec - c->point[0].bytes * c->beta);
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
    free(c->point);
    *c = (struct curve){0};
}
