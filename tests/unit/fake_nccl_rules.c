/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rule of the stand-ins (tests/fake) broken once: one that never fires would let through what
 * the real libraries refuse, die of or hang in. */
#include <pthread.h>

#include "test.h"

#include "kernels/cuda_api.h"
#include "ranks.h"

enum { COUNT = 96 }; /* elements; a multiple of the ranks */

/* --- memory --- */
/* The stream ends in this CUDA error, and so does every later call. */
static void stream_says(const char *error)
{
    struct err err = {0};
    int done = 0;

    for (double end = now() + 10; !done && now() < end; nap(0.001))
        done = gpu_stream_done(my_stream, &err);
    if (done != -1 || !strstr(err.text, error)) {
        fprintf(stderr, "# not %s: %d \"%s\"\n", error, done, err.text);
        _exit(1);
    }
    CHECK(gpu_stream_wait(my_stream, &err) == -1);
}

static int all_reduce(const void *from, void *to, int dtype, nccl_comm c)
{
    return nccl.AllReduce(from, to, COUNT, dtype, NCCL_SUM, c, my_stream);
}

static float on_host[COUNT];

static void host_memory(void)
{
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    CHECK(all_reduce(on_host, device(NULL, sizeof(on_host)), NCCL_FLOAT32, c) == NCCL_SUCCESS);
    stream_says("ILLEGAL_ADDRESS");
}

static void host_memory_checked(void)
{
    setenv("NCCL_CHECK_POINTERS", "1", 1);
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    void *at = device(NULL, sizeof(on_host));
    CHECK(all_reduce(on_host, at, NCCL_FLOAT32, c) == NCCL_INVALID_ARGUMENT);
    CHECK(strstr(nccl.GetLastError(c), "sendbuff") && strstr(nccl.GetLastError(c), "not a valid"));
    CHECK(all_reduce(at, on_host, NCCL_FLOAT32, c) == NCCL_INVALID_ARGUMENT);
    CHECK(strstr(nccl.GetLastError(c), "recvbuff"));
    CHECK(nccl.Send(on_host, 1, NCCL_INT8, 0, c, my_stream) == NCCL_INVALID_ARGUMENT);
}

static void other_gpu(void)
{
    cuda_context context;
    cuda_ptr foreign;

    setenv("NCCL_CHECK_POINTERS", "1", 1);
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    CHECK(!cuda.DevicePrimaryCtxRetain(&context, 7) && !cuda.CtxSetCurrent(context));
    CHECK(!cuda.MemAlloc(&foreign, sizeof(on_host)));
    void *at = (void *)(uintptr_t)foreign;
    CHECK(all_reduce(at, at, NCCL_FLOAT32, c) == NCCL_INVALID_ARGUMENT);
    CHECK(strstr(nccl.GetLastError(c), "allocated on device 7"));
}

static void pinned_memory(void)
{
    struct gpu_buffer b;
    struct err err = {0};

    load_all(my_rank);
    nccl_comm c = comm_of(0);
    CHECK(gpu_alloc(&b, GPU_PINNED, sizeof(on_host), &err) == 0);
    CHECK(all_reduce(b.at, b.at, NCCL_FLOAT32, c) == NCCL_SUCCESS && done_within(10));
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

/* Which call, and which of its buffers ends one byte too early. */
static struct {
    int kind;
    bool recv;
} short_by;

static void one_short(void)
{
    size_t n = (size_t)my_ranks, all = n * COUNT;

    load_all(my_rank);
    nccl_comm c = comm_of(0);
    gpu_stream s = my_stream;
#define SEND(bytes) device(NULL, (bytes) - !short_by.recv)
#define RECV(bytes) device(NULL, (bytes)-short_by.recv)
    switch (short_by.kind) {
    case 0:
        nccl.AllReduce(SEND(COUNT), RECV(COUNT), COUNT, NCCL_INT8, NCCL_SUM, c, s);
        break;
    case 1:
        nccl.AllGather(SEND(COUNT), RECV(all), COUNT, NCCL_INT8, c, s);
        break;
    case 2:
        nccl.ReduceScatter(SEND(all), RECV(COUNT), COUNT, NCCL_INT8, NCCL_SUM, c, s);
        break;
    case 3:
        nccl.Broadcast(SEND(COUNT), RECV(COUNT), COUNT, NCCL_INT8, my_rank, c, s);
        break;
    case 4:
        nccl.Reduce(SEND(COUNT), RECV(COUNT), COUNT, NCCL_INT8, NCCL_SUM, my_rank, c, s);
        break;
    case 5:
        nccl.AlltoAll(SEND(all), RECV(all), COUNT, NCCL_INT8, c, s);
        break;
    case 6:
        nccl.Gather(SEND(COUNT), RECV(all), COUNT, NCCL_INT8, my_rank, c, s);
        break;
    case 7:
        nccl.Scatter(SEND(all), RECV(COUNT), COUNT, NCCL_INT8, my_rank, c, s);
        break;
    default:
        if (short_by.recv)
            nccl.Recv(RECV(COUNT), COUNT, NCCL_INT8, 1 - my_rank, c, s);
        else
            nccl.Send(SEND(COUNT), COUNT, NCCL_INT8, 1 - my_rank, c, s);
    }
    stream_says("ILLEGAL_ADDRESS");
}

static void odd_address(void)
{
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    char *at = device(NULL, 8 * sizeof(on_host));
    /* What is moved and not added up is moved as bytes. */
    CHECK(nccl.AllGather(at + 1, at + sizeof(on_host) + 1, 8, NCCL_FLOAT32, c, my_stream) ==
          NCCL_SUCCESS);
    CHECK(done_within(10));
    CHECK(all_reduce(at + 1, at + 1, NCCL_FLOAT32, c) == NCCL_SUCCESS);
    stream_says("MISALIGNED_ADDRESS");
}

TEST(buffers_are_memory_of_the_gpu_and_large_enough)
{
    assert_true(ranks_run(2, host_memory, -1));
    assert_true(ranks_run(2, host_memory_checked, -1));
    assert_true(ranks_run(2, other_gpu, -1));
    assert_true(ranks_run(2, pinned_memory, -1));
    assert_true(ranks_run(2, odd_address, -1));
    for (short_by.kind = 0; short_by.kind < 9; short_by.kind++)
        for (int recv = 0; recv < 2; recv++) {
            short_by.recv = recv;
            assert_true(ranks_run(2, one_short, -1));
        }
}

/* --- what is undefined ends the process --- */
static void well_ended(int signal)
{
    (void)signal;
    _exit(0);
}

static int which;

static void undefined(void)
{
    size_t all = (size_t)my_ranks * COUNT;
    int state;

    load_all(my_rank);
    nccl_comm c = comm_of(0), part;
    gpu_stream s = my_stream;
    char *at = device(NULL, 2 * all);

    signal(SIGABRT, well_ended);
    switch (which) {
    case 0:
        nccl.AllReduce(at, at + 1, COUNT, NCCL_INT8, NCCL_SUM, c, s);
        break;
    case 1: /* the block of another rank */
        nccl.AllGather(at + (1 - my_rank) * COUNT, at, COUNT, NCCL_INT8, c, s);
        break;
    case 2:
        nccl.ReduceScatter(at, at + (1 - my_rank) * COUNT, COUNT, NCCL_INT8, NCCL_SUM, c, s);
        break;
    case 3:
        nccl.Broadcast(at, at + COUNT - 1, COUNT, NCCL_INT8, my_rank, c, s);
        break;
    case 4:
        nccl.AlltoAll(at, at, COUNT, NCCL_INT8, c, s);
        break;
    case 5:
        nccl.Gather(at, at + 1, COUNT, NCCL_INT8, my_rank, c, s);
        break;
    case 6:
        nccl.Scatter(at, at + 1, COUNT, NCCL_INT8, my_rank, c, s);
        break;
    case 7:
        nccl.GroupStart();
        nccl.Send(at, COUNT, NCCL_INT8, 1 - my_rank, c, s);
        nccl.Recv(at + 8, COUNT, NCCL_INT8, 1 - my_rank, c, s);
        nccl.GroupEnd();
        break;
    case 8:
        nccl.CommDestroy(c);
        nccl.AllReduce(at, at, COUNT, NCCL_INT8, NCCL_SUM, c, s);
        break;
    case 9:
        nccl.CommAbort(c);
        nccl.CommAbort(c);
        break;
    case 10: /* the other one does not come: it is still under way */
        if (my_rank)
            _exit(0);
        nccl.AllGather(at, at, COUNT, NCCL_INT8, c, s);
        nccl.CommSplit(c, 0, 0, &part, NULL);
        break;
    default:
        nccl.CommDestroy(c);
        nccl.CommGetAsyncError(c, &state);
    }
    fprintf(stderr, "# use %d was let through\n", which);
    _exit(1);
}

TEST(undefined_use_is_not_let_through)
{
    for (which = 0; which < 12; which++)
        assert_true(ranks_run(2, undefined, -1));
}

/* --- what hangs, hangs --- */
static void stands(nccl_comm c)
{
    int state = -1;

    CHECK(!done_within(0.2));
    CHECK(nccl.CommGetAsyncError(c, &state) == NCCL_SUCCESS && state == NCCL_SUCCESS);
    atomic_store(&shared->note[my_rank], 1);
    for (int r = 0; r < my_ranks; r++) /* who gives up must not be what the others wait for */
        while (!atomic_load(&shared->note[r]))
            nap(0.001);
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
    CHECK(done_within(10));
}

static void other_call(void)
{
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    char *at = device(NULL, 2 * COUNT);
    CHECK((my_rank ? nccl.AllReduce(at, at, COUNT, NCCL_INT8, NCCL_SUM, c, my_stream)
                   : nccl.AllGather(at, at, COUNT, NCCL_INT8, c, my_stream)) == NCCL_SUCCESS);
    stands(c);
}

static void other_count(void)
{
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    char *at = device(NULL, COUNT);
    CHECK(nccl.AllReduce(at, at, COUNT - (size_t)my_rank, NCCL_INT8, NCCL_SUM, c, my_stream) ==
          NCCL_SUCCESS);
    stands(c);
}

static void other_size(void)
{
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    char *at = device(NULL, COUNT);
    CHECK((my_rank ? nccl.Recv(at, COUNT, NCCL_INT8, 0, c, my_stream)
                   : nccl.Send(at, COUNT - 1, NCCL_INT8, 1, c, my_stream)) == NCCL_SUCCESS);
    stands(c);
}

/* Two communicators in one stream, each rank in an order of its own. */
static void other_order(void)
{
    load_all(my_rank);
    nccl_comm c[2] = {comm_of(0), comm_of(1)};
    char *at = device(NULL, COUNT);
    for (int i = 0; i < 2; i++)
        CHECK(nccl.AllReduce(at, at, COUNT, NCCL_INT8, NCCL_SUM, c[i ^ my_rank], my_stream) ==
              NCCL_SUCCESS);
    CHECK(!done_within(0.2));
    atomic_store(&shared->note[my_rank], 1);
    while (!atomic_load(&shared->note[1 - my_rank]))
        nap(0.001);
    for (int i = 0; i < 2; i++)
        CHECK(nccl.CommAbort(c[i ^ my_rank]) == NCCL_SUCCESS);
    CHECK(done_within(10));
}

TEST(what_the_ranks_do_not_agree_on_hangs)
{
    assert_true(ranks_run(2, other_call, -1));
    assert_true(ranks_run(2, other_count, -1));
    assert_true(ranks_run(2, other_size, -1));
    assert_true(ranks_run(2, other_order, -1));
}

/* --- groups and the end --- */
static void groups(void)
{
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    char *at = device(NULL, COUNT);
    for (int recv = 0; recv < 2; recv++) {
        CHECK(nccl.GroupStart() == NCCL_SUCCESS);
        CHECK((recv ? nccl.Recv(at, COUNT, NCCL_INT8, my_rank, c, my_stream)
                    : nccl.Send(at, COUNT, NCCL_INT8, my_rank, c, my_stream)) == NCCL_SUCCESS);
        CHECK(nccl.GroupEnd() == NCCL_INVALID_USAGE);
        CHECK(strstr(nccl.GetLastError(c), recv ? "recv to self" : "send to self"));
    }
    CHECK(nccl.Send(at, COUNT, NCCL_INT8, my_rank, c, my_stream) == NCCL_INVALID_USAGE);
    CHECK(nccl.CommFinalize(c) == NCCL_SUCCESS);
    CHECK(nccl.CommFinalize(c) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(a_rank_sends_to_itself_in_one_group_only)
{
    assert_true(ranks_run(2, groups, -1));
}

/* --- configurations --- */
static int init_with(const struct nccl_config *config, nccl_comm *c)
{
    *c = NULL;
    return nccl.CommInitRankConfig(c, 1, id_of(0), 0, (struct nccl_config *)config);
}

static void configs(void)
{
#define WITH(field, value)                                                                         \
    {                                                                                              \
        offsetof(struct nccl_config, field), value                                                 \
    }
    static const struct {
        size_t at;
        int value;
    } wrong[] = {
        WITH(magic, 7),
        WITH(blocking, 2),
        WITH(cga_cluster_size, -1),
        WITH(max_ctas, 0),
        WITH(min_ctas, 4), /* without a largest number */
        WITH(split_share, 2),
        WITH(collnet_enable, 2),
        WITH(cta_policy, -1),
        WITH(shrink_share, 3),
        WITH(nvls_ctas, 0),
        WITH(n_channels_per_net_peer, 65),
        WITH(nvlink_centric_sched, 2),
        WITH(graph_usage_mode, 3),
        WITH(num_rma_ctx, -1),
        WITH(max_p2p_peers, 0),
        WITH(graph_stream_ordering, 2),
    };
    struct nccl_config config;
    nccl_comm c;

    setenv("FAKE_NCCL_VERSION", "23007", 1);
    load_all(0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        nccl_config(&config);
        memcpy((char *)&config + wrong[i].at, &wrong[i].value, sizeof(int));
        if (init_with(&config, &c) != NCCL_INVALID_ARGUMENT || c) {
            fprintf(stderr, "# configuration %zu was taken\n", i);
            _exit(1);
        }
    }
    nccl_config(&config);
    config.size = offsetof(struct nccl_config, magic); /* the library reads no more than that */
    CHECK(init_with(&config, &c) == NCCL_INVALID_ARGUMENT);
    nccl_config(&config);
    config.nvls_ctas = -5; /* behind the end that is given */
    config.size = offsetof(struct nccl_config, nvls_ctas);
    CHECK(init_with(&config, &c) == NCCL_SUCCESS && nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(a_configuration_is_looked_at_field_by_field)
{
    assert_true(ranks_run(1, configs, -1));
}

/* --- windows --- */
static void windows(void)
{
    nccl_window w = NULL;
    void *at = NULL;

    load_all(my_rank);
    nccl_comm c = comm_of(0);
    CHECK(nccl.MemAlloc(&at, 8192) == NCCL_SUCCESS);
    CHECK(nccl.CommWindowRegister(c, NULL, 8192, &w, 1) == NCCL_SUCCESS && !w);
    CHECK(nccl.CommWindowRegister(c, at, 0, &w, 1) == NCCL_SUCCESS && !w);
    CHECK(nccl.CommWindowRegister(c, (char *)at + 64, 64, &w, 1) == NCCL_INVALID_ARGUMENT);
    if (my_rank == 1) {
        nap(0.2);
        atomic_store(&shared->note[1], 1);
    }
    CHECK(nccl.CommWindowRegister(c, at, 8192, &w, 1) == NCCL_SUCCESS && w);
    CHECK(atomic_load(&shared->note[1])); /* nobody is through before the last one came */
    CHECK(nccl.CommWindowDeregister(c, w) == NCCL_SUCCESS && nccl.MemFree(at) == NCCL_SUCCESS);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

static void windows_nonblocking(void)
{
    struct nccl_config config;
    nccl_window w = NULL;
    nccl_comm c = NULL;
    void *at = NULL;

    load_all(my_rank);
    nccl_config(&config);
    config.blocking = 0;
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(0), my_rank, &config) == NCCL_IN_PROGRESS);
    CHECK(settled(c) == NCCL_SUCCESS && nccl.MemAlloc(&at, 4096) == NCCL_SUCCESS);
    if (my_rank == 1) {
        nap(0.2);
        atomic_store(&shared->note[1], 1);
    }
    CHECK(nccl.CommWindowRegister(c, at, 4096, &w, 1) == NCCL_SUCCESS);
    CHECK(settled(c) == NCCL_SUCCESS && w && atomic_load(&shared->note[1]));
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
}

TEST(windows_are_registered_by_all)
{
    assert_true(ranks_run(3, windows, -1));
    assert_true(ranks_run(3, windows_nonblocking, -1));
}

/* --- recording graphs --- */
enum mode { GLOBAL, THREAD_LOCAL, RELAXED };
static int result_here;

static void *allocate(void *arg)
{
    cuda_context context;
    cuda_ptr at;

    (void)arg;
    CHECK(!cuda.DevicePrimaryCtxRetain(&context, 0) && !cuda.CtxSetCurrent(context));
    result_here = cuda.MemAlloc(&at, 64);
    return NULL;
}

static int end_recording(void)
{
    cuda_graph graph = NULL;
    int rc = cuda.StreamEndCapture(my_stream, &graph);

    CHECK(!graph == (rc != 0));
    return rc;
}

static void *end_elsewhere(void *arg)
{
    cuda_context context;

    (void)arg;
    CHECK(!cuda.DevicePrimaryCtxRetain(&context, 0) && !cuda.CtxSetCurrent(context));
    result_here = end_recording();
    return NULL;
}

static void in_a_thread(void *(*what)(void *))
{
    pthread_t other;

    CHECK(pthread_create(&other, NULL, what, NULL) == 0);
    pthread_join(other, NULL);
}

static void recording(void)
{
    /* What an allocation says meanwhile: of the thread that records, of another. */
    static const int says[3][2] = {{900, 900}, {900, 0}, {0, 0}};
    cuda_ptr at;

    load_all(0);
    for (int mode = GLOBAL; mode <= RELAXED; mode++)
        for (int other = 0; other < 2; other++) {
            CHECK(cuda.StreamBeginCapture(my_stream, mode) == 0);
            if (other)
                in_a_thread(allocate);
            else
                result_here = cuda.MemAlloc(&at, 64);
            CHECK(result_here == says[mode][other]);
            CHECK(end_recording() == (result_here ? 901 : 0));
        }
    CHECK(cuda.StreamBeginCapture(my_stream, GLOBAL) == 0);
    CHECK(cuda.StreamQuery(my_stream) == 900); /* it has no state that could be asked for */
    CHECK(end_recording() == 901);
    CHECK(cuda.StreamBeginCapture(my_stream, THREAD_LOCAL) == 0);
    in_a_thread(end_elsewhere);
    CHECK(result_here == 908 && end_recording() == 0);
    CHECK(cuda.StreamBeginCapture(my_stream, 3) == CUDA_INVALID_VALUE);
}

static void recording_groups(void)
{
    gpu_stream plain;
    struct err err = {0};

    load_all(my_rank);
    nccl_comm c = comm_of(0);
    char *at = device(NULL, COUNT), *other = device(NULL, COUNT);
    CHECK(gpu_stream_open(&plain, &err) == 0);
    CHECK(cuda.StreamBeginCapture(my_stream, THREAD_LOCAL) == 0);
    CHECK(nccl.GroupStart() == NCCL_SUCCESS);
    nccl.AllReduce(at, at, COUNT, NCCL_INT8, NCCL_SUM, c, my_stream);
    nccl.AllReduce(other, other, COUNT, NCCL_INT8, NCCL_SUM, c, plain);
    CHECK(nccl.GroupEnd() == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(c), "all captured by the same graph"));
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
}

TEST(what_cannot_be_recorded_costs_the_graph)
{
    assert_true(ranks_run(1, recording, -1));
    assert_true(ranks_run(2, recording_groups, -1));
}

/* --- algorithms and connections --- */
static void profile(const char *text)
{
    char path[64];
    int fd = memfd_create("FAKE_NCCL", 0);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    setenv("FAKE_NCCL", path, 1);
}

#define ONE_HOST "nvls 16\n"
#define TWO_HOSTS "host 0-1 a\nhost 2-3 b\nnvls 16\n"
#define FOUR_HOSTS "host 0 a\nhost 1 b\nhost 2 c\nhost 3 d\n"
enum { OK = NCCL_SUCCESS, NO = NCCL_INVALID_USAGE };
static const struct algorithm {
    const char *version, *profile, *algo, *proto;
    int init, all_reduce, all_gather;
} algorithms[] = {
    {"22809", ONE_HOST, "Tree", "", OK, OK, NO},
    {"22809", ONE_HOST, "NVLS", "", OK, OK, OK},
    {"22809", ONE_HOST, "NVLS", "LL", OK, NO, NO},
    {"22809", "", "NVLS", "", OK, NO, NO}, /* without multicast */
    {"22809", ONE_HOST, "NVLSTree", "", OK, NO, NO},
    {"22809", TWO_HOSTS, "NVLSTree", "", OK, OK, NO},
    {"22809", TWO_HOSTS, "NVLS", "", OK, NO, NO},
    {"22809", ONE_HOST, "CollNetDirect,CollNetChain", "", OK, NO, NO},
    {"22809", ONE_HOST, "PAT", "", OK, NO, NO},
    {"22809", FOUR_HOSTS, "PAT", "", OK, NO, OK},
    {"22809", ONE_HOST, "allreduce:tree;allgather:ring", "", OK, OK, OK},
    {"22809", ONE_HOST, "^ring;allreduce:tree", "ll;allgather:^ll", OK, OK, OK},
    {"22809", ONE_HOST, "tree,ring;allgather:tree", "", OK, OK, NO},
    {"22809", ONE_HOST, "allreduce:tree;ring", "", NO, OK, OK},
    {"22809", ONE_HOST, "gather:ring", "", NO, OK, OK},
    {"22809", ONE_HOST, "Star", "", NO, OK, OK},
    {"22809", ONE_HOST, "", "LL256", NO, OK, OK},
    {"22403", ONE_HOST, "allreduce:tree", "", OK, OK, OK},
    {"22304", ONE_HOST, "Star", "", OK, OK, OK},
    {"22304", ONE_HOST, "allreduce:tree;ring", "", OK, OK, OK},
    {"22304", FOUR_HOSTS, "PAT", "", OK, OK, OK},
    {"22203", FOUR_HOSTS, "PAT", "", OK, OK, OK}, /* which it has not heard of */
    {"22203", ONE_HOST, "CollNetChain", "", OK, OK, OK},
};
static const struct algorithm *algorithm;

static void choosing(void)
{
    const struct algorithm *a = algorithm;
    struct nccl_config config;
    nccl_comm c = NULL;

    profile(a->profile);
    setenv("FAKE_NCCL_VERSION", a->version, 1);
    if (*a->algo)
        setenv("NCCL_ALGO", a->algo, 1);
    if (*a->proto)
        setenv("NCCL_PROTO", a->proto, 1);
    load_all(my_rank);
    nccl_config(&config);
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(0), my_rank, &config) == a->init);
    if (a->init == OK) {
        char *at = device(NULL, 4 * COUNT), *to = device(NULL, COUNT * (size_t)my_ranks);

        CHECK(nccl.AllReduce(at, at, COUNT, NCCL_INT32, NCCL_SUM, c, my_stream) == a->all_reduce ||
              !"all_reduce");
        CHECK(nccl.AllGather(at, to, COUNT, NCCL_INT8, c, my_stream) == a->all_gather);
        CHECK(done_within(10)); /* nobody's memory is gone while another one still reads it */
    }
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
    _exit(0);
}

TEST(what_a_communicator_cannot_do_is_refused_or_passed_over_by_version)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        algorithm = &algorithms[i];
        if (!ranks_run(4, choosing, -1))
            fail_msg("%s, NCCL_ALGO=%s NCCL_PROTO=%s", algorithm->version, algorithm->algo,
                     algorithm->proto);
    }
}

static double seconds_of(nccl_comm c, bool send)
{
    char *at = device(NULL, COUNT);
    double begin = now();

    if (send)
        CHECK((my_rank ? nccl.Recv(at, COUNT, NCCL_INT8, 0, c, my_stream)
                       : nccl.Send(at, COUNT, NCCL_INT8, 1, c, my_stream)) == NCCL_SUCCESS);
    else
        CHECK(nccl.AllGather(at + my_rank * 8, at, 8, NCCL_INT8, c, my_stream) == NCCL_SUCCESS);
    return now() - begin;
}

static void connecting(void)
{
    profile("connect 0.3\n");
    load_all(my_rank);
    nccl_comm c = comm_of(0);
    for (int send = 0; send < 2; send++) {
        CHECK(seconds_of(c, send) >= 0.3);
        CHECK(seconds_of(c, send) < 0.25);
    }
    CHECK(done_within(10) && nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(the_first_use_of_a_connection_pays_for_it)
{
    assert_true(ranks_run(2, connecting, -1));
}

/* --- parts of a communicator --- */
static nccl_comm part_of(nccl_comm all, int color, int key)
{
    nccl_comm part = (nccl_comm)-1;

    CHECK(nccl.CommSplit(all, color, key, &part, NULL) == NCCL_SUCCESS);
    CHECK((part != NULL) == (color >= 0));
    return part;
}

/* The sum of the ranks' numbers over this part. */
static int sum_over(nccl_comm c)
{
    int32_t mine = my_rank, *at = device(&mine, sizeof(mine));

    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT32, NCCL_SUM, c, my_stream) == NCCL_SUCCESS);
    CHECK(done_within(10));
    fetch(&mine, at, sizeof(mine));
    return mine;
}

/* Pairs that change from split to split, as the rounds of a campaign do, and one rank left over. */
static void splitting(void)
{
    load_all(my_rank);
    nccl_comm all = comm_of(0);
    for (int round = 0; round < 4; round++) {
        int left = round % 4, place = (my_rank - left - 1 + 4) % 4; /* 3: left over */
        nccl_comm part = part_of(all, place == 3 ? NCCL_NO_COLOR : place == 2, -place);
        int others = 0 + 1 + 2 + 3 - left, third = (left + 3) % 4;
        if (part)
            CHECK(sum_over(part) == (place == 2 ? third : others - third));
        CHECK(nccl.CommDestroy(part) == NCCL_SUCCESS);
    }
    CHECK(sum_over(all) == 6 && nccl.CommDestroy(all) == NCCL_SUCCESS);
}

static void split_refused(void)
{
    struct nccl_config config;

    load_all(my_rank);
    nccl_comm all = comm_of(0), part = NULL;
    CHECK(nccl.CommSplit(NULL, 0, 0, &part, NULL) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.CommSplit(all, 0, 0, NULL, NULL) == NCCL_INVALID_ARGUMENT);
    nccl_config(&config);
    config.split_share = 2;
    CHECK(nccl.CommSplit(all, 0, 0, &part, &config) == NCCL_INVALID_ARGUMENT && !part);
    CHECK(nccl.CommDestroy(all) == NCCL_SUCCESS);
}

/* With splitShare whoever aborts a part has aborted the whole; without it has not. */
static void split_aborted(void)
{
    struct nccl_config config;

    for (int share = 0; share < 2; share++) {
        nccl_comm all = NULL, part, other;

        if (!share)
            load_all(my_rank);
        nccl_config(&config);
        config.split_share = share;
        CHECK(!nccl.CommInitRankConfig(&all, my_ranks, id_of(share), my_rank, &config));
        part = part_of(all, 0, 0);
        other = part_of(all, 0, 0);
        CHECK(sum_over(part) == 1);
        CHECK(nccl.CommAbort(part) == NCCL_SUCCESS);
        CHECK(sum_over(all) == (share ? my_rank : 1)); /* aborted: nothing is done */
        CHECK(sum_over(other) == (share ? my_rank : 1));
    }
}

TEST(parts_are_made_by_all_and_end_as_they_share)
{
    assert_true(ranks_run(4, splitting, -1));
    assert_true(ranks_run(1, split_refused, -1));
    assert_true(ranks_run(2, split_aborted, -1));
}

static double seconds_of_split(nccl_comm all, int color)
{
    double begin = now();
    nccl_comm part = part_of(all, color, 0);

    begin = now() - begin;
    CHECK(nccl.CommDestroy(part) == NCCL_SUCCESS);
    return begin;
}

/* 2 ranks of 4: an init takes 0.02 + 4 * (0.01 + 0.03), a split 4 * 0.02 + 0.02 + 2 * 0.01. */
static void paying(void)
{
    setenv("FAKE_NCCL_COST", "init=0.02,rank=0.01,root=0.03,parent=0.02", 1);
    load_all(my_rank);
    double begin = now();
    nccl_comm all = comm_of(0);
    CHECK(now() - begin >= 0.18);
    bool in = my_rank < 2;
    double took = seconds_of_split(all, in ? 0 : NCCL_NO_COLOR);
    CHECK(took >= (in ? 0.12 : 0.08));
    CHECK(nccl.CommDestroy(all) == NCCL_SUCCESS);
}

/* On the GPU's clock; nothing waits. */
static double seconds_between(nccl_comm c, int peer)
{
    struct gpu_clock *clock;
    struct err err = {0};
    double sec = 0;
    void *at = device(NULL, COUNT);

    CHECK(gpu_clock_open(&clock, 2, &err) == 0);
    CHECK(gpu_clock_record(clock, 0, my_stream, &err) == 0);
    CHECK(!(my_rank < peer ? nccl.Send(at, COUNT, NCCL_INT8, peer, c, my_stream)
                           : nccl.Recv(at, COUNT, NCCL_INT8, peer, c, my_stream)));
    CHECK(gpu_clock_record(clock, 1, my_stream, &err) == 0 && done_within(10));
    CHECK(gpu_clock_read(clock, 1, &sec, &err) == 0);
    gpu_clock_close(clock);
    return sec;
}

/* A pair of one host is slow on the communicator of all; one over hosts, or of their own, is not. */
static void slow_near(void)
{
    profile("host 0-1 a\nhost 2-3 b\n");
    setenv("FAKE_NCCL_COST", "p2p=1,near=10", 1);
    load_all(my_rank);
    nccl_comm all = comm_of(0), pair = NULL;
    double near = seconds_between(all, my_rank ^ 1), far = seconds_between(all, my_rank ^ 2);
    CHECK(near >= 10 && near < 10.9);
    CHECK(far >= 1 && far < 1.9);
    CHECK(!nccl.CommSplit(all, my_rank / 2, 0, &pair, NULL));
    int base = my_rank;
    my_rank &= 1;
    double own = seconds_between(pair, my_rank ^ 1);
    my_rank = base;
    CHECK(own >= 1 && own < 1.9);
}

TEST(what_making_and_using_costs_is_what_it_is_told_to)
{
    assert_true(ranks_run(4, paying, -1));
    assert_true(ranks_run(4, slow_near, -1));
}
