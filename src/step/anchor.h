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

/* Where a solution is looked for, and outside of which it is not the software any more. */
#define ANCHOR_MIN 0.02
#define ANCHOR_MAX 50.0
#define ANCHOR_TRUST_MIN 0.3
#define ANCHOR_TRUST_MAX 3.0

/* seconds(ctx, stretch) grows with stretch (NAN: cannot be asked).  *stretch is such that it equals
 * `measured` within 1e-9 of it.  EXIT_UNJUDGED when the rest alone takes longer than `measured`, or
 * 50 times the compute is not enough. */
int anchor_solve(double *stretch, double (*seconds)(void *ctx, double stretch), void *ctx,
                 double measured, struct err *err);

#endif
