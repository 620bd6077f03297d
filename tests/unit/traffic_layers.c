/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic_layers.c - messages inside a layer: tensor and context parallelism. */
#include "messages.h"
#include "test.h"

/* 2 halves of a layer: 1 + 2 all_gather and 1 + 1 reduce_scatter each. */
TEST(tensor_parallel_moves_ten_activations_per_layer)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

    recipe_defaults(&r);
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_label(&t, "tp all_gather", 6 * unit * 32 * 3, 6 * 32 * 3);
    assert_label(&t, "tp reduce_scatter", 4 * unit * 32 * 3, 4 * 32 * 3);
    assert_label(&t, "tp all_gather of embedding and head", 3 * unit * 3, 3 * 3);
    assert_label(&t, "tp reduce_scatter of embedding and head", 2 * unit * 3, 2 * 3);
    assert_label(&t, "tp all_reduce of loss", 3 * 8192 * 4 * 3, 3 * 3);
    r.loss_parallel = false;
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_label(&t, "tp all_gather of logits", 8192.0 * 128256 * 2 * 3, 3);
    r.recompute = RECOMPUTE_FULL;
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 3);
    assert_label(&t, "tp all_gather", 8 * unit * 32 * 3, 8 * 32 * 3);
    assert_label(&t, "tp reduce_scatter", 6 * unit * 32 * 3, 6 * 32 * 3);
}

/* Frozen weights need no gathered input again for their gradients. */
TEST(tensor_parallel_of_frozen_weights_gathers_less)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

    recipe_defaults(&r);
    r.lora = LORA_ALL;
    make(&t, &l, &r, "tp=8", STRATEGY_FSDP, 1);
    assert_label(&t, "tp all_gather", 4 * unit * 32, 4 * 32);
    assert_label(&t, "tp reduce_scatter", 4 * unit * 32, 4 * 32);
    assert_label(&t, "tp all_gather of embedding and head", unit, 1);
}

TEST(without_sequence_parallelism_tensor_parallel_reduces)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double unit = 8192.0 * 4096 * 2;

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
TEST(latent_attention_gathers_latents)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    recipe_defaults(&r);
    r.seq = 4096;
    r.strategy = STRATEGY_ZERO1;
    make_of(&t, &l, &r, &deepseek, "tp=2,dp=2", 5);
    assert_label(&t, "tp all_gather of latents", 2 * 4096.0 * 2112 * 2 * 61 * 5, 2 * 61 * 5);
    assert_label(&t, "tp reduce_scatter of latents", 4096.0 * 2112 * 2 * 61 * 5, 61 * 5);
    assert_label(&t, "tp all_gather", (1 + 3) * 4096.0 * 7168 * 2 * 61 * 5, 4 * 61 * 5);
    assert_label(&t, "tp reduce_scatter", (1 + 2) * 4096.0 * 7168 * 2 * 61 * 5, 3 * 61 * 5);
}

/* Products that are cut up hide the messages of layers, never those of the ends. */
TEST(tensor_messages_are_exposed_as_the_recipe_overlaps_them)
{
    static const struct {
        int overlap;
        bool sequence;
        enum exposure layer;
    } cases[] = {{TP_OVERLAP_STACK, true, EXPOSE_TP},
                 {TP_OVERLAP_ON, true, EXPOSE_TP},
                 {TP_OVERLAP_OFF, true, EXPOSE_TP_PLAIN},
                 {TP_OVERLAP_STACK, false, EXPOSE_TP_PLAIN}};

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

TEST(context_parallel_sends_keys_and_values_around_the_ring)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    recipe_defaults(&r);
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_float_equal(sum(&t, OP_SENDRECV, AXIS_BIT(AXIS_CP)) /
                           (2.0 * 8 * 128 * (8192 / 4) * 2 / 2 * 3 * 3 * 32),
                       1, 1e-9);
}

TEST(recomputed_attention_passes_keys_around_again)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    recipe_defaults(&r);
    r.recompute = RECOMPUTE_SELECTIVE;
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_label(&t, "cp ring", 2.0 * 8 * 128 * (8192 / 4) * 2 / 2 * 4 * 3 * 32, 4 * 3 * 32);
}

TEST(ulysses_exchanges_heads_and_sequence)
{
    struct traffic t;
    struct layout l;
    struct recipe r;
    double tokens = 8192.0 / 4 * 128 * 2;

    recipe_defaults(&r);
    r.context = CONTEXT_ULYSSES;
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_label(&t, "cp all_to_all of queries and outputs", tokens * 16 * 4 * 32, 4 * 32);
    assert_label(&t, "cp all_to_all of keys and values", tokens * 4 * 4 * 32, 4 * 32);
}

TEST(gathered_context_moves_all_keys_and_values)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    recipe_defaults(&r);
    r.context = CONTEXT_GATHER;
    make(&t, &l, &r, "cp=4,tp=2", STRATEGY_FSDP, 1);
    assert_label(&t, "cp all_gather of keys and values", 2.0 * 4 * 128 * 8192 * 2 * 2 * 32, 2 * 32);
    assert_label(&t, "cp reduce_scatter of their gradients", 2.0 * 4 * 128 * 8192 * 2 * 32, 32);
}

/* 128 heads: keys of 192, values of 128 after the projection up. */
TEST(latent_attention_passes_whole_heads_around)
{
    struct traffic t;
    struct layout l;
    struct recipe r;

    recipe_defaults(&r);
    make_of(&t, &l, &r, &deepseek, "cp=2,dp=2", 1);
    assert_label(&t, "cp ring", 128.0 * (192 + 128) * 4096 * 2 * 3 * 61, 3 * 61);
}

TEST_GROUP(load, unload)
