/* calibrate.h - reproducible fit of the global constants and the effects (effects.h) to a table of
 * measured steps.
 *
 * The result maximises the probability of a mixed model (Laird and Ware 1982): the log of predicted
 * over measured is the constants' prediction, plus the row's share of compute times the sum of its
 * effects, plus a rest with the tails of a t distribution of 4 degrees of freedom, so that a row
 * with an error of its own pulls little.  Constants have the priors of their file.  The effects of
 * a factor are normal with an estimated deviation; so is the rest.
 *
 * Weights: 1.  Rows of a model with more than 40 jobs together weigh the square root of their
 * number, so that a model published often does not dominate.  The effects model the correlation of
 * rows of one release, model or machine.
 *
 * Errors are those of the posterior of the linearised model.
 *
 * Intervals: each source, release, model and GPU, and a tenth of the families and of the jobs, is
 * left out in turn, and its rows are predicted from the others.  An interval contains nine of ten
 * of those with the same familiarity.
 *
 * Excluded: rows with a split that begins with "test", with a dtype left open by the table, or with
 * a machine unlike its kind.
 *
 * Example:
 *
 *     struct batch b;
 *     struct constants c;
 *     struct calibration k;
 *     int rc = -1;
 *
 *     if (constants_load(&c, NULL, err) < 0)
 *         return -1;
 *     if (batch_load(&b, "steps.tsv", err) == 0) {
 *         batch_resolve(&b, &c);
 *         batch_predict(&b, &c);
 *         rc = calibrate(&k, &b, &c, &(struct calibrate_opts){0}, err);
 *         calibration_free(&k);
 *     }
 *     batch_free(&b);
 *     return rc; */
#ifndef RG_CALIBRATE_H
#define RG_CALIBRATE_H

#include "calibrate/batch.h"

struct calibrate_opts {
    const char *const *only; /* names of constants; NULL: all that can be fitted */
    int onlys;
    double limit;     /* time limit, s; 0: none */
    bool dry_run;     /* stop before the fit: rows, constants and errors unchanged */
    bool quick;       /* keep the intervals */
    const bool *left; /* per row of the batch: excluded; NULL: none */
    /* Called now and then with the completed share and the current activity.  NULL: not called. */
    void (*progress)(double done, const char *what);
};

struct calibrated {
    const char *name;
    double before, after, prior;
    double error; /* share of the value, one standard deviation; NAN: not fitted */
    int rows;     /* number of rows whose step depends on it */
    bool fitted;  /* false: too few rows depend on it */
    bool at_bound;
};

struct calibration {
    struct calibrated *constant;
    int constants;
    int rows, jobs, models;         /* included */
    int test, misses, claims, left; /* excluded */
    /* also excluded: dtype not stated, or a machine unlike its kind */
    int doubtful;
    double *before, *after; /* per row of the batch, predicted / measured - 1; NAN: left out */
    bool cut;               /* stopped by the limit */
};

/* Kind of groups that are left out. */
enum leave { LEAVE_SOURCE, LEAVE_RELEASE, LEAVE_MODEL, LEAVE_GPU, LEAVE_FAMILY, LEAVE_COUNT };
extern const char *const leave_name[LEAVE_COUNT + 1]; /* NULL-terminated */

/* Fit constants to b, after batch_predict().  c receives the fitted values, errors, effects,
 * intervals and sources; constants outside opts->only are unchanged.  EXIT_UNJUDGED: no row is
 * left.  EXIT_USAGE: a name in `only` is no constant that can be fitted. */
int calibrate(struct calibration *out, const struct batch *b, struct constants *c,
              const struct calibrate_opts *opts, struct err *err);
void calibration_free(struct calibration *k);

/* Predict every row from constants and effects fitted, starting from c, to the rows of other
 * groups, including their anchors; r->group is its group.  Rows of `left` are never used in the
 * fit.  LEAVE_FAMILY: ten groups of whole families. */
int calibrate_leave_out(struct batch *b, const struct constants *c, enum leave by, const bool *left,
                        void (*progress)(double done, const char *what), struct err *err);

/* --- maximum of the posterior of a mixed model --- */

struct mixed {
    int rows, fixed, effects, factors;
    int slots;                   /* most effects per row */
    const double *weight;        /* per row */
    const double *prior, *width; /* per fixed number */
    const int *factor;           /* per effect */
    const int *slot;             /* rows x slots: effects of each row; -1: none */
    /* fixed numbers, then effects: starting point on input, result on output */
    double *x;
    double *error;  /* per number in x */
    double *spread; /* per factor: deviation of its effects */
    double rest;    /* deviation of the rest, for a row of weight 1 */
    /* per row: residual; derivatives by its sum of effects, by the fixed numbers (rows x fixed) */
    double *residual, *share, *slope;
    /* Compute the residuals of all rows, given the sum of effects of each. */
    void (*ask)(void *ctx, const double *x, const double *sum, double *residual);
    bool (*go_on)(void *ctx, double done); /* returns false to stop; NULL: never */
    void *ctx;
};
/* Solve by Gauss-Newton steps.  The arrays are owned by the caller.  Returns false if stopped. */
bool mixed_solve(struct mixed *m);
/* Estimate x without these rows, from the model linearised at the solution, and the error of their
 * effects. */
void mixed_without(struct mixed *m, const bool *left, double *x, double *error);

#endif
