/* SPDX-License-Identifier: BSD-3-Clause */
/* The price of a collective with its interval, its basis and words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/units.h"
#include "matrix/collective.h"

/* The pair model in one TCP fabric of known truth met a ring's time or missed it by up to a
 * quarter. */
static const double model_error = 0.25;

/* A100, H100 and B200: 8 ranks follow from 4 with a median error of 10 % and nine of ten within
 * 25 %, 4 from between 2 and 8 with 5 % and 15 % [aiconfigurator at 095f58a, nccl_perf]. */
static const double scaled_error = 0.25, between_error = 0.15;

/* ", 4 groups at once" where a curve was measured so. */
static char *beside_words(char buf[32], const struct collective *c)
{
    buf[0] = '\0';
    if (c->at_once > 1)
        snprintf(buf, 32, ", %d groups at once", c->at_once);
    return buf;
}

/* Name the curves that answer for a size, held or extrapolated. */
static void curves_words(struct cost *out, const struct collective_reading *r, double bytes)
{
    const struct collective *a = reading_answers(r), *b = r->found.above;
    char want[48], have[48], other[48], size[UNITS_TEXT], beside[32];
    const char *name = op_name(a->op), *basis = out->from > 0 ? "" : basis_name[a->basis];
    const char *gap = *basis ? " " : "";

    shape_text(want, &r->ways.shape);
    shape_text(have, &a->shape);
    units_bytes_text(size, bytes);
    if (r->found.same)
        snprintf(out->source, sizeof(out->source), "%s%s%s %s at %s%s", basis, gap, name, have,
                 size, beside_words(beside, a));
    else if (r->found.below && b)
        snprintf(out->source, sizeof(out->source), "%s%s%s at %s, %s between %s and %s", basis, gap,
                 name, size, want, have, shape_text(other, &b->shape));
    else
        snprintf(out->source, sizeof(out->source), "%s%s%s at %s, %s scaled from %s at equal busbw",
                 basis, gap, name, size, want, have);
}

/* ", without its slow part", or ", as measured: its schedule does not cross NIC ..." */
static void part_words(struct cost *out, const struct collective *c)
{
    size_t n = strlen(out->source);
    bool fitted = c->basis == BASIS_FITTED;

    if (fitted || (c->basis == BASIS_MEASURED && c->source))
        snprintf(out->source + n, sizeof(out->source) - n, ", %s",
                 fitted ? "without its slow part" : c->source);
}

/* Half-width of the interval around a published curve of the very shape, as a share: another site is not the one that
 * published.  0: measured here, or inside one domain. */
static double site_error(const struct collective_reading *r, double bytes)
{
    struct join own = {.op = r->join.op, .curves = 1, .base = log2(ways_time(&r->model, 0))};
    double error = 0;

    if (!r->found.same || r->found.same->basis != BASIS_PRESET || !r->found.nccl ||
        r->ways.shape.domains < 2)
        return 0;
    for (int k = 0; k < JOIN_KNOTS; k++)
        own.weight[k] = JOIN_SAME;
    join_at(&own, ways_time(&r->model, bytes), &error);
    return isfinite(error) ? error : 0;
}

/* Basis, interval and words of a size that the curves answer; out->sec is set. */
static void from_curves(struct cost *out, const struct collective_reading *r, double bytes)
{
    const struct collective *a = reading_answers(r);
    const struct curve_end *end = reading_beyond(r, bytes);
    double at = end ? end->bytes : bytes, lo, hi;
    double slopes = end == &r->last ? r->slopes : 1;
    double wide = 1 + (r->found.same                      ? 0
                       : r->found.below && r->found.above ? between_error
                                                          : scaled_error);

    curve_interval(&a->curve, at, &lo, &hi);
    double sec = curve_time(&a->curve, at), far = 1;
    if (end == &r->first && end && r->join.curves) {
        join_at(&r->join, ways_time(&r->model, bytes), &far);
        far++;
    } else {
        wide *= 1 + site_error(r, at);
        far = end ? 1 + curve_unsure(at, bytes, end->moving, slopes) : 1;
    }
    out->lo = out->sec * lo / sec / wide / far;
    out->hi = out->sec * hi / sec * wide * far;
    out->basis = end && a->basis == BASIS_MEASURED ? BASIS_FITTED : a->basis;
    out->from = end ? at : 0;
    out->exact = r->found.same && !end;
    curves_words(out, r, bytes);
    part_words(out, a);
}

/* ", extrapolated from 256 MiB measured" */
static void say_from(struct cost *out, const char *basis)
{
    size_t n = strlen(out->source);
    char size[UNITS_TEXT];

    if (out->from > 0)
        snprintf(out->source + n, sizeof(out->source) - n, ", extrapolated from %s %s",
                 units_bytes_text(size, out->from), basis);
}

static void say_floor(struct cost *out, int domains)
{
    char source[sizeof(out->source)];

    memcpy(source, out->source, sizeof(source));
    if (domains > 1)
        snprintf(out->source, sizeof(out->source), "little less than in %d domains: %.150s",
                 domains, source);
    else
        snprintf(out->source, sizeof(out->source), "no less than inside one domain: %.150s",
                 source);
}

/* --- software that is not modelled --- */

/* us: messages over EFA take 15, TCPX 29, TCP 50; InfiniBand and RoCE 5. */
static const double own_tuner = 10e-6;

/* Plugin of a network whose tuner is its own, by a name in what NCCL printed or in a variable; NULL: none of these. */
static const char *plugin_of(const char *text)
{
    static const struct {
        const char *part, *name;
    } known[] = {{"EFA", "EFA's tuner"},      {"AWS", "EFA's tuner"},  {"libfabric", "EFA's tuner"},
                 {"ofi", "EFA's tuner"},      {"gIB", "gIB's tuner"},  {"tcpx", "TCPX's tuner"},
                 {"FasTrak", "TCPX's tuner"}, {"ucx", "UCX's plugin"}, {"ucc", "UCC"}};

    for (size_t i = 0; text && i < sizeof(known) / sizeof(*known); i++)
        if (strcasestr(text, known[i].part))
            return known[i].name;
    return NULL;
}

/* Network's plugin by the campaign, the preset or the variables of a start. */
static const char *plugin(const struct matrix *m)
{
    static const char *const variable[] = {"NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN"};
    json_t *set = json_object_get(m->provenance, "environment");
    const char *name = plugin_of(json_string_value(json_object_get(m->provenance, "network")));

    for (size_t i = 0; !name && i < sizeof(variable) / sizeof(*variable); i++)
        name = plugin_of(json_string_value(json_object_get(set, variable[i])));
    return name;
}

static const char *foreign_of(const struct matrix *m, const struct ways_model *x,
                              const struct ways *w)
{
    const char *gpu = m->topo.endpoint[0].model;

    if (!x->nccl)
        return op_table[x->op].links == OP_RING && m->transport && !strcmp(m->transport, "mpi")
                   ? "MPI's choice"
                   : NULL;
    if (strstr(gpu, "Instinct") || strstr(gpu, "MI300"))
        return "RCCL";
    if (w->outer < 0)
        return NULL;
    const struct curve *ping = &m->tier[w->outer].curve[DIR_ONEWAY];
    const char *name = plugin(m);
    return name                                      ? name
           : ping->points && ping->alpha > own_tuner ? "the network plugin's tuner"
                                                     : NULL;
}

/* Note of software whose choices no curve shows at this size; what stands before gives way to the note. */
static void say_foreign(struct cost *out, const struct matrix *m,
                        const struct collective_reading *r)
{
    char note[80];

    if (out->basis != BASIS_MODELLED && !(out->from > 0))
        return;
    out->foreign = foreign_of(m, &r->model, &r->ways);
    if (!out->foreign)
        return;
    int n = snprintf(note, sizeof(note), "; %s is not modelled: priced as %s", out->foreign,
                     r->model.nccl ? "NCCL" : "a ring");
    size_t room = sizeof(out->source) - (size_t)n - 1, used = strlen(out->source);
    memcpy(out->source + (used < room ? used : room), note, (size_t)n + 1);
}

static bool refused(const struct matrix *m, enum op op, const int *ids, int n, struct cost *out)
{
    *out = (struct cost){.sec = NAN, .lo = NAN, .hi = NAN, .basis = BASIS_ASSUMED, .exception = -1};
    if (op_is_pair(op) || n < 1) {
        snprintf(out->source, sizeof(out->source), "%s of %d ranks is no collective", op_name(op),
                 n);
        return true;
    }
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= m->topo.endpoints) {
            snprintf(out->source, sizeof(out->source), "no endpoint %d", ids[i]);
            return true;
        }
    bool nccl = m->topo.endpoint[0].kind == ENDPOINT_GPU && strcmp(m->transport, "mpi") != 0;
    if (n > 1 && m->algorithm && (op_table[op].links != OP_RING || !nccl)) {
        snprintf(out->source, sizeof(out->source), "%s%s has no algorithms to choose from",
                 op_name(op), nccl ? "" : " without NCCL");
        return true;
    }
    if (n > 1)
        return false;
    *out = (struct cost){
        .basis = BASIS_ASSUMED, .source = "one rank: nothing to move", .exception = -1};
    return true;
}

/* "mnnvl inside and fabric between 8 domains" */
static void where_words(const struct matrix *m, const struct ways *w, char where[72])
{
    const char *in = w->inner >= 0 ? m->tier[w->inner].rule.name : NULL;
    const char *out = w->outer >= 0 ? m->tier[w->outer].rule.name : NULL;

    if (in && out)
        snprintf(where, 72, "%.16s inside and %.16s between %d domains", in, out, w->shape.domains);
    else
        snprintf(where, 72, "%.32s", in ? in : out ? out : "nothing");
}

/* algorithm_words(), and the curves that have a say. */
static void nccl_words(const struct collective_reading *r, enum op op, double bytes,
                       const char *where, char text[208])
{
    char words[ALGORITHM_WORDS], joined[48] = "";
    double sec;

    if (r->model.group.only && isnan(r->model.line[0].rate)) {
        snprintf(text, 208, "NCCL does not run this algorithm for %s on these GPUs", op_name(op));
        return;
    }

    if (r->join.curves)
        snprintf(joined, sizeof(joined), ", by %d curve%s of other shapes", r->join.curves,
                 r->join.curves > 1 ? "s" : "");
    algorithm_words(algorithm_fastest(r->model.line, r->model.lines, bytes, &sec), &r->model.group,
                    op, where, words);
    snprintf(text, 208, "modelled: %s%s", words, joined);
}

/* The formula and its numbers in words. */
static void model_words(const struct matrix *m, const struct collective_reading *r, enum op op,
                        double bytes, char text[208])
{
    const struct ways *w = &r->ways;
    char where[72];

    where_words(m, w, where);
    if (op_table[op].links == OP_RING && r->found.nccl)
        nccl_words(r, op, bytes, where, text);
    else if (op_table[op].links == OP_RING)
        snprintf(text, 208, "modelled: ring over %s, %d NICs a domain", where, w->shape.nics);
    else
        snprintf(text, 208, "modelled: %s over %s",
                 op_table[op].links == OP_NEXT ? "slowest hop" : "point to point", where);
}

static void healthy_cost(const struct collective_priced *q, const struct matrix *m, double bytes,
                         struct cost *out)
{
    const struct collective_reading *by;

    out->sec = collective_healthy(q, bytes, &by);
    if (reading_answers(by)) {
        from_curves(out, by, bytes);
        say_from(out, basis_name[reading_answers(by)->basis]);
    } else {
        double error = model_error;
        out->basis = BASIS_MODELLED;
        if (by->found.nccl)
            join_at(&by->join, ways_time(&by->model, bytes), &error);
        out->lo = out->sec / (1 + error);
        out->hi = out->sec * (1 + error);
        model_words(m, by, q->op, bytes, out->source);
    }
    if (by == &q->near)
        say_floor(out, by->ways.shape.domains);
    say_foreign(out, m, &q->own);
}

void collective_cost(const struct collective_quote *q, const struct matrix *m, double bytes,
                     struct cost *out)
{
    const struct collective_priced *of = collective_of(q);
    int exception = q->ways.slow[ways_schedule(&of->own.model, bytes)].exception;

    *out = (struct cost){.exception = -1, .basis = BASIS_ASSUMED};
    healthy_cost(of, m, bytes, out);
    if (exception < 0)
        return;
    double sec = collective_time(q, bytes), by = sec / out->sec;
    out->sec = sec;
    out->lo *= by;
    out->hi *= by;
    out->exception = exception;
    matrix_blame(m, out);
}

void matrix_collective_sizes(const struct matrix *m, enum op op, const int *ids, int n, int at_once,
                             const double *bytes, int sizes, bool healthy, struct cost *out)
{
    struct collective_quote q;
    struct cost refusal;
    struct ways w;

    bool none = refused(m, op, ids, n, &refusal);
    for (int i = 0; i < sizes; i++)
        out[i] = refusal;
    if (none || sizes < 1)
        return;
    ways_of(&w, m, ids, n, op, healthy);
    w.at_once = at_once;
    collective_resolve(&q, m, op, &w, healthy, NULL);
    for (int i = 0; i < sizes; i++)
        collective_cost(&q, m, bytes[i], &out[i]);
}
