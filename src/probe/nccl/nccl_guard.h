/* nccl_guard.h - a call of NCCL that may take long, in a thread of its own.
 *
 * On a blocking communicator these calls return when they are done, which may be never: making and
 * closing a communicator, its first operation (NCCL connects peers then), registering memory,
 * aborting.  Each runs in a thread with the GPU's context while the caller waits as nccl_wait.h
 * does.  No operation that is timed goes this way: a thread costs as much as the operation.
 *
 * A call that does not come back in time is left behind with its thread, and the communicator with
 * it (conn->inside): NCCL wants no thread in any of its calls while another one aborts (NCCL user
 * guide, "Fault Tolerance"), so that it is the thread left behind that aborts, should its call
 * ever return.  The memory and the stream that the call was given must stay. */
#ifndef RG_NCCL_GUARD_H
#define RG_NCCL_GUARD_H

#include "probe/nccl/nccl_conn.h"

/* call(arg) gives an enum nccl_result.  arg is copied, for the thread may outlive the caller's
 * patience, and copied back when it is done. */
struct nccl_call {
    const char *what; /* "ncclCommInitRankConfig" */
    int (*call)(void *arg);
    void *arg;
    size_t bytes;
    /* Whom to abort when a call that was left behind returns after all; may be NULL. */
    nccl_comm (*late)(void *arg);
};

/* 0: it is done and said ncclSuccess; else -1 with *s, and the alarm is raised. */
int nccl_guard(struct nccl_conn *c, const struct nccl_call *call, double limit,
               struct nccl_step *s);
/* ncclCommAbort, which has 5 s. */
void nccl_guard_abort(nccl_comm comm);
/* How many calls were left behind and have not come back: with any, a process must not take the
 * library from under them and ends by _exit(). */
int nccl_guard_left(void);

#endif
