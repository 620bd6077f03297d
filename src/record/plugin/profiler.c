/* SPDX-License-Identifier: BSD-3-Clause */
/* profiler.c - librailgauge-nccl.so, the library that NCCL loads if NCCL_PROFILER_PLUGIN names it.
 *
 * Every call returns ncclSuccess, so that errors never stop the job.  Without a file the mask is 0
 * and NCCL reports no events. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/plugin/profiler_impl.h"

#define EXPORT __attribute__((visibility("default")))

/* --- messages --- */
/* Print errors to stderr, where they are seen without NCCL_DEBUG; other messages go to NCCL's
 * log. */
static void say(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(int level, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (level == 2)
        fprintf(stderr, "railgauge-nccl[%d]: %s\n", (int)getpid(), text);
    else if (me.log)
        me.log(level, 0x4001, __func__, __LINE__, "railgauge: %s", text); /* INIT and PROFILE */
}

/* --- options --- */
static const char *first_env(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);

        if (text && *text)
            return text;
    }
    return NULL;
}

static uint32_t wanted_events(int abi)
{
    const char *text = getenv("RAILGAUGE_NCCL_EVENTS");
    uint32_t mask = PROF_COLL | PROF_P2P | PROF_KERNEL_CH | PROF_CE_COLL;

    if (!text || !*text || !strcmp(text, "coll"))
        ;
    else if (!strcmp(text, "proxy"))
        mask |= PROF_GROUP | PROF_PROXY_OP | PROF_PROXY_STEP;
    else if (!strcmp(text, "all"))
        mask |= PROF_GROUP | PROF_PROXY_OP | PROF_PROXY_STEP | PROF_GROUP_API | PROF_COLL_API |
                PROF_P2P_API;
    else
        say(2, "RAILGAUGE_NCCL_EVENTS=%.40s is none of coll, proxy, all: coll", text);
    if (abi < 3)
        mask &= ~(uint32_t)PROF_KERNEL_CH;
    if (abi < 5)
        mask &= PROF_GROUP_API - 1u;
    return abi < 6 ? mask & (PROF_CE_COLL - 1u) : mask;
}

static uint64_t wanted_bytes(void)
{
    const char *text = getenv("RAILGAUGE_NCCL_MB");
    char *end = NULL;
    unsigned long mb = text && *text ? strtoul(text, &end, 10) : 16;

    if (end && (*end || mb < 1 || mb > 2048 || *text == '-')) {
        say(2, "RAILGAUGE_NCCL_MB=%.40s is no number of 1 to 2048: 16", text);
        mb = 16;
    }
    return (uint64_t)mb << 20;
}

/* Version of the libnccl that contains an address; 0: not known. */
static uint32_t nccl_version(const void *in)
{
    int (*get)(int *), version = 0;
    void *lib = NULL;
    Dl_info info;

    if (dladdr(in, &info) && info.dli_fname)
        lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    *(void **)&get = dlsym(lib ? lib : RTLD_DEFAULT, "ncclGetVersion");
    if (get && get(&version))
        version = 0;
    if (lib)
        dlclose(lib);
    return version > 0 ? (uint32_t)version : 0;
}

/* --- the file, created with the first communicator --- */
static void forked(void)
{
    ring_forget(&me.ring);
    pthread_mutex_init(&me.lock, NULL);
    event_forget();
    me.turn++;
    me.open = 0;
    me.failed = false;
}

static int open_file(int abi, const void *caller)
{
    static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", NULL};
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID",         "RANK",      NULL};
    static bool watched;
    const char *dir = getenv("RAILGAUGE_NCCL_DIR"), *job = first_env(jobs),
               *rank = first_env(ranks);
    char own[100], why[RING_WHY];
    struct ring_options o = {.bytes = wanted_bytes(),
                             .job = job ? job : "",
                             .job_rank = rank ? (int)strtol(rank, NULL, 10) : -1,
                             .abi = (uint32_t)abi,
                             .nccl_version = nccl_version(caller),
                             .events = wanted_events(abi)};

    snprintf(own, sizeof(own), "railgauge-nccl-%.60s", job && !strchr(job, '/') ? job : "");
    if (!job || strchr(job, '/'))
        snprintf(own, sizeof(own), "railgauge-nccl-%d", (int)getpid());
    o.dir = dir && *dir ? dir : own;
    if (ring_open(&me.ring, &o, why)) {
        say(2, "nothing is recorded: %s", why);
        return -1;
    }
    me.pid = (uint32_t)getpid();
    me.mask = o.events;
    if (!watched)
        watched = !pthread_atfork(NULL, NULL, forked);
    say(3, "records what NCCL does in %s", me.ring.path);
    return 0;
}

/* --- contexts: communicator and process --- */

/* True if there is a file and the context belongs to this process. */
static bool context_good(const void *context)
{
    return me.ring.head && context && (uint32_t)((uintptr_t)context >> 32) == me.turn;
}

struct comm_said {
    const char *name;
    uint64_t hash;
    int nodes, ranks, rank;
};

static void comm_fill(struct record_comm *c, const struct comm_said *s)
{
    c->rank = s->rank;
    c->ranks = s->ranks;
    c->nodes = s->nodes;
    if (s->name)
        snprintf(c->name, sizeof(c->name), "%s", s->name);
    __atomic_store_n(&c->hash, s->hash, __ATOMIC_RELEASE);
}

/* Up to v3 the first task names the communicator of the context. */
static void comm_learn(struct record_comm *c, const struct task *t, int rank)
{
    const struct comm_said s = {t->comm_name, t->hash, 0, 0, rank};

    if (!c || LOAD(&c->hash))
        return;
    pthread_mutex_lock(&me.lock);
    if (!c->hash)
        comm_fill(c, &s);
    pthread_mutex_unlock(&me.lock);
}

static int begin(int abi, void **context, int *mask, const struct comm_said *s, prof_log log,
                 const void *caller)
{
    struct record_comm *c;
    unsigned i;

    *context = NULL;
    pthread_mutex_lock(&me.lock);
    if (log)
        me.log = log;
    if (!me.ring.head && !me.failed)
        me.failed = open_file(abi, caller) != 0;
    *mask = me.ring.head ? (int)me.mask : 0;
    if (me.ring.head) {
        i = ring_comm(&me.ring);
        c = comm_of(i);
        if (c) {
            comm_fill(c, s);
            c->open_ns = ring_now();
            __atomic_store_n(&c->state, RECORD_COMM_OPEN, __ATOMIC_RELEASE);
        }
        me.open++;
        STORE(&me.ring.head->closed_ns, 0);
        *context = CONTEXT(i);
    }
    pthread_mutex_unlock(&me.lock);
    return 0;
}

static void flush(void)
{
    int why = ring_flush();

    if (why)
        say(2, "%s lacks the last records: %s", me.ring.path, strerror(why));
}

static int finalize(void *context)
{
    struct record_comm *c;
    bool last = false;

    pthread_mutex_lock(&me.lock);
    if (context_good(context)) {
        c = comm_of(context_comm(context));
        if (c && c->state == RECORD_COMM_OPEN) {
            c->close_ns = ring_now();
            __atomic_store_n(&c->state, RECORD_COMM_CLOSED, __ATOMIC_RELEASE);
        }
        last = --me.open == 0;
        if (last)
            STORE(&me.ring.head->closed_ns, ring_now());
    }
    pthread_mutex_unlock(&me.lock);
    if (last)
        flush();
    return 0;
}

/* A process that ends without ncclCommDestroy(). */
__attribute__((destructor)) static void leave(void)
{
    if (me.ring.head && me.open)
        flush();
}

/* --- functions that NCCL calls --- */
static int start(int abi, uint64_t type, void *context, void **handle, const struct prof_descr *d)
{
    struct task t;

    *handle = NULL;
    if (!context_good(context))
        return 0;
    if (type == PROF_KERNEL_CH) {
        *handle = event_start_channel(d, abi >= 4);
    } else if (type == PROF_PROXY_OP) {
        *handle = event_start_proxy(context_comm(context), d);
    } else if (type == PROF_PROXY_STEP) {
        *handle = event_start_step(d);
    } else if (type & me.mask) {
        if (!task_read(&me.ring, abi, type, d, &t))
            return 0;
        if (t.comm_name || t.hash)
            comm_learn(comm_of(context_comm(context)), &t, d->rank);
        *handle = event_start_task(context_comm(context), &t);
    } else {
        /* Up to v3 a group without a handle gets no further events
         * (ncclProfilerStartTaskEvents). */
        *handle = HANDLE(H_NOTHING, 1);
    }
    return 0;
}

static int stop(int abi, void *handle)
{
    if (!me.ring.head)
        return 0;
    switch (KIND(handle)) {
    case H_RECORD:
        event_stop_task(KEY(handle));
        break;
    case H_CHANNEL:
        if (abi < 4)
            event_stop_channel(KEY(handle), 0);
        break;
    case H_PROXY:
        event_stop_proxy(KEY(handle));
        break;
    case H_STEP:
        event_stop_step(KEY(handle));
        break;
    }
    return 0;
}

static int record(int abi, void *handle, int state, const union prof_state_args *args)
{
    if (!me.ring.head)
        return 0;
    switch (KIND(handle)) {
    case H_CHANNEL:
        if (abi >= 4 && state == PROF_KERNEL_CH_STOP)
            event_stop_channel(KEY(handle), args ? args->timer : 0);
        break;
    case H_PROXY:
        if (abi < 4)
            event_record_proxy(KEY(handle), state, args);
        break;
    case H_STEP:
        event_record_step(KEY(handle), state, abi >= 4 && args ? args->step_bytes : 0);
        break;
    }
    return 0;
}

/* --- the seven tables --- */
#define VERSION(n, type_field)                                                                     \
    static int start_v##n(void *context, void **handle, struct prof_descr *d)                      \
    {                                                                                              \
        return start(n, d->type_field, context, handle, d);                                        \
    }                                                                                              \
    static int stop_v##n(void *handle)                                                             \
    {                                                                                              \
        return stop(n, handle);                                                                    \
    }                                                                                              \
    static int record_v##n(void *handle, int state, union prof_state_args *args)                   \
    {                                                                                              \
        return record(n, handle, state, args);                                                     \
    }
#define INIT_V1(n)                                                                                 \
    static int init_v##n(void **context, int *mask)                                                \
    {                                                                                              \
        const struct comm_said s = {0};                                                            \
                                                                                                   \
        return begin(n, context, mask, &s, NULL, __builtin_return_address(0));                     \
    }
#define INIT_V5(n)                                                                                 \
    static int init_v##n(void **context, uint64_t hash, int *mask, const char *name, int nodes,    \
                         int ranks, int rank, prof_log log)                                        \
    {                                                                                              \
        const struct comm_said s = {name, hash, nodes, ranks, rank};                               \
                                                                                                   \
        return begin(n, context, mask, &s, log, __builtin_return_address(0));                      \
    }
#define TABLE(n, layout)                                                                           \
    EXPORT struct prof_v##layout ncclProfiler_v##n = {"railgauge", init_v##n,   start_v##n,        \
                                                      stop_v##n,   record_v##n, finalize};

VERSION(1, type8)
VERSION(2, type8)
VERSION(3, type8)
VERSION(4, type8)
VERSION(5, type64)
VERSION(6, type64)
VERSION(7, type64)
INIT_V1(1)
INIT_V1(2)
INIT_V1(3)
INIT_V5(5)
INIT_V5(6)
INIT_V5(7)

static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                   int rank, prof_log log)
{
    const struct comm_said s = {name, hash, nodes, ranks, rank};

    return begin(4, context, mask, &s, log, __builtin_return_address(0));
}

TABLE(1, 1)
TABLE(2, 1)
TABLE(3, 1)
TABLE(4, 4)
TABLE(5, 5)
TABLE(6, 5)
TABLE(7, 5)
