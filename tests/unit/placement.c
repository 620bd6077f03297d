/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void each_way_to_write_an_order_is_understood(void **state)
{
    (void)state;
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

static void a_bad_line_is_refused_with_its_number_and_reason(void **state)
{
    (void)state;
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

static void a_missing_file_is_no_input(void **state)
{
    int *order, ranks;
    struct err err;

    (void)state;
    assert_int_equal(placement_load(&order, &ranks, &topo, "/nonexistent/order", &err), -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_non_null(strstr(err.text, "/nonexistent/order"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_to_write_an_order_is_understood),
        cmocka_unit_test(a_bad_line_is_refused_with_its_number_and_reason),
        cmocka_unit_test(a_missing_file_is_no_input),
    };
    return cmocka_run_group_tests(tests, build, raze);
}
