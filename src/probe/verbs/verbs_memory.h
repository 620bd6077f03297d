/* verbs_memory.h - what a rank sends from and what arrives, registered with its NIC.
 *
 * One piece of memory of the host or of the GPU: `room` bytes that are sent, `room` that arrive,
 * and in host memory a landing place for small messages whose last byte the CPU waits for.  That
 * place is registered apart: with relaxed ordering, which the rest has where the library knows it,
 * PCI Express may pass the last byte before the others (PCI Express Base Specification, 2.4.1). */
#ifndef RG_VERBS_MEMORY_H
#define RG_VERBS_MEMORY_H

#include "kernels/gpu.h"
#include "probe/verbs/verbs_port.h"

enum { VERBS_LANDING = 64 << 10 };

struct verbs_memory {
    unsigned char *at;
    size_t room, bytes; /* of one half; of all */
    bool gpu;
    struct verbs_mr *mr, *landing;
    const char *how; /* "dma-buf", "nvidia-peermem", "host memory" */
    bool relaxed;
    struct gpu_buffer buffer;
    gpu_stream stream;
};

/* Room for messages of `bytes`, taken anew when it is not enough; `sharers` ranks of this host do
 * the same at once. */
int verbs_memory_take(struct verbs_memory *m, const struct verbs_port *p, bool gpu, size_t bytes,
                      int sharers, struct err *err);
void verbs_memory_free(struct verbs_memory *m);
/* From and to the memory of this program, at `at` bytes of it. */
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
