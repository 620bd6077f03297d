/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_rows.c - tables of topology.json: hosts, NICs, trials, endpoints, spines and declared
 * groups.  Tables of GPUs are in host/gpu.c, tables of networks in net/net_rows.c. */
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/groups.h"
#include "topo/nic.h"
#include "topo/topo_impl.h"

enum { HOSTS_TEXT = 8 << 20 };

/* --- hosts --- */

static const struct topo_column host_columns[] = {
    TOPO_COLUMN("name", CELL_STRING, struct host, name, TOPO_NAME_MAX),
    TOPO_COLUMN("cpu", CELL_STRING_OR_NULL, struct host, cpu, TOPO_NAME_MAX),
    TOPO_COLUMN("sockets", CELL_COUNT, struct host, sockets, TOPO_NUMBER_MAX),
    TOPO_COLUMN("cores", CELL_COUNT, struct host, cores, TABLE_ROWS_MAX),
    TOPO_COLUMN("memory_bytes", CELL_AMOUNT, struct host, memory_bytes, 1e18),
};

static int add_host(struct topo_reader *r, const struct topo_table *b, const struct host *h)
{
    if (strpbrk(h->name, "[],")) /* a host list could not hold it */
        return cell_bad(b, 0, "with a bracket or a comma");
    if (h->name[0] == '-')
        return cell_bad(b, 0, "with a dash in front, as options have");
    if (topo_find_host(r->t, h->name) >= 0)
        return cell_bad(b, 0, "there twice");
    topo_append_host(r->t, h);
    return 0;
}

static int load_host(struct topo_reader *r, struct topo_table *b)
{
    struct host h = {.name = NULL};
    int rc = topo_row_load(b, r->rows, &h);

    if (rc == 0)
        rc = add_host(r, b, &h);
    free(h.name);
    free(h.cpu);
    return rc;
}

/* --- NICs, and results of trials --- */

static const char *const link_layer_name[] = {"unknown", "ethernet", "infiniband"};

#define NIC(cell, member, max) TOPO_COLUMN(#member, cell, struct nic, member, max)
static const struct topo_column nic_columns[] = {
    NIC(CELL_PARENT, host, LEVEL_HOST),
    NIC(CELL_NAME, name, sizeof(((struct nic *)0)->name)),
    TOPO_COLUMN_TEXT("busid", struct nic, busid),
    TOPO_COLUMN_WORD("link_layer", struct nic, layer, link_layer_name),
    NIC(CELL_AMOUNT, rate_Bps, 1e15),
    NIC(CELL_FLAG, up, 0),
    NIC(CELL_FLAG, rdma, 0),
    NIC(CELL_INDEX_OR_NULL, numa, TOPO_NUMBER_MAX),
    TOPO_COLUMN_WORD("source", struct nic, source, source_name),
};

static int load_nic(struct topo_reader *r, struct topo_table *b)
{
    struct nic n;

    nic_init(&n, 0);
    if (topo_row_load(b, r->rows, &n) < 0)
        return -1;
    MEM_PUSH(r->t->nic, r->t->nics) = n;
    return 0;
}

#define TRIAL(cell, member, max) TOPO_COLUMN(#member, cell, struct mnnvl_trial, member, max)
static const struct topo_column trial_columns[] = {
    TRIAL(CELL_PARENT, host, LEVEL_HOST), TRIAL(CELL_MAYBE, allocate, 0),
    TRIAL(CELL_MAYBE, export, 0),         TRIAL(CELL_MAYBE, import, 0),
    TRIAL(CELL_NUMBER, Bps, 1e15),        TOPO_COLUMN_TEXT("why", struct mnnvl_trial, why),
};

static int load_trial(struct topo_reader *r, struct topo_table *b)
{
    struct mnnvl_trial tried = {.host = 0};

    if (topo_row_load(b, r->rows, &tried) < 0 ||
        topo_table_rises(b, tried.host, "not after the host of the row before") < 0)
        return -1;
    MEM_PUSH(r->t->trial, r->t->trials) = tried;
    return 0;
}

/* --- endpoints --- */

struct endpoint_row {
    struct endpoint is;
    int model, source; /* indices into "models" and "sources" */
};
#define ENDPOINT(cell, member, max) TOPO_COLUMN(#member, cell, struct endpoint_row, is.member, max)
#define PLACE(name, level, cell)                                                                   \
    TOPO_COLUMN(name, cell, struct endpoint_row, is.place.at[level], level)
enum { ENDPOINT_NIC = LEVEL_PLACES + 3, ENDPOINT_MODEL = ENDPOINT_NIC + 2, ENDPOINT_SOURCE };
static const struct topo_column endpoint_columns[] = {
    PLACE("host", LEVEL_HOST, CELL_PARENT),
    PLACE("domain", LEVEL_DOMAIN, CELL_PARENT_OR_NULL),
    PLACE("leaf", LEVEL_LEAF, CELL_PARENT_OR_NULL),
    PLACE("rack", LEVEL_RACK, CELL_PARENT_OR_NULL),
    PLACE("rail", LEVEL_RAIL, CELL_PARENT_OR_NULL),
    ENDPOINT(CELL_INDEX, local, TOPO_NUMBER_MAX),
    TOPO_COLUMN_WORD("kind", struct endpoint_row, is.kind, endpoint_kind_name),
    ENDPOINT(CELL_INDEX_OR_NULL, numa, TOPO_NUMBER_MAX),
    [ENDPOINT_NIC] = ENDPOINT(CELL_PARENT_OR_NULL, nic, OF_NIC),
    TOPO_COLUMN_TEXT("busid", struct endpoint_row, is.busid),
    [ENDPOINT_MODEL] =
        TOPO_COLUMN("model", CELL_PARENT_OR_NULL, struct endpoint_row, model, OF_MODEL),
    [ENDPOINT_SOURCE] = TOPO_COLUMN("source", CELL_PARENT, struct endpoint_row, source, OF_SOURCES),
};

/* Takes ownership of value. */
static int distinct_add(struct topo_distinct *d, json_t *value)
{
    size_t n = json_array_size(d->values);

    for (size_t i = 0; i < n; i++) {
        size_t at = ((size_t)d->last + i) % n;
        if (json_equal(json_array_get(d->values, at), value)) {
            json_decref(value);
            return d->last = (int)at;
        }
    }
    json_array_append_new(d->values, value);
    return d->last = (int)n;
}

/* The sources of the endpoint before are tried first, because most are equal. */
static int sources_of(struct topo_writer *w, int i)
{
    const unsigned char *source = w->t->endpoint[i].source;

    if (i && !memcmp(source, w->t->endpoint[i - 1].source, LEVEL_PLACES))
        return w->sources.last;
    json_t *from = json_array();
    for (int l = 0; l < LEVEL_PLACES; l++)
        json_array_append_new(from, json_string(source_name[source[l]]));
    return distinct_add(&w->sources, from);
}

static int model_of(struct topo_writer *w, int i)
{
    const char *model = w->t->endpoint[i].model;

    if (!*model)
        return -1;
    if (i && !strcmp(model, w->t->endpoint[i - 1].model))
        return w->models.last;
    return distinct_add(&w->models, topo_text_json(model));
}

static bool endpoint_row(struct topo_writer *w, int i)
{
    struct endpoint_row r = {w->t->endpoint[i], model_of(w, i), sources_of(w, i)};

    return topo_writer_row(w, endpoint_columns,
                           sizeof(endpoint_columns) / sizeof(*endpoint_columns), &r);
}

static int load_sources(struct endpoint *e, const struct topo_table *b, json_t *from)
{
    for (int l = 0; l < LEVEL_PLACES; l++) {
        int source = topo_word(source_name, SOURCE_COUNT, json_array_get(from, (size_t)l));
        if (source < 0 || json_array_size(from) != LEVEL_PLACES)
            return cell_bad(b, ENDPOINT_SOURCE, "an entry of \"sources\" with unknown words");
        if ((source == SOURCE_NONE) != (e->place.at[l] < 0))
            return cell_bad(b, l, "which does not fit its source: null goes with \"none\"");
        e->source[l] = (unsigned char)source;
    }
    return 0;
}

static int load_model(struct endpoint *e, const struct topo_table *b, const json_t *model)
{
    const char *text = json_string_value(model);

    if (!text || topo_text_check(text, sizeof(e->model) - 1, "", NULL) < 0)
        return cell_bad(b, ENDPOINT_MODEL,
                        "and that entry of \"models\" is no text of fitting length");
    strcpy(e->model, text);
    return 0;
}

static int load_endpoint(struct topo_reader *r, struct topo_table *b)
{
    struct endpoint_row row = {.is = {.gpu = -1, .place.at[LEVEL_SPINE] = -1}};
    struct endpoint *e = &row.is;

    if (topo_row_load(b, r->rows, &row) < 0 ||
        load_sources(e, b, json_array_get(r->sources, (size_t)row.source)) < 0)
        return -1;
    if (e->nic >= 0 && r->t->nic[e->nic].host != e->place.at[LEVEL_HOST])
        return cell_bad(b, ENDPOINT_NIC, "a NIC of another host");
    if (row.model >= 0 && load_model(e, b, json_array_get(r->models, (size_t)row.model)) < 0)
        return -1;
    r->t->host[e->place.at[LEVEL_HOST]].endpoints++;
    MEM_PUSH(r->t->endpoint, r->t->endpoints) = *e;
    return 0;
}

/* --- groups of hosts by name: spines and declared groups --- */

static json_t *hosts_json(const void *group)
{
    const struct declared_group *g = group;
    char *text = hostlist_fold(g->host, g->hosts);
    json_t *out = g->hosts ? json_string(text) : NULL;

    free(text);
    return out;
}

static int load_hosts(const struct topo_table *b, int col, void *group)
{
    struct declared_group *g = group;
    const char *text;

    if (cell_text(b, col, HOSTS_TEXT, true, &text) < 0)
        return -1;
    if (text && hostlist_expand(&g->host, &g->hosts, text, b->err) < 0)
        return err_wrap(b->err, "%s: %s.rows[%zu]", b->path, b->name, b->at - 1);
    return 0;
}

/* "spine+1": one tier of switches above the spine. */
static json_t *level_json(const void *group)
{
    const struct declared_group *g = group;

    return g->above ? json_sprintf("%s+%d", level_name[g->level], g->above)
                    : json_string(level_name[g->level]);
}

static int load_level(const struct topo_table *b, int col, void *group)
{
    const char *text = json_string_value(json_array_get(b->row, (size_t)col));
    size_t spine = strlen(level_name[LEVEL_SPINE]);
    struct declared_group *g = group;
    int level, rc = 0;

    g->level = LEVEL_SPINE;
    if (text && !strncmp(text, level_name[LEVEL_SPINE], spine) && text[spine] == '+')
        return units_int(&g->above, text + spine + 1, 1, GROUP_ABOVE_MAX, NULL) < 0
                   ? cell_bad(b, col, "no tier of switches above the spine")
                   : 0;
    rc = cell_name(b, col, level_name, LEVEL_COUNT, &level);
    g->level = (enum level)level;
    return rc;
}

#define GROUP(name, member)                                                                        \
    TOPO_COLUMN(name, CELL_STRING, struct declared_group, member, TOPO_NAME_MAX)
#define GROUP_SOURCE TOPO_COLUMN_WORD("source", struct declared_group, source, source_name)
enum { SPINE_HOSTS = 2 };
static const struct topo_column spine_columns[] = {
    GROUP("name", name), GROUP_SOURCE, TOPO_COLUMN_OTHER("hosts", hosts_json, load_hosts)};
static const struct topo_column group_columns[] = {
    GROUP_SOURCE, TOPO_COLUMN_OTHER("level", level_json, load_level), GROUP("origin", origin),
    GROUP("group", name), TOPO_COLUMN_OTHER("hosts", hosts_json, load_hosts)};

static int load_group(struct topo_reader *r, struct topo_table *b)
{
    struct declared_group g = {.source = SOURCE_NONE};

    if (topo_row_load(b, r->rows, &g) < 0) {
        group_free(&g);
        return -1;
    }
    MEM_PUSH(r->t->declared_group, r->t->declared_groups) = g;
    return 0;
}

static bool spine_row(struct topo_writer *w, int spine)
{
    const struct topo *t = w->t;
    bool *in = mem_calloc((size_t)t->hosts + 1, sizeof(*in));
    struct declared_group g = {.name = t->group[LEVEL_SPINE].name[spine]};

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_SPINE] == spine) {
            in[t->endpoint[i].place.at[LEVEL_HOST]] = true;
            g.source = (enum source)t->endpoint[i].source[LEVEL_SPINE];
        }
    for (int h = 0; h < t->hosts; h++)
        if (in[h])
            MEM_PUSH(g.host, g.hosts) = t->host[h].name;
    const bool row =
        topo_writer_row(w, spine_columns, sizeof(spine_columns) / sizeof(*spine_columns), &g);
    free(g.host);
    free(in);
    return row;
}

static int add_spine(struct topo_reader *r, const struct topo_table *b,
                     const struct declared_group *g)
{
    if (topo_add_group(r->t, LEVEL_SPINE, g->name) != (int)b->at - 1)
        return cell_bad(b, 0, "there twice");
    for (int i = 0; i < g->hosts; i++) {
        int h = topo_find_host(r->t, g->host[i]);
        if (h < 0 || r->spine[h])
            return cell_bad(b, SPINE_HOSTS,
                            h < 0 ? "with an unknown host" : "with a host of another spine");
        r->spine[h] = (int)b->at << 8 | (int)g->source;
    }
    return 0;
}

static int load_spine(struct topo_reader *r, struct topo_table *b)
{
    struct declared_group g = {.source = SOURCE_NONE};
    int rc = topo_row_load(b, r->rows, &g);

    if (!r->spine)
        r->spine = mem_calloc((size_t)r->t->hosts + 1, sizeof(*r->spine));
    if (rc == 0)
        rc = add_spine(r, b, &g);
    group_free(&g);
    return rc;
}

static int end_spines(struct topo_reader *r, struct topo_table *b)
{
    (void)b;
    for (int i = 0; i < r->t->endpoints && r->spine; i++) {
        struct endpoint *e = &r->t->endpoint[i];
        int at = r->spine[e->place.at[LEVEL_HOST]];
        e->place.at[LEVEL_SPINE] = at ? (at >> 8) - 1 : -1;
        e->source[LEVEL_SPINE] = (unsigned char)(at & 0xff);
    }
    return 0;
}

/* --- all of them --- */

#define ROWS(name, of, member, members) TOPO_ROWS(name, of##_columns, struct topo, member, members)
#define TABLE &(const struct topo_rows)
const struct topo_rows *const topo_rows[ROWS_TABLES] = {
    [ROWS_HOSTS] = TABLE{ROWS("hosts", host, host, hosts), .always = true, .load = load_host},
    [ROWS_NICS] = TABLE{ROWS("nics", nic, nic, nics), .always = true, .load = load_nic},
    [ROWS_PORTS] = &port_rows,
    [ROWS_NIC_VERSIONS] = &nic_version_rows,
    [ROWS_VERBS] = &nic_verbs_rows,
    [ROWS_GPUDIRECT] = &gpudirect_rows,
    [ROWS_GPUS] = &gpu_rows,
    [ROWS_TRIALS] = TABLE{ROWS("trials", trial, trial, trials), .load = load_trial},
    [ROWS_ENDPOINTS] = TABLE{ROWS("endpoints", endpoint, endpoint, endpoints), .always = true,
                             .row = endpoint_row, .load = load_endpoint},
    [ROWS_SPINES] = TABLE{ROWS("spines", spine, group[LEVEL_SPINE].name, group[LEVEL_SPINE].count),
                          .row = spine_row, .load = load_spine, .end = end_spines},
    [ROWS_GROUPS] =
        TABLE{ROWS("claims", group, declared_group, declared_groups), .load = load_group},
    [ROWS_NET_NODES] = &net_node_rows,
    [ROWS_CABLES] = &cable_rows,
};
