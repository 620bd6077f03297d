/* verbs_memory_impl.h - send and receive memory of a rank, registered with its NIC.
 *
 * One piece of memory, of the host or of the GPU: `room` bytes to send, `room` bytes to receive
 * and, in host memory, a landing place for small messages whose last byte the CPU polls.  That
 * place is registered separately, because with relaxed ordering, which the rest uses if the library
 * supports it, PCI Express may deliver the last byte before the others (PCI Express Base
 * Specification, 2.4.1). */
#ifndef RG_VERBS_MEMORY_H
#define RG_VERBS_MEMORY_H

#include "kernels/gpu.h"
#include "transport/verbs/verbs_port_impl.h"

enum { VERBS_LANDING = 64 << 10 };

struct verbs_memory {
    unsigned char *at;
    size_t room, bytes; /* bytes of one half; of all */
    bool gpu;
    struct verbs_mr *mr, *landing;
    const char *how; /* "dma-buf", "nvidia-peermem", "host memory" */
    bool relaxed;
    struct gpu_buffer buffer;
    gpu_stream stream;
};

/* Make room for messages of `bytes`; memory that is too small is replaced.  `sharers` ranks of this
 * host do the same at the same time. */
int verbs_memory_take(struct verbs_memory *m, const struct verbs_port *p, bool gpu, size_t bytes,
                      int sharers, struct err *err);
void verbs_memory_free(struct verbs_memory *m);
/* Copy between memory of this program and offset `at` of the registered memory. */
int verbs_memory_put(const struct verbs_memory *m, size_t at, const void *from, size_t bytes,
                     struct err *err);
int verbs_memory_get(const struct verbs_memory *m, size_t at, void *to, size_t bytes,
                     struct err *err);

static inline size_t verbs_memory_recv(const struct verbs_memory *m)
{
    return m->room;
}

static inline size_t verbs_memory_landing(const struct verbs_memory *m)
{
    return 2 * m->room;
}

#endif
