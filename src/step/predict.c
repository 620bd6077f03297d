/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/predict_parts.h"
#include "step/release.h"

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

/* What software, clocks and recipes that are not told apart make of a whole step. */
static double recipe_error(const struct prediction *p, const struct question *q)
{
    bool experts = model_has_experts(q->model);

    return constants_get(q->constants, p->anchored ? "error.anchored"
                                       : experts   ? "error.unanchored.experts"
                                                   : "error.unanchored")
        ->value;
}

/* Terms err independently; the recipe errs for the whole step. */
static void add_up(struct prediction *p, const struct question *q)
{
    const double z90 = 1.645; /* 90 % of a normal distribution lie within 1.645 deviations */
    double var = 0, whole = recipe_error(p, q);

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
    whole = hypot(whole, q->doubt);
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
    p->causal = r->causal;
    p->mfu = p->rate.peak > 0 ? p->model_flops / p->sec / p->ranks / p->rate.peak : NAN;
    snprintf(p->model, sizeof(p->model), "%s", q->model->name);
    snprintf(p->strategy, sizeof(p->strategy), "%s", strategy_name[r->strategy]);
    layout_text(p->layout, sizeof(p->layout), q->layout);
}

static void bytes(struct prediction *p, const struct question *q)
{
    struct memory_constants c;

    memory_constants_of(&c, q->constants);
    memory_of(&p->memory, q->model, q->layout, q->recipe,
              q->fabric ? q->fabric->gpu.memory_bytes.value : 0, &c);
    if (!(p->memory.capacity > 0))
        predict_note(p, "the memory of these devices is not known: whether it fits is not judged");
}

static void note_stages(struct prediction *p, const struct question *q)
{
    char buf[160];

    if (*layout_stages_text(buf, sizeof(buf), q->layout, q->model, q->recipe))
        predict_note(p, "layers do not divide evenly: %s; the fullest one sets the pace", buf);
}

static void note_frozen(struct prediction *p, const struct question *q)
{
    if (q->recipe->lora)
        predict_note(
            p,
            "adapters of rank %d on %s: other weights are frozen and have neither gradients "
            "nor optimizer states",
            q->recipe->lora_rank, q->recipe->lora == LORA_ALL ? "all products" : "attention");
}

/* What the release is worth, and that it is in the answer. */
static double release(struct prediction *p, const struct question *q)
{
    double factor = release_stretch(&p->rate, q->constants, q->release, q->model);

    if (factor != 1 && q->release)
        predict_note(p, "release %.60s: compute takes %.3g of what the other constants say",
                     q->release, factor);
    else if (factor != 1)
        predict_note(p,
                     "release of the software not stated: compute takes %.3g of what the other "
                     "constants say, the middle of published releases",
                     factor);
    return factor;
}

/* work -> traffic -> prices -> timing -> words. */
int predict_step(struct prediction *p, const struct question *q, struct err *err)
{
    double stretch = (q->stretch > 0 ? q->stretch : 1) / (q->shrink > 0 ? q->shrink : 1);
    double one[TRAFFIC_MAX];
    struct coefficients c;
    struct traffic traffic;
    struct timing t;
    struct work w;

    memset(p, 0, sizeof(*p));
    p->ranks = q->layout->ranks;
    p->anchored = q->stretch > 0;
    p->microbatches = layout_microbatches(q->layout, q->recipe);
    if (rate_of(&p->rate, q, err) < 0)
        return -1;
    work_of(&w, q->model, q->layout, q->recipe);
    traffic_of(&traffic, q->model, q->layout, q->recipe);
    stretch *= release(p, q);
    coefficients_of(&c, &p->rate, q->constants, stretch);
    struct term *messages = mem_calloc(TRAFFIC_MAX, sizeof(*messages));
    int rc = predict_price(messages, one, q, &traffic, err);
    if (rc == 0) {
        timing_of(&t, &traffic, one, &w, &c, q->layout, q->recipe);
        predict_terms(p, q, &t, &w, &traffic, messages);
        add_up(p, q);
        figures(p, q);
        note_stages(p, q);
        note_frozen(p, q);
        bytes(p, q);
    }
    free(messages);
    return rc;
}

int predict_layout(struct prediction *p, const struct matrix *m, const char *model,
                   const char *layout, enum strategy strategy, int batch, struct err *err)
{
    struct constants constants = {0};
    struct fabric fabric = {0};
    struct model arch = {0};
    struct layout l;
    struct recipe r;

    memset(p, 0, sizeof(*p));
    recipe_defaults(&r);
    r.strategy = strategy;
    r.global_batch = batch;
    int rc = constants_load(&constants, NULL, err) < 0 || model_load(&arch, model, err) < 0 ||
             matrix_preset(&fabric, m, NULL, err) < 0 ||
             layout_parse(&l, layout, strategy, ORDER_MEGATRON, 0, err) < 0 ||
             layout_check(&l, &arch, &r, err) < 0;
    struct question q = {.matrix = m,
                         .fabric = fabric.name ? &fabric : NULL,
                         .model = &arch,
                         .layout = &l,
                         .recipe = &r,
                         .constants = &constants};
    if (!rc)
        rc = predict_step(p, &q, err) < 0;
    model_free(&arch);
    fabric_free(&fabric);
    constants_free(&constants);
    return rc ? -1 : 0;
}
