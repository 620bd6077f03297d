/* op.h - table of operations: collectives and pair probes.
 *
 * Sizes are nccl-tests' S: the largest buffer that one rank holds (all_gather: everything it
 * receives; reduce_scatter and all_to_all: everything it sends; others: the message).  algbw = S/t
 * and busbw = algbw * op_bus_factor(), as defined in nccl-tests doc/PERFORMANCE.md. */
#ifndef RG_OP_H
#define RG_OP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Links that the bytes cross; they decide cost and slowdown. */
enum op_links {
    OP_RING,     /* along a ring of the members, or a tree over it */
    OP_EXCHANGE, /* from each member to every other at once */
    OP_NEXT,     /* from each member to the next */
    OP_PAIR      /* two ranks; members[0] is the source and members[1] the destination */
};

/* Root, index 0 of the group: such a call may return before all ranks have entered it. */
enum op_root { OP_NO_ROOT, OP_FROM_ROOT, OP_TO_ROOT };

enum op_share {
    OP_WHOLE,  /* S circulates whole */
    OP_PARTS,  /* in parts, of which each rank has one: (n-1)/n of S per turn */
    OP_BLOCKS, /* likewise, and S consists of one equal block per rank */
};

/* Data flow (with OP_TO_ROOT only the root receives); verify.h has the pieces. */
enum op_flow {
    FLOW_GATHER,   /* my block to all ranks */
    FLOW_EXCHANGE, /* a separate block to each rank */
    FLOW_SCATTER,  /* my block of the sum to me */
    FLOW_SUM,      /* the whole sum to all ranks */
    FLOW_FIRST,    /* from index 0 to the others */
    FLOW_LEFT,     /* from my left neighbour; in a pair the other rank */
};

enum { OP_PAIR_WINDOW = 4 }; /* messages in flight; over MPI set by mpi_opts.h */

/* One row per operation with all its properties.  Its call in each transport is do_NAME() in
 * mpi_ops.c and nccl_ops.c, which do not compile without it.  Cells:
 *
 *   ID, name, alias      OP_ID; name here and elsewhere
 *   links root share flow   one word of each of the enums above
 *   turns     busbw = algbw * turns * (n-1)/n if S is in parts, * turns if it is whole
 *   messages  per direction in a sample; ping-pong: there and back
 *   asked     measured by default: operations of a training step
 *   program   of nccl-tests
 *   tuner     NCCL's word in a tuner's file; NULL: no choice, it consists of sends and receives
 *
 * pair_latency is half of the round trip of a ping-pong; pair_bw, one direction with several
 * messages in flight, and pair_bibw, both directions at once, are the time per message of one
 * direction. */
// clang-format off
#define OP_COLLECTIVES(ROW)                                                                        \
    ROW(ALL_GATHER,     all_gather,     "allgather",     RING,     NO_ROOT,   BLOCKS, GATHER,      \
        1, 1,  true,  "all_gather_perf",      "allgather")                                         \
    ROW(REDUCE_SCATTER, reduce_scatter, "reducescatter", RING,     NO_ROOT,   BLOCKS, SCATTER,     \
        1, 1,  true,  "reduce_scatter_perf",  "reducescatter")                                     \
    ROW(ALL_TO_ALL,     all_to_all,     "alltoall",      EXCHANGE, NO_ROOT,   BLOCKS, EXCHANGE,    \
        1, 1,  true,  "alltoall_perf",        NULL)                                                \
    ROW(ALL_REDUCE,     all_reduce,     "allreduce",     RING,     NO_ROOT,   PARTS,  SUM,         \
        2, 1,  true,  "all_reduce_perf",      "allreduce")                                         \
    ROW(BROADCAST,      broadcast,      "bcast",         RING,     FROM_ROOT, WHOLE,  FIRST,       \
        1, 1,  true,  "broadcast_perf",       "broadcast")                                         \
    ROW(REDUCE,         reduce,         "red",           RING,     TO_ROOT,   WHOLE,  SUM,         \
        1, 1,  false, "reduce_perf",          "reduce")                                            \
    ROW(SENDRECV,       sendrecv,       "send_recv",     NEXT,     NO_ROOT,   WHOLE,  LEFT,        \
        1, 1,  true,  "sendrecv_perf",        NULL)
#define OP_PAIRS(ROW)                                                                              \
    ROW(PAIR_LATENCY,   pair_latency,   "latency",       PAIR,     NO_ROOT,   WHOLE,  LEFT,        \
        1, 2,               true,  NULL,                   NULL)                                   \
    ROW(PAIR_BW,        pair_bw,        "bandwidth",     PAIR,     NO_ROOT,   WHOLE,  FIRST,       \
        1, OP_PAIR_WINDOW,  true,  NULL,                   NULL)                                   \
    ROW(PAIR_BIBW,      pair_bibw,      "bibandwidth",   PAIR,     NO_ROOT,   WHOLE,  LEFT,        \
        1, OP_PAIR_WINDOW,  true,  NULL,                   NULL)
// clang-format on
#define OP_TABLE(ROW) OP_COLLECTIVES(ROW) OP_PAIRS(ROW)

#define OP_ID(ID, ...) OP_##ID,
enum op { OP_TABLE(OP_ID) OP_COUNT };

struct op_row {
    const char *name, *alias; /* "all_gather" */
    enum op_links links;
    enum op_root root;
    enum op_share share;
    enum op_flow flow;
    int turns, messages;
    bool asked;
    const char *program, *tuner;
};
extern const struct op_row op_table[OP_COUNT];

/* "all_gather reduce_scatter ... ", and the same with commas: for help and errors. */
#define OP_WORD(ID, name, ...) #name " "
#define OP_COMMA(ID, name, ...) #name ","
#define OP_COLLECTIVE_WORDS OP_COLLECTIVES(OP_WORD)
#define OP_LIST OP_COLLECTIVES(OP_COMMA) "pair_latency,pair_bw,pair_bibw"

static inline const char *op_name(enum op op)
{
    return op_table[op].name;
}
int op_find(const char *name);            /* enum op, or -1; by name or alias */
void op_each(name_taker *take, void *to); /* names, in order */
static inline bool op_is_pair(enum op op)
{
    return op_table[op].links == OP_PAIR;
}
bool op_is_rooted(enum op op); /* broadcast, reduce: may return before all ranks have entered */
bool op_adds(enum op op);      /* a reduction */
double op_bus_factor(enum op op, int ranks); /* busbw / algbw */
/* Unit of S in elements: ranks for all_gather, reduce_scatter and all_to_all (each rank owns an
 * equal block), 1 for the others. */
int op_blocks(enum op op, int ranks);
/* Check that this number of ranks can run op with S = bytes in buffers of `capacity` bytes. */
int op_fits(enum op op, int ranks, size_t bytes, size_t capacity, struct err *err);

#endif
