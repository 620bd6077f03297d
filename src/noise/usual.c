/* SPDX-License-Identifier: BSD-3-Clause */
/* Location and scale of usual values.  Faults and strays are slow, so the fast side tells the scale. */
#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "noise/noise_impl.h"

enum { ROUNDS = 20 };
static const double sigma_least = 1e-3, mad_normal = 1.4826;

double usual_quantile(double *v, int n, double share)
{
    int k = (int)ceil(n * share * (1 - 1e-9)) - 1;

    return stats_select(v, n, k < 0 ? 0 : k >= n ? n - 1 : k);
}

/* The middle of the last window of three tenths of v that is about as narrow as the narrowest. */
static double heap_middle(const double *v, int n)
{
    int k = (int)(n * noise_constants.heap), at = 0;
    double least = INFINITY;

    for (int i = 0; i + k < n; i++)
        least = fmin(least, v[i + k] - v[i]);
    for (int i = 0; i + k < n; i++)
        if (v[i + k] - v[i] <= noise_constants.heap_slack * least + noise_constants.delta / 2)
            at = i;
    return v[at + k / 2];
}

static int first_from(const double *v, int n, double x)
{
    int lo = 0, hi = n;

    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if (v[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Standard deviation from the values above m. */
static double fast_sigma(const double *v, int n, double m)
{
    int at = first_from(v, n, m), many = n - at;
    double middle = many ? (v[at + (many - 1) / 2] + v[at + many / 2]) / 2 : m;

    return fmax(sigma_least, mad_normal * (middle - m));
}

/* Tukey's biweight around m. */
static double biweight(const double *v, int n, double m, double sigma)
{
    const double reach = noise_constants.reach * sigma;
    double sum = 0, weight = 0;

    for (int i = first_from(v, n, m - reach); i < n && v[i] < m + reach; i++) {
        double u = (v[i] - m) / reach, w = (1 - u * u) * (1 - u * u);

        sum += w * v[i];
        weight += w;
    }
    return weight > 0 ? sum / weight : m;
}

void usual_find(double *v, int n, double *m, double *sigma)
{
    double before;
    int round = 0;

    stats_sort(v, n);
    if (n < noise_constants.class_looks) {
        *m = n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : 0;
        *sigma = fmax(sigma_least, n ? mad_normal * stats_mad(v, n, *m) : 0);
        return;
    }
    *m = heap_middle(v, n);
    do {
        before = *m;
        *sigma = fast_sigma(v, n, *m);
        *m = biweight(v, n, *m, *sigma);
    } while (++round < ROUNDS && fabs(*m - before) > 1e-9);
}
