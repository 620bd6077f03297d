/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/model.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#include "base/file.h"

TEST(flops_without_a_causal_mask_are_what_mlperf_states_for_405b)
{
    struct model m;
    struct flops f;

    assert_int_equal(model_load(&m, "llama3.1-405b", NULL), 0);
    model_flops(&m, 8192, false, &f);
    /* MODEL_TFLOP_PER_SAMPLE=21508 at 8192 tokens */
    assert_float_equal(flops_total(&f) * 8192 / 1e12 / 21508, 1, 0.006);
    model_free(&m);
}

TEST(only_core_flops_grow_with_the_sequence)
{
    struct model m;
    struct flops a, b;

    assert_int_equal(model_load(&m, "llama3.1-8b", NULL), 0);
    model_flops(&m, 4096, true, &a);
    model_flops(&m, 8192, true, &b);
    assert_float_equal(b.core, 2 * a.core, 1);
    assert_float_equal(b.linear, a.linear, 0);
    model_free(&m);
}

#define HEAD                                                                                       \
    "{\"format\":\"railgauge-model\",\"version\":1,\"name\":\"x\",\"title\":\"X\",\"source\":"     \
    "\"s\","
#define SIZE "\"hidden\":64,\"vocab\":100,\"tied_embeddings\":true,"
#define ATTN "\"attention\":{\"kind\":\"gqa\",\"heads\":8,\"kv_heads\":2,\"head_dim\":8}"
#define MLP "\"mlp\":{\"kind\":\"plain\",\"ffn\":256}"

static int load_text(struct model *m, const char *text, struct err *err)
{
    char path[] = "/tmp/model-XXXXXX.json";
    int fd = mkstemps(path, 5);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int rc = model_load(m, path, err);
    unlink(path);
    return rc;
}

TEST(a_tied_model_counts_its_table_once)
{
    struct model m;
    struct params p;
    struct err err;

    assert_int_equal(load_text(&m, HEAD SIZE "\"layers\":[{\"count\":2," ATTN "," MLP "}]}", &err),
                     0);
    model_params(&m, &p);
    assert_float_equal(p.embedding, 6400, 0);
    assert_float_equal(p.total, 6400 + 64 + 2 * (64 * 8 * 20 + 2 * 64 * 256 + 128), 0);
    assert_int_equal(m.layers, 2);
    model_free(&m);
}

/* One layer between 64 wide streams, in a file whose table is tied: 6400 for the table, 64 for the
 * last norm, and 64 for the norm of each half. */
#define ONE(attention, mlp)                                                                        \
    HEAD SIZE "\"layers\":[{\"count\":1,\"attention\":" attention ",\"mlp\":" mlp "}]}"
#define GQA "{\"kind\":\"gqa\",\"heads\":8,\"kv_heads\":2,\"head_dim\":16}"
#define MLA                                                                                        \
    "{\"kind\":\"mla\",\"heads\":4,\"q_rank\":24,\"kv_rank\":12,\"nope_dim\":10,\"rope_dim\":6,"   \
    "\"v_dim\":14}"
#define MAMBA                                                                                      \
    "{\"kind\":\"mamba2\",\"heads\":8,\"head_dim\":16,\"state\":20,\"groups\":2,\"conv\":4}"
#define CSA                                                                                        \
    "\"kind\":\"csa\",\"heads\":8,\"head_dim\":10,\"window\":10,\"q_rank\":24,\"o_rank\":7,"       \
    "\"o_groups\":4"
#define CSA_PARAMS (64 * 24 + 24 * 80 + 64 * 10 + 80 * 7 + 28 * 64)
#define NONE "{\"kind\":\"none\"}"

static const struct {
    const char *text;
    double layer, active, expert; /* parameters, norms and vectors left to `rest` */
    double rest, core;            /* core: FLOPs per token at 100 tokens, causal */
} hand[] = {
    {ONE(GQA, NONE), 64 * 16 * (8 + 2 + 2 + 8), 64 * 16 * 20, 0, 64, 6 * 50. * 8 * (16 + 16)},
    {ONE("{\"kind\":\"gqa\",\"heads\":8,\"kv_heads\":2,\"head_dim\":16,\"window\":10,\"bias\":"
         "true}",
         NONE),
     64 * 16 * 20 + (128 + 32 + 32 + 64), 64 * 16 * 20 + 256, 0, 64,
     6 * (10 * 0.95) * 8 * (16 + 16)},
    {ONE(MLA, NONE), 64 * 24 + 24 * 4 * 16 + 64 * (12 + 6) + 12 * 4 * (10 + 14) + 4 * 14 * 64,
     64 * 24 + 24 * 4 * 16 + 64 * (12 + 6) + 12 * 4 * (10 + 14) + 4 * 14 * 64, 0, 64 + 24 + 12,
     6 * 50. * 4 * (16 + 14)},
    {ONE("{\"kind\":\"mla\",\"heads\":4,\"kv_rank\":12,\"nope_dim\":10,\"rope_dim\":6,\"v_dim\":"
         "14}",
         NONE),
     64 * 4 * 16 + 64 * (12 + 6) + 12 * 4 * (10 + 14) + 4 * 14 * 64,
     64 * 4 * 16 + 64 * (12 + 6) + 12 * 4 * (10 + 14) + 4 * 14 * 64, 0, 64 + 12,
     6 * 50. * 4 * (16 + 14)},
    {ONE("{" CSA "}", NONE), CSA_PARAMS, CSA_PARAMS, 0, 64 + 24 + 10, 6 * 9.5 * 8 * 20},
    {ONE("{" CSA ",\"ratio\":5}", NONE), CSA_PARAMS + 64 * 20, CSA_PARAMS + 64 * 20, 0,
     64 + 24 + 10, 6 * (9.5 + 10) * 8 * 20}, /* 20 groups of 5 tokens, half of them before */
    {ONE("{" CSA ",\"ratio\":5,\"index_heads\":3,\"index_dim\":6,\"index_topk\":10}", NONE),
     CSA_PARAMS + 64 * 40 + 64 * 24 + 24 * 18 + 64 * 3,
     CSA_PARAMS + 64 * 40 + 64 * 24 + 24 * 18 + 64 * 3, 0, 64 + 24 + 10,
     6 * (9.5 + 7.5) * 8 * 20 + 6 * 20 * 18}, /* at most 10 of the 20: 5 at first, 10 at last */
    {ONE(MAMBA, NONE), 64 * (2 * 128 + 2 * 2 * 20 + 8) + 128 * 64,
     64 * (2 * 128 + 2 * 2 * 20 + 8) + 128 * 64, 0, 64 + 128 + 3 * 8 + (128 + 80) * 5,
     3. * 7 * 128 * 20},
    {ONE(NONE, "{\"kind\":\"plain\",\"ffn\":100,\"bias\":true}"), 2 * 64 * 100 + 100 + 64,
     2 * 64 * 100 + 164, 0, 64, 0},
    {ONE(NONE, "{\"kind\":\"swiglu\",\"ffn\":100,\"experts\":6,\"topk\":2,\"shared_ffn\":30}"),
     64 * 6 + 6 * 3 * 64 * 100 + 3 * 64 * 30, 64 * 6 + 2 * 3 * 64 * 100 + 3 * 64 * 30,
     6 * 3 * 64 * 100, 64, 0},
    {ONE(NONE, "{\"kind\":\"plain\",\"ffn\":100,\"experts\":6,\"topk\":2,\"latent\":32,"
               "\"shared_ffn\":30}"),
     64 * 6 + 2 * 64 * 32 + 6 * 2 * 32 * 100 + 2 * 64 * 30,
     64 * 6 + 2 * 64 * 32 + 2 * 2 * 32 * 100 + 2 * 64 * 30, 6 * 2 * 32 * 100, 64, 0},
};

TEST(layers_of_every_kind_follow_hand_arithmetic)
{
    for (size_t i = 0; i < sizeof(hand) / sizeof(*hand); i++) {
        struct model m;
        struct params p;
        struct flops f;
        struct err err = {0};
        if (load_text(&m, hand[i].text, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        model_params(&m, &p);
        model_flops(&m, 100, true, &f);
        double once = 6400 + 64 + hand[i].rest;
        if (p.total != once + hand[i].layer || p.active != once + hand[i].active ||
            p.expert != hand[i].expert || fabs(f.core - hand[i].core) > 1e-6)
            fail_msg("case %zu: total %.0f, active %.0f, expert %.0f, core %.1f", i, p.total,
                     p.active, p.expert, f.core);
        assert_float_equal(f.head, 6 * 6400, 0);
        assert_float_equal(f.linear + f.head, 6 * p.matmul, 0);
        assert_float_equal(m.layer[0].sums.expert, hand[i].expert, 0);
        assert_float_equal(m.layer[0].sums.active, hand[i].active + hand[i].rest, 0);
        model_free(&m);
    }
}

/* Every token sees itself and at most 9 before it: counted one by one, and by the formula. */
TEST(a_window_counts_the_keys_under_it)
{
    static const int window[] = {10, 1000, 5000};
    double seen = 0;

    for (int token = 0; token < 1000; token++)
        seen += (token < 10 ? token + 1 : 10) / 1000.;
    for (int i = 0; i < 3; i++) {
        struct model m;
        struct flops f, full;
        char text[512];
        snprintf(text, sizeof(text),
                 HEAD SIZE "\"layers\":[{\"count\":1,\"attention\":{\"kind\":\"gqa\",\"heads\":8,"
                           "\"kv_heads\":2,\"head_dim\":16,\"window\":%d},\"mlp\":" NONE "}]}",
                 window[i]);
        assert_int_equal(load_text(&m, text, NULL), 0);
        model_flops(&m, 1000, true, &f);
        model_flops(&m, 1000, false, &full);
        assert_float_equal(f.core / (12 * 128.) / (i == 0 ? seen : 500.5), 1, 0.0015);
        assert_float_equal(full.core, 2 * f.core, 1e-6);
        model_free(&m);
    }
}

TEST(predicted_tokens_add_a_layer_a_join_and_the_head)
{
    struct model m;
    struct flops one, more;

    for (int shared = 0; shared < 2; shared++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "%s\"mtp\":{\"count\":2,\"shared\":%s,\"attention\":%s,\"mlp\":"
                 "%s},\"layers\":[{\"count\":3," ATTN "," MLP "}]}",
                 HEAD SIZE, shared ? "true" : "false", GQA, NONE);
        assert_int_equal(load_text(&m, text, NULL), 0);
        assert_int_equal(m.layers, 3);
        layer_flops(&m.mtp, 100, true, &one);
        mtp_flops(&m, 100, true, &more);
        assert_float_equal(more.linear, 2 * (one.linear + 6 * 2 * 64 * 64), 0);
        assert_float_equal(more.head, 2 * 6 * 6400, 0);
        assert_float_equal(more.core, 2 * one.core, 0);
        assert_float_equal(mtp_params(&m),
                           (shared ? 1 : 2) * (m.mtp.sums.total + 2 * 64 * 64 + 3 * 64), 0);
        model_free(&m);
    }
}

static const struct {
    const char *text, *says;
} bad[] = {
    {"{", "1:"},
    {"{\"format\":\"railgauge-matrix\",\"version\":1}", "\"railgauge-model\" is needed"},
    {HEAD SIZE "\"layers\":[]}", "\"layers\" is not a list of 1..64 kinds"},
    {HEAD SIZE "\"layers\":[{\"count\":0," ATTN "," MLP "}]}",
     "layers[0]: \"count\" is 0, outside"},
    {HEAD SIZE "\"layers\":[{\"count\":1.5," ATTN "," MLP "}]}",
     "\"count\" is 1.5, not a whole number"},
    {HEAD SIZE "\"layers\":[{\"count\":1," ATTN "," MLP ",\"x\":1}]}", "x"},
    {HEAD SIZE "\"layers\":[{\"count\":1," ATTN ",\"mlp\":{\"kind\":\"moe\",\"ffn\":8}}]}",
     "layers[0].mlp: kind \"moe\" is not known (known: swiglu, plain, none)"},
    {HEAD SIZE
     "\"layers\":[{\"count\":1,\"attention\":{\"kind\":\"gqa\",\"heads\":8,\"kv_heads\":3,"
     "\"head_dim\":8}," MLP "}]}",
     "8 heads cannot share 3 kv_heads evenly"},
    {HEAD SIZE
     "\"layers\":[{\"count\":1,\"attention\":{\"kind\":\"linear\",\"heads\":8,\"kv_heads\":3,"
     "\"head_dim\":8}," MLP "}]}",
     "layers[0].attention: kind \"linear\" is not known (known: gqa, mla, csa, mamba2, none)"},
    {HEAD "\"hidden\":-3,\"vocab\":100,\"tied_embeddings\":true,\"layers\":[{\"count\":1," ATTN
          "," MLP "}]}",
     "\"hidden\" is -3, outside"},
    {HEAD "\"hidden\":\"64\",\"vocab\":100,\"tied_embeddings\":true,\"layers\":[{\"count\":1," ATTN
          "," MLP "}]}",
     "\"hidden\" is not a number"},
};

/* config.json of Transformers: the keys that count, and the shipped model that is the same. */
static const struct {
    const char *shipped, *text;
} hf[] = {
    {"llama3.1-8b", "{\"model_type\":\"llama\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_"
                    "attention_heads\":32,"
                    "\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":128256,"
                    "\"rope_theta\":5e5}"},
    {"deepseek-v3",
     "{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"num_hidden_layers\":61,"
     "\"num_attention_heads\":128,\"num_key_value_heads\":128,\"intermediate_size\":18432,"
     "\"vocab_size\":129280,\"q_lora_rank\":1536,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,"
     "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"n_routed_experts\":256,\"num_experts_per_tok\":"
     "8,"
     "\"n_shared_experts\":1,\"moe_intermediate_size\":2048,\"first_k_dense_replace\":3,"
     "\"moe_layer_freq\":1,\"n_group\":8,\"topk_group\":4,\"num_nextn_predict_layers\":1,"
     "\"tie_word_embeddings\":false}"},
    {"gpt-oss-120b",
     "{\"architectures\":[\"GptOssForCausalLM\"],\"model_type\":\"gpt_oss\",\"hidden_size\":2880,"
     "\"num_hidden_layers\":4,\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":64,"
     "\"intermediate_size\":2880,\"vocab_size\":201088,\"num_local_experts\":128,"
     "\"num_experts_per_tok\":4,\"sliding_window\":128,\"attention_bias\":true,\"layer_types\":"
     "[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"]}"},
    {"qwen3-30b-a3b",
     "{\"text_config\":{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"num_hidden_layers\":48,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":"
     "6144,"
     "\"moe_intermediate_size\":768,\"num_experts\":128,\"num_experts_per_tok\":8,"
     "\"decoder_sparse_step\":1,\"mlp_only_layers\":[],\"vocab_size\":151936,"
     "\"sliding_window\":4096,\"use_sliding_window\":false},\"model_type\":\"qwen3_vl\"}"},
};

/* Layers with a window and without: the files of Gemma 3 27B, Command R7B and EXAONE 4 say less than their defaults. */
TEST(local_and_global_layers_follow_the_pattern)
{
    static const struct {
        const char *text;
        int local, global;
        double params;
    } cases[] = {
        {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_"
         "size\":5376,\"num_hidden_"
         "layers\":62,"
         "\"num_attention_heads\":32,\"num_key_value_heads\":16,\"head_dim\":128,"
         "\"intermediate_size\":21504,\"vocab_size\":262208,\"sliding_window\":1024}}",
         52, 10, 27.0e9},
        {"{\"model_type\":\"cohere2\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_"
         "attention_heads\":"
         "32,\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":256000,"
         "\"sliding_window\":4096,\"tie_word_embeddings\":true}",
         24, 8, 8.03e9},
        {"{\"model_type\":\"exaone4\",\"hidden_size\":5120,\"num_hidden_layers\":64,\"num_"
         "attention_heads\":"
         "40,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":27392,\"vocab_size\":"
         "102400,"
         "\"sliding_window\":4096,\"sliding_window_pattern\":\"LLLG\"}",
         48, 16, 32.0e9},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int count[2] = {0};
        struct params p;
        struct model m;
        struct err err;
        if (load_text(&m, cases[i].text, &err) < 0)
            fail_msg("%s", err.text);
        for (int k = 0; k < m.kinds; k++)
            count[m.layer[k].attention.window > 0] += m.layer[k].count;
        assert_int_equal(count[1], cases[i].local);
        assert_int_equal(count[0], cases[i].global);
        model_params(&m, &p);
        assert_float_equal(p.total / cases[i].params, 1, 0.01); /* as their names say */
        model_free(&m);
    }
}

/* One trillion with 50 B active (inclusionAI/Ling-1T config.json), of which a shared expert is a part. */
TEST(shared_experts_count)
{
    static const char text[] =
        "{\"model_type\":\"bailing_moe\",\"hidden_size\":8192,\"num_hidden_layers\":80,\"num_"
        "attention_heads\":64,"
        "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":18432,\"vocab_size\":"
        "157184,"
        "\"num_experts\":256,\"num_experts_per_tok\":8,%s\"moe_intermediate_size\":2048,"
        "\"first_k_dense_replace\":4,\"tie_word_embeddings\":false}";
    struct model m;
    struct params with, without;
    struct err err;

    for (int i = 0; i < 2; i++) {
        char *one = mem_printf(text, i ? "\"num_shared_experts\":1," : "");
        if (load_text(&m, one, &err) < 0)
            fail_msg("%s", err.text);
        model_params(&m, i ? &with : &without);
        model_free(&m);
        free(one);
    }
    assert_float_equal((with.total - without.total) / (76.0 * 3 * 8192 * 2048), 1, 1e-4);
    assert_float_equal(with.total / 1e12, 1, 0.02);
    assert_float_equal(with.active / 50e9, 1, 0.06);
}

/* A whole number whose name says that it sizes something, and that is not known. */
TEST(keys_that_may_carry_parameters_are_refused_by_name)
{
    static const char base[] =
        "{\"model_type\":\"x\",\"hidden_size\":64,\"num_hidden_layers\":2,"
        "\"num_attention_heads\":4,\"intermediate_size\":128,\"vocab_size\":100,\"%s\":%s}";
    static const struct {
        const char *key, *value;
        bool refused;
    } cases[] = {
        {"num_kv_shared_layers", "1", true},  {"hidden_size_per_layer_input", "256", true},
        {"num_mtp_modules", "3", true},       {"swa_head_dim", "64", true},
        {"linear_key_head_dim", "128", true}, {"q_lora_rank", "8", false},
        {"hidden_siz", "8", false}, /* part of a known one, and no size */
        {"num_mtp_modules", "0", false},      {"num_mtp_modules", "null", false},
        {"max_window_layers", "28", false},   {"max_position_embeddings", "8192", false},
        {"eos_token_id", "2", false},         {"router_aux_loss_coef", "0.001", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = mem_printf(base, cases[i].key, cases[i].value);
        struct model m;
        struct err err = {0, ""};
        int rc = load_text(&m, text, &err);
        assert_int_equal(rc, cases[i].refused ? -1 : 0);
        if (rc == 0)
            model_free(&m);
        else if (!strstr(err.text, cases[i].key))
            fail_msg("%s", err.text);
        free(text);
    }
}

TEST(a_config_of_transformers_is_a_model)
{
    struct model a, b;
    struct params p, q;
    struct err err;

    for (size_t i = 0; i < sizeof(hf) / sizeof(*hf); i++) {
        if (load_text(&a, hf[i].text, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(model_load(&b, hf[i].shipped, NULL), 0);
        if (!strcmp(hf[i].shipped, "gpt-oss-120b")) { /* four layers of it are here */
            assert_int_equal(a.kinds, 2);
            assert_true(a.layer[0].attention.window + a.layer[1].attention.window == 128);
            assert_float_equal(a.layer[0].sums.total + a.layer[1].sums.total,
                               b.layer[0].sums.total + b.layer[1].sums.total, 2e7); /* its biases */
        } else {
            model_params(&a, &p);
            model_params(&b, &q);
            assert_float_equal(p.total, q.total, 0);
            assert_float_equal(p.active, q.active, 0);
            assert_true(a.layers == b.layers && a.mtp.count == b.mtp.count && a.tied == b.tied);
            assert_int_equal(a.layer[0].mlp.groups, b.layer[0].mlp.groups);
        }
        model_free(&a);
        model_free(&b);
    }
    assert_int_equal(load_text(&a,
                               "{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":48,"
                               "\"linear_num_value_heads\":32}",
                               &err),
                     -1);
    assert_true(err.code == EXIT_DATA &&
                strstr(err.text, "\"linear_num_value_heads\" of a Hugging Face config is not"));
    assert_int_equal(load_text(&a, "{\"model_type\":\"vit\"}", &err), -1);
    assert_non_null(strstr(err.text, "\"num_hidden_layers\" is not there"));
    assert_int_equal(load_text(&a, "{\"model_type\":\"llama\",\"num_hidden_layers\":2}", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
}

TEST(a_bad_file_is_refused_with_path_and_reason)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct model m;
        struct err err;
        assert_int_equal(load_text(&m, bad[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].says) || !strstr(err.text, "/tmp/model-"))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, err.text, bad[i].says);
        model_free(&m);
    }
}

TEST(an_unknown_name_says_where_the_known_ones_are)
{
    struct model m;
    struct err err;

    assert_int_equal(model_load(&m, "llama9", &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "no model \"llama9\"; \"railgauge models\" lists"));
    model_free(&m);
}
