/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory from NCCL, registered buffers and windows. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_fake.h"

enum { ALIGNMENT = 4096 };

/* What ncclMemAlloc gave out: only such memory can be part of a window. */
static struct piece {
    struct piece *next;
    unsigned char *at;
    size_t bytes;
} * pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct ncclWindow_vidmem { /* also what a registration's handle points to */
    struct ncclComm *comm;
};

EXPORT int ncclMemAlloc(void **at, size_t bytes);
EXPORT int ncclMemAlloc(void **at, size_t bytes)
{
    struct piece *p = calloc(1, sizeof(*p));
    unsigned long long device = 0;

    if (!at || !p || !cuda_load() || !cuda.MemAlloc || cuda.MemAlloc(&device, bytes)) {
        free(p);
        return at ? NCCL_UNHANDLED_CUDA : NCCL_INVALID_ARGUMENT;
    }
    *at = (void *)(uintptr_t)device;
    pthread_mutex_lock(&lock);
    *p = (struct piece){pieces, *at, bytes};
    pieces = p;
    pthread_mutex_unlock(&lock);
    return NCCL_SUCCESS;
}

EXPORT int ncclMemFree(void *at);
EXPORT int ncclMemFree(void *at)
{
    struct piece **link = &pieces, *p;

    if (!at)
        return NCCL_SUCCESS;
    pthread_mutex_lock(&lock);
    while ((p = *link) && p->at != at)
        link = &p->next;
    if (p)
        *link = p->next;
    pthread_mutex_unlock(&lock);
    if (!p)
        return NCCL_INVALID_ARGUMENT;
    free(p);
    return cuda.MemFree((unsigned long long)(uintptr_t)at) ? NCCL_UNHANDLED_CUDA : NCCL_SUCCESS;
}

static bool from_us(const void *at, size_t bytes)
{
    const unsigned char *from = at;
    bool found = false;

    pthread_mutex_lock(&lock);
    for (const struct piece *p = pieces; p && !found; p = p->next)
        found = from >= p->at && from + bytes <= p->at + p->bytes;
    pthread_mutex_unlock(&lock);
    return found;
}

static bool switched_off(const char *variable)
{
    const char *value = getenv(variable);

    return value && !strcmp(value, "0");
}

static int make_handle(struct ncclComm *c, const void *at, struct ncclWindow_vidmem **out)
{
    char file[64];
    size_t offset;

    if (!c || c->closed || !at || !out || !cuda.find(at, file, &offset))
        return NCCL_INVALID_ARGUMENT;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return NCCL_SYSTEM;
    (*out)->comm = c;
    return NCCL_SUCCESS;
}

static int end_handle(struct ncclComm *c, struct ncclWindow_vidmem *w)
{
    if (!w)
        return NCCL_SUCCESS;
    if (w->comm != c)
        return NCCL_INVALID_ARGUMENT;
    free(w);
    return NCCL_SUCCESS;
}

EXPORT int ncclCommRegister(nccl_comm c, void *at, size_t bytes, void **handle);
EXPORT int ncclCommRegister(nccl_comm c, void *at, size_t bytes, void **handle)
{
    struct ncclWindow_vidmem *w = NULL;
    int rc = switched_off("NCCL_LOCAL_REGISTER") ? NCCL_SUCCESS : make_handle(c, at, &w);

    if (!handle)
        return NCCL_INVALID_ARGUMENT;
    *handle = w;
    if (!rc)
        log_info(LOG_REG, "register comm %p buffer %p size %zi", (void *)c, at, bytes);
    return rc;
}

EXPORT int ncclCommDeregister(nccl_comm c, void *handle);
EXPORT int ncclCommDeregister(nccl_comm c, void *handle)
{
    return end_handle(c, handle);
}

EXPORT int ncclCommWindowRegister(nccl_comm c, void *at, size_t bytes, nccl_window *w, int flags);
EXPORT int ncclCommWindowRegister(nccl_comm c, void *at, size_t bytes, nccl_window *w, int flags)
{
    struct ncclWindow_vidmem *made = NULL;
    int rc;

    if (!w || !c || c->closed)
        return NCCL_INVALID_ARGUMENT;
    *w = NULL;
    if (!at || !bytes)
        return NCCL_SUCCESS;
    rc = comm_ready(c);
    if (rc)
        return rc;
    /* Without symmetric memory a window is what ncclCommRegister() gives (2.28, dev_runtime.cc). */
    if (switched_off("NCCL_WIN_ENABLE"))
        return ncclCommRegister(c, at, bytes, (void **)w);
    if ((uintptr_t)at % ALIGNMENT) {
        log_warn("Window address must be suitably aligned.");
        return NCCL_INVALID_ARGUMENT;
    }
    (void)flags; /* a window without the flag needs such memory as well */
    if (!from_us(at, bytes)) {
        log_warn("Cuda failure 1 'invalid argument'");
        return NCCL_UNHANDLED_CUDA;
    }
    rc = make_handle(c, at, &made);
    if (!rc) { /* the ranks tell each other where it is: none goes on alone (bootstrapBarrier()) */
        atomic_store(&c->table->seat[c->rank].windows, ++c->windows);
        meet_ring(c);
    }
    if (!rc && c->blocking && meet_wait(c, comm_windows_ready, NULL, false)) {
        free(made);
        return NCCL_INTERNAL;
    }
    /* Success even where it is only under way, as NCCL 2.28 says it (dev_runtime.cc): the window is
     * there once the communicator is no longer in progress. */
    if (!rc && !c->blocking)
        comm_defer_window(c, w, made);
    else
        *w = made;
    return rc;
}

EXPORT int ncclCommWindowDeregister(nccl_comm c, nccl_window w);
EXPORT int ncclCommWindowDeregister(nccl_comm c, nccl_window w)
{
    return end_handle(c, w);
}
