/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "matrix/matrix_impl.h"

const char *const direction_name[DIR_COUNT] = {"oneway", "uni", "bi"};
const char *const basis_name[BASIS_COUNT] = {"measured", "fitted", "preset", "modelled", "assumed"};

void matrix_init(struct matrix *m)
{
    memset(m, 0, sizeof(*m));
    topo_init(&m->topo);
}

static void property_free(struct property *p)
{
    free(p->what);
    free(p->text);
}

void matrix_free(struct matrix *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->tiers; i++) {
        for (int d = 0; d < DIR_COUNT; d++)
            curve_free(&m->tier[i].curve[d]);
        free(m->tier[i].source);
    }
    for (int i = 0; i < m->collectives; i++) {
        curve_free(&m->collective[i].curve);
        free(m->collective[i].source);
        free(m->collective[i].data);
    }
    for (int i = 0; i < m->eps; i++) {
        free(m->ep[i].kernel);
        free(m->ep[i].source);
    }
    for (int i = 0; i < m->exceptions; i++)
        free(m->exception[i].why);
    for (int i = 0; i < m->findings; i++) {
        free(m->finding[i].kind);
        free(m->finding[i].text);
    }
    for (int i = 0; i < m->properties; i++)
        property_free(&m->property[i]);
    free(m->collective);
    free(m->ep);
    free(m->property);
    free(m->exception);
    free(m->finding);
    free(m->seen);
    free(m->transport);
    free(m->fabric);
    compute_free(&m->compute);
    topo_free(&m->topo);
    json_decref(m->provenance);
    memset(m, 0, sizeof(*m));
}

struct property *matrix_property(struct matrix *m, enum property_kind kind, int tier, double ratio)
{
    MEM_PUSH(m->property, m->properties) = (struct property){
        .kind = kind, .tier = tier, .level = -1, .ratio = ratio, .declared = NAN, .Bps = NAN};
    return &m->property[m->properties - 1];
}

void matrix_find(struct matrix *m, const char *kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    MEM_PUSH(m->finding, m->findings) = (struct finding){mem_strdup(kind), text};
}

const char *const seen_name[SEEN_COUNT] = {"endpoint", "nic",       "host",  "leaf",
                                           "uplinks",  "rack-pair", "cable", "pair"};

const struct seen_parts *matrix_seen(const struct matrix *m, enum seen kind)
{
    for (int i = 0; i < m->seens; i++)
        if (m->seen[i].kind == kind)
            return &m->seen[i];
    return NULL;
}

static const struct json_member seen_members[] = {
    JSON_ROW("part", WORD, struct seen_parts, kind, JSON_WORDS(seen_name), .what = "part"),
    JSON_ROW("parts", COUNT, struct seen_parts, parts),
    JSON_ROW("judged", COUNT, struct seen_parts, judged),
    {.key = NULL},
};

int seen_read(void *whole, json_t *value, const char *where, struct err *err)
{
    struct matrix *m = whole;

    MEM_PUSH(m->seen, m->seens) = (struct seen_parts){.parts = 0};
    struct seen_parts *s = &m->seen[m->seens - 1];
    if (json_read(value, where, seen_members, s, err) < 0)
        return -1;
    return s->judged > s->parts || s->parts < 1
               ? err_data(err, "%s: %g of %g were judged", where, s->judged, s->parts)
               : 0;
}

json_t *seen_write(const struct matrix *m, int i)
{
    return json_write(seen_members, &m->seen[i]);
}

char *matrix_seen_text(const struct matrix *m)
{
    static const char *const many[SEEN_COUNT] = {"devices",         "NICs",       "hosts", "leaves",
                                                 "leaves' uplinks", "rack pairs", NULL,    NULL};
    bool gpu = m->topo.endpoints && m->topo.endpoint[0].kind == ENDPOINT_GPU;
    bool racks = !m->topo.group[LEVEL_LEAF].count;
    char *text = NULL, pairs[UNITS_TEXT];

    for (int i = 0; i < m->seens; i++) {
        const struct seen_parts *s = &m->seen[i];
        const char *comma = text ? ", " : "", *what = many[s->kind];
        if (s->kind == SEEN_ENDPOINT && gpu)
            what = "GPUs";
        if (s->kind == SEEN_UPLINKS && racks)
            what = "racks' uplinks";
        if (what)
            text = mem_append(text, "%s%.0f of %.0f %s", comma, s->judged, s->parts, what);
        else if (s->kind == SEEN_CABLE)
            text = mem_append(text, "%scables: %.3g %% of %s pairs of NICs", comma,
                              100 * s->judged / s->parts, units_count_text(pairs, s->parts, 0));
    }
    return text;
}

char *matrix_endpoint(const struct matrix *m, int id, char buf[96])
{
    const struct endpoint *e = &m->topo.endpoint[id];

    snprintf(buf, 96, "%d (%.64s:%d)", id, m->topo.host[e->place.at[LEVEL_HOST]].name, e->local);
    return buf;
}

bool matrix_passes(const struct matrix *m, const struct exception *e, int src, int dst)
{
    int x = part_at(m, e->part, src), y = part_at(m, e->part, dst);
    bool tx = e->side != SIDE_RX, rx = e->side != SIDE_TX;

    if (part_is_two(e->part))
        return (tx && x == e->a && y == e->b) || (rx && x == e->b && y == e->a);
    if (e->part == PART_RACK_UPLINKS && (x < 0 || y < 0 || x == y))
        return false;
    return (tx && x == e->a) || (rx && y == e->a);
}

bool matrix_crosses(const struct matrix *m, const struct exception *e, int src, int dst, int tier)
{
    if (e->tier >= 0 ? e->tier != tier : !m->tier[tier].nic && e->factor > 0)
        return false;
    return matrix_passes(m, e, src, dst);
}

double matrix_factor(const struct matrix *m, int src, int dst, int *exception, double *alpha_add)
{
    double factor = 1, add = 0;
    int which = -1;
    int tier = m->exceptions ? matrix_tier(m, src, dst) : 0;

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        if (!matrix_crosses(m, e, src, dst, tier))
            continue;
        if (e->factor < factor || (which < 0 && e->alpha_add > 0)) {
            factor = fmin(factor, e->factor);
            which = i;
        }
        add = fmax(add, e->alpha_add);
    }
    if (exception)
        *exception = which;
    if (alpha_add)
        *alpha_add = add;
    return factor;
}

double matrix_rate(const struct matrix *m, int tier, enum direction dir)
{
    for (int d = dir; d != DIR_ONEWAY; d--)
        if (m->tier[tier].curve[d].points && m->tier[tier].curve[d].beta > 0)
            return 1 / m->tier[tier].curve[d].beta;
    const struct curve *c = &m->tier[tier].curve[DIR_ONEWAY];
    return c->points && c->beta > 0 ? 1 / c->beta : NAN;
}

static double stretched(double floor, double sec, double factor)
{
    double base = fmin(floor, sec);

    return base + (sec - base) / factor;
}

/* The part of a one-way time that does not grow with the size.  Where one size was all that was
 * measured it has no slope, and the bandwidth curve says what its bytes take. */
static double latency_floor(const struct tier *t)
{
    const struct curve *lat = &t->curve[DIR_ONEWAY], *bw = &t->curve[DIR_UNI];

    if (lat->points == 1 && bw->points)
        return fmax(0, lat->point[0].sec - lat->point[0].bytes * bw->beta);
    return curve_floor(lat);
}

/* A bandwidth curve below its first size says nothing about the message rate: constant bandwidth.
 */
static double bandwidth_time(const struct curve *c, double bytes)
{
    if (c->points && bytes < c->point[0].bytes)
        return c->point[0].sec * bytes / c->point[0].bytes;
    return curve_time(c, bytes);
}

static double pair_time(const struct tier *t, double bytes, double factor,
                        const struct curve **used)
{
    const struct curve *lat = &t->curve[DIR_ONEWAY], *bw = &t->curve[DIR_UNI];

    double bw_floor = curve_floor(bw), lat_floor = latency_floor(t);

    *used = lat->points ? lat : bw;
    if (!lat->points)
        return stretched(bw_floor, curve_time(bw, bytes), factor);
    if (!bw->points)
        return stretched(lat_floor, curve_time(lat, bytes), factor);
    double last = lat->point[lat->points - 1].bytes;
    double sec = stretched(lat_floor, curve_time(lat, fmin(bytes, last)), factor);
    double message = stretched(bw_floor, bandwidth_time(bw, bytes), factor);
    if (bytes > last) { /* the latency stays, the bandwidth part grows */
        *used = bw;
        sec += fmax(0, message - stretched(bw_floor, bandwidth_time(bw, last), factor));
    }
    if (message > sec)
        *used = bw;
    return fmax(sec, message);
}

double matrix_tier_time(const struct tier *t, double bytes, double factor)
{
    const struct curve *used;

    return factor > 0 ? pair_time(t, bytes, factor, &used) : INFINITY;
}

static struct tier_line line_of(double floor, double sec)
{
    double base = fmin(floor, sec);

    return (struct tier_line){base, sec - base};
}

void matrix_tier_lines(const struct tier *t, double bytes, struct tier_line line[2])
{
    const struct curve *lat = &t->curve[DIR_ONEWAY], *bw = &t->curve[DIR_UNI];

    if (!lat->points || !bw->points) {
        line[0] = line[1] = lat->points ? line_of(latency_floor(t), curve_time(lat, bytes))
                                        : line_of(curve_floor(bw), curve_time(bw, bytes));
        return;
    }
    double last = lat->point[lat->points - 1].bytes;
    line[0] = line_of(latency_floor(t), curve_time(lat, fmin(bytes, last)));
    line[1] = line_of(curve_floor(bw), bandwidth_time(bw, bytes));
    struct tier_line then = line_of(curve_floor(bw), bandwidth_time(bw, last));
    if (bytes > last) { /* as in pair_time() */
        line[0].fixed += fmax(0, line[1].fixed - then.fixed);
        line[0].scaled += fmax(0, line[1].scaled - then.scaled);
    }
}

static void pair_cost(const struct matrix *m, int src, int dst, double bytes, double factor,
                      double add, struct cost *out)
{
    const struct tier *t = &m->tier[matrix_tier(m, src, dst)];
    const struct curve *used;
    char size[UNITS_TEXT];

    double healthy = pair_time(t, bytes, 1, &used);
    curve_interval(used, bytes, &out->lo, &out->hi);
    double low = out->lo / curve_time(used, bytes), high = out->hi / curve_time(used, bytes);
    out->sec = (factor < 1 ? pair_time(t, bytes, factor, &used) : healthy) + add;
    out->lo = out->sec * low;
    out->hi = out->sec * high;
    if (factor <= 0)
        out->sec = out->lo = out->hi = INFINITY;
    out->basis = t->basis;
    snprintf(out->source, sizeof(out->source), "%s pair of tier %s", basis_name[t->basis],
             t->rule.name);
    out->from = curve_end(used, bytes);
    if (out->from > 0 && t->basis == BASIS_MEASURED)
        out->basis = BASIS_FITTED;
    if (out->from > 0)
        snprintf(out->source, sizeof(out->source), "pair of tier %s, extrapolated from %s %s",
                 t->rule.name, units_bytes_text(size, out->from), basis_name[t->basis]);
    if (isnan(healthy))
        snprintf(out->source, sizeof(out->source), "tier %s was not measured", t->rule.name);
}

static bool pair_trivial(const struct matrix *m, int src, int dst, struct cost *out)
{
    *out =
        (struct cost){NAN, NAN, NAN, BASIS_ASSUMED, "no such endpoint", .exception = -1, .from = 0};
    if (src < 0 || dst < 0 || src >= m->topo.endpoints || dst >= m->topo.endpoints)
        return true;
    if (src != dst)
        return false;
    *out = (struct cost){0, 0, 0, BASIS_ASSUMED, "the same endpoint", .exception = -1, .from = 0};
    return true;
}

void matrix_pair_healthy(const struct matrix *m, int src, int dst, double bytes, struct cost *out)
{
    if (!pair_trivial(m, src, dst, out))
        pair_cost(m, src, dst, bytes, 1, 0, out);
}

void matrix_pair(const struct matrix *m, int src, int dst, double bytes, struct cost *out)
{
    double add;

    if (pair_trivial(m, src, dst, out))
        return;
    double factor = matrix_factor(m, src, dst, &out->exception, &add);
    pair_cost(m, src, dst, bytes, factor, add, out);
    if (out->exception >= 0)
        matrix_blame(m, out);
}

void matrix_blame(const struct matrix *m, struct cost *out)
{
    const struct exception *e = &m->exception[out->exception];
    size_t n = strlen(out->source);
    char part[MATRIX_PART];

    if (matrix_state(e) == STATE_WRONG)
        snprintf(out->source + n, sizeof(out->source) - n, "; wrong data: %.100s",
                 matrix_part(m, e, part));
    else
        snprintf(out->source + n, sizeof(out->source) - n, "; %.0f %% of normal by %.100s%s",
                 100 * e->factor, matrix_part(m, e, part),
                 e->declared ? ", as its devices declare" : "");
}
