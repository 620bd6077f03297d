/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in's streams, events and graphs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_fake.h"

enum { ARGUMENTS = 512 };

struct CUevent_st {
    int users;
    bool recorded; /* put into a stream at least once */
    bool captured; /* its last record is in a graph that is being recorded or was */
    int pending;   /* records that have not run yet */
    double at;
};

struct entry {
    struct entry *next;
    enum { COPY, SET, KERNEL, HOST, MARK, GRAPH } what;
    const void *from;
    void *to;
    size_t bytes;
    unsigned char value;
    const struct fake_kernel *kernel;
    unsigned blocks, threads;
    unsigned char *arguments;
    void (*function)(void *);
    void *argument;
    struct CUevent_st *event;
    struct CUgraph_st *graph; /* of GRAPH */
    int before;               /* works when it was put into its stream */
};

struct list {
    struct entry *first, **end;
};

struct CUgraph_st { /* also what a CUgraphExec points to: entries are never changed */
    int users;
    struct list nodes;
};

struct CUstream_st {
    struct CUstream_st *next;
    struct list queue;
    bool busy, closing;
    struct CUgraph_st *recording;
    pthread_t recorder; /* the thread that began it */
    int mode;           /* how it was begun: enum mode */
    bool lost;          /* something that no graph can hold was asked for meanwhile */
};

/* CU_STREAM_CAPTURE_MODE_...; each thread has one too, with which it asks (cuda.h of CUDA 13.0,
 * cuThreadExchangeStreamCaptureMode). */
enum mode { GLOBAL, THREAD_LOCAL, RELAXED };
static _Thread_local enum mode thread_mode;

static struct CUstream_st *streams;
static int works; /* copies, kernels and host functions that were put into streams */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void append(struct list *l, struct entry *e)
{
    if (!l->first)
        l->end = &l->first;
    *l->end = e;
    l->end = &e->next;
}

static struct entry *take(struct list *l)
{
    struct entry *e = l->first;

    l->first = e->next;
    return e;
}

/* --- the life of graphs and events; the lock is held --- */
static void graph_drop(struct CUgraph_st *g);

static void event_drop(struct CUevent_st *e)
{
    if (e && --e->users == 0)
        free(e);
}

static void entry_free(struct entry *e)
{
    event_drop(e->event);
    if (e->what == GRAPH)
        graph_drop(e->graph);
    free(e->arguments);
    free(e);
}

static void graph_drop(struct CUgraph_st *g)
{
    if (!g || --g->users > 0)
        return;
    while (g->nodes.first)
        entry_free(take(&g->nodes));
    free(g);
}

/* --- the thread of a stream --- */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each stream has a thread, so this belongs to the stream. */
static _Thread_local double skipped;

__attribute__((visibility("default"))) void fake_skip(double seconds)
{
    double factor;

    skipped += fake_fault("slowgpu", 1, &factor) ? seconds * factor : seconds;
}

/* By the stream's clock a copy takes what the profile says, if it says something. */
static void skip_copy(const struct entry *e, double began)
{
    const struct fake_profile *p = fake_profile();
    char file[64];
    size_t at;
    bool inside = fake_find(e->from, file, &at) && fake_find(e->to, file, &at);
    double rate = inside ? p->hbm_Bps / 2 : p->host_Bps;

    if (rate > 0) {
        skipped -= now() - began;
        fake_skip((double)e->bytes / rate);
    }
}

static void copy(const struct entry *e)
{
    const void *from = fake_touch(e->from, e->bytes);
    void *to = fake_touch(e->to, e->bytes);
    double began = now();

    if (from && to)
        memmove(to, from, e->bytes);
    skip_copy(e, began);
}

static void set(const struct entry *e)
{
    void *to = fake_touch(e->to, e->bytes);

    if (to)
        memset(to, e->value, e->bytes);
}

static void mark(const struct entry *e)
{
    pthread_mutex_lock(&lock);
    e->event->at = now() + skipped;
    e->event->pending--;
    pthread_mutex_unlock(&lock);
}

static int works_of(const struct entry *e)
{
    int n = 0;

    if (e->what != GRAPH)
        return e->what == COPY || e->what == KERNEL || e->what == HOST;
    for (const struct entry *node = e->graph->nodes.first; node; node = node->next)
        n += works_of(node);
    return n;
}

/* FAKE_FAULT=stuck: from the N-th piece of work on nothing happens any more, in no stream.  Counted
 * as it is put there: which stream's thread comes first makes no difference. */
static void hang(const struct entry *e, int before)
{
    int n = before + works_of(e);

    while (fake_fault("stuck", n, NULL))
        pause();
}

static void run(const struct entry *e, int before)
{
    if (e->what != GRAPH)
        hang(e, before);
    switch (e->what) {
    case COPY:
        copy(e);
        break;
    case SET:
        set(e);
        break;
    case KERNEL:
        fake_kernel_run(e->kernel, e->blocks, e->threads, e->arguments);
        break;
    case HOST:
        e->function(e->argument);
        break;
    case MARK:
        mark(e);
        break;
    case GRAPH:
        for (const struct entry *node = e->graph->nodes.first; node; node = node->next) {
            run(node, before);
            before += works_of(node);
        }
        break;
    }
}

static void run_on_gpu(const struct entry *e)
{
    static pthread_mutex_t full = PTHREAD_MUTEX_INITIALIZER;

    if (fake_profile()->serial)
        pthread_mutex_lock(&full);
    run(e, e->before);
    if (fake_profile()->serial)
        pthread_mutex_unlock(&full);
}

static void *work(void *stream)
{
    struct CUstream_st *s = stream;
    struct entry *e;

    pthread_mutex_lock(&lock);
    while (s->queue.first || !s->closing) {
        if (!s->queue.first) {
            pthread_cond_wait(&moved, &lock);
            continue;
        }
        e = take(&s->queue);
        s->busy = true;
        pthread_mutex_unlock(&lock);
        run_on_gpu(e);
        pthread_mutex_lock(&lock);
        s->busy = false;
        entry_free(e);
        pthread_cond_broadcast(&moved);
    }
    for (struct CUstream_st **link = &streams; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            break;
        }
    free(s);
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    return NULL;
}

API(cuStreamCreateWithPriority, gpu_stream *stream, unsigned flags, int priority)
{
    struct CUstream_st *s;
    pthread_t thread;

    NEEDS_CONTEXT;
    (void)priority;
    if (flags > CUDA_STREAM_NON_BLOCKING)
        return CUDA_INVALID_VALUE;
    s = calloc(1, sizeof(*s));
    if (!s || pthread_create(&thread, NULL, work, s)) {
        free(s);
        return CUDA_OUT_OF_MEMORY;
    }
    pthread_detach(thread);
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *stream = s;
    return CUDA_GOOD;
}

API(cuStreamCreate, gpu_stream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* Returns at once; what is in the stream still runs. */
API(cuStreamDestroy_v2, gpu_stream stream)
{
    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    stream->closing = true;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

API(cuStreamQuery, gpu_stream stream)
{
    bool done;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    done = !stream->queue.first && !stream->busy;
    stream->lost |= stream->recording != NULL;
    pthread_mutex_unlock(&lock);
    if (stream->recording)
        return FAKE_CAPTURE_UNSUPPORTED;
    NEEDS_CONTEXT; /* what ran meanwhile may have been a fault */
    return done ? CUDA_GOOD : CUDA_NOT_READY;
}

API(cuStreamSynchronize, gpu_stream stream)
{
    NEEDS_CONTEXT;
    if (stream->recording) {
        stream->lost = true;
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_lock(&lock);
    while (stream->queue.first || stream->busy)
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
    NEEDS_CONTEXT;
    return CUDA_GOOD;
}

void fake_drain(void)
{
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *s = streams; s;)
        if (s->queue.first || s->busy) {
            pthread_cond_wait(&moved, &lock);
            s = streams; /* the list may have changed */
        } else {
            s = s->next;
        }
    pthread_mutex_unlock(&lock);
}

/* --- what goes into a stream, or into the graph that it records --- */
static int put(gpu_stream stream, struct entry e)
{
    struct entry *one = malloc(sizeof(*one));

    if (stream->recording && stream->lost) {
        free(e.arguments);
        free(one);
        return FAKE_CAPTURE_INVALIDATED;
    }
    *one = e;
    pthread_mutex_lock(&lock);
    one->before = works;
    works += stream->recording ? 0 : works_of(one);
    append(stream->recording ? &stream->recording->nodes : &stream->queue, one);
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

API(cuMemcpyAsync, cuda_ptr to, cuda_ptr from, size_t bytes, gpu_stream stream)
{
    NEEDS_CONTEXT;
    if (!to || !from)
        return CUDA_INVALID_VALUE;
    return put(stream, (struct entry){.what = COPY,
                                      .to = (void *)(uintptr_t)to,
                                      .from = (void *)(uintptr_t)from,
                                      .bytes = bytes});
}

API(cuMemsetD8Async, cuda_ptr at, unsigned char value, size_t bytes, gpu_stream stream)
{
    char file[64];
    size_t offset;

    NEEDS_CONTEXT;
    if (!fake_find((void *)(uintptr_t)at, file, &offset)) /* of the host: not for this function */
        return CUDA_INVALID_VALUE;
    return put(
        stream,
        (struct entry){.what = SET, .to = (void *)(uintptr_t)at, .value = value, .bytes = bytes});
}

API(cuLaunchHostFunc, gpu_stream stream, void (*function)(void *), void *argument)
{
    NEEDS_CONTEXT;
    return put(stream, (struct entry){.what = HOST, .function = function, .argument = argument});
}

API(cuLaunchKernel, cuda_function function, unsigned x, unsigned y, unsigned z, unsigned threads,
    unsigned threads_y, unsigned threads_z, unsigned shared, gpu_stream stream, void **arguments,
    void **extra)
{
    struct entry e = {.what = KERNEL, .blocks = x, .threads = threads};

    NEEDS_CONTEXT;
    if (x == 0 || y != 1 || z != 1 || threads == 0 || threads > 1024 || threads_y != 1 ||
        threads_z != 1 || shared || extra)
        return CUDA_INVALID_VALUE;
    e.kernel = (const struct fake_kernel *)function;
    e.arguments = malloc(ARGUMENTS);
    if (fake_kernel_arguments(e.kernel, e.arguments, arguments) > ARGUMENTS)
        abort();
    return put(stream, e);
}

/* --- modules: any fat binary and any PTX will do, what runs is the source, compiled for the CPU ---
 * FAKE_FATBIN=209: what fat binaries get, as from a driver that is older than their compiler. */
struct CUmod_st {
    int loaded;
};

/* PTX is refused by its version, which is CUDA's with 4 off the first number, and never more than
 * that (PTX ISA, release history: 8.0 came with CUDA 12.0, 8.7 with 12.8, 9.0 with 13.0). */
static int take_ptx(const char *text, unsigned count, const int *options, void **values)
{
    int major, minor, driver = fake_profile()->driver;

    if (!strstr(text, "\n.version ") || !strstr(text, "\n.target sm_") ||
        sscanf(strstr(text, "\n.version "), " .version %d.%d", &major, &minor) != 2)
        return CUDA_INVALID_IMAGE;
    if (major * 10 + minor <= 10 * (driver / 1000 - 4) + driver % 1000 / 10)
        return CUDA_GOOD;
    for (unsigned i = 0; i + 1 < count; i++)
        if (options[i] == CUDA_JIT_ERROR_LOG && options[i + 1] == CUDA_JIT_ERROR_LOG_BYTES)
            snprintf(values[i], (size_t)(uintptr_t)values[i + 1],
                     "ptxas application ptx input, line 9; fatal   : Unsupported .version %d.%d\n",
                     major, minor);
    return 222;
}

API(cuModuleLoadDataEx, cuda_module *module, const void *image, unsigned count, int *options,
    void **values)
{
    static const unsigned char fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    const char *word = getenv("FAKE_FATBIN");
    int rc;

    NEEDS_CONTEXT;
    if ((rc = fake_unsafe()))
        return rc;
    if (memcmp(image, fatbin, sizeof(fatbin)))
        rc = take_ptx(image, count, options, values);
    else
        rc = word ? atoi(word) : CUDA_GOOD;
    if (rc)
        return rc;
    *module = calloc(1, sizeof(**module));
    return CUDA_GOOD;
}

API(cuModuleUnload, cuda_module module)
{
    NEEDS_CONTEXT;
    free(module);
    return CUDA_GOOD;
}

API(cuModuleGetFunction, cuda_function *function, cuda_module module, const char *name)
{
    NEEDS_CONTEXT;
    (void)module;
    *function = (cuda_function)(uintptr_t)fake_kernel_find(name);
    return *function ? CUDA_GOOD : CUDA_NOT_FOUND;
}

/* --- events --- */
API(cuEventCreate, cuda_event *event, unsigned flags)
{
    NEEDS_CONTEXT;
    (void)flags;
    *event = calloc(1, sizeof(**event));
    (*event)->users = 1;
    return CUDA_GOOD;
}

API(cuEventDestroy_v2, cuda_event event)
{
    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    event_drop(event);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

/* Outside a graph, or as a node of one; a plain record while recording only orders nodes. */
API(cuEventRecordWithFlags, cuda_event event, gpu_stream stream, unsigned flags)
{
    bool recording;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    recording = stream->recording != NULL;
    event->recorded = !recording; /* a graph's node does it when it is launched */
    event->captured = recording && flags != CUDA_EVENT_EXTERNAL;
    if (recording == (flags == CUDA_EVENT_EXTERNAL)) {
        event->users++;
        event->pending += !recording;
    }
    pthread_mutex_unlock(&lock);
    if (recording != (flags == CUDA_EVENT_EXTERNAL))
        return recording ? CUDA_GOOD : CUDA_INVALID_VALUE;
    return put(stream, (struct entry){.what = MARK, .event = event});
}

API(cuEventRecord, cuda_event event, gpu_stream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

API(cuEventQuery, cuda_event event)
{
    int pending, rc;

    NEEDS_CONTEXT;
    if ((rc = fake_unsafe()))
        return rc;
    pthread_mutex_lock(&lock);
    pending = event->pending;
    pthread_mutex_unlock(&lock);
    if (event->captured)
        return FAKE_CAPTURED_EVENT;
    return pending ? CUDA_NOT_READY : CUDA_GOOD;
}

API(cuEventElapsedTime, float *milliseconds, cuda_event from, cuda_event to)
{
    int rc = CUDA_GOOD;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    if (!from->recorded || !to->recorded)
        rc = CUDA_INVALID_HANDLE;
    else if (from->pending || to->pending)
        rc = CUDA_NOT_READY;
    else
        *milliseconds = (float)(1e3 * (to->at - from->at));
    pthread_mutex_unlock(&lock);
    return rc;
}

/* --- graphs --- */
/* Does this stream's recording forbid this thread what is unsafe?  The lock is held. */
static bool forbids(const struct CUstream_st *s)
{
    bool own = s->recording && pthread_equal(s->recorder, pthread_self());

    if (!s->recording || thread_mode == RELAXED)
        return false;
    return own ? s->mode != RELAXED : thread_mode == GLOBAL && s->mode == GLOBAL;
}

int fake_unsafe(void)
{
    int rc = CUDA_GOOD;

    pthread_mutex_lock(&lock);
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (forbids(s)) {
            s->lost = true;
            rc = FAKE_CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuThreadExchangeStreamCaptureMode, int *mode)
{
    enum mode was = thread_mode;

    if (!mode || *mode < GLOBAL || *mode > RELAXED)
        return CUDA_INVALID_VALUE;
    thread_mode = (enum mode) * mode;
    *mode = (int)was;
    return CUDA_GOOD;
}

API(cuStreamBeginCapture_v2, gpu_stream stream, int mode)
{
    NEEDS_CONTEXT;
    if (stream->recording || mode < GLOBAL || mode > RELAXED)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    stream->recording = calloc(1, sizeof(*stream->recording));
    stream->recording->users = 1;
    stream->recorder = pthread_self();
    stream->mode = mode;
    stream->lost = false;
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

/* Only the thread that began it ends it, but for one that was begun relaxed. */
API(cuStreamEndCapture, gpu_stream stream, cuda_graph *graph)
{
    int rc;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    *graph = stream->recording;
    rc = !*graph ? CUDA_INVALID_VALUE
         : stream->mode != RELAXED && !pthread_equal(stream->recorder, pthread_self())
             ? FAKE_CAPTURE_WRONG_THREAD
         : stream->lost ? FAKE_CAPTURE_INVALIDATED
                        : CUDA_GOOD;
    if (rc != FAKE_CAPTURE_WRONG_THREAD)
        stream->recording = NULL;
    if (rc == FAKE_CAPTURE_INVALIDATED)
        graph_drop(*graph);
    if (rc)
        *graph = NULL;
    pthread_mutex_unlock(&lock);
    return rc;
}

API(cuStreamIsCapturing, gpu_stream stream, int *status)
{
    NEEDS_CONTEXT;
    *status = stream->recording != NULL;
    return CUDA_GOOD;
}

API(cuGraphInstantiateWithFlags, cuda_graph_exec *exec, cuda_graph graph, unsigned long long flags)
{
    NEEDS_CONTEXT;
    if (flags)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    graph->users++;
    pthread_mutex_unlock(&lock);
    *exec = (cuda_graph_exec)graph;
    return CUDA_GOOD;
}

API(cuGraphLaunch, cuda_graph_exec exec, gpu_stream stream)
{
    struct CUgraph_st *g = (struct CUgraph_st *)exec;

    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    g->users++;
    for (struct entry *e = g->nodes.first; e; e = e->next)
        if (e->what == MARK) {
            e->event->recorded = true;
            e->event->pending++;
        }
    pthread_mutex_unlock(&lock);
    return put(stream, (struct entry){.what = GRAPH, .graph = g});
}

API(cuGraphExecDestroy, cuda_graph_exec exec)
{
    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    graph_drop((struct CUgraph_st *)exec);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}

API(cuGraphDestroy, cuda_graph graph)
{
    NEEDS_CONTEXT;
    pthread_mutex_lock(&lock);
    graph_drop(graph);
    pthread_mutex_unlock(&lock);
    return CUDA_GOOD;
}
