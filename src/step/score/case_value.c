/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/case_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a step that takes `sec`. */
static double step(const struct case_value *v, double sec)
{
    (void)v;
    return sec;
}

static double messages(const struct case_value *v, double sec)
{
    (void)sec;
    return v->exposed;
}

static double rest(const struct case_value *v, double sec)
{
    return sec - v->exposed;
}

static double rate(const struct case_value *v, double sec)
{
    return v->tokens / sec;
}

static double rate_per_gpu(const struct case_value *v, double sec)
{
    return v->tokens / sec / v->gpus;
}

static double gpus(const struct case_value *v, double sec)
{
    (void)sec;
    return v->gpus;
}

static double tokens(const struct case_value *v, double sec)
{
    (void)sec;
    return v->tokens;
}

static double flops_per_token(const struct case_value *v, double sec)
{
    (void)sec;
    return v->flops / v->tokens;
}

static double flops_per_gpu(const struct case_value *v, double sec)
{
    return v->flops / sec / v->gpus;
}

static double peak(const struct case_value *v, double sec)
{
    (void)sec;
    return v->peak > 0 ? v->peak : NAN;
}

static double utilisation(const struct case_value *v, double sec)
{
    return v->flops / sec / v->gpus / peak(v, sec);
}

static double layer_bytes(const struct case_value *v, double sec)
{
    (void)sec;
    return v->layer_bytes;
}

static double model_bytes(const struct case_value *v, double sec)
{
    (void)sec;
    return v->model_bytes;
}

static double eval_s(const struct case_value *v, double sec)
{
    (void)sec;
    return v->eval;
}

static double all_params(const struct case_value *v, double sec)
{
    (void)sec;
    return v->params;
}

static double trained(const struct case_value *v, double sec)
{
    (void)sec;
    return v->trained;
}

static double memory(const struct case_value *v, double sec)
{
    (void)sec;
    return v->memory.total;
}

static double states(const struct case_value *v, double sec)
{
    (void)sec;
    return memory_states(&v->memory);
}

static double capacity(const struct case_value *v, double sec)
{
    (void)sec;
    return v->memory.capacity > 0 ? v->memory.capacity : NAN;
}

static const struct {
    const char *name;
    double (*of)(const struct case_value *v, double sec);
} quantity[] = {
    {"step_s", step},
    {"messages_s", messages},
    {"compute_s", rest},
    {"eval_s", eval_s},
    {"tokens", tokens},
    {"tokens_per_s", rate},
    {"tokens_per_s_per_gpu", rate_per_gpu},
    {"gpus", gpus},
    {"flops_per_token", flops_per_token},
    {"flops_per_s_per_gpu", flops_per_gpu},
    {"peak_flops", peak},
    {"mfu", utilisation},
    {"layer_bytes", layer_bytes},
    {"model_bytes", model_bytes},
    {"params", all_params},
    {"trained_params", trained},
    {"memory_bytes", memory},
    {"states_bytes", states},
    {"capacity_bytes", capacity},
};
enum { QUANTITIES = sizeof(quantity) / sizeof(*quantity) };

static int find_quantity(const char *what, struct err *err)
{
    const char *names[QUANTITIES];

    for (int i = 0; i < QUANTITIES; i++)
        names[i] = quantity[i].name;
    return recipe_word("quantity", what, names, QUANTITIES, err);
}

/* Job i with what this evaluation moves. */
static struct case_value moved(const struct case_values *s, int i)
{
    struct case_value v = s->value[i];
    double rest_s = v.sec - v.exposed;

    if (s->slow_rate && !strcmp(v.rate, s->slow_rate))
        rest_s *= 1 + v.rest_error;
    if (s->rest_scale)
        rest_s *= s->rest_scale[i];
    if (s->slow_fabric && !strcmp(v.fabric, s->slow_fabric))
        v.exposed *= 1 + v.message_error;
    if (s->scaled == i)
        v.exposed *= s->scale;
    double own = s->slow_job == i + 1 ? 1 + v.own_error : 1;
    rest_s *= own;
    v.exposed *= own;
    v.sec = rest_s + v.exposed;
    return v;
}

int case_value_find(void *ctx, const char *of, const char *what, double *out, struct err *err)
{
    const struct case_values *s = ctx;
    const struct casefile *c = s->file;
    int q = find_quantity(what, err);

    if (q < 0) {
        err->code = EXIT_DATA;
        return -1;
    }
    for (int i = 0; i < c->jobs; i++) {
        if (strcmp(c->job[i].name, of) != 0)
            continue;
        if (s->mentioned)
            s->mentioned[i] = true;
        *out = 1;
        if (!s->value)
            return 0;
        struct case_value v = moved(s, i);
        *out = quantity[q].of(&v, v.sec);
        return 0;
    }
    return err_data(err, "no job \"%s\"", of);
}

/* The largest layer's and all weights, as they travel. */
static void weights(struct case_value *v, const struct model *m, const struct recipe *r)
{
    struct params p;

    model_params(m, &p);
    v->params = p.total;
    v->trained =
        r->lora == LORA_NONE ? p.total : model_lora_params(m, r->lora_rank, r->lora == LORA_ALL);
    v->model_bytes = p.total * recipe_weight_bytes(r);
    for (int i = 0; i < m->kinds; i++)
        v->layer_bytes =
            fmax(v->layer_bytes, layer_params(m, &m->layer[i]) * recipe_weight_bytes(r));
}

/* The interval of a prediction is 1.645 standard deviations of all errors together. */
static void errors(struct case_value *v, const struct prediction *p)
{
    double all = (p->hi - p->sec) / 1.645, of_messages = 0, rest_s = p->sec - p->exposed;

    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_MESSAGE)
            of_messages += p->term[i].error * p->term[i].error;
    v->message_error = p->exposed > 0 ? sqrt(of_messages) / p->exposed : 0;
    v->rest_error = rest_s > 0 ? sqrt(fmax(0, all * all - of_messages)) / rest_s : 0;
}

static void fill(struct case_value *v, const struct prediction *p, const struct job *j,
                 const struct job_opts *o)
{
    struct memory_constants k;

    *v = (struct case_value){.sec = p->sec,
                             .exposed = p->exposed,
                             .tokens = p->tokens,
                             .flops = p->model_flops,
                             .peak = p->rate.peak,
                             .eval = o->recipe.eval_seconds,
                             .gpus = p->ranks};
    errors(v, p);
    memory_constants_of(&k, &j->constants);
    memory_of(&v->memory, &j->model, &j->layout, &o->recipe,
              j->fabric.name ? j->fabric.gpu.memory_bytes.value : 0, &k);
    v->own_error = constants_get(&j->constants, "error.anchored")->value;
    weights(v, &j->model, &o->recipe);
    snprintf(v->rate, sizeof(v->rate), "%s", p->rate.source);
    snprintf(v->fabric, sizeof(v->fabric), "%s", j->matrix.fabric ? j->matrix.fabric : o->matrix);
}

int case_value_of(struct case_value *v, const struct case_job *job, struct err *err)
{
    struct job_opts o = job->opts;
    struct prediction p = {0};
    struct job j;
    int rc = job_open(&j, &o, err);

    if (rc == 0) {
        struct question q = job_question(&j, &o);
        q.stretch = job->stretch;
        rc = predict_step(&p, &q, err);
    }
    if (rc == 0)
        fill(v, &p, &j, &o);
    prediction_free(&p);
    job_free(&j);
    return rc < 0 ? err_wrap(err, "job \"%s\"", job->name) : 0;
}
