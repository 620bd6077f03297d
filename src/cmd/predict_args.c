/* predict_args.c - the options of railgauge predict. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_args.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"

enum { JSON = 0x400, EXPLAIN, BATCH, SCORE, CASE, MARKDOWN, ANCHOR, MEASURED, SAVE, RELEASE };

static const struct argp_option options[] = {
    {"batch", BATCH, "N|TABLE", OPTION_HIDDEN, NULL, 3}, /* N has its help as a setting */
    {"score", SCORE, NULL, 0, "of a table: print how far off its predictions are, not the rows", 5},
    {"anchor", ANCHOR, "FILE|ROW", 0,
     "one measured step of this recipe: a file of --save-anchor, or TABLE.tsv:ID; compute takes as "
     "much longer as it did there",
     4},
    {"measured", MEASURED, "TIME", 0, "what a step of this job was measured at: 13.2s", 4},
    {"save-anchor", SAVE, "FILE", 0, "write this job and --measured as an anchor for others", 4},
    {"release", RELEASE, "TEXT", 0,
     "of the software: \"megatron-bridge 26.04\"; constants and anchors know releases", 4},
    {"explain", EXPLAIN, NULL, 0, "below each term: where its numbers are from, group, bytes", 5},
    {"case", CASE, "FILE", 0,
     "judge the claims of a publication instead: a file, a name of jobs/training/cases, or all; "
     "may be given again",
     4},
    {"markdown", MARKDOWN, NULL, 0, "with --case: a table of claims and verdicts", 5},
    {"json", JSON, NULL, 0, "print prediction.json instead of text", 5},
    {"output", 'o', "FILE", 0, "write prediction.json too", 5},
    {0},
};

static const char doc[] =
    "Predict the time of one training step.  MATRIX is a matrix.json of railgauge fit.  With a "
    "file "
    "for N, --batch predicts every row of that table of measured steps, each alone and from one "
    "measured row of its recipe."
    "\vExamples:\n"
    "  railgauge predict --fabric gb200-nvl72 --model llama3.1-8b --layout dp_shard=72\n"
    "  railgauge predict matrix.json --model llama3.1-70b --layout tp=8,dp=auto --strategy zero1\n"
    "  railgauge predict --fabric hgx-h100 --model llama3.1-405b --dtype fp8 --strategy zero1 \\\n"
    "      --layout tp=8,pp=8,cp=2,dp=4 --stages-per-rank 8 --batch 256 --explain\n"
    "  railgauge predict matrix.json --layout tp=4,dp=auto --order hostfile --json\n"
    "  railgauge predict --fabric hgx-h100 --layout dp=8 --measured 2.1s --save-anchor a.json\n"
    "  railgauge predict --fabric hgx-h100 --layout dp=64 --anchor a.json\n"
    "  railgauge predict --batch steps.tsv --score\n"
    "  railgauge predict --case all\n\n"
    "Exit codes: 0 good, 1 a verdict is not the one that the case file expects, 2 could not judge "
    "(no compute rate, no curve), 64 usage, 65 bad data, 66 "
    "no input, "
    "74 I/O.";

/* A file has a "/" or ends in ".tsv"; anything else is the setting of recipe.h. */
static error_t take_batch(struct predict_args *a, char *arg, struct argp_state *state)
{
    struct err err = {0, ""};
    size_t n = strlen(arg);

    if (strchr(arg, '/') || (n > 4 && !strcmp(arg + n - 4, ".tsv"))) {
        a->table = arg;
        return 0;
    }
    if (recipe_set(&a->job.recipe, "batch", arg, &err) == 0)
        return 0;
    argp_error(state, "--%s", err.text);
    return EINVAL;
}

static error_t take_measured(struct predict_args *a, char *arg, struct argp_state *state)
{
    struct err err = {0, ""};

    if (units_seconds(&a->measured, arg, &err) < 0 || !(a->measured > 0)) {
        opt_error(state, options, MEASURED, &err);
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct predict_args *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->job;
        return 0;
    case BATCH:
        return take_batch(a, arg, state);
    case SCORE:
        a->score = true;
        return 0;
    case JSON:
        a->json = true;
        return 0;
    case CASE:
        MEM_PUSH(a->cases, a->case_count) = arg;
        return 0;
    case MARKDOWN:
        a->markdown = true;
        return 0;
    case EXPLAIN:
        a->explain = true;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case ANCHOR:
        a->anchor = arg;
        return 0;
    case SAVE:
        a->save_anchor = arg;
        return 0;
    case RELEASE:
        a->release = arg;
        return 0;
    case MEASURED:
        return take_measured(a, arg, state);
    case ARGP_KEY_END:
        if (!a->measured != !a->save_anchor)
            argp_error(state, "--measured and --save-anchor belong together");
        else if (a->anchor && a->save_anchor)
            argp_error(state, "--anchor brings a measured step, and --measured is another");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void predict_args(struct predict_args *a, int argc, char **argv)
{
    const struct argp_child children[] = {job_child(0), {0}};
    const struct argp argp = {options, parse, "[MATRIX]", doc, children, NULL, NULL};

    *a = (struct predict_args){.output = NULL};
    job_defaults(&a->job);
    argp_parse(&argp, argc, argv, 0, NULL, a);
}
