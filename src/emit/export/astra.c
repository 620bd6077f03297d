/* SPDX-License-Identifier: BSD-3-Clause */
/* astra.c - the network file of ASTRA-sim 2's analytical back end (astra-network-analytical,
 * common/network-parser/NetworkParser.cpp): lists of topology, npus_count (> 1), bandwidth (> 0)
 * and latency (>= 0), one entry a dimension, the innermost first; an NPU is an endpoint.
 *
 * Every dimension is a Switch, where a message passes two links: latency is half of a pair's.
 * Its "GB/s" are 2^30 bytes/s (common/NetworkFunction.cpp).  It has no place for slow parts. */
#include "emit/export/export_impl.h"

#include "base/units.h"
#include "emit/export/pair_cost.h"

enum { LINKS = 2 }; /* of a Switch: up and down */

static void put_list(FILE *out, const char *key, const double *v, int n)
{
    fprintf(out, "%s: [", key);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%.9g", i ? ", " : "", v[i]);
    fputs("]\n", out);
}

static void put_head(FILE *out, const struct matrix *m, const struct uniform_tree *n, double bytes)
{
    fprintf(out, "# railgauge %s: %d endpoints; exact for messages of %.0f bytes\n", RG_VERSION,
            n->nodes.count, bytes);
    for (int d = 0; d < n->dims; d++)
        fprintf(out, "# dimension %d: %d in %s, tier %s\n", d, n->dim[d].size,
                n->dim[d].level < 0 ? "the machine" : level_name[n->dim[d].level],
                m->tier[n->dim[d].tier].rule.name);
    fputs("# bandwidth: units of 2^30 bytes/s; latency: ns of one of the two links of a switch\n"
          "topology: [",
          out);
    for (int d = 0; d < n->dims; d++)
        fprintf(out, "%sSwitch", d ? ", " : "");
    fputs("]\n", out);
}

/* EXIT_DATA: the machine is no tree of equal groups, or a tier was not measured. */
int astra_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                struct err *err)
{
    double count[TIER_MAX + 1], bandwidth[TIER_MAX + 1], latency[TIER_MAX + 1];
    double bytes = export_bytes(ask);
    struct uniform_tree n;
    struct pair_line l;
    int rc = uniform_tree_make(&n, m, ask, "astra-sim", true, false, err);

    (void)second;
    for (int d = 0; d < n.dims && rc == 0; d++) {
        rc = pair_cost_line(&l, m, n.dim[d].tier, bytes, err);
        count[d] = n.dim[d].size;
        bandwidth[d] = units_out(FOREIGN_ASTRA_BANDWIDTH, l.Bps);
        latency[d] = units_out(FOREIGN_ASTRA_LATENCY, l.alpha / LINKS);
    }
    if (rc == 0) {
        put_head(out, m, &n, bytes);
        put_list(out, "npus_count", count, n.dims);
        put_list(out, "bandwidth", bandwidth, n.dims);
        put_list(out, "latency", latency, n.dims);
    }
    uniform_tree_free(&n);
    return rc;
}
