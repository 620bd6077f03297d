/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_tree.c - topology.conf of topology/tree, and topology.yaml.
 *
 * The lowest switches are the finest known groups of hosts: leaves, or racks and NVLink domains if
 * rails make the leaves larger than these.  Every coarser grouping whose groups each hold several
 * of them, undivided, becomes a layer above, to any depth. */
#include "export/export_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"

enum { SLURM_LAYERS = LEVEL_COUNT + 2 * GROUP_ABOVE_MAX };

/* Layers, the leaves first; a root is added if the last layer has several switches. */
struct slurm_tree {
    struct blocks leaf;
    struct slurm_layer {
        char **was, **name; /* names in the topology; names in the file */
        int count;
        int *up; /* parent of each in the next layer; NULL in the last */
    } layer[SLURM_LAYERS];
    int layers;
    char **left; /* "spine+1 (slurm x.conf): ...": known, but without a place in a tree */
    int lefts;
    char root[24]; /* unique name */
};

static void slurm_tree_free(struct slurm_tree *t)
{
    for (int i = 0; i < t->layers; i++) {
        struct slurm_layer *l = &t->layer[i];
        hostlist_free(l->was, l->was ? l->count : 0);
        hostlist_free(l->name, l->name ? l->count : 0);
        free(l->up);
    }
    blocks_free(&t->leaf);
    hostlist_free(t->left, t->lefts);
    t->layers = t->lefts = 0;
}

/* Use leaves, unless other groups of hosts are finer. */
static int choose_leaf(struct slurm_tree *t, const struct matrix *m, double bytes, struct err *err)
{
    struct blocks leaf;
    struct err none;

    if (blocks_make(&t->leaf, m, -1, bytes, err) < 0)
        return -1;
    if (t->leaf.level != LEVEL_LEAF && blocks_make(&leaf, m, LEVEL_LEAF, bytes, &none) == 0) {
        bool finer = leaf.count >= t->leaf.count && leaf.count < m->topo.hosts;
        blocks_free(finer ? &t->leaf : &leaf);
        if (finer)
            t->leaf = leaf;
    }
    return 0;
}

/* Grouping of hosts that may become a layer. */
struct slurm_above {
    int *of, groups;
    char **name;
};

/* Group of every switch of the last layer, derived from its hosts with a group; top[host] is the
 * switch.  *stray: a switch in no group or in several; -1: none. */
static int *whole(const struct topo *t, const int *top, int count, const struct slurm_above *a,
                  int *stray)
{
    int *up = mem_calloc((size_t)count + 1, sizeof(*up));

    *stray = -1;
    for (int i = 0; i < count; i++)
        up[i] = -1;
    for (int h = 0; h < t->hosts; h++)
        if (top[h] >= 0 && a->of[h] >= 0) {
            if (up[top[h]] >= 0 && up[top[h]] != a->of[h])
                *stray = top[h];
            up[top[h]] = a->of[h];
        }
    for (int i = 0; i < count && *stray < 0; i++)
        *stray = up[i] < 0 ? i : -1;
    return up;
}

/* Drop groups without a switch of the last layer from a.  Returns the number that remain. */
static int in_use(struct slurm_above *a, int *up, int count)
{
    int *to = mem_calloc((size_t)a->groups + 1, sizeof(*to)), kept = 0;

    for (int i = 0; i < count; i++)
        to[up[i]] = 1;
    for (int g = 0; g < a->groups; g++) {
        if (!to[g])
            free(a->name[g]);
        else
            a->name[kept] = a->name[g];
        to[g] = to[g] ? kept++ : -1;
    }
    for (int i = 0; i < count; i++)
        up[i] = to[up[i]];
    free(to);
    return a->groups = kept;
}

/* Add a layer if the grouping is coarser than the last layer and divides none of its switches.
 * top[] then refers to the new layer, which owns a's names.  what: "spine (ibnet)". */
static void add_layer(struct slurm_tree *t, const struct topo *topo, int *top,
                      struct slurm_above *a, const char *what)
{
    struct slurm_layer *last = &t->layer[t->layers - 1];
    int stray, *up = whole(topo, top, last->count, a, &stray);

    if (a->groups > 1 && stray >= 0)
        MEM_PUSH(t->left, t->lefts) =
            mem_printf("left out: %s: %.80s is whole in none of them", what, last->was[stray]);
    if (a->groups < 2 || stray >= 0 || in_use(a, up, last->count) < 2 || a->groups == last->count ||
        t->layers == SLURM_LAYERS) {
        free(up);
        return;
    }
    last->up = up;
    t->layer[t->layers++] = (struct slurm_layer){.was = a->name, .count = a->groups};
    a->name = NULL;
    a->groups = 0;
    for (int h = 0; h < topo->hosts; h++)
        top[h] = top[h] < 0 ? -1 : up[top[h]];
}

static void add_level(struct slurm_tree *t, const struct topo *topo, int *top, enum level level)
{
    struct slurm_above a;
    char *what = mem_printf("%s (%s)", level_name[level], source_name[groups_source(topo, level)]);

    a.of = groups_of_hosts(topo, level, &a.name, &a.groups);
    add_layer(t, topo, top, &a, what);
    hostlist_free(a.name, a.groups);
    free(a.of);
    free(what);
}

/* Add layers wider than spines, from each source. */
static void add_above(struct slurm_tree *t, const struct topo *topo, int *top)
{
    int sets;
    struct group_set *s = group_sets_above(topo, &sets);

    for (int i = 0; i < sets; i++) {
        struct slurm_above a = {.of = group_set_of(&s[i], topo)};
        char *what = mem_printf("%s+%d (%s %s)", level_name[LEVEL_SPINE], s[i].above,
                                source_name[s[i].source], s[i].origin);
        for (int k = 0; k < s[i].groups; k++)
            MEM_PUSH(a.name, a.groups) = mem_strdup(s[i].group[k]->name);
        add_layer(t, topo, top, &a, what);
        hostlist_free(a.name, a.groups);
        free(a.of);
        free(what);
    }
    group_sets_free(s, sets);
}

static bool taken(const struct slurm_tree *t, const struct slurm_layer *before, const char *name)
{
    for (const struct slurm_layer *l = t->layer; l < before; l++)
        for (int i = 0; i < l->count; i++)
            if (!strcmp(l->name[i], name))
                return true;
    return false;
}

/* Make the names of switches unique over all layers. */
static void name_layers(struct slurm_tree *t)
{
    static const char *const word[] = {"leaf", "spine", "core", "top"};

    for (struct slurm_layer *l = t->layer; t->layers && l < t->layer + t->layers; l++) {
        const char *w = word[l - t->layer < 4 ? l - t->layer : 3];
        l->name = slurm_names_make(l->was, l->count, w);
        for (int i = 0; i < l->count; i++)
            while (taken(t, l, l->name[i])) {
                char *longer = mem_printf("%s-%s", w, l->name[i]);
                free(l->name[i]);
                l->name[i] = longer;
            }
    }
    snprintf(t->root, sizeof(t->root), "root");
    for (int k = 2; taken(t, t->layer + t->layers, t->root); k++)
        snprintf(t->root, sizeof(t->root), "root%d", k);
}

static int slurm_tree_make(struct slurm_tree *t, const struct matrix *m, double bytes,
                           struct err *err)
{
    static const enum level above[] = {LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};

    *t = (struct slurm_tree){.layers = 0};
    if (choose_leaf(t, m, bytes, err) < 0)
        return -1;
    struct slurm_layer *leaf = &t->layer[t->layers++];
    leaf->count = t->leaf.count;
    leaf->was = mem_calloc((size_t)leaf->count + 1, sizeof(*leaf->was));
    for (int i = 0; i < leaf->count; i++)
        leaf->was[i] = mem_strdup(t->leaf.block[i].name);
    int *top = mem_calloc((size_t)m->topo.hosts + 1, sizeof(*top));
    memcpy(top, t->leaf.of, (size_t)m->topo.hosts * sizeof(*top));
    for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++)
        if (above[i] != t->leaf.level)
            add_level(t, &m->topo, top, above[i]);
    add_above(t, &m->topo, top);
    free(top);
    name_layers(t);
    return 0;
}

/* Switches of a layer below `up`, or all of them (-1), as a list. */
static char *below(const struct slurm_layer *l, int up)
{
    char **name = NULL;
    int n = 0;

    for (int i = 0; i < l->count; i++)
        if (up < 0 || l->up[i] == up)
            MEM_PUSH(name, n) = l->name[i];
    char *list = hostlist_fold(name, n);
    free(name);
    return list;
}

/* Call put() for each switch from the root down; either children or nodes is NULL. */
static void slurm_tree_put(const struct export_run *e, const struct slurm_tree *t,
                           void (*put)(FILE *f, const char *name, const char *children,
                                       const char *nodes))
{
    const struct slurm_layer *last = &t->layer[t->layers - 1];

    for (int i = 0; i < t->lefts; i++)
        slurm_comment(e->out, "%s", t->left[i]);
    if (last->count > 1) {
        char *all = below(last, -1);
        put(e->out, t->root, all, NULL);
        free(all);
    }
    for (const struct slurm_layer *l = last; l >= t->layer; l--)
        for (int i = 0; i < l->count; i++) {
            const struct block *b = &t->leaf.block[i];
            bool leaf = l == t->layer;
            char *list = leaf ? slurm_fold(&e->m->topo, b->host, b->hosts) : below(l - 1, i);
            slurm_renamed(e->out, l->name[i], l->was[i]);
            put(e->out, l->name[i], leaf ? NULL : list, leaf ? list : NULL);
            free(list);
        }
}

static void put_conf_switch(FILE *f, const char *name, const char *children, const char *nodes)
{
    fprintf(f, "SwitchName=%s %s=%s\n", name, nodes ? "Nodes" : "Switches",
            nodes ? nodes : children);
}

int slurm_tree_write(const struct export_run *e, struct err *err)
{
    const struct slurm_release *release = slurm_release_of(e, false, err);
    struct slurm_tree t;

    if (!release || slurm_tree_make(&t, e->m, export_bytes(e), err) < 0)
        return -1;
    int rc = slurm_complete(e, &t.leaf, err);
    if (rc == 0) {
        slurm_head(e, "topology.conf for topology/tree", release);
        slurm_comment(e->out, "slurm.conf needs: TopologyPlugin=topology/tree");
        slurm_groups_from(e->out, &t.leaf, "leaf switch");
        slurm_left_over(e, &t.leaf);
        slurm_tree_put(e, &t, put_conf_switch);
    }
    slurm_tree_free(&t);
    return rc;
}

/* --- topology.yaml: blocks, the tree and a flat topology for measuring --- */

static void put_topology(FILE *f, const char *name, bool preferred)
{
    fprintf(f, "- topology: \"%s\"\n  cluster_default: %s\n", name, preferred ? "true" : "false");
}

static void put_yaml_block(FILE *f, const char *name, const char *nodes)
{
    fprintf(f,
            *nodes ? "      - block: \"%s\"\n        nodes: \"%s\"\n" : "      - block: \"%s\"\n",
            name, nodes);
}

static void put_yaml_blocks(const struct export_run *e, const struct slurm_layout *l)
{
    char *sizes = slurm_layout_notes(e, l);

    slurm_left_over(e, &l->blocks);
    fprintf(e->out, "  block:\n    block_sizes: [%s]\n    blocks:\n", sizes);
    slurm_layout_put(e, l, put_yaml_block);
    free(sizes);
}

static void put_yaml_switch(FILE *f, const char *name, const char *children, const char *nodes)
{
    fprintf(f, "      - switch: \"%s\"\n        %s: \"%s\"\n", name, nodes ? "nodes" : "children",
            nodes ? nodes : children);
}

static void put_yaml(const struct export_run *e, const struct slurm_layout *l,
                     const struct slurm_tree *t, const char *name, const struct slurm_release *r)
{
    slurm_head(e, "topology.yaml", r);
    fprintf(e->out, "# slurm.conf: a partition takes another topology than the default one with "
                    "Topology=NAME;\n# pairs of nodes are best measured in one such as\n"
                    "#   PartitionName=probe Nodes=ALL Topology=probe\n---\n");
    put_topology(e->out, name, true);
    slurm_groups_from(e->out, &l->blocks, "block");
    put_yaml_blocks(e, l);
    if (t->layers > 1) { /* otherwise it equals the blocks */
        put_topology(e->out, "tree", false);
        slurm_groups_from(e->out, &t->leaf, "leaf switch");
        fputs("  tree:\n    switches:\n", e->out);
        slurm_tree_put(e, t, put_yaml_switch);
    }
    put_topology(e->out, "probe", false);
    fputs("  flat: true\n", e->out);
}

static int check_name(const char *name, struct err *err)
{
    if (slurm_folds(name) && strcmp(name, "tree") != 0 && strcmp(name, "probe") != 0)
        return 0;
    return err_usage(err,
                     "--name \"%.60s\": a topology is called with letters, digits, '-' and '_', "
                     "%d at most, and neither tree nor probe",
                     name, SLURM_NAME_LONG);
}

int slurm_yaml_write(const struct export_run *e, struct err *err)
{
    const struct slurm_release *release = slurm_release_of(e, true, err);
    const char *name = e->ask->name ? e->ask->name : "blocks";
    struct slurm_tree t = {.layers = 0};
    struct slurm_layout l;

    if (!release)
        return -1;
    int rc = slurm_layout_make(&l, e, release, err);
    if (rc == 0)
        rc = slurm_complete(e, &l.blocks, err);
    if (rc == 0)
        rc = check_name(name, err);
    if (rc == 0)
        rc = slurm_tree_make(&t, e->m, export_bytes(e), err);
    if (rc == 0 && t.layers > 1)
        rc = slurm_complete(e, &t.leaf, err);
    if (rc == 0)
        put_yaml(e, &l, &t, name, release);
    slurm_tree_free(&t);
    slurm_layout_free(&l);
    return rc;
}
