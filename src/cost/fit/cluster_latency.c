/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_latency.c - near and far by latency: its levels first, then what the pairs of others say.
 *
 * Levels are segments of the sorted logarithms, cut where the sum of squares is least (the optimal
 * one-dimensional k-means by dynamic programming, Wang & Song 2011, over a histogram); so many of
 * them count as leave each two neighbours further apart than noise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/cluster_state.h"

enum { BINS = 256, FEW = 6 };

static const double sigmas = 4.5;     /* between levels; halves of one normal lie 2.3 apart */
static const double step = 0.03;      /* levels nearer than this are one, whatever the noise */
static const double slow_tail = 0.98; /* stragglers beyond this quantile make no level */
static const double contradicted_most = 0.2; /* of the near pairs */
static const double unclear = 0.1;           /* of the way between two levels, about its middle */

struct histogram {
    double n[BINS + 1], sum[BINS + 1], square[BINS + 1]; /* of all bins before */
};

static void count(struct histogram *h, const double *v, int n)
{
    double lo = v[0], hi = stats_quantile(v, n, slow_tail);
    double width = hi > lo ? (hi - lo) / BINS : 1;

    memset(h, 0, sizeof(*h));
    for (int i = 0; i < n; i++) {
        double x = fmin(v[i], hi);
        int b = (int)fmin((x - lo) / width, BINS - 1);
        h->n[b + 1]++;
        h->sum[b + 1] += x;
        h->square[b + 1] += x * x;
    }
    for (int b = 0; b < BINS; b++) {
        h->n[b + 1] += h->n[b];
        h->sum[b + 1] += h->sum[b];
        h->square[b + 1] += h->square[b];
    }
}

static double within(const struct histogram *h, int from, int to)
{
    double n = h->n[to] - h->n[from], sum = h->sum[to] - h->sum[from];

    return n > 0 ? fmax(0, h->square[to] - h->square[from] - sum * sum / n) : 0;
}

/* cut[k][j]: where the last of k + 1 segments of the first j bins begins. */
static void cut_best(const struct histogram *h, int cut[LATENCY_LEVELS][BINS + 1])
{
    double cost[LATENCY_LEVELS][BINS + 1];

    for (int j = 0; j <= BINS; j++) {
        cost[0][j] = within(h, 0, j);
        cut[0][j] = 0;
    }
    for (int k = 1; k < LATENCY_LEVELS; k++)
        for (int j = 0; j <= BINS; j++) {
            cost[k][j] = INFINITY;
            for (int i = 0; i <= j; i++) {
                double c = cost[k - 1][i] + within(h, i, j);
                if (c < cost[k][j]) {
                    cost[k][j] = c;
                    cut[k][j] = i;
                }
            }
        }
}

static double spread(const double *v, int n)
{
    return 1.4826 * stats_mad(v, n, stats_quantile(v, n, 0.5));
}

/* Are all neighbours of these levels, v[at[k]] .. v[at[k + 1] - 1], clearly apart? */
static int apart(const double *v, const int *at, int levels, double noise)
{
    for (int k = 0; k < levels; k++)
        if (at[k + 1] == at[k])
            return 0;
    for (int k = 0; k + 1 < levels; k++) {
        const double *x = v + at[k], *y = v + at[k + 1];
        int nx = at[k + 1] - at[k], ny = at[k + 2] - at[k + 1];
        double sigma = fmax(noise, fmax(spread(x, nx), spread(y, ny)));
        if (stats_quantile(y, ny, 0.5) - stats_quantile(x, nx, 0.5) < sigmas * sigma)
            return 0;
    }
    return 1;
}

int latency_levels(const double *v, int n, double noise, double *level)
{
    int cut[LATENCY_LEVELS][BINS + 1], at[LATENCY_LEVELS + 1];
    struct histogram h;

    noise = fmax(noise, (n < FEW ? log1p(CLUSTER_GAP) : step) / sigmas);
    if (n < 2 || v[n - 1] - v[0] < sigmas * noise)
        return 0;
    count(&h, v, n);
    cut_best(&h, cut);
    for (int levels = LATENCY_LEVELS; levels > 1; levels--) {
        at[levels] = n;
        for (int k = levels - 1, j = BINS; k >= 0; k--) {
            j = cut[k][j];
            at[k] = (int)h.n[j];
        }
        if (!apart(v, at, levels, noise))
            continue;
        for (int k = 0; k < levels; k++)
            level[k] = stats_quantile(v + at[k], at[k + 1] - at[k], 0.5);
        return levels;
    }
    return 0;
}

/* --- labels --- */

/* Median over edges that know theirs; what is not known is not 0. */
static double known_noise(struct work *w)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].sec > 0 && w->e[i].noise > 0)
            w->v[n++] = w->e[i].noise;
    return n ? stats_median(w->v, n) : log1p(CLUSTER_GAP) / sigmas;
}

int cluster_levels(struct work *w, double *level)
{
    double noise = known_noise(w);
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].sec > 0)
            w->v[n++] = log(w->e[i].sec);
    stats_sort(w->v, n);
    return latency_levels(w->v, n, noise, level);
}

/* Neighbours of each unit: at[start[u]] .. at[start[u + 1] - 1], edges. */
struct around {
    int *start, *at;
};

static void look_around(struct around *a, const struct work *w)
{
    a->start = mem_calloc((size_t)w->units + 2, sizeof(*a->start));
    a->at = mem_calloc(2 * (size_t)w->edges + 1, sizeof(*a->at));
    for (int i = 0; i < w->edges; i++) {
        a->start[w->e[i].a + 1]++;
        a->start[w->e[i].b + 1]++;
    }
    for (int u = 0; u < w->units; u++)
        a->start[u + 1] += a->start[u];
    for (int i = 0; i < w->edges; i++) {
        a->at[a->start[w->e[i].a]++] = i;
        a->at[a->start[w->e[i].b]++] = i;
    }
    for (int u = w->units; u > 0; u--)
        a->start[u] = a->start[u - 1];
    a->start[0] = 0;
}

/* Of those that two near units both met: are most near to one of them and far from the other? */
static int contradicted(const struct work *w, const struct around *a, const enum label *to_first,
                        int second)
{
    int agree = 0, split = 0;

    for (int k = a->start[second]; k < a->start[second + 1]; k++) {
        const struct edge *e = &w->e[a->at[k]];
        enum label there = to_first[e->a == second ? e->b : e->a], here = w->label[a->at[k]];
        agree += here == NEAR && there == NEAR;
        split += (here == NEAR && there == FAR) || (here == FAR && there == NEAR);
    }
    return split > 2 * agree + 1;
}

/* How many were dropped, share of the near ones. */
static double drop_contradicted(struct work *w)
{
    int near = 0, dropped = 0;

    struct around a;
    enum label *row = mem_calloc((size_t)w->units, sizeof(*row));
    char *drop = mem_calloc((size_t)w->edges + 1, 1);

    look_around(&a, w);
    for (int u = 0; u < w->units; u++) {
        memset(row, 0, (size_t)w->units * sizeof(*row));
        for (int k = a.start[u]; k < a.start[u + 1]; k++) {
            const struct edge *e = &w->e[a.at[k]];
            row[e->a == u ? e->b : e->a] = w->label[a.at[k]];
        }
        for (int k = a.start[u]; k < a.start[u + 1]; k++)
            if (w->label[a.at[k]] == NEAR && w->e[a.at[k]].a == u)
                drop[a.at[k]] = (char)contradicted(w, &a, row, w->e[a.at[k]].b);
    }
    for (int i = 0; i < w->edges; i++) {
        near += w->label[i] == NEAR;
        dropped += drop[i];
        if (drop[i])
            w->label[i] = UNKNOWN;
    }
    free(a.start);
    free(a.at);
    free(row);
    free(drop);
    return near ? (double)dropped / near : 0;
}

/* Who is near to nobody may be slow itself: far pairs of it prove nothing. */
static void drop_lonely(struct work *w)
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

int cluster_label_latency(struct work *w, double near, double far)
{
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
