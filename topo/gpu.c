/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/gpu.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/topo_impl.h"

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
    int *first = mem_calloc((size_t)t->hosts + 1, sizeof(*first)); /* first index + 1 by host */

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

/* --- table "gpus" of topology.json: facts of a GPU, once for struct, reader and writer --- */

static const char *const end_names[] = {"gpu", "cpu", "switch", "unknown"};
static const char *const path_names[] = {"self", "PIX", "PXB", "PHB", "NODE", "SYS"};
static const char *const state_names[] = {"not supported", "not started", "in progress",
                                          "completed"};
static const char *const summary_names[] = {"not supported", "healthy", "unhealthy",
                                            "limited capacity"};
static const char *const remap_names[] = {"none", "pending", "failed"};

static json_t *down_json(const void *gpu)
{
    const struct gpu *g = gpu;
    json_t *list = g->counted ? NULL : json_array();

    for (int i = 0; i < GPU_LINKS; i++)
        if (g->down >> i & 1)
            json_array_append_new(list, json_integer(i));
    return list;
}

static int load_down(const struct topo_table *b, int col, void *gpu)
{
    const json_t *list = json_array_get(b->row, (size_t)col);
    struct gpu *g = gpu;

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

static json_t *remotes_json(const void *gpu)
{
    const struct gpu *g = gpu;
    json_t *list = json_array();

    for (int i = 0; i < g->remotes; i++)
        json_array_append_new(list,
                              json_pack("[s, o, i]", end_names[g->remote[i].kind],
                                        topo_text_json(g->remote[i].busid), g->remote[i].links));
    return list;
}

static int load_remotes(const struct topo_table *b, int col, void *gpu)
{
    const json_t *list = json_array_get(b->row, (size_t)col);
    struct gpu *g = gpu;

    if (!json_is_array(list) || json_array_size(list) > GPU_LINKS)
        return cell_bad(b, col, "not a list of at most 36 ends");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i), *to = json_array_get(row, 1),
                     *n = json_array_get(row, 2);
        struct gpu_remote *r = &g->remote[g->remotes++];
        int kind = topo_word(end_names, 4, json_array_get(row, 0));
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

static json_t *paths_json(const void *gpu)
{
    const struct gpu *g = gpu;
    json_t *list = json_array();

    for (int i = 0; i < g->paths; i++)
        json_array_append_new(list, topo_text_json(g->path[i] < 0 ? NULL : path_names[g->path[i]]));
    return list;
}

static int load_paths(const struct topo_table *b, int col, void *gpu)
{
    const json_t *list = json_array_get(b->row, (size_t)col);
    struct gpu *g = gpu;

    if (!json_is_array(list) || json_array_size(list) > GPU_PEERS)
        return cell_bad(b, col, "not a list of at most 32 paths");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        int path = topo_word(path_names, 6, v);
        if (path < 0 && !json_is_null(v))
            return cell_bad(b, col, "with a word that is no path");
        g->path[g->paths++] = path;
    }
    return 0;
}

#define COLUMN(name, cell, max) TOPO_COLUMN(#name, cell, struct gpu, name, max)
#define INTEGER(name, max) COLUMN(name, CELL_INDEX_OR_NULL, (max) + 1)
#define LONG(name) COLUMN(name, CELL_LONG_OR_NULL, 0)
#define WORDS(name, words)                                                                         \
    {                                                                                              \
#name, CELL_WORD_OR_NULL, offsetof(struct gpu, name), sizeof(words) / sizeof(*(words)),    \
            words, NULL, NULL                                                                      \
    }
#define STRING(name) TOPO_COLUMN_TEXT(#name, struct gpu, name)

static const struct topo_column gpu_columns[] = {
    COLUMN(host, CELL_PARENT, LEVEL_HOST),
    COLUMN(index, CELL_INDEX, GPU_PEERS),
    STRING(busid),
    STRING(uuid),
    STRING(model),
    STRING(driver),
    INTEGER(links, GPU_LINKS),
    TOPO_COLUMN_OTHER("down", down_json, load_down),
    COLUMN(link_Bps, CELL_NUMBER, 1e15),
    TOPO_COLUMN_OTHER("remote", remotes_json, load_remotes),
    TOPO_COLUMN_OTHER("path", paths_json, load_paths),
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
enum { GPU_COLUMNS = sizeof(gpu_columns) / sizeof(*gpu_columns) };

void gpu_init(struct gpu *g)
{
    memset(g, 0, sizeof(*g));
    topo_row_null(gpu_columns, GPU_COLUMNS, g);
}

static int load_gpu(struct topo_reader *r, struct topo_table *b)
{
    struct topo *t = r->t;
    const struct gpu *before = t->gpus ? &t->gpu[t->gpus - 1] : NULL;
    struct gpu g;

    gpu_init(&g);
    if (topo_row_load(b, r->rows, &g) < 0)
        return -1;
    if (before && before->host > g.host)
        return cell_bad(b, 0, "after a row of a later host");
    if (before && before->host == g.host && before->index >= g.index)
        return cell_bad(b, 1, "but the rows of a host count up");
    MEM_PUSH(t->gpu, t->gpus) = g;
    return 0;
}

const struct topo_rows gpu_rows = {
    TOPO_ROWS("gpus", gpu_columns, struct topo, gpu, gpus),
    .load = load_gpu,
};
