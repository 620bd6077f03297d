/* flow.h - who gets what from whom: which pieces a rank fills in before an operation is checked,
 * and which must have arrived afterwards.  The patterns are those of verify.h. */
#ifndef RG_FLOW_H
#define RG_FLOW_H

#include <stdbool.h>
#include <stddef.h>

enum flow {
    FLOW_GATHER,   /* my block to everybody */
    FLOW_EXCHANGE, /* a block of its own to each */
    FLOW_SCATTER,  /* my block of the sum to me */
    FLOW_SUM,      /* the whole sum to everybody */
    FLOW_ROOT,     /* the whole sum to index 0 */
    FLOW_FIRST,    /* from index 0 to the others */
    FLOW_LEFT,     /* from my left neighbour; in a pair that is the other one */
};

/* One operation of one member. */
struct moved {
    enum flow flow;
    const int *member; /* endpoint ids */
    int size, self;
    size_t block;  /* bytes that go from one rank to one other, or are added */
    size_t slice;  /* FLOW_SCATTER: bytes of every block in one slice; others: the block */
    size_t stride; /* FLOW_FIRST and FLOW_LEFT: from one message of a window to the next */
    int slots;     /* ... and how many have a place of their own */
};

struct piece {
    size_t at, len;
    int rank, block; /* verify_fill()'s; of a sum: the rank's index and the block of the sum */
    bool sum;
};

/* The pieces, which the caller frees; *count may be 0. */
struct piece *flow_sent(const struct moved *m, int *count);
struct piece *flow_received(const struct moved *m, int *count);
bool flow_adds(enum flow flow); /* is it a reduction? */

#endif
