/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

static int by_chance(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;

    if (x->p != y->p)
        return x->p < y->p ? -1 : 1;
    if (x->rung != y->rung)
        return x->rung < y->rung ? -1 : 1;
    return (x->a > y->a) - (x->a < y->a);
}

void claims_sort(struct claims *c)
{
    if (c->count)
        qsort(c->at, (size_t)c->count, sizeof(*c->at), by_chance);
}

/* Rates, their spread and spells of them are one family. */
static bool is_family(const struct claim *x, const struct claim *group)
{
    return x->channel->kind == group->channel->kind && x->channel->tiers == group->channel->tiers;
}

static bool is_within(const struct claim *x, const struct claim *group, const struct places *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->of[x->rung][i] == x->a && p->of[group->rung][i] == group->a)
            return true;
    return false;
}

/* The effect of a group that is slow at all times was taken off before narrower parts were judged. */
static bool is_left_of(const struct claim *x, const struct claim *group)
{
    return x->channel == group->channel && !x->now_and_then && !group->now_and_then &&
           x->channel->kind == LOOK_RATE && !x->channel->tail;
}

/* Small messages of a late part take longer because of its latency. */
static bool is_late(const struct claim *x, const struct claim *late)
{
    return x->channel->kind == LOOK_SMALL && late->channel->kind == LOOK_LATENCY &&
           late->channel->tiers == x->channel->tiers && !rung_is_two(late->rung) &&
           late->rung <= x->rung && x->e > late->e / noise_constants.children;
}

static bool is_explained(const struct claim *x, const struct claims *c, const struct places *p)
{
    for (int i = 0; i < c->count && !x->dead && !rung_is_two(x->rung); i++) {
        const struct claim *g = &c->at[i];

        if (!g->dead && is_late(x, g) && is_within(x, g, p))
            return true;
        if (!g->dead && rung_is_group(g->rung) && g->rung < x->rung && is_family(x, g) &&
            !is_left_of(x, g) && is_within(x, g, p))
            return true;
    }
    return false;
}

void claims_below(struct claims *c, const struct places *p)
{
    int kept = 0;
    bool *drop = mem_calloc((size_t)c->count + 1, sizeof(*drop));

    for (int i = 0; i < c->count; i++)
        drop[i] = is_explained(&c->at[i], c, p);
    for (int i = 0; i < c->count; i++)
        if (!drop[i])
            c->at[kept++] = c->at[i];
    c->count = kept;
    free(drop);
}
