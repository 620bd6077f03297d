/* work.h - what one rank computes: matrix products, attention core, memory traffic and kernels of
 * one microbatch.
 *
 * Nothing here knows about time: timing.h divides by rates.  Forward FLOPs are 2 per multiply-add;
 * backward twice that, without the half that makes weights' gradients where weights are frozen
 * (Hu et al. 2021).  Recomputing repeats forward (full), the attention core (selective: Korthikanti
 * et al. 2022, 5), or with torchtitan's per-operation policy every second product and what lies
 * between (torchtitan distributed/activation_checkpoint.py).  Bytes are counted operation by
 * operation: what a norm, a gate or a cast reads and writes if nothing stays in cache. */
#ifndef RG_WORK_H
#define RG_WORK_H

#include "step/layout.h"

enum work_part {
    WORK_LINEAR,   /* products with weights of layers, FLOPs */
    WORK_EXPERT,   /* products of routed experts, FLOPs */
    WORK_HEAD,     /* the output head, FLOPs */
    WORK_CORE,     /* attention core, FLOPs */
    WORK_SCAN,     /* scan of state-space layers, FLOPs */
    WORK_OPERANDS, /* tokens that products of experts read and write, bytes */
    WORK_MEMORY,   /* norms, residuals, gates, casts, sorting, loss: bytes to and from memory */
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
    double updated; /* parameters whose optimizer states this rank holds */
};

/* After layout_check().  Allocates nothing. */
void work_of(struct work *w, const struct model *m, const struct layout *l, const struct recipe *r);

#endif
