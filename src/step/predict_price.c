/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "step/pricer.h"

/* "group 3 of 8: ranks 24, 25 .. 31 on r00n06 .. r00n07" */
static void name_group(struct term *t, const struct question *q, const struct groups *g)
{
    const struct topo *topo = &q->matrix->topo;
    int last = g->span.size - 1, first = span_rank(&g->span, t->index, 0);
    int *ids = mem_calloc((size_t)g->span.size, sizeof(*ids));
    int step = g->span.stride;
    char list[48], where[96];

    groups_ids(g, q->order, t->index, ids);
    shape_of(&t->shape, topo, ids, g->span.size);
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

static int price(struct term *t, struct pricer *pricer, const struct question *q,
                 const struct message *m, struct err *err)
{
    const struct groups *g = pricer_groups(pricer, m->span);
    struct cost cost = {.exception = -1};
    char axes[AXES_TEXT];

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
    pricer_message_cost(pricer, m, &cost, &t->index);
    if (!isfinite(cost.sec))
        return err_set(err, "%s over %s: %s%s", m->label, axes_text(axes, m->axes),
                       isinf(cost.sec) ? "a part that it needs is dead or gives wrong data"
                                       : "the matrix has no rate for it: ",
                       isinf(cost.sec) ? "" : cost.source);
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

int predict_price(struct term *terms, double *one, const struct question *q, struct traffic *tr,
                  struct err *err)
{
    struct pricer *pricer = q->pricer;
    int rc = 0;

    if (!pricer && pricer_open(&pricer, q->matrix, q->order, q->layout->ranks, err) < 0)
        return -1;
    for (int i = 0; rc == 0 && i < tr->messages; i++) {
        if (q->shrink > 0)
            tr->message[i].bytes /= q->shrink;
        rc = price(&terms[i], pricer, q, &tr->message[i], err);
        one[i] = terms[i].one;
    }
    if (!q->pricer)
        pricer_close(pricer);
    return rc;
}
