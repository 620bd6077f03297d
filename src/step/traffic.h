/* traffic.h - the messages of one training step, as a list: what the layout makes each rank send.
 *
 * A message says which group it runs on (axes), the operation and its size S as op.h counts it, how
 * often per step, and at which point of the step, because that decides what can hide it.  predict.c
 * prices the list; nothing here knows about time.  Sources: ZeRO (Rajbhandari et al. 2020, 7), FSDP
 * (Zhao et al. 2023, 3.2), Megatron-LM sequence parallelism (Korthikanti et al. 2022, 4.2.2), 1F1B
 * and interleaving (Narayanan et al. 2021, 2.2), ring attention (Liu et al. 2023). */
#ifndef RG_TRAFFIC_H
#define RG_TRAFFIC_H

#include "base/op.h"
#include "step/layout.h"

/* What decides how much of a message is seen; a row of the table in traffic.c names the constant
 * ("exposed.tp").  EXPOSE_WINDOW: what the compute beside it does not cover (timing of FSDP and
 * gradients). */
enum ep_kernel { EP_NONE, EP_DISPATCH, EP_COMBINE };

enum exposure {
    EXPOSE_WINDOW,
    EXPOSE_TP,
    EXPOSE_CP,
    EXPOSE_EP,
    EXPOSE_EP_OVERLAP,
    EXPOSE_PP,
    EXPOSE_PP_INTERLEAVED,
    EXPOSE_COUNT
};
extern const char *const exposure_name[EXPOSE_COUNT];

/* Where in the step a message runs. */
enum phase {
    PHASE_LAYER,    /* inside every layer of every microbatch; a share of it stays exposed */
    PHASE_BOUNDARY, /* between pipeline stages, every microbatch */
    PHASE_FORWARD, /* beside the forward pass of a layer, prefetched: hidden by that layer's compute
                    */
    PHASE_BACKWARD, /* beside the backward pass of a layer, likewise */
    PHASE_COUNT
};
extern const char *const phase_name[PHASE_COUNT];

struct message {
    const char *label; /* "fsdp all_gather forward" */
    unsigned axes;     /* the group, for words */
    struct span span;  /* and its ranks */
    enum op op;
    enum ep_kernel kernel; /* all_to_all by an expert-parallel kernel */
    enum exposure exposure;
    double bytes; /* S of one message */
    double count; /* of one rank in one step */
    enum phase phase;
    double
        rounds; /* of count: per microbatch (m) or once a step (1); count / rounds are in a row */
    const char *formula; /* in words, with its source */
};

/* A message has this many kinds at most: dense and expert weights and gradients, replicas, tp, cp,
 * ep, pp. */
enum { TRAFFIC_MAX = 32 };
struct traffic {
    struct message message[TRAFFIC_MAX];
    int messages;
};

/* After layout_check().  Messages of groups of one rank are left out.  Allocates nothing: a search
 * calls it a million times a second. */
void traffic_of(struct traffic *t, const struct model *m, const struct layout *l,
                const struct recipe *r);

/* Bytes that one of n ranks sends for one message: S (n-1)/n for all_gather, reduce_scatter,
 * all_to_all, twice that for all_reduce (ring), S for broadcast and sendrecv. */
double message_wire_bytes(const struct message *m, int n);

/* Parameters that one model-parallel rank holds: total / (tp pp). */
double traffic_params(const struct model *m, const struct layout *l);

#endif
