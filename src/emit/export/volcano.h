/* volcano.h - Volcano's HyperNodes: one object per group, tier 1 the nearest.
 *
 * Rules (topology.volcano.sh_hypernodes.yaml and pkg/webhooks of volcano-sh/volcano of 2026-08): at
 * least one member each, of type Node or HyperNode, with exactly one selector; names of nodes and
 * HyperNodes are RFC 1123 subdomains.  HyperNodes are a tree (k8s_tree()); hosts whose nearest
 * group is not known are members of the wider one.  A tier has an order and no distance. */
#ifndef RG_VOLCANO_H
#define RG_VOLCANO_H

#include "emit/export/export.h"

int volcano_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                  struct err *err);

#endif
