/* nccl_conn.h - NCCL communicators, kept in a pool and given up by all members together.
 *
 * A communicator is identified by its list of members.  Communicators are blocking, as in
 * nccl-tests and PyTorch: the call of an operation returns when the operation is in the stream.  (A
 * nonblocking communicator starts a thread for each operation or group, src/group.cc:
 * ncclGroupEndInternal, and must be polled until that thread is done, which takes as long as a
 * small operation.)  Waits are for the stream, with a limit (nccl_wait.h); calls that block for
 * long run in a thread of nccl_wait.h; a timed operation whose call does not return is ended by the
 * watch.  After a step the members agree on the result (nccl_conn_agree).  If the step failed on
 * any member, all drop the communicator and get the error nearest to the cause: a member's own
 * error before a "remote" error before a timeout.
 *
 * A communicator of two can also be a part of that of all ranks (ncclCommSplit: one call makes all
 * pairs of a round), or a pair can use the communicator of all ranks itself; nccl_pairs_impl.h chooses.
 * A pair that fails on the communicator of all ranks ends that communicator, and is tried once more
 * on an own one.
 *
 * Cost of connecting: nccl_cost.h. */
#ifndef RG_NCCL_CONN_H
#define RG_NCCL_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "kernels/nccl_api.h"
#include "measure/transports/transport.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_cost.h"
#include "watch/world.h"

/* Result of a step on one member; later values are nearer to the cause. */
enum nccl_blame {
    NCCL_FINE,
    NCCL_LEFT,    /* gave up because another member did */
    NCCL_LATE,    /* timeout, or the watch had a verdict */
    NCCL_VICTIM,  /* ncclRemoteError */
    NCCL_REFUSED, /* ncclInvalidUsage, ncclInvalidArgument: the same call would be refused again */
    NCCL_CAUSE
};

struct nccl_step {
    enum nccl_blame blame;
    enum world_alarm raised;
    double sec;     /* duration on this member, s */
    struct err err; /* set unless fine */
};

struct nccl_conn {
    nccl_comm comm;
    void *shared; /* group->comm of the current session */
    int *member;
    int size, self;
    enum nccl_way way; /* NCCL_SHARED: comm is that of all ranks, where ranks are endpoint ids */
    bool worked;       /* an operation was completed: the peers are connected */
    bool inside;       /* an NCCL call did not return (nccl_wait_call()) */
    int row;           /* row in the table of costs; -1: not the first member */
    unsigned long long turn;
    struct nccl_conn *next;
};

/* Get the members' communicator from the pool, if all members still have it, or make a new one.
 * shared: use the communicator of all ranks, if it exists.  Collective over g->comm; succeeds or
 * fails on all members.  If a communicator was lost for good, none is made again for these members;
 * the reason is the error. */
int nccl_conn_get(struct nccl_conn **out, const struct group *g, bool shared, struct err *err);
/* Collective over w: make the communicator of all ranks, which stays until it is lost. */
int nccl_conn_everyone(struct world *w, struct err *err);
/* Collective over w: make the communicators that this rank's pair (NULL: no pair) and all other
 * pairs lack, by one split of the communicator of all ranks.  *longest: seconds of the call on the
 * slowest rank; 0: nothing was missing.  On failure no pair has one, and the communicator of all
 * ranks is lost. */
int nccl_conn_split(struct world *w, const struct group *mine, double *longest, struct err *err);
/* Called by each member: remove their communicator from the pool. */
void nccl_conn_close(const int *member, int size);
/* Abort and forget a communicator; a call that is still inside prevents the abort.  NULL is
 * allowed.  why unless NULL: lost for good. */
void nccl_conn_lose(struct nccl_conn *c, const struct err *why);
/* Record that NCCL refused an operation to these members, as it would refuse it for every size.  It
 * may still allow it to others: NVLS is for the ranks of one node, PAT for one rank per node.
 * Called by each member, once they agreed on it. */
void nccl_conn_deny(const struct nccl_conn *c, enum op op, const struct err *why);
/* Reason why these members cannot use this operation or, with OP_COUNT, any communicator; NULL:
 * allowed.  The same on all members. */
const struct err *nccl_conn_denied(const int *member, int size, int op);
/* Collective.  Returns 0 if the step succeeded on all members; else -1 on all of them with one
 * error and s->blame of the member that caused it, and each must lose the communicator.  longest,
 * slowest unless NULL: longest sec and its member. */
int nccl_conn_agree(struct nccl_conn *c, struct nccl_step *s, double *longest, int *slowest,
                    struct err *err);
/* Close the pool and forget what was given up or refused, so that everything is made anew after
 * algorithms or protocols changed.  Local. */
void nccl_conn_close_all(void);

/* Record the time of the first operation; called by every member. */
void nccl_conn_first(struct nccl_conn *c, enum op op, size_t bytes, double sec, int slowest);

/* Collective over w, at the end of a campaign: close the pool.  Rank 0 writes the table of costs to
 * `path` (TSV: a line per communicator) unless path is empty.  *words gets a sentence ("" if
 * nothing was connected); the caller frees. */
int nccl_conn_finish(struct world *w, const char *path, char **words, struct err *err);

#endif
