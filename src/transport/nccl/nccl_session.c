/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_session_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "measure/transports/nccl_opts.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_readback.h"
#include "transport/nccl/nccl_wait.h"
#include "watch/watch.h"

/* --- the two buffers, and their registration --- */

/* Allocate from the library: memory for NVLink SHARP, windows and user-buffer registration. */
static int take_library(struct nccl_session *c, int side, struct err *err)
{
    void *at = NULL;
    int code = nccl.MemAlloc(&at, c->side.room);

    if (code != NCCL_SUCCESS)
        return err_io(err, "ncclMemAlloc of %zu bytes: %s", c->side.room,
                      nccl.GetErrorString(code));
    c->buffer[side] = (struct gpu_buffer){.at = at, .bytes = c->side.room, .kind = GPU_PLAIN};
    c->library[side] = true;
    return 0;
}

static int take_memory(struct nccl_session *c, struct err *err)
{
    char need[UNITS_TEXT];

    for (int i = 0; i < NCCL_SIDES; i++) {
        int rc = nccl_opts_now()->mem_alloc
                     ? take_library(c, i, err)
                     : gpu_alloc(&c->buffer[i], GPU_PLAIN, c->side.room, err);
        if (rc < 0)
            return err_wrap(err, "a buffer of %s", units_bytes_text(need, (double)c->side.room));
        /* Touch every page now, so that none is touched first while the clock runs. */
        if (gpu_memset(c->buffer[i].at, 0, c->side.room, c->side.stream, err) < 0)
            return -1;
    }
    c->side.send = c->buffer[NCCL_SEND].at;
    c->side.recv = c->buffer[NCCL_RECV].at;
    return nccl_wait_alone(c->side.stream, NCCL_SIDES * (double)c->side.room / 50e6, err);
}

/* Arguments of registering and deregistering buffers. */
struct nccl_registration {
    nccl_comm comm;
    bool symmetric;
    void *at[NCCL_SIDES], *handle[NCCL_SIDES];
    size_t room;
    nccl_window window[NCCL_SIDES];
};

static struct nccl_registration registration_of(const struct nccl_session *c)
{
    struct nccl_registration t = {.comm = c->side.comm,
                                  .symmetric = nccl_opts_now()->registration == NCCL_REG_SYMMETRIC,
                                  .room = c->side.room};

    for (int i = 0; i < NCCL_SIDES; i++) {
        t.at[i] = c->buffer[i].at;
        t.handle[i] = c->handle[i];
        t.window[i] = c->window[i];
    }
    return t;
}

static int register_all(void *arg)
{
    struct nccl_registration *t = arg;
    int code = NCCL_SUCCESS;

    for (int i = 0; i < NCCL_SIDES && code == NCCL_SUCCESS; i++)
        code = t->symmetric ? nccl.CommWindowRegister(t->comm, t->at[i], t->room, &t->window[i], 1)
                            : nccl.CommRegister(t->comm, t->at[i], t->room, &t->handle[i]);
    return code;
}

static int deregister_all(void *arg)
{
    const struct nccl_registration *t = arg;

    for (int i = 0; i < NCCL_SIDES; i++) {
        if (t->handle[i])
            nccl.CommDeregister(t->comm, t->handle[i]);
        if (t->window[i])
            nccl.CommWindowDeregister(t->comm, t->window[i]);
    }
    return NCCL_SUCCESS;
}

static nccl_comm registration_late(void *arg)
{
    return ((struct nccl_registration *)arg)->comm;
}

/* ncclSuccess without a handle (2.28: src/register/register.cc, src/dev_runtime.cc) means that NCCL
 * does not use the option: warn. */
static void tell_unregistered(const struct nccl_registration *t)
{
    static bool told;

    for (int i = 0; i < NCCL_SIDES && !told; i++) {
        told = t->symmetric ? !t->window[i] : !t->handle[i];
        if (told)
            log_warn("NCCL registered no memory: %s here, and what follows is measured without it",
                     t->symmetric ? "it has neither symmetric windows nor NCCL_LOCAL_REGISTER"
                                  : "ncclCommRegister is switched off (NCCL_LOCAL_REGISTER)");
    }
}

static int register_memory(struct nccl_session *c, struct nccl_step *s)
{
    struct nccl_registration t = registration_of(c);
    const struct nccl_call call = {"registering memory", register_all, &t, sizeof(t),
                                   registration_late};

    if (t.symmetric && !nccl.CommWindowRegister) {
        err_config(&s->err, "NCCL before 2.27 has no windows (--register symmetric)");
        return nccl_wait_fault(c->conn, s);
    }
    if (nccl_wait_call(c->conn, &call, nccl_wait_limit(), s) < 0)
        return -1;
    tell_unregistered(&t);
    memcpy(c->handle, t.handle, sizeof(t.handle));
    memcpy(c->window, t.window, sizeof(t.window));
    return 0;
}

/* A lost communicator has dropped its registrations.  False: the memory must stay. */
static bool deregister(struct nccl_session *c)
{
    struct nccl_registration t = registration_of(c);
    const struct nccl_call call = {"deregistering memory", deregister_all, &t, sizeof(t),
                                   registration_late};
    struct nccl_step s = {.blame = NCCL_FINE};

    if (!c->conn || nccl_opts_now()->registration == NCCL_REG_NONE)
        return true;
    if (nccl_wait_call(c->conn, &call, nccl_wait_limit(), &s) == 0 || !c->conn->inside)
        return true;
    nccl_conn_lose(c->conn, NULL);
    return false;
}

static void drop_memory(struct nccl_session *c, bool usable)
{
    if (!usable || !deregister(c))
        return;
    for (int i = 0; i < NCCL_SIDES; i++) {
        if (c->library[i])
            nccl.MemFree(c->buffer[i].at);
        else
            gpu_free(&c->buffer[i]);
    }
}

/* --- the communicator --- */

/* If a call that got buffers and stream did not return, both must stay. */
static void lose(struct nccl_session *c, const struct err *why)
{
    c->inside |= c->conn->inside;
    c->on_shared = false; /* the next communicator is the pair's own */
    nccl_conn_lose(c->conn, why);
    c->conn = NULL;
    c->turn = 0; /* the progress of the members may differ now */
}

int nccl_session_agree(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s,
                       double *longest, int *slowest, struct err *err)
{
    if (nccl_conn_agree(c->conn, s, longest, slowest, err) == 0)
        return 0;
    if (s->blame == NCCL_REFUSED)
        nccl_conn_deny(c->conn, j->op, err);
    lose(c, s->blame == NCCL_REFUSED ? NULL : err);
    return -1;
}

static int get_conn(struct nccl_session *c, const struct group *g, struct err *err)
{
    struct nccl_step s = {.blame = NCCL_FINE};

    if (nccl_conn_get(&c->conn, g, c->on_shared, err) < 0)
        return -1;
    c->side.comm = c->conn->comm;
    c->side.by_id = c->conn->way == NCCL_SHARED;
    nccl_readback_mark(c->side.comm);
    if (nccl_opts_now()->registration == NCCL_REG_NONE)
        return 0;
    register_memory(c, &s);
    if (nccl_conn_agree(c->conn, &s, NULL, NULL, err) == 0)
        return 0;
    lose(c, err);
    return -1;
}

int nccl_session_ready(struct nccl_session *c, enum op op, struct err *err)
{
    const struct nccl_side *s = &c->side;
    struct group g = {.members = s->member, .size = s->size, .self = s->self, .comm = c->shared};
    const struct err *why = nccl_conn_denied(s->member, s->size, (int)op);

    if (why)
        return err_code(err, why->code, "%s", why->text);
    if (c->conn && c->conn->way == NCCL_SHARED && (!op_is_pair(op) || !c->conn->comm)) {
        /* another operation of this pair, or the communicator of all ranks was lost */
        c->on_shared = false;
        c->conn = NULL;
    }
    return c->conn ? 0 : get_conn(c, &g, err);
}

/* --- operations --- */

void nccl_session_turn(struct nccl_session *c, struct nccl_job *j)
{
    if (!nccl_opts_now()->same_buffer)
        nccl_job_turn(j, &c->side, c->turn++);
}

int nccl_session_enqueue(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s)
{
    int code = nccl_job_enqueue(&c->side, j);

    if (code != NCCL_SUCCESS)
        return nccl_wait_failed(c->conn, code, s);
    watch_step(); /* the watch reports a member that does not return */
    return 0;
}

/* Arguments of the first operation, which runs in a thread. */
struct nccl_first {
    struct nccl_side side;
    struct nccl_job job;
};

static int call_first(void *arg)
{
    const struct nccl_first *f = arg;

    return nccl_job_enqueue(&f->side, &f->job);
}

static nccl_comm first_late(void *arg)
{
    return ((struct nccl_first *)arg)->side.comm;
}

static int put_first(struct nccl_session *c, const struct nccl_job *j, struct nccl_step *s)
{
    struct nccl_first f = {c->side, *j};
    const struct nccl_call call = {"the first operation", call_first, &f, sizeof(f), first_late};

    if (nccl_wait_call(c->conn, &call, nccl_wait_limit(), s) < 0)
        return -1;
    watch_step();
    return 0;
}

int nccl_session_first(struct nccl_session *c, const struct nccl_job *j, struct err *err)
{
    struct nccl_step s = {.blame = NCCL_FINE};
    double from = log_now(), longest;
    int slowest;

    if (c->conn->worked)
        return 0;
    /* connecting a peer takes milliseconds */
    watch_expect((double)j->bytes / 25e6, 0.05 * c->side.size);
    if (put_first(c, j, &s) == 0)
        nccl_wait_stream(c->conn, c->side.stream, &s);
    s.sec = log_now() - from;
    if (nccl_session_agree(c, j, &s, &longest, &slowest, err) < 0)
        return -1;
    nccl_conn_first(c->conn, j->op, j->bytes, longest, slowest);
    return 0;
}

/* --- opening --- */

void nccl_session_close(struct nccl_session *c)
{
    struct err err;

    if (!c)
        return;
    /* Memory in use by the GPU must not be freed, and freeing would wait for it. */
    bool quiet = !c->inside && nccl_wait_gpu(c->side.member[c->side.self], &err) == 0 &&
                 (!c->side.stream || gpu_stream_done(c->side.stream, &err) == 1);
    drop_memory(c, quiet);
    gpu_clock_close(c->clock);
    if (quiet)
        gpu_stream_close(c->side.stream);
    free((void *)c->side.member);
    free(c);
}

static void fill_side(struct nccl_side *s, const struct group *g, size_t max_bytes)
{
    const struct nccl_opts *o = nccl_opts_now();

    *s = (struct nccl_side){.self = g->self,
                            .size = g->size,
                            .member = mem_dup(g->members, (size_t)g->size, sizeof(*g->members)),
                            .capacity = max_bytes,
                            .dtype = o->dtype,
                            .sum_dtype = nccl_opts_sums(o),
                            .redop = o->redop,
                            .in_place = o->in_place};
    s->room = nccl_job_room(s, max_bytes);
}

static int open_gpu_side(struct nccl_session *c, struct err *err)
{
    int me = c->side.member[c->side.self];

    if (nccl_wait_gpu(me, err) < 0)
        return -1;
    if (gpu_stream_open(&c->side.stream, err) < 0 || take_memory(c, err) < 0)
        return err_wrap(err, "%s", nccl_wait_who(me));
    return 0;
}

int nccl_session_open(struct nccl_session **out, const struct group *g, bool shared,
                      size_t max_bytes, struct err *err)
{
    struct nccl_session *c = mem_calloc(1, sizeof(*c));

    c->shared = g->comm;
    c->on_shared = shared;
    fill_side(&c->side, g, max_bytes);
    host_self(c->host, sizeof(c->host));
    if (world_mpi_together(g->comm, open_gpu_side(c, err), err) < 0 || get_conn(c, g, err) < 0) {
        nccl_session_close(c);
        return -1;
    }
    *out = c;
    return 0;
}
