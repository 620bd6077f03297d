/* fake_verbs.h - queue pairs of the stand-in for libibverbs (tests/fake), of a process whose devices
 * and faults are its own: what its tests share. */
#ifndef TESTS_FAKE_VERBS_H
#define TESTS_FAKE_VERBS_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/verbs_api.h"

enum { BYTES = 1 << 16, SECONDS = 60 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "# %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- a process with devices of its own kind --- */
static inline char *in_memory(const char *name, const char *text)
{
    static char path[2][40];
    int fd = memfd_create(name, 0), i = text == NULL;

    if (fd < 0 || (text && write(fd, text, strlen(text)) != (ssize_t)strlen(text)))
        abort();
    snprintf(path[i], sizeof(path[i]), "/proc/self/fd/%d", fd);
    return path[i];
}

static inline void load(void)
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
static inline void with(const char *text, const char *faults, void (*body)(void))
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

static inline struct verbs_hca *open_named(const char *name)
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

static inline struct verbs_port_attr port_of(const struct end *e, int port)
{
    struct verbs_port_attr p = {0};

    CHECK(verbs.query_port(e->hca, (uint8_t)port, &p) == 0);
    return p;
}

static inline struct end end_on(const char *name)
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

static inline struct verbs_qp_attr attributes(const struct end *e, const struct end *to)
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

static inline int to_state(struct verbs_qp *qp, struct verbs_qp_attr a, int state)
{
    static const int set[] = {VERBS_SET_STATE, TO_INIT, TO_RTR, TO_RTS};

    a.state = state;
    return verbs.modify_qp(qp, &a, state <= VERBS_QP_RTS ? set[state] : VERBS_SET_STATE);
}

static inline void bring_up(struct end *e, struct verbs_qp_attr a)
{
    CHECK(to_state(e->qp, a, VERBS_QP_INIT) == 0);
    CHECK(to_state(e->qp, a, VERBS_QP_RTR) == 0);
    CHECK(to_state(e->qp, a, VERBS_QP_RTS) == 0);
}

static struct end a, b;
static const char *on_a = "mlx5_0", *on_b = "mlx5_1";

static inline void pair(void)
{
    a = end_on(on_a);
    b = end_on(on_b);
}

static inline void connected(void)
{
    pair();
    bring_up(&a, attributes(&a, &b));
    bring_up(&b, attributes(&b, &a));
}

static inline struct verbs_wc polled(struct verbs_cq *cq)
{
    struct verbs_wc wc;
    int n = 0;

    for (double end = now() + 20; !n && now() < end;)
        n = verbs_poll_cq(cq, 1, &wc);
    CHECK(n == 1);
    return wc;
}

static struct verbs_sge sge;
static inline struct verbs_send_wr request(int opcode, size_t bytes)
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
static inline int status_of(struct verbs_send_wr wr)
{
    CHECK(verbs_post_send(a.qp, &wr) == 0);
    struct verbs_wc wc = polled(a.cq);
    CHECK(wc.id == wr.id && wc.qp == a.qp->number);
    return wc.status;
}

static inline int write_status(size_t bytes)
{
    return status_of(request(VERBS_WRITE, bytes));
}

static inline void post_recv(struct end *e, size_t bytes, uint32_t lkey)
{
    struct verbs_sge to = {(uint64_t)(uintptr_t)e->at, (uint32_t)bytes, lkey};
    struct verbs_recv_wr wr = {.id = 5, .sges = &to, .n_sges = 1};

    CHECK(verbs_post_recv(e->qp, &wr) == 0);
}

static inline void fill(unsigned char *at, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        at[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static const char two[] = "device mlx5_0-1\n";

static inline struct verbs_event event_of(struct verbs_hca *hca)
{
    struct pollfd p = {.fd = hca->async_fd, .events = POLLIN};
    struct verbs_event e = {0};

    CHECK(poll(&p, 1, 20000) == 1);
    CHECK(verbs.get_async_event(hca, &e) == 0);
    verbs.ack_async_event(&e);
    return e;
}

/* a's write, and not before all retries. */
static inline void never_arrives(void)
{
    double begin = now();

    CHECK(write_status(8) == VERBS_WC_RETRY_EXCEEDED);
    CHECK(now() - begin >= 4 * 4.19e-3);
    CHECK(b.at[0] == 0);
}

#endif
