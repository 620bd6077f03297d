/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/mpi/mpi_ops.h"

#include <stdlib.h>

#include "base/mem.h"
#include "transport/mpi/world_mpi.h"

enum { TAG = 7002, ELEMENT = 4 };

static int lesser(size_t a, size_t b)
{
    return (int)(a < b ? a : b);
}

static int do_all_gather(struct mpi_ctx *c, const struct mpi_job *j)
{
    return MPI_Allgather(c->send, j->count, j->type, c->recv, j->count, j->type, c->comm);
}

static int do_all_to_all(struct mpi_ctx *c, const struct mpi_job *j)
{
    return MPI_Alltoall(c->send, j->count, j->type, c->recv, j->count, j->type, c->comm);
}

static int do_reduce_scatter(struct mpi_ctx *c, const struct mpi_job *j)
{
    int code = MPI_SUCCESS;

    for (size_t at = 0; at < j->block && code == MPI_SUCCESS; at += j->slice) {
        const int *counts = j->counts + (j->block - at < j->slice ? c->size : 0);
        const unsigned char *from = c->send + at * (size_t)c->size;
        code = c->how.scatter_by_block
                   ? MPI_Reduce_scatter_block(from, c->recv + at, *counts, MPI_UINT32_T, MPI_SUM,
                                              c->comm)
                   : MPI_Reduce_scatter(from, c->recv + at, counts, MPI_UINT32_T, MPI_SUM, c->comm);
    }
    return code;
}

static int do_all_reduce(struct mpi_ctx *c, const struct mpi_job *j)
{
    int code = MPI_SUCCESS;

    for (size_t at = 0; at < j->block && code == MPI_SUCCESS; at += MPI_CHUNK)
        code = MPI_Allreduce(c->send + at, c->recv + at, lesser(j->block - at, MPI_CHUNK) / ELEMENT,
                             MPI_UINT32_T, MPI_SUM, c->comm);
    return code;
}

static int do_reduce(struct mpi_ctx *c, const struct mpi_job *j)
{
    int code = MPI_SUCCESS;

    for (size_t at = 0; at < j->block && code == MPI_SUCCESS; at += MPI_CHUNK)
        code = MPI_Reduce(c->send + at, c->recv + at, lesser(j->block - at, MPI_CHUNK) / ELEMENT,
                          MPI_UINT32_T, MPI_SUM, 0, c->comm);
    return code;
}

static int do_broadcast(struct mpi_ctx *c, const struct mpi_job *j)
{
    return MPI_Bcast(c->self == 0 ? c->send : c->recv, j->count, j->type, 0, c->comm);
}

static int left_of(const struct mpi_ctx *c)
{
    return (c->self + c->size - 1) % c->size;
}

static int do_sendrecv(struct mpi_ctx *c, const struct mpi_job *j)
{
    return MPI_Sendrecv(c->send, j->count, j->type, (c->self + 1) % c->size, TAG, c->recv, j->count,
                        j->type, left_of(c), TAG, c->comm, MPI_STATUS_IGNORE);
}

static int do_pair_latency(struct mpi_ctx *c, const struct mpi_job *j)
{
    int code = MPI_SUCCESS, peer = 1 - c->self;

    if (c->self == 0)
        code = MPI_Send(c->send, j->count, j->type, peer, TAG, c->comm);
    if (code == MPI_SUCCESS)
        code = MPI_Recv(c->recv, j->count, j->type, peer, TAG, c->comm, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && c->self == 1)
        code = MPI_Send(c->send, j->count, j->type, peer, TAG, c->comm);
    return code;
}

static int post_window(struct mpi_ctx *c, const struct mpi_job *j, bool sends, MPI_Request *request)
{
    int code = MPI_SUCCESS, peer = 1 - c->self;

    for (int i = 0; i < j->messages && code == MPI_SUCCESS; i++)
        code = sends ? MPI_Isend(c->send + (size_t)i * j->stride, j->count, j->type, peer, TAG,
                                 c->comm, &request[i])
                     : MPI_Irecv(c->recv + (size_t)i * j->stride, j->count, j->type, peer, TAG,
                                 c->comm, &request[i]);
    return code;
}

static int do_pair_bw(struct mpi_ctx *c, const struct mpi_job *j)
{
    MPI_Request request[MPI_WINDOW_MAX];
    int code = post_window(c, j, c->self == 0, request), peer = 1 - c->self;

    if (code == MPI_SUCCESS)
        code = MPI_Waitall(j->messages, request, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS)
        return code;
    return c->self == 0 ? MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG, c->comm, MPI_STATUS_IGNORE)
                        : MPI_Send(NULL, 0, MPI_BYTE, peer, TAG, c->comm);
}

static int do_pair_bibw(struct mpi_ctx *c, const struct mpi_job *j)
{
    MPI_Request request[2 * MPI_WINDOW_MAX];
    int code = post_window(c, j, false, request);

    if (code == MPI_SUCCESS)
        code = post_window(c, j, true, request + j->messages);
    if (code != MPI_SUCCESS)
        return code;
    return MPI_Waitall(2 * j->messages, request, MPI_STATUSES_IGNORE);
}

#define AS_CALL(ID, name, ...) [OP_##ID] = do_##name,
mpi_call *const mpi_ops[OP_COUNT] = {OP_TABLE(AS_CALL)};

/* Make a type of `bytes` bytes: contiguous chunks and the remainder. */
static int big_type(MPI_Datatype *out, size_t bytes)
{
    MPI_Datatype chunk = MPI_DATATYPE_NULL, part[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    MPI_Aint at[2] = {0, (MPI_Aint)(bytes - bytes % MPI_CHUNK)};
    int length[2] = {1, (int)(bytes % MPI_CHUNK)};
    int code = MPI_Type_contiguous(MPI_CHUNK, MPI_BYTE, &chunk);

    if (code == MPI_SUCCESS)
        code = MPI_Type_contiguous((int)(bytes / MPI_CHUNK), chunk, &part[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Type_create_struct(length[1] ? 2 : 1, length, at, part, out);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(out);
    if (part[0] != MPI_DATATYPE_NULL)
        MPI_Type_free(&part[0]);
    if (chunk != MPI_DATATYPE_NULL)
        MPI_Type_free(&chunk);
    return code;
}

/* Counts of a full slice, and of the last one, which may be shorter. */
static int *make_counts(const struct mpi_job *j, int ranks)
{
    int *counts = mem_calloc(2 * (size_t)ranks, sizeof(*counts));

    for (int i = 0; i < ranks; i++) {
        counts[i] = lesser(j->block, j->slice) / ELEMENT;
        counts[ranks + i] = (int)(j->block % j->slice) / ELEMENT;
    }
    return counts;
}

/* If there is room, the messages of a window have separate slots, so that each can be verified. */
int mpi_job_make(struct mpi_job *j, const struct mpi_ctx *c, enum op op, size_t bytes,
                 struct err *err)
{
    bool adds = op_adds(op), window = op_table[op].messages == OP_PAIR_WINDOW;

    if (op_fits(op, c->size, bytes, c->capacity, err))
        return -1;
    *j = (struct mpi_job){.op = op, .bytes = bytes, .slots = 1, .type = MPI_BYTE};
    j->block = bytes / (size_t)op_blocks(op, c->size);
    if (adds)
        j->block = (j->block + ELEMENT - 1) / ELEMENT * ELEMENT;
    j->slice = MPI_CHUNK / (size_t)c->size / ELEMENT * ELEMENT;
    j->messages = window ? mpi_opts_window(&c->how, bytes) : op_table[op].messages;
    if (window && bytes <= c->room / (size_t)j->messages) {
        j->slots = j->messages;
        j->stride = bytes;
    }
    if (op_table[op].flow == FLOW_SCATTER)
        j->counts = make_counts(j, c->size);
    j->derived = j->block > MPI_CHUNK && !adds;
    j->count = j->derived ? 1 : lesser(j->block, MPI_CHUNK);
    if (!j->derived)
        return 0;
    return world_mpi_error(big_type(&j->type, j->block), "making a datatype over 1 GiB", err);
}

void mpi_job_free(struct mpi_job *j)
{
    if (j->derived)
        MPI_Type_free(&j->type);
    free(j->counts);
}
