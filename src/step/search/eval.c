/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/eval.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

int eval_coefficients(struct coefficients *c, double *peak, const struct question *q,
                      const struct layout *l, const struct recipe *r, struct err *err)
{
    struct question at = *q;
    struct rate rate;

    at.layout = l;
    at.recipe = r;
    if (rate_numbers(&rate, &at, err) < 0)
        return -1;
    *peak = rate.peak;
    coefficients_of(c, &rate, q->constants, rate_stretch(&rate, &at));
    return 0;
}

int eval_open(struct eval *e, const struct question *q, const struct recipe *base, int ranks,
              struct err *err)
{
    memset(e, 0, sizeof(*e));
    e->question = q;
    e->by_shape = q->matrix->compute.gemms > 0 || q->matrix->compute.kernels > 0;
    if (eval_coefficients(&e->coefficients, &e->peak, q, NULL, base, err) < 0)
        return -1;
    e->capacity = q->fabric ? q->fabric->gpu.memory_bytes.value : 0;
    return pricer_open(&e->pricer, q->matrix, q->order, ranks, err);
}

/* Data that a candidate shares with the previous one. */
enum shared { SHARED_NOTHING, SHARED_BUT_SCHEDULE, SHARED_BUT_BATCH };

static enum shared shared_of(const struct evaluation *v, const struct layout *l,
                             const struct recipe *r)
{
    enum { REST = offsetof(struct recipe, strategy) };
    const struct recipe *was = &v->recipe;

    if (memcmp((const char *)was + REST, (const char *)r + REST, sizeof(*r) - REST) != 0 ||
        memcmp(&v->layout, l, sizeof(*l)) != 0)
        return SHARED_NOTHING;
    if (was->schedule == r->schedule && was->stages == r->stages)
        return SHARED_BUT_BATCH;
    bool either = was->schedule == SCHEDULE_DUALPIPE || r->schedule == SCHEDULE_DUALPIPE;
    return either ? SHARED_NOTHING : SHARED_BUT_SCHEDULE;
}

static void set_batch(struct evaluation *v, int micro_batch)
{
    v->recipe.micro_batch = micro_batch;
    step_batch(&v->step, &v->recipe);
}

/* Work is computed for one micro batch and scales with the tokens of others.  Measured products
 * have different rates at each. */
static void set_pace(struct evaluation *v, const struct eval *e)
{
    bool fresh = !v->first;
    double peak;

    if (fresh) {
        v->first = v->recipe.micro_batch;
        v->tokens = v->step.tokens;
        if (v->layers_first != v->first)
            work_layers_of(&v->layers, &v->step);
        v->layers_first = v->first;
        work_stages(&v->work, &v->layers, &v->step);
        v->rates = &e->coefficients;
    }
    if (e->by_shape)
        v->rates = eval_coefficients(&v->own, &peak, e->question, &v->layout, &v->recipe, NULL) == 0
                       ? &v->own
                       : &e->coefficients;
    if (fresh || e->by_shape)
        pace_of(&v->pace, &v->work, v->rates);
    pace_at(&v->seconds, &v->pace, v->step.tokens / v->tokens, v->rates->stretch);
}

static struct timing_step timing_step(const struct evaluation *v)
{
    const struct step *s = &v->step;

    return (struct timing_step){&v->seconds, s->updated, s->microbatches, v->layout.size[AXIS_PP],
                                v->rates,    &v->recipe};
}

/* Sums of the same numbers in another order differ in their last bits. */
#define LEAST_ROUNDING (1 - 1e-9)

/* Work, memory and messages do not depend on the schedule if the stages hold the same, except for
 * messages between stages. */
static void set_step(struct evaluation *v, const struct eval *e, const struct layout *l,
                     const struct recipe *r, bool but_schedule)
{
    struct step was = v->step;

    v->layers_first = but_schedule ? v->layers_first : 0;
    v->layout = *l;
    v->recipe = *r;
    step_of(&v->step, e->question->model, &v->layout, &v->recipe);
    bool same = but_schedule && step_alike(&was, &v->step);
    v->shares = same && (v->listed || v->shares) && v->first == r->micro_batch;
    v->listed = false;
    if (!same || v->first != r->micro_batch)
        v->first = 0;
    if (!same)
        memory_stages(v->stage, &v->step, e->question->constants);
}

bool eval_fits(struct evaluation *v, const struct eval *e, const struct layout *l,
               const struct recipe *r)
{
    enum shared shared = shared_of(v, l, r);
    int fullest;

    if (shared != SHARED_BUT_BATCH)
        set_step(v, e, l, r, shared == SHARED_BUT_SCHEDULE);
    set_batch(v, r->micro_batch);
    v->bytes = memory_fullest(v->stage, &v->step, e->question->constants, &fullest);
    v->fits = memory_holds(e->capacity, v->bytes);
    if (!v->fits)
        return false;
    set_pace(v, e);
    struct timing_step s = timing_step(v);
    v->least = LEAST_ROUNDING * timing_least(&s);
    return true;
}

/* True for a power of two, by which multiplication is exact. */
static bool is_exact(double times)
{
    int exponent;

    return frexp(times, &exponent) == 0.5;
}

/* Scale the list to the current micro batch. */
static void set_list(struct evaluation *v)
{
    const struct step *s = &v->step;
    double tokens = s->tokens / v->list_tokens;

    for (uint64_t left = v->moving; left; left &= left - 1)
        v->traffic.message[__builtin_ctzll(left)].bytes *= tokens;
    timing_batch(&v->list, s->microbatches / v->microbatches);
    v->list_tokens = s->tokens;
    v->microbatches = s->microbatches;
}

/* Find the curve of a message, mostly that of the previous list, because lists of one layout differ
 * little. */
static void find_curve(struct evaluation *v, const struct eval *e, int i)
{
    const struct message *m = &v->traffic.message[i];
    const struct evaluation_key key = {m->span, m->op, m->kernel};

    if (v->curve[i] && memcmp(&v->key[i], &key, sizeof(key)) == 0)
        return;
    v->curve[i] = pricer_curve(e->pricer, m);
    v->key[i] = key;
}

/* Make messages, their curves, and prices of messages that do not grow with the micro batch. */
static void make_list(struct evaluation *v, const struct eval *e)
{
    struct traffic *t = &v->traffic;
    uint64_t still = 0;

    traffic_of(t, &v->step);
    v->moving = 0;
    for (int i = 0; i < t->messages; i++) {
        find_curve(v, e, i);
        *(t->message[i].per_token ? &v->moving : &still) |= (uint64_t)1 << i;
    }
    v->still = pricer_curves_at(e->pricer, v->curve, t->message, still, v->one);
}

/* Make the list for the first micro batch. */
static void list(struct evaluation *v, const struct eval *e)
{
    int micro_batch = v->recipe.micro_batch;

    set_batch(v, v->first);
    double tokens = v->step.tokens / v->list_tokens;
    if (v->shares && is_exact(tokens)) {
        set_list(v);
        traffic_schedule(&v->traffic, &v->step);
    } else {
        make_list(v, e);
    }
    timing_list_of(&v->list, &v->traffic, v->rates, &v->recipe);
    v->listed = true;
    v->list_tokens = v->step.tokens;
    v->microbatches = v->step.microbatches;
    set_batch(v, micro_batch);
}

/* Set seconds of each message.  Returns the sum over one of each: NAN or INFINITY as soon as one
 * is. */
static double price(struct evaluation *v, const struct eval *e)
{
    if (!v->listed)
        list(v, e);
    set_list(v);
    return v->still + pricer_curves_at(e->pricer, v->curve, v->traffic.message, v->moving, v->one);
}

void eval_price(struct evaluation *v, const struct eval *e)
{
    struct timing_step s = timing_step(v);

    v->timing.sec = price(v, e);
    if (v->timing.sec < INFINITY)
        timing_at(&v->timing, &s, &v->list, v->one);
}
