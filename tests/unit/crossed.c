/* SPDX-License-Identifier: BSD-3-Clause */
/* crossed.c - a slow part changes the price of groups whose schedule crosses it, and of no others: a healthy campaign
 * beside one of other noise with a slow part, in random presets.  What is crossed is told here by the places of
 * endpoints, not by the code under test. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/units.h"
#include "matrix/collective.h"
#include "tests/unit/campaign.h"

static const char *const preset[] = {"gb200-nvl72", "gb300-nvl72", "hgx-h100",  "hgx-b200",
                                     "hgx-a100",    "h200-nvl",    "l40s-pcie", "hgx-h100-efa",
                                     "v100-dgx1",   "mi300x"};
enum { PRESETS = sizeof(preset) / sizeof(*preset), TRIES = 3 };

enum kind { NIC, GPU, HOST, LEAF, UPLINKS, KINDS };
static const char *const word[KINDS] = {"nic", "gpu", "host", "leaf", "uplinks"};

static const enum op ops[] = {OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
                              OP_ALL_TO_ALL, OP_BROADCAST,  OP_SENDRECV};
enum { OPS = sizeof(ops) / sizeof(*ops) };
static const double sizes[] = {64 << 10, 4 << 20, 256 << 20, 4e9};

/* Intervals hold 95 %, and beside them medians of few samples lie this far apart; one check in a hundred may miss. */
static const double slack = 1.03;

struct scene {
    struct matrix good, bad;
    enum kind kind;
    int at;  /* number of the part */
    int per; /* endpoints of a domain */
    char fault[64];
    int checks, misses;
};

static struct rng rng;

static int draw(int n)
{
    return (int)(rng_uniform(&rng) * n) % n;
}

static int domain_of(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : at[LEVEL_HOST];
}

static void measure(struct matrix *m, const char *name, const char *fault, unsigned long long seed)
{
    bool rack_is_domain = strstr(name, "nvl72");
    struct sim_opts o = {
        .fabric = name, .racks = rack_is_domain ? 3 : 2, .noise = 0.02, .seed = seed};
    struct plan_opts p;

    plan_defaults(&p);
    p.ops = (1u << OP_PAIR_BW) | (1u << OP_PAIR_BIBW) | (1u << OP_PAIR_LATENCY);
    for (int i = 0; i < OPS; i++)
        p.ops |= 1u << ops[i];
    o.fault = &fault;
    o.faults = fault != NULL;
    campaign(m, &o, &p, campaign_points);
}

static bool touches(const struct scene *s, int id)
{
    const struct topo *t = &s->good.topo;

    return s->kind == HOST                         ? t->endpoint[id].place.at[LEVEL_HOST] == s->at
           : s->kind == LEAF || s->kind == UPLINKS ? topo_at(t, id, LEVEL_LEAF) == s->at
                                                   : id == s->at;
}

/* A hop in rank order over the part. */
static bool hop_crosses(const struct scene *s, int a, int b)
{
    const struct topo *t = &s->good.topo;
    bool nics = domain_of(t, a) != domain_of(t, b), any = touches(s, a) || touches(s, b);

    if (s->kind == UPLINKS)
        return nics && touches(s, a) != touches(s, b);
    return any && (s->kind == HOST || nics == (s->kind != GPU));
}

/* True if no flow can cross the part: nobody is in it, or who is sends and receives in rank order beside it. */
static bool spared(const struct scene *s, enum op op, const int *ids, int n)
{
    bool in = false, hop = false;

    for (int i = 0; i < n; i++) {
        in |= touches(s, ids[i]);
        hop |= hop_crosses(s, ids[i], ids[(i + 1) % n]);
    }
    return !in || (op == OP_SENDRECV && !hop);
}

/* B/s that a group between domains can reach on the bus by its NICs. */
static double nics_carry(const struct matrix *m, enum op op, const int *ids, int n)
{
    double rate = 0;
    struct ways w;

    ways_of(&w, m, ids, n, op, true);
    for (int t = 0; t < m->tiers; t++)
        if (m->tier[t].nic && !isnan(matrix_rate(m, t, DIR_UNI)))
            rate = fmax(rate, matrix_rate(m, t, DIR_UNI));
    if (w.shape.domains == 1)
        return INFINITY;
    double per = w.shape.per_domain, nics = w.shape.nics;
    return op == OP_SENDRECV     ? rate
           : op == OP_ALL_TO_ALL ? rate * nics / per * (n - 1) / (n - per)
                                 : rate * nics;
}

static void price(struct scene *s, enum op op, const int *ids, int n, double bytes)
{
    struct cost good, bad;
    char group[160];

    matrix_collective(&s->good, op, ids, n, bytes, &good);
    matrix_collective(&s->bad, op, ids, n, bytes, &bad);
    snprintf(group, sizeof(group), "%s %s of %d ranks from %d on at %g bytes", s->fault,
             op_name(op), n, ids[0], bytes);
    double bus = bytes / bad.sec, most = nics_carry(&s->good, op, ids, n) / op_bus_factor(op, n);
    most = fmax(
        most,
        bytes / good.lo); /* switches may reduce: more than NICs carry, also without a slow part */
    if (bus > slack * most)
        fail_msg("%s: %g GB/s over NICs of %g: %s", group, bus / 1e9, most / 1e9, bad.source);
    if (bad.hi * slack < good.lo)
        fail_msg("%s: faster with a slow part: %g s, %g s without: %s", group, bad.sec, good.sec,
                 bad.source);
    if (!spared(s, op, ids, n))
        return;
    if (bad.exception >= 0)
        fail_msg("%s: slowed by a part that it does not cross: %s", group, bad.source);
    s->checks++;
    if (good.lo <= bad.hi * slack && bad.lo <= good.hi * slack)
        return;
    s->misses++;
    print_message("%s: %g s (%g to %g), %g (%g to %g) without: %s\n", group, bad.sec, bad.lo,
                  bad.hi, good.sec, good.lo, good.hi, bad.source);
}

static void price_all(struct scene *s, const int *ids, int n)
{
    for (int op = 0; n > 1 && op < OPS; op++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            price(s, ops[op], ids, n, sizes[i]);
}

/* Domains in a row, one endpoint of each, and some domains dealt out round robin. */
static void price_groups(struct scene *s)
{
    int n = s->good.topo.endpoints, per = s->per, domains = n / per;
    int *ids = calloc((size_t)n, sizeof(*ids));

    for (int k = 1; k <= domains; k *= 2)
        for (int first = 0; first + k <= domains; first++) {
            for (int i = 0; i < k * per; i++)
                ids[i] = first * per + i;
            price_all(s, ids, k * per);
        }
    for (int local = 0; local < per; local += 1 + draw(per)) {
        for (int d = 0; d < domains; d++)
            ids[d] = d * per + local;
        price_all(s, ids, domains);
    }
    for (int i = 0; i < 2 * per; i++)
        ids[i] = i % 2 * per + i / 2;
    price_all(s, ids, 2 * per);
    free(ids);
}

static void draw_fault(struct scene *s)
{
    const struct topo *t = &s->good.topo;
    int n = s->kind == HOST                         ? t->hosts
            : s->kind == LEAF || s->kind == UPLINKS ? t->group[LEVEL_LEAF].count
                                                    : t->endpoints;

    s->at = draw(n);
    snprintf(s->fault, sizeof(s->fault), "slow-%s=%d:%.2f", word[s->kind], s->at,
             0.45 + 0.3 * rng_uniform(&rng));
}

static void a_part_slows_what_crosses_it_and_nothing_else(void **state)
{
    struct scene s = {.checks = 0};

    (void)state;
    for (int i = 0, at = draw(PRESETS); i < TRIES;
         i++, at = (at + 1 + draw(PRESETS - 1)) % PRESETS) {
        measure(&s.good, preset[at], NULL, 1 + (unsigned)draw(1 << 20));
        const struct topo *t = &s.good.topo;
        int domains = t->group[LEVEL_DOMAIN].count ? t->group[LEVEL_DOMAIN].count : t->hosts;
        s.per = t->endpoints / domains;
        for (s.kind = NIC; s.kind < KINDS; s.kind++) {
            if (s.kind >= LEAF && !t->group[LEVEL_LEAF].count)
                continue;
            draw_fault(&s);
            print_message("%s --fault %s\n", preset[at], s.fault);
            measure(&s.bad, preset[at], s.fault, 1 + (unsigned)draw(1 << 20));
            if (s.bad.exceptions) /* one of two leaves is half of all pairs: none stands out */
                price_groups(&s);
            matrix_free(&s.bad);
        }
        matrix_free(&s.good);
    }
    print_message("%d of %d prices that no part slows moved\n", s.misses, s.checks);
    assert_true(s.checks > 500);
    if (s.misses > s.checks / 100)
        fail_msg("%d of %d", s.misses, s.checks);
}

/* --- one part, one group: hosts of 8 GPUs, four in a rack, each rail on a leaf of its own for all racks --- */

static const struct {
    const char *what;
    enum op op;
    enum part part;
    enum side side;
    int a, b, tier;
    int first, count, step; /* the group; count 0: 16-22, 24-31, 23 */
    bool crossed;
} cases[] = {
    {"the NIC of each member has a channel", OP_ALL_GATHER, PART_ENDPOINT, SIDE_BOTH, 17, -1, -1,
     16, 16, 1, true},
    {"one domain uses no NIC", OP_ALL_GATHER, PART_ENDPOINT, SIDE_BOTH, 17, -1, -1, 16, 8, 1,
     false},
    {"a tree as well", OP_ALL_REDUCE, PART_ENDPOINT, SIDE_BOTH, 17, -1, -1, 16, 16, 1, true},
    {"all to all", OP_ALL_TO_ALL, PART_ENDPOINT, SIDE_BOTH, 17, -1, -1, 16, 16, 1, true},
    {"its neighbours are in its domain", OP_SENDRECV, PART_ENDPOINT, SIDE_BOTH, 17, -1, -1, 16, 16,
     1, false},
    {"the last of a domain", OP_SENDRECV, PART_ENDPOINT, SIDE_BOTH, 23, -1, -1, 16, 16, 1, true},
    {"the first of a domain", OP_SENDRECV, PART_ENDPOINT, SIDE_BOTH, 24, -1, -1, 16, 16, 1, true},
    {"the first receives over its NIC", OP_SENDRECV, PART_ENDPOINT, SIDE_RX, 16, -1, -1, 16, 16, 1,
     true},
    {"and sends inside", OP_SENDRECV, PART_ENDPOINT, SIDE_TX, 16, -1, -1, 16, 16, 1, false},
    {"one in each domain", OP_SENDRECV, PART_ENDPOINT, SIDE_BOTH, 17, -1, -1, 1, 4, 8, true},
    {"in another order", OP_SENDRECV, PART_ENDPOINT, SIDE_BOTH, 23, -1, -1, 0, 0, 0, true},
    {"whose last is between others", OP_SENDRECV, PART_ENDPOINT, SIDE_BOTH, 21, -1, -1, 0, 0, 0,
     false},
    {"a host's NICs", OP_SENDRECV, PART_HOST, SIDE_BOTH, 2, -1, -1, 16, 16, 1, true},
    {"a host beside the group", OP_ALL_GATHER, PART_HOST, SIDE_BOTH, 1, -1, -1, 16, 16, 1, false},
    {"channels stay on their rail", OP_ALL_GATHER, PART_LEAF, SIDE_BOTH, 0, -1, 2, 0, 64, 1, false},
    {"hops in rank order do not", OP_SENDRECV, PART_LEAF, SIDE_BOTH, 0, -1, 2, 0, 64, 1, true},
    {"all to all leaves the leaf", OP_ALL_TO_ALL, PART_LEAF, SIDE_BOTH, 0, -1, 2, 0, 64, 1, true},
    {"below a leaf", OP_ALL_TO_ALL, PART_LEAF, SIDE_BOTH, 0, -1, 2, 0, 8, 8, false},
    {"racks that follow each other", OP_ALL_GATHER, PART_RACK_PAIR, SIDE_BOTH, 0, 1, -1, 0, 128, 1,
     true},
    {"and those that do not", OP_ALL_GATHER, PART_RACK_PAIR, SIDE_BOTH, 0, 2, -1, 0, 128, 1, false},
    {"do where others are left out", OP_ALL_GATHER, PART_RACK_PAIR, SIDE_BOTH, 0, 2, -1, 0, 2, 64,
     true},
    {"all to all meets all racks", OP_ALL_TO_ALL, PART_RACK_PAIR, SIDE_BOTH, 0, 2, -1, 0, 128, 1,
     true},
    {"as the ring goes", OP_ALL_GATHER, PART_RACK_PAIR, SIDE_TX, 0, 1, -1, 0, 96, 1, true},
    {"against it", OP_ALL_GATHER, PART_RACK_PAIR, SIDE_RX, 0, 1, -1, 0, 96, 1, false},
    {"uplinks of a rack", OP_SENDRECV, PART_RACK_UPLINKS, SIDE_BOTH, 0, -1, -1, 0, 64, 1, true},
    {"within the rack", OP_ALL_TO_ALL, PART_RACK_UPLINKS, SIDE_BOTH, 0, -1, -1, 0, 32, 1, false},
    {"a cable of one rail", OP_ALL_GATHER, PART_PAIR, SIDE_BOTH, 1, 9, -1, 0, 16, 1, true},
    {"which rank order does not use", OP_SENDRECV, PART_PAIR, SIDE_BOTH, 1, 9, -1, 0, 16, 1, false},
    {"a cable between rails", OP_ALL_GATHER, PART_PAIR, SIDE_BOTH, 7, 8, -1, 0, 16, 1, false},
    {"which rank order uses", OP_SENDRECV, PART_PAIR, SIDE_BOTH, 7, 8, -1, 0, 16, 1, true},
    {"all pairs", OP_ALL_TO_ALL, PART_PAIR, SIDE_BOTH, 1, 12, -1, 0, 16, 1, true},
    {"an NVLink port", OP_ALL_GATHER, PART_ENDPOINT, SIDE_BOTH, 3, -1, 0, 0, 16, 1, true},
    {"that nobody in its domain needs", OP_ALL_GATHER, PART_ENDPOINT, SIDE_BOTH, 3, -1, 0, 3, 4, 8,
     false},
};

static void a_part_counts_where_a_flow_crosses_it(void **state)
{
    struct fabric f;
    struct matrix m;
    struct err err;
    struct ways w;
    int ids[128];

    (void)state;
    if (fabric_load(&f, "hgx-h100", &err) < 0 || matrix_from_fabric(&m, &f, 4, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(m.topo.endpoints, 128);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int n = cases[i].count ? cases[i].count : 16;
        for (int k = 0; k < n; k++)
            ids[k] = cases[i].count ? cases[i].first + k * cases[i].step
                     : k == 15      ? 23
                                    : 16 + k + (k > 6);
        MEM_PUSH(m.exception, m.exceptions) = (struct exception){.part = cases[i].part,
                                                                 .side = cases[i].side,
                                                                 .a = cases[i].a,
                                                                 .b = cases[i].b,
                                                                 .tier = cases[i].tier,
                                                                 .factor = 0.5};
        ways_of(&w, &m, ids, n, cases[i].op, false);
        if (cases[i].crossed != (w.slow[SCHEDULE_OWN].exception == 0))
            fail_msg("%s: %s", op_name(cases[i].op), cases[i].what);
        assert_true(!cases[i].crossed || fmin(w.inner_factor, w.slow[SCHEDULE_OWN].outer) == 0.5);
        m.exceptions = 0;
    }
    matrix_free(&m);
    fabric_free(&f);
}

/* --- a ring, trees and PAT: eight hosts, two racks of four --- */

static const struct {
    const char *what;
    enum part part;
    int a, b; /* GPUs, or racks */
    int per;  /* GPUs of each host in the group */
    bool crossed[SCHEDULES];
} edges[] = {
    /* trees of eight: 1-2 3-2 5-6 2-4 6-4 7-6 4-0, and mirrored 6-5 4-5 2-1 5-3 1-3 0-1 3-7 */
    {"a hop of a ring and of a tree", PART_PAIR, 9, 17, 8, {true, true, false}},
    {"the ring's last hop is in no tree", PART_PAIR, 1, 57, 8, {true, false, false}},
    {"a tree passes a host over", PART_PAIR, 17, 33, 8, {false, true, false}},
    {"the root's edge", PART_PAIR, 1, 33, 8, {false, true, false}},
    {"the second root's", PART_PAIR, 25, 57, 8, {false, true, false}},
    {"hosts of no edge", PART_PAIR, 1, 25, 8, {false, false, false}},
    {"another rail", PART_PAIR, 17, 34, 8, {false, false, false}},
    {"PAT goes one rank far", PART_PAIR, 0, 8, 1, {true, true, true}},
    {"two far", PART_PAIR, 0, 16, 1, {false, false, true}},
    {"four far", PART_PAIR, 0, 32, 1, {false, true, true}},
    {"not three", PART_PAIR, 0, 24, 1, {false, false, false}},
    {"both racks are in all", PART_RACK_PAIR, 0, 1, 1, {true, true, true}},
};

static void schedules_have_edges_of_their_own(void **state)
{
    struct fabric f;
    struct matrix m;
    struct err err;
    struct ways w;
    int ids[64];

    (void)state;
    assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
    assert_int_equal(matrix_from_fabric(&m, &f, 2, &err), 0);
    for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
        int per = edges[i].per;
        for (int k = 0; k < 8 * per; k++)
            ids[k] = k / per * 8 + k % per;
        MEM_PUSH(m.exception, m.exceptions) = (struct exception){
            .part = edges[i].part, .a = edges[i].a, .b = edges[i].b, .tier = -1, .factor = 0.5};
        ways_of(&w, &m, ids, 8 * per, OP_ALL_REDUCE, false);
        for (int s = 0; s < SCHEDULES; s++)
            if ((s != SCHEDULE_PAT || per == 1) && edges[i].crossed[s] != (w.slow[s].outer == 0.5))
                fail_msg("%s: schedule %d", edges[i].what, s);
        m.exceptions = 0;
    }
    matrix_free(&m);
    fabric_free(&f);
}

/* A price moves by the edges of the algorithm that NCCL runs at the size, and names the part then. */
static void only_edges_of_what_runs_slow_it(void **state)
{
    static const struct {
        double bytes;
        enum op op;
        int a, b, per;
        bool slower;
    } of[] = {{1 << 20, OP_ALL_REDUCE, 1, 57, 8, false},
              {1 << 20, OP_ALL_REDUCE, 17, 33, 8, true},
              {1 << 20, OP_ALL_GATHER, 1, 57, 8, true},
              {1 << 20, OP_ALL_GATHER, 17, 33, 8, false}};
    struct fabric f;
    struct matrix m;
    struct err err;
    int ids[64];

    (void)state;
    assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
    assert_int_equal(matrix_from_fabric(&m, &f, 2, &err), 0);
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct cost good, bad;
        int per = of[i].per;
        for (int k = 0; k < 8 * per; k++)
            ids[k] = k / per * 8 + k % per;
        matrix_collective(&m, of[i].op, ids, 8 * per, of[i].bytes, &good);
        MEM_PUSH(m.exception, m.exceptions) = (struct exception){.part = PART_PAIR,
                                                                 .a = of[i].a,
                                                                 .b = of[i].b,
                                                                 .tier = -1,
                                                                 .factor = 0.1,
                                                                 .alpha_add = 1e-5};
        matrix_collective(&m, of[i].op, ids, 8 * per, of[i].bytes, &bad);
        if (of[i].slower ? !(bad.sec > good.sec && bad.exception == 0)
                         : bad.sec != good.sec || bad.exception >= 0)
            fail_msg("%s at %g, %d to %d: %g s, %g without: %s", op_name(of[i].op), of[i].bytes,
                     of[i].a, of[i].b, bad.sec, good.sec, bad.source);
        m.exceptions = 0;
    }
    matrix_free(&m);
    fabric_free(&f);
}

/* What is said to be without a slow part is as unsure as the share of it that moves bytes. */
static void what_is_taken_out_widens_the_interval(void **state)
{
    struct matrix m;

    (void)state;
    measure(&m, "hgx-h100", "slow-nic=17:0.5", 3);
    for (int i = 0; i < m.collectives; i++) {
        const struct collective *c = &m.collective[i];
        if (c->shape.ranks != 64 || c->op != OP_ALL_TO_ALL)
            continue;
        assert_int_equal(c->basis, BASIS_FITTED);
        assert_non_null(strstr(c->source, "without its slow part: NIC mlx5_1 of r00n02 (GPU 1)"));
        for (int k = 0; k < c->curve.points; k++) {
            const struct curve_point *p = &c->curve.point[k];
            double lo = p->sec / p->lo, hi = p->hi / p->sec;
            bool latency = p->bytes <= 1024, rate = p->bytes > 2e9;
            if ((latency || rate) && !(lo < 1.06 && hi < 1.06))
                fail_msg("%g bytes: / %g * %g", p->bytes, lo, hi);
            if (p->bytes == 1 << 20 && !(lo > 1.12 && lo < 1.22 && hi > 1.12 && hi < 1.22))
                fail_msg("%g bytes: / %g * %g", p->bytes, lo, hi);
            if (p->bytes == 16 << 10 && !(lo > 1.07 && lo < 1.2))
                fail_msg("%g bytes: / %g * %g", p->bytes, lo, hi);
        }
    }
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_slows_what_crosses_it_and_nothing_else),
        cmocka_unit_test(a_part_counts_where_a_flow_crosses_it),
        cmocka_unit_test(schedules_have_edges_of_their_own),
        cmocka_unit_test(only_edges_of_what_runs_slow_it),
        cmocka_unit_test(what_is_taken_out_widens_the_interval),
    };
    const char *given = getenv("RG_SEED");
    unsigned long long seed = given ? strtoull(given, NULL, 10) : 1;

    print_message("seed %llu\n", seed);
    rng_seed(&rng, seed);
    return cmocka_run_group_tests(tests, campaign_setup, campaign_teardown);
}
