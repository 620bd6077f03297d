/* calibrate.h - refits the global constants and the effects (effects.h) to a table of measured
 * steps, reproducibly.
 *
 * Looked for is what is most probable of a mixed model (Laird and Ware 1982): the log of predicted
 * over measured is what the constants say, plus the row's share of compute times the sum of its
 * effects, plus a rest with the tails of a t distribution of 4 degrees of freedom, so that a row
 * that is wrong for reasons of its own pulls little.  Constants have the priors of their file; the
 * effects of a factor are normal, with a deviation that is estimated too, as the rest's is.
 *
 * Weights: 1, but the rows of a model of more than 40 jobs together weigh as the square root of how
 * many they are, so that a model that was published often does not decide for all.  What rows of one
 * release, model or machine have in common is the effects' to say.
 *
 * Errors are those of the posterior where the model is linear.
 *
 * Intervals: each source, release, model and GPU, and a tenth of the families and of the jobs, is left out in
 * turn, and
 * its rows predicted from the others; nine of ten of those of which as much was known lie inside.
 *
 * Rows whose split begins with "test" take no part, nor do those whose dtype the table leaves open
 * or whose machine is unlike its kind. */
#ifndef RG_CALIBRATE_H
#define RG_CALIBRATE_H

#include "step/score/batch.h"

struct calibrate_opts {
    const char *const *only; /* names of constants; NULL: all that are fitted */
    int onlys;
    double limit;     /* s; 0: none */
    bool dry_run;     /* stop before the fit: rows, constants and errors as they are */
    bool quick;       /* intervals stay as they are */
    const bool *left; /* rows of the batch that take no part; NULL: none */
    /* Called now and then with the share that is done and what is being done; NULL: not. */
    void (*progress)(double done, const char *what);
};

struct calibrated {
    const char *name;
    double before, after, prior;
    double error; /* share of the value, one standard deviation; NAN: not fitted */
    int rows;     /* whose step changes with it */
    bool fitted;  /* false: too few rows depend on it */
    bool at_bound;
};

struct calibration {
    struct calibrated *constant;
    int constants;
    int rows, jobs, models;         /* taken */
    int test, misses, claims, left; /* left out */
    int doubtful;                   /* too: dtype not stated, or a machine unlike its kind */
    double *before, *after; /* per row of the batch, predicted / measured - 1; NAN: left out */
    bool cut;               /* by the limit */
};

/* Which of its groups a row belongs to when groups are left out. */
enum leave { LEAVE_SOURCE, LEAVE_RELEASE, LEAVE_MODEL, LEAVE_GPU, LEAVE_FAMILY, LEAVE_COUNT };
extern const char *const leave_name[LEAVE_COUNT + 1]; /* NULL ends them */

/* b after batch_predict().  c is changed to the fitted values, errors, effects, intervals and
 * sources; constants outside opts->only keep theirs.  EXIT_UNJUDGED when no row is left, EXIT_USAGE
 * when a name of `only` is no constant that is fitted. */
int calibrate(struct calibration *out, const struct batch *b, struct constants *c,
              const struct calibrate_opts *opts, struct err *err);
void calibration_free(struct calibration *k);

/* Predicts every row from constants and effects that were fitted, from c, to the rows of other
 * groups, with their anchors too; r->group is its group.  Rows of `left` are never fitted.
 * LEAVE_FAMILY: ten groups of whole families. */
int calibrate_leave_out(struct batch *b, const struct constants *c, enum leave by, const bool *left,
                        void (*progress)(double done, const char *what), struct err *err);

/* --- the most probable values of a mixed model --- */

struct mixed {
    int rows, fixed, effects, factors;
    int slots;                   /* effects of a row, at most */
    const double *weight;        /* of each row */
    const double *prior, *width; /* of each fixed number */
    const int *factor;           /* of each effect */
    const int *slot;             /* rows x slots: the effects of a row; -1: none */
    double *x;                   /* fixed numbers, then effects: the start; the most probable */
    double *error;               /* of each */
    double *spread;              /* of the effects of each factor */
    double rest;                 /* of a row of weight 1 */
    double *residual, *share, *slope; /* of each row: left over; by its sum of effects; x fixed */
    /* Residuals of all rows, with the sum of effects of each. */
    void (*ask)(void *ctx, const double *x, const double *sum, double *residual);
    bool (*go_on)(void *ctx, double done); /* false: stop here; NULL: always */
    void *ctx;
};
/* Gauss-Newton steps.  The arrays are the caller's.  false: stopped. */
bool mixed_solve(struct mixed *m);
/* x had those rows not been there, by the linear model round the solution, and the error of their
 * effects. */
void mixed_without(struct mixed *m, const bool *left, double *x, double *error);

#endif
