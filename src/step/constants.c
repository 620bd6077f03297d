/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/constants.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

static const char shipped[] = "jobs/training/constants.json";

#define ROW(id, name, unit, min, max, fitted) {name, min, max, fitted},
static const struct {
    const char *name;
    double min, max;
    bool fitted;
} fixed[CONSTANT_COUNT] = {CONSTANTS(ROW)};
enum { CONSTANTS_MAX = 1000 };

static int fixed_index(const char *name)
{
    for (int i = 0; i < CONSTANT_COUNT; i++)
        if (!strcmp(fixed[i].name, name))
            return i;
    return -1;
}

/* A factor, whereas the other open names are shares. */
enum { LINKS_MAX = 30 };

static bool is_links(const char *name)
{
    return !strncmp(name, "fabric.", 7);
}

static bool is_open_name(const char *name)
{
    return !strncmp(name, "efficiency.", 11) || !strncmp(name, "attention.", 10) ||
           !strncmp(name, "experts.", 8) || is_links(name);
}

static double most(int fixed_at, const char *name)
{
    return fixed_at >= 0 ? fixed[fixed_at].max : is_links(name) ? LINKS_MAX : 1;
}

static int read_one(struct constants *c, json_t *object, const char *where, struct err *err)
{
    const char *name, *source;
    json_t *v, *e, *p = NULL, *w = NULL;
    struct constant one = {0};

    if (json_take(object, where, err, "{s:s, s:o, s:o, s:s, s?o, s?o}", "name", &name, "value", &v,
                  "error", &e, "source", &source, "prior", &p, "width", &w) < 0)
        return -1;
    int i = fixed_index(name);
    if (i < 0 && !is_open_name(name))
        return err_data(err, "%s: no constant is called \"%s\"", where, name);
    if (constants_find(c, name))
        return err_data(err, "%s: \"%s\" is given twice", where, name);
    double min = i < 0 ? 0.01 : fixed[i].min, max = most(i, name);
    if (json_number(object, where, "value", min, max, 0, &one.value, err) < 0 ||
        json_number(object, where, "error", 0, 2, 0, &one.error, err) < 0 ||
        json_number(object, where, "prior", min, max, 1, &one.prior, err) < 0 ||
        json_number(object, where, "width", 1e-6, 10, 1, &one.width, err) < 0)
        return -1;
    if (!p != !w)
        return err_data(err, "%s: \"prior\" and \"width\" belong together", where);
    if (i >= 0)
        c->at[i] = c->count;
    one.name = mem_strdup(name);
    one.source = mem_strdup(source);
    MEM_PUSH(c->constant, c->count) = one;
    return 0;
}

static int read_all(struct constants *c, json_t *root, struct err *err)
{
    const char *format;
    json_t *list, *effects = NULL;
    int version;

    if (json_take(root, c->path, err, "{s:s, s:i, s:o, s?o}", "format", &format, "version",
                  &version, "constants", &list, "effects", &effects) < 0)
        return -1;
    if (!json_is_array(list) || json_array_size(list) > CONSTANTS_MAX)
        return err_data(err, "%s: \"constants\" is not a list of at most %d", c->path,
                        CONSTANTS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *where = mem_printf("%s: constants[%zu]", c->path, i);
        int rc = read_one(c, json_array_get(list, i), where, err);
        free(where);
        if (rc < 0)
            return -1;
    }
    for (int i = 0; i < CONSTANT_COUNT; i++)
        if (!constants_find(c, fixed[i].name))
            return err_data(err, "%s: constant \"%s\" is missing", c->path, fixed[i].name);
    char *where = mem_printf("%s: effects", c->path);
    int rc = effects ? effects_read(&c->effects, effects, where, err) : 0;
    free(where);
    return rc;
}

/* --- open names --- */

static int gpu_find(const struct constants *c, const char *generation, size_t length)
{
    int i = 0;

    while (i < c->gpus - 1 &&
           (strncmp(c->gpu[i].generation, generation, length) != 0 || c->gpu[i].generation[length]))
        i++;
    return i;
}

/* The last GPU stands for all others and holds the defaults; a new one starts as a copy of it. */
static struct constants_gpu *gpu_add(struct constants *c, const char *generation, size_t length)
{
    int i = gpu_find(c, generation, length);

    if (i == c->gpus - 1) {
        struct constants_gpu others = c->gpu[i];
        MEM_PUSH(c->gpu, c->gpus) = others;
        c->gpu[i].generation = mem_printf("%.*s", (int)length, generation);
    }
    return &c->gpu[i];
}

static int dtype_of(const char *name)
{
    return recipe_word("dtype", name, recipe_name.dtype, DTYPE_COUNT, NULL);
}

static void resolve_one(struct constants *c, int at)
{
    const char *kind = c->constant[at].name, *word = strchr(kind, '.') + 1;
    const char *last = strrchr(word, '.');
    int dtype = dtype_of(last ? last + 1 : word);

    if (fixed_index(kind) >= 0)
        return;
    if (!strncmp(kind, "attention.", 10))
        gpu_add(c, word, strlen(word))->attention = at;
    else if (!strncmp(kind, "experts.", 8) && dtype >= 0)
        c->experts[dtype] = at;
    else if (last && dtype >= 0)
        gpu_add(c, word, (size_t)(last - word))->efficiency[dtype] = at;
}

static void resolve(struct constants *c)
{
    struct constants_gpu others = {.attention = c->at[CONSTANT_ATTENTION_DEFAULT]};

    for (int i = 0; i < DTYPE_COUNT; i++) {
        others.efficiency[i] = c->at[CONSTANT_EFFICIENCY_DEFAULT];
        c->experts[i] = c->at[CONSTANT_EXPERTS_DEFAULT];
    }
    MEM_PUSH(c->gpu, c->gpus) = others;
    for (int i = 0; i < c->count; i++)
        resolve_one(c, i);
}

static const struct constants_gpu *gpu_of(const struct constants *c, const char *generation)
{
    return &c->gpu[generation ? gpu_find(c, generation, strlen(generation)) : c->gpus - 1];
}

const struct constant *constants_efficiency(const struct constants *c, const char *generation,
                                            int dtype)
{
    return &c->constant[gpu_of(c, generation)->efficiency[dtype]];
}

const struct constant *constants_attention(const struct constants *c, const char *generation)
{
    return &c->constant[gpu_of(c, generation)->attention];
}

int constants_load(struct constants *c, const char *path, struct err *err)
{
    json_t *root = NULL;

    memset(c, 0, sizeof(*c));
    effects_none(&c->effects);
    c->path = path ? mem_strdup(path) : file_data(shipped);
    if (!c->path)
        return err_noinput(err, "%s is not installed", shipped);
    int rc = json_open(&root, c->path, "railgauge-constants", 1, err);
    if (rc == 0)
        rc = read_all(c, root, err);
    if (rc == 0)
        resolve(c);
    json_decref(root);
    return rc;
}

void constants_free(struct constants *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->constant[i].name);
        free(c->constant[i].source);
    }
    for (int i = 0; i < c->gpus; i++)
        free(c->gpu[i].generation);
    free(c->gpu);
    effects_free(&c->effects);
    free(c->constant);
    free(c->path);
    memset(c, 0, sizeof(*c));
}

void constants_copy(struct constants *c, const struct constants *from)
{
    *c = *from;
    c->path = mem_strdup(from->path);
    c->constant = mem_dup(from->constant, (size_t)from->count, sizeof(*c->constant));
    for (int i = 0; i < c->count; i++) {
        c->constant[i].name = mem_strdup(from->constant[i].name);
        c->constant[i].source = mem_strdup(from->constant[i].source);
    }
    c->gpu = mem_dup(from->gpu, (size_t)from->gpus, sizeof(*c->gpu));
    for (int i = 0; i + 1 < c->gpus; i++)
        c->gpu[i].generation = mem_strdup(from->gpu[i].generation);
    effects_copy(&c->effects, &from->effects);
}

const struct constant *constants_find(const struct constants *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->constant[i].name, name))
            return &c->constant[i];
    return NULL;
}

double constants_links(const struct constants *c, const char *publisher)
{
    for (int i = 0; publisher && i < c->count; i++)
        if (is_links(c->constant[i].name) && !strcmp(c->constant[i].name + 7, publisher))
            return c->constant[i].value;
    return 1;
}

bool constants_fitted(const char *name, double *min, double *max)
{
    int i = fixed_index(name);

    *min = i < 0 ? 0.01 : fixed[i].min;
    *max = most(i, name);
    return i < 0 ? is_open_name(name) : fixed[i].fitted;
}

int constants_save(const struct constants *c, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    fputs("{\n \"format\": \"railgauge-constants\",\n \"version\": 1,\n \"constants\": [\n",
          f.stream);
    for (int i = 0; i < c->count; i++) {
        const struct constant *one = &c->constant[i];
        json_t *line = json_pack("{s:s, s:f, s:f, s:s}", "name", one->name, "value", one->value,
                                 "error", one->error, "source", one->source);
        if (one->width > 0) {
            json_object_set_new(line, "prior", json_real(one->prior));
            json_object_set_new(line, "width", json_real(one->width));
        }
        fputs("  ", f.stream);
        json_dumpf(line, f.stream, JSON_REAL_PRECISION(4));
        fputs(i + 1 < c->count ? ",\n" : "\n", f.stream);
        json_decref(line);
    }
    fputs(" ],\n \"effects\": ", f.stream);
    effects_write(f.stream, &c->effects);
    fputs("\n}\n", f.stream);
    int rc = file_commit(&f, err);
    file_abort(&f);
    return rc;
}
