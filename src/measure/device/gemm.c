/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/device/gemm.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "measure/device/cublaslt_api.h"

enum { WORKSPACE = 64 << 20 };
enum { BLOCK = 1 << 20 }; /* bytes sent to the GPU at a time */

struct gemm_kind {
    int type, bits;      /* type of A and B; bits per element */
    int along;           /* elements along k that share a scale; 0: no block scales */
    int mode;            /* cublasLtMatmulMatrixScale_t */
    int scale_one, step; /* code of scale 1; distance to the code of twice a scale */
};

struct gemm {
    cublaslt_handle handle;
    int version;
    struct gpu_buffer workspace, operand[2], scale[2], product, block; /* block: pinned */
    char name[96];
};

static const struct gemm_kind gemm_kind[GEMM_DTYPES] = {
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
    size_t step; /* bytes from one matrix of weights to the next */
    int copies, turn;
};

/* --- the library --- */

/* Set the message "what: CUBLAS_STATUS_NOT_SUPPORTED". */
static int check(int status, const char *what, struct err *err)
{
    if (status == CUBLASLT_SUCCESS)
        return 0;
    return err_io(err, "%s: %s (%d)", what, cublaslt.GetStatusName(status), status);
}

static void note_library(const struct gemm *g)
{
    char text[sizeof(cublaslt.path) + sizeof(g->name)];

    snprintf(text, sizeof(text), "%d.%d.%d (%s)", g->version / 10000, g->version / 100 % 100,
             g->version % 100, cublaslt.path);
    json_provenance_add("cublaslt", text);
}

int gemm_open(struct gemm **out, struct err *err)
{
    if (cublaslt_load(err) < 0)
        return -1;
    struct gemm *g = mem_calloc(1, sizeof(*g));

    g->version = (int)cublaslt.GetVersion();
    snprintf(g->name, sizeof(g->name), "%s, %d.%d.%d", cublaslt.name, g->version / 10000,
             g->version / 100 % 100, g->version % 100);
    note_library(g);
    if (check(cublaslt.Create(&g->handle), "cublasLtCreate", err) < 0 ||
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

static int room(struct gpu_buffer *b, size_t bytes, struct err *err)
{
    if (b->at && b->bytes >= bytes)
        return 0;
    gpu_free(b);
    return gpu_alloc(b, GPU_PLAIN, bytes, err);
}

/* bf16 and e4m3: values of both signs between 1/8 and 2, with all mantissas, so that nothing
 * overflows and bits toggle as with real weights.  In e2m1 every code is a number. */
static void random_block(unsigned char *p, int type)
{
    struct rng rng;

    rng_seed(&rng, 1 + (unsigned long long)type);
    for (size_t i = 0; i < BLOCK; i += 2) {
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

/* Write the block once, then keep doubling it. */
static int fill(struct gpu_buffer *b, size_t bytes, const struct gpu_buffer *block, gpu_stream s,
                struct err *err)
{
    size_t have = bytes < BLOCK ? bytes : BLOCK;
    int rc = gpu_memcpy(b->at, block->at, have, s, err);

    while (rc == 0 && have < bytes) {
        size_t more = bytes - have < have ? bytes - have : have;
        rc = gpu_memcpy(b->at + have, b->at, more, s, err);
        have += more;
    }
    return rc;
}

/* --- block scales of an operand of rows x k ---
 *
 * Scales are stored in the order in which the tensor cores read them (cuBLASLt documentation, "1D
 * Block Scaling Factors Layout"): tiles of 128 rows by 4 blocks, tile after tile along k.  Inside a
 * tile the scale of row r and block b is at r % 32 * 16 + r / 32 * 4 + b.  Scales outside the
 * matrix are zero. */

enum { TILE_ROWS = 128, TILE_BLOCKS = 4, TILE = TILE_ROWS * TILE_BLOCKS };

static size_t parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

static size_t tiles_along(const struct gemm_kind *kind, size_t k)
{
    return parts(parts(k, (size_t)kind->along), TILE_BLOCKS);
}

static size_t scale_bytes(const struct gemm_kind *kind, size_t rows, size_t k)
{
    return kind->along ? parts(rows, TILE_ROWS) * tiles_along(kind, k) * TILE : 0;
}

/* Hash both by multiplication, then mix the upper half into the lower and multiply again: the upper
 * bits are as good as random. */
static unsigned mix(size_t row, size_t column)
{
    unsigned mixed = (unsigned)row * 2654435761u ^ (unsigned)column * 2246822519u;

    return (mixed ^ mixed >> 15) * 3266489917u;
}

/* Exponent of a block's scale (base two): pseudo-random, -1, 0 or 1. */
static int scale_power(int operand, size_t row, size_t block)
{
    return (int)(mix(row, block) >> 31) - operand;
}

/* Scales of an operand's blocks. */
struct scales {
    const struct gemm_kind *kind;
    int operand;
    size_t rows, blocks; /* blocks of a row */
};

static void put_tile(unsigned char *at, const struct scales *s, size_t row, size_t block)
{
    for (size_t r = 0; r < TILE_ROWS; r++)
        for (size_t b = 0; b < TILE_BLOCKS; b++) {
            bool inside = row + r < s->rows && block + b < s->blocks;
            int power = scale_power(s->operand, row + r, block + b);
            int code = s->kind->scale_one + s->kind->step * power;
            at[r % 32 * 16 + r / 32 * 4 + b] = (unsigned char)(inside ? code : 0);
        }
}

/* Fill g->scale[operand] through g->block, which must be idle; waits. */
static int fill_scales(struct gemm *g, int operand, const struct gemm_shape *shape,
                       gpu_stream stream, struct err *err)
{
    const struct gemm_kind *kind = &gemm_kind[shape->dtype];
    const size_t rows = (size_t)(operand ? shape->m : shape->n), k = (size_t)shape->k;

    if (!kind->along)
        return 0;
    const struct scales s = {kind, operand, rows, parts(k, (size_t)kind->along)};
    const size_t along = tiles_along(kind, k), tiles = scale_bytes(kind, rows, k) / TILE;

    for (size_t t = 0, n; t < tiles; t += n) {
        n = tiles - t < BLOCK / TILE ? tiles - t : BLOCK / TILE;
        for (size_t i = 0; i < n; i++)
            put_tile(g->block.at + i * TILE, &s, (t + i) / along * TILE_ROWS,
                     (t + i) % along * TILE_BLOCKS);
        if (gpu_memcpy(g->scale[operand].at + t * TILE, g->block.at, n * TILE, stream, err) < 0 ||
            gpu_stream_wait(stream, err) < 0)
            return -1;
    }
    return 0;
}

/* --- one product --- */

static int set_flag(cublaslt_desc d, int attribute, const void *value, size_t size, struct err *err)
{
    return check(cublaslt.MatmulDescSetAttribute(d, attribute, value, size),
                 "cublasLtMatmulDescSetAttribute", err);
}

/* The heuristics reject modes whose pointers are not set yet. */
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

    if (check(cublaslt.MatmulDescCreate(&j->desc, CUBLASLT_COMPUTE_32F, CUBLASLT_R_32F),
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
    return check(a ? a : b ? b : c, "cublasLtMatrixLayoutCreate", err);
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
    return err_config(err, "%s has no %s product %dx%dx%d for this GPU: %s", cublaslt.name,
                      gemm_dtype_name[s->dtype], s->m, s->n, s->k,
                      cublaslt.GetStatusName(status ? status : j->found.state));
}

/* Returns the bytes of operand 0 or 1.  Matrices start where the heuristics expect them, at
 * multiples of 256 bytes. */
static size_t operand_bytes(const struct gemm_shape *s, int operand)
{
    size_t rows = (size_t)(operand ? s->m : s->n), bits = (size_t)gemm_kind[s->dtype].bits;

    return parts(parts(rows * (size_t)s->k * bits, 8), 256) * 256;
}

/* Make room for operand 0 (n rows in memory) or 1 (m rows) and its scales.  EXIT_CONFIG if the
 * library is too old for block scales. */
static int make_room(struct gemm *g, const struct gemm_shape *s, size_t copies, struct err *err)
{
    const struct gemm_kind *kind = &gemm_kind[s->dtype];
    const size_t rows[2] = {(size_t)s->n, (size_t)s->m}, k = (size_t)s->k;

    if (kind->along && g->version < CUBLASLT_BLOCK_SCALING)
        return err_config(err, "no %s products in %s: scales of blocks came with 12.8",
                          gemm_dtype_name[s->dtype], g->name);
    for (int i = 0; i < 2; i++)
        if (room(&g->operand[i], operand_bytes(s, i) * (i ? 1 : copies), err) < 0 ||
            (kind->along && room(&g->scale[i], scale_bytes(kind, rows[i], k), err) < 0))
            return -1;
    return room(&g->product, rows[0] * rows[1] * 2, err);
}

static int fill_operands(struct gemm *g, const struct gemm_shape *s, size_t copies,
                         gpu_stream stream, struct err *err)
{
    const struct gemm_kind *kind = &gemm_kind[s->dtype];

    random_block(g->block.at, kind->type);
    for (int i = 0; i < 2; i++)
        if (fill(&g->operand[i], operand_bytes(s, i) * (i ? 1 : copies), &g->block, stream, err) <
            0)
            return -1;
    if (gpu_stream_wait(stream, err) < 0 || fill_scales(g, 0, s, stream, err) < 0)
        return -1;
    return fill_scales(g, 1, s, stream, err);
}

int gemm_prepare(struct gemm_job **out, struct gemm *g, const struct gemm_shape *s, int copies,
                 gpu_stream stream, struct err *err)
{
    struct gemm_job *j = mem_calloc(1, sizeof(*j));

    j->g = g;
    j->copies = copies;
    j->step = operand_bytes(s, 0);
    if (make_room(g, s, (size_t)copies, err) < 0 || describe(j, s, err) < 0 ||
        choose(j, s, err) < 0 || fill_operands(g, s, (size_t)copies, stream, err) < 0) {
        gemm_finish(j);
        return -1;
    }
    *out = j;
    return 0;
}

int gemm_enqueue(struct gemm_job *j, gpu_stream stream, struct err *err)
{
    const float one = 1, zero = 0;
    struct gemm *g = j->g;
    const unsigned char *weights = g->operand[0].at + j->step * (size_t)(j->turn++ % j->copies);

    return check(cublaslt.Matmul(g->handle, j->desc, &one, weights, j->a, g->operand[1].at, j->b,
                                 &zero, g->product.at, j->c, g->product.at, j->c, &j->found.algo,
                                 g->workspace.at, WORKSPACE, stream),
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

/* --- a product with known elements ---
 *
 * Operand 0 holds a 1 or -1 in every eighth element; operand 1 holds -1, 0, 1 and 2.  Blocks have
 * scales of 1 and 2, and of 1/2 and 1.  All sums are multiples of 1/2 up to 128, which the 8 bits
 * of bf16 hold exactly, whatever the order and grouping of the additions.  144 and 160 rows and 256
 * along k give more than one tile of scales each way, and partly filled tiles. */

enum { M = 144, N = 160, K = 256 };
static const int rows_of[2] = {N, M}; /* operand 0 is transposed in memory */

static int value_of(int operand, int row, int k)
{
    int random = (int)(mix((size_t)row, (size_t)(k + K)) >> 30);

    if (operand)
        return random - 1;
    return (row + k) % 8 ? 0 : random / 2 * 2 - 1;
}

/* Value that the GPU should read, including the scale. */
static float read_of(int operand, enum gemm_dtype dtype, int row, int k)
{
    int along = gemm_kind[dtype].along;
    int power = along ? scale_power(operand, (size_t)row, (size_t)(k / along)) : 0;

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
    else /* the even element is in the lower half */
        block[i / 2] = (unsigned char)(i % 2 ? block[i / 2] | code << 4 : code);
}

static int put_operands(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err)
{
    for (int operand = 0; operand < 2; operand++) {
        size_t bytes = (size_t)rows_of[operand] * K * (size_t)gemm_kind[dtype].bits / 8;
        for (int row = 0; row < rows_of[operand]; row++)
            for (int k = 0; k < K; k++)
                put_value(g->block.at, dtype, (size_t)(row * K + k), value_of(operand, row, k));
        if (gpu_memcpy(g->operand[operand].at, g->block.at, bytes, stream, err) < 0 ||
            gpu_stream_wait(stream, err) < 0)
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
    int rc = gemm_prepare(&j, g, &small, 1, stream, err);

    if (rc == 0)
        rc = put_operands(g, dtype, stream, err);
    if (rc == 0) /* NaN, so that a correct result of an earlier dtype does not remain */
        rc = gpu_memset(g->product.at, 0xff, 2 * M * N, stream, err);
    if (rc == 0)
        rc = gemm_enqueue(j, stream, err);
    if (rc == 0)
        rc = gpu_memcpy(g->block.at, g->product.at, 2 * M * N, stream, err);
    if (rc == 0)
        rc = gpu_stream_wait(stream, err);
    if (rc == 0)
        rc = check_product(g->block.at, dtype, err);
    gemm_finish(j);
    return rc;
}
