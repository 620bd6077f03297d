/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - topology.conf of topology/block, and topology.yaml. */
#include "emit/export/slurm.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "emit/export/slurm_words.h"

/* --- topology/block --- */

/* Called for each block in order; nodes is "" for an empty one. */
typedef void put_block(FILE *f, const char *name, const char *nodes);

static void put_blocks(FILE *f, const struct matrix *m, const struct slurm_layout *l,
                       put_block *put)
{
    const struct blocks *b = &l->blocks;
    char **name = slurm_block_names(b, "block");
    int empty = 0;

    for (int s = 0; s < l->slots; s++) {
        if (l->slot[s] < 0) {
            char *gap = mem_printf("railgauge-empty%d", ++empty);
            put(f, gap, "");
            free(gap);
            continue;
        }
        const struct block *k = &b->block[l->slot[s]];
        char *nodes = slurm_fold(&m->topo, k->host, k->hosts);
        slurm_renamed(f, name[l->slot[s]], k->name);
        put(f, name[l->slot[s]], nodes);
        free(nodes);
    }
    hostlist_free(name, b->count);
}

static void put_conf_block(FILE *f, const char *name, const char *nodes)
{
    fprintf(f, *nodes ? "BlockName=%s Nodes=%s\n" : "BlockName=%s\n", name, nodes);
}

static void put_yaml_block(FILE *f, const char *name, const char *nodes)
{
    fprintf(f,
            *nodes ? "      - block: \"%s\"\n        nodes: \"%s\"\n" : "      - block: \"%s\"\n",
            name, nodes);
}

static void put_sizes(FILE *f, const struct slurm_layout *l)
{
    for (int i = 0; i < l->sizes; i++)
        fprintf(f, "%s%d", i ? "," : "", l->size[i]);
}

static void put_notes(FILE *f, const struct slurm_layout *l)
{
    for (int i = 0; i < l->notes; i++)
        slurm_comment(f, l->note[i]);
}

int slurm_block_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                      struct err *err)
{
    const struct slurm_release *release = slurm_release_find(ask->release, err);
    struct slurm_layout l = {.slot = NULL};

    (void)second;
    if (!release || slurm_check_hosts(&m->topo, err) < 0)
        return -1;
    int rc = slurm_layout_make(&l, m, ask, release, err);
    if (rc == 0)
        rc = slurm_complete(ask, m, &l.blocks, err);
    if (rc == 0) {
        slurm_head(out, m, "topology.conf for topology/block", release);
        slurm_comment(out, "slurm.conf needs: TopologyPlugin=topology/block");
        slurm_groups_from(out, &l.blocks, "block");
        put_notes(out, &l);
        slurm_comment(out,
                      "A job that measures pairs of nodes needs --segment=1: other jobs stay in a "
                      "block.");
        if (release->yaml)
            slurm_comment(out, "A flat topology for that beside this one: --format slurm-yaml.");
        slurm_left_over(out, m, &l.blocks);
        put_blocks(out, m, &l, put_conf_block);
        fputs("BlockSizes=", out);
        put_sizes(out, &l);
        fputc('\n', out);
    }
    slurm_layout_free(&l);
    return rc;
}

/* --- topology.yaml --- */

static void put_topology(FILE *f, const char *name, bool preferred)
{
    fprintf(f, "- topology: \"%s\"\n  cluster_default: %s\n", name, preferred ? "true" : "false");
}

static void put_yaml_blocks(FILE *f, const struct matrix *m, const struct slurm_layout *l)
{
    put_notes(f, l);
    slurm_left_over(f, m, &l->blocks);
    fputs("  block:\n    block_sizes: [", f);
    put_sizes(f, l);
    fputs("]\n    blocks:\n", f);
    put_blocks(f, m, l, put_yaml_block);
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
    if (slurm_tree_make(&t, m, ask->bytes, err) < 0)
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
