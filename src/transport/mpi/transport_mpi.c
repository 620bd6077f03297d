/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_mpi.c - host memory through MPI, over the path that MPI chose: shared memory, TCP,
 * InfiniBand.
 *
 * Timing.  One MPI_Wtime per sample and nothing else between two samples, as in a loop written
 * directly against the API.  Collectives run back to back: most complete on no rank before every
 * rank has begun, so no rank runs ahead.  Broadcast and reduce are different: see time_rooted().
 * Pair ops are timed by members[0], and members[1] copies the times.  A pair operation below 2 us
 * is repeated until the sample lasts 4 us, because the clock costs some 30 ns; such a sample is the
 * mean of up to INNER_MAX operations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/nccl_api.h"
#include "measure/plan.h"
#include "measure/point.h"
#include "measure/transports/transport.h"
#include "measure/verify.h"
#include "transport/mpi/mpi_ops.h"
#include "transport/mpi/mpi_readback.h"
#include "transport/mpi/world_mpi.h"
#include "watch/watch.h"

extern const struct transport_calls transport_mpi;

enum { INNER_BYTES = 64 << 10, INNER_TRIES = 8, INNER_MAX = 64, WINDOW_ROOM = 64 << 20 };

/* Time broadcast or reduce.  A barrier before each keeps the root (reduce: the others) from running
 * ahead.  A receiver that leaves the barrier late finds its data already there, so its own time is
 * too short.  Therefore every rank counts from the root's start on the members' common clock, and
 * the slowest time is that from the first byte sent to the last byte received. */
static int time_rooted(struct mpi_ctx *c, const struct mpi_job *j, int n, double *sec)
{
    double *start = mem_calloc((size_t)n, sizeof(*start));
    int code = MPI_SUCCESS;

    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        watch_step();
        code = MPI_Barrier(c->comm);
        start[i] = world_mpi_clock(c->shared);
        if (code == MPI_SUCCESS)
            code = mpi_ops[j->op](c, j);
        sec[i] = world_mpi_clock(c->shared);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Bcast(start, n, MPI_DOUBLE, 0, c->comm);
    for (int i = 0; i < n; i++)
        sec[i] = fmax(sec[i] - start[i], 1e-9); /* clocks of two hosts agree to half a round trip */
    free(start);
    return code;
}

static int time_collective(struct mpi_ctx *c, const struct mpi_job *j, int n, double *sec)
{
    mpi_call *const once = mpi_ops[j->op];
    double from = MPI_Wtime(), to;
    int code = MPI_SUCCESS;

    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        watch_step();
        code = once(c, j);
        to = MPI_Wtime();
        sec[i] = to - from;
        from = to;
    }
    return code;
}

/* Set c->inner: the shortest of a few runs decides how many fit into a sample. */
static int find_inner(struct mpi_ctx *c, const struct mpi_job *j)
{
    double best = INFINITY, from, took;
    int code = MPI_SUCCESS;

    if (c->inner && c->inner_op == j->op && c->inner_bytes == j->bytes)
        return MPI_SUCCESS;
    c->inner_op = j->op;
    c->inner_bytes = j->bytes;
    c->inner = 1;
    if (j->bytes > INNER_BYTES)
        return MPI_SUCCESS;
    for (int i = 0; i < INNER_TRIES && code == MPI_SUCCESS; i++) {
        from = MPI_Wtime();
        code = mpi_ops[j->op](c, j);
        took = MPI_Wtime() - from;
        best = took < best ? took : best;
    }
    if (best < 2e-6)
        c->inner = best > 4e-6 / INNER_MAX ? (int)ceil(4e-6 / best) : INNER_MAX;
    return code == MPI_SUCCESS ? MPI_Bcast(&c->inner, 1, MPI_INT, 0, c->comm) : code;
}

static int time_pair(struct mpi_ctx *c, const struct mpi_job *j, int n, double *sec)
{
    mpi_call *const once = mpi_ops[j->op];
    int code = find_inner(c, j), inner = c->inner;
    double share = 1.0 / ((double)inner * j->messages), from, to;

    /* Start both together; otherwise the first sample would include the delay of the other. */
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(c->comm);
    from = MPI_Wtime();
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        watch_step();
        for (int k = 0; k < inner && code == MPI_SUCCESS; k++)
            code = once(c, j);
        to = MPI_Wtime();
        sec[i] = (to - from) * share;
        from = to;
    }
    return code == MPI_SUCCESS ? MPI_Bcast(sec, n, MPI_DOUBLE, 0, c->comm) : code;
}

static int mpi_run(void *ctx, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct mpi_ctx *c = ctx;
    struct mpi_job j;
    char what[160];

    if (mpi_job_make(&j, c, op, bytes, err))
        return -1;
    /* As in osu_bw, the messages of a window share one buffer while the clock runs.  The result is
     * the path between two buffers of this size, independent of how many fit into a cache (10 %
     * here). */
    j.stride = 0;
    watch_call(op_name(op)); /* once, because between two samples there is only the clock */
    int code = (op_is_pair(op)     ? time_pair
                : op_is_rooted(op) ? time_rooted
                                   : time_collective)(c, &j, n, sec);

    watch_call(NULL);
    mpi_job_free(&j);
    snprintf(what, sizeof(what), "%s of %zu bytes: rank %d (host %s)", op_name(op), bytes,
             c->member[c->self], c->host);
    return world_mpi_error(code, what, err);
}

static void fill(struct mpi_ctx *c, const struct verify_moved *m, unsigned seed)
{
    int n;
    struct verify_piece *p = verify_sent(m, &n);

    for (int i = 0; i < n; i++)
        verify_fill_piece(c->send + p[i].at, &p[i], seed);
    free(p);
}

static int find(const struct mpi_ctx *c, const struct verify_moved *m, const struct verify *v,
                struct err *err)
{
    int n, rc = 0;
    struct verify_piece *p = verify_received(m, &n);

    if (n)
        rc = verify_flip(v, c->recv, p[n - 1].at + p[n - 1].len, err);
    for (int i = 0; i < n && rc == 0; i++)
        rc = verify_find_piece(v, c->recv, &p[i], err);
    free(p);
    return rc;
}

/* Data to fill in and data that must arrive. */
static struct verify_moved job_moves(const struct mpi_ctx *c, const struct mpi_job *j)
{
    struct verify_moved m = verify_moves(j->op, c->member, c->size, c->self, j->block);

    if (m.flow == FLOW_SCATTER)
        m.slice = j->slice;
    m.stride = j->stride;
    m.slots = j->slots;
    return m;
}

static int mpi_check(void *ctx, enum op op, size_t bytes, struct err *err)
{
    struct mpi_ctx *c = ctx;
    struct verify v = {op, bytes, c->member[c->self], c->host, ++c->checks};
    struct mpi_job j;

    if (mpi_job_make(&j, c, op, bytes, err)) /* the same result on all members */
        return -1;
    struct verify_moved m = job_moves(c, &j);
    fill(c, &m, v.seed);
    watch_call(op_name(op));
    int rc = world_mpi_error(mpi_ops[op](c, &j), op_name(op), err);

    watch_call(NULL);
    if (!rc)
        rc = find(c, &m, &v, err);
    mpi_job_free(&j);
    return world_mpi_together(&c->comm, rc, err);
}

/* Bytes that the kernel can provide without swapping; a huge number if unknown. */
static double memory_available(void)
{
    char line[128];
    unsigned long long kib;
    double bytes = 1e18;
    FILE *f = fopen("/proc/meminfo", "r");

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %19llu kB", &kib) == 1)
            bytes = 1024.0 * (double)kib;
    if (f)
        fclose(f);
    return bytes;
}

/* Number of group members on this host.  The call synchronises the group, so no member allocates
 * memory before all have read how much is free. */
static int count_neighbours(struct mpi_ctx *c)
{
    enum { LEN = sizeof(c->host) };
    char *names = mem_calloc((size_t)c->size, LEN);
    int n = 0;

    if (MPI_Allgather(c->host, LEN, MPI_CHAR, names, LEN, MPI_CHAR, c->comm) == MPI_SUCCESS)
        for (size_t i = 0; i < (size_t)c->size; i++)
            n += !strncmp(names + i * LEN, c->host, LEN);
    free(names);
    return n;
}

/* Buffer size for messages of up to `bytes`, with separate slots for a window unless that is too
 * much. */
static size_t room_for(const struct mpi_ctx *c, size_t bytes)
{
    size_t room = bytes + 4 * (size_t)c->size; /* reductions round blocks up */
    size_t small = bytes < MPI_SMALL ? bytes : MPI_SMALL - 1;
    size_t most[] = {small * (size_t)mpi_opts_window(&c->how, small),
                     bytes * (size_t)mpi_opts_window(&c->how, bytes)};

    for (int i = 0; i < 2 && c->size == 2; i++)
        if (most[i] > room && most[i] <= WINDOW_ROOM)
            room = most[i];
    return room;
}

/* Buffers of the previous group, kept if they are not large: groups of pairs follow each other by
 * the hundred, and fresh pages cost more time than the messages of a quick matrix. */
static struct {
    unsigned char *send, *recv;
    size_t room;
} spare;

static bool take_spare(struct mpi_ctx *c)
{
    bool fits = spare.room >= c->room;

    if (fits) {
        c->send = spare.send;
        c->recv = spare.recv;
        c->room = spare.room;
    } else {
        free(spare.send);
        free(spare.recv);
    }
    memset(&spare, 0, sizeof(spare));
    return fits;
}

static void keep_spare(struct mpi_ctx *c)
{
    if (!c->send || !c->recv || c->room > WINDOW_ROOM)
        return;
    free(spare.send);
    free(spare.recv);
    spare.send = c->send;
    spare.recv = c->recv;
    spare.room = c->room;
    c->send = c->recv = NULL;
}

/* Linux overcommits memory and kills processes that touch it.  Therefore check first, then touch
 * every page, so that no page fault is measured later. */
static int take_buffers(struct mpi_ctx *c, size_t bytes, struct err *err)
{
    char need[UNITS_TEXT], left[UNITS_TEXT];
    void *send = NULL, *recv = NULL;

    c->capacity = bytes;
    c->room = room_for(c, bytes);
    const bool spares = take_spare(c);
    double have = spares ? INFINITY : memory_available();
    int sharers = count_neighbours(c), me = c->member[c->self];
    units_bytes_text(need, (double)c->room);
    if (spares)
        return 0;
    if (2.0 * (double)c->room * sharers > have)
        return err_io(err, "rank %d (host %s): two buffers of %s for %d ranks here, but %s is free",
                      me, c->host, need, sharers, units_bytes_text(left, have));
    if (posix_memalign(&send, 4096, c->room) == 0)
        c->send = send;
    if (posix_memalign(&recv, 4096, c->room) == 0)
        c->recv = recv;
    if (!c->send || !c->recv)
        return err_io(err, "rank %d (host %s): cannot allocate two buffers of %s", me, c->host,
                      need);
    memset(c->send, 0, c->room);
    memset(c->recv, 0, c->room);
    return 0;
}

static void mpi_close(void *ctx)
{
    struct mpi_ctx *c = ctx;

    if (!c)
        return;
    keep_spare(c);
    free(c->send);
    free(c->recv);
    free(c->member);
    free(c);
}

static int mpi_open(void **ctx, const struct group *g, size_t max_bytes, struct err *err)
{
    struct mpi_ctx *c = mem_calloc(1, sizeof(*c));

    c->comm = *(MPI_Comm *)g->comm;
    c->shared = g->comm;
    c->how = mpi_opts_asked;
    c->self = g->self;
    c->size = g->size;
    c->member = mem_dup(g->members, (size_t)g->size, sizeof(*c->member));
    c->checks = g->round ? (unsigned)g->round->id << 8
                         : 0; /* different from the pattern of the previous check */
    host_self(c->host, sizeof(c->host));
    if (world_mpi_together(&c->comm, take_buffers(c, max_bytes, err), err)) {
        mpi_close(c);
        return -1;
    }
    *ctx = c;
    return 0;
}

/* Record the options in the provenance of every file written from now on. */
static void note_opts(const struct mpi_opts *o)
{
    char *window = o->window ? mem_printf("%d messages", o->window)
                             : mem_printf("%d messages below %d bytes, else %d", MPI_SMALL_WINDOW,
                                          MPI_SMALL, OP_PAIR_WINDOW);

    json_provenance_add("pair_window", window);
    json_provenance_add("reduce_scatter",
                        o->scatter_by_block ? "MPI_Reduce_scatter_block" : "MPI_Reduce_scatter");
    free(window);
}

static int mpi_start(const struct probe_args *a, struct world *w, struct err *err)
{
    (void)a, (void)w, (void)err;
    note_opts(&mpi_opts_asked);
    return 0;
}

static int mpi_learn(const struct probe_args *a, struct world *w, struct topo *t,
                     const struct points *p, struct err *err)
{
    (void)a;
    (void)p;
    return mpi_readback_learn(w, t, err);
}

/* Sums of uint32, which are exact in any order (verify.h); MPI knows no bfloat16 before MPI 5. */
static void mpi_kind(struct point *p)
{
    p->dtype = 1 + (op_adds(p->op) ? NCCL_UINT32 : NCCL_UINT8);
    p->redop = op_adds(p->op) ? 1 + NCCL_SUM : 0;
    p->registration = 1;
}

const struct transport_calls transport_mpi = {
    .kind = mpi_kind,
    .start = mpi_start,
    .open = mpi_open,
    .run = mpi_run,
    .check = mpi_check,
    .close = mpi_close,
    .learn = mpi_learn,
};
