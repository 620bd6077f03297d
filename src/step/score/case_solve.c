/* SPDX-License-Identifier: BSD-3-Clause */
/* case_solve.c - what a publication leaves out: values to try, and settings found from a figure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "step/score/case_value.h"

enum { BISECTIONS = 60 };

/* Value i of the unknowns as mixed radix, the first unknown changing fastest. */
int case_set_unknowns(struct casefile *c, struct case_job *job, int combination, struct err *err)
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

char *case_combination(char buf[CASE_COMBINATION], const struct casefile *c, int combination)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int u = 0; u < c->unknowns; u++) {
        const struct case_unknown *x = &c->unknown[u];
        int n = snprintf(buf + used, CASE_COMBINATION - used, "%s%s %s", u ? ", " : "", x->key,
                         x->value[combination % x->values]);
        combination /= x->values;
        used =
            n > 0 && used + (size_t)n < CASE_COMBINATION ? used + (size_t)n : CASE_COMBINATION - 1;
    }
    return buf;
}

static bool is_stretch(const struct case_solve *s)
{
    return !strcmp(s->key, "stretch");
}

static bool whole(const struct case_solve *s)
{
    for (int i = 0; i < recipe_settings; i++)
        if (recipe_same_key(recipe_setting[i].key, s->key))
            return recipe_setting[i].kind == SETTING_INT;
    return !is_stretch(s);
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

/* Bisection of what grows (or falls) with the setting; the logarithm of it is halved. */
int case_solve_for(struct casefile *c, struct case_job *job, struct case_solve *s,
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
