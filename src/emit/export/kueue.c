/* SPDX-License-Identifier: BSD-3-Clause */
/* kueue.c - levels of labels for topology-aware scheduling: Kueue's Topology and ResourceFlavor,
 * KAI-Scheduler's Topology.
 *
 * Rules (kueue.x-k8s.io_topologies.yaml and _resourceflavors.yaml of kubernetes-sigs/kueue 0.17,
 * kai.scheduler_topologies.yaml of NVIDIA/KAI-Scheduler): 1..16 levels from the widest to the
 * nearest, each label once, kubernetes.io/hostname only as the last one; a flavor that names a
 * topology needs a node label.  Levels are a tree (k8s_tree()) below topograph's labels, which
 * format k8s-labels writes.  The flavor takes nodes with GPUs (nvidia.com/gpu.present, written by
 * GPU feature discovery); without GPUs nodes with kubernetes.io/os: linux.
 * release of Kueue: 0.15 and later speak v1beta2, 0.14 v1beta1, 0.9 to 0.13 v1alpha1. */
#include "emit/export/export_impl.h"

#include <string.h>

#include "base/units.h"
#include "base/yaml.h"

static void put_topology(FILE *out, const struct k8s *k, const char *api, const char *name)
{
    fprintf(out, "apiVersion: %s\nkind: Topology\nmetadata:\n  name: ", api);
    yaml_put(out, name);
    fputs("\nspec:\n  levels:\n", out);
    for (int l = k->levels - 1; l >= 0; l--)
        fprintf(out, "  - nodeLabel: %s\n", k->level[l].key);
    fputs("  - nodeLabel: kubernetes.io/hostname\n", out);
}

/* A tree below labels.  k8s_free() also after an error. */
static int make(struct k8s *k, const struct matrix *m, const struct export_ask *ask,
                const char **name, struct err *err)
{
    *k = (struct k8s){.t = &m->topo};
    if (k8s_object_name(name, ask->name, err) < 0 || k8s_make(k, &m->topo, NULL, err) < 0)
        return -1;
    k8s_tree(k, true);
    if (k->levels)
        return 0;
    return err_set(err, "no level groups all hosts: %s", k->lefts ? k->left[0] : "none is known");
}

struct versions {
    const char *topology, *flavor;
};

/* "0.13" is not 0.2: the part after the dot is a number of its own. */
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

int kueue_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                struct err *err)
{
    struct versions api;
    const char *name;
    struct k8s k;
    int rc = make(&k, m, ask, &name, err);

    (void)second;
    if (rc == 0)
        rc = version_of(&api, ask->release, err);
    if (rc == 0) {
        k8s_comment(out, &k, "for Kueue; nodes need the labels of export --format k8s-labels");
        put_topology(out, &k, api.topology, name);
        fprintf(out, "---\napiVersion: %s\nkind: ResourceFlavor\nmetadata:\n  name: ", api.flavor);
        yaml_put(out, name);
        fprintf(out, "\nspec:\n  nodeLabels:\n    %s\n  topologyName: ", node_label(&m->topo));
        yaml_put(out, name);
        fputc('\n', out);
    }
    k8s_free(&k);
    return rc;
}

int kai_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
              struct err *err)
{
    const char *name;
    struct k8s k;
    int rc = make(&k, m, ask, &name, err);

    (void)second;
    if (rc == 0) {
        k8s_comment(out, &k,
                    "for KAI-Scheduler; nodes need the labels of export --format k8s-labels");
        put_topology(out, &k, "kai.scheduler/v1alpha1", name);
    }
    k8s_free(&k);
    return rc;
}
