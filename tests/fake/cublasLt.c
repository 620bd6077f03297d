/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for cuBLASLt: products of the form that railgauge asks for (first operand
 * transposed, column major, bf16 or e4m3 to bf16).  Small ones are computed; every one takes, by
 * the clock of the stand-in for the driver, what FAKE_GEMM says:
 *   FAKE_GEMM="bf16=7e11,fp8=1.3e12,half=64"    rate * least / (least + half) FLOP/s, where least
 *                                               is the smallest of m, n and k
 * (these are the defaults but for half=0).  fp8 needs sm 89.  FAKE_FAULT: product:RANK has wrong
 * products, slowgpu:RANK:1:FACTOR takes longer by that factor (fake_skip()). */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "probe/cublaslt_api.h"

enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15, SMALL = 1 << 20, SM_MAJOR = 75 };

struct cublaslt_context {
    int (*launch)(gpu_stream s, void (*fn)(void *), void *arg);
    void *(*host)(const void *device);
    bool (*fault)(const char *kind, int now, double *more);
    void (*skip)(double seconds);
    int sm;
};
struct cublaslt_desc {
    int transa, transb;
};
struct cublaslt_layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
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
    return 130100;
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

int cublasLtMatmulDescSetAttribute(cublaslt_desc d, int attribute, const void *value, size_t size)
{
    if (attribute == CUBLASLT_DESC_FAST_ACCUM)
        return size == 1 ? CUBLASLT_SUCCESS : INVALID_VALUE;
    if (size != sizeof(int32_t) ||
        (attribute != CUBLASLT_DESC_TRANSA && attribute != CUBLASLT_DESC_TRANSB))
        return INVALID_VALUE;
    memcpy(attribute == CUBLASLT_DESC_TRANSA ? &d->transa : &d->transb, value, size);
    return CUBLASLT_SUCCESS;
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

/* Shapes that fit each other, and what the real library asks of fp8: multiples of 16. */
static int judge(cublaslt_handle h, cublaslt_desc d, cublaslt_layout a, cublaslt_layout b,
                 cublaslt_layout out)
{
    bool fp8 = a->type == CUBLASLT_R_8F_E4M3;
    uint64_t n = a->cols, m = b->cols, k = a->rows;

    if (d->transa != CUBLASLT_OP_T || d->transb != CUBLASLT_OP_N || a->type != b->type ||
        (!fp8 && a->type != CUBLASLT_R_16BF) || out->type != CUBLASLT_R_16BF ||
        (fp8 && (h->sm < 89 || n % 16 || m % 16 || k % 16)))
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

static double element(const unsigned char *at, bool fp8, size_t i)
{
    uint32_t bits;
    uint16_t half;
    float value;

    if (fp8) { /* 1 sign, 4 exponent, 3 mantissa bits, bias 7 */
        int e = at[i] >> 3 & 15, f = at[i] & 7;
        double v = e ? ldexp(8 + f, e - 10) : ldexp(f, -9);
        return at[i] >> 7 ? -v : v;
    }
    memcpy(&half, at + 2 * i, 2);
    bits = (uint32_t)half << 16;
    memcpy(&value, &bits, 4);
    return (double)value;
}

static void put_bf16(unsigned char *at, size_t i, double value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, 4);
    bits += 0x7fff + (bits >> 16 & 1); /* to nearest, ties to even */
    uint16_t half = (uint16_t)(bits >> 16);
    memcpy(at + 2 * i, &half, 2);
}

struct task {
    cublaslt_handle h;
    const void *a, *b;
    void *out;
    struct cublaslt_layout al, bl, ol;
};

static void compute(const struct task *t)
{
    const unsigned char *a = t->h->host(t->a), *b = t->h->host(t->b);
    bool fp8 = t->al.type == CUBLASLT_R_8F_E4M3;
    unsigned char *out = t->h->host(t->out);

    for (size_t m = 0; m < t->bl.cols; m++)
        for (size_t n = 0; n < t->al.cols; n++) {
            double sum = 0;
            for (size_t k = 0; k < t->al.rows; k++)
                sum += element(a, fp8, n * (size_t)t->al.ld + k) *
                       element(b, fp8, m * (size_t)t->bl.ld + k);
            put_bf16(out, m * (size_t)t->ol.ld + n, sum);
        }
    if (t->h->fault("product", 1, NULL))
        put_bf16(out, 5, 77);
}

/* KEY=VALUE of FAKE_GEMM. */
static double setting(const char *key, double otherwise)
{
    const char *text = getenv("FAKE_GEMM");
    size_t len = strlen(key);

    for (; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        if (!strncmp(text, key, len) && text[len] == '=')
            return atof(text + len + 1);
    return otherwise;
}

static void run(void *arg)
{
    struct task *t = arg;
    double m = (double)t->bl.cols, n = (double)t->al.cols, k = (double)t->al.rows;
    double least = fmin(m, fmin(n, k)), half = setting("half", 0);
    bool fp8 = t->al.type == CUBLASLT_R_8F_E4M3;
    double rate = fp8 ? setting("fp8", 1.3e12) : setting("bf16", 7e11);

    if (m * n * k <= SMALL)
        compute(t);
    t->h->skip(2 * m * n * k / (rate * least / (least + half)));
    free(t);
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
        (workspace_bytes && !workspace))
        return INVALID_VALUE;
    if (rc)
        return rc;
    struct task *t = malloc(sizeof(*t));
    *t = (struct task){h, a, b, out, *a_layout, *b_layout, *out_layout};
    return h->launch(stream, run, t) ? NOT_INITIALIZED : CUBLASLT_SUCCESS;
}
