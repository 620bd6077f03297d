/* work.h - what one rank computes: matrix products, attention core, memory traffic and kernels of
 * one microbatch.
 *
 * Nothing here knows about time: timing.h divides by rates.  Forward FLOPs are 2 per multiply-add;
 * backward is, of the forward's products,
 *
 *   inputs' gradient   1
 *   weights' gradient  1, frozen 0                  Hu et al. 2021
 *   recomputed         1 full; 0 selective (the attention core once more: Korthikanti et al. 2022,
 *                      5); 1/2 selective of torchtitan, with what lies between
 *                      (torchtitan distributed/activation_checkpoint.py)
 *
 * and of the attention core 2.5: a flash kernel makes the scores once more.
 *
 * Bytes are counted operation by operation: what a norm, a gate or a cast reads and writes if
 * nothing stays in cache. */
#ifndef RG_WORK_H
#define RG_WORK_H

#include "probe/gpu/gemm.h"
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

/* One rank and microbatch, all chunks of one pipeline stage. */
struct stage_work {
    double forward[WORK_PARTS], backward[WORK_PARTS];
};

struct work {
    struct stage_work mean;  /* over the stages of a pipeline */
    struct stage_work other; /* the fullest stage that does not hold the head */
    struct stage_work last;  /* the stage that does; with one stage all three agree */
    double weights; /* of the forward products, what weights' gradients take: 1, frozen 0 */
};

/* How often backward repeats forward's products, and what lies between them. */
double work_recomputed(const struct recipe *r);

/* One microbatch of one layer of each kind, and of what the last stage has more: whatever the
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
 * What is measured with cuBLASLt, and what a step's linear layers are made of: C[m x n] =
 * A[m x k] B[k x n], m tokens.  Matrices that read the same input are one product: q, k and v, gate
 * and up (Megatron-LM's fused qkv and fc1).  tp cuts the side that is not the vector between
 * layers.  Routed experts and routers are left out: grouped products of few tokens are another
 * thing, which these rates do not describe. */
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

static inline void product_pass(const struct product *p, int pass, double *m, double *n, double *k)
{
    *m = pass == PASS_WEIGHTS ? p->n : p->m;
    *n = pass == PASS_FORWARD ? p->n : p->k;
    *k = pass == PASS_FORWARD ? p->k : pass == PASS_INPUT ? p->n : p->m;
}

/* What to measure for these models ("llama3.1-8b,llama3.1-70b"): tp 1, 2, 4 and 8, microbatches of
 * 8192 tokens in all passes and of 2048 forward, in every dtype (the head bf16 only); each shape
 * once.  The caller frees *out. */
int products_shapes(struct gemm_shape **out, int *count, const char *models, struct err *err);

#endif
