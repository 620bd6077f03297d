/* model.h - a transformer as numbers: parameters, FLOPs per token, and what one layer costs.
 *
 * jobs/training/models/NAME.json lists kinds of layers with counts.  A layer is attention + MLP +
 * two norms; both halves have a "kind" so that further kinds (experts, latent attention) are rows
 * of the tables in model.c.  Formulas: parameter counts as in the published configurations
 * (grouped-query attention h*d*(2n + 2k), SwiGLU 3*h*f, else 2*h*f); training FLOPs 6 per matmul
 * parameter and token (Kaplan et al. 2020, 2.1) plus the attention core 12*n*d*s, halved by a
 * causal mask (Narayanan et al. 2021, appendix; Megatron-LM num_floating_point_operations). */
#ifndef RG_MODEL_H
#define RG_MODEL_H

#include <stdbool.h>

#include "base/err.h"

enum mlp_kind { MLP_SWIGLU, MLP_PLAIN, MLP_COUNT };
extern const char *const mlp_name[MLP_COUNT]; /* "swiglu": three matrices, "plain": two */

struct attention {
    int heads, kv_heads, head_dim;
};

struct mlp {
    enum mlp_kind kind;
    int ffn;
};

struct layer {
    int count; /* equal layers of this kind */
    struct attention attention;
    struct mlp mlp;
};

struct model {
    char *name, *title, *source;
    int hidden, vocab;
    bool tied; /* one matrix is embedding and output head */
    struct layer *layer;
    int kinds;  /* entries of layer[] */
    int layers; /* sum of counts */
};

/* name: a file (has a '/' or ends in .json) or a shipped model.  model_free() also after an error.
 */
int model_load(struct model *m, const char *name, struct err *err);
void model_free(struct model *m);

struct params {
    double total;
    double embedding; /* input embedding and output head */
    double layers;    /* all layers */
    double matmul; /* takes part in matrix products: no input embedding, no norms; with the head */
};
void model_params(const struct model *m, struct params *p);
double layer_params(const struct model *m, const struct layer *l);

/* Per token, forward and backward (backward = 2 forward).  causal: only the lower triangle of the
 * attention scores is computed and counted; the other convention counts twice the core. */
struct flops {
    double linear; /* matrix products with parameters */
    double core;   /* scores and their product with V */
};
void model_flops(const struct model *m, int seq, bool causal, struct flops *f);
void layer_flops(const struct model *m, const struct layer *l, int seq, bool causal,
                 struct flops *f);

#endif
