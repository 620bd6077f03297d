/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/score.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char one[] = "one", two[] = "two";
static char a[] = "a", b[] = "b", c[] = "c", d[] = "d", e[] = "e";

/* Two families on so many GPUs; a step of 8000 tokens a GPU takes 1 s where measured is 1.  Row 0
 * anchors the first; row 5 belongs to the second alone; row 6 was not predicted. */
static struct batch_row rows[] = {
    {.other_dtype = -1,
     .family = one,
     .job = a,
     .split = "calib",
     .gpus = 8,
     .tokens = 64e3,
     .measured = 1.0,
     .predicted = 1.1,
     .lo = 0.9,
     .hi = 1.2,
     .anchored = 1.0,
     .anchor = 0,
     .same_anchor = 0,
     .same_anchored = 1.0,
     .dense = true},
    {.other_dtype = -1,
     .family = one,
     .job = b,
     .split = "test_scale",
     .gpus = 16,
     .tokens = 128e3,
     .measured = 1.2,
     .predicted = 1.08,
     .lo = 1.0,
     .hi = 1.3,
     .anchored = 1.188,
     .anchor = 0,
     .same_anchor = 0,
     .same_anchored = 1.212,
     .dense = true},
    {.other_dtype = -1,
     .family = one,
     .job = c,
     .split = "test_scale",
     .gpus = 16,
     .tokens = 128e3,
     .measured = 0.8,
     .predicted = 1.2,
     .lo = 1.0,
     .hi = 1.3,
     .anchored = 1.04,
     .anchor = 0,
     .same_anchor = 2,
     .same_anchored = 0.8,
     .dense = true},
    {.other_dtype = -1,
     .family = one,
     .job = d,
     .split = "calib",
     .gpus = 16,
     .tokens = 128e3,
     .measured = 0.81,
     .predicted = 0.81,
     .lo = 0.8,
     .hi = 0.9,
     .anchored = 0.81,
     .anchor = 0,
     .same_anchor = 2,
     .same_anchored = 0.81,
     .dense = true},
    {.other_dtype = -1,
     .family = one,
     .job = d,
     .split = "calib",
     .gpus = 16,
     .tokens = 128e3,
     .measured = 0.5,
     .predicted = 0.81,
     .lo = 0.8,
     .hi = 0.9,
     .anchored = 0.81,
     .anchor = 0,
     .same_anchor = 2,
     .same_anchored = 0.81,
     .dense = false},
    {.other_dtype = -1,
     .family = two,
     .job = e,
     .split = "test_hw",
     .gpus = 8,
     .tokens = 64e3,
     .measured = 2.0,
     .predicted = 1.0,
     .lo = 0.8,
     .hi = 1.2,
     .anchored = 2.0,
     .anchor = 5,
     .same_anchor = 5,
     .same_anchored = 2.0,
     .dense = true},
    {.other_dtype = -1,
     .family = NULL,
     .split = "test_hw",
     .status = BATCH_MISS,
     .measured = NAN,
     .predicted = NAN,
     .anchored = NAN,
     .anchor = -1,
     .same_anchor = -1,
     .same_anchored = NAN},
};

static struct batch batch = {.row = rows, .rows = sizeof(rows) / sizeof(*rows)};

static struct score of(enum score_with with, enum score_by by, const char *value)
{
    struct score s;

    score_errors(&s, &batch, with, (struct score_cut){by, value});
    return s;
}

TEST(errors_without_an_anchor)
{
    /* +10 %, -10 %, +50 %, 0, +62 %, -50 % */
    struct score s = of(SCORE_ALONE, BY_ALL, NULL);
    assert_int_equal(s.n, 6);
    assert_float_equal(s.median, 0.3, 1e-12);
    assert_float_equal(s.mean, (0.1 + 0.1 + 0.5 + 0 + 0.62 + 0.5) / 6, 1e-12);
    assert_float_equal(s.max, 0.62, 1e-12);
    assert_float_equal(s.p90, 0.56, 1e-12); /* half-way between the two largest */
    assert_float_equal(s.bias, pow(1.1 * 0.9 * 1.5 * 1.62 * 0.5, 1.0 / 6) - 1, 1e-12);
    assert_float_equal(s.inside, 3.0 / 6, 1e-12);
}

TEST(cuts_take_their_rows_only)
{
    assert_int_equal(of(SCORE_ALONE, BY_TEST, NULL).n, 3);
    assert_int_equal(of(SCORE_ALONE, BY_REST, NULL).n, 3);
    assert_int_equal(of(SCORE_ALONE, BY_SPLIT, "test_hw").n, 1);
    assert_float_equal(of(SCORE_ALONE, BY_SPLIT, "test_hw").median, 0.5, 1e-12);
    struct score none = of(SCORE_ALONE, BY_SPLIT, "test_layout");
    assert_int_equal(none.n, 0);
    assert_true(isnan(none.median) && isnan(none.p90) && isnan(none.inside));
}

TEST(an_anchor_is_not_scored_itself)
{
    /* -1 %, +30 %, 0, +62 %; row 0 and 5 are anchors */
    struct score s = of(SCORE_ANCHORED, BY_ALL, NULL);
    assert_int_equal(s.n, 4);
    assert_float_equal(s.median, 0.155, 1e-12);
    assert_float_equal(s.max, 0.62, 1e-12);
    assert_true(isnan(s.inside));
}

TEST(the_naive_guess_is_the_anchors_speed)
{
    /* 8000 tokens a GPU in 1 s: 1/1.2, 1/0.8, 1/0.81, 1/0.5 */
    struct score s = of(SCORE_NAIVE, BY_ALL, NULL);
    assert_int_equal(s.n, 4);
    assert_float_equal(s.max, 1, 1e-12);
    assert_float_equal(s.median, (0.25 + 1 / 0.81 - 1) / 2, 1e-12);
}

TEST(same_layout_wants_a_dense_model_on_other_gpus)
{
    struct score s = of(SCORE_SAME, BY_ALL, NULL);
    assert_int_equal(s.n, 1); /* row 1; 3 and 4 have the GPUs of their anchor */
    assert_float_equal(s.median, 0.01, 1e-12);
}

TEST(pairs_far_enough_apart_are_ordered)
{
    struct score_order o;

    /* measured 1, 1.2, 0.8, 0.81, 0.5; predicted 1.1, 1.08, 1.2, 0.81, 0.81.  0.8 and 0.81 are too
     * near, 0.81 and 0.5 are one job; wrong are 1 and 1.2, 1 and 0.8, 1.2 and 0.8. */
    score_order(&o, &batch, SCORE_ALONE, (struct score_cut){BY_ALL, NULL}, 0.05);
    assert_int_equal(o.pairs, 8);
    assert_int_equal(o.same, 1);
    assert_int_equal(o.right, 5);
    score_order(&o, &batch, SCORE_ANCHORED, (struct score_cut){BY_ALL, NULL}, 0.05);
    /* 1, 1.188, 1.04, 0.81, 0.81: only 1 and 0.8 is wrong */
    assert_int_equal(o.right, 7);
    /* With a test row among them: all but 1 and 0.81, 1 and 0.5. */
    score_order(&o, &batch, SCORE_ALONE, (struct score_cut){BY_TEST, NULL}, 0.05);
    assert_int_equal(o.pairs, 6);
    assert_int_equal(o.right, 3);
}

TEST(equal_predictions_are_not_in_order)
{
    struct score_order o;
    double was = rows[3].predicted;

    rows[3].predicted = rows[1].predicted; /* 0.81 and 1.2 measured */
    score_order(&o, &batch, SCORE_ALONE, (struct score_cut){BY_ALL, NULL}, 0.05);
    rows[3].predicted = was;
    assert_int_equal(o.pairs, 8);
    assert_int_equal(o.right, 4);
}

TEST(a_dtype_in_doubt_makes_no_pair)
{
    struct score_order o;

    rows[0].other_dtype = 2; /* four pairs have it, two of them wrong */
    score_order(&o, &batch, SCORE_ALONE, (struct score_cut){BY_ALL, NULL}, 0.05);
    rows[0].other_dtype = -1;
    assert_int_equal(o.doubt, 4);
    assert_int_equal(o.pairs, 4);
    assert_int_equal(o.right, 3);
}

TEST(the_best_of_a_family_is_ranked_by_jobs)
{
    int n;

    struct score_best *best = score_best(&batch, SCORE_ALONE, &n);
    assert_int_equal(n, 1); /* the other family has one job */
    assert_string_equal(best->family, "one");
    assert_int_equal(best->jobs, 4);
    assert_int_equal(best->best, 4); /* 0.5 s; predicted 0.81, none faster */
    assert_int_equal(best->rank, 1);
    assert_true(best->has_test);
    free(best);
    double was = rows[4].measured;
    rows[4].measured = 0.9; /* now row 2 is fastest, and predicted last of four */
    best = score_best(&batch, SCORE_ALONE, &n);
    rows[4].measured = was;
    assert_int_equal(best->best, 2);
    assert_int_equal(best->rank, 4);
    free(best);
}

TEST(targets_are_judged_in_their_direction)
{
    struct score_target t[SCORE_TARGETS];

    score_targets(t, &batch);
    assert_string_equal(t[0].what, "test rows, no anchor, median");
    assert_float_equal(t[0].figure, 0.5, 1e-12);
    assert_int_equal(t[0].n, 3);
    assert_false(score_met(&t[0]));
    assert_string_equal(t[6].what, "dense, same layout, other scale, median");
    assert_float_equal(t[6].figure, 0.01, 1e-12);
    const struct score_target at_least = {"x", 0.96, 0.95, true, 1},
                              nothing = {"x", 0, 1, false, 0};
    assert_true(score_met(&at_least));
    assert_false(score_met(&nothing));
}

/* Five rows of one have a median of 10 % and three inside; the one row of the other counts as much. */
TEST(publishers_count_alike)
{
    struct score_publishers p;

    for (int i = 0; i < 6; i++)
        strcpy(rows[i].publisher, i < 5 ? "many" : "few");
    score_publishers(&p, &batch);
    assert_int_equal(p.n, 2);
    assert_float_equal(p.median, (0.1 + 0.5) / 2, 1e-12);
    assert_float_equal(p.inside, (0.6 + 0) / 2, 1e-12);
}

TEST(values_are_listed_once)
{
    int n;
    const char **list = score_values(&batch, BY_SPLIT, &n);

    assert_int_equal(n, 3);
    assert_string_equal(list[0], "calib");
    assert_string_equal(list[1], "test_scale");
    assert_string_equal(list[2], "test_hw");
    free(list);
}
