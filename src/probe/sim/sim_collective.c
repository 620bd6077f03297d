/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on the simulated fabric: what the preset says of a healthy group that runs alone, and
 * what faults and a share of the uplinks do to the part of it that grows with the size.
 *
 * What they do is told by what moves: a ring in member order runs at its slowest hop (all_gather,
 * reduce_scatter, all_reduce, broadcast, reduce), and leaves a domain over the NICs of all its
 * members there at once, each carrying its part, so the slowest of those NICs rules; in all_to_all
 * every member's NIC carries its own traffic beside what stays inside, and the slowest member rules
 * (nccl-tests issue #267); sendrecv takes its slowest hop. */
#include <math.h>

#include "probe/sim/sim.h"

struct links {
    double in_Bps;  /* of the slowest hop inside a domain; INFINITY: none */
    double nic_Bps; /* of the slowest hop that crosses NICs, one endpoint's; INFINITY: none */
    int per_domain; /* members that leave a domain together: the fewest */
};

/* What the slowest member's own fault leaves of its traffic between domains. */
static double member_factor(const struct sim *s, const int *ids, int n)
{
    double worst = 1;

    for (int f = 0; f < s->faults; f++) {
        const struct fault *x = &s->fault[f];
        for (int i = 0; i < n; i++) {
            int host = s->truth->endpoint[ids[i]].place.at[LEVEL_HOST];
            if ((x->kind == FAULT_SLOW_NIC && ids[i] == x->a) ||
                (x->kind == FAULT_SLOW_HOST && host == x->a))
                worst = fmin(worst, x->factor);
        }
    }
    return worst;
}

/* Walk the ring of members once. */
static struct links walk(const struct sim *s, const int *ids, int n, bool faults)
{
    const struct topo *t = s->truth;
    double nics = fmin(1, (double)s->fabric->nics_per_host / s->fabric->gpus_per_host);
    struct links l = {INFINITY, INFINITY, n};
    int run = 0;

    for (int i = 0; i < n; i++) {
        int a = ids[i], b = ids[(i + 1) % n];
        int tier = topo_tier(t->tier, t->tiers, &t->endpoint[a].place, &t->endpoint[b].place);
        double Bps = s->fabric->tier[tier].Bps.value;
        if (faults)
            Bps *= sim_factor(s, a, b, tier);
        run++;
        if (sim_domain(t, a) == sim_domain(t, b)) {
            l.in_Bps = fmin(l.in_Bps, Bps);
            continue;
        }
        l.nic_Bps = fmin(l.nic_Bps, Bps);
        l.per_domain = run < l.per_domain ? run : l.per_domain;
        run = 0;
    }
    if (l.per_domain > 1)
        l.nic_Bps *= nics; /* which they share */
    if (faults)
        l.nic_Bps = fmin(l.nic_Bps, l.nic_Bps * member_factor(s, ids, n));
    return l;
}

/* Seconds that a byte moves. */
static double moving(const struct links *l, enum op op, int n)
{
    int g = l->per_domain;

    if (op == OP_ALL_TO_ALL)
        return fmax((g - 1) / l->in_Bps, (n - g) / l->nic_Bps) / n;
    if (op == OP_SENDRECV)
        return 1 / fmin(l->in_Bps, l->nic_Bps);
    return 1 / fmin(l->in_Bps, l->nic_Bps * g);
}

double sim_collective(const struct sim *s, enum op op, const int *ids, int n, double bytes,
                      double share)
{
    double whole = s->healthy(s->of, op, ids, n, bytes);

    if (!s->faults && share >= 1)
        return whole;
    double floor = fmin(whole, s->healthy(s->of, op, ids, n, 8));
    struct links well = walk(s, ids, n, false), now = walk(s, ids, n, true);
    now.nic_Bps *= share;
    return floor + (whole - floor) * moving(&now, op, n) / moving(&well, op, n);
}
