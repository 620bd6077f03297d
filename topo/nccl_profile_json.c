/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_profile_json.c - writer and reader of "nccl" in topology.json: lists of texts, and tables
 * whose rows refer to each other by index.  null means "not stated". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "topo/nccl_profile.h"
#include "topo/topo.h"
#include "topo/topo_table_impl.h"

enum { TEXT_LEN = NCCL_LOG_LINE_MAX, WHERE = 320, SMALL = 1 << 16 };

/* --- columns; a row that belongs to a row of another table begins with its index --- */

struct nic_row {
    int rank;
    struct nccl_nic is;
};
struct graph_row {
    int comm, kind;
    struct nccl_graph is;
};
struct link_row {
    int comm;
    struct nccl_link is;
};
struct gpu_row {
    int dump;
    struct nccl_xml_gpu is;
};
struct net_row {
    int dump;
    struct nccl_xml_net is;
};
union row {
    struct nccl_rank rank;
    struct nic_row nic;
    struct nccl_comm_profile comm;
    struct graph_row graph;
    int parent;
    struct link_row link;
    struct nccl_choice choice;
    struct gpu_row gpu;
    struct net_row net;
};

static const struct topo_column rank_column[] = {
    TOPO_COLUMN("endpoint", CELL_INDEX_OR_NULL, struct nccl_rank, endpoint, TABLE_ROWS_MAX),
    TOPO_COLUMN_TEXT("net", struct nccl_rank, net),
    TOPO_COLUMN_TEXT("busid", struct nccl_rank, busid),
    TOPO_COLUMN("nvls", CELL_MAYBE, struct nccl_rank, nvls, 0),
};
static const struct topo_column port_column[] = {
    TOPO_COLUMN("seat", CELL_PARENT, struct nic_row, rank, 0),
    TOPO_COLUMN("number", CELL_INDEX_OR_NULL, struct nic_row, is.number, SMALL + 1),
    TOPO_COLUMN_TEXT("name", struct nic_row, is.name),
    TOPO_COLUMN("gdr", CELL_MAYBE, struct nic_row, is.gdr, 0),
};
enum { COMM_ENDPOINTS = 11 };
static const struct topo_column comm_column[] = {
    TOPO_COLUMN("id", CELL_HEX, struct nccl_comm_profile, hash, 0),
    TOPO_COLUMN("ranks", CELL_INDEX, struct nccl_comm_profile, ranks, NCCL_RANKS_MAX + 1),
    TOPO_COLUMN("rank", CELL_INDEX_OR_NULL, struct nccl_comm_profile, rank, NCCL_RANKS_MAX),
    TOPO_COLUMN("nodes", CELL_COUNT, struct nccl_comm_profile, nodes, NCCL_RANKS_MAX + 1),
    TOPO_COLUMN("local", CELL_COUNT, struct nccl_comm_profile, local, NCCL_RANKS_MAX + 1),
    TOPO_COLUMN("mnnvl", CELL_MAYBE, struct nccl_comm_profile, mnnvl, 0),
    TOPO_COLUMN("coll", CELL_INDEX_OR_NULL, struct nccl_comm_profile, coll, SMALL + 1),
    TOPO_COLUMN("nvls", CELL_INDEX_OR_NULL, struct nccl_comm_profile, nvls, SMALL + 1),
    TOPO_COLUMN("p2p", CELL_INDEX_OR_NULL, struct nccl_comm_profile, p2p, SMALL + 1),
    TOPO_COLUMN("p2p_peer", CELL_INDEX_OR_NULL, struct nccl_comm_profile, p2p_peer, SMALL + 1),
    TOPO_COLUMN("complete", CELL_FLAG, struct nccl_comm_profile, complete, 0),
    [COMM_ENDPOINTS] = TOPO_COLUMN_OTHER("endpoints", NULL, NULL),
};
static const struct topo_column graph_column[] = {
    TOPO_COLUMN("comm", CELL_PARENT, struct graph_row, comm, 0),
    TOPO_COLUMN_WORD("kind", struct graph_row, kind, nccl_graph_name),
    TOPO_COLUMN("pattern", CELL_INDEX, struct graph_row, is.pattern, 64),
    TOPO_COLUMN("channels", CELL_INDEX, struct graph_row, is.channels, SMALL),
    TOPO_COLUMN("intra_Bps", CELL_NUMBER, struct graph_row, is.intra_Bps, 1e16),
    TOPO_COLUMN("inter_Bps", CELL_NUMBER, struct graph_row, is.inter_Bps, 1e16),
    TOPO_COLUMN_TEXT("type_intra", struct graph_row, is.type_intra),
    TOPO_COLUMN_TEXT("type_inter", struct graph_row, is.type_inter),
};
static const struct topo_column ring_column[] = {
    {.name = "comm", .cell = CELL_PARENT},
    TOPO_COLUMN_OTHER("ranks", NULL, NULL),
};
enum { LINK_FROM = 1, LINK_TO };
static const struct topo_column link_column[] = {
    TOPO_COLUMN("comm", CELL_PARENT, struct link_row, comm, 0),
    [LINK_FROM] = TOPO_COLUMN("from", CELL_INDEX, struct link_row, is.from, NCCL_RANKS_MAX + 1),
    [LINK_TO] = TOPO_COLUMN("to", CELL_INDEX, struct link_row, is.to, NCCL_RANKS_MAX + 1),
    TOPO_COLUMN_WORD("via", struct link_row, is.via, nccl_via_name),
    TOPO_COLUMN("nic", CELL_INDEX_OR_NULL, struct link_row, is.net, SMALL + 1),
    TOPO_COLUMN("through", CELL_INDEX_OR_NULL, struct link_row, is.through, NCCL_RANKS_MAX + 1),
    TOPO_COLUMN("gdr", CELL_FLAG, struct link_row, is.gdr, 0),
    TOPO_COLUMN("shared", CELL_FLAG, struct link_row, is.shared, 0),
    TOPO_COLUMN("receives", CELL_FLAG, struct link_row, is.receives, 0),
    TOPO_COLUMN("channels", CELL_INDEX, struct link_row, is.channels, INT32_MAX),
};
static const struct topo_column choice_column[] = {
    TOPO_COLUMN("comm", CELL_PARENT, struct nccl_choice, comm, 0),
    TOPO_COLUMN_TEXT("op", struct nccl_choice, op),
    TOPO_COLUMN("bytes", CELL_BYTES, struct nccl_choice, bytes, 0),
    TOPO_COLUMN_TEXT("algo", struct nccl_choice, algo),
    TOPO_COLUMN_TEXT("proto", struct nccl_choice, proto),
    TOPO_COLUMN("channels", CELL_INDEX_OR_NULL, struct nccl_choice, channels, SMALL),
};
static const struct topo_column dump_column[] = {{.name = "comm", .cell = CELL_PARENT_OR_NULL}};
static const struct topo_column net_column[] = {
    TOPO_COLUMN("dump", CELL_PARENT, struct net_row, dump, 0),
    TOPO_COLUMN("dev", CELL_INDEX, struct net_row, is.dev, SMALL + 1),
    TOPO_COLUMN("host", CELL_HEX, struct net_row, is.host, 0),
    TOPO_COLUMN_TEXT("name", struct net_row, is.name),
    TOPO_COLUMN("Bps", CELL_NUMBER, struct net_row, is.Bps, 1e15),
    TOPO_COLUMN("gdr", CELL_FLAG, struct net_row, is.gdr, 0),
    TOPO_COLUMN("rail", CELL_INDEX_OR_NULL, struct net_row, is.rail, SMALL + 1),
    TOPO_COLUMN("plane", CELL_INDEX_OR_NULL, struct net_row, is.plane, SMALL + 1),
};
enum { GPU_ROUTES = 8 };
static const struct topo_column gpu_column[] = {
    TOPO_COLUMN("dump", CELL_PARENT, struct gpu_row, dump, 0),
    TOPO_COLUMN("rank", CELL_INDEX_OR_NULL, struct gpu_row, is.rank, NCCL_RANKS_MAX + 1),
    TOPO_COLUMN("dev", CELL_INDEX, struct gpu_row, is.dev, SMALL + 1),
    TOPO_COLUMN("sm", CELL_INDEX, struct gpu_row, is.sm, SMALL),
    TOPO_COLUMN("host", CELL_HEX, struct gpu_row, is.host, 0),
    TOPO_COLUMN_TEXT("busid", struct gpu_row, is.busid),
    TOPO_COLUMN("gdr", CELL_FLAG, struct gpu_row, is.gdr, 0),
    TOPO_COLUMN("nvlinks", CELL_INDEX, struct gpu_row, is.nvlinks, INT32_MAX),
    [GPU_ROUTES] = TOPO_COLUMN_OTHER("paths", NULL, NULL),
};

/* Order of the tables; a table follows the tables that its rows refer to. */
enum { RANKS, PORTS, COMMS, GRAPHS, RINGS, LINKS, CHOICES, DUMPS, NETS, GPUS, TABLES };

#define TABLE(name, column)                                                                        \
    {                                                                                              \
        name, column, sizeof(column) / sizeof(*(column))                                           \
    }
static const struct nccl_table {
    const char *name;
    const struct topo_column *column;
    int columns;
} table[TABLES] = {
    [RANKS] = TABLE("seats", rank_column),       [PORTS] = TABLE("ports", port_column),
    [COMMS] = TABLE("comms", comm_column),       [GRAPHS] = TABLE("graphs", graph_column),
    [RINGS] = TABLE("rings", ring_column),       [LINKS] = TABLE("links", link_column),
    [CHOICES] = TABLE("choices", choice_column), [DUMPS] = TABLE("dumps", dump_column),
    [NETS] = TABLE("nets", net_column),          [GPUS] = TABLE("gpus", gpu_column),
};

/* --- out --- */

/* New table {"columns": [...], "rows": []}; *rows is borrowed. */
static json_t *table_json(const struct topo_column *c, int columns, json_t **rows)
{
    json_t *names = json_array();

    *rows = json_array();
    for (int i = 0; i < columns; i++)
        json_array_append_new(names, json_string(c[i].name));
    return json_pack("{s:o, s:o}", "columns", names, "rows", *rows);
}

/* Append a row; the result is borrowed. */
static json_t *put(json_t *const *rows, int at, const void *object)
{
    json_t *row = topo_row(table[at].column, table[at].columns, object);

    json_array_append_new(rows[at], row);
    return row;
}

static json_t *texts_json(char *const *list, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, topo_text_json(list[i]));
    return out;
}

/* List of numbers; -1 becomes null. */
static json_t *list_json(const int *list, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, list[i] < 0 ? json_null() : json_integer(list[i]));
    return out;
}

/* Routes of a GPU: [[type, Bps], ...] to the GPUs, then to the NICs of the dump. */
static json_t *routes_json(const struct nccl_paths *p, int g)
{
    json_t *out = json_array();

    for (int i = 0; i < p->gpus + p->nets; i++) {
        const struct nccl_route *r =
            i < p->gpus ? &p->pair[g * p->gpus + i] : &p->nic[g * p->nets + i - p->gpus];
        json_array_append_new(out, json_pack("[s, o]", nccl_path_type_name[r->type],
                                             r->Bps > 0 ? json_real(r->Bps) : json_null()));
    }
    return out;
}

static void put_ranks(json_t *const *rows, const struct nccl_profile *p)
{
    for (int i = 0; i < p->ranks; i++) {
        put(rows, RANKS, &p->rank[i]);
        for (int k = 0; k < p->rank[i].nics; k++)
            put(rows, PORTS, &(struct nic_row){i, p->rank[i].nic[k]});
    }
}

static void put_comms(json_t *const *rows, const struct nccl_profile *p)
{
    for (int i = 0; i < p->comms; i++) {
        const struct nccl_comm_profile *c = &p->comm[i];
        int each = c->endpoint ? c->ranks : 2;
        json_t *row = put(rows, COMMS, c);
        if (c->endpoint)
            json_array_set_new(row, COMM_ENDPOINTS, list_json(c->endpoint, c->ranks));
        for (int k = 0; k < NCCL_GRAPH_COUNT; k++)
            if (c->graph[k].pattern)
                put(rows, GRAPHS, &(struct graph_row){i, k, c->graph[k]});
        for (int k = 0; k < c->rings; k++)
            json_array_set_new(put(rows, RINGS, &i), 1, list_json(c->ring + k * each, each));
    }
}

static void put_dumps(json_t *const *rows, const struct nccl_profile *p)
{
    for (int i = 0; i < p->n_paths; i++) {
        const struct nccl_paths *d = &p->paths[i];
        put(rows, DUMPS, &p->paths_comm[i]);
        for (int k = 0; k < d->gpus; k++)
            json_array_set_new(put(rows, GPUS, &(struct gpu_row){i, d->gpu[k]}), GPU_ROUTES,
                               routes_json(d, k));
        for (int k = 0; k < d->nets; k++)
            put(rows, NETS, &(struct net_row){i, d->net[k]});
    }
}

json_t *nccl_profile_json(const struct nccl_profile *p)
{
    json_t *out = json_pack("{s:o, s:I, s:I, s:o, s:o, s:o}", "version", topo_text_json(p->version),
                            "lines", (json_int_t)p->lines, "dropped", (json_int_t)p->dropped,
                            "findings", texts_json(p->finding, p->findings), "env",
                            texts_json(p->env, p->envs), "warnings", texts_json(p->warn, p->warns));
    json_t *rows[TABLES];

    for (int i = 0; i < TABLES; i++) {
        int at = i == NETS ? GPUS : i == GPUS ? NETS : i; /* files list GPUs first */
        json_object_set_new(out, table[at].name,
                            table_json(table[at].column, table[at].columns, &rows[at]));
    }
    put_ranks(rows, p);
    put_comms(rows, p);
    for (int i = 0; i < p->links; i++)
        put(rows, LINKS, &(struct link_row){p->link_comm[i], p->link[i]});
    for (int i = 0; i < p->choices; i++)
        put(rows, CHOICES, &p->choice[i]);
    put_dumps(rows, p);
    return out;
}

/* --- in --- */

/* Read a list of whole numbers below max (null: -1 if allowed).  The caller frees *out. */
static int cell_list(const struct topo_table *b, int col, int size, int max, bool null, int **out)
{
    const json_t *list = json_array_get(b->row, (size_t)col);

    if (!json_is_array(list) || json_array_size(list) != (size_t)size)
        return cell_bad(b, col, "not a list of as many as there are ranks");
    *out = mem_calloc((size_t)size + 1, sizeof(int));
    for (int i = 0; i < size; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        json_int_t x = json_is_null(v) && null ? -1 : json_integer_value(v);
        if ((!json_is_integer(v) && !(json_is_null(v) && null)) || x >= max || (x < 0 && !null)) {
            free(*out);
            *out = NULL;
            return cell_bad(b, col, "with an entry that is no rank");
        }
        (*out)[i] = (int)x;
    }
    return 0;
}

static int take_comm(struct nccl_profile *p, struct nccl_comm_profile *c,
                     const struct topo_table *b)
{
    if (!json_is_null(json_array_get(b->row, COMM_ENDPOINTS)) &&
        cell_list(b, COMM_ENDPOINTS, c->ranks, TABLE_ROWS_MAX, true, &c->endpoint) < 0)
        return -1;
    MEM_PUSH(p->comm, p->comms) = *c;
    return 0;
}

static int take_ring(struct nccl_comm_profile *c, const struct topo_table *b)
{
    int each = c->endpoint ? c->ranks : 2, *order;

    if (c->rings >= NCCL_RINGS_MAX)
        return cell_bad(b, 0, "with more rings than are possible");
    if (cell_list(b, 1, each, c->ranks, false, &order) < 0)
        return -1;
    c->ring = mem_realloc(c->ring, (size_t)(c->rings + 1) * (size_t)each, sizeof(int));
    memcpy(c->ring + (size_t)c->rings++ * (size_t)each, order, (size_t)each * sizeof(int));
    free(order);
    return 0;
}

static int take_link(struct nccl_profile *p, const struct link_row *k, const struct topo_table *b)
{
    int rank;

    if (cell_index(b, LINK_FROM, p->comm[k->comm].ranks, false, &rank) < 0 ||
        cell_index(b, LINK_TO, p->comm[k->comm].ranks, false, &rank) < 0)
        return -1;
    int at = p->links;
    MEM_PUSH(p->link_comm, at) = k->comm;
    MEM_PUSH(p->link, p->links) = k->is;
    return 0;
}

static int take_gpu(struct nccl_paths *d, const struct nccl_xml_gpu *g, const struct topo_table *b)
{
    if (d->gpus >= NCCL_XML_KIND_MAX)
        return cell_bad(b, 0, "a dump of more GPUs than are possible");
    MEM_PUSH(d->gpu, d->gpus) = *g;
    return 0;
}

static int take_net(struct nccl_paths *d, const struct nccl_xml_net *n, const struct topo_table *b)
{
    if (d->nets >= NCCL_XML_KIND_MAX)
        return cell_bad(b, 0, "a dump of more NICs than are possible");
    MEM_PUSH(d->net, d->nets) = *n;
    return 0;
}

/* Add a row that was read to the profile. */
static int take_row(struct nccl_profile *p, int at, union row *r, const struct topo_table *b)
{
    switch (at) {
    case RANKS:
        MEM_PUSH(p->rank, p->ranks) = r->rank;
        return 0;
    case PORTS:
        MEM_PUSH(p->rank[r->nic.rank].nic, p->rank[r->nic.rank].nics) = r->nic.is;
        return 0;
    case COMMS:
        return take_comm(p, &r->comm, b);
    case GRAPHS:
        p->comm[r->graph.comm].graph[r->graph.kind] = r->graph.is;
        return 0;
    case RINGS:
        return take_ring(&p->comm[r->parent], b);
    case LINKS:
        return take_link(p, &r->link, b);
    case CHOICES:
        MEM_PUSH(p->choice, p->choices) = r->choice;
        return 0;
    case DUMPS:
        at = p->n_paths;
        MEM_PUSH(p->paths_comm, at) = r->parent;
        MEM_PUSH(p->paths, p->n_paths) = (struct nccl_paths){.gpus = 0};
        return 0;
    case NETS:
        return take_net(&p->paths[r->net.dump], &r->net.is, b);
    default:
        return take_gpu(&p->paths[r->gpu.dump], &r->gpu.is, b);
    }
}

static int read_table(struct nccl_profile *p, int at, struct topo_table *b)
{
    int rc = 0;

    while (topo_table_next(b, &rc)) {
        int parents = at == PORTS ? p->ranks : at == NETS || at == GPUS ? p->n_paths : p->comms;
        union row r;
        memset(&r, 0, sizeof(r));
        if (topo_row_load(b, &parents, &r) < 0 || take_row(p, at, &r, b) < 0)
            return -1;
    }
    return rc;
}

static int read_route(struct nccl_route *r, const json_t *from)
{
    const json_t *Bps = json_array_get(from, 1);
    int type = nccl_path_type_find(json_string_value(json_array_get(from, 0)));

    if (type < 0 || json_array_size(from) != 2 ||
        !(json_is_null(Bps) || json_number_value(Bps) > 0))
        return -1;
    r->type = (unsigned char)type;
    r->Bps = json_number_value(Bps);
    return 0;
}

/* Read the last column of the GPUs, after all GPUs and NICs of their dumps are known. */
static int read_routes(struct nccl_profile *p, struct topo_table *b)
{
    int *next = mem_calloc((size_t)p->n_paths + 1, sizeof(*next)), rc = 0, dump;

    for (int i = 0; i < p->n_paths; i++) {
        struct nccl_paths *d = &p->paths[i];
        d->pair = mem_calloc((size_t)d->gpus * (size_t)d->gpus + 1, sizeof(*d->pair));
        d->nic = mem_calloc((size_t)d->gpus * (size_t)d->nets + 1, sizeof(*d->nic));
    }
    b->at = 0;
    while (topo_table_next(b, &rc)) {
        const json_t *list = json_array_get(b->row, GPU_ROUTES);
        cell_index(b, 0, p->n_paths, false, &dump);
        struct nccl_paths *d = &p->paths[dump];
        int g = next[dump]++;
        if (!json_is_array(list) || json_array_size(list) != (size_t)(d->gpus + d->nets))
            rc = cell_bad(b, GPU_ROUTES, "not one path for each GPU and NIC of the dump");
        for (int i = 0; rc == 0 && i < d->gpus + d->nets; i++)
            if (read_route(i < d->gpus ? &d->pair[g * d->gpus + i]
                                       : &d->nic[g * d->nets + i - d->gpus],
                           json_array_get(list, (size_t)i)) < 0)
                rc = cell_bad(b, GPU_ROUTES, "with an entry that is no [type, Bps or null]");
    }
    free(next);
    return rc;
}

static int read_texts(char ***list, int *count, json_t *from, const char *where, const char *key,
                      struct err *err)
{
    char at[WHERE + 48];

    if (!json_is_array(from) || json_array_size(from) > NCCL_TEXTS_MAX)
        return err_data(err, "%s.%s is not a list of at most %d texts", where, key, NCCL_TEXTS_MAX);
    for (size_t i = 0; i < json_array_size(from); i++) {
        const char *text = json_string_value(json_array_get(from, i));
        snprintf(at, sizeof(at), "%s.%s[%zu]", where, key, i);
        if (topo_text_check(text, TEXT_LEN, at, err) < 0)
            return -1;
        MEM_PUSH(*list, *count) = mem_strdup(text);
    }
    return 0;
}

static int read_all(struct nccl_profile *p, json_t *from, const char *where, struct err *err)
{
    enum { VERSION, LINES, DROPPED, FINDINGS, ENV, WARNINGS, TABLE };
    struct json_key key[TABLE + TABLES] = {[VERSION].name = "version",
                                           [LINES] = {"lines", false, 'I'},
                                           [DROPPED] = {"dropped", false, 'I'},
                                           [FINDINGS].name = "findings",
                                           [ENV].name = "env",
                                           [WARNINGS].name = "warnings"};
    json_t *is[TABLE + TABLES];
    struct topo_table b = {.path = where};

    for (int i = 0; i < TABLES; i++)
        key[TABLE + i].name = table[i].name;
    if (json_take_keys(from, where, key, TABLE + TABLES, is, err) < 0)
        return -1;
    if (!json_is_null(is[VERSION])) {
        const char *version = json_string_value(is[VERSION]);
        if (topo_text_check(version, sizeof(p->version) - 1, where, err) < 0)
            return -1;
        strcpy(p->version, version);
    }
    p->lines = json_integer_value(is[LINES]);
    p->dropped = json_integer_value(is[DROPPED]);
    if (read_texts(&p->finding, &p->findings, is[FINDINGS], where, "findings", err) < 0 ||
        read_texts(&p->env, &p->envs, is[ENV], where, "env", err) < 0 ||
        read_texts(&p->warn, &p->warns, is[WARNINGS], where, "warnings", err) < 0)
        return -1;
    for (int i = 0; i < TABLES; i++) {
        if (topo_table_open(&b, where, table[i].name, is[TABLE + i], table[i].column,
                            table[i].columns, err) < 0 ||
            read_table(p, i, &b) < 0 || (i == GPUS && read_routes(p, &b) < 0))
            return -1;
    }
    return 0;
}

int nccl_profile_read(struct nccl_profile *p, json_t *from, const char *where, struct err *err)
{
    memset(p, 0, sizeof(*p));
    int rc = read_all(p, from, where, err);
    if (rc < 0)
        nccl_profile_free(p);
    else
        nccl_profile_index(p);
    return rc;
}
