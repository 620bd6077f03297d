/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/search/eval.h"

#include <math.h>
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
    struct recipe was = v->recipe;

    was.micro_batch = r->micro_batch;
    return !memcmp(&was, r, sizeof(was)) && !memcmp(&v->layout, l, sizeof(*l));
}

/* Work and messages; those that do not grow with the micro batch are priced. */
static void list(struct evaluation *v, const struct eval *e)
{
    v->listed = true;
    v->tokens = v->step.tokens;
    work_of(&v->work, &v->step);
    pace_of(&v->pace, &v->work, &e->coefficients);
    traffic_of(&v->traffic, &v->step);
    for (int i = 0; i < v->traffic.messages; i++) {
        const struct message *msg = &v->traffic.message[i];
        v->curve[i] = pricer_curve(e->pricer, msg);
        v->one[i] = pricer_curve_at(e->pricer, v->curve[i], msg);
    }
}

/* Seconds of each message, and of one of each together: NAN or INFINITY as soon as one is. */
static double price(struct evaluation *v, const struct eval *e)
{
    double sum = 0;

    if (!v->listed)
        list(v, e);
    else
        traffic_batch(&v->traffic, &v->step);
    for (int i = 0; i < v->traffic.messages; i++) {
        const struct message *msg = &v->traffic.message[i];
        if (msg->per_token)
            v->one[i] = pricer_curve_at(e->pricer, v->curve[i], msg);
        sum += v->one[i];
    }
    return sum;
}

void eval_candidate(struct evaluation *v, const struct eval *e, const struct layout *l,
                    const struct recipe *r)
{
    const struct coefficients *c = &e->coefficients;
    struct coefficients here;
    double peak;

    if (!differs_in_batch(v, l, r)) {
        v->layout = *l;
        v->recipe = *r;
        v->listed = false;
        step_of(&v->step, e->question->model, &v->layout, &v->recipe);
        memory_stages(v->stage, &v->step, e->question->constants);
    }
    v->recipe.micro_batch = r->micro_batch;
    step_batch(&v->step, &v->recipe);
    memory_fullest(&v->memory, v->stage, &v->step, e->capacity, e->question->constants);
    v->fits = memory_fits(&v->memory);
    if (!v->fits)
        return;
    v->timing.sec = price(v, e);
    if (!(v->timing.sec < INFINITY))
        return;
    if (e->by_shape && eval_coefficients(&here, &peak, e->question, l, r, NULL) == 0) {
        c = &here;
        pace_of(&v->pace, &v->work, c);
    }
    timing_at(&v->timing, &v->traffic, v->one, &v->pace, v->step.tokens / v->tokens, c, l, r);
}
