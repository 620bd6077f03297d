/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"
#include "test.h"

#include <string.h>
#include <time.h>

#include "base/log.h"

TEST(the_rate_of_this_host_is_plausible_and_says_where_it_is_from)
{
    struct compute c;

    assert_int_equal(compute_measure(&c, 0.05, NULL), 0);
    assert_true(c.flops > 1e7 && c.flops < 1e13);
    assert_true(c.lo <= c.flops && c.flops <= c.hi);
    assert_true(c.runs >= 5);
    assert_true(c.spread >= 0 && c.spread < 100);
    assert_non_null(strstr(c.source, "fp32 matmul 256x256 measured on this host, 1 core, "));
}

TEST(it_takes_about_the_time_that_was_asked_for)
{
    struct compute c;
    double t = log_now();
    clock_t used = clock();

    assert_int_equal(compute_measure(&c, 0.2, NULL), 0);
    t = log_now() - t;
    double sec = (double)(clock() - used) / CLOCKS_PER_SEC;
    double run = 2.0 * COMPUTE_SIZE * COMPUTE_SIZE * COMPUTE_SIZE / c.lo;
    assert_true(t >= 0.2);
    assert_true(sec < 0.2 + 10 * run + 2); /* its own: others may have the core meanwhile */
}

TEST(a_silly_time_is_refused_with_its_value)
{
    struct compute c;
    struct err err;

    assert_int_equal(compute_measure(&c, 0, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(err.text, "0 s to measure the compute rate is outside 0.01..60");
    assert_int_equal(compute_measure(&c, 1e9, &err), -1);
}
