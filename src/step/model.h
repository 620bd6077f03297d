/* model.h - a transformer as numbers: parameters, FLOPs per token, and the matrices of each layer.
 *
 * jobs/training/models/NAME.json lists kinds of layers with counts.  A layer is a mixer (attention
 * or state space) and an MLP (dense or experts), each with a norm before it; either may be "none".
 * Each "kind" is a row of the tables in model.c (keys) and model_params.c (matrices).
 *
 *   parameters, h hidden, d per head, n heads, k of them with keys, f width of an MLP, E experts
 *   gqa         h d (2n + 2k)
 *   mla         latents instead of keys and values     DeepSeek-V2 2024, 2.1
 *   csa         compressed sparse attention            DeepSeek-V4; Megatron-Bridge
 *                                                      training/utils/flop_utils.py
 *   mamba2      gate, scan and convolution             Dao and Gu 2024
 *   swiglu      3 h f; plain 2 h f
 *   experts     E times the MLP's, a router E h, shared experts beside
 *
 *   training FLOPs per token
 *   products    6 per active parameter                 Kaplan et al. 2020, 2.1
 *   attention   12 n d per visible key                 Narayanan et al. 2021, appendix;
 *               Megatron-LM num_floating_point_operations
 *
 * Left out, because below 0.1 %: norms of queries and keys, attention sinks, biases of norms and of
 * expert selection. */
#ifndef RG_MODEL_H
#define RG_MODEL_H

#include <stdbool.h>

#include "base/err.h"

enum mixer_kind { MIXER_GQA, MIXER_MLA, MIXER_CSA, MIXER_MAMBA2, MIXER_NONE, MIXER_COUNT };

struct attention {
    enum mixer_kind kind;
    int heads;    /* none: 0 */
    int kv_heads; /* gqa; mla: = heads; csa: 1, both key and value; mamba2 and none: 0 */
    int head_dim; /* mla: nope_dim + rope_dim */
    int window;   /* gqa, mla, csa: tokens visible to a token, including itself; 0: all */
    int q_rank, kv_rank, nope_dim, rope_dim, v_dim; /* mla; q_rank 0: queries are not compressed */
    int o_rank, o_groups; /* csa, and q_rank: the output goes through groups of this rank */
    int ratio;            /* csa: tokens merged into one outside the window; 0: only the window */
    /* csa: selection of those merged tokens; 0: all of them */
    int index_heads, index_dim, index_topk;
    int state, groups, conv; /* mamba2; conv: width of the convolution */
    bool bias;               /* biases of the projections */
};

enum mlp_kind { MLP_SWIGLU, MLP_PLAIN, MLP_NONE, MLP_COUNT };
extern const char *const mlp_name[MLP_COUNT]; /* "swiglu": three matrices, "plain": two, "none" */

struct mlp {
    enum mlp_kind kind;
    int ffn;        /* width; width of one expert if there are experts */
    int experts;    /* routed, 0: dense */
    int topk;       /* experts a token goes to */
    int shared_ffn; /* total width of the shared experts; 0: none */
    int latent;     /* routed experts work on a projection of this width, 0: on hidden */
    int groups;     /* equal groups of experts for node-limited routing; 0: no limit */
    int nodes_max;  /* a token goes to at most this many of the groups; 0: any */
    bool bias;
};

/* One matrix of a layer, or several equal ones. */
enum weight_part {
    WEIGHT_MIXER,
    WEIGHT_MLP,
    WEIGHT_EXPERTS,
    WEIGHT_SHARED,
    WEIGHT_ROUTER,
    WEIGHT_COUNT
};
extern const char *const weight_part_name[WEIGHT_COUNT]; /* "mixer", "mlp", "experts", ... */

struct weight {
    const char *name; /* "q", "down", ... */
    enum weight_part part;
    double in, out;
    double copies, active; /* number that exist; number used by one token */
    bool bias;
    bool shares_input; /* same product as the row before: k and v with q, up with gate */
};
enum { LAYER_WEIGHTS = 24 }; /* no layer has more rows */

/* Parameters of one layer, in all its experts if it has any.  lora_*: parameters of adapters per
 * unit of their rank, the sum of in + out over the matrices they belong to. */
struct layer_sums {
    double total, active, expert; /* active: used by one token; expert: in routed experts */
    double matmul, matmul_expert; /* active parameters, without biases */
    double lora_mixer, lora_mlp, lora_expert; /* lora_mlp: dense MLP and shared experts */
};

struct layer {
    int count; /* equal layers of this kind */
    struct attention attention;
    struct mlp mlp;
    /* Listed and summed once by model_load(), because searches use them a million times. */
    struct weight weight[LAYER_WEIGHTS];
    int weights;
    struct layer_sums sums;
};

enum { MODEL_KINDS_MAX = 64 };

struct model {
    char *name, *title, *source;
    int hidden, vocab;
    bool tied;     /* one matrix is both embedding and output head */
    int positions; /* number of learned position embeddings; 0: none */
    struct layer *layer;
    int kinds;  /* entries of layer[] */
    int layers; /* sum of counts, without mtp */
    /* Multi-token prediction: `count` more layers, each with the head again; 0: none.  No figure
     * below includes them except mtp_*(). */
    struct layer mtp;
    bool mtp_shared; /* these layers share the weights of one */
};

/* Returns kind i of 0..m->kinds; the last is multi-token prediction. */
static inline const struct layer *model_kind(const struct model *m, int i)
{
    return i < m->kinds ? &m->layer[i] : &m->mtp;
}

/* Load a model.  name: a file (has a '/' or ends in .json) or a shipped model; a file may be a
 * config.json of Hugging Face Transformers.  Call model_free() even after an error. */
int model_load(struct model *m, const char *name, struct err *err);
void model_free(struct model *m);
/* Returns the number of shipped models; *names: their names, sorted.  The caller frees each name
 * and the list. */
void model_each(name_taker *take, void *to); /* calls take() for each shipped name */
int model_names(char ***names);

struct params {
    double total;
    double active;    /* used by one token: topk of the experts */
    double expert;    /* routed experts: sharded by ep, not by dp x cp */
    double embedding; /* input embedding, positions and output head */
    double head;      /* output head alone (its matrix may be the tied one) */
    double layers;    /* all layers */
    /* Active parameters in matrix products: no input embedding, norms or biases; with the head. */
    double matmul;
};
void model_params(const struct model *m, struct params *p);
/* List and sum the matrices of l. */
void layer_list(struct layer *l, const struct model *m);
bool model_has_experts(const struct model *m); /* true if a layer has routed experts */
/* Each of these layers has a layer, a 2h*h matrix that joins two streams, and 3 norms (DeepSeek-V3,
 * 2024, 2.2). */
double mtp_params(const struct model *m);
/* Returns the trainable parameters of LoRA adapters of this rank on the attention projections (q,
 * k, v, o), and on the MLPs too if mlp: r*(in + out) per matrix (Hu et al. 2021, 4.1).  The router
 * has none. */
double model_lora_params(const struct model *m, int rank, bool mlp);

/* FLOPs per token, forward and backward (backward = 2 forward).  causal: count only keys under the
 * mask, on average s/2 of s tokens, and w (1 - w/2s) if attention slides over w < s.  The other
 * convention counts twice that core. */
struct flops {
    double linear; /* matrix products with parameters, without the head */
    double expert; /* part of linear in routed experts */
    double head;   /* the output head */
    double core;   /* scores and their product with V; scan of mamba2 in both conventions */
};
void model_flops(const struct model *m, int seq, bool causal, struct flops *f);
double layer_core_flops(const struct layer *l, int seq, bool causal);
/* One layer without a head. */
static inline void layer_flops(const struct layer *l, int seq, bool causal, struct flops *f)
{
    f->linear = 6 * l->sums.matmul;
    f->expert = 6 * l->sums.matmul_expert;
    f->head = 0;
    f->core = layer_core_flops(l, seq, causal);
}
void mtp_flops(const struct model *m, int seq, bool causal, struct flops *f);

/* linear (with expert) + head + core */
static inline double flops_total(const struct flops *f)
{
    return f->linear + f->head + f->core;
}

/* Spread of a token's copies over an ep group: topk of `experts`, placed evenly and in order on
 * `ranks`.  Only groups_max of `groups` equal groups of experts are used (0: any). */
struct routing {
    int ranks, experts, topk, groups, groups_max;
    int domains_max; /* domains per token at most, from the recipe; 0: any */
};
/* Returns the expected number of parts, each of `members` adjacent ranks of the group, in which a
 * token has an expert, for even routing, including the sender's own.  Without limited groups and
 * with e experts per part: (ranks / members) (1 - C(E-e, k) / C(E, k)). */
double routing_parts(const struct routing *r, int members);

struct json_t;
/* Convert a config.json of Hugging Face Transformers to the format of jobs/training/models.
 * Returns a new reference.  NULL with EXIT_DATA if it has features that no layer there can express
 * (linear attention, block lists).  path is for messages. */
struct json_t *model_from_hf(struct json_t *config, const char *path, struct err *err);

#endif
