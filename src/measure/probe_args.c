/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/probe_args.h"

#include <string.h>

static int take_share(void *into, const char *name, const char *none, struct err *err)
{
    (void)into, (void)name, (void)none, (void)err;
    nccl_opts_asked.share_gpu = true;
    return 0;
}

static const struct opt discover_rows[] = {
    {"output", 'o', "FILE", "write topology.json here (default: only print)",
     OPT_INTO(struct probe_args, output), .group = 1},
    {"root", 0, "DIR", "read /sys and /proc of a recorded machine below DIR",
     OPT_INTO(struct probe_args, root), .group = 1},
    {"transport", 't', "NAME", "nccl: the endpoints are the GPUs that its ranks will use",
     OPT_INTO(struct probe_args, transport), .group = 1},
    {"share-gpu", 0, NULL, "... of which several may use one", OPT_NAMED(take_share), .group = 1},
    {"quiet", 'q', NULL, "no picture on the terminal", OPT_INTO(struct probe_args, quiet),
     .group = 1},
    {"json", 0, NULL, "print the verdict on NVLink of each host as JSON",
     OPT_INTO(struct probe_args, json), .group = 1},
    {"check", 0, NULL, "exit with 1 when NVLink is bad on a host, 2 when nothing is known of GPUs",
     OPT_INTO(struct probe_args, check), .group = 1},
    {"nccl", 0, NULL, "also what NCCL builds: one communicator of all ranks",
     OPT_INTO(struct probe_args, look), .group = 1},
    {0},
};

/* Reject a word that another tool expects after this letter. */
static int check_meaning(char letter, const char *word, struct err *err)
{
    const char *why = nccl_tests_meaning(letter, word);

    return why ? err_usage(err, "-%c %s: %s", letter, word, why) : 0;
}

static int take_transport(void *into, const char *name, const char *word, struct err *err)
{
    (void)name;
    if (check_meaning('t', word, err) < 0)
        return -1;
    ((struct probe_args *)into)->transport = word;
    return 0;
}

static int take_output(void *into, const char *name, const char *path, struct err *err)
{
    (void)name;
    if (check_meaning('o', path, err) < 0)
        return -1;
    ((struct probe_args *)into)->output = path;
    return 0;
}

static int take_discover(void *into, const char *name, const char *who, struct err *err)
{
    ((struct probe_args *)into)->discover = who;
    return !strcmp(who, "all") || !strcmp(who, "gpus")
               ? 0
               : err_usage(err, "%s \"%s\" is neither all nor gpus", name, who);
}

static int take_format(void *into, const char *name, const char *format, struct err *err)
{
    ((struct probe_args *)into)->format = format;
    return strcmp(format, "nccl-tests")
               ? err_usage(err, "%s \"%s\" is not nccl-tests", name, format)
               : 0;
}

const struct opt probe_file_options[] = {
    {"transport", 't', "NAME",
     "what carries the messages: mpi (host memory; default), nccl (GPU memory), copy (from GPU to "
     "GPU without a library) or auto",
     OPT_NAMED(take_transport), .values = transport_each, .group = 1},
    {"plan", 0, "FILE", "what to measure (default: made here, plan.tsv beside the points)",
     OPT_INTO(struct probe_args, plan), .group = 1},
    {"topology", 0, "FILE",
     "what the ranks are (default: discovered, topology.json beside the points)",
     OPT_INTO(struct probe_args, topology), .group = 1},
    {"output", 'o', "FILE",
     "where to write; what is there already is not measured again (default points.tsv)",
     OPT_NAMED(take_output), .group = 1},
    {"format", 0, "NAME", "nccl-tests: print the collectives as nccl-tests does",
     OPT_NAMED(take_format), .group = 1},
    {"nic-pass", 0, NULL,
     "only the plan's rounds with NVLink left; --path ib or roce leaves it (run does both)",
     OPT_INTO(struct probe_args, probe.measure.nics), .group = 1},
    {"discover", 0, "WHO",
     "no more than topology.json beside the points: all, or gpus, which run starts again",
     OPT_NAMED(take_discover), .group = 1},
    {"compute", 0, NULL,
     "measure what each GPU computes and moves alone, instead of a plan, into compute.tsv",
     OPT_INTO(struct probe_args, compute), .group = 1},
    {"model", 0, "LIST", "... with the products of these models (default " DEVICE_MODELS ")",
     OPT_INTO(struct probe_args, model), .group = 1},
    {"dry-run", 0, NULL, "print rounds, points, bytes and time; measure nothing",
     OPT_INTO(struct probe_args, dry_run), .group = 1},
    {0},
};

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

const struct opt_line probe_discover_line = {
    .options = discover_rows,
    .doc = discover_doc,
    .set = {{.rows = opt_help, .at = offsetof(struct probe_args, done), .group = -1}},
};

const struct opt_line probe_probe_line = {
    .doc = probe_doc, .set = {PROBE_SETS(0)}, .more = transport_options};
