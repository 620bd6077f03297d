/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_ops_impl.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "watch/watch.h"

enum {
    SPLIT = 4096, /* a block is split over queue pairs in multiples of this */
    PARTS = 4     /* a sample is this part of a window */
};

/* --- transfers of each member --- */

static int right_of(const struct verbs_conn *c, int by)
{
    return (c->self + by) % c->size;
}

static struct verbs_flow flow_to(const struct verbs_job *j, const struct verbs_conn *c, int by)
{
    int peer = right_of(c, by);
    bool each = op_table[j->op].flow == FLOW_EXCHANGE, own = each || j->op == OP_ALL_GATHER;

    return (struct verbs_flow){peer, each ? (size_t)peer * j->block : 0,
                               own ? (size_t)c->self * j->block : 0, j->block};
}

static struct verbs_flow flow_from(const struct verbs_job *j, const struct verbs_conn *c, int by)
{
    int peer = right_of(c, c->size - by);
    bool each = op_table[j->op].flow == FLOW_EXCHANGE, own = each || j->op == OP_ALL_GATHER;

    return (struct verbs_flow){peer,
                               verbs_memory_recv(c->memory) + (own ? (size_t)peer * j->block : 0),
                               each ? (size_t)c->self * j->block : 0, j->block};
}

int verbs_job_make(struct verbs_job *j, const struct verbs_conn *c, enum op op, size_t bytes,
                   struct err *err)
{
    bool ring = op_table[op].flow == FLOW_LEFT, first = op_table[op].flow == FLOW_FIRST;

    if (op_fits(op, c->size, bytes, c->memory->room, err))
        return -1;
    *j = (struct verbs_job){.op = op, .bytes = bytes};
    j->block = bytes / (size_t)op_blocks(op, c->size);
    j->window = verbs_opts_depth(c->how, bytes);
    j->part = j->window < 2 * PARTS ? 1 : j->window / PARTS;
    j->to = mem_calloc((size_t)c->size, sizeof(*j->to));
    j->from = mem_calloc((size_t)c->size, sizeof(*j->from));
    for (int by = 1; by < (ring || first ? 2 : c->size); by++) {
        if (!first || c->self == 0)
            j->to[j->n_to++] = flow_to(j, c, by);
        if (!first || c->self == 1)
            j->from[j->n_from++] = flow_from(j, c, by);
    }
    return 0;
}

int verbs_job_clock(const struct verbs_conn *c, enum op op)
{
    bool reads = c->how->verb == VERBS_BY_READ;

    return op == OP_PAIR_BW || op == OP_PAIR_LATENCY ? reads : -1;
}

/* --- messages --- */

static bool reads(const struct verbs_conn *c)
{
    return c->how->verb == VERBS_BY_READ;
}

static bool sends(const struct verbs_conn *c)
{
    return c->how->verb == VERBS_BY_SEND;
}

/* Message for a writer or sender of j->to, or a reader of j->from. */
static struct verbs_message message_of(const struct verbs_conn *c, const struct verbs_flow *f,
                                       bool tells)
{
    const struct verbs_link *l = c->link[f->peer];

    return (struct verbs_message){.opcode = reads(c)   ? VERBS_READ
                                            : sends(c) ? VERBS_SEND
                                            : tells    ? VERBS_WRITE_IMM
                                                       : VERBS_WRITE,
                                  .at = f->mine,
                                  .remote = l->remote + (reads(c) ? 0 : l->remote_room) + f->place,
                                  .rkey = l->rkey,
                                  .bytes = f->bytes,
                                  .counts = true};
}

/* Poll this link until `*what` is at least `least`. */
static int wait_for(struct verbs_conn *c, struct verbs_link *l, const unsigned long *what,
                    unsigned long least)
{
    struct verbs_wait w = {0};

    while (*what < least) {
        int n = verbs_conn_look(c, l);
        if (n < 0 || (n == 0 && verbs_conn_idle(c, &w) < 0))
            return -1;
    }
    return 0;
}

/* --- streams --- */

/* Keep a full window of messages under way until the last one is posted. */
static int top_up(struct verbs_conn *c, struct verbs_link *l, const struct verbs_job *j,
                  const struct verbs_message *m, unsigned long *posted, unsigned long all)
{
    int rc = 0;

    for (; *posted < all && *posted - l->ended < (unsigned long)j->window && rc == 0; ++*posted)
        rc = verbs_conn_post(c, l, (int)(*posted % (unsigned long)l->lanes), m);
    return rc;
}

/* Time the messages that this member requests.  Samples found complete by the same poll share its
 * time, because their individual times are unknown. */
static int time_stream(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    struct verbs_link *l = c->link[1 - c->self];
    struct verbs_message m = message_of(c, reads(c) ? j->from : j->to, false);
    unsigned long posted = 0, part = (unsigned long)j->part, all = (unsigned long)n * part;
    double from = log_now(), to;

    l->ended = 0;
    for (int i = 0, k; i < n; i = k) {
        struct verbs_wait w = {0};
        while (l->ended < (unsigned long)(i + 1) * part) {
            int got = top_up(c, l, j, &m, &posted, all) < 0 ? -1 : verbs_conn_look(c, l);
            if (got < 0 || (got == 0 && verbs_conn_idle(c, &w) < 0))
                return -1;
        }
        to = log_now();
        k = (int)(l->ended / part);
        for (int s = i; s < k; s++)
            sec[s] = (to - from) / (double)((unsigned long)(k - i) * part);
        from = to;
        watch_step();
    }
    return 0;
}

/* Number of receives for the n samples of the peer. */
static unsigned long stream_receives(const struct verbs_conn *c, const struct verbs_job *j, int n)
{
    const struct verbs_link *l = c->link[1 - c->self];

    return (unsigned long)(n * (long)j->part * verbs_link_pieces(l, j->bytes));
}

static int expect_stream(struct verbs_conn *c, const struct verbs_job *j, int n)
{
    struct verbs_link *l = c->link[1 - c->self];
    long all = (long)n * j->part;
    int rc = 0;

    for (int i = 0; i < l->lanes && rc == 0; i++)
        rc = verbs_conn_expect(c, l, i, j->from->mine, j->bytes,
                               all / l->lanes + (i < all % l->lanes));
    return rc;
}

static int stream(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    struct verbs_link *l = c->link[1 - c->self];
    int rc = 0;

    if (reads(c) ? j->n_from : j->n_to)
        rc = time_stream(c, j, n, sec);
    if (rc == 0 && sends(c) && j->n_from)
        rc = wait_for(c, l, &l->arrived, stream_receives(c, j, n));
    return rc;
}

/* --- ping-pong --- */

/* True if the last byte arrives last. */
static bool lands(const struct verbs_conn *c, const struct verbs_job *j)
{
    const struct verbs_link *l = c->link[1 - c->self];

    return c->how->verb == VERBS_BY_WRITE && !c->memory->gpu && j->bytes <= VERBS_LANDING &&
           (l->in_order || j->bytes <= (size_t)l->mtu);
}

static volatile unsigned char *last_landed(const struct verbs_conn *c, const struct verbs_job *j)
{
    return c->memory->at + verbs_memory_landing(c->memory) + j->bytes - 1;
}

/* Poll the completion queue now and then, because errors show there. */
static int wait_landed(struct verbs_conn *c, const struct verbs_job *j, unsigned char mark)
{
    volatile unsigned char *byte = last_landed(c, j);
    struct verbs_wait w = {0};

    while (*byte != mark)
        if (verbs_conn_idle(c, &w) < 0 ||
            (w.looks % 64 == 0 && verbs_conn_look(c, c->link[1 - c->self]) < 0))
            return -1;
    return 0;
}

static int wait_ping(struct verbs_conn *c, const struct verbs_job *j, int i, bool land)
{
    struct verbs_link *l = c->link[1 - c->self];
    long pieces = sends(c) ? verbs_link_pieces(l, j->bytes) : 1;

    return land ? wait_landed(c, j, (unsigned char)(i + 1))
                : wait_for(c, l, &l->arrived, (unsigned long)((i + 1) * pieces));
}

static struct verbs_message ping_of(const struct verbs_conn *c, const struct verbs_job *j,
                                    bool land)
{
    const struct verbs_link *l = c->link[1 - c->self];
    struct verbs_message m = message_of(c, j->to, !land);

    m.counts = false;
    if (land) {
        m.remote = l->remote + 2 * l->remote_room;
        m.rkey = l->landing_rkey;
    }
    return m;
}

static int put_ping(struct verbs_conn *c, const struct verbs_job *j, struct verbs_message *m, int i,
                    int n, bool land)
{
    if (land)
        c->memory->at[m->at + j->bytes - 1] = (unsigned char)(i + 1);
    m->counts = i == n - 1;
    return verbs_conn_post(c, c->link[1 - c->self], 0, m);
}

static int ping_pong(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    struct verbs_link *l = c->link[1 - c->self];
    bool land = lands(c, j);
    struct verbs_message m = ping_of(c, j, land);
    double from = log_now(), to;
    int rc = 0;

    l->ended = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        watch_step();
        if (c->self == 0)
            rc = put_ping(c, j, &m, i, n, land);
        if (rc == 0)
            rc = wait_ping(c, j, i, land);
        if (rc == 0 && c->self == 1)
            rc = put_ping(c, j, &m, i, n, land);
        to = log_now();
        sec[i] = (to - from) / 2;
        from = to;
    }
    return rc < 0 ? -1 : wait_for(c, l, &l->ended, 1);
}

static int read_latency(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    struct verbs_link *l = c->link[1 - c->self];
    struct verbs_message m = message_of(c, j->from, false);
    double from = log_now(), to;
    int rc = 0;

    l->ended = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        watch_step();
        rc = verbs_conn_post(c, l, 0, &m);
        if (rc == 0)
            rc = wait_for(c, l, &l->ended, (unsigned long)i + 1);
        to = log_now();
        sec[i] = to - from;
        from = to;
    }
    return rc;
}

static int latency(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    if (!reads(c))
        return ping_pong(c, j, n, sec);
    return c->self == 1 ? read_latency(c, j, n, sec) : 0;
}

static int expect_pings(struct verbs_conn *c, const struct verbs_job *j, int n)
{
    struct verbs_link *l = c->link[1 - c->self];

    if (lands(c, j)) {
        *last_landed(c, j) = 0;
        return 0;
    }
    return verbs_conn_expect(c, l, 0, j->from->mine, sends(c) ? j->bytes : 0, n);
}

/* --- all peers at once --- */

static int lanes_for(const struct verbs_link *l, size_t bytes)
{
    return bytes >= (size_t)l->lanes * SPLIT ? l->lanes : 1;
}

/* Part `lane` of `lanes` of a flow. */
static struct verbs_flow part_of(const struct verbs_flow *f, int lane, int lanes)
{
    size_t each = (f->bytes / (size_t)lanes + SPLIT - 1) / SPLIT * SPLIT;
    size_t at = each * (size_t)lane;
    struct verbs_flow out = *f;

    if (lanes == 1)
        return out;
    at = at < f->bytes ? at : f->bytes;
    out.mine += at;
    out.place += at;
    out.bytes = lane == lanes - 1 || f->bytes - at < each ? f->bytes - at : each;
    return out;
}

static int put_flow(struct verbs_conn *c, const struct verbs_flow *f)
{
    struct verbs_link *l = c->link[f->peer];
    int lanes = lanes_for(l, f->bytes), rc = 0;

    for (int i = 0; i < lanes && rc == 0; i++) {
        const struct verbs_flow part = part_of(f, i, lanes);
        const struct verbs_message m = message_of(c, &part, true);
        rc = verbs_conn_post(c, l, i, &m);
    }
    return rc;
}

static unsigned long arrivals(const struct verbs_conn *c, const struct verbs_flow *f)
{
    const struct verbs_link *l = c->link[f->peer];
    int lanes = lanes_for(l, f->bytes);
    unsigned long n = 0;

    for (int i = 0; i < lanes; i++)
        n += (unsigned long)(sends(c) ? verbs_link_pieces(l, part_of(f, i, lanes).bytes) : 1);
    return n;
}

static int expect_flows(struct verbs_conn *c, const struct verbs_job *j, int n)
{
    int rc = 0;

    for (int k = 0; k < j->n_from && rc == 0; k++) {
        struct verbs_link *l = c->link[j->from[k].peer];
        int lanes = lanes_for(l, j->from[k].bytes);
        for (int i = 0; i < lanes && rc == 0; i++) {
            const struct verbs_flow part = part_of(&j->from[k], i, lanes);
            rc = verbs_conn_expect(c, l, i, part.mine, sends(c) ? part.bytes : 0, n);
        }
    }
    return rc;
}

/* Wait for `times` exchanges, of which this is the last. */
static int wait_flows(struct verbs_conn *c, const struct verbs_job *j, unsigned long times)
{
    const struct verbs_flow *own = reads(c) ? j->from : j->to;
    int owns = reads(c) ? j->n_from : j->n_to, rc = 0;

    for (int k = 0; k < owns && rc == 0; k++) {
        struct verbs_link *l = c->link[own[k].peer];
        rc = wait_for(c, l, &l->ended, times * (unsigned long)lanes_for(l, own[k].bytes));
    }
    for (int k = 0; k < j->n_from && rc == 0 && !reads(c); k++) {
        struct verbs_link *l = c->link[j->from[k].peer];
        rc = wait_for(c, l, &l->arrived, times * arrivals(c, &j->from[k]));
    }
    return rc;
}

static int exchange(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    const struct verbs_flow *own = reads(c) ? j->from : j->to;
    int owns = reads(c) ? j->n_from : j->n_to, rc = 0;
    double from = log_now(), to;

    for (int i = 0; i < n && rc == 0; i++) {
        watch_step();
        for (int k = 0; k < owns && rc == 0; k++)
            rc = put_flow(c, &own[k]);
        if (rc == 0)
            rc = wait_flows(c, j, (unsigned long)i + 1);
        to = log_now();
        sec[i] = to - from;
        from = to;
    }
    return rc;
}

/* --- common interface --- */

static void count_anew(struct verbs_conn *c)
{
    for (int i = 0; i < c->size; i++)
        if (c->link[i])
            c->link[i]->ended = c->link[i]->arrived = 0;
}

int verbs_job_ready(struct verbs_conn *c, const struct verbs_job *j, int n)
{
    count_anew(c);
    if (j->op == OP_PAIR_LATENCY)
        return reads(c) ? 0 : expect_pings(c, j, n);
    if (op_is_pair(j->op))
        return sends(c) && j->n_from ? expect_stream(c, j, n) : 0;
    return reads(c) ? 0 : expect_flows(c, j, n);
}

int verbs_job_time(struct verbs_conn *c, const struct verbs_job *j, int n, double *sec)
{
    return j->op == OP_PAIR_LATENCY ? latency(c, j, n, sec)
           : op_is_pair(j->op)      ? stream(c, j, n, sec)
                                    : exchange(c, j, n, sec);
}

int verbs_job_ready_once(struct verbs_conn *c, const struct verbs_job *j)
{
    count_anew(c);
    return reads(c) ? 0 : expect_flows(c, j, 1);
}

int verbs_job_once(struct verbs_conn *c, const struct verbs_job *j)
{
    double sec;

    return exchange(c, j, 1, &sec);
}
