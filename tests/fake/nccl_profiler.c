/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiler plugins, found, asked for and told as NCCL does (src/plugin/plugin_open.cc, profiler.cc and
 * src/transport/{net,profiler}.cc of 2.23 to 2.30).  Calls and launches are told by the thread of the
 * application; channels and proxies by that of the stream, which is our proxy thread.
 *
 * The interface is the newest that a release knows and the plugin has: FAKE_NCCL_VERSION says the
 * release, FAKE_NCCL_PROFILER=N that it knows none newer than N.  Times of the GPU are CLOCK_REALTIME. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "nccl_story.h"
#include "record/plugin/profiler_abi.h"

enum { CHANNELS = 32, NET_STEPS = 4 };

struct prof_task { /* one event, COLL or P2P, and who hangs on it */
    void *handle, *channel[CHANNELS];
    int channels;
};
struct prof_events {
    void *group;
    int *first; /* [ops + 1]: index of an operation's first task */
    struct prof_task task[];
};

static struct {
    pthread_mutex_t lock;
    int users, abi, mask;
    bool failed;
    void *lib, *table;
    prof_start *start;
    prof_stop *stop;
    prof_record *record;
    prof_finalize *finalize;
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local void *group_call;

/* --- which library --- */
static void *try_open(const char *name)
{
    void *lib = dlopen(!strcasecmp(name, "STATIC_PLUGIN") ? NULL : name, RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        log_info(LOG_INIT, "PROFILER/Plugin: %s", dlerror());
    return lib;
}

static void *open_library(const char *name)
{
    char more[256];
    size_t n;
    void *lib;

    if (!name || !*name)
        return try_open("libnccl-profiler.so");
    lib = try_open(name);
    n = strlen(name);
    if (lib || strchr(name, '/') ||
        (!strncmp(name, "lib", 3) && n > 3 && !strcmp(name + n - 3, ".so")))
        return lib;
    snprintf(more, sizeof(more), "libnccl-profiler-%s.so", name);
    return try_open(more);
}

static int newest_known(void)
{
    static const int since[] = {0, 22300, 22400, 22600, 22700, 22800, 22900, 23100};
    const char *forced = getenv("FAKE_NCCL_PROFILER");
    int abi = 7, version = fake_version();

    while (abi && version < since[abi])
        abi--;
    return forced && *forced && strtol(forced, NULL, 10) < abi ? (int)strtol(forced, NULL, 10)
                                                               : abi;
}

#define TAKE(v)                                                                                    \
    (plugin.start = (v)->start, plugin.stop = (v)->stop, plugin.record = (v)->record,              \
     plugin.finalize = (v)->finalize)

static bool load(void)
{
    const char *name = getenv("NCCL_PROFILER_PLUGIN");
    char symbol[32];

    if (plugin.failed || (name && !strcasecmp(name, "none")))
        return false;
    if (plugin.lib)
        return true;
    plugin.lib = newest_known() ? open_library(name) : NULL;
    for (plugin.abi = newest_known(); plugin.lib && plugin.abi; plugin.abi--) {
        snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", plugin.abi);
        plugin.table = dlsym(plugin.lib, symbol);
        if (plugin.table)
            break;
    }
    plugin.failed = !plugin.lib || !plugin.abi;
    if (plugin.failed)
        return false;
    if (plugin.abi < 4)
        TAKE((struct prof_v1 *)plugin.table);
    else if (plugin.abi == 4)
        TAKE((struct prof_v4 *)plugin.table);
    else
        TAKE((struct prof_v5 *)plugin.table);
    log_info(LOG_INIT, "PROFILER/Plugin: Loaded %s (v%d)", *(const char *const *)plugin.table,
             plugin.abi);
    return true;
}

static void plugin_log(int level, unsigned long flags, const char *file, int line, const char *fmt,
                       ...)
{
    char text[1024];
    va_list args;

    (void)file;
    (void)line;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (level == 2)
        log_warn("%s", text);
    else
        log_info((unsigned)flags, "%s", text);
}

void prof_open(struct ncclComm *c)
{
    int nodes = c->profile->nodes;

    pthread_mutex_lock(&plugin.lock);
    if (load()) {
        if (plugin.abi < 4)
            ((struct prof_v1 *)plugin.table)->init(&c->profiler, &plugin.mask);
        else if (plugin.abi == 4)
            ((struct prof_v4 *)plugin.table)
                ->init(&c->profiler, &plugin.mask, "", c->hash, nodes, c->ranks, c->rank,
                       plugin_log);
        else
            ((struct prof_v5 *)plugin.table)
                ->init(&c->profiler, c->hash, &plugin.mask, "", nodes, c->ranks, c->rank,
                       plugin_log);
        plugin.users++;
    }
    pthread_mutex_unlock(&plugin.lock);
}

void prof_close(struct ncclComm *c)
{
    pthread_mutex_lock(&plugin.lock);
    if (plugin.lib && c->profiler)
        plugin.finalize(c->profiler);
    if (plugin.lib && plugin.users && --plugin.users == 0) {
        dlclose(plugin.lib);
        plugin.lib = NULL;
    }
    c->profiler = NULL;
    pthread_mutex_unlock(&plugin.lock);
}

/* --- descriptors --- */
static bool active(const struct ncclComm *c, int mask)
{
    return plugin.lib && c->profiler && plugin.mask & mask;
}

static void *begin(struct ncclComm *c, struct prof_descr *d, uint64_t type, void *parent, int rank)
{
    void *handle = NULL;

    if (plugin.abi < 5)
        d->type8 = (uint8_t)type;
    else
        d->type64 = type;
    d->parent = parent;
    d->rank = rank;
    plugin.start(c->profiler, &handle, d);
    return handle;
}

/* ncclFunc_t of NCCL 2.23 (src/include/nccl_common.h). */
static const uint8_t func_number[OP_KINDS] = {
    [OP_ALLREDUCE] = 4,   [OP_ALLGATHER] = 2, [OP_REDUCESCATTER] = 3, [OP_BROADCAST] = 0,
    [OP_REDUCE_ROOT] = 1, [OP_SEND] = 6,      [OP_RECV] = 7};

#define COLL_NUMBERS(d)                                                                            \
    ((d).seq = seq, (d).send = op->send, (d).recv = op->recv, (d).count = count,                   \
     (d).root = call->root, (d).channels = (uint8_t)how.channels, (d).warps = 16)
#define COLL_WORDS(d)                                                                              \
    ((d).func = op_name[call->kind], (d).dtype = story_dtype(dtype), (d).algo = how.algo_text,     \
     (d).proto = how.proto_text)
#define OF_COMM(d) ((d).name = "", (d).hash = c->hash)

static void begin_coll(struct ncclComm *c, const struct op *op, void *group, struct prof_task *t)
{
    const struct call *call = &op->call;
    /* taskAppend() of src/enqueue.cc: these two are moved as bytes. */
    bool raw = call->kind == OP_ALLGATHER || call->kind == OP_BROADCAST;
    size_t count = raw ? ops_bytes(call) : call->count;
    int dtype = raw ? NCCL_INT8 : call->dtype;
    uint64_t seq = c->seq[call->kind]++;
    struct prof_descr d = {0};
    struct story_choice how;

    story_choice(c, call, &how);
    if (how.channels > CHANNELS)
        how.channels = CHANNELS;
    if (plugin.abi == 1) {
        COLL_NUMBERS(d.coll_v1), OF_COMM(d.coll_v1);
        d.coll_v1.func = func_number[call->kind];
        d.coll_v1.dtype = (uint8_t)dtype;
        d.coll_v1.algo = (uint8_t)how.algo;
        d.coll_v1.proto = (uint8_t)how.proto;
    } else if (plugin.abi == 2) {
        COLL_NUMBERS(d.coll_v2), COLL_WORDS(d.coll_v2), OF_COMM(d.coll_v2);
    } else if (plugin.abi == 3) {
        COLL_NUMBERS(d.coll_v3), COLL_WORDS(d.coll_v3), OF_COMM(d.coll_v3);
    } else {
        COLL_NUMBERS(d.coll_v4), COLL_WORDS(d.coll_v4);
        d.coll_v4.group = group;
    }
    t->channels = how.channels;
    t->handle = begin(c, &d, PROF_COLL, plugin.abi < 5 ? group : op->api, c->rank);
}

static void begin_p2p(struct ncclComm *c, const struct op *op, enum op_kind kind, int peer,
                      void *group, struct prof_task *t)
{
    struct prof_descr d = {0};

    t->channels = peer == c->rank ? 1 : 2;
    if (plugin.abi == 1) {
        OF_COMM(d.p2p_v1);
        d.p2p_v1.func = func_number[kind];
        d.p2p_v1.dtype = NCCL_INT8;
        d.p2p_v1.count = ops_bytes(&op->call);
        d.p2p_v1.peer = peer;
    } else if (plugin.abi < 4) {
        OF_COMM(d.p2p_v2);
        d.p2p_v2.func = op_name[kind];
        d.p2p_v2.dtype = "ncclInt8";
        d.p2p_v2.count = ops_bytes(&op->call);
        d.p2p_v2.peer = peer;
    } else {
        d.p2p_v4.func = op_name[kind];
        d.p2p_v4.dtype = "ncclInt8";
        d.p2p_v4.count = ops_bytes(&op->call);
        d.p2p_v4.peer = peer;
        d.p2p_v4.channels = (uint8_t)t->channels;
        d.p2p_v4.group = group;
    }
    /* To 2.26 a group without a handle has no sends and receives to tell of. */
    t->handle = plugin.abi > 3 || group
                    ? begin(c, &d, PROF_P2P, plugin.abi < 5 ? group : op->api, c->rank)
                    : NULL;
}

/* --- the application's calls (2.28 on) --- */
void prof_call(struct ncclComm *c, struct op *op, int depth, bool captured)
{
    bool p2p = op->call.kind >= OP_SEND;
    struct prof_descr d = {0};

    if (!active(c, -1) || plugin.abi < 5)
        return;
    if (!group_call) {
        d.group_api = (struct prof_group_api){captured, depth};
        group_call = begin(c, &d, PROF_GROUP_API, NULL, 0);
    }
    memset(&d, 0, sizeof(d));
    if (p2p)
        d.p2p_api = (struct prof_p2p_api){
            op_name[op->call.kind], op->call.count, story_dtype(op->call.dtype), NULL, captured, 0};
    else
        d.coll_api = (struct prof_coll_api){op_name[op->call.kind],
                                            op->call.count,
                                            story_dtype(op->call.dtype),
                                            op->call.root,
                                            NULL,
                                            captured,
                                            0};
    op->api = begin(c, &d, p2p ? PROF_P2P_API : PROF_COLL_API, group_call, 0);
}

void prof_called(struct op *op)
{
    if (op->api && plugin.lib)
        plugin.stop(op->api);
}

void prof_group_called(void)
{
    if (group_call && plugin.lib)
        plugin.stop(group_call);
    group_call = NULL;
}

/* --- launches --- */
/* Collectives are one task; all-to-all, gather and scatter sends and receives (src/enqueue.cc, 2.28). */
static int tasks_of(struct ncclComm *c, const struct op *op, void *group, struct prof_task *t)
{
    int kind = op->call.kind, n = 0;
    bool root = c->rank == op->call.root;

    if (kind <= OP_REDUCE_ROOT) {
        if (t)
            begin_coll(c, op, group, t);
        return 1;
    }
    for (int r = 0; r < c->ranks; r++)
        for (int k = OP_SEND; k <= OP_RECV; k++) {
            bool sends = k == OP_SEND;
            bool is = kind == OP_ALLTOALL || (kind == k && r == op->call.root) ||
                      (kind == OP_GATHER_ROOT && (sends ? r == op->call.root : root)) ||
                      (kind == OP_SCATTER_ROOT && (sends ? root : r == op->call.root));

            if (is && t)
                begin_p2p(c, op, k, r, group, t + n);
            n += is;
        }
    return n;
}

void prof_launch(struct work *w)
{
    struct ncclComm *c = w->comm;
    struct prof_events *e;
    struct prof_descr d = {0};
    int n = 0;

    prof_free(w);
    if (!active(c, PROF_GROUP | PROF_COLL | PROF_P2P | PROF_PROXY_OP | PROF_PROXY_STEP |
                       PROF_KERNEL_CH))
        return;
    for (int i = 0; i < w->ops; i++)
        n += tasks_of(c, &w->op[i], NULL, NULL);
    e = calloc(1, sizeof(*e) + (size_t)n * sizeof(*e->task));
    if (!e || !(e->first = calloc((size_t)w->ops + 1, sizeof(*e->first)))) {
        free(e);
        return;
    }
    e->group = begin(c, &d, PROF_GROUP, NULL, 0);
    for (int i = 0; i < w->ops; i++)
        e->first[i + 1] = e->first[i] + tasks_of(c, &w->op[i], e->group, e->task + e->first[i]);
    for (int i = 0; i < n; i++)
        if (e->task[i].handle)
            plugin.stop(e->task[i].handle);
    if (e->group)
        plugin.stop(e->group);
    w->events = e;
}

void prof_free(struct work *w)
{
    if (w->events)
        free(w->events->first);
    free(w->events);
    w->events = NULL;
}

/* --- what the proxy thread tells --- */
static uint64_t gpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void step_state(void *step, int state, size_t bytes)
{
    union prof_state_args a = {.step_bytes = bytes};

    plugin.record(step, state, plugin.abi < 4 ? NULL : &a);
}

/* Bytes of a ring on one rank's way to the next (AllReduce twice n - 1 blocks of n, ...). */
static size_t ring_bytes(const struct ncclComm *c, const struct call *call)
{
    size_t n = (size_t)c->ranks, bytes = ops_bytes(call);

    return call->kind == OP_ALLREDUCE                                     ? 2 * bytes * (n - 1) / n
           : call->kind == OP_ALLGATHER || call->kind == OP_REDUCESCATTER ? bytes * (n - 1)
                                                                          : bytes;
}

static void proxy_op(struct ncclComm *c, void *parent, int channel, int peer, bool send,
                     size_t bytes)
{
    static const int states[2][3] = {{PROF_RECV_WAIT, PROF_RECV_FLUSH_WAIT, PROF_RECV_GPU_WAIT},
                                     {PROF_SEND_GPU_WAIT, PROF_SEND_PEER_WAIT, PROF_SEND_WAIT}};
    union prof_state_args all = {.proxy_op = {bytes, NET_STEPS}};
    struct prof_descr d = {0};
    void *op, *step;

    d.proxy_op = (struct prof_proxy_op){getpid(), (uint8_t)channel, peer, NET_STEPS, 1 << 19, send};
    op = begin(c, &d, PROF_PROXY_OP, parent, c->rank);
    for (int i = 0; op && plugin.mask & PROF_PROXY_STEP && i < NET_STEPS; i++) {
        size_t part = bytes / NET_STEPS + (i ? 0 : bytes % NET_STEPS);

        memset(&d, 0, sizeof(d));
        d.proxy_step = i;
        step = begin(c, &d, PROF_PROXY_STEP, op, c->rank);
        for (int s = 0; step && s < 3; s++)
            if (states[send][s] != PROF_SEND_PEER_WAIT || plugin.abi >= 4)
                step_state(step, states[send][s], part);
        if (step)
            plugin.stop(step);
    }
    if (op && plugin.abi < 4)
        plugin.record(op, send ? PROF_SEND_DONE : PROF_RECV_DONE, &all);
    if (op)
        plugin.stop(op);
}

static void proxies(struct ncclComm *c, const struct op *op, const struct prof_task *t)
{
    size_t bytes = ring_bytes(c, &op->call);
    int peer;

    for (int send = 0; send < 2; send++)
        for (int i = 0; story_ring(c, send, &peer) && i < t->channels; i++)
            proxy_op(c, t->handle, i, peer, send,
                     bytes / (size_t)t->channels + (i ? 0 : bytes % (size_t)t->channels));
}

void prof_kernel(struct work *w, int op, int n)
{
    struct prof_events *e;

    if (w->captured && op == 0) /* each replay is told of */
        prof_launch(w);
    e = w->events;
    if (!e || !active(w->comm, PROF_KERNEL_CH))
        return;
    for (int i = e->first[op]; i < e->first[op + n]; i++)
        for (int k = 0; k < e->task[i].channels; k++) {
            struct prof_descr d = {0};

            d.kernel_ch.channel = (uint8_t)k;
            if (plugin.abi >= 4)
                d.kernel_ch.timer = gpu_now();
            e->task[i].channel[k] = begin(w->comm, &d, PROF_KERNEL_CH, e->task[i].handle, 0);
        }
}

void prof_kernel_done(struct work *w, int op, int n)
{
    struct prof_events *e = w->events;

    if (!e || !active(w->comm, -1))
        return;
    for (int i = op; i < op + n; i++)
        if (w->op[i].call.kind <= OP_REDUCE_ROOT && active(w->comm, PROF_PROXY_OP))
            proxies(w->comm, &w->op[i], &e->task[e->first[i]]);
    for (int i = e->first[op]; i < e->first[op + n]; i++)
        for (int k = 0; k < e->task[i].channels; k++) {
            union prof_state_args a = {.timer = gpu_now()};

            if (!e->task[i].channel[k])
                continue;
            if (plugin.abi >= 4)
                plugin.record(e->task[i].channel[k], PROF_KERNEL_CH_STOP, &a);
            plugin.stop(e->task[i].channel[k]);
        }
}
