/* transport_copy.h - copies between the memories of two GPUs, without a communication library.
 *
 * Every member offers one piece of GPU memory (FABRIC handle: any host of the NVLink domain; else
 * CUDA IPC: this host), maps its neighbours', and copies by copy engine or kernel; CUDA events are
 * the clock.  What a number is:
 *   pair_bw       OP_PAIR_WINDOW copies follow each other in a stream of members[0] (write: into
 *                 the memory of members[1]) or of members[1] (read); time of one, on its GPU
 *   pair_bibw     both do that at the same time; time of one on the slower GPU
 *   sendrecv      the same in a ring
 *   pair_latency  8 bytes and less: a dependent load of members[0] from the memory of members[1],
 *                 that is a request there and its answer back (one thread follows a chain through 2
 *                 MiB, which the caches of the peer hold); larger: one copy from its start to its
 *                 end, that is a message of that size with the engine's start-up.  A
 *                 program without kernels copies all sizes, and its provenance says so
 * Where two members share a GPU the copy stays inside of it, and the provenance says so. */
#ifndef RG_TRANSPORT_COPY_H
#define RG_TRANSPORT_COPY_H

#include "kernels/gpu.h"
#include "probe/gpu/gpu_opts.h"
#include "probe/transport.h"
#include "probe/world.h"
#include "topo/host/mnnvl.h"

/* --- fabric_handle.c --- */
/* What trying found out on one rank; 1 works, 0 fails, -1 not tried. */
struct fabric_handle {
    int allocate, export, import;
    int kernels; /* are there in this program and on this GPU */
    char host[64], why[96];
};
/* Collective, with every rank's GPU open: memory with a FABRIC handle on each, imported by the next
 * rank, and a word of it read back there.  each: of every rank, on every rank; the caller frees. */
int fabric_handle_try(struct world *w, struct fabric_handle **each, struct err *err);
/* By host of the topology, the worst of its ranks; hosts without ranks are left out.  The caller
 * frees. */
struct mnnvl_trial *fabric_handle_trials(const struct topo *t, const struct fabric_handle *each,
                                         int *count);

#endif
