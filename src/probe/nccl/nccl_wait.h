/* nccl_wait.h - waiting for NCCL and the GPU: every wait has an end.
 *
 * A wait looks in turn at what it waits for, at the watch's verdict and at the other members'
 * alarm; one for a stream also at the communicator's asynchronous error, which a blocking
 * communicator has too.  Who hears the alarm goes on looking for 2 s (a quarter of --hang-after
 * when that is less): a victim may know before the rank that is the cause does, whose own error is
 * the one to tell.  It yields at first and sleeps later (20 us to 1 ms): ranks may outnumber cores,
 * and the clock is the GPU's.  A GPU that is silent for long is asked whether it answers at all; if
 * not, watch_symptom() says so and this process uses it no more.
 *
 * Calls that may block for good have a thread each: on a blocking communicator making and closing
 * it, its first operation (NCCL connects peers then), registering memory and aborting return when
 * they are done, which may be never.  The caller waits as above.  No operation that is timed goes
 * this way: a thread costs as much as the operation.  A call that does not come back in time is
 * left behind with its thread, and the communicator with it (conn->inside): NCCL wants no thread in
 * any of its calls while another one aborts (NCCL user guide, "Fault Tolerance"), so that it is the
 * thread left behind that aborts, should its call ever return.  The memory and the stream that the
 * call was given must stay. */
#ifndef RG_NCCL_WAIT_H
#define RG_NCCL_WAIT_H

#include "probe/nccl/nccl_conn.h"

int nccl_wait_stream(struct nccl_conn *c, gpu_stream stream, struct nccl_step *s);
/* Before there is a communicator; the work may rightly take `expected` seconds. */
int nccl_wait_alone(gpu_stream stream, double expected, struct err *err);
/* NCCL said `code`: fill in s and raise the alarm; -1. */
int nccl_wait_failed(struct nccl_conn *c, int code, struct nccl_step *s);
/* A fault of the GPU, in s->err: the same. */
int nccl_wait_fault(struct nccl_conn *c, struct nccl_step *s);
/* Has this process's GPU been found dead?  Then -1 with the words. */
int nccl_wait_gpu(int rank, struct err *err);
double nccl_wait_limit(void);
/* "rank 3 (host n1, GPU 0000:1b:00.0)" of this process, for endpoint id `rank`. */
const char *nccl_wait_who(int rank);

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
int nccl_wait_call(struct nccl_conn *c, const struct nccl_call *call, double limit,
                   struct nccl_step *s);
/* ncclCommAbort, which has 5 s. */
void nccl_wait_abort(nccl_comm comm);
/* How many calls were left behind and have not come back: with any, a process must not take the
 * library from under them and ends by _exit(). */
int nccl_wait_left(void);

#endif
