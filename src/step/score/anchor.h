/* anchor.h - one measured step fixes a recipe: how much longer compute takes than the constants
 * say.
 *
 * What a data sheet and global constants leave open is mostly software: kernels, clocks, launch
 * gaps.  They stretch the compute of a (model, GPU, dtype, stack release) alike, whatever the
 * layout and scale, while messages are priced from the matrix.  So the one unknown is solved such
 * that the prediction of the anchor equals its measurement. */
#ifndef RG_ANCHOR_H
#define RG_ANCHOR_H

#include "base/err.h"
#include "step/job.h"
#include "step/score/batch.h"

/* A measured step, what was predicted for it, and what follows. */
struct anchor {
    char *name;                  /* "a.json", "row small of steps.tsv" */
    char *model, *gpu, *release; /* gpu NULL: a machine whose compute rate was measured */
    struct recipe recipe;
    double measured, predicted; /* s; predicted: without it */
    double stretch;
};

/* text: a file of anchor_save(), or TABLE:ID, a row of a table as batch.h reads them.  Solved with
 * the constants of the question it is for.  EXIT_UNJUDGED when compute cannot explain it.
 * anchor_free() also after an error. */
int anchor_open(struct anchor *a, const char *text, const struct constants *c, struct err *err);
void anchor_free(struct anchor *a);
/* {"format": "railgauge-anchor", "seconds": 13.2, "release": "...", "job": {KEY: VALUE}}: what was
 * asked, with the keys of job.h, and what was measured.  release NULL: not stated. */
int anchor_save(const struct job_opts *o, const struct job *j, double seconds, const char *release,
                const char *path, struct err *err);

/* Sets stretch and doubt of q.  Another GPU: EXIT_UNJUDGED.  Another model, dtype, stack, kind of
 * training or release: doubt. */
int anchor_apply(const struct anchor *a, struct question *q, const char *release, struct err *err);
/* What the anchor changed, as notes of p: `without` is what p was without it, s. */
void anchor_notes(struct prediction *p, const struct anchor *a, const struct question *q,
                  const char *release, double without);

/* --- rows of a table as anchors of each other --- */

/* Chooses each family's anchor and predicts the others from it: its smallest job (GPUs, then batch,
 * then rows that are no test rows); where that was measured several times the layout that was
 * measured most often, and of its measurements the middle one.  What was measured of other jobs
 * takes no part in the choice. */
void anchor_batch(struct batch *b, const struct constants *c);
/* One of them; solved: of each row as an anchor, 0: not yet. */
void anchor_row(struct batch *b, int row, const struct constants *c, double *solved);

#endif
