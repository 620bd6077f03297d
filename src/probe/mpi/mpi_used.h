/* mpi_used.h - what the ranks read back of MPI (mpi_readback.h) as one fact of the machine, and whether
 * it is what was asked for.
 *
 * A part is a rank's JSON: pml, mtl, provider; sockets [local, remote, interface]; segments; ucx;
 * devices.  Two ranks are connected by TCP where one's local end is the other's remote one and the
 * other way round; of a segment of shared memory that several ranks have mapped, or of one rank's
 * own and another's, it is used within hosts.
 *
 * Asked are variables of rank 0's environment, which is where mpirun's --mca and -x end: a list of
 * names, "^" before it: all but these. */
#ifndef RG_MPI_USED_H
#define RG_MPI_USED_H

#include "base/err.h"
#include "topo/topo.h"

/* Into t->mpi.  EXIT_CONFIG with what was asked and what was used. */
int mpi_used(struct topo *t, char *const *part, int ranks, struct err *err);

#endif
