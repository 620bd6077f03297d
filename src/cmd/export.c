/* export.c - railgauge export: the matrix in formats of other tools. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/input.h"
#include "emit/export.h"

enum { PER_RACK = 0x400, PER, SECOND, BYTES, QUANTITY, RELEASE, NAME, LIST };

struct args {
    const struct exporter *format;
    const char *out, *second;
    bool list;
    struct input_args in;
    struct export_ask ask;
};

static const struct argp_option options[] = {
    {"format", 'f', "NAME", 0, "one of --list-formats", 0},
    {"list-formats", LIST, NULL, 0, "print the formats", 0},
    {"output", 'o', "FILE", 0, "write here (- or nothing: to standard output)", 0},
    {"second", SECOND, "FILE", 0, "the second file of formats that have one", 0},
    {"hostfile", SECOND, "FILE", OPTION_ALIAS, NULL, 0},
    {"hosts-per-rack", PER_RACK, "N", 0, "only the first N hosts of each rack", 0},
    {"per", PER, "host|endpoint", 0, "what a node of the format is (default host)", 0},
    {"bytes", BYTES, "SIZE", 0, "size at which one number per pair is taken (default 64M)", 0},
    {"quantity", QUANTITY, "NAME", 0, "bandwidth, latency or time, for formats that hold one", 0},
    {"release", RELEASE, "VERSION", 0, "of the program that will read it: 24.11 for Slurm", 0},
    {"name", NAME, "NAME", 0, "of the object that is made", 0},
    {0},
};

static error_t parse_end(struct args *a, struct argp_state *state)
{
    if (a->list)
        return 0;
    if (!a->format)
        argp_error(state, "--format is needed; --list-formats prints them");
    if (!a->in.fabric && !a->in.file)
        argp_error(state, "give one of MATRIX and --fabric");
    if (a->second && !a->format->second)
        argp_error(state, "%s is one file: --second has no use", a->format->name);
    return 0;
}

static int parse_number(struct args *a, int key, const char *arg, struct err *err)
{
    size_t bytes;

    if (key == PER_RACK)
        return units_int(&a->ask.hosts_per_rack, arg, 1, 1 << 20, err);
    if (units_bytes(&bytes, arg, err) < 0)
        return -1;
    a->ask.bytes = (double)bytes;
    return bytes ? 0 : err_usage(err, "0 bytes have no cost");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const quantities[] = {"bandwidth", "latency", "time"};
    struct args *a = state->input;
    struct err err = {0, ""};

    switch (key) {
    case 'f':
        if (!(a->format = exporter_find(arg, &err)))
            argp_error(state, "%s", err.text);
        break;
    case LIST:
        a->list = true;
        break;
    case 'o':
        a->out = arg;
        break;
    case SECOND:
        a->second = arg;
        break;
    case PER_RACK:
    case BYTES:
        if (parse_number(a, key, arg, &err) < 0)
            argp_error(state, "--%s: %s", key == PER_RACK ? "hosts-per-rack" : "bytes", err.text);
        break;
    case PER:
        if (strcmp(arg, "host") != 0 && strcmp(arg, "endpoint") != 0)
            argp_error(state, "--per is host or endpoint, not \"%s\"", arg);
        a->ask.endpoints = !strcmp(arg, "endpoint");
        break;
    case QUANTITY:
        for (size_t i = 0; i < 3; i++)
            if (!strcmp(arg, quantities[i]))
                a->ask.quantity = quantities[i];
        if (!a->ask.quantity)
            argp_error(state, "--quantity is bandwidth, latency or time, not \"%s\"", arg);
        break;
    case RELEASE:
        a->ask.release = arg;
        break;
    case NAME:
        a->ask.name = arg;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->in;
        break;
    case ARGP_KEY_END:
        return parse_end(a, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[MATRIX|CAMPAIGN]",
    .doc = "Write a cost matrix, or a preset, in the format of another tool."
           "\vCAMPAIGN is a folder of railgauge run.  Formats that need places only also take a "
           "topology.json.  A SimGrid platform runs unchanged MPI programs on the described "
           "machine:\n\n"
           "  railgauge export --list-formats\n"
           "  railgauge export --format npy --per endpoint campaign -o bandwidth.npy\n"
           "  railgauge export --format astra-sim --fabric gb300-nvl72 --racks 8 -o network.yml\n"
           "  railgauge export --format simgrid matrix.json -o platform.xml --hostfile hosts\n"
           "  railgauge export --format simgrid --fabric gb200-nvl72 --racks 4 -o platform.xml "
           "--hostfile hosts\n"
           "  smpicc prog.c -o prog && smpirun -np 72 -platform platform.xml -hostfile hosts "
           "--cfg=network/model:CM02 --cfg=network/crosstraffic:0 "
           "--cfg=smpi/simulate-computation:false ./prog\n",
};

static int list_formats(void)
{
    for (int i = 0; i < exporter_count; i++)
        printf("%-18s %s%s%s\n", exporters[i].name, exporters[i].help,
               exporters[i].second ? "; --second: " : "",
               exporters[i].second ? exporters[i].second : "");
    return EXIT_GOOD;
}

/* Both files appear, or neither does. */
static int write_files(const struct matrix *m, const struct args *a, struct err *err)
{
    struct file_out out = {0}, second = {0};
    bool text = !a->out || !strcmp(a->out, "-");
    int rc = text ? 0 : file_begin(&out, a->out, err);

    if (rc == 0 && a->second)
        rc = file_begin(&second, a->second, err);
    if (rc == 0)
        rc = a->format->write(text ? stdout : out.stream, second.stream, m, &a->ask, err);
    if (rc == 0 && text && (fflush(stdout) || ferror(stdout)))
        rc = err_io(err, "standard output: %s", strerror(errno));
    if (rc == 0 && !text)
        rc = file_commit(&out, err);
    if (rc == 0 && a->second)
        rc = file_commit(&second, err);
    if (rc < 0) {
        file_abort(&out);
        file_abort(&second);
    }
    return rc;
}

/* A matrix, or the one of a campaign's folder; where places are enough, a topology as well. */
static int open_input(struct input *in, struct args *a, struct err *err)
{
    const bool places = a->format->needs == EXPORT_PLACES;
    const struct input_ask ask = {.file = INPUT_MATRIX | (places ? INPUT_TOPO : 0),
                                  .need = a->format->needs == EXPORT_CAMPAIGN ? 0 : INPUT_MATRIX};

    if (input_open(in, &a->in, &ask, err) < 0)
        return -1;
    a->ask.campaign = in->dir ? a->in.file : NULL;
    if (in->has == INPUT_TOPO)
        export_wrap(&in->m, &in->t);
    return 0;
}

/* What the format cannot say is said here. */
static void warn_slow_parts(const struct matrix *m, const struct args *a)
{
    char part[256];

    if (a->format->needs != EXPORT_TIERS || m->exceptions == 0)
        return;
    log_setup("railgauge export", LOG_INFO);
    log_warn("%s has no place for slow parts: %d of the matrix are left out, for instance %s",
             a->format->name, m->exceptions, matrix_part(m, &m->exception[0], part));
}

int cmd_export(int argc, char **argv)
{
    struct args a = {0};
    struct input in;
    struct err err;

    if (input_parse(&argp, INPUT_FILE | INPUT_PRESET, argc, argv, &a))
        return EXIT_USAGE;
    if (a.list)
        return list_formats();
    input_init(&in);
    int rc = open_input(&in, &a, &err);
    if (rc == 0)
        rc = write_files(&in.m, &a, &err);
    if (rc == 0)
        warn_slow_parts(&in.m, &a);
    input_free(&in);
    return rc < 0 ? cmd_fail("export", &err) : EXIT_GOOD;
}
