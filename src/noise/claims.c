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
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

void claims_sort(struct claims *c)
{
    if (c->count)
        qsort(c->at, (size_t)c->count, sizeof(*c->at), by_chance);
}

/* True for one family: rates, spread of rates, spells. */
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

/* A host that is slow now and then has too few looks of other sizes to tell when. */
static bool is_of_spell(const struct claim *x, const struct claim *host)
{
    return host->rung == RUNG_HOST && host->now_and_then && x->rung == RUNG_NIC &&
           (x->channel->kind == LOOK_BOTH_WAYS || x->channel->kind == LOOK_SMALL ||
            x->channel->kind == LOOK_LARGE) &&
           host->channel->kind == LOOK_RATE && host->channel->tiers == x->channel->tiers;
}

/* A pair of such a host may have been measured while the host was slow. */
static bool is_pair_of_spell(const struct claim *x, const struct claim *host,
                             const struct places *p)
{
    return x->rung == RUNG_PAIR && host->rung == RUNG_HOST && host->now_and_then &&
           is_family(x, host) &&
           (p->of[RUNG_HOST][x->a] == host->a || p->of[RUNG_HOST][x->b] == host->a);
}

/* Two racks between which all is slow are slow in few looks of each of their NICs. */
static bool is_of_racks(const struct claim *x, const struct claim *racks, const struct places *p)
{
    int rack = racks->rung == RUNG_RACK_PAIR && x->rung == RUNG_NIC ? p->of[RUNG_RACK][x->a] : -1;

    return rack >= 0 && (rack == racks->a || rack == racks->b) && x->now_and_then &&
           is_family(x, racks) && x->share < noise_constants.half;
}

static bool is_explained(const struct claim *x, const struct claims *c, const struct places *p)
{
    for (int i = 0; i < c->count && !x->dead; i++) {
        const struct claim *g = &c->at[i];

        if (!g->dead && (is_pair_of_spell(x, g, p) || is_of_racks(x, g, p)))
            return true;
        if (rung_is_two(x->rung))
            continue;
        if (!g->dead && (is_late(x, g) || is_of_spell(x, g)) && is_within(x, g, p))
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

/* --- no answer: to most partners an endpoint, all endpoints of a host the host, else the pair --- */

struct quiet {
    const struct noise_input *in;
    const struct places *places;
    int *dead, *all;
    bool *is;
};

static bool is_silent(const struct look *k)
{
    return isinf(k->y) && k->y < 0;
}

static void count_ends(struct quiet *q)
{
    for (int i = 0; i < q->places->n; i++)
        q->dead[i] = q->all[i] = 0;
    for (int i = 0; i < q->in->looks; i++)
        for (int end = 0; end < 2; end++) {
            const struct look *k = &q->in->look[i];

            if (isnan(k->y) || q->is[end_of(k, !end)])
                continue;
            q->all[end_of(k, end)]++;
            q->dead[end_of(k, end)] += is_silent(k);
        }
}

/* The worst go first, so that one dead endpoint does not kill its few partners. */
static void mark_dead(struct quiet *q)
{
    for (double share = 1; share >= noise_constants.dead_share;
         share -= 1 - noise_constants.dead_share) {
        count_ends(q);
        for (int i = 0; i < q->places->n; i++)
            q->is[i] |= q->dead[i] >= 2 && q->dead[i] >= share * q->all[i];
    }
}

static void claim(struct claims *out, enum rung rung, int a, int b)
{
    MEM_PUSH(out->at, out->count) = (struct claim){
        .rung = rung, .a = a, .b = b, .tier = -1, .dead = true, .e = -INFINITY, .share = 1};
}

static void claim_hosts(struct claims *out, struct quiet *q)
{
    const int hosts = q->places->count[RUNG_HOST], *host = q->places->of[RUNG_HOST];
    int *all = mem_ints(hosts, 0), *dead = mem_ints(hosts, 0);

    for (int i = 0; i < q->places->n; i++)
        if (host[i] >= 0) {
            all[host[i]]++;
            dead[host[i]] += q->is[i];
        }
    for (int h = 0; h < hosts; h++)
        if (all[h] > 1 && dead[h] == all[h])
            claim(out, RUNG_HOST, h, -1);
    for (int i = 0; i < q->places->n; i++)
        if (q->is[i] && !(host[i] >= 0 && all[host[i]] > 1 && dead[host[i]] == all[host[i]]))
            claim(out, RUNG_NIC, i, -1);
    free(all);
    free(dead);
}

static void claim_pair(struct claims *out, const struct look *k)
{
    int a = k->src < k->dst ? k->src : k->dst, b = k->src < k->dst ? k->dst : k->src;

    for (int i = 0; i < out->count; i++)
        if (out->at[i].dead && out->at[i].rung == RUNG_PAIR && out->at[i].a == a &&
            out->at[i].b == b)
            return;
    claim(out, RUNG_PAIR, a, b);
}

void dead_find(struct claims *out, const struct noise_input *in, const struct places *places)
{
    struct quiet q = {in, places, mem_ints(places->n, 0), mem_ints(places->n, 0),
                      mem_calloc((size_t)places->n + 1, sizeof(bool))};
    int silent = 0;

    for (int i = 0; i < in->looks; i++)
        silent += is_silent(&in->look[i]);
    if (silent) {
        mark_dead(&q);
        claim_hosts(out, &q);
    }
    for (int i = 0; silent && i < in->looks; i++)
        if (is_silent(&in->look[i]) && !q.is[in->look[i].src] && !q.is[in->look[i].dst])
            claim_pair(out, &in->look[i]);
    free(q.dead);
    free(q.all);
    free(q.is);
}
