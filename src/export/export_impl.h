/* export_impl.h - shared by the exporters: entry points, nodes, trees of equal groups, names and
 * levels of Kubernetes, names and layouts of Slurm. */
#ifndef RG_EXPORT_IMPL_H
#define RG_EXPORT_IMPL_H

#include "export/blocks_impl.h"
#include "export/export.h"
#include "export/pair_cost.h"
#include "topo/groups.h"
#include "topo/sources/sched/slurm.h"

/* ROW(x, name, help, needs, second): x_write() writes the format, see struct exporter; rows are in
 * listing order.  The file of a format documents what it refuses. */
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

/* Requested message size, default 64 MiB. */
static inline double export_bytes(const struct export_run *e)
{
    return e->ask->bytes > 0 ? e->ask->bytes : PAIR_COST_BYTES;
}

/* Requested quantity, else the default of the format. */
static inline enum quantity export_quantity(const struct export_run *e, enum quantity own)
{
    return e->ask->quantity ? e->ask->quantity : own;
}

/* --- export_nodes.c --- */

struct export_nodes {
    int *id;     /* endpoint of each node, ascending */
    char **name; /* "n03", for endpoints "n03:1" */
    int count;
};

struct export_limit {
    const char *format; /* for messages */
    int min, max;
    double pair_bytes; /* bytes of the file per pair; 0: does not grow with the square */
    char separator;    /* separates host and local index in the name of an endpoint */
};

/* Choose the nodes: every endpoint, or the first endpoint of each host, of the first hosts_per_rack
 * hosts of each rack.  EXIT_USAGE: outside the limit (with the resulting size), or hosts_per_rack
 * although a rack is not known.  Call export_nodes_free() also after an error. */
int export_nodes_choose(struct export_nodes *n, const struct export_run *e,
                        const struct export_limit *limit, struct err *err);
void export_nodes_free(struct export_nodes *n);
/* Indices of nodes, sorted by coordinates at these levels, the first level first.  The caller
 * frees. */
int *export_nodes_order(const struct export_nodes *n, const struct topo *t, const enum level *level,
                        int levels);
/* Write a name per line to the second file, if requested. */
void export_nodes_put(const struct export_run *e, const struct export_nodes *n);

/* Call before writing: hosts with of[] < 0 have no place in the file because of `why` ("their leaf
 * is not known").  EXIT_UNJUDGED with their number and names, unless ask->partial; then *ask->left
 * reports them. */
int export_complete(const struct export_run *e, const int *of, const char *why, struct err *err);

/* Write a text as YAML, between two texts that are written unchanged. */
void export_yaml(FILE *out, const char *before, const char *text, const char *after);

/* Escape with the five entities that every XML reader knows, so that simple readers (hwloc's own,
 * without libxml2) work.  The text must be UTF-8 without control characters, as all names are.  The
 * caller frees. */
char *export_xml(const char *text);

/* --- uniform_tree.c --- */

struct uniform_tree {
    struct uniform_dim {
        int size;  /* number of groups of the dimension below, or of nodes */
        int level; /* enum level shared by the members; -1: the whole machine */
        int tier;
        int *group; /* group of each node, in order of appearance */
    } dim[TIER_MAX + 1];
    int dims;
    struct export_nodes nodes;
    int *order; /* indices into nodes; the last dimension varies slowest */
};

/* Make a tree of the nodes as requested; format is for messages of export_nodes_choose().  hosts:
 * hosts with several nodes are a dimension of their own, even if their tier joins more.  EXIT_DATA:
 * groups differ in size, or nodes belong to no group; both are named.  Call uniform_tree_free()
 * also after an error. */
int uniform_tree_make(struct uniform_tree *n, const struct export_run *e, const char *format,
                      bool hosts, struct err *err);
void uniform_tree_free(struct uniform_tree *n);
/* Nodes per group of dimension d: the product of the sizes up to d. */
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
    const char *key; /* key of the label; NULL: there is none for this level */
    int *of;         /* group of each host; -1: not known */
    char **name;     /* name of each group in the topology */
    char **value;    /* name as the value of a label */
    char **object;   /* unique name as an object; see k8s_name_objects() */
    int groups;
};

struct k8s {
    const struct topo *t;
    char **node;                        /* node name of each host */
    struct k8s_level level[K8S_LEVELS]; /* visible levels; most groups first */
    int levels;
    /* "rack: groups hosts as domain does": levels that k8s_tree() left out */
    char *left[K8S_LEVELS];
    int lefts;
};

/* release: of topograph ("0.5", "1.0"); NULL: the newest.  EXIT_UNJUDGED: no level is visible. */
int k8s_make(struct k8s *k, const struct topo *t, const char *release, struct err *err);
void k8s_free(struct k8s *k); /* also after an error */

/* Leave out levels until the rest is a tree whose levels each add information: groups of more than
 * one host, groups other than those of the level below, each group of the level below inside one
 * group.  labels: levels also need a label and a group for each host, because Kueue and KAI ignore
 * nodes that lack one. */
void k8s_tree(struct k8s *k, bool labels);
/* export_complete() for hosts without a group at any remaining level; labels: at any level with a
 * label. */
int k8s_complete(const struct k8s *k, const struct export_run *e, bool labels, struct err *err);

/* Set *name to ask, or "railgauge".  EXIT_USAGE unless it conforms to RFC 1123. */
int k8s_object_name(const char **name, const char *ask, struct err *err);
void k8s_name_objects(struct k8s *k);

/* Write the comment at the top: contents, usage, and what was left out. */
void k8s_comment(FILE *out, const struct k8s *k, const char *what);

/* A label of a Node in a List; write list_begin first. */
struct k8s_label {
    const char *key, *value;
};
void k8s_list_begin(FILE *out);
void k8s_list_node(FILE *out, const char *node, const struct k8s_label *label, int labels);

/* --- slurm.c --- */

enum { SLURM_NAME_LONG = 40 }; /* length up to which names are readable */

struct slurm_release {
    const char *name;
    bool yaml;
    bool any_block; /* accepts short and empty blocks */
};
/* Requested release, else the newest; call before writing.  EXIT_USAGE: not known, with the known
 * releases, or it does not read topology.yaml.  EXIT_DATA: characters in NodeName (brackets and
 * commas would fold, '=' and blanks end a word). */
const struct slurm_release *slurm_release_of(const struct export_run *e, bool yaml,
                                             struct err *err);

/* True if Slurm's lists can fold the name: a letter, then letters, digits, '_' and '-'. */
bool slurm_folds(const char *name);
/* Names that fold; others become block001 ... (word and number).  Free with hostlist_free(). */
char **slurm_names_make(char *const *name, int count, const char *word);
/* Hosts as a folded list.  The caller frees. */
char *slurm_fold(const struct topo *t, const int *host, int hosts);
/* export_complete() for hosts outside all blocks. */
int slurm_complete(const struct export_run *e, const struct blocks *b, struct err *err);

/* Lines of comment: any sentence; contents and source of the file; meaning of a unit; names that
 * are not of the topology; hosts outside all blocks. */
void slurm_comment(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void slurm_head(const struct export_run *e, const char *what, const struct slurm_release *r);
void slurm_groups_from(FILE *f, const struct blocks *b, const char *unit);
void slurm_renamed(FILE *f, const char *now, const char *was);
void slurm_left_over(const struct export_run *e, const struct blocks *b);

/* --- slurm_block.c: blocks in the order of the file --- */

struct slurm_layout {
    struct blocks blocks;
    int *slot; /* index of a block; -1: an empty block that keeps the others aligned */
    int slots;
    int size[SLURM_LEVELS]; /* BlockSizes */
    int sizes;
    char **note; /* sentences for comments */
    int notes;
};
/* Make the layout.  Sizes above the base size are those at which measured times between blocks, or
 * else spines, show that blocks belong together.  hosts_per_rack of ask is the base size.
 * EXIT_USAGE with the rule for what the release refuses; hosts outside all blocks:
 * slurm_complete().  Call slurm_layout_free() also after an error. */
int slurm_layout_make(struct slurm_layout *l, const struct export_run *e,
                      const struct slurm_release *release, struct err *err);
void slurm_layout_free(struct slurm_layout *l);
/* Call put() for each block in order; nodes is "" for an empty block. */
void slurm_layout_put(const struct export_run *e, const struct slurm_layout *l,
                      void (*put)(FILE *f, const char *name, const char *nodes));
/* Write the notes as comments.  Returns the sizes as text, "18,36".  The caller frees. */
char *slurm_layout_notes(const struct export_run *e, const struct slurm_layout *l);

#endif
