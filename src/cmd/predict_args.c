/* predict_args.c - the options of railgauge predict. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_args.h"

#include <argp.h>
#include <errno.h>
#include <stddef.h>

#include "base/opt.h"
#include "base/units.h"

enum {
    FABRIC = 0x500,
    RACKS,
    LAYOUT,
    STRATEGY,
    SCHEDULE,
    STAGES,
    BATCH,
    MICRO,
    SEQ,
    DTYPE,
    MESH,
    ORDER,
    GPUS,
    RECOMPUTE,
    REDUCE,
    FLOPS,
    CONSTANTS,
    NONCAUSAL,
    JSON,
    EXPLAIN,
};

static const struct argp_option options[] = {
    {"model", 'm', "NAME", 0, "a model of jobs/training/models, or a file (default llama3.1-8b)",
     1},
    {"layout", LAYOUT, "AXES", 0,
     "pp, dp_replicate, dp_shard (or dp), cp, tp: \"dp_shard=8,tp=4,pp=2\"; one "
     "may be auto (default dp=auto)",
     1},
    {"strategy", STRATEGY, "NAME", 0, "ddp, zero1, zero2, zero3, fsdp, hsdp (default fsdp)", 1},
    {"gpus", GPUS, "N", 0, "ranks of the layout (default: all endpoints)", 1},
    {"fabric", FABRIC, "NAME", 0,
     "without a MATRIX: a preset of topo/fabrics; with one: whose GPU it has", 2},
    {"racks", RACKS, "N", 0, "racks of the preset (default: as many as the GPUs need)", 2},
    {"order", ORDER, "FILE", 0,
     "rank to endpoint: a hostfile, or an endpoint per line (default: in order)", 2},
    {"mesh-order", MESH, "NAME", 0, "megatron, torchtitan, tp-pp-dp (default megatron)", 2},
    {"flops", FLOPS, "RATE", 0, "FLOP/s that a device reaches, before preset and matrix: 400e12",
     2},
    {"constants", CONSTANTS, "FILE", 0, "instead of jobs/training/constants.json", 2},
    {"batch", BATCH, "N", 0,
     "sequences of a step (default: 1 microbatch a rank, 4 pp with a pipeline)", 3},
    {"micro-batch", MICRO, "N", 0, "sequences of a microbatch (default 1)", 3},
    {"seq", SEQ, "N", 0, "tokens of a sequence (default 8192)", 3},
    {"dtype", DTYPE, "NAME", 0, "fp32, bf16, fp8, nvfp4 (default bf16)", 3},
    {"reduce-dtype", REDUCE, "NAME", 0,
     "of gradients on the wire: fp32 or bf16 (default: the strategy's)", 3},
    {"recompute", RECOMPUTE, "NAME", 0, "none, selective, full (default none)", 3},
    {"schedule", SCHEDULE, "NAME", 0, "1f1b or interleaved (default 1f1b)", 3},
    {"stages-per-rank", STAGES, "V", 0, "model chunks a pipeline rank holds; implies interleaved",
     3},
    {"non-causal", NONCAUSAL, NULL, 0, "attention without a mask: twice its core", 3},
    {"explain", EXPLAIN, NULL, 0, "below each term: where its numbers are from, group, bytes", 4},
    {"json", JSON, NULL, 0, "print prediction.json instead of text", 4},
    {"output", 'o', "FILE", 0, "write prediction.json too", 4},
    {0},
};

static const char doc[] =
    "Predict the time of one training step.  MATRIX is a matrix.json of railgauge fit."
    "\vExamples:\n"
    "  railgauge predict --fabric gb200-nvl72 --model llama3.1-8b --layout dp_shard=72\n"
    "  railgauge predict matrix.json --model llama3.1-70b --layout tp=8,dp=auto --strategy zero1\n"
    "  railgauge predict --fabric hgx-h100 --model llama3.1-405b --dtype fp8 --strategy zero1 \\\n"
    "      --layout tp=8,pp=8,cp=2,dp=4 --stages-per-rank 8 --batch 256 --explain\n"
    "  railgauge predict matrix.json --layout tp=4,dp=auto --order hostfile --json\n\n"
    "Exit codes: 0 good, 2 could not judge (no compute rate, no curve), 64 usage, 65 bad data, 66 "
    "no input, "
    "74 I/O.";

/* Options that only store a value: where, and for words of a table which ones. */
static const struct {
    int key;
    enum { INT, TEXT, WORD } kind;
    size_t at;
    const char *what;
    const char *const *names;
    int count;
} stores[] = {
    {'m', TEXT, offsetof(struct predict_args, model), NULL, NULL, 0},
    {'o', TEXT, offsetof(struct predict_args, output), NULL, NULL, 0},
    {LAYOUT, TEXT, offsetof(struct predict_args, layout), NULL, NULL, 0},
    {FABRIC, TEXT, offsetof(struct predict_args, fabric), NULL, NULL, 0},
    {ORDER, TEXT, offsetof(struct predict_args, order), NULL, NULL, 0},
    {CONSTANTS, TEXT, offsetof(struct predict_args, constants), NULL, NULL, 0},
    {RACKS, INT, offsetof(struct predict_args, racks), NULL, NULL, 0},
    {GPUS, INT, offsetof(struct predict_args, gpus), NULL, NULL, 0},
    {BATCH, INT, offsetof(struct predict_args, recipe.global_batch), NULL, NULL, 0},
    {MICRO, INT, offsetof(struct predict_args, recipe.micro_batch), NULL, NULL, 0},
    {SEQ, INT, offsetof(struct predict_args, recipe.seq), NULL, NULL, 0},
    {STAGES, INT, offsetof(struct predict_args, recipe.stages), NULL, NULL, 0},
    {STRATEGY, WORD, offsetof(struct predict_args, strategy), "strategy", strategy_name,
     STRATEGY_COUNT},
    {SCHEDULE, WORD, offsetof(struct predict_args, schedule), "schedule", schedule_name,
     SCHEDULE_COUNT},
    {DTYPE, WORD, offsetof(struct predict_args, dtype), "dtype", dtype_name, DTYPE_COUNT},
    {RECOMPUTE, WORD, offsetof(struct predict_args, recompute), "recompute", recompute_name,
     RECOMPUTE_COUNT},
    {MESH, WORD, offsetof(struct predict_args, mesh), "mesh order", order_name, ORDER_COUNT},
    {REDUCE, WORD, offsetof(struct predict_args, reduce), "reduce dtype", dtype_name, 2},
};

/* 1: not one of the table. */
static int store(struct predict_args *a, int key, char *arg, struct err *err)
{
    for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
        if (stores[i].key != key)
            continue;
        void *at = (char *)a + stores[i].at;
        if (stores[i].kind == TEXT)
            *(const char **)at = arg;
        else if (stores[i].kind == INT)
            return units_int(at, arg, 1, 1 << 28, err);
        else
            *(int *)at = recipe_word(stores[i].what, arg, stores[i].names, stores[i].count, err);
        return stores[i].kind == WORD && *(int *)at < 0 ? -1 : 0;
    }
    return 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct predict_args *a = state->input;
    struct err err = {0, ""};
    int rc = 0;

    switch (key) {
    case FLOPS:
        rc = units_double(&a->flops, arg, 1, 1e20, &err);
        break;
    case NONCAUSAL:
        a->recipe.causal = false;
        break;
    case JSON:
        a->json = true;
        break;
    case EXPLAIN:
        a->explain = true;
        break;
    case ARGP_KEY_ARG:
        if (a->matrix)
            argp_error(state, "one matrix only, and \"%s\" is a second one", arg);
        a->matrix = arg;
        break;
    default:
        rc = store(a, key, arg, &err);
        if (rc == 1)
            return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

static void take_words(struct predict_args *a)
{
    struct recipe *r = &a->recipe;

    r->strategy = (enum strategy)a->strategy;
    r->dtype = (enum dtype)a->dtype;
    r->recompute = (enum recompute)a->recompute;
    r->schedule = a->schedule >= 0 ? (enum schedule)a->schedule
                  : r->stages > 1  ? SCHEDULE_INTERLEAVED
                                   : SCHEDULE_1F1B;
    if (a->reduce >= 0)
        r->grad_bytes = a->reduce == DTYPE_FP32 ? 4 : 2;
}

void predict_args(struct predict_args *a, int argc, char **argv)
{
    const struct argp argp = {options, parse, "[MATRIX]", doc, NULL, NULL, NULL};

    *a = (struct predict_args){.model = "llama3.1-8b",
                               .strategy = STRATEGY_FSDP,
                               .schedule = -1,
                               .dtype = DTYPE_BF16,
                               .recompute = RECOMPUTE_NONE,
                               .mesh = ORDER_MEGATRON,
                               .reduce = -1};
    recipe_defaults(&a->recipe);
    argp_parse(&argp, argc, argv, 0, NULL, a);
    take_words(a);
}
