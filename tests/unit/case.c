/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

/* Two sizes of one job on one kind of machine, one job on another. */
#define JOBS                                                                                       \
    "\"jobs\": {\"a\": {\"fabric\": \"hgx-h100\", \"model\": \"llama3.1-8b\", \"layout\": "        \
    "\"dp_shard=16\", \"expandable_segments\": \"on\"}, \"b\": {\"like\": \"a\", "                 \
    "\"layout\": \"dp_shard=32\"}, "                                                               \
    "\"c\": {\"like\": \"a\", \"fabric\": \"gb200-nvl72\", \"layout\": \"dp_shard=16\"}}"

/* A case with these lists beside the jobs; the caller frees it. */
static struct casefile judged(const char *lists)
{
    struct casefile c;
    struct err err = {0, ""};
    char *text = mem_printf("{\"format\": \"railgauge-case\", \"version\": 1, \"title\": \"t\", "
                            "\"source\": {\"publication\": \"p\", \"date\": \"d\"}, " JOBS ", %s}",
                            lists);

    if (case_parse(&c, text, strlen(text), "t.json", NULL, &err) < 0 || case_evaluate(&c, &err) < 0)
        fail_msg("%s", err.text);
    free(text);
    return c;
}

static char *claim(const char *value, double published, const char *unit, const char *expect)
{
    return mem_printf(
        "{\"claim\": \"x\", \"value\": \"%s\", \"published\": %.9g, \"unit\": \"%s\", "
        "\"expect\": \"%s\"}",
        value, published, unit, expect);
}

/* One claim alone: verdict and figures. */
static struct case_claim alone(const char *lists, const char *value, double published,
                               const char *unit)
{
    char *one = claim(value, published, unit, "reproduced");
    char *all = mem_printf("%s\"claims\": [%s]", lists, one);
    struct casefile c = judged(all);
    struct case_claim k = c.claim[0];

    case_free(&c);
    free(all);
    free(one);
    return k;
}

static double seconds_of(const char *job)
{
    char *value = mem_printf("%s.step_s", job);
    double ours = alone("", value, 1, "s").ours;

    free(value);
    return ours;
}

static void a_figure_is_reproduced_consistent_or_excluded(void **state)
{
    double sec = seconds_of("a");
    struct case_claim k = alone("", "a.step_s", sec * 1.019, "s");

    (void)state;
    assert_int_equal(k.verdict, CASE_REPRODUCED);
    assert_float_equal(k.off, 100 * (1 / 1.019 - 1), 1e-6);
    assert_true(k.lo < sec && sec < k.hi);
    k = alone("", "a.step_s", (sec + k.hi) / 2, "s");
    assert_int_equal(k.verdict, CASE_CONSISTENT);
    k = alone("", "a.step_s", k.hi * 1.2, "s");
    assert_int_equal(k.verdict, CASE_EXCLUDED);
    assert_non_null(strstr(k.reason, "a: "));
    assert_non_null(strstr(k.reason, "of messages (the claim needs "));
}

/* What two sizes of a job have in common cannot explain that they differ. */
static void errors_that_two_jobs_share_cancel(void **state)
{
    struct case_claim one = alone("", "a.step_s", 1, "s");
    struct case_claim same = alone("", "b.step_s / a.step_s", 1, "x");
    struct case_claim other = alone("", "c.step_s / a.step_s", 1, "x");
    double whole = (one.hi - one.lo) / one.ours;

    (void)state;
    assert_true((same.hi - same.lo) / same.ours < 0.8 * whole);
    assert_true((other.hi - other.lo) / other.ours > whole);
}

static void units_scale_and_percentages_differ_by_points(void **state)
{
    double sec = seconds_of("a");

    (void)state;
    assert_float_equal(alone("", "a.step_s", 1, "min").ours, sec / 60, 1e-9);
    struct case_claim k = alone("", "a.step_s / b.step_s", 50, "%");
    assert_float_equal(k.ours, 100 * sec / seconds_of("b"), 1e-6);
    assert_float_equal(k.off, k.ours - 50, 1e-6);
}

static void what_does_not_fit_says_what_fills_the_memory(void **state)
{
    struct case_claim k = alone("", "40 * a.states_bytes / a.capacity_bytes", 1, "x");

    (void)state;
    assert_true(k.ours > 1 && k.ours < 40);
    struct casefile c =
        judged("\"claims\": [{\"claim\": \"x\", \"value\": \"a.memory_bytes / a.capacity_bytes\", "
               "\"published\": true, \"unit\": \"fits\", \"expect\": \"reproduced\"}, {\"claim\": "
               "\"y\", \"value\": \"40 * a.states_bytes / a.capacity_bytes\", \"published\": true, "
               "\"unit\": \"fits\", \"expect\": \"cannot follow\"}]");
    assert_int_equal(cases_count(&c, 1).unexpected, 0);
    assert_float_equal(c.claim[1].ours, k.ours, 1e-9);
    assert_non_null(strstr(c.claim[1].reason, " GB of "));
    assert_non_null(strstr(c.claim[1].reason, "weights "));
    case_free(&c);
}

/* What 8192 tokens make true, 2048 do not: either claim holds, never both. */
static void claims_that_no_one_set_of_unknowns_holds_are_counted(void **state)
{
    double sec = seconds_of("a");
    char *lists = mem_printf(
        "\"unknown\": [{\"setting\": \"seq\", \"values\": [8192, 65536], \"why\": \"w\"}], "
        "\"claims\": [{\"claim\": \"x\", \"value\": \"a.step_s\", \"published\": %.9g, "
        "\"unit\": \"s\", \"expect\": \"undecided\"}, {\"claim\": \"y\", \"value\": "
        "\"a.tokens\", \"published\": 1048576, \"unit\": \"\", \"expect\": \"undecided\"}, "
        "{\"claim\": \"z\", \"value\": \"a.gpus\", \"published\": 16, \"unit\": \"\", "
        "\"expect\": \"reproduced\"}]",
        sec);
    struct casefile c = judged(lists);

    (void)state;
    assert_int_equal(cases_count(&c, 1).unexpected, 0);
    assert_int_equal(c.held_of, 3);
    assert_int_equal(c.held, 2);
    assert_string_equal(c.held_by, "seq 8192");
    case_free(&c);
    free(lists);
}

static void at_least_is_not_missed_from_above(void **state)
{
    struct casefile c =
        judged("\"claims\": [{\"claim\": \"x\", \"value\": \"3 / 2\", \"published\": "
               "10, \"unit\": \"%\", \"at_least\": true, \"expect\": "
               "\"reproduced\"}, {\"claim\": \"x\", \"value\": \"1 / 20\", "
               "\"published\": 10, \"unit\": \"%\", \"at_least\": true, "
               "\"expect\": \"cannot follow\"}]");

    (void)state;
    assert_int_equal(c.claim[0].verdict, CASE_REPRODUCED);
    assert_int_equal(c.claim[1].verdict, CASE_EXCLUDED);
    assert_int_equal(cases_count(&c, 1).unexpected, 0);
    case_free(&c);
}

static void published_figures_that_contradict_each_other_are_found(void **state)
{
    struct case_claim k = alone("", "40 * 60 * 36", 8.4, "h");

    (void)state;
    assert_int_equal(k.verdict, CASE_EXCLUDED);
    assert_float_equal(k.ours, 24, 1e-9);
    assert_string_equal(k.reason, "24 h, +185.7 %: the published figures contradict each other");
}

/* seq 8192, 2048 or 32768; a second claim beside the first, or NULL. */
static struct casefile with_seq(const char *value, double published, const char *other)
{
    char *one = claim(value, published, "s", "reproduced");
    char *all = mem_printf("\"unknown\": [{\"setting\": \"seq\", \"values\": [8192, 2048, 32768], "
                           "\"why\": \"w\"}], \"claims\": [%s%s%s]",
                           one, other ? ", " : "", other ? other : "");
    struct casefile c = judged(all);

    free(all);
    free(one);
    return c;
}

/* Of a job with sequences of 2048 tokens. */
static double shorter(const char *job)
{
    char *value = mem_printf("%s.step_s", job);
    double ours = alone("\"unknown\": [{\"setting\": \"seq\", \"values\": [2048], \"why\": "
                        "\"w\"}], ",
                        value, 1, "s")
                      .ours;

    free(value);
    return ours;
}

static void a_row_does_not_choose_for_itself(void **state)
{
    double sec = seconds_of("a");
    struct casefile c = with_seq("a.step_s", shorter("a"), NULL);
    struct case_claim *k = &c.claim[0];

    (void)state;
    assert_float_equal(k->ours, sec, 1e-9); /* nothing chooses: the first value */
    assert_int_equal(k->choosers, 0);
    assert_true(k->lo < shorter("a") && k->hi > sec);
    assert_int_equal(k->verdict, CASE_UNDECIDED);
    assert_non_null(strstr(k->reason, ", open: seq; so with seq 2048, not with seq 8192"));
    case_free(&c);

    char *twice =
        claim("2 * a.step_s / b.step_s", 2 * shorter("a") / shorter("b"), "x", "undecided");
    c = with_seq("a.step_s", shorter("a"), twice); /* the same reading once more */
    assert_int_equal(c.claim[0].choosers, 0);
    assert_int_equal(c.claim[0].verdict, CASE_UNDECIDED);
    case_free(&c);
    free(twice);

    c = with_seq("a.step_s", sec * 100, NULL);
    assert_int_equal(c.claim[0].verdict, CASE_EXCLUDED);
    assert_non_null(strstr(c.claim[0].reason, "whatever seq is"));
    case_free(&c);
}

static void other_rows_choose_what_is_not_stated(void **state)
{
    char *short_b = claim("b.step_s", shorter("b"), "s", "reproduced");
    char *long_b = claim("b.step_s", seconds_of("b"), "s", "reproduced");
    char *wrong_b = claim("b.step_s", 1e4 * seconds_of("b"), "s", "cannot follow");
    struct casefile c = with_seq("a.step_s", shorter("a"), short_b);

    (void)state;
    assert_int_equal(c.claim[0].choosers, 1);
    assert_int_equal(c.claim[0].chosen, 1);
    assert_float_equal(c.claim[0].ours, shorter("a"), 1e-9);
    assert_int_equal(c.claim[0].verdict, CASE_REPRODUCED);
    assert_non_null(strstr(c.claim[0].reason, ", with seq 2048 as 1 other row chooses"));
    assert_int_equal(c.claim[1].verdict, CASE_REPRODUCED);
    case_free(&c);

    c = with_seq("a.step_s", shorter("a"), long_b);
    assert_int_equal(c.claim[0].verdict, CASE_UNDECIDED);
    assert_non_null(
        strstr(c.claim[0].reason, "; it needs seq 2048, which the other rows do not choose"));
    case_free(&c);

    c = with_seq("a.step_s", shorter("a"), wrong_b); /* an error chooses nothing */
    assert_int_equal(c.claim[0].choosers, 0);
    assert_int_equal(c.claim[1].verdict, CASE_EXCLUDED);
    case_free(&c);
    free(short_b);
    free(long_b);
    free(wrong_b);
}

/* The step less what makes the interval's upper end `ratio` times the lower one; the published
 * figure lies near the upper end. */
static struct case_claim less(double ratio)
{
    struct case_claim k = alone("", "a.step_s", 1, "s");
    double off = (ratio * k.lo - k.hi) / (ratio - 1);
    char *value = mem_printf("a.step_s - %.12g", off);

    k = alone("", value, 0.98 * (k.hi - off), "s");
    free(value);
    return k;
}

static void what_any_figure_would_lie_in_decides_nothing(void **state)
{
    struct case_claim k = less(1.48 * 1.48);

    (void)state;
    assert_float_equal(k.factor, 1.48, 1e-6);
    assert_int_equal(k.verdict, CASE_CONSISTENT);
    k = less(1.52 * 1.52);
    assert_int_equal(k.verdict, CASE_UNDECIDED);
    assert_non_null(strstr(k.reason, "; the interval is a factor of 1.52 to either side"));
    k = alone("", "a.step_s - b.step_s + 1 / 1000", 0.001, "s");
    assert_true(k.lo < 0 && isinf(k.factor));
    assert_int_equal(k.verdict, CASE_UNDECIDED);
    assert_non_null(strstr(k.reason, "; the interval reaches 0"));
    /* a percentage that is known to a point is known, near 0 as it is */
    k = alone("", "(a.step_s - b.step_s) / a.step_s / 100", 0.01, "%");
    assert_true(k.hi / fabs(k.lo) > 1.5 * 1.5 || k.lo < 0);
    assert_int_equal(k.verdict, CASE_REPRODUCED);
}

static void times_memory_and_arithmetic_are_counted_apart(void **state)
{
    struct casefile c = judged(
        "\"claims\": [{\"claim\": \"x\", \"value\": \"1000 * a.mfu\", \"published\": 1, \"unit\": "
        "\"%\", \"expect\": \"cannot follow\"}, {\"claim\": \"x\", \"value\": \"a.memory_bytes / "
        "a.capacity_bytes\", \"published\": true, \"unit\": \"fits\", \"expect\": \"reproduced\"}, "
        "{\"claim\": \"x\", \"value\": \"a.states_bytes\", \"published\": 1, \"unit\": \"GB\", "
        "\"expect\": \"reproduced\"}, {\"claim\": \"x\", \"value\": \"b.gpus * a.tokens\", "
        "\"published\": 1, \"unit\": \"\", \"expect\": \"cannot follow\"}, {\"claim\": \"x\", "
        "\"value\": \"3 / 2\", \"published\": 1.5, \"unit\": \"x\", \"expect\": \"reproduced\"}]");
    struct case_counts n = cases_count(&c, 1);
    static const int kind[] = {CASE_TIME, CASE_MEMORY, CASE_MEMORY, CASE_ARITHMETIC,
                               CASE_ARITHMETIC};

    (void)state;
    for (int i = 0; i < c.claims; i++)
        assert_int_equal(c.claim[i].kind, kind[i]);
    assert_int_equal(n.of[CASE_TIME][CASE_EXCLUDED], 1);
    assert_int_equal(n.of[CASE_MEMORY][CASE_REPRODUCED], 1);
    assert_int_equal(n.of[CASE_MEMORY][CASE_EXCLUDED], 1);
    assert_int_equal(n.of[CASE_ARITHMETIC][CASE_REPRODUCED], 1);
    assert_int_equal(n.of[CASE_ARITHMETIC][CASE_EXCLUDED], 1);
    assert_int_equal(n.unexpected, 1);
    case_free(&c);
}

/* A rate is not linear in the time that gives way. */
static void a_rate_that_was_solved_for_stays_too(void **state)
{
    struct case_claim k =
        alone("\"solve\": [{\"setting\": \"stretch\", \"value\": \"a.tokens_per_s_per_gpu\", "
              "\"published\": 5000, \"unit\": \"tokens/s\", \"min\": 0.5, \"max\": 5, \"why\": "
              "\"w\"}], ",
              "a.step_s", 8192 / 5000.0, "s");

    (void)state;
    assert_int_equal(k.verdict, CASE_REPRODUCED);
    assert_true(k.hi - k.lo < 1e-6);
    assert_int_equal(k.kind, CASE_ARITHMETIC); /* it follows from the figure that was solved for */
}

static void a_setting_is_solved_from_one_figure_and_the_others_follow(void **state)
{
    struct casefile c = judged(
        "\"solve\": [{\"setting\": \"seq\", \"value\": \"a.step_s\", \"published\": 2, \"unit\": "
        "\"s\", \"min\": 128, \"max\": 1000000, \"why\": \"w\"}], \"claims\": [{\"claim\": \"x\", "
        "\"value\": \"a.step_s\", \"published\": 2, \"unit\": \"s\", \"expect\": \"reproduced\"}, "
        "{\"claim\": \"y\", \"value\": \"b.step_s\", \"published\": 2, \"unit\": \"s\", "
        "\"expect\": \"reproduced\"}]");

    (void)state;
    assert_true(c.solve[0].found > 128 && c.solve[0].found == floor(c.solve[0].found));
    assert_float_equal(c.claim[0].ours, 2, 1e-3);
    assert_true(c.claim[0].hi - c.claim[0].lo < 1e-3); /* it stays whatever the errors are */
    assert_true(c.claim[1].hi - c.claim[1].lo < 0.3);  /* and the other moves with it */
    case_free(&c);
}

static void an_anchor_is_a_stretch_of_compute(void **state)
{
    double sec = seconds_of("a");
    struct casefile c;
    char *lists = mem_printf(
        "\"solve\": [{\"setting\": \"stretch\", \"jobs\": [\"a\", \"b\"], \"value\": \"a.step_s\", "
        "\"published\": %.9g, \"unit\": \"s\", \"min\": 0.2, \"max\": 5, \"why\": \"w\"}], "
        "\"claims\": [{\"claim\": \"x\", \"value\": \"b.step_s / a.step_s\", \"published\": 1, "
        "\"unit\": \"x\", \"expect\": \"reproduced\"}]",
        sec * 1.5);

    (void)state;
    c = judged(lists);
    assert_true(c.solve[0].found > 1.4 && c.solve[0].found < 1.7);
    case_free(&c);
    free(lists);
}

static void other_readings_are_valued_too(void **state)
{
    struct casefile c =
        judged("\"claims\": [{\"claim\": \"x\", \"value\": \"5 / 1\", "
               "\"published\": 50, \"unit\": \"x\", \"expect\": \"cannot follow\", "
               "\"readings\": [{\"as\": \"eight of them\", \"value\": \"8 * 6\"}]}]");

    (void)state;
    assert_float_equal(c.claim[0].reading[0].value, 48, 1e-9);
    assert_non_null(strstr(c.claim[0].reason, "; eight of them: 48x (-4.0 %)"));
    case_free(&c);
}

/* Published figures of two jobs rise; ours do not. */
static void a_figure_that_moves_the_other_way_is_no_success(void **state)
{
    double a = seconds_of("a"), b = seconds_of("c");
    const char *up = a < b ? "a" : "c", *down = a < b ? "c" : "a";
    double low = fmin(a, b), high = fmax(a, b);

    (void)state;
    assert_true(high > low * 1.03);
    for (int wrong = 0; wrong < 2; wrong++) {
        char *first = mem_printf(
            "\"claims\": [{\"claim\": \"first\", \"value\": \"%s.step_s\", \"published\": %.9g, "
            "\"unit\": \"s\", \"expect\": \"consistent\"}, {\"claim\": \"second\", \"value\": "
            "\"%s.step_s\", \"published\": %.9g, \"unit\": \"s\", \"follows\": \"first\", "
            "\"expect\": \"consistent\"}]",
            wrong ? down : up, low, wrong ? up : down, wrong ? low * 1.021 : high);
        struct casefile c = judged(first);
        assert_int_equal(c.claim[1].verdict == CASE_DIRECTION, wrong);
        if (wrong)
            assert_non_null(strstr(c.claim[1].reason, "where the published figure rises from"));
        case_free(&c);
        free(first);
    }
}

/* Fitted beats anchored, and a claim of two jobs is as known as the better known of them. */
static void times_are_counted_by_what_was_known(void **state)
{
    static const char solve[] =
        "\"solve\": [{\"setting\": \"stretch\", \"value\": \"a.step_s\", \"published\": 1, "
        "\"unit\": "
        "\"s\", \"min\": 0.01, \"max\": 100, \"why\": \"w\", \"jobs\": [\"a\"]}], ";
    static const struct {
        const char *before, *value;
        enum case_basis basis;
    } want[] = {{"", "b.step_s", CASE_PREDICTED},
                {"\"fitted\": [\"a\"], ", "b.step_s", CASE_PREDICTED},
                {"\"fitted\": [\"a\"], ", "a.step_s", CASE_FITTED},
                {"\"fitted\": [\"a\"], ", "b.step_s / a.step_s", CASE_FITTED},
                {solve, "b.step_s / a.step_s", CASE_ANCHORED},
                {solve, "b.step_s", CASE_PREDICTED}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        char *claims =
            mem_printf("\"claims\": [{\"claim\": \"x\", \"value\": \"%s\", \"published\": 1, "
                       "\"unit\": \"x\", \"expect\": \"cannot follow\"}]",
                       want[i].value);
        char *all = mem_printf("%s%s", want[i].before, claims);
        struct casefile c = judged(all);
        struct case_counts n = cases_count(&c, 1);
        int sum = 0;
        assert_int_equal(c.claim[0].basis, want[i].basis);
        for (int v = 0; v < CASE_VERDICTS; v++)
            sum += n.times[want[i].basis][v];
        assert_int_equal(sum, 1);
        case_free(&c);
        free(all);
        free(claims);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_figure_that_moves_the_other_way_is_no_success),
        cmocka_unit_test(times_are_counted_by_what_was_known),
        cmocka_unit_test(a_figure_is_reproduced_consistent_or_excluded),
        cmocka_unit_test(errors_that_two_jobs_share_cancel),
        cmocka_unit_test(units_scale_and_percentages_differ_by_points),
        cmocka_unit_test(what_does_not_fit_says_what_fills_the_memory),
        cmocka_unit_test(claims_that_no_one_set_of_unknowns_holds_are_counted),
        cmocka_unit_test(at_least_is_not_missed_from_above),
        cmocka_unit_test(published_figures_that_contradict_each_other_are_found),
        cmocka_unit_test(a_row_does_not_choose_for_itself),
        cmocka_unit_test(other_rows_choose_what_is_not_stated),
        cmocka_unit_test(what_any_figure_would_lie_in_decides_nothing),
        cmocka_unit_test(times_memory_and_arithmetic_are_counted_apart),
        cmocka_unit_test(a_rate_that_was_solved_for_stays_too),
        cmocka_unit_test(a_setting_is_solved_from_one_figure_and_the_others_follow),
        cmocka_unit_test(an_anchor_is_a_stretch_of_compute),
        cmocka_unit_test(other_readings_are_valued_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
