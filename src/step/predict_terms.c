/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict_parts.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"

static struct term *push(struct prediction *p, enum term_kind kind, const char *label, double sec,
                         enum basis basis)
{
    MEM_PUSH(p->term, p->terms) =
        (struct term){.kind = kind, .label = label, .sec = sec, .basis = basis, .exception = -1};
    return &p->term[p->terms - 1];
}

/* Each part that takes time; returns the variance of their sum. */
static double push_compute(struct prediction *p, const struct timing *t)
{
    double var = 0;

    for (int i = 0; i < WORK_PARTS; i++) {
        if (!(t->part[i] > 0))
            continue;
        struct term *one = push(p, TERM_COMPUTE, work_name[i], t->part[i], p->rate.basis);
        one->error = p->anchored ? 0 : one->sec * p->rate.error[i]; /* what the anchor settles */
        snprintf(one->source, sizeof(one->source), "%s", p->rate.part_source[i]);
        p->compute += one->sec;
        var += one->error * one->error;
    }
    return var;
}

/* What is hidden may be seen when the constant errs; what is seen errs with the curve too. Returns
 * the variance of those inside the pipeline. */
static double push_messages(struct prediction *p, const struct question *q, const struct timing *t,
                            const struct traffic *tr, struct term *messages)
{
    double var = 0;

    for (int i = 0; i < tr->messages; i++) {
        struct term *m = &messages[i];
        const struct constant *c = constants_get(q->constants, exposure_name[m->exposure]);
        m->sec = t->seen[i];
        m->hidden = t->raw[i] - t->seen[i];
        if (m->exposure == EXPOSE_WINDOW) {
            m->error = hypot(m->sec * m->one_error, m->hidden * c->value * c->error);
        } else {
            m->error = m->sec * hypot(m->one_error, c->error);
            var += m->error * m->error;
        }
        MEM_PUSH(p->term, p->terms) = *m;
    }
    return var;
}

/* Idle time of a rank while the pipeline fills and drains. */
static void push_bubble(struct prediction *p, const struct question *q, const struct timing *t,
                        double var)
{
    int pp = q->layout->size[AXIS_PP];
    double share = (double)(pp - 1) / q->recipe->stages / p->microbatches;

    p->bubble_share = share;
    if (pp < 2)
        return;
    struct term *one = push(p, TERM_BUBBLE, "pipeline bubble", t->bubble, BASIS_MODELLED);
    one->error = t->bubble * sqrt(var) / (p->compute > 0 ? p->compute : 1);
    snprintf(one->source, sizeof(one->source),
             "%s: p = %d stages, v = %d chunks, m = %d microbatches (%s); the slowest stage is the "
             "one %s the output head",
             schedule_name[q->recipe->schedule], pp, q->recipe->stages, p->microbatches,
             q->recipe->schedule == SCHEDULE_DUALPIPE ? "DeepSeek-V3 2024, table 2"
             : q->recipe->schedule >= SCHEDULE_ZB_H1  ? "Qi et al. 2023, table 2"
                                                      : "Narayanan et al. 2021, 2.2",
             t->last ? "with" : "without");
}

/* Adam on the rank's shard of states: memory traffic over memory rate. */
static void push_optimizer(struct prediction *p, const struct question *q, const struct timing *t,
                           const struct work *w)
{
    const struct constant *bytes = constants_get(q->constants, "optimizer.bytes_per_param");
    const struct constant *share = constants_get(q->constants, "optimizer.hbm_share");

    if (!(p->rate.hbm_Bps > 0)) {
        predict_note(
            p, "the optimizer's time is left out: the memory rate of this machine is not known");
        return;
    }
    struct term *one = push(p, TERM_OPTIMIZER, "optimizer", t->optimizer, BASIS_MODELLED);
    one->error = one->sec * hypot(bytes->error, share->error);
    snprintf(one->source, sizeof(one->source), "%.3g parameters x %.0f B over %.2f of %.2f TB/s",
             w->updated, bytes->value, share->value, p->rate.hbm_Bps / 1e12);
}

static void push_fixed(struct prediction *p, const struct question *q, const struct timing *t)
{
    const struct constant *c = constants_get(q->constants, "fixed.seconds");
    const struct {
        const char *label;
        double sec;
    } given[] = {{"evaluation", t->eval}, {"checkpoints", t->checkpoint}, {"given", t->other}};

    struct term *one = push(p, TERM_FIXED, "fixed", t->fixed, BASIS_FITTED);
    one->error = c->value * c->error;
    snprintf(one->source, sizeof(one->source), "%s", c->source);
    for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
        if (given[i].sec > 0) {
            one = push(p, TERM_FIXED, given[i].label, given[i].sec, BASIS_ASSUMED);
            snprintf(one->source, sizeof(one->source), "as the recipe gives it");
        }
}

void predict_terms(struct prediction *p, const struct question *q, const struct timing *t,
                   const struct work *w, const struct traffic *tr, struct term *messages)
{
    double var = push_compute(p, t);

    var += push_messages(p, q, t, tr, messages);
    push_bubble(p, q, t, var);
    push_optimizer(p, q, t, w);
    push_fixed(p, q, t);
}
