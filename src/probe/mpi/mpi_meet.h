/* mpi_meet.h - how all ranks of a world over MPI meet once a turn, and how they wait for it. */
#ifndef RG_MPI_MEET_H
#define RG_MPI_MEET_H

#include <mpi.h>
#include <stdbool.h>

#include "probe/world.h"

enum { MEET_FANOUT = 16 }; /* of the tree of an exchange */

/* What struct world of such a world has first in its ctx. */
struct mpi_meet {
    MPI_Comm comm;     /* the caller's */
    bool spins;        /* every rank of this host has a core */
    MPI_Request ready; /* MPI_REQUEST_NULL: nothing to wait for */
    char *report;      /* of this rank and those below it in the tree */
    int reported, room;
    int children; /* in the tree */
    /* A rank that sleeps is woken by the one that sends to it, where both are on one host: its bell
     * is a futex in shared memory.  NULL: nobody rings, and sleeping ranks look now and then. */
    unsigned *bell; /* of all ranks of this host, by their rank among themselves */
    int own;        /* which of them is this rank's */
    int above,
        below[MEET_FANOUT]; /* those of its neighbours in the tree; MPI_UNDEFINED: elsewhere */
    MPI_Win bells;          /* what holds them */
};

void mpi_meet_open(struct mpi_meet *m, MPI_Comm comm); /* collective */
void mpi_meet_close(struct mpi_meet *m);

/* Asleep, as world.h says, until a request is done or the watch has a verdict; an MPI error code. */
int mpi_meet_wait(const struct mpi_meet *m, MPI_Request *request);
/* A call that begins something, and then its end. */
static inline int mpi_meet_asleep(const struct mpi_meet *m, int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? mpi_meet_wait(m, request) : code;
}

/* Members of struct world. */
int mpi_meet_report(struct world *w, const void *mine, size_t len, world_hear *hear, void *ctx,
                    struct err *err);
int mpi_meet_tell(struct world *w, void *value, size_t bytes, struct err *err);
int mpi_meet_ready(struct world *w, struct err *err);
bool mpi_meet_all_ready(struct world *w);
int mpi_meet_wait_ready(struct world *w, struct err *err);

#endif
