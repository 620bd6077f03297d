/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/places_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/json.h"
#include "base/mem.h"
#include "cost/rows.h"
#include "cost/where.h"

/* --- names: one host list, or a list where a name has characters that host lists give a meaning
 * --- */

static json_t *names_pack(char *const *name, int count)
{
    for (int i = 0; i < count; i++)
        if (!*name[i] || strpbrk(name[i], "[],")) {
            json_t *list = json_array();
            for (int k = 0; k < count; k++)
                json_array_append_new(list, json_string(name[k]));
            return list;
        }
    char *folded = hostlist_fold(name, count);
    json_t *out = json_string(folded);
    free(folded);
    return out;
}

static int names_add(struct topo *t, enum level level, const char *name, const char *where,
                     struct err *err)
{
    int before = t->group[level].count;

    if (level == LEVEL_HOST)
        topo_add_host(t, name);
    else
        topo_add_group(t, level, name);
    if (t->group[level].count == before)
        return err_data(err, "%s: the name \"%s\" appears twice", where, name);
    if (t->group[level].count > PLACES_MAX)
        return err_data(err, "%s: more than %d names", where, PLACES_MAX);
    return 0;
}

static int names_unpack(struct topo *t, enum level level, json_t *names, const char *where,
                        struct err *err)
{
    char **name = NULL;
    int count = 0, rc = 0;

    if (json_is_string(names)) {
        if (hostlist_expand(&name, &count, json_string_value(names), err) < 0)
            return err_wrap(err, "%s", where);
        for (int i = 0; i < count && rc == 0; i++)
            rc = names_add(t, level, name[i], where, err);
        hostlist_free(name, count);
        return rc;
    }
    if (!json_is_array(names))
        return err_data(err, "%s is neither a host list nor a list of names", where);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *one = json_string_value(json_array_get(names, i));
        if (!one)
            return err_data(err, "%s[%zu] is not a name", where, i);
        if (names_add(t, level, one, where, err) < 0)
            return -1;
    }
    return 0;
}

/* --- coordinates --- */

static int coordinate(const struct topo *t, int id, int level)
{
    return t->endpoint[id].place.at[level];
}

static enum source level_source(const struct topo *t, int level)
{
    for (int i = 0; i < t->endpoints; i++)
        if (coordinate(t, i, level) >= 0)
            return t->endpoint[i].source[level];
    return SOURCE_NONE;
}

static json_t *level_pack(const struct topo *t, int level, int row, int *scratch)
{
    for (int i = 0; i < t->endpoints; i++)
        scratch[i] = coordinate(t, i, level);
    return json_pack(
        "{s:o, s:s, s:o}", "names", names_pack(t->group[level].name, t->group[level].count),
        "source", source_name[level_source(t, level)], "at", rows_pack(scratch, t->endpoints, row));
}

static int level_unpack(struct topo *t, int level, json_t *value, int row, int *scratch,
                        const char *where, struct err *err)
{
    char at[WHERE];
    const char *source;
    json_t *names, *runs;

    if (json_take(value, where, err, "{s:o, s:s, s:o}", "names", &names, "source", &source, "at",
                  &runs) < 0)
        return -1;
    int from = source_find(source);
    if (from < 0)
        return err_data(err, "%s.source: \"%s\" is no source", where, source);
    where_at(at, "%s.names", where);
    if (names_unpack(t, level, names, at, err) < 0)
        return -1;
    where_at(at, "%s.at", where);
    if (rows_unpack(scratch, t->endpoints, row, runs, at, -1, t->group[level].count - 1, err) < 0)
        return -1;
    for (int i = 0; i < t->endpoints; i++)
        if (scratch[i] >= 0) {
            t->endpoint[i].place.at[level] = scratch[i];
            t->endpoint[i].source[level] = (unsigned char)from;
        }
    return 0;
}

/* --- all of it --- */

static json_t *unseen_pack(const struct topo *t)
{
    json_t *out = json_array();

    for (int i = 0; i < t->unseens; i++)
        json_array_append_new(
            out, json_pack("{s:s, s:s}", "what", t->unseen[i].what, "why", t->unseen[i].why));
    return out;
}

static int unseen_unpack(struct topo *t, json_t *list, const char *where, struct err *err)
{
    char at[WHERE];

    if (!json_is_array(list) || json_array_size(list) > 1000)
        return err_data(err, "%s.unseen is not a list of at most 1000", where);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *what, *why;
        where_at(at, "%s.unseen[%zu]", where, i);
        if (json_take(json_array_get(list, i), at, err, "{s:s, s:s}", "what", &what, "why", &why) <
            0)
            return -1;
        topo_unseen(t, what, "%s", why);
    }
    return 0;
}

json_t *places_pack(const struct topo *t)
{
    int *scratch = mem_calloc((size_t)t->endpoints, sizeof(*scratch));
    json_t *levels = json_object();

    for (int i = 0; i < t->endpoints; i++)
        scratch[i] = coordinate(t, i, LEVEL_HOST);
    int row = rows_length(scratch, t->endpoints);
    for (int l = 0; l < LEVEL_COUNT; l++)
        if (t->group[l].count)
            json_object_set_new(levels, level_name[l], level_pack(t, l, row, scratch));
    json_t *out =
        json_pack("{s:i, s:i, s:o, s:o, s:o}", "endpoints", t->endpoints, "row", row, "levels",
                  levels, "devices", devices_pack(t, row, scratch), "unseen", unseen_pack(t));
    if (t->nics)
        json_object_set_new(out, "nics", nics_pack(t, row));
    free(scratch);
    return out;
}

/* The host level makes the endpoints, so it is read first. */
static int hosts_unpack(struct topo *t, json_t *levels, int count, int row, int *scratch,
                        const char *where, struct err *err)
{
    json_t *host = json_object_get(levels, "host"), *names, *runs;
    char at[WHERE];
    const char *source;

    where_at(at, "%s.levels.host", where);
    if (!host)
        return err_data(err, "%s is missing", at);
    if (json_take(host, at, err, "{s:o, s:s, s:o}", "names", &names, "source", &source, "at",
                  &runs) < 0 ||
        names_unpack(t, LEVEL_HOST, names, at, err) < 0 ||
        rows_unpack(scratch, count, row, runs, at, 0, t->hosts - 1, err) < 0)
        return -1;
    int from = source_find(source);
    if (from < 0)
        return err_data(err, "%s.source: \"%s\" is no source", at, source);
    for (int i = 0; i < count; i++) {
        topo_add_endpoint(t, scratch[i], ENDPOINT_CPU);
        t->endpoint[i].source[LEVEL_HOST] = (unsigned char)from;
    }
    return 0;
}

static int levels_unpack(struct topo *t, json_t *levels, int count, int row, int *scratch,
                         const char *where, struct err *err)
{
    char at[WHERE];
    const char *key;
    json_t *value;

    if (hosts_unpack(t, levels, count, row, scratch, where, err) < 0)
        return -1;
    json_object_foreach(levels, key, value)
    {
        int level = level_find(key);
        where_at(at, "%s.levels.%s", where, key);
        if (level < 0)
            return err_data(err, "%s: no such level", at);
        if (level != LEVEL_HOST && level_unpack(t, level, value, row, scratch, at, err) < 0)
            return -1;
    }
    return 0;
}

int places_unpack(struct topo *t, json_t *places, const char *where, struct err *err)
{
    json_t *levels, *devices, *unseen, *nics = NULL;
    char at[WHERE];
    int count, row;

    topo_init(t);
    if (json_take(places, where, err, "{s:i, s:i, s:o, s:o, s:o, s?o}", "endpoints", &count, "row",
                  &row, "levels", &levels, "devices", &devices, "unseen", &unseen, "nics",
                  &nics) < 0)
        return -1;
    if (count < 1 || count > PLACES_MAX || row < 1 || count % row)
        return err_data(err, "%s: %d endpoints in rows of %d (1..%d, rows of equal length)", where,
                        count, row, PLACES_MAX);
    if (!json_is_object(levels))
        return err_data(err, "%s.levels is not an object", where);
    int *scratch = mem_calloc((size_t)count, sizeof(*scratch));
    int rc = levels_unpack(t, levels, count, row, scratch, where, err);
    where_at(at, "%s.devices", where);
    if (rc == 0)
        rc = devices_unpack(t, devices, row, scratch, at, err);
    where_at(at, "%s.nics", where);
    if (rc == 0 && nics)
        rc = nics_unpack(t, nics, row, scratch, at, err);
    if (rc == 0)
        rc = unseen_unpack(t, unseen, where, err);
    free(scratch);
    return rc;
}
