/* SPDX-License-Identifier: BSD-3-Clause */
/* discover.c - railgauge discover: describe this machine, a preset or a recorded machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/campaign/launch_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "measure/transports/nccl_path.h"
#include "report/text/report.h"
#include "topo/fabrics/fabric.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/topo.h"
#include "transport/sim/sim_world.h"

struct args {
    const char *out, *root, *node_map;
    int per_host;
    bool list, worlds, paths, nccl, libraries;
    struct discover_report report;
    struct input_args in;
};

static const struct opt options[] = {
    {"output", 'o', "FILE",
     "file to write (default: topology.json for this machine, none for others)",
     OPT_INTO(struct args, out)},
    {"quiet", 'q', NULL, "print nothing", OPT_INTO(struct args, report.quiet)},
    {"json", 0, NULL, "print each host's NVLink verdict, or the --libraries, as JSON",
     OPT_INTO(struct args, report.json)},
    {"check", 0, NULL, "exit with 1 if NVLink is bad on a host, with 2 if nothing is known of GPUs",
     OPT_INTO(struct args, report.check)},
    {"blind", 0, NULL, "show only host names of the preset, as on a machine without labels",
     OPT_INTO(struct args, in.blind)},
    {"list-fabrics", 0, NULL, "print the presets, with the source of each number",
     OPT_INTO(struct args, list)},
    {"list-worlds", 0, NULL,
     "print the worlds of simulated fabrics, with the source of each number",
     OPT_INTO(struct args, worlds)},
    {"list-paths", 0, NULL, "print the paths that probe --path can ask of NCCL",
     OPT_INTO(struct args, paths)},
    {"libraries", 0, NULL,
     "print the libraries found here, their purpose, and what helps for the others",
     OPT_INTO(struct args, libraries)},
    {"nccl", 0, NULL, "also read what NCCL builds on the GPUs of this machine",
     OPT_INTO(struct args, nccl)},
    {"gpus-per-host", 0, "N", "GPUs of hosts of which only the name is known",
     OPT_INT(struct args, per_host, 1, 1024)},
    {"root", 0, "DIR", "read a recorded machine below DIR (its /sys and /proc)",
     OPT_INTO(struct args, root)},
    HOST_MAP_ROW(OPT_INTO(struct args, node_map)),
    {0},
};

static const struct opt words[] = {{"file", OPT_INTO(struct args, in.file)}, {0}};

static int one_machine(void *args, struct err *err)
{
    const struct args *a = args;
    const struct input_args *in = &a->in;
    const bool other = a->root || a->list || a->worlds || a->paths;

    if (in->blind && !in->fabric)
        return err_usage(err, "--blind needs --fabric");
    if ((in->fabric != NULL) + (in->file != NULL) + (a->root != NULL) + a->list + a->worlds +
            a->paths >
        1)
        return err_usage(err, "choose one of FILE, --fabric, --root, --list-fabrics, --list-worlds "
                              "and --list-paths");
    if (a->per_host && !in->sources.count)
        return err_usage(err, "--gpus-per-host needs a file that names hosts");
    if (in->sources.count && (other || a->nccl))
        return err_usage(err, "what others say is added to FILE or --fabric, or stands alone");
    if (a->nccl && (other || in->fabric || in->file))
        return err_usage(err, "--nccl looks at this machine, not at a file or a preset");
    if (a->libraries && (other || in->fabric || in->file || in->sources.count || a->nccl || a->out))
        return err_usage(err, "--libraries looks at this machine alone, and writes no file");
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = one_machine,
    .set = {INPUT_PRESET(struct args, in), INPUT_SOURCES(struct args, in)},
    .usage = "[FILE]",
    .doc = "Print this machine as far as it is visible, and say what is not visible and "
           "why.\vFiles of others are added to FILE or --fabric, or make a topology "
           "alone. Without any of them this host is read. To read all hosts of a job "
           "together, start railgauge-probe under its launcher.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Write topology.json of this machine",
                        "railgauge discover -o topology.json"),
            OPT_EXAMPLE("Print the libraries that are found, and what helps for the others",
                        "railgauge discover --libraries"),
            OPT_EXAMPLE("Check NVLink in a script",
                        "railgauge discover topology.json --check --quiet && echo NVLink is good"),
            OPT_EXAMPLE("Print a preset", "railgauge discover --fabric gb200-nvl72 --racks 8"),
            OPT_ELSEWHERE("Read two hosts with 8 GPUs each",
                          "mpirun -H node1:8,node2:8 railgauge-probe discover -o topology.json"),
            OPT_ELSEWHERE(
                "Read also what NCCL builds",
                "mpirun -H node1:8,node2:8 railgauge-probe discover --nccl -o topology.json"),
            {0}},
    .exits =
        EXIT_CODES("1 NVLink is bad on a host (--check), 2 nothing is known of GPUs (--check), ",
                   ", 78 configuration"),
};

/* Sources of a preset in order of first mention. */
struct sources {
    const char **text;
    int count;
};

static int source_number(struct sources *s, const char *text)
{
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->text[i], text))
            return i + 1;
    MEM_PUSH(s->text, s->count) = text;
    return s->count;
}

static void print_number(struct sources *s, const char *what, const char *value,
                         const struct fabric_number *n)
{
    if (n->value > 0)
        printf("  %-26s %-12s %s (%d)\n", what, value, fabric_kind_name[n->kind],
               source_number(s, n->source));
}

static void print_fabric(const char *name, const struct fabric *f)
{
    struct sources sources = {NULL, 0};
    char what[80], text[UNITS_TEXT];

    printf("%-22s %s\n", name, f->title);
    for (int i = 0; i < f->tiers; i++) {
        const struct fabric_tier *t = &f->tier[i];
        snprintf(what, sizeof(what), "%s latency", t->rule.name);
        print_number(&sources, what, units_seconds_text(text, t->alpha.value), &t->alpha);
        snprintf(what, sizeof(what), "%s bandwidth", t->rule.name);
        print_number(&sources, what, units_rate_text(text, t->Bps.value), &t->Bps);
    }
    for (int i = 0; i < f->collectives; i++) {
        const struct fabric_collective *c = &f->collective[i];
        snprintf(what, sizeof(what), "%s, %d ranks", op_name(c->op), c->ranks);
        print_number(&sources, what, units_rate_text(text, c->busbw.value), &c->busbw);
    }
    for (int i = 0; i < f->gpu.peaks; i++) {
        snprintf(what, sizeof(what), "%s of a GPU", f->gpu.peak[i].dtype);
        snprintf(text, sizeof(text), "%.4g TFLOP/s", f->gpu.peak[i].flops.value / 1e12);
        print_number(&sources, what, text, &f->gpu.peak[i].flops);
    }
    for (int i = 0; i < sources.count; i++) {
        table_wrap(stdout, 6, "  (%d) %s", i + 1, sources.text[i]);
    }
    free(sources.text);
}

static int list_fabrics(struct err *err)
{
    char **names;
    int count, rc = 0;

    if (fabric_list(&names, &count, err) < 0)
        return -1;
    for (int i = 0; i < count && rc == 0; i++) {
        struct fabric f;
        rc = fabric_load(&f, names[i], err);
        if (rc == 0)
            print_fabric(names[i], &f);
        fabric_free(&f);
        if (rc == 0 && i + 1 < count)
            putchar('\n');
    }
    hostlist_free(names, count);
    return rc;
}

static int list_worlds(struct err *err)
{
    char *text = sim_world_list(err);

    if (!text)
        return -1;
    fputs(text, stdout);
    free(text);
    return 0;
}

/* Add GPUs to hosts known from declarations only. */
static void add_gpus(struct topo *t, int per_host)
{
    for (int h = 0; h < t->hosts; h++)
        for (int g = 0; t->host[h].endpoints == g && g < per_host; g++) {
            int id = topo_add_endpoint(t, h, ENDPOINT_GPU); /* moves the array */
            t->endpoint[id].source[LEVEL_HOST] = SOURCE_USER;
        }
}

static int no_host(const struct topo *t, struct err *err)
{
    int hcas = t->net ? net_count(t->net, NET_HCA) : 0;

    if (hcas)
        return err_data(err,
                        "no host: %d adapter%s with no host's name; give the topology.json of the "
                        "hosts, whose GUIDs tell them, as FILE beside it",
                        hcas, units_s(hcas));
    return err_data(err, "no host in what was given");
}

/* Add declarations of others: to FILE or a preset, or alone. */
static int add_sources(struct topo *t, const struct args *a, struct err *err)
{
    if (input_sources_read(&a->in.sources, t, err) < 0)
        return -1;
    if (!a->in.file && !a->in.fabric)
        groups_add_hosts(t);
    if (!t->hosts)
        return no_host(t, err);
    add_gpus(t, a->per_host);
    sources_done(t);
    if (!t->tiers)
        topo_default_tiers(t);
    return 0;
}

static const struct input_ask ask = {INPUT_TOPO, INPUT_TOPO, 0};

/* This machine is read by the MPI program, which has hwloc; it also runs without a launcher. */
static int exec_probe(const struct args *a, struct err *err)
{
    struct words w = {NULL, 0};

    words_add(&w, "discover");
    if (a->report.quiet)
        words_add(&w, "--quiet");
    if (a->report.json)
        words_add(&w, "--json");
    if (a->report.check)
        words_add(&w, "--check");
    if (a->out)
        words_add(&w, "--output=%s", a->out);
    if (a->root)
        words_add(&w, "--root=%s", a->root);
    if (a->node_map)
        words_add(&w, "--node-map=%s", a->node_map);
    if (a->nccl)
        words_add(&w, "--nccl");
    int rc = launch_exec(&w, err);
    words_free(&w);
    return rc;
}

static int list_libraries(bool json, struct err *err)
{
    struct err why = {0, ""};
    char *probe = launch_program(&why);
    int rc = libraries_report(stdout, probe, why.text, json, err);

    free(probe);
    return rc;
}

static int cmd_discover(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct input in;

    input_init(&in);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (a.paths) {
        nccl_path_print(stdout);
        return EXIT_GOOD;
    }
    if (a.libraries) {
        int rc = list_libraries(a.report.json, err);
        return rc < 0 ? rc : EXIT_GOOD;
    }
    bool given = a.in.fabric || a.in.file || a.in.sources.count;
    int rc = a.list     ? list_fabrics(err)
             : a.worlds ? list_worlds(err)
             : !given   ? exec_probe(&a, err)
             : a.node_map && host_map(NULL, (char *)a.node_map, err) < 0
                 ? -1
                 : input_open(&in, &a.in, &ask, err);
    if (rc == 0 && a.in.sources.count)
        rc = add_sources(&in.t, &a, err);
    if (rc == 0 && a.out)
        rc = topo_save(&in.t, a.out, err);
    if (rc == 0 && !a.list && !a.worlds)
        rc = discover_report(stdout, &in.t, &a.report, err);
    input_free(&in);
    input_args_free(&a.in);
    return rc;
}

const struct command discover_command = {&command, cmd_discover};
