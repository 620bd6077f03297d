/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "step/score/anchor.h"
#include "step/score/batch.h"
#include "step/score/case.h"
#include "step/score/score.h"

/* --- --batch TABLE --- */

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

/* How good the predictions were, as tables. */
static void predict_score(FILE *out, const struct batch *b)
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

static void cell(FILE *out, double x, const char *format)
{
    fputc('\t', out);
    if (isfinite(x))
        fprintf(out, format, x);
}

static void row(FILE *out, const struct batch *b, int i)
{
    const struct batch_row *r = &b->row[i];

    fprintf(out, "%s\t%s\t%s\t%s", r->id, batch_status_name[r->status], r->family ? r->family : "",
            r->split);
    cell(out, r->measured, "%.6g");
    cell(out, r->predicted, "%.6g");
    cell(out, r->lo, "%.6g");
    cell(out, r->hi, "%.6g");
    cell(out, score_error(b, i, SCORE_ALONE), "%+.4f");
    cell(out, r->anchored, "%.6g");
    cell(out, score_error(b, i, SCORE_ANCHORED), "%+.4f");
    cell(out, r->stretch, "%.4f");
    fprintf(out, "\t%s\t%s\t%s\t%s\n", r->anchor >= 0 ? b->row[r->anchor].id : "", r->model,
            r->hardware, r->reason);
}

static void rows(FILE *out, const struct batch *b)
{
    fputs("id\tstatus\tfamily\tsplit\tmeasured_s\tpredicted_s\tlo_s\thi_s\terror\tanchored_s\t"
          "anchored_error\tstretch\tanchor\tmodel\thardware\treason\n",
          out);
    for (int i = 0; i < b->rows; i++)
        row(out, b, i);
}

static int answer(const struct predict_args *a, const struct batch *b, struct err *err)
{
    json_t *json = a->json || a->output ? score_json(b) : NULL;
    int rc = a->output ? json_save(json, a->output, err) : 0;

    if (rc == 0 && a->json) {
        json_print(stdout, json);
    } else if (rc == 0 && a->score) {
        predict_score(stdout, b);
    } else if (rc == 0) {
        rows(stdout, b);
    }
    json_decref(json);
    return rc;
}

int predict_batch(const struct predict_args *a, struct err *err)
{
    struct constants c;
    struct batch b;
    int rc = batch_load(&b, a->table, err);

    if (rc == 0) {
        for (int i = 0; i < b.notes; i++)
            log_info("%s", b.note[i]);
        rc = constants_load(&c, a->job.constants, err);
        if (rc == 0) {
            batch_ask(&b, &c);
            batch_predict(&b, &c);
            anchor_batch(&b, &c);
            rc = answer(a, &b, err);
        }
        constants_free(&c);
    }
    batch_free(&b);
    return rc;
}

/* --- --case FILE --- */

enum { FIGURE = 48, TOGETHER = CASE_COMBINATION + 128 };

static char *published(char buf[FIGURE], const struct case_claim *k)
{
    char figure[FIGURE - 10];

    case_figure(figure, sizeof(figure), k->unit, k->unit->fits ? 2 - k->published : k->published);
    snprintf(buf, FIGURE, "%s%s", k->at_least ? "at least " : "", figure);
    return buf;
}

static char *ours(char buf[FIGURE], const struct case_claim *k)
{
    return case_figure(buf, FIGURE, k->unit, k->ours);
}

static void claim_text(FILE *out, const struct case_claim *k)
{
    char said[FIGURE], got[FIGURE];

    fprintf(out, "  %s\n    published %s, ours %s: %s%s%s\n    %s\n", k->text, published(said, k),
            ours(got, k), case_verdict_name[k->verdict], case_surprise(k) ? "; expected: " : "",
            case_surprise(k) ? case_verdict_name[k->expect] : "", k->reason);
    if (k->note)
        fprintf(out, "    %s\n", k->note);
}

static void job_text(FILE *out, const struct case_job *j)
{
    char sec[UNITS_TEXT];

    fprintf(out, "  job %s: %s on %d GPUs, step %s, %.0f GB", j->name, j->opts.model, j->gpus,
            units_seconds_text(sec, j->sec), j->bytes / 1e9);
    if (j->capacity > 0)
        fprintf(out, " of %.0f", j->capacity / 1e9);
    fputc('\n', out);
}

static char *together(char buf[TOGETHER], const struct casefile *c)
{
    char with[CASE_COMBINATION];

    snprintf(buf, TOGETHER, "%d of the %d claims that can hold do with %s%s", c->held, c->held_of,
             case_combination(with, c, c->held_by),
             c->held < c->held_of ? "; no values of the unknowns make all of them true" : "");
    return buf;
}

static void case_text(FILE *out, const struct casefile *c)
{
    char text[TOGETHER];

    fprintf(out, "%s\n%s, %s\n", c->title, c->publication, c->date);
    if (c->url)
        fprintf(out, "%s\n", c->url);
    for (int i = 0; i < c->assumes; i++)
        fprintf(out, "  assumed: %s\n", c->assumed[i]);
    for (int i = 0; i < c->unknowns; i++) {
        const struct case_unknown *u = &c->unknown[i];
        fprintf(out, "  unknown: %s:", u->key);
        for (int v = 0; v < u->values; v++)
            fprintf(out, " %s", u->value[v]);
        fprintf(out, " (%s)\n", u->why);
    }
    for (int i = 0; i < c->solves; i++)
        fprintf(out, "  solved: %s = %.4g (%s)\n", c->solve[i].key, c->solve[i].found,
                c->solve[i].why);
    for (int i = 0; i < c->jobs; i++)
        job_text(out, &c->job[i]);
    for (int i = 0; i < c->claims; i++)
        claim_text(out, &c->claim[i]);
    if (c->unknowns)
        fprintf(out, "  together: %s\n", together(text, c));
    fputc('\n', out);
}

/* Rows of a Markdown table with the columns claim, published, ours, verdict; the head once. */
static void case_markdown_head(FILE *out)
{
    fputs("| claim | published | ours | verdict |\n|---|---|---|---|\n", out);
}

/* A bar would end the cell. */
static void bar_free(FILE *out, const char *text)
{
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, out);
}

static void case_markdown(FILE *out, const struct casefile *c)
{
    char text[FIGURE], all[TOGETHER];

    fprintf(out, "| **");
    if (c->url)
        fputc('[', out);
    bar_free(out, c->title);
    if (c->url)
        fprintf(out, "](%s)", c->url);
    fprintf(out, "** (%s) | | | |\n", c->date);
    for (int i = 0; i < c->claims; i++) {
        const struct case_claim *k = &c->claim[i];
        fputs("| ", out);
        bar_free(out, k->text);
        fprintf(out, " | %s", published(text, k));
        fprintf(out, " | %s | %s", ours(text, k), case_verdict_name[k->verdict]);
        if (k->verdict != CASE_REPRODUCED) {
            fputs(": ", out);
            bar_free(out, k->reason);
        }
        fputs(" |\n", out);
    }
    if (c->held < c->held_of)
        fprintf(out, "| all of these together | | | %s |\n", together(all, c));
}

/* Names as typed, with "all" in full; the caller frees each and the list. */
static int expand(char ***names, const struct predict_args *a)
{
    int n = 0;

    *names = NULL;
    for (int i = 0; i < a->case_count; i++) {
        if (strcmp(a->cases[i], "all") != 0) {
            MEM_PUSH(*names, n) = mem_strdup(a->cases[i]);
            continue;
        }
        char **shipped;
        int count = case_names(&shipped);
        for (int k = 0; k < count; k++)
            MEM_PUSH(*names, n) = shipped[k];
        free(shipped);
    }
    return n;
}

static int one(const char *name, const struct predict_args *a, json_t *list, int *surprises,
               struct err *err)
{
    struct casefile c;
    int rc = case_load(&c, name, &a->job, err);

    if (rc == 0)
        rc = case_judge(&c, err);
    if (rc == 0) {
        *surprises += case_surprises(&c);
        json_array_append_new(list, case_json(&c));
        if (a->markdown)
            case_markdown(stdout, &c);
        else if (!a->json)
            case_text(stdout, &c);
    }
    case_free(&c);
    return rc;
}

int predict_cases(const struct predict_args *a, struct err *err)
{
    const struct job_opts *o = &a->job;
    char **names;

    if (o->matrix || o->fabric || o->layout || o->gpus || o->racks)
        return err_usage(err, "--case has its own jobs: of the options that say which job, only "
                              "--constants goes with it");
    int n = expand(&names, a), rc = 0, surprises = 0;
    json_t *list = json_array();

    if (a->markdown && !a->json)
        case_markdown_head(stdout);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = one(names[i], a, list, &surprises, err);
    json_t *root = json_pack("{s:s, s:i, s:o, s:o}", "format", "railgauge-verdicts", "version", 1,
                             "provenance", json_provenance(), "cases", list);
    if (rc == 0 && a->output)
        rc = json_save(root, a->output, err);
    if (rc == 0 && a->json) {
        json_print(stdout, root);
    }
    json_decref(root);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return rc < 0 ? -1 : surprises ? EXIT_BELOW : EXIT_GOOD;
}
