/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/sources.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "topo/groups.h"
#include "topo/sources/sched/labels_impl.h"

enum { NAME_LEN = 255, DEPTH = 64 }; /* maximum number of switches above a node */
/* Places of a node: its two annotations, then its own switch and the switches above. */
enum { AT_DOMAIN, AT_RACK, AT_LEAF, AT_SPINE, PLACES = AT_LEAF + DEPTH };

/* Indexed by AT_DOMAIN and AT_RACK. */
static const char *const annotation[2] = {TOPOGRAPH_DOMAIN, TOPOGRAPH_SUB_DOMAIN};

/* Switch between a node and the root. */
struct topograph_switch {
    int parent;    /* -1: none */
    char *note[2]; /* annotations domain and sub-domain; NULL: none */
};

struct topograph {
    struct topo *t;
    struct yaml *y;
    const char *origin;
    struct names switches, node_names;
    struct topograph_switch *vertex;
    struct topograph_node {
        int at;        /* switch of the node; -1: no switch */
        char *note[2]; /* annotations of its block; owned */
        bool declared; /* a block lists it */
    } * node;
    int nodes;
    int known; /* number of hosts in t at the start */
    struct label_groups group[PLACES];
};

/* --- names --- */

/* Take a text (or number) as a name of `what`; NULL after an error, with the line of `near`. */
static char *take_name(struct topograph *m, const json_t *value, const json_t *near,
                       const char *what, struct err *err)
{
    char *text = yaml_text(value), where[400];

    snprintf(where, sizeof(where), "%s: %s", yaml_where(m->y, near), what);
    if (!text)
        err_data(err, "%s is %s", where, value ? "not text" : "missing");
    else if (topo_text_check(text, NAME_LEN, where, err) == 0)
        return text;
    free(text);
    return NULL;
}

static int node_index(struct topograph *m, const char *name)
{
    int i = names_add(&m->node_names, name);

    if (i == m->nodes)
        MEM_PUSH(m->node, m->nodes) = (struct topograph_node){.at = -1};
    return i;
}

/* --- declared groups --- */

static void declare_all(struct topograph *m)
{
    static const enum level level[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};

    for (int p = 0; p < PLACES; p++)
        label_groups_declare(&m->group[p], m->t, SOURCE_TOPOGRAPH,
                             level[p < AT_SPINE ? p : AT_SPINE], p > AT_SPINE ? p - AT_SPINE : 0,
                             m->origin);
    groups_drop_whole(m->t, SOURCE_TOPOGRAPH, m->origin);
    /* Nodes without any place become hosts too if t had no hosts. */
    for (int i = 0; !m->known && i < m->nodes; i++)
        topo_add_host(m->t, m->node_names.name[i]);
}

static void begin(struct topograph *m, struct topo *t, struct yaml *y)
{
    const char *slash = strrchr(y->path, '/'), *base = slash && slash[1] ? slash + 1 : y->path;

    *m = (struct topograph){.t = t, .y = y, .origin = base, .known = t->hosts};
}

static void end(struct topograph *m)
{
    for (int i = 0; i < m->switches.count; i++)
        for (int k = 0; k < 2; k++)
            free(m->vertex[i].note[k]);
    for (int p = 0; p < PLACES; p++)
        label_groups_free(&m->group[p]);
    for (int i = 0; i < m->nodes; i++)
        for (int k = 0; k < 2; k++)
            free(m->node[i].note[k]);
    free(m->node);
    free(m->vertex);
    names_free(&m->switches);
    names_free(&m->node_names);
}

static int switch_index(struct topograph *m, const char *name)
{
    int count = m->switches.count;
    int i = names_add(&m->switches, name);

    if (i == count)
        MEM_PUSH(m->vertex, count) = (struct topograph_switch){-1, {NULL, NULL}};
    return i;
}

static const char *switch_name(const struct topograph *m, int i)
{
    return m->switches.name[i];
}

/* Expand a list of ranges to nodes; more than TOPOGRAPH_NODES in all are refused. */
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
        char *text = take_name(m, item, item, "node", err), **more;
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

/* --- simulation models --- */

/* Read domain and sub-domain of "annotations" into note[], if present. */
static int take_annotations(struct topograph *m, const json_t *of, char *note[2], struct err *err)
{
    const json_t *notes = json_object_get(of, "annotations");

    if (notes && !json_is_object(notes) && !json_is_null(notes))
        return err_data(err, "%s: annotations are not an object", yaml_where(m->y, of));
    for (int k = 0; k < 2; k++) {
        const json_t *value = json_object_get(notes, annotation[k]);
        if (!value)
            continue;
        char *text = take_name(m, value, notes, annotation[k], err);
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
                        yaml_where(m->y, near), m->node_names.name[node],
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
        char *name = take_name(m, item, item, "switch", err);
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

/* Read nodes inside switches, as in models before 1.0. */
static int take_switch_nodes(struct topograph *m, int sw, const json_t *is, struct err *err)
{
    const json_t *list = json_object_get(is, "nodes");
    char **name;
    int count;

    if (!list || json_is_null(list))
        return 0;
    int rc = expand(m, list, is, &name, &count, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = attach(m, node_index(m, name[i]), sw, list, err);
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
        if (take_annotations(m, is, m->vertex[sw].note, err) < 0 ||
            take_children(m, sw, is, err) < 0 || take_switch_nodes(m, sw, is, err) < 0)
            return -1;
    }
    return 0;
}

/* Declare the nodes of a block; each may be declared once. */
static int declare(struct topograph *m, const json_t *block, int sw, char *const note[2],
                   struct err *err)
{
    const json_t *list = json_object_get(block, "nodes");
    char **name;
    int count, rc = expand(m, list, block, &name, &count, err);

    if (rc == 0 && !count)
        rc = err_data(err, "%s: a block without nodes", yaml_where(m->y, block));
    for (int i = 0; i < count && rc == 0; i++) {
        int node = node_index(m, name[i]);
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
        int known = m->switches.count;
        char *name = take_name(m, sw, block, "switch", err);
        if (!name)
            return -1;
        at = switch_index(m, name);
        if (at == known)
            rc = err_data(err, "%s: unknown switch \"%s\"", yaml_where(m->y, block), name);
        free(name);
    }
    if (rc == 0)
        rc = take_annotations(m, block, note, err);
    if (rc == 0)
        rc = declare(m, block, at, note, err);
    free(note[0]);
    free(note[1]);
    return rc;
}

/* Read {"cb11": {"nodes": [...], "attributes": {"nvlink": "nvl1"}}} of models before 1.0; may be
 * empty. */
static int take_capacity(struct topograph *m, const char *key, const json_t *block, struct err *err)
{
    const json_t *link = json_object_get(json_object_get(block, "attributes"), "nvlink");
    char *note[2] = {NULL, NULL};

    if (!json_is_object(block) || !json_object_get(block, "nodes"))
        return json_is_object(block) || json_is_null(block)
                   ? 0
                   : err_data(err, "%s: capacity block \"%.60s\" is not an object",
                              yaml_where(m->y, block), key);
    if (link && !(note[0] = take_name(m, link, block, "nvlink", err)))
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

/* --- places of nodes --- */

/* Collect annotations on the way up, unless the block has them; nearer switches win. */
static int place_node(struct topograph *m, int node, struct err *err)
{
    const char *name = m->node_names.name[node], *note[2];
    char buf[256];
    int depth = 0;

    for (int k = 0; k < 2; k++)
        note[k] = m->node[node].note[k];
    const char *host = label_host(m->t, m->known, name, NULL, buf);
    for (int sw = m->node[node].at; sw >= 0; sw = m->vertex[sw].parent, depth++) {
        if (depth == DEPTH)
            return err_data(err, "%s: switch \"%s\" is in a circle, or under more than %d others",
                            m->y->path, switch_name(m, m->node[node].at), DEPTH);
        label_groups_join(&m->group[AT_LEAF + depth], switch_name(m, sw), host);
        for (int k = 0; k < 2; k++)
            if (!note[k])
                note[k] = m->vertex[sw].note[k];
    }
    for (int k = 0; k < 2; k++)
        if (note[k])
            label_groups_join(&m->group[k], note[k], host);
    return 0;
}

static int read_model(struct topo *t, struct yaml *y, struct err *err)
{
    struct topograph m;

    begin(&m, t, y);
    int rc = take_switches(&m, err) < 0 ? -1 : take_blocks(&m, err);
    if (rc == 0 && !m.nodes)
        rc = err_data(err, "%s: a model without nodes", y->path);
    for (int i = 0; i < m.nodes && rc == 0; i++)
        rc = place_node(&m, i, err);
    if (rc == 0)
        declare_all(&m);
    end(&m);
    return rc;
}

/* --- graphs --- */

static int take_layers(struct topograph *m, const json_t *layers, const char *host,
                       const char *where, struct err *err)
{
    const json_t *item;
    size_t i;

    if (layers && !json_is_array(layers) && !json_is_null(layers))
        return err_data(err, "%s: network_layers is not a list", where);
    if (json_array_size(layers) > DEPTH)
        return err_data(err, "%s: more than %d network_layers", where, DEPTH);
    json_array_foreach(layers, i, item)
    {
        char *name = take_name(m, item, item, "network layer", err);
        if (!name)
            return -1;
        label_groups_join(&m->group[AT_LEAF + i], name, host);
        free(name);
    }
    return 0;
}

static int take_instance(struct topograph *m, struct label_facts *facts, const json_t *is,
                         const char *where, struct err *err)
{
    const json_t *labels = json_object_get(is, "labels");
    char buf[256];

    if (!json_is_object(is))
        return err_data(err, "%s is not an object", where);
    char *id = take_name(m, json_object_get(is, "id"), is, "id of an instance", err);
    if (!id)
        return -1;
    int count = m->nodes, rc = topo_host_name_check(id, where, err);
    labels = json_is_null(labels) ? NULL : labels;
    if (rc == 0 && node_index(m, id) < count)
        rc = err_data(err, "%s: instance \"%s\" is there twice", where, id);
    if (rc == 0) {
        const char *host = label_host(m->t, m->known, id, labels, buf);
        /* Models call the instance of node x "i-x". */
        if (host == id && m->known && !strncmp(id, "i-", 2) && topo_find_host(m->t, id) < 0 &&
            topo_find_host(m->t, id + 2) >= 0)
            host = id + 2;
        rc = take_layers(m, json_object_get(is, "network_layers"), host, where, err);
        if (rc == 0)
            rc = label_facts_add(facts, host, labels, where, err);
    }
    free(id);
    return rc;
}

static int read_graph(struct topo *t, struct yaml *y, struct err *err)
{
    struct topograph m;
    const json_t *all = json_object_get(y->root, "instances"), *is;
    struct label_facts facts;
    char where[400];
    int rc = 0;
    size_t i;

    if (!json_is_array(all))
        return err_data(err, "%s: instances is not a list", y->path);
    if (!json_array_size(all))
        return err_data(err, "%s: a graph without instances", y->path);
    begin(&m, t, y);
    label_facts_begin(&facts, t);
    json_array_foreach(all, i, is)
    {
        snprintf(where, sizeof(where), "%s: instances[%zu]", yaml_where(y, is), i);
        if (rc == 0)
            rc = take_instance(&m, &facts, is, where, err);
    }
    if (rc == 0) {
        declare_all(&m);
        label_facts_declare(&facts, SOURCE_TOPOGRAPH);
    }
    label_facts_end(&facts);
    end(&m);
    return rc;
}

int topograph_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err)
{
    struct yaml y;
    int rc = yaml_parse(&y, text, len, path, err);

    (void)host;
    if (rc < 0) {
    } else if (!json_is_object(y.root)) {
        rc = err_data(err, "%s: neither a model nor a graph of topograph", path);
    } else if (json_object_get(y.root, "instances")) {
        rc = read_graph(t, &y, err);
    } else if (json_object_get(y.root, "blocks") || json_object_get(y.root, "switches") ||
               json_object_get(y.root, "capacity_blocks")) {
        rc = read_model(t, &y, err);
    } else if (json_object_get(y.root, "data")) {
        rc = err_data(err,
                      "%s: a ConfigMap: take topology.conf or topology.yaml out of its data "
                      "and give that to --slurm",
                      path);
    } else {
        rc = err_data(err,
                      "%s: no instances, switches or blocks: neither a model nor a graph of "
                      "topograph",
                      path);
    }
    yaml_done(&y);
    return rc;
}
