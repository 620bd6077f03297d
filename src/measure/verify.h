/* verify.h - check every received byte: patterns and their verification, for every transport.
 *
 * 8-byte word i of a block is m(k + i*g):
 *
 *   k      64-bit hash of (rank, block, seed): verify_key()
 *   g      the odd number nearest 2^64 / golden ratio: PATTERN_GOLDEN
 *   m(x)   x ^ x >> 32, a bijection
 *
 * The words of one block all differ (g is odd, m is a bijection).  Data that is shifted, swapped,
 * stale (another seed) or from another rank is therefore found, like any flipped bit.  Fill and
 * check cost a few instructions per word: they run at memory speed.
 *
 * Reductions add uint32 with wrap-around.  This is exact in any order and grouping of the
 * additions, unlike floating point, and as wide as the float that nccl-tests adds.  (uint8 would
 * fit every size, but the AVX kernels of Open MPI 4.1 saturate 8- and 16-bit sums.)  With W(r) the
 * pattern of rank r:
 *
 *   rank 0 contributes     W(0)
 *   rank r contributes     W(r) - W(r-1)
 *   the sum of 0 .. n-1    W(n-1): a full-entropy pattern again, for every n
 *
 * so that a contribution that is missing or counted twice is found. */
#ifndef RG_VERIFY_H
#define RG_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/op.h"

uint64_t verify_key(int rank, int block, unsigned seed); /* k above */
void verify_fill(void *buf, size_t bytes, int rank, int block, unsigned seed);
/* Fill in the contribution of a rank to a sum over ranks 0..n-1; bytes is a multiple of 4. */
void verify_fill_term(void *buf, size_t bytes, int rank, int block, unsigned seed);

/* True if buf differs from the pattern of verify_fill(); *offset is then the first wrong byte. */
bool verify_find(const void *buf, size_t bytes, int rank, int block, unsigned seed, size_t *offset);

/* Description of a check, for messages. */
struct verify {
    enum op op;
    size_t bytes;     /* S of op.h */
    int rank;         /* the receiving rank */
    const char *host; /* host of that rank */
    unsigned seed;
};

/* Fault injection for tests: RAILGAUGE_FLIP="OP:RANK:OFFSET:BIT[,...]" in the environment flips
 * that bit in that rank's receive buffer after the transfer and before the check, in every check of
 * that op that receives more than OFFSET bytes.  Returns -1 if the variable is malformed
 * (EXIT_CONFIG). */
int verify_flip(const struct verify *v, void *recv, size_t len, struct err *err);

/* --- data movement: pieces that a rank fills in before an operation is checked, and pieces that
 * must have arrived afterwards --- */

struct verify_moved {
    enum op_flow flow;
    bool to_root;      /* only index 0 receives the result */
    const int *member; /* endpoint ids */
    int size, self;
    size_t block;  /* bytes from a rank to another, or added */
    size_t slice;  /* FLOW_SCATTER: bytes of every block in one slice; others: the block */
    size_t stride; /* FLOW_FIRST and FLOW_LEFT: distance between messages of a window */
    int slots;     /* number of messages with a slot of their own */
};

struct verify_piece {
    size_t at, len;
    /* arguments of verify_fill(); for a sum: index of the rank (received: the last rank) and block
     * of the sum */
    int rank, block;
    bool sum;
};

/* Data movement of an operation with blocks of `block` bytes, for one slice, stride and slot. */
struct verify_moved verify_moves(enum op op, const int *member, int size, int self, size_t block);

/* Return the pieces; *count may be 0.  The caller frees. */
struct verify_piece *verify_sent(const struct verify_moved *m, int *count);
struct verify_piece *verify_received(const struct verify_moved *m, int *count);

/* Fill in a piece to be sent, at buf. */
void verify_fill_piece(void *buf, const struct verify_piece *p, unsigned seed);
/* Compare a received piece, at recv + p->at.  A mismatch reads "all_gather of 4096 bytes: rank 2
 * (host h1): byte 1033 (block of rank 1) is 0x5a, expected 0x52", for a sum "(sum over 4 ranks)";
 * the byte is counted from recv. */
int verify_find_piece(const struct verify *v, const void *recv, const struct verify_piece *p,
                      struct err *err);
/* Set the same message for a wrong byte found elsewhere (on a GPU): byte `off` of the piece has the
 * value `got`.  Returns -1. */
int verify_wrong_byte(const struct verify *v, const struct verify_piece *p, size_t off,
                      unsigned char got, struct err *err);

#endif
