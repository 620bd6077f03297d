/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "probe/nccl/nccl_wait.h"

/* Whose it is: the last of caller and thread to be done with it frees it. */
enum owner { BOTH, RETURNED, LEFT };

struct guard {
    struct nccl_call call;
    int code;
    atomic_int owner;
    max_align_t arg[];
};

static atomic_int left;

static void end(struct guard *g)
{
    nccl_comm comm = g->call.late ? g->call.late(g->arg) : NULL;

    if (comm)
        nccl.CommAbort(comm);
    free(g);
    atomic_fetch_sub(&left, 1);
}

static void *work(void *arg)
{
    struct guard *g = arg;
    int both = BOTH;

    g->code = gpu_enter(NULL) < 0 ? NCCL_UNHANDLED_CUDA : g->call.call(g->arg);
    if (!atomic_compare_exchange_strong(&g->owner, &both, RETURNED))
        end(g);
    return NULL;
}

static struct guard *start(const struct nccl_call *call)
{
    size_t cells = (call->bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t);
    struct guard *g = mem_calloc(1, sizeof(*g) + cells * sizeof(max_align_t));
    pthread_attr_t attr;
    pthread_t thread;

    g->call = *call;
    memcpy(g->arg, call->arg, call->bytes);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attr, work, g);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        return g;
    free(g);
    return NULL;
}

static bool returned(struct guard *g)
{
    return atomic_load(&g->owner) == RETURNED;
}

static int look(struct nccl_conn *c, void *guard, struct nccl_step *s)
{
    if (returned(guard))
        return 1;
    return c->comm ? nccl_wait_state(c, s) : 0;
}

/* True: it has returned after all. */
static bool leave(struct guard *g)
{
    int both = BOTH;

    if (!atomic_compare_exchange_strong(&g->owner, &both, LEFT))
        return true;
    atomic_fetch_add(&left, 1);
    return false;
}

int nccl_guard_left(void)
{
    return atomic_load(&left);
}

int nccl_guard(struct nccl_conn *c, const struct nccl_call *call, double limit, struct nccl_step *s)
{
    struct guard *g = start(call);
    struct err err;

    if (!g) {
        err_io(&err, "%s: no thread for it", call->what);
        return nccl_wait_fault(c, &err, s);
    }
    int rc = nccl_wait_until(c, call->what, look, g, limit, s);
    if (rc < 0 && !leave(g)) {
        c->inside = true;
        return -1;
    }
    memcpy(call->arg, g->arg, call->bytes);
    if (rc == 0 && g->code != NCCL_SUCCESS)
        rc = nccl_wait_failed(c, g->code, s);
    free(g);
    return rc;
}

static int abort_comm(void *comm)
{
    return nccl.CommAbort(*(nccl_comm *)comm);
}

/* Neither a verdict nor an alarm ends this wait: they are why it is aborted. */
void nccl_guard_abort(nccl_comm comm)
{
    const struct nccl_call call = {"ncclCommAbort", abort_comm, &comm, sizeof(comm), NULL};
    const struct timespec nap = {0, 1000000};
    struct guard *g = start(&call);
    double from = log_now();

    while (g && !returned(g) && log_now() - from < 5)
        nanosleep(&nap, NULL);
    if (g && leave(g))
        free(g);
    else
        log_warn("ncclCommAbort does not come back; its communicator is left as it is");
}
