/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/work.h"
#include "step/traffic.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct asked {
    struct model model;
    struct layout layout;
    struct recipe recipe;
    struct work work;
    struct traffic traffic;
};

static void again(struct asked *a)
{
    struct step step;

    step_of(&step, &a->model, &a->layout, &a->recipe);
    work_of(&a->work, &step);
    traffic_of(&a->traffic, &step);
}

static void ask(struct asked *a, const char *model, const char *layout)
{
    recipe_defaults(&a->recipe);
    a->recipe.strategy = STRATEGY_ZERO1;
    assert_int_equal(model_load(&a->model, model, NULL), 0);
    assert_int_equal(layout_parse(&a->layout, layout, STRATEGY_ZERO1, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_check(&a->layout, &a->model, &a->recipe, NULL), 0);
    again(a);
}

static double sum(const struct stage_work *s, enum work_part part)
{
    return s->forward[part] + s->backward[part];
}

/* 6 FLOPs per parameter and token, a third of them forward; of the core, 7 products of which
 * models count 6. */
static void one_rank_does_all_products_of_the_model(void **state)
{
    struct asked a;
    struct flops f;

    (void)state;
    ask(&a, "llama3.1-8b", "dp=1");
    model_flops(&a.model, 8192, true, &f);
    assert_float_equal(sum(&a.work.last, WORK_LINEAR) / 8192 / f.linear, 1, 1e-12);
    assert_float_equal(sum(&a.work.last, WORK_HEAD) / 8192 / f.head, 1, 1e-12);
    assert_float_equal(sum(&a.work.last, WORK_CORE) / 8192 / f.core, 3.5 / 3, 1e-12);
    assert_float_equal(a.work.last.backward[WORK_LINEAR], 2 * a.work.last.forward[WORK_LINEAR], 1);
    assert_float_equal(a.traffic.updated, 8.03e9, 0.01e9);
    assert_float_equal(a.work.last.forward[WORK_EXPERT], 0, 0);
    assert_float_equal(a.work.last.forward[WORK_SCAN], 0, 0);
    model_free(&a.model);
}

static void axes_share_out_products_and_norms(void **state)
{
    struct asked one, tp, cp;

    (void)state;
    ask(&one, "llama3.1-8b", "dp=1");
    ask(&tp, "llama3.1-8b", "tp=4");
    ask(&cp, "llama3.1-8b", "cp=4");
    for (int i = WORK_LINEAR; i <= WORK_CORE; i++) {
        assert_float_equal(tp.work.last.forward[i], one.work.last.forward[i] / 4, 1);
        assert_float_equal(cp.work.last.forward[i], one.work.last.forward[i] / 4, 1);
    }
    assert_float_equal(cp.work.last.forward[WORK_MEMORY] / one.work.last.forward[WORK_MEMORY], 0.25,
                       1e-12);
    assert_float_equal(tp.work.last.forward[WORK_MEMORY] / one.work.last.forward[WORK_MEMORY], 0.25,
                       1e-12);
    tp.recipe.sequence_parallel = false; /* every rank has all norms */
    again(&tp);
    assert_true(tp.work.last.forward[WORK_MEMORY] > 0.3 * one.work.last.forward[WORK_MEMORY]);
    /* four messages a layer, each with four kernels */
    assert_float_equal(
        tp.work.last.forward[WORK_LAUNCH],
        one.work.last.forward[WORK_LAUNCH] + 32 * 4 * (tp.recipe.sequence_parallel ? 4 : 2), 0);
    model_free(&one.model);
    model_free(&tp.model);
    model_free(&cp.model);
}

/* 126 layers of Llama 405B on 8 stages with 8 chunks: the end stages have one less. */
static void stages_differ_and_their_mean_is_the_model(void **state)
{
    struct asked a;
    struct flops f;

    (void)state;
    ask(&a, "llama3.1-405b", "pp=8");
    a.recipe.stages = 8;
    a.recipe.schedule = SCHEDULE_INTERLEAVED;
    again(&a);
    model_flops(&a.model, 8192, true, &f);
    assert_float_equal(8 * sum(&a.work.mean, WORK_LINEAR) / 8192 / f.linear, 1, 1e-12);
    assert_float_equal(sum(&a.work.other, WORK_LINEAR) / 8192 / f.linear, 16.0 / 126, 1e-12);
    assert_float_equal(sum(&a.work.last, WORK_LINEAR) / 8192 / f.linear, 15.0 / 126, 1e-12);
    assert_float_equal(sum(&a.work.last, WORK_HEAD) / 8192 / f.head, 1, 1e-12);
    assert_float_equal(a.work.other.forward[WORK_HEAD], 0, 0);
    model_free(&a.model);
}

static void recompute_repeats_what_it_says(void **state)
{
    struct asked a;

    (void)state;
    ask(&a, "llama3.1-8b", "dp=1");
    struct stage_work none = a.work.last;
    a.recipe.recompute = RECOMPUTE_FULL;
    again(&a);
    assert_float_equal(a.work.last.backward[WORK_LINEAR] / none.backward[WORK_LINEAR], 1.5, 1e-12);
    assert_float_equal(a.work.last.backward[WORK_CORE] / none.backward[WORK_CORE], 3.5 / 2.5,
                       1e-12);
    assert_float_equal(a.work.last.backward[WORK_HEAD], none.backward[WORK_HEAD], 0);
    a.recipe.recompute = RECOMPUTE_SELECTIVE;
    again(&a);
    assert_float_equal(a.work.last.backward[WORK_LINEAR], none.backward[WORK_LINEAR], 0);
    assert_float_equal(a.work.last.backward[WORK_CORE] / none.backward[WORK_CORE], 3.5 / 2.5,
                       1e-12);
    a.recipe.stack = STACK_TORCHTITAN; /* saves the core and every second product */
    again(&a);
    assert_float_equal(a.work.last.backward[WORK_LINEAR] / none.backward[WORK_LINEAR], 1.25, 1e-12);
    assert_float_equal(a.work.last.backward[WORK_CORE], none.backward[WORK_CORE], 0);
    assert_true(a.work.last.backward[WORK_MEMORY] > none.backward[WORK_MEMORY]);
    model_free(&a.model);
}

/* Frozen weights have no gradients of their own: 4 of 6 FLOPs. */
/* Training what the model does not have changes nothing, in no stage. */
static void a_model_without_further_tokens_has_no_work_for_them(void **state)
{
    struct asked with, without;

    (void)state;
    ask(&with, "llama3.1-8b", "pp=4,dp=2");
    without = with;
    with.recipe.mtp = true;
    again(&with);
    assert_memory_equal(&with.work, &without.work, sizeof(with.work));
    model_free(&with.model);
}

static void frozen_weights_save_a_third(void **state)
{
    struct asked a;

    (void)state;
    ask(&a, "llama2-70b", "dp=1");
    struct stage_work full = a.work.last;
    a.recipe.lora = LORA_ATTENTION;
    again(&a);
    assert_float_equal(sum(&a.work.last, WORK_LINEAR) / sum(&full, WORK_LINEAR), 2.0 / 3, 2e-3);
    assert_float_equal(sum(&a.work.last, WORK_HEAD) / sum(&full, WORK_HEAD), 2.0 / 3, 1e-12);
    assert_float_equal(sum(&a.work.last, WORK_CORE), sum(&full, WORK_CORE), 0);
    assert_float_equal(a.work.weights, 0, 0);
    assert_true(a.traffic.updated < 0.001 * 70e9);
    model_free(&a.model);
}

/* Of 8192 wide inputs, 10240 wide queries, keys and values, and outputs as wide as inputs: forward
 * either adapter reads its input, writes its output and adds it (one written, two read); backward
 * its output's gradient is read twice and its input once, and the input's gradient written and
 * added. */
static void adapters_pass_over_what_they_stand_beside(void **state)
{
    double in = 2 * 8192, out = 10240 + 8192;
    struct asked a;

    (void)state;
    ask(&a, "llama2-70b", "dp=1");
    struct stage_work full = a.work.last;
    a.recipe.lora = LORA_ATTENTION;
    again(&a);
    struct stage_work lora = a.work.last;
    assert_float_equal((lora.forward[WORK_MEMORY] - full.forward[WORK_MEMORY]) / 80 / 8192,
                       2 * (in + 4 * out), 1e-3);
    assert_float_equal((lora.backward[WORK_MEMORY] - full.backward[WORK_MEMORY]) / 80 / 8192,
                       2 * (5 * in + 2 * out), 1e-3);
    model_free(&a.model);
}

/* 128 experts on 8 and on 64 ranks: 16 and 2 of them on each. */
static void experts_on_more_ranks_start_fewer_kernels_for_the_same_products(void **state)
{
    struct asked few, many;

    (void)state;
    ask(&few, "qwen3-30b-a3b", "dp=8,ep=8");
    ask(&many, "qwen3-30b-a3b", "dp=64,ep=64");
    assert_float_equal(few.work.last.forward[WORK_EXPERT], many.work.last.forward[WORK_EXPERT], 1);
    assert_float_equal(sum(&few.work.last, WORK_OPERANDS), sum(&many.work.last, WORK_OPERANDS), 1);
    assert_float_equal(few.work.last.forward[WORK_LAUNCH] - many.work.last.forward[WORK_LAUNCH],
                       48 * 2 * 3 * (16 - 2), 1e-6);
    struct flops f;
    model_flops(&few.model, 8192, true, &f);
    assert_float_equal(sum(&few.work.last, WORK_EXPERT) / 8192 / f.expert, 1, 1e-12);
    model_free(&few.model);
    model_free(&many.model);
}

/* 48 layers: 7 kernels of attention, 25 that route, 15 that dispatch and sort, and of 16 experts
 * with two products 3 each; backward twice as many. */
static void kernels_of_a_graph_take_a_tenth(void **state)
{
    static const double started[CUDA_GRAPHS_COUNT] = {
        [CUDA_GRAPHS_OFF] = 7 + 25 + 15 + 96,
        [CUDA_GRAPHS_LAYERS] = 0.1 * (7 + 25) + 15 + 96,
        [CUDA_GRAPHS_STEP] = 0.1 * (7 + 25 + 15 + 96),
    };
    struct asked a;

    (void)state;
    ask(&a, "qwen3-30b-a3b", "dp=8,ep=8");
    for (int i = 0; i < CUDA_GRAPHS_COUNT; i++) {
        a.recipe.cuda_graphs = i;
        again(&a);
        assert_float_equal(a.work.last.forward[WORK_LAUNCH], 48 * started[i], 1e-9);
        assert_float_equal(a.work.last.backward[WORK_LAUNCH], 2 * 48 * started[i], 1e-9);
    }
    model_free(&a.model);
}

/* Of 8 experts of a token, each 2048 x 768: a gate reads two and writes one of 768, a sort reads
 * and writes 2048, and what is cast between the two products is not read, all in bf16. */
static void a_grouped_kernel_reads_nothing_between_its_products(void **state)
{
    double gate = 2 * 8 * 3 * 768, sort = 2 * 8 * 2 * 2048, cast = 2 * 8 * 768;
    struct asked a;

    (void)state;
    ask(&a, "qwen3-30b-a3b", "dp=8,ep=8");
    a.recipe.dtype = DTYPE_MXFP8;
    again(&a);
    struct stage_work each = a.work.last;
    a.recipe.moe_fusion = true;
    again(&a);
    struct stage_work fused = a.work.last;
    assert_float_equal((each.forward[WORK_MEMORY] - fused.forward[WORK_MEMORY]) / 48 / 8192,
                       gate + sort + cast, 1e-6);
    assert_float_equal((each.backward[WORK_MEMORY] - fused.backward[WORK_MEMORY]) / 48 / 8192,
                       2 * (gate + sort) + cast, 1e-6);
    assert_float_equal(fused.forward[WORK_LAUNCH], 48 * (7 + 25 + 15 + 2 * 2), 1e-9);
    for (int i = WORK_LINEAR; i <= WORK_OPERANDS; i++)
        assert_float_equal(each.forward[i], fused.forward[i], 0);
    model_free(&a.model);
}

static void narrow_types_are_cast_and_bf16_is_not(void **state)
{
    struct asked a;

    (void)state;
    ask(&a, "llama3.1-8b", "dp=1");
    double bf16 = sum(&a.work.last, WORK_MEMORY);
    a.recipe.dtype = DTYPE_MXFP8;
    again(&a);
    double mxfp8 = sum(&a.work.last, WORK_MEMORY);
    a.recipe.dtype = DTYPE_FP8; /* looks for the maximum first */
    again(&a);
    assert_true(bf16 < mxfp8 && mxfp8 < sum(&a.work.last, WORK_MEMORY));
    model_free(&a.model);
}

static void mamba_layers_have_a_scan_and_further_tokens_another_head(void **state)
{
    struct asked mamba, v3;

    (void)state;
    ask(&mamba, "nemotron-h-56b", "dp=1");
    assert_true(mamba.work.last.forward[WORK_SCAN] > 0);
    ask(&v3, "deepseek-v3", "dp=8,ep=8");
    double head = v3.work.last.forward[WORK_HEAD], linear = v3.work.last.forward[WORK_LINEAR];
    v3.recipe.mtp = true;
    again(&v3);
    assert_float_equal(v3.work.last.forward[WORK_HEAD] / head, 2, 1e-12);
    assert_true(v3.work.last.forward[WORK_LINEAR] > linear * (1 + 1.0 / 61));
    model_free(&mamba.model);
    model_free(&v3.model);
}

/* 2 bytes of each of n s^2 / tp scores, masked or not, once for each pass (work.c). */
static void scores_pass_through_memory_without_a_kernel_that_keeps_them(void **state)
{
    static const double forward[] = {0, 6, 10}, backward[] = {0, 8, 12};
    struct asked a;

    (void)state;
    ask(&a, "llama3.1-8b", "tp=4");
    struct stage_work flash = a.work.last;
    double scores = 2.0 * 8192 * 8192 * (32 / 4) * 32;
    for (int how = KERNELS_FLASH; how < KERNELS_COUNT; how++) {
        a.recipe.attention = how;
        a.recipe.recompute = RECOMPUTE_NONE;
        again(&a);
        const struct stage_work *s = &a.work.last;
        assert_float_equal(s->forward[WORK_CORE] / flash.forward[WORK_CORE],
                           how == KERNELS_FLASH ? 1 : 2, 1e-12);
        assert_float_equal((s->forward[WORK_MEMORY] - flash.forward[WORK_MEMORY]) / scores,
                           forward[how], 1e-9);
        assert_float_equal((s->backward[WORK_MEMORY] - flash.backward[WORK_MEMORY]) / scores,
                           backward[how], 1e-9);
        a.recipe.recompute = RECOMPUTE_SELECTIVE; /* the core alone, once more */
        again(&a);
        assert_float_equal((s->backward[WORK_MEMORY] - flash.backward[WORK_MEMORY]) / scores,
                           backward[how] + forward[how], 1e-9);
    }
    model_free(&a.model);
}

/* However many its tokens.  A sum of bf16 gradients, 2 bytes each, is read and written; without a
 * fused kernel what is added is written and read first.  FSDP2 moves gathered weights twice, and
 * casts gradients to fp32; frozen weights have none. */
static void each_microbatch_adds_up_gradients(void **state)
{
    struct asked a, pp;

    (void)state;
    ask(&a, "llama3.1-8b", "dp=8");
    assert_float_equal(a.work.last.forward[WORK_WEIGHTS], 0, 0);
    assert_float_equal(a.work.last.backward[WORK_WEIGHTS] / 8.03e9, 2 + 2, 1e-3);
    double before = sum(&a.work.last, WORK_WEIGHTS);
    a.recipe.micro_batch = 4;
    a.recipe.recompute = RECOMPUTE_FULL;
    again(&a);
    assert_float_equal(sum(&a.work.last, WORK_WEIGHTS), before, 0);
    a.recipe.grad_bytes = 4;
    again(&a);
    assert_float_equal(a.work.last.backward[WORK_WEIGHTS] / 8.03e9, 4 + 4, 1e-3);
    a.recipe.stack = STACK_EAGER;
    again(&a);
    assert_float_equal(a.work.last.backward[WORK_WEIGHTS] / 8.03e9, 2 + 2 + 4 + 4, 1e-3);
    a.recipe.stack = STACK_TORCHTITAN;
    a.recipe.strategy = STRATEGY_FSDP;
    again(&a);
    assert_float_equal(a.work.last.forward[WORK_WEIGHTS] / 8.03e9, 2 + 2, 1e-3);
    assert_float_equal(a.work.last.backward[WORK_WEIGHTS] / 8.03e9, 2 + 2 + 2 + 2 + 4, 1e-3);
    a.recipe.reshard = false;
    a.recipe.lora = LORA_ATTENTION;
    again(&a);
    assert_float_equal(a.work.last.backward[WORK_WEIGHTS], 0, 0);
    ask(&pp, "llama3.1-8b", "pp=4");
    assert_float_equal(pp.work.mean.backward[WORK_WEIGHTS] / (8.03e9 / 4), 2 + 2, 1e-2);
    assert_true(pp.work.other.backward[WORK_WEIGHTS] > 0);
    model_free(&a.model);
    model_free(&pp.model);
}

/* 2 of the 8 layers of a rank run forward again: a quarter of what full recompute adds, in work and
 * in the messages of tp. */
static void some_layers_are_recomputed(void **state)
{
    static const enum work_part parts[] = {WORK_LINEAR, WORK_CORE, WORK_MEMORY, WORK_LAUNCH};
    struct asked none, some, all;

    (void)state;
    ask(&none, "llama3.1-8b", "tp=2,pp=4");
    some = all = none;
    some.recipe.recompute = all.recipe.recompute = RECOMPUTE_FULL;
    some.recipe.recompute_layers = 2;
    again(&some);
    again(&all);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        double from = sum(&none.work.mean, parts[i]);
        double more = sum(&all.work.mean, parts[i]) - from;
        assert_true(more > 0);
        assert_float_equal((sum(&some.work.mean, parts[i]) - from) / more, 0.25, 1e-9);
    }
    for (int i = 0; i < none.traffic.messages; i++) {
        double from = none.traffic.message[i].count, more = all.traffic.message[i].count - from;
        if (none.traffic.message[i].phase == PHASE_LAYER && more > 0)
            assert_float_equal((some.traffic.message[i].count - from) / more, 0.25, 1e-9);
    }
    some.recipe.recompute_layers = 8; /* all of a rank's */
    again(&some);
    assert_float_equal(sum(&some.work.mean, WORK_LINEAR), sum(&all.work.mean, WORK_LINEAR), 1);
    model_free(&none.model);
}

/* Forward and backward read 0.52 bytes of each frozen parameter and write 2. */
static void frozen_weights_are_unpacked_before_each_product(void **state)
{
    struct asked a;

    (void)state;
    ask(&a, "llama3.1-8b", "dp=1");
    a.recipe.strategy = STRATEGY_DDP;
    a.recipe.lora = LORA_ALL;
    again(&a);
    double before = sum(&a.work.mean, WORK_WEIGHTS);
    a.recipe.frozen_bytes = 0.52;
    again(&a);
    assert_float_equal((sum(&a.work.mean, WORK_WEIGHTS) - before) / (8.0303e9 * 2 * 2.52), 1, 1e-3);
    a.recipe.recompute = RECOMPUTE_FULL;
    again(&a);
    assert_float_equal((sum(&a.work.mean, WORK_WEIGHTS) - before) / (8.0303e9 * 3 * 2.52), 1, 1e-3);
    a.recipe.frozen_bytes = 1; /* fp8 parameters are read as they are */
    again(&a);
    assert_float_equal(sum(&a.work.mean, WORK_WEIGHTS), before, 1);
    model_free(&a.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_does_all_products_of_the_model),
        cmocka_unit_test(axes_share_out_products_and_norms),
        cmocka_unit_test(stages_differ_and_their_mean_is_the_model),
        cmocka_unit_test(recompute_repeats_what_it_says),
        cmocka_unit_test(some_layers_are_recomputed),
        cmocka_unit_test(frozen_weights_are_unpacked_before_each_product),
        cmocka_unit_test(a_model_without_further_tokens_has_no_work_for_them),
        cmocka_unit_test(frozen_weights_save_a_third),
        cmocka_unit_test(adapters_pass_over_what_they_stand_beside),
        cmocka_unit_test(experts_on_more_ranks_start_fewer_kernels_for_the_same_products),
        cmocka_unit_test(kernels_of_a_graph_take_a_tenth),
        cmocka_unit_test(a_grouped_kernel_reads_nothing_between_its_products),
        cmocka_unit_test(narrow_types_are_cast_and_bf16_is_not),
        cmocka_unit_test(scores_pass_through_memory_without_a_kernel_that_keeps_them),
        cmocka_unit_test(each_microbatch_adds_up_gradients),
        cmocka_unit_test(mamba_layers_have_a_scan_and_further_tokens_another_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
