/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/sim/sim_world.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"

enum { VERSION = 1, FIELDS = 4 };
static const char folder[] = "topo/worlds";

/* --- table of kinds --- */

static const char *const rehash_words[] = {
    [REHASH_EPOCH] = "epoch", [REHASH_CAMPAIGN] = "campaign", NULL};
static const char *const level_words[] = {[TAPER_LEAF] = "leaf",
                                          [TAPER_RACK] = "rack",
                                          [TAPER_UNIT] = "unit",
                                          [TAPER_SPINE] = "spine",
                                          NULL};

/* A number of a kind, or a choice of words. */
struct field {
    const char *name;
    double lo, hi;
    size_t at; /* offset in struct sim_world; for oversubscription in struct sim_taper */
    const char *const *words; /* ends with NULL */
    bool whole;
};

#define AT(member) offsetof(struct sim_world, member)
#define IN_TAPER(member) offsetof(struct sim_taper, member)
static const char oversubscription[] = "oversubscription";
static const struct kind {
    const char *name;
    struct field field[FIELDS];
} kinds[] = {
    {"sample", {{"sigma", 0, 1, AT(sample), NULL, false}}},
    {"point", {{"sigma", 0, 1, AT(point), NULL, false}}},
    {"pair", {{"sigma", 0, 1, AT(pair), NULL, false}}},
    {"ladder", {{"sigma", 0, 1, AT(ladder), NULL, false}}},
    {"group-epoch", {{"sigma", 0, 1, AT(group_epoch), NULL, false}}},
    {"host-epoch", {{"sigma", 0, 1, AT(host_epoch), NULL, false}}},
    {"turn", {{"sigma", 0, 1, AT(turn), NULL, false}}},
    {"endpoint", {{"sigma", 0, 1, AT(endpoint), NULL, false}}},
    {"host", {{"sigma", 0, 1, AT(host), NULL, false}}},
    {"host-latency", {{"sigma", 0, 1, AT(host_latency), NULL, false}}},
    {"drift", {{"share", 0, 0.9, AT(drift), NULL, false}}},
    {"clock", {{"tick_s", 0, 1, AT(tick), NULL, false}}},
    {"stray",
     {{"share", 0, 1, AT(stray.share), NULL, false},
      {"alone", 0, 1, AT(stray.alone), NULL, false},
      {"factor", 1e-6, 1, AT(stray.factor), NULL, false}}},
    {"tail",
     {{"share", 0, 1, AT(tail.share), NULL, false},
      {"scale", 0, 100, AT(tail.scale), NULL, false},
      {"shape", 0.1, 100, AT(tail.shape), NULL, false},
      {"most", 0, 1e4, AT(tail.most), NULL, false}}},
    {"modes",
     {{"share", 0, 1, AT(modes.share), NULL, false},
      {"factor", 1e-6, 1, AT(modes.factor), NULL, false}}},
    {"jobs",
     {{"share", 0, 1, AT(jobs.share), NULL, false},
      {"least", 1e-3, 1, AT(jobs.least), NULL, false},
      {"turns", 1, 1e6, AT(jobs.turns), NULL, true}}},
    {"hashing",
     {{"uplinks", 1, 4096, AT(hashing.uplinks), NULL, true},
      {"rehash", 0, 0, AT(hashing.rehash), rehash_words, false}}},
    {"adaptive",
     {{"sigma", 0, 1, AT(adaptive.sigma), NULL, false},
      {"least", 1e-3, 1, AT(adaptive.least), NULL, false}}},
    {"pxn", {{"share", 0, 1, AT(pxn), NULL, false}}},
    {oversubscription,
     {{"level", 0, 0, IN_TAPER(level), level_words, false},
      {"of", 1, 1e4, IN_TAPER(of), NULL, true},
      {"ratio", 1, 1000, IN_TAPER(ratio), NULL, false}}},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* --- reading --- */

static int read_word(const struct field *f, json_t *value, const char *where, double *out,
                     struct err *err)
{
    const char *text = json_string_value(value);
    struct near near = {.word = text};

    if (!text)
        return err_data(err, "%s: \"%s\" is not a text", where, f->name);
    for (int i = 0; f->words[i]; i++) {
        if (!strcmp(f->words[i], text)) {
            *out = i;
            return 0;
        }
        near_try(&near, f->words[i]);
    }
    return err_data(err, "%s: unknown %s \"%s\"%s", where, f->name, text, near_text(&near));
}

/* Read the numbers of one entry of "noise"; other keys are errors. */
static int read_fields(const struct kind *k, json_t *entry, const char *where, void *into,
                       struct err *err)
{
    struct json_key key[FIELDS + 2] = {{"kind", false, 's'}, {"source", false, 's'}};
    json_t *out[FIELDS + 2];
    int n = 0, rc = 0;

    for (; n < FIELDS && k->field[n].name; n++)
        key[n + 2] = (struct json_key){k->field[n].name, false, 0};
    if (json_take_keys(entry, where, key, n + 2, out, err) < 0)
        return -1;
    if (!json_string_length(out[1]))
        return err_data(err, "%s: \"source\" is empty", where);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct field *f = &k->field[i];
        double *to = (void *)((char *)into + f->at);
        rc = f->words ? read_word(f, out[i + 2], where, to, err)
                      : json_number(entry, where, f->name, f->lo, f->hi, false, to, err);
        if (rc == 0 && f->whole && *to != floor(*to))
            rc = err_data(err, "%s: \"%s\" is %g, not a whole number", where, f->name, *to);
    }
    return rc;
}

static int find_kind(json_t *entry, const char *where, struct err *err)
{
    const char *name = json_string_value(json_object_get(entry, "kind"));
    struct near near = {.word = name};

    if (!name)
        return err_data(err, "%s: \"kind\" is missing or not a text", where);
    for (int k = 0; k < KINDS; k++) {
        if (!strcmp(kinds[k].name, name))
            return k;
        near_try(&near, kinds[k].name);
    }
    return err_data(err, "%s: unknown kind \"%s\"%s", where, name, near_text(&near));
}

static int read_entry(struct sim_world *w, json_t *entry, const char *where, bool *seen,
                      struct err *err)
{
    const int most = sizeof(w->taper) / sizeof(*w->taper);
    int k = find_kind(entry, where, err);

    if (k < 0)
        return -1;
    bool taper = kinds[k].name == oversubscription;
    if (seen[k] && !taper)
        return err_data(err, "%s: duplicate kind \"%s\"", where, kinds[k].name);
    if (taper && w->tapers == most)
        return err_data(err, "%s: more than %d of \"%s\"", where, most, oversubscription);
    seen[k] = true;
    return read_fields(&kinds[k], entry, where, taper ? (void *)&w->taper[w->tapers++] : w, err);
}

static int read_world(struct sim_world *w, json_t *root, const char *path, struct err *err)
{
    static const struct json_key key[] = {{"format", false, 's'},
                                          {"version", false, 'I'},
                                          {"name", false, 's'},
                                          {"title", false, 's'},
                                          {"noise", false, 0}};
    json_t *out[5], *entry;
    bool seen[KINDS] = {false};
    size_t i;
    int rc = 0;

    *w = (struct sim_world){.sample = 0};
    if (json_take_keys(root, path, key, 5, out, err) < 0)
        return -1;
    if (!json_is_array(out[4]))
        return err_data(err, "%s: \"noise\" is not a list", path);
    json_array_foreach(out[4], i, entry)
    {
        char *where = mem_printf("%s: noise[%zu]", path, i);
        rc = read_entry(w, entry, where, seen, err);
        free(where);
        if (rc < 0)
            break;
    }
    return rc;
}

static int unknown(const char *name, struct err *err)
{
    struct near near = {.word = name};
    char **names, *all = mem_strdup("");
    int n = file_data_names(folder, &names);

    for (int i = 0; i < n; i++) {
        all = mem_append(all, "%s%s", i ? ", " : "", names[i]);
        near_try(&near, names[i]);
    }
    err_usage(err,
              "unknown world \"%s\"%s; known: %s; or give a file with a \"/\" or \".json\" in its "
              "name",
              name, near_text(&near), all);
    free(all);
    hostlist_free(names, n);
    return -1;
}

/* Open and read a world.  The caller frees *root, also after a failure. */
static int load(struct sim_world *w, json_t **root, const char *name, struct err *err)
{
    char *path = file_data_named(folder, name);
    int rc = path ? json_open(root, path, "railgauge-world", VERSION, err) : unknown(name, err);

    if (rc == 0)
        rc = read_world(w, *root, path, err);
    free(path);
    return rc;
}

int sim_world_load(struct sim_world *w, const char *name, struct err *err)
{
    json_t *root = NULL;
    int rc = load(w, &root, name, err);

    json_decref(root);
    return rc;
}

/* --- listing --- */

void sim_world_each(name_taker *take, void *to)
{
    file_data_each(folder, take, to);
}

/* Append "  stray          share 0.05  factor 0.8: source". */
static char *list_entry(char *text, json_t *entry)
{
    const char *name, *sep = " ";
    json_t *value;

    text = mem_append(text, "  %-17s", json_string_value(json_object_get(entry, "kind")));
    json_object_foreach(entry, name, value)
    {
        if (json_is_number(value))
            text = mem_append(text, "%s%s %g", sep, name, json_number_value(value));
        else if (strcmp(name, "kind") && strcmp(name, "source"))
            text = mem_append(text, "%s%s %s", sep, name, json_string_value(value));
        else
            continue;
        sep = ", ";
    }
    return mem_append(text, ": %s\n", json_string_value(json_object_get(entry, "source")));
}

char *sim_world_list(struct err *err)
{
    char **names, *text = mem_strdup("");
    int n = file_data_names(folder, &names), rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct sim_world w;
        json_t *root = NULL, *entry;
        size_t k;
        rc = load(&w, &root, names[i], err);
        if (rc == 0)
            text = mem_append(text, "%s%-17s %s\n", i ? "\n" : "", names[i],
                              json_string_value(json_object_get(root, "title")));
        json_array_foreach(json_object_get(root, "noise"), k, entry) if (rc == 0) text =
            list_entry(text, entry);
        json_decref(root);
    }
    hostlist_free(names, n);
    if (rc == 0)
        return text;
    free(text);
    return NULL;
}
