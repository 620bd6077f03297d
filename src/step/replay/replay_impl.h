/* replay_impl.h - one rank's part in a replay: groups and buffers of its messages, the side stream,
 * and its list of actions, played once a step.
 *
 * The side stream is a thread that runs data-parallel messages in the order they were started,
 * beside the compute and messages of the main one; it needs MPI_THREAD_MULTIPLE. */
#ifndef RG_REPLAY_IMPL_H
#define RG_REPLAY_IMPL_H

#include <pthread.h>
#include <stdbool.h>

#include "probe/mpi/mpi_ops.h"
#include "step/replay/replay_mpi.h"

/* One message of the traffic on this rank: its group, buffers and the prepared call. */
struct replay_lane {
    struct mpi_ctx ctx;
    struct mpi_job job;
    bool open;
};

/* What the side thread runs: messages in the order of their tickets. */
struct replay_side {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int *message; /* [ticket - 1] */
    int started, done, code;
    bool leave;
    struct replay_lane *lane;
    double run[TRAFFIC_MAX]; /* seconds inside each message's calls */
};

enum { PLAYER_RECEIVES = 4 }; /* between stages, posted ahead of their use, in its order */

struct replay_player {
    const struct replay_run *run;
    struct world *world;
    int rank; /* of the job; -1: this process looks on */
    struct replay_plan plan;
    struct replay_lane lane[TRAFFIC_MAX];
    struct replay_side side;
    MPI_Comm all; /* of the job's ranks, by rank; MPI_COMM_NULL before player_open() */
    enum burn burn;
    double debt;                                /* seconds that compute has taken too long so far */
    unsigned char *buffer[PLAYER_RECEIVES + 1]; /* of messages between stages: received, sent */
    MPI_Request receive[PLAYER_RECEIVES], *send;
    int posted, received, sends;
    int next_receive; /* action to be posted next */
};

/* What a rank tells of one step: seconds. */
struct replay_record {
    double elapsed, compute, message[TRAFFIC_MAX], run[TRAFFIC_MAX];
};

/* The world rank of a rank of the job. */
static inline int replay_world_rank(const struct replay_run *run, int rank)
{
    return run->order ? run->order[rank] : rank;
}

/* Collective over the job's ranks; player_close() also after an error, and where rank is -1. */
int player_open(struct replay_player *p, struct err *err);
/* One step, into *r, which is zero; an MPI code. */
int player_play(struct replay_player *p, struct replay_record *r);
void player_close(struct replay_player *p);

#endif
