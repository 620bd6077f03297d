/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/matrix_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/nic.h"

/* --- rows: long lists of small integers that repeat from host to host, as short JSON.
 *
 * A list is cut into rows of equal length (the endpoints of one host); consecutive rows that are
 * equal, or that grow by a constant, become one run [rows, value or [values of the first row],
 * step].  100,000 coordinates of 25,000 hosts in 1,389 racks become 1,389 runs of racks and one run
 * of hosts. --- */

/* True if row b continues row a after `distance` rows at this step.  Unknown (-1) coordinates do not
 * grow. */
static bool continues(const int *a, const int *b, int row, long distance, int step)
{
    for (int i = 0; i < row; i++)
        if (b[i] != a[i] + distance * step || (step && (a[i] < 0 || b[i] < 0)))
            return false;
    return true;
}

static json_t *run(const int *first, int row, int rows, int step)
{
    json_t *out = json_array(), *values;
    bool same = true;

    for (int i = 1; i < row; i++)
        same = same && first[i] == first[0];
    if (same) {
        values = json_integer(first[0]);
    } else {
        values = json_array();
        for (int i = 0; i < row; i++)
            json_array_append_new(values, json_integer(first[i]));
    }
    json_array_append_new(out, json_integer(rows));
    json_array_append_new(out, values);
    if (step)
        json_array_append_new(out, json_integer(step));
    return out;
}

/* row divides n; new reference */
json_t *rows_pack(const int *v, int n, int row)
{
    json_t *out = json_array();
    int rows = n / row;

    for (int at = 0, len; at < rows; at += len) {
        const int *first = v + (long)at * row;
        int step = at + 1 < rows ? first[row] - first[0] : 0;
        for (len = 1; at + len < rows; len++)
            if (!continues(first, first + (long)len * row, row, len, step))
                break;
        json_array_append_new(out, run(first, row, len, len > 1 ? step : 0));
    }
    return out;
}

/* One integer of a run. */
static int take(json_t *value, long long min, long long max, const char *what, long long *out,
                struct err *err)
{
    if (!json_is_integer(value))
        return err_data(err, "the %s is not an integer", what);
    *out = json_integer_value(value);
    if (*out < min || *out > max)
        return err_data(err, "the %s %lld is outside %lld..%lld", what, *out, min, max);
    return 0;
}

/* Set *rows to the number of rows of the run. */
static int unpack_run(int *v, long left, const struct rows *r, json_t *run, long *rows,
                      struct err *err)
{
    json_t *values = json_array_get(run, 1);
    long long count, step = 0, x;

    if (take(json_array_get(run, 0), 1, left, "number of rows", &count, err) < 0)
        return -1;
    if (json_array_size(run) == 3 &&
        take(json_array_get(run, 2), -(1 << 20), 1 << 20, "step", &step, err) < 0)
        return -1;
    if (json_is_array(values) && json_array_size(values) != (size_t)r->row)
        return err_data(err, "%zu values where a row has %d", json_array_size(values), r->row);
    for (int i = 0; i < r->row; i++) {
        json_t *value = json_is_array(values) ? json_array_get(values, (size_t)i) : values;
        if (take(value, r->min, r->max, "value", &x, err) < 0)
            return -1;
        long long last = x + (count - 1) * step;
        if (last < (step ? 0 : r->min) || last > r->max)
            return err_data(err, "its last value %lld is outside %d..%d", last, r->min, r->max);
        for (long k = 0; k < count; k++)
            v[k * r->row + i] = (int)(x + k * step);
    }
    *rows = (long)count;
    return 0;
}

int rows_unpack(int *v, int n, const struct rows *r, const char *where, struct err *err)
{
    long left = n / r->row, rows = 0;

    if (!json_is_array(r->list))
        return err_data(err, "%s is not a list of runs", where);
    for (size_t i = 0; i < json_array_size(r->list); i++) {
        json_t *run = json_array_get(r->list, i);
        size_t parts = json_array_size(run);
        if (!json_is_array(run) || parts < 2 || parts > 3)
            return err_data(err, "%s[%d] is not [rows, values] or [rows, values, step]", where,
                            (int)i);
        if (unpack_run(v, left, r, run, &rows, err) < 0)
            return err_wrap(err, "%s[%d]", where, (int)i);
        v += rows * r->row;
        left -= rows;
    }
    return left == 0 ? 0 : err_data(err, "%s: %ld rows are missing", where, left);
}

/* --- coordinates --- */

/* The row length for a list whose i-th item belongs to owner[i]: items per owner where owners come
 * in blocks of one size, else 1. */
static int rows_length(const int *owner, int n)
{
    int row = 0;

    while (row < n && owner[row] == owner[0])
        row++;
    if (row == 0 || n % row)
        return 1;
    for (int i = 0; i < n; i++)
        if (owner[i] != owner[i - i % row] || (i % row == 0 && i && owner[i] == owner[i - 1]))
            return 1;
    return row;
}

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

static int add_name(struct topo *t, enum level level, const char *name, const char *where,
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
            rc = add_name(t, level, name[i], where, err);
        hostlist_free(name, count);
        return rc;
    }
    if (!json_is_array(names))
        return err_data(err, "%s is neither a host list nor a list of names", where);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *one = json_string_value(json_array_get(names, i));
        if (!one)
            return err_data(err, "%s[%zu] is not a name", where, i);
        if (add_name(t, level, one, where, err) < 0)
            return -1;
    }
    return 0;
}

/* --- coordinates --- */

static enum source level_source(const struct topo *t, int level)
{
    for (int i = 0; i < t->endpoints; i++)
        if (topo_at(t, i, level) >= 0)
            return t->endpoint[i].source[level];
    return SOURCE_NONE;
}

static json_t *level_pack(const struct topo *t, int level, int row, int *scratch)
{
    for (int i = 0; i < t->endpoints; i++)
        scratch[i] = topo_at(t, i, level);
    return json_pack(
        "{s:o, s:s, s:o}", "names", names_pack(t->group[level].name, t->group[level].count),
        "source", source_name[level_source(t, level)], "at", rows_pack(scratch, t->endpoints, row));
}

/* "names", "source" and "at" of a level. */
static int take_level(json_t *value, const char *where, json_t **names, int *source, json_t **runs,
                      struct err *err)
{
    const char *text;

    if (json_take(value, where, err, "{s:o, s:s, s:o}", "names", names, "source", &text, "at",
                  runs) < 0)
        return -1;
    *source = source_find(text);
    return *source < 0 ? err_data(err, "%s.source: \"%s\" is no source", where, text) : 0;
}

static int level_unpack(struct topo *t, int level, json_t *value, int row, int *scratch,
                        const char *where, struct err *err)
{
    char at[JSON_WHERE];
    json_t *names, *runs;
    int source;

    if (take_level(value, where, &names, &source, &runs, err) < 0 ||
        names_unpack(t, level, names, where_at(at, "%s.names", where), err) < 0 ||
        rows_unpack(scratch, t->endpoints, &(struct rows){runs, row, -1, t->group[level].count - 1},
                    where_at(at, "%s.at", where), err) < 0)
        return -1;
    for (int i = 0; i < t->endpoints; i++)
        if (scratch[i] >= 0) {
            t->endpoint[i].place.at[level] = scratch[i];
            t->endpoint[i].source[level] = (unsigned char)source;
        }
    return 0;
}

enum { KINDS_MAX = 65536 }; /* different devices or NICs */

/* --- devices: each different one once, then which endpoint has which --- */

static int read_kinds(json_t *kinds, const char *where, json_read_fn *read, void *whole,
                      struct err *err)
{
    char at[JSON_WHERE];

    where_at(at, "%s.kinds", where);
    if (!json_is_array(kinds) || json_array_size(kinds) > KINDS_MAX)
        return err_data(err, "%s is not a list of at most %d", at, KINDS_MAX);
    return json_each(kinds, at, read, whole, err);
}

/* The index of one in the list, looked for from `from` on, or appended; takes over one. */
static int kind_index(json_t *list, json_t *one, int from)
{
    size_t n = json_array_size(list);

    for (size_t k = 0; k < n; k++) {
        size_t i = ((size_t)from + k) % n;
        if (json_equal(json_array_get(list, i), one)) {
            json_decref(one);
            return (int)i;
        }
    }
    json_array_append_new(list, one);
    return (int)n;
}

static json_t *device_pack(const struct endpoint *e)
{
    return json_pack("{s:s, s:s}", "kind", endpoint_kind_name[e->kind], "model", e->model);
}

static bool device_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->kind == b->kind && !strcmp(a->model, b->model);
}

static json_t *devices_pack(const struct topo *t, int row, int *scratch)
{
    json_t *list = json_array();

    for (int i = 0; i < t->endpoints; i++)
        scratch[i] = i && device_same(&t->endpoint[i], &t->endpoint[i - 1])
                         ? scratch[i - 1]
                         : kind_index(list, device_pack(&t->endpoint[i]), i ? scratch[i - 1] : 0);
    return json_pack("{s:o, s:o}", "kinds", list, "at", rows_pack(scratch, t->endpoints, row));
}

struct devices {
    struct endpoint *kind;
    int kinds;
};

static int read_device(void *whole, json_t *value, const char *where, struct err *err)
{
    struct devices *d = whole;
    struct endpoint one = {.kind = ENDPOINT_CPU};
    const char *kind, *model;

    if (json_take(value, where, err, "{s:s, s:s}", "kind", &kind, "model", &model) < 0)
        return -1;
    while (one.kind <= ENDPOINT_GPU && strcmp(endpoint_kind_name[one.kind], kind))
        one.kind++;
    if (one.kind > ENDPOINT_GPU || strlen(model) >= sizeof(one.model))
        return err_data(err, "%s: \"%s\", \"%s\" is no device", where, kind, model);
    memcpy(one.model, model, strlen(model) + 1);
    MEM_PUSH(d->kind, d->kinds) = one;
    return 0;
}

static int devices_unpack(struct topo *t, json_t *value, int row, int *scratch, const char *where,
                          struct err *err)
{
    struct devices d = {NULL, 0};
    char at[JSON_WHERE];
    json_t *kinds, *runs;

    if (json_take(value, where, err, "{s:o, s:o}", "kinds", &kinds, "at", &runs) < 0)
        return -1;
    int rc = read_kinds(kinds, where, read_device, &d, err);
    if (rc == 0)
        rc = rows_unpack(scratch, t->endpoints, &(struct rows){runs, row, 0, d.kinds - 1},
                         where_at(at, "%s.at", where), err);
    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        t->endpoint[i].kind = d.kind[scratch[i]].kind;
        memcpy(t->endpoint[i].model, d.kind[scratch[i]].model, sizeof(d.kind->model));
    }
    free(d.kind);
    return rc;
}

/* --- NICs likewise --- */

static const char *const layer_name[] = {"unknown", "ethernet", "infiniband"};

struct nic_row {
    struct nic nic;
    const char *name;
};

static const struct json_member nic_members[] = {
    JSON_ROW("name", LOANED, struct nic_row, name),
    JSON_ROW("layer", WORD, struct nic_row, nic.layer, JSON_WORDS(layer_name),
             .what = "link layer"),
    JSON_ROW("rate_Bps", NUMBER, struct nic_row, nic.rate_Bps, .max = 1e15),
    JSON_ROW("up", FLAG, struct nic_row, nic.up),
    JSON_ROW("rdma", FLAG, struct nic_row, nic.rdma),
    JSON_ROW("numa", INT, struct nic_row, nic.numa),
    JSON_ROW("source", WORD, struct nic_row, nic.source, JSON_WORDS(source_name), .what = "source"),
    {.key = NULL},
};

static json_t *nics_pack(const struct topo *t, int row)
{
    int *v = mem_calloc((size_t)t->nics, sizeof(*v));
    int *nearest = mem_calloc((size_t)t->endpoints, sizeof(*nearest));
    json_t *list = json_array();

    for (int i = 0; i < t->nics; i++)
        v[i] = t->nic[i].host;
    int per_host = rows_length(v, t->nics);
    json_t *hosts = rows_pack(v, t->nics, per_host);
    for (int i = 0; i < t->nics; i++)
        v[i] =
            kind_index(list, json_write(nic_members, &(struct nic_row){t->nic[i], t->nic[i].name}),
                       i ? v[i - 1] + 1 : 1);
    for (int i = 0; i < t->endpoints; i++)
        nearest[i] = t->endpoint[i].nic;
    json_t *out = json_pack("{s:i, s:i, s:o, s:o, s:o, s:o}", "count", t->nics, "row", per_host,
                            "kinds", list, "at", rows_pack(v, t->nics, per_host), "host", hosts,
                            "nearest", rows_pack(nearest, t->endpoints, row));
    free(v);
    free(nearest);
    return out;
}

struct nic_kinds {
    struct nic *kind;
    int kinds;
};

static int read_nic(void *whole, json_t *value, const char *where, struct err *err)
{
    struct nic_kinds *k = whole;
    struct nic_row row = {.name = NULL};
    struct nic *n = &row.nic;

    if (json_read(value, where, nic_members, &row, err) < 0)
        return -1;
    if (strlen(row.name) >= sizeof(n->name) || n->numa < -1 || n->numa > 65535)
        return err_data(err, "%s: name \"%s\" or NUMA node %d out of range", where, row.name,
                        n->numa);
    memcpy(n->name, row.name, strlen(row.name) + 1);
    MEM_PUSH(k->kind, k->kinds) = *n;
    return 0;
}

/* "nics": lists of `count` NICs in rows. */
struct nic_lists {
    json_t *kinds, *runs, *hosts;
    int count, row;
};

static int nics_fill(struct topo *t, const struct nic_lists *l, enum matrix_depth depth,
                     const char *where, struct err *err)
{
    struct nic_kinds k = {NULL, 0};
    int *v = mem_calloc((size_t)l->count, sizeof(*v)),
        *host = mem_calloc((size_t)l->count, sizeof(*v));
    char at[JSON_WHERE];
    int rc = read_kinds(l->kinds, where, read_nic, &k, err);

    if (rc == 0)
        rc = rows_unpack(v, l->count, &(struct rows){l->runs, l->row, 0, k.kinds - 1},
                         where_at(at, "%s.at", where), err);
    if (rc == 0)
        rc = rows_unpack(host, l->count, &(struct rows){l->hosts, l->row, 0, t->hosts - 1},
                         where_at(at, "%s.host", where), err);
    if (rc == 0)
        t->nics = l->count;
    for (int i = 0; i < l->count && rc == 0 && depth == MATRIX_WHOLE; i++) {
        t->nic = mem_grow(t->nic, (size_t)i, sizeof(*t->nic));
        t->nic[i] = k.kind[v[i]];
        t->nic[i].host = host[i];
    }
    free(k.kind);
    free(v);
    free(host);
    return rc;
}

static int nics_unpack(struct topo *t, json_t *value, int row, enum matrix_depth depth,
                       int *scratch, const char *where, struct err *err)
{
    char at[JSON_WHERE];
    json_t *nearest;
    struct nic_lists l;

    if (json_take(value, where, err, "{s:i, s:i, s:o, s:o, s:o, s:o}", "count", &l.count, "row",
                  &l.row, "kinds", &l.kinds, "at", &l.runs, "host", &l.hosts, "nearest",
                  &nearest) < 0)
        return -1;
    if (l.count < 0 || l.count > PLACES_MAX || l.row < 1 || l.count % l.row)
        return err_data(err, "%s: %d NICs in rows of %d", where, l.count, l.row);
    if (nics_fill(t, &l, depth, where, err) < 0 ||
        rows_unpack(scratch, t->endpoints, &(struct rows){nearest, row, -1, l.count - 1},
                    where_at(at, "%s.nearest", where), err) < 0)
        return -1;
    for (int i = 0; i < t->endpoints; i++)
        t->endpoint[i].nic = scratch[i];
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

static int read_unseen(void *whole, json_t *value, const char *where, struct err *err)
{
    const char *what, *why;

    if (json_take(value, where, err, "{s:s, s:s}", "what", &what, "why", &why) < 0)
        return -1;
    topo_unseen(whole, what, "%s", why);
    return 0;
}

static int unseen_unpack(struct topo *t, json_t *list, const char *where, struct err *err)
{
    char at[JSON_WHERE];

    where_at(at, "%s.unseen", where);
    if (!json_is_array(list) || json_array_size(list) > 1000)
        return err_data(err, "%s is not a list of at most 1000", at);
    return json_each(list, at, read_unseen, t, err);
}

json_t *places_pack(const struct topo *t)
{
    int *scratch = mem_calloc((size_t)t->endpoints, sizeof(*scratch));
    json_t *levels = json_object();

    for (int i = 0; i < t->endpoints; i++)
        scratch[i] = topo_at(t, i, LEVEL_HOST);
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
    char at[JSON_WHERE];
    int source;

    where_at(at, "%s.levels.host", where);
    if (!host)
        return err_data(err, "%s is missing", at);
    if (take_level(host, at, &names, &source, &runs, err) < 0 ||
        names_unpack(t, LEVEL_HOST, names, at, err) < 0 ||
        rows_unpack(scratch, count, &(struct rows){runs, row, 0, t->hosts - 1}, at, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        topo_add_endpoint(t, scratch[i], ENDPOINT_CPU);
        t->endpoint[i].source[LEVEL_HOST] = (unsigned char)source;
    }
    return 0;
}

static int levels_unpack(struct topo *t, json_t *levels, int count, int row, int *scratch,
                         const char *where, struct err *err)
{
    char at[JSON_WHERE];
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

int places_unpack(struct topo *t, json_t *places, enum matrix_depth depth, const char *where,
                  struct err *err)
{
    json_t *levels, *devices, *unseen, *nics = NULL;
    char at[JSON_WHERE];
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
    if (rc == 0)
        rc = devices_unpack(t, devices, row, scratch, where_at(at, "%s.devices", where), err);
    where_at(at, "%s.nics", where);
    if (rc == 0 && nics)
        rc = nics_unpack(t, nics, row, depth, scratch, at, err);
    if (rc == 0)
        rc = unseen_unpack(t, unseen, where, err);
    free(scratch);
    return rc;
}
