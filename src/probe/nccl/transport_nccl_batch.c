/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_nccl_batch.c - how a batch of samples is put into the stream and timed by events; why
 * so: transport_nccl.h. */
#include <math.h>

#include "probe/nccl/nccl_wait.h"
#include "probe/nccl/transport_nccl.h"
#include "probe/watch/watch.h"

enum { MARKS = 257, SLICE = 16, BURST_MOST = 16, GRAPH_MOST = 20 };

/* Shorter operations are timed several at once, for an event between two kernels takes about a
 * microsecond of the GPU's; before longer ones the launch into an idle stream is nothing. */
static const double burst_sec = 50e-6, lead_sec = 2e-3;

/* And a graph's launch takes several: a graph holds what lasts so long, or as many operations as
 * those of nccl-tests (-G: its 20 iterations). */
static const double graph_sec = 1e-3;

/* Nothing is slower, as long as nothing is known: large ones are waited for one by one. */
static const double slow_Bps = 25e6;

static int make_marks(struct nccl_ctx *c, int n, struct nccl_step *s)
{
    struct err err;
    int marks = n + 1 > MARKS ? n + 1 : MARKS;

    if (c->clock && c->marks > n)
        return 0;
    gpu_clock_close(c->clock);
    c->clock = NULL;
    c->marks = marks;
    if (gpu_clock_open(&c->clock, marks, &err) < 0)
        return nccl_wait_fault(c->conn, &err, s);
    return 0;
}

static int put_next(struct nccl_ctx *c, const struct nccl_job *j, int times, struct nccl_step *s)
{
    for (int i = 0; i < times; i++) {
        struct nccl_job next = *j;
        nccl_turn(c, &next);
        if (nccl_put(c, &next, s) < 0)
            return -1;
    }
    return 0;
}

/* Record operations instead of running them. */
static int capture(struct nccl_ctx *c, const struct nccl_job *j, int times,
                   struct gpu_graph **graph, struct nccl_step *s)
{
    struct err err;

    if (gpu_graph_begin(c->side.stream, &err) < 0)
        return nccl_wait_fault(c->conn, &err, s);
    int rc = put_next(c, j, times, s);
    if (gpu_graph_end(graph, c->side.stream, &err) < 0 && rc == 0)
        rc = nccl_wait_fault(c->conn, &err, s);
    return rc;
}

/* `times` operations, or the graph that holds as many. */
static int launch(struct nccl_ctx *c, const struct nccl_job *j, struct gpu_graph *graph, int times,
                  struct nccl_step *s)
{
    struct err err;

    if (!graph)
        return put_next(c, j, times, s);
    if (times && gpu_graph_launch(graph, c->side.stream, &err) < 0)
        return nccl_wait_fault(c->conn, &err, s);
    return 0;
}

static int mark(struct nccl_ctx *c, int i, struct nccl_step *s)
{
    struct err err;

    return gpu_mark(c->clock, i, c->side.stream, &err) < 0 ? nccl_wait_fault(c->conn, &err, s) : 0;
}

/* How a batch is put into the stream; the same on all members, since `last` is. */
struct shape {
    int slice; /* so many samples may be under way that the watch sees movement */
    int burst; /* operations in a sample */
    int lead;  /* operations before the first mark: the stream is idle until they are launched */
};

static int at_most(double n, int most)
{
    return n < 1 ? 1 : n > most ? most : (int)n;
}

/* Without a time of this operation the longest that it may take. */
static struct shape shape_of(const struct nccl_ctx *c, const struct nccl_job *j)
{
    bool known = c->last_op == j->op && c->last_bytes == j->bytes && c->last > 0;
    bool graph = nccl_opts_now()->graph;
    double per = known ? c->last : (double)(j->bytes + 1) / slow_Bps, patience = watch_hang_after();
    int burst = graph   ? at_most(ceil(graph_sec / per), GRAPH_MOST)
                : known ? at_most(ceil(burst_sec / per), BURST_MOST)
                        : 1;

    return (struct shape){.slice = at_most(patience / 8 / (per * burst), known ? 1000000 : SLICE),
                          .burst = burst,
                          .lead = known && per < lead_sec};
}

static int finish_slice(struct nccl_ctx *c, struct nccl_step *s)
{
    if (nccl_wait_stream(c->conn, c->side.stream, s) < 0)
        return -1;
    watch_step();
    return 0;
}

static int run_batch(struct nccl_ctx *c, const struct nccl_job *j, struct shape shape,
                     struct gpu_graph *graph, int n, double *sec, struct nccl_step *s)
{
    int rc = make_marks(c, n, s);
    struct err err;

    if (rc == 0)
        rc = launch(c, j, graph, shape.lead, s);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = mark(c, i, s);
        if (rc == 0)
            rc = launch(c, j, graph, shape.burst, s);
        if (rc == 0 && i % shape.slice == shape.slice - 1)
            rc = finish_slice(c, s);
    }
    if (rc == 0)
        rc = mark(c, n, s);
    if (rc == 0)
        rc = finish_slice(c, s);
    if (rc == 0 && gpu_clock_read(c->clock, n, sec, &err) < 0)
        rc = nccl_wait_fault(c->conn, &err, s);
    for (int i = 0; i < n && rc == 0; i++)
        sec[i] /= shape.burst;
    return rc;
}

static double mean(const double *sec, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += sec[i];
    return sum / n;
}

void nccl_batch(struct nccl_ctx *c, const struct nccl_job *j, int n, double *sec,
                struct nccl_step *s)
{
    struct shape shape = shape_of(c, j);
    struct gpu_graph *graph = NULL;

    if ((!nccl_opts_now()->graph || capture(c, j, shape.burst, &graph, s) == 0) &&
        run_batch(c, j, shape, graph, n, sec, s) == 0)
        s->sec = mean(sec, n);
    gpu_graph_free(graph);
}
