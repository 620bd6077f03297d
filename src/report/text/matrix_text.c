/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "matrix/matrix.h"
#include "matrix/reference.h"
#include "report/text/report.h"
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

/* Print "mnnvl: pairs of one domain; rail: pairs of one leaf; fabric: all others", and what shares are of. */
static void tiers_legend(FILE *out, const struct matrix *m)
{
    char *line = mem_strdup("");
    bool loaded = false, rated = false;

    for (int i = 0; i < m->tiers; i++) {
        const struct tier *x = &m->tier[i];
        int l = 0;
        while (l < LEVEL_COUNT && !(x->rule.same & 1u << l))
            l++;
        if (x->pairs)
            line = mem_append(line, "%s%s: %s%s", *line ? "; " : "", x->rule.name,
                              l < LEVEL_COUNT ? "pairs of one " : "all others",
                              l < LEVEL_COUNT ? level_name[l] : "");
        loaded |= isfinite(x->loaded);
        rated |= x->peak_Bps > 0;
    }
    if (loaded)
        line = mem_append(line, "; under load: beside other pairs, as a share of that alone");
    if (rated)
        line = mem_append(line, "; of data sheet: one way, as a share of the rated bandwidth");
    table_wrap(out, 2, "%s", line);
    free(line);
}

/* True if the tier is in the text: this machine has pairs of it, or it is published. */
static bool in_text(const struct tier *x)
{
    return x->pairs || x->basis != BASIS_MEASURED;
}

json_t *matrix_report_tiers(FILE *out, const struct matrix *m, double bytes)
{
    char text[UNITS_TEXT], size[UNITS_TEXT + 8];
    const bool sized = bytes > 0;
    bool published = false;

    for (int i = 0; i < m->tiers; i++)
        published |= m->tier[i].source || m->tier[i].basis != BASIS_MEASURED;
    const struct table_column columns[] = {
        {"name", "tier", "text"},
        {"pairs", "pairs", "count"},
        {"latency_s", "latency", "seconds"},
        {"latency_spread", sized ? NULL : "latency spread", "100*%.1f %%"},
        {"Bps", "one way", "rate"},
        {"both_Bps", "both ways", "rate"},
        {sized ? "Bps_at_bytes" : NULL, sized ? size : NULL, "rate"},
        {"spread", sized ? NULL : "bandwidth spread", "100*%.1f %%"},
        {"loaded", "under load", "100*%.0f %%"},
        {"peak_Bps", NULL, "rate"},
        {NULL, "of data sheet", "100*%.0f %%"},
        {"nic", NULL, "flag"},
        {"basis", NULL, "text"},
        {"coverage", NULL, "json"},
        {NULL, published ? "source" : NULL, "text"},
        {0}};
    struct table table;

    snprintf(size, sizeof(size), "at %s", units_bytes_text(text, bytes));
    table_open(&table, columns);
    for (int i = 0; i < m->tiers; i++) {
        const struct tier *x = &m->tier[i];
        const struct curve *one = &x->curve[DIR_ONEWAY];
        double uni = matrix_rate(m, i, DIR_UNI), peak = if_positive(x->peak_Bps);
        if (out && !in_text(x))
            continue;
        table_add(&table, x->rule.name, tier_pairs(x), one->points ? one->alpha : NAN,
                  if_positive(x->latency_spread), uni,
                  x->curve[DIR_BI].points ? matrix_rate(m, i, DIR_BI) : NAN,
                  at_size(&x->curve[DIR_UNI], bytes), out && !x->pairs ? NAN : x->spread, x->loaded,
                  peak, uni / peak, x->nic, basis_name[x->basis],
                  x->possible > 0 ? coverage_pack(x) : NULL,
                  x->source ? x->source : basis_name[x->basis]);
    }
    if (!out)
        return table_rows(&table);
    fputs(published ? "Transfers between two endpoints\n"
                    : "Transfers between two endpoints, medians of healthy pairs\n",
          out);
    table_print(out, &table, 0);
    table_free(&table);
    tiers_legend(out, m);
    return NULL;
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
        json_object_set_new(one, "effect", json_string(matrix_effect(e, false, effect)));
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

/* True for the largest group of the four collectives of sharded training. */
static bool is_brief(const struct matrix *m, const struct collective *c)
{
    bool wanted = op_table[c->op].share != OP_WHOLE && !op_is_rooted(c->op);

    for (int i = 0; wanted && i < m->collectives; i++)
        wanted = m->collective[i].op != c->op || !m->collective[i].curve.points ||
                 m->collective[i].shape.ranks <= c->shape.ranks;
    return wanted;
}

/* --- collectives as text: a table per shape and series of sizes --- */

enum { SIZES = 3 }; /* 1/256, 1/16 and all of the largest */

/* Facts of all tables for the lines below the last. */
struct legend {
    char widest[80]; /* reference with the widest interval of all cells; "": none */
    double error;
    bool several; /* references have other intervals */
    bool sizes;   /* a table has several */
    bool fitted;  /* a curve is of a healthy group */
    bool unknown; /* a row without a reference */
};

/* Table of the collectives with one shape and equal sizes. */
struct collectives {
    FILE *out;
    const struct reference *r;
    const struct collective *first;
    double bytes; /* the only size; 0: those of `first` */
    double size[SIZES];
    int sizes;
    struct table table;
    struct legend *legend;
    char *slow; /* lines: what a slow part makes of a collective */
};

static double largest(const struct collective *c)
{
    return c->curve.point[c->curve.points - 1].bytes;
}

static bool same_block(const struct collectives *b, const struct collective *c)
{
    char x[48], y[48];

    return !strcmp(shape_text(x, &b->first->shape), shape_text(y, &c->shape)) &&
           (b->bytes > 0 || fabs(largest(c) / largest(b->first) - 1) < 0.01);
}

/* The block's size as this collective has it: sizes differ by the rounding to ranks. */
static double size_of(const struct collectives *b, const struct collective *c, int k)
{
    return b->bytes > 0 ? b->bytes : largest(c) * b->size[k] / largest(b->first);
}

static void note_reference(struct legend *l, const struct reference *r, const struct cost *want)
{
    double error = want->hi / want->sec - 1;

    l->several |= *l->widest && fabs(error - l->error) >= 0.005;
    if (!*l->widest || error > l->error) {
        reference_words(r, want, l->widest);
        l->error = error;
    }
}

/* Note what a slow part makes of the collective, whose curve is of a healthy group. */
static void note_slow(struct collectives *b, const struct collective *c, const int *ids)
{
    const struct matrix *m = b->r->measured;
    double factor = op_bus_factor(c->op, c->shape.ranks);
    char part[MATRIX_PART], rate[UNITS_TEXT], *line = mem_strdup("");
    int slow = -1;

    for (int k = 0; k < b->sizes; k++) {
        double s = size_of(b, c, k);
        struct cost now = {.exception = -1};
        matrix_collective(m, c->op, ids, c->shape.ranks, s, &now);
        /* smaller differences are rounding */
        if (now.exception >= 0 && now.sec > 1.01 * curve_time(&c->curve, s))
            slow = now.exception;
        line = mem_append(line, "%s%s", k ? ", " : "",
                          isinf(now.sec) ? "fails" : units_rate_text(rate, s * factor / now.sec));
    }
    if (slow >= 0)
        b->slow = mem_append(b->slow ? b->slow : mem_strdup(""), "%s with %s: %s\n", op_name(c->op),
                             matrix_part(m, &m->exception[slow], part), line);
    free(line);
}

static void add_collective(struct collectives *b, const struct collective *c)
{
    int *ids = shape_group(&b->r->measured->topo, &c->shape);
    double factor = op_bus_factor(c->op, c->shape.ranks), least = NAN, rate[SIZES];

    for (int k = 0; k < SIZES; k++) {
        double s = size_of(b, c, k < b->sizes ? k : 0), sec = curve_time(&c->curve, s);
        struct cost want;
        rate[k] = s * factor / sec;
        if (k >= b->sizes)
            continue;
        reference_of_curve(b->r, c, ids, &s, 1, &want);
        double share = reference_curve_share(c, &want, sec);
        if (!isnan(share))
            note_reference(b->legend, b->r, &want);
        least = fmin(least, share);
    }
    if (ids && c->basis == BASIS_FITTED && b->r->measured->exceptions) {
        b->legend->fitted = true;
        note_slow(b, c, ids);
    }
    b->legend->unknown |= isnan(least);
    b->legend->sizes |= b->sizes > 1;
    table_add(&b->table, op_name(c->op), rate[0], rate[1], rate[2],
              curve_time(&c->curve, size_of(b, c, 0)), least, basis_name[c->basis]);
    free(ids);
}

static void print_lines(FILE *out, char *text)
{
    for (char *save = NULL, *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        table_wrap(out, 2, "%s", line);
}

static void end_block(struct collectives *b)
{
    char shape[48];

    fprintf(b->out, "Bus bandwidth of collectives on %s\n", shape_text(shape, &b->first->shape));
    table_print(b->out, &b->table, 0);
    print_lines(b->out, b->slow);
    free(b->slow);
    table_free(&b->table);
}

static void print_legend(FILE *out, const struct legend *l)
{
    char *line =
        mem_printf("of expected: %sby %s%s", l->sizes ? "the lowest of these sizes; expected " : "",
                   l->widest, l->several ? " or better" : "");

    if (*l->widest)
        table_wrap(out, 2, "%s", line);
    if (l->unknown)
        fprintf(out, "of expected%s: not known, because nothing is published for these groups\n",
                *l->widest ? ", -" : "");
    if (l->fitted)
        fputs("fitted: the group without its slow part\n", out);
    free(line);
}

/* Print the table of `first` and of all like it; done: those in a table. */
static void collectives_block(FILE *out, const struct reference *r, const struct collective *first,
                              double bytes, bool brief, bool *done, struct legend *legend)
{
    const struct matrix *m = r->measured;
    struct collectives b = {.out = out, .r = r, .first = first, .bytes = bytes, .legend = legend};
    char head[SIZES][UNITS_TEXT];

    for (double s = bytes > 0 ? bytes : largest(first) / 256;
         b.sizes < SIZES && s <= (bytes > 0 ? bytes : largest(first)) * 1.0001; s *= 16)
        if (bytes > 0 || s >= first->curve.point[0].bytes)
            b.size[b.sizes++] = s;
    for (int k = 0; k < b.sizes; k++)
        units_bytes_text(head[k], size_of(&b, first, k));
    const struct table_column columns[] = {{NULL, "collective", "text"},
                                           {NULL, head[0], "rate"},
                                           {NULL, b.sizes > 1 ? head[1] : NULL, "rate"},
                                           {NULL, b.sizes > 2 ? head[2] : NULL, "rate"},
                                           {NULL, b.sizes == 1 ? "time" : NULL, "seconds"},
                                           {NULL, "of expected", "100*%.0f %%"},
                                           {NULL, "basis", "text"},
                                           {0}};

    table_open(&b.table, columns);
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (done[i] || !c->curve.points || (brief && !is_brief(m, c)) || !same_block(&b, c))
            continue;
        done[i] = true;
        add_collective(&b, c);
    }
    end_block(&b);
}

static void collectives_text(FILE *out, const struct reference *r, double bytes, bool brief)
{
    const struct matrix *m = r->measured;
    bool *done = mem_calloc((size_t)m->collectives + 1, sizeof(*done)), any = false;
    struct legend legend = {.error = 0};

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (done[i] || !c->curve.points || (brief && !is_brief(m, c)))
            continue;
        fputs(any ? "\n" : "", out);
        collectives_block(out, r, c, bytes, brief, done, &legend);
        any = true;
    }
    print_legend(out, &legend);
    if (!m->collectives)
        fputs("no collective was measured\n", out);
    free(done);
}

json_t *matrix_report_collectives(FILE *out, const struct matrix *m, double bytes, bool brief)
{
    json_t *list = out ? NULL : json_array();
    struct reference r;

    reference_open(&r, m);
    for (int i = 0; !out && i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->curve.points && (!brief || is_brief(m, c)))
            json_array_append_new(list, view_collective(&r, c, bytes));
    }
    if (out)
        collectives_text(out, &r, bytes, brief);
    reference_free(&r);
    return list;
}

/* --- parts and findings --- */

static void count_rest(FILE *out, int shown, int all, const char *section)
{
    if (all > shown)
        fprintf(out, "... and %d more: railgauge show MATRIX %s\n", all - shown, section);
}

static bool is_busy(const struct matrix *m)
{
    bool busy = false;

    for (int i = 0; i < m->findings; i++)
        busy |= !strcmp(m->finding[i].kind, "busy");
    return busy;
}

/* " among the 4.5 % of all pairs that were measured, but the machine was busy"; "": all were
 * measured.  The caller frees. */
static char *among(const struct matrix *m)
{
    double measured = 0, possible = 0;
    char share[UNITS_TEXT];

    for (int i = 0; i < m->tiers; i++) {
        measured += m->tier[i].measured;
        possible += m->tier[i].possible;
    }
    char *text = measured < 0.999 * possible
                     ? mem_printf(" among the %s of all pairs that were measured",
                                  units_share_text(share, measured / possible))
                     : mem_strdup("");
    return mem_append(text, "%s", is_busy(m) ? ", but the machine was busy" : "");
}

/* Print "demo: 576 GPUs on 144 hosts, simulated gb200-nvl72; declared: 8 racks, 8 domains", and what
 * MPI used. */
static void print_head(FILE *out, const struct matrix *m, const char *name)
{
    static const enum level shown[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_SPINE};
    static const char *const many[] = {"racks", "domains", "leaf switches", "spines"},
                             *const one[] = {"rack", "domain", "leaf switch", "spine"};
    const struct topo *t = &m->topo;
    const char *device = t->endpoint[0].kind == ENDPOINT_GPU ? "GPU" : "rank";
    bool sim = !strcmp(m->transport, "sim");
    char *line = mem_printf("%s%s%d %s%s on %d host%s, %s%s%s", name, *name ? ": " : "",
                            t->endpoints, device, units_s(t->endpoints), t->hosts,
                            units_s(t->hosts), sim ? "simulated" : "over ", sim ? "" : m->transport,
                            sim && !m->fabric ? " machine" : "");

    if (m->fabric)
        line = mem_append(line, sim ? " %s" : " (%s)", m->fabric);
    for (int measured = 0; measured < 2; measured++)
        for (size_t i = 0, n = 0; i < sizeof(shown) / sizeof(*shown); i++) {
            const struct endpoint *e = &t->endpoint[0];
            int count = t->group[shown[i]].count;
            if (e->place.at[shown[i]] < 0 ||
                (e->source[shown[i]] == SOURCE_MEASURED) != (measured == 1))
                continue;
            line = mem_append(line, "%s%d %s",
                              n++        ? ", "
                              : measured ? "; found by measuring: "
                                         : "; declared: ",
                              count, units_plural(count, one[i], many[i]));
        }
    table_wrap(out, 2, "%s", line);
    free(line);
    if (t->mpi)
        table_wrap(out, 2, "MPI: %s", json_string_value(json_object_get(t->mpi, "text")));
}

void matrix_report_parts(FILE *out, const struct matrix *m, int most, const char *note,
                         const char *name)
{
    struct parts parts;
    struct err err;

    /* The cost would take predictions.  Without jobs/repairs.json the parts lack a next step, but
     * are still printed. */
    parts_list(&parts, &(struct parts_input){.m = m, .no_cost = true}, &err);
    char *more = parts.rows ? mem_strdup("") : among(m);
    more = mem_append(more, "%s", note);
    parts_text(out, &parts, most, most > 0, more);
    count_rest(out, most ? most : parts.rows, parts.rows, "parts");
    if (most && parts.rows)
        fprintf(out, "  next step   railgauge show %s parts\n", name);
    fputc('\n', out);
    print_head(out, m, name);
    free(more);
    parts_free(&parts);
}

/* True if another finding already summarises this one with others. */
static bool said_at_once(const struct matrix *m, const struct finding *f)
{
    return is_busy(m) && !strcmp(f->kind, "unstable");
}

json_t *matrix_report_findings(FILE *out, const struct matrix *m, int most)
{
    if (!out)
        return view_findings(m);
    int findings = 0;
    char *seen = matrix_seen_text(m);

    for (int i = -1; i < m->findings && (!most || findings < most); i++) {
        const struct finding *f = i < 0 ? NULL : &m->finding[i];
        char *line = f      ? mem_printf("%s: %s", f->kind, f->text)
                     : seen ? mem_printf("checked: %s", seen)
                            : NULL;
        if (line && !(f && most && said_at_once(m, f)))
            table_wrap(out, 2, "%s", line);
        findings += f && !(most && said_at_once(m, f));
        free(line);
    }
    free(seen);
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
    matrix_report_parts(out, m, 0, "", "");
    fputc('\n', out);
    matrix_report_tiers(out, m, bytes);
    fputc('\n', out);
    return matrix_report_findings(out, m, 0);
}
