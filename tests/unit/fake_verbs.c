/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_verbs.c - each rule and each fault of the stand-in for libibverbs (tests/fake) broken once:
 * one that never fires would let through what the real library and NICs refuse or drop. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/verbs_api.h"

enum { BYTES = 1 << 16, SECONDS = 60 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "# %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- a process with devices of its own kind --- */
static char *in_memory(const char *name, const char *text)
{
    static char path[2][40];
    int fd = memfd_create(name, 0), i = text == NULL;

    if (fd < 0 || (text && write(fd, text, strlen(text)) != (ssize_t)strlen(text)))
        abort();
    snprintf(path[i], sizeof(path[i]), "/proc/self/fd/%d", fd);
    return path[i];
}

static void load(void)
{
    char path[512];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/fake/libverbs_fake.so.1",
             getenv("RG_BUILD") ? getenv("RG_BUILD") : "build");
    setenv("RAILGAUGE_IBVERBS", path, 1);
    if (verbs_load(&err)) {
        fprintf(stderr, "# %s\n", err.text);
        _exit(1);
    }
}

/* The body in a child, which must end well. */
static void with(const char *text, const char *faults, void (*body)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        alarm(SECONDS);
        setenv("FAKE_VERBS", in_memory("text", text), 1);
        setenv("FAKE_VERBS_FABRIC", in_memory("fabric", NULL), 1);
        setenv("FAKE_VERBS_FAULT", faults, 1);
        setenv("OMPI_COMM_WORLD_RANK", "0", 1);
        load();
        body();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

/* --- two ends on one process --- */
struct end {
    struct verbs_hca *hca;
    struct verbs_pd *pd;
    struct verbs_cq *cq;
    struct verbs_qp *qp;
    struct verbs_mr *mr;
    unsigned char *at;
    int access, sgid;
    uint16_t lid;
    union verbs_gid gid[4];
};
static struct verbs_qp_init asked = {
    .cap = {.send_wrs = 8, .recv_wrs = 8, .send_sges = 2, .recv_sges = 2, .inline_bytes = 64},
    .type = VERBS_RC};
static const int all =
    VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE | VERBS_ACCESS_REMOTE_READ;

static struct verbs_hca *open_named(const char *name)
{
    int n;
    struct verbs_device **list = verbs.get_device_list(&n);
    struct verbs_hca *hca = NULL;

    CHECK(list);
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i]->name, name))
            hca = verbs.open_device(list[i]);
    verbs.free_device_list(list);
    return hca;
}

static struct verbs_port_attr port_of(const struct end *e, int port)
{
    struct verbs_port_attr p = {0};

    CHECK(verbs.query_port(e->hca, (uint8_t)port, &p) == 0);
    return p;
}

static struct end end_on(const char *name)
{
    struct end e = {.access = all};
    struct verbs_qp_init init = asked;

    e.hca = open_named(name);
    CHECK(e.hca);
    e.pd = verbs.alloc_pd(e.hca);
    e.cq = verbs.create_cq(e.hca, 32, NULL, NULL, 0);
    CHECK(e.pd && e.cq);
    init.send_cq = init.recv_cq = e.cq;
    e.qp = verbs.create_qp(e.pd, &init);
    CHECK(e.qp);
    e.lid = port_of(&e, 1).lid;
    for (int i = 0; i < 4; i++)
        CHECK(verbs.query_gid(e.hca, 1, i, &e.gid[i]) == 0);
    e.at = calloc(1, BYTES);
    e.mr = verbs.reg_mr(e.pd, e.at, BYTES, all);
    CHECK(e.mr);
    return e;
}

static struct verbs_qp_attr attributes(const struct end *e, const struct end *to)
{
    struct verbs_qp_attr a = {.path_mtu = port_of(e, 1).active_mtu,
                              .dest_qp = to->qp->number,
                              .rq_psn = to->qp->number & 0xfff,
                              .sq_psn = e->qp->number & 0xfff,
                              .access = (unsigned)e->access,
                              .port = 1,
                              .timeout = 10, /* 4.2 ms */
                              .retry_count = 3,
                              .rnr_retry = 3,
                              .min_rnr_timer = 14, /* 1.28 ms */
                              .max_reads = 1,
                              .max_dest_reads = 1,
                              .ah = {.port = 1, .dlid = to->lid}};

    if (port_of(e, 1).link_layer == VERBS_LINK_ETHERNET) {
        a.ah.is_global = 1;
        a.ah.grh.sgid_index = (uint8_t)e->sgid;
        a.ah.grh.dgid = to->gid[to->sgid];
    }
    return a;
}

enum {
    TO_INIT = VERBS_SET_STATE | VERBS_SET_PKEY_INDEX | VERBS_SET_PORT | VERBS_SET_ACCESS,
    TO_RTR = VERBS_SET_STATE | VERBS_SET_AV | VERBS_SET_PATH_MTU | VERBS_SET_DEST_QP |
             VERBS_SET_RQ_PSN | VERBS_SET_MAX_DEST_READS | VERBS_SET_MIN_RNR_TIMER,
    TO_RTS = VERBS_SET_STATE | VERBS_SET_TIMEOUT | VERBS_SET_RETRY_COUNT | VERBS_SET_RNR_RETRY |
             VERBS_SET_SQ_PSN | VERBS_SET_MAX_READS
};

static int to_state(struct verbs_qp *qp, struct verbs_qp_attr a, int state)
{
    static const int set[] = {VERBS_SET_STATE, TO_INIT, TO_RTR, TO_RTS};

    a.state = state;
    return verbs.modify_qp(qp, &a, state <= VERBS_QP_RTS ? set[state] : VERBS_SET_STATE);
}

static void bring_up(struct end *e, struct verbs_qp_attr a)
{
    CHECK(to_state(e->qp, a, VERBS_QP_INIT) == 0);
    CHECK(to_state(e->qp, a, VERBS_QP_RTR) == 0);
    CHECK(to_state(e->qp, a, VERBS_QP_RTS) == 0);
}

static struct end a, b;
static const char *on_a = "mlx5_0", *on_b = "mlx5_1";

static void pair(void)
{
    a = end_on(on_a);
    b = end_on(on_b);
}

static void connected(void)
{
    pair();
    bring_up(&a, attributes(&a, &b));
    bring_up(&b, attributes(&b, &a));
}

static struct verbs_wc polled(struct verbs_cq *cq)
{
    struct verbs_wc wc;
    int n = 0;

    for (double end = now() + 20; !n && now() < end;)
        n = verbs_poll_cq(cq, 1, &wc);
    CHECK(n == 1);
    return wc;
}

static struct verbs_sge sge;
static struct verbs_send_wr request(int opcode, size_t bytes)
{
    sge = (struct verbs_sge){(uint64_t)(uintptr_t)a.at, (uint32_t)bytes, a.mr->lkey};
    return (struct verbs_send_wr){.id = 77,
                                  .sges = &sge,
                                  .n_sges = 1,
                                  .opcode = opcode,
                                  .flags = VERBS_SIGNALED,
                                  .imm = 0x12345678,
                                  .remote = (uint64_t)(uintptr_t)b.at,
                                  .rkey = b.mr->rkey};
}

/* What a's request ends in. */
static int status_of(struct verbs_send_wr wr)
{
    CHECK(verbs_post_send(a.qp, &wr) == 0);
    struct verbs_wc wc = polled(a.cq);
    CHECK(wc.id == wr.id && wc.qp == a.qp->number);
    return wc.status;
}

static int write_status(size_t bytes)
{
    return status_of(request(VERBS_WRITE, bytes));
}

static void post_recv(struct end *e, size_t bytes, uint32_t lkey)
{
    struct verbs_sge to = {(uint64_t)(uintptr_t)e->at, (uint32_t)bytes, lkey};
    struct verbs_recv_wr wr = {.id = 5, .sges = &to, .n_sges = 1};

    CHECK(verbs_post_recv(e->qp, &wr) == 0);
}

static void fill(unsigned char *at, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        at[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static const char two[] = "device mlx5_0-1\n";

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

static void data_arrive_by_every_verb(void **state)
{
    (void)state;
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

static void bytes_are_gathered_and_taken_inline(void **state)
{
    (void)state;
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

static void states_want_what_the_kernel_wants(void **state)
{
    (void)state;
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

static void limits_hold_and_what_is_used_stays(void **state)
{
    (void)state;
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

static void memory_can_be_pinned_or_not(void **state)
{
    (void)state;
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

static struct verbs_event event_of(struct verbs_hca *hca)
{
    struct pollfd p = {.fd = hca->async_fd, .events = POLLIN};
    struct verbs_event e = {0};

    CHECK(poll(&p, 1, 20000) == 1);
    CHECK(verbs.get_async_event(hca, &e) == 0);
    verbs.ack_async_event(&e);
    return e;
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
        else
            verbs.dereg_mr(b.mr);
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

static void keys_bounds_and_access_are_looked_at(void **state)
{
    (void)state;
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

static void queues_have_ends(void **state)
{
    (void)state;
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

static void receives_are_there_long_enough_and_allowed(void **state)
{
    (void)state;
    with(two, "", none_posted);
    with(two, "", posted_late);
    with(two, "", too_short);
    with(two, "", wrong_key);
}

/* --- ways --- */
static void never_arrives(void)
{
    double begin = now();

    CHECK(write_status(8) == VERBS_WC_RETRY_EXCEEDED);
    CHECK(now() - begin >= 4 * 4.19e-3);
    CHECK(b.at[0] == 0);
}

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

static void what_finds_no_way_ends_when_its_retries_are_over(void **state)
{
    (void)state;
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

static void gids_are_of_one_type_and_can_be_reached(void **state)
{
    (void)state;
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

static void messages_packets_and_reads_have_limits(void **state)
{
    (void)state;
    with("device mlx5_0-1 max_message=4096\n", "", sizes);
}

/* --- faults --- */
static const char *status_names[] = {"local-length",   "local-operation",  "local-protection",
                                     "flushed",        "bad-response",     "local-access",
                                     "remote-invalid", "remote-access",    "remote-operation",
                                     "retry-exceeded", "rnr-exceeded",     "remote-aborted",
                                     "fatal",          "response-timeout", "general"};
static const int statuses[] = {VERBS_WC_LOCAL_LENGTH,
                               VERBS_WC_LOCAL_QP_OPERATION,
                               VERBS_WC_LOCAL_PROTECTION,
                               VERBS_WC_FLUSHED,
                               VERBS_WC_BAD_RESPONSE,
                               VERBS_WC_LOCAL_ACCESS,
                               VERBS_WC_REMOTE_INVALID_REQUEST,
                               VERBS_WC_REMOTE_ACCESS,
                               VERBS_WC_REMOTE_OPERATION,
                               VERBS_WC_RETRY_EXCEEDED,
                               VERBS_WC_RNR_RETRY_EXCEEDED,
                               VERBS_WC_REMOTE_ABORTED,
                               VERBS_WC_FATAL,
                               VERBS_WC_RESPONSE_TIMEOUT,
                               VERBS_WC_GENERAL};
static int expected;

static void second_fails(void)
{
    connected();
    CHECK(write_status(100) == VERBS_WC_SUCCESS);
    CHECK(write_status(100) == expected && a.qp->state == VERBS_QP_ERROR);
    CHECK(write_status(100) == VERBS_WC_FLUSHED);
    CHECK(*verbs.wc_status_str(expected) && strcmp(verbs.wc_status_str(expected), "fine") != 0);
}

static void none_fails(void)
{
    connected();
    for (int i = 0; i < 5; i++)
        CHECK(write_status(100) == VERBS_WC_SUCCESS);
}

static void receive_fails(void)
{
    connected();
    post_recv(&b, 8, b.mr->lkey);
    post_recv(&b, 8, b.mr->lkey);
    CHECK(status_of(request(VERBS_SEND, 8)) == VERBS_WC_SUCCESS);
    CHECK(polled(b.cq).status == VERBS_WC_GENERAL && b.qp->state == VERBS_QP_ERROR);
    CHECK(polled(b.cq).status == VERBS_WC_FLUSHED);
}

static void any_status_can_be_made_anywhere(void **state)
{
    static const char *const where[] = {"*:2", "0:2", "0>0:2", "mlx5_0:2", "mlx5_0.1:2", "0:150b"};
    char fault[64];

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        snprintf(fault, sizeof(fault), "%s@mlx5_0:2", status_names[i]);
        expected = statuses[i];
        with(two, fault, second_fails);
    }
    for (size_t i = 0; i < sizeof(where) / sizeof(*where); i++) {
        snprintf(fault, sizeof(fault), "general@%s", where[i]);
        with(two, fault, second_fails);
    }
    with("host n1 0\ndevice mlx5_0-1\n", "general@n1/mlx5_0:2", second_fails);
    with("host n1 0\ndevice mlx5_0-1\n",
         "general@n2/mlx5_0,general@1,general@0>1,general@1>0,general@mlx5_0.2,general@mlx5_1,"
         "general@0:500b",
         none_fails);
    with(two, "recv-general@mlx5_1", receive_fails);
}

static void is_lost(void)
{
    connected();
    CHECK(write_status(8) == VERBS_WC_SUCCESS);
    a.at[0] = 1;
    never_arrives();
}

static void hangs(void)
{
    struct verbs_wc wc;

    connected();
    struct verbs_send_wr wr = request(VERBS_WRITE, 8);
    CHECK(verbs_post_send(a.qp, &wr) == 0);
    for (double end = now() + 0.1; now() < end;)
        CHECK(verbs_poll_cq(a.cq, 1, &wc) == 0);
}

static void is_wrong(void)
{
    connected();
    fill(a.at, 6);
    for (int i = 0; i < 2; i++) {
        CHECK(write_status(4000) == VERBS_WC_SUCCESS);
        for (int at = 0; at < 4000; at++)
            CHECK(b.at[at] == (i == 1 && at == 1234 ? a.at[at] ^ 0xff : a.at[at]));
    }
    fill(b.at, 7);
    CHECK(status_of(request(VERBS_READ, 4000)) == VERBS_WC_SUCCESS);
    for (int at = 0; at < 4000; at++)
        CHECK(a.at[at] == (at == 1234 ? b.at[at] ^ 0xff : b.at[at]));
    CHECK(write_status(1234) == VERBS_WC_SUCCESS && !memcmp(a.at, b.at, 1234));
}

static void goes_down(void)
{
    connected();
    CHECK(write_status(8) == VERBS_WC_SUCCESS && port_of(&a, 1).state == VERBS_PORT_ACTIVE);
    a.at[0] = 1;
    never_arrives();
    struct verbs_event e = event_of(a.hca);
    CHECK(e.type == VERBS_EVENT_PORT_ERROR && e.port == 1);
    CHECK(port_of(&a, 1).state == VERBS_PORT_DOWN && port_of(&b, 1).state == VERBS_PORT_ACTIVE);
    CHECK(strstr(verbs.event_type_str(e.type), "port"));
}

static void is_gone(void)
{
    struct verbs_device_attr d;
    struct verbs_port_attr p;

    connected();
    struct verbs_qp_attr at = attributes(&a, &b);
    CHECK(write_status(8) == VERBS_WC_SUCCESS);
    CHECK(write_status(8) == VERBS_WC_FLUSHED);
    CHECK(event_of(a.hca).type == VERBS_EVENT_DEVICE_FATAL);
    CHECK(verbs.query_port(a.hca, 1, &p) == EIO && verbs.query_device(a.hca, &d) == EIO);
    CHECK(to_state(a.qp, at, VERBS_QP_RESET) == EIO);
}

static void is_slow(void)
{
    double begin;

    connected();
    begin = now();
    for (int i = 0; i < 2; i++) {
        struct verbs_send_wr wr = request(VERBS_WRITE, 50000);
        CHECK(verbs_post_send(a.qp, &wr) == 0);
    }
    CHECK(polled(a.cq).status == 0 && now() - begin >= 0.05 && now() - begin < 0.09);
    CHECK(polled(a.cq).status == 0 && now() - begin >= 0.1);
    begin = now();
    CHECK(status_of(request(VERBS_READ, 50000)) == 0 && now() - begin >= 0.05);
}

static void kills(void)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        connected();
        CHECK(write_status(8) == VERBS_WC_SUCCESS);
        write_status(8);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void every_fault_happens(void **state)
{
    (void)state;
    with(two, "lost@0>0:2", is_lost);
    with(two, "hang@mlx5_0", hangs);
    with(two, "corrupt@mlx5_0:2:1234", is_wrong);
    with(two, "down@mlx5_0:2", goes_down);
    with(two, "gone@mlx5_0:2", is_gone);
    with(two, "slow@mlx5_0:1:1e6", is_slow);
    with(two, "slow@mlx5_1:1:1e6", is_slow);
    with("device mlx5_0-1 rate=1e6\n", "", is_slow);
    with("device mlx5_0-1 latency=0.05\n", "", none_fails);
    with(two, "die@0:2", kills);
}

/* --- several processes --- */
struct card { /* what the other end must know */
    struct end end;
    struct verbs_qp qp;
    struct verbs_mr mr;
    atomic_int step;
};
static struct card *cards;

static void step(int rank, int to)
{
    atomic_store(&cards[rank].step, to);
    for (double end = now() + 20; atomic_load(&cards[1 - rank].step) < to;) {
        CHECK(now() < end);
        usleep(200);
    }
}

/* Both ends connected, each in its process; the other's in b, of which only numbers are read. */
static void meet(int rank)
{
    char text[2] = {(char)('0' + rank), '\0'};

    setenv("OMPI_COMM_WORLD_RANK", text, 1);
    a = end_on(rank ? on_b : on_a);
    cards[rank].end = a;
    cards[rank].qp = *a.qp;
    cards[rank].mr = *a.mr;
    step(rank, 1);
    b = cards[1 - rank].end;
    b.qp = &cards[1 - rank].qp;
    b.mr = &cards[1 - rank].mr;
    bring_up(&a, attributes(&a, &b));
    step(rank, 2);
}

static void in_two(void (*first)(void), void (*second)(void))
{
    int status;

    cards = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (!pid) {
        meet(1);
        second();
        _exit(0);
    }
    meet(0);
    first();
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0 || WIFSIGNALED(status));
}

static void writes_and_reads(void)
{
    fill(a.at, 8);
    CHECK(write_status(BYTES / 2) == VERBS_WC_SUCCESS);
    step(0, 3);
    step(0, 4);
    CHECK(status_of(request(VERBS_READ, BYTES)) == VERBS_WC_SUCCESS);
    CHECK(a.at[BYTES - 1] == 99);
    CHECK(status_of(request(VERBS_SEND, 100)) == VERBS_WC_SUCCESS);
    step(0, 5);
}

static void is_written_and_read(void)
{
    static unsigned char same[BYTES];

    step(1, 3);
    fill(same, 8);
    CHECK(!memcmp(same, a.at, BYTES / 2) && a.at[BYTES / 2] == 0);
    a.at[BYTES - 1] = 99;
    post_recv(&a, 100, a.mr->lkey);
    step(1, 4);
    struct verbs_wc wc = polled(a.cq);
    CHECK(!wc.status && wc.bytes == 100);
    step(1, 5);
}

static void dies(void)
{
    kill(getpid(), SIGKILL);
}

static void finds_it_dead(void)
{
    struct verbs_send_wr wr = request(VERBS_WRITE, 8);
    struct verbs_wc wc = {0};

    for (double end = now() + 20; !wc.status && now() < end;) {
        CHECK(verbs_post_send(a.qp, &wr) == 0);
        wc = polled(a.cq);
    }
    CHECK(wc.status == VERBS_WC_RETRY_EXCEEDED);
}

static void takes_down(void)
{
    a.at[0] = 1;
    double begin = now();
    CHECK(write_status(8) == VERBS_WC_RETRY_EXCEEDED && now() - begin >= 4 * 4.19e-3);
}

static void hears(void)
{
    CHECK(event_of(a.hca).type == VERBS_EVENT_PORT_ERROR);
    CHECK(write_status(8) == VERBS_WC_RETRY_EXCEEDED);
}

static void two_processes(void)
{
    in_two(writes_and_reads, is_written_and_read);
}

static void peer_dies(void)
{
    in_two(finds_it_dead, dies);
}

static void same_port(void)
{
    on_b = on_a;
    in_two(takes_down, hears);
}

static void processes_reach_each_other(void **state)
{
    (void)state;
    with(two, "", two_processes);
    with("host n0 0\nhost n1 1\ndevice mlx5_0-1\n", "", two_processes);
    with("host n0 0\nhost n1 1\ndevice mlx5_0-1 layer=roce\n", "", two_processes);
    with(two, "", peer_dies);
    with(two, "down@0:1", same_port);
}

/* --- what there is --- */
static void told(void)
{
    struct verbs_gid_entry e;
    struct verbs_device_attr d;
    union verbs_gid gid;
    struct verbs_port_attr p = {.newer = {9}, .capabilities2 = 7};
    struct verbs_ece ece;
    int n;

    setenv("OMPI_COMM_WORLD_RANK", "5", 1);
    struct verbs_device **list = verbs.get_device_list(&n);
    CHECK(n == 4 && !strcmp(list[3]->name, "only") && !list[4]);
    verbs.free_device_list(list);
    errno = 0;
    CHECK(!open_named("shut") && errno == EACCES);
    a = end_on("mlx5_1");
    CHECK(verbs.query_device(a.hca, &d) == 0 && d.ports == 2 && !strcmp(d.firmware, "1.2"));
    CHECK(verbs.query_port(a.hca, 1, &p) == 0 && p.newer[0] == 9 && p.capabilities2 == 7);
    CHECK(p.lid == 1 + 100 + 2 && p.link_layer == VERBS_LINK_INFINIBAND && p.active_speed == 64);
    CHECK(p.active_width == 2 && p.active_mtu == 4 && p.state == VERBS_PORT_ACTIVE);
    CHECK(port_of(&a, 2).state == VERBS_PORT_DOWN);
    CHECK(verbs.query_port(a.hca, 3, &p) == EINVAL && verbs.query_port(a.hca, 0, &p) == EINVAL);
    CHECK(verbs.query_gid(a.hca, 1, 3, &gid) == 0 && gid.raw[15] == 1 && gid.raw[13] == 1);
    CHECK(verbs.query_gid(a.hca, 1, 8, &gid) == -1 && errno == EINVAL);
    CHECK(verbs.query_gid_ex(a.hca, 1, 3, &e, 0, sizeof(e)) == 0 && e.type == VERBS_GID_ROCE_V2);
    CHECK(verbs.query_gid_ex(a.hca, 1, 2, &e, 0, sizeof(e)) == ENODATA);
    CHECK(verbs.query_gid_ex(a.hca, 1, 3, &e, 0, sizeof(e) - 4) == EINVAL);
    CHECK(verbs.query_ece(a.qp, &ece) == EOPNOTSUPP && verbs.set_ece(a.qp, &ece) == EOPNOTSUPP);
    a = end_on("only");
    CHECK(verbs.query_ece(a.qp, &ece) == 0 && verbs.set_ece(a.qp, &ece) == 0);
    ece.vendor++;
    CHECK(verbs.set_ece(a.qp, &ece) == EINVAL);
}

static void no_list(void)
{
    CHECK(!verbs.get_device_list(NULL) && errno == ENOSYS);
}

static void devices_are_as_the_text_says(void **state)
{
    (void)state;
    with("# hosts\nhost n0 0-3\nhost n1 4-7\n"
         "device mlx5_0-1 speed=HDR width=4 mtu=2048 firmware=1.2 ece=no ports=2\n"
         "port 2 state=down\ngid 3 v2 ::ffff:10.%d.%h.1\n"
         "device shut open=EACCES\ndevice only on=n1\ndevice other on=n0\n",
         "", told);
    with("list ENOSYS\n", "", no_list);
}

/* --- memory of GPUs, of the stand-in for CUDA --- */
typedef int cuda_call(void *, ...);
static void *cuda_library;

static cuda_call *cuda_symbol(const char *name)
{
    cuda_call *call;
    void *symbol = dlsym(cuda_library, name);

    CHECK(symbol);
    memcpy(&call, &symbol, sizeof(call));
    return call;
}
#define CU(name, ...) CHECK(cuda_symbol("cu" #name)(__VA_ARGS__) == 0)

static unsigned long long gpu_memory(size_t bytes)
{
    char path[512];
    void *context;
    unsigned long long at;

    snprintf(path, sizeof(path), "%s/fake/libcuda.so.1",
             getenv("RG_BUILD") ? getenv("RG_BUILD") : "build");
    cuda_library = dlopen(path, RTLD_NOW);
    CHECK(cuda_library);
    CU(Init, NULL);
    CU(DevicePrimaryCtxRetain, &context, 0);
    CU(CtxSetCurrent, context);
    CU(MemAlloc_v2, &at, bytes);
    return at;
}

/* GPU memory `at` holds what was written there. */
static void gpu_holds(unsigned long long at)
{
    void *symbol = dlsym(cuda_library, "fake_host"), *(*host)(const void *);

    memcpy(&host, &symbol, sizeof(host));
    CHECK(!memcmp(host((void *)(uintptr_t)at), a.at, 4096));
}

static void by_dma_buf(void)
{
    unsigned long long at = gpu_memory(1 << 16);
    int fd = -1;

    connected();
    fill(a.at, 9);
    CHECK(cuda_symbol("cuMemGetHandleForAddressRange")(&fd, at + 1, (size_t)4096, 1, 0ULL) == 1);
    CU(MemGetHandleForAddressRange, &fd, at + 8192, (size_t)8192, 1, 0ULL);
    CHECK(!verbs.reg_dmabuf_mr(b.pd, 0, 1 << 16, at + 8192, fd, all) && errno == EBADF);
    CHECK(!verbs.reg_dmabuf_mr(b.pd, 1, 4096, at + 8192, fd, all) && errno == EINVAL);
    struct verbs_mr *mr = verbs.reg_dmabuf_mr(b.pd, 4096, 4096, at + 12288, fd, all);
    CHECK(mr);
    close(fd);
    struct verbs_send_wr wr = request(VERBS_WRITE, 4096);
    wr.remote = at + 12288;
    wr.rkey = mr->rkey;
    CHECK(status_of(wr) == VERBS_WC_SUCCESS);
    gpu_holds(at + 12288);
    CHECK(verbs.dereg_mr(mr) == 0);
}

static void by_peermem(void)
{
    unsigned long long at = gpu_memory(1 << 16);

    connected();
    fill(a.at, 10);
    struct verbs_mr *mr = verbs.reg_mr(b.pd, (void *)(uintptr_t)(at + 100), 5000, all);
    CHECK(mr && !verbs.reg_mr(b.pd, (void *)(uintptr_t)at, (1 << 16) + 1, all));
    struct verbs_send_wr wr = request(VERBS_WRITE, 4096);
    wr.remote = at + 100;
    wr.rkey = mr->rkey;
    CHECK(status_of(wr) == VERBS_WC_SUCCESS);
    gpu_holds(at + 100);
}

static void by_neither(void)
{
    unsigned long long at = gpu_memory(1 << 16);
    int fd;

    pair();
    CU(MemGetHandleForAddressRange, &fd, at, (size_t)8192, 1, 0ULL);
    CHECK(!verbs.reg_dmabuf_mr(b.pd, 0, 4096, at, fd, all) && errno == EOPNOTSUPP);
    CHECK(!verbs.reg_mr(b.pd, (void *)(uintptr_t)at, 4096, all) && errno == EFAULT);
}

static void a_gpu_is_reached_as_the_text_says(void **state)
{
    (void)state;
    with("device mlx5_0-1\n", "", by_dma_buf);
    with("device mlx5_0-1 peermem=yes\n", "", by_peermem);
    with("device mlx5_0-1 dmabuf=no\n", "", by_neither);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_arrive_by_every_verb),
        cmocka_unit_test(bytes_are_gathered_and_taken_inline),
        cmocka_unit_test(states_want_what_the_kernel_wants),
        cmocka_unit_test(limits_hold_and_what_is_used_stays),
        cmocka_unit_test(memory_can_be_pinned_or_not),
        cmocka_unit_test(keys_bounds_and_access_are_looked_at),
        cmocka_unit_test(queues_have_ends),
        cmocka_unit_test(receives_are_there_long_enough_and_allowed),
        cmocka_unit_test(what_finds_no_way_ends_when_its_retries_are_over),
        cmocka_unit_test(gids_are_of_one_type_and_can_be_reached),
        cmocka_unit_test(messages_packets_and_reads_have_limits),
        cmocka_unit_test(any_status_can_be_made_anywhere),
        cmocka_unit_test(every_fault_happens),
        cmocka_unit_test(processes_reach_each_other),
        cmocka_unit_test(devices_are_as_the_text_says),
        cmocka_unit_test(a_gpu_is_reached_as_the_text_says),
    };

    return cmocka_run_group_tests_name("fake_verbs", tests, NULL, NULL);
}
