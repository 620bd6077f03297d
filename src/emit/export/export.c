/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/units.h"
#include "emit/export/aiconfigurator.h"
#include "emit/export/astra.h"
#include "emit/export/calculon.h"
#include "emit/export/dense.h"
#include "emit/export/hwloc_xml.h"
#include "emit/export/k8s_labels.h"
#include "emit/export/kueue.h"
#include "emit/export/nccl_tuner.h"
#include "emit/export/network_topology.h"
#include "emit/export/scotch.h"
#include "emit/export/simgrid.h"
#include "emit/export/slurm.h"
#include "emit/export/topograph_files.h"
#include "emit/export/volcano.h"

static int write_simgrid(FILE *out, FILE *second, const struct matrix *m,
                         const struct export_ask *ask, struct err *err)
{
    struct simgrid_opts o = {ask->endpoints, ask->hosts_per_rack};

    return simgrid_write(out, second, m, &o, err);
}

static int write_tuner(FILE *out, FILE *second, const struct matrix *m,
                       const struct export_ask *ask, struct err *err)
{
    struct tuner t;

    (void)m;
    if (!ask->campaign)
        return err_usage(err, "nccl-tuner is made from a campaign's folder with a sweep (railgauge "
                              "run --sweep -o DIR), not from a matrix");
    if (tuner_load(&t, ask->campaign, err) < 0)
        return -1;
    tuner_csv(out, &t);
    if (second)
        tuner_records(second, &t);
    tuner_free(&t);
    return 0;
}

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
     "names of the leaves in their order", scotch_tleaf},
    {"scotch-deco", "any machine as a target of Scotch", EXPORT_PAIRS,
     "names of the terminals in their order", scotch_deco},
    {"simgrid", "a platform file for smpirun", EXPORT_PAIRS, "the nodes' names in rank order",
     write_simgrid},
    {"astra-sim", "network of ASTRA-sim's analytical back end", EXPORT_TIERS, NULL, astra_write},
    {"calculon", "networks of a system file of Calculon", EXPORT_TIERS, NULL, calculon_write},
    {"aiconfigurator", "node section of a system of NVIDIA aiconfigurator", EXPORT_TIERS,
     "nccl_perf.txt: the collectives' curves", aiconfigurator_write},
    {"nccl-tuner", "configuration of NCCL's example tuner, from a campaign", EXPORT_CAMPAIGN,
     "input of its optimize_config.py", write_tuner},
    {"hwloc", "topology XML of hwloc 2 with distances", EXPORT_PAIRS,
     "distances as text for hwloc-annotate", hwloc_xml_write},
    {"matrix-market", "coordinate matrix for SciPy, MATLAB, Julia", EXPORT_PAIRS,
     "the nodes' names in rank order", dense_matrix_market},
    {"tsv", "a line per pair: src dst op bytes us GB/s", EXPORT_PAIRS, NULL, dense_tsv},
    {"npy", "array of NumPy", EXPORT_PAIRS, "the nodes' names in rank order", dense_npy},
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

int export_complete(const struct export_ask *ask, const struct topo *t, const int *of,
                    const char *why, struct err *err)
{
    enum { SHOWN = 120 };
    char **name = mem_calloc((size_t)t->hosts + 1, sizeof(*name));
    int names = 0, rc = 0;

    for (int h = 0; h < t->hosts; h++)
        if (of[h] < 0)
            name[names++] = t->host[h].name;
    char *list = hostlist_fold(name, names);
    char *text = mem_printf("%d of %d hosts %s not in it, because %s: %.*s%s", names, t->hosts,
                            units_plural(names, "is", "are"), why, SHOWN, list,
                            strlen(list) > SHOWN ? "..." : "");
    if (names && !ask->partial)
        rc = err_set(err, "%s; --partial writes it all the same", text);
    if (names && ask->partial && ask->left) {
        free(*ask->left);
        *ask->left = mem_strdup(text);
    }
    free(text);
    free(list);
    free(name);
    return rc;
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
