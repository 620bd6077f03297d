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

#include "fit/cluster.h"
#include "fit/observe.h"
#include "matrix/matrix.h"
#include "measure/device/device.h"
#include "measure/point.h"
#include "topo/topo.h"

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

/* --- layers ---
 *
 * Groups of hosts within larger groups, found from measured pairs alone: NVLink domains or racks,
 * leaves, spines.
 *
 * Between two hosts, pairs of endpoints with the same number on their hosts count if there are any, because
 * others may cross rails.  The innermost layer clusters hosts (cluster.h).  Each further layer clusters the
 * groups below by the best bandwidth between them, until only one kind of pair remains.  A further layer
 * needs two groups with several members: one slow rack is a fault, not a level of the fabric. */

enum { LAYERS_MAX = 3, RAIL_NUMBERS_MAX = 32 };

struct host_layer {
    int *of;        /* group of each host; -1: unresolved */
    int groups;     /* numbered by their first host */
    int unresolved; /* hosts with of = -1 */
    enum clue clue;
    double near, far; /* medians: B/s or s, by clue */
    bool nvlink;      /* pairs inside are faster than any NIC */
    bool only_leaves; /* only endpoints on the same rail are near: the reach of the leaves */
};

/* Rails: endpoints share a leaf only with endpoints of their rail (host_rails.c). */
struct host_rails {
    int region; /* layer inside which endpoints of a rail are nearer; layers.count: outside; -1: no rails */
    int of[RAIL_NUMBERS_MAX]; /* rail of each number on a host */
    int count;
};

struct layers {
    struct host_layer layer[LAYERS_MAX]; /* inner first */
    int count;
    int contradictions; /* if nothing was found: far pairs inside groups, if those are the reason */
    struct host_rails rails;
};

/* Find the layers.  unit: group of each host to start from (-1: none); NULL: start from single hosts and
 * also search for rails.  rest: use only pairs of the last tier. */
void layers_find(struct layers *l, const struct topo *t, const struct obs *o, int count,
                 const int *unit, bool rest);
/* Set l->rails and mark the layer that is only the reach of leaves; the other layers are already set. */
void host_rails_find(struct layers *l, const struct topo *t, const struct obs *o, int count);
/* The rail of an endpoint; -1: none. */
int host_rails_of(const struct host_rails *r, const struct topo *t, int endpoint);
void layers_free(struct layers *l);
/* Level of the i-th of `count` layers: racks, then spines.  With three layers the middle one is a leaf, or
 * without NVLink the inner one; hosts that share only leaves are a leaf. */
enum level layers_level(const struct layers *l, int i);

/* "bandwidth", "latency" */
static inline const char *clue_name(enum clue c)
{
    return c == CLUE_LATENCY ? "latency" : c == CLUE_BANDWIDTH ? "bandwidth" : "nothing";
}

#endif
