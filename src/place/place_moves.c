/* SPDX-License-Identifier: BSD-3-Clause */
/* place_moves.c - the best order, improved by moves of whole blocks: two change places, one goes to
 * free seats, one is taken out and put in elsewhere.  Half of the moves start at the slowest group;
 * only what is better is kept. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "place/place_parts.h"

enum { SIZES = 16, PATIENCE = 4000 };

struct walk {
    struct best *best;
    struct placer *placer;
    const struct pool *pool;
    struct rng rng;
    int *seat, *tried; /* all free seats; the first `ranks` are taken, in the order of `rank` */
    int *rank;         /* of each taken seat */
    int *position;     /* of each rank among the seats */
    int *order;
    int size[SIZES], sizes; /* of blocks, ascending */
    int *guide, guides;     /* ranks of the slowest group */
    long moves;
};

/* Free seats after those that are taken, host by host. */
static void line_up(struct walk *w)
{
    const struct pool *p = w->pool;
    int ranks = w->placer->ranks, endpoints = p->matrix->topo.endpoints, n = ranks;
    bool *taken = mem_calloc((size_t)endpoints + 1, sizeof(bool));

    for (int s = 0; s < ranks; s++) {
        w->seat[s] = w->best->order[w->rank[s]];
        w->position[w->rank[s]] = s;
        taken[w->seat[s]] = true;
    }
    for (int i = 0; i < p->seats; i++)
        if (!taken[p->endpoint[i]])
            w->seat[n++] = p->endpoint[i];
    free(taken);
}

/* Block sizes: a seat, whole hosts, and products of the digits in the order of the best plan. */
static void sizes_of(struct walk *w, const struct mesh *m, const int *turn)
{
    int size = 1, per = w->pool->per_host;

    w->size[w->sizes++] = 1;
    if (per > 1)
        w->size[w->sizes++] = per;
    for (int i = 0; i < m->digits && w->sizes < SIZES; i++) {
        size *= m->radix[turn[i]];
        if (size > 1 && size != per && 2 * size <= w->pool->seats)
            w->size[w->sizes++] = size;
    }
    /* Traffic has no digits: whatever divides the ranks into whole hosts may be a group. */
    for (size = 2 * per; w->placer->ask->demand && 2 * size <= w->pool->seats; size += per)
        if (w->placer->ranks % size == 0 && w->sizes < SIZES)
            w->size[w->sizes++] = size;
}

static int aligned(struct walk *w, int at, int size)
{
    int step = size < w->pool->per_host ? 1 : w->pool->per_host;

    if (w->placer->ask->demand && size > step && rng_below(&w->rng, 2))
        step = size; /* groups as they are numbered */

    at -= at % step;
    return at + size <= w->pool->seats ? at : -1;
}

/* A seat of the same box as some other rank of the slowest group. */
static int near_guide(struct walk *w)
{
    const struct topo *t = &w->pool->matrix->topo;
    const struct place *to =
        &t->endpoint[w->seat[w->position[w->guide[rng_below(&w->rng, (unsigned)w->guides)]]]].place;
    enum level level = to->at[LEVEL_DOMAIN] >= 0 && rng_below(&w->rng, 2) ? LEVEL_DOMAIN
                       : to->at[LEVEL_RACK] >= 0                          ? LEVEL_RACK
                                                                          : LEVEL_LEAF;
    int from = (int)rng_below(&w->rng, (unsigned)w->pool->seats);

    for (int i = 0; i < w->pool->seats; i++) {
        int s = (from + i) % w->pool->seats;
        if (t->endpoint[w->seat[s]].place.at[level] == to->at[level])
            return s;
    }
    return from;
}

static void swap_blocks(int *seat, int a, int b, int size)
{
    for (int i = 0; i < size; i++) {
        int keep = seat[a + i];
        seat[a + i] = seat[b + i];
        seat[b + i] = keep;
    }
}

/* The block at a, put in before what is at b. */
static void put_in(int *seat, int a, int b, int size)
{
    int *block = mem_calloc((size_t)size, sizeof(int));

    memcpy(block, seat + a, (size_t)size * sizeof(int));
    if (a < b) {
        memmove(seat + a, seat + a + size, (size_t)(b - a) * sizeof(int));
        memcpy(seat + b, block, (size_t)size * sizeof(int));
    } else {
        memmove(seat + b + size, seat + b, (size_t)(a - b) * sizeof(int));
        memcpy(seat + b, block, (size_t)size * sizeof(int));
    }
    free(block);
}

/* One move on w->tried; false: it would change nothing. */
static bool move(struct walk *w)
{
    unsigned seats = (unsigned)w->pool->seats;
    int size = w->size[rng_below(&w->rng, (unsigned)w->sizes)];
    bool guided = w->guides && rng_below(&w->rng, 2);
    int a = guided ? w->position[w->guide[rng_below(&w->rng, (unsigned)w->guides)]]
                   : (int)rng_below(&w->rng, (unsigned)w->placer->ranks);
    int b = guided && rng_below(&w->rng, 2) ? near_guide(w) : (int)rng_below(&w->rng, seats);

    a = aligned(w, a, size);
    b = aligned(w, b, size);
    if (a < 0 || b < 0 || abs(a - b) < size)
        return false;
    memcpy(w->tried, w->seat, seats * sizeof(int));
    if (rng_below(&w->rng, 4))
        swap_blocks(w->tried, a, b, size);
    else
        put_in(w->tried, a, b, size);
    return true;
}

static void apply(struct walk *w)
{
    for (int s = 0; s < w->placer->ranks; s++)
        w->order[w->rank[s]] = w->tried[s];
}

static void look(struct walk *w)
{
    line_up(w);
    w->guides = placer_slowest(w->placer, w->best->order, &w->rng, w->guide);
}

static void step(struct walk *w, int *idle)
{
    (*idle)++;
    if (!move(w))
        return;
    apply(w);
    if (best_try(w->best, w->placer, w->order, NULL, NULL) != TRIED_BEST)
        return;
    w->moves++;
    *idle = 0;
    look(w);
}

void place_moves(struct best *b, struct placer *pl, const struct pool *p, unsigned seed)
{
    struct walk w = {.best = b, .placer = pl, .pool = p};
    size_t n = (size_t)p->seats + 1;
    struct mesh m;
    char how[256];
    int idle = 0;

    rng_seed(&w.rng, seed + 1);
    mesh_of(&m, pl);
    w.seat = mem_calloc(n, sizeof(int));
    w.tried = mem_calloc(n, sizeof(int));
    w.rank = mem_calloc(n, sizeof(int));
    w.position = mem_calloc(n, sizeof(int));
    w.order = mem_calloc(n, sizeof(int));
    w.guide = mem_calloc(n, sizeof(int));
    for (int s = 0; s < pl->ranks; s++)
        w.rank[s] = mesh_rank(&m, b->turn, s);
    sizes_of(&w, &m, b->turn);
    look(&w);
    while (placer_may(pl, 1) && idle < PATIENCE && b->verdict.most > pl->least * (1 + 1e-9)) {
        step(&w, &idle);
        if (idle % 16 == 15) /* another of the slow groups, perhaps */
            w.guides = placer_slowest(pl, b->order, &w.rng, w.guide);
    }
    snprintf(how, sizeof(how), "%.220s; %ld move%s", b->how, w.moves, w.moves == 1 ? "" : "s");
    if (w.moves)
        snprintf(b->how, sizeof(b->how), "%s", how);
    free(w.seat);
    free(w.tried);
    free(w.rank);
    free(w.position);
    free(w.order);
    free(w.guide);
}
