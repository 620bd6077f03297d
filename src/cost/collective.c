/* SPDX-License-Identifier: BSD-3-Clause */
/* Which curve answers for a collective on a group: its own shape's, its neighbours', or the model.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cost/collective.h"

/* In one TCP fabric of known truth the pair model met a ring's time or missed it by up to a
 * quarter. */
static const double model_error = 0.25;

/* Of A100, H100 and B200 8 ranks follow from 4 with a median error of 10 % and nine of ten within
 * 25 %, 4 from between 2 and 8 with 5 % and 15 % [aiconfigurator at 095f58a, nccl_perf]. */
static const double scaled_error = 0.25, between_error = 0.15;

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

/* As many ranks in twice as many domains are no more than so much faster, unless they were measured. */
static const double half_gain = 0.9, large_size = 0x1p32;

/* B: a curve that begins there has all the latency; octaves of bytes by which half is forgotten. */
static const double small_size = 8192, forgotten = 6;

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
                        const struct ways *w, bool published, bool nccl)
{
    const struct shape *s = &w->shape;

    *f = (struct curves_found){.gpus = m->topo.endpoint[0].kind == ENDPOINT_GPU, .nccl = nccl};
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->op != op || (published && c->basis != BASIS_PRESET) || c->curve.points == 0)
            continue;
        if (shape_equal(&c->shape, s) && better(c, f->same, w))
            f->same = c;
        if (!pattern_equal(&c->shape, s) || (f->nccl && s->domains > 1))
            continue;
        int r = c->shape.ranks;
        if (r <= s->ranks && (!f->below || r >= f->below->shape.ranks) && better(c, f->below, w))
            f->below = c;
        if (r > s->ranks && (!f->above || r <= f->above->shape.ranks) && better(c, f->above, w))
            f->above = c;
    }
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
        return base + algorithm_further(turns * (n - from), full, busy);
    return tree + busy;
}

/* A curve at another number of ranks: busbw is kept, the latency follows what the op does. */
static double rescaled(const struct collective *c, int ranks, bool gpu, double sec, double bytes)
{
    double more = op_bus_factor(c->op, ranks) / op_bus_factor(c->op, c->shape.ranks);
    double base = fmin(curve_floor(&c->curve), sec), busy = (sec - base) * more;

    if (ranks >= c->shape.ranks)
        return grown(c, ranks, gpu, base, busy, bytes * c->curve.beta * more);
    double fewer = base * log2(ranks) / log2(c->shape.ranks); /* hops cannot be more than all */
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

/* --- curves of other shapes: see struct join --- */

/* Octaves of the model's time beyond its latency. */
static const double knot[JOIN_KNOTS] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 8};

/* Weights of "the model is right", and of "as much at any number of domains"; a slope is carried so many octaves of
 * domains.  Chosen on published curves of 2 to 128 domains, each left out in turn (tests/accuracy.md); the errors move by
 * less than one percent when each is halved or doubled. */
static const double model_vote = 0.05, slope_hold = 3, slope_reach = 1;
static const double near_rises = 0.3; /* octaves: so near a curve its weight rises towards it */

/* Log errors of the model alone while latency counts, between, and while bytes do; what curves leave of it at a
 * weight of `known`, and what each octave of distance adds.  Nine of ten published points lie within 1.28 times. */
static const double error_latency = 0.25, error_middle = 0.40, error_moving = 0.20;
static const double known = 0.35, error_far = 0.03, far_most = 5;

enum {
    POINTS_MOST = 12
}; /* of a curve that are looked at: what lies between tells nothing of another shape */

static double octaves(double a, double b)
{
    return fabs(log2(a / b));
}

/* How unlike two shapes are; from two domains to more other trees are built. */
static double distance(const struct shape *a, const struct shape *b)
{
    return octaves((double)a->ranks / a->domains, (double)b->ranks / b->domains) +
           octaves(a->domains, b->domains) + octaves(a->nics, b->nics) / 2 +
           ((a->domains > 2) != (b->domains > 2));
}

/* The curve's group, as far as its shape tells: it takes the tiers that the asked group takes. */
static void ways_of_curve(struct ways *v, const struct matrix *m, const struct ways *w,
                          const struct collective *c)
{
    *v = ways_healthy(w);
    v->shape = c->shape;
    v->crossings = c->crossings;
    v->at_once = c->at_once > 1 ? c->at_once : 1;
    if (c->shape.per_domain > 1 && v->inner < 0)
        v->inner = ways_inner(m);
    if (c->shape.per_domain < 2)
        v->inner = -1;
    memset(v->share, 0, sizeof(v->share));
    double inside = (c->shape.per_domain - 1.0) / (c->shape.ranks - 1);
    if (v->inner >= 0)
        v->share[v->inner] = inside;
    v->share[v->outer] = 1 - inside;
}

struct seen_point {
    double octaves, miss; /* the model's time beyond its latency, and log2 of measured / modelled */
};

static double middle(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Where a curve lies beside the model; of three neighbouring points the middle one, so that one bad size is not
 * carried over. */
static int look_at(struct seen_point *p, const struct collective *c, const struct ways_model *x)
{
    const struct curve *curve = &c->curve;
    int step = (curve->points + POINTS_MOST - 1) / POINTS_MOST, n = 0;
    double base = log2(ways_time(x, 0)), miss[POINTS_MOST];

    for (int i = curve->points - 1; i >= 0; i -= step) {
        double at = log2(ways_time(x, curve->point[i].bytes));
        p[n] = (struct seen_point){at - base, log2(curve->point[i].sec) - at};
        miss[n] = p[n].miss;
        if (!isfinite(p[n++].miss))
            return 0;
    }
    for (int i = 1; i + 1 < n; i++)
        p[i].miss = middle(miss[i - 1], miss[i], miss[i + 1]);
    return n; /* from the largest size down */
}

/* What the points say at a knot, and how far beyond their ends it lies. */
static double miss_at(const struct seen_point *p, int n, double at, double *beyond)
{
    *beyond = fmax(0, fmax(at - p[0].octaves, p[n - 1].octaves - at));
    if (at >= p[0].octaves)
        return p[0].miss;
    for (int i = 1; i < n; i++)
        if (at >= p[i].octaves) {
            double part = (at - p[i].octaves) / (p[i - 1].octaves - p[i].octaves);
            return p[i].miss + part * (p[i - 1].miss - p[i].miss);
        }
    return p[n - 1].miss;
}

/* Weighted least squares of a level and a slope over octaves of domains, both held towards the model's. */
struct sums {
    double w, wx, wxx, wy, wxy;
};

static void add_sums(struct sums *s, double w, double x, double y)
{
    s->w += w;
    s->wx += w * x;
    s->wxx += w * x * x;
    s->wy += w * y;
    s->wxy += w * x * y;
}

static double level(const struct sums *s)
{
    double w = s->w + model_vote, xx = s->wxx + slope_hold;

    return (xx * s->wy - s->wx * s->wxy) / (w * xx - s->wx * s->wx);
}

static void add_curve(struct sums sums[JOIN_KNOTS], const struct seen_point *p, int n, double far,
                      double x)
{
    double weight = exp2(-far / 2) * (1 + near_rises) / (far + near_rises);

    for (int k = 0; k < JOIN_KNOTS; k++) {
        double beyond, miss = miss_at(p, n, knot[k], &beyond);
        double left = 1 / (1 + beyond / 2);
        add_sums(&sums[k], weight * left * left, x, miss);
    }
}

static bool of_others(const struct collective *c, enum op op, bool published)
{
    return c->op == op && c->shape.domains > 1 && c->curve.points > 0 &&
           (!published || c->basis == BASIS_PRESET);
}

/* Octaves of domains beyond the nearest curve and the reach of a slope. */
static double out_of_reach(const struct matrix *m, enum op op, const struct shape *s,
                           bool published)
{
    double gap = INFINITY;

    for (int i = 0; i < m->collectives; i++)
        if (of_others(&m->collective[i], op, published))
            gap = fmin(gap, log2((double)s->domains / m->collective[i].shape.domains));
    return fmax(0, gap - slope_reach);
}

static void join_resolve(struct join *j, const struct matrix *m, enum op op, const struct ways *w,
                         const struct ways_model *own, bool published)
{
    struct sums sums[JOIN_KNOTS] = {{0}};
    double beyond = out_of_reach(m, op, &w->shape, published);

    *j = (struct join){.base = log2(ways_time(own, 0))};
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        struct seen_point p[POINTS_MOST];
        struct ways_model x;
        struct ways v;
        if (!of_others(c, op, published))
            continue;
        ways_of_curve(&v, m, w, c);
        ways_model(&x, m, &v, op);
        int n = look_at(p, c, &x);
        double far = distance(&w->shape, &c->shape);
        if (!n)
            continue;
        if (!j->curves++ || far < j->far)
            j->far = far;
        add_curve(sums, p, n, far,
                  fmax(-6, log2((double)c->shape.domains / w->shape.domains) + beyond));
    }
    for (int k = 0; j->curves && k < JOIN_KNOTS; k++) {
        j->miss[k] = level(&sums[k]);
        j->weight[k] = sums[k].w;
        if (k) /* a larger size is never faster */
            j->miss[k] = fmax(j->miss[k], j->miss[k - 1] - (knot[k] - knot[k - 1]));
    }
}

/* The knots around a time of the model: the lower one's index, and the part of the way to the next. */
static int around(const struct join *j, double sec, double *part)
{
    double at = log2(sec) - j->base;
    int k = 0;

    while (k + 2 < JOIN_KNOTS && at >= knot[k + 1])
        k++;
    *part = fmin(1, fmax(0, (at - knot[k]) / (knot[k + 1] - knot[k])));
    return k;
}

static double join_time(const struct join *j, double sec)
{
    double part;

    if (!j->curves || !isfinite(sec))
        return sec;
    int k = around(j, sec, &part);
    return sec * exp2(j->miss[k] + part * (j->miss[k + 1] - j->miss[k]));
}

static double join_error(const struct join *j, double sec)
{
    double part;
    int k = around(j, sec, &part);
    double at = fmax(0, log2(sec) - j->base), weight = j->curves ? j->weight[k] : 0;
    double alone = at < 0.5 ? error_latency : at < 3 ? error_middle : error_moving;

    return exp(1.28 * (alone * sqrt(known / (known + weight)) +
                       (j->curves ? error_far * fmin(far_most, j->far) : 0))) -
           1;
}

/* --- ends of curves --- */

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

/* The model at the first size of a curve that was measured with fewer groups at once. */
static double alone_time(const struct collective_reading *r, const struct matrix *m, enum op op)
{
    struct ways alone = r->ways;

    alone.at_once = answering(&r->found)->at_once > 1 ? answering(&r->found)->at_once : 1;
    return model_time(m, &alone, op, r->first.bytes);
}

static void reading_of(struct collective_reading *r, const struct matrix *m, enum op op,
                       const struct ways *ways, bool published)
{
    r->ways = ways_healthy(ways);
    ways_model(&r->model, m, &r->ways, op);
    r->first = r->last = (struct curve_end){0};
    r->slope = r->slopes = 0;
    r->join = (struct join){0};
    find_curves(&r->found, m, op, ways, published, r->model.nccl);
    bool small = answering(&r->found) && answering(&r->found)->curve.point[0].bytes <= small_size;
    if (r->found.nccl && ways->shape.domains > 1 && !small)
        join_resolve(&r->join, m, op, &r->ways, &r->model, published);
    if (!answering(&r->found)) {
        r->join.base = log2(ways_time(&r->model, 0));
        return;
    }
    find_ends(r);
    anchor_ends(r);
    r->alone = r->first.model;
    if (r->join.curves && r->ways.at_once > 1)
        r->alone = alone_time(r, m, op);
}

/* The end that a size lies beyond; NULL: the curves hold it, or there are none. */
static const struct curve_end *beyond(const struct collective_reading *r, double bytes)
{
    return !answering(&r->found)    ? NULL
           : bytes > r->last.bytes  ? &r->last
           : bytes < r->first.bytes ? &r->first
                                    : NULL;
}

/* Below the first size of a curve between domains: what curves of all shapes say, times what the first size was off by,
 * which is forgotten by half each few octaves unless a smaller size would then take longer. */
static double smaller(const struct collective_reading *r, double bytes, double model)
{
    double at = join_time(&r->join, r->alone), off = r->first.sec / at;
    double left = off > 1 ? exp2(-log2(r->first.bytes / bytes) / forgotten) : 1;

    return join_time(&r->join, model) * pow(off, left);
}

/* Seconds of the healthy group. */
static double reading_time(const struct collective_reading *r, double bytes)
{
    const struct curve_end *end = beyond(r, bytes);

    if (answering(&r->found) && !end)
        return inside(r, bytes);
    double model = ways_time(&r->model, bytes);
    if (!end)
        return join_time(&r->join, model);
    if (isnan(model) || isnan(end->model)) /* slope is in seconds a byte then */
        return end == &r->last ? end->sec + r->slope * (bytes - end->bytes) : end->sec;
    if (end == &r->last)
        return end->sec + r->slope * (model - end->model);
    return r->join.curves ? smaller(r, bytes, model) : end->sec * model / end->model;
}

/* Slow parts stretch a curve by what they do to the model. */
static double slower_by(const struct collective_quote *q, double bytes, double sec)
{
    double ratio = ways_time(&q->model, bytes) / ways_time(&q->own.model, bytes);

    return isnan(ratio) && isfinite(sec) ? 1 / fmin(q->ways.inner_factor, q->ways.outer_factor)
                                         : ratio;
}

/* The share of the denser group's time that a group takes at least: of fewer domains what half_gain says, of one all
 * of it, or what the model says of bytes alone where NICs carry more than the links inside. */
static double kept_share(const struct collective_quote *q)
{
    const struct shape *s = &q->own.ways.shape, *near = &q->near.ways.shape;
    double wide = ways_time(&q->own.model, large_size);
    double narrow = ways_time(&q->near.model, large_size);

    if (near->domains > 1)
        return pow(half_gain, log2((double)s->domains / near->domains));
    return isnan(wide) || isnan(narrow) ? 1 : fmin(1, wide / narrow);
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
    q->floored =
        ways_near(&near, m, ways, false) || (q->own.join.curves && ways_near(&near, m, ways, true));
    if (q->floored)
        reading_of(&q->near, m, op, &near, published);
    if (!q->floored ||
        (!answering(&q->own.found) && !q->own.join.curves && !answering(&q->near.found)))
        q->floored = false; /* both by the model, which says itself which is slower */
    else
        q->keep = kept_share(q);
}

/* What denser groups take is a bound for a group between domains, and no more than a larger size was measured at.
 * 0: none. */
static double floor_time(const struct collective_quote *q, double bytes)
{
    const struct collective_reading *own = &q->own;
    bool measured = own->found.same && bytes <= own->last.bytes;

    if (!q->floored || (measured && bytes >= own->first.bytes))
        return 0;
    double sec = q->keep * reading_time(&q->near, bytes);
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
           far = !end ? 1
                 : end == &r->first && r->join.curves
                     ? 1 + join_error(&r->join, ways_time(&r->model, bytes))
                     : 1 + curve_unsure(at, bytes, end->moving, slopes);
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
        double model = ways_time(&by->model, bytes);
        double wide = 1 + (by->found.nccl ? join_error(&by->join, model) : model_error);
        out->lo = out->sec / wide;
        out->hi = out->sec * wide;
        model_words(m, by, q->op, bytes, out->source);
    }
    if (by == &q->near)
        say_floor(out, by->ways.shape.domains);
}

void collective_cost(const struct collective_quote *q, const struct matrix *m, double bytes,
                     struct cost *out)
{
    *out = (struct cost){.exception = -1, .basis = BASIS_ASSUMED};
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
        collective_cost(&q, m, bytes[i], &out[i]);
}
