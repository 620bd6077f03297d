/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs whose latency is not their tier's.
 *
 * What a tier's pairs scatter by is its latency spread.  A pair that is slower by more than that
 * and more than its own noise, in every epoch and in three or alone in two, adds latency: it, or
 * the endpoint, host or two racks that most of such pairs share.  Pairs that are nearer, and a tier
 * in two heaps without a slow part, are findings.
 *
 * Before there are tiers, which pairs of hosts are near and which far by their latency. */
#include "cost/fit/cluster_impl.h"
#include "cost/fit/fit_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"

enum { PARTNERS_MIN = 3, FEW = 10, FEW_PAIRS = 4 };

static const double step = 0.1;      /* a pair must differ by this share at least */
static const double most = 0.6;      /* of a part's pairs must be slow with it */
static const double same_add = 0.35; /* what they add may differ by so much of it */

/* A pair that is slower than noise allows. */
struct late {
    int src, dst, tier;
    bool known;  /* measured often enough to be evidence */
    double over; /* s above the tier's median */
    double sec;
    int taken;
};

struct latencies {
    struct fit *f;
    struct late *v; /* few of the pairs, or there is nothing to tell */
    int n;
    double usual[TIER_MAX], sigma[TIER_MAX]; /* s; robust standard deviation of logarithms */
    int pairs[TIER_MAX];
};

static bool is_latency(const struct fit *f, const struct obs *o)
{
    return obs_is_latency(o, f->lat_bytes);
}

static void find_usual(struct latencies *l, int tier)
{
    struct fit *f = l->f;
    int n = 0, count;
    const int *of = fit_of(f, tier, OP_PAIR_LATENCY, &count);
    double *v = mem_calloc((size_t)count + 1, sizeof(*v)), level[STATS_LEVELS],
           *noise = mem_calloc((size_t)count + 1, sizeof(*noise));

    for (int i = 0; i < count; i++)
        if (is_latency(f, &f->obs[of[i]])) {
            noise[n] = observe_noise(&f->obs[of[i]]);
            v[n++] = log(f->obs[of[i]].sec);
        }
    l->pairs[tier] = n;
    if (n) {
        double median = stats_median(v, n);
        l->usual[tier] = exp(median);
        l->sigma[tier] = 1.4826 * stats_mad(v, n, median);
        f->m->tier[tier].latency_spread = l->sigma[tier] / 1.4826;
        int levels = n < FEW ? 0 : stats_levels(v, n, stats_middle(noise, n), level);
        char a[UNITS_TEXT], b[UNITS_TEXT];
        if (levels > 1 && l->sigma[tier] > step) /* a heap of few leaves the median's noise small */
            matrix_find(f->m, "bimodal",
                        "tier %s: latencies of its pairs lie around %s and %s, and no groups of "
                        "hosts explain it; its latency is their median",
                        f->m->tier[tier].rule.name, units_seconds_text(a, exp(level[0])),
                        units_seconds_text(b, exp(level[levels - 1])));
    }
    free(v);
    free(noise);
}

/* So far from the median that of so many pairs none is by chance. */
static double limit(const struct latencies *l, const struct obs *o)
{
    double z = fmax(5, 1 + sqrt(2 * log(l->pairs[o->tier] + 1)));

    return fmax(log1p(step), z * fmax(l->sigma[o->tier], observe_noise(o)));
}

/* Was what makes it a pair of this tier found by measuring, and does it answer as those of a wider tier
 * do?  Then it is one of them (another rail of the same hosts), not late. */
static bool is_of_wider(const struct latencies *l, const struct obs *o)
{
    const struct matrix *m = l->f->m;
    bool measured = false, wider = false;

    for (int level = 0; level < LEVEL_COUNT; level++)
        measured |= m->tier[o->tier].rule.same >> level & 1 &&
                    m->topo.endpoint[o->src].source[level] == SOURCE_MEASURED;
    for (int t = o->tier + 1; t < m->tiers && measured; t++) {
        struct obs as = *o;
        as.tier = t;
        wider |= l->pairs[t] && fabs(log(o->sec / l->usual[t])) < limit(l, &as);
    }
    return wider;
}

/* Of a pair measured alone and in parallel the former counts (it sorts after the latter). */
static bool counts(const struct fit *f, int i)
{
    const struct obs *o = &f->obs[i], *end = f->obs + f->count;

    if (!is_latency(f, o))
        return false;
    for (const struct obs *p = o + 1; p < end && p->op == o->op && p->src == o->src; p++)
        if (p->dst != o->dst)
            break;
        else if (is_latency(f, p))
            return false;
    return true;
}

/* Its quickest epoch as well.  What is within the least limit needs no other. */
static bool is_late(const struct latencies *l, const struct obs *o)
{
    double usual = l->usual[o->tier], far = log(o->sec / usual);

    return far > log1p(step) && far > limit(l, o) &&
           o->sec * (1 - obs_range(o)) > (1 + step / 2) * usual && !is_of_wider(l, o);
}

static void add(struct latencies *l, const struct obs *o)
{
    MEM_PUSH(l->v, l->n) = (struct late){.src = o->src,
                                         .dst = o->dst,
                                         .tier = o->tier,
                                         .known = obs_epochs(o) >= (o->alone ? 2 : 3),
                                         .over = o->sec - l->usual[o->tier],
                                         .sec = o->sec,
                                         .taken = -1};
}

/* The key of one end, or of both, of a pair in parts of this kind; -1: it has none. */
static int key_of(const struct fit *f, int src, int dst, enum part part, int end)
{
    int key = fit_at(f, end ? dst : src, LEVEL_HOST),
        other = fit_at(f, end ? src : dst, LEVEL_HOST);

    switch (part) {
    case PART_ENDPOINT:
        return end ? dst : src;
    case PART_HOST:
        return key == other || f->m->topo.host[key].endpoints < 2 ? -1 : key;
    default:
        return end ? -1 : fit_rack_pair(f, src, dst);
    }
}

static void name(struct latencies *l, struct exception e, int all)
{
    struct matrix *m = l->f->m;
    char more[UNITS_TEXT], usual[UNITS_TEXT];

    for (int i = 0; i < m->exceptions; i++) { /* slow in bandwidth, too */
        struct exception *x = &m->exception[i];
        if (x->part == e.part && x->a == e.a && x->b == e.b && x->side == SIDE_BOTH &&
            x->tier == e.tier && x->factor > 0) {
            x->alpha_add = e.alpha_add;
            return;
        }
    }
    e.why = mem_printf("%d of %d pairs answer %s later than the %s of %s", e.evidence, all,
                       units_seconds_text(more, e.alpha_add),
                       units_seconds_text(usual, l->usual[e.tier]), m->tier[e.tier].rule.name);
    MEM_PUSH(m->exception, m->exceptions) = e;
}

/* One end of a late pair. */
struct keyed {
    int key, tier, index;
};

/* Late pairs of one key, of n that were measured: taken when they are most of them and add the same. */
static void judge(struct latencies *l, enum part part, const struct keyed *k, int ends, int n)
{
    double *v = mem_calloc((size_t)ends, sizeof(*v));
    int late = 0, alike = 0, racks = l->f->m->topo.group[LEVEL_RACK].count;

    for (int i = 0; i < ends; i++)
        if (l->v[k[i].index].taken < 0)
            v[late++] = l->v[k[i].index].over;
    double add = late ? stats_median(v, late) : 0;
    for (int i = 0; i < late; i++)
        alike += fabs(v[i] - add) <= same_add * add;
    free(v);
    if (late < PARTNERS_MIN || alike < most * n || alike < most * late)
        return;
    struct exception e = {.part = part,
                          .a = part == PART_RACK_PAIR ? k->key / racks : k->key,
                          .b = part == PART_RACK_PAIR ? k->key % racks : -1,
                          .tier = k->tier,
                          .factor = 1,
                          .alpha_add = add,
                          .evidence = late};
    for (int i = 0; i < ends; i++)
        l->v[k[i].index].taken = part;
    name(l, e, n);
}

/* How many pairs were measured of each key that a late one has: at its first place in k. */
static int *count_measured(const struct latencies *l, enum part part, const struct keyed *k, int n)
{
    const struct fit *f = l->f;
    int *all = mem_calloc((size_t)n + 1, sizeof(*all));
    struct map first = {0};

    for (int i = n - 1; i >= 0; i--)
        *map_at(&first, stats_2ints(&k[i]), NULL, NULL) = i;
    for (int i = 0; i < f->count && n; i++)
        for (int end = 0; end < 2 && counts(f, i); end++) {
            const struct obs *o = &f->obs[i];
            int key[] = {key_of(f, o->src, o->dst, part, end), o->tier};
            int at = map_find(&first, stats_2ints(key), NULL, NULL);
            if (at >= 0)
                all[at]++;
        }
    map_free(&first);
    return all;
}

static void judge_parts(struct latencies *l, enum part part)
{
    struct keyed *k = mem_calloc(2 * (size_t)l->n + 1, sizeof(*k));
    int n = 0;

    for (int i = 0; i < l->n; i++)
        for (int end = 0; end < 2; end++) {
            int key = key_of(l->f, l->v[i].src, l->v[i].dst, part, end);
            if (key >= 0)
                k[n++] = (struct keyed){key, l->v[i].tier, i};
        }
    stats_sort_keys(k, n, sizeof(*k), stats_2ints); /* the index is in order */
    int *all = count_measured(l, part, k, n);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && stats_by_2ints(&k[i], &k[j]) == 0; j++)
            ;
        judge(l, part, k + i, j - i, all[i]);
    }
    free(k);
    free(all);
}

static void judge_pairs(struct latencies *l)
{
    int once = 0, worst = -1;
    char sec[UNITS_TEXT], usual[UNITS_TEXT], a[96], b[96];

    for (int i = 0; i < l->n; i++) {
        const struct late *x = &l->v[i];
        if (x->taken >= 0)
            continue;
        if (!x->known) {
            once++;
            worst = worst < 0 || x->over > l->v[worst].over ? i : worst;
            continue;
        }
        struct exception e = {.part = PART_PAIR,
                              .a = x->src,
                              .b = x->dst,
                              .tier = x->tier,
                              .factor = 1,
                              .alpha_add = x->over,
                              .evidence = 1};
        name(l, e, 1);
    }
    if (once)
        matrix_find(l->f->m, "latency",
                    "%d pairs measured once answer later than noise lets pairs of their tier: the "
                    "worst, %s and %s, in %s where %s has %s; measure again to know",
                    once, matrix_endpoint(l->f->m, l->v[worst].src, a),
                    matrix_endpoint(l->f->m, l->v[worst].dst, b),
                    units_seconds_text(sec, l->v[worst].sec),
                    l->f->m->tier[l->v[worst].tier].rule.name,
                    units_seconds_text(usual, l->usual[l->v[worst].tier]));
}

/* Nearer than their tier: two heaps were too few or too mixed for groups. */
static void say_nearer(struct latencies *l, int tier)
{
    struct fit *f = l->f;
    int n = 0, best = -1, count;
    const int *of = fit_of(f, tier, OP_PAIR_LATENCY, &count);
    char sec[UNITS_TEXT], usual[UNITS_TEXT], a[96], b[96];

    for (int i = 0; i < count; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (!is_latency(f, o) || obs_epochs(o) < (o->alone ? 2 : 3) ||
            log(l->usual[tier] / o->sec) < limit(l, o))
            continue;
        n++;
        best = best < 0 || o->sec < f->obs[best].sec ? of[i] : best;
    }
    if (n)
        matrix_find(f->m, "latency",
                    "%d pairs of tier %s are nearer than its others, which have %s: the nearest, "
                    "%s and %s, answer in %s",
                    n, f->m->tier[tier].rule.name, units_seconds_text(usual, l->usual[tier]),
                    matrix_endpoint(f->m, f->obs[best].src, a),
                    matrix_endpoint(f->m, f->obs[best].dst, b),
                    units_seconds_text(sec, f->obs[best].sec));
}

void fit_latency(struct fit *f)
{
    static const enum part order[] = {PART_HOST, PART_ENDPOINT, PART_RACK_PAIR};
    struct latencies l = {.f = f};

    for (int tier = 0; tier < f->m->tiers; tier++)
        find_usual(&l, tier);
    for (int i = 0; i < f->count; i++)
        if (counts(f, i) && is_late(&l, &f->obs[i]))
            add(&l, &f->obs[i]);
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        judge_parts(&l, order[i]);
    judge_pairs(&l);
    for (int tier = 0; tier < f->m->tiers; tier++)
        if (l.pairs[tier])
            say_nearer(&l, tier);
    free(l.v);
}

/* --- near and far hosts by latency: its levels first, then what the pairs of others say --- */

static const double level_sigmas = 4.5;      /* between levels, where noise is not known */
static const double contradicted_most = 0.2; /* of the near pairs */
static const double unclear = 0.1;           /* of the way between two levels, about its middle */

/* Median over edges that know theirs; what is not known is not 0. */
static double known_noise(struct clustering *w)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].sec > 0 && w->e[i].noise > 0)
            w->v[n++] = w->e[i].noise;
    return n ? stats_middle(w->v, n) : log1p(CLUSTER_GAP) / level_sigmas;
}

int cluster_levels(struct clustering *w, double *level)
{
    double noise = known_noise(w);
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].sec > 0)
            w->v[n++] = log(w->e[i].sec);
    stats_sort(w->v, n);
    return stats_levels(w->v, n, noise, level);
}

/* One edge, as one of its units sees it. */
struct view {
    int other, edge;
    enum label label;
};

/* What each unit sees: v[start[u]] .. v[start[u + 1] - 1], side by side; the caller frees. */
static struct view *look_around(int **start, const struct clustering *w)
{
    struct view *v = mem_calloc(2 * (size_t)w->edges + 1, sizeof(*v));
    int *key = mem_calloc(2 * (size_t)w->edges + 1, sizeof(*key));
    struct lists by;

    for (int i = 0; i < 2 * w->edges; i++)
        key[i] = i % 2 ? w->e[i / 2].b : w->e[i / 2].a;
    lists_make(&by, key, NULL, 2 * w->edges, w->units);
    for (int k = 0; k < 2 * w->edges; k++)
        v[k] = (struct view){key[by.at[k] ^ 1], by.at[k] / 2, w->label[by.at[k] / 2]};
    free(key);
    free(by.at);
    *start = by.start;
    return v;
}

/* Of those that two near units both met: are most near to one of them and far from the other? */
static int contradicted(const enum label *to_first, const struct view *second, int n)
{
    int agree = 0, split = 0;

    for (int k = 0; k < n; k++) {
        enum label there = to_first[second[k].other], here = second[k].label;
        agree += here == NEAR && there == NEAR;
        split += (here == NEAR && there == FAR) || (here == FAR && there == NEAR);
    }
    return split > 2 * agree + 1;
}

/* Drop what one unit's near edges to later ones contradict; row: zeros, before and after. */
static void drop_of(const struct clustering *w, int unit, const struct view *v, const int *start,
                    enum label *row, char *drop)
{
    for (int k = start[unit]; k < start[unit + 1]; k++)
        row[v[k].other] = v[k].label;
    for (int k = start[unit]; k < start[unit + 1]; k++) {
        int other = v[k].other;
        if (v[k].label == NEAR && w->e[v[k].edge].a == unit)
            drop[v[k].edge] =
                (char)contradicted(row, v + start[other], start[other + 1] - start[other]);
    }
    for (int k = start[unit]; k < start[unit + 1]; k++)
        row[v[k].other] = UNKNOWN;
}

/* How many were dropped, share of the near ones. */
static double drop_contradicted(struct clustering *w)
{
    int near = 0, dropped = 0, *start;
    struct view *v = look_around(&start, w);
    enum label *row = mem_calloc((size_t)w->units, sizeof(*row));
    char *drop = mem_calloc((size_t)w->edges + 1, 1);

    for (int u = 0; u < w->units; u++)
        drop_of(w, u, v, start, row, drop);
    for (int i = 0; i < w->edges; i++) {
        near += w->label[i] == NEAR;
        dropped += drop[i];
        if (drop[i])
            w->label[i] = UNKNOWN;
    }
    free(v);
    free(start);
    free(row);
    free(drop);
    return near ? (double)dropped / near : 0;
}

/* Who is near to nobody may be slow itself: far pairs of it prove nothing. */
static void drop_lonely(struct clustering *w)
{
    char *near = mem_calloc((size_t)w->units, 1);

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == NEAR)
            near[w->e[i].a] = near[w->e[i].b] = 1;
    for (int i = 0; i < w->edges; i++)
        if (!near[w->e[i].a] || !near[w->e[i].b])
            w->label[i] = UNKNOWN;
    free(near);
}

/* What the pairs about this level do not know of their latencies: their median, where they are few
 * drawn to that of all. */
static double noise_about(struct clustering *w, double level, double within, double all)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].noise > 0 && fabs(log(w->e[i].sec) - level) < within)
            w->v[n++] = w->e[i].noise;
    return n ? (n * stats_middle(w->v, n) + FEW_PAIRS * all) / (n + FEW_PAIRS) : all;
}

/* Two levels of all pairs may be the luck of a few that know theirs worse than most. */
static bool known_apart(struct clustering *w, double near, double far)
{
    double within = (0.5 - unclear) * (far - near), all = known_noise(w);

    return far - near >=
           level_sigmas * fmax(noise_about(w, near, within, all), noise_about(w, far, within, all));
}

int cluster_by_latency(struct clustering *w, double near, double far)
{
    if (!known_apart(w, near, far))
        return 0;
    for (int i = 0; i < w->edges; i++) {
        double x = (log(w->e[i].sec) - near) / (far - near);
        w->label[i] = isnan(x)            ? UNKNOWN
                      : x < 0.5 - unclear ? NEAR
                      : x > 0.5 + unclear ? FAR
                                          : UNKNOWN;
    }
    double dropped = drop_contradicted(w);
    drop_lonely(w);
    return dropped < contradicted_most;
}
