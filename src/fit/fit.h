/* fit.h - points -> cost matrix: tiers confirmed or split by clustering measured pairs, curves,
 * exceptions and findings.  Of its inputs alone; no file is touched. */
#ifndef RG_FIT_H
#define RG_FIT_H

#include "matrix/matrix.h"
#include "measure/device/device.h"
#include "measure/point.h"

struct fit_opts {
    double outlier; /* smallest bandwidth loss that becomes an exception, share; default 0.035 */
};

static inline void fit_defaults(struct fit_opts *o)
{
    o->outlier = 0.035;
}

/* The caller frees m with matrix_free().  t becomes that of the matrix, and is empty then, unless these
 * points cannot be of it: a large one is not held twice. */
int fit_matrix(struct matrix *m, struct topo *t, const struct plan *plan, const struct points *p,
               const struct fit_opts *o, struct err *err);

/* compute.tsv -> what the cost matrix says about devices on their own (compute.c); f: the preset
 * whose peaks the shares refer to, or NULL.  A row of an endpoint that the matrix does not have is
 * refused (EXIT_DATA). */
int fit_compute(struct matrix *m, const struct device_table *t, const struct fabric *f,
                struct err *err);

#endif
