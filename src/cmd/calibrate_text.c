/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/calibrate_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "emit/text/table.h"

enum { CELL = 24 };

static void constants_table(FILE *out, const struct calibration *k)
{
    struct table t;
    char v[4][CELL];

    table_init(&t, "lrrrrl");
    table_row(&t, "constant", "before", "after", "error, %", "rows", "");
    for (int i = 0; i < k->constants; i++) {
        const struct calibrated *c = &k->constant[i];
        snprintf(v[0], CELL, "%.4g", c->before);
        snprintf(v[1], CELL, "%.4g", c->after);
        snprintf(v[2], CELL, isnan(c->error) ? "-" : "%.0f", 100 * c->error);
        snprintf(v[3], CELL, "%d", c->rows);
        table_row(&t, c->name, v[0], v[1], v[2], v[3],
                  !c->fitted    ? "not fitted: too few rows depend on it"
                  : c->at_bound ? "at its bound"
                                : "");
    }
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
}

/* Median absolute error and bias in percent of a model's rows (NULL: of all) that took part. */
static int errors_of(const struct batch *b, const double *error, const char *model, double *median,
                     double *bias)
{
    double *e = mem_calloc((size_t)b->rows + 1, sizeof(*e)), logs = 0;
    int n = 0;

    for (int i = 0; i < b->rows; i++) {
        if (isnan(error[i]) || (model && strcmp(model, b->row[i].model) != 0))
            continue;
        logs += log1p(error[i]);
        e[n++] = 100 * fabs(error[i]);
    }
    *median = n ? stats_median(e, n) : NAN;
    *bias = n ? 100 * expm1(logs / n) : NAN;
    free(e);
    return n;
}

static void residual_row(struct table *t, const struct batch *b, const struct calibration *k,
                         const char *model)
{
    char v[5][CELL];
    double median, bias;

    int n = errors_of(b, k->before, model, &median, &bias);
    snprintf(v[0], CELL, "%d", n);
    snprintf(v[1], CELL, "%.1f", median);
    snprintf(v[2], CELL, "%+.1f", bias);
    errors_of(b, k->after, model, &median, &bias);
    snprintf(v[3], CELL, "%.1f", median);
    snprintf(v[4], CELL, "%+.1f", bias);
    table_row(t, model ? model : "all", v[0], v[1], v[2], v[3], v[4]);
}

static void residuals_table(FILE *out, const struct batch *b, const struct calibration *k)
{
    struct table t;

    table_init(&t, "lrrrrr");
    table_row(&t, "error, %", "rows", "median before", "bias", "median after", "bias");
    residual_row(&t, b, k, NULL);
    for (int i = 0; i < b->rows; i++) {
        bool first = !isnan(k->before[i]);
        for (int j = 0; j < i && first; j++)
            first = isnan(k->before[j]) || strcmp(b->row[j].model, b->row[i].model) != 0;
        if (first)
            residual_row(&t, b, k, b->row[i].model);
    }
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
}

/* What error.unanchored would have to be, were it the only error: 90 % lie within 1.645 of it. */
static void spread(FILE *out, const struct batch *b, const struct calibration *k)
{
    double *e = mem_calloc((size_t)b->rows + 1, sizeof(*e));
    int n = 0;

    for (int i = 0; i < b->rows; i++)
        if (!isnan(k->after[i]))
            e[n++] = fabs(log1p(k->after[i]));
    stats_sort(e, n);
    double p90 = stats_quantile(e, n, 0.9);
    fprintf(
        out,
        "nine of ten of these steps lie within a factor of %.2f; an error.unanchored of %.2g alone "
        "would say so\n",
        exp(p90), p90 / 1.645);
    free(e);
}

void calibrate_text(FILE *out, const struct batch *b, const struct calibration *k,
                    const struct calibrate_opts *o)
{
    fprintf(out,
            "%d steps: %d jobs of %d models; left out: %d test rows, %d in doubt, %d not "
            "predicted, %d no step times\n\n",
            k->rows, k->jobs, k->models, k->test, k->doubtful, k->misses, k->claims);
    if (o->anchored)
        fprintf(out, "%d of them are judged from the smallest job of their recipe as well\n\n",
                k->anchored);
    constants_table(out, k);
    residuals_table(out, b, k);
    spread(out, b, k);
    if (!o->dry_run)
        fprintf(out, "mean loss %.4f, was %.4f; %ld steps predicted on the way%s\n", k->loss_after,
                k->loss_before, k->steps, k->cut ? "; stopped by the limit" : "");
}
