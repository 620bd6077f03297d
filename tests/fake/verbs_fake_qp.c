/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for libibverbs: completion queues, queue pairs and what their states allow.
 *
 * What must and may be set on which way is Linux' drivers/infiniband/core/verbs.c, qp_state_table
 * (RC); limits of values are those of mlx5 (drivers/infiniband/hw/mlx5/qp.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_fake.h"

#define API(type, name, ...)                                                                       \
    EXPORT type ibv_##name(__VA_ARGS__);                                                           \
    type ibv_##name(__VA_ARGS__)

struct qp *fake_qps;

/* --- completion queues --- */
API(struct verbs_cq *, create_cq, struct verbs_hca *hca, int entries, void *user, void *channel,
    int vector)
{
    (void)user;
    if (entries < 1 || entries > hca_of(hca)->card->max_cqe || channel || vector < 0 ||
        vector >= hca->completion_vectors) {
        errno = EINVAL;
        return NULL;
    }
    struct cq *cq = calloc(1, sizeof(*cq));
    cq->pub.hca = hca;
    cq->entries = entries;
    cq->cqe = calloc((size_t)entries, sizeof(*cq->cqe));
    return &cq->pub;
}

API(int, destroy_cq, struct verbs_cq *cq)
{
    struct cq *c = (struct cq *)cq;

    if (c->users)
        return EBUSY;
    free(c->cqe);
    free(c);
    return 0;
}

/* --- queue pairs --- */
struct fake_place place_of(const struct qp *q)
{
    return (struct fake_place){text_host(), hca_of(q->pub.hca)->index,
                               q->attr.port ? q->attr.port : 1};
}

static int refused(const struct verbs_pd *pd, const struct verbs_qp_init *init)
{
    const struct fake_card *c = hca_of(pd->hca)->card;
    const struct verbs_qp_cap *cap = &init->cap;

    if (init->type != VERBS_RC || init->srq)
        return EOPNOTSUPP;
    return !init->send_cq || !init->recv_cq || init->send_cq->hca != pd->hca ||
                   init->recv_cq->hca != pd->hca || cap->send_wrs > (uint32_t)c->max_qp_wr ||
                   cap->recv_wrs > (uint32_t)c->max_qp_wr || cap->recv_wrs > FAKE_RECVS ||
                   cap->send_sges > (uint32_t)c->max_sge || cap->send_sges > FAKE_SGES ||
                   cap->recv_sges > (uint32_t)c->max_sge || cap->recv_sges > FAKE_SGES ||
                   cap->inline_bytes > (uint32_t)c->max_inline
               ? EINVAL
               : 0;
}

static int count_qps(const struct verbs_hca *hca)
{
    int n = 0;

    for (struct qp *q = fake_qps; q; q = q->next)
        n += q->pub.hca == hca;
    return n;
}

API(struct verbs_qp *, create_qp, struct verbs_pd *pd, struct verbs_qp_init *init)
{
    struct shared_qp *s = NULL;
    struct qp *q = NULL;

    pthread_mutex_lock(&fake_lock);
    errno = refused(pd, init);
    if (!errno && (count_qps(pd->hca) >= hca_of(pd->hca)->card->max_qp || !(s = fabric_qp())))
        errno = ENOMEM;
    if (s) {
        q = calloc(1, sizeof(*q));
        q->pub = (struct verbs_qp){.hca = pd->hca,
                                   .user = init->user,
                                   .pd = pd,
                                   .send_cq = init->send_cq,
                                   .recv_cq = init->recv_cq,
                                   .number = atomic_load(&s->number),
                                   .type = VERBS_RC};
        q->init = *init;
        q->shared = s;
        s->pd = ((struct pd *)pd)->id;
        q->sq = calloc(init->cap.send_wrs + 1, sizeof(*q->sq));
        ((struct pd *)pd)->users++;
        ((struct cq *)init->send_cq)->users++;
        ((struct cq *)init->recv_cq)->users++;
        q->next = fake_qps;
        fake_qps = q;
    }
    pthread_mutex_unlock(&fake_lock);
    return q ? &q->pub : NULL;
}

API(int, destroy_qp, struct verbs_qp *qp)
{
    struct qp *q = (struct qp *)qp, **link = &fake_qps;

    pthread_mutex_lock(&fake_lock);
    while (*link != q)
        link = &(*link)->next;
    *link = q->next;
    qp_forget(q);
    fabric_lock(&q->shared->lock); /* a peer that is filling a receive ends first */
    atomic_store(&q->shared->number, 0);
    pthread_mutex_unlock(&q->shared->lock);
    ((struct pd *)qp->pd)->users--;
    ((struct cq *)qp->send_cq)->users--;
    ((struct cq *)qp->recv_cq)->users--;
    pthread_mutex_unlock(&fake_lock);
    free(q->sq);
    free(q);
    return 0;
}

/* --- states --- */
static const struct {
    int from, to, needs, may;
} ways[] = {
    {VERBS_QP_RESET, VERBS_QP_INIT, VERBS_SET_PKEY_INDEX | VERBS_SET_PORT | VERBS_SET_ACCESS, 0},
    {VERBS_QP_INIT, VERBS_QP_INIT, 0, VERBS_SET_PKEY_INDEX | VERBS_SET_PORT | VERBS_SET_ACCESS},
    {VERBS_QP_INIT, VERBS_QP_RTR,
     VERBS_SET_AV | VERBS_SET_PATH_MTU | VERBS_SET_DEST_QP | VERBS_SET_RQ_PSN |
         VERBS_SET_MAX_DEST_READS | VERBS_SET_MIN_RNR_TIMER,
     VERBS_SET_ACCESS | VERBS_SET_PKEY_INDEX},
    {VERBS_QP_RTR, VERBS_QP_RTS,
     VERBS_SET_TIMEOUT | VERBS_SET_RETRY_COUNT | VERBS_SET_RNR_RETRY | VERBS_SET_SQ_PSN |
         VERBS_SET_MAX_READS,
     VERBS_SET_ACCESS | VERBS_SET_MIN_RNR_TIMER},
    {VERBS_QP_RTS, VERBS_QP_RTS, 0, VERBS_SET_ACCESS | VERBS_SET_MIN_RNR_TIMER},
};

static bool is_way(int from, int to, int set)
{
    set &= ~VERBS_SET_STATE;
    if (to == VERBS_QP_ERROR || to == VERBS_QP_RESET)
        return set == 0;
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if (ways[i].from == from && ways[i].to == to)
            return (set & ways[i].needs) == ways[i].needs &&
                   !(set & ~(ways[i].needs | ways[i].may));
    return false;
}

static bool bad_values(const struct qp *q, const struct verbs_qp_attr *a, int set)
{
    const struct fake_card *c = hca_of(q->pub.hca)->card;
    struct fake_place p = place_of(q);

    return ((set & VERBS_SET_PORT) && (a->port < 1 || a->port > c->ports)) ||
           ((set & VERBS_SET_PKEY_INDEX) && a->pkey_index >= text_port(p)->pkeys) ||
           ((set & VERBS_SET_PATH_MTU) &&
            (a->path_mtu < VERBS_MTU_256 || a->path_mtu > text_port(p)->mtu)) ||
           ((set & VERBS_SET_DEST_QP) && a->dest_qp >> 24) ||
           ((set & VERBS_SET_RQ_PSN) && a->rq_psn >> 24) ||
           ((set & VERBS_SET_SQ_PSN) && a->sq_psn >> 24) ||
           ((set & VERBS_SET_TIMEOUT) && a->timeout > 31) ||
           ((set & VERBS_SET_RETRY_COUNT) && a->retry_count > 7) ||
           ((set & VERBS_SET_RNR_RETRY) && a->rnr_retry > 7) ||
           ((set & VERBS_SET_MIN_RNR_TIMER) && a->min_rnr_timer > 31) ||
           ((set & VERBS_SET_MAX_READS) && a->max_reads > c->max_reads) ||
           ((set & VERBS_SET_MAX_DEST_READS) && a->max_dest_reads > c->max_reads);
}

/* Does any interface of this subnet have the address?  Else nobody answers who is asked for it. */
static bool known_address(const union verbs_gid *gid, const char *subnet)
{
    const struct fake_text *t = text_of();
    struct verbs_gid_entry e;
    struct fake_place p;

    for (p.host = 0; p.host < (t->hosts ? t->hosts : 1); p.host++)
        for (p.card = 0; p.card < t->cards; p.card++)
            for (p.port = 1; p.port <= t->card[p.card].ports && p.port <= FAKE_PORTS; p.port++)
                for (int i = 0; i < FAKE_GIDS && !strcmp(text_port(p)->subnet, subnet); i++)
                    if (text_gid(p, i, &e) && !memcmp(&e.gid, gid, sizeof(*gid)))
                        return true;
    return false;
}

/* 0, or what the kernel answers to an address of a peer. */
static int bad_address(const struct qp *q, const struct verbs_ah_attr *ah)
{
    struct fake_place p = place_of(q);
    bool roce = text_port(p)->layer == VERBS_LINK_ETHERNET;
    struct verbs_gid_entry e;

    if (ah->port != q->attr.port || (roce && !ah->is_global))
        return EINVAL;
    if (ah->is_global && !text_gid(p, ah->grh.sgid_index, &e))
        return EINVAL;
    if (!roce)
        return 0;
    if (ah->grh.dgid.raw[0] != 0xfe && text_ipv4(&e.gid) != text_ipv4(&ah->grh.dgid))
        return EINVAL; /* of two families: no route; one of the link needs none */
    return known_address(&ah->grh.dgid, text_port(p)->subnet) ? 0 : ETIMEDOUT;
}

#define TAKE(bit, member)                                                                          \
    if (set & (bit))                                                                               \
    q->attr.member = a->member
static void take(struct qp *q, const struct verbs_qp_attr *a, int set)
{
    TAKE(VERBS_SET_ACCESS, access);
    TAKE(VERBS_SET_PKEY_INDEX, pkey_index);
    TAKE(VERBS_SET_PORT, port);
    TAKE(VERBS_SET_AV, ah);
    TAKE(VERBS_SET_PATH_MTU, path_mtu);
    TAKE(VERBS_SET_TIMEOUT, timeout);
    TAKE(VERBS_SET_RETRY_COUNT, retry_count);
    TAKE(VERBS_SET_RNR_RETRY, rnr_retry);
    TAKE(VERBS_SET_RQ_PSN, rq_psn);
    TAKE(VERBS_SET_MAX_READS, max_reads);
    TAKE(VERBS_SET_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(VERBS_SET_SQ_PSN, sq_psn);
    TAKE(VERBS_SET_MAX_DEST_READS, max_dest_reads);
    TAKE(VERBS_SET_DEST_QP, dest_qp);
}

/* What peers must know of it. */
static void publish(struct qp *q)
{
    struct shared_qp *s = q->shared;

    fabric_lock(&s->lock);
    s->place = place_of(q);
    s->access = q->attr.access;
    s->dest = q->attr.dest_qp;
    s->rq_psn = q->attr.rq_psn;
    s->path_mtu = q->attr.path_mtu;
    s->max_dest_reads = q->attr.max_dest_reads;
    s->min_rnr_timer = q->attr.min_rnr_timer;
    s->ah = q->attr.ah;
    text_gid(s->place, q->attr.ah.grh.sgid_index, &s->sgid);
    atomic_store(&s->state, q->pub.state);
    pthread_mutex_unlock(&s->lock);
}

static int modify(struct qp *q, const struct verbs_qp_attr *a, int set)
{
    int to = set & VERBS_SET_STATE ? a->state : q->pub.state, rc;

    if (hca_of(q->pub.hca)->gone)
        return EIO;
    if (!is_way(q->pub.state, to, set) || bad_values(q, a, set))
        return EINVAL;
    rc = set & VERBS_SET_AV ? bad_address(q, &a->ah) : 0;
    if (rc)
        return rc;
    take(q, a, set);
    if (to == VERBS_QP_ERROR) {
        qp_fail(q, 0);
        return 0;
    }
    q->pub.state = to;
    publish(q);
    if (to == VERBS_QP_RESET)
        qp_forget(q);
    return 0;
}

API(int, modify_qp, struct verbs_qp *qp, struct verbs_qp_attr *attr, int set)
{
    int rc;

    pthread_mutex_lock(&fake_lock);
    move_all(); /* its state may be another by now */
    rc = modify((struct qp *)qp, attr, set);
    move_all();
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

API(int, query_qp, struct verbs_qp *qp, struct verbs_qp_attr *attr, int get,
    struct verbs_qp_init *init)
{
    struct qp *q = (struct qp *)qp;

    (void)get;
    pthread_mutex_lock(&fake_lock);
    move_all();
    *attr = q->attr;
    attr->state = attr->current_state = q->pub.state;
    attr->cap = q->init.cap;
    *init = q->init;
    pthread_mutex_unlock(&fake_lock);
    return 0;
}

/* --- what both ends' providers agree on --- */
enum { MELLANOX = 0x15b3, ECE_OPTIONS = 0x30000002 };

API(int, query_ece, struct verbs_qp *qp, struct verbs_ece *ece)
{
    bool has = hca_of(qp->hca)->card->ece;

    *ece = has ? (struct verbs_ece){.vendor = MELLANOX, .options = ECE_OPTIONS}
               : (struct verbs_ece){0};
    return has ? 0 : EOPNOTSUPP;
}

API(int, set_ece, struct verbs_qp *qp, struct verbs_ece *ece)
{
    if (!hca_of(qp->hca)->card->ece)
        return EOPNOTSUPP;
    return ece->mask || (ece->vendor && ece->vendor != MELLANOX) || qp->state > VERBS_QP_INIT
               ? EINVAL
               : 0;
}

/* Since 1.14: does the last byte of a message arrive last? */
API(int, query_qp_data_in_order, struct verbs_qp *qp, int opcode, uint32_t flags)
{
    return hca_of(qp->hca)->card->ordered && opcode <= VERBS_READ && !flags;
}
