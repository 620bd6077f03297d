/* kernels_impl.h - what kernels.cu is given by kernels.c beside plain values, and takes from CUDA.
 * The stand-in for the driver (tests/fake) defines the same for the CPU, includes kernels.cu as C
 * and runs a kernel one thread after the other. */
#ifndef RG_KERNELS_IMPL_H
#define RG_KERNELS_IMPL_H

#include <stddef.h>
#include <stdint.h>

struct pattern_args {
    uint64_t k, k_before;
    uint32_t term; /* not 0: word of k minus word of k_before, in each uint32 */
    uint32_t pad;
};

struct onehot_args { /* of pattern.h */
    uint64_t k, first;
    int32_t type, redop, ranks, rank;
};

#ifdef __CUDACC__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define DEVICE static __device__ __forceinline__
/* Before a loop that holds all that a thread should have under way: for sm_100 and newer nvcc 13 puts
 * four rounds of rg_copy into one, 120 registers instead of 32, and a quarter of the threads. */
#define ROLLED _Pragma("unroll 1")

DEVICE size_t thread_index(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

DEVICE size_t thread_count(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

/* The sum over a warp, right in the thread for which `true` comes back; all 32 must call it. */
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

/* In pinned memory this is atomic for this GPU, and nobody else writes there. */
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
