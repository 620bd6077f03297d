/* SPDX-License-Identifier: BSD-3-Clause */
/* declared.c - railgauge declared: structure declared by sources, compared with measurements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "verdict/declared.h"

struct args {
    const char *topology;
    struct input_args in;
};

static const struct opt options[] = {
    {"topology", 0, "FILE", "also compare what this topology.json declares, by host name",
     OPT_INTO(struct args, topology)},
    INPUT_JSON(struct args, in.json),
    INPUT_QUIET(struct args, in.quiet),
    {0},
};

static const struct opt words[] = {{"file", OPT_INTO(struct args, in.file)}, {0}};

static int need_source(void *args, struct err *err)
{
    const struct args *a = args;

    if (a->in.file || a->topology || a->in.sources.count)
        return 0;
    return err_usage(err, "give a campaign directory or a matrix, or files that declare");
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = need_source,
    .set = {INPUT_SOURCES(struct args, in)},
    .usage = "[MATRIX|DIR]",
    .doc = "Compare the groups that each source declares with the measured ones, and the "
           "sources with each other; list the hosts that differ.\vFrom a campaign "
           "directory the measured pairs are clustered again, without the declared "
           "groups. From a matrix alone only groups found by measuring count.",
    .examples =
        (const struct opt_example[]){
            OPT_ELSEWHERE("Compare Slurm's topology with a campaign",
                          "railgauge declared campaign --slurm topology.conf"),
            OPT_EXAMPLE("Compare two topologies, as JSON",
                        "railgauge declared campaign --topology topology.json --json"),
            OPT_ELSEWHERE("Compare two sources without a measurement",
                          "railgauge declared --slurm topology.conf --labels nodes.json"),
            {0}},
    .exits = EXIT_CODES("1 they differ, 2 there is nothing to compare, ", ", 78 configuration"),
};

/* For a directory the points are clustered; for a matrix alone, the results of the fit are used. */
static const struct input_ask ask = {INPUT_MATRIX, INPUT_TOPO | INPUT_POINTS, 0};

/* Collect declarations of files separately, so that no coordinate is filled in from them. */
static int collect(struct declared *d, struct input *in, const struct args *a, struct err *err)
{
    struct topo more, base;
    int rc = input_open(in, &a->in, &ask, err);

    topo_init(&more);
    topo_copy(&base, &in->t);
    if (rc == 0)
        rc = input_sources_read(&a->in.sources, &base, err);
    if (rc == 0 && a->topology)
        rc = topo_load(&more, a->topology, err);
    if (rc == 0 && !in->has) {
        for (int h = 0; h < more.hosts; h++)
            topo_add_host(&base, more.host[h].name);
        groups_add_hosts(&base);
    }
    if (rc == 0) {
        declared_init(d, &base);
        if (a->topology)
            declared_add(d, &more);
        if (in->has & INPUT_POINTS)
            declared_points(d, &in->p);
        else if (in->has)
            declared_measured(d, &in->t, a->in.file);
        declared_compare(d);
    }
    topo_free(&base);
    topo_free(&more);
    return rc;
}

static void print_measured(const struct declared *d, const struct grouping *g)
{
    char *title = grouping_title(g);
    int lost = 0;

    for (int h = 0; h < d->topo.hosts; h++)
        lost += g->of[h] < 0;
    printf("%s: %d group%s", title, g->groups, units_s(g->groups));
    if (lost)
        printf(", %d host%s that measuring cannot place", lost, lost == 1 ? "" : "s");
    putchar('\n');
    free(title);
}

/* A file with several levels lists its unknown hosts once. */
static bool same_file(const struct grouping *g, const struct grouping *before, int i)
{
    return i > 0 && g->source == before->source && !strcmp(g->origin, before->origin);
}

static void print_text(const struct declared *d)
{
    if (d->unmeasured) {
        table_wrap(stdout, 2, "nothing measured to compare with: %s", d->unmeasured);
    }
    for (int i = 0; i < d->measured; i++)
        print_measured(d, &d->grouping[i]);
    for (int i = d->measured; i < d->groupings; i++)
        if (d->grouping[i].strangers && !same_file(&d->grouping[i], &d->grouping[i - (i > 0)], i))
            printf("%s %s names hosts that are not here (%d), the first is %s\n",
                   source_name[d->grouping[i].source], d->grouping[i].origin,
                   d->grouping[i].strangers, d->grouping[i].stranger);
    for (int i = 0; i < d->comparisons; i++) {
        const struct comparison *c = &d->comparison[i];
        table_wrap(stdout, 8, "%s  %s", c->differ ? "DIFFER" : "agree ", c->text);
        if (c->differ) {
            char *diff = declared_diff(d, c);
            fputs(diff, stdout);
            free(diff);
        }
    }
    if (!d->comparisons)
        puts("nothing to compare: no two groupings of these hosts");
}

static int cmd_declared(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct input in;
    struct declared d = {0};

    input_init(&in);
    topo_init(&d.topo);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = collect(&d, &in, &a, err);
    if (rc == 0 && a.in.json && !a.in.quiet)
        rc = json_answer(declared_json(&d), NULL, true, err);
    else if (rc == 0 && !a.in.quiet)
        print_text(&d);
    int code = rc == 0 ? declared_code(&d) : EXIT_USAGE;
    declared_free(&d);
    input_free(&in);
    input_args_free(&a.in);
    return rc < 0 ? -1 : code;
}

const struct command declared_command = {&command, cmd_declared};
