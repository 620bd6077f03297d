/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - the search: candidates of all kinds, the best order so far, and moves of whole blocks
 * from it. */
#include "place/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

enum { RANDOM_ORDERS = 9 };
/* SETS_TRIED: sets of hosts that get a search each if the number of hosts is given.  SETS_SIZE_MAX:
 * most (host, place in the set) pairs for which from_sets() runs. */
enum { SETS_TRIED = 4, SETS_SIZE_MAX = 1 << 18 };
static const double SETS_SHARE = 0.1; /* share of the search's work for sets of hosts */
/* If the number of hosts is given: share of the limit for each of the two searches of sets, and the
 * fewest sets that each prices. */
static const double SETS_OF_LIMIT = 0.1;
enum { SETS_LEAST = 4 };

/* --- the first orders --- */

/* Assign ranks to hosts in that order. */
static void deal(const struct placer *pl, const int *host, int hosts, int spread, int *order)
{
    host_slots_deal(pl->pool->of, host, hosts, pl->pool->asked, spread, pl->ranks, order);
}

static int default_order(struct place_best *b, struct placer *pl, struct err *err)
{
    const struct node_pool *p = pl->pool;
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));

    b->ranks = pl->ranks;
    for (int i = 0; i < DIGITS; i++)
        b->turn[i] = i;
    b->sec = (struct place_sec){NAN, NAN};
    b->order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    deal(pl, p->host, p->hosts, pl->ask->spread, order);
    memcpy(b->order, order, (size_t)pl->ranks * sizeof(int));
    place_try(b, pl, order,
              pl->ask->chosen ? "hosts chosen, ranks in order" : "hosts as given, ranks in order",
              NULL);
    free(order);
    if (isnan(b->sec.most)) {
        err_set(err, "the price of a message is not known: the matrix has no curve for it");
        err->code = EXIT_UNJUDGED;
        return -1;
    }
    return 0;
}

static double random_orders(struct placer *pl)
{
    const struct node_pool *p = pl->pool;
    int *host = mem_calloc((size_t)p->hosts + 1, sizeof(int));
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    double sec[RANDOM_ORDERS];
    struct rng rng;

    rng_seed(&rng, pl->ask->seed);
    memcpy(host, p->host, (size_t)p->hosts * sizeof(int));
    for (int k = 0; k < RANDOM_ORDERS; k++) {
        rng_shuffle(&rng, host, p->hosts);
        deal(pl, host, p->hosts, SPREAD_BLOCK, order);
        sec[k] = placer_order(pl, order).most;
    }
    free(host);
    free(order);
    return stats_median(sec, RANDOM_ORDERS);
}

/* Try the cheapest set of as many hosts as the ranks fill, if hosts have equal numbers of slots and
 * more of them are free than needed.  Its work comes on top of the budget, but is a small part of
 * it. */
static void from_sets(struct place_best *b, struct placer *pl)
{
    const struct node_pool *p = pl->pool;
    int need = (pl->ranks + p->per_host - 1) / p->per_host;
    long patterns = (long)(SETS_SHARE * pl->budget / pl->unit);
    struct place_sets sets;

    if (pl->ask->demand || need >= p->hosts || p->slots != p->hosts * p->per_host || !patterns ||
        (double)need * p->hosts > SETS_SIZE_MAX)
        return;
    if (place_sets_find(&sets, pl->step, p, pl->ask->spread, need, 1, patterns, NULL) == 0) {
        int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
        deal(pl, sets.host, need, pl->ask->spread, order);
        place_try(b, pl, order, "the cheapest nodes as listed, ranks in order", NULL);
        free(order);
    }
    pl->tried += sets.priced;
    place_sets_free(&sets);
}

/* --- moves of whole blocks ---
 *
 * Two blocks swap, a block moves to free slots, or a block is moved and shifts the others.  Half of
 * the moves start at the slowest group.  Only improvements are kept. */

enum { SIZES = 16, PATIENCE = 4000, TURNS = 3 };

struct moves {
    struct place_best *best;
    struct placer *placer;
    struct rng rng;
    int *slot, *tried; /* all free slots; rank[i] has slot[i], the rest is free */
    int *rank;         /* per taken slot */
    int *position;     /* per rank: its index in slot */
    int *order;
    int size[SIZES], sizes; /* block sizes, ascending */
    int *guide, guides;     /* ranks of the slowest group */
    long moves;
};

/* Append the free slots to the taken ones, host by host. */
static void line_up(struct moves *w)
{
    const struct node_pool *p = w->placer->pool;
    int ranks = w->placer->ranks, endpoints = p->matrix->topo.endpoints, n = ranks;
    bool *taken = mem_calloc((size_t)endpoints + 1, sizeof(bool));

    for (int s = 0; s < ranks; s++) {
        w->slot[s] = w->best->order[w->rank[s]];
        w->position[w->rank[s]] = s;
        taken[w->slot[s]] = true;
    }
    for (int i = 0; i < p->slots; i++)
        if (!taken[p->endpoint[i]])
            w->slot[n++] = p->endpoint[i];
    free(taken);
}

/* Collect block sizes: one slot, whole hosts, and products of the digits in the order of the best
 * plan. */
static void sizes_of(struct moves *w, const struct mesh *m, const int *turn)
{
    int size = 1, per = w->placer->pool->per_host;

    w->size[w->sizes++] = 1;
    if (per > 1)
        w->size[w->sizes++] = per;
    for (int i = 0; i < m->digits && w->sizes < SIZES; i++) {
        size *= m->radix[turn[i]];
        if (size > 1 && size != per && 2 * size <= w->placer->pool->slots)
            w->size[w->sizes++] = size;
    }
    /* A demand has no digits: any number of whole hosts that divides the ranks may be a group. */
    for (size = 2 * per; w->placer->ask->demand && 2 * size <= w->placer->pool->slots; size += per)
        if (w->placer->ranks % size == 0 && w->sizes < SIZES)
            w->size[w->sizes++] = size;
}

static int aligned(struct moves *w, int at, int size)
{
    int step = size < w->placer->pool->per_host ? 1 : w->placer->pool->per_host;

    if (w->placer->ask->demand && size > step && rng_below(&w->rng, 2))
        step = size; /* groups of consecutive ranks */

    at -= at % step;
    return at + size <= w->placer->pool->slots ? at : -1;
}

/* Returns a slot in the same box as a random rank of the slowest group. */
static int near_guide(struct moves *w)
{
    const struct topo *t = &w->placer->pool->matrix->topo;
    const struct place *to =
        &t->endpoint[w->slot[w->position[w->guide[rng_below(&w->rng, (unsigned)w->guides)]]]].place;
    enum level level = to->at[LEVEL_DOMAIN] >= 0 && rng_below(&w->rng, 2) ? LEVEL_DOMAIN
                       : to->at[LEVEL_RACK] >= 0                          ? LEVEL_RACK
                                                                          : LEVEL_LEAF;
    int from = (int)rng_below(&w->rng, (unsigned)w->placer->pool->slots);

    for (int i = 0; i < w->placer->pool->slots; i++) {
        int s = (from + i) % w->placer->pool->slots;
        if (topo_at(t, w->slot[s], level) == to->at[level])
            return s;
    }
    return from;
}

static void swap_blocks(int *slot, int a, int b, int size)
{
    for (int i = 0; i < size; i++) {
        int keep = slot[a + i];
        slot[a + i] = slot[b + i];
        slot[b + i] = keep;
    }
}

/* Move the block at a to b and shift the slots between. */
static void put_in(int *slot, int a, int b, int size)
{
    int *block = mem_calloc((size_t)size, sizeof(int));

    memcpy(block, slot + a, (size_t)size * sizeof(int));
    if (a < b) {
        memmove(slot + a, slot + a + size, (size_t)(b - a) * sizeof(int));
        memcpy(slot + b, block, (size_t)size * sizeof(int));
    } else {
        memmove(slot + b + size, slot + b, (size_t)(a - b) * sizeof(int));
        memcpy(slot + b, block, (size_t)size * sizeof(int));
    }
    free(block);
}

/* Make one move on w->tried.  False: it would change nothing. */
static bool move(struct moves *w)
{
    unsigned slots = (unsigned)w->placer->pool->slots;
    int size = w->size[rng_below(&w->rng, (unsigned)w->sizes)];
    bool guided = w->guides && rng_below(&w->rng, 2);
    int a = guided ? w->position[w->guide[rng_below(&w->rng, (unsigned)w->guides)]]
                   : (int)rng_below(&w->rng, (unsigned)w->placer->ranks);
    int b = guided && rng_below(&w->rng, 2) ? near_guide(w) : (int)rng_below(&w->rng, slots);

    a = aligned(w, a, size);
    b = aligned(w, b, size);
    if (a < 0 || b < 0 || abs(a - b) < size)
        return false;
    memcpy(w->tried, w->slot, slots * sizeof(int));
    if (rng_below(&w->rng, 4))
        swap_blocks(w->tried, a, b, size);
    else
        put_in(w->tried, a, b, size);
    return true;
}

static void apply(struct moves *w)
{
    for (int s = 0; s < w->placer->ranks; s++)
        w->order[w->rank[s]] = w->tried[s];
}

static void look(struct moves *w)
{
    line_up(w);
    w->guides = placer_slowest(w->placer, w->best->order, &w->rng, w->guide);
}

static void step(struct moves *w, int *idle)
{
    (*idle)++;
    if (!move(w))
        return;
    apply(w);
    if (place_try(w->best, w->placer, w->order, NULL, NULL) != TRIED_BEST)
        return;
    w->moves++;
    *idle = 0;
    look(w);
}

static void improve(struct place_best *b, struct placer *pl, unsigned turn)
{
    struct moves w = {.best = b, .placer = pl};
    size_t n = (size_t)pl->pool->slots + 1;
    struct mesh m;
    char how[256];
    int idle = 0;

    rng_seed(&w.rng, pl->ask->seed + turn);
    mesh_of(&m, pl);
    int **part[] = {&w.slot, &w.tried, &w.rank, &w.position, &w.order, &w.guide};
    int *room = mem_calloc(sizeof(part) / sizeof(*part) * n, sizeof(int));
    for (size_t k = 0; k < sizeof(part) / sizeof(*part); k++)
        *part[k] = room + k * n;
    for (int s = 0; s < pl->ranks; s++)
        w.rank[s] = mesh_rank(&m, b->turn, s);
    sizes_of(&w, &m, b->turn);
    look(&w);
    while (placer_may(pl, 1) && idle < PATIENCE && b->sec.most > pl->least * (1 + 1e-9)) {
        step(&w, &idle);
        if (idle % 16 == 15) /* another of the slow groups may be better */
            w.guides = placer_slowest(pl, b->order, &w.rng, w.guide);
    }
    snprintf(how, sizeof(how), "%.220s; %ld move%s", b->how, w.moves, w.moves == 1 ? "" : "s");
    if (w.moves)
        snprintf(b->how, sizeof(b->how), "%s", how);
    free(room);
}

/* --- the search --- */

static int search(struct placed *out, struct place_best *b, struct placer *pl, struct err *err)
{
    if (default_order(b, pl, err) < 0)
        return -1;
    out->given = mem_calloc((size_t)b->ranks + 1, sizeof(int));
    memcpy(out->given, b->order, (size_t)b->ranks * sizeof(int));
    out->in_order = b->sec.most;
    out->bound = placer_bound(pl);
    out->random = random_orders(pl);
    place_mesh(b, pl);
    place_exhaust(b, pl);
    place_greedy(b, pl);
    from_sets(b, pl);
    for (unsigned turn = 1; turn <= TURNS; turn++)
        improve(b, pl, turn);
    place_normalise(b, pl);
    return 0;
}

/* Search with all hosts of the pool. */
static int run_pool(struct placed *out, const struct place_ask *ask, struct node_pool *p,
                    struct err *err)
{
    struct place_best b = {.order = NULL};
    struct placer pl;

    placer_open(&pl, ask, p);
    int rc = p->slots >= pl.ranks ? 0
                                  : err_usage(err,
                                              "the job has %d ranks and the %d free hosts have "
                                              "room for %d",
                                              pl.ranks, p->hosts, p->slots);
    if (rc == 0)
        rc = search(out, &b, &pl, err);
    if (rc == 0) {
        out->order = b.order;
        out->ranks = pl.ranks;
        out->sec = b.sec.most;
        out->tried = pl.tried;
        snprintf(out->how, sizeof(out->how), "%s", b.how);
        b.order = NULL;
    }
    free(b.order);
    map_free(&b.seen);
    placer_close(&pl);
    return rc;
}

/* True if the set is the first `need` hosts of the list. */
static bool is_given(const struct place_ask *ask, const int *set)
{
    for (int i = 0; i < ask->need; i++)
        if (set[i] != (ask->host ? ask->host[i] : i))
            return false;
    return true;
}

/* Number of sets to price within the limit; 0: the usual number. */
static long sets_within(const struct place_ask *ask)
{
    double sets = SETS_OF_LIMIT * ask->limit * SETS_RANKS_PRICED / ask->step->ranks;

    return ask->limit > 0 ? (long)fmax(sets, SETS_LEAST) : 0;
}

/* Search each of the cheapest sets of the hosts in this order.  Improvements are kept in *out, with
 * its bound and default unchanged. */
static int run_sets(struct placed *out, const struct place_ask *ask, const struct host_slots *slots,
                    const int *host, int hosts, struct err *err)
{
    struct place_sets sets = {.host = NULL};
    struct node_pool all = {.matrix = NULL}, p;
    int rc = node_pool_make(&all, ask->matrix, slots, host, hosts, ask->per_host, err);

    if (rc == 0)
        rc = place_sets_find(&sets, ask->step, &all, ask->spread, ask->need, SETS_TRIED,
                             sets_within(ask), err);
    for (int i = 0; rc == 0 && i < sets.count; i++) {
        const int *set = sets.host + (size_t)i * (size_t)ask->need;
        struct place_ask one = *ask;
        struct placed placed = {.order = NULL};
        one.share = 1.0 / (2 * SETS_TRIED);
        if (ask->limit > 0)
            one.share *= 1 - 2 * SETS_OF_LIMIT;
        one.chosen = !is_given(ask, set);
        one.progress = false;
        rc = node_pool_make(&p, ask->matrix, slots, set, ask->need, ask->per_host, err);
        if (rc == 0)
            rc = run_pool(&placed, &one, &p, err);
        node_pool_free(&p);
        out->tried += placed.tried;
        if (rc == 0 && (!out->order || placed.sec < out->sec)) {
            int *swap = out->order;
            out->order = placed.order;
            placed.order = swap;
            out->ranks = placed.ranks;
            out->sec = placed.sec;
            snprintf(out->how, sizeof(out->how), "%s", placed.how);
        }
        placed_free(&placed);
    }
    out->tried += sets.priced;
    place_sets_free(&sets);
    node_pool_free(&all);
    return rc;
}

/* Use `need` hosts of the pool: the cheapest sets with hosts as listed, and with near ones
 * adjacent. */
static int run_need(struct placed *out, const struct place_ask *ask, struct node_pool *p,
                    struct err *err)
{
    int level[LEVEL_COUNT] = {-1}, levels = node_pool_levels(p, level);
    int *near = mem_calloc((size_t)p->hosts + 1, sizeof(int));
    struct placer pl;
    struct row row;

    placer_open(&pl, ask, p);
    out->given = mem_calloc((size_t)pl.ranks + 1, sizeof(int));
    deal(&pl, p->host, ask->need, ask->spread, out->given);
    out->in_order = placer_order(&pl, out->given).most;
    out->random = NAN;
    out->bound = placer_bound(&pl);
    row_make(&row, p, levels ? level[0] : -1, ROW_NEAR, -1, -1);
    for (int i = 0; i < row.hosts; i++)
        near[i] = p->host[row.host[i]];
    int rc = run_sets(out, ask, p->of, p->host, p->hosts, err);
    if (rc == 0 && memcmp(near, p->host, (size_t)p->hosts * sizeof(int)) != 0)
        rc = run_sets(out, ask, p->of, near, p->hosts, err);
    row_free(&row);
    placer_close(&pl);
    free(near);
    return rc;
}

int place_run(struct placed *out, const struct place_ask *ask, struct err *err)
{
    struct host_slots own;
    struct node_pool p;
    double from = log_now();

    *out = (struct placed){.order = NULL};
    host_slots_make(&own, &ask->matrix->topo);
    const struct host_slots *slots = ask->slots ? ask->slots : &own;
    int rc = node_pool_make(&p, ask->matrix, slots, ask->host, ask->hosts, ask->per_host, err);
    if (rc == 0)
        rc = ask->need && ask->need < p.hosts ? run_need(out, ask, &p, err)
                                              : run_pool(out, ask, &p, err);
    if (rc == 0) {
        double least = fmin(out->sec, out->random);
        /* rounding error; otherwise the bound would be wrong, so claim none */
        if (out->bound > least)
            out->bound = out->bound <= least * (1 + 1e-9) ? least : 0;
        out->took = log_now() - from;
    }
    node_pool_free(&p);
    host_slots_free(&own);
    return rc;
}

void placed_free(struct placed *p)
{
    free(p->order);
    free(p->given);
    *p = (struct placed){.order = NULL};
}
