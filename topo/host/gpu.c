/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/host/gpu.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/topo_impl.h"

void gpu_init(struct gpu *g)
{
    *g = (struct gpu){.links = -1,
                      .state = -1,
                      .status = -1,
                      .clique = -1,
                      .health = -1,
                      .summary = -1,
                      .slot = -1,
                      .tray = -1,
                      .node = -1,
                      .module = -1,
                      .pcie_gen = -1,
                      .pcie_gen_max = -1,
                      .pcie_width = -1,
                      .pcie_width_max = -1,
                      .sm_MHz = -1,
                      .sm_MHz_max = -1,
                      .throttle = -1,
                      .ecc_corrected = -1,
                      .ecc_uncorrected = -1,
                      .retired_pages = -1,
                      .remapped_rows = -1,
                      .pcie_replays = -1,
                      .link_errors = -1,
                      .remap = -1,
                      .recovery = -1,
                      .imex_channels = -1,
                      .imex_nodes = -1};
}

int gpu_links_up(const struct gpu *g)
{
    return g->links < 0 ? 0 : g->links - __builtin_popcountll(g->down);
}

char *gpu_links_text(const struct gpu *g, char buf[GPU_LINKS_TEXT])
{
    int up = gpu_links_up(g);

    if (g->counted)
        snprintf(buf, GPU_LINKS_TEXT, "%d NVLink%s", up, up == 1 ? "" : "s");
    else
        snprintf(buf, GPU_LINKS_TEXT, "%d of %d NVLinks", up, g->links);
    return buf;
}

void topo_link_gpus(struct topo *t)
{
    int *first = mem_calloc((size_t)t->hosts + 1, sizeof(*first)); /* row + 1 of each host */

    for (int i = t->gpus - 1; i >= 0; i--)
        first[t->gpu[i].host] = i + 1;
    for (int e = 0; e < t->endpoints; e++) {
        struct endpoint *p = &t->endpoint[e];
        int host = p->place.at[LEVEL_HOST];
        p->gpu = -1;
        if (p->kind != ENDPOINT_GPU || !first[host])
            continue;
        for (int i = first[host] - 1; i < t->gpus && t->gpu[i].host == host; i++)
            if (p->busid[0] ? !strcmp(t->gpu[i].busid, p->busid)
                            : !t->gpu[i].busid[0] && t->gpu[i].index == p->local)
                p->gpu = i;
    }
    free(first);
}

/* --- the table "gpus" of topology.json, both ways, by one list of columns --- */

static const char *const end_names[] = {"gpu", "cpu", "switch", "unknown"};
static const char *const path_names[] = {"self", "PIX", "PXB", "PHB", "NODE", "SYS"};
static const char *const state_names[] = {"not supported", "not started", "in progress",
                                          "completed"};
static const char *const summary_names[] = {"not supported", "healthy", "unhealthy",
                                            "limited capacity"};
static const char *const remap_names[] = {"none", "pending", "failed"};

enum cell { INT, COUNT, TEXT, RATE, WORD, DOWN, REMOTES, PATHS };

/* `room`: INT: first number too large; TEXT: bytes of the field; WORD: how many words. */
struct column {
    const char *name;
    enum cell cell;
    size_t at;
    int room;
    const char *const *words;
};

#define COLUMN(name, cell, room, words)                                                            \
    {                                                                                              \
#name, cell, offsetof(struct gpu, name), room, words                                       \
    }
#define INTEGER(name, max) COLUMN(name, INT, (max) + 1, NULL)
#define LONG(name) COLUMN(name, COUNT, 0, NULL)
#define WORDS(name, words) COLUMN(name, WORD, (int)(sizeof(words) / sizeof(*(words))), words)
#define STRING(name) COLUMN(name, TEXT, (int)sizeof(((struct gpu *)0)->name), NULL)

static const struct column column[] = {
    STRING(busid),
    STRING(uuid),
    STRING(model),
    STRING(driver),
    INTEGER(links, GPU_LINKS),
    COLUMN(down, DOWN, 0, NULL),
    COLUMN(link_Bps, RATE, 0, NULL),
    COLUMN(remote, REMOTES, 0, NULL),
    COLUMN(path, PATHS, 0, NULL),
    WORDS(state, state_names),
    INTEGER(status, 9999),
    STRING(cluster),
    LONG(clique),
    LONG(health),
    WORDS(summary, summary_names),
    STRING(chassis),
    INTEGER(slot, 255),
    INTEGER(tray, 255),
    INTEGER(node, 255),
    INTEGER(module, 65535),
    INTEGER(pcie_gen, 255),
    INTEGER(pcie_gen_max, 255),
    INTEGER(pcie_width, 255),
    INTEGER(pcie_width_max, 255),
    INTEGER(sm_MHz, 99999),
    INTEGER(sm_MHz_max, 99999),
    LONG(throttle),
    LONG(ecc_corrected),
    LONG(ecc_uncorrected),
    LONG(retired_pages),
    LONG(remapped_rows),
    WORDS(remap, remap_names),
    LONG(pcie_replays),
    LONG(link_errors),
    INTEGER(recovery, 255),
    INTEGER(imex_channels, 65535),
    INTEGER(imex_nodes, 65535),
};
enum { COLUMNS = sizeof(column) / sizeof(*column), FIRST = 2 }; /* after host and index */

const char *const *gpu_columns(int *count)
{
    static const char *names[COLUMNS + FIRST] = {"host", "index"};

    for (int i = 0; i < COLUMNS; i++)
        names[FIRST + i] = column[i].name;
    *count = COLUMNS + FIRST;
    return names;
}

/* --- out --- */

static json_t *whole_or_null(long long v)
{
    return v < 0 ? json_null() : json_integer(v);
}

static json_t *text_or_null(const char *s)
{
    json_t *j = *s ? json_string(s) : NULL;

    return j ? j : json_null();
}

static json_t *down_json(const struct gpu *g)
{
    json_t *list = g->counted ? json_null() : json_array();

    for (int i = 0; i < GPU_LINKS; i++)
        if (g->down >> i & 1)
            json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *remotes_json(const struct gpu *g)
{
    json_t *list = json_array();

    for (int i = 0; i < g->remotes; i++)
        json_array_append_new(list,
                              json_pack("[s, o, i]", end_names[g->remote[i].kind],
                                        text_or_null(g->remote[i].busid), g->remote[i].links));
    return list;
}

static json_t *paths_json(const struct gpu *g)
{
    json_t *list = json_array();

    for (int i = 0; i < g->paths; i++)
        json_array_append_new(list,
                              g->path[i] < 0 ? json_null() : json_string(path_names[g->path[i]]));
    return list;
}

static json_t *cell_json(const struct gpu *g, const struct column *c)
{
    const char *at = (const char *)g + c->at;
    int number;
    long long whole;
    double rate;

    switch (c->cell) {
    case INT:
        memcpy(&number, at, sizeof(number));
        return whole_or_null(number);
    case WORD:
        memcpy(&number, at, sizeof(number));
        return number < 0 ? json_null() : json_string(c->words[number]);
    case COUNT:
        memcpy(&whole, at, sizeof(whole));
        return whole_or_null(whole);
    case RATE:
        memcpy(&rate, at, sizeof(rate));
        return rate > 0 ? json_real(rate) : json_null();
    case TEXT:
        return text_or_null(at);
    case DOWN:
        return down_json(g);
    case REMOTES:
        return remotes_json(g);
    case PATHS:
        return paths_json(g);
    }
    return json_null();
}

json_t *gpu_row(const struct gpu *g)
{
    json_t *row = json_pack("[i, i]", g->host, g->index);

    for (int i = 0; i < COLUMNS; i++)
        json_array_append_new(row, cell_json(g, &column[i]));
    return row;
}

/* --- in --- */

static int find_word(const char *const *words, int count, const json_t *v)
{
    for (int i = 0; json_is_string(v) && i < count; i++)
        if (!strcmp(words[i], json_string_value(v)))
            return i;
    return -1;
}

static int load_whole(const struct topo_table *b, int col, long long *out)
{
    const json_t *v = json_array_get(b->row, (size_t)col);

    *out = json_is_null(v) ? -1 : json_integer_value(v);
    if (!json_is_null(v) && (!json_is_integer(v) || *out < 0))
        return cell_bad(b, col, "not a whole number from 0 or null");
    return 0;
}

static int load_down(struct gpu *g, const struct topo_table *b, int col)
{
    const json_t *list = json_array_get(b->row, (size_t)col);

    g->counted = json_is_null(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        json_int_t link = json_is_integer(v) ? json_integer_value(v) : -1;
        if (link < 0 || link >= GPU_LINKS || (g->down >> link & 1))
            return cell_bad(b, col, "not numbers of links, each once");
        g->down |= 1ULL << link;
    }
    if (!g->counted &&
        (!json_is_array(list) || (int)json_array_size(list) > (g->links < 0 ? 0 : g->links)))
        return cell_bad(b, col, "not a list of at most as many links as there are, or null");
    return 0;
}

static int load_remotes(struct gpu *g, const struct topo_table *b, int col)
{
    const json_t *list = json_array_get(b->row, (size_t)col);

    if (!json_is_array(list) || json_array_size(list) > GPU_LINKS)
        return cell_bad(b, col, "not a list of at most 36 ends");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i), *to = json_array_get(row, 1),
                     *n = json_array_get(row, 2);
        struct gpu_remote *r = &g->remote[g->remotes++];
        int kind = find_word(end_names, 4, json_array_get(row, 0));
        json_int_t links = json_is_integer(n) ? json_integer_value(n) : 0;
        const char *busid = json_string_value(to);
        if (json_array_size(row) != 3 || kind < 0 || links < 1 || links > GPU_LINKS ||
            (!json_is_null(to) && topo_text_check(busid, sizeof(r->busid) - 1, "", NULL) < 0))
            return cell_bad(b, col, "with an end that is not [kind, busid, links]");
        r->kind = (enum link_end)kind;
        r->links = (int)links;
        snprintf(r->busid, sizeof(r->busid), "%s", busid ? busid : "");
    }
    return 0;
}

static int load_paths(struct gpu *g, const struct topo_table *b, int col)
{
    const json_t *list = json_array_get(b->row, (size_t)col);

    if (!json_is_array(list) || json_array_size(list) > GPU_PEERS)
        return cell_bad(b, col, "not a list of at most 32 paths");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        int path = find_word(path_names, 6, v);
        if (path < 0 && !json_is_null(v))
            return cell_bad(b, col, "with a word that is no path");
        g->path[g->paths++] = path;
    }
    return 0;
}

static int load_int(const struct topo_table *b, const struct column *c, int col, int *out)
{
    *out = -1;
    if (c->cell == INT)
        return cell_index(b, col, c->room, true, out);
    return json_is_null(json_array_get(b->row, (size_t)col))
               ? 0
               : cell_name(b, col, c->words, c->room, out);
}

static int load_cell(struct gpu *g, const struct topo_table *b, const struct column *c, int col)
{
    char *at = (char *)g + c->at;
    long long whole;
    double rate;
    int number, rc;

    switch (c->cell) {
    case INT:
    case WORD:
        rc = load_int(b, c, col, &number);
        memcpy(at, &number, sizeof(number));
        return rc;
    case COUNT:
        rc = load_whole(b, col, &whole);
        memcpy(at, &whole, sizeof(whole));
        return rc;
    case RATE:
        rc = cell_number(b, col, 1e15, &rate);
        memcpy(at, &rate, sizeof(rate));
        return rc;
    case TEXT:
        return cell_copy(b, col, true, at, (size_t)c->room);
    case DOWN:
        return load_down(g, b, col);
    case REMOTES:
        return load_remotes(g, b, col);
    case PATHS:
        return load_paths(g, b, col);
    }
    return -1;
}

int gpu_rows_load(struct topo *t, json_t *table, const char *path, struct err *err)
{
    int count, rc = 0;
    const char *const *names = gpu_columns(&count);
    struct topo_table b;

    if (topo_table_open(&b, path, "gpus", table, names, count, err) < 0)
        return -1;
    while (topo_table_next(&b, count, &rc)) {
        struct gpu g;
        gpu_init(&g);
        if (cell_index(&b, 0, t->hosts, false, &g.host) < 0 ||
            cell_index(&b, 1, GPU_PEERS, false, &g.index) < 0)
            return -1;
        const struct gpu *before = t->gpus ? &t->gpu[t->gpus - 1] : NULL;
        if (before && before->host > g.host)
            return cell_bad(&b, 0, "after a row of a later host");
        if (before && before->host == g.host && before->index >= g.index)
            return cell_bad(&b, 1, "but the rows of a host count up");
        for (int i = 0; i < COLUMNS; i++)
            if (load_cell(&g, &b, &column[i], FIRST + i) < 0)
                return -1;
        MEM_PUSH(t->gpu, t->gpus) = g;
    }
    return rc;
}
