/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_intervals.c - distance of steps from predictions fitted to other rows (calibrate.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "calibrate/calibrate_impl.h"

const char *const leave_name[LEAVE_COUNT + 1] = {"source", "release", "model",
                                                 "gpu",    "family",  NULL};

const char *calibrate_group(const struct batch_row *r, enum leave by)
{
    switch (by) {
    case LEAVE_SOURCE:
        return r->publisher;
    case LEAVE_RELEASE:
        return r->released ? r->release : r->publisher;
    case LEAVE_MODEL:
        return r->model;
    case LEAVE_GPU:
        return r->hardware;
    default:
        return r->family;
    }
}

/* A left-out row: deviations of the measurement from the prediction. */
struct miss {
    double deviations, weight;
};

struct leaving {
    struct calibrate_fit *f;
    double *terms;                     /* deviation of log(step) of each row from its terms */
    struct miss *miss[KNOWN_COUNT][2]; /* dense models; models with routed experts */
    int misses[KNOWN_COUNT][2];
};

static int by_deviations(const void *a, const void *b)
{
    const struct miss *x = a, *y = b;

    return x->deviations < y->deviations ? -1 : x->deviations > y->deviations;
}

/* Keep the levels of a row that other rows have, as in a prediction. */
static void keep_levels(struct calibrate_fit *f, struct effect_level *level, int i,
                        const bool *kept, const double *error)
{
    for (int k = 0; k < f->row[i].levels; k++) {
        int at = f->slot[i * EFFECT_LEVELS + k];
        level[k] = f->row[i].level[k];
        level[k].known = at >= 0 && kept[at];
        level[k].error = level[k].known ? error[f->constants + at] : f->spread[level[k].factor];
    }
}

/* Rows of all layouts of a job, split "layout...".  They separate constants, but many of them run
 * short of memory and are no realistic choice. */
static bool is_sweep(const struct batch_row *r)
{
    return !strncmp(r->split, "layout", 6);
}

/* share: part of the weight of all rows left out together. */
static void judge(struct leaving *l, int i, const bool *kept, const double *x, const double *error,
                  double share)
{
    struct calibrate_fit *f = l->f;
    const struct mixed *m = &f->mixed;
    struct effect_level level[EFFECT_LEVELS];
    struct effect_sum sum;
    double e = m->residual[i];

    for (int k = 0; k < m->fixed; k++)
        e += m->slope[(size_t)i * m->fixed + k] * (x[k] - m->x[k]);
    for (int k = 0; k < m->slots; k++) {
        int at = m->slot[(size_t)i * m->slots + k];
        e += at < 0 ? 0 : m->share[i] * (x[m->fixed + at] - m->x[m->fixed + at]);
    }
    keep_levels(f, level, i, kept, error);
    effect_sum_of(&sum, level, f->row[i].levels);
    double deviation = hypot(hypot(m->rest, l->terms[i]), m->share[i] * sqrt(sum.variance));
    struct miss one = {-e / deviation, share};
    int experts = !f->row[i].row->dense;
    MEM_PUSH(l->miss[sum.known][experts], l->misses[sum.known][experts]) = one;
}

static void leave(struct leaving *l, const bool *left)
{
    struct calibrate_fit *f = l->f;
    int all = f->constants + f->mixed.effects;
    double *x = mem_calloc((size_t)all + 1, sizeof(*x));
    double *error = mem_calloc((size_t)all + 1, sizeof(*error));
    bool *kept = mem_calloc((size_t)all + 1, sizeof(*kept));

    mixed_without(&f->mixed, left, x, error);
    for (int i = 0; i < f->rows; i++)
        for (int k = 0; k < EFFECT_LEVELS && !left[i]; k++)
            if (f->slot[i * EFFECT_LEVELS + k] >= 0)
                kept[f->slot[i * EFFECT_LEVELS + k]] = true;
    /* The next question is about one group, with many rows or few: all groups count alike. */
    double sum = 0;
    for (int i = 0; i < f->rows; i++)
        sum += left[i] ? f->weight[i] : 0;
    for (int i = 0; i < f->rows; i++)
        if (left[i] && !is_sweep(f->row[i].row))
            judge(l, i, kept, x, error, f->weight[i] / sum);
    free(x);
    free(error);
    free(kept);
}

/* Leave out each group in turn, or with `folds` every n-th together; groups are numbered by
 * appearance. */
static void leave_each(struct leaving *l, enum leave by, bool jobs, int folds)
{
    struct calibrate_fit *f = l->f;
    int *group = mem_ints(f->rows, -1), groups = 0;
    bool *left = mem_calloc((size_t)f->rows + 1, sizeof(*left));

    for (int i = 0; i < f->rows; i++) {
        const struct batch_row *r = f->row[i].row;
        for (int k = 0; k < i && group[i] < 0; k++) {
            const struct batch_row *o = f->row[k].row;
            if (jobs ? !strcmp(r->job, o->job)
                     : !strcmp(calibrate_group(r, by), calibrate_group(o, by)))
                group[i] = group[k];
        }
        group[i] = group[i] < 0 ? groups++ : group[i];
    }
    folds = folds && folds < groups ? folds : groups;
    for (int fold = 0; fold < folds && groups > 1; fold++) {
        for (int i = 0; i < f->rows; i++)
            left[i] = group[i] % folds == fold;
        leave(l, left);
    }
    free(group);
    free(left);
}

/* Returns the deviation below which `share` of the weight lies. */
static double quantile(const struct miss *miss, int n, double share)
{
    double sum = 0, below = 0;
    int i = 0;

    for (int k = 0; k < n; k++)
        sum += miss[k].weight;
    for (; i < n - 1 && below + miss[i].weight / 2 < share * sum; i++)
        below += miss[i].weight;
    return miss[i].deviations;
}

/* With few misses, use the interval of the next more familiar class. */
static void set_interval(struct effect_interval *out, struct miss *miss, int n)
{
    enum { ENOUGH = 20 };
    const double least = 0.1;
    const double tail = 0.04; /* instead of 0.05: deviations were estimated with those rows too */

    out->n = n;
    if (n < ENOUGH)
        return;
    qsort(miss, (size_t)n, sizeof(*miss), by_deviations);
    out->lo = fmin(-least, quantile(miss, n, tail));
    out->hi = fmax(least, quantile(miss, n, 1 - tail));
}

static void set_intervals(struct leaving *l)
{
    struct effects *e = &l->f->c->effects, none;

    effects_none(&none);
    for (int i = 0; i < KNOWN_COUNT; i++)
        for (int k = 0; k < 2; k++) {
            e->interval[i][k] = i ? e->interval[i - 1][k] : none.interval[i][k];
            set_interval(&e->interval[i][k], l->miss[i][k], l->misses[i][k]);
        }
}

void calibrate_intervals(struct calibrate_fit *f)
{
    struct leaving l = {.f = f, .terms = mem_calloc((size_t)f->rows + 1, sizeof(double))};

    for (int i = 0; i < f->rows; i++) {
        struct question q = batch_question(f->row[i].row, f->c);
        struct prediction p;
        if (predict_step(&p, &q, NULL) == 0)
            l.terms[i] = p.terms_deviation;
        prediction_free(&p);
    }
    for (int by = LEAVE_SOURCE; by <= LEAVE_GPU; by++)
        leave_each(&l, (enum leave)by, false, 0);
    leave_each(&l, LEAVE_FAMILY, false, 10);
    leave_each(&l, LEAVE_COUNT, true, 10);
    set_intervals(&l);
    for (int i = 0; i < 2 * KNOWN_COUNT; i++)
        free(l.miss[i / 2][i % 2]);
    free(l.terms);
}
