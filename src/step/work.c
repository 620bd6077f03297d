/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Cut the side that is not `whole`, the vector between layers. */
static void product_cut(const struct weight *w, double whole, double n, double *in, double *out)
{
    bool by_rows = w->out == whole && w->in != whole;

    *in = by_rows ? w->in / n : w->in;
    *out = by_rows ? w->out : w->out / n;
}

static int add_layer(struct product *out, int n, const struct model *model, const struct layer *k,
                     double tokens, double tp)
{
    const struct weight *w = k->weight;
    int last = -1;

    for (int i = 0; i < k->weights; i++) {
        double in, wide;
        if (w[i].part == WEIGHT_EXPERTS || w[i].part == WEIGHT_ROUTER)
            continue;
        product_cut(&w[i], model->hidden, tp, &in, &wide);
        if (last >= 0 && w[i].shares_input && out[last].k == in) {
            out[last].n += wide;
            continue;
        }
        if (n == PRODUCTS_MAX)
            return n;
        last = n;
        out[n++] = (struct product){WORK_LINEAR, tokens, wide, in, k->count * w[i].active};
    }
    return n;
}

int products_of(struct product out[PRODUCTS_MAX], const struct model *model, double tokens,
                double tp)
{
    int n = 0;

    for (int i = 0; i < model->kinds; i++)
        n = add_layer(out, n, model, &model->layer[i], tokens, tp);
    if (n < PRODUCTS_MAX)
        out[n++] = (struct product){WORK_HEAD, tokens, model->vocab / tp, model->hidden, 1};
    return n;
}

static void add_shape(struct gemm_shape **list, int *count, enum gemm_dtype dtype,
                      const struct product *p, int pass)
{
    double m, n, k;

    product_pass(p, pass, &m, &n, &k);
    struct gemm_shape s = {dtype, (int)m, (int)n, (int)k};
    if (s.m != m || s.n != n || s.k != k || s.m < 1 || s.n < 1 || s.k < 1)
        return; /* tp does not divide it, so no such product exists */
    for (int i = 0; i < *count; i++)
        if (!memcmp(&(*list)[i], &s, sizeof(s)))
            return;
    MEM_PUSH(*list, *count) = s;
}

static void add_model(struct gemm_shape **list, int *count, const struct model *model)
{
    static const double tokens[] = {8192, 2048};
    struct product *p = mem_calloc(PRODUCTS_MAX, sizeof(*p));

    for (int tp = 1; tp <= 8; tp *= 2)
        for (int t = 0; t < 2; t++) {
            int n = products_of(p, model, tokens[t], tp);
            for (int i = 0; i < n; i++)
                for (int pass = 0; pass < (t ? 1 : PASS_COUNT); pass++)
                    for (int d = 0; d < (p[i].part == WORK_HEAD ? 1 : GEMM_DTYPES); d++)
                        add_shape(list, count, (enum gemm_dtype)d, &p[i], pass);
        }
    free(p);
}

enum { BF16 = 2, FP32 = 4 };

/* Bytes per element as read by products, including the scales of its block (OCP MX: 1 per 32,
 * nvfp4: 1 per 16). */
static const double operand_bytes[DTYPE_COUNT] = {
    [DTYPE_FP32] = 4, [DTYPE_BF16] = 2, [DTYPE_FP8] = 1, [DTYPE_MXFP8] = 1.03, [DTYPE_NVFP4] = 0.56,
};

/* Data of one microbatch on one rank, needed for every layer. */
struct work_rank {
    const struct step *s;
    double tp, local;    /* ranks that share its products; tokens whose norms it computes */
    double element;      /* bytes of a product's operand */
    double again;        /* repetitions in backward: forward's products */
    double again_core;   /* attention core */
    double again_memory; /* work between products */
};

static bool every_second(const struct recipe *r)
{
    return r->recompute == RECOMPUTE_SELECTIVE && r->stack != STACK_MEGATRON;
}

double work_recomputed(const struct recipe *r)
{
    return r->recompute == RECOMPUTE_FULL ? 1 : every_second(r) ? 0.5 : 0;
}

static void add_work(struct stage_work *s, const struct stage_work *one, double times)
{
    for (int i = 0; i < WORK_PARTS; i++) {
        s->forward[i] += times * one->forward[i];
        s->backward[i] += times * one->backward[i];
    }
}

static void products(struct stage_work *s, const struct work_rank *st, enum work_part part,
                     double flops)
{
    s->forward[part] += flops;
    s->backward[part] += flops * (1 + st->s->trained + st->again);
}

/* Tokens of a product [rows x in] [in x out], each matrix read or written once: forward A and C,
 * the input's gradient the same, the weights' gradient both again.  Only products of experts wait
 * for them: a token passes topk narrow products, with padding and scores between. */
static void operands(struct stage_work *s, const struct work_rank *st, double rows, double in,
                     double out)
{
    double e = st->element, forward = rows * (e * in + BF16 * out);

    s->forward[WORK_OPERANDS] += forward;
    s->backward[WORK_OPERANDS] +=
        st->again * forward + rows * (e * out + BF16 * in) + st->s->trained * e * rows * (in + out);
}

enum launched { LAUNCHED_LAYER, LAUNCHED_EXPERTS };

/* backward: kernels relative to forward. */
static void launches(struct stage_work *s, const struct work_rank *st, enum launched whose,
                     double kernels, double backward)
{
    int graphs = st->s->r->cuda_graphs;
    bool in_graph =
        graphs == CUDA_GRAPHS_STEP || (graphs == CUDA_GRAPHS_LAYERS && whose == LAUNCHED_LAYER);
    double n = in_graph ? WORK_GRAPHED * kernels : kernels;

    s->forward[WORK_LAUNCH] += n;
    s->backward[WORK_LAUNCH] += n * backward;
}

/* Each expert's product is a separate kernel, with two that cast or copy for it (Transformer Engine
 * GroupedLinear); backward one for inputs and one for weights.  Fused: one kernel for all experts
 * (its CuTe DSL grouped MLP), after one that casts. */
static void expert_launches(struct stage_work *s, const struct work_rank *st, double experts)
{
    launches(s, st, LAUNCHED_EXPERTS, st->s->r->moe_fusion ? 2 : 3 * experts,
             1 + st->s->trained + st->again);
}

/* Add elements read or written in bf16; backward has twice as many. */
static void between(struct stage_work *s, const struct work_rank *st, double elements)
{
    s->forward[WORK_MEMORY] += BF16 * elements;
    s->backward[WORK_MEMORY] += (2 + st->again_memory) * BF16 * elements;
}

/* Conversion of an input to fp8 or fp4: passes that read it in bf16, and bytes written; by rows for
 * this product and by columns for the weights' gradient (Transformer Engine: fp8 with current
 * scaling first finds the maximum, nvfp4 does so after a Hadamard transform). */
static const struct {
    double reads, writes;
} cast[DTYPE_COUNT] = {[DTYPE_FP8] = {2, 2}, [DTYPE_MXFP8] = {1, 2.06}, [DTYPE_NVFP4] = {3, 1.12}};

/* Forward casts the input, backward the output's gradient.  read: which of them come from
 * memory. */
static void casts(struct stage_work *s, const struct work_rank *st, double rows, double in,
                  double out, const bool read[2])
{
    double reads = BF16 * cast[st->s->r->dtype].reads;
    double writes = cast[st->s->r->dtype].writes * (1 + st->s->trained) / 2;
    double input = (read[0] ? reads : 0) + writes, gradient = (read[1] ? reads : 0) + writes;

    s->forward[WORK_MEMORY] += input * rows * in;
    s->backward[WORK_MEMORY] += rows * (gradient * out + input * st->again * in);
}

/* Adapters beside a frozen matrix: two narrow products, whose sum is added to the output of the
 * wide one. */
static void add_adapter(struct stage_work *s, const struct work_rank *st, const struct weight *w,
                        double rows, double in, double out)
{
    bool adapted =
        w->part == WEIGHT_MIXER || (st->s->r->lora == LORA_ALL && w->part != WEIGHT_ROUTER);
    double flops = 2 * rows * st->s->r->lora_rank * (in + out);

    if (!adapted || st->s->r->lora == LORA_NONE)
        return;
    s->forward[w->part == WEIGHT_EXPERTS ? WORK_EXPERT : WORK_LINEAR] += flops;
    s->backward[w->part == WEIGHT_EXPERTS ? WORK_EXPERT : WORK_LINEAR] += (2 + st->again) * flops;
    /* matrices with the same input have one adapter: forward the input is read, the outputs are
     * written and added; backward the gradient is read for either matrix and the input once more,
     * and its gradient is written and added */
    double input = w->shares_input ? 0 : in, forward = input + 4 * out;
    s->forward[WORK_MEMORY] += BF16 * rows * forward;
    s->backward[WORK_MEMORY] += BF16 * rows * (2 * out + 5 * input + st->again_memory * forward);
    if (!w->shares_input)
        launches(s, st, w->part == WEIGHT_EXPERTS ? LAUNCHED_EXPERTS : LAUNCHED_LAYER, 4,
                 2 + st->again_memory);
}

static void add_weight(struct stage_work *s, const struct work_rank *st, const struct weight *w,
                       const struct layer *k)
{
    double in = w->in, out = w->out, rows = st->s->tokens, etp = st->s->l->size[AXIS_ETP];
    double width = k->mlp.latent ? k->mlp.latent : st->s->m->hidden;
    bool expert = w->part == WEIGHT_EXPERTS;

    products(s, st, expert ? WORK_EXPERT : WORK_LINEAR,
             2 * st->s->tokens * w->in * w->out * w->active / st->tp);
    if (expert) { /* tokens come from all ranks of ep */
        product_cut(w, width, etp, &in, &out);
        rows = st->s->tokens / st->tp * w->active * etp;
        operands(s, st, rows, in, out);
        if (!w->shares_input)
            expert_launches(s, st, w->copies / st->s->l->size[AXIS_EP]);
    } else if (w->part ==
               WEIGHT_ROUTER) { /* every tensor rank has the router, for its own tokens */
        rows = st->local;
    } else {
        product_cut(w, st->s->m->hidden, st->tp, &in, &out);
    }
    if (cast[st->s->r->dtype].reads > 0 && !w->shares_input) {
        /* a grouped kernel that computes the gate writes the tensor between an expert's two
         * products in the form that the second one reads */
        bool fused = expert && st->s->r->moe_fusion, second = w->out == width;
        const bool read[] = {!fused || !second, !fused || second};
        casts(s, st, rows, in, out, read);
    }
    add_adapter(s, st, w, rows, in, out);
}

/* Elements per token inside a mixer, on one of tp ranks: rotary embedding of queries and keys,
 * which latent attention also joins and splits; gate, convolution and norm of Mamba-2. */
static double mixer_elements(const struct attention *a)
{
    double width = (double)a->heads * a->head_dim;

    switch (a->kind) {
    case MIXER_GQA:
        return 2 * (width + (double)a->kv_heads * a->head_dim);
    case MIXER_MLA:
    case MIXER_CSA:
        return 4 * width;
    case MIXER_MAMBA2:
        return 16 * width;
    default:
        return 0;
    }
}

/* Elements per token of an MLP: the gate reads two and writes one.  Experts with biases have no
 * fused kernel: biases are added, both halves clamped, and the gate computed in steps (Megatron-LM
 * issue 1739): 10 passes over an expert's width and 2 over the output.  Fused, products compute the
 * gate. */
static double gate_elements(const struct model *m, const struct mlp *p, bool fused)
{
    double one = p->kind == MLP_SWIGLU ? 3 : p->kind == MLP_PLAIN ? 2 : 0;

    if (!p->experts)
        return one * p->ffn;
    if (fused)
        return one * p->shared_ffn;
    double expert = p->bias ? 14.0 * p->ffn + 2.0 * m->hidden : one * p->ffn;
    return p->topk * expert + one * p->shared_ffn;
}

/* Tokens are sorted by expert and back, each read and written; scores in fp32.  Fused, they are
 * sorted while cast, and only the way back remains. */
static double sort_elements(const struct model *m, const struct mlp *p, bool fused)
{
    double way = 2.0 * p->topk * (p->latent ? p->latent : m->hidden);

    return p->experts ? (fused ? 1 : 2) * way + 4.0 * p->experts : 0;
}

/* Mixer and MLP. */
static int halves(const struct layer *k)
{
    return (k->attention.kind != MIXER_NONE) + (k->mlp.kind != MLP_NONE);
}

/* A norm reads and writes, a residual reads two and writes one, at each half. */
static double outer_elements(const struct model *m, const struct layer *k)
{
    return 5.0 * halves(k) * m->hidden;
}

/* Kernels per tensor-parallel message: the collective, a contiguous copy of its input, placing its
 * output, and synchronising the streams. */
static const double per_message = 4;

/* Kernels of a layer's forward pass in Megatron-LM: a norm, products, rotation, core, residual;
 * with experts also routing, sorting, counting and dispatch. */
static void add_launches(struct stage_work *s, const struct work_rank *st, const struct layer *k)
{
    bool experts = k->mlp.kind != MLP_NONE && k->mlp.experts;
    double layer = k->attention.kind == MIXER_NONE ? 0 : 7;

    layer += k->mlp.kind == MLP_NONE ? 0 : experts ? 25 : 5;
    if (st->tp > 1)
        layer += per_message * halves(k) * (st->s->r->sequence_parallel ? 2 : 1);
    launches(s, st, LAUNCHED_LAYER, layer, 2 + st->again_memory);
    if (experts) /* dispatch and sorting, whose sizes are not known in advance */
        launches(s, st, LAUNCHED_EXPERTS, 15, 2 + st->again_memory);
}

/* Passes over all scores in bf16, without a kernel that keeps them on the chip.  Forward: products
 * write them and read the probabilities; softmax reads and writes, dropout likewise; unfused, scale
 * and mask do too, with softmax in fp32.  Backward of each reads the gradient, and the output if
 * needed, and writes. */
static const struct {
    double forward, backward;
} score_passes[KERNELS_COUNT] = {[KERNELS_FUSED] = {6, 8}, [KERNELS_UNFUSED] = {10, 12}};

static void add_core(struct stage_work *s, const struct work_rank *st, const struct layer *k)
{
    enum work_part part = k->attention.kind == MIXER_MAMBA2 ? WORK_SCAN : WORK_CORE;
    int how = k->attention.kind == MIXER_MAMBA2 ? KERNELS_FLASH : st->s->r->attention;
    double core = layer_core_flops(k, st->s->r->seq, st->s->r->causal && how == KERNELS_FLASH);
    double backward = part == WORK_CORE && how == KERNELS_FLASH ? WORK_FLASH_BACKWARD : 2;

    s->forward[part] = core / 3 * st->s->tokens / st->tp;
    s->backward[part] = s->forward[part] * (backward + st->again_core);
    if (how != KERNELS_FLASH && k->attention.kind != MIXER_NONE) {
        double scores = BF16 * st->s->tokens * st->s->r->seq * k->attention.heads / st->tp;
        s->forward[WORK_MEMORY] += score_passes[how].forward * scores;
        s->backward[WORK_MEMORY] +=
            (score_passes[how].backward + st->again_core * score_passes[how].forward) * scores;
    }
}

static void layer_work(struct stage_work *s, const struct work_rank *st, const struct layer *k)
{
    bool fused = st->s->r->moe_fusion;

    memset(s, 0, sizeof(*s));
    for (int i = 0; i < k->weights; i++)
        add_weight(s, st, &k->weight[i], k);
    add_core(s, st, k);
    between(s, st,
            st->s->tokens / st->tp *
                (mixer_elements(&k->attention) + gate_elements(st->s->m, &k->mlp, fused)));
    between(s, st,
            st->local * (outer_elements(st->s->m, k) + sort_elements(st->s->m, &k->mlp, fused)));
    add_launches(s, st, k);
}

/* Logits and loss over the vocabulary, cut by tp: bf16 written, and fp32 written, read for the
 * maximum and for the sum; backward fp32 read and bf16 written.  Neither recomputed nor cast. */
static void head_work(struct stage_work *s, const struct work_rank *st)
{
    double logits = st->s->tokens * st->s->m->vocab / st->tp;
    double flops = 2 * logits * st->s->m->hidden;

    memset(s, 0, sizeof(*s));
    s->forward[WORK_HEAD] = flops;
    s->backward[WORK_HEAD] = flops * (1 + st->s->trained);
    s->forward[WORK_MEMORY] = logits * (BF16 + 3 * FP32);
    s->backward[WORK_MEMORY] = logits * (FP32 + BF16);
}

/* A layer, the product that joins two streams, and the head again (DeepSeek-V3, 2024, 2.2). */
static void mtp_work(struct stage_work *s, const struct work_rank *st,
                     const struct stage_work *head)
{
    double h = st->s->m->hidden;

    layer_work(s, st, &st->s->m->mtp);
    products(s, st, WORK_LINEAR, 2 * st->s->tokens * 2 * h * h / st->tp);
    add_work(s, head, 1);
}

const char *const work_name[WORK_PARTS] = {
    [WORK_LINEAR] = "matrix products",  [WORK_EXPERT] = "routed experts",
    [WORK_HEAD] = "output head",        [WORK_CORE] = "attention core",
    [WORK_SCAN] = "state-space scan",   [WORK_OPERANDS] = "experts' operands",
    [WORK_MEMORY] = "between products", [WORK_WEIGHTS] = "passes over weights",
    [WORK_LAUNCH] = "kernel launches",
};

static double products_sum(const struct stage_work *s)
{
    return s->forward[WORK_LINEAR] + s->forward[WORK_EXPERT] + s->forward[WORK_CORE];
}

/* Every microbatch adds the weights' gradient to the sum so far, in the type used for the
 * reduction: inside the product (Megatron-LM gradient_accumulation_fusion into main_grad),
 * elsewhere by a kernel that reads the product's output.  FSDP2 sums nothing here, but casts the
 * gradient into the buffer of the reduction, and copies each gathered layer out of the gather's
 * buffer, forward and again backward (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py).
 * Frozen weights of less than a byte are unpacked to bf16 before each product (Dettmers et al. 2023,
 * QLoRA, 3).  Reading weights for products is included in their rates. */
static void pass_weights(struct stage_work *s, const struct work_rank *st, double params)
{
    const struct recipe *r = st->s->r;
    bool fused = r->stack == STACK_MEGATRON, copies = !fused && recipe_gathers_weights(r);
    double sum = recipe_grad_bytes(r), copy = copies ? 2 * fmin(BF16, recipe_gathered_bytes(r)) : 0;
    double unpack = r->frozen_bytes > 0 && r->frozen_bytes < 1 ? r->frozen_bytes + BF16 : 0;
    double adds = (fused ? 0 : 2 * BF16) + (copies ? 1 : 2) * sum;

    s->forward[WORK_WEIGHTS] = (copy + unpack) * params;
    s->backward[WORK_WEIGHTS] =
        ((r->reshard ? copy : 0) + (1 + st->again) * unpack + (st->s->trained ? adds : 0)) * params;
}

/* Returns the parameters of one of a rank's stages; stage NULL: the mean over the pipeline. */
static double held_params(const struct step *s, const struct pipe_stage *stage)
{
    double pp = s->l->size[AXIS_PP], sum = 0;
    double copies = s->r->schedule == SCHEDULE_DUALPIPE && pp > 1 ? 2 : 1;

    if (stage)
        return (stage->dense + stage->expert) / copies;
    for (int i = 0; i < s->stages; i++)
        sum += held_params(s, &s->stage[i]) *
               (s->stages == STEP_STAGES && i == 1 ? pp - STEP_STAGES + 1 : 1);
    return sum / pp;
}

static void mean_stage(struct stage_work *s, const struct work_layers *k,
                       const struct work_rank *st)
{
    const struct model *m = st->s->m;
    double stages = st->s->l->size[AXIS_PP];

    for (int i = 0; i < m->kinds; i++)
        add_work(s, &k->layer[i], m->layer[i].count / stages);
    add_work(s, &k->head, 1 / stages);
    if (st->s->r->mtp && m->mtp.count)
        add_work(s, &k->mtp, m->mtp.count / stages);
    pass_weights(s, st, held_params(st->s, NULL));
}

static void add_stage(struct stage_work *s, const struct work_layers *k, const struct work_rank *st,
                      const struct pipe_stage *stage)
{
    const struct model *m = st->s->m;

    memset(s, 0, sizeof(*s));
    for (int i = 0; i < m->kinds; i++)
        add_work(s, &k->layer[i], stage->count[i]);
    if (stage->last)
        add_work(s, &k->head, 1);
    if (stage->count[m->kinds] > 0)
        add_work(s, &k->mtp, stage->count[m->kinds]);
    pass_weights(s, st, held_params(st->s, stage));
}

/* Candidates for the slowest stage: the fullest without the head, and the one with it.  DualPipe
 * gives each rank a stage from either end (DeepSeek-V3, 2024, 3.2.1): two mean stages, half the
 * microbatches through each. */
static void add_stages(struct work *w, const struct work_layers *k, const struct work_rank *st)
{
    const struct step *s = st->s;

    mean_stage(&w->mean, k, st);
    if (s->r->schedule == SCHEDULE_DUALPIPE || s->stages == 1) {
        w->other = w->last = w->mean;
        return;
    }
    add_stage(&w->last, k, st, &s->stage[s->stages - 1]);
    add_stage(&w->other, k, st, &s->stage[0]);
    if (s->stages < STEP_STAGES)
        return;
    struct stage_work second;
    add_stage(&second, k, st, &s->stage[1]);
    if (products_sum(&second) > products_sum(&w->other))
        w->other = second;
}

static struct work_rank rank_of(const struct step *s)
{
    const struct recipe *r = s->r;
    double tp = s->l->size[AXIS_TP];
    double share = recipe_recomputed_share(r, (double)s->m->layers / s->l->size[AXIS_PP]);

    return (struct work_rank){.s = s,
                              .tp = tp,
                              .local = r->sequence_parallel ? s->tokens / tp : s->tokens,
                              .element = operand_bytes[r->dtype],
                              .again = work_recomputed(r) * share,
                              .again_core =
                                  r->recompute == RECOMPUTE_FULL
                                      ? share
                                      : r->recompute == RECOMPUTE_SELECTIVE && !every_second(r),
                              .again_memory = work_recomputed(r) > 0 ? share : 0};
}

void work_layers_of(struct work_layers *k, const struct step *s)
{
    struct work_rank st = rank_of(s);

    for (int i = 0; i < s->m->kinds; i++)
        layer_work(&k->layer[i], &st, &s->m->layer[i]);
    head_work(&k->head, &st);
    if (s->r->mtp && s->m->mtp.count)
        mtp_work(&k->mtp, &st, &k->head);
}

void work_stages(struct work *w, const struct work_layers *k, const struct step *s)
{
    struct work_rank st = rank_of(s);

    memset(w, 0, sizeof(*w));
    add_stages(w, k, &st);
    w->weights = s->trained;
}

/* --- kernels one by one, for rates measured by kind --- */

static int push_kernel(struct kernel_work *out, int n, struct kernel_work k)
{
    if (n < KERNELS_MAX && k.m > 0 && k.n > 0 && k.k > 0 && k.times > 0)
        out[n++] = k;
    return n;
}

static int experts_of(struct kernel_work *out, int n, const struct work_rank *st,
                      const struct layer *k)
{
    double width = k->mlp.latent ? k->mlp.latent : st->s->m->hidden, etp = st->s->l->size[AXIS_ETP];

    for (int i = 0; i < k->weights; i++) {
        const struct weight *w = &k->weight[i];
        double in, out_width, here = w->copies / st->s->l->size[AXIS_EP];
        if (w->part != WEIGHT_EXPERTS)
            continue;
        product_cut(w, width, etp, &in, &out_width);
        double rows = st->s->tokens / st->tp * w->active * etp / here;
        n = push_kernel(
            out, n, (struct kernel_work){DEVICE_GROUPED, rows, out_width, in, here * k->count, 0});
    }
    return n;
}

int kernels_of(struct kernel_work out[KERNELS_MAX], const struct step *s)
{
    struct work_rank st = rank_of(s);
    bool fused = s->r->moe_fusion;
    double inner = s->tokens / st.tp,
           cast_bytes = BF16 * cast[s->r->dtype].reads + cast[s->r->dtype].writes;
    int n = 0;

    for (int i = 0; i < s->m->kinds; i++) {
        const struct layer *k = &s->m->layer[i];
        const struct kernel_work passes[] = {
            {DEVICE_NORM, st.local, outer_elements(s->m, k) + sort_elements(s->m, &k->mlp, fused),
             1, k->count, BF16},
            {DEVICE_ROTARY, inner, mixer_elements(&k->attention), 1, k->count, BF16},
            {DEVICE_GATE, inner, gate_elements(s->m, &k->mlp, fused), 1, k->count, BF16},
            {DEVICE_CAST, st.local, s->m->hidden, 1, k->count * halves(k), cast_bytes},
        };
        for (size_t p = 0; p < sizeof(passes) / sizeof(*passes); p++)
            n = passes[p].bytes > 0 ? push_kernel(out, n, passes[p]) : n;
        n = experts_of(out, n, &st, k);
    }
    return push_kernel(
        out, n,
        (struct kernel_work){DEVICE_LOSS, s->tokens, s->m->vocab / st.tp, 1, 1, BF16 + 3 * FP32});
}

static void add_kernel(struct device_kernel **list, int *count, enum device_kind kind,
                       enum gemm_dtype dtype, const double side[3])
{
    struct device_kernel k = {kind, {dtype, (int)side[0], (int)side[1], (int)side[2]}};

    if (k.shape.m < 1 || k.shape.n < 1 || k.shape.k < 1)
        return;
    for (int i = 0; i < *count; i++)
        if (!memcmp(&(*list)[i], &k, sizeof(k)))
            return;
    MEM_PUSH(*list, *count) = k;
}

/* Experts of many tokens and of few, and both passes that read their weights. */
static void add_experts(struct device_kernel **list, int *count, const struct layer *k)
{
    for (int i = 0; i < k->weights; i++)
        for (int t = 256; t <= 4096 && k->weight[i].part == WEIGHT_EXPERTS; t *= 4)
            for (int d = 0; d < GEMM_DTYPES; d++) {
                const struct weight *w = &k->weight[i];
                add_kernel(list, count, DEVICE_GROUPED, (enum gemm_dtype)d,
                           (const double[]){t, w->out, w->in});
                add_kernel(list, count, DEVICE_GROUPED, (enum gemm_dtype)d,
                           (const double[]){t, w->in, w->out});
            }
}

static void add_cores(struct device_kernel **list, int *count, const struct attention *a)
{
    for (int seq = 2048; seq <= 32768 && a->kind == MIXER_GQA; seq *= 4)
        for (int back = 0; back < 2; back++)
            add_kernel(list, count, back ? DEVICE_ATTENTION_BACK : DEVICE_ATTENTION, GEMM_BF16,
                       (const double[]){seq, a->heads, a->head_dim});
}

static void add_kernels(struct device_kernel **list, int *count, const struct model *model)
{
    for (int i = 0; i < model->kinds; i++) {
        const struct layer *k = &model->layer[i];
        double heads = (double)(k->attention.heads + k->attention.kv_heads) * k->attention.head_dim;
        for (int tokens = 2048; tokens <= 8192; tokens *= 4) {
            const double rows[][4] = {
                {DEVICE_NORM, tokens, model->hidden, 1}, {DEVICE_GATE, tokens, k->mlp.ffn, 1},
                {DEVICE_ROTARY, tokens, heads, 1},       {DEVICE_CAST, tokens, model->hidden, 1},
                {DEVICE_LOSS, tokens, model->vocab, 1},  {DEVICE_ADAM, tokens, model->hidden, 1}};
            for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++)
                add_kernel(list, count, (enum device_kind)rows[r][0], GEMM_BF16, &rows[r][1]);
        }
        add_cores(list, count, &k->attention);
        add_experts(list, count, k);
    }
}

int work_shapes(struct gemm_shape **products, struct device_kernel **kernels, int count[2],
                const char *models, struct err *err)
{
    char *copy = mem_strdup(models), *save = NULL;
    int rc = 0;

    *products = NULL;
    *kernels = NULL;
    count[0] = count[1] = 0;
    for (char *t = strtok_r(copy, ",", &save); t && rc == 0; t = strtok_r(NULL, ",", &save)) {
        struct model model = {0};
        rc = model_load(&model, t, err);
        if (rc == 0)
            add_model(products, &count[0], &model);
        if (rc == 0)
            add_kernels(kernels, &count[1], &model);
        model_free(&model);
    }
    free(copy);
    if (rc == 0 && !count[0])
        rc = err_usage(err, "no model in \"%s\"", models);
    if (rc < 0) {
        free(*products);
        free(*kernels);
        *products = NULL;
        *kernels = NULL;
    }
    return rc;
}
