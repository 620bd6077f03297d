/* calibrate_impl.h - what the files of calibrate.h share: a fit while it is made. */
#ifndef RG_CALIBRATE_IMPL_H
#define RG_CALIBRATE_IMPL_H

#include "step/score/calibrate.h"

struct calibrate_row {
    const struct batch_row *row;
    int index;    /* in the batch */
    double share; /* of its job */
    struct effect_level level[EFFECT_LEVELS];
    int levels;
};

struct calibrate_constant {
    int at, out; /* in the constants, in the calibration */
    double max;
};

struct calibrate_fit {
    struct constants *c;
    const struct calibrate_opts *opts;
    struct calibration *out;
    struct calibrate_row *row;
    double *weight;
    int rows;
    struct calibrate_constant *constant; /* that are fitted */
    int constants;
    struct effects effects; /* being fitted */
    double spread[EFFECT_FACTORS];
    struct effect_interval interval[KNOWN_COUNT][2]; /* of before */
    int *slot;                                       /* of struct mixed */
    struct mixed mixed;
    double deadline;
};

/* The group of a row. */
const char *calibrate_group(const struct batch_row *r, enum leave by);
/* f->c->effects.interval, once the fit is done. */
void calibrate_intervals(struct calibrate_fit *f);

#endif
