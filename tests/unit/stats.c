/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stats.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(quantiles_are_those_of_type_seven)
{
    /* Hyndman & Fan 1996, type 7: position q (n-1). */
    const double v[] = {1, 2, 4, 8};

    assert_float_equal(stats_quantile(v, 4, 0), 1, 1e-12);
    assert_float_equal(stats_quantile(v, 4, 0.5), 3, 1e-12);
    assert_float_equal(stats_quantile(v, 4, 0.25), 1.75, 1e-12);
    assert_float_equal(stats_quantile(v, 4, 1), 8, 1e-12);
    assert_float_equal(stats_quantile(v, 1, 0.3), 1, 1e-12);
}

TEST(median_and_mad_ignore_one_wild_value)
{
    double v[] = {5, 1e9, 4, 6, 5};

    assert_float_equal(stats_median(v, 5), 5, 1e-12);
    assert_float_equal(stats_mad(v, 5, 5), 1, 1e-12);
}

TEST(the_mad_of_many_values_is_that_of_few)
{
    double v[1001];

    for (int i = 0; i < 1001; i++)
        v[i] = i;
    assert_float_equal(stats_mad(v, 1001, 500), 250, 1e-12);
}

TEST(the_interval_of_the_median_follows_the_published_ranks)
{
    /* Le Boudec 2010, table A.1: n = 6..: ranks 1 and 6; n = 100 by the formula: 40 and 61. */
    double v[100], lo, hi;

    for (int i = 0; i < 100; i++)
        v[i] = i + 1;
    stats_median_ci(v, 100, &lo, &hi);
    assert_float_equal(lo, 40, 1e-12);
    assert_float_equal(hi, 61, 1e-12);
    stats_median_ci(v, 6, &lo, &hi);
    assert_float_equal(lo, 1, 1e-12);
    assert_float_equal(hi, 6, 1e-12);
    stats_median_ci(v, 1, &lo, &hi);
    assert_float_equal(lo, 1, 1e-12);
    assert_float_equal(hi, 1, 1e-12);
}

TEST(the_interval_holds_the_true_median_in_95_of_100_samples)
{
    struct rng r;
    int held = 0;

    rng_seed(&r, 1);
    for (int k = 0; k < 4000; k++) {
        double v[40], lo, hi;
        for (int i = 0; i < 40; i++)
            v[i] = exp(rng_normal(&r)); /* skewed; the true median is 1 */
        stats_sort(v, 40);
        stats_median_ci(v, 40, &lo, &hi);
        held += lo <= 1 && 1 <= hi;
    }
    assert_true(held >= 0.94 * 4000);
    assert_true(held <= 0.985 * 4000); /* nor so wide that it says nothing */
}

TEST(summary_has_every_field_in_order)
{
    double v[101];
    struct summary s;

    for (int i = 0; i < 101; i++)
        v[i] = 100 - i;
    stats_summary(&s, v, 101);
    assert_int_equal(s.n, 101);
    assert_true(s.min == 0 && s.p5 == 5 && s.median == 50 && s.p95 == 95 && s.max == 100);
    assert_true(s.lo < s.median && s.median < s.hi);
    assert_float_equal(s.mad, 25, 1e-12);
}

TEST(the_generator_gives_the_published_numbers)
{
    /* splitmix64 from 0 starts e220a8397b1dcdaf 6e789e6aa1b965f4 (prng.di.unimi.it/splitmix64.c);
     * the first xoshiro256** output is rotl(s[1] * 5, 7) * 9. */
    struct rng r;

    rng_seed(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdafULL);
    assert_true(r.s[1] == 0x6e789e6aa1b965f4ULL);
    assert_true(rng_u64(&r) == 0x99ec5f36cb75f2b4ULL);
}

TEST(random_numbers_are_spread_as_they_should_be)
{
    struct rng r;
    double sum = 0, square = 0;
    int seen[7] = {0}, order[7] = {0, 1, 2, 3, 4, 5, 6};

    rng_seed(&r, 42);
    for (int i = 0; i < 100000; i++) {
        double x = rng_normal(&r), u = rng_uniform(&r);
        assert_true(u >= 0 && u < 1);
        sum += x;
        square += x * x;
        seen[rng_below(&r, 7)]++;
    }
    assert_float_equal(sum / 1e5, 0, 0.015);
    assert_float_equal(square / 1e5, 1, 0.02);
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 13700, 14900);
    rng_shuffle(&r, order, 7);
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < 7; i++)
        seen[order[i]]++;
    for (int i = 0; i < 7; i++)
        assert_int_equal(seen[i], 1);
}

/* Of 8! orders one only rises and one only falls; of 5! four have one inversion. */
TEST(a_trend_has_the_tabulated_probability)
{
    const double up[] = {1, 2, 3, 4, 5, 6, 7, 8}, down[] = {4, 3, 2, 1}, swap[] = {2, 1, 3, 4, 5},
                 flat[] = {1, 1, 1, 1, 1}, few[] = {1, 2, 3};
    double mixed[] = {5, 1, 4, 2, 6, 3}, many[40];

    assert_float_equal(stats_trend(up, 8), 2.0 / 40320, 1e-12);
    assert_float_equal(stats_trend(down, 4), 2.0 / 24, 1e-12);
    assert_float_equal(stats_trend(swap, 5), 2 * (1 + 4) / 120.0, 1e-12);
    assert_float_equal(stats_trend(mixed, 6), 1, 1e-12);
    assert_float_equal(stats_trend(flat, 5), 1, 1e-12);
    assert_true(isnan(stats_trend(few, 3)));
    for (int i = 0; i < 40; i++)
        many[i] = i;
    assert_true(stats_trend(many, 40) < 1e-10);
    /* A tie: S = 9, var = (5 4 15 - 2 1 9) / 18. */
    const double tied[] = {1, 2, 2, 3, 4};
    assert_float_equal(stats_trend(tied, 5), erfc(8 / sqrt(282 / 18.0) / sqrt(2)), 1e-12);
}

TEST(a_slope_ignores_one_wild_value)
{
    const double t[] = {0, 1, 2, 3, 4, 5, 6, 7}, v[] = {0, 2, 4, 6, 800, 10, 12, 14};
    double lo, hi;

    assert_float_equal(stats_slope(t, v, 8, &lo, &hi), 2, 1e-12);
    assert_true(lo <= 2 && 2 <= hi);
    const double same[] = {1, 1, 1};
    assert_true(isnan(stats_slope(same, v, 3, &lo, &hi)) && isnan(lo));
}

/* 8 normal values around a line: the interval holds its slope in 95 of 100. */
TEST(the_interval_of_a_slope_holds_it)
{
    struct rng r;
    int held = 0;

    rng_seed(&r, 11);
    for (int k = 0; k < 4000; k++) {
        double t[8], v[8], lo, hi;
        for (int i = 0; i < 8; i++) {
            t[i] = i;
            v[i] = 0.5 * i + rng_normal(&r);
        }
        stats_slope(t, v, 8, &lo, &hi);
        held += lo <= 0.5 && 0.5 <= hi;
    }
    assert_in_range(held, 3720, 3960);
}

TEST(holm_stops_at_the_first_that_fails)
{
    const double p[] = {0.04, 0.001, NAN, 0.03, 0.02};
    const bool at5[] = {false, true, false, false, false}, all[] = {true, true, false, true, true};
    bool sure[5];

    stats_holm(p, 5, 0.05, sure);
    assert_memory_equal(sure, at5, sizeof(sure));
    stats_holm(p, 5, 0.08, sure);
    assert_memory_equal(sure, all, sizeof(sure));
    stats_holm(p, 0, 0.05, sure);
}

/* Few normal values have a deviation of 1 on average. */
TEST(the_spread_of_few_values_is_not_too_small)
{
    struct rng r;

    rng_seed(&r, 12);
    for (int n = 3; n < 12; n += 2) {
        double v[12], sum = 0;
        for (int k = 0; k < 4000; k++) {
            for (int i = 0; i < n; i++)
                v[i] = 5 + rng_normal(&r);
            sum += stats_spread(v, n);
        }
        assert_float_equal(sum / 4000, 1, 0.06);
    }
}

/* As sorting finds it, among ties too. */
TEST(test_select)
{
    struct rng r;
    double v[200], sorted[200];

    rng_seed(&r, 5);
    for (int n = 1; n <= 200; n++) {
        for (int i = 0; i < n; i++)
            v[i] = sorted[i] = rng_below(&r, 1 + (unsigned)n % 37) * 0.5;
        stats_sort(sorted, n);
        int k = (int)rng_below(&r, (unsigned)n);
        assert_true(stats_select(v, n, k) == sorted[k]);
        for (int i = 0; i < n; i++)
            assert_true(i < k ? v[i] <= v[k] : v[i] >= v[k]);
        assert_true(stats_middle(v, n) == stats_quantile(sorted, n, 0.5));
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

TEST(many_values_are_sorted_as_few_are)
{
    enum { MANY = 20000 };
    double *got = malloc(MANY * sizeof(double)), *want = malloc(MANY * sizeof(double));
    struct rng r;

    rng_seed(&r, 31);
    for (int kind = 0; kind < 5; kind++)
        for (int n = 1; n <= MANY; n = n * 5 / 2 + 1) {
            for (int i = 0; i < n; i++)
                got[i] = kind == 0   ? rng_normal(&r)
                         : kind == 1 ? exp(50 * rng_normal(&r)) - 1
                         : kind == 2 ? (double)rng_below(&r, 3) - 1
                         : kind == 3 ? 9.9e-6
                         : i % 7     ? rng_uniform(&r) * 1e-300
                                     : (i % 2 ? INFINITY : -INFINITY);
            memcpy(want, got, (size_t)n * sizeof(double));
            qsort(want, (size_t)n, sizeof(double), by_size);
            stats_sort(got, n);
            for (int i = 0; i < n; i++)
                assert_true(got[i] == want[i]);
        }
    free(got);
    free(want);
}

/* Equal ones keep their order, whatever the size of an item, and negative numbers come first. */
TEST(items_are_sorted_by_their_two_ints)
{
    enum { MANY = 20000 };
    struct item {
        int a, b, was;
    } *v = malloc(MANY * sizeof(*v));
    struct rng r;

    rng_seed(&r, 77);
    for (int n = 0; n <= MANY; n = n * 5 / 2 + 1) {
        unsigned spread = n % 2 ? 5 : 1u << 20;
        for (int i = 0; i < n; i++)
            v[i] = (struct item){(int)rng_below(&r, spread) - 2, (int)rng_below(&r, 3) - 1, i};
        stats_sort_keys(v, n, sizeof(*v), stats_2ints);
        for (int i = 1; i < n; i++) {
            int order = stats_by_2ints(&v[i - 1], &v[i]);
            assert_true(order < 0 || (order == 0 && v[i - 1].was < v[i].was));
        }
    }
    free(v);
}

/* Variances of 4 degrees of freedom whose truth is the same, or spreads by a factor of e. */
TEST(a_prior_is_as_heavy_as_variances_are_alike)
{
    double alike[400], unlike[400], var0, df0;
    struct rng r;

    rng_seed(&r, 12);
    for (int i = 0; i < 400; i++) {
        alike[i] = 0;
        for (int k = 0; k < 4; k++)
            alike[i] += 0.09 * pow(rng_normal(&r), 2) / 4;
        unlike[i] = alike[i] * exp(rng_normal(&r));
    }
    stats_prior(alike, 400, 4, &var0, &df0);
    assert_float_equal(var0, 0.09, 0.009); /* a median of 400: 5 % */
    assert_true(df0 > 20);
    stats_prior(unlike, 400, 4, &var0, &df0);
    assert_float_equal(var0, 0.09, 0.018);
    assert_true(df0 > 1 && df0 < 4); /* F of (4, 2.4) spreads like that */
    stats_prior(alike, STATS_PRIOR - 1, 4, &var0, &df0);
    assert_float_equal(df0, 0, 0);
    stats_prior(alike, STATS_PRIOR, 4, &var0, &df0);
    assert_true(df0 > 0);
    assert_int_equal(STATS_PRIOR, 6);
    stats_prior((double[]){0, NAN}, 2, 4, &var0, &df0);
    assert_float_equal(var0, 0, 0);
}
