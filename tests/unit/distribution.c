/* SPDX-License-Identifier: BSD-3-Clause */
/* Expected values are those of scipy 1.x (scipy.stats, scipy.special), to 15 digits. */
#include "base/distribution.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

#define COUNT(x) (sizeof(x) / sizeof(*(x)))

static void same(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected) + 1e-300))
        fail_msg("%.15g, expected %.15g", got, expected);
}

TEST(the_normal_cdf_keeps_its_tail)
{
    same(dist_normal_cdf(-6), 9.86587645037695e-10);
    same(dist_normal_cdf(-1.959963984540054), 0.025);
    same(dist_normal_cdf(0), 0.5);
    same(dist_normal_cdf(1), 0.841344746068543);
    same(dist_normal_cdf(3), 0.99865010196837);
}

TEST(the_normal_quantile_is_the_inverse)
{
    static const double row[][2] = {{1e-300, -37.0470962993612}, {1e-10, -6.36134090240406},
                                    {0.005, -2.5758293035489},   {0.025, -1.95996398454005},
                                    {0.3, -0.524400512708041},   {0.5, 0},
                                    {0.975, 1.95996398454005}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_normal_quantile(row[i][0]), row[i][1]);
    for (double z = -8; z < 5; z += 0.37)
        same(dist_normal_quantile(dist_normal_cdf(z)), z);
    assert_true(isinf(dist_normal_quantile(0)) && dist_normal_quantile(0) < 0);
    assert_true(isinf(dist_normal_quantile(1)) && dist_normal_quantile(1) > 0);
    assert_true(isnan(dist_normal_quantile(1.1)));
}

TEST(the_incomplete_beta_function_has_its_values)
{
    static const double row[][4] = {{1, 1, 0.3, 0.3},
                                    {2, 3, 0.4, 0.5248},
                                    {0.5, 0.5, 0.5, 0.5},
                                    {2, 0.5, 0.99, 0.8505},
                                    {1e3, 2e3, 0.34, 0.781215091160644},
                                    {50, 0.5, 0.9, 0.00120414983255981},
                                    {1e-2, 5, 0.1, 0.994072630929622},
                                    {5e4, 0.5, 0.9999, 0.0015650197621735},
                                    {3, 4, 0, 0},
                                    {3, 4, 1, 1}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_beta_inc(row[i][0], row[i][1], row[i][2]), row[i][3]);
    assert_true(isnan(dist_beta_inc(0, 1, 0.5)));
    assert_true(isnan(dist_beta_inc(1, 1, 1.5)));
}

TEST(students_t_has_its_values)
{
    static const double row[][3] = {
        {-2, 1, 0.147583617650433},       {0, 3, 0.5},
        {-12, 4, 0.000138214274251487},   {1.5, 2.5, 0.876081773456852},
        {-1.96, 1e6, 0.0249980337926349}, {-30, 7, 5.89423444036657e-09},
        {4, 30, 0.999809077181958},       {-INFINITY, 2, 0}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_t_cdf(row[i][0], row[i][1]), row[i][2]);
    assert_true(isnan(dist_t_cdf(1, 0)));
}

TEST(the_quantile_of_t_is_the_tabulated_one)
{
    static const double row[][3] = {{0.975, 1, 12.7062047361747},   {0.975, 4, 2.77644510519779},
                                    {0.9995, 4, 8.61030158137952},  {0.005, 7, -3.49948329735049},
                                    {1e-8, 3, -479.525069579738},   {0.5, 2, 0},
                                    {0.3, 2.5, -0.597307738252318}, {0.995, 1e6, 2.57583422010533},
                                    {1e-4, 40, -4.09420710273068}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_t_quantile(row[i][0], row[i][1]), row[i][2]);
    assert_true(isinf(dist_t_quantile(1, 3)));
    assert_true(isnan(dist_t_quantile(0.5, -1)));
}

TEST(the_upper_tail_of_a_binomial_counts_k_itself)
{
    static const double row[][4] = {{0, 10, 0.1, 1},
                                    {1, 10, 0.1, 0.6513215599},
                                    {3, 5, 0.05, 0.001158125},
                                    {10, 10, 0.5, 0.0009765625},
                                    {11, 10, 0.5, 0},
                                    {40, 1000, 0.02, 4.33987589474642e-05},
                                    {3, 8, 0.3, 0.44822619},
                                    {1, 8, 0, 0},
                                    {8, 8, 1, 1}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_binomial_upper(row[i][0], row[i][1], row[i][2]), row[i][3]);
    assert_true(isnan(dist_binomial_upper(1, 8, 1.1)));
}

TEST(the_upper_tail_of_a_beta_binomial_counts_k_itself)
{
    static const struct {
        int k, n;
        double a, b, upper;
    } row[] = {{1, 10, 1, 1, 0.909090909090909},      {3, 8, 0.5, 4, 0.120920000715397},
               {5, 20, 2, 30, 0.0288395099020178},    {0, 4, 1, 2, 1},
               {20, 200, 20, 380, 0.013007826759873}, {9, 8, 1, 1, 0},
               {8, 8, 1, 1, 0.111111111111111},       {3, 40, 200, 9800, 0.0460117276848476}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_beta_binomial_upper(row[i].k, row[i].n, row[i].a, row[i].b), row[i].upper);
    assert_true(isnan(dist_beta_binomial_upper(1, 8, 0, 1)));
    /* A huge a + b leaves the binomial. */
    assert_float_equal(dist_beta_binomial_upper(3, 8, 3e9, 7e9), dist_binomial_upper(3, 8, 0.3),
                       1e-7);
}

TEST(trigamma_has_its_values)
{
    static const double row[][2] = {{0.1, 101.433299150793}, {0.5, 4.93480220054468},
                                    {1, 1.64493406684823},   {2.5, 0.490357756100235},
                                    {10, 0.105166335681686}, {1000, 0.00100050016666663}};

    for (size_t i = 0; i < COUNT(row); i++)
        same(dist_trigamma(row[i][0]), row[i][1]);
    assert_true(isnan(dist_trigamma(0)));
}
