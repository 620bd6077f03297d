/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "measure/plan.h"

/* Remaining rate (0..1) of src -> dst on this tier. */
static double rate_left(const struct sim *s, int src, int dst, int tier)
{
    double worst = 1;

    for (int i = 0; i < s->faults; i++)
        if (sim_concerns(s, &s->fault[i], src, dst, s->fabric->tier[tier].nic))
            worst = fmin(worst, s->fault[i].factor);
    return worst;
}

/* Seconds that faults add to a message one way. */
static double added(const struct sim *s, int src, int dst, int tier)
{
    double sum = 0;

    for (int i = 0; s->late && i < s->faults; i++)
        if (s->fault[i].added > 0 &&
            sim_concerns(s, &s->fault[i], src, dst, s->fabric->tier[tier].nic))
            sum += s->fault[i].added;
    return sum;
}

double sim_pair(const struct sim *s, enum op op, int src, int dst, double bytes, double share)
{
    const struct topo *t = s->truth;
    int tier = s->tiers ? topo_tiers_of(s->tiers, src, dst, s->by_nic)
                        : topo_tier_by(t, src, dst, s->by_nic);
    const struct fabric_tier *ft = &s->fabric->tier[tier];
    double late = added(s, src, dst, tier), alpha = ft->alpha.value + late,
           there = share * rate_left(s, src, dst, tier),
           back = share * rate_left(s, dst, src, tier);

    if (op == OP_PAIR_LATENCY) /* half of a round trip */
        return ft->alpha.value + (late + added(s, dst, src, tier)) / 2 +
               bytes / ft->Bps.value * (1 / there + 1 / back) / 2;
    if (op == OP_PAIR_BIBW)
        return alpha / OP_PAIR_WINDOW + bytes / (ft->bi_Bps.value * fmin(there, back));
    return alpha / OP_PAIR_WINDOW + bytes / (ft->Bps.value * there);
}

/* --- flows: traffic of a group between domains --- */

/* Value of the flow from a to b, or of `part` of one. */
typedef double flow_fn(const void *of, const struct topo *t, int a, int b, double part);

/* Smallest value over the flows of a ring.  The ring leaves the domain that ends before ids[end]
 * over the NICs of all its members there. */
static double ring_flows(const void *of, const struct topo *t, const int *ids, int n, flow_fn *fn)
{
    double least = INFINITY;

    for (int i = 0, run = 0; i < n; i++) {
        run++;
        if (topo_domain(t, ids[i]) == topo_domain(t, ids[(i + 1) % n]))
            continue;
        for (int k = 1 - run; k <= 0; k++)
            least = fmin(least, fn(of, t, ids[i + k], ids[(i + k + run) % n], 1));
        run = 0;
    }
    return least;
}

/* The same for all_to_all: every member sends evenly to all; traffic to other domains uses the
 * sender's NIC. */
static double all_flows(const void *of, const struct topo *t, const int *ids, int n, flow_fn *fn)
{
    double least = INFINITY;

    for (int i = 0; i < n; i++) {
        int outside = 0;
        for (int k = 0; k < n; k++)
            outside += topo_domain(t, ids[k]) != topo_domain(t, ids[i]);
        for (int k = 0; k < n; k++)
            if (topo_domain(t, ids[k]) != topo_domain(t, ids[i]))
                least = fmin(least, fn(of, t, ids[i], ids[k], 1.0 / outside));
    }
    return least;
}

static double flows(const void *of, const struct topo *t, enum op op, const struct round *r,
                    int group, flow_fn *fn)
{
    const struct plan_group *g = &r->group[group];
    const bool all = stage_by_nic(r->stage);
    const int *ids = g->members;
    double least = INFINITY;

    if (op_table[op].links == OP_EXCHANGE)
        return all_flows(of, t, ids, g->size, fn);
    if (op_table[op].links == OP_RING)
        return ring_flows(of, t, ids, g->size, fn);
    int hops = op_is_pair(op) ? op == OP_PAIR_BIBW ? 2 : 1 : g->size;
    for (int i = 0; i < hops; i++)
        if (all || topo_domain(t, ids[i]) != topo_domain(t, ids[(i + 1) % g->size]))
            least = fmin(least, fn(of, t, ids[i], ids[(i + 1) % g->size], 1));
    return least;
}

/* --- collectives --- */

/* Collectives on the simulated fabric: the preset gives the time of a healthy group alone; faults
 * and a share of the uplinks slow the part that grows with the size.
 *
 * The effect depends on the traffic.  A ring in member order (all_gather, reduce_scatter,
 * all_reduce, broadcast, reduce) runs at the speed of its slowest hop.  It leaves a domain over the
 * NICs of all its members there at once, each carrying a part, so the slowest of those NICs
 * decides.  In all_to_all every member's NIC carries its own traffic beside the traffic inside, and
 * the slowest member decides (nccl-tests issue #267).  sendrecv takes the time of its slowest
 * hop. */
struct links {
    double in_Bps;  /* slowest hop inside a domain; INFINITY: none */
    double nic_Bps; /* one endpoint's slowest hop across NICs; INFINITY: none */
    int per_domain; /* smallest number of members that leave a domain together */
};

static double left_of_flow(const void *of, const struct topo *t, int a, int b, double part)
{
    (void)part;
    return rate_left(of, a, b, topo_tier(t, a, b));
}

static bool is_end(const struct sim *s, const struct topo *t, const struct sim_fault *f, int id)
{
    int at = f->ids ? id : topo_at(t, id, (int)f->level);

    return (s->world && s->world->pxn > 0 /* other NICs */) || f->a < 0 || at == f->a || at == f->b;
}

/* True if the fault slows one of the flows of an all_to_all. */
static bool slows_exchange(const struct sim *s, const struct sim_fault *f, const int *ids, int n)
{
    const struct topo *t = s->truth;

    for (int i = 0; i < n; i++)
        for (int k = 0; is_end(s, t, f, ids[i]) && k < n; k++)
            if (topo_domain(t, ids[i]) != topo_domain(t, ids[k]) &&
                (sim_concerns(s, f, ids[i], ids[k], true) ||
                 sim_concerns(s, f, ids[k], ids[i], true)))
                return true;
    return false;
}

/* Share of the rate that faults leave to the slowest flow between domains. */
static double flows_left(const struct sim *s, enum op op, const int *ids, int n)
{
    double worst = 1;

    if (op_table[op].links == OP_RING)
        return fmin(1, ring_flows(s, s->truth, ids, n, left_of_flow));
    for (int f = 0; f < s->faults && op_table[op].links == OP_EXCHANGE; f++)
        if (slows_exchange(s, &s->fault[f], ids, n))
            worst = fmin(worst, s->fault[f].factor);
    return worst;
}

/* Walk the ring of members once. */
static struct links walk(const struct sim *s, enum op op, const int *ids, int n, bool faults)
{
    const struct topo *t = s->truth;
    double nics = fmin(1, (double)s->fabric->nics_per_host / s->fabric->gpus_per_host),
           healthy = INFINITY;
    struct links l = {INFINITY, INFINITY, n};
    int run = 0;

    for (int i = 0; i < n; i++) {
        int a = ids[i], b = ids[(i + 1) % n];
        int tier = topo_tier(t, a, b);
        bool inside = topo_domain(t, a) == topo_domain(t, b);
        double Bps = s->fabric->tier[tier].Bps.value, left = 1;
        if (faults && (inside || op_table[op].links == OP_NEXT)) /* otherwise in flows_left() */
            left = rate_left(s, a, b, tier);
        run++;
        if (inside) {
            l.in_Bps = fmin(l.in_Bps, Bps * left);
            continue;
        }
        healthy = fmin(healthy, Bps);
        l.nic_Bps = fmin(l.nic_Bps, Bps * left);
        l.per_domain = run < l.per_domain ? run : l.per_domain;
        run = 0;
    }
    if (faults)
        l.nic_Bps = fmin(l.nic_Bps, healthy * flows_left(s, op, ids, n));
    if (l.per_domain > 1 && op_table[op].links != OP_NEXT) /* OP_NEXT sends one flow */
        l.nic_Bps *= nics;                                 /* the members share the NICs */
    return l;
}

/* Seconds per byte of the part that grows with the size. */
static double moving(const struct links *l, enum op op, int n)
{
    int g = l->per_domain;

    if (op_table[op].links == OP_EXCHANGE)
        return fmax((g - 1) / l->in_Bps, (n - g) / l->nic_Bps) / n;
    if (op_table[op].links == OP_NEXT)
        return 1 / fmin(l->in_Bps, l->nic_Bps);
    return 1 / fmin(l->in_Bps, l->nic_Bps * g);
}

/* Seconds that faults add to a message around the ring; a tree of log2(n) steps uses each hop
 * once. */
static double added_to_group(const struct sim *s, const int *ids, int n)
{
    double most = 0;

    for (int i = 0; s->late && i < n; i++) {
        int a = ids[i], b = ids[(i + 1) % n];
        most = fmax(most, added(s, a, b, topo_tier(s->truth, a, b)));
    }
    return most * ceil(log2(n));
}

double sim_collective(const struct sim *s, enum op op, const int *ids, int n, double bytes,
                      double share)
{
    double whole = s->healthy(s->of, op, ids, n, bytes);

    if (!s->faults && share >= 1)
        return whole;
    double floor = fmin(whole, s->healthy(s->of, op, ids, n, 8));
    struct links well = walk(s, op, ids, n, false), now = walk(s, op, ids, n, true);
    now.nic_Bps *= share;
    return floor + added_to_group(s, ids, n) +
           (whole - floor) * moving(&now, op, n) / moving(&well, op, n);
}

/* --- uplinks --- */

/* Flows that share the uplinks of a leaf (of a rack, if no leaf is known).  The uplinks carry
 * uplink_share of the rate of the endpoints' NICs, each way, less the lost ones.  Flows that cross
 * leaves at the same time share them evenly; a single flow is not slowed. */

/* Groups of endpoints that share uplinks: traffic up from and down to each in one round, and the
 * capacity, in units of an endpoint's NIC. */
struct sim_load {
    int level, of; /* `of` consecutive groups of a level are one; level -1: each NIC is one */
    int lanes;     /* hashed uplinks per group, each with its own number; 0: one shared */
    double *up, *down, *room;
};

enum { LOADS_MAX = 8 };
struct sim_uplinks {
    const struct sim *sim;
    const struct round *round;
    int id, moment; /* see moment_of() */
    double *share;  /* result of sim_share() by group of the round; NAN: not asked yet */
    struct sim_load load[LOADS_MAX];
    int loads;
};

/* Group of an endpoint; -1: none. */
static int load_group(const struct topo *t, const struct sim_load *l, int id)
{
    int at = l->level < 0 ? id : topo_at(t, id, l->level);

    return at < 0 || l->of == 1 ? at : at / l->of;
}

/* True if a flow uses these uplinks; *x and *y are the indices at which it is counted. */
static bool climbs(const struct sim *s, const struct sim_load *l, int a, int b, int *x, int *y)
{
    const struct topo *t = s->truth;

    *x = load_group(t, l, sim_sender(s, a, b));
    *y = load_group(t, l, b);
    if (*x < 0 || *y < 0 || *x == *y)
        return false;
    if (l->lanes) {
        *x = *x * l->lanes + sim_lane(s, a, b, l->lanes);
        *y = *y * l->lanes + sim_lane(s, b + t->endpoints, a, l->lanes); /* another hash */
    }
    return true;
}

static double count_flow(const void *of, const struct topo *t, int a, int b, double part)
{
    const struct sim_uplinks *u = of;
    int x, y;

    (void)t;
    for (const struct sim_load *l = u->load; u->loads && l < u->load + u->loads; l++)
        if (climbs(u->sim, l, a, b, &x, &y)) {
            l->up[x] += part;
            l->down[y] += part;
        }
    return INFINITY;
}

static double room_for_flow(const void *of, const struct topo *t, int a, int b, double part)
{
    const struct sim_uplinks *u = of;
    double least = INFINITY;
    int x, y;

    (void)t;
    (void)part;
    for (const struct sim_load *l = u->load; u->loads && l < u->load + u->loads; l++)
        if (climbs(u->sim, l, a, b, &x, &y))
            least = fmin(least, fmin(l->room[x] / l->up[x], l->room[y] / l->down[y]));
    return least;
}

/* --- uplinks of a large all_to_all --- */

/* An all_to_all of n members has n^2 flows.  With many members, the flows of each group are summed
 * up by counting members, and the load of a hashed uplink is drawn: the normal distribution with
 * the mean and the variance of F flows over L uplinks, each flow on any of them by chance. */
enum { EXCHANGE_FLOWS = 1024 }; /* members up to which each flow is hashed by itself */

static bool is_large_exchange(const struct sim *s, enum op op, int n)
{
    return op_table[op].links == OP_EXCHANGE && n > EXCHANGE_FLOWS && s->world &&
           !(s->world->pxn > 0); /* each pair has a NIC of its own choice */
}

/* Members of one group, of one domain, or of both; parts: sum of their parts of a flow. */
struct tally {
    double members, parts;
};

struct census {
    struct map map;
    struct tally *tally;
    int tallies;
};

static struct tally *tally_of(struct census *c, int what, int group, int domain)
{
    int *at = map_at(&c->map, (uint64_t)what << 62 | (uint64_t)group << 31 | (unsigned)domain, NULL,
                     NULL);

    if (*at == MAP_NONE) {
        *at = c->tallies;
        MEM_PUSH(c->tally, c->tallies) = (struct tally){0, 0};
    }
    return &c->tally[*at];
}

enum { OF_ALL, OF_DOMAIN, OF_GROUP, OF_BOTH };

/* Sum over the members that a member of this group and domain exchanges flows with. */
static struct tally partners(struct census *c, int group, int domain)
{
    struct tally all = *tally_of(c, OF_ALL, 0, 0), d = *tally_of(c, OF_DOMAIN, 0, domain),
                 g = *tally_of(c, OF_GROUP, group, 0), both = *tally_of(c, OF_BOTH, group, domain);

    return (struct tally){all.members - d.members - g.members + both.members,
                          all.parts - d.parts - g.parts + both.parts};
}

static void take_census(struct census *c, const struct topo *t, const struct sim_load *l,
                        const struct plan_group *g)
{
    int *outside = mem_calloc((size_t)g->size + 1, sizeof(*outside));

    *c = (struct census){.tallies = 0};
    for (int i = 0; i < g->size; i++)
        tally_of(c, OF_DOMAIN, 1, topo_domain(t, g->members[i]))->members++;
    for (int i = 0; i < g->size; i++)
        outside[i] =
            g->size - (int)tally_of(c, OF_DOMAIN, 1, topo_domain(t, g->members[i]))->members;
    for (int i = 0; i < g->size; i++) {
        const int group = load_group(t, l, g->members[i]), domain = topo_domain(t, g->members[i]);
        const int key[][3] = {
            {OF_ALL, 0, 0}, {OF_DOMAIN, 0, domain}, {OF_GROUP, group, 0}, {OF_BOTH, group, domain}};

        for (int k = 0; k < 4 && group >= 0 && outside[i]; k++) {
            struct tally *to = tally_of(c, key[k][0], key[k][1], key[k][2]);
            to->members++;
            to->parts += 1.0 / outside[i];
        }
    }
    free(outside);
}

/* Spread flows over the uplinks of a group.  sum: number of flows, sum of their parts. */
static void spread(const struct sim *s, const struct sim_load *l, int group, bool down,
                   struct tally sum)
{
    const int lanes = l->lanes ? l->lanes : 1;
    const bool once = s->world->hashing.rehash == REHASH_CAMPAIGN;
    double *load = (down ? l->down : l->up) + group * lanes, mean = sum.parts / lanes,
           sd = sum.members > 0 ? mean * sqrt((lanes - 1) / sum.members) : 0;

    for (int k = 0; k < lanes; k++) {
        unsigned long long key = sim_mix(s->seed, EXCHANGE_FLOWS);
        struct rng rng;

        key = sim_mix(key, (unsigned)(group * lanes + k) * 2ULL + down);
        rng_seed(&rng, sim_mix(key, once ? 0 : (unsigned)s->now.block + 1));
        load[k] += fmax(0, mean + sd * rng_normal(&rng));
    }
}

static int groups_of(const struct sim *s, const struct sim_load *l)
{
    return l->level < 0 ? s->truth->endpoints : s->truth->group[l->level].count / l->of + 1;
}

static void count_exchange(const struct sim_uplinks *u, const struct plan_group *g)
{
    const struct topo *t = u->sim->truth;

    for (const struct sim_load *l = u->load; l < u->load + u->loads; l++) {
        const int groups = groups_of(u->sim, l);
        struct tally(*sum)[2] = mem_calloc((size_t)groups + 1, sizeof(*sum));
        struct census c;

        take_census(&c, t, l, g);
        for (int i = 0; i < g->size; i++) {
            const int group = load_group(t, l, g->members[i]),
                      domain = topo_domain(t, g->members[i]);
            const double outside =
                g->size - tally_of(&c, OF_DOMAIN, 1, domain)->members; /* of the member */

            if (group < 0 || !(outside > 0))
                continue;
            const struct tally with = partners(&c, group, domain);
            sum[group][0].members += with.members;
            sum[group][0].parts += with.members / outside;
            sum[group][1].members += with.members;
            sum[group][1].parts += with.parts;
        }
        for (int i = 0; i < groups; i++)
            for (int down = 0; down < 2 && sum[i][0].members > 0; down++)
                spread(u->sim, l, i, down, sum[i][down]);
        free(sum);
        free(c.tally);
        map_free(&c.map);
    }
}

/* Least room over the uplinks that the group uses: all of its leaves, as its flows are many. */
static double room_for_exchange(const struct sim_uplinks *u, const struct plan_group *g)
{
    double least = INFINITY;

    for (const struct sim_load *l = u->load; l < u->load + u->loads; l++) {
        const int lanes = l->lanes ? l->lanes : 1;

        for (int i = 0, last = -1; i < g->size; i++) {
            const int group = load_group(u->sim->truth, l, g->members[i]);

            for (int k = 0; group >= 0 && group != last && k < lanes; k++) {
                const int at = group * lanes + k;

                if (l->up[at] > 0)
                    least = fmin(least, l->room[at] / l->up[at]);
                if (l->down[at] > 0)
                    least = fmin(least, l->room[at] / l->down[at]);
            }
            last = group;
        }
    }
    return least;
}

/* --- uplinks that are leaves alone --- */

/* Flows if there are only leaves: fast, because all_to_all has n^2 flows. */
static inline bool climbs_leaf(const struct sim_load *l, const struct topo *t, int a, int b, int *x,
                               int *y)
{
    *x = topo_at(t, a, l->level);
    *y = topo_at(t, b, l->level);
    return *x >= 0 && *y >= 0 && *x != *y;
}

static double count_leaf_flow(const void *of, const struct topo *t, int a, int b, double part)
{
    const struct sim_load *l = of;
    int x, y;

    if (climbs_leaf(l, t, a, b, &x, &y)) {
        l->up[x] += part;
        l->down[y] += part;
    }
    return INFINITY;
}

static double room_for_leaf_flow(const void *of, const struct topo *t, int a, int b, double part)
{
    const struct sim_load *l = of;
    int x, y;

    (void)part;
    return climbs_leaf(l, t, a, b, &x, &y) ? fmin(l->room[x] / l->up[x], l->room[y] / l->down[y])
                                           : INFINITY;
}

static void free_uplinks(struct sim_uplinks *u)
{
    for (int i = 0; u && i < u->loads; i++) {
        free(u->load[i].up);
        free(u->load[i].down);
        free(u->load[i].room);
    }
    if (u)
        free(u->share);
    free(u);
}

void sim_free(struct sim *s)
{
    free(s->fault);
    free_uplinks(s->uplinks);
    memset(s, 0, sizeof(*s));
}

/* Remaining share of the uplinks of a leaf. */
static double uplinks_left(const struct sim *s, int leaf)
{
    double left = 1;

    for (int i = 0; i < s->faults; i++)
        if (s->fault[i].kind == FAULT_LOST_UPLINKS && s->fault[i].a == leaf &&
            sim_fault_on(s, &s->fault[i], -1, -1))
            left = fmin(left, s->fault[i].factor);
    return left;
}

/* Add room for `groups` groups; each endpoint adds `share` of its NIC. */
static struct sim_load *add_load(struct sim_uplinks *u, struct sim_load l, int groups, double share)
{
    const struct sim *s = u->sim;
    size_t room = (size_t)groups * (l.lanes ? (size_t)l.lanes : 1) + 1;

    l.up = mem_calloc(room, sizeof(double));
    l.down = mem_calloc(room, sizeof(double));
    l.room = mem_calloc(room, sizeof(double));
    for (int i = 0; i < s->truth->endpoints && !l.lanes; i++)
        if (load_group(s->truth, &l, i) >= 0)
            l.room[load_group(s->truth, &l, i)] += share;
    u->load[u->loads] = l;
    return &u->load[u->loads++];
}

/* Add the uplinks of leaves as in the preset, less the lost ones. */
static void add_leaves(struct sim_uplinks *u)
{
    const struct sim *s = u->sim;
    enum level level = sim_uplink_level(s->truth);
    int leaves = s->truth->group[level].count;
    struct sim_load *l =
        add_load(u, (struct sim_load){(int)level, 1, 0, 0, 0, 0}, leaves, s->fabric->uplink_share);

    for (int i = 0; i < leaves; i++)
        l->room[i] *= uplinks_left(s, i);
}

/* Hashed: each uplink carries one NIC, or its share if there are fewer uplinks than NICs. */
static void add_lanes(struct sim_uplinks *u, int lanes)
{
    const struct topo *t = u->sim->truth;
    int level = (int)sim_uplink_level(t), leaves = t->group[level].count;
    struct sim_load *l = add_load(u, (struct sim_load){level, 1, lanes, 0, 0, 0}, leaves, 0);

    for (int i = 0; i < t->endpoints; i++)
        for (int k = 0; k < lanes && topo_at(t, i, level) >= 0; k++)
            l->room[topo_at(t, i, level) * lanes + k] += 1.0 / lanes;
    for (int i = 0; i < leaves * lanes; i++)
        l->room[i] = fmax(1, l->room[i]);
}

static void add_taper(struct sim_uplinks *u, const struct sim_taper *taper)
{
    const struct topo *t = u->sim->truth;
    const struct fabric *f = u->sim->fabric;
    struct sim_load l = {(int)sim_uplink_level(t), (int)taper->of, 0, 0, 0, 0};

    if ((int)taper->level == TAPER_RACK)
        l.level = LEVEL_RACK;
    if ((int)taper->level == TAPER_SPINE)
        l.level = LEVEL_SPINE;
    if ((int)taper->level == TAPER_UNIT) { /* hosts are in order */
        l.level = LEVEL_HOST;
        l.of *= f->hosts_per_leaf ? f->hosts_per_leaf : f->hosts_per_rack;
    }
    add_load(u, l, t->group[l.level].count, 1 / taper->ratio);
}

/* Flows are hashed anew in each block; lost uplinks with states may differ in each turn. */
static int moment_of(const struct sim *s)
{
    for (int i = 0; i < s->faults; i++)
        if (s->fault[i].kind == FAULT_LOST_UPLINKS && s->fault[i].states)
            return s->now.turn;
    return s->varies ? s->now.block : 0;
}

static struct sim_uplinks *count_uplinks(const struct sim *s, const struct round *r)
{
    const struct sim_world *w = s->world;
    struct sim_uplinks *u = mem_calloc(1, sizeof(*u));

    *u = (struct sim_uplinks){.sim = s,
                              .round = r,
                              .id = r->id,
                              .moment = moment_of(s),
                              .share = mem_calloc((size_t)r->groups + 1, sizeof(double))};
    for (int i = 0; i < r->groups; i++)
        u->share[i] = NAN;
    add_leaves(u);
    if (w && w->hashing.uplinks > 0)
        add_lanes(u, (int)w->hashing.uplinks);
    for (int i = 0; w && i < w->tapers; i++)
        add_taper(u, &w->taper[i]);
    if (w && w->pxn > 0)
        add_load(u, (struct sim_load){-1, 1, 0, 0, 0, 0}, s->truth->endpoints, 1);
    for (int i = 0; i < r->groups; i++)
        if (is_large_exchange(s, r->op, r->group[i].size))
            count_exchange(u, &r->group[i]);
        else if (w)
            flows(u, s->truth, r->op, r, i, count_flow);
        else
            flows(u->load, s->truth, r->op, r, i, count_leaf_flow);
    return u;
}

static bool uplinks_are_fewer(const struct sim *s)
{
    const struct sim_world *w = s->world;
    bool fewer =
        s->fabric->uplink_share < 1 || (w && (w->hashing.uplinks > 0 || w->tapers || w->pxn > 0));

    for (int i = 0; i < s->faults && !fewer; i++)
        fewer = s->fault[i].kind == FAULT_LOST_UPLINKS;
    return fewer;
}

static double share_of(const struct sim_uplinks *u, const struct round *r, int group, enum op op)
{
    const struct sim *s = u->sim;

    if (is_large_exchange(s, op, r->group[group].size))
        return fmin(1, room_for_exchange(u, &r->group[group]));
    return fmin(1, s->world ? flows(u, s->truth, op, r, group, room_for_flow)
                            : flows(u->load, s->truth, op, r, group, room_for_leaf_flow));
}

double sim_share(struct sim *s, const struct round *r, int group, enum op op)
{
    struct sim_uplinks *u = s->uplinks;

    if (!r || op == OP_PAIR_LATENCY || !uplinks_are_fewer(s))
        return 1;
    if (!u || u->round != r || u->id != r->id || u->moment != moment_of(s)) {
        free_uplinks(u);
        s->uplinks = u = count_uplinks(s, r);
    }
    u->sim = s;
    if (isnan(u->share[group]))
        u->share[group] = share_of(u, r, group, op);
    return u->share[group];
}

/* --- the transport --- */

extern const struct transport_calls transport_sim;

struct sim_ctx {
    struct sim sim; /* copy; the original owns everything */
    struct group group;
    double share; /* share of the uplinks */
    enum op op;   /* arguments of the last exact time; bytes 0: */
    size_t bytes; /* none yet */
    double exact;
    unsigned calls; /* number of run() calls: each draws its own numbers */
    /* Used if the simulation varies: */
    struct sim_luck luck;
    double busy_until; /* s of sending until a fault of ON_AFTER begins; INFINITY: none */
};

/* A dead host does not answer. */
static int answer(const struct sim *s, const struct group *g, struct err *err)
{
    for (int f = 0; f < s->faults; f++)
        for (int i = 0; s->fault[f].kind == FAULT_DEAD_HOST && i < g->size; i++)
            if (topo_at(s->truth, g->members[i], LEVEL_HOST) == s->fault[f].a &&
                sim_fault_on(s, &s->fault[f], -1, -1))
                return err_set(err, "no answer from host %s", s->truth->host[s->fault[f].a].name);
    return 0;
}

/* Blocks of retests follow those of their pass, and the NIC pass follows the other pass. */
static struct sim_now now_of(const struct group *g)
{
    const enum stage stage = g->round->stage;

    return (struct sim_now){.turn = g->turn,
                            .turns = g->turns,
                            .block = g->epoch + PLAN_EPOCHS * stage_is_retest(stage) +
                                     2 * PLAN_EPOCHS * stage_by_nic(stage),
                            .load = g->round->groups > 1};
}

static int sim_open(void **out, const struct group *g, size_t max_bytes, struct err *err)
{
    struct sim *s = g->comm;

    (void)max_bytes;
    if (s->varies) {
        s->by_nic = stage_by_nic(g->round->stage);
        s->now = now_of(g);
    }
    if (answer(s, g, err) < 0)
        return -1;
    struct sim_ctx *ctx = mem_realloc(NULL, 1, sizeof(*ctx)); /* not zeroed: every field is set */
    *ctx = (struct sim_ctx){.sim = *s, .group = *g, .luck = {1, 1}, .busy_until = INFINITY};
    ctx->sim.by_nic = stage_by_nic(g->round->stage);
    ctx->share = sim_share(s, g->round, g->index, g->round->op);
    *out = ctx;
    return 0;
}

/* Seconds of one message now, with the luck of this point. */
static double message_time(const struct sim_ctx *ctx, enum op op, size_t bytes)
{
    const struct group *g = &ctx->group;
    double share = ctx->share * ctx->luck.rate;

    return ctx->luck.time *
           (op_is_pair(op)
                ? sim_pair(&ctx->sim, op, g->members[0], g->members[1], (double)bytes, share)
                : sim_collective(&ctx->sim, op, g->members, g->size, (double)bytes, share));
}

/* Sending time at which the next fault of ON_AFTER begins. */
static double next_throttle(const struct sim *s)
{
    double next = INFINITY;

    for (int i = 0; i < s->faults; i++)
        if (s->fault[i].states >> ON_AFTER & 1 && s->fault[i].state[ON_AFTER] > s->now.busy)
            next = fmin(next, s->fault[i].state[ON_AFTER]);
    return next;
}

/* Seconds without noise; kept, because many consecutive runs need the same value. */
static double exact_time(struct sim_ctx *ctx, enum op op, size_t bytes)
{
    struct sim *s = &ctx->sim;

    if (ctx->bytes == bytes && ctx->op == op && s->now.busy < ctx->busy_until)
        return ctx->exact;
    if (s->varies) {
        s->now.op = op;
        s->now.bytes = bytes;
        ctx->luck = sim_noise_point(s, &ctx->group);
        ctx->busy_until = next_throttle(s);
    }
    ctx->op = op;
    ctx->bytes = bytes;
    ctx->exact = message_time(ctx, op, bytes);
    return ctx->exact;
}

/* Seconds of one sample without noise, with the worst of the faults that affect this sample
 * only. */
static double sample_time(struct sim_ctx *ctx, enum op op, size_t bytes, struct rng *rng)
{
    struct sim *s = &ctx->sim;
    double sec = exact_time(ctx, op, bytes);

    for (int i = 0; i < s->faults; i++)
        if (s->fault[i].states >> ON_SAMPLES & 1 &&
            rng_uniform(rng) < s->fault[i].state[ON_SAMPLES]) {
            s->now.hit = i + 1;
            sec = fmax(sec, message_time(ctx, op, bytes));
            s->now.hit = 0;
        }
    return sec;
}

/* Multiply sec[], which holds noise alone, by the time of each sample in a world and under faults
 * with states. */
static void run_varied(struct sim_ctx *ctx, enum op op, size_t bytes, struct rng *rng, int n,
                       double *sec)
{
    struct sim *s = &ctx->sim;

    for (int i = 0; i < n; i++) {
        sec[i] *= sample_time(ctx, op, bytes, rng);
        if (s->world)
            sec[i] = sim_noise_sample(s, &ctx->group, rng, sec[i]);
        s->now.busy += sec[i];
    }
}

static int sim_run(void *p, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct sim_ctx *ctx = p;
    const struct group *g = &ctx->group;
    const struct sim *s = &ctx->sim;
    double exact = s->varies ? 1 : exact_time(ctx, op, bytes);
    unsigned long long seed = s->seed;
    struct rng rng;

    (void)err;
    for (int i = 0; i < n; i++)
        sec[i] = exact;
    if (!(s->noise > 0) && !s->varies)
        return 0;
    seed = sim_mix(seed, (unsigned)g->round->id);
    seed = sim_mix(seed, (unsigned)g->index);
    seed = sim_mix(seed, (unsigned)g->epoch);
    seed = sim_mix(seed, bytes * OP_COUNT + op);
    seed = sim_mix(seed, ctx->calls++);
    rng_seed(&rng, seed);
    if (s->noise > 0)
        for (int i = 0; i < n; i++)
            sec[i] *= exp(s->noise * rng_normal(&rng));
    if (s->varies)
        run_varied(ctx, op, bytes, &rng, n, sec);
    return 0;
}

static int sim_check(void *p, enum op op, size_t bytes, struct err *err)
{
    struct sim_ctx *ctx = p;
    struct sim *s = &ctx->sim;

    s->now.op = op;
    s->now.bytes = bytes;
    for (int f = 0; f < s->faults; f++)
        for (int i = 0; s->fault[f].kind == FAULT_CORRUPT && i < ctx->group.size; i++)
            if (ctx->group.members[i] == s->fault[f].a &&
                !(op_is_pair(op) && i == 0 && op == OP_PAIR_BW) &&
                sim_fault_on(s, &s->fault[f], -1, s->fault[f].a))
                return err_data(err, "%s: endpoint %d: byte %zu is wrong", op_name(op),
                                s->fault[f].a, bytes / 2);
    return 0;
}

static void sim_close(void *p)
{
    free(p);
}

const struct transport_calls transport_sim = {
    .open = sim_open,
    .run = sim_run,
    .check = sim_check,
    .close = sim_close,
};
