/* mpi_meet_impl.h - the exchange of all MPI ranks once per turn, and waiting for it. */
#ifndef RG_MPI_MEET_H
#define RG_MPI_MEET_H

#include <mpi.h>
#include <stdbool.h>

#include "watch/world.h"

enum { MEET_FANOUT = 16 }; /* branches of the exchange tree */

/* First member of the ctx of a struct world over MPI. */
struct mpi_meet {
    MPI_Comm comm;     /* owned by the caller */
    bool spins;        /* every rank of this host has a core */
    MPI_Request ready; /* MPI_REQUEST_NULL: nothing to wait for */
    char *report;      /* reports of this rank and of ranks below it in the tree */
    int reported, room;
    int children; /* number of children in the tree */
    /* A sleeping rank is woken by the sender if both are on one host: its bell is a futex in shared
     * memory.  NULL: no bells; sleeping ranks poll at intervals. */
    unsigned *bell; /* bells of all ranks of this host, by rank on the host */
    int own;        /* index of this rank's bell */
    /* bells of the neighbours in the tree; MPI_UNDEFINED: on another host */
    int above, below[MEET_FANOUT];
    MPI_Win bells; /* window that holds the bells */
};

void mpi_meet_open(struct mpi_meet *m, MPI_Comm comm); /* collective */
void mpi_meet_close(struct mpi_meet *m);

/* Sleep, as described in world.h, until a request is done or the watch has a verdict.  Returns an
 * MPI error code. */
int mpi_meet_wait(const struct mpi_meet *m, MPI_Request *request);
/* Wait for a request if the call that started it succeeded (code). */
static inline int mpi_meet_asleep(const struct mpi_meet *m, int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? mpi_meet_wait(m, request) : code;
}

/* Functions for struct world. */
int mpi_meet_report(struct world *w, const void *mine, size_t len, world_hear *hear, void *ctx,
                    struct err *err);
int mpi_meet_tell(struct world *w, void *value, size_t bytes, struct err *err);
int mpi_meet_ready(struct world *w, struct err *err);
bool mpi_meet_all_ready(struct world *w);
int mpi_meet_wait_ready(struct world *w, struct err *err);

#endif
