/* work.h - computation of one rank: matrix products, attention core, memory traffic and kernels of
 * one microbatch.
 *
 * This file knows no times: timing.h divides by rates.  Forward FLOPs are 2 per multiply-add;
 * backward is, as a multiple of the forward products,
 *
 *   inputs' gradient   1
 *   weights' gradient  1, frozen 0                  Hu et al. 2021
 *   recomputed         1 full; 0 selective (only the attention core again: Korthikanti et al.
 *                      2022, 5); 1/2 selective of torchtitan, with everything between products
 *                      (torchtitan distributed/activation_checkpoint.py)
 *
 * and 2.5 for the attention core, because a flash kernel computes the scores again.
 *
 * Bytes are counted per operation: reads and writes of a norm, a gate or a cast if nothing stays in
 * cache. */
#ifndef RG_WORK_H
#define RG_WORK_H

#include "measure/device/device.h"
#include "step/step.h"

enum work_part {
    WORK_LINEAR,   /* products with weights of layers, FLOPs */
    WORK_EXPERT,   /* products of routed experts, FLOPs */
    WORK_HEAD,     /* the output head, FLOPs */
    WORK_CORE,     /* attention core, FLOPs */
    WORK_SCAN,     /* scan of state-space layers, FLOPs */
    WORK_OPERANDS, /* tokens that products of experts read and write, bytes */
    WORK_MEMORY,   /* norms, residuals, gates, casts, sorting, loss: bytes to and from memory */
    WORK_WEIGHTS,  /* gradients summed, gathered weights copied, once a microbatch, bytes */
    WORK_LAUNCH,   /* kernels */
    WORK_PARTS
};
extern const char *const work_name[WORK_PARTS]; /* "matrix products", "routed experts", ... */

/* One rank and microbatch, with all chunks of one pipeline stage. */
struct stage_work {
    double forward[WORK_PARTS], backward[WORK_PARTS];
};

struct work {
    struct stage_work mean;  /* mean of the stages of a pipeline */
    struct stage_work other; /* fullest stage without the head */
    struct stage_work last;  /* stage with the head; with one stage all three are equal */
    double weights;          /* weights' gradients / forward products: 1, frozen 0 */
};

/* Backward pass over forward pass of the attention core: a kernel that keeps no scores computes
 * them again backward, 5 products to forward's 2 (Dao 2023, FlashAttention-2, 3.1.2). */
#define WORK_FLASH_BACKWARD 2.5

/* Time of a kernel in a CUDA graph over the time of one started alone: 0.5 of about 5 us (Gray 2019,
 * Getting Started with CUDA Graphs: 3.4 us per kernel that computes for 2.9). */
#define WORK_GRAPHED 0.1

/* Returns how often backward repeats forward's products, and the work between them. */
double work_recomputed(const struct recipe *r);

/* One microbatch of one layer of each kind, and the extra work of the last stage, for any
 * schedule. */
struct work_layers {
    struct stage_work layer[MODEL_KINDS_MAX], head, mtp;
};
/* Allocate nothing. */
void work_layers_of(struct work_layers *k, const struct step *s);
void work_stages(struct work *w, const struct work_layers *k, const struct step *s);
static inline void work_of(struct work *w, const struct step *s)
{
    struct work_layers k;

    work_layers_of(&k, s);
    work_stages(w, &k, s);
}

/* --- the matrix products of a model, one by one --- *
 *
 * Products measured with cuBLASLt, and used by a step's linear layers: C[m x n] = A[m x k] B[k x
 * n], m tokens.  Matrices with the same input are one product: q, k and v, gate and up
 * (Megatron-LM's fused qkv and fc1).  tp cuts the side that is not the vector between layers.
 * Routed experts and routers are left out, because these rates do not describe grouped products of
 * few tokens. */
struct product {
    enum work_part part; /* WORK_LINEAR or WORK_HEAD */
    double m, n, k;      /* forward */
    double times;        /* number in a forward pass through the model */
};
enum { PRODUCTS_MAX = 512 };

/* Traffic of one kind between products, or products of experts, in a forward pass. */
struct kernel_work {
    enum device_kind kind;
    double m, n, k, times;
    double bytes; /* per element of m x n; products of experts: 0 */
};
enum { KERNELS_MAX = 4 * 64 + 1 };
struct step;
/* List them for one rank and microbatch.  Returns their number, at most KERNELS_MAX. */
int kernels_of(struct kernel_work out[KERNELS_MAX], const struct step *s);

/* Returns the number of products, at most PRODUCTS_MAX.  tokens: m, per microbatch and context
 * rank. */
int products_of(struct product out[PRODUCTS_MAX], const struct model *model, double tokens,
                double tp);

/* The three products of training: forward (m, n, k), the input's gradient (m, k, n) and the
 * weights' gradient (n, k, m). */
enum { PASS_FORWARD, PASS_INPUT, PASS_WEIGHTS, PASS_COUNT };

static inline void product_pass(const struct product *p, int pass, double *m, double *n, double *k)
{
    *m = pass == PASS_WEIGHTS ? p->n : p->m;
    *n = pass == PASS_FORWARD ? p->n : p->k;
    *k = pass == PASS_FORWARD ? p->k : pass == PASS_INPUT ? p->n : p->m;
}

/* List the shapes to measure for these models ("llama3.1-8b,llama3.1-70b"), each once.  Products: tp
 * 1, 2, 4 and 8, microbatches of 8192 tokens in all passes and of 2048 forward, in every dtype (the
 * head bf16 only).  Kernels: the others.  count: of both.  The caller frees both lists. */
int work_shapes(struct gemm_shape **products, struct device_kernel **kernels, int count[2],
                const char *models, struct err *err);

#endif
