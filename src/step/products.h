/* products.h - the matrix products of a model, one by one: what is measured with cuBLASLt, and what
 * a step's linear layers are made of.
 *
 * C[m x n] = A[m x k] B[k x n], m tokens.  Matrices that read the same input are one product: q, k
 * and v, gate and up (Megatron-LM's fused qkv and fc1).  tp cuts the side that is not the vector
 * between layers.  Routed experts and routers are left out: grouped products of few tokens are
 * another thing, which these rates do not describe. */
#ifndef RG_PRODUCTS_H
#define RG_PRODUCTS_H

#include <stdbool.h>

#include "probe/gpu/gemm.h"
#include "step/model.h"
#include "step/work.h"

struct product {
    enum work_part part; /* WORK_LINEAR or WORK_HEAD */
    double m, n, k;      /* forward */
    double times;        /* how many of it a forward pass through the model has */
};
enum { PRODUCTS_MAX = 512 };

/* Returns how many.  m: tokens of a microbatch and context rank; at most PRODUCTS_MAX. */
int products_of(struct product out[PRODUCTS_MAX], const struct model *model, double tokens,
                double tp);

/* The three products that training makes of one: forward (m, n, k), the input's gradient (m, k, n)
 * and the weights' gradient (n, k, m). */
enum { PASS_FORWARD, PASS_INPUT, PASS_WEIGHTS, PASS_COUNT };
void product_pass(const struct product *p, int pass, double *m, double *n, double *k);

/* What to measure for these models ("llama3.1-8b,llama3.1-70b"): tp 1, 2, 4 and 8, microbatches of
 * 8192 tokens in all passes and of 2048 forward, in every dtype (the head bf16 only); each shape
 * once.  The caller frees *out. */
int products_shapes(struct gemm_shape **out, int *count, const char *models, struct err *err);

/* Shared with work_layer.c. Of a matrix the part that one of n tensor ranks holds. */
void product_cut(const struct weight *w, double whole, double n, double *in, double *out);
bool product_shares_input(const struct weight *w, const struct layer *k);

#endif
