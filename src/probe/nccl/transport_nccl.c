/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_nccl.c - GPU memory through NCCL: timing; see transport_nccl.h. */
#include "probe/nccl/transport_nccl.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "probe/mpi/world_mpi.h"
#include "probe/nccl/nccl_guard.h"
#include "probe/nccl/nccl_readback.h"
#include "probe/nccl/nccl_wait.h"
#include "probe/transport.h"
#include "probe/watch/watch.h"

extern const struct transport transport_nccl;

static int call_all(const struct nccl_side *side, const struct nccl_job *j)
{
    int code = NCCL_SUCCESS;

    for (int i = 0; i < 2 && nccl_ops[j->op].call[i] && code == NCCL_SUCCESS; i++)
        code = nccl_ops[j->op].call[i](side, j);
    return code;
}

int nccl_put(struct nccl_ctx *c, const struct nccl_job *j, struct nccl_step *s)
{
    int code = call_all(&c->side, j);

    if (code != NCCL_SUCCESS)
        return nccl_wait_failed(c->conn, code, s);
    watch_step(); /* who does not come back from a call stays behind */
    return 0;
}

void nccl_turn(struct nccl_ctx *c, struct nccl_job *j)
{
    if (!nccl_opts_now()->same_buffer)
        nccl_job_turn(j, &c->side, c->turn++);
}

/* The same, guarded. */
struct first {
    struct nccl_side side;
    struct nccl_job job;
};

static int call_first(void *arg)
{
    const struct first *f = arg;

    return call_all(&f->side, &f->job);
}

static nccl_comm first_late(void *arg)
{
    return ((struct first *)arg)->side.comm;
}

static int put_first(struct nccl_ctx *c, const struct nccl_job *j, struct nccl_step *s)
{
    struct first f = {c->side, *j};
    const struct nccl_call call = {"the first operation", call_first, &f, sizeof(f), first_late};

    if (nccl_guard(c->conn, &call, nccl_wait_limit(), s) < 0)
        return -1;
    watch_step();
    return 0;
}

/* Buffers and stream that a call was given which did not come back must stay. */
static void lose(struct nccl_ctx *c, const struct err *why)
{
    c->inside |= c->conn->inside;
    nccl_conn_lose(c->conn, why);
    c->conn = NULL;
    c->turn = 0; /* how far each came may differ now */
}

int nccl_together(struct nccl_ctx *c, const struct nccl_job *j, struct nccl_step *s,
                  double *longest, int *slowest, struct err *err)
{
    if (nccl_conn_agree(c->conn, s, longest, slowest, err) == 0)
        return 0;
    if (s->blame == NCCL_REFUSED)
        nccl_conn_deny(c->conn, j->op, err);
    lose(c, s->blame == NCCL_REFUSED ? NULL : err);
    return -1;
}

/* The first operation connects the peers: it is timed apart, and not by the GPU. */
static int connect_peers(struct nccl_ctx *c, const struct nccl_job *j, struct err *err)
{
    struct nccl_step s = {.blame = NCCL_FINE};
    double from = log_now(), longest;
    int slowest;

    if (c->conn->worked)
        return 0;
    watch_expect(0.05 * c->side.size + (double)j->bytes / 25e6); /* a peer takes milliseconds */
    if (put_first(c, j, &s) == 0)
        nccl_wait_stream(c->conn, c->side.stream, &s);
    s.sec = log_now() - from;
    if (nccl_together(c, j, &s, &longest, &slowest, err) < 0)
        return -1;
    nccl_conn_first(c->conn, j->op, j->bytes, longest, slowest);
    return 0;
}

static int timed(struct nccl_ctx *c, const struct nccl_job *j, int n, double *sec, struct err *err)
{
    struct nccl_step s = {.blame = NCCL_FINE};
    double longest;

    nccl_batch(c, j, n, sec, &s);
    if (nccl_together(c, j, &s, &longest, NULL, err) < 0)
        return -1;
    c->last_op = j->op;
    c->last_bytes = j->bytes;
    c->last = longest;
    for (int i = 0; i < n; i++)
        sec[i] /= nccl_ops[j->op].messages;
    return 0;
}

/* Of a pair the source's times count. */
static int repeat_first(struct nccl_ctx *c, int n, double *sec, struct err *err)
{
    double *both = mem_calloc(2 * (size_t)n, sizeof(*both));
    int rc = world_mpi_trade(c->conn->shared, sec, (size_t)n * sizeof(*sec), both, err);

    memcpy(sec, both, (size_t)n * sizeof(*sec));
    free(both);
    return rc;
}

static int connect_ctx(struct nccl_ctx *c, const struct group *g, struct err *err)
{
    struct nccl_step s = {.blame = NCCL_FINE};

    if (nccl_conn_get(&c->conn, g, err) < 0)
        return -1;
    c->side.comm = c->conn->comm;
    nccl_readback_mark(c->side.comm);
    if (nccl_opts_now()->registration == NCCL_REG_NONE)
        return 0;
    nccl_memory_register(c, &s);
    if (nccl_conn_agree(c->conn, &s, NULL, NULL, err) == 0)
        return 0;
    lose(c, err);
    return -1;
}

/* What was refused is refused again; a communicator that was lost with it is made anew.  One that
 * died is not: nccl_conn_get() gives the reason.  The same on all members. */
static int usable(struct nccl_ctx *c, enum op op, struct err *err)
{
    const struct nccl_side *s = &c->side;
    struct group g = {.members = s->member, .size = s->size, .self = s->self, .comm = c->shared};
    const struct err *why = nccl_conn_denied(s->member, s->size, (int)op);

    if (why)
        return err_code(err, why->code, "%s", why->text);
    return c->conn ? 0 : connect_ctx(c, &g, err);
}

static int nccl_run(void *ctx, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct nccl_ctx *c = ctx;
    struct nccl_job j;

    if (nccl_job_make(&j, &c->side, op, bytes, err) < 0 || usable(c, op, err) < 0)
        return -1;
    nccl_readback_mark(c->side.comm);
    j.stride = 0; /* as transport_mpi.c: the messages of a window share one buffer */
    watch_enter("%s of %zu bytes on %d ranks", op_name(op), bytes, c->side.size);
    int rc = connect_peers(c, &j, err);
    if (rc == 0)
        rc = timed(c, &j, n, sec, err);
    watch_leave();
    return rc == 0 && op_is_pair(op) ? repeat_first(c, n, sec, err) : rc;
}

/* --- opening --- */

static void nccl_close(void *ctx)
{
    struct nccl_ctx *c = ctx;
    struct err err;

    if (!c)
        return;
    /* What the GPU still works on must not be taken from under it, and freeing waits for it. */
    bool quiet = !c->inside && nccl_wait_gpu(c->side.member[c->side.self], &err) == 0 &&
                 (!c->side.stream || gpu_done(c->side.stream, &err) == 1);
    nccl_memory_drop(c, quiet);
    gpu_clock_close(c->clock);
    if (quiet)
        gpu_stream_close(c->side.stream);
    free((void *)c->side.member);
    free(c);
}

static void fill_side(struct nccl_side *s, const struct group *g, size_t max_bytes)
{
    const struct nccl_opts *o = nccl_opts_now();
    int *member = mem_calloc((size_t)g->size, sizeof(*member));

    memcpy(member, g->members, sizeof(*member) * (size_t)g->size);
    *s = (struct nccl_side){.self = g->self,
                            .size = g->size,
                            .member = member,
                            .capacity = max_bytes,
                            .dtype = o->dtype,
                            .sum_dtype = o->dtype_given ? o->dtype : NCCL_UINT32,
                            .redop = o->redop,
                            .in_place = o->in_place};
    s->room = nccl_job_room(s, max_bytes);
}

static int prepare(struct nccl_ctx *c, struct err *err)
{
    int me = c->side.member[c->side.self];

    if (nccl_wait_gpu(me, err) < 0)
        return -1;
    if (gpu_stream_open(&c->side.stream, err) < 0 || nccl_memory_take(c, err) < 0)
        return err_wrap(err, "%s", nccl_conn_who(me));
    return 0;
}

static int nccl_open(void **ctx, const struct group *g, size_t max_bytes, struct err *err)
{
    struct nccl_ctx *c = mem_calloc(1, sizeof(*c));

    c->shared = g->comm;
    fill_side(&c->side, g, max_bytes);
    host_self(c->host, sizeof(c->host));
    if (world_mpi_together(g->comm, prepare(c, err), err) < 0 || connect_ctx(c, g, err) < 0) {
        nccl_close(c);
        return -1;
    }
    *ctx = c;
    return 0;
}

const struct transport transport_nccl = {
    .name = "nccl",
    .help = "GPU memory through NCCL (NVLink, PCIe, InfiniBand, sockets: as NCCL or --path says)",
    .stream = true,
    .threads = true,
    .open = nccl_open,
    .run = nccl_run,
    .check = nccl_check,
    .close = nccl_close,
};
