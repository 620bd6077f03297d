/* mpi_clock.h - one clock for the members of a communicator: by how much is mine off?
 *
 * Seconds of CLOCK_MONOTONIC (log_now) plus *offset are the clock of index 0.  Ranks under one
 * kernel share CLOCK_MONOTONIC and get exactly 0; others ask by pings and keep the one of the least
 * round trip (Cristian, Distributed Computing 3, 1989), whose error is at most half of that round
 * trip, down a binomial tree: n members take log2 n steps.  Clocks drift apart by some 10 us a
 * second: ask again before each use that needs better. */
#ifndef RG_MPI_CLOCK_H
#define RG_MPI_CLOCK_H

#include <mpi.h>
#include <stdint.h>

uint64_t
mpi_clock_id(void); /* equal on ranks that share CLOCK_MONOTONIC: boot id and time namespace */
int mpi_clock_offset(MPI_Comm comm, uint64_t id,
                     double *offset); /* collective; an MPI error code */

#endif
