/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/calibrate.h"
#include "step/score/anchor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

enum { CALIBRATE_ROWS_MIN = 3 }; /* fewer rows determine no constant */

struct calibrate_row {
    const struct batch_row *row;
    int index;     /* in the batch */
    int anchor;    /* taken row that is the smallest job of its recipe; its own place: none other */
    double weight; /* all together 1 */
    double loss;   /* kept */
    double trial;  /* asked for */
};

struct calibrate_fit {
    struct constants *c;
    const struct calibrate_opts *opts;
    struct calibration *out;
    struct calibrate_row *row;
    int rows;
    int n;            /* constants that are fitted: the first n of out->constant */
    int *at;          /* of out->constant, in c */
    int **depends;    /* rows, -1 ends each list */
    double *start;    /* log of each, as the file has it */
    const char *skip; /* model that is left out; NULL: none */
    double deadline;
    double share, done; /* progress: of this search, of those before */
};

/* Does the row take part? */
static bool calibrate_takes(const struct batch_row *r)
{
    return r->status == BATCH_PREDICTED && strncmp(r->split, "test", 4) != 0 &&
           r->other_dtype < 0 && !r->odd;
}

/* Rows that take part, and their weights. */
static int take_rows(struct calibrate_fit *f, const struct batch *b, struct err *err)
{
    struct calibration *out = f->out;

    f->row = mem_calloc((size_t)b->rows + 1, sizeof(*f->row));
    for (int i = 0; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        if (calibrate_takes(r))
            f->row[f->rows++] = (struct calibrate_row){.row = r, .index = i};
        else if (!strncmp(r->split, "test", 4))
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
                       "no step times",
                       b->table.path, out->test, out->misses, out->claims);
    return 0;
}

/* The header says how. */
static void weigh_rows(struct calibrate_fit *f)
{
    double sum = 0;

    for (int i = 0; i < f->rows; i++) {
        int same = 0;
        for (int k = 0; k < f->rows; k++)
            same += !strcmp(f->row[i].row->job, f->row[k].row->job);
        f->row[i].weight = 1.0 / same;
    }
    double *weight = mem_calloc((size_t)f->rows, sizeof(*weight));
    for (int i = 0; i < f->rows; i++) {
        double jobs = 0;
        bool first = true;
        for (int k = 0; k < f->rows; k++)
            if (!strcmp(f->row[i].row->model, f->row[k].row->model)) {
                jobs += f->row[k].weight;
                first &= k >= i;
            }
        weight[i] = f->row[i].weight / sqrt(jobs);
        sum += weight[i];
        f->out->models += first;
        f->out->jobs += first ? (int)lround(jobs) : 0;
    }
    for (int i = 0; i < f->rows; i++)
        f->row[i].weight = weight[i] / sum;
    free(weight);
}

static bool is_asked(const struct calibrate_opts *o, const char *name)
{
    for (int i = 0; i < o->onlys; i++)
        if (!strcmp(o->only[i], name))
            return true;
    return !o->onlys;
}

/* Constants that are asked for, and which rows' steps change with each. */
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
        double least = one->value > 0 ? 1e-3 * one->value : 1e-4 * max;
        struct calibrated k = {.name = one->name,
                               .before = one->value,
                               .after = one->value,
                               .error = NAN,
                               .low = fmax(min, least),
                               .high = max};
        int n = f->out->constants;
        MEM_PUSH(f->at, n) = i;
        MEM_PUSH(f->out->constant, f->out->constants) = k;
    }
    return 0;
}

/* As anchor_batch() chooses, among the rows taken. */
static void find_anchors(struct calibrate_fit *f)
{
    for (int i = 0; i < f->rows; i++) {
        int best = i;
        for (int k = f->rows - 1; k >= 0; k--)
            if (!strcmp(f->row[k].row->family, f->row[i].row->family) &&
                anchor_order(f->row[best].row, f->row[k].row) >= 0)
                best = k;
        f->row[i].anchor = best;
        f->out->anchored += f->opts->anchored && best != i;
    }
}

/* Does this row's step change somewhere in the constant's range?  A kink may hide it where it
 * stands. */
static bool changes(struct calibrate_fit *f, int i, const struct calibrated *k, struct constant *c)
{
    const double probe[] = {k->low, k->before * 0.7, k->before * 1.4, k->high};
    double at = batch_seconds(f->row[i].row, f->c, 0, NULL);
    bool found = false;

    for (size_t p = 0; p < sizeof(probe) / sizeof(*probe) && !found; p++) {
        c->value = fmin(fmax(probe[p], k->low), k->high);
        found = fabs(batch_seconds(f->row[i].row, f->c, 0, NULL) / at - 1) > 1e-6;
    }
    c->value = k->before;
    return found;
}

/* Rows whose step, or whose anchor's, changes with constant k. */
static void find_dependents(struct calibrate_fit *f, int k)
{
    struct calibrated *out = &f->out->constant[k];
    struct constant *c = &f->c->constant[f->at[k]];
    bool *own = mem_calloc((size_t)f->rows + 1, sizeof(*own));
    int n = 0;

    for (int i = 0; i < f->rows; i++) {
        own[i] = changes(f, i, out, c);
        out->rows += own[i];
    }
    for (int i = 0; i < f->rows; i++)
        if (own[i] || (f->opts->anchored && own[f->row[i].anchor]))
            MEM_PUSH(f->depends[k], n) = i;
    MEM_PUSH(f->depends[k], n) = -1;
    out->fitted = out->rows >= CALIBRATE_ROWS_MIN;
    free(own);
}

/* Constants that too few rows depend on leave the fit and stay as they are. */
static void find_dependence(struct calibrate_fit *f)
{
    int n = 0;

    find_anchors(f);
    f->depends = mem_calloc((size_t)f->out->constants + 1, sizeof(*f->depends));
    for (int k = 0; k < f->out->constants; k++)
        find_dependents(f, k);
    /* Fitted ones first; both parts keep their order. */
    for (int k = 0; k < f->out->constants; k++) {
        if (!f->out->constant[k].fitted)
            continue;
        struct calibrated one = f->out->constant[k];
        int at = f->at[k], *rows = f->depends[k];
        for (int i = k; i > n; i--) {
            f->out->constant[i] = f->out->constant[i - 1];
            f->at[i] = f->at[i - 1];
            f->depends[i] = f->depends[i - 1];
        }
        f->out->constant[n] = one;
        f->at[n] = at;
        f->depends[n++] = rows;
    }
    f->n = n;
}

static const double cap = 0.5, soft = 0.01;

static double loss_at(struct calibrate_fit *f, const struct batch_row *r, double stretch)
{
    double e = log(batch_seconds(r, f->c, stretch, NULL) / r->measured);

    f->out->steps++;
    return isnan(e) ? cap : fmin(sqrt(e * e + soft * soft), cap);
}

static double loss_of(struct calibrate_fit *f, int i)
{
    const struct calibrate_row *t = &f->row[i];

    if (f->skip && !strcmp(t->row->model, f->skip))
        return 0;
    double alone = loss_at(f, t->row, 0);
    if (!f->opts->anchored || t->anchor == i)
        return alone;
    double stretch = anchor_stretch(f->row[t->anchor].row, f->c);
    return (alone + (isnan(stretch) ? alone : loss_at(f, t->row, stretch))) / 2;
}

/* What no row determines stays where it was: to be off by a factor of two from the start counts as
 * much as one job that is off by a twentieth more. */
static double pull(const struct calibrate_fit *f, const double *x, int which, double v)
{
    double sum = 0;

    for (int k = 0; k < f->n; k++) {
        double far = ((k == which ? v : x[k]) - f->start[k]) / log(2);
        sum += far * far;
    }
    return 0.05 * sum / f->out->jobs;
}

/* calibrate_search's x is the log of the constants. */
static double value(void *ctx, const double *x, int which, double v)
{
    struct calibrate_fit *f = ctx;
    double sum = pull(f, x, which, v);

    for (int k = 0; k < f->n; k++)
        f->c->constant[f->at[k]].value = exp(k == which ? v : x[k]);
    for (int i = 0; i < f->rows; i++)
        f->row[i].trial = f->row[i].loss;
    if (which < 0)
        for (int i = 0; i < f->rows; i++)
            f->row[i].trial = loss_of(f, i);
    else
        for (const int *i = f->depends[which]; *i >= 0; i++)
            f->row[*i].trial = loss_of(f, *i);
    for (int i = 0; i < f->rows; i++)
        sum += f->row[i].weight * f->row[i].trial;
    return sum;
}

static void keep(void *ctx)
{
    struct calibrate_fit *f = ctx;

    for (int i = 0; i < f->rows; i++)
        f->row[i].loss = f->row[i].trial;
}

static bool go_on(void *ctx, double done)
{
    struct calibrate_fit *f = ctx;

    if (f->opts->progress)
        f->opts->progress(f->done + f->share * done, f->skip ? f->skip : "fitting");
    return !(f->deadline > 0) || log_now() < f->deadline;
}

/* --- the fit --- */

/* x: the start, and the best when done. */
static double search(struct calibrate_fit *f, double *x, double step, bool *cut)
{
    int n = f->n;
    double *low = mem_calloc((size_t)n + 1, sizeof(*low));
    double *high = mem_calloc((size_t)n + 1, sizeof(*high));

    for (int k = 0; k < n; k++) {
        low[k] = log(f->out->constant[k].low);
        high[k] = log(f->out->constant[k].high);
        x[k] = fmin(fmax(x[k], low[k]), high[k]);
    }
    struct calibrate_search s = {.n = n,
                                 .x = x,
                                 .low = low,
                                 .high = high,
                                 .step = step,
                                 .least = 0.002,
                                 .gain = 1e-4,
                                 .value = value,
                                 .keep = keep,
                                 .go_on = go_on,
                                 .ctx = f};
    double best = calibrate_lowest(&s, cut);
    for (int k = 0; k < n; k++)
        f->c->constant[f->at[k]].value = exp(x[k]);
    free(low);
    free(high);
    return best;
}

/* How far until the loss has grown by its own n-th part, the others kept: for errors spread like
 * exp(-|e|/b) that is about one standard deviation. */
static double profile(struct calibrate_fit *f, double *x, int k, double best)
{
    double limit = best * (1 + 1.0 / f->out->jobs), far = 0;

    for (int side = -1; side <= 1; side += 2) {
        double d = 0.005;
        while (d < 1.5 && value(f, x, k, x[k] + side * d) < limit)
            d *= 1.3;
        far += d / 2;
    }
    f->c->constant[f->at[k]].value = exp(x[k]);
    return far;
}

/* Each model left out in turn (Quenouille 1949, Tukey 1958): how much does the result hang on it?
 */
static void jackknife(struct calibrate_fit *f, const double *x, double *spread, int n)
{
    double *sum = mem_calloc((size_t)n + 1, sizeof(*sum)),
           *y = mem_calloc((size_t)n + 1, sizeof(*y));
    int groups = 0, models = f->out->models;

    for (int i = 0; i < f->rows && !f->out->cut; i++) {
        const char *model = f->row[i].row->model;
        bool first = true;
        for (int k = 0; k < i && first; k++)
            first = strcmp(f->row[k].row->model, model) != 0;
        if (!first)
            continue;
        f->skip = model;
        memcpy(y, x, (size_t)n * sizeof(*y));
        search(f, y, 0.05, &f->out->cut);
        for (int k = 0; k < n; k++)
            sum[k] += (y[k] - x[k]) * (y[k] - x[k]);
        f->done += f->share;
        groups++;
    }
    f->skip = NULL;
    for (int k = 0; k < n; k++)
        spread[k] = groups > 1 ? sqrt(sum[k] * (models - 1) / models) : 0;
    free(sum);
    free(y);
}

/* Values and errors to the four digits that are written. */
static double rounded(double v)
{
    char text[32];

    snprintf(text, sizeof(text), "%.4g", v);
    return strtod(text, NULL);
}

static void errors_of(struct calibrate_fit *f, double *x, double best)
{
    int n = f->n;
    double *spread = mem_calloc((size_t)n + 1, sizeof(*spread));

    jackknife(f, x, spread, n);
    value(f, x, -1, 0);
    keep(f);
    for (int k = 0; k < n; k++) {
        double e = fmax(spread[k], profile(f, x, k, best));
        f->out->constant[k].error = rounded(fmin(fmax(expm1(e), 0.01), 2));
    }
    free(spread);
}

static void write_back(struct calibrate_fit *f, const struct batch *b, const double *x)
{
    const char *name = strrchr(b->table.path, '/');

    for (int k = 0; k < f->n; k++) {
        struct calibrated *out = &f->out->constant[k];
        struct constant *c = &f->c->constant[f->at[k]];
        out->after = c->value = rounded(exp(x[k]));
        c->error = out->error;
        out->at_bound = out->after >= out->high * 0.999 || out->after <= out->low * 1.001;
        free(c->source);
        c->source = mem_printf(
            "railgauge calibrate: least robust log error over %d steps (%d jobs of %d models) of "
            "%s, %d of them depend on it; %d test rows not used; the error is how far it moves "
            "when "
            "a model is left out%s%s",
            f->out->rows, f->out->jobs, f->out->models, name ? name + 1 : b->table.path, out->rows,
            f->out->test,
            f->opts->anchored ? "; half of the loss with one step of the recipe known" : "",
            out->at_bound ? "; at its bound" : "");
    }
}

static void residuals(struct calibrate_fit *f, double *out)
{
    for (int i = 0; i < f->rows; i++)
        out[f->row[i].index] =
            batch_seconds(f->row[i].row, f->c, 0, NULL) / f->row[i].row->measured - 1;
}

static void fit_all(struct calibrate_fit *f, const struct batch *b, double *x)
{
    struct calibration *out = f->out;
    double best = search(f, x, 0.25, &out->cut);
    f->done = f->share;
    f->share = (1 - f->share) / out->models;
    errors_of(f, x, best);
    write_back(f, b, x);
    residuals(f, out->after);
    out->loss_after = best;
}

static void fit(struct calibrate_fit *f, const struct batch *b)
{
    struct calibration *out = f->out;
    double *x = mem_calloc((size_t)out->constants + 1, sizeof(*x));

    f->start = mem_calloc((size_t)out->constants + 1, sizeof(*f->start));
    for (int k = 0; k < f->n; k++)
        f->start[k] = x[k] = log(fmax(out->constant[k].before, out->constant[k].low));
    f->share = 1.0 / (1 + 0.3 * out->models);
    residuals(f, out->before);
    out->loss_before = value(f, x, -1, 0);
    out->loss_after = out->loss_before;
    residuals(f, out->after);
    if (!f->opts->dry_run)
        fit_all(f, b, x);
    free(x);
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
    int rc = take_rows(&f, b, err) < 0 || take_constants(&f, err) < 0 ? -1 : 0;
    if (rc == 0) {
        weigh_rows(&f);
        find_dependence(&f);
        fit(&f, b);
    }
    for (int k = 0; f.depends && k < out->constants; k++)
        free(f.depends[k]);
    free(f.depends);
    free(f.at);
    free(f.row);
    free(f.start);
    return rc;
}

void calibration_free(struct calibration *k)
{
    free(k->constant);
    free(k->before);
    free(k->after);
    memset(k, 0, sizeof(*k));
}
