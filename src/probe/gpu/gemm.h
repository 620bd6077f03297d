/* gemm.h - how fast this GPU multiplies matrices: cuBLASLt on given shapes.
 *
 *   C[m x n] = A[m x k] B[k x n]          row major, C in bf16, sums in fp32
 *   D[n x m] = op(B)[n x k] A[k x m]      the same in cuBLASLt's column-major words
 *
 * with the first operand transposed, the form that fp8 products must have on every GPU that has
 * them (cuBLASLt documentation, cublasLtMatmul, "FP8 data types"; "TN format") and that a linear
 * layer of PyTorch has.  Backward products are measured in that form as well.  The algorithm is
 * the first that the heuristics name, with a workspace of 64 MiB.
 *
 *   dtype   elements  scales                                 since
 *   bf16    bf16      none
 *   fp8     e4m3      one of 1 for each operand, with fast accumulation
 *   mxfp8   e4m3      a UE8M0 for each 32 elements along k   cuBLASLt 12.8, compute capability 10.0
 *   nvfp4   e2m1      a UE4M3 for each 16, none of the whole the same
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
/* "bf16:8192x4096x4096,fp8:..."; EXIT_USAGE names the word.  The caller frees *out. */
int gemm_shapes_parse(struct gemm_shape **out, int *count, const char *text, struct err *err);

struct gemm; /* the library, a handle and a workspace, in the GPU of gpu_open() */
/* No library, or none that fits: EXIT_CONFIG with the names that were tried. */
int gemm_open(struct gemm **out, struct err *err);
void gemm_close(struct gemm *g);

/* One product, prepared: gemm_enqueue() puts it into the stream.  Operands hold pseudo-random values:
 * zeros would need less power and let the clock run higher than training does.  One job at a time
 * (they share the buffers of g).  A shape or dtype without an algorithm on this GPU: EXIT_CONFIG.
 */
struct gemm_job;
int gemm_prepare(struct gemm_job **out, struct gemm *g, const struct gemm_shape *s,
                 gpu_stream stream, struct err *err);
int gemm_enqueue(struct gemm_job *j, gpu_stream stream, struct err *err);
void gemm_finish(struct gemm_job *j);

/* Is a small product right, scales of blocks and all?  Every element against sums
 * made on the host; wrong: EXIT_UNJUDGED with the element.  A dtype that this GPU or this library
 * has not: EXIT_CONFIG. */
int gemm_verify(struct gemm *g, enum gemm_dtype dtype, gpu_stream stream, struct err *err);

#endif
