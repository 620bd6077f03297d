/* kernels_impl.h - types shared by kernels.c and kernels.cu, and the parts of CUDA that kernels.cu
 * uses.  The driver's stand-in (tests/fake) defines the latter for the CPU, includes kernels.cu as
 * C and runs a kernel one thread after the other. */
#ifndef RG_KERNELS_IMPL_H
#define RG_KERNELS_IMPL_H

#include <stddef.h>
#include <stdint.h>

struct pattern_args {
    uint64_t k, k_before;
    uint32_t term; /* not 0: word of k minus word of k_before, in each uint32 */
    uint32_t pad;
};

struct onehot_args { /* see pattern.h */
    uint64_t k, first;
    int32_t type, redop, ranks, rank;
};

#ifdef __CUDACC__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define DEVICE static __device__ __forceinline__
/* For a loop that already contains all work that a thread should have in flight: nvcc 13 unrolls
 * four rounds of rg_copy for sm_100 and newer, which takes 120 registers instead of 32 and allows
 * a quarter of the threads. */
#define ROLLED _Pragma("unroll 1")

DEVICE size_t thread_index(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

DEVICE size_t thread_count(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

/* Sum over a warp, valid in the thread that gets `true`; all 32 threads must call it. */
DEVICE bool warp_sum(uint64_t *x)
{
    for (int step = 16; step > 0; step /= 2)
        *x += __shfl_down_sync(0xFFFFFFFFu, *x, step);
    return threadIdx.x % 32 == 0;
}

DEVICE void add_shared(uint64_t *at, uint64_t x)
{
    atomicAdd((unsigned long long *)at, (unsigned long long)x);
}

/* Pinned memory: atomic for this GPU, which is the only writer. */
DEVICE void min_shared(uint64_t *at, uint64_t x)
{
    atomicMin((unsigned long long *)at, (unsigned long long)x);
}

DEVICE uint64_t nanoseconds(void)
{
    uint64_t t;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
#endif

#endif
