/* SPDX-License-Identifier: BSD-3-Clause */
/* show.c - railgauge show: tiers, pairs, collectives, findings and points of a matrix. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cmd/command.h"
#include "cmd/input.h"
#include "emit/plot/pair_map.h"
#include "emit/text/matrix_text.h"
#include "emit/text/term.h"
#include "topo/nccl/nccl_profile.h"

struct args {
    const struct section *section;
    size_t bytes;
    struct input_args in;
};

struct show {
    struct input in;
    const char *file;
    double bytes;
};

/* --- sections: each as text and as JSON (a new reference, NULL after an error) --- */

static int text_tiers(const struct show *s, struct err *err)
{
    (void)err;
    matrix_text_tiers(stdout, &s->in.m, s->bytes);
    return 0;
}

static json_t *json_tiers(const struct show *s, struct err *err)
{
    (void)err;
    return matrix_view_tiers(&s->in.m, s->bytes);
}

static const struct points *measured(const struct show *s)
{
    return s->in.has & INPUT_POINTS ? &s->in.p : NULL;
}

static int text_pairs(const struct show *s, struct err *err)
{
    struct pair_map ps;

    if (pair_map_init(&ps, &s->in.m, measured(s), err) < 0)
        return -1;
    pair_map_print(stdout, &ps, term_columns(stdout), term_colour(stdout));
    pair_map_free(&ps);
    return 0;
}

static json_t *json_pairs(const struct show *s, struct err *err)
{
    const int n = s->in.m.topo.endpoints;
    struct pair_map ps;

    if (n > PAIR_MAP_LIST_MAX) {
        err_usage(err,
                  "%d endpoints are too many pairs to list (at most %d); railgauge cost gives one",
                  n, PAIR_MAP_LIST_MAX);
        return NULL;
    }
    if (pair_map_init(&ps, &s->in.m, measured(s), err) < 0)
        return NULL;
    json_t *out = pair_map_json(&ps);
    pair_map_free(&ps);
    return out;
}

static int text_collectives(const struct show *s, struct err *err)
{
    (void)err;
    matrix_text_collectives(stdout, &s->in.m, s->bytes, false);
    return 0;
}

static json_t *json_collectives(const struct show *s, struct err *err)
{
    (void)err;
    return matrix_view_collectives(&s->in.m, s->bytes);
}

static int text_findings(const struct show *s, struct err *err)
{
    (void)err;
    matrix_text_findings(stdout, &s->in.m, 0);
    return 0;
}

static json_t *json_findings(const struct show *s, struct err *err)
{
    (void)err;
    return matrix_view_findings(&s->in.m);
}

static int text_points(const struct show *s, struct err *err)
{
    struct table t;

    (void)err;
    matrix_points(&t, &s->in.m);
    table_print(stdout, &t, 0);
    table_free(&t);
    return 0;
}

static json_t *json_points(const struct show *s, struct err *err)
{
    struct table t;

    (void)err;
    matrix_points(&t, &s->in.m);
    json_t *rows = json_incref(t.rows);
    table_free(&t);
    return rows;
}

/* What NCCL built is in the campaign's topology.json, or in a topology.json by itself. */
static int without_nccl(const struct show *s, struct err *err)
{
    return err_data(err,
                    "%s%s has nothing of NCCL: a campaign on transport nccl, or "
                    "railgauge-probe discover --nccl, writes it",
                    s->file, s->in.dir ? "/topology.json" : "");
}

static int text_nccl(const struct show *s, struct err *err)
{
    struct nccl_profile p = {.lines = 0};
    int rc =
        s->in.t.nccl ? nccl_profile_read(&p, s->in.t.nccl, s->file, err) : without_nccl(s, err);

    if (rc == 0)
        nccl_print(&p, &s->in.t, stdout);
    nccl_profile_free(&p);
    return rc;
}

static json_t *json_nccl(const struct show *s, struct err *err)
{
    if (!s->in.t.nccl)
        without_nccl(s, err);
    return json_incref(s->in.t.nccl);
}

static int text_usual(const struct show *s, struct err *err)
{
    matrix_text_head(stdout, &s->in.m);
    text_tiers(s, err);
    putchar('\n');
    return text_findings(s, err);
}

static json_t *json_usual(const struct show *s, struct err *err)
{
    (void)err;
    return matrix_view(&s->in.m, s->bytes);
}

static const struct input_ask of_matrix = {INPUT_MATRIX, INPUT_MATRIX, INPUT_POINTS},
                              of_topology = {INPUT_TOPO, INPUT_TOPO, 0};

static const struct section {
    const char *name;
    int (*text)(const struct show *s, struct err *err);
    json_t *(*json)(const struct show *s, struct err *err);
    const struct input_ask *ask;
} usual = {"", text_usual, json_usual, &of_matrix},
  sections[] = {{"tiers", text_tiers, json_tiers, &of_matrix},
                {"pairs", text_pairs, json_pairs, &of_matrix},
                {"collectives", text_collectives, json_collectives, &of_matrix},
                {"findings", text_findings, json_findings, &of_matrix},
                {"points", text_points, json_points, &of_matrix},
                {"nccl", text_nccl, json_nccl, &of_topology}};

static int take_section(void *args, char *name, struct err *err)
{
    struct args *a = args;

    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
        if (!strcmp(name, sections[i].name)) {
            a->section = &sections[i];
            return 0;
        }
    return err_usage(err, "\"%s\" is not one of: tiers pairs collectives findings points nccl",
                     name);
}

static const struct opt options[] = {
    {"bytes", 0, "SIZE", "also, or only, at this message size: 64K, 16M",
     OPT_INTO(struct args, bytes)},
    {0},
};

static const struct opt words[] = {
    {"matrix", .help = "give a matrix file or a campaign directory",
     OPT_INTO(struct args, in.file)},
    {"section", OPT_CALL(take_section)},
    {0},
};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .set = {INPUT_JSON(struct args, in)},
    .usage = "MATRIX|DIR [tiers|pairs|collectives|findings|points|nccl]",
    .doc =
        "Print what a cost matrix says; without a section the tiers, slow parts and findings."
        "\vOf a campaign directory also the measured pairs are shown, else those of the matrix.\n\n"
        "  railgauge show campaign\n"
        "  railgauge show campaign pairs\n"
        "  railgauge show matrix.json tiers --bytes 1M\n"
        "  railgauge show matrix.json findings --json\n"
        "  railgauge show campaign nccl\n\n" EXIT_CODES("", ""),
};

static int print(const struct show *s, const struct section *what, bool as_json, struct err *err)
{
    if (!as_json)
        return what->text(s, err);
    json_t *json = what->json(s, err);
    if (!json)
        return -1;
    json_print(stdout, json);
    json_decref(json);
    return 0;
}

int cmd_show(int argc, char **argv, struct err *err)
{
    struct args a = {.section = &usual};
    struct show s;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    s = (struct show){.file = a.in.file, .bytes = (double)a.bytes};
    input_init(&s.in);
    int rc = input_open(&s.in, &a.in, a.section->ask, err);
    if (rc == 0)
        rc = print(&s, a.section, a.in.json, err);
    input_free(&s.in);
    return rc;
}
