/* calibrate_impl.h - state of a fit, shared by the files of calibrate.h. */
#ifndef RG_CALIBRATE_IMPL_H
#define RG_CALIBRATE_IMPL_H

#include "calibrate/calibrate.h"

struct calibrate_row {
    const struct batch_row *row;
    int index;    /* index in the batch */
    double share; /* share of its job */
    struct effect_level level[EFFECT_LEVELS];
    int levels;
};

struct calibrate_constant {
    int at, out; /* index in the constants, index in the calibration */
    double max;
};

struct calibrate_fit {
    struct constants *c;
    const struct calibrate_opts *opts;
    struct calibration *out;
    struct calibrate_row *row;
    double *weight;
    int rows;
    struct calibrate_constant *constant; /* constants being fitted */
    int constants;
    struct effects effects; /* being fitted */
    double spread[EFFECT_FACTORS];
    struct effect_interval interval[KNOWN_COUNT][2]; /* intervals before the fit */
    int *slot;                                       /* slots of struct mixed */
    struct mixed mixed;
    double deadline;
};

/* Returns the group of a row. */
const char *calibrate_group(const struct batch_row *r, enum leave by);
/* Set f->c->effects.interval after the fit. */
void calibrate_intervals(struct calibrate_fit *f);

#endif
