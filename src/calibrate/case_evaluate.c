/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/case_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

enum { BISECTIONS = 60, SECANTS = 12 };

/* Evaluate the expression with the compute of x's jobs at `scale` times the value in `from`. */
static int scaled(double *out, const struct case_solve *x, struct case_values *s,
                  const double *from, double scale, struct err *err)
{
    for (int k = 0; k < s->file->jobs; k++)
        s->rest_scale[k] = x->job[k] ? from[k] * scale : from[k];
    return case_value_in(out, x->expression, x->unit, s, err);
}

/* A figure used to solve a setting stays as published under all errors: the compute of the jobs
 * that share the solved setting adapts.  Secant: one step for seconds, some for a rate. */
static int hold_solved(struct case_values *s, struct err *err)
{
    const struct casefile *c = s->file;
    double from[CASE_JOBS_MAX], a = 1, b = 1, at_a = 0, at_b;

    for (int i = 0; i < c->jobs; i++)
        s->rest_scale[i] = 1;
    for (int i = 0; i < c->solves; i++) {
        const struct case_solve *x = &c->solve[i];
        memcpy(from, s->rest_scale, (size_t)c->jobs * sizeof(*from));
        a = 1.01;
        b = 1;
        if (scaled(&at_a, x, s, from, a, err) < 0 || scaled(&at_b, x, s, from, b, err) < 0)
            return -1;
        for (int n = 0; n < SECANTS && at_a != at_b && fabs(at_b / x->published - 1) > 1e-12; n++) {
            double next = fmax(0, b + (x->published - at_b) * (b - a) / (at_b - at_a));
            a = b;
            at_a = at_b;
            b = next;
            if (scaled(&at_b, x, s, from, b, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* Evaluate the claim with one shared error a deviation larger. */
static int move(double *out, const char *expression, const struct case_unit *u,
                struct case_values *s, struct err *err)
{
    int rc = hold_solved(s, err);

    return rc < 0 ? -1 : case_value_in(out, expression, u, s, err);
}

/* True if this is the first job with its text. */
static bool first_of(const struct case_values *s, int job, bool fabric)
{
    for (int i = 0; i < job; i++)
        if (!strcmp(fabric ? s->value[i].fabric : s->value[i].rate,
                    fabric ? s->value[job].fabric : s->value[job].rate))
            return false;
    return true;
}

/* Sum the squares of the change of the expression by one deviation of each error. */
static int spread(double *half, const char *expression, const struct case_unit *u, double value,
                  struct case_values *s, struct err *err)
{
    double sum = 0, moved, *scale = mem_calloc((size_t)s->file->jobs + 1, sizeof(*scale));
    int rc = 0;

    s->rest_scale = scale;
    for (int i = 0; rc == 0 && i < s->file->jobs; i++)
        for (int kind = 0; rc == 0 && kind < 3; kind++) {
            if (kind < 2 && !first_of(s, i, kind == 1))
                continue;
            s->slow_rate = kind == 0 ? s->value[i].rate : NULL;
            s->slow_fabric = kind == 1 ? s->value[i].fabric : NULL;
            s->slow_job = kind == 2 ? i + 1 : 0;
            rc = move(&moved, expression, u, s, err);
            sum += rc == 0 ? (moved - value) * (moved - value) : 0;
        }
    s->slow_job = 0;
    s->rest_scale = NULL;
    s->slow_fabric = s->slow_rate = NULL;
    s->more_memory = true; /* for all jobs, because one formula errs */
    if (rc == 0 && (rc = case_value_in(&moved, expression, u, s, err)) == 0)
        sum += (moved - value) * (moved - value);
    s->more_memory = false;
    free(scale);
    *half = STATS_Z90 * sqrt(sum);
    return rc;
}

/* Evaluate a claim at one combination of unknowns. */
static int note(struct case_claim *k, struct case_values *s, int combination, struct err *err)
{
    double ours, half;

    if (case_value_in(&ours, k->expression, k->unit, s, err) < 0 ||
        spread(&half, k->expression, k->unit, ours, s, err) < 0)
        return -1;
    if (!isfinite(ours))
        return err_set(err, "\"%s\" is not a number for this set-up", k->expression);
    k->at[combination] = (struct case_at){ours, ours - half, ours + half, true};
    return 0;
}

/* Set the unknowns from a combination number: mixed radix, the first unknown changes fastest. */
static int case_set_unknowns(struct casefile *c, struct case_job *job, int combination,
                             struct err *err)
{
    memcpy(job, c->job, (size_t)c->jobs * sizeof(*job));
    for (int u = 0; u < c->unknowns; u++) {
        const struct case_unknown *x = &c->unknown[u];
        const char *value = x->value[combination % x->values];
        combination /= x->values;
        for (int k = 0; k < c->jobs; k++)
            if (x->job[k] && job_set(&job[k].opts, x->key, value, err) < 0)
                return -1;
    }
    return 0;
}

static bool is_stretch(const struct case_solve *s)
{
    return !strcmp(s->key, "stretch");
}

static bool whole(const struct case_solve *s)
{
    const struct argument *a = argument_find(recipe_argument, s->key);

    return a ? a->kind == ARGUMENT_INT : !is_stretch(s);
}

static int set_solved(struct casefile *c, struct case_job *job, const struct case_solve *s,
                      double value, struct err *err)
{
    char text[32];

    snprintf(text, sizeof(text), whole(s) ? "%.0f" : "%.9g", value);
    for (int k = 0; k < c->jobs; k++) {
        if (s->job[k] && is_stretch(s))
            job[k].stretch = value;
        else if (s->job[k] && job_set(&job[k].opts, s->key, text, err) < 0)
            return -1;
    }
    return 0;
}

/* What is solved, and where. */
struct solving {
    struct casefile *file;
    struct case_job *job;
    const struct case_solve *solve;
    struct case_values *scratch;
    bool named[CASE_JOBS_MAX]; /* jobs in the expression */
};

/* Evaluate the solved expression at `value`, predicting only the jobs that it names. */
static int try_solved(double *out, struct solving *s, double value, struct err *err)
{
    if (set_solved(s->file, s->job, s->solve, value, err) < 0)
        return -1;
    for (int k = 0; k < s->file->jobs; k++)
        if (s->named[k] && case_value_of(&s->scratch->value[k], &s->job[k], err) < 0)
            return -1;
    return case_value_in(out, s->solve->expression, s->solve->unit, s->scratch, err);
}

/* Find s->found by halving the logarithm of its range, and set it; v->value is scratch.  Returns 1
 * with err if nothing in the range gives the published figure. */
static int case_solve_for(struct casefile *c, struct case_job *job, struct case_solve *s,
                          struct case_values *v, struct err *err)
{
    struct solving at = {.file = c, .job = job, .solve = s, .scratch = v};
    double lo = s->min, hi = s->max, at_lo, at_hi, mid = lo, at_mid;

    struct case_values names = {.file = c, .mentioned = at.named, .scaled = -1};
    if (case_value_in(&at_lo, s->expression, s->unit, &names, err) < 0 ||
        try_solved(&at_lo, &at, lo, err) < 0 || try_solved(&at_hi, &at, hi, err) < 0)
        return -1;
    if (!((at_lo - s->published) * (at_hi - s->published) <= 0)) {
        err_set(err, "%s from %g to %g gives %s = %.4g to %.4g, which leaves %.4g out", s->key,
                s->min, s->max, s->expression, at_lo, at_hi, s->published);
        return 1;
    }
    for (int i = 0; i < BISECTIONS && hi / lo > 1 + 1e-7 && (!whole(s) || hi - lo > 1); i++) {
        mid = whole(s) ? floor(sqrt(lo * hi)) : sqrt(lo * hi);
        mid = whole(s) && mid <= lo ? lo + 1 : mid;
        if (try_solved(&at_mid, &at, mid, err) < 0)
            return -1;
        if ((at_lo - s->published) * (at_mid - s->published) <= 0)
            hi = mid, at_hi = at_mid;
        else
            lo = mid, at_lo = at_mid;
    }
    s->found = fabs(at_lo - s->published) < fabs(at_hi - s->published) ? lo : hi;
    return set_solved(c, job, s, s->found, err);
}

/* Returns 1 if the solved figure is impossible with these values of the unknowns. */
static int combination(struct casefile *c, struct case_values *s, int number, struct err *err)
{
    struct case_job *job = mem_calloc((size_t)c->jobs + 1, sizeof(*job));
    int rc = case_set_unknowns(c, job, number, err);

    for (int i = 0; rc == 0 && i < c->solves; i++)
        rc = case_solve_for(c, job, &c->solve[i], s, err);
    for (int i = 0; rc == 0 && i < c->jobs; i++)
        rc = case_value_of(&s->value[i], &job[i], err);
    for (int i = 0; rc == 0 && i < c->claims; i++)
        rc = note(&c->claim[i], s, number, err);
    free(job);
    return rc;
}

/* Set the printed values of each job; s: at the first value of each unknown. */
static int describe_jobs(struct casefile *c, struct case_values *s, struct err *err)
{
    static const struct case_unit second = {"s", " s", 1, false, false};
    int rc = 0;

    for (int i = 0; rc == 0 && i < c->jobs; i++) {
        struct case_job *job = &c->job[i];
        const struct case_value *v = &s->value[i];
        char *step = mem_printf("%s.step_s", job->name);
        double half = 0;
        rc = spread(&half, step, &second, v->sec, s, err);
        job->held = half <= 1e-6 * v->sec;
        job->sec = v->sec;
        job->gpus = v->gpus;
        job->bytes = v->memory.total;
        job->capacity = v->memory.capacity;
        free(step);
    }
    return rc;
}

int case_evaluate(struct casefile *c, struct err *err)
{
    int combinations = 1, rc = 0;

    for (int i = 0; i < c->unknowns; i++)
        combinations *= c->unknown[i].values;

    size_t jobs = (size_t)c->jobs + 1;
    struct case_value *value = mem_calloc((size_t)combinations * jobs, sizeof(*value));
    struct case_values *s = mem_calloc((size_t)combinations, sizeof(*s));
    /* keep the solution of the first one */
    for (int x = combinations - 1; rc >= 0 && x >= 0; x--) {
        s[x] = (struct case_values){.file = c, .value = value + (size_t)x * jobs, .scaled = -1};
        rc = combination(c, &s[x], x, err);
    }
    rc = rc != 0 || describe_jobs(c, &s[0], err) < 0 ? -1 : case_judge(c, s, combinations, err);
    free(s);
    free(value);
    return rc < 0 ? err_wrap(err, "%s", c->path) : 0;
}
