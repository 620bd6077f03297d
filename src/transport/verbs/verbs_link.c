/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_link_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/verbs_api.h"

enum {
    SENDS = 128,
    RECVS = 256,
    INLINE = 220,  /* as requested by perftest's latency programs */
    RNR_TIMER = 1, /* 10 us until a retry if the peer had no receive posted */
    RNR_FOREVER = 7,
    HOPS = 64,
    READS = 16
};

static struct verbs_link **pool; /* indexed by peer */
static int pooled;

/* --- create and destroy --- */

long verbs_link_pieces(const struct verbs_link *l, size_t bytes)
{
    return bytes ? (long)((bytes + l->max_message - 1) / l->max_message) : 1;
}

static void close_link(struct verbs_link *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->lanes; i++)
        if (l->lane[i].qp)
            verbs.destroy_qp(l->lane[i].qp);
    if (l->cq)
        verbs.destroy_cq(l->cq);
    free(l);
}

void verbs_link_close_all(void)
{
    for (int i = 0; i < pooled; i++)
        close_link(pool[i]);
    free(pool);
    pool = NULL;
    pooled = 0;
}

static int refused(const struct verbs_link *l, const struct verbs_port *p, const char *what,
                   int code, struct err *err)
{
    const struct verbs_end me = verbs_port_end(p, p->rank), peer = verbs_port_end(p, l->peer);
    const char *hint = code == ENOMEM ? " (all are in use, or ulimit -l)"
                       : code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH
                           ? " (nobody answers for the peer's address)"
                           : "";

    return err_io(err, "rank %d (%s %s) to rank %d (%s %s): %s: %s%s", me.rank, me.host, me.port,
                  peer.rank, peer.host, peer.port, what, strerror(code), hint);
}

static int set_init(struct verbs_link *l, const struct verbs_port *p, struct err *err)
{
    struct verbs_qp_attr a = {.state = VERBS_QP_INIT,
                              .port = (uint8_t)p->number,
                              .pkey_index = p->pkey_index,
                              .access = VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE |
                                        VERBS_ACCESS_REMOTE_READ};

    for (int i = 0; i < l->lanes; i++) {
        int code = verbs.modify_qp(l->lane[i].qp, &a,
                                   VERBS_SET_STATE | VERBS_SET_PKEY_INDEX | VERBS_SET_PORT |
                                       VERBS_SET_ACCESS);
        if (code)
            return refused(l, p, "queue pair to INIT", code, err);
    }
    return 0;
}

static struct verbs_qp *create_qp(struct verbs_link *l, const struct verbs_port *p)
{
    struct verbs_qp_init init = {.send_cq = l->cq,
                                 .recv_cq = l->cq,
                                 .cap = {.send_wrs = (uint32_t)l->sends,
                                         .recv_wrs = (uint32_t)l->recvs,
                                         .send_sges = 1,
                                         .recv_sges = 1,
                                         .inline_bytes = l->inline_bytes},
                                 .type = VERBS_RC};

    // cppcheck-suppress returnDanglingLifetime ; the library copies it
    return verbs.create_qp(p->pd, &init);
}

/* Retry without inline data if a device has no room for small messages in its requests. */
static int create_lanes(struct verbs_link *l, const struct verbs_port *p, int lanes,
                        struct err *err)
{
    for (int i = 0; i < lanes; i++) {
        struct verbs_lane *a = &l->lane[l->lanes++];
        a->qp = create_qp(l, p);
        if (!a->qp && l->inline_bytes && i == 0) {
            l->inline_bytes = 0;
            a->qp = create_qp(l, p);
        }
        if (!a->qp)
            return refused(l, p, "no queue pair", errno, err);
    }
    return 0;
}

static int limited(int wish, int limit)
{
    return limit > 0 && limit < wish ? limit : wish;
}

static int fill_link(struct verbs_link *l, const struct verbs_port *p, const struct verbs_opts *o,
                     struct err *err)
{
    const struct verbs_told *mine = &p->all[p->rank], *theirs = &p->all[l->peer];
    int mtu = verbs_port_mtu(mine, theirs, o->path_mtu, err);

    if (mtu < 0 || verbs_gid_path(&l->path, &mine->address, &theirs->address, err) < 0)
        return -1;
    l->mtu = 128 << mtu;
    l->max_message =
        mine->max_message < theirs->max_message ? mine->max_message : theirs->max_message;
    l->inline_bytes = o->memory ? 0 : INLINE;
    l->sends = limited(SENDS, p->device.max_qp_wr);
    l->recvs = limited(RECVS, p->device.max_qp_wr);
    int entries = limited(o->qps * (l->sends + l->recvs), p->device.max_cqe);
    if (entries < o->qps * (l->sends + l->recvs)) {
        l->sends = entries / (2 * o->qps);
        l->recvs = entries / (2 * o->qps);
    }
    l->cq = verbs.create_cq(p->hca, entries, NULL, NULL, 0);
    if (!l->cq)
        return refused(l, p, "no completion queue", errno, err);
    if (create_lanes(l, p, o->qps, err) < 0 || set_init(l, p, err) < 0)
        return -1;
    if (verbs.query_ece && verbs.set_ece && verbs.query_ece(l->lane[0].qp, &l->ece))
        l->ece = (struct verbs_ece){0};
    return 0;
}

int verbs_link_get(struct verbs_link **out, const struct verbs_port *p, const struct verbs_opts *o,
                   int peer, struct err *err)
{
    if (!pool) {
        pool = mem_calloc((size_t)p->size, sizeof(struct verbs_link *));
        pooled = p->size;
    }
    if (!pool[peer]) {
        struct verbs_link *l = mem_calloc(1, sizeof(*l));
        l->peer = peer;
        if (fill_link(l, p, o, err) < 0) {
            close_link(l);
            return -1;
        }
        pool[peer] = l;
    }
    *out = pool[peer];
    return 0;
}

int verbs_link_reset(struct verbs_link *l, const struct verbs_port *p, struct err *err)
{
    struct verbs_qp_attr a = {.state = VERBS_QP_RESET};
    struct verbs_wc wc;

    for (int i = 0; i < l->lanes; i++) {
        struct verbs_qp *qp = l->lane[i].qp;
        int code = verbs.modify_qp(qp, &a, VERBS_SET_STATE);
        if (code)
            return refused(l, p, "queue pair to RESET", code, err);
        l->lane[i] = (struct verbs_lane){.qp = qp};
    }
    while (verbs_poll_cq(l->cq, 1, &wc) > 0)
        ;
    l->ended = l->arrived = 0;
    return set_init(l, p, err);
}

/* --- connect --- */

void verbs_link_tell(const struct verbs_link *l, struct verbs_card *c)
{
    static uint32_t times;

    c->psn = ++times * 4099 & 0xffffff; /* distinct from numbers of late packets */
    c->ece = l->ece;
    for (int i = 0; i < l->lanes; i++) {
        c->lane[i].number = l->lane[i].qp->number;
        c->lane[i].theirs = l->lane[i].theirs;
    }
}

bool verbs_link_stands(const struct verbs_link *l, const struct verbs_card *theirs)
{
    for (int i = 0; i < l->lanes; i++)
        if (l->lane[i].theirs != theirs->lane[i].number ||
            theirs->lane[i].theirs != l->lane[i].qp->number)
            return false;
    return true;
}

static void set_way(struct verbs_ah_attr *ah, const struct verbs_link *l,
                    const struct verbs_port *p, const struct verbs_opts *o)
{
    *ah = (struct verbs_ah_attr){.dlid = (uint16_t)p->all[l->peer].address.lid,
                                 .sl = (uint8_t)o->sl,
                                 .port = (uint8_t)p->number,
                                 .is_global = l->path.global};
    if (!l->path.global)
        return;
    ah->grh.dgid = l->path.dgid;
    ah->grh.sgid_index = (uint8_t)l->path.sgid_index;
    ah->grh.hop_limit = HOPS;
    ah->grh.traffic_class = (uint8_t)o->traffic_class;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int lane_up(struct verbs_link *l, int i, const struct verbs_port *p,
                   const struct verbs_opts *o, uint32_t psn, const struct verbs_card *theirs,
                   struct err *err)
{
    const struct verbs_told *me = &p->all[p->rank], *peer = &p->all[l->peer];
    struct verbs_qp_attr a = {.state = VERBS_QP_RTR,
                              .path_mtu = __builtin_ctz((unsigned)l->mtu) - 7,
                              .dest_qp = theirs->lane[i].number,
                              .rq_psn = theirs->psn,
                              .max_dest_reads = (uint8_t)least(me->reads_in, READS),
                              .min_rnr_timer = RNR_TIMER};

    set_way(&a.ah, l, p, o);
    int code =
        verbs.modify_qp(l->lane[i].qp, &a,
                        VERBS_SET_STATE | VERBS_SET_AV | VERBS_SET_PATH_MTU | VERBS_SET_DEST_QP |
                            VERBS_SET_RQ_PSN | VERBS_SET_MAX_DEST_READS | VERBS_SET_MIN_RNR_TIMER);
    if (code)
        return refused(l, p, "queue pair to RTR", code, err);
    a = (struct verbs_qp_attr){.state = VERBS_QP_RTS,
                               .timeout = (uint8_t)o->timeout,
                               .retry_count = (uint8_t)o->retries,
                               .rnr_retry = RNR_FOREVER,
                               .sq_psn = psn,
                               .max_reads =
                                   (uint8_t)least(least(me->reads_out, peer->reads_in), READS)};
    code = verbs.modify_qp(l->lane[i].qp, &a,
                           VERBS_SET_STATE | VERBS_SET_TIMEOUT | VERBS_SET_RETRY_COUNT |
                               VERBS_SET_RNR_RETRY | VERBS_SET_SQ_PSN | VERBS_SET_MAX_READS);
    return code ? refused(l, p, "queue pair to RTS", code, err) : 0;
}

int verbs_link_connect(struct verbs_link *l, const struct verbs_port *p, const struct verbs_opts *o,
                       const struct verbs_card *mine, const struct verbs_card *theirs,
                       const struct verbs_ece *ece, struct err *err)
{
    for (int i = 0; i < l->lanes; i++) {
        struct verbs_ece agreed = *ece;
        int code = ece->vendor ? verbs.set_ece(l->lane[i].qp, &agreed) : 0;
        if (code)
            return refused(l, p, "what both devices agreed on (ECE)", code, err);
        if (lane_up(l, i, p, o, mine->psn, theirs, err) < 0)
            return -1;
        l->lane[i].theirs = theirs->lane[i].number;
    }
    if (ece->vendor && verbs.query_ece(l->lane[0].qp, &l->ece))
        l->ece = (struct verbs_ece){0};
    l->in_order = verbs.query_qp_data_in_order &&
                  verbs.query_qp_data_in_order(l->lane[0].qp, VERBS_WRITE, 0) == 1;
    return 0;
}
