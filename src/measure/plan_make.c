/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "measure/schedule_impl.h"
#include "topo/fabrics/fabric.h"

enum {
    ISOLATED_TO = 16,   /* up to this many endpoints every pair runs alone, */
    TOURNAMENT_TO = 32, /* and to this many in parallel rounds; class matchings above */
    LATENCY_BYTES = 8,
    EVERY_EPOCH_TO = 128, /* hosts whose search for racks measures latency in several epochs */
    RAIL_MEETINGS = 16,   /* per two endpoint numbers */
    RAIL_NUMBERS_TO = 16,
    /* Pairs of up to this many endpoints are measured in every block, because few other pairs
     * cover their endpoints. */
    EVERY_BLOCK_TO = 4,
    /* Number of turns in both directions and at each further size.  Among three turns, two
     * disturbed turns decide; five turns tolerate two.  With many endpoints three, because five
     * would add an eighth to the plan. */
    EXTRA_TURNS = 5,
    EXTRA_TURNS_SPARSE = 3,
    SMALL_BYTES = 64 << 10, /* still limited by the time per message, not by the rate */
    LARGE_TIMES = 4,        /* 256 MiB between GPUs */
    /* Random pairs that run alone, per tier and every second block.  64 in a campaign give their
     * median to 0.3 % at 2 % noise.  At most one endpoint in eight, so that small systems do not
     * mostly measure alone. */
    RANDOM_PAIRS = 16,
    RANDOM_SHARE = 8,
    UPLINK_BACK =
        /* The reverse direction of uplinks is measured this many blocks later, when another job has
         * passed. */
    4,
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

/* Common state of the functions below. */
struct maker {
    struct plan *plan;
    const struct topo *topo;
    struct plan_opts o; /* with 0 replaced by values */
    bool sized;         /* the user gave message sizes */
    int *order;
    struct rng rng;
    struct fabric known; /* preset of the GPUs; name NULL: none */
    /* Index of the first round of each unit.  Turns that share pairs, and so communicators, form a
     * unit and stay together. */
    int *unit, units;
};

static void begin_unit(struct maker *m)
{
    if (!m->units || m->unit[m->units - 1] != m->plan->rounds)
        MEM_PUSH(m->unit, m->units) = m->plan->rounds;
}

unsigned plan_curve_epochs(int epochs)
{
    const int n = epochs < PLAN_CURVE_EPOCHS ? epochs : PLAN_CURVE_EPOCHS;
    unsigned mask = 0;

    for (int i = 0; i < n; i++)
        mask |= 1u << (i * epochs / n);
    return mask;
}

/* Bit mask of as many blocks as a curve has, starting with block `from`, so that all blocks get the
 * same number of rounds. */
static unsigned rotated(const struct maker *m, int from)
{
    const unsigned all = (1u << m->o.epochs) - 1, mask = plan_curve_epochs(m->o.epochs);
    const int by = from % m->o.epochs;

    return (mask << by | mask >> (m->o.epochs - by)) & all;
}

static unsigned block_bit(const struct maker *m, int block)
{
    return 1u << (block % m->o.epochs);
}

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

/* Returns the round, NULL if there is none.  swap: the second of each pair sends to the first. */
static struct round *add_pairs(struct maker *m, struct plan_pairs what, const struct pairs *pairs,
                               bool swap)
{
    if (!(m->o.ops >> what.op & 1) || !pairs->count)
        return NULL;
    struct round *r = plan_add(m->plan, what.stage, what.op, pairs->count);
    r->first = r->last = what.bytes;
    r->factor = m->o.factor;
    r->epochs = what.epochs;
    r->block = mem_calloc(2 * (size_t)pairs->count, sizeof(int));
    for (int i = 0; i < pairs->count; i++) {
        r->group[i] = (struct plan_group){r->block + 2 * (size_t)i, 2};
        for (int k = 0; k < 2; k++)
            r->group[i].members[k] = pairs->pair[i][k ^ swap];
    }
    return r;
}

/* bytes: the smallest size; last: the largest. */
static void add_ladder(struct maker *m, struct plan_pairs what, const struct pairs *pair,
                       size_t last)
{
    struct round *r = add_pairs(m, what, pair, false);

    if (r)
        r->last = last;
}

/* Let the last round use the pairs of the one before: equal rounds of every pair would take half of the
 * memory again. */
static void lend_pairs(struct plan *p)
{
    struct round *r = &p->round[p->rounds - 1];

    free(r->block);
    free(r->group);
    r->group = r[-1].group;
    r->block = r[-1].block;
    r->lent = true;
}

/* Add the rounds of the pair matrix for disjoint pairs: latency, and bandwidth each way. */
static void add_matrix_rounds(struct maker *m, enum stage stage, const struct pairs *p,
                              unsigned epochs)
{
    const int from = m->plan->rounds;

    begin_unit(m);
    add_pairs(m, (struct plan_pairs){stage, OP_PAIR_LATENCY, LATENCY_BYTES, epochs}, p, false);
    add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, m->o.pair_bytes, epochs}, p, false);
    if (m->plan->rounds == from + 2)
        lend_pairs(m->plan);
    add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, m->o.pair_bytes, epochs}, p, true);
}

/* --- both ways, further sizes, and pairs alone --- */

/* The n-th tier, cyclically, whose pairs cross NICs; -1: none. */
static int nic_tier(const struct maker *m, int n)
{
    const unsigned inside = 1u << LEVEL_HOST | 1u << LEVEL_DOMAIN;
    int tier[TIER_MAX], tiers = 0;

    for (int t = 0; t < m->topo->tiers; t++)
        if (!(m->topo->tier[t].same & inside))
            tier[tiers++] = t;
    return tiers ? tier[n % tiers] : -1;
}

enum extra { EXTRA_BOTH_WAYS, EXTRA_SMALL, EXTRA_LARGE, EXTRAS };

/* True if matching k of this tier measures this extra.  The few such matchings are spread over the
 * plan, and so over blocks, and over the tiers in turn. */
static bool has_extra(const struct maker *m, enum extra extra, int k, int tier)
{
    const int most = plan_is_sparse(m->topo) ? EXTRA_TURNS_SPARSE : EXTRA_TURNS;
    const int all = m->o.matchings, n = most < all ? most : all;

    for (int i = 0; i < n && !m->o.quick; i++)
        if (((int)extra + i * all / n) % all == k && nic_tier(m, (int)extra + i) == tier)
            return true;
    return false;
}

static bool has_extras(const struct maker *m, int k, int tier)
{
    return has_extra(m, EXTRA_BOTH_WAYS, k, tier) || has_extra(m, EXTRA_SMALL, k, tier) ||
           has_extra(m, EXTRA_LARGE, k, tier);
}

static void add_extras(struct maker *m, enum stage stage, const struct pairs *p, int k, int tier,
                       unsigned when)
{
    const size_t pair = m->o.pair_bytes, most = m->o.max_bytes;
    const size_t large = LARGE_TIMES * pair < most ? LARGE_TIMES * pair : most;

    if (has_extra(m, EXTRA_BOTH_WAYS, k, tier))
        add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BIBW, pair, when}, p, false);
    if (has_extra(m, EXTRA_SMALL, k, tier) && SMALL_BYTES < pair)
        add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, SMALL_BYTES, when}, p, false);
    if (has_extra(m, EXTRA_LARGE, k, tier) && large > pair)
        add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, large, when}, p, false);
}

/* Add some of these pairs, randomly chosen, alone.  The same pairs run in parallel in the same
 * block, which shows the effect of load on pairs that were not selected by a measurement. */
static void add_random(struct maker *m, enum stage stage, const struct pairs *p, unsigned when)
{
    const enum stage alone = stage_by_nic(stage) ? STAGE_NIC_RANDOM : STAGE_RANDOM;
    int *at = mem_ints(p->count, 0), n = m->topo->endpoints / RANDOM_SHARE;

    for (int i = 0; i < p->count; i++)
        at[i] = i;
    rng_shuffle(&m->rng, at, p->count);
    n = n > RANDOM_PAIRS ? RANDOM_PAIRS : n;
    for (int i = 0; i < n && i < p->count && !m->o.quick; i++) {
        struct pairs one = {&p->pair[at[i]], 1};
        bool back = i % 2; /* only one direction between two racks may be slow */
        add_pairs(m, (struct plan_pairs){alone, OP_PAIR_BW, m->o.pair_bytes, when}, &one, back);
    }
    free(at);
}

/* Small systems, where every pair is measured: add extras of NICs, and random pairs unless every
 * pair runs alone anyway. */
static void add_few(struct maker *m, enum stage stage, bool random)
{
    for (int k = 0; k < m->o.matchings; k++)
        for (int t = 0; t < m->topo->tiers; t++) {
            struct pairs p = {NULL, 0};
            bool draws = random && k % 2 == 0;
            if (!draws && !has_extras(m, k, t))
                continue;
            begin_unit(m);
            schedule_matching(&p, m->topo, m->order, t, stage_by_nic(stage), k, &m->rng);
            add_extras(m, stage, &p, k, t, block_bit(m, k));
            if (draws)
                add_random(m, stage, &p, block_bit(m, k));
            free(p.pair);
        }
}

/* Add all rounds of the circle method over v.  one_block: each round is measured in one block, by
 * turns; else in as many blocks as a curve, or, for the few pairs of very small systems, in all. */
static void add_circle(struct maker *m, enum stage stage, const int *v, int n, bool alone,
                       bool one_block)
{
    for (int r = 0; r < schedule_circle_rounds(n); r++) {
        struct pairs p = {NULL, 0};
        unsigned when = one_block             ? block_bit(m, r)
                        : n <= EVERY_BLOCK_TO ? (1u << m->o.epochs) - 1
                                              : rotated(m, r);
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

/* Random endpoint of the same host; leaf order keeps the endpoints of a host together. */
static int any_of_host(struct maker *m, const int *at, int first)
{
    const struct topo *t = m->topo;
    int n = t->host[t->endpoint[first].place.at[LEVEL_HOST]].endpoints;

    return m->order[at[first] + (int)rng_below(&m->rng, (unsigned)n)];
}

/* Pair hosts as in the search for racks, each two hosts by any two endpoints, to find out if
 * endpoints with the same number share a leaf.  Latency shows it at almost no cost. */
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
        begin_unit(m);
        add_pairs(
            m,
            (struct plan_pairs){STAGE_TOURNAMENT, OP_PAIR_LATENCY, LATENCY_BYTES, block_bit(m, r)},
            &p, false);
        free(p.pair);
    }
    free(at);
}

/* No level above the host is visible: one endpoint of each host searches for racks.  The latencies
 * differ by a few per cent only, so with few hosts they are measured in as many blocks as a
 * curve. */
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
        unsigned once = block_bit(m, r), often = hosts <= EVERY_EPOCH_TO ? rotated(m, r) : once;
        schedule_find(&p, v, hosts, r);
        begin_unit(m);
        add_pairs(m, (struct plan_pairs){STAGE_TOURNAMENT, OP_PAIR_LATENCY, LATENCY_BYTES, often},
                  &p, false);
        add_pairs(m, (struct plan_pairs){STAGE_TOURNAMENT, OP_PAIR_BW, m->o.pair_bytes, once}, &p,
                  false);
        add_pairs(m, (struct plan_pairs){STAGE_TOURNAMENT, OP_PAIR_BW, m->o.pair_bytes, once}, &p,
                  true);
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
        add_matrix_rounds(m, STAGE_SHIFT, &p, block_bit(m, d - 1));
        free(p.pair);
    }
}

/* Block of matching k, chosen so that each endpoint is paired in each tier in every block.  With
 * fewer matchings than blocks, the tiers take the blocks in turn. */
static int block_of(const struct maker *m, int k, int tier)
{
    const int every = m->o.epochs / m->o.matchings;

    return every > 1 ? k * every + tier : k;
}

/* Add the turns of a matching: latency, bandwidth forth, extras of these pairs, bandwidth back. */
static void add_matching(struct maker *m, enum stage stage, const struct pairs *p, int k, int tier)
{
    const int block = block_of(m, k, tier);
    const unsigned when = block_bit(m, block);
    const size_t bytes = m->o.pair_bytes;

    begin_unit(m);
    add_pairs(m, (struct plan_pairs){stage, OP_PAIR_LATENCY, LATENCY_BYTES, when}, p, false);
    add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, bytes, when}, p, false);
    add_extras(m, stage, p, k, tier, when);
    if (k % 2 == 0 || m->o.matchings < m->o.epochs)
        add_random(m, stage, p, when);
    add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, bytes, when}, p, true);
}

static void add_matchings(struct maker *m, enum stage stage)
{
    const int first = (int)(m->o.seed % 61); /* other seeds give other partners */

    for (int k = 0; k < m->o.matchings; k++)
        for (int t = 0; t < m->topo->tiers; t++) {
            struct pairs p = {NULL, 0};
            schedule_matching(&p, m->topo, m->order, t, stage_by_nic(stage), first + k, &m->rng);
            add_matching(m, stage, &p, k, t);
            free(p.pair);
        }
}

/* Measure both directions.  With many endpoints latency is left out, because these rounds are 2/5
 * of that plan and no verdict uses the latency of two racks. */
static void add_racks_round(struct maker *m, const struct pairs *p, int block)
{
    if (!plan_is_sparse(m->topo)) {
        add_matrix_rounds(m, STAGE_CLASS, p, block_bit(m, block));
        return;
    }
    begin_unit(m);
    for (int back = 0; back < 2; back++)
        add_pairs(
            m, (struct plan_pairs){STAGE_CLASS, OP_PAIR_BW, m->o.pair_bytes, block_bit(m, block)},
            p, back);
}

/* Pair each two racks (above some 300 racks, as many as there are rounds for), and each rack with
 * itself. */
static void add_racks(struct maker *m)
{
    struct pairs p = {NULL, 0};
    bool more = true;

    for (int r = 0; more; r++, p = (struct pairs){NULL, 0}) {
        more = schedule_racks(&p, m->topo, m->order, r);
        add_racks_round(m, &p, r);
        free(p.pair);
    }
    for (int d = 0; d < 2; d++, p = (struct pairs){NULL, 0}) {
        schedule_within_racks(&p, m->topo, m->order, d);
        add_racks_round(m, &p, d * m->o.epochs / 2);
        free(p.pair);
    }
}

/* Use all NICs of a group at once, in both directions, to measure the uplinks.  Leaves (racks, if
 * leaves are not known) get several partners, because a partner may be bad, in several blocks,
 * because another job may pass; wider groups get a single partner. */
static void add_uplinks(struct maker *m)
{
    static const enum level levels[] = {LEVEL_LEAF, LEVEL_RACK, LEVEL_SPINE};
    int partners = UPLINK_PARTNERS, block = 0;

    for (int i = 0; i < 3; i++) {
        if (!m->topo->group[levels[i]].count)
            continue;
        for (int r = 0; r < partners; r++, block += 3) {
            struct pairs p = {NULL, 0};
            schedule_uplinks(&p, m->topo, m->order, levels[i], r);
            for (int back = 0; back < 2 && p.count > 1; back++) {
                begin_unit(m);
                add_pairs(m,
                          (struct plan_pairs){STAGE_SHIFT, OP_PAIR_BW, m->o.pair_bytes,
                                              block_bit(m, block + back * UPLINK_BACK)},
                          &p, back);
            }
            free(p.pair);
        }
        partners = !m->o.quick;
    }
}

/* Add as many pairs of NICs as the allowed seconds suffice for, each direction once. */
static void add_cables(struct maker *m)
{
    const struct topo *t = m->topo;
    enum stage stage = m->o.nics && topo_hides_nics(t) ? STAGE_NIC : STAGE_TOURNAMENT;
    int rounds = schedule_cables(NULL, t, m->order, -1);
    double fit = m->o.cables / plan_cable_seconds(t, m->o.pair_bytes);

    for (int r = 0; r < rounds && r < fit; r++) {
        struct pairs p = {NULL, 0};
        unsigned when = block_bit(m, r);
        schedule_cables(&p, t, m->order, r);
        for (int back = 0; back < 2; back++)
            add_pairs(m, (struct plan_pairs){stage, OP_PAIR_BW, m->o.pair_bytes, when}, &p, back);
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

static enum stage pair_stage(const struct maker *m)
{
    const int n = m->topo->endpoints;

    if (m->o.pairs != STAGE_COUNT)
        return m->o.pairs;
    if (m->o.quick)
        return n <= PLAN_EVERY_TO ? STAGE_TOURNAMENT : STAGE_CLASS;
    return n <= ISOLATED_TO ? STAGE_ISOLATED : n <= TOURNAMENT_TO ? STAGE_TOURNAMENT : STAGE_CLASS;
}

/* Refuse what would fill memory and disks before it is made. */
static int check_every(const struct maker *m, struct err *err)
{
    const enum stage s = pair_stage(m);
    const unsigned pairs = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW;
    const int most = s == STAGE_CLASS      ? INT_MAX
                     : s == STAGE_ISOLATED ? PLAN_ALONE_TO
                                           : PLAN_EVERY_TO;

    return m->topo->endpoints > most && m->o.ops & pairs
               ? plan_refuse_every(m->topo, s == STAGE_ISOLATED, m->o.pair_bytes, err)
               : 0;
}

static void add_pair_matrix(struct maker *m)
{
    int n = m->topo->endpoints;
    enum stage s = pair_stage(m);

    if (s == STAGE_ISOLATED) {
        add_circle(m, s, m->order, n, true, false);
        if (n > 3) /* speed of a pair under load */
            add_circle(m, STAGE_TOURNAMENT, m->order, n, false, true);
        add_few(m, STAGE_TOURNAMENT, false);
    } else if (s == STAGE_TOURNAMENT) {
        add_circle(m, s, m->order, n, false, n > TOURNAMENT_TO);
        add_few(m, s, true);
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

/* Pairs between hosts of unknown structure: neighbours in the list, hosts far from each other, and
 * pairs of endpoints with different numbers, so that each kind of path has a curve. */
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

/* A user who wants only the matrix gets no curves, unless sizes are given.  pair_bibw consists of
 * curves. */
static bool wants_ladders(const struct maker *m)
{
    const unsigned matrix = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW;
    return !m->o.quick && (m->o.ops & ~matrix || m->sized || m->o.full);
}

/* Keep every second size of a round, including the last. */
static void every_second(struct round *r)
{
    if (plan_steps(r) % 2 == 0)
        r->first *= (size_t)r->factor;
    r->factor *= r->factor;
}

/* Measure a few pairs of each tier, alone, over all sizes: the tier's curves.  Simultaneous
 * bandwidth in both directions is measured for every NIC at the main size, so that curve needs only
 * every second size, unless the user gave sizes. */
static void add_ladders(struct maker *m, enum stage stage)
{
    const struct topo *t = m->topo;
    int wanted = !wants_ladders(m) ? 0 : m->o.full ? 8 : 3;
    size_t from = m->o.min_bytes > 4096 ? m->o.min_bytes : 4096;
    const unsigned when = plan_curve_epochs(m->o.epochs);

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
            add_ladder(m, (struct plan_pairs){stage, OP_PAIR_LATENCY, m->o.min_bytes, when}, &one,
                       m->o.pair_max);
            add_ladder(m, (struct plan_pairs){stage, OP_PAIR_BW, from, when}, &one, m->o.pair_max);
            add_ladder(m, (struct plan_pairs){stage, OP_PAIR_BIBW, from, when}, &one,
                       m->o.pair_max);
            if (m->o.ops >> OP_PAIR_BIBW & 1 && !m->sized && !m->o.full)
                every_second(&m->plan->round[m->plan->rounds - 1]);
        }
        free(p.pair);
    }
}

/* --- order of turns --- */

/* Rounds of a unit and the position of the unit: in its block; if measured in several blocks,
 * beside the units of one of these blocks. */
struct unit {
    double block, chance;
    int first, rounds;
};

static int by_place(const void *a, const void *b)
{
    return stats_order(a, b, 2);
}

static struct unit unit_of(struct maker *m, int first, int last)
{
    unsigned left = m->plan->round[first].epochs;

    for (unsigned skip = rng_below(&m->rng, (unsigned)__builtin_popcount(left)); skip; skip--)
        left &= left - 1;
    return (struct unit){__builtin_ctz(left), rng_uniform(&m->rng), first, last - first};
}

/* Shuffle the units from round `from` on within each block, so that a disturbance that comes and
 * goes is not taken for a property of a tier or a kind of turn.  Rounds are renumbered. */
static void mix_units(struct maker *m, int from)
{
    struct plan *p = m->plan;
    struct unit *unit = mem_calloc((size_t)m->units + 1, sizeof(*unit));
    struct round *was = mem_dup(p->round, (size_t)p->rounds, sizeof(*was));
    int n = 0, at = from;

    for (int i = 0; i < m->units; i++) {
        int last = i + 1 < m->units ? m->unit[i + 1] : p->rounds;
        if (m->unit[i] >= from && m->unit[i] < last)
            unit[n++] = unit_of(m, m->unit[i], last);
    }
    if (n)
        qsort(unit, (size_t)n, sizeof(*unit), by_place);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < unit[i].rounds; k++, at++) {
            p->round[at] = was[unit[i].first + k];
            p->round[at].id = at;
        }
    free(unit);
    free(was);
}

/* --- through the NICs, if NVLink connects all endpoints --- */

/* All pairs with a NIC at each end, in parallel rounds. */
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
        add_matrix_rounds(m, STAGE_NIC, &p, rotated(m, r));
        free(p.pair);
    }
    add_few(m, STAGE_NIC, true);
}

static void add_nics(struct maker *m)
{
    if (!m->o.nics || !topo_hides_nics(m->topo))
        return;
    const int from = m->plan->rounds;
    if (m->topo->endpoints <= TOURNAMENT_TO)
        add_nic_circle(m);
    else
        add_matchings(m, STAGE_NIC);
    mix_units(m, from);
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
        r->epochs = plan_curve_epochs(m->o.epochs);
        for (int i = 0; i < g->count; i++)
            add_group(r, i, g->group[i].members, g->group[i].size);
    }
}

/* Groups of one level with at least two endpoints but not all; at most `most` groups, spread
 * evenly. */
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

/* Outermost level with several groups, used for "growing" and "one of each". */
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
        if (g.count && g.group[0].size != last) { /* the domain may equal the host or the rack */
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
    if (check_every(&m, err) < 0)
        return -1;
    m.order = schedule_leaf_order(t);
    rng_seed(&m.rng, m.o.seed);
    add_pair_matrix(&m);
    mix_units(&m, 0);
    add_ladders(&m, STAGE_LADDER);
    add_all_collectives(&m);
    add_nics(&m);
    add_cables(&m);
    free(m.order);
    free(m.unit);
    return p->rounds ? 0 : err_usage(err, "the chosen operations leave nothing to measure");
}
