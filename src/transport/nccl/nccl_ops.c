/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_ops_impl.h"

enum { WINDOW_ROOM = 256 << 20 };

static int do_all_gather(const struct nccl_side *c, const struct nccl_job *j)
{
    return nccl.AllGather(j->from, j->to, j->count, j->dtype, c->comm, c->stream);
}

static int do_reduce_scatter(const struct nccl_side *c, const struct nccl_job *j)
{
    return nccl.ReduceScatter(j->from, j->to, j->count, j->dtype, c->redop, c->comm, c->stream);
}

static int do_all_reduce(const struct nccl_side *c, const struct nccl_job *j)
{
    return nccl.AllReduce(j->from, j->to, j->count, j->dtype, c->redop, c->comm, c->stream);
}

static int do_broadcast(const struct nccl_side *c, const struct nccl_job *j)
{
    return nccl.Broadcast(j->from, j->to, j->count, j->dtype, 0, c->comm, c->stream);
}

static int do_reduce(const struct nccl_side *c, const struct nccl_job *j)
{
    return nccl.Reduce(j->from, j->to, j->count, j->dtype, c->redop, 0, c->comm, c->stream);
}

/* End a group that was started, whatever the result of its calls; the first failure is returned. */
static int end_group(int code)
{
    int end = nccl.GroupEnd();

    return code != NCCL_SUCCESS && code != NCCL_IN_PROGRESS ? code : end;
}

static bool went_well(int code)
{
    return code == NCCL_SUCCESS || code == NCCL_IN_PROGRESS;
}

static int rank_of(const struct nccl_side *c, int peer)
{
    return c->by_id ? c->member[peer] : peer;
}

static int send_to(const struct nccl_side *c, const struct nccl_job *j, size_t at, int peer)
{
    return nccl.Send(j->from + at, j->count, j->dtype, rank_of(c, peer), c->comm, c->stream);
}

static int recv_from(const struct nccl_side *c, const struct nccl_job *j, size_t at, int peer)
{
    return nccl.Recv(j->to + at, j->count, j->dtype, rank_of(c, peer), c->comm, c->stream);
}

static int do_all_to_all(const struct nccl_side *c, const struct nccl_job *j)
{
    if (nccl.AlltoAll)
        return nccl.AlltoAll(j->from, j->to, j->count, j->dtype, c->comm, c->stream);
    int code = nccl.GroupStart();
    for (int i = 0; i < c->size && went_well(code); i++) {
        code = send_to(c, j, (size_t)i * j->block, i);
        if (went_well(code))
            code = recv_from(c, j, (size_t)i * j->block, i);
    }
    return end_group(code);
}

static int do_sendrecv(const struct nccl_side *c, const struct nccl_job *j)
{
    int code = nccl.GroupStart();

    if (went_well(code))
        code = send_to(c, j, 0, (c->self + 1) % c->size);
    if (went_well(code))
        code = recv_from(c, j, 0, (c->self + c->size - 1) % c->size);
    return end_group(code);
}

static int pass_on(const struct nccl_side *c, const struct nccl_job *j, int sender)
{
    return c->self == sender ? send_to(c, j, 0, 1 - sender) : recv_from(c, j, 0, sender);
}

/* Send forth and back. */
static int do_pair_latency(const struct nccl_side *c, const struct nccl_job *j)
{
    int code = pass_on(c, j, 0);

    return code == NCCL_SUCCESS ? pass_on(c, j, 1) : code;
}

static int window(const struct nccl_side *c, const struct nccl_job *j, bool sends, bool receives)
{
    int code = nccl.GroupStart(), peer = 1 - c->self;

    for (size_t i = 0; i < OP_PAIR_WINDOW && went_well(code); i++) {
        if (sends)
            code = send_to(c, j, i * j->stride, peer);
        if (receives && went_well(code))
            code = recv_from(c, j, i * j->stride, peer);
    }
    return end_group(code);
}

static int do_pair_bw(const struct nccl_side *c, const struct nccl_job *j)
{
    return window(c, j, c->self == 0, c->self == 1);
}

static int do_pair_bibw(const struct nccl_side *c, const struct nccl_job *j)
{
    return window(c, j, true, true);
}

#define AS_CALL(ID, name, ...) [OP_##ID] = do_##name,
static int (*const nccl_ops[OP_COUNT])(const struct nccl_side *c,
                                       const struct nccl_job *j) = {OP_TABLE(AS_CALL)};

int nccl_job_enqueue(const struct nccl_side *c, const struct nccl_job *j)
{
    return nccl_ops[j->op](c, j);
}

/* Set the start of an operation in place, where one end is a block of the other. */
static void place(struct nccl_job *j, const struct nccl_side *c)
{
    size_t mine = (size_t)c->self * j->block;

    j->from = c->send;
    j->to = c->recv;
    if (!c->in_place || op_table[j->op].links != OP_RING)
        return;
    j->from = j->to = c->recv;
    if (op_table[j->op].flow == FLOW_GATHER)
        j->from += mine;
    if (op_table[j->op].flow == FLOW_SCATTER)
        j->to += mine;
}

int nccl_job_make(struct nccl_job *j, const struct nccl_side *c, enum op op, size_t bytes,
                  struct err *err)
{
    if (op_fits(op, c->size, bytes, c->capacity, err))
        return -1;
    *j = (struct nccl_job){.op = op, .bytes = bytes, .slots = 1};
    j->dtype = op_adds(op) ? c->sum_dtype : c->dtype;
    size_t width = nccl_dtype_size(j->dtype);
    j->count = (bytes / (size_t)op_blocks(op, c->size) + width - 1) / width;
    j->block = j->count * width;
    if (op_table[op].messages == OP_PAIR_WINDOW && j->block <= c->room / OP_PAIR_WINDOW) {
        j->slots = OP_PAIR_WINDOW;
        j->stride = j->block;
    }
    place(j, c);
    return 0;
}

/* Both buffers advance by the larger of the two used sizes, rounded to the unit of NCCL's loads. */
void nccl_job_turn(struct nccl_job *j, const struct nccl_side *c, unsigned turn)
{
    size_t blocks = j->stride ? (size_t)j->slots : (size_t)op_blocks(j->op, c->size);
    size_t span = (blocks * j->block + 15) / 16 * 16;
    size_t turns = span ? c->capacity / span : 0, at = turns ? turn % turns * span : 0;

    place(j, c);
    j->from += at;
    j->to += at;
}

size_t nccl_job_room(const struct nccl_side *c, size_t bytes)
{
    size_t room = bytes + 8 * (size_t)c->size; /* blocks are rounded up to whole elements */

    return c->size == 2 && bytes <= WINDOW_ROOM / OP_PAIR_WINDOW ? OP_PAIR_WINDOW * room : room;
}
