/* SPDX-License-Identifier: BSD-3-Clause */
/* place_price.c - what an order costs, by the price of predict; and the best order so far. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"
#include "step/pricer.h"
#include "step/search/eval.h"

/* Units of work in a second; an ordinary core does three times as many, so that a busy machine
 * keeps the limit too. */
static const double WORK_PER_SECOND = 0.9e7;
enum { UNIT_LEAST = 500 }; /* of an order, however few ranks */

/* Less than a millionth is nothing: regular orders are worth more. */
bool order_better(struct verdict_of_order a, struct verdict_of_order b)
{
    if (isnan(a.most) || isnan(b.most))
        return isnan(b.most) && !isnan(a.most);
    if (!(b.most < INFINITY))
        return a.most < INFINITY;
    if (a.most < b.most * (1 - 1e-6))
        return true;
    return a.most <= b.most && a.mean < b.mean * (1 - 1e-5);
}

static int open_question(struct placer *pl, const struct question *q, struct err *err)
{
    double peak;

    work_of(&pl->work, q->model, q->layout, q->recipe);
    traffic_of(&pl->traffic, q->model, q->layout, q->recipe);
    for (int i = 0; i < pl->traffic.messages; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= pl->traffic.message[k].span.size == pl->traffic.message[i].span.size &&
                     pl->traffic.message[k].span.stride == pl->traffic.message[i].span.stride;
        pl->spans += !again;
    }
    return eval_coefficients(&pl->coefficients, &peak, q, q->layout, q->recipe, err);
}

int placer_open(struct placer *pl, const struct place_ask *ask, struct err *err)
{
    memset(pl, 0, sizeof(*pl));
    pl->ask = ask;
    pl->ranks = ask->ranks > 0 ? ask->ranks
                : ask->demand  ? ask->demand->ranks
                               : ask->question->layout->ranks;
    pl->budget = WORK_PER_SECOND * (ask->limit > 0 ? ask->limit : 1);
    if (ask->progress)
        progress_start(&pl->progress, pl->budget);
    if (!ask->demand)
        return open_question(pl, ask->question, err);
    placer_ties(pl);
    return 0;
}

void placer_close(struct placer *pl)
{
    if (pl->ties) {
        free(pl->ties->start);
        free(pl->ties->tie);
    }
    free(pl->ties);
    if (pl->ask && pl->ask->progress)
        progress_end(&pl->progress);
    memset(pl, 0, sizeof(*pl));
}

bool placer_may(const struct placer *pl, double share)
{
    return pl->spent < share * pl->budget;
}

static struct verdict_of_order step_of(struct placer *pl, const int *order)
{
    const struct question *q = pl->ask->question;
    struct verdict_of_order v = {NAN, NAN};
    double one[TRAFFIC_MAX], mean[TRAFFIC_MAX], sum = 0;
    struct pricer *pricer;
    struct timing t;

    if (pricer_open(&pricer, pl->ask->matrix, order, pl->ranks, NULL) < 0)
        return v;
    for (int i = 0; i < pl->traffic.messages; i++) {
        one[i] = pricer_message_mean(pricer, &pl->traffic.message[i], &mean[i]);
        sum += one[i];
    }
    pricer_close(pricer);
    if (!(sum < INFINITY))
        return (struct verdict_of_order){sum, sum};
    timing_of(&t, &pl->traffic, one, &pl->work, &pl->coefficients, q->layout, q->recipe);
    v.most = t.sec;
    timing_of(&t, &pl->traffic, mean, &pl->work, &pl->coefficients, q->layout, q->recipe);
    v.mean = t.sec;
    return v;
}

static double flow_sec(const struct matrix *m, int src, int dst, double bytes)
{
    double add = 0, factor = 1;

    if (!(bytes > 0))
        return 0;
    int tier = topo_tier(m->topo.tier, m->topo.tiers, &m->topo.endpoint[src].place,
                         &m->topo.endpoint[dst].place);
    if (m->exceptions)
        factor = matrix_factor(m, src, dst, NULL, &add);
    return matrix_tier_time(&m->tier[tier], bytes, factor) + add;
}

double placer_busy(const struct placer *pl, const int *order, int rank, double *sum)
{
    const struct matrix *m = pl->ask->matrix;
    double out = 0, in = 0;

    for (int i = pl->ties->start[rank]; i < pl->ties->start[rank + 1]; i++) {
        const struct tie *t = &pl->ties->tie[i];
        out += flow_sec(m, order[rank], order[t->peer], t->out);
        in += flow_sec(m, order[t->peer], order[rank], t->in);
    }
    if (sum)
        *sum = out;
    return isnan(out) || out > in ? out : in;
}

static struct verdict_of_order demand_of(struct placer *pl, const int *order)
{
    struct verdict_of_order v = {0, 0};
    double sum;

    for (int r = 0; r < pl->ranks; r++) {
        double busy = placer_busy(pl, order, r, &sum);
        v.mean += sum / pl->ranks;
        v.most = isnan(busy) || busy > v.most ? busy : v.most;
        if (isnan(busy))
            break;
    }
    return v;
}

double placer_unit(const struct placer *pl)
{
    if (pl->ask->demand)
        return pl->ranks + 4.0 * pl->ties->start[pl->ranks];
    return UNIT_LEAST + (double)pl->ranks * (2 + pl->spans);
}

/* What each message has too much, of the step; one of them by chance, as likely as that is much. */
static int slow_message(const struct placer *pl, struct pricer *pricer, struct rng *rng)
{
    double much[TRAFFIC_MAX], sum = 0, mean;

    for (int i = 0; i < pl->traffic.messages; i++) {
        const struct message *m = &pl->traffic.message[i];
        double one = pricer_message_mean(pricer, m, &mean);
        much[i] = fmin(fmax(m->count * (one - pl->least_one[i]), 0), 1e30); /* dead parts too */
        sum += much[i];
    }
    double at = rng_uniform(rng) * sum;
    for (int i = 0; i < pl->traffic.messages; i++)
        if ((at -= much[i]) < 0)
            return i;
    return -1;
}

static int slow_group(struct placer *pl, const int *order, struct rng *rng, int *rank)
{
    struct pricer *pricer;
    struct cost cost;
    int n = 0, group;

    if (pricer_open(&pricer, pl->ask->matrix, order, pl->ranks, NULL) < 0)
        return 0;
    int i = slow_message(pl, pricer, rng);
    if (i >= 0) {
        const struct message *m = &pl->traffic.message[i];
        pricer_message_cost(pricer, m, &cost, &group);
        for (; group >= 0 && n < m->span.size; n++)
            rank[n] = span_rank(&m->span, group, n);
    }
    pricer_close(pricer);
    return n;
}

static int busiest(struct placer *pl, const int *order, int *rank)
{
    double most = -1;
    int n = 1;

    for (int r = 0; r < pl->ranks; r++) {
        double busy = placer_busy(pl, order, r, NULL);
        if (busy > most)
            rank[0] = r;
        most = busy > most ? busy : most;
    }
    for (int i = pl->ties->start[rank[0]]; i < pl->ties->start[rank[0] + 1]; i++)
        rank[n++] = pl->ties->tie[i].peer;
    return n;
}

int placer_slowest(struct placer *pl, const int *order, struct rng *rng, int *rank)
{
    pl->spent += placer_unit(pl);
    return pl->ask->demand ? busiest(pl, order, rank) : slow_group(pl, order, rng, rank);
}

struct verdict_of_order placer_order(struct placer *pl, const int *order)
{
    if (pl->ask->progress)
        progress_show(&pl->progress, fmin(pl->spent, pl->budget), "orders of ranks");
    pl->tried++;
    pl->spent += placer_unit(pl);
    return pl->ask->demand ? demand_of(pl, order) : step_of(pl, order);
}

static unsigned long long hash_of(const int *order, int ranks)
{
    unsigned long long h = 0x9e3779b97f4a7c15u;

    for (int i = 0; i < ranks; i++) {
        h = (h ^ (unsigned)order[i]) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 31;
    }
    return h;
}

static bool is_new(struct best *b, const int *order)
{
    size_t before = b->seen.count;

    map_at(&b->seen, hash_of(order, b->ranks), NULL, NULL);
    return b->seen.count > before;
}

enum tried best_try(struct best *b, struct placer *pl, int *order, const char *how,
                    struct verdict_of_order *out)
{
    order_settle(order, b->ranks, pl->pool);
    if (!is_new(b, order))
        return TRIED_BEFORE;
    struct verdict_of_order v = placer_order(pl, order);
    if (out)
        *out = v;
    if (!order_better(v, b->verdict))
        return TRIED_WORSE;
    b->verdict = v;
    memcpy(b->order, order, (size_t)b->ranks * sizeof(int));
    if (how)
        snprintf(b->how, sizeof(b->how), "%s", how);
    return TRIED_BEST;
}
