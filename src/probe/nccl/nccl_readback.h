/* nccl_readback.h - what NCCL really built, read back from the log that each rank lets it write.
 *
 * open() before libnccl is loaded (NCCL looks at its variables once): NCCL_DEBUG=INFO with the
 * subsystems INIT, GRAPH, NET, ENV into a file in the rank's memory (memfd_create(2), by its path
 * in /proc/self/fd: NCCL's debug.cc and xml.cc fopen() it), and on the first rank of each host the
 * topology and graph dumps.  Nothing is left of them, however the rank ends.  A user's
 * NCCL_DEBUG_FILE is respected: then there is nothing to read back, and that is said.  collect()
 * brings all ranks' profiles together on rank 0.  The log of what was chosen per size (TUNING)
 * costs a line a launch on rank 0: it is for looking, not for measuring. */
#ifndef RG_NCCL_READBACK_H
#define RG_NCCL_READBACK_H

#include "base/err.h"
#include "probe/point.h"
#include "probe/transport.h"
#include "probe/world.h"
#include "topo/nccl/nccl_profile.h"
#include "topo/topo.h"

struct nccl_readback;

/* Collective; tuning: choices by size too. */
int nccl_readback_open(struct nccl_readback **out, struct world *w, bool tuning, struct err *err);
/* What NCCL writes from here on is of this communicator, until the next call: connections that are
 * made with an operation do not say whose they are.  Costs a look at the log's length when it is
 * another one than before; before open() and after close() nothing. */
void nccl_readback_mark(const void *comm);
/* Collective, after communicators were made (closed or not).  On rank 0 *p is the merged profile
 * with its findings, for t; on the others it is empty.  nccl_profile_free(p) in any case. */
int nccl_readback_collect(struct nccl_readback *r, struct nccl_profile *p, const struct topo *t,
                          struct err *err);
/* Collective, for `discover --nccl`: one communicator of all ranks through tr (transport nccl),
 * all_reduce, all_gather and all_to_all of a few sizes, and what NCCL built for them into t->nccl
 * (rank 0). */
int nccl_readback_build(struct nccl_readback *r, const struct transport *tr, struct world *w,
                        struct topo *t, struct err *err);
/* Collective, after a campaign (points: rank 0's, NULL elsewhere): the profile into t->nccl, NCCL's
 * assumed bandwidth beside the measured, and the judgement on `path` (NULL: none asked). */
int nccl_readback_campaign(struct nccl_readback *r, struct world *w, struct topo *t,
                           const char *path, const struct points *points, struct err *err);
/* Removes the files and the variables that were not there before; NULL is fine. */
void nccl_readback_close(struct nccl_readback *r);

#endif
