/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "report/text/report.h"

/* Output goes to `out`, unless NULL; the result is the same as JSON. */

static void print(FILE *out, const struct table *t)
{
    if (!out)
        return;
    table_print(out, t, 0);
    fputc('\n', out);
}

/* Errors of one cut: text has all of its predictions in a row, JSON a row for each. */
static void error_rows(struct table *row, struct table *each, const struct batch *b,
                       struct score_cut cut)
{
    const char *value = cut.value ? cut.value : "", *by = score_by_name[cut.by];
    struct score s[SCORE_WITH_COUNT];

    for (int i = 0; i < SCORE_WITH_COUNT; i++) {
        score_errors(&s[i], b, (enum score_with)i, cut);
        if (s[i].n)
            table_add(each, score_with_name[i], by, value, s[i].n, s[i].median, s[i].mean, s[i].p90,
                      s[i].max, s[i].bias, s[i].inside);
    }
    if (s[0].n)
        table_add(row, *value ? value : by, s[0].n, s[0].median, s[0].mean, s[0].p90, s[0].max,
                  s[0].bias, s[0].inside, s[1].n, s[1].median, s[1].mean, s[1].p90, s[1].max,
                  s[2].median);
}

static void errors_by(FILE *out, struct table *each, const struct batch *b, enum score_by by)
{
    const struct table_column columns[] = {
        {NULL, by == BY_ALL ? "error, %" : score_by_name[by], "text"},
        {NULL, "n", "count"},
        {NULL, "median", "100*%.1f"},
        {NULL, "mean", "100*%.1f"},
        {NULL, "p90", "100*%.1f"},
        {NULL, "max", "100*%.1f"},
        {NULL, "bias", "100*%.1f"},
        {NULL, "inside", "100*%.1f"},
        {NULL, "n", "count"},
        {NULL, "median", "100*%.1f"},
        {NULL, "mean", "100*%.1f"},
        {NULL, "p90", "100*%.1f"},
        {NULL, "max", "100*%.1f"},
        {NULL, "naive", "100*%.1f"},
        {0}};
    struct table t;
    int n = 0;
    const char **value = by < BY_SPLIT ? NULL : score_values(b, by, &n);

    table_open(&t, columns);
    for (int i = BY_ALL; by == BY_ALL && i <= BY_REST; i++)
        error_rows(&t, each, b, (struct score_cut){(enum score_by)i, NULL});
    for (int i = 0; i < n; i++)
        error_rows(&t, each, b, (struct score_cut){by, value[i]});
    print(out, &t);
    table_free(&t);
    free(value);
}

static json_t *errors(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {{"with", NULL, "text"},
                                                  {"by", NULL, "text"},
                                                  {"value", NULL, "text"},
                                                  {"n", NULL, "count"},
                                                  {"median", NULL, "exact"},
                                                  {"mean", NULL, "exact"},
                                                  {"p90", NULL, "exact"},
                                                  {"max", NULL, "exact"},
                                                  {"bias", NULL, "exact"},
                                                  {"inside", NULL, "exact"},
                                                  {0}};
    struct table each;

    if (out)
        fputs("left: no anchor; right: one anchor per recipe (its smallest job, not scored "
              "itself);\n"
              "naive: the anchor's tokens/s per GPU, no model; inside: measured within the "
              "interval\n",
              out);
    table_open(&each, columns);
    errors_by(out, &each, b, BY_ALL);
    for (int by = BY_SPLIT; by < BY_COUNT; by++)
        errors_by(out, &each, b, (enum score_by)by);
    return table_rows(&each);
}

static void memory_rows(struct table *t, const struct batch *b, struct score_cut cut)
{
    struct score s;

    score_errors(&s, b, SCORE_MEMORY, cut);
    if (s.n)
        table_add(t, cut.value ? cut.value : score_by_name[cut.by], s.n, s.median, s.mean, s.p90,
                  s.max, s.bias, s.inside);
}

/* Accuracy of memory, if the table has measured values. */
static void memory(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {{NULL, "memory, error %", "text"},
                                                  {NULL, "n", "count"},
                                                  {NULL, "median", "100*%.1f"},
                                                  {NULL, "mean", "100*%.1f"},
                                                  {NULL, "p90", "100*%.1f"},
                                                  {NULL, "max", "100*%.1f"},
                                                  {NULL, "bias", "100*%+.1f"},
                                                  {NULL, "inside", "100*%.1f"},
                                                  {0}};
    struct score all;
    struct table t;

    score_errors(&all, b, SCORE_MEMORY, (struct score_cut){BY_ALL, NULL});
    if (!all.n)
        return;
    table_open(&t, columns);
    for (int by = BY_ALL; by <= BY_REST; by++)
        memory_rows(&t, b, (struct score_cut){(enum score_by)by, NULL});
    for (int by = BY_SPLIT; by < BY_COUNT; by++) {
        int n;
        const char **value = score_values(b, (enum score_by)by, &n);
        for (int i = 0; i < n; i++)
            memory_rows(&t, b, (struct score_cut){(enum score_by)by, value[i]});
        free(value);
    }
    print(out, &t);
    table_free(&t);
}

static json_t *targets(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {
        {"what", "target, %", "text"}, {"n", "n", "count"},       {"figure", "figure", "100*%.2f"},
        {"target", NULL, "exact"},     {NULL, "asked", "figure"}, {"is", NULL, "text"},
        {"met", NULL, "flag"},         {NULL, "", "text"},        {0}};
    struct score_target t[SCORE_TARGETS];
    struct table table;
    char asked[24], verdict[40];

    score_targets(t, b);
    table_open(&table, columns);
    for (int i = 0; i < SCORE_TARGETS; i++) {
        bool met = score_met(&t[i]);
        snprintf(asked, sizeof(asked), "%s %g", t[i].at_least ? ">=" : "<=", 100 * t[i].target);
        snprintf(verdict, sizeof(verdict), "missed by %.2f", 100 * fabs(t[i].figure - t[i].target));
        table_add(&table, t[i].what, t[i].n, t[i].figure, t[i].target, asked,
                  t[i].at_least ? "least" : "most", met,
                  !t[i].n ? "nothing to judge"
                  : met   ? "met"
                          : verdict);
    }
    print(out, &table);
    return table_rows(&table);
}

static void same_layout(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {{NULL, "dense, same layout, other scale", "text"},
                                                  {NULL, "GPUs", "count"},
                                                  {NULL, "from", "count"},
                                                  {NULL, "error, %", "100*%+.2f"},
                                                  {NULL, "measured s", "%.4g"},
                                                  {NULL, "family", "text"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    for (const struct batch_row *r = b->row; b->rows && r < b->row + b->rows; r++) {
        double e = score_error(b, (int)(r - b->row), SCORE_SAME);
        if (!isnan(e))
            table_add(&t, r->id, r->gpus, b->row[r->same_anchor].gpus, e, r->measured, r->family);
    }
    print(out, &t);
    table_free(&t);
}

static json_t *orders(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {{"with", NULL, "text"},
                                                  {"by", NULL, "text"},
                                                  {"pairs", NULL, "count"},
                                                  {"right", NULL, "count"},
                                                  {"same_job", NULL, "count"},
                                                  {"in_doubt", NULL, "count"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    for (int with = SCORE_ALONE; with <= SCORE_ANCHORED; with++)
        for (int by = BY_ALL; by <= BY_TEST; by++) {
            const char *goes_by = score_with_name[with], *rows = score_by_name[by];
            struct score_order o;
            score_order(&o, b, (enum score_with)with, (struct score_cut){(enum score_by)by, NULL},
                        0.05);
            table_add(&t, goes_by, rows, o.pairs, o.right, o.same, o.doubt);
            if (out)
                fprintf(out,
                        "pairs of a family > 5 %% apart, %s, %s rows: %d of %d in order; not "
                        "judged: %d of the same job, %d whose dtype is in doubt\n",
                        goes_by, rows, o.right, o.pairs, o.same, o.doubt);
        }
    if (out)
        fputc('\n', out);
    return table_rows(&t);
}

static void best_rows(struct table *t, const struct batch *b, enum score_with with,
                      const struct score_best *best, int n)
{
    for (int i = 0; i < n; i++)
        table_add(t, score_with_name[with], best[i].family, b->row[best[i].best].id, best[i].rank,
                  best[i].jobs, best[i].has_test);
}

static json_t *bests(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {{NULL, "true best of a family", "text"},
                                                  {NULL, "of jobs", "count"},
                                                  {NULL, "rank", "count"},
                                                  {NULL, "anchored", "count"},
                                                  {NULL, "family", "text"},
                                                  {0}};
    static const struct table_column each_columns[] = {{"with", NULL, "text"},
                                                       {"family", NULL, "text"},
                                                       {"best", NULL, "text"},
                                                       {"rank", NULL, "count"},
                                                       {"jobs", NULL, "count"},
                                                       {"has_test", NULL, "flag"},
                                                       {0}};
    struct table t, each;
    int n, m;
    struct score_best *alone = score_best(b, SCORE_ALONE, &n);
    struct score_best *one = score_best(b, SCORE_ANCHORED, &m);

    table_open(&t, columns);
    table_open(&each, each_columns);
    best_rows(&each, b, SCORE_ALONE, alone, n);
    best_rows(&each, b, SCORE_ANCHORED, one, m);
    for (int i = 0; i < n && i < m; i++)
        table_add(&t, b->row[alone[i].best].id, alone[i].jobs, alone[i].rank, one[i].rank,
                  alone[i].family);
    print(out, &t);
    table_free(&t);
    free(alone);
    free(one);
    return table_rows(&each);
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

/* Rows with the largest errors. */
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

/* All rows; written to `out` as TSV. */
static json_t *rows(FILE *out, const struct batch *b)
{
    static const struct table_column columns[] = {{"id", "id", "text"},
                                                  {"line", NULL, "count"},
                                                  {"status", "status", "text"},
                                                  {"family", "family", "text?"},
                                                  {"split", "split", "text"},
                                                  {"release", NULL, "text"},
                                                  {"layout", NULL, "text"},
                                                  {"memory_read_bytes", NULL, "%.6g"},
                                                  {"memory_bytes", NULL, "%.6g"},
                                                  {"memory_lo_bytes", NULL, "%.6g"},
                                                  {"memory_hi_bytes", NULL, "%.6g"},
                                                  {"measured_s", "measured_s", "%.6g"},
                                                  {"predicted_s", "predicted_s", "%.6g"},
                                                  {"lo_s", "lo_s", "%.6g"},
                                                  {"hi_s", "hi_s", "%.6g"},
                                                  {"error", "error", "%+.4f"},
                                                  {"anchored_s", "anchored_s", "%.6g"},
                                                  {"anchored_error", "anchored_error", "%+.4f"},
                                                  {"stretch", "stretch", "%.4f"},
                                                  {"anchor", "anchor", "text?"},
                                                  {"model", "model", "text"},
                                                  {"hardware", "hardware", "text"},
                                                  {"reason", "reason", "text"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        table_add(&t, r->id, r->line, batch_status_name[r->status], r->family, r->split, r->release,
                  r->layout, r->read_bytes, r->bytes, r->bytes_lo, r->bytes_hi, r->measured,
                  r->predicted, r->lo, r->hi, score_error(b, i, SCORE_ALONE), r->anchored,
                  score_error(b, i, SCORE_ANCHORED), r->stretch,
                  r->anchor >= 0 ? b->row[r->anchor].id : NULL, r->model, r->hardware, r->reason);
    }
    if (out)
        table_tsv(out, &t);
    return table_rows(&t);
}

static json_t *counts(FILE *out, const struct batch *b)
{
    int count[BATCH_STATUS_COUNT] = {0};

    for (int i = 0; i < b->rows; i++)
        count[b->row[i].status]++;
    if (out)
        fprintf(out, "%s: %d rows, %d predicted\n\n", b->table.path, b->rows,
                count[BATCH_PREDICTED]);
    return json_pack("{s:i, s:i, s:i, s:i}", "rows", b->rows, "predicted", count[BATCH_PREDICTED],
                     "misses", count[BATCH_MISS], "claims", count[BATCH_CLAIM]);
}

json_t *score_report(FILE *score, FILE *tsv, const struct batch *b)
{
    enum { WORST = 15 };
    json_t *json = json_pack("{s:s, s:i, s:o, s:s}", "format", "railgauge-batch", "version", 1,
                             "provenance", json_provenance(), "table", b->table.path);

    json_object_set_new(json, "counts", counts(score, b));
    json_object_set_new(json, "targets", targets(score, b));
    json_object_set_new(json, "errors", errors(score, b));
    if (score) {
        memory(score, b);
        same_layout(score, b);
    }
    json_object_set_new(json, "order", orders(score, b));
    json_object_set_new(json, "best", bests(score, b));
    json_object_set_new(json, "notes", json_texts(b->note, b->notes));
    json_object_set_new(json, "rows", rows(tsv, b));
    if (score) {
        worst(score, b, SCORE_ALONE, WORST);
        worst(score, b, SCORE_ANCHORED, WORST);
        not_predicted(score, b, BATCH_MISS);
        not_predicted(score, b, BATCH_CLAIM);
    }
    return json;
}
