/* curves.c - railgauge curves: leave points of measured curves out and predict them from the rest.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cost/ladder.h"
#include "emit/table.h"

enum { JSON = 0x400, EVERY, WORST };

struct args {
    const char *file;
    double every;
    int worst;
    bool json;
};

struct curves {
    struct ladders ladders;
    struct miss *miss;
    int misses;
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

/* One row a system and op in the order of the table, then one for all. */
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

static int by_error(const void *a, const void *b)
{
    const struct miss *x = a, *y = b;
    double d = fabs(y->error) - fabs(x->error);

    return d > 0 ? 1 : d < 0 ? -1 : x->ladder - y->ladder;
}

static const char *percent(char buf[32], double x)
{
    if (isnan(x))
        return "-";
    snprintf(buf, 32, "%.2f", x);
    return buf;
}

static void print_worst(const struct curves *c, int worst)
{
    struct table t;

    table_init(&t, "lllrrr");
    table_row(&t, "system", "version", "op", "ranks", "bytes", "error %");
    for (int i = 0; i < worst && i < c->misses; i++) {
        const struct ladder *l = &c->ladders.ladder[c->miss[i].ladder];
        char ranks[16], bytes[UNITS_TEXT], error[32];
        snprintf(ranks, sizeof(ranks), "%d", l->ranks);
        snprintf(error, sizeof(error), "%+.1f", 100 * c->miss[i].error);
        units_bytes_text(bytes, c->miss[i].bytes);
        table_row(&t, l->system, l->version, l->op, ranks, bytes, error);
    }
    putchar('\n');
    table_print(stdout, &t, 0);
    table_free(&t);
}

static void print_text(const struct curves *c, const struct row *row, int rows,
                       const struct args *a)
{
    struct table t;

    printf("%d curves; absolute error in %% of times predicted ", c->ladders.count);
    if (a->every > 1)
        printf("from sizes x%g apart\n\n", a->every);
    else
        printf("from all other sizes of their curve\n\n");
    table_init(&t, "llrrrrr");
    table_row(&t, "system", "op", "n", "median", "mean", "p90", "max");
    for (int i = 0; i < rows; i++) {
        char n[16], text[4][32];
        snprintf(n, sizeof(n), "%d", row[i].n);
        table_row(&t, row[i].system ? row[i].system : "total", row[i].op, n,
                  percent(text[0], row[i].median), percent(text[1], row[i].mean),
                  percent(text[2], row[i].p90), percent(text[3], row[i].max));
    }
    table_print(stdout, &t, 0);
    table_free(&t);
    if (a->worst)
        print_worst(c, a->worst);
}

static json_t *real(double x)
{
    return isnan(x) ? json_null() : json_real(x);
}

static json_t *json_row(const struct row *r)
{
    return json_pack("{s:s*, s:s*, s:i, s:o, s:o, s:o, s:o}", "system", r->system, "op", r->op, "n",
                     r->n, "median_pct", real(r->median), "mean_pct", real(r->mean), "p90_pct",
                     real(r->p90), "max_pct", real(r->max));
}

static void print_json(const struct curves *c, const struct row *row, int rows,
                       const struct args *a)
{
    json_t *list = json_array(), *worst = json_array();

    for (int i = 0; i < rows - 1; i++)
        json_array_append_new(list, json_row(&row[i]));
    for (int i = 0; i < a->worst && i < c->misses; i++) {
        const struct ladder *l = &c->ladders.ladder[c->miss[i].ladder];
        json_array_append_new(worst, json_pack("{s:s, s:s, s:s, s:i, s:f, s:f}", "system",
                                               l->system, "nccl_version", l->version, "op", l->op,
                                               "ranks", l->ranks, "bytes", c->miss[i].bytes,
                                               "error_pct", 100 * c->miss[i].error));
    }
    json_t *out = json_pack("{s:s, s:i, s:f, s:o, s:o, s:o}", "file", a->file, "curves",
                            c->ladders.count, "every", a->every, "rows", list, "total",
                            json_row(&row[rows - 1]), "worst", worst);
    json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(out);
}

static const struct argp_option options[] = {
    {"every", EVERY, "FACTOR", 0,
     "keep only sizes at least FACTOR apart and predict those between them; else each inner size "
     "is left out alone",
     0},
    {"worst", WORST, "N", 0, "also list the N points that are missed most", 0},
    {"json", JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err;

    switch (key) {
    case EVERY:
        if (units_double(&a->every, arg, 1.0001, 1e9, &err) < 0)
            argp_error(state, "--every: %s", err.text);
        break;
    case WORST:
        if (units_int(&a->worst, arg, 1, 1000000, &err) < 0)
            argp_error(state, "--worst: %s", err.text);
        break;
    case JSON:
        a->json = true;
        break;
    case ARGP_KEY_ARG:
        if (a->file)
            argp_error(state, "one table at a time, and \"%s\" is a second one", arg);
        a->file = arg;
        break;
    case ARGP_KEY_END:
        if (!a->file)
            argp_error(state, "give a table of measured curves");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE.tsv",
    .doc =
        "Leave points of measured collective curves out, predict them from the rest of the curve "
        "as every prediction does, and print how far off that is."
        "\vFILE.tsv has the columns system, nccl_version, op, ranks, bytes (as nccl-tests counts "
        "them) and latency_us.\n\n"
        "  railgauge curves nccl_curves.tsv\n"
        "  railgauge curves nccl_curves.tsv --every 8 --worst 10\n"
        "  railgauge curves nccl_curves.tsv --json\n",
};

int cmd_curves(int argc, char **argv)
{
    struct args a = {0};
    struct curves c = {0};
    struct row *row = NULL;
    struct err err;

    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    if (ladders_load(&c.ladders, a.file, &err) < 0)
        return cmd_fail("curves", &err);
    ladders_predict(&c.ladders, a.every, &c.miss, &c.misses);
    int rows = rows_of(&row, &c);
    if (c.misses)
        qsort(c.miss, (size_t)c.misses, sizeof(*c.miss), by_error);
    if (a.json)
        print_json(&c, row, rows, &a);
    else
        print_text(&c, row, rows, &a);
    free(row);
    free(c.miss);
    ladders_free(&c.ladders);
    return EXIT_GOOD;
}
