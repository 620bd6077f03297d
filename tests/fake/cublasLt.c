/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for cuBLASLt: products of the form that railgauge asks for (first operand
 * transposed, column major, bf16, e4m3 or e2m1 to bf16, with scales of blocks or without).  Small
 * ones are computed; every one takes, by the clock of the stand-in for the driver, what FAKE_GEMM
 * says:
 *   FAKE_GEMM="bf16=7e11,fp8=1.3e12,half=64"    rate * least / (least + half) FLOP/s, where least
 *                                               is the smallest of m, n and k
 *   FAKE_GEMM="mxfp8=1.3e12,nvfp4=2.6e12"       the same
 *   FAKE_GEMM="version=120600"                  before 12.8 no mode of scales is known
 * (these are the defaults but for half=0 and version=130100).  fp8 needs sm 89, scales of blocks sm
 * 100.  Memory of operands, scales and product is touched at both ends, and scales outside of the
 * matrix that are not zero spoil the product.  FAKE_FAULT: product:RANK has wrong products,
 * scales:RANK leaves the scales out, slowgpu:RANK:1:FACTOR takes longer by that factor
 * (fake_skip()). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cublasLt_fake.h"
#include "fake.h"

enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15, SM_MAJOR = 75 };

struct cublaslt_desc {
    int32_t trans[2], mode[2];
    const unsigned char *scale[2];
    int8_t fast;
};
struct cublaslt_preference {
    size_t workspace;
};

size_t cublasLtGetVersion(void);
const char *cublasLtGetStatusName(int status);
int cublasLtCreate(cublaslt_handle *out);
int cublasLtDestroy(cublaslt_handle h);
int cublasLtMatmulDescCreate(cublaslt_desc *out, int compute, int scale);
int cublasLtMatmulDescDestroy(cublaslt_desc d);
int cublasLtMatmulDescSetAttribute(cublaslt_desc d, int attribute, const void *value, size_t size);
int cublasLtMatrixLayoutCreate(cublaslt_layout *out, int type, uint64_t rows, uint64_t cols,
                               int64_t ld);
int cublasLtMatrixLayoutDestroy(cublaslt_layout l);
int cublasLtMatmulPreferenceCreate(cublaslt_preference *out);
int cublasLtMatmulPreferenceDestroy(cublaslt_preference p);
int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference p, int attribute, const void *value,
                                         size_t size);
int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle h, cublaslt_desc d, cublaslt_layout a,
                                   cublaslt_layout b, cublaslt_layout c, cublaslt_layout out,
                                   cublaslt_preference p, int asked, struct cublaslt_found *found,
                                   int *count);
int cublasLtMatmul(cublaslt_handle h, cublaslt_desc d, const void *alpha, const void *a,
                   cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout,
                   const void *beta, const void *c, cublaslt_layout c_layout, void *out,
                   cublaslt_layout out_layout, const struct cublaslt_algo *algo, void *workspace,
                   size_t workspace_bytes, gpu_stream stream);

size_t cublasLtGetVersion(void)
{
    return (size_t)lt_setting("version", 130100);
}

const char *cublasLtGetStatusName(int status)
{
    return status == NOT_SUPPORTED     ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == INVALID_VALUE   ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
                                       : "CUBLAS_STATUS_SUCCESS";
}

static int find(void *driver, const char *name, void *out)
{
    void *symbol = dlsym(driver, name);

    memcpy(out, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/* In the context that the program has made, as the real one. */
int cublasLtCreate(cublaslt_handle *out)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    struct cublaslt_context *h = calloc(1, sizeof(*h));
    int (*device)(int *), (*attribute)(int *, int, int), at = 0, minor = 0;

    if (!driver || !find(driver, "cuLaunchHostFunc", &h->launch) ||
        !find(driver, "fake_host", &h->host) || !find(driver, "fake_fault", &h->fault) ||
        !find(driver, "fake_skip", &h->skip) || !find(driver, "cuCtxGetDevice", &device) ||
        !find(driver, "cuDeviceGetAttribute", &attribute) || device(&at) ||
        attribute(&h->sm, SM_MAJOR, at) || attribute(&minor, SM_MAJOR + 1, at)) {
        free(h);
        return NOT_INITIALIZED;
    }
    h->sm = 10 * h->sm + minor;
    *out = h;
    return CUBLASLT_SUCCESS;
}

int cublasLtDestroy(cublaslt_handle h)
{
    free(h);
    return CUBLASLT_SUCCESS;
}

int cublasLtMatmulDescCreate(cublaslt_desc *out, int compute, int scale)
{
    if (compute != CUBLASLT_COMPUTE_32F || scale != CUBLASLT_R_32F)
        return NOT_SUPPORTED;
    *out = calloc(1, sizeof(**out));
    return CUBLASLT_SUCCESS;
}

int cublasLtMatmulDescDestroy(cublaslt_desc d)
{
    free(d);
    return CUBLASLT_SUCCESS;
}

static const struct {
    int attribute;
    size_t at, size, since;
} attributes[] = {
    {CUBLASLT_DESC_TRANSA, offsetof(struct cublaslt_desc, trans[0]), 4, 0},
    {CUBLASLT_DESC_TRANSB, offsetof(struct cublaslt_desc, trans[1]), 4, 0},
    {CUBLASLT_DESC_FAST_ACCUM, offsetof(struct cublaslt_desc, fast), 1, 0},
    {CUBLASLT_DESC_A_SCALE_POINTER, offsetof(struct cublaslt_desc, scale[0]), 8, 0},
    {CUBLASLT_DESC_B_SCALE_POINTER, offsetof(struct cublaslt_desc, scale[1]), 8, 0},
    {CUBLASLT_DESC_A_SCALE_MODE, offsetof(struct cublaslt_desc, mode[0]), 4, 120800},
    {CUBLASLT_DESC_B_SCALE_MODE, offsetof(struct cublaslt_desc, mode[1]), 4, 120800},
};

int cublasLtMatmulDescSetAttribute(cublaslt_desc d, int attribute, const void *value, size_t size)
{
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
        if (attributes[i].attribute == attribute) {
            if (size != attributes[i].size || cublasLtGetVersion() < attributes[i].since)
                return INVALID_VALUE;
            memcpy((unsigned char *)d + attributes[i].at, value, size);
            return CUBLASLT_SUCCESS;
        }
    return INVALID_VALUE;
}

int cublasLtMatrixLayoutCreate(cublaslt_layout *out, int type, uint64_t rows, uint64_t cols,
                               int64_t ld)
{
    *out = calloc(1, sizeof(**out));
    **out = (struct cublaslt_layout){type, rows, cols, ld};
    return CUBLASLT_SUCCESS;
}

int cublasLtMatrixLayoutDestroy(cublaslt_layout l)
{
    free(l);
    return CUBLASLT_SUCCESS;
}

int cublasLtMatmulPreferenceCreate(cublaslt_preference *out)
{
    *out = calloc(1, sizeof(**out));
    return CUBLASLT_SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(cublaslt_preference p)
{
    free(p);
    return CUBLASLT_SUCCESS;
}

int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference p, int attribute, const void *value,
                                         size_t size)
{
    if (attribute != CUBLASLT_PREF_MAX_WORKSPACE || size != sizeof(p->workspace))
        return INVALID_VALUE;
    memcpy(&p->workspace, value, size);
    return CUBLASLT_SUCCESS;
}

/* What A and B may be; lines of memory and rows of C are multiples of 16 bytes but for bf16, where
 * that is only faster (documentation of cublasLtMatmul, the lists of requirements). */
static const struct lt_format formats[] = {
    {"bf16", CUBLASLT_R_16BF, 16, CUBLASLT_SCALE_SCALAR_32F, 0, 80, 1, 1, 7e11},
    {"fp8", CUBLASLT_R_8F_E4M3, 8, CUBLASLT_SCALE_SCALAR_32F, 0, 89, 16, 16, 1.3e12},
    {"mxfp8", CUBLASLT_R_8F_E4M3, 8, CUBLASLT_SCALE_VEC32_UE8M0, 32, 100, 16, 16, 1.3e12},
    {"nvfp4", CUBLASLT_R_4F_E2M1, 4, CUBLASLT_SCALE_VEC16_UE4M3, 16, 100, 16, 32, 2.6e12},
};

static const struct lt_format *format_of(int type, int mode)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (formats[i].type == type && formats[i].mode == mode)
            return &formats[i];
    return NULL;
}

/* The real library says "The scaling mode for A scale (VEC16_UE4M3) requires a custom pointer" and
 * INVALID_VALUE (NVIDIA/CUDALibrarySamples issue 274); addresses are multiples of 16 (its
 * documentation, "1D Block Scaling Factors Layout"). */
static bool scales_are_there(const cublaslt_desc d)
{
    for (int i = 0; i < 2; i++)
        if (!d->scale[i] || (uintptr_t)d->scale[i] % 16)
            return false;
    return true;
}

static int judge(cublaslt_handle h, cublaslt_desc d, cublaslt_layout a, cublaslt_layout b,
                 cublaslt_layout out)
{
    const struct lt_format *f = format_of(a->type, d->mode[0]);
    uint64_t n = a->cols, m = b->cols, k = a->rows;

    if (f && f->along && !scales_are_there(d))
        return INVALID_VALUE;
    if (!f || h->sm < f->sm || d->mode[1] != f->mode || b->type != f->type ||
        out->type != CUBLASLT_R_16BF || d->trans[0] != CUBLASLT_OP_T ||
        d->trans[1] != CUBLASLT_OP_N || n % f->m || m % f->m || k % f->k)
        return NOT_SUPPORTED;
    if (b->rows != k || out->rows != n || out->cols != m || a->ld < (int64_t)k ||
        b->ld < (int64_t)k || out->ld < (int64_t)n)
        return INVALID_VALUE;
    return CUBLASLT_SUCCESS;
}

int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle h, cublaslt_desc d, cublaslt_layout a,
                                   cublaslt_layout b, cublaslt_layout c, cublaslt_layout out,
                                   cublaslt_preference p, int asked, struct cublaslt_found *found,
                                   int *count)
{
    int rc = judge(h, d, a, b, out);

    (void)c;
    if (asked < 1 || !p->workspace)
        return INVALID_VALUE;
    *count = rc == CUBLASLT_SUCCESS;
    memset(found, 0, sizeof(*found));
    found->algo.data[0] = 1;
    return rc;
}

int cublasLtMatmul(cublaslt_handle h, cublaslt_desc d, const void *alpha, const void *a,
                   cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout,
                   const void *beta, const void *c, cublaslt_layout c_layout, void *out,
                   cublaslt_layout out_layout, const struct cublaslt_algo *algo, void *workspace,
                   size_t workspace_bytes, gpu_stream stream)
{
    int rc = judge(h, d, a_layout, b_layout, out_layout);

    (void)c, (void)c_layout;
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || algo->data[0] != 1 ||
        (workspace_bytes && !workspace) || (uintptr_t)a % 16 || (uintptr_t)b % 16 ||
        (uintptr_t)out % 16)
        return INVALID_VALUE;
    if (rc)
        return rc;
    struct lt_task *t = malloc(sizeof(*t));
    *t = (struct lt_task){h,          format_of(a_layout->type, d->mode[0]),
                          {a, b},     {d->scale[0], d->scale[1]},
                          out,        {*a_layout, *b_layout},
                          *out_layout};
    return h->launch(stream, lt_run, t) ? NOT_INITIALIZED : CUBLASLT_SUCCESS;
}
