/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/pair_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const quantity_name[QUANTITY_COUNT] = {"bandwidth", "latency", "time"};
const char *const quantity_unit[QUANTITY_COUNT] = {"bytes/s", "s", "s"};

enum quantity quantity_find(const char *name, enum quantity otherwise)
{
    for (int i = 0; name && i < QUANTITY_COUNT; i++)
        if (!strcmp(name, quantity_name[i]))
            return (enum quantity)i;
    return otherwise;
}

void pair_cost_init(struct pair_cost *q, const struct matrix *m, enum quantity quantity,
                    double bytes)
{
    *q = (struct pair_cost){.m = m, .quantity = quantity};
    q->bytes = quantity == QUANTITY_LATENCY ? 1 : bytes > 0 ? bytes : PAIR_COST_BYTES;
    q->odd = mem_calloc((size_t)m->topo.endpoints + 1, sizeof(*q->odd));
    for (int t = 0; t < m->tiers; t++)
        q->sec[t] = matrix_tier_time(&m->tier[t], q->bytes, 1);
    for (int i = 0; i < m->exceptions; i++)
        for (int id = 0; id < m->topo.endpoints; id++)
            q->odd[id] |= matrix_touches(m, &m->exception[i], id);
}

void pair_cost_free(struct pair_cost *q)
{
    free(q->odd);
    q->odd = NULL;
}

static double seconds(const struct pair_cost *q, int src, int dst)
{
    const struct topo *t = &q->m->topo;
    struct cost c;

    if (src == dst)
        return 0;
    if (!q->odd[src] && !q->odd[dst])
        return q
            ->sec[topo_tier(t->tier, t->tiers, &t->endpoint[src].place, &t->endpoint[dst].place)];
    matrix_pair(q->m, src, dst, q->bytes, &c);
    return c.sec;
}

double pair_cost_of(const struct pair_cost *q, int src, int dst)
{
    double sec = seconds(q, src, dst);

    if (q->quantity != QUANTITY_BANDWIDTH)
        return sec;
    return src == dst ? NAN : q->bytes / sec;
}

int pair_cost_known(const struct pair_cost *q, double value, int src, int dst, struct err *err)
{
    const struct topo *t = &q->m->topo;
    const struct endpoint *a = &t->endpoint[src], *b = &t->endpoint[dst];

    if (!isnan(value))
        return 0;
    int tier = topo_tier(t->tier, t->tiers, &a->place, &b->place);
    return err_data(err, "%s from %s:%d to %s:%d is not known: tier %s was not measured",
                    quantity_name[q->quantity], t->host[a->place.at[LEVEL_HOST]].name, a->local,
                    t->host[b->place.at[LEVEL_HOST]].name, b->local, t->tier[tier].name);
}

int pair_cost_line(struct pair_line *l, const struct matrix *m, int tier, double bytes,
                   struct err *err)
{
    const double small = 8, large = bytes > small ? bytes : PAIR_COST_BYTES;
    double t = matrix_tier_time(&m->tier[tier], small, 1);

    l->Bps = (large - small) / (matrix_tier_time(&m->tier[tier], large, 1) - t);
    l->alpha = fmax(0, t - small / l->Bps);
    if (!(l->alpha >= 0) || !(l->Bps > 0) || isinf(l->Bps))
        return err_data(err, "tier %s has no latency or no bandwidth: was it measured?",
                        m->tier[tier].rule.name);
    return 0;
}
