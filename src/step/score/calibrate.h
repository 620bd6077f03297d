/* calibrate.h - refits the global constants to a table of measured steps, reproducibly.
 *
 * Looked for is the lowest weighted mean of min(sqrt(e^2 + 0.01^2), 0.5), e the log of predicted
 * over measured: a row that is wrong for reasons of its own pulls no more than one that is off by
 * half, and below a hundredth, where identical runs differ, nothing is to be gained.
 *
 * Weights: rows that ask the same job (of different releases or machines) share one; the rows of a
 * model together weigh the square root of how many jobs they are, so that a model that was
 * published often does not decide for all.
 *
 * What few rows determine is held near where it was, weakly: being off by a factor of two counts as
 * much as one job that is off by a twentieth more.
 *
 * Errors: each model is left out in turn (jackknife: Tukey 1958), or how far a constant alone may
 * go until the loss has grown by the share of one job, whichever is more.
 *
 * Rows whose split begins with "test" take no part, nor do those whose dtype the table leaves open
 * or whose machine is unlike its kind. */
#ifndef RG_CALIBRATE_H
#define RG_CALIBRATE_H

#include "step/score/batch.h"

struct calibrate_opts {
    const char *const *only; /* names of constants; NULL: all that are fitted */
    int onlys;
    double limit; /* s; 0: none */
    bool
        anchored; /* half of a row's loss is its error once the smallest job of its recipe is met */
    bool dry_run; /* stop before the search: rows, constants and errors as they are */
    /* Called now and then with the share that is done and what is being done; NULL: not. */
    void (*progress)(double done, const char *what);
};

struct calibrated {
    const char *name;
    double before, after;
    double error; /* share of the value, one standard deviation; NAN: not fitted */
    double low, high;
    int rows;    /* whose step changes with it */
    bool fitted; /* false: too few rows depend on it */
    bool at_bound;
};

struct calibration {
    struct calibrated *constant;
    int constants;
    int rows, jobs, models;   /* taken */
    int anchored;             /* of them, judged from another one too */
    int test, misses, claims; /* left out */
    int doubtful;             /* too: dtype not stated, or a machine unlike its kind */
    double loss_before, loss_after;
    double *before, *after; /* per row of the batch, predicted / measured - 1; NAN: left out */
    long steps;             /* predicted on the way */
    bool cut;               /* by the limit */
};

/* b after batch_predict().  c is changed to the fitted values, errors and sources; names outside
 * opts->only keep theirs.  EXIT_UNJUDGED when no row is left, EXIT_USAGE when a name of `only` is
 * no constant that is fitted. */
int calibrate(struct calibration *out, const struct batch *b, struct constants *c,
              const struct calibrate_opts *opts, struct err *err);
void calibration_free(struct calibration *k);

/* --- the lowest point of a function of some numbers, without derivatives --- *
 *
 * Pattern search (Hooke and Jeeves 1961): each number in turn a step up or down, twice as far while
 * that helps; after a round the same way once more; when a round gains next to nothing the steps
 * are halved.  Nothing is drawn by chance, so equal input gives equal output. */
struct calibrate_search {
    int n;
    double *x;                /* start, and the best when done */
    const double *low, *high; /* bounds */
    double step, least;       /* first and last size of a step, in units of x */
    double gain;              /* share of the value below which a round gains nothing */
    /* The value with x[i] replaced by v, all others as kept; keep() makes the last one asked for
     * the kept one.  i < 0: x as a whole has changed. */
    double (*value)(void *ctx, const double *x, int i, double v);
    void (*keep)(void *ctx);
    /* Called once a round with the share of the way that is done; false: stop here. */
    bool (*go_on)(void *ctx, double done);
    void *ctx;
};

/* Returns the lowest value found; *cut when go_on() stopped it. */
double calibrate_lowest(struct calibrate_search *s, bool *cut);

#endif
