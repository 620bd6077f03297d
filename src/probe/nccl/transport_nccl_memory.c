/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_nccl_memory.c - the two buffers of a session and what NCCL is told of them. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "probe/nccl/nccl_guard.h"
#include "probe/nccl/nccl_wait.h"
#include "probe/nccl/transport_nccl.h"

/* From the library: memory that NVLink SHARP, windows and user-buffer registration can use. */
static int take_library(struct nccl_ctx *c, int side, struct err *err)
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

int nccl_memory_take(struct nccl_ctx *c, struct err *err)
{
    char need[UNITS_TEXT];

    for (int i = 0; i < NCCL_SIDES; i++) {
        int rc = nccl_opts_now()->mem_alloc
                     ? take_library(c, i, err)
                     : gpu_alloc(&c->buffer[i], GPU_PLAIN, c->side.room, err);
        if (rc < 0)
            return err_wrap(err, "a buffer of %s", units_bytes_text(need, (double)c->side.room));
        /* No page is touched for the first time while the clock runs. */
        if (gpu_set(c->buffer[i].at, 0, c->side.room, c->side.stream, err) < 0)
            return -1;
    }
    c->side.send = c->buffer[NCCL_SEND].at;
    c->side.recv = c->buffer[NCCL_RECV].at;
    return nccl_wait_alone(c->side.stream, NCCL_SIDES * (double)c->side.room / 50e6, err);
}

/* What NCCL is told of the buffers, or told to forget. */
struct told {
    nccl_comm comm;
    bool symmetric;
    void *at[NCCL_SIDES], *handle[NCCL_SIDES];
    size_t room;
    nccl_window window[NCCL_SIDES];
};

static struct told tell_of(const struct nccl_ctx *c)
{
    struct told t = {.comm = c->side.comm,
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
    struct told *t = arg;
    int code = NCCL_SUCCESS;

    for (int i = 0; i < NCCL_SIDES && code == NCCL_SUCCESS; i++)
        code = t->symmetric ? nccl.CommWindowRegister(t->comm, t->at[i], t->room, &t->window[i], 1)
                            : nccl.CommRegister(t->comm, t->at[i], t->room, &t->handle[i]);
    return code;
}

static int deregister_all(void *arg)
{
    const struct told *t = arg;

    for (int i = 0; i < NCCL_SIDES; i++) {
        if (t->handle[i])
            nccl.CommDeregister(t->comm, t->handle[i]);
        if (t->window[i])
            nccl.CommWindowDeregister(t->comm, t->window[i]);
    }
    return NCCL_SUCCESS;
}

static nccl_comm told_late(void *arg)
{
    return ((struct told *)arg)->comm;
}

/* ncclSuccess and no handle (2.28: src/register/register.cc, src/dev_runtime.cc): NCCL uses none of
 * what the option asked for. */
static void tell_unregistered(const struct told *t)
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

int nccl_memory_register(struct nccl_ctx *c, struct nccl_step *s)
{
    struct told t = tell_of(c);
    const struct nccl_call call = {"registering memory", register_all, &t, sizeof(t), told_late};
    struct err err;

    if (t.symmetric && !nccl.CommWindowRegister) {
        err_config(&err, "NCCL before 2.27 has no windows (--register symmetric)");
        return nccl_wait_fault(c->conn, &err, s);
    }
    if (nccl_guard(c->conn, &call, nccl_wait_limit(), s) < 0)
        return -1;
    tell_unregistered(&t);
    memcpy(c->handle, t.handle, sizeof(t.handle));
    memcpy(c->window, t.window, sizeof(t.window));
    return 0;
}

/* A communicator that is lost took its registrations along.  False: the memory must stay. */
static bool deregister(struct nccl_ctx *c)
{
    struct told t = tell_of(c);
    const struct nccl_call call = {"deregistering memory", deregister_all, &t, sizeof(t),
                                   told_late};
    struct nccl_step s = {.blame = NCCL_FINE};

    if (!c->conn || nccl_opts_now()->registration == NCCL_REG_NONE)
        return true;
    if (nccl_guard(c->conn, &call, nccl_wait_limit(), &s) == 0 || !c->conn->inside)
        return true;
    nccl_conn_lose(c->conn, NULL);
    return false;
}

void nccl_memory_drop(struct nccl_ctx *c, bool usable)
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
