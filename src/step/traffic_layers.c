/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages inside layers: tp and cp. */
#include "step/traffic_parts.h"

/* What tensor parallelism does to the sequence, counted over the layers of a stage in units of one
 * microbatch's tokens.  Each half of a layer (mixer; dense MLP or shared experts) brings the tokens
 * of all tp ranks together before its first product and shares them out after its last. */
struct halves {
    double in, out; /* halves whose input, output is `hidden` wide */
};

static const char sp_formula[] =
    "s b h 2 / cp; a half of a layer: all_gather before, reduce_scatter after, both again "
    "backward, all_gather once more for weights' gradients (Korthikanti et al. 2022, 4.2.2)";
static const char ar_formula[] = "s b h 2 / cp, one after each half of a layer and one backward "
                                 "(Shoeybi et al. 2019, 3)";
static const char latent_formula[] =
    "s b (q rank + kv rank + rope) 2 / cp: latents are gathered, not hidden (Megatron-LM "
    "core/transformer/multi_latent_attention.py)";

static void add_inside(struct step *s, enum axis axis, enum exposure exposure, const char *label,
                       enum op op, double bytes, double count, const char *formula)
{
    traffic_add(s, &(struct message){.label = label,
                                     .axes = AXIS_BIT(axis),
                                     .exposure = exposure,
                                     .op = op,
                                     .bytes = bytes,
                                     .count = count * s->microbatches,
                                     .phase = PHASE_LAYER,
                                     .rounds = s->microbatches,
                                     .formula = formula});
}

static void add_tp(struct step *s, enum exposure exposure, const char *label, enum op op,
                   double bytes, double count, const char *formula)
{
    add_inside(s, AXIS_TP, exposure, label, op, bytes, count, formula);
}

/* `in` inputs and `out` outputs of that width. */
static void add_width(struct step *s, enum exposure e, double width, double in, double out,
                      const char *gathers, const char *scatters, const char *reduces,
                      const char *formula)
{
    double bytes = s->tokens * width * ACTIVATION_BYTES;
    double forward = 1 + s->again, weights = s->r->lora ? 0 : 1;

    if (!s->r->sequence_parallel) {
        add_tp(s, e, reduces, OP_ALL_REDUCE, bytes, out * forward + in,
               formula == sp_formula ? ar_formula : formula);
        return;
    }
    add_tp(s, e, gathers, OP_ALL_GATHER, bytes, in * (forward + weights) + out, formula);
    add_tp(s, e, scatters, OP_REDUCE_SCATTER, bytes, out * forward + in, formula);
}

/* Embedding and head of one microbatch, whose products are not cut up by any stack: the embedding's
 * output is shared out and, unless frozen, its gradient brought together; the head is like the
 * first half of a half. */
static void add_ends(struct step *s)
{
    const struct pipe_stage *stage = &s->t->stage;
    double bytes = s->tokens * s->m->hidden * ACTIVATION_BYTES;
    double heads = stage->last ? 1 + (s->r->mtp ? s->m->mtp.count : 0) : 0;
    double first = stage->first, trained = s->r->lora ? 0 : 1;

    if (!s->r->sequence_parallel) {
        add_tp(s, EXPOSE_TP_PLAIN, "tp all_reduce of embedding and head", OP_ALL_REDUCE, bytes,
               first + heads, "s b h 2 / cp, embedding forward, head backward");
    } else {
        add_tp(s, EXPOSE_TP_PLAIN, "tp all_gather of embedding and head", OP_ALL_GATHER, bytes,
               first * trained + heads * (1 + trained),
               "s b h 2 / cp, embedding backward, head forward and for its weights' gradient");
        add_tp(s, EXPOSE_TP_PLAIN, "tp reduce_scatter of embedding and head", OP_REDUCE_SCATTER,
               bytes, first + heads, "s b h 2 / cp, embedding forward, head backward");
    }
    add_tp(s, EXPOSE_TP_PLAIN, "tp all_reduce of loss", OP_ALL_REDUCE, s->tokens * 4, 3 * heads,
           "s b 4 / cp: maximum, sum and target of each token's logits (Megatron-LM "
           "core/tensor_parallel/cross_entropy.py)");
}

void traffic_add_tensor(struct step *s)
{
    struct halves all = {0, 0};

    if (s->l->size[AXIS_TP] == 1)
        return;
    for (int i = 0; i < s->kinds; i++) {
        const struct attention *a = &s->kind[i].layer->attention;
        const struct mlp *p = &s->kind[i].layer->mlp;
        double n = s->kind[i].count;
        bool wide = p->kind != MLP_NONE && (!p->experts || p->shared_ffn);
        all.out += n * ((a->kind != MIXER_NONE) + wide);
        all.in += n * ((a->kind != MIXER_NONE && a->kind != MIXER_MLA) + wide);
        if (a->kind == MIXER_MLA)
            add_width(s, EXPOSE_TP_PLAIN,
                      (a->q_rank ? a->q_rank : s->m->hidden) + (double)a->kv_rank + a->rope_dim, n,
                      0, "tp all_gather of latents", "tp reduce_scatter of latents",
                      "tp all_reduce of latents", latent_formula);
    }
    add_width(s, recipe_overlaps_tp(s->r) ? EXPOSE_TP : EXPOSE_TP_PLAIN, s->m->hidden, all.in,
              all.out, "tp all_gather", "tp reduce_scatter", "tp all_reduce", sp_formula);
    add_ends(s);
}

static void add_cp(struct step *s, const char *label, enum op op, double bytes, double count,
                   const char *formula)
{
    add_inside(s, AXIS_CP, EXPOSE_CP, label, op, bytes, count, formula);
}

/* Keys and values of one rank's tokens, or queries and outputs, in bytes.  Latent attention sends
 * them after the projection up from the latent, as Megatron-LM does. */
static double kv_bytes(const struct step *s, const struct attention *a)
{
    int tp = s->l->size[AXIS_TP], v = a->v_dim ? a->v_dim : a->head_dim;

    if (a->kind == MIXER_CSA) /* one head is key and value */
        return s->tokens * a->head_dim * ACTIVATION_BYTES;
    double heads = a->kv_heads > tp ? (double)a->kv_heads / tp : 1;

    return s->tokens * heads * (a->head_dim + v) * ACTIVATION_BYTES;
}

static double qo_bytes(const struct step *s, const struct attention *a)
{
    int v = a->v_dim ? a->v_dim : a->head_dim;

    return s->tokens * a->heads / s->l->size[AXIS_TP] * (a->head_dim + v) * ACTIVATION_BYTES;
}

/* Windows are not taken advantage of: the implementations move all keys and values. */
static void add_attention(struct step *s, const struct attention *a, double n)
{
    int cp = s->l->size[AXIS_CP];
    double forward = s->r->recompute == RECOMPUTE_NONE ? 1 : 2; /* the core runs again */

    switch (s->r->context) {
    case CONTEXT_RING:
        add_cp(s, "cp ring", OP_SENDRECV, kv_bytes(s, a), (forward + 2) * (cp - 1) * n,
               "2 kv d s/cp b 2 / tp, cp-1 hops forward and 2 (cp-1) backward (Liu et al. 2023)");
        break;
    case CONTEXT_ULYSSES:
        add_cp(s, "cp all_to_all of queries and outputs", OP_ALL_TO_ALL, qo_bytes(s, a) / 2,
               2 * (forward + 1) * n,
               "n d s/cp b 2 / tp each, and their gradients (Jacobs et al. 2023, 3.2)");
        add_cp(s, "cp all_to_all of keys and values", OP_ALL_TO_ALL, kv_bytes(s, a) / 2,
               2 * (forward + 1) * n,
               "kv d s/cp b 2 / tp each, and their gradients (Jacobs et al. 2023, 3.2)");
        break;
    default:
        add_cp(s, "cp all_gather of keys and values", OP_ALL_GATHER, kv_bytes(s, a) * cp,
               (forward + 1) * n, "2 kv d s b 2 / tp, forward and backward (Llama 3 2024, 3.3.2)");
        add_cp(s, "cp reduce_scatter of their gradients", OP_REDUCE_SCATTER, kv_bytes(s, a) * cp, n,
               "2 kv d s b 2 / tp (Llama 3 2024, 3.3.2)");
    }
}

/* A scan needs every token of a head: heads and sequence change places before and after it. */
static void add_mamba(struct step *s, const struct attention *a, double n)
{
    double inner = (double)a->heads * a->head_dim;
    double unit = s->tokens / s->l->size[AXIS_TP] * ACTIVATION_BYTES;

    add_cp(s, "cp all_to_all before the scan", OP_ALL_TO_ALL,
           unit * (2 * inner + 2.0 * a->groups * a->state + a->heads), (2 + s->again) * n,
           "(z, x, B, C, dt) s/cp b 2 / tp (Megatron-LM core/ssm/mamba_context_parallel.py)");
    add_cp(s, "cp all_to_all after the scan", OP_ALL_TO_ALL, unit * inner, (2 + s->again) * n,
           "y s/cp b 2 / tp (Megatron-LM core/ssm/mamba_context_parallel.py)");
}

void traffic_add_context(struct step *s)
{
    for (int i = 0; i < s->kinds && s->l->size[AXIS_CP] > 1; i++) {
        const struct attention *a = &s->kind[i].layer->attention;
        if (a->kind == MIXER_MAMBA2)
            add_mamba(s, a, s->kind[i].count);
        else if (a->kind != MIXER_NONE)
            add_attention(s, a, s->kind[i].count);
    }
}
