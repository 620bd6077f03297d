/* stats.h - order statistics of small samples, without assumptions on the distribution. */
#ifndef RG_STATS_H
#define RG_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Half widths of the central 90 % and 95 % of a normal distribution, in standard deviations. */
#define STATS_Z90 1.645
#define STATS_Z95 1.96

struct summary {
    int n;
    double median;
    double lo, hi; /* nonparametric 95 % confidence interval of the median, see stats_median_ci() */
    double min, p5, p95, max;
    double mad; /* median absolute deviation from the median, not scaled */
};

void stats_sort(double *v, int n);
/* Lexicographic order of n numbers each, for qsort(). */
int stats_order(const double *x, const double *y, int n);
/* For qsort() and bsearch(): order of structs that begin with one or two ints. */
int stats_by_int(const void *a, const void *b);
int stats_by_2ints(const void *a, const void *b);
/* Sort n items of `size` bytes by a number derived from each; stable.  For many items it takes a
 * tenth of qsort()'s time. */
typedef uint64_t stats_key(const void *item);
void stats_sort_keys(void *v, int n, size_t size, stats_key *key);
static inline uint64_t stats_2ints(const void *item) /* order of stats_by_2ints() */
{
    const int *x = item;

    return (uint64_t)((unsigned)x[0] ^ 1u << 31) << 32 | ((unsigned)x[1] ^ 1u << 31);
}
/* Quantile of sorted values, n >= 1, 0 <= q <= 1; linear between order statistics (type 7 of
 * Hyndman & Fan 1996). */
double stats_quantile(const double *sorted, int n, double q);
double stats_median(double *v, int n); /* sorts v */
/* k-th smallest of n, 0 <= k < n.  Afterwards values before it in v are not larger, values behind
 * it not smaller (Hoare 1961).  stats_middle() is stats_median() computed this way: it leaves v
 * unsorted and takes a tenth of the time. */
double stats_select(double *v, int n, int k);
double stats_middle(double *v, int n);
double stats_mad(const double *v, int n, double median);
/* Estimate of a standard deviation: 1.4826 MAD, exact for normal distributions; 0 for n = 0. */
double stats_sigma(const double *sorted, int n);
/* Values at ranks floor((n - 1.96 sqrt n)/2) and ceil(1 + (n + 1.96 sqrt n)/2) of the sorted
 * sample, clamped to it (Le Boudec, Performance Evaluation, 2010, th. 2.1): minimum and maximum
 * for n < 6. */
void stats_median_ci(const double *sorted, int n, double *lo, double *hi);
void stats_summary(struct summary *s, double *v, int n); /* sorts v; n >= 1 */

/* --- significance.  p-values are two-sided; NAN: too few values. --- */

/* Holm's step-down procedure (1979): the k-th smallest of n p-values is compared with alpha / (n -
 * k + 1), up to the first that fails.  sure[i]: p[i] passed.  NAN never passes. */
void stats_holm(const double *p, int n, double alpha, bool *sure);
/* Mann's test (1945) for a trend of v in its order, from 4 values on: exact without ties up to 30
 * values, else the normal approximation with Kendall's correction for ties. */
double stats_trend(const double *v, int n);
/* Slope of v over t: median of the slopes between all pairs (Theil 1950), with the 95 % interval
 * of Sen (1968); NAN if all t are equal. */
double stats_slope(const double *t, const double *v, int n, double *lo, double *hi);
/* 1.4826 MAD, corrected for few values (Croux & Rousseeuw, COMPSTAT 1992); 0 if n < 2.  Sorts v. */
double stats_spread(double *v, int n);

/* Prior of n variances of df degrees of freedom each: they follow var0 times an F distribution of
 * (df, df0), as in Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004), fitted to their middle half, so
 * that a quarter of outliers on either side has no effect.  A variance moderated by it is (df0
 * var0 + df var) / (df0 + df).  Variances that are not positive are ignored; df0 is 0 for fewer
 * than STATS_PRIOR. */
enum { STATS_PRIOR = 6 };
void stats_prior(const double *var, int n, double df, double *var0, double *df0);

enum { STATS_LEVELS = 5 };
/* Number of levels of v (sorted logarithms) that noise, a standard deviation, does not explain; 0
 * for fewer than two.  level[] (STATS_LEVELS) receives their medians, ascending. */
int stats_levels(const double *sorted, int n, double noise, double *level);

/* xoshiro256** seeded by splitmix64 (Blackman & Vigna 2018): equal seeds, equal runs anywhere. */
struct rng {
    unsigned long long s[4];
};
void rng_seed(struct rng *r, unsigned long long seed);
unsigned long long rng_u64(struct rng *r);
double rng_uniform(struct rng *r);             /* [0, 1) */
double rng_normal(struct rng *r);              /* mean 0, variance 1 */
unsigned rng_below(struct rng *r, unsigned n); /* 0..n-1 */
void rng_shuffle(struct rng *r, int *v, int n);

#endif
