/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and completions: what is posted is carried in order, by whoever comes first. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs_fake.h"

enum { EVENT_CQ = 0, GARBAGE = 0x5a };

/* --- completions --- */
static void overrun(struct cq *cq)
{
    if (cq->overrun)
        return;
    cq->overrun = true;
    tell_event(hca_of(cq->pub.hca), (struct verbs_event){.cq = &cq->pub, .type = EVENT_CQ});
    for (struct qp *q = fake_qps; q; q = q->next)
        if (q->pub.send_cq == &cq->pub || q->pub.recv_cq == &cq->pub)
            qp_fail(q, VERBS_EVENT_QP_FATAL);
}

static void complete(struct verbs_cq *to, struct cqe e)
{
    struct cq *cq = (struct cq *)to;

    if (cq->used == cq->entries)
        overrun(cq);
    else
        cq->cqe[(cq->first + cq->used++) % cq->entries] = e;
}

/* What a failed one does not say is garbage. */
static struct verbs_wc completion(const struct qp *q, uint64_t id, int status)
{
    struct verbs_wc wc = {0};

    if (status)
        memset(&wc, GARBAGE, sizeof(wc)); /* poison */
    wc.id = id;
    wc.status = status;
    wc.qp = q->pub.number;
    wc.vendor_error = !status                             ? 0
                      : status == VERBS_WC_RETRY_EXCEEDED ? 0x81
                      : status == VERBS_WC_REMOTE_ACCESS  ? 0x88
                                                          : 0x50U + (unsigned)status;
    return wc;
}

static void sent(struct qp *q, struct send *s, int status)
{
    static const int opcode[] = {VERBS_WC_OP_WRITE, VERBS_WC_OP_WRITE, VERBS_WC_OP_SEND,
                                 VERBS_WC_OP_SEND, VERBS_WC_OP_READ};
    struct cqe e = {completion(q, s->wr.id, status), q, ++q->done};

    if (!status) {
        e.wc.opcode = opcode[s->wr.opcode];
        e.wc.bytes = s->bytes;
    }
    free(s->inlined);
    s->inlined = NULL;
    if (status || q->init.signal_all || (s->wr.flags & VERBS_SIGNALED))
        complete(q->pub.send_cq, e);
}

static void received(struct qp *q, const struct shared_recv *r, int status)
{
    struct cqe e = {completion(q, r->id, status), NULL, 0};

    if (!status) {
        e.wc.opcode = r->opcode;
        e.wc.bytes = r->bytes;
        e.wc.imm = r->imm;
        e.wc.flags = r->flags;
    }
    complete(q->pub.recv_cq, e);
}

/* --- what goes on --- */
void qp_fail(struct qp *q, int event)
{
    if (q->pub.state == VERBS_QP_ERROR)
        return;
    q->pub.state = VERBS_QP_ERROR;
    atomic_store(&q->shared->state, VERBS_QP_ERROR);
    if (event)
        tell_event(hca_of(q->pub.hca), (struct verbs_event){.qp = &q->pub, .type = event});
}

/* As mlx5 does: what nobody has polled yet is no longer there. */
static void clean(struct verbs_cq *of, uint32_t number)
{
    struct cq *cq = (struct cq *)of;
    int kept = 0;

    for (int i = 0; i < cq->used; i++) {
        struct cqe *e = &cq->cqe[(cq->first + i) % cq->entries];
        if (e->wc.qp != number)
            cq->cqe[(cq->first + kept++) % cq->entries] = *e;
    }
    cq->used = kept;
}

void qp_forget(struct qp *q)
{
    for (; q->done != q->posted; q->done++)
        free(q->sq[q->done % (q->init.cap.send_wrs + 1)].inlined);
    q->posted = q->done = q->retired = 0;
    clean(q->pub.send_cq, q->pub.number);
    clean(q->pub.recv_cq, q->pub.number);
    fabric_lock(&q->shared->lock);
    atomic_store(&q->shared->posted, 0);
    atomic_store(&q->shared->filled, 0);
    atomic_store(&q->shared->polled, 0);
    atomic_store(&q->shared->event, 0);
    pthread_mutex_unlock(&q->shared->lock);
}

static int peer_rank(const struct qp *q)
{
    const struct shared_qp *r = fabric_find(q->attr.dest_qp);

    return r ? r->rank : -1;
}

/* Receives that peers filled; in error the rest is flushed. */
static void take_received(struct qp *q)
{
    struct shared_qp *s = q->shared;
    unsigned i = atomic_load(&s->polled);

    for (; i != atomic_load(&s->filled); i++) {
        const struct shared_recv *r = &s->recv[i % FAKE_RECVS];
        int status = r->status ? r->status : fault_of_recv(s->place, peer_rank(q));
        received(q, r, status);
        if (status)
            qp_fail(q, 0);
        atomic_store(&s->polled, i + 1);
    }
    if (q->pub.state != VERBS_QP_ERROR)
        return;
    fabric_lock(&s->lock); /* nobody fills any more */
    for (i = atomic_load(&s->polled); i != atomic_load(&s->posted); i++)
        received(q, &s->recv[i % FAKE_RECVS],
                 (int)(atomic_load(&s->filled) - i) > 0 ? s->recv[i % FAKE_RECVS].status
                                                        : VERBS_WC_FLUSHED);
    atomic_store(&s->filled, i);
    atomic_store(&s->polled, i);
    pthread_mutex_unlock(&s->lock);
}

static void take_sent(struct qp *q)
{
    while (q->done != q->posted) {
        struct send *s = &q->sq[q->done % (q->init.cap.send_wrs + 1)];
        int status = VERBS_WC_FLUSHED;

        if (q->pub.state != VERBS_QP_ERROR)
            status = fake_now() < s->due ? -1 : carry(q, s);
        if (status < 0)
            return;
        if (status)
            qp_fail(q, 0);
        sent(q, s, status);
    }
}

/* Everyone hears of a port that went down, and of a device that is lost. */
static void hear(struct hca *h)
{
    struct fabric *f = fabric();
    int host = text_host();

    for (int p = 0; p < FAKE_PORTS; p++)
        if (!h->down[p] && atomic_load(&f->down[host][h->index][p])) {
            h->down[p] = true;
            tell_event(h, (struct verbs_event){.port = p + 1, .type = VERBS_EVENT_PORT_ERROR});
        }
    if (h->gone || !atomic_load(&f->gone[host][h->index]))
        return;
    h->gone = true;
    tell_event(h, (struct verbs_event){.type = VERBS_EVENT_DEVICE_FATAL});
    for (struct qp *q = fake_qps; q; q = q->next)
        if (q->pub.hca == &h->pub)
            qp_fail(q, 0);
}

void move_all(void)
{
    for (struct hca *h = fake_hcas; h; h = h->next)
        hear(h);
    for (struct qp *q = fake_qps; q; q = q->next) {
        if (q->pub.state != VERBS_QP_RESET && atomic_load(&q->shared->state) == VERBS_QP_ERROR)
            qp_fail(q, atomic_exchange(&q->shared->event, 0));
        take_sent(q);
        take_received(q);
    }
}

/* --- the thread --- */
static bool waiting(void)
{
    for (struct qp *q = fake_qps; q; q = q->next)
        if (q->done != q->posted)
            return true;
    return false;
}

static void *go_on(void *unused)
{
    for (;;) {
        struct timespec t = {0, 0};

        pthread_mutex_lock(&fake_lock);
        move_all();
        t.tv_nsec = waiting() ? 50000 : 5000000;
        pthread_mutex_unlock(&fake_lock);
        nanosleep(&t, NULL);
    }
    return unused;
}

static void start(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, go_on, NULL))
        abort();
    pthread_detach(thread);
}

void move_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start);
}

/* --- posting --- */
static int bad_send(const struct qp *q, const struct verbs_send_wr *wr, size_t *bytes)
{
    *bytes = 0;
    if (q->pub.state != VERBS_QP_RTS && q->pub.state != VERBS_QP_ERROR)
        return EINVAL;
    if (wr->opcode < VERBS_WRITE || wr->opcode > VERBS_READ || wr->n_sges < 0 ||
        wr->n_sges > (int)q->init.cap.send_sges)
        return EINVAL;
    for (int i = 0; i < wr->n_sges; i++)
        *bytes += wr->sges[i].bytes;
    if (wr->flags & VERBS_INLINE && (wr->opcode == VERBS_READ || *bytes > q->init.cap.inline_bytes))
        return wr->opcode == VERBS_READ ? EINVAL : ENOMEM;
    return q->posted - q->retired >= q->init.cap.send_wrs ? ENOMEM : 0;
}

static unsigned char *take_inline(const struct verbs_send_wr *wr, size_t bytes)
{
    unsigned char *all = malloc(bytes + 1), *at = all;

    for (int i = 0; i < wr->n_sges; at += wr->sges[i++].bytes)
        memcpy(at, (void *)(uintptr_t)wr->sges[i].at, wr->sges[i].bytes);
    return all;
}

static void harm(const struct qp *q, struct send *s)
{
    struct fake_place p = q->shared->place;
    struct shared_qp *r = fabric_find(q->attr.dest_qp);

    s->harm = fault_of_send(p, peer_rank(q), s->bytes);
    if (s->harm.down)
        atomic_store(&fabric()->down[p.host][p.card][p.port - 1], 1);
    if (s->harm.gone)
        atomic_store(&fabric()->gone[p.host][p.card], 1);
    if (r)
        s->due = s->wr.opcode == VERBS_READ ? fabric_reserve(r->place, p, s->bytes)
                                            : fabric_reserve(p, r->place, s->bytes);
}

static int post_one(struct qp *q, const struct verbs_send_wr *wr)
{
    size_t bytes;
    int rc = bad_send(q, wr, &bytes);

    if (rc)
        return rc;
    struct send *s = &q->sq[q->posted % (q->init.cap.send_wrs + 1)];
    *s = (struct send){.wr = *wr, .bytes = (uint32_t)bytes};
    for (int i = 0; i < wr->n_sges; i++)
        s->sge[i] = wr->sges[i];
    if (wr->flags & VERBS_INLINE)
        s->inlined = take_inline(wr, bytes);
    harm(q, s);
    q->posted++;
    return 0;
}

int move_post_send(struct verbs_qp *qp, struct verbs_send_wr *wr, struct verbs_send_wr **bad)
{
    int rc = 0;

    pthread_mutex_lock(&fake_lock);
    for (; wr && !rc; wr = rc ? wr : wr->next) {
        rc = post_one((struct qp *)qp, wr);
        if (rc)
            *bad = wr;
    }
    move_all();
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

static int post_recv(struct qp *q, const struct verbs_recv_wr *wr)
{
    struct shared_qp *s = q->shared;
    unsigned at = atomic_load(&s->posted);
    struct shared_recv *r = &s->recv[at % FAKE_RECVS];

    if (q->pub.state == VERBS_QP_RESET || wr->n_sges < 0 || wr->n_sges > (int)q->init.cap.recv_sges)
        return EINVAL;
    if (at - atomic_load(&s->polled) >= q->init.cap.recv_wrs)
        return ENOMEM;
    *r = (struct shared_recv){.id = wr->id, .sges = wr->n_sges};
    for (int i = 0; i < wr->n_sges; i++) {
        const struct verbs_sge *e = &wr->sges[i];
        unsigned char *to =
            e->bytes ? mr_span(q->pub.pd, e->lkey, e->at, e->bytes, VERBS_ACCESS_LOCAL_WRITE)
                     : NULL;
        r->bad_key |= e->bytes && !to;
        r->sge[i].at = (uint64_t)(uintptr_t)to;
        r->sge[i].bytes = e->bytes;
    }
    atomic_store(&s->posted, at + 1);
    return 0;
}

int move_post_recv(struct verbs_qp *qp, struct verbs_recv_wr *wr, struct verbs_recv_wr **bad)
{
    int rc = 0;

    pthread_mutex_lock(&fake_lock);
    for (; wr && !rc; wr = rc ? wr : wr->next) {
        rc = post_recv((struct qp *)qp, wr);
        if (rc)
            *bad = wr;
    }
    move_all();
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

int move_poll(struct verbs_cq *cq, int n, struct verbs_wc *wcs)
{
    struct cq *c = (struct cq *)cq;
    int taken;

    pthread_mutex_lock(&fake_lock);
    move_all();
    for (taken = 0; taken < n && c->used; taken++) {
        struct cqe *e = &c->cqe[c->first];
        wcs[taken] = e->wc;
        if (e->qp) /* the room of all requests up to this one is free again */
            e->qp->retired = e->retires;
        c->first = (c->first + 1) % c->entries;
        c->used--;
    }
    pthread_mutex_unlock(&fake_lock);
    if (!taken)
        sched_yield(); /* there may be more ranks than cores */
    return taken;
}
