/* SPDX-License-Identifier: BSD-3-Clause */
/* The pair maps in the terminal, and all pairs as JSON. */
#include <math.h>

#include "base/json.h"
#include "emit/plot/heat.h"
#include "emit/plot/pairs.h"

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

static json_t *json_pair(const struct pairs *ps, int src, int dst)
{
    const struct tier *t = &ps->m->tier[pairs_tier(ps, src, dst)];
    double add, Bps = pairs_rate(ps, src, dst), of = pairs_share(ps, src, dst, Bps);
    double factor = matrix_factor(ps->m, src, dst, NULL, &add), lat = t->curve[DIR_ONEWAY].alpha;

    return json_pack(
        "{s:i, s:i, s:s, s:o, s:o, s:o, s:f, s:f, s:b}", "src", src, "dst", dst, "tier",
        t->rule.name, "latency_s", lat > 0 ? json_real(lat + add) : json_null(), "Bps",
        Bps > 0 ? json_real(Bps) : json_null(), "of_expected", json_finite(of), "factor", factor,
        "bytes", ps->bytes, "measured", pairs_sample(ps, src, dst) != NULL);
}

json_t *pairs_json(const struct pairs *ps)
{
    json_t *out = json_array();

    for (int i = 0; i < ps->n; i++)
        for (int j = 0; j < ps->n; j++)
            if (i != j)
                json_array_append_new(out, json_pair(ps, i, j));
    return out;
}
