/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "step/replay/pipeline.h"
#include "test.h"

static void near(double is, double should)
{
    if (fabs(is - should) > 1e-9 * fabs(should))
        fail_msg("%.12g is not %.12g", is, should);
}

/* F0 F1 .. then one forward, one backward, then the rest backward. */
TEST(one_forward_one_backward)
{
    const struct pipeline p = {4, 1, 6};
    struct unit *u = pipeline_units(&p, 1);
    const char *want = "FFFBFBFBFBBB";

    for (int i = 0, f = 0, b = 0; i < 12; i++) {
        assert_int_equal(u[i].backward, want[i] == 'B');
        assert_int_equal(u[i].microbatch, u[i].backward ? b++ : f++);
        assert_int_equal(u[i].chunk, 0);
    }
    free(u);
    u = pipeline_units(&p, 3);
    assert_false(u[0].backward);
    assert_true(u[1].backward);
    free(u);
}

/* Every (microbatch, chunk) forward once and backward once, and never backward before forward. */
TEST(interleaved_order_is_complete_on_every_stage)
{
    const struct pipeline p = {4, 3, 8};

    for (int s = 0; s < p.stages; s++) {
        struct unit *u = pipeline_units(&p, s);
        int seen[8][3] = {{0}};
        for (int i = 0; i < 2 * 8 * 3; i++) {
            int *at = &seen[u[i].microbatch][u[i].chunk];
            assert_int_equal(*at, u[i].backward ? 1 : 0);
            (*at)++;
        }
        free(u);
    }
}

TEST(inputs_come_from_the_part_before)
{
    const struct pipeline p = {2, 2, 2};
    int chunk = -1;

    assert_int_equal(pipeline_peer(&p, 0, &(struct unit){0, 0, false}, false, &chunk), -1);
    assert_int_equal(pipeline_peer(&p, 0, &(struct unit){0, 1, false}, false, &chunk), 1);
    assert_int_equal(chunk, 0);
    assert_int_equal(pipeline_peer(&p, 1, &(struct unit){0, 0, false}, true, &chunk), 0);
    assert_int_equal(chunk, 1);
    assert_int_equal(pipeline_peer(&p, 1, &(struct unit){0, 1, true}, false, &chunk), -1);
    assert_int_equal(pipeline_peer(&p, 0, &(struct unit){0, 1, true}, true, &chunk), 1);
    assert_int_equal(chunk, 0);
}

/* (m + (p-1)/v) (F + B), as Narayanan et al. have it. */
TEST(without_messages_the_bubble_is_the_published_one)
{
    for (int p = 1; p <= 8; p *= 2)
        for (int v = 1; v <= 3; v++) {
            struct pipeline pipe = {p, v, 3 * p};
            if (p > 1 || v == 1)
                near(pipeline_time(&pipe, 1.0 / v, 2.0 / v, 0), 3 * (3 * p + (p - 1.0) / v));
        }
}

static double seen(int p, int m)
{
    const struct pipeline pipe = {p, 1, m};

    return pipeline_time(&pipe, 1, 2, 0.125) - pipeline_time(&pipe, 1, 2, 0);
}

/* A stage has p microbatches in flight, and their way there and back is 2 (p-1) messages: each
 * further microbatch shows (p-1)/p of its 2 messages. */
TEST(messages_of_1f1b_are_seen_for_all_but_a_pth)
{
    for (int p = 2; p <= 8; p *= 2) {
        near(seen(p, 8 * p) - seen(p, 4 * p), 2 * 0.125 * (p - 1) / p * 4 * p);
        assert_true(seen(p, p) >= 2 * 0.125 * (p - 1)); /* there and back once */
    }
}

/* Where a message takes longer than a unit of work, messages set the pace. */
TEST(messages_of_one_direction_do_not_overtake)
{
    const struct pipeline p = {2, 1, 16};
    double slow = pipeline_time(&p, 1, 2, 10), more = 0;
    const struct pipeline longer = {2, 1, 32};

    more = pipeline_time(&longer, 1, 2, 10) - slow;
    assert_true(more >= 16 * 10);
}

/* Seconds of all stages from first to last piece, less their work: the longest. */
static double idle(const struct pipeline *p, enum schedule schedule, double f, double b, double w)
{
    const double sec[PIECE_KINDS] = {f, b, b + w, w};
    struct pipe_played stage[16] = {{0}};
    double most = 0;

    for (int i = 0; i < p->stages; i++) {
        stage[i].pace = 1;
        pipeline_order(&stage[i], p, schedule, i);
    }
    pipeline_play(stage, p, sec);
    for (int i = 0; i < p->stages; i++) {
        double begin = schedule == SCHEDULE_ZB_H2 ? stage[i].begin : 0, work = 0;
        int done[PIECE_KINDS] = {0};
        assert_int_equal(stage[i].next, stage[i].pieces);
        for (int k = 0; k < stage[i].pieces; k++) {
            const struct piece *u = &stage[i].piece[k];
            done[u->kind]++;
            work += sec[u->kind];
            if (k && !stage[i].piece[k - 1].joined)
                assert_true(u->start >= u[-1].start + sec[u[-1].kind] - 1e-9);
        }
        int units = p->microbatches * p->chunks;
        assert_int_equal(done[PIECE_FORWARD], units);
        assert_int_equal(done[PIECE_INPUTS] + done[PIECE_BACKWARD], units);
        assert_int_equal(done[PIECE_WEIGHTS], done[PIECE_INPUTS]);
        if (stage[i].end - begin - work > most)
            most = stage[i].end - begin - work;
        free(stage[i].piece);
    }
    return most;
}

/* Narayanan et al. 2021, 2.2; Qi et al. 2023, table 2; DeepSeek-V3 2024, table 2. */
TEST(bubbles_of_schedules_are_those_of_their_papers)
{
    static const double times[][3] = {{1, 1, 1}, {1, 1.2, 0.8}, {1.5, 2.5, 1}};

    for (int p = 2; p <= 8; p *= 2)
        for (int m = 2 * p; m <= 4 * p; m += 2 * p)
            for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
                double f = times[i][0], b = times[i][1], w = times[i][2];
                const struct pipeline one = {p, 1, m}, three = {p, 3, m};
                near(idle(&one, SCHEDULE_1F1B, f, b, w), (p - 1) * (f + b + w));
                near(idle(&three, SCHEDULE_INTERLEAVED, f, b, w), (p - 1) * (f + b + w));
                near(idle(&one, SCHEDULE_ZB_H1, f, b, w), (p - 1) * (f + b - w));
                double wide = (p - 1) * (f + b - 2 * w), is = idle(&one, SCHEDULE_ZB_H2, f, b, w);
                assert_true(is > wide - 1e-9 && is < wide + 1e-9);
                double dual = (p / 2.0 - 1) * (f + b + w + b + w - 3 * w);
                is = idle(&one, SCHEDULE_DUALPIPE, f, b, w);
                if (b == w)
                    assert_true(is > dual - 1e-9 && is < dual + 1e-9);
                assert_true(is <= dual + 1e-9 && is >= dual - (p / 2.0 - 1) * (b - w) - 1e-9);
            }
}
