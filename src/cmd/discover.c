/* discover.c - railgauge discover: what this machine, a preset or a recorded machine is. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "cmd/launch.h"
#include "emit/discover_report.h"
#include "probe/nccl_path.h"
#include "topo/claim.h"
#include "topo/fabric.h"
#include "topo/topo.h"

enum { BLIND = 0x400, ROOT, LIST, CHECK, JSON, PATHS, NCCL, PER_HOST };

struct args {
    const char *out, *root;
    int per_host;
    bool list, paths, nccl;
    struct discover_report report;
    struct input_args in;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0,
     "write topology.json here (default: ./topology.json for this machine, nowhere for others)", 0},
    {"quiet", 'q', NULL, 0, "print nothing", 0},
    {"json", JSON, NULL, 0, "print the verdict on NVLink of each host as JSON", 0},
    {"check", CHECK, NULL, 0,
     "exit with 1 when NVLink is bad on a host, 2 when nothing is known of GPUs", 0},
    {"blind", BLIND, NULL, 0, "of the preset tell host names only, as a machine without labels", 0},
    {"list-fabrics", LIST, NULL, 0, "print the shipped presets", 0},
    {"list-paths", PATHS, NULL, 0, "print what --path of railgauge probe can ask of NCCL", 0},
    {"nccl", NCCL, NULL, 0, "also what NCCL builds on the GPUs of this machine", 0},
    {"gpus-per-host", PER_HOST, "N", 0, "GPUs of hosts that are known by name only", 0},
    {"root", ROOT, "DIR", 0, "read a recorded machine below DIR (its /sys and /proc)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err;

    switch (key) {
    case 'o':
        a->out = arg;
        break;
    case PER_HOST:
        if (units_int(&a->per_host, arg, 1, 1024, &err) < 0)
            argp_error(state, "--gpus-per-host: %s", err.text);
        break;
    case 'q':
        a->report.quiet = true;
        break;
    case CHECK:
        a->report.check = true;
        break;
    case JSON:
        a->report.json = true;
        break;
    case BLIND:
        a->in.blind = true;
        break;
    case ROOT:
        a->root = arg;
        break;
    case LIST:
        a->list = true;
        break;
    case PATHS:
        a->paths = true;
        break;
    case NCCL:
        a->nccl = true;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->in;
        break;
    case ARGP_KEY_END:
        if (!a->in.fabric && a->in.blind)
            argp_error(state, "--blind needs --fabric");
        if ((a->in.fabric != NULL) + (a->in.file != NULL) + (a->root != NULL) + a->list + a->paths >
            1)
            argp_error(state,
                       "choose one of FILE, --fabric, --root, --list-fabrics and --list-paths");
        if (a->per_host && !a->in.sources.count)
            argp_error(state, "--gpus-per-host needs a file that names hosts");
        if (a->in.sources.count && (a->root || a->list || a->paths || a->nccl))
            argp_error(state, "what others say is added to FILE or --fabric, or stands alone");
        if (a->nccl && (a->in.fabric || a->in.file || a->root || a->list || a->paths))
            argp_error(state, "--nccl looks at this machine, not at a file or a preset");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[FILE]",
    .doc =
        "Print what this machine is, as far as it can be seen, and what cannot be seen and why."
        "\vFiles of others are added to FILE or --fabric, or make a topology alone.  Without any "
        "of them this host is read.  All hosts of a job are read together by "
        "starting railgauge-probe under its launcher:\n\n"
        "  railgauge discover\n"
        "  railgauge discover -o topology.json\n"
        "  railgauge discover topology.json\n"
        "  railgauge discover topology.json --check --quiet && echo NVLink is good\n"
        "  railgauge discover --fabric gb200-nvl72 --racks 8\n"
        "  mpirun -H node1:8,node2:8 railgauge-probe discover -o topology.json\n"
        "  mpirun -H node1:8,node2:8 railgauge-probe discover --nccl -o topology.json\n",
};

static int list_fabrics(struct err *err)
{
    char **names;
    int count;

    if (fabric_list(&names, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        struct fabric f;
        if (fabric_load(&f, names[i], err) < 0) {
            hostlist_free(names, count);
            return -1;
        }
        printf("%-22s %s\n", names[i], f.title);
        fabric_free(&f);
    }
    hostlist_free(names, count);
    return 0;
}

/* GPUs of hosts of which only declarations speak. */
static void add_gpus(struct topo *t, int per_host)
{
    for (int h = 0; h < t->hosts; h++)
        for (int g = 0; t->host[h].endpoints == g && g < per_host; g++) {
            int id = topo_add_endpoint(t, h, ENDPOINT_GPU); /* moves them all */
            t->endpoint[id].source[LEVEL_HOST] = SOURCE_USER;
        }
}

/* What others say: beside FILE or a preset, or all there is. */
static int add_sources(struct topo *t, const struct args *a, struct err *err)
{
    if (source_args_read(&a->in.sources, t, err) < 0)
        return -1;
    if (!a->in.file && !a->in.fabric)
        claims_add_hosts(t);
    add_gpus(t, a->per_host);
    sources_done(t);
    if (!t->tiers)
        topo_default_tiers(t);
    return 0;
}

static const struct input_ask ask = {INPUT_TOPO, INPUT_TOPO, 0};

/* This machine is read by the MPI program, which knows hwloc; it also runs without a launcher. */
static int exec_probe(const struct args *a, struct err *err)
{
    char *argv[16] = {NULL, "discover"};
    int n = 2;

    if (a->report.quiet)
        argv[n++] = "--quiet";
    if (a->report.json)
        argv[n++] = "--json";
    if (a->report.check)
        argv[n++] = "--check";
    if (a->out)
        argv[n++] = mem_printf("--output=%s", a->out);
    if (a->root)
        argv[n++] = mem_printf("--root=%s", a->root);
    if (a->nccl)
        argv[n++] = "--nccl";
    return launch_exec(argv, err);
}

int cmd_discover(int argc, char **argv)
{
    struct args a = {0};
    struct err err;
    struct input in;

    input_init(&in);
    if (input_parse(&argp, INPUT_FILE | INPUT_PRESET | INPUT_SOURCES, argc, argv, &a))
        return EXIT_USAGE;
    if (a.paths) {
        nccl_path_print(stdout);
        return EXIT_GOOD;
    }
    bool given = a.in.fabric || a.in.file || a.in.sources.count;
    int rc = a.list  ? list_fabrics(&err)
             : given ? input_open(&in, &a.in, &ask, &err)
                     : exec_probe(&a, &err);
    if (rc == 0 && a.in.sources.count)
        rc = add_sources(&in.t, &a, &err);
    if (rc == 0 && a.out)
        rc = topo_save(&in.t, a.out, &err);
    if (rc == 0 && !a.list)
        rc = discover_report(stdout, &in.t, &a.report, &err);
    input_free(&in);
    input_args_free(&a.in);
    return rc < 0 ? cmd_fail("discover", &err) : EXIT_GOOD;
}
