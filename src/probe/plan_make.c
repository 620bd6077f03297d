/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "probe/schedule.h"
#include "topo/fabrics/fabric.h"

enum {
    ISOLATED_TO = 16,   /* endpoints up to which every pair runs alone */
    TOURNAMENT_TO = 32, /* ... every pair in parallel rounds; class matchings above */
    LATENCY_BYTES = 8,
    EVERY_EPOCH_TO = 128, /* hosts that look for company, latency in every epoch */
    RAIL_MEETINGS = 16,   /* of each two numbers of endpoints */
    RAIL_NUMBERS_TO = 16,
};

void plan_defaults(struct plan_opts *o)
{
    memset(o, 0, sizeof(*o));
    o->min_bytes = 8;
    o->factor = 2;
    for (int op = 0; op < OP_COUNT; op++)
        o->ops |= op_table[op].asked ? 1u << op : 0;
    o->pairs = STAGE_COUNT;
    o->epochs = PLAN_EPOCHS;
    o->seed = 1;
    o->nics = true;
}

/* Everything that the makers below need. */
struct maker {
    struct plan *plan;
    const struct topo *topo;
    struct plan_opts o; /* with what 0 stands for */
    bool sized;         /* the user said how large messages may be */
    int *order;
    unsigned all_epochs;
    struct rng rng;
    struct fabric known; /* the preset of the GPUs; name NULL: none */
};

static void add_group(struct round *r, int g, const int *ids, int n)
{
    r->group[g].members = mem_calloc((size_t)n, sizeof(int));
    memcpy(r->group[g].members, ids, (size_t)n * sizeof(int));
    r->group[g].size = n;
}

static int *one_per_group(const struct maker *m, enum level level, int *count)
{
    const struct topo *t = m->topo;
    char *have = mem_calloc((size_t)t->group[level].count + 1, 1);
    int *v = NULL;

    *count = 0;
    for (int i = 0; i < t->endpoints; i++) {
        int at = t->endpoint[m->order[i]].place.at[level];
        if (at >= 0 && !have[at]) {
            have[at] = 1;
            MEM_PUSH(v, *count) = m->order[i];
        }
    }
    free(have);
    return v;
}

static void add_pairs(struct maker *m, enum stage stage, enum op op, const struct pairs *pairs,
                      bool swap, size_t first, size_t last, unsigned epochs)
{
    if (!(m->o.ops >> op & 1) || !pairs->count)
        return;
    struct round *r = plan_add(m->plan, stage, op, pairs->count);
    r->first = first;
    r->last = last;
    r->factor = m->o.factor;
    r->epochs = epochs;
    r->block = mem_calloc(2 * (size_t)pairs->count, sizeof(int));
    for (int i = 0; i < pairs->count; i++) {
        r->group[i] = (struct plan_group){r->block + 2 * (size_t)i, 2};
        for (int k = 0; k < 2; k++)
            r->group[i].members[k] = pairs->pair[i][k ^ swap];
    }
}

/* What the pair matrix wants to know of a set of disjoint pairs: latency, and bandwidth each way.
 */
static void add_matrix_rounds(struct maker *m, enum stage stage, const struct pairs *p,
                              unsigned epochs)
{
    add_pairs(m, stage, OP_PAIR_LATENCY, p, false, LATENCY_BYTES, LATENCY_BYTES, epochs);
    add_pairs(m, stage, OP_PAIR_BW, p, false, m->o.pair_bytes, m->o.pair_bytes, epochs);
    add_pairs(m, stage, OP_PAIR_BW, p, true, m->o.pair_bytes, m->o.pair_bytes, epochs);
}

/* All rounds of the circle method over v.  epochs 0: each round in one epoch, in turn, so that many
 * endpoints are measured once and all parts of the campaign see all kinds of pairs. */
static void add_circle(struct maker *m, enum stage stage, const int *v, int n, bool alone,
                       unsigned epochs)
{
    for (int r = 0; r < schedule_circle_rounds(n); r++) {
        struct pairs p = {NULL, 0};
        unsigned when = epochs ? epochs : 1u << (r % m->o.epochs);
        schedule_circle(&p, v, n, r);
        if (!alone)
            add_matrix_rounds(m, stage, &p, when);
        for (int i = 0; alone && i < p.count; i++) {
            struct pairs one = {&p.pair[i], 1};
            add_matrix_rounds(m, stage, &one, when);
        }
        free(p.pair);
    }
}

/* An endpoint of the same host by chance; leaf order keeps those of a host together. */
static int any_of_host(struct maker *m, const int *at, int first)
{
    const struct topo *t = m->topo;
    int n = t->host[t->endpoint[first].place.at[LEVEL_HOST]].endpoints;

    return m->order[at[first] + (int)rng_below(&m->rng, (unsigned)n)];
}

/* Hosts meet as in the rounds that find racks, each pair of hosts by any two endpoints: do those
 * with the same number share a leaf?  Latency tells, and costs next to nothing. */
static void add_rails(struct maker *m, const int *host, int hosts)
{
    const struct topo *t = m->topo;
    int numbers = t->host[0].endpoints, wanted = RAIL_MEETINGS * numbers * (numbers + 1) / 2;
    int rounds = numbers > 1 && numbers <= RAIL_NUMBERS_TO ? 1 + wanted / (hosts / 2) : 0;
    int *at = mem_calloc((size_t)t->endpoints, sizeof(*at));

    for (int i = 0; i < t->endpoints; i++)
        at[m->order[i]] = i;
    for (int r = 0; r < rounds; r++) {
        struct pairs p = {NULL, 0};
        schedule_find(&p, host, hosts, r % schedule_find_rounds(hosts));
        for (int i = 0; i < p.count; i++)
            for (int k = 0; k < 2; k++)
                p.pair[i][k] = any_of_host(m, at, p.pair[i][k]);
        add_pairs(m, STAGE_TOURNAMENT, OP_PAIR_LATENCY, &p, false, LATENCY_BYTES, LATENCY_BYTES, 1);
        free(p.pair);
    }
    free(at);
}

/* Nothing is known above the host: one endpoint of each looks for company.  Latency is told apart
 * by a few per cent, so where hosts are few every epoch measures it. */
static void add_find(struct maker *m)
{
    int hosts, *v = one_per_group(m, LEVEL_HOST, &hosts);
    bool found = hosts > 2 && hosts <= FIND_HOSTS_MAX;

    if (hosts > FIND_HOSTS_MAX)
        log_warn("%d hosts and nothing visible above the host: racks cannot be looked for "
                 "beyond %d hosts",
                 hosts, FIND_HOSTS_MAX);
    for (int r = 0; found && r < schedule_find_rounds(hosts); r++) {
        struct pairs p = {NULL, 0};
        unsigned often = hosts <= EVERY_EPOCH_TO ? m->all_epochs : 1;
        schedule_find(&p, v, hosts, r);
        add_pairs(m, STAGE_TOURNAMENT, OP_PAIR_LATENCY, &p, false, LATENCY_BYTES, LATENCY_BYTES,
                  often);
        add_pairs(m, STAGE_TOURNAMENT, OP_PAIR_BW, &p, false, m->o.pair_bytes, m->o.pair_bytes, 1);
        add_pairs(m, STAGE_TOURNAMENT, OP_PAIR_BW, &p, true, m->o.pair_bytes, m->o.pair_bytes, 1);
        free(p.pair);
    }
    if (found)
        add_rails(m, v, hosts);
    free(v);
}

static void add_shifts(struct maker *m)
{
    int n = m->topo->endpoints;

    for (int d = 1; d < n; d++) {
        struct pairs p = {NULL, 0};
        schedule_shift(&p, m->order, n, d);
        add_matrix_rounds(m, STAGE_SHIFT, &p, 1u << ((d - 1) % m->o.epochs));
        free(p.pair);
    }
}

/* Matching k of every tier belongs to epoch k mod E, so that each class sees every part of the
 * campaign; of fewer matchings than epochs, those of the next tier to the next ones. */
static void add_matchings(struct maker *m, enum stage stage)
{
    const int first = (int)(m->o.seed % 61); /* another seed, other partners */
    const int step = plan_is_sparse(m->topo);

    for (int k = 0; k < m->o.matchings; k++)
        for (int t = 0; t < m->topo->tiers; t++) {
            struct pairs p = {NULL, 0};
            schedule_matching(&p, m->topo, m->order, t, stage_by_nic(stage), first + k, &m->rng);
            add_matrix_rounds(m, stage, &p, 1u << ((k + t * step) % m->o.epochs));
            free(p.pair);
        }
}

/* Each two racks, of more than some 300 as many as there are rounds for, and each with itself. */
static void add_racks(struct maker *m)
{
    struct pairs p = {NULL, 0};
    bool more = true;

    for (int r = 0; more; r++, p = (struct pairs){NULL, 0}) {
        more = schedule_racks(&p, m->topo, m->order, r);
        add_matrix_rounds(m, STAGE_CLASS, &p, 1u << (r % m->o.epochs));
        free(p.pair);
    }
    for (int d = 0; d < 2; d++, p = (struct pairs){NULL, 0}) {
        schedule_within_racks(&p, m->topo, m->order, d);
        add_matrix_rounds(m, STAGE_CLASS, &p, 1u << (d % m->o.epochs));
        free(p.pair);
    }
}

/* All NICs of a leaf at once, there and back, to see what its uplinks carry. */
static void add_uplinks(struct maker *m)
{
    for (int k = 0; k < 2 * UPLINK_PARTNERS; k++) {
        struct pairs p = {NULL, 0};
        schedule_uplinks(&p, m->topo, m->order, k / 2);
        if (p.count > 1)
            add_pairs(m, STAGE_SHIFT, OP_PAIR_BW, &p, k % 2, m->o.pair_bytes, m->o.pair_bytes, 1);
        free(p.pair);
    }
}

/* As many pairs of NICs as the seconds that are allowed are enough for, each way, once. */
static void add_cables(struct maker *m)
{
    const struct topo *t = m->topo;
    enum stage stage = m->o.nics && topo_hides_nics(t) ? STAGE_NIC : STAGE_TOURNAMENT;
    int rounds = schedule_cables(NULL, t, m->order, -1);
    double fit = m->o.cables / plan_cable_seconds(t, m->o.pair_bytes);

    for (int r = 0; r < rounds && r < fit; r++) {
        struct pairs p = {NULL, 0};
        unsigned when = 1u << (r % m->o.epochs);
        schedule_cables(&p, t, m->order, r);
        for (int back = 0; back < 2; back++)
            add_pairs(m, stage, OP_PAIR_BW, &p, back, m->o.pair_bytes, m->o.pair_bytes, when);
        free(p.pair);
    }
}

static bool nothing_above_host(const struct topo *t)
{
    for (int i = 0; i < t->endpoints; i++)
        for (int l = LEVEL_DOMAIN; l < LEVEL_COUNT; l++)
            if (t->endpoint[i].place.at[l] >= 0)
                return false;
    return true;
}

static void add_pair_matrix(struct maker *m)
{
    int n = m->topo->endpoints;
    enum stage s = m->o.pairs;

    if (s == STAGE_COUNT)
        s = n <= ISOLATED_TO ? STAGE_ISOLATED : n <= TOURNAMENT_TO ? STAGE_TOURNAMENT : STAGE_CLASS;
    if (s == STAGE_ISOLATED) {
        add_circle(m, s, m->order, n, true, m->all_epochs);
        if (n > 3) /* what one pair gets while the others run too */
            add_circle(m, STAGE_TOURNAMENT, m->order, n, false, 1);
    } else if (s == STAGE_TOURNAMENT) {
        add_circle(m, s, m->order, n, false, n <= TOURNAMENT_TO ? m->all_epochs : 0);
    } else if (s == STAGE_SHIFT) {
        add_shifts(m);
    } else {
        add_matchings(m, STAGE_CLASS);
        add_racks(m);
        if (nothing_above_host(m->topo))
            add_find(m);
    }
    add_uplinks(m);
}

/* Pairs between hosts of which nothing is known: neighbours in the list, hosts far from each other,
 * and those by endpoints of other numbers, so that each kind of way has a curve. */
static void pairs_of_all_kinds(struct maker *m, struct pairs *out, int wanted)
{
    int hosts, *v = one_per_group(m, LEVEL_HOST, &hosts);
    int per = m->topo->endpoints / hosts;

    for (int k = 0; k < wanted && hosts > 2 * wanted && hosts * per == m->topo->endpoints; k++) {
        int a = k * (hosts / 2 / wanted), b = a + (k % 3 == 0 ? 1 : hosts / 2);
        int number = k % 3 == 2 ? per / 2 : 0;
        out->pair = mem_grow(out->pair, (size_t)out->count, sizeof(*out->pair));
        out->pair[out->count][0] = v[a];
        out->pair[out->count++][1] = m->order[b * per + number];
    }
    free(v);
}

/* Who asks for the matrix alone gets no curves, unless sizes are given; pair_bibw has nothing else. */
static bool wants_ladders(const struct maker *m)
{
    const unsigned matrix = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW;
    return !m->o.quick && (m->o.ops & ~matrix || m->sized || m->o.full);
}

/* A few pairs of each tier, alone, over all sizes: the tier's curves. */
static void add_ladders(struct maker *m, enum stage stage)
{
    const struct topo *t = m->topo;
    int wanted = !wants_ladders(m) ? 0 : m->o.full ? 8 : 3;
    size_t from = m->o.min_bytes > 4096 ? m->o.min_bytes : 4096;

    if (from > m->o.pair_max)
        from = m->o.pair_max;
    for (int tier = 0; tier < t->tiers; tier++) {
        struct pairs p = {NULL, 0};
        if (tier == t->tiers - 1 && nothing_above_host(t) && stage == STAGE_LADDER)
            pairs_of_all_kinds(m, &p, wanted);
        if (!p.count)
            schedule_matching(&p, t, m->order, tier, stage_by_nic(stage), 0, &m->rng);
        int n = p.count < wanted ? p.count : wanted;
        for (int k = 0; k < n; k++) {
            struct pairs one = {&p.pair[(long)p.count * k / n], 1};
            add_pairs(m, stage, OP_PAIR_LATENCY, &one, false, m->o.min_bytes, m->o.pair_max,
                      m->all_epochs);
            add_pairs(m, stage, OP_PAIR_BW, &one, false, from, m->o.pair_max, m->all_epochs);
            add_pairs(m, stage, OP_PAIR_BIBW, &one, false, from, m->o.pair_max, m->all_epochs);
        }
        free(p.pair);
    }
}

/* --- through the NICs, where NVLink joins everybody --- */

/* All pairs that have a NIC each, in parallel rounds. */
static void add_nic_circle(struct maker *m)
{
    const struct topo *t = m->topo;

    for (int r = 0; r < schedule_circle_rounds(t->endpoints); r++) {
        struct pairs p = {NULL, 0};
        int kept = 0;
        schedule_circle(&p, m->order, t->endpoints, r);
        for (int i = 0; i < p.count; i++)
            if (t->endpoint[p.pair[i][0]].nic != t->endpoint[p.pair[i][1]].nic)
                memmove(p.pair[kept++], p.pair[i], sizeof(*p.pair));
        p.count = kept;
        add_matrix_rounds(m, STAGE_NIC, &p, m->all_epochs);
        free(p.pair);
    }
}

static void add_nics(struct maker *m)
{
    if (!m->o.nics || !topo_hides_nics(m->topo))
        return;
    if (m->topo->endpoints <= TOURNAMENT_TO)
        add_nic_circle(m);
    else
        add_matchings(m, STAGE_NIC);
    add_ladders(m, STAGE_NIC_LADDER);
}

/* --- collectives --- */

struct groups {
    struct plan_group *group;
    int count;
};

static void free_groups(struct groups *g)
{
    for (int i = 0; i < g->count; i++)
        free(g->group[i].members);
    free(g->group);
}

static void add_collectives(struct maker *m, const struct groups *g)
{
    for (enum op op = 0; op < OP_COUNT; op++) {
        if (op_is_pair(op) || !(m->o.ops >> op & 1) || !g->count)
            continue;
        struct round *r = plan_add(m->plan, STAGE_COLLECTIVE, op, g->count);
        r->first = m->o.min_bytes;
        r->last = plan_last_size(&m->known, m->topo, op, &g->group[0], m->o.max_bytes);
        r->factor = m->o.factor;
        r->epochs = m->all_epochs;
        for (int i = 0; i < g->count; i++)
            add_group(r, i, g->group[i].members, g->group[i].size);
    }
}

/* The groups of one level that have at least two endpoints and are not everything; at most `most`
 * of them, spread evenly. */
static struct groups level_groups(const struct maker *m, enum level level, int most)
{
    const struct topo *t = m->topo;
    int n = t->group[level].count;
    struct plan_group *all = mem_calloc((size_t)n + 1, sizeof(*all));
    struct groups out = {NULL, 0}, good = {NULL, 0};

    for (int i = 0; i < t->endpoints; i++) {
        int at = t->endpoint[m->order[i]].place.at[level];
        if (at >= 0)
            MEM_PUSH(all[at].members, all[at].size) = m->order[i];
    }
    for (int i = 0; i < n; i++)
        if (all[i].size > 1 && all[i].size < t->endpoints)
            MEM_PUSH(good.group, good.count) = all[i];
        else
            free(all[i].members);
    for (int i = 0; i < good.count; i++) {
        bool take = (long)i * most / good.count != (long)(i - 1) * most / good.count || i == 0;
        if (good.count <= most || take)
            MEM_PUSH(out.group, out.count) = good.group[i];
        else
            free(good.group[i].members);
    }
    free(good.group);
    free(all);
    return out;
}

static void add_prefix(struct maker *m, const int *ids, int n)
{
    struct plan_group g = {(int *)(size_t)ids, n};
    struct groups one = {&g, 1};

    if (n > 1)
        add_collectives(m, &one);
}

/* The outermost level with more than one group: what "growing" and "one of each" mean. */
static int outer_level(const struct topo *t)
{
    static const enum level order[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_HOST};

    for (int i = 0; i < 3; i++)
        if (t->group[order[i]].count > 1 && t->endpoint[0].place.at[order[i]] >= 0)
            return (int)order[i];
    return -1;
}

static void add_all_collectives(struct maker *m)
{
    static const enum level levels[] = {LEVEL_HOST, LEVEL_DOMAIN, LEVEL_RACK};
    const struct topo *t = m->topo;
    int most = m->o.full ? 64 : 8, outer = outer_level(t), n, last = 0;

    plan_known(&m->known, t, m->sized);
    for (int i = 0; i < 3; i++) {
        struct groups g = level_groups(m, levels[i], most);
        if (g.count && g.group[0].size != last) { /* the domain may be the host or the rack */
            last = g.group[0].size;
            add_collectives(m, &g);
        }
        free_groups(&g);
    }
    if (outer >= 0) {
        int per = t->endpoints / t->group[outer].count;
        for (int k = 2; per > 1 && k < t->group[outer].count; k *= 2)
            add_prefix(m, m->order, per * k);
        int *v = one_per_group(m, (enum level)outer, &n);
        if (per > 1)
            add_prefix(m, v, n);
        free(v);
    }
    add_prefix(m, m->order, t->endpoints);
    fabric_free(&m->known);
}

int plan_make(struct plan *p, const struct topo *t, const struct plan_opts *o, struct err *err)
{
    struct maker m = {.plan = p, .topo = t, .o = *o, .sized = o->max_bytes > 0};

    memset(p, 0, sizeof(*p));
    if (t->endpoints < 2)
        return err_config(err, "%d endpoint: nothing to measure between", t->endpoints);
    if (!t->tiers)
        return err_config(err, "the topology has no tiers");
    plan_fill_auto(&m.o, t);
    if (m.o.min_bytes < 1 || m.o.min_bytes > m.o.max_bytes)
        return err_usage(
            err, "sizes from %zu to %zu bytes: the first must be at least 1 and not above the last",
            m.o.min_bytes, m.o.max_bytes);
    if (m.o.factor < 2 || m.o.epochs < 1 || m.o.epochs > PLAN_EPOCHS || m.o.matchings < 1)
        return err_usage(err, "factor %d, epochs %d, matchings %d: need >= 2, 1..%d, >= 1",
                         m.o.factor, m.o.epochs, m.o.matchings, PLAN_EPOCHS);
    m.all_epochs = (1u << m.o.epochs) - 1;
    m.order = schedule_leaf_order(t);
    rng_seed(&m.rng, m.o.seed);
    add_pair_matrix(&m);
    add_ladders(&m, STAGE_LADDER);
    add_all_collectives(&m);
    add_nics(&m);
    add_cables(&m);
    free(m.order);
    return p->rounds ? 0 : err_usage(err, "the chosen operations leave nothing to measure");
}
