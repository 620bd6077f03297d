/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/probe_args.h"

#include <string.h>

#include "base/host.h"

static int take_share(void *into, const char *name, const char *none, struct err *err)
{
    (void)into, (void)name, (void)none, (void)err;
    nccl_opts_asked.share_gpu = true;
    return 0;
}

static const struct opt discover_rows[] = {
    {"output", 'o', "FILE", "write topology.json here (default: print only)",
     OPT_INTO(struct probe_args, output)},
    {"root", 0, "DIR", "read /sys and /proc of a recorded machine below DIR",
     OPT_INTO(struct probe_args, root)},
    HOST_MAP_ROW(OPT_CALL(host_map)),
    {"transport", 't', "NAME", "with nccl, the endpoints are the GPUs that the ranks will use",
     OPT_INTO(struct probe_args, transport)},
    {"share-gpu", 0, NULL, "with --transport nccl: allow several ranks on one GPU",
     OPT_NAMED(take_share)},
    {"quiet", 'q', NULL, "print nothing", OPT_INTO(struct probe_args, quiet)},
    {"json", 0, NULL, "print each host's NVLink verdict as JSON",
     OPT_INTO(struct probe_args, json)},
    {"check", 0, NULL, "exit with 1 if NVLink is bad on a host, with 2 if nothing is known of GPUs",
     OPT_INTO(struct probe_args, check)},
    {"nccl", 0, NULL, "also read what NCCL builds, with one communicator of all ranks",
     OPT_INTO(struct probe_args, look)},
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
     "library or method that moves the data: mpi (host memory), nccl (GPU memory), copy (GPU to "
     "GPU "
     "without a library), verbs, sim or auto (default mpi)",
     OPT_NAMED(take_transport), .values = transport_each},
    {"plan", 0, "FILE", "plan to measure (default: made here, and written beside the points)",
     OPT_INTO(struct probe_args, plan)},
    {"topology", 0, "FILE",
     "topology of the ranks (default: discovered, and written beside the points)",
     OPT_INTO(struct probe_args, topology)},
    {"output", 'o', "FILE",
     "file of points; points it holds already are not measured again (default points.tsv)",
     OPT_NAMED(take_output)},
    {"format", 0, "NAME", "also print the collectives in this form: nccl-tests",
     OPT_NAMED(take_format)},
    {"nic-pass", 0, NULL,
     "measure only the rounds with NVLink bypassed, with --path ib or roce; run does both passes",
     OPT_INTO(struct probe_args, probe.measure.nics)},
    {"discover", 0, "all|gpus",
     "write only topology.json beside the points, for all ranks or those with GPUs; run starts "
     "ranks this way",
     OPT_NAMED(take_discover)},
    {"compute", 0, NULL,
     "measure what each GPU computes and moves alone, into compute.tsv, instead of a plan",
     OPT_INTO(struct probe_args, compute)},
    {"model", 0, "LIST",
     "with --compute, measure the kernels of these models (default " DEVICE_MODELS ")",
     OPT_INTO(struct probe_args, model)},
    {"dry-run", 0, NULL, "print rounds, points, bytes and time; measure nothing",
     OPT_INTO(struct probe_args, dry_run)},
    {0},
};

const struct opt_line probe_discover_line = {
    .options = discover_rows,
    .doc = "Ask every rank for its machine and write topology.json: endpoint id = rank.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Read the hosts of two ranks",
                        "mpirun -n 2 railgauge-probe discover -o topology.json"),
            {0}},
    .exits =
        EXIT_CODES("1 NVLink is bad on a host (--check), 2 nothing is known of GPUs (--check), ",
                   ", 78 configuration"),
    OPT_ANSWERED(struct probe_args, done),
};

const struct opt_line probe_probe_line = {
    .doc = "Measure a plan over MPI and write points.tsv; a second run measures only "
           "what is missing.\vSIGTERM, SIGINT and SIGUSR1 end the program after the point "
           "in flight with exit code 75; points.tsv keeps what was measured. Other "
           "options of nccl-tests are accepted with the value that changes nothing (-g "
           "1), and refused with advice otherwise.",
    .examples =
        (const struct opt_example[]){
            OPT_ELSEWHERE("Measure every pair", "mpirun -n 8 railgauge-probe probe --exact"),
            OPT_EXAMPLE("Measure one collective, as nccl-tests does",
                        "mkdir mpi && mpirun -n 2 railgauge-probe probe --op all_reduce \\\n"
                        "      -b 8 -e 64K --format nccl-tests -o mpi/points.tsv"),
            OPT_ELSEWHERE("Measure a plan",
                          "mpirun -n 8 railgauge-probe probe --topology topology.json \\\n"
                          "      --plan plan.tsv -o points.tsv"),
            {0}},
    .exits = EXIT_CODES("2 could not measure, ",
                        ", 75 cut short (a second run continues), 78 configuration"),
    .set = {PROBE_SETS(0)},
    .more = transport_options,
    OPT_ANSWERED(struct probe_args, done)};
