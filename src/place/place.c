/* SPDX-License-Identifier: BSD-3-Clause */
#include "place/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "place/place_parts.h"

/* Scotch takes 0.4 s for 8,192 ranks, and beats blocks where holes are irregular, if at all. */
enum { RANDOM_ORDERS = 9, SCOTCH_RANKS = 2048 };

static int check(const struct place_ask *ask, struct err *err)
{
    int ranks = ask->demand ? ask->demand->ranks : ask->question->layout->ranks;

    if (ask->ranks && ask->ranks != ranks)
        return err_usage(err, "%d ranks are asked for and the job has %d", ask->ranks, ranks);
    return 0;
}

/* Hosts in that order, each full before the next. */
static void in_row(int *order, const struct pool *p, const int *host, int ranks)
{
    int n = 0;

    for (int i = 0; n < ranks; i++)
        for (int s = p->start[host[i]]; s < p->start[host[i] + 1] && n < ranks; s++)
            order[n++] = p->endpoint[s];
}

static double random_orders(struct placer *pl, const struct pool *p, unsigned seed)
{
    int *host = mem_calloc((size_t)p->hosts + 1, sizeof(int));
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    double sec[RANDOM_ORDERS];
    struct rng rng;

    rng_seed(&rng, seed);
    for (int i = 0; i < p->hosts; i++)
        host[i] = i;
    for (int k = 0; k < RANDOM_ORDERS; k++) {
        rng_shuffle(&rng, host, p->hosts);
        in_row(order, p, host, pl->ranks);
        sec[k] = placer_order(pl, order).most;
    }
    free(host);
    free(order);
    return stats_median(sec, RANDOM_ORDERS);
}

static int default_order(struct best *b, struct placer *pl, const struct pool *p, struct err *err)
{
    int *host = mem_calloc((size_t)p->hosts + 1, sizeof(int));

    b->ranks = pl->ranks;
    for (int i = 0; i < DIGITS; i++)
        b->turn[i] = i;
    b->verdict = (struct verdict_of_order){NAN, NAN};
    b->order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    for (int i = 0; i < p->hosts; i++)
        host[i] = i;
    in_row(b->order, p, host, pl->ranks);
    free(host);
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    memcpy(order, b->order, (size_t)pl->ranks * sizeof(int));
    best_try(b, pl, order, "hosts as given, ranks in order", NULL);
    free(order);
    if (isnan(b->verdict.most)) {
        err_set(err, "the price of a message is not known: the matrix has no curve for it");
        err->code = EXIT_UNJUDGED;
        return -1;
    }
    return 0;
}

static int search(struct placed *out, struct best *b, struct placer *pl, const struct pool *p,
                  struct err *err)
{
    if (default_order(b, pl, p, err) < 0)
        return -1;
    out->given = mem_calloc((size_t)b->ranks + 1, sizeof(int));
    memcpy(out->given, b->order, (size_t)b->ranks * sizeof(int));
    out->in_order = b->verdict.most;
    out->bound = placer_bound(pl, p);
    out->random = random_orders(pl, p, pl->ask->seed);
    place_closed(b, pl, p);
    place_small(b, pl, p);
    place_greedy(b, pl, p);
    if (pl->ask->scotch && pl->ranks <= SCOTCH_RANKS)
        place_scotch(b, pl, p, NULL); /* one more candidate where it is installed */
    place_moves(b, pl, p, pl->ask->seed);
    place_tidy(b, pl, p);
    return 0;
}

int place_run(struct placed *out, const struct place_ask *ask, struct err *err)
{
    struct placer pl = {0};
    struct best b = {0};
    struct pool p = {0};
    double from = log_now();

    memset(out, 0, sizeof(*out));
    int rc = check(ask, err);
    if (rc == 0)
        rc = placer_open(&pl, ask, err);
    if (rc == 0)
        rc = pool_make(&p, ask, pl.ranks, err);
    pl.pool = &p;
    if (rc == 0)
        rc = search(out, &b, &pl, &p, err);
    if (rc == 0) {
        out->order = b.order;
        out->ranks = pl.ranks;
        out->sec = b.verdict.most;
        double least = fmin(out->sec, out->random);
        if (out->bound > least) /* by rounding; else it would be false, and nothing is claimed */
            out->bound = out->bound <= least * (1 + 1e-9) ? least : 0;
        out->tried = pl.tried;
        out->took = log_now() - from;
        snprintf(out->how, sizeof(out->how), "%s", b.how);
        b.order = NULL;
    }
    free(b.order);
    map_free(&b.seen);
    pool_free(&p);
    placer_close(&pl);
    return rc;
}

void placed_free(struct placed *p)
{
    free(p->order);
    free(p->given);
    memset(p, 0, sizeof(*p));
}
