/* SPDX-License-Identifier: BSD-3-Clause */
/* volcano.c - Volcano's HyperNodes: one object per group, tier 1 the nearest.
 *
 * Rules (topology.volcano.sh_hypernodes.yaml and pkg/webhooks of volcano-sh/volcano of 2026-08): at
 * least one member each, of type Node or HyperNode, with exactly one selector; names of nodes and
 * HyperNodes are RFC 1123 subdomains.  HyperNodes are a tree (k8s_tree()); hosts whose nearest
 * group is not known are members of the wider one.  A tier has an order and no distance. */
#include "emit/export/export_impl.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/yaml.h"

static void put_member(FILE *out, const char *type, const char *name)
{
    fprintf(out, "  - type: %s\n    selector:\n      exactMatch:\n        name: ", type);
    yaml_put(out, name);
    fputc('\n', out);
}

/* The level whose groups stand for host h among the members of its group at level l: the widest
 * below l where it has one; -1: the node itself. */
static int below(const struct k8s *k, int l, int h)
{
    while (--l >= 0 && k->level[l].of[h] < 0)
        ;
    return l;
}

static void put_group(FILE *out, const struct k8s *k, char ***name, int l, int g, const int *host,
                      int hosts)
{
    fprintf(out,
            "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n  name: ");
    yaml_put(out, name[l][g]);
    fprintf(out, "\nspec:\n  tier: %d\n  tierName: %s\n  members:\n", l + 1,
            level_name[k->level[l].level]);
    for (int i = 0; i < hosts; i++) {
        int b = below(k, l, host[i]);
        /* A group below is written at its first host: hosts of a group stand side by side. */
        if (b < 0)
            put_member(out, "Node", k->node[host[i]]);
        else if (!i || below(k, l, host[i - 1]) != b ||
                 k->level[b].of[host[i - 1]] != k->level[b].of[host[i]])
            put_member(out, "HyperNode", name[b][k->level[b].of[host[i]]]);
    }
}

struct volcano_order {
    const struct k8s *k;
    int level;
};

/* By group at the level, then those below it from the widest to the nearest, then by host. */
static int by_groups(const void *x, const void *y, void *order)
{
    const struct volcano_order *o = order;
    int a = *(const int *)x, b = *(const int *)y;

    for (int l = o->level; l >= 0; l--) {
        int ga = o->k->level[l].of[a], gb = o->k->level[l].of[b];
        if (ga != gb)
            return ga < gb ? -1 : 1;
    }
    return a < b ? -1 : 1;
}

static void put_level(FILE *out, const struct k8s *k, char ***name, int l)
{
    int hosts = k->t->hosts, *host = mem_calloc((size_t)hosts + 1, sizeof(*host));
    const int *of = k->level[l].of;

    for (int h = 0; h < hosts; h++)
        host[h] = h;
    qsort_r(host, (size_t)hosts, sizeof(*host), by_groups, &(struct volcano_order){k, l});
    for (int i = 0, j; i < hosts; i = j) {
        for (j = i + 1; j < hosts && of[host[j]] == of[host[i]]; j++)
            ;
        if (of[host[i]] >= 0)
            put_group(out, k, name, l, of[host[i]], host + i, j - i);
    }
    free(host);
}

int volcano_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                  struct err *err)
{
    struct k8s k;

    (void)second;
    int rc = k8s_make(&k, &m->topo, NULL, err);
    if (rc == 0) {
        k8s_tree(&k, false);
        if (!k.levels)
            rc = err_set(err, "no level groups hosts: %s", k.lefts ? k.left[0] : "none is known");
    }
    if (rc == 0)
        rc = k8s_complete(&k, ask, false, err);
    if (rc < 0) {
        k8s_free(&k);
        return -1;
    }
    k8s_comment(out, &k, "HyperNodes for Volcano: kubectl apply -f THIS");
    char ***name = k8s_object_names(&k);
    for (int l = 0; l < k.levels; l++)
        put_level(out, &k, name, l);
    k8s_object_names_free(&k, name);
    k8s_free(&k);
    return 0;
}
