/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/op.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

TEST(every_operation_is_found_by_its_name_and_by_the_usual_spelling)
{
    for (int i = 0; i < OP_COUNT; i++)
        assert_int_equal(op_find(op_name((enum op)i)), i);
    assert_int_equal(op_find("alltoall"), OP_ALL_TO_ALL);
    assert_int_equal(op_find("allreduce"), OP_ALL_REDUCE);
    assert_int_equal(op_find("all-gather"), -1);
    assert_int_equal(op_find(""), -1);
}

TEST(bus_factors_are_those_of_nccl_tests)
{
    /* nccl-tests doc/PERFORMANCE.md, 8 ranks: all_reduce 2(n-1)/n, the split ones (n-1)/n, rest 1.
     */
    assert_float_equal(op_bus_factor(OP_ALL_REDUCE, 8), 1.75, 1e-12);
    assert_float_equal(op_bus_factor(OP_ALL_GATHER, 8), 0.875, 1e-12);
    assert_float_equal(op_bus_factor(OP_REDUCE_SCATTER, 8), 0.875, 1e-12);
    assert_float_equal(op_bus_factor(OP_ALL_TO_ALL, 8), 0.875, 1e-12);
    assert_float_equal(op_bus_factor(OP_BROADCAST, 8), 1, 1e-12);
    assert_float_equal(op_bus_factor(OP_REDUCE, 8), 1, 1e-12);
    assert_float_equal(op_bus_factor(OP_SENDRECV, 8), 1, 1e-12);
    assert_float_equal(op_bus_factor(OP_PAIR_BW, 2), 1, 1e-12);
}

TEST(operations_of_equal_blocks_need_sizes_that_divide)
{
    assert_int_equal(op_blocks(OP_ALL_GATHER, 6), 6);
    assert_int_equal(op_blocks(OP_REDUCE_SCATTER, 6), 6);
    assert_int_equal(op_blocks(OP_ALL_TO_ALL, 6), 6);
    assert_int_equal(op_blocks(OP_ALL_REDUCE, 6), 1);
    assert_int_equal(op_blocks(OP_PAIR_LATENCY, 2), 1);
}

TEST(pairs_are_told_from_collectives)
{
    for (int i = 0; i < OP_COUNT; i++)
        assert_int_equal(op_is_pair((enum op)i), i >= OP_PAIR_LATENCY);
}

/* Every name of a kind, in the table's order. */
static char *joined(bool pairs, const char *before, const char *between, const char *after)
{
    char *text = mem_strdup(before);

    for (int i = 0; i < OP_COUNT; i++)
        if (!op_is_pair((enum op)i) || pairs) {
            char *more = mem_printf("%s%s%s", text, i ? between : "", op_name((enum op)i));
            free(text);
            text = more;
        }
    char *whole = mem_printf("%s%s", text, after);
    free(text);
    return whole;
}

static void expect(const char *path, char *list)
{
    char *text = NULL;
    struct err err = {0, ""};

    if (file_read(&text, NULL, path, 1 << 24, &err) < 0)
        fail_msg("%s", err.text);
    if (!strstr(text, list))
        fail_msg("%s has no %s", path, list);
    free(text);
    free(list);
}

/* What cannot be made from the table when it is compiled. */
TEST(schemas_and_the_manual_have_every_operation)
{
    expect("src/schema/matrix.schema.json",
           joined(false, "\"op\": {\"enum\": [\"", "\", \"", "\"]}"));
    expect("topo/schema/fabric.schema.json",
           joined(false, "\"op\": {\"enum\": [\"", "\", \"", "\"]}"));
    expect("src/railgauge.1", joined(true, ".Cm ", " , ", " .\n"));
}
