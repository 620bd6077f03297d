/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic_experts.c - messages between experts. */
#include "messages.h"
#include "test.h"

/* 80 tokens' worth of all_to_all: 1 expert of 16 each, micro batch 10, 48 layers, bf16. */
TEST(scout_sends_161_gigabytes_to_experts)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double half = 8192.0 * 10 * 5120 * 1 * 2 * 2 * 48;

    recipe_defaults(&r);
    r.micro_batch = 10;
    make_of(&t, &l, &r, &scout, "dp=256,ep=16", 1);
    assert_label(&t, "ep dispatch", half, 2 * 48);
    assert_label(&t, "ep combine", half, 2 * 48);
    assert_float_equal(sum(&t, OP_ALL_TO_ALL, AXIS_BIT(AXIS_EP)), 161.06e9, 0.01e9);
    r.recompute = RECOMPUTE_FULL;
    make_of(&t, &l, &r, &scout, "dp=256,ep=16", 1);
    assert_label(&t, "ep dispatch", half * 3 / 2, 3 * 48);
}

TEST(dispatch_in_fp8_halves_its_bytes)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double one = 4096.0 / 2 * 7168 * 8;

    recipe_defaults(&r);
    r.strategy = STRATEGY_ZERO1;
    r.seq = 4096;
    r.dispatch_bytes = 1;
    r.ep_overlap = true;
    make_of(&t, &l, &r, &deepseek, "tp=2,dp=32,ep=64", 3);
    assert_label(&t, "ep dispatch", one * 2 * 58 * 3, 2 * 58 * 3);
    assert_label(&t, "ep combine", one * 2 * 2 * 58 * 3, 2 * 58 * 3);
    assert_label(&t, "ep all_gather of counts", 8.0 * 256 * 64 * 58 * 3, 58 * 3);
    for (int i = 0; i < t.messages; i++)
        if (!strcmp(t.message[i].label, "ep dispatch"))
            assert_int_equal(t.message[i].exposure, EXPOSE_EP_OVERLAP);
}

/* Every expert on 2 ranks: they gather what came to either. */
TEST(experts_shared_out_by_columns_gather_their_tokens)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double tokens = 8192.0 / 2 * 4 * 2880 * 2;

    recipe_defaults(&r);
    make_of(&t, &l, &r, &oss, "tp=2,dp=8,ep=8,etp=2", 1);
    assert_label(&t, "ep dispatch", tokens * 2 * 36, 2 * 36);
    assert_label(&t, "etp all_gather", tokens * 2 * 2 * 36, 2 * 36);
    assert_label(&t, "etp reduce_scatter", tokens * 2 * 2 * 36, 2 * 36);
    /* no dense MLP and no shared expert: attention is the only half */
    assert_label(&t, "tp all_gather", 3 * 8192.0 * 2880 * 2 * 36, 3 * 36);
}

/* Of 128 experts on 64 ranks in 8 domains, 4 drawn: a domain of 16 is missed by
 * C(112, 4) / C(128, 4), a rank of 2 by C(126, 4) / C(128, 4). */
TEST(a_kernel_sends_a_token_once_to_a_rank_and_once_into_a_domain)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    const struct routing route = {.ranks = 64, .experts = 128, .topk = 4};
    double rank = 64 * (1 - 124.0 * 123 / (128.0 * 127));
    double domain = 8 * (1 - 112.0 * 111 * 110 * 109 / (128.0 * 127 * 126 * 125));

    assert_float_equal(routing_parts(&route, 1), rank, 1e-9);
    assert_float_equal(routing_parts(&route, 8), domain, 1e-9);
    assert_float_equal(routing_parts(&route, 64), 1, 1e-12);
    recipe_defaults(&r);
    r.strategy = STRATEGY_ZERO1;
    r.dispatch = DISPATCH_KERNEL;
    make_of(&t, &l, &r, &oss, "dp=64,ep=64", 1);
    double one = 8192.0 * 2880 * 2;
    assert_label(&t, "ep dispatch", one * rank * 2 * 36, 2 * 36);
    assert_none(&t, "ep all_gather of counts");
    assert_int_equal(t.message[0].kernel, EP_DISPATCH);
    assert_float_equal(message_crossing_bytes(&t.message[0], 8), one * domain * 7 / 8, 1);
    assert_float_equal(message_crossing_bytes(&t.message[0], 64), 0, 0);
    r.route_nodes = 2;
    make_of(&t, &l, &r, &oss, "dp=64,ep=64", 1);
    assert_float_equal(message_crossing_bytes(&t.message[0], 8), one * 2 * 7 / 8, 1);
    r.dispatch = DISPATCH_NCCL;
    make_of(&t, &l, &r, &oss, "dp=64,ep=64", 1);
    assert_float_equal(message_crossing_bytes(&t.message[0], 8), one * 4 * 56 / 64, 1);
}

/* DeepSeek-V3 draws 8 experts from 4 of 8 groups of 32: a group is missed when it is not drawn, or
 * by C(96, 8) / C(128, 8); a token never goes to more than 4. */
TEST(limited_groups_bound_the_domains_of_a_token)
{
    const struct routing route = {
        .ranks = 64, .experts = 256, .topk = 8, .groups = 8, .groups_max = 4};
    const struct routing free_route = {.ranks = 64, .experts = 256, .topk = 8};
    double none = 1;

    for (int i = 0; i < 8; i++)
        none *= (96.0 - i) / (128 - i);
    assert_int_equal(deepseek.layer[1].mlp.nodes_max, 4);
    assert_float_equal(routing_parts(&route, 8), 8 * 0.5 * (1 - none), 1e-9);
    assert_true(routing_parts(&route, 8) < 4);
    assert_true(routing_parts(&free_route, 8) > 5);
    assert_true(routing_parts(&route, 1) < routing_parts(&free_route, 1));
    assert_float_equal(routing_parts(&route, 64), 1, 1e-12);
    /* two groups a domain: none, one or both of them are drawn, 6 8 6 in 28 ... of C(8, 4) = 70:
     * C(6, 4) = 15, 2 C(6, 3) = 40, C(6, 2) = 15 */
    double both = 1;
    for (int i = 0; i < 8; i++)
        both *= (64.0 - i) / (128 - i);
    assert_float_equal(routing_parts(&route, 16), 4 * (1 - (15 + 40 * none + 15 * both) / 70),
                       1e-9);
}

TEST(replicas_of_experts_reduce_their_shards)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct params p;
    double n;

    model_params(&scout, &p);
    recipe_defaults(&r);
    r.strategy = STRATEGY_HSDP;
    make_of(&t, &l, &r, &scout, "dp_replicate=2,dp_shard=32,ep=8", 3);
    assert_float_equal(sum_label(&t, "gradients all_reduce of shards", &n) /
                           ((p.total - p.expert) / 32 * 4 * 3),
                       1, 1e-9);
    assert_float_equal(sum_label(&t, "experts' gradients all_reduce of shards", &n) /
                           (p.expert / 8 / 4 * 4 * 3),
                       1, 1e-9);
}

TEST_GROUP(load, unload)
