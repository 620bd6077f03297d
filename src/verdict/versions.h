/* versions.h - what ran where campaigns were measured: drivers, firmware, libraries.
 *
 * Of GPUs and NICs all values count, as hosts may differ: "28.39.1002", or "28.39.1002 on 70,
 * 28.40.1000 on 2"; of NICs a row for each board, as each has a firmware of its own.  The rest are
 * the texts of the provenance: MPI, NCCL, the tool itself. */
#ifndef RG_VERSIONS_H
#define RG_VERSIONS_H

#include "verdict/figure.h"

struct version_row {
    char *what;   /* "GPU driver", "NIC firmware, MT_0000000838", "mpi" */
    char **value; /* one a campaign; "not told" */
};

struct versions {
    struct version_row *row;
    int rows, campaigns;
};

/* What any of them tells; versions_free() is the caller's. */
void versions_list(struct versions *v, const struct campaign *const *c, int n);
void versions_free(struct versions *v);

#endif
