/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulation models of topograph. */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/sched/labels.h"
#include "topo/sched/topograph_own.h"

enum { NAME_LEN = 255 };

static const char *const note_key[2] = {TOPOGRAPH_DOMAIN, TOPOGRAPH_SUB_DOMAIN};

static int switch_index(struct topograph *m, const char *name)
{
    int count = m->names.group[LEVEL_RACK].count;
    int i = topo_add_group(&m->names, LEVEL_RACK, name);

    if (i == count)
        MEM_PUSH(m->vertex, count) = (struct topograph_switch){-1, {NULL, NULL}};
    return i;
}

static const char *switch_name(const struct topograph *m, int i)
{
    return m->names.group[LEVEL_RACK].name[i];
}

/* The nodes of a list of ranges; more than TOPOGRAPH_NODES in all are refused. */
static int expand(struct topograph *m, const json_t *list, const json_t *near, char ***name,
                  int *count, struct err *err)
{
    const json_t *item;
    size_t i;

    *name = NULL;
    *count = 0;
    if (!json_is_array(list))
        return err_data(err, "%s: nodes is %s", yaml_where(m->y, near),
                        list ? "not a list" : "missing");
    json_array_foreach(list, i, item)
    {
        char *text = topograph_name(m, item, item, "node", err), **more;
        struct err bad;
        int n = 0;
        if (!text)
            return -1;
        int rc = hostlist_expand(&more, &n, text, &bad);
        free(text);
        if (rc < 0)
            return err_data(err, "%s: %s", yaml_where(m->y, item), bad.text);
        for (int k = 0; k < n; k++)
            MEM_PUSH(*name, *count) = more[k];
        free(more);
        if (*count > TOPOGRAPH_NODES || m->nodes > TOPOGRAPH_NODES)
            return err_data(err, "%s: more than %d nodes", yaml_where(m->y, item), TOPOGRAPH_NODES);
    }
    return 0;
}

/* --- what a model says --- */

/* domain and sub-domain of "annotations", into note[] where they are there. */
static int take_notes(struct topograph *m, const json_t *of, char *note[2], struct err *err)
{
    const json_t *notes = json_object_get(of, "annotations");

    if (notes && !json_is_object(notes) && !json_is_null(notes))
        return err_data(err, "%s: annotations are not an object", yaml_where(m->y, of));
    for (int k = 0; k < 2; k++) {
        const json_t *value = json_object_get(notes, note_key[k]);
        if (!value)
            continue;
        char *text = topograph_name(m, value, notes, note_key[k], err);
        if (!text)
            return -1;
        free(note[k]);
        note[k] = text;
    }
    return 0;
}

static int attach(struct topograph *m, int node, int sw, const json_t *near, struct err *err)
{
    if (m->node[node].at >= 0 && m->node[node].at != sw)
        return err_data(err, "%s: node \"%s\" has two switches, \"%s\" and \"%s\"",
                        yaml_where(m->y, near), m->names.group[LEVEL_LEAF].name[node],
                        switch_name(m, m->node[node].at), switch_name(m, sw));
    m->node[node].at = sw;
    return 0;
}

static int take_children(struct topograph *m, int sw, const json_t *is, struct err *err)
{
    const json_t *list = json_object_get(is, "switches"), *item;
    size_t i;

    if (list && !json_is_array(list) && !json_is_null(list))
        return err_data(err, "%s: switches of \"%s\" is not a list", yaml_where(m->y, is),
                        switch_name(m, sw));
    json_array_foreach(list, i, item)
    {
        char *name = topograph_name(m, item, item, "switch", err);
        if (!name)
            return -1;
        int child = switch_index(m, name);
        free(name);
        if (m->vertex[child].parent >= 0 && m->vertex[child].parent != sw)
            return err_data(err, "%s: switch \"%s\" has two parents, \"%s\" and \"%s\"",
                            yaml_where(m->y, item), switch_name(m, child),
                            switch_name(m, m->vertex[child].parent), switch_name(m, sw));
        m->vertex[child].parent = sw;
    }
    return 0;
}

/* Models of before 1.0 have nodes here. */
static int take_switch_nodes(struct topograph *m, int sw, const json_t *is, struct err *err)
{
    const json_t *list = json_object_get(is, "nodes");
    char **name;
    int count, rc;

    if (!list || json_is_null(list))
        return 0;
    rc = expand(m, list, is, &name, &count, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = attach(m, topograph_node(m, name[i]), sw, list, err);
    hostlist_free(name, count);
    return rc;
}

static int take_switches(struct topograph *m, struct err *err)
{
    json_t *all = json_object_get(m->y->root, "switches"), *is;
    const char *key;

    if (!all || json_is_null(all))
        return 0;
    if (!json_is_object(all))
        return err_data(err,
                        "%s: switches are not an object of NAME: {...} (models of topograph "
                        "0.3 and later)",
                        yaml_where(m->y, all));
    json_object_foreach(all, key, is)
    {
        char where[400];
        snprintf(where, sizeof(where), "%s: switch", yaml_where(m->y, is));
        if (topo_text_check(key, NAME_LEN, where, err) < 0)
            return -1;
        if (!json_is_object(is))
            return err_data(err, "%s: switch \"%s\" has no definition", yaml_where(m->y, all), key);
        int sw = switch_index(m, key);
        if (take_notes(m, is, m->vertex[sw].note, err) < 0 || take_children(m, sw, is, err) < 0 ||
            take_switch_nodes(m, sw, is, err) < 0)
            return -1;
    }
    return 0;
}

/* Its nodes are declared here, once. */
static int declare(struct topograph *m, const json_t *block, int sw, char *const note[2],
                   struct err *err)
{
    const json_t *list = json_object_get(block, "nodes");
    char **name;
    int count, rc = expand(m, list, block, &name, &count, err);

    if (rc == 0 && !count)
        rc = err_data(err, "%s: a block without nodes", yaml_where(m->y, block));
    for (int i = 0; i < count && rc == 0; i++) {
        int node = topograph_node(m, name[i]);
        if (m->node[node].declared)
            rc =
                err_data(err, "%s: node \"%s\" is in two blocks", yaml_where(m->y, block), name[i]);
        else if (sw >= 0)
            rc = attach(m, node, sw, block, err);
        m->node[node].declared = true;
        for (int k = 0; k < 2 && rc == 0; k++)
            m->node[node].note[k] = note[k] ? mem_strdup(note[k]) : NULL;
    }
    hostlist_free(name, count);
    return rc;
}

static int take_block(struct topograph *m, const json_t *block, struct err *err)
{
    const json_t *sw = json_object_get(block, "switch");
    char *note[2] = {NULL, NULL};
    int at = -1, rc = 0;

    if (!json_is_object(block))
        return err_data(err, "%s: a block is not an object", yaml_where(m->y, block));
    if (sw && !json_is_null(sw) && !(json_is_string(sw) && !json_string_length(sw))) {
        int known = m->names.group[LEVEL_RACK].count;
        char *name = topograph_name(m, sw, block, "switch", err);
        if (!name)
            return -1;
        at = switch_index(m, name);
        if (at == known)
            rc = err_data(err, "%s: unknown switch \"%s\"", yaml_where(m->y, block), name);
        free(name);
    }
    if (rc == 0)
        rc = take_notes(m, block, note, err);
    if (rc == 0)
        rc = declare(m, block, at, note, err);
    free(note[0]);
    free(note[1]);
    return rc;
}

/* {"cb11": {"nodes": [...], "attributes": {"nvlink": "nvl1"}}} of before 1.0; empty ones are there.
 */
static int take_capacity(struct topograph *m, const char *key, const json_t *block, struct err *err)
{
    const json_t *link = json_object_get(json_object_get(block, "attributes"), "nvlink");
    char *note[2] = {NULL, NULL};

    if (!json_is_object(block) || !json_object_get(block, "nodes"))
        return json_is_object(block) || json_is_null(block)
                   ? 0
                   : err_data(err, "%s: capacity block \"%.60s\" is not an object",
                              yaml_where(m->y, block), key);
    if (link && !(note[0] = topograph_name(m, link, block, "nvlink", err)))
        return -1;
    int rc = declare(m, block, -1, note, err);
    free(note[0]);
    return rc;
}

static int take_blocks(struct topograph *m, struct err *err)
{
    json_t *blocks = json_object_get(m->y->root, "blocks");
    json_t *old = json_object_get(m->y->root, "capacity_blocks"), *block;
    const char *key;
    size_t i;

    if (blocks && !json_is_array(blocks) && !json_is_null(blocks))
        return err_data(err, "%s: blocks are not a list", yaml_where(m->y, blocks));
    if (old && !json_is_object(old) && !json_is_null(old))
        return err_data(err,
                        "%s: capacity_blocks are not an object of NAME: {...} (models of "
                        "topograph 0.3 to 0.5)",
                        yaml_where(m->y, old));
    json_array_foreach(blocks, i, block) if (take_block(m, block, err) < 0) return -1;
    json_object_foreach(old, key, block) if (take_capacity(m, key, block, err) < 0) return -1;
    return 0;
}

/* --- where nodes stand --- */

/* What stands on the way up, unless the block said it: nearer switches win. */
static int place_node(struct topograph *m, int node, struct err *err)
{
    const char *name = m->names.group[LEVEL_LEAF].name[node], *note[2];
    char buf[256];
    int depth = 0;

    for (int k = 0; k < 2; k++)
        note[k] = m->node[node].note[k];
    const char *host = label_host(m->t, m->known, name, NULL, buf);
    for (int sw = m->node[node].at; sw >= 0; sw = m->vertex[sw].parent, depth++) {
        if (depth == TOPOGRAPH_DEPTH)
            return err_data(err, "%s: switch \"%s\" is in a circle, or under more than %d others",
                            m->y->path, switch_name(m, m->node[node].at), TOPOGRAPH_DEPTH);
        topograph_join(m, topograph_place(depth), switch_name(m, sw), host);
        for (int k = 0; k < 2; k++)
            if (!note[k])
                note[k] = m->vertex[sw].note[k];
    }
    if (note[0])
        topograph_join(m, LEVEL_DOMAIN, note[0], host);
    if (note[1])
        topograph_join(m, LEVEL_RACK, note[1], host);
    return 0;
}

int topograph_model(struct topo *t, struct yaml *y, struct err *err)
{
    struct topograph m;
    int rc = -1;

    topograph_begin(&m, t, y);
    if (take_switches(&m, err) < 0 || take_blocks(&m, err) < 0)
        goto out;
    if (!m.nodes) {
        err_data(err, "%s: a model without nodes", y->path);
        goto out;
    }
    for (int i = 0; i < m.nodes; i++)
        if (place_node(&m, i, err) < 0)
            goto out;
    topograph_claim(&m);
    rc = 0;
out:
    topograph_end(&m);
    return rc;
}
