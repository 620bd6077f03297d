/* SPDX-License-Identifier: BSD-3-Clause */
/* A product whose every element is known.  Operand 0 has one 1 or -1 in eight, operand 1 has -1, 0,
 * 1 and 2; blocks have scales of 1 and 2, and of 1/2 and 1: all sums are multiples of 1/2 up to
 * 128, which the 8 bits of bf16 hold, in whatever order and in whatever parts they are made.  144
 * and 160 rows, 256 along k: more than one tile of scales each way, and tiles that are not full. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/gpu/gemm_own.h"

enum { M = 144, N = 160, K = 256 };
static const int rows_of[2] = {N, M}; /* operand 0 stands transposed in memory */

static int value_of(int operand, int row, int k)
{
    int random = (int)(gemm_mix((size_t)row, (size_t)(k + K)) >> 30);

    if (operand)
        return random - 1;
    return (row + k) % 8 ? 0 : random / 2 * 2 - 1;
}

/* What the GPU should read there, scale and all. */
static float read_of(int operand, enum gemm_dtype dtype, int row, int k)
{
    int along = gemm_kind[dtype].along;
    int power = along ? gemm_scale_power(operand, (size_t)row, (size_t)(k / along)) : 0;

    return ldexpf((float)value_of(operand, row, k), power);
}

static void put_value(unsigned char *block, enum gemm_dtype dtype, size_t i, int value)
{
    static const uint16_t codes[GEMM_DTYPES][4] = {[GEMM_BF16] = {0xbf80, 0, 0x3f80, 0x4000},
                                                   [GEMM_FP8] = {0xb8, 0, 0x38, 0x40},
                                                   [GEMM_MXFP8] = {0xb8, 0, 0x38, 0x40},
                                                   [GEMM_NVFP4] = {0xa, 0, 0x2, 0x4}};
    uint16_t code = codes[dtype][value + 1];
    int bits = gemm_kind[dtype].bits;

    if (bits == 16)
        memcpy(block + 2 * i, &code, 2);
    else if (bits == 8)
        block[i] = (unsigned char)code;
    else /* the first of two in the lower half */
        block[i / 2] = (unsigned char)(i % 2 ? block[i / 2] | code << 4 : code);
}

static int put_operands(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err)
{
    for (int operand = 0; operand < 2; operand++) {
        size_t bytes = (size_t)rows_of[operand] * K * (size_t)gemm_kind[dtype].bits / 8;
        for (int row = 0; row < rows_of[operand]; row++)
            for (int k = 0; k < K; k++)
                put_value(g->block.at, dtype, (size_t)(row * K + k), value_of(operand, row, k));
        if (gpu_copy(g->operand[operand].at, g->block.at, bytes, stream, err) < 0 ||
            gpu_wait(stream, err) < 0)
            return -1;
    }
    return 0;
}

static float from_bf16(const unsigned char *at)
{
    uint16_t half;
    uint32_t bits;
    float value;

    memcpy(&half, at, 2);
    bits = (uint32_t)half << 16;
    memcpy(&value, &bits, 4);
    return value;
}

static float *operand_of(int operand, enum gemm_dtype dtype)
{
    float *out = mem_calloc((size_t)(rows_of[operand] * K), sizeof(*out));

    for (int row = 0; row < rows_of[operand]; row++)
        for (int k = 0; k < K; k++)
            out[row * K + k] = read_of(operand, dtype, row, k);
    return out;
}

static int check_product(const unsigned char *product, enum gemm_dtype dtype, struct err *err)
{
    float *b = operand_of(0, dtype), *a = operand_of(1, dtype);
    int rc = 0;

    for (int i = 0; i < M * N && rc == 0; i++) {
        float want = 0, got = from_bf16(product + 2 * i);
        for (int k = 0; k < K; k++)
            want += a[i / N * K + k] * b[i % N * K + k];
        if (got != want)
            rc = err_set(err,
                         "the %s product %dx%dx%d of this GPU is wrong: row %d, column %d is %g, "
                         "expected %g",
                         gemm_dtype_name[dtype], M, N, K, i / N, i % N, (double)got, (double)want);
    }
    free(a);
    free(b);
    return rc;
}

int gemm_verify(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err)
{
    const struct gemm_shape small = {dtype, M, N, K};
    struct gemm_job *j = NULL;
    int rc = gemm_prepare(&j, g, &small, stream, err);

    if (rc == 0)
        rc = put_operands(g, dtype, stream, err);
    if (rc == 0) /* no number, lest the right one still be there from another dtype */
        rc = gpu_set(g->product.at, 0xff, 2 * M * N, stream, err);
    if (rc == 0)
        rc = gemm_put(j, stream, err);
    if (rc == 0)
        rc = gpu_copy(g->block.at, g->product.at, 2 * M * N, stream, err);
    if (rc == 0)
        rc = gpu_wait(stream, err);
    if (rc == 0)
        rc = check_product(g->block.at, dtype, err);
    gemm_finish(j);
    return rc;
}
