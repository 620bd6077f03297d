/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct model model;

static int load(void **state)
{
    (void)state;
    return model_load(&model, "llama3.1-8b", NULL);
}

static int unload(void **state)
{
    (void)state;
    model_free(&model);
    return 0;
}

/* The traffic of llama3.1-8b; batch is in microbatches of one sequence per data-parallel rank. */
static void make(struct traffic *t, struct layout *l, struct recipe *r, const char *text,
                 enum strategy strategy, int microbatches)
{
    r->strategy = strategy;
    assert_int_equal(layout_parse(l, text, strategy, ORDER_MEGATRON, 0, NULL), 0);
    r->global_batch = microbatches * l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE];
    assert_int_equal(layout_check(l, &model, r, NULL), 0);
    traffic_of(t, &model, l, r);
}

/* Sum of S * count over messages of `op` on `axes` (0: any). */
static double sum(const struct traffic *t, int op, unsigned axes)
{
    double bytes = 0;

    for (int i = 0; i < t->messages; i++)
        if ((int)t->message[i].op == op && (!axes || t->message[i].axes == axes))
            bytes += t->message[i].bytes * t->message[i].count;
    return bytes;
}

static double psi(void)
{
    struct params p;

    model_params(&model, &p);
    return p.total;
}

static const struct {
    enum strategy strategy;
    double gather, scatter, reduce; /* in units of Psi, m = 4, b_p = 2 */
} table[] = {
    {STRATEGY_DDP, 0, 0, 2},
    {STRATEGY_ZERO1, 2, 2, 0},
    {STRATEGY_ZERO2, 2, 4 * 2, 0},
    {STRATEGY_ZERO3, 4 * 2 * 2, 4 * 2, 0},
    {STRATEGY_FSDP, 4 * 2 * 2, 4 * 4, 0},
};

static void data_parallel_bytes_are_those_of_the_papers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct traffic t;
        struct layout l;
        struct recipe r;
        recipe_defaults(&r);
        make(&t, &l, &r, "dp=8", table[i].strategy, 4);
        assert_float_equal(sum(&t, OP_ALL_GATHER, 0) / psi(), table[i].gather, 1e-9);
        assert_float_equal(sum(&t, OP_REDUCE_SCATTER, 0) / psi(), table[i].scatter, 1e-9);
        assert_float_equal(sum(&t, OP_ALL_REDUCE, 0) / psi(), table[i].reduce, 1e-9);
    }
}

static double wire(const struct traffic *t, const struct layout *l)
{
    double bytes = 0;

    for (int i = 0; i < t->messages; i++)
        bytes += t->message[i].count * message_wire_bytes(&t->message[i], t->message[i].span.size);
    return bytes;
}

static void more_sharding_costs_more_bytes(void **state)
{
    double last = 0;

    (void)state;
    for (int s = STRATEGY_ZERO1; s <= STRATEGY_FSDP; s++) {
        struct traffic t;
        struct layout l;
        struct recipe r;
        recipe_defaults(&r);
        make(&t, &l, &r, "dp=8", (enum strategy)s, 4);
        assert_true(wire(&t, &l) > last);
        last = wire(&t, &l);
    }
}

static void ddp_and_zero1_put_the_same_bytes_on_the_wire(void **state)
{
    struct traffic a, b;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&a, &l, &r, "dp=8", STRATEGY_ZERO1, 4);
    double zero1 = wire(&a, &l);
    make(&b, &l, &r, "dp=8", STRATEGY_DDP, 4);
    assert_float_equal(wire(&b, &l) / zero1, 1, 1e-12);
}

static void hsdp_replicas_reduce_only_their_shard(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "dp_replicate=4,dp_shard=8", STRATEGY_HSDP, 2);
    assert_float_equal(sum(&t, OP_ALL_REDUCE, AXIS_BIT(AXIS_DP_REPLICATE)) / (psi() / 8 * 4), 1,
                       1e-9);
    assert_float_equal(sum(&t, OP_ALL_GATHER, AXIS_BIT(AXIS_DP_SHARD)) / (psi() * 2 * 2 * 2), 1,
                       1e-9);
    assert_float_equal(sum(&t, OP_ALL_REDUCE, 0),
                       sum(&t, OP_ALL_REDUCE, AXIS_BIT(AXIS_DP_REPLICATE)), 0);
}

static void tensor_parallel_moves_ten_activations_per_layer(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_float_equal(wire(&t, &l) / (10 * unit * 7 / 8 * 32 * 3), 1, 1e-9);
    r.recompute = RECOMPUTE_FULL;
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_float_equal(wire(&t, &l) / (14 * unit * 7 / 8 * 32 * 3), 1, 1e-9);
}

static void tensor_parallel_ranks_hold_and_sync_their_share(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "tp=4,pp=2,dp=2", STRATEGY_ZERO1, 8);
    assert_float_equal(sum(&t, OP_REDUCE_SCATTER, AXIS_BIT(AXIS_DP_SHARD)) / (psi() / 8 * 2), 1,
                       1e-9);
}

static void a_pipeline_sends_two_messages_per_chunk_and_microbatch(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    r.schedule = SCHEDULE_INTERLEAVED;
    r.stages = 2;
    make(&t, &l, &r, "tp=2,pp=4", STRATEGY_ZERO1, 8);
    assert_float_equal(
        sum(&t, OP_SENDRECV, AXIS_BIT(AXIS_PP)) / (8192.0 * 4096 * 2 / 2 * 2 * 2 * 8), 1, 1e-9);
}

static void context_parallel_sends_keys_and_values_around_the_ring(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_float_equal(sum(&t, OP_SENDRECV, AXIS_BIT(AXIS_CP)) /
                           (2.0 * 8 * 128 * (8192 / 4) * 2 / 2 * 3 * 3 * 32),
                       1, 1e-9);
}

static void one_rank_sends_nothing(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "dp=1", STRATEGY_FSDP, 4);
    assert_int_equal(t.messages, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_parallel_bytes_are_those_of_the_papers),
        cmocka_unit_test(more_sharding_costs_more_bytes),
        cmocka_unit_test(ddp_and_zero1_put_the_same_bytes_on_the_wire),
        cmocka_unit_test(hsdp_replicas_reduce_only_their_shard),
        cmocka_unit_test(tensor_parallel_moves_ten_activations_per_layer),
        cmocka_unit_test(tensor_parallel_ranks_hold_and_sync_their_share),
        cmocka_unit_test(a_pipeline_sends_two_messages_per_chunk_and_microbatch),
        cmocka_unit_test(context_parallel_sends_keys_and_values_around_the_ring),
        cmocka_unit_test(one_rank_sends_nothing),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
