/* nccl_readback.h - find out what NCCL really built, from the log that each rank lets it write.
 *
 * open() comes before libnccl is loaded, because NCCL reads its variables once.  It sets
 * NCCL_DEBUG=INFO with the subsystems INIT, GRAPH, NET, ENV into a file in the rank's memory
 * (memfd_create(2), by its path in /proc/self/fd: NCCL's debug.cc and xml.cc fopen() it), and on
 * the first rank of each host the topology and graph dumps.  No file remains, however the rank
 * ends.  A user's NCCL_DEBUG_FILE is respected; then nothing can be read back, which is reported.
 * collect() merges the profiles of all ranks on rank 0.  The log of choices per size (TUNING) costs
 * a line per launch on rank 0, so it is for inspection, not for measurements. */
#ifndef RG_NCCL_READBACK_H
#define RG_NCCL_READBACK_H

#include "base/err.h"
#include "measure/point.h"
#include "measure/transports/transport.h"
#include "topo/nccl_profile.h"
#include "topo/topo.h"
#include "watch/world.h"

struct nccl_readback;

/* Collective; tuning: also log choices by size. */
int nccl_readback_open(struct nccl_readback **out, struct world *w, bool tuning, struct err *err);
/* Attribute the following NCCL output to this communicator, until the next call, because
 * connections made by an operation do not name theirs.  Costs a check of the log's length if the
 * communicator changed; before open() and after close() nothing. */
void nccl_readback_mark(const void *comm);
/* Collective, after communicators were made (closed or not).  On rank 0 *p is the merged profile
 * with its findings, for t; on other ranks it is empty.  Call nccl_profile_free(p) in any case. */
int nccl_readback_collect(struct nccl_readback *r, struct nccl_profile *p, const struct topo *t,
                          struct err *err);
/* Collective, for `discover --nccl`: run all_reduce, all_gather and all_to_all of a few sizes on
 * one communicator of all ranks through tr (transport nccl).  Rank 0 stores what NCCL built in
 * t->nccl. */
int nccl_readback_build(struct nccl_readback *r, const struct transport *tr, struct world *w,
                        struct topo *t, struct err *err);
/* Collective, after a campaign (points: rank 0's, NULL elsewhere): store the profile in t->nccl,
 * with NCCL's assumed bandwidth beside the measured one, and check `path` (NULL: none
 * requested). */
int nccl_readback_campaign(struct nccl_readback *r, struct world *w, struct topo *t,
                           const char *path, const struct points *points, struct err *err);
/* Remove the files, and the variables that were not set before.  NULL is allowed. */
void nccl_readback_close(struct nccl_readback *r);

#endif
