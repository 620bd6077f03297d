/* fit_files.h - from the three files of a campaign to its matrix: what fit and run share. */
#ifndef RG_FIT_FILES_H
#define RG_FIT_FILES_H

#include "cost/fit/fit.h"

/* topology.json, plan.tsv and points.tsv must belong together (EXIT_DATA).  Adds what no point
 * tells: what devices do alone, from `compute` (compute.tsv, NULL: not measured), the data-sheet
 * peaks of the preset that the topology names, and on hosts without GPUs the compute rate of this
 * host, measured.  The caller frees m with matrix_free(), also after a failure. */
int fit_files(struct matrix *m, const char *topology, const char *plan, const char *points,
              const char *compute, const struct fit_opts *o, struct err *err);

#endif
