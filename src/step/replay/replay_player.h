/* replay_player.h - one rank's part in a replay: groups and buffers of its messages, the side
 * stream, and its list of actions, played once a step.  For replay_mpi.c. */
#ifndef RG_REPLAY_PLAYER_H
#define RG_REPLAY_PLAYER_H

#include "step/replay/replay_mpi.h"
#include "step/replay/replay_side.h"

enum { PLAYER_RECEIVES = 4 }; /* between stages, posted ahead of their use, in its order */

struct player {
    const struct replay_run *run;
    struct world *world;
    int rank; /* of the job; -1: this process looks on */
    struct replay_plan plan;
    struct lane lane[TRAFFIC_MAX];
    struct side side;
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
int replay_world_rank(const struct replay_run *run, int rank);

/* Collective over the job's ranks; player_close() also after an error, and where rank is -1. */
int player_open(struct player *p, struct err *err);
/* One step, into *r, which is zero; an MPI code. */
int player_play(struct player *p, struct replay_record *r);
void player_close(struct player *p);

#endif
