/* mpi_used_impl.h - combine the facts that ranks read back from MPI (mpi_readback.h), and compare them
 * with the user's settings.
 *
 * A part is the JSON of one rank: pml, mtl, provider; sockets [local, remote, interface]; segments;
 * ucx; devices.  Two ranks are connected by TCP if the local end of one is the remote end of the
 * other, and vice versa.  Shared memory is used within hosts if several ranks have mapped the same
 * segment.
 *
 * Settings are variables of rank 0's environment, where mpirun's --mca and -x end up: a list of
 * names, or "^" and a list for all but these. */
#ifndef RG_MPI_USED_H
#define RG_MPI_USED_H

#include "base/err.h"
#include "topo/topo.h"

/* Store the result in t->mpi.  EXIT_CONFIG with the setting and what was used. */
int mpi_used(struct topo *t, char *const *part, int ranks, struct err *err);

#endif
