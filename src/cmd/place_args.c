/* place_args.c - the options of railgauge place. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/place_args.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "cmd/command.h"

enum { DAY = 86400 }; /* s */

/* FORM or FORM=FILE. */
static int take_write(void *args, char *arg, struct err *err)
{
    struct place_args *a = args;
    char *path = strchr(arg, '=');

    if (path)
        *path++ = '\0';
    if (path && !*path)
        return err_usage(err, "no file after \"%s=\"", arg);
    const struct rank_file *form = rank_file_find(arg, err);
    if (!form)
        return -1;
    MEM_PUSH(a->write, a->writes) = (struct written){form, path ? path : "-"};
    return 0;
}

static int take_limit(void *args, char *text, struct err *err)
{
    struct place_args *a = args;

    if (units_seconds(&a->limit, text, err) < 0)
        return -1;
    return a->limit > 0 && a->limit <= DAY
               ? 0
               : err_usage(err, "%s is not more than 0 s and at most a day", text);
}

static const struct opt options[] = {
    {"traffic", 0, "FILE",
     "instead of a model: who sends how many bytes to whom in a step, a table with the columns "
     "src, dst and bytes, or Matrix Market",
     OPT_INTO(struct place_args, traffic), .group = 4},
    {"nodes-file", 0, "FILE", "the free nodes, a host list a line (--nodes LIST names them here)",
     OPT_INTO(struct place_args, nodes_file), .group = 4},
    {"exclude", 'x', "LIST", "nodes that are not free", OPT_INTO(struct place_args, exclude),
     .group = 4},
    {"per-node", 0, "N", "ranks of a node (default: all its endpoints)",
     OPT_INT(struct place_args, per_node, 1, 1 << 20), .group = 4},
    {"limit", 0, "TIME",
     "search for about so long (default 1s; the work is counted, so that the answer is the same "
     "everywhere)",
     OPT_CALL(take_limit), .group = 5},
    {"seed", 0, "N", "of random moves and random orders (default 1)",
     OPT_INT(struct place_args, seed, 0, INT_MAX), .group = 5},
    {"no-scotch", 0, NULL, "do not ask libscotch, where it is installed",
     OPT_INTO(struct place_args, no_scotch), .group = 5},
    {"write", 0, "FORM[=FILE]",
     "write the placement, to standard output without FILE: order, nodes, rankfile, hostfile, "
     "mpich, slurm-hostfile, sbatch, torchrun, kubernetes; may be given again",
     OPT_CALL(take_write), .group = 6},
    {"json", 0, NULL, "print place.json instead of text", OPT_INTO(struct place_args, json),
     .group = 6},
    {"output", 'o', "FILE", "write place.json too", OPT_INTO(struct place_args, output),
     .group = 6},
    {0},
};

static const char doc[] =
    "Choose nodes and the order of ranks that make the step shortest: orders of the mesh's axes, "
    "blocks of ranks that stay inside a domain, rack or leaf, slow parts left out, then moves of "
    "whole blocks; each order is priced as railgauge predict does.  MATRIX is a matrix.json of "
    "railgauge fit."
    "\vExamples:\n"
    "  railgauge place matrix.json --model llama3.1-70b \\\n"
    "      --layout tp=8,dp=16 --nodes 'n[01-40]'\n"
    "  railgauge place --fabric gb200-nvl72 --racks 4 --model mixtral-8x7b \\\n"
    "      --strategy fsdp --layout dp=128,ep=8 --exclude r00n[03,07] \\\n"
    "      --write slurm-hostfile=hosts\n"
    "  railgauge place matrix.json --layout tp=4,dp=8 \\\n"
    "      --write order=order.txt --write sbatch\n"
    "  railgauge place matrix.json --traffic bytes.tsv --write rankfile=ranks.txt\n\n" EXIT_CODES(
        "1 the job does not fit in a GPU's memory, 2 could not judge (no curve, no compute rate, a "
        "dead part), ",
        "");

static int check(void *args, struct err *err)
{
    const struct place_args *a = args;
    int screens = a->json;

    for (int i = 0; i < a->writes; i++)
        screens += !strcmp(a->write[i].path, "-");
    if (screens > 1)
        return err_usage(err,
                         "only one of --json and --write without a file fits on standard output");
    if (a->job.place.order || a->job.place.segment || a->job.place.spread)
        return err_usage(err, "place finds the order of ranks: --order, --segment and --spread "
                              "belong to railgauge predict");
    if (a->job.place.nodes && a->nodes_file)
        return err_usage(err, "--nodes and --nodes-file both say which nodes are free");
    if (a->traffic && a->job.layout)
        return err_usage(err, "--traffic takes the place of --model and --layout");
    return 0;
}

void place_args(struct place_args *a, int argc, char **argv)
{
    const struct command command = {
        .options = options,
        .check = check,
        .child = {{job_child(0), offsetof(struct place_args, job)}},
        .usage = "[MATRIX]",
        .doc = doc,
    };

    *a = (struct place_args){.limit = 1, .seed = 1};
    job_defaults(&a->job);
    command_parse(&command, argc, argv, a);
}
