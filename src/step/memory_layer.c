/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/memory_layer.h"

/* Bytes per token: as wide as `hidden`, which only sequence parallelism shards; inputs of products
 * over tp, which Megatron-LM shards too and gathers again backward (Korthikanti et al.
 * 2022, 4.2.2), and PyTorch keeps whole; inside heads and columns, which tp shards, tokens at
 * experts included. */
struct kept {
    double wide, inputs, inner;
};

enum { CHUNK = 256 }; /* tokens between the states that a scan keeps (Mamba-2) */

/* Bytes of an element that is only the input of a product: fp8 products keep what they read. */
static double input_bytes(const struct recipe *r)
{
    return r->stack == STACK_MEGATRON && r->dtype >= DTYPE_FP8 ? 1 : 2;
}

/* Flash attention keeps q, k, v and its output; the output is the input of the last product. */
static void keep_heads(struct kept *k, const struct attention *a, double in)
{
    double q = (double)a->heads * a->head_dim, kv = (double)a->kv_heads * a->head_dim;
    double v = a->v_dim ? (double)a->kv_heads * a->v_dim : kv;
    double out = a->v_dim ? (double)a->heads * a->v_dim : q;

    k->inner += 2 * (q + kv + v + out) + (in < 2 ? in * out : 0);
    k->inner += 2 * ((double)a->q_rank + a->kv_rank + a->rope_dim); /* latents, 0 without */
}

/* What the first product makes, what the convolution makes of it, the scan's output and the
 * states between chunks (Dao and Gu 2024, 6). */
static void keep_scan(struct kept *k, const struct attention *a, double in)
{
    double inner = (double)a->heads * a->head_dim, shared = 2.0 * a->groups * a->state;

    k->inner += 2 * (2 * inner + shared + a->heads) + 2 * (inner + shared) + 2 * inner +
                in * inner + 4 * inner * a->state / CHUNK;
}

static void keep_mixer(struct kept *k, const struct model *m, const struct attention *a, double in)
{
    if (a->kind == MIXER_NONE)
        return;
    k->wide += 2.0 * m->hidden; /* before the norm */
    k->inputs += in * m->hidden;
    if (a->kind == MIXER_MAMBA2)
        keep_scan(k, a, in);
    else
        keep_heads(k, a, in);
}

/* Products into `ffn`, and what the activation makes of them. */
static double columns(const struct mlp *p, double ffn, double in)
{
    return (p->kind == MLP_SWIGLU ? 4 : 2) * ffn + in * ffn;
}

/* MLPs beside adapters on attention only: frozen products need no input, and Megatron-LM in fp8
 * keeps what the activation reads in one byte (activation_func_fp8_input_store). */
static void keep_frozen_mlp(struct kept *k, const struct model *m, const struct mlp *p,
                            const struct recipe *r)
{
    double width = p->experts ? (double)p->topk * p->ffn + p->shared_ffn : p->ffn;

    k->wide += 2.0 * m->hidden + 8.0 * p->experts;
    k->inner += (p->kind == MLP_SWIGLU ? 2 : 1) * width * input_bytes(r);
}

static void keep_mlp(struct kept *k, const struct model *m, const struct mlp *p,
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
        k->inner += columns(p, p->ffn, in);
        return;
    }
    k->wide += 8.0 * p->experts + 2.0 * p->latent; /* logits and probabilities of the router */
    k->inner += columns(p, p->shared_ffn, in);
    k->inner += p->topk * (in * (p->latent ? p->latent : m->hidden) * etp + columns(p, p->ffn, in));
}

/* torchtitan saves attention's output and every other product of q, k, v, o, gate, up, down: q, v,
 * gate, down (distributed/activation_checkpoint.py), and what all_to_all brings; the layer's input
 * is there anyway. */
static void keep_every_other(struct kept *k, const struct model *m, const struct layer *kind)
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

double memory_layer(const struct model *m, const struct layer *kind, const struct layout *l,
                    const struct recipe *r, int recompute)
{
    bool torch = r->stack != STACK_MEGATRON;
    double in = input_bytes(r), tp = l->size[AXIS_TP];
    struct kept k = {0, 0, 0};
    double sequence = r->sequence_parallel ? tp : 1;

    if (recompute == RECOMPUTE_FULL) {
        k.wide = 2.0 * m->hidden;
    } else if (recompute == RECOMPUTE_SELECTIVE && torch) {
        keep_every_other(&k, m, kind);
    } else {
        keep_mixer(&k, m, &kind->attention, in);
        keep_mlp(&k, m, &kind->mlp, r, l->size[AXIS_ETP]);
    }
    return k.wide / sequence + k.inputs / (torch ? 1 : sequence) + k.inner / tp;
}
