/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_verbs.c - each rule of the stand-in for libibverbs (tests/fake) broken once: one that never
 * fires would let through what the real library and NICs refuse or drop. */
#include "test.h"

#include "fake_verbs.h"

/* --- data --- */
static void moves(void)
{
    connected();
    fill(a.at, 1);
    CHECK(write_status(BYTES) == VERBS_WC_SUCCESS && !memcmp(a.at, b.at, BYTES));
    fill(b.at, 2);
    CHECK(status_of(request(VERBS_READ, BYTES)) == VERBS_WC_SUCCESS && !memcmp(a.at, b.at, BYTES));
    fill(a.at, 3);
    post_recv(&b, BYTES, b.mr->lkey);
    CHECK(status_of(request(VERBS_SEND_IMM, 1000)) == VERBS_WC_SUCCESS);
    struct verbs_wc wc = polled(b.cq);
    CHECK(!wc.status && wc.opcode == VERBS_WC_OP_RECV && wc.bytes == 1000 && wc.id == 5 &&
          wc.flags == VERBS_WC_WITH_IMM && wc.imm == 0x12345678 && wc.qp == b.qp->number);
    CHECK(!memcmp(a.at, b.at, 1000) && memcmp(a.at, b.at, 1001) != 0);
    post_recv(&b, 0, 0);
    CHECK(status_of(request(VERBS_WRITE_IMM, BYTES)) == VERBS_WC_SUCCESS);
    wc = polled(b.cq);
    CHECK(!wc.status && wc.opcode == VERBS_WC_OP_RECV_WRITE_IMM && wc.bytes == BYTES);
    CHECK(!memcmp(a.at, b.at, BYTES));
}

TEST(data_arrive_by_every_verb)
{
    with(two, "", moves);
}

static void inline_and_gathered(void)
{
    struct verbs_sge from[2];

    connected();
    fill(a.at, 4);
    struct verbs_send_wr wr = request(VERBS_WRITE, 64);
    wr.flags |= VERBS_INLINE;
    sge.lkey = 1; /* is not looked at */
    CHECK(status_of(wr) == VERBS_WC_SUCCESS && !memcmp(a.at, b.at, 64));
    from[0] = (struct verbs_sge){(uint64_t)(uintptr_t)a.at + 100, 10, a.mr->lkey};
    from[1] = (struct verbs_sge){(uint64_t)(uintptr_t)a.at + 500, 20, a.mr->lkey};
    wr = request(VERBS_WRITE, 0);
    wr.sges = from;
    wr.n_sges = 2;
    CHECK(status_of(wr) == VERBS_WC_SUCCESS);
    CHECK(!memcmp(b.at, a.at + 100, 10) && !memcmp(b.at + 10, a.at + 500, 20));
}

TEST(bytes_are_gathered_and_taken_inline)
{
    with(two, "", inline_and_gathered);
}

/* --- states --- */
static void each_way(void)
{
    static const int set[] = {0, TO_INIT, TO_RTR, TO_RTS};
    struct verbs_qp_attr at, got;
    struct verbs_qp_init init;

    pair();
    at = attributes(&a, &b);
    for (int state = VERBS_QP_INIT; state <= VERBS_QP_RTS; state++) {
        at.state = state + 1; /* not before its turn */
        CHECK(state == VERBS_QP_RTS || verbs.modify_qp(a.qp, &at, set[state + 1]) == EINVAL);
        at.state = state;
        for (int bit = 1; bit <= VERBS_SET_DEST_QP; bit <<= 1) {
            bool may = bit == VERBS_SET_STATE || (bit == VERBS_SET_ACCESS && state > 1) ||
                       (bit == VERBS_SET_PKEY_INDEX && state == VERBS_QP_RTR) ||
                       (bit == VERBS_SET_MIN_RNR_TIMER && state == VERBS_QP_RTS);
            if (!may)
                CHECK(verbs.modify_qp(a.qp, &at, set[state] ^ bit) == EINVAL);
        }
        CHECK(verbs.modify_qp(a.qp, &at, set[state]) == 0 && a.qp->state == state);
    }
    CHECK(verbs.query_qp(a.qp, &got, 0, &init) == 0 && got.state == VERBS_QP_RTS);
    CHECK(got.dest_qp == b.qp->number && init.cap.send_wrs == 8);
    at.state = VERBS_QP_ERROR;
    CHECK(verbs.modify_qp(a.qp, &at, VERBS_SET_STATE | VERBS_SET_PORT) == EINVAL);
    CHECK(verbs.modify_qp(a.qp, &at, VERBS_SET_STATE) == 0 && a.qp->state == VERBS_QP_ERROR);
    CHECK(to_state(a.qp, at, VERBS_QP_INIT) == EINVAL);
    CHECK(to_state(a.qp, at, VERBS_QP_RESET) == 0 && a.qp->state == VERBS_QP_RESET);
}

static void each_value(void)
{
    struct verbs_qp_attr good, bad;

    pair();
    good = attributes(&a, &b);
#define REFUSED(to, member, value)                                                                 \
    bad = good;                                                                                    \
    bad.member = value;                                                                            \
    CHECK(to_state(a.qp, bad, to) == EINVAL)
    REFUSED(VERBS_QP_INIT, port, 0);
    REFUSED(VERBS_QP_INIT, port, 2);
    REFUSED(VERBS_QP_INIT, pkey_index, 1);
    CHECK(to_state(a.qp, good, VERBS_QP_INIT) == 0);
    REFUSED(VERBS_QP_RTR, path_mtu, VERBS_MTU_4096);
    REFUSED(VERBS_QP_RTR, path_mtu, 0);
    REFUSED(VERBS_QP_RTR, dest_qp, 1 << 24);
    REFUSED(VERBS_QP_RTR, rq_psn, 1 << 24);
    REFUSED(VERBS_QP_RTR, min_rnr_timer, 32);
    REFUSED(VERBS_QP_RTR, max_dest_reads, 5);
    REFUSED(VERBS_QP_RTR, ah.port, 2);
    CHECK(to_state(a.qp, good, VERBS_QP_RTR) == 0);
    REFUSED(VERBS_QP_RTS, timeout, 32);
    REFUSED(VERBS_QP_RTS, retry_count, 8);
    REFUSED(VERBS_QP_RTS, rnr_retry, 8);
    REFUSED(VERBS_QP_RTS, sq_psn, 1 << 24);
    REFUSED(VERBS_QP_RTS, max_reads, 5);
    CHECK(to_state(a.qp, good, VERBS_QP_RTS) == 0);
}

TEST(states_want_what_the_kernel_wants)
{
    with(two, "", each_way);
    with("device mlx5_0-1 mtu=2048 max_reads=4\n", "", each_value);
}

/* --- what is made --- */
static int qp_error(struct verbs_qp_init init)
{
    return verbs.create_qp(a.pd, &init) ? 0 : errno;
}

static void made(void)
{
    struct verbs_qp_init init = asked;

    pair();
    CHECK(!verbs.create_cq(a.hca, 0, NULL, NULL, 0) && errno == EINVAL);
    CHECK(!verbs.create_cq(a.hca, 65, NULL, NULL, 0) && errno == EINVAL);
    CHECK(!verbs.create_cq(a.hca, 1, NULL, NULL, 1) && errno == EINVAL);
    init.send_cq = init.recv_cq = a.cq;
#define QP_REFUSED(member, value, error)                                                           \
    do {                                                                                           \
        struct verbs_qp_init bad = init;                                                           \
        bad.member = value;                                                                        \
        CHECK(qp_error(bad) == (error));                                                           \
    } while (0)
    QP_REFUSED(type, 3, EOPNOTSUPP);
    QP_REFUSED(srq, &init, EOPNOTSUPP);
    QP_REFUSED(send_cq, NULL, EINVAL);
    QP_REFUSED(recv_cq, b.cq, EINVAL);
    QP_REFUSED(cap.send_wrs, 17, EINVAL);
    QP_REFUSED(cap.recv_wrs, 17, EINVAL);
    QP_REFUSED(cap.send_sges, 3, EINVAL);
    QP_REFUSED(cap.recv_sges, 3, EINVAL);
    QP_REFUSED(cap.inline_bytes, 65, EINVAL);
    CHECK(qp_error(init) == 0);
    CHECK(qp_error(init) == ENOMEM);
    CHECK(verbs.destroy_cq(a.cq) == EBUSY);
    CHECK(verbs.dealloc_pd(a.pd) == EBUSY);
    CHECK(verbs.destroy_qp(b.qp) == 0 && verbs.destroy_cq(b.cq) == 0);
    CHECK(verbs.dealloc_pd(b.pd) == EBUSY); /* its memory is registered */
    CHECK(verbs.dereg_mr(b.mr) == 0 && verbs.dealloc_pd(b.pd) == 0);
    CHECK(verbs.close_device(b.hca) == 0);
}

TEST(limits_hold_and_what_is_used_stays)
{
    with("device mlx5_0-1 max_cqe=64 max_qp_wr=16 max_sge=2 max_inline=64 max_qp=2\n", "", made);
}

/* --- memory --- */
static int reg_error(void *at, size_t bytes, int access)
{
    struct verbs_mr *mr = verbs.reg_mr(a.pd, at, bytes, access);

    if (mr)
        verbs.dereg_mr(mr);
    return mr ? 0 : errno;
}

static void registered(void)
{
    CHECK(verbs.fork_init() == 0);
    pair();
    CHECK(verbs.fork_init() == EINVAL); /* too late */
    unsigned char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(reg_error(a.at, 0, all) == EINVAL);
    CHECK(reg_error(a.at, 64, VERBS_ACCESS_REMOTE_WRITE) == EINVAL);
    CHECK(reg_error(a.at, 100001, all) == EINVAL);
    CHECK(reg_error(page, 8192, all) == EFAULT && reg_error(page, 8192, 0) == 0);
    munmap(page + 4096, 4096);
    CHECK(reg_error(page, 8192, 0) == EFAULT);
    CHECK(reg_error(a.at, 50000, all) == 0 && reg_error(a.at, 50000, all) == 0);
    struct verbs_mr *one = verbs.reg_mr(a.pd, a.at, 30000, all);
    CHECK(one && reg_error(a.at, 50000, all) == ENOMEM);
}

TEST(memory_can_be_pinned_or_not)
{
    with("device mlx5_0-1 max_mr=100000 memlock=200000\n", "", registered);
}

static void local_keys(void)
{
    struct verbs_pd *other;
    struct verbs_mr *mr;
    static const struct {
        int begin, bytes;
    } outside[] = {{-1, 8}, {BYTES - 7, 8}, {BYTES, 1}, {0, BYTES + 1}};

    for (int i = 0; i < 7; i++) {
        connected();
        struct verbs_send_wr wr = request(i == 6 ? VERBS_READ : VERBS_WRITE, 8);
        other = verbs.alloc_pd(a.hca);
        if (i < 4) {
            sge.at += (uint64_t)(int64_t)outside[i].begin;
            sge.bytes = (uint32_t)outside[i].bytes;
        } else {
            mr = verbs.reg_mr(i == 5 ? other : a.pd, a.at, BYTES, 0);
            sge.lkey = i == 4 ? mr->lkey + (1 << 20) : mr->lkey;
        }
        CHECK(status_of(wr) == VERBS_WC_LOCAL_PROTECTION);
        CHECK(a.qp->state == VERBS_QP_ERROR && b.qp->state == VERBS_QP_RTS);
    }
}

/* The remote end is refused, both are in error, and what comes after is flushed. */
static void refused_remotely(struct verbs_send_wr wr)
{
    struct verbs_wc wc;

    CHECK(verbs_post_send(a.qp, &wr) == 0);
    wc = polled(a.cq);
    CHECK(wc.status == VERBS_WC_REMOTE_ACCESS && wc.vendor_error == 0x88);
    CHECK(wc.opcode != VERBS_WC_OP_WRITE); /* means nothing */
    struct verbs_event e = event_of(b.hca);
    CHECK(e.qp == b.qp && e.type == 3 && b.qp->state == VERBS_QP_ERROR);
    CHECK(write_status(1) == VERBS_WC_FLUSHED);
    post_recv(&b, 1, b.mr->lkey);
    CHECK(polled(b.cq).status == VERBS_WC_FLUSHED);
}

static void remote_keys(void)
{
    static struct verbs_mr gone;

    for (int i = 0; i < 9; i++) {
        connected();
        struct verbs_send_wr wr = request(i % 2 ? VERBS_READ : VERBS_WRITE, 8);
        struct verbs_mr *weak =
            verbs.reg_mr(i == 7 ? verbs.alloc_pd(b.hca) : b.pd, b.at, BYTES,
                         i == 7   ? all
                         : i == 5 ? VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE
                                  : VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ);
        if (i == 0)
            wr.rkey += 1 << 20;
        else if (i < 4)
            wr.remote += i == 1 ? (uint64_t)-1 : i == 2 ? BYTES - 7 : BYTES;
        else if (i < 8)
            wr.rkey = weak->rkey;
        else {
            gone = *b.mr;
            verbs.dereg_mr(b.mr);
            b.mr = &gone;
        }
        if (i == 4)
            wr.opcode = VERBS_WRITE;
        if (i == 6)
            wr.rkey = a.mr->rkey; /* of another domain, and elsewhere */
        refused_remotely(wr);
    }
}

static void queue_pair_may_not(void)
{
    pair();
    b.access = VERBS_ACCESS_REMOTE_READ;
    bring_up(&a, attributes(&a, &b));
    bring_up(&b, attributes(&b, &a));
    CHECK(status_of(request(VERBS_READ, 8)) == VERBS_WC_SUCCESS);
    refused_remotely(request(VERBS_WRITE, 8));
}

TEST(keys_bounds_and_access_are_looked_at)
{
    with(two, "", local_keys);
    with(two, "", remote_keys);
    with(two, "", queue_pair_may_not);
}

/* --- posting --- */
static void posting(void)
{
    struct verbs_send_wr *bad, wr;
    struct verbs_recv_wr recv = {0}, *bad_recv;
    struct verbs_qp_attr at;

    pair();
    wr = request(VERBS_WRITE, 8);
    at = attributes(&a, &b);
    CHECK(a.hca->ops.post_recv(a.qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
    for (int state = VERBS_QP_RESET; state <= VERBS_QP_RTR; state++) {
        CHECK(state == VERBS_QP_RESET || to_state(a.qp, at, state) == 0);
        CHECK(a.hca->ops.post_send(a.qp, &wr, &bad) == EINVAL && bad == &wr);
    }
    CHECK(a.hca->ops.post_recv(a.qp, &recv, &bad_recv) == 0);
    CHECK(to_state(a.qp, at, VERBS_QP_RTS) == 0);
    bring_up(&b, attributes(&b, &a));
    wr.n_sges = 3;
    CHECK(verbs_post_send(a.qp, &wr) == EINVAL);
    recv.n_sges = 3;
    CHECK(verbs_post_recv(a.qp, &recv) == EINVAL);
    wr = request(VERBS_READ + 1, 8);
    CHECK(verbs_post_send(a.qp, &wr) == EINVAL);
    wr = request(VERBS_WRITE, 65);
    wr.flags |= VERBS_INLINE;
    CHECK(verbs_post_send(a.qp, &wr) == ENOMEM);
    wr = request(VERBS_READ, 8);
    wr.flags |= VERBS_INLINE;
    CHECK(verbs_post_send(a.qp, &wr) == EINVAL);
    recv.n_sges = 0;
    for (int i = 1; i < 8; i++) /* one is there */
        CHECK(verbs_post_recv(a.qp, &recv) == 0);
    CHECK(verbs_post_recv(a.qp, &recv) == ENOMEM);
}

/* Room comes back with a completion, not with the data. */
static void unsignaled(void)
{
    struct verbs_send_wr wr, last, *bad;
    struct verbs_wc wc;

    connected();
    wr = request(VERBS_WRITE, 8);
    wr.flags = 0;
    for (int i = 0; i < 7; i++)
        CHECK(verbs_post_send(a.qp, &wr) == 0);
    CHECK(verbs_poll_cq(a.cq, 1, &wc) == 0);
    last = request(VERBS_WRITE, 8);
    wr.next = &last;
    CHECK(a.hca->ops.post_send(a.qp, &wr, &bad) == ENOMEM && bad == &last);
    CHECK(verbs_post_send(a.qp, &last) == ENOMEM && verbs_poll_cq(a.cq, 1, &wc) == 0);

    connected();
    wr.next = NULL;
    wr.rkey = b.mr->rkey;
    wr.remote = (uint64_t)(uintptr_t)b.at;
    last = request(VERBS_WRITE, 8);
    for (int i = 0; i < 7; i++)
        CHECK(verbs_post_send(a.qp, &wr) == 0);
    CHECK(status_of(last) == VERBS_WC_SUCCESS && verbs_poll_cq(a.cq, 1, &wc) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(verbs_post_send(a.qp, &wr) == 0);
}

static void every_one_signaled(void)
{
    asked.signal_all = 1;
    connected();
    struct verbs_send_wr wr = request(VERBS_WRITE, 8);
    wr.flags = 0;
    CHECK(status_of(wr) == VERBS_WC_SUCCESS);
}

static void overflow(void)
{
    struct verbs_send_wr wr;
    struct verbs_wc wc[4];

    pair();
    struct verbs_qp_init init = asked;
    init.recv_cq = a.cq;
    init.send_cq = verbs.create_cq(a.hca, 2, NULL, NULL, 0);
    verbs.destroy_qp(a.qp);
    a.qp = verbs.create_qp(a.pd, &init);
    bring_up(&a, attributes(&a, &b));
    bring_up(&b, attributes(&b, &a));
    wr = request(VERBS_WRITE, 8);
    for (int i = 0; i < 3; i++)
        CHECK(verbs_post_send(a.qp, &wr) == 0);
    struct verbs_event e = event_of(a.hca);
    CHECK(e.type == 0 && e.cq == init.send_cq);
    e = event_of(a.hca);
    CHECK(e.type == VERBS_EVENT_QP_FATAL && e.qp == a.qp && a.qp->state == VERBS_QP_ERROR);
    CHECK(verbs_poll_cq(init.send_cq, 4, wc) == 2);
}

TEST(queues_have_ends)
{
    with(two, "", posting);
    with(two, "", unsignaled);
    with(two, "", every_one_signaled);
    with(two, "", overflow);
}

/* --- receives --- */
static void none_posted(void)
{
    double begin;

    connected();
    begin = now();
    CHECK(status_of(request(VERBS_SEND, 8)) == VERBS_WC_RNR_RETRY_EXCEEDED);
    CHECK(now() - begin >= 4 * 1.28e-3);
    CHECK(a.qp->state == VERBS_QP_ERROR && b.qp->state == VERBS_QP_RTS);
}

static void posted_late(void)
{
    struct verbs_qp_attr at;
    struct verbs_wc wc;

    pair();
    at = attributes(&a, &b);
    at.rnr_retry = 7;
    bring_up(&a, at);
    bring_up(&b, attributes(&b, &a));
    for (int imm = 0; imm < 2; imm++) {
        struct verbs_send_wr wr = request(imm ? VERBS_WRITE_IMM : VERBS_SEND, 8);
        CHECK(verbs_post_send(a.qp, &wr) == 0);
        for (double end = now() + 0.05; now() < end;)
            CHECK(verbs_poll_cq(a.cq, 1, &wc) == 0);
        post_recv(&b, 8, b.mr->lkey);
        CHECK(polled(a.cq).status == VERBS_WC_SUCCESS && polled(b.cq).status == VERBS_WC_SUCCESS);
    }
}

static void too_short(void)
{
    connected();
    post_recv(&b, 7, b.mr->lkey);
    CHECK(status_of(request(VERBS_SEND, 8)) == VERBS_WC_REMOTE_INVALID_REQUEST);
    CHECK(polled(b.cq).status == VERBS_WC_LOCAL_LENGTH && event_of(b.hca).type == 2);
}

static void wrong_key(void)
{
    connected();
    post_recv(&b, 8, b.mr->lkey + (1 << 20));
    CHECK(status_of(request(VERBS_SEND, 8)) == VERBS_WC_REMOTE_OPERATION);
    CHECK(polled(b.cq).status == VERBS_WC_LOCAL_PROTECTION);
}

TEST(receives_are_there_long_enough_and_allowed)
{
    with(two, "", none_posted);
    with(two, "", posted_late);
    with(two, "", too_short);
    with(two, "", wrong_key);
}

/* --- ways --- */
static void not_up(void)
{
    pair();
    a.at[0] = 1;
    bring_up(&a, attributes(&a, &b));
    never_arrives();
}

static void wrong_number(void)
{
    struct verbs_qp_attr at;

    pair();
    a.at[0] = 1;
    at = attributes(&a, &b);
    bring_up(&b, attributes(&b, &a));
    at.ah.dlid++;
    bring_up(&a, at);
    never_arrives();

    at = attributes(&a, &b);
    at.sq_psn++;
    CHECK(to_state(a.qp, at, VERBS_QP_RESET) == 0);
    bring_up(&a, at);
    never_arrives();

    at = attributes(&a, &b);
    at.dest_qp = a.qp->number; /* which is connected with another */
    CHECK(to_state(a.qp, at, VERBS_QP_RESET) == 0);
    bring_up(&a, at);
    never_arrives();

    CHECK(to_state(a.qp, at, VERBS_QP_RESET) == 0);
    bring_up(&a, attributes(&a, &b));
    CHECK(write_status(8) == VERBS_WC_SUCCESS && b.at[0] == 1);
}

static void apart(void)
{
    connected();
    a.at[0] = 1;
    never_arrives();
}

static void for_ever(void)
{
    struct verbs_qp_attr at;
    struct verbs_wc wc;

    pair();
    at = attributes(&a, &b);
    at.timeout = 0;
    bring_up(&a, at);
    struct verbs_send_wr wr = request(VERBS_WRITE, 8);
    CHECK(verbs_post_send(a.qp, &wr) == 0);
    for (double end = now() + 0.1; now() < end;)
        CHECK(verbs_poll_cq(a.cq, 1, &wc) == 0);
    bring_up(&b, attributes(&b, &a));
    CHECK(polled(a.cq).status == VERBS_WC_SUCCESS);
}

TEST(what_finds_no_way_ends_when_its_retries_are_over)
{
    with(two, "", not_up);
    with(two, "", wrong_number);
    with("device mlx5_0\ndevice mlx5_1 subnet=b\n", "", apart);
    with("device mlx5_0\ndevice mlx5_1 state=down\n", "", apart);
    with("device mlx5_0 state=init\ndevice mlx5_1\n", "", apart);
    with(two, "", for_ever);
}

static void types_of_gids(void)
{
    struct verbs_qp_attr at;

    for (int i = 0; i < 16; i++) {
        int mine = i / 4, its = i % 4; /* 0, 1: of the link, 2, 3: IPv4; 0, 2: RoCE v1 */
        pair();
        a.sgid = mine;
        b.sgid = its;
        CHECK(to_state(a.qp, attributes(&a, &b), VERBS_QP_INIT) == 0);
        if (mine < 2 && its >= 2) { /* no route from one family to the other */
            CHECK(to_state(a.qp, attributes(&a, &b), VERBS_QP_RTR) == EINVAL);
            continue;
        }
        CHECK(to_state(a.qp, attributes(&a, &b), VERBS_QP_RTR) == 0);
        CHECK(to_state(a.qp, attributes(&a, &b), VERBS_QP_RTS) == 0);
        if (mine / 2 != its / 2)
            continue; /* the other end is refused */
        bring_up(&b, attributes(&b, &a));
        CHECK(write_status(8) == (mine == its ? VERBS_WC_SUCCESS : VERBS_WC_RETRY_EXCEEDED));
    }
    pair();
    at = attributes(&a, &b);
    CHECK(to_state(a.qp, at, VERBS_QP_INIT) == 0);
    at.ah.is_global = 0;
    CHECK(to_state(a.qp, at, VERBS_QP_RTR) == EINVAL);
    at.ah.is_global = 1;
    at.ah.grh.sgid_index = 4; /* an empty one */
    CHECK(to_state(a.qp, at, VERBS_QP_RTR) == EINVAL);
    at.ah.grh.sgid_index = 0;
    at.ah.grh.dgid.raw[15] ^= 0x55;
    CHECK(to_state(a.qp, at, VERBS_QP_RTR) == ETIMEDOUT);
}

static void other_subnet(void)
{
    struct verbs_qp_attr at;

    pair();
    at = attributes(&a, &b);
    CHECK(to_state(a.qp, at, VERBS_QP_INIT) == 0);
    CHECK(to_state(a.qp, at, VERBS_QP_RTR) == ETIMEDOUT);
}

TEST(gids_are_of_one_type_and_can_be_reached)
{
    with("device mlx5_0-1 layer=roce\n", "", types_of_gids);
    with("device mlx5_0 layer=roce\ndevice mlx5_1 layer=roce subnet=b\n", "", other_subnet);
}

static void sizes(void)
{
    struct verbs_qp_attr at;

    connected();
    CHECK(write_status(4096) == VERBS_WC_SUCCESS);
    CHECK(write_status(4097) == VERBS_WC_LOCAL_LENGTH);

    pair();
    bring_up(&a, attributes(&a, &b));
    at = attributes(&b, &a);
    at.path_mtu = 1;
    bring_up(&b, at);
    CHECK(write_status(256) == VERBS_WC_SUCCESS);
    CHECK(write_status(257) == VERBS_WC_REMOTE_INVALID_REQUEST);

    for (int remote = 0; remote < 2; remote++) {
        pair();
        at = attributes(&a, &b);
        at.max_reads = (uint8_t)remote;
        bring_up(&a, at);
        at = attributes(&b, &a);
        at.max_dest_reads = !remote;
        bring_up(&b, at);
        CHECK(status_of(request(VERBS_READ, 8)) ==
              (remote ? VERBS_WC_REMOTE_INVALID_REQUEST : VERBS_WC_LOCAL_QP_OPERATION));
    }
}

TEST(messages_packets_and_reads_have_limits)
{
    with("device mlx5_0-1 max_message=4096\n", "", sizes);
}
