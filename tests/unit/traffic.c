/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct model model, scout, oss, deepseek, large;

static int load(void **state)
{
    (void)state;
    return model_load(&model, "llama3.1-8b", NULL) < 0 ||
                   model_load(&scout, "llama4-scout", NULL) < 0 ||
                   model_load(&oss, "gpt-oss-120b", NULL) < 0 ||
                   model_load(&deepseek, "deepseek-v3", NULL) < 0 ||
                   model_load(&large, "llama3.1-405b", NULL) < 0
               ? -1
               : 0;
}

static int unload(void **state)
{
    (void)state;
    model_free(&model);
    model_free(&scout);
    model_free(&oss);
    model_free(&deepseek);
    model_free(&large);
    return 0;
}

/* The same for any model, recipe as it is; batch in microbatches. */
static void make_of(struct traffic *t, struct layout *l, struct recipe *r, const struct model *m,
                    const char *text, int microbatches)
{
    struct err err = {.text = ""};

    assert_int_equal(layout_parse(l, text, (enum strategy)r->strategy, ORDER_MEGATRON, 0, NULL), 0);
    r->global_batch =
        microbatches * l->size[AXIS_DP_SHARD] * l->size[AXIS_DP_REPLICATE] * r->micro_batch;
    if (layout_check(l, m, r, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    traffic_of(t, m, l, r);
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

/* Sum of S * count over the messages of that label, and how many there are of them. */
static double sum_label(const struct traffic *t, const char *label, double *count)
{
    double bytes = 0;

    *count = 0;
    for (int i = 0; i < t->messages; i++)
        if (!strcmp(t->message[i].label, label)) {
            bytes += t->message[i].bytes * t->message[i].count;
            *count += t->message[i].count;
        }
    return bytes;
}

static void assert_label(const struct traffic *t, const char *label, double bytes, double count)
{
    double have_count, have = sum_label(t, label, &have_count);

    if (!(have_count > count * (1 - 1e-9) && have_count < count * (1 + 1e-9)))
        fail_msg("%s: %.12g messages, not %.12g", label, have_count, count);
    if (!(have > bytes * (1 - 1e-9) && have < bytes * (1 + 1e-9)))
        fail_msg("%s: %.12g bytes, not %.12g", label, have, bytes);
}

static void assert_none(const struct traffic *t, const char *label)
{
    double count;

    sum_label(t, label, &count);
    assert_float_equal(count, 0, 0);
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

static double wire(const struct traffic *t)
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
        assert_true(wire(&t) > last);
        last = wire(&t);
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
    double zero1 = wire(&a);
    make(&b, &l, &r, "dp=8", STRATEGY_DDP, 4);
    assert_float_equal(wire(&b) / zero1, 1, 1e-12);
}

static void hsdp_replicas_reduce_only_their_shard(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "dp_replicate=4,dp_shard=8", STRATEGY_HSDP, 2);
    assert_float_equal(sum(&t, OP_ALL_REDUCE, AXIS_BIT(AXIS_DP_REPLICATE)) / (psi() / 8 * 4 * 2), 1,
                       1e-9);
    assert_float_equal(sum(&t, OP_ALL_GATHER, AXIS_BIT(AXIS_DP_SHARD)) / (psi() * 2 * 2 * 2), 1,
                       1e-9);
    assert_float_equal(sum(&t, OP_ALL_REDUCE, 0),
                       sum(&t, OP_ALL_REDUCE, AXIS_BIT(AXIS_DP_REPLICATE)), 0);
}

/* 2 halves of a layer: 1 + 2 all_gather and 1 + 1 reduce_scatter each. */
static void tensor_parallel_moves_ten_activations_per_layer(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_label(&t, "tp all_gather", 6 * unit * 32 * 3, 6 * 32 * 3);
    assert_label(&t, "tp reduce_scatter", 4 * unit * 32 * 3, 4 * 32 * 3);
    assert_label(&t, "tp all_gather of embedding and head", 3 * unit * 3, 3 * 3);
    assert_label(&t, "tp reduce_scatter of embedding and head", 2 * unit * 3, 2 * 3);
    assert_label(&t, "tp all_reduce of loss", 3 * 8192 * 4 * 3, 3 * 3);
    r.recompute = RECOMPUTE_FULL;
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_label(&t, "tp all_gather", 8 * unit * 32 * 3, 8 * 32 * 3);
    assert_label(&t, "tp reduce_scatter", 6 * unit * 32 * 3, 6 * 32 * 3);
}

/* Frozen weights need no gathered input again for their gradients. */
static void tensor_parallel_of_frozen_weights_gathers_less(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

    (void)state;
    recipe_defaults(&r);
    r.lora = LORA_ALL;
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 1);
    assert_label(&t, "tp all_gather", 4 * unit * 32, 4 * 32);
    assert_label(&t, "tp reduce_scatter", 4 * unit * 32, 4 * 32);
    assert_label(&t, "tp all_gather of embedding and head", unit, 1);
}

static void without_sequence_parallelism_tensor_parallel_reduces(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

    (void)state;
    recipe_defaults(&r);
    r.sequence_parallel = false;
    make(&t, &l, &r, "tp=8,pp=2", STRATEGY_ZERO1, 2);
    assert_label(&t, "tp all_reduce", 4 * unit * 16 * 2, 4 * 16 * 2);
    assert_none(&t, "tp all_gather");
    assert_none(&t, "tp reduce_scatter");
    assert_label(&t, "pp sendrecv", unit * 2 * 2, 2 * 2);
}

/* DeepSeek-V3: latents of 1536 + 512 + 64 are gathered; the dense MLP of the first 3 layers and the
 * shared expert of the others are halves of their own, the routed experts are not. */
static void latent_attention_gathers_latents(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    r.seq = 4096;
    r.strategy = STRATEGY_ZERO1;
    make_of(&t, &l, &r, &deepseek, "tp=2,dp=2", 5);
    assert_label(&t, "tp all_gather of latents", 2 * 4096.0 * 2112 * 2 * 61 * 5, 2 * 61 * 5);
    assert_label(&t, "tp reduce_scatter of latents", 4096.0 * 2112 * 2 * 61 * 5, 61 * 5);
    assert_label(&t, "tp all_gather", (1 + 3) * 4096.0 * 7168 * 2 * 61 * 5, 4 * 61 * 5);
    assert_label(&t, "tp reduce_scatter", (1 + 2) * 4096.0 * 7168 * 2 * 61 * 5, 3 * 61 * 5);
}

/* 80 tokens' worth of all_to_all: 1 expert of 16 each, micro batch 10, 48 layers, bf16. */
static void scout_sends_161_gigabytes_to_experts(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double half = 8192.0 * 10 * 5120 * 1 * 2 * 2 * 48;

    (void)state;
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

/* Products that are cut up hide the messages of layers, never those of the ends. */
static void tensor_messages_are_exposed_as_the_recipe_overlaps_them(void **state)
{
    static const struct {
        int overlap;
        bool sequence;
        enum exposure layer;
    } cases[] = {{TP_OVERLAP_STACK, true, EXPOSE_TP},
                 {TP_OVERLAP_ON, true, EXPOSE_TP},
                 {TP_OVERLAP_OFF, true, EXPOSE_TP_PLAIN},
                 {TP_OVERLAP_STACK, false, EXPOSE_TP_PLAIN}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct traffic t;
        struct layout l;
        struct recipe r;
        int layers = 0, ends = 0;
        recipe_defaults(&r);
        r.tp_overlap = cases[i].overlap;
        r.sequence_parallel = cases[i].sequence;
        make_of(&t, &l, &r, &model, "tp=8", 1);
        for (int k = 0; k < t.messages; k++) {
            bool end = strstr(t.message[k].label, " of ") != NULL;
            assert_int_equal(t.message[k].exposure, end ? EXPOSE_TP_PLAIN : cases[i].layer);
            *(end ? &ends : &layers) += 1;
        }
        assert_int_equal(layers, cases[i].sequence ? 2 : 1);
        assert_int_equal(ends, cases[i].sequence ? 3 : 2);
    }
}

static void dispatch_in_fp8_halves_its_bytes(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double one = 4096.0 / 2 * 7168 * 8;

    (void)state;
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
static void experts_shared_out_by_columns_gather_their_tokens(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double tokens = 8192.0 / 2 * 4 * 2880 * 2;

    (void)state;
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
static void a_kernel_sends_a_token_once_to_a_rank_and_once_into_a_domain(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    const struct routing route = {.ranks = 64, .experts = 128, .topk = 4};
    double rank = 64 * (1 - 124.0 * 123 / (128.0 * 127));
    double domain = 8 * (1 - 112.0 * 111 * 110 * 109 / (128.0 * 127 * 126 * 125));

    (void)state;
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
static void limited_groups_bound_the_domains_of_a_token(void **state)
{
    const struct routing route = {
        .ranks = 64, .experts = 256, .topk = 8, .groups = 8, .groups_max = 4};
    const struct routing free_route = {.ranks = 64, .experts = 256, .topk = 8};
    double none = 1;

    (void)state;
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

/* Dense parameters go over dp x cp, routed experts over what ep leaves of it. */
static void dense_and_expert_parameters_are_all_there(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct params p;
    double n;

    (void)state;
    model_params(&scout, &p);
    recipe_defaults(&r);
    make_of(&t, &l, &r, &scout, "dp=32,cp=2,ep=16", 1);
    assert_float_equal(sum_label(&t, "weights all_gather forward", &n) / ((p.total - p.expert) * 2),
                       1, 1e-9);
    assert_float_equal(n, 48, 0);
    assert_float_equal(
        sum_label(&t, "experts' weights all_gather backward", &n) / (p.expert / 16 * 2), 1, 1e-9);
    assert_float_equal(sum_label(&t, "experts' gradients reduce_scatter", &n) / (p.expert / 16 * 4),
                       1, 1e-9);
    assert_float_equal(sum(&t, OP_REDUCE_SCATTER, AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_CP)) /
                           ((p.total - p.expert) * 4),
                       1, 1e-9);
    for (int i = 0; i < t.messages; i++)
        if (!strcmp(t.message[i].label, "experts' gradients reduce_scatter")) {
            assert_int_equal(t.message[i].span.size, 4);
            assert_int_equal(t.message[i].span.stride, 16);
        }
}

static void replicas_of_experts_reduce_their_shards(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct params p;
    double n;

    (void)state;
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

/* Parameters of the ranks of one pipeline add up to the model's. */
static void assert_all_held(const struct model *m, const char *text, struct recipe *r)
{
    struct layout l;
    struct params p;
    double dense = 0, expert = 0, layers = 0;

    assert_int_equal(layout_parse(&l, text, (enum strategy)r->strategy, ORDER_MEGATRON, 0, NULL),
                     0);
    r->global_batch = 0;
    assert_int_equal(layout_check(&l, m, r, NULL), 0);
    model_params(m, &p);
    for (int i = 0; i < l.size[AXIS_PP]; i++) {
        struct pipe_stage s;
        struct held h;
        layout_stage(&s, &l, m, r, i);
        traffic_held(&h, m, &l, r, &s);
        dense += h.dense * l.size[AXIS_TP];
        expert += h.expert * l.size[AXIS_EP] * l.size[AXIS_ETP];
        layers += h.layers;
    }
    double extra = r->mtp ? mtp_params(m) : 0;
    double both = r->schedule == SCHEDULE_DUALPIPE ? 2 : 1;
    assert_float_equal((dense + expert) / both / (p.total + extra), 1, 1e-9);
    assert_float_equal(layers / both, m->layers + (r->mtp ? m->mtp.count : 0), 1e-6);
}

static void stages_hold_the_whole_model(void **state)
{
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    r.strategy = STRATEGY_ZERO1;
    assert_all_held(&model, "tp=4,dp=2", &r);
    assert_all_held(&large, "tp=8,pp=16,dp=2", &r);
    assert_all_held(&deepseek, "tp=2,pp=8,dp=32,ep=64", &r);
    r.mtp = true;
    assert_all_held(&deepseek, "pp=4,dp=32,ep=32", &r);
    r.schedule = SCHEDULE_DUALPIPE;
    assert_all_held(&deepseek, "pp=16,dp=8,ep=8", &r);
    recipe_defaults(&r);
    r.stages = 4;
    assert_all_held(&deepseek, "pp=4,dp=32,ep=32", &r);
    assert_all_held(&oss, "pp=8,dp=32,ep=32", &r);
}

/* 16 of the 58 layers with 256 experts of 3 h f, over ep = 32; on average over stages
 * 5.1e9 parameters. */
static void deepseek_on_four_stages_holds_five_billion_expert_parameters(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct held h;
    struct params p;
    double n;

    (void)state;
    recipe_defaults(&r);
    r.strategy = STRATEGY_ZERO1;
    r.seq = 4096;
    r.stages = 4;
    make_of(&t, &l, &r, &deepseek, "pp=4,dp=512,ep=32", 32);
    traffic_held(&h, &deepseek, &l, &r, &t.stage);
    assert_float_equal(h.expert, 16 * 256 * 3.0 * 7168 * 2048 / 32, 1);
    assert_float_equal(h.expert_layers, 16, 0);
    model_params(&deepseek, &p);
    assert_float_equal(p.expert / 32 / 4 / 1e9, 5.1, 0.02);
    assert_float_equal(sum_label(&t, "experts' gradients reduce_scatter", &n) / (h.expert * 2), 1,
                       1e-9);
    assert_float_equal(traffic_states(&h, &l, &r), h.dense / 512 + h.expert / 16, 1);
    assert_label(&t, "pp sendrecv", 4096.0 * 7168 * 2 * 2 * 4 * 32, 2 * 4 * 32);
}

/* Llama 3.1 405B over 16 GPUs, 8 a node: a node receives 47.8 GB for a layer, an eighth of which
 * crosses each link of a ring. */
static void a_layer_of_405b_is_48_gigabytes_for_a_node(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct params p;
    double n;

    (void)state;
    recipe_defaults(&r);
    r.lora = LORA_ALL;
    r.seq = 2048;
    make_of(&t, &l, &r, &large, "dp=16", 2);
    model_params(&large, &p);
    double layer = layer_params(&large, &large.layer[0]) * 2;
    assert_float_equal(layer * 15 / 16 * 8 / 1e9, 47.8, 0.05);
    assert_float_equal(layer * 15 / 16 / 1e9, 5.98, 0.005);
    double adapters = model_lora_params(&large, 16, true);
    /* the frozen base is gathered for both passes, only adapters have gradients */
    assert_float_equal(
        sum_label(&t, "weights all_gather forward", &n) / ((p.total + adapters) * 2 * 2), 1, 1e-9);
    assert_float_equal(n, 126 * 2, 0);
    assert_label(&t, "gradients reduce_scatter", adapters * 4 * 2, 126 * 2);
}

static void frozen_weights_have_no_gradients(void **state)
{
    static const struct {
        enum strategy strategy;
        const char *label[2];
    } row[] = {{STRATEGY_DDP, {"gradients all_reduce", NULL}},
               {STRATEGY_ZERO1, {"gradients reduce_scatter", "weights all_gather"}},
               {STRATEGY_ZERO2, {"gradients reduce_scatter", "weights all_gather"}}};
    double adapters = model_lora_params(&model, 16, false) * 2;

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct traffic t;
        struct layout l;
        struct recipe r;
        recipe_defaults(&r);
        r.lora = LORA_ATTENTION;
        make(&t, &l, &r, "dp=8", row[i].strategy, 1);
        assert_int_equal(t.messages, row[i].label[1] ? 2 : 1);
        for (int k = 0; k < t.messages; k++)
            assert_label(&t, row[i].label[k], adapters, 1);
    }
}

static void kept_weights_are_gathered_once(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double n;

    (void)state;
    recipe_defaults(&r);
    r.reshard = false;
    make(&t, &l, &r, "dp=8", STRATEGY_FSDP, 4);
    assert_float_equal(sum(&t, OP_ALL_GATHER, 0) / (psi() * 2 * 4), 1, 1e-9);
    /* a pipeline keeps them for the whole step and reduces after its last microbatch */
    make(&t, &l, &r, "pp=2,dp=8", STRATEGY_FSDP, 4);
    struct held h;
    traffic_held(&h, &model, &l, &r, &t.stage);
    assert_float_equal(sum_label(&t, "weights all_gather", &n) / (h.dense * 2), 1, 1e-9);
    assert_float_equal(n, 16, 0);
    assert_float_equal(sum_label(&t, "gradients reduce_scatter", &n) / (h.dense * 4), 1, 1e-9);
}

static void tensor_parallel_ranks_hold_and_sync_their_share(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "tp=4,pp=2,dp=2", STRATEGY_ZERO1, 8);
    /* the second stage: 16 layers, last norm and head */
    double held = (layer_params(&model, &model.layer[0]) * 16 + 4096 + 4096.0 * 128256) / 4;
    assert_float_equal(sum(&t, OP_REDUCE_SCATTER, AXIS_BIT(AXIS_DP_SHARD)) / (held * 2), 1, 1e-9);
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

static void recomputed_attention_passes_keys_around_again(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    r.recompute = RECOMPUTE_SELECTIVE;
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_label(&t, "cp ring", 2.0 * 8 * 128 * (8192 / 4) * 2 / 2 * 4 * 3 * 32, 4 * 3 * 32);
}

static void ulysses_exchanges_heads_and_sequence(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double tokens = 8192.0 / 4 * 128 * 2;

    (void)state;
    recipe_defaults(&r);
    r.context = CONTEXT_ULYSSES;
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_label(&t, "cp all_to_all of queries and outputs", tokens * 16 * 4 * 32, 4 * 32);
    assert_label(&t, "cp all_to_all of keys and values", tokens * 4 * 4 * 32, 4 * 32);
}

static void gathered_context_moves_all_keys_and_values(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    r.context = CONTEXT_GATHER;
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_label(&t, "cp all_gather of keys and values", 2.0 * 4 * 128 * 8192 * 2 * 2 * 32, 2 * 32);
    assert_label(&t, "cp reduce_scatter of their gradients", 2.0 * 4 * 128 * 8192 * 2 * 32, 32);
}

/* 128 heads: keys of 192, values of 128 after the projection up. */
static void latent_attention_passes_whole_heads_around(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    make_of(&t, &l, &r, &deepseek, "cp=2,dp=2", 1);
    assert_label(&t, "cp ring", 128.0 * (192 + 128) * 4096 * 2 * 3 * 61, 3 * 61);
}

/* 64 kinds of layers that each send another size: the list holds, and no byte is lost. */
static void many_kinds_of_layers_share_messages(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct model many = scout;
    struct layer kind[MODEL_KINDS_MAX];
    double want = 0;

    (void)state;
    for (int i = 0; i < MODEL_KINDS_MAX; i++) {
        kind[i] = scout.layer[0];
        kind[i].count = 1;
        kind[i].mlp.topk = 1 + i % 16;
        kind[i].attention.head_dim = 128 + i;
        want += 8192.0 / 2 * 5120 * 2 * kind[i].mlp.topk * 2;
    }
    many.layer = kind;
    many.kinds = many.layers = MODEL_KINDS_MAX;
    recipe_defaults(&r);
    make_of(&t, &l, &r, &many, "dp=8,cp=2,ep=16", 1);
    assert_label(&t, "ep dispatch", want, 2 * MODEL_KINDS_MAX);
    assert_true(t.messages <= TRAFFIC_MAX);
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
        cmocka_unit_test(tensor_parallel_of_frozen_weights_gathers_less),
        cmocka_unit_test(without_sequence_parallelism_tensor_parallel_reduces),
        cmocka_unit_test(latent_attention_gathers_latents),
        cmocka_unit_test(scout_sends_161_gigabytes_to_experts),
        cmocka_unit_test(tensor_messages_are_exposed_as_the_recipe_overlaps_them),
        cmocka_unit_test(dispatch_in_fp8_halves_its_bytes),
        cmocka_unit_test(experts_shared_out_by_columns_gather_their_tokens),
        cmocka_unit_test(a_kernel_sends_a_token_once_to_a_rank_and_once_into_a_domain),
        cmocka_unit_test(limited_groups_bound_the_domains_of_a_token),
        cmocka_unit_test(dense_and_expert_parameters_are_all_there),
        cmocka_unit_test(replicas_of_experts_reduce_their_shards),
        cmocka_unit_test(stages_hold_the_whole_model),
        cmocka_unit_test(deepseek_on_four_stages_holds_five_billion_expert_parameters),
        cmocka_unit_test(a_layer_of_405b_is_48_gigabytes_for_a_node),
        cmocka_unit_test(frozen_weights_have_no_gradients),
        cmocka_unit_test(kept_weights_are_gathered_once),
        cmocka_unit_test(tensor_parallel_ranks_hold_and_sync_their_share),
        cmocka_unit_test(a_pipeline_sends_two_messages_per_chunk_and_microbatch),
        cmocka_unit_test(context_parallel_sends_keys_and_values_around_the_ring),
        cmocka_unit_test(recomputed_attention_passes_keys_around_again),
        cmocka_unit_test(ulysses_exchanges_heads_and_sequence),
        cmocka_unit_test(gathered_context_moves_all_keys_and_values),
        cmocka_unit_test(latent_attention_passes_whole_heads_around),
        cmocka_unit_test(many_kinds_of_layers_share_messages),
        cmocka_unit_test(one_rank_sends_nothing),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
