/* replay_impl.h - part of one rank in a replay: groups and buffers of its messages, the side
 * stream, and its list of actions, played once per step.
 *
 * The side stream is a thread that runs data-parallel messages in the order they were started,
 * beside the compute and messages of the main stream.  It needs MPI_THREAD_MULTIPLE. */
#ifndef RG_REPLAY_IMPL_H
#define RG_REPLAY_IMPL_H

#include <pthread.h>
#include <stdbool.h>

#include "step/replay/replay.h"
#include "transport/mpi/mpi_ops.h"

/* Group, buffers and prepared call of one message on this rank. */
struct replay_lane {
    struct mpi_ctx ctx;
    struct mpi_job job;
    bool open;
};

/* State of the side thread, which runs messages in the order of their tickets. */
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

enum { PLAYER_RECEIVES = 4 }; /* receives between stages posted ahead, in the order of use */

struct replay_player {
    const struct replay_run *run;
    struct world *world;
    int rank; /* rank in the job; -1: this process only watches */
    struct replay_plan plan;
    struct replay_lane lane[TRAFFIC_MAX];
    struct replay_side side;
    MPI_Comm all; /* the job's ranks, by rank; MPI_COMM_NULL before player_open() */
    enum burn burn;
    double debt; /* seconds by which compute has run late so far */
    /* buffers of messages between stages: received, sent */
    unsigned char *buffer[PLAYER_RECEIVES + 1];
    MPI_Request receive[PLAYER_RECEIVES], *send;
    int posted, received, sends;
    int next_receive; /* index of the next receive action to post */
};

/* Times of a rank for one step, s. */
struct replay_record {
    double elapsed, compute, message[TRAFFIC_MAX], run[TRAFFIC_MAX];
};

/* Returns the world rank of a rank of the job. */
static inline int replay_world_rank(const struct replay_run *run, int rank)
{
    return run->order ? run->order[rank] : rank;
}

/* Open a player, collective over the job's ranks.  Call player_close() even after an error, and if
 * rank is -1. */
int player_open(struct replay_player *p, struct err *err);
/* Play one step into *r, which must be zero.  Returns an MPI code. */
int player_play(struct replay_player *p, struct replay_record *r);
void player_close(struct replay_player *p);

#endif
