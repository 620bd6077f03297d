/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the facts in cublaslt_api.h those of the cublasLt.h that is installed here?  The compiler
 * decides while it builds this file; without the header there is nothing to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "measure/device/cublaslt_api.h"

#if defined(__has_include)
#if __has_include(<cublasLt.h>) && __has_include(<cuda_runtime.h>)
#include <cublasLt.h>
#endif
#endif

#ifdef CUBLAS_VERSION

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(CUBLASLT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(CUBLASLT_R_32F, CUDA_R_32F);
SAME(CUBLASLT_R_16BF, CUDA_R_16BF);
SAME(CUBLASLT_R_8F_E4M3, CUDA_R_8F_E4M3);
SAME(CUBLASLT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(CUBLASLT_OP_N, CUBLAS_OP_N);
SAME(CUBLASLT_OP_T, CUBLAS_OP_T);
SAME(CUBLASLT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLASLT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLASLT_DESC_FAST_ACCUM, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
SAME(CUBLASLT_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(CUBLASLT_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
#if CUBLAS_VERSION >= 120800
SAME(CUBLASLT_R_4F_E2M1, CUDA_R_4F_E2M1);
SAME(CUBLASLT_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
SAME(CUBLASLT_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
SAME(CUBLASLT_SCALE_SCALAR_32F, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
SAME(CUBLASLT_SCALE_VEC16_UE4M3, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
SAME(CUBLASLT_SCALE_VEC32_UE8M0, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
#endif
SAME(CUBLASLT_PREF_MAX_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(sizeof(struct cublaslt_algo), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(struct cublaslt_found), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(struct cublaslt_found, workspace),
     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(struct cublaslt_found, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

/* Pointers to the library's functions must be of the types that they are called by, but for names
 * of types: the compiler compares sizes of what is passed. */
static void the_functions_take_what_they_are_given(void **state)
{
    (void)state;
    assert_int_equal(sizeof(cudaDataType), sizeof(int));
    assert_int_equal(sizeof(cublasComputeType_t), sizeof(int));
    assert_int_equal(sizeof(cublasStatus_t), sizeof(int));
    assert_int_equal(sizeof(cublasLtMatmulDescAttributes_t), sizeof(int));
#if CUBLAS_VERSION >= 120800
    assert_int_equal(sizeof(cublasLtMatmulMatrixScale_t), sizeof(int32_t));
#endif
    assert_int_equal(sizeof(cublasLtMatmulPreferenceAttributes_t), sizeof(int));
}

#else

static void the_functions_take_what_they_are_given(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_functions_take_what_they_are_given)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
