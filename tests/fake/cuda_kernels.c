/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels on the CPU: kernels.cu itself, compiled as C, one thread after the other. */
#include <string.h>
#include <time.h>

#include "cuda_fake.h"

/* --- what device.h takes from CUDA --- */
static _Thread_local size_t index_now, count_now;

#define KERNEL(threads) static void
#define DEVICE static inline __attribute__((unused))
#define ROLLED

DEVICE size_t thread_index(void)
{
    return index_now;
}

DEVICE size_t thread_count(void)
{
    return count_now;
}

DEVICE bool warp_sum(uint64_t *x)
{
    (void)x; /* every thread adds its own */
    return true;
}

DEVICE void add_shared(uint64_t *at, uint64_t x)
{
    __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
}

DEVICE void min_shared(uint64_t *at, uint64_t x)
{
    uint64_t was = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (x < was &&
           !__atomic_compare_exchange_n(at, &was, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

DEVICE uint64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#include "kernels/kernels.cu"

/* --- how each is called: a letter for each argument, p and w a pointer to what the GPU may touch
 * (q: the same, in accesses of 16 bytes; u: of 8), n 8 bytes, P and H the structures of kernels_args.h --- */
union argument {
    void *p;
    uint64_t n;
    struct pattern_args pattern;
    struct onehot_args onehot;
};

static void preset(union argument *a)
{
    rg_preset(a[0].p);
}
static void fill(union argument *a)
{
    rg_fill(a[0].p, a[1].n, a[2].pattern);
}
static void find(union argument *a)
{
    rg_find(a[0].p, a[1].n, a[2].pattern, a[3].p);
}
static void filled_onehot(union argument *a)
{
    rg_fill_onehot(a[0].p, a[1].n, a[2].onehot);
}
static void found_onehot(union argument *a)
{
    rg_find_onehot(a[0].p, a[1].n, a[2].onehot, a[3].p);
}
static void found_average(union argument *a)
{
    rg_find_average(a[0].p, a[1].n, a[2].onehot, a[3].p);
}
static void copy(union argument *a)
{
    rg_copy(a[0].p, a[1].p, a[2].n);
}
static void copy_bytes(union argument *a)
{
    rg_copy_bytes(a[0].p, a[1].p, a[2].n);
}
static void read(union argument *a)
{
    rg_read(a[0].p, a[1].n, a[2].p);
}
static void pass(union argument *a)
{
    rg_pass(a[0].p, a[1].p, a[2].n, a[3].n, a[4].n);
}
static void chain(union argument *a)
{
    rg_chain(a[0].p, a[1].n, a[2].n);
}
static void chase(union argument *a)
{
    rg_chase(a[0].p, a[1].n, a[2].n, a[3].p);
}
static void load(union argument *a)
{
    rg_load(a[0].n, a[1].p);
}

struct fake_kernel {
    const char *name, *arguments;
    int bytes;   /* the argument that says how much the GPU touches; -1: it cannot be said */
    size_t unit; /* of what that counts, bytes */
    bool alone;  /* threads do not share the work: one is enough here */
    void (*run)(union argument *);
    int arrays[2]; /* the arguments that say how many arrays the first two point to; 0: one */
};

static const struct fake_kernel kernels[] = {
    {"rg_preset", "w", -1, 0, true, preset, {0}},
    {"rg_fill", "pnP", 1, 1, false, fill, {0}},
    {"rg_find", "pnPw", 1, 1, false, find, {0}},
    {"rg_fill_onehot", "pnH", 1, 1, false, filled_onehot, {0}},
    {"rg_find_onehot", "pnHw", 1, 1, false, found_onehot, {0}},
    {"rg_find_average", "pnHw", 1, 1, false, found_average, {0}},
    {"rg_copy", "qqn", 2, 1, false, copy, {0}},
    {"rg_copy_bytes", "ppn", 2, 1, false, copy_bytes, {0}},
    {"rg_read", "qnw", 1, 1, false, read, {0}},
    {"rg_pass", "qqnnn", 2, 16, false, pass, {4, 3}},
    {"rg_chain", "unn", 1, 8, false, chain, {0}},
    {"rg_chase", "unnw", -1, 0, true, chase, {0}},
    {"rg_load", "np", -1, 0, true, load, {0}},
};

const struct fake_kernel *fake_kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    return NULL;
}

size_t fake_kernel_arguments(const struct fake_kernel *k, unsigned char *copied, void **arguments)
{
    union argument a[8];
    size_t n = strlen(k->arguments);

    memset(a, 0, sizeof(a));
    for (size_t i = 0; i < n; i++)
        memcpy(&a[i], arguments[i],
               k->arguments[i] == 'P'   ? sizeof(struct pattern_args)
               : k->arguments[i] == 'H' ? sizeof(struct onehot_args)
                                        : 8);
    memcpy(copied, a, sizeof(a));
    return sizeof(a);
}

static size_t alignment_of(char letter)
{
    return letter == 'q' ? 16 : letter == 'p' ? 1 : 8;
}

/* The GPU's addresses as ours; false: it may not go there, and the fault is told. */
static bool translate(const struct fake_kernel *k, union argument *a)
{
    for (int i = 0; k->arguments[i]; i++) {
        char letter = k->arguments[i];
        size_t bytes = letter == 'w'  ? 8
                       : k->bytes < 0 ? alignment_of(letter)
                                      : (size_t)a[k->bytes].n * k->unit;
        if (i < 2 && k->arrays[i])
            bytes *= (size_t)a[k->arrays[i]].n;

        if (!strchr("pquw", letter) || !a[i].p || !bytes)
            continue;
        a[i].p = fake_kernel_touch(a[i].p, bytes, alignment_of(letter));
        if (!a[i].p)
            return false;
    }
    return true;
}

/* A grid that is full is one of many threads with long loops: one thread does the same in order. */
void fake_kernel_run(const struct fake_kernel *k, unsigned blocks, unsigned threads,
                     unsigned char *arguments)
{
    union argument a[8];

    memcpy(a, arguments, sizeof(a));
    if (!translate(k, a))
        return;
    count_now = k->alone || (size_t)blocks * threads > 4096 ? 1 : (size_t)blocks * threads;
    for (index_now = 0; index_now < count_now; index_now++)
        k->run(a);
}
