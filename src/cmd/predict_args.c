/* predict_args.c - the options of railgauge predict. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_args.h"

#include <argp.h>
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/opt.h"
#include "base/units.h"

enum {
    FABRIC = 0x500,
    RACKS,
    LAYOUT,
    MESH,
    ORDER,
    GPUS,
    FLOPS,
    CONSTANTS,
    JSON,
    EXPLAIN,
    SETTING = 0x600, /* and those after it: rows of recipe_setting */
};

static const struct argp_option own_options[] = {
    {"model", 'm', "NAME", 0, "a model of jobs/training/models, or a file (default llama3.1-8b)",
     1},
    {"layout", LAYOUT, "AXES", 0,
     "pp, dp_replicate, dp_shard (or dp), cp, tp, ep, etp: \"dp_shard=8,tp=4,pp=2\"; one may be "
     "auto (default dp=auto)",
     1},
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
    {"explain", EXPLAIN, NULL, 0, "below each term: where its numbers are from, group, bytes", 5},
    {"json", JSON, NULL, 0, "print prediction.json instead of text", 5},
    {"output", 'o', "FILE", 0, "write prediction.json too", 5},
};
enum { OWN = sizeof(own_options) / sizeof(*own_options), OPTIONS_MAX = 64 };
static struct argp_option options[OPTIONS_MAX]; /* own_options, recipe_setting, an empty one */

static void fill_options(void)
{
    assert(OWN + recipe_settings < OPTIONS_MAX);
    memcpy(options, own_options, sizeof(own_options));
    for (int i = 0; i < recipe_settings; i++) {
        const struct setting *s = &recipe_setting[i];
        options[OWN + i] = (struct argp_option){s->key, SETTING + i, s->arg, 0, s->help, 3};
    }
}

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
    {MESH, WORD, offsetof(struct predict_args, mesh), "mesh order", order_name, ORDER_COUNT},
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
        if (key >= SETTING && key < SETTING + recipe_settings) {
            if (recipe_set(&a->recipe, recipe_setting[key - SETTING].key, arg, &err) < 0)
                argp_error(state, "--%s", err.text); /* the text begins with the key */
            break;
        }
        rc = store(a, key, arg, &err);
        if (rc == 1)
            return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

void predict_args(struct predict_args *a, int argc, char **argv)
{
    const struct argp argp = {options, parse, "[MATRIX]", doc, NULL, NULL, NULL};

    *a = (struct predict_args){.model = "llama3.1-8b", .mesh = ORDER_MEGATRON};
    recipe_defaults(&a->recipe);
    fill_options();
    argp_parse(&argp, argc, argv, 0, NULL, a);
}
