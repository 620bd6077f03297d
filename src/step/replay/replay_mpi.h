/* replay_mpi.h - run the action lists of replay.h over MPI and time them.
 *
 * The side stream is a thread of its own (MPI_THREAD_MULTIPLE), so that its messages make progress
 * while the main stream computes, with the calls that a campaign measures.  Compute is a sleep or
 * spin of fixed length; messages between stages move during it.  This header has no MPI types. */
#ifndef RG_REPLAY_MPI_H
#define RG_REPLAY_MPI_H

#include "step/replay/replay.h"
#include "watch/world.h"

struct replay_run {
    const struct replay_step *step;
    const int *order; /* rank -> world rank; NULL: rank i is world rank i */
    enum burn burn;
    int warmup, steps;
};

struct replay_result {
    double *step; /* seconds of the slowest rank, per step; owned */
    int steps;
    double sec;                  /* median of step */
    double compute;              /* seconds per step, on the rank with the largest value */
    double message[TRAFFIC_MAX]; /* waiting for each message, on the median rank */
    /* inside each message's calls, on either stream, on the median rank */
    double run[TRAFFIC_MAX];
    enum burn burn; /* never BURN_AUTO */
};

/* Results on rank 0. */
struct replay_outcome {
    struct job job;
    struct replay_case made;
    struct replay_result result;
};

/* Run a replay, collective over the world.  Rank 0 reads the files, predicts, checks that each
 * endpoint of the matrix is on the host of its rank (EXIT_CONFIG) and sends the plan to the others.
 * Call replay_world_free() even after an error. */
int replay_world(struct replay_outcome *out, struct replay_opts *o, struct world *w,
                 struct err *err);
void replay_world_free(struct replay_outcome *out);

#endif
