/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/case.h"

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
    "\"dp_shard=16\"}, \"b\": {\"like\": \"a\", \"layout\": \"dp_shard=32\"}, "                    \
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
    assert_int_equal(case_unexpected_claims(&c), 0);
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
        "\"unit\": \"s\", \"expect\": \"reproduced\"}, {\"claim\": \"y\", \"value\": "
        "\"a.tokens\", \"published\": 1048576, \"unit\": \"\", \"expect\": \"consistent\"}, "
        "{\"claim\": \"z\", \"value\": \"a.gpus\", \"published\": 16, \"unit\": \"\", "
        "\"expect\": \"reproduced\"}]",
        sec);
    struct casefile c = judged(lists);

    (void)state;
    assert_int_equal(case_unexpected_claims(&c), 0);
    assert_int_equal(c.held_of, 3);
    assert_int_equal(c.held, 2);
    assert_int_equal(c.held_by, 0);
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
    assert_int_equal(case_unexpected_claims(&c), 0);
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

static void an_unknown_widens_what_is_consistent(void **state)
{
    static const char unknown[] = "\"unknown\": [{\"setting\": \"seq\", \"values\": [8192, 2048, "
                                  "32768], \"why\": \"w\"}], ";
    double sec = seconds_of("a");
    double shorter = alone("\"unknown\": [{\"setting\": \"seq\", \"values\": [2048], \"why\": "
                           "\"w\"}], ",
                           "a.step_s", 1, "s")
                         .ours;
    struct case_claim k = alone(unknown, "a.step_s", shorter, "s");

    (void)state;
    assert_float_equal(k.ours, sec, 1e-9); /* our figure is that of the first value */
    assert_int_equal(k.verdict, CASE_CONSISTENT);
    assert_int_equal(k.best, 1);
    assert_non_null(strstr(k.reason, "nearest with seq 2048"));
    assert_int_equal(alone("", "a.step_s", shorter, "s").verdict, CASE_EXCLUDED);
    k = alone(unknown, "a.step_s", sec * 100, "s");
    assert_int_equal(k.verdict, CASE_EXCLUDED);
    assert_non_null(strstr(k.reason, "whatever seq is"));
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

/* Every shipped case keeps the verdicts that it states. */
static void the_shipped_cases_keep_their_verdicts(void **state)
{
    char **names;
    int n = case_names(&names), wrong = 0;

    (void)state;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        struct casefile c;
        struct err err = {0, ""};
        if (case_load(&c, names[i], NULL, &err) < 0 || case_evaluate(&c, &err) < 0)
            fail_msg("%s", err.text);
        for (int k = 0; k < c.claims; k++) {
            const struct case_claim *x = &c.claim[k];
            if (!case_unexpected(x))
                continue;
            print_message("%s: %s: %s where %s is expected: %s\n", names[i], x->text,
                          case_verdict_name[x->verdict], case_verdict_name[x->expect], x->reason);
            wrong++;
        }
        case_free(&c);
        free(names[i]);
    }
    free(names);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_figure_is_reproduced_consistent_or_excluded),
        cmocka_unit_test(errors_that_two_jobs_share_cancel),
        cmocka_unit_test(units_scale_and_percentages_differ_by_points),
        cmocka_unit_test(what_does_not_fit_says_what_fills_the_memory),
        cmocka_unit_test(claims_that_no_one_set_of_unknowns_holds_are_counted),
        cmocka_unit_test(at_least_is_not_missed_from_above),
        cmocka_unit_test(published_figures_that_contradict_each_other_are_found),
        cmocka_unit_test(an_unknown_widens_what_is_consistent),
        cmocka_unit_test(a_setting_is_solved_from_one_figure_and_the_others_follow),
        cmocka_unit_test(an_anchor_is_a_stretch_of_compute),
        cmocka_unit_test(other_readings_are_valued_too),
        cmocka_unit_test(the_shipped_cases_keep_their_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
