/* gpu_own.h - what the files of gpu.h share and nobody else needs. */
#ifndef RG_GPU_OWN_H
#define RG_GPU_OWN_H

#include <stdbool.h>

#include "base/err.h"
#include "kernels/cuda_api.h"
#include "kernels/gpu.h"

struct gpu_own {
    struct gpu_facts facts;
    cuda_device device;
    cuda_context context; /* NULL: not open */
    gpu_stream recording; /* into a graph; NULL: none */
};
extern struct gpu_own gpu_own;

/* The stream and the bytes that gpu_answers() fills are made while all is well: making them may
 * wait for a GPU that does not answer any more. */
int gpu_answers_open(struct err *err);
/* true: the GPU does not answer; nothing was closed and nothing may be. */
bool gpu_answers_close(void);

/* A driver's address as ours and back. */
static inline cuda_ptr gpu_ptr(const void *at)
{
    return (cuda_ptr)(uintptr_t)at;
}
static inline void *gpu_at(cuda_ptr at)
{
    return (void *)(uintptr_t)at;
}

#endif
