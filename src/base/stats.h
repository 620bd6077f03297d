/* stats.h - order statistics of small samples; no distribution is assumed. */
#ifndef RG_STATS_H
#define RG_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 90 % of a normal distribution lie within so many deviations of its mean. */
#define STATS_Z90 1.645
#define STATS_Z95 1.96

struct summary {
    int n;
    double median;
    double lo, hi; /* nonparametric 95 % confidence interval of the median (see stats_median_ci) */
    double min, p5, p95, max;
    double mad; /* median absolute deviation from the median, not scaled */
};

void stats_sort(double *v, int n);
/* As strcmp(), of n numbers each, the first that differ: for qsort(). */
int stats_order(const double *x, const double *y, int n);
/* For qsort() and bsearch(): structs that begin with so many ints, by these. */
int stats_by_int(const void *a, const void *b);
int stats_by_2ints(const void *a, const void *b);
/* Sort n items of so many bytes by a number that each has; equal ones stay in their order.  Of many it
 * takes a tenth of qsort()'s time. */
typedef uint64_t stats_key(const void *item);
void stats_sort_keys(void *v, int n, size_t size, stats_key *key);
static inline uint64_t stats_2ints(const void *item) /* the order of stats_by_2ints() */
{
    const int *x = item;

    return (uint64_t)((unsigned)x[0] ^ 1u << 31) << 32 | ((unsigned)x[1] ^ 1u << 31);
}
/* v sorted, n >= 1, 0 <= q <= 1; linear between order statistics (type 7 of Hyndman & Fan 1996). */
double stats_quantile(const double *sorted, int n, double q);
double stats_median(double *v, int n); /* sorts v */
/* The k-th smallest of n, 0 <= k < n: those before it in v are no larger then, those behind no smaller
 * (Hoare 1961).  stats_middle() is stats_median() that way, which leaves v in disorder and takes a tenth
 * of the time. */
double stats_select(double *v, int n, int k);
double stats_middle(double *v, int n);
double stats_mad(const double *v, int n, double median);
double stats_sigma(const double *sorted, int n); /* 1.4826 MAD: a normal's deviation; 0 of none */
/* Ranks floor((n - 1.96 sqrt n)/2) and ceil(1 + (n + 1.96 sqrt n)/2) of the sorted sample, clamped
 * to it (Le Boudec, Performance Evaluation, 2010, th. 2.1): for n < 6 that is min and max. */
void stats_median_ci(const double *sorted, int n, double *lo, double *hi);
void stats_summary(struct summary *s, double *v, int n); /* sorts v; n >= 1 */

/* --- is it more than noise?  p-values are two-sided; NAN: too few values. --- */

/* Holm's step-down procedure (1979): of n p-values the k-th smallest against alpha / (n - k + 1), up
 * to the first that fails; sure[i]: is that of p[i] among those before?  NAN is none of them. */
void stats_holm(const double *p, int n, double alpha, bool *sure);
/* Mann's test (1945) that v rises or falls in its order, from 4 values on: exact without ties up to
 * 30 values, else the normal approximation with Kendall's correction of ties. */
double stats_trend(const double *v, int n);
/* The slope of v over t: the median of those between any two (Theil 1950), with the 95 % interval
 * of Sen (1968); NAN where no two t differ. */
double stats_slope(const double *t, const double *v, int n, double *lo, double *hi);
/* 1.4826 MAD, corrected for few values (Croux & Rousseeuw, COMPSTAT 1992); 0 of fewer than 2.
 * Sorts v. */
double stats_spread(double *v, int n);

/* Prior of n variances of df degrees of freedom each: they are var0 times an F of (df, df0), as in Smyth,
 * Stat. Appl. Genet. Mol. Biol. 3 (2004), fitted to their middle half, so that a quarter of outliers on
 * either side changes nothing.  A variance moderated by it is (df0 var0 + df var) / (df0 + df).
 * Variances that are not positive are ignored; of fewer than STATS_PRIOR df0 is 0. */
enum { STATS_PRIOR = 6 };
void stats_prior(const double *var, int n, double df, double *var0, double *df0);

enum { STATS_LEVELS = 5 };
/* Levels of v (sorted logarithms) that noise, a standard deviation, does not explain: how many, 0
 * for fewer than two; level[] (STATS_LEVELS) gets their medians, ascending. */
int stats_levels(const double *sorted, int n, double noise, double *level);

/* xoshiro256** seeded by splitmix64 (Blackman & Vigna 2018): equal seeds give equal runs anywhere.
 */
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
