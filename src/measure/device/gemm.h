/* gemm.h - speed of matrix products on this GPU: cuBLASLt on given shapes.
 *
 *   C[m x n] = A[m x k] B[k x n]          row major, C in bf16, sums in fp32
 *   D[n x m] = op(B)[n x k] A[k x m]      the same in cuBLASLt's column-major terms
 *
 * The first operand is transposed.  fp8 products need this form on every GPU that supports them
 * (cuBLASLt documentation, cublasLtMatmul, "FP8 data types"; "TN format"), and a linear layer of
 * PyTorch has it.  Backward products are measured in this form as well.  The algorithm is the first
 * that the heuristics return, with a workspace of 64 MiB.
 *
 *   dtype   elements  scales                                 since
 *   bf16    bf16      none
 *   fp8     e4m3      a single 1 per operand, with fast accumulation
 *   mxfp8   e4m3      a UE8M0 for each 32 elements along k   cuBLASLt 12.8, compute capability 10.0
 *   nvfp4   e2m1      a UE4M3 for each 16, no global scale   the same
 *
 * (cuBLASLt documentation, "16/32-Element 1D Block Scaling for FP8 and FP4 Data Types"). */
#ifndef RG_GEMM_H
#define RG_GEMM_H

#include "base/err.h"
#include "base/stats.h"
#include "kernels/gpu.h"

enum gemm_dtype { GEMM_BF16, GEMM_FP8, GEMM_MXFP8, GEMM_NVFP4, GEMM_DTYPES };
extern const char *const gemm_dtype_name[GEMM_DTYPES]; /* "bf16", "fp8", "mxfp8", "nvfp4" */

struct gemm_shape {
    enum gemm_dtype dtype;
    int m, n, k;
};
/* Parse "bf16:8192x4096x4096,fp8:...".  EXIT_USAGE names the bad word.  The caller frees *out. */
int gemm_shapes_parse(struct gemm_shape **out, int *count, const char *text, struct err *err);

struct gemm; /* library, handle and workspace, on the GPU of gpu_open() */
/* EXIT_CONFIG with the names tried if there is no suitable library. */
int gemm_open(struct gemm **out, struct err *err);
void gemm_close(struct gemm *g);

/* A prepared product; gemm_enqueue() puts it into the stream.  `copies` matrices of weights take
 * turns, as those of routed experts do.  Operands hold pseudo-random values,
 * because zeros would need less power and let the clock run higher than training does.  Only one
 * job at a time, because jobs share the buffers of g.  EXIT_CONFIG: no algorithm for this shape or
 * dtype on this GPU. */
struct gemm_job;
int gemm_prepare(struct gemm_job **out, struct gemm *g, const struct gemm_shape *s, int copies,
                 gpu_stream stream, struct err *err);
int gemm_enqueue(struct gemm_job *j, gpu_stream stream, struct err *err);
void gemm_finish(struct gemm_job *j);

/* Verify a small product, including block scales: every element against sums made on the host.
 * EXIT_UNJUDGED with the element if one is wrong.  EXIT_CONFIG if the GPU or the library lacks the
 * dtype. */
int gemm_verify(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err);

#endif
