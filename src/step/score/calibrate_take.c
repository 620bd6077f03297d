/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_take.c - which rows and constants take part in a fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/score/calibrate_parts.h"

bool calibrate_takes(const struct batch_row *r)
{
    return r->status == BATCH_PREDICTED && strncmp(r->split, "test", 4) != 0 &&
           r->other_dtype < 0 && !r->odd;
}

int calibrate_rows(struct fitting *f, const struct batch *b, struct err *err)
{
    struct calibration *out = f->out;

    f->row = mem_calloc((size_t)b->rows + 1, sizeof(*f->row));
    for (int i = 0; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        if (calibrate_takes(r))
            f->row[f->rows++] = (struct taken){.row = r, .index = i};
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
void calibrate_weigh(struct fitting *f)
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

int calibrate_constants(struct fitting *f, struct err *err)
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

/* As batch_anchor() chooses, among the rows taken. */
static void find_anchors(struct fitting *f)
{
    for (int i = 0; i < f->rows; i++) {
        int best = i;
        for (int k = f->rows - 1; k >= 0; k--)
            if (!strcmp(f->row[k].row->family, f->row[i].row->family) &&
                !batch_smaller(f->row[best].row, f->row[k].row))
                best = k;
        f->row[i].anchor = best;
        f->out->anchored += f->opts->anchored && best != i;
    }
}

/* Does this row's step change somewhere in the constant's range?  A kink may hide it where it
 * stands. */
static bool changes(struct fitting *f, int i, const struct calibrated *k, struct constant *c)
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
static void find_dependents(struct fitting *f, int k)
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
void calibrate_depend(struct fitting *f)
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
