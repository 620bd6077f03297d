/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/job/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

/* Map the endpoints of t to those of the matrix.  Returns NULL (EXIT_DATA) if one is missing.  The
 * caller frees. */
static int *find_endpoints(const struct matrix *m, const char *name, const struct topo *t,
                           struct err *err)
{
    int *to = mem_ints(t->endpoints, -1);

    for (int i = 0; i < t->endpoints; i++) {
        const struct endpoint *e = &t->endpoint[i];
        const char *host = t->host[topo_at(t, i, LEVEL_HOST)].name;
        int there = topo_find_host(&m->topo, host);
        for (int k = 0; k < m->topo.endpoints && there >= 0 && to[i] < 0; k++)
            if (topo_at(&m->topo, k, LEVEL_HOST) == there && m->topo.endpoint[k].local == e->local)
                to[i] = k;
        if (to[i] >= 0)
            continue;
        err_data(err, "%s has no device %d of host %s, on which the job ran", name, e->local, host);
        free(to);
        return NULL;
    }
    return to;
}

/* Result for a group at one message size. */
struct priced_group {
    int group, epochs;
    double sec, least, most, ratio;
    struct cost price;
};

static int by_ratio(const void *a, const void *b)
{
    const struct priced_group *x = a, *y = b;

    return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

/* Collect the points of one round and size by group.  Returns the number of groups. */
static int take_groups(struct priced_group *g, const struct point *const *p, int n)
{
    double sec[PLAN_EPOCHS];
    int groups = 0;

    for (int i = 0, j; i < n; i = j) {
        struct priced_group *at = &g[groups++];
        *at = (struct priced_group){.group = p[i]->group, .least = INFINITY};
        for (j = i; j < n && p[j]->group == p[i]->group; j++) {
            if (at->epochs < PLAN_EPOCHS)
                sec[at->epochs++] = p[j]->sec.median;
            at->least = fmin(at->least, point_sec(p[j]->sec.lo));
            at->most = fmax(at->most, point_sec(p[j]->sec.hi));
        }
        at->sec = stats_median(sec, at->epochs);
    }
    return groups;
}

static void price_groups(struct priced_group *g, int n, const struct matrix *m,
                         const struct round *r, double bytes, const int *to)
{
    for (int i = 0; i < n; i++) {
        const struct plan_group *pg = &r->group[g[i].group];
        int *ids = mem_calloc((size_t)pg->size, sizeof(*ids));
        for (int k = 0; k < pg->size; k++)
            ids[k] = to[pg->members[k]];
        matrix_collective_at(m, r->op, ids, pg->size, r->groups, bytes, false, &g[i].price);
        g[i].ratio = g[i].price.sec > 0 ? g[i].sec / g[i].price.sec : NAN;
        free(ids);
    }
}

static void add_row(struct priced *p, struct priced_group *g, int n, const struct round *r,
                    double bytes)
{
    struct priced_row row = {.op = r->op, .ranks = r->group[0].size, .groups = n, .bytes = bytes};
    double *sec = mem_calloc((size_t)n, sizeof(*sec));

    for (int i = 0; i < n; i++) {
        sec[i] = g[i].sec;
        row.slow += g[i].least > g[i].price.hi;
        row.fast += g[i].most < g[i].price.lo;
    }
    qsort(g, (size_t)n, sizeof(*g), by_ratio);
    const struct priced_group *middle = &g[n / 2], *worst = &g[n - 1];
    row.sec = stats_median(sec, n);
    row.price = middle->price.sec;
    row.lo = middle->price.lo;
    row.hi = middle->price.hi;
    row.ratio = middle->ratio;
    row.worst = worst->group;
    row.worst_sec = worst->sec;
    row.worst_ratio = worst->ratio;
    row.group = &r->group[worst->group];
    snprintf(row.source, sizeof(row.source), "%s", middle->price.source);
    p->slow += row.slow > 0;
    MEM_PUSH(p->row, p->rows) = row;
    free(sec);
}

static int by_size(const void *a, const void *b)
{
    const struct point *x = *(const struct point *const *)a, *y = *(const struct point *const *)b;

    return stats_order((double[]){x->round, (double)x->bytes, x->group, x->epoch},
                       (double[]){y->round, (double)y->bytes, y->group, y->epoch}, 4);
}

static const struct round *round_of(const struct plan *plan, int id)
{
    for (int i = 0; i < plan->rounds; i++)
        if (plan->round[i].id == id)
            return &plan->round[i];
    return NULL;
}

int priced_make(struct priced *p, const struct matrix *m, const char *name, const struct plan *plan,
                const struct point_row *row, int rows, const struct topo *t, struct err *err)
{
    const struct point **sorted = mem_calloc((size_t)rows + 1, sizeof(*sorted));
    struct priced_group *g = mem_calloc((size_t)rows + 1, sizeof(*g));
    int *to = find_endpoints(m, name, t, err);

    *p = (struct priced){.rows = 0};
    for (int i = 0; i < rows; i++)
        sorted[i] = &row[i].point;
    qsort(sorted, (size_t)rows, sizeof(*sorted), by_size);
    for (int i = 0, j; i < rows && to; i = j) {
        const struct round *r = round_of(plan, sorted[i]->round);
        for (j = i; j < rows && sorted[j]->round == sorted[i]->round &&
                    sorted[j]->bytes == sorted[i]->bytes;
             j++)
            ;
        if (!r || op_is_pair(r->op))
            continue;
        int groups = take_groups(g, sorted + i, j - i);
        price_groups(g, groups, m, r, (double)sorted[i]->bytes, to);
        add_row(p, g, groups, r, (double)sorted[i]->bytes);
    }
    int rc = to ? 0 : -1;
    free(to);
    free(g);
    free(sorted);
    return rc;
}
