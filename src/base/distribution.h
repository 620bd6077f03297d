/* distribution.h - probabilities of distributions: normal, Student's t, beta, binomial,
 * beta-binomial.
 *
 * "upper" is the probability of k or more.  Tails keep their relative accuracy (about 1e-10), so
 * that Bonferroni and Holm can compare very small ones.  Returns NAN if an argument is NAN or a
 * parameter is not positive. */
#ifndef RG_DISTRIBUTION_H
#define RG_DISTRIBUTION_H

double dist_normal_cdf(double z);
double dist_normal_quantile(double p); /* 0 gives -INFINITY, 1 INFINITY */

/* Regularised incomplete beta function I_x(a, b); 0 <= x <= 1. */
double dist_beta_inc(double a, double b, double x);

/* Student's t; df > 0 may be fractional. */
double dist_t_cdf(double t, double df);
double dist_t_quantile(double p, double df);

/* Probability of k or more successes in n trials that succeed with probability q each. */
double dist_binomial_upper(double k, double n, double q);
/* Like dist_binomial_upper(), for groups of n trials whose q is from a beta distribution (a, b):
 * mean share a / (a + b), correlation within a group 1 / (a + b + 1).  Takes n steps. */
double dist_beta_binomial_upper(int k, int n, double a, double b);

/* Second derivative of log gamma, x > 0: variance of log chi-square, 2x degrees of freedom. */
double dist_trigamma(double x);

#endif
