/* world_mpi.h - the world of one process an endpoint, and what the MPI transport shares with it.
 *
 * No MPI type appears here: a communicator is a `void *` that points to an MPI_Comm, which is what
 * enter() of struct world hands out and what group->comm holds. */
#ifndef RG_WORLD_MPI_H
#define RG_WORLD_MPI_H

#include "base/err.h"
#include "probe/world.h"

/* Fill in w over a duplicate of MPI_COMM_WORLD; MPI is initialised by the caller.  Collective. */
int world_mpi_open(struct world *w, struct err *err);
void world_mpi_close(struct world *w); /* collective; before MPI_Finalize; NULL is fine */

/* Members of a communicator leave together: -1 on all of them when rc is not 0 on any, with the err
 * of the lowest such member.  It spins: for members that are at work, not for idle ranks (they use
 * agree). */
int world_mpi_together(void *comm, int rc, struct err *err);

/* Every member's `len` bytes to every member: all has size * len bytes, in the members' order. */
int world_mpi_trade(void *comm, const void *mine, size_t len, void *all, struct err *err);

/* Seconds on the clock that the members of a communicator of enter() share. */
double world_mpi_clock(void *comm);

/* "what: the text of the MPI error"; returns -1.  0 when code is MPI_SUCCESS. */
int world_mpi_error(int code, const char *what, struct err *err);

#endif
