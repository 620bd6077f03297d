/* world.h - the processes of a campaign and how they act together.
 *
 * Two implementations: world_solo (one process plays every endpoint: sim) and world_mpi
 * (world_mpi.c, one process an endpoint).  Waiting ranks sleep between polls: with idle ranks
 * spinning an oversubscribed host measures the scheduler.  Where every rank has a core of its own
 * they yield for 0.2 ms first, because a sleep takes longer than most turns of a campaign. */
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
    /* The worst rc of all ranks, so that one error never hangs the others; a rank that itself
     * succeeded gets "rank R failed: text" in err. */
    int (*agree)(struct world *w, int rc, struct err *err);
    /* Rank 0's buffer to everybody; *data is malloc'ed on the others (free it), len from rank 0. */
    int (*share)(struct world *w, void **data, size_t *len, struct err *err);
    /* Fixed-size records of every rank to rank 0: out has size*len bytes there. */
    int (*gather)(struct world *w, const void *mine, size_t len, void *out, struct err *err);
    /* Bytes of any number from any rank to rank 0, where hear() gets those of each rank that has some
     * (they stay until it returns), through a tree: a rank that has none sends an empty message.
     * With tell() behind it this is one exchange: everybody waits for everybody once. */
    int (*report)(struct world *w, const void *mine, size_t len, world_hear *hear, void *ctx,
                  struct err *err);
    /* Rank 0's value of so many bytes, small enough to be buffered, to every rank. */
    int (*tell)(struct world *w, void *value, size_t bytes, struct err *err);
    /* Collective over all ranks, and nobody waits: ready() says that this rank is, all_ready()
     * whether everybody was, and wait_ready() waits for that.  Once a turn, in this order. */
    int (*ready)(struct world *w, struct err *err);
    bool (*all_ready)(struct world *w);
    int (*wait_ready)(struct world *w, struct err *err);
    /* A communicator of these ranks (collective over the members only); NULL-safe release. */
    int (*enter)(struct world *w, const int *members, int n, int tag, void **comm, struct err *err);
    void (*leave)(struct world *w, void **comm);
    /* Inside a communicator, over n values each: the maximum over its members, on every member. */
    int (*maximum)(void *comm, double *v, int n, struct err *err);
    /* index 0's value to every member. */
    int (*lead)(void *comm, int *value, struct err *err);
    /* Seconds on a clock that all members share (offset-corrected), NAN if there is none. */
    double (*clock)(void *comm);
};

extern struct world world_solo;

/* Collective.  Every rank's record to every rank: *all has size*len bytes; the caller frees it,
 * also after a failure. */
int world_trade(struct world *w, const void *mine, size_t len, void **all, struct err *err);
/* Collective.  Bytes of any number from every rank to rank 0 (at most 256 MiB of each; what is more
 * is left out): there part[r] are rank r's, len[r] of them and a '\0' behind, the caller frees
 * each. Elsewhere they are not touched. */
int world_collect(struct world *w, const void *mine, size_t bytes, char **part, size_t *len,
                  struct err *err);

#endif
