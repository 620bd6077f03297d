/* SPDX-License-Identifier: BSD-3-Clause */
/* Who shares the uplinks of a leaf.  They carry uplink_share of what its endpoints' NICs do, each
 * way; flows that cross leaves at once share them evenly, and one flow alone notices nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/plan.h"
#include "probe/sim/sim.h"

/* What flows up from and down to each leaf in one round, in whole NICs of an endpoint. */
struct sim_uplinks {
    const struct round *round;
    int id;
    double *up, *down;
    int *endpoints;
};

/* The flow from a to b, or `part` of one: counted, or what the uplinks leave of it. */
typedef double flow_fn(struct sim_uplinks *u, const struct topo *t, int a, int b, double part);

static int leaf_of(const struct topo *t, int id)
{
    return t->endpoint[id].place.at[LEVEL_LEAF];
}

static bool climbs(const struct topo *t, int a, int b)
{
    return leaf_of(t, a) >= 0 && leaf_of(t, b) >= 0 && leaf_of(t, a) != leaf_of(t, b);
}

static double count_flow(struct sim_uplinks *u, const struct topo *t, int a, int b, double part)
{
    if (climbs(t, a, b)) {
        u->up[leaf_of(t, a)] += part;
        u->down[leaf_of(t, b)] += part;
    }
    return INFINITY;
}

static double room_for_flow(struct sim_uplinks *u, const struct topo *t, int a, int b, double part)
{
    int x = leaf_of(t, a), y = leaf_of(t, b);

    (void)part;
    return climbs(t, a, b) ? fmin(u->endpoints[x] / u->up[x], u->endpoints[y] / u->down[y])
                           : INFINITY;
}

/* A ring leaves the domain that ends before ids[end] over the NICs of all its members there. */
static double ring_flows(struct sim_uplinks *u, const struct topo *t, const int *ids, int n,
                         flow_fn *fn)
{
    double least = INFINITY;

    for (int i = 0, run = 0; i < n; i++) {
        run++;
        if (sim_domain(t, ids[i]) == sim_domain(t, ids[(i + 1) % n]))
            continue;
        for (int k = 1 - run; k <= 0; k++)
            least = fmin(least, fn(u, t, ids[i + k], ids[(i + k + run) % n], 1));
        run = 0;
    }
    return least;
}

/* Everybody sends evenly to all; what leaves a domain goes over the sender's NIC. */
static double all_flows(struct sim_uplinks *u, const struct topo *t, const int *ids, int n,
                        flow_fn *fn)
{
    double least = INFINITY;

    for (int i = 0; i < n; i++) {
        int outside = 0;
        for (int k = 0; k < n; k++)
            outside += sim_domain(t, ids[k]) != sim_domain(t, ids[i]);
        for (int k = 0; k < n; k++)
            if (sim_domain(t, ids[k]) != sim_domain(t, ids[i]))
                least = fmin(least, fn(u, t, ids[i], ids[k], 1.0 / outside));
    }
    return least;
}

static double flows(struct sim_uplinks *u, const struct topo *t, enum op op,
                    const struct plan_group *g, flow_fn *fn)
{
    const int *ids = g->members;
    double least = INFINITY;

    if (op == OP_ALL_TO_ALL)
        return all_flows(u, t, ids, g->size, fn);
    if (!op_is_pair(op) && op != OP_SENDRECV)
        return ring_flows(u, t, ids, g->size, fn);
    int hops = op_is_pair(op) ? op == OP_PAIR_BIBW ? 2 : 1 : g->size;
    for (int i = 0; i < hops; i++)
        if (sim_domain(t, ids[i]) != sim_domain(t, ids[(i + 1) % g->size]))
            least = fmin(least, fn(u, t, ids[i], ids[(i + 1) % g->size], 1));
    return least;
}

void sim_uplinks_free(struct sim_uplinks *u)
{
    if (!u)
        return;
    free(u->up);
    free(u->down);
    free(u->endpoints);
    free(u);
}

static struct sim_uplinks *count(const struct topo *t, const struct round *r)
{
    size_t leaves = (size_t)t->group[LEVEL_LEAF].count + 1;
    struct sim_uplinks *u = mem_calloc(1, sizeof(*u));

    *u = (struct sim_uplinks){r, r->id, mem_calloc(leaves, sizeof(double)),
                              mem_calloc(leaves, sizeof(double)), mem_calloc(leaves, sizeof(int))};
    for (int i = 0; i < t->endpoints; i++)
        if (leaf_of(t, i) >= 0)
            u->endpoints[leaf_of(t, i)]++;
    for (int i = 0; i < r->groups; i++)
        flows(u, t, r->op, &r->group[i], count_flow);
    return u;
}

double sim_share(struct sim *s, const struct round *r, int group, enum op op)
{
    if (s->fabric->uplink_share >= 1 || !r || op == OP_PAIR_LATENCY)
        return 1;
    if (!s->uplinks || s->uplinks->round != r || s->uplinks->id != r->id) {
        sim_uplinks_free(s->uplinks);
        s->uplinks = count(s->truth, r);
    }
    return fmin(1, s->fabric->uplink_share *
                       flows(s->uplinks, s->truth, op, &r->group[group], room_for_flow));
}
