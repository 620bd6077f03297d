/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/case_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct expression_reader {
    const char *text, *at;
    const struct expression_names *names;
    int depth;
};

/* Not isalpha(), because the grammar must not change with the locale. */
static int letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t name_length(const char *s)
{
    size_t n = 0;

    if (letter(s[0]))
        for (n = 1; letter(s[n]) || digit(s[n]) || s[n] == '_'; n++)
            ;
    return n;
}

int expression_is_name(const char *text)
{
    size_t n = name_length(text);

    return n > 0 && n < EXPRESSION_NAME && text[n] == '\0';
}

static int wrong(const struct expression_reader *r, struct err *err, const char *why)
{
    return err_data(err, "\"%s\": %s at position %d", r->text, why, (int)(r->at - r->text));
}

static void skip(struct expression_reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static int take_name(struct expression_reader *r, char out[EXPRESSION_NAME], struct err *err)
{
    size_t n = name_length(r->at);

    if (n == 0 || n >= EXPRESSION_NAME)
        return wrong(r, err, "no name of 1 to 63 letters, digits and \"_\"");
    memcpy(out, r->at, n);
    out[n] = '\0';
    r->at += n;
    return 0;
}

static int quantity(struct expression_reader *r, double *out, struct err *err)
{
    char of[EXPRESSION_NAME], what[EXPRESSION_NAME];
    struct err why;

    if (take_name(r, of, err) < 0)
        return -1;
    if (*r->at != '.')
        return wrong(r, err, "no \".\" after the name");
    r->at++;
    if (take_name(r, what, err) < 0)
        return -1;
    if (r->names->find(r->names->ctx, of, what, out, &why) < 0)
        return err_code(err, why.code, "\"%s\": %s", r->text, why.text);
    return 0;
}

static int sum(struct expression_reader *r, double *out, struct err *err);

static int factor(struct expression_reader *r, double *out, struct err *err)
{
    char *end;

    skip(r);
    if (letter(*r->at))
        return quantity(r, out, err);
    if (*r->at == '(') {
        if (++r->depth > EXPRESSION_DEPTH)
            return wrong(r, err, "brackets are too deep");
        r->at++;
        if (sum(r, out, err) < 0)
            return -1;
        if (*r->at != ')')
            return wrong(r, err, "no \")\"");
        r->at++;
        r->depth--;
        return 0;
    }
    if (!digit(*r->at))
        return wrong(r, err, "no number, no NAME.NAME and no bracket");
    *out = strtod(r->at, &end);
    if (!isfinite(*out) || r->at[1] == 'x' || r->at[1] == 'X')
        return wrong(r, err, "no finite decimal number");
    r->at = end;
    return 0;
}

static int product(struct expression_reader *r, double *out, struct err *err)
{
    double next;

    if (factor(r, out, err) < 0)
        return -1;
    for (skip(r); *r->at == '*' || *r->at == '/'; skip(r)) {
        char op = *r->at++;
        if (factor(r, &next, err) < 0)
            return -1;
        *out = op == '*' ? *out * next : *out / next;
    }
    return 0;
}

static int sum(struct expression_reader *r, double *out, struct err *err)
{
    double next;

    if (product(r, out, err) < 0)
        return -1;
    for (skip(r); *r->at == '+' || *r->at == '-'; skip(r)) {
        char op = *r->at++;
        if (product(r, &next, err) < 0)
            return -1;
        *out = op == '+' ? *out + next : *out - next;
    }
    return 0;
}

int expression_value(double *out, const char *text, const struct expression_names *names,
                     struct err *err)
{
    struct expression_reader r = {text, text, names, 0};

    if (sum(&r, out, err) < 0)
        return -1;
    return *r.at ? wrong(&r, err, "something is left") : 0;
}

/* Quantities of a job: name, kind of claim, and expression on a struct case_value v. */
#define QUANTITIES(X)                                                                              \
    X("step_s", CASE_TIME, v->sec)                                                                 \
    X("messages_s", CASE_TIME, v->exposed)                                                         \
    X("compute_s", CASE_TIME, v->sec - v->exposed)                                                 \
    X("eval_s", CASE_ARITHMETIC, v->eval)                                                          \
    X("tokens", CASE_ARITHMETIC, v->tokens)                                                        \
    X("tokens_per_s", CASE_TIME, v->tokens / v->sec)                                               \
    X("tokens_per_s_per_gpu", CASE_TIME, v->tokens / v->sec / v->gpus)                             \
    X("gpus", CASE_ARITHMETIC, v->gpus)                                                            \
    X("flops_per_token", CASE_ARITHMETIC, v->flops / v->tokens)                                    \
    X("flops_per_s_per_gpu", CASE_TIME, v->flops / v->sec / v->gpus)                               \
    X("peak_flops", CASE_ARITHMETIC, known(v->peak))                                               \
    X("mfu", CASE_TIME, v->flops / v->sec / v->gpus / known(v->peak))                              \
    X("layer_bytes", CASE_ARITHMETIC, v->layer_bytes)                                              \
    X("model_bytes", CASE_ARITHMETIC, v->model_bytes)                                              \
    X("params", CASE_ARITHMETIC, v->params)                                                        \
    X("trained_params", CASE_ARITHMETIC, v->trained)                                               \
    X("memory_bytes", CASE_MEMORY, v->memory.total)                                                \
    X("states_bytes", CASE_MEMORY, memory_states(&v->memory))                                      \
    X("capacity_bytes", CASE_ARITHMETIC, known(v->memory.capacity))
#define NAME_OF(name, kind, value) name,
#define KIND_OF(name, kind, value) kind,
#define VALUE_OF(name, kind, value) value,

static const char *const quantity_name[] = {QUANTITIES(NAME_OF)};
static const enum case_kind quantity_kind[] = {QUANTITIES(KIND_OF)};
enum { QUANTITY_COUNT = sizeof(quantity_name) / sizeof(*quantity_name) };

static double known(double v)
{
    return v > 0 ? v : NAN;
}

static double quantity_of(const struct case_value *v, int which)
{
    const double value[QUANTITY_COUNT] = {QUANTITIES(VALUE_OF)};

    return value[which];
}

/* Returns job i with the changes of this evaluation. */
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
    if (s->more_memory)
        v.memory.total += memory_error(&v.memory, MEMORY_DEVICE) / STATS_Z90;
    return v;
}

int case_value_find(void *ctx, const char *of, const char *what, double *out, struct err *err)
{
    const struct case_values *s = ctx;
    const struct casefile *c = s->file;
    int q = recipe_word("quantity", what, quantity_name, QUANTITY_COUNT, err);

    if (q < 0) {
        err->code = EXIT_DATA;
        return -1;
    }
    for (int i = 0; i < c->jobs; i++) {
        if (strcmp(c->job[i].name, of) != 0)
            continue;
        if (s->mentioned)
            s->mentioned[i] = true;
        if (s->asked)
            s->asked[quantity_kind[q]] = true;
        *out = 1;
        if (!s->value)
            return 0;
        struct case_value v = moved(s, i);
        *out = quantity_of(&v, q);
        return 0;
    }
    return err_data(err, "no job \"%s\"", of);
}

/* Set the weights of the largest layer and of all layers, in bytes on the wire. */
static void weights(struct case_value *v, const struct model *m, const struct recipe *r)
{
    struct params p;

    model_params(m, &p);
    v->params = p.total;
    v->trained =
        r->lora == LORA_NONE ? p.total : model_lora_params(m, r->lora_rank, r->lora == LORA_ALL);
    v->model_bytes = p.total * recipe_weight_bytes(r);
    for (int i = 0; i < m->kinds; i++)
        v->layer_bytes = fmax(v->layer_bytes, m->layer[i].sums.total * recipe_weight_bytes(r));
}

/* The interval of a prediction is 1.645 standard deviations of all errors together. */
static void errors(struct case_value *v, const struct prediction *p)
{
    double all = (p->hi - p->sec) / STATS_Z90, of_messages = 0, rest_s = p->sec - p->exposed;

    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_MESSAGE)
            of_messages += p->term[i].error * p->term[i].error;
    v->message_error = p->exposed > 0 ? sqrt(of_messages) / p->exposed : 0;
    v->rest_error = rest_s > 0 ? sqrt(fmax(0, all * all - of_messages)) / rest_s : 0;
}

static void fill(struct case_value *v, const struct prediction *p, const struct job *j,
                 const struct job_opts *o)
{
    *v = (struct case_value){.sec = p->sec,
                             .exposed = p->exposed,
                             .tokens = p->tokens,
                             .flops = p->model_flops,
                             .peak = p->rate.peak,
                             .eval = o->recipe.eval_seconds,
                             .memory = p->memory,
                             .gpus = p->ranks};
    errors(v, p);
    v->own_error = constants_get(&j->constants, CONSTANT_ERROR_ANCHORED)->value;
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

/* Returns the value in the claim's unit; fits: share of the capacity. */
int case_value_in(double *out, const char *expression, const struct case_unit *u,
                  struct case_values *s, struct err *err)
{
    struct expression_names names = {case_value_find, s};

    if (expression_value(out, expression, &names, err) < 0)
        return -1;
    *out /= u->scale;
    return 0;
}

char *case_figure(char *buf, int size, const struct case_unit *u, double value)
{
    value = fabs(value) < (u->points ? 0.05 : 5e-4) ? 0 : value; /* avoids "-0" */
    if (u->fits)
        snprintf(buf, (size_t)size, "%s", value <= 1 ? "fits" : "does not fit");
    else if (u->points)
        snprintf(buf, (size_t)size, "%.1f%s", value, u->suffix);
    else
        snprintf(buf, (size_t)size, fabs(value) >= 1e4 ? "%.0f%s" : "%.4g%s", value, u->suffix);
    return buf;
}
