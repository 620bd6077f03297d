/* recipe.h - settings of a step other than its mesh: batch, sequence, precision, recompute,
 * schedule, software.
 *
 * Each setting is a row of one table of arguments (recipe.c).  Command-line options, case files,
 * anchors, batch tables and search constraints set it by the same key and words. */
#ifndef RG_RECIPE_H
#define RG_RECIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* States that the data-parallel ranks share out (Rajbhandari et al. 2020, ZeRO; Zhao et al. 2023,
 * FSDP). */
enum strategy {
    STRATEGY_DDP,   /* nothing: gradients are summed */
    STRATEGY_ZERO1, /* optimizer states */
    STRATEGY_ZERO2, /* and also gradients */
    STRATEGY_ZERO3, /* and also weights */
    STRATEGY_FSDP,  /* as ZeRO-3, layers gathered ahead of use, gradients reduced in fp32 */
    STRATEGY_HSDP,  /* FSDP inside dp_shard, all_reduce over dp_replicate */
    STRATEGY_COUNT
};

/* Bubble of p stages with v chunks each; forward F, backward of inputs B and of weights W, of one
 * microbatch:
 *
 *   1f1b         (p-1) (F+B+W)
 *   interleaved  (p-1) (F+B+W) / v              Narayanan et al. 2021, 2.2
 *   zb-h1        (p-1) (F+B-W)                  Qi et al. 2023, table 2
 *   zb-h2        (p-1) (F+B-2W)                 the same
 *   dualpipe     (p/2-1) (F + B+W + B - 2W)     both directions beside each other; DeepSeek-V3 2024,
 *                                               table 2 */
enum schedule {
    SCHEDULE_1F1B,
    SCHEDULE_INTERLEAVED,
    SCHEDULE_ZB_H1,
    SCHEDULE_ZB_H2,
    SCHEDULE_DUALPIPE,
    SCHEDULE_COUNT
};

/* fp16 computes as bf16 does, mxfp8 as fp8 with other scales; each has constants of its own. */
enum dtype { DTYPE_FP32, DTYPE_BF16, DTYPE_FP8, DTYPE_MXFP8, DTYPE_NVFP4, DTYPE_COUNT };

enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_COUNT };

/* Ways for attention to see the whole sequence if cp shards it: keys and values travel a ring (Liu
 * et al. 2023), heads and sequence swap their sharding (Jacobs et al. 2023, DeepSpeed Ulysses), or
 * keys and values are gathered (Llama 3, 3.3.2). */
enum context { CONTEXT_RING, CONTEXT_ULYSSES, CONTEXT_GATHER, CONTEXT_COUNT };

/* Adapters trained beside frozen weights (Hu et al. 2021): on the attention's projections, or on
 * every linear layer. */
enum lora { LORA_NONE, LORA_ATTENTION, LORA_ALL, LORA_COUNT };

/* Software that trains: a name for defaults of the facts below that decide a step's time.  hf:
 * Transformers with DeepSpeed or FSDP, as started by LLaMA-Factory and TRL. */
enum stack { STACK_MEGATRON, STACK_TORCHTITAN, STACK_EAGER, STACK_HF, STACK_COUNT };

/* Kernels between products (norms, activations, rotary embedding, loss): of a library that fuses
 * them (Transformer Engine, Apex), compiled (torch.compile), or separate, one per operation. */
enum pointwise {
    POINTWISE_STACK,
    POINTWISE_LIBRARY,
    POINTWISE_COMPILED,
    POINTWISE_SEPARATE,
    POINTWISE_COUNT
};

/* Kernel of flash attention: made for Hopper and later (cuDNN, FlashAttention 3 and 4), or
 * FlashAttention 2 (Dao 2023), which PyTorch's scaled_dot_product_attention has too. */
enum flash { FLASH_STACK, FLASH_NEW, FLASH_2, FLASH_COUNT };

/* Splitting of products so that their tp messages run beside the other parts.  stack: default of
 * the software (recipe_overlaps_tp). */
enum tp_overlap { TP_OVERLAP_STACK, TP_OVERLAP_ON, TP_OVERLAP_OFF, TP_OVERLAP_COUNT };

/* Implementation of the attention core: one kernel that keeps scores on the chip (Dao et al. 2022),
 * products with a fused kernel for scale, mask and softmax between them (Megatron-LM
 * core/fusions/fused_softmax.py), or one kernel per operation.  The latter two compute all scores,
 * masked or not, and pass them through memory. */
enum kernels { KERNELS_FLASH, KERNELS_FUSED, KERNELS_UNFUSED, KERNELS_COUNT };

/* Overlap of gradient and weight messages with compute.  stack: default of the software
 * (recipe_overlaps_dp). */
enum dp_overlap { DP_OVERLAP_STACK, DP_OVERLAP_ON, DP_OVERLAP_OFF, DP_OVERLAP_COUNT };

/* Quantity that pipeline stages share evenly: layers, or multiplications including those of the
 * head (nanotron models/base.py, get_block_compute_costs: a stage takes layers until it passes its
 * share). */
enum stage_split { STAGE_SPLIT_LAYERS, STAGE_SPLIT_COST, STAGE_SPLIT_COUNT };

/* Code that shards optimizer states (ZeRO).  stack: DeepSpeed's for hf, else the stack's own. */
enum zero_engine { ZERO_ENGINE_STACK, ZERO_ENGINE_DEEPSPEED, ZERO_ENGINE_COUNT };

/* Time at which FSDP reduces gradients: after each microbatch, so that a rank keeps only its shard,
 * or after the last, so that it keeps all gradients until then (set_requires_gradient_sync of
 * FSDP2, no_sync of FSDP). */
enum grad_sync { GRAD_SYNC_EACH, GRAD_SYNC_LAST, GRAD_SYNC_COUNT };

/* Growing segments of PyTorch's allocator (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
 * stack: on in torchtitan (run_train.sh).  NVIDIA's recipes for Megatron set it, Megatron-LM does
 * not. */
enum segments { SEGMENTS_STACK, SEGMENTS_ON, SEGMENTS_OFF, SEGMENTS_COUNT };

/* Library that moves tokens to experts. */
enum dispatch { DISPATCH_NCCL, DISPATCH_KERNEL, DISPATCH_COUNT };

/* Kernels that start as part of a CUDA graph: none, those of a layer except its routed experts
 * (Megatron-LM cuda_graph_scope attn, moe_router, moe_preprocess), or all of a step
 * (full_iteration). */
enum cuda_graphs { CUDA_GRAPHS_OFF, CUDA_GRAPHS_LAYERS, CUDA_GRAPHS_STEP, CUDA_GRAPHS_COUNT };

/* Words of the enums in options and files. */
struct recipe_names {
    const char *strategy[STRATEGY_COUNT], *schedule[SCHEDULE_COUNT], *dtype[DTYPE_COUNT];
    const char *recompute[RECOMPUTE_COUNT], *context[CONTEXT_COUNT], *lora[LORA_COUNT];
    const char *stack[STACK_COUNT], *tp_overlap[TP_OVERLAP_COUNT], *dp_overlap[DP_OVERLAP_COUNT];
    const char *pointwise[POINTWISE_COUNT], *flash[FLASH_COUNT];
    const char *attention[KERNELS_COUNT], *stage_split[STAGE_SPLIT_COUNT];
    const char *zero_engine[ZERO_ENGINE_COUNT], *segments[SEGMENTS_COUNT];
    const char *grad_sync[GRAD_SYNC_COUNT];
    const char *dispatch[DISPATCH_COUNT]; /* "nccl": all_to_all, "kernel": DeepEP, HybridEP */
    const char *cuda_graphs[CUDA_GRAPHS_COUNT];
};
extern const struct recipe_names recipe_name;

struct recipe {
    /* Sequences per microbatch.  First, with the next two, because a search changes it most
     * often. */
    int micro_batch;
    int stages;   /* v: model chunks per pipeline rank; 1 unless interleaved */
    int schedule; /* values of the enums above; also the next three lines */
    int strategy, dtype, recompute, context, lora, stack, dispatch;
    int tp_overlap, dp_overlap, attention, cuda_graphs;
    int pointwise, flash;
    int stage_split, zero_engine, segments, grad_sync;
    int seq;          /* tokens of a sequence */
    int global_batch; /* sequences of a step; 0: layout_check() chooses and says so */
    int lora_rank;
    /* Layers of a pipeline rank that full recompute computes again; 0: all. */
    int recompute_layers;
    int ulysses; /* ranks of cp that swap heads and tokens inside a ring of the others; 0: none */
    int route_nodes;        /* domains per token's experts at most; 0: from the model's routing */
    bool causal;            /* attention convention of FLOPs that are executed */
    bool sequence_parallel; /* tp shards activations between the products too */
    bool loss_parallel;     /* tp shares out logits in the loss */
    bool prefetch;   /* fsdp: the next layer's weights are gathered beside this one's compute */
    bool reshard;    /* fsdp: weights are dropped after forward and gathered again */
    bool ep_overlap; /* all_to_all of one microbatch beside compute of another */
    bool mtp;        /* the model's multi-token prediction layers are trained too */
    /* Products of experts are one grouped kernel with gate and casts, and tokens are sorted while
     * cast. */
    bool moe_fusion;
    bool fp8_attention;  /* the attention core multiplies in fp8 */
    double power_limit;  /* W a GPU may take; 0: as in its data sheet */
    double memory_rate;  /* TB/s of the GPU's memory; 0: as in its data sheet */
    double frozen_bytes; /* of a frozen weight in memory and on the wire; 0: as products read it */
    double weight_bytes, grad_bytes; /* per parameter on the wire; 0: default of the strategy */
    double state_bytes;              /* per weight and its moments in the optimizer; 0: 12, fp32 */
    double dispatch_bytes, combine_bytes; /* per element to experts and back: 2, or 1 for fp8 */
    double eval_seconds, checkpoint_seconds, fixed_seconds; /* added to a step, on average */
};

/* bf16, sequence 8192, micro batch 1, no recompute, 1F1B, FSDP, causal, Megatron. */
void recipe_defaults(struct recipe *r);

/* --- arguments: members of a struct with a key, set by options and files --- */

enum argument_kind {
    ARGUMENT_TEXT, /* pointer, borrowed */
    ARGUMENT_INT,
    ARGUMENT_DOUBLE,
    ARGUMENT_SECONDS,
    ARGUMENT_SWITCH, /* on, off */
    ARGUMENT_WORD    /* word of a list */
};
/* Group of --help, and its part with this headline. */
struct argument_group {
    const char *name, *headline;
};
struct argument {
    const char *key; /* "micro-batch" */
    enum argument_kind kind;
    size_t at; /* offset in the struct */
    double min, max;
    const char *const *words;
    int count;
    const char *arg, *help;
    const struct argument_group *group; /* in --help; NULL: among the own options of a command */
    int letter;                         /* short option; 0: none */
};
/* Arguments of struct recipe; an empty row ends the table. */
extern const struct argument recipe_argument[];

/* True if the keys are equal; "--stages-per-rank" equals "stages_per_rank".  have: as spelled in a
 * table. */
bool argument_is(const char *have, const char *given);
/* Returns the row of a table with this key, or NULL. */
const struct argument *argument_find(const struct argument *table, const char *key);
/* Set one argument.  EXIT_USAGE: a bad value; the message states the allowed ones. */
int argument_set(void *of, const struct argument *a, const char *value, struct err *err);
/* Returns the value as text: "any" for a word left open by a search (-1), "" for a missing text. */
char *argument_get(char *buf, int size, const void *of, const struct argument *a);
/* True if the value is not the default: a text, a nonzero number or not the first word. */
bool argument_given(const void *of, const struct argument *a);
/* Set by key.  EXIT_USAGE: an unknown key; the message lists the known ones. */
int recipe_set(struct recipe *r, const char *key, const char *value, struct err *err);
/* Set the error 'setting "x" is not known' with the keys of all tables.  Returns -1. */
int argument_unknown(const char *key, const struct argument *const *tables, int n, struct err *err);

/* Returns the index of `word` among n names, or -1 with 'strategy "x" is not known (known:
 * ...)'. */
int recipe_word(const char *what, const char *word, const char *const *names, int n,
                struct err *err);
/* Check for contradictions (stages without interleaving, ...).  `stages` above 1 with the default
 * schedule selects interleaved. */
int recipe_check(struct recipe *r, struct err *err);
/* Returns wire bytes per parameter including defaults: weights 2 (bf16); gradients 4 for FSDP and
 * HSDP (fp32 reduction, torchtitan's default), 2 for the others (bf16, Megatron-LM recipes). */
static inline double recipe_weight_bytes(const struct recipe *r)
{
    return r->weight_bytes > 0 ? r->weight_bytes : 2;
}

/* The same of weights that are gathered before each use: frozen ones as they are stored (QLoRA). */
static inline double recipe_gathered_bytes(const struct recipe *r)
{
    return r->weight_bytes > 0 || !(r->frozen_bytes > 0) ? recipe_weight_bytes(r) : r->frozen_bytes;
}

static inline double recipe_grad_bytes(const struct recipe *r)
{
    bool fp32 = r->strategy == STRATEGY_FSDP || r->strategy == STRATEGY_HSDP;

    return r->grad_bytes > 0 ? r->grad_bytes : fp32 ? 4 : 2;
}

/* Returns the share of `layers` that full recompute computes again. */
static inline double recipe_recomputed_share(const struct recipe *r, double layers)
{
    bool some = r->recompute_layers > 0 && r->recompute_layers < layers;

    return some ? r->recompute_layers / layers : 1;
}

/* True if weights are gathered before each use. */
static inline bool recipe_gathers_weights(const struct recipe *r)
{
    return r->strategy == STRATEGY_ZERO3 || r->strategy == STRATEGY_FSDP ||
           r->strategy == STRATEGY_HSDP;
}

/* True if states are shards along dp_shard, and dp_replicate has copies of these shards: HSDP, and
 * ZeRO-1 and 2 within groups (Megatron-LM --num-distributed-optimizer-instances, InternEvo's
 * zero1.size). */
static inline bool recipe_has_replicas(const struct recipe *r)
{
    return r->strategy == STRATEGY_HSDP || r->strategy == STRATEGY_ZERO1 ||
           r->strategy == STRATEGY_ZERO2;
}

/* Resolve the defaults of the software: Megatron-LM uses Transformer Engine, which asks cuDNN. */
static inline int recipe_pointwise(const struct recipe *r)
{
    int by_default = r->stack == STACK_MEGATRON     ? POINTWISE_LIBRARY
                     : r->stack == STACK_TORCHTITAN ? POINTWISE_COMPILED
                                                    : POINTWISE_SEPARATE;

    return r->pointwise == POINTWISE_STACK ? by_default : r->pointwise;
}

static inline int recipe_flash(const struct recipe *r)
{
    int by_default = r->stack == STACK_MEGATRON ? FLASH_NEW : FLASH_2;

    return r->flash == FLASH_STACK ? by_default : r->flash;
}

static inline bool recipe_expands_segments(const struct recipe *r)
{
    bool by_default = r->stack == STACK_TORCHTITAN;

    return r->segments == SEGMENTS_STACK ? by_default : r->segments == SEGMENTS_ON;
}

static inline bool recipe_is_deepspeed(const struct recipe *r)
{
    return r->zero_engine == ZERO_ENGINE_DEEPSPEED || r->stack == STACK_HF;
}

/* True if tp messages overlap.  Megatron-LM's recipes enable it (tp_comm_overlap) and need sequence
 * parallelism for it; torchtitan's async TP needs a setting (enable_async_tensor_parallel). */
static inline bool recipe_overlaps_tp(const struct recipe *r)
{
    bool by_default = r->stack == STACK_MEGATRON && r->sequence_parallel;

    return r->tp_overlap == TP_OVERLAP_STACK ? by_default : r->tp_overlap == TP_OVERLAP_ON;
}

/* True if data-parallel messages overlap.  DDP and FSDP reduce during the backward pass in every
 * stack.  Sharded optimizer states do so if the stack has buckets for them: Megatron-LM's recipes
 * enable it (overlap_grad_reduce, overlap_param_gather). */
static inline bool recipe_overlaps_dp(const struct recipe *r)
{
    bool buckets = r->stack == STACK_MEGATRON || r->stack == STACK_TORCHTITAN;
    bool by_default = buckets || (r->strategy != STRATEGY_ZERO1 && r->strategy != STRATEGY_ZERO2);

    return r->dp_overlap == DP_OVERLAP_STACK ? by_default : r->dp_overlap == DP_OVERLAP_ON;
}

#endif
