/* SPDX-License-Identifier: BSD-3-Clause */
/* The pair maps in the terminal. */
#include <math.h>

#include "emit/heat.h"
#include "emit/pairs.h"

static double rate(void *arg, int row, int col)
{
    const struct pairs *ps = arg;

    return pairs_rate(ps, ps->order[row], ps->order[col]) / 1e9;
}

static double share(void *arg, int row, int col)
{
    const struct pairs *ps = arg;
    int src = ps->order[row], dst = ps->order[col];

    return src == dst ? NAN : 100 * pairs_share(ps, src, dst, pairs_rate(ps, src, dst));
}

static const char *label(void *arg, int row)
{
    const struct pairs *ps = arg;
    const struct topo *t = &ps->m->topo;
    const int *at = t->endpoint[ps->order[row]].place.at;

    if (t->hosts > 16 && t->group[LEVEL_RACK].count > 1)
        return at[LEVEL_RACK] >= 0 ? t->group[LEVEL_RACK].name[at[LEVEL_RACK]] : "";
    return t->host[at[LEVEL_HOST]].name;
}

static bool special(void *arg, int row)
{
    const struct pairs *ps = arg;

    return ps->special[ps->order[row]];
}

void pairs_print(FILE *out, const struct pairs *ps, int columns, bool colour)
{
    struct heat h = {.n = ps->n,
                     .value = share,
                     .arg = (void *)ps,
                     .lo = 50,
                     .hi = 105,
                     .title = "share of expected bandwidth, row sends to column",
                     .unit = "%",
                     .label = label,
                     .palette = HEAT_SHARE,
                     .special = special};

    heat_print(out, &h, columns, colour);
    h = (struct heat){.n = ps->n,
                      .value = rate,
                      .arg = (void *)ps,
                      .log = true,
                      .unit = "GB/s",
                      .title = "\nbandwidth",
                      .label = label,
                      .special = special};
    heat_print(out, &h, columns, colour);
}
