/* SPDX-License-Identifier: BSD-3-Clause */
/* scotch.c - the machine as a target architecture of Scotch (PT-Scotch, PaStiX; user's guide 7.0,
 * section "Target graph files"), which maps weighted communication graphs onto it.
 *
 * Distances are whole numbers: 10 is the nearest pair, at the requested size. tleaf: a tree of
 * equal groups.  The distance of two leaves is the sum of the values from the level where their
 * paths part down to the leaves (atst shows 11 for "tleaf 2 2 10 4 1").  Therefore each level holds
 * the distance beyond that of the level inside it. deco 0: every pair has its own distance, that of
 * the slower direction.  The decomposition halves the nodes, sorted by location.  Terminals are
 * numbered as in the second file. */
#include "export/export_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "export/pair_cost.h"

enum { SCOTCH_DECO_MAX = 4096 };
static const double nearest = 10; /* value of the smallest distance */

/* --- tleaf --- */

struct rung {
    int size, tier;
    long distance;
};

/* Dimensions with their distances; dimensions of equal distance are merged.  Returns their number,
 * or -1. */
static int climb(struct rung *rung, const struct uniform_tree *n, const struct matrix *m,
                 double bytes, struct err *err)
{
    double first = 0;
    int kept = 0;

    for (int d = 0; d < n->dims; d++) {
        const struct tier *t = &m->tier[n->dim[d].tier];
        struct rung *below = kept ? &rung[kept - 1] : NULL;
        double sec = matrix_tier_time(t, bytes, 1);
        if (isnan(sec))
            return err_data(err, "tier %s was not measured", t->rule.name);
        first = d == 0 ? sec : first;
        long distance = lround(nearest * sec / first);
        if (below && distance < below->distance)
            return err_data(err, "tier %s is nearer than tier %s inside it: no tree has that",
                            t->rule.name, m->tier[below->tier].rule.name);
        if (below && distance == below->distance)
            below->size *= n->dim[d].size;
        else
            rung[kept++] = (struct rung){n->dim[d].size, n->dim[d].tier, distance};
    }
    return kept;
}

/* EXIT_DATA: uneven groups (uniform_tree.c), or an outer tier nearer than an inner one. */
int scotch_tleaf_write(const struct export_run *e, struct err *err)
{
    bool latency = export_quantity(e, QUANTITY_TIME) == QUANTITY_LATENCY;
    struct rung rung[TIER_MAX + 1];
    struct uniform_tree tree;
    int rungs = 0;
    int rc = uniform_tree_make(&tree, e, "tleaf", false, err);

    if (rc == 0)
        rc = rungs = climb(rung, &tree, e->m, latency ? 1 : export_bytes(e), err);
    if (rc >= 0) {
        fprintf(e->out, "tleaf\n%d", rungs);
        for (int r = rungs - 1; r >= 0; r--)
            fprintf(e->out, "\t%d %ld", rung[r].size,
                    rung[r].distance - (r ? rung[r - 1].distance : 0));
        fputc('\n', e->out);
    }
    for (int i = 0; e->second && rc >= 0 && i < tree.nodes.count; i++)
        fprintf(e->second, "%s\n", tree.nodes.name[tree.order[i]]);
    uniform_tree_free(&tree);
    return rc < 0 ? -1 : 0;
}

/* --- deco 0 --- */

struct deco {
    const struct pair_cost *q;
    const struct export_nodes *nodes;
    int *order; /* nodes sorted by location */
    /* number of each node's terminal domain; 1 is the whole, 2k and 2k + 1 are the halves of k */
    long *label;
    long most;
};

static const enum level widest[] = {LEVEL_SPINE, LEVEL_RACK, LEVEL_LEAF, LEVEL_DOMAIN, LEVEL_HOST};
enum { WIDEST = sizeof(widest) / sizeof(*widest) };

static const int *place(const struct deco *d, int i)
{
    return d->q->m->topo.endpoint[d->nodes->id[i]].place.at;
}

/* Size of the gap before order[i]: WIDEST if spines differ, 0 inside a host. */
static int gap(const struct deco *d, int i)
{
    for (int l = 0; l < WIDEST; l++)
        if (place(d, d->order[i - 1])[widest[l]] != place(d, d->order[i])[widest[l]])
            return WIDEST - l;
    return 0;
}

/* Halve order[from..to) at the widest gap of its middle half; of equal gaps at the one nearest to
 * the middle. */
static void halve(struct deco *d, int from, int to, long domain)
{
    int n = to - from, best = from + n / 2;

    if (n == 1) {
        d->label[d->order[from]] = domain;
        d->most = domain > d->most ? domain : d->most;
        return;
    }
    for (int i = from + (n + 3) / 4; i <= to - (n + 3) / 4; i++) {
        int wide = gap(d, i) - gap(d, best);
        if (wide > 0 || (wide == 0 && abs(2 * i - from - to) < abs(2 * best - from - to)))
            best = i;
    }
    halve(d, from, best, 2 * domain);
    halve(d, best, to, 2 * domain + 1);
}

/* Time of the slower direction; NAN and dead are errors. */
static int slower(const struct deco *d, int i, int k, double *sec, struct err *err)
{
    int a = d->nodes->id[i], b = d->nodes->id[k];
    double there = pair_cost_of(d->q, a, b), back = pair_cost_of(d->q, b, a);

    if (pair_cost_known(d->q, there, a, b, err) < 0 || pair_cost_known(d->q, back, b, a, err) < 0)
        return -1;
    *sec = fmax(there, back);
    if (isinf(*sec))
        return err_data(err, "%s and %s do not reach each other: a distance is a whole number",
                        d->nodes->name[i], d->nodes->name[k]);
    return 0;
}

static int shortest(const struct deco *d, double *least, struct err *err)
{
    double sec;

    *least = INFINITY;
    for (int i = 0; i < d->nodes->count; i++)
        for (int k = 0; k < i; k++) {
            if (slower(d, i, k, &sec, err) < 0)
                return -1;
            *least = fmin(*least, sec);
        }
    return 0;
}

static int put_deco(FILE *out, const struct deco *d, struct err *err)
{
    int n = d->nodes->count;
    double least, sec;

    if (shortest(d, &least, err) < 0)
        return -1;
    fprintf(out, "deco\n0\n%d\t%ld\n", n, d->most);
    for (int i = 0; i < n; i++)
        fprintf(out, "%d\t1\t%ld\n", i, d->label[i]);
    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++) {
            if (slower(d, i, k, &sec, err) < 0)
                return -1;
            fprintf(out, "%ld%c", lround(nearest * sec / least), k == i - 1 ? '\n' : '\t');
        }
    return 0;
}

/* EXIT_DATA: a pair that is not known or dead; EXIT_USAGE: too many nodes. */
int scotch_deco_write(const struct export_run *e, struct err *err)
{
    const struct export_limit limit = {"deco", 2, SCOTCH_DECO_MAX, 3, ':'};
    bool latency = export_quantity(e, QUANTITY_TIME) == QUANTITY_LATENCY;
    struct export_nodes nodes;
    struct pair_cost q = {.m = NULL};
    struct deco d = {.q = &q, .nodes = &nodes};
    int rc = export_nodes_choose(&nodes, e, &limit, err);

    if (rc == 0) {
        pair_cost_init(&q, e->m, latency ? QUANTITY_LATENCY : QUANTITY_TIME, e->ask->bytes);
        d.order = export_nodes_order(&nodes, &e->m->topo, widest, WIDEST);
        d.label = mem_calloc((size_t)nodes.count, sizeof(*d.label));
        halve(&d, 0, nodes.count, 1);
        rc = put_deco(e->out, &d, err);
    }
    if (rc == 0)
        export_nodes_put(e, &nodes);
    free(d.order);
    free(d.label);
    pair_cost_free(&q);
    export_nodes_free(&nodes);
    return rc;
}
