/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/case_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

enum { BISECTIONS = 60, FIGURE = 48 };

char *case_figure(char *buf, int size, const struct case_unit *u, double value)
{
    value = fabs(value) < (u->points ? 0.05 : 5e-4) ? 0 : value; /* no "-0" */
    if (u->fits)
        snprintf(buf, (size_t)size, "%s", value <= 1 ? "fits" : "does not fit");
    else if (u->points)
        snprintf(buf, (size_t)size, "%.1f%s", value, u->suffix);
    else
        snprintf(buf, (size_t)size, fabs(value) >= 1e4 ? "%.0f%s" : "%.4g%s", value, u->suffix);
    return buf;
}

static void say(struct case_claim *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct case_claim *k, const char *fmt, ...)
{
    size_t used = strlen(k->reason);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(k->reason + used, CASE_REASON - used, fmt, ap);
    va_end(ap);
}

/* How many times as long the messages of this job must take to make the claim true; NAN: none.
 * *timed: does the claim depend on that time at all? */
static double needed_scale(const struct case_claim *k, struct case_values *s, int job, bool *timed)
{
    double lo = 1e-3, hi = 1e5, at_lo, at_hi, at;

    s->scaled = job;
    s->scale = lo;
    bool known = case_value_in(&at_lo, k->expression, k->unit, s, NULL) == 0;
    s->scale = hi;
    known = known && case_value_in(&at_hi, k->expression, k->unit, s, NULL) == 0;
    *timed = known && at_lo != at_hi;
    known = known && (at_lo - k->published) * (at_hi - k->published) <= 0;
    for (int i = 0; known && i < BISECTIONS; i++) {
        s->scale = sqrt(lo * hi);
        case_value_in(&at, k->expression, k->unit, s, NULL);
        if ((at_lo - k->published) * (at - k->published) <= 0)
            hi = s->scale;
        else
            lo = s->scale;
    }
    s->scaled = -1;
    return known ? lo : NAN;
}

/* For each job of the claim: how its step splits, and the message time that the claim needs. */
static void say_needs(struct case_claim *k, struct case_values *s)
{
    const struct casefile *c = s->file;
    char rest[UNITS_TEXT], seen[UNITS_TEXT], want[UNITS_TEXT];
    bool named[CASE_JOBS_MAX] = {false};
    double value;
    bool any = false, any_timed = false;

    s->mentioned = named;
    case_value_in(&value, k->expression, k->unit, s, NULL);
    s->mentioned = NULL;
    for (int i = 0; i < c->jobs; i++) {
        const struct case_value *v = &s->value[i];
        bool timed = false;
        double scale = named[i] ? needed_scale(k, s, i, &timed) : NAN;
        if (!timed)
            continue;
        say(k, "; %s: %s of compute and the like, %s of messages", c->job[i].name,
            units_seconds_text(rest, v->sec - v->exposed), units_seconds_text(seen, v->exposed));
        any_timed = true;
        any = any || isfinite(scale);
        if (isfinite(scale))
            say(k, " (the claim needs %s, %.3g times that)",
                units_seconds_text(want, v->exposed * scale), scale);
    }
    if (any_timed && !any)
        say(k, "; no time of one job's messages makes the claim true");
}

static int say_readings(struct case_claim *k, struct case_values *s, struct err *err)
{
    char text[FIGURE];

    for (int i = 0; i < k->readings; i++) {
        struct case_reading *r = &k->reading[i];
        if (case_value_in(&r->value, r->expression, k->unit, s, err) < 0)
            return -1;
        double d = k->unit->points ? r->value - k->published : 100 * (r->value / k->published - 1);
        say(k, "; %s: %s (%+.1f%s)", r->text, case_figure(text, sizeof(text), k->unit, r->value), d,
            k->unit->points ? " points" : " %");
    }
    return 0;
}

/* What fills the memory of each job of the claim. */
static void say_memory(struct case_claim *k, struct case_values *s)
{
    const struct casefile *c = s->file;
    bool named[CASE_JOBS_MAX] = {false};
    double value;

    s->mentioned = named;
    case_value_in(&value, k->expression, k->unit, s, NULL);
    s->mentioned = NULL;
    for (int i = 0; i < c->jobs; i++) {
        const struct memory *m = &s->value[i].memory;
        bool first = true;
        if (!named[i])
            continue;
        say(k, "; %s: %.0f GB of %.0f:", c->job[i].name, m->total / 1e9, m->capacity / 1e9);
        for (int p = 0; p < MEMORY_PARTS; p++) {
            double bytes;
            memcpy(&bytes, (const char *)m + memory_part[p].at, sizeof(bytes));
            if (bytes >= 1e9) {
                say(k, "%s %s %.0f", first ? "" : ",", memory_part[p].name, bytes / 1e9);
                first = false;
            }
        }
    }
}

/* "whatever seq and batch are" */
static void say_keys(struct case_claim *k, const struct casefile *c)
{
    for (int u = 0; u < c->unknowns; u++)
        say(k, "%s%s",
            u == 0                ? " whatever "
            : u + 1 < c->unknowns ? ", "
                                  : " and ",
            c->unknown[u].key);
    say(k, c->unknowns == 1 ? " is" : " are");
}

static bool names_jobs(const struct case_claim *k, const struct casefile *c)
{
    bool named[CASE_JOBS_MAX] = {false};
    struct case_values s = {.file = c, .mentioned = named, .scaled = -1};
    double value;

    case_value_in(&value, k->expression, k->unit, &s, NULL);
    for (int i = 0; i < c->jobs; i++)
        if (named[i])
            return true;
    return false;
}

static void say_verdict(struct case_claim *k, const struct casefile *c, int combinations)
{
    char ours[FIGURE], lo[FIGURE], hi[FIGURE], with[CASE_COMBINATION];
    const char *unit = k->unit->points ? "points" : "%";
    bool plain = k->unit->fits;

    k->reason[0] = '\0';
    say(k, "%s", plain ? "" : case_figure(ours, sizeof(ours), k->unit, k->ours));
    if (plain)
        say(k, "%.2f of the memory", k->ours);
    if (k->hi > k->lo && plain)
        say(k, " (%.2f .. %.2f)", k->lo, k->hi);
    else if (k->hi > k->lo)
        say(k, " (%s .. %s)", case_figure(lo, sizeof(lo), k->unit, k->lo),
            case_figure(hi, sizeof(hi), k->unit, k->hi));
    if (combinations > 1 && k->verdict == CASE_EXCLUDED && names_jobs(k, c))
        say_keys(k, c);
    if (combinations > 1 && k->verdict == CASE_CONSISTENT)
        say(k, ", nearest with %s", case_combination(with, c, k->best));
    if (!plain && fabs(k->off) >= 0.05)
        say(k, ", %+.1f %s", k->off, unit);
}

/* The sentence of a claim whose figures and verdict are known; s: the first combination. */
static int case_reason(struct case_claim *k, struct case_values *s, int combinations,
                       struct err *err)
{
    const struct casefile *c = s->file;

    say_verdict(k, c, combinations);
    if (k->verdict == CASE_EXCLUDED && !names_jobs(k, c))
        say(k, ": the published figures contradict each other");
    else if (k->unit->fits)
        say_memory(k, s);
    else if (k->verdict == CASE_EXCLUDED)
        say_needs(k, s);
    return say_readings(k, s, err);
}

static const double z90 = 1.645; /* 90 % of a normal distribution lie within 1.645 deviations */

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

/* Value i of the unknowns as mixed radix, the first unknown changing fastest. */
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

/* The solved expression at `value`, predicting only the jobs that it names. */
static int try_solved(double *out, struct casefile *c, struct case_job *job,
                      const struct case_solve *s, double value, const bool *named,
                      struct case_values *v, struct err *err)
{
    if (set_solved(c, job, s, value, err) < 0)
        return -1;
    for (int k = 0; k < c->jobs; k++)
        if (named[k] && case_value_of(&v->value[k], &job[k], err) < 0)
            return -1;
    return case_value_in(out, s->expression, s->unit, v, err);
}

/* Find s->found by halving the logarithm of its range, and set it; v->value is scratch.  1: nothing
 * in the range gives the published figure; err says so. */
static int case_solve_for(struct casefile *c, struct case_job *job, struct case_solve *s,
                          struct case_values *v, struct err *err)
{
    bool named[CASE_JOBS_MAX] = {false};
    double lo = s->min, hi = s->max, at_lo, at_hi, mid = lo, at_mid;

    struct case_values names = {.file = c, .mentioned = named, .scaled = -1};
    if (case_value_in(&at_lo, s->expression, s->unit, &names, err) < 0 ||
        try_solved(&at_lo, c, job, s, lo, named, v, err) < 0 ||
        try_solved(&at_hi, c, job, s, hi, named, v, err) < 0)
        return -1;
    if (!((at_lo - s->published) * (at_hi - s->published) <= 0)) {
        err_set(err, "%s from %g to %g gives %s = %.4g to %.4g, which leaves %.4g out", s->key,
                s->min, s->max, s->expression, at_lo, at_hi, s->published);
        return 1;
    }
    for (int i = 0; i < BISECTIONS && hi / lo > 1 + 1e-7 && (!whole(s) || hi - lo > 1); i++) {
        mid = whole(s) ? floor(sqrt(lo * hi)) : sqrt(lo * hi);
        mid = whole(s) && mid <= lo ? lo + 1 : mid;
        if (try_solved(&at_mid, c, job, s, mid, named, v, err) < 0)
            return -1;
        if ((at_lo - s->published) * (at_mid - s->published) <= 0)
            hi = mid, at_hi = at_mid;
        else
            lo = mid, at_lo = at_mid;
    }
    s->found = fabs(at_lo - s->published) < fabs(at_hi - s->published) ? lo : hi;
    return set_solved(c, job, s, s->found, err);
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

int case_evaluate(struct casefile *c, struct err *err)
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

int case_unexpected_claims(const struct casefile *c)
{
    int n = 0;

    for (int i = 0; i < c->claims; i++)
        n += case_unexpected(&c->claim[i]);
    return n;
}
