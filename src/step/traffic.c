/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/traffic.h"

#include <assert.h>
#include <math.h>

const enum constant_id exposure_constant[EXPOSE_COUNT] = {
    [EXPOSE_WINDOW] = CONSTANT_EXPOSED_DP,
    [EXPOSE_TP] = CONSTANT_EXPOSED_TP,
    [EXPOSE_TP_PLAIN] = CONSTANT_EXPOSED_TP_PLAIN,
    [EXPOSE_CP] = CONSTANT_EXPOSED_CP,
    [EXPOSE_EP] = CONSTANT_EXPOSED_EP,
    [EXPOSE_EP_OVERLAP] = CONSTANT_EXPOSED_EP_OVERLAP,
    [EXPOSE_PP] = CONSTANT_EXPOSED_PP_1F1B,
    [EXPOSE_PP_INTERLEAVED] = CONSTANT_EXPOSED_PP_INTERLEAVED,
    [EXPOSE_DP_PLAIN] = CONSTANT_EXPOSED_DP_PLAIN,
};

enum { ACTIVATION_BYTES = 2 }; /* bf16 between layers, whatever the products compute in */

/* The list, and data needed for each of its messages. */
struct traffic_list {
    struct traffic *t;
    const struct step *s;
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    const struct pipe_stage *stage;
    double again;     /* share of layers whose forward runs twice (recompute full) */
    struct span part; /* ranks along a part of an axis that the next message is for; 0: all */
};

/* Find the same message of another kind of layers, or, when the list is full, one that differs only
 * in size. */
static struct message *find(struct traffic *t, const struct message *msg)
{
    enum { LABELS = 25 };

    for (int i = 0; i < t->messages; i++)
        if (t->message[i].label == msg->label &&
            (t->message[i].bytes == msg->bytes || t->messages >= TRAFFIC_MAX - LABELS))
            return &t->message[i];
    return NULL;
}

static void add(struct traffic_list *s, const struct message *msg)
{
    struct span span = s->part.size ? s->part : layout_span(s->l, msg->axes);

    if (span.size < 2 || !(msg->bytes > 0) || !(msg->count > 0))
        return;
    struct message *to = find(s->t, msg);
    if (to) {
        double count = to->count + msg->count;
        to->bytes = (to->bytes * to->count + msg->bytes * msg->count) / count;
        to->count = count;
        return;
    }
    assert(s->t->messages < TRAFFIC_MAX);
    to = &s->t->message[s->t->messages++];
    *to = *msg;
    to->span = span;
}

/* What is the same for every step in a message inside layers. */
struct inside {
    const char *label;
    enum axis axis;
    enum exposure exposure;
    enum op op;
    const char *formula;
};

static struct message inside_message(const struct traffic_list *s, const struct inside *kind,
                                     double bytes, double count)
{
    return (struct message){.label = kind->label,
                            .axes = AXIS_BIT(kind->axis),
                            .exposure = kind->exposure,
                            .op = kind->op,
                            .bytes = bytes,
                            .count = count * s->s->microbatches,
                            .phase = PHASE_LAYER,
                            .rounds = s->s->microbatches,
                            .per_token = true,
                            .per_microbatch = true,
                            .formula = kind->formula};
}

/* Add a message of this many bytes, `count` times a microbatch. */
static void add_inside(struct traffic_list *s, double bytes, double count,
                       const struct inside *kind)
{
    struct message msg = inside_message(s, kind, bytes, count);

    add(s, &msg);
}

/* Labels of the messages of a width, and the formula of their bytes. */
struct width_labels {
    const char *gather, *scatter, *reduce;
    const char *formula, *reduce_formula;
};

static const struct width_labels hidden_labels = {
    "tp all_gather", "tp reduce_scatter", "tp all_reduce",
    "s b h 2 / cp; a half of a layer: all_gather before, reduce_scatter after, both again "
    "backward, all_gather once more for weights' gradients (Korthikanti et al. 2022, 4.2.2)",
    "s b h 2 / cp, one after each half of a layer and one backward (Shoeybi et al. 2019, 3)"};

static const char latent_formula[] =
    "s b (q rank + kv rank + rope) 2 / cp: latents are gathered, not hidden "
    "(Megatron-LM core/transformer/multi_latent_attention.py)";
static const struct width_labels latent_labels = {
    "tp all_gather of latents", "tp reduce_scatter of latents", "tp all_reduce of latents",
    latent_formula, latent_formula};

/* Add the messages for `in` inputs and `out` outputs of this width. */
static void add_width(struct traffic_list *s, enum exposure e, double width, double in, double out,
                      const struct width_labels *labels)
{
    double bytes = s->s->tokens * width * ACTIVATION_BYTES;
    double forward = 1 + s->again, weights = s->r->lora ? 0 : 1;

    if (!s->r->sequence_parallel) {
        add_inside(
            s, bytes, out * forward + in,
            &(struct inside){labels->reduce, AXIS_TP, e, OP_ALL_REDUCE, labels->reduce_formula});
        return;
    }
    add_inside(s, bytes, in * (forward + weights) + out,
               &(struct inside){labels->gather, AXIS_TP, e, OP_ALL_GATHER, labels->formula});
    add_inside(s, bytes, out * forward + in,
               &(struct inside){labels->scatter, AXIS_TP, e, OP_REDUCE_SCATTER, labels->formula});
}

/* Embedding and head of one microbatch, whose products no stack splits: the embedding's output is
 * sharded and, unless frozen, its gradient gathered; the head is like the first half of a layer's
 * half. */
static void add_ends(struct traffic_list *s)
{
    double bytes = s->s->tokens * s->m->hidden * ACTIVATION_BYTES;
    double heads = s->stage->last ? 1 + (s->r->mtp ? s->m->mtp.count : 0) : 0;
    double first = s->stage->first, trained = s->r->lora ? 0 : 1;

    if (!s->r->sequence_parallel) {
        add_inside(s, bytes, first + heads,
                   &(struct inside){"tp all_reduce of embedding and head", AXIS_TP, EXPOSE_TP_PLAIN,
                                    OP_ALL_REDUCE,
                                    "s b h 2 / cp, embedding forward, head backward"});
    } else {
        add_inside(
            s, bytes, first * trained + heads * (1 + trained),
            &(struct inside){
                "tp all_gather of embedding and head", AXIS_TP, EXPOSE_TP_PLAIN, OP_ALL_GATHER,
                "s b h 2 / cp, embedding backward, head forward and for its weights' gradient"});
        add_inside(s, bytes, first + heads,
                   &(struct inside){"tp reduce_scatter of embedding and head", AXIS_TP,
                                    EXPOSE_TP_PLAIN, OP_REDUCE_SCATTER,
                                    "s b h 2 / cp, embedding forward, head backward"});
    }
    if (!s->r->loss_parallel)
        add_inside(s, s->s->tokens * s->m->vocab * ACTIVATION_BYTES, heads,
                   &(struct inside){"tp all_gather of logits", AXIS_TP, EXPOSE_TP_PLAIN,
                                    OP_ALL_GATHER, "s b V 2 / cp, for a loss of whole logits"});
    else
        add_inside(s, s->s->tokens * 4, 3 * heads,
                   &(struct inside){
                       "tp all_reduce of loss", AXIS_TP, EXPOSE_TP_PLAIN, OP_ALL_REDUCE,
                       "s b 4 / cp: maximum, sum and target of each token's logits (Megatron-LM "
                       "core/tensor_parallel/cross_entropy.py)"});
}

/* Messages of tensor parallelism.  Each half of a layer (mixer; dense MLP or shared experts)
 * gathers the tokens of all tp ranks before its first product and shards them after its last.  in,
 * out: halves with input, output of width `hidden`. */
static void add_tensor(struct traffic_list *s)
{
    double in = 0, out = 0;

    if (s->l->size[AXIS_TP] == 1)
        return;
    for (int i = 0; i <= s->m->kinds; i++) {
        const struct attention *a = &model_kind(s->m, i)->attention;
        const struct mlp *p = &model_kind(s->m, i)->mlp;
        double n = s->stage->count[i];
        bool wide = p->kind != MLP_NONE && (!p->experts || p->shared_ffn);
        out += n * ((a->kind != MIXER_NONE) + wide);
        in += n * ((a->kind != MIXER_NONE && a->kind != MIXER_MLA) + wide);
        if (a->kind == MIXER_MLA)
            add_width(s, EXPOSE_TP_PLAIN,
                      (a->q_rank ? a->q_rank : s->m->hidden) + (double)a->kv_rank + a->rope_dim, n,
                      0, &latent_labels);
    }
    add_width(s, recipe_overlaps_tp(s->r) ? EXPOSE_TP : EXPOSE_TP_PLAIN, s->m->hidden, in, out,
              &hidden_labels);
    add_ends(s);
}

/* Returns the bytes of keys and values of one rank's tokens, or of queries and outputs.  Latent
 * attention sends them after the up-projection from the latent, as Megatron-LM does. */
static double kv_bytes(const struct traffic_list *s, const struct attention *a)
{
    int tp = s->l->size[AXIS_TP], v = a->v_dim ? a->v_dim : a->head_dim;

    if (a->kind == MIXER_CSA) /* one head is both key and value */
        return s->s->tokens * a->head_dim * ACTIVATION_BYTES;
    double heads = a->kv_heads > tp ? (double)a->kv_heads / tp : 1;

    return s->s->tokens * heads * (a->head_dim + v) * ACTIVATION_BYTES;
}

static void add_ulysses(struct traffic_list *s, const struct attention *a, double forward, double n)
{
    int v = a->v_dim ? a->v_dim : a->head_dim;

    add_inside(
        s, s->s->tokens * a->heads / s->l->size[AXIS_TP] * (a->head_dim + v) * ACTIVATION_BYTES / 2,
        2 * (forward + 1) * n,
        &(struct inside){"cp all_to_all of queries and outputs", AXIS_CP, EXPOSE_CP, OP_ALL_TO_ALL,
                         "n d s/cp b 2 / tp each, and their gradients (Jacobs et al. 2023, 3.2)"});
    add_inside(
        s, kv_bytes(s, a) / 2, 2 * (forward + 1) * n,
        &(struct inside){"cp all_to_all of keys and values", AXIS_CP, EXPOSE_CP, OP_ALL_TO_ALL,
                         "kv d s/cp b 2 / tp each, and their gradients (Jacobs et al. 2023, 3.2)"});
}

/* With all_to_all inside, a rank has u times the tokens and a u-th of the heads: hops carry the same
 * bytes, and there are fewer. */
static void add_ring(struct traffic_list *s, const struct attention *a, double forward, double n)
{
    int u = s->r->ulysses ? s->r->ulysses : 1, hops = s->l->size[AXIS_CP] / u - 1;
    int stride = s->l->stride[AXIS_CP];

    if (u > 1) {
        s->part = (struct span){u, stride};
        add_ulysses(s, a, forward, n);
        s->part = (struct span){hops + 1, stride * u};
    }
    add_inside(s, kv_bytes(s, a), (forward + 2) * hops * n,
               &(struct inside){
                   "cp ring", AXIS_CP, EXPOSE_CP, OP_SENDRECV,
                   "2 kv d s/cp b 2 / tp, cp-1 hops forward and 2 (cp-1) backward (Liu et al. "
                   "2023); cp/u-1 with ulysses (Fang and Zhao 2024, 3)"});
    s->part = (struct span){0, 0};
}

/* Windows bring no saving, because the implementations move all keys and values. */
static void add_attention(struct traffic_list *s, const struct attention *a, double n)
{
    int cp = s->l->size[AXIS_CP];
    /* the core runs again */
    double forward = s->r->recompute == RECOMPUTE_NONE   ? 1
                     : s->r->recompute == RECOMPUTE_FULL ? 1 + s->again
                                                         : 2;

    switch (s->r->context) {
    case CONTEXT_RING:
        add_ring(s, a, forward, n);
        break;
    case CONTEXT_ULYSSES:
        add_ulysses(s, a, forward, n);
        break;
    default:
        add_inside(
            s, kv_bytes(s, a) * cp, (forward + 1) * n,
            &(struct inside){"cp all_gather of keys and values", AXIS_CP, EXPOSE_CP, OP_ALL_GATHER,
                             "2 kv d s b 2 / tp, forward and backward (Llama 3 2024, 3.3.2)"});
        add_inside(s, kv_bytes(s, a) * cp, n,
                   &(struct inside){"cp reduce_scatter of their gradients", AXIS_CP, EXPOSE_CP,
                                    OP_REDUCE_SCATTER, "2 kv d s b 2 / tp (Llama 3 2024, 3.3.2)"});
    }
}

/* A scan needs every token of a head, so heads and sequence swap their sharding before and after
 * it. */
static void add_mamba(struct traffic_list *s, const struct attention *a, double n)
{
    double inner = (double)a->heads * a->head_dim;
    double unit = s->s->tokens / s->l->size[AXIS_TP] * ACTIVATION_BYTES;

    add_inside(
        s, unit * (2 * inner + 2.0 * a->groups * a->state + a->heads), (2 + s->again) * n,
        &(struct inside){
            "cp all_to_all before the scan", AXIS_CP, EXPOSE_CP, OP_ALL_TO_ALL,
            "(z, x, B, C, dt) s/cp b 2 / tp (Megatron-LM core/ssm/mamba_context_parallel.py)"});
    add_inside(
        s, unit * inner, (2 + s->again) * n,
        &(struct inside){"cp all_to_all after the scan", AXIS_CP, EXPOSE_CP, OP_ALL_TO_ALL,
                         "y s/cp b 2 / tp (Megatron-LM core/ssm/mamba_context_parallel.py)"});
}

static void add_context(struct traffic_list *s)
{
    for (int i = 0; i <= s->m->kinds && s->l->size[AXIS_CP] > 1; i++) {
        const struct attention *a = &model_kind(s->m, i)->attention;
        if (a->kind == MIXER_MAMBA2)
            add_mamba(s, a, s->stage->count[i]);
        else if (a->kind != MIXER_NONE)
            add_attention(s, a, s->stage->count[i]);
    }
}

double message_crossing_bytes(const struct message *m, int members)
{
    double n = m->span.size;

    if (m->kernel == EP_NONE || !m->route.ranks)
        return m->bytes * (n - members) / n;
    double parts = routing_parts(&m->route, members);
    if (m->route.domains_max)
        parts = fmin(parts, m->route.domains_max);
    return m->bytes / routing_parts(&m->route, 1) * parts * (n - members) / n;
}

static void add_ep(struct traffic_list *s, double bytes, double count, const struct routing *route,
                   enum ep_kernel kernel, const struct inside *kind)
{
    struct message msg = inside_message(s, kind, bytes, count);

    msg.kernel = kernel;
    msg.route = *route;
    add(s, &msg);
}

/* Tokens of one rank to their experts and back, and their gradients in reverse.  A gradient has as
 * many bytes on its way to experts as a token (DeepSeek-V3 2024, 3.3.2). */
static void add_all_to_all(struct traffic_list *s, const struct mlp *p, double n)
{
    struct routing route = {.ranks = s->l->size[AXIS_EP],
                            .experts = p->experts,
                            .topk = p->topk,
                            .groups = p->groups,
                            .groups_max = p->nodes_max,
                            .domains_max = s->r->route_nodes};
    enum exposure exposure = s->r->ep_overlap ? EXPOSE_EP_OVERLAP : EXPOSE_EP;
    bool kernel = s->r->dispatch == DISPATCH_KERNEL;
    double width = p->latent ? p->latent : s->m->hidden;
    double values =
        s->s->tokens / s->l->size[AXIS_TP] * width * (kernel ? routing_parts(&route, 1) : p->topk);

    add_ep(s, values * s->r->dispatch_bytes, (2 + s->again) * n, &route,
           kernel ? EP_DISPATCH : EP_NONE,
           &(struct inside){
               "ep dispatch", AXIS_EP, exposure, OP_ALL_TO_ALL,
               kernel
                   ? "s b h / (tp cp) bytes for each rank with an expert of the token, forward and "
                     "backward (DeepSeek-V3 2024, 3.2.2)"
                   : "s b h topk / (tp cp) bytes, forward and backward (Megatron-LM "
                     "core/transformer/moe/token_dispatcher.py)"});
    add_ep(s, values * s->r->combine_bytes, (2 + s->again) * n, &route,
           kernel ? EP_COMBINE : EP_NONE,
           &(struct inside){"ep combine", AXIS_EP, exposure, OP_ALL_TO_ALL,
                            kernel ? "as dispatch, the other way (DeepSeek-V3 2024, 3.2.2)"
                                   : "as dispatch, the other way (Megatron-LM "
                                     "core/transformer/moe/token_dispatcher.py)"});
}

/* Before an all_to_all of uneven sizes every rank sends the number of its tokens for each
 * expert. */
static void add_counts(struct traffic_list *s, const struct mlp *p, double n)
{
    if (s->r->dispatch != DISPATCH_NCCL)
        return;
    add(s, &(struct message){.label = "ep all_gather of counts",
                             .axes = AXIS_BIT(AXIS_EP),
                             .exposure = EXPOSE_EP,
                             .op = OP_ALL_GATHER,
                             .bytes = 8.0 * p->experts * s->l->size[AXIS_EP],
                             .count = (1 + s->again) * n * s->s->microbatches,
                             .phase = PHASE_LAYER,
                             .rounds = s->s->microbatches,
                             .per_microbatch = true,
                             .formula = "8 E ep bytes, forward (Megatron-LM "
                                        "core/transformer/moe/token_dispatcher.py)"});
}

/* An expert's columns are on etp ranks, and each of these needs all tokens that any of them
 * received. */
static void add_expert_tensor(struct traffic_list *s, const struct mlp *p, double n)
{
    static const char formula[] = "s b h topk 2 etp / (tp cp), forward and backward (Megatron-LM "
                                  "core/transformer/moe/token_dispatcher.py)";
    double width = p->latent ? p->latent : s->m->hidden;
    double bytes = s->s->tokens / s->l->size[AXIS_TP] * p->topk * width * ACTIVATION_BYTES *
                   s->l->size[AXIS_ETP];

    add_inside(
        s, bytes, (2 + s->again) * n,
        &(struct inside){"etp all_gather", AXIS_ETP, EXPOSE_TP_PLAIN, OP_ALL_GATHER, formula});
    add_inside(s, bytes, (2 + s->again) * n,
               &(struct inside){"etp reduce_scatter", AXIS_ETP, EXPOSE_TP_PLAIN, OP_REDUCE_SCATTER,
                                formula});
}

static void add_experts(struct traffic_list *s)
{
    for (int i = 0; i <= s->m->kinds; i++) {
        const struct mlp *p = &model_kind(s->m, i)->mlp;
        double n = s->stage->count[i];
        if (!p->experts || !(n > 0))
            continue;
        if (s->l->size[AXIS_EP] > 1) {
            add_all_to_all(s, p, n);
            add_counts(s, p, n);
        }
        if (s->l->size[AXIS_ETP] > 1)
            add_expert_tensor(s, p, n);
    }
}

/* Parameters of one grid: dense ones or those of routed experts. */
struct state_grid {
    const char *gather_forward, *gather_backward, *gather, *scatter, *reduce, *replicas;
    const struct step_grid *grid;
    double params;  /* of the rank, including adapters; gathered before use */
    double trained; /* parameters with gradients */
    double layers;
};

/* How weights or gradients are sent. */
struct pieces {
    const char *label;
    enum op op;
    enum phase phase;
    unsigned axes;
    bool per_microbatch;
    const char *formula;
};

/* Weights or gradients of the rank in equal messages.  Sharded weights: one message per layer,
 * because a layer is gathered as a whole.  Otherwise: buckets of at least 40M parameters, 1M per
 * rank of the group (Megatron-LM core/distributed/distributed_data_parallel.py), so that long rings
 * are not dominated by latency.  Embeddings, head and last norm are spread over the messages, so
 * the bytes of a step are exactly Psi times bytes per parameter.  bytes: of one parameter. */
static void add_pieces(struct traffic_list *s, const struct state_grid *grid, double params,
                       double bytes, const struct pieces *p)
{
    double pieces = fmax(1, grid->layers), rounds = p->per_microbatch ? s->s->microbatches : 1;

    if (!recipe_gathers_weights(s->r)) {
        double bucket = fmax(40e6, 1e6 * layout_span(s->l, p->axes).size);
        pieces = fmin(pieces, ceil(params / bucket));
    }
    add(s, &(struct message){.label = p->label,
                             .axes = p->axes,
                             .exposure = recipe_overlaps_dp(s->r) ? EXPOSE_WINDOW : EXPOSE_DP_PLAIN,
                             .op = p->op,
                             .bytes = params * bytes / pieces,
                             .count = pieces * rounds,
                             .phase = p->phase,
                             .rounds = rounds,
                             .per_microbatch = p->per_microbatch,
                             .formula = p->formula});
}

static void add_weights(struct traffic_list *s, const struct state_grid *h)
{
    double bytes =
        recipe_gathers_weights(s->r) ? recipe_gathered_bytes(s->r) : recipe_weight_bytes(s->r);
    bool pipeline = s->l->size[AXIS_PP] > 1;
    unsigned shard = h->grid->shard;

    if (!recipe_gathers_weights(s->r)) {
        add_pieces(s, h, h->trained, bytes,
                   &(struct pieces){h->gather, OP_ALL_GATHER, PHASE_FORWARD, shard, false,
                                    "Psi b_p after the optimizer (ZeRO 7.2.1)"});
    } else if (s->r->reshard) {
        add_pieces(s, h, h->params, bytes,
                   &(struct pieces){h->gather_forward, OP_ALL_GATHER, PHASE_FORWARD, shard, true,
                                    "m Psi b_p, resharded after forward (ZeRO 7.2.2, FSDP 3.2)"});
        add_pieces(s, h, h->params, bytes,
                   &(struct pieces){h->gather_backward, OP_ALL_GATHER, PHASE_BACKWARD, shard, true,
                                    "m Psi b_p (ZeRO 7.2.2, FSDP 3.2)"});
    } else {
        add_pieces(s, h, h->params, bytes,
                   &(struct pieces){
                       h->gather, OP_ALL_GATHER, PHASE_FORWARD, shard, !pipeline,
                       pipeline ? "Psi b_p, kept for all microbatches of a pipeline (FSDP 3.2.1)"
                                : "m Psi b_p, kept until backward (FSDP 3.2.1)"});
    }
}

/* True if gradients are reduced in every microbatch.  ZeRO-2 and 3 keep only a shard of them, so
 * they do.  FSDP does too (torchtitan train.py accumulates shards), but a pipeline synchronizes the
 * last microbatch only (torch/distributed/pipelining/stage.py), and other stacks if configured. */
static bool reduces_always(const struct traffic_list *s)
{
    bool every = s->r->strategy == STRATEGY_ZERO2 || recipe_gathers_weights(s->r);
    bool last = s->l->size[AXIS_PP] > 1 || s->r->grad_sync == GRAD_SYNC_LAST;

    return every && !(last && recipe_gathers_weights(s->r));
}

static void add_gradients(struct traffic_list *s, const struct state_grid *h)
{
    double bytes = recipe_grad_bytes(s->r);
    bool always = reduces_always(s);

    if (s->r->strategy == STRATEGY_DDP) {
        add_pieces(s, h, h->trained, bytes,
                   &(struct pieces){h->reduce, OP_ALL_REDUCE, PHASE_BACKWARD, h->grid->data, false,
                                    "Psi b_g, 2 Psi b_g on the wire (ZeRO 7.1)"});
        return;
    }
    add_pieces(s, h, h->trained, bytes,
               &(struct pieces){h->scatter, OP_REDUCE_SCATTER, PHASE_BACKWARD, h->grid->shard,
                                always,
                                always && s->s->microbatches > 1 ? "m Psi b_g (ZeRO 7.2)"
                                                                 : "Psi b_g (ZeRO 7.2.1)"});
    if (recipe_has_replicas(s->r))
        add_pieces(
            s, h, h->trained / h->grid->shards, bytes,
            &(struct pieces){h->replicas, OP_ALL_REDUCE, PHASE_BACKWARD,
                             AXIS_BIT(AXIS_DP_REPLICATE), always,
                             "Psi / S b_g over the replicas, as often as the shards (FSDP 3.2.2)"});
}

static void add_state(struct traffic_list *s)
{
    const struct pipe_stage *h = s->stage;
    bool lora = !s->s->trained;
    const struct state_grid grids[] = {
        {"weights all_gather forward", "weights all_gather backward", "weights all_gather",
         "gradients reduce_scatter", "gradients all_reduce", "gradients all_reduce of shards",
         &s->s->dense, h->dense + h->lora, lora ? h->lora : h->dense, h->held},
        {"experts' weights all_gather forward", "experts' weights all_gather backward",
         "experts' weights all_gather", "experts' gradients reduce_scatter",
         "experts' gradients all_reduce", "experts' gradients all_reduce of shards", &s->s->expert,
         h->expert + h->lora_expert, lora ? h->lora_expert : h->expert, h->held_experts}};

    for (int i = 0; i < 2; i++)
        if (grids[i].params > 0) {
            add_weights(s, &grids[i]);
            add_gradients(s, &grids[i]);
        }
}

/* One activation and one gradient per chunk and microbatch; sequence parallelism sends 1 / tp of
 * it.  Zero-bubble schedules send the same; DualPipe sends each microbatch one way and hides it. */
static struct message pipeline_message(const struct step *s)
{
    const struct recipe *r = s->r;
    bool hidden = r->schedule == SCHEDULE_INTERLEAVED || r->schedule == SCHEDULE_DUALPIPE;
    double share = r->sequence_parallel ? s->l->size[AXIS_TP] : 1;

    return (struct message){.label = "pp sendrecv",
                            .axes = AXIS_BIT(AXIS_PP),
                            .exposure = hidden ? EXPOSE_PP_INTERLEAVED : EXPOSE_PP,
                            .op = OP_SENDRECV,
                            .bytes = s->tokens * s->m->hidden * ACTIVATION_BYTES / share,
                            .count = 2.0 * r->stages * s->microbatches,
                            .phase = PHASE_BOUNDARY,
                            .rounds = s->microbatches,
                            .per_token = true,
                            .per_microbatch = true,
                            .formula = "s b h 2 / (tp cp), 2 v per microbatch (Narayanan et al. "
                                       "2021, 2.2)"};
}

void traffic_of(struct traffic *t, const struct step *s)
{
    double layers = (double)s->m->layers / s->l->size[AXIS_PP];
    struct traffic_list list = {
        .t = t,
        .s = s,
        .m = s->m,
        .l = s->l,
        .r = s->r,
        .stage = &s->stage[s->slowest],
        .again = s->r->recompute == RECOMPUTE_FULL ? recipe_recomputed_share(s->r, layers) : 0};

    t->messages = 0;
    t->layers = list.stage->layers;
    t->updated = s->updated;
    add_tensor(&list);
    add_context(&list);
    add_experts(&list);
    struct message pipeline = pipeline_message(s);
    add(&list, &pipeline);
    add_state(&list);
}

void traffic_schedule(struct traffic *t, const struct step *s)
{
    struct message pipeline = pipeline_message(s);

    for (int i = 0; i < t->messages; i++)
        if (t->message[i].phase == PHASE_BOUNDARY) {
            pipeline.span = t->message[i].span;
            t->message[i] = pipeline;
        }
}
