/* SPDX-License-Identifier: BSD-3-Clause */
/* job_opts.c - the options that say which job. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/opt.h"
#include "base/units.h"
#include "step/job.h"

enum {
    FABRIC = 0x500,
    RACKS,
    LAYOUT,
    MESH,
    ORDER,
    GPUS,
    FLOPS,
    CONSTANTS,
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

/* Options that only store a value: where, and for words of a table which ones. */
static const struct {
    int key;
    enum { INT, TEXT, WORD } kind;
    size_t at;
    const char *what;
    const char *const *names;
    int count;
} stores[] = {
    {'m', TEXT, offsetof(struct job_opts, model), NULL, NULL, 0},
    {LAYOUT, TEXT, offsetof(struct job_opts, layout), NULL, NULL, 0},
    {FABRIC, TEXT, offsetof(struct job_opts, fabric), NULL, NULL, 0},
    {ORDER, TEXT, offsetof(struct job_opts, order), NULL, NULL, 0},
    {CONSTANTS, TEXT, offsetof(struct job_opts, constants), NULL, NULL, 0},
    {RACKS, INT, offsetof(struct job_opts, racks), NULL, NULL, 0},
    {GPUS, INT, offsetof(struct job_opts, gpus), NULL, NULL, 0},
    {MESH, WORD, offsetof(struct job_opts, mesh), "mesh order", order_name, ORDER_COUNT},
};

/* 1: not one of the table. */
static int store(struct job_opts *a, int key, char *arg, struct err *err)
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
    struct job_opts *o = state->input;
    struct err err = {0, ""};
    int rc = 0;

    if (key == ARGP_KEY_ARG) {
        if (o->matrix) {
            argp_error(state, "one matrix only, and \"%s\" is a second one", arg);
            return EINVAL;
        }
        o->matrix = arg;
        return 0;
    }
    if (key >= SETTING && key < SETTING + recipe_settings) {
        if (recipe_set(&o->recipe, recipe_setting[key - SETTING].key, arg, &err) == 0)
            return 0;
        argp_error(state, "--%s", err.text); /* the text begins with the key */
        return EINVAL;
    }
    if (key == FLOPS)
        rc = units_double(&o->flops, arg, 1, 1e20, &err);
    else
        rc = store(o, key, arg, &err);
    if (rc == 1)
        return ARGP_ERR_UNKNOWN;
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

void job_defaults(struct job_opts *o)
{
    *o = (struct job_opts){.model = "llama3.1-8b", .mesh = ORDER_MEGATRON};
    recipe_defaults(&o->recipe);
}

struct argp_child job_child(int group)
{
    static const struct argp argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

    fill_options();
    return (struct argp_child){&argp, 0, NULL, group};
}
