/* matrix_compute.h - compute and memory rates of single devices in the cost matrix.
 *
 * Measured by `railgauge probe --compute` and put together by fit/compute.c: medians over devices
 * that are as fast as the others.  matrix.json keeps it as "compute"; a single FLOP/s, which hosts
 * without GPUs have, is the other form. */
#ifndef RG_MATRIX_COMPUTE_H
#define RG_MATRIX_COMPUTE_H

#include <jansson.h>
#include <stdlib.h>

#include "base/err.h"

/* Products of one shape, C[m x n] = A[m x k] B[k x n], or kernels of another kind (device.h). */
struct gemm_rate {
    char kind[24]; /* "grouped", "norm", ...; "": a product */
    char dtype[8]; /* "bf16", "fp8", "mxfp8", "nvfp4" */
    double m, n, k;
    /* FLOP/s, median over devices; a multiply-add counts as two.  B/s of kinds that move memory. */
    double flops;
    double share;  /* share of the data-sheet peak; 0: peak not known */
    double spread; /* MAD over devices, share of the median */
    int devices;
};

/* Other figures of one device; B/s except the last three. */
enum alone {
    ALONE_HBM,      /* copy engine, device to device: bytes read and bytes written both count */
    ALONE_HBM_READ, /* a kernel that reads all of it */
    ALONE_H2D,      /* from page-locked host memory, and back */
    ALONE_D2H,
    ALONE_LATENCY,      /* s of a load that waits for the one before */
    ALONE_LAUNCH,       /* s of a kernel that does next to nothing, in a row of such */
    ALONE_LAUNCH_GRAPH, /* the same in a CUDA graph */
    ALONE_COUNT
};

struct compute_rates {
    double flops;        /* FLOP/s a device reaches whatever it multiplies, 0: not known */
    double flops_spread; /* standard deviation from run to run, as a share; 0: not known */
    char *source;
    double alone[ALONE_COUNT]; /* 0: not measured */
    double share[ALONE_COUNT]; /* share of the hardware limit; 0: limit not known */
    int devices;               /* healthy ones behind these figures */
    struct gemm_rate *gemm;
    int gemms;
    struct gemm_rate *kernel; /* kernels other than products, by kind and shape */
    int kernels;
};

static inline void compute_free(struct compute_rates *c)
{
    free(c->source);
    free(c->gemm);
    free(c->kernel);
    *c = (struct compute_rates){.source = NULL};
}
/* new reference; NULL when there is nothing to say */
json_t *compute_pack(const struct compute_rates *c);
int compute_unpack(struct compute_rates *c, json_t *value, const char *where, struct err *err);

/* Rate of a kernel of this kind, dtype and shape; 0: kind or dtype was not measured.
 *
 *   rate     exp(sum w ln r / sum w), over the four nearest shapes of the dtype; of a shape that was
 *            measured its own
 *   error    sqrt(0.02^2 + spread^2 + var + (0.02 d)^2), a share, one standard deviation
 *
 *   symbol   meaning                                                           unit
 *   r        rate of a measured shape                                          FLOP/s
 *   d        distance to it over m, n and k: how many tiles fill the           octaves
 *            multiprocessors, and how long a tile's inner loop is, change
 *            by factors [NVIDIA, Matrix Multiplication Background User's
 *            Guide, tile and wave quantization]; in error that of the nearest
 *   w        its weight, 1 / d^2
 *   spread   what devices differ by at the nearest shape                       share
 *   var      what ln r of the four differ by
 *   0.02     what a clock does from one minute to the next, and an octave */
double compute_rate(const struct compute_rates *c, const struct gemm_rate *asked, double *error);

#endif
