/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/overlap.h"

const char *const term_name[TERM_COUNT] = {"compute", "message", "bubble", "optimizer", "fixed"};

void prediction_free(struct prediction *p)
{
    free(p->term);
    free(p->note);
    memset(p, 0, sizeof(*p));
}

void predict_note(struct prediction *p, const char *fmt, ...)
{
    va_list ap;

    (void)MEM_PUSH(p->note, p->notes);
    va_start(ap, fmt);
    vsnprintf(p->note[p->notes - 1], PREDICT_NOTE, fmt, ap);
    va_end(ap);
}

static struct term *push(struct prediction *p, struct term t)
{
    t.exception = t.kind == TERM_MESSAGE ? t.exception : -1;
    MEM_PUSH(p->term, p->terms) = t;
    return &p->term[p->terms - 1];
}

/* Executed FLOPs of one rank and microbatch; a third of training FLOPs is forward. */
static void compute_of(struct compute_time *t, const struct question *q, const struct rate *rate)
{
    const struct recipe *r = q->recipe;
    const struct layout *l = q->layout;
    struct flops f;
    double share = (double)r->seq * r->micro_batch /
                   ((double)l->size[AXIS_TP] * l->size[AXIS_CP] * l->size[AXIS_PP]) /
                   (q->shrink > 0 ? q->shrink : 1) * (q->stretch > 0 ? q->stretch : 1);

    model_flops(q->model, r->seq, r->causal, &f);
    double linear = (f.linear + f.head) * share / 3 / rate->linear,
           core = f.core * share / 3 / rate->core;
    bool full = r->recompute == RECOMPUTE_FULL, some = r->recompute != RECOMPUTE_NONE;
    t->linear = linear * (full ? 4 : 3);
    t->core = core * (some ? 4 : 3);
    t->forward = linear + core;
    t->backward = t->linear + t->core - t->forward;
}

static void push_compute(struct prediction *p, const struct compute_time *t, const struct rate *r)
{
    struct term one = {.kind = TERM_COMPUTE, .basis = r->basis};

    snprintf(one.source, sizeof(one.source), "%s", r->source);
    one.label = "matrix products";
    one.sec = t->linear * p->microbatches;
    one.error = p->anchored ? 0 : one.sec * r->linear_error; /* what the anchor settles */
    push(p, one);
    one.label = "attention core";
    one.sec = t->core * p->microbatches;
    one.error = p->anchored ? 0 : one.sec * r->core_error;
    push(p, one);
    p->compute = (t->linear + t->core) * p->microbatches;
}

/* Idle time of a rank while the pipeline fills and drains: (p-1)/v of what a microbatch takes. */
static void push_bubble(struct prediction *p, const struct question *q)
{
    int pp = q->layout->size[AXIS_PP];
    double share = (double)(pp - 1) / q->recipe->stages / p->microbatches, sec = 0, var = 0;

    p->bubble_share = share;
    if (pp < 2)
        return;
    for (int i = 0; i < p->terms; i++) {
        bool inside = p->term[i].kind == TERM_COMPUTE || p->term[i].phase == PHASE_LAYER ||
                      p->term[i].phase == PHASE_BOUNDARY;
        sec += inside ? p->term[i].sec : 0;
        var += inside ? p->term[i].error * p->term[i].error : 0;
    }
    struct term *t = push(p, (struct term){.kind = TERM_BUBBLE,
                                           .label = "pipeline bubble",
                                           .sec = sec * share,
                                           .error = sqrt(var) * share,
                                           .basis = BASIS_MODELLED});
    snprintf(t->source, sizeof(t->source),
             "(p-1)/(v m) = %d/(%d x %d) of a pipeline's work (Narayanan "
             "et al. 2021, 2.2)",
             pp - 1, q->recipe->stages, p->microbatches);
}

/* Adam on the rank's shard of states: memory traffic over memory rate. */
static void push_optimizer(struct prediction *p, const struct question *q)
{
    const struct constant *bytes = constants_get(q->constants, "optimizer.bytes_per_param");
    const struct constant *share = constants_get(q->constants, "optimizer.hbm_share");
    double params = traffic_params(q->model, q->layout) /
                    layout_span(q->layout, layout_shard_axes(q->layout, q->recipe)).size;

    if (!(p->rate.hbm_Bps > 0)) {
        predict_note(
            p, "the optimizer's time is left out: the memory rate of this machine is not known");
        return;
    }
    struct term *t =
        push(p, (struct term){.kind = TERM_OPTIMIZER,
                              .label = "optimizer",
                              .sec = params * bytes->value / (p->rate.hbm_Bps * share->value),
                              .basis = BASIS_MODELLED});
    t->error = t->sec * hypot(bytes->error, share->error);
    snprintf(t->source, sizeof(t->source), "%.3g parameters x %.0f B over %.2f of %.2f TB/s",
             params, bytes->value, share->value, p->rate.hbm_Bps / 1e12);
}

static void push_fixed(struct prediction *p, const struct question *q)
{
    const struct constant *c = constants_get(q->constants, "fixed.seconds");

    struct term *t = push(p, (struct term){.kind = TERM_FIXED,
                                           .label = "fixed",
                                           .sec = c->value,
                                           .error = c->value * c->error,
                                           .basis = BASIS_FITTED});
    snprintf(t->source, sizeof(t->source), "%s", c->source);
}

/* Terms err independently; the recipe (software, clocks) errs for the whole step. */
static void add_up(struct prediction *p, const struct question *q)
{
    const double z90 = 1.645; /* 90 % of a normal distribution lie within 1.645 deviations */
    const char *recipe = p->anchored ? "error.anchored" : "error.unanchored";
    double var = 0, whole = constants_get(q->constants, recipe)->value;

    p->sec = 0;
    for (int i = 0; i < p->terms; i++) {
        const struct term *t = &p->term[i];
        p->sec += t->sec;
        var += t->error * t->error;
        if (t->kind == TERM_MESSAGE) {
            p->exposed += t->sec;
            p->hidden += t->hidden;
        }
    }
    double half = z90 * sqrt(var + whole * whole * p->sec * p->sec);
    p->hi = p->sec + half;
    p->lo = p->sec * p->sec / p->hi; /* errors multiply: half the time is as far off as twice */
    if (p->anchored)
        predict_note(p,
                     "anchored: by one measured step of this recipe compute takes %.3f of what the "
                     "constants say; the interval allows %.0f %% for the recipe beside the errors "
                     "of the terms",
                     q->stretch, 100 * whole * z90);
    else
        predict_note(p,
                     "no anchor: no measured step calibrates this recipe; the interval allows "
                     "%.0f %% for that beside the errors of the terms",
                     100 * whole * z90);
}

static void figures(struct prediction *p, const struct question *q)
{
    const struct recipe *r = q->recipe;
    struct flops f;

    model_flops(q->model, r->seq, r->causal, &f);
    p->tokens = (double)r->global_batch * r->seq;
    p->tokens_per_gpu = p->tokens / p->sec / p->ranks;
    p->model_flops = flops_total(&f) * p->tokens;
    p->mfu = p->rate.peak > 0 ? p->model_flops / p->sec / p->ranks / p->rate.peak : NAN;
    snprintf(p->model, sizeof(p->model), "%s", q->model->name);
    snprintf(p->strategy, sizeof(p->strategy), "%s", strategy_name[r->strategy]);
    layout_text(p->layout, sizeof(p->layout), q->layout);
}

static int check_order(const struct question *q, struct err *err)
{
    int endpoints = q->matrix->topo.endpoints;

    if (q->layout->ranks > endpoints)
        return err_usage(err, "the layout needs %d ranks and the matrix has %d endpoints",
                         q->layout->ranks, endpoints);
    for (int i = 0; q->order && i < q->layout->ranks; i++)
        if (q->order[i] < 0 || q->order[i] >= endpoints)
            return err_usage(err, "rank %d is placed on endpoint %d, and the matrix has 0..%d", i,
                             q->order[i], endpoints - 1);
    return 0;
}

int predict_step(struct prediction *p, const struct question *q, struct err *err)
{
    struct compute_time t;

    memset(p, 0, sizeof(*p));
    p->ranks = q->layout->ranks;
    p->anchored = q->stretch > 0;
    p->microbatches = layout_microbatches(q->layout, q->recipe);
    if (check_order(q, err) < 0 ||
        rate_of(&p->rate, q->matrix, q->fabric, q->recipe->dtype, q->constants, err) < 0)
        return -1;
    compute_of(&t, q, &p->rate);
    push_compute(p, &t, &p->rate);
    if (predict_messages(p, q, &t, err) < 0)
        return -1;
    push_bubble(p, q);
    push_optimizer(p, q);
    push_fixed(p, q);
    add_up(p, q);
    figures(p, q);
    return 0;
}

int predict_layout(struct prediction *p, const struct matrix *m, const char *model,
                   const char *layout, enum strategy strategy, struct err *err)
{
    struct constants constants = {0};
    struct fabric fabric = {0};
    struct model arch = {0};
    struct layout l;
    struct recipe r;

    memset(p, 0, sizeof(*p));
    recipe_defaults(&r);
    r.strategy = strategy;
    int rc = constants_load(&constants, NULL, err) < 0 || model_load(&arch, model, err) < 0 ||
             (m->fabric && fabric_load(&fabric, m->fabric, err) < 0) ||
             layout_parse(&l, layout, strategy, ORDER_MEGATRON, 0, err) < 0 ||
             layout_check(&l, &arch, &r, err) < 0;
    struct question q = {m, m->fabric ? &fabric : NULL, &arch, &l, &r, NULL, &constants, 0};
    if (!rc)
        rc = predict_step(p, &q, err) < 0;
    model_free(&arch);
    fabric_free(&fabric);
    constants_free(&constants);
    return rc ? -1 : 0;
}
