/* nccl_ops.h - the operations of op.h as NCCL calls, each put into a stream once; transport_nccl.c
 * times and checks them.
 *
 * all_to_all is ncclAlltoAll where the library has it (2.28), else a group of sends and receives.
 * Messages of a pair's window are one group.  In place (nccl-tests' sense): all_gather sends from
 * its block of the receive buffer, reduce_scatter receives into its block of the send buffer,
 * all_reduce, reduce and broadcast work in one buffer; the others have no such form. */
#ifndef RG_NCCL_OPS_H
#define RG_NCCL_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/op.h"
#include "kernels/nccl_api.h"
#include "probe/verify.h"

/* Buffers and the place in the group; the NCCL side of a transport's context. */
struct nccl_side {
    nccl_comm comm;
    gpu_stream stream;
    int self, size;
    const int *member;          /* endpoint ids */
    bool by_id;                 /* the communicator is that of all: its ranks are endpoint ids */
    unsigned char *send, *recv; /* device addresses */
    size_t capacity, room;      /* largest S; bytes in each buffer */
    int dtype, sum_dtype;       /* of what is moved, and of what is reduced */
    int redop;
    bool in_place;
};

struct nccl_job {
    enum op op;
    size_t bytes;  /* S */
    size_t block;  /* bytes from one rank to one other, or added: whole elements */
    size_t count;  /* elements of a block */
    size_t stride; /* from one message of a window to the next; 0: they share one buffer */
    int slots;     /* messages with a place of their own */
    int dtype;
    unsigned char *from, *to; /* where this operation sends from and receives */
};

/* Refuses (EXIT_UNJUDGED) a size that the buffers or the number of ranks do not allow. */
int nccl_job_make(struct nccl_job *j, const struct nccl_side *c, enum op op, size_t bytes,
                  struct err *err);
/* The place of the turn-th operation: as in nccl-tests each begins where the one before ended, and
 * at the buffer's begin again when the next one would reach beyond the largest S, so that small
 * messages are not those that the caches still hold.  The same on all ranks of the same turn. */
void nccl_job_turn(struct nccl_job *j, const struct nccl_side *c, unsigned turn);
/* Into the stream, once: an enum nccl_result. */
int nccl_job_enqueue(const struct nccl_side *c, const struct nccl_job *j);
/* Bytes that each buffer needs for operations up to S = bytes. */
size_t nccl_job_room(const struct nccl_side *c, size_t bytes);

#endif
