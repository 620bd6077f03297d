/* SPDX-License-Identifier: BSD-3-Clause */
#include "fit/cluster.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "topo/groups.h"

static const double sigmas = 5;           /* a gap below this many robust deviations is noise */
static const double contradiction = 0.05; /* far pairs tolerated inside groups, share */

static int root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Return the number of values below the first gap from the top that is wider than noise; 0: none.  v: logarithms,
 * ascending. */
static int split_at(const double *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        double up = stats_quantile(v + i, n - i, 0.5), down = stats_quantile(v, i, 0.5);
        if (v[i] - v[i - 1] >= log1p(CLUSTER_GAP) &&
            up - down >= sigmas * stats_sigma(v + i, n - i))
            return i;
    }
    return 0;
}

/* Bandwidth of a pair / the smaller of both caps. */
static double share(const struct clustering *w, const struct edge *e)
{
    return e->Bps / fmin(w->cap[e->a], w->cap[e->b]);
}

static void find_caps(struct clustering *w)
{
    for (int i = 0; i < w->edges; i++)
        if (w->e[i].Bps > 0) {
            double *a = &w->cap[w->e[i].a], *b = &w->cap[w->e[i].b];
            *a = fmax(*a, w->e[i].Bps);
            *b = fmax(*b, w->e[i].Bps);
        }
}

/* Share below which a pair is far; 0: there is no such gap. */
static double far_share(struct clustering *w)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->e[i].Bps > 0)
            w->v[n++] = log(share(w, &w->e[i]));
    stats_sort(w->v, n);
    int k = split_at(w->v, n);
    return k ? exp((w->v[k - 1] + w->v[k]) / 2) : 0;
}

/* Upper level of far pairs: the 95 % quantile, or the median over units of the fastest far pair if that is larger.
 * If leaves are faster than spines, few pairs show that level, but nearly every unit has such a pair. */
static double far_level(struct clustering *w)
{
    double *best = mem_calloc((size_t)w->units + 1, sizeof(*best));
    int far = 0, know = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == EDGE_FAR) {
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
static int label_by_bandwidth(struct clustering *w)
{
    double limit = far_share(w);

    if (!(limit > 0))
        return 0;
    for (int i = 0; i < w->edges; i++)
        if (w->e[i].Bps > 0 && share(w, &w->e[i]) < limit)
            w->label[i] = EDGE_FAR;
    double level = far_level(w) * (1 + CLUSTER_GAP / 2);
    for (int i = 0; i < w->edges; i++)
        if (w->label[i] != EDGE_FAR && w->e[i].Bps > 0 &&
            fmin(w->cap[w->e[i].a], w->cap[w->e[i].b]) > level)
            w->label[i] = EDGE_NEAR;
    return 1;
}

/* --- groups of near pairs --- */

static void join(struct clustering *w)
{
    for (int i = 0; i < w->units; i++)
        w->parent[i] = i;
    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == EDGE_NEAR)
            w->parent[root(w->parent, w->e[i].a)] = root(w->parent, w->e[i].b);
}

/* Count far pairs inside groups.  inside: set to the number of labelled pairs inside groups. */
static int count_contradictions(struct clustering *w, int *inside)
{
    int bad = 0;

    *inside = 0;
    for (int i = 0; i < w->edges; i++)
        if (w->label[i] != EDGE_UNKNOWN &&
            root(w->parent, w->e[i].a) == root(w->parent, w->e[i].b)) {
            ++*inside;
            bad += w->label[i] == EDGE_FAR;
        }
    return bad;
}

/* Number groups by their first member.  Units without a near pair but with an unknown pair stay out. */
static void number_groups(struct clusters *c, struct clustering *w)
{
    int *id = mem_calloc((size_t)w->units, sizeof(*id)),
        *near = mem_calloc((size_t)w->units, sizeof(*near));
    int *unknown = mem_calloc((size_t)w->units, sizeof(*unknown));

    for (int i = 0; i < w->edges; i++) {
        int *mark = w->label[i] == EDGE_NEAR ? near : w->label[i] == EDGE_UNKNOWN ? unknown : NULL;
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

/* True if at least half of the units share a group: a single fast pair does not show racks. */
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

static double label_median(struct clustering *w, enum label label, enum clue clue)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == label)
            w->v[n++] = clue == CLUE_LATENCY ? w->e[i].sec : w->e[i].Bps;
    return n ? stats_middle(w->v, n) : NAN;
}

/* --- units without a group after near and far pairs --- */

/* List for each group the groups with a far pair to it. */
static void find_meetings(struct lists *m, const struct clusters *c, const struct clustering *w)
{
    int *key = mem_calloc(2 * (size_t)w->edges + 1, sizeof(*key)),
        *item = mem_calloc(2 * (size_t)w->edges + 1, sizeof(*item)), n = 0;

    for (int i = 0; i < w->edges; i++) {
        int a = c->of[w->e[i].a], b = c->of[w->e[i].b];
        if (w->label[i] != EDGE_FAR || a < 0 || b < 0 || a == b)
            continue;
        item[n] = key[n + 1] = b;
        item[n + 1] = key[n] = a;
        n += 2;
    }
    lists_make(m, key, item, n, c->groups);
    free(key);
    free(item);
}

/* True if a larger group (in a tie, an earlier one) has no far pair with g, and both together are no larger than the
 * largest. */
static bool may_be_part(const struct lists *m, const int *size, int groups, int most, int g,
                        int *seen)
{
    for (int i = m->start[g]; i < m->start[g + 1]; i++)
        seen[m->at[i]] = g + 1;
    for (int h = 0; h < groups; h++) {
        bool larger = size[h] > size[g] || (h < g && size[h] == size[g]);
        if (h != g && larger && size[h] + size[g] <= most && seen[h] != g + 1)
            return true;
    }
    return false;
}

/* Two groups may be a single group if not all pairs were measured: no far pair joins them, and together they are no
 * larger than the largest.  Keep only the larger group (in a tie, the earlier); units of the other become
 * unresolved. */
static void leave_parts(struct clusters *c, const struct clustering *w)
{
    int *size = mem_calloc((size_t)c->groups + 1, sizeof(*size)), most = 0, left = 0;
    int *seen = mem_calloc((size_t)c->groups + 1, sizeof(*seen));
    int *id = mem_calloc((size_t)c->groups + 1, sizeof(*id));
    struct lists m;

    for (int i = 0; i < w->units; i++)
        if (c->of[i] >= 0 && ++size[c->of[i]] > most)
            most = size[c->of[i]];
    find_meetings(&m, c, w);
    for (int g = 0; g < c->groups; g++)
        id[g] = may_be_part(&m, size, c->groups, most, g, seen) ? -1 : left++;
    for (int i = 0; i < w->units; i++)
        if (c->of[i] >= 0) {
            c->of[i] = id[c->of[i]];
            c->unresolved += c->of[i] < 0;
        }
    c->groups = left;
    lists_free(&m);
    free(size);
    free(seen);
    free(id);
}

/* Distance of a pair in logs: latency, or loss of bandwidth under load; NAN: not measured. */
static double distance(const struct edge *e, bool latency)
{
    double x = latency ? e->sec : 1 / e->shared;

    return x > 0 ? log(x) : NAN;
}

/* Distance of unit u to group g: the median latency of their pairs, or the largest loss under load, because a pair
 * that does not share its path never loses.  NAN without pairs. */
static double toward(struct clustering *w, const struct clusters *c, int u, int g, bool latency)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++) {
        const struct edge *e = &w->e[i];
        int other = e->a == u ? e->b : e->b == u ? e->a : -1;
        if (other >= 0 && c->of[other] == g && !isnan(distance(e, latency)))
            w->v[n++] = distance(e, latency);
    }
    double middle = n ? stats_median(w->v, n) : NAN; /* sorts them */
    return n && !latency ? w->v[n - 1] : middle;
}

/* Median of the near pairs, in logs; NAN without. */
static double near_distance(struct clustering *w, bool latency)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == EDGE_NEAR && !isnan(distance(&w->e[i], latency)))
            w->v[n++] = distance(&w->e[i], latency);
    return n ? stats_middle(w->v, n) : NAN;
}

/* Return the group that stands out for unit u and is about as near as `near`; -1: none, or an unmeasured group would
 * make the comparison unfair. */
static int place(struct clustering *w, const struct clusters *c, int u, bool latency, double near)
{
    double best = NAN, second = NAN;
    int at = -1;

    for (int g = 0; g < c->groups; g++) {
        double x = toward(w, c, u, g, latency);
        if (isnan(x))
            return -1;
        if (isnan(best) || x < best) {
            second = best;
            best = x;
            at = g;
        } else if (isnan(second) || x < second) {
            second = x;
        }
    }
    return second - best > log1p(CLUSTER_GAP) && best - near < log1p(CLUSTER_GAP) ? at : -1;
}

/* Place units without a group: in the group that stands out by latency and is as near as near pairs are, or
 * otherwise in the group that stands out by the bandwidth under load, if near pairs keep as much.  The comparison
 * with near pairs is needed because distant groups also differ under load, by other traffic on their trunk. */
static void place_rest(struct clusters *c, struct clustering *w)
{
    int *found = mem_calloc((size_t)w->units, sizeof(*found));
    double near = near_distance(w, true), alone = near_distance(w, false);

    for (int u = 0; u < w->units; u++) {
        found[u] = -1;
        if (c->of[u] >= 0)
            continue;
        found[u] = place(w, c, u, true, near);
        if (found[u] < 0)
            found[u] = place(w, c, u, false, isnan(alone) ? 0 : alone);
    }
    for (int u = 0; u < w->units; u++)
        if (c->of[u] < 0 && found[u] >= 0) {
            c->of[u] = found[u];
            c->unresolved--;
        }
    free(found);
}

/* --- both --- */

/* Make groups from labels.  c->contradictions: set if the labels are rejected. */
static int groups_of_labels(struct clusters *c, struct clustering *w, enum clue clue)
{
    int inside;

    join(w);
    int bad = count_contradictions(w, &inside);
    if (bad > contradiction * inside) {
        c->contradictions = bad;
        return 0;
    }
    number_groups(c, w);
    leave_parts(c, w);
    c->clue = clue;
    c->near = label_median(w, EDGE_NEAR, clue);
    c->far = label_median(w, EDGE_FAR, clue);
    if (c->groups < 2 || !has_company(c, w->units))
        return 0;
    place_rest(c, w);
    c->contradictions = 0;
    return 1;
}

static int by_bandwidth(struct clusters *c, struct clustering *w)
{
    memset(w->label, 0, (size_t)w->edges * sizeof(*w->label));
    return label_by_bandwidth(w) && groups_of_labels(c, w, CLUE_BANDWIDTH);
}

/* Use the innermost two levels that make groups. */
static int by_latency(struct clusters *c, struct clustering *w)
{
    double level[STATS_LEVELS];
    int levels = cluster_levels(w, level);

    for (int k = 0; k + 1 < levels; k++)
        if (cluster_by_latency(w, level[k], level[k + 1]) && groups_of_labels(c, w, CLUE_LATENCY))
            return 1;
    return 0;
}

/* True if latency gives the better groups.  The inner groups win, because the next layer finds the outer groups.  If
 * the groupings cross, only one matches the wiring: latency, because a bad cable changes the bandwidth of a path but
 * hardly its length. */
static int better_by_latency(const struct clusters *bandwidth, const struct clusters *latency,
                             int units)
{
    return !groups_nested(bandwidth->of, bandwidth->groups, latency->of, units) ||
           (groups_nested(latency->of, latency->groups, bandwidth->of, units) &&
            latency->groups > bandwidth->groups);
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
    struct clustering w = {.units = units, .edges = edges, .e = e};
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
