/* SPDX-License-Identifier: BSD-3-Clause */
/* score.c - railgauge-calibrate score: the step model against tables of measured steps. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "calibrate/anchor.h"
#include "calibrate/calibrate.h"
#include "cmd/calibrate/tables_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/text/report.h"

struct args {
    struct batch_tables batch;
    const char *constants, *output;
    int leave; /* enum leave; -1: none */
    bool rows, json;
};

static const struct opt options[] = {
    {"rows", 0, NULL, "print the rows with their predictions, instead of the errors",
     OPT_INTO(struct args, rows)},
    {"leave-one-out", 0, "GROUP",
     "predict the rows of each source, release, model, gpu or tenth of the families with constants "
     "and effects that are refitted without those rows",
     OPT_WORD(struct args, leave, leave_name)},
    LEAVE_OUT_ROW(struct args, batch),
    CONSTANTS_ROW(struct args, constants),
    INPUT_JSON(struct args, json),
    {"output", 'o', "FILE", "also write the JSON", OPT_INTO(struct args, output)},
    {0},
};

static const struct opt words[] = {TABLE_ROW(struct args, batch), {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
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

static int predict_rows(struct batch *b, const bool *left, const struct args *a,
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

static int score(const struct args *a, struct err *err)
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
    struct args a = {.leave = -1};

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = score(&a, err);
    free(a.batch.table);
    free(a.batch.leave_out);
    return rc;
}

const struct command score_command = {&command, cmd_score};
