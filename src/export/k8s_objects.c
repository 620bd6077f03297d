/* SPDX-License-Identifier: BSD-3-Clause */
/* k8s_objects.c - objects of Kubernetes: labels of nodes, Topology of Kueue and of KAI-Scheduler,
 * HyperNodes of Volcano. */
#include "export/export_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

/* --- labels ---
 *
 * Labels for nodes, as a List for kubectl apply: every visible level that has a label (k8s.c), for
 * every host that has a group there.  With server-side apply nothing else of a node changes; nodes
 * missing in the cluster would be created. */

/* Labels of host h, the nearest level first. */
static int labels_of(const struct k8s *k, int h, struct k8s_label label[K8S_LEVELS])
{
    int n = 0;

    for (int l = 0; l < k->levels; l++) {
        const struct k8s_level *v = &k->level[l];
        if (v->key && v->of[h] >= 0)
            label[n++] = (struct k8s_label){v->key, v->value[v->of[h]]};
    }
    return n;
}

int k8s_labels_write(const struct export_run *e, struct err *err)
{
    struct k8s k;
    int rc = k8s_make(&k, &e->m->topo, e->ask->release, err);

    if (rc == 0)
        rc = k8s_complete(&k, e, true, err);
    if (rc == 0) {
        k8s_comment(e->out, &k,
                    "kubectl apply --server-side --field-manager=railgauge -f THIS (makes nodes "
                    "that the cluster lacks)");
        for (int l = 0; l < k.levels; l++)
            if (!k.level[l].key)
                fprintf(e->out, "# left out: %s: topograph has no label for it\n",
                        level_name[k.level[l].level]);
        k8s_list_begin(e->out);
    }
    for (int h = 0; rc == 0 && h < e->m->topo.hosts; h++) {
        struct k8s_label label[K8S_LEVELS];
        int n = labels_of(&k, h, label);
        if (n)
            k8s_list_node(e->out, k.node[h], label, n);
    }
    k8s_free(&k);
    return rc;
}

/* --- Kueue and KAI ---
 *
 * Levels of labels for topology-aware scheduling: Kueue's Topology and ResourceFlavor,
 * KAI-Scheduler's Topology.
 *
 * Rules (kueue.x-k8s.io_topologies.yaml and _resourceflavors.yaml of kubernetes-sigs/kueue 0.17,
 * kai.scheduler_topologies.yaml of NVIDIA/KAI-Scheduler): 1..16 levels from the widest to the
 * nearest, each label once, kubernetes.io/hostname only as the last; a flavor that names a topology
 * needs a node label.  Levels are a tree (k8s_tree()) of topograph's labels, which format
 * k8s-labels writes.  The flavor selects nodes with GPUs (nvidia.com/gpu.present, written by GPU
 * feature discovery); without GPUs nodes with kubernetes.io/os: linux.  release is that of Kueue:
 * 0.15 and later use v1beta2, 0.14 v1beta1, 0.9 to 0.13 v1alpha1. */

static void put_topology(FILE *out, const struct k8s *k, const char *api, const char *name)
{
    fprintf(out, "apiVersion: %s\nkind: Topology\n", api);
    export_yaml(out, "metadata:\n  name: ", name, "\nspec:\n  levels:\n");
    for (int l = k->levels - 1; l >= 0; l--)
        fprintf(out, "  - nodeLabel: %s\n", k->level[l].key);
    fputs("  - nodeLabel: kubernetes.io/hostname\n", out);
}

/* Make a tree of labels.  Call k8s_free() also after an error. */
static int make(struct k8s *k, const struct export_run *e, const char **name, struct err *err)
{
    *k = (struct k8s){.t = &e->m->topo};
    if (k8s_object_name(name, e->ask->name, err) < 0 || k8s_make(k, k->t, NULL, err) < 0)
        return -1;
    k8s_tree(k, true);
    if (k->levels)
        return 0;
    return err_set(err, "no level groups all hosts: %s", k->lefts ? k->left[0] : "none is known");
}

struct versions {
    const char *topology, *flavor;
};

/* "0.13" is not 0.2: the part after the dot is a whole number. */
static int version_of(struct versions *v, const char *release, struct err *err)
{
    static const struct {
        int minor;
        struct versions is;
    } known[] = {
        {15, {"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta2"}},
        {14, {"kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta1"}},
        {9, {"kueue.x-k8s.io/v1alpha1", "kueue.x-k8s.io/v1beta1"}},
    };
    int minor = known[0].minor;

    *v = known[0].is;
    if (!release)
        return 0;
    if (strncmp(release, "0.", 2) != 0 || units_int(&minor, release + 2, 0, 999, err) < 0)
        return err_usage(err, "release of Kueue: \"%.40s\" is not 0.MINOR", release);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (minor >= known[i].minor) {
            *v = known[i].is;
            return 0;
        }
    return err_usage(err, "Kueue %.40s knows no topologies: they came with 0.9", release);
}

static const char *node_label(const struct topo *t)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].kind == ENDPOINT_GPU)
            return "nvidia.com/gpu.present: \"true\"";
    return "kubernetes.io/os: linux";
}

int kueue_write(const struct export_run *e, struct err *err)
{
    struct versions api;
    const char *name;
    struct k8s k;
    int rc = make(&k, e, &name, err);

    if (rc == 0)
        rc = version_of(&api, e->ask->release, err);
    if (rc == 0) {
        k8s_comment(e->out, &k, "for Kueue; nodes need the labels of export --format k8s-labels");
        put_topology(e->out, &k, api.topology, name);
        fprintf(e->out, "---\napiVersion: %s\nkind: ResourceFlavor\n", api.flavor);
        export_yaml(e->out, "metadata:\n  name: ", name, "\nspec:\n  nodeLabels:\n    ");
        fprintf(e->out, "%s\n", node_label(&e->m->topo));
        export_yaml(e->out, "  topologyName: ", name, "\n");
    }
    k8s_free(&k);
    return rc;
}

int kai_write(const struct export_run *e, struct err *err)
{
    const char *name;
    struct k8s k;
    int rc = make(&k, e, &name, err);

    if (rc == 0) {
        k8s_comment(e->out, &k,
                    "for KAI-Scheduler; nodes need the labels of export --format k8s-labels");
        put_topology(e->out, &k, "kai.scheduler/v1alpha1", name);
    }
    k8s_free(&k);
    return rc;
}

/* --- Volcano ---
 *
 * HyperNodes: one object per group, tier 1 the nearest.
 *
 * Rules (topology.volcano.sh_hypernodes.yaml and pkg/webhooks of volcano-sh/volcano of 2026-08): at
 * least one member each, of type Node or HyperNode, with exactly one selector; names of nodes and
 * HyperNodes are RFC 1123 subdomains.  HyperNodes are a tree (k8s_tree()); hosts whose nearest
 * group is not known are members of the wider group.  Tiers are ordered but have no distance. */

static void put_member(FILE *out, const char *type, const char *name)
{
    fprintf(out, "  - type: %s\n", type);
    export_yaml(out, "    selector:\n      exactMatch:\n        name: ", name, "\n");
}

/* Level whose group represents host h among the members of its group at level l: the widest below l
 * in which h has a group; -1: the node itself. */
static int below(const struct k8s *k, int l, int h)
{
    while (--l >= 0 && k->level[l].of[h] < 0)
        ;
    return l;
}

static void put_group(FILE *out, const struct k8s *k, int l, int g, const int *host, int hosts)
{
    const struct k8s_level *v = &k->level[l];

    export_yaml(out,
                "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n"
                "  name: ",
                v->object[g], "\nspec:\n");
    fprintf(out, "  tier: %d\n  tierName: %s\n  members:\n", l + 1, level_name[v->level]);
    for (int i = 0; i < hosts; i++) {
        int b = below(k, l, host[i]);
        const struct k8s_level *inner = &k->level[b < 0 ? 0 : b];
        /* A group below is written at its first host, because hosts of a group are adjacent. */
        if (b < 0)
            put_member(out, "Node", k->node[host[i]]);
        else if (!i || below(k, l, host[i - 1]) != b ||
                 inner->of[host[i - 1]] != inner->of[host[i]])
            put_member(out, "HyperNode", inner->object[inner->of[host[i]]]);
    }
}

struct volcano_order {
    const struct k8s *k;
    int level;
};

/* Order by group at the level, then at the levels below from the widest to the nearest, then by
 * host. */
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

static void put_level(FILE *out, const struct k8s *k, int l)
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
            put_group(out, k, l, of[host[i]], host + i, j - i);
    }
    free(host);
}

int volcano_write(const struct export_run *e, struct err *err)
{
    struct k8s k;
    int rc = k8s_make(&k, &e->m->topo, NULL, err);

    if (rc == 0) {
        k8s_tree(&k, false);
        if (!k.levels)
            rc = err_set(err, "no level groups hosts: %s", k.lefts ? k.left[0] : "none is known");
    }
    if (rc == 0)
        rc = k8s_complete(&k, e, false, err);
    if (rc == 0) {
        k8s_comment(e->out, &k, "HyperNodes for Volcano: kubectl apply -f THIS");
        k8s_name_objects(&k);
        for (int l = 0; l < k.levels; l++)
            put_level(e->out, &k, l);
    }
    k8s_free(&k);
    return rc;
}
