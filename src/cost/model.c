/* SPDX-License-Identifier: BSD-3-Clause */
/* Formulas, S as nccl-tests counts it, G ranks in d domains:
 *
 *   all_gather, reduce_scatter   (G-d) a_in + (d-1) a_out + S (G-1)/G / B     a ring [1, 2]
 *   all_reduce                   twice that
 *   broadcast, reduce            (G-1) hops of latency + S / B                a chain
 *   all_to_all                   max(share inside, share across)              own NICs only [3]
 *   sendrecv                     the slowest hop
 *
 *   a_in, a_out   latency of a hop inside a domain, between two; on GPUs the hops inside after the
 *                 first cost what cost/protocol.h says
 *   B             min(B_in, nics * B_nic): every NIC of a domain carries its own ring [4]
 *
 * [1] Chan et al. 2007, "Collective communication: theory, practice, and experience"
 * [2] NCCL src/graph/tuning.cc: latency = (steps - inter) * intra + inter * inter
 * [3] nccl-tests issue #267: "alltoall cannot aggregate NICs"
 * [4] NCCL issue #1801: 4 and 8 NICs of 49.2 GB/s gave 196.9 and 393.7 GB/s */
#include "cost/collective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/protocol.h"

static bool same_domain(const struct matrix *m, int a, int b)
{
    const int *x = m->topo.endpoint[a].place.at, *y = m->topo.endpoint[b].place.at;

    if (x[LEVEL_DOMAIN] >= 0 && y[LEVEL_DOMAIN] >= 0)
        return x[LEVEL_DOMAIN] == y[LEVEL_DOMAIN];
    return x[LEVEL_HOST] == y[LEVEL_HOST];
}

/* Tables list tiers from near to far, so the larger index is the slower tier unless rates say
 * other. */
static void slower(const struct matrix *m, int *kept, int tier)
{
    double old = *kept < 0 ? INFINITY : matrix_rate(m, *kept, DIR_BI);
    double new = matrix_rate(m, tier, DIR_BI);

    if (*kept < 0 || new < old || (new == old &&tier > *kept))
        *kept = tier;
}

/* How many members are in that part of its kind. */
static int members_in(const struct matrix *m, enum part part, const int *ids, int n, int at)
{
    int members = 0;

    for (int i = 0; i < n; i++)
        members += part_at(m, part, ids[i]) == at;
    return members;
}

/* Do a and b follow each other in the ring? */
static bool neighbours(const int *ids, int n, int a, int b)
{
    for (int i = 0; i < n; i++)
        if ((ids[i] == a && ids[(i + 1) % n] == b) || (ids[i] == b && ids[(i + 1) % n] == a))
            return true;
    return false;
}

static bool member(const struct matrix *m, const struct exception *e, const int *ids, int n,
                   enum op op)
{
    if (e->part == PART_PAIR && op_table[op].links != OP_EXCHANGE)
        return neighbours(ids, n, e->a, e->b); /* a ring touches neighbours only */
    int a = members_in(m, e->part, ids, n, e->a);
    if (e->part == PART_RACK_UPLINKS)
        return a > 0 && a < n;
    return a > 0 && (!part_is_two(e->part) || members_in(m, e->part, ids, n, e->b) > 0);
}

static bool concerns(const struct matrix *m, const struct exception *e, int tier)
{
    return tier >= 0 && (e->tier >= 0 ? e->tier == tier : m->tier[tier].nic || e->factor <= 0);
}

static void slow_part(struct ways *w, const struct matrix *m, int index)
{
    const struct exception *e = &m->exception[index];
    bool in = concerns(m, e, w->inner), out = concerns(m, e, w->outer);
    double before = fmin(w->inner_factor, w->outer_factor), add = w->alpha_add;

    if (!in && !out)
        return;
    if (in)
        w->inner_factor = fmin(w->inner_factor, e->factor);
    if (out)
        w->outer_factor = fmin(w->outer_factor, e->factor);
    w->alpha_add = fmax(w->alpha_add, e->alpha_add);
    if (e->factor < before || w->alpha_add > add)
        w->exception = index;
}

/* The tier of two members that share a domain, though no neighbours do: dealt out round robin they
 * are as far apart as there are domains.  -1: none. */
static int inside_tier(const struct matrix *m, const int *ids, int n, int domains)
{
    for (int i = domains; i < n; i++)
        if (ids[i] != ids[i - domains] && same_domain(m, ids[i], ids[i - domains]))
            return matrix_tier(m, ids[i], ids[i - domains]);
    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++)
            if (ids[i] != ids[k] && same_domain(m, ids[i], ids[k]))
                return matrix_tier(m, ids[i], ids[k]);
    return -1;
}

/* lone: what shape_of() returned. */
static void hops(struct ways *w, const struct matrix *m, const int *ids, int n, int lone)
{
    int crossings[TIER_MAX] = {0};
    unsigned met[2] = {0, 0}; /* tiers between domains, and inside */

    for (int i = 0; i < n; i++) {
        int a = ids[i], b = ids[i + 1 < n ? i + 1 : 0];
        const int *x = m->topo.endpoint[a].place.at, *y = m->topo.endpoint[b].place.at;
        if (a == b)
            continue;
        bool inside = same_domain(m, a, b);
        int tier = matrix_tier(m, a, b);
        crossings[tier] += x[LEVEL_RACK] != y[LEVEL_RACK];
        if (!(met[inside] & 1u << tier))
            slower(m, inside ? &w->inner : &w->outer, tier);
        met[inside] |= 1u << tier;
    }
    for (int i = 0; i < n; i++) {
        if (i == lone)
            continue;
        int tier = ids[i] != ids[lone] ? matrix_tier(m, ids[lone], ids[i]) : 0;
        w->share[tier] += 1.0 / (n - 1);
    }
    if (w->inner < 0 && w->shape.domains < n)
        w->inner = inside_tier(m, ids, n, w->shape.domains);
    w->crossings = w->outer < 0 ? 0 : crossings[w->outer];
}

void ways_of_some(struct ways *w, const struct matrix *m, const int *ids, int n, enum op op,
                  const int *exception, int exceptions)
{
    *w = (struct ways){.inner = -1, .outer = -1, .exception = -1, .at_once = 1};
    w->inner_factor = w->outer_factor = 1;
    int lone = shape_of(&w->shape, &m->topo, ids, n);
    hops(w, m, ids, n, lone);
    for (int i = 0; i < exceptions; i++) {
        int at = exception ? exception[i] : i;
        if (member(m, &m->exception[at], ids, n, op))
            slow_part(w, m, at);
    }
}

void ways_of(struct ways *w, const struct matrix *m, const int *ids, int n, enum op op,
             bool healthy)
{
    ways_of_some(w, m, ids, n, op, NULL, healthy ? 0 : m->exceptions);
}

bool ways_near(struct ways *near, const struct matrix *m, const struct ways *w)
{
    int n = w->shape.ranks, domains = m->topo.group[LEVEL_DOMAIN].count;

    if (!domains)
        domains = m->topo.hosts;
    if (w->shape.domains == 1 || (long)n * domains > (long)m->topo.endpoints)
        return false;
    *near = ways_healthy(w);
    near->shape = (struct shape){n, 1, n, 1, n, 1};
    near->outer = -1;
    near->crossings = 0;
    for (int t = 0; t < m->tiers && w->inner < 0; t++)
        if (m->tier[t].rule.same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN))
            slower(m, &near->inner, t);
    memset(near->share, 0, sizeof(near->share));
    if (near->inner < 0)
        return false;
    near->share[near->inner] = 1;
    return true;
}

static double hop_alpha(const struct matrix *m, int tier)
{
    const struct tier *t = &m->tier[tier];

    return t->curve[DIR_ONEWAY].points ? t->curve[DIR_ONEWAY].alpha
                                       : curve_floor(&t->curve[DIR_UNI]);
}

/* Whole NICs that the uplinks of this group's racks, and of as many rails as it has NICs in a
 * domain, carry, where leaves are seen; NAN elsewhere. */
static double uplinks(const struct matrix *m, const struct ways *w, const struct tier *t)
{
    const struct topo *topo = &m->topo;
    int racks = topo->group[LEVEL_RACK].count, rails = topo->group[LEVEL_RAIL].count;

    if (!topo->group[LEVEL_LEAF].count || racks < 1 || w->shape.racks < 1)
        return NAN;
    double part = rails ? fmin(1, (double)w->shape.nics / rails) : 1;
    return t->loaded * topo->endpoints * part * w->shape.racks / racks;
}

/* What is left of a tier's rate when groups like this one have `nics` flows between racks in all.
 * tier.loaded was measured with many: uplinks of leaves carry so much of what all their NICs do;
 * what else lies between two racks is taken to carry one flow, of which `flows` share it, and a few
 * flows cannot lose more than their number. */
static double share_of(const struct matrix *m, const struct ways *w, const struct tier *t,
                       double flows, double nics)
{
    double room = uplinks(m, w, t);

    if (!(t->loaded < 1))
        return 1;
    if (!isnan(room))
        return fmin(1, fmax(t->loaded, room / (nics * w->at_once)));
    return flows * w->at_once <= 1 ? 1 : fmax(t->loaded, 1 / (flows * w->at_once));
}

/* B of the way between domains: a ring, or one hop of it, crosses with `nics` NICs at a time. */
static double outer_rate(const struct matrix *m, const struct ways *w, int nics)
{
    double flows = w->shape.racks > 1 ? (double)w->crossings / w->shape.racks : 1;

    return matrix_rate(m, w->outer, DIR_BI) * w->outer_factor *
           share_of(m, w, &m->tier[w->outer], flows, (double)w->crossings * nics);
}

/* B of a ring: inside a domain one way in and one out; across, one ring per NIC. */
static double ring_rate(const struct matrix *m, const struct ways *w)
{
    double rate = INFINITY;

    if (w->inner >= 0)
        rate = matrix_rate(m, w->inner, DIR_BI) * w->inner_factor;
    if (w->outer >= 0) {
        double across = w->shape.nics * outer_rate(m, w, w->shape.nics);
        rate = isnan(across) || across < rate ? across : rate;
    }
    return rate;
}

static bool of_gpus(const struct matrix *m)
{
    return m->topo.endpoint[0].kind == ENDPOINT_GPU;
}

/* One turn of a ring: the latency of its first hop inside and of every crossing, then the further
 * hops inside, which on GPUs are pipelined, and what moves in `busy` seconds at the ring's rate. */
static double ring_turn(const struct matrix *m, const struct ways *w, double busy)
{
    double in = w->inner >= 0 ? hop_alpha(m, w->inner) : 0;
    double out = w->outer >= 0 ? hop_alpha(m, w->outer) : 0;
    int crossings = w->outer < 0 ? 0 : w->shape.domains - 1;
    int inside = w->shape.ranks - 1 - crossings;
    double first = (inside ? in : 0) + crossings * out + w->alpha_add;

    if (inside < 2)
        return first + busy;
    if (!of_gpus(m))
        return first + (inside - 1) * in + busy;
    if (crossings)
        return first + (inside - 1) * fmin(in, PROTOCOL_HOP_SIMPLE) + busy;
    return first + protocol_ring(inside - 1, in, busy, 0);
}

/* Every rank sends S/G to every other one; classes that use NICs share them, the others run beside.
 */
static double all_to_all_time(const struct matrix *m, const struct ways *w, double bytes)
{
    double inside = 0, across = 0, alpha = 0;
    double per_rank = (double)w->shape.nics / w->shape.per_domain;
    int n = w->shape.ranks;

    for (int t = 0; t < m->tiers; t++) {
        if (!(w->share[t] > 0))
            continue;
        double part = bytes * (n - 1) / n * w->share[t], rate = matrix_rate(m, t, DIR_BI);
        bool outside = w->outer >= 0 && (m->tier[t].nic || t == w->outer);
        if (outside)
            across += part / (rate * w->outer_factor *
                              share_of(m, w, &m->tier[t], n * w->share[t], n) * fmin(1, per_rank));
        else
            inside += part / (rate * w->inner_factor);
        /* host memory sends one message after another */
        double peer = of_gpus(m) ? PROTOCOL_PEER : curve_floor(&m->tier[t].curve[DIR_UNI]);
        alpha = fmax(alpha, hop_alpha(m, t) + peer * (n - 2));
    }
    return alpha + w->alpha_add + (isnan(inside) || isnan(across) ? NAN : fmax(inside, across));
}

static double sendrecv_time(const struct matrix *m, const struct ways *w, double bytes)
{
    double in = 0, out = 0;

    if (w->inner >= 0)
        in = hop_alpha(m, w->inner) + bytes / (matrix_rate(m, w->inner, DIR_BI) * w->inner_factor);
    if (w->outer >= 0) {
        out = hop_alpha(m, w->outer) + bytes / outer_rate(m, w, 1);
    }
    return w->alpha_add + (isnan(in) || isnan(out) ? NAN : fmax(in, out));
}

double model_time(const struct matrix *m, const struct ways *w, enum op op, double bytes)
{
    int n = w->shape.ranks;

    if (w->inner_factor <= 0 || w->outer_factor <= 0)
        return INFINITY;
    if (op_table[op].links == OP_EXCHANGE)
        return all_to_all_time(m, w, bytes);
    if (op_table[op].links == OP_NEXT)
        return sendrecv_time(m, w, bytes);
    double ring = bytes / ring_rate(m, w);
    if (op_table[op].share != OP_WHOLE)
        ring = ring * (n - 1) / n;
    return op_table[op].turns * ring_turn(m, w, ring);
}
