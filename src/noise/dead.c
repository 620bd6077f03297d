/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gives no answer: to most partners an endpoint, all endpoints of a host the host, else the pair. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "noise/noise_impl.h"

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
