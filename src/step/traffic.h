/* traffic.h - messages of one training step, as a list: everything that the layout makes each rank
 * send.
 *
 * A message has a group (axes), an operation, a size S counted as in op.h, a number per step, and a
 * phase of the step, which decides what can hide it.  timing.h prices the list; this file knows no
 * times.  The rank is one of the slowest pipeline stage (step.h).  Sources, repeated at each
 * message:
 *   weights, gradients   ZeRO (Rajbhandari et al. 2020, 7), FSDP (Zhao et al. 2023, 3.2)
 *   tp                   Korthikanti et al. 2022, 4.2.2; Megatron-LM
 *                        core/tensor_parallel/layers.py
 *   cp                   Liu et al. 2023 (ring), Jacobs et al. 2023 (ulysses), Llama 3 2024,
 *                        3.3.2
 *   ep                   Megatron-LM core/transformer/moe/token_dispatcher.py; DeepSeek-V3 2024,
 *                        3.2
 *   pp                   Narayanan et al. 2021, 2.2
 * Left out, because once a step and small: gradients of tied embeddings between first and last
 * stage, gradients of norms over tp, the norm of all gradients. */
#ifndef RG_TRAFFIC_H
#define RG_TRAFFIC_H

#include "base/op.h"
#include "step/constants.h"
#include "step/step.h"

enum ep_kernel { EP_NONE, EP_DISPATCH, EP_COMBINE };

/* Rule for the exposed share of a message; exposure_constant[] is its constant.  EXPOSE_WINDOW: the
 * time that the compute beside it does not cover (timing of FSDP and gradients). */
enum exposure {
    EXPOSE_WINDOW,
    EXPOSE_TP,       /* beside parts of its product */
    EXPOSE_TP_PLAIN, /* before or after its product */
    EXPOSE_CP,
    EXPOSE_EP,
    EXPOSE_EP_OVERLAP,
    EXPOSE_PP,
    EXPOSE_PP_INTERLEAVED,
    EXPOSE_DP_PLAIN, /* gradients and weights with nothing beside */
    EXPOSE_COUNT
};
extern const enum constant_id exposure_constant[EXPOSE_COUNT];

/* Phase of the step in which a message runs. */
enum phase {
    PHASE_LAYER,    /* inside every layer of every microbatch; a share stays exposed */
    PHASE_BOUNDARY, /* between pipeline stages, every microbatch */
    PHASE_FORWARD,  /* Prefetched beside the forward pass of a layer, whose compute hides it. */
    PHASE_BACKWARD, /* beside the backward pass of a layer, hidden likewise */
    PHASE_COUNT
};

struct message {
    const char *label; /* "fsdp all_gather forward" */
    unsigned axes;     /* axes of the group, for text */
    struct span span;  /* ranks of the group */
    enum op op;
    /* All_to_all by an expert-parallel kernel (DeepEP, HybridEP): a token is sent once to a rank,
     * and once into a domain. */
    enum ep_kernel kernel;
    enum exposure exposure;
    double bytes; /* S of one message */
    double count; /* per rank and step */
    enum phase phase;
    /* Part of count: m, once per microbatch, or 1, once a step; count / rounds follow each
     * other. */
    double rounds;
    bool per_token, per_microbatch; /* bytes grow with tokens; rounds is m */
    struct routing route;           /* all_to_all of ep only; else ranks is 0 */
    const char *formula;            /* text, with its source */
};

/* At most 25 labels: weights and gradients of dense and expert parameters and of their replicas,
 * tp, cp, ep, etp, pp.  Kinds of layers with different sizes have a message each while there are
 * few; otherwise one of their mean size. */
enum { TRAFFIC_MAX = 40 };
struct traffic {
    struct message message[TRAFFIC_MAX];
    int messages;
    int layers;     /* layers in the stage of this rank */
    double updated; /* parameters whose optimizer states the rank holds */
};

/* Fill t; messages of groups of one rank are left out.  Allocates nothing. */
void traffic_of(struct traffic *t, const struct step *s);
/* Update the list for a step that differs in its schedule, including stages per rank.  Its stages
 * must hold the same, and neither schedule may be DualPipe. */
void traffic_schedule(struct traffic *t, const struct step *s);

/* Returns the bytes that one of n ranks sends for one message: S (n-1)/n for all_gather,
 * reduce_scatter, all_to_all, twice that for all_reduce (ring), S for broadcast and sendrecv. */
static inline double message_wire_bytes(const struct message *m, int n)
{
    double whole = op_table[m->op].turns * m->bytes;

    return op_table[m->op].share == OP_WHOLE ? whole : whole * (n - 1) / n;
}

/* Returns the part of those bytes, for an all_to_all, that leaves a domain with `members` of the
 * group's ranks: S (n - members)/n; by a kernel one copy for each other domain in which the token
 * has an expert. */
double message_crossing_bytes(const struct message *m, int members);

#endif
