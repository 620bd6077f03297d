/* SPDX-License-Identifier: BSD-3-Clause */
/* case_judge.c - claims against predictions: figure, interval, verdict. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/score/case_value.h"

static const double z90 = 1.645; /* 90 % of a normal distribution lie within 1.645 deviations */

/* In the claim's unit; fits: share of the capacity. */
int case_value_in(double *out, const char *expression, const struct case_unit *u,
                  struct case_values *s, struct err *err)
{
    struct expression_names names = {case_value_find, s};

    if (expression_value(out, expression, &names, err) < 0)
        return -1;
    *out /= u->scale;
    return 0;
}

/* A figure that was solved for stays as published whatever the errors are: the compute of the jobs
 * that share the solved setting gives way. */
static int hold_solved(struct case_values *s, struct err *err)
{
    const struct casefile *c = s->file;

    for (int i = 0; i < c->jobs; i++)
        s->rest_scale[i] = 1;
    for (int i = 0; i < c->solves; i++) {
        const struct case_solve *x = &c->solve[i];
        double at[2];
        for (int try = 0; try < 2; try++) { /* the figure is linear in the compute */
            for (int k = 0; k < c->jobs; k++)
                s->rest_scale[k] *= try && x->job[k] ? 2 : 1;
            if (case_value_in(&at[try], x->expression, x->unit, s, err) < 0)
                return -1;
        }
        double scale = at[1] != at[0] ? 1 + (x->published - at[0]) / (at[1] - at[0]) : 1;
        for (int k = 0; k < c->jobs; k++)
            s->rest_scale[k] *= x->job[k] ? fmax(scale, 0) / 2 : 1;
    }
    return 0;
}

/* The claim when one shared error is a deviation larger. */
static int move(double *out, const struct case_claim *k, struct case_values *s, struct err *err)
{
    int rc = hold_solved(s, err);

    return rc < 0 ? -1 : case_value_in(out, k->expression, k->unit, s, err);
}

/* Is this the first job with this text? */
static bool first_of(const struct case_values *s, int job, bool fabric)
{
    for (int i = 0; i < job; i++)
        if (!strcmp(fabric ? s->value[i].fabric : s->value[i].rate,
                    fabric ? s->value[job].fabric : s->value[job].rate))
            return false;
    return true;
}

/* What one deviation of each error does to the expression; squares are added. */
static int spread(double *half, const struct case_claim *k, double value, struct case_values *s,
                  struct err *err)
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
            rc = move(&moved, k, s, err);
            sum += rc == 0 ? (moved - value) * (moved - value) : 0;
        }
    s->slow_job = 0;
    s->rest_scale = NULL;
    s->slow_fabric = s->slow_rate = NULL;
    free(scale);
    *half = z90 * sqrt(sum);
    return rc;
}

/* Above 0: ours is higher.  What must only be reached is not missed from above. */
static double off(const struct case_claim *k, double ours)
{
    if (k->unit->fits)
        return (ours <= 1) == (k->published > 0) ? 0 : 100;
    double d = k->unit->points ? ours - k->published : 100 * (ours / k->published - 1);
    return k->at_least && d > 0 ? 0 : d;
}

static bool inside(const struct case_claim *k, double lo, double hi)
{
    if (k->unit->fits)
        return k->published > 0 ? lo <= 1 : hi > 1;
    return (lo <= k->published || k->at_least) && hi >= k->published;
}

/* One combination of unknowns; the one numbered 0 comes last and gives our figure. */
static int note(struct case_claim *k, struct case_values *s, int combination, bool first,
                struct err *err)
{
    double ours, half;

    if (case_value_in(&ours, k->expression, k->unit, s, err) < 0 ||
        spread(&half, k, ours, s, err) < 0)
        return -1;
    if (!isfinite(ours))
        return err_set(err, "\"%s\" is not a number for this set-up", k->expression);
    if (first || fabs(off(k, ours)) <= k->nearest) {
        k->nearest = fabs(off(k, ours));
        k->best = combination;
    }
    k->lo = first ? ours - half : fmin(k->lo, ours - half);
    k->hi = first ? ours + half : fmax(k->hi, ours + half);
    k->inside[combination] = inside(k, ours - half, ours + half);
    k->ours = ours;
    k->off = off(k, ours);
    return 0;
}

/* 1: with these values of the unknowns the solved figure cannot be. */
static int combination(struct casefile *c, struct case_values *s, int number, bool first,
                       struct err *err)
{
    struct case_job *job = mem_calloc((size_t)c->jobs + 1, sizeof(*job));
    int rc = case_set_unknowns(c, job, number, err);

    for (int i = 0; rc == 0 && i < c->solves; i++)
        rc = case_solve_for(c, job, &c->solve[i], s, err);
    for (int i = 0; rc == 0 && i < c->jobs; i++)
        rc = case_value_of(&s->value[i], &job[i], err);
    for (int i = 0; rc == 0 && i < c->claims; i++)
        rc = note(&c->claim[i], s, number, first, err);
    free(job);
    return rc;
}

static bool inside_any(const struct case_claim *k, int combinations)
{
    for (int i = 0; i < combinations; i++)
        if (k->inside[i])
            return true;
    return false;
}

/* Which one combination holds the most of the claims that can hold? */
static void hold_together(struct casefile *c, int combinations)
{
    c->held_of = 0;
    for (int i = 0; i < c->claims; i++)
        c->held_of += c->claim[i].verdict != CASE_EXCLUDED;
    for (int x = 0; x < combinations; x++) {
        int held = 0;
        for (int i = 0; i < c->claims; i++)
            held += c->claim[i].verdict != CASE_EXCLUDED &&
                    (c->claim[i].inside[x] || (x == 0 && c->claim[i].verdict == CASE_REPRODUCED));
        if (x == 0 || held > c->held) {
            c->held = held;
            c->held_by = x;
        }
    }
}

int case_judge(struct casefile *c, struct err *err)
{
    struct case_value *value = mem_calloc((size_t)c->jobs + 1, sizeof(*value));
    struct case_values s = {.file = c, .value = value, .scaled = -1};
    int combinations = 1, rc = 0;
    bool first = true;

    for (int i = 0; i < c->unknowns; i++)
        combinations *= c->unknown[i].values;
    for (int i = combinations - 1; rc >= 0 && i >= 0; i--) {
        rc = combination(c, &s, i, first, err);
        first = first && rc == 1;
    }
    rc = rc > 0 ? -1 : rc;
    for (int i = 0; rc == 0 && i < c->jobs; i++) {
        c->job[i].sec = value[i].sec;
        c->job[i].gpus = value[i].gpus;
        c->job[i].bytes = value[i].memory.total;
        c->job[i].capacity = value[i].memory.capacity;
    }
    for (int i = 0; rc == 0 && i < c->claims; i++) {
        struct case_claim *k = &c->claim[i];
        k->verdict = fabs(k->off) <= k->within     ? CASE_REPRODUCED
                     : inside_any(k, combinations) ? CASE_CONSISTENT
                                                   : CASE_EXCLUDED;
        rc = case_reason(k, &s, combinations, err);
    }
    hold_together(c, combinations);
    free(value);
    return rc < 0 ? err_wrap(err, "%s", c->path) : 0;
}

bool case_surprise(const struct case_claim *k)
{
    return (k->expect == CASE_EXCLUDED) != (k->verdict == CASE_EXCLUDED) || k->verdict > k->expect;
}

int case_surprises(const struct casefile *c)
{
    int n = 0;

    for (int i = 0; i < c->claims; i++)
        n += case_surprise(&c->claim[i]);
    return n;
}
