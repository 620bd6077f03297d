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
    if (rate_of(&rate, &at, err) < 0)
        return -1;
    *peak = rate.peak;
    coefficients_of(c, &rate, q->constants,
                    (q->stretch > 0 ? q->stretch : 1) *
                        rate_release(&rate, q->constants, q->release, q->model));
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
    memory_constants_of(&e->memory, q->constants);
    e->capacity = q->fabric ? q->fabric->gpu.memory_bytes.value : 0;
    return pricer_open(&e->pricer, q->matrix, q->order, ranks, err);
}

void eval_close(struct eval *e)
{
    pricer_close(e->pricer);
    memset(e, 0, sizeof(*e));
}

void eval_candidate(struct evaluation *v, const struct eval *e, const struct layout *l,
                    const struct recipe *r)
{
    const struct model *m = e->question->model;
    double sum = 0; /* NAN or INFINITY as soon as one message is */

    memory_of(&v->memory, m, l, r, e->capacity, &e->memory);
    v->fits = memory_fits(&v->memory);
    if (!v->fits)
        return;
    work_of(&v->work, m, l, r);
    traffic_of(&v->traffic, m, l, r);
    for (int i = 0; i < v->traffic.messages; i++) {
        const struct message *msg = &v->traffic.message[i];
        v->one[i] = pricer_message(e->pricer, msg);
        sum += v->one[i];
    }
    if (!(sum < INFINITY)) {
        v->timing.sec = sum;
        return;
    }
    const struct coefficients *c = &e->coefficients;
    struct coefficients here;
    double peak;
    if (e->by_shape && eval_coefficients(&here, &peak, e->question, l, r, NULL) == 0)
        c = &here;
    timing_of(&v->timing, &v->traffic, v->one, &v->work, c, l, r);
}
