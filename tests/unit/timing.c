/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/timing.h"
#include "test.h"

#include <math.h>

/* Unit rates, so that amounts are seconds; the tests set what they look at. */
static struct coefficients unit_coefficients(void)
{
    struct coefficients c = {.stretch = 1, .overlap = 1, .links = 1};

    for (int i = 0; i < WORK_PARTS; i++)
        c.unit[i] = 1;
    return c;
}

static struct work even(double forward, double backward)
{
    struct work w = {.weights = 1};

    w.mean.forward[WORK_LINEAR] = forward;
    w.mean.backward[WORK_LINEAR] = backward;
    w.other = w.last = w.mean;
    return w;
}

static struct layout pipeline(int pp, int dp)
{
    struct layout l = {.ranks = pp * dp};

    for (int i = 0; i < AXIS_COUNT; i++)
        l.size[i] = 1;
    l.size[AXIS_PP] = pp;
    l.size[AXIS_DP_SHARD] = dp;
    return l;
}

static struct recipe batches(int dp, int m)
{
    struct recipe r;

    recipe_defaults(&r);
    r.global_batch = dp * m;
    return r;
}

static double sum(const struct timing *t, int messages)
{
    double s = t->bubble + t->optimizer + t->fixed + t->eval + t->checkpoint + t->other;

    for (int i = 0; i < WORK_PARTS; i++)
        s += t->part[i];
    for (int i = 0; i < messages; i++)
        s += t->seen[i];
    return s;
}

TEST(equal_stages_give_the_published_bubble)
{
    struct coefficients c = unit_coefficients();
    struct traffic none = {.messages = 0};
    struct work w = even(1, 2);
    struct layout l = pipeline(4, 1);
    struct recipe r = batches(1, 8);
    struct timing t;

    timing_of(&t, &none, NULL, &w, &c, &l, &r);
    assert_float_equal(t.sec, 3 * (8 + 3), 1e-12);
    r.stages = 3;
    r.schedule = SCHEDULE_INTERLEAVED;
    timing_of(&t, &none, NULL, &w, &c, &l, &r);
    assert_float_equal(t.sec, 3 * (8 + 3 / 3.0), 1e-12);
    assert_float_equal(sum(&t, 0), t.sec, 1e-12);
}

/* F = 1, B = 1 and W = 1 s, four stages. */
TEST(zero_bubble_schedules_fill_it_with_weights_gradients)
{
    static const struct {
        enum schedule schedule;
        double bubble;
    } want[] = {{SCHEDULE_1F1B, 3 * (1 + 1 + 1)},
                {SCHEDULE_ZB_H1, 3 * (1 + 1 - 1)},
                {SCHEDULE_ZB_H2, 3 * (1 + 1 - 2)},
                {SCHEDULE_DUALPIPE, (2 - 1) * (1 + 2 + 1 - 2)}};
    struct coefficients c = unit_coefficients();
    struct traffic none = {.messages = 0};
    struct work w = even(1, 2);
    struct layout l = pipeline(4, 1);
    struct recipe r = batches(1, 8);
    struct timing t;

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        r.schedule = (int)want[i].schedule;
        timing_of(&t, &none, NULL, &w, &c, &l, &r);
        assert_float_equal(t.bubble, want[i].bubble, 1e-12);
        assert_float_equal(t.sec, 24 + want[i].bubble, 1e-12);
    }
    w.weights = 0; /* frozen: nothing to fill it with */
    r.schedule = SCHEDULE_ZB_H1;
    timing_of(&t, &none, NULL, &w, &c, &l, &r);
    assert_float_equal(t.bubble, 9, 1e-12);
}

/* Stages of 3, 3, 3 and 7 s: seven rounds of the slowest and one of each. */
TEST(the_slowest_stage_sets_the_pace)
{
    struct coefficients c = unit_coefficients();
    struct traffic none = {.messages = 0};
    struct work w = even(1, 2);
    struct layout l = pipeline(4, 1);
    struct recipe r = batches(1, 8);
    struct timing t;

    w.last.forward[WORK_HEAD] = 4;
    w.mean.forward[WORK_HEAD] = 1;
    timing_of(&t, &none, NULL, &w, &c, &l, &r);
    assert_true(t.last);
    assert_float_equal(t.sec, 7 * 7 + (3 + 3 + 3 + 7), 1e-12);
}

static struct message gradients(double count, double rounds)
{
    return (struct message){.label = "gradients",
                            .op = OP_REDUCE_SCATTER,
                            .phase = PHASE_BACKWARD,
                            .count = count,
                            .rounds = rounds};
}

/* Once a step beside one backward pass of 2 s: what does not fit is seen, and the last message at
 * least. */
TEST(gradients_hide_behind_one_backward_pass)
{
    struct coefficients c = unit_coefficients();
    struct traffic tr = {.messages = 1, .message = {gradients(10, 1)}};
    struct work w = even(1, 2);
    struct layout l = pipeline(1, 2);
    struct recipe r = batches(2, 4);
    struct timing t;

    timing_of(&t, &tr, (double[]){0.1}, &w, &c, &l, &r); /* 1 s in all */
    assert_float_equal(t.seen[0], 0.1, 1e-12);
    timing_of(&t, &tr, (double[]){0.5}, &w, &c, &l, &r); /* 5 s in all */
    assert_float_equal(t.raw[0], 5, 1e-12);
    assert_true(t.seen[0] >= 3 && t.seen[0] < 3.5);
    tr.message[0] = gradients(40, 4); /* every microbatch */
    timing_of(&t, &tr, (double[]){0.5}, &w, &c, &l, &r);
    assert_true(t.seen[0] >= 12 && t.seen[0] < 14);
    assert_float_equal(sum(&t, 1), t.sec, 1e-12);
}

/* 10 kernels forward and 20 backward: a host that needs 0.2 s for each takes 6 s, of which compute
 * and messages inside layers cover their own.  A faster one costs nothing. */
TEST(a_slow_host_sets_the_pace_of_a_microbatch)
{
    struct coefficients c = unit_coefficients();
    struct message inside = {.phase = PHASE_LAYER, .exposure = EXPOSE_TP, .count = 8, .rounds = 4};
    struct traffic tr = {.messages = 1, .message = {inside}};
    struct work w = even(1, 2);
    struct layout l = pipeline(1, 2);
    struct recipe r = batches(2, 4);
    struct timing t;

    w.mean.forward[WORK_LAUNCH] = 10;
    w.mean.backward[WORK_LAUNCH] = 20;
    w.other = w.last = w.mean;
    c.exposed[EXPOSE_TP] = 1;
    c.unit[WORK_LAUNCH] = 0;
    for (int slow = 0; slow < 2; slow++) {
        c.host = slow ? 0.2 : 0.1;
        timing_of(&t, &tr, (double[]){0.5}, &w, &c, &l, &r); /* 3 s and 1 s of a microbatch */
        assert_float_equal(t.sec, 4 * (slow ? 6 : 4), 1e-12);
        assert_float_equal(t.waits, slow ? 2 : 0, 1e-12);
        assert_float_equal(sum(&t, 1), t.sec, 1e-12);
    }
}

/* Links slower than their preset stretch what leaves a domain of 8 and nothing inside it. */
TEST(slow_links_stretch_what_leaves_a_domain)
{
    static const struct {
        struct span span;
        double times;
    } groups[] = {{{8, 1}, 1}, {{4, 2}, 1}, {{2, 8}, 3}, {{16, 1}, 3}};
    struct coefficients c = unit_coefficients();
    struct work w = even(1, 2);
    struct layout l = pipeline(1, 2);
    struct recipe r = batches(2, 4);
    struct timing t;

    c.links = 3;
    c.domain = 8;
    c.exposed[EXPOSE_TP] = 1;
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        for (int inside = 0; inside < 2; inside++) {
            struct message m = gradients(10, 1);
            m.span = groups[i].span;
            if (inside)
                m.phase = PHASE_LAYER, m.exposure = EXPOSE_TP;
            struct traffic tr = {.messages = 1, .message = {m}};
            timing_of(&t, &tr, (double[]){0.02}, &w, &c, &l, &r);
            assert_float_equal(t.raw[0], 0.2 * groups[i].times, 1e-12);
            if (!inside) /* the first hides behind nothing */
                assert_float_equal(t.seen[0], 0.02 * groups[i].times, 1e-12);
        }
}

/* With nothing beside them they take their factor of the fabric's time, in a pipeline's bubble
 * neither more nor less. */
TEST(gradients_beside_nothing_are_seen_whole)
{
    struct coefficients c = unit_coefficients();
    struct traffic tr = {.messages = 1, .message = {gradients(10, 1)}};
    struct work w = even(1, 2);
    struct recipe r = batches(2, 4);
    struct timing t, none;

    c.exposed[EXPOSE_DP_PLAIN] = 1.5;
    tr.message[0].exposure = EXPOSE_DP_PLAIN;
    for (int pp = 1; pp <= 4; pp *= 4) {
        struct layout l = pipeline(pp, 2);
        struct traffic nothing = {.messages = 0};
        timing_of(&none, &nothing, NULL, &w, &c, &l, &r);
        timing_of(&t, &tr, (double[]){0.1}, &w, &c, &l, &r);
        assert_float_equal(t.seen[0], 1.5, 1e-12);
        assert_float_equal(t.sec - none.sec, 1.5, 1e-12);
    }
}

/* A gather of 0.1 s beside 1 s of forward compute hides but for the first; without prefetch no
 * layer's does, and strategies that gather nothing do not care. */
TEST(without_prefetch_layers_wait_for_their_weights)
{
    struct coefficients c = unit_coefficients();
    struct message gather = gradients(10, 1);
    struct work w = even(1, 2);
    struct layout l = pipeline(1, 2);
    struct recipe r = batches(2, 1);
    struct timing t;

    gather.op = OP_ALL_GATHER;
    gather.phase = PHASE_FORWARD;
    struct traffic tr = {.messages = 1, .message = {gather}};
    r.strategy = STRATEGY_FSDP;
    r.prefetch = true;
    timing_of(&t, &tr, (double[]){0.05}, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.05, 1e-12);
    r.prefetch = false;
    timing_of(&t, &tr, (double[]){0.05}, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.5, 1e-12);
    r.strategy = STRATEGY_ZERO1;
    timing_of(&t, &tr, (double[]){0.05}, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.05, 1e-12);
}

TEST(a_share_of_messages_inside_layers_is_seen)
{
    struct coefficients c = unit_coefficients();
    struct traffic tr = {.messages = 1,
                         .message = {{.label = "tp",
                                      .op = OP_ALL_GATHER,
                                      .exposure = EXPOSE_TP,
                                      .phase = PHASE_LAYER,
                                      .count = 8,
                                      .rounds = 4}}};
    struct work w = even(1, 2);
    struct layout l = pipeline(2, 1);
    struct recipe r = batches(1, 4);
    struct timing t;

    c.exposed[EXPOSE_TP] = 0.5;
    timing_of(&t, &tr, (double[]){0.1}, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.4, 1e-12);
    assert_float_equal(t.bubble, 3.1, 1e-12); /* a microbatch with what is seen in it */
}

/* 1 s of gradients beside 0.5 s of backward compute and what tp shows of 0.6 s meanwhile. */
TEST(messages_inside_layers_hide_gradients_as_far_as_the_constant_says)
{
    struct coefficients c = unit_coefficients();
    struct traffic tr = {.messages = 2,
                         .message = {gradients(10, 1),
                                     {.label = "tp",
                                      .op = OP_ALL_GATHER,
                                      .exposure = EXPOSE_TP,
                                      .phase = PHASE_LAYER,
                                      .count = 6,
                                      .rounds = 1}}};
    const double one[] = {0.1, 0.15};
    struct work w = even(0.25, 0.5);
    struct layout l = pipeline(1, 2);
    struct recipe r = batches(2, 1);
    struct timing t;

    c.exposed[EXPOSE_TP] = 1;
    timing_of(&t, &tr, one, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.5 + 0.1 * 0.5, 1e-12);
    c.beside = 0.5; /* of the 0.6 s that lie in the backward pass */
    timing_of(&t, &tr, one, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.2 + 0.1 * 0.8, 1e-12);
    c.beside = 1;
    timing_of(&t, &tr, one, &w, &c, &l, &r);
    assert_float_equal(t.seen[0], 0.1, 1e-12);
}

TEST(an_anchor_stretches_compute_alone)
{
    struct coefficients c = unit_coefficients();
    struct traffic none = {.messages = 0};
    struct work w = even(1, 2);
    struct layout l = pipeline(1, 1);
    struct recipe r = batches(1, 1);
    struct timing t;

    c.stretch = 1.5;
    c.fixed = 7;
    r.eval_seconds = 0.25;
    timing_of(&t, &none, NULL, &w, &c, &l, &r);
    assert_float_equal(t.sec, 4.5 + 7.25, 1e-12);
    assert_float_equal(t.forward, 1.5, 1e-12);
}
