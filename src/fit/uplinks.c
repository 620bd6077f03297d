/* SPDX-License-Identifier: BSD-3-Clause */
/* Find leaves, or pods of leaves, with fewer uplinks than NICs.
 *
 * For each turn and group: number of flows (out, in) * median share = load that the uplinks carried, in NICs.
 * The share of a flow is its bandwidth / its bandwidth alone.  The largest load is the capacity of the
 * uplinks if more was sent at least once.  The plan must have rounds in which
 * many NICs of a leaf send to other leaves at once (schedule_uplinks()) and pairs of the same kind alone,
 * and leaves must be visible.  A slow NIC counts with the bandwidth that it reaches below its leaf.  Flows
 * between two racks that are slow even for a single pair are ignored.
 *
 * The load of a group counts all flows out of the group, but only flows that stay in the wider group measure
 * its uplinks: flows between pods are slow because of the pods.  A pod is a declared spine, or otherwise the
 * leaves of the same hosts.  If flows of one leaf get very different shares at the same time, uplinks are
 * not missing: flows are hashed onto the same uplinks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit_impl.h"
#include "noise/constants.h"
#include "topo/groups.h"

static const double wider_less =
    0.9; /* uplinks of a pod / of its leaves: above this the leaves' uplinks are the limit */
static const double hashed_most =
    0.8; /* share of slow flows: hashing leaves some alone, missing uplinks leave hardly any */
static const double hashed_least =
    0.05; /* share of flows at a half or less: fewer are stray points */
static const double together =
    0.25;               /* correlation of flows of a leaf: measured 0.0 to 0.1 where flows are
                                        hashed, 0.4 and more where other jobs or few uplinks slow a leaf */
enum { TURNS_MIN = 3 }; /* turns that measure a group: another job lasts one or two */
enum {
    FLOWS_MIN = 6,
    TURNS_HASHED = 8
}; /* flows of a leaf in a turn, and number of such turns, for a usable correlation */

/* Groups whose uplinks are checked. */
struct above {
    enum level level;
    const char *many; /* "leaves" */
    int *of;          /* group of each endpoint; -1: unknown */
    int groups;
};
enum { ABOVE_MAX = 2 }; /* leaves, pods */

enum way { UP, DOWN };

/* One pair that ran alone. */
struct lone {
    int a, b; /* the racks or leaves of its ends, a <= b */
    double share;
    int host[2];
};

/* Flows of one tier under load, by turn, and their bandwidth / that of the same pair alone. */
struct flows {
    const struct point **point;
    double *share;
    int count;
};

/* Pairs that ran alone, and flows of each tier. */
struct quiet {
    const int *leaf; /* by endpoint; -1: unknown */
    double *below;   /* by endpoint: best rate of its NIC below the leaf; 0: none */
    struct lone *lone;
    int lones;                    /* of one tier */
    bool slow;                    /* one of them is */
    struct flows flows[TIER_MAX]; /* share NULL: not listed yet */
};

struct load {
    double most;  /* most flows at once while the uplinks were full */
    double carry; /* largest load carried, in NICs; 0: none measured */
    int endpoints, turns;
};

/* Flows of one group in one turn, and those that got a half or less; likewise of all groups in that turn, one way. */
struct crowd {
    int flows, slow, all, all_slow, groups;
};

struct scatter {
    struct crowd *turn;
    int turns, flows, slow;
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
        q->slow |= share < FIT_FULL;
        MEM_PUSH(q->lone, q->lones) = between(&f->m->topo, o->src, o->dst, share);
    }
    stats_sort_keys(q->lone, q->lones, sizeof(*q->lone), stats_2ints);
}

/* True if one host is in every slow pair so far; host: the remaining candidates. */
static bool common(int host[2], const struct lone *l)
{
    for (int k = 0; k < 2; k++)
        if (host[k] != l->host[0] && host[k] != l->host[1])
            host[k] = -1;
    return host[0] >= 0 || host[1] >= 0;
}

/* True if most pairs alone between these two groups were slow as well, and no host is in all of them. */
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
        if (q->lone[i].share >= FIT_FULL)
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

/* True if the point is a flow under load that leaves its leaf, in this tier. */
static bool is_flow(const struct fit *f, int tier, const struct quiet *q, const struct point *p)
{
    if (!fit_is_crowded(f, p) || p->wrong)
        return false;
    int from = q->leaf[p->src], to = q->leaf[p->dst];
    return from >= 0 && to >= 0 && from != to && fit_tier(f, p) == tier &&
           !(q->slow && slow_alone(q, &f->m->topo, p->src, p->dst));
}

/* Bandwidth of a flow / bandwidth of the same pair alone. */
static double share_of_flow(const struct fit *f, int tier, const struct quiet *q,
                            const struct point *p)
{
    double alone = f->baseline[tier].alone;

    if (q->below[p->src] > 0 && q->below[p->dst] > 0)
        alone = fmin(alone, fmin(q->below[p->src], q->below[p->dst]));
    return fmin(1, (double)p->bytes / p->sec.median / alone);
}

/* Flows of a tier, listed once: there are millions of points. */
static const struct flows *flows_of(const struct fit *f, int tier, struct quiet *q)
{
    struct flows *w = &q->flows[tier];

    if (w->share)
        return w;
    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        if (is_flow(f, tier, q, p))
            MEM_PUSH(w->point, w->count) = p;
    }
    stats_sort_keys(w->point, w->count, sizeof(*w->point), by_turn);
    w->share = mem_calloc((size_t)w->count + 1, sizeof(*w->share));
    for (int i = 0; i < w->count; i++)
        w->share[i] = share_of_flow(f, tier, q, w->point[i]);
    return w;
}

/* --- one level --- */

static bool leaves(const struct above *a, const struct point *p)
{
    return a->of[p->src] != a->of[p->dst] && a->of[p->src] >= 0 && a->of[p->dst] >= 0;
}

/* True if a flow measures the uplinks of these groups: it leaves its group but stays in the wider group. */
static bool tells(const struct above *a, const struct above *wider, const struct point *p)
{
    return leaves(a, p) && (!wider || !leaves(wider, p));
}

static void note_scatter(struct scatter *s, const double *v, int n)
{
    int slow = 0;

    for (int i = 0; i < n; i++)
        slow += v[i] < noise_constants.collided;
    s->flows += n;
    s->slow += slow;
    if (n >= FLOWS_MIN) {
        MEM_PUSH(s->turn, s->turns) = (struct crowd){.flows = n, .slow = slow};
    }
}

/* Groups of a turn know of each other, from this crowd on. */
static void note_turn(struct scatter *s, int from)
{
    int all = 0, slow = 0;

    for (int i = from; i < s->turns; i++) {
        all += s->turn[i].flows;
        slow += s->turn[i].slow;
    }
    for (int i = from; i < s->turns; i++) {
        s->turn[i].all = all;
        s->turn[i].all_slow = slow;
        s->turn[i].groups = s->turns - from;
    }
}

/* Correlation of flows within groups, from the variance between groups (Fleiss 2003, 15.2); of all turns, or within
 * turns, whose flows are not equally many.  NAN: too few groups. */
static double correlation(const struct scatter *s, bool within)
{
    double sum = 0, flows = 0, free = within ? 0 : -1;
    int n = 0;

    for (int i = 0; i < s->turns; i++) {
        const struct crowd *c = &s->turn[i];
        double p = within ? (double)c->all_slow / c->all : (double)s->slow / s->flows,
               x = (double)c->slow / c->flows - p;

        if (!(p > 0 && p < 1) || (within && c->groups < 2))
            continue;
        sum += c->flows * x * x / (p * (1 - p));
        free += within ? 1 - 1. / c->groups : 1;
        flows += c->flows;
        n++;
    }
    return n >= TURNS_HASHED ? (sum / free - 1) / (flows / n - 1) : NAN;
}

/* True if flows are slow independently of each other.  Missing uplinks and other jobs slow all flows of a
 * group at the same time. */
static bool is_hashed(const struct scatter *s)
{
    double p = s->flows ? (double)s->slow / s->flows : 0;

    return p >= hashed_least && p <= hashed_most &&
           (correlation(s, false) < together || correlation(s, true) < together);
}

/* Add the flows of one turn to the load of the groups that they leave (UP) or enter (DOWN). */
static void load_turn(const struct above *a, const struct above *wider, enum way way,
                      const struct point *const *p, const double *share, int n, struct load *load,
                      struct scatter *s)
{
    int *group = mem_calloc((size_t)n, sizeof(*group));
    double *v = mem_calloc((size_t)n, sizeof(*v));
    const int from = s->turns;
    struct lists by;

    for (int i = 0; i < n; i++)
        group[i] = leaves(a, p[i]) ? a->of[way == UP ? p[i]->src : p[i]->dst] : -1;
    lists_make(&by, group, NULL, n, a->groups);
    for (int g = 0; g < a->groups; g++) {
        int flows = by.start[g + 1] - by.start[g], telling = 0;
        for (int k = by.start[g]; k < by.start[g + 1]; k++)
            if (tells(a, wider, p[by.at[k]]))
                v[telling++] = share[by.at[k]];
        if (!telling)
            continue;
        double usual = stats_select(v, telling, telling / 2);
        load[g].carry = fmax(load[g].carry, flows * usual);
        load[g].turns++;
        if (usual < FIT_FULL)
            load[g].most = fmax(load[g].most, flows);
        note_scatter(s, v, telling);
    }
    note_turn(s, from);
    lists_free(&by);
    free(group);
    free(v);
}

static void load_groups(const struct flows *w, const struct above *a, const struct above *wider,
                        struct load *load, struct scatter *s)
{
    const struct point *const *p = w->point;

    for (int i = 0, j; i < w->count; i = j) {
        for (j = i + 1; j < w->count && by_turn(&p[i]) == by_turn(&p[j]); j++)
            ;
        load_turn(a, wider, UP, p + i, w->share + i, j - i, load, s);
        load_turn(a, wider, DOWN, p + i, w->share + i, j - i, load, s);
    }
}

/* Load of the uplinks of a leaf / load of its NICs; NAN: the uplinks were never full. */
static double share_of(const struct load *l)
{
    return l->turns >= TURNS_MIN && l->carry > 0 && l->carry < FIT_FULL * l->most &&
                   l->carry < FIT_FULL * l->endpoints
               ? l->carry / l->endpoints
               : NAN;
}

/* Shares of the leaves whose uplinks carry less.  The caller frees the result. */
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

static void say(struct fit *f, int tier, const struct quiet *q, const struct above *a, double share,
                int thin, int measured, int most)
{
    int all = 0;

    for (int i = 0; i < q->lones; i++)
        all += q->lone[i].share >= FIT_FULL;
    struct property *p = matrix_property(f->m, PROPERTY_TAPER, tier, 1 / share);
    p->level = (int)a->level;
    p->text =
        mem_printf("on %d of %d %s up to %d flows of tier %s at once had less in total than alone, "
                   "where %d pairs had their full rate",
                   thin, measured, a->many, most, f->m->tier[tier].rule.name, all);
    matrix_find(
        f->m, "uplinks",
        "the uplinks of the %s are oversubscribed %.2g:1: they carry %.2f of the rate of the "
        "NICs below them (%s); no NIC and no cable is bad",
        a->many, 1 / share, share, p->text);
}

static void say_collisions(struct fit *f, int tier, const struct scatter *s)
{
    struct property *p =
        matrix_property(f->m, PROPERTY_COLLISIONS, tier, (double)s->slow / s->flows);

    p->level = LEVEL_LEAF;
    p->text =
        mem_printf("in %d of %d turns a pair of tier %s beside others had half of its rate or "
                   "less, while other pairs of its group had all",
                   s->slow, s->flows, f->m->tier[tier].rule.name);
    matrix_find(
        f->m, "collisions",
        "under load a pair of tier %s has half of its rate in %.0f %% of turns, while other "
        "pairs of its leaf have all: flows are hashed onto the same uplinks; no NIC and no "
        "cable is bad",
        f->m->tier[tier].rule.name, 100 * p->ratio);
}

/* Mark the tier as contended: the fabric limits pairs under load, so their bandwidth is not evidence of slow
 * parts. */
static void excuse(struct fit *f, int tier, double share)
{
    f->baseline[tier].contended = f->baseline[tier].uplinks = true;
    f->m->tier[tier].loaded = share;
}

/* If more than half of the groups are limited, the fabric was built that way.  inner: share of the groups
 * within.  Returns the share that the uplinks carry; 1: all. */
static double judge(struct fit *f, int tier, const struct quiet *q, const struct above *a,
                    const struct load *load, double inner)
{
    int n = 0, measured = 0, most = 0;
    double *v = shares(load, a->groups, &n, &measured, &most), share = 1;

    if (2 * n > measured && n) {
        double middle = stats_median(v, n);
        excuse(f, tier, middle);
        if (middle < wider_less * inner) {
            share = middle;
            say(f, tier, q, a, share, n, measured, most);
        }
    }
    free(v);
    return share;
}

static bool has_collisions(const struct matrix *m, int tier)
{
    for (int i = 0; i < m->properties; i++)
        if (m->property[i].kind == PROPERTY_COLLISIONS && m->property[i].tier == tier)
            return true;
    return false;
}

/* Share that the uplinks of one level carry in one tier; 1: all; NAN: no flow measures them. */
static double look_at(struct fit *f, int tier, struct quiet *q, const struct above *a,
                      const struct above *wider, double inner)
{
    struct load *load = mem_calloc((size_t)a->groups, sizeof(*load));
    struct scatter s = {NULL, 0, 0, 0};
    double share = 1;

    q->lones = 0;
    q->slow = false;
    pairs_alone(q, f, tier);
    for (int i = 0; i < f->m->topo.endpoints; i++)
        if (a->of[i] >= 0)
            load[a->of[i]].endpoints++;
    load_groups(flows_of(f, tier, q), a, wider, load, &s);
    bool hashed = a->level == LEVEL_LEAF ? is_hashed(&s) : has_collisions(f->m, tier);
    if (!s.flows) {
        share = NAN;
    } else if (hashed && !has_collisions(f->m, tier)) {
        excuse(f, tier, f->m->tier[tier].loaded);
        say_collisions(f, tier, &s);
    } else if (!hashed) {
        share = judge(f, tier, q, a, load, inner);
    }
    free(load);
    free(s.turn);
    return share;
}

/* --- the groups --- */

static struct above leaves_of(const struct topo *t)
{
    struct above a = {LEVEL_LEAF, "leaves", mem_ints(t->endpoints, -1), t->group[LEVEL_LEAF].count};

    for (int i = 0; i < t->endpoints; i++)
        a.of[i] = leaf_of(t, i);
    return a;
}

/* Pods without declared spines: leaves of the same hosts. */
static struct above units_of(const struct topo *t)
{
    struct above a = {LEVEL_SPINE, "pods", mem_ints(t->endpoints, -1), 0};
    struct leaf_link *link = mem_calloc((size_t)t->endpoints + 1, sizeof(*link));
    struct leaf_groups g;
    int n = 0;

    for (int i = 0; i < t->endpoints; i++)
        if (leaf_of(t, i) >= 0)
            link[n++] = (struct leaf_link){topo_at(t, i, LEVEL_HOST), leaf_of(t, i)};
    leaf_groups_make(&g, link, n);
    for (int i = 0; i < t->endpoints; i++)
        a.of[i] = leaf_of(t, i) >= 0 ? g.of_leaf[leaf_of(t, i)] : -1;
    a.groups = g.groups;
    leaf_groups_free(&g);
    free(link);
    return a;
}

static struct above pods_of(const struct topo *t)
{
    struct above a = {LEVEL_SPINE, "pods", mem_ints(t->endpoints, -1), t->group[LEVEL_SPINE].count};

    for (int i = 0; i < t->endpoints; i++)
        a.of[i] = topo_at(t, i, LEVEL_SPINE);
    if (a.groups)
        return a;
    free(a.of);
    return units_of(t);
}

/* Smallest share over all tiers whose pairs cross NICs and leaves; NAN: no flow measures the uplinks. */
static double look_at_all(struct fit *f, struct quiet *q, const struct above *a,
                          const struct above *wider, double inner)
{
    double carried = NAN;

    for (int tier = 0; tier < f->m->tiers; tier++) {
        const struct tier *t = &f->m->tier[tier];
        bool below = t->rule.same >> LEVEL_LEAF & 1; /* pairs stay below a leaf */
        if (t->nic && !below && f->baseline[tier].alone > 0)
            carried = fmin(carried, look_at(f, tier, q, a, wider, inner));
    }
    return carried;
}

void fit_uplinks(struct fit *f)
{
    const struct topo *topo = &f->m->topo;
    struct quiet q = {0};
    double inner = 1;

    if (topo->group[LEVEL_LEAF].count < 2)
        return;
    struct above above[ABOVE_MAX] = {leaves_of(topo), pods_of(topo)};
    /* A pod with one leaf is the same as the leaf. */
    int count = above[1].groups > 1 && above[1].groups < above[0].groups ? 2 : 1;
    q.leaf = above[0].of;
    rates_below(&q, f);
    for (int k = 0; k < count; k++) { /* inner groups first */
        const struct above *wider = k + 1 < count ? &above[k + 1] : NULL;
        double carried = look_at_all(f, &q, &above[k], wider, inner);
        /* No pair leaves a leaf but stays in its pod: leaves and pods cannot be told apart, so leaves are
         * named. */
        if (isnan(carried))
            carried = look_at_all(f, &q, &above[k], NULL, inner);
        inner = fmin(inner, carried);
    }
    free(q.below);
    free(q.lone);
    for (int i = 0; i < TIER_MAX; i++) {
        free(q.flows[i].point);
        free(q.flows[i].share);
    }
    for (int i = 0; i < ABOVE_MAX; i++)
        free(above[i].of);
}
