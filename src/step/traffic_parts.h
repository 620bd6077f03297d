/* traffic_parts.h - what the parts of traffic.h share: each adds the messages of some axes. */
#ifndef RG_TRAFFIC_PARTS_H
#define RG_TRAFFIC_PARTS_H

#include "step/traffic.h"

enum { ACTIVATION_BYTES = 2 }; /* bf16 between layers, whatever the products compute in */

/* What every message needs to know about the step. */
struct step {
    struct traffic *t;
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    double microbatches;
    double tokens; /* of a microbatch in one rank of cp */
    int again;     /* 1: forward runs twice, recompute full */
    struct {
        const struct layer *layer;
        double count;            /* in the stage */
    } kind[MODEL_KINDS_MAX + 1]; /* those of the model that are there, and multi-token prediction */
    int kinds;
};

/* Fills the span; leaves out what moves nothing. */
void traffic_add(struct step *s, const struct message *msg);
void traffic_add_tensor(struct step *s);
void traffic_add_context(struct step *s);
void traffic_add_experts(struct step *s);
void traffic_add_state(struct step *s);

#endif
