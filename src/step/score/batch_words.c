/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/batch_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct metric metrics[] = {
    {"step_time", METRIC_SECONDS, "s", 1, NULL},
    {"step_time", METRIC_SECONDS, "s/it", 1, NULL},
    {"step_time", METRIC_SECONDS, "ms", 1e-3, NULL},
    {"step_time", METRIC_SECONDS, "min", 60, NULL},
    {"step_time", METRIC_SECONDS, "", 1, NULL},
    {"tps_per_gpu", METRIC_TOKENS, NULL, 1, NULL},
    {"tflops_per_gpu", METRIC_FLOPS, "TFLOP/s/GPU", 1e12, NULL},
    {"tflops_per_gpu", METRIC_FLOPS, "PFLOP/s/GPU", 1e15, NULL},
    {"time_to_train", METRIC_CLAIM, NULL, 0, "a whole run: how many steps it took is not stated"},
    {"wall_time_36_steps", METRIC_CLAIM, NULL, 0, "a whole run, with evaluation and checkpoints"},
    {"projected_time", METRIC_CLAIM, NULL, 0, "what another calculator said of a whole run"},
    {"step_time_claim", METRIC_CLAIM, NULL, 0, "a remark about a run, not a measurement"},
    {"allgather_per_layer_claim", METRIC_CLAIM, NULL, 0, "bytes, not a time"},
    {"oom", METRIC_CLAIM, NULL, 0, "whether it fits, not a time"},
    {"speedup_vs_H100", METRIC_CLAIM, NULL, 0, "a ratio of two steps"},
    {"scaling_eff", METRIC_CLAIM, NULL, 0, "a ratio of two steps"},
    {"scaling_eff_vs_64", METRIC_CLAIM, NULL, 0, "a ratio of two steps"},
    {"gain_block_vs_nonaligned", METRIC_CLAIM, NULL, 0, "a ratio of two placements"},
    {"regression_if_split_over_2_racks", METRIC_CLAIM, NULL, 0, "a ratio of two placements"},
};

/* Units end at a space: "tok/s/GPU (median)". */
static bool same_unit(const char *want, const char *unit)
{
    size_t n = strcspn(unit, " ");

    return !want || (strlen(want) == n && !strncmp(want, unit, n));
}

const struct metric *batch_metric(const char *name, const char *unit, struct err *err)
{
    bool known = false;

    if (!*name)
        name = "step_time";
    for (size_t i = 0; i < COUNT(metrics); i++) {
        if (strcmp(metrics[i].name, name) != 0)
            continue;
        known = true;
        if (same_unit(metrics[i].unit, unit))
            return &metrics[i];
    }
    if (known)
        err_set(err, "unit \"%s\" of metric %s is not known", unit, name);
    else
        err_set(err, "metric \"%s\" is not known", name);
    return NULL;
}

const char *batch_cell(const struct tsv *t, int row, const char *column)
{
    int i = tsv_find(t, column);

    return i < 0 ? "" : t->row[row].cell[i];
}

void batch_remark(struct batch_row *r, const char *fmt, ...)
{
    size_t used = strlen(r->reason);
    va_list ap;

    if (used && used + 2 < sizeof(r->reason)) {
        memcpy(r->reason + used, "; ", 3);
        used += 2;
    }
    va_start(ap, fmt);
    vsnprintf(r->reason + used, sizeof(r->reason) - used, fmt, ap);
    va_end(ap);
}

enum how { IS, BEGINS, HAS };

/* From top to bottom; all that match apply, later ones override.  "mesh" is no setting of recipe.h
 * but an order of layout.h, "odd" a machine unlike its kind. */
static const struct rule {
    const char *column;
    enum how how;
    const char *text, *settings, *remark;
} rules[] = {
    /* software: who ran it decides kernels, rank order and habits */
    {"source", HAS, "torchtitan", "stack=torchtitan mesh=torchtitan", NULL},
    {"source", HAS, "Nutanix", "stack=hf", NULL},
    {"source", HAS, "Zoom", "stack=hf", NULL},
    {"source", HAS, "Selene", "sequence-parallel=off tp-overlap=off", NULL}, /* before they were */

    {"dtype", BEGINS, "bf16", "dtype=bf16", NULL},
    {"dtype", IS, "bf16?", "dtype=bf16", "dtype is not stated: bf16 is assumed"},
    {"dtype", BEGINS, "fp16", "dtype=bf16", NULL}, /* the same rate on tensor cores */
    {"dtype", BEGINS, "fp32", "dtype=fp32", NULL},
    {"dtype", BEGINS, "fp8", "dtype=fp8", NULL},
    {"dtype", BEGINS, "mxfp8", "dtype=mxfp8", NULL},
    {"dtype", IS, "fp8-mx", "dtype=mxfp8", NULL},
    {"dtype", BEGINS, "nvfp4", "dtype=nvfp4", NULL},
    {"dtype", HAS, "eager", "stack=eager", NULL},
    /* submit_8b.sh there sources config_DGXB200_8x8x1xtp1pp1cp1_8b_fp4.sh */
    {"source", HAS, "CoreWeave_B200_8x8/llama31_8b", "dtype=nvfp4", NULL},

    {"zero_stage/fsdp", IS, "none", "strategy=ddp", NULL},
    {"zero_stage/fsdp", BEGINS, "DDP", "strategy=ddp", NULL},
    {"zero_stage/fsdp", HAS, "ZeRO-1", "strategy=zero1", NULL},
    {"zero_stage/fsdp", HAS, "dist-opt", "strategy=zero1", NULL},
    {"zero_stage/fsdp", HAS, "ZeRO-2", "strategy=zero2", NULL},
    {"zero_stage/fsdp", HAS, "ZeRO-3", "strategy=zero3", NULL},
    {"zero_stage/fsdp", HAS, "FSDP", "strategy=fsdp", NULL},
    {"zero_stage/fsdp", HAS, "HSDP", "strategy=hsdp", NULL},
    {"zero_stage/fsdp", BEGINS, "FSDP-", "grad-bytes=2", NULL}, /* Megatron-FSDP: bf16 gradients */
    {"zero_stage/fsdp", HAS, "no reshard", "reshard=off", NULL},
    {"zero_stage/fsdp", BEGINS, "unknown", "strategy=zero1",
     "sharding is not stated: zero1 is assumed"},
    {"zero_stage/fsdp", IS, "", "strategy=zero1", "sharding is not stated: zero1 is assumed"},

    {"recompute", IS, "none", "recompute=none", NULL},
    {"recompute", IS, "recipe default", NULL, NULL},
    {"recompute", BEGINS, "selective", "recompute=selective", NULL},
    {"recompute", BEGINS, "full", "recompute=full", NULL},
    {"recompute", HAS, "+SP", "sequence-parallel=on", NULL},
    {"recompute", BEGINS, "unknown", NULL, "recompute is not stated"},

    {"notes", HAS, "LoRA", "lora=attention", NULL},
    {"notes", HAS, "LoRA r=32", "lora-rank=32", NULL},
    {"notes", HAS, "w/ MTP", "mtp=on", NULL},
    {"notes", HAS, "w/o MTP", "mtp=off", NULL},
    {"notes", HAS, "vanilla TP", "tp-overlap=off", NULL},
    {"notes", HAS, "async TP", "tp-overlap=on", NULL},
    {"notes", HAS, "float8 all-gather", "weight-bytes=1", NULL},
    {"notes", HAS, "GPU inferred", NULL, "the GPU is not named by the source"},
    {"notes", HAS, "power limited", "odd=power", "the GPUs had less power than the data sheet's"},
};

/* What "recipe default" stands for: NVIDIA-NeMo/Megatron-Bridge at 067f987,
 * src/megatron/bridge/perf_recipes/MODEL/GPU (moe_flex_dispatcher_backend,
 * overlap_moe_expert_parallel_comm) and recipes/deepseek (mtp_num_layers = 1).  That multi-token
 * prediction is trained is also what the printed FLOP/s over tokens/s say: 260 GFLOP a token of
 * DeepSeek-V3, of which 10 are its.  hardware and dtype: words of a list, "" any; words of the
 * rules come after and override. */
static const struct habit {
    const char *source, *model, *hardware, *dtype, *settings;
} habits[] = {
    {"Megatron-Bridge", "deepseek-v3", "", "", "mtp=on dispatch=kernel"},
    {"Megatron-Bridge", "deepseek-v3", "B200", "mxfp8 nvfp4", "ep-overlap=on"},
    {"Megatron-Bridge", "nemotron_3_super", "", "", "mtp=on dispatch=kernel"},
    {"Megatron-Bridge", "nemotron_3_ultra", "", "", "mtp=on dispatch=kernel"},
    {"Megatron-Bridge", "nemotron_3_5_lightning", "", "", "mtp=on dispatch=kernel"},
    {"Megatron-Bridge", "nemotron_3_nano", "", "", "dispatch=kernel"},
    {"Megatron-Bridge", "qwen3-30b-a3b", "", "", "dispatch=kernel"},
    {"Megatron-Bridge", "qwen3-30b-a3b", "H100", "bf16", "ep-overlap=on"},
    {"Megatron-Bridge", "qwen3-30b-a3b", "B200", "mxfp8", "ep-overlap=on"},
    {"Megatron-Bridge", "qwen3-235b-a22b", "B300 GB200 GB300", "", "dispatch=kernel"},
    {"Megatron-Bridge", "qwen3-235b-a22b", "H100", "", "ep-overlap=on"},
    {"Megatron-Bridge", "gpt-oss-120b", "B300", "", "dispatch=kernel"},
    {"Megatron-Bridge", "gpt-oss-120b", "GB200 GB300", "mxfp8", "dispatch=kernel"},
    {"Megatron-Bridge", "gpt-oss-120b", "GB200 GB300", "", "ep-overlap=on"},
    {"Megatron-Bridge", "kimi-k2", "GB200 GB300", "", "dispatch=kernel"},
    /* MLPerf Training v6.0, NVIDIA and CoreWeave, config_*.sh and conf/: HybridEP,
     * OVERLAP_MOE_EXPERT_PARALLEL_COMM, mtp_num_layers 1; gpt_oss.yaml: cp_comm_type a2a */
    {"training_results_v6.0", "deepseek-v3", "", "", "mtp=on dispatch=kernel ep-overlap=on"},
    {"training_results_v6.0", "gpt-oss-20b", "", "", "dispatch=kernel context=ulysses"},
    /* models/llama3: activation checkpointing of llama3_8b is selective, per operation */
    {"torchtitan@", "llama3.1-8b", "", "", "recompute=selective"},
    /* 3.3.2: keys and values are gathered */
    {"Llama 3 paper", "llama3.1-405b", "", "", "context=gather"},
};

/* Columns whose words should be understood, and what is assumed when they are not; NULL: nothing
 * can be. */
static const struct {
    const char *column, *settings;
} understood[] = {
    {"dtype", NULL},
    {"zero_stage/fsdp", "strategy=zero1"},
    {"recompute", "recompute=none"},
};

static bool matches(const struct rule *rule, const char *cell)
{
    switch (rule->how) {
    case IS:
        return !strcmp(cell, rule->text);
    case BEGINS:
        return !strncmp(cell, rule->text, strlen(rule->text));
    default:
        return strstr(cell, rule->text) != NULL;
    }
}

/* "key=value key=value" */
static int set_all(struct batch_row *r, const char *settings, struct err *err)
{
    char text[128], *save = NULL;

    snprintf(text, sizeof(text), "%s", settings);
    for (char *one = strtok_r(text, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
        char *value = strchr(one, '=');
        *value++ = '\0';
        if (!strcmp(one, "odd")) {
            r->odd = true;
        } else if (strcmp(one, "mesh") != 0) {
            if (recipe_set(&r->recipe, one, value, err) < 0)
                return -1;
        } else if ((r->mesh = recipe_word("mesh order", value, order_name, ORDER_COUNT, err)) < 0) {
            return -1;
        }
    }
    return 0;
}

static bool is_known(const char *column, const char *cell)
{
    bool known = !*cell;

    for (size_t k = 0; k < COUNT(rules) && !known; k++)
        known = !strcmp(rules[k].column, column) && matches(&rules[k], cell);
    return known;
}

static int assume(struct batch_row *r, const struct tsv *t, int at, struct err *err)
{
    for (size_t i = 0; i < COUNT(understood); i++) {
        const char *cell = batch_cell(t, at, understood[i].column);
        if (is_known(understood[i].column, cell))
            continue;
        if (!understood[i].settings)
            return err_set(err, "%s \"%s\" is not known", understood[i].column, cell);
        batch_remark(r, "%s \"%s\" is not known: %s is assumed", understood[i].column, cell,
                     understood[i].settings);
        if (set_all(r, understood[i].settings, err) < 0)
            return -1;
    }
    return 0;
}

/* "ETP 4" or "etp=4" anywhere in the notes. */
static int etp_of(const char *notes)
{
    static const char *const before[] = {"ETP ", "etp="};

    for (size_t i = 0; i < COUNT(before); i++) {
        const char *found = strstr(notes, before[i]);
        if (found)
            return (int)strtol(found + strlen(before[i]), NULL, 10);
    }
    return 0;
}

/* Is `word` one of a list; "" holds all. */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return !*list;
}

static int set_habits(struct batch_row *r, struct err *err)
{
    for (size_t i = 0; i < COUNT(habits); i++) {
        const struct habit *h = &habits[i];
        if (strstr(r->source, h->source) && !strcmp(r->model, h->model) &&
            listed(h->hardware, r->hardware) && listed(h->dtype, r->dtype) &&
            set_all(r, h->settings, err) < 0)
            return -1;
    }
    return 0;
}

int batch_words(struct batch_row *r, const struct tsv *t, int at, struct err *err)
{
    if (assume(r, t, at, err) < 0 || set_habits(r, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(rules); i++) {
        const struct rule *rule = &rules[i];
        if (!matches(rule, batch_cell(t, at, rule->column)))
            continue;
        if (rule->remark)
            batch_remark(r, "%s", rule->remark);
        if (rule->settings && set_all(r, rule->settings, err) < 0)
            return -1;
    }
    r->etp = etp_of(batch_cell(t, at, "notes"));
    r->other_dtype = batch_other_dtype(r->dtype);
    return 0;
}
