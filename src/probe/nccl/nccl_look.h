/* nccl_look.h - what NCCL builds and uses, for `discover --nccl` and for every campaign on
 * transport nccl. */
#ifndef RG_NCCL_LOOK_H
#define RG_NCCL_LOOK_H

#include "base/err.h"
#include "probe/nccl/nccl_readback.h"
#include "probe/point.h"
#include "probe/world.h"
#include "topo/topo.h"

/* Collective: one communicator of all ranks through transport nccl, all_reduce, all_gather and
 * all_to_all of a few sizes, and what NCCL built for them into t->nccl (rank 0). */
int nccl_look(struct nccl_readback *r, struct world *w, struct topo *t, struct err *err);

/* Collective, after a campaign (points: rank 0's, NULL elsewhere): the profile into t->nccl, NCCL's
 * assumed bandwidth beside the measured, and the judgement on `path` (NULL: none asked). */
int nccl_look_after(struct nccl_readback *r, struct world *w, struct topo *t, const char *path,
                    const struct points *points, struct err *err);

/* Settings that change NCCL behind the measurement's back, as warnings on rank 0. */
void nccl_look_strays(const struct world *w);

#endif
