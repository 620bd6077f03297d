/* replay_side.h - the side stream of a replayed step: a thread that runs data-parallel messages in
 * the order they were started, beside the compute and messages of the main one.
 *
 * Needs MPI_THREAD_MULTIPLE; for replay_mpi.c. */
#ifndef RG_REPLAY_SIDE_H
#define RG_REPLAY_SIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "probe/mpi/mpi_ops.h"
#include "step/traffic.h"

/* One message of the traffic on this rank: its group, buffers and the prepared call. */
struct lane {
    struct mpi_ctx ctx;
    struct mpi_job job;
    bool open;
};

/* What the side thread runs: messages in the order of their tickets. */
struct side {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int *message; /* [ticket - 1] */
    int started, done, code;
    bool leave;
    struct lane *lane;
    double run[TRAFFIC_MAX]; /* seconds inside each message's calls */
};

/* For at most `tickets` messages of lane[]; 0: no thread is made.  EXIT_CONFIG when this MPI has no
 * MPI_THREAD_MULTIPLE. */
int side_open(struct side *s, struct lane *lane, int tickets, struct err *err);
/* Start a message; the n-th start has ticket n. */
void side_start(struct side *s, int message);
/* Until that ticket's message is done; the first MPI error of any so far. */
int side_wait(struct side *s, int ticket);
void side_close(struct side *s);

#endif
