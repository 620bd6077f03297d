/* SPDX-License-Identifier: BSD-3-Clause */
/* refit.c - railgauge-calibrate refit: refit the global constants to a table of measured steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "calibrate/calibrate.h"
#include "cmd/calibrate/tables_impl.h"
#include "cmd/command.h"

static void constants_table(FILE *out, const struct calibration *k)
{
    static const struct table_column columns[] = {{NULL, "constant", "text"},
                                                  {NULL, "before", "%.4g"},
                                                  {NULL, "after", "%.4g"},
                                                  {NULL, "prior", "%.4g"},
                                                  {NULL, "error, %", "100*%.0f"},
                                                  {NULL, "rows", "count"},
                                                  {NULL, "", "text"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < k->constants; i++) {
        const struct calibrated *c = &k->constant[i];
        table_add(&t, c->name, c->before, c->after, c->prior, c->error, c->rows,
                  !c->fitted    ? "not fitted: too few rows depend on it"
                  : c->at_bound ? "at its bound"
                                : "");
    }
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
}

/* Median absolute error and bias in percent, over the used rows of a model (NULL: of all). */
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
    double before[2], after[2];
    int n = errors_of(b, k->before, model, &before[0], &before[1]);

    errors_of(b, k->after, model, &after[0], &after[1]);
    table_add(t, model ? model : "all", n, before[0], before[1], after[0], after[1]);
}

static void residuals_table(FILE *out, const struct batch *b, const struct calibration *k)
{
    static const struct table_column columns[] = {{NULL, "error, %", "text"},
                                                  {NULL, "rows", "count"},
                                                  {NULL, "median before", "%.1f"},
                                                  {NULL, "bias", "%+.1f"},
                                                  {NULL, "median after", "%.1f"},
                                                  {NULL, "bias", "%+.1f"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
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

/* Largest effects first, a limited number per factor. */
static void effects_table(FILE *out, const struct effects *e)
{
    enum { SHOWN = 5 };
    static const struct table_column columns[] = {
        {NULL, "effect on compute", "text"}, {NULL, "level", "text"}, {NULL, "%", "100*%+.1f"},
        {NULL, "error, %", "100*%.1f"},      {NULL, "rows", "count"}, {0}};
    bool *shown = mem_calloc((size_t)e->count + 1, sizeof(*shown));
    struct table t;

    table_open(&t, columns);
    for (int factor = 0; factor < EFFECT_FACTORS; factor++) {
        int levels = 0;
        for (int i = 0; i < e->count; i++)
            levels += e->effect[i].factor == factor;
        char *all = mem_printf("%d levels, one deviation", levels);
        table_add(&t, effect_factor_name[factor], all, e->spread[factor], NAN, 0);
        free(all);
        for (int n = 0; n < SHOWN; n++) {
            int best = -1;
            for (int i = 0; i < e->count; i++)
                if (e->effect[i].factor == factor && !shown[i] &&
                    (best < 0 || fabs(e->effect[i].value) > fabs(e->effect[best].value)))
                    best = i;
            if (best < 0)
                break;
            shown[best] = true;
            table_add(&t, "", e->effect[best].level, expm1(e->effect[best].value),
                      e->effect[best].error, e->effect[best].n);
        }
    }
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
    free(shown);
}

static void intervals_table(FILE *out, const struct effects *e)
{
    static const struct table_column columns[] = {
        {NULL, "what is known", "text"},   {NULL, "model", "text"},
        {NULL, "rows left out", "count"},  {NULL, "nine of ten from", "%+.2f"},
        {NULL, "to, deviations", "%+.2f"}, {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < 2 * KNOWN_COUNT; i++) {
        const struct effect_interval *one = &e->interval[i / 2][i % 2];
        table_add(&t, known_name[i / 2], i % 2 ? "experts" : "dense", one->n, one->lo, one->hi);
    }
    table_print(out, &t, 0);
    table_free(&t);
    fprintf(out, "\na row of which all is known has a deviation of %.1f %% beside those\n",
            100 * e->rest);
}

static void calibrate_text(FILE *out, const struct batch *b, const struct calibration *k,
                           const struct effects *e, bool fitted)
{
    fprintf(out,
            "%d steps: %d jobs of %d models; left out: %d test rows, %d in doubt, %d not "
            "predicted, %d no step times, %d as asked\n\n",
            k->rows, k->jobs, k->models, k->test, k->doubtful, k->misses, k->claims, k->left);
    constants_table(out, k);
    residuals_table(out, b, k);
    if (!fitted)
        return;
    effects_table(out, e);
    intervals_table(out, e);
}

/* --- the command --- */

struct args {
    struct batch_tables batch;
    const char *constants, *output;
    char **only; /* owned strings */
    int onlys;
    double limit;
    bool dry_run;
};

static int take_names(void *args, char *text, struct err *err)
{
    struct args *a = args;

    (void)err;
    while (*text) {
        size_t n = strcspn(text, ",");
        if (n)
            MEM_PUSH(a->only, a->onlys) = mem_printf("%.*s", (int)n, text);
        text += n + (text[n] == ',');
    }
    return 0;
}

static const struct opt options[] = {
    {"output", 'o', "FILE", "file to write all constants to, also those that were not fitted",
     OPT_INTO(struct args, output)},
    CONSTANTS_ROW(struct args, constants),
    {"only", 0, "NAME,...", "constants to fit (default: all)", OPT_CALL(take_names)},
    LEAVE_OUT_ROW(struct args, batch),
    {"limit", 0, "TIME", "stop after this long and keep what was found (default 5m)",
     OPT_SECONDS(struct args, limit)},
    {"dry-run", 0, NULL, "only print which rows would be fitted to, and their errors",
     OPT_INTO(struct args, dry_run)},
    {0},
};

static const struct opt words[] = {TABLE_ROW(struct args, batch), {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "TABLE...",
    .doc = "Refit the global constants and effects of the step model to tables of "
           "measured steps, reproducibly.\vRows whose split begins with \"test\" take no "
           "part. Without --output nothing is written.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Print how far off the constants are, and which rows count",
                        "railgauge-calibrate refit steps.tsv --dry-run"),
            OPT_EXAMPLE("Write new constants",
                        "railgauge-calibrate refit steps.tsv -o constants.json"),
            OPT_EXAMPLE(
                "Fit two constants only",
                "railgauge-calibrate refit steps.tsv --only exposed.ep,overlap.dp -o two.json"),
            OPT_EXAMPLE("Score the new constants",
                        "railgauge-calibrate score steps.tsv --constants constants.json"),
            {0}},
    .exits = EXIT_CODES("2 no row to fit to, ", ", 75 stopped by the limit"),
};

static struct progress line;

static void progress(double done, const char *what)
{
    progress_show(&line, done, what);
}

static int run(const struct args *a, struct batch *b, struct constants *c, bool **left,
               struct err *err)
{
    struct calibration k;

    if (batch_load_tables(b, &a->batch, left, err) < 0 || constants_load(c, a->constants, err) < 0)
        return -1;
    const struct calibrate_opts opts = {.only = (const char *const *)a->only,
                                        .onlys = a->onlys,
                                        .limit = a->limit,
                                        .dry_run = a->dry_run,
                                        .left = *left,
                                        .progress = progress};
    for (int i = 0; i < b->notes; i++)
        log_info("%s", b->note[i]);
    batch_resolve(b, c);
    progress_start(&line, 1);
    int rc = calibrate(&k, b, c, &opts, err);
    progress_end(&line);
    if (rc == 0 && a->output && !a->dry_run)
        rc = constants_save(c, a->output, err);
    if (rc == 0)
        calibrate_text(stdout, b, &k, &c->effects, !a->dry_run);
    if (rc == 0 && a->output && !a->dry_run)
        printf("wrote %s\n", a->output);
    if (rc == 0 && k.cut)
        rc = err_code(err, EXIT_CUT, "the limit stopped the fit before it was done");
    calibration_free(&k);
    return rc;
}

static int cmd_refit(int argc, char **argv, struct err *err)
{
    struct args a = {.limit = 300};
    struct batch b = {0};
    struct constants c = {0};
    bool *left = NULL;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = run(&a, &b, &c, &left, err);
    batch_free(&b);
    constants_free(&c);
    for (int i = 0; i < a.onlys; i++)
        free(a.only[i]);
    free(a.only);
    free(a.batch.table);
    free(a.batch.leave_out);
    free(left);
    return rc;
}

const struct command refit_command = {&command, cmd_refit};
