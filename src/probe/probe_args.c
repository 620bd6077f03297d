/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    ROOT = 0x500,
    TOPOLOGY,
    PLAN,
    FORMAT,
    DRY_RUN,
    USAGE,
    JSON,
    CHECK,
    NCCL,
    SHARE_GPU,
    COMPUTE,
    MODEL
};
enum { HELP_ALL = ARGP_HELP_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC };

/* argp's own help calls exit(), which leaves MPI without MPI_Finalize. */
static const struct argp_option common_options[] = {
    {"help", '?', NULL, 0, "give this help list", -1},
    {"usage", USAGE, NULL, 0, "give a short usage message", -1},
    {"version", 'V', NULL, 0, "print the version", -1},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    bool *done = state->input, speaks = !(state->flags & ARGP_NO_ERRS);

    (void)arg;
    if (key != '?' && key != USAGE && key != 'V')
        return ARGP_ERR_UNKNOWN;
    *done = true;
    if (speaks && key == 'V')
        puts("railgauge-probe " RG_VERSION);
    else if (speaks)
        argp_state_help(state, stdout, key == '?' ? HELP_ALL : ARGP_HELP_USAGE);
    return 0;
}

const struct argp probe_common_argp = {common_options, parse_common, NULL, NULL, NULL, NULL, NULL};

static const struct argp_option discover_options[] = {
    {"output", 'o', "FILE", 0, "write topology.json here (default: only print)", 1},
    {"root", ROOT, "DIR", 0, "read /sys and /proc of a recorded machine below DIR", 1},
    {"transport", 't', "NAME", 0, "nccl: the endpoints are the GPUs that its ranks will use", 1},
    {"share-gpu", SHARE_GPU, NULL, 0, "... of which several may use one", 1},
    {"quiet", 'q', NULL, 0, "no picture on the terminal", 1},
    {"json", JSON, NULL, 0, "print the verdict on NVLink of each host as JSON", 1},
    {"check", CHECK, NULL, 0,
     "exit with 1 when NVLink is bad on a host, 2 when nothing is known of GPUs", 1},
    {"nccl", NCCL, NULL, 0, "also what NCCL builds: one communicator of all ranks", 1},
    {0},
};

static const struct argp_option probe_options[] = {
    {"transport", 't', "NAME", 0,
     "what carries the messages: mpi (host memory; default), nccl (GPU memory), copy (from GPU to "
     "GPU without a library) or auto",
     1},
    {"plan", PLAN, "FILE", 0, "what to measure (default: made here, plan.tsv beside the points)",
     1},
    {"topology", TOPOLOGY, "FILE", 0,
     "what the ranks are (default: discovered, topology.json beside the points)", 1},
    {"output", 'o', "FILE", 0,
     "where to write; what is there already is not measured again (default points.tsv)", 1},
    {"format", FORMAT, "NAME", 0, "nccl-tests: print the collectives as nccl-tests does", 1},
    {"compute", COMPUTE, NULL, 0,
     "measure what each GPU computes and moves alone, instead of a plan, into compute.tsv", 1},
    {"model", MODEL, "LIST", 0, "... with the products of these models (default " DEVICE_MODELS ")",
     1},
    {"dry-run", DRY_RUN, NULL, 0, "print rounds, points, bytes and time; measure nothing", 1},
    {0},
};

static error_t parse_discover(int key, char *arg, struct argp_state *state)
{
    struct probe_args *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->done;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case ROOT:
        a->root = arg;
        return 0;
    case 't':
        a->transport = arg;
        return 0;
    case SHARE_GPU:
        a->nccl.share_gpu = true;
        return 0;
    case 'q':
        a->quiet = true;
        return 0;
    case JSON:
        a->json = true;
        return 0;
    case CHECK:
        a->check = true;
        return 0;
    case NCCL:
        a->look = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "what is \"%s\"?", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A word that another tool wants there. */
static error_t mistaken(int key, const char *word, struct argp_state *state)
{
    const char *why = nccl_tests_meaning(key, word);

    if (why)
        argp_error(state, "-%c %s: %s", key, word, why);
    return why ? EINVAL : 0;
}

static error_t parse_probe(int key, char *arg, struct argp_state *state)
{
    struct probe_args *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->done;
        state->child_inputs[1] = &a->probe;
        state->child_inputs[2] = &a->mpi;
        state->child_inputs[3] = &a->nccl;
        state->child_inputs[4] = &a->copy;
        state->child_inputs[5] = &a->device;
        return 0;
    case 't':
        if (mistaken(key, arg, state))
            return EINVAL;
        a->transport = arg;
        return 0;
    case PLAN:
        a->plan = arg;
        return 0;
    case TOPOLOGY:
        a->topology = arg;
        return 0;
    case FORMAT:
        a->format = arg;
        if (!strcmp(arg, "nccl-tests"))
            return 0;
        argp_error(state, "format \"%s\" is not nccl-tests", arg);
        return EINVAL;
    case COMPUTE:
        a->compute = true;
        return 0;
    case MODEL:
        a->model = arg;
        return 0;
    case DRY_RUN:
        a->dry_run = true;
        return 0;
    case 'o':
        if (mistaken(key, arg, state))
            return EINVAL;
        a->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "what is \"%s\"?", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = state->input;
    (void)arg;
    return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp_child common_child[] = {{&probe_common_argp, 0, NULL, -1}, {0}};
static const struct argp_child files_children[] = {
    {&probe_common_argp, 0, NULL, -1}, {&probe_argp, 0, NULL, 20},
    {&mpi_argp, 0, NULL, 38},          {&nccl_argp, 0, NULL, 40},
    {&copy_argp, 0, NULL, 45},         {&device_argp, 0, NULL, 46},
    {&nccl_tests_argp, 0, NULL, 70},   {0}};
const struct argp probe_files_argp = {probe_options,  parse_probe, NULL, NULL,
                                      files_children, NULL,        NULL};
static const struct argp_child files_child[] = {{&probe_files_argp, 0, NULL, 1}, {0}};

static const char discover_doc[] =
    "Ask every rank what it is and write topology.json: endpoint id = rank."
    "\vExample:\n"
    "  mpirun -n 8 railgauge-probe discover -o topology.json";

static const char probe_doc[] =
    "Measure a plan over MPI and write points.tsv; a second run measures only what is missing."
    "\vExamples:\n"
    "  mpirun -n 8 railgauge-probe probe --exact\n"
    "  mpirun -n 8 railgauge-probe probe --op all_reduce -b 8 -e 64M --format nccl-tests\n"
    "  mpirun -n 8 railgauge-probe probe --topology topology.json --plan plan.tsv -o points.tsv\n\n"
    "Options of nccl-tests beside these are taken with the value that changes nothing (-g 1) and "
    "refused with what to use instead.\n\n"
    "SIGTERM, SIGINT and SIGUSR1 end it after the point in flight with exit code 75; what was "
    "measured is in the file.  Other exit codes: 0 good, 2 could not measure, 64 usage, 65 bad "
    "data, "
    "66 no input, 74 I/O, 78 configuration.";

const struct argp probe_discover_argp = {discover_options, parse_discover, NULL, discover_doc,
                                         common_child,     NULL,           NULL};
const struct argp probe_probe_argp = {NULL, parse_top, NULL, probe_doc, files_child, NULL, NULL};

int probe_argp_parse(const struct argp *argp, int argc, char **argv, bool speak, void *input,
                     struct err *err)
{
    unsigned flags = speak ? ARGP_NO_EXIT | ARGP_NO_HELP : ARGP_SILENT;

    return argp_parse(argp, argc, argv, flags, NULL, input) ? err_usage(err, "wrong usage") : 0;
}

int probe_args_parse(struct probe_args *a, const struct argp *argp, int argc, char **argv,
                     bool speak, struct err *err)
{
    memset(a, 0, sizeof(*a));
    probe_opts_defaults(&a->probe);
    nccl_opts_defaults(&a->nccl);
    return probe_argp_parse(argp, argc, argv, speak, a, err);
}
