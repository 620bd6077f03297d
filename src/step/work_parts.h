/* work_parts.h - the inner half of work.h: one layer. */
#ifndef RG_WORK_PARTS_H
#define RG_WORK_PARTS_H

#include "step/work.h"

/* What every layer needs to know about the step. */
struct work_step {
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    double tokens;         /* of a microbatch and context rank */
    double tp, local;      /* ranks that share its products; tokens whose norms a rank computes */
    double element;        /* bytes of a product's operand */
    double again;          /* how often backward repeats forward's products, */
    bool again_core;       /* the attention core, */
    bool again_memory;     /* and what lies between */
    double trained, casts; /* 1, or 0: weights' gradients; casts to fp8 or fp4 */
};
void work_step(struct work_step *st, const struct model *m, const struct layout *l,
               const struct recipe *r);
/* One microbatch of one layer, of the head with its loss, of a layer that predicts further tokens.
 */
void work_layer(struct stage_work *s, const struct work_step *st, const struct layer *k);
void work_head(struct stage_work *s, const struct work_step *st);
void work_mtp(struct stage_work *s, const struct work_step *st, const struct stage_work *head);
void work_add(struct stage_work *s, const struct stage_work *one, double times);

#endif
