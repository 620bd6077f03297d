/* slurm_addr.h - SLURM_TOPOLOGY_ADDR and _PATTERN, which every task of a job gets: where its node
 * is in the topology that is the cluster's default (also in partitions that use another one: seen
 * with 26.05.5).
 *
 * "rack2.node05" with "block.node", "core.leaf1.node05" with "switch.switch.node"; a node below
 * several switches of a level has them as a list, "core.leaf[1-2].node05" (man srun;
 * topology_tree.c writes hostlist_ranged_string()).  Names may have dots themselves: then the
 * pattern and the node's name tell where the parts are, as far as that goes. */
#ifndef RG_SLURM_ADDR_H
#define RG_SLURM_ADDR_H

#include "base/err.h"

enum { SLURM_ADDR_PARTS = 16 };

struct slurm_addr {
    struct slurm_addr_part {
        char *kind; /* "switch", "block", "node" */
        char *text; /* as written: "leaf[1-2]" */
        char **name;
        int names;
    } part[SLURM_ADDR_PARTS]; /* from the outermost to the node */
    int parts;
};

/* node: its name in Slurm, or NULL when that is not known.  EXIT_DATA with the value and the
 * reason; slurm_addr_free() also then. */
int slurm_addr_parse(struct slurm_addr *a, const char *addr, const char *pattern, const char *node,
                     struct err *err);
void slurm_addr_free(struct slurm_addr *a);
/* What is right above the node: its block or leaf switch; NULL: the topology is flat. */
const struct slurm_addr_part *slurm_addr_above(const struct slurm_addr *a);

#endif
