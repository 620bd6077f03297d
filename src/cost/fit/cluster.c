/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit/cluster_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

static const double sigmas = 5;           /* a gap below this many robust deviations is noise */
static const double contradiction = 0.05; /* far pairs tolerated inside groups, share */

static int root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static double spread(const double *sorted, int n)
{
    return n ? 1.4826 * stats_mad(sorted, n, stats_quantile(sorted, n, 0.5)) : 0;
}

/* v sorted ascending in logs.  The number of values below the first gap from the top that is wider
 * than noise, 0: none. */
static int split_at(const double *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        double up = stats_quantile(v + i, n - i, 0.5), down = stats_quantile(v, i, 0.5);
        if (v[i] - v[i - 1] >= log1p(CLUSTER_GAP) && up - down >= sigmas * spread(v + i, n - i))
            return i;
    }
    return 0;
}

/* Bandwidth against the smaller of both caps. */
static double share(const struct work *w, const struct edge *e)
{
    return e->Bps / fmin(w->cap[e->a], w->cap[e->b]);
}

static void find_caps(struct work *w)
{
    for (int i = 0; i < w->edges; i++)
        if (w->e[i].Bps > 0) {
            double *a = &w->cap[w->e[i].a], *b = &w->cap[w->e[i].b];
            *a = fmax(*a, w->e[i].Bps);
            *b = fmax(*b, w->e[i].Bps);
        }
}

/* The share below which a pair is far; 0: there is no such gap. */
static double far_share(struct work *w)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].Bps > 0)
            w->v[n++] = log(share(w, &w->e[i]));
    stats_sort(w->v, n);
    int k = split_at(w->v, n);
    return k ? exp((w->v[k - 1] + w->v[k]) / 2) : 0;
}

/* What far pairs get at best: most of them, and the fastest that most units know.  Where leaves are
 * faster than spines few pairs tell, but nearly every unit has one. */
static double far_level(struct work *w)
{
    double *best = mem_calloc((size_t)w->units + 1, sizeof(*best));
    int far = 0, know = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == FAR) {
            const struct edge *e = &w->e[i];
            w->v[far++] = e->Bps;
            best[e->a] = fmax(best[e->a], e->Bps);
            best[e->b] = fmax(best[e->b], e->Bps);
        }
    for (int u = 0; u < w->units; u++)
        if (best[u] > 0)
            best[know++] = best[u];
    stats_sort(w->v, far);
    double level = fmax(stats_quantile(w->v, far, 0.95), know ? stats_median(best, know) : 0);
    free(best);
    return level;
}

/* Label pairs by bandwidth; false when bandwidth shows no structure. */
static int label_by_bandwidth(struct work *w)
{
    double limit = far_share(w);

    if (!(limit > 0))
        return 0;
    for (int i = 0; i < w->edges; i++)
        if (w->e[i].Bps > 0 && share(w, &w->e[i]) < limit)
            w->label[i] = FAR;
    double level = far_level(w) * (1 + CLUSTER_GAP / 2);
    for (int i = 0; i < w->edges; i++)
        if (w->label[i] != FAR && w->e[i].Bps > 0 &&
            fmin(w->cap[w->e[i].a], w->cap[w->e[i].b]) > level)
            w->label[i] = NEAR;
    return 1;
}

static void join(struct work *w)
{
    for (int i = 0; i < w->units; i++)
        w->parent[i] = i;
    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == NEAR)
            w->parent[root(w->parent, w->e[i].a)] = root(w->parent, w->e[i].b);
}

/* Far pairs inside groups; `inside` gets the number of labelled pairs there. */
static int count_contradictions(struct work *w, int *inside)
{
    int bad = 0;

    *inside = 0;
    for (int i = 0; i < w->edges; i++)
        if (w->label[i] != UNKNOWN && root(w->parent, w->e[i].a) == root(w->parent, w->e[i].b)) {
            ++*inside;
            bad += w->label[i] == FAR;
        }
    return bad;
}

/* Number groups by their first member; units with no near partner and something unknown stay out.
 */
static void number_groups(struct clusters *c, struct work *w)
{
    int *id = mem_calloc((size_t)w->units, sizeof(*id)),
        *near = mem_calloc((size_t)w->units, sizeof(*near));
    int *unknown = mem_calloc((size_t)w->units, sizeof(*unknown));

    for (int i = 0; i < w->edges; i++) {
        int *mark = w->label[i] == NEAR ? near : w->label[i] == UNKNOWN ? unknown : NULL;
        if (mark)
            mark[w->e[i].a] = mark[w->e[i].b] = 1;
    }
    c->groups = c->unresolved = 0;
    for (int i = 0; i < w->units; i++) {
        int r = root(w->parent, i);
        if (!near[i] && (unknown[i] || !(w->cap[i] > 0))) {
            c->of[i] = -1;
            c->unresolved++;
            continue;
        }
        if (!id[r])
            id[r] = ++c->groups;
        c->of[i] = id[r] - 1;
    }
    free(id);
    free(near);
    free(unknown);
}

/* Half of the units or more must have found company: a lone quick pair makes no racks. */
static int has_company(const struct clusters *c, int units)
{
    int *size = mem_calloc((size_t)c->groups + 1, sizeof(*size)), together = 0;

    for (int i = 0; i < units; i++)
        if (c->of[i] >= 0)
            size[c->of[i]]++;
    for (int i = 0; i < units; i++)
        together += c->of[i] >= 0 && size[c->of[i]] > 1;
    free(size);
    return 2 * together >= units;
}

static double label_median(struct work *w, enum label label, enum clue clue)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == label)
            w->v[n++] = clue == CLUE_LATENCY ? w->e[i].sec : w->e[i].Bps;
    return n ? stats_median(w->v, n) : NAN;
}

/* Groups from labels; c->contradictions tells of a refusal. */
static int groups_of_labels(struct clusters *c, struct work *w, enum clue clue)
{
    int inside;

    join(w);
    int bad = count_contradictions(w, &inside);
    if (bad > contradiction * inside) {
        c->contradictions = bad;
        return 0;
    }
    number_groups(c, w);
    cluster_leave_parts(c, w);
    c->clue = clue;
    c->near = label_median(w, NEAR, clue);
    c->far = label_median(w, FAR, clue);
    if (c->groups < 2 || !has_company(c, w->units))
        return 0;
    cluster_place_rest(c, w);
    c->contradictions = 0;
    return 1;
}

static int by_bandwidth(struct clusters *c, struct work *w)
{
    memset(w->label, 0, (size_t)w->edges * sizeof(*w->label));
    return label_by_bandwidth(w) && groups_of_labels(c, w, CLUE_BANDWIDTH);
}

/* The innermost two levels that make groups. */
static int by_latency(struct clusters *c, struct work *w)
{
    double level[LATENCY_LEVELS];
    int levels = cluster_levels(w, level);

    for (int k = 0; k + 1 < levels; k++)
        if (cluster_label_latency(w, level[k], level[k + 1]) &&
            groups_of_labels(c, w, CLUE_LATENCY))
            return 1;
    return 0;
}

/* Does every group of x lie in one of y?  Who is in none does not count. */
static int nested(const struct clusters *x, const struct clusters *y, int units)
{
    int *in = mem_calloc((size_t)x->groups + 1, sizeof(*in)), good = 1;

    for (int i = 0; i < units; i++) {
        int *at = x->of[i] >= 0 && y->of[i] >= 0 ? &in[x->of[i]] : NULL;
        if (at && *at && *at != y->of[i] + 1)
            good = 0;
        else if (at)
            *at = y->of[i] + 1;
    }
    free(in);
    return good;
}

/* Where both clues show groups the inner ones are taken, the outer ones are for the next layer.
 * Groups that cross each other are not both the wiring: a bad cable changes what a way carries,
 * hardly how long it is, so latency tells. */
static int better_by_latency(const struct clusters *bandwidth, const struct clusters *latency,
                             int units)
{
    return !nested(bandwidth, latency, units) ||
           (nested(latency, bandwidth, units) && latency->groups > bandwidth->groups);
}

static void start(struct clusters *c, int units)
{
    memset(c, 0, sizeof(*c));
    c->of = mem_calloc((size_t)units, sizeof(*c->of));
}

static void find_nothing(struct clusters *c, int units)
{
    memset(c->of, 0, (size_t)units * sizeof(*c->of));
    c->groups = units > 0;
    c->unresolved = 0;
    c->clue = CLUE_NONE;
}

void cluster_units(struct clusters *c, int units, const struct edge *e, int edges)
{
    struct work w = {.units = units, .edges = edges, .e = e};
    struct clusters other;

    start(c, units);
    start(&other, units);
    w.label = mem_calloc((size_t)edges, sizeof(*w.label));
    w.parent = mem_calloc((size_t)units, sizeof(*w.parent));
    w.cap = mem_calloc((size_t)units, sizeof(*w.cap));
    w.v = mem_calloc((size_t)edges, sizeof(*w.v));
    find_caps(&w);
    int bandwidth = by_bandwidth(c, &w), latency = by_latency(&other, &w);
    if (latency && (!bandwidth || better_by_latency(c, &other, units))) {
        struct clusters swap = *c;
        *c = other;
        other = swap;
    } else if (!bandwidth) {
        c->contradictions = c->contradictions ? c->contradictions : other.contradictions;
        find_nothing(c, units);
    }
    cluster_free(&other);
    free(w.label);
    free(w.parent);
    free(w.cap);
    free(w.v);
}

void cluster_free(struct clusters *c)
{
    free(c->of);
    memset(c, 0, sizeof(*c));
}
