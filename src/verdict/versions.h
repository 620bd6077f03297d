/* versions.h - drivers, firmware and libraries of the machines that campaigns were measured on.
 *
 * GPUs and NICs list every value, because hosts may differ: "28.39.1002", or "28.39.1002 on 70,
 * 28.40.1000 on 2".  NICs have one row per board type, because each has its own firmware.  The
 * other rows are texts of the provenance: MPI, NCCL, railgauge. */
#ifndef RG_VERSIONS_H
#define RG_VERSIONS_H

#include "verdict/figure.h"

struct version_row {
    char *what;   /* "GPU driver", "NIC firmware, MT_0000000838", "mpi" */
    char **value; /* one per campaign; "not told" if unknown */
};

struct versions {
    struct version_row *row;
    int rows, campaigns;
};

/* List all rows that any campaign knows.  The caller calls versions_free(). */
void versions_list(struct versions *v, const struct campaign *const *c, int n);
void versions_free(struct versions *v);

#endif
