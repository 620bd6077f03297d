/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "kernels/cuda_api.h"
#include "kernels/gpu.h"
#include "kernels/gpu_own.h"

int gpu_stream_open(gpu_stream *out, struct err *err)
{
    int rc = cuda.StreamCreateWithPriority(out, CUDA_STREAM_NON_BLOCKING, 0);

    if (rc == CUDA_GOOD)
        return 0;
    *out = NULL;
    return cuda_error(err, rc, "stream");
}

void gpu_stream_close(gpu_stream s)
{
    if (s)
        cuda.StreamDestroy(s);
}

int gpu_done(gpu_stream s, struct err *err)
{
    int rc = cuda.StreamQuery(s);

    if (rc == CUDA_NOT_READY)
        return 0;
    return rc == CUDA_GOOD ? 1 : cuda_error(err, rc, "GPU %s", gpu_own.facts.busid);
}

/* Looks follow each other closely for a millisecond, which no measured operation of interest
 * outlasts by much, and then leave the core to others: 50 us are 5 % of what was waited. */
int gpu_wait(gpu_stream s, struct err *err)
{
    struct timespec nap = {0, 50000};
    double start = log_now();
    int done;

    while ((done = gpu_done(s, err)) == 0)
        if (log_now() - start > 1e-3)
            nanosleep(&nap, NULL);
    return done < 0 ? -1 : 0;
}

struct gpu_clock {
    int marks;
    cuda_event event[];
};

int gpu_clock_open(struct gpu_clock **out, int marks, struct err *err)
{
    struct gpu_clock *c;
    int rc;

    *out = NULL;
    if (marks < 2)
        return err_io(err, "a clock of %d events measures nothing", marks);
    c = mem_calloc(1, sizeof(*c) + (size_t)marks * sizeof(*c->event));
    for (; c->marks < marks; c->marks++) {
        rc = cuda.EventCreate(&c->event[c->marks], 0);
        if (rc) {
            gpu_clock_close(c);
            return cuda_error(err, rc, "event");
        }
    }
    *out = c;
    return 0;
}

void gpu_clock_close(struct gpu_clock *c)
{
    for (int i = 0; c && i < c->marks; i++)
        cuda.EventDestroy(c->event[i]);
    free(c);
}

/* Inside a graph a mark is a node of its own, so that every launch of the graph sets it anew; a
 * plain record would only order the nodes and never be done. */
int gpu_mark(struct gpu_clock *c, int i, gpu_stream s, struct err *err)
{
    unsigned flags = s && s == gpu_own.recording ? CUDA_EVENT_EXTERNAL : 0;
    int rc;

    if (i < 0 || i >= c->marks)
        return err_io(err, "mark %d of a clock of %d", i, c->marks);
    rc = cuda.EventRecordWithFlags(c->event[i], s, flags);
    return rc ? cuda_error(err, rc, "event") : 0;
}

int gpu_clock_read(struct gpu_clock *c, int n, double *sec, struct err *err)
{
    float ms;
    int rc;

    if (n < 1 || n >= c->marks)
        return err_io(err, "%d intervals of a clock of %d events", n, c->marks);
    for (int i = 0; i < n; i++) {
        rc = cuda.EventElapsedTime(&ms, c->event[i], c->event[i + 1]);
        if (rc)
            return cuda_error(err, rc, "time between events");
        sec[i] = 1e-3 * (double)ms;
    }
    return 0;
}

struct gpu_graph {
    cuda_graph graph;
    cuda_graph_exec exec;
};

/* NCCL's and other threads may allocate meanwhile: only this thread is kept from calls that cannot
 * be recorded. */
int gpu_graph_begin(gpu_stream s, struct err *err)
{
    int rc;

    if (gpu_own.recording)
        return err_io(err, "a graph is being recorded already");
    rc = cuda.StreamBeginCapture(s, CUDA_CAPTURE_THREAD_LOCAL);
    if (rc)
        return cuda_error(err, rc, "recording a graph");
    gpu_own.recording = s;
    return 0;
}

int gpu_graph_end(struct gpu_graph **out, gpu_stream s, struct err *err)
{
    struct gpu_graph g = {0};
    int rc;

    *out = NULL;
    gpu_own.recording = NULL;
    rc = cuda.StreamEndCapture(s, &g.graph);
    if (rc || !g.graph)
        return cuda_error(err, rc ? rc : CUDA_UNKNOWN, "end of a recorded graph");
    rc = cuda.GraphInstantiateWithFlags(&g.exec, g.graph, 0);
    if (rc) {
        cuda.GraphDestroy(g.graph);
        return cuda_error(err, rc, "instance of a graph");
    }
    *out = mem_calloc(1, sizeof(g));
    **out = g;
    return 0;
}

int gpu_graph_launch(struct gpu_graph *g, gpu_stream s, struct err *err)
{
    int rc = cuda.GraphLaunch(g->exec, s);

    return rc ? cuda_error(err, rc, "launch of a graph") : 0;
}

void gpu_graph_free(struct gpu_graph *g)
{
    if (!g)
        return;
    cuda.GraphExecDestroy(g->exec);
    cuda.GraphDestroy(g->graph);
    free(g);
}

int gpu_copy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err)
{
    int rc = bytes ? cuda.MemcpyAsync(gpu_ptr(to), gpu_ptr(from), bytes, s) : CUDA_GOOD;

    return rc ? cuda_error(err, rc, "copy of %zu bytes", bytes) : 0;
}

int gpu_set(void *at, unsigned char value, size_t bytes, gpu_stream s, struct err *err)
{
    int rc = bytes ? cuda.MemsetD8Async(gpu_ptr(at), value, bytes, s) : CUDA_GOOD;

    return rc ? cuda_error(err, rc, "fill of %zu bytes", bytes) : 0;
}
