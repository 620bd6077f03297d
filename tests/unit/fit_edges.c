/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of the edge of each constant with which the fit makes parts and properties of what the noise model and
 * the flows of a campaign say (src/fit: fit_impl.h, parts.c, uplinks.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fit/fit_impl.h"
#include "small.h"

/* --- what is usual: pairs at once --- */

/* Are pairs at once, which get this share of a pair alone, called contended? */
static bool is_contended(double share)
{
    struct matrix m;
    struct points p = {0};
    struct fit f = {.m = &m, .points = &p, .bw_bytes = 4 << 20};
    bool is;

    matrix_init(&m);
    small_topo(&m.topo, 2, 4, 1, true, ENDPOINT_CPU);
    small_tier(&m, "fabric", 0, 10e-6, 1e9, true);
    p.endpoints = m.topo.endpoints;
    for (int epoch = 0; epoch < 2; epoch++)
        for (int i = 0; i < 8; i++)
            for (int alone = 0; alone < 2; alone++)
                MEM_PUSH(p.point, p.count) =
                    (struct point){.epoch = epoch,
                                   .round = alone ? 8 + i : 0,
                                   .stage = STAGE_CLASS,
                                   .op = OP_PAIR_BW,
                                   .ranks = 2,
                                   .src = i,
                                   .dst = (i + 3) % 8,
                                   .flows = alone ? 1 : 8,
                                   .bytes = 4 << 20,
                                   .sec.median = 4e-3 / (alone ? 1 : share)};
    fit_baseline(&f);
    is = f.baseline[0].contended;
    noise_free(&f.noise);
    lists_free(&f.of);
    free(f.tiers.at);
    free(f.look);
    free(p.point);
    matrix_free(&m);
    return is;
}

static void pairs_at_once_are_contended_from_a_sixth_on(void **state)
{
    (void)state;
    assert_true(is_contended(0.8));
    assert_false(is_contended(0.9));
}

/* --- parts: a factor for each tier --- */

struct tiers {
    double factor[2], sigma;
    int looks[2];
};

/* Exceptions of a slow endpoint that has these factors in two tiers; *tier of the first. */
static int exceptions_of(const struct tiers *t, int *tier)
{
    struct matrix m;
    struct fit f = {.m = &m};
    struct found found = {.part = PART_ENDPOINT,
                          .a = 1,
                          .b = -1,
                          .tier = -1,
                          .state = STATE_SLOW,
                          .effect = log(t->factor[0]),
                          .share = 1,
                          .sd = 0.01};
    int n;

    small_matrix(&m);
    MEM_PUSH(f.noise.found, f.noise.founds) = found;
    for (int k = 0; k < 2; k++) {
        MEM_PUSH(f.noise.usual, f.noise.usuals) =
            (struct usual){.kind = LOOK_RATE, .tier = 1 + k, .sigma = t->sigma, .looks = 100};
        for (int i = 0; i < t->looks[k]; i++)
            MEM_PUSH(f.look, f.looks) = (struct look){.src = 1,
                                                      .dst = 2 + i % 10,
                                                      .tier = 1 + k,
                                                      .kind = LOOK_RATE,
                                                      .y = (float)log(t->factor[k])};
    }
    fit_parts(&f);
    n = m.exceptions;
    if (tier)
        *tier = m.exception[0].tier;
    noise_free(&f.noise);
    free(f.look);
    matrix_free(&m);
    return n;
}

static void factors_that_differ_by_a_tenth_are_two(void **state)
{
    (void)state;
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.5 * 0.92}, 0, {100, 100}}, NULL), 1);
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.5 * 0.87}, 0, {100, 100}}, NULL), 2);
}

/* 16 looks of 10 %: the difference of two tiers is known to 4.4 %. */
static void tiers_differ_from_three_sigma_on(void **state)
{
    (void)state;
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.5 * exp(-0.12)}, 0.1, {16, 16}}, NULL),
                     1);
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.5 * exp(-0.15)}, 0.1, {16, 16}}, NULL),
                     2);
}

static void a_tier_that_loses_three_percent_does_not_show_the_part(void **state)
{
    (void)state;
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.97}, 0, {100, 100}}, NULL), 1);
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.957}, 0, {100, 100}}, NULL), 2);
}

static void two_looks_tell_a_tiers_factor(void **state)
{
    int tier;

    (void)state;
    exceptions_of(&(struct tiers){{0.5, 0.8}, 0, {100, 1}}, &tier); /* one look may be stray */
    assert_int_equal(tier, -1);
    assert_int_equal(exceptions_of(&(struct tiers){{0.5, 0.8}, 0, {100, 2}}, NULL), 2);
    exceptions_of(&(struct tiers){{0.5, 1}, 0, {100, 1}}, &tier); /* unless it is fine */
    assert_int_equal(tier, 1);
}

/* Is a slow pair left out, because one of its ends is slow by this share of its effect? */
static bool is_left_out(double share)
{
    struct matrix m;
    struct fit f = {.m = &m};
    bool is = true;

    small_matrix(&m);
    for (int pair = 0; pair < 2; pair++)
        MEM_PUSH(f.noise.found, f.noise.founds) =
            (struct found){.part = pair ? PART_PAIR : PART_ENDPOINT,
                           .a = 1,
                           .b = pair ? 4 : -1,
                           .tier = -1,
                           .state = STATE_SLOW,
                           .effect = pair ? -1 : -share,
                           .share = 1,
                           .sd = 0.01};
    MEM_PUSH(f.look, f.looks) = (struct look){.src = 1, .dst = 4, .tier = 1, .kind = LOOK_RATE};
    fit_parts(&f);
    for (int i = 0; i < m.exceptions; i++)
        is &= m.exception[i].part != PART_PAIR;
    noise_free(&f.noise);
    free(f.look);
    matrix_free(&m);
    return is;
}

static void an_end_that_is_nearly_as_slow_explains_a_pair(void **state)
{
    (void)state;
    assert_false(is_left_out(0.65));
    assert_true(is_left_out(0.75));
}

/* --- uplinks --- */

enum { LEAF = 20, LEAVES = 24 };

/* One flow: its place in its turn; what it gets of a pair alone. */
typedef double share_of(int turn, int flow);

struct flows {
    int turns, flows;
    bool spread; /* each to a leaf of its own; else all to leaf 1 */
    share_of *share;
    share_of *apart; /* NULL, or what flows between pods of two leaves get, in turns of their own */
    int more;        /* further leaves that send as many at once */
};

static void put(struct points *p, int turn, int flows, int src, int dst, double share)
{
    MEM_PUSH(p->point, p->count) = (struct point){.round = turn,
                                                  .stage = STAGE_CLASS,
                                                  .op = OP_PAIR_BW,
                                                  .ranks = 2,
                                                  .src = src,
                                                  .dst = dst,
                                                  .flows = flows,
                                                  .bytes = 1 << 20,
                                                  .sec.median = (1 << 20) / (1e9 * share)};
}

static void leaves(struct topo *t, bool pods)
{
    char name[16];

    small_topo(t, 1, LEAF * LEAVES, 1, false, ENDPOINT_CPU);
    for (int i = 0; i < t->endpoints; i++) {
        snprintf(name, sizeof(name), "leaf-%02d", i / LEAF);
        t->endpoint[i].place.at[LEVEL_LEAF] = topo_add_group(t, LEVEL_LEAF, name);
        snprintf(name, sizeof(name), "pod-%02d", i / LEAF / 2);
        if (pods)
            t->endpoint[i].place.at[LEVEL_SPINE] = topo_add_group(t, LEVEL_SPINE, name);
    }
}

/* The ratio that is found of a property at a level; NAN: none. */
static double property_of(const struct flows *w, enum property_kind kind, enum level level)
{
    struct matrix m;
    struct points p = {0};
    struct fit f = {.m = &m, .points = &p, .bw_bytes = 1 << 20};
    double ratio = NAN;

    matrix_init(&m);
    leaves(&m.topo, w->apart != NULL);
    small_tier(&m, "fabric", 0, 10e-6, 1e9, true);
    p.endpoints = m.topo.endpoints;
    f.baseline[0].alone = 1e9;
    lists_make(&f.of, NULL, NULL, 0, OP_COUNT);
    for (int turn = 0; turn < w->turns; turn++)
        for (int g = 0; g <= w->more; g++)
            for (int i = 0; i < w->flows; i++)
                put(&p, turn, w->flows, LEAF * g + i,
                    w->spread ? LEAF * (w->more + 1 + i) + g : LEAF * (w->more + 1) + i,
                    w->share(turn, LEAF * g + i));
    for (int turn = 0; w->apart && turn < w->turns; turn++)
        for (int i = 0; i < 2 * LEAF; i++)
            put(&p, w->turns + turn, 2 * LEAF, i, 2 * LEAF + i, w->apart(turn, i));
    topo_tiers_make(&f.tiers, &m.topo);
    fit_uplinks(&f);
    free(f.tiers.at);
    for (int i = 0; i < m.properties; i++)
        if (m.property[i].kind == kind && m.property[i].level == (int)level)
            ratio = m.property[i].ratio;
    lists_free(&f.of);
    free(p.point);
    matrix_free(&m);
    return ratio;
}

static double all_get, some_get, pods_get;
static int slow_of;

static double all(int turn, int flow)
{
    (void)turn;
    (void)flow;
    return all_get;
}

static double pods(int turn, int flow)
{
    (void)turn;
    (void)flow;
    return pods_get;
}

static double taper(double share, int turns)
{
    all_get = share;
    return property_of(&(struct flows){turns, LEAF, false, all, NULL, 0}, PROPERTY_TAPER,
                       LEVEL_LEAF);
}

static void uplinks_that_carry_a_sixth_less_are_few(void **state)
{
    (void)state;
    assert_true(fabs(taper(0.8, 8) - 1 / 0.8) < 0.01);
    assert_true(isnan(taper(0.9, 8)));
}

static void three_turns_tell_of_uplinks(void **state)
{
    (void)state;
    assert_true(isnan(taper(0.5, 2)));
    assert_true(fabs(taper(0.5, 3) - 2) < 0.01);
}

static double taper_of_pods(double share)
{
    all_get = 0.8;
    pods_get = share;
    return property_of(&(struct flows){8, LEAF, false, all, pods, 0}, PROPERTY_TAPER, LEVEL_SPINE);
}

static void pods_carry_a_tenth_less_than_their_leaves(void **state)
{
    (void)state;
    assert_false(isnan(taper_of_pods(0.68)));
    assert_true(isnan(taper_of_pods(0.75)));
}

/* --- collisions --- */

/* slow_of 1,000 flows, without an order. */
static double by_chance(int turn, int flow)
{
    struct rng r;

    rng_seed(&r, (uint64_t)(1000 * turn + flow));
    return (int)rng_below(&r, 1000) < slow_of ? some_get : 1;
}

static bool is_hashed(int turns, int flows, double share, int of)
{
    some_get = share;
    slow_of = of;
    return !isnan(property_of(&(struct flows){turns, flows, true, by_chance, NULL, 0},
                              PROPERTY_COLLISIONS, LEVEL_LEAF));
}

static void a_flow_that_collides_is_nearer_to_a_half(void **state)
{
    (void)state;
    assert_true(is_hashed(20, LEAF, 0.66, 300));
    assert_false(is_hashed(20, LEAF, 0.75, 300));
}

static void eight_turns_of_six_flows_tell_of_collisions(void **state)
{
    (void)state;
    assert_false(is_hashed(7, LEAF, 0.5, 300));
    assert_true(is_hashed(8, LEAF, 0.5, 300));
    assert_false(is_hashed(40, 5, 0.5, 300));
    assert_true(is_hashed(40, 6, 0.5, 300));
}

/* Hashing leaves some flows alone: where hardly any is, uplinks are too few. */
static void of_flows_that_collide_one_in_five_is_alone(void **state)
{
    (void)state;
    assert_true(is_hashed(40, LEAF, 0.5, 760));
    assert_false(is_hashed(40, LEAF, 0.5, 840));
}

/* Every so many flows one, counted through all turns. */
static double every(int turn, int flow)
{
    return (turn * LEAF + flow) % slow_of == 0 ? 0.5 : 1;
}

static void one_flow_in_twenty_is_no_stray_point(void **state)
{
    const struct flows w = {34, LEAF, true, every, NULL, 0};

    (void)state;
    slow_of = 23; /* 4.3 % */
    assert_true(isnan(property_of(&w, PROPERTY_COLLISIONS, LEVEL_LEAF)));
    slow_of = 17; /* 5.9 % */
    assert_false(isnan(property_of(&w, PROPERTY_COLLISIONS, LEVEL_LEAF)));
}

/* Of twenty flows ten are slow, more in one turn by some_get and fewer in the next. */
static double by_turn(int turn, int flow)
{
    double more = turn % 4 < 2 ? some_get : all_get;

    return flow < 10 + (turn % 2 ? more : -more) ? 0.5 : 1;
}

/* Correlation of 20 flows whose slow ones are off by a and b by turns: ((a^2 + b^2) / 2 / 5 - 1) / 19. */
static bool is_hashed_by(double a, double b)
{
    some_get = a;
    all_get = b;
    return !isnan(property_of(&(struct flows){40, LEAF, true, by_turn, NULL, 0},
                              PROPERTY_COLLISIONS, LEVEL_LEAF));
}

static void flows_that_are_slow_together_do_not_collide(void **state)
{
    (void)state;
    assert_true(is_hashed_by(5, 4));  /* 0.163 */
    assert_true(is_hashed_by(5, 5));  /* 0.21 */
    assert_false(is_hashed_by(6, 5)); /* 0.27 */
}

/* In each second turn three of four flows are slow, else one of seven; or so in each second leaf. */
static double more_in_some_turns(int turn, int flow)
{
    slow_of = turn % 2 ? 750 : 150;
    return by_chance(turn, flow);
}

static double more_in_some_leaves(int turn, int flow)
{
    slow_of = (turn + flow / LEAF) % 2 ? 750 : 150;
    return by_chance(turn, flow);
}

/* Turns of more flows have more collisions, in all of their leaves. */
static void flows_collide_in_busy_turns_more(void **state)
{
    (void)state;
    some_get = 0.5;
    assert_false(isnan(property_of(&(struct flows){40, LEAF, true, more_in_some_turns, NULL, 3},
                                   PROPERTY_COLLISIONS, LEVEL_LEAF)));
    assert_true(isnan(property_of(&(struct flows){40, LEAF, true, more_in_some_leaves, NULL, 3},
                                  PROPERTY_COLLISIONS, LEVEL_LEAF)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_at_once_are_contended_from_a_sixth_on),
        cmocka_unit_test(factors_that_differ_by_a_tenth_are_two),
        cmocka_unit_test(tiers_differ_from_three_sigma_on),
        cmocka_unit_test(a_tier_that_loses_three_percent_does_not_show_the_part),
        cmocka_unit_test(two_looks_tell_a_tiers_factor),
        cmocka_unit_test(an_end_that_is_nearly_as_slow_explains_a_pair),
        cmocka_unit_test(uplinks_that_carry_a_sixth_less_are_few),
        cmocka_unit_test(three_turns_tell_of_uplinks),
        cmocka_unit_test(pods_carry_a_tenth_less_than_their_leaves),
        cmocka_unit_test(a_flow_that_collides_is_nearer_to_a_half),
        cmocka_unit_test(eight_turns_of_six_flows_tell_of_collisions),
        cmocka_unit_test(of_flows_that_collide_one_in_five_is_alone),
        cmocka_unit_test(one_flow_in_twenty_is_no_stray_point),
        cmocka_unit_test(flows_that_are_slow_together_do_not_collide),
        cmocka_unit_test(flows_collide_in_busy_turns_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
