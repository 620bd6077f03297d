/* transport_nccl.h - GPU memory through NCCL, and the work before and after a campaign.
 *
 * Timing.  n samples run back to back in one stream with a CUDA event between each two: sec[i] is
 * the time from event to event, so that neither launches nor waits of the host count while the GPU
 * has work.  The result is the time of n operations between two waits for the stream, divided by n,
 * as in nccl-tests.
 *
 *   operations a sample   1; for operations below 50 us as many as last that long, at most 16,
 *                         because events between kernels take time themselves; the sample is the
 *                         mean
 *   before the first      one operation that does not count, unless operations are long, because an
 *                         idle stream starts as late as its first launch
 *   --graph               up to 20 captured operations are replayed at a time
 *   place in the buffers  each operation uses the next one; the buffers are as long as the largest
 *                         message (nccl_job_turn()); --same-buffer: always the same place
 *
 * A host slower than the GPU shows in the result, as in nccl-tests.  All operations are in stream
 * order, also broadcast and reduce (nccl-tests measures them so), and ranks that waited in one
 * operation are ahead in the next: sample.c chains all collectives of a transport whose `stream` is
 * set.  Pair operations run on communicators of two ranks: ping-pong, or windows of OP_PAIR_WINDOW
 * messages in one group; the times of members[0] count, members[1] copies them. */
#ifndef RG_TRANSPORT_NCCL_H
#define RG_TRANSPORT_NCCL_H

#include "measure/transports/nccl_opts.h"
#include "transport/nccl/nccl_readback.h"
#include "watch/world.h"

/* Collective over w, before topology and transport: warn of external settings and register NCCL's
 * report for hangs; open the readback of the log (*r; tuning: also choices by size; r NULL: no
 * readback); then load the driver, bind this rank's GPU (gpu_binding.h), set NCCL's variables, load
 * NCCL, and record the provenance. */
int transport_nccl_start(struct nccl_readback **r, bool tuning, struct world *w, struct err *err);
#endif
