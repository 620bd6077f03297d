/* SPDX-License-Identifier: BSD-3-Clause */
/* layers.c - groups within groups from measured pairs. */
#include <stdlib.h>

#include "test.h"

#include "base/stats.h"
#include "fit/fit.h"
#include "measure/schedule_impl.h"
#include "small.h"

/* Hosts in groups of per[0], those in groups of per[1] ...; Bps[i] and sec[i] inside layer i,
 * the last of each beyond all. */
struct truth {
    int hosts, per[3];
    double Bps[4], sec[4];
    enum endpoint_kind kind;
    int slow; /* group of layer 0 whose pairs with all others get half; -1 */
    int step; /* neighbours in the list are so many places apart; 0: SHUFFLE */
};

enum { SHUFFLE = 7 }; /* coprime to the numbers of hosts below: neighbours are far apart */

static int place(const struct truth *t, int h)
{
    return (int)((long)h * (t->step ? t->step : SHUFFLE) % t->hosts);
}

/* What a and b see of each other. */
static void meet(const struct truth *t, int a, int b, struct rng *rng, struct obs **out, int *n)
{
    int x = place(t, a), y = place(t, b), i = 0;

    while (i < 3 && (!t->per[i] || x / t->per[i] != y / t->per[i]))
        i++;
    double rate = t->Bps[i] * exp(0.02 * rng_normal(rng));
    if (t->slow >= 0 && i > 0 && (x / t->per[0] == t->slow || y / t->per[0] == t->slow))
        rate /= 2;
    MEM_PUSH(*out, *n) = (struct obs){.op = OP_PAIR_BW,
                                      .one = true,
                                      .src = a,
                                      .dst = b,
                                      .bytes = 1 << 20,
                                      .sec = (1 << 20) / rate};
    MEM_PUSH(*out, *n) = (struct obs){.op = OP_PAIR_LATENCY,
                                      .one = true,
                                      .src = a,
                                      .dst = b,
                                      .bytes = 8,
                                      .sec = t->sec[i] * exp(0.02 * rng_normal(rng))};
}

/* By operation, as observe() lists them. */
static void in_order(struct obs *o, int n)
{
    struct obs *from = mem_dup(o, (size_t)n, sizeof(*o));
    int kept = 0;

    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < n; i++)
            if ((int)from[i].op == op)
                o[kept++] = from[i];
    free(from);
}

/* Of all pairs, or of those that hosts in search of company meet in the first `rounds` rounds. */
static int observations(const struct truth *t, int rounds, struct obs **out)
{
    int n = 0, *self = mem_calloc((size_t)t->hosts, sizeof(*self));
    struct rng rng;

    rng_seed(&rng, 3);
    *out = NULL;
    for (int a = 0; a < t->hosts; a++) {
        self[a] = a;
        for (int b = 0; b < t->hosts && !rounds; b++)
            if (a != b)
                meet(t, a, b, &rng, out, &n);
    }
    for (int r = 0; r < rounds; r++) {
        struct pairs p = {NULL, 0};
        schedule_find(&p, self, t->hosts, r);
        for (int i = 0; i < p.count; i++)
            meet(t, p.pair[i][0], p.pair[i][1], &rng, out, &n);
        free(p.pair);
    }
    free(self);
    in_order(*out, n);
    return n;
}

static void find_in(struct layers *l, const struct truth *t, int rounds)
{
    struct topo topo;
    struct obs *o;
    int n = observations(t, rounds, &o);

    small_topo(&topo, 1, t->hosts, 1, false, t->kind);
    topo_default_tiers(&topo);
    layers_find(l, &topo, o, n, NULL, false);
    topo_free(&topo);
    free(o);
}

static void find(struct layers *l, const struct truth *t)
{
    find_in(l, t, 0);
}

/* Layer i groups the hosts as the truth's groups of `per` do. */
static void same(const struct layers *l, int i, const struct truth *t, int per)
{
    const int *of = l->layer[i].of;

    assert_int_equal(l->layer[i].groups, t->hosts / per);
    for (int a = 0; a < t->hosts; a++)
        for (int b = 0; b < t->hosts; b++)
            if ((of[a] == of[b]) != (place(t, a) / per == place(t, b) / per))
                fail_msg("layer %d: hosts %d and %d", i, a, b);
}

TEST(three_layers_of_nvlink_leaf_and_spine)
{
    const struct truth t = {
        48, {4, 8, 24}, {400e9, 48e9, 40e9, 20e9}, {4e-6, 5e-6, 6e-6, 8e-6}, ENDPOINT_GPU, -1, 0};
    struct layers l;

    find(&l, &t);
    assert_int_equal(l.count, 3);
    for (int i = 0; i < 3; i++)
        same(&l, i, &t, t.per[i]);
    assert_true(l.layer[0].nvlink && !l.layer[1].nvlink);
    assert_int_equal(layers_level(&l, 0), LEVEL_RACK);
    assert_int_equal(layers_level(&l, 1), LEVEL_LEAF);
    assert_int_equal(layers_level(&l, 2), LEVEL_SPINE);
    assert_true(fabs(l.layer[2].near / 40e9 - 1) < 0.1 && fabs(l.layer[2].far / 20e9 - 1) < 0.1);
    layers_free(&l);
}

TEST(racks_and_spines_without_nvlink)
{
    const struct truth t = {
        30, {5, 15}, {12e9, 9e9, 9e9, 4e9}, {2e-6, 3e-6, 3e-6, 5e-6}, ENDPOINT_CPU, -1, 0};
    struct truth flat = t;
    struct layers l;

    flat.per[2] = 15; /* Bps[2] is never used */
    find(&l, &flat);
    assert_int_equal(l.count, 2);
    same(&l, 0, &t, 5);
    same(&l, 1, &t, 15);
    assert_false(l.layer[0].nvlink);
    assert_int_equal(layers_level(&l, 1), LEVEL_SPINE);
    layers_free(&l);
}

/* Full bisection: spines are told by two more switches alone. */
TEST(spines_by_latency)
{
    const struct truth t = {
        24, {4, 12, 12}, {12e9, 9e9, 9e9, 9e9}, {2e-6, 3e-6, 3e-6, 4e-6}, ENDPOINT_CPU, -1, 0};
    struct layers l;

    find(&l, &t);
    assert_int_equal(l.count, 2);
    same(&l, 1, &t, 12);
    assert_int_equal(l.layer[1].clue, CLUE_LATENCY);
    assert_string_equal(clue_name(l.layer[1].clue), "latency");
    layers_free(&l);
}

TEST(one_slow_rack_is_no_second_layer)
{
    struct truth t = {
        20, {4, 20, 20}, {12e9, 9e9, 9e9, 9e9}, {2e-6, 3e-6, 3e-6, 3e-6}, ENDPOINT_CPU, 2, 0};
    struct layers l;

    for (t.slow = -1; t.slow < 5; t.slow++) {
        find(&l, &t);
        assert_int_equal(l.count, 1);
        same(&l, 0, &t, 4);
        layers_free(&l);
    }
}

TEST(nothing_to_tell_apart)
{
    const struct truth t = {16, {16, 16, 16}, {12e9, 0, 0, 0}, {2e-6, 0, 0, 0}, ENDPOINT_CPU, -1,
                            0};
    struct layers l;

    find(&l, &t);
    assert_int_equal(l.count, 0);
    assert_int_equal(l.contradictions, 0);
    layers_free(&l);
}

/* --- more hosts than a tournament takes --- */

/* No two hosts in a group of layer i that are not together, no two groups that are parts of one:
 * how many hosts are left out, or -1. */
static int left_out(const struct layers *l, int i, const struct truth *t, int per)
{
    const int *of = l->layer[i].of;
    int left = 0, *seen = mem_calloc((size_t)t->hosts, sizeof(*seen));
    int *group = mem_calloc((size_t)l->layer[i].groups + 1, sizeof(*group));

    for (int h = 0; h < t->hosts && left >= 0; h++) {
        int g = of[h], truth = place(t, h) / per;
        if (g < 0) {
            left++;
            continue;
        }
        if ((group[g] && group[g] != truth + 1) || (seen[truth] && seen[truth] != g + 1))
            left = -1;
        group[g] = truth + 1;
        seen[truth] = g + 1;
    }
    free(seen);
    free(group);
    return left;
}

/* Listed rack by rack everything is found; dealt out over racks some hosts may be left out, or all
 * of the inner layer, but what is found is true. */
TEST(a_thousand_hosts_need_no_tournament)
{
    static const double Bps[] = {360e9, 48e9, 36e9, 18e9}, sec[] = {4e-6, 5e-6, 7e-6, 9e-6};
    static const struct {
        int hosts, per[3], layers, step, left;
    } cases[] = {
        {1024, {4, 8, 16}, 3, 1, 0},      {1024, {4, 8, 16}, 2, 333, 100},
        {1026, {18, 18, 18}, 1, 1, 0},    {1024, {16, 64, 256}, 3, 1, 0},
        {1024, {16, 64, 256}, 3, 333, 0}, {2048, {16, 16, 16}, 1, 777, 100},
    };
    const bool all = getenv("RG_ALL") && *getenv("RG_ALL"); /* else the first half */

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases) / (all ? 1 : 2); k++) {
        struct truth t = {
            .hosts = cases[k].hosts, .kind = ENDPOINT_GPU, .slow = -1, .step = cases[k].step};
        struct layers l;
        memcpy(t.per, cases[k].per, sizeof(t.per));
        memcpy(t.Bps, Bps, sizeof(t.Bps));
        memcpy(t.sec, sec, sizeof(t.sec));
        find_in(&l, &t, FIND_ROUNDS);
        print_message("%d hosts in steps of %d: %d layers", t.hosts, t.step, l.count);
        for (int i = 0, j = -1; i < l.count; i++) {
            int left = -1;
            while (left < 0 && ++j < 3)
                left = left_out(&l, i, &t, t.per[j]);
            print_message("; %d groups by %s, %d hosts left out", l.layer[i].groups,
                          clue_name(l.layer[i].clue), left);
            assert_in_range(left, 0, cases[k].left);
            if (t.step == 1)
                assert_true(left == 0 && i == j && l.layer[i].groups == t.hosts / t.per[i]);
        }
        print_message("\n");
        assert_int_equal(l.count, cases[k].layers);
        layers_free(&l);
    }
}

/* Latency of two endpoints on different hosts: 5.0 us where a leaf joins them, else 5.5 us. */
static void met(struct obs **out, int *n, int a, int b, bool leaf)
{
    double sec = (leaf ? 5.0e-6 : 5.5e-6) * (1 + 1e-3 * (*n % 3));

    MEM_PUSH(*out, *n) = (struct obs){.op = OP_PAIR_LATENCY,
                                      .one = true,
                                      .of.point = {point_time(0.99 * sec), point_time(1.01 * sec)},
                                      .src = a,
                                      .dst = b,
                                      .bytes = 8,
                                      .alone = true,
                                      .stages = 1u << STAGE_ISOLATED,
                                      .sec = sec};
}

/* Leaves of two rails are declared; hosts 0 and 1, 2 and 3 met across rails only. */
TEST(hosts_that_met_across_rails_only_are_no_farther)
{
    struct topo t;
    struct layers l;
    struct obs *o = NULL;
    int n = 0;

    small_topo(&t, 1, 8, 2, false, ENDPOINT_GPU);
    topo_add_group(&t, LEVEL_LEAF, "leaf-0");
    topo_add_group(&t, LEVEL_LEAF, "leaf-1");
    for (int e = 0; e < t.endpoints; e++)
        t.endpoint[e].place.at[LEVEL_LEAF] = e % 2;
    topo_default_tiers(&t);
    for (int a = 0; a < 8; a++)
        for (int b = a + 1; b < 8; b++) {
            bool across = b == a + 1 && b < 4 && a % 2 == 0;
            met(&o, &n, 2 * a, 2 * b + across, !across);
        }
    layers_find(&l, &t, o, n, NULL, false);
    assert_int_equal(l.count, 0);
    assert_int_equal(l.contradictions, 0);
    layers_free(&l);
    topo_free(&t);
    free(o);
}

/* Eight hosts with two endpoints; hosts 0 to 3 and 4 to 7 have a leaf for each rail.  Of all pairs alone,
 * and across the rails of four hosts beside others, where it takes as long as it likes. */
static int met_on_leaves(struct obs **o, double crowded)
{
    int n = 0;

    for (int a = 0; a < 16; a++)
        for (int b = 0; b < 16; b++) {
            bool four = a / 8 == b / 8, rail = a % 2 == b % 2;
            if (a / 2 == b / 2)
                continue;
            met(o, &n, a, b, four && rail);
            for (int k = 0; k < 2 && four && !rail; k++) {
                struct obs beside = (*o)[n - 1];
                beside.alone = false;
                beside.outdone = true;
                beside.sec *= crowded * (1 + k);
                MEM_PUSH(*o, n) = beside;
            }
        }
    return n;
}

TEST(what_a_crowd_does_makes_no_layer_of_leaves)
{
    struct topo t;

    small_topo(&t, 1, 8, 2, false, ENDPOINT_GPU);
    topo_default_tiers(&t);
    for (double crowded = 1; crowded < 5; crowded++) {
        struct layers l;
        struct obs *o = NULL;
        int n = met_on_leaves(&o, crowded);
        layers_find(&l, &t, o, n, NULL, true);
        assert_int_equal(l.count, 1);
        assert_true(l.layer[0].only_leaves);
        layers_free(&l);
        free(o);
    }
    topo_free(&t);
}
