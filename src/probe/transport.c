/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/transport.h"

#include <string.h>

extern const struct transport transport_sim;
#ifdef HAVE_MPI
extern const struct transport transport_mpi;
extern const struct transport transport_nccl;
extern const struct transport transport_copy;
#endif

const struct transport *const transports[] = {
#ifdef HAVE_MPI
    &transport_mpi,  &transport_nccl,
    &transport_copy,
#endif
    &transport_sim,  NULL,
};

const struct transport *transport_find(const char *name)
{
    for (int i = 0; transports[i]; i++)
        if (!strcmp(transports[i]->name, name))
            return transports[i];
    return NULL;
}

int transport_limit(unsigned *ops, const char *name, struct err *err)
{
    const unsigned pairs = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW | 1u << OP_PAIR_BIBW;

    if (!name || strcmp(name, "copy"))
        return 0;
    *ops &= pairs | 1u << OP_SENDRECV;
    return *ops ? 0
                : err_usage(err, "transport copy has none of these operations: it copies between "
                                 "two GPUs (pair_latency, pair_bw, pair_bibw, sendrecv)");
}
