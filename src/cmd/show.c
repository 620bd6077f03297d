/* show.c - railgauge show: tiers, pairs, collectives, findings and points of a matrix. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cost/matrix.h"
#include "emit/matrix_text.h"
#include "emit/pairs.h"
#include "emit/term.h"
#include "topo/nccl_profile.h"

enum { BYTES = 0x400, JSON, PAIRS_MAX = 4096 };

struct args {
    const char *file, *section;
    size_t bytes;
    bool json;
};

struct show {
    struct matrix m;
    struct points points;
    bool have_points;
    double bytes;
};

static json_t *view_pairs(const struct show *s, struct err *err)
{
    const struct matrix *m = &s->m;
    json_t *out = json_array();
    struct pairs ps;

    if (m->topo.endpoints > PAIRS_MAX) {
        err_usage(err,
                  "%d endpoints are too many pairs to list (at most %d); railgauge cost gives one",
                  m->topo.endpoints, PAIRS_MAX);
    } else if (pairs_init(&ps, m, s->have_points ? &s->points : NULL, err) == 0) {
        for (int i = 0; i < ps.n; i++)
            for (int j = 0; j < ps.n; j++) {
                double add, rate = pairs_rate(&ps, i, j), share = pairs_share(&ps, i, j, rate);
                const struct tier *t = i != j ? &m->tier[pairs_tier(&ps, i, j)] : NULL;
                if (i == j)
                    continue;
                double factor = matrix_factor(m, i, j, NULL, &add),
                       lat = t->curve[DIR_ONEWAY].alpha;
                json_array_append_new(
                    out,
                    json_pack("{s:i, s:i, s:s, s:o, s:o, s:o, s:f, s:f, s:b}", "src", i, "dst", j,
                              "tier", t->rule.name, "latency_s",
                              lat > 0 ? json_real(lat + add) : json_null(), "Bps",
                              rate > 0 ? json_real(rate) : json_null(), "of_expected",
                              isfinite(share) ? json_real(share) : json_null(), "factor", factor,
                              "bytes", ps.bytes, "measured", pairs_sample(&ps, i, j) != NULL));
            }
        pairs_free(&ps);
        return out;
    }
    json_decref(out);
    return NULL;
}

static int text_pairs(const struct show *s, struct err *err)
{
    struct pairs ps;

    if (pairs_init(&ps, &s->m, s->have_points ? &s->points : NULL, err) < 0)
        return -1;
    pairs_print(stdout, &ps, term_columns(stdout), term_colour(stdout));
    pairs_free(&ps);
    return 0;
}

static void text_head(const struct matrix *m)
{
    const struct topo *t = &m->topo;

    printf("%d endpoints on %d hosts, transport %s%s%s", t->endpoints, t->hosts, m->transport,
           m->fabric ? ", fabric " : "", m->fabric ? m->fabric : "");
    for (int l = LEVEL_DOMAIN; l < LEVEL_COUNT; l++)
        if (t->group[l].count)
            printf(", %d %s%s (%s)", t->group[l].count, level_name[l],
                   t->group[l].count == 1 ? "" : "s", source_name[t->endpoint[0].source[l]]);
    fputs("\n\n", stdout);
}

static json_t *view_all(const struct show *s)
{
    const struct matrix *m = &s->m;
    json_t *levels = json_object();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (m->topo.group[l].count)
            json_object_set_new(levels, level_name[l], json_integer(m->topo.group[l].count));
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o}", "endpoints", m->topo.endpoints, "transport",
                     m->transport, "levels", levels, "tiers", matrix_view_tiers(m, s->bytes),
                     "collectives", matrix_view_collectives(m, s->bytes), "faults",
                     matrix_view_findings(m));
}

static json_t *view(const struct show *s, const char *section, struct err *err)
{
    if (!section)
        return view_all(s);
    switch (section[0]) {
    case 't':
        return matrix_view_tiers(&s->m, s->bytes);
    case 'c':
        return matrix_view_collectives(&s->m, s->bytes);
    case 'f':
        return matrix_view_findings(&s->m);
    case 'p':
        return section[1] == 'a' ? view_pairs(s, err) : matrix_view_points(&s->m);
    }
    return NULL;
}

static int text(const struct show *s, const char *section, struct err *err)
{
    char which = section ? section[0] : '*';
    int rc = 0;

    if (!section)
        text_head(&s->m);
    if (!section || which == 't')
        matrix_text_tiers(stdout, &s->m, s->bytes);
    if (!section)
        putchar('\n');
    if (!section || which == 'f')
        matrix_text_findings(stdout, &s->m, 0);
    if (which == 'c')
        matrix_text_collectives(stdout, &s->m, s->bytes, false);
    if (which == 'p' && section[1] == 'a')
        rc = text_pairs(s, err);
    if (which == 'p' && section[1] == 'o')
        matrix_text_points(stdout, &s->m);
    return rc;
}

static const char *const sections[] = {"tiers",    "pairs",  "collectives",
                                       "findings", "points", "nccl"};

static const struct argp_option options[] = {
    {"bytes", BYTES, "SIZE", 0, "also, or only, at this message size: 64K, 16M", 0},
    {"json", JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err;

    switch (key) {
    case BYTES:
        if (units_bytes(&a->bytes, arg, &err) < 0)
            argp_error(state, "--bytes: %s", err.text);
        break;
    case JSON:
        a->json = true;
        break;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0) {
            a->file = arg;
            break;
        }
        for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
            if (!strcmp(arg, sections[i]) && !a->section)
                a->section = sections[i];
        if (!a->section || strcmp(arg, a->section) != 0)
            argp_error(state, "\"%s\" is not one of: tiers pairs collectives findings points nccl",
                       arg);
        break;
    case ARGP_KEY_END:
        if (!a->file)
            argp_error(state, "give a matrix file or a campaign directory");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MATRIX|DIR [tiers|pairs|collectives|findings|points|nccl]",
    .doc =
        "Print what a cost matrix says; without a section the tiers, slow parts and findings."
        "\vOf a campaign directory also the measured pairs are shown, else those of the matrix.\n\n"
        "  railgauge show campaign\n"
        "  railgauge show campaign pairs\n"
        "  railgauge show matrix.json tiers --bytes 1M\n"
        "  railgauge show matrix.json findings --json\n"
        "  railgauge show campaign nccl\n",
};

/* A directory holds matrix.json and, if it can be read, points.tsv. */
static int load(struct show *s, const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return matrix_load(&s->m, path, err);
    char *matrix = file_join(path, "matrix.json"), *points = file_join(path, "points.tsv");
    int rc = matrix_load(&s->m, matrix, err);
    if (rc == 0 && access(points, R_OK) == 0) {
        rc = points_load(&s->points, points, err);
        s->have_points = rc == 0;
        if (rc == 0 && s->points.endpoints != s->m.topo.endpoints)
            rc = err_data(err, "%s is of %d endpoints, %s of %d", points, s->points.endpoints,
                          matrix, s->m.topo.endpoints);
        if (rc < 0)
            matrix_free(&s->m);
    }
    free(matrix);
    free(points);
    return rc;
}

static void put_json(const json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
}

/* What NCCL built is in the campaign's topology.json, or in a topology.json by itself. */
static int show_nccl(const struct args *a, struct err *err)
{
    struct stat st;
    struct topo t;
    struct nccl_profile p = {.lines = 0};
    bool dir = stat(a->file, &st) == 0 && S_ISDIR(st.st_mode);
    char *path = dir ? file_join(a->file, "topology.json") : mem_strdup(a->file);
    int rc = topo_load(&t, path, err);

    if (rc == 0 && !t.nccl)
        rc = err_data(err,
                      "%s has nothing of NCCL: a campaign on transport nccl, or "
                      "railgauge-probe discover --nccl, writes it",
                      path);
    if (rc == 0 && a->json)
        put_json(t.nccl);
    else if (rc == 0 && (rc = nccl_profile_read(&p, t.nccl, path, err)) == 0)
        nccl_print(&p, &t, stdout);
    nccl_profile_free(&p);
    topo_free(&t);
    free(path);
    return rc;
}

int cmd_show(int argc, char **argv)
{
    struct args a = {0};
    struct show s = {0};
    struct err err;
    json_t *json = NULL;

    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    if (a.section && !strcmp(a.section, "nccl"))
        return show_nccl(&a, &err) < 0 ? cmd_fail("show", &err) : EXIT_GOOD;
    if (load(&s, a.file, &err) < 0)
        return cmd_fail("show", &err);
    s.bytes = (double)a.bytes;
    int rc = a.json ? ((json = view(&s, a.section, &err)) ? 0 : -1) : text(&s, a.section, &err);
    if (json) {
        put_json(json);
        json_decref(json);
    }
    if (s.have_points)
        points_free(&s.points);
    matrix_free(&s.m);
    return rc < 0 ? cmd_fail("show", &err) : EXIT_GOOD;
}
