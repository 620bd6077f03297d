/* transport_copy_impl.h - copies between the memories of two GPUs, without a communication library.
 *
 * Every member exports a piece of GPU memory (FABRIC handle: to any host of the NVLink domain; else
 * CUDA IPC: within the host), maps the memory of its neighbours, and copies by copy engine or
 * kernel.  CUDA events are the clock.  Meaning of the times:
 *   pair_bw       OP_PAIR_WINDOW copies follow each other in a stream of members[0] (write: into
 *                 the memory of members[1]) or of members[1] (read); time per copy, on its GPU
 *   pair_bibw     both members do so at the same time; time per copy on the slower GPU
 *   sendrecv      the same in a ring
 *   pair_latency  8 bytes and less: a dependent load of members[0] from the memory of members[1],
 *                 that is a request there and the answer back (one thread follows a chain through 2
 *                 MiB, which fit the caches of the peer); larger: one copy from start to end, that
 *                 is a message of that size with the engine's start-up.  A program without kernels
 *                 copies all sizes, and its provenance says so
 * If two members share a GPU, the copy stays inside this GPU, and the provenance says so. */
#ifndef RG_TRANSPORT_COPY_H
#define RG_TRANSPORT_COPY_H

#include "kernels/gpu.h"
#include "measure/transports/gpu_opts.h"
#include "measure/transports/transport.h"
#include "topo/sources/host/mnnvl.h"
#include "watch/world.h"

/* --- fabric_handle.c --- */
/* Result of the trial on one rank; 1 works, 0 fails, -1 not tried. */
struct fabric_handle {
    int allocate, export, import;
    int kernels; /* kernels exist in this program and for this GPU */
    char host[64], why[96];
};
/* Collective, with every rank's GPU open.  Each rank makes memory with a FABRIC handle; the next
 * rank imports it and reads a word back.  each: results of all ranks, on every rank.  The caller
 * frees *each. */
int fabric_handle_try(struct world *w, struct fabric_handle **each, struct err *err);
/* Combine the results by host of the topology: the worst of its ranks.  Hosts without ranks are
 * left out.  The caller frees. */
struct mnnvl_trial *fabric_handle_trials(const struct topo *t, const struct fabric_handle *each,
                                         int *count);

#endif
