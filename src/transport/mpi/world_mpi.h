/* world_mpi.h - the world with one process per endpoint, and functions that it shares with the MPI
 * transport.
 *
 * No MPI type appears here: a communicator is a `void *` that points to an MPI_Comm, as returned by
 * enter() of struct world and held in group->comm. */
#ifndef RG_WORLD_MPI_H
#define RG_WORLD_MPI_H

#include <stdint.h>

#include "base/err.h"
#include "topo/topo.h"
#include "watch/world.h"

/* Fill in w over a duplicate of MPI_COMM_WORLD; the caller initialises MPI.  Collective. */
int world_mpi_open(struct world *w, struct err *err);
void world_mpi_close(struct world *w); /* collective; before MPI_Finalize; NULL is allowed */

/* Agree among the members of a communicator: -1 on all of them if rc is not 0 on any, with the err
 * of the lowest such member.  The call spins, so it is for working members; idle ranks use
 * agree(). */
int world_mpi_together(void *comm, int rc, struct err *err);

/* Exchange `len` bytes of every member: all has size * len bytes, in member order. */
int world_mpi_trade(void *comm, const void *mine, size_t len, void *all, struct err *err);

/* Send n samples of member `from` to every member. */
int world_mpi_follow(void *comm, int from, double *sec, int n, struct err *err);

/* Seconds on the clock that the members of a communicator of enter() share. */
double world_mpi_clock(void *comm);
/* Hash of boot id and time namespace, equal on ranks that share CLOCK_MONOTONIC. */
uint64_t world_mpi_clock_id(void);

/* Set the message "what: text of the MPI error" and return -1; return 0 for MPI_SUCCESS. */
int world_mpi_error(int code, const char *what, struct err *err);

/* --- topology of the ranks; collective --- */

/* Gather every rank's part on rank 0.  root: a recorded machine, or NULL.  If a GPU is open, it is
 * this rank's endpoint. */
int world_mpi_topo_gather(struct world *w, struct topo *t, const char *root, bool share_gpu,
                          struct err *err);
/* The same, or read the topology from path unless NULL.  Other ranks only learn the GPUs of the
 * endpoints. */
int world_mpi_topo(struct world *w, struct topo *t, const char *path, bool share_gpu,
                   struct err *err);
/* Try FABRIC handles if the endpoints are GPUs and there is more than one rank.  If a rank lacks
 * its own GPU, the trial is skipped without an error.  Rank 0's topology keeps the result. */
void world_mpi_topo_try(struct world *w, struct topo *t, bool share_gpu);

/* --- alarms: members that wait for something outside MPI learn that one of them has given up ---
 *
 * A member that gives up raises the alarm and proceeds to the next common MPI call.  The others see
 * the alarm while they wait, give up too, and reach the same call, in which all members report if
 * they raised it.  Afterwards every member receives the alarm messages of the others, one from each
 * that raised it.
 *
 * The alarm tells whether its sender is the cause or a victim. */
enum world_alarm { ALARM_NONE, ALARM_VICTIM, ALARM_CAUSE };

/* Returns 0, or -1 if MPI itself failed. */
int world_mpi_alarm_raise(void *comm, enum world_alarm what);
enum world_alarm world_mpi_alarm_heard(void *comm); /* cause, if several were raised */
/* Receive the alarms; raised[i] is that of member i.  Not collective: the messages are there or on
 * their way. */
int world_mpi_alarm_take(void *comm, const enum world_alarm *raised);

#endif
