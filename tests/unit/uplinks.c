/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaves with fewer uplinks than NICs: simulated, measured and found, and not found elsewhere. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stats.h"
#include "campaign.h"
#include "measure/schedule_impl.h"

static char preset[96];

/* A copy of a shipped preset with this share and leaves of so many hosts. */
static void write_preset(const char *name, double share, int hosts_per_leaf)
{
    char *from = mem_printf("topo/fabrics/%s.json", name);
    json_t *root = json_load_file(from, 0, NULL), *layout = json_object_get(root, "layout");

    assert_non_null(layout);
    json_object_set_new(layout, "uplink_share", json_real(share));
    json_object_set_new(layout, "hosts_per_leaf", json_integer(hosts_per_leaf));
    json_object_set_new(root, "name", json_string("thin"));
    assert_int_equal(json_dump_file(root, preset, 0), 0);
    json_decref(root);
    free(from);
}

/* The bandwidth of pairs alone and in crowds. */
static void measure(struct matrix *m, const struct sim_opts *o)
{
    struct plan_opts p;

    plan_defaults(&p);
    p.ops = 1u << OP_PAIR_BW;
    p.min_bytes = p.max_bytes = p.pair_bytes = 64 << 20;
    p.epochs = 2;
    campaign(m, o, &p, campaign_points);
}

static const char *finding(const struct matrix *m, const char *kind)
{
    for (int i = 0; i < m->findings; i++)
        if (!strcmp(m->finding[i].kind, kind))
            return m->finding[i].text;
    return NULL;
}

static bool says(const struct matrix *m, const char *words)
{
    for (int i = 0; i < m->findings; i++)
        if (strstr(m->finding[i].text, words))
            return true;
    return false;
}

static double alone_rate(int tier)
{
    struct fabric f;
    struct err err = {0, ""};

    assert_int_equal(fabric_load(&f, preset, &err), 0);
    double Bps = f.tier[tier].Bps.value;
    fabric_free(&f);
    return Bps;
}

static void print_all(const struct matrix *m)
{
    char part[256];

    for (int i = 0; i < m->findings; i++)
        print_message("%s: %s\n", m->finding[i].kind, m->finding[i].text);
    for (int i = 0; i < m->exceptions; i++)
        print_message("%s: %s\n", matrix_part(m, &m->exception[i], part), m->exception[i].why);
}

/* One pair alone gets all, a leaf that sends all it can gets its share, and half a leaf twice that.
 */
static void one_flow_notices_nothing_and_many_share(void **state)
{
    struct sim_opts o = {.fabric = preset, .racks = 2};
    struct sim_bed bed;
    struct plan plan = {NULL, 0};
    struct err err = {0, ""};

    (void)state;
    write_preset("hgx-h100", 0.25, 4);
    if (sim_bed_open(&bed, &o, &err) < 0)
        fail_msg("%s", err.text);
    int rail = bed.fabric.gpus_per_host; /* from a GPU to the same one of the next host */
    for (int flows = 1; flows <= 4; flows++)
        for (int op = 0; op < 2; op++) {
            struct round *r = plan_add(&plan, STAGE_SHIFT, op ? OP_PAIR_BIBW : OP_PAIR_BW, flows);
            for (int i = 0; i < flows; i++) {
                r->group[i].members = mem_calloc(2, sizeof(int));
                r->group[i].members[0] = rail * i;
                r->group[i].members[1] = rail * (4 + i);
                r->group[i].size = 2;
            }
            for (int i = 0; i < flows; i++)
                assert_true(fabs(sim_share(&bed.sim, r, i, r->op) - fmin(1, 1.0 / flows)) < 1e-9);
        }
    for (int flat = 0; flat < 2; flat++) { /* all_to_all of everybody, and of one leaf's hosts */
        struct round *r = plan_add(&plan, STAGE_COLLECTIVE, OP_ALL_TO_ALL, 1);
        int n = flat ? bed.truth.endpoints / 2 : bed.truth.endpoints;
        r->group[0].members = mem_calloc((size_t)n, sizeof(int));
        r->group[0].size = n;
        for (int i = 0; i < n; i++)
            r->group[0].members[i] = i;
        double share = sim_share(&bed.sim, r, 0, r->op);
        /* every one of 64 sends to 56 of other hosts, 3 of them on its own leaf */
        assert_true(fabs(share - 0.25 * (flat ? 24.0 / 21 : 56.0 / 53)) < 1e-9);
        double alone = sim_collective(&bed.sim, r->op, r->group[0].members, n, 1e9, 1);
        double now = sim_collective(&bed.sim, r->op, r->group[0].members, n, 1e9, share);
        assert_true(now > 3 * alone);
    }
    plan_free(&plan);
    sim_bed_free(&bed);
}

static void what_the_uplinks_carry_is_found(void **state)
{
    static const struct {
        const char *preset;
        int racks, hosts_per_leaf;
    } fabric[] = {{"hgx-h100", 4, 4}, {"hgx-b200", 5, 4}, {"gb200-nvl72", 2, 18}};
    static const double share[] = {1, 0.5, 0.25};

    (void)state;
    for (int i = 0; i < 9; i++) {
        struct sim_opts o = {
            .fabric = preset, .racks = fabric[i / 3].racks, .noise = 0.02, .seed = (unsigned)i};
        struct matrix m;
        write_preset(fabric[i / 3].preset, share[i % 3], fabric[i / 3].hosts_per_leaf);
        measure(&m, &o);
        const char *text = finding(&m, "uplinks");
        int tier = m.tiers - 1;
        double carry, ratio;
        if ((text != NULL) != (share[i % 3] < 1) || m.exceptions || finding(&m, "contention") ||
            says(&m, "pairs of hosts fall into fast and slow ones")) {
            print_all(&m);
            fail_msg("%s, %g of the uplinks", fabric[i / 3].preset, share[i % 3]);
        }
        if (!(fabs(m.tier[tier].loaded / share[i % 3] - 1) < 0.06))
            fail_msg("loaded %g, truth %g", m.tier[tier].loaded, share[i % 3]);
        if (text) {
            assert_int_equal(sscanf(text,
                                    "the uplinks of the leaves are oversubscribed %lf:1: they "
                                    "carry %lf",
                                    &ratio, &carry),
                             2);
            assert_true(fabs(carry / share[i % 3] - 1) < 0.06);
            assert_true(fabs(ratio * share[i % 3] - 1) < 0.08);
        }
        assert_true(fabs(matrix_rate(&m, tier, DIR_UNI) / alone_rate(tier) - 1) < 0.02);
        matrix_free(&m);
    }
}

/* Cables of one leaf that are down are its own, and no part of the fabric's. */
static void one_leaf_with_fewer_uplinks_is_named(void **state)
{
    static const char *const fault[] = {"lost-uplinks=1:0.5", "slow-nic=100:0.6"};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct sim_opts o = {.fabric = preset,
                             .racks = 10,
                             .noise = 0.03,
                             .seed = i,
                             .fault = (const char **)fault,
                             .faults = 1 + (int)i % 2};
        struct matrix m;
        write_preset(i < 2 ? "hgx-h100" : "gb200-nvl72", 1, i < 2 ? 32 : 72);
        measure(&m, &o);
        const struct exception *thin = NULL;
        int n = 0;
        for (int k = 0; k < m.exceptions; k++)
            if (m.exception[k].state == STATE_LOST_UPLINKS) {
                thin = &m.exception[k];
                n++;
            }
        if (n != 1 || thin->part != PART_LEAF || thin->a != 1 || fabs(thin->depth - 0.5) > 0.06 ||
            thin->factor != 1 || !matrix_beyond(&m, thin) || m.exceptions != 1 + (int)i % 2 ||
            finding(&m, "uplinks") || finding(&m, "contention")) {
            print_all(&m);
            fail_msg("%s, seed %u", i < 2 ? "hgx-h100" : "gb200-nvl72", i);
        }
        matrix_free(&m);
    }
}

/* Faults look like thin uplinks here and there: whole uplinks are never called thin, and of thin
 * ones no part is accused that is not slow. */
static void faults_are_not_uplinks(void **state)
{
    static const char *const fault[] = {"slow-host=1:0.5",    "slow-nic=9:0.5",
                                        "slow-racks=0-1:0.5", "slow-racks=1-2:0.4",
                                        "slow-link=0-40:0.3", "dead-host=2"};
    struct rng rng;

    (void)state;
    rng_seed(&rng, 10);
    for (int i = 0; i < 12; i++) {
        bool thin = i % 2;
        struct sim_opts o = {.fabric = preset,
                             .racks = 3 + i % 2,
                             .noise = 0.01 * (1 + rng_below(&rng, 3)),
                             .seed = rng_below(&rng, 1u << 30),
                             .fault = (const char **)&fault[i / 2],
                             .faults = 1};
        struct matrix m;
        write_preset("hgx-h100", thin ? 0.5 : 1, 4);
        measure(&m, &o);
        if ((finding(&m, "uplinks") != NULL) != thin) {
            print_all(&m);
            fail_msg("%s, seed %llu, %d racks, %s uplinks", fault[i / 2], o.seed, o.racks,
                     thin ? "half" : "all");
        }
        matrix_free(&m);
    }
}

/* Where pairs alone are those of a slow host, because they were looked at again, that host explains
 * them and not what lies between its rack and the other. */
static void a_slow_host_does_not_hide_thin_uplinks(void **state)
{
    static const char *const fault[] = {"slow-host=1:0.49"};

    (void)state;
    for (int seed = 0; seed < 4; seed++) {
        struct sim_opts o = {.fabric = preset,
                             .racks = 2,
                             .noise = 0.01,
                             .seed = 86930 + (unsigned)seed,
                             .fault = (const char **)fault,
                             .faults = 1};
        struct matrix m;
        write_preset("gb200-nvl72", 0.33, 18);
        measure(&m, &o);
        if (!finding(&m, "uplinks")) {
            print_all(&m);
            fail_msg("seed %llu: not found", o.seed);
        }
        matrix_free(&m);
    }
}

/* What the model makes of thin uplinks is what they do: nothing to few flows, all to many. */
static void groups_are_priced_by_what_they_ask_of_the_uplinks(void **state)
{
    static const int step[] = {1, 8, 32, 33};
    static const enum op op[] = {OP_ALL_TO_ALL, OP_BROADCAST, OP_SENDRECV};
    struct sim_opts o = {.fabric = preset, .racks = 4};
    struct sim_bed bed;
    struct plan plan = {NULL, 0};
    struct matrix m;
    struct err err = {0, ""};

    (void)state;
    write_preset("hgx-h100", 0.25, 4);
    if (sim_bed_open(&bed, &o, &err) < 0 || matrix_from_fabric(&m, &bed.fabric, 4, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 12; i++) {
        struct round *r = plan_add(&plan, STAGE_COLLECTIVE, op[i / 4], 1);
        struct plan_group *g = &r->group[0];
        struct cost c;
        if (r->op == OP_SENDRECV && step[i % 4] == 1)
            continue; /* from one rail to the next inside a rack: the model counts racks */
        for (int id = 0; id < m.topo.endpoints; id += step[i % 4])
            MEM_PUSH(g->members, g->size) = id;
        double share = sim_share(&bed.sim, r, 0, r->op);
        double truth = sim_collective(&bed.sim, r->op, g->members, g->size, 1e9, share);
        matrix_collective(&m, r->op, g->members, g->size, 1e9, &c);
        if (!(fabs(c.sec / truth - 1) < 0.15))
            fail_msg("%s of every %dth: %g s, truth %g (share %g)", op_name(r->op), step[i % 4],
                     c.sec, truth, share);
    }
    plan_free(&plan);
    matrix_free(&m);
    sim_bed_free(&bed);
}

/* Share of an all_to_all of the first n endpoints over hashed uplinks, in these blocks; returns the CPU seconds. */
static double exchange(struct sim *sim, int n, int blocks, double *share)
{
    struct plan plan = {NULL, 0};
    struct round *r = plan_add(&plan, STAGE_COLLECTIVE, OP_ALL_TO_ALL, 1);
    clock_t from = clock();

    for (int id = 0; id < n; id++)
        MEM_PUSH(r->group[0].members, r->group[0].size) = id;
    for (int b = 0; b < blocks; b++)
        for (int size = 0; size < 30; size++) { /* a turn for each size of the ladder */
            sim->now.block = b;
            sim->now.turn = 30 * b + size;
            double now = sim_share(sim, r, 0, r->op);
            assert_true(!size || now == share[b]);
            share[b] = now;
        }
    plan_free(&plan);
    return (double)(clock() - from) / CLOCKS_PER_SEC;
}

/* Beyond 1,024 members loads are drawn, not counted: as much as flow by flow, with the same spread from block to block, and
 * in a time that does not grow with the square. */
static void a_large_exchange_gets_what_hashing_gives(void **state)
{
    struct sim_opts o = {.fabric = "hgx-h100", .racks = 160, .world = "collisions", .seed = 7};
    struct sim_bed bed;
    struct err err = {0, ""};
    enum { BLOCKS = 6 };
    double counted[BLOCKS], drawn[BLOCKS], all[BLOCKS], sum[2] = {0, 0};

    (void)state;
    if (sim_bed_open(&bed, &o, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(bed.sim.varies);
    exchange(&bed.sim, 1024, BLOCKS, counted);
    exchange(&bed.sim, 1032, BLOCKS, drawn);
    double sec = exchange(&bed.sim, bed.truth.endpoints, BLOCKS, all);
    for (int b = 0; b < BLOCKS; b++) {
        print_message("%.4f flow by flow, %.4f drawn, %.4f of all\n", counted[b], drawn[b], all[b]);
        assert_true(b == 0 || (counted[b] != counted[0] && drawn[b] != drawn[0]));
        sum[0] += counted[b] / BLOCKS;
        sum[1] += drawn[b] / BLOCKS;
    }
    if (!(fabs(sum[1] / sum[0] - 1) < 0.02))
        fail_msg("%g of the rate flow by flow, %g drawn", sum[0], sum[1]);
    assert_true(sec < 1); /* 6 x 26 million flows take 10 s */
    sim_bed_free(&bed);
}

/* Beyond the rounds of leaves of one rail: all leaves of the same hosts, one half to the other, no host to itself. */
static void rails_meet(const struct topo *t, const int *order, int from, int all)
{
    for (int r = from; r <= from + 7; r++) { /* 8 rails */
        struct pairs p = {NULL, 0};
        int busy[256] = {0}, receives[256] = {0};

        schedule_uplinks(&p, t, order, LEVEL_LEAF, r);
        assert_int_equal(p.count, r < from + 7 ? all : 0);
        for (int i = 0; i < p.count; i++) {
            int a = p.pair[i][0], b = p.pair[i][1];
            assert_int_not_equal(topo_at(t, a, LEVEL_RAIL), topo_at(t, b, LEVEL_RAIL));
            assert_int_not_equal(topo_at(t, a, LEVEL_HOST), topo_at(t, b, LEVEL_HOST));
            assert_int_equal(topo_at(t, a, LEVEL_RACK), topo_at(t, b, LEVEL_RACK));
            assert_int_equal(busy[a]++ + busy[b]++, 0);
            receives[topo_at(t, b, LEVEL_LEAF)] = 1;
        }
        for (int i = 0; i < p.count; i++)
            assert_int_equal(receives[topo_at(t, p.pair[i][0], LEVEL_LEAF)], 0);
        free(p.pair);
    }
}

/* A plan pairs leaves of one rail, all members of both at once, each with several others; racks,
 * where no leaf is visible. */
static void a_plan_fills_the_uplinks(void **state)
{
    struct fabric f;
    struct topo t;
    struct err err = {0, ""};

    (void)state;
    write_preset("hgx-h100", 1, 4);
    assert_int_equal(fabric_load(&f, preset, &err), 0);
    for (int racks = 1; racks <= 7; racks++) {
        bool blind = racks == 6, no_leaf = racks == 7;
        int rounds = racks - 1 + racks % 2, met[256] = {0};
        assert_int_equal(fabric_topo(&f, racks, blind, &t, &err), 0);
        if (no_leaf)
            topo_clear_level(&t, LEVEL_LEAF);
        enum level level = no_leaf ? LEVEL_RACK : LEVEL_LEAF;
        int *order = schedule_leaf_order(&t);
        if (racks == 1)
            rounds = 0;
        if (!blind && !no_leaf)
            rails_meet(&t, order, rounds, racks * 32 / 2);
        for (int r = 0; r < rounds + (blind || no_leaf); r++) {
            struct pairs p = {NULL, 0};
            int busy[256] = {0};
            schedule_uplinks(&p, &t, order, level, r);
            /* a rack is a leaf of each rail here */
            assert_int_equal(p.count, blind || r == rounds ? 0 : racks / 2 * 32);
            for (int i = 0; i < p.count; i++) {
                int a = p.pair[i][0], b = p.pair[i][1];
                assert_int_equal(topo_at(&t, a, LEVEL_RAIL), topo_at(&t, b, LEVEL_RAIL));
                assert_int_not_equal(topo_at(&t, a, level), topo_at(&t, b, level));
                assert_int_equal(busy[a]++ + busy[b]++, 0);
                met[a]++;
                met[b]++;
            }
            free(p.pair);
        }
        for (int i = 0; i < t.endpoints; i++)
            assert_int_equal(met[i], blind ? 0 : racks - 1);
        free(order);
        topo_free(&t);
    }
    fabric_free(&f);
}

static int open_folder(void **state)
{
    int rc = campaign_setup(state);

    snprintf(preset, sizeof(preset), "%s/thin.json", campaign_folder);
    return rc;
}

static int close_folder(void **state)
{
    unlink(preset);
    return campaign_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_flow_notices_nothing_and_many_share),
        cmocka_unit_test(what_the_uplinks_carry_is_found),
        cmocka_unit_test(one_leaf_with_fewer_uplinks_is_named),
        cmocka_unit_test(faults_are_not_uplinks),
        cmocka_unit_test(a_slow_host_does_not_hide_thin_uplinks),
        cmocka_unit_test(groups_are_priced_by_what_they_ask_of_the_uplinks),
        cmocka_unit_test(a_large_exchange_gets_what_hashing_gives),
        cmocka_unit_test(a_plan_fills_the_uplinks),
    };

    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
