/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/nccl_profile.h"
#include "topo/net.h"
#include "topo/topo_impl.h"

#define FILE_MAX ((size_t)256 << 20)
enum { ITEMS_MAX = TABLE_ROWS_MAX, TEXT_LEN = 500, WHERE = 320 };

/* Parse the profile only to check it; the JSON is kept unchanged. */
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

/* Check the record: one line of text, and lists of names. */
static int load_mpi(struct topo *t, json_t *from, const char *path, struct err *err)
{
    static const char *const list[] = {"pml",     "mtl",        "provider", "within",
                                       "between", "interfaces", "ucx",      "devices"};
    char where[WHERE];
    const char *key;
    json_t *value, *x;
    size_t n = 0, i;

    snprintf(where, sizeof(where), "%s: mpi", path);
    json_object_foreach(from, key, value)
    {
        if (!strcmp(key, "text")) {
            if (!json_is_string(value))
                return err_data(err, "%s: \"text\" is not a text", where);
            if (topo_text_check(json_string_value(value), TEXT_LEN, where, err) < 0)
                return -1;
            continue;
        }
        for (n = 0; n < sizeof(list) / sizeof(*list) && strcmp(list[n], key) != 0; n++)
            ;
        if (n == sizeof(list) / sizeof(*list))
            return err_data(err, "%s: \"%.40s\" is not known", where, key);
        if (!json_is_array(value))
            return err_data(err, "%s: \"%s\" is not a list", where, key);
        json_array_foreach(value, i, x) if (!json_is_string(x)) return err_data(
            err, "%s: \"%s\" is not a list of names", where, key);
    }
    if (from && !json_string_value(json_object_get(from, "text")))
        return err_data(err, "%s: has no \"text\"", where);
    t->mpi = json_incref(from);
    return 0;
}

static int load_fabric(struct topo *t, json_t *fabric, const char *path, struct err *err)
{
    const char *name = json_string_value(fabric);
    char where[WHERE];

    snprintf(where, sizeof(where), "%s: fabric", path);
    if (json_is_null(fabric))
        return 0;
    if (topo_text_check(name, TOPO_NAME_MAX, where, err) < 0)
        return -1;
    t->fabric = mem_strdup(name);
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
            if (topo_text_check(name, TOPO_NAME_MAX, at, err) < 0)
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

/* --- the tables --- */

/* Count the rows that other tables may refer to. */
static void count_parents(struct topo_reader *r)
{
    for (int l = 0; l < LEVEL_PLACES; l++)
        r->rows[l] = r->t->group[l].count;
    r->rows[OF_NIC] = r->t->nics;
    r->rows[OF_MODEL] = (int)json_array_size(r->models);
    r->rows[OF_SOURCES] = (int)json_array_size(r->sources);
    r->rows[OF_NODE] = r->t->net ? r->t->net->nodes : 0;
}

static int load_table(struct topo_reader *r, json_t *from, const struct topo_rows *rows,
                      const char *path, struct err *err)
{
    size_t columns = json_array_size(json_object_get(from, "columns"));
    bool before = rows->before && columns == (size_t)rows->before;
    struct topo_table b;
    int rc = 0;

    if (topo_table_open(&b, path, rows->key, from, rows->column,
                        before ? rows->before : rows->columns, err) < 0)
        return -1;
    count_parents(r);
    while (topo_table_next(&b, &rc))
        if (rows->load(r, &b) < 0)
            return -1;
    return rc == 0 && rows->end ? rows->end(r, &b) : rc;
}

static int load_tables(struct topo_reader *r, json_t *const *table, const char *path,
                       struct err *err)
{
    json_t *nodes = table[ROWS_NET_NODES], *cables = table[ROWS_CABLES];
    int rc = 0;

    if (!nodes != !cables)
        return err_data(err, "%s: \"%s\" without \"%s\"", path, nodes ? "net_nodes" : "cables",
                        nodes ? "cables" : "net_nodes");
    if (nodes)
        r->t->net = mem_calloc(1, sizeof(*r->t->net));
    for (int i = 0; i < ROWS_TABLES && rc == 0; i++)
        if (table[i])
            rc = load_table(r, table[i], topo_rows[i], path, err);
    free(r->spine);
    return rc;
}

/* --- the file --- */

enum {
    FORMAT,
    VERSION,
    PROVENANCE,
    FABRIC,
    TIERS,
    UNSEEN,
    LEVELS,
    MODELS,
    SOURCES,
    NCCL,
    MPI_USED,
    SEAL,
    TABLE,
    KEYS = TABLE + ROWS_TABLES
};

static int take_keys(json_t *root, const char *path, json_t **is, struct err *err)
{
    struct json_key key[KEYS] = {
        [FORMAT].name = "format",   [VERSION].name = "version",    [PROVENANCE].name = "provenance",
        [FABRIC].name = "fabric",   [TIERS].name = "tiers",        [UNSEEN].name = "unseen",
        [LEVELS].name = "levels",   [MODELS].name = "models",      [SOURCES].name = "sources",
        [NCCL] = {"nccl", true, 0}, [MPI_USED] = {"mpi", true, 0}, [SEAL] = {SEAL_KEY, true, 0}};

    for (int i = 0; i < ROWS_TABLES; i++)
        key[TABLE + i] =
            (struct json_key){topo_rows[i]->key, !topo_rows[i]->always || topo_rows[i]->net, 0};
    return json_take_keys(root, path, key, KEYS, is, err);
}

static int load_topo(struct topo *t, json_t *root, const char *path, struct err *err)
{
    json_t *is[KEYS];

    if (take_keys(root, path, is, err) < 0)
        return -1;
    struct topo_reader r = {.t = t, .models = is[MODELS], .sources = is[SOURCES]};
    if (!json_is_object(is[PROVENANCE]))
        return err_data(err, "%s: \"provenance\" is not an object", path);
    if (load_fabric(t, is[FABRIC], path, err) < 0 || load_tiers(t, is[TIERS], path, err) < 0 ||
        load_unseen(t, is[UNSEEN], path, err) < 0 || load_levels(t, is[LEVELS], path, err) < 0 ||
        load_tables(&r, is + TABLE, path, err) < 0 || load_nccl(t, is[NCCL], path, err) < 0 ||
        load_mpi(t, is[MPI_USED], path, err) < 0 ||
        (!is[SEAL] && json_unsealed(is[PROVENANCE], path, err) < 0))
        return -1;
    topo_link_gpus(t);
    return 0;
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
