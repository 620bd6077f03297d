/* SPDX-License-Identifier: BSD-3-Clause */
/* One request of a queue pair: what its own side checks, whether there is a way, what the peer
 * checks, and the bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_fake.h"

enum { NOT_YET = -1, EVENT_REQUEST = 2, EVENT_ACCESS = 3 };

/* ms, of InfiniBand's encoded timer (IBTA 9.7.5.2.8) */
static const double rnr_ms[32] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                  0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                  2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                  40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

/* --- is there a way? --- */
/* Does what one end sends arrive at the other?  A queue pair knows packets of its own kind. */
static bool arrives(const struct shared_qp *from, const struct shared_qp *to)
{
    const struct fake_port *a = text_port(from->place), *b = text_port(to->place);
    const union verbs_gid *gid = &from->ah.grh.dgid;
    struct verbs_gid_entry e;

    if (!fabric_active(from->place) || !fabric_active(to->place) || a->layer != b->layer ||
        strcmp(a->subnet, b->subnet) != 0)
        return false;
    if (a->layer == VERBS_LINK_INFINIBAND && from->ah.dlid != text_lid(to->place))
        return false;
    if (!from->ah.is_global)
        return true;
    if (from->sgid.type != to->sgid.type ||
        (from->sgid.type == VERBS_GID_ROCE_V2 && text_ipv4(&from->sgid.gid) != text_ipv4(gid)))
        return false;
    for (int i = 0; i < FAKE_GIDS; i++)
        if (text_gid(to->place, i, &e) && !memcmp(&e.gid, gid, sizeof(e.gid)) &&
            e.type == from->sgid.type)
            return true;
    return false;
}

/* The peer's end, NULL: nobody answers. */
static struct shared_qp *peer_of(const struct qp *q)
{
    struct shared_qp *r = fabric_find(q->attr.dest_qp);
    int state = r ? atomic_load(&r->state) : VERBS_QP_RESET;

    if ((state != VERBS_QP_RTR && state != VERBS_QP_RTS) || r->dest != q->pub.number ||
        r->rq_psn != q->attr.sq_psn || !arrives(q->shared, r) || !arrives(r, q->shared))
        return NULL;
    return r;
}

static int after(struct send *s, double seconds, int status)
{
    double now = fake_now();

    if (!s->since)
        s->since = now;
    return now - s->since >= seconds ? status : NOT_YET;
}

static int nobody(const struct qp *q, struct send *s)
{
    double each = 4.096e-6 * (double)(UINT64_C(1) << q->attr.timeout);

    if (!q->attr.timeout)
        return NOT_YET; /* for ever */
    return after(s, each * (q->attr.retry_count + 1), VERBS_WC_RETRY_EXCEEDED);
}

static int not_ready(const struct qp *q, struct send *s, const struct shared_qp *r)
{
    if (q->attr.rnr_retry == 7)
        return NOT_YET;
    return after(s, rnr_ms[r->min_rnr_timer & 31] * 1e-3 * (q->attr.rnr_retry + 1),
                 VERBS_WC_RNR_RETRY_EXCEEDED);
}

/* --- bytes --- */
static bool copy(int pid, bool to_peer, struct iovec *mine, int n, struct iovec *its, int m,
                 size_t bytes)
{
    ssize_t done = !bytes ? 0
                   : to_peer
                       ? process_vm_writev(pid, mine, (unsigned long)n, its, (unsigned long)m, 0)
                       : process_vm_readv(pid, mine, (unsigned long)n, its, (unsigned long)m, 0);

    return done == (ssize_t)bytes;
}

static void flip(struct iovec *v, int n, long offset)
{
    for (int i = 0; i < n; offset -= (long)v[i++].iov_len)
        if (offset < (long)v[i].iov_len) {
            ((unsigned char *)v[i].iov_base)[offset] ^= 0xff;
            return;
        }
}

/* What is sent is wrong, what it is sent from is not. */
static unsigned char *spoil(struct iovec *v, int *n, size_t bytes, long offset)
{
    unsigned char *all = malloc(bytes), *at = all;

    for (int i = 0; i < *n; at += v[i++].iov_len)
        memcpy(at, v[i].iov_base, v[i].iov_len);
    v[0] = (struct iovec){all, bytes};
    *n = 1;
    flip(v, 1, offset);
    return all;
}

/* ESRCH: the peer died; EFAULT: its memory is no longer there.  0 or an errno. */
static int transfer(struct send *s, const struct shared_qp *r, bool to_peer, struct iovec *mine,
                    int n, struct iovec *its, int m, size_t bytes)
{
    bool wrong = s->harm.corrupt >= 0 && (size_t)s->harm.corrupt < bytes;
    unsigned char *scratch = wrong && to_peer ? spoil(mine, &n, bytes, s->harm.corrupt) : NULL;
    int rc;

    errno = 0;
    rc = copy(atomic_load(&r->pid), to_peer, mine, n, its, m, bytes) ? 0 : errno ? errno : EFAULT;
    if (!rc && wrong && !to_peer)
        flip(mine, n, s->harm.corrupt);
    free(scratch);
    return rc;
}

/* --- its own side --- */
/* The spans; -1, or a status. */
static int spans(const struct qp *q, const struct send *s, struct iovec *v)
{
    int access = s->wr.opcode == VERBS_READ ? VERBS_ACCESS_LOCAL_WRITE : 0;

    if (s->inlined) {
        v[0] = (struct iovec){s->inlined, s->bytes};
        return NOT_YET;
    }
    for (int i = 0; i < s->wr.n_sges; i++) {
        const struct verbs_sge *e = &s->sge[i];
        unsigned char *at = e->bytes ? mr_span(q->pub.pd, e->lkey, e->at, e->bytes, access) : NULL;
        if (e->bytes && !at)
            return VERBS_WC_LOCAL_PROTECTION;
        v[i] = (struct iovec){at, e->bytes};
    }
    return NOT_YET;
}

/* --- the peer's side --- */
static int peer_fails(struct shared_qp *r, int event, int status)
{
    atomic_store(&r->event, event);
    atomic_store(&r->state, VERBS_QP_ERROR);
    return status;
}

/* Where a write or read goes; 0, or a status. */
static int remote_span(struct shared_qp *r, const struct send *s, struct iovec *its)
{
    unsigned access =
        s->wr.opcode == VERBS_READ ? VERBS_ACCESS_REMOTE_READ : VERBS_ACCESS_REMOTE_WRITE;
    struct shared_mr *m = fabric_key(s->wr.rkey);

    *its = (struct iovec){NULL, 0};
    if (!s->bytes)
        return 0; /* nothing is looked up for nothing */
    if (!(r->access & access) || !m || m->pd != r->pd ||
        atomic_load(&m->pid) != atomic_load(&r->pid) || !(m->access & access) ||
        s->wr.remote < m->iova || s->bytes > m->bytes ||
        s->wr.remote - m->iova > m->bytes - s->bytes)
        return peer_fails(r, EVENT_ACCESS, VERBS_WC_REMOTE_ACCESS);
    *its = (struct iovec){(void *)(uintptr_t)(m->at + (s->wr.remote - m->iova)), s->bytes};
    return 0;
}

static bool takes_recv(int opcode)
{
    return opcode == VERBS_SEND || opcode == VERBS_SEND_IMM || opcode == VERBS_WRITE_IMM;
}

static struct shared_recv *next_recv(struct shared_qp *r)
{
    unsigned filled = atomic_load(&r->filled);

    return filled != atomic_load(&r->posted) ? &r->recv[filled % FAKE_RECVS] : NULL;
}

/* The spans of a posted receive; 0, or the status of the sender; *status: the receiver's. */
static int recv_spans(const struct shared_recv *slot, const struct send *s, struct iovec *its,
                      int *n, int *status)
{
    size_t left = s->bytes;

    *n = 0;
    *status = slot->bad_key ? VERBS_WC_LOCAL_PROTECTION : 0;
    if (slot->bad_key)
        return VERBS_WC_REMOTE_OPERATION;
    for (int i = 0; i < slot->sges && left; i++) {
        size_t part = left < slot->sge[i].bytes ? left : slot->sge[i].bytes;
        its[(*n)++] = (struct iovec){(void *)(uintptr_t)slot->sge[i].at, part};
        left -= part;
    }
    *status = left ? VERBS_WC_LOCAL_LENGTH : 0;
    return left ? VERBS_WC_REMOTE_INVALID_REQUEST : 0;
}

static void fill(struct shared_qp *r, struct shared_recv *slot, const struct send *s, int status)
{
    bool imm = s->wr.opcode == VERBS_SEND_IMM || s->wr.opcode == VERBS_WRITE_IMM;

    slot->status = status;
    slot->opcode = s->wr.opcode == VERBS_WRITE_IMM ? VERBS_WC_OP_RECV_WRITE_IMM : VERBS_WC_OP_RECV;
    slot->bytes = s->bytes;
    slot->imm = imm ? s->wr.imm : 0;
    slot->flags = imm ? VERBS_WC_WITH_IMM : 0;
    atomic_fetch_add(&r->filled, 1);
}

/* With the peer's lock. */
static int deliver(struct qp *q, struct send *s, struct shared_qp *r)
{
    struct iovec mine[FAKE_SGES], its[FAKE_SGES] = {{0}};
    struct shared_recv *slot = takes_recv(s->wr.opcode) ? next_recv(r) : NULL;
    int n = s->inlined ? 1 : s->wr.n_sges, m = 1, recv_status = 0, rc;

    spans(q, s, mine);
    if (takes_recv(s->wr.opcode) && !slot)
        return not_ready(q, s, r);
    if (s->bytes > 128U << r->path_mtu && r->path_mtu < q->attr.path_mtu)
        return peer_fails(r, EVENT_REQUEST, VERBS_WC_REMOTE_INVALID_REQUEST);
    if (s->wr.opcode == VERBS_READ && !r->max_dest_reads)
        return peer_fails(r, EVENT_REQUEST, VERBS_WC_REMOTE_INVALID_REQUEST);
    if (slot && s->wr.opcode != VERBS_WRITE_IMM)
        rc = recv_spans(slot, s, its, &m, &recv_status);
    else
        rc = remote_span(r, s, its);
    if (rc && recv_status) {
        fill(r, slot, s, recv_status);
        return peer_fails(r, EVENT_REQUEST, rc);
    }
    if (rc)
        return rc;
    rc = transfer(s, r, s->wr.opcode != VERBS_READ, mine, n, its, m, s->bytes);
    if (rc == ESRCH)
        return nobody(q, s);
    if (rc)
        return peer_fails(r, EVENT_ACCESS, VERBS_WC_REMOTE_OPERATION);
    if (slot)
        fill(r, slot, s, fault_of_recv(r->place, q->shared->rank));
    return VERBS_WC_SUCCESS;
}

int carry(struct qp *q, struct send *s)
{
    struct iovec mine[FAKE_SGES];
    struct shared_qp *r;
    int status = spans(q, s, mine);

    if (status < 0 && s->bytes > text_port(q->shared->place)->max_message)
        status = VERBS_WC_LOCAL_LENGTH;
    if (status < 0 && s->wr.opcode == VERBS_READ && !q->attr.max_reads)
        status = VERBS_WC_LOCAL_QP_OPERATION;
    if (status >= 0 || s->harm.status)
        return status >= 0 ? status : s->harm.status;
    if (s->harm.hang)
        return NOT_YET;
    r = s->harm.lost ? NULL : peer_of(q);
    if (!r)
        return nobody(q, s);
    fabric_lock(&r->lock);
    status = atomic_load(&r->number) == q->attr.dest_qp ? deliver(q, s, r) : nobody(q, s);
    pthread_mutex_unlock(&r->lock);
    return status;
}
