/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/seal.h"
#include "topo/host/nic.h"
#include "topo/nccl/nccl_profile.h"
#include "topo/topo_impl.h"

#define FILE_MAX ((size_t)256 << 20)
enum { ITEMS_MAX = TABLE_ROWS_MAX, NAME_LEN = 255, TEXT_LEN = 500, LOCAL_MAX = 65535, WHERE = 320 };

const char *const host_columns[HOST_COLUMNS] = {"name", "cpu", "sockets", "cores", "memory_bytes"};
const char *const nic_columns[NIC_COLUMNS] = {"host", "name", "busid", "link_layer", "rate_Bps",
                                              "up",   "rdma", "numa",  "source"};
const char *const endpoint_columns[ENDPOINT_COLUMNS] = {"host", "domain", "leaf",  "rack",
                                                        "rail", "local",  "kind",  "numa",
                                                        "nic",  "busid",  "model", "source"};
const char *const link_layer_name[3] = {"unknown", "ethernet", "infiniband"};

static int load_hosts(struct topo *t, struct topo_table *b)
{
    int rc = 0;

    while (topo_table_next(b, HOST_COLUMNS, &rc)) {
        const char *name, *cpu;
        int sockets, cores;
        double memory;
        if (cell_text(b, 0, NAME_LEN, false, &name) < 0 ||
            cell_text(b, 1, NAME_LEN, true, &cpu) < 0 ||
            cell_index(b, 2, LOCAL_MAX, true, &sockets) < 0 ||
            cell_index(b, 3, ITEMS_MAX, true, &cores) < 0 || cell_number(b, 4, 1e18, &memory) < 0)
            return -1;
        if (strpbrk(name, "[],")) /* no host list could hold it */
            return cell_bad(b, 0, "with a bracket or a comma");
        if (*name == '-')
            return cell_bad(b, 0, "with a dash in front, as options have");
        if (topo_add_host(t, name) != t->hosts - 1 || (size_t)t->hosts != b->at)
            return cell_bad(b, 0, "there twice");
        struct host *h = &t->host[t->hosts - 1];
        h->cpu = cpu ? mem_strdup(cpu) : NULL;
        h->sockets = sockets < 0 ? 0 : sockets;
        h->cores = cores < 0 ? 0 : cores;
        h->memory_bytes = memory;
    }
    return rc;
}

static int load_nics(struct topo *t, struct topo_table *b)
{
    int rc = 0;

    while (topo_table_next(b, NIC_COLUMNS, &rc)) {
        struct nic n;
        int layer, source;
        nic_init(&n, 0);
        if (cell_index(b, 0, t->hosts, false, &n.host) < 0 ||
            cell_copy(b, 1, false, n.name, sizeof(n.name)) < 0 ||
            cell_copy(b, 2, true, n.busid, sizeof(n.busid)) < 0 ||
            cell_name(b, 3, link_layer_name, 3, &layer) < 0 ||
            cell_number(b, 4, 1e15, &n.rate_Bps) < 0 || cell_flag(b, 5, &n.up) < 0 ||
            cell_flag(b, 6, &n.rdma) < 0 || cell_index(b, 7, LOCAL_MAX, true, &n.numa) < 0 ||
            cell_name(b, 8, source_name, SOURCE_COUNT, &source) < 0)
            return -1;
        n.layer = (enum link_layer)layer;
        n.source = (enum source)source;
        MEM_PUSH(t->nic, t->nics) = n;
    }
    return rc;
}

/* It is read to see that it is right, and kept as it is. */
static int load_nccl(struct topo *t, json_t *from, const char *path, struct err *err)
{
    struct nccl_profile p;
    char where[WHERE];

    if (!from)
        return 0;
    snprintf(where, sizeof(where), "%s: nccl", path);
    if (nccl_profile_read(&p, from, where, err) < 0)
        return -1;
    nccl_profile_free(&p);
    t->nccl = json_incref(from);
    return 0;
}

/* The dictionaries of the endpoint table. */
struct words {
    json_t *models, *sources;
};

static int set_sources(struct endpoint *e, const struct topo_table *b, json_t *from)
{
    for (int l = 0; l < LEVEL_PLACES; l++) {
        const char *name = json_string_value(json_array_get(from, (size_t)l));
        int source = name ? source_find(name) : -1;
        if (source < 0 || json_array_size(from) != LEVEL_PLACES)
            return cell_bad(b, ENDPOINT_COLUMNS - 1, "an entry of \"sources\" with unknown words");
        if ((source == SOURCE_NONE) != (e->place.at[l] < 0))
            return cell_bad(b, l, "which does not fit its source: null goes with \"none\"");
        e->source[l] = (unsigned char)source;
    }
    return 0;
}

static int load_endpoint(struct topo *t, const struct topo_table *b, const struct words *w)
{
    struct endpoint e = {.gpu = -1, .place.at[LEVEL_SPINE] = -1};
    int kind, model, source, col = LEVEL_PLACES;
    const char *text = NULL;

    for (int l = 0; l < LEVEL_PLACES; l++)
        if (cell_index(b, l, t->group[l].count, l != LEVEL_HOST, &e.place.at[l]) < 0)
            return -1;
    if (cell_index(b, col, LOCAL_MAX, false, &e.local) < 0 ||
        cell_name(b, col + 1, endpoint_kind_name, 2, &kind) < 0 ||
        cell_index(b, col + 2, LOCAL_MAX, true, &e.numa) < 0 ||
        cell_index(b, col + 3, t->nics, true, &e.nic) < 0 ||
        cell_copy(b, col + 4, true, e.busid, sizeof(e.busid)) < 0 ||
        cell_index(b, col + 5, (int)json_array_size(w->models), true, &model) < 0 ||
        cell_index(b, col + 6, (int)json_array_size(w->sources), false, &source) < 0 ||
        set_sources(&e, b, json_array_get(w->sources, (size_t)source)) < 0)
        return -1;
    if (e.nic >= 0 && t->nic[e.nic].host != e.place.at[LEVEL_HOST])
        return cell_bad(b, col + 3, "a NIC of another host");
    if (model >= 0)
        text = json_string_value(json_array_get(w->models, (size_t)model));
    if (model >= 0 && (!text || topo_text_check(text, sizeof(e.model) - 1, "", NULL) < 0))
        return cell_bad(b, col + 5, "and that entry of \"models\" is no text of fitting length");
    e.kind = (enum endpoint_kind)kind;
    snprintf(e.model, sizeof(e.model), "%s", text ? text : "");
    t->host[e.place.at[LEVEL_HOST]].endpoints++;
    MEM_PUSH(t->endpoint, t->endpoints) = e;
    return 0;
}

static int load_levels(struct topo *t, json_t *levels, const char *path, struct err *err)
{
    json_t *list[LEVEL_PLACES] = {NULL};
    char where[WHERE];

    snprintf(where, sizeof(where), "%s: levels", path);
    if (json_take(levels, where, err, "{s:o, s:o, s:o, s:o}", level_name[LEVEL_DOMAIN],
                  &list[LEVEL_DOMAIN], level_name[LEVEL_LEAF], &list[LEVEL_LEAF],
                  level_name[LEVEL_RACK], &list[LEVEL_RACK], level_name[LEVEL_RAIL],
                  &list[LEVEL_RAIL]) < 0)
        return -1;
    for (int l = LEVEL_HOST + 1; l < LEVEL_PLACES; l++) {
        if (!json_is_array(list[l]) || json_array_size(list[l]) > ITEMS_MAX)
            return err_data(err, "%s.%s is not a list of at most %d names", where, level_name[l],
                            ITEMS_MAX);
        for (size_t i = 0; i < json_array_size(list[l]); i++) {
            const char *name = json_string_value(json_array_get(list[l], i));
            char at[WHERE + 48];
            snprintf(at, sizeof(at), "%s.%s[%zu]", where, level_name[l], i);
            if (topo_text_check(name, NAME_LEN, at, err) < 0)
                return -1;
            if (topo_add_group(t, l, name) != (int)i)
                return err_data(err, "%s: \"%s\" is there twice", at, name);
        }
    }
    return 0;
}

static int load_tiers(struct topo *t, json_t *tiers, const char *path, struct err *err)
{
    size_t n = json_array_size(tiers);
    char where[WHERE];

    if (!n || n > TIER_MAX)
        return err_data(err, "%s: tiers: %zu of them where 1..%d are possible", path, n, TIER_MAX);
    for (size_t i = 0; i < n; i++) {
        struct tier_rule *r = &t->tier[t->tiers++];
        const char *name;
        json_t *same;
        snprintf(where, sizeof(where), "%s: tiers[%zu]", path, i);
        if (json_take(json_array_get(tiers, i), where, err, "{s:s, s:o}", "name", &name, "same",
                      &same) < 0 ||
            topo_text_check(name, sizeof(r->name) - 1, where, err) < 0 ||
            topo_same_read(&r->same, same, where, err) < 0)
            return -1;
        snprintf(r->name, sizeof(r->name), "%s", name);
        if ((r->same == 0) != (i == n - 1))
            return err_data(err, "%s: \"same\" must be empty in the last tier and only there",
                            where);
    }
    return 0;
}

static int load_unseen(struct topo *t, json_t *unseen, const char *path, struct err *err)
{
    char where[WHERE];

    if (!json_is_array(unseen))
        return err_data(err, "%s: \"unseen\" is not a list", path);
    for (size_t i = 0; i < json_array_size(unseen); i++) {
        const char *what, *why;
        snprintf(where, sizeof(where), "%s: unseen[%zu]", path, i);
        if (i >= 1000)
            return err_data(err, "%s: more than 1000 entries", where);
        if (json_take(json_array_get(unseen, i), where, err, "{s:s, s:s}", "what", &what, "why",
                      &why) < 0 ||
            topo_text_check(what, TEXT_LEN, where, err) < 0 ||
            topo_text_check(why, TEXT_LEN, where, err) < 0)
            return -1;
        topo_unseen(t, what, "%s", why);
    }
    return 0;
}

static int load_tables(struct topo *t, json_t *hosts, json_t *nics, json_t *endpoints,
                       const struct words *w, const char *path, struct err *err)
{
    struct topo_table b;
    int rc = 0;

    if (topo_table_open(&b, path, "hosts", hosts, host_columns, HOST_COLUMNS, err) < 0 ||
        load_hosts(t, &b) < 0 ||
        topo_table_open(&b, path, "nics", nics, nic_columns, NIC_COLUMNS, err) < 0 ||
        load_nics(t, &b) < 0 ||
        topo_table_open(&b, path, "endpoints", endpoints, endpoint_columns, ENDPOINT_COLUMNS, err) <
            0)
        return -1;
    while (topo_table_next(&b, ENDPOINT_COLUMNS, &rc))
        if (load_endpoint(t, &b, w) < 0)
            return -1;
    return rc;
}

static int load_topo(struct topo *t, json_t *root, const char *path, struct err *err)
{
    json_t *fabric, *provenance, *tiers, *unseen, *levels, *hosts, *nics, *endpoints, *ignored,
        *seal = NULL, *gpus = NULL, *trials = NULL, *nccl = NULL, *spines = NULL, *claims = NULL,
        *ports = NULL, *gpudirect = NULL, *net_nodes = NULL, *cables = NULL;
    struct words w;

    if (json_take(
            root, path, err,
            "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s?o, s?o, s:o, s:o, s:o, s?o, s?o, s?o, "
            "s?o, s?o, s?o, s?o, s?o}",
            "format", &ignored, "version", &ignored, "provenance", &provenance, "fabric", &fabric,
            "tiers", &tiers, "unseen", &unseen, "levels", &levels, "hosts", &hosts, "nics", &nics,
            "gpus", &gpus, "trials", &trials, "endpoints", &endpoints, "models", &w.models,
            "sources", &w.sources, "nccl", &nccl, "spines", &spines, "claims", &claims, "ports",
            &ports, "gpudirect", &gpudirect, "net_nodes", &net_nodes, "cables", &cables, SEAL_KEY,
            &seal) < 0)
        return -1;
    if (!seal)
        json_unsealed(path);
    if (!json_is_object(provenance))
        return err_data(err, "%s: \"provenance\" is not an object", path);
    if (!json_is_null(fabric)) {
        char where[WHERE];
        snprintf(where, sizeof(where), "%s: fabric", path);
        if (topo_text_check(json_string_value(fabric), NAME_LEN, where, err) < 0)
            return -1;
        t->fabric = mem_strdup(json_string_value(fabric));
    }
    return load_tiers(t, tiers, path, err) < 0 || load_unseen(t, unseen, path, err) < 0 ||
                   load_levels(t, levels, path, err) < 0 ||
                   load_tables(t, hosts, nics, endpoints, &w, path, err) < 0 ||
                   (ports && port_rows_load(t, ports, path, err) < 0) ||
                   (gpudirect && gpudirect_rows_load(t, gpudirect, path, err) < 0) ||
                   (gpus && gpu_rows_load(t, gpus, path, err) < 0) ||
                   (trials && trial_rows_load(t, trials, path, err) < 0) ||
                   (spines && spine_rows_load(t, spines, path, err) < 0) ||
                   (claims && claim_rows_load(t, claims, path, err) < 0) ||
                   net_rows_load(t, net_nodes, cables, path, err) < 0 ||
                   load_nccl(t, nccl, path, err) < 0
               ? -1
               : (topo_link_gpus(t), 0);
}

int topo_parse(struct topo *t, const char *text, size_t len, const char *path, struct err *err)
{
    json_t *root;

    topo_init(t);
    if (json_parse(&root, text, len, path, TOPO_FORMAT, TOPO_VERSION, err) < 0)
        return -1;
    int rc = load_topo(t, root, path, err);
    json_decref(root);
    if (rc < 0)
        topo_free(t);
    return rc;
}

int topo_load(struct topo *t, const char *path, struct err *err)
{
    char *text;
    size_t len;

    topo_init(t);
    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    int rc = topo_parse(t, text, len, path, err);
    free(text);
    return rc;
}
