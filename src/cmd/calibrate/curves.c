/* SPDX-License-Identifier: BSD-3-Clause */
/* curves.c - railgauge-calibrate curves: leave out points of measured curves and predict them from the
 * rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "matrix/ladder.h"

/* Predictions, the worst first, and options of the output. */
struct curves {
    struct ladders ladders;
    struct miss *miss;
    int misses;
    const char *file;
    double every; /* 0: each point alone */
    int worst;    /* number of listed points */
};

/* Errors in percent of one system and op; NULL: of all. */
struct row {
    const char *system, *op;
    int n;
    double median, mean, p90, max;
};

static bool concerns(const struct curves *c, const struct row *r, const struct miss *m)
{
    const struct ladder *l = &c->ladders.ladder[m->ladder];

    return (!r->system || !strcmp(r->system, l->system)) && (!r->op || !strcmp(r->op, l->op));
}

static void judge(struct row *r, const struct curves *c)
{
    double *error = mem_calloc((size_t)c->misses + 1, sizeof(*error));

    r->median = r->mean = r->p90 = r->max = NAN;
    for (int i = 0; i < c->misses; i++)
        if (concerns(c, r, &c->miss[i]))
            error[r->n++] = 100 * fabs(c->miss[i].error);
    if (r->n) {
        stats_sort(error, r->n);
        r->median = stats_quantile(error, r->n, 0.5);
        r->p90 = stats_quantile(error, r->n, 0.9);
        r->max = error[r->n - 1];
        r->mean = 0;
        for (int i = 0; i < r->n; i++)
            r->mean += error[i] / r->n;
    }
    free(error);
}

/* A row per system and op in table order, then a row for all. */
static int rows_of(struct row **rows, const struct curves *c)
{
    int count = 0;

    for (int i = 0; i < c->ladders.count; i++) {
        const struct ladder *l = &c->ladders.ladder[i];
        int k = 0;
        while (k < count && (strcmp((*rows)[k].system, l->system) || strcmp((*rows)[k].op, l->op)))
            k++;
        if (k == count)
            MEM_PUSH(*rows, count) = (struct row){.system = l->system, .op = l->op};
    }
    MEM_PUSH(*rows, count) = (struct row){0};
    for (int k = 0; k < count; k++)
        judge(&(*rows)[k], c);
    return count;
}

static const struct table_column row_columns[] = {
    {"system", "system", "text"}, {"op", "op", "text"},
    {"n", "n", "count"},          {"median_pct", "median", "%.2f"},
    {"mean_pct", "mean", "%.2f"}, {"p90_pct", "p90", "%.2f"},
    {"max_pct", "max", "%.2f"},   {0}};
static const struct table_column worst_columns[] = {{"system", "system", "text"},
                                                    {"nccl_version", "version", "text"},
                                                    {"op", "op", "text"},
                                                    {"ranks", "ranks", "count"},
                                                    {"bytes", "bytes", "bytes"},
                                                    {"error_pct", "error %", "%+.1f"},
                                                    {0}};

static void fill(struct table *rows, struct table *worst, const struct curves *c)
{
    struct row *row = NULL;
    int n = rows_of(&row, c);

    table_open(rows, row_columns);
    for (const struct row *r = row; n && r < row + n; r++)
        table_add(rows, r->system ? r->system : "total", r->op, r->n, r->median, r->mean, r->p90,
                  r->max);
    table_open(worst, worst_columns);
    for (int i = 0; i < c->worst && i < c->misses; i++) {
        const struct ladder *l = &c->ladders.ladder[c->miss[i].ladder];
        table_add(worst, l->system, l->version, l->op, l->ranks, c->miss[i].bytes,
                  100 * c->miss[i].error);
    }
    free(row);
}

static void curves_text(FILE *out, const struct curves *c, const struct table *rows,
                        const struct table *worst)
{
    fprintf(out, "%d curves; absolute error in %% of times predicted ", c->ladders.count);
    if (c->every > 1)
        fprintf(out, "from sizes x%g apart\n\n", c->every);
    else
        fprintf(out, "from all other sizes of their curve\n\n");
    table_print(out, rows, 0);
    if (c->worst) {
        fputc('\n', out);
        table_print(out, worst, 0);
    }
}

/* New reference. */
static json_t *curves_json(const struct curves *c, const struct table *rows,
                           const struct table *worst)
{
    size_t last = json_array_size(rows->rows) - 1;
    json_t *total = json_incref(json_array_get(rows->rows, last));

    json_array_remove(rows->rows, last);
    json_object_del(total, "system");
    return json_pack("{s:s, s:i, s:f, s:O, s:o, s:O}", "file", c->file, "curves", c->ladders.count,
                     "every", c->every, "rows", rows->rows, "total", total, "worst", worst->rows);
}

/* --- the command --- */

struct args {
    struct curves curves;
    bool json;
};

static const struct opt options[] = {
    {"every", 0, "FACTOR",
     "keep only sizes at least FACTOR apart, and predict those between (default: leave out each "
     "inner size alone)",
     OPT_REAL(struct args, curves.every, 1.0001, 1e9)},
    {"worst", 0, "N", "also list the N points with the largest errors",
     OPT_INT(struct args, curves.worst, 1, 1000000)},
    INPUT_JSON(struct args, json),
    {0},
};

static const struct opt words[] = {
    {"table", .help = "give a table of measured curves", OPT_INTO(struct args, curves.file)}, {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "FILE.tsv",
    .doc = "Leave points of measured collective curves out, predict them from the rest "
           "of their curve, and print the errors.\vFILE.tsv has the columns system, "
           "nccl_version, op, ranks, bytes (as in nccl-tests) and latency_us.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Leave out each inner point alone",
                        "railgauge-calibrate curves curves.tsv"),
            OPT_EXAMPLE("Predict between sizes that are 8 times apart, and list the worst points",
                        "railgauge-calibrate curves curves.tsv --every 8 --worst 10"),
            OPT_EXAMPLE("Print JSON", "railgauge-calibrate curves curves.tsv --json"),
            {0}},
    .exits = EXIT_CODES("", ""),
};

static int by_error(const void *a, const void *b)
{
    const struct miss *x = a, *y = b;
    double d = fabs(y->error) - fabs(x->error);

    return d > 0 ? 1 : d < 0 ? -1 : x->ladder - y->ladder;
}

static int cmd_curves(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct curves *c = &a.curves;
    struct table rows, worst;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (ladders_load(&c->ladders, c->file, err) < 0)
        return -1;
    ladders_predict(&c->ladders, c->every, &c->miss, &c->misses);
    if (c->misses)
        qsort(c->miss, (size_t)c->misses, sizeof(*c->miss), by_error);
    fill(&rows, &worst, c);
    if (a.json)
        json_answer(json_framed("railgauge-curves", NULL, curves_json(c, &rows, &worst)), NULL,
                    true, err);
    else
        curves_text(stdout, c, &rows, &worst);
    table_free(&rows);
    table_free(&worst);
    free(c->miss);
    ladders_free(&c->ladders);
    return EXIT_GOOD;
}

const struct command curves_command = {&command, cmd_curves};
