/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/recipe.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

const struct recipe_names recipe_name = {
    .strategy = {"ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"},
    .schedule = {"1f1b", "interleaved", "zb-h1", "zb-h2", "dualpipe"},
    .dtype = {"fp32", "bf16", "fp8", "mxfp8", "nvfp4"},
    .recompute = {"none", "selective", "full"},
    .context = {"ring", "ulysses", "gather"},
    .lora = {"none", "attention", "all"},
    .stack = {"megatron", "torchtitan", "eager", "hf"},
    .tp_overlap = {"stack", "on", "off"},
    .dp_overlap = {"stack", "on", "off"},
    .pointwise = {"stack", "library", "compiled", "separate"},
    .flash = {"stack", "new", "2"},
    .attention = {"flash", "fused", "unfused"},
    .stage_split = {"layers", "cost"},
    .zero_engine = {"stack", "deepspeed"},
    .segments = {"stack", "on", "off"},
    .grad_sync = {"each", "last"},
    .dispatch = {"nccl", "kernel"},
    .cuda_graphs = {"off", "layers", "step"},
};

#define AT(field) offsetof(struct recipe, field)
#define WORDS(names, count) 0, 0, names, count
enum { BATCH_MAX = 1 << 28 };

static const struct argument_group pipeline = {"recipe", "pipeline and parallel axes"},
                                   overlap = {"recipe", "overlap of messages and compute"},
                                   kernels = {"recipe", "software, kernels and what is trained"},
                                   experts = {"recipe", "experts"},
                                   bytes = {"recipe", "bytes on the wire and in memory"},
                                   seconds = {"recipe", "time added to each step"};

const struct argument recipe_argument[] = {
    {"strategy", ARGUMENT_WORD, AT(strategy), WORDS(recipe_name.strategy, STRATEGY_COUNT), "NAME",
     "data parallelism: ddp, zero1, zero2, zero3, fsdp or hsdp (default fsdp)", .group = NULL},
    {"batch", ARGUMENT_INT, AT(global_batch), 1, BATCH_MAX, NULL, 0, "N",
     "sequences per step (default: 1 microbatch per rank, 4 pp with a pipeline)", .group = NULL},
    {"micro-batch", ARGUMENT_INT, AT(micro_batch), 1, BATCH_MAX, NULL, 0, "N",
     "sequences per microbatch (default 1)", .group = NULL},
    {"seq", ARGUMENT_INT, AT(seq), 1, BATCH_MAX, NULL, 0, "N", "tokens per sequence (default 8192)",
     .group = NULL},
    {"dtype", ARGUMENT_WORD, AT(dtype), WORDS(recipe_name.dtype, DTYPE_COUNT), "NAME",
     "precision: fp32, bf16, fp8, mxfp8 or nvfp4 (default bf16)", .group = NULL},
    {"recompute", ARGUMENT_WORD, AT(recompute), WORDS(recipe_name.recompute, RECOMPUTE_COUNT),
     "NAME", "activations to recompute: none, selective (attention core) or full (default none)",
     .group = NULL},
    {"recompute-layers", ARGUMENT_INT, AT(recompute_layers), 1, 4096, NULL, 0, "N",
     "layers per pipeline rank that full recompute computes again (default all)",
     .group = &pipeline},
    {"schedule", ARGUMENT_WORD, AT(schedule), WORDS(recipe_name.schedule, SCHEDULE_COUNT), "NAME",
     "pipeline schedule: 1f1b, interleaved, zb-h1, zb-h2 or dualpipe (default 1f1b)",
     .group = &pipeline},
    {"stages-per-rank", ARGUMENT_INT, AT(stages), 1, 1024, NULL, 0, "V",
     "model chunks per pipeline rank; more than 1 implies interleaved (default 1)",
     .group = &pipeline},
    {"context", ARGUMENT_WORD, AT(context), WORDS(recipe_name.context, CONTEXT_COUNT), "NAME",
     "exchange of context parallelism: ring, ulysses or gather (default ring)", .group = &pipeline},
    {"ulysses", ARGUMENT_INT, AT(ulysses), 2, 1024, NULL, 0, "N",
     "ranks of cp that exchange heads by all_to_all, inside the ring of the others (default none)",
     .group = &pipeline},
    {"sequence-parallel", ARGUMENT_SWITCH, AT(sequence_parallel), 0, 0, NULL, 0, "on|off",
     "tp also shards activations between matrix products (default on)", .group = &pipeline},
    {"loss-parallel", ARGUMENT_SWITCH, AT(loss_parallel), 0, 0, NULL, 0, "on|off",
     "tp also shards the logits of the loss (default on)", .group = &pipeline},
    {"tp-overlap", ARGUMENT_WORD, AT(tp_overlap), WORDS(recipe_name.tp_overlap, TP_OVERLAP_COUNT),
     "on|off|stack",
     "overlap tp messages with parts of their matrix products (default stack: on for megatron)",
     .group = &overlap},
    {"dp-overlap", ARGUMENT_WORD, AT(dp_overlap), WORDS(recipe_name.dp_overlap, DP_OVERLAP_COUNT),
     "on|off|stack",
     "overlap gradients and weights with compute (default stack: off for zero1, zero2 of eager and "
     "hf)",
     .group = &overlap},
    {"attention", ARGUMENT_WORD, AT(attention), WORDS(recipe_name.attention, KERNELS_COUNT), "NAME",
     "attention kernels: flash, fused (softmax) or unfused (default flash)", .group = &kernels},
    {"flash", ARGUMENT_WORD, AT(flash), WORDS(recipe_name.flash, FLASH_COUNT), "new|2|stack",
     "version of flash attention: new (cuDNN, 3, 4) or 2 (default stack: new for megatron)",
     .group = &kernels},
    {"pointwise", ARGUMENT_WORD, AT(pointwise), WORDS(recipe_name.pointwise, POINTWISE_COUNT),
     "NAME",
     "kernels between products: library (Transformer Engine), compiled or separate (default stack: "
     "library for megatron, compiled for torchtitan)",
     .group = &kernels},
    {"power-limit", ARGUMENT_DOUBLE, AT(power_limit), 50, 5000, NULL, 0, "W",
     "power that a GPU may take (default: that of its data sheet)", .group = &kernels},
    {"memory-rate", ARGUMENT_DOUBLE, AT(memory_rate), 0.1, 100, NULL, 0, "TB/s",
     "rate of the GPU's memory (default: that of its data sheet)", .group = &kernels},
    {"prefetch", ARGUMENT_SWITCH, AT(prefetch), 0, 0, NULL, 0, "on|off",
     "fsdp gathers the next layer during compute of this one (default on)", .group = &overlap},
    {"reshard", ARGUMENT_SWITCH, AT(reshard), 0, 0, NULL, 0, "on|off",
     "fsdp drops weights after the forward pass and gathers them again (default on)",
     .group = &overlap},
    {"weight-bytes", ARGUMENT_DOUBLE, AT(weight_bytes), 0.25, 8, NULL, 0, "B",
     "bytes per weight on the wire (default 2)", .group = &bytes},
    {"frozen-bytes", ARGUMENT_DOUBLE, AT(frozen_bytes), 0.25, 4, NULL, 0, "B",
     "bytes per frozen weight (default: as products read it; 0.52: NF4 of QLoRA)", .group = &bytes},
    {"grad-bytes", ARGUMENT_DOUBLE, AT(grad_bytes), 0.25, 8, NULL, 0, "B",
     "bytes per gradient on the wire (default: 4 for fsdp and hsdp, else 2)", .group = &bytes},
    {"grad-sync", ARGUMENT_WORD, AT(grad_sync), WORDS(recipe_name.grad_sync, GRAD_SYNC_COUNT),
     "NAME", "when fsdp reduces gradients: after each microbatch, or after the last (default each)",
     .group = &overlap},
    {"state-bytes", ARGUMENT_DOUBLE, AT(state_bytes), 2, 16, NULL, 0, "B",
     "optimizer bytes per parameter: the weight and its moments (default 12: fp32; 6: bf16)",
     .group = &bytes},
    {"dispatch", ARGUMENT_WORD, AT(dispatch), WORDS(recipe_name.dispatch, DISPATCH_COUNT), "NAME",
     "transport of tokens to experts: nccl (all_to_all) or kernel (default nccl)",
     .group = &experts},
    {"dispatch-bytes", ARGUMENT_DOUBLE, AT(dispatch_bytes), 0.5, 4, NULL, 0, "B",
     "bytes per element on the way to an expert: 2, or 1 for fp8 (default 2)", .group = &bytes},
    {"combine-bytes", ARGUMENT_DOUBLE, AT(combine_bytes), 0.5, 4, NULL, 0, "B",
     "bytes per element on the way back from an expert (default 2)", .group = &bytes},
    {"route-nodes", ARGUMENT_INT, AT(route_nodes), 1, 1 << 20, NULL, 0, "N",
     "largest number of domains with experts of one token (default: as the model routes)",
     .group = &experts},
    {"ep-overlap", ARGUMENT_SWITCH, AT(ep_overlap), 0, 0, NULL, 0, "on|off",
     "overlap the all_to_all of one microbatch with compute of another (default off)",
     .group = &overlap},
    {"moe-fusion", ARGUMENT_SWITCH, AT(moe_fusion), 0, 0, NULL, 0, "on|off",
     "one grouped kernel for the experts' products, gate and casts (default off)",
     .group = &experts},
    {"fp8-attention", ARGUMENT_SWITCH, AT(fp8_attention), 0, 0, NULL, 0, "on|off",
     "multiply in fp8 in the attention core (default off)", .group = &kernels},
    {"cuda-graphs", ARGUMENT_WORD, AT(cuda_graphs),
     WORDS(recipe_name.cuda_graphs, CUDA_GRAPHS_COUNT), "off|layers|step",
     "kernels in CUDA graphs: none, those of layers except experts, or of the whole step (default "
     "off)",
     .group = &kernels},
    {"mtp", ARGUMENT_SWITCH, AT(mtp), 0, 0, NULL, 0, "on|off",
     "also train the model's multi-token prediction layers (default off)", .group = &kernels},
    {"lora", ARGUMENT_WORD, AT(lora), WORDS(recipe_name.lora, LORA_COUNT), "NAME",
     "train adapters on frozen weights: none, attention or all (default none)", .group = &kernels},
    {"lora-rank", ARGUMENT_INT, AT(lora_rank), 1, 65536, NULL, 0, "N",
     "rank of the adapters (default 16)", .group = &kernels},
    {"stack", ARGUMENT_WORD, AT(stack), WORDS(recipe_name.stack, STACK_COUNT), "NAME",
     "software stack: megatron, torchtitan, eager or hf (default megatron)", .group = &kernels},
    {"stage-split", ARGUMENT_WORD, AT(stage_split),
     WORDS(recipe_name.stage_split, STAGE_SPLIT_COUNT), "NAME",
     "equal share of a pipeline stage: layers, or cost of layers and head (default layers)",
     .group = &pipeline},
    {"zero-engine", ARGUMENT_WORD, AT(zero_engine),
     WORDS(recipe_name.zero_engine, ZERO_ENGINE_COUNT), "NAME",
     "ZeRO implementation: stack or deepspeed (default stack: deepspeed for hf)",
     .group = &kernels},
    {"expandable-segments", ARGUMENT_WORD, AT(segments),
     WORDS(recipe_name.segments, SEGMENTS_COUNT), "on|off|stack",
     "let segments of PyTorch's allocator grow (default stack: on for torchtitan)",
     .group = &kernels},
    {"causal", ARGUMENT_SWITCH, AT(causal), 0, 0, NULL, 0, "on|off",
     "causal mask, which halves the attention core (default on)", .group = &kernels},
    {"eval-seconds", ARGUMENT_SECONDS, AT(eval_seconds), 0, 1e6, NULL, 0, "TIME",
     "evaluation time per step, on average (default 0)", .group = &seconds},
    {"checkpoint-seconds", ARGUMENT_SECONDS, AT(checkpoint_seconds), 0, 1e6, NULL, 0, "TIME",
     "checkpoint time per step, on average (default 0)", .group = &seconds},
    {"fixed-seconds", ARGUMENT_SECONDS, AT(fixed_seconds), 0, 1e6, NULL, 0, "TIME",
     "any other time per step (default 0)", .group = &seconds},
    {0},
};

void recipe_defaults(struct recipe *r)
{
    *r = (struct recipe){.strategy = STRATEGY_FSDP,
                         .stages = 1,
                         .seq = 8192,
                         .micro_batch = 1,
                         .dtype = DTYPE_BF16,
                         .lora_rank = 16,
                         .causal = true,
                         .sequence_parallel = true,
                         .loss_parallel = true,
                         .prefetch = true,
                         .reshard = true,
                         .dispatch_bytes = 2,
                         .combine_bytes = 2};
}

int recipe_word(const char *what, const char *word, const char *const *names, int n,
                struct err *err)
{
    char known[640] = "";
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        if (!strcmp(word, names[i]))
            return i;
        size_t len = strlen(names[i]);
        if (used + len + 3 < sizeof(known)) {
            memcpy(known + used, names[i], len);
            memcpy(known + used + len, ", ", 3);
            used += len + 2;
        }
    }
    known[used >= 2 ? used - 2 : 0] = '\0';
    return err_usage(err, "%s \"%s\" is not known (known: %s)", what, word, known);
}

bool argument_is(const char *have, const char *given)
{
    while (*given == '-')
        given++;
    for (; *have && *given; have++, given++)
        if (*have != (*given == '_' ? '-' : *given))
            return false;
    return *have == *given;
}

const struct argument *argument_find(const struct argument *table, const char *key)
{
    for (const struct argument *a = table; a->key; a++)
        if (argument_is(a->key, key))
            return a;
    return NULL;
}

static int set_switch(bool *out, const char *key, const char *value, struct err *err)
{
    static const char *const word[] = {"off", "on"};
    int i = recipe_word(key, value, word, 2, err);

    *out = i == 1;
    return i < 0 ? -1 : 0;
}

int argument_set(void *of, const struct argument *a, const char *value, struct err *err)
{
    void *at = (char *)of + a->at;
    struct err why;
    int rc = 0;

    switch (a->kind) {
    case ARGUMENT_TEXT:
        *(const char **)at = value;
        break;
    case ARGUMENT_INT:
        rc = units_int(at, value, (int)a->min, (int)a->max, &why);
        break;
    case ARGUMENT_DOUBLE:
        rc = units_double(at, value, a->min, a->max, &why);
        break;
    case ARGUMENT_SECONDS:
        rc = units_seconds(at, value, &why);
        break;
    case ARGUMENT_SWITCH:
        return set_switch(at, a->key, value, err);
    case ARGUMENT_WORD:
        *(int *)at = recipe_word(a->key, value, a->words, a->count, err);
        return *(int *)at < 0 ? -1 : 0;
    }
    return rc < 0 ? err_usage(err, "%s: %s", a->key, why.text) : 0;
}

char *argument_get(char *buf, int size, const void *of, const struct argument *a)
{
    const void *at = (const char *)of + a->at;
    const char *word = "";

    if (a->kind == ARGUMENT_TEXT)
        word = *(const char *const *)at ? *(const char *const *)at : "";
    else if (a->kind == ARGUMENT_SWITCH)
        word = *(const bool *)at ? "on" : "off";
    else if (a->kind == ARGUMENT_WORD)
        word = *(const int *)at < 0 ? "any" : a->words[*(const int *)at];
    if (a->kind == ARGUMENT_INT)
        snprintf(buf, (size_t)size, "%d", *(const int *)at);
    else if (a->kind == ARGUMENT_DOUBLE || a->kind == ARGUMENT_SECONDS)
        snprintf(buf, (size_t)size, "%.9g", *(const double *)at);
    else
        snprintf(buf, (size_t)size, "%s", word);
    return buf;
}

bool argument_given(const void *of, const struct argument *a)
{
    const void *at = (const char *)of + a->at;

    switch (a->kind) {
    case ARGUMENT_TEXT:
        return *(const char *const *)at != NULL;
    case ARGUMENT_SWITCH:
        return *(const bool *)at;
    case ARGUMENT_INT:
    case ARGUMENT_WORD:
        return *(const int *)at != 0;
    default:
        return *(const double *)at > 0;
    }
}

int argument_unknown(const char *key, const struct argument *const *tables, int n, struct err *err)
{
    const char **known = NULL;
    int count = 0;

    for (int t = 0; t < n; t++)
        for (const struct argument *a = tables[t]; a->key; a++)
            MEM_PUSH(known, count) = a->key;
    int rc = recipe_word("setting", key, known, count, err);
    free(known);
    return rc;
}

int recipe_set(struct recipe *r, const char *key, const char *value, struct err *err)
{
    const struct argument *a = argument_find(recipe_argument, key), *const table = recipe_argument;

    return a ? argument_set(r, a, value, err) : argument_unknown(key, &table, 1, err);
}

int recipe_check(struct recipe *r, struct err *err)
{
    if (r->stages < 1 || r->seq < 1 || r->micro_batch < 1 || r->global_batch < 0)
        return err_usage(err,
                         "stages %d, sequence %d, micro batch %d and batch %d must be positive",
                         r->stages, r->seq, r->micro_batch, r->global_batch);
    if (r->tp_overlap == TP_OVERLAP_ON && !r->sequence_parallel)
        return err_usage(err, "tp-overlap needs sequence-parallel: an all_reduce after a product "
                              "has no part of it to run beside");
    if (r->recompute_layers && r->recompute != RECOMPUTE_FULL)
        return err_usage(err, "recompute-layers %d needs recompute full", r->recompute_layers);
    if (r->frozen_bytes > 0 && r->lora == LORA_NONE)
        return err_usage(err, "frozen-bytes %g: no weight is frozen without lora", r->frozen_bytes);
    if (r->ulysses && r->context != CONTEXT_RING)
        return err_usage(err, "ulysses %d is inside a ring, and context is %s", r->ulysses,
                         recipe_name.context[r->context]);
    if (r->schedule == SCHEDULE_1F1B && r->stages > 1)
        r->schedule = SCHEDULE_INTERLEAVED;
    if (r->schedule != SCHEDULE_INTERLEAVED && r->stages > 1)
        return err_usage(err, "%d stages per rank need the interleaved schedule, not %s", r->stages,
                         recipe_name.schedule[r->schedule]);
    if (r->schedule == SCHEDULE_INTERLEAVED && r->stages < 2)
        return err_usage(err, "the interleaved schedule needs at least 2 stages per rank, not %d",
                         r->stages);
    return 0;
}
