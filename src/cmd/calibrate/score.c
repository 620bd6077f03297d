/* SPDX-License-Identifier: BSD-3-Clause */
/* score.c - railgauge-calibrate score and claims: the step model against tables of measured steps, and
 * against the claims of publications. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "calibrate/anchor.h"
#include "calibrate/calibrate.h"
#include "calibrate/case.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/text/report.h"
#include "step/job.h"

/* --- score --- */

struct score_args {
    struct batch_tables batch;
    const char *constants, *output;
    int leave; /* enum leave; -1: none */
    bool rows, json;
};

static const struct opt score_options[] = {
    {"rows", 0, NULL, "print the rows with their predictions, instead of the errors",
     OPT_INTO(struct score_args, rows)},
    {"leave-one-out", 0, "GROUP",
     "predict the rows of each source, release, model, gpu or tenth of the families with constants "
     "and effects that are refitted without those rows",
     OPT_WORD(struct score_args, leave, leave_name)},
    {"leave-out", 0, "CONDITIONS",
     "rows that are neither fitted nor scored: \"id=nt_*,pp>1\"; may be given again",
     OPT_LIST(struct score_args, batch.leave_out, batch.leave_outs)},
    {"constants", 0, "FILE", "constants of the step model (default jobs/training/constants.json)",
     OPT_INTO(struct score_args, constants)},
    INPUT_JSON(struct score_args, json),
    {"output", 'o', "FILE", "also write the JSON", OPT_INTO(struct score_args, output)},
    {0},
};

static const struct opt score_words[] = {{"table", .help = "give a table of measured steps",
                                          OPT_LIST(struct score_args, batch.table, batch.tables)},
                                         {0}};

static const struct opt_line score_line = {
    .options = score_options,
    .words = score_words,
    .usage = "TABLE...",
    .doc = "Predict each row of tables of measured steps, alone and from one measured row of its "
           "recipe, and print how far off the predictions are.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Print the errors of the step model",
                        "railgauge-calibrate score steps.tsv"),
            OPT_EXAMPLE("Print the rows, to draw them",
                        "railgauge-calibrate score --rows steps.tsv >score.tsv &&\n"
                        "    railgauge plot score score.tsv"),
            OPT_EXAMPLE("Score every model with constants that do not know it",
                        "railgauge-calibrate score steps.tsv --leave-one-out model"),
            {0}},
    .exits = EXIT_CODES("", ""),
};

static struct progress line;

static void progress(double done, const char *what)
{
    progress_show(&line, done, what);
}

static int predict_rows(struct batch *b, const bool *left, const struct score_args *a,
                        const struct constants *c, struct err *err)
{
    int rc = 0;

    batch_resolve(b, c);
    for (int i = 0; i < b->rows; i++)
        if (left[i])
            batch_drop(&b->row[i]);
    if (a->leave >= 0) {
        progress_start(&line, 1);
        rc = calibrate_leave_out(b, c, (enum leave)a->leave, left, progress, err);
        progress_end(&line);
    } else {
        batch_predict(b, c);
        anchor_batch(b, c);
    }
    return rc;
}

static int score(const struct score_args *a, struct err *err)
{
    struct constants c = {0};
    struct batch b;
    bool *left = NULL;
    int rc = batch_load_tables(&b, &a->batch, &left, err);

    for (int i = 0; i < b.notes && rc == 0; i++)
        log_info("%s", b.note[i]);
    if (rc == 0)
        rc = constants_load(&c, a->constants, err);
    if (rc == 0)
        rc = predict_rows(&b, left, a, &c, err);
    if (rc == 0) {
        FILE *text = a->json ? NULL : stdout;
        rc = json_answer(score_report(a->rows ? NULL : text, a->rows ? text : NULL, &b), a->output,
                         a->json, err);
    }
    constants_free(&c);
    batch_free(&b);
    free(left);
    return rc;
}

static int cmd_score(int argc, char **argv, struct err *err)
{
    struct score_args a = {.leave = -1};

    opt_parse(&score_line, argc, argv, OPT_EXITS, &a);
    int rc = score(&a, err);
    free(a.batch.table);
    free(a.batch.leave_out);
    return rc;
}

const struct command score_command = {&score_line, cmd_score};

/* --- claims --- */

struct claims_args {
    struct job_opts job; /* only its constants are an option */
    const char **name, *output;
    int names;
    bool json, markdown;
};

static void each_case(name_taker *take, void *to)
{
    char **names;
    int n = case_names(&names);

    for (int i = 0; i < n; i++) {
        take(to, names[i]);
        free(names[i]);
    }
    free(names);
}

static const struct opt claims_options[] = {
    {"markdown", 0, NULL, "print claims and verdicts as a table of Markdown",
     OPT_INTO(struct claims_args, markdown)},
    {"constants", 0, "FILE", "constants of the step model (default jobs/training/constants.json)",
     OPT_INTO(struct claims_args, job.constants)},
    INPUT_JSON(struct claims_args, json),
    {"output", 'o', "FILE", "also write the JSON", OPT_INTO(struct claims_args, output)},
    {0},
};

static const struct opt claims_words[] = {{"case", .help = "give a case, or all",
                                           OPT_LIST(struct claims_args, name, names),
                                           .values = each_case},
                                          {0}};

static const struct opt_line claims_line = {
    .options = claims_options,
    .words = claims_words,
    .usage = "CASE|FILE|all...",
    .doc =
        "Predict the jobs of a publication, and judge its claims."
        "\vCASE is a name of jobs/training/cases, and FILE has a \"/\" or \".json\" in its name.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Judge one publication", "railgauge-calibrate claims llama-8b-gb200-h100"),
            OPT_ELSEWHERE("Print all verdicts as a table",
                          "railgauge-calibrate claims all --markdown"),
            {0}},
    .exits = EXIT_CODES(
        "1 a verdict is not the one that the case file expects, 2 could not judge, ", ""),
};

/* Names as typed, with "all" expanded.  The caller frees each name and the list. */
static int expand(char ***names, const struct claims_args *a)
{
    int n = 0;

    *names = NULL;
    for (int i = 0; i < a->names; i++) {
        if (strcmp(a->name[i], "all") != 0) {
            MEM_PUSH(*names, n) = mem_strdup(a->name[i]);
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

static int print_cases(const struct claims_args *a, const struct casefile *c, int n,
                       struct err *err)
{
    json_t *root = cases_json(c, n);

    json_object_update_new(root, json_pack("{s:s, s:i, s:o}", "format", "railgauge-verdicts",
                                           "version", 1, "provenance", json_provenance()));
    if (a->markdown && !a->json)
        cases_markdown(stdout, c, n);
    else if (!a->json)
        cases_text(stdout, c, n);
    int rc = json_answer(json_incref(root), a->output, a->json, err);
    json_decref(root);
    return rc;
}

static int claims(const struct claims_args *a, struct err *err)
{
    char **names;
    int n = expand(&names, a), rc = 0;
    struct casefile *c = mem_calloc((size_t)n + 1, sizeof(*c));

    for (int i = 0; rc == 0 && i < n; i++)
        rc = case_load(&c[i], names[i], &a->job, err) < 0 ? -1 : case_evaluate(&c[i], err);
    if (rc == 0)
        rc = print_cases(a, c, n, err);
    int unexpected = rc < 0 ? 0 : cases_count(c, n).unexpected;
    for (int i = 0; i < n; i++) {
        case_free(&c[i]);
        free(names[i]);
    }
    free(c);
    free(names);
    return rc < 0 ? -1 : unexpected ? EXIT_BELOW : EXIT_GOOD;
}

static int cmd_claims(int argc, char **argv, struct err *err)
{
    struct claims_args a = {.name = NULL};

    job_defaults(&a.job);
    opt_parse(&claims_line, argc, argv, OPT_EXITS, &a);
    int verdict = claims(&a, err);
    free(a.name);
    return verdict;
}

const struct command claims_command = {&claims_line, cmd_claims};
