/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - the yardstick: NCCL in a bare loop, with nothing of the probe's between.
 *
 *   loop [--same-buffer] [--graph] OP RANKS ITERATIONS BYTES...
 *   loop --facts
 *
 * OP: all_reduce, all_gather, broadcast, reduce_scatter.
 *
 * RANKS processes, started here, share GPU 0 when there are more of them than GPUs: each calls
 * itself another host then and NCCL takes sockets.  Each size: warm-up, then ITERATIONS operations
 * in up to 5 batches; a batch is operations one behind the other with nothing between them, as in
 * nccl-tests, from a CUDA event behind one that does not count to an event at the end.  Its time by
 * its operations is what one took, on the slowest rank.  What arrives is compared once a size. Each
 * operation begins where the one before ended, within the largest of BYTES, unless --same-buffer; a
 * batch of --graph is one CUDA graph.
 * Prints "op ranks bytes sec" (median of the batches), and first "# GPU ..., driver ..., NCCL ...".
 *
 * --facts: what is there for the other checks, a line of TSV each: "driver VERSION", "gpu INDEX NAME UUID BUSID SM
 * MEMORY MODE" (compute mode as in CUcomputemode), "kernels yes", "nccl VERSION FILE"; what is
 * missing has "no" and the reason behind its name.  Exit code 78 without a GPU.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/stats.h"
#include "base/units.h"
#include "kernels/cuda_api.h"
#include "kernels/gpu.h"
#include "kernels/kernels.h"
#include "kernels/nccl_api.h"

enum { RANKS_MAX = 16, ITERATIONS_MAX = 1000, BATCHES = 5, WARMUP = 5 };
enum { COMPUTE_MODE = 20 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE (cuda.h) */

static struct shared {
    atomic_int made, here[RANKS_MAX];
    struct nccl_id id;
    double sec[RANKS_MAX][BATCHES];
} * all;

struct loop {
    int rank, ranks, iterations, operation;
    bool same_buffer, graph;
    size_t most; /* bytes of a buffer */
    nccl_comm comm;
    gpu_stream stream;
    struct gpu_clock *clock;
    struct gpu_buffer send, recv;
};

static const char *const operations[] = {"all_reduce", "all_gather", "broadcast", "reduce_scatter"};
enum { ALL_REDUCE, ALL_GATHER, BROADCAST, REDUCE_SCATTER, OPERATIONS };

static int fail(const struct loop *l, const char *what, const char *why)
{
    fprintf(stderr, "loop: rank %d: %s: %s\n", l->rank, what, why);
    return -1;
}

static int nccl_good(const struct loop *l, int rc, const char *what)
{
    return rc == NCCL_SUCCESS ? 0 : fail(l, what, nccl.GetErrorString(rc));
}

/* All ranks reach this line. */
static void meet(const struct loop *l)
{
    const struct timespec nap = {0, 100000};
    int mine = atomic_fetch_add(&all->here[l->rank], 1) + 1;

    for (int r = 0; r < l->ranks; r++)
        while (atomic_load(&all->here[r]) < mine)
            nanosleep(&nap, NULL);
}

/* Where in both buffers the turn-th operation begins. */
static size_t place(const struct loop *l, size_t bytes, int turn)
{
    size_t span = (bytes + 15) / 16 * 16, turns = l->same_buffer ? 0 : l->most / span;

    return turns ? (size_t)turn % turns * span : 0;
}

/* Words of 4 bytes; `bytes` is the larger of what a rank sends and receives. */
static int put(struct loop *l, size_t bytes, int turn)
{
    size_t words = bytes / 4, share = words / (size_t)l->ranks, at = place(l, bytes, turn);
    void *from = l->send.at + at, *to = l->recv.at + at;
    int rc;

    switch (l->operation) {
    case ALL_REDUCE:
        rc = nccl.AllReduce(from, to, words, NCCL_UINT32, NCCL_SUM, l->comm, l->stream);
        break;
    case ALL_GATHER:
        rc = nccl.AllGather(from, to, share, NCCL_UINT32, l->comm, l->stream);
        break;
    case BROADCAST:
        rc = nccl.Broadcast(from, to, words, NCCL_UINT32, 0, l->comm, l->stream);
        break;
    default:
        rc = nccl.ReduceScatter(from, to, share, NCCL_UINT32, NCCL_SUM, l->comm, l->stream);
    }
    return nccl_good(l, rc, operations[l->operation]);
}

static unsigned word(int rank, size_t i)
{
    return (unsigned)(i * 2654435761U) ^ (unsigned)rank * 0x9e3779b9U;
}

/* The word that must be at i of this rank's receive buffer. */
static unsigned expected(const struct loop *l, size_t i, size_t share)
{
    size_t at = l->operation == REDUCE_SCATTER ? (size_t)l->rank * share + i : i;
    unsigned sum = 0;

    if (l->operation == BROADCAST)
        return word(0, i);
    if (l->operation == ALL_GATHER)
        return word((int)(i / share), i % share);
    for (int r = 0; r < l->ranks; r++)
        sum += word(r, at);
    return sum;
}

static int check(struct loop *l, size_t bytes, struct err *err)
{
    size_t words = bytes / 4, share = words / (size_t)l->ranks;
    size_t come = l->operation == REDUCE_SCATTER ? share
                  : l->operation == ALL_GATHER   ? share * (size_t)l->ranks
                                                 : words;
    int last = l->iterations - 1;
    size_t at = place(l, bytes, last);
    unsigned *host = malloc(bytes);
    int rc = host ? 0 : fail(l, "check", "out of memory");

    for (size_t i = 0; rc == 0 && i < words; i++)
        host[i] = word(l->rank, i);
    if (rc == 0 &&
        (gpu_memcpy(l->send.at + at, host, bytes, l->stream, err) || put(l, bytes, last) ||
         gpu_memcpy(host, l->recv.at + at, come * 4, l->stream, err) ||
         gpu_stream_wait(l->stream, err)))
        rc = fail(l, "check", err->text);
    for (size_t i = 0; rc == 0 && i < come; i++)
        if (host[i] != expected(l, i, share))
            rc = fail(l, operations[l->operation], "wrong data");
    free(host);
    return rc;
}

static int batches(const struct loop *l)
{
    return l->iterations < 2 * BATCHES ? 1 : BATCHES;
}

static int put_all(struct loop *l, size_t bytes, int n)
{
    for (int i = 0; i < n; i++)
        if (put(l, bytes, i))
            return -1;
    return 0;
}

static int record(struct loop *l, size_t bytes, int n, struct gpu_graph **graph, struct err *err)
{
    if (gpu_graph_begin(l->stream, err))
        return -1;
    int rc = put_all(l, bytes, n);
    return gpu_graph_end(graph, l->stream, err) ? -1 : rc;
}

static int time_batch(struct loop *l, size_t bytes, int n, double *sec, struct err *err)
{
    struct gpu_graph *graph = NULL;

    if (l->graph && record(l, bytes, n, &graph, err))
        return fail(l, "graph", err->text);
    meet(l);
    if (put(l, bytes, n) || gpu_clock_record(l->clock, 0, l->stream, err))
        return fail(l, "loop", err->text);
    if (graph ? gpu_graph_launch(graph, l->stream, err) : put_all(l, bytes, n))
        return fail(l, "loop", err->text);
    if (gpu_clock_record(l->clock, 1, l->stream, err) || gpu_stream_wait(l->stream, err) ||
        gpu_clock_read(l->clock, 1, sec, err))
        return fail(l, "loop", err->text);
    gpu_graph_free(graph);
    *sec /= n;
    return 0;
}

static int time_size(struct loop *l, size_t bytes, struct err *err)
{
    if (check(l, bytes, err))
        return -1;
    if (put_all(l, bytes, WARMUP))
        return -1;
    if (gpu_stream_wait(l->stream, err))
        return fail(l, "warm-up", err->text);
    for (int i = 0; i < batches(l); i++)
        if (time_batch(l, bytes, l->iterations / batches(l), &all->sec[l->rank][i], err))
            return -1;
    meet(l);
    return 0;
}

static void print_size(const struct loop *l, size_t bytes)
{
    double slowest[BATCHES];

    for (int i = 0; i < batches(l); i++) {
        slowest[i] = 0;
        for (int r = 0; r < l->ranks; r++)
            if (all->sec[r][i] > slowest[i])
                slowest[i] = all->sec[r][i];
    }
    printf("%s\t%d\t%zu\t%.6g\n", operations[l->operation], l->ranks, bytes,
           stats_median(slowest, batches(l)));
}

/* More ranks than GPUs: NCCL must not know that they are on one. */
static void share_gpu(const struct loop *l)
{
    char host[32];

    snprintf(host, sizeof(host), "railgauge-rank-%d", l->rank);
    setenv("NCCL_HOSTID", host, 0);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

static int start(struct loop *l, size_t most, struct err *err)
{
    struct nccl_config config;
    const struct timespec nap = {0, 1000000};
    int gpus = gpu_count(err);
    char text[24];

    if (gpus > 0 && gpus < l->ranks)
        share_gpu(l);
    if (gpus < 0 || gpu_open(gpus < l->ranks ? 0 : l->rank, err) || nccl_load(err) ||
        gpu_stream_open(&l->stream, err) || gpu_clock_open(&l->clock, 2, err) ||
        gpu_alloc(&l->send, GPU_PLAIN, most, err) || gpu_alloc(&l->recv, GPU_PLAIN, most, err))
        return fail(l, "start", err->text);
    if (l->rank == 0) {
        printf("# GPU %s, driver CUDA %d.%d, NCCL %s, %d rank%s on %d GPU%s\n", gpu_facts()->name,
               gpu_facts()->driver / 1000, gpu_facts()->driver % 1000 / 10,
               nccl_version_text(nccl.version, text), l->ranks, l->ranks > 1 ? "s" : "",
               gpus < l->ranks ? 1 : l->ranks, gpus < l->ranks || l->ranks == 1 ? "" : "s");
        if (nccl_good(l, nccl.GetUniqueId(&all->id), "ncclGetUniqueId"))
            return -1;
        atomic_store(&all->made, 1);
    }
    while (!atomic_load(&all->made))
        nanosleep(&nap, NULL);
    nccl_config(&config);
    return nccl_good(l, nccl.CommInitRankConfig(&l->comm, l->ranks, all->id, l->rank, &config),
                     "ncclCommInitRankConfig");
}

static int run_rank(struct loop *l, const size_t *bytes, int sizes)
{
    struct err err = {0, ""};
    size_t most = 4;
    int rc;

    for (int i = 0; i < sizes; i++)
        most = bytes[i] > most ? bytes[i] : most;
    l->most = most;
    rc = start(l, most, &err);
    for (int i = 0; rc == 0 && i < sizes; i++) {
        rc = time_size(l, bytes[i], &err);
        if (rc == 0 && l->rank == 0)
            print_size(l, bytes[i]);
        if (rc == 0)
            meet(l);
    }
    if (rc == 0)
        rc = nccl_good(l, nccl.CommDestroy(l->comm), "ncclCommDestroy");
    if (rc == 0) {
        gpu_free(&l->send);
        gpu_free(&l->recv);
        gpu_clock_close(l->clock);
        gpu_stream_close(l->stream);
        gpu_close();
    }
    fflush(stdout);
    return rc;
}

/* One that fails leaves the others waiting for ever: they are ended. */
static int run_all(struct loop *l, const size_t *bytes, int sizes)
{
    pid_t pid[RANKS_MAX];
    int bad = 0;

    for (l->rank = 0; l->rank < l->ranks; l->rank++)
        if ((pid[l->rank] = fork()) == 0)
            _exit(run_rank(l, bytes, sizes) ? 1 : 0);
    for (int left = l->ranks; left; left--) {
        int status = 0, r = 0;
        pid_t ended = wait(&status);

        while (r < l->ranks - 1 && pid[r] != ended)
            r++;
        pid[r] = 0;
        for (int o = 0; status && !bad && o < l->ranks; o++)
            if (pid[o])
                kill(pid[o], SIGTERM);
        bad |= status != 0;
    }
    return bad;
}

/* One is open at a time; one that cannot be opened says why. */
static int print_gpu(int index)
{
    struct err err = {0, ""};
    const char *why;
    int mode = 0;

    if (gpu_open(index, &err)) {
        printf("gpu\t%d\tno\t%s\n", index, err.text);
        return err.code;
    }
    const struct gpu_facts *f = gpu_facts();

    if (cuda.DeviceGetAttribute(&mode, COMPUTE_MODE, index))
        mode = -1;
    printf("gpu\t%d\t%s\t%s\t%s\t%d\t%zu\t%d\n", index, f->name, f->uuid, f->busid, f->sm,
           f->memory, mode);
    if (kernels_there(&why))
        printf("kernels\t%s\n", "yes");
    else
        printf("kernels\tno\t%s\n", why);
    gpu_close();
    return 0;
}

static int print_gpus(void)
{
    struct err err = {0, ""};
    int n = gpu_count(&err);

    if (n < 0) {
        printf("driver\tno\t%s\n", err.text);
        return err.code;
    }
    printf("driver\t%d.%d\n", cuda.version / 1000, cuda.version % 1000 / 10);
    for (int i = 0; i < n; i++)
        if (print_gpu(i))
            return EXIT_CONFIG;
    return 0;
}

static int print_facts(void)
{
    struct err err = {0, ""};
    char text[24];
    int rc = print_gpus();

    if (nccl_load(&err))
        printf("nccl\tno\t%s\n", err.text);
    else
        printf("nccl\t%s\t%s\n", nccl_version_text(nccl.version, text), nccl.path);
    fflush(stdout);
    return rc;
}

int main(int argc, char **argv)
{
    struct loop l = {.operation = -1};
    struct err err = {0, ""};
    size_t bytes[64];

    if (argc == 2 && !strcmp(argv[1], "--facts"))
        return print_facts();
    for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
        l.same_buffer |= !strcmp(argv[1], "--same-buffer");
        l.graph |= !strcmp(argv[1], "--graph");
        if (strcmp(argv[1], "--same-buffer") != 0 && strcmp(argv[1], "--graph") != 0)
            break; /* no operation either */
    }
    int sizes = argc - 4;

    for (int i = 0; argc > 1 && i < OPERATIONS; i++)
        if (!strcmp(argv[1], operations[i]))
            l.operation = i;
    if (sizes < 1 || sizes > 64 || l.operation < 0 ||
        units_int(&l.ranks, argv[2], 1, RANKS_MAX, &err) ||
        units_int(&l.iterations, argv[3], 1, ITERATIONS_MAX, &err)) {
        fprintf(stderr, "usage: loop [--same-buffer] [--graph] OP RANKS ITERATIONS BYTES...\n"
                        "       loop --facts\n");
        return EXIT_USAGE;
    }
    for (int i = 0; i < sizes; i++)
        if (units_bytes(&bytes[i], argv[4 + i], &err) || bytes[i] < 4 * (size_t)l.ranks) {
            fprintf(stderr, "loop: %s bytes: %s\n", argv[4 + i],
                    *err.text ? err.text : "less than a word a rank");
            return EXIT_USAGE;
        }
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return EXIT_IO;
    return run_all(&l, bytes, sizes);
}
