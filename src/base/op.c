/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/op.h"

#include <string.h>

#define AS_ROW(ID, name, alias, links, root, share, flow, turns, messages, asked, program, tuner)  \
    [OP_##ID] = {#name, alias,    OP_##links, OP_##root, OP_##share, FLOW_##flow,                  \
                 turns, messages, asked,      program,   tuner},
const struct op_row op_table[OP_COUNT] = {OP_TABLE(AS_ROW)};

int op_find(const char *name)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (!strcmp(name, op_table[i].name) || !strcmp(name, op_table[i].alias))
            return i;
    return -1;
}

void op_each(name_taker *take, void *to)
{
    for (int i = 0; i < OP_COUNT; i++)
        take(to, op_table[i].name);
}

bool op_is_rooted(enum op op)
{
    return op_table[op].root != OP_NO_ROOT;
}

bool op_adds(enum op op)
{
    return op_table[op].flow == FLOW_SCATTER || op_table[op].flow == FLOW_SUM;
}

double op_bus_factor(enum op op, int ranks)
{
    return op_table[op].turns * (op_table[op].share == OP_WHOLE ? 1 : (double)(ranks - 1) / ranks);
}

int op_blocks(enum op op, int ranks)
{
    return op_table[op].share == OP_BLOCKS ? ranks : 1;
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
