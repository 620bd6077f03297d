/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/memory.h"

#include <math.h>

/* Bytes per token of a layer.
 *   wide    tensors of width `hidden`, sharded only by sequence parallelism
 *   inputs  inputs of products over tp: Megatron-LM shards them too and gathers them again
 *           backward (Korthikanti et al. 2022, 4.2.2), as products in parts do (torchtitan's
 *           async TP, nanotron's); PyTorch otherwise keeps them whole
 *   inner   tensors inside heads and columns, sharded by tp, including tokens at experts */
struct layer_kept {
    double wide, inputs, inner;
};

enum { CHUNK = 256 }; /* tokens between the states that a scan keeps (Mamba-2) */

/* Bytes per element of a tensor used only as input of a product: fp8 products keep the fp8 copy. */
static double input_bytes(const struct recipe *r)
{
    return r->stack == STACK_MEGATRON && r->dtype >= DTYPE_FP8 ? 1 : 2;
}

/* Flash attention keeps q, k, v and its output; the output is the input of the last product.
 * Unfused: s scores per head with probabilities, their dropout and its mask, 2 + 2 + 1 bytes
 * (Korthikanti et al. 2022, eq. 1). */
static void keep_heads(struct layer_kept *k, const struct attention *a, const struct recipe *r,
                       bool scores)
{
    double in = input_bytes(r);
    double q = (double)a->heads * a->head_dim, kv = (double)a->kv_heads * a->head_dim;
    double v = a->v_dim ? (double)a->kv_heads * a->v_dim : kv;
    double out = a->v_dim ? (double)a->heads * a->v_dim : q;

    k->inner += 2 * (q + kv + v + out) + (in < 2 ? in * out : 0);
    k->inner += 2 * ((double)a->q_rank + a->kv_rank + a->rope_dim); /* latents; 0 without */
    if (scores && r->attention != KERNELS_FLASH)
        k->inner += 5.0 * a->heads * r->seq;
}

/* Kept: output of the first product, output of the convolution, output of the scan and states
 * between chunks (Dao and Gu 2024, 6). */
static void keep_scan(struct layer_kept *k, const struct attention *a, double in)
{
    double inner = (double)a->heads * a->head_dim, shared = 2.0 * a->groups * a->state;

    k->inner += 2 * (2 * inner + shared + a->heads) + 2 * (inner + shared) + 2 * inner +
                in * inner + 4 * inner * a->state / CHUNK;
}

static void keep_mixer(struct layer_kept *k, const struct model *m, const struct attention *a,
                       const struct recipe *r, bool scores)
{
    double in = input_bytes(r);

    if (a->kind == MIXER_NONE)
        return;
    k->wide += 2.0 * m->hidden; /* input of the norm */
    k->inputs += in * m->hidden;
    if (a->kind == MIXER_MAMBA2)
        keep_scan(k, a, in);
    else
        keep_heads(k, a, r, scores);
}

/* Outputs of products into `ffn`, and of the activation; unfused, SwiGLU's inner activation is also
 * in memory. */
static double columns(const struct mlp *p, double ffn, const struct recipe *r)
{
    bool fused = recipe_pointwise(r) != POINTWISE_SEPARATE;

    return (p->kind == MLP_SWIGLU ? fused ? 4 : 6 : 2) * ffn + input_bytes(r) * ffn;
}

/* MLPs beside adapters on attention only: frozen products need no input, and Megatron-LM in fp8
 * keeps the activation's input in one byte (activation_func_fp8_input_store). */
static void keep_frozen_mlp(struct layer_kept *k, const struct model *m, const struct mlp *p,
                            const struct recipe *r)
{
    double width = p->experts ? (double)p->topk * p->ffn + p->shared_ffn : p->ffn;

    k->wide += 2.0 * m->hidden + 8.0 * p->experts;
    k->inner += (p->kind == MLP_SWIGLU ? 2 : 1) * width * input_bytes(r);
}

static void keep_mlp(struct layer_kept *k, const struct model *m, const struct mlp *p,
                     const struct recipe *r, int etp)
{
    double in = input_bytes(r);

    if (p->kind == MLP_NONE)
        return;
    if (r->lora == LORA_ATTENTION) {
        keep_frozen_mlp(k, m, p, r);
        return;
    }
    k->wide += 2.0 * m->hidden;
    k->inputs += in * m->hidden;
    if (!p->experts) {
        k->inner += columns(p, p->ffn, r);
        return;
    }
    k->wide += 8.0 * p->experts + 2.0 * p->latent; /* logits and probabilities of the router */
    k->inner += columns(p, p->shared_ffn, r);
    k->inner += p->topk * (in * (p->latent ? p->latent : m->hidden) * etp + columns(p, p->ffn, r));
}

/* torchtitan saves attention's output and every other product of q, k, v, o, gate, up, down: q, v,
 * gate, down (distributed/activation_checkpoint.py), and the output of all_to_all.  The layer's
 * input is kept in any case. */
static void keep_every_other(struct layer_kept *k, const struct model *m, const struct layer *kind)
{
    const struct attention *a = &kind->attention;
    const struct mlp *p = &kind->mlp;
    double q = (double)a->heads * a->head_dim, v = (double)a->kv_heads * a->head_dim;
    double out = a->v_dim ? (double)a->heads * a->v_dim : q;

    k->wide += 2.0 * m->hidden + (p->kind == MLP_NONE ? 0 : 2.0 * m->hidden);
    k->inner += 2 * (q + v + out) + (p->experts ? 2.0 * p->shared_ffn : 2.0 * p->ffn);
    if (p->experts)
        k->inner += p->topk * (2.0 * p->ffn + 4.0 * m->hidden);
}

/* Bytes per token of one rank's part of the sequence before tp (tokens of a microbatch / cp). */
static double layer_bytes(const struct model *m, const struct layer *kind, const struct layout *l,
                          const struct recipe *r, int recompute)
{
    bool torch = r->stack != STACK_MEGATRON, whole = torch && !recipe_overlaps_tp(r);
    double tp = l->size[AXIS_TP];
    struct layer_kept k = {0, 0, 0};
    double sequence = r->sequence_parallel ? tp : 1;

    if (recompute == RECOMPUTE_FULL) {
        k.wide = 2.0 * m->hidden;
    } else if (recompute == RECOMPUTE_SELECTIVE && torch) {
        keep_every_other(&k, m, kind);
    } else {
        keep_mixer(&k, m, &kind->attention, r, recompute == RECOMPUTE_NONE);
        keep_mlp(&k, m, &kind->mlp, r, l->size[AXIS_ETP]);
    }
    return k.wide / sequence + k.inputs / (whole ? 1 : sequence) + k.inner / tp;
}

#define AT(field) offsetof(struct memory, field)

const struct memory_part memory_part[MEMORY_PARTS] = {
    {"weights", "bf16, or fp32 shards of FSDP", AT(weights)},
    {"gradients", "of trained weights", AT(gradients)},
    {"optimizer", "moments and master weights", AT(optimizer)},
    {"adapters", "LoRA, with their states", AT(adapters)},
    {"activations", "kept for backward, and one layer at work", AT(activations)},
    {"logits", "at the peak of the loss", AT(logits)},
    {"gathered", "whole layers in flight, buckets", AT(gathered)},
    {"comm", "NCCL buffers", AT(comm)},
    {"context", "CUDA context and libraries", AT(context)},
    {"fragmentation", "of the allocator", AT(fragmentation)},
};

/* Bytes per logit at the peak of the loss. */
static const enum constant_id logit_bytes[POINTWISE_COUNT] = {
    [POINTWISE_LIBRARY] = CONSTANT_MEMORY_LOGIT_BYTES_MEGATRON,
    [POINTWISE_COMPILED] = CONSTANT_MEMORY_LOGIT_BYTES_COMPILED,
    [POINTWISE_SEPARATE] = CONSTANT_MEMORY_LOGIT_BYTES_EAGER,
};

/* Bytes per parameter, and whether data-parallel ranks shard them. */
struct state_bytes {
    double weight, optimizer;
    bool weights, gradients, states; /* sharded */
};
static const struct state_bytes state_bytes[STRATEGY_COUNT] = {
    [STRATEGY_DDP] = {2, 12, false, false, false}, [STRATEGY_ZERO1] = {2, 12, false, false, true},
    [STRATEGY_ZERO2] = {2, 12, false, true, true}, [STRATEGY_ZERO3] = {2, 12, true, true, true},
    [STRATEGY_FSDP] = {4, 8, true, true, true},    [STRATEGY_HSDP] = {4, 8, true, true, true},
};

/* One stage of a step, and its sums. */
struct stage_sum {
    const struct step *s;
    const struct model *m;
    const struct layout *l;
    const struct recipe *r;
    const struct pipe_stage *stage;
    const struct constants *c;
    struct memory_stage *out;
};

/* Frozen weights are stored as products read them: one byte for fp8 and fp4 under Megatron-LM (fp8
 * parameters), else bf16. */
static double frozen_bytes(const struct recipe *r)
{
    if (r->frozen_bytes > 0)
        return r->frozen_bytes;
    bool narrow = r->dtype == DTYPE_FP8 || r->dtype == DTYPE_MXFP8 || r->dtype == DTYPE_NVFP4;

    return narrow && r->stack == STACK_MEGATRON ? 1 : 2;
}

/* Megatron-LM adds gradients up in fp32 (pretrain_gpt.py), its published recipes in bf16
 * (grad_reduce_in_fp32 off): unless it is stated, 3 bytes stand for 2 or 4. */
static bool gradients_are_unsaid(const struct recipe *r)
{
    return !(r->grad_bytes > 0) && r->stack == STACK_MEGATRON && !recipe_gathers_weights(r) &&
           !recipe_is_deepspeed(r);
}

/* Gradient bytes per parameter: PyTorch's own have the width of the weight, with fp32 sums beside
 * them (nanotron optim/gradient_accumulator.py).  Megatron-LM adds into its sums and drops the
 * gradients. */
static double gradient_bytes(const struct recipe *r)
{
    double sums = gradients_are_unsaid(r) ? 3 : recipe_grad_bytes(r);
    bool apart = r->stack == STACK_EAGER && !recipe_gathers_weights(r) && sums > 2;

    return apart ? sums + 2 : sums;
}

/* Add one grid: `params` of the rank, with `adapters`, sharded over n ranks. */
static void add_states(struct memory *mem, const struct recipe *r, double params, double adapters,
                       int n)
{
    const struct state_bytes *h = &state_bytes[r->strategy];
    double weights = h->weights ? n : 1, gradients = h->gradients ? n : 1;
    double states = h->states ? n : 1, gradient = gradient_bytes(r), kept = r->state_bytes;
    double weight = h->weight, optimizer = h->optimizer;

    if (kept > 0) { /* below fp32 products use a copy of the optimizer's weights */
        weight = h->weight > 2 ? kept / 3 : 2;
        optimizer = h->weight > 2 || kept < 8 ? kept - weight : kept;
        gradient = h->weight > 2 ? fmin(gradient, weight) : gradient;
    }
    if (r->lora) {
        mem->weights += params * frozen_bytes(r) / weights;
        mem->adapters += adapters * (weight / weights + gradient / gradients + optimizer / states);
        return;
    }
    mem->weights += params * weight / weights;
    mem->gradients += params * gradient / gradients;
    mem->optimizer += params * optimizer / states;
}

/* DeepSpeed: buckets of gradients and weights, and its share of the gradients in fp32 for the
 * update (runtime/zero/stage_1_and_2.py, step). */
static double bucket_bytes(const struct stage_sum *v)
{
    const struct pipe_stage *h = v->stage;
    double dense = v->s->trained ? h->dense : h->lora;
    double expert = v->s->trained ? h->expert : h->lora_expert;

    if (v->r->strategy == STRATEGY_DDP || !recipe_is_deepspeed(v->r))
        return 0;
    return constants_get(v->c, CONSTANT_MEMORY_BUCKET_BYTES)->value +
           4 * (dense / v->s->dense.shards + expert / v->s->expert.shards);
}

/* FSDP: this layer's whole weights, with prefetch also the next one's, the head until backward, and
 * one layer's gradients in transit.  A pipeline holds whole gradients until its last microbatch,
 * and whole weights unless they are resharded.  DeepSpeed: buckets. */
static double gathered_bytes(const struct stage_sum *v)
{
    const struct pipe_stage *h = v->stage;
    double all = h->dense + h->expert, layers = fmax(1, h->held);
    double trained = v->s->trained ? all : h->lora + h->lora_expert;
    double weight = recipe_gathered_bytes(v->r), gradient = recipe_grad_bytes(v->r);
    double head = h->last ? (double)v->m->hidden * v->m->vocab / v->l->size[AXIS_TP] : 0;
    bool pipeline = v->l->size[AXIS_PP] > 1;

    v->out->unreduced = 0;
    if (!recipe_gathers_weights(v->r))
        return bucket_bytes(v);
    if (v->s->dense.shards == 1)
        return 0;
    double weights = all / layers * (v->r->prefetch ? 2 : 1) * weight + head * weight;
    if (!v->r->reshard)
        weights = all * weight;
    v->out->unreduced = pipeline ? 0 : trained * gradient * (1 - 1 / layers);
    return weights + (pipeline ? trained * gradient : trained / layers * gradient);
}

/* Per token: tensors that a microbatch in flight keeps of every layer of the stage, and those of
 * the active layer with their gradients, and when it is recomputed all of them again. */
static void add_activations(const struct stage_sum *v, const double *kept, const double *whole)
{
    const struct recipe *r = v->r;
    struct memory_stage *out = v->out;
    double most = 0;

    out->kept = 0;
    for (int i = 0; i <= v->m->kinds; i++) {
        double n = v->stage->count[i];
        if (n <= 0)
            continue;
        out->kept += n * kept[i];
        most = fmax(most, whole[i]);
    }
    bool gathers = v->l->size[AXIS_TP] > 1 && r->sequence_parallel && r->stack == STACK_MEGATRON;
    out->at_work = most * (r->recompute ? 2 : 1);
    out->whole = gathers ? 2 * 2.0 * v->m->hidden : 0; /* a gathered input and its gradient */
    double parts = r->loss_parallel ? v->l->size[AXIS_TP] : 1;
    out->logits = v->stage->last ? v->m->vocab / parts *
                                       constants_get(v->c, logit_bytes[recipe_pointwise(r)])->value
                                 : 0;
}

static double comm_bytes(const struct layout *l, const struct constants *c)
{
    double sum = l->ranks > 1 ? constants_get(c, CONSTANT_MEMORY_NCCL_BYTES)->value : 0;
    double communicator = constants_get(c, CONSTANT_MEMORY_COMMUNICATOR_BYTES)->value;

    for (int i = 0; i < AXIS_COUNT; i++)
        sum += l->size[i] > 1 ? communicator : 0;
    return sum;
}

static void add_stage(const struct stage_sum *v)
{
    const struct pipe_stage *h = v->stage;
    struct memory *mem = &v->out->fixed;

    *mem = (struct memory){.stage = h->index};
    add_states(mem, v->r, h->dense, h->lora, v->s->dense.shards);
    add_states(mem, v->r, h->expert, h->lora_expert, v->s->expert.shards);
    mem->gathered = gathered_bytes(v);
    mem->comm = comm_bytes(v->l, v->c);
    mem->context = constants_get(v->c, CONSTANT_MEMORY_CONTEXT_BYTES)->value;
    v->out->states = memory_states(mem);
}

void memory_stages(struct memory_stage out[STEP_STAGES], const struct step *s,
                   const struct constants *c)
{
    double kept[MODEL_KINDS_MAX + 1], whole[MODEL_KINDS_MAX + 1];

    double again = recipe_recomputed_share(s->r, (double)s->m->layers / s->l->size[AXIS_PP]);

    for (int i = 0; i <= s->m->kinds; i++) {
        kept[i] = layer_bytes(s->m, model_kind(s->m, i), s->l, s->r, s->r->recompute);
        whole[i] = s->r->recompute == RECOMPUTE_NONE
                       ? kept[i]
                       : layer_bytes(s->m, model_kind(s->m, i), s->l, s->r, RECOMPUTE_NONE);
        kept[i] = again * kept[i] + (1 - again) * whole[i];
    }
    for (int i = 0; i < s->stages; i++) {
        struct stage_sum v = {s, s->m, s->l, s->r, &s->stage[i], c, &out[i]};
        add_stage(&v);
        add_activations(&v, kept, whole);
    }
}

/* Number of microbatches whose activations stage i holds, in units of all its layers: min(all,
 * first - each i) / chunks. */
struct flight {
    double all, first, each, chunks;
};

static struct flight flight_of(const struct step *s)
{
    double p = s->l->size[AXIS_PP], chunks = s->r->stages, m = s->microbatches;

    switch (s->r->schedule) {
    case SCHEDULE_INTERLEAVED:
        return (struct flight){m * chunks, 2 * (p - 1) + (chunks - 1) * p + 1, 2, chunks};
    case SCHEDULE_ZB_H1:
        return (struct flight){m, p, 0, 1};
    case SCHEDULE_ZB_H2:
        return (struct flight){m, 2 * p - 1, 0, 1};
    case SCHEDULE_DUALPIPE:
        return p > 1 ? (struct flight){m, p + 1, 0, 1} : (struct flight){1, 1, 0, 1};
    default:
        return (struct flight){m, p, 1, 1};
    }
}

static double in_flight(const struct flight *f, int index)
{
    double room = f->first - f->each * index, held = f->all < room ? f->all : room;

    return f->chunks > 1 ? held / f->chunks : held; /* frequent in a search, mostly with 1 chunk */
}

/* Memory of a stage that depends on the micro batch. */
struct grown {
    double activations, logits, gathered, fragmentation, total;
};

static inline struct grown grown(const struct memory_stage *from, const struct step *s,
                                 const struct flight *flight, int index, double lost)
{
    const struct memory *f = &from->fixed;
    struct grown g = {.gathered = f->gathered, .logits = s->tokens * from->logits};

    g.activations =
        s->tokens * (from->kept * in_flight(flight, index) + from->at_work + from->whole);
    if (s->r->grad_sync == GRAD_SYNC_LAST && s->microbatches > 1)
        g.gathered += fmax(0, from->unreduced - f->gradients); /* shards replace whole gradients */
    g.fragmentation = lost * (g.activations + g.logits + g.gathered);
    g.total = from->states + g.activations + g.logits + g.gathered + f->comm + f->context +
              g.fragmentation;
    return g;
}

static double lost_of(const struct step *s, const struct constants *c)
{
    bool grows = recipe_expands_segments(s->r);

    return constants_get(c, grows ? CONSTANT_MEMORY_FRAGMENTATION
                                  : CONSTANT_MEMORY_FRAGMENTATION_FIXED)
        ->value;
}

double memory_fullest(const struct memory_stage *stage, const struct step *s,
                      const struct constants *c, int *fullest)
{
    struct flight flight = flight_of(s);
    double lost = lost_of(s, c), most = -1;

    *fullest = 0;
    for (int i = 0; i < s->stages; i++) {
        double total = grown(&stage[i], s, &flight, s->stage[i].index, lost).total;
        if (total > most) {
            *fullest = i;
            most = total;
        }
    }
    return most;
}

/* States are exact; temporary memory is known to a share; the rest to the errors of its
 * constants. */
static void add_error(struct memory *mem, const struct step *s, const struct constants *c)
{
    bool grows = recipe_expands_segments(s->r);
    const struct constant *nccl = constants_get(c, CONSTANT_MEMORY_NCCL_BYTES);
    const struct constant *context = constants_get(c, CONSTANT_MEMORY_CONTEXT_BYTES);
    double moving = mem->activations + mem->logits + mem->gathered + mem->fragmentation;
    double share =
        constants_get(c, grows ? CONSTANT_ERROR_MEMORY : CONSTANT_ERROR_MEMORY_FIXED)->value;

    double of_moving = share * moving;
    double of_states = constants_get(c, CONSTANT_ERROR_MEMORY_STATES)->value * memory_states(mem);
    double of_comm = nccl->error * mem->comm, of_context = context->error * mem->context;
    mem->error = sqrt(of_moving * of_moving + of_states * of_states) +
                 (gradients_are_unsaid(s->r) ? mem->gradients / 3 : 0);
    mem->error_outside = sqrt(of_comm * of_comm + of_context * of_context);
}

void memory_at(struct memory *mem, const struct memory_stage *stage, const struct step *s,
               double capacity, const struct constants *c)
{
    struct flight flight = flight_of(s);
    int i;

    memory_fullest(stage, s, c, &i);
    struct grown g = grown(&stage[i], s, &flight, s->stage[i].index, lost_of(s, c));
    *mem = stage[i].fixed;
    mem->activations = g.activations;
    mem->logits = g.logits;
    mem->gathered = g.gathered;
    mem->fragmentation = g.fragmentation;
    mem->total = g.total;
    mem->capacity = capacity;
    add_error(mem, s, c);
}
