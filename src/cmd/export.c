/* SPDX-License-Identifier: BSD-3-Clause */
/* export.c - railgauge export: write the matrix in formats of other tools. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/judged_impl.h"
#include "export/export.h"
#include "topo/groups.h"

struct args {
    const struct exporter *format;
    const char *out, *second;
    bool list;
    struct judged_args of;
    struct export_ask ask;
};

static int take_format(void *args, char *name, struct err *err)
{
    struct args *a = args;

    return (a->format = exporter_find(name, err)) ? 0 : -1;
}

static int take_per(void *args, char *what, struct err *err)
{
    struct args *a = args;

    a->ask.endpoints = !strcmp(what, "endpoint");
    if (a->ask.endpoints || !strcmp(what, "host"))
        return 0;
    return err_usage(err, "host or endpoint, not \"%s\"", what);
}

static int take_bytes(void *args, char *text, struct err *err)
{
    struct args *a = args;
    size_t bytes;

    if (units_bytes(&bytes, text, err) < 0)
        return -1;
    a->ask.bytes = (double)bytes;
    return bytes ? 0 : err_usage(err, "0 bytes have no cost");
}

static int take_quantity(void *args, char *name, struct err *err)
{
    struct args *a = args;

    for (int q = QUANTITY_BANDWIDTH; q < QUANTITY_COUNT; q++)
        if (!strcmp(name, quantity_name[q])) {
            a->ask.quantity = (enum quantity)q;
            return 0;
        }
    return err_usage(err, "bandwidth, latency or time, not \"%s\"", name);
}

static void each_format(name_taker *take, void *to)
{
    for (int i = 0; i < exporter_count; i++)
        take(to, exporters[i].name);
}

static const struct opt options[] = {
    {"format", 'f', "NAME", "format, one of --list-formats", OPT_CALL(take_format),
     .values = each_format},
    {"list-formats", 0, NULL, "print the formats", OPT_INTO(struct args, list)},
    {"output", 'o', "FILE", "file to write (default -: standard output)",
     OPT_INTO(struct args, out)},
    {"second", 0, "FILE", "second file of formats that have two", OPT_INTO(struct args, second)},
    {"hostfile", 0, "FILE", .flags = OPTION_ALIAS},
    {"hosts-per-rack", 0, "N", "use only the first N hosts of each rack",
     OPT_INT(struct args, ask.hosts_per_rack, 1, 1 << 20)},
    {"per", 0, "host|endpoint", "node of the format: host or endpoint (default host)",
     OPT_CALL(take_per)},
    {"bytes", 0, "SIZE", "message size of the one number per pair (default 64M)",
     OPT_CALL(take_bytes)},
    {"quantity", 0, "NAME", "bandwidth, latency or time, for formats that hold one of them",
     OPT_CALL(take_quantity)},
    {"release", 0, "VERSION", "version of the program that reads the file: 24.11 for Slurm",
     OPT_INTO(struct args, ask.release)},
    {"name", 0, "NAME", "name of the exported object", OPT_INTO(struct args, ask.name)},
    {"partial", 0, NULL,
     "leave out hosts without a known place, and name them (default: exit with 2)",
     OPT_INTO(struct args, ask.partial)},
    JUDGED_AGAINST(struct args, of),
    JUDGED_LIMITS(struct args, of),
    {0},
};

static const struct opt words[] = {{"file", OPT_INTO(struct args, of.in.file)}, {0}};

static int need_format(void *args, struct err *err)
{
    const struct args *a = args;

    if (a->list)
        return 0;
    if (!a->format)
        return err_usage(err, "--format is needed; --list-formats prints them");
    if (!a->of.in.fabric && !a->of.in.file)
        return err_usage(err, "give one of MATRIX and --fabric");
    if (a->second && !a->format->second)
        return err_usage(err, "%s is one file: --second has no use", a->format->name);
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = need_format,
    .set = {INPUT_PRESET(struct args, of.in)},
    .usage = "[MATRIX|CAMPAIGN]",
    .doc = "Write a cost matrix, or a preset, in the format of another tool.\vCAMPAIGN is "
           "a directory of railgauge run. Formats that need only places also take a "
           "topology.json. A SimGrid platform runs unchanged MPI programs on the "
           "described machine.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("List the formats", "railgauge export --list-formats"),
            OPT_EXAMPLE("Write the bandwidth of every pair as a NumPy array",
                        "railgauge export --format npy --per endpoint campaign -o bandwidth.npy"),
            OPT_EXAMPLE("Write a network for ASTRA-sim",
                        "railgauge export --format astra-sim --fabric gb300-nvl72 \\\n"
                        "      --racks 8 -o network.yml"),
            OPT_EXAMPLE("Write a platform for SimGrid",
                        "railgauge export --format simgrid matrix.json \\\n"
                        "      -o platform.xml --hostfile simgrid-hosts"),
            {0}},
    .exits =
        EXIT_CODES("2 hosts would be left out (not with --partial), or nothing groups them, ", ""),
};

static int list_formats(void)
{
    for (int i = 0; i < exporter_count; i++)
        printf("%-18s %s%s%s\n", exporters[i].name, exporters[i].help,
               exporters[i].second ? "; --second: " : "",
               exporters[i].second ? exporters[i].second : "");
    return EXIT_GOOD;
}

/* Write both files or none. */
static int write_files(const struct judged *j, const struct args *a, struct err *err)
{
    struct file_out out = {0}, second = {0};
    bool text = !a->out || !strcmp(a->out, "-");
    int rc = text ? 0 : file_begin(&out, a->out, err);

    if (rc == 0 && a->second)
        rc = file_begin(&second, a->second, err);
    if (rc == 0)
        rc = a->format->write(
            &(struct export_run){.out = text ? stdout : out.stream,
                                 .second = second.stream,
                                 .m = &j->in.m,
                                 .ask = &a->ask,
                                 .topo = &j->in.t,
                                 .points = j->in.has & INPUT_POINTS ? &j->in.p : NULL,
                                 .accept = &j->accept,
                                 .parts = &j->parts,
                                 .reference = j->against ? &j->reference : NULL,
                                 .against = j->against},
            err);
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

static void keep_wide(struct topo *to, const struct topo *from)
{
    for (int i = 0; i < from->declared_groups; i++)
        if (from->declared_group[i].above)
            group_copy(to, &from->declared_group[i]);
}

/* A matrix, or that of a campaign directory; also a topology if the format needs only
 * coordinates. */
static int open_input(struct input *in, struct args *a, struct err *err)
{
    const enum export_needs needs = a->format->needs;
    const bool places = needs == EXPORT_PLACES;
    const struct input_ask ask = {.file = INPUT_MATRIX | (places ? INPUT_TOPO : 0),
                                  .need = needs == EXPORT_CAMPAIGN ? 0
                                          : needs == EXPORT_POINTS ? INPUT_MATRIX | INPUT_POINTS
                                                                   : INPUT_MATRIX,
                                  .may = places || needs == EXPORT_POINTS ? INPUT_TOPO : 0};

    if (input_open(in, &a->of.in, &ask, err) < 0)
        return -1;
    if (needs == EXPORT_POINTS && !(in->has & INPUT_POINTS))
        return err_usage(err,
                         "%s is made from what was measured: give a campaign's directory, not %s",
                         a->format->name, a->of.in.fabric ? "a preset" : a->of.in.file);
    a->ask.campaign = in->dir ? a->of.in.file : NULL;
    if (in->has == INPUT_TOPO)
        export_wrap(&in->m, &in->t);
    else if (in->dir && in->has & INPUT_TOPO) /* a matrix lacks groups wider than spines */
        keep_wide(&in->m.topo, &in->t);
    return 0;
}

/* Warn of data that the format cannot express. */
static void warn(const struct matrix *m, const struct args *a)
{
    char part[256];

    if (*a->ask.left)
        log_warn("%s", *a->ask.left);
    if (a->format->needs != EXPORT_TIERS || m->exceptions == 0)
        return;
    log_warn("%s has no place for slow parts: %d of the matrix are left out, for instance %s",
             a->format->name, m->exceptions, matrix_part(m, &m->exception[0], part));
}

static int cmd_export(int argc, char **argv, struct err *err)
{
    char *left = NULL;
    struct args a = {.ask.left = &left};
    struct judged j;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (a.list)
        return list_formats();
    judged_init(&j);
    int rc = a.format->needs == EXPORT_VERDICT ? judged_open(&j, &a.of, err)
                                               : open_input(&j.in, &a, err);
    if (rc == 0)
        rc = write_files(&j, &a, err);
    if (rc == 0)
        warn(&j.in.m, &a);
    judged_free(&j);
    free(left);
    return rc;
}

const struct command export_command = {&command, cmd_export};
