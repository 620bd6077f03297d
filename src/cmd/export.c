/* export.c - railgauge export: the matrix in formats of other tools. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cost/matrix.h"
#include "emit/simgrid.h"

enum { FABRIC = 0x400, RACKS, PER_RACK, PER, HOSTFILE };

struct args {
    const char *format, *out, *hostfile, *fabric, *file;
    int racks;
    struct simgrid_opts simgrid;
};

static const struct argp_option options[] = {
    {"format", 'f', "NAME", 0, "simgrid: a platform file for smpirun", 0},
    {"output", 'o', "FILE", 0, "write here", 0},
    {"fabric", FABRIC, "NAME", 0, "a preset instead of a measured matrix", 0},
    {"racks", RACKS, "N", 0, "racks of the preset (default: as the preset says)", 0},
    {"hosts-per-rack", PER_RACK, "N", 0, "only the first N hosts of each rack", 0},
    {"per", PER, "host|endpoint", 0, "what a node of the platform is (default host)", 0},
    {"hostfile", HOSTFILE, "FILE", 0, "write the nodes' names in rank order here", 0},
    {0},
};

static error_t parse_end(struct args *a, struct argp_state *state)
{
    if (!a->format)
        argp_error(state, "--format is needed: simgrid");
    if (!a->out)
        argp_error(state, "-o FILE is needed");
    if (!a->fabric == !a->file)
        argp_error(state, "give one of MATRIX and --fabric");
    if (a->racks && !a->fabric)
        argp_error(state, "--racks needs --fabric");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err = {0, ""};
    int rc = 0;

    switch (key) {
    case 'f':
        if (strcmp(arg, "simgrid") != 0)
            argp_error(state, "no format \"%s\"; known: simgrid", arg);
        a->format = arg;
        break;
    case 'o':
        a->out = arg;
        break;
    case FABRIC:
        a->fabric = arg;
        break;
    case HOSTFILE:
        a->hostfile = arg;
        break;
    case RACKS:
        rc = units_int(&a->racks, arg, 1, 1 << 20, &err);
        break;
    case PER_RACK:
        rc = units_int(&a->simgrid.hosts_per_rack, arg, 1, 1 << 20, &err);
        break;
    case PER:
        if (strcmp(arg, "host") != 0 && strcmp(arg, "endpoint") != 0)
            argp_error(state, "--per is host or endpoint, not \"%s\"", arg);
        a->simgrid.endpoints = !strcmp(arg, "endpoint");
        break;
    case ARGP_KEY_ARG:
        if (a->file)
            argp_error(state, "one matrix at a time: \"%s\" after \"%s\"", arg, a->file);
        a->file = arg;
        break;
    case ARGP_KEY_END:
        return parse_end(a, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        argp_error(state, "--%s: %s", key == RACKS ? "racks" : "hosts-per-rack", err.text);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[MATRIX]",
    .doc = "Write a cost matrix, or a preset, in the format of another tool."
           "\vA SimGrid platform runs unchanged MPI programs on the described machine:\n\n"
           "  railgauge export --format simgrid matrix.json -o platform.xml --hostfile hosts\n"
           "  railgauge export --format simgrid --fabric gb200-nvl72 --racks 4 -o platform.xml "
           "--hostfile hosts\n"
           "  smpicc prog.c -o prog && smpirun -np 72 -platform platform.xml -hostfile hosts "
           "--cfg=network/model:CM02 --cfg=network/crosstraffic:0 "
           "--cfg=smpi/simulate-computation:false ./prog\n",
};

/* Both files appear, or neither does. */
static int write_files(const struct matrix *m, const struct args *a, struct err *err)
{
    struct file_out platform = {0}, hosts = {0};
    int rc = file_begin(&platform, a->out, err);

    if (rc == 0 && a->hostfile)
        rc = file_begin(&hosts, a->hostfile, err);
    if (rc == 0)
        rc = simgrid_write(platform.stream, hosts.stream, m, &a->simgrid, err);
    if (rc == 0)
        rc = file_commit(&platform, err);
    if (rc == 0 && a->hostfile)
        rc = file_commit(&hosts, err);
    if (rc < 0) {
        file_abort(&platform);
        file_abort(&hosts);
    }
    return rc;
}

int cmd_export(int argc, char **argv)
{
    struct args a = {0};
    struct matrix m;
    struct err err;

    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    if (matrix_open(&m, a.file, a.fabric, a.racks, &err) < 0)
        return cmd_fail("export", &err);
    int rc = write_files(&m, &a, &err);
    matrix_free(&m);
    return rc < 0 ? cmd_fail("export", &err) : EXIT_GOOD;
}
