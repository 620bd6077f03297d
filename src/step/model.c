/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/model.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

const char *const mlp_name[MLP_COUNT] = {"swiglu", "plain"};
static const int mlp_matrices[MLP_COUNT] = {3, 2};

enum { DIM_MAX = 1 << 24, LAYERS_MAX = 100000, KINDS_MAX = 64 };

/* A whole number of an object, 1..max. */
static int take_int(json_t *object, const char *where, const char *key, int max, int *out,
                    struct err *err)
{
    double x = 0;

    if (json_number(object, where, key, 1, max, 0, &x, err) < 0)
        return -1;
    if (x != floor(x))
        return err_data(err, "%s: \"%s\" is %g, not a whole number", where, key, x);
    *out = (int)x;
    return 0;
}

static int read_attention(struct attention *a, json_t *object, const char *where, struct err *err)
{
    const char *kind = NULL;
    json_t *h, *k, *d;

    if (json_take(object, where, err, "{s:s, s:o, s:o, s:o}", "kind", &kind, "heads", &h,
                  "kv_heads", &k, "head_dim", &d) < 0)
        return -1;
    if (strcmp(kind, "gqa"))
        return err_data(err, "%s: attention kind \"%s\" is not known (known: gqa)", where, kind);
    if (take_int(object, where, "heads", DIM_MAX, &a->heads, err) < 0 ||
        take_int(object, where, "kv_heads", DIM_MAX, &a->kv_heads, err) < 0 ||
        take_int(object, where, "head_dim", DIM_MAX, &a->head_dim, err) < 0)
        return -1;
    if (a->heads % a->kv_heads)
        return err_data(err, "%s: %d heads cannot share %d kv_heads evenly", where, a->heads,
                        a->kv_heads);
    return 0;
}

static int read_mlp(struct mlp *mlp, json_t *object, const char *where, struct err *err)
{
    const char *kind = NULL;
    json_t *f;

    if (json_take(object, where, err, "{s:s, s:o}", "kind", &kind, "ffn", &f) < 0)
        return -1;
    for (int i = 0; i < MLP_COUNT; i++)
        if (!strcmp(kind, mlp_name[i])) {
            mlp->kind = (enum mlp_kind)i;
            return take_int(object, where, "ffn", DIM_MAX, &mlp->ffn, err);
        }
    return err_data(err, "%s: mlp kind \"%s\" is not known (known: swiglu, plain)", where, kind);
}

static int read_layers(struct model *m, json_t *list, const char *path, struct err *err)
{
    size_t n = json_array_size(list);

    if (n < 1 || n > KINDS_MAX)
        return err_data(err, "%s: \"layers\" is not a list of 1..%d kinds", path, KINDS_MAX);
    m->layer = mem_calloc(n, sizeof(*m->layer));
    m->kinds = (int)n;
    for (int i = 0; i < m->kinds; i++) {
        struct layer *l = &m->layer[i];
        json_t *object = json_array_get(list, (size_t)i), *count, *attention, *mlp;
        char *where = mem_printf("%s: layers[%d]", path, i);
        int bad = json_take(object, where, err, "{s:o, s:o, s:o}", "count", &count, "attention",
                            &attention, "mlp", &mlp) < 0 ||
                  take_int(object, where, "count", LAYERS_MAX, &l->count, err) < 0 ||
                  read_attention(&l->attention, attention, where, err) < 0 ||
                  read_mlp(&l->mlp, mlp, where, err) < 0;
        free(where);
        if (bad)
            return -1;
        m->layers += l->count;
    }
    return m->layers <= LAYERS_MAX
               ? 0
               : err_data(err, "%s: %d layers, more than %d", path, m->layers, LAYERS_MAX);
}

static int read_model(struct model *m, json_t *root, const char *path, struct err *err)
{
    const char *format, *name, *title, *source;
    json_t *layers, *hidden, *vocab;
    int version, tied;

    if (json_take(root, path, err, "{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:b, s:o}", "format",
                  &format, "version", &version, "name", &name, "title", &title, "source", &source,
                  "hidden", &hidden, "vocab", &vocab, "tied_embeddings", &tied, "layers",
                  &layers) < 0)
        return -1;
    m->name = mem_strdup(name);
    m->title = mem_strdup(title);
    m->source = mem_strdup(source);
    m->tied = tied;
    if (take_int(root, path, "hidden", DIM_MAX, &m->hidden, err) < 0 ||
        take_int(root, path, "vocab", DIM_MAX, &m->vocab, err) < 0)
        return -1;
    return read_layers(m, layers, path, err);
}

/* "llama3.1-405b, llama3.1-70b, ..." of the shipped models; the caller frees. */
static char *known_models(void)
{
    char *dir = file_data("jobs/training/models"),
         *pattern = mem_printf("%s/*.json", dir ? dir : "");
    char *all = mem_strdup("");
    glob_t found = {0};

    if (dir && glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *base = strrchr(found.gl_pathv[i], '/') + 1;
            char *more = mem_printf("%s%s%.*s", all, i ? ", " : "", (int)strlen(base) - 5, base);
            free(all);
            all = more;
        }
    globfree(&found);
    free(pattern);
    free(dir);
    return all;
}

static char *model_path(const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json")))
        return mem_strdup(name);
    char *file = mem_printf("jobs/training/models/%s.json", name);
    char *path = file_data(file);
    free(file);
    if (!path) {
        char *known = known_models();
        err_usage(
            err, "no model \"%s\"; known: %s; or give a file with a \"/\" or \".json\" in its name",
            name, known);
        free(known);
    }
    return path;
}

int model_load(struct model *m, const char *name, struct err *err)
{
    json_t *root = NULL;
    char *path;

    memset(m, 0, sizeof(*m));
    path = model_path(name, err);
    if (!path)
        return -1;
    int rc = json_open(&root, path, "railgauge-model", 1, err);
    if (rc == 0)
        rc = read_model(m, root, path, err);
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

static double attention_params(const struct model *m, const struct attention *a)
{
    return (double)m->hidden * a->head_dim * (2.0 * a->heads + 2.0 * a->kv_heads);
}

static double layer_matmul(const struct model *m, const struct layer *l)
{
    return attention_params(m, &l->attention) +
           (double)mlp_matrices[l->mlp.kind] * m->hidden * l->mlp.ffn;
}

double layer_params(const struct model *m, const struct layer *l)
{
    return layer_matmul(m, l) + 2.0 * m->hidden; /* two norms */
}

void model_params(const struct model *m, struct params *p)
{
    double table = (double)m->hidden * m->vocab;

    p->embedding = m->tied ? table : 2 * table;
    p->layers = 0;
    p->matmul = table;
    for (int i = 0; i < m->kinds; i++) {
        p->layers += m->layer[i].count * layer_params(m, &m->layer[i]);
        p->matmul += m->layer[i].count * layer_matmul(m, &m->layer[i]);
    }
    p->total = p->layers + p->embedding + m->hidden; /* and the last norm */
}

void layer_flops(const struct model *m, const struct layer *l, int seq, bool causal,
                 struct flops *f)
{
    const struct attention *a = &l->attention;

    f->linear = 6 * layer_matmul(m, l);
    f->core = (causal ? 6.0 : 12.0) * a->heads * a->head_dim * seq;
}

void model_flops(const struct model *m, int seq, bool causal, struct flops *f)
{
    f->linear = 6.0 * m->hidden * m->vocab;
    f->core = 0;
    for (int i = 0; i < m->kinds; i++) {
        struct flops one;
        layer_flops(m, &m->layer[i], seq, causal, &one);
        f->linear += m->layer[i].count * one.linear;
        f->core += m->layer[i].count * one.core;
    }
}
