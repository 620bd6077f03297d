/* labels.h - labels of Kubernetes nodes: who belongs together, and GPUs of nodes that nobody has
 * looked at yet.
 *
 * Read are `kubectl get nodes -o json` or `-o yaml` (a List, or one Node) and the table that
 * `kubectl get nodes --show-labels` prints.  Each label declares groups of its own whose origin is its
 * key, so that families of labels can disagree.  An absent label says nothing: no gpu.clique is not
 * "a domain of its own".  Where the keys come from:
 *   topograph   NVIDIA/topograph 1.0 pkg/topology/topology.go; names of before pkg/engines/k8s of
 *               v0.3.0 .. v0.5.0 (core, leaf), v0.1.0 (datacenter, block), and KEP-4962's
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

/* Hosts by the names of their groups, in the order in which these appear; zeros: none. */
struct label_groups {
    struct names names;
    struct label_group {
        char **host;
        int hosts;
    } * of;
    int hosts; /* of all groups */
};
void label_groups_join(struct label_groups *g, const char *group, const char *host);
void label_groups_declare(const struct label_groups *g, struct topo *t, enum source source,
                          enum level level, int above, const char *origin);
void label_groups_free(struct label_groups *g);

/* Labels of hosts while they are collected. */
struct label_facts {
    struct topo *t;           /* for the names that it knows hosts by */
    struct label_groups *row; /* of each label that is known */
    int hosts;
    int known; /* hosts of t before anything was added: only these give names */
};
void label_facts_begin(struct label_facts *f, struct topo *t);
/* labels: an object of texts, or NULL.  where starts messages ("nodes.json: items[3]"). */
int label_facts_add(struct label_facts *f, const char *host, const json_t *labels,
                    const char *where, struct err *err);
/* All as declared groups of `source`, in the order of the table; what is wider goes to unseen.
 * Returns how many rows had something. */
int label_facts_declare(struct label_facts *f, enum source source);
void label_facts_end(struct label_facts *f);

/* What t calls a node: its name, its kubernetes.io/hostname, or its name up to the first dot where
 * one of the first `known` hosts is called so; else the name.  Borrowed, or in buf. */
const char *label_host(const struct topo *t, int known, const char *name, const json_t *labels,
                       char buf[256]);

/* For the table of sources; of no one host.  GPUs (nvidia.com/gpu.count, product) become endpoints where t has none
 * at all. */
int labels_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                 struct err *err);

#endif
