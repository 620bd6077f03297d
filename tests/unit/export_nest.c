/* SPDX-License-Identifier: BSD-3-Clause */
/* export_nest.c - machines as equal groups, and as targets of Scotch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "export/export_impl.h"
#include "small.h"

/* A matrix with what is asked of it: AS(&m, {.endpoints = true}). */
#define AS(matrix, ...)                                                                            \
    &(struct export_run)                                                                           \
    {                                                                                              \
        .m = (matrix), .ask = &(struct export_ask)__VA_ARGS__                                      \
    }

static const struct export_limit any = {"test", 1, 1 << 20, 0, ':'};

static void preset(struct matrix *m, const char *name, int racks)
{
    struct fabric f;
    struct err err;

    if (fabric_load(&f, name, &err) < 0 || matrix_from_fabric(m, &f, racks, &err) < 0)
        fail_msg("%s", err.text);
    fabric_free(&f);
}

/* Sizes as text, innermost first: "72 mnnvl, 4 rail"; a refusal as it is. */
static char *nest_text(const struct matrix *m, bool endpoints, bool hosts)
{
    struct uniform_tree n;
    struct err err;
    char *text = mem_strdup("");
    int rc = uniform_tree_make(&n, AS(m, {.endpoints = endpoints}), "any", hosts, &err);

    for (int d = 0; d < n.dims && rc == 0; d++) {
        char *more = mem_printf("%s%s%d %s", text, d ? ", " : "", n.dim[d].size,
                                m->tier[n.dim[d].tier].rule.name);
        free(text);
        text = more;
    }
    if (rc == 0)
        assert_int_equal(uniform_tree_within(&n, n.dims - 1), n.nodes.count);
    if (rc < 0) {
        assert_int_equal(err.code, EXIT_DATA);
        free(text);
        text = mem_strdup(err.text);
    }
    uniform_tree_free(&n);
    return text;
}

#define IS(call, wanted)                                                                           \
    do {                                                                                           \
        char *text_ = (call);                                                                      \
        assert_string_equal(text_, wanted);                                                        \
        free(text_);                                                                               \
    } while (0)

TEST(presets_nest_as_they_are_built)
{
    static const struct {
        const char *name;
        int racks;
        const char *endpoints, *hosts;
    } known[] = {
        {"gb200-nvl72", 4, "72 mnnvl, 4 rail", "18 mnnvl, 4 rail"},
        {"gb300-nvl72", 8, "72 mnnvl, 4 rail, 2 fabric", "18 mnnvl, 4 rail, 2 fabric"},
        {"hgx-h100", 3, "8 nvlink, 12 rail", "12 rail"},
    };
    struct matrix m;

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        preset(&m, known[i].name, known[i].racks);
        IS(nest_text(&m, true, false), known[i].endpoints);
        IS(nest_text(&m, false, false), known[i].hosts);
        matrix_free(&m);
    }
    preset(&m, "gb200-nvl72", 2);
    IS(nest_text(&m, true, true), "4 mnnvl, 18 mnnvl, 2 rail");
    matrix_free(&m);
}

TEST(what_is_uneven_is_named)
{
    struct matrix m;

    small_matrix(&m); /* 2 racks x 4 hosts x 2 */
    IS(nest_text(&m, true, false), "2 shm, 4 rack, 2 fabric");
    for (int id = 14; id < 16; id++) /* n07 moves to rack-00 */
        m.topo.endpoint[id].place.at[LEVEL_RACK] = 0;
    IS(nest_text(&m, true, false),
       "the machine is uneven: rack rack-01 holds 3 hosts where rack-00 holds 5");
    IS(nest_text(&m, false, false),
       "the machine is uneven: rack rack-01 holds 3 nodes where rack-00 holds 5");
    for (int id = 14; id < 16; id++)
        m.topo.endpoint[id].place.at[LEVEL_RACK] = -1;
    IS(nest_text(&m, false, false),
       "the machine is uneven: rack rack-01 holds 3 nodes where rack-00 "
       "holds 4; the rack of n07 is not known");
    matrix_free(&m);
    small_matrix(&m);
    topo_add_endpoint(&m.topo, 3, ENDPOINT_CPU);
    IS(nest_text(&m, true, false),
       "the machine is uneven: host n03 holds 3 nodes where n00 holds 2");
    matrix_free(&m);
}

/* Racks whose hosts alternate: order and groups come from the places. */
TEST(order_follows_places)
{
    struct matrix m;
    struct uniform_tree n;
    struct err err;

    small_matrix(&m);
    for (int id = 0; id < 16; id++)
        m.topo.endpoint[id].place.at[LEVEL_RACK] = id / 2 % 2;
    assert_int_equal(uniform_tree_make(&n, AS(&m, {0}), "any", false, &err), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(n.order[i], i < 4 ? 2 * i : 2 * (i - 4) + 1);
    uniform_tree_free(&n);
    matrix_free(&m);
}

TEST(limits_say_how_large_it_would_be)
{
    const struct export_limit limit = {"npy", 1, 1000, 8, ':'};
    struct matrix m;
    struct export_nodes nodes;
    struct err err;

    preset(&m, "gb200-nvl72", 20);
    assert_int_equal(export_nodes_choose(&nodes, AS(&m, {.endpoints = true}), &limit, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(err.text, "1440 nodes have 2072160 pairs, as npy 15.8 MiB: more than 1000 "
                                  "nodes are not written; choose --per host, fewer --racks or "
                                  "--hosts-per-rack");
    export_nodes_free(&nodes);
    assert_int_equal(export_nodes_choose(&nodes, AS(&m, {.hosts_per_rack = 2}), &limit, &err), 0);
    assert_int_equal(nodes.count, 40);
    assert_string_equal(nodes.name[3], "r01n01");
    export_nodes_free(&nodes);
    matrix_free(&m);
}

/* A host whose endpoints do not begin with number 0 is not forgotten. */
TEST(a_host_is_its_first_endpoint)
{
    struct matrix m;
    struct export_nodes nodes;
    struct err err;

    small_matrix(&m);
    m.topo.endpoint[6].local = 2;
    assert_int_equal(export_nodes_choose(&nodes, AS(&m, {0}), &any, &err), 0);
    assert_int_equal(nodes.count, 8);
    assert_int_equal(nodes.id[3], 6);
    export_nodes_free(&nodes);
    matrix_free(&m);
}

/* --- Scotch --- */

static char *written(export_writer *write, const struct matrix *m, struct export_ask ask,
                     struct err *err)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    int rc = write(&(struct export_run){.out = f, .m = m, .ask = &ask}, err);

    fclose(f);
    if (rc == 0)
        return text;
    free(text);
    return NULL;
}

TEST(a_trees_values_add_up_to_the_ratio_of_times)
{
    const double bytes = 1 << 20;
    struct matrix m;
    struct err err;
    int levels, top, rack, host;
    long v[3];

    small_matrix(&m);
    char *text = written(scotch_tleaf_write, &m,
                         (struct export_ask){.endpoints = true, .bytes = bytes}, &err);
    assert_non_null(text);
    assert_int_equal(sscanf(text, "tleaf\n%d %d %ld %d %ld %d %ld\n", &levels, &top, &v[0], &rack,
                            &v[1], &host, &v[2]),
                     7);
    assert_int_equal(levels, 3);
    assert_int_equal(top, 2);
    assert_int_equal(rack, 4);
    assert_int_equal(host, 2);
    double t0 = matrix_tier_time(&m.tier[0], bytes, 1);
    assert_int_equal(v[2], 10);
    assert_int_equal(v[2] + v[1], lround(10 * matrix_tier_time(&m.tier[1], bytes, 1) / t0));
    assert_int_equal(v[2] + v[1] + v[0], lround(10 * matrix_tier_time(&m.tier[2], bytes, 1) / t0));
    free(text);

    struct curve *slow = m.tier[0].curve;
    for (int d = 0; d < 2; d++) {
        curve_free(&slow[d]);
        curve_line(&slow[d], 1, 1e3);
    }
    assert_null(written(scotch_tleaf_write, &m, (struct export_ask){.endpoints = true}, &err));
    assert_string_equal(err.text, "tier rack is nearer than tier shm inside it: no tree has that");
    curve_free(&m.tier[1].curve[DIR_ONEWAY]);
    curve_free(&m.tier[1].curve[DIR_UNI]);
    assert_null(written(scotch_tleaf_write, &m, (struct export_ask){.endpoints = true}, &err));
    assert_string_equal(err.text, "tier rack was not measured");
    matrix_free(&m);
}

/* Domains of a binary tree: no two are equal, none lies above another, all below 1. */
static void check_domains(const char *text, int nodes)
{
    long *domain = mem_calloc((size_t)nodes, sizeof(*domain)), most = 0, said;
    int n, used, label, weight;

    assert_int_equal(sscanf(text, "deco\n0\n%d %ld\n%n", &n, &said, &used), 2);
    assert_int_equal(n, nodes);
    text += used;
    for (int i = 0; i < n; i++) {
        assert_int_equal(sscanf(text, "%d %d %ld\n%n", &label, &weight, &domain[i], &used), 3);
        assert_int_equal(label, i);
        assert_int_equal(weight, 1);
        most = domain[i] > most ? domain[i] : most;
        text += used;
    }
    assert_int_equal(said, most);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (long above = domain[k]; i != k && above >= 1; above /= 2)
                assert_int_not_equal(above, domain[i]);
    free(domain);
}

TEST(any_number_of_nodes_is_decomposed)
{
    struct matrix m;
    struct err err;

    for (int hosts = 2; hosts < 40; hosts += hosts < 10 ? 1 : 7) {
        matrix_init(&m);
        small_topo(&m.topo, 3, hosts, 1, true, ENDPOINT_CPU);
        small_tier(&m, "rack", 1u << LEVEL_RACK, 10e-6, 1e9, true);
        small_tier(&m, "fabric", 0, 60e-6, 0.4e9, true);
        char *text = written(scotch_deco_write, &m, (struct export_ask){0}, &err);
        assert_non_null(text);
        check_domains(text, 3 * hosts);
        free(text);
        matrix_free(&m);
    }
}

TEST(pairs_without_a_number_are_refused_by_name)
{
    struct matrix m;
    struct err err;

    small_matrix(&m);
    struct exception *e = small_exception(&m, PART_PAIR, 0, 4, -1, 0);
    e->side = SIDE_TX;
    assert_null(written(scotch_deco_write, &m, (struct export_ask){0}, &err));
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text,
                        "n02 and n00 do not reach each other: a distance is a whole number");
    curve_free(&m.tier[2].curve[DIR_ONEWAY]);
    curve_free(&m.tier[2].curve[DIR_UNI]);
    m.exception[0].factor = 1;
    assert_null(written(scotch_deco_write, &m, (struct export_ask){0}, &err));
    assert_string_equal(err.text,
                        "time from n04:0 to n00:0 is not known: tier fabric was not measured");
    matrix_free(&m);
}
