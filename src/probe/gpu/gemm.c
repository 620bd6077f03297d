/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu/gemm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/gpu/gemm_own.h"

enum { WORKSPACE = 64 << 20 };

const struct gemm_kind gemm_kind[GEMM_DTYPES] = {
    [GEMM_BF16] = {CUBLASLT_R_16BF, 16, 0, CUBLASLT_SCALE_SCALAR_32F, 0, 0},
    [GEMM_FP8] = {CUBLASLT_R_8F_E4M3, 8, 0, CUBLASLT_SCALE_SCALAR_32F, 0, 0},
    [GEMM_MXFP8] = {CUBLASLT_R_8F_E4M3, 8, 32, CUBLASLT_SCALE_VEC32_UE8M0, 127, 1},
    [GEMM_NVFP4] = {CUBLASLT_R_4F_E2M1, 4, 16, CUBLASLT_SCALE_VEC16_UE4M3, 0x38, 8},
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

    g->version = (int)cublaslt.GetVersion();
    snprintf(g->name, sizeof(g->name), "%s, %d.%d.%d", cublaslt.path, g->version / 10000,
             g->version / 100 % 100, g->version % 100);
    if (cublaslt_check(cublaslt.Create(&g->handle), "cublasLtCreate", err) < 0 ||
        gpu_alloc(&g->workspace, GPU_PLAIN, WORKSPACE, err) < 0 ||
        gpu_alloc(&g->block, GPU_PINNED, GEMM_BLOCK, err) < 0) {
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
    for (int i = 0; i < 2; i++) {
        gpu_free(&g->operand[i]);
        gpu_free(&g->scale[i]);
    }
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

/* bf16 and e4m3: values of both signs between 1/8 and 2, all mantissas: nothing overflows, and bits
 * toggle as they do with real weights.  Of e2m1 every code is a number. */
static void random_block(unsigned char *p, int type)
{
    struct rng rng;

    rng_seed(&rng, 1 + (unsigned long long)type);
    for (size_t i = 0; i < GEMM_BLOCK; i += 2) {
        unsigned long long r = rng_u64(&rng);
        unsigned sign = r & 1, power = (unsigned)(r >> 1 & 3), low = (unsigned)(r >> 3 & 0x7f);
        uint16_t bf16 = (uint16_t)(sign << 15 | (124 + power) << 7 | low);
        if (type == CUBLASLT_R_16BF)
            memcpy(p + i, &bf16, 2);
        if (type == CUBLASLT_R_4F_E2M1)
            memcpy(p + i, &r, 2);
        for (int k = 0; k < 2 && type == CUBLASLT_R_8F_E4M3; k++) /* exponent bias 7 */
            p[i + (size_t)k] =
                (unsigned char)((r >> (10 + 8 * k) & 1) << 7 | (4 + (r >> (11 + 8 * k) & 3)) << 3 |
                                (r >> (13 + 8 * k) & 7));
    }
}

/* The block once, then what is there doubled. */
static int fill(struct gpu_buffer *b, size_t bytes, const struct gpu_buffer *block, gpu_stream s,
                struct err *err)
{
    size_t have = bytes < GEMM_BLOCK ? bytes : GEMM_BLOCK;
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

/* The heuristics refuse modes whose pointers are not there yet. */
static int describe_scales(struct gemm_job *j, const struct gemm_kind *kind, struct err *err)
{
    static const int modes[2] = {CUBLASLT_DESC_A_SCALE_MODE, CUBLASLT_DESC_B_SCALE_MODE};
    static const int pointers[2] = {CUBLASLT_DESC_A_SCALE_POINTER, CUBLASLT_DESC_B_SCALE_POINTER};
    const int32_t mode = kind->mode;

    for (int i = 0; i < 2; i++) {
        const void *at = j->g->scale[i].at;
        if (set_flag(j->desc, modes[i], &mode, sizeof(mode), err) < 0 ||
            set_flag(j->desc, pointers[i], &at, sizeof(at), err) < 0)
            return -1;
    }
    return 0;
}

static int describe(struct gemm_job *j, const struct gemm_shape *s, struct err *err)
{
    const int32_t transposed = CUBLASLT_OP_T, plain = CUBLASLT_OP_N;
    const struct gemm_kind *kind = &gemm_kind[s->dtype];
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    const int8_t fast = 1;

    if (cublaslt_check(cublaslt.MatmulDescCreate(&j->desc, CUBLASLT_COMPUTE_32F, CUBLASLT_R_32F),
                       "cublasLtMatmulDescCreate", err) < 0 ||
        set_flag(j->desc, CUBLASLT_DESC_TRANSA, &transposed, sizeof(transposed), err) < 0 ||
        set_flag(j->desc, CUBLASLT_DESC_TRANSB, &plain, sizeof(plain), err) < 0 ||
        (s->dtype == GEMM_FP8 &&
         set_flag(j->desc, CUBLASLT_DESC_FAST_ACCUM, &fast, sizeof(fast), err) < 0) ||
        (kind->along && describe_scales(j, kind, err) < 0))
        return -1;
    int a = cublaslt.MatrixLayoutCreate(&j->a, kind->type, k, n, s->k);
    int b = cublaslt.MatrixLayoutCreate(&j->b, kind->type, k, m, s->k);
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

/* Room for operand 0 (n rows in memory) or 1 (m rows) and its scales; a library from before those
 * are known is EXIT_CONFIG. */
static int make_room(struct gemm *g, const struct gemm_shape *s, struct err *err)
{
    const struct gemm_kind *kind = &gemm_kind[s->dtype];
    const size_t rows[2] = {(size_t)s->n, (size_t)s->m}, k = (size_t)s->k;

    if (kind->along && g->version < CUBLASLT_BLOCK_SCALING)
        return err_config(err, "no %s products in %s: scales of blocks came with 12.8",
                          gemm_dtype_name[s->dtype], g->name);
    for (int i = 0; i < 2; i++)
        if (room(&g->operand[i], (rows[i] * k * (size_t)kind->bits + 7) / 8, err) < 0 ||
            (kind->along && room(&g->scale[i], gemm_scale_bytes(kind, rows[i], k), err) < 0))
            return -1;
    return room(&g->product, rows[0] * rows[1] * 2, err);
}

static int fill_operands(struct gemm *g, const struct gemm_shape *s, gpu_stream stream,
                         struct err *err)
{
    const struct gemm_kind *kind = &gemm_kind[s->dtype];
    const size_t rows[2] = {(size_t)s->n, (size_t)s->m}, k = (size_t)s->k;

    random_block(g->block.at, kind->type);
    for (int i = 0; i < 2; i++)
        if (fill(&g->operand[i], (rows[i] * k * (size_t)kind->bits + 7) / 8, &g->block, stream,
                 err) < 0)
            return -1;
    if (gpu_wait(stream, err) < 0 || gemm_scale_fill(g, 0, kind, rows[0], k, stream, err) < 0)
        return -1;
    return gemm_scale_fill(g, 1, kind, rows[1], k, stream, err);
}

int gemm_prepare(struct gemm_job **out, struct gemm *g, const struct gemm_shape *s,
                 gpu_stream stream, struct err *err)
{
    struct gemm_job *j = mem_calloc(1, sizeof(*j));

    j->g = g;
    if (make_room(g, s, err) < 0 || describe(j, s, err) < 0 || choose(j, s, err) < 0 ||
        fill_operands(g, s, stream, err) < 0) {
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
