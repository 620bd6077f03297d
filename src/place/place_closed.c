/* SPDX-License-Identifier: BSD-3-Clause */
/* place_closed.c - the closed form: orders of the mesh's digits x size of the blocks that stay
 * whole x rows of hosts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"

enum { TURNS_MAX = 720, KEPT = 4, WITHIN_MAX = 24 };

/* One candidate: which digit turns fastest, which row, and the largest block that is kept whole. */
struct plan {
    const int *turn;
    int whole; /* digits in it: the product of the first `whole` radices */
    int part;  /* times so much of the next one, a divisor of its radix; 1: nothing of it */
    struct verdict_of_order verdict;
};

struct hunt {
    struct best *best;
    struct placer *placer;
    const struct pool *pool;
    struct mesh mesh;
    int *seat, *order;
    struct plan kept[KEPT];
    int keeps;
};

/* Sizes that row_fill() takes: the block, then smaller ones that do not cut hosts, then 1. */
static int blocks_of(const struct hunt *h, const struct plan *p, int block[DIGITS + 3])
{
    int size[DIGITS + 2] = {1}, per = h->pool->per_host, n = 0, whole = p->whole;

    for (int i = 0; i < whole; i++)
        size[i + 1] = size[i] * h->mesh.radix[p->turn[i]];
    if (p->part > 1) {
        size[whole + 1] = size[whole] * p->part;
        whole++;
    }
    for (int i = whole; i > 0; i--)
        if (size[i] % per == 0 || per % size[i] == 0)
            block[n++] = size[i];
    if (per > 1 && (n == 0 || (block[n - 1] > per && block[n - 1] % per == 0)))
        block[n++] = per;
    block[n++] = 1;
    return n;
}

static const char *level_word(int level)
{
    return level < 0 ? "the machine" : level_name[level];
}

static void say(char how[256], const struct hunt *h, const struct plan *p, const struct row *r,
                int size)
{
    int n = snprintf(how, 256, "ranks ");

    for (int i = 0; i < h->mesh.digits && n < 200; i++)
        n += snprintf(how + n, (size_t)(256 - n), "%s%d/%d", i ? ", " : "",
                      h->mesh.radix[p->turn[i]], h->mesh.stride[p->turn[i]]);
    if (n < 256)
        snprintf(how + n, (size_t)(256 - n), "; blocks of %d inside a %s", size,
                 level_word(r->level));
}

static void keep(struct hunt *h, struct plan p)
{
    int at = h->keeps < KEPT ? h->keeps++ : KEPT;

    for (; at > 0 && order_better(p.verdict, h->kept[at - 1].verdict); at--)
        if (at < KEPT)
            h->kept[at] = h->kept[at - 1];
    if (at < KEPT)
        h->kept[at] = p;
}

static void try_plan(struct hunt *h, struct plan p, const struct row *r)
{
    int block[DIGITS + 3], blocks = blocks_of(h, &p, block);
    char how[256];

    if (!row_fill(r, h->pool, block, blocks, h->mesh.ranks, false, h->seat))
        return;
    for (int s = 0; s < h->mesh.ranks; s++)
        h->order[mesh_rank(&h->mesh, p.turn, s)] = h->seat[s];
    say(how, h, &p, r, block[0]);
    enum tried tried = best_try(h->best, h->placer, h->order, how, &p.verdict);
    if (tried == TRIED_BEST)
        memcpy(h->best->turn, p.turn, sizeof(h->best->turn));
    if (tried != TRIED_BEFORE)
        keep(h, p);
}

/* The largest divisor of n that is no larger than `most`. */
static int divisor(int n, int most)
{
    int d = most < n ? most : n;

    while (d > 1 && n % d)
        d--;
    return d;
}

/* All sizes of whole blocks that a box holds, the largest first: an axis that does not fit is cut
 * into equal parts. */
static void try_turn(struct hunt *h, const int *turn, const struct row *r, double share)
{
    int room = row_largest(r, h->pool), size = 1, fits = 0;

    for (int i = 0; i < h->mesh.digits && (long)size * h->mesh.radix[turn[i]] <= room; i++) {
        size *= h->mesh.radix[turn[i]];
        fits = i + 1;
    }
    int part = fits < h->mesh.digits ? divisor(h->mesh.radix[turn[fits]], room / size) : 1;
    for (int whole = fits; whole >= 0 && placer_may(h->placer, share); whole--, part = 1) {
        if (part > 1)
            try_plan(h, (struct plan){turn, whole, part, {0, 0}}, r);
        try_plan(h, (struct plan){turn, whole, 1, {0, 0}}, r);
    }
}

static void all_turns(struct hunt *h, int (*turns)[DIGITS], int n, double share)
{
    int level[LEVEL_COUNT], levels = pool_levels(h->pool, level);
    struct row row[LEVEL_COUNT + 1];

    if (levels == 0)
        level[levels++] = -1;
    for (int k = 0; k < levels; k++)
        row_make(&row[k], h->pool, level[k], ROW_NEAR, -1, -1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < levels && placer_may(h->placer, share); k++)
            try_turn(h, turns[i], &row[k], share);
    for (int k = 0; k < levels; k++)
        row_free(&row[k]);
}

/* The plans that did best, on one more row. */
static void kept_on(struct hunt *h, const struct row *r, double share)
{
    struct plan plan[KEPT];
    int n = h->keeps;

    if (row_seats(r, h->pool) < h->mesh.ranks)
        return;
    memcpy(plan, h->kept, sizeof(plan));
    for (int i = 0; i < n && placer_may(h->placer, share); i++)
        try_plan(h, plan[i], r);
}

/* Hosts of one group of an outer level only. */
static void inside_groups(struct hunt *h, int inner, int outer, double share)
{
    int groups = h->pool->matrix->topo.group[outer].count, tried = 0;
    int *seats = pool_group_seats(h->pool, outer, false);

    for (int g = 0; g < groups && tried < WITHIN_MAX; g++) {
        struct row r;
        if (seats[g] < h->mesh.ranks)
            continue;
        row_make(&r, h->pool, inner, ROW_NEAR, outer, g);
        kept_on(h, &r, share);
        row_free(&r);
        tried++;
    }
    free(seats);
}

static void other_rows(struct hunt *h, double share)
{
    int level[LEVEL_COUNT], levels = pool_levels(h->pool, level);

    for (int k = 0; k < levels; k++)
        for (int how = ROW_LARGE; how < ROW_HOWS; how++) {
            struct row r;
            row_make(&r, h->pool, level[k], (enum row_how)how, -1, -1);
            kept_on(h, &r, share);
            row_free(&r);
        }
    for (int k = 0; k < levels; k++)
        for (int outer = k; outer < levels; outer++)
            inside_groups(h, level[k], level[outer], share);
}

void place_closed(struct best *b, struct placer *pl, const struct pool *p)
{
    struct hunt h = {.best = b, .placer = pl, .pool = p};
    int(*turns)[DIGITS], n;

    mesh_of(&h.mesh, pl);
    h.seat = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    h.order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    n = mesh_turns(&h.mesh, &turns, TURNS_MAX);
    all_turns(&h, turns, n, 0.3);
    other_rows(&h, 0.4);
    free(turns);
    free(h.seat);
    free(h.order);
}
