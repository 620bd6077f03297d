/* plan.c - schedules meet whom they promise; plan.tsv survives a round trip and refuses nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/measure.h"
#include "measure/schedule_impl.h"
#include "topo/fabrics/fabric.h"
#include "topo/nic.h"

static void flat_topo(struct topo *t, int hosts)
{
    char name[16];

    topo_init(t);
    for (int i = 0; i < hosts; i++) {
        snprintf(name, sizeof(name), "h%d", i);
        topo_add_endpoint(t, topo_add_host(t, name), ENDPOINT_CPU);
    }
    topo_default_tiers(t);
}

static void the_circle_method_meets_every_pair_once(void **state)
{
    (void)state;
    for (int n = 2; n <= 33; n++) {
        int v[33], met[33][33] = {{0}};
        for (int i = 0; i < n; i++)
            v[i] = i;
        for (int r = 0; r < schedule_circle_rounds(n); r++) {
            struct pairs p = {NULL, 0};
            int busy[33] = {0};
            schedule_circle(&p, v, n, r);
            assert_int_equal(p.count, n / 2);
            for (int i = 0; i < p.count; i++) {
                met[p.pair[i][0]][p.pair[i][1]]++;
                assert_int_equal(busy[p.pair[i][0]]++, 0);
                assert_int_equal(busy[p.pair[i][1]]++, 0);
            }
            free(p.pair);
        }
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                assert_int_equal(met[i][j] + met[j][i], 1);
    }
}

static void the_schedule_follows_the_number_of_endpoints(void **state)
{
    static const struct {
        int hosts;
        enum stage stage;
    } want[] = {
        {8, STAGE_ISOLATED}, {16, STAGE_ISOLATED}, {17, STAGE_TOURNAMENT}, {33, STAGE_CLASS}};
    struct plan_opts o;
    struct err err;

    (void)state;
    plan_defaults(&o);
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct topo t;
        struct plan p;
        flat_topo(&t, want[i].hosts);
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        int of[STAGE_COUNT] = {0};
        for (int r = 0; r < p.rounds; r++)
            of[p.round[r].stage]++;
        assert_true(of[want[i].stage] > 0);
        assert_true(want[i].stage == STAGE_ISOLATED || !of[STAGE_ISOLATED]);
        assert_true(want[i].stage == STAGE_CLASS || !of[STAGE_CLASS]);
        plan_free(&p);
        topo_free(&t);
    }
}

/* Times that a and b meet at full bandwidth, both ways and all epochs counted. */
static int meetings(const struct plan *p, int a, int b)
{
    int n = 0;

    for (int i = 0; i < p->rounds; i++) {
        const struct round *r = &p->round[i];
        bool is = r->stage == STAGE_TOURNAMENT && r->op == OP_PAIR_BW && r->first == 256 << 10;
        for (int g = 0; g < r->groups && is; g++)
            if ((r->group[g].members[0] == a && r->group[g].members[1] == b) ||
                (r->group[g].members[0] == b && r->group[g].members[1] == a))
                n += __builtin_popcount(r->epochs);
    }
    return n;
}

static void exact_measures_every_pair_once_when_there_are_many(void **state)
{
    struct plan_opts o;
    struct topo t;
    struct plan p;
    struct err err;

    (void)state;
    plan_defaults(&o);
    o.pairs = STAGE_TOURNAMENT;
    for (int hosts = 20; hosts <= 40; hosts += 20) {
        flat_topo(&t, hosts);
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        for (int a = 0; a < hosts; a++)
            for (int b = a + 1; b < hosts; b++)
                assert_int_equal(meetings(&p, a, b), hosts > 32 ? 2 : 2 * PLAN_CURVE_EPOCHS);
        plan_free(&p);
        topo_free(&t);
    }
}

/* Every pair of 4,608 endpoints is planned, of 4,609 refused with its cost; alone 1,024 and 1,025.  A quick
 * plan of more takes a few partners each instead. */
static void every_pair_of_too_many_is_refused_with_its_cost(void **state)
{
    static const struct {
        enum stage pairs;
        int most;
        const char *words;
    } row[] = {{STAGE_TOURNAMENT, PLAN_EVERY_TO, "10,600,000 pairs, 31,900,000 points"},
               {STAGE_SHIFT, PLAN_EVERY_TO, "the default plan measures a few partners"},
               {STAGE_ISOLATED, PLAN_ALONE_TO, "--exact measures every pair in parallel rounds"}};
    struct plan_opts o;
    struct topo t;
    struct plan p;
    struct err err;

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int more = 1; more >= (row[i].pairs == STAGE_SHIFT ? 1 : 0); more--) {
            plan_defaults(&o);
            o.ops = 1u << OP_PAIR_LATENCY;
            o.pairs = row[i].pairs;
            flat_topo(&t, row[i].most + more);
            assert_int_equal(plan_make(&p, &t, &o, &err), more ? -1 : 0);
            if (more && !strstr(err.text, row[i].words))
                fail_msg("%s", err.text);
            assert_true(!more || (err.code == EXIT_USAGE && strstr(err.text, "of measuring")));
            plan_free(&p);
            o.pairs = STAGE_COUNT;
            o.quick = true;
            assert_int_equal(i == 0 ? plan_make(&p, &t, &o, &err) : 0, 0);
            assert_true(i > 0 || (more ? p.rounds < 1000 : p.rounds == PLAN_EVERY_TO - 1));
            plan_free(&p);
            topo_free(&t);
        }
}

/* Rounds of latency in which hosts look for racks; *all: does everybody meet everybody? */
static int find_rounds(int racks, bool *all, unsigned *numbers)
{
    struct fabric f;
    struct topo t;
    struct plan p;
    struct plan_opts o;
    struct err err;
    int rounds = 0, apart = 0, per;

    plan_defaults(&o);
    assert_int_equal(fabric_load(&f, "gb200-nvl72", &err), 0);
    assert_int_equal(fabric_topo(&f, racks, true, &t, &err), 0);
    assert_int_equal(plan_make(&p, &t, &o, &err), 0);
    per = t.endpoints / t.hosts;
    bool *met = mem_calloc((size_t)t.hosts * (size_t)t.hosts, sizeof(*met));
    for (int i = 0; i < p.rounds; i++) {
        const struct round *r = &p.round[i];
        if (r->stage != STAGE_TOURNAMENT || r->op != OP_PAIR_LATENCY)
            continue;
        bool first = true;
        for (int g = 0; g < r->groups; g++) {
            int x = r->group[g].members[0] % per, y = r->group[g].members[1] % per;
            *numbers |= 1u << (x * per + y) | 1u << (y * per + x);
            first = first && !x && !y;
        }
        rounds += first;
        for (int g = 0; g < r->groups && first; g++) {
            int a = r->group[g].members[0] / per, b = r->group[g].members[1] / per;
            assert_true(a < b);
            met[a * t.hosts + b] = true;
        }
    }
    for (int a = 0; a < t.hosts; a++)
        for (int b = a + 1; b < t.hosts; b++) {
            assert_true(met[a * t.hosts + b] || b - a > FIND_NEAR);
            apart += !met[a * t.hosts + b];
        }
    *all = apart == 0;
    free(met);
    plan_free(&p);
    topo_free(&t);
    fabric_free(&f);
    return rounds;
}

static void hosts_without_racks_play_a_tournament_to_find_them(void **state)
{
    unsigned numbers = 0; /* bit a * 4 + b: endpoint a of a host met b of another */
    bool all;

    (void)state;
    assert_int_equal(find_rounds(2, &all, &numbers), 35); /* 36 hosts */
    assert_true(all);
    assert_int_equal(numbers, 0xffff);
    assert_int_equal(find_rounds(28, &all, &numbers), 503);
    assert_true(all);
    assert_int_equal(find_rounds(57, &all, &numbers), FIND_ROUNDS); /* 1,026 hosts */
    assert_false(all);
}

static void a_ladder_rounds_sizes_up_to_whole_blocks_and_skips_repeats(void **state)
{
    struct round r = {.op = OP_ALL_GATHER, .first = 8, .last = 4096, .factor = 2};
    size_t got[16];
    int n = 0;

    (void)state;
    for (int i = 0; i < plan_steps(&r); i++)
        if (plan_size(&r, 72, i))
            got[n++] = plan_size(&r, 72, i);
    static const size_t want[] = {72, 144, 288, 576, 1080, 2088, 4104};
    assert_int_equal(n, 7);
    assert_memory_equal(got, want, sizeof(want));
    r.op = OP_ALL_REDUCE;
    assert_int_equal(plan_size(&r, 72, 0), 8);
}

static void a_plan_survives_its_text(void **state)
{
    struct topo t;
    struct plan a, b;
    struct plan_opts o;
    struct err err;

    (void)state;
    plan_defaults(&o);
    flat_topo(&t, 6);
    assert_int_equal(plan_make(&a, &t, &o, &err), 0);
    char *text = plan_text(&a);
    assert_int_equal(plan_parse(&b, "plan.tsv", mem_strdup(text), 6, &err), 0);
    char *again = plan_text(&b);
    assert_string_equal(text, again);
    assert_int_equal(plan_crc(&a), plan_crc(&b));
    free(text);
    free(again);
    plan_free(&a);
    plan_free(&b);
    topo_free(&t);
}

static void who_is_in_pairs_is_forgotten_and_nothing_else(void **state)
{
    struct topo t;
    struct plan a, b;
    struct plan_opts o;
    struct err err;
    int collectives = 0;

    (void)state;
    plan_defaults(&o);
    flat_topo(&t, 40);
    assert_int_equal(plan_make(&a, &t, &o, &err), 0);
    assert_int_equal(plan_make(&b, &t, &o, &err), 0);
    plan_forget_pairs(&a);
    plan_forget_pairs(&a);
    assert_int_equal(a.rounds, b.rounds);
    assert_true(plan_points(&a, false) == plan_points(&b, false));
    for (int i = 0; i < a.rounds; i++) {
        const struct round *x = &a.round[i], *y = &b.round[i];
        assert_true(x->id == y->id && x->op == y->op && x->groups == y->groups);
        assert_int_equal(x->group == NULL, op_is_pair(x->op));
        for (int g = 0; x->group && g < x->groups; g++, collectives++)
            assert_memory_equal(x->group[g].members, y->group[g].members,
                                (size_t)y->group[g].size * sizeof(int));
    }
    assert_true(collectives > 0);
    plan_free(&a);
    plan_free(&b);
    topo_free(&t);
}

#define HEAD "# railgauge-plan 1\nround\tstage\top\tbytes_from\tbytes_to\tfactor\tepochs\tgroups\n"

static void nonsense_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"round\tstage\n0\tclass\n", "p:1: not a railgauge-plan file of version 1"},
        {HEAD, "p: no rounds"},
        {HEAD "1\tclass\tpair_bw\t8\t8\t2\t0\t0>1\n", "p:3: round 1 where 0 follows"},
        {HEAD "0\tklass\tpair_bw\t8\t8\t2\t0\t0>1\n", "p:3: \"klass\" is not a stage"},
        {HEAD "0\tclass\tpair_up\t8\t8\t2\t0\t0>1\n", "p:3: \"pair_up\" is not an operation"},
        {HEAD "0\tclass\tpair_bw\t16\t8\t2\t0\t0>1\n", "p:3: sizes 16 to 8"},
        {HEAD "0\tclass\tpair_bw\t8\t8\t1\t0\t0>1\n", "p:3: column factor: 1 is outside 2..1024"},
        {HEAD "0\tclass\tpair_bw\t8\t8\t2\t8\t0>1\n", "p:3: \"8\" is not a list of epochs 0..7"},
        {HEAD "0\tclass\tpair_bw\t8\t8\t2\t0\t0>9\n",
         "p:3: \"0>9\" is not a group of endpoints 0..3"},
        {HEAD "0\tclass\tpair_bw\t8\t8\t2\t0\t0>1>2\n", "p:3: \"0>1>2\" is not a pair such as 0>5"},
        {HEAD "0\tclass\tpair_bw\t8\t8\t2\t0\t0>1 1>2\n", "p:3: endpoint 1 is twice in this round"},
        {HEAD "0\tcollective\tall_gather\t8\t8\t2\t0\t3\n",
         "p:3: \"3\" is not a group of two or more"},
        {HEAD "0\tcollective\tall_gather\t8\t8\t2\t0\t2-1\n",
         "p:3: \"2-1\" is not a group of endpoints"},
    };
    struct plan p;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(plan_parse(&p, "p", mem_strdup(bad[i].text), 4, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].message))
            fail_msg("got \"%s\", wanted \"%s\"", err.text, bad[i].message);
    }
}

static void sizes_that_make_no_ladder_are_a_usage_error(void **state)
{
    struct topo t;
    struct plan p;
    struct plan_opts o;
    struct err err;

    (void)state;
    plan_defaults(&o);
    flat_topo(&t, 4);
    o.min_bytes = 1024;
    o.max_bytes = 8;
    assert_int_equal(plan_make(&p, &t, &o, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(
        err.text,
        "sizes from 1024 to 8 bytes: the first must be at least 1 and not above the last");
    topo_free(&t);
    flat_topo(&t, 1);
    plan_defaults(&o);
    assert_int_equal(plan_make(&p, &t, &o, &err), -1);
    assert_string_equal(err.text, "1 endpoint: nothing to measure between");
    topo_free(&t);
}

static size_t longest(const struct plan *p, enum op op)
{
    size_t most = 0;

    for (int i = 0; i < p->rounds; i++)
        if (p->round[i].op == op && p->round[i].last > most)
            most = p->round[i].last;
    return most;
}

/* Two ranks of each GPU leave each half its memory. */
static void gpus_are_measured_at_sizes_that_jobs_send(void **state)
{
    static const struct {
        bool full;
        int ranks; /* of a GPU */
        size_t asked, collective, pair;
    } want[] = {{false, 1, 0, (size_t)4 << 30, 256 << 20},
                {false, 2, 0, (size_t)2 << 30, 256 << 20},
                {false, 3, 0, (size_t)1 << 30, 256 << 20},
                {true, 1, 0, (size_t)8 << 30, (size_t)8 << 30},
                {false, 1, 1 << 30, 1 << 30, 1 << 30}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct topo t;
        struct plan p;
        struct plan_opts o;
        struct err err;
        flat_topo(&t, 6);
        plan_defaults(&o);
        o.full = want[i].full;
        o.max_bytes = want[i].asked;
        for (int k = 0; k < t.endpoints; k++) {
            t.endpoint[k].kind = ENDPOINT_GPU;
            t.endpoint[k].gpu = k / want[i].ranks;
        }
        t.gpus = t.endpoints;
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        assert_int_equal(longest(&p, OP_ALL_GATHER), want[i].collective);
        assert_int_equal(longest(&p, OP_PAIR_BW), want[i].pair);
        plan_free(&p);
        t.gpus = 0;
        topo_free(&t);
    }
}

/* Rounds through the NICs of `racks` racks of a preset; each pair's ends have a NIC each. */
static int nic_rounds(const char *preset, int racks, bool wanted)
{
    struct fabric f;
    struct topo t;
    struct plan p;
    struct plan_opts o;
    struct err err;
    int rounds = 0;

    plan_defaults(&o);
    o.nics = wanted;
    assert_int_equal(fabric_load(&f, preset, &err), 0);
    assert_int_equal(fabric_topo(&f, racks, false, &t, &err), 0);
    assert_int_equal(plan_make(&p, &t, &o, &err), 0);
    for (int i = 0; i < p.rounds; i++) {
        const struct round *r = &p.round[i];
        rounds += stage_by_nic(r->stage);
        for (int g = 0; g < r->groups && stage_by_nic(r->stage); g++) {
            int a = r->group[g].members[0], b = r->group[g].members[1];
            assert_true(op_is_pair(r->op) && t.endpoint[a].nic != t.endpoint[b].nic);
        }
    }
    assert_true((plan_points(&p, true) > 0) == (rounds > 0));
    plan_free(&p);
    topo_free(&t);
    fabric_free(&f);
    return rounds;
}

static void where_nvlink_joins_everybody_a_second_pass_leaves_it(void **state)
{
    (void)state;
    /* 8 matchings and 3 ladders of 3 operations, over the rail and over all else; 5 turns of both ways and of
     * two further sizes; 9 random pairs alone in every second block of each tier */
    assert_int_equal(nic_rounds("gb200-nvl72", 1, true), (8 + 3) * 3 * 2 + 5 * 3 + 9 * 4 * 2);
    assert_int_equal(nic_rounds("gb200-nvl72", 1, false), 0);
    assert_int_equal(nic_rounds("gb200-nvl72", 2, true), 0); /* pairs of two racks cross them */
    assert_int_equal(nic_rounds("rtxpro6000-100gbe", 1, true), 0);
}

/* All pairs of a host's eight GPUs; two GPUs of one NIC do not meet through it. */
static void gpus_of_one_host_meet_through_their_nics(void **state)
{
    struct topo t;
    struct plan p;
    struct plan_opts o;
    struct err err;
    struct nic nic;

    (void)state;
    for (int per = 1; per <= 8; per *= 2) {
        int met = 0;
        flat_topo(&t, 1);
        for (int i = 1; i < 8; i++)
            topo_add_endpoint(&t, 0, ENDPOINT_GPU);
        for (int i = 0; i < 8; i++) {
            nic_init(&nic, 0);
            nic.rdma = true;
            MEM_PUSH(t.nic, t.nics) = nic;
            t.endpoint[i].kind = ENDPOINT_GPU;
            t.endpoint[i].nic = i / per;
        }
        plan_defaults(&o);
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        for (int i = 0; i < p.rounds; i++)
            if (p.round[i].stage == STAGE_NIC && p.round[i].op == OP_PAIR_BW &&
                p.round[i].first == 64 << 20)
                met += p.round[i].groups;
        assert_int_equal(met, 2 * (8 * 7 / 2 - 8 / per * (per * (per - 1) / 2)));
        plan_free(&p);
        topo_free(&t);
    }
}

/* Every two NICs meet once, nobody is idle where the number of domains is even, and any quarter of
 * the rounds joins all domains. */
static void cables_join_every_two_nics_once(void **state)
{
    static const struct {
        const char *preset;
        int racks;
    } of[] = {{"gb200-nvl72", 4}, {"gb200-nvl72", 3}, {"hgx-h100", 2}, {"gb200-nvl72", 1}};

    (void)state;
    for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
        struct fabric f;
        struct topo t;
        struct err err;
        assert_int_equal(fabric_load(&f, of[k].preset, &err), 0);
        assert_int_equal(fabric_topo(&f, of[k].racks, false, &t, &err), 0);
        int *order = schedule_leaf_order(&t), n = t.endpoints;
        int domains = t.group[LEVEL_DOMAIN].count, rounds = schedule_cables(NULL, &t, order, -1);
        char *met = mem_calloc((size_t)n * (size_t)n, 1),
             *joined = mem_calloc((size_t)domains * (size_t)domains, 1);
        for (int r = 0; r < rounds; r++) {
            struct pairs p = {NULL, 0};
            char *busy = mem_calloc((size_t)n, 1);
            schedule_cables(&p, &t, order, r);
            assert_int_equal(p.count,
                             domains % 2 && domains > 1 ? n / domains * (domains / 2) : n / 2);
            for (int i = 0; i < p.count; i++) {
                int a = p.pair[i][0], b = p.pair[i][1];
                assert_int_equal(busy[a]++ + busy[b]++, 0);
                assert_int_equal(met[a * n + b] + met[b * n + a], 0);
                met[a * n + b] = 1;
                if (r < rounds / 4)
                    joined[topo_at(&t, a, LEVEL_DOMAIN) * domains + topo_at(&t, b, LEVEL_DOMAIN)] =
                        1;
            }
            free(p.pair);
            free(busy);
        }
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++) {
                int x = topo_at(&t, a, LEVEL_DOMAIN), y = topo_at(&t, b, LEVEL_DOMAIN);
                assert_int_equal(met[a * n + b] + met[b * n + a], domains == 1 || x != y);
                assert_true(x == y || joined[x * domains + y] || joined[y * domains + x]);
            }
        free(met);
        free(joined);
        free(order);
        topo_free(&t);
        fabric_free(&f);
    }
}

/* What a plan of many endpoints leaves of each: others that it sends to and receives from at full
 * bandwidth, over NICs or not, in how many epochs, and others whose latency to it is measured. */
struct looks {
    int sends[2], receives[2], latency[2];
    unsigned epochs[2];
};

static void look(struct looks *l, const struct topo *t, const struct fabric *f,
                 const struct round *r)
{
    for (int g = 0; g < r->groups; g++) {
        int a = r->group[g].members[0], b = r->group[g].members[1];
        bool nic = f->tier[topo_tier(t, a, b)].nic;
        l[a].epochs[nic] |= r->epochs;
        l[b].epochs[nic] |= r->epochs;
        if (r->op == OP_PAIR_BW) {
            l[a].sends[nic]++;
            l[b].receives[nic]++;
        } else {
            l[a].latency[nic]++;
            l[b].latency[nic]++;
        }
    }
}

/* Half of the rows of a dense plan a head; nobody is left with fewer than PLAN_PARTNERS pairs
 * each way, over NVLink as over NICs, nor with those of one epoch. */
static void of_many_endpoints_everybody_is_met_less_often(void **state)
{
    static const struct {
        const char *preset;
        int dense, sparse; /* racks */
    } of[] = {{"gb200-nvl72", 64, 65}, {"hgx-h100", 144, 150}, {"rtxpro6000-100gbe", 288, 300}};

    (void)state;
    for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
        double rows[2] = {0, 0};
        for (int many = 0; many < 2; many++) {
            struct fabric f;
            struct topo t;
            struct plan p;
            struct plan_opts o;
            struct err err;
            assert_int_equal(fabric_load(&f, of[k].preset, &err), 0);
            int racks = many ? of[k].sparse : of[k].dense;
            assert_int_equal(fabric_topo(&f, racks, false, &t, &err), 0);
            assert_int_equal(plan_is_sparse(&t), many);
            plan_defaults(&o);
            o.ops = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW;
            assert_int_equal(plan_make(&p, &t, &o, &err), 0);
            struct looks *l = mem_calloc((size_t)t.endpoints, sizeof(*l));
            for (int i = 0; i < p.rounds; i++)
                if (p.round[i].stage == STAGE_CLASS) {
                    look(l, &t, &f, &p.round[i]);
                    rows[many] += (double)p.round[i].groups / t.endpoints;
                }
            for (int i = 0; i < t.endpoints; i++)
                for (int nic = 0; nic < 2; nic++) {
                    assert_true(l[i].sends[nic] >= PLAN_PARTNERS);
                    assert_true(l[i].receives[nic] >= PLAN_PARTNERS);
                    assert_true(l[i].latency[nic] >= PLAN_PARTNERS);
                    assert_true(__builtin_popcount(l[i].epochs[nic]) >= 3);
                }
            free(l);
            plan_free(&p);
            topo_free(&t);
            fabric_free(&f);
        }
        assert_true(rows[1] < 0.56 * rows[0]);
    }
}

struct machine {
    struct fabric fabric;
    struct topo topo;
    struct plan plan;
};

static void machine_open(struct machine *m, const char *preset, int racks, unsigned long long seed)
{
    struct plan_opts o;
    struct err err;

    plan_defaults(&o);
    o.seed = seed;
    assert_int_equal(fabric_load(&m->fabric, preset, &err), 0);
    assert_int_equal(fabric_topo(&m->fabric, racks, false, &m->topo, &err), 0);
    assert_int_equal(plan_make(&m->plan, &m->topo, &o, &err), 0);
}

static void machine_close(struct machine *m)
{
    plan_free(&m->plan);
    topo_free(&m->topo);
    fabric_free(&m->fabric);
}

static const struct {
    const char *preset;
    int racks;
    double points, most; /* of the plan before there were blocks; s at most */
} sized[] = {{"gb200-nvl72", 4, 26352, 229.4},
             {"gb200-nvl72", 8, 42027, 262.7},
             {"hgx-h100", 4, 21240, 228.5},
             {"hgx-h100", 24, 57279, 330.5},
             {"gb200-nvl72", 70, 183678, 0}};

/* Within each block everybody meets somebody of each tier, there and back. */
static void each_block_sees_everybody_in_each_tier(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct machine m;
        machine_open(&m, sized[k].preset, sized[k].racks, 1);
        const int n = m.topo.endpoints;
        unsigned char *met = mem_calloc((size_t)n * TIER_MAX * 2, 1);
        for (int i = 0; i < m.plan.rounds; i++) {
            const struct round *r = &m.plan.round[i];
            for (int g = 0; g < r->groups && r->stage == STAGE_CLASS; g++)
                for (int end = 0; end < 2 && r->op == OP_PAIR_BW && r->first == 64 << 20; end++) {
                    const int *pair = r->group[g].members;
                    int tier = topo_tier(&m.topo, pair[0], pair[1]);
                    assert_int_equal(__builtin_popcount(r->epochs), 1);
                    met[(pair[end] * TIER_MAX + tier) * 2 + end] |= (unsigned char)r->epochs;
                }
        }
        for (int i = 0; i < n; i++)
            for (int t = 0; t < m.topo.tiers; t++)
                for (int end = 0; end < 2; end++)
                    assert_int_equal(met[(i * TIER_MAX + t) * 2 + end], 0xff);
        free(met);
        machine_close(&m);
    }
}

/* Both ways and of two further sizes: in several blocks and tiers for every NIC. */
static void every_nic_is_measured_both_ways_and_at_further_sizes(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct machine m;
        machine_open(&m, sized[k].preset, sized[k].racks, 1);
        unsigned char(*block)[3] = mem_calloc((size_t)m.topo.endpoints, sizeof(*block));
        unsigned tiers[3] = {0};
        for (int i = 0; i < m.plan.rounds; i++) {
            const struct round *r = &m.plan.round[i];
            int kind = r->op == OP_PAIR_BIBW   ? 0
                       : r->op != OP_PAIR_BW   ? -1
                       : r->first == 64 << 10  ? 1
                       : r->first == 256 << 20 ? 2
                                               : -1;
            for (int g = 0; g < r->groups && r->stage == STAGE_CLASS && kind >= 0; g++)
                for (int end = 0; end < 2; end++) {
                    const int *pair = r->group[g].members;
                    tiers[kind] |= 1u << topo_tier(&m.topo, pair[0], pair[1]);
                    block[pair[end]][kind] |= (unsigned char)r->epochs;
                }
        }
        for (int i = 0; i < m.topo.endpoints; i++)
            for (int kind = 0; kind < 3; kind++)
                assert_true(__builtin_popcount(block[i][kind]) >= 3);
        for (int kind = 0; kind < 3; kind++)
            assert_int_equal(__builtin_popcount(tiers[kind]), 2);
        free(block);
        machine_close(&m);
    }
}

/* The same seed, the same plan; another, other turns first, and other partners. */
static void the_seed_orders_the_turns_of_a_block(void **state)
{
    struct machine m[3];
    char *text[3];
    int first[3] = {0}, moved = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        machine_open(&m[i], "gb200-nvl72", 4, i < 2 ? 7 : 8);
        text[i] = plan_text(&m[i].plan);
        for (int r = 0; r < m[i].plan.rounds; r++) {
            const struct round *at = &m[i].plan.round[r];
            assert_int_equal(at->id, r);
            if (at->stage == STAGE_CLASS && at->op == OP_PAIR_LATENCY && first[i] < 24) {
                int tier = topo_tier(&m[i].topo, at->group[0].members[0], at->group[0].members[1]);
                moved += i == 2 && tier != first[2] % 3;
                first[i]++;
            }
        }
    }
    assert_string_equal(text[0], text[1]);
    assert_string_not_equal(text[0], text[2]);
    assert_true(moved > 4); /* tiers do not come in turn */
    for (int i = 0; i < 3; i++) {
        free(text[i]);
        machine_close(&m[i]);
    }
}

/* Block by block, and the turns of one matching side by side. */
static void rows_are_in_the_order_of_time(void **state)
{
    struct machine m;
    int block = 0;

    (void)state;
    machine_open(&m, "gb200-nvl72", 8, 3);
    for (int i = 0; i < m.plan.rounds; i++) {
        const struct round *r = &m.plan.round[i];
        if (r->first != r->last || !op_is_pair(r->op))
            break;
        assert_true(__builtin_ctz(r->epochs) >= block);
        block = __builtin_ctz(r->epochs);
        if (r->op != OP_PAIR_LATENCY)
            continue;
        assert_int_equal(r[1].op, OP_PAIR_BW); /* there, of the same pairs */
        assert_memory_equal(r[0].block, r[1].block, 2 * sizeof(int) * (size_t)r->groups);
        int back = 2;
        while (r[back].group[0].members[0] != r->group[0].members[1])
            back++;
        assert_true(back <= 2 + 3 + 16); /* with further kinds and random pairs between */
        assert_int_equal(r[back].group[0].members[1], r->group[0].members[0]);
    }
    assert_int_equal(block, PLAN_EPOCHS - 1);
    machine_close(&m);
}

/* In every second block some pairs of each tier, which run in parallel in the same block as well. */
static void random_pairs_run_alone_as_well(void **state)
{
    struct machine m;
    int alone[TIER_MAX][PLAN_EPOCHS] = {{0}};

    (void)state;
    machine_open(&m, "gb200-nvl72", 4, 1);
    for (int i = 0; i < m.plan.rounds; i++) {
        const struct round *r = &m.plan.round[i];
        if (r->stage != STAGE_RANDOM)
            continue;
        const int *pair = r->group[0].members;
        bool found = false;
        assert_int_equal(r->groups, 1);
        alone[topo_tier(&m.topo, pair[0], pair[1])][__builtin_ctz(r->epochs)]++;
        for (int k = 0; k < m.plan.rounds; k++) {
            const struct round *q = &m.plan.round[k];
            for (int g = 0; g < q->groups && q->stage == STAGE_CLASS && q->op == OP_PAIR_BW; g++)
                found |= q->epochs == r->epochs && q->first == r->first && q->groups > 8 &&
                         !memcmp(q->group[g].members, pair, 2 * sizeof(int));
        }
        assert_true(found);
    }
    for (int t = 0; t < m.topo.tiers; t++)
        for (int e = 0; e < PLAN_EPOCHS; e++)
            assert_int_equal(alone[t][e], e % 2 ? 0 : 16);
    machine_close(&m);
}

static void a_plan_costs_at_most_a_quarter_more_than_before(void **state)
{
    struct measure_opts o = MEASURE_DEFAULTS;

    (void)state;
    for (int k = 0; k < 4; k++) {
        struct machine m;
        machine_open(&m, sized[k].preset, sized[k].racks, 1);
        assert_true(plan_points(&m.plan, false) <= 1.25 * sized[k].points);
        assert_true(plan_seconds(&m.plan, &m.topo, &o) <= sized[k].most);
        machine_close(&m);
    }
}

/* Of small machines every pair is seen in as many blocks as curves, at most; each block sees everybody. */
static void small_machines_are_seen_in_every_block(void **state)
{
    (void)state;
    for (int hosts = 2; hosts <= 32; hosts += 5) {
        struct plan_opts o;
        struct topo t;
        struct plan p;
        struct err err;
        unsigned seen[32] = {0};
        flat_topo(&t, hosts);
        plan_defaults(&o);
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        for (int i = 0; i < p.rounds; i++)
            for (int g = 0; g < p.round[i].groups && op_is_pair(p.round[i].op); g++)
                if (p.round[i].first == p.round[i].last)
                    for (int end = 0; end < 2; end++)
                        seen[p.round[i].group[g].members[end]] |= p.round[i].epochs;
        for (int i = 0; i < hosts; i++)
            assert_int_equal(seen[i], (1u << PLAN_EPOCHS) - 1);
        plan_free(&p);
        topo_free(&t);
    }
}

static void curves_take_some_of_the_epochs(void **state)
{
    (void)state;
    assert_int_equal(plan_curve_epochs(8), 0x5b); /* 0, 1, 3, 4, 6 */
    assert_int_equal(plan_curve_epochs(5), 0x1f);
    assert_int_equal(plan_curve_epochs(2), 0x3);
    assert_int_equal(plan_curve_epochs(1), 0x1);
}

static bool says(const struct plan *p, const struct topo *t, const char *words)
{
    json_t *all = plan_sees(p, t), *text;
    size_t i;
    bool found = false;

    json_array_foreach(all, i, text) found |= strstr(json_string_value(text), words) != NULL;
    json_decref(all);
    return found;
}

static void a_plan_says_what_it_cannot_see(void **state)
{
    struct machine m;
    struct plan_opts o;
    struct topo t;
    struct plan p;
    struct err err;

    (void)state;
    machine_open(&m, "gb200-nvl72", 4, 1);
    assert_true(says(&m.plan, &m.topo, "each NIC in 40 turns or more, in 8 blocks of time"));
    assert_true(says(&m.plan, &m.topo, "25 % of the time or more"));
    assert_false(says(&m.plan, &m.topo, "not measured"));
    machine_close(&m);
    topo_init(&t);
    int host = topo_add_host(&t, "n1");
    for (int i = 0; i < 4; i++)
        topo_add_endpoint(&t, host, ENDPOINT_CPU);
    topo_default_tiers(&t);
    plan_defaults(&o);
    assert_int_equal(plan_make(&p, &t, &o, &err), 0);
    assert_true(says(&p, &t, "one host: no NIC is measured"));
    plan_free(&p);
    topo_free(&t);
    flat_topo(&t, 40);
    o.quick = true;
    o.epochs = 1;
    o.ops = 1u << OP_PAIR_BW;
    assert_int_equal(plan_make(&p, &t, &o, &err), 0);
    assert_true(says(&p, &t, "in 1 block of time: what is slow for a while is not told"));
    assert_true(
        says(&p, &t, "not measured: NICs both ways at once, with small messages, with large"));
    assert_true(says(&p, &t, "no pair runs alone: what load costs is not told"));
    assert_true(says(&p, &t, "no leaf and no rack is known"));
    plan_free(&p);
    topo_free(&t);
}

/* With pods everybody of a pod sends to another one, and leaves and racks stay within theirs. */
static void each_level_is_loaded_by_itself(void **state)
{
    struct machine m;
    char name[16];

    (void)state;
    machine_open(&m, "hgx-h100", 32, 1); /* 4 leaves of 8 racks a rail */
    struct topo *t = &m.topo;
    for (int i = 0; i < t->endpoints; i++) {
        snprintf(name, sizeof(name), "pod-%d", topo_at(t, i, LEVEL_RACK) / 16);
        t->endpoint[i].place.at[LEVEL_SPINE] = topo_add_group(t, LEVEL_SPINE, name);
    }
    int *order = schedule_leaf_order(t);
    static const enum level levels[] = {LEVEL_LEAF, LEVEL_RACK, LEVEL_SPINE};
    for (int k = 0; k < 3; k++) {
        struct pairs p = {NULL, 0};
        schedule_uplinks(&p, t, order, levels[k], 0);
        assert_int_equal(p.count, t->endpoints / 2);
        for (int i = 0; i < p.count; i++) {
            int a = p.pair[i][0], b = p.pair[i][1];
            assert_int_not_equal(topo_at(t, a, levels[k]), topo_at(t, b, levels[k]));
            assert_int_equal(topo_at(t, a, LEVEL_SPINE) == topo_at(t, b, LEVEL_SPINE), k < 2);
            assert_int_equal(topo_at(t, a, LEVEL_RAIL), topo_at(t, b, LEVEL_RAIL));
        }
        free(p.pair);
    }
    for (int i = 0; i < t->endpoints; i++) /* a pod that is one rack is no level of its own */
        t->endpoint[i].place.at[LEVEL_SPINE] = -1;
    struct pairs none = {NULL, 0};
    for (int i = 0; i < t->endpoints; i++) {
        snprintf(name, sizeof(name), "p-%d", topo_at(t, i, LEVEL_RACK));
        t->endpoint[i].place.at[LEVEL_SPINE] = topo_add_group(t, LEVEL_SPINE, name);
    }
    schedule_uplinks(&none, t, order, LEVEL_SPINE, 0);
    assert_int_equal(none.count, 0);
    free(none.pair);
    free(order);
    machine_close(&m);
}

/* Each two racks meet by RACK_MEETINGS pairs, of many endpoints by half as many, in rounds of disjoint
 * pairs, as few as endpoints allow; within a rack everybody meets two others where NICs join them. */
static void each_two_racks_meet(void **state)
{
    static const struct {
        const char *preset;
        int racks, rounds, within; /* pairs of two rounds */
        int meetings;
    } of[] = {{"gb200-nvl72", 9, 1, 0, RACK_MEETINGS},
              {"gb200-nvl72", 40, 3, 0, RACK_MEETINGS},
              {"gb200-nvl72", 80, 3, 0, RACK_MEETINGS / 2},
              {"hgx-h100", 20, 3, 20 * 32, RACK_MEETINGS},
              {"rtxpro6000-100gbe", 21, 6, 21 * 16, RACK_MEETINGS}};

    (void)state;
    for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
        struct fabric f;
        struct topo t;
        struct err err;
        struct pairs p = {NULL, 0};
        assert_int_equal(fabric_load(&f, of[k].preset, &err), 0);
        assert_int_equal(fabric_topo(&f, of[k].racks, false, &t, &err), 0);
        int *order = schedule_leaf_order(&t), racks = of[k].racks, r = 0;
        int *met = mem_ints(racks * racks, 0);
        for (bool more = true; more; r++) {
            char *busy = mem_calloc((size_t)t.endpoints, 1);
            more = schedule_racks(&p, &t, order, r);
            for (int i = 0; i < p.count; i++) {
                int a = p.pair[i][0], b = p.pair[i][1], x = topo_at(&t, a, LEVEL_RACK),
                    y = topo_at(&t, b, LEVEL_RACK);
                assert_int_equal(busy[a]++ + busy[b]++, 0);
                met[x * racks + y]++;
                met[y * racks + x]++;
            }
            p.count = 0;
            free(busy);
        }
        assert_int_equal(r, of[k].rounds);
        for (int x = 0; x < racks; x++)
            for (int y = 0; y < racks; y++)
                assert_int_equal(met[x * racks + y], x == y ? 0 : of[k].meetings);
        schedule_within_racks(&p, &t, order, 0);
        schedule_within_racks(&p, &t, order, 1);
        assert_int_equal(p.count, of[k].within);
        for (int i = 0; i < p.count; i++)
            assert_int_equal(topo_at(&t, p.pair[i][0], LEVEL_RACK),
                             topo_at(&t, p.pair[i][1], LEVEL_RACK));
        free(p.pair);
        free(met);
        free(order);
        topo_free(&t);
        fabric_free(&f);
    }
}

/* What an acceptance text asks of 72 GPUs is measured, unless the user says how far to go. */
static void published_sizes_are_reached(void **state)
{
    struct fabric f;
    struct topo t;
    struct err err;

    (void)state;
    assert_int_equal(fabric_load(&f, "gb200-nvl72", &err), 0);
    assert_int_equal(fabric_topo(&f, 1, false, &t, &err), 0);
    for (int asked = 0; asked < 2; asked++) {
        struct plan p;
        struct plan_opts o;
        plan_defaults(&o);
        o.max_bytes = asked ? (size_t)4 << 30 : 0;
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        assert_int_equal(longest(&p, OP_ALL_REDUCE), (size_t)(asked ? 4 : 8) << 30);
        assert_int_equal(longest(&p, OP_ALL_GATHER), (size_t)4 << 30);
        for (int i = 0; i < p.rounds; i++)
            if (p.round[i].op == OP_ALL_REDUCE && p.round[i].group[0].size < 72)
                assert_int_equal(p.round[i].last, (size_t)4 << 30);
        plan_free(&p);
    }
    topo_free(&t);
    fabric_free(&f);
}

static void a_plan_says_which_pairs_of_nics_it_sees(void **state)
{
    double seen = 0, all = 0, before = 0;

    (void)state;
    for (double sec = 0; sec < 1e3; sec = sec * 20 + 10) {
        struct fabric f;
        struct topo t;
        struct plan p;
        struct plan_opts o;
        struct err err;
        plan_defaults(&o);
        o.cables = sec;
        assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
        assert_int_equal(fabric_topo(&f, 4, false, &t, &err), 0);
        assert_int_equal(plan_make(&p, &t, &o, &err), 0);
        plan_cables_seen(&p, &t, &seen, &all);
        assert_true(all == 128 * 127 / 2 - 16 * 8 * 7 / 2 && seen > before && seen <= all);
        before = seen;
        plan_free(&p);
        topo_free(&t);
        fabric_free(&f);
    }
    assert_true(seen == all);
}

static double guessed(const struct plan *p, const struct topo *t, const struct measure_opts *o)
{
    json_t *cost = plan_cost_json(p, t, o);
    double sec = json_real_value(json_object_get(cost, "seconds"));

    json_decref(cost);
    return sec;
}

/* A turn whose groups run at once lasts a quarter of its time cap whatever is measured, and no turn
 * of ranks comes for nothing. */
static void what_a_turn_takes_is_more_than_its_messages(void **state)
{
    struct topo t;
    struct plan p = {NULL, 0};
    struct measure_opts o = MEASURE_DEFAULTS;

    (void)state;
    topo_init(&t);
    int host = topo_add_host(&t, "n1");
    for (int i = 0; i < 4; i++)
        topo_add_endpoint(&t, host, ENDPOINT_CPU);
    struct round *r = plan_add(&p, STAGE_TOURNAMENT, OP_PAIR_LATENCY, 2);
    for (int g = 0; g < 2; g++) {
        r->group[g].members = mem_calloc(2, sizeof(int));
        r->group[g].size = 2;
    }
    r->first = r->last = 8;
    o.time_cap = 0.1;
    double start = guessed(&p, &t, &o);
    r->epochs = 1;
    double many = guessed(&p, &t, &o) - start;
    r->groups = 1;
    double alone = guessed(&p, &t, &o) - start;
    r->groups = 2;
    assert_true(many > 0.1 / 4);
    assert_true(alone < 0.1 / 4 && alone > 16 * 8 / 1e10);
    o.iters = 16; /* nobody waits for a time then */
    assert_true(guessed(&p, &t, &o) - start < 0.1 / 4);
    plan_free(&p);
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_circle_method_meets_every_pair_once),
        cmocka_unit_test(the_schedule_follows_the_number_of_endpoints),
        cmocka_unit_test(exact_measures_every_pair_once_when_there_are_many),
        cmocka_unit_test(every_pair_of_too_many_is_refused_with_its_cost),
        cmocka_unit_test(hosts_without_racks_play_a_tournament_to_find_them),
        cmocka_unit_test(a_ladder_rounds_sizes_up_to_whole_blocks_and_skips_repeats),
        cmocka_unit_test(a_plan_survives_its_text),
        cmocka_unit_test(who_is_in_pairs_is_forgotten_and_nothing_else),
        cmocka_unit_test(nonsense_is_refused_with_its_line),
        cmocka_unit_test(gpus_are_measured_at_sizes_that_jobs_send),
        cmocka_unit_test(where_nvlink_joins_everybody_a_second_pass_leaves_it),
        cmocka_unit_test(cables_join_every_two_nics_once),
        cmocka_unit_test(each_block_sees_everybody_in_each_tier),
        cmocka_unit_test(every_nic_is_measured_both_ways_and_at_further_sizes),
        cmocka_unit_test(the_seed_orders_the_turns_of_a_block),
        cmocka_unit_test(rows_are_in_the_order_of_time),
        cmocka_unit_test(random_pairs_run_alone_as_well),
        cmocka_unit_test(a_plan_costs_at_most_a_quarter_more_than_before),
        cmocka_unit_test(small_machines_are_seen_in_every_block),
        cmocka_unit_test(curves_take_some_of_the_epochs),
        cmocka_unit_test(a_plan_says_what_it_cannot_see),
        cmocka_unit_test(each_level_is_loaded_by_itself),
        cmocka_unit_test(each_two_racks_meet),
        cmocka_unit_test(of_many_endpoints_everybody_is_met_less_often),
        cmocka_unit_test(published_sizes_are_reached),
        cmocka_unit_test(a_plan_says_which_pairs_of_nics_it_sees),
        cmocka_unit_test(gpus_of_one_host_meet_through_their_nics),
        cmocka_unit_test(what_a_turn_takes_is_more_than_its_messages),
        cmocka_unit_test(sizes_that_make_no_ladder_are_a_usage_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
