/* predict_score.c - how good the predictions of a table were, as tables. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/predict_batch.h"
#include "emit/text/table.h"
#include "step/score/score.h"

enum { CELL = 24 };

static const char *percent(char buf[CELL], double x)
{
    if (isfinite(x))
        snprintf(buf, CELL, "%.1f", 100 * x);
    else
        snprintf(buf, CELL, "-");
    return buf;
}

static void error_row(struct table *t, const struct batch *b, struct score_cut cut)
{
    struct score s[3];
    char n[2][CELL], v[11][CELL];

    for (int i = 0; i < 3; i++)
        score_errors(&s[i], b, (enum score_with)i, cut);
    if (!s[0].n)
        return;
    for (int i = 0; i < 2; i++)
        snprintf(n[i], CELL, "%d", s[i].n);
    table_row(t, cut.value ? cut.value : score_by_name[cut.by], n[0], percent(v[0], s[0].median),
              percent(v[1], s[0].mean), percent(v[2], s[0].p90), percent(v[3], s[0].max),
              percent(v[4], s[0].bias), percent(v[5], s[0].inside), n[1],
              percent(v[6], s[1].median), percent(v[7], s[1].mean), percent(v[8], s[1].p90),
              percent(v[9], s[1].max), percent(v[10], s[2].median));
}

static void errors(FILE *out, const struct batch *b, enum score_by by)
{
    struct table t;
    int n = 1;
    const char **value = by < BY_SPLIT ? NULL : score_values(b, by, &n);

    table_init(&t, "lrrrrrrrrrrrrr");
    table_row(&t, by == BY_ALL ? "error, %" : score_by_name[by], "n", "median", "mean", "p90",
              "max", "bias", "inside", "n", "median", "mean", "p90", "max", "naive");
    if (by == BY_ALL)
        for (int i = BY_ALL; i <= BY_REST; i++)
            error_row(&t, b, (struct score_cut){(enum score_by)i, NULL});
    for (int i = 0; value && i < n; i++)
        error_row(&t, b, (struct score_cut){by, value[i]});
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
    free(value);
}

static void targets(FILE *out, const struct batch *b)
{
    struct score_target t[SCORE_TARGETS];
    struct table table;
    char n[CELL], figure[CELL], target[CELL], verdict[CELL];

    score_targets(t, b);
    table_init(&table, "lrrrl");
    table_row(&table, "target, %", "n", "figure", "asked", "");
    for (int i = 0; i < SCORE_TARGETS; i++) {
        snprintf(n, CELL, "%d", t[i].n);
        snprintf(figure, CELL, isfinite(t[i].figure) ? "%.2f" : "-", 100 * t[i].figure);
        snprintf(target, CELL, "%s %g", t[i].at_least ? ">=" : "<=", 100 * t[i].target);
        if (!t[i].n)
            snprintf(verdict, CELL, "nothing to judge");
        else if (score_met(&t[i]))
            snprintf(verdict, CELL, "met");
        else
            snprintf(verdict, CELL, "missed by %.2f", 100 * fabs(t[i].figure - t[i].target));
        table_row(&table, t[i].what, n, figure, target, verdict);
    }
    table_print(out, &table, 0);
    fputc('\n', out);
    table_free(&table);
}

static void same_layout(FILE *out, const struct batch *b)
{
    struct table t;
    char v[4][CELL];

    table_init(&t, "lrrrrl");
    table_row(&t, "dense, same layout, other scale", "GPUs", "from", "error, %", "measured s",
              "family");
    for (int i = 0; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        double e = score_error(b, i, SCORE_SAME);
        if (isnan(e))
            continue;
        snprintf(v[0], CELL, "%d", r->gpus);
        snprintf(v[1], CELL, "%d", b->row[r->same_anchor].gpus);
        snprintf(v[2], CELL, "%+.2f", 100 * e);
        snprintf(v[3], CELL, "%.4g", r->measured);
        table_row(&t, r->id, v[0], v[1], v[2], v[3], r->family);
    }
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
}

static void orders(FILE *out, const struct batch *b)
{
    for (int with = SCORE_ALONE; with <= SCORE_ANCHORED; with++) {
        for (int by = BY_ALL; by <= BY_TEST; by++) {
            struct score_order o;
            score_order(&o, b, (enum score_with)with, (struct score_cut){(enum score_by)by, NULL},
                        0.05);
            fprintf(out,
                    "pairs of a family > 5 %% apart, %s, %s rows: %d of %d in order; not "
                    "judged: %d of the same job, %d whose dtype is in doubt\n",
                    score_with_name[with], score_by_name[by], o.right, o.pairs, o.same, o.doubt);
        }
    }
    fputc('\n', out);
}

static void bests(FILE *out, const struct batch *b)
{
    struct table t;
    int n, m;
    struct score_best *alone = score_best(b, SCORE_ALONE, &n);
    struct score_best *one = score_best(b, SCORE_ANCHORED, &m);
    char v[3][CELL];

    table_init(&t, "lrrrl");
    table_row(&t, "true best of a family", "of jobs", "rank", "anchored", "family");
    for (int i = 0; i < n && i < m; i++) {
        snprintf(v[0], CELL, "%d", alone[i].jobs);
        snprintf(v[1], CELL, "%d", alone[i].rank);
        snprintf(v[2], CELL, "%d", one[i].rank);
        table_row(&t, b->row[alone[i].best].id, v[0], v[1], v[2], alone[i].family);
    }
    table_print(out, &t, 0);
    fputc('\n', out);
    table_free(&t);
    free(alone);
    free(one);
}

struct far {
    int row;
    double size;
};

static int by_size(const void *a, const void *b)
{
    const struct far *x = a, *y = b;

    return x->size != y->size ? (x->size < y->size ? 1 : -1) : x->row - y->row;
}

/* The rows that are farthest off. */
static void worst(FILE *out, const struct batch *b, enum score_with with, int count)
{
    struct far *far = mem_calloc((size_t)b->rows + 1, sizeof(*far));
    int n = 0;

    for (int i = 0; i < b->rows; i++) {
        double e = score_error(b, i, with);
        if (!isnan(e))
            far[n++] = (struct far){i, fabs(log1p(e))};
    }
    qsort(far, (size_t)n, sizeof(*far), by_size);
    fprintf(out, "farthest off, %s:\n", score_with_name[with]);
    for (int i = 0; i < n && i < count; i++) {
        const struct batch_row *r = &b->row[far[i].row];
        fprintf(out, "  %+6.1f %%  %s (%s): %.4g s measured; %s; %s\n",
                100 * score_error(b, far[i].row, with), r->id, r->split, r->measured, r->job,
                r->release);
    }
    fputc('\n', out);
    free(far);
}

static void not_predicted(FILE *out, const struct batch *b, enum batch_status status)
{
    int n = 0;

    for (int i = 0; i < b->rows; i++)
        n += b->row[i].status == status;
    fprintf(out, "%s: %d\n", status == BATCH_MISS ? "misses" : "claims that are no step time", n);
    for (int i = 0; i < b->rows; i++)
        if (b->row[i].status == status)
            fprintf(out, "  %s (%s): %s\n", b->row[i].id, b->row[i].split, b->row[i].reason);
    fputc('\n', out);
}

void predict_score(FILE *out, const struct batch *b)
{
    enum { WORST = 15 };
    int predicted = 0;

    for (int i = 0; i < b->rows; i++)
        predicted += b->row[i].status == BATCH_PREDICTED;
    fprintf(out, "%s: %d rows, %d predicted\n\n", b->table.path, b->rows, predicted);
    targets(out, b);
    fputs("left: no anchor; right: one anchor per recipe (its smallest job, not scored itself);\n"
          "naive: the anchor's tokens/s per GPU, no model; inside: measured within the interval\n",
          out);
    errors(out, b, BY_ALL);
    for (int by = BY_SPLIT; by < BY_COUNT; by++)
        errors(out, b, (enum score_by)by);
    same_layout(out, b);
    orders(out, b);
    bests(out, b);
    worst(out, b, SCORE_ALONE, WORST);
    worst(out, b, SCORE_ANCHORED, WORST);
    not_predicted(out, b, BATCH_MISS);
    not_predicted(out, b, BATCH_CLAIM);
}
