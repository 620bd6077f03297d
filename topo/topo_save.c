/* SPDX-License-Identifier: BSD-3-Clause */
/* One row per line: tables of 100,000 endpoints stay readable with less and small on disk. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/net.h"
#include "topo/topo_impl.h"

/* --- the file --- */

static void put(FILE *f, json_t *value)
{
    json_dumpf(value, f, TOPO_JSON);
    json_decref(value);
}

static void put_key(FILE *f, const char *key, json_t *value)
{
    fprintf(f, ",\n \"%s\": ", key);
    put(f, value);
}

/* Text before the rows of a table; the caller frees. */
static char *begin_table(const struct topo_rows *r)
{
    json_t *names = json_array();

    for (int i = 0; i < r->columns; i++)
        json_array_append_new(names, json_string(r->column[i].name));
    char *list = json_dumps(names, TOPO_JSON),
         *begin = mem_printf(",\n \"%s\": {\"columns\": %s, \"rows\": [\n  ", r->key, list);
    free(list);
    json_decref(names);
    return begin;
}

static void put_row(struct topo_writer *w, const struct topo_rows *r, const void *from, int i)
{
    const char *array;

    if (r->row) {
        r->row(w, i);
        return;
    }
    memcpy(&array, (const char *)from + r->array, sizeof(array));
    topo_writer_row(w, r->column, r->columns, array + (size_t)i * r->size);
}

/* Write one row per line.  A table without rows is left out, unless every file has it. */
static void put_table(struct topo_writer *w, const struct topo_rows *r)
{
    const void *from = r->net ? (const void *)w->t->net : w->t;
    char *begin = begin_table(r);
    int count = 0;

    if (from)
        memcpy(&count, (const char *)from + r->count, sizeof(count));
    w->before = begin;
    for (int i = 0; i < count; i++)
        put_row(w, r, from, i);
    if (w->before == begin && r->always && from)
        fprintf(w->f, "%.*s", (int)strlen(begin) - 3, begin); /* no empty line for rows */
    if (w->before != begin || (r->always && from))
        fputs("]}", w->f);
    free(begin);
}

/* Returns a new reference. */
static json_t *same_json(unsigned mask)
{
    json_t *same = json_array();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (mask >> l & 1)
            json_array_append_new(same, json_string(level_name[l]));
    return same;
}

static json_t *tiers_json(const struct topo *t)
{
    json_t *tiers = json_array();

    for (int i = 0; i < t->tiers; i++)
        json_array_append_new(tiers, json_pack("{s:s, s:o}", "name", t->tier[i].name, "same",
                                               same_json(t->tier[i].same)));
    return tiers;
}

static json_t *levels_json(const struct topo *t)
{
    json_t *levels = json_object();

    for (int l = 0; l < LEVEL_PLACES; l++) {
        json_t *names = json_array();
        for (int i = 0; l != LEVEL_HOST && i < t->group[l].count; i++)
            json_array_append_new(names, topo_text_json(t->group[l].name[i]));
        if (l != LEVEL_HOST)
            json_object_set(levels, level_name[l], names);
        json_decref(names);
    }
    return levels;
}

static void write_topo(FILE *f, const struct topo *t)
{
    struct topo_writer w = {
        .t = t, .f = f, .models.values = json_array(), .sources.values = json_array()};
    json_t *unseen = json_array();

    for (int i = 0; i < t->unseens; i++)
        json_array_append_new(unseen,
                              json_pack("{s:o, s:o}", "what", topo_text_json(t->unseen[i].what),
                                        "why", topo_text_json(t->unseen[i].why)));
    fprintf(f, "{\"format\": \"%s\", \"version\": %d, \"" SEAL_KEY "\": \"" SEAL_EMPTY "\"",
            TOPO_FORMAT, TOPO_VERSION);
    put_key(f, "provenance", json_provenance());
    put_key(f, "fabric", topo_text_json(t->fabric));
    put_key(f, "tiers", tiers_json(t));
    put_key(f, "unseen", unseen);
    put_key(f, "levels", levels_json(t));
    for (int i = 0; i < ROWS_TABLES; i++)
        put_table(&w, topo_rows[i]);
    put_key(f, "models", w.models.values);
    put_key(f, "sources", w.sources.values);
    if (t->nccl)
        put_key(f, "nccl", json_incref(t->nccl));
    if (t->mpi)
        put_key(f, "mpi", json_incref(t->mpi));
    fputs("\n}\n", f);
}

/* Text of the file, without its seal. */
static char *text_of(const struct topo *t, size_t *len)
{
    char *text;
    FILE *f = mem_stream(&text, len);

    write_topo(f, t);
    mem_stream_end(f);
    return text;
}

char *topo_text(const struct topo *t)
{
    size_t len;
    char *text = text_of(t, &len);

    seal_set(text, len);
    return text;
}

int topo_save(const struct topo *t, const char *path, struct err *err)
{
    size_t len;
    char *text = text_of(t, &len);
    int rc = json_save_text(text, len, path, err);

    free(text);
    return rc;
}
