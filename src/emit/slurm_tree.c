/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_tree.c - topology.conf of topology/tree.
 *
 * The lowest switches are the finest groups of hosts that are known: leaves, or racks and NVLink
 * domains where rails make the leaves larger than these.  Every coarser level that holds each of
 * them whole, and several, becomes a layer above. */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "emit/slurm_words.h"
#include "topo/claim.h"

static const double DEFAULT_BYTES = 64 << 20;

void slurm_tree_free(struct slurm_tree *t)
{
    for (int i = 0; i < t->layers; i++) {
        struct slurm_layer *l = &t->layer[i];
        hostlist_free(l->was, l->was ? l->count : 0);
        hostlist_free(l->name, l->name ? l->count : 0);
        free(l->up);
    }
    blocks_free(&t->leaf);
    t->layers = 0;
}

/* Leaves, unless other groups of hosts are finer. */
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

/* The group of every switch of the last layer, told by its hosts: top[host] is the switch.  NULL
 * unless each switch is whole in one of several groups, which are fewer and have one each. */
static int *whole(const struct topo *t, const int *top, int count, const int *of, int groups)
{
    int *up = mem_calloc((size_t)count + 1, sizeof(*up));
    bool good = groups > 1 && groups < count;

    for (int i = 0; i < count; i++)
        up[i] = -1;
    for (int h = 0; h < t->hosts && good; h++)
        if (top[h] >= 0) {
            good = of[h] >= 0 && (up[top[h]] < 0 || up[top[h]] == of[h]);
            up[top[h]] = of[h];
        }
    for (int g = 0; g < groups && good; g++) {
        good = false;
        for (int i = 0; i < count && !good; i++)
            good = up[i] == g;
    }
    if (good)
        return up;
    free(up);
    return NULL;
}

static void add_layer(struct slurm_tree *t, const struct topo *topo, int *top, enum level level)
{
    struct slurm_layer *last = &t->layer[t->layers - 1];
    struct slurm_layer next = {.count = 0};
    int *of = topo_host_groups(topo, level, &next.was, &next.count);

    last->up = whole(topo, top, last->count, of, next.count);
    if (last->up) {
        t->layer[t->layers++] = next;
        memcpy(top, of, (size_t)topo->hosts * sizeof(*top));
    } else {
        hostlist_free(next.was, next.count);
    }
    free(of);
}

static bool taken(const struct slurm_tree *t, const struct slurm_layer *before, const char *name)
{
    for (const struct slurm_layer *l = t->layer; l < before; l++)
        for (int i = 0; i < l->count; i++)
            if (!strcmp(l->name[i], name))
                return true;
    return false;
}

/* No switch is called as one of another layer. */
static void name_layers(struct slurm_tree *t)
{
    static const char *const word[] = {"leaf", "spine", "core", "top"};

    for (struct slurm_layer *l = t->layer; l < t->layer + t->layers; l++) {
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

int slurm_tree_make(struct slurm_tree *t, const struct matrix *m, double bytes, struct err *err)
{
    static const enum level above[] = {LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};

    *t = (struct slurm_tree){.layers = 0};
    if (choose_leaf(t, m, bytes > 0 ? bytes : DEFAULT_BYTES, err) < 0)
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
            add_layer(t, &m->topo, top, above[i]);
    free(top);
    name_layers(t);
    return 0;
}

/* Switches of a layer that hang below `up`, or all of them (-1), as a list. */
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

void slurm_tree_put(FILE *f, const struct matrix *m, const struct slurm_tree *t,
                    void (*put)(FILE *f, const char *name, const char *children, const char *nodes))
{
    const struct slurm_layer *last = &t->layer[t->layers - 1];

    if (last->count > 1) {
        char *all = below(last, -1);
        put(f, t->root, all, NULL);
        free(all);
    }
    for (const struct slurm_layer *l = last; l >= t->layer; l--)
        for (int i = 0; i < l->count; i++) {
            const struct block *b = &t->leaf.block[i];
            bool leaf = l == t->layer;
            char *list = leaf ? slurm_fold(&m->topo, b->host, b->hosts) : below(l - 1, i);
            slurm_renamed(f, l->name[i], l->was[i]);
            put(f, l->name[i], leaf ? NULL : list, leaf ? list : NULL);
            free(list);
        }
}

static void put_conf_switch(FILE *f, const char *name, const char *children, const char *nodes)
{
    fprintf(f, "SwitchName=%s %s=%s\n", name, nodes ? "Nodes" : "Switches",
            nodes ? nodes : children);
}

int slurm_tree_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                     struct err *err)
{
    const struct slurm_release *release = slurm_release_find(ask->release, err);
    struct slurm_tree t;

    (void)second;
    if (!release || slurm_check_hosts(&m->topo, err) < 0 ||
        slurm_tree_make(&t, m, ask->bytes, err) < 0)
        return -1;
    slurm_head(out, m, "topology.conf for topology/tree", release);
    slurm_comment(out, "slurm.conf needs: TopologyPlugin=topology/tree");
    slurm_groups_from(out, &t.leaf, "leaf switch");
    slurm_left_over(out, m, &t.leaf);
    slurm_tree_put(out, m, &t, put_conf_switch);
    slurm_tree_free(&t);
    return 0;
}
