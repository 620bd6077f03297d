/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_unsaid.c - what a table leaves unsaid, or says and cannot be, read by rule: chunks of a
 * pipeline, what must have been recomputed or shared out for a job that ran to fit, which of two
 * dtypes. */
#include <stdio.h>
#include <string.h>

#include "step/score/batch_words.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

enum { DEEPEST = 0 };

/* Chunks of a pipeline rank where the table has none, by source; without a row here: 1. */
static const struct {
    const char *source, *model;
    int chunks; /* DEEPEST: a layer each, embedding and loss counted as layers */
    const char *why;
} chunks[] = {
    /* 3.3.2: stages are interleaved, with any number of microbatches in a row; the first and the
     * last stage have a layer less: 126 = 128 - 2. */
    {"Llama 3 paper", "", DEEPEST, "the paper's schedule is interleaved"},
    /* INTERLEAVED_PIPELINE=4, deepseekv3_671b/implementations: config_GB200_128x4x240*.sh and
     * config_GB200_2048x4x16*.sh as those of GB300 */
    {"training_results_v6.0", "deepseek-v3", 4, "as in its published configuration"},
};

void batch_chunks(struct batch_row *r, const struct model *m, const struct layout *l)
{
    int pp = l->size[AXIS_PP];

    for (size_t i = 0; i < COUNT(chunks) && pp > 1 && !r->chunks_said; i++) {
        if (!strstr(r->source, chunks[i].source) || !strstr(r->model, chunks[i].model))
            continue;
        int v = chunks[i].chunks;
        if (v == DEEPEST)
            v = (m->layers + 2) % pp ? 1 : (m->layers + 2) / pp;
        r->recipe.stages = v;
        batch_remark(r, "vp is not stated: %d, %s", v, chunks[i].why);
        return;
    }
}

/* --- what ran must fit --- */

/* Need beyond capacity that may be memory_of()'s own error: up to 22 % too much for a published
 * reading (187 GB of Llama 3.1 8B with 65,536 tokens a rank, torchtitan
 * components/quantization/nvfp4.md), 15 % in tests/unit/memory.c. */
static const double memory_trust = 1.25;

/* Sources that make jobs fit by means that cost next to no products and are not modelled. */
static const struct {
    const char *source, *means;
} means[] = {
    /* recompute_modules ("mla_up_proj", "moe_act", "layernorm", "mlp") and
     * cpu_offloading_num_layers: scripts/performance/configs */
    {"Megatron-Bridge", "modules redone or layers in host memory"},
    {"training_results_", "modules redone"}, /* RECOMPUTE_MODULES of config_*.sh */
};

static const char *means_of(const struct batch_row *r)
{
    for (size_t i = 0; i < COUNT(means); i++)
        if (strstr(r->source, means[i].source))
            return means[i].means;
    return NULL;
}

/* The least recompute with which it fits into `share` of the capacity, and the need with it;
 * RECOMPUTE_COUNT: none does. */
static int least(struct memory *mem, const struct model *m, const struct layout *l,
                 const struct recipe *recipe, double capacity, double share,
                 const struct memory_constants *c)
{
    struct recipe with = *recipe;

    for (; with.recompute < RECOMPUTE_COUNT; with.recompute++) {
        memory_of(mem, m, l, &with, capacity, c);
        if (!(capacity > 0) || mem->total <= capacity * share)
            break;
    }
    return with.recompute;
}

/* Copies of weights on every rank that cannot be: as other recipes of that source share them out.
 */
static bool shares_weights(struct recipe *recipe)
{
    bool copies = recipe->strategy == STRATEGY_ZERO1 || recipe->strategy == STRATEGY_ZERO2;

    if (!copies || recipe->lora)
        return false;
    recipe->strategy = STRATEGY_FSDP;
    if (recipe->stack == STACK_MEGATRON && !(recipe->grad_bytes > 0))
        recipe->grad_bytes = 2; /* as rows that say FSDP-64 */
    return true;
}

static void settle_recompute(struct batch_row *r, const struct memory *need, int assumed)
{
    const char *by = means_of(r);
    double gb = need->total / 1e9, of = need->capacity / 1e9;

    if (by)
        batch_remark(r, "%.0f GB of %.0f as read: %s, less than recompute %s", gb, of, by,
                     recompute_name[r->fits_with]);
    else if (assumed > r->recipe.recompute)
        batch_remark(r, "recompute %s assumed: without it %.0f GB of %.0f", recompute_name[assumed],
                     gb, of);
    else
        batch_remark(r, "%.0f GB of %.0f as read: within the error of that", gb, of);
    if (!by)
        r->recipe.recompute = assumed;
}

void batch_fit(struct batch_row *r, const struct model *m, const struct layout *l, double capacity,
               const struct memory_constants *c)
{
    struct recipe shared = r->recipe;
    struct memory need, mem;

    memory_of(&need, m, l, &r->recipe, capacity, c);
    r->fits_with = least(&mem, m, l, &r->recipe, capacity, 1, c);
    if (r->fits_with == RECOMPUTE_COUNT && shares_weights(&shared) &&
        (r->fits_with = least(&mem, m, l, &shared, capacity, 1, c)) < RECOMPUTE_COUNT) {
        batch_remark(r, "fsdp assumed: with %s %.0f GB of %.0f", strategy_name[r->recipe.strategy],
                     need.total / 1e9, capacity / 1e9);
        r->recipe = shared;
        memory_of(&need, m, l, &shared, capacity, c);
    }
    if (r->fits_with == RECOMPUTE_COUNT)
        batch_remark(r, "%.0f GB of %.0f: it does not fit, however it is read", need.total / 1e9,
                     capacity / 1e9);
    else if (r->fits_with > r->recipe.recompute)
        settle_recompute(r, &need, least(&mem, m, l, &r->recipe, capacity, memory_trust, c));
}

/* --- one of two dtypes --- */

int batch_other_dtype(const char *cell)
{
    const char *slash = strchr(cell, '/');
    char word[16];

    if (!slash || !strchr(slash, '?'))
        return -1;
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(slash + 1, "?"), slash + 1);
    return recipe_word("dtype", word, dtype_name, DTYPE_COUNT, NULL);
}

void batch_settle_dtype(struct batch_row *r, const struct fabric_gpu *gpu)
{
    bool can = false;

    for (int i = 0; i < gpu->peaks && r->other_dtype >= 0; i++)
        can |= !strcmp(gpu->peak[i].dtype, dtype_name[r->other_dtype]);
    if (!can || r->other_dtype == r->recipe.dtype)
        r->other_dtype = -1;
    else
        batch_remark(r, "dtype is %s or %s: %s is assumed, and the interval reaches the other",
                     dtype_name[r->recipe.dtype], dtype_name[r->other_dtype],
                     dtype_name[r->recipe.dtype]);
}
