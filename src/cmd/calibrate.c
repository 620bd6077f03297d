/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.c - railgauge calibrate: refit the global constants to a table of measured steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "cmd/command.h"
#include "step/score/calibrate.h"

static void constants_table(FILE *out, const struct calibration *k)
{
    static const struct table_column columns[] = {{NULL, "constant", "text"},
                                                  {NULL, "before", "%.4g"},
                                                  {NULL, "after", "%.4g"},
                                                  {NULL, "error, %", "100*%.0f"},
                                                  {NULL, "rows", "count"},
                                                  {NULL, "", "text"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < k->constants; i++) {
        const struct calibrated *c = &k->constant[i];
        table_add(&t, c->name, c->before, c->after, c->error, c->rows,
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

static void calibrate_text(FILE *out, const struct batch *b, const struct calibration *k,
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

/* --- the command --- */

struct args {
    const char *table, *constants, *output;
    char **only; /* own texts */
    int onlys;
    double limit;
    bool dry_run, anchored;
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
    {"output", 'o', "FILE", "write the constants here, those that were not fitted too",
     OPT_INTO(struct args, output)},
    {"constants", 0, "FILE", "start from these, not from jobs/training/constants.json",
     OPT_INTO(struct args, constants)},
    {"only", 0, "NAME,...", "fit these alone", OPT_CALL(take_names)},
    {"anchored", 0, NULL,
     "half of a row's loss is its error once the smallest job of its recipe is known",
     OPT_INTO(struct args, anchored)},
    {"limit", 0, "TIME", "stop after this long with what was found (default 5m)",
     OPT_SECONDS(struct args, limit)},
    {"dry-run", 0, NULL, "print which rows would be fitted to and how far off they are",
     OPT_INTO(struct args, dry_run)},
    {0},
};

static const struct opt words[] = {
    {"table", .help = "give a table of measured steps", OPT_INTO(struct args, table)}, {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "TABLE",
    .doc =
        "Refit the global constants of the step model to a table of measured steps (the columns of "
        "predict --batch), reproducibly.  Rows whose split begins with \"test\" take no part."
        "\vWithout --output nothing is written.\n\n"
        "  railgauge calibrate steps.tsv\n"
        "  railgauge calibrate steps.tsv -o constants.json\n"
        "  railgauge calibrate steps.tsv --only exposed.ep,overlap.dp -o constants.json\n"
        "  railgauge predict --batch steps.tsv --constants constants.json --score\n\n" EXIT_CODES(
            "2 no row to fit to, ", ", 75 stopped by the limit"),
};

static struct progress line;

static void progress(double done, const char *what)
{
    progress_show(&line, done, what);
}

static int run(const struct args *a, struct batch *b, struct constants *c, struct err *err)
{
    struct calibrate_opts opts = {.only = (const char *const *)a->only,
                                  .onlys = a->onlys,
                                  .limit = a->limit,
                                  .dry_run = a->dry_run,
                                  .anchored = a->anchored,
                                  .progress = progress};
    struct calibration k;

    if (batch_load(b, a->table, err) < 0 || constants_load(c, a->constants, err) < 0)
        return -1;
    for (int i = 0; i < b->notes; i++)
        log_info("%s", b->note[i]);
    batch_resolve(b, c);
    batch_predict(b, c);
    progress_start(&line, 1);
    int rc = calibrate(&k, b, c, &opts, err);
    progress_end(&line);
    if (rc == 0 && a->output && !a->dry_run)
        rc = constants_save(c, a->output, err);
    if (rc == 0)
        calibrate_text(stdout, b, &k, &opts);
    if (rc == 0 && a->output && !a->dry_run)
        printf("wrote %s\n", a->output);
    if (rc == 0 && k.cut)
        rc = err_code(err, EXIT_CUT, "the limit stopped the search before it was done");
    calibration_free(&k);
    return rc;
}

static int cmd_calibrate(int argc, char **argv, struct err *err)
{
    struct args a = {.limit = 300};
    struct batch b = {0};
    struct constants c = {0};

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = run(&a, &b, &c, err);
    batch_free(&b);
    constants_free(&c);
    for (int i = 0; i < a.onlys; i++)
        free(a.only[i]);
    free(a.only);
    return rc;
}

const struct command calibrate_command = {&command, cmd_calibrate};
