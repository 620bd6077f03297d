/* release.h - what a release of the training software is worth: a constant of its own.
 *
 * The same job on the same GPUs differs by up to three times between releases of one stack, and
 * most for models with routed experts.  "release.NAME" and, for models with routed experts,
 * "release.NAME.experts" say how much longer all compute takes than the other constants say.
 * Blanks of the name are dashes: "release.megatron-bridge-26.04".  A release without a constant
 * takes that of the version it belongs to (26.04.01: 26.04), else "release.default", the middle of
 * those of dense models, or 1 for models with routed experts. */
#ifndef RG_RELEASE_H
#define RG_RELEASE_H

#include "step/constants.h"
#include "step/model.h"
#include "step/rate.h"

/* name NULL: not stated.  1 where the compute rate was measured: its software was, too. */
double release_stretch(const struct rate *r, const struct constants *c, const char *name,
                       const struct model *m);

#endif
