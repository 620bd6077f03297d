/* SPDX-License-Identifier: BSD-3-Clause */
/* show.c - railgauge show: tiers, pairs, collectives, findings, parts and points of a matrix. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/table.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/plot/pair_map.h"
#include "report/text/report.h"
#include "topo/nccl_profile.h"
#include "verdict/parts.h"

struct args {
    const struct section *section;
    size_t bytes;
    struct input_args in;
};

struct show {
    struct input in;
    struct input_below below;
    const char *file;
    double bytes;
};

/* --- sections: each prints to `out` or, if NULL, sets *json to a new reference --- */

static int tiers(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    (void)err;
    *json = matrix_report_tiers(out, &s->in.m, s->bytes);
    return 0;
}

static int collectives(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    (void)err;
    *json = matrix_report_collectives(out, &s->in.m, s->bytes, false);
    return 0;
}

static int findings(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    (void)err;
    if (out) {
        matrix_report_parts(out, &s->in.m, 0, "", "");
        fputc('\n', out);
    }
    *json = matrix_report_findings(out, &s->in.m, 0);
    return 0;
}

static int parts(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    const struct parts_input in = {.m = &s->in.m,
                                   .topo = &s->in.t,
                                   .points = s->in.has & INPUT_POINTS ? &s->in.p : NULL,
                                   .below = s->below.is};
    struct parts list;
    int rc = parts_list(&list, &in, err);

    if (rc == 0)
        *json = out ? NULL : parts_json(&list);
    if (rc == 0 && out)
        parts_text(out, &list, 0, false, "");
    parts_free(&list);
    return rc;
}

static int points(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    (void)err;
    *json = matrix_report_points(out, &s->in.m);
    return 0;
}

static int most(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    (void)err;
    *json = matrix_report(out, &s->in.m, s->bytes);
    return 0;
}

static int pairs(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    const int n = s->in.m.topo.endpoints;
    struct pair_map ps;

    if (!out && n > PAIR_MAP_LIST_MAX)
        return err_usage(
            err, "%d endpoints are too many pairs to list (at most %d); railgauge cost gives one",
            n, PAIR_MAP_LIST_MAX);
    if (pair_map_init(&ps, &s->in.m, s->in.has & INPUT_POINTS ? &s->in.p : NULL, NULL, err) < 0)
        return -1;
    if (out)
        pair_map_print(out, &ps, table_width(out), log_colour(out));
    else
        *json = pair_map_json(&ps);
    pair_map_free(&ps);
    return 0;
}

/* Read what NCCL built, from the topology.json of the campaign or a single one. */
static int nccl_section(const struct show *s, FILE *out, json_t **json, struct err *err)
{
    struct nccl_profile p = {.lines = 0};
    int rc = 0;

    if (!s->in.t.nccl)
        return err_data(err,
                        "%s%s has nothing of NCCL: a campaign on transport nccl, or "
                        "railgauge-probe discover --nccl, writes it",
                        s->file, s->in.dir ? "/topology.json" : "");
    if (!out)
        *json = json_incref(s->in.t.nccl);
    else if ((rc = nccl_profile_read(&p, s->in.t.nccl, s->file, err)) == 0)
        nccl_print(&p, &s->in.t, out);
    nccl_profile_free(&p);
    return rc;
}

static const struct input_ask of_matrix = {INPUT_MATRIX, INPUT_MATRIX, INPUT_POINTS},
                              of_topology = {INPUT_TOPO, INPUT_TOPO, 0};

static const struct section {
    const char *name;
    int (*report)(const struct show *s, FILE *out, json_t **json, struct err *err);
    const struct input_ask *ask;
} usual = {"", most, &of_matrix}, sections[] = {{"tiers", tiers, &of_matrix},
                                                {"pairs", pairs, &of_matrix},
                                                {"collectives", collectives, &of_matrix},
                                                {"findings", findings, &of_matrix},
                                                {"parts", parts, &of_matrix},
                                                {"points", points, &of_matrix},
                                                {"nccl", nccl_section, &of_topology}};

static int take_section(void *args, char *name, struct err *err)
{
    struct near near = {.word = name};
    struct args *a = args;

    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
        if (!strcmp(name, sections[i].name)) {
            a->section = &sections[i];
            return 0;
        }
        near_try(&near, sections[i].name);
    }
    return err_usage(err,
                     "\"%s\" is not one of: tiers pairs collectives findings parts points nccl%s",
                     name, near_text(&near));
}

static void each_section(name_taker *take, void *to)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
        take(to, sections[i].name);
}

static const struct opt options[] = {
    {"bytes", 0, "SIZE", "message size to show besides the usual ones, or alone: 64K, 16M",
     OPT_INTO(struct args, bytes)},
    INPUT_BELOW(struct args, in.below),
    INPUT_JSON(struct args, in.json),
    {0},
};

static const struct opt words[] = {
    {"matrix", .help = "give a matrix file or a campaign directory",
     OPT_INTO(struct args, in.file)},
    {"section", OPT_CALL(take_section), .values = each_section},
    {0},
};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "MATRIX|DIR [tiers|pairs|collectives|findings|parts|points|nccl]",
    .doc = "Print a cost matrix; without SECTION its tiers, slow parts and "
           "findings.\vFrom a campaign directory, pairs are the measured ones; else those "
           "of the matrix.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Print tiers, slow parts and findings", "railgauge show campaign"),
            OPT_EXAMPLE("Print the time of every pair", "railgauge show campaign pairs"),
            OPT_EXAMPLE("Print tiers at one message size",
                        "railgauge show matrix.json tiers --bytes 1M"),
            OPT_EXAMPLE("Print findings for a program",
                        "railgauge show matrix.json findings --json"),
            {0}},
    .exits = EXIT_CODES("", ""),
};

static int cmd_show(int argc, char **argv, struct err *err)
{
    struct args a = {.section = &usual};
    struct show s;
    json_t *json = NULL;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    s = (struct show){.file = a.in.file, .bytes = (double)a.bytes};
    input_init(&s.in);
    input_below_init(&s.below);
    int rc = input_open(&s.in, &a.in, a.section->ask, err);
    if (rc == 0 && a.section->report == parts)
        rc = input_below_open(&s.below, &a.in, &s.in, err);
    if (rc == 0)
        rc = a.section->report(&s, a.in.json ? NULL : stdout, &json, err);
    if (rc == 0)
        rc = json_answer(json_framed("railgauge-show", a.section->name, json), NULL, json, err);
    input_below_free(&s.below);
    input_free(&s.in);
    return rc;
}

const struct command show_command = {&command, cmd_show};
