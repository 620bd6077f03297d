/* SPDX-License-Identifier: BSD-3-Clause */
/* Evidence of curves of other shapes between domains: struct join. */
#include <math.h>
#include <string.h>

#include "matrix/collective.h"

/* Octaves of the model's time beyond its latency. */
static const double knot[JOIN_KNOTS] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 8};

/* Weights of "the model is right", and of "as much at any number of domains"; a slope is carried so many octaves of
 * domains.  Chosen on published curves of 2 to 128 domains, each left out in turn (tests/accuracy.md); the errors move by
 * less than one percent when each is halved or doubled. */
static const double model_vote = 0.05, slope_hold = 3, slope_reach = 1;
static const double near_rises = 0.3; /* octaves: so near a curve its weight rises towards it */

/* Log errors of the model alone while latency counts, between, and while bytes do; what curves leave of it at a
 * weight of `known`, and what each octave of distance adds.  Nine of ten published points lie within 1.28 times. */
static const double error_latency = 0.10, error_middle = 0.40, error_moving = 0.20;
static const double known = 0.35, error_far = 0.03, far_most = 5;
/* Operations of one schedule between domains keep this share of these errors: no tuner chooses between rings and trees.
 * 94 % of all_gather's points lie within.  All of all_to_all's do, and one machine that is not among them (two racks of
 * GB300) reached a quarter of its NICs, so it is not narrowed further. */
static const double one_schedule = 0.7;
/* A number of curves says no more than this of another site, because NCCL's version, hosts and cables differ.  Nine of
 * ten points of all_reduce of other publishers lie within (tests/bench/published.c, which holds 85 to 95 %). */
static const double error_site = 0.11;

enum {
    POINTS_MOST = 12
}; /* points of a curve that are looked at: points between them add nothing about another shape */

static double octaves(double a, double b)
{
    return fabs(log2(a / b));
}

/* Distance of two shapes; NCCL builds other trees for two domains than for more. */
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

/* Ratios of a curve to the model; the middle one of three neighbouring points, so that one bad size is not
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
    return n; /* points from the largest size down */
}

/* Ratio at a knot, and the octaves that the knot lies beyond the points. */
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

void join_resolve(struct join *j, const struct matrix *m, enum op op, const struct ways *w,
                  const struct ways_model *own, bool published)
{
    struct sums sums[JOIN_KNOTS] = {{0}};
    double beyond = out_of_reach(m, op, &w->shape, published);

    *j = (struct join){.op = op, .base = log2(ways_time(own, 0))};
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

/* The log error where the model takes so many octaves more than its latency. */
static double error_at(const struct join *j, double at, double weight)
{
    double alone = at < 0.5 ? error_latency : at < 3 ? error_middle : error_moving;

    if (j->op == OP_ALL_GATHER || j->op == OP_REDUCE_SCATTER || j->op == OP_ALL_TO_ALL)
        alone *= one_schedule;
    return sqrt(alone * alone * known / (known + weight) + error_site * error_site) +
           (j->curves ? error_far * fmin(far_most, j->far) : 0);
}

double join_at(const struct join *j, double sec, double *error)
{
    int k = 0;

    if (!error && (!j->curves || !isfinite(sec)))
        return sec;
    double at = log2(sec) - j->base;
    while (j->curves && k + 2 < JOIN_KNOTS && at >= knot[k + 1])
        k++;
    if (error)
        *error = exp(1.28 * error_at(j, fmax(0, at), j->curves ? j->weight[k] : 0)) - 1;
    if (!j->curves || !isfinite(sec))
        return sec;
    double part = fmin(1, fmax(0, (at - knot[k]) / (knot[k + 1] - knot[k])));
    return sec * exp2(j->miss[k] + part * (j->miss[k + 1] - j->miss[k]));
}
