/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_yaml.c - topology.yaml: blocks, the tree and a flat topology for measuring. */
#include "emit/export/export_impl.h"

#include <string.h>

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

static void put_yaml_blocks(FILE *f, const struct matrix *m, const struct slurm_layout *l)
{
    slurm_layout_notes(f, l);
    slurm_left_over(f, m, &l->blocks);
    fputs("  block:\n    block_sizes: [", f);
    slurm_layout_sizes(f, l);
    fputs("]\n    blocks:\n", f);
    slurm_layout_put(f, m, l, put_yaml_block);
}

static void put_yaml_switch(FILE *f, const char *name, const char *children, const char *nodes)
{
    fprintf(f, "      - switch: \"%s\"\n        %s: \"%s\"\n", name, nodes ? "nodes" : "children",
            nodes ? nodes : children);
}

static int put_yaml(FILE *f, const struct matrix *m, const struct slurm_layout *l,
                    const struct export_ask *ask, const struct slurm_release *r, struct err *err)
{
    struct slurm_tree t;
    const char *name = ask->name ? ask->name : "blocks";

    if (!slurm_folds(name) || !strcmp(name, "tree") || !strcmp(name, "probe"))
        return err_usage(
            err,
            "--name \"%.60s\": a topology is called with letters, digits, '-' and '_', "
            "%d at most, and neither tree nor probe",
            name, SLURM_NAME_LONG);
    if (slurm_tree_make(&t, m, export_bytes(ask), err) < 0)
        return -1;
    if (t.layers > 1 && slurm_complete(ask, m, &t.leaf, err) < 0) {
        slurm_tree_free(&t);
        return -1;
    }
    slurm_head(f, m, "topology.yaml", r);
    fprintf(f, "# slurm.conf: a partition takes another topology than the default one with "
               "Topology=NAME;\n# pairs of nodes are best measured in one such as\n"
               "#   PartitionName=probe Nodes=ALL Topology=probe\n---\n");
    put_topology(f, name, true);
    slurm_groups_from(f, &l->blocks, "block");
    put_yaml_blocks(f, m, l);
    if (t.layers > 1) { /* else it would be the blocks again */
        put_topology(f, "tree", false);
        slurm_groups_from(f, &t.leaf, "leaf switch");
        fputs("  tree:\n    switches:\n", f);
        slurm_tree_put(f, m, &t, put_yaml_switch);
    }
    put_topology(f, "probe", false);
    fputs("  flat: true\n", f);
    slurm_tree_free(&t);
    return 0;
}

int slurm_yaml_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                     struct err *err)
{
    const struct slurm_release *release = slurm_release_find(ask->release, err);
    struct slurm_layout l = {.slot = NULL};

    (void)second;
    if (!release)
        return -1;
    if (!release->yaml)
        return err_usage(err,
                         "Slurm %s reads no topology.yaml (25.05 was the first): --format "
                         "slurm-block or slurm-tree",
                         release->name);
    int rc = slurm_check_hosts(&m->topo, err);
    if (rc == 0)
        rc = slurm_layout_make(&l, m, ask, release, err);
    if (rc == 0)
        rc = slurm_complete(ask, m, &l.blocks, err);
    if (rc == 0)
        rc = put_yaml(out, m, &l, ask, release, err);
    slurm_layout_free(&l);
    return rc;
}
