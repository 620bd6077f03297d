/* world_mpi.h - the world of one process an endpoint, and what the MPI transport shares with it.
 *
 * No MPI type appears here: a communicator is a `void *` that points to an MPI_Comm, which is what
 * enter() of struct world hands out and what group->comm holds. */
#ifndef RG_WORLD_MPI_H
#define RG_WORLD_MPI_H

#include <stdint.h>

#include "base/err.h"
#include "probe/world.h"
#include "topo/topo.h"

/* Fill in w over a duplicate of MPI_COMM_WORLD; MPI is initialised by the caller.  Collective. */
int world_mpi_open(struct world *w, struct err *err);
void world_mpi_close(struct world *w); /* collective; before MPI_Finalize; NULL is fine */

/* Members of a communicator leave together: -1 on all of them when rc is not 0 on any, with the err
 * of the lowest such member.  It spins: for members that are at work, not for idle ranks (they use
 * agree). */
int world_mpi_together(void *comm, int rc, struct err *err);

/* Every member's `len` bytes to every member: all has size * len bytes, in the members' order. */
int world_mpi_trade(void *comm, const void *mine, size_t len, void *all, struct err *err);

/* n samples of member `from` to every member. */
int world_mpi_follow(void *comm, int from, double *sec, int n, struct err *err);

/* Seconds on the clock that the members of a communicator of enter() share. */
double world_mpi_clock(void *comm);
/* Equal on ranks that share CLOCK_MONOTONIC: a hash of boot id and time namespace. */
uint64_t world_mpi_clock_id(void);

/* "what: the text of the MPI error"; returns -1.  0 when code is MPI_SUCCESS. */
int world_mpi_error(int code, const char *what, struct err *err);

/* --- the topology of the ranks; collective --- */

/* Every rank's part, on rank 0; root: of a recorded machine, or NULL.  With a GPU open this rank's
 * endpoint is that one. */
int world_mpi_topo_gather(struct world *w, struct topo *t, const char *root, bool share_gpu,
                          struct err *err);
/* The same or, unless NULL, that of a file; the other ranks know the endpoints' GPUs. */
int world_mpi_topo(struct world *w, struct topo *t, const char *path, bool share_gpu,
                   struct err *err);
/* FABRIC handles are tried where the endpoints are GPUs and there is somebody to share with; a rank
 * without a GPU of its own ends that and nothing else.  Rank 0's topology keeps the result. */
void world_mpi_topo_try(struct world *w, struct topo *t, bool share_gpu);

/* --- members that wait for something outside MPI learn that one of them has given up ---
 *
 * Who gives up raises the alarm and goes to the members' next common call of MPI; the others hear
 * it while they wait, give up too, and come to the same call, in which all tell who raised it.
 * After it everybody takes the alarms in: each member's one message.
 *
 * What it says: the cause is with who raised it, or it is one that suffers. */
enum world_alarm { ALARM_NONE, ALARM_VICTIM, ALARM_CAUSE };

/* 0, or -1 when MPI itself failed. */
int world_mpi_alarm_raise(void *comm, enum world_alarm what);
enum world_alarm world_mpi_alarm_heard(void *comm); /* of several the cause */
/* raised[i]: what member i did.  Not collective: the messages are there or on their way. */
int world_mpi_alarm_take(void *comm, const enum world_alarm *raised);

#endif
