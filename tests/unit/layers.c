/* SPDX-License-Identifier: BSD-3-Clause */
/* layers.c - groups within groups from measured pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/stats.h"
#include "cost/layers.h"
#include "small.h"

/* Hosts in groups of per[0], those in groups of per[1] ...; Bps[i] and sec[i] inside layer i,
 * the last of each beyond all. */
struct truth {
    int hosts, per[3];
    double Bps[4], sec[4];
    enum endpoint_kind kind;
    int slow; /* group of layer 0 whose pairs with all others get half; -1 */
};

enum { SHUFFLE = 7 }; /* coprime to the numbers of hosts below: neighbours are far apart */

static int place(const struct truth *t, int h)
{
    return h * SHUFFLE % t->hosts;
}

static int observations(const struct truth *t, struct obs **out)
{
    struct rng rng;
    int n = 0;

    rng_seed(&rng, 3);
    *out = NULL;
    for (int a = 0; a < t->hosts; a++)
        for (int b = 0; b < t->hosts; b++) {
            int x = place(t, a), y = place(t, b), i = 0;
            if (a == b)
                continue;
            while (i < 3 && (!t->per[i] || x / t->per[i] != y / t->per[i]))
                i++;
            double rate = t->Bps[i] * exp(0.02 * rng_normal(&rng));
            if (t->slow >= 0 && i > 0 && (x / t->per[0] == t->slow || y / t->per[0] == t->slow))
                rate /= 2;
            MEM_PUSH(*out, n) = (struct obs){
                .op = OP_PAIR_BW, .src = a, .dst = b, .bytes = 1 << 20, .sec = (1 << 20) / rate};
            MEM_PUSH(*out, n) = (struct obs){.op = OP_PAIR_LATENCY,
                                             .src = a,
                                             .dst = b,
                                             .bytes = 8,
                                             .sec = t->sec[i] * exp(0.02 * rng_normal(&rng))};
        }
    return n;
}

static void find(struct layers *l, const struct truth *t)
{
    struct topo topo;
    struct obs *o;
    int n = observations(t, &o);

    small_topo(&topo, 1, t->hosts, 1, false, t->kind);
    topo_default_tiers(&topo);
    layers_find(l, &topo, o, n, NULL, false);
    topo_free(&topo);
    free(o);
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

static void three_layers_of_nvlink_leaf_and_spine(void **state)
{
    const struct truth t = {
        48, {4, 8, 24}, {400e9, 48e9, 40e9, 20e9}, {4e-6, 5e-6, 6e-6, 8e-6}, ENDPOINT_GPU, -1};
    struct layers l;

    (void)state;
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

static void racks_and_spines_without_nvlink(void **state)
{
    const struct truth t = {30,           {5, 15}, {12e9, 9e9, 9e9, 4e9}, {2e-6, 3e-6, 3e-6, 5e-6},
                            ENDPOINT_CPU, -1};
    struct truth flat = t;
    struct layers l;

    (void)state;
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
static void spines_by_latency(void **state)
{
    const struct truth t = {
        24, {4, 12, 12}, {12e9, 9e9, 9e9, 9e9}, {2e-6, 3e-6, 3e-6, 4e-6}, ENDPOINT_CPU, -1};
    struct layers l;

    (void)state;
    find(&l, &t);
    assert_int_equal(l.count, 2);
    same(&l, 1, &t, 12);
    assert_int_equal(l.layer[1].clue, CLUE_LATENCY);
    assert_string_equal(clue_name(l.layer[1].clue), "latency");
    layers_free(&l);
}

static void one_slow_rack_is_no_second_layer(void **state)
{
    struct truth t = {
        20, {4, 20, 20}, {12e9, 9e9, 9e9, 9e9}, {2e-6, 3e-6, 3e-6, 3e-6}, ENDPOINT_CPU, 2};
    struct layers l;

    (void)state;
    for (t.slow = -1; t.slow < 5; t.slow++) {
        find(&l, &t);
        assert_int_equal(l.count, 1);
        same(&l, 0, &t, 4);
        layers_free(&l);
    }
}

static void nothing_to_tell_apart(void **state)
{
    const struct truth t = {16, {16, 16, 16}, {12e9, 0, 0, 0}, {2e-6, 0, 0, 0}, ENDPOINT_CPU, -1};
    struct layers l;

    (void)state;
    find(&l, &t);
    assert_int_equal(l.count, 0);
    assert_int_equal(l.contradictions, 0);
    layers_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_layers_of_nvlink_leaf_and_spine),
        cmocka_unit_test(racks_and_spines_without_nvlink),
        cmocka_unit_test(spines_by_latency),
        cmocka_unit_test(one_slow_rack_is_no_second_layer),
        cmocka_unit_test(nothing_to_tell_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
