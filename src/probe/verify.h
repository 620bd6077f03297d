/* verify.h - is every received byte the right one?  Patterns and their check, for every transport.
 *
 * 8-byte word i of a block is m(k + i*g):
 *
 *   k      64-bit hash of (rank, block, seed): verify_key()
 *   g      the odd number nearest 2^64 / golden ratio: PATTERN_GOLDEN
 *   m(x)   x ^ x >> 32, a bijection
 *
 * Words of one block are all different (g is odd, m is a bijection), so data that is shifted,
 * swapped, stale (another seed) or from another rank is found, as is any flipped bit.  Fill and
 * check cost a few instructions a word: they run at memory speed.
 *
 * Reductions add uint32 with wrap-around: exact in any order and grouping of the additions, which
 * floating point is not, and as wide as the float that nccl-tests adds (uint8 would fit every size,
 * but the AVX kernels of Open MPI 4.1 saturate 8- and 16-bit sums).  W(r) being rank r's pattern:
 *
 *   rank 0 contributes     W(0)
 *   rank r contributes     W(r) - W(r-1)
 *   the sum of 0 .. n-1    W(n-1): a full-entropy pattern again, whatever n is
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
/* The contribution of rank 0..n-1 to a sum; bytes is a multiple of 4. */
void verify_fill_term(void *buf, size_t bytes, int rank, int block, unsigned seed);

/* Is buf other than verify_fill() would make it?  If so, *offset is the first wrong byte. */
bool verify_find(const void *buf, size_t bytes, int rank, int block, unsigned seed, size_t *offset);

/* What is being checked, for messages. */
struct verify {
    enum op op;
    size_t bytes;     /* S of op.h */
    int rank;         /* who received */
    const char *host; /* where it runs */
    unsigned seed;
};

/* A hook for tests: RAILGAUGE_FLIP="OP:RANK:OFFSET:BIT[,...]" in the environment flips that bit of
 * that rank's receive buffer after the transfer and before the check, in every check of that op
 * that receives more than OFFSET bytes.  -1: the variable is there but malformed (EXIT_CONFIG). */
int verify_flip(const struct verify *v, void *recv, size_t len, struct err *err);

/* --- who gets what from whom: which pieces a rank fills in before an operation is checked, and
 * which must have arrived afterwards --- */

/* One operation of one member. */
struct verify_moved {
    enum op_flow flow;
    bool to_root;      /* index 0 alone gets it */
    const int *member; /* endpoint ids */
    int size, self;
    size_t block;  /* bytes that go from one rank to one other, or are added */
    size_t slice;  /* FLOW_SCATTER: bytes of every block in one slice; others: the block */
    size_t stride; /* FLOW_FIRST and FLOW_LEFT: from one message of a window to the next */
    int slots;     /* ... and how many have a place of their own */
};

struct verify_piece {
    size_t at, len;
    int rank, block; /* verify_fill()'s; of a sum: the rank's index (received: the last one's) and
                      * the block of the sum */
    bool sum;
};

/* What moves in an operation with blocks of so many bytes: slices, strides and slots are one. */
struct verify_moved verify_moves(enum op op, const int *member, int size, int self, size_t block);

/* The pieces, which the caller frees; *count may be 0. */
struct verify_piece *verify_sent(const struct verify_moved *m, int *count);
struct verify_piece *verify_received(const struct verify_moved *m, int *count);

/* Fill in a piece that is sent, at buf. */
void verify_fill_piece(void *buf, const struct verify_piece *p, unsigned seed);
/* Compare a received piece, at recv + p->at.  A mismatch reads "all_gather of 4096 bytes: rank 2
 * (host h1): byte 1033 (block of rank 1) is 0x5a, expected 0x52", of a sum "(sum over 4 ranks)";
 * the byte counts from recv. */
int verify_find_piece(const struct verify *v, const void *recv, const struct verify_piece *p,
                      struct err *err);
/* The same words for a byte that was found elsewhere (on a GPU): byte `off` of the piece, which is
 * `got`; -1. */
int verify_wrong_byte(const struct verify *v, const struct verify_piece *p, size_t off,
                      unsigned char got, struct err *err);

#endif
