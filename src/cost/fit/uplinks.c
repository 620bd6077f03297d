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

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/fit_impl.h"

static const double full = 0.85; /* of what was asked: as contended_below */

enum way { UP, DOWN };

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
    int n;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &n);

    for (int i = 0; i < n; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (!o->alone || !fit_is_bandwidth(f, o) || !(o->sec > 0))
            continue;
        double share = o->bytes / o->sec / f->baseline[tier].alone;
        MEM_PUSH(q->lone, q->lones) = between(&f->m->topo, o->src, o->dst, share);
    }
    stats_sort_keys(q->lone, q->lones, sizeof(*q->lone), stats_2ints);
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

static uint64_t by_turn(const void *a)
{
    const struct point *p = *(const struct point *const *)a;

    return stats_2ints((int[]){p->epoch, p->round});
}

/* Does it leave its leaf, over this tier, side by side with others? */
static bool is_flow(const struct fit *f, int tier, const struct quiet *q, const struct point *p)
{
    const struct topo *t = &f->m->topo;

    if (!fit_is_crowded(f, p) || p->wrong)
        return false;
    int from = leaf_of(t, p->src), to = leaf_of(t, p->dst);
    return from >= 0 && to >= 0 && from != to && fit_tier(f, p) == tier &&
           !slow_alone(q, t, p->src, p->dst);
}

/* The flows of a tier, turn by turn. */
static int flows_of(const struct fit *f, int tier, const struct quiet *q, const struct point ***out)
{
    int n = 0;

    *out = NULL;
    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        if (i + TOPO_AHEAD < f->points->count)
            topo_fetch(&f->m->topo, p[TOPO_AHEAD].src, p[TOPO_AHEAD].dst);
        if (is_flow(f, tier, q, p))
            MEM_PUSH(*out, n) = p;
    }
    stats_sort_keys(*out, n, sizeof(**out), by_turn);
    return n;
}

/* What a flow gets of what it gets alone. */
static double share_of_flow(const struct fit *f, int tier, const struct quiet *q,
                            const struct point *p)
{
    double alone = f->baseline[tier].alone;

    if (q->below[p->src] > 0 && q->below[p->dst] > 0)
        alone = fmin(alone, fmin(q->below[p->src], q->below[p->dst]));
    return fmin(1, (double)p->bytes / p->sec.median / alone);
}

/* The flows of one turn by the leaf that they leave or come to. */
static void load_turn(const struct fit *f, enum way way, const struct point *const *p,
                      const double *share, int n, struct load *load)
{
    const struct topo *t = &f->m->topo;
    int *leaf = mem_calloc((size_t)n, sizeof(*leaf));
    double *v = mem_calloc((size_t)n, sizeof(*v));
    struct lists by;

    for (int i = 0; i < n; i++)
        leaf[i] = leaf_of(t, way == UP ? p[i]->src : p[i]->dst);
    lists_make(&by, leaf, NULL, n, t->group[LEVEL_LEAF].count);
    for (int l = 0; l < t->group[LEVEL_LEAF].count; l++) {
        int flows = 0;
        for (int k = by.start[l]; k < by.start[l + 1]; k++)
            v[flows++] = share[by.at[k]];
        if (!flows)
            continue;
        double usual = stats_select(v, flows, flows / 2);
        load[l].carry = fmax(load[l].carry, flows * usual);
        if (usual < full)
            load[l].most = fmax(load[l].most, flows);
    }
    lists_free(&by);
    free(leaf);
    free(v);
}

static void load_leaves(const struct fit *f, int tier, const struct quiet *q, struct load *load)
{
    const struct point **p;
    int n = flows_of(f, tier, q, &p);
    double *share = mem_calloc((size_t)n + 1, sizeof(*share));

    for (int i = 0; i < n; i++)
        share[i] = share_of_flow(f, tier, q, p[i]);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && by_turn(&p[i]) == by_turn(&p[j]); j++)
            ;
        load_turn(f, UP, p + i, share + i, j - i, load);
        load_turn(f, DOWN, p + i, share + i, j - i, load);
    }
    free(share);
    free(p);
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
        f->baseline[tier].thin = mem_calloc(2 * (size_t)leaves, sizeof(double));
        for (int i = 0; i < leaves; i++) {
            f->baseline[tier].thin[i] = share_of(&load[i]);
            f->baseline[tier].thin[leaves + i] = load[i].most;
        }
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
    load_leaves(f, tier, q, load);
    judge(f, tier, q, load);
    free(load);
}

void fit_uplinks(struct fit *f)
{
    struct quiet q = {NULL, NULL, 0};

    if (f->m->topo.group[LEVEL_LEAF].count < 2)
        return;
    rates_below(&q, f);
    for (int tier = 0; tier < f->m->tiers; tier++) {
        const struct tier *t = &f->m->tier[tier];
        bool below = t->rule.same >> LEVEL_LEAF & 1; /* its pairs leave no leaf */
        if (t->nic && !below && f->baseline[tier].alone > 0)
            look_at(f, tier, &q);
    }
    free(q.below);
    free(q.lone);
}

/* --- leaves with fewer uplinks than others --- */

/* Does a part that is slow by itself say enough of the leaf? */
static bool leaf_is_named(const struct matrix *m, int leaf)
{
    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        bool group = part_is_group(e->part) || e->part == PART_RACK_PAIR;
        for (int k = 0; k < m->topo.endpoints && group; k++)
            if (topo_at(&m->topo, k, LEVEL_LEAF) == leaf && matrix_touches(m, e, k))
                return true;
    }
    return false;
}

/* Prices stay: few transfers fill the uplinks. */
static void name_thin(struct fit *f, int tier, int leaf, double share, int flows)
{
    MEM_PUSH(f->m->exception, f->m->exceptions) = (struct exception){
        .part = PART_LEAF,
        .a = leaf,
        .b = -1,
        .tier = tier,
        .state = STATE_LOST_UPLINKS,
        .factor = part_factor(STATE_LOST_UPLINKS, share, 0),
        .depth = share,
        .evidence = flows,
        .partners = flows,
        .why = mem_printf("the uplinks of %s carry %.2f of what the NICs below it do, those "
                          "of most leaves all of it: up to %d flows of tier %s at once share less "
                          "than they get alone: cables to the spines are down or not used",
                          f->m->topo.group[LEVEL_LEAF].name[leaf], share, flows,
                          f->m->tier[tier].rule.name)};
}

/* Those that only meet a thin one carry little as well, but not as little. */
void fit_uplinks_thin(struct fit *f, int tier)
{
    const int leaves = f->m->topo.group[LEVEL_LEAF].count;
    const double *thin = f->baseline[tier].thin;
    double least = INFINITY;

    for (int i = 0; thin && i < leaves; i++)
        least = fmin(least, thin[i]);
    for (int i = 0; thin && i < leaves; i++)
        if (thin[i] <= 1.2 * least && !leaf_is_named(f->m, i))
            name_thin(f, tier, i, thin[i], (int)thin[leaves + i]);
}
