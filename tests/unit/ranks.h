/* ranks.h - a test's body run by several processes that meet in a communicator of the stand-in for
 * NCCL.  A failed check in any of them fails the test, and none outlives it. */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include <dlfcn.h>
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

#include "fake_gpu.h"
#include "kernels/gpu.h"
#include "kernels/nccl_api.h"

enum { RANKS_MAX = 8, RANKS_SECONDS = 60 };

/* What the processes of one test share. */
struct ranks_shared {
    atomic_int made[8]; /* the ids that are there */
    struct nccl_id id[8];
    atomic_int note[RANKS_MAX];
};
static struct ranks_shared *shared;
static int my_rank, my_ranks;
static gpu_stream my_stream;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "# rank %d: %s:%d: %s\n", my_rank, __FILE__, __LINE__, #condition);    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&t, NULL);
}

static inline double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void fake_path(char path[512], const char *library)
{
    const char *build = getenv("RG_BUILD");

    snprintf(path, 512, "%s/fake/%s", build ? build : "build", library);
}

/* The stand-ins are loaded by their paths: a program that has started finds no others by name. */
static inline void load_all(int device)
{
    char path[512];
    struct err err = {0};

    fake_path(path, "libcuda.so.1");
    if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
        fprintf(stderr, "# %s\n", dlerror());
    fake_path(path, "libnccl.so.2");
    setenv("RAILGAUGE_NCCL", path, 1);
    if (gpu_open(device, &err) || gpu_stream_open(&my_stream, &err) || nccl_load(&err)) {
        fprintf(stderr, "# %s\n", err.text);
        _exit(1);
    }
}

/* Rank 0 makes the id number `which`, the others wait for it. */
static inline struct nccl_id id_of(int which)
{
    if (my_rank == 0) {
        CHECK(nccl.GetUniqueId(&shared->id[which]) == NCCL_SUCCESS);
        atomic_store(&shared->made[which], 1);
    }
    while (!atomic_load(&shared->made[which]))
        nap(0.001);
    return shared->id[which];
}

static inline nccl_comm comm_of(int which)
{
    struct nccl_config config;
    nccl_comm c = NULL;

    nccl_config(&config);
    CHECK(nccl.CommInitRankConfig(&c, my_ranks, id_of(which), my_rank, &config) == NCCL_SUCCESS);
    return c;
}

/* Wait until the communicator leaves "in progress"; its state. */
static inline int settled(nccl_comm c)
{
    int state = NCCL_IN_PROGRESS;

    for (double end = now() + 20; state == NCCL_IN_PROGRESS && now() < end; nap(0.0002))
        CHECK(nccl.CommGetAsyncError(c, &state) == NCCL_SUCCESS);
    return state;
}

/* Its state once it is no longer fine. */
static inline int broken(nccl_comm c)
{
    int state = NCCL_SUCCESS;

    for (double end = now() + 20; now() < end; nap(0.001)) {
        CHECK(nccl.CommGetAsyncError(c, &state) == NCCL_SUCCESS);
        if (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS)
            break;
    }
    return state;
}

static inline bool done_within(double seconds)
{
    struct err err = {0};
    int done = 0;

    for (double end = now() + seconds; !done && now() < end; nap(0.001)) {
        done = gpu_stream_done(my_stream, &err);
        CHECK(done >= 0);
    }
    return done;
}

static inline void *device(const void *from, size_t bytes)
{
    static struct gpu_buffer all[64];
    static int n;
    struct err err = {0};
    struct gpu_buffer *b = &all[n++ % 64];

    gpu_free(b); /* of 64 calls ago */
    CHECK(gpu_alloc(b, GPU_PLAIN, bytes ? bytes : 1, &err) == 0);
    if (from) {
        CHECK(gpu_memcpy(b->at, from, bytes, my_stream, &err) == 0);
        CHECK(gpu_stream_wait(my_stream, &err) == 0);
    }
    return b->at;
}

static inline void fetch(void *to, const void *from, size_t bytes)
{
    struct err err = {0};

    CHECK(gpu_memcpy(to, from, bytes, my_stream, &err) == 0);
    CHECK(gpu_stream_wait(my_stream, &err) == 0);
}

static inline void ranks_child(int rank, int n, void (*body)(void))
{
    char text[16];

    snprintf(text, sizeof(text), "%d", rank);
    setenv("OMPI_COMM_WORLD_RANK", text, 1);
    alarm(RANKS_SECONDS);
    my_rank = rank;
    my_ranks = n;
    body();
    fflush(NULL);
    _exit(0);
}

/* Start n processes; each runs body() and must end well, but for the one rank that must be killed
 * (-1: none).  The first that does not ends the others. */
static inline bool ranks_run(int n, void (*body)(void), int killed)
{
    pid_t pid[RANKS_MAX];
    bool good = true;
    int gpus = fake_gpu("devices 8\n"); /* RANKS_MAX: one for each of them */

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL);
    for (int r = 0; r < n; r++)
        if ((pid[r] = fork()) == 0)
            ranks_child(r, n, body);
    for (int left = n; left; left--) {
        int status = 0, ended = 0;
        pid_t who = wait(&status);

        for (int r = 0; r < n; r++)
            if (pid[r] == who)
                pid[ended = r] = 0;
        if (ended == killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0)
            continue;
        if (good)
            fprintf(stderr, "# rank %d ended with status 0x%x\n", ended, (unsigned)status);
        for (int o = 0; good && o < n; o++)
            if (pid[o])
                kill(pid[o], SIGTERM);
        good = false;
    }
    munmap(shared, sizeof(*shared));
    close(gpus);
    return good;
}

#endif
