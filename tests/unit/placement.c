/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/placement.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct topo topo;

/* n1..n3 with two GPUs each: endpoints 0..5; a host whose name is a number: endpoint 6. */
static int build(void **state)
{
    (void)state;
    topo_init(&topo);
    for (int i = 1; i <= 3; i++) {
        char *name = mem_printf("n%d", i);
        int host = topo_add_host(&topo, name);
        topo_add_endpoint(&topo, host, ENDPOINT_GPU);
        topo_add_endpoint(&topo, host, ENDPOINT_GPU);
        free(name);
    }
    topo_add_endpoint(&topo, topo_add_host(&topo, "42"), ENDPOINT_GPU);
    return 0;
}

static int raze(void **state)
{
    (void)state;
    topo_free(&topo);
    return 0;
}

static const struct {
    const char *text;
    int ranks, order[8];
} good[] = {
    {"n2\nn1\n", 4, {2, 3, 0, 1}},
    {"n3 slots=1\nn1:1\nn3 slots=1", 3, {4, 0, 5}},
    {"n3 1\nn1 0\n", 2, {5, 0}},
    {"5\n0\n3\n", 3, {5, 0, 3}},
    {"# by rack\n\n  n[2-3]   # two hosts\r\n0\n", 5, {2, 3, 4, 5, 0}},
    {"n[1-3] 1\n", 3, {1, 3, 5}},
    {"42\n", 1, {6}},
};

TEST(each_way_to_write_an_order_is_understood)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char *text = mem_strdup(good[i].text);
        int *order, ranks;
        struct err err;
        if (placement_parse(&order, &ranks, &topo, text, "f", &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(ranks, good[i].ranks);
        assert_memory_equal(order, good[i].order, (size_t)ranks * sizeof(int));
        free(order);
        free(text);
    }
}

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "f: no host and no endpoint is named"},
    {"# nothing\n", "f: no host and no endpoint is named"},
    {"n1\nn9\n", "f:2: host \"n9\" is not in the matrix"},
    {"n1\nn1\n", "f:2: endpoint 0 is taken by rank 0 already"},
    {"3\n3\n", "f:2: endpoint 3 is taken by rank 0 already"},
    {"7\n", "f:1: endpoint "},
    {"99999999999999999999\n", "f:1: endpoint "},
    {"n1 2\n", "f:1: host \"n1\" has no endpoint 2, it has 2"},
    {"n1 slots=3\n", "f:1: host \"n1\" has 2 free endpoints, not 3"},
    {"n1 0\nn1 slots=2\n", "f:2: host \"n1\" has 1 free endpoints, not 2"},
    {"n1 slots=x\n", "f:1: "},
    {"n1 slots=0\n", "f:1: "},
    {"n1:\n", "f:1: "},
    {"n1 1 2\n", "f:1: a host and one word after it are all that is understood"},
    {"n[1-\n", "f:1: "},
    {"n[1-4]\n", "f:1: host \"n4\" is not in the matrix"},
};

TEST(a_bad_line_is_refused_with_its_number_and_reason)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *text = mem_strdup(bad[i].text);
        int *order, ranks;
        struct err err;
        assert_int_equal(placement_parse(&order, &ranks, &topo, text, "f", &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) || strlen(err.text) < 12)
            fail_msg("case %zu: \"%s\" does not begin with \"%s\"", i, err.text, bad[i].says);
        free(text);
    }
}

TEST(a_missing_file_is_no_input)
{
    int *order, ranks;
    struct err err;

    assert_int_equal(placement_make(&order, &ranks, &topo,
                                    &(struct placement){.order = "/nonexistent/order"}, 1, &err),
                     -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_non_null(strstr(err.text, "/nonexistent/order"));
}

/* Two racks of three nodes with two GPUs each: endpoints 0..11, nodes a0..a2 and b0..b2. */
static void build_racks(struct topo *t)
{
    topo_init(t);
    for (int i = 0; i < 6; i++) {
        char *name = mem_printf("%c%d", i < 3 ? 'a' : 'b', i % 3);
        int host = topo_add_host(t, name);
        int rack = topo_add_group(t, LEVEL_RACK, i < 3 ? "left" : "right");
        for (int k = 0; k < 2; k++) {
            int id = topo_add_endpoint(t, host, ENDPOINT_GPU);
            t->endpoint[id].place.at[LEVEL_RACK] = rack;
        }
        free(name);
    }
}

static const struct {
    struct placement place;
    int ranks, given, order[12];
} dealt[] = {
    {{.nodes = "b1,a0"}, 4, 4, {8, 9, 0, 1}},
    {{.nodes = "a[0-2]"}, 2, 6, {0, 1, 2, 3, 4, 5}},
    {{.spread = SPREAD_CYCLIC}, 6, 6, {0, 2, 4, 1, 3, 5}},
    {{.spread = SPREAD_CYCLIC, .nodes = "b0,a2"}, 4, 4, {6, 4, 7, 5}},
    {{.segment = 1}, 6, 6, {0, 1, 6, 7, 2, 3}},
    {{.segment = 2}, 8, 8, {0, 1, 2, 3, 6, 7, 8, 9}},
    {{.segment = 2}, 6, 8, {0, 1, 2, 3, 6, 7, 8, 9}},
    {{.segment = 3}, 0, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    {{.segment = 2, .nodes = "b[1-2],a[0-1]"}, 8, 8, {0, 1, 2, 3, 8, 9, 10, 11}},
    {{.segment = 1, .spread = SPREAD_CYCLIC}, 4, 4, {0, 6, 1, 7}},
};

TEST(ranks_are_dealt_over_nodes_as_srun_does)
{
    struct topo t;

    build_racks(&t);
    for (size_t i = 0; i < sizeof(dealt) / sizeof(*dealt); i++) {
        int *order, given, ranks = dealt[i].ranks;
        struct err err = {0, ""};
        if (placement_make(&order, &given, &t, &dealt[i].place, ranks, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        /* A row ends with the node or segment that the job needs last; the rest is not looked at.
         */
        assert_true(given >= ranks);
        for (int k = 0; k < (ranks ? ranks : given); k++)
            if (order[k] != dealt[i].order[k])
                fail_msg("case %zu: rank %d is on %d, not %d", i, k, order[k], dealt[i].order[k]);
        free(order);
    }
    topo_free(&t);
}

TEST(nothing_asked_is_no_order)
{
    int *order = &(int){0}, given;

    assert_int_equal(placement_make(&order, &given, &topo, &(struct placement){0}, 3, NULL), 0);
    assert_null(order);
    assert_int_equal(given, 7);
}

static const struct {
    struct placement place;
    int ranks;
    const char *says;
} refused[] = {
    {{.nodes = "a0,c7"}, 2, "--nodes: node \"c7\" is not among the 6 of the matrix (a0 .. b2)"},
    {{.nodes = "a[0-1],a1"}, 2, "--nodes: node \"a1\" is listed twice"},
    {{.nodes = "a[0-1]"}, 5, "--nodes: a[0-1] has 4 endpoints, and the job has 5 ranks"},
    {{.nodes = "a[0-"}, 1, "--nodes: "},
    {{.segment = 4}, 4, "--segment: the racks have room for 0 segments of 4 nodes"},
    {{.segment = 2},
     9,
     "--segment: the racks have room for 2 segments of 2 nodes, which hold 8 "
     "ranks, and the job has 9"},
    {{.order = "f", .nodes = "a0"}, 1, "--order says where each rank is"},
    {{.order = "f", .spread = SPREAD_CYCLIC}, 1, "--order says where each rank is"},
};

TEST(a_placement_that_cannot_be_is_refused_with_the_option)
{
    struct topo t;
    int *order, given;
    struct err err;

    build_racks(&t);
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        assert_int_equal(
            placement_make(&order, &given, &t, &refused[i].place, refused[i].ranks, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        if (strncmp(err.text, refused[i].says, strlen(refused[i].says)))
            fail_msg("case %zu: \"%s\"", i, err.text);
    }
    topo_free(&t);
    /* The hosts of `topo` have no rack. */
    struct placement segment = {.segment = 1};
    assert_int_equal(placement_make(&order, &given, &topo, &segment, 1, &err), -1);
    assert_string_equal(err.text, "--segment: the rack of node \"n1\" is not known");
}

/* Matrices of real measurements name no preset: nothing may be divided by what it would have. */
TEST(an_empty_preset_has_no_racks)
{
    const struct fabric none = {0}, hgx = {.gpus_per_host = 8, .hosts_per_rack = 4};
    const struct placement all = {0}, segment = {.segment = 2}, nodes = {.nodes = "r02n[00-03]"};

    assert_int_equal(placement_racks(&all, &none, 64), 0);
    assert_int_equal(placement_racks(&segment, &none, 64), 0);
    assert_int_equal(placement_racks(&nodes, &none, 64), 3);
    assert_int_equal(placement_racks(&all, &hgx, 64), 2);
    assert_int_equal(placement_racks(&all, &hgx, 65), 3);
    assert_int_equal(placement_racks(&all, &hgx, 0), 0);
}

TEST_GROUP(build, raze)
