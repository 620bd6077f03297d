/* place_args.c - the options of railgauge place. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/place_args.h"

#include <argp.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"

enum { JSON = 0x400, NODES_FILE, TRAFFIC, WRITE, LIMIT, SEED, PER_NODE, NO_SCOTCH };

static const struct argp_option options[] = {
    {"traffic", TRAFFIC, "FILE", 0,
     "instead of a model: who sends how many bytes to whom in a step, a table with the columns "
     "src, "
     "dst and bytes, or Matrix Market",
     4},
    {"nodes-file", NODES_FILE, "FILE", 0,
     "the free nodes, a host list a line (--nodes LIST names them here)", 4},
    {"exclude", 'x', "LIST", 0, "nodes that are not free", 4},
    {"per-node", PER_NODE, "N", 0, "ranks of a node (default: all its endpoints)", 4},
    {"limit", LIMIT, "TIME", 0,
     "search for about so long (default 1s; the work is counted, so that the answer is the same "
     "everywhere)",
     5},
    {"seed", SEED, "N", 0, "of random moves and random orders (default 1)", 5},
    {"no-scotch", NO_SCOTCH, NULL, 0, "do not ask libscotch, where it is installed", 5},
    {"write", WRITE, "FORM[=FILE]", 0,
     "write the placement, to standard output without FILE: order, nodes, rankfile, hostfile, "
     "mpich, slurm-hostfile, sbatch, torchrun, kubernetes; may be given again",
     6},
    {"json", JSON, NULL, 0, "print place.json instead of text", 6},
    {"output", 'o', "FILE", 0, "write place.json too", 6},
    {0},
};

static const char doc[] =
    "Choose nodes and the order of ranks that make the step shortest: orders of the mesh's axes, "
    "blocks of ranks that stay inside a domain, rack or leaf, slow parts left out, then moves of "
    "whole blocks; each order is priced as railgauge predict does.  MATRIX is a matrix.json of "
    "railgauge fit."
    "\vExamples:\n"
    "  railgauge place matrix.json --model llama3.1-70b --layout tp=8,dp=16 --nodes 'n[01-40]'\n"
    "  railgauge place --fabric gb200-nvl72 --racks 4 --model mixtral-8x7b --strategy fsdp \\\n"
    "      --layout dp=128,ep=8 --exclude r00n[03,07] --write slurm-hostfile=hosts\n"
    "  railgauge place matrix.json --layout tp=4,dp=8 --write order=order.txt --write sbatch\n"
    "  railgauge place matrix.json --traffic bytes.tsv --write rankfile=ranks.txt\n\n"
    "Exit codes: 0 good, 2 could not judge (no curve, no compute rate), 64 usage, 65 bad data, 66 "
    "no input, 74 I/O.";

/* FORM or FORM=FILE. */
static int take_write(struct place_args *a, char *arg, struct err *err)
{
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

static void check(const struct place_args *a, struct argp_state *state)
{
    int screens = a->json;

    for (int i = 0; i < a->writes; i++)
        screens += !strcmp(a->write[i].path, "-");
    if (screens > 1)
        argp_error(state, "only one of --json and --write without a file fits on standard output");
    else if (a->job.place.order || a->job.place.segment || a->job.place.spread)
        argp_error(state, "place finds the order of ranks: --order, --segment and --spread belong "
                          "to railgauge predict");
    else if (a->job.place.nodes && a->nodes_file)
        argp_error(state, "--nodes and --nodes-file both say which nodes are free");
    else if (a->traffic && a->job.layout)
        argp_error(state, "--traffic takes the place of --model and --layout");
}

static error_t number(int key, char *arg, struct argp_state *state, struct place_args *a)
{
    struct err err = {0, ""};
    int rc = 0;

    if (key == LIMIT) {
        rc = units_seconds(&a->limit, arg, &err);
        if (rc == 0 && !(a->limit > 0 && a->limit <= 86400))
            rc = err_usage(&err, "%s is not more than 0 s and at most a day", arg);
    } else if (key == SEED) {
        rc = units_int(&a->seed, arg, 0, INT_MAX, &err);
    } else {
        rc = units_int(&a->per_node, arg, 1, 1 << 20, &err);
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct place_args *a = state->input;
    struct err err = {0, ""};

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->job;
        return 0;
    case TRAFFIC:
        a->traffic = arg;
        return 0;
    case NODES_FILE:
        a->nodes_file = arg;
        return 0;
    case 'x':
        a->exclude = arg;
        return 0;
    case LIMIT:
    case SEED:
    case PER_NODE:
        return number(key, arg, state, a);
    case NO_SCOTCH:
        a->no_scotch = true;
        return 0;
    case WRITE:
        if (take_write(a, arg, &err) < 0)
            opt_error(state, options, key, &err);
        return 0;
    case JSON:
        a->json = true;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case ARGP_KEY_END:
        check(a, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void place_args(struct place_args *a, int argc, char **argv)
{
    const struct argp_child children[] = {job_child(0), {0}};
    const struct argp argp = {options, parse, "[MATRIX]", doc, children, NULL, NULL};

    *a = (struct place_args){.limit = 1, .seed = 1};
    job_defaults(&a->job);
    argp_parse(&argp, argc, argv, 0, NULL, a);
}
