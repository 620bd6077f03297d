/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of every type.  Integers wrap as on the GPU; floating types are added up in double and
 * rounded once, to nearest even, so a sum that the type holds exactly is exact. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "nccl_fake.h"

enum { CHUNK = 1024 };

/* --- small floating types: sign, `exponent` bits, `mantissa` bits --- */
struct small {
    int exponent, mantissa;
    bool finite; /* no infinity: all ones is NaN and the rest are numbers; sums saturate */
    double max;  /* beyond it: infinity, or this where conversions saturate */
    bool saturates;
};
static const struct small half = {5, 10, false, 65504, false},
                          bf16 = {8, 7, false, 0x1.fep127, false}, e4m3 = {4, 3, true, 448, true},
                          e5m2 = {5, 2, false, 57344, true};

static double decode(const struct small *t, unsigned bits)
{
    int bias = (1 << (t->exponent - 1)) - 1, top = (1 << t->exponent) - 1;
    int e = (int)(bits >> t->mantissa) & top;
    unsigned m = bits & ((1U << t->mantissa) - 1), ones = (1U << t->mantissa) - 1;
    double value;

    if (e == top && !t->finite)
        value = m ? NAN : INFINITY;
    else if (e == top && m == ones)
        value = NAN;
    else if (e == 0)
        value = ldexp(m, 1 - bias - t->mantissa);
    else
        value = ldexp(m + (1U << t->mantissa), e - bias - t->mantissa);
    return bits >> (t->exponent + t->mantissa) & 1 ? -value : value;
}

static unsigned encode(const struct small *t, double value)
{
    int bias = (1 << (t->exponent - 1)) - 1, e;
    unsigned sign = signbit(value) ? 1U << (t->exponent + t->mantissa) : 0;
    unsigned top = ((1U << t->exponent) - 1) << t->mantissa, ones = (1U << t->mantissa) - 1;
    double magnitude = fabs(value), units;

    if (isnan(value))
        return top | ones;
    frexp(magnitude, &e); /* magnitude = 0.5..1 x 2^e */
    e = e < 2 - bias ? 2 - bias : e;
    units = nearbyint(ldexp(magnitude, t->mantissa + 1 - e));
    if (magnitude != 0 && ldexp(units, e - 1 - t->mantissa) > t->max) {
        if (!t->saturates)
            return sign | top;
        units = ldexp(t->max, t->mantissa + 1 - (frexp(t->max, &e), e));
    }
    if (units < (1U << t->mantissa))
        return sign | (unsigned)units; /* subnormal */
    /* Rounding up to the next power of two carries into the exponent by itself. */
    return sign | (((unsigned)(e - 1 + bias - 1) << t->mantissa) + (unsigned)units);
}

static float half_value[65536], bf16_value[65536], e4m3_value[256], e5m2_value[256];

static void fill_values(void)
{
    for (unsigned i = 0; i < 65536; i++) {
        half_value[i] = (float)decode(&half, i);
        bf16_value[i] = (float)decode(&bf16, i);
    }
    for (unsigned i = 0; i < 256; i++) {
        e4m3_value[i] = (float)decode(&e4m3, i);
        e5m2_value[i] = (float)decode(&e5m2, i);
    }
}

/* --- one chunk; T what memory holds, A what is added up, U for adding without overflow --- */
#define COMBINE(T, A, U, LOAD)                                                                     \
    for (size_t i = 0; i < n; i++)                                                                 \
        acc[i] = (A)(LOAD(((const T *)from[0])[first + i]));                                       \
    for (int r = 1; r < ranks; r++) {                                                              \
        const T *x = (const T *)from[r] + first;                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            A v = (A)(LOAD(x[i]));                                                                 \
            switch (redop) {                                                                       \
            case NCCL_PROD:                                                                        \
                acc[i] = (A)((U)acc[i] * (U)v);                                                    \
                break;                                                                             \
            case NCCL_MAX:                                                                         \
                acc[i] = v > acc[i] ? v : acc[i];                                                  \
                break;                                                                             \
            case NCCL_MIN:                                                                         \
                acc[i] = v < acc[i] ? v : acc[i];                                                  \
                break;                                                                             \
            default:                                                                               \
                acc[i] = (A)((U)acc[i] + (U)v);                                                    \
            }                                                                                      \
        }                                                                                          \
    }

#define REDUCER(NAME, T, A, U, LOAD, STORE)                                                        \
    static void NAME(void *into, const void *const *from, int ranks, size_t first, size_t n,       \
                     int redop)                                                                    \
    {                                                                                              \
        A acc[CHUNK];                                                                              \
        T *to = (T *)into + first;                                                                 \
                                                                                                   \
        COMBINE(T, A, U, LOAD)                                                                     \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] = STORE(redop == NCCL_AVG ? (A)(acc[i] / (A)ranks) : acc[i]);                    \
    }

#define SAME(x) (x)
#define HALF(x) (half_value[x])
#define BF16(x) (bf16_value[x])
#define E4M3(x) (e4m3_value[x])
#define E5M2(x) (e5m2_value[x])
#define TO_HALF(x) (uint16_t) encode(&half, x)
#define TO_BF16(x) (uint16_t) encode(&bf16, x)
#define TO_E4M3(x) (uint8_t) encode(&e4m3, x)
#define TO_E5M2(x) (uint8_t) encode(&e5m2, x)
#define TO_FLOAT(x) (float)(x)

REDUCER(reduce_int8, int8_t, int8_t, uint32_t, SAME, SAME)
REDUCER(reduce_uint8, uint8_t, uint8_t, uint32_t, SAME, SAME)
REDUCER(reduce_int32, int32_t, int32_t, uint32_t, SAME, SAME)
REDUCER(reduce_uint32, uint32_t, uint32_t, uint32_t, SAME, SAME)
REDUCER(reduce_int64, int64_t, int64_t, uint64_t, SAME, SAME)
REDUCER(reduce_uint64, uint64_t, uint64_t, uint64_t, SAME, SAME)
REDUCER(reduce_half, uint16_t, double, double, HALF, TO_HALF)
REDUCER(reduce_float, float, double, double, SAME, TO_FLOAT)
REDUCER(reduce_double, double, double, double, SAME, SAME)
REDUCER(reduce_bf16, uint16_t, double, double, BF16, TO_BF16)
REDUCER(reduce_e4m3, uint8_t, double, double, E4M3, TO_E4M3)
REDUCER(reduce_e5m2, uint8_t, double, double, E5M2, TO_E5M2)

static void (*const reducer[NCCL_DTYPES])(void *, const void *const *, int, size_t, size_t, int) = {
    reduce_int8, reduce_uint8, reduce_int32,  reduce_uint32, reduce_int64, reduce_uint64,
    reduce_half, reduce_float, reduce_double, reduce_bf16,   reduce_e4m3,  reduce_e5m2,
};

void math_reduce(void *into, const void *const *from, int ranks, size_t count, int dtype, int redop)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_values);
    for (size_t first = 0; first < count; first += CHUNK)
        reducer[dtype](into, from, ranks, first, count - first < CHUNK ? count - first : CHUNK,
                       redop);
}
