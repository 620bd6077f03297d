/* calibrate.c - railgauge calibrate: refit the global constants to a table of measured steps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd/calibrate_text.h"
#include "cmd/cmd.h"
#include "cmd/command.h"
#include "step/score/calibrate.h"

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

static const struct command command = {
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
    batch_ask(b, c);
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

int cmd_calibrate(int argc, char **argv)
{
    struct args a = {.limit = 300};
    struct batch b = {0};
    struct constants c = {0};
    struct err err = {0, ""};

    command_parse(&command, argc, argv, &a);
    int rc = run(&a, &b, &c, &err);
    batch_free(&b);
    constants_free(&c);
    for (int i = 0; i < a.onlys; i++)
        free(a.only[i]);
    free(a.only);
    return rc < 0 ? cmd_fail("calibrate", &err) : EXIT_GOOD;
}
