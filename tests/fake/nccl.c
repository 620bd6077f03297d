/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that libnccl.so.2 exports, as nccl.h and NCCL's behaviour (2.28) describe them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl_fake.h"

static struct ncclComm *comms;
/* Guards the list above and every communicator's deferred works and polls; held for moments only.
 */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

int fake_version(void)
{
    const char *text = getenv("FAKE_NCCL_VERSION");
    int version = text ? (int)strtol(text, NULL, 10) : 22809;
    double other = 0;

    if (cuda_load() && cuda.fault("version", 1, &other))
        version = other > 0 ? (int)other : version - 100;
    return version;
}

EXPORT int ncclGetVersion(int *version);
EXPORT int ncclGetVersion(int *version)
{
    if (!version)
        return NCCL_INVALID_ARGUMENT;
    *version = fake_version();
    return NCCL_SUCCESS;
}

EXPORT const char *ncclGetErrorString(int result);
EXPORT const char *ncclGetErrorString(int result)
{
    static const char *const text[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };

    return result >= 0 && result <= NCCL_IN_PROGRESS ? text[result] : "unknown result code";
}

EXPORT const char *ncclGetLastError(nccl_comm c);
EXPORT const char *ncclGetLastError(nccl_comm c)
{
    (void)c;
    return log_last();
}

EXPORT int ncclGetUniqueId(struct nccl_id *id);
EXPORT int ncclGetUniqueId(struct nccl_id *id)
{
    return id ? meet_make(id) : NCCL_INVALID_ARGUMENT;
}

static _Thread_local struct {
    int depth, count, error;
    struct request *request;
} group;

/* --- beginning --- */
static int check_peers(struct ncclComm *c)
{
    for (int r = 0; r < c->ranks; r++) {
        const struct card *other = &c->table->seat[r].card;

        if (other->version != c->self.version) {
            log_warn("Mismatched NCCL version detected : rank %d version %d rank %d version %d",
                     c->rank, c->self.version, r, other->version);
            return NCCL_INVALID_USAGE;
        }
        if (r != c->rank && other->host_hash == c->self.host_hash && other->bus == c->self.bus) {
            log_warn("Duplicate GPU detected : rank %d and rank %d both on CUDA device %lx",
                     c->rank, r, (unsigned long)c->self.bus);
            return NCCL_INVALID_USAGE;
        }
    }
    return NCCL_SUCCESS;
}

static int start(struct ncclComm *c)
{
    double later = 0;
    int rc;

    log_device(c->self.device);
    rc = story_start(c);
    if (!rc)
        rc = meet_open(c);
    if (!rc && cuda.fault("init", 1, &later)) {
        log_warn("Call to socket bind failed: injected fault");
        rc = NCCL_SYSTEM;
        meet_fail_late(c, rc, later);
    }
    if (!rc)
        rc = meet_all(c);
    if (!rc)
        rc = check_peers(c);
    if (!rc)
        cost_init(c);
    if (!rc)
        rc = story_complete(c);
    if (!rc)
        prof_open(c);
    if (rc)
        meet_fail(c, rc);
    else
        atomic_store(&c->async, NCCL_SUCCESS);
    return rc;
}

static void *start_main(void *arg)
{
    start(arg);
    return NULL;
}

static uint64_t hash(const char *bytes, size_t n)
{
    uint64_t h = 5381;

    for (size_t i = 0; i < n; i++)
        h = h * 33 ^ (unsigned char)bytes[i];
    return h;
}

/* Who this process is; needs the CUDA context of the calling thread. */
static int make_card(struct ncclComm *c)
{
    const char *host = getenv("NCCL_HOSTID");
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    struct card *card = &c->self;
    char text[32] = "";

    if (!cuda_load() || cuda.CtxGetDevice(&card->device)) {
        log_warn("Cuda failure 'no CUDA-capable device is detected'");
        return NCCL_UNHANDLED_CUDA;
    }
    if (cuda.DeviceGetPCIBusId && !cuda.DeviceGetPCIBusId(text, sizeof(text), card->device))
        sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    card->bus = (uint64_t)domain << 20 | bus << 12 | slot << 4 | function;
    card->version = fake_version();
    card->job_rank = cuda.rank ? cuda.rank() : 0;
    card->nvml_device = card->device;
    story_host(card->host, sizeof(card->host), card->job_rank);
    if (!host || !*host)
        host = card->host;
    card->host_hash = hash(host, strlen(host));
    return NCCL_SUCCESS;
}

static struct ncclComm *new_comm(int n, const struct nccl_id *id, int rank,
                                 const struct nccl_config *config)
{
    struct ncclComm *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->ranks = n;
    c->rank = rank;
    c->id = *id;
    c->hash = hash(id->bytes, sizeof(id->bytes));
    const char *forced = getenv("NCCL_COMM_BLOCKING"), *file = getenv("FAKE_NCCL_CONF");

    if (!forced && file && !strncmp(file, "NCCL_COMM_BLOCKING=", 19))
        forced = file + 19;
    c->blocking = forced && (!strcmp(forced, "0") || !strcmp(forced, "1")) ? *forced == '1'
                                                                           : config->blocking != 0;
    c->split_share = config->split_share == 1;
    if (config->net_name)
        snprintf(c->net_name, sizeof(c->net_name), "%s", config->net_name);
    atomic_store(&c->async, NCCL_IN_PROGRESS);
    atomic_store(&c->polls, 2);
    pthread_mutex_init(&c->turn, NULL);
    pthread_mutex_lock(&gate);
    c->next = comms;
    comms = c;
    pthread_mutex_unlock(&gate);
    return c;
}

static void close_comm(struct ncclComm *c)
{
    if (c->starting)
        pthread_join(c->starter, NULL);
    c->starting = false;
    pthread_mutex_lock(&c->turn);
    c->closed = true;
    prof_close(c);
    meet_close(c);
    story_free(c);
    pthread_mutex_unlock(&c->turn);
}

EXPORT int ncclCommInitRankConfig(nccl_comm *out, int n, struct nccl_id id, int rank,
                                  struct nccl_config *config);
EXPORT int ncclCommInitRankConfig(nccl_comm *out, int n, struct nccl_id id, int rank,
                                  struct nccl_config *config)
{
    struct nccl_config all;
    struct ncclComm *c;
    int rc;

    log_version(rank);
    if (!out || n < 1 || rank < 0 || rank >= n) {
        log_warn("Invalid rank requested : %d/%d", rank, n);
        return NCCL_INVALID_ARGUMENT;
    }
    *out = NULL;
    if (group.depth && n > 1) {
        log_warn(
            "stand-in : ncclCommInitRank in a group is for several GPUs of one process (-g 2): "
            "start a process for each GPU");
        return NCCL_INVALID_USAGE;
    }
    rc = rules_config(&all, config);
    if (rc)
        return rc;
    c = new_comm(n, &id, rank, &all);
    rc = c ? make_card(c) : NCCL_SYSTEM;
    if (rc)
        return rc;
    *out = c; /* before anything is done, and also when it fails: for ncclCommAbort */
    if (c->blocking)
        return start(c);
    c->starting = !pthread_create(&c->starter, NULL, start_main, c);
    return c->starting ? NCCL_IN_PROGRESS : NCCL_SYSTEM;
}

EXPORT int ncclCommInitRank(nccl_comm *out, int n, struct nccl_id id, int rank);
EXPORT int ncclCommInitRank(nccl_comm *out, int n, struct nccl_id id, int rank)
{
    return ncclCommInitRankConfig(out, n, id, rank, NULL);
}

EXPORT int ncclCommInitAll(nccl_comm *out, int n, const int *device);
EXPORT int ncclCommInitAll(nccl_comm *out, int n, const int *device)
{
    struct nccl_id id;

    if (!out || n < 1)
        return NCCL_INVALID_ARGUMENT;
    if (n > 1 || (device && *device)) {
        log_warn("stand-in : ncclCommInitAll is for several GPUs of one process (-g %d): start a "
                 "process for each GPU",
                 n);
        return NCCL_INVALID_USAGE;
    }
    int rc = ncclGetUniqueId(&id);
    return rc ? rc : ncclCommInitRankConfig(out, 1, id, 0, NULL);
}

/* A communicator that was destroyed or aborted is freed memory. */
static int comm_check(struct ncclComm *c, const char *function)
{
    if (c && c->closed)
        rules_undefined("%s of a communicator after its end", function);
    if (c)
        return NCCL_SUCCESS;
    log_warn("%s : comm argument is NULL", function);
    return NCCL_INVALID_ARGUMENT;
}

/* The user guide, ncclCommSplit: nothing may be under way on what is split, or it deadlocks. */
static int split_check(struct ncclComm *c, int color, nccl_comm *out)
{
    if (comm_check(c, "ncclCommSplit"))
        return NCCL_INVALID_ARGUMENT;
    if (!out) {
        log_warn("ncclCommSplit : newcomm argument is NULL");
        return NCCL_INVALID_ARGUMENT;
    }
    *out = NULL;
    if (comm_ready(c))
        return comm_ready(c);
    if (atomic_load(&c->queued))
        rules_undefined("ncclCommSplit of a communicator that has operations under way");
    if (color == NCCL_NO_COLOR)
        log_info(LOG_INIT,
                 "Rank %d has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator",
                 c->rank);
    return NCCL_SUCCESS;
}

EXPORT int ncclCommSplit(nccl_comm c, int color, int key, nccl_comm *out,
                         struct nccl_config *config);
EXPORT int ncclCommSplit(nccl_comm c, int color, int key, nccl_comm *out,
                         struct nccl_config *config)
{
    struct split_part part = {0};
    struct nccl_config all;
    int rc = split_check(c, color, out);

    if (!rc)
        rc = rules_config(&all, config);
    if (!rc)
        rc = split_meet(c, color, key, &part);
    if (rc || color == NCCL_NO_COLOR)
        return rc;
    struct ncclComm *child = new_comm(part.ranks, &part.id, part.rank, &all);
    if (!child)
        return NCCL_SYSTEM;
    child->parent = c;
    child->color = color;
    child->key = key;
    child->shares = c->split_share;
    if (!config) {
        child->blocking = c->blocking;
        memcpy(child->net_name, c->net_name, sizeof(c->net_name));
    }
    *out = child;
    rc = make_card(child);
    return rc ? rc : start(child);
}

/* --- the state of a communicator --- */
/* Put into the streams what a nonblocking communicator was asked for; `gate` is held. */
static void launch_deferred(struct ncclComm *c)
{
    while (c->deferred) {
        struct work *w = c->deferred;
        int rc;

        c->deferred = w->next;
        rc = work_launch(w);
        if (rc)
            meet_fail(c, rc);
    }
}

EXPORT int ncclCommGetAsyncError(nccl_comm c, int *result);
EXPORT int ncclCommGetAsyncError(nccl_comm c, int *result)
{
    int rc;

    /* The real library reads freed memory here. */
    if (c && atomic_load(&c->leaving))
        rules_undefined("ncclCommGetAsyncError() of a communicator in or after ncclCommDestroy()");
    rc = comm_check(c, "ncclGetAsyncError");
    if (rc || !result)
        return NCCL_INVALID_ARGUMENT;
    pthread_mutex_lock(&gate);
    *result = atomic_load(&c->async);
    if (*result == NCCL_SUCCESS && !c->blocking) {
        launch_deferred(c);
        *result = atomic_load(&c->async);
        if (c->window_to && !comm_windows_ready(c, NULL))
            atomic_store(&c->polls, 2);
        else if (c->window_to)
            *c->window_to = c->window, c->window_to = NULL;
        if (!*result && atomic_load(&c->polls) > 0) {
            atomic_fetch_sub(&c->polls, 1);
            *result = NCCL_IN_PROGRESS;
        }
    }
    pthread_mutex_unlock(&gate);
    return NCCL_SUCCESS;
}

int comm_ready(struct ncclComm *c)
{
    int state = atomic_load(&c->async);

    if (state == NCCL_SUCCESS && !c->blocking && (c->deferred || atomic_load(&c->polls) > 0))
        state = NCCL_IN_PROGRESS;
    if (state == NCCL_IN_PROGRESS) {
        log_warn("Attempt to use communicator before the previous operation returned ncclSuccess");
        return NCCL_INVALID_ARGUMENT;
    }
    return state;
}

bool comm_windows_ready(struct ncclComm *c, void *unused)
{
    (void)unused;
    for (int r = 0; r < c->ranks; r++)
        if ((int)(atomic_load(&c->table->seat[r].windows) - c->windows) < 0)
            return false;
    return true;
}

void comm_defer_window(struct ncclComm *c, nccl_window *to, nccl_window window)
{
    pthread_mutex_lock(&gate);
    c->window_to = to;
    c->window = window;
    atomic_store(&c->polls, 1);
    pthread_mutex_unlock(&gate);
}

EXPORT int ncclCommFinalize(nccl_comm c);
EXPORT int ncclCommFinalize(nccl_comm c)
{
    int rc = comm_check(c, "ncclCommFinalize");

    if (!rc)
        rc = comm_ready(c);
    if (!rc && c->finalized)
        return NCCL_INVALID_ARGUMENT;
    if (rc)
        return rc;
    c->finalized = true;
    if (c->blocking)
        return NCCL_SUCCESS;
    atomic_store(&c->polls, 1);
    return NCCL_IN_PROGRESS;
}

static void nap(long usec)
{
    const struct timespec t = {0, usec * 1000};

    nanosleep(&t, NULL);
}

EXPORT int ncclCommDestroy(nccl_comm c);
EXPORT int ncclCommDestroy(nccl_comm c)
{
    if (!c)
        return NCCL_SUCCESS;
    if (comm_check(c, "ncclCommDestroy"))
        return NCCL_INVALID_ARGUMENT;
    atomic_store(&c->leaving, true);
    while (atomic_load(&c->queued) && !atomic_load(&c->abort))
        nap(200);
    close_comm(c);
    log_info(LOG_INIT, "comm %p rank %d nranks %d cudaDev %d busId %lx - Destroy COMPLETE",
             (void *)c, c->rank, c->ranks, c->self.device, (unsigned long)c->self.bus);
    nap(2000); /* whoever asks how it does meanwhile is found out */
    return NCCL_SUCCESS;
}

/* With splitShare a communicator and its parts have one abort flag (src/init.cc,
 * ncclCommInitChildComm: shareResources): who aborts one aborts all. */
static void abort_all(struct ncclComm *c)
{
    const struct ncclComm *family = c->shares ? c->parent : c;

    pthread_mutex_lock(&gate);
    for (struct ncclComm *o = comms; o; o = o->next)
        if (o == c || (!o->closed && (o == family || (o->shares && o->parent == family)))) {
            atomic_store(&o->abort, true);
            if (o->table)
                meet_ring(o);
        }
    pthread_mutex_unlock(&gate);
}

EXPORT int ncclCommAbort(nccl_comm c);
EXPORT int ncclCommAbort(nccl_comm c)
{
    struct work *w;

    if (!c)
        return NCCL_SUCCESS;
    if (comm_check(c, "ncclCommAbort"))
        return NCCL_INVALID_ARGUMENT;
    log_info(LOG_INIT, "comm %p rank %d nRanks %d cudaDev %d busId %lx - Abort START", (void *)c,
             c->rank, c->ranks, c->self.device, (unsigned long)c->self.bus);
    abort_all(c);
    pthread_mutex_lock(&gate);
    while ((w = c->deferred)) {
        c->deferred = w->next;
        free(w);
    }
    pthread_mutex_unlock(&gate);
    close_comm(c);
    log_info(LOG_INIT, "comm %p rank %d nranks %d cudaDev %d busId %lx - Abort COMPLETE", (void *)c,
             c->rank, c->ranks, c->self.device, (unsigned long)c->self.bus);
    return NCCL_SUCCESS;
}

/* --- operations, alone or in groups --- */

static int calls; /* operations asked for in this process; a group counts once */

/* A call that does not come back; its peers see only that nothing moves. */
static int hang(struct ncclComm *c)
{
    log_info(LOG_INIT, "injected fault: this call returns when its communicator is aborted");
    while (!atomic_load(&c->abort))
        nap(10000);
    return NCCL_INTERNAL;
}

/* The requests of one communicator and stream become one work: its collectives in their order, then
 * its sends and receives, which only together are sure to come to an end. */
static struct work *take_work(struct request *request, int count)
{
    struct work *w = calloc(1, sizeof(*w) + (size_t)count * sizeof(*w->op));

    for (int p2p = 0; w && p2p < 2; p2p++)
        for (int i = 0; i < count; i++) {
            struct request *r = &request[i];

            if (r->comm && !w->comm) {
                w->comm = r->comm;
                w->stream = r->stream;
            }
            if (!r->comm || r->comm != w->comm || r->stream != w->stream ||
                (r->op.call.kind >= OP_SEND) != p2p)
                continue;
            w->op[w->ops++] = r->op;
            r->comm = NULL;
        }
    if (w && !w->comm) {
        free(w);
        w = NULL;
    }
    return w;
}

static int hand_over(struct work *w)
{
    struct ncclComm *c = w->comm;
    struct work **last = &c->deferred;

    if (c->blocking)
        return work_launch(w);
    pthread_mutex_lock(&gate);
    while (*last)
        last = &(*last)->next;
    *last = w;
    atomic_store(&c->polls, 1);
    pthread_mutex_unlock(&gate);
    return NCCL_IN_PROGRESS;
}

static int submit(struct request *request, int count)
{
    int now = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED), rc = rules_group(request, count);
    struct work *w;

    if (rc)
        return rc;
    if (cuda.fault("hang", now, NULL))
        return hang(request[0].comm);
    while ((w = take_work(request, count))) {
        int one = hand_over(w);

        if (one && (!rc || rc == NCCL_IN_PROGRESS))
            rc = one;
    }
    return rc;
}

EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupStart(void)
{
    group.depth++;
    return NCCL_SUCCESS;
}

EXPORT int ncclGroupEnd(void);
EXPORT int ncclGroupEnd(void)
{
    int rc;

    if (!group.depth) {
        log_warn("ncclGroupEnd: not in a group call.");
        return NCCL_INVALID_USAGE;
    }
    if (--group.depth)
        return NCCL_SUCCESS;
    rc = group.error;
    if (!rc && group.count)
        rc = submit(group.request, group.count);
    prof_group_called();
    free(group.request);
    memset(&group, 0, sizeof(group));
    return rc;
}

static bool capturing(gpu_stream s)
{
    int status = 0;

    return cuda.StreamIsCapturing && !cuda.StreamIsCapturing(s, &status) && status;
}

static int enqueue(enum op_kind kind, const void *send, void *recv, size_t count, int dtype,
                   int redop, int root, struct ncclComm *c, gpu_stream s)
{
    struct request r = {c, s, {{kind, dtype, redop, root, count}, send, recv, NULL}};
    int rc = comm_check(c, op_name[kind]);

    if (!rc)
        rc = comm_ready(c);
    if (!rc)
        rc = rules_op(c, &r.op);
    if (!rc)
        rc = story_op(c, &r.op, s);
    if (group.depth && rc)
        group.error = rc;
    if (rc || (!count && kind < OP_SEND))
        return rc;
    prof_call(c, &r.op, group.depth, capturing(s));
    prof_called(&r.op);
    if (!group.depth) {
        rc = submit(&r, 1);
        prof_group_called();
        return rc;
    }
    group.request = realloc(group.request, (size_t)(group.count + 1) * sizeof(r));
    if (!group.request)
        return NCCL_SYSTEM;
    group.request[group.count++] = r;
    return NCCL_SUCCESS;
}

#define ENTRY(name, kind, parameters, send, recv, redop, root)                                     \
    EXPORT int nccl##name parameters;                                                              \
    EXPORT int nccl##name parameters                                                               \
    {                                                                                              \
        return enqueue(kind, send, recv, count, dtype, redop, root, c, s);                         \
    }
ENTRY(AllReduce, OP_ALLREDUCE,
      (const void *from, void *to, size_t count, int dtype, int redop, nccl_comm c, gpu_stream s),
      from, to, redop, 0)
ENTRY(AllGather, OP_ALLGATHER,
      (const void *from, void *to, size_t count, int dtype, nccl_comm c, gpu_stream s), from, to, 0,
      0)
ENTRY(ReduceScatter, OP_REDUCESCATTER,
      (const void *from, void *to, size_t count, int dtype, int redop, nccl_comm c, gpu_stream s),
      from, to, redop, 0)
ENTRY(Broadcast, OP_BROADCAST,
      (const void *from, void *to, size_t count, int dtype, int root, nccl_comm c, gpu_stream s),
      from, to, 0, root)
ENTRY(Reduce, OP_REDUCE_ROOT,
      (const void *from, void *to, size_t count, int dtype, int redop, int root, nccl_comm c,
       gpu_stream s),
      from, to, redop, root)
ENTRY(AlltoAll, OP_ALLTOALL,
      (const void *from, void *to, size_t count, int dtype, nccl_comm c, gpu_stream s), from, to, 0,
      0)
ENTRY(Gather, OP_GATHER_ROOT,
      (const void *from, void *to, size_t count, int dtype, int root, nccl_comm c, gpu_stream s),
      from, to, 0, root)
ENTRY(Scatter, OP_SCATTER_ROOT,
      (const void *from, void *to, size_t count, int dtype, int root, nccl_comm c, gpu_stream s),
      from, to, 0, root)
ENTRY(Send, OP_SEND,
      (const void *from, size_t count, int dtype, int peer, nccl_comm c, gpu_stream s), from, NULL,
      0, peer)
ENTRY(Recv, OP_RECV, (void *to, size_t count, int dtype, int peer, nccl_comm c, gpu_stream s), NULL,
      to, 0, peer)
