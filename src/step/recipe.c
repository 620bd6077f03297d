/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/recipe.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
    .dispatch = {"nccl", "kernel"},
};

#define AT(field) offsetof(struct recipe, field)
#define WORDS(names, count) 0, 0, names, count
enum { BATCH_MAX = 1 << 28 };

const struct setting recipe_setting[] = {
    {"strategy", SETTING_WORD, AT(strategy), WORDS(recipe_name.strategy, STRATEGY_COUNT), "NAME",
     "ddp, zero1, zero2, zero3, fsdp, hsdp (default fsdp)"},
    {"batch", SETTING_INT, AT(global_batch), 1, BATCH_MAX, NULL, 0, "N",
     "sequences of a step (default: 1 microbatch a rank, 4 pp with a pipeline)"},
    {"micro-batch", SETTING_INT, AT(micro_batch), 1, BATCH_MAX, NULL, 0, "N",
     "sequences of a microbatch (default 1)"},
    {"seq", SETTING_INT, AT(seq), 1, BATCH_MAX, NULL, 0, "N",
     "tokens of a sequence (default 8192)"},
    {"dtype", SETTING_WORD, AT(dtype), WORDS(recipe_name.dtype, DTYPE_COUNT), "NAME",
     "fp32, bf16, fp8, mxfp8, nvfp4 (default bf16)"},
    {"recompute", SETTING_WORD, AT(recompute), WORDS(recipe_name.recompute, RECOMPUTE_COUNT),
     "NAME", "none, selective (attention core), full (default none)"},
    {"schedule", SETTING_WORD, AT(schedule), WORDS(recipe_name.schedule, SCHEDULE_COUNT), "NAME",
     "1f1b, interleaved, zb-h1, zb-h2, dualpipe (default 1f1b)"},
    {"stages-per-rank", SETTING_INT, AT(stages), 1, 1024, NULL, 0, "V",
     "model chunks a pipeline rank holds; above 1 it implies interleaved"},
    {"context", SETTING_WORD, AT(context), WORDS(recipe_name.context, CONTEXT_COUNT), "NAME",
     "how cp sees the whole sequence: ring, ulysses, gather (default ring)"},
    {"sequence-parallel", SETTING_SWITCH, AT(sequence_parallel), 0, 0, NULL, 0, "on|off",
     "tp shards activations between the products too (default on)"},
    {"tp-overlap", SETTING_WORD, AT(tp_overlap), WORDS(recipe_name.tp_overlap, TP_OVERLAP_COUNT),
     "on|off|stack", "tp messages beside parts of their products (default stack: on for megatron)"},
    {"prefetch", SETTING_SWITCH, AT(prefetch), 0, 0, NULL, 0, "on|off",
     "fsdp gathers the next layer beside this one's compute (default on)"},
    {"reshard", SETTING_SWITCH, AT(reshard), 0, 0, NULL, 0, "on|off",
     "fsdp drops weights after forward and gathers them again (default on)"},
    {"weight-bytes", SETTING_DOUBLE, AT(weight_bytes), 0.25, 8, NULL, 0, "B",
     "of a weight on the wire (default 2)"},
    {"grad-bytes", SETTING_DOUBLE, AT(grad_bytes), 0.25, 8, NULL, 0, "B",
     "of a gradient on the wire (default: 4 for fsdp and hsdp, else 2)"},
    {"dispatch", SETTING_WORD, AT(dispatch), WORDS(recipe_name.dispatch, DISPATCH_COUNT), "NAME",
     "who moves tokens to experts: nccl (all_to_all), kernel (default nccl)"},
    {"dispatch-bytes", SETTING_DOUBLE, AT(dispatch_bytes), 0.5, 4, NULL, 0, "B",
     "of an element on its way to an expert: 2, or 1 for fp8 (default 2)"},
    {"combine-bytes", SETTING_DOUBLE, AT(combine_bytes), 0.5, 4, NULL, 0, "B",
     "of an element on its way back (default 2)"},
    {"route-nodes", SETTING_INT, AT(route_nodes), 1, 1 << 20, NULL, 0, "N",
     "a token's experts lie in at most N domains (default: as the model routes)"},
    {"ep-overlap", SETTING_SWITCH, AT(ep_overlap), 0, 0, NULL, 0, "on|off",
     "all_to_all of one microbatch beside another's compute (default off)"},
    {"mtp", SETTING_SWITCH, AT(mtp), 0, 0, NULL, 0, "on|off",
     "train the model's multi-token prediction layers too (default off)"},
    {"lora", SETTING_WORD, AT(lora), WORDS(recipe_name.lora, LORA_COUNT), "NAME",
     "frozen weights with adapters on: none, attention, all (default none)"},
    {"lora-rank", SETTING_INT, AT(lora_rank), 1, 65536, NULL, 0, "N",
     "of the adapters (default 16)"},
    {"stack", SETTING_WORD, AT(stack), WORDS(recipe_name.stack, STACK_COUNT), "NAME",
     "whose kernels: megatron, torchtitan, eager, hf (default megatron)"},
    {"causal", SETTING_SWITCH, AT(causal), 0, 0, NULL, 0, "on|off",
     "attention with a causal mask: half its core (default on)"},
    {"eval-seconds", SETTING_SECONDS, AT(eval_seconds), 0, 1e6, NULL, 0, "TIME",
     "of evaluation, per step on average"},
    {"checkpoint-seconds", SETTING_SECONDS, AT(checkpoint_seconds), 0, 1e6, NULL, 0, "TIME",
     "of checkpoints, per step on average"},
    {"fixed-seconds", SETTING_SECONDS, AT(fixed_seconds), 0, 1e6, NULL, 0, "TIME",
     "of anything else, per step"},
};
const int recipe_settings = sizeof(recipe_setting) / sizeof(*recipe_setting);

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

/* "--micro-batch", "micro_batch" and "micro-batch" are one key. */
bool recipe_same_key(const char *have, const char *given)
{
    while (*given == '-')
        given++;
    for (; *have && *given; have++, given++)
        if (*have != (*given == '_' ? '-' : *given))
            return false;
    return *have == *given;
}

static const struct setting *find(const char *key)
{
    for (int i = 0; i < recipe_settings; i++)
        if (recipe_same_key(recipe_setting[i].key, key))
            return &recipe_setting[i];
    return NULL;
}

static int unknown_key(const char *key, struct err *err)
{
    const char *names[sizeof(recipe_setting) / sizeof(*recipe_setting)];

    for (int i = 0; i < recipe_settings; i++)
        names[i] = recipe_setting[i].key;
    return recipe_word("setting", key, names, recipe_settings, err);
}

static int set_switch(bool *out, const char *key, const char *value, struct err *err)
{
    static const char *const word[] = {"off", "on"};
    int i = recipe_word(key, value, word, 2, err);

    *out = i == 1;
    return i < 0 ? -1 : 0;
}

int recipe_set(struct recipe *r, const char *key, const char *value, struct err *err)
{
    const struct setting *s = find(key);
    struct err why;
    int rc = 0;

    if (!s)
        return unknown_key(key, err);
    void *at = (char *)r + s->at;
    switch (s->kind) {
    case SETTING_INT:
        rc = units_int(at, value, (int)s->min, (int)s->max, &why);
        break;
    case SETTING_DOUBLE:
        rc = units_double(at, value, s->min, s->max, &why);
        break;
    case SETTING_SECONDS:
        rc = units_seconds(at, value, &why);
        break;
    case SETTING_SWITCH:
        return set_switch(at, s->key, value, err);
    case SETTING_WORD:
        *(int *)at = recipe_word(s->key, value, s->words, s->count, err);
        return *(int *)at < 0 ? -1 : 0;
    }
    return rc < 0 ? err_usage(err, "%s: %s", s->key, why.text) : 0;
}

char *recipe_get(char *buf, int size, const struct recipe *r, const struct setting *s)
{
    const void *at = (const char *)r + s->at;

    switch (s->kind) {
    case SETTING_INT:
        snprintf(buf, (size_t)size, "%d", *(const int *)at);
        break;
    case SETTING_SWITCH:
        snprintf(buf, (size_t)size, "%s", *(const bool *)at ? "on" : "off");
        break;
    case SETTING_WORD:
        snprintf(buf, (size_t)size, "%s",
                 *(const int *)at < 0 ? "any" : s->words[*(const int *)at]);
        break;
    default:
        snprintf(buf, (size_t)size, "%.9g", *(const double *)at);
    }
    return buf;
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
