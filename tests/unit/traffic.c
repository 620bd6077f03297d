/* SPDX-License-Identifier: BSD-3-Clause */
#include "messages.h"

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
        struct step s;
        struct pipe_stage h;
        step_of(&s, m, &l, r);
        step_stage(&h, &s, i);
        dense += h.dense * l.size[AXIS_TP];
        expert += h.expert * l.size[AXIS_EP] * l.size[AXIS_ETP];
        layers += h.held;
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
/* States over the 8 GPUs of a node (InternEvo's zero1=8): gradients are scattered there, their shards
 * reduced over the 4 nodes, and weights gathered in the node.  Llama 3.1 8B in bf16. */
static void zero1_within_a_node_gathers_no_weights_between_nodes(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct step s;
    double n;

    (void)state;
    recipe_defaults(&r);
    make(&t, &l, &r, "dp_shard=8,dp_replicate=4", STRATEGY_ZERO1, 2);
    assert_float_equal(sum_label(&t, "gradients reduce_scatter", &n) / (psi() * 2), 1, 1e-9);
    assert_float_equal(sum_label(&t, "gradients all_reduce of shards", &n) / (psi() / 8 * 2), 1,
                       1e-9);
    assert_float_equal(sum_label(&t, "weights all_gather", &n) / (psi() * 2), 1, 1e-9);
    for (int i = 0; i < t.messages; i++) {
        bool between = !strcmp(t.message[i].label, "gradients all_reduce of shards");
        assert_int_equal(t.message[i].span.size, between ? 4 : 8);
        assert_int_equal(t.message[i].span.stride, between ? 8 : 1);
    }
    step_of(&s, &model, &l, &r);
    assert_float_equal(s.updated / (psi() / 8), 1, 1e-9);
    make(&t, &l, &r, "dp_shard=32", STRATEGY_ZERO1, 2);
    step_of(&s, &model, &l, &r);
    assert_float_equal(s.updated / (psi() / 32), 1, 1e-9);
}

/* 8 ranks of cp as all_to_all in pairs and a ring of 4: one layer passes keys and values of its
 * 1024 tokens, 8 heads of 128, 3 times forward and 6 times backward, and swaps queries and outputs
 * of 32 heads twice forward and twice backward. */
static void ulysses_inside_a_ring_takes_hops_from_it(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double n, kv = 1024 * 8 * 2 * 128 * 2.0, q = 1024 * 32 * 128 * 2.0;

    (void)state;
    recipe_defaults(&r);
    r.ulysses = 2;
    make(&t, &l, &r, "cp=8", STRATEGY_ZERO1, 1);
    assert_float_equal(sum_label(&t, "cp ring", &n) / (kv * 9 * 32), 1, 1e-9);
    assert_float_equal(sum_label(&t, "cp all_to_all of queries and outputs", &n) / (q * 4 * 32), 1,
                       1e-9);
    assert_float_equal(sum_label(&t, "cp all_to_all of keys and values", &n) / (kv / 2 * 4 * 32), 1,
                       1e-9);
    for (int i = 0; i < t.messages; i++) {
        const struct message *m = &t.message[i];
        if (strstr(m->label, "cp all_to_all"))
            assert_true(m->span.size == 2 && m->span.stride == 1);
        if (strstr(m->label, "cp ring"))
            assert_true(m->span.size == 4 && m->span.stride == 2);
    }
    r.ulysses = 0;
    make(&t, &l, &r, "cp=8", STRATEGY_ZERO1, 1);
    assert_float_equal(sum_label(&t, "cp ring", &n) / (kv * 21 * 32), 1, 1e-9);
}

static void deepseek_on_four_stages_holds_five_billion_expert_parameters(void **state)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    struct step s;
    struct params p;
    double n;

    (void)state;
    recipe_defaults(&r);
    r.strategy = STRATEGY_ZERO1;
    r.seq = 4096;
    r.stages = 4;
    make_of(&t, &l, &r, &deepseek, "pp=4,dp=512,ep=32", 32);
    step_of(&s, &deepseek, &l, &r);
    const struct pipe_stage h = s.stage[s.slowest];
    assert_float_equal(h.expert, 16 * 256 * 3.0 * 7168 * 2048 / 32, 1);
    assert_float_equal(h.held_experts, 16, 0);
    model_params(&deepseek, &p);
    assert_float_equal(p.expert / 32 / 4 / 1e9, 5.1, 0.02);
    assert_float_equal(sum_label(&t, "experts' gradients reduce_scatter", &n) / (h.expert * 2), 1,
                       1e-9);
    assert_float_equal(s.updated, h.dense / 512 + h.expert / 16, 1);
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
    double layer = large.layer[0].sums.total * 2;
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
    struct step s;
    step_of(&s, &model, &l, &r);
    const struct pipe_stage h = s.stage[s.slowest];
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
    double held = (model.layer[0].sums.total * 16 + 4096 + 4096.0 * 128256) / 4;
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
        cmocka_unit_test(dense_and_expert_parameters_are_all_there),
        cmocka_unit_test(stages_hold_the_whole_model),
        cmocka_unit_test(deepseek_on_four_stages_holds_five_billion_expert_parameters),
        cmocka_unit_test(a_layer_of_405b_is_48_gigabytes_for_a_node),
        cmocka_unit_test(zero1_within_a_node_gathers_no_weights_between_nodes),
        cmocka_unit_test(ulysses_inside_a_ring_takes_hops_from_it),
        cmocka_unit_test(frozen_weights_have_no_gradients),
        cmocka_unit_test(kept_weights_are_gathered_once),
        cmocka_unit_test(tensor_parallel_ranks_hold_and_sync_their_share),
        cmocka_unit_test(a_pipeline_sends_two_messages_per_chunk_and_microbatch),
        cmocka_unit_test(many_kinds_of_layers_share_messages),
        cmocka_unit_test(one_rank_sends_nothing),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
