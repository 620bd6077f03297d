/* SPDX-License-Identifier: BSD-3-Clause */
/* Which curve answers for a collective on a group: its own shape's, its neighbours', or the model.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cost/collective.h"
#include "cost/protocol.h"

/* In one TCP fabric of known truth the pair model met a ring's time or missed it by up to a
 * quarter. */
static const double model_error = 0.25;

/* Of A100, H100 and B200 8 ranks follow from 4 with a median error of 10 % and nine of ten within
 * 25 %, 4 from between 2 and 8 with 5 % and 15 % [aiconfigurator at 095f58a, nccl_perf]. */
static const double scaled_error = 0.25, between_error = 0.15;

/* Between domains what others' many ranks reach tells nothing of far fewer: 256 H100 gather at 200
 * GB/s, 32 reduce at 320 [NCCL issues #1218, #1221]. */
static const double few = 2;

static bool pattern_equal(const struct shape *a, const struct shape *b)
{
    if ((a->domains == 1) != (b->domains == 1))
        return false;
    if (a->domains == 1)
        return true;
    return a->per_domain == b->per_domain && a->nics == b->nics &&
           (!a->racks || !b->racks || (a->racks == 1) == (b->racks == 1));
}

/* A curve's slope counts within these shares of the model's, and is that of two octaves. */
static const double slope_least = 0.25, slope_most = 4, slope_octaves = 4;

/* How unlike the circumstances are in which a curve of fitting shape was measured. */
static double strange(const struct collective *c, const struct ways *w)
{
    double far = 0;

    if (c->crossings && w->crossings)
        far += fabs(log((double)c->crossings / w->crossings));
    if (c->at_once && c->shape.domains > 1)
        far += fabs(log((double)c->at_once / w->at_once));
    return far;
}

static bool better(const struct collective *c, const struct collective *kept, const struct ways *w)
{
    return !kept || c->shape.ranks != kept->shape.ranks || strange(c, w) < strange(kept, w);
}

static void find_curves(struct curves_found *f, const struct matrix *m, enum op op,
                        const struct ways *w, bool published)
{
    const struct shape *s = &w->shape;

    *f = (struct curves_found){.gpus = m->topo.endpoint[0].kind == ENDPOINT_GPU};
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->op != op || (published && c->basis != BASIS_PRESET) || c->curve.points == 0)
            continue;
        if (shape_equal(&c->shape, s) && better(c, f->same, w))
            f->same = c;
        if (!pattern_equal(&c->shape, s))
            continue;
        int r = c->shape.ranks;
        if (r <= s->ranks && (!f->below || r >= f->below->shape.ranks) && better(c, f->below, w))
            f->below = c;
        if (r > s->ranks && (!f->above || r <= f->above->shape.ranks) && better(c, f->above, w))
            f->above = c;
    }
    if (s->domains > 1 && !f->below && f->above && f->above->basis == BASIS_PRESET &&
        f->above->shape.ranks > few * s->ranks)
        f->above = NULL;
}

/* A curve's latency `base` and `busy` seconds of moving, `full` of them at its whole rate, at n
 * ranks that are more than the curve's. */
static double grown(const struct collective *c, int n, bool gpu, double base, double busy,
                    double full)
{
    int from = c->shape.ranks, turns = op_table[c->op].turns;
    double tree = base * log2(n) / log2(from);

    if (!gpu)
        return tree + busy;
    if (op_table[c->op].links == OP_NEXT)
        return base + busy;
    if (op_table[c->op].links == OP_EXCHANGE)
        return base + (n - from) * PROTOCOL_PEER + busy;
    if (c->shape.domains == 1) /* further hops of the ring */
        return base + protocol_ring(turns * (n - from), INFINITY, full, busy);
    if (turns > 1) /* all_reduce: between domains NCCL takes trees for it */
        return tree + busy;
    return base * (n - 1) / (from - 1) + busy;
}

/* A curve at another number of ranks: busbw is kept, the latency follows what the op does. */
static double rescaled(const struct collective *c, int ranks, bool gpu, double sec, double bytes)
{
    double more = op_bus_factor(c->op, ranks) / op_bus_factor(c->op, c->shape.ranks);
    double base = fmin(curve_floor(&c->curve), sec), busy = (sec - base) * more;

    if (ranks >= c->shape.ranks)
        return grown(c, ranks, gpu, base, busy, bytes * c->curve.beta * more);
    double fewer = base * log2(ranks) / log2(c->shape.ranks); /* hops cannot be more than all */
    bool ring = op_table[c->op].links == OP_RING && op_table[c->op].turns == 1;
    if (gpu && ring && c->shape.domains > 1) /* as it would grow back */
        return base * (ranks - 1) / (c->shape.ranks - 1) + busy;
    int hops = op_table[c->op].turns * (c->shape.ranks - ranks);
    return fmax(fewer, gpu ? base - hops * PROTOCOL_HOP_LL : fewer) + busy;
}

/* Between two numbers of ranks: a straight line in logs. */
static double between(const struct curves_found *f, int ranks, double below, double above)
{
    double from = f->below->shape.ranks, to = f->above->shape.ranks;
    double w = log(ranks / from) / log(to / from);

    return exp((1 - w) * log(below) + w * log(above));
}

/* Of the curves found, the one that answers; NULL: none. */
static const struct collective *answering(const struct curves_found *f)
{
    return f->same ? f->same : f->below ? f->below : f->above;
}

/* Seconds at the group's ranks, given what the answering curve says at `bytes`. */
static double curves_time(const struct curves_found *f, int ranks, double sec, double bytes)
{
    if (f->same)
        return sec;
    if (f->below && f->above)
        return between(f, ranks, sec, curve_time(&f->above->curve, bytes));
    return rescaled(answering(f), ranks, f->gpus, sec, bytes);
}

/* Seconds by the curves at a size that they hold. */
static double inside(const struct collective_reading *r, double bytes)
{
    return curves_time(&r->found, r->ways.shape.ranks,
                       curve_time(&answering(&r->found)->curve, bytes), bytes);
}

/* The ends of the curves that answer.  Two that share no size do not answer together. */
static void find_ends(struct collective_reading *r)
{
    const struct curve *a = &answering(&r->found)->curve, *b = NULL;

    r->first.bytes = a->point[0].bytes;
    r->last.bytes = a->point[a->points - 1].bytes;
    if (!r->found.same && r->found.below && r->found.above)
        b = &r->found.above->curve;
    if (!b)
        return;
    if (b->point[0].bytes > r->last.bytes || b->point[b->points - 1].bytes < r->first.bytes) {
        r->found.above = NULL;
        return;
    }
    r->first.bytes = fmax(r->first.bytes, b->point[0].bytes);
    r->last.bytes = fmin(r->last.bytes, b->point[b->points - 1].bytes);
}

/* The share of the model's time at an end that grows with the size. */
static double moving_share(const struct collective_reading *r, const struct curve_end *end)
{
    double twice = ways_time(&r->model, 2 * end->bytes);

    return fmin(1, (twice - end->model) / end->model);
}

/* Without a model: the curves' own slope. */
static void anchor_alone(struct collective_reading *r, double own)
{
    r->slope = fmax(own, slope_least * r->last.sec / r->last.bytes);
    r->last.model = r->first.model = NAN;
    r->slopes = 1;
}

static void anchor_ends(struct collective_reading *r)
{
    struct curve_end *first = &r->first, *last = &r->last;
    double at = fmax(first->bytes, last->bytes / slope_octaves);
    bool point = !(at < last->bytes); /* one size: what its bytes took on average */

    first->sec = inside(r, first->bytes);
    last->sec = inside(r, last->bytes);
    first->model = ways_time(&r->model, first->bytes);
    last->model = ways_time(&r->model, last->bytes);
    double own = point ? last->sec : last->sec - inside(r, at);
    double said = point ? last->model : last->model - ways_time(&r->model, at);
    if (!(said > 0)) {
        anchor_alone(r, own / (point ? last->bytes : last->bytes - at));
        return;
    }
    double ratio = fmin(fmax(own / said, slope_least), slope_most);
    last->moving = moving_share(r, last);
    first->moving = 1 - moving_share(r, first); /* below it latency is what is not known */
    r->slope = pow(ratio, last->moving * last->moving);
    r->slopes = ratio;
}

static void reading_of(struct collective_reading *r, const struct matrix *m, enum op op,
                       const struct ways *ways, bool published)
{
    r->ways = ways_healthy(ways);
    ways_model(&r->model, m, &r->ways, op);
    r->first = r->last = (struct curve_end){0};
    r->slope = r->slopes = 0;
    find_curves(&r->found, m, op, ways, published);
    if (!answering(&r->found))
        return;
    find_ends(r);
    anchor_ends(r);
}

/* The end that a size lies beyond; NULL: the curves hold it, or there are none. */
static const struct curve_end *beyond(const struct collective_reading *r, double bytes)
{
    return !answering(&r->found)    ? NULL
           : bytes > r->last.bytes  ? &r->last
           : bytes < r->first.bytes ? &r->first
                                    : NULL;
}

/* Seconds of the healthy group. */
static double reading_time(const struct collective_reading *r, double bytes)
{
    const struct curve_end *end = beyond(r, bytes);

    if (answering(&r->found) && !end)
        return inside(r, bytes);
    double model = ways_time(&r->model, bytes);
    if (!end)
        return model;
    if (isnan(model) || isnan(end->model)) /* slope is in seconds a byte then */
        return end == &r->last ? end->sec + r->slope * (bytes - end->bytes) : end->sec;
    return end == &r->last ? end->sec + r->slope * (model - end->model)
                           : end->sec * model / end->model;
}

/* Slow parts stretch a curve by what they do to the model. */
static double slower_by(const struct collective_quote *q, double bytes, double sec)
{
    double ratio = ways_time(&q->model, bytes) / ways_time(&q->own.model, bytes);

    return isnan(ratio) && isfinite(sec) ? 1 / fmin(q->ways.inner_factor, q->ways.outer_factor)
                                         : ratio;
}

void collective_resolve(struct collective_quote *q, const struct matrix *m, enum op op,
                        const struct ways *ways, bool published)
{
    struct ways near;

    q->op = op;
    q->ways = *ways;
    if (ways->exception >= 0) /* else it is own.model */
        ways_model(&q->model, m, ways, op);
    reading_of(&q->own, m, op, ways, published);
    q->floored = ways_near(&near, m, ways);
    if (q->floored)
        reading_of(&q->near, m, op, &near, published);
    if (!q->floored || (!answering(&q->own.found) && !answering(&q->near.found)))
        q->floored = false; /* both by the model, which says itself which is slower */
}

/* What one domain makes of it, a bound for a group across several: times what the model gives the
 * wider group ahead of the nearer one, and no more than a larger size was measured at.  0: none. */
static double floor_time(const struct collective_quote *q, double bytes)
{
    const struct collective_reading *own = &q->own;
    bool measured = own->found.same && bytes <= own->last.bytes;

    if (!q->floored || (measured && bytes >= own->first.bytes))
        return 0;
    double wide = ways_time(&own->model, bytes);
    double narrow = ways_time(&q->near.model, bytes);
    double sec = reading_time(&q->near, bytes);
    if (!isnan(wide) && !isnan(narrow))
        sec *= fmin(1, wide / narrow);
    return measured ? fmin(sec, own->first.sec) : sec;
}

/* Seconds of the healthy group, and the reading that says so. */
static double healthy_time(const struct collective_quote *q, double bytes,
                           const struct collective_reading **by)
{
    double own = reading_time(&q->own, bytes), least = floor_time(q, bytes);
    bool below = q->own.found.same && bytes < q->own.first.bytes;

    *by = least > own && !below ? &q->near : &q->own;
    return least > own ? least : own;
}

double collective_time(const struct collective_quote *q, double bytes)
{
    const struct collective_reading *by;
    double sec = healthy_time(q, bytes, &by);

    return q->ways.exception < 0 ? sec : sec * slower_by(q, bytes, sec);
}

/* --- the same with words --- */

/* ", 4 groups at once" where a curve was measured so. */
static char *beside_words(char buf[32], const struct collective *c)
{
    buf[0] = '\0';
    if (c->at_once > 1)
        snprintf(buf, 32, ", %d groups at once", c->at_once);
    return buf;
}

/* Which curves answer for a size that they hold, or that they are extrapolated to. */
static void curves_words(struct cost *out, const struct collective_reading *r, double bytes)
{
    const struct collective *a = answering(&r->found), *b = r->found.above;
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

/* Basis, interval and words of a size that the curves answer; out->sec is set. */
static void from_curves(struct cost *out, const struct collective_reading *r, double bytes)
{
    const struct collective *a = answering(&r->found);
    const struct curve_end *end = beyond(r, bytes);
    double at = end ? end->bytes : bytes, lo, hi;
    double slopes = end == &r->last ? r->slopes : 1;
    double wide = 1 + (r->found.same                      ? 0
                       : r->found.below && r->found.above ? between_error
                                                          : scaled_error);

    curve_interval(&a->curve, at, &lo, &hi);
    double sec = curve_time(&a->curve, at),
           far = end ? 1 + curve_unsure(at, bytes, end->moving, slopes) : 1;
    out->lo = out->sec * lo / sec / wide / far;
    out->hi = out->sec * hi / sec * wide * far;
    out->basis = end && a->basis == BASIS_MEASURED ? BASIS_FITTED : a->basis;
    out->from = end ? at : 0;
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

static void say_floor(struct cost *out)
{
    char source[sizeof(out->source)];

    memcpy(source, out->source, sizeof(source));
    snprintf(out->source, sizeof(out->source), "no less than inside one domain: %.120s", source);
}

static bool refused(const struct matrix *m, enum op op, const int *ids, int n, struct cost *out)
{
    *out = (struct cost){NAN, NAN, NAN, BASIS_ASSUMED, "", -1, 0};
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
    if (n > 1)
        return false;
    *out = (struct cost){0, 0, 0, BASIS_ASSUMED, "one rank: nothing to move", -1, 0};
    return true;
}

/* The formula and its numbers in words. */
static void model_words(const struct matrix *m, const struct ways *w, enum op op, char *text,
                        size_t size)
{
    const char *in = w->inner >= 0 ? m->tier[w->inner].rule.name : NULL;
    const char *out = w->outer >= 0 ? m->tier[w->outer].rule.name : NULL;
    char where[72];

    if (in && out)
        snprintf(where, sizeof(where), "%s inside and %s between %d domains", in, out,
                 w->shape.domains);
    else
        snprintf(where, sizeof(where), "%s", in ? in : out ? out : "nothing");
    if (op_table[op].links != OP_RING)
        snprintf(text, size, "modelled: %s over %s",
                 op_table[op].links == OP_NEXT ? "slowest hop" : "pairwise exchange", where);
    else
        snprintf(text, size, "modelled: ring over %s, %d NICs a domain", where, w->shape.nics);
}

static void healthy_cost(const struct collective_quote *q, const struct matrix *m, double bytes,
                         struct cost *out)
{
    const struct collective_reading *by;

    out->sec = healthy_time(q, bytes, &by);
    if (answering(&by->found)) {
        from_curves(out, by, bytes);
        say_from(out, basis_name[answering(&by->found)->basis]);
    } else {
        out->basis = BASIS_MODELLED;
        out->lo = out->sec / (1 + model_error);
        out->hi = out->sec * (1 + model_error);
        model_words(m, &by->ways, q->op, out->source, sizeof(out->source));
    }
    if (by == &q->near)
        say_floor(out);
}

static void quoted_cost(const struct collective_quote *q, const struct matrix *m, double bytes,
                        struct cost *out)
{
    healthy_cost(q, m, bytes, out);
    if (q->ways.exception < 0)
        return;
    double by = slower_by(q, bytes, out->sec);
    out->sec *= by;
    out->lo *= by;
    out->hi *= by;
    out->exception = q->ways.exception;
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
    collective_resolve(&q, m, op, &w, healthy);
    for (int i = 0; i < sizes; i++)
        quoted_cost(&q, m, bytes[i], &out[i]);
}
