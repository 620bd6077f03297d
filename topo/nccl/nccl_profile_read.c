/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "topo/nccl/nccl_log.h"
#include "topo/nccl/nccl_profile.h"
#include "topo/nccl/nccl_profile_file.h"
#include "topo/topo_impl.h"

enum { TEXT_LEN = NCCL_LOG_LINE_MAX, WHERE = 320 };

static int read_seats(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0;

    while (topo_table_next(b, SEAT_COLUMNS, &rc)) {
        struct nccl_seat s = {0};
        if (cell_index(b, 0, TABLE_ROWS_MAX, true, &s.endpoint) < 0 ||
            cell_copy(b, 1, true, s.net, sizeof(s.net)) < 0 ||
            cell_copy(b, 2, true, s.busid, sizeof(s.busid)) < 0 || cell_maybe(b, 3, &s.nvls) < 0)
            return -1;
        MEM_PUSH(p->seat, p->seats) = s;
    }
    return rc;
}

static int read_ports(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, seat;

    while (topo_table_next(b, PORT_COLUMNS, &rc)) {
        struct nccl_nic n = {0};
        if (cell_index(b, 0, p->seats, false, &seat) < 0 ||
            cell_index(b, 1, NCCL_SMALL_MAX + 1, true, &n.number) < 0 ||
            cell_copy(b, 2, true, n.name, sizeof(n.name)) < 0 || cell_maybe(b, 3, &n.gdr) < 0)
            return -1;
        MEM_PUSH(p->seat[seat].nic, p->seat[seat].nics) = n;
    }
    return rc;
}

/* A list of whole numbers below max (null: -1 where allowed); the caller frees *out. */
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

static int read_comm(struct nccl_comm_profile *c, const struct topo_table *b)
{
    if (nccl_cell_id(b, 0, &c->hash) < 0 ||
        cell_index(b, 1, NCCL_RANKS_MAX + 1, false, &c->ranks) < 0 ||
        cell_index(b, 2, NCCL_RANKS_MAX, true, &c->rank) < 0 ||
        cell_index(b, 3, NCCL_RANKS_MAX + 1, true, &c->nodes) < 0 ||
        cell_index(b, 4, NCCL_RANKS_MAX + 1, true, &c->local) < 0 ||
        cell_maybe(b, 5, &c->mnnvl) < 0)
        return -1;
    int *const channels[] = {&c->coll, &c->nvls, &c->p2p, &c->p2p_peer};
    for (int i = 0; i < 4; i++)
        if (cell_index(b, 6 + i, NCCL_SMALL_MAX + 1, true, channels[i]) < 0)
            return -1;
    c->nodes += c->nodes < 0;
    c->local += c->local < 0;
    if (cell_flag(b, 10, &c->complete) < 0)
        return -1;
    return json_is_null(json_array_get(b->row, 11))
               ? 0
               : cell_list(b, 11, c->ranks, TABLE_ROWS_MAX, true, &c->endpoint);
}

static int read_comms(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0;

    while (topo_table_next(b, COMM_COLUMNS, &rc)) {
        struct nccl_comm_profile c = {0};
        if (read_comm(&c, b) < 0)
            return -1;
        MEM_PUSH(p->comm, p->comms) = c;
    }
    return rc;
}

static int read_graphs(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, comm, kind;

    while (topo_table_next(b, GRAPH_COLUMNS, &rc)) {
        struct nccl_graph g = {0};
        if (cell_index(b, 0, p->comms, false, &comm) < 0 ||
            cell_name(b, 1, nccl_graph_name, NCCL_GRAPH_COUNT, &kind) < 0 ||
            cell_index(b, 2, 64, false, &g.pattern) < 0 ||
            cell_index(b, 3, NCCL_SMALL_MAX, false, &g.channels) < 0 ||
            cell_number(b, 4, 1e16, &g.intra_Bps) < 0 ||
            cell_number(b, 5, 1e16, &g.inter_Bps) < 0 ||
            cell_copy(b, 6, true, g.type_intra, sizeof(g.type_intra)) < 0 ||
            cell_copy(b, 7, true, g.type_inter, sizeof(g.type_inter)) < 0)
            return -1;
        p->comm[comm].graph[kind] = g;
    }
    return rc;
}

static int read_rings(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, comm, *order;

    while (topo_table_next(b, RING_COLUMNS, &rc)) {
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

static int read_links(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0, comm, via;

    while (topo_table_next(b, LINK_COLUMNS, &rc)) {
        struct nccl_link k = {0};
        if (cell_index(b, 0, p->comms, false, &comm) < 0 ||
            cell_index(b, 1, p->comm[comm].ranks, false, &k.from) < 0 ||
            cell_index(b, 2, p->comm[comm].ranks, false, &k.to) < 0 ||
            cell_name(b, 3, nccl_via_name, NCCL_VIA_COUNT, &via) < 0 ||
            cell_index(b, 4, NCCL_SMALL_MAX + 1, true, &k.net) < 0 ||
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

static int read_choices(struct nccl_profile *p, struct topo_table *b)
{
    int rc = 0;

    while (topo_table_next(b, CHOICE_COLUMNS, &rc)) {
        struct nccl_choice c = {0};
        const json_t *bytes = json_array_get(b->row, 2);
        if (cell_index(b, 0, p->comms, false, &c.comm) < 0 ||
            cell_copy(b, 1, true, c.op, sizeof(c.op)) < 0 ||
            cell_copy(b, 3, true, c.algo, sizeof(c.algo)) < 0 ||
            cell_copy(b, 4, true, c.proto, sizeof(c.proto)) < 0 ||
            cell_index(b, 5, NCCL_SMALL_MAX, true, &c.channels) < 0)
            return -1;
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
            return cell_bad(b, 2, "not a number of bytes");
        c.bytes = json_integer_value(bytes);
        MEM_PUSH(p->choice, p->choices) = c;
    }
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
    int (*read)(struct nccl_profile *p, struct topo_table *b);
} tables[NCCL_TABLES] = {
    /* A table comes after those that its rows refer to. */
    {"seats", nccl_seat_columns, SEAT_COLUMNS, read_seats},
    {"ports", nccl_port_columns, PORT_COLUMNS, read_ports},
    {"comms", nccl_comm_columns, COMM_COLUMNS, read_comms},
    {"graphs", nccl_graph_columns, GRAPH_COLUMNS, read_graphs},
    {"rings", nccl_ring_columns, RING_COLUMNS, read_rings},
    {"links", nccl_link_columns, LINK_COLUMNS, read_links},
    {"choices", nccl_choice_columns, CHOICE_COLUMNS, read_choices},
    {"dumps", nccl_dump_columns, DUMP_COLUMNS, nccl_read_dumps},
    {"nets", nccl_net_columns, NET_COLUMNS, nccl_read_nets},
    {"gpus", nccl_gpu_columns, GPU_COLUMNS, nccl_read_gpus},
};

static int read_all(struct nccl_profile *p, json_t *from, const char *where, struct err *err)
{
    json_t *version, *findings, *env, *warnings, *t[NCCL_TABLES];
    json_int_t lines, dropped;
    struct topo_table b = {.path = where};

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
        if (topo_table_open(&b, where, tables[i].name, t[i], tables[i].columns, tables[i].count,
                            err) < 0 ||
            tables[i].read(p, &b) < 0)
            return -1;
    return nccl_read_routes(p, &b); /* b is still at the GPUs */
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
