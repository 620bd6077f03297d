/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/model.h"

#include <math.h>
#include <string.h>

const char *const weight_part_name[WEIGHT_COUNT] = {"mixer", "mlp", "experts", "shared experts",
                                                    "routing"};

/* Rows of struct weight, in order of listing. */
struct weights {
    struct weight *row;
    int n;
};

static void add(struct weights *w, const char *name, enum weight_part part, double in, double out,
                bool bias)
{
    w->row[w->n++] = (struct weight){name, part, in, out, 1, 1, bias, false};
}

static void add_gqa(struct weights *w, double h, const struct attention *a)
{
    double q = (double)a->heads * a->head_dim, kv = (double)a->kv_heads * a->head_dim;

    add(w, "q", WEIGHT_MIXER, h, q, a->bias);
    add(w, "k", WEIGHT_MIXER, h, kv, a->bias);
    add(w, "v", WEIGHT_MIXER, h, kv, a->bias);
    add(w, "o", WEIGHT_MIXER, q, h, a->bias);
}

static void add_mla(struct weights *w, double h, const struct attention *a)
{
    double q = (double)a->heads * a->head_dim, v = (double)a->heads * a->v_dim;

    if (a->q_rank) {
        add(w, "q down", WEIGHT_MIXER, h, a->q_rank, a->bias);
        add(w, "q up", WEIGHT_MIXER, a->q_rank, q, a->bias);
    } else {
        add(w, "q", WEIGHT_MIXER, h, q, a->bias);
    }
    add(w, "kv down", WEIGHT_MIXER, h, (double)a->kv_rank + a->rope_dim, a->bias);
    add(w, "kv up", WEIGHT_MIXER, a->kv_rank, (double)a->heads * a->nope_dim + v, a->bias);
    add(w, "o", WEIGHT_MIXER, v, h, a->bias);
}

/* Keys and values are one vector of head_dim, for every token and, gated, for every `ratio` tokens.
 * If an index selects among those, each overlaps with the one before (twice the width). */
static void add_csa(struct weights *w, double h, const struct attention *a)
{
    double q = (double)a->heads * a->head_dim, dim = a->index_dim, overlap = a->index_topk ? 2 : 1;

    add(w, "q down", WEIGHT_MIXER, h, a->q_rank, a->bias);
    add(w, "q up", WEIGHT_MIXER, a->q_rank, q, a->bias);
    add(w, "kv", WEIGHT_MIXER, h, a->head_dim, a->bias);
    add(w, "o down", WEIGHT_MIXER, q / a->o_groups, a->o_rank, a->bias);
    w->row[w->n - 1].copies = w->row[w->n - 1].active = a->o_groups;
    add(w, "o up", WEIGHT_MIXER, (double)a->o_groups * a->o_rank, h, a->bias);
    if (a->ratio)
        add(w, "compress", WEIGHT_MIXER, h, 2 * overlap * a->head_dim, a->bias);
    if (!a->index_topk)
        return;
    add(w, "index compress", WEIGHT_MIXER, h, 2 * overlap * dim, a->bias);
    add(w, "index q", WEIGHT_MIXER, a->q_rank, a->index_heads * dim, a->bias);
    add(w, "index weights", WEIGHT_MIXER, h, a->index_heads, a->bias);
}

/* One product computes the gate z, x, B, C and the step sizes dt (Dao and Gu 2024, 7.1). */
static void add_mamba2(struct weights *w, double h, const struct attention *a)
{
    double inner = (double)a->heads * a->head_dim;

    add(w, "in", WEIGHT_MIXER, h, 2 * inner + 2.0 * a->groups * a->state + a->heads, a->bias);
    add(w, "out", WEIGHT_MIXER, inner, h, a->bias);
}

static void add_none(struct weights *w, double h, const struct attention *a)
{
    (void)w;
    (void)h;
    (void)a;
}

static void (*const add_mixer[MIXER_COUNT])(struct weights *, double, const struct attention *) = {
    add_gqa, add_mla, add_csa, add_mamba2, add_none};

/* Add two or three matrices between `in` and `ffn`. */
static void add_wide(struct weights *w, const struct mlp *p, enum weight_part part, double in,
                     double ffn)
{
    if (p->kind == MLP_SWIGLU)
        add(w, "gate", part, in, ffn, p->bias);
    add(w, "up", part, in, ffn, p->bias);
    add(w, "down", part, ffn, in, p->bias);
}

static void add_experts(struct weights *w, double in, const struct mlp *p)
{
    int first = w->n;

    add_wide(w, p, WEIGHT_EXPERTS, in, p->ffn);
    for (int i = first; i < w->n; i++) {
        w->row[i].copies = p->experts;
        w->row[i].active = p->topk;
    }
}

static void add_mlp(struct weights *w, double h, const struct mlp *p)
{
    if (p->kind == MLP_NONE)
        return;
    if (!p->experts) {
        add_wide(w, p, WEIGHT_MLP, h, p->ffn);
        return;
    }
    add(w, "router", WEIGHT_ROUTER, h, p->experts, p->bias);
    if (p->latent) {
        add(w, "latent down", WEIGHT_ROUTER, h, p->latent, p->bias);
        add(w, "latent up", WEIGHT_ROUTER, p->latent, h, p->bias);
    }
    add_experts(w, p->latent ? p->latent : h, p);
    if (p->shared_ffn)
        add_wide(w, p, WEIGHT_SHARED, h, p->shared_ffn);
}

/* True for up after gate, and for k and v after q: one product with one input. */
static bool shares_input(const struct weight *w, const struct layer *l)
{
    return !strcmp(w->name, "k") || !strcmp(w->name, "v") ||
           (!strcmp(w->name, "up") && l->mlp.kind == MLP_SWIGLU);
}

/* Norms, and the vectors of mixers: norms of latents, the depthwise convolution with its bias over
 * x, B and C, and A, D and the bias of dt per head. */
static double vector_params(const struct model *m, const struct layer *l)
{
    const struct attention *a = &l->attention;
    double sum = ((a->kind != MIXER_NONE) + (l->mlp.kind != MLP_NONE)) * (double)m->hidden;

    if (a->kind == MIXER_MLA)
        sum += (double)a->q_rank + a->kv_rank;
    if (a->kind == MIXER_CSA)
        sum += (double)a->q_rank + a->head_dim;
    if (a->kind == MIXER_MAMBA2) {
        double inner = (double)a->heads * a->head_dim;
        sum += inner + 3.0 * a->heads + (inner + 2.0 * a->groups * a->state) * (a->conv + 1.0);
    }
    return sum;
}

static void add_sums(struct layer_sums *s, const struct weight *w)
{
    double matrix = w->in * w->out, one = matrix + (w->bias ? w->out : 0);
    double adapter = w->copies * (w->in + w->out);
    bool expert = w->part == WEIGHT_EXPERTS;

    s->total += w->copies * one;
    s->active += w->active * one;
    s->expert += expert ? w->copies * one : 0;
    s->matmul += w->active * matrix;
    s->matmul_expert += expert ? w->active * matrix : 0;
    if (w->part != WEIGHT_ROUTER)
        *(w->part == WEIGHT_MIXER ? &s->lora_mixer
          : expert                ? &s->lora_expert
                                  : &s->lora_mlp) += adapter;
}

void layer_list(struct layer *l, const struct model *m)
{
    struct weights all = {l->weight, 0};
    double vectors = vector_params(m, l);

    add_mixer[l->attention.kind](&all, m->hidden, &l->attention);
    add_mlp(&all, m->hidden, &l->mlp);
    l->weights = all.n;
    l->sums = (struct layer_sums){.total = vectors, .active = vectors};
    for (int i = 0; i < l->weights; i++) {
        l->weight[i].shares_input = shares_input(&l->weight[i], l);
        add_sums(&l->sums, &l->weight[i]);
    }
}

bool model_has_experts(const struct model *m)
{
    for (int i = 0; i < m->kinds; i++)
        if (m->layer[i].mlp.experts > 0)
            return true;
    return false;
}

void model_params(const struct model *m, struct params *p)
{
    double table = (double)m->hidden * m->vocab;

    memset(p, 0, sizeof(*p));
    p->head = table;
    p->embedding = (m->tied ? table : 2 * table) + (double)m->hidden * m->positions;
    p->matmul = table;
    for (int i = 0; i < m->kinds; i++) {
        double count = m->layer[i].count;
        const struct layer_sums *s = &m->layer[i].sums;
        p->layers += count * s->total;
        p->active += count * s->active;
        p->expert += count * s->expert;
        p->matmul += count * s->matmul;
    }
    p->total = p->layers + p->embedding + m->hidden; /* plus the last norm */
    p->active += p->embedding + m->hidden;
}

/* Embedding and head are shared with the model. */
double mtp_params(const struct model *m)
{
    double h = m->hidden;

    if (!m->mtp.count)
        return 0;
    return (m->mtp_shared ? 1 : m->mtp.count) * (m->mtp.sums.total + 2 * h * h + 3 * h);
}

double model_lora_params(const struct model *m, int rank, bool mlp)
{
    double sum = 0;

    for (int i = 0; i < m->kinds; i++) {
        const struct weight *w = m->layer[i].weight;
        for (int k = 0; k < m->layer[i].weights; k++)
            if (w[k].part == WEIGHT_MIXER || (mlp && w[k].part != WEIGHT_ROUTER))
                sum += m->layer[i].count * w[k].copies * rank * (w[k].in + w[k].out);
    }
    return sum;
}

/* Mean number of keys visible to a token: the last `most` of n, including itself; most 0: all. */
static double mean_keys(double n, double most)
{
    double window = most > 0 ? fmin(most, n) : n;

    return window * (1 - window / (2 * n));
}

/* Training FLOPs of the core: 2 per multiply-add, 3 times forward.  Attention: a score and a sum
 * over V for every visible key; an index scores all n groups of tokens with one product, in both
 * conventions.  Scan: 7 per channel and state (Megatron-LM, mamba_layer_flops). */
double layer_core_flops(const struct layer *l, int seq, bool causal)
{
    const struct attention *a = &l->attention;
    double keys = mean_keys(seq, a->window) * (causal ? 1 : 2), n = (double)seq / fmax(a->ratio, 1);

    switch (a->kind) {
    case MIXER_GQA:
        return 6.0 * keys * a->heads * (2.0 * a->head_dim);
    case MIXER_MLA:
        return 6.0 * keys * a->heads * ((double)a->head_dim + a->v_dim);
    case MIXER_CSA:
        if (a->ratio)
            keys += mean_keys(n, a->index_topk) * (causal ? 1 : 2);
        return 6.0 * keys * a->heads * (2.0 * a->head_dim) +
               6.0 * n * a->index_heads * a->index_dim;
    case MIXER_MAMBA2:
        return 3.0 * 7 * a->heads * a->head_dim * a->state;
    default:
        return 0;
    }
}

void model_flops(const struct model *m, int seq, bool causal, struct flops *f)
{
    memset(f, 0, sizeof(*f));
    f->head = 6.0 * m->hidden * m->vocab;
    for (int i = 0; i < m->kinds; i++) {
        double count = m->layer[i].count;
        struct flops one;
        layer_flops(&m->layer[i], seq, causal, &one);
        f->linear += count * one.linear;
        f->expert += count * one.expert;
        f->core += count * one.core;
    }
}

void mtp_flops(const struct model *m, int seq, bool causal, struct flops *f)
{
    double h = m->hidden, n = m->mtp.count;

    memset(f, 0, sizeof(*f));
    if (!m->mtp.count)
        return;
    layer_flops(&m->mtp, seq, causal, f);
    f->linear = n * (f->linear + 6 * 2 * h * h);
    f->expert *= n;
    f->core *= n;
    f->head = n * 6 * h * m->vocab;
}

/* --- spread of tokens over experts --- */

/* Probability that none of k distinct experts drawn from `pool` is among `part` of them: C(pool -
 * part, k) / C(pool, k). */
static double miss(double pool, double part, int k)
{
    double p = 1;

    for (int i = 0; i < k && p > 0; i++)
        p *= fmax(0, pool - part - i) / (pool - i);
    return p;
}

/* Probability that j of `drawn` ones from `pool` are among `part`: C(part, j) C(pool - part, drawn
 * - j) / C(pool, drawn), one draw at a time. */
static double hypergeometric(int pool, int part, int drawn, int j)
{
    double p = 1;

    for (int i = 0; i < drawn; i++)
        p *= i < j ? (double)(part - i) / (pool - i) * (drawn - i) / (j - i)
                   : fmax(0, pool - part - (i - j)) / (pool - i);
    return p;
}

/* With limited groups a token first draws groups, then experts in them. */
static double miss_limited(const struct routing *r, double part)
{
    double size = (double)r->experts / r->groups, pool = size * r->groups_max, none = 0;
    int whole = (int)(part / size + 0.5), drawn = r->groups_max;

    if (part < size) {
        double drawn_share = (double)drawn / r->groups;
        return 1 - drawn_share + drawn_share * miss(pool, part, r->topk);
    }
    for (int j = 0; j <= whole && j <= drawn; j++)
        none += hypergeometric(r->groups, whole, drawn, j) * miss(pool, j * size, r->topk);
    return none;
}

double routing_parts(const struct routing *r, int members)
{
    double part = (double)r->experts * members / r->ranks;
    bool limited = r->groups_max > 0 && r->groups_max < r->groups;

    return (double)r->ranks / members *
           (1 - (limited ? miss_limited(r, part) : miss(r->experts, part, r->topk)));
}
