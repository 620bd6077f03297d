/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of weights and gradients between data-parallel ranks. */
#include <math.h>

#include "step/traffic_parts.h"

static void add_kind(struct held *h, const struct recipe *r, const struct layer *kind, double count)
{
    const struct layer_sums *one = &kind->sums;

    h->layers += count;
    h->expert_layers += kind->mlp.experts ? count : 0;
    h->expert += count * one->expert;
    h->dense += count * (one->total - one->expert);
    if (r->lora)
        h->lora +=
            count * r->lora_rank * (one->lora_mixer + (r->lora == LORA_ALL ? one->lora_mlp : 0));
    if (r->lora == LORA_ALL)
        h->lora_expert += count * r->lora_rank * one->lora_expert;
}

/* Embedding, positions, last norm and head; a tied matrix is in both end stages. */
static double end_params(const struct model *m, const struct pipe_stage *s)
{
    double h = m->hidden, table = h * m->vocab;

    return (s->first ? table + h * m->positions : 0) +
           (s->last ? h + (m->tied && s->first ? 0 : table) : 0);
}

void traffic_held(struct held *h, const struct model *m, const struct layout *l,
                  const struct recipe *r, const struct pipe_stage *s)
{
    double tp = l->size[AXIS_TP], mp = (double)l->size[AXIS_EP] * l->size[AXIS_ETP];
    double copies = r->schedule == SCHEDULE_DUALPIPE && l->size[AXIS_PP] > 1 ? 2 : 1;

    *h = (struct held){.dense = end_params(m, s)};
    for (int i = 0; i < m->kinds; i++)
        add_kind(h, r, &m->layer[i], stage_layers(s, m, &m->layer[i]));
    if (r->mtp && s->last && m->mtp.count) {
        double own = m->mtp_shared ? 1 : m->mtp.count, width = m->hidden;
        add_kind(h, r, &m->mtp, own);
        h->dense += own * (2 * width * width + 3 * width); /* as mtp_params() */
    }
    h->dense *= copies / tp;
    h->lora *= copies / tp;
    h->expert *= copies / mp;
    h->lora_expert *= copies / mp;
    h->layers *= copies;
    h->expert_layers *= copies;
}

double traffic_states(const struct held *h, const struct layout *l, const struct recipe *r)
{
    double dense = layout_span(l, layout_shard_axes(l, r)).size;
    double expert = layout_span(l, layout_expert_shard_axes(l, r)).size;

    return r->lora ? h->lora / dense + h->lora_expert / expert
                   : h->dense / dense + h->expert / expert;
}

/* One of the two grids: dense parameters or routed experts. */
struct half {
    const char *gather_forward, *gather_backward, *gather, *scatter, *reduce, *replicas;
    unsigned shard, data;
    double params;  /* of the rank, adapters included: what is gathered before use */
    double trained; /* what has gradients */
    double layers;
};

/* Weights or gradients of the rank in equal messages: with sharded weights one per layer, since a
 * layer is gathered as a whole; else buckets of at least 40M parameters, 1M per rank of the group
 * (Megatron-LM core/distributed/distributed_data_parallel.py), so that long rings are not all
 * latency.  Embeddings, head and last norm are spread over them: the bytes of a step are exactly
 * Psi times bytes per parameter. */
static void add_pieces(struct step *s, const char *label, enum op op, enum phase phase,
                       unsigned axes, const struct half *half, double params, double bytes,
                       double rounds, const char *formula)
{
    double bucket = fmax(40e6, 1e6 * layout_span(s->l, axes).size);
    double pieces = fmax(1, half->layers);

    if (!recipe_gathers_weights(s->r))
        pieces = fmin(pieces, ceil(params / bucket));
    traffic_add(s, &(struct message){.label = label,
                                     .axes = axes,
                                     .op = op,
                                     .bytes = params * bytes / pieces,
                                     .count = pieces * rounds,
                                     .phase = phase,
                                     .rounds = rounds,
                                     .formula = formula});
}

static void add_weights(struct step *s, const struct half *h)
{
    double bytes = recipe_weight_bytes(s->r), m = s->microbatches;
    bool pipeline = s->l->size[AXIS_PP] > 1;

    if (!recipe_gathers_weights(s->r)) {
        add_pieces(s, h->gather, OP_ALL_GATHER, PHASE_FORWARD, h->shard, h, h->trained, bytes, 1,
                   "Psi b_p after the optimizer (ZeRO 7.2.1)");
    } else if (s->r->reshard) {
        add_pieces(s, h->gather_forward, OP_ALL_GATHER, PHASE_FORWARD, h->shard, h, h->params,
                   bytes, m, "m Psi b_p, resharded after forward (ZeRO 7.2.2, FSDP 3.2)");
        add_pieces(s, h->gather_backward, OP_ALL_GATHER, PHASE_BACKWARD, h->shard, h, h->params,
                   bytes, m, "m Psi b_p (ZeRO 7.2.2, FSDP 3.2)");
    } else {
        add_pieces(s, h->gather, OP_ALL_GATHER, PHASE_FORWARD, h->shard, h, h->params, bytes,
                   pipeline ? 1 : m,
                   pipeline ? "Psi b_p, kept for all microbatches of a pipeline (FSDP 3.2.1)"
                            : "m Psi b_p, kept until backward (FSDP 3.2.1)");
    }
}

/* How often a step reduces gradients: ZeRO-2 and 3 keep only a shard of them, so every microbatch;
 * FSDP too (torchtitan train.py accumulates shards), but a pipeline synchronizes the last
 * microbatch only (torch/distributed/pipelining/stage.py). */
static double reductions(const struct step *s)
{
    bool every = s->r->strategy == STRATEGY_ZERO2 || recipe_gathers_weights(s->r);
    bool pipeline = s->l->size[AXIS_PP] > 1 && recipe_gathers_weights(s->r);

    return every && !pipeline ? s->microbatches : 1;
}

static void add_gradients(struct step *s, const struct half *h)
{
    double bytes = recipe_grad_bytes(s->r), rounds = reductions(s);
    double shards = layout_span(s->l, h->shard).size;

    if (s->r->strategy == STRATEGY_DDP) {
        add_pieces(s, h->reduce, OP_ALL_REDUCE, PHASE_BACKWARD, h->data, h, h->trained, bytes, 1,
                   "Psi b_g, 2 Psi b_g on the wire (ZeRO 7.1)");
        return;
    }
    add_pieces(s, h->scatter, OP_REDUCE_SCATTER, PHASE_BACKWARD, h->shard, h, h->trained, bytes,
               rounds, rounds > 1 ? "m Psi b_g (ZeRO 7.2)" : "Psi b_g (ZeRO 7.2.1)");
    if (s->r->strategy == STRATEGY_HSDP)
        add_pieces(s, h->replicas, OP_ALL_REDUCE, PHASE_BACKWARD, AXIS_BIT(AXIS_DP_REPLICATE), h,
                   h->trained / shards, bytes, rounds,
                   "Psi / S b_g over the replicas, as often as the shards (FSDP 3.2.2)");
}

static void add_half(struct step *s, const struct half *h)
{
    if (h->params > 0) {
        add_weights(s, h);
        add_gradients(s, h);
    }
}

void traffic_add_state(struct step *s)
{
    struct held held;
    bool lora = s->r->lora != LORA_NONE;

    traffic_held(&held, s->m, s->l, s->r, &s->t->stage);
    add_half(s, &(struct half){"weights all_gather forward", "weights all_gather backward",
                               "weights all_gather", "gradients reduce_scatter",
                               "gradients all_reduce", "gradients all_reduce of shards",
                               layout_shard_axes(s->l, s->r), layout_data_axes(s->l),
                               held.dense + held.lora, lora ? held.lora : held.dense, held.layers});
    add_half(s, &(struct half){
                    "experts' weights all_gather forward", "experts' weights all_gather backward",
                    "experts' weights all_gather", "experts' gradients reduce_scatter",
                    "experts' gradients all_reduce", "experts' gradients all_reduce of shards",
                    layout_expert_shard_axes(s->l, s->r), layout_expert_data_axes(s->l),
                    held.expert + held.lora_expert, lora ? held.lora_expert : held.expert,
                    held.expert_layers});
}
