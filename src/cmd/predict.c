/* predict.c - railgauge predict: the step time of a model with a layout on a fabric. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/predict_text.h"
#include "step/placement.h"

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

struct args {
    const char *matrix, *fabric, *model, *layout, *order, *constants, *output;
    enum mesh_order mesh;
    int racks, gpus;
    double flops;
    bool json, explain;
    struct recipe recipe;
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

/* Options whose value is one word of a table. */
static const struct {
    int key;
    const char *what;
    const char *const *names;
    int count;
} words[] = {
    {STRATEGY, "strategy", strategy_name, STRATEGY_COUNT},
    {SCHEDULE, "schedule", schedule_name, SCHEDULE_COUNT},
    {DTYPE, "dtype", dtype_name, DTYPE_COUNT},
    {RECOMPUTE, "recompute", recompute_name, RECOMPUTE_COUNT},
    {MESH, "mesh order", order_name, ORDER_COUNT},
    {REDUCE, "reduce dtype", dtype_name, 2},
};

static int parse_word(struct args *a, int key, const char *arg, struct err *err)
{
    struct recipe *r = &a->recipe;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (words[i].key != key)
            continue;
        int w = recipe_word(words[i].what, arg, words[i].names, words[i].count, err);
        if (w < 0)
            return -1;
        switch (key) {
        case STRATEGY:
            r->strategy = (enum strategy)w;
            break;
        case SCHEDULE:
            r->schedule = (enum schedule)w;
            break;
        case DTYPE:
            r->dtype = (enum dtype)w;
            break;
        case RECOMPUTE:
            r->recompute = (enum recompute)w;
            break;
        case MESH:
            a->mesh = (enum mesh_order)w;
            break;
        default:
            r->grad_bytes = w == DTYPE_FP32 ? 4 : 2;
        }
    }
    return 0;
}

static int *int_option(struct args *a, int key)
{
    switch (key) {
    case RACKS:
        return &a->racks;
    case GPUS:
        return &a->gpus;
    case BATCH:
        return &a->recipe.global_batch;
    case MICRO:
        return &a->recipe.micro_batch;
    case SEQ:
        return &a->recipe.seq;
    case STAGES:
        return &a->recipe.stages;
    default:
        return NULL;
    }
}

static const char **text_option(struct args *a, int key)
{
    switch (key) {
    case 'm':
        return &a->model;
    case 'o':
        return &a->output;
    case LAYOUT:
        return &a->layout;
    case FABRIC:
        return &a->fabric;
    case ORDER:
        return &a->order;
    case CONSTANTS:
        return &a->constants;
    default:
        return NULL;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err = {0, ""};
    int *number = int_option(a, key), rc = 0;
    const char **text = text_option(a, key);

    if (number)
        rc = units_int(number, arg, 1, 1 << 28, &err);
    else if (text)
        *text = arg;
    else if (key == FLOPS)
        rc = units_double(&a->flops, arg, 1, 1e20, &err);
    else if (key == NONCAUSAL)
        a->recipe.causal = false;
    else if (key == JSON)
        a->json = true;
    else if (key == EXPLAIN)
        a->explain = true;
    else if (key == ARGP_KEY_ARG && !a->matrix)
        a->matrix = arg;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "one matrix only, and \"%s\" is a second one", arg);
    else if (arg && key > 0)
        rc = parse_word(a, key, arg, &err);
    else
        return ARGP_ERR_UNKNOWN;
    if (key == STAGES && a->recipe.stages > 1)
        a->recipe.schedule = SCHEDULE_INTERLEAVED;
    if (rc < 0)
        argp_error(state, "%s", err.text);
    return rc < 0 ? EINVAL : 0;
}

/* Everything that a question points to. */
struct asked {
    struct matrix matrix;
    struct fabric fabric;
    struct model model;
    struct constants constants;
    struct layout layout;
    int *order;
};

static int racks_for(const struct fabric *f, const struct args *a, int ranks)
{
    int per = f->gpus_per_host * (f->hosts_per_rack > 0 ? f->hosts_per_rack : 1);

    return a->racks ? a->racks : ranks > 0 ? (ranks + per - 1) / per : 0;
}

/* Ranks that the layout's text fixes; 0 when it leaves an axis open or is not given. */
static int ranks_of(const struct args *a)
{
    struct layout l;

    if (a->gpus || !a->layout)
        return a->gpus;
    return layout_parse(&l, a->layout, a->recipe.strategy, a->mesh, 0, NULL) < 0 ? 0 : l.ranks;
}

static int open_matrix(struct asked *s, const struct args *a, struct err *err)
{
    if (!a->matrix && !a->fabric)
        return err_usage(err, "neither MATRIX nor --fabric is given");
    if (a->matrix && a->racks)
        return err_usage(err, "--racks belongs to a preset, and %s has its own", a->matrix);
    if (a->matrix && matrix_load(&s->matrix, a->matrix, err) < 0)
        return -1;
    const char *name = a->fabric ? a->fabric : s->matrix.fabric;
    if (name && fabric_load(&s->fabric, name, err) < 0)
        return -1;
    if (!a->matrix &&
        matrix_from_fabric(&s->matrix, &s->fabric, racks_for(&s->fabric, a, ranks_of(a)), err) < 0)
        return -1;
    if (a->flops > 0) {
        free(s->matrix.compute.source);
        s->matrix.compute.source = strdup("FLOP/s as given with --flops");
        s->matrix.compute.flops = a->flops;
    }
    return 0;
}

static int open_layout(struct asked *s, struct args *a, struct err *err)
{
    int ranks = s->matrix.topo.endpoints, given = 0;

    if (a->order && placement_load(&s->order, &given, &s->matrix.topo, a->order, err) < 0)
        return -1;
    if (a->order)
        ranks = given;
    const char *text = a->layout ? a->layout : "dp=auto";
    int want = a->gpus ? a->gpus : strstr(text, "auto") ? ranks : 0;
    if (layout_parse(&s->layout, text, a->recipe.strategy, a->mesh, want, err) < 0)
        return -1;
    if (a->order && s->layout.ranks > given)
        return err_usage(err, "the layout needs %d ranks and %s places %d", s->layout.ranks,
                         a->order, given);
    return layout_check(&s->layout, &s->model, &a->recipe, err);
}

static int answer(const struct asked *s, const struct args *a, struct err *err)
{
    struct question q = {&s->matrix,   s->fabric.name ? &s->fabric : NULL,
                         &s->model,    &s->layout,
                         &a->recipe,   s->order,
                         &s->constants};
    struct prediction p;
    int rc = predict_step(&p, &q, err);

    if (rc == 0) {
        json_t *json = predict_json(&p, &s->matrix);
        if (a->json) {
            json_dumpf(json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
            putchar('\n');
        } else {
            predict_text(stdout, &p, &s->matrix, &a->recipe, a->explain);
        }
        if (a->output)
            rc = json_save(json, a->output, err);
        json_decref(json);
    }
    prediction_free(&p);
    return rc;
}

int cmd_predict(int argc, char **argv)
{
    struct args a = {.model = "llama3.1-8b"};
    const struct argp argp = {options, parse, "[MATRIX]", doc, NULL, NULL, NULL};
    struct asked s = {0};
    struct err err = {0, ""};

    recipe_defaults(&a.recipe);
    matrix_init(&s.matrix);
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int rc = model_load(&s.model, a.model, &err) < 0 ||
             constants_load(&s.constants, a.constants, &err) < 0 || open_matrix(&s, &a, &err) < 0 ||
             open_layout(&s, &a, &err) < 0 || answer(&s, &a, &err) < 0;
    free(s.order);
    matrix_free(&s.matrix);
    fabric_free(&s.fabric);
    model_free(&s.model);
    constants_free(&s.constants);
    return rc ? cmd_fail("predict", &err) : EXIT_GOOD;
}
