/* SPDX-License-Identifier: BSD-3-Clause */
/* Do leaves have fewer uplinks than NICs?
 *
 * Of every round what flows up from a leaf, and down to it, is counted: flows, and the median of
 * what each gets of what it gets alone.  Their product is what the uplinks carried, in NICs; the
 * most that was seen is their capacity, if more was asked of them once.  The plan must have rounds
 * in which many NICs of a leaf send to other leaves at once (schedule_uplinks()), pairs of the same
 * kind alone, and leaves must be visible.  A slow NIC counts by what it reaches below its leaf,
 * and between two racks that are slow for one pair alone nothing counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/fit_state.h"

static const double full = 0.85; /* of what was asked: as fit_levels.c judges a crowd */

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
    return t->endpoint[id].place.at[LEVEL_LEAF];
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
    int a = t->endpoint[src].place.at[level], b = t->endpoint[dst].place.at[level];

    return (struct lone){
        a < b ? a : b,
        a < b ? b : a,
        share,
        {t->endpoint[src].place.at[LEVEL_HOST], t->endpoint[dst].place.at[LEVEL_HOST]}};
}

static int by_ends(const void *a, const void *b)
{
    const struct lone *x = a, *y = b;

    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static void pairs_alone(struct quiet *q, const struct fit *f, int tier)
{
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (o->tier != tier || !o->alone || !fit_is_bandwidth(f, o) || !(o->sec > 0))
            continue;
        double share = o->bytes / o->sec / f->normal[tier].alone;
        MEM_PUSH(q->lone, q->lones) = between(&f->m->topo, o->src, o->dst, share);
    }
    if (q->lones)
        qsort(q->lone, (size_t)q->lones, sizeof(*q->lone), by_ends);
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
        if (by_ends(&q->lone[mid], &key) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    for (int i = from; i < q->lones && by_ends(&q->lone[i], &key) == 0; i++, all++) {
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

    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return (x->share > y->share) - (x->share < y->share);
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
        if (p->op != OP_PAIR_BW || p->flows < 2 || (double)p->bytes != f->bw_bytes ||
            p->stop == STOP_FAILED || p->wrong || !(p->sec.median > 0))
            continue;
        const struct place *a = &t->endpoint[p->src].place, *b = &t->endpoint[p->dst].place;
        int leaf = leaf_of(t, way == UP ? p->src : p->dst);
        if (leaf_of(t, p->src) < 0 || leaf_of(t, p->dst) < 0 ||
            leaf_of(t, p->src) == leaf_of(t, p->dst) ||
            topo_tier(t->tier, t->tiers, a, b) != tier || slow_alone(q, t, p->src, p->dst))
            continue;
        double alone = f->normal[tier].alone;
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
        for (j = i + 1; j < n && v[j].leaf == v[i].leaf && v[j].round == v[i].round &&
                        v[j].epoch == v[i].epoch;
             j++)
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
        f->normal[tier].contended = f->normal[tier].uplinks = true;
        f->m->tier[tier].loaded = share;
        say(f, tier, q, share, n, measured, most);
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

void fit_uplinks(struct fit *f)
{
    struct quiet q = {NULL, NULL, 0};

    if (f->m->topo.group[LEVEL_LEAF].count < 2)
        return;
    rates_below(&q, f);
    for (int tier = 0; tier < f->m->tiers; tier++)
        if (f->m->tier[tier].nic && f->normal[tier].alone > 0)
            look_at(f, tier, &q);
    free(q.below);
    free(q.lone);
}
