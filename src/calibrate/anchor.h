/* anchor.h - one measured step that fixes a recipe: how much longer compute takes than the
 * constants predict.
 *
 * Deviations from data sheet and global constants are mostly software: kernels, clocks, launch
 * gaps.  They scale the compute of a (model, GPU, dtype, stack release) equally for every layout
 * and scale, while messages are priced from the matrix.  So the single unknown is solved such that
 * the prediction of the anchor equals its measurement. */
#ifndef RG_ANCHOR_H
#define RG_ANCHOR_H

#include "base/err.h"
#include "calibrate/batch.h"
#include "step/job.h"

/* A measured step, its prediction, and the resulting factor. */
struct anchor {
    char *name;                  /* "a.json", "row small of steps.tsv" */
    char *model, *gpu, *release; /* gpu NULL: a machine with a measured compute rate */
    struct recipe recipe;
    double measured, predicted; /* s; predicted: without the anchor */
    double stretch;
};

/* Open an anchor and solve it with the constants of the question it is for.  text: a file of
 * anchor_save(), or TABLE:ID, a row of a table as read by batch.h.  EXIT_UNJUDGED: compute cannot
 * explain the measurement.  Call anchor_free() even after an error. */
int anchor_open(struct anchor *a, const char *text, const struct constants *c, struct err *err);
void anchor_free(struct anchor *a);
/* Write {"format": "railgauge-anchor", "seconds": 13.2, "release": "...", "job": {KEY: VALUE}}: the
 * job with the keys of job.h, and the measurement.  release NULL: not stated. */
int anchor_save(const struct job_opts *o, const struct job *j, double seconds, const char *release,
                const char *path, struct err *err);

/* Set stretch and doubt of q.  EXIT_UNJUDGED: another GPU.  Another model, dtype, stack, kind of
 * training or release adds doubt. */
int anchor_apply(const struct anchor *a, struct question *q, const char *release, struct err *err);
/* Add notes to p on the effect of the anchor.  without: step time without it, s. */
void anchor_notes(struct prediction *p, const struct anchor *a, const struct question *q,
                  const char *release, double without);

/* --- rows of a table as anchors of each other --- */

/* Choose the anchor of each family and predict the other rows from it.  The anchor is the family's
 * smallest job (GPUs, then batch, then rows that are no test rows).  If that was measured several
 * times: the layout measured most often, and its median measurement.  Measurements of other jobs do
 * not influence the choice. */
void anchor_batch(struct batch *b, const struct constants *c);
/* Same for one row.  solved: stretch of each row as an anchor; 0: not solved yet. */
void anchor_row(struct batch *b, int row, const struct constants *c, double *solved);

#endif
