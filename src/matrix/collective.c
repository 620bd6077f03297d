/* SPDX-License-Identifier: BSD-3-Clause */
/* Choice of the curve that answers for a collective on a group: its own shape's, its neighbours', or the model.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "matrix/collective.h"

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

/* Distance of the circumstances in which a curve of fitting shape was measured. */
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
    for (int i = 0; i < m->collectives && !m->algorithm; i++) {
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

/* A straight line in logs between two numbers of ranks. */
static double between(const struct curves_found *f, int ranks, double below, double above)
{
    double from = f->below->shape.ranks, to = f->above->shape.ranks;
    double w = log(ranks / from) / log(to / from);

    return exp((1 - w) * log(below) + w * log(above));
}

/* Seconds at the group's ranks, given what the answering curve says at `bytes`. */
static double curves_time(const struct curves_found *f, int ranks, double sec, double bytes)
{
    if (f->same)
        return sec;
    if (f->below && f->above)
        return between(f, ranks, sec, curve_time(&f->above->curve, bytes));
    return rescaled(f->below ? f->below : f->above, ranks, f->gpus, sec, bytes);
}

/* Seconds by the curves at a size that they hold. */
static double inside(const struct collective_reading *r, double bytes)
{
    return curves_time(&r->found, r->ways.shape.ranks,
                       curve_time(&reading_answers(r)->curve, bytes), bytes);
}

/* The ends of the curves that answer.  Two that share no size do not answer together. */
static void find_ends(struct collective_reading *r)
{
    const struct curve *a = &reading_answers(r)->curve, *b = NULL;

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
    first->moving =
        1 - moving_share(r, first); /* latency is the unknown share below the first size */
    r->slope = pow(ratio, last->moving * last->moving);
    r->slopes = ratio;
}

/* The model at the first size of a curve that was measured with fewer groups at once. */
static double alone_time(const struct collective_reading *r, const struct matrix *m, enum op op)
{
    struct ways alone = r->ways;

    alone.at_once = reading_answers(r)->at_once > 1 ? reading_answers(r)->at_once : 1;
    return model_time(m, &alone, op, r->first.bytes);
}

static void reading_of(struct collective_reading *r, const struct matrix *m, enum op op,
                       const struct ways *ways, bool published)
{
    r->ways = ways_healthy(ways);
    ways_model(&r->model, m, &r->ways, op);
    r->first = r->last = (struct curve_end){0};
    r->slope = r->slopes = 0;
    r->join = (struct join){.op = op};
    find_curves(&r->found, m, op, ways, published, r->model.nccl);
    bool small = reading_answers(r) && reading_answers(r)->curve.point[0].bytes <= small_size;
    if (r->found.nccl && ways->shape.domains > 1 && !small && !m->algorithm)
        join_resolve(&r->join, m, op, &r->ways, &r->model, published);
    if (!reading_answers(r)) {
        r->join.base = log2(ways_time(&r->model, 0));
        return;
    }
    find_ends(r);
    anchor_ends(r);
    r->alone = r->first.model;
    if (r->join.curves && r->ways.at_once > 1)
        r->alone = alone_time(r, m, op);
}

/* Seconds below the first size of a curve between domains: by curves of all shapes, times the first size's ratio to them,
 * which is forgotten by half each few octaves unless a smaller size would then take longer. */
static double smaller(const struct collective_reading *r, double bytes, double model)
{
    double at = join_at(&r->join, r->alone, NULL), off = r->first.sec / at;
    double left = off > 1 ? exp2(-log2(r->first.bytes / bytes) / forgotten) : 1;

    return join_at(&r->join, model, NULL) * pow(off, left);
}

/* Seconds of the healthy group. */
static double reading_time(const struct collective_reading *r, double bytes)
{
    const struct curve_end *end = reading_beyond(r, bytes);

    if (reading_answers(r) && !end)
        return inside(r, bytes);
    double model = ways_time(&r->model, bytes);
    if (!end)
        return join_at(&r->join, model, NULL);
    if (isnan(model) || isnan(end->model)) /* slope is in seconds a byte then */
        return end == &r->last ? end->sec + r->slope * (bytes - end->bytes) : end->sec;
    if (end == &r->last)
        return end->sec + r->slope * (model - end->model);
    return r->join.curves ? smaller(r, bytes, model) : end->sec * model / end->model;
}

/* Slow parts do to a curve what they do to the model. */
static double slowed(const struct collective_priced *q, double bytes, double sec)
{
    struct ways_slower by = ways_slower(&q->model, &q->own.model, bytes);

    if (isnan(by.factor) && isfinite(sec)) /* no model: the slowest way counts */
        by.factor = 1 / fmin(q->ways.inner_factor, q->ways.slow[SCHEDULE_OWN].outer);
    return sec * by.factor + by.add;
}

/* The share of the denser group's time that a group takes at least: of fewer domains what half_gain says, of one all
 * of it, or what the model says of bytes alone where NICs carry more than the links inside. */
static double kept_share(const struct collective_priced *q)
{
    const struct shape *s = &q->own.ways.shape, *near = &q->near.ways.shape;
    double wide = ways_time(&q->own.model, large_size);
    double narrow = ways_time(&q->near.model, large_size);

    if (near->domains > 1)
        return pow(half_gain, log2((double)s->domains / near->domains));
    return isnan(wide) || isnan(narrow) ? 1 : fmin(1, wide / narrow);
}

static void resolve(struct collective_priced *q, const struct matrix *m, enum op op,
                    const struct ways *ways, bool published)
{
    struct ways near;

    q->op = op;
    q->published = published;
    q->ways = *ways;
    if (ways_slowed(ways)) /* a healthy group has own.model only */
        ways_model(&q->model, m, ways, op);
    reading_of(&q->own, m, op, ways, published);
    q->floored =
        ways_near(&near, m, ways, false) || (q->own.join.curves && ways_near(&near, m, ways, true));
    if (q->floored)
        reading_of(&q->near, m, op, &near, published);
    if (!q->floored ||
        (!reading_answers(&q->own) && !q->own.join.curves && !reading_answers(&q->near)))
        q->floored = false; /* two models: their own order counts */
    else
        q->keep = kept_share(q);
}

/* --- known shapes --- */

static bool same_slow(const struct ways *a, const struct ways *b)
{
    bool same = a->inner_factor == b->inner_factor;

    for (int s = 0; s < SCHEDULES && same; s++)
        same = a->slow[s].outer == b->slow[s].outer && a->slow[s].add == b->slow[s].add &&
               (a->slow[s].exception < 0) == (b->slow[s].exception < 0);
    return same;
}

static bool same_ways(const struct ways *a, const struct ways *b)
{
    return !memcmp(&a->shape, &b->shape, sizeof(a->shape)) && a->inner == b->inner &&
           a->outer == b->outer && a->crossings == b->crossings && a->at_once == b->at_once &&
           same_slow(a, b) && !memcmp(a->share, b->share, sizeof(a->share));
}

static uint64_t hash_of(enum op op, const struct ways *w)
{
    const int *shape = (const int *)&w->shape;
    uint64_t hash = (uint64_t)op, bits;

    for (size_t i = 0; i < sizeof(w->shape) / sizeof(int); i++)
        hash = map_mix(hash, (uint64_t)shape[i]);
    memcpy(&bits, &w->slow[SCHEDULE_OWN].outer, sizeof(bits));
    return map_mix(map_mix(hash, (uint64_t)w->crossings), bits);
}

/* The entry, or where it may be put; NULL: there is no room. */
static const struct collective_priced *find(struct known_shapes *k, enum op op,
                                            const struct ways *w, bool published,
                                            _Atomic(struct collective_priced *) **room)
{
    uint64_t at = hash_of(op, w);

    *room = NULL;
    for (int i = 0; i < KNOWN_TRIES; i++) {
        _Atomic(struct collective_priced *) *slot = &k->slot[(at + (uint64_t)i) % KNOWN];
        const struct collective_priced *there = atomic_load_explicit(slot, memory_order_acquire);
        if (!there) {
            *room = slot;
            return NULL;
        }
        if (there->op == op && there->published == published && same_ways(&there->ways, w))
            return there;
    }
    return NULL;
}

/* Another thread may have put an entry there meanwhile: then this one is not kept. */
static const struct collective_priced *keep(_Atomic(struct collective_priced *) *room,
                                            const struct collective_priced *own)
{
    struct collective_priced *made = malloc(sizeof(*made)), *none = NULL;

    if (made)
        *made = *own;
    if (made && atomic_compare_exchange_strong_explicit(room, &none, made, memory_order_acq_rel,
                                                        memory_order_relaxed))
        return made;
    free(made);
    return NULL;
}

void collective_resolve(struct collective_quote *q, const struct matrix *m, enum op op,
                        const struct ways *ways, bool published, struct known_shapes *known)
{
    _Atomic(struct collective_priced *) *room = NULL;

    q->ways = *ways;
    q->known = known ? find(known, op, ways, published, &room) : NULL;
    if (q->known)
        return;
    resolve(&q->own, m, op, ways, published);
    q->known = room ? keep(room, &q->own) : NULL;
}

/* Lower bound of a group between domains: the time of denser groups, at most that of a larger measured size.
 * 0: none. */
static double floor_time(const struct collective_priced *q, double bytes)
{
    const struct collective_reading *own = &q->own;
    bool measured = own->found.same && bytes <= own->last.bytes;

    if (!q->floored || (measured && bytes >= own->first.bytes))
        return 0;
    double sec = q->keep * reading_time(&q->near, bytes);
    return measured ? fmin(sec, own->first.sec) : sec;
}

double collective_healthy(const struct collective_priced *q, double bytes,
                          const struct collective_reading **by)
{
    double own = reading_time(&q->own, bytes), least = floor_time(q, bytes);
    bool below = q->own.found.same && bytes < q->own.first.bytes;

    *by = least > own && !below ? &q->near : &q->own;
    return least > own ? least : own;
}

double collective_time(const struct collective_quote *q, double bytes)
{
    const struct collective_priced *of = collective_of(q);
    const struct collective_reading *by;
    double sec = collective_healthy(of, bytes, &by);

    return ways_slowed(&of->ways) ? slowed(of, bytes, sec) : sec;
}
