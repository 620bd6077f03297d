/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for NCCL against plain arithmetic: what it gets wrong, every test above it would. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>

#include "test.h"

#include "ranks.h"

enum { COUNT = 1031, MOST = RANKS_MAX * COUNT };

/* --- small whole numbers in every type, made without the stand-in's arithmetic --- */
static void put(void *at, size_t i, int dtype, int value)
{
    /* 0 .. 10 as sign, exponent and mantissa with two bits, all that the smallest type has. */
    static const unsigned char exponent[] = {0, 0, 1, 1, 2, 2, 2, 0, 3, 0, 3};
    static const unsigned char quarter[] = {0, 0, 0, 2, 0, 1, 2, 0, 0, 0, 1};
    static const struct {
        int bias, mantissa;
    } small[NCCL_DTYPES] = {[NCCL_FLOAT16] = {15, 10},
                            [NCCL_BFLOAT16] = {127, 7},
                            [NCCL_FLOAT8E4M3] = {7, 3},
                            [NCCL_FLOAT8E5M2] = {15, 2}};
    unsigned bits = 0;

    if (value > 10) /* powers of two from products */
        bits = (unsigned)(ilogb(value) + small[dtype].bias) << small[dtype].mantissa;
    else if (value > 0)
        bits = (unsigned)(exponent[value] + small[dtype].bias) << small[dtype].mantissa |
               (unsigned)quarter[value] << small[dtype].mantissa >> 2;
    switch (dtype) {
    case NCCL_FLOAT32:
        ((float *)at)[i] = (float)value;
        break;
    case NCCL_FLOAT64:
        ((double *)at)[i] = value;
        break;
    case NCCL_INT8:
    case NCCL_UINT8:
        ((uint8_t *)at)[i] = (uint8_t)value;
        break;
    case NCCL_INT32:
    case NCCL_UINT32:
        ((uint32_t *)at)[i] = (uint32_t)value;
        break;
    case NCCL_INT64:
    case NCCL_UINT64:
        ((uint64_t *)at)[i] = (uint64_t)value;
        break;
    default:
        if (nccl_dtype_size(dtype) == 2)
            ((uint16_t *)at)[i] = (uint16_t)bits;
        else
            ((uint8_t *)at)[i] = (uint8_t)bits;
    }
}

/* What rank r holds at i: values whose sums, products and means fit the smallest type. */
static int value(int r, size_t i, int redop)
{
    size_t hot = (i + (size_t)r * 7) % 3;

    switch (redop) {
    case NCCL_SUM:
        return hot == 1 ? 2 : 0;
    case NCCL_PROD:
        return hot == 2 ? 2 : 1;
    case NCCL_AVG:
        return hot == 0 ? my_ranks : 0;
    default:
        return (int)((i * 5 + (size_t)r * 3) % 7);
    }
}

static int reduced(size_t i, int redop)
{
    int all = value(0, i, redop);

    for (int r = 1; r < my_ranks; r++) {
        int v = value(r, i, redop);

        all = redop == NCCL_PROD  ? all * v
              : redop == NCCL_MAX ? (v > all ? v : all)
              : redop == NCCL_MIN ? (v < all ? v : all)
                                  : all + v;
    }
    return redop == NCCL_AVG ? all / my_ranks : all;
}

static unsigned char host[MOST * 8], want[MOST * 8], got[MOST * 8];

static void compare(const void *from, size_t count, int dtype, const char *what)
{
    size_t bytes = count * nccl_dtype_size(dtype);

    fetch(got, from, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != want[i]) {
            fprintf(stderr, "# rank %d of %d: %s of %s: byte %zu is 0x%02x, not 0x%02x\n", my_rank,
                    my_ranks, what, nccl_dtype_name[dtype], i, got[i], want[i]);
            _exit(1);
        }
}

static void run_all_reduce(nccl_comm c, size_t count, int dtype, int redop, bool in_place)
{
    size_t bytes = count * nccl_dtype_size(dtype);
    void *send, *recv;

    for (size_t i = 0; i < count; i++) {
        put(host, i, dtype, value(my_rank, i, redop));
        put(want, i, dtype, reduced(i, redop));
    }
    send = device(host, bytes);
    recv = in_place ? send : device(NULL, bytes);
    CHECK(nccl.AllReduce(send, recv, count, dtype, redop, c, my_stream) == NCCL_SUCCESS);
    compare(recv, count, dtype, "all_reduce");
}

static void run_reduce(nccl_comm c, size_t count, int dtype, int redop, int root, bool in_place)
{
    size_t bytes = count * nccl_dtype_size(dtype);
    void *send, *recv;

    for (size_t i = 0; i < count; i++) {
        put(host, i, dtype, value(my_rank, i, redop));
        put(want, i, dtype, reduced(i, redop));
    }
    send = device(host, bytes);
    recv = my_rank != root ? NULL : in_place ? send : device(NULL, bytes);
    CHECK(nccl.Reduce(send, recv, count, dtype, redop, root, c, my_stream) == NCCL_SUCCESS);
    if (recv)
        compare(recv, count, dtype, "reduce");
}

static void run_reduce_scatter(nccl_comm c, size_t count, int dtype, int redop, bool in_place)
{
    size_t all = count * (size_t)my_ranks, size = nccl_dtype_size(dtype);
    size_t mine = (size_t)my_rank * count;
    unsigned char *send, *recv;

    for (size_t i = 0; i < all; i++)
        put(host, i, dtype, value(my_rank, i, redop));
    for (size_t i = 0; i < count; i++)
        put(want, i, dtype, reduced(mine + i, redop));
    send = device(host, all * size);
    recv = in_place ? send + mine * size : device(NULL, count * size);
    CHECK(nccl.ReduceScatter(send, recv, count, dtype, redop, c, my_stream) == NCCL_SUCCESS);
    compare(recv, count, dtype, "reduce_scatter");
}

static void reductions(void)
{
    nccl_comm c;

    load_all(my_rank);
    c = comm_of(0);
    for (int dtype = 0; dtype < NCCL_DTYPES; dtype++)
        for (int redop = 0; redop < NCCL_REDOPS; redop++)
            for (int in_place = 0; in_place < 2; in_place++) {
                run_all_reduce(c, COUNT, dtype, redop, in_place);
                run_reduce_scatter(c, COUNT / 4, dtype, redop, in_place);
                run_reduce(c, COUNT / 4, dtype, redop, (dtype + redop) % my_ranks, in_place);
            }
    for (size_t count = 0; count < 8; count++) /* fewer elements than ranks */
        run_all_reduce(c, count, NCCL_FLOAT32, NCCL_SUM, count % 2);
    CHECK(nccl.CommFinalize(c) == NCCL_SUCCESS);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(every_reduction_of_every_type_is_right)
{
    for (int n = 1; n <= 5; n++)
        assert_true(ranks_run(n, reductions, -1));
}

/* --- sums that the type cannot hold --- */
struct pair {
    int dtype, redop;
    uint64_t a, b, sum;
};
static const struct pair pairs[] = {
    {NCCL_FLOAT16, NCCL_SUM, 0x6800, 0x3c00, 0x6800},  /* 2048 + 1: tie, to even */
    {NCCL_FLOAT16, NCCL_SUM, 0x6800, 0x4200, 0x6802},  /* 2048 + 3: tie, to even */
    {NCCL_FLOAT16, NCCL_SUM, 0x7bff, 0x7bff, 0x7c00},  /* beyond 65504: infinity */
    {NCCL_FLOAT16, NCCL_SUM, 0x0001, 0x0001, 0x0002},  /* subnormal */
    {NCCL_FLOAT16, NCCL_SUM, 0x03ff, 0x0001, 0x0400},  /* from subnormal to normal */
    {NCCL_FLOAT16, NCCL_PROD, 0x3c01, 0x3c01, 0x3c02}, /* (1 + 2^-10)^2 */
    {NCCL_BFLOAT16, NCCL_SUM, 0x4380, 0x3f80, 0x4380}, /* 256 + 1 */
    {NCCL_BFLOAT16, NCCL_SUM, 0x4380, 0xc000, 0x437e}, /* 256 - 2 */
    {NCCL_BFLOAT16, NCCL_SUM, 0x7f7f, 0x7f7f, 0x7f80}, /* infinity */
    {NCCL_FLOAT8E4M3, NCCL_SUM, 0x58, 0x38, 0x58},     /* 16 + 1 */
    {NCCL_FLOAT8E4M3, NCCL_SUM, 0x7e, 0x7e, 0x7e},     /* 448 stays the largest */
    {NCCL_FLOAT8E4M3, NCCL_SUM, 0x01, 0x07, 0x08},     /* 8 times the smallest */
    {NCCL_FLOAT8E4M3, NCCL_SUM, 0x7f, 0x38, 0x7f},     /* not a number */
    {NCCL_FLOAT8E5M2, NCCL_SUM, 0x48, 0x3c, 0x48},     /* 8 + 1: tie, to even */
    {NCCL_FLOAT8E5M2, NCCL_SUM, 0x7b, 0x7b, 0x7b},     /* 57344 stays the largest */
    {NCCL_FLOAT8E5M2, NCCL_MIN, 0xbc, 0x3c, 0xbc},     /* -1 < 1 */
    {NCCL_INT8, NCCL_SUM, 100, 100, 0xc8},             /* wraps to -56 */
    {NCCL_INT8, NCCL_MAX, 0xff, 1, 1},                 /* -1 < 1 */
    {NCCL_INT8, NCCL_AVG, 0xfd, 0, 0xff},              /* -3 / 2 */
    {NCCL_UINT8, NCCL_MAX, 0xff, 1, 0xff},
    {NCCL_UINT8, NCCL_AVG, 200, 100, 22}, /* the sum wraps first */
    {NCCL_INT64, NCCL_SUM, INT64_MAX, 1, (uint64_t)INT64_MIN},
    {NCCL_UINT64, NCCL_PROD, 0x100000001, 0x100000001, 0x200000001},
};

static void awkward(void)
{
    nccl_comm c;

    load_all(my_rank);
    c = comm_of(0);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        const struct pair *p = &pairs[i];
        uint64_t mine = my_rank ? p->b : p->a;
        void *at = device(&mine, sizeof(mine));

        CHECK(nccl.AllReduce(at, at, 1, p->dtype, p->redop, c, my_stream) == NCCL_SUCCESS);
        memcpy(want, &p->sum, sizeof(p->sum)); /* little-endian, as every GPU machine */
        compare(at, 1, p->dtype, nccl_redop_name[p->redop]);
    }
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(results_are_rounded_wrapped_or_saturated_as_on_the_gpu)
{
    assert_true(ranks_run(2, awkward, -1));
}

/* --- data movement: byte i of block b that rank r made --- */
static unsigned char mark(int r, int b, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)r * 31 + (size_t)b * 59 + 1);
}

static unsigned char *my_blocks(int blocks)
{
    for (int b = 0; b < blocks; b++)
        for (size_t i = 0; i < COUNT; i++)
            host[(size_t)b * COUNT + i] = mark(my_rank, b, i);
    return device(host, (size_t)blocks * COUNT);
}

static void want_block(int at, int r, int b)
{
    for (size_t i = 0; i < COUNT; i++)
        want[(size_t)at * COUNT + i] = mark(r, b, i);
}

static void run_gathers(nccl_comm c, bool in_place)
{
    size_t all = (size_t)my_ranks * COUNT, mine = (size_t)my_rank * COUNT;
    unsigned char *recv = device(NULL, all), *send = my_blocks(1);
    struct err err = {0};

    if (in_place) {
        CHECK(gpu_memcpy(recv + mine, send, COUNT, my_stream, &err) == 0);
        send = recv + mine;
    }
    for (int r = 0; r < my_ranks; r++)
        want_block(r, r, 0);
    CHECK(nccl.AllGather(send, recv, COUNT, NCCL_UINT8, c, my_stream) == NCCL_SUCCESS);
    compare(recv, all, NCCL_UINT8, "all_gather");
    for (int root = 0; root < my_ranks; root++) {
        recv = my_rank == root ? device(NULL, all) : NULL;
        CHECK(nccl.Gather(send, recv, COUNT, NCCL_UINT8, root, c, my_stream) == NCCL_SUCCESS);
        if (recv)
            compare(recv, all, NCCL_UINT8, "gather");
    }
}

static void run_from_root(nccl_comm c, int root)
{
    unsigned char *send = my_rank == root ? my_blocks(my_ranks) : NULL;
    unsigned char *recv = device(NULL, COUNT);

    CHECK(nccl.Broadcast(send, recv, COUNT, NCCL_INT8, root, c, my_stream) == NCCL_SUCCESS);
    want_block(0, root, 0);
    compare(recv, COUNT, NCCL_INT8, "broadcast");
    CHECK(nccl.Scatter(send, recv, COUNT, NCCL_INT8, root, c, my_stream) == NCCL_SUCCESS);
    want_block(0, root, my_rank);
    compare(recv, COUNT, NCCL_INT8, "scatter");
}

static void run_all_to_all(nccl_comm c, bool native)
{
    size_t all = (size_t)my_ranks * COUNT;
    unsigned char *send = my_blocks(my_ranks), *recv = device(NULL, all);

    for (int r = 0; r < my_ranks; r++)
        want_block(r, r, my_rank);
    if (native) {
        CHECK(nccl.AlltoAll(send, recv, COUNT, NCCL_UINT8, c, my_stream) == NCCL_SUCCESS);
    } else {
        CHECK(nccl.GroupStart() == NCCL_SUCCESS);
        for (int r = 0; r < my_ranks; r++) {
            size_t at = (size_t)r * COUNT;

            CHECK(nccl.Send(send + at, COUNT, NCCL_UINT8, r, c, my_stream) == NCCL_SUCCESS);
            CHECK(nccl.Recv(recv + at, COUNT, NCCL_UINT8, r, c, my_stream) == NCCL_SUCCESS);
        }
        CHECK(nccl.GroupEnd() == NCCL_SUCCESS);
    }
    compare(recv, all, NCCL_UINT8, native ? "all_to_all" : "grouped sends");
}

/* Two messages to the same neighbour keep their order; a group of collectives beside them. */
static void run_ring(nccl_comm c)
{
    unsigned char *send = my_blocks(2), *recv = device(NULL, 2 * COUNT), *sum = device(NULL, 8);
    int next = (my_rank + 1) % my_ranks, last = (my_rank + my_ranks - 1) % my_ranks;
    uint32_t one = 1, total = 0;
    void *ones = device(&one, sizeof(one));

    CHECK(nccl.GroupStart() == NCCL_SUCCESS);
    CHECK(nccl.Recv(recv, COUNT, NCCL_UINT8, last, c, my_stream) == NCCL_SUCCESS);
    CHECK(nccl.AllReduce(ones, sum, 1, NCCL_UINT32, NCCL_SUM, c, my_stream) == NCCL_SUCCESS);
    CHECK(nccl.Recv(recv + COUNT, COUNT, NCCL_UINT8, last, c, my_stream) == NCCL_SUCCESS);
    CHECK(nccl.Send(send, COUNT, NCCL_UINT8, next, c, my_stream) == NCCL_SUCCESS);
    CHECK(nccl.Send(send + COUNT, COUNT, NCCL_UINT8, next, c, my_stream) == NCCL_SUCCESS);
    CHECK(nccl.GroupEnd() == NCCL_SUCCESS);
    want_block(0, last, 0);
    want_block(1, last, 1);
    compare(recv, 2 * COUNT, NCCL_UINT8, "ring");
    fetch(&total, sum, sizeof(total));
    CHECK(total == (uint32_t)my_ranks);
    /* Outside of a group one way at a time. */
    if (my_rank < 2 && my_ranks > 1) {
        int peer = 1 - my_rank;

        if (my_rank)
            CHECK(nccl.Recv(recv, COUNT, NCCL_UINT8, peer, c, my_stream) == NCCL_SUCCESS);
        else
            CHECK(nccl.Send(send, COUNT, NCCL_UINT8, peer, c, my_stream) == NCCL_SUCCESS);
        want_block(0, peer, 0);
        if (my_rank)
            compare(recv, COUNT, NCCL_UINT8, "recv");
        else
            fetch(got, send, 1); /* the send is over when its stream is */
    }
}

static void movements(void)
{
    nccl_comm c;

    load_all(my_rank);
    c = comm_of(0);
    for (int in_place = 0; in_place < 2; in_place++)
        run_gathers(c, in_place);
    for (int root = 0; root < my_ranks; root++)
        run_from_root(c, root);
    for (int native = 0; native < 2; native++)
        run_all_to_all(c, native);
    run_ring(c);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(every_byte_that_is_moved_arrives_where_it_belongs)
{
    for (int n = 1; n <= 5; n++)
        assert_true(ranks_run(n, movements, -1));
}

/* --- graphs: what was captured runs again with what the buffers hold then --- */
static void replays(void)
{
    struct gpu_graph *g = NULL;
    struct err err = {0};
    nccl_comm c;
    int32_t *send, *recv, v = 0, sum = 0;

    load_all(my_rank);
    c = comm_of(0);
    send = device(&v, sizeof(v));
    recv = device(&v, sizeof(v));
    CHECK(gpu_graph_begin(my_stream, &err) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(nccl.AllReduce(i ? recv : send, recv, 1, NCCL_INT32, NCCL_SUM, c, my_stream) ==
              NCCL_SUCCESS);
    CHECK(gpu_graph_end(&g, my_stream, &err) == 0);
    for (int round = 1; round <= 3; round++) {
        v = round * (my_rank + 1);
        CHECK(gpu_memcpy(send, &v, sizeof(v), my_stream, &err) == 0);
        CHECK(gpu_graph_launch(g, my_stream, &err) == 0);
        fetch(&sum, recv, sizeof(sum));
        CHECK(sum == round * 3 * 2 * 2); /* (1 + 2), then twice doubled */
    }
    gpu_graph_free(g);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(a_captured_operation_runs_at_every_launch)
{
    assert_true(ranks_run(2, replays, -1));
}

/* --- memory of the library, registrations and windows --- */
static void memories(void)
{
    nccl_comm c;
    void *at = NULL, *handle = NULL, *plain;
    nccl_window w = NULL;
    int32_t v = my_rank + 1;
    struct err err = {0};

    load_all(my_rank);
    c = comm_of(0);
    CHECK(nccl.MemAlloc(&at, 1 << 20) == NCCL_SUCCESS && at);
    CHECK(nccl.CommRegister(c, at, 1 << 20, &handle) == NCCL_SUCCESS && handle);
    CHECK(nccl.CommWindowRegister(c, at, 1 << 20, &w, 1) == NCCL_SUCCESS && w);
    CHECK(gpu_memcpy(at, &v, sizeof(v), my_stream, &err) == 0);
    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT32, NCCL_SUM, c, my_stream) == NCCL_SUCCESS);
    fetch(&v, at, sizeof(v));
    CHECK(v == 3);
    CHECK(nccl.CommWindowDeregister(c, w) == NCCL_SUCCESS);
    CHECK(nccl.CommDeregister(c, handle) == NCCL_SUCCESS);
    /* Memory of cuMemAlloc can be registered, but is no part of a window. */
    plain = device(NULL, 1 << 20);
    CHECK(nccl.CommRegister(c, plain, 1 << 20, &handle) == NCCL_SUCCESS);
    CHECK(nccl.CommDeregister(c, handle) == NCCL_SUCCESS);
    CHECK(nccl.CommWindowRegister(c, plain, 1 << 20, &w, 1) != NCCL_SUCCESS && !w);
    CHECK(nccl.CommRegister(c, &v, sizeof(v), &handle) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.MemFree(at) == NCCL_SUCCESS);
    CHECK(nccl.MemFree(&v) != NCCL_SUCCESS);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(memory_of_the_library_is_registered_and_given_back)
{
    assert_true(ranks_run(2, memories, -1));
}

/* --- nonblocking communicators --- */
static nccl_comm nonblocking(int which)
{
    struct nccl_config config;
    nccl_comm c = NULL;

    nccl_config(&config);
    config.blocking = 0;
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(which), my_rank, &config) ==
          NCCL_IN_PROGRESS);
    CHECK(c);
    return c;
}

static void impatience(void)
{
    nccl_comm c;
    int32_t v = my_rank + 1, *at;
    void *memory = NULL;
    nccl_window w = NULL;

    load_all(my_rank);
    c = nonblocking(0);
    at = device(&v, sizeof(v));
    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT32, NCCL_SUM, c, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(strstr(nccl.GetLastError(c), "before the previous operation returned ncclSuccess"));
    CHECK(settled(c) == NCCL_SUCCESS);
    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT32, NCCL_SUM, c, my_stream) == NCCL_IN_PROGRESS);
    CHECK(settled(c) == NCCL_SUCCESS);
    fetch(&v, at, sizeof(v));
    CHECK(v == 6);
    /* A window is there once the communicator is asked, though the call says success. */
    CHECK(nccl.MemAlloc(&memory, 4096) == NCCL_SUCCESS);
    CHECK(nccl.CommWindowRegister(c, memory, 4096, &w, 1) == NCCL_SUCCESS && !w);
    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT32, NCCL_SUM, c, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(settled(c) == NCCL_SUCCESS && w);
    CHECK(nccl.CommWindowDeregister(c, w) == NCCL_SUCCESS);
    CHECK(nccl.MemFree(memory) == NCCL_SUCCESS);
    CHECK(nccl.CommFinalize(c) == NCCL_IN_PROGRESS);
    CHECK(settled(c) == NCCL_SUCCESS);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
    /* A communicator that never becomes whole can be given up. */
    if (my_rank == 0) {
        c = nonblocking(1);
        nap(0.05);
        CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
    }
}

TEST(a_nonblocking_communicator_must_be_asked_before_it_goes_on)
{
    assert_true(ranks_run(3, impatience, -1));
}

/* --- wrong use --- */
static void misuse(void)
{
    nccl_comm c;
    int32_t v = 0;
    void *at;

    load_all(my_rank);
    c = comm_of(0);
    at = device(&v, sizeof(v));
    CHECK(nccl.AllReduce(at, at, 1, NCCL_DTYPES, NCCL_SUM, c, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT8, 9, c, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.Broadcast(at, at, 1, NCCL_INT8, 2, c, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.AllReduce(at, at, 1, NCCL_INT8, NCCL_SUM, NULL, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.GroupEnd() == NCCL_INVALID_USAGE);
    CHECK(nccl.GroupStart() == NCCL_SUCCESS);
    CHECK(nccl.Send(at, 1, NCCL_INT8, 7, c, my_stream) == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.GroupEnd() == NCCL_INVALID_ARGUMENT);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

TEST(wrong_arguments_are_refused)
{
    assert_true(ranks_run(2, misuse, -1));
}

/* --- faults --- */
static int step(nccl_comm c, int32_t *at)
{
    return nccl.AllReduce(at, at, 1, NCCL_INT32, NCCL_SUM, c, my_stream);
}

static void corrupted(void)
{
    nccl_comm c;
    int32_t v = 0, *at;

    setenv("FAKE_FAULT", "corrupt:1:3", 1);
    load_all(my_rank);
    c = comm_of(0);
    at = device(&v, sizeof(v));
    for (int i = 1; i <= 4; i++) {
        fetch(&v, at, sizeof(v));
        CHECK(v == 0);
        CHECK(step(c, at) == NCCL_SUCCESS);
        fetch(&v, at, sizeof(v));
        CHECK((v != 0) == (my_rank == 1 && i >= 3));
        v = 0;
        struct err err = {0};
        CHECK(gpu_memcpy(at, &v, sizeof(v), my_stream, &err) == 0);
    }
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

static void failing(void)
{
    nccl_comm c;
    int32_t v = 1, *at;

    setenv("FAKE_FAULT", "async:1:2", 1);
    load_all(my_rank);
    c = comm_of(0);
    at = device(&v, sizeof(v));
    CHECK(step(c, at) == NCCL_SUCCESS && done_within(10));
    CHECK(step(c, at) == NCCL_SUCCESS);
    CHECK(broken(c) == (my_rank == 1 ? NCCL_SYSTEM : NCCL_REMOTE));
    CHECK(!done_within(0.1)); /* the stream stands until the communicator is given up */
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
    CHECK(done_within(10));
}

static nccl_comm hanging;

static void *give_up(void *arg)
{
    (void)arg;
    while (!atomic_load(&shared->note[0]) || !atomic_load(&shared->note[2]))
        nap(0.01);
    CHECK(nccl.CommAbort(hanging) == NCCL_SUCCESS);
    return NULL;
}

static void hung(void)
{
    int32_t v = 1, *at;
    pthread_t other;

    setenv("FAKE_FAULT", "hang:1:2", 1);
    load_all(my_rank);
    hanging = comm_of(0);
    at = device(&v, sizeof(v));
    CHECK(step(hanging, at) == NCCL_SUCCESS && done_within(10));
    if (my_rank == 1) {
        CHECK(pthread_create(&other, NULL, give_up, NULL) == 0);
        CHECK(step(hanging, at) != NCCL_SUCCESS); /* returns when the other thread gives up */
        CHECK(atomic_load(&shared->note[0]) && atomic_load(&shared->note[2]));
        pthread_join(other, NULL);
        return;
    }
    CHECK(step(hanging, at) == NCCL_SUCCESS);
    CHECK(!done_within(0.2));
    atomic_store(&shared->note[my_rank], 1);
    CHECK(nccl.CommAbort(hanging) == NCCL_SUCCESS);
    CHECK(done_within(10));
}

static void killed(void)
{
    nccl_comm c;
    int32_t v = 1, *at;

    setenv("FAKE_FAULT", "die:1:2", 1);
    load_all(my_rank);
    c = comm_of(0);
    at = device(&v, sizeof(v));
    CHECK(step(c, at) == NCCL_SUCCESS && done_within(10));
    CHECK(step(c, at) == NCCL_SUCCESS);
    CHECK(broken(c) == NCCL_REMOTE);
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
    CHECK(done_within(10));
}

static void wait_for_all(void)
{
    atomic_store(&shared->note[my_rank], 1);
    for (int r = 0; r < my_ranks; r++)
        while (!atomic_load(&shared->note[r]))
            nap(0.001);
}

static void slowed(void)
{
    nccl_comm c;
    int32_t v = 1, *at;
    double begin;

    setenv("FAKE_FAULT", "slow:1:2:0.3", 1);
    load_all(my_rank);
    c = comm_of(0);
    at = device(&v, sizeof(v));
    CHECK(step(c, at) == NCCL_SUCCESS && done_within(10));
    begin = now();
    wait_for_all(); /* nobody is slow before everybody has begun */
    CHECK(step(c, at) == NCCL_SUCCESS && done_within(10));
    CHECK(now() - begin >= 0.29); /* everyone waits for the slow one */
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

static int start_fails(void)
{
    struct nccl_config config;
    nccl_comm c = NULL;
    int rc;

    load_all(my_rank);
    nccl_config(&config);
    rc = nccl.CommInitRankConfig(&c, my_ranks, id_of(0), my_rank, &config);
    CHECK(c && nccl.CommAbort(c) == NCCL_SUCCESS); /* what was begun is there to be given up */
    return rc;
}

static void unstarted(void)
{
    setenv("FAKE_FAULT", "init:1", 1);
    CHECK(start_fails() == (my_rank == 1 ? NCCL_SYSTEM : NCCL_REMOTE));
    wait_for_all(); /* the communicator's memory goes with the process that made its id */
}

static void unstarted_nonblocking(void)
{
    nccl_comm c;

    setenv("FAKE_FAULT", "init:1", 1);
    load_all(my_rank);
    c = nonblocking(0);
    CHECK(settled(c) == (my_rank == 1 ? NCCL_SYSTEM : NCCL_REMOTE));
    CHECK(nccl.CommAbort(c) == NCCL_SUCCESS);
    wait_for_all();
}

static void mixed_versions(void)
{
    setenv("FAKE_FAULT", "version:1:0:22705", 1);
    CHECK(start_fails() == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(NULL), "Mismatched NCCL version detected"));
    CHECK(nccl.version == (my_rank == 1 ? 22705 : 22809));
}

static void one_gpu_twice(void)
{
    int real = my_rank;
    struct nccl_config config;
    nccl_comm c = NULL;

    load_all(0);
    nccl_config(&config);
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(0), my_rank, &config) == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(NULL), "Duplicate GPU detected"));
    /* With host names of their own they are two. */
    setenv("NCCL_HOSTID", real ? "b" : "a", 1);
    c = comm_of(1);
    CHECK(nccl.CommDestroy(c) == NCCL_SUCCESS);
}

/* As nccl-tests' -g 2, -t 2 and one that does not wait: refused at once, where NCCL would work. */
static void two_gpus_in_one_process(void)
{
    struct nccl_config config;
    nccl_comm a = NULL, b = NULL, all[2];
    char path[512];
    void *library;
    int (*init_all)(nccl_comm *, int, const int *) = NULL;
    struct timespec begin, end;
    struct nccl_id id;

    load_all(0);
    id = id_of(1);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    fake_path(path, "libnccl.so.2");
    library = dlopen(path, RTLD_NOW);
    CHECK(library);
    *(void **)&init_all = dlsym(library, "ncclCommInitAll");
    CHECK(init_all && init_all(all, 2, NULL) == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(NULL), "several GPUs of one process (-g 2)"));
    CHECK(nccl.GroupStart() == NCCL_SUCCESS);
    CHECK(nccl.CommInitRankConfig(&a, 2, id_of(0), 0, NULL) == NCCL_INVALID_USAGE);
    CHECK(strstr(nccl.GetLastError(NULL), "start a process for each GPU"));
    CHECK(nccl.GroupEnd() == NCCL_SUCCESS);
    nccl_config(&config);
    config.blocking = 0;
    CHECK(nccl.CommInitRankConfig(&a, 2, id, 0, &config) == NCCL_IN_PROGRESS);
    CHECK(nccl.CommInitRankConfig(&b, 2, id, 1, &config) == NCCL_IN_PROGRESS);
    CHECK(settled(a) == NCCL_INVALID_USAGE && settled(b) == NCCL_INVALID_USAGE);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(end.tv_sec - begin.tv_sec < 20); /* settled() gives up after 20 */
    CHECK(nccl.CommAbort(a) == NCCL_SUCCESS && nccl.CommAbort(b) == NCCL_SUCCESS);
    /* One GPU of one process is what it always was. */
    CHECK(init_all(all, 1, NULL) == NCCL_SUCCESS && nccl.CommDestroy(all[0]) == NCCL_SUCCESS);
}

TEST(several_gpus_of_one_process_are_refused)
{
    assert_true(ranks_run(1, two_gpus_in_one_process, -1));
}

TEST(every_fault_shows_as_documented)
{
    assert_true(ranks_run(2, corrupted, -1));
    assert_true(ranks_run(3, failing, -1));
    assert_true(ranks_run(3, hung, -1));
    assert_true(ranks_run(3, killed, 1));
    assert_true(ranks_run(2, slowed, -1));
    assert_true(ranks_run(3, unstarted, -1));
    assert_true(ranks_run(3, unstarted_nonblocking, -1));
    assert_true(ranks_run(2, mixed_versions, -1));
    assert_true(ranks_run(2, one_gpu_twice, -1));
}
