/* nccl_ops_impl.h - the operations of op.h as NCCL calls, each put into a stream once; transport_nccl.c
 * times and checks them.
 *
 * all_to_all is ncclAlltoAll if the library has it (2.28), else a group of sends and receives.  The
 * messages of a pair's window form one group.  In place (as in nccl-tests): all_gather sends from
 * its block of the receive buffer, reduce_scatter receives into its block of the send buffer,
 * all_reduce, reduce and broadcast work in one buffer; other operations have no such form. */
#ifndef RG_NCCL_OPS_H
#define RG_NCCL_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/op.h"
#include "kernels/nccl_api.h"
#include "measure/verify.h"

/* NCCL part of a transport's context: buffers and position in the group. */
struct nccl_side {
    nccl_comm comm;
    gpu_stream stream;
    int self, size;
    const int *member;          /* endpoint ids */
    bool by_id;                 /* communicator of all ranks: ranks are endpoint ids */
    unsigned char *send, *recv; /* device addresses */
    size_t capacity, room;      /* largest S; bytes in each buffer */
    int dtype, sum_dtype;       /* type of moved data, and of reduced data */
    int redop;
    bool in_place;
};

struct nccl_job {
    enum op op;
    size_t bytes;  /* S */
    size_t block;  /* bytes from one rank to another, or added: whole elements */
    size_t count;  /* elements of a block */
    size_t stride; /* distance between messages of a window; 0: they share one buffer */
    int slots;     /* messages with a slot of their own */
    int dtype;
    unsigned char *from, *to; /* source and destination of this operation */
};

/* EXIT_UNJUDGED for a size that the buffers or the number of ranks do not allow. */
int nccl_job_make(struct nccl_job *j, const struct nccl_side *c, enum op op, size_t bytes,
                  struct err *err);
/* Set the place of operation number `turn` in the buffers.  As in nccl-tests, each operation starts
 * where the previous one ended, and at the start of the buffer again if the next would reach beyond
 * the largest S.  Small messages are therefore not in the caches.  The same on all ranks in the
 * same turn. */
void nccl_job_turn(struct nccl_job *j, const struct nccl_side *c, unsigned turn);
/* Put the operation into the stream once.  Returns an enum nccl_result. */
int nccl_job_enqueue(const struct nccl_side *c, const struct nccl_job *j);
/* Bytes that each buffer needs for operations up to S = bytes. */
size_t nccl_job_room(const struct nccl_side *c, size_t bytes);

#endif
