/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "calibrate/calibrate_impl.h"

enum { CALIBRATE_ROWS_MIN = 3 }; /* minimum of rows that determine a constant */

/* True if the row takes part in the fit. */
static bool calibrate_takes(const struct batch_row *r)
{
    return r->status == BATCH_PREDICTED && !batch_is_test(r) && r->other_dtype < 0 && !r->odd;
}

/* Collect the rows that take part, and their weights. */
static int take_rows(struct calibrate_fit *f, const struct batch *b, struct err *err)
{
    struct calibration *out = f->out;

    f->row = mem_calloc((size_t)b->rows + 1, sizeof(*f->row));
    for (int i = 0; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        if (f->opts->left && f->opts->left[i])
            out->left++;
        else if (calibrate_takes(r))
            f->row[f->rows++] = (struct calibrate_row){.row = r, .index = i};
        else if (batch_is_test(r))
            out->test++;
        else
            *(r->status == BATCH_CLAIM       ? &out->claims
              : r->status == BATCH_PREDICTED ? &out->doubtful
                                             : &out->misses) += 1;
    }
    out->rows = f->rows;
    if (f->rows == 0)
        return err_set(err,
                       "%s: no row to fit to: %d are test rows, %d could not be predicted, %d are "
                       "no step times, %d are left out",
                       b->table.path, out->test, out->misses, out->claims, out->left);
    return 0;
}

/* Weights as described in calibrate.h. */
static void weigh_rows(struct calibrate_fit *f)
{
    const double enough = 40; /* jobs of a model with full weight */

    f->weight = mem_calloc((size_t)f->rows + 1, sizeof(*f->weight));
    for (int i = 0; i < f->rows; i++) {
        int same = 0;
        for (int k = 0; k < f->rows; k++)
            same += !strcmp(f->row[i].row->job, f->row[k].row->job);
        f->row[i].share = 1.0 / same;
    }
    for (int i = 0; i < f->rows; i++) {
        double jobs = 0;
        bool first = true;
        for (int k = 0; k < f->rows; k++)
            if (!strcmp(f->row[i].row->model, f->row[k].row->model)) {
                jobs += f->row[k].share;
                first &= k >= i;
            }
        f->weight[i] = fmin(1, sqrt(enough / jobs));
        f->out->models += first;
        f->out->jobs += first ? (int)lround(jobs) : 0;
    }
}

/* --- constants --- */

static bool is_asked(const struct calibrate_opts *o, const char *name)
{
    for (int i = 0; i < o->onlys; i++)
        if (!strcmp(o->only[i], name))
            return true;
    return !o->onlys;
}

/* Convert a value in (0, max) to a number without bounds, the log of its odds; value_of() converts
 * back. */
static double odds(double value, double max)
{
    double share = fmin(fmax(value / max, 1e-6), 1 - 1e-6);

    return log(share / (1 - share));
}

static double value_of(double odds, double max)
{
    return max / (1 + exp(-odds));
}

/* Returns the number of rows whose step changes somewhere in the constant's range.  At its current
 * value a kink may hide the change. */
static int count_dependents(struct calibrate_fit *f, int at, double min, double max)
{
    struct constant *c = &f->c->constant[at];
    double was = c->value, low = fmax(min, was > 0 ? was / 4 : max / 1e3);
    int n = 0;

    for (int i = 0; i < f->rows; i++) {
        c->value = low;
        double a = batch_seconds(f->row[i].row, f->c, 1, NULL);
        c->value = fmin(max, fmax(4 * was, 4 * low));
        n += fabs(batch_seconds(f->row[i].row, f->c, 1, NULL) / a - 1) > 1e-6;
    }
    c->value = was;
    return n;
}

static int take_constants(struct calibrate_fit *f, struct err *err)
{
    double min, max;

    for (int i = 0; i < f->opts->onlys; i++)
        if (!constants_find(f->c, f->opts->only[i]) ||
            !constants_fitted(f->opts->only[i], &min, &max))
            return err_usage(err, "\"%s\" is no constant that is fitted", f->opts->only[i]);
    for (int i = 0; i < f->c->count; i++) {
        const struct constant *one = &f->c->constant[i];
        if (!constants_fitted(one->name, &min, &max) || !is_asked(f->opts, one->name))
            continue;
        struct calibrated k = {.name = one->name,
                               .before = one->value,
                               .after = one->value,
                               .prior = one->width > 0 ? one->prior : one->value,
                               .error = NAN,
                               .rows = count_dependents(f, i, min, max)};
        k.fitted = k.rows >= CALIBRATE_ROWS_MIN;
        MEM_PUSH(f->out->constant, f->out->constants) = k;
        if (k.fitted) {
            struct calibrate_constant fitted = {i, f->out->constants - 1, max};
            MEM_PUSH(f->constant, f->constants) = fitted;
        }
    }
    return 0;
}

/* --- effects --- */

static int effect_at(struct calibrate_fit *f, const struct effect_level *l)
{
    for (int i = 0; i < f->effects.count; i++)
        if (f->effects.effect[i].factor == l->factor &&
            !strcmp(f->effects.effect[i].level, l->level))
            return i;
    struct effect one = {.factor = l->factor, .level = mem_strdup(l->level)};
    MEM_PUSH(f->effects.effect, f->effects.count) = one;
    return f->effects.count - 1;
}

static void take_effects(struct calibrate_fit *f)
{
    effects_none(&f->effects);
    f->slot = mem_ints(f->rows * EFFECT_LEVELS, -1);
    for (int i = 0; i < f->rows; i++) {
        struct question q = batch_question(f->row[i].row, f->c);
        const struct rate fitted = {.basis = BASIS_FITTED};
        struct effect_level *level = f->row[i].level;
        int n = f->row[i].levels = rate_effects(level, &fitted, &q);
        for (int k = 0; k < n; k++) {
            if (!*level[k].level)
                continue;
            int at = effect_at(f, &level[k]);
            f->slot[i * EFFECT_LEVELS + k] = at;
            f->effects.effect[at].n++;
        }
    }
}

/* --- the fit --- */

static void set_constants(struct calibrate_fit *f, const double *x)
{
    for (int k = 0; k < f->constants; k++)
        f->c->constant[f->constant[k].at].value = value_of(x[k], f->constant[k].max);
}

/* Residuals for struct mixed; sum is the log of the factor on compute. */
static void residuals(void *ctx, const double *x, const double *sum, double *residual)
{
    struct calibrate_fit *f = ctx;

    set_constants(f, x);
    for (int i = 0; i < f->rows; i++)
        residual[i] =
            log(batch_seconds(f->row[i].row, f->c, exp(sum[i]), NULL) / f->row[i].row->measured);
}

static bool go_on(void *ctx, double done)
{
    struct calibrate_fit *f = ctx;

    if (f->opts->progress)
        f->opts->progress(0.6 * done, "fitting");
    return !(f->deadline > 0) || log_now() < f->deadline;
}

static void prepare(struct calibrate_fit *f)
{
    int n = f->constants, effects = f->effects.count, all = n + effects;
    double *prior = mem_calloc((size_t)n + 1, sizeof(*prior));
    double *width = mem_calloc((size_t)n + 1, sizeof(*width));
    int *factor = mem_ints(effects, 0);
    size_t rows = (size_t)f->rows + 1;

    f->mixed = (struct mixed){.rows = f->rows,
                              .fixed = n,
                              .effects = effects,
                              .factors = EFFECT_FACTORS,
                              .slots = EFFECT_LEVELS,
                              .weight = f->weight,
                              .prior = prior,
                              .width = width,
                              .factor = factor,
                              .slot = f->slot,
                              .x = mem_calloc((size_t)all + 1, sizeof(double)),
                              .error = mem_calloc((size_t)all + 1, sizeof(double)),
                              .spread = f->spread,
                              .residual = mem_calloc(rows, sizeof(double)),
                              .share = mem_calloc(rows, sizeof(double)),
                              .slope = mem_calloc(rows * ((size_t)n + 1), sizeof(double)),
                              .ask = residuals,
                              .go_on = go_on,
                              .ctx = f};
    for (int k = 0; k < n; k++) {
        const struct constant *c = &f->c->constant[f->constant[k].at];
        prior[k] = odds(c->width > 0 ? c->prior : c->value, f->constant[k].max);
        width[k] = c->width > 0 ? c->width : 0.5;
        f->mixed.x[k] = odds(c->value, f->constant[k].max);
    }
    for (int i = 0; i < f->effects.count; i++)
        factor[i] = f->effects.effect[i].factor;
}

/* Round to the four digits that are written. */
static double rounded(double v)
{
    char text[32];

    snprintf(text, sizeof(text), "%.4g", v);
    return strtod(text, NULL);
}

static void write_constants(struct calibrate_fit *f, const struct batch *b)
{
    const char *name = strrchr(b->table.path, '/');
    const struct calibration *all = f->out;

    for (int k = 0; k < f->constants; k++) {
        struct calibrated *out = &f->out->constant[f->constant[k].out];
        struct constant *c = &f->c->constant[f->constant[k].at];
        double max = f->constant[k].max;
        out->after = c->value = rounded(value_of(f->mixed.x[k], max));
        /* d log(value) / d odds = 1 - value / max */
        out->error = c->error =
            rounded(fmin(fmax(f->mixed.error[k] * (1 - c->value / max), 0.001), 2));
        out->at_bound = c->value > 0.98 * max;
        free(c->source);
        c->source = mem_printf(
            "railgauge-calibrate refit: most probable with its prior and %d steps (%d jobs of "
            "%d models) of %s%s, %d of them depend on it; %d test rows not used%s",
            all->rows, all->jobs, all->models, name ? name + 1 : b->table.path,
            b->mores ? " and others" : "", out->rows, all->test,
            out->at_bound ? "; at its bound" : "");
    }
}

static void write_effects(struct calibrate_fit *f)
{
    struct effects *e = &f->effects;

    e->rest = rounded(f->mixed.rest);
    for (int i = 0; i < EFFECT_FACTORS; i++)
        e->spread[i] = rounded(f->spread[i]);
    for (int i = 0; i < e->count; i++) {
        e->effect[i].value = rounded(fmin(fmax(f->mixed.x[f->constants + i], -3), 3));
        e->effect[i].error = rounded(fmin(f->mixed.error[f->constants + i], 2));
    }
    memcpy(e->interval, f->interval, sizeof(e->interval));
    effects_free(&f->c->effects);
    f->c->effects = *e;
    memset(e, 0, sizeof(*e));
}

static void errors_of(struct calibrate_fit *f, double *out)
{
    for (int i = 0; i < f->rows; i++)
        out[f->row[i].index] =
            batch_seconds(f->row[i].row, f->c, 0, NULL) / f->row[i].row->measured - 1;
}

/* Drop the effects, because they are fitted anew and residuals() receives them in its sum. */
static void set_aside(struct calibrate_fit *f)
{
    memcpy(f->interval, f->c->effects.interval, sizeof(f->interval));
    if (f->opts->dry_run)
        return;
    effects_free(&f->c->effects);
    effects_none(&f->c->effects);
}

/* Weigh the rows of a publisher by their residuals: figures of some publishers are consistent,
 * those of others rough. */
static void trust_publishers(struct calibrate_fit *f)
{
    const double usual = 10; /* rows of prior weight at the usual residual */
    double rest = f->mixed.rest * f->mixed.rest,
           *worth = mem_calloc((size_t)f->rows + 1, sizeof(*worth));

    for (int i = 0; i < f->rows; i++) {
        double squares = usual * rest, rows = usual;
        for (int k = 0; k < f->rows; k++)
            if (!strcmp(f->row[i].row->publisher, f->row[k].row->publisher)) {
                double r = f->mixed.residual[k];
                squares += fmin(r * r, 9 * rest);
                rows++;
            }
        worth[i] = fmin(fmax(rest * rows / squares, 0.1), 2);
    }
    for (int i = 0; i < f->rows; i++)
        f->weight[i] *= worth[i];
    free(worth);
}

static void fit(struct calibrate_fit *f, const struct batch *b)
{
    if (!f->opts->dry_run) {
        take_effects(f);
        prepare(f);
        f->out->cut = !mixed_solve(&f->mixed);
        if (!f->out->cut) {
            trust_publishers(f);
            f->out->cut = !mixed_solve(&f->mixed);
        }
        set_constants(f, f->mixed.x);
        write_constants(f, b);
        write_effects(f);
        if (!f->opts->quick && !f->out->cut)
            calibrate_intervals(f);
    }
    errors_of(f, f->out->after);
}

static void end(struct calibrate_fit *f)
{
    free(f->row);
    free(f->weight);
    free(f->constant);
    free(f->slot);
    effects_free(&f->effects);
    free((void *)f->mixed.prior);
    free((void *)f->mixed.width);
    free((void *)f->mixed.factor);
    free(f->mixed.x);
    free(f->mixed.error);
    free(f->mixed.residual);
    free(f->mixed.share);
    free(f->mixed.slope);
}

int calibrate(struct calibration *out, const struct batch *b, struct constants *c,
              const struct calibrate_opts *opts, struct err *err)
{
    struct calibrate_fit f = {.c = c, .out = out, .opts = opts};

    memset(out, 0, sizeof(*out));
    f.deadline = opts->limit > 0 ? log_now() + opts->limit : 0;
    out->before = mem_calloc((size_t)b->rows + 1, sizeof(*out->before));
    out->after = mem_calloc((size_t)b->rows + 1, sizeof(*out->after));
    for (int i = 0; i < b->rows; i++)
        out->before[i] = out->after[i] = NAN;
    int rc = take_rows(&f, b, err);
    if (rc == 0) {
        errors_of(&f, out->before);
        set_aside(&f);
        rc = take_constants(&f, err);
    }
    if (rc == 0) {
        weigh_rows(&f);
        fit(&f, b);
    }
    end(&f);
    return rc;
}

void calibration_free(struct calibration *k)
{
    free(k->constant);
    free(k->before);
    free(k->after);
    memset(k, 0, sizeof(*k));
}
