/* topograph.h - clusters as NVIDIA/topograph describes them: its simulation models and the output
 * of its engine "graph".
 *
 * A model (YAML; docs/modeling.md, pkg/models/model.go of 1.0) has switches {NAME: {switches:
 * [NAME ...], annotations}} and blocks [{switch, nodes: [ranges], annotations}]; models of 0.3 ..
 * 0.5 have nodes in the switches and capacity_blocks {NAME: {nodes, attributes: {nvlink}}}.  A
 * graph (JSON; docs/engines/graph.md) has instances [{id, network_layers: [nearest first],
 * labels}].
 *
 * The switch of a node is its leaf, the next one up its spine, and so on.  The annotations
 * accelerator.topology.test/domain and sub-domain are NVLink domain and rack.  Whatever topograph
 * refuses is refused: unknown switches, two parents, circles, nodes in two blocks. */
#ifndef RG_TOPOGRAPH_H
#define RG_TOPOGRAPH_H

#include <stddef.h>

#include "topo/topo.h"

#define TOPOGRAPH_DOMAIN "accelerator.topology.test/domain"
#define TOPOGRAPH_SUB_DOMAIN "accelerator.topology.test/sub-domain"
enum { TOPOGRAPH_NODES = 100000 }; /* maximum number of nodes in a file */

/* Parser for the table of sources; describes many hosts.  The origin of its groups is the file
 * name without folders. */
int topograph_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
