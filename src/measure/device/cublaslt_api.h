/* cublaslt_api.h - functions of libcublasLt that gemm.c calls, loaded when first needed.
 *
 * Own declarations, after the documentation of cuBLASLt and cublasLt.h of CUDA 13 (numbers of
 * enumerators; structures by size).  The program is built without CUDA and runs with the library of
 * CUDA 13 or 12, whose functions below are the same.  tests/unit/cublaslt_abi.c compares the
 * declarations with the headers if those are installed. */
#ifndef RG_CUBLASLT_API_H
#define RG_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/gpu.h"

enum { CUBLASLT_SUCCESS = 0 }; /* cublasStatus_t */
enum {                         /* cudaDataType_t */
       CUBLASLT_R_32F = 0,
       CUBLASLT_R_16BF = 14,
       CUBLASLT_R_8F_E4M3 = 28,
       CUBLASLT_R_4F_E2M1 = 33
};
enum { CUBLASLT_COMPUTE_32F = 68 };            /* cublasComputeType_t */
enum { CUBLASLT_OP_N = 0, CUBLASLT_OP_T = 1 }; /* cublasOperation_t */
enum { /* cublasLtMatmulDescAttributes_t; the scale modes since 12.8 */
       CUBLASLT_DESC_TRANSA = 3,
       CUBLASLT_DESC_TRANSB = 4,
       CUBLASLT_DESC_A_SCALE_POINTER = 17,
       CUBLASLT_DESC_B_SCALE_POINTER = 18,
       CUBLASLT_DESC_FAST_ACCUM = 25,
       CUBLASLT_DESC_A_SCALE_MODE = 31,
       CUBLASLT_DESC_B_SCALE_MODE = 32
};
enum { /* cublasLtMatmulMatrixScale_t */
       CUBLASLT_SCALE_SCALAR_32F = 0,
       CUBLASLT_SCALE_VEC16_UE4M3 = 1,
       CUBLASLT_SCALE_VEC32_UE8M0 = 2
};
enum { CUBLASLT_BLOCK_SCALING = 120800 }; /* GetVersion() of the first release with block scaling */
enum { CUBLASLT_PREF_MAX_WORKSPACE = 1 };

typedef struct cublaslt_context *cublaslt_handle;
typedef struct cublaslt_desc *cublaslt_desc; /* created and destroyed by the library */
typedef struct cublaslt_layout *cublaslt_layout;
typedef struct cublaslt_preference *cublaslt_preference;

struct cublaslt_algo { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
};

struct cublaslt_found { /* cublasLtMatmulHeuristicResult_t */
    struct cublaslt_algo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

/* For each function: name after "cublasLt", return type and arguments.  GetVersion() returns 130100
 * for 13.1.0. */
// clang-format off
#define CUBLASLT_CALLS(CALL)                                                                       \
    CALL(GetVersion, size_t, (void))                                                               \
    CALL(GetStatusName, const char *, (int status))                                                \
    CALL(Create, int, (cublaslt_handle *out))                                                      \
    CALL(Destroy, int, (cublaslt_handle h))                                                        \
    CALL(MatmulDescCreate, int, (cublaslt_desc *out, int compute, int scale))                      \
    CALL(MatmulDescDestroy, int, (cublaslt_desc d))                                                \
    CALL(MatmulDescSetAttribute, int, (cublaslt_desc d, int attribute, const void *value,          \
         size_t size))                                                                             \
    CALL(MatrixLayoutCreate, int, (cublaslt_layout *out, int type, uint64_t rows, uint64_t cols,   \
         int64_t ld))                                                                              \
    CALL(MatrixLayoutDestroy, int, (cublaslt_layout l))                                            \
    CALL(MatmulPreferenceCreate, int, (cublaslt_preference *out))                                  \
    CALL(MatmulPreferenceDestroy, int, (cublaslt_preference p))                                    \
    CALL(MatmulPreferenceSetAttribute, int, (cublaslt_preference p, int attribute,                 \
         const void *value, size_t size))                                                          \
    CALL(MatmulAlgoGetHeuristic, int, (cublaslt_handle h, cublaslt_desc d, cublaslt_layout a,      \
         cublaslt_layout b, cublaslt_layout c, cublaslt_layout out, cublaslt_preference p,         \
         int asked, struct cublaslt_found *found, int *count))                                     \
    CALL(Matmul, int, (cublaslt_handle h, cublaslt_desc d, const void *alpha, const void *a,       \
         cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout, const void *beta,      \
         const void *c, cublaslt_layout c_layout, void *out, cublaslt_layout out_layout,           \
         const struct cublaslt_algo *algo, void *workspace, size_t workspace_bytes,                \
         gpu_stream stream))
// clang-format on

struct cublaslt_api {
    int version;    /* 130100; 0: not loaded */
    char name[64];  /* "libcublasLt.so.13" */
    char path[512]; /* path of the loaded file */
    const char *by; /* source of the path: library_find() */
#define CUBLASLT_MEMBER(name, type, arguments) type(*name) arguments;
    CUBLASLT_CALLS(CUBLASLT_MEMBER)
};

/* Load libcublasLt.so.13, else .12 (libraries.h), once per process; the library is never unloaded.
 * EXIT_CONFIG: the loader's message and the places searched, or a named file is of a newer CUDA
 * than the driver. */
extern struct cublaslt_api cublaslt;
int cublaslt_load(struct err *err);

#endif
