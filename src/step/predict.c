/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "step/pricer.h"
#include "step/timing.h"

/* Set "group 3 of 8: ranks 24, 25 .. 31 on r00n06 .. r00n07". */
static void name_group(struct term *t, const struct question *q, const struct groups *g)
{
    const struct topo *topo = &q->matrix->topo;
    int last = g->span.size - 1, first = span_rank(&g->span, t->index, 0);
    int *ids = mem_calloc((size_t)g->span.size, sizeof(*ids));
    int step = g->span.stride;
    char list[48], where[96];

    groups_ids(g, q->order, t->index, ids);
    shape_of(&t->shape, topo, ids, g->span.size);
    int from = topo->endpoint[ids[0]].place.at[LEVEL_HOST];
    int to = topo->endpoint[ids[last]].place.at[LEVEL_HOST];
    if (last == 1)
        snprintf(list, sizeof(list), "%d, %d", first, first + step);
    else
        snprintf(list, sizeof(list), "%d, %d .. %d", first, first + step, first + last * step);
    if (from == to)
        snprintf(where, sizeof(where), "%s", topo->host[from].name);
    else
        snprintf(where, sizeof(where), "%.40s .. %.40s", topo->host[from].name,
                 topo->host[to].name);
    snprintf(t->slowest, sizeof(t->slowest), "group %d of %d: ranks %s on %s", t->index + 1,
             g->total, list, where);
    free(ids);
}

/* Error of one message's time: the larger of the curve's interval and the error of its basis. */
double predict_message_error(const struct question *q, const struct cost *c)
{
    static const enum constant_id worth[BASIS_COUNT] = {[BASIS_PRESET] = CONSTANT_ERROR_PRESET,
                                                        [BASIS_MODELLED] = CONSTANT_ERROR_MODELLED,
                                                        [BASIS_ASSUMED] = CONSTANT_ERROR_ASSUMED};
    double least = worth[c->basis] ? constants_get(q->constants, worth[c->basis])->value : 0;

    return fmax(least, (c->hi - c->lo) / 2 / 1.96 / c->sec);
}

static int price(struct term *t, struct pricer *pricer, const struct question *q,
                 const struct message *m, struct err *err)
{
    const struct groups *g = pricer_groups(pricer, m->span);
    struct cost cost = {.exception = -1};
    char axes[AXES_TEXT], part[MATRIX_PART];

    *t = (struct term){.kind = TERM_MESSAGE,
                       .label = m->label,
                       .axes = m->axes,
                       .span = m->span,
                       .exposure = m->exposure,
                       .op = m->op,
                       .bytes = m->bytes,
                       .count = m->count,
                       .phase = m->phase,
                       .rounds = m->rounds,
                       .formula = m->formula};
    pricer_message_cost(pricer, m, &cost, &t->index);
    if (!isfinite(cost.sec))
        return err_set(err, "%s over %s: %s%s", m->label, axes_text(axes, m->axes),
                       isinf(cost.sec) ? "a part that it needs is dead or gives wrong data: "
                                       : "the matrix has no rate for it: ",
                       isinf(cost.sec) && cost.exception >= 0
                           ? matrix_part(q->matrix, &q->matrix->exception[cost.exception], part)
                           : cost.source);
    t->one = cost.sec;
    t->one_error = predict_message_error(q, &cost);
    t->basis = cost.basis;
    t->exception = cost.exception;
    t->groups = g->total;
    t->distinct = g->kinds;
    snprintf(t->source, sizeof(t->source), "%s", cost.source);
    name_group(t, q, g);
    return 0;
}

static int price_messages(struct term *terms, double *one, const struct question *q,
                          struct traffic *tr, struct err *err)
{
    struct pricer *pricer = q->pricer;
    int rc = 0;

    if (!pricer && pricer_open(&pricer, q->matrix, q->order, q->layout->ranks, err) < 0)
        return -1;
    for (int i = 0; rc == 0 && i < tr->messages; i++) {
        if (q->shrink > 0)
            tr->message[i].bytes /= q->shrink;
        rc = price(&terms[i], pricer, q, &tr->message[i], err);
        one[i] = terms[i].one;
    }
    if (!q->pricer)
        pricer_close(pricer);
    return rc;
}

static struct term *push(struct prediction *p, enum term_kind kind, const char *label, double sec,
                         enum basis basis)
{
    MEM_PUSH(p->term, p->terms) =
        (struct term){.kind = kind, .label = label, .sec = sec, .basis = basis, .exception = -1};
    return &p->term[p->terms - 1];
}

/* Add a term for each part that takes time.  Returns the variance of their sum. */
static double push_compute(struct prediction *p, const struct timing *t)
{
    double var = 0;

    for (int i = 0; i < WORK_PARTS; i++) {
        if (!(t->part[i] > 0))
            continue;
        struct term *one = push(p, TERM_COMPUTE, work_name[i], t->part[i], p->rate.part_basis[i]);
        one->error = p->anchored ? 0 : one->sec * p->rate.error[i]; /* the anchor fixes this part */
        snprintf(one->source, sizeof(one->source), "%s", p->rate.part_source[i]);
        p->compute += one->sec;
        var += one->error * one->error;
    }
    return var;
}

/* Hidden time may be exposed if the constant errs; exposed time also errs with the curve.  Returns
 * the variance of messages inside the pipeline. */
static double push_messages(struct prediction *p, const struct question *q, const struct timing *t,
                            const struct traffic *tr, struct term *messages)
{
    double var = 0;

    for (int i = 0; i < tr->messages; i++) {
        struct term *m = &messages[i];
        const struct constant *c = constants_get(q->constants, exposure_constant[m->exposure]);
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
             recipe_name.schedule[q->recipe->schedule], pp, q->recipe->stages, p->microbatches,
             q->recipe->schedule == SCHEDULE_DUALPIPE ? "DeepSeek-V3 2024, table 2"
             : q->recipe->schedule >= SCHEDULE_ZB_H1  ? "Qi et al. 2023, table 2"
                                                      : "Narayanan et al. 2021, 2.2",
             t->last ? "with" : "without");
}

/* Adam on the rank's shard of states: memory traffic / memory rate. */
static void push_optimizer(struct prediction *p, const struct question *q, const struct timing *t,
                           const struct traffic *tr)
{
    const struct constant *bytes = constants_get(q->constants, CONSTANT_OPTIMIZER_BYTES_PER_PARAM);
    const struct constant *share = constants_get(q->constants, CONSTANT_OPTIMIZER_HBM_SHARE);

    if (!(p->rate.hbm_Bps > 0) && !(p->rate.adam_Bps > 0)) {
        predict_note(
            p, "the optimizer's time is left out: the memory rate of this machine is not known");
        return;
    }
    bool measured = p->rate.adam_Bps > 0;
    struct term *one = push(p, TERM_OPTIMIZER, "optimizer", t->optimizer,
                            measured ? BASIS_MEASURED : BASIS_MODELLED);
    char count[UNITS_TEXT];
    one->error = one->sec * hypot(bytes->error, measured ? p->rate.adam_error : share->error);
    if (measured)
        snprintf(one->source, sizeof(one->source), "%s parameters x %.0f B over measured %.2f TB/s",
                 units_count_text(count, tr->updated, 3), bytes->value, p->rate.adam_Bps / 1e12);
    else
        snprintf(one->source, sizeof(one->source), "%s parameters x %.0f B over %.2f of %.2f TB/s",
                 units_count_text(count, tr->updated, 3), bytes->value, share->value,
                 p->rate.hbm_Bps / 1e12);
}

static void push_fixed(struct prediction *p, const struct question *q, const struct timing *t)
{
    const struct constant *c = constants_get(q->constants, CONSTANT_FIXED_SECONDS);
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

/* Say which compute terms rest on published constants, where others were measured. */
static void note_measured(struct prediction *p)
{
    char text[PREDICT_NOTE] = "";
    int measured = 0;

    for (int i = 0; i < p->terms; i++) {
        const struct term *t = &p->term[i];
        size_t used = strlen(text);
        if (t->kind != TERM_COMPUTE && t->kind != TERM_OPTIMIZER)
            continue;
        if (t->basis == BASIS_MEASURED)
            measured++;
        else
            snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "", t->label);
    }
    if (measured && *text)
        predict_note(
            p, "measured on this machine but for %.160s: these rest on published constants", text);
}

static void push_terms(struct prediction *p, const struct question *q, const struct timing *t,
                       const struct traffic *tr, struct term *messages)
{
    double var = push_compute(p, t);

    var += push_messages(p, q, t, tr, messages);
    push_bubble(p, q, t, var);
    push_optimizer(p, q, t, tr);
    push_fixed(p, q, t);
}

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

/* Error of the software's effect on compute: for an anchored recipe, or for effects that are known,
 * partly known or unknown. */
static double recipe_error(const struct prediction *p, const struct question *q)
{
    const struct effects *e = &q->constants->effects;
    struct effect_sum sum;

    effect_sum_of(&sum, p->effect, p->effects);
    return p->anchored ? constants_get(q->constants, CONSTANT_ERROR_ANCHORED)->value
                       : hypot(e->rest, p->software_share * sqrt(sum.variance));
}

static const char *const known_words[KNOWN_COUNT] = {
    [KNOWN_RECIPE] = "this model is known with this software on this GPU",
    [KNOWN_MODEL] = "this model is known with this software, on other GPUs",
    [KNOWN_RELEASE] = "this software is known, with other models",
    [KNOWN_GPU] = "this software is not known, or not stated",
    [KNOWN_NOTHING] = "nothing is known of this GPU",
};

static void note_interval(struct prediction *p, const struct question *q, double whole)
{
    if (p->anchored)
        predict_note(p,
                     "anchored: by one measured step of this recipe compute takes %.3f of what the "
                     "constants say; the interval allows %.0f %% for the recipe beside the errors "
                     "of the terms",
                     q->stretch, 100 * whole * STATS_Z90);
    else
        predict_note(p,
                     "no anchor: no measured step calibrates this recipe; %s: nine of ten such "
                     "steps lie within -%.0f to +%.0f %%",
                     known_words[p->known], 100 * (1 - p->lo / p->sec), 100 * (p->hi / p->sec - 1));
}

/* Terms err independently; the recipe errs for the whole step.  The width in deviations is data
 * (effects.h), or that of a normal distribution if compute was measured. */
static void add_up(struct prediction *p, const struct question *q)
{
    struct effect_interval z = {-STATS_Z90, STATS_Z90, 0};
    double var = 0;

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
    double whole = recipe_error(p, q);
    p->terms_deviation = sqrt(var) / p->sec;
    p->deviation = hypot(hypot(whole, q->doubt), p->terms_deviation);
    if (!p->anchored && p->effects)
        z = q->constants->effects.interval[p->known][model_has_experts(q->model)];
    p->lo = p->sec * exp(z.lo * p->deviation);
    p->hi = p->sec * exp(z.hi * p->deviation);
    note_interval(p, q, hypot(whole, q->doubt));
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
    snprintf(p->strategy, sizeof(p->strategy), "%s", recipe_name.strategy[r->strategy]);
    layout_text(p->layout, sizeof(p->layout), q->layout);
}

static void bytes(struct prediction *p, const struct question *q, const struct step *s)
{
    memory_of(&p->memory, s, q->fabric ? q->fabric->gpu.memory_bytes.value : 0, q->constants);
    if (!(p->memory.capacity > 0))
        predict_note(p, "the memory of these devices is not known: whether it fits is not judged");
}

static void note_stages(struct prediction *p, const struct step *s)
{
    char buf[160];

    if (*step_stages_text(buf, sizeof(buf), s))
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

/* Note a GPU without any fitted step. */
static void note_gpu(struct prediction *p, const struct question *q)
{
    const struct fabric_gpu *gpu = q->fabric ? &q->fabric->gpu : NULL;

    if (gpu && p->rate.basis == BASIS_ASSUMED)
        predict_note(p,
                     "no efficiency of %s products is known for %.60s (generation %.30s): "
                     "efficiency.default is assumed",
                     recipe_name.dtype[q->recipe->dtype], gpu->name,
                     gpu->generation ? gpu->generation : "not said");
}

/* Look up the effects of model, software and GPU, and note them. */
static void look_up_effects(struct prediction *p, const struct question *q)
{
    struct effect_sum sum;

    p->effects = rate_effects(p->effect, &p->rate, q);
    effect_sum_of(&sum, p->effect, p->effects);
    p->known = sum.known;
    if (sum.value != 0)
        predict_note(p,
                     "effects of model, software and GPU: compute takes %.3g of what the constants "
                     "say%s",
                     exp(sum.value),
                     q->release ? "" : "; the release of the software is not stated");
}

/* d log(step) / d log(compute). */
static double software_share(const struct timing *t, const struct traffic *tr, const double *one,
                             const struct work *w, const struct coefficients *c,
                             const struct question *q)
{
    const double h = 0.01;
    struct coefficients slower = *c;
    struct timing then;

    slower.stretch *= 1 + h;
    timing_of(&then, tr, one, w, &slower, q->layout, q->recipe);
    return (then.sec / t->sec - 1) / h;
}

/* work -> traffic -> prices -> timing -> text. */
int predict_step(struct prediction *p, const struct question *q, struct err *err)
{
    double one[TRAFFIC_MAX];
    struct coefficients c;
    struct traffic traffic;
    struct step step;
    struct timing t;
    struct work w;

    memset(p, 0, sizeof(*p));
    p->ranks = q->layout->ranks;
    p->anchored = q->stretch > 0;
    p->microbatches = layout_microbatches(q->layout, q->recipe);
    if (rate_of(&p->rate, q, err) < 0)
        return -1;
    step_of(&step, q->model, q->layout, q->recipe);
    work_of(&w, &step);
    traffic_of(&traffic, &step);
    note_gpu(p, q);
    look_up_effects(p, q);
    coefficients_of(&c, &p->rate, q->constants, rate_stretch(&p->rate, q));
    struct term *messages = mem_calloc(TRAFFIC_MAX, sizeof(*messages));
    int rc = price_messages(messages, one, q, &traffic, err);
    if (rc == 0) {
        timing_of(&t, &traffic, one, &w, &c, q->layout, q->recipe);
        p->software_share = software_share(&t, &traffic, one, &w, &c, q);
        p->one.forward = t.forward;
        p->one.backward = t.backward;
        p->one.weights = t.weights;
        p->one.last = t.last;
        push_terms(p, q, &t, &traffic, messages);
        note_measured(p);
        add_up(p, q);
        figures(p, q);
        note_stages(p, &step);
        note_frozen(p, q);
        bytes(p, q, &step);
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
