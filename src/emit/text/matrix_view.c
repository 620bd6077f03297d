/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of a cost matrix as JSON. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "cost/matrix_json.h"
#include "cost/reference.h"
#include "emit/text/matrix_text.h"
#include "emit/text/shape_group.h"

json_t *matrix_view_tiers(const struct matrix *m, double bytes)
{
    json_t *out = json_array();

    for (int i = 0; i < m->tiers; i++) {
        const struct tier *t = &m->tier[i];
        const struct curve *uni = &t->curve[DIR_UNI];
        json_t *one = json_pack(
            "{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s}", "name", t->rule.name,
            "pairs", tier_pairs(t), "latency_s",
            json_finite(t->curve[DIR_ONEWAY].points ? t->curve[DIR_ONEWAY].alpha : NAN), "Bps",
            json_finite(matrix_rate(m, i, DIR_UNI)), "both_Bps",
            json_finite(t->curve[DIR_BI].points ? matrix_rate(m, i, DIR_BI) : NAN), "spread",
            json_finite(t->spread), "latency_spread",
            json_finite(t->latency_spread > 0 ? t->latency_spread : NAN), "loaded",
            json_finite(t->loaded), "peak_Bps", json_finite(t->peak_Bps > 0 ? t->peak_Bps : NAN),
            "nic", t->nic, "basis", basis_name[t->basis]);
        if (t->possible > 0)
            json_object_set_new(one, "coverage", coverage_pack(t));
        if (bytes > 0)
            json_object_set_new(one, "Bps_at_bytes",
                                json_finite(uni->points ? bytes / curve_time(uni, bytes) : NAN));
        json_array_append_new(out, one);
    }
    return out;
}

/* One size: what it takes, and beside it the reference. */
static json_t *view_size(const struct reference *r, const struct collective *c, const int *ids,
                         double bytes)
{
    double sec = curve_time(&c->curve, bytes), factor = op_bus_factor(c->op, c->shape.ranks);
    struct cost want;
    char words[80];

    reference_of_curve(r, c, ids, bytes, &want);
    bool known = isfinite(want.sec);
    reference_words(r, &want, words);
    return json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes", bytes, "seconds",
                     json_finite(sec), "busbw_Bps", json_finite(bytes * factor / sec),
                     "expected_seconds", json_finite(want.sec), "expected_low_seconds",
                     json_finite(want.lo), "expected_high_seconds", json_finite(want.hi),
                     "of_expected", json_finite(reference_share(&want, sec)), "expected_from",
                     known ? json_string(words) : json_null(), "expected_source",
                     known ? json_string(want.source) : json_null());
}

static json_t *view_collective(const struct reference *r, const struct collective *c, double bytes)
{
    json_t *sizes = json_array();
    int *ids = shape_group(&r->measured->topo, &c->shape), n = bytes > 0 ? 1 : c->curve.points;

    for (int i = 0; i < n; i++)
        json_array_append_new(sizes,
                              view_size(r, c, ids, bytes > 0 ? bytes : c->curve.point[i].bytes));
    free(ids);
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:o}", "op", op_name(c->op), "ranks",
                     c->shape.ranks, "domains", c->shape.domains, "per_domain", c->shape.per_domain,
                     "racks", c->shape.racks, "basis", basis_name[c->basis], "sizes", sizes);
}

json_t *matrix_view_collectives(const struct matrix *m, double bytes)
{
    json_t *out = json_array();
    struct reference r;

    reference_open(&r, m);
    for (int i = 0; i < m->collectives; i++)
        if (m->collective[i].curve.points)
            json_array_append_new(out, view_collective(&r, &m->collective[i], bytes));
    reference_free(&r);
    return out;
}

json_t *matrix_view_findings(const struct matrix *m)
{
    json_t *parts = json_array(), *findings = json_array();
    char part[256];

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        json_t *one = json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:i, s:s}", "what",
                                matrix_part(m, e, part), "part", part_name[e->part], "side",
                                side_name[e->side], "a", e->a, "factor", e->factor, "alpha_add_s",
                                e->alpha_add, "evidence", e->evidence, "why", e->why ? e->why : "");
        if (e->wrong)
            json_object_set_new(one, "wrong", json_true());
        if (e->b >= 0)
            json_object_set_new(one, "b", json_integer(e->b));
        json_object_set_new(one, "tier",
                            e->tier >= 0 ? json_string(m->tier[e->tier].rule.name) : json_null());
        json_array_append_new(parts, one);
    }
    for (int i = 0; i < m->findings; i++)
        json_array_append_new(findings, json_pack("{s:s, s:s}", "kind", m->finding[i].kind, "text",
                                                  m->finding[i].text));
    return json_pack("{s:o, s:o}", "exceptions", parts, "findings", findings);
}

static void view_points(json_t *out, const char *what, const char *which, const struct curve *c)
{
    for (int i = 0; i < c->points; i++) {
        const struct curve_point *p = &c->point[i];
        json_array_append_new(out, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:i}", "what", what,
                                             "which", which, "bytes", p->bytes, "seconds", p->sec,
                                             "low_seconds", p->lo, "high_seconds", p->hi, "samples",
                                             p->n));
    }
}

json_t *matrix_view_points(const struct matrix *m)
{
    json_t *out = json_array();
    char shape[48];

    for (int i = 0; i < m->tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            view_points(out, m->tier[i].rule.name, direction_name[d], &m->tier[i].curve[d]);
    for (int i = 0; i < m->collectives; i++)
        view_points(out, op_name(m->collective[i].op), shape_text(shape, &m->collective[i].shape),
                    &m->collective[i].curve);
    return out;
}

json_t *matrix_view(const struct matrix *m, double bytes)
{
    json_t *levels = json_object();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (m->topo.group[l].count)
            json_object_set_new(levels, level_name[l], json_integer(m->topo.group[l].count));
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o}", "endpoints", m->topo.endpoints, "transport",
                     m->transport, "levels", levels, "tiers", matrix_view_tiers(m, bytes),
                     "collectives", matrix_view_collectives(m, bytes), "faults",
                     matrix_view_findings(m));
}
