/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/export.h"

#include <string.h>

#include "base/mem.h"
#include "emit/export/export_impl.h"

/* In the order in which they are listed. */
const struct exporter exporters[] = {
    {"slurm-block", "topology.conf of topology/block", EXPORT_PLACES, NULL, slurm_block_write},
    {"slurm-tree", "topology.conf of topology/tree", EXPORT_PLACES, NULL, slurm_tree_write},
    {"slurm-yaml", "topology.yaml: blocks, the tree and a flat one for measuring", EXPORT_PLACES,
     NULL, slurm_yaml_write},
    {"k8s-labels", "labels of Kubernetes nodes for kubectl apply", EXPORT_PLACES, NULL,
     k8s_labels_write},
    {"kueue", "Topology and ResourceFlavor of Kueue", EXPORT_PLACES, NULL, kueue_write},
    {"kai", "Topology of KAI-Scheduler", EXPORT_PLACES, NULL, kai_write},
    {"volcano", "HyperNodes of Volcano", EXPORT_PLACES, NULL, volcano_write},
    {"network-topology", "costs between zones for scheduler-plugins", EXPORT_PAIRS,
     "the labels of zones and regions for kubectl apply", network_topology_write},
    {"topograph", "graph of topograph (JSON)", EXPORT_PLACES, NULL, topograph_graph_write},
    {"topograph-model", "simulation model of topograph (YAML)", EXPORT_PLACES, NULL,
     topograph_model_write},
    {"scotch-tleaf", "a tree of equal groups as a target of Scotch", EXPORT_TIERS,
     "names of the leaves in their order", scotch_tleaf_write},
    {"scotch-deco", "any machine as a target of Scotch", EXPORT_PAIRS,
     "names of the terminals in their order", scotch_deco_write},
    {"simgrid", "a platform file for smpirun", EXPORT_PAIRS, "the nodes' names in rank order",
     simgrid_write},
    {"astra-sim", "network of ASTRA-sim's analytical back end", EXPORT_TIERS, NULL, astra_write},
    {"calculon", "networks of a system file of Calculon", EXPORT_TIERS, NULL, calculon_write},
    {"aiconfigurator", "node section of a system of NVIDIA aiconfigurator", EXPORT_TIERS,
     "nccl_perf.txt: the collectives' curves", aiconfigurator_write},
    {"nccl-tuner", "configuration of NCCL's example tuner, from a campaign", EXPORT_CAMPAIGN,
     "input of its optimize_config.py", nccl_tuner_write},
    {"hwloc", "topology XML of hwloc 2 with distances", EXPORT_PAIRS,
     "distances as text for hwloc-annotate", hwloc_xml_write},
    {"matrix-market", "coordinate matrix for SciPy, MATLAB, Julia", EXPORT_PAIRS,
     "the nodes' names in rank order", dense_matrix_market_write},
    {"tsv", "a line per pair: src dst op bytes us GB/s", EXPORT_PAIRS, NULL, dense_tsv_write},
    {"npy", "array of NumPy", EXPORT_PAIRS, "the nodes' names in rank order", dense_npy_write},
};
const int exporter_count = sizeof(exporters) / sizeof(*exporters);

const struct exporter *exporter_find(const char *name, struct err *err)
{
    char known[512] = "";
    size_t used = 0;

    for (int i = 0; i < exporter_count; i++) {
        if (!strcmp(exporters[i].name, name))
            return &exporters[i];
        if (used < sizeof(known))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                     exporters[i].name);
    }
    err_usage(err, "no format \"%.60s\"; known: %s", name, known);
    return NULL;
}

void export_wrap(struct matrix *m, struct topo *t)
{
    matrix_init(m);
    m->transport = mem_strdup("none");
    m->topo = *t;
    topo_init(t);
    for (int i = 0; i < m->topo.tiers; i++)
        m->tier[m->tiers++] = (struct tier){.rule = m->topo.tier[i], .basis = BASIS_ASSUMED};
}
