/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/recipe.h"
#include "test.h"

#include <string.h>

TEST(every_argument_takes_its_own_text_back)
{
    struct recipe r;

    recipe_defaults(&r);
    for (const struct argument *s = recipe_argument; s->key; s++) {
        char text[64], again[64];
        argument_get(text, sizeof(text), &r, s);
        if (!strcmp(text, "0")) /* "as the strategy has it" is not something to type */
            continue;
        assert_int_equal(recipe_set(&r, s->key, text, NULL), 0);
        assert_string_equal(argument_get(again, sizeof(again), &r, s), text);
    }
}

TEST(dashes_and_underscores_are_one_key)
{
    struct recipe r;

    recipe_defaults(&r);
    assert_int_equal(recipe_set(&r, "micro_batch", "3", NULL), 0);
    assert_int_equal(r.micro_batch, 3);
    assert_int_equal(recipe_set(&r, "--micro-batch", "4", NULL), 0);
    assert_int_equal(r.micro_batch, 4);
    assert_int_equal(recipe_set(&r, "ep_overlap", "on", NULL), 0);
    assert_true(r.ep_overlap);
    r.strategy = -1; /* as a search leaves it */
    char text[16];
    const struct argument *strategy = argument_find(recipe_argument, "strategy");
    assert_string_equal(argument_get(text, sizeof(text), &r, strategy), "any");
    assert_int_equal(recipe_set(&r, "eval-seconds", "660ms", NULL), 0);
    assert_float_equal(r.eval_seconds, 0.66, 1e-12);
}

TEST(a_stack_is_a_set_of_facts_and_each_can_be_said)
{
    static const struct {
        int stack, pointwise, flash;
    } facts[] = {{STACK_MEGATRON, POINTWISE_LIBRARY, FLASH_NEW},
                 {STACK_TORCHTITAN, POINTWISE_COMPILED, FLASH_2},
                 {STACK_EAGER, POINTWISE_SEPARATE, FLASH_2},
                 {STACK_HF, POINTWISE_SEPARATE, FLASH_2}};
    struct recipe r;

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
        recipe_defaults(&r);
        r.stack = facts[i].stack;
        assert_int_equal(recipe_pointwise(&r), facts[i].pointwise);
        assert_int_equal(recipe_flash(&r), facts[i].flash);
        for (int k = 1; k < POINTWISE_COUNT; k++) {
            r.pointwise = k;
            assert_int_equal(recipe_pointwise(&r), k);
        }
        for (int k = 1; k < FLASH_COUNT; k++) {
            r.flash = k;
            assert_int_equal(recipe_flash(&r), k);
        }
    }
}

TEST(tensor_messages_are_overlapped_as_the_stack_does)
{
    static const struct {
        int stack, overlap;
        bool sequence, does;
    } cases[] = {
        {STACK_MEGATRON, TP_OVERLAP_STACK, true, true},
        {STACK_MEGATRON, TP_OVERLAP_STACK, false, false},
        {STACK_MEGATRON, TP_OVERLAP_OFF, true, false},
        {STACK_TORCHTITAN, TP_OVERLAP_STACK, true, false},
        {STACK_TORCHTITAN, TP_OVERLAP_ON, true, true},
        {STACK_HF, TP_OVERLAP_STACK, true, false},
    };
    struct recipe r;
    struct err err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        recipe_defaults(&r);
        r.stack = cases[i].stack;
        r.tp_overlap = cases[i].overlap;
        r.sequence_parallel = cases[i].sequence;
        assert_int_equal(recipe_check(&r, &err), 0);
        assert_int_equal(recipe_overlaps_tp(&r), cases[i].does);
    }
    recipe_defaults(&r);
    r.tp_overlap = TP_OVERLAP_ON;
    r.sequence_parallel = false;
    assert_int_equal(recipe_check(&r, &err), -1);
    assert_non_null(strstr(err.text, "tp-overlap needs sequence-parallel"));
}

static const struct {
    const char *key, *value, *says;
} bad[] = {
    {"micro", "3", "setting \"micro\" is not known (known: strategy, batch, micro-batch, "},
    {"micro-batch", "0", "micro-batch: "},
    {"seq", "8k", "seq: "},
    {"dtype", "fp7", "dtype \"fp7\" is not known (known: fp32, bf16, fp8, mxfp8, nvfp4)"},
    {"tp-overlap", "yes", "tp-overlap \"yes\" is not known (known: stack, on, off)"},
    {"prefetch", "yes", "prefetch \"yes\" is not known (known: off, on)"},
    {"grad-bytes", "0", "grad-bytes: "},
    {"eval-seconds", "-1", "eval-seconds: "},
};

TEST(a_bad_setting_names_the_key_and_the_reason)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct recipe r;
        struct err err;
        recipe_defaults(&r);
        assert_int_equal(recipe_set(&r, bad[i].key, bad[i].value, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        if (strncmp(err.text, bad[i].says, strlen(bad[i].says)))
            fail_msg("\"%s\" does not begin with \"%s\"", err.text, bad[i].says);
    }
}

TEST(stages_mean_interleaved_and_nothing_else)
{
    struct recipe r;
    struct err err;

    recipe_defaults(&r);
    r.stages = 4;
    assert_int_equal(recipe_check(&r, NULL), 0);
    assert_int_equal(r.schedule, SCHEDULE_INTERLEAVED);
    r.schedule = SCHEDULE_ZB_H1;
    assert_int_equal(recipe_check(&r, &err), -1);
    assert_string_equal(err.text, "4 stages per rank need the interleaved schedule, not zb-h1");
}

/* DDP and FSDP overlap in every stack, shared optimizer states only where the stack has buckets. */
TEST(stacks_overlap_gradients_as_they_are_known_to)
{
    static const struct {
        int strategy, stack, asked;
        bool does;
    } cases[] = {{STRATEGY_ZERO1, STACK_MEGATRON, DP_OVERLAP_STACK, true},
                 {STRATEGY_ZERO1, STACK_EAGER, DP_OVERLAP_STACK, false},
                 {STRATEGY_ZERO2, STACK_HF, DP_OVERLAP_STACK, false},
                 {STRATEGY_DDP, STACK_EAGER, DP_OVERLAP_STACK, true},
                 {STRATEGY_FSDP, STACK_HF, DP_OVERLAP_STACK, true},
                 {STRATEGY_FSDP, STACK_HF, DP_OVERLAP_OFF, false},
                 {STRATEGY_ZERO1, STACK_EAGER, DP_OVERLAP_ON, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct recipe r;
        recipe_defaults(&r);
        r.strategy = cases[i].strategy;
        r.stack = cases[i].stack;
        r.dp_overlap = cases[i].asked;
        assert_int_equal(recipe_overlaps_dp(&r), cases[i].does);
    }
}
