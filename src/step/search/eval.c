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
    e->by_shape = q->matrix->compute.gemms > 0;
    if (eval_coefficients(&e->coefficients, &e->peak, q, NULL, base, err) < 0)
        return -1;
    e->capacity = q->fabric ? q->fabric->gpu.memory_bytes.value : 0;
    return pricer_open(&e->pricer, q->matrix, q->order, ranks, err);
}

void eval_close(struct eval *e)
{
    pricer_close(e->pricer);
    memset(e, 0, sizeof(*e));
}

/* Is it the candidate before but for its micro batch? */
static bool differs_in_batch(const struct evaluation *v, const struct layout *l,
                             const struct recipe *r)
{
    enum { AT = offsetof(struct recipe, micro_batch), AFTER = AT + sizeof(r->micro_batch) };
    const char *was = (const char *)&v->recipe, *is = (const char *)r;

    return !memcmp(&v->layout, l, sizeof(*l)) && !memcmp(was, is, AT) &&
           !memcmp(was + AFTER, is + AFTER, sizeof(*r) - AFTER);
}

static void set_batch(struct evaluation *v, int micro_batch)
{
    v->recipe.micro_batch = micro_batch;
    step_batch(&v->step, &v->recipe);
}

/* Work is of one micro batch, and grows with the tokens of others; measured products have rates of
 * their own at each. */
static void set_pace(struct evaluation *v, const struct eval *e)
{
    bool fresh = !v->first;
    double peak;

    if (fresh) {
        v->first = v->recipe.micro_batch;
        v->tokens = v->step.tokens;
        work_of(&v->work, &v->step);
        v->rates = &e->coefficients;
    }
    if (e->by_shape)
        v->rates = eval_coefficients(&v->own, &peak, e->question, &v->layout, &v->recipe, NULL) == 0
                       ? &v->own
                       : &e->coefficients;
    if (fresh || e->by_shape)
        pace_of(&v->pace, &v->work, v->rates);
}

/* Sums of the same numbers in another order differ in their last bits. */
#define LEAST_ROUNDING (1 - 1e-9)

bool eval_fits(struct evaluation *v, const struct eval *e, const struct layout *l,
               const struct recipe *r)
{
    if (!differs_in_batch(v, l, r)) {
        v->layout = *l;
        v->recipe = *r;
        v->first = 0;
        v->listed = false;
        step_of(&v->step, e->question->model, &v->layout, &v->recipe);
        memory_stages(v->stage, &v->step, e->question->constants);
    }
    set_batch(v, r->micro_batch);
    memory_fullest(&v->memory, v->stage, &v->step, e->capacity, e->question->constants);
    v->fits = memory_fits(&v->memory);
    if (!v->fits)
        return false;
    set_pace(v, e);
    v->least = LEAST_ROUNDING * timing_least(&v->pace, v->step.tokens / v->tokens, v->step.updated,
                                             v->rates, &v->layout, &v->recipe);
    return true;
}

/* Messages of the first micro batch; those that do not grow with it are priced. */
static void list(struct evaluation *v, const struct eval *e)
{
    int micro_batch = v->recipe.micro_batch;

    v->listed = true;
    set_batch(v, v->first);
    traffic_of(&v->traffic, &v->step);
    set_batch(v, micro_batch);
    for (int i = 0; i < v->traffic.messages; i++) {
        const struct message *msg = &v->traffic.message[i];
        v->curve[i] = pricer_curve(e->pricer, msg);
        if (!msg->per_token)
            v->one[i] = pricer_curve_at(e->pricer, v->curve[i], msg);
    }
}

/* Seconds of each message, and of one of each together: NAN or INFINITY as soon as one is. */
static double price(struct evaluation *v, const struct eval *e)
{
    double sum = 0;

    if (!v->listed)
        list(v, e);
    traffic_batch(&v->traffic, &v->step);
    for (int i = 0; i < v->traffic.messages; i++) {
        const struct message *msg = &v->traffic.message[i];
        if (msg->per_token)
            v->one[i] = pricer_curve_at(e->pricer, v->curve[i], msg);
        sum += v->one[i];
    }
    return sum;
}

void eval_price(struct evaluation *v, const struct eval *e)
{
    v->timing.sec = price(v, e);
    if (v->timing.sec < INFINITY)
        timing_at(&v->timing, &v->traffic, v->one, &v->pace, v->step.tokens / v->tokens, v->rates,
                  &v->layout, &v->recipe);
}
