/* traffic.h - the messages of one training step, as a list: what the layout makes each rank send.
 *
 * A message says which group it runs on (axes), the operation and its size S as op.h counts it, how
 * often per step, and at which point of the step, because that decides what can hide it.  timing.h
 * prices the list; nothing here knows about time.  The rank is one of the slowest pipeline stage
 * (step.h).  Sources, each message repeating its own:
 *   weights, gradients   ZeRO (Rajbhandari et al. 2020, 7), FSDP (Zhao et al. 2023, 3.2)
 *   tp                   Korthikanti et al. 2022, 4.2.2; Megatron-LM core/tensor_parallel/layers.py
 *   cp                   Liu et al. 2023 (ring), Jacobs et al. 2023 (ulysses), Llama 3 2024, 3.3.2
 *   ep                   Megatron-LM core/transformer/moe/token_dispatcher.py; DeepSeek-V3 2024, 3.2
 *   pp                   Narayanan et al. 2021, 2.2
 * Left out: gradients of tied embeddings between first and last stage, gradients of norms over tp,
 * the norm of all gradients: once a step and small. */
#ifndef RG_TRAFFIC_H
#define RG_TRAFFIC_H

#include "base/op.h"
#include "step/constants.h"
#include "step/step.h"

enum ep_kernel { EP_NONE, EP_DISPATCH, EP_COMBINE };

/* What decides how much of a message is seen; exposure_constant[] is the constant that
 * says so.  EXPOSE_WINDOW: what the compute beside it does not cover (timing of FSDP and
 * gradients). */
enum exposure {
    EXPOSE_WINDOW,
    EXPOSE_TP,       /* beside parts of the product that they belong to */
    EXPOSE_TP_PLAIN, /* before or after it */
    EXPOSE_CP,
    EXPOSE_EP,
    EXPOSE_EP_OVERLAP,
    EXPOSE_PP,
    EXPOSE_PP_INTERLEAVED,
    EXPOSE_DP_PLAIN, /* gradients and weights with nothing beside them */
    EXPOSE_COUNT
};
extern const enum constant_id exposure_constant[EXPOSE_COUNT];

/* Where in the step a message runs. */
enum phase {
    PHASE_LAYER,    /* inside every layer of every microbatch; a share of it stays exposed */
    PHASE_BOUNDARY, /* between pipeline stages, every microbatch */
    PHASE_FORWARD, /* beside the forward pass of a layer, prefetched: hidden by that layer's compute
                    */
    PHASE_BACKWARD, /* beside the backward pass of a layer, likewise */
    PHASE_COUNT
};

struct message {
    const char *label; /* "fsdp all_gather forward" */
    unsigned axes;     /* the group, for words */
    struct span span;  /* and its ranks */
    enum op op;
    enum ep_kernel kernel; /* all_to_all by an expert-parallel kernel (DeepEP, HybridEP): a token
                              goes once to a rank, and crosses once into a domain */
    enum exposure exposure;
    double bytes; /* S of one message */
    double count; /* of one rank in one step */
    enum phase phase;
    double
        rounds; /* of count: per microbatch (m) or once a step (1); count / rounds are in a row */
    bool per_token, per_microbatch; /* bytes grow with tokens; rounds is m */
    struct routing route;           /* all_to_all of ep only, else ranks 0 */
    const char *formula;            /* in words, with its source */
};

/* 25 labels at most: weights and gradients of dense and expert parameters and of their replicas,
 * tp, cp, ep, etp, pp.  Kinds of layers that send different sizes have a message each, while they
 * are few; then one of their mean size. */
enum { TRAFFIC_MAX = 40 };
struct traffic {
    struct message message[TRAFFIC_MAX];
    int messages;
    int layers;     /* of the stage whose rank this is, */
    double updated; /* and parameters whose optimizer states it has */
};

/* Messages of groups of one rank are left out.  Allocates nothing. */
void traffic_of(struct traffic *t, const struct step *s);
/* The list of a step that differs in its schedule, stages per rank included, and whose stages hold
 * the same; neither is DualPipe's. */
void traffic_schedule(struct traffic *t, const struct step *s);

/* Bytes that one of n ranks sends for one message: S (n-1)/n for all_gather, reduce_scatter,
 * all_to_all, twice that for all_reduce (ring), S for broadcast and sendrecv. */
static inline double message_wire_bytes(const struct message *m, int n)
{
    double whole = op_table[m->op].turns * m->bytes;

    return op_table[m->op].share == OP_WHOLE ? whole : whole * (n - 1) / n;
}

/* Of those, of an all_to_all, the bytes that leave a domain holding `members` of the group's ranks:
 * S (n - members)/n; by a kernel one copy for each other domain where the token has an expert. */
double message_crossing_bytes(const struct message *m, int members);

#endif
