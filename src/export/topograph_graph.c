/* SPDX-License-Identifier: BSD-3-Clause */
/* topograph_graph.c - the graph of NVIDIA/topograph (JSON), for programs that read it.
 *
 * Format and rules: topo/sources/sources.h, which reads it.  Leaf and spine are the two tiers of
 * switches; NVLink domain and rack are domain and sub-domain. */
#include "export/export_impl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"
#include "topo/sources/sources.h"

static const enum level used[] = {LEVEL_LEAF, LEVEL_SPINE, LEVEL_DOMAIN, LEVEL_RACK};
enum { LEAF, SPINE, DOMAIN, RACK, USED };

struct topograph_groups { /* groups of hosts, at the four levels */
    const struct topo *t;
    struct {
        int *of;
        char **name;
        int count;
    } at[USED];
};

static int groups_make(struct topograph_groups *g, const struct topo *t, struct err *err)
{
    int known = 0;

    *g = (struct topograph_groups){.t = t};
    for (int l = 0; l < USED; l++) {
        g->at[l].of = groups_of_hosts(t, used[l], &g->at[l].name, &g->at[l].count);
        known += g->at[l].count;
    }
    if (known)
        return 0;
    return err_set(err, "no NVLink domain, rack, leaf or spine of these hosts is known");
}

static void groups_free(struct topograph_groups *g)
{
    for (int l = 0; l < USED; l++) {
        free(g->at[l].of);
        hostlist_free(g->at[l].name, g->at[l].count);
    }
}

/* Name of the host's group; NULL: not known. */
static const char *group_of(const struct topograph_groups *g, int l, int host)
{
    int i = g->at[l].of[host];

    return i < 0 ? NULL : g->at[l].name[i];
}

/* --- graph --- */

/* Groups wider than a spine: sets of one source, the narrowest first. */
struct wide {
    struct group_set *set;
    int **of, sets;
};

static void wide_make(struct wide *w, const struct topo *t)
{
    w->set = group_sets_above(t, &w->sets);
    w->of = mem_calloc((size_t)w->sets + 1, sizeof(*w->of));
    for (int i = 0; i < w->sets; i++)
        w->of[i] = group_set_of(&w->set[i], t);
}

static void wide_free(struct wide *w)
{
    for (int i = 0; i < w->sets; i++)
        free(w->of[i]);
    free(w->of);
    group_sets_free(w->set, w->sets);
}

static void add_wide(json_t *layers, const struct wide *w, int h)
{
    for (int i = 0; i < w->sets; i++)
        if (w->of[i][h] >= 0 && w->set[i].source == w->set[0].source &&
            !strcmp(w->set[i].origin, w->set[0].origin))
            json_array_append_new(layers, json_string(w->set[i].group[w->of[i][h]]->name));
}

/* A spine is used only above a leaf, because the first layer is the nearest switch. */
static json_t *instance(const struct topograph_groups *g, const struct wide *w, int h)
{
    const char *leaf = group_of(g, LEAF, h), *spine = group_of(g, SPINE, h);
    const char *domain = group_of(g, DOMAIN, h), *rack = group_of(g, RACK, h);
    json_t *layers = json_array(), *labels = json_object();

    if (leaf)
        json_array_append_new(layers, json_string(leaf));
    if (leaf && spine)
        json_array_append_new(layers, json_string(spine));
    if (leaf && spine)
        add_wide(layers, w, h);
    if (domain)
        json_object_set_new(labels, "accelerator.topograph.run/domain", json_string(domain));
    if (domain && rack)
        json_object_set_new(labels, "accelerator.topograph.run/sub-domain", json_string(rack));
    return json_pack("{s:s, s:o, s:o}", "id", g->t->host[h].name, "network_layers", layers,
                     "labels", labels);
}

int topograph_graph_write(const struct export_run *e, struct err *err)
{
    const struct topo *t = &e->m->topo;
    struct topograph_groups g;
    struct wide w;

    if (groups_make(&g, t, err) < 0) {
        groups_free(&g);
        return -1;
    }
    json_t *all = json_array();
    wide_make(&w, t);
    for (int h = 0; h < t->hosts; h++)
        json_array_append_new(all, instance(&g, &w, h));
    json_t *root = json_pack("{s:o}", "instances", all);
    json_dumpf(root, e->out, JSON_INDENT(1));
    fputc('\n', e->out);
    json_decref(root);
    wide_free(&w);
    groups_free(&g);
    return 0;
}
