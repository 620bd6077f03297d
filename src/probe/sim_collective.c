/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on the simulated fabric.
 *
 * A published curve of the preset is used when op and group match it; elsewhere a ring in member
 * order (all_gather, reduce_scatter, all_reduce, broadcast, reduce), a pairwise exchange
 * (all_to_all) or the single hop (sendrecv).  Ring: NCCL src/graph/tuning.cc, latency = steps *
 * (alpha of the link), further hops inside a domain as base/protocol.h says, bandwidth = the
 * slowest link; a ring leaves a domain over the NICs of all its `g` members there at once, each
 * carrying 1/g, so the slowest of those NICs rules.  all_to_all: one pair's latency and
 * PROTOCOL_PEER for each further peer; every member's NIC carries its own traffic, and the slowest
 * member rules (nccl-tests issue #267). */
#include <math.h>

#include "base/protocol.h"
#include "probe/sim.h"

struct links {
    double alpha_in, alpha_out; /* summed over the ring's hops inside and between domains */
    double Bps;                 /* of the slowest hop, NICs of a domain added up */
    double in_Bps;              /* of the slowest hop inside a domain */
    double nic_Bps;             /* of the slowest hop that crosses NICs, one NIC; INFINITY: none */
    int crossings, per_domain;
};

static int domain_of(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : at[LEVEL_HOST];
}

/* What a fault between the racks of a and b leaves. */
static double racks_factor(const struct sim *s, int a, int b)
{
    double worst = 1;

    for (int f = 0; f < s->faults; f++)
        if (s->fault[f].kind == FAULT_SLOW_RACKS && sim_concerns(s, &s->fault[f], a, b, true))
            worst = fmin(worst, s->fault[f].factor);
    return worst;
}

/* What the slowest member's own fault leaves of its traffic between domains, or inside one. */
static double member_factor(const struct sim *s, const int *ids, int n, bool between)
{
    double worst = 1;

    for (int f = 0; f < s->faults; f++) {
        const struct fault *x = &s->fault[f];
        bool nic = x->kind == FAULT_SLOW_NIC, gpu = x->kind == FAULT_SLOW_GPU;
        if (!(between ? nic : gpu) && x->kind != FAULT_SLOW_HOST)
            continue;
        for (int i = 0; i < n; i++)
            if (ids[i] == x->a ? nic || gpu : 0)
                worst = fmin(worst, x->factor);
        for (int i = 0; x->kind == FAULT_SLOW_HOST && i < n; i++)
            if (s->truth->endpoint[ids[i]].place.at[LEVEL_HOST] == x->a)
                worst = fmin(worst, x->factor);
    }
    return worst;
}

/* Walk the ring of members once. */
static struct links walk(const struct sim *s, const int *ids, int n)
{
    const struct topo *t = s->truth;
    struct links l = {0, 0, INFINITY, INFINITY, INFINITY, 0, 0};
    double out_Bps = INFINITY;
    int run = 0, fewest = n;

    for (int i = 0; i < n; i++) {
        int a = ids[i], b = ids[(i + 1) % n];
        int tier = topo_tier(t->tier, t->tiers, &t->endpoint[a].place, &t->endpoint[b].place);
        const struct fabric_tier *ft = &s->fabric->tier[tier];
        run++;
        if (domain_of(t, a) == domain_of(t, b)) {
            l.alpha_in += ft->alpha.value;
            l.Bps = fmin(l.Bps, ft->Bps.value * sim_factor(s, a, b, tier));
            continue;
        }
        l.alpha_out += ft->alpha.value;
        out_Bps = fmin(out_Bps, ft->Bps.value * racks_factor(s, a, b));
        l.crossings++;
        fewest = run < fewest ? run : fewest;
        run = 0;
    }
    if (l.crossings)
        out_Bps *= member_factor(s, ids, n, true);
    l.per_domain = l.crossings ? fewest : n;
    l.nic_Bps = out_Bps;
    l.in_Bps = l.Bps;
    l.Bps = fmin(l.Bps, out_Bps * l.per_domain);
    return l;
}

static const struct fabric_collective *published(const struct sim *s, enum op op, int n,
                                                 int domains)
{
    for (int i = 0; i < s->fabric->collectives; i++) {
        const struct fabric_collective *c = &s->fabric->collective[i];
        if (c->op == op && c->ranks == n && c->domains == domains)
            return c;
    }
    return NULL;
}

/* The worst factor between neighbours of the ring: what a fault leaves of a published curve. */
static double ring_factor(const struct sim *s, const int *ids, int n)
{
    const struct topo *t = s->truth;
    double worst = 1;

    for (int i = 0; i < n && s->faults; i++) {
        int a = ids[i], b = ids[(i + 1) % n];
        int tier = topo_tier(t->tier, t->tiers, &t->endpoint[a].place, &t->endpoint[b].place);
        worst = fmin(worst, sim_factor(s, a, b, tier));
    }
    return worst;
}

/* One turn: n - 1 of the ring's n hops, of which a domain's further ones are pipelined, and `busy`
 * seconds of moving at the ring's rate. */
static double ring_turn(const struct links *l, int n, double busy)
{
    int crossings = l->crossings ? l->crossings - 1 : 0, inside = n - 1 - crossings;
    double in = l->crossings < n ? l->alpha_in / (n - l->crossings) : 0;
    double out = l->crossings ? l->alpha_out / l->crossings : 0;

    if (inside < 2)
        return (inside ? in : 0) + crossings * out + busy;
    if (!crossings)
        return in + protocol_ring(inside - 1, in, busy, 0);
    return in + crossings * out + (inside - 1) * fmin(in, PROTOCOL_HOP_SIMPLE) + busy;
}

double sim_collective(const struct sim *s, enum op op, const int *ids, int n, double bytes)
{
    struct links l = walk(s, ids, n);
    const struct fabric_collective *c = published(s, op, n, l.crossings ? l.crossings : 1);
    double share = (double)(n - 1) / n;

    if (c) { /* a fault stretches what grows with the size */
        double floor = fmin(c->alpha.value, fabric_collective_time(c, bytes));
        return floor + (fabric_collective_time(c, bytes) - floor) / ring_factor(s, ids, n);
    }
    double rounds = op == OP_ALL_REDUCE ? 2 : 1;
    if (op == OP_ALL_TO_ALL) {
        double alpha = fmax(l.crossings < n ? l.alpha_in / (n - l.crossings) : 0,
                            l.crossings ? l.alpha_out / l.crossings : 0);
        double near = bytes * (l.per_domain - 1) / n / (l.in_Bps * member_factor(s, ids, n, false));
        double far = l.crossings ? bytes * (n - l.per_domain) / n / l.nic_Bps : 0;
        return alpha + (n - 2) * PROTOCOL_PEER + fmax(near, far);
    }
    if (op == OP_SENDRECV)
        return fmax(l.crossings < n ? l.alpha_in / (n - l.crossings) : 0,
                    l.crossings ? l.alpha_out / l.crossings : 0) +
               bytes / (l.crossings ? fmin(l.Bps, l.nic_Bps) : l.Bps);
    return rounds * ring_turn(&l, n, bytes * (op_is_rooted(op) ? 1 : share) / l.Bps);
}
