/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/op.h"

#include <string.h>

/* busbw = algbw * (steps * (n-1)/n when split, else steps); nccl-tests doc/PERFORMANCE.md. */
static const struct {
    const char *name, *alias;
    bool pair, split;
    int steps;
} ops[OP_COUNT] = {
    [OP_ALL_GATHER] = {"all_gather", "allgather", false, true, 1},
    [OP_REDUCE_SCATTER] = {"reduce_scatter", "reducescatter", false, true, 1},
    [OP_ALL_TO_ALL] = {"all_to_all", "alltoall", false, true, 1},
    [OP_ALL_REDUCE] = {"all_reduce", "allreduce", false, true, 2},
    [OP_BROADCAST] = {"broadcast", "bcast", false, false, 1},
    [OP_REDUCE] = {"reduce", "red", false, false, 1},
    [OP_SENDRECV] = {"sendrecv", "send_recv", false, false, 1},
    [OP_PAIR_LATENCY] = {"pair_latency", "latency", true, false, 1},
    [OP_PAIR_BW] = {"pair_bw", "bandwidth", true, false, 1},
    [OP_PAIR_BIBW] = {"pair_bibw", "bibandwidth", true, false, 1},
};

const char *op_name(enum op op)
{
    return ops[op].name;
}

int op_find(const char *name)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (!strcmp(name, ops[i].name) || !strcmp(name, ops[i].alias))
            return i;
    return -1;
}

bool op_is_pair(enum op op)
{
    return ops[op].pair;
}

bool op_is_rooted(enum op op)
{
    return op == OP_BROADCAST || op == OP_REDUCE;
}

double op_bus_factor(enum op op, int ranks)
{
    return ops[op].steps * (ops[op].split ? (double)(ranks - 1) / ranks : 1.0);
}

int op_blocks(enum op op, int ranks)
{
    return op == OP_ALL_GATHER || op == OP_REDUCE_SCATTER || op == OP_ALL_TO_ALL ? ranks : 1;
}

int op_fits(enum op op, int ranks, size_t bytes, size_t capacity, struct err *err)
{
    if (op_is_pair(op) && ranks != 2)
        return err_set(err, "%s needs a group of 2 ranks, this one has %d", op_name(op), ranks);
    if (bytes > capacity)
        return err_set(err, "%s of %zu bytes: the buffers were opened for %zu", op_name(op), bytes,
                       capacity);
    if (bytes % (size_t)op_blocks(op, ranks))
        return err_set(err, "%s of %zu bytes cannot be split over %d ranks", op_name(op), bytes,
                       ranks);
    return 0;
}
