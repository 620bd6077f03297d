/* SPDX-License-Identifier: BSD-3-Clause */
/* place_price.c - cost of an order, equal to that of `predict`; and the best order so far. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* Units of work per second on an ordinary core.  Units of a demand are pairs of endpoints, which
 * take longer.  Default limit: 0.1 s; longer for few ranks, where moves pay off, and for many,
 * where few orders would be priced. */
static const double STEP_WORK_PER_SECOND = 0.9e8, DEMAND_WORK_PER_SECOND = 0.9e7;
static const double STEP_LIMIT = 0.1, DEMAND_LIMIT = 1; /* s */
enum { UNIT_LEAST = 500 };                              /* per order, however few ranks */
/* fewer ranks than one, or more than the other, get more time */
enum { FEW_RANKS = 2048, MANY_RANKS = 16384 };

static double search_seconds(const struct place_ask *ask)
{
    if (ask->demand)
        return DEMAND_WORK_PER_SECOND * (ask->limit > 0 ? ask->limit : DEMAND_LIMIT);
    int ranks = ask->step->ranks;
    double more = ranks <= FEW_RANKS ? 3 : fmax(1, (double)ranks / MANY_RANKS);
    return STEP_WORK_PER_SECOND * (ask->limit > 0 ? ask->limit : more * STEP_LIMIT);
}

/* Differences below a millionth do not count, because regular orders are worth more. */
bool place_better(struct place_sec a, struct place_sec b)
{
    if (isnan(a.most) || isnan(b.most))
        return isnan(b.most) && !isnan(a.most);
    if (!(b.most < INFINITY))
        return a.most < INFINITY;
    if (a.most < b.most * (1 - 1e-6))
        return true;
    return a.most <= b.most && a.mean < b.mean * (1 - 1e-5);
}

/* --- steps --- */

int place_step_of(struct place_step *s, const struct question *q, struct err *err)
{
    struct step step;
    double peak;

    *s = (struct place_step){
        .ranks = q->layout->ranks, .trains = true, .layout = *q->layout, .recipe = *q->recipe};
    step_of(&step, q->model, &s->layout, &s->recipe);
    work_of(&s->work, &step);
    traffic_of(&s->traffic, &step);
    return eval_coefficients(&s->coefficients, &peak, q, &s->layout, &s->recipe, err);
}

double place_step_sec(const struct place_step *s, const double *one)
{
    struct timing t = {.sec = 0};

    if (s->trains)
        timing_of(&t, &s->traffic, one, &s->work, &s->coefficients, &s->layout, &s->recipe);
    for (int i = 0; i < s->traffic.messages && !s->trains; i++)
        t.sec += one[i] * s->traffic.message[i].count;
    return t.sec;
}

/* Explain why a message has no price by pricing it again with text. */
static void say_why(struct pricer *p, const struct message *msg, double sec, struct err *err)
{
    struct cost cost;
    int group;

    pricer_message_cost(p, msg, &cost, &group);
    if (isinf(sec))
        err_set(err, "%s: a part that it needs is dead or gives wrong data: %.200s", msg->label,
                cost.source);
    else
        err_set(err, "%s: the matrix has no rate for it: %.200s", msg->label, cost.source);
}

double place_price_by(const struct place_step *s, struct pricer *p, double *mean, struct err *err)
{
    double one[TRAFFIC_MAX], each[TRAFFIC_MAX], sec = 0;

    for (int i = 0; i < s->traffic.messages && sec < INFINITY; i++) {
        const struct message *msg = &s->traffic.message[i];
        one[i] = pricer_message_mean(p, msg, &each[i]);
        if (!(one[i] < INFINITY)) {
            sec = one[i];
            if (err)
                say_why(p, msg, sec, err);
        }
    }
    if (sec < INFINITY)
        sec = place_step_sec(s, one);
    if (mean)
        *mean = sec < INFINITY ? place_step_sec(s, each) : sec;
    return sec;
}

int place_reorder(struct pricer **p, const struct matrix *m, const int *order, int ranks,
                  struct err *err)
{
    if (!*p && pricer_open(p, m, order, ranks, err) < 0)
        return -1;
    return pricer_reorder(*p, order, err);
}

double place_price(const struct place_step *s, const struct matrix *m, const int *order,
                   double *mean, struct err *err)
{
    struct pricer *p;

    if (mean)
        *mean = NAN;
    if (pricer_open(&p, m, order, s->ranks, err) < 0)
        return NAN;
    double sec = place_price_by(s, p, mean, err);
    pricer_close(p);
    return sec;
}

/* --- the placer --- */

static double unit_of(const struct placer *pl)
{
    if (pl->ask->demand)
        return pl->ranks + 4.0 * pl->ties->start[pl->ranks];
    return UNIT_LEAST + (double)pl->ranks * (2 + pl->spans);
}

void placer_open(struct placer *pl, const struct place_ask *ask, struct node_pool *pool)
{
    static const struct place_step none;
    const struct place_step *s = ask->demand ? &none : ask->step;

    *pl = (struct placer){.ask = ask, .step = s, .pool = pool};
    pl->ranks = ask->demand ? ask->demand->ranks : s->ranks;
    pl->budget = search_seconds(ask) * (ask->share > 0 ? ask->share : 1);
    for (int i = 0; i < s->traffic.messages; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= span_equal(s->traffic.message[k].span, s->traffic.message[i].span);
        pl->spans += !again;
    }
    if (ask->progress)
        progress_start(&pl->progress, pl->budget);
    if (ask->demand)
        placer_ties(pl);
    pl->unit = unit_of(pl);
}

void placer_close(struct placer *pl)
{
    if (pl->ties) {
        free(pl->ties->start);
        free(pl->ties->tie);
    }
    free(pl->ties);
    pricer_close(pl->pricer);
    if (pl->ask && pl->ask->progress)
        progress_end(&pl->progress);
    *pl = (struct placer){.ask = NULL};
}

static double flow_sec(const struct matrix *m, int src, int dst, double bytes)
{
    double add = 0, factor = 1;

    if (!(bytes > 0))
        return 0;
    int tier = matrix_tier(m, src, dst);
    if (m->exceptions)
        factor = matrix_factor(m, src, dst, NULL, &add);
    return matrix_tier_time(&m->tier[tier], bytes, factor) + add;
}

/* Seconds that a rank's flows keep its endpoint busy, the larger of sending and receiving; *sum:
 * sending. */
static double busy_of(const struct placer *pl, const int *order, int rank, double *sum)
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

static struct place_sec demand_of(struct placer *pl, const int *order)
{
    struct place_sec v = {0, 0};
    double sum;

    for (int r = 0; r < pl->ranks; r++) {
        double busy = busy_of(pl, order, r, &sum);
        v.mean += sum / pl->ranks;
        v.most = isnan(busy) || busy > v.most ? busy : v.most;
        if (isnan(busy))
            break;
    }
    return v;
}

/* Choose a message at random, with probability in proportion to its time above the bound's. */
static int slow_message(const struct placer *pl, struct rng *rng)
{
    double much[TRAFFIC_MAX], sum = 0, mean;

    for (int i = 0; i < pl->step->traffic.messages; i++) {
        const struct message *m = &pl->step->traffic.message[i];
        double one = pricer_message_mean(pl->pricer, m, &mean);
        much[i] = fmin(fmax(m->count * (one - pl->least_one[i]), 0), 1e30); /* for dead parts too */
        sum += much[i];
    }
    double at = rng_uniform(rng) * sum;
    for (int i = 0; i < pl->step->traffic.messages; i++)
        if ((at -= much[i]) < 0)
            return i;
    return -1;
}

static int slow_group(struct placer *pl, const int *order, struct rng *rng, int *rank)
{
    struct cost cost;
    int n = 0, group;

    if (place_reorder(&pl->pricer, pl->ask->matrix, order, pl->ranks, NULL) < 0)
        return 0;
    pricer_base(pl->pricer);
    int i = slow_message(pl, rng);
    if (i >= 0) {
        const struct message *m = &pl->step->traffic.message[i];
        pricer_message_cost(pl->pricer, m, &cost, &group);
        for (; group >= 0 && n < m->span.size; n++)
            rank[n] = span_rank(&m->span, group, n);
    }
    return n;
}

static int busiest(struct placer *pl, const int *order, int *rank)
{
    double most = -1;
    int n = 1;

    for (int r = 0; r < pl->ranks; r++) {
        double busy = busy_of(pl, order, r, NULL);
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
    pl->spent += pl->unit;
    return pl->ask->demand ? busiest(pl, order, rank) : slow_group(pl, order, rng, rank);
}

/* Sums of the same numbers in another order differ in their last bits. */
#define LIMIT_MARGIN 1e-6

/* Step time while groups of some spans are not priced yet: a lower bound, with these messages at
 * their least times.  (The step grows with each message, except for DualPipe's bubble:
 * timing_least().) */
struct partial {
    bool known[TRAFFIC_MAX];
    double one[TRAFFIC_MAX], mean[TRAFFIC_MAX];
};

static double with_span(struct placer *pl, struct partial *p, const struct message *of)
{
    const struct place_step *s = pl->step;

    for (int i = 0; i < s->traffic.messages; i++) {
        const struct message *m = &s->traffic.message[i];
        if (p->known[i] || !span_equal(m->span, of->span))
            continue;
        p->one[i] = pricer_message_mean(pl->pricer, m, &p->mean[i]);
        p->known[i] = true;
        if (!(p->one[i] < INFINITY))
            return NAN;
    }
    return place_step_sec(s, p->one);
}

/* Price span after span, first the one that last showed an order to be too slow. */
static struct place_sec price_within(struct placer *pl, double limit)
{
    const struct place_step *s = pl->step;
    int n = s->traffic.messages;
    struct place_sec sec = {0, 0};
    struct partial p = {0};

    memcpy(p.one, pl->floor_one, sizeof(p.one));
    for (int i = -1; i < n; i++) {
        int at = i < 0 ? pl->telling : i;
        if (p.known[at])
            continue;
        sec.most = sec.mean = with_span(pl, &p, &s->traffic.message[at]);
        if (isnan(sec.most)) {
            sec.most = place_price_by(s, pl->pricer, &sec.mean, NULL);
            return sec;
        }
        if (sec.most > limit * (1 + LIMIT_MARGIN)) {
            pl->telling = at;
            return sec;
        }
    }
    sec.mean = place_step_sec(s, p.mean);
    return sec;
}

struct place_sec placer_within(struct placer *pl, const int *order, double limit)
{
    const struct place_step *s = pl->step;
    bool grows = s->traffic.messages > 0 && !(s->trains && s->recipe.schedule == SCHEDULE_DUALPIPE);
    struct place_sec sec = {NAN, NAN};

    if (pl->ask->progress)
        progress_show(&pl->progress, fmin(pl->spent, pl->budget), "orders of ranks");
    pl->tried++;
    pl->spent += pl->unit;
    if (pl->ask->demand)
        return demand_of(pl, order);
    if (place_reorder(&pl->pricer, pl->ask->matrix, order, pl->ranks, NULL) < 0)
        return sec;
    if (limit < INFINITY && grows)
        return price_within(pl, limit);
    sec.most = place_price_by(s, pl->pricer, &sec.mean, NULL);
    return sec;
}

/* --- the best order so far --- */

enum place_tried place_try(struct place_best *b, struct placer *pl, int *order, const char *how,
                           struct place_sec *out)
{
    uint64_t hash = 1;

    node_pool_in_slot_order(pl->pool, order, b->ranks);
    for (int r = 0; r < b->ranks; r++)
        hash = map_mix(hash, (uint64_t)order[r]);
    int *seen = map_at(&b->seen, hash, NULL, NULL);
    if (*seen != MAP_NONE)
        return TRIED_BEFORE;
    *seen = 1;
    double limit = !(b->sec.most < INFINITY) ? INFINITY
                   : out                     ? fmax(out->most, b->sec.most)
                                             : b->sec.most;
    struct place_sec sec = placer_within(pl, order, limit);
    if (out)
        *out = sec;
    if (!place_better(sec, b->sec))
        return TRIED_WORSE;
    b->sec = sec;
    memcpy(b->order, order, (size_t)b->ranks * sizeof(int));
    if (how)
        snprintf(b->how, sizeof(b->how), "%s", how);
    return TRIED_BEST;
}
