/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and NICs of matrix.json: each different one once, then runs that say who has which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cost/places_json.h"
#include "cost/rows.h"
#include "cost/where.h"
#include "topo/host/nic.h"

static const char *const kind_names[] = {"cpu", "gpu"};
static const char *const layer_names[] = {"unknown", "ethernet", "infiniband"};

enum { KINDS_MAX = 65536 }; /* different devices or NICs */

/* --- devices: each different one once, then which endpoint has which --- */

static int device_index(json_t *list, const struct endpoint *e, int last)
{
    json_t *one = json_pack("{s:s, s:s}", "kind", kind_names[e->kind], "model", e->model);
    size_t n = json_array_size(list);

    for (size_t k = 0; k < n; k++) { /* neighbours mostly have the same */
        size_t i = ((size_t)last + k) % n;
        if (json_equal(json_array_get(list, i), one)) {
            json_decref(one);
            return (int)i;
        }
    }
    json_array_append_new(list, one);
    return (int)n;
}

static bool device_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->kind == b->kind && !strcmp(a->model, b->model);
}

json_t *devices_pack(const struct topo *t, int row, int *scratch)
{
    json_t *list = json_array();

    for (int i = 0; i < t->endpoints; i++)
        scratch[i] = i && device_same(&t->endpoint[i], &t->endpoint[i - 1])
                         ? scratch[i - 1]
                         : device_index(list, &t->endpoint[i], i ? scratch[i - 1] : 0);
    return json_pack("{s:o, s:o}", "kinds", list, "at", rows_pack(scratch, t->endpoints, row));
}

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

int devices_unpack(struct topo *t, json_t *value, int row, int *scratch, const char *where,
                   struct err *err)
{
    char at[WHERE];
    json_t *kinds, *runs;
    struct endpoint *kind;
    int rc = 0;

    if (json_take(value, where, err, "{s:o, s:o}", "kinds", &kinds, "at", &runs) < 0)
        return -1;
    int count = (int)json_array_size(kinds);
    if (!json_is_array(kinds) || json_array_size(kinds) > KINDS_MAX)
        return err_data(err, "%s.kinds is not a list of at most %d", where, KINDS_MAX);
    kind = mem_calloc((size_t)count, sizeof(*kind));
    for (int i = 0; i < count && rc == 0; i++) {
        const char *name, *model;
        where_at(at, "%s.kinds[%d]", where, i);
        rc = json_take(json_array_get(kinds, (size_t)i), at, err, "{s:s, s:s}", "kind", &name,
                       "model", &model);
        int k = rc == 0 ? name_index(kind_names, 2, name) : 0;
        if (rc == 0 && (k < 0 || strlen(model) >= sizeof(kind->model)))
            rc = err_data(err, "%s: \"%s\", \"%s\" is no device", at, name, model);
        if (rc == 0) {
            kind[i].kind = k;
            snprintf(kind[i].model, sizeof(kind[i].model), "%s", model);
        }
    }
    where_at(at, "%s.at", where);
    if (rc == 0)
        rc = rows_unpack(scratch, t->endpoints, row, runs, at, 0, count - 1, err);
    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        t->endpoint[i].kind = kind[scratch[i]].kind;
        memcpy(t->endpoint[i].model, kind[scratch[i]].model, sizeof(kind->model));
    }
    free(kind);
    return rc;
}

/* --- NICs likewise --- */

static json_t *nic_pack(const struct nic *n)
{
    return json_pack("{s:s, s:s, s:f, s:b, s:b, s:i, s:s}", "name", n->name, "layer",
                     layer_names[n->layer], "rate_Bps", n->rate_Bps, "up", n->up, "rdma", n->rdma,
                     "numa", n->numa, "source", source_name[n->source]);
}

static int nic_index(json_t *list, const struct nic *n, int last)
{
    json_t *one = nic_pack(n);
    size_t count = json_array_size(list);

    for (size_t k = 0; k < count; k++) { /* most likely the one after the last one used */
        size_t i = ((size_t)last + 1 + k) % count;
        if (json_equal(json_array_get(list, i), one)) {
            json_decref(one);
            return (int)i;
        }
    }
    json_array_append_new(list, one);
    return (int)count;
}

json_t *nics_pack(const struct topo *t, int row)
{
    int *v = mem_calloc((size_t)t->nics, sizeof(*v));
    int *nearest = mem_calloc((size_t)t->endpoints, sizeof(*nearest));
    json_t *list = json_array();

    for (int i = 0; i < t->nics; i++)
        v[i] = t->nic[i].host;
    int per_host = rows_length(v, t->nics);
    json_t *hosts = rows_pack(v, t->nics, per_host);
    for (int i = 0; i < t->nics; i++)
        v[i] = nic_index(list, &t->nic[i], i ? v[i - 1] : 0);
    for (int i = 0; i < t->endpoints; i++)
        nearest[i] = t->endpoint[i].nic;
    json_t *out = json_pack("{s:i, s:i, s:o, s:o, s:o, s:o}", "count", t->nics, "row", per_host,
                            "kinds", list, "at", rows_pack(v, t->nics, per_host), "host", hosts,
                            "nearest", rows_pack(nearest, t->endpoints, row));
    free(v);
    free(nearest);
    return out;
}

static int nic_unpack(struct nic *n, json_t *value, const char *where, struct err *err)
{
    const char *name, *layer, *source;
    json_t *rate;
    int up, rdma;

    if (json_take(value, where, err, "{s:s, s:s, s:o, s:b, s:b, s:i, s:s}", "name", &name, "layer",
                  &layer, "rate_Bps", &rate, "up", &up, "rdma", &rdma, "numa", &n->numa, "source",
                  &source) < 0 ||
        json_number(value, where, "rate_Bps", 0, 1e15, 0, &n->rate_Bps, err) < 0)
        return -1;
    int l = name_index(layer_names, 3, layer), s = source_find(source);
    if (l < 0 || s < 0)
        return err_data(err, "%s: \"%s\" is no %s", where, l < 0 ? layer : source,
                        l < 0 ? "link layer" : "source");
    if (strlen(name) >= sizeof(n->name) || n->numa < -1 || n->numa > 65535)
        return err_data(err, "%s: name \"%s\" or NUMA node %d out of range", where, name, n->numa);
    snprintf(n->name, sizeof(n->name), "%s", name);
    n->layer = l;
    n->source = s;
    n->up = up;
    n->rdma = rdma;
    return 0;
}

static int nics_fill(struct topo *t, json_t *kinds, json_t *runs, json_t *hosts, int count, int row,
                     const char *where, struct err *err)
{
    int kind_count = (int)json_array_size(kinds), rc = 0;
    struct nic *kind = mem_calloc((size_t)kind_count, sizeof(*kind));
    int *v = mem_calloc((size_t)count, sizeof(*v)), *host = mem_calloc((size_t)count, sizeof(*v));
    char at[WHERE];

    for (int i = 0; i < kind_count && rc == 0; i++) {
        where_at(at, "%s.kinds[%d]", where, i);
        rc = nic_unpack(&kind[i], json_array_get(kinds, (size_t)i), at, err);
    }
    where_at(at, "%s.at", where);
    if (rc == 0)
        rc = rows_unpack(v, count, row, runs, at, 0, kind_count - 1, err);
    where_at(at, "%s.host", where);
    if (rc == 0)
        rc = rows_unpack(host, count, row, hosts, at, 0, t->hosts - 1, err);
    for (int i = 0; i < count && rc == 0; i++) {
        MEM_PUSH(t->nic, t->nics) = kind[v[i]];
        t->nic[i].host = host[i];
    }
    free(kind);
    free(v);
    free(host);
    return rc;
}

int nics_unpack(struct topo *t, json_t *value, int row, int *scratch, const char *where,
                struct err *err)
{
    char at[WHERE];
    json_t *kinds, *runs, *hosts, *nearest;
    int count, nic_row;

    if (json_take(value, where, err, "{s:i, s:i, s:o, s:o, s:o, s:o}", "count", &count, "row",
                  &nic_row, "kinds", &kinds, "at", &runs, "host", &hosts, "nearest", &nearest) < 0)
        return -1;
    if (count < 0 || count > PLACES_MAX || nic_row < 1 || count % nic_row)
        return err_data(err, "%s: %d NICs in rows of %d", where, count, nic_row);
    if (!json_is_array(kinds) || json_array_size(kinds) > KINDS_MAX)
        return err_data(err, "%s.kinds is not a list of at most %d", where, KINDS_MAX);
    if (nics_fill(t, kinds, runs, hosts, count, nic_row, where, err) < 0)
        return -1;
    where_at(at, "%s.nearest", where);
    if (rows_unpack(scratch, t->endpoints, row, nearest, at, -1, count - 1, err) < 0)
        return -1;
    for (int i = 0; i < t->endpoints; i++)
        t->endpoint[i].nic = scratch[i];
    return 0;
}
