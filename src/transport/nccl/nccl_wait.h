/* nccl_wait.h - waits for NCCL and the GPU that always end.
 *
 * A wait polls in turn the event, the verdict of the watch, and the alarm of the other members; a
 * wait for a stream also polls the communicator's asynchronous error, which blocking communicators
 * have, too.  After an alarm the wait continues for 2 s (a quarter of --hang-after if that is
 * less), because a victim may know earlier than the rank that is the cause, and the cause's own
 * error is the one to report.  The wait yields at first and sleeps later (20 us to 1 ms): ranks may
 * outnumber cores, and the GPU is the clock.  If a GPU is silent for long, a query tests whether it
 * answers at all; if not, watch_symptom() reports it and this process does not use the GPU any
 * more.
 *
 * Calls that may block forever run in a thread each: on a blocking communicator, creating and
 * closing it, its first operation (NCCL connects peers then), registering memory and aborting
 * return when they are done, which may be never.  The caller waits as above.  Timed operations do
 * not use this, because a thread costs as much as the operation.  A call that does not return in
 * time is abandoned with its thread and the communicator (conn->inside).  NCCL allows no thread in
 * any of its calls while another one aborts (NCCL user guide, "Fault Tolerance"), so the abandoned
 * thread aborts the communicator if its call ever returns.  Memory and stream given to the call
 * must stay. */
#ifndef RG_NCCL_WAIT_H
#define RG_NCCL_WAIT_H

#include "transport/nccl/nccl_conn.h"

int nccl_wait_stream(struct nccl_conn *c, gpu_stream stream, struct nccl_step *s);
/* Wait without a communicator; the work is expected to take `expected` seconds. */
int nccl_wait_alone(gpu_stream stream, double expected, struct err *err);
/* NCCL returned `code`: fill in s and raise the alarm.  Returns -1. */
int nccl_wait_failed(struct nccl_conn *c, int code, struct nccl_step *s);
/* The same for a GPU fault, in s->err. */
int nccl_wait_fault(struct nccl_conn *c, struct nccl_step *s);
/* Returns -1 with a message if this process's GPU has been found dead. */
int nccl_wait_gpu(int rank, struct err *err);
double nccl_wait_limit(void);
/* Name of endpoint id `rank` of this process: "rank 3 (host n1, GPU 0000:1b:00.0)". */
const char *nccl_wait_who(int rank);

/* call(arg) returns an enum nccl_result.  arg is copied, because the thread may outlive the
 * caller's wait, and copied back when it is done. */
struct nccl_call {
    const char *what; /* "ncclCommInitRankConfig" */
    int (*call)(void *arg);
    void *arg;
    size_t bytes;
    /* Communicator to abort if an abandoned call returns after all; may be NULL. */
    nccl_comm (*late)(void *arg);
};

/* Returns 0 if the call returned ncclSuccess; else -1 with *s, and the alarm is raised. */
int nccl_wait_call(struct nccl_conn *c, const struct nccl_call *call, double limit,
                   struct nccl_step *s);
/* Call ncclCommAbort, with a limit of 5 s. */
void nccl_wait_abort(nccl_comm comm);
/* Number of abandoned calls that have not returned.  If there are any, the process must not unload
 * the library under them and ends by _exit(). */
int nccl_wait_left(void);

#endif
