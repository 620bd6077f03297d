/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/cublaslt_api.h"

enum { WORKSPACE = 64 << 20, BLOCK = 1 << 20, SMALL = 64 };

static const struct {
    int type;     /* of A and B */
    size_t bytes; /* of an element */
} dtypes[GEMM_DTYPES] = {{CUBLASLT_R_16BF, 2}, {CUBLASLT_R_8F_E4M3, 1}};

struct gemm {
    cublaslt_handle handle;
    struct gpu_buffer workspace, operand[2], product, block; /* block: pinned, random values */
    char name[64];
};

struct gemm_job {
    struct gemm *g;
    cublaslt_desc desc;
    cublaslt_layout a, b, c;
    struct cublaslt_found found;
};

/* --- the library --- */

int gemm_open(struct gemm **out, struct err *err)
{
    if (cublaslt_load(err) < 0)
        return -1;
    struct gemm *g = mem_calloc(1, sizeof(*g));
    int version = (int)cublaslt.GetVersion();

    snprintf(g->name, sizeof(g->name), "%s, %d.%d.%d", cublaslt.path, version / 10000,
             version / 100 % 100, version % 100);
    if (cublaslt_check(cublaslt.Create(&g->handle), "cublasLtCreate", err) < 0 ||
        gpu_alloc(&g->workspace, GPU_PLAIN, WORKSPACE, err) < 0 ||
        gpu_alloc(&g->block, GPU_PINNED, BLOCK, err) < 0) {
        gemm_close(g);
        return -1;
    }
    *out = g;
    return 0;
}

void gemm_close(struct gemm *g)
{
    if (!g)
        return;
    gpu_free(&g->workspace);
    gpu_free(&g->operand[0]);
    gpu_free(&g->operand[1]);
    gpu_free(&g->product);
    gpu_free(&g->block);
    if (g->handle)
        cublaslt.Destroy(g->handle);
    free(g);
}

const char *gemm_library(const struct gemm *g)
{
    return g->name;
}

static int room(struct gpu_buffer *b, size_t bytes, struct err *err)
{
    if (b->at && b->bytes >= bytes)
        return 0;
    gpu_free(b);
    return gpu_alloc(b, GPU_PLAIN, bytes, err);
}

/* Values of both signs between 1/8 and 2, all mantissas: nothing overflows, and bits toggle as they
 * do with real weights. */
static void random_block(unsigned char *p, enum gemm_dtype dtype)
{
    struct rng rng;

    rng_seed(&rng, 1 + (unsigned long long)dtype);
    for (size_t i = 0; i < BLOCK; i += 2) {
        unsigned long long r = rng_u64(&rng);
        unsigned sign = r & 1, power = (unsigned)(r >> 1 & 3), low = (unsigned)(r >> 3 & 0x7f);
        uint16_t bf16 = (uint16_t)(sign << 15 | (124 + power) << 7 | low);
        if (dtype == GEMM_BF16)
            memcpy(p + i, &bf16, 2);
        for (int k = 0; k < 2 && dtype == GEMM_FP8; k++) /* e4m3: exponent bias 7 */
            p[i + (size_t)k] =
                (unsigned char)((r >> (10 + 8 * k) & 1) << 7 | (4 + (r >> (11 + 8 * k) & 3)) << 3 |
                                (r >> (13 + 8 * k) & 7));
    }
}

/* The block once, then what is there doubled. */
static int fill(struct gpu_buffer *b, size_t bytes, const struct gpu_buffer *block, gpu_stream s,
                struct err *err)
{
    size_t have = bytes < BLOCK ? bytes : BLOCK;
    int rc = gpu_copy(b->at, block->at, have, s, err);

    while (rc == 0 && have < bytes) {
        size_t more = bytes - have < have ? bytes - have : have;
        rc = gpu_copy(b->at + have, b->at, more, s, err);
        have += more;
    }
    return rc;
}

/* --- one product --- */

static int set_flag(cublaslt_desc d, int attribute, const void *value, size_t size, struct err *err)
{
    return cublaslt_check(cublaslt.MatmulDescSetAttribute(d, attribute, value, size),
                          "cublasLtMatmulDescSetAttribute", err);
}

static int describe(struct gemm_job *j, const struct gemm_shape *s, struct err *err)
{
    const int32_t transposed = CUBLASLT_OP_T, plain = CUBLASLT_OP_N;
    const int8_t fast = 1;
    int type = dtypes[s->dtype].type;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;

    if (cublaslt_check(cublaslt.MatmulDescCreate(&j->desc, CUBLASLT_COMPUTE_32F, CUBLASLT_R_32F),
                       "cublasLtMatmulDescCreate", err) < 0 ||
        set_flag(j->desc, CUBLASLT_DESC_TRANSA, &transposed, sizeof(transposed), err) < 0 ||
        set_flag(j->desc, CUBLASLT_DESC_TRANSB, &plain, sizeof(plain), err) < 0 ||
        (s->dtype == GEMM_FP8 &&
         set_flag(j->desc, CUBLASLT_DESC_FAST_ACCUM, &fast, sizeof(fast), err) < 0))
        return -1;
    int a = cublaslt.MatrixLayoutCreate(&j->a, type, k, n, s->k);
    int b = cublaslt.MatrixLayoutCreate(&j->b, type, k, m, s->k);
    int c = cublaslt.MatrixLayoutCreate(&j->c, CUBLASLT_R_16BF, n, m, s->n);
    return cublaslt_check(a ? a : b ? b : c, "cublasLtMatrixLayoutCreate", err);
}

static int choose(struct gemm_job *j, const struct gemm_shape *s, struct err *err)
{
    const size_t workspace = WORKSPACE;
    cublaslt_preference p = NULL;
    int count = 0, status = cublaslt.MatmulPreferenceCreate(&p);

    if (status == CUBLASLT_SUCCESS)
        status = cublaslt.MatmulPreferenceSetAttribute(p, CUBLASLT_PREF_MAX_WORKSPACE, &workspace,
                                                       sizeof(workspace));
    if (status == CUBLASLT_SUCCESS)
        status = cublaslt.MatmulAlgoGetHeuristic(j->g->handle, j->desc, j->a, j->b, j->c, j->c, p,
                                                 1, &j->found, &count);
    if (p)
        cublaslt.MatmulPreferenceDestroy(p);
    if (status == CUBLASLT_SUCCESS && count > 0 && j->found.state == CUBLASLT_SUCCESS)
        return 0;
    return err_config(err, "%s has no %s product %dx%dx%d for this GPU: %s", cublaslt.path,
                      gemm_dtype_name[s->dtype], s->m, s->n, s->k,
                      cublaslt.GetStatusName(status ? status : j->found.state));
}

int gemm_prepare(struct gemm_job **out, struct gemm *g, const struct gemm_shape *s,
                 gpu_stream stream, struct err *err)
{
    struct gemm_job *j = mem_calloc(1, sizeof(*j));
    size_t e = dtypes[s->dtype].bytes, m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;

    j->g = g;
    random_block(g->block.at, s->dtype);
    if (describe(j, s, err) < 0 || choose(j, s, err) < 0 ||
        room(&g->operand[0], n * k * e, err) < 0 || room(&g->operand[1], m * k * e, err) < 0 ||
        room(&g->product, m * n * 2, err) < 0 ||
        fill(&g->operand[0], n * k * e, &g->block, stream, err) < 0 ||
        fill(&g->operand[1], m * k * e, &g->block, stream, err) < 0 || gpu_wait(stream, err) < 0) {
        gemm_finish(j);
        return -1;
    }
    *out = j;
    return 0;
}

int gemm_put(struct gemm_job *j, gpu_stream stream, struct err *err)
{
    const float one = 1, zero = 0;
    struct gemm *g = j->g;

    return cublaslt_check(cublaslt.Matmul(g->handle, j->desc, &one, g->operand[0].at, j->a,
                                          g->operand[1].at, j->b, &zero, g->product.at, j->c,
                                          g->product.at, j->c, &j->found.algo, g->workspace.at,
                                          WORKSPACE, stream),
                          "cublasLtMatmul", err);
}

void gemm_finish(struct gemm_job *j)
{
    if (!j)
        return;
    if (j->desc)
        cublaslt.MatmulDescDestroy(j->desc);
    if (j->a)
        cublaslt.MatrixLayoutDestroy(j->a);
    if (j->b)
        cublaslt.MatrixLayoutDestroy(j->b);
    if (j->c)
        cublaslt.MatrixLayoutDestroy(j->c);
    free(j);
}

/* --- is it right? Values -1, 0, 1 and 2: every sum of 64 products fits bf16's 8 bits exactly ---
 */

static int small_value(int operand, int row, int col)
{
    return (row * 7 + col * (operand ? 3 : 5) + row * col) % 4 - 1;
}

static void put_value(unsigned char *at, enum gemm_dtype dtype, int value)
{
    static const uint16_t bf16[4] = {0xbf80, 0, 0x3f80, 0x4000};
    static const unsigned char e4m3[4] = {0xb8, 0, 0x38, 0x40};

    if (dtype == GEMM_BF16)
        memcpy(at, &bf16[value + 1], 2);
    else
        *at = e4m3[value + 1];
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

/* Operand 0 is what stands transposed in memory: both lie as SMALL rows of SMALL k values. */
static int put_small(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err)
{
    size_t e = dtypes[dtype].bytes;

    for (int operand = 0; operand < 2; operand++) {
        for (int row = 0; row < SMALL; row++)
            for (int k = 0; k < SMALL; k++)
                put_value(g->block.at + e * (size_t)(row * SMALL + k), dtype,
                          small_value(operand, row, k));
        if (gpu_copy(g->operand[operand].at, g->block.at, e * SMALL * SMALL, stream, err) < 0 ||
            gpu_wait(stream, err) < 0)
            return -1;
    }
    return 0;
}

static int check_small(const struct gemm *g, enum gemm_dtype dtype, struct err *err)
{
    for (int m = 0; m < SMALL; m++)
        for (int n = 0; n < SMALL; n++) {
            int want = 0;
            for (int k = 0; k < SMALL; k++)
                want += small_value(1, m, k) * small_value(0, n, k);
            float got = from_bf16(g->block.at + 2 * (size_t)(m * SMALL + n));
            if (got != (float)want)
                return err_set(err,
                               "the %s product %dx%dx%d of this GPU is wrong: row %d, column %d is "
                               "%g, expected %d",
                               gemm_dtype_name[dtype], SMALL, SMALL, SMALL, m, n, (double)got,
                               want);
        }
    return 0;
}

int gemm_verify(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err)
{
    const struct gemm_shape small = {dtype, SMALL, SMALL, SMALL};
    struct gemm_job *j = NULL;
    int rc = gemm_prepare(&j, g, &small, stream, err);

    if (rc == 0)
        rc = put_small(g, dtype, stream, err);
    if (rc == 0)
        rc = gemm_put(j, stream, err);
    if (rc == 0)
        rc = gpu_copy(g->block.at, g->product.at, 2 * SMALL * SMALL, stream, err);
    if (rc == 0)
        rc = gpu_wait(stream, err);
    if (rc == 0)
        rc = check_small(g, dtype, err);
    gemm_finish(j);
    return rc;
}
