/* SPDX-License-Identifier: BSD-3-Clause */
/* topograph_files.c - files of NVIDIA/topograph: its graph (JSON) and a simulation model (YAML),
 * for programs that read them.
 *
 * Formats and rules: topo/sources/sources.h, which reads both.  Leaf and spine are the two tiers of
 * switches; NVLink domain and rack are domain and sub-domain.  A switch of a model has one parent,
 * so a leaf below two spines is refused, as is a switch that is both.  Blocks of a model are in the
 * order of export/blocks_impl.h: near ones side by side. */
#include "export/export_impl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "export/blocks_impl.h"
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

/* --- model --- */

/* parent[leaf]: its spine; -1: unknown. */
static int parents(const struct topograph_groups *g, int *parent, struct err *err)
{
    for (int i = 0; i < g->at[LEAF].count; i++)
        parent[i] = -1;
    for (int h = 0; h < g->t->hosts; h++) {
        int leaf = g->at[LEAF].of[h], spine = g->at[SPINE].of[h];
        if (leaf < 0 || spine < 0)
            continue;
        if (parent[leaf] >= 0 && parent[leaf] != spine)
            return err_data(err,
                            "leaf \"%.80s\" is below the spines \"%.80s\" and \"%.80s\": a switch "
                            "of a model has one parent (topograph's docs/modeling.md)",
                            g->at[LEAF].name[leaf], g->at[SPINE].name[parent[leaf]],
                            g->at[SPINE].name[spine]);
        parent[leaf] = spine;
        if (!strcmp(g->at[LEAF].name[leaf], g->at[SPINE].name[spine]))
            return err_data(err,
                            "\"%.80s\" is a leaf and its spine: switches of a model have "
                            "different names",
                            g->at[LEAF].name[leaf]);
    }
    return 0;
}

static void put_switches(FILE *out, const struct topograph_groups *g, const int *parent)
{
    if (!g->at[LEAF].count)
        return;
    fputs("switches:\n", out);
    for (int s = 0; s < g->at[SPINE].count; s++) {
        bool any = false;
        for (int i = 0; i < g->at[LEAF].count; i++) {
            if (parent[i] != s)
                continue;
            if (!any)
                export_yaml(out, "  ", g->at[SPINE].name[s], ":\n    switches:\n");
            any = true;
            export_yaml(out, "    - ", g->at[LEAF].name[i], "\n");
        }
    }
    for (int i = 0; i < g->at[LEAF].count; i++) /* the others are created by their parents */
        if (parent[i] < 0)
            export_yaml(out, "  ", g->at[LEAF].name[i], ": {}\n");
}

/* Write ranges of hosts as list items, one bracket each, because topograph reads only one per
 * item. */
static void put_nodes(FILE *out, char **name, int count)
{
    char *text = hostlist_fold(name, count), *item = text;
    int depth = 0;

    fputs("nodes:\n", out);
    for (char *c = text;; c++) {
        depth += (*c == '[') - (*c == ']');
        if (*c && (*c != ',' || depth))
            continue;
        bool end = !*c;
        *c = '\0';
        export_yaml(out, "  - ", item, "\n");
        if (end)
            break;
        item = c + 1;
    }
    free(text);
}

static void put_block(FILE *out, const struct topograph_groups *g, const int *host, int hosts)
{
    const char *leaf = group_of(g, LEAF, host[0]), *domain = group_of(g, DOMAIN, host[0]);
    const char *rack = group_of(g, RACK, host[0]);
    char **name = mem_calloc((size_t)hosts + 1, sizeof(*name));

    fputs("- ", out);
    if (leaf)
        export_yaml(out, "switch: ", leaf, "\n  ");
    for (int i = 0; i < hosts; i++)
        name[i] = g->t->host[host[i]].name;
    put_nodes(out, name, hosts);
    free(name);
    if (domain || rack)
        fputs("  annotations:\n", out);
    if (domain)
        export_yaml(out, "    " TOPOGRAPH_DOMAIN ": ", domain, "\n");
    if (rack)
        export_yaml(out, "    " TOPOGRAPH_SUB_DOMAIN ": ", rack, "\n");
}

/* Hosts in the order of blocks, near blocks side by side; without blocks in the given order. */
static int *host_order(const struct matrix *m, double bytes)
{
    int hosts = m->topo.hosts, n = 0, *order = mem_calloc((size_t)hosts + 1, sizeof(*order));
    struct blocks b;

    if (blocks_make(&b, m, -1, bytes, NULL) == 0) {
        for (int i = 0; i < b.count; i++)
            for (int k = 0; k < b.block[i].hosts; k++)
                order[n++] = b.block[i].host[k];
        for (int h = 0; h < hosts; h++)
            if (b.of[h] < 0)
                order[n++] = h;
    }
    blocks_free(&b);
    for (int h = 0; n < hosts; h++)
        order[n++] = h;
    return order;
}

static bool same_block(const struct topograph_groups *g, int a, int b)
{
    return g->at[LEAF].of[a] == g->at[LEAF].of[b] && g->at[DOMAIN].of[a] == g->at[DOMAIN].of[b] &&
           g->at[RACK].of[a] == g->at[RACK].of[b];
}

/* Write an entry per combination of leaf, domain and rack; hosts with the same combination need not
 * be neighbours. */
static void put_blocks(FILE *out, const struct topograph_groups *g, const int *order)
{
    int hosts = g->t->hosts, *block = mem_calloc((size_t)hosts + 1, sizeof(*block));
    bool *done = mem_calloc((size_t)hosts + 1, sizeof(*done));

    fputs("blocks:\n", out);
    for (int i = 0; i < hosts; i++) {
        int n = 0;
        if (done[order[i]])
            continue;
        for (int k = i; k < hosts; k++)
            if (!done[order[k]] && same_block(g, order[i], order[k])) {
                block[n++] = order[k];
                done[order[k]] = true;
            }
        put_block(out, g, block, n);
    }
    free(block);
    free(done);
}

static int check_names(const struct topo *t, struct err *err)
{
    for (int h = 0; h < t->hosts; h++)
        if (strpbrk(t->host[h].name, "[],"))
            return err_data(err, "host \"%.100s\": brackets and commas are ranges in a model",
                            t->host[h].name);
    return 0;
}

int topograph_model_write(const struct export_run *e, struct err *err)
{
    struct topograph_groups g;
    int *parent = NULL, rc = groups_make(&g, &e->m->topo, err);

    if (rc == 0)
        rc = check_names(&e->m->topo, err);
    if (rc == 0) {
        parent = mem_calloc((size_t)g.at[LEAF].count + 1, sizeof(*parent));
        rc = parents(&g, parent, err);
    }
    if (rc == 0) {
        int *order = host_order(e->m, export_bytes(e));
        fputs("# a model of topograph 1.0 and later\n", e->out);
        put_switches(e->out, &g, parent);
        put_blocks(e->out, &g, order);
        free(order);
    }
    free(parent);
    groups_free(&g);
    return rc;
}
