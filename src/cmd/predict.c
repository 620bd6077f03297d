/* SPDX-License-Identifier: BSD-3-Clause */
/* predict.c - railgauge predict: the step time of a model with a layout on a fabric. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/predict_impl.h"
#include "emit/text/term.h"
#include "step/predict.h"
#include "step/score/anchor.h"

/* A file has a "/" or ends in ".tsv"; anything else is the setting of recipe.h. */
static int take_batch(void *args, char *arg, struct err *err)
{
    struct predict_args *a = args;
    size_t n = strlen(arg);
    struct err why;

    if (strchr(arg, '/') || (n > 4 && !strcmp(arg + n - 4, ".tsv"))) {
        a->table = arg;
        return 0;
    }
    if (recipe_set(&a->job.recipe, "batch", arg, &why) == 0)
        return 0;
    return err_usage(err, "%s", why.text + strlen("batch: ")); /* it begins with the key */
}

static int take_measured(void *args, char *arg, struct err *err)
{
    struct predict_args *a = args;

    if (units_seconds(&a->measured, arg, err) < 0)
        return -1;
    return a->measured > 0 ? 0 : err_usage(err, "\"%s\" is no time that a step can take", arg);
}

static const struct opt options[] = {
    {"batch", 0, "N|TABLE", NULL, OPT_CALL(take_batch), .flags = OPTION_HIDDEN, /* in recipe.h */
     .group = 3},
    {"score", 0, NULL, "of a table: print how far off its predictions are, not the rows",
     OPT_INTO(struct predict_args, score), .group = 5},
    {"anchor", 0, "FILE|ROW",
     "one measured step of this recipe: a file of --save-anchor, or TABLE.tsv:ID; compute takes as "
     "much longer as it did there",
     OPT_INTO(struct predict_args, anchor), .group = 4},
    {"measured", 0, "TIME", "what a step of this job was measured at: 13.2s",
     OPT_CALL(take_measured), .group = 4},
    {"save-anchor", 0, "FILE", "write this job and --measured as an anchor for others",
     OPT_INTO(struct predict_args, save_anchor), .group = 4},
    {"release", 0, "TEXT",
     "of the software: \"megatron-bridge 26.04\"; constants and anchors know releases",
     OPT_INTO(struct predict_args, release), .group = 4},
    {"explain", 0, NULL, "below each term: where its numbers are from, group, bytes",
     OPT_INTO(struct predict_args, explain), .group = 5},
    {"case", 0, "FILE",
     "judge the claims of a publication instead: a file, a name of jobs/training/cases, or all; "
     "may be given again",
     OPT_LIST(struct predict_args, cases, case_count), .group = 4},
    {"markdown", 0, NULL, "with --case: a table of claims and verdicts",
     OPT_INTO(struct predict_args, markdown), .group = 5},
    {"json", 0, NULL, "print prediction.json instead of text", OPT_INTO(struct predict_args, json),
     .group = 5},
    {"output", 'o', "FILE", "write prediction.json too", OPT_INTO(struct predict_args, output),
     .group = 5},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct predict_args, job.matrix)}, {0}};

static const char doc[] =
    "Predict the time of one training step.  MATRIX is a matrix.json of railgauge fit.  With a "
    "file "
    "for N, --batch predicts every row of that table of measured steps, each alone and from one "
    "measured row of its recipe."
    "\vExamples:\n"
    "  railgauge predict --fabric gb200-nvl72 --model llama3.1-8b --layout dp=72\n"
    "  railgauge predict matrix.json --model llama3.1-70b \\\n"
    "      --layout tp=8,dp=auto --strategy zero1\n"
    "  railgauge predict --fabric hgx-h100 --model llama3.1-405b --dtype fp8 \\\n"
    "      --layout tp=8,pp=8,cp=2,dp=4 --stages-per-rank 8 --batch 256 \\\n"
    "      --strategy zero1 --explain\n"
    "  railgauge predict matrix.json --layout tp=4,dp=auto --order hostfile --json\n"
    "  railgauge predict --fabric hgx-h100 --layout dp=8 \\\n"
    "      --measured 2.1s --save-anchor a.json\n"
    "  railgauge predict --fabric hgx-h100 --layout dp=64 --anchor a.json\n"
    "  railgauge predict --batch steps.tsv --score\n"
    "  railgauge predict --case all\n\n" EXIT_CODES(
        "1 it does not fit in a GPU's memory, or a verdict is not the one that the case file "
        "expects, 2 could not judge (no compute rate, no curve, a dead part), ",
        "");

static int check(void *args, struct err *err)
{
    const struct predict_args *a = args;

    if (!a->measured != !a->save_anchor)
        return err_usage(err, "--measured and --save-anchor belong together");
    if (a->anchor && a->save_anchor)
        return err_usage(err, "--anchor brings a measured step, and --measured is another");
    return 0;
}

/* cases is the caller's to free.  Ends the program after --help and on bad usage, as argp does. */
static void predict_args(struct predict_args *a, int argc, char **argv)
{
    const struct opt_line command = {
        .options = options,
        .check = check,
        .words = words,
        .set = {{.make = job_options, .at = offsetof(struct predict_args, job)}},
        .usage = "[MATRIX]",
        .doc = doc,
    };

    *a = (struct predict_args){.output = NULL};
    job_defaults(&a->job);
    opt_parse(&command, argc, argv, OPT_EXITS, a);
}

enum { COLUMNS = 99, INDENT = 4 };

static void wrap(FILE *out, int indent, const char *text)
{
    char *line = mem_printf("%*s%s", indent, "", text);

    term_wrap(out, line, indent, COLUMNS);
    free(line);
}

static void head(FILE *out, const struct prediction *p, const struct matrix *m,
                 const struct recipe *r)
{
    char t[UNITS_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT], text[RATE_SOURCE + 16];

    fprintf(out, "%s, %s, %s, %s: %d of %d endpoints%s%s\n", p->model, p->layout, p->strategy,
            recipe_name.dtype[r->dtype], p->ranks, m->topo.endpoints, m->fabric ? " of " : "",
            m->fabric ? m->fabric : "");
    fprintf(out, "batch %d x %d tokens: %d microbatch%s of %d per pipeline, recompute %s\n\n",
            r->global_batch, r->seq, p->microbatches, p->microbatches == 1 ? "" : "es",
            r->micro_batch, recipe_name.recompute[r->recompute]);
    fprintf(out, "step %s  (%s .. %s)   %.0f tokens/s per device", units_seconds_text(t, p->sec),
            units_seconds_text(lo, p->lo), units_seconds_text(hi, p->hi), p->tokens_per_gpu);
    if (isfinite(p->mfu))
        fprintf(out, "   MFU %.1f %% of %.0f TFLOP/s, %s", 100 * p->mfu, p->rate.peak / 1e12,
                r->causal ? "causal" : "not causal");
    snprintf(text, sizeof(text), "compute at %s", p->rate.source);
    fputc('\n', out);
    wrap(out, 0, text);
    fputc('\n', out);
}

static void group_line(FILE *out, const struct term *t, const struct matrix *m)
{
    char axes[AXES_TEXT], shape[48], text[640], slow[320], one[UNITS_TEXT];

    snprintf(
        text, sizeof(text),
        "%s over %s, %s on %d node%s with %d NIC%s a domain; %d group%s, %d unlike; one takes %s",
        op_name(t->op), axes_text(axes, t->axes), shape_text(shape, &t->shape), t->shape.nodes,
        t->shape.nodes == 1 ? "" : "s", t->shape.nics, t->shape.nics == 1 ? "" : "s", t->groups,
        t->groups == 1 ? "" : "s", t->distinct, units_seconds_text(one, t->one));
    wrap(out, INDENT, text);
    snprintf(text, sizeof(text), "bytes: %s", t->formula);
    wrap(out, INDENT, text);
    snprintf(text, sizeof(text), "slowest: %s", t->slowest);
    wrap(out, INDENT, text);
    if (t->exception < 0)
        return;
    snprintf(text, sizeof(text), "because of %s",
             predict_exception_text(slow, sizeof(slow), m, t->exception));
    wrap(out, INDENT, text);
}

/* "memory 61.3 of 80.0 GB: fits, 18.7 GB free", and its parts. */
static void memory_lines(FILE *out, const struct memory *m, bool explain)
{
    double room = (m->capacity - m->total) / 1e9;

    if (m->capacity > 0)
        fprintf(out, "memory %.1f of %.1f GB: %s, %.1f GB %s\n", m->total / 1e9, m->capacity / 1e9,
                room >= 0 ? "fits" : "does not fit", fabs(room), room >= 0 ? "free" : "too much");
    else
        fprintf(out, "memory %.1f GB\n", m->total / 1e9);
    for (int i = 0; explain && i < MEMORY_PARTS; i++) {
        double part = *(const double *)(const void *)((const char *)m + memory_part[i].at);
        if (part > 0)
            fprintf(out, "    %8.2f GB %-14s %s\n", part / 1e9, memory_part[i].name,
                    memory_part[i].what);
    }
}

void predict_unfit(FILE *out, const struct memory *m)
{
    if (!memory_fits(m))
        fprintf(out,
                "DOES NOT FIT: %.1f GB of a GPU that has %.1f, %.1f GB too much; times are "
                "those of one that had room\n\n",
                m->total / 1e9, m->capacity / 1e9, (m->total - m->capacity) / 1e9);
}

static void line(FILE *out, const struct term *t, const struct prediction *p)
{
    char sec[UNITS_TEXT], hidden[UNITS_TEXT], bytes[UNITS_TEXT];

    fprintf(out, "%-38s %8s %5.1f %% ", t->label, units_seconds_text(sec, t->sec),
            100 * t->sec / p->sec);
    if (t->kind == TERM_MESSAGE)
        fprintf(out, "%8s  %6.0f x %-9s ",
                t->hidden > 0 ? units_seconds_text(hidden, t->hidden) : "-", t->count,
                units_bytes_text(bytes, t->bytes));
    else
        fprintf(out, "%8s  %18s ", "", "");
    fprintf(out, "%s\n", basis_name[t->basis]);
}

/* The slow part of each message that has one, also without --explain: an answer that rests on a bad
 * NIC must say so. */
static void exceptions(FILE *out, const struct prediction *p, const struct matrix *m)
{
    char text[320];

    for (int i = 0; i < p->terms; i++) {
        const struct term *t = &p->term[i];
        if (t->kind == TERM_MESSAGE && t->exception >= 0)
            fprintf(out, "slow: %s, %s: %s\n", t->label, t->slowest,
                    predict_exception_text(text, sizeof(text), m, t->exception));
    }
}

static void note(FILE *out, const char *text)
{
    char line[PREDICT_NOTE + 8];

    snprintf(line, sizeof(line), "note: %s", text);
    wrap(out, 0, line);
}

/* Total, one line per term, notes; with `explain` each term's source, group and formula below it.
 */
static void predict_text(FILE *out, const struct prediction *p, const struct matrix *m,
                         const struct recipe *r, bool explain)
{
    char exposed[UNITS_TEXT], hidden[UNITS_TEXT];

    predict_unfit(out, &p->memory);
    head(out, p, m, r);
    fprintf(out, "%-38s %8s %7s %8s  %18s %s\n", "term", "seen", "share", "hidden",
            "messages a rank", "numbers");
    for (int i = 0; i < p->terms; i++) {
        line(out, &p->term[i], p);
        if (explain)
            wrap(out, INDENT, p->term[i].source);
        if (explain && p->term[i].kind == TERM_MESSAGE)
            group_line(out, &p->term[i], m);
    }
    fprintf(out, "\nmessages: %s seen, %s hidden behind compute\n",
            units_seconds_text(exposed, p->exposed), units_seconds_text(hidden, p->hidden));
    memory_lines(out, &p->memory, explain);
    exceptions(out, p, m);
    for (int i = 0; i < p->notes; i++)
        note(out, p->note[i]);
}

static int print(const struct job *j, const struct predict_args *a, struct prediction *p,
                 struct err *err)
{
    json_t *json = predict_json(p, &j->matrix);
    int rc = a->output ? json_save(json, a->output, err) : 0;

    if (rc == 0 && a->json) {
        json_print(stdout, json);
    } else if (rc == 0) {
        predict_text(stdout, p, &j->matrix, &a->job.recipe, a->explain);
    }
    json_decref(json);
    return rc;
}

/* p: the prediction from the anchor, with what it changed. */
static int from_anchor(struct prediction *p, struct question *q, const struct predict_args *a,
                       const char *name, struct err *err)
{
    struct anchor anchor;
    int rc = predict_step(p, q, err);
    double without = p->sec;

    if (rc == 0)
        prediction_free(p);
    if (anchor_open(&anchor, name, q->constants, err) < 0 ||
        anchor_apply(&anchor, q, a->release, err) < 0)
        rc = -1;
    if (rc == 0)
        rc = predict_step(p, q, err);
    if (rc == 0)
        anchor_notes(p, &anchor, q, a->release, without);
    anchor_free(&anchor);
    return rc;
}

/* *fits: into the memory of a GPU. */
static int answer(const struct job *j, const struct predict_args *a, bool *fits, struct err *err)
{
    struct question q = job_question(j, &a->job);
    q.release = a->release;
    const char *anchor = a->anchor ? a->anchor : a->save_anchor;
    struct prediction p;

    if (a->save_anchor && anchor_save(&a->job, j, a->measured, a->release, a->save_anchor, err) < 0)
        return -1;
    int rc = anchor ? from_anchor(&p, &q, a, anchor, err) : predict_step(&p, &q, err);
    if (rc == 0)
        rc = print(j, a, &p, err);
    *fits = rc == 0 && memory_fits(&p.memory);
    prediction_free(&p);
    return rc;
}

int cmd_predict(int argc, char **argv, struct err *err)
{
    struct predict_args a;
    struct job j;

    predict_args(&a, argc, argv);
    if (a.table)
        return predict_batch(&a, err);
    if (a.case_count > 0) {
        int verdict = predict_cases(&a, err);
        free(a.cases);
        return verdict;
    }
    bool fits = false;
    int rc = job_open(&j, &a.job, err) < 0 || answer(&j, &a, &fits, err) < 0;
    job_free(&j);
    return rc ? -1 : fits ? EXIT_GOOD : EXIT_BELOW;
}
