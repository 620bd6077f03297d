/* memory.h - bytes of one GPU: does a layout fit?
 *
 * States, bytes per parameter, each over the ranks that the strategy shards it by:
 *
 *                      weights  gradients  optimizer
 *   ddp, zero-1 to 3   2        2 or 4     12         Adam with fp32 master weights (Rajbhandari et
 *                                                     al. 2020, 3.1; Megatron-LM
 *                                                     training/theoretical_memory_usage.py)
 *   fsdp, hsdp         4        4          8          fp32 weights and moments (torchtitan)
 *   frozen             1 or 2   -          -          adapters beside them have 16 (Hu et al. 2021)
 *
 * Activations: what backward needs of each layer, attention being a flash kernel (Korthikanti et
 * al. 2022, 4, without dropout and scores; its inputs, output and the inputs of every product), for
 * the microbatches in flight on stage i of p, v chunks each, of m:
 *
 *   1f1b         min(m, p - i)
 *   interleaved  min(m v, 2(p-i-1) + (v-1)p + 1) / v   Narayanan et al. 2021, 2.2
 *   zb-h1        min(m, p)                             Qi et al. 2023, table 2
 *   zb-h2        min(m, 2p - 1)                        the same
 *   dualpipe     min(m, p + 1)                         DeepSeek-V3 2024, table 2
 *
 * Full recompute keeps the input of each layer, and all of one; torchtitan's selective recompute
 * keeps every other product.  Assumed: experts get equal shares.  Not modelled: moments below fp32,
 * offloading, CUDA graphs. */
#ifndef RG_MEMORY_H
#define RG_MEMORY_H

#include "step/constants.h"
#include "step/step.h"

struct memory {
    double weights, gradients, optimizer, adapters; /* model states, B */
    double activations, logits;
    double gathered;                     /* FSDP's whole layers in flight; buckets of ZeRO */
    double comm, context, fragmentation; /* NCCL buffers, CUDA context and libraries, allocator */
    double total, capacity;              /* capacity 0: unknown */
    int stage;                           /* pipeline stage that needs the most */
};

/* The parts by name, in the order above, without total and capacity. */
enum { MEMORY_PARTS = 10 };
struct memory_part {
    const char *name, *what; /* "gradients"; in words */
    size_t at;               /* offset in struct memory */
};
extern const struct memory_part memory_part[MEMORY_PARTS];

/* What a stage needs whatever the micro batch is, and what grows with its tokens. */
struct memory_stage {
    struct memory fixed; /* without activations, logits and fragmentation */
    double kept;         /* B a token, of each microbatch in flight */
    double at_work;      /* of the layer at work */
    double whole;        /* of an input that sequence parallelism gathers */
    double logits;
};
void memory_stages(struct memory_stage out[STEP_STAGES], const struct step *s,
                   const struct constants *c);
/* The stage that needs the most.  capacity: fabric.gpu.memory_bytes, 0 where unknown. */
void memory_fullest(struct memory *mem, const struct memory_stage *stage, const struct step *s,
                    double capacity, const struct constants *c);
/* Both.  Allocates nothing. */
void memory_of(struct memory *mem, const struct step *s, double capacity,
               const struct constants *c);
/* True also where the capacity is unknown. */
static inline bool memory_fits(const struct memory *mem)
{
    return !(mem->capacity > 0) || mem->total <= mem->capacity;
}

/* Weights to optimizer and adapters. */
static inline double memory_states(const struct memory *mem)
{
    return mem->weights + mem->gradients + mem->optimizer + mem->adapters;
}

#endif
