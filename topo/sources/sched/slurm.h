/* slurm.h - structure declared in Slurm's topology files: blocks of nodes, switches and what is
 * below them.
 *
 * Reads topology.conf of topology/tree, topology/block and topology/ring (man topology.conf),
 * topology.yaml of 25.05 and later with several topologies (man topology.yaml), and the output of
 * `scontrol show topology`, which is topology.conf with indices.  Parsed as slurmctld does
 * (block_record.c, switch_record.c): keys in any case, '#' comments, lines continued by '\'.
 * Whatever slurmctld refuses is refused: EXIT_DATA with file, line, value and reason.  Include is
 * not followed.  LinkSpeed is ignored, as in Slurm. */
#ifndef RG_SLURM_H
#define RG_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "topo/topo.h"

enum slurm_kind { SLURM_TREE, SLURM_BLOCK, SLURM_RING, SLURM_TORUS, SLURM_FLAT, SLURM_KINDS };
extern const char *const slurm_kind_name[SLURM_KINDS]; /* "tree", "block", ... */

/* Limits of Slurm, from block_record.c and switch_record.c of 24.11 to 26.05. */
enum {
    SLURM_LEVELS = 16,      /* block sizes: base times 2^0 .. 2^15 */
    SLURM_SWITCH_NAME = 64, /* characters */
    SLURM_RING_NODES = 16,
};

/* Limit of our own: names in all lists of a file, several times the nodes that Slurm supports. */
enum { SLURM_NAMES = 1 << 18 };

struct slurm_unit { /* block, switch, ring or torus */
    char *name;
    char **node;
    int nodes;
    char **child; /* switches below this one */
    int children;
    int line; /* in the file; 0: unknown */
};

struct slurm_topology {
    char *name; /* "" in topology.conf */
    enum slurm_kind kind;
    bool preferred; /* cluster_default */
    struct slurm_unit *unit;
    int units;
    int *size; /* BlockSizes, ascending, so that the base is the first */
    int sizes, sizes_line;
    int line;
};

struct slurm_file {
    char *path;
    struct slurm_topology *topology;
    int topologies;
    int names; /* number in all lists; at most SLURM_NAMES */
};

/* Parse a file in any of the forms.  Call slurm_file_free() also after an error. */
int slurm_parse(struct slurm_file *f, const char *text, size_t len, const char *path,
                struct err *err);
void slurm_file_free(struct slurm_file *f);

/* Like slurm_parse(), without the checks across lines. */
int slurm_file_read(struct slurm_file *f, const char *text, size_t len, const char *path,
                    struct err *err);

/* Declare the groups of all topologies in a file: blocks are domains, leaf switches are leaves,
 * the switches right above them spines (for a leaf below several, all of these together), and the
 * tiers above follow.  origin is the file's name, in topology.yaml with the topology's. */
void slurm_declare(const struct slurm_file *f, struct topo *t);
/* Row of topo/sources/sources.c. */
enum { SLURM_BYTES_MAX = 64 << 20 };
int slurm_read(struct topo *t, int host, const char *text, size_t len, const char *path,
               struct err *err);

/* SLURM_TOPOLOGY_ADDR and _PATTERN, set for every task of a job: the place of its node in the
 * topology that is the cluster's default (also in partitions that use another one: seen with
 * 26.05.5).
 *
 * "rack2.node05" with "block.node", "core.leaf1.node05" with "switch.switch.node"; a node below
 * several switches of a level has them as a list, "core.leaf[1-2].node05" (man srun;
 * topology_tree.c writes hostlist_ranged_string()).  Names may contain dots; then the pattern and
 * the node's name locate the parts as far as possible. */
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

/* node: name in Slurm, or NULL if unknown.  EXIT_DATA with value and reason; call
 * slurm_addr_free() also then. */
int slurm_addr_parse(struct slurm_addr *a, const char *addr, const char *pattern, const char *node,
                     struct err *err);
void slurm_addr_free(struct slurm_addr *a);
/* Part right above the node: its block or leaf switch; NULL: the topology is flat. */
const struct slurm_addr_part *slurm_addr_above(const struct slurm_addr *a);

#endif
