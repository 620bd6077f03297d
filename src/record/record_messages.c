/* SPDX-License-Identifier: BSD-3-Clause */
#include "record/record_messages_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void record_messages_add(struct record_messages *m, struct record_message message)
{
    MEM_PUSH(m->message, m->count) = message;
}

void record_messages_call(struct record_messages *m, uint64_t number, uint64_t parent)
{
    *map_at(&m->call_at, number, NULL, NULL) = m->parents;
    MEM_PUSH(m->parent, m->parents) = parent;
}

void record_messages_free(struct record_messages *m)
{
    free(m->message);
    free(m->parent);
    map_free(&m->call_at);
    memset(m, 0, sizeof(*m));
}

static int by_number(const void *a, const void *b)
{
    const struct record_message *x = a, *y = b;

    if (x->team != y->team)
        return (x->team > y->team) - (x->team < y->team);
    return (x->number > y->number) - (x->number < y->number);
}

/* Group messages that were launched together: by the parent, or by its parent if that is a call.
 * Without a parent: NCCL starts the events of all parts of a kernel before the launch and stops
 * them after it (2.23 to 2.28, enqueue.cc, ncclProfilerStartTaskEvents and
 * ncclProfilerStopTaskEvents). */
static void find_groups(struct record_messages *m)
{
    const struct record_message *first = NULL;
    uint64_t over = 0;

    for (int i = 0; i < m->count; i++) {
        struct record_message *x = &m->message[i];
        int call = x->group ? map_find(&m->call_at, x->group - 1, NULL, NULL) : MAP_NONE;
        if (call != MAP_NONE && m->parent[call])
            x->group = m->parent[call];
        if (x->group)
            continue;
        if (!first || first->team != x->team || !over || x->from >= over) {
            first = x;
            over = x->to;
        }
        x->group = first->number + 1;
        over = x->to && x->to < over ? x->to : over;
    }
}

static int by_group(const void *a, const void *b)
{
    const struct record_message *x = a, *y = b;

    if (x->team != y->team)
        return (x->team > y->team) - (x->team < y->team);
    if (x->group != y->group)
        return (x->group > y->group) - (x->group < y->group);
    return (x->number > y->number) - (x->number < y->number);
}

/* True if the same number of bytes goes to and comes from each other rank, once. */
static bool is_exchange(const struct record_message *x, int n, const struct record_raw *raw,
                        int size)
{
    bool *seen = mem_calloc(2 * (size_t)size, sizeof(*seen)), equal = size > 2;
    int peers = 0;

    for (int i = 0; i < n && equal; i++) {
        bool *at = &seen[2 * x[i].peer + x[i].send];
        equal = !*at && raw[x[i].at].what.bytes == raw[x[0].at].what.bytes;
        *at = true;
        peers += x[i].peer != x[i].me;
    }
    free(seen);
    return equal && peers == 2 * (size - 1);
}

static bool is_ring(const struct record_message *x, int n, const struct record_raw *raw, int size)
{
    if (n != 2 || x[0].send == x[1].send || raw[x[0].at].what.bytes != raw[x[1].at].what.bytes)
        return false;
    const struct record_message *send = x[0].send ? &x[0] : &x[1],
                                *recv = x[0].send ? &x[1] : &x[0];
    return send->peer == (send->me + 1) % size && recv->peer == (recv->me + size - 1) % size;
}

/* Merge n records into the first. */
static void make_one(struct record_raw *raw, const struct record_message *x, int n, enum op op,
                     uint64_t times)
{
    struct record_raw *one = &raw[x[0].at];

    one->what.op = op;
    one->what.bytes *= times;
    for (int i = 1; i < n; i++) {
        struct record_raw *r = &raw[x[i].at];
        one->start = r->start < one->start ? r->start : one->start;
        one->end = r->end > one->end ? r->end : one->end;
        one->wait += r->wait;
        if (r->what.channels > one->what.channels) /* a message to the rank itself has fewer */
            one->what.channels = r->what.channels;
        r->what.comm = -1;
    }
}

static void make_messages(struct record_raw *raw, const struct record_message *x, int n)
{
    for (int i = 0; i < n; i++) {
        struct record_what *w = &raw[x[i].at].what;
        w->op = OP_SENDRECV;
        w->src = x[i].send ? x[i].me : x[i].peer;
        w->dst = x[i].send ? x[i].peer : x[i].me;
        if (w->src == w->dst)
            w->comm = -1;
    }
}

/* True if all times are of the same clock, GPU or host. */
static bool one_clock(const struct record_raw *raw, const struct record_message *x, int n)
{
    bool one = true;

    for (int i = 1; i < n; i++)
        one &= raw[x[i].at].gpu == raw[x[0].at].gpu;
    return one;
}

static void find_meaning(struct record_messages *m, const struct record_job *j,
                         struct record_raw *raw)
{
    for (int i = 0, next; i < m->count; i = next) {
        const struct record_message *x = &m->message[i];
        for (next = i + 1; next < m->count && m->message[next].team == x->team &&
                           m->message[next].group == x->group;
             next++)
            ;
        int n = next - i, size = j->team[x->team].size;
        if (one_clock(raw, x, n) && is_exchange(x, n, raw, size))
            make_one(raw, x, n, OP_ALL_TO_ALL, (uint64_t)size);
        else if (one_clock(raw, x, n) && is_ring(x, n, raw, size))
            make_one(raw, x, n, OP_SENDRECV, 1);
        else
            make_messages(raw, x, n);
    }
}

/* Key of messages between the same two ranks, or of the same operation. */
static uint64_t lane_of(const struct record_what *w)
{
    return map_mix(map_mix((uint64_t)w->comm, (uint64_t)w->op),
                   (uint64_t)(w->src + 1) << 32 | (uint64_t)(w->dst + 1));
}

static void number_all(struct record_messages *m, struct record_raw *raw, bool from_end)
{
    struct map lane = {.slots = 0};

    for (int i = 0; i < m->count; i++) {
        int at = from_end ? m->count - 1 - i : i;
        struct record_raw *r = &raw[m->message[at].at];
        if (r->what.comm < 0)
            continue;
        int *n = map_at(&lane, lane_of(&r->what), NULL, NULL);
        *n = *n == MAP_NONE ? 0 : *n + 1;
        r->number = from_end ? (uint32_t)1 << 31 : 0;
        r->number += from_end ? -(uint32_t)*n : (uint32_t)*n;
    }
    map_free(&lane);
}

void record_messages_end(struct record_messages *m, const struct record_job *j,
                         struct record_raw *raw, bool from_end)
{
    if (m->count)
        qsort(m->message, (size_t)m->count, sizeof(*m->message), by_number);
    find_groups(m);
    if (m->count)
        qsort(m->message, (size_t)m->count, sizeof(*m->message), by_group);
    find_meaning(m, j, raw);
    number_all(m, raw, from_end);
}
