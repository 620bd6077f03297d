/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/overlap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/groups.h"

/* Group sets that were found already; each span is folded once. */
struct cache {
    struct groups *set;
    int sets;
    uint64_t *mark;
};

static const struct groups *groups_of(struct cache *c, const struct question *q, struct span span)
{
    for (int i = 0; i < c->sets; i++)
        if (c->set[i].span.size == span.size && c->set[i].span.stride == span.stride)
            return &c->set[i];
    struct groups g;
    groups_find(&g, q->matrix, span, q->layout->ranks, q->order, c->mark);
    MEM_PUSH(c->set, c->sets) = g;
    return &c->set[c->sets - 1];
}

/* "group 3 of 8: ranks 24, 25 .. 31 on r00n06 .. r00n07" */
static void name_group(struct term *t, const struct question *q, const struct groups *g)
{
    const struct topo *topo = &q->matrix->topo;
    int last = g->span.size - 1, first = span_rank(&g->span, t->index, 0);
    int *ids = mem_calloc((size_t)g->span.size, sizeof(*ids));
    int step = g->span.stride;
    char list[48], where[96];

    groups_ids(g, q->order, t->index, ids);
    int from = topo->endpoint[ids[0]].place.at[LEVEL_HOST];
    int to = topo->endpoint[ids[last]].place.at[LEVEL_HOST];
    if (last == 1)
        snprintf(list, sizeof(list), "%d, %d", first, first + step);
    else
        snprintf(list, sizeof(list), "%d, %d .. %d", first, first + step, first + last * step);
    if (from == to)
        snprintf(where, sizeof(where), "%s", topo->host[from].name);
    else
        snprintf(where, sizeof(where), "%.40s .. %.40s", topo->host[from].name,
                 topo->host[to].name);
    snprintf(t->slowest, sizeof(t->slowest), "group %d of %d: ranks %s on %s", t->index + 1,
             g->total, list, where);
    free(ids);
}

/* Deviation of one message's time: the curve's interval, or what its basis is worth, whichever is
 * more. */
static double message_error(const struct question *q, const struct cost *c)
{
    static const char *const name[BASIS_COUNT] = {[BASIS_PRESET] = "error.preset",
                                                  [BASIS_MODELLED] = "error.modelled",
                                                  [BASIS_ASSUMED] = "error.assumed"};
    double least = name[c->basis] ? constants_get(q->constants, name[c->basis])->value : 0;

    return fmax(least, (c->hi - c->lo) / 2 / 1.96 / c->sec);
}

static int price(struct term *t, struct cache *cache, const struct question *q,
                 const struct message *m, struct err *err)
{
    const struct groups *g = groups_of(cache, q, m->span);
    struct cost cost = {.exception = -1};
    char axes[AXES_TEXT];
    int *ids;

    *t = (struct term){.kind = TERM_MESSAGE,
                       .label = m->label,
                       .axes = m->axes,
                       .exposure = m->exposure,
                       .op = m->op,
                       .bytes = m->bytes,
                       .count = m->count,
                       .phase = m->phase,
                       .rounds = m->rounds,
                       .formula = m->formula};
    groups_slowest(g, q->matrix, q->order, m->op, m->bytes, &cost, &t->index);
    if (!isfinite(cost.sec))
        return err_set(err, "%s over %s: %s", m->label, axes_text(axes, m->axes),
                       isinf(cost.sec) ? "a part that it needs is dead" : cost.source);
    ids = mem_calloc((size_t)g->span.size, sizeof(*ids));
    groups_ids(g, q->order, t->index, ids);
    shape_of(&t->shape, &q->matrix->topo, ids, g->span.size);
    free(ids);
    t->one = cost.sec;
    t->one_error = message_error(q, &cost);
    t->basis = cost.basis;
    t->exception = cost.exception;
    t->groups = g->total;
    t->distinct = g->kinds;
    snprintf(t->source, sizeof(t->source), "%s", cost.source);
    name_group(t, q, g);
    return 0;
}

/* Inside layers and between stages: a share stays. */
static void expose_share(struct term *t, const struct question *q)
{
    const struct constant *c = constants_get(q->constants, exposure_name[t->exposure]);
    double raw = t->one * t->count;

    t->sec = raw * c->value;
    t->hidden = raw - t->sec;
    t->error = t->sec * hypot(t->one_error, c->error);
}

struct window {
    double compute;   /* of the rank in this pass */
    double ov, floor; /* overlap.dp, exposed.dp */
};

static bool is_edge(const struct term *t)
{
    return t->phase == PHASE_FORWARD || t->op != OP_ALL_GATHER;
}

/* Seconds of one pass of one microbatch, when all its messages are seen. */
static double raw_pass(const struct term *t)
{
    return t->one * t->count / t->rounds;
}

/* What is seen in one pass of the messages whose `rounds` is at least `rounds`.  Layers are alike,
 * so the sum over layers of max(exposed c, c - overlap w) is the same over the whole pass. */
static void expose_pass(struct term *t, int n, enum phase phase, double rounds, double passes,
                        const struct window *w)
{
    double comm = 0;

    for (int i = 0; i < n; i++)
        if (t[i].phase == phase && t[i].rounds >= rounds)
            comm += raw_pass(&t[i]);
    if (!(comm > 0) || passes <= 0)
        return;
    double seen = fmax(w->floor * comm, comm - w->ov * w->compute) / comm;
    for (int i = 0; i < n; i++)
        if (t[i].phase == phase && t[i].rounds >= rounds) {
            double edge = is_edge(&t[i]) ? t[i].one * (1 - seen) : 0;
            t[i].sec += passes * (edge + raw_pass(&t[i]) * seen);
        }
}

/* Data-parallel messages: m-1 microbatches have the ones of every round, the last one has all. */
static void expose_passes(struct term *t, int n, const struct question *q,
                          const struct compute_time *time)
{
    const struct constant *ov = constants_get(q->constants, "overlap.dp");
    const struct constant *floor = constants_get(q->constants, "exposed.dp");
    double m = layout_microbatches(q->layout, q->recipe);

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
        double compute = phase == PHASE_FORWARD ? time->forward : time->backward;
        struct window w = {compute, ov->value, floor->value};
        expose_pass(t, n, (enum phase)phase, 1, 1, &w);
        expose_pass(t, n, (enum phase)phase, 2, m - 1, &w);
    }
    for (int i = 0; i < n; i++)
        if (t[i].phase >= PHASE_FORWARD) {
            double raw = t[i].one * t[i].count;
            t[i].sec = fmin(t[i].sec, raw);
            t[i].hidden = raw - t[i].sec;
            /* what is hidden may be seen when the window errs; what is seen errs with the curve */
            t[i].error =
                hypot(t[i].sec * t[i].one_error, t[i].hidden * floor->value * floor->error);
        }
}

int predict_messages(struct prediction *p, const struct question *q,
                     const struct compute_time *time, struct err *err)
{
    struct cache cache = {.mark = groups_mark(q->matrix)};
    struct traffic traffic;
    int rc = 0, first = p->terms;

    traffic_of(&traffic, q->model, q->layout, q->recipe);
    for (int i = 0; rc == 0 && i < traffic.messages; i++) {
        struct term t;
        if (q->shrink > 0)
            traffic.message[i].bytes /= q->shrink;
        rc = price(&t, &cache, q, &traffic.message[i], err);
        if (rc == 0 && t.phase < PHASE_FORWARD)
            expose_share(&t, q);
        if (rc == 0)
            MEM_PUSH(p->term, p->terms) = t;
    }
    if (rc == 0)
        expose_passes(p->term + first, p->terms - first, q, time);
    for (int i = 0; i < cache.sets; i++)
        groups_free(&cache.set[i]);
    free(cache.set);
    free(cache.mark);
    return rc;
}
