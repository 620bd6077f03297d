/* search_args.c - the options of railgauge search. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/search_args.h"

#include <argp.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"
#include "step/search.h"

enum { JSON = 0x400, TSV, TOP, ANCHOR, RELEASE };

static const struct argp_option options[] = {
    {"anchor", ANCHOR, "FILE|ROW", 0,
     "one measured step of this recipe, as railgauge predict takes it", 4},
    {"release", RELEASE, "TEXT", 0,
     "of the software: \"megatron-bridge 26.04\"; constants and anchors know releases", 4},
    {"constraint", 'c', "TEXT", 0,
     "KEY=VALUE, with = != < <= > >= and alternatives by |: "
     "\"tp<=8,pp=1,strategy=fsdp|hsdp\"; several add up",
     5},
    {"top", TOP, "N", 0, "how many are listed (default 10)", 5},
    {"json", JSON, NULL, 0, "print search.json instead of text", 6},
    {"tsv", TSV, "FILE", 0, "write the list as a table too; - prints it instead of text", 6},
    {"output", 'o', "FILE", 0, "write search.json too", 6},
    {0},
};

static const char doc[] =
    "Find the layout with the shortest step: every mesh of the GPUs that divides the model, with "
    "every strategy, pipeline, micro batch and recompute, priced on the matrix.  MATRIX is a "
    "matrix.json of railgauge fit.  The keys of constraints are the axes (pp, dp, dp_shard, "
    "dp_replicate, cp, tp, ep, etp) and the settings that vary; an option such as --strategy "
    "fixes its setting."
    "\vExamples:\n"
    "  railgauge search --fabric gb200-nvl72 --model llama3.1-405b --gpus 8192 --batch 8192\n"
    "  railgauge search matrix.json --model llama3.1-70b --constraint 'tp<=8,pp=1'\n"
    "  railgauge search --fabric hgx-h100 --model deepseek-v3 --gpus 2048 --dtype fp8 \\\n"
    "      --constraint 'ep>=8,strategy=zero1,recompute=none|selective' --top 20\n"
    "  railgauge search matrix.json --model mixtral-8x7b --order hostfile --tsv -\n\n"
    "Exit codes: 0 good, 2 nothing can be priced or fits, 64 usage, 65 bad data, 66 no input, 74 "
    "I/O.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct search_args *a = state->input;
    struct err err = {0, ""};

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->job;
        return 0;
    case 'c':
        MEM_PUSH(a->constraint, a->constraints) = arg;
        return 0;
    case TOP:
        if (units_int(&a->top, arg, 1, SEARCH_TOP_MAX, &err) < 0)
            opt_error(state, options, key, &err);
        return 0;
    case JSON:
        a->json = true;
        return 0;
    case TSV:
        a->tsv = arg;
        return 0;
    case ANCHOR:
        a->anchor = arg;
        return 0;
    case RELEASE:
        a->release = arg;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case ARGP_KEY_END:
        if (a->job.layout)
            argp_error(state,
                       "a search finds the layout: say --constraint \"%s\" where it is "
                       "to be kept",
                       a->job.layout);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void search_args(struct search_args *a, int argc, char **argv)
{
    const struct argp_child children[] = {job_child(0), {0}};
    const struct argp argp = {options, parse, "[MATRIX]", doc, children, NULL, NULL};

    *a = (struct search_args){.top = 10};
    job_defaults(&a->job);
    space_open(&a->job.recipe);
    argp_parse(&argp, argc, argv, 0, NULL, a);
}
