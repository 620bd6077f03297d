/* SPDX-License-Identifier: BSD-3-Clause */
/* What is normal for each tier.  Faults are slow, so the reference comes from endpoints that are
 * able to be fast: caps (the best each endpoint reaches) are cut at wide gaps, the largest cluster
 * counts, and of pairs between its members the median is taken. */
#include "cost/fit/fit_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/cluster.h"

enum { CROWD = 40 };
static const double contended_below = 0.85; /* parallel / alone */

static double rate(const struct obs *o)
{
    return o->bytes / o->sec;
}

/* Observations that define what is normal: not those that were measured because they stood out. */
static bool defines(const struct fit *f, const struct obs *o, bool alone)
{
    return o->alone == alone && fit_is_bandwidth(f, o) && o->sec > 0 &&
           (!alone || o->stages & ~(1u << STAGE_RETEST | 1u << STAGE_NIC_RETEST));
}

/* Lower end of the largest cluster of caps (ties: the faster one). */
static double healthy_cap(double *cap, int n)
{
    double limit = 0;
    int most = 0;

    stats_sort(cap, n);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && cap[j] <= cap[j - 1] * (1 + CLUSTER_GAP); j++)
            ;
        if (j - i >= most) {
            most = j - i;
            limit = cap[i];
        }
    }
    return limit;
}

/* Where the narrowest range of k + 1 begins, from `from` on. */
static int narrowest(const double *v, int n, int k, int from)
{
    int at = from;

    for (int i = from; i + k < n; i++)
        at = v[i + k] / v[i] <= v[at + k] / v[at] ? i : at;
    return at;
}

/* Where most of v[] lies, which is sorted: the narrowest range with two fifths of them is the heap of
 * the healthy where a third of all pairs is slow, too; of two such heaps (two racks that are slow one
 * way) the faster.  Few: the median. */
static double densest(const double *v, int n, double *sigma)
{
    int k = 2 * n / 5, at = 0;

    *sigma = INFINITY;
    if (n < CROWD)
        return n ? stats_quantile(v, n, 0.5) : NAN;
    at = narrowest(v, n, k, 0);
    int next = at + k + 1;
    while (next < n && v[next] < v[at + k] * (1 + CLUSTER_GAP))
        next++;
    if (next + k < n) {
        int faster = narrowest(v, n, k, next);
        if (log(v[faster + k] / v[faster]) <= 1.5 * log(v[at + k] / v[at]) + 0.01)
            at = faster;
    }
    double middle = v[at + k / 2];
    *sigma = (v[at + k] - v[at]) / middle / 1.05; /* of a normal one's middle two fifths */
    int from = at, to = at + k;
    while (from > 0 && v[from - 1] > middle * (1 - 3 * *sigma))
        from--;
    while (to + 1 < n && v[to + 1] < middle * (1 + 3 * *sigma))
        to++;
    return stats_quantile(v + from, to - from + 1, 0.5);
}

static double reference(const struct fit *f, int tier, bool alone, int *pairs)
{
    int n = f->m->topo.endpoints, used = 0, count;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &count);
    double *cap = mem_calloc((size_t)n, sizeof(*cap)),
           *v = mem_calloc((size_t)count + (size_t)n, sizeof(*v));

    for (int i = 0; i < count; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (defines(f, o, alone)) {
            cap[o->src] = fmax(cap[o->src], rate(o));
            cap[o->dst] = fmax(cap[o->dst], rate(o));
        }
    }
    for (int i = 0; i < n; i++)
        if (cap[i] > 0)
            v[used++] = cap[i];
    double limit = healthy_cap(v, used);
    used = 0;
    for (int i = 0; i < count; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (defines(f, o, alone) && cap[o->src] >= limit && cap[o->dst] >= limit)
            v[used++] = rate(o);
    }
    double sigma;
    stats_sort(v, used);
    double usual = densest(v, used, &sigma);
    *pairs = used;
    free(cap);
    free(v);
    return usual;
}

/* Median of parallel / alone over the pairs that were measured both ways; NAN: none. */
static double loaded_share(const struct fit *f, int tier)
{
    int n = 0, count;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &count);
    double *v = mem_calloc((size_t)count + 1, sizeof(*v));

    for (int i = 0; i < count && of[i] + 1 < f->count; i++) { /* neighbours in observe()'s order */
        const struct obs *p = &f->obs[of[i]], *a = p + 1;
        if (!p->alone && a->alone && p->op == a->op && p->src == a->src && p->dst == a->dst &&
            p->bytes == a->bytes && fit_is_bandwidth(f, p) && p->sec > 0 && a->sec > 0)
            v[n++] = a->sec / p->sec;
    }
    double share = n ? stats_middle(v, n) : NAN;
    free(v);
    return share;
}

static void find_level(struct fit *f, int tier)
{
    struct fit_baseline *l = &f->baseline[tier];
    int alone, parallel;

    l->alone = reference(f, tier, true, &alone);
    l->parallel = reference(f, tier, false, &parallel);
    /* Nothing is slower alone than in a crowd: those few that ran alone were bad ones. */
    if (l->alone < l->parallel * (1 - f->o.outlier))
        l->alone = l->parallel;
    double share = loaded_share(f, tier);
    if (isnan(share))
        share = l->parallel / l->alone;
    f->m->tier[tier].loaded = share;
    l->contended = share < contended_below;
    f->m->tier[tier].pairs = alone > parallel ? alone : parallel;
}

/* --- samples, and their noise --- */

static double residual_of(const struct fit *f, const struct obs *o)
{
    const struct fit_baseline *l = &f->baseline[o->tier];
    double usual = o->alone && !isnan(l->alone) ? l->alone : o->alone ? NAN : l->parallel;

    if (o->alone && isnan(usual)) /* only retests ran alone here */
        usual = l->contended ? NAN : l->parallel;
    return o->sec > 0 ? rate(o) / usual : NAN;
}

static bool dead(const struct obs *o)
{
    return obs_epochs(o) == 0 && o->failed;
}

/* Of a pair measured alone and in parallel the former counts (it sorts after the latter). */
static void add_sample(struct fit *f, const struct obs *o, double residual)
{
    struct fit_sample s = {.src = o->src,
                           .dst = o->dst,
                           .tier = o->tier,
                           .residual = residual,
                           .best = residual * o->sec / obs_best(o),
                           .alone = o->alone,
                           .explained = -1};
    struct fit_sample *last = f->samples ? &f->sample[f->samples - 1] : NULL;

    if (dead(o))
        s.residual = s.best = 0;
    if (last && last->src == o->src && last->dst == o->dst && last->tier == o->tier)
        *last = s;
    else
        MEM_PUSH(f->sample, f->samples) = s;
}

static void find_sigma(struct fit *f, int tier)
{
    double *v = mem_calloc((size_t)f->samples, sizeof(*v));
    int n = 0;

    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].tier == tier && f->sample[i].residual > 0)
            v[n++] = f->sample[i].residual;
    if (n) {
        double median = stats_median(v, n);
        double both = stats_mad(v, n, median), up = 0, heap;
        int above = 0;
        densest(v, n, &heap);
        for (int i = 0; i < n; i++) /* v is sorted */
            if (v[i] >= 1)
                v[above++] = v[i] - 1;
        if (above > 1) /* where half of the pairs are slow only the others tell the noise */
            up = 2 * stats_median(v, above);
        double sigma = 1.4826 * (above > 1 ? fmin(both, up) : both);
        f->baseline[tier].sigma = sigma > 2 * heap ? 1.2 * heap : sigma; /* narrowest: too low */
        f->m->tier[tier].spread = f->baseline[tier].sigma / 1.4826 / median;
    }
    free(v);
}

static void find_unrest(struct fit *f, int tier)
{
    int n = 0, count;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &count);
    double *v = mem_calloc((size_t)count + 1, sizeof(*v));

    for (int i = 0; i < count; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (o->alone && obs_epochs(o) > 1 && fit_is_bandwidth(f, o))
            v[n++] = obs_range(o);
    }
    f->baseline[tier].unrest = n ? stats_middle(v, n) : 0;
    free(v);
}

/* The tier of each, and the lists of fit_of(). */
static void sort_out(struct fit *f)
{
    int *key = mem_calloc((size_t)f->count + 1, sizeof(*key));

    for (int i = 0; i < f->count; i++) {
        struct obs *o = &f->obs[i];
        if (i + TOPO_AHEAD < f->count)
            topo_fetch(&f->m->topo, o[TOPO_AHEAD].src, o[TOPO_AHEAD].dst);
        o->tier = topo_tier_by(&f->m->topo, o->src, o->dst, o->by_nic);
        key[i] = o->tier * OP_COUNT + (int)o->op;
    }
    lists_make(&f->of, key, NULL, f->count, f->m->topo.tiers * OP_COUNT);
    free(key);
}

void fit_baseline(struct fit *f)
{
    const struct topo *t = &f->m->topo;

    sort_out(f);
    for (int tier = 0; tier < t->tiers; tier++)
        find_level(f, tier);
    fit_uplinks(f);
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (!fit_is_bandwidth(f, o))
            continue;
        double residual = residual_of(f, o);
        bool proves = o->alone || !f->baseline[o->tier].contended;
        if (dead(o) || (proves && !isnan(residual)))
            add_sample(f, o, residual);
    }
    for (int tier = 0; tier < t->tiers; tier++) {
        find_sigma(f, tier);
        find_unrest(f, tier);
    }
}
