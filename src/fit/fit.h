/* fit.h - turn points into a cost matrix: tiers confirmed or split by clustering measured pairs, curves,
 * exceptions and findings.  Depends on its arguments only; reads and writes no file.
 *
 * Example:
 *
 *     struct topo t;
 *     struct plan plan = {0};
 *     struct points points = {0};
 *     struct matrix m;
 *     struct fit_opts o;
 *     int rc = -1;
 *
 *     fit_defaults(&o);
 *     matrix_init(&m);
 *     if (topo_load(&t, "topology.json", err) == 0 &&
 *         plan_load(&plan, "plan.tsv", t.endpoints, err) == 0 &&
 *         points_load(&points, "points.tsv", err) == 0 &&
 *         fit_matrix(&m, &t, &plan, &points, &o, err) == 0)
 *         rc = matrix_save(&m, "matrix.json", err);
 *     matrix_free(&m);
 *     points_free(&points);
 *     plan_free(&plan);
 *     topo_free(&t);                                  // t is empty after fit_matrix()
 *     return rc; */
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

/* Fill m; the caller frees it with matrix_free().  The topology moves from t into m, so that a large one is not
 * held twice; t is left unchanged if the points do not fit to it (-1, EXIT_DATA). */
int fit_matrix(struct matrix *m, struct topo *t, const struct plan *plan, const struct points *p,
               const struct fit_opts *o, struct err *err);

/* Add the figures of compute.tsv (devices on their own, compute.c) to the matrix.  f: preset whose peaks the
 * shares refer to, or NULL.  EXIT_DATA: a row names an endpoint that the matrix does not have. */
int fit_compute(struct matrix *m, const struct device_table *t, const struct fabric *f,
                struct err *err);

#endif
