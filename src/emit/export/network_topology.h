/* network_topology.h - NetworkTopology of the NetworkOverhead plug-in of kubernetes-sigs/
 * scheduler-plugins: the measured cost between blocks of hosts.
 *
 * Fields are those of manifests/networktopology/crd.yaml (v1alpha1: configmapName, weights[].
 * topologyList[].originList[].costList[]); the example beside it has older names that the CRD does
 * not know.  The plug-in looks at two labels only (pkg/networkaware/util): zone inside a region,
 * region between regions; the second file holds these labels for the nodes, and replaces what a
 * cloud wrote there.  A zone is a block (cost/blocks.h); regions are spines where zones lie inside
 * them.
 *
 * networkCost is proportional to the time of moving `bytes` both ways between two hosts of the
 * blocks, the largest is 100 and the least 2: inside a zone the plug-in counts 1, for pairs that it
 * does not know 100 (networkoverhead.go: SameZone, MaxCost).  bandwidthCapacity is in bit/s, as
 * Kubernetes counts bandwidth.  Unknown pairs are left out.  What is larger than an object that
 * etcd takes (1.5 MiB) is refused. */
#ifndef RG_NETWORK_TOPOLOGY_H
#define RG_NETWORK_TOPOLOGY_H

#include "emit/export/export.h"

int network_topology_write(FILE *out, FILE *second, const struct matrix *m,
                           const struct export_ask *ask, struct err *err);

#endif
