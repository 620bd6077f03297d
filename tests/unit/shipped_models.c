/* SPDX-License-Identifier: BSD-3-Clause */
/* The shipped models against published totals, ratios of tokens/s to TFLOP/s, and hand arithmetic.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "step/model.h"

/* Published totals; 0: not published.  within: the rounding of what was published, or of vocabulary
 * that was padded. */
static const struct {
    const char *name;
    int layers;
    double total, active, expert, within;
    const char *source;
} totals[] = {
    {"llama3.1-8b", 32, 8.030e9, 8.030e9, 0, 0.0005, "model card"},
    {"llama3.1-70b", 80, 70.554e9, 70.554e9, 0, 0.0005, "model card"},
    {"llama3.1-405b", 126, 405.853e9, 405.853e9, 0, 0.0005, "model card"},
    {"llama2-7b", 32, 6.74e9, 6.74e9, 0, 0.001, "size of the published tensors"},
    {"llama2-13b", 40, 13.02e9, 13.02e9, 0, 0.001, "size of the published tensors"},
    {"llama2-70b", 80, 68.98e9, 68.98e9, 0, 0.001, "size of the published tensors"},
    {"llama4-scout", 48, 107.77e9, 17.17e9, 96.64e9, 0.001, "text model; card: 109B with vision"},
    {"llama4-maverick", 48, 400.71e9, 17.19e9, 386.55e9, 0.001, "model card: 400B, 17B active"},
    {"deepseek-v3", 61, 671.03e9, 37.55e9, 653.9e9, 0.001, "DeepSeek-V3: 671B, 37B active"},
    {"deepseekv4-flash", 43, 284e9, 0, 0, 0.002, "its name, 284B-A13B"},
    {"kimi-k2", 61, 1026e9, 32.9e9, 1014.7e9, 0.002, "Kimi K2: 1.04T, 32.6B active"},
    {"gpt-oss-20b", 24, 20.91e9, 4.19e9, 19.11e9, 0.001, "gpt-oss model card, table 1: 20.91B"},
    {"gpt-oss-120b", 36, 116.83e9, 5.71e9, 114.71e9, 0.001, "gpt-oss model card: 116.83B"},
    {"mixtral-8x7b", 32, 46.70e9, 12.88e9, 0, 0.001, "Mixtral of Experts: 47B, 13B active"},
    {"mixtral-8x22b", 56, 140.6e9, 39.16e9, 0, 0.001, "announcement: 141B, 39B active"},
    {"nemotron4-15b", 32, 15.63e9, 15.63e9, 0, 0.001, "3.1B embedding + 12.5B, table 1"},
    {"nemotron4-340b", 96, 341.0e9, 341.0e9, 0, 0.001, "9.4B embedding + 331.6B, table 1"},
    {"grok1-314b", 64, 315.7e9, 83.8e9, 309.2e9, 0.001, "announcement: 314B"},
    {"qwen3-30b-a3b", 48, 30.53e9, 3.35e9, 0, 0.001, "Qwen3: 30.5B, 3.3B active"},
    {"qwen3-235b-a22b", 94, 235.1e9, 22.2e9, 0, 0.001, "Qwen3: 235B, 22B active"},
    {"glm-4.5", 92, 355e9, 33.6e9, 0, 0.01, "GLM-4.5: 355B; 32B active without embeddings"},
    {"olmo3-32b", 64, 32.2e9, 32.2e9, 0, 0.002, "size of the published tensors"},
    {"gpt3-175b", 96, 174.6e9, 174.6e9, 0, 0.001, "Narayanan et al. 2021, 5.2"},
    {"turing-530b", 105, 529.6e9, 529.6e9, 0, 0.001, "Narayanan et al. 2021, table 1"},
    {"megatron-1t", 128, 1008e9, 1008e9, 0, 0.001, "Narayanan et al. 2021, table 1"},
    {"megatron-22b", 48, 22e9, 22e9, 0, 0.004, "Korthikanti et al. 2022, table 3"},
    {"gpt3-5b", 24, 5e9, 5e9, 0, 0.015, "its name"},
    {"gpt3-20b", 44, 20e9, 20e9, 0, 0.015, "its name"},
    {"nemotron-h-56b", 118, 56e9, 56e9, 0, 0.007, "its name"},
    {"nemotron_3_nano", 52, 31.6e9, 3.6e9, 0, 0.006, "model card: 31.6B, 3.6B active"},
    {"nemotron_3_super", 88, 120.6e9, 12.7e9, 0, 0.006, "Nemotron 3 Super: 120.6B, 12.7B active"},
    {"nemotron_3_ultra", 108, 550e9, 55e9, 0, 0.02, "its name, 550B-A55B"},
};
enum { TOTALS = sizeof(totals) / sizeof(*totals) };

static void near(const char *name, const char *what, double got, double want, double within)
{
    if (!(fabs(got / want - 1) <= within))
        fail_msg("%s: %s is %.6g where %.6g +- %g is published", name, what, got, want, within);
}

static void load(struct model *m, const char *name)
{
    struct err err = {0};

    if (model_load(m, name, &err) < 0)
        fail_msg("%s", err.text);
}

static void parameters_agree_with_the_published_totals(void **state)
{
    (void)state;
    for (int i = 0; i < TOTALS; i++) {
        struct model m;
        struct params p;
        load(&m, totals[i].name);
        model_params(&m, &p);
        assert_int_equal(m.layers, totals[i].layers);
        near(m.name, "the total", p.total, totals[i].total, totals[i].within);
        if (totals[i].active > 0)
            near(m.name, "the active part", p.active, totals[i].active, totals[i].within);
        if (totals[i].expert > 0)
            near(m.name, "the experts' part", p.expert, totals[i].expert, totals[i].within);
        model_free(&m);
    }
}

/* GFLOP per token by the formulas of model.h, worked out apart from this program; -1: not needed.
 * The rows of llama3.1 show the two conventions: tokens/s times these is what NVIDIA's tables call
 * TFLOP/s (causal), and what torchtitan and MLPerf (MODEL_TFLOP_PER_SAMPLE=21508 for 405B) count.
 */
static const struct {
    const char *name;
    int seq;
    double causal, full;
} work[] = {
    {"llama3.1-8b", 8192, 51.5, 57.9},     {"llama3.1-70b", 8192, 449.2, -1},
    {"llama3.1-405b", 8192, 2525, 2625.5}, {"llama4-scout", 8192, 108.9, -1},
    {"llama4-maverick", 8192, 109.0, -1},  {"deepseek-v3", 4096, 250.5, -1},
    {"gpt-oss-20b", 8192, 24.1, -1},       {"gpt-oss-120b", 4096, 32.7, -1},
    {"mixtral-8x7b", 8192, 82.9, -1},      {"mixtral-8x22b", 8192, 250.7, -1},
    {"nemotron4-15b", 4096, 89.2, -1},     {"nemotron4-340b", 4096, 2061, -1},
    {"grok1-314b", 8192, 521.9, -1},       {"qwen3-30b-a3b", 4096, 23.1, -1},
    {"qwen3-235b-a22b", 4096, 148.3, -1},  {"kimi-k2", 4096, 205.5, -1},
};

static void flops_per_token_agree_in_both_conventions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(work) / sizeof(*work); i++) {
        struct model m;
        struct flops f, full;
        load(&m, work[i].name);
        model_flops(&m, work[i].seq, true, &f);
        model_flops(&m, work[i].seq, false, &full);
        near(m.name, "GFLOP per token, causal", flops_total(&f) / 1e9, work[i].causal, 0.003);
        if (work[i].full > 0)
            near(m.name, "GFLOP per token", flops_total(&full) / 1e9, work[i].full, 0.001);
        assert_float_equal(full.core, 2 * f.core, 1);
        assert_float_equal(full.linear + full.head, f.linear + f.head, 0);
        model_free(&m);
    }
}

/* Tokens/s and TFLOP/s per GPU that NVIDIA printed side by side (Megatron-Bridge at 067f987,
 * docs/performance-summary.md and its archive).  mtp: with the predicted tokens.  Megatron-Bridge
 * counts no router and, in hybrid models, no join of the streams before a predicted token. */
static const struct {
    const char *name;
    int seq;
    bool mtp, hybrid;
    double tokens, tflops, within;
} printed[] = {
    {"llama3.1-8b", 8192, false, false, 37556, 1933, 0.001},
    {"llama3.1-70b", 8192, false, false, 3986, 1791, 0.001},
    {"llama3.1-405b", 8192, false, false, 1358, 3428, 0.001},
    {"deepseek-v3", 4096, true, false, 4992, 1298, 0.002},
    {"deepseekv4-flash", 4096, true, false, 7776, 706, 0.002},
    {"kimi-k2", 4096, false, false, 5332, 1090, 0.002},
    {"gpt-oss-120b", 4096, false, false, 28947, 943, 0.002},
    {"qwen3-30b-a3b", 4096, false, false, 22775, 524, 0.002},
    {"qwen3-235b-a22b", 4096, false, false, 4452, 659, 0.002},
    {"nemotron_3_super", 8192, true, true, 9900, 839, 0.002},
    {"nemotron_3_ultra", 8192, true, true, 2528, 923, 0.02}, /* one row, tokens/s in steps of 32 */
};

static double router_flops(const struct model *m, const struct layer *l)
{
    return 6.0 * l->count * m->hidden * l->mlp.experts;
}

static void tokens_times_flops_are_the_printed_rates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(printed) / sizeof(*printed); i++) {
        struct model m;
        struct flops f, more;
        load(&m, printed[i].name);
        model_flops(&m, printed[i].seq, true, &f);
        mtp_flops(&m, printed[i].seq, true, &more);
        double per_token = flops_total(&f), h = m.hidden;
        for (int k = 0; k < m.kinds; k++)
            per_token -= router_flops(&m, &m.layer[k]);
        if (printed[i].mtp)
            per_token += flops_total(&more) - router_flops(&m, &m.mtp) -
                         (printed[i].hybrid ? m.mtp.count * 12 * h * h : 0);
        near(m.name, "TFLOP/s", printed[i].tokens * per_token / 1e12, printed[i].tflops,
             printed[i].within);
        model_free(&m);
    }
}

/* In Megatron-Bridge a Mamba layer has 2h channels; Nemotron 3 Nano has 4096 at h = 2688.  Its
 * printed 885 TFLOP/s at 39749 tokens/s, and 807 at 28672 for Lightning, hold 1280 channels too
 * many in 23 layers: 6 h (2 + 1) 1280 of products and 21 * 128 * 1280 of scan. */
static void nano_agrees_but_for_channels_that_it_does_not_have(void **state)
{
    const double extra = 23 * (6 * 2688 * 3 * 1280.0 + 21 * 128 * 1280.0);
    struct model m;
    struct flops f, more;

    (void)state;
    load(&m, "nemotron_3_nano");
    model_flops(&m, 8192, true, &f);
    double per_token = flops_total(&f) + extra - router_flops(&m, &m.layer[2]);
    near(m.name, "TFLOP/s", 39749 * per_token / 1e12, 885, 0.003);
    model_free(&m);
    load(&m, "nemotron_3_5_lightning");
    mtp_flops(&m, 8192, true, &more);
    per_token += flops_total(&more) - router_flops(&m, &m.mtp) - 2 * 12 * 2688.0 * 2688;
    near(m.name, "TFLOP/s", 28672 * per_token / 1e12, 807, 0.003);
    model_free(&m);
}

static void models_without_published_totals_follow_hand_arithmetic(void **state)
{
    struct model m;
    struct params p;

    (void)state;
    load(&m, "nemotron-8b");
    model_params(&m, &p);
    assert_float_equal(
        p.total, 32 * (4 * 4096. * 4096 + 2 * 4096. * 16384 + 2 * 4096) + 2 * 256000. * 4096 + 4096,
        0);
    model_free(&m);
    load(&m, "nemotron-22b");
    model_params(&m, &p);
    assert_float_equal(
        p.total, 40 * (4 * 6144. * 6144 + 2 * 6144. * 24576 + 2 * 6144) + 2 * 256000. * 6144 + 6144,
        0);
    model_free(&m);
}

/* Rank 32 on q, k, v and o of 405B: 126 layers of 32 * (2 (16384 + 16384) + 2 (16384 + 1024)),
 * published as "about 400M trainable parameters". */
static void adapters_of_405b_are_404_million_parameters(void **state)
{
    struct model m;

    (void)state;
    load(&m, "llama3.1-405b");
    double lora = model_lora_params(&m, 32, false);
    assert_float_equal(lora, 126 * 32 * (2 * (16384. + 16384) + 2 * (16384. + 1024)), 0);
    near(m.name, "LoRA of rank 32", lora, 400e6, 0.03);
    assert_float_equal(model_lora_params(&m, 32, true) - lora, 126 * 32 * 3 * (16384. + 53248), 0);
    assert_float_equal(model_lora_params(&m, 64, false), 2 * lora, 0);
    model_free(&m);
}

static void adapters_of_experts_are_on_every_expert_and_not_on_the_router(void **state)
{
    struct model m;

    (void)state;
    load(&m, "mixtral-8x7b");
    double mixer = model_lora_params(&m, 8, false);
    assert_float_equal(mixer, 32 * 8 * (2 * 8192. + 2 * 5120), 0);
    assert_float_equal(model_lora_params(&m, 8, true) - mixer, 32 * 8 * 8 * 3 * (4096. + 14336), 0);
    model_free(&m);
}

static void every_shipped_model_is_called_as_its_file_and_holds_together(void **state)
{
    char **name;
    int n = model_names(&name);

    (void)state;
    assert_true(n >= TOTALS);
    for (int i = 0; i < n; i++) {
        struct model m;
        struct params p;
        struct flops f, sum = {0};
        load(&m, name[i]);
        assert_string_equal(m.name, name[i]);
        assert_true(strlen(m.source) > 10);
        model_params(&m, &p);
        model_flops(&m, 8192, true, &f);
        for (int k = 0; k < m.kinds; k++) {
            struct flops one;
            layer_flops(&m.layer[k], 8192, true, &one);
            sum.linear += m.layer[k].count * one.linear;
            sum.expert += m.layer[k].count * one.expert;
            assert_float_equal(one.head, 0, 0);
        }
        assert_float_equal(sum.linear / f.linear, 1, 1e-12);
        assert_float_equal((f.linear + f.head) / (6 * p.matmul), 1, 1e-12);
        assert_float_equal((p.layers + p.embedding + m.hidden) / p.total, 1, 1e-12);
        assert_true(p.active <= p.total && f.expert <= f.linear && p.matmul < p.total);
        assert_true((p.expert > 0) == (p.active < p.total));
        model_free(&m);
        free(name[i]);
    }
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_agree_with_the_published_totals),
        cmocka_unit_test(flops_per_token_agree_in_both_conventions),
        cmocka_unit_test(tokens_times_flops_are_the_printed_rates),
        cmocka_unit_test(nano_agrees_but_for_channels_that_it_does_not_have),
        cmocka_unit_test(models_without_published_totals_follow_hand_arithmetic),
        cmocka_unit_test(adapters_of_405b_are_404_million_parameters),
        cmocka_unit_test(adapters_of_experts_are_on_every_expert_and_not_on_the_router),
        cmocka_unit_test(every_shipped_model_is_called_as_its_file_and_holds_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
