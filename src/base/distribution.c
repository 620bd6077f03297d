/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/distribution.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

double dist_normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

/* Start with an error of 4.5e-4 (Abramowitz & Stegun 26.2.23), then take Newton's steps on the log
 * of the lower tail, which is concave: three steps reach the last digit. */
static double lower_quantile(double p)
{
    double t = sqrt(-2 * log(p));
    double z = (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
               t;

    for (int i = 0; i < 3; i++) {
        double cdf = dist_normal_cdf(z), density = exp(-z * z / 2) / sqrt(2 * M_PI);
        z -= (log(cdf) - log(p)) * cdf / density;
    }
    return z;
}

double dist_normal_quantile(double p)
{
    if (isnan(p) || p < 0 || p > 1)
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    return p == 0.5 ? 0 : p < 0.5 ? lower_quantile(p) : -lower_quantile(1 - p);
}

/* lgamma() writes the global signgam; arguments are positive here, so the sign is not needed. */
static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

static double log_beta(double a, double b)
{
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b);
}

static double not_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* Continued fraction 8.17.22 of the DLMF by the modified method of Lentz (Thompson & Barnett 1986).
 * Converges in about sqrt(max(a, b)) steps for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    enum { STEPS = 100000 };
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), f = d;

    for (int m = 1; m < STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        f *= c * d;
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        f *= c * d;
        if (fabs(c * d - 1) < 4 * DBL_EPSILON)
            break;
    }
    return f;
}

/* I_x(a, b) from x and y = 1 - x, both exact. */
static double beta_inc(double a, double b, double x, double y)
{
    if (x <= 0 || y <= 0)
        return x > 0;
    double front = exp(a * log(x) + b * log(y) - log_beta(a, b));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, y) / b;
}

double dist_beta_inc(double a, double b, double x)
{
    return a > 0 && b > 0 && x >= 0 && x <= 1 ? beta_inc(a, b, x, 1 - x) : NAN;
}

double dist_t_cdf(double t, double df)
{
    if (!(df > 0) || isnan(t))
        return NAN;
    if (isinf(t))
        return t > 0;
    double square = t * t,
           tail = 0.5 * beta_inc(df / 2, 0.5, df / (df + square), square / (df + square));
    return t < 0 ? tail : 1 - tail;
}

/* Bisection: for small df the tail is heavy, so Newton's steps from the normal one diverge. */
static double lower_t_quantile(double p, double df)
{
    double lo = -1, hi = 0;

    while (dist_t_cdf(lo, df) > p && lo > -DBL_MAX / 2) {
        hi = lo;
        lo *= 2;
    }
    for (int i = 0; i < 200 && hi - lo > 4 * DBL_EPSILON * -lo; i++) {
        double middle = lo + (hi - lo) / 2;
        if (dist_t_cdf(middle, df) > p)
            hi = middle;
        else
            lo = middle;
    }
    return lo + (hi - lo) / 2;
}

double dist_t_quantile(double p, double df)
{
    if (!(df > 0) || isnan(p) || p < 0 || p > 1)
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    return p == 0.5 ? 0 : p < 0.5 ? lower_t_quantile(p, df) : -lower_t_quantile(1 - p, df);
}

double dist_binomial_upper(double k, double n, double q)
{
    if (isnan(k) || !(n >= 0) || !(q >= 0 && q <= 1))
        return NAN;
    return k <= 0 ? 1 : k > n ? 0 : beta_inc(k, n - k + 1, q, 1 - q); /* DLMF 8.17.5 */
}

/* Log of the probability of k of n, summed over the trials, because differences of log_gamma()
 * lose digits where a + b is large. */
static double log_beta_binomial(int k, int n, double a, double b)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += log((i < k ? (a + i) * (n - i) / (k - i) : b + i - k) / (a + b + i));
    return sum;
}

double dist_beta_binomial_upper(int k, int n, double a, double b)
{
    double sum = 0;

    if (!(a > 0) || !(b > 0) || n < 0)
        return NAN;
    if (k <= 0 || k > n)
        return k <= 0;
    double p = exp(log_beta_binomial(k, n, a, b));
    for (int i = k; i <= n; i++) {
        sum += p;
        p *= (n - i) * (i + a) / ((i + 1) * (n - i - 1 + b));
    }
    return fmin(sum, 1);
}

/* Recurrence up to 12; from there five terms of the series (DLMF 5.15.8) have 13 digits. */
double dist_trigamma(double x)
{
    double sum = 0;

    if (!(x > 0))
        return NAN;
    for (; x < 12; x++)
        sum += 1 / (x * x);
    double i = 1 / x, s = i * i;
    return sum + i + s / 2 + i * s * (1. / 6 - s * (1. / 30 - s * (1. / 42 - s / 30)));
}
