/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/cost_text.h"

#include <math.h>

#include "base/json.h"
#include "base/units.h"

static double rate(const struct cost_answer *a)
{
    return (double)a->bytes * a->factor / a->cost.sec;
}

static double share(const struct cost_answer *a)
{
    return reference_share(&a->healthy, a->cost.sec);
}

json_t *cost_json(const struct cost_answer *a, const struct matrix *m)
{
    const struct cost *c = &a->cost;
    char part[256];
    bool known = isfinite(a->healthy.sec);
    json_t *out = json_pack(
        "{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:b}", "op", a->op,
        "ranks", a->ranks, "bytes", (json_int_t)a->bytes, "seconds", json_finite(c->sec),
        "low_seconds", json_finite(c->lo), "high_seconds", json_finite(c->hi), "expected_seconds",
        json_finite(a->healthy.sec), "of_expected", json_finite(share(a)), "expected_source",
        known ? json_string(a->healthy.source) : json_null(), "expected_from",
        known ? json_string(a->reference) : json_null(), "basis", basis_name[c->basis], "source",
        c->source, "extrapolated_from_bytes",
        c->from > 0 ? json_integer((json_int_t)c->from) : json_null(),
        a->bus ? "busbw_Bps" : "algbw_Bps", json_finite(rate(a)), "dead", isinf(c->sec) != 0);

    if (c->exception >= 0)
        json_object_set_new(out, "slowed_by",
                            json_string(matrix_part(m, &m->exception[c->exception], part)));
    return out;
}

void cost_text(FILE *out, const struct cost_answer *a)
{
    const struct cost *c = &a->cost;
    char t[4][UNITS_TEXT];

    if (isinf(c->sec))
        fprintf(out, "for ever: a part on the way does not answer\n");
    else
        fprintf(out, "%s  (%s to %s), %s %s\n", units_seconds_text(t[0], c->sec),
                units_seconds_text(t[1], c->lo), units_seconds_text(t[2], c->hi),
                a->bus ? "bus bandwidth" : "bandwidth", units_rate_text(t[3], rate(a)));
    fprintf(out, "  from: %s\n", c->source);
    if (isfinite(share(a)))
        fprintf(out, "  expected of a healthy fabric: %s (%s), this is %.0f %% of that speed\n",
                units_seconds_text(t[0], a->healthy.sec), a->reference, 100 * share(a));
}
