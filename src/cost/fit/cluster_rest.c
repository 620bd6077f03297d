/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_rest.c - units that near and far pairs leave over. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/cluster_state.h"

/* Far pairs by group: those of group g are met[start[g]] .. met[start[g + 1] - 1], groups. */
struct meetings {
    int *start, *met;
};

static bool between(const struct clusters *c, const struct work *w, int i, int *a, int *b)
{
    *a = c->of[w->e[i].a];
    *b = c->of[w->e[i].b];
    return w->label[i] == FAR && *a >= 0 && *b >= 0 && *a != *b;
}

static void find_meetings(struct meetings *m, const struct clusters *c, const struct work *w)
{
    int a, b;

    m->start = mem_calloc((size_t)c->groups + 2, sizeof(*m->start));
    m->met = mem_calloc(2 * (size_t)w->edges + 1, sizeof(*m->met));
    for (int i = 0; i < w->edges; i++)
        if (between(c, w, i, &a, &b)) {
            m->start[a + 2]++;
            m->start[b + 2]++;
        }
    for (int g = 0; g < c->groups; g++)
        m->start[g + 2] += m->start[g + 1];
    for (int i = 0; i < w->edges; i++)
        if (between(c, w, i, &a, &b)) {
            m->met[m->start[a + 1]++] = b;
            m->met[m->start[b + 1]++] = a;
        }
}

/* Is there a larger group (of equal ones an earlier one) that g has no far pair with, though one of
 * the usual size would hold both? */
static bool may_be_part(const struct meetings *m, const int *size, int groups, int most, int g,
                        int *seen)
{
    for (int i = m->start[g]; i < m->start[g + 1]; i++)
        seen[m->met[i]] = g + 1;
    for (int h = 0; h < groups; h++) {
        bool larger = size[h] > size[g] || (h < g && size[h] == size[g]);
        if (h != g && larger && size[h] + size[g] <= most && seen[h] != g + 1)
            return true;
    }
    return false;
}

void cluster_leave_parts(struct clusters *c, const struct work *w)
{
    int *size = mem_calloc((size_t)c->groups + 1, sizeof(*size)), most = 0, left = 0;
    int *seen = mem_calloc((size_t)c->groups + 1, sizeof(*seen));
    int *id = mem_calloc((size_t)c->groups + 1, sizeof(*id));
    struct meetings m;

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
    free(m.start);
    free(m.met);
    free(size);
    free(seen);
    free(id);
}

/* How far a pair is, in logs: by latency, or by what parallel traffic takes; NAN: not measured. */
static double distance(const struct edge *e, bool latency)
{
    double x = latency ? e->sec : 1 / e->shared;

    return x > 0 ? log(x) : NAN;
}

/* Median of unit u's pairs with group g; NAN without pairs. */
static double toward(struct work *w, const struct clusters *c, int u, int g, bool latency)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++) {
        const struct edge *e = &w->e[i];
        int other = e->a == u ? e->b : e->b == u ? e->a : -1;
        if (other >= 0 && c->of[other] == g && !isnan(distance(e, latency)))
            w->v[n++] = distance(e, latency);
    }
    return n ? stats_median(w->v, n) : NAN;
}

/* Median latency of the near pairs, in logs; NAN without. */
static double near_latency(struct work *w)
{
    int n = 0;

    for (int i = 0; i < w->edges; i++)
        if (w->label[i] == NEAR && w->e[i].sec > 0)
            w->v[n++] = distance(&w->e[i], true);
    return n ? stats_median(w->v, n) : NAN;
}

/* The group that stands out for unit u and is about as near as `near`; -1: none, or one that u
 * never met, so that a comparison would be unfair. */
static int place(struct work *w, const struct clusters *c, int u, bool latency, double near)
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

void cluster_place_rest(struct clusters *c, struct work *w)
{
    int *found = mem_calloc((size_t)w->units, sizeof(*found));
    double near =
        near_latency(w); /* what traffic takes differs from group to group: no bar there */

    for (int u = 0; u < w->units; u++) {
        found[u] = -1;
        if (c->of[u] >= 0)
            continue;
        found[u] = place(w, c, u, true, near);
        if (found[u] < 0)
            found[u] = place(w, c, u, false, INFINITY);
    }
    for (int u = 0; u < w->units; u++)
        if (c->of[u] < 0 && found[u] >= 0) {
            c->of[u] = found[u];
            c->unresolved--;
        }
    free(found);
}
