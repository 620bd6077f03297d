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
#include "cmd/launch.h"
#include "topo/fabric.h"
#include "topo/topo.h"

enum { FABRIC = 0x400, RACKS, BLIND, ROOT, LIST };

struct args {
    const char *out, *fabric, *root, *file;
    int racks;
    bool blind, list, quiet;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0,
     "write topology.json here (default: ./topology.json for this machine, nowhere for others)", 0},
    {"quiet", 'q', NULL, 0, "print nothing", 0},
    {"fabric", FABRIC, "NAME", 0, "a preset, or a file of one, instead of this machine", 0},
    {"racks", RACKS, "N", 0, "racks of the preset (default: as the preset says)", 0},
    {"blind", BLIND, NULL, 0, "of the preset tell host names only, as a machine without labels", 0},
    {"list-fabrics", LIST, NULL, 0, "print the shipped presets", 0},
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
    case 'q':
        a->quiet = true;
        break;
    case FABRIC:
        a->fabric = arg;
        break;
    case RACKS:
        if (units_int(&a->racks, arg, 1, 1 << 20, &err) < 0)
            argp_error(state, "--racks: %s", err.text);
        break;
    case BLIND:
        a->blind = true;
        break;
    case ROOT:
        a->root = arg;
        break;
    case LIST:
        a->list = true;
        break;
    case ARGP_KEY_ARG:
        if (a->file)
            argp_error(state, "one file at a time: \"%s\" after \"%s\"", arg, a->file);
        a->file = arg;
        break;
    case ARGP_KEY_END:
        if (!a->fabric && (a->racks || a->blind))
            argp_error(state, "--racks and --blind need --fabric");
        if ((a->fabric != NULL) + (a->file != NULL) + (a->root != NULL) + a->list > 1)
            argp_error(state, "choose one of FILE, --fabric, --root and --list-fabrics");
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
        "\vWithout FILE and --fabric this host is read.  All hosts of a job are read together by "
        "starting railgauge-probe under its launcher:\n\n"
        "  railgauge discover\n"
        "  railgauge discover -o topology.json\n"
        "  railgauge discover topology.json\n"
        "  railgauge discover --fabric gb200-nvl72 --racks 8\n"
        "  mpirun -H node1:8,node2:8 railgauge-probe discover -o topology.json\n",
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

static int load(struct topo *t, const struct args *a, struct err *err)
{
    struct fabric f;

    if (a->file)
        return topo_load(t, a->file, err);
    if (fabric_load(&f, a->fabric, err) < 0)
        return -1;
    int rc = fabric_topo(&f, a->racks, a->blind, t, err);
    fabric_free(&f);
    return rc;
}

/* This machine is read by the MPI program, which knows hwloc; it also runs without a launcher. */
static int exec_probe(const struct args *a, struct err *err)
{
    char *argv[16] = {NULL, "discover"};
    int n = 2;

    if (a->quiet)
        argv[n++] = "--quiet";
    if (a->out)
        argv[n++] = mem_printf("--output=%s", a->out);
    if (a->root)
        argv[n++] = mem_printf("--root=%s", a->root);
    return launch_exec(argv, err);
}

int cmd_discover(int argc, char **argv)
{
    struct args a = {0};
    struct err err;
    struct topo t;

    topo_init(&t);
    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    int rc = a.list               ? list_fabrics(&err)
             : a.fabric || a.file ? load(&t, &a, &err)
                                  : exec_probe(&a, &err);
    if (rc == 0 && a.out)
        rc = topo_save(&t, a.out, &err);
    if (rc == 0 && !a.list && !a.quiet)
        topo_print(&t, stdout);
    topo_free(&t);
    return rc < 0 ? cmd_fail("discover", &err) : EXIT_GOOD;
}
