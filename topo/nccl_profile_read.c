/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "topo/nccl_log.h"
#include "topo/nccl_profile.h"
#include "topo/nccl_profile_file.h"
#include "topo/topo_file.h"

enum { TEXT_LEN = NCCL_LOG_LINE_MAX, SMALL_MAX = 1 << 16, WHERE = 320 };

static int cell_maybe(const struct table *b, int col, int *out) /* true, false or null (-1) */
{
    bool on = false;

    *out = -1;
    if (json_is_null(json_array_get(b->row, (size_t)col)))
        return 0;
    if (cell_flag(b, col, &on) < 0)
        return -1;
    *out = on;
    return 0;
}

static int cell_copy(const struct table *b, int col, char *to, size_t size)
{
    const char *text;

    if (cell_text(b, col, size - 1, true, &text) < 0)
        return -1;
    snprintf(to, size, "%s", text ? text : "");
    return 0;
}

static int cell_id(const struct table *b, int col, uint64_t *out)
{
    const char *text;
    char *end;

    if (cell_text(b, col, 18, false, &text) < 0)
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 16);
    return errno || *end || text[0] != '0' || text[1] != 'x'
               ? cell_bad(b, col, "not a number like 0x1f")
               : 0;
}

static int read_seats(struct nccl_profile *p, struct table *b)
{
    int rc = 0;

    while (table_next(b, SEAT_COLUMNS, &rc)) {
        struct nccl_seat s = {0};
        if (cell_index(b, 0, TABLE_ROWS_MAX, true, &s.endpoint) < 0 ||
            cell_copy(b, 1, s.net, sizeof(s.net)) < 0 ||
            cell_copy(b, 2, s.busid, sizeof(s.busid)) < 0 || cell_maybe(b, 3, &s.nvls) < 0)
            return -1;
        MEM_PUSH(p->seat, p->seats) = s;
    }
    return rc;
}

static int read_ports(struct nccl_profile *p, struct table *b)
{
    int rc = 0, seat;

    while (table_next(b, PORT_COLUMNS, &rc)) {
        struct nccl_nic n = {0};
        if (cell_index(b, 0, p->seats, false, &seat) < 0 ||
            cell_index(b, 1, SMALL_MAX + 1, true, &n.number) < 0 ||
            cell_copy(b, 2, n.name, sizeof(n.name)) < 0 || cell_maybe(b, 3, &n.gdr) < 0)
            return -1;
        MEM_PUSH(p->seat[seat].nic, p->seat[seat].nics) = n;
    }
    return rc;
}

/* A list of whole numbers below max (null: -1 where allowed); the caller frees *out. */
static int cell_list(const struct table *b, int col, int size, int max, bool null, int **out)
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

static int read_comm(struct nccl_comm_profile *c, const struct table *b)
{
    if (cell_id(b, 0, &c->hash) < 0 || cell_index(b, 1, NCCL_RANKS_MAX + 1, false, &c->ranks) < 0 ||
        cell_index(b, 2, NCCL_RANKS_MAX, true, &c->rank) < 0 ||
        cell_index(b, 3, NCCL_RANKS_MAX + 1, true, &c->nodes) < 0 ||
        cell_index(b, 4, NCCL_RANKS_MAX + 1, true, &c->local) < 0 ||
        cell_maybe(b, 5, &c->mnnvl) < 0)
        return -1;
    int *const channels[] = {&c->coll, &c->nvls, &c->p2p, &c->p2p_peer};
    for (int i = 0; i < 4; i++)
        if (cell_index(b, 6 + i, SMALL_MAX + 1, true, channels[i]) < 0)
            return -1;
    c->nodes += c->nodes < 0;
    c->local += c->local < 0;
    if (cell_flag(b, 10, &c->complete) < 0)
        return -1;
    return json_is_null(json_array_get(b->row, 11))
               ? 0
               : cell_list(b, 11, c->ranks, TABLE_ROWS_MAX, true, &c->endpoint);
}

static int read_comms(struct nccl_profile *p, struct table *b)
{
    int rc = 0;

    while (table_next(b, COMM_COLUMNS, &rc)) {
        struct nccl_comm_profile c = {0};
        if (read_comm(&c, b) < 0)
            return -1;
        MEM_PUSH(p->comm, p->comms) = c;
    }
    return rc;
}

static int read_graphs(struct nccl_profile *p, struct table *b)
{
    int rc = 0, comm, kind;

    while (table_next(b, GRAPH_COLUMNS, &rc)) {
        struct nccl_graph g = {0};
        if (cell_index(b, 0, p->comms, false, &comm) < 0 ||
            cell_name(b, 1, nccl_graph_name, NCCL_GRAPH_COUNT, &kind) < 0 ||
            cell_index(b, 2, 64, false, &g.pattern) < 0 ||
            cell_index(b, 3, SMALL_MAX, false, &g.channels) < 0 ||
            cell_number(b, 4, 1e16, &g.intra_Bps) < 0 ||
            cell_number(b, 5, 1e16, &g.inter_Bps) < 0 ||
            cell_copy(b, 6, g.type_intra, sizeof(g.type_intra)) < 0 ||
            cell_copy(b, 7, g.type_inter, sizeof(g.type_inter)) < 0)
            return -1;
        p->comm[comm].graph[kind] = g;
    }
    return rc;
}

static int read_rings(struct nccl_profile *p, struct table *b)
{
    int rc = 0, comm, *order;

    while (table_next(b, RING_COLUMNS, &rc)) {
        if (cell_index(b, 0, p->comms, false, &comm) < 0)
            return -1;
        struct nccl_comm_profile *c = &p->comm[comm];
        int each = c->endpoint ? c->ranks : 2;
        if (c->rings >= NCCL_RINGS_MAX)
            return cell_bad(b, 0, "with more rings than are possible");
        if (cell_list(b, 1, each, c->ranks, false, &order) < 0)
            return -1;
        c->ring = mem_realloc(c->ring, (size_t)(c->rings + 1) * (size_t)each, sizeof(int));
        memcpy(c->ring + (size_t)c->rings++ * (size_t)each, order, (size_t)each * sizeof(int));
        free(order);
    }
    return rc;
}

static int read_links(struct nccl_profile *p, struct table *b)
{
    int rc = 0, comm, via;

    while (table_next(b, LINK_COLUMNS, &rc)) {
        struct nccl_link k = {0};
        if (cell_index(b, 0, p->comms, false, &comm) < 0 ||
            cell_index(b, 1, p->comm[comm].ranks, false, &k.from) < 0 ||
            cell_index(b, 2, p->comm[comm].ranks, false, &k.to) < 0 ||
            cell_name(b, 3, nccl_via_name, NCCL_VIA_COUNT, &via) < 0 ||
            cell_index(b, 4, SMALL_MAX + 1, true, &k.net) < 0 ||
            cell_index(b, 5, NCCL_RANKS_MAX + 1, true, &k.through) < 0 ||
            cell_flag(b, 6, &k.gdr) < 0 || cell_flag(b, 7, &k.shared) < 0 ||
            cell_flag(b, 8, &k.receives) < 0 || cell_index(b, 9, INT32_MAX, false, &k.channels) < 0)
            return -1;
        k.via = (enum nccl_via)via;
        int at = p->links;
        MEM_PUSH(p->link_comm, at) = comm;
        MEM_PUSH(p->link, p->links) = k;
    }
    return rc;
}

static int read_choices(struct nccl_profile *p, struct table *b)
{
    int rc = 0;

    while (table_next(b, CHOICE_COLUMNS, &rc)) {
        struct nccl_choice c = {0};
        const json_t *bytes = json_array_get(b->row, 2);
        if (cell_index(b, 0, p->comms, false, &c.comm) < 0 ||
            cell_copy(b, 1, c.op, sizeof(c.op)) < 0 ||
            cell_copy(b, 3, c.algo, sizeof(c.algo)) < 0 ||
            cell_copy(b, 4, c.proto, sizeof(c.proto)) < 0 ||
            cell_index(b, 5, SMALL_MAX, true, &c.channels) < 0)
            return -1;
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
            return cell_bad(b, 2, "not a number of bytes");
        c.bytes = json_integer_value(bytes);
        MEM_PUSH(p->choice, p->choices) = c;
    }
    return rc;
}

static int read_dumps(struct nccl_profile *p, struct table *b)
{
    int rc = 0, comm;

    while (table_next(b, DUMP_COLUMNS, &rc)) {
        if (cell_index(b, 0, p->comms, true, &comm) < 0)
            return -1;
        int at = p->n_paths;
        MEM_PUSH(p->paths_comm, at) = comm;
        MEM_PUSH(p->paths, p->n_paths) = (struct nccl_paths){.gpus = 0};
    }
    return rc;
}

static int read_gpus(struct nccl_profile *p, struct table *b)
{
    int rc = 0, dump;

    while (table_next(b, GPU_COLUMNS, &rc)) {
        struct nccl_xml_gpu g = {0};
        if (cell_index(b, 0, p->n_paths, false, &dump) < 0 ||
            cell_index(b, 1, NCCL_RANKS_MAX + 1, true, &g.rank) < 0 ||
            cell_index(b, 2, SMALL_MAX + 1, false, &g.dev) < 0 ||
            cell_index(b, 3, SMALL_MAX, false, &g.sm) < 0 || cell_id(b, 4, &g.host) < 0 ||
            cell_copy(b, 5, g.busid, sizeof(g.busid)) < 0 || cell_flag(b, 6, &g.gdr) < 0 ||
            cell_index(b, 7, INT32_MAX, false, &g.nvlinks) < 0)
            return -1;
        if (p->paths[dump].gpus >= NCCL_XML_KIND_MAX)
            return cell_bad(b, 0, "a dump of more GPUs than are possible");
        MEM_PUSH(p->paths[dump].gpu, p->paths[dump].gpus) = g;
    }
    return rc;
}

static int read_nets(struct nccl_profile *p, struct table *b)
{
    int rc = 0, dump;

    while (table_next(b, NET_COLUMNS, &rc)) {
        struct nccl_xml_net n = {0};
        if (cell_index(b, 0, p->n_paths, false, &dump) < 0 ||
            cell_index(b, 1, SMALL_MAX + 1, false, &n.dev) < 0 || cell_id(b, 2, &n.host) < 0 ||
            cell_copy(b, 3, n.name, sizeof(n.name)) < 0 || cell_number(b, 4, 1e15, &n.Bps) < 0 ||
            cell_flag(b, 5, &n.gdr) < 0 || cell_index(b, 6, SMALL_MAX + 1, true, &n.rail) < 0 ||
            cell_index(b, 7, SMALL_MAX + 1, true, &n.plane) < 0)
            return -1;
        if (p->paths[dump].nets >= NCCL_XML_KIND_MAX)
            return cell_bad(b, 0, "a dump of more NICs than are possible");
        MEM_PUSH(p->paths[dump].net, p->paths[dump].nets) = n;
    }
    return rc;
}

static int read_route(struct nccl_route *r, const json_t *from)
{
    const char *name = json_string_value(json_array_get(from, 0));
    const json_t *Bps = json_array_get(from, 1);
    int type = nccl_path_type_find(name);

    if (type < 0 || json_array_size(from) != 2 ||
        !(json_is_null(Bps) || json_number_value(Bps) > 0))
        return -1;
    r->type = (unsigned char)type;
    r->Bps = json_number_value(Bps);
    return 0;
}

/* The last column of the GPUs again, now that all GPUs and NICs of their dumps are known. */
static int read_routes(struct nccl_profile *p, struct table *b)
{
    int *next = mem_calloc((size_t)p->n_paths + 1, sizeof(*next)), rc = 0, dump;

    for (int i = 0; i < p->n_paths; i++) {
        struct nccl_paths *d = &p->paths[i];
        d->pair = mem_calloc((size_t)d->gpus * (size_t)d->gpus + 1, sizeof(*d->pair));
        d->nic = mem_calloc((size_t)d->gpus * (size_t)d->nets + 1, sizeof(*d->nic));
    }
    b->at = 0;
    while (table_next(b, GPU_COLUMNS, &rc)) {
        const json_t *list = json_array_get(b->row, GPU_COLUMNS - 1);
        cell_index(b, 0, p->n_paths, false, &dump);
        struct nccl_paths *d = &p->paths[dump];
        int g = next[dump]++;
        if (!json_is_array(list) || json_array_size(list) != (size_t)(d->gpus + d->nets))
            rc = cell_bad(b, GPU_COLUMNS - 1, "not one path for each GPU and NIC of the dump");
        for (int i = 0; rc == 0 && i < d->gpus + d->nets; i++)
            if (read_route(i < d->gpus ? &d->pair[g * d->gpus + i]
                                       : &d->nic[g * d->nets + i - d->gpus],
                           json_array_get(list, (size_t)i)) < 0)
                rc = cell_bad(b, GPU_COLUMNS - 1, "with an entry that is no [type, Bps or null]");
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

static const struct nccl_table {
    const char *name;
    const char *const *columns;
    int count;
    int (*read)(struct nccl_profile *p, struct table *b);
} tables[NCCL_TABLES] = {
    /* A table comes after those that its rows refer to. */
    {"seats", nccl_seat_columns, SEAT_COLUMNS, read_seats},
    {"ports", nccl_port_columns, PORT_COLUMNS, read_ports},
    {"comms", nccl_comm_columns, COMM_COLUMNS, read_comms},
    {"graphs", nccl_graph_columns, GRAPH_COLUMNS, read_graphs},
    {"rings", nccl_ring_columns, RING_COLUMNS, read_rings},
    {"links", nccl_link_columns, LINK_COLUMNS, read_links},
    {"choices", nccl_choice_columns, CHOICE_COLUMNS, read_choices},
    {"dumps", nccl_dump_columns, DUMP_COLUMNS, read_dumps},
    {"nets", nccl_net_columns, NET_COLUMNS, read_nets},
    {"gpus", nccl_gpu_columns, GPU_COLUMNS, read_gpus},
};

static int read_all(struct nccl_profile *p, json_t *from, const char *where, struct err *err)
{
    json_t *version, *findings, *env, *warnings, *t[NCCL_TABLES];
    json_int_t lines, dropped;
    struct table b = {.path = where};

    if (json_take(
            from, where, err,
            "{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
            "version", &version, "lines", &lines, "dropped", &dropped, "findings", &findings, "env",
            &env, "warnings", &warnings, tables[0].name, &t[0], tables[1].name, &t[1],
            tables[2].name, &t[2], tables[3].name, &t[3], tables[4].name, &t[4], tables[5].name,
            &t[5], tables[6].name, &t[6], tables[7].name, &t[7], tables[8].name, &t[8],
            tables[9].name, &t[9]) < 0)
        return -1;
    if (!json_is_null(version)) {
        if (topo_text_check(json_string_value(version), sizeof(p->version) - 1, where, err) < 0)
            return -1;
        snprintf(p->version, sizeof(p->version), "%s", json_string_value(version));
    }
    p->lines = lines;
    p->dropped = dropped;
    if (read_texts(&p->finding, &p->findings, findings, where, "findings", err) < 0 ||
        read_texts(&p->env, &p->envs, env, where, "env", err) < 0 ||
        read_texts(&p->warn, &p->warns, warnings, where, "warnings", err) < 0)
        return -1;
    for (int i = 0; i < NCCL_TABLES; i++)
        if (table_open(&b, where, tables[i].name, t[i], tables[i].columns, tables[i].count, err) <
                0 ||
            tables[i].read(p, &b) < 0)
            return -1;
    return read_routes(p, &b); /* b is still at the GPUs */
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
