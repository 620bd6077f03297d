/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "step/work.h"

static void set(struct constants *c, enum constant_id id, double value, const char *source)
{
    struct constant *k = &c->constant[c->at[id]];

    free(k->source);
    k->value = value;
    k->error = 0;
    k->source = mem_strdup(source);
}

/* A replay has no optimizer and no fixed time, and its compute rate is given. */
static void replace(struct constants *c)
{
    static const enum constant_id none[] = {CONSTANT_EXPOSED_DP, CONSTANT_OPTIMIZER_BYTES_PER_PARAM,
                                            CONSTANT_FIXED_SECONDS};

    for (int i = 0; i < EXPOSE_COUNT; i++)
        set(c, exposure_constant[i], 1, "the main stream waits for it");
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        set(c, none[i], 0, "a replay has none");
    effects_free(&c->effects);
    effects_none(&c->effects);
    c->effects.rest = 0;
    set(c, CONSTANT_OVERLAP_DP, 1, "the side stream runs beside all compute");
    set(c, CONSTANT_OVERLAP_LAYER, 1, "the side stream runs beside the main one's messages");
}

static double seconds(const double *amount, const struct replay_case *c)
{
    double sum = 0;

    for (int i = 0; i < WORK_PARTS; i++)
        sum += amount[i] / c->prediction.rate.of[i];
    return sum / c->shrink;
}

/* Stages other than the last share the rest of the model's compute. */
static void split_compute(struct replay_case *c, const struct question *q)
{
    int stages = q->layout->size[AXIS_PP];
    struct step step;
    struct work w;

    step_of(&step, q->model, q->layout, q->recipe);
    work_of(&w, &step);
    c->last = (struct replay_compute){seconds(w.last.forward, c), seconds(w.last.backward, c)};
    c->rest = c->last;
    if (stages == 1)
        return;
    double forward = seconds(w.mean.forward, c), backward = seconds(w.mean.backward, c);
    c->rest.forward = (stages * forward - c->last.forward) / (stages - 1);
    c->rest.backward = (stages * backward - c->last.backward) / (stages - 1);
}

/* Returns the exposed share of messages between stages, from the pipeline's order. */
static double boundary_share(const struct replay_case *c, const struct question *q)
{
    const struct pipeline pipe = replay_pipeline(q->layout, q->recipe);
    const struct prediction *p = &c->prediction;
    double inside = 0, one = 0, v = pipe.chunks;

    for (int i = 0; i < p->terms; i++) {
        if (p->term[i].kind != TERM_MESSAGE)
            continue;
        if (p->term[i].phase == PHASE_LAYER)
            inside += p->term[i].sec / p->microbatches;
        if (p->term[i].phase == PHASE_BOUNDARY)
            one = p->term[i].one;
    }
    if (!(one > 0))
        return 0;
    const struct replay_compute *slow = c->last.forward > c->rest.forward ? &c->last : &c->rest;
    double work = slow->forward + slow->backward, stretch = (work + inside) / work / v;
    double f = slow->forward * stretch, b = slow->backward * stretch;
    double seen = pipeline_time(&pipe, f, b, one) - pipeline_time(&pipe, f, b, 0);
    return fmax(0, seen) / (2 * v * one * (pipe.microbatches + (pipe.stages - 1) / v));
}

/* Predict with compute rate c->flops, or the question's own. */
static int predict_once(struct replay_case *c, const struct question *q, struct err *err)
{
    static char source[] = "as --compute-share asks";
    struct question asked = *q;
    struct matrix rated = *q->matrix; /* borrows all data */

    rated.compute.flops = c->flops;
    rated.compute.source = source;
    asked.matrix = c->flops > 0 ? &rated : q->matrix;
    asked.constants = &c->constants;
    asked.shrink = c->shrink;
    prediction_free(&c->prediction);
    return predict_step(&c->prediction, &asked, err);
}

static int predict(struct replay_case *c, const struct question *q, struct err *err)
{
    if (predict_once(c, q, err) < 0)
        return -1;
    split_compute(c, q);
    if (q->layout->size[AXIS_PP] == 1)
        return 0;
    enum constant_id id =
        q->recipe->stages > 1 ? CONSTANT_EXPOSED_PP_INTERLEAVED : CONSTANT_EXPOSED_PP_1F1B;
    set(&c->constants, id, boundary_share(c, q), "what the order of the pipeline's units leaves");
    int rc = predict_once(c, q, err);
    set(&c->constants, id, 1, ""); /* the next prediction starts from 1 */
    return rc;
}

/* Returns the share of compute in a step without its bubble. */
static double compute_share(const struct prediction *p)
{
    double sec = p->sec;

    for (int i = 0; i < p->terms; i++)
        sec -= p->term[i].kind == TERM_BUBBLE ? p->term[i].sec : 0;
    return p->compute / sec;
}

/* Search the rate, because compute's share falls as the rate grows. */
static int predict_share(struct replay_case *c, const struct question *q, double share,
                         struct err *err)
{
    double least = 1e3, most = 1e24;

    if (!(share > 0))
        return predict(c, q, err);
    for (int i = 0; i < 60; i++) {
        c->flops = sqrt(least * most);
        if (predict(c, q, err) < 0)
            return -1;
        if (compute_share(&c->prediction) > share)
            least = c->flops;
        else
            most = c->flops;
    }
    double got = compute_share(&c->prediction);
    if (fabs(got - share) > 0.01)
        return err_usage(err, "compute cannot take %.0f %% of the step: it takes %.0f %% at most",
                         100 * share, 100 * got);
    return 0;
}

/* Search the shrink, because the step gets shorter as it grows, down to the latencies. */
static int choose_shrink(struct replay_case *c, const struct question *q,
                         const struct replay_size *size, struct err *err)
{
    double least = 1, most = 1e9;

    for (int i = 0; i < 40; i++) {
        c->shrink = i == 0 ? least : sqrt(least * most);
        if (predict_share(c, q, size->share, err) < 0)
            return -1;
        if (i == 0 && c->prediction.sec <= size->seconds)
            return 0;
        if (c->prediction.sec > size->seconds)
            least = c->shrink;
        else
            most = c->shrink;
    }
    return 0;
}

int replay_case_make(struct replay_case *c, const struct question *q,
                     const struct replay_size *size, struct err *err)
{
    struct step step;

    memset(c, 0, sizeof(*c));
    if (replay_check(q->recipe, err) < 0 || constants_load(&c->constants, NULL, err) < 0)
        return -1;
    replace(&c->constants);
    c->shrink = size->shrink;
    int rc =
        size->shrink > 0 ? predict_share(c, q, size->share, err) : choose_shrink(c, q, size, err);
    if (rc < 0)
        return -1;
    step_of(&step, q->model, q->layout, q->recipe);
    traffic_of(&c->traffic, &step);
    for (int i = 0; i < c->traffic.messages; i++)
        c->traffic.message[i].bytes /= c->shrink;
    return 0;
}

void replay_case_free(struct replay_case *c)
{
    prediction_free(&c->prediction);
    constants_free(&c->constants);
}

static int take_shrink(void *into, char *arg, struct err *err)
{
    struct replay_opts *o = into;

    o->size.shrink = 0;
    return strcmp(arg, "auto") ? units_double(&o->size.shrink, arg, 1e-6, 1e15, err) : 0;
}

static int take_share(void *into, char *arg, struct err *err)
{
    double *out = &((struct replay_opts *)into)->size.share;

    if (units_share(out, arg, err) < 0)
        return -1;
    return *out > 0 && *out < 1 ? 0 : err_usage(err, "%s is not between 0 and 100 %%", arg);
}

static int take_burn(void *into, char *arg, struct err *err)
{
    struct replay_opts *o = into;

    o->burn = recipe_word("burn", arg, burn_name, BURN_COUNT, err);
    return o->burn < 0 ? -1 : 0;
}

const struct opt replay_options[] = {
    {"shrink", 0, "auto|F",
     "divide the bytes of every message and all compute by F (default auto: by --seconds)",
     OPT_CALL(take_shrink)},
    {"seconds", 0, "TIME", "time of a step with --shrink auto (default 2)",
     OPT_SECONDS(struct replay_opts, size.seconds)},
    {"compute-share", 0, "SHARE",
     "share of the predicted step that compute takes, whatever its rate: 70%",
     OPT_CALL(take_share)},
    {"steps", 0, "N", "steps to measure (default 5)", OPT_INT(struct replay_opts, steps, 1, 10000)},
    {"warmup", 0, "N", "steps before them (default 1)",
     OPT_INT(struct replay_opts, warmup, 0, 10000)},
    {"burn", 0, "HOW",
     "how ranks compute: sleep, spin or auto (default auto: spin if each rank has a core)",
     OPT_CALL(take_burn)},
    {"json", 0, NULL, "print JSON instead of a table", OPT_INTO(struct replay_opts, json)},
    {"output", 'o', "FILE", "also write the JSON", OPT_INTO(struct replay_opts, output)},
    {0},
};

void replay_defaults(struct replay_opts *o)
{
    *o = (struct replay_opts){.size = {.seconds = 2}, .steps = 5, .warmup = 1, .burn = BURN_AUTO};
    job_defaults(&o->job);
}

static const struct opt words[] = {{"matrix", OPT_INTO(struct replay_opts, job.matrix)}, {0}};

const struct opt_line replay_line = {
    .words = words, REPLAY_ABOUT, .set = {REPLAY_SETS(0)}, OPT_ANSWERED(struct replay_opts, done)};
