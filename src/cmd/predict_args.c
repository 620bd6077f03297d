/* predict_args.c - the options of railgauge predict. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_args.h"

#include <string.h>

#include "base/units.h"
#include "cmd/command.h"

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

void predict_args(struct predict_args *a, int argc, char **argv)
{
    const struct command command = {
        .options = options,
        .check = check,
        .child = {{job_child(0), offsetof(struct predict_args, job)}},
        .usage = "[MATRIX]",
        .doc = doc,
    };

    *a = (struct predict_args){.output = NULL};
    job_defaults(&a->job);
    command_parse(&command, argc, argv, a);
}
