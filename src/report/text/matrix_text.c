/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/matrix_text.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "matrix/matrix.h"
#include "matrix/reference.h"
#include "verdict/parts.h"

/* Print the table and return NULL, or return its rows as JSON. */
static json_t *end(struct table *t, FILE *out)
{
    if (!out)
        return table_rows(t);
    table_print(out, t, 0);
    table_free(t);
    return NULL;
}

static double at_size(const struct curve *c, double bytes)
{
    return c->points ? bytes / curve_time(c, bytes) : NAN;
}

static double if_positive(double x)
{
    return x > 0 ? x : NAN;
}

json_t *matrix_report_tiers(FILE *out, const struct matrix *m, double bytes)
{
    char text[UNITS_TEXT], size[UNITS_TEXT + 8];
    const bool sized = bytes > 0;
    const struct table_column columns[] = {
        {"name", "tier", "text"},
        {"pairs", "pairs", "count"},
        {"latency_s", "latency", "seconds"},
        {"latency_spread", "spread", "100*%.1f %%"},
        {"Bps", "one way", "rate"},
        {"both_Bps", "both ways", "rate"},
        {sized ? "Bps_at_bytes" : NULL, sized ? size : NULL, "rate"},
        {"spread", "spread", "100*%.1f %%"},
        {"loaded", "loaded", "100*%.1f %%"},
        {"peak_Bps", NULL, "rate"},
        {NULL, "of peak", "100*%.1f %%"},
        {"nic", NULL, "flag"},
        {"basis", NULL, "text"},
        {"coverage", NULL, "json"},
        {NULL, "source", "text"},
        {0}};
    struct table table;

    snprintf(size, sizeof(size), "at %s", units_bytes_text(text, bytes));
    table_open(&table, columns);
    for (int i = 0; i < m->tiers; i++) {
        const struct tier *x = &m->tier[i];
        const struct curve *one = &x->curve[DIR_ONEWAY];
        double uni = matrix_rate(m, i, DIR_UNI), peak = if_positive(x->peak_Bps);
        if (out && !x->pairs && x->basis == BASIS_MEASURED)
            continue; /* this machine has no pair of this kind */
        table_add(&table, x->rule.name, tier_pairs(x), one->points ? one->alpha : NAN,
                  if_positive(x->latency_spread), uni,
                  x->curve[DIR_BI].points ? matrix_rate(m, i, DIR_BI) : NAN,
                  at_size(&x->curve[DIR_UNI], bytes), out && !x->pairs ? NAN : x->spread, x->loaded,
                  peak, uni / peak, x->nic, basis_name[x->basis],
                  x->possible > 0 ? coverage_pack(x) : NULL,
                  x->source ? x->source : basis_name[x->basis]);
    }
    return end(&table, out);
}

/* Add one size: its cost, and the reference. */
static json_t *view_size(const struct reference *r, const struct collective *c, double bytes,
                         const struct cost *want)
{
    double sec = curve_time(&c->curve, bytes), factor = op_bus_factor(c->op, c->shape.ranks);
    bool known = isfinite(want->sec);
    char words[80];

    reference_words(r, want, words);
    return json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes", bytes, "seconds",
                     json_finite(sec), "busbw_Bps", json_finite(bytes * factor / sec),
                     "expected_seconds", json_finite(want->sec), "expected_low_seconds",
                     json_finite(want->lo), "expected_high_seconds", json_finite(want->hi),
                     "of_expected", json_finite(reference_curve_share(c, want, sec)),
                     "expected_from", known ? json_string(words) : json_null(), "expected_source",
                     known ? json_string(want->source) : json_null());
}

static json_t *view_collective(const struct reference *r, const struct collective *c, double bytes)
{
    json_t *sizes = json_array();
    int *ids = shape_group(&r->measured->topo, &c->shape), n = bytes > 0 ? 1 : c->curve.points;
    struct cost *want = mem_calloc((size_t)n + 1, sizeof(*want));
    double *size = mem_calloc((size_t)n + 1, sizeof(*size));

    for (int i = 0; i < n; i++)
        size[i] = bytes > 0 ? bytes : c->curve.point[i].bytes;
    reference_of_curve(r, c, ids, size, n, want);
    for (int i = 0; i < n; i++)
        json_array_append_new(sizes, view_size(r, c, size[i], &want[i]));
    free(size);
    free(want);
    free(ids);
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:o}", "op", op_name(c->op), "ranks",
                     c->shape.ranks, "domains", c->shape.domains, "per_domain", c->shape.per_domain,
                     "racks", c->shape.racks, "basis", basis_name[c->basis], "sizes", sizes);
}

static json_t *view_findings(const struct matrix *m)
{
    json_t *parts = json_array(), *findings = json_array();
    char part[MATRIX_PART], effect[MATRIX_EFFECT];

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        if (e->declared)
            continue;
        json_t *one = json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:i, s:s}", "what",
                                matrix_part(m, e, part), "part", part_name[e->part], "side",
                                side_name[e->side], "a", e->a, "factor", e->factor, "alpha_add_s",
                                e->alpha_add, "evidence", e->evidence, "why", e->why ? e->why : "");
        if (e->wrong)
            json_object_set_new(one, "wrong", json_true());
        json_object_set_new(one, "state", json_string(part_state_name[matrix_state(e)]));
        json_object_set_new(one, "effect", json_string(matrix_effect(e, effect)));
        if (e->depth > 0)
            json_object_set_new(one, "depth", json_real(e->depth));
        if (e->share > 0)
            json_object_set_new(one, "share", json_real(e->share));
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

/* "fitted; 12.0 ms with NIC mlx5_1 of r00n04 (GPU 1)": the curve is of a healthy group; the part
 * gives the time with it, "fails" if it is dead or gives wrong data. */
static char *basis_words(const struct matrix *m, const struct collective *c, const int *ids,
                         double bytes)
{
    char part[MATRIX_PART], sec[UNITS_TEXT];
    struct cost now = {.exception = -1};

    if (ids && m->exceptions && c->basis == BASIS_FITTED)
        matrix_collective(m, c->op, ids, c->shape.ranks, bytes, &now);
    /* smaller differences are rounding */
    bool slower = now.sec > 1.01 * curve_time(&c->curve, bytes);
    return now.exception < 0 || !slower
               ? mem_strdup(basis_name[c->basis])
               : mem_printf("%s; %s with %s", basis_name[c->basis],
                            isinf(now.sec) ? "fails" : units_seconds_text(sec, now.sec),
                            matrix_part(m, &m->exception[now.exception], part));
}

static void collective_rows(struct table *table, const struct reference *r,
                            const struct collective *c, double bytes)
{
    const struct curve_point *last = &c->curve.point[c->curve.points - 1];
    double from = bytes > 0 ? bytes : last->bytes / 256, to = bytes > 0 ? bytes : last->bytes;
    double factor = op_bus_factor(c->op, c->shape.ranks);
    int *ids = shape_group(&r->measured->topo, &c->shape);
    char shape[48], words[80];
    struct cost want;

    bool first = true;
    for (double s = from; s <= to * 1.0001; s *= 16) {
        double sec = curve_time(&c->curve, s);
        if (s < c->curve.point[0].bytes && bytes <= 0)
            continue;
        reference_of_curve(r, c, ids, &s, 1, &want);
        double share = reference_curve_share(c, &want, sec);
        char *basis = basis_words(r->measured, c, ids, s);
        table_add(table, first ? op_name(c->op) : "", first ? shape_text(shape, &c->shape) : "", s,
                  sec, s * factor / sec, 100 * share,
                  isnan(share) ? NULL : reference_words(r, &want, words),
                  first || c->basis == BASIS_FITTED ? basis : "");
        free(basis);
        first = false;
    }
    free(ids);
}

/* True for the largest group of the four collectives of sharded training. */
static bool is_brief(const struct matrix *m, const struct collective *c)
{
    bool wanted = op_table[c->op].share != OP_WHOLE && !op_is_rooted(c->op);

    for (int i = 0; wanted && i < m->collectives; i++)
        wanted = m->collective[i].op != c->op || !m->collective[i].curve.points ||
                 m->collective[i].shape.ranks <= c->shape.ranks;
    return wanted;
}

json_t *matrix_report_collectives(FILE *out, const struct matrix *m, double bytes, bool brief)
{
    static const struct table_column columns[] = {
        {NULL, "collective", "text"},  {NULL, "group", "text"},  {NULL, "size", "bytes"},
        {NULL, "time", "seconds"},     {NULL, "bus", "rate"},    {NULL, "of expected", "%.1f %%"},
        {NULL, "expected by", "text"}, {NULL, "source", "text"}, {0}};
    json_t *list = out ? NULL : json_array();
    struct table table;
    struct reference r;

    reference_open(&r, m);
    table_open(&table, columns);
    for (const struct collective *c = m->collective;
         m->collectives && c < m->collective + m->collectives; c++) {
        if (!c->curve.points || (brief && !is_brief(m, c)))
            continue;
        if (out)
            collective_rows(&table, &r, c, bytes);
        else
            json_array_append_new(list, view_collective(&r, c, bytes));
    }
    if (out)
        table_print(out, &table, 0);
    if (out && !m->collectives)
        fputs("no collective was measured\n", out);
    table_free(&table);
    reference_free(&r);
    return list;
}

static void count_rest(FILE *out, int shown, int all, const char *section)
{
    if (all > shown)
        fprintf(out, "... and %d more: railgauge show MATRIX %s\n", all - shown, section);
}

/* Print the parts like show parts, without their cost, which would take predictions. */
static void text_exceptions(FILE *out, const struct matrix *m, int most)
{
    struct parts parts;
    struct err err;

    /* Without jobs/repairs.json the parts lack a next step, but are still printed. */
    parts_list(&parts, &(struct parts_input){.m = m, .no_cost = true}, &err);
    parts_report(out, &parts, most, most);
    count_rest(out, most ? most : parts.rows, parts.rows, "parts");
    parts_free(&parts);
}

/* State how many pairs were measured. */
static void no_part(FILE *out, const struct matrix *m)
{
    double measured = 0, possible = 0;
    char share[UNITS_TEXT];

    for (int i = 0; i < m->tiers; i++) {
        measured += m->tier[i].measured;
        possible += m->tier[i].possible;
    }
    if (measured < 0.999 * possible)
        fprintf(out, "no slow part among the %s of all pairs that were measured\n",
                units_share_text(share, measured / possible));
    else
        fputs("no slow part: none stands out from its tier\n", out);
}

/* True if another finding already summarises this one with others. */
static bool said_at_once(const struct matrix *m, const struct finding *f)
{
    bool busy = false;

    for (int i = 0; i < m->findings; i++)
        busy |= !strcmp(m->finding[i].kind, "busy");
    return busy && !strcmp(f->kind, "unstable");
}

json_t *matrix_report_findings(FILE *out, const struct matrix *m, int most)
{
    if (!out)
        return view_findings(m);
    int faults = matrix_faults(m);
    int findings = 0;
    char *seen = matrix_seen_text(m);

    if (faults)
        text_exceptions(out, m, most);
    else
        no_part(out, m);
    if (seen)
        fprintf(out, "seen: %s\n", seen);
    free(seen);
    for (int i = 0; i < m->findings && (!most || findings < most); i++)
        if (!most || !said_at_once(m, &m->finding[i])) {
            char *line = mem_printf("%s: %s", m->finding[i].kind, m->finding[i].text);
            fputs(findings++ ? "" : "\n", out);
            table_wrap(out, line, 4);
            free(line);
        }
    count_rest(out, findings, m->findings, "findings");
    return NULL;
}

static void point_rows(struct table *table, const char *what, const char *which,
                       const struct curve *c)
{
    for (const struct curve_point *p = c->point; c->points && p < c->point + c->points; p++)
        table_add(table, what, which, p->bytes, p->sec, p->lo, p->hi, p->n);
}

json_t *matrix_report_points(FILE *out, const struct matrix *m)
{
    static const struct table_column columns[] = {
        {"what", "what", "text"},           {"which", "which", "text"},
        {"bytes", "bytes", "%.0f"},         {"seconds", "median", "seconds"},
        {"low_seconds", "from", "seconds"}, {"high_seconds", "to", "seconds"},
        {"samples", "samples", "count"},    {0}};
    struct table table;
    char shape[48];

    table_open(&table, columns);
    for (int i = 0; i < m->tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            point_rows(&table, m->tier[i].rule.name, direction_name[d], &m->tier[i].curve[d]);
    for (int i = 0; i < m->collectives; i++)
        point_rows(&table, op_name(m->collective[i].op), shape_text(shape, &m->collective[i].shape),
                   &m->collective[i].curve);
    return end(&table, out);
}

static void text_head(FILE *out, const struct matrix *m)
{
    const struct topo *t = &m->topo;

    fprintf(out, "%d endpoint%s on %d host%s, transport %s%s%s", t->endpoints,
            units_s(t->endpoints), t->hosts, units_s(t->hosts), m->transport,
            m->fabric ? ", fabric " : "", m->fabric ? m->fabric : "");
    for (int l = LEVEL_DOMAIN; l < LEVEL_COUNT; l++)
        if (t->group[l].count)
            fprintf(out, ", %d %s (%s)", t->group[l].count,
                    units_plural(t->group[l].count, level_name[l], level_many[l]),
                    source_name[t->endpoint[0].source[l]]);
    fputs("\n\n", out);
}

static json_t *view(const struct matrix *m, double bytes)
{
    json_t *levels = json_object();

    for (int l = 0; l < LEVEL_COUNT; l++)
        if (m->topo.group[l].count)
            json_object_set_new(levels, level_name[l], json_integer(m->topo.group[l].count));
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o}", "endpoints", m->topo.endpoints, "transport",
                     m->transport, "levels", levels, "tiers", matrix_report_tiers(NULL, m, bytes),
                     "collectives", matrix_report_collectives(NULL, m, bytes, false), "faults",
                     view_findings(m));
}

json_t *matrix_report(FILE *out, const struct matrix *m, double bytes)
{
    if (!out)
        return view(m, bytes);
    text_head(out, m);
    matrix_report_tiers(out, m, bytes);
    fputc('\n', out);
    return matrix_report_findings(out, m, 0);
}
