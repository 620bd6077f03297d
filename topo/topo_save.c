/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables are written one row a line: 100,000 endpoints stay readable with less and small on disk.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/seal.h"
#include "topo/groups.h"
#include "topo/host/gpu.h"
#include "topo/host/mnnvl.h"
#include "topo/host/nic.h"
#include "topo/net/net.h"
#include "topo/topo_impl.h"

/* Distinct values of a column that repeats: models, and the five sources of an endpoint's place. */
struct distinct {
    json_t *values;
    size_t last;
};

/* Takes over value. */
static size_t distinct_add(struct distinct *d, json_t *value)
{
    size_t n = json_array_size(d->values);

    for (size_t i = 0; i < n; i++) {
        size_t at = (d->last + i) % n;
        if (json_equal(json_array_get(d->values, at), value)) {
            json_decref(value);
            return d->last = at;
        }
    }
    json_array_append_new(d->values, value);
    return d->last = n;
}

static json_t *index_or_null(int i)
{
    return i < 0 ? json_null() : json_integer(i);
}

static json_t *number_or_null(double x)
{
    if (!(x > 0))
        return json_null();
    return x < 9e15 && x == floor(x) ? json_integer((json_int_t)x) : json_real(x);
}

static json_t *text_or_null(const char *s)
{
    json_t *j = s && *s ? json_string(s) : NULL;

    return j ? j : json_null();
}

static json_t *host_row(const struct host *h)
{
    return json_pack("[o, o, o, o, o]", text_or_null(h->name), text_or_null(h->cpu),
                     index_or_null(h->sockets ? h->sockets : -1),
                     index_or_null(h->cores ? h->cores : -1), number_or_null(h->memory_bytes));
}

static json_t *nic_row(const struct nic *n)
{
    return json_pack("[i, o, o, s, o, b, b, o, s]", n->host, text_or_null(n->name),
                     text_or_null(n->busid), link_layer_name[n->layer], number_or_null(n->rate_Bps),
                     n->up, n->rdma, index_or_null(n->numa), source_name[n->source]);
}

static json_t *endpoint_row(const struct endpoint *e, struct distinct *models,
                            struct distinct *sources)
{
    json_t *from = json_array(), *row = json_array();

    for (int l = 0; l < LEVEL_PLACES; l++)
        json_array_append_new(from, json_string(source_name[e->source[l]]));
    for (int l = 0; l < LEVEL_PLACES; l++)
        json_array_append_new(row, index_or_null(e->place.at[l]));
    json_array_append_new(row, json_integer(e->local));
    json_array_append_new(row, json_string(endpoint_kind_name[e->kind]));
    json_array_append_new(row, index_or_null(e->numa));
    json_array_append_new(row, index_or_null(e->nic));
    json_array_append_new(row, text_or_null(e->busid));
    json_array_append_new(
        row, e->model[0] ? json_integer((json_int_t)distinct_add(models, text_or_null(e->model)))
                         : json_null());
    json_array_append_new(row, json_integer((json_int_t)distinct_add(sources, from)));
    return row;
}

static void put(FILE *f, json_t *value)
{
    json_dumpf(value, f, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    json_decref(value);
}

static void put_key(FILE *f, const char *key, json_t *value)
{
    fprintf(f, ",\n \"%s\": ", key);
    put(f, value);
}

static void begin_table(FILE *f, const char *key, const char *const *columns, int count)
{
    json_t *names = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(names, json_string(columns[i]));
    fprintf(f, ",\n \"%s\": {\"columns\": ", key);
    put(f, names);
    fputs(", \"rows\": [", f);
}

static void begin_columns(FILE *f, const char *key, const struct topo_column *c, int columns)
{
    const char *names[TOPO_COLUMNS_MAX];

    topo_column_names(names, c, columns);
    begin_table(f, key, names, columns);
}

static void put_row(FILE *f, int i, json_t *row)
{
    fputs(i ? ",\n  " : "\n  ", f);
    put(f, row);
}

static json_t *tiers_json(const struct topo *t)
{
    json_t *tiers = json_array();

    for (int i = 0; i < t->tiers; i++)
        json_array_append_new(tiers, json_pack("{s:s, s:o}", "name", t->tier[i].name, "same",
                                               topo_same_json(t->tier[i].same)));
    return tiers;
}

static json_t *levels_json(const struct topo *t)
{
    json_t *levels = json_object();

    for (int l = 0; l < LEVEL_PLACES; l++) {
        json_t *names = json_array();
        for (int i = 0; l != LEVEL_HOST && i < t->group[l].count; i++)
            json_array_append_new(names, text_or_null(t->group[l].name[i]));
        if (l != LEVEL_HOST)
            json_object_set(levels, level_name[l], names);
        json_decref(names);
    }
    return levels;
}

/* Rows only for what is told; no row, no table. */
static void write_ports(FILE *f, const struct topo *t)
{
    int rows = 0;

    for (int i = 0; i < t->nics; i++)
        if (port_told(&t->nic[i])) {
            if (!rows)
                begin_columns(f, "ports", port_columns, NIC_PORT_COLUMNS);
            put_row(f, rows++, port_row(t, i));
        }
    if (rows)
        fputs("]}", f);
    rows = 0;
    for (int h = 0; h < t->hosts; h++)
        if (t->host[h].gdr[0]) {
            if (!rows)
                begin_columns(f, "gpudirect", gpudirect_columns, GPUDIRECT_COLUMNS);
            put_row(f, rows++, gpudirect_row(t, h));
        }
    if (rows)
        fputs("]}", f);
}

static void write_topo(FILE *f, const struct topo *t)
{
    struct distinct models = {json_array(), 0}, sources = {json_array(), 0};
    json_t *unseen = json_array();

    for (int i = 0; i < t->unseens; i++)
        json_array_append_new(unseen,
                              json_pack("{s:o, s:o}", "what", text_or_null(t->unseen[i].what),
                                        "why", text_or_null(t->unseen[i].why)));
    fprintf(f, "{\"format\": \"%s\", \"version\": %d, \"" SEAL_KEY "\": \"" SEAL_EMPTY "\"",
            TOPO_FORMAT, TOPO_VERSION);
    put_key(f, "provenance", json_provenance());
    put_key(f, "fabric", text_or_null(t->fabric));
    put_key(f, "tiers", tiers_json(t));
    put_key(f, "unseen", unseen);
    put_key(f, "levels", levels_json(t));
    begin_table(f, "hosts", host_columns, HOST_COLUMNS);
    for (int i = 0; i < t->hosts; i++)
        put_row(f, i, host_row(&t->host[i]));
    fputs("]}", f);
    begin_table(f, "nics", nic_columns, NIC_COLUMNS);
    for (int i = 0; i < t->nics; i++)
        put_row(f, i, nic_row(&t->nic[i]));
    fputs("]}", f);
    write_ports(f, t);
    if (t->gpus) {
        begin_columns(f, "gpus", gpu_columns, GPU_COLUMNS);
        for (int i = 0; i < t->gpus; i++)
            put_row(f, i, gpu_row(&t->gpu[i]));
        fputs("]}", f);
    }
    if (t->trials) {
        begin_columns(f, "trials", trial_columns, TRIAL_COLUMNS);
        for (int i = 0; i < t->trials; i++)
            put_row(f, i, topo_row(trial_columns, TRIAL_COLUMNS, &t->trial[i]));
        fputs("]}", f);
    }
    begin_table(f, "endpoints", endpoint_columns, ENDPOINT_COLUMNS);
    for (int i = 0; i < t->endpoints; i++)
        put_row(f, i, endpoint_row(&t->endpoint[i], &models, &sources));
    fputs("]}", f);
    if (t->group[LEVEL_SPINE].count) {
        begin_table(f, "spines", spine_columns, SPINE_COLUMNS);
        for (int i = 0; i < t->group[LEVEL_SPINE].count; i++)
            put_row(f, i, spine_row(t, i));
        fputs("]}", f);
    }
    if (t->declared_groups) {
        begin_table(f, "claims", claim_columns, CLAIM_COLUMNS);
        for (int i = 0; i < t->declared_groups; i++)
            put_row(f, i, claim_row(&t->declared_group[i]));
        fputs("]}", f);
    }
    if (t->net) {
        begin_columns(f, "net_nodes", net_node_columns, NET_NODE_COLUMNS);
        for (int i = 0; i < t->net->nodes; i++)
            put_row(f, i, net_node_row(&t->net->node[i]));
        fputs("]}", f);
        begin_columns(f, "cables", cable_columns, CABLE_COLUMNS);
        for (int i = 0; i < t->net->cables; i++)
            put_row(f, i, cable_row(&t->net->cable[i]));
        fputs("]}", f);
    }
    put_key(f, "models", models.values);
    put_key(f, "sources", sources.values);
    if (t->nccl)
        put_key(f, "nccl", json_incref(t->nccl));
    fputs("\n}\n", f);
}

char *topo_text(const struct topo *t)
{
    size_t len;
    char *text;
    FILE *f = mem_stream(&text, &len);

    write_topo(f, t);
    mem_stream_end(f);
    seal_set(text, len);
    return text;
}

int topo_save(const struct topo *t, const char *path, struct err *err)
{
    char *text = topo_text(t);
    int rc = json_save_text(text, strlen(text), path, err);

    free(text);
    return rc;
}
