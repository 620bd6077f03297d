/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/calibrate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --- the search --- */

struct bowl {
    int asked;
    bool stop;
    double (*of)(const double *x);
};

static double bowl_value(void *ctx, const double *x, int i, double v)
{
    struct bowl *b = ctx;
    double y[3] = {x[0], x[1], x[2]};

    if (i >= 0)
        y[i] = v;
    b->asked++;
    return b->of(y);
}

static void bowl_keep(void *ctx)
{
    (void)ctx;
}

static bool bowl_go_on(void *ctx, double done)
{
    struct bowl *b = ctx;

    assert_true(done >= 0 && done <= 1);
    return !b->stop;
}

static double lowest(double x[3], double (*of)(const double *x), struct bowl *b, bool *cut)
{
    static const double low[] = {-10, -10, -10}, high[] = {10, 10, 2};
    struct calibrate_search s = {.n = 3,
                                 .x = x,
                                 .low = low,
                                 .high = high,
                                 .step = 1,
                                 .least = 1e-6,
                                 .gain = 1e-6,
                                 .value = bowl_value,
                                 .keep = bowl_keep,
                                 .go_on = bowl_go_on,
                                 .ctx = b};

    b->of = of;
    return calibrate_lowest(&s, cut);
}

/* A valley along x0 = x1 that no single number follows; x2 wants to leave its bound. */
static double valley(const double *x)
{
    double across = x[0] - x[1], along = x[0] + x[1] - 6;

    return 1 + 30 * across * across + along * along + fabs(x[2] - 5);
}

static void the_lowest_point_is_found_in_a_valley_and_at_a_bound(void **state)
{
    struct bowl b = {0};
    double x[3] = {-8, 7, 0};
    bool cut;

    (void)state;
    assert_float_equal(lowest(x, valley, &b, &cut), 4, 1e-4);
    assert_false(cut);
    assert_float_equal(x[0], 3, 0.01);
    assert_float_equal(x[1], 3, 0.01);
    assert_float_equal(x[2], 2, 0);
    assert_true(b.asked < 20000);
}

static void a_search_that_is_stopped_keeps_its_best(void **state)
{
    struct bowl b = {.stop = true};
    double x[3] = {-8, 7, 0}, start[3] = {-8, 7, 0};
    bool cut;

    (void)state;
    double best = lowest(x, valley, &b, &cut);
    assert_true(cut);
    assert_true(best < valley(start));
    assert_float_equal(best, valley(x), 1e-12);
}

/* --- the fit --- */

/* Steps whose times are made from known constants. */
static const char *const jobs[] = {
    "llama3.1-8b\tH100\t8\t16\t1\t1\t1",    "llama3.1-8b\tH100\t16\t64\t2\t2\t1",
    "llama3.1-8b\tH100\t8\t32\t1\t4\t1",    "llama3.1-70b\tH100\t64\t128\t1\t8\t1",
    "llama3.1-70b\tH100\t64\t64\t1\t4\t4",  "llama3.1-70b\tH100\t128\t256\t1\t8\t2",
    "llama3.1-70b\tH100\t64\t128\t1\t2\t4", "llama3.1-405b\tH100\t512\t512\t1\t8\t8",
};
enum { JOBS = sizeof(jobs) / sizeof(*jobs) };
static const char *const fitted[] = {"efficiency.hopper.bf16", "exposed.tp"};

/* seconds[i] of job i, with a row of a test split that is absurd when `test`. */
static void load(struct batch *b, const double *seconds, bool test)
{
    char path[] = "/tmp/rg-calibrate-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");

    assert_non_null(f);
    fputs("model\thardware\tgpus\tglobal_batch\tmicro_batch\ttp\tpp\tseq_len\tdtype\tzero_stage/"
          "fsdp\tvalue\tsplit\n",
          f);
    for (int i = 0; i < JOBS; i++)
        fprintf(f, "%s\t8192\tbf16\tZeRO-1\t%.12g\tcalib\n", jobs[i], seconds[i]);
    if (test)
        fprintf(f, "%s\t8192\tbf16\tZeRO-1\t%.12g\ttest_scale\n", jobs[5], 10 * seconds[5]);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(batch_load(b, path, NULL), 0);
    unlink(path);
    struct constants c;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    batch_resolve(b, &c);
    constants_free(&c);
    for (int i = 0; i < b->rows; i++)
        if (b->row[i].status != BATCH_PREDICTED)
            fail_msg("%s: %s", b->row[i].id, b->row[i].reason);
}

static void set(struct constants *c, const char *name, double value)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->constant[i].name, name))
            c->constant[i].value = value;
}

/* Compute of the 70B model takes `stretch` times as long: software that no constant knows. */
static void make_times_of(double *seconds, double stretch)
{
    double ones[JOBS];
    struct constants c;
    struct batch b;

    for (int i = 0; i < JOBS; i++)
        ones[i] = 1;
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    set(&c, "efficiency.hopper.bf16", 0.71);
    set(&c, "exposed.tp", 0.65);
    load(&b, ones, false);
    for (int i = 0; i < JOBS; i++)
        seconds[i] = batch_seconds(&b.row[i], &c, strstr(jobs[i], "70b") ? stretch : 1, NULL);
    batch_free(&b);
    constants_free(&c);
}

static void make_times(double *seconds)
{
    make_times_of(seconds, 1);
}

/* Starts from other constants; what is fitted comes back in c. */
static void fit(struct calibration *k, struct constants *c, const double *seconds, bool test)
{
    const struct calibrate_opts opts = {.only = fitted, .onlys = 2};
    struct batch b;

    assert_int_equal(constants_load(c, NULL, NULL), 0);
    set(c, "efficiency.hopper.bf16", 0.5);
    set(c, "exposed.tp", 0.3);
    load(&b, seconds, test);
    assert_int_equal(calibrate(k, &b, c, &opts, NULL), 0);
    batch_free(&b);
}

static void constants_that_made_the_times_are_found_again(void **state)
{
    double seconds[JOBS];
    struct calibration k;
    struct constants c;

    (void)state;
    make_times(seconds);
    fit(&k, &c, seconds, false);
    assert_int_equal(k.rows, JOBS);
    assert_int_equal(k.models, 3);
    assert_int_equal(k.constants, 2);
    assert_float_equal(constants_find(&c, "efficiency.hopper.bf16")->value / 0.71, 1, 0.02);
    assert_float_equal(constants_find(&c, "exposed.tp")->value / 0.65, 1, 0.08);
    assert_true(k.loss_after < 0.02 && k.loss_before > 0.15);
    assert_true(k.constant[0].fitted && k.constant[0].rows == JOBS && !k.constant[0].at_bound);
    assert_true(k.constant[1].rows < JOBS); /* not all have tp */
    assert_true(k.constant[0].error >= 0.01 && k.constant[0].error < 0.2);
    assert_non_null(
        strstr(constants_find(&c, "exposed.tp")->source, "8 steps (8 jobs of 3 models)"));
    for (int i = 0; i < JOBS; i++)
        assert_true(fabs(k.after[i]) < 0.01);
    calibration_free(&k);
    constants_free(&c);
}

/* Software that stretches one recipe misleads a fit to single rows more than one that knows a step
 * of each recipe. */
static void an_anchored_fit_sees_through_software(void **state)
{
    static const char *const only[] = {"exposed.tp"};
    double seconds[JOBS], found[2];

    (void)state;
    make_times_of(seconds, 1.3);
    for (int anchored = 0; anchored < 2; anchored++) {
        const struct calibrate_opts opts = {.only = only, .onlys = 1, .anchored = anchored};
        struct calibration k;
        struct constants c;
        struct batch b;
        assert_int_equal(constants_load(&c, NULL, NULL), 0);
        set(&c, "efficiency.hopper.bf16", 0.71);
        set(&c, "exposed.tp", 0.5);
        load(&b, seconds, false);
        assert_int_equal(calibrate(&k, &b, &c, &opts, NULL), 0);
        assert_int_equal(k.anchored, anchored ? 5 : 0); /* 8 rows of 3 recipes */
        found[anchored] = fabs(log(constants_find(&c, "exposed.tp")->value / 0.65));
        calibration_free(&k);
        batch_free(&b);
        constants_free(&c);
    }
    assert_true(found[1] < found[0]);
    assert_true(found[1] < 0.15);
}

static void test_rows_change_nothing_and_are_counted(void **state)
{
    double seconds[JOBS];
    struct calibration with, without;
    struct constants a, b;

    (void)state;
    make_times(seconds);
    fit(&without, &a, seconds, false);
    fit(&with, &b, seconds, true);
    assert_int_equal(without.test, 0);
    assert_int_equal(with.test, 1);
    assert_int_equal(with.rows, JOBS);
    for (int i = 0; i < a.count; i++)
        assert_float_equal(a.constant[i].value, b.constant[i].value, 0);
    calibration_free(&with);
    calibration_free(&without);
    constants_free(&a);
    constants_free(&b);
}

static void one_wrong_row_pulls_little(void **state)
{
    double seconds[JOBS];
    struct calibration k;
    struct constants c;

    (void)state;
    make_times(seconds);
    seconds[2] *= 4;
    fit(&k, &c, seconds, false);
    assert_float_equal(constants_find(&c, "efficiency.hopper.bf16")->value / 0.71, 1, 0.02);
    calibration_free(&k);
    constants_free(&c);
}

static void what_cannot_be_fitted_is_refused_or_left(void **state)
{
    static const char *const wrong[] = {"error.preset"}, *const other[] = {"attention.blackwell"};
    const struct calibrate_opts bad = {.only = wrong, .onlys = 1},
                                none = {.only = other, .onlys = 1};
    double seconds[JOBS];
    struct calibration k;
    struct constants c;
    struct batch b;
    struct err err = {0, ""};

    (void)state;
    make_times(seconds);
    assert_int_equal(constants_load(&c, NULL, NULL), 0);
    double was = constants_find(&c, "attention.blackwell")->value;
    load(&b, seconds, false);
    assert_int_equal(calibrate(&k, &b, &c, &bad, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "\"error.preset\" is no constant that is fitted"));
    calibration_free(&k);
    assert_int_equal(calibrate(&k, &b, &c, &none, &err), 0);
    assert_false(k.constant[0].fitted);
    assert_int_equal(k.constant[0].rows, 0);
    assert_float_equal(constants_find(&c, "attention.blackwell")->value, was, 0);
    calibration_free(&k);
    for (int i = 0; i < b.rows; i++)
        b.row[i].split = "test_scale";
    assert_int_equal(calibrate(&k, &b, &c, &none, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
    assert_non_null(strstr(err.text, "no row to fit to: 8 are test rows"));
    calibration_free(&k);
    batch_free(&b);
    constants_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_point_is_found_in_a_valley_and_at_a_bound),
        cmocka_unit_test(a_search_that_is_stopped_keeps_its_best),
        cmocka_unit_test(constants_that_made_the_times_are_found_again),
        cmocka_unit_test(an_anchored_fit_sees_through_software),
        cmocka_unit_test(test_rows_change_nothing_and_are_counted),
        cmocka_unit_test(one_wrong_row_pulls_little),
        cmocka_unit_test(what_cannot_be_fitted_is_refused_or_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
