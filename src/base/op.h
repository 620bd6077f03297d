/* op.h - the table of operations: collectives and pair probes.
 *
 * Sizes are nccl-tests' S: the largest buffer that one rank holds (all_gather: what it receives in
 * total; reduce_scatter and all_to_all: what it sends in total; the rest: the message).  algbw =
 * S/t and busbw = algbw * op_bus_factor(), as nccl-tests doc/PERFORMANCE.md defines them. */
#ifndef RG_OP_H
#define RG_OP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum op {
    OP_ALL_GATHER,
    OP_REDUCE_SCATTER,
    OP_ALL_TO_ALL,
    OP_ALL_REDUCE,
    OP_BROADCAST, /* from index 0 of the group */
    OP_REDUCE,    /* to index 0 */
    OP_SENDRECV,  /* every rank sends to the next one of the group and receives from the previous */
    /* Two ranks; members[0] is the source and members[1] the destination. */
    OP_PAIR_LATENCY, /* ping-pong: half of the round trip */
    OP_PAIR_BW,      /* one direction, several messages in flight: time per message */
    OP_PAIR_BIBW,    /* both directions at once: time per message of one direction */
    OP_COUNT
};

enum { OP_PAIR_WINDOW = 4 }; /* ... so many; over MPI as mpi_opts.h says */

const char *op_name(enum op op); /* "all_gather" */
int op_find(const char *name);   /* enum op, or -1; accepts alltoall-like spellings too */
bool op_is_pair(enum op op);
bool op_is_rooted(enum op op); /* broadcast, reduce: done before everybody has begun */
double op_bus_factor(enum op op, int ranks); /* busbw / algbw */
/* The unit that S must be a multiple of, in elements: ranks for all_gather, reduce_scatter and
 * all_to_all (each rank owns an equal block), 1 for the others. */
int op_blocks(enum op op, int ranks);
/* Can `ranks` ranks do this with S = bytes in buffers of `capacity` bytes?  -1 with the reason. */
int op_fits(enum op op, int ranks, size_t bytes, size_t capacity, struct err *err);

#endif
