/* memory.h - memory of one GPU in bytes, and whether a layout fits.
 *
 * States, bytes per parameter, each sharded over the ranks of the strategy:
 *
 *                      weights  gradients  optimizer
 *   ddp, zero-1 to 3   2        2 or 4     12         Adam with fp32 master weights (Rajbhandari
 *                      et al. 2020, 3.1; Megatron-LM training/theoretical_memory_usage.py)
 *   fsdp, hsdp         4        4          8          fp32 weights and moments (torchtitan)
 *   frozen             1 or 2   -          -          adapters beside them have 16 (Hu et al.
 *                      2021)
 *
 * Activations: data that backward needs from each layer, with a flash kernel for attention
 * (Korthikanti et al. 2022, 4, without dropout and scores; its inputs, output and the inputs of
 * every product), for the microbatches in flight on stage i of p, v chunks each, of m:
 *
 *   1f1b         min(m, p - i)
 *   interleaved  min(m v, 2(p-i-1) + (v-1)p + 1) / v   Narayanan et al. 2021, 2.2
 *   zb-h1        min(m, p)                             Qi et al. 2023, table 2
 *   zb-h2        min(m, 2p - 1)                        the same
 *   dualpipe     min(m, p + 1)                         DeepSeek-V3 2024, table 2
 *
 * Full recompute keeps the input of each layer, and all of one; torchtitan's selective recompute
 * keeps every other product.  Without a flash kernel there are 5 bytes per score (Korthikanti et
 * al., eq. 1), unless they are recomputed; without a fused SwiGLU, one more output of `ffn`.
 *
 * Also counted: weights gathered by FSDP and gradients in transit; buckets of DeepSpeed and its
 * fp32 copy of a gradient shard; NCCL's buffers and the CUDA context; and gaps between blocks of
 * PyTorch's allocator, much larger if its segments do not grow (Guo et al. 2024, GMLake).
 *
 * The interval holds nine of ten readings.  It combines a share of the temporary memory of a step,
 * a smaller share of the states, which are arithmetic, and the errors of NCCL's and the context's
 * constants.
 *
 * Assumed: experts get equal shares.  Not modelled: offloading, CUDA graphs. */
#ifndef RG_MEMORY_H
#define RG_MEMORY_H

#include <math.h>

#include "step/constants.h"
#include "step/step.h"

struct memory {
    double weights, gradients, optimizer, adapters; /* model states, B */
    double activations, logits;
    double gathered;                     /* FSDP's whole layers in flight; buckets of ZeRO */
    double comm, context, fragmentation; /* NCCL buffers, CUDA context and libraries, allocator */
    double total, capacity;              /* capacity 0: unknown */
    /* Half of a 90 % interval: memory held by the allocator; comm and context. */
    double error, error_outside;
    int stage; /* pipeline stage that needs most */
};

/* Parts by name, in the order above, without total and capacity. */
enum { MEMORY_PARTS = 10 };
struct memory_part {
    const char *name, *what; /* "gradients"; in words */
    size_t at;               /* offset in struct memory */
};
extern const struct memory_part memory_part[MEMORY_PARTS];

/* Kinds of memory readings: all memory allocated on the device (nvidia-smi), the part held by
 * PyTorch's allocator (torch.cuda.max_memory_reserved), or the part of that in tensors
 * (max_memory_allocated). */
enum memory_kind { MEMORY_DEVICE, MEMORY_RESERVED, MEMORY_ALLOCATED, MEMORY_KINDS };
static inline double memory_of_kind(const struct memory *mem, enum memory_kind kind)
{
    double outside = kind == MEMORY_DEVICE ? 0 : mem->comm + mem->context;

    return mem->total - outside - (kind == MEMORY_ALLOCATED ? mem->fragmentation : 0);
}

/* Half of the 90 % interval of that kind.  The parts err independently. */
static inline double memory_error(const struct memory *mem, enum memory_kind kind)
{
    double in = mem->error, out = kind == MEMORY_DEVICE ? mem->error_outside : 0;

    return sqrt(in * in + out * out);
}

/* Fits: the upper end of the interval is within the capacity, or the capacity is unknown.  May not
 * fit: the interval crosses the capacity.  Unfit: the lower end exceeds it. */
enum memory_fit { MEMORY_FITS, MEMORY_MAY_NOT_FIT, MEMORY_UNFIT };
static inline enum memory_fit memory_fit(const struct memory *mem)
{
    double e = memory_error(mem, MEMORY_DEVICE);

    if (!(mem->capacity > 0) || mem->total + e <= mem->capacity)
        return MEMORY_FITS;
    return mem->total - e <= mem->capacity ? MEMORY_MAY_NOT_FIT : MEMORY_UNFIT;
}
static inline const char *memory_fit_text(const struct memory *mem)
{
    static const char *const text[] = {"fits", "may not fit", "does not fit"};

    return text[memory_fit(mem)];
}

/* Needs of a stage: fixed ones, and those that grow with the tokens of the micro batch. */
struct memory_stage {
    double kept;    /* bytes per token of each microbatch in flight */
    double at_work; /* bytes per token of the active layer */
    double whole;   /* bytes per token of an input gathered by sequence parallelism */
    double logits;
    double unreduced;    /* bytes of gradients kept whole until the last of several microbatches */
    double states;       /* model states in fixed */
    struct memory fixed; /* without activations, logits and fragmentation */
};
void memory_stages(struct memory_stage out[STEP_STAGES], const struct step *s,
                   const struct constants *c);
/* Returns the bytes of the stage that needs most.  *fullest: its index. */
double memory_fullest(const struct memory_stage *stage, const struct step *s,
                      const struct constants *c, int *fullest);
/* Fill all of mem.  capacity: fabric.gpu.memory_bytes; 0: unknown. */
void memory_at(struct memory *mem, const struct memory_stage *stage, const struct step *s,
               double capacity, const struct constants *c);
/* Same from a step.  Allocates nothing. */
static inline void memory_of(struct memory *mem, const struct step *s, double capacity,
                             const struct constants *c)
{
    struct memory_stage stage[STEP_STAGES];

    memory_stages(stage, s, c);
    memory_at(mem, stage, s, capacity, c);
}
static inline bool memory_holds(double capacity, double bytes)
{
    return !(capacity > 0) || bytes <= capacity;
}
/* True if the predicted total is within the capacity, or that is unknown. */
static inline bool memory_fits(const struct memory *mem)
{
    return memory_holds(mem->capacity, mem->total);
}

/* Sum of weights, gradients, optimizer and adapters. */
static inline double memory_states(const struct memory *mem)
{
    return mem->weights + mem->gradients + mem->optimizer + mem->adapters;
}

#endif
