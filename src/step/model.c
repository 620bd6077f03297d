/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/model.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

enum { MODEL_DIM_MAX = 1 << 24, MODEL_LAYERS_MAX = 100000 };

/* "gqa", "mla", "csa", "mamba2", "none" */
static const char *const mixer_name[MIXER_COUNT] = {"gqa", "mla", "csa", "mamba2", "none"};
const char *const mlp_name[MLP_COUNT] = {"swiglu", "plain", "none"};

/* A key beside "kind": the kinds it applies to, and whether it is optional.  All are integers of
 * 1..MODEL_DIM_MAX except "bias", a boolean. */
struct field {
    const char *key;
    size_t offset;
    unsigned kinds; /* bit mask of kinds */
    bool optional;
};

enum {
    GQA = 1 << MIXER_GQA,
    MLA = 1 << MIXER_MLA,
    CSA = 1 << MIXER_CSA,
    MAMBA2 = 1 << MIXER_MAMBA2,
};
enum { WIDE = 1 << MLP_SWIGLU | 1 << MLP_PLAIN };

#define OF(member) offsetof(struct attention, member)
static const struct field attention_field[] = {
    {"heads", OF(heads), GQA | MLA | CSA | MAMBA2, false},
    {"kv_heads", OF(kv_heads), GQA, false},
    {"head_dim", OF(head_dim), GQA | CSA | MAMBA2, false},
    {"window", OF(window), GQA | MLA, true},
    {"window", OF(window), CSA, false},
    {"q_rank", OF(q_rank), MLA, true},
    {"q_rank", OF(q_rank), CSA, false},
    {"o_rank", OF(o_rank), CSA, false},
    {"o_groups", OF(o_groups), CSA, false},
    {"ratio", OF(ratio), CSA, true},
    {"index_heads", OF(index_heads), CSA, true},
    {"index_dim", OF(index_dim), CSA, true},
    {"index_topk", OF(index_topk), CSA, true},
    {"kv_rank", OF(kv_rank), MLA, false},
    {"nope_dim", OF(nope_dim), MLA, false},
    {"rope_dim", OF(rope_dim), MLA, false},
    {"v_dim", OF(v_dim), MLA, false},
    {"state", OF(state), MAMBA2, false},
    {"groups", OF(groups), MAMBA2, false},
    {"conv", OF(conv), MAMBA2, false},
    {"bias", OF(bias), GQA | MLA | MAMBA2, true},
};
#undef OF

#define OF(member) offsetof(struct mlp, member)
static const struct field mlp_field[] = {
    {"ffn", OF(ffn), WIDE, false},
    {"experts", OF(experts), WIDE, true},
    {"topk", OF(topk), WIDE, true},
    {"shared_ffn", OF(shared_ffn), WIDE, true},
    {"latent", OF(latent), WIDE, true},
    {"groups", OF(groups), WIDE, true},
    {"nodes_max", OF(nodes_max), WIDE, true},
    {"bias", OF(bias), WIDE, true},
};
#undef OF

/* The kinds of one part of a layer, and their keys. */
struct layer_part {
    const char *const *kind;
    int kinds;
    const struct field *field;
    int fields;
};

static const struct layer_part attention_part = {
    mixer_name, MIXER_COUNT, attention_field, sizeof(attention_field) / sizeof(*attention_field)};
static const struct layer_part mlp_part = {mlp_name, MLP_COUNT, mlp_field,
                                           sizeof(mlp_field) / sizeof(*mlp_field)};

/* Read an integer of an object, 1..max. */
static int read_int(json_t *object, const char *where, const char *key, int max, int *out,
                    struct err *err)
{
    double x = 0;

    if (json_number(object, where, key, 1, max, 0, &x, err) < 0)
        return -1;
    if (x != floor(x))
        return err_data(err, "%s: \"%s\" is %.10g, not a whole number", where, key, x);
    *out = (int)x;
    return 0;
}

static int read_bool(json_t *object, const char *where, const char *key, bool *out, struct err *err)
{
    json_t *v = json_object_get(object, key);

    if (!json_is_boolean(v))
        return err_data(err, "%s: \"%s\" is neither true nor false", where, key);
    *out = json_is_true(v);
    return 0;
}

/* Allow no key but "kind" and the fields of this kind. */
static int check_keys(json_t *object, const char *where, const struct layer_part *p, int kind,
                      struct err *err)
{
    const char *key;
    json_t *v;

    json_object_foreach(object, key, v)
    {
        int i = 0;
        while (i < p->fields && (strcmp(key, p->field[i].key) || !(p->field[i].kinds & 1u << kind)))
            i++;
        if (i == p->fields && strcmp(key, "kind"))
            return err_data(err, "%s: kind \"%s\" has no key \"%s\"", where, p->kind[kind], key);
    }
    return 0;
}

/* Read the fields of this kind.  An optional one that is missing keeps its value. */
static int read_fields(void *base, json_t *object, const char *where, const struct layer_part *p,
                       int kind, struct err *err)
{
    for (int i = 0; i < p->fields; i++) {
        const struct field *f = &p->field[i];
        void *at = (char *)base + f->offset;
        if (!(f->kinds & 1u << kind) || (f->optional && !json_object_get(object, f->key)))
            continue;
        int rc = strcmp(f->key, "bias") == 0
                     ? read_bool(object, where, f->key, at, err)
                     : read_int(object, where, f->key, MODEL_DIM_MAX, at, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Returns the index of "kind" among those of the part, or -1. */
static int read_kind(json_t *object, const char *where, const struct layer_part *p, struct err *err)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    char known[64];
    size_t used = 0;

    if (!json_is_object(object))
        return err_data(err, "%s: not an object", where);
    if (!kind)
        return err_data(err, "%s: \"kind\" is %s", where,
                        json_object_get(object, "kind") ? "not a text" : "missing");
    for (int i = 0; i < p->kinds; i++) {
        if (!strcmp(kind, p->kind[i]))
            return i;
        if (used < sizeof(known))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                     p->kind[i]);
    }
    return err_data(err, "%s: kind \"%s\" is not known (known: %s)", where, kind, known);
}

static int check_csa(const struct attention *a, const char *where, struct err *err)
{
    int words = (a->index_heads > 0) + (a->index_dim > 0) + (a->index_topk > 0);

    if (a->heads % a->o_groups)
        return err_data(err, "%s: %d heads do not make %d equal o_groups", where, a->heads,
                        a->o_groups);
    if (words && words != 3)
        return err_data(err, "%s: \"index_heads\", \"index_dim\" and \"index_topk\" go together",
                        where);
    if (words && !a->ratio)
        return err_data(err, "%s: \"index_topk\" without \"ratio\"", where);
    return 0;
}

static int check_attention(struct attention *a, const char *where, struct err *err)
{
    if (a->kind == MIXER_GQA && a->heads % a->kv_heads)
        return err_data(err, "%s: %d heads cannot share %d kv_heads evenly", where, a->heads,
                        a->kv_heads);
    if (a->kind == MIXER_MAMBA2 && a->heads % a->groups)
        return err_data(err, "%s: %d heads cannot share %d groups evenly", where, a->heads,
                        a->groups);
    if (a->kind == MIXER_MLA) {
        a->kv_heads = a->heads;
        a->head_dim = a->nope_dim + a->rope_dim;
    }
    if (a->kind == MIXER_CSA) {
        a->kv_heads = 1;
        return check_csa(a, where, err);
    }
    return 0;
}

static int read_attention(struct attention *a, json_t *object, const char *where, struct err *err)
{
    int kind = read_kind(object, where, &attention_part, err);

    if (kind < 0)
        return -1;
    a->kind = (enum mixer_kind)kind;
    if (check_keys(object, where, &attention_part, kind, err) < 0 ||
        read_fields(a, object, where, &attention_part, kind, err) < 0)
        return -1;
    return check_attention(a, where, err);
}

static int check_experts(const struct mlp *p, json_t *object, const char *where, struct err *err)
{
    static const char *const needs[] = {"topk", "shared_ffn", "latent", "groups", "nodes_max"};

    for (size_t i = 0; !p->experts && i < sizeof(needs) / sizeof(*needs); i++)
        if (json_object_get(object, needs[i]))
            return err_data(err, "%s: \"%s\" without \"experts\"", where, needs[i]);
    if (p->experts && !p->topk)
        return err_data(err, "%s: \"experts\" without \"topk\"", where);
    if (p->topk > p->experts)
        return err_data(err, "%s: \"topk\" is %d of %d experts", where, p->topk, p->experts);
    if (!p->groups != !p->nodes_max)
        return err_data(err, "%s: \"%s\" without \"%s\"", where, p->groups ? "groups" : "nodes_max",
                        p->groups ? "nodes_max" : "groups");
    if (p->groups && p->experts % p->groups)
        return err_data(err, "%s: %d experts do not make %d equal groups", where, p->experts,
                        p->groups);
    if (p->nodes_max > p->groups)
        return err_data(err, "%s: \"nodes_max\" is %d of %d groups", where, p->nodes_max,
                        p->groups);
    if (p->groups && p->topk > (long)p->nodes_max * (p->experts / p->groups))
        return err_data(err, "%s: \"topk\" is %d, and %d groups hold %ld experts", where, p->topk,
                        p->nodes_max, (long)p->nodes_max * (p->experts / p->groups));
    return 0;
}

static int read_mlp(struct mlp *p, json_t *object, const char *where, struct err *err)
{
    int kind = read_kind(object, where, &mlp_part, err);

    if (kind < 0)
        return -1;
    p->kind = (enum mlp_kind)kind;
    if (check_keys(object, where, &mlp_part, kind, err) < 0 ||
        read_fields(p, object, where, &mlp_part, kind, err) < 0)
        return -1;
    return check_experts(p, object, where, err);
}

/* Read a kind of layers.  shared: result of that optional key; NULL: the key is not allowed. */
static int read_layer(struct layer *l, json_t *object, const char *where, bool *shared,
                      struct err *err)
{
    const struct json_key key[] = {{.name = "count"},
                                   {.name = "attention"},
                                   {.name = "mlp"},
                                   {.name = "shared", .optional = true, .type = 'b'}};
    json_t *is[4] = {NULL};

    if (json_take_keys(object, where, key, shared ? 4 : 3, is, err) < 0)
        return -1;
    char *mixer_where = mem_printf("%s.attention", where), *mlp_where = mem_printf("%s.mlp", where);
    int bad = read_int(object, where, "count", MODEL_LAYERS_MAX, &l->count, err) < 0 ||
              read_attention(&l->attention, is[1], mixer_where, err) < 0 ||
              read_mlp(&l->mlp, is[2], mlp_where, err) < 0;
    free(mixer_where);
    free(mlp_where);
    if (!bad && l->attention.kind == MIXER_NONE && l->mlp.kind == MLP_NONE)
        bad = err_data(err, "%s: neither \"attention\" nor \"mlp\": a layer of nothing", where);
    if (shared)
        *shared = json_is_true(is[3]);
    return bad ? -1 : 0;
}

/* Fill layer, kinds and layers of m.  path begins every message. */
static int read_layers(struct model *m, json_t *list, const char *path, struct err *err)
{
    size_t n = json_array_size(list);

    if (n < 1 || n > MODEL_KINDS_MAX)
        return err_data(err, "%s: \"layers\" is not a list of 1..%d kinds", path, MODEL_KINDS_MAX);
    m->layer = mem_calloc(n, sizeof(*m->layer));
    m->kinds = (int)n;
    for (int i = 0; i < m->kinds; i++) {
        char *where = mem_printf("%s: layers[%d]", path, i);
        int rc = read_layer(&m->layer[i], json_array_get(list, (size_t)i), where, NULL, err);
        free(where);
        if (rc < 0)
            return -1;
        m->layers += m->layer[i].count;
    }
    return m->layers <= MODEL_LAYERS_MAX
               ? 0
               : err_data(err, "%s: %d layers, more than %d", path, m->layers, MODEL_LAYERS_MAX);
}

static int read_model(struct model *m, json_t *root, const char *path, struct err *err)
{
    const char *format, *name, *title, *source;
    json_t *layers, *hidden, *vocab, *positions = NULL, *mtp = NULL;
    int version, tied;

    if (json_take(root, path, err, "{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:b, s?o, s?o, s:o}",
                  "format", &format, "version", &version, "name", &name, "title", &title, "source",
                  &source, "hidden", &hidden, "vocab", &vocab, "tied_embeddings", &tied,
                  "positions", &positions, "mtp", &mtp, "layers", &layers) < 0)
        return -1;
    m->name = mem_strdup(name);
    m->title = mem_strdup(title);
    m->source = mem_strdup(source);
    m->tied = tied;
    if (read_int(root, path, "hidden", MODEL_DIM_MAX, &m->hidden, err) < 0 ||
        read_int(root, path, "vocab", MODEL_DIM_MAX, &m->vocab, err) < 0 ||
        (positions && read_int(root, path, "positions", MODEL_DIM_MAX, &m->positions, err) < 0) ||
        read_layers(m, layers, path, err) < 0)
        return -1;
    char *where = mem_printf("%s: mtp", path);
    int rc = mtp ? read_layer(&m->mtp, mtp, where, &m->mtp_shared, err) : 0;
    free(where);
    return rc;
}

/* Open a railgauge model file, or a config.json of Transformers, which has layers and no
 * "format". */
static int open_model(json_t **root, const char *path, struct err *err)
{
    json_t *raw = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    bool hf = json_is_object(raw) && !json_object_get(raw, "format") &&
              (json_object_get(raw, "model_type") || json_object_get(raw, "architectures"));

    if (hf)
        *root = model_from_hf(raw, path, err);
    json_decref(raw);
    return hf ? *root ? 0 : -1 : json_open(root, path, "railgauge-model", 1, err);
}

static const char folder[] = "jobs/training/models";

void model_each(name_taker *take, void *to)
{
    file_data_each(folder, take, to);
}

int model_names(char ***names)
{
    return file_data_names(folder, names);
}

int model_load(struct model *m, const char *name, struct err *err)
{
    char *path = file_data_named(folder, name);
    struct near near = {.word = name};
    json_t *root = NULL;

    memset(m, 0, sizeof(*m));
    if (!path) {
        model_each(near_try, &near);
        return err_usage(
            err,
            "no model \"%s\"%s; \"railgauge models\" lists the shipped ones; or give a file with "
            "a \"/\" or \".json\" in its name",
            name, near_text(&near));
    }
    int rc = open_model(&root, path, err);
    if (rc == 0)
        rc = read_model(m, root, path, err);
    for (int i = 0; rc == 0 && i < m->kinds; i++)
        layer_list(&m->layer[i], m);
    if (rc == 0 && m->mtp.count)
        layer_list(&m->mtp, m);
    json_decref(root);
    free(path);
    return rc;
}

void model_free(struct model *m)
{
    free(m->name);
    free(m->title);
    free(m->source);
    free(m->layer);
    memset(m, 0, sizeof(*m));
}
