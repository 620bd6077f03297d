/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/score/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static double bound(const struct calibrate_search *s, int i, double v)
{
    return fmin(fmax(v, s->low[i]), s->high[i]);
}

/* One number, one way: as far as it helps. */
static double walk(struct calibrate_search *s, int i, double step, double best)
{
    for (int far = 0; far < 6; far++, step *= 2) {
        double v = bound(s, i, s->x[i] + step);
        if (v == s->x[i])
            break;
        double value = s->value(s->ctx, s->x, i, v);
        if (!(value < best))
            break;
        best = value;
        s->x[i] = v;
        s->keep(s->ctx);
    }
    return best;
}

static double round_of(struct calibrate_search *s, double step, double best)
{
    for (int i = 0; i < s->n; i++) {
        double was = best;
        best = walk(s, i, step, best);
        if (best == was)
            best = walk(s, i, -step, best);
    }
    return best;
}

/* The way of the last round once more: along a valley that no single number follows. */
static double same_way(struct calibrate_search *s, const double *before, double best)
{
    double *here = mem_calloc((size_t)s->n, sizeof(*here));

    memcpy(here, s->x, (size_t)s->n * sizeof(*here));
    for (int i = 0; i < s->n; i++)
        s->x[i] = bound(s, i, 2 * here[i] - before[i]);
    double value = s->value(s->ctx, s->x, -1, 0);
    if (value < best) {
        best = value;
        s->keep(s->ctx);
    } else {
        memcpy(s->x, here, (size_t)s->n * sizeof(*here));
    }
    free(here);
    return best;
}

double calibrate_lowest(struct calibrate_search *s, bool *cut)
{
    double *before = mem_calloc((size_t)s->n + 1, sizeof(*before)), step = s->step;
    double best = s->value(s->ctx, s->x, -1, 0);

    s->keep(s->ctx);
    *cut = false;
    while (step >= s->least && s->n > 0) {
        double was = best;
        memcpy(before, s->x, (size_t)s->n * sizeof(*before));
        best = round_of(s, step, best);
        if (best < was)
            best = same_way(s, before, best);
        if (!(was - best > s->gain * was))
            step /= 2;
        *cut = !s->go_on(s->ctx, log(s->step / fmax(step, s->least)) / log(s->step / s->least));
        if (*cut)
            break;
    }
    free(before);
    return best;
}
