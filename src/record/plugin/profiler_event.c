/* SPDX-License-Identifier: BSD-3-Clause */
/* profiler_event.c - start, change and end of events: tasks, channels, proxy ops and their
 * steps. */
#include "record/plugin/profiler_impl.h"

struct profiler me = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- events with a record of their own --- */
static void lower(uint64_t *least, uint64_t value)
{
    uint64_t now = LOAD(least);

    while (
        (!now || value < now) &&
        !__atomic_compare_exchange_n(least, &now, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void raise_to(uint64_t *most, uint64_t value)
{
    uint64_t now = LOAD(most);

    while (value > now && !__atomic_compare_exchange_n(most, &now, value, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

static void lost_parent(void)
{
    ADD(&me.ring.head->foreign, 1);
}

/* Number of the first of two parents that is recorded, with its graph flag. */
static uint64_t parent_number(const struct task *t, uint8_t *flags)
{
    const void *handles[] = {t->parent, t->group};

    for (int i = 0; i < 2; i++) {
        struct record *p =
            KIND(handles[i]) == H_RECORD ? ring_pin(&me.ring, KEY(handles[i])) : NULL;
        uint64_t number;

        if (!p)
            continue;
        number = ring_number(p);
        *flags |= p->flags & RECORD_GRAPH;
        ring_unpin(&me.ring, p, KEY(handles[i]));
        return number;
    }
    return 0;
}

void *event_start_task(unsigned comm, const struct task *t)
{
    struct record_comm *c = comm_of(comm);
    ring_key key;
    struct record *r;

    r = ring_begin(&me.ring, &key);
    if (!r)
        return NULL;
    r->start_ns = ring_now();
    r->count = t->count;
    r->bytes = t->count * ring_name_size(t->dtype);
    r->nccl_seq = t->seq;
    r->tag = t->tag;
    r->peer = t->peer;
    r->comm = (uint16_t)comm;
    r->channels = (uint16_t)t->channels;
    r->kind = (uint8_t)t->kind;
    r->flags = (uint8_t)t->flags;
    r->op = t->op;
    r->dtype = t->dtype;
    r->algo = t->algo;
    r->proto = t->proto;
    r->warps = t->warps;
    r->parent = parent_number(t, &r->flags);
    ring_commit(&me.ring, r, key);
    if (c && (t->kind == RECORD_COLL || t->kind == RECORD_P2P))
        ADD(&c->records, 1);
    return HANDLE(H_RECORD, key);
}

void event_stop_task(ring_key key)
{
    struct record *r = ring_pin(&me.ring, key);

    if (!r)
        return;
    if (!LOAD(&r->stop_ns))
        STORE(&r->stop_ns, ring_now());
    ring_unpin(&me.ring, r, key);
}

/* --- channels of kernels, which pin their record from start to stop --- */
void *event_start_channel(const struct prof_descr *d, bool timed)
{
    unsigned started;
    struct record *r =
        KIND(d->parent) == H_RECORD ? ring_pin_channel(&me.ring, KEY(d->parent), &started) : NULL;

    if (!r) {
        lost_parent();
        return NULL;
    }
    if (started == 1 && !LOAD(&r->first_ns))
        STORE(&r->first_ns, ring_now());
    if (timed)
        lower(&r->gpu_start, d->kernel_ch.timer);
    ring_touch(&me.ring, KEY(d->parent));
    return HANDLE(H_CHANNEL, KEY(d->parent));
}

/* Read the clock only if this may be the last channel, because it costs as much as all the rest. */
void event_stop_channel(ring_key key, uint64_t timer)
{
    struct record *r = ring_pinned(&me.ring, key);
    unsigned stopped;

    if (!r)
        return;
    raise_to(&r->gpu_stop, timer);
    stopped = ring_stop_channel(r);
    if (stopped >= LOAD(&r->channels_started) || stopped == r->channels)
        raise_to(&r->last_ns, ring_now());
    ring_unpin(&me.ring, r, key);
}

/* --- proxy ops: a record each, pinned from start to stop, and their sum in the parent --- */
void *event_start_proxy(unsigned comm, const struct prof_descr *d)
{
    bool own = (uint32_t)d->proxy_op.pid == me.pid;
    struct record *parent =
        own && KIND(d->parent) == H_RECORD ? ring_pin(&me.ring, KEY(d->parent)) : NULL;
    struct record *r;
    ring_key key;
    void *handle = NULL;

    if (own && !parent)
        lost_parent();
    r = ring_begin(&me.ring, &key);
    if (r) {
        r->start_ns = ring_now();
        r->kind = RECORD_PROXY;
        r->flags = (uint8_t)((d->proxy_op.send ? RECORD_SEND : 0) | (own ? 0 : RECORD_FOREIGN));
        r->comm = (uint16_t)(own ? comm : RECORD_NO_COMM);
        r->channel = d->proxy_op.channel;
        r->peer = d->proxy_op.peer;
        if (parent) {
            r->parent = ring_number(parent);
            r->op = parent->op;
            r->dtype = parent->dtype;
            r->algo = parent->algo;
            r->proto = parent->proto;
            ADD(&parent->proxy_started, 1);
            if (!LOAD(&parent->first_ns))
                STORE(&parent->first_ns, r->start_ns);
        }
        ring_commit(&me.ring, r, key);
        if (ring_pin(&me.ring, key))
            handle = HANDLE(H_PROXY, key);
    }
    if (parent)
        ring_unpin(&me.ring, parent, KEY(d->parent));
    return handle;
}

static void add_up(struct record *to, const struct record *from)
{
    ADD(&to->proxy_stopped, 1);
    ADD(&to->proxy_steps, from->proxy_steps);
    ADD(&to->sent_bytes, from->sent_bytes);
    ADD(&to->received_bytes, from->received_bytes);
    ADD(&to->send_gpu_ns, from->send_gpu_ns);
    ADD(&to->send_peer_ns, from->send_peer_ns);
    ADD(&to->send_net_ns, from->send_net_ns);
    ADD(&to->recv_net_ns, from->recv_net_ns);
    ADD(&to->recv_flush_ns, from->recv_flush_ns);
    ADD(&to->recv_gpu_ns, from->recv_gpu_ns);
}

void event_stop_proxy(ring_key key)
{
    struct record *r = ring_pinned(&me.ring, key), *parent = NULL;
    uint64_t now = ring_now();

    if (!r || LOAD(&r->stop_ns))
        return;
    STORE(&r->stop_ns, now);
    if (r->parent && !(parent = ring_pin(&me.ring, ring_key_of(&me.ring, r->parent))))
        lost_parent();
    if (parent) {
        add_up(parent, r);
        raise_to(&parent->last_ns, now);
        ring_unpin(&me.ring, parent, ring_key_of(&me.ring, r->parent));
    }
    ring_unpin(&me.ring, r, key);
}

/* Up to v3 the op reports the total that it has moved. */
void event_record_proxy(ring_key key, int state, const union prof_state_args *args)
{
    struct record *r = ring_pinned(&me.ring, key);

    if (!r || !args)
        return;
    if (state == PROF_SEND_DONE)
        raise_to(&r->sent_bytes, args->proxy_op.bytes);
    else if (state == PROF_RECV_DONE)
        raise_to(&r->received_bytes, args->proxy_op.bytes);
    ring_touch(&me.ring, key);
}

/* --- steps of proxy ops, from a fixed pool --- */
void *event_start_step(const struct prof_descr *d)
{
    uint32_t at = ADD(&me.next_step, 1);

    if (KIND(d->parent) != H_PROXY)
        return NULL;
    for (int i = 0; i < STEP_TRIES; i++, at++) {
        struct step *s = &me.step[at % STEPS];
        uint32_t turn = LOAD(&s->turn);

        if (turn & 1 || !__atomic_compare_exchange_n(&s->turn, &turn, turn + 1, false,
                                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        s->op = KEY(d->parent);
        s->state = 0;
        s->since = ring_now();
        return HANDLE(H_STEP, (uint64_t)(turn + 1) << 16 | at % STEPS);
    }
    ADD(&me.ring.head->dropped, 1);
    return NULL;
}

void event_forget(void)
{
    memset(me.step, 0, sizeof(me.step));
}

static struct step *proxy_step(uint64_t key)
{
    struct step *s = &me.step[key % STEPS];

    return LOAD(&s->turn) == (uint32_t)(key >> 16) ? s : NULL;
}

/* Counter for the time of a step since its last state. */
static uint64_t *waited(struct record *r, int state)
{
    switch (state) {
    case PROF_SEND_GPU_WAIT:
        return &r->send_gpu_ns;
    case PROF_SEND_PEER_WAIT:
        return &r->send_peer_ns;
    case PROF_SEND_WAIT:
        return &r->send_net_ns;
    case PROF_RECV_WAIT:
        return &r->recv_net_ns;
    case PROF_RECV_FLUSH_WAIT:
        return &r->recv_flush_ns;
    case PROF_RECV_GPU_WAIT:
        return &r->recv_gpu_ns;
    }
    return NULL;
}

/* bytes: moved by the step, if this state reports it (v4 on: src/transport/net.cc sets transSize
 * just before these two). */
void event_record_step(uint64_t key, int state, uint64_t bytes)
{
    struct step *s = proxy_step(key);
    struct record *r = s ? ring_pinned(&me.ring, s->op) : NULL;
    uint64_t *sum, now;

    if (!r)
        return;
    now = ring_now();
    sum = waited(r, s->state);
    if (sum)
        ADD(sum, now - s->since);
    s->state = (uint16_t)state;
    s->since = now;
    if (bytes && state == PROF_SEND_WAIT)
        ADD(&r->sent_bytes, bytes);
    if (bytes && state == PROF_RECV_FLUSH_WAIT)
        ADD(&r->received_bytes, bytes);
    ring_touch(&me.ring, s->op);
}

void event_stop_step(uint64_t key)
{
    struct step *s = proxy_step(key);
    struct record *r = s ? ring_pinned(&me.ring, s->op) : NULL;

    event_record_step(key, 0, 0);
    if (r) {
        ADD(&r->proxy_steps, 1);
        ring_touch(&me.ring, s->op);
    }
    if (s)
        __atomic_store_n(&s->turn, (uint32_t)(key >> 16) + 1, __ATOMIC_RELEASE);
}
