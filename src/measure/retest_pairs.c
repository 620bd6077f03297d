/* SPDX-License-Identifier: BSD-3-Clause */
/* retest_pairs.c - pairs slower than their two ends: cables, or paths that only these two share. */
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "measure/schedule_impl.h"
#include "noise/noise.h"

/* A pair stands out if it is slower than its ends explain by this share and this many standard
 * deviations.  The two limits are equal at 2 % noise; a smaller excess cannot be detected in a
 * single point. */
static const double least_excess = 0.1, least_sigmas = 5;

enum { CLASSES = TIER_MAX * 2 };

static int class_of(const struct look *k)
{
    return k->tier * 2 + k->alone;
}

static bool counts(const struct look *k)
{
    return k->kind == LOOK_RATE && !k->fresh && isfinite(k->y);
}

/* Looks by rate that count, against the median of their class. */
struct residuals {
    const struct noise_input *in;
    double median[CLASSES], sigma[CLASSES];
    double *end;     /* by 2 * endpoint + end: median as sender and as receiver; 0: no looks */
    struct lists by; /* looks by the same key; empty if no look may stand out */
    double *buffer;
};

/* Distance of a look from the median of its class; NAN: not used. */
static double residual(const struct residuals *x, const struct look *k)
{
    return counts(k) ? k->y - x->median[class_of(k)] : NAN;
}

static void find_medians(struct residuals *x)
{
    int start[CLASSES + 1] = {0}, next[CLASSES];

    for (int i = 0; i < x->in->looks; i++)
        start[class_of(&x->in->look[i]) + 1] += counts(&x->in->look[i]);
    for (int c = 0; c < CLASSES; c++) {
        start[c + 1] += start[c];
        next[c] = start[c];
    }
    x->buffer = mem_calloc((size_t)start[CLASSES] + 1, sizeof(*x->buffer));
    for (int i = 0; i < x->in->looks; i++)
        if (counts(&x->in->look[i]))
            x->buffer[next[class_of(&x->in->look[i])]++] = x->in->look[i].y;
    for (int c = 0; c < CLASSES; c++) {
        double *v = x->buffer + start[c];
        const int n = start[c + 1] - start[c];

        if (!n)
            continue;
        x->median[c] = stats_select(v, n, n / 2);
        for (int i = 0; i < n; i++)
            v[i] = fabs(v[i] - x->median[c]);
        x->sigma[c] = 1.4826 * stats_select(v, n, n / 2);
    }
}

/* As lists_make(), without a key for each of millions of looks. */
static void list_ends(struct residuals *x)
{
    const int ends = 2 * x->in->topo->endpoints;
    int *start = mem_ints(ends + 2, 0);

    for (int i = 0; i < x->in->looks; i++) {
        const struct look *k = &x->in->look[i];

        start[2 * k->src + 2] += counts(k);
        start[2 * k->dst + 1 + 2] += counts(k);
    }
    for (int e = 0; e < ends; e++)
        start[e + 2] += start[e + 1];
    x->by = (struct lists){start, mem_ints(start[ends + 1], 0)};
    for (int i = 0; i < x->in->looks; i++) {
        const struct look *k = &x->in->look[i];

        if (counts(k)) {
            x->by.at[start[2 * k->src + 1]++] = i;
            x->by.at[start[2 * k->dst + 1 + 1]++] = i;
        }
    }
}

/* True if some look may stand out: its ends explain nothing that is not slow. */
static bool may_be_odd(const struct residuals *x)
{
    for (int i = 0; i < x->in->looks; i++)
        if (residual(x, &x->in->look[i]) < -least_excess)
            return true;
    return false;
}

static void residuals_make(struct residuals *x, const struct noise_input *in)
{
    const int ends = 2 * in->topo->endpoints;

    *x = (struct residuals){.in = in, .end = mem_calloc((size_t)ends, sizeof(*x->end))};
    find_medians(x);
    if (!may_be_odd(x))
        return;
    list_ends(x);
    for (int e = 0; e < ends; e++) {
        int count = 0;

        for (int k = x->by.start[e]; k < x->by.start[e + 1]; k++)
            x->buffer[count++] = residual(x, &in->look[x->by.at[k]]);
        x->end[e] = count ? stats_select(x->buffer, count, count / 2) : 0;
    }
}

static void residuals_free(struct residuals *x)
{
    free(x->end);
    free(x->buffer);
    lists_free(&x->by);
}

/* Median of all looks of this class at the same pair; on a small machine a pair has several. */
static double pair_median(const struct residuals *x, const struct look *k)
{
    int n = 0;

    for (int i = x->by.start[2 * k->src]; i < x->by.start[2 * k->src + 1]; i++) {
        const struct look *other = &x->in->look[x->by.at[i]];
        if (other->dst == k->dst && class_of(other) == class_of(k))
            x->buffer[n++] = residual(x, other);
    }
    return stats_select(x->buffer, n, n / 2);
}

/* A look, and the residual of its pair minus that of the slower end; negative. */
struct odd_pair {
    double excess;
    const struct look *look;
};

static int by_excess(const void *a, const void *b)
{
    const struct odd_pair *x = a, *y = b;
    const double v[] = {x->excess, x->look->src, x->look->dst, x->look->turn};
    const double w[] = {y->excess, y->look->src, y->look->dst, y->look->turn};

    return stats_order(v, w, 4);
}

static struct odd_pair *odd_pairs(const struct residuals *x, const struct noise_input *in, int *n)
{
    struct odd_pair *odd = NULL;

    *n = 0;
    for (int i = 0; i < in->looks && x->by.at; i++) {
        const struct look *k = &in->look[i];
        const double r = residual(x, k);
        if (isnan(r))
            continue;
        double ends = fmin(0, fmin(x->end[2 * k->src], x->end[2 * k->dst + 1]));
        double limit = fmax(least_excess, least_sigmas * x->sigma[class_of(k)]);
        if (!(r - ends < -limit))
            continue;
        double excess = pair_median(x, k) - ends;
        if (excess < -limit)
            MEM_PUSH(odd, *n) = (struct odd_pair){excess, k};
    }
    if (*n)
        qsort(odd, (size_t)*n, sizeof(*odd), by_excess);
    return odd;
}

/* --- choice of pairs --- */

enum { PER_ENDPOINT = 2, PER_RACKS = 2 };

struct chosen {
    struct plan *out;
    const struct noise_input *in;
    const struct plan_pairs *what;
    int from, count, most; /* number of earlier rounds; number of chosen pairs, and its limit */
    bool tier[TIER_MAX];
};

static bool two_racks(const struct topo *t, int a, int b, const int *pair)
{
    int x = topo_at(t, a, LEVEL_RACK), y = topo_at(t, b, LEVEL_RACK),
        p = topo_at(t, pair[0], LEVEL_RACK), q = topo_at(t, pair[1], LEVEL_RACK);

    return x >= 0 && y >= 0 && x != y && ((x == p && y == q) || (x == q && y == p));
}

/* True if the pair is already chosen, or if enough other pairs of the same end or the same two
 * racks are: then the cause is not a single pair. */
static bool is_enough(const struct chosen *c, int a, int b)
{
    int end[2] = {0, 0}, racks = 0;

    for (int i = c->from; i < c->out->rounds; i++) {
        const int *pair = c->out->round[i].group[0].members;
        if (pair[0] == a && pair[1] == b)
            return true;
        end[0] += pair[0] == a || pair[1] == a;
        end[1] += pair[0] == b || pair[1] == b;
        racks += two_racks(c->in->topo, a, b, pair);
    }
    return end[0] >= PER_ENDPOINT || end[1] >= PER_ENDPOINT || racks >= PER_RACKS;
}

static void choose(struct chosen *c, int a, int b, int tier)
{
    if (c->count >= c->most || is_enough(c, a, b))
        return;
    plan_add_pairs(c->out, c->what, (const int[][2]){{a, b}}, 1);
    c->count++;
    c->tier[tier] = true;
}

/* Add the most normal pair of a tier as a control. */
static void add_control(struct chosen *c, const struct residuals *x, int tier)
{
    const struct look *best = NULL;
    double least = INFINITY;

    for (int i = 0; i < c->in->looks; i++) {
        const struct look *k = &c->in->look[i];
        const double off = fabs(residual(x, k));
        if (k->tier != tier || !(off < least) || is_enough(c, k->src, k->dst))
            continue;
        least = off;
        best = k;
    }
    if (best)
        plan_add_pairs(c->out, c->what, (const int[][2]){{best->src, best->dst}}, 1);
}

void schedule_retest_pairs(struct plan *out, const struct noise_input *in,
                           const struct noise *noise, const struct plan_pairs *what, int most)
{
    struct chosen c = {.out = out, .in = in, .what = what, .from = out->rounds, .most = most};
    struct residuals x;
    int n;

    residuals_make(&x, in);
    struct odd_pair *odd = odd_pairs(&x, in, &n);
    for (int i = 0; i < noise->suspects; i++) {
        const struct found *f = &noise->suspect[i];
        if (f->part == PART_PAIR && f->state != STATE_DEAD && f->tier >= 0)
            choose(&c, f->a, f->b, f->tier);
    }
    for (int i = 0; i < n; i++)
        choose(&c, odd[i].look->src, odd[i].look->dst, odd[i].look->tier);
    for (int t = 0; t < TIER_MAX; t++)
        if (c.tier[t])
            add_control(&c, &x, t);
    free(odd);
    residuals_free(&x);
}
