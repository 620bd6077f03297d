/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sched/topograph.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/claim.h"
#include "topo/sched/labels.h"
#include "topo/sched/topograph_own.h"

enum { NAME_LEN = 255 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* --- names --- */

/* A text (or number) of a list or key as a name; NULL after an error. */
char *topograph_name(struct topograph *m, const json_t *value, const json_t *near, const char *what,
                     struct err *err)
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

int topograph_node(struct topograph *m, const char *name)
{
    int i = topo_add_group(&m->names, LEVEL_LEAF, name);

    if (i == m->nodes) {
        (void)MEM_PUSH(m->node, m->nodes);
        memset(&m->node[i], 0, sizeof(*m->node));
        m->node[i].at = -1;
    }
    return i;
}

/* --- claims --- */

void topograph_join(struct topograph *m, int place, const char *group, const char *host)
{
    struct groups *g = &m->group[place];
    int count = g->names.group[LEVEL_RACK].count;
    int i = topo_add_group(&g->names, LEVEL_RACK, group);

    if (i == count)
        MEM_PUSH(g->of, count) = (struct members){NULL, 0};
    MEM_PUSH(g->of[i].host, g->of[i].hosts) = mem_strdup(host);
}

void topograph_claim(struct topograph *m)
{
    for (int p = 0; p < TOPOGRAPH_PLACES; p++) {
        static const int order[LEVEL_COUNT] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF,
                                               LEVEL_SPINE,  LEVEL_HOST, LEVEL_RAIL};
        bool wide = p >= LEVEL_COUNT;
        const struct groups *g = &m->group[wide ? p : order[p]];
        for (int i = 0; i < g->names.group[LEVEL_RACK].count; i++) {
            claim_add(m->t, SOURCE_TOPOGRAPH, (enum level)(wide ? LEVEL_SPINE : order[p]),
                      m->origin, g->names.group[LEVEL_RACK].name[i], g->of[i].host, g->of[i].hosts);
            m->t->claim[m->t->claims - 1].above = wide ? p - LEVEL_COUNT + 1 : 0;
        }
    }
    claims_drop_whole(m->t, SOURCE_TOPOGRAPH, m->origin);
    /* Nodes of which nothing is said are hosts all the same, where no others are known. */
    for (int i = 0; !m->known && i < m->nodes; i++)
        topo_add_host(m->t, m->names.group[LEVEL_LEAF].name[i]);
}

void topograph_begin(struct topograph *m, struct topo *t, struct yaml *y)
{
    *m = (struct topograph){.t = t, .y = y, .origin = base_name(y->path), .known = t->hosts};
    topo_init(&m->names);
    for (int p = 0; p < TOPOGRAPH_PLACES; p++)
        topo_init(&m->group[p].names);
}

void topograph_end(struct topograph *m)
{
    for (int i = 0; i < m->names.group[LEVEL_RACK].count; i++)
        for (int k = 0; k < 2; k++)
            free(m->vertex[i].note[k]);
    for (int p = 0; p < TOPOGRAPH_PLACES; p++) {
        struct groups *g = &m->group[p];
        for (int i = 0; i < g->names.group[LEVEL_RACK].count; i++)
            hostlist_free(g->of[i].host, g->of[i].hosts);
        free(g->of);
        topo_free(&g->names);
    }
    for (int i = 0; i < m->nodes; i++)
        for (int k = 0; k < 2; k++)
            free(m->node[i].note[k]);
    free(m->node);
    free(m->vertex);
    topo_free(&m->names);
}

/* --- graphs --- */

static int take_layers(struct topograph *m, const json_t *layers, const char *host,
                       const char *where, struct err *err)
{
    const json_t *item;
    size_t i;

    if (layers && !json_is_array(layers) && !json_is_null(layers))
        return err_data(err, "%s: network_layers is not a list", where);
    json_array_foreach(layers, i, item)
    {
        char *name = topograph_name(m, item, item, "network layer", err);
        if (!name)
            return -1;
        if (i < TOPOGRAPH_DEPTH)
            topograph_join(m, topograph_place((int)i), name, host);
        free(name);
        if (i >= TOPOGRAPH_DEPTH)
            return err_data(err, "%s: more than %d network_layers", where, TOPOGRAPH_DEPTH);
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
    char *id = topograph_name(m, json_object_get(is, "id"), is, "id of an instance", err);
    if (!id)
        return -1;
    int count = m->nodes, rc = claim_name_check(id, where, err);
    labels = json_is_null(labels) ? NULL : labels;
    if (rc < 0) {
    } else if (topograph_node(m, id) < count) {
        rc = err_data(err, "%s: instance \"%s\" is there twice", where, id);
    } else {
        const char *host = label_host(m->t, m->known, id, labels, buf);
        /* Models name the instance of node x "i-x". */
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
    topograph_begin(&m, t, y);
    label_facts_begin(&facts, t);
    json_array_foreach(all, i, is)
    {
        snprintf(where, sizeof(where), "%s: instances[%zu]", yaml_where(y, is), i);
        if (rc == 0)
            rc = take_instance(&m, &facts, is, where, err);
    }
    if (rc == 0) {
        topograph_claim(&m);
        label_facts_claim(&facts, SOURCE_TOPOGRAPH);
    }
    label_facts_end(&facts);
    topograph_end(&m);
    return rc;
}

int topograph_parse(struct topo *t, const char *text, size_t len, const char *path, struct err *err)
{
    struct yaml y;
    int rc = yaml_parse(&y, text, len, path, err);

    if (rc < 0) {
    } else if (!json_is_object(y.root)) {
        rc = err_data(err, "%s: neither a model nor a graph of topograph", path);
    } else if (json_object_get(y.root, "instances")) {
        rc = read_graph(t, &y, err);
    } else if (json_object_get(y.root, "blocks") || json_object_get(y.root, "switches") ||
               json_object_get(y.root, "capacity_blocks")) {
        rc = topograph_model(t, &y, err);
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

int topograph_read(struct topo *t, int host, const char *path, struct err *err)
{
    char *text;
    size_t len;

    (void)host;
    if (file_read(&text, &len, path, YAML_BYTES, err) < 0)
        return -1;
    int rc = topograph_parse(t, text, len, path, err);
    free(text);
    return rc;
}
