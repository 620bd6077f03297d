/* nccl_conn.h - NCCL communicators: kept in a pool, given up together.
 *
 * A communicator is known by its list of members.  It is a blocking one, as in nccl-tests and
 * PyTorch: an operation's call returns when it is in the stream.  (A nonblocking one starts a
 * thread for each operation or group, src/group.cc: ncclGroupEndInternal, and wants to be asked
 * until that is done: as long as a small operation itself.)  Waiting is for the stream, with a
 * limit (nccl_wait.h); the calls that block for long have a thread there; a timed operation
 * whose call does not return is for the watch to end.  After a step the members agree how it went
 * (nccl_conn_agree); when it failed on any of them, all lose the communicator and get the words of
 * the one nearest to the cause: an error of its own before a "remote" one before one whose time was
 * up.
 *
 * A communicator of two can also be a part of that of all ranks (ncclCommSplit: one call makes all
 * pairs of a round), or a pair can do with that of all itself: nccl_pairs.h says which.  Who fails
 * on that of all ends it for himself, and is tried once more on one of his own.
 *
 * What connecting costs: nccl_cost.h. */
#ifndef RG_NCCL_CONN_H
#define RG_NCCL_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/op.h"
#include "kernels/nccl_api.h"
#include "probe/mpi/world_mpi.h"
#include "probe/nccl/nccl_cost.h"
#include "probe/transport.h"
#include "probe/world.h"

/* How a step went on one member, the nearest to the cause last. */
enum nccl_blame {
    NCCL_FINE,
    NCCL_LEFT,    /* gave up because another one did */
    NCCL_LATE,    /* its time was up, or a verdict was told */
    NCCL_VICTIM,  /* ncclRemoteError */
    NCCL_REFUSED, /* ncclInvalidUsage, ncclInvalidArgument: the same call would be refused again */
    NCCL_CAUSE
};

struct nccl_step {
    enum nccl_blame blame;
    enum world_alarm raised;
    double sec;     /* how long it took here */
    struct err err; /* unless fine */
};

struct nccl_conn {
    nccl_comm comm;
    void *shared; /* group->comm of the present session */
    int *member;
    int size, self;
    enum nccl_way way; /* NCCL_SHARED: comm is that of all, in which a rank is a member's number */
    bool worked;       /* an operation was done: its peers are connected */
    bool inside;       /* a call of NCCL with it did not come back (nccl_wait_call()) */
    int row;           /* of the table of costs; -1: not the first member */
    unsigned long long turn;
    struct nccl_conn *next;
};

/* The members' communicator from the pool, if all still have it, or a new one; shared: that of all
 * ranks where it is there.  Collective over g->comm; all members fail together.  Of members whose communicator was lost for a reason none is
 * made again: that reason is the error. */
int nccl_conn_get(struct nccl_conn **out, const struct group *g, bool shared, struct err *err);
/* Collective over w: the communicator of all ranks is there, and stays until it is lost. */
int nccl_conn_everyone(struct world *w, struct err *err);
/* Collective over w: this rank's pair (NULL: it has none) and all others that lack a communicator
 * get theirs by one split of that of all.  What the call took on the slowest rank; 0: none was
 * needed.  Where it fails none of them has one, and that of all is lost. */
int nccl_conn_split(struct world *w, const struct group *mine, double *longest, struct err *err);
/* By each member: take theirs out of the pool. */
void nccl_conn_close(const int *member, int size);
/* Abort it, unless a call is still in it, and forget it; NULL is fine.  why unless NULL: for good.
 */
void nccl_conn_lose(struct nccl_conn *c, const struct err *why);
/* What NCCL refused these members it refuses again, whatever the size; others it may allow: NVLS is
 * for the ranks of one node, PAT for one rank a node.  By each member, once they agreed on it. */
void nccl_conn_deny(const struct nccl_conn *c, enum op op, const struct err *why);
/* Why these members do not get this operation, or with OP_COUNT no communicator; NULL: they do.
 * The same on all of them. */
const struct err *nccl_conn_denied(const int *member, int size, int op);
/* Collective: 0 when the step went well on all members; else -1 on all of them, with one error and
 * s->blame of who caused it, and the communicator must be lost by each.  Unless NULL: the longest
 * sec and whose. */
int nccl_conn_agree(struct nccl_conn *c, struct nccl_step *s, double *longest, int *slowest,
                    struct err *err);
/* Close the pool and forget what was given up or refused, so that everything is made anew: after
 * other algorithms and protocols were chosen.  Local. */
void nccl_conn_close_all(void);

/* Remember what the first operation took; by every member. */
void nccl_conn_first(struct nccl_conn *c, enum op op, size_t bytes, double sec, int slowest);

/* Collective over w, at the end of a campaign: close the pool; rank 0 writes the table of costs to
 * `path` (TSV: a line a communicator) unless it is empty, and *words, which the caller frees, gets
 * a sentence ("" when nothing was connected). */
int nccl_conn_finish(struct world *w, const char *path, char **words, struct err *err);

#endif
