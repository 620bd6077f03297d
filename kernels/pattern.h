/* pattern.h - contents of checked buffers, equal on the CPU and on the GPU.
 *
 * Words: those of verify.h.
 *
 * One-hot: typed patterns for reductions, exact in every type and for every reduction.  Each
 * element has one owner among the ranks of the group:
 *
 *   h          pattern_word() of key k and the element's index; determines owner and value
 *   owner      contributes a value of full entropy; floating-point values are normal, between 1/4
 *              and 16, so that no result overflows or is flushed
 *   others     contribute the neutral value: 0 for sum and avg, 1 for prod, the least value for
 *              max, the greatest for min
 *   result     the owner's value in any order of additions, in fp8 as in double; only avg rounds,
 *              and is checked by onehot_near()
 *
 * One definition for CPU and kernels: CUDA C++ includes this file too.  Types and reductions are
 * those of nccl_api.h.  Formats: IEEE 754; bfloat16; OCP 8-bit floating point (E4M3 has no
 * infinity). */
#ifndef RG_PATTERN_H
#define RG_PATTERN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/nccl_api.h"

#ifdef __CUDACC__
#define PATTERN static __host__ __device__ __forceinline__
#define ONEHOT static inline __host__ __device__
#else
#define PATTERN static inline
#define ONEHOT static inline
#endif

#define PATTERN_GOLDEN 0x9E3779B97F4A7C15u

PATTERN uint64_t pattern_word(uint64_t k, size_t i)
{
    uint64_t x = k + (uint64_t)i * PATTERN_GOLDEN;

    return x ^ (x >> 32);
}

/* x - y in each of the two uint32, without borrow between them. */
PATTERN uint64_t pattern_subtract(uint64_t x, uint64_t y)
{
    return (uint64_t)((uint32_t)(x >> 32) - (uint32_t)(y >> 32)) << 32 |
           (uint64_t)((uint32_t)x - (uint32_t)y);
}

/* --- one-hot --- */

ONEHOT int onehot_owner(uint64_t h, int ranks)
{
    return (int)((uint32_t)(h >> 32) % (uint32_t)ranks);
}

/* Mantissa bits; 0: an integer type. */
ONEHOT int onehot_mantissa(int type)
{
    return type == NCCL_FLOAT16      ? 10
           : type == NCCL_FLOAT32    ? 23
           : type == NCCL_FLOAT64    ? 52
           : type == NCCL_BFLOAT16   ? 7
           : type == NCCL_FLOAT8E4M3 ? 3
           : type == NCCL_FLOAT8E5M2 ? 2
                                     : 0;
}

ONEHOT int onehot_width(int type) /* bytes */
{
    return type <= NCCL_UINT8 || type >= NCCL_FLOAT8E4M3   ? 1
           : type == NCCL_FLOAT16 || type == NCCL_BFLOAT16 ? 2
           : type <= NCCL_UINT32 || type == NCCL_FLOAT32   ? 4
                                                           : 8;
}

ONEHOT bool onehot_signed(int type)
{
    return type == NCCL_INT8 || type == NCCL_INT32 || type == NCCL_INT64 ||
           onehot_mantissa(type) > 0;
}

ONEHOT uint64_t onehot_all(int type)
{
    return ~UINT64_C(0) >> (64 - 8 * onehot_width(type));
}

/* Value of the owner.  avg: not negative, so that integer division is the same everywhere. */
ONEHOT uint64_t onehot_value(int type, int redop, uint64_t h)
{
    int bits = 8 * onehot_width(type), m = onehot_mantissa(type);
    uint64_t sign = UINT64_C(1) << (bits - 1), v = h & onehot_all(type);

    if (m > 0) {
        uint64_t bias = (UINT64_C(1) << (bits - m - 2)) - 1;
        uint64_t exponent = bias - 2 + (h >> 40) % 6;
        v = (v & sign) | exponent << m | (v & ((UINT64_C(1) << m) - 1));
    }
    return redop == NCCL_AVG && onehot_signed(type) ? v & ~sign : v;
}

/* Value of the other ranks. */
ONEHOT uint64_t onehot_other(int type, int redop)
{
    int bits = 8 * onehot_width(type), m = onehot_mantissa(type);
    uint64_t sign = UINT64_C(1) << (bits - 1), all = onehot_all(type);
    uint64_t most = !onehot_signed(type)      ? all
                    : m == 0                  ? all & ~sign
                    : type == NCCL_FLOAT8E4M3 ? 0x7e
                                              : (all & ~sign) - (UINT64_C(1) << m);

    switch (redop) {
    case NCCL_PROD:
        return m ? ((UINT64_C(1) << (bits - m - 2)) - 1) << m : 1;
    case NCCL_MAX:
        return m ? most | sign : onehot_signed(type) ? sign : 0;
    case NCCL_MIN:
        return most;
    default:
        return 0;
    }
}

/* Convert a floating-point value.  avg may also give 0 and subnormals, but no infinity or NaN. */
ONEHOT double onehot_number(int type, uint64_t v)
{
    int bits = 8 * onehot_width(type), m = onehot_mantissa(type);
    int bias = (1 << (bits - m - 2)) - 1, e = (int)(v >> m & ((UINT64_C(1) << (bits - m - 1)) - 1));
    double f = (double)(v & ((UINT64_C(1) << m) - 1));

    if (v >> (bits - 1) & 1)
        return -onehot_number(type, v & ~(UINT64_C(1) << (bits - 1)));
    return e ? ldexp(f + ldexp(1.0, m), e - bias - m) : ldexp(f, 1 - bias - m);
}

/* Result at an element with word h. */
ONEHOT uint64_t onehot_wanted(int type, int redop, int ranks, uint64_t h)
{
    uint64_t v = onehot_value(type, redop, h);

    return redop == NCCL_AVG && !onehot_mantissa(type) ? v / (uint64_t)ranks : v;
}

/* True if `got` is the result.  avg of a floating-point type: within four roundings (1/n is
 * rounded to the type, then the product; additions of 0 are exact). */
ONEHOT bool onehot_near(int type, int redop, int ranks, uint64_t h, uint64_t got)
{
    int m = onehot_mantissa(type);

    if (redop != NCCL_AVG || !m)
        return got == onehot_wanted(type, redop, ranks, h);
    double want = onehot_number(type, onehot_value(type, redop, h)) / ranks;
    double least = onehot_number(type, 1); /* step of subnormals: for a large n, 1/n is subnormal */
    double off = fmax(want * ldexp(4.0, -m - 1), fmax(2.0, want * ranks) * least);
    return fabs(onehot_number(type, got) - want) <= off;
}

/* Fill `elements` elements on the CPU as rank `rank` of `ranks`; element 0 has word 0. */
void onehot_fill(void *buf, size_t elements, int type, int rank, int ranks, uint64_t k, int redop);
/* True if an element of buf (which starts at element `first` of the pattern) differs from the
 * result; *at is its index in buf. */
bool onehot_find(const void *buf, size_t first, size_t elements, int type, int ranks, uint64_t k,
                 int redop, size_t *at);

#endif
