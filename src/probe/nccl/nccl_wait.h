/* nccl_wait.h - waiting for NCCL and the GPU: every wait has an end.
 *
 * A wait looks in turn at what it waits for, at the watch's verdict and at the other members'
 * alarm; one for a stream also at the communicator's asynchronous error, which a blocking
 * communicator has too.  Who hears the alarm goes on looking for 2 s (a quarter of --hang-after
 * when that is less): a victim may know before the rank that is the cause does, whose own error is
 * the one to tell.  It yields at first and sleeps later (20 us to 1 ms): ranks may outnumber cores,
 * and the clock is the GPU's.  A GPU that is silent for long is asked whether it answers at all; if
 * not, watch_symptom() says so and this process uses it no more. */
#ifndef RG_NCCL_WAIT_H
#define RG_NCCL_WAIT_H

#include "probe/nccl/nccl_conn.h"

/* Until done(arg) says 1 (0: not yet, -1: it failed, and *s tells how); `what` is for the words of
 * a wait that was ended.  0, or -1 with *s. */
int nccl_wait_until(struct nccl_conn *c, const char *what,
                    int (*done)(struct nccl_conn *c, void *arg, struct nccl_step *s), void *arg,
                    double limit, struct nccl_step *s);
/* Is the communicator fine?  -1: its asynchronous error is in *s. */
int nccl_wait_state(struct nccl_conn *c, struct nccl_step *s);
int nccl_wait_stream(struct nccl_conn *c, gpu_stream stream, struct nccl_step *s);
/* Before there is a communicator; the work may rightly take `expected` seconds. */
int nccl_wait_alone(gpu_stream stream, double expected, struct err *err);
/* NCCL said `code`: fill in s and raise the alarm; -1. */
int nccl_wait_failed(struct nccl_conn *c, int code, struct nccl_step *s);
/* A fault of the GPU, in err: the same. */
int nccl_wait_fault(struct nccl_conn *c, const struct err *err, struct nccl_step *s);
/* Has this process's GPU been found dead?  Then -1 with the words. */
int nccl_wait_gpu(int rank, struct err *err);
double nccl_wait_limit(void);

#endif
