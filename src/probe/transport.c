/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/transport.h"

#include <string.h>

extern const struct transport transport_sim;
#ifdef HAVE_MPI
extern const struct transport transport_mpi;
#endif

const struct transport *const transports[] = {
#ifdef HAVE_MPI
    &transport_mpi,
#endif
    &transport_sim,
    NULL,
};

const struct transport *transport_find(const char *name)
{
    for (int i = 0; transports[i]; i++)
        if (!strcmp(transports[i]->name, name))
            return transports[i];
    return NULL;
}
