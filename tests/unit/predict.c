/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/predict.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

/* One question about one preset; the tests change one thing and ask again. */
struct asked {
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct question question;
};

static struct asked *ask(const char *fabric, int racks, const char *model, const char *layout,
                         enum strategy strategy)
{
    struct asked *a = mem_calloc(1, sizeof(*a));

    recipe_defaults(&a->recipe);
    a->recipe.strategy = strategy;
    assert_int_equal(fabric_load(&a->fabric, fabric, NULL), 0);
    assert_int_equal(matrix_from_fabric(&a->matrix, &a->fabric, racks, NULL), 0);
    assert_int_equal(model_load(&a->model, model, NULL), 0);
    assert_int_equal(constants_load(&a->constants, NULL, NULL), 0);
    assert_int_equal(layout_parse(&a->layout, layout, strategy, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_check(&a->layout, &a->model, &a->recipe, NULL), 0);
    a->question = (struct question){.matrix = &a->matrix,
                                    .fabric = &a->fabric,
                                    .model = &a->model,
                                    .layout = &a->layout,
                                    .recipe = &a->recipe,
                                    .constants = &a->constants};
    return a;
}

static void done(struct asked *a)
{
    matrix_free(&a->matrix);
    fabric_free(&a->fabric);
    model_free(&a->model);
    constants_free(&a->constants);
    free(a);
}

static double seconds(const struct asked *a)
{
    struct prediction p;

    assert_int_equal(predict_step(&p, &a->question, NULL), 0);
    double sec = p.sec;
    prediction_free(&p);
    return sec;
}

static const struct term *find(const struct prediction *p, const char *label)
{
    for (int i = 0; i < p->terms; i++)
        if (!strcmp(p->term[i].label, label))
            return &p->term[i];
    fail_msg("no term \"%s\"", label);
    return NULL;
}

TEST(the_step_is_the_sum_of_its_terms_and_lies_in_its_interval)
{
    struct asked *a = ask("hgx-h100", 16, "llama3.1-70b", "tp=4,pp=4,cp=2,dp=2", STRATEGY_ZERO1);
    struct prediction p;
    double sum = 0;

    assert_int_equal(predict_step(&p, &a->question, NULL), 0);
    for (int i = 0; i < p.terms; i++) {
        assert_true(p.term[i].sec >= 0 && p.term[i].hidden >= 0 && p.term[i].error >= 0);
        assert_true(p.term[i].source[0]);
        sum += p.term[i].sec;
        if (p.term[i].kind == TERM_MESSAGE)
            assert_float_equal(p.term[i].one * p.term[i].count, p.term[i].sec + p.term[i].hidden,
                               1e-9 * sum);
    }
    assert_float_equal(sum, p.sec, 1e-12);
    assert_true(p.lo < p.sec && p.sec < p.hi);
    assert_true(p.notes >= 1);
    assert_non_null(strstr(p.note[p.notes - 1], "no anchor"));
    assert_false(p.anchored);
    prediction_free(&p);
    done(a);
}

TEST(the_bubble_is_p_minus_one_over_v_m)
{
    struct asked *a = ask("hgx-h100", 4, "llama3.1-8b", "pp=4,dp=2", STRATEGY_ZERO1);
    struct prediction one, two;

    a->recipe.global_batch = 16; /* 8 microbatches a pipeline */
    assert_int_equal(predict_step(&one, &a->question, NULL), 0);
    assert_float_equal(one.bubble_share, 3.0 / 8, 1e-12);
    double work = one.compute + find(&one, "pp sendrecv")->sec;
    /* the last stage has the head and sets the pace; the others fill and drain faster */
    assert_true(find(&one, "pipeline bubble")->sec < work * 3 / 8);
    assert_true(find(&one, "pipeline bubble")->sec > 0.5 * work * 3 / 8);
    a->recipe.schedule = SCHEDULE_INTERLEAVED;
    a->recipe.stages = 2;
    assert_int_equal(predict_step(&two, &a->question, NULL), 0);
    assert_float_equal(two.bubble_share, 3.0 / 16, 1e-12);
    assert_true(two.sec < one.sec);
    prediction_free(&one);
    prediction_free(&two);
    done(a);
}

TEST(one_rank_has_no_messages_and_no_bubble)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "dp=1", STRATEGY_FSDP);
    struct prediction p;

    assert_int_equal(predict_step(&p, &a->question, NULL), 0);
    for (int i = 0; i < p.terms; i++)
        assert_true(p.term[i].kind != TERM_MESSAGE && p.term[i].kind != TERM_BUBBLE);
    prediction_free(&p);
    done(a);
}

TEST(more_work_and_a_slower_fabric_take_longer)
{
    struct asked *a = ask("hgx-h100", 4, "llama3.1-8b", "dp=128", STRATEGY_FSDP);
    double base = seconds(a), last = base;

    for (int seq = 16384; seq <= 65536; seq *= 2) {
        a->recipe.seq = seq;
        assert_true(seconds(a) > last);
        last = seconds(a);
    }
    a->recipe.seq = 8192;
    a->recipe.grad_bytes = 8;
    double bytes = seconds(a);
    assert_true(bytes > base);
    a->recipe.grad_bytes = 0;
    for (int i = 0; i < a->fabric.tiers; i++)
        if (a->fabric.tier[i].nic)
            a->fabric.tier[i].Bps.value = a->fabric.tier[i].bi_Bps.value /= 4;
    matrix_free(&a->matrix);
    assert_int_equal(matrix_from_fabric(&a->matrix, &a->fabric, 4, NULL), 0);
    for (int i = 0; i < a->matrix.collectives; i++) /* so that the tiers answer */
        a->matrix.collective[i].curve.points = 0;
    assert_true(seconds(a) > base);
    done(a);
}

TEST(sharding_more_is_never_faster_at_equal_wire_bytes_per_parameter)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "dp=32", STRATEGY_ZERO1);

    a->recipe.global_batch = 128;
    a->recipe.grad_bytes = 2;
    double zero1 = seconds(a);
    a->recipe.strategy = STRATEGY_ZERO2;
    double zero2 = seconds(a);
    a->recipe.strategy = STRATEGY_ZERO3;
    double zero3 = seconds(a);
    assert_true(zero1 < zero2 && zero2 < zero3);
    done(a);
}

TEST(recompute_costs_a_third_of_the_products)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "dp=8", STRATEGY_FSDP);
    struct prediction none, selective, full;

    assert_int_equal(predict_step(&none, &a->question, NULL), 0);
    a->recipe.recompute = RECOMPUTE_SELECTIVE;
    assert_int_equal(predict_step(&selective, &a->question, NULL), 0);
    a->recipe.recompute = RECOMPUTE_FULL;
    assert_int_equal(predict_step(&full, &a->question, NULL), 0);
    assert_float_equal(find(&full, "matrix products")->sec / find(&none, "matrix products")->sec,
                       4.0 / 3, 1e-9);
    assert_float_equal(find(&full, "output head")->sec, find(&none, "output head")->sec, 0);
    assert_float_equal(find(&selective, "matrix products")->sec,
                       find(&none, "matrix products")->sec, 0);
    assert_float_equal(find(&selective, "attention core")->sec / find(&none, "attention core")->sec,
                       4.5 / 3.5, 1e-9);
    assert_float_equal(full.model_flops, none.model_flops, 0);
    prediction_free(&none);
    prediction_free(&selective);
    prediction_free(&full);
    done(a);
}

TEST(ranks_scattered_over_racks_are_slower_and_the_slow_group_is_named)
{
    struct asked *a = ask("gb200-nvl72", 2, "llama3.1-8b", "tp=8,dp=18", STRATEGY_ZERO1);
    struct prediction near, far;
    int order[144];

    assert_int_equal(predict_step(&near, &a->question, NULL), 0);
    for (int i = 0; i < 144; i++) /* neighbours in different racks */
        order[i] = i % 2 * 72 + i / 2;
    a->question.order = order;
    assert_int_equal(predict_step(&far, &a->question, NULL), 0);
    assert_true(far.sec > near.sec);
    assert_int_equal(find(&near, "tp all_gather")->shape.domains, 1);
    assert_int_equal(find(&far, "tp all_gather")->shape.domains, 2);
    assert_string_equal(find(&far, "tp all_gather")->slowest,
                        "group 1 of 18: ranks 0, 1 .. 7 on r00n00 .. r01n00");
    prediction_free(&near);
    prediction_free(&far);
    done(a);
}

TEST(a_single_scattered_group_sets_the_pace)
{
    struct asked *a = ask("gb200-nvl72", 2, "llama3.1-8b", "tp=8,dp=18", STRATEGY_ZERO1);
    struct prediction near, far;
    int order[144];

    assert_int_equal(predict_step(&near, &a->question, NULL), 0);
    for (int i = 0; i < 144; i++)
        order[i] = i;
    order[40] = 100;
    order[100] = 40; /* tp groups 5 and 12 */
    a->question.order = order;
    assert_int_equal(predict_step(&far, &a->question, NULL), 0);
    assert_true(find(&far, "tp all_gather")->one > 2 * find(&near, "tp all_gather")->one);
    assert_non_null(strstr(find(&far, "tp all_gather")->slowest, "group 6 of 18: ranks 40"));
    prediction_free(&near);
    prediction_free(&far);
    done(a);
}

TEST(a_slow_nic_reaches_the_answer_and_is_named)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "tp=8,dp=4", STRATEGY_ZERO3);
    struct prediction good, bad;
    char text[320];

    assert_int_equal(predict_step(&good, &a->question, NULL), 0);
    for (int i = 0; i < good.terms; i++)
        assert_int_equal(good.term[i].exception, -1);
    struct exception slow = {.part = PART_ENDPOINT,
                             .a = 17,
                             .b = -1,
                             .tier = -1,
                             .factor = 0.3,
                             .evidence = 9,
                             .why = mem_strdup("9 of 9 partners")};
    MEM_PUSH(a->matrix.exception, a->matrix.exceptions) = slow;
    assert_int_equal(predict_step(&bad, &a->question, NULL), 0);
    assert_true(bad.sec > good.sec);
    const struct term *t = find(&bad, "gradients reduce_scatter");
    assert_float_equal(t->one / find(&good, "gradients reduce_scatter")->one, 1 / 0.3, 0.2);
    assert_int_equal(t->exception, 0);
    assert_int_equal(t->index, 1); /* rank 17 is in the second of eight groups */
    assert_string_equal(predict_exception_text(text, sizeof(text), &a->matrix, 0),
                        "NIC mlx5_1 of r00n02 (GPU 1): 30 % of normal, 9 of 9 partners");
    assert_int_equal(find(&bad, "tp all_gather")->exception, -1);
    prediction_free(&good);
    prediction_free(&bad);
    done(a);
}

TEST(a_measured_compute_rate_comes_first)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "dp=8", STRATEGY_FSDP);
    struct prediction p;

    a->matrix.compute.flops = 1e12;
    a->matrix.compute.source = mem_strdup("fp32 matmul measured here");
    assert_int_equal(predict_step(&p, &a->question, NULL), 0);
    assert_int_equal(p.rate.basis, BASIS_MEASURED);
    assert_string_equal(p.rate.source, "fp32 matmul measured here");
    double scores = 6.44e9 / 6; /* of the core, made again backward */
    assert_float_equal(p.compute / ((51.5e9 + scores) * 8192 / 1e12), 1, 0.01);
    double steady = p.hi / p.lo;
    prediction_free(&p);
    a->matrix.compute.flops_spread = 0.8; /* a busy host: the interval has to know */
    assert_int_equal(predict_step(&p, &a->question, NULL), 0);
    assert_true(p.hi / p.lo > 3 * steady);
    prediction_free(&p);
    done(a);
}

TEST(what_cannot_be_judged_is_said)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "dp=8", STRATEGY_FSDP);
    struct prediction p;
    struct err err;
    int order[8] = {0, 1, 2, 3, 4, 5, 6, 32};

    a->recipe.dtype = DTYPE_NVFP4;
    assert_int_equal(predict_step(&p, &a->question, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
    assert_non_null(strstr(err.text, "no nvfp4 peak rate of"));
    prediction_free(&p);
    a->recipe.dtype = DTYPE_BF16;
    a->question.fabric = NULL;
    assert_int_equal(predict_step(&p, &a->question, &err), -1);
    assert_non_null(strstr(err.text, "no compute rate is known"));
    prediction_free(&p);
    a->question.fabric = &a->fabric;
    a->question.order = order;
    assert_int_equal(predict_step(&p, &a->question, &err), -1);
    assert_string_equal(err.text, "rank 7 is placed on endpoint 32, and the matrix has 0..31");
    prediction_free(&p);
    a->question.order = NULL;
    a->layout.ranks = 64;
    assert_int_equal(predict_step(&p, &a->question, &err), -1);
    assert_string_equal(err.text, "the layout needs 64 ranks and the matrix has 32 endpoints");
    prediction_free(&p);
    done(a);
}

TEST(a_dead_part_is_no_time_but_an_error)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", "dp=32", STRATEGY_FSDP);
    struct exception dead = {.part = PART_ENDPOINT, .a = 3, .b = -1, .tier = -1, .evidence = 9};
    struct prediction p;
    struct err err;

    MEM_PUSH(a->matrix.exception, a->matrix.exceptions) = dead;
    assert_int_equal(predict_step(&p, &a->question, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
    assert_non_null(strstr(err.text, "over dp_shard: a part that it needs is dead"));
    prediction_free(&p);
    done(a);
}

TEST(the_short_way_gives_the_same_answer_and_json_holds_it)
{
    struct asked *a = ask("gb200-nvl72", 1, "llama3.1-8b", "dp_shard=72", STRATEGY_FSDP);
    struct prediction p;
    double sum = 0;

    assert_int_equal(
        predict_layout(&p, &a->matrix, "llama3.1-8b", "dp_shard=72", STRATEGY_FSDP, 0, NULL), 0);
    assert_float_equal(p.sec, seconds(a), 1e-12);
    json_t *j = predict_json(&p, &a->matrix), *terms = json_object_get(j, "terms");
    char *text = json_dumps(j, 0);
    assert_non_null(text);
    assert_float_equal(json_real_value(json_object_get(j, "step_s")), p.sec, 0);
    assert_int_equal(json_array_size(terms), (size_t)p.terms);
    for (size_t i = 0; i < json_array_size(terms); i++)
        sum += json_real_value(json_object_get(json_array_get(terms, i), "share"));
    assert_float_equal(sum, 1, 1e-9);
    free(text);
    json_decref(j);
    prediction_free(&p);
    done(a);
}

TEST(the_short_way_passes_on_every_refusal)
{
    struct asked *a = ask("gb200-nvl72", 1, "llama3.1-8b", "dp_shard=72", STRATEGY_FSDP);
    struct prediction p;
    struct err err;

    assert_int_equal(predict_layout(&p, &a->matrix, "gpt9", "dp=72", STRATEGY_FSDP, 0, &err), -1);
    assert_non_null(strstr(err.text, "no model \"gpt9\""));
    prediction_free(&p);
    assert_int_equal(predict_layout(&p, &a->matrix, "llama3.1-8b", "tp=6", STRATEGY_FSDP, 0, &err),
                     -1);
    assert_string_equal(err.text, "tp=6 does not divide the 32 heads of llama3.1-8b");
    prediction_free(&p);
    done(a);
}
