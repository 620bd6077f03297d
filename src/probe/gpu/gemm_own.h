/* gemm_own.h - the inside of gemm.h: what its files share. */
#ifndef RG_GEMM_OWN_H
#define RG_GEMM_OWN_H

#include "probe/gpu/cublaslt_api.h"
#include "probe/gpu/gemm.h"

enum { GEMM_BLOCK = 1 << 20 }; /* bytes that go to the GPU at a time */

struct gemm_kind {
    int type, bits;      /* of A and B; of an element */
    int along;           /* elements along k that share a scale; 0: there are no such scales */
    int mode;            /* cublasLtMatmulMatrixScale_t */
    int scale_one, step; /* code of a scale of 1, and how much larger that of its double is */
};
extern const struct gemm_kind gemm_kind[GEMM_DTYPES];

struct gemm {
    cublaslt_handle handle;
    int version;
    struct gpu_buffer workspace, operand[2], scale[2], product, block; /* block: pinned */
    char name[64];
};

/* --- gemm_scale.c: the scales of an operand of rows x k --- */
unsigned gemm_mix(size_t row, size_t column); /* the upper bits are as good as random */
size_t gemm_scale_bytes(const struct gemm_kind *kind, size_t rows, size_t k);
/* The scale of a block is two to this power: -1, 0 or 1, in no order. */
int gemm_scale_power(int operand, size_t row, size_t block);
/* All of them into g->scale[operand], through g->block, which must be idle; waits. */
int gemm_scale_fill(struct gemm *g, int operand, const struct gemm_kind *kind, size_t rows,
                    size_t k, gpu_stream stream, struct err *err);

#endif
