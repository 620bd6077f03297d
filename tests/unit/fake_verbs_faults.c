/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_verbs_faults.c - each fault of the stand-in for libibverbs (tests/fake), several processes, and
 * what its text of devices says. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "test.h"

#include "fake_verbs.h"

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

TEST(any_status_can_be_made_anywhere)
{
    static const char *const where[] = {"*:2", "0:2", "0>0:2", "mlx5_0:2", "mlx5_0.1:2", "0:150b"};
    char fault[64];

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
    CHECK(polled(a.cq).status == 0 && now() - begin >= 0.05);
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

TEST(every_fault_happens)
{
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

TEST(processes_reach_each_other)
{
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
    CHECK(d.max_qp_reads == 16 && d.max_qp_init_reads == 16 && d.max_qp_wr == 1024);
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

TEST(devices_are_as_the_text_says)
{
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

TEST(a_gpu_is_reached_as_the_text_says)
{
    with("device mlx5_0-1\n", "", by_dma_buf);
    with("device mlx5_0-1 peermem=yes\n", "", by_peermem);
    with("device mlx5_0-1 dmabuf=no\n", "", by_neither);
}
