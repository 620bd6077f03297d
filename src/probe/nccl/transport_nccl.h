/* transport_nccl.h - GPU memory through NCCL, and what is done before and after a campaign.
 *
 * Timing.  n samples back to back in one stream with a CUDA event between each two: sec[i] is from
 * event to event, so that neither launching nor the host's waiting counts as long as the GPU has
 * work.  What comes out is what n operations between two waits for the stream take, divided by n,
 * as in nccl-tests.
 *
 *   operations a sample   1; of short ones (below 50 us) as many as last so long, 16 at most, since
 *                         events between kernels take time themselves: a sample is their mean
 *   before the first      one that does not count, unless they are long: an idle stream starts as
 *                         late as its first launch
 *   --graph               up to 20 captured operations are replayed at a time
 *   place in the buffers  each operation has the next one; the buffers are as long as the largest
 *                         message (nccl_job_turn()); --same-buffer: all have one
 *
 * A host slower than the GPU counts, as it does there.  Everything is in stream order, broadcast
 * and reduce too (nccl-tests measures them so), and ranks that waited in one operation are ahead
 * in the next: sample.c chains all collectives of a transport whose `stream` is set.
 * Pair operations run on communicators of two ranks: ping-pong, or windows of OP_PAIR_WINDOW
 * messages in one group; members[0]'s times count, members[1] repeats them. */
#ifndef RG_TRANSPORT_NCCL_H
#define RG_TRANSPORT_NCCL_H

#include "probe/nccl/nccl_opts.h"
#include "probe/nccl/nccl_readback.h"
#include "probe/world.h"

/* Collective over w, before topology and transport: settings from elsewhere are said and NCCL is
 * asked about a hang, its log is read back from here on (*r; tuning: choices by size too; r NULL:
 * it is not), then the driver, this rank's GPU (gpu_binding.h), NCCL, its variables, and the
 * provenance. */
int transport_nccl_start(struct nccl_readback **r, bool tuning, struct world *w, struct err *err);
#endif
