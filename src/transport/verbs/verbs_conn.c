/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_conn_impl.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "kernels/verbs_api.h"
#include "transport/mpi/world_mpi.h"
#include "watch/watch.h"

/* --- connect --- */

/* Part of a member in the exchange, followed by a card for each member. */
struct part {
    uint64_t at, room;
    uint32_t rkey, landing_rkey;
};

static size_t card_bytes(const struct verbs_conn *c)
{
    return sizeof(struct verbs_card) + 2 * sizeof(uint32_t) * (size_t)c->how->qps;
}

static size_t part_bytes(const struct verbs_conn *c)
{
    return sizeof(struct part) + (size_t)c->size * (card_bytes(c) + 8) / 8 * 8;
}

static struct part *part_of(const struct verbs_conn *c, char *all, int i)
{
    void *at = all + (size_t)i * part_bytes(c);

    return at;
}

/* Card from member `from` to member `to`. */
static struct verbs_card *card_of(const struct verbs_conn *c, char *all, int from, int to)
{
    void *at = (char *)(part_of(c, all, from) + 1) + (size_t)to * card_bytes(c);

    return at;
}

static void fill_part(const struct verbs_conn *c, char *mine)
{
    const struct verbs_memory *m = c->memory;
    struct part *p = part_of(c, mine, 0);

    *p = (struct part){.at = (uintptr_t)m->at,
                       .room = m->room,
                       .rkey = m->mr->rkey,
                       .landing_rkey = m->landing ? m->landing->rkey : 0};
    for (int i = 0; i < c->size; i++)
        if (c->link[i])
            verbs_link_tell(c->link[i], card_of(c, mine, 0, i));
}

static int get_links(struct verbs_conn *c, struct err *err)
{
    int rc = 0;

    for (int i = 0; i < c->size && rc == 0; i++)
        if (i != c->self)
            rc = verbs_link_get(&c->link[i], c->port, c->how, c->member[i], err);
    for (int i = 0; i < c->size && rc == 0 && c->broken; i++)
        if (c->link[i])
            rc = verbs_link_reset(c->link[i], c->port, err);
    return rc;
}

static bool offers(const struct verbs_conn *c, char *all, int i, int k)
{
    return card_of(c, all, i, k)->ece.vendor && card_of(c, all, k, i)->ece.vendor;
}

/* Connect to the members before this one (turn 0) or after it (1).  If both devices of a pair
 * support ECE, the first offers, the second takes what it supports and returns it, and the first
 * sets that (rdma_cma's order, librdmacm ucma_set_ece()). */
static int connect_turn(struct verbs_conn *c, char *all, int turn, struct err *err)
{
    static const struct verbs_ece none;
    int from = turn ? c->self + 1 : 0, to = turn ? c->size : c->self, rc = 0;

    for (int i = from; i < to && rc == 0; i++) {
        struct verbs_link *l = c->link[i];
        struct verbs_card *theirs = card_of(c, all, i, c->self);
        if (verbs_link_stands(l, theirs))
            continue;
        if (l->lane[0].theirs) /* half of a connection that the peer has given up */
            rc = verbs_link_reset(l, c->port, err);
        if (rc == 0)
            rc = verbs_link_connect(l, c->port, c->how, card_of(c, all, c->self, i), theirs,
                                    offers(c, all, c->self, i) ? &theirs->ece : &none, err);
    }
    return rc;
}

/* True if any pair of members uses ECE. */
static bool any_offers(const struct verbs_conn *c, char *all)
{
    for (int i = 0; i < c->size; i++)
        for (int k = 0; k < i; k++)
            if (offers(c, all, i, k))
                return true;
    return false;
}

static void take_parts(struct verbs_conn *c, char *all)
{
    for (int i = 0; i < c->size; i++) {
        struct verbs_link *l = c->link[i];
        const struct part *p = part_of(c, all, i);
        if (!l)
            continue;
        l->remote = p->at;
        l->remote_room = (size_t)p->room;
        l->rkey = p->rkey;
        l->landing_rkey = p->landing_rkey;
        l->ended = l->arrived = 0;
    }
}

static int connect_all(struct verbs_conn *c, char *mine, char *all, struct err *err)
{
    size_t bytes = part_bytes(c);
    int rc = world_mpi_together(c->comm, get_links(c, err), err);

    if (rc == 0) {
        fill_part(c, mine);
        rc = world_mpi_trade(c->comm, mine, bytes, all, err);
    }
    if (rc < 0)
        return -1;
    take_parts(c, all);
    rc = world_mpi_together(c->comm, connect_turn(c, all, 0, err), err);
    if (rc == 0 && any_offers(c, all)) {
        for (int i = 0; i < c->self; i++)
            card_of(c, mine, 0, i)->ece = c->link[i]->ece;
        rc = world_mpi_trade(c->comm, mine, bytes, all, err);
    }
    return rc < 0 ? -1 : world_mpi_together(c->comm, connect_turn(c, all, 1, err), err);
}

static int connect_group(struct verbs_conn *c, struct err *err)
{
    char *mine = mem_calloc(1, part_bytes(c)), *all = mem_calloc((size_t)c->size, part_bytes(c));
    int rc = connect_all(c, mine, all, err);

    c->broken = rc < 0;
    free(all);
    free(mine);
    return rc;
}

int verbs_conn_open(struct verbs_conn *c, const struct group *g, struct err *err)
{
    c->comm = g->comm;
    c->self = g->self;
    c->size = g->size;
    c->member = mem_dup(g->members, (size_t)g->size, sizeof(*c->member));
    c->link = mem_calloc((size_t)g->size, sizeof(struct verbs_link *));
    return connect_group(c, err);
}

void verbs_conn_close(struct verbs_conn *c)
{
    struct err ignored;

    /* Drop failed links, so that the next group does not find them. */
    for (int i = 0; i < c->size && c->broken && c->link; i++)
        if (c->link[i])
            verbs_link_reset(c->link[i], c->port, &ignored);
    free(c->link);
    free(c->member);
}

int verbs_conn_mend(struct verbs_conn *c, struct err *err)
{
    return c->broken ? connect_group(c, err) : 0;
}

/* --- errors --- */

int verbs_conn_fail(struct verbs_conn *c, int rank)
{
    if (c->failed && c->failed <= rank + 1)
        return -1;
    c->failed = rank + 1;
    if (!c->raised) {
        c->raised = ALARM_CAUSE;
        world_mpi_alarm_raise(c->comm, ALARM_CAUSE);
    }
    return -1;
}

struct outcome {
    int failed, raised;
    struct err err;
};

/* Member nearest to the cause, the lowest of several. */
static const struct outcome *first_cause(const struct verbs_conn *c, const struct outcome *all)
{
    const struct outcome *best = NULL;

    for (int i = 0; i < c->size; i++)
        if (all[i].failed && (!best || all[i].failed < best->failed))
            best = &all[i];
    return best;
}

static int share_cause(struct verbs_conn *c, struct err *err)
{
    struct outcome mine = {c->failed, c->raised, c->err};
    struct outcome *all = mem_calloc((size_t)c->size, sizeof(*all));
    enum world_alarm *raised = mem_calloc((size_t)c->size, sizeof(*raised));
    int rc = world_mpi_trade(c->comm, &mine, sizeof(mine), all, err);
    const struct outcome *cause = rc == 0 ? first_cause(c, all) : NULL;

    for (int i = 0; i < c->size; i++)
        raised[i] = (enum world_alarm)all[i].raised;
    if (rc == 0 && world_mpi_alarm_take(c->comm, raised) < 0)
        rc = err_set(err, "MPI cannot take in the members' alarm");
    if (rc == 0 && cause) {
        *err = cause->err;
        err->text[sizeof(err->text) - 1] = '\0';
    }
    free(raised);
    free(all);
    return -1;
}

int verbs_conn_together(struct verbs_conn *c, struct err *err)
{
    if (world_mpi_together(c->comm, c->failed ? -1 : 0, err) == 0)
        return 0;
    share_cause(c, err);
    c->broken = true;
    c->failed = c->raised = 0;
    return -1;
}

/* --- waits --- */

enum { LOOKS = 256, LEFT = 9, LATE = 7 };
/* idle_long() calls kernel and MPI, which takes longer than a message. */
static const double awake = 50e-6, pause_between = 20e-3;

/* The watch decides earlier; this limit is for ranks without a watch. */
static int too_late(struct verbs_conn *c, double waited)
{
    const struct verbs_end me = verbs_port_end(c->port, c->port->rank);
    double limit = watch_expected() + 3 * fmax(watch_hang_after(), 5);

    if (waited < limit)
        return 0;
    err_io(&c->err, "rank %d (%s %s): nothing is done or arrives for %.0f s, and no error is told",
           me.rank, me.host, me.port, waited);
    return verbs_conn_fail(c, LATE);
}

static int idle_long(struct verbs_conn *c, double waited)
{
    if (watch_verdict(&c->err) < 0)
        return verbs_conn_fail(c, LATE);
    if (verbs_port_events(c->port, &c->err) < 0)
        return verbs_conn_fail(c, 0);
    for (int i = 0; i < c->size; i++) /* an error of any link ends the wait */
        if (c->link[i] && verbs_conn_look(c, c->link[i]) < 0)
            return -1;
    if (world_mpi_alarm_heard(c->comm) != ALARM_NONE) {
        err_set(&c->err, "another member gave up");
        c->failed = LEFT;
        return -1;
    }
    return too_late(c, waited);
}

int verbs_conn_idle(struct verbs_conn *c, struct verbs_wait *w)
{
    if (++w->looks % LOOKS)
        return 0;
    double now = log_now();
    if (!w->from) {
        w->from = now;
        w->next = now + pause_between;
    }
    if (now - w->from > awake)
        sched_yield(); /* ranks may outnumber cores */
    if (now < w->next)
        return 0;
    w->next = now + pause_between;
    return idle_long(c, now - w->from);
}

/* --- requests --- */

/* Bits of a request's id. */
static const uint64_t id_recv = (uint64_t)1 << 63, id_counts = (uint64_t)1 << 62;

static uint64_t id_of(int lane, unsigned retires)
{
    return (uint64_t)lane << 32 | retires;
}

static int lane_of(uint64_t id)
{
    return (int)(id >> 32 & 0xffff);
}

/* If the own port is down, no peer answers: say so. */
static void say_own_port(const struct verbs_conn *c, struct err *words)
{
    struct verbs_port_attr now = {0};
    const struct verbs_end me = verbs_port_end(c->port, c->port->rank);

    if (verbs.query_port(c->port->hca, (uint8_t)c->port->number, &now) ||
        now.state == VERBS_PORT_ACTIVE)
        return;
    err_wrap(words, "%s on %s is %s", me.port, me.host, verbs_port_state(now.state));
}

static int wc_failed(struct verbs_conn *c, const struct verbs_link *l, const struct verbs_wc *wc)
{
    const struct verbs_end me = verbs_port_end(c->port, c->port->rank),
                           peer = verbs_port_end(c->port, l->peer);
    int rank = verbs_words_rank(wc->status);
    bool recv = wc->id & id_recv;
    struct err words;

    verbs_words_fail(wc->status, wc->vendor_error, recv ? &peer : &me, recv ? &me : &peer, &words);
    if (rank == verbs_words_rank(VERBS_WC_RETRY_EXCEEDED))
        say_own_port(c, &words);
    /* If every request is flushed, a device event has the reason. */
    if (wc->status == VERBS_WC_FLUSHED && verbs_port_events(c->port, &words) < 0)
        rank = 0;
    if (!c->failed || c->failed > rank + 1)
        c->err = words;
    return verbs_conn_fail(c, rank);
}

static int post_failed(struct verbs_conn *c, const struct verbs_link *l, const char *what, int code)
{
    const struct verbs_end me = verbs_port_end(c->port, c->port->rank);

    err_io(&c->err, "rank %d (%s %s): %s to rank %d is refused: %s", me.rank, me.host, me.port,
           what, l->peer, strerror(code));
    return verbs_conn_fail(c, 6);
}

static int post_recv(struct verbs_conn *c, struct verbs_link *l, int lane)
{
    struct verbs_expected *e = &l->lane[lane].expected;
    size_t len = e->bytes - e->next < l->max_message ? e->bytes - e->next : l->max_message;
    struct verbs_sge sge = {(uintptr_t)c->memory->at + e->at + e->next, (uint32_t)len,
                            c->memory->mr->lkey};
    struct verbs_recv_wr wr = {.id = id_recv | id_of(lane, 0), .sges = &sge, .n_sges = len > 0};
    int code = verbs_post_recv(l->lane[lane].qp, &wr);

    if (code)
        return post_failed(c, l, "a receive", code);
    e->next = e->next + len < e->bytes ? e->next + len : 0;
    e->left--;
    l->lane[lane].recvs++;
    return 0;
}

static int fill_recvs(struct verbs_conn *c, struct verbs_link *l, int lane)
{
    struct verbs_lane *a = &l->lane[lane];
    int rc = 0;

    while (a->expected.left > 0 && a->recvs < l->recvs && rc == 0)
        rc = post_recv(c, l, lane);
    return rc;
}

int verbs_conn_expect(struct verbs_conn *c, struct verbs_link *l, int lane, size_t at, size_t bytes,
                      long messages)
{
    l->lane[lane].expected =
        (struct verbs_expected){at, bytes, 0, messages * verbs_link_pieces(l, bytes)};
    return fill_recvs(c, l, lane);
}

static int take(struct verbs_conn *c, struct verbs_link *l, const struct verbs_wc *wc)
{
    struct verbs_lane *a = &l->lane[lane_of(wc->id)];

    if (wc->status != VERBS_WC_SUCCESS)
        return wc_failed(c, l, wc);
    if (!(wc->id & id_recv)) {
        a->done += (unsigned)wc->id;
        l->ended += (wc->id & id_counts) != 0;
        return 0;
    }
    l->arrived++;
    a->recvs--;
    return a->recvs * 2 <= l->recvs ? fill_recvs(c, l, lane_of(wc->id)) : 0;
}

int verbs_conn_look(struct verbs_conn *c, struct verbs_link *l)
{
    struct verbs_wc wc[16];
    int n = verbs_poll_cq(l->cq, 16, wc), rc = 0;

    if (n < 0)
        return post_failed(c, l, "a look at what is done", n == -1 ? 5 : -n);
    for (int i = 0; i < n; i++) /* look at all: the first one is not always the cause */
        rc |= take(c, l, &wc[i]);
    return rc ? -1 : n;
}

static int wait_room(struct verbs_conn *c, struct verbs_link *l, const struct verbs_lane *a)
{
    struct verbs_wait w = {0};

    while ((int)(a->posted - a->done) >= l->sends) {
        int n = verbs_conn_look(c, l);
        if (n < 0 || (n == 0 && verbs_conn_idle(c, &w) < 0))
            return -1;
    }
    return 0;
}

/* Post one request of a message.  Some that need no completion get one, so that their room is known
 * to be free. */
static int post_piece(struct verbs_conn *c, struct verbs_link *l, int lane,
                      const struct verbs_message *m, size_t at, size_t len, bool last)
{
    struct verbs_lane *a = &l->lane[lane];
    bool counts = last && m->counts, signal = counts || (int)++a->silent * 4 >= l->sends;
    struct verbs_sge sge = {(uintptr_t)c->memory->at + m->at + at, (uint32_t)len,
                            c->memory->mr->lkey};
    bool imm = m->opcode == VERBS_WRITE_IMM && !last;
    struct verbs_send_wr wr = {.sges = &sge,
                               .n_sges = len > 0,
                               .opcode = imm ? VERBS_WRITE : m->opcode,
                               .remote = m->remote + at,
                               .rkey = m->rkey};

    if (counts)
        a->silent++;
    if (signal) {
        wr.id = id_of(lane, a->silent) | (counts ? id_counts : 0);
        wr.flags |= VERBS_SIGNALED;
        a->silent = 0;
    }
    if (len <= l->inline_bytes && m->opcode != VERBS_READ)
        wr.flags |= VERBS_INLINE;
    if (!signal)
        wr.id = id_of(lane, 0);
    if ((int)(a->posted - a->done) >= l->sends && wait_room(c, l, a) < 0)
        return -1;
    int code = verbs_post_send(a->qp, &wr);
    if (code)
        return post_failed(c, l, "a request", code);
    a->posted++;
    return 0;
}

int verbs_conn_post(struct verbs_conn *c, struct verbs_link *l, int lane,
                    const struct verbs_message *m)
{
    size_t at = 0, len;
    int rc;

    do {
        len = m->bytes - at < l->max_message ? m->bytes - at : l->max_message;
        rc = post_piece(c, l, lane, m, at, len, at + len >= m->bytes);
        at += len;
    } while (rc == 0 && at < m->bytes);
    return rc;
}
