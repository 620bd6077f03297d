/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_publications.c - meaning of the words in a table of published steps, and settings that its
 * sources do not state: jobs/training/publications.json. */
#include <jansson.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "calibrate/batch_impl.h"

/* --- settings --- */

#define AT(field) offsetof(struct batch_row, field)
#define NUMBER(key, field, min, max)                                                               \
    {                                                                                              \
        key, ARGUMENT_INT, AT(field), min, max, NULL, 0, NULL, NULL, 0, 0                          \
    }

const struct argument batch_argument[] = {
    {"fabric", ARGUMENT_TEXT, AT(preset), 0, 0, NULL, 0, NULL, NULL, 0, 0},
    {"preset", ARGUMENT_TEXT, AT(preset), 0, 0, NULL, 0, NULL, NULL, 0, 0},
    {"mesh-order", ARGUMENT_WORD, AT(mesh), 0, 0, order_name, ORDER_COUNT, NULL, NULL, 0, 0},
    {"flops", ARGUMENT_DOUBLE, AT(flops), 1, 1e20, NULL, 0, NULL, NULL, 0, 0},
    NUMBER("etp", etp, 1, 1 << 20),
    NUMBER("segment", segment, 1, 1 << 20),
    NUMBER("gpus-per-node", gpus_per_node, 1, 64),
    NUMBER("nvlink-domain", nvlink_domain, 1, 65536),
    {0},
};

enum { KEYS_MAX = 64 };

/* Returns a key as a bit, numbering the rows of both tables. */
static uint64_t bit_of(const char *key)
{
    const struct argument *own = argument_find(batch_argument, key);
    const struct argument *of_recipe = argument_find(recipe_argument, key);
    size_t owns = sizeof(batch_argument) / sizeof(*batch_argument);
    size_t i = own         ? (size_t)(own - batch_argument)
               : of_recipe ? owns + (size_t)(of_recipe - recipe_argument)
                           : KEYS_MAX;

    return i < KEYS_MAX ? (uint64_t)1 << i : 0;
}

static int set_one(struct batch_row *r, const char *key, const char *word, struct err *err)
{
    const struct argument *own = argument_find(batch_argument, key);

    return own ? argument_set(r, own, word, err) : recipe_set(&r->recipe, key, word, err);
}

int batch_set(struct batch_row *r, json_t *settings, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(settings, key, value)
    {
        const char *word = json_string_value(value);
        if (!word)
            return err_data(err, "\"%s\" is not a text", key);
        if (set_one(r, key, word, err) < 0)
            return -1;
    }
    return 0;
}

static uint64_t bits_of(json_t *settings)
{
    uint64_t bits = 0;
    const char *key;
    json_t *value;

    json_object_foreach(settings, key, value) bits |= bit_of(key);
    return bits;
}

/* --- rows --- */

const char *batch_cell(const struct batch_row *r, const char *column)
{
    int i = tsv_find(r->table, column);

    return i < 0 ? "" : r->table->row[r->at].cell[i];
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

/* --- data of the publications --- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

/* Returns the next publication after `at` that is the row's, or whose name is in its source; NULL:
 * none. */
static json_t *next_of(const struct batch_row *r, size_t *at)
{
    const json_t *list = json_object_get(r->publications, "publications");
    const char *said = batch_cell(r, "publication");

    while (*at < json_array_size(list)) {
        json_t *one = json_array_get(list, (*at)++);
        const char *name = text_of(one, "source");
        if (*said ? !strcmp(said, name) : strstr(r->source, name) != NULL)
            return one;
    }
    return NULL;
}

/* Preset for an unknown GPU: half way, in powers, between the slowest and the fastest of topo/gpus in
 * bf16 (H20 148 TFLOP/s, GB300 2,500).  Both are about a factor of four away, which the 90 % interval
 * covers. */
static const char stand_in[] = "hgx-h100";
static const double stand_in_doubt = (4 - 1) / STATS_Z90;

void batch_machine(struct batch_row *r)
{
    const char *fabric = batch_cell(r, "internode_fabric");
    json_t *one, *build;
    size_t i, at = 0;

    json_array_foreach(json_object_get(r->publications, "hardware"), i, one)
    {
        bool is = !strcmp(text_of(one, "hardware"), r->hardware);
        if (!r->preset && is && strstr(fabric, text_of(one, "fabric")))
            r->preset = text_of(one, "preset");
    }
    while ((build = next_of(r, &at)) != NULL) {
        json_t *bytes = json_object_get(json_object_get(build, "memory_bytes"), r->hardware);
        r->gpu_bytes = bytes ? json_number_value(bytes) : r->gpu_bytes;
    }
    if (!r->preset && fabric_shipped(r->hardware))
        r->preset = r->hardware;
    if (r->preset)
        return;
    r->preset = stand_in;
    r->machine_doubt = stand_in_doubt;
    r->odd = true;
    batch_remark(r,
                 "hardware \"%s\" is not known: %s stands for it, and the interval for what GPUs "
                 "there are",
                 r->hardware, stand_in);
}

/* "mosaicml/llm-foundry@061f2c7 scripts/..." becomes "mosaicml/llm-foundry", and "[group]
 * publisher: ..." becomes "publisher". */
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
    const char *said = batch_cell(r, "release");
    size_t at = 0;

    r->released = *said != '\0';
    snprintf(r->release, BATCH_RELEASE, "%.*s", BATCH_RELEASE - 2, *said ? said : r->source);
    while (!*said && !begin && (one = next_of(r, &at)) != NULL) {
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

/* Returns the value of a key in the publication of the row's source; "": none. */
static const char *publication_says(const struct batch_row *r, const char *key)
{
    const json_t *one, *text = NULL;
    size_t at = 0;

    while (!text && (one = next_of(r, &at)) != NULL)
        text = json_object_get(one, key);
    return text ? json_string_value(text) : "";
}

bool batch_counts_causal(const struct batch_row *r)
{
    return strcmp(publication_says(r, "flops"), "full") != 0;
}

const char *batch_fits_by(const struct batch_row *r)
{
    const char *by = publication_says(r, "fits_by");

    return *by ? by : NULL;
}

/* True if `word` is in the list.  A missing list contains every word. */
static bool listed(const json_t *list, const char *word)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) if (!strcmp(json_string_value(one), word)) return true;
    return !list;
}

/* Order of versions: numbers in order, and more of them come later: "26.02.01" after "26.02". */
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

/* True if the row's release is between the recipe's first and the one after its last. */
static bool is_release_of(const struct batch_row *r, const json_t *recipe)
{
    const char *since = text_of(recipe, "since"), *before = text_of(recipe, "before");
    const char *version = strrchr(r->release, ' ');

    version = version ? version + 1 : "";
    version += *version == 'v';
    return (!*since || version_order(version, since) >= 0) &&
           (!*before || version_order(version, before) < 0);
}

/* {"id": ["a", "b"], "tp": ["4"]}: true if each of these cells has a value of its list. */
static bool is_when(const struct batch_row *r, json_t *when)
{
    const char *column;
    json_t *list;

    json_object_foreach(when, column, list) if (!listed(list, batch_cell(r, column))) return false;
    return true;
}

static bool is_recipe_of(const struct batch_row *r, const json_t *recipe)
{
    const char *model = text_of(recipe, "model");

    return (!*model || !strcmp(r->model, model)) && is_release_of(r, recipe) &&
           listed(json_object_get(recipe, "hardware"), r->hardware) &&
           listed(json_object_get(recipe, "dtype"), r->dtype) &&
           is_when(r, json_object_get(recipe, "when"));
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

/* Columns whose words must be understood, and the assumption if they are not; null: none is
 * possible. */
static int assume(struct batch_row *r, struct err *err)
{
    const char *column, *key;
    json_t *settings, *value;

    json_object_foreach(json_object_get(r->publications, "otherwise"), column, settings)
    {
        const char *cell = batch_cell(r, column);
        const struct argument *a = argument_find(recipe_argument, column);
        if (is_known(json_object_get(r->publications, "words"), column, cell) ||
            (a && a->kind == ARGUMENT_WORD && recipe_word("", cell, a->words, a->count, NULL) >= 0))
            continue;
        if (json_is_null(settings))
            return err_set(err, "%s \"%s\" is not known", column, cell);
        json_object_foreach(settings, key, value)
            batch_remark(r, "%s \"%s\" is not known: %s=%s is assumed", column, cell, key,
                         json_string_value(value));
        if (batch_set(r, settings, err) < 0)
            return -1;
    }
    return 0;
}

/* True for a cell that is empty or uncertain: settings of its publication have priority. */
static bool is_open(const char *cell)
{
    return !*cell || strchr(cell, '?') || !strncmp(cell, "unknown", 7);
}

/* Apply the words of open cells, or of the others; *said: their keys. */
static int take_words(struct batch_row *r, bool open, uint64_t *said, struct err *err)
{
    json_t *rule, *set;
    size_t i;

    json_array_foreach(json_object_get(r->publications, "words"), i, rule)
    {
        const char *column = text_of(rule, "column"), *cell = batch_cell(r, column);
        if (is_open(cell) != open || !matches(rule, column, cell))
            continue;
        set = json_object_get(rule, "set");
        *said |= bits_of(set);
        if (batch_set(r, set, err) < 0)
            return -1;
        if (!open && *text_of(rule, "remark"))
            batch_remark(r, "%s", text_of(rule, "remark"));
        r->odd |= json_is_true(json_object_get(rule, "odd"));
    }
    return 0;
}

/* Remark assumptions about open cells that nothing else has settled. */
static void remark_open(struct batch_row *r, uint64_t said)
{
    json_t *rule;
    size_t i;

    json_array_foreach(json_object_get(r->publications, "words"), i, rule)
    {
        const char *column = text_of(rule, "column"), *cell = batch_cell(r, column);
        uint64_t bits = bits_of(json_object_get(rule, "set")) | bit_of(column);
        if (is_open(cell) && matches(rule, column, cell) && !(bits & said) &&
            *text_of(rule, "remark"))
            batch_remark(r, "%s", text_of(rule, "remark"));
    }
}

/* Remark settings that a publication fills in and no cell states: '"Zoom": stack=hf'. */
static void remark_filled(struct batch_row *r, const json_t *publication, json_t *settings,
                          uint64_t cells)
{
    const char *key;
    json_t *value;
    int n = 0;

    json_object_foreach(settings, key, value)
    {
        if (bit_of(key) & cells)
            continue;
        const char *before = n++ ? " " : "";
        size_t used = strlen(r->reason);
        if (!*before)
            batch_remark(r, "\"%s\": %s=%s", text_of(publication, "source"), key,
                         json_string_value(value));
        else
            snprintf(r->reason + used, sizeof(r->reason) - used, " %s=%s", key,
                     json_string_value(value));
    }
}

/* Apply the settings of the publication for all its rows, and its recipes for some; with `cells`,
 * only remark them. */
static int take_recipes(struct batch_row *r, uint64_t *said, const uint64_t *cells, struct err *err)
{
    json_t *publication, *recipe, *set;
    size_t at = 0, i;

    while ((publication = next_of(r, &at)) != NULL) {
        json_t *recipes = json_object_get(publication, "recipes");
        for (i = 0; i <= json_array_size(recipes); i++) {
            recipe = i ? json_array_get(recipes, i - 1) : publication;
            if (i && !is_recipe_of(r, recipe))
                continue;
            set = json_object_get(recipe, "set");
            if (cells) {
                remark_filled(r, publication, set, *cells);
                if (i && *text_of(recipe, "remark"))
                    batch_remark(r, "%s", text_of(recipe, "remark"));
                continue;
            }
            *said |= bits_of(set);
            r->odd |= i && json_is_true(json_object_get(recipe, "odd"));
            if (batch_set(r, set, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* Apply the columns with words of the command line.  A cell of dtype or recompute may be such a
 * word. */
static int take_columns(struct batch_row *r, uint64_t *said, struct err *err)
{
    const struct tsv *t = r->table;

    for (int i = 0; i < t->columns; i++) {
        const char *key = t->name[i], *cell = t->row[r->at].cell[i];
        const struct argument *a = argument_find(recipe_argument, key);
        bool words = a && (a->at == offsetof(struct recipe, dtype) ||
                           a->at == offsetof(struct recipe, recompute));
        if (!*cell || (!a && !argument_find(batch_argument, key)) ||
            (words && recipe_word("", cell, a->words, a->count, NULL) < 0))
            continue;
        struct err why;
        if (set_one(r, key, cell, &why) < 0)
            return err_set(err, "column %s", why.text);
        *said |= bit_of(key);
    }
    return 0;
}

/* Returns the second dtype of "fp8/nvfp4?", of enum dtype; -1: none. */
static int other_dtype(const char *cell)
{
    const char *slash = strchr(cell, '/');
    char word[16];

    if (!slash || !strchr(slash, '?'))
        return -1;
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(slash + 1, "?"), slash + 1);
    return recipe_word("dtype", word, recipe_name.dtype, DTYPE_COUNT, NULL);
}

const char *const batch_memory_kind[MEMORY_KINDS] = {"device", "reserved", "allocated"};

/* Set r->read_bytes and r->reads from the cell, and from the kind of reading and size of GB in its
 * source. */
static int take_reading(struct batch_row *r, struct err *err)
{
    const char *cell = batch_cell(r, "memory_read_GB");
    const json_t *one, *memory = NULL;
    struct err why;
    size_t next = 0;

    cell = *cell ? cell : batch_cell(r, "memory_GB");
    r->reads = MEMORY_DEVICE;
    while ((one = next_of(r, &next)) != NULL && !memory)
        memory = json_object_get(one, "memory");
    if (memory)
        r->reads =
            recipe_word("memory", text_of(memory, "reads"), batch_memory_kind, MEMORY_KINDS, NULL);
    if (*cell && units_double(&r->read_bytes, cell, 1e-3, 1e6, &why) < 0)
        return err_set(err, "memory: %s", why.text);
    r->read_bytes *= memory ? json_number_value(json_object_get(memory, "gb")) : 1e9;
    return 0;
}

int batch_words(struct batch_row *r, struct err *err)
{
    uint64_t open = 0, filled = 0, cells = 0;

    if (assume(r, err) < 0 || take_words(r, true, &open, err) < 0 ||
        take_recipes(r, &filled, NULL, err) < 0 || take_words(r, false, &cells, err) < 0 ||
        take_columns(r, &cells, err) < 0 || take_reading(r, err) < 0)
        return -1;
    remark_open(r, filled | cells);
    r->other_dtype = bit_of("dtype") & (filled | cells) ? -1 : other_dtype(r->dtype);
    return take_recipes(r, &filled, &cells, err);
}
