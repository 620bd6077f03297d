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
static bool defines(const struct fit *f, const struct obs *o, int tier, bool alone)
{
    return o->tier == tier && o->alone == alone && fit_is_bandwidth(f, o) && o->sec > 0 &&
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
    int n = f->m->topo.endpoints, used = 0;
    double *cap = mem_calloc((size_t)n, sizeof(*cap)),
           *v = mem_calloc((size_t)f->count + (size_t)n, sizeof(*v));

    for (int i = 0; i < f->count; i++)
        if (defines(f, &f->obs[i], tier, alone)) {
            double r = rate(&f->obs[i]);
            cap[f->obs[i].src] = fmax(cap[f->obs[i].src], r);
            cap[f->obs[i].dst] = fmax(cap[f->obs[i].dst], r);
        }
    for (int i = 0; i < n; i++)
        if (cap[i] > 0)
            v[used++] = cap[i];
    double limit = healthy_cap(v, used);
    used = 0;
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (defines(f, o, tier, alone) && cap[o->src] >= limit && cap[o->dst] >= limit)
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
    double *v = mem_calloc((size_t)f->count, sizeof(*v));
    int n = 0;

    for (int i = 0; i + 1 < f->count; i++) { /* neighbours in the order of observe() */
        const struct obs *p = &f->obs[i], *a = &f->obs[i + 1];
        if (p->tier == tier && !p->alone && a->alone && p->op == a->op && p->src == a->src &&
            p->dst == a->dst && p->bytes == a->bytes && fit_is_bandwidth(f, p) && p->sec > 0 &&
            a->sec > 0)
            v[n++] = a->sec / p->sec;
    }
    double share = n ? stats_median(v, n) : NAN;
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

/* --- do leaves have fewer uplinks than NICs?
 *
 * Of every round what flows up from a leaf, and down to it, is counted: flows, and the median of
 * what each gets of what it gets alone.  Their product is what the uplinks carried, in NICs; the
 * most that was seen is their capacity, if more was asked of them once.  The plan must have rounds
 * in which many NICs of a leaf send to other leaves at once (schedule_uplinks()), pairs of the same
 * kind alone, and leaves must be visible.  A slow NIC counts by what it reaches below its leaf,
 * and between two racks that are slow for one pair alone nothing counts. --- */

static const double full = 0.85; /* of what was asked: as contended_below */

enum way { UP, DOWN };

/* One flow of one round. */
struct flow {
    int leaf, round, epoch;
    double share; /* of its rate alone */
};

/* One pair that ran alone. */
struct lone {
    int a, b; /* the racks or leaves of its ends, a <= b */
    double share;
    int host[2];
};

/* What is known of pairs of one tier that run alone. */
struct quiet {
    double *below; /* by endpoint: the best over its NIC without leaving the leaf; 0: none */
    struct lone *lone;
    int lones;
};

struct load {
    double most;  /* flows asked at once of the uplinks while they were full */
    double carry; /* NICs: the most that came through; 0: nothing seen */
    int endpoints;
};

static int leaf_of(const struct topo *t, int id)
{
    return topo_at(t, id, LEVEL_LEAF);
}

static void rates_below(struct quiet *q, const struct fit *f)
{
    const struct topo *t = &f->m->topo;

    q->below = mem_calloc((size_t)t->endpoints, sizeof(*q->below));
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (!fit_is_bandwidth(f, o) || !f->m->tier[o->tier].nic || !(o->sec > 0) ||
            leaf_of(t, o->src) != leaf_of(t, o->dst))
            continue;
        q->below[o->src] = fmax(q->below[o->src], o->bytes / o->sec);
        q->below[o->dst] = fmax(q->below[o->dst], o->bytes / o->sec);
    }
}

static struct lone between(const struct topo *t, int src, int dst, double share)
{
    enum level level = t->group[LEVEL_RACK].count > 1 ? LEVEL_RACK : LEVEL_LEAF;
    int a = topo_at(t, src, level), b = topo_at(t, dst, level);

    return (struct lone){a < b ? a : b,
                         a < b ? b : a,
                         share,
                         {topo_at(t, src, LEVEL_HOST), topo_at(t, dst, LEVEL_HOST)}};
}

static void pairs_alone(struct quiet *q, const struct fit *f, int tier)
{
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (o->tier != tier || !o->alone || !fit_is_bandwidth(f, o) || !(o->sec > 0))
            continue;
        double share = o->bytes / o->sec / f->baseline[tier].alone;
        MEM_PUSH(q->lone, q->lones) = between(&f->m->topo, o->src, o->dst, share);
    }
    if (q->lones)
        qsort(q->lone, (size_t)q->lones, sizeof(*q->lone), stats_by_2ints);
}

/* One host that every slow pair has, among those that are left of the first one's. */
static bool common(int host[2], const struct lone *l)
{
    for (int k = 0; k < 2; k++)
        if (host[k] != l->host[0] && host[k] != l->host[1])
            host[k] = -1;
    return host[0] >= 0 || host[1] >= 0;
}

/* Were most pairs between these two that ran alone slow as well, and not for one host's sake? */
static bool slow_alone(const struct quiet *q, const struct topo *t, int src, int dst)
{
    struct lone key = between(t, src, dst, 0);
    int from = 0, to = q->lones, slow = 0, all = 0, host[2] = {-1, -1};
    bool one_host = true;

    while (from < to) {
        int mid = from + (to - from) / 2;
        if (stats_by_2ints(&q->lone[mid], &key) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    for (int i = from; i < q->lones && stats_by_2ints(&q->lone[i], &key) == 0; i++, all++) {
        if (q->lone[i].share >= full)
            continue;
        if (!slow++)
            memcpy(host, q->lone[i].host, sizeof(host));
        one_host = common(host, &q->lone[i]);
    }
    return 2 * slow > all && !one_host;
}

static int by_leaf(const void *a, const void *b)
{
    const struct flow *x = a, *y = b;

    return stats_order((double[]){x->leaf, x->round, x->epoch, x->share},
                       (double[]){y->leaf, y->round, y->epoch, y->share}, 4);
}

/* The flows of this tier that leave their leaf, or come down to one, side by side with others. */
static int flows_of(const struct fit *f, int tier, enum way way, const struct quiet *q,
                    struct flow **out)
{
    const struct topo *t = &f->m->topo;
    int n = 0;

    *out = NULL;
    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        if (!fit_is_crowded(f, p) || p->wrong)
            continue;
        int leaf = leaf_of(t, way == UP ? p->src : p->dst);
        if (leaf_of(t, p->src) < 0 || leaf_of(t, p->dst) < 0 ||
            leaf_of(t, p->src) == leaf_of(t, p->dst) || fit_tier(f, p) != tier ||
            slow_alone(q, t, p->src, p->dst))
            continue;
        double alone = f->baseline[tier].alone;
        if (q->below[p->src] > 0 && q->below[p->dst] > 0)
            alone = fmin(alone, fmin(q->below[p->src], q->below[p->dst]));
        MEM_PUSH(*out, n) = (struct flow){leaf, p->round, p->epoch,
                                          fmin(1, (double)p->bytes / p->sec.median / alone)};
    }
    if (n)
        qsort(*out, (size_t)n, sizeof(**out), by_leaf);
    return n;
}

static void load_leaves(const struct fit *f, int tier, enum way way, const struct quiet *q,
                        struct load *load)
{
    struct flow *v;
    int n = flows_of(f, tier, way, q, &v);

    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && stats_by_3ints(&v[i], &v[j]) == 0; j++)
            ;
        struct load *l = &load[v[i].leaf];
        double share = v[(i + j) / 2].share; /* the median: they are sorted */
        l->carry = fmax(l->carry, (j - i) * share);
        if (share < full)
            l->most = fmax(l->most, j - i);
    }
    free(v);
}

/* What the uplinks of a leaf carry of what its NICs do; NAN: they were never full. */
static double share_of(const struct load *l)
{
    return l->carry > 0 && l->carry < full * l->most && l->carry < full * l->endpoints
               ? l->carry / l->endpoints
               : NAN;
}

/* Leaves whose uplinks carry less, by their shares; the caller frees. */
static double *shares(const struct load *load, int leaves, int *n, int *measured, int *most)
{
    double *v = mem_calloc((size_t)leaves + 1, sizeof(*v));

    for (int i = 0; i < leaves; i++) {
        double s = share_of(&load[i]);
        *measured += load[i].carry > 0;
        if (isnan(s))
            continue;
        v[(*n)++] = s;
        *most = load[i].most > *most ? (int)load[i].most : *most;
    }
    return v;
}

static void say(struct fit *f, int tier, const struct quiet *q, double share, int thin,
                int measured, int most)
{
    int all = 0;

    for (int i = 0; i < q->lones; i++)
        all += q->lone[i].share >= full;
    matrix_find(
        f->m, "uplinks",
        "the uplinks of the leaves are oversubscribed %.2g:1, they carry %.2f of what the NICs "
        "below them do: on %d of %d leaves up to %d flows of tier %s at once shared less than "
        "they get alone, as %d pairs did: no NIC and no cable is bad",
        1 / share, share, thin, measured, most, f->m->tier[tier].rule.name, all);
}

/* More than half of the leaves: it is how the fabric was built. */
static void judge(struct fit *f, int tier, const struct quiet *q, const struct load *load)
{
    int leaves = f->m->topo.group[LEVEL_LEAF].count, n = 0, measured = 0, most = 0;
    double *v = shares(load, leaves, &n, &measured, &most);

    if (2 * n > measured) {
        double share = stats_median(v, n);
        f->baseline[tier].contended = f->baseline[tier].uplinks = true;
        f->m->tier[tier].loaded = share;
        say(f, tier, q, share, n, measured, most);
    } else if (n) {
        f->baseline[tier].thin = mem_calloc((size_t)leaves, sizeof(double));
        for (int i = 0; i < leaves; i++)
            f->baseline[tier].thin[i] = share_of(&load[i]);
    }
    free(v);
}

static void look_at(struct fit *f, int tier, struct quiet *q)
{
    const struct topo *t = &f->m->topo;
    struct load *load = mem_calloc((size_t)t->group[LEVEL_LEAF].count, sizeof(*load));

    for (int i = 0; i < t->endpoints; i++)
        if (leaf_of(t, i) >= 0)
            load[leaf_of(t, i)].endpoints++;
    q->lones = 0;
    pairs_alone(q, f, tier);
    load_leaves(f, tier, UP, q, load);
    load_leaves(f, tier, DOWN, q, load);
    judge(f, tier, q, load);
    free(load);
}

static void find_uplinks(struct fit *f)
{
    struct quiet q = {NULL, NULL, 0};

    if (f->m->topo.group[LEVEL_LEAF].count < 2)
        return;
    rates_below(&q, f);
    for (int tier = 0; tier < f->m->tiers; tier++)
        if (f->m->tier[tier].nic && f->baseline[tier].alone > 0)
            look_at(f, tier, &q);
    free(q.below);
    free(q.lone);
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
    return o->epochs == 0 && o->failed > 0;
}

/* Of a pair measured alone and in parallel the former counts (it sorts after the latter). */
static void add_sample(struct fit *f, const struct obs *o)
{
    struct fit_sample s = {.src = o->src,
                           .dst = o->dst,
                           .tier = o->tier,
                           .residual = o->residual,
                           .best = o->residual * o->sec / o->best,
                           .range = o->range,
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
    double *v = mem_calloc((size_t)f->count + 1, sizeof(*v));
    int n = 0;

    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (o->tier == tier && o->alone && o->epochs > 1 && fit_is_bandwidth(f, o))
            v[n++] = o->range;
    }
    f->baseline[tier].unrest = n ? stats_median(v, n) : 0;
    free(v);
}

void fit_baseline(struct fit *f)
{
    const struct topo *t = &f->m->topo;

    for (int i = 0; i < f->count; i++)
        f->obs[i].tier = topo_tier_by(t, f->obs[i].src, f->obs[i].dst, f->obs[i].by_nic);
    for (int tier = 0; tier < t->tiers; tier++)
        find_level(f, tier);
    find_uplinks(f);
    for (int i = 0; i < f->count; i++) {
        struct obs *o = &f->obs[i];
        if (!fit_is_bandwidth(f, o))
            continue;
        o->residual = residual_of(f, o);
        bool proves = o->alone || !f->baseline[o->tier].contended;
        if (dead(o) || (proves && !isnan(o->residual)))
            add_sample(f, o);
    }
    for (int tier = 0; tier < t->tiers; tier++) {
        find_sigma(f, tier);
        find_unrest(f, tier);
    }
}
