/* constants.h - global constants of the step model, in one data file
 * (jobs/training/constants.json).
 *
 * Each constant has a value, an error (share of the value, one standard deviation) and a source.
 * Names:
 *
 *   efficiency.GENERATION.DTYPE  share of the data-sheet peak that matrix products reach
 *                                (generation from the GPU's preset)
 *   attention.GENERATION         the same for the attention core, of the bf16 peak
 *   experts.DTYPE                share of that efficiency that grouped products of experts reach
 *   fabric.PUBLISHER             factor on the preset's time of messages that leave a domain, in
 *                                jobs with figures of this publisher: for links that a
 *                                publication does not count, and libraries that do not drive all
 *                                of them
 *   CONSTANTS below              names that every file must hold
 *
 * Other names are refused, so that a typo cannot silently fall back to a default.
 *
 * A fitted constant also has its prior, known before any step was measured: a value and the
 * deviation of its log (of its log-odds if it is a share).  The prior keeps constants that the
 * steps do not determine at plausible values, off their bounds.  Not stated: the value in the file,
 * within half.
 *
 * Deviations that the constants do not explain are in the same file: effects.h. */
#ifndef RG_CONSTANTS_H
#define RG_CONSTANTS_H

#include <stdbool.h>

#include "base/err.h"
#include "step/effects.h"
#include "step/recipe.h"

/* clang-format off */
/* Constants that every file must hold: unit, plausible range, and whether measured steps determine
 * it. */
#define CONSTANTS(X) \
    X(EFFICIENCY_DEFAULT,          "efficiency.default",          "share",      0.01,   1,     false) /* default if generation and dtype have none */ \
    X(ATTENTION_DEFAULT,           "attention.default",           "share",      0.01,   1,     false) \
    X(EXPERTS_DEFAULT,             "experts.default",             "share",      0.01,   1,     true)  /* share of that efficiency reached by products of routed experts */ \
    X(SCAN_SHARE,                  "scan.share",                  "share",      0.0001, 1,     true)  /* share of the bf16 peak, scan of state-space layers */ \
    X(OPERANDS_SHARE,              "operands.share",              "share",      0.01,   1,     true)   /* share of the memory rate for operands of experts */ \
    X(BETWEEN_SHARE,               "between.share",               "share",      0.01,   1,     true)  /* share of the memory rate between products */ \
    X(LAUNCH_SECONDS,              "launch.seconds",              "s a kernel", 0,      0.001, true)  /* time of one kernel beside its computation */ \
    X(POINTWISE_COMPILED,          "pointwise.compiled",          "factor",     0.5,    20,    true)  /* factor on a library's times between products and in launches */ \
    X(POINTWISE_SEPARATE,          "pointwise.separate",          "factor",     0.5,    20,    true) \
    X(FLASH_2,                     "flash.2",                     "factor",     0.5,    20,    true)  /* time of FlashAttention 2 over that of kernels made for Hopper and later */ \
    X(POWER_EXPONENT,              "power.exponent",              "exponent",   0.05,   2,     true)  /* clocks over power, below the data sheet's power */ \
    X(HOST_LIBRARY,                "host.library",                "s a kernel", 0,      0.01,  true)  /* host time per kernel start, with its framework; the GPU waits if this exceeds its own time */ \
    X(HOST_COMPILED,               "host.compiled",               "s a kernel", 0,      0.01,  true) \
    X(HOST_SEPARATE,               "host.separate",               "s a kernel", 0,      0.01,  true) \
    X(EXPOSED_TP,                  "exposed.tp",                  "share",      0,      1,     true)  /* exposed share of the time of tp messages */ \
    X(EXPOSED_TP_PLAIN,            "exposed.tp.plain",            "share",      0,      1,     true)  /* exposed share if products are not split to overlap tp messages */ \
    X(EXPOSED_CP,                  "exposed.cp",                  "share",      0,      1,     true) \
    X(EXPOSED_EP,                  "exposed.ep",                  "share",      0,      1,     true)  /* all_to_all to experts with nothing beside it */ \
    X(EXPOSED_EP_OVERLAP,          "exposed.ep.overlap",          "share",      0,      1,     true)  /* all_to_all beside compute of another microbatch */ \
    X(EXPOSED_PP_1F1B,             "exposed.pp.1f1b",             "share",      0,      1,     true) \
    X(EXPOSED_PP_INTERLEAVED,      "exposed.pp.interleaved",      "share",      0,      1,     true) \
    X(EXPOSED_DP,                  "exposed.dp",                  "share",      0,      1,     true)  /* minimum exposed share of data-parallel messages */ \
    X(EXPOSED_DP_PLAIN,            "exposed.dp.plain",            "factor",     0.2,    10,    true)  /* time with nothing beside these messages / the fabric's time for them */ \
    X(OVERLAP_DP,                  "overlap.dp",                  "share",      0,      1,     true)  /* share of a layer's compute that can hide them */ \
    X(OVERLAP_LAYER,               "overlap.layer",               "share",      0,      1,     false) /* share of exposed messages inside layers that can hide them */ \
    X(OPTIMIZER_BYTES_PER_PARAM,   "optimizer.bytes_per_param",   "B",          0,      200,   false) /* read and written, on the rank's shard */ \
    X(OPTIMIZER_HBM_SHARE,         "optimizer.hbm_share",         "share",      0.01,   1,     false) /* share of the data sheet's memory rate */ \
    X(FIXED_SECONDS,               "fixed.seconds",               "s",          0,      100,   true) \
    X(MEMORY_LOGIT_BYTES_MEGATRON, "memory.logit_bytes.megatron", "B",          0,      64,    false) /* bytes per logit at the peak of the loss */ \
    X(MEMORY_LOGIT_BYTES_COMPILED, "memory.logit_bytes.compiled", "B",          0,      64,    false) \
    X(MEMORY_LOGIT_BYTES_EAGER,    "memory.logit_bytes.eager",    "B",          0,      64,    false) \
    X(MEMORY_NCCL_BYTES,           "memory.nccl_bytes",           "B",          0,      1e11,  false) \
    X(MEMORY_COMMUNICATOR_BYTES,   "memory.communicator_bytes",   "B",          0,      1e11,  false) \
    X(MEMORY_CONTEXT_BYTES,        "memory.context_bytes",        "B",          0,      1e11,  false) \
    X(MEMORY_BUCKET_BYTES,         "memory.bucket_bytes",         "B",          0,      1e11,  false) \
    X(MEMORY_FRAGMENTATION,        "memory.fragmentation",        "share",      0,      1,     false) /* share of memory the allocator hands out and takes back; segments grow */ \
    X(MEMORY_FRAGMENTATION_FIXED,  "memory.fragmentation.fixed",  "share",      0,      1,     false) /* share if segments do not grow */ \
    X(ERROR_PRESET,                "error.preset",                "share",      0,      2,     false) /* errors of times: from published curves, modelled, assumed */ \
    X(ERROR_MODELLED,              "error.modelled",              "share",      0,      2,     false) \
    X(ERROR_ASSUMED,               "error.assumed",               "share",      0,      2,     false) \
    X(ERROR_MEMORY,                "error.memory",                "share",      0,      2,     false) /* temporary memory of a step if segments grow; half of a 90 % interval */ \
    X(ERROR_MEMORY_FIXED,          "error.memory.fixed",          "share",      0,      2,     false) /* memory error if segments do not grow */ \
    X(ERROR_MEMORY_STATES,         "error.memory.states",         "share",      0,      2,     false) /* model states; half of a 90 % interval */ \
    X(ERROR_ANCHORED,              "error.anchored",              "share",      0,      2,     false) /* step time if a measured step calibrates its recipe */ \
    X(ERROR_COMPARISON,            "error.comparison",            "share",      0,      2,     false) /* error of the ratio of two layouts of one job, minimum */ \
    X(ERROR_COMPARISON_TIMES,      "error.comparison.times",      "factor",     0,      100,   false) /* factor on the part of it that the errors above cause */
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

/* Constants with open names, looked up once: index of the constant for each, or of its default. */
struct constants_gpu {
    char *generation;
    int efficiency[DTYPE_COUNT], attention;
};

struct constants {
    struct constant *constant;
    int count;
    int at[CONSTANT_COUNT]; /* index of each required constant */
    int experts[DTYPE_COUNT];
    struct constants_gpu *gpu; /* one per generation, then one for all others */
    int gpus;
    struct effects effects;
    char *path;
};

/* Load constants.  path NULL: the shipped file.  All of CONSTANTS must be present.  Call
 * constants_free() even after an error. */
int constants_load(struct constants *c, const char *path, struct err *err);
void constants_free(struct constants *c);
/* Returns NULL if the name is not in the file. */
const struct constant *constants_find(const struct constants *c, const char *name);
/* Returns a required constant. */
static inline const struct constant *constants_get(const struct constants *c, enum constant_id id)
{
    return &c->constant[c->at[id]];
}

/* generation NULL: unknown. */
const struct constant *constants_efficiency(const struct constants *c, const char *generation,
                                            int dtype);
const struct constant *constants_attention(const struct constants *c, const char *generation);
static inline const struct constant *constants_experts(const struct constants *c, int dtype)
{
    return &c->constant[c->experts[dtype]];
}
/* Make a copy whose values may be changed.  The caller calls constants_free(). */
void constants_copy(struct constants *c, const struct constants *from);

/* Returns the factor of a publisher; 1 if it is unknown or NULL. */
double constants_links(const struct constants *c, const char *publisher);

/* Returns true with the bounds of a constant that may be fitted to measured steps (calibrate.h).
 * False for an error, or a size given by the method itself. */
bool constants_fitted(const char *name, double *min, double *max);
/* Write one line per constant, in order.  path may be the file that was loaded. */
int constants_save(const struct constants *c, const char *path, struct err *err);

#endif
