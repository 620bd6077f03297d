/* world.h - processes of a campaign and their collective calls.
 *
 * Two implementations: world_solo (one process plays every endpoint: sim) and world_mpi
 * (world_mpi.c, a process per endpoint).  Waiting ranks sleep between polls, because with spinning
 * idle ranks an oversubscribed host would measure the scheduler.  If every rank has a core of its
 * own, waiting ranks yield for 0.2 ms first, because a sleep takes longer than most turns of a
 * campaign. */
#ifndef RG_WORLD_H
#define RG_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef void world_hear(void *ctx, int rank, const void *data, size_t len);

struct world {
    int rank, size; /* solo: 0 and 1 */
    bool solo;      /* this process plays every endpoint */
    void *ctx;
    /* Return the worst rc of all ranks, so that an error on one rank never hangs the others.  A
     * rank that succeeded itself gets "rank R failed: text" in err. */
    int (*agree)(struct world *w, int rc, struct err *err);
    /* Send rank 0's buffer, with its length, to all ranks.  Other ranks must free *data
     * (malloc). */
    int (*share)(struct world *w, void **data, size_t *len, struct err *err);
    /* Gather fixed-size records of all ranks on rank 0, where out has size*len bytes. */
    int (*gather)(struct world *w, const void *mine, size_t len, void *out, struct err *err);
    /* Send any number of bytes from any rank to rank 0, through a tree; a rank without data sends
     * an empty message.  On rank 0, hear() gets the data of each rank with data, valid until hear()
     * returns.  Followed by tell(), this is a single exchange: every rank waits once for all
     * ranks. */
    int (*report)(struct world *w, const void *mine, size_t len, world_hear *hear, void *ctx,
                  struct err *err);
    /* Send rank 0's value to every rank; it must be small enough to be buffered. */
    int (*tell)(struct world *w, void *value, size_t bytes, struct err *err);
    /* Collective over all ranks, without waiting: ready() reports that this rank is ready,
     * all_ready() returns whether all ranks were, and wait_ready() waits for that.  Once per turn,
     * in this order. */
    int (*ready)(struct world *w, struct err *err);
    bool (*all_ready)(struct world *w);
    int (*wait_ready)(struct world *w, struct err *err);
    /* Make a communicator of these ranks (collective over the members only).  leave() allows
     * NULL. */
    int (*enter)(struct world *w, const int *members, int n, int tag, void **comm, struct err *err);
    void (*leave)(struct world *w, void **comm);
    /* Replace n values by their maximum over the members of a communicator, on every member. */
    int (*maximum)(void *comm, double *v, int n, struct err *err);
    /* Send the value of index 0 to every member. */
    int (*lead)(void *comm, int *value, struct err *err);
    /* Seconds on a clock that all members share (offset-corrected); NAN if there is none. */
    double (*clock)(void *comm);
};

extern struct world world_solo;

/* Collective.  Give every rank's record to every rank: *all has size*len bytes.  The caller frees
 * *all, also after a failure. */
int world_trade(struct world *w, const void *mine, size_t len, void **all, struct err *err);
/* Collective.  Send any number of bytes from every rank to rank 0; at most 256 MiB each, the rest
 * is cut off.  On rank 0, part[r] holds the len[r] bytes of rank r and a '\0'; the caller frees
 * each.  On other ranks, part and len are not touched. */
int world_collect(struct world *w, const void *mine, size_t bytes, char **part, size_t *len,
                  struct err *err);

#endif
