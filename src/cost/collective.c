/* SPDX-License-Identifier: BSD-3-Clause */
/* Which curve answers for a collective on a group: its own shape's, its neighbours', or the model.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/protocol.h"
#include "base/units.h"
#include "cost/collective.h"

/* In one TCP fabric of known truth the pair model met a ring's time or missed it by up to a
 * quarter. */
static const double model_error = 0.25;

/* Of A100, H100 and B200 8 ranks follow from 4 with a median error of 10 % and nine of ten within
 * 25
 * %, 4 from between 2 and 8 with 5 % and 15 % [aiconfigurator at 095f58a, nccl_perf]. */
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

static void find_curves(struct found *f, const struct matrix *m, enum op op, const struct ways *w,
                        bool published)
{
    const struct shape *s = &w->shape;

    *f = (struct found){.gpus = m->topo.endpoint[0].kind == ENDPOINT_GPU};
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
    int from = c->shape.ranks, turns = c->op == OP_ALL_REDUCE ? 2 : 1;
    double tree = base * log2(n) / log2(from);

    if (!gpu)
        return tree + busy;
    if (c->op == OP_SENDRECV)
        return base + busy;
    if (c->op == OP_ALL_TO_ALL)
        return base + (n - from) * PROTOCOL_PEER + busy;
    if (c->shape.domains == 1) /* further hops of the ring */
        return base + protocol_ring(turns * (n - from), INFINITY, full, busy);
    if (c->op == OP_ALL_REDUCE) /* between domains NCCL takes trees for it */
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
    bool ring = c->op != OP_ALL_REDUCE && c->op != OP_ALL_TO_ALL && c->op != OP_SENDRECV;
    if (gpu && ring && c->shape.domains > 1) /* as it would grow back */
        return base * (ranks - 1) / (c->shape.ranks - 1) + busy;
    int hops = (c->op == OP_ALL_REDUCE ? 2 : 1) * (c->shape.ranks - ranks);
    return fmax(fewer, gpu ? base - hops * PROTOCOL_HOP_LL : fewer) + busy;
}

/* Between two numbers of ranks: a straight line in logs. */
static double between(const struct found *f, int ranks, double below, double above)
{
    double from = f->below->shape.ranks, to = f->above->shape.ranks;
    double w = log(ranks / from) / log(to / from);

    return exp((1 - w) * log(below) + w * log(above));
}

/* Of the curves found, the one that answers; NULL: none. */
static const struct collective *answering(const struct found *f)
{
    return f->same ? f->same : f->below ? f->below : f->above;
}

/* Seconds at the group's ranks, given what the answering curve says at `bytes`. */
static double curves_time(const struct found *f, int ranks, double sec, double bytes)
{
    if (f->same)
        return sec;
    if (f->below && f->above)
        return between(f, ranks, sec, curve_time(&f->above->curve, bytes));
    return rescaled(answering(f), ranks, f->gpus, sec, bytes);
}

/* ", 4 groups at once" where a curve was measured so. */
static char *beside_words(char buf[32], const struct collective *c)
{
    buf[0] = '\0';
    if (c->at_once > 1)
        snprintf(buf, 32, ", %d groups at once", c->at_once);
    return buf;
}

/* sec at `bytes` from the curves found; false when there are none. */
static bool from_curves(struct cost *out, const struct found *f, const struct shape *s,
                        double bytes)
{
    const struct collective *a = answering(f), *b = f->above;
    char want[48], have[48], other[48], size[UNITS_TEXT], beside[32];

    if (!a)
        return false;
    out->basis = a->basis;
    out->sec = curve_time(&a->curve, bytes);
    curve_interval(&a->curve, bytes, &out->lo, &out->hi);
    double low = out->lo / out->sec, high = out->hi / out->sec;
    shape_text(want, s);
    shape_text(have, &a->shape);
    units_bytes_text(size, bytes);
    const char *name = op_name(a->op), *basis = basis_name[a->basis];
    if (f->same) {
        snprintf(out->source, sizeof(out->source), "%s %s %s at %s%s", basis, name, have, size,
                 beside_words(beside, a));
    } else if (f->below && b) {
        snprintf(out->source, sizeof(out->source), "%s %s at %s, %s between %s and %s", basis, name,
                 size, want, have, shape_text(other, &b->shape));
    } else {
        snprintf(out->source, sizeof(out->source), "%s %s at %s, %s scaled from %s at equal busbw",
                 basis, name, size, want, have);
    }
    out->sec = curves_time(f, s->ranks, out->sec, bytes);
    double wide = 1 + (f->same ? 0 : f->below && b ? between_error : scaled_error);
    out->lo = out->sec * low / wide;
    out->hi = out->sec * high * wide;
    return true;
}

/* Slow parts stretch a curve by what they do to the model. */
static double slower_by(const struct matrix *m, const struct ways *w, enum op op, double bytes,
                        double sec)
{
    struct ways healthy = *w;

    healthy.inner_factor = healthy.outer_factor = 1;
    healthy.alpha_add = 0;
    double ratio = model_time(m, w, op, bytes) / model_time(m, &healthy, op, bytes);
    return isnan(ratio) && isfinite(sec) ? 1 / fmin(w->inner_factor, w->outer_factor) : ratio;
}

void quote_of(struct quote *q, const struct matrix *m, enum op op, const struct ways *ways)
{
    q->op = op;
    q->ways = *ways;
    find_curves(&q->found, m, op, ways, false);
}

double quote_time(const struct quote *q, const struct matrix *m, double bytes)
{
    const struct collective *a = answering(&q->found);

    if (!a)
        return model_time(m, &q->ways, q->op, bytes);
    double sec = curves_time(&q->found, q->ways.shape.ranks, curve_time(&a->curve, bytes), bytes);
    return q->ways.exception < 0 ? sec : sec * slower_by(m, &q->ways, q->op, bytes, sec);
}

static bool refused(const struct matrix *m, enum op op, const int *ids, int n, struct cost *out)
{
    *out = (struct cost){NAN, NAN, NAN, BASIS_ASSUMED, "", -1};
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
    *out = (struct cost){0, 0, 0, BASIS_ASSUMED, "one rank: nothing to move", -1};
    return true;
}

static void collective_cost(const struct matrix *m, enum op op, const int *ids, int n, int at_once,
                            double bytes, bool healthy, struct cost *out)
{
    struct found f;
    struct ways w;

    if (refused(m, op, ids, n, out))
        return;
    ways_of(&w, m, ids, n, op, healthy);
    w.at_once = at_once;
    find_curves(&f, m, op, &w, healthy);
    out->exception = w.exception;
    if (from_curves(out, &f, &w.shape, bytes)) {
        double by = w.exception < 0 ? 1 : slower_by(m, &w, op, bytes, out->sec);
        out->sec *= by;
        out->lo *= by;
        out->hi *= by;
    } else {
        out->basis = BASIS_MODELLED;
        out->sec = model_time(m, &w, op, bytes);
        out->lo = out->sec / (1 + model_error);
        out->hi = out->sec * (1 + model_error);
        model_words(m, &w, op, out->source, sizeof(out->source));
    }
    if (w.exception >= 0)
        matrix_blame(m, out);
}

void matrix_collective(const struct matrix *m, enum op op, const int *ids, int n, double bytes,
                       struct cost *out)
{
    collective_cost(m, op, ids, n, 1, bytes, false, out);
}

void matrix_collective_beside(const struct matrix *m, enum op op, const int *ids, int n,
                              int at_once, double bytes, struct cost *out)
{
    collective_cost(m, op, ids, n, at_once, bytes, false, out);
}

void matrix_expected(const struct matrix *m, enum op op, const int *ids, int n, int at_once,
                     double bytes, struct cost *out)
{
    collective_cost(m, op, ids, n, at_once, bytes, true, out);
}
