/* replay_mpi.h - runs the ranks' lists of replay.h over MPI and says how long they took.
 *
 * The side stream is a thread of its own (MPI_THREAD_MULTIPLE), so that its messages make progress
 * while the main stream computes, with the very calls that a campaign measures.  Compute is a sleep
 * or a spin of set length; between stages messages move while it lasts.  No MPI type appears here.
 */
#ifndef RG_REPLAY_MPI_H
#define RG_REPLAY_MPI_H

#include "probe/world.h"
#include "step/replay/replay.h"

struct replay_run {
    const struct replay_step *step;
    const int *order; /* rank -> world rank; NULL: rank i is world rank i */
    enum burn burn;
    int warmup, steps;
};

struct replay_result {
    double *step; /* of each step, the slowest rank's seconds; owned */
    int steps;
    double sec;                  /* their median */
    double compute;              /* seconds of a step, on the rank that has most */
    double message[TRAFFIC_MAX]; /* waiting for each message, on the rank in the middle */
    double run[TRAFFIC_MAX];     /* inside each message's calls, on either stream, likewise */
    enum burn burn;              /* never BURN_AUTO */
};

/* What rank 0 holds in the end. */
struct replay_outcome {
    struct job job;
    struct replay_case made;
    struct replay_result result;
};

/* Collective over the world.  Rank 0 reads the files, predicts, checks that each endpoint of the
 * matrix is the host of its rank (EXIT_CONFIG) and tells the others what to do.
 * replay_world_free() also after an error. */
int replay_world(struct replay_outcome *out, struct replay_opts *o, struct world *w,
                 struct err *err);
void replay_world_free(struct replay_outcome *out);

#endif
