/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/effects.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/stats.h"
#include "step/recipe.h"

const char *const effect_factor_name[EFFECT_FACTORS] = {"model",
                                                        "publisher",
                                                        "release",
                                                        "stack",
                                                        "gpu",
                                                        "model x publisher",
                                                        "model x release",
                                                        "model x generation",
                                                        "release x generation",
                                                        "release x experts",
                                                        "recipe"};
const char *const known_name[KNOWN_COUNT] = {"recipe", "model", "release", "gpu", "nothing"};

/* --- levels --- */

enum part { MODEL, PUBLISHER, RELEASE, STACK, GPU, GENERATION, DTYPE, EXPERTS, PARTS };

/* Parts of a level of each factor, in this order. */
static const unsigned parts_of[EFFECT_FACTORS] = {
    [EFFECT_MODEL] = 1u << MODEL,
    [EFFECT_PUBLISHER] = 1u << PUBLISHER,
    [EFFECT_RELEASE] = 1u << RELEASE,
    [EFFECT_STACK] = 1u << STACK,
    [EFFECT_GPU] = 1u << GPU,
    [EFFECT_MODEL_PUBLISHER] = 1u << MODEL | 1u << PUBLISHER,
    [EFFECT_MODEL_RELEASE] = 1u << MODEL | 1u << RELEASE,
    [EFFECT_MODEL_GENERATION] = 1u << MODEL | 1u << GENERATION,
    [EFFECT_RELEASE_GENERATION] = 1u << RELEASE | 1u << GENERATION,
    [EFFECT_RELEASE_EXPERTS] = 1u << RELEASE | 1u << EXPERTS,
    [EFFECT_RECIPE] = 1u << MODEL | 1u << RELEASE | 1u << GPU | 1u << DTYPE,
};

/* Cut "26.04.01" to "26.04", and that to nothing.  False: nothing to cut. */
static bool cut_version(char *release)
{
    char *version = strrchr(release, ' '), *first, *last;

    version = version ? version : release;
    first = strchr(version, '.');
    last = strrchr(version, '.');
    if (first == last)
        return false;
    *last = '\0';
    return true;
}

static bool make_level(char out[EFFECT_LEVEL], unsigned parts, const char *const part[PARTS])
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < PARTS; i++) {
        if (!(parts & 1u << i))
            continue;
        if (!part[i] || !*part[i]) {
            out[0] = '\0';
            return false;
        }
        if (used < EFFECT_LEVEL)
            used += (size_t)snprintf(out + used, EFFECT_LEVEL - used, "%s%s", used ? " | " : "",
                                     part[i]);
    }
    return true;
}

static const struct effect *find(const struct effects *e, int factor, const char *level)
{
    for (int i = 0; i < e->count; i++)
        if (e->effect[i].factor == factor && !strcmp(e->effect[i].level, level))
            return &e->effect[i];
    return NULL;
}

static void look_up(struct effect_level *l, const struct effects *e)
{
    const struct effect *found = *l->level ? find(e, l->factor, l->level) : NULL;

    l->known = found != NULL;
    l->value = found ? found->value : 0;
    l->error = found ? found->error : e->spread[l->factor];
    l->n = found ? found->n : 0;
}

void effect_publisher(char out[EFFECT_LEVEL], const char *publisher, const char *release)
{
    const char *from = publisher ? publisher : release ? release : "";
    int n = (int)(publisher ? strlen(from) : strcspn(from, " "));

    snprintf(out, EFFECT_LEVEL, "%.*s", n, from);
}

int effect_levels(struct effect_level out[EFFECT_LEVELS], const struct effects *e,
                  const struct effect_key *key)
{
    char full[EFFECT_LEVEL] = "", version[EFFECT_LEVEL], publisher[EFFECT_LEVEL] = "";
    const char *part[PARTS] = {
        key->model, publisher,       version,    key->stack,
        key->gpu,   key->generation, key->dtype, key->experts ? "experts" : "dense"};
    int n = 0;

    if (key->release)
        snprintf(full, sizeof(full), "%s", key->release);
    memcpy(version, full, sizeof(version));
    while (cut_version(version))
        ;
    effect_publisher(publisher, key->publisher, key->release);
    for (int factor = 0; factor < EFFECT_FACTORS; factor++) {
        out[n].factor = factor;
        make_level(out[n++].level, parts_of[factor], part);
    }
    for (; n < EFFECT_LEVELS && strlen(full) > strlen(version); cut_version(full)) {
        out[n].factor = EFFECT_RELEASE;
        memcpy(out[n++].level, full, sizeof(full));
    }
    for (int i = 0; i < n; i++)
        look_up(&out[i], e);
    return n;
}

/* --- sums --- */

static bool has(const struct effect_level *level, int n, enum effect_factor factor)
{
    for (int i = 0; i < n; i++)
        if (level[i].factor == (int)factor && level[i].known)
            return true;
    return false;
}

static enum known known_of(const struct effect_level *level, int n)
{
    bool stated = n > 0 && *level[EFFECT_RELEASE].level != '\0';

    if (n == 0)
        return KNOWN_RELEASE;
    if (!has(level, n, EFFECT_GPU))
        return KNOWN_NOTHING;
    if (!has(level, n, stated ? EFFECT_RELEASE : EFFECT_PUBLISHER))
        return KNOWN_GPU;
    if (!has(level, n, stated ? EFFECT_MODEL_RELEASE : EFFECT_MODEL_PUBLISHER))
        return KNOWN_RELEASE;
    return has(level, n, EFFECT_RECIPE) ? KNOWN_RECIPE : KNOWN_MODEL;
}

void effect_sum_of(struct effect_sum *s, const struct effect_level *level, int n)
{
    *s = (struct effect_sum){.known = known_of(level, n)};
    for (int i = 0; i < n; i++) {
        s->value += level[i].value;
        s->variance += level[i].error * level[i].error;
    }
}

/* --- the file --- */

void effects_none(struct effects *e)
{
    memset(e, 0, sizeof(*e));
    e->rest = 0.1;
    for (int i = 0; i < KNOWN_COUNT; i++)
        for (int k = 0; k < 2; k++)
            e->interval[i][k] = (struct effect_interval){-STATS_Z90, STATS_Z90, 0};
}

static int word(json_t *object, const char *where, const char *key, const char *const *names, int n,
                struct err *err)
{
    const char *text = json_string_value(json_object_get(object, key));
    struct err why;
    int at = recipe_word(key, text, names, n, &why);

    return at < 0 ? err_data(err, "%s: %s", where, why.text) : at;
}

static int read_factor(struct effects *e, json_t *object, const char *where, struct err *err)
{
    const char *text;
    json_t *number;

    if (json_take(object, where, err, "{s:s, s:o}", "factor", &text, "spread", &number) < 0)
        return -1;
    int factor = word(object, where, "factor", effect_factor_name, EFFECT_FACTORS, err);
    return factor < 0 ? -1 : json_number(object, where, "spread", 0, 2, 0, &e->spread[factor], err);
}

static int read_level(struct effects *e, json_t *object, const char *where, struct err *err)
{
    struct effect one = {0};
    const char *text, *level;
    json_t *number;

    if (json_take(object, where, err, "{s:s, s:s, s:o, s:o, s:i}", "factor", &text, "level", &level,
                  "value", &number, "error", &number, "n", &one.n) < 0 ||
        (one.factor = word(object, where, "factor", effect_factor_name, EFFECT_FACTORS, err)) < 0 ||
        json_number(object, where, "value", -3, 3, 0, &one.value, err) < 0 ||
        json_number(object, where, "error", 0, 2, 0, &one.error, err) < 0)
        return -1;
    if (!*level || strlen(level) >= EFFECT_LEVEL || find(e, one.factor, level))
        return err_data(err, "%s: level \"%.200s\" is %s", where, level,
                        !*level                         ? "empty"
                        : strlen(level) >= EFFECT_LEVEL ? "too long"
                                                        : "given twice");
    one.level = mem_strdup(level);
    MEM_PUSH(e->effect, e->count) = one;
    return 0;
}

static int read_interval(struct effects *e, json_t *object, const char *where, struct err *err)
{
    struct effect_interval one = {0};
    const char *text;
    json_t *number;
    int experts;

    if (json_take(object, where, err, "{s:s, s:b, s:o, s:o, s:i}", "known", &text, "experts",
                  &experts, "lo", &number, "hi", &number, "n", &one.n) < 0)
        return -1;
    int known = word(object, where, "known", known_name, KNOWN_COUNT, err);
    if (known < 0 || json_number(object, where, "lo", -20, 0, 0, &one.lo, err) < 0 ||
        json_number(object, where, "hi", 0, 20, 0, &one.hi, err) < 0)
        return -1;
    e->interval[known][experts] = one;
    return 0;
}

static int read_list(struct effects *e, json_t *list, const char *where, const char *key,
                     int (*read)(struct effects *, json_t *, const char *, struct err *),
                     struct err *err)
{
    enum { MOST = 20000 };

    if (!json_is_array(list) || json_array_size(list) > MOST)
        return err_data(err, "%s: \"%s\" is not a list of at most %d", where, key, MOST);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *at = mem_printf("%s: %s[%zu]", where, key, i);
        int rc = read(e, json_array_get(list, i), at, err);
        free(at);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int effects_read(struct effects *e, json_t *object, const char *where, struct err *err)
{
    json_t *rest, *factors, *levels, *intervals;

    if (json_take(object, where, err, "{s:o, s:o, s:o, s:o}", "rest", &rest, "factors", &factors,
                  "levels", &levels, "intervals", &intervals) < 0 ||
        json_number(object, where, "rest", 0, 2, 0, &e->rest, err) < 0 ||
        read_list(e, factors, where, "factors", read_factor, err) < 0 ||
        read_list(e, levels, where, "levels", read_level, err) < 0 ||
        read_list(e, intervals, where, "intervals", read_interval, err) < 0)
        return -1;
    return 0;
}

static json_t *lines_of(const struct effects *e, int which)
{
    json_t *list = json_array();

    for (int i = 0; which == 0 && i < EFFECT_FACTORS; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:f}", "factor", effect_factor_name[i], "spread", e->spread[i]));
    for (int i = 0; which == 1 && i < e->count; i++) {
        const struct effect *one = &e->effect[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:f, s:f, s:i}", "factor",
                                        effect_factor_name[one->factor], "level", one->level,
                                        "value", one->value, "error", one->error, "n", one->n));
    }
    for (int i = 0; which == 2 && i < 2 * KNOWN_COUNT; i++) {
        const struct effect_interval *one = &e->interval[i / 2][i % 2];
        json_array_append_new(list, json_pack("{s:s, s:b, s:f, s:f, s:i}", "known",
                                              known_name[i / 2], "experts", i % 2, "lo", one->lo,
                                              "hi", one->hi, "n", one->n));
    }
    return list;
}

void effects_write(FILE *out, const struct effects *e)
{
    static const char *const key[] = {"factors", "levels", "intervals"};

    fprintf(out, "{\n  \"rest\": %.4g", e->rest);
    for (int which = 0; which < 3; which++) {
        json_t *list = lines_of(e, which);
        fprintf(out, ",\n  \"%s\": [", key[which]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            fputs(i ? ",\n   " : "\n   ", out);
            json_dumpf(json_array_get(list, i), out, JSON_REAL_PRECISION(4));
        }
        fputs("]", out);
        json_decref(list);
    }
    fputs("\n }", out);
}

void effects_copy(struct effects *e, const struct effects *from)
{
    *e = *from;
    e->effect = mem_dup(from->effect, (size_t)from->count, sizeof(*e->effect));
    for (int i = 0; i < e->count; i++)
        e->effect[i].level = mem_strdup(from->effect[i].level);
}

void effects_free(struct effects *e)
{
    for (int i = 0; i < e->count; i++)
        free(e->effect[i].level);
    free(e->effect);
    memset(e, 0, sizeof(*e));
}
