/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/traffic.h"

#include <assert.h>
#include <math.h>

const char *const exposure_name[EXPOSE_COUNT] = {
    [EXPOSE_WINDOW] = "exposed.dp",
    [EXPOSE_TP] = "exposed.tp",
    [EXPOSE_CP] = "exposed.cp",
    [EXPOSE_EP] = "exposed.ep",
    [EXPOSE_EP_OVERLAP] = "exposed.ep.overlap",
    [EXPOSE_PP] = "exposed.pp.1f1b",
    [EXPOSE_PP_INTERLEAVED] = "exposed.pp.interleaved",
};
const char *const phase_name[PHASE_COUNT] = {"layer", "boundary", "forward", "backward"};

enum { ACTIVATION_BYTES = 2 }; /* bf16 between layers, whatever the products compute in */

/* What every message needs to know about the step. */
struct step {
    struct traffic *t;
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    double microbatches;
    double layers; /* of one rank: all its chunks together */
};

static void add(struct step *s, struct message msg)
{
    msg.span = layout_span(s->l, msg.axes);
    if (msg.span.size < 2 || !(msg.bytes > 0) || !(msg.count > 0))
        return;
    assert(s->t->messages < TRAFFIC_MAX);
    s->t->message[s->t->messages++] = msg;
}

double traffic_params(const struct model *m, const struct layout *l)
{
    struct params p;

    model_params(m, &p);
    return p.total / l->size[AXIS_TP] / l->size[AXIS_PP];
}

double message_wire_bytes(const struct message *m, int n)
{
    switch (m->op) {
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL:
        return m->bytes * (n - 1) / n;
    case OP_ALL_REDUCE:
        return 2 * m->bytes * (n - 1) / n;
    default:
        return m->bytes;
    }
}

/* Weights or gradients of the rank in equal messages: with sharded weights one per layer, since a
 * layer is gathered as a whole; else buckets of at least 40M parameters, 1M per rank of the group
 * (Megatron-LM core/distributed/distributed_data_parallel.py), so that long rings are not all
 * latency.  Embeddings, head and last norm are spread over them: the bytes of a step are exactly
 * Psi times bytes per parameter. */
static void add_state(struct step *s, const char *label, enum op op, enum phase phase,
                      unsigned axes, double bytes_per_param, double rounds, const char *formula)
{
    double psi = traffic_params(s->m, s->l), pieces = s->layers;
    double bucket = fmax(40e6, 1e6 * layout_span(s->l, axes).size);

    if (!recipe_gathers_weights(s->r))
        pieces = fmin(s->layers, ceil(psi / bucket));
    add(s, (struct message){.label = label,
                            .axes = axes,
                            .op = op,
                            .bytes = psi * bytes_per_param / pieces,
                            .count = pieces * rounds,
                            .phase = phase,
                            .rounds = rounds,
                            .formula = formula});
}

static void add_weights(struct step *s)
{
    unsigned shard = layout_shard_axes(s->l, s->r);
    double bytes = recipe_weight_bytes(s->r), m = s->microbatches;

    if (recipe_gathers_weights(s->r)) {
        add_state(s, "weights all_gather forward", OP_ALL_GATHER, PHASE_FORWARD, shard, bytes, m,
                  "m Psi b_p, resharded after forward (ZeRO 7.2.2, FSDP 3.2)");
        add_state(s, "weights all_gather backward", OP_ALL_GATHER, PHASE_BACKWARD, shard, bytes, m,
                  "m Psi b_p (ZeRO 7.2.2, FSDP 3.2)");
    } else if (shard) {
        add_state(s, "weights all_gather", OP_ALL_GATHER, PHASE_FORWARD, shard, bytes, 1,
                  "Psi b_p after the optimizer (ZeRO 7.2.1)");
    }
}

static void add_gradients(struct step *s)
{
    unsigned shard = layout_shard_axes(s->l, s->r), data = layout_data_axes(s->l);
    double bytes = recipe_grad_bytes(s->r);
    bool every = s->r->strategy == STRATEGY_ZERO2 || recipe_gathers_weights(s->r);

    if (s->r->strategy == STRATEGY_DDP)
        add_state(s, "gradients all_reduce", OP_ALL_REDUCE, PHASE_BACKWARD, data, bytes, 1,
                  "Psi b_g, 2 Psi b_g on the wire (ZeRO 7.1)");
    else
        add_state(s, "gradients reduce_scatter", OP_REDUCE_SCATTER, PHASE_BACKWARD, shard, bytes,
                  every ? s->microbatches : 1,
                  every ? "m Psi b_g (ZeRO 7.2)" : "Psi b_g (ZeRO 7.2.1)");
    if (s->r->strategy == STRATEGY_HSDP)
        add_state(s, "gradients all_reduce of shards", OP_ALL_REDUCE, PHASE_BACKWARD,
                  AXIS_BIT(AXIS_DP_REPLICATE), bytes / layout_span(s->l, shard).size, 1,
                  "Psi / S b_g over the replicas (FSDP 3.2.2)");
}

/* Tokens of a microbatch that one rank of the sequence holds, in bytes of one hidden vector. */
static double activation_bytes(const struct step *s)
{
    return (double)s->r->seq * s->r->micro_batch / s->l->size[AXIS_CP] * s->m->hidden *
           ACTIVATION_BYTES;
}

/* Tensor with sequence parallelism, per layer and microbatch: 2 all_gather + 2 reduce_scatter
 * forward, as many backward, and 2 all_gather again for the weights' gradients; full recompute
 * repeats forward. */
static void add_tensor(struct step *s)
{
    bool again = s->r->recompute == RECOMPUTE_FULL;
    struct message msg = {.axes = AXIS_BIT(AXIS_TP),
                          .exposure = EXPOSE_TP,
                          .bytes = activation_bytes(s),
                          .phase = PHASE_LAYER,
                          .rounds = s->microbatches,
                          .formula =
                              "s b h 2 / cp, 6 + 4 per layer and microbatch (Korthikanti et al. "
                              "2022, 4.2.2)"};

    msg.label = "tp all_gather";
    msg.op = OP_ALL_GATHER;
    msg.count = (again ? 8 : 6) * s->layers * s->microbatches;
    add(s, msg);
    msg.label = "tp reduce_scatter";
    msg.op = OP_REDUCE_SCATTER;
    msg.count = (again ? 6 : 4) * s->layers * s->microbatches;
    add(s, msg);
}

/* Keys and values travel the ring cp-1 times forward and twice as far backward (with their
 * gradients). */
static void add_context(struct step *s)
{
    int cp = s->l->size[AXIS_CP], tp = s->l->size[AXIS_TP];

    for (int i = 0; i < s->m->kinds; i++) {
        const struct layer *k = &s->m->layer[i];
        if (!k->attention.kv_heads)
            continue; /* no keys and values */
        int kv = k->attention.kv_heads > tp ? k->attention.kv_heads / tp : 1;
        add(s, (struct message){
                   .label = "cp ring",
                   .axes = AXIS_BIT(AXIS_CP),
                   .exposure = EXPOSE_CP,
                   .op = OP_SENDRECV,
                   .bytes = 2.0 * kv * k->attention.head_dim * ((double)s->r->seq / cp) *
                            s->r->micro_batch * ACTIVATION_BYTES,
                   .count = 3.0 * (cp - 1) * k->count / s->l->size[AXIS_PP] * s->microbatches,
                   .phase = PHASE_LAYER,
                   .rounds = s->microbatches,
                   .formula = "2 kv d s/cp b 2 / tp, cp-1 hops forward and 2 (cp-1) "
                              "backward (Liu et al. 2023)"});
    }
}

/* One activation and one gradient per chunk and microbatch; sequence parallelism sends a tp-th of
 * it. */
static void add_pipeline(struct step *s)
{
    add(s,
        (struct message){.label = "pp sendrecv",
                         .axes = AXIS_BIT(AXIS_PP),
                         .exposure = s->r->stages > 1 ? EXPOSE_PP_INTERLEAVED : EXPOSE_PP,
                         .op = OP_SENDRECV,
                         .bytes = activation_bytes(s) / s->l->size[AXIS_TP],
                         .count = 2.0 * s->r->stages * s->microbatches,
                         .phase = PHASE_BOUNDARY,
                         .rounds = s->microbatches,
                         .formula = "s b h 2 / (tp cp), 2 v per microbatch (Narayanan et al. 2021, "
                                    "2.2)"});
}

void traffic_of(struct traffic *t, const struct model *m, const struct layout *l,
                const struct recipe *r)
{
    struct step s = {.t = t,
                     .m = m,
                     .l = l,
                     .r = r,
                     .microbatches = layout_microbatches(l, r),
                     .layers = (double)m->layers / l->size[AXIS_PP]};

    t->messages = 0;
    add_tensor(&s);
    add_context(&s);
    add_pipeline(&s);
    add_weights(&s);
    add_gradients(&s);
}
