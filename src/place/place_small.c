/* SPDX-License-Identifier: BSD-3-Clause */
/* place_small.c - where there are few ways to deal ranks over hosts, all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"

enum { HOSTS_MAX = 64 };

/* Hosts that no price tells apart. */
struct kinds {
    int *of;   /* of each host of the pool */
    int *left; /* hosts of a kind that are not yet used */
    int count;
};

struct deal {
    struct best *best;
    struct placer *placer;
    const struct pool *pool;
    struct kinds kinds;
    int *order, *used; /* used: of each host of the pool, as the deal stands */
};

static bool alike(const struct pool *p, int a, int b)
{
    const struct topo *t = &p->matrix->topo;
    int n = p->start[a + 1] - p->start[a];

    if (p->slow[a] || p->slow[b] || p->start[b + 1] - p->start[b] != n)
        return false;
    for (int i = 0; i < n; i++) {
        const struct endpoint *x = &t->endpoint[p->endpoint[p->start[a] + i]];
        const struct endpoint *y = &t->endpoint[p->endpoint[p->start[b] + i]];
        for (int l = 0; l < LEVEL_COUNT; l++)
            if (l != LEVEL_HOST && x->place.at[l] != y->place.at[l])
                return false;
        if ((x->nic < 0) != (y->nic < 0))
            return false;
    }
    return true;
}

static void find_kinds(struct kinds *k, const struct pool *p)
{
    int *first = mem_calloc((size_t)p->hosts + 1, sizeof(int));

    *k = (struct kinds){.of = mem_calloc((size_t)p->hosts + 1, sizeof(int)),
                        .left = mem_calloc((size_t)p->hosts + 1, sizeof(int))};
    for (int i = 0; i < p->hosts; i++) {
        int kind = 0;
        while (kind < k->count && !alike(p, first[kind], i))
            kind++;
        if (kind == k->count)
            first[k->count++] = i;
        k->of[i] = kind;
        k->left[kind]++;
    }
    free(first);
}

/* Ways to deal `ranks` over the hosts, `most` at most. */
static double ways(const struct pool *p, struct kinds *k, int ranks, double most)
{
    double sum = 0;

    if (ranks <= 0)
        return 1;
    for (int kind = 0; kind < k->count && sum < most; kind++) {
        int host = 0;
        if (!k->left[kind])
            continue;
        while (k->of[host] != kind)
            host++;
        k->left[kind]--;
        sum += ways(p, k, ranks - (p->start[host + 1] - p->start[host]), most - sum);
        k->left[kind]++;
    }
    return sum;
}

static void deal(struct deal *d, int rank)
{
    const struct pool *p = d->pool;

    if (rank >= d->placer->ranks) {
        best_try(d->best, d->placer, d->order, "all ways to deal nodes were tried", NULL);
        return;
    }
    for (int kind = 0; kind < d->kinds.count; kind++) {
        int host = 0, n = 0;
        while (host < p->hosts && (d->kinds.of[host] != kind || d->used[host]))
            host++;
        if (host == p->hosts)
            continue;
        d->used[host] = 1;
        for (int s = p->start[host]; s < p->start[host + 1] && rank + n < d->placer->ranks; s++)
            d->order[rank + n++] = p->endpoint[s];
        deal(d, rank + n);
        d->used[host] = 0;
    }
}

/* Of hosts that are alike, those with lower ranks come first. */
void place_tidy(struct best *b, struct placer *pl, const struct pool *p)
{
    const struct endpoint *endpoint = p->matrix->topo.endpoint;
    struct kinds k;
    size_t n = (size_t)p->hosts + 1;
    int *stand_in = mem_calloc(n, sizeof(int)), *next = mem_calloc(n, sizeof(int));
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));

    find_kinds(&k, p);
    for (int i = 0; i < p->hosts; i++)
        stand_in[i] = -1;
    for (int r = 0; r < pl->ranks; r++) {
        int host = p->row[endpoint[b->order[r]].place.at[LEVEL_HOST]], *at = &next[k.of[host]];
        if (stand_in[host] < 0) {
            while (k.of[*at] != k.of[host])
                (*at)++;
            stand_in[host] = (*at)++;
        }
        order[r] = p->endpoint[p->start[stand_in[host]]]; /* settled: any seat of it */
    }
    order_settle(order, pl->ranks, p);
    struct verdict_of_order v = placer_order(pl, order);
    if (v.most <= b->verdict.most) {
        b->verdict = v;
        memcpy(b->order, order, (size_t)pl->ranks * sizeof(int));
    }
    free(k.of);
    free(k.left);
    free(stand_in);
    free(next);
    free(order);
}

void place_small(struct best *b, struct placer *pl, const struct pool *p)
{
    struct deal d = {.best = b, .placer = pl, .pool = p};
    double room = (0.5 * pl->budget - pl->spent) / placer_unit(pl);

    if (p->hosts > HOSTS_MAX)
        return;
    find_kinds(&d.kinds, p);
    if (ways(p, &d.kinds, pl->ranks, room + 1) <= room) {
        d.order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
        d.used = mem_calloc((size_t)p->hosts + 1, sizeof(int));
        deal(&d, 0);
    }
    free(d.kinds.of);
    free(d.kinds.left);
    free(d.order);
    free(d.used);
}
