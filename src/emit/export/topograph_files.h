/* topograph_files.h - what NVIDIA/topograph would have found: its graph (JSON) and a simulation
 * model (YAML), so that whatever takes topograph's files takes ours.
 *
 * Formats and their rules: topo/sched/topograph.h, which reads both back.  Leaf and spine are the
 * two tiers of switches; NVLink domain and rack are domain and sub-domain.  In a model a switch has
 * one parent: a leaf below two spines is refused, and so is a switch that is both.  Blocks of a
 * model stand in the order of cost/blocks.h: near ones side by side. */
#ifndef RG_TOPOGRAPH_FILES_H
#define RG_TOPOGRAPH_FILES_H

#include "emit/export/export.h"

int topograph_graph_write(FILE *out, FILE *second, const struct matrix *m,
                          const struct export_ask *ask, struct err *err);
int topograph_model_write(FILE *out, FILE *second, const struct matrix *m,
                          const struct export_ask *ask, struct err *err);

#endif
