/* export_impl.h - what the exporters share: their entry points, nodes, trees of equal groups,
 * Kubernetes' names and levels, Slurm's names and layouts. */
#ifndef RG_EXPORT_IMPL_H
#define RG_EXPORT_IMPL_H

#include "cost/blocks.h"
#include "emit/export/export.h"
#include "emit/export/pair_cost.h"
#include "topo/groups.h"
#include "topo/sched/slurm.h"

/* ROW(x, name, help, needs, second): x_write() writes the format, see struct exporter; in the order
 * in which they are listed.  What each format refuses stands in its file. */
// clang-format off
#define EXPORTERS(ROW)                                                                              \
    ROW(slurm_block, "slurm-block", "topology.conf of topology/block", PLACES, NULL)                \
    ROW(slurm_tree, "slurm-tree", "topology.conf of topology/tree", PLACES, NULL)                   \
    ROW(slurm_yaml, "slurm-yaml", "topology.yaml: blocks, the tree and a flat one for measuring",   \
        PLACES, NULL)                                                                               \
    ROW(k8s_labels, "k8s-labels", "labels of Kubernetes nodes for kubectl apply", PLACES, NULL)     \
    ROW(kueue, "kueue", "Topology and ResourceFlavor of Kueue", PLACES, NULL)                       \
    ROW(kai, "kai", "Topology of KAI-Scheduler", PLACES, NULL)                                      \
    ROW(volcano, "volcano", "HyperNodes of Volcano", PLACES, NULL)                                  \
    ROW(network_topology, "network-topology", "costs between zones for scheduler-plugins",          \
        PAIRS, "the labels of zones and regions for kubectl apply")                                 \
    ROW(topograph_graph, "topograph", "graph of topograph (JSON)", PLACES, NULL)                    \
    ROW(topograph_model, "topograph-model", "simulation model of topograph (YAML)", PLACES, NULL)   \
    ROW(scotch_tleaf, "scotch-tleaf", "a tree of equal groups as a target of Scotch",               \
        TIERS, "names of the leaves in their order")                                                \
    ROW(scotch_deco, "scotch-deco", "any machine as a target of Scotch",                            \
        PAIRS, "names of the terminals in their order")                                             \
    ROW(simgrid, "simgrid", "a platform file for smpirun", PAIRS, "the nodes' names in rank order") \
    ROW(astra, "astra-sim", "network of ASTRA-sim's analytical back end", TIERS, NULL)              \
    ROW(calculon, "calculon", "networks of a system file of Calculon", TIERS, NULL)                 \
    ROW(aiconfigurator, "aiconfigurator", "node section of a system of NVIDIA aiconfigurator",      \
        TIERS, "nccl_perf.txt: the collectives' curves")                                            \
    ROW(nccl_tuner, "nccl-tuner", "configuration of NCCL's example tuner, from a campaign",         \
        CAMPAIGN, "input of its optimize_config.py")                                                \
    ROW(hwloc_xml, "hwloc", "topology XML of hwloc 2 with distances",                               \
        PAIRS, "distances as text for hwloc-annotate")                                              \
    ROW(dense_matrix_market, "matrix-market", "coordinate matrix for SciPy, MATLAB, Julia",         \
        PAIRS, "the nodes' names in rank order")                                                    \
    ROW(dense_tsv, "tsv", "a line per pair: src dst op bytes us GB/s", PAIRS, NULL)                 \
    ROW(dense_npy, "npy", "array of NumPy", PAIRS, "the nodes' names in rank order")                 \
    ROW(csv, "csv", "a line per measured pair with names of hosts and NICs", POINTS, NULL)          \
    ROW(nccl_json, "nccl-tests", "a collective as nccl-tests -J writes it", POINTS, NULL)           \
    ROW(junit, "junit", "the verdict as test cases: checks, hosts, parts", VERDICT, NULL)           \
    ROW(openmetrics, "openmetrics", "the verdict and its figures for Prometheus", VERDICT, NULL)
// clang-format on

#define EXPORT_PROTOTYPE(x, name, help, needs, second) export_writer x##_write;
EXPORTERS(EXPORT_PROTOTYPE)
#undef EXPORT_PROTOTYPE

/* The size that was asked for, else 64 MiB. */
static inline double export_bytes(const struct export *e)
{
    return e->ask->bytes > 0 ? e->ask->bytes : PAIR_COST_BYTES;
}

/* What was asked for, else the format's own. */
static inline enum quantity export_quantity(const struct export *e, enum quantity own)
{
    return e->ask->quantity ? e->ask->quantity : own;
}

/* Characters of names that no format gives a meaning. */
#define EXPORT_PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

/* --- export_nodes.c --- */

struct export_nodes {
    int *id;     /* endpoint of each node, ascending */
    char **name; /* "n03", or of endpoints "n03:1" */
    int count;
};

/* What a writer can hold. */
struct export_limit {
    const char *format; /* for messages */
    int min, max;
    double pair_bytes; /* of file for each pair; 0: it does not grow with the square */
    char separator;    /* between host and local index in the name of an endpoint */
};

/* Every endpoint, or else the first one of each host, of the racks' first hosts_per_rack ones, as
 * asked.  EXIT_USAGE: outside the limit (with the size that it would be), or hosts_per_rack where a
 * rack is not known.  export_nodes_free() also after an error. */
int export_nodes_choose(struct export_nodes *n, const struct export *e,
                        const struct export_limit *limit, struct err *err);
void export_nodes_free(struct export_nodes *n);
/* Indices of nodes, sorted by their places at these levels, the first before all; the caller frees.
 */
int *export_nodes_order(const struct export_nodes *n, const struct topo *t, const enum level *level,
                        int levels);
/* A name a line; nothing where the second file was not asked for. */
void export_nodes_put(const struct export *e, const struct export_nodes *n);

/* Before a writer writes: hosts with of[] < 0 have no place in the file, because of `why` ("their
 * leaf is not known").  EXIT_UNJUDGED with how many and which unless ask->partial; then it is told
 * in *ask->left. */
int export_complete(const struct export *e, const int *of, const char *why, struct err *err);

/* A text as YAML has it, between two that are written as they are. */
void export_yaml(FILE *out, const char *before, const char *text, const char *after);

/* With the five entities that every XML reader knows, so that simple readers (hwloc's own, without
 * libxml2) understand them.  The text is UTF-8 without control characters, as all names of ours.
 * The caller frees. */
char *export_xml(const char *text);

/* --- uniform_tree.c --- */

struct uniform_tree {
    struct uniform_dim {
        int size;  /* groups of the dimension below, or nodes */
        int level; /* enum level that its members share; -1: the whole machine */
        int tier;
        int *group; /* of each node, in order of appearance */
    } dim[TIER_MAX + 1];
    int dims;
    struct export_nodes nodes;
    int *order; /* indices into nodes; the last dimension varies slowest */
};

/* Of nodes as asked; format is for messages of export_nodes_choose().  hosts: the hosts are a
 * dimension of their own where they hold several nodes, also when their tier joins more.  EXIT_DATA: groups differ in size, or nodes are in no group; both are named.
 * uniform_tree_free() also after an error. */
int uniform_tree_make(struct uniform_tree *n, const struct export *e, const char *format,
                      bool hosts, struct err *err);
void uniform_tree_free(struct uniform_tree *n);
/* Nodes of a group of dimension d: the product of the sizes up to it. */
static inline int uniform_tree_within(const struct uniform_tree *n, int d)
{
    int all = 1;

    for (int i = 0; i <= d; i++)
        all *= n->dim[i].size;
    return all;
}

/* --- k8s.c --- */

enum { K8S_LEVELS = 4, K8S_VALUE = 63, K8S_NAME = 253 };

struct k8s_level {
    enum level level;
    const char *key; /* of the label; NULL: there is none for it */
    int *of;         /* group of each host, -1: not known */
    char **name;     /* of each group, as the topology calls it */
    char **value;    /* as the value of a label */
    char **object;   /* as the name of an object, of which all are unique; see k8s_name_objects() */
    int groups;
};

struct k8s {
    const struct topo *t;
    char **node;                        /* name of each host's node */
    struct k8s_level level[K8S_LEVELS]; /* those that are visible; the most groups first */
    int levels;
    char *left[K8S_LEVELS]; /* "rack: groups hosts as domain does": what k8s_tree() left out */
    int lefts;
};

/* release: of topograph ("0.5", "1.0"), NULL: the newest.  EXIT_UNJUDGED: no level is visible. */
int k8s_make(struct k8s *k, const struct topo *t, const char *release, struct err *err);
void k8s_free(struct k8s *k); /* also after an error */

/* Leave out levels until the rest is a tree in which each one says something: groups of more than
 * one host, other groups than the level below, each group of the level below inside one group.
 * labels: levels also need a label and a group for each host, because Kueue and KAI do not see
 * nodes that lack one. */
void k8s_tree(struct k8s *k, bool labels);
/* export_complete() for hosts without a group at any level that is left; labels: that has one. */
int k8s_complete(const struct k8s *k, const struct export *e, bool labels, struct err *err);

/* Name of an object: ask or "railgauge".  Not RFC 1123: EXIT_USAGE. */
int k8s_object_name(const char **name, const char *ask, struct err *err);
void k8s_name_objects(struct k8s *k);

/* A comment on top: what this is, what to do with it, what was left out. */
void k8s_comment(FILE *out, const struct k8s *k, const char *what);

/* One Node of a List with its labels.  list_begin first. */
struct k8s_label {
    const char *key, *value;
};
void k8s_list_begin(FILE *out);
void k8s_list_node(FILE *out, const char *node, const struct k8s_label *label, int labels);

/* --- slurm.c --- */

enum { SLURM_NAME_LONG = 40 }; /* characters of names that people still read */

struct slurm_release {
    const char *name;
    bool yaml;
    bool any_block; /* short and empty blocks */
};
/* The one that is asked for, else the newest, before anything is written for it.  EXIT_USAGE: not
 * known, with those that are, or it reads no topology.yaml; EXIT_DATA: NodeName's characters
 * (brackets and commas would fold, '=' and blanks end a word). */
const struct slurm_release *slurm_release_of(const struct export *e, bool yaml, struct err *err);

/* A name that Slurm's lists can fold: a letter, then letters, digits, '_' and '-'. */
bool slurm_folds(const char *name);
/* Names that fold; others become block001 ... (word and number).  hostlist_free(). */
char **slurm_names_make(char *const *name, int count, const char *word);
/* Hosts as a list; the caller frees. */
char *slurm_fold(const struct topo *t, const int *host, int hosts);
/* export_complete() for hosts that are in no block. */
int slurm_complete(const struct export *e, const struct blocks *b, struct err *err);

/* Lines of comment: any sentence; what this is and from what; what a unit is; that a name is not
 * the topology's; hosts that are in no block. */
void slurm_comment(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void slurm_head(const struct export *e, const char *what, const struct slurm_release *r);
void slurm_groups_from(FILE *f, const struct blocks *b, const char *unit);
void slurm_renamed(FILE *f, const char *now, const char *was);
void slurm_left_over(const struct export *e, const struct blocks *b);

/* --- slurm_block.c: blocks in the order of the file --- */

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
 * EXIT_USAGE with its rule; hosts without a block: slurm_complete().  slurm_layout_free() also
 * after an error. */
int slurm_layout_make(struct slurm_layout *l, const struct export *e,
                      const struct slurm_release *release, struct err *err);
void slurm_layout_free(struct slurm_layout *l);
/* Calls put() for each block in order; nodes is "" for an empty one. */
void slurm_layout_put(const struct export *e, const struct slurm_layout *l,
                      void (*put)(FILE *f, const char *name, const char *nodes));
/* The notes as comments; returns the sizes as text, "18,36", which the caller frees. */
char *slurm_layout_notes(const struct export *e, const struct slurm_layout *l);

#endif
