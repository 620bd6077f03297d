/* pattern.h - the words of verify.h, the same on the CPU and on the GPU. */
#ifndef RG_PATTERN_H
#define RG_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PATTERN static __device__ __forceinline__
#else
#define PATTERN static inline
#endif

#define PATTERN_GOLDEN 0x9E3779B97F4A7C15u

PATTERN uint64_t pattern_word(uint64_t k, size_t i)
{
    uint64_t x = k + (uint64_t)i * PATTERN_GOLDEN;

    return x ^ (x >> 32);
}

/* x - y in each of the two uint32, without a borrow between them. */
PATTERN uint64_t pattern_subtract(uint64_t x, uint64_t y)
{
    return (uint64_t)((uint32_t)(x >> 32) - (uint32_t)(y >> 32)) << 32 |
           (uint64_t)((uint32_t)x - (uint32_t)y);
}

#endif
