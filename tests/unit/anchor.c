/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/anchor.h"
#include "step/timing.h"
#include "test.h"

#include <math.h>
#include <string.h>

/* 2 s of messages beside compute of 3 s: hidden messages are seen once compute is too short. */
struct made_step {
    double compute, messages, beside;
    int asked;
};

static double seconds(void *ctx, double stretch)
{
    struct made_step *s = ctx;
    double compute = s->compute * stretch;

    s->asked++;
    return compute + s->messages + fmax(0, s->beside - compute);
}

static double solve(struct made_step *s, double measured)
{
    double stretch = NAN;

    assert_int_equal(timing_stretch(&stretch, seconds, s, measured, NULL), 0);
    return stretch;
}

TEST(a_line_is_solved_exactly)
{
    struct made_step s = {3, 2, 0, 0};

    assert_float_equal(solve(&s, 8), 2, 1e-8);
    assert_true(s.asked < 10);
    assert_float_equal(solve(&s, 3.5), 0.5, 1e-8);
}

TEST(a_kink_is_no_obstacle)
{
    struct made_step s = {3, 2, 6, 0};

    /* Below a stretch of 2 the step stays at 8 s: the solution lies on the rising part. */
    assert_float_equal(solve(&s, 11), 3, 1e-8);
    assert_float_equal(solve(&s, 8.3), 2.1, 1e-8);
    assert_true(s.asked < 120);
}

TEST(the_prediction_equals_the_measurement_afterwards)
{
    struct made_step s = {0.37, 0.01, 0.5, 0};

    for (double measured = 0.52; measured < 15; measured *= 1.37)
        assert_float_equal(seconds(&s, solve(&s, measured)) / measured, 1, 1e-6);
}

TEST(what_compute_cannot_explain_is_refused_with_both_times)
{
    struct made_step s = {3, 2, 0, 0};
    struct err err = {0, ""};
    double stretch;

    assert_int_equal(timing_stretch(&stretch, seconds, &s, 1, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
    assert_non_null(strstr(err.text, "all but left out the anchor is predicted at 2.06 s"));
    assert_non_null(strstr(err.text, "and 1.00 s were measured"));
    assert_int_equal(timing_stretch(&stretch, seconds, &s, 1000, &err), -1);
    assert_non_null(strstr(err.text, "taking 50 times as long"));
}
