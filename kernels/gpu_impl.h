/* gpu_impl.h - the GPU that is open, for those who call its driver. */
#ifndef RG_GPU_IMPL_H
#define RG_GPU_IMPL_H

#include "base/err.h"
#include "kernels/cuda_api.h"
#include "kernels/gpu.h"

struct gpu_open {
    struct gpu_facts facts;
    cuda_device device;
    cuda_context context; /* NULL: not open */
    gpu_stream recording; /* into a graph; NULL: none */
};
extern struct gpu_open gpu_now;

/* The driver's address of ours. */
static inline cuda_ptr gpu_ptr(const void *at)
{
    return (cuda_ptr)(uintptr_t)at;
}

#endif
