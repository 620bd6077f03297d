/* SPDX-License-Identifier: BSD-3-Clause */
/* Formulas, S as nccl-tests counts it, G ranks in d domains:
 *
 *   GPUs with NCCL     rings, trees and the rest: matrix/algorithm.h
 *   MPI                (G-d) a_in + (d-1) a_out + S (G-1)/G / B, of all_reduce twice, of broadcast and reduce with
 *                      S whole: a ring, one hop after the other [1]
 *   all_to_all         max(share inside, share across)              own NICs only [2]
 *   sendrecv           the slowest hop
 *
 *   a_in, a_out   latency of a hop inside a domain, between two
 *   B             min(B_in, nics * B_nic): every NIC of a domain carries its own ring [3]
 *
 * [1] Chan et al. 2007, "Collective communication: theory, practice, and experience"
 * [2] nccl-tests issue #267: "alltoall cannot aggregate NICs"
 * [3] NCCL issue #1801: 4 and 8 NICs of 49.2 GB/s gave 196.9 and 393.7 GB/s */
#include "matrix/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

static bool same_domain(const struct matrix *m, int a, int b)
{
    const int *x = m->topo.endpoint[a].place.at, *y = m->topo.endpoint[b].place.at;

    if (x[LEVEL_DOMAIN] >= 0 && y[LEVEL_DOMAIN] >= 0)
        return x[LEVEL_DOMAIN] == y[LEVEL_DOMAIN];
    return x[LEVEL_HOST] == y[LEVEL_HOST];
}

/* Rate of a tier; 0 if not known, so that a group that needs the tier has no price. */
static double pace(const struct matrix *m, int tier)
{
    double rate = matrix_rate(m, tier, DIR_BI);

    return isnan(rate) ? 0 : rate;
}

/* Tables list tiers from near to far, so the larger index is the slower tier unless rates say
 * other.  In whatever order they are met. */
static void slower(const struct matrix *m, int *kept, int tier)
{
    double old = *kept < 0 ? INFINITY : pace(m, *kept), now = pace(m, tier);

    if (*kept < 0 || now < old || (now == old && tier > *kept))
        *kept = tier;
}

/* Number of members in the part of its kind. */
static int members_in(const struct matrix *m, enum part part, const struct members *g, int at)
{
    int members = 0, level = part_level[part];

    if (g->ranges && level < 0)
        return ranges_within(g->ranges, at, at + 1, false, 0);
    if (g->ranges) {
        const struct stair *s = &g->ranges->stairs->at[level];
        int turn = s->block ? s->turn[at] : -1, block = turn / s->deal;
        return turn < 0 ? 0
                        : ranges_within(g->ranges, s->start[block], s->start[block + 1],
                                        s->deal > 1, turn % s->deal);
    }
    for (int i = 0; i < g->n; i++)
        members += part_at(m, part, g->ids[i]) == at;
    return members;
}

/* True if the group has members in the part: at both of its ends, and of uplinks outside as well. */
static bool has_members(const struct matrix *m, const struct exception *e, const struct members *g)
{
    int a = members_in(m, e->part, g, e->a);

    if (e->part == PART_RACK_UPLINKS)
        return a > 0 && a < g->n;
    return a > 0 && (!part_is_two(e->part) || members_in(m, e->part, g, e->b) > 0);
}

static bool concerns(const struct matrix *m, const struct exception *e, int tier)
{
    return tier >= 0 && (e->tier >= 0 ? e->tier == tier : m->tier[tier].nic || e->factor <= 0);
}

/* --- what the schedule of an operation crosses: a part slows a group only if one of its flows crosses it ---
 *
 *   ring       inside a domain each member sends to the next one.  Between domains each NIC has a channel: member
 *              k of a domain sends to member k of the next domain in rank order.
 *   trees      between domains, in the order of their first members: member k of a domain exchanges with member k of
 *              its parent and of its children in either of NCCL's two binary trees.  Inside as a ring: the chains of
 *              the channels start at different members.
 *   PAT        each member exchanges with those 1, 2, 4, 8 ... ranks away [NCCL 2.30.7, src/transport/generic.cc]
 *   next       each member sends to the next one in rank order, so NICs carry data at the borders of domains only
 *   exchange   each member sends to all others */

enum { CROSSED_INSIDE = 1, CROSSED_OUTSIDE = 2 };

static int flow_crosses(const struct matrix *m, const struct exception *e, int a, int b)
{
    if (a == b || !(matrix_touches(m, e, a) || matrix_touches(m, e, b)) ||
        !matrix_crosses(m, e, a, b, matrix_tier(m, a, b)))
        return 0;
    return same_domain(m, a, b) ? CROSSED_INSIDE : CROSSED_OUTSIDE;
}

static int both_cross(const struct matrix *m, const struct exception *e, int a, int b)
{
    return flow_crosses(m, e, a, b) | flow_crosses(m, e, b, a);
}

static int next_crosses(const struct matrix *m, const struct exception *e, const int *ids, int n)
{
    int crossed = 0;

    for (int i = 0; i < n; i++)
        crossed |= flow_crosses(m, e, ids[i], ids[i + 1 < n ? i + 1 : 0]);
    return crossed;
}

/* Hops inside a domain, in both directions: channels start at different members. */
static int inside_crosses(const struct matrix *m, const struct exception *e, const int *ids, int n)
{
    int crossed = 0;

    for (int i = 0; i < n; i++)
        crossed |= both_cross(m, e, ids[i], ids[i + 1 < n ? i + 1 : 0]);
    return crossed & CROSSED_INSIDE;
}

/* Consecutive members from position `at` on that share a domain. */
static int run_length(const struct matrix *m, const int *ids, int n, int at)
{
    int run = 1;

    while (run < n && same_domain(m, ids[(at + run - 1) % n], ids[(at + run) % n]))
        run++;
    return run;
}

/* Channels between domains. */
static int channels_cross(const struct matrix *m, const struct exception *e, const int *ids, int n)
{
    int first = run_length(m, ids, n, 0), crossed = 0;

    for (int at = first, run = first < n ? run_length(m, ids, n, at % n) : n, next;
         at < first + n && first < n; at += run, run = next) {
        next = run_length(m, ids, n, (at + run) % n);
        for (int k = 0; k < run; k++)
            crossed |= flow_crosses(m, e, ids[(at + k) % n], ids[(at + run + k % next) % n]);
    }
    return crossed & CROSSED_OUTSIDE;
}

/* --- trees and PAT --- */

/* Members by domain, domains in the order of their first members.  Returns the number of domains. */
static int by_domain(struct lists *d, const struct matrix *m, const int *ids, int n)
{
    struct map number = {0};
    int *key = mem_ints(n, 0), domains = 0;

    for (int i = 0; i < n; i++) {
        int *at = map_at(&number, (uint64_t)topo_domain(&m->topo, ids[i]), NULL, NULL);
        if (*at == MAP_NONE)
            *at = domains++;
        key[i] = *at;
    }
    lists_make(d, key, ids, n, domains);
    free(key);
    map_free(&number);
    return domains;
}

/* The edge between two domains, a channel for each member. */
static int edge_crosses(const struct matrix *m, const struct exception *e, const struct lists *d,
                        int a, int b)
{
    const int *start = d->start;
    int at_a = start[a + 1] - start[a], at_b = start[b + 1] - start[b], crossed = 0;

    for (int k = 0; k < at_a || k < at_b; k++)
        crossed |= both_cross(m, e, d->at[start[a] + k % at_a], d->at[start[b] + k % at_b]);
    return crossed;
}

static int trees_cross(const struct matrix *m, const struct exception *e, const int *ids, int n)
{
    struct lists d;
    int domains = by_domain(&d, m, ids, n), crossed = 0;

    for (int second = 0; second < 2; second++)
        for (int i = 1; i < domains; i++)
            crossed |= edge_crosses(m, e, &d, algorithm_place(i, domains, second),
                                    algorithm_place(algorithm_parent(i, domains), domains, second));
    lists_free(&d);
    return crossed & CROSSED_OUTSIDE;
}

static int pat_crosses(const struct matrix *m, const struct exception *e, const int *ids, int n)
{
    int crossed = 0;

    for (int far = 1; far < n; far *= 2)
        for (int i = 0; i < n; i++)
            crossed |= both_cross(m, e, ids[i], ids[(i + far) % n]);
    return crossed & CROSSED_OUTSIDE;
}

/* Each schedule of an operation that goes along rings. */
static bool rings_cross(int crossed[SCHEDULES], const struct matrix *m, const struct ways *w,
                        const struct exception *e, const struct members *g)
{
    bool nics = e->tier < 0 || m->tier[e->tier].nic;
    bool any = !part_is_two(e->part) && (e->tier < 0 || (!nics && e->tier == w->inner));

    /* The NICs of all members carry a channel, and so does the port of a member inside a domain. */
    if (any) {
        crossed[SCHEDULE_OWN] = (concerns(m, e, w->inner) ? CROSSED_INSIDE : 0) |
                                (concerns(m, e, w->outer) ? CROSSED_OUTSIDE : 0);
        crossed[SCHEDULE_TREE] = crossed[SCHEDULE_PAT] = crossed[SCHEDULE_OWN];
        return true;
    }
    if (g->ranges)
        return false;
    int inside = inside_crosses(m, e, g->ids, g->n);
    crossed[SCHEDULE_OWN] = inside | channels_cross(m, e, g->ids, g->n);
    crossed[SCHEDULE_TREE] = crossed[SCHEDULE_PAT] = inside;
    if (w->outer >= 0)
        crossed[SCHEDULE_TREE] |= trees_cross(m, e, g->ids, g->n);
    if (w->outer >= 0 && w->shape.domains == w->shape.ranks)
        crossed[SCHEDULE_PAT] |= pat_crosses(m, e, g->ids, g->n);
    return true;
}

static int exchange_crosses(const struct matrix *m, const struct ways *w, const struct exception *e)
{
    int crossed = 0;

    if (e->part == PART_PAIR)
        return flow_crosses(m, e, e->a, e->b) | flow_crosses(m, e, e->b, e->a);
    if (part_is_two(e->part))
        return CROSSED_OUTSIDE;
    for (int t = 0; t < m->tiers; t++)
        if (w->share[t] > 0 && concerns(m, e, t))
            crossed |= w->outer >= 0 && (m->tier[t].nic || t == w->outer) ? CROSSED_OUTSIDE
                                                                          : CROSSED_INSIDE;
    return crossed;
}

/* False: members must be listed. */
static bool schedules_cross(int crossed[SCHEDULES], const struct matrix *m, const struct ways *w,
                            const struct exception *e, const struct members *g, enum op op)
{
    bool exchange = op_table[op].links == OP_EXCHANGE;

    if (op_table[op].links == OP_RING)
        return rings_cross(crossed, m, w, e, g);
    if (!exchange && g->ranges)
        return false;
    int all = exchange ? exchange_crosses(m, w, e) : next_crosses(m, e, g->ids, g->n);
    for (int s = 0; s < SCHEDULES; s++)
        crossed[s] = all;
    return true;
}

/* Share of the slowest tier that a part leaves, if the part slows a tier that may be faster. */
static double left_of_tier(const struct matrix *m, const struct exception *e, int slowest)
{
    if (e->tier < 0 || slowest < 0 || e->tier == slowest || !(pace(m, slowest) > 0))
        return e->factor;
    return fmin(1, e->factor * pace(m, e->tier) / pace(m, slowest));
}

static void slow_part(struct ways *w, const struct matrix *m, int index,
                      const int crossed[SCHEDULES])
{
    const struct exception *e = &m->exception[index];
    double inner = w->inner_factor;

    if (crossed[SCHEDULE_OWN] & CROSSED_INSIDE)
        w->inner_factor = fmin(inner, left_of_tier(m, e, w->inner));
    for (int i = 0; i < SCHEDULES; i++) {
        struct ways_slow *s = &w->slow[i];
        double before = fmin(inner, s->outer), add = s->add;
        if (crossed[i] & CROSSED_OUTSIDE)
            s->outer = fmin(s->outer, left_of_tier(m, e, w->outer));
        if (crossed[i])
            s->add = fmax(add, e->alpha_add);
        else if (w->outer >= 0 && s->spared < 0)
            s->spared = index;
        if (crossed[i] && (fmin(w->inner_factor, s->outer) < before || s->add > add))
            s->exception = index;
    }
}

int ways_parts(struct ways *w, const struct matrix *m, const struct members *g, enum op op,
               const int *exception, int exceptions)
{
    *w = ways_healthy(w);
    for (int i = 0; i < exceptions; i++) {
        int at = exception ? exception[i] : i, crossed[SCHEDULES];
        const struct exception *e = &m->exception[at];
        if (!has_members(m, e, g))
            continue;
        if (!schedules_cross(crossed, m, w, e, g, op))
            return -1;
        slow_part(w, m, at, crossed);
    }
    return 0;
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

/* Tiers and borders that the hops of a ring meet. */
struct hops {
    struct ways *ways;
    const struct matrix *m;
    int crossings[TIER_MAX];
    unsigned met[2]; /* tiers between domains, and inside */
};

static void add_hops(struct hops *h, int tier, bool inside, bool racks, int times)
{
    if (times <= 0)
        return;
    h->crossings[tier] += racks ? times : 0;
    if (!(h->met[inside] & 1u << tier))
        slower(h->m, inside ? &h->ways->inner : &h->ways->outer, tier);
    h->met[inside] |= 1u << tier;
}

static void add_hop(struct hops *h, int a, int b)
{
    const int *x = h->m->topo.endpoint[a].place.at, *y = h->m->topo.endpoint[b].place.at;

    if (a != b)
        add_hops(h, matrix_tier(h->m, a, b), same_domain(h->m, a, b),
                 x[LEVEL_RACK] != y[LEVEL_RACK], 1);
}

/* count: of the others, by tier as the lone member sees them. */
static void set_shares(struct ways *w, const struct matrix *m, const int count[TIER_MAX])
{
    for (int t = 0; t < m->topo.tiers; t++) /* no others are met */
        w->share[t] = (double)count[t] / (w->shape.ranks - 1);
}

/* lone: what shape_of() returned. */
static void walk(struct hops *h, const int *ids, int n, int lone)
{
    int count[TIER_MAX] = {0};

    for (int i = 0; i < n; i++)
        add_hop(h, ids[i], ids[i + 1 < n ? i + 1 : 0]);
    for (int i = 0; i < n; i++)
        if (i != lone)
            count[ids[i] != ids[lone] ? matrix_tier(h->m, ids[lone], ids[i]) : 0]++;
    set_shares(h->ways, h->m, count);
    if (h->ways->inner < 0 && h->ways->shape.domains < n)
        h->ways->inner = inside_tier(h->m, ids, n, h->ways->shape.domains);
}

/* The tier of two that lie in one block of the links from `depth` on; dealt: and in one turn. */
static int tier_from(const struct matrix *m, const struct stairs *s, int depth, bool dealt)
{
    unsigned shared = 0;
    int t;

    for (int i = depth; i < s->links; i++)
        if (dealt || s->at[s->link[i]].deal == 1)
            shared |= 1u << s->link[i];
    for (t = 0; t + 1 < m->topo.tiers; t++)
        if (!(m->topo.tier[t].same & ~shared))
            break;
    return t;
}

/* Steps of one range, by the coarsest link that they leave. */
static int climb_range(struct hops *h, const struct stairs *s, const struct railgauge_range *r)
{
    for (int d = 0, left = r->count - 1, on; d <= s->links; d++, left = on) {
        on = d < s->links ? range_climbs(&s->at[s->link[d]], r) : 0;
        if (on < 0)
            return -1;
        add_hops(h, tier_from(h->m, s, d, r->step % s->deal == 0), d <= s->depth[s->domain],
                 s->depth[LEVEL_RACK] >= 0 && d > s->depth[LEVEL_RACK], left - on);
    }
    return 0;
}

/* The others by the finest link that they share with the lone member, then by its turn. */
static void look_round(struct ways *w, const struct matrix *m, const struct ranges *g, int lone)
{
    const struct stairs *s = g->stairs;
    int count[TIER_MAX] = {0}, all = 1, dealt = 1; /* itself */

    for (int d = 0; d <= s->links; d++) {
        const struct stair *at = d < s->links ? &s->at[s->link[d]] : NULL;
        int from = at ? at->start[at->block[lone]] : 0;
        int end = at ? at->start[at->block[lone] + 1] : m->topo.endpoints;
        int near = ranges_within(g, from, end, false, 0);
        int like = s->deal > 1 ? ranges_within(g, from, end, true, lone) : near;
        count[tier_from(m, s, d, true)] += like - dealt;
        count[tier_from(m, s, d, false)] += near - all - (like - dealt);
        all = near;
        dealt = like;
    }
    set_shares(w, m, count);
}

static int walk_ranges(struct hops *h, const struct ranges *g, int lone)
{
    const struct railgauge_range *r = g->at;

    for (int i = 0; i < g->count; i++) {
        if (climb_range(h, g->stairs, &r[i]) < 0)
            return -1;
        add_hop(h, range_last(&r[i]), r[i + 1 < g->count ? i + 1 : 0].first);
    }
    look_round(h->ways, h->m, g, lone);
    return 0;
}

int ways_of_some(struct ways *w, const struct matrix *m, const struct members *g, enum op op,
                 const int *exception, int exceptions)
{
    struct hops h = {.ways = w, .m = m};

    *w = (struct ways){.inner = -1, .outer = -1, .at_once = 1};
    int lone = g->ranges ? shape_of_ranges(&w->shape, g->ranges)
                         : shape_of(&w->shape, &m->topo, g->ids, g->n);
    if (lone < 0 || (g->ranges && walk_ranges(&h, g->ranges, lone) < 0))
        return -1;
    if (!g->ranges)
        walk(&h, g->ids, g->n, lone);
    w->crossings = w->outer < 0 ? 0 : h.crossings[w->outer];
    return ways_parts(w, m, g, op, exception, exceptions);
}

/* Endpoints of a domain. */
static int widest_domain(const struct topo *t)
{
    int domains = t->group[LEVEL_DOMAIN].count ? t->group[LEVEL_DOMAIN].count : t->hosts;

    return domains ? t->endpoints / domains : 1;
}

int ways_inner(const struct matrix *m)
{
    int inner = -1;

    for (int t = 0; t < m->tiers; t++)
        if (m->tier[t].rule.same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN))
            slower(m, &inner, t);
    return inner;
}

/* As few domains as hold the ranks, two at least. */
static bool ways_few(struct ways *few, const struct matrix *m, const struct ways *w)
{
    const struct shape *s = &w->shape;
    int widest = widest_domain(&m->topo);
    int domains = (int)fmax(2, ceil((double)s->ranks / widest));

    if (domains >= s->domains)
        return false;
    *few = ways_healthy(w);
    few->shape.domains = domains;
    few->shape.per_domain = s->ranks / domains;
    few->shape.nics = (int)fmin(s->nics * s->domains / domains, few->shape.per_domain);
    few->shape.racks = (int)fmin(s->racks, domains);
    few->crossings = (int)fmin(w->crossings, domains);
    if (few->inner < 0)
        few->inner = ways_inner(m);
    double inside = (few->shape.per_domain - 1.0) / (s->ranks - 1);
    memset(few->share, 0, sizeof(few->share));
    few->share[few->inner >= 0 ? few->inner : few->outer] = inside;
    few->share[few->outer] += 1 - inside;
    return few->inner >= 0;
}

static bool ways_one(struct ways *near, const struct matrix *m, const struct ways *w)
{
    int n = w->shape.ranks;

    if (w->shape.domains == 1 || n > widest_domain(&m->topo))
        return false;
    *near = ways_healthy(w);
    near->shape = (struct shape){n, 1, n, 1, n, 1};
    near->outer = -1;
    near->crossings = 0;
    if (w->inner < 0)
        near->inner = ways_inner(m);
    memset(near->share, 0, sizeof(near->share));
    if (near->inner < 0)
        return false;
    near->share[near->inner] = 1;
    return true;
}

bool ways_near(struct ways *near, const struct matrix *m, const struct ways *w, bool few)
{
    return few ? ways_few(near, m, w) : ways_one(near, m, w);
}

static double hop_alpha(const struct matrix *m, int tier)
{
    const struct tier *t = &m->tier[tier];

    return t->curve[DIR_ONEWAY].points ? t->curve[DIR_ONEWAY].alpha
                                       : curve_floor(&t->curve[DIR_UNI]);
}

/* Latency of a message of a group on that tier.  What NCCL sends to another domain takes no less than what it sends
 * inside one: part of a pair's latency inside is NCCL's own. */
static double message_alpha(const struct matrix *m, const struct ways_model *x,
                            const struct ways *w, int tier)
{
    double alpha = hop_alpha(m, tier);
    int inner = x->nccl && tier != w->inner ? ways_inner(m) : -1;

    return inner >= 0 ? fmax(alpha, hop_alpha(m, inner)) : alpha;
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

/* Share of a tier's rate that is left when groups like this one have `nics` flows between racks in all.
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

/* B of the way between domains: a ring, or one hop of it, crosses with `nics` NICs at a time.  more: how many
 * times what a ring sends between racks does. */
static double outer_rate(const struct matrix *m, const struct ways *w, int nics, double more,
                         enum schedule_kind s)
{
    double flows = w->shape.racks > 1 ? (double)w->crossings / w->shape.racks : 1;

    return matrix_rate(m, w->outer, DIR_BI) * w->slow[s].outer *
           share_of(m, w, &m->tier[w->outer], flows * more, (double)w->crossings * nics * more);
}

/* Traffic of a double tree between racks, as a share of the traffic out of a domain: a block of domains is left by two
 * buffers where there are two or three blocks, by three where blocks are an even number, by four where it is odd; three
 * are taken. */
static double tree_climbs(const struct shape *s)
{
    double blocks = s->racks < 4 ? 2 : 3;

    return s->racks < 2 || s->racks >= s->domains ? 1
                                                  : fmax(1, blocks / algorithm_load(s->domains));
}

static bool of_gpus(const struct matrix *m)
{
    return m->topo.endpoint[0].kind == ENDPOINT_GPU;
}

/* NCCL's version of a campaign, 22902 of "2.29.2 (path)"; 0: not told. */
static int nccl_of(const struct matrix *m)
{
    const char *text = json_string_value(json_object_get(m->provenance, "nccl"));
    long part[3] = {0};
    char *end = (char *)text;

    for (int i = 0; text && i < 3; i++) {
        part[i] = strtol(end, &end, 10);
        end += *end == '.';
    }
    return (int)(part[0] * 10000 + part[1] * 100 + part[2]);
}

static void group_of(struct algorithm_group *g, const struct matrix *m, const struct ways *w)
{
    const struct topo *t = &m->topo;
    bool across = w->outer >= 0;

    *g = (struct algorithm_group){.model = t->endpoint[0].model,
                                  .nccl = nccl_of(m),
                                  .ranks = w->shape.ranks,
                                  .domains = w->shape.domains,
                                  .widest = widest_domain(t),
                                  .inside = INFINITY,
                                  .ring = INFINITY,
                                  .tree = INFINITY,
                                  .pat = INFINITY,
                                  .only = (enum algorithm)m->algorithm};
    for (int s = 0; s < SCHEDULES; s++)
        g->add[s] = w->slow[s].add;
    if (w->inner >= 0) {
        double rate = matrix_rate(m, w->inner, DIR_BI);
        g->nvlink = rate >= ALGORITHM_NVLINK;
        g->inside = rate * w->inner_factor;
        g->hop_in = hop_alpha(m, w->inner);
    }
    if (across) {
        int nics = w->shape.nics;
        g->ring = nics * outer_rate(m, w, nics, 1, SCHEDULE_OWN);
        g->tree = nics * outer_rate(m, w, nics, tree_climbs(&w->shape), SCHEDULE_TREE);
        g->pat = nics * outer_rate(m, w, nics, 1, SCHEDULE_PAT);
        g->hop_out = hop_alpha(m, w->outer);
    }
}

/* One hop after the other: what MPI makes of a ring. */
static void chain_of(struct ways_model *x, const struct matrix *m, const struct ways *w, enum op op)
{
    double in = w->inner >= 0 ? hop_alpha(m, w->inner) : 0;
    double out = w->outer >= 0 ? hop_alpha(m, w->outer) : 0;
    double inside = w->inner >= 0 ? matrix_rate(m, w->inner, DIR_BI) * w->inner_factor : INFINITY;
    double across =
        w->outer >= 0 ? w->shape.nics * outer_rate(m, w, w->shape.nics, 1, SCHEDULE_OWN) : INFINITY;
    int n = w->shape.ranks, crossings = w->outer < 0 ? 0 : w->shape.domains - 1;
    double share = op_table[op].share == OP_WHOLE ? 1 : (n - 1.0) / n, turns = op_table[op].turns;
    double rate = isnan(across) || across < inside ? across : inside;

    x->add[SCHEDULE_OWN] *= turns;
    x->line[0] = (struct algorithm_line){turns * ((n - 1 - crossings) * in + crossings * out) +
                                             x->add[SCHEDULE_OWN],
                                         rate / share / turns,
                                         0,
                                         0,
                                         ALGORITHM_CHAIN,
                                         PROTOCOL_SIMPLE};
    x->lines = 1;
}

static void lines_of(struct ways_model *x, const struct matrix *m, const struct ways *w, enum op op)
{
    if (!x->nccl) {
        chain_of(x, m, w, op);
        return;
    }
    group_of(&x->group, m, w);
    x->lines = algorithm_lines(x->line, &x->group, op);
}

/* Every rank sends S/G to every other one; classes that use NICs share them, the others run beside.
 */
static void exchange_of(struct ways_model *x, const struct matrix *m, const struct ways *w)
{
    double per_rank = (double)w->shape.nics / w->shape.per_domain, alpha = 0;
    int n = w->shape.ranks;

    x->classes = 0;
    for (int t = 0; t < m->tiers; t++) {
        if (!(w->share[t] > 0))
            continue;
        bool outside = w->outer >= 0 && (m->tier[t].nic || t == w->outer);
        double rate = matrix_rate(m, t, DIR_BI);
        if (outside)
            rate = rate * w->slow[SCHEDULE_OWN].outer *
                   share_of(m, w, &m->tier[t], n * w->share[t], n) * fmin(1, per_rank);
        else
            rate = rate * w->inner_factor;
        x->list[x->classes++] = (struct ways_class){w->share[t], 0, rate, outside};
        /* host memory sends one message after another */
        double peer = of_gpus(m) ? PROTOCOL_PEER : curve_floor(&m->tier[t].curve[DIR_UNI]);
        alpha = fmax(alpha, message_alpha(m, x, w, t) + peer * (n - 2));
    }
    x->alpha = alpha + w->slow[SCHEDULE_OWN].add;
}

/* The slower one of a hop inside and one across. */
static void hop_of(struct ways_model *x, const struct matrix *m, const struct ways *w)
{
    x->alpha = w->slow[SCHEDULE_OWN].add;
    x->classes = 0;
    if (w->inner >= 0)
        x->list[x->classes++] = (struct ways_class){
            0, hop_alpha(m, w->inner), matrix_rate(m, w->inner, DIR_BI) * w->inner_factor, false};
    if (w->outer >= 0)
        x->list[x->classes++] = (struct ways_class){0, message_alpha(m, x, w, w->outer),
                                                    outer_rate(m, w, 1, 1, SCHEDULE_OWN), true};
}

void ways_model(struct ways_model *x, const struct matrix *m, const struct ways *w, enum op op)
{
    x->op = op;
    x->ranks = w->shape.ranks;
    x->nccl = of_gpus(m) && (!m->transport || strcmp(m->transport, "mpi"));
    x->dead = w->inner_factor <= 0 ||
              (w->slow[SCHEDULE_OWN].outer <= 0 && (!x->nccl || op_table[op].links != OP_RING));
    if (x->dead)
        return;
    for (int s = 0; s < SCHEDULES; s++)
        x->add[s] = w->slow[s].add;
    if (op_table[op].links == OP_EXCHANGE)
        exchange_of(x, m, w);
    else if (op_table[op].links == OP_NEXT)
        hop_of(x, m, w);
    else
        lines_of(x, m, w, op);
}

static double exchange_at(const struct ways_model *x, double bytes)
{
    double inside = 0, across = 0, n = x->ranks;

    for (int i = 0; i < x->classes; i++) {
        const struct ways_class *c = &x->list[i];
        double each = c->outside && x->nccl ? algorithm_stream(bytes / n) : bytes / n;
        *(c->outside ? &across : &inside) += each * (n - 1) * c->share / c->rate;
    }
    return x->alpha + (isnan(inside) || isnan(across) ? NAN : fmax(inside, across));
}

static double hop_at(const struct ways_model *x, double bytes)
{
    double most = 0;

    for (int i = 0; i < x->classes && !isnan(most); i++) {
        double sec = x->list[i].alpha + bytes / x->list[i].rate;
        most = isnan(sec) || sec > most ? sec : most;
    }
    return x->alpha + most;
}

double ways_time(const struct ways_model *x, double bytes)
{
    double sec;

    if (x->dead)
        return INFINITY;
    if (op_table[x->op].links == OP_EXCHANGE)
        return exchange_at(x, bytes);
    if (op_table[x->op].links == OP_NEXT)
        return hop_at(x, bytes);
    algorithm_fastest(x->line, x->lines, bytes, &sec);
    return sec;
}
