/* plan_cost.h - what a plan will cost, as a line for people. */
#ifndef RG_PLAN_COST_H
#define RG_PLAN_COST_H

#include <stdio.h>

#include "probe/measure.h"

/* "8 endpoints, 61 rounds, about 3410 points, 1.2 GiB moved, about 40 s of measuring\n".  The time
 * is a guess: nothing is measured yet (10 us and 10 GB/s a message). */
void plan_cost_print(FILE *out, const struct plan *p, int endpoints, const struct measure_opts *o);

#endif
