/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cost/curve.h"

static void add(struct curve *c, double bytes, double sec)
{
    curve_add(c, (struct curve_point){bytes, sec, 0.9 * sec, 1.2 * sec, 16});
}

static void near(double a, double b, double share)
{
    if (!(fabs(a - b) <= share * fabs(b)))
        fail_msg("%.9g is not within %g of %.9g", a, share, b);
}

static void an_empty_curve_knows_nothing(void **state)
{
    struct curve c = {0};

    (void)state;
    assert_true(isnan(curve_time(&c, 1024)));
    assert_true(curve_floor(&c) == 0);
}

static void points_are_sorted_and_interpolated_in_logs(void **state)
{
    struct curve c = {0};

    (void)state;
    add(&c, 4096, 4e-6);
    add(&c, 1024, 1e-6);
    add(&c, 65536, 64e-6);
    assert_true(c.point[0].bytes == 1024 && c.point[2].bytes == 65536);
    near(curve_time(&c, 4096), 4e-6, 1e-12);
    near(curve_time(&c, 2048), 2e-6, 1e-9);
    near(curve_time(&c, 16384), 16e-6, 1e-9);
    curve_free(&c);
}

static void outside_the_ends_bandwidth_never_grows(void **state)
{
    struct curve c = {0};

    (void)state;
    add(&c, 1024, 1e-6);
    add(&c, 2048, 1.1e-6); /* still flat: latency-bound */
    near(curve_time(&c, 1), 1e-6, 1e-12);
    near(curve_time(&c, 4096), 2.2e-6, 1e-9);
    add(&c, 4096, 4.4e-6); /* steeper than proportional: each byte goes on to cost as much */
    near(curve_time(&c, 8192), 11e-6, 1e-9);
    curve_free(&c);
}

static void noise_in_the_last_point_does_not_grow_with_the_size(void **state)
{
    struct curve c = {0};

    (void)state;
    add(&c, 262144, 262144e-8);
    add(&c, 1048576, 1.02 * 1048576e-8);
    near(curve_time(&c, 64 * 1048576.0), 64 * 1048576e-8, 0.03);
    curve_free(&c);
}

static void the_summary_is_a_slope_not_a_quotient(void **state)
{
    struct curve c = {0};

    (void)state;
    for (double s = 8; s <= 1 << 20; s *= 2)
        add(&c, s, 200e-6 + s / 1e9); /* 200 us would spoil a quotient by 19 % */
    curve_summarise(&c);
    near(c.beta, 1e-9, 1e-6);
    near(c.alpha, 200e-6, 1e-3);
    near(curve_floor(&c), 200e-6, 1e-3);
    curve_free(&c);
}

static void one_point_gives_a_quotient(void **state)
{
    struct curve c = {0};

    (void)state;
    add(&c, 1e6, 1e-3);
    curve_summarise(&c);
    near(c.beta, 1e-9, 1e-9);
    near(curve_time(&c, 2e6), 2e-3, 1e-9);
    curve_free(&c);
}

static void the_interval_is_the_wider_neighbours(void **state)
{
    struct curve c = {0};
    double lo, hi;

    (void)state;
    add(&c, 1024, 1e-6);
    curve_add(&c, (struct curve_point){4096, 4e-6, 2e-6, 4e-6, 16});
    curve_interval(&c, 2048, &lo, &hi);
    near(lo, 1e-6, 1e-9);
    near(hi, 2.4e-6, 1e-9);
    curve_free(&c);
}

static void a_line_is_met_within_0_6_percent_between_its_points(void **state)
{
    struct curve c = {0};

    (void)state;
    curve_line(&c, 5e-6, 50e9);
    for (double s = 8; s < 1e10; s *= 1.07)
        near(curve_time(&c, s), 5e-6 + s / 50e9, 0.006);
    curve_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_curve_knows_nothing),
        cmocka_unit_test(points_are_sorted_and_interpolated_in_logs),
        cmocka_unit_test(outside_the_ends_bandwidth_never_grows),
        cmocka_unit_test(noise_in_the_last_point_does_not_grow_with_the_size),
        cmocka_unit_test(the_summary_is_a_slope_not_a_quotient),
        cmocka_unit_test(one_point_gives_a_quotient),
        cmocka_unit_test(the_interval_is_the_wider_neighbours),
        cmocka_unit_test(a_line_is_met_within_0_6_percent_between_its_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
