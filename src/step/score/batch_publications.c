/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_publications.c - what the words in a table of published steps mean, and what its sources
 * leave unsaid: jobs/training/publications.json. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "step/score/batch_impl.h"

static const char shipped[] = "jobs/training/publications.json";

/* --- the file, refused where it is wrong --- */

/* Settings of an object: those of recipe.h, and "mesh-order". */
static int set_all(struct recipe *r, int *mesh, json_t *settings, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(settings, key, value)
    {
        const char *word = json_string_value(value);
        if (!word)
            return err_data(err, "\"%s\" is not a text", key);
        if (!argument_is("mesh-order", key)) {
            if (recipe_set(r, key, word, err) < 0)
                return -1;
        } else if ((*mesh = recipe_word("mesh order", word, order_name, ORDER_COUNT, err)) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_settings(json_t *settings, const char *where, struct err *err)
{
    struct recipe r;
    struct err why;
    int mesh;

    recipe_defaults(&r);
    if (settings && !json_is_null(settings) && !json_is_object(settings))
        return err_data(err, "%s: not an object of settings", where);
    return set_all(&r, &mesh, settings, &why) < 0 ? err_data(err, "%s: %s", where, why.text) : 0;
}

static int check_recipe(json_t *one, const char *where, struct err *err)
{
    const char *text;
    json_t *set = NULL, *any;

    if (json_take(one, where, err, "{s?s, s?o, s?o, s?s, s?s, s?o, s?o, s?s}", "model", &text,
                  "hardware", &any, "dtype", &any, "since", &text, "before", &text, "set", &set,
                  "chunks", &any, "why", &text) < 0)
        return -1;
    return check_settings(set, where, err);
}

static int check_word(json_t *one, const char *where, struct err *err)
{
    const char *text;
    json_t *set = NULL;
    int odd;

    if (json_take(one, where, err, "{s:s, s?s, s?s, s?s, s?o, s?s, s?b, s?s}", "column", &text,
                  "is", &text, "begins", &text, "has", &text, "set", &set, "remark", &text, "odd",
                  &odd, "cite", &text) < 0)
        return -1;
    return check_settings(set, where, err);
}

static int check_hardware(json_t *one, const char *where, struct err *err)
{
    const char *text;
    int count;

    return json_take(one, where, err, "{s:s, s?s, s:s, s?i, s?i}", "hardware", &text, "fabric",
                     &text, "preset", &text, "rack", &count, "per_rack", &count);
}

static int check_each(json_t *list, const char *path, const char *key,
                      int (*check)(json_t *, const char *, struct err *), struct err *err)
{
    size_t i;
    json_t *one;

    if (list && !json_is_array(list))
        return err_data(err, "%s: \"%s\" is not a list", path, key);
    json_array_foreach(list, i, one)
    {
        char *where = mem_printf("%s: %s[%zu]", path, key, i);
        int rc = check(one, where, err);
        free(where);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static const char *const memory_kind_name[MEMORY_KINDS] = {"device", "reserved", "allocated"};

/* {"reads": "reserved", "gb": 1073741824}: what was read, and bytes of what it calls GB. */
static int check_memory(json_t *memory, const char *where, struct err *err)
{
    const char *reads;
    double gb;

    if (!memory)
        return 0;
    return json_take(memory, where, err, "{s:s, s:F}", "reads", &reads, "gb", &gb) < 0 ||
                   recipe_word("memory", reads, memory_kind_name, MEMORY_KINDS, err) < 0
               ? -1
               : 0;
}

static int check_publication(json_t *one, const char *where, struct err *err)
{
    const char *text;
    json_t *set = NULL, *release = NULL, *recipes = NULL, *bytes, *memory = NULL;

    if (json_take(one, where, err, "{s:s, s:s, s?o, s?o, s?s, s?s, s?o, s?o, s?o}", "source", &text,
                  "cite", &text, "set", &set, "release", &release, "flops", &text, "fits_by", &text,
                  "memory_bytes", &bytes, "memory", &memory, "recipes", &recipes) < 0 ||
        check_memory(memory, where, err) < 0 ||
        (release && json_take(release, where, err, "{s:s, s:s, s:s}", "name", &text, "after", &text,
                              "until", &text) < 0) ||
        check_settings(set, where, err) < 0)
        return -1;
    return check_each(recipes, where, "recipes", check_recipe, err);
}

int publications_load(json_t **out, struct err *err)
{
    json_t *publications, *hardware, *words, *otherwise, *claims, *value;
    const char *format, *key;
    char *path = file_data(shipped);
    int version;

    *out = NULL;
    if (!path)
        return err_noinput(err, "%s is not installed", shipped);
    int rc = json_open(out, path, "railgauge-publications", 1, err);
    if (rc == 0)
        rc = json_take(*out, path, err, "{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "format", &format,
                       "version", &version, "publications", &publications, "hardware", &hardware,
                       "words", &words, "otherwise", &otherwise, "claims", &claims);
    if (rc == 0 && (check_each(publications, path, "publications", check_publication, err) < 0 ||
                    check_each(hardware, path, "hardware", check_hardware, err) < 0 ||
                    check_each(words, path, "words", check_word, err) < 0))
        rc = -1;
    if (rc == 0)
        json_object_foreach(otherwise, key, value) rc |= check_settings(value, path, err);
    free(path);
    return rc;
}

/* --- rows --- */

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

/* --- what it says --- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

/* The next publication after `at` whose name is in the source; NULL: none. */
static json_t *next_of(const struct batch_row *r, size_t *at)
{
    const json_t *list = json_object_get(r->publications, "publications");

    while (*at < json_array_size(list)) {
        json_t *one = json_array_get(list, (*at)++);
        if (strstr(r->source, text_of(one, "source")))
            return one;
    }
    return NULL;
}

/* A job that fits into a rack, or that is made of whole racks, takes whole racks. */
static void take_racks(struct batch_row *r, const json_t *hardware)
{
    int rack = (int)json_integer_value(json_object_get(hardware, "rack"));

    r->per_rack = (int)json_integer_value(json_object_get(hardware, "per_rack"));
    if (r->gpus <= rack || (rack && r->gpus % r->per_rack && r->gpus % rack == 0))
        r->per_rack = 0;
}

static bool is_preset(const char *name)
{
    char *file = mem_printf("topo/fabrics/%s.json", name), *path = file_data(file);
    bool is = path && !strchr(name, '/');

    free(file);
    free(path);
    return is;
}

int batch_machine(struct batch_row *r, const char *fabric, struct err *err)
{
    json_t *one, *build;
    size_t i, at = 0;

    json_array_foreach(json_object_get(r->publications, "hardware"), i, one)
    {
        if (strcmp(text_of(one, "hardware"), r->hardware) ||
            !strstr(fabric, text_of(one, "fabric")))
            continue;
        r->preset = text_of(one, "preset");
        take_racks(r, one);
        while ((build = next_of(r, &at)) != NULL) {
            json_t *bytes = json_object_get(json_object_get(build, "memory_bytes"), r->hardware);
            r->gpu_bytes = bytes ? json_number_value(bytes) : r->gpu_bytes;
        }
        return 0;
    }
    if (!is_preset(r->hardware))
        return err_set(err, "no preset is known for hardware \"%s\"", r->hardware);
    r->preset = r->hardware;
    return 0;
}

/* "mosaicml/llm-foundry@061f2c7 scripts/..." is "mosaicml/llm-foundry", "[group] publisher: ..."
 * "publisher". */
static void name_publisher(struct batch_row *r)
{
    const char *from = r->source;

    if (*from == '[' && strchr(from, ']'))
        from = strchr(from, ']') + 1;
    from += strspn(from, " ");
    int n = r->released ? (int)strcspn(r->release, " ") : (int)strcspn(from, "@[(:");
    snprintf(r->publisher, BATCH_PUBLISHER, "%.*s", n, r->released ? r->release : from);
    for (size_t end = strlen(r->publisher); end > 0 && r->publisher[end - 1] == ' ';)
        r->publisher[--end] = '\0';
}

void batch_release(struct batch_row *r)
{
    const json_t *one;
    const char *begin = NULL;
    size_t at = 0;

    snprintf(r->release, BATCH_RELEASE, "%.*s", BATCH_RELEASE - 2, r->source);
    while (!begin && (one = next_of(r, &at)) != NULL) {
        const json_t *release = json_object_get(one, "release");
        const char *after = text_of(release, "after"), *name = text_of(release, "name");
        begin = *after ? strstr(r->source, after) : NULL;
        if (!begin)
            continue;
        begin += strlen(after);
        int n = (int)strcspn(begin, text_of(release, "until"));
        int max = BATCH_RELEASE - 1 - (int)strlen(name) - 1;
        snprintf(r->release, BATCH_RELEASE, "%s %.*s", name, n < max ? n : max, begin);
        r->released = true;
    }
    name_publisher(r);
}

/* What the row's source says under that key; "": nothing. */
static const char *said(const struct batch_row *r, const char *key)
{
    const json_t *one, *text = NULL;
    size_t at = 0;

    while (!text && (one = next_of(r, &at)) != NULL)
        text = json_object_get(one, key);
    return text ? json_string_value(text) : "";
}

bool batch_counts_causal(const struct batch_row *r)
{
    return strcmp(said(r, "flops"), "full") != 0;
}

const char *batch_fits_by(const struct batch_row *r)
{
    const char *by = said(r, "fits_by");

    return *by ? by : NULL;
}

/* Is `word` in the list?  No list holds all. */
static bool listed(const json_t *list, const char *word)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) if (!strcmp(json_string_value(one), word)) return true;
    return !list;
}

/* "26.02.01" comes after "26.02": numbers in turn, and what has more of them. */
static int version_order(const char *a, const char *b)
{
    char *enda, *endb;

    for (; *a && *b; a = enda + (*enda == '.'), b = endb + (*endb == '.')) {
        long x = strtol(a, &enda, 10), y = strtol(b, &endb, 10);
        if (x != y || enda == a || endb == b)
            return x < y ? -1 : x > y;
    }
    return *a ? 1 : *b ? -1 : 0;
}

/* Does the row's release lie between the recipe's first and the one after its last? */
static bool is_release_of(const struct batch_row *r, const json_t *recipe)
{
    const char *since = text_of(recipe, "since"), *before = text_of(recipe, "before");
    const char *version = strrchr(r->release, ' ');

    version = version ? version + 1 : "";
    version += *version == 'v';
    return (!*since || version_order(version, since) >= 0) &&
           (!*before || version_order(version, before) < 0);
}

static bool is_recipe_of(const struct batch_row *r, const json_t *recipe)
{
    const char *model = text_of(recipe, "model");

    return (!*model || !strcmp(r->model, model)) && is_release_of(r, recipe) &&
           listed(json_object_get(recipe, "hardware"), r->hardware) &&
           listed(json_object_get(recipe, "dtype"), r->dtype);
}

void batch_chunks(struct batch_row *r, const struct model *m, const struct layout *l)
{
    int pp = l->size[AXIS_PP];
    json_t *publication, *recipe, *chunks;
    size_t at = 0, i;

    while (pp > 1 && !r->chunks_said && (publication = next_of(r, &at)) != NULL)
        json_array_foreach(json_object_get(publication, "recipes"), i, recipe)
        {
            if (!is_recipe_of(r, recipe) || !(chunks = json_object_get(recipe, "chunks")))
                continue;
            int each = (m->layers + 2) % pp ? 1 : (m->layers + 2) / pp;
            r->recipe.stages = json_is_string(chunks) ? each : (int)json_integer_value(chunks);
            batch_remark(r, "vp is not stated: %d, %s", r->recipe.stages, text_of(recipe, "why"));
            return;
        }
}

/* --- words of columns --- */

static bool matches(const json_t *rule, const char *column, const char *cell)
{
    const char *is = json_string_value(json_object_get(rule, "is"));
    const char *begins = json_string_value(json_object_get(rule, "begins"));

    if (strcmp(text_of(rule, "column"), column))
        return false;
    return is       ? !strcmp(cell, is)
           : begins ? !strncmp(cell, begins, strlen(begins))
                    : strstr(cell, text_of(rule, "has")) != NULL;
}

static bool is_known(const json_t *rules, const char *column, const char *cell)
{
    const json_t *rule;
    size_t i;

    json_array_foreach(rules, i, rule) if (matches(rule, column, cell)) return true;
    return !*cell;
}

/* Columns whose words should be understood, and what is assumed when they are not; null: nothing
 * can be. */
static int assume(struct batch_row *r, const struct tsv *t, int at, struct err *err)
{
    const char *column, *key;
    json_t *settings, *value;

    json_object_foreach(json_object_get(r->publications, "otherwise"), column, settings)
    {
        const char *cell = batch_cell(t, at, column);
        if (is_known(json_object_get(r->publications, "words"), column, cell))
            continue;
        if (json_is_null(settings))
            return err_set(err, "%s \"%s\" is not known", column, cell);
        json_object_foreach(settings, key, value)
            batch_remark(r, "%s \"%s\" is not known: %s=%s is assumed", column, cell, key,
                         json_string_value(value));
        if (set_all(&r->recipe, &r->mesh, settings, err) < 0)
            return -1;
    }
    return 0;
}

/* What the source sets for all its rows, and its recipes for some. */
static int set_recipes(struct batch_row *r, struct err *err)
{
    json_t *publication, *recipe;
    size_t at = 0, i;

    while ((publication = next_of(r, &at)) != NULL) {
        if (set_all(&r->recipe, &r->mesh, json_object_get(publication, "set"), err) < 0)
            return -1;
        json_array_foreach(json_object_get(publication, "recipes"), i,
                           recipe) if (is_recipe_of(r, recipe) &&
                                       set_all(&r->recipe, &r->mesh, json_object_get(recipe, "set"),
                                               err) < 0) return -1;
    }
    return 0;
}

/* "ETP 4" or "etp=4" anywhere in the notes. */
static int etp_of(const char *notes)
{
    static const char *const before[] = {"ETP ", "etp="};

    for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
        const char *found = strstr(notes, before[i]);
        if (found)
            return (int)strtol(found + strlen(before[i]), NULL, 10);
    }
    return 0;
}

/* "fp8/nvfp4?": the second, of enum dtype; -1: there is none. */
static int other_dtype(const char *cell)
{
    const char *slash = strchr(cell, '/');
    char word[16];

    if (!slash || !strchr(slash, '?'))
        return -1;
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(slash + 1, "?"), slash + 1);
    return recipe_word("dtype", word, recipe_name.dtype, DTYPE_COUNT, NULL);
}

/* r->read_bytes and r->reads: the cell, and what its source's GB are and were read with. */
static int take_reading(struct batch_row *r, const struct tsv *t, int at, struct err *err)
{
    const char *cell = batch_cell(t, at, "memory_read_GB");
    const json_t *one, *memory = NULL;
    struct err why;
    size_t next = 0;

    cell = *cell ? cell : batch_cell(t, at, "memory_GB");
    r->reads = MEMORY_DEVICE;
    while ((one = next_of(r, &next)) != NULL && !memory)
        memory = json_object_get(one, "memory");
    if (memory)
        r->reads =
            recipe_word("memory", text_of(memory, "reads"), memory_kind_name, MEMORY_KINDS, NULL);
    if (*cell && units_double(&r->read_bytes, cell, 1e-3, 1e6, &why) < 0)
        return err_set(err, "memory: %s", why.text);
    r->read_bytes *= memory ? json_number_value(json_object_get(memory, "gb")) : 1e9;
    return 0;
}

int batch_words(struct batch_row *r, const struct tsv *t, int at, struct err *err)
{
    json_t *rule;
    size_t i;

    if (assume(r, t, at, err) < 0 || set_recipes(r, err) < 0 || take_reading(r, t, at, err) < 0)
        return -1;
    json_array_foreach(json_object_get(r->publications, "words"), i, rule)
    {
        const char *column = text_of(rule, "column"), *remark = text_of(rule, "remark");
        if (!matches(rule, column, batch_cell(t, at, column)))
            continue;
        if (*remark)
            batch_remark(r, "%s", remark);
        r->odd |= json_is_true(json_object_get(rule, "odd"));
        if (set_all(&r->recipe, &r->mesh, json_object_get(rule, "set"), err) < 0)
            return -1;
    }
    r->etp = etp_of(batch_cell(t, at, "notes"));
    r->other_dtype = other_dtype(r->dtype);
    return 0;
}
