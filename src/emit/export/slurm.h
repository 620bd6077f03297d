/* slurm.h - topology.conf and topology.yaml from what was measured.
 *
 * slurm-tree    topology.conf of topology/tree: leaves, what is above them, one root
 * slurm-block   topology.conf of topology/block
 * slurm-yaml    topology.yaml: blocks, the tree and a flat topology for measuring, as far as known
 *
 * Rules of the releases (block_record.c, switch_record.c and data_parser of 24.11 to 26.05; 24.11.5
 * and 26.05.5 are run in tests/slurm):
 *   24.11   no topology.yaml; a block has at least the base size of BlockSizes ("children count
 *           lower than bblock_node_cnt"), none is empty ("lacks children")
 *   25.05+  topology.yaml; shorter and empty blocks are taken
 *   all     sizes are the base size times a power of two, 16 levels at most ("Invalid BlockSizes
 *           value"); blocks are joined with the next in the file, so their order counts; a name is
 *           there once; a switch's name has at most 64 characters */
#ifndef RG_EMIT_SLURM_H
#define RG_EMIT_SLURM_H

#include "cost/blocks.h"
#include "emit/export/export.h"
#include "topo/sched/slurm.h"

struct slurm_release {
    const char *name;
    bool yaml;
    bool any_block; /* short and empty blocks */
};
/* NULL: the newest.  EXIT_USAGE: not known, with those that are. */
const struct slurm_release *slurm_release_find(const char *name, struct err *err);

/* Blocks in the order of the file. */
struct slurm_layout {
    struct blocks blocks;
    int *slot; /* index of a block, or -1: an empty one that keeps the others aligned */
    int slots;
    int size[SLURM_LEVELS]; /* BlockSizes */
    int sizes;
    char **note; /* sentences for comments */
    int notes;
};
/* Sizes above the base are those at which measured time between blocks, or else spines, say that
 * blocks belong together.  hosts_per_rack of ask is the base size.  What the release refuses:
 * EXIT_USAGE with its rule.  slurm_layout_free() also after an error. */
int slurm_layout_make(struct slurm_layout *l, const struct matrix *m, const struct export_ask *ask,
                      const struct slurm_release *release, struct err *err);
void slurm_layout_free(struct slurm_layout *l);

/* Names that Slurm can fold: letters, digits, '_' and '-'; others become block001 ... (word and
 * number), which is `count` long.  The caller frees with hostlist_free(). */
char **slurm_names_make(char *const *name, int count, const char *word);

/* Rows of export.c. */
int slurm_tree_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                     struct err *err);
int slurm_block_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                      struct err *err);
int slurm_yaml_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                     struct err *err);

#endif
