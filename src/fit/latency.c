/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency spread of each tier.  Findings: tiers with two latency levels, and pairs with a latency far below
 * their tier.  The noise model names parts that add latency (parts.c).
 *
 * Before tiers exist: near and far pairs of hosts by latency. */
#include "fit/cluster.h"
#include "fit/fit_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"

enum { FEW = 10, FEW_PAIRS = 4 };

static const double step = 0.1; /* smallest difference of a pair, as a share */

struct latencies {
    struct fit *f;
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
        if (levels > 1 &&
            l->sigma[tier] > step) /* a small level does not widen the noise of the median */
            matrix_find(f->m, "bimodal",
                        "tier %s: latencies of its pairs lie around %s and %s, and no groups of "
                        "hosts explain it; its latency is their median",
                        f->m->tier[tier].rule.name, units_seconds_text(a, exp(level[0])),
                        units_seconds_text(b, exp(level[levels - 1])));
    }
    free(v);
    free(noise);
}

/* Limit of the distance from the median that no pair of so many exceeds by chance. */
static double limit(const struct latencies *l, const struct obs *o)
{
    double z = fmax(5, 1 + sqrt(2 * log(l->pairs[o->tier] + 1)));

    return fmax(log1p(step), z * fmax(l->sigma[o->tier], observe_noise(o)));
}

/* Report pairs with a latency below their tier: two levels with too few or too mixed pairs for groups. */
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
                    "%d pairs of tier %s have a lower latency than its others, which have %s: the "
                    "lowest is of %s and %s, %s",
                    n, f->m->tier[tier].rule.name, units_seconds_text(usual, l->usual[tier]),
                    matrix_endpoint(f->m, f->obs[best].src, a),
                    matrix_endpoint(f->m, f->obs[best].dst, b),
                    units_seconds_text(sec, f->obs[best].sec));
}

void fit_latency(struct fit *f)
{
    struct latencies l = {.f = f};

    for (int tier = 0; tier < f->m->tiers; tier++) {
        find_usual(&l, tier);
        if (l.pairs[tier])
            say_nearer(&l, tier);
    }
}

/* --- near and far hosts by latency: levels first, then a check by pairs with common partners --- */

static const double level_sigmas = 4.5;      /* between levels, where noise is not known */
static const double contradicted_most = 0.2; /* share of the near pairs */
static const double unclear = 0.1; /* share of the gap between two levels, around its middle */

/* Median over edges with a known noise; unknown noise does not count as 0. */
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

/* One edge, seen from one of its two units. */
struct view {
    int other, edge;
    enum label label;
};

/* List the edges of each unit u side by side, v[start[u]] ..  v[start[u + 1] - 1].  The caller frees v and
 * start. */
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

/* True if most common partners of two near units are near to one unit and far from the other. */
static int contradicted(const enum label *to_first, const struct view *second, int n)
{
    int agree = 0, split = 0;

    for (int k = 0; k < n; k++) {
        enum label there = to_first[second[k].other], here = second[k].label;
        agree += here == EDGE_NEAR && there == EDGE_NEAR;
        split +=
            (here == EDGE_NEAR && there == EDGE_FAR) || (here == EDGE_FAR && there == EDGE_NEAR);
    }
    return split > 2 * agree + 1;
}

/* Mark near edges of one unit to later units that are contradicted.  row: zeros on entry and on return. */
static void drop_of(const struct clustering *w, int unit, const struct view *v, const int *start,
                    enum label *row, char *drop)
{
    for (int k = start[unit]; k < start[unit + 1]; k++)
        row[v[k].other] = v[k].label;
    for (int k = start[unit]; k < start[unit + 1]; k++) {
        int other = v[k].other;
        if (v[k].label == EDGE_NEAR && w->e[v[k].edge].a == unit)
            drop[v[k].edge] =
                (char)contradicted(row, v + start[other], start[other + 1] - start[other]);
    }
    for (int k = start[unit]; k < start[unit + 1]; k++)
        row[v[k].other] = EDGE_UNKNOWN;
}

/* Drop contradicted near edges.  Returns their share of the near edges. */
static double drop_contradicted(struct clustering *w)
{
    int near = 0, dropped = 0, *start;
    struct view *v = look_around(&start, w);
    enum label *row = mem_calloc((size_t)w->units, sizeof(*row));
    char *drop = mem_calloc((size_t)w->edges + 1, 1);

    for (int u = 0; u < w->units; u++)
        drop_of(w, u, v, start, row, drop);
    for (int i = 0; i < w->edges; i++) {
        near += w->label[i] == EDGE_NEAR;
        dropped += drop[i];
        if (drop[i])
            w->label[i] = EDGE_UNKNOWN;
    }
    free(v);
    free(start);
    free(row);
    free(drop);
    return near ? (double)dropped / near : 0;
}

/* Ignore far pairs of a unit without near pairs: the unit itself may be slow. */
static void drop_lonely(struct clustering *w)
{
    char *near = mem_calloc((size_t)w->units, 1);

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == EDGE_NEAR)
            near[w->e[i].a] = near[w->e[i].b] = 1;
    for (int i = 0; i < w->edges; i++)
        if (!near[w->e[i].a] || !near[w->e[i].b])
            w->label[i] = EDGE_UNKNOWN;
    free(near);
}

/* Noise of the pairs around this level: the median, drawn towards the noise of all pairs if there are few. */
static double noise_about(struct clustering *w, double level, double within, double all)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].noise > 0 && fabs(log(w->e[i].sec) - level) < within)
            w->v[n++] = w->e[i].noise;
    return n ? (n * stats_middle(w->v, n) + FEW_PAIRS * all) / (n + FEW_PAIRS) : all;
}

/* True if the levels differ by more than noise: a few pairs with a larger noise than most can form a level
 * by chance. */
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
        w->label[i] = isnan(x)            ? EDGE_UNKNOWN
                      : x < 0.5 - unclear ? EDGE_NEAR
                      : x > 0.5 + unclear ? EDGE_FAR
                                          : EDGE_UNKNOWN;
    }
    double dropped = drop_contradicted(w);
    drop_lonely(w);
    return dropped < contradicted_most;
}
