/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/plan_cost.h"

#include "base/units.h"

void plan_cost_print(FILE *out, const struct plan *p, int endpoints, const struct measure_opts *o)
{
    char moved[UNITS_TEXT], took[UNITS_TEXT];
    double sec, bytes;
    long points = 0;

    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        points += (long)plan_steps(r) * r->groups * __builtin_popcount(r->epochs);
    }
    measure_estimate(p, o, 1e-5, 1e10, &sec, &bytes);
    fprintf(out, "%d endpoints, %d rounds, about %ld points, %s moved, about %s of measuring\n",
            endpoints, p->rounds, points, units_bytes_text(moved, bytes),
            units_seconds_text(took, sec));
}
