/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/groups.h"
#include "topo/host/mnnvl.h"
#include "topo/host/nic.h"
#include "topo/nccl/nccl_profile.h"
#include "topo/topo_impl.h"

#define FILE_MAX ((size_t)256 << 20)
enum {
    ITEMS_MAX = TABLE_ROWS_MAX,
    NAME_LEN = TOPO_NAME_MAX,
    TEXT_LEN = 500,
    HOSTS_TEXT = 8 << 20,
    LOCAL_MAX = 65535,
    WHERE = 320
};

static int load_host(struct topo *t, struct topo_table *b)
{
    struct host_row r;

    if (topo_row_load(b, 0, &r) < 0)
        return -1;
    if (strpbrk(r.name, "[],")) /* no host list could hold it */
        return cell_bad(b, 0, "with a bracket or a comma");
    if (r.name[0] == '-')
        return cell_bad(b, 0, "with a dash in front, as options have");
    if (topo_add_host(t, r.name) != t->hosts - 1 || (size_t)t->hosts != b->at)
        return cell_bad(b, 0, "there twice");
    struct host *h = &t->host[t->hosts - 1];
    h->cpu = r.cpu[0] ? mem_strdup(r.cpu) : NULL;
    h->sockets = r.sockets;
    h->cores = r.cores;
    h->memory_bytes = r.memory_bytes;
    return 0;
}

static int load_nic(struct topo *t, struct topo_table *b)
{
    struct nic n;

    nic_init(&n, 0);
    if (topo_row_load(b, t->hosts, &n) < 0)
        return -1;
    MEM_PUSH(t->nic, t->nics) = n;
    return 0;
}

static int load_trial(struct topo *t, struct topo_table *b)
{
    struct mnnvl_trial r = {.host = 0};

    if (topo_row_load(b, t->hosts, &r) < 0)
        return -1;
    if (t->trials && t->trial[t->trials - 1].host >= r.host)
        return cell_bad(b, 0, "not after the host of the row before");
    MEM_PUSH(t->trial, t->trials) = r;
    return 0;
}

/* --- declared groups and spines: groups of hosts by name --- */

static int load_level(const struct topo_table *b, int col, int *level, int *above)
{
    const char *text = json_string_value(json_array_get(b->row, (size_t)col));
    size_t spine = strlen(level_name[LEVEL_SPINE]);

    *above = 0;
    *level = LEVEL_SPINE;
    if (!text || strncmp(text, level_name[LEVEL_SPINE], spine) != 0 || text[spine] != '+')
        return cell_name(b, col, level_name, LEVEL_COUNT, level);
    if (units_int(above, text + spine + 1, 1, GROUP_ABOVE_MAX, NULL) < 0)
        return cell_bad(b, col, "no tier of switches above the spine");
    return 0;
}

static int load_host_list(const struct topo_table *b, int col, char ***host, int *hosts)
{
    const char *text;

    *host = NULL;
    *hosts = 0;
    if (cell_text(b, col, HOSTS_TEXT, true, &text) < 0)
        return -1;
    if (text && hostlist_expand(host, hosts, text, b->err) < 0)
        return err_wrap(b->err, "%s: %s.rows[%zu]", b->path, b->name, b->at - 1);
    return 0;
}

static int load_claim(struct topo *t, struct topo_table *b)
{
    int source, level, above, hosts;
    const char *origin, *group;
    char **host;

    if (cell_name(b, 0, source_name, SOURCE_COUNT, &source) < 0 ||
        load_level(b, 1, &level, &above) < 0 || cell_text(b, 2, NAME_LEN, false, &origin) < 0 ||
        cell_text(b, 3, NAME_LEN, false, &group) < 0 || load_host_list(b, 4, &host, &hosts) < 0)
        return -1;
    group_add(t, (enum source)source, (enum level)level, origin, group, host, hosts);
    t->declared_group[t->declared_groups - 1].above = above;
    hostlist_free(host, hosts);
    return 0;
}

static int load_spine(struct topo *t, int *of, struct topo_table *b)
{
    const char *name;
    int source, hosts, rc = 0;
    char **host;

    if (cell_text(b, 0, NAME_LEN, false, &name) < 0 ||
        cell_name(b, 1, source_name, SOURCE_COUNT, &source) < 0)
        return -1;
    if (topo_add_group(t, LEVEL_SPINE, name) != (int)b->at - 1)
        return cell_bad(b, 0, "there twice");
    if (load_host_list(b, 2, &host, &hosts) < 0)
        return -1;
    for (int i = 0; i < hosts && rc == 0; i++) {
        int h = topo_find_host(t, host[i]);
        if (h < 0 || of[h])
            rc = cell_bad(b, 2, h < 0 ? "with an unknown host" : "with a host of another spine");
        else
            of[h] = (int)b->at << 8 | source;
    }
    hostlist_free(host, hosts);
    return rc;
}

static int load_spines(struct topo *t, json_t *table, const char *path, struct err *err)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of)), rc = 0; /* row << 8 | source */
    const struct topo_rows *rows = topo_rows[ROWS_SPINES];
    struct topo_table b;

    if (topo_table_open(&b, path, rows->key, table, rows->column, rows->columns, err) < 0)
        rc = -1;
    while (rc == 0 && topo_table_next(&b, &rc))
        rc = load_spine(t, of, &b);
    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        int at = of[t->endpoint[i].place.at[LEVEL_HOST]];
        t->endpoint[i].place.at[LEVEL_SPINE] = at ? (at >> 8) - 1 : -1;
        t->endpoint[i].source[LEVEL_SPINE] = (unsigned char)(at & 0xff);
    }
    free(of);
    return rc;
}

/* --- endpoints and all --- */

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

static int load_rows(struct topo *t, json_t *from, const struct topo_rows *rows,
                     int (*load)(struct topo *t, struct topo_table *b), const char *path,
                     struct err *err)
{
    struct topo_table b;
    int rc = 0;

    if (!from)
        return 0;
    if (topo_table_open(&b, path, rows->key, from, rows->column, rows->columns, err) < 0)
        return -1;
    while (topo_table_next(&b, &rc))
        if (load(t, &b) < 0)
            return -1;
    return rc;
}

static int load_endpoints(struct topo *t, json_t *from, const struct words *w, const char *path,
                          struct err *err)
{
    const struct topo_rows *rows = topo_rows[ROWS_ENDPOINTS];
    struct topo_table b;
    int rc = 0;

    if (topo_table_open(&b, path, rows->key, from, rows->column, rows->columns, err) < 0)
        return -1;
    while (topo_table_next(&b, &rc))
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
                   load_rows(t, hosts, topo_rows[ROWS_HOSTS], load_host, path, err) < 0 ||
                   load_rows(t, nics, topo_rows[ROWS_NICS], load_nic, path, err) < 0 ||
                   load_endpoints(t, endpoints, &w, path, err) < 0 ||
                   (ports && port_rows.load(t, ports, path, err) < 0) ||
                   (gpudirect && gpudirect_rows.load(t, gpudirect, path, err) < 0) ||
                   (gpus && gpu_rows.load(t, gpus, path, err) < 0) ||
                   load_rows(t, trials, topo_rows[ROWS_TRIALS], load_trial, path, err) < 0 ||
                   (spines && load_spines(t, spines, path, err) < 0) ||
                   load_rows(t, claims, topo_rows[ROWS_CLAIMS], load_claim, path, err) < 0 ||
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
