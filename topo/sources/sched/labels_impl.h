/* labels_impl.h - labels of Kubernetes nodes: groups of hosts, and GPUs of nodes that were not
 * examined.
 *
 * Reads `kubectl get nodes -o json` or `-o yaml` (a List, or one Node) and the table of `kubectl
 * get nodes --show-labels`.  Each label declares groups of its own, with its key as origin, so
 * that families of labels can disagree.  A missing label means nothing: no gpu.clique is not "a
 * domain of its own".  Sources of the keys:
 *   topograph   NVIDIA/topograph 1.0 pkg/topology/topology.go; earlier names from pkg/engines/k8s
 *               of v0.3.0 .. v0.5.0 (core, leaf), v0.1.0 (datacenter, block), and KEP-4962
 *   clique      GPU feature discovery: <cluster UUID>.<clique id>, only once NVLink is registered
 *   AWS         EKS and HyperPod: layer 1 is the top, the highest number is next to the node; some
 *               types have a layer 4
 *   GCP         GKE: block > sub-block (a rack; on A4X the NVLink domain) > host (physical)
 *   OCI         OKE: hpc_island > network_block > local_block; values are hashes
 *   Nebius      tier-1 is next to the node, gpu-cluster-id the whole fabric
 *   CoreWeave   docs.coreweave.com, InfiniBand and RoCE labels
 * Azure writes no such label; topology.kubernetes.io/zone is wider than a spine. */
#ifndef RG_LABELS_H
#define RG_LABELS_H

#include <jansson.h>

#include "topo/topo.h"

/* Hosts by name of their group, in order of first appearance.  All zeros: no groups. */
struct label_groups {
    struct names names;
    struct label_group {
        char **host;
        int hosts;
    } * of;
    int hosts; /* number in all groups */
};
void label_groups_join(struct label_groups *g, const char *group, const char *host);
void label_groups_declare(const struct label_groups *g, struct topo *t, enum source source,
                          enum level level, int above, const char *origin);
void label_groups_free(struct label_groups *g);

/* Labels of hosts while they are collected. */
struct label_facts {
    struct topo *t;           /* supplies host names, see label_host() */
    struct label_groups *row; /* one per known label */
    int hosts;
    /* Number of hosts in t at the start; only these give names. */
    int known;
};
void label_facts_begin(struct label_facts *f, struct topo *t);
/* labels: an object of texts, or NULL.  where begins messages ("nodes.json: items[3]"). */
int label_facts_add(struct label_facts *f, const char *host, const json_t *labels,
                    const char *where, struct err *err);
/* Declare all groups with this source, in the order of the table; labels wider than any tier go to
 * topo.unseen.  Returns the number of rows that had values. */
int label_facts_declare(struct label_facts *f, enum source source);
void label_facts_end(struct label_facts *f);

/* Name of a node in t: if one of the first `known` hosts is called so, its name, its
 * kubernetes.io/hostname, or its name up to the first dot; else its name.  Borrowed, or in buf. */
const char *label_host(const struct topo *t, int known, const char *name, const json_t *labels,
                       char buf[256]);

/* Parser for the table of sources; describes many hosts.  GPUs (nvidia.com/gpu.count, product)
 * become endpoints if t has none. */
int labels_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                 struct err *err);

#endif
