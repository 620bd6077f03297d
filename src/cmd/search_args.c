/* search_args.c - the options of railgauge search. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/search_args.h"

#include "cmd/command.h"
#include "step/search/search.h"

static const struct opt options[] = {
    {"anchor", 0, "FILE|ROW", "one measured step of this recipe, as railgauge predict takes it",
     OPT_INTO(struct search_args, anchor), .group = 4},
    {"release", 0, "TEXT",
     "of the software: \"megatron-bridge 26.04\"; constants and anchors know releases",
     OPT_INTO(struct search_args, release), .group = 4},
    {"constraint", 'c', "TEXT",
     "KEY=VALUE, with = != < <= > >= and alternatives by |: "
     "\"tp<=8,pp=1,strategy=fsdp|hsdp\"; several add up",
     OPT_LIST(struct search_args, constraint, constraints), .group = 5},
    {"top", 0, "N", "how many are listed (default 10)",
     OPT_INT(struct search_args, top, 1, SEARCH_TOP_MAX), .group = 5},
    {"json", 0, NULL, "print search.json instead of text", OPT_INTO(struct search_args, json),
     .group = 6},
    {"tsv", 0, "FILE", "write the list as a table too; - prints it instead of text",
     OPT_INTO(struct search_args, tsv), .group = 6},
    {"output", 'o', "FILE", "write search.json too", OPT_INTO(struct search_args, output),
     .group = 6},
    {0},
};

static const char doc[] =
    "Find the layout with the shortest step: every mesh of the GPUs that divides the model, with "
    "every strategy, pipeline, micro batch and recompute, priced on the matrix.  MATRIX is a "
    "matrix.json of railgauge fit.  The keys of constraints are the axes (pp, dp, dp_shard, "
    "dp_replicate, cp, tp, ep, etp) and the settings that vary; an option such as --strategy "
    "fixes its setting."
    "\vExamples:\n"
    "  railgauge search --fabric gb200-nvl72 --model llama3.1-405b --gpus 8192 \\\n"
    "      --batch 8192\n"
    "  railgauge search matrix.json --model llama3.1-70b --constraint 'tp<=8,pp=1'\n"
    "  railgauge search --fabric hgx-h100 --model deepseek-v3 \\\n"
    "      --gpus 2048 --dtype fp8 --top 20 \\\n"
    "      --constraint 'ep>=8,strategy=zero1,recompute=none|selective'\n"
    "  railgauge search matrix.json --model mixtral-8x7b --order hostfile --tsv -\n\n" EXIT_CODES(
        "1 nothing fits in a GPU's memory, 2 nothing can be priced, ", "");

static int check(void *args, struct err *err)
{
    const struct search_args *a = args;

    if (!a->job.layout)
        return 0;
    return err_usage(err,
                     "a search finds the layout: say --constraint \"%s\" where it is to be kept",
                     a->job.layout);
}

void search_args(struct search_args *a, int argc, char **argv)
{
    const struct command command = {
        .options = options,
        .check = check,
        .child = {{job_child(0), offsetof(struct search_args, job)}},
        .usage = "[MATRIX]",
        .doc = doc,
    };

    *a = (struct search_args){.top = 10};
    job_defaults(&a->job);
    space_open(&a->job.recipe);
    command_parse(&command, argc, argv, a);
}
