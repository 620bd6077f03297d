/* calibrate_parts.h - the inner halves of calibrate.c: what takes part in a fit, and the fit. */
#ifndef RG_CALIBRATE_PARTS_H
#define RG_CALIBRATE_PARTS_H

#include "step/score/calibrate.h"

enum { CALIBRATE_ROWS_MIN = 3 }; /* fewer rows determine no constant */

struct taken {
    const struct batch_row *row;
    int index;     /* in the batch */
    int anchor;    /* taken row that is the smallest job of its recipe; its own place: none other */
    double weight; /* all together 1 */
    double loss;   /* kept */
    double trial;  /* asked for */
};

struct fitting {
    struct constants *c;
    const struct calibrate_opts *opts;
    struct calibration *out;
    struct taken *row;
    int rows;
    int n;            /* constants that are fitted: the first n of out->constant */
    int *at;          /* of out->constant, in c */
    int **depends;    /* rows, -1 ends each list */
    double *start;    /* log of each, as the file has it */
    const char *skip; /* model that is left out; NULL: none */
    double deadline;
    double share, done; /* progress: of this search, of those before */
};

/* Rows that take part, and their weights. */
int calibrate_rows(struct fitting *f, const struct batch *b, struct err *err);
void calibrate_weigh(struct fitting *f);
/* Constants that are asked for, and which rows' steps change with each. */
int calibrate_constants(struct fitting *f, struct err *err);
void calibrate_depend(struct fitting *f);

#endif
