/* constants.h - the global constants of the step model, one data file
 * (jobs/training/constants.json).
 *
 * Each has a value, its error (share of the value, one standard deviation) and where it came from.
 * Names:
 *   efficiency.GENERATION.DTYPE  share of the data-sheet peak that matrix products reach (of the
 *                                generation that the GPU's preset says)
 *   attention.GENERATION         the same for the attention core, of the bf16 peak
 *   experts.DTYPE                of that efficiency, what grouped products of experts reach
 *   fabric.PUBLISHER             what messages that leave a domain take in the jobs of whose figures
 *                                these are, of what the preset says: links that a publication does
 *                                not count, libraries that do not drive all of them
 *   and those that every file must hold, CONSTANTS below.
 * Names outside of that are refused, so that a typo cannot silently fall back to nothing.
 *
 * One that is fitted has what was known before any step was measured: a prior value and the
 * deviation of its log round it (of its log-odds where it is a share), so that what the steps leave
 * open stays where physics has it, off its bounds.  Not stated: what the file has, within half.
 *
 * What all of them leave open is in the same file: effects.h. */
#ifndef RG_CONSTANTS_H
#define RG_CONSTANTS_H

#include <stdbool.h>

#include "base/err.h"
#include "step/effects.h"
#include "step/recipe.h"

/* clang-format off */
/* What every file must hold: its unit, the range that makes sense, and whether measured steps
 * determine it. */
#define CONSTANTS(X) \
    X(EFFICIENCY_DEFAULT,          "efficiency.default",          "share",      0.01,   1,     false) /* where generation and dtype have none of their own */ \
    X(ATTENTION_DEFAULT,           "attention.default",           "share",      0.01,   1,     false) \
    X(EXPERTS_DEFAULT,             "experts.default",             "share",      0.01,   1,     true)  /* of that, what products of routed experts reach */ \
    X(SCAN_SHARE,                  "scan.share",                  "share",      0.0001, 1,     true)  /* of the bf16 peak, scan of state-space layers */ \
    X(OPERANDS_SHARE,              "operands.share",              "share",      0.01,   1,     true)   /* of the memory rate, at which experts' operands come */ \
    X(BETWEEN_SHARE,               "between.share",               "share",      0.01,   1,     true)  /* of the memory rate, between products */ \
    X(LAUNCH_SECONDS,              "launch.seconds",              "s a kernel", 0,      0.001, true)  /* of one kernel, beside what it computes */ \
    X(STACK_TORCHTITAN,            "stack.torchtitan",            "factor",     0.5,    20,    true)  /* what that stack takes longer than Megatron between */ \
    X(STACK_EAGER,                 "stack.eager",                 "factor",     0.5,    20,    true)  /* products and in launches, */ \
    X(STACK_HF,                    "stack.hf",                    "factor",     0.5,    20,    false) \
    X(STACK_CORE_TORCHTITAN,       "stack.core.torchtitan",       "factor",     0.5,    20,    true)  /* and in the attention core */ \
    X(STACK_CORE_EAGER,            "stack.core.eager",            "factor",     0.5,    20,    true) \
    X(STACK_CORE_HF,               "stack.core.hf",               "factor",     0.5,    20,    false) \
    X(HOST_MEGATRON,               "host.megatron",               "s a kernel", 0,      0.01,  true)  /* the host's own time for a kernel that it starts, with what its */ \
    X(HOST_TORCHTITAN,             "host.torchtitan",             "s a kernel", 0,      0.01,  true)  /* framework does in between: where that is longer than the GPU's, */ \
    X(HOST_EAGER,                  "host.eager",                  "s a kernel", 0,      0.01,  true)  /* the GPU waits for it */ \
    X(HOST_HF,                     "host.hf",                     "s a kernel", 0,      0.01,  false) \
    X(EXPOSED_TP,                  "exposed.tp",                  "share",      0,      1,     true)  /* share of tp messages' time that is seen */ \
    X(EXPOSED_TP_PLAIN,            "exposed.tp.plain",            "share",      0,      1,     true)  /* where products are not cut up to overlap them */ \
    X(EXPOSED_CP,                  "exposed.cp",                  "share",      0,      1,     true) \
    X(EXPOSED_EP,                  "exposed.ep",                  "share",      0,      1,     true)  /* all_to_all to experts with nothing beside it */ \
    X(EXPOSED_EP_OVERLAP,          "exposed.ep.overlap",          "share",      0,      1,     true)  /* beside another microbatch's compute */ \
    X(EXPOSED_PP_1F1B,             "exposed.pp.1f1b",             "share",      0,      1,     true) \
    X(EXPOSED_PP_INTERLEAVED,      "exposed.pp.interleaved",      "share",      0,      1,     true) \
    X(EXPOSED_DP,                  "exposed.dp",                  "share",      0,      1,     true)  /* least share of data-parallel messages that is seen */ \
    X(EXPOSED_DP_PLAIN,            "exposed.dp.plain",            "factor",     0.2,    10,    true)  /* what they take where nothing runs beside them, of the fabric's own time for them */ \
    X(OVERLAP_DP,                  "overlap.dp",                  "share",      0,      1,     true)  /* share of a layer's compute that can hide them */ \
    X(OVERLAP_LAYER,               "overlap.layer",               "share",      0,      1,     false) /* share of seen messages inside layers that can */ \
    X(OPTIMIZER_BYTES_PER_PARAM,   "optimizer.bytes_per_param",   "B",          0,      200,   false) /* read and written, of the rank's shard */ \
    X(OPTIMIZER_HBM_SHARE,         "optimizer.hbm_share",         "share",      0.01,   1,     false) /* of the data sheet's memory rate */ \
    X(FIXED_SECONDS,               "fixed.seconds",               "s",          0,      100,   true) \
    X(MEMORY_LOGIT_BYTES_MEGATRON, "memory.logit_bytes.megatron", "B",          0,      64,    false) /* of a logit at the peak of the loss */ \
    X(MEMORY_LOGIT_BYTES_COMPILED, "memory.logit_bytes.compiled", "B",          0,      64,    false) \
    X(MEMORY_LOGIT_BYTES_EAGER,    "memory.logit_bytes.eager",    "B",          0,      64,    false) \
    X(MEMORY_NCCL_BYTES,           "memory.nccl_bytes",           "B",          0,      1e11,  false) \
    X(MEMORY_COMMUNICATOR_BYTES,   "memory.communicator_bytes",   "B",          0,      1e11,  false) \
    X(MEMORY_CONTEXT_BYTES,        "memory.context_bytes",        "B",          0,      1e11,  false) \
    X(MEMORY_BUCKET_BYTES,         "memory.bucket_bytes",         "B",          0,      1e11,  false) \
    X(MEMORY_FRAGMENTATION,        "memory.fragmentation",        "share",      0,      1,     false) /* of what the allocator hands out and takes back, where its segments grow, */ \
    X(MEMORY_FRAGMENTATION_FIXED,  "memory.fragmentation.fixed",  "share",      0,      1,     false) /* and where they do not */ \
    X(ERROR_PRESET,                "error.preset",                "share",      0,      2,     false) /* of times from published curves, of modelled ones, ... */ \
    X(ERROR_MODELLED,              "error.modelled",              "share",      0,      2,     false) \
    X(ERROR_ASSUMED,               "error.assumed",               "share",      0,      2,     false) \
    X(ERROR_MEMORY,                "error.memory",                "share",      0,      2,     false) /* of memory that comes and goes in a step where segments grow, */ \
    X(ERROR_MEMORY_FIXED,          "error.memory.fixed",          "share",      0,      2,     false) /* where they do not, */ \
    X(ERROR_MEMORY_STATES,         "error.memory.states",         "share",      0,      2,     false) /* of model states; half of a 90 % interval */ \
    X(ERROR_ANCHORED,              "error.anchored",              "share",      0,      2,     false) /* of the step when a measured step calibrates its recipe */ \
    X(ERROR_COMPARISON,            "error.comparison",            "share",      0,      2,     false) /* of the ratio of two layouts of one job, at least, */ \
    X(ERROR_COMPARISON_TIMES,      "error.comparison.times",      "factor",     0,      100,   false) /* and of what the errors above move the two apart */
/* clang-format on */
#define CONSTANT_ID(id, name, unit, min, max, fitted) CONSTANT_##id,
enum constant_id { CONSTANTS(CONSTANT_ID) CONSTANT_COUNT };
#undef CONSTANT_ID

struct constant {
    char *name;
    double value, error;
    char *source;
    double prior, width; /* width 0: not stated */
};

/* Names that are open are looked up once: where the constant of each is, or its default. */
struct constants_gpu {
    char *generation;
    int efficiency[DTYPE_COUNT], attention;
};

struct constants {
    struct constant *constant;
    int count;
    int at[CONSTANT_COUNT]; /* where each that must be there is */
    int experts[DTYPE_COUNT];
    struct constants_gpu *gpu; /* of each generation, then of all others */
    int gpus;
    struct effects effects;
    char *path;
};

/* path NULL: the shipped file.  All of CONSTANTS must be there.  constants_free() also
 * after an error. */
int constants_load(struct constants *c, const char *path, struct err *err);
void constants_free(struct constants *c);
/* NULL when it is not in the file. */
const struct constant *constants_find(const struct constants *c, const char *name);
/* One that every file holds. */
static inline const struct constant *constants_get(const struct constants *c, enum constant_id id)
{
    return &c->constant[c->at[id]];
}

/* generation NULL: not known. */
const struct constant *constants_efficiency(const struct constants *c, const char *generation,
                                            int dtype);
const struct constant *constants_attention(const struct constants *c, const char *generation);
static inline const struct constant *constants_experts(const struct constants *c, int dtype)
{
    return &c->constant[c->experts[dtype]];
}
/* c is a copy of its own: values may be changed.  constants_free() ends it. */
void constants_copy(struct constants *c, const struct constants *from);

/* 1 where nothing is known of that publisher, or it is NULL. */
double constants_links(const struct constants *c, const char *publisher);

/* Bounds of a constant that may be fitted to measured steps (calibrate.h); false: one that is not,
 * such as an error, or a size that the method itself gives. */
bool constants_fitted(const char *name, double *min, double *max);
/* A line per constant, in their order; path may be that which was loaded. */
int constants_save(const struct constants *c, const char *path, struct err *err);

#endif
