/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/flow.h"

#include "base/mem.h"

bool flow_adds(enum flow flow)
{
    return flow == FLOW_SCATTER || flow == FLOW_SUM || flow == FLOW_ROOT;
}

/* Bytes of every block in the slice that begins at `at`. */
static size_t slice_at(const struct moved *m, size_t at)
{
    return m->block - at < m->slice ? m->block - at : m->slice;
}

/* Blocks are numbered through the slices: slice * size + index. */
static struct piece *scattered(const struct moved *m, int *count)
{
    struct piece *p = NULL;
    size_t n = (size_t)m->size;

    for (size_t at = 0; at < m->block; at += m->slice)
        for (size_t to = 0; to < n; to++) {
            size_t len = slice_at(m, at);
            MEM_PUSH(p, *count) = (struct piece){at * n + to * len, len, m->self,
                                                 (int)(at / m->slice * n + to), true};
        }
    return p;
}

struct piece *flow_sent(const struct moved *m, int *count)
{
    struct piece *p = NULL;
    int me = m->member[m->self];

    *count = 0;
    switch (m->flow) {
    case FLOW_SCATTER:
        return scattered(m, count);
    case FLOW_SUM:
    case FLOW_ROOT:
        MEM_PUSH(p, *count) = (struct piece){0, m->block, m->self, 0, true};
        break;
    case FLOW_GATHER:
        MEM_PUSH(p, *count) = (struct piece){0, m->block, me, 0, false};
        break;
    case FLOW_EXCHANGE:
        for (int to = 0; to < m->size; to++)
            MEM_PUSH(p, *count) =
                (struct piece){(size_t)to * m->block, m->block, me, m->member[to], false};
        break;
    case FLOW_FIRST:
    case FLOW_LEFT:
        for (int i = 0; i < m->slots; i++)
            MEM_PUSH(p, *count) = (struct piece){(size_t)i * m->stride, m->block, me, i, false};
        break;
    }
    return p;
}

struct piece *flow_received(const struct moved *m, int *count)
{
    struct piece *p = NULL;
    int n = m->size, left = (m->self + n - 1) % n;
    int from = m->member[m->flow == FLOW_FIRST ? 0 : left];

    *count = 0;
    if (m->self == 0 ? m->flow == FLOW_FIRST : m->flow == FLOW_ROOT)
        return NULL;
    switch (m->flow) {
    case FLOW_SCATTER:
        for (size_t at = 0; at < m->block; at += m->slice)
            MEM_PUSH(p, *count) = (struct piece){at, slice_at(m, at), n - 1,
                                                 (int)(at / m->slice) * n + m->self, true};
        break;
    case FLOW_SUM:
    case FLOW_ROOT:
        MEM_PUSH(p, *count) = (struct piece){0, m->block, n - 1, 0, true};
        break;
    case FLOW_GATHER:
    case FLOW_EXCHANGE:
        for (int i = 0; i < n; i++)
            MEM_PUSH(p, *count) =
                (struct piece){(size_t)i * m->block, m->block, m->member[i],
                               m->flow == FLOW_GATHER ? 0 : m->member[m->self], false};
        break;
    case FLOW_FIRST:
    case FLOW_LEFT:
        for (int i = 0; i < m->slots; i++)
            MEM_PUSH(p, *count) = (struct piece){(size_t)i * m->stride, m->block, from, i, false};
        break;
    }
    return p;
}
