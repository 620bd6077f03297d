/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void the_text_becomes_axes_and_comes_back(void **state)
{
    struct layout l;
    char buf[96];

    (void)state;
    assert_int_equal(
        layout_parse(&l, "dp_shard=8,tp=4,pp=2", STRATEGY_FSDP, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(l.ranks, 64);
    assert_int_equal(l.size[AXIS_TP], 4);
    assert_int_equal(l.size[AXIS_CP], 1);
    assert_string_equal(layout_text(buf, sizeof(buf), &l), "pp=2,dp_shard=8,tp=4");
    assert_int_equal(layout_parse(&l, "dp=1", STRATEGY_FSDP, ORDER_MEGATRON, 0, NULL), 0);
    assert_string_equal(layout_text(buf, sizeof(buf), &l), "one rank");
}

static void dp_means_what_the_strategy_does_with_it(void **state)
{
    struct layout l;

    (void)state;
    assert_int_equal(layout_parse(&l, "dp=8", STRATEGY_DDP, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(l.size[AXIS_DP_REPLICATE], 8);
    assert_int_equal(layout_parse(&l, "dp=8", STRATEGY_ZERO1, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(l.size[AXIS_DP_SHARD], 8);
}

static void auto_fills_the_gpus_that_are_left(void **state)
{
    struct layout l;

    (void)state;
    assert_int_equal(
        layout_parse(&l, "tp=4,dp_shard=auto", STRATEGY_FSDP, ORDER_MEGATRON, 72, NULL), 0);
    assert_int_equal(l.size[AXIS_DP_SHARD], 18);
}

static const struct {
    const char *text;
    int ranks;
    const char *says;
} bad[] = {
    {"", 0, "\"\" is not AXIS=SIZE"},
    {"tp", 0, "\"tp\" is not AXIS=SIZE"},
    {"tp=4,", 0, "\"\" is not AXIS=SIZE"},
    {"tensor=4", 0,
     "axis \"tensor\" is not known (known: pp, dp, dp_replicate, dp_shard, cp, tp, ep, etp)"},
    {"tp=4,tp=2", 0, "axis tp is given twice"},
    {"dp=4,dp_shard=2", 0, "axis dp_shard is given twice"},
    {"tp=0", 0, "axis tp: "},
    {"tp=4x", 0, "axis tp: "},
    {"tp=-1", 0, "axis tp: "},
    {"tp=99999999999999999999", 0, "axis tp: "},
    {"dp=4,ep=8", 0, "ep=8 x etp=1 do not divide the 4 ranks of a pipeline stage"},
    {"dp=8,etp=3", 0, "ep=1 x etp=3 do not divide the 8 ranks of a pipeline stage"},
    {"dp=8,ep=auto", 8, "axis ep cannot be auto"},
    {"dp=8,edp=2", 0, "axis \"edp\" is not known"},
    {"dp_shard=auto", 0, "axis dp_shard is auto, and the number of GPUs is not given"},
    {"dp_shard=auto,tp=auto", 8, "axes tp and dp_shard are both auto"},
    {"dp_shard=auto,tp=16", 72, "the other axes take 16 ranks, which do not divide 72 GPUs"},
    {"tp=8,pp=2", 72, "the layout has 16 ranks and 72 GPUs are given"},
    {"tp=1024,pp=1024,dp=1024", 0, "the axes multiply to more than 1048576 ranks"},
};

static void a_bad_text_is_refused_with_the_axis_and_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct layout l;
        struct err err;
        assert_int_equal(
            layout_parse(&l, bad[i].text, STRATEGY_FSDP, ORDER_MEGATRON, bad[i].ranks, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        char *head = mem_printf("layout \"%s\": ", bad[i].text);
        if (!strstr(err.text, bad[i].says) || strncmp(err.text, head, strlen(head)))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, err.text, bad[i].says);
        free(head);
    }
}

static void assert_group(const struct layout *l, unsigned axes, int index, const int *want)
{
    struct span s = layout_span(l, axes);

    for (int i = 0; i < s.size; i++)
        assert_int_equal(span_rank(&s, index, i), want[i]);
}

static void groups_are_megatrons_for_tp2_dp2_pp2(void **state)
{
    struct layout l;

    (void)state;
    assert_int_equal(layout_parse(&l, "tp=2,dp=2,pp=2", STRATEGY_ZERO1, ORDER_MEGATRON, 0, NULL),
                     0);
    struct span tp = layout_span(&l, AXIS_BIT(AXIS_TP));
    assert_int_equal(span_groups(&tp, l.ranks), 4);
    assert_group(&l, AXIS_BIT(AXIS_TP), 1, (const int[]){2, 3});
    assert_group(&l, AXIS_BIT(AXIS_DP_SHARD), 1, (const int[]){1, 3});
    assert_group(&l, AXIS_BIT(AXIS_PP), 3, (const int[]){3, 7});
    assert_group(&l, AXIS_BIT(AXIS_TP) | AXIS_BIT(AXIS_DP_SHARD), 1, (const int[]){4, 5, 6, 7});
}

static void the_tp_pp_dp_mapping_puts_the_pipeline_inside(void **state)
{
    struct layout l;

    (void)state;
    assert_int_equal(layout_parse(&l, "tp=2,dp=2,pp=2", STRATEGY_ZERO1, ORDER_TP_PP_DP, 0, NULL),
                     0);
    assert_group(&l, AXIS_BIT(AXIS_PP), 0, (const int[]){0, 2});
    assert_group(&l, AXIS_BIT(AXIS_DP_SHARD), 0, (const int[]){0, 4});
}

static void megatron_and_torchtitan_agree_for_dense_models(void **state)
{
    struct layout a, b;
    const char *text = "pp=2,dp_replicate=2,dp_shard=3,cp=2,tp=2";

    (void)state;
    assert_int_equal(layout_parse(&a, text, STRATEGY_HSDP, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_parse(&b, text, STRATEGY_HSDP, ORDER_TORCHTITAN, 0, NULL), 0);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        struct span s = layout_span(&a, AXIS_BIT(axis)), t = layout_span(&b, AXIS_BIT(axis));
        assert_int_equal(s.size, t.size);
        assert_int_equal(s.stride, t.stride);
    }
}

static void every_rank_is_in_one_group_of_each_axis(void **state)
{
    struct layout l;

    (void)state;
    assert_int_equal(layout_parse(&l, "pp=3,dp_replicate=2,dp_shard=5,cp=2,tp=4", STRATEGY_HSDP,
                                  ORDER_TP_PP_DP, 0, NULL),
                     0);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        struct span s = layout_span(&l, AXIS_BIT(axis));
        int seen[240] = {0};
        for (int g = 0; g < span_groups(&s, l.ranks); g++)
            for (int i = 0; i < s.size; i++)
                seen[span_rank(&s, g, i)]++;
        for (int i = 0; i < 240; i++)
            assert_int_equal(seen[i], 1);
    }
}

/* Megatron-LM: rank = etp + ETP (ep + EP (edp + EDP pp)). */
static void experts_have_a_grid_of_their_own(void **state)
{
    struct layout l;

    (void)state;
    assert_int_equal(layout_parse(&l, "tp=2,cp=1,dp=8,pp=2,ep=4,etp=2", STRATEGY_ZERO1,
                                  ORDER_MEGATRON, 32, NULL),
                     0);
    assert_int_equal(l.size[AXIS_EDP], 2);
    assert_group(&l, AXIS_BIT(AXIS_ETP), 1, (const int[]){2, 3});
    assert_group(&l, AXIS_BIT(AXIS_EP), 1, (const int[]){1, 3, 5, 7});
    assert_group(&l, AXIS_BIT(AXIS_EP), 2, (const int[]){8, 10, 12, 14});
    assert_group(&l, AXIS_BIT(AXIS_EDP), 3, (const int[]){3, 11});
    assert_group(&l, AXIS_BIT(AXIS_PP), 3, (const int[]){3, 19});
    struct recipe r;
    recipe_defaults(&r);
    assert_int_equal(layout_shard_axes(&l, &r, true), AXIS_BIT(AXIS_EDP));
    assert_int_equal(layout_parse(&l, "dp_replicate=2,dp_shard=8,ep=4", STRATEGY_HSDP,
                                  ORDER_TORCHTITAN, 0, NULL),
                     0);
    r.strategy = STRATEGY_HSDP;
    assert_int_equal(layout_data_axes(&l, true), AXIS_BIT(AXIS_EDP) | AXIS_BIT(AXIS_DP_REPLICATE));
    assert_int_equal(layout_shard_axes(&l, &r, true), AXIS_BIT(AXIS_EDP));
    assert_int_equal(layout_parse(&l, "dp=8,ep=4", STRATEGY_DDP, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_data_axes(&l, true), AXIS_BIT(AXIS_EDP));
    assert_int_equal(l.size[AXIS_EDP], 2);
}

static void fsdp_shards_over_cp_as_well(void **state)
{
    struct layout l;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    assert_int_equal(layout_parse(&l, "dp_replicate=2,dp_shard=4,cp=2,tp=2", STRATEGY_HSDP,
                                  ORDER_TORCHTITAN, 0, NULL),
                     0);
    r.strategy = STRATEGY_HSDP;
    assert_int_equal(layout_shard_axes(&l, &r, false), AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_CP));
    assert_int_equal(layout_span(&l, layout_data_axes(&l, false)).size, 16);
}

/* Layouts that parse and do not fit: llama3.1-8b has 32 layers, 32 heads, 8 kv_heads, ffn 14336. */
static const struct {
    const char *text, *model;
    enum strategy strategy;
    const char *setting[8]; /* key, value, ... */
    const char *says;
} misfit[] = {
    {"tp=6", "llama3.1-8b", STRATEGY_FSDP, {0}, "tp=6 does not divide the 32 heads of llama3.1-8b"},
    {"tp=16",
     "gpt-oss-120b",
     STRATEGY_FSDP,
     {"stack", "torchtitan", "seq", "8200"},
     "tp=16 does not divide the 8200 tokens that sequence parallelism shards"},
    {"tp=3", "qwen3-30b-a3b", STRATEGY_FSDP, {0}, "tp=3 does not divide the 32 heads"},
    {"tp=16",
     "nemotron-h-56b",
     STRATEGY_FSDP,
     {0},
     "tp=16 does not divide the 8 groups of the scans of nemotron-h-56b"},
    {"cp=3", "llama3.1-8b", STRATEGY_FSDP, {0}, "cp=3 does not divide the sequence of 8192 tokens"},
    {"cp=16",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {"context", "ulysses"},
     "cp=16 x tp=1 does not divide the 8 kv_heads of llama3.1-8b, which ulysses shares out"},
    {"cp=16,tp=4",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {"context", "ulysses"},
     "cp=16 x tp=4 does not divide the 32 heads of llama3.1-8b"},
    {"tp=8,cp=2",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {"seq", "20"},
     "tp=8 does not divide the 10 tokens that sequence parallelism shards"},
    {"pp=35",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {0},
     "pp=35 with 1 stages per rank makes 35 chunks, and llama3.1-8b has 32 layers, 34 with"},
    {"pp=4",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {"stages-per-rank", "9"},
     "pp=4 with 9 stages per rank makes 36 chunks"},
    {"pp=3,dp=2",
     "llama3.1-8b",
     STRATEGY_ZERO1,
     {"schedule", "dualpipe"},
     "dualpipe runs two stages a rank from both ends, and pp=3 is odd"},
    {"pp=4,dp=2",
     "llama3.1-8b",
     STRATEGY_ZERO1,
     {"schedule", "dualpipe", "batch", "12"},
     "dualpipe needs an even number of at least 2 pp=8 microbatches, and a batch of 12 makes 6"},
    {"dp=4",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {"stages-per-rank", "2"},
     "2 stages per rank need a pipeline, and pp is 1"},
    {"dp=4",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {"micro-batch", "2", "batch", "12"},
     "a batch of 12 is not a multiple of 8 = 4 data-parallel ranks x micro batch 2"},
    {"pp=4,dp=2",
     "llama3.1-8b",
     STRATEGY_ZERO1,
     {"stages-per-rank", "2", "batch", "12"},
     "needs a multiple of pp=4 microbatches, and a batch of 12 makes 6"},
    {"dp_shard=4", "llama3.1-8b", STRATEGY_DDP, {0}, "ddp shards nothing, and dp_shard is 4"},
    {"dp_shard=4",
     "llama3.1-8b",
     STRATEGY_HSDP,
     {0},
     "hsdp needs dp_shard and dp_replicate of at least 2, not 4 and 1"},
    {"dp_replicate=4",
     "llama3.1-8b",
     STRATEGY_ZERO3,
     {0},
     "zero3 shards over all data-parallel ranks, and dp_replicate is 4"},
    {"dp=8,ep=8",
     "llama3.1-8b",
     STRATEGY_FSDP,
     {0},
     "axis ep shards experts, and llama3.1-8b has none"},
    {"dp=8,etp=2", "llama3.1-8b", STRATEGY_FSDP, {0}, "axis etp shards experts"},
    {"dp=32,ep=32",
     "llama4-scout",
     STRATEGY_FSDP,
     {0},
     "ep=32 does not divide the 16 experts of llama4-scout"},
    {"dp=14,ep=2,etp=7",
     "gpt-oss-20b",
     STRATEGY_FSDP,
     {0},
     "etp=7 does not divide the width 2880 of an expert of gpt-oss-20b"},
    {"tp=2,dp=4,ep=4",
     "llama4-scout",
     STRATEGY_ZERO1,
     {"sequence-parallel", "off"},
     "tp=2 without sequence parallelism: Megatron-LM trains experts of llama4-scout only with it"},
};

static void set_all(struct recipe *r, const char *const setting[8])
{
    for (int i = 0; i < 8 && setting[i]; i += 2)
        assert_int_equal(recipe_set(r, setting[i], setting[i + 1], NULL), 0);
}

static void a_layout_that_does_not_divide_is_refused_with_axis_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(misfit) / sizeof(*misfit); i++) {
        struct layout l;
        struct model m;
        struct recipe r;
        struct err err;
        recipe_defaults(&r);
        r.strategy = misfit[i].strategy;
        set_all(&r, misfit[i].setting);
        assert_int_equal(model_load(&m, misfit[i].model, NULL), 0);
        assert_int_equal(layout_parse(&l, misfit[i].text, r.strategy, ORDER_MEGATRON, 0, &err), 0);
        if (layout_check(&l, &m, &r, &err) == 0)
            fail_msg("case %zu: nothing says \"%s\"", i, misfit[i].says);
        assert_int_equal(err.code, EXIT_USAGE);
        if (!strstr(err.text, misfit[i].says))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, err.text, misfit[i].says);
        model_free(&m);
    }
}

static void torchtitan_shards_experts_as_the_rest_or_not_at_all(void **state)
{
    struct layout l;
    struct model m;
    struct recipe r;
    struct err err;

    (void)state;
    recipe_defaults(&r);
    assert_int_equal(model_load(&m, "llama4-scout", NULL), 0);
    for (int etp = 1; etp <= 4; etp *= 2) {
        char *text = mem_printf("tp=4,dp=8,ep=8,etp=%d", etp);
        assert_int_equal(layout_parse(&l, text, STRATEGY_FSDP, ORDER_TORCHTITAN, 0, NULL), 0);
        assert_int_equal(layout_check(&l, &m, &r, &err), etp == 2 ? -1 : 0);
        free(text);
    }
    assert_int_equal(
        layout_parse(&l, "tp=4,dp=8,ep=8,etp=2", STRATEGY_FSDP, ORDER_TORCHTITAN, 0, NULL), 0);
    assert_int_equal(layout_check(&l, &m, &r, &err), -1);
    assert_string_equal(err.text, "etp=2: torchtitan shards an expert as tp=4 does or not at all");
    model_free(&m);
}

/* Layouts of published runs that do not divide, and how their stages come out (NVIDIA
 * Megatron-Bridge and dgxc-benchmarking recipes). */
static const struct {
    const char *model, *text, *stages;
    int v;
    const char *says;
} uneven[] = {
    {"llama3.1-405b", "tp=8,pp=8,dp=2", "8", 8, "stages of 15, 16 (6 times) and 15 layers"},
    {"llama3.1-405b", "tp=4,pp=16,dp=2", "4", 4, "stages of 7, 8 (14 times) and 7 layers"},
    {"llama3.1-405b", "tp=4,pp=16,dp=2", "8", 8, "stages of 7, 8 (14 times) and 7 layers"},
    {"gpt3-175b", "tp=4,pp=8,dp=2", "6", 6, ""},
    {"nemotron4-340b", "tp=8,pp=8,dp=2", "12", 12, ""},
    {"deepseek-v3", "pp=4,dp=64,ep=64", "4", 4, "stages of 16 (3 times) and 13 layers"},
    {"deepseek-v3", "pp=8,dp=32,ep=8", "1", 1, "stages of 8 (7 times) and 5 layers"},
    {"deepseek-v3", "tp=2,pp=8,dp=64,ep=64", "4", 4,
     "stages of 8 (5 times) and 7 (3 times) layers"},
    {"kimi-k2", "pp=4,dp=64,ep=64", "4", 4, "stages of 16 (3 times) and 13 layers"},
    {"qwen3-235b-a22b", "pp=4,dp=64,ep=16", "12", 12, "stages of 23, 24 (2 times) and 23 layers"},
    {"qwen3-235b-a22b", "pp=8,dp=32,ep=32", "3", 3, "stages of 11, 12 (6 times) and 11 layers"},
    {"llama4-maverick", "pp=2,dp=64,ep=64", "12", 12, ""},
    {"megatron-1t", "tp=8,pp=64", "1", 1, ""},
    {"turing-530b", "tp=8,pp=35", "3", 3, ""},
    {"llama3.1-8b", "pp=7", "1", 1, "stages of 5 (6 times) and 2 layers"},
    {"llama3.1-8b", "pp=12", "1", 1, "stages of 3 (8 times) and 2 (4 times) layers"},
    {"llama3.1-8b", "pp=34", "1", 1, "stages of 0, 1 (32 times) and 0 layers"},
};

static void published_stages_that_do_not_divide_run_and_say_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(uneven) / sizeof(*uneven); i++) {
        struct layout l;
        struct model m;
        struct recipe r;
        struct err err = {.text = ""};
        char buf[128];
        int layers = 0;
        recipe_defaults(&r);
        r.strategy = STRATEGY_ZERO1;
        assert_int_equal(recipe_set(&r, "stages-per-rank", uneven[i].stages, NULL), 0);
        assert_int_equal(model_load(&m, uneven[i].model, NULL), 0);
        assert_int_equal(layout_parse(&l, uneven[i].text, STRATEGY_ZERO1, ORDER_MEGATRON, 0, NULL),
                         0);
        if (layout_check(&l, &m, &r, &err) < 0)
            fail_msg("%s %s: %s", uneven[i].model, uneven[i].text, err.text);
        assert_int_equal(r.stages, uneven[i].v);
        struct step step;
        step_of(&step, &m, &l, &r);
        assert_string_equal(step_stages_text(buf, sizeof(buf), &step), uneven[i].says);
        for (int k = 0; k < l.size[AXIS_PP]; k++) {
            struct pipe_stage s;
            double sum = 0;
            step_stage(&s, &step, k);
            for (int j = 0; j < m.kinds; j++)
                sum += s.count[j];
            assert_float_equal(sum, s.layers, 1e-9);
            layers += s.layers;
        }
        assert_int_equal(layers, m.layers);
        model_free(&m);
    }
}

static double layers_of(const char *model, const char *text, int v, bool mtp, int kind, int *index)
{
    struct layout l;
    struct model m;
    struct recipe r;
    struct step s;

    recipe_defaults(&r);
    r.strategy = STRATEGY_ZERO1;
    r.stages = v;
    r.mtp = mtp;
    assert_int_equal(model_load(&m, model, NULL), 0);
    assert_int_equal(layout_parse(&l, text, STRATEGY_ZERO1, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_check(&l, &m, &r, NULL), 0);
    step_of(&s, &m, &l, &r);
    *index = s.stage[s.slowest].index;
    double n = s.stage[s.slowest].count[kind];
    model_free(&m);
    return n;
}

/* DeepSeek-V3's three dense layers are in the first of 4 stages; the slowest has 16 others.  Where
 * stages are equal, the one with the head is slower; where kinds alternate, each has its share. */
static void the_slowest_stage_has_the_most_work(void **state)
{
    int index;

    (void)state;
    assert_float_equal(layers_of("deepseek-v3", "pp=4,dp=64,ep=64", 4, false, 1, &index), 16, 0);
    assert_int_equal(index, 1);
    assert_float_equal(layers_of("deepseek-v3", "pp=4,dp=64,ep=64", 4, false, 0, &index), 0, 0);
    layers_of("nemotron4-340b", "tp=8,pp=8,dp=2", 12, false, 0, &index);
    assert_int_equal(index, 7);
    layers_of("llama3.1-405b", "tp=8,pp=8,dp=2", 8, false, 0, &index);
    assert_int_equal(index, 1);
    assert_float_equal(layers_of("gpt-oss-120b", "pp=4,dp=16,ep=8", 1, false, 0, &index), 4.5, 0);
    assert_int_equal(index, 3);
    layers_of("llama3.1-8b", "dp=4", 1, false, 0, &index);
    assert_int_equal(index, 0);
}

static void published_405b_layouts_divide(void **state)
{
    static const struct {
        const char *text;
        int stages, batch, microbatches;
    } ok[] = {{"tp=8,pp=8,cp=2,dp=4", 8, 1152, 288}, {"tp=4,pp=8,cp=2,dp=8", 8, 896, 112}};
    struct model m;

    (void)state;
    assert_int_equal(model_load(&m, "llama3.1-405b", NULL), 0);
    for (int i = 0; i < 2; i++) {
        struct layout l;
        struct recipe r;
        recipe_defaults(&r);
        r.strategy = STRATEGY_ZERO1;
        r.schedule = SCHEDULE_INTERLEAVED;
        r.stages = ok[i].stages;
        r.global_batch = ok[i].batch;
        assert_int_equal(layout_parse(&l, ok[i].text, r.strategy, ORDER_MEGATRON, 512, NULL), 0);
        assert_int_equal(layout_check(&l, &m, &r, NULL), 0);
        assert_int_equal(layout_microbatches(&l, &r), ok[i].microbatches);
    }
    model_free(&m);
}

static void without_a_batch_a_pipeline_gets_four_rounds(void **state)
{
    struct layout l;
    struct model m;
    struct recipe r;

    (void)state;
    recipe_defaults(&r);
    assert_int_equal(model_load(&m, "llama3.1-8b", NULL), 0);
    assert_int_equal(layout_parse(&l, "pp=4,dp=2", r.strategy, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_check(&l, &m, &r, NULL), 0);
    assert_int_equal(r.global_batch, 32);
    assert_int_equal(layout_microbatches(&l, &r), 16);
    model_free(&m);
}

static void an_unknown_word_lists_the_known_ones(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(recipe_word("strategy", "zero3", recipe_name.strategy, STRATEGY_COUNT, &err),
                     STRATEGY_ZERO3);
    assert_int_equal(recipe_word("strategy", "zero4", recipe_name.strategy, STRATEGY_COUNT, &err),
                     -1);
    assert_string_equal(
        err.text, "strategy \"zero4\" is not known (known: ddp, zero1, zero2, zero3, fsdp, hsdp)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_becomes_axes_and_comes_back),
        cmocka_unit_test(dp_means_what_the_strategy_does_with_it),
        cmocka_unit_test(auto_fills_the_gpus_that_are_left),
        cmocka_unit_test(a_bad_text_is_refused_with_the_axis_and_the_reason),
        cmocka_unit_test(groups_are_megatrons_for_tp2_dp2_pp2),
        cmocka_unit_test(the_tp_pp_dp_mapping_puts_the_pipeline_inside),
        cmocka_unit_test(megatron_and_torchtitan_agree_for_dense_models),
        cmocka_unit_test(every_rank_is_in_one_group_of_each_axis),
        cmocka_unit_test(experts_have_a_grid_of_their_own),
        cmocka_unit_test(fsdp_shards_over_cp_as_well),
        cmocka_unit_test(a_layout_that_does_not_divide_is_refused_with_axis_and_reason),
        cmocka_unit_test(torchtitan_shards_experts_as_the_rest_or_not_at_all),
        cmocka_unit_test(published_stages_that_do_not_divide_run_and_say_so),
        cmocka_unit_test(the_slowest_stage_has_the_most_work),
        cmocka_unit_test(published_405b_layouts_divide),
        cmocka_unit_test(without_a_batch_a_pipeline_gets_four_rounds),
        cmocka_unit_test(an_unknown_word_lists_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
