/* transport.h - something that can run an operation on a group and say how long it took.
 *
 * A transport knows nothing of warm-up, sample counts or output: measure.c decides those.  It owns
 * the clock (MPI_Wtime, CUDA events, a formula).  open(), run() and check() are collective over the
 * group: every member calls them in the same order. */
#ifndef RG_TRANSPORT_H
#define RG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/op.h"

/* The endpoints that run one operation together, in order (members[0] is the source of pair ops).
 */
struct group {
    const int *members; /* endpoint ids */
    int size;
    int self;   /* my index in members; sim plays every member and has 0 */
    void *comm; /* MPI_Comm * of these members, or what the sim's world hands out */
    /* What else runs at the same time; sim needs it to model contention, others ignore it. */
    const struct round *round;
    int index, epoch; /* of this group in round->group; the campaign's epoch */
};

struct transport { /* a fifth call must displace a line elsewhere */
    const char *name, *help;
    bool stream;  /* operations run back to back in a stream, broadcast and reduce too */
    bool threads; /* its library has threads of its own: MPI is told of them, and may take locks */
    int (*open)(void **ctx, const struct group *g, size_t max_bytes, struct err *err);
    int (*run)(void *ctx, enum op op, size_t bytes, int n, double *sec,
               struct err *err); /* sec[i]: this rank */
    int (*check)(void *ctx, enum op op, size_t bytes,
                 struct err *err); /* verify every received byte once */
    void (*close)(void *ctx);
};

/* NULL-terminated, the default first; each program has its own table (railgauge: sim only). */
extern const struct transport *const transports[];
const struct transport *transport_find(const char *name);
/* Take the operations that a transport has not out of the set `ops` (bits of enum op); EXIT_USAGE
 * when none is left. */
int transport_limit(unsigned *ops, const char *name, struct err *err);

#endif
