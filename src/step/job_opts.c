/* SPDX-License-Identifier: BSD-3-Clause */
/* job_opts.c - the words that say which job, as options and as keys of files. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/units.h"
#include "step/job.h"

enum { FIRST = 0x500, OPTIONS_MAX = 80, COUNT_MAX = 1 << 28 };

#define AT(field) offsetof(struct job_opts, field)

const struct job_setting job_setting[] = {
    {"model", 'm', JOB_TEXT, AT(model), NULL, 0, 1, "NAME",
     "a model of jobs/training/models, or a file (default llama3.1-8b)"},
    {"layout", 0, JOB_TEXT, AT(layout), NULL, 0, 1, "AXES",
     "pp, dp_replicate, dp_shard (or dp), cp, tp, ep, etp: \"dp_shard=8,tp=4,pp=2\"; one may be "
     "auto (default dp=auto)"},
    {"gpus", 0, JOB_INT, AT(gpus), NULL, 0, 1, "N", "ranks of the layout (default: all endpoints)"},
    {"accumulation", 0, JOB_INT, AT(accumulation), NULL, 0, 1, "N",
     "microbatches of a step: the batch is N x micro batch x data-parallel ranks"},
    {"fabric", 0, JOB_TEXT, AT(fabric), NULL, 0, 2, "NAME",
     "without a MATRIX: a preset of topo/fabrics; with one: whose GPU it has"},
    {"racks", 0, JOB_INT, AT(racks), NULL, 0, 2, "N",
     "racks of the preset (default: as many as the GPUs need)"},
    {"order", 0, JOB_TEXT, AT(place.order), NULL, 0, 2, "FILE",
     "rank to endpoint: a hostfile, or an endpoint per line (default: in order)"},
    {"nodes", 0, JOB_TEXT, AT(place.nodes), NULL, 0, 2, "LIST",
     "ranks fill these nodes in turn: \"r00n[00-15],r01n03\" (default: the first of the matrix)"},
    {"segment", 0, JOB_INT, AT(place.segment), NULL, 0, 2, "N",
     "N nodes of a rack, then N of the next, round the racks: the widest spread that srun "
     "--segment=N allows"},
    {"spread", 0, JOB_WORD, AT(place.spread), spread_name, SPREAD_COUNT, 2, "NAME",
     "how ranks are dealt over the nodes, as srun --distribution: block, cyclic (default block)"},
    {"mesh-order", 0, JOB_WORD, AT(mesh), order_name, ORDER_COUNT, 2, "NAME",
     "megatron, torchtitan, tp-pp-dp (default megatron)"},
    {"flops", 0, JOB_RATE, AT(flops), NULL, 0, 2, "RATE",
     "FLOP/s that a device reaches, before preset and matrix: 400e12"},
    {"constants", 0, JOB_TEXT, AT(constants), NULL, 0, 2, "FILE",
     "instead of jobs/training/constants.json"},
};
const int job_settings = sizeof(job_setting) / sizeof(*job_setting);

static int set(struct job_opts *o, const struct job_setting *s, const char *value, struct err *err)
{
    void *at = (char *)o + s->at;
    struct err why;
    int rc = 0;

    switch (s->kind) {
    case JOB_TEXT:
        *(const char **)at = value;
        break;
    case JOB_INT:
        rc = units_int(at, value, 1, COUNT_MAX, &why);
        break;
    case JOB_RATE:
        rc = units_double(at, value, 1, 1e20, &why);
        break;
    case JOB_WORD:
        *(int *)at = recipe_word(s->key, value, s->words, s->count, err);
        return *(int *)at < 0 ? -1 : 0;
    }
    return rc < 0 ? err_usage(err, "%s: %s", s->key, why.text) : 0;
}

int job_set(struct job_opts *o, const char *key, const char *value, struct err *err)
{
    const char *known[OPTIONS_MAX];

    for (int i = 0; i < job_settings; i++)
        if (recipe_same_key(job_setting[i].key, key))
            return set(o, &job_setting[i], value, err);
    for (int i = 0; i < recipe_settings; i++)
        if (recipe_same_key(recipe_setting[i].key, key))
            return recipe_set(&o->recipe, key, value, err);
    for (int i = 0; i < job_settings; i++)
        known[i] = job_setting[i].key;
    for (int i = 0; i < recipe_settings; i++)
        known[job_settings + i] = recipe_setting[i].key;
    return recipe_word("setting", key, known, job_settings + recipe_settings, err);
}

static struct argp_option options[OPTIONS_MAX]; /* both tables, and an empty one */

static void fill_options(void)
{
    assert(job_settings + recipe_settings < OPTIONS_MAX);
    for (int i = 0; i < job_settings; i++) {
        const struct job_setting *s = &job_setting[i];
        options[i] = (struct argp_option){
            s->key, s->letter ? s->letter : FIRST + i, s->arg, 0, s->help, s->group};
    }
    for (int i = 0; i < recipe_settings; i++) {
        const struct setting *s = &recipe_setting[i];
        int at = job_settings + i;
        options[at] = (struct argp_option){s->key, FIRST + at, s->arg, 0, s->help, 3};
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct job_opts *o = state->input;
    struct err err = {0, ""};

    if (key == ARGP_KEY_ARG) {
        if (o->matrix) {
            argp_error(state, "one matrix at a time: \"%s\" after \"%s\"", arg, o->matrix);
            return EINVAL;
        }
        o->matrix = arg;
        return 0;
    }
    for (int i = 0; i < job_settings + recipe_settings; i++) {
        if (options[i].key != key)
            continue;
        if (job_set(o, options[i].name, arg, &err) == 0)
            return 0;
        argp_error(state, "--%s", err.text); /* the text begins with the key */
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
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
