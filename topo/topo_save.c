/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables are written one row a line: 100,000 endpoints stay readable with less and small on disk.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/groups.h"
#include "topo/host/gpu.h"
#include "topo/host/mnnvl.h"
#include "topo/host/nic.h"
#include "topo/net/net.h"
#include "topo/topo_impl.h"

/* Takes over value. */
static size_t distinct_add(struct topo_distinct *d, json_t *value)
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

static json_t *text_or_null(const char *s)
{
    json_t *j = s && *s ? json_string(s) : NULL;

    return j ? j : json_null();
}

/* --- columns --- */

#define COLUMNS(of) (int)(sizeof(of) / sizeof(*(of)))

static const char *const link_layer_name[] = {"unknown", "ethernet", "infiniband"};
enum { LOCAL_MAX = 65535 };

#define HOST(cell, member, max) TOPO_COLUMN(#member, cell, struct host_row, member, max)
static const struct topo_column host_columns[] = {
    HOST(CELL_NAME, name, sizeof(((struct host_row *)0)->name)),
    TOPO_COLUMN_TEXT("cpu", struct host_row, cpu),
    HOST(CELL_COUNT, sockets, LOCAL_MAX),
    HOST(CELL_COUNT, cores, TABLE_ROWS_MAX),
    HOST(CELL_AMOUNT, memory_bytes, 1e18),
};
#define NIC(cell, member, max) TOPO_COLUMN(#member, cell, struct nic, member, max)
static const struct topo_column nic_columns[] = {
    NIC(CELL_PARENT, host, 0),
    NIC(CELL_NAME, name, sizeof(((struct nic *)0)->name)),
    TOPO_COLUMN_TEXT("busid", struct nic, busid),
    TOPO_COLUMN_WORD("link_layer", struct nic, layer, link_layer_name),
    NIC(CELL_AMOUNT, rate_Bps, 1e15),
    NIC(CELL_FLAG, up, 0),
    NIC(CELL_FLAG, rdma, 0),
    NIC(CELL_INDEX_OR_NULL, numa, LOCAL_MAX),
    TOPO_COLUMN_WORD("source", struct nic, source, source_name),
};
#define TRIAL(cell, member, max) TOPO_COLUMN(#member, cell, struct mnnvl_trial, member, max)
static const struct topo_column trial_columns[] = {
    TRIAL(CELL_PARENT, host, 0),   TRIAL(CELL_MAYBE, allocate, 0),
    TRIAL(CELL_MAYBE, export, 0),  TRIAL(CELL_MAYBE, import, 0),
    TRIAL(CELL_NUMBER, Bps, 1e15), TOPO_COLUMN_TEXT("why", struct mnnvl_trial, why),
};
static const struct topo_column endpoint_columns[] = {
    {.name = "host"}, {.name = "domain"}, {.name = "leaf"},  {.name = "rack"},
    {.name = "rail"}, {.name = "local"},  {.name = "kind"},  {.name = "numa"},
    {.name = "nic"},  {.name = "busid"},  {.name = "model"}, {.name = "source"}};
static const struct topo_column claim_columns[] = {{.name = "source"},
                                                   {.name = "level"},
                                                   {.name = "origin"},
                                                   {.name = "group"},
                                                   {.name = "hosts"}};
static const struct topo_column spine_columns[] = {
    {.name = "name"}, {.name = "source"}, {.name = "hosts"}};

/* --- rows; NULL: there is none --- */

static json_t *host_row(struct topo_writer *w, int i)
{
    const struct host *h = &w->t->host[i];
    struct host_row r = {.sockets = h->sockets, .cores = h->cores, .memory_bytes = h->memory_bytes};

    snprintf(r.name, sizeof(r.name), "%s", h->name);
    snprintf(r.cpu, sizeof(r.cpu), "%s", h->cpu ? h->cpu : "");
    return topo_row(host_columns, COLUMNS(host_columns), &r);
}

static json_t *nic_row(struct topo_writer *w, int i)
{
    return topo_row(nic_columns, COLUMNS(nic_columns), &w->t->nic[i]);
}

static json_t *trial_row(struct topo_writer *w, int i)
{
    return topo_row(trial_columns, COLUMNS(trial_columns), &w->t->trial[i]);
}

static json_t *endpoint_row(struct topo_writer *w, int i)
{
    const struct endpoint *e = &w->t->endpoint[i];
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
    json_array_append_new(row, e->model[0] ? json_integer((json_int_t)distinct_add(
                                                 &w->models, text_or_null(e->model)))
                                           : json_null());
    json_array_append_new(row, json_integer((json_int_t)distinct_add(&w->sources, from)));
    return row;
}

static json_t *hosts_json(char *const *host, int hosts)
{
    char *text = hostlist_fold(host, hosts);
    json_t *out = hosts ? json_string(text) : json_null();

    free(text);
    return out;
}

/* "spine+1" is a tier of switches above the spine. */
static json_t *level_json(const struct declared_group *c)
{
    return c->above ? json_sprintf("%s+%d", level_name[c->level], c->above)
                    : json_string(level_name[c->level]);
}

static json_t *claim_row(struct topo_writer *w, int i)
{
    const struct declared_group *c = &w->t->declared_group[i];

    return json_pack("[s, o, s, s, o]", source_name[c->source], level_json(c), c->origin, c->name,
                     hosts_json(c->host, c->hosts));
}

static json_t *spine_row(struct topo_writer *w, int spine)
{
    const struct topo *t = w->t;
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of)), n = 0, source = SOURCE_NONE;
    char **host = mem_calloc((size_t)t->hosts + 1, sizeof(*host));

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_SPINE] == spine) {
            of[t->endpoint[i].place.at[LEVEL_HOST]] = 1;
            source = t->endpoint[i].source[LEVEL_SPINE];
        }
    for (int h = 0; h < t->hosts; h++)
        if (of[h])
            host[n++] = t->host[h].name;
    json_t *row = json_pack("[s, s, o]", t->group[LEVEL_SPINE].name[spine], source_name[source],
                            hosts_json(host, n));
    free(host);
    free(of);
    return row;
}

/* --- the file --- */

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

static void begin_table(FILE *f, const struct topo_rows *r)
{
    json_t *names = json_array();

    for (int i = 0; i < r->columns; i++)
        json_array_append_new(names, json_string(r->column[i].name));
    fprintf(f, ",\n \"%s\": {\"columns\": ", r->key);
    put(f, names);
    fputs(", \"rows\": [", f);
}

/* One row a line; without a row there is no table, but for those that every file has. */
static void put_table(struct topo_writer *w, const struct topo_rows *r, int count)
{
    int rows = 0;

    if (r->always)
        begin_table(w->f, r);
    for (int i = 0; i < count; i++) {
        json_t *one = r->row(w, i);
        if (!one)
            continue;
        if (!rows && !r->always)
            begin_table(w->f, r);
        fputs(rows++ ? ",\n  " : "\n  ", w->f);
        put(w->f, one);
    }
    if (rows || r->always)
        fputs("]}", w->f);
}

#define ROWS(key, noun, always, member)                                                            \
    &(const struct topo_rows)                                                                      \
    {                                                                                              \
        key, noun##_columns, COLUMNS(noun##_columns), always, offsetof(struct topo, member),       \
            noun##_row, NULL                                                                       \
    }
const struct topo_rows *const topo_rows[ROWS_TABLES] = {
    [ROWS_HOSTS] = ROWS("hosts", host, true, hosts),
    [ROWS_NICS] = ROWS("nics", nic, true, nics),
    [ROWS_PORTS] = &port_rows,
    [ROWS_GPUDIRECT] = &gpudirect_rows,
    [ROWS_GPUS] = &gpu_rows,
    [ROWS_TRIALS] = ROWS("trials", trial, false, trials),
    [ROWS_ENDPOINTS] = ROWS("endpoints", endpoint, true, endpoints),
    [ROWS_SPINES] = ROWS("spines", spine, false, group[LEVEL_SPINE].count),
    [ROWS_CLAIMS] = ROWS("claims", claim, false, declared_groups),
};

static void put_tables(struct topo_writer *w)
{
    const struct net *net = w->t->net;

    for (int i = 0; i < ROWS_TABLES; i++) {
        int count;
        memcpy(&count, (const char *)w->t + topo_rows[i]->count, sizeof(count));
        put_table(w, topo_rows[i], count);
    }
    if (net) {
        put_table(w, &net_node_rows, net->nodes);
        put_table(w, &cable_rows, net->cables);
    }
}

/* new reference */
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
            json_array_append_new(names, text_or_null(t->group[l].name[i]));
        if (l != LEVEL_HOST)
            json_object_set(levels, level_name[l], names);
        json_decref(names);
    }
    return levels;
}

static void write_topo(FILE *f, const struct topo *t)
{
    struct topo_writer w = {f, t, {json_array(), 0}, {json_array(), 0}};
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
    put_tables(&w);
    put_key(f, "models", w.models.values);
    put_key(f, "sources", w.sources.values);
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
