/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective curves by (op, shape, crossings of the ring, groups at once): the median over groups
 * that are equal in these.  Groups with a slow part
 * count only where no other group has that shape; then the model takes the slow part out, and
 * matrix_collective() puts it back for the same group. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/fit_state.h"
#include "cost/model.h"

struct item {
    int curve; /* index into matrix.collective */
    bool clean;
    double ratio; /* time with slow parts / without, by the model */
    const struct obs *o;
};

static const struct round *round_of(const struct plan *plan, int id, int group)
{
    for (int i = 0; i < plan->rounds; i++) {
        int k = (id + i) % plan->rounds; /* the id is the index unless rounds were added by hand */
        if (plan->round[k].id == id)
            return group < plan->round[k].groups ? &plan->round[k] : NULL;
    }
    return NULL;
}

static int curve_of(struct matrix *m, enum op op, const struct ways *w)
{
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->op == op && shape_equal(&c->shape, &w->shape) && c->crossings == w->crossings &&
            c->at_once == w->at_once)
            return i;
    }
    MEM_PUSH(m->collective, m->collectives) = (struct collective){.op = op,
                                                                  .shape = w->shape,
                                                                  .crossings = w->crossings,
                                                                  .at_once = w->at_once,
                                                                  .basis = BASIS_MEASURED};
    return m->collectives - 1;
}

static struct item make_item(struct fit *f, const struct obs *o, const struct round *r)
{
    const struct plan_group *g = &r->group[o->dst];
    struct ways slow, healthy;

    ways_of(&slow, f->m, g->members, g->size, o->op, false);
    slow.at_once = r->groups;
    healthy = slow;
    healthy.inner_factor = healthy.outer_factor = 1;
    healthy.alpha_add = 0;
    struct item x = {curve_of(f->m, o->op, &slow), slow.exception < 0, 1, o};
    if (!x.clean)
        x.ratio =
            model_time(f->m, &slow, o->op, o->bytes) / model_time(f->m, &healthy, o->op, o->bytes);
    if (!isfinite(x.ratio) || x.ratio < 1)
        x.ratio = 1;
    return x;
}

static int by_curve(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->curve != y->curve)
        return x->curve < y->curve ? -1 : 1;
    if (x->o->bytes != y->o->bytes)
        return x->o->bytes < y->o->bytes ? -1 : 1;
    return (x->clean < y->clean) - (x->clean > y->clean); /* clean ones first */
}

static void add_point(struct collective *c, const struct item *x, int n)
{
    double *v = mem_calloc(3 * (size_t)n, sizeof(*v));
    struct curve_point p = {.bytes = x[0].o->bytes};

    for (int i = 0; i < n; i++) {
        v[i] = x[i].o->sec / x[i].ratio;
        v[n + i] = x[i].o->lo / x[i].ratio;
        v[2 * n + i] = x[i].o->hi / x[i].ratio;
        p.n += x[i].o->n;
    }
    p.sec = stats_median(v, n);
    p.lo = fmin(p.sec, stats_median(v + n, n));
    p.hi = fmax(p.sec, stats_median(v + 2 * n, n));
    if (!x[0].clean)
        c->basis = BASIS_FITTED;
    curve_add(&c->curve, p);
    free(v);
}

static void fill_curves(struct matrix *m, struct item *x, int n)
{
    if (n)
        qsort(x, (size_t)n, sizeof(*x), by_curve);
    for (int i = 0, j, clean; i < n; i = j) {
        clean = 0;
        for (j = i; j < n && x[j].curve == x[i].curve && x[j].o->bytes == x[i].o->bytes; j++)
            clean += x[j].clean;
        add_point(&m->collective[x[i].curve], x + i, clean ? clean : j - i);
    }
    for (int i = 0; i < m->collectives; i++) {
        struct collective *c = &m->collective[i];
        curve_settle(&c->curve);
        curve_summarise(&c->curve);
        if (c->basis == BASIS_FITTED)
            c->source =
                mem_strdup("measured on a group with a slow part, which the model took out");
    }
}

/* One sentence an op, with the first note. */
static void say_wrong(struct fit *f, const struct obs *obs, int count)
{
    for (int op = 0; op < OP_COUNT; op++) {
        int wrong = 0, all = 0;
        const char *note = NULL;
        for (int i = 0; i < count; i++)
            if ((int)obs[i].op == op) {
                all++;
                wrong += obs[i].wrong > 0;
                note = !note && obs[i].wrong ? obs[i].note : note;
            }
        if (wrong)
            matrix_find(f->m, "wrong_data",
                        "%s: wrong data in %d of %d measurements%s%s; their times do not count",
                        op_name(op), wrong, all, note && *note ? ": " : "", note ? note : "");
    }
}

void fit_collectives(struct fit *f)
{
    struct obs *obs;
    struct item *item = NULL;
    int count = observe(&obs, f->points, false), n = 0, lost = 0;

    for (int i = 0; i < count; i++) {
        const struct round *r = round_of(f->plan, obs[i].src, obs[i].dst);
        if (!r || r->group[obs[i].dst].size < 2)
            lost++;
        else if (obs[i].sec > 0) {
            struct item x = make_item(f, &obs[i], r);
            MEM_PUSH(item, n) = x;
        }
    }
    fill_curves(f->m, item, n);
    say_wrong(f, obs, count);
    if (lost)
        matrix_find(f->m, "plan", "%d points of collectives are of no round in the plan", lost);
    free(item);
    free(obs);
}
