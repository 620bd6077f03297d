/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of the edge of each constant of the noise model (noise/constants.h): what is just on one side of it
 * is judged in another way than what is just on the other. */
#include "noise/noise_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/distribution.h"
#include "noise_fabric.h"

/* --- looks whose residuals are what the test says --- */

enum { HOSTS = 16, ENDPOINTS = 4 * HOSTS, SHIFTS = 3, MANY_SHIFTS = 12 };

/* Residual of a look; NAN: it is not measured. */
typedef double value_of(int src, int dst, int block, int turn);

struct bench {
    struct topo topo;
    struct places places;
    struct look *look;
    float *r;
    int looks, turn;
    struct rng rng;
    struct noise_input in;
    struct view v;
    struct keyed nic;
    struct channel c;
    struct claims out;
    struct hunt h;
};

static void put(struct bench *b, struct look k, double r)
{
    int n = b->looks;

    if (isnan(r))
        return;
    k.y = (float)r;
    k.looks_at = -1;
    MEM_PUSH(b->look, b->looks) = k;
    MEM_PUSH(b->r, n) = (float)r;
}

static double noise_of_looks = 0.001;

/* Everybody with the next k, another k each turn: no pair twice, unless turns are many. */
static void measure_all(struct bench *b, int shifts, value_of *value)
{
    const int n = b->topo.endpoints;

    for (int block = 0; block < BLOCKS; block++)
        for (int s = 0; s < shifts; s++, b->turn++)
            for (int i = 0; i < n; i++) {
                int dst = (i + 4 + b->turn % (n - 8)) % n;

                put(b,
                    (struct look){
                        .turn = b->turn, .block = block, .src = i, .dst = dst, .tier = TIER_RAIL},
                    value(i, dst, block, b->turn) + noise_of_looks * rng_normal(&b->rng));
            }
}

static void open_bench(struct bench *b, int hosts)
{
    *b = (struct bench){
        .c = {.kind = LOOK_RATE, .nic = true, .tiers = 1u << TIER_RAIL | 1u << TIER_FABRIC}};
    make_topo(&b->topo, hosts);
    places_make(&b->places, &b->topo);
    rng_seed(&b->rng, seed);
}

/* A view in which all ends are fine, and a hunt in it. */
static void set_up(struct bench *b)
{
    const size_t n = (size_t)b->topo.endpoints;

    b->in = (struct noise_input){
        &b->topo, b->look, b->looks, {[TIER_RAIL] = true, [TIER_FABRIC] = true}};
    b->v = (struct view){
        .in = &b->in, .places = &b->places, .nic = &b->nic, .blocks = 2 * BLOCKS, .r = b->r};
    view_list(&b->v);
    b->v.block = mem_ints(2 * BLOCKS, 0);
    for (int i = 0; i < 2 * BLOCKS; i++)
        b->v.block[i] = i;
    for (int k = 0; k < CLASSES; k++)
        b->v.class[k] = (struct class_fit){0, 0.005, 1, 100};
    for (int k = 0; k < LOOK_COUNT; k++) {
        b->v.fine[k] = mem_calloc(n + 1, sizeof(unsigned));
        memset(b->v.fine[k], 0xff, n * sizeof(unsigned));
    }
    b->h = (struct hunt){.v = &b->v,
                         .places = &b->places,
                         .c = &b->c,
                         .beside = BESIDE_ANY,
                         .alpha = 0.02,
                         .r = mem_dup(b->r, (size_t)b->looks, sizeof(*b->r)),
                         .done = mem_calloc(n + 1, sizeof(float)),
                         .stale = true,
                         .out = &b->out};
}

static void free_channel(struct channel *c)
{
    for (int r = 0; r < RUNG_COUNT; r++)
        for (int l = 0; l < LENS_MAX; l++)
            free(c->like[r][l].back);
    for (int l = 0; l < LENS_MAX; l++)
        free(c->control[l].back);
    for (int k = 0; k < 4; k++)
        free(c->likely[k / 2][k % 2].factor);
    for (int t = 0; t < 2 * TIER_MAX; t++)
        free(c->base[t / 2][t % 2]);
}

static void close_bench(struct bench *b)
{
    gather_free(&b->h);
    keyed_free(&b->nic);
    for (int k = 0; k < LOOK_COUNT; k++)
        free(b->v.fine[k]);
    free(b->v.block);
    lists_free(&b->v.of);
    free(b->h.r);
    free(b->h.done);
    free(b->out.at);
    free_channel(&b->c);
    free(b->look);
    free(b->r);
    places_free(&b->places);
    free(b->topo.endpoint);
}

static const struct claim *claim_of(const struct bench *b, enum rung rung, int a)
{
    for (int i = 0; i < b->out.count; i++)
        if (b->out.at[i].rung == rung && b->out.at[i].a == a)
            return &b->out.at[i];
    return NULL;
}

/* The claim of a part in a fabric of these values; p is 1 where there is none. */
static struct claim hunted(value_of *value, enum rung rung, int a)
{
    struct bench b;
    struct claim c = {.p = 1, .tier = -2};

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, value);
    set_up(&b);
    hunt_parts(&b.h);
    if (claim_of(&b, rung, a))
        c = *claim_of(&b, rung, a);
    close_bench(&b);
    return c;
}

/* What a value_of asks for. */
static double depth, other_depth;
static int many;

static bool is_at(int src, int dst, int endpoint)
{
    return src == endpoint || dst == endpoint;
}

/* --- channels without a difference --- */

static double one_look(int src, int dst, int block, int turn)
{
    (void)dst;
    return src == 9 && block == 2 && turn % SHIFTS == 1 ? depth : 0;
}

/* Tests of a channel with one odd look of this depth; *judged: groups were judged, not only counted. */
static long tests_of(double d, bool tail, bool *judged)
{
    struct bench b;
    long tests;

    depth = d;
    noise_of_looks = 0;
    open_bench(&b, HOSTS);
    b.c.tail = tail;
    measure_all(&b, SHIFTS, one_look);
    set_up(&b);
    hunt_parts(&b.h);
    spells_find(&b.h);
    tests = b.out.tests;
    *judged = b.c.like[RUNG_HOST][0].seen > 0;
    assert_int_equal(b.out.count, 0);
    close_bench(&b);
    noise_of_looks = 0.001;
    return tests;
}

/* Counting gives the tests that judging gives, up to half of delta. */
static void alike_looks_are_counted(void **state)
{
    bool judged;

    (void)state;
    for (int tail = 0; tail < 2; tail++) {
        const long tests = tests_of(0, tail, &judged);

        assert_false(judged);
        assert_true(tests > 0);
        for (int up = 0; up < 2; up++) {
            assert_int_equal(tests_of(up ? 0.0095 : -0.0095, tail, &judged), tests);
            assert_false(judged);
            assert_int_equal(tests_of(up ? 0.0105 : -0.0105, tail, &judged), tests);
            assert_true(judged);
        }
    }
}

/* --- what is usual --- */

static double usual(const double *from, int n, double *sigma)
{
    double v[256], m;

    memcpy(v, from, (size_t)n * sizeof(*v));
    usual_find(v, n, &m, sigma);
    return m;
}

/* fast of n values around 0, wide apart in all, the others around -1. */
static double usual_of(int n, int fast, double wide, double slow_wide)
{
    double v[256], sigma;

    for (int i = 0; i < n; i++)
        v[i] = i < fast ? wide * i / (fast - 1) : -1 - slow_wide * (i - fast) / (n - fast - 1);
    return usual(v, n, &sigma);
}

/* Endpoints in disjoint pairs, alone and in eight blocks, the last pair at a half. */
static int named_among_pairs(int pairs)
{
    struct bench b;
    struct noise n;
    int founds;

    open_bench(&b, 4);
    for (int block = 0; block < BLOCKS; block++)
        for (int p = 0; p < 4 * pairs; p++, b.turn++)
            put(&b,
                (struct look){.turn = b.turn,
                              .block = block,
                              .src = 4 * (p % pairs),
                              .dst = 4 * (p % pairs) + 1,
                              .tier = TIER_RAIL,
                              .tail = NAN,
                              .alone = true,
                              .unselected = true},
                20 + (p % pairs == pairs - 1 ? log(0.5) : 0) + 0.001 * rng_normal(&b.rng));
    b.in = (struct noise_input){
        .topo = &b.topo, .look = b.look, .looks = b.looks, .crosses = {[TIER_RAIL] = true}};
    noise_judge(&n, &b.in, NULL);
    founds = n.suspects;
    noise_free(&n);
    close_bench(&b);
    return founds;
}

static void of_two_pairs_neither_is_odd(void **state)
{
    (void)state;
    assert_int_equal(named_among_pairs(1), 0);
    assert_int_equal(named_among_pairs(2), 0);
    assert_true(named_among_pairs(3) > 0);
}

static void few_looks_have_a_median(void **state)
{
    (void)state;
    assert_float_equal(usual_of(11, 5, 0, 1e-4), -1, 0.01);
    assert_float_equal(usual_of(12, 5, 0, 1e-4), 0, 0.01);
}

static void a_fast_heap_holds_three_tenths(void **state)
{
    (void)state;
    assert_float_equal(usual_of(100, 35, 1e-4, 1e-4), 0, 0.01);
    assert_true(usual_of(100, 26, 1e-4, 1e-4) < -0.5);
}

/* 30 of 40 fast values reach over 30 / 39 of their width, 30 of 60 slow ones over 30 / 59. */
static void a_fast_heap_may_be_three_times_as_wide(void **state)
{
    const double slow = 0.1, of_slow = 30 / 59. * slow;

    (void)state;
    assert_true(usual_of(100, 40, 2.6 * of_slow * 39 / 30, slow) > -0.1);
    assert_true(usual_of(100, 40, 3.4 * of_slow * 39 / 30, slow) < -0.5);
}

/* --- parts --- */

static double one_nic(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return is_at(src, dst, 20) ? depth : 0;
}

static void less_than_two_percent_is_nobodys_fault(void **state)
{
    (void)state;
    depth = -0.017;
    assert_float_equal(hunted(one_nic, RUNG_NIC, 20).p, 1, 0);
    depth = -0.025;
    assert_true(hunted(one_nic, RUNG_NIC, 20).p < 0.01);
}

static double one_sender(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return src == 20 ? -0.2 : dst == 20 ? other_depth : 0;
}

static void half_an_effect_is_shown(void **state)
{
    (void)state;
    other_depth = -0.2 * 0.42;
    assert_int_equal(hunted(one_sender, RUNG_NIC, 20).side, SIDE_TX);
    other_depth = -0.2 * 0.58;
    assert_int_equal(hunted(one_sender, RUNG_NIC, 20).side, SIDE_BOTH);
}

/* The first of the NICs from 32 on. */
static double some_nics(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return (src >= 32 && src < 32 + many) || (dst >= 32 && dst < 32 + many) ? -0.2 : 0;
}

static void three_of_four_are_no_host(void **state)
{
    (void)state;
    many = 3;
    assert_float_equal(hunted(some_nics, RUNG_HOST, 8).p, 1, 0);
    many = 4;
    assert_true(hunted(some_nics, RUNG_HOST, 8).p < 0.01);
    many = 13; /* of 16 */
    assert_true(hunted(some_nics, RUNG_RACK, 2).p < 0.01);
}

/* Three of four NICs are slow; a wider part has taken so much of the fourth.  Is the host claimed? */
static bool host_of_three(double done)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, some_nics);
    set_up(&b);
    b.h.done[35] = (float)done;
    hunt_parts(&b.h);
    bool claimed = claim_of(&b, RUNG_HOST, 8);
    close_bench(&b);
    return claimed;
}

/* What is left of a NIC says nothing of its host once half of the host's effect is explained. */
static void a_nic_that_is_explained_says_nothing_of_its_host(void **state)
{
    (void)state;
    many = 3;
    assert_false(host_of_three(-0.09));
    assert_true(host_of_three(-0.11));
}

static double below_a_rack(int src, int dst, int block, int turn)
{
    many = 16;
    return some_nics(src, dst, block, turn) + (is_at(src, dst, 40) ? depth : 0);
}

static void a_nic_below_a_rack_is_slower_by_a_tenth(void **state)
{
    (void)state;
    depth = -0.08;
    assert_float_equal(hunted(below_a_rack, RUNG_NIC, 40).p, 1, 0);
    depth = -0.12;
    assert_true(hunted(below_a_rack, RUNG_NIC, 40).p < 0.01);
}

static double seldom_sends(int src, int dst, int block, int turn)
{
    (void)dst;
    (void)turn;
    return src != 20 ? 0 : block < many ? -0.2 : NAN;
}

static void one_side_is_judged_by_five_blocks(void **state)
{
    (void)state;
    many = 4;
    assert_int_not_equal(hunted(seldom_sends, RUNG_NIC, 20).side, SIDE_TX);
    many = 5;
    assert_int_equal(hunted(seldom_sends, RUNG_NIC, 20).side, SIDE_TX);
}

static double healthy(int src, int dst, int block, int turn)
{
    (void)src;
    (void)dst;
    (void)block;
    (void)turn;
    return 0;
}

/* --- parts that some looks of their own show --- */

/* p of a part of a healthy fabric with looks of its own between two endpoints, in so many blocks. */
static double with_pair(int blocks, int hosts)
{
    struct bench b;
    const struct claim *c;
    double p;

    open_bench(&b, hosts);
    measure_all(&b, SHIFTS, healthy);
    for (int i = 0; i < blocks; i++, b.turn++)
        for (int way = 0; way < 2; way++)
            put(&b,
                (struct look){.turn = b.turn,
                              .block = i,
                              .src = way ? 33 : 1,
                              .dst = way ? 1 : 33,
                              .tier = TIER_RAIL},
                -0.3);
    set_up(&b);
    hunt_parts(&b.h);
    c = claim_of(&b, RUNG_PAIR, 1);
    p = c ? c->p : 1;
    close_bench(&b);
    return p;
}

static void a_pair_is_judged_by_three_blocks(void **state)
{
    (void)state;
    assert_float_equal(with_pair(2, HOSTS), 1, 0);
    assert_true(with_pair(3, HOSTS) < 0.01);
}

static void pairs_of_a_large_machine_are_left_to_stage_2(void **state)
{
    (void)state;
    assert_true(with_pair(8, 64) < 0.01);
    assert_float_equal(with_pair(8, 66), 1, 0);
}

static double without_0(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return is_at(src, dst, 0) ? NAN : 0;
}

/* Is endpoint 0 claimed, if it is slow with so many of its partners in every block? */
static bool is_claimed_with(int partners, int slow)
{
    struct bench b;
    bool is;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, without_0);
    for (int block = 0; block < BLOCKS; block++)
        for (int i = 0; i < partners; i++, b.turn++)
            put(&b,
                (struct look){.turn = b.turn, .block = block, .dst = 4 * i + 4, .tier = TIER_RAIL},
                i < slow ? -0.2 : 0);
    set_up(&b);
    hunt_parts(&b.h);
    is = claim_of(&b, RUNG_NIC, 0) != NULL;
    close_bench(&b);
    return is;
}

static void a_nic_of_few_partners_is_slow_with_nearly_all(void **state)
{
    (void)state;
    assert_false(is_claimed_with(8, 6));
    assert_true(is_claimed_with(8, 7));
    assert_true(is_claimed_with(9, 7));
}

/* Is a slow host with so many looks between its own NICs known to be slow inside? */
static bool is_inside_unknown(int looks)
{
    struct bench b;
    bool is;

    open_bench(&b, HOSTS);
    many = 4;
    measure_all(&b, SHIFTS, some_nics);
    for (int i = 0; i < looks; i++, b.turn++)
        put(&b,
            (struct look){
                .turn = b.turn, .block = i, .src = 32, .dst = 33 + i % 3, .tier = TIER_RAIL},
            -0.2);
    set_up(&b);
    hunt_parts(&b.h);
    assert_non_null(claim_of(&b, RUNG_HOST, 8));
    is = claim_of(&b, RUNG_HOST, 8)->inside_unknown;
    close_bench(&b);
    return is;
}

static void four_looks_tell_what_is_inside(void **state)
{
    (void)state;
    assert_true(is_inside_unknown(3));
    assert_false(is_inside_unknown(4));
}

/* --- pairs to be measured again --- */

static int pairs_suspected(int slow, double *p)
{
    struct bench b;
    int n = 0;

    open_bench(&b, HOSTS);
    measure_all(&b, MANY_SHIFTS, healthy);
    for (int i = 0; i < slow; i++)
        for (int k = 0; k < 2; k++, b.turn++)
            put(&b,
                (struct look){
                    .turn = b.turn, .block = k, .src = 4 * i, .dst = 4 * i + 1, .tier = TIER_RAIL},
                -0.3);
    set_up(&b);
    pairs_suspect(&b.h);
    for (int i = 0; i < b.out.count; i++)
        if (b.out.at[i].rung == RUNG_PAIR) {
            n++;
            *p = b.out.at[i].p;
        }
    close_bench(&b);
    return n;
}

static void eight_pairs_are_measured_again(void **state)
{
    double p;

    (void)state;
    assert_int_equal(pairs_suspected(3, &p), 3);
    assert_int_equal(pairs_suspected(12, &p), 8);
    assert_float_equal(p, 0.01, 1e-9); /* suspected, never sure */
}

/* --- parts that are slow now and then --- */

static double sigma_of_looks;

static struct claim spelled(value_of *value, struct bench *keep)
{
    struct bench b;
    struct claim c = {.p = 1};

    open_bench(&b, HOSTS);
    measure_all(&b, MANY_SHIFTS, value);
    set_up(&b);
    for (int k = 0; k < CLASSES; k++)
        b.v.class[k].sigma = sigma_of_looks > 0 ? sigma_of_looks : 0.005;
    spells_find(&b.h);
    if (claim_of(&b, RUNG_NIC, 20))
        c = *claim_of(&b, RUNG_NIC, 20);
    if (keep)
        *keep = b;
    else
        close_bench(&b);
    return c;
}

static double half_the_time(int src, int dst, int block, int turn)
{
    (void)block;
    return is_at(src, dst, 20) && turn % 2 ? depth : 0;
}

static void a_look_is_slow_from_eight_percent_on(void **state)
{
    (void)state;
    depth = -0.07;
    assert_float_equal(spelled(half_the_time, NULL).p, 1, 0);
    depth = -0.095;
    assert_true(spelled(half_the_time, NULL).p < 0.01);
}

static void a_slow_look_is_four_sigma_off(void **state)
{
    (void)state;
    sigma_of_looks = 0.05;
    depth = -0.17;
    assert_float_equal(spelled(half_the_time, NULL).p, 1, 0);
    depth = -0.24;
    assert_true(spelled(half_the_time, NULL).p < 0.01);
    sigma_of_looks = 0;
}

/* Everybody is at 0.82 in some turns; endpoint 20 is slower in as many others. */
static double among_strays(int src, int dst, int block, int turn)
{
    (void)block;
    if (is_at(src, dst, 20))
        return turn % 7 == 0 ? depth : 0;
    return (src + turn) % 14 == 0 ? -0.2 : 0;
}

static void deep_is_what_strays_seldom_are(void **state)
{
    (void)state;
    depth = -0.25;
    assert_float_equal(spelled(among_strays, NULL).p, 1, 0);
    depth = -0.36;
    assert_true(spelled(among_strays, NULL).p < 0.01);
}

static double many_turns(int src, int dst, int block, int turn)
{
    (void)block;
    return is_at(src, dst, 20) && turn < many ? -0.3 : 0;
}

static void a_tenth_of_the_time_is_now_and_then(void **state)
{
    (void)state;
    many = 8; /* of 96 turns */
    assert_float_equal(spelled(many_turns, NULL).p, 1, 0);
    many = 12;
    assert_true(spelled(many_turns, NULL).p < 0.01);
}

/* NVLink of hosts of four in pairs: host 5 is slow in every second turn, or one GPU of it, or that GPU always and any
 * other look now and then. */
enum slow_part { WHOLE_HOST, ONE_GPU, ONE_GPU_ALWAYS };

/* again: stage 2 asks for the host, and a GPU of each host is suspected. */
static bool host_spelled(enum slow_part what, bool again)
{
    bool selected[ENDPOINTS] = {0}, host;
    struct claim question = {.rung = RUNG_HOST, .a = 5, .b = -1};
    const struct claims asked = {&question, 1, 0};
    struct bench b;

    open_bench(&b, HOSTS);
    b.c = (struct channel){.kind = LOOK_RATE, .tiers = 1u << TIER_NVLINK};
    for (int turn = 0; turn < 4 * BLOCKS; turn++)
        for (int i = 0; i < b.topo.endpoints; i++) {
            int dst = i ^ (1 + turn % 3);
            bool now = turn % 2, stray = what == ONE_GPU_ALWAYS && i / 4 == 5 && turn % 7 == 0,
                 slow = what == WHOLE_HOST ? now && i / 4 == 5
                                           : is_at(i, dst, 20) && (now || what == ONE_GPU_ALWAYS);

            if (dst > i)
                put(&b,
                    (struct look){
                        .turn = turn, .block = turn / 4, .src = i, .dst = dst, .tier = TIER_NVLINK},
                    (slow    ? -0.5
                     : stray ? -0.2
                             : 0) +
                        noise_of_looks * rng_normal(&b.rng));
        }
    set_up(&b);
    for (int i = 0; i < ENDPOINTS; i += 4)
        selected[i] = true;
    question.channel = &b.c;
    b.v.selected = again ? selected : NULL;
    b.h.asked = again ? &asked : NULL;
    spells_find(&b.h);
    host = claim_of(&b, RUNG_HOST, 5) != NULL;
    close_bench(&b);
    return host;
}

static void a_host_is_now_and_then_slow_within(void **state)
{
    (void)state;
    assert_true(host_spelled(WHOLE_HOST, false));
    assert_false(host_spelled(ONE_GPU, false));
    assert_false(host_spelled(ONE_GPU_ALWAYS, false));
    assert_true(host_spelled(WHOLE_HOST, true));
}

/* Four NICs of host 5: all are slow in half of the turns, or one is always and another in some turns. */
static double one_and_some(int src, int dst, int block, int turn)
{
    (void)block;
    return is_at(src, dst, 20) || (is_at(src, dst, 21) && turn % 4 == 0) ? -0.3 : 0;
}

static double all_of_host(int src, int dst, int block, int turn)
{
    (void)block;
    return (src / 4 == 5 || dst / 4 == 5) && turn % 2 ? -0.3 : 0;
}

static void a_nic_that_is_always_slow_makes_no_host_intermittent(void **state)
{
    struct bench b;

    (void)state;
    spelled(all_of_host, &b);
    assert_non_null(claim_of(&b, RUNG_HOST, 5));
    close_bench(&b);
    spelled(one_and_some, &b);
    assert_non_null(claim_of(&b, RUNG_NIC, 20));
    assert_non_null(claim_of(&b, RUNG_NIC, 21));
    assert_null(claim_of(&b, RUNG_HOST, 5));
    close_bench(&b);
}

/* --- no answer --- */

static int dead_nics(int silent)
{
    struct bench b;
    struct claims out = {0};
    int nics = 0;

    open_bench(&b, HOSTS);
    for (int i = 0; i < 20; i++)
        put(&b, (struct look){.dst = 4 + i, .turn = i}, i < silent ? -INFINITY : 0);
    set_up(&b);
    dead_find(&out, &b.in, &b.places);
    for (int i = 0; i < out.count; i++)
        nics += out.at[i].rung == RUNG_NIC;
    free(out.at);
    close_bench(&b);
    return nics;
}

static void who_answers_a_fifth_is_not_dead(void **state)
{
    (void)state;
    assert_int_equal(dead_nics(15), 0);
    assert_int_equal(dead_nics(17), 1);
}

/* --- ends that are fine --- */

static unsigned bits_of(int tier)
{
    return 3u << 2 * tier;
}

/* Is an endpoint fine at both ends of the tier, or its sends alone? */
static bool is_fine(struct bench *b, int endpoint, unsigned bits)
{
    bool is;

    set_up(b);
    memset(b->v.fine[LOOK_RATE], 0, (size_t)b->topo.endpoints * sizeof(unsigned));
    fine_find(&b->v, b->c.tiers);
    is = (b->v.fine[LOOK_RATE][endpoint] & bits) == bits;
    close_bench(b);
    return is;
}

static bool is_fine_with(value_of *value, int shifts)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, shifts, value);
    return is_fine(&b, 20, bits_of(TIER_RAIL));
}

static void a_partner_is_fine_down_to_four_percent(void **state)
{
    (void)state;
    depth = -0.034;
    assert_true(is_fine_with(one_nic, SHIFTS));
    depth = -0.05;
    assert_false(is_fine_with(one_nic, SHIFTS));
}

/* Endpoints differ by 2 %. */
static double unlike(int src, int dst, int block, int turn)
{
    static double off[ENDPOINTS];
    struct rng r;

    (void)block;
    (void)turn;
    rng_seed(&r, seed);
    for (int i = 0; !off[0] || (i && i < ENDPOINTS); i++)
        off[i] = 0.02 * rng_normal(&r);
    off[20] = depth;
    return off[src] + off[dst];
}

static void a_partner_is_fine_within_four_sigma(void **state)
{
    (void)state;
    depth = -0.075;
    assert_true(is_fine_with(unlike, SHIFTS));
    depth = -0.115;
    assert_false(is_fine_with(unlike, SHIFTS));
}

static double to_some(int src, int dst, int block, int turn)
{
    (void)block;
    return is_at(src, dst, 20) && turn % 20 < many ? -0.2 : 0;
}

static void who_is_slow_to_half_of_its_partners_is_fine(void **state)
{
    (void)state;
    many = 11;
    assert_true(is_fine_with(to_some, MANY_SHIFTS));
    many = 13;
    assert_false(is_fine_with(to_some, MANY_SHIFTS));
}

/* Is endpoint 20, of all healthy otherwise, fine to send over the fabric, if so many such looks are slow? */
static bool sends_fine(int slow)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    for (int i = 0; i < ENDPOINTS; i++)
        for (int k = 0; k < (i == 20 ? slow : 4); k++, b.turn++)
            put(&b,
                (struct look){
                    .turn = b.turn, .src = i, .dst = (i + 9 + k) % ENDPOINTS, .tier = TIER_FABRIC},
                i == 20 ? -0.2 : 0);
    return is_fine(&b, 20, 1u << 2 * TIER_FABRIC);
}

static void three_looks_have_a_median(void **state)
{
    (void)state;
    assert_true(sends_fine(2));
    assert_false(sends_fine(3));
}

/* --- turns and classes --- */

/* Residuals of a stage 1, whose values the test has put: of the last look. */
static float last_of_view(struct bench *b, struct class_fit *fit)
{
    struct view v;
    float r;

    set_up(b);
    v = (struct view){.in = &b->in, .places = &b->places, .nic = &b->nic};
    view_make(&v);
    r = v.r[b->looks - 1];
    if (fit)
        *fit = v.class[class_of(&b->look[0])];
    view_free(&v);
    close_bench(b);
    return r;
}

static float in_a_slow_turn(int looks)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    for (int i = 0; i < looks; i++)
        put(&b, (struct look){.turn = b.turn, .src = i, .dst = 40 + i, .tier = TIER_RAIL}, -0.5);
    return last_of_view(&b, NULL);
}

static void eight_looks_tell_what_a_turn_does(void **state)
{
    (void)state;
    assert_float_equal(in_a_slow_turn(7), -0.5, 0.01);
    assert_float_equal(in_a_slow_turn(8), 0, 0.01);
}

/* Pairs get beside others what they get alone. */
static float in_a_slow_calm_turn(double r)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    for (int i = 0; i < 12; i++, b.turn++)
        put(&b,
            (struct look){
                .turn = b.turn, .src = i, .dst = 40 + i, .tier = TIER_RAIL, .alone = true},
            0.01 * (i % 2));
    for (int i = 0; i < 8; i++)
        put(&b, (struct look){.turn = b.turn, .src = i, .dst = 40 + i, .tier = TIER_RAIL}, r);
    return last_of_view(&b, NULL);
}

static void a_turn_costs_all_of_its_pairs_15_percent_at_most(void **state)
{
    (void)state;
    assert_float_equal(in_a_slow_calm_turn(-0.14), 0, 0.02);
    assert_float_equal(in_a_slow_calm_turn(-0.3), -0.15, 0.02);
}

/* The first NIC of each of seven hosts. */
static double seven_nics(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return (src % 4 == 0 && src < 28) || (dst % 4 == 0 && dst < 28) ? -0.3 : 0;
}

/* Seven of twelve looks are slow parts', one is as fast as none is, four are healthy. */
static void the_fast_quarter_tells_what_a_turn_does(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, seven_nics);
    for (int i = 0; i < 12; i++)
        put(&b,
            (struct look){
                .turn = b.turn, .src = i < 7 ? 4 * i : 29 + i, .dst = 45 + i, .tier = TIER_RAIL},
            i < 7    ? -0.3
            : i == 7 ? 0.3
                     : 0);
    assert_float_equal(last_of_view(&b, NULL), 0, 0.05);
}

static bool is_left_out(double beside)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    for (int i = b.looks - 1; i >= 0; i--) {
        struct look k = b.look[i];

        k.alone = true;
        k.turn += b.turn;
        put(&b, k, -log(beside));
    }
    put(&b, (struct look){.turn = 2 * b.turn, .dst = 9, .tier = TIER_RAIL}, 0);
    put(&b, (struct look){.turn = 2 * b.turn + 1, .dst = 9, .tier = TIER_RAIL, .alone = true},
        -log(beside));
    put(&b, (struct look){.turn = 2 * b.turn + 2, .dst = 9, .tier = TIER_RAIL}, 0);
    put(&b, (struct look){.turn = 2 * b.turn + 1, .dst = 9, .tier = TIER_RAIL, .alone = true},
        -log(beside));
    put(&b, (struct look){.turn = 2 * b.turn + 3, .dst = 9, .tier = TIER_RAIL, .alone = true},
        -log(beside));
    put(&b, (struct look){.turn = 2 * b.turn + 4, .dst = 9, .tier = TIER_RAIL}, 0);
    return isnan(last_of_view(&b, NULL));
}

static void a_crowd_that_costs_a_sixth_is_left_out(void **state)
{
    (void)state;
    assert_true(is_left_out(0.8));
    assert_false(is_left_out(0.9));
}

static double share_hashed, hashed_to;

static double by_hash(int src, int dst, int block, int turn)
{
    struct rng r;

    rng_seed(&r, (unsigned long long)(((turn * 64 + src) * 64 + dst) * BLOCKS + block));
    return rng_uniform(&r) < share_hashed ? log(hashed_to) : 0;
}

/* All flows out of a leaf get a half in such a share of turns. */
static double by_leaf(int src, int dst, int block, int turn)
{
    return by_hash(src % 4, 0, block, turn) + 0 * dst;
}

/* So many looks beside others get such a part of what pairs alone get.  usual: NULL, or what is usual beside others. */
static bool is_hashed(value_of *value, double share, double to, double *usual)
{
    const int class = class_of(&(struct look){.kind = LOOK_RATE, .tier = TIER_RAIL});
    struct bench b;
    struct view v;
    bool hashed;

    share_hashed = share;
    hashed_to = to;
    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, value);
    for (int i = 0; i < 20; i++)
        put(&b,
            (struct look){
                .turn = b.turn++, .src = i, .dst = i + 8, .tier = TIER_RAIL, .alone = true},
            0);
    set_up(&b);
    v = (struct view){.in = &b.in, .places = &b.places, .nic = &b.nic};
    view_make(&v);
    hashed = v.hashed[class / 2];
    if (usual)
        *usual = v.class[class].m;
    view_free(&v);
    close_bench(&b);
    return hashed;
}

static void a_fifth_of_looks_that_get_a_half_are_hashed(void **state)
{
    (void)state;
    assert_true(is_hashed(by_hash, 0.23, 0.5, NULL));
    assert_false(is_hashed(by_hash, 0.17, 0.5, NULL));
    assert_true(is_hashed(by_hash, 0.3, 0.67, NULL));
    assert_false(is_hashed(by_hash, 0.3, 0.75, NULL));
}

static void flows_that_are_slow_together_share_uplinks_and_are_not_hashed(void **state)
{
    (void)state;
    assert_true(is_hashed(by_hash, 0.5, 0.5, NULL));
    assert_false(is_hashed(by_leaf, 0.5, 0.5, NULL));
}

static void what_does_not_collide_is_usual(void **state)
{
    double usual;

    (void)state;
    assert_true(is_hashed(by_hash, 0.72, 0.5, &usual));
    assert_float_equal(usual, 0, 0.02);
}

/* A leaf whose looks beside others are noise, and whose looks alone are at this. */
static int claimed_alone(double alone, bool hashed)
{
    struct bench b;
    int claims = 0;

    open_bench(&b, HOSTS);
    share_hashed = 0.3;
    hashed_to = 0.5;
    for (int block = 0; block < BLOCKS; block++)
        for (int k = 0; k < 4 * ENDPOINTS; k++) {
            int src = k / 4, dst = (src + 4 * (1 + block) + 1 + block % 3) % ENDPOINTS,
                one = src % 4 == 1 || dst % 4 == 1;

            put(&b,
                (struct look){.turn = b.turn,
                              .block = block,
                              .src = src,
                              .dst = dst,
                              .tier = TIER_FABRIC,
                              .alone = k % 4 == 3},
                (k % 4 == 3 ? (one ? alone : 0) : by_hash(src, dst, block, k % 4)) +
                    noise_of_looks * rng_normal(&b.rng));
            b.turn += k % 4 > 1;
        }
    set_up(&b);
    b.v.hashed[class_of(&(struct look){.kind = LOOK_RATE, .tier = TIER_FABRIC}) / 2] = hashed;
    hunt_parts(&b.h);
    for (int i = 0; i < b.out.count; i++)
        claims += b.out.at[i].rung == RUNG_LEAF && b.out.at[i].a == 1;
    close_bench(&b);
    return claims;
}

static void groups_are_judged_by_pairs_alone_where_flows_are_hashed(void **state)
{
    (void)state;
    assert_int_equal(claimed_alone(-0.3, true), 1);
    assert_int_equal(claimed_alone(-0.3, false), 0);
    assert_int_equal(claimed_alone(0, true), 0);
}

static int clear_of_20;

/* NIC 20 is slow in all but so many of its 20 looks of a block. */
static double mostly_slow(int src, int dst, int block, int turn)
{
    int at = 2 * (turn % 10) + (dst == 20);

    (void)block;
    return is_at(src, dst, 20) && at >= clear_of_20 ? -0.5 : 0;
}

static void set_hashed(struct bench *b, int tier)
{
    b->v.hashed[class_of(&(struct look){.kind = LOOK_RATE, .tier = tier}) / 2] = true;
}

/* The chance of NIC 20 where flows of all tiers are hashed. */
static double hunted_among_hashed(value_of *value, int shifts)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, shifts, value);
    set_up(&b);
    set_hashed(&b, TIER_RAIL);
    hunt_parts(&b.h);
    const struct claim *c = claim_of(&b, RUNG_NIC, 20);
    double p = c ? c->p : 1;
    close_bench(&b);
    return p;
}

static void a_tenth_of_looks_beside_others_shows_a_nic_where_flows_are_hashed(void **state)
{
    (void)state;
    clear_of_20 = 1;
    assert_true(hunted_among_hashed(mostly_slow, 10) < 0.01);
    clear_of_20 = 4;
    assert_float_equal(hunted_among_hashed(mostly_slow, 10), 1, 0);
}

/* 40 % of looks collide, and all of NIC 20. */
static double twenty_collides(int src, int dst, int block, int turn)
{
    share_hashed = 0.4;
    hashed_to = 0.5;
    return is_at(src, dst, 20) ? log(0.5) : by_hash(src, dst, block, turn);
}

/* NIC 20 has one of so many of its 48 looks.  Is it still claimed as slow at all times? */
static bool is_claimed_of(int every)
{
    struct bench b;
    bool claimed = false;
    int kept = 0, own = 0;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, twenty_collides);
    for (int i = 0; i < b.looks; i++)
        if (!is_at(b.look[i].src, b.look[i].dst, 20) || own++ % every == 0) {
            b.look[kept] = b.look[i];
            b.r[kept++] = b.r[i];
        }
    b.looks = kept;
    set_up(&b);
    set_hashed(&b, TIER_RAIL);
    MEM_PUSH(b.out.at, b.out.count) = (struct claim){
        .rung = RUNG_NIC, .a = 20, .b = -1, .channel = &b.c, .e = log(0.5), .p = 1e-4, .tier = -1};
    spells_find(&b.h);
    for (int i = 0; i < b.out.count; i++)
        claimed |= b.out.at[i].a == 20 && b.out.at[i].rung == RUNG_NIC && !b.out.at[i].now_and_then;
    close_bench(&b);
    return claimed;
}

static void a_nic_is_doubted_that_collides_as_often_as_its_like(void **state)
{
    (void)state;
    assert_true(is_claimed_of(1));
    assert_false(is_claimed_of(10));
}

/* Rails are not hashed: there NIC 20 is slow in two turns of five, where its like are never. */
static double in_two_of_five(int src, int dst, int block, int turn)
{
    share_hashed = 0.7;
    hashed_to = 0.5;
    if (src % 4 != dst % 4)
        return by_hash(src, dst, block, turn);
    return is_at(src, dst, 20) && turn / 4 % 5 < 2 ? log(0.5) : 0;
}

static double spelled_among_hashed(bool hashed)
{
    struct bench b;

    open_bench(&b, HOSTS);
    measure_all(&b, MANY_SHIFTS, in_two_of_five);
    for (int i = 0; i < b.looks; i++)
        b.look[i].tier = b.look[i].src % 4 == b.look[i].dst % 4 ? TIER_RAIL : TIER_FABRIC;
    set_up(&b);
    if (hashed)
        set_hashed(&b, TIER_FABRIC);
    spells_find(&b.h);
    const struct claim *c = claim_of(&b, RUNG_NIC, 20);
    double p = c ? c->p : 1;
    close_bench(&b);
    return p;
}

static void pairs_alone_show_what_is_slow_now_and_then_where_flows_are_hashed(void **state)
{
    (void)state;
    assert_true(spelled_among_hashed(true) < 1e-3);
    assert_true(spelled_among_hashed(false) > 10 * spelled_among_hashed(true));
}

/* NICs send in one turn and receive in the next; 60 % of looks collide, and all that NIC 20 sends.  The chance of NIC 20. */
static double sends_among_hashed(int turns)
{
    struct bench b;

    share_hashed = 0.6;
    hashed_to = 0.5;
    open_bench(&b, HOSTS);
    for (b.turn = 0; b.turn < turns; b.turn++)
        for (int i = 0; i < ENDPOINTS / 2; i++) {
            int other = ENDPOINTS / 2 + (i + 5 * b.turn / 2) % (ENDPOINTS / 2),
                src = b.turn % 2 ? other : i, dst = b.turn % 2 ? i : other;

            put(&b,
                (struct look){.turn = b.turn,
                              .block = b.turn * BLOCKS / turns,
                              .src = src,
                              .dst = dst,
                              .tier = TIER_FABRIC},
                src == 20 ? log(0.5) : by_hash(src, dst, 0, b.turn));
        }
    set_up(&b);
    set_hashed(&b, TIER_FABRIC);
    spells_find(&b.h);
    const struct claim *c = claim_of(&b, RUNG_NIC, 20);
    double p = c ? c->p : 1;
    close_bench(&b);
    return p;
}

static void one_way_is_sought_by_itself_where_flows_are_hashed(void **state)
{
    (void)state;
    assert_true(sends_among_hashed(36) < 0.02);
    assert_float_equal(sends_among_hashed(12), 1, 0);
}

/* A NIC of this rack is slow in this share of its looks, as two racks are to each other.  Is the NIC kept? */
static bool is_kept_beside_racks(int endpoint, double share)
{
    struct bench b;
    struct claim two[] = {{.rung = RUNG_RACK_PAIR, .a = 0, .b = 1, .channel = &b.c, .e = -0.5},
                          {.rung = RUNG_NIC,
                           .a = endpoint,
                           .b = -1,
                           .channel = &b.c,
                           .e = -0.5,
                           .share = share,
                           .now_and_then = true}};
    struct claims c = {two, 2, 0};

    open_bench(&b, HOSTS);
    claims_below(&c, &b.places);
    places_free(&b.places);
    free(b.topo.endpoint);
    return c.count == 2;
}

static void two_racks_explain_what_their_nics_show_seldom(void **state)
{
    (void)state;
    assert_false(is_kept_beside_racks(17, 0.45));
    assert_true(is_kept_beside_racks(17, 0.55));
    assert_true(is_kept_beside_racks(40, 0.45)); /* of another rack */
}

/* Rails are clean; each pair of two leaves has two looks at once, of which six of ten are slow.  Suspected pairs. */
static int pairs_among_hashed(bool hashed)
{
    struct bench b;
    int pairs = 0;

    share_hashed = 0.6;
    hashed_to = 0.5;
    open_bench(&b, HOSTS);
    measure_all(&b, MANY_SHIFTS, healthy);
    for (int i = 0; i < b.looks; i++)
        b.look[i].tier = TIER_RAIL;
    for (int i = 0; i < 4 * ENDPOINTS; i++)
        put(&b,
            (struct look){.turn = b.turn + i,
                          .src = i / 4,
                          .dst = (i / 4 + 5 + i / 2 % 2) % ENDPOINTS,
                          .tier = TIER_FABRIC},
            by_hash(i, 0, 0, 0));
    set_up(&b);
    if (hashed)
        set_hashed(&b, TIER_FABRIC);
    gather_renew(&b.h, RUNG_NIC, false);
    pairs_suspect(&b.h);
    for (int i = 0; i < b.out.count; i++)
        pairs += b.out.at[i].rung == RUNG_PAIR;
    close_bench(&b);
    return pairs;
}

static void a_pair_is_not_suspected_for_a_collision(void **state)
{
    (void)state;
    assert_true(pairs_among_hashed(false) > 0);
    assert_int_equal(pairs_among_hashed(true), 0);
}

/* Looks of NIC 20 that stage 2 sees, one of four of them alone. */
static int looks_of_20(bool hashed, enum beside beside)
{
    struct bench b;
    int n;

    open_bench(&b, HOSTS);
    for (int i = 0; i < 40; i++)
        put(&b,
            (struct look){.turn = i,
                          .block = i / 8,
                          .src = 20,
                          .dst = 24 + i,
                          .tier = TIER_RAIL,
                          .alone = i % 4 == 0,
                          .fresh = true},
            0);
    set_up(&b);
    if (hashed)
        set_hashed(&b, TIER_RAIL);
    b.h.beside = beside;
    gather_renew(&b.h, RUNG_NIC, false);
    n = b.nic.start[21] - b.nic.start[20];
    close_bench(&b);
    return n;
}

static void stage_2_leaves_out_looks_that_may_collide(void **state)
{
    (void)state;
    assert_int_equal(looks_of_20(false, BESIDE_ANY), 40);
    assert_int_equal(looks_of_20(true, BESIDE_ANY), 10);
    assert_int_equal(looks_of_20(true, BESIDE_PARALLEL), 30);
}

/* Stage 2 sees three pairs again at 0.7, and another look that is as usual: what is left of that one.  other: another NIC of
 * the pairs is slow in stage 1 as well. */
static float beside_slow_pairs(bool other)
{
    struct bench one, two;
    bool selected[ENDPOINTS] = {0};
    struct view first, v;

    many = other ? 3 : 0;
    open_bench(&one, HOSTS);
    measure_all(&one, SHIFTS, some_nics);
    set_up(&one);
    first = (struct view){.in = &one.in, .places = &one.places, .nic = &one.nic};
    view_make(&first);
    open_bench(&two, HOSTS);
    for (int i = 0; i < 4; i++)
        put(&two,
            (struct look){.turn = i,
                          .src = i < 3 ? 32 + i : 1,
                          .dst = 48 + i,
                          .tier = TIER_RAIL,
                          .fresh = true,
                          .alone = true,
                          .same_pair = i < 3},
            i < 3 ? log(0.7) : 0);
    set_up(&two);
    v = (struct view){.in = &two.in,
                      .places = &two.places,
                      .base = &first,
                      .selected = selected,
                      .fresh = true,
                      .nic = &two.nic};
    view_make(&v);
    float left = v.r[3];
    view_free(&v);
    close_bench(&two);
    view_free(&first);
    close_bench(&one);
    return left;
}

static void pairs_of_a_slow_nic_show_no_drift(void **state)
{
    (void)state;
    assert_float_equal(beside_slow_pairs(false), 0.15, 0.02); /* turn_most */
    assert_float_equal(beside_slow_pairs(true), 0, 0.02);
}

/* What is usual alone where 26 of 40 looks alone are at 0.7, and the others at this or a bit less. */
static double usual_alone(double others)
{
    const int class = class_of(&(struct look){.kind = LOOK_RATE, .tier = TIER_RAIL, .alone = true});
    struct bench b;
    struct view v;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    for (int i = 0; i < 40; i++)
        put(&b,
            (struct look){
                .turn = b.turn++, .src = i, .dst = i + 8, .tier = TIER_RAIL, .alone = true},
            i < 26 ? log(0.7) + 1e-4 * i : others - 0.005 * (i - 26));
    set_up(&b);
    v = (struct view){.in = &b.in, .places = &b.places, .nic = &b.nic};
    view_make(&v);
    double m = v.class[class].m;
    view_free(&v);
    close_bench(&b);
    return m;
}

static void the_fast_looks_alone_are_usual_if_a_slow_leaf_is_in_most(void **state)
{
    (void)state;
    assert_float_equal(usual_alone(0), 0, 0.02);
    assert_float_equal(usual_alone(log(0.7)), log(0.7), 0.02); /* alone all are slower */
}

/* 0.1 % of noise: a look weighs as with 1 %. */
static void no_class_rules_alone(void **state)
{
    struct bench b;
    struct class_fit f;

    (void)state;
    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    last_of_view(&b, &f);
    assert_float_equal(f.weight, 1e4, 500);
}

/* --- one part by its blocks --- */

static void steady_in(struct bench *b, struct steady *s, enum rung rung)
{
    const struct lens lens = {SIDE_BOTH, -1, LENS_OUT, false};

    gather_refresh(&b->h);
    steady_make(s, &b->h, rung, NULL, &lens, 1);
}

static void steady_of(struct bench *b, struct steady *s, enum rung rung)
{
    set_up(b);
    steady_in(b, s, rung);
}

static void close_steady(struct bench *b, struct steady *s)
{
    steady_free(s, 1);
    close_bench(b);
}

static double by_block(int src, int dst, int block, int turn)
{
    (void)turn;
    return !is_at(src, dst, 20) ? 0 : block == 7 ? -0.13 : block > 4 ? -0.165 : -0.2;
}

static void a_stray_has_three_quarters_of_the_depth(void **state)
{
    struct bench b;
    struct steady s;

    (void)state;
    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, by_block);
    steady_of(&b, &s, RUNG_NIC);
    assert_int_equal(s.deep[20], 7);
    close_steady(&b, &s);
}

static void a_block_has_a_fifth_of_the_looks_of_the_best(void **state)
{
    static const int looks[] = {20, 5, 3};
    struct bench b;
    struct steady s;

    (void)state;
    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, without_0);
    for (int block = 0; block < 3; block++)
        for (int i = 0; i < looks[block]; i++, b.turn++)
            put(&b, (struct look){.turn = b.turn, .block = block, .dst = 5 + i, .tier = TIER_RAIL},
                0);
    steady_of(&b, &s, RUNG_NIC);
    assert_int_equal(s.got[0], 2);
    close_steady(&b, &s);
}

/* Endpoints beyond the first so many are not measured. */
static double first_few(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return src >= many || dst >= many ? NAN : 0;
}

static double prior_weight(int parts)
{
    struct bench b;
    struct steady s;
    double d0;

    open_bench(&b, HOSTS);
    many = parts;
    measure_all(&b, MANY_SHIFTS, first_few);
    for (int block = 0; block < BLOCKS; block++)
        for (int i = 0; i < parts; i++, b.turn++)
            put(&b,
                (struct look){.turn = b.turn,
                              .block = block,
                              .src = i,
                              .dst = (i + 1) % parts,
                              .tier = TIER_RAIL},
                0.01 * (block & 1));
    steady_of(&b, &s, RUNG_NIC);
    d0 = s.like.d0;
    close_steady(&b, &s);
    return d0;
}

static void eight_parts_tell_how_blocks_vary(void **state)
{
    (void)state;
    assert_float_equal(prior_weight(7), 4, 1e-9);
    assert_float_equal(prior_weight(8), 40, 1e-9);
}

/* p of a part that is far below all others in two blocks: both are stray. */
static double two_blocks_alone(int src, int dst, int block, int turn)
{
    (void)turn;
    return (src / 4 == 5 || dst / 4 == 5) ? block < 2 ? -2 : NAN : 0;
}

static void strays_are_assumed_where_none_was_seen(void **state)
{
    static const struct {
        enum rung rung;
        double least;
    } of[] = {{RUNG_NIC, 0.5}, {RUNG_HOST, 0.1}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench b;
        struct steady s;

        open_bench(&b, HOSTS);
        measure_all(&b, SHIFTS, two_blocks_alone);
        set_up(&b);
        memset(b.v.fine[LOOK_RATE] + 20, 0, 4 * sizeof(unsigned)); /* not their partners' fault */
        steady_in(&b, &s, of[i].rung);
        assert_int_equal(s.like.backs, 0);
        assert_float_equal(s.p[i ? 5 : 20] /
                               dist_binomial_upper(2, 2, of[i].least / (double)(s.like.seen + 1)),
                           1, 0.05);
        close_steady(&b, &s);
    }
}

/* NIC 20 is slow in two of its three blocks; of the others, seen in one block, one in five is slow there. */
static double once_or_thrice(int src, int dst, int block, int turn)
{
    (void)turn;
    if (is_at(src, dst, 20))
        return block < 3 ? block < 2 ? -0.3 : 0 : NAN;
    return block == src % BLOCKS ? src % 10 == 4 ? -0.3 : 0 : NAN;
}

static void the_only_block_of_a_part_tells_of_strays(void **state)
{
    struct bench b;
    struct steady s;

    (void)state;
    open_bench(&b, HOSTS);
    for (int block = 0; block < BLOCKS; block++)
        for (int i = 0; i < b.topo.endpoints; i += 2, b.turn++)
            put(&b,
                (struct look){
                    .turn = b.turn, .block = block, .src = i, .dst = i + 1, .tier = TIER_RAIL},
                once_or_thrice(i, i + 1, block, b.turn));
    set_up(&b);
    steady_in(&b, &s, RUNG_NIC);
    assert_int_equal(s.got[20], 3);
    assert_true(s.like.backs >= 6);
    assert_true(s.p[20] > 0.01);
    close_steady(&b, &s);
}

/* What stage 2 takes for the strays of a group: those of its controls, if they have enough blocks. */
static double strays_of_stage_2(long controls)
{
    struct bench b;
    struct steady s;
    struct claims none = {0};
    const struct lens lens = {SIDE_BOTH, -1, LENS_OUT, false};
    double least;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    set_up(&b);
    b.h.asked = &none;
    b.c.like[RUNG_HOST][0] = b.c.like[RUNG_NIC][0] =
        (struct likeness){.s0 = 1e-5, .d0 = 10, .blocks = 8, .seen = 100, .least = 7};
    b.c.control[0] = (struct likeness){.seen = controls, .least = 9};
    gather_refresh(&b.h);
    steady_make(&s, &b.h, RUNG_HOST, NULL, &lens, 1);
    least = s.like.least;
    close_steady(&b, &s);
    return least;
}

static void forty_blocks_of_controls_tell_their_strays(void **state)
{
    (void)state;
    assert_float_equal(strays_of_stage_2(39), 7, 0);
    assert_float_equal(strays_of_stage_2(40), 9, 0);
}

/* --- names --- */

/* Looks between two leaves: of endpoint 20, or (many at once) out of leaf 0. */
static void put_share(struct bench *b, double share, bool alone)
{
    for (int i = 0; i < 40; i++, b->turn++)
        put(b,
            (struct look){
                .turn = b->turn, .src = 20, .dst = 25 + i % 30, .tier = TIER_RAIL, .alone = alone},
            floor((i + 1) * share) > floor(i * share) ? -0.5 : 0);
}

static enum part_state named(struct bench *b, const struct claim *c, int claims)
{
    struct claims all = {0};
    struct view v[2];
    struct naming n = {&b->in, &b->places, v, NULL};
    struct found *f;
    enum part_state state;
    int founds;

    set_up(b);
    v[0] = v[1] = b->v;
    for (int i = 0; i < claims; i++)
        MEM_PUSH(all.at, all.count) = c[i];
    f = naming_make(&n, &all, &founds);
    assert_int_equal(founds, 1);
    state = f->state;
    free(f);
    free(all.at);
    close_bench(b);
    return state;
}

/* State of a NIC that is slow in such shares of its looks; alone: NAN: none. */
static enum part_state state_of(double beside, double alone)
{
    struct bench b;
    struct claim c = {
        .rung = RUNG_NIC, .a = 20, .b = -1, .tier = -1, .e = -0.5, .p = 1e-6, .share = 1};

    open_bench(&b, HOSTS);
    c.channel = &b.c;
    put_share(&b, beside, false);
    if (!isnan(alone))
        put_share(&b, alone, true);
    return named(&b, &c, 1);
}

static void slow_at_all_times_is_nearly_always(void **state)
{
    (void)state;
    assert_int_equal(state_of(0.8, NAN), STATE_INTERMITTENT);
    assert_int_equal(state_of(0.9, NAN), STATE_SLOW);
}

static void under_load_is_loud_beside_others_and_quiet_alone(void **state)
{
    (void)state;
    assert_int_equal(state_of(1, 0.175), STATE_LOADED);
    assert_int_equal(state_of(1, 0.25), STATE_INTERMITTENT);
    assert_int_equal(state_of(0.75, 0), STATE_INTERMITTENT);
    assert_int_equal(state_of(0.875, 0), STATE_LOADED);
}

static enum part_state state_of_samples(double share)
{
    struct bench b;
    struct channel tail;
    struct claim c[2];

    open_bench(&b, HOSTS);
    put_share(&b, share, false);
    tail = b.c;
    tail.tail = true;
    c[0] = (struct claim){.rung = RUNG_NIC,
                          .a = 20,
                          .b = -1,
                          .tier = -1,
                          .e = -0.5,
                          .p = 1e-6,
                          .share = share,
                          .now_and_then = true,
                          .channel = &b.c};
    c[1] = c[0];
    c[1].now_and_then = false;
    c[1].channel = &tail;
    return named(&b, c, 2);
}

static void slow_samples_explain_what_is_seldom_slow(void **state)
{
    (void)state;
    assert_int_equal(state_of_samples(0.2), STATE_SAMPLES);
    assert_int_equal(state_of_samples(0.3), STATE_INTERMITTENT);
}

/* A view of one stage: looks of the other are not in it. */
static void stage_view(struct view to[2], const struct bench *b, bool fresh)
{
    to[0] = b->v;
    to[0].fresh = fresh;
    to[0].r = mem_dup(b->v.r, (size_t)b->looks, sizeof(float));
    for (int i = 0; i < b->looks; i++)
        if (b->look[i].fresh != fresh)
            to[0].r[i] = NAN;
    to[1] = to[0];
}

/* Is a NIC named that stage 1 saw slow in all of its looks, and stage 2 in such a share of them? */
static bool named_after(double share, bool tail, bool now_and_then)
{
    struct bench b;
    struct channel c;
    struct claim claim = {.rung = RUNG_NIC,
                          .a = 20,
                          .b = -1,
                          .tier = -1,
                          .e = -0.5,
                          .p = 1e-6,
                          .share = 1,
                          .now_and_then = now_and_then,
                          .channel = &c};
    struct claims all = {&claim, 1, 1};
    struct view first[2], second[2];
    struct naming n = {&b.in, &b.places, first, second};
    int founds;

    open_bench(&b, HOSTS);
    put_share(&b, 1, false);
    put_share(&b, share, false);
    for (int i = b.looks / 2; i < b.looks; i++)
        b.look[i].fresh = true;
    set_up(&b);
    c = b.c;
    c.tail = tail;
    stage_view(first, &b, false);
    stage_view(second, &b, true);
    free(naming_make(&n, &all, &founds));
    free(first[0].r);
    free(second[0].r);
    close_bench(&b);
    return founds;
}

/* Is a NIC named that answers `late` s later, where so many looks take 5, 6 and 7 s each? */
static bool named_late(int looks, double late)
{
    struct bench b;
    struct claim claim = {.rung = RUNG_NIC,
                          .a = 20,
                          .b = -1,
                          .tier = -1,
                          .e = log(5 / (5 + late)),
                          .p = 1e-6,
                          .share = 1};
    struct claims all = {&claim, 1, 1};
    struct view v[2];
    struct naming n = {&b.in, &b.places, v, NULL};
    int founds;

    open_bench(&b, HOSTS);
    for (int i = 0; i < 3 * looks; i++, b.turn++)
        put(&b,
            (struct look){.turn = b.turn,
                          .src = 20,
                          .dst = 25 + i % 30,
                          .tier = TIER_RAIL,
                          .kind = LOOK_LATENCY},
            -log(5 + i % 3));
    set_up(&b);
    b.c.kind = LOOK_LATENCY;
    claim.channel = &b.c;
    for (int k = 0; k < CLASSES; k++)
        b.v.class[k].m = -log(5);
    v[0] = v[1] = b.v;
    free(naming_make(&n, &all, &founds));
    close_bench(&b);
    return founds;
}

static void a_step_of_the_clock_is_no_latency(void **state)
{
    (void)state;
    assert_false(named_late(4, 2.1));
    assert_true(named_late(4, 2.3));
    assert_true(named_late(3, 1)); /* too few to repeat */
}

static void stage_2_shows_half_of_what_stage_1_saw(void **state)
{
    (void)state;
    assert_false(named_after(0.45, true, false)); /* messages, one by one */
    assert_true(named_after(0.55, true, false));
    assert_false(named_after(0.45, false, false)); /* blocks are slow, looks are not */
    assert_true(named_after(0.55, false, false));
    assert_true(named_after(0.45, false, true)); /* a share of looks that was judged */
}

/* --- uplinks --- */

enum { LEAF_NICS = HOSTS, MANY_ALONE = 6 };

/* A turn: n NICs of leaf 1 send with this residual, and n of leaf 0, all to both other leaves; the next turn back. */
static void send_up(struct bench *b, int block, int n, double r)
{
    for (int i = 0; i < 2 * n; i++) {
        int leaf = i % 2, nic = i / 2, a = 4 * nic + leaf,
            c = 4 * ((nic + 1) % LEAF_NICS) + 2 + (nic + leaf) % 2;

        put(b,
            (struct look){.turn = b->turn,
                          .block = block,
                          .src = b->turn % 2 ? c : a,
                          .dst = b->turn % 2 ? a : c,
                          .tier = TIER_FABRIC},
            (leaf ? r : 0) + noise_of_looks * rng_normal(&b->rng));
    }
    b->turn++;
}

static void send_alone(struct bench *b, int looks, double r)
{
    for (int i = 0; i < looks; i++)
        put(b,
            (struct look){.turn = b->turn++,
                          .block = i % BLOCKS,
                          .src = 4 * i + 1,
                          .dst = 4 * i + 2,
                          .tier = TIER_FABRIC,
                          .alone = true},
            r);
}

/* The share of the uplinks of leaf 1 that is left; 1: nothing is said, -1: of another. */
static double left_of(struct bench *b, bool *full)
{
    struct found *f;
    double left = 1;
    int n;

    set_up(b);
    f = uplinks_find(&b->v, full, &n);
    for (int i = 0; i < n; i++)
        left = f[i].part == PART_LEAF && f[i].a == 1 && f[i].tier == TIER_FABRIC &&
                       f[i].state == STATE_LOST_UPLINKS
                   ? exp(f[i].effect)
                   : -1;
    free(f);
    close_bench(b);
    return left;
}

/* The busiest turn once; in each block a turn of so many flows, slow, and fine ones of so many. */
static double left_by(int slow, double r, int fine)
{
    bool full[16 * ENDPOINTS * BLOCKS] = {false};
    struct bench b;

    open_bench(&b, HOSTS);
    send_up(&b, 0, LEAF_NICS, r);
    for (int block = 0; block < BLOCKS; block++) {
        send_up(&b, block, slow, r);
        for (int i = 0; i < 2 && fine; i++)
            send_up(&b, block, fine, 0);
    }
    send_alone(&b, MANY_ALONE, 0);
    return left_of(&b, full);
}

static void half_of_the_busiest_turn_is_many_flows(void **state)
{
    (void)state;
    assert_true(fabs(left_by(8, -0.5, 0) - exp(-0.5) / 2) < 0.01);
    assert_true(left_by(7, -0.5, 0) == 1);
}

static void four_fifths_of_the_busiest_turn_are_nearly_all(void **state)
{
    (void)state;
    assert_true(fabs(left_by(13, -0.3, 9) - exp(-0.3) * 13 / 16) < 0.02);
    assert_true(left_by(12, -0.3, 9) == 1);
}

/* Full turns carry 10 flows: whether a turn of `flows` is slow tells only below 8. */
static double left_if_slow(int flows, bool *full)
{
    struct bench b;

    open_bench(&b, HOSTS);
    for (int block = 0; block < BLOCKS; block++) {
        send_up(&b, block, LEAF_NICS, log(10.0 / 16));
        send_up(&b, block, flows, -0.4);
    }
    send_alone(&b, MANY_ALONE, 0);
    return left_of(&b, full);
}

static void a_leaf_that_is_slow_while_few_send_has_its_uplinks(void **state)
{
    bool full[16 * ENDPOINTS * BLOCKS] = {false};
    int out = 0;

    (void)state;
    assert_true(left_if_slow(7, full) == 1);
    for (size_t i = 0; i < sizeof(full); i++)
        assert_false(full[i]);
    assert_true(left_if_slow(9, full) < 1);
    for (size_t i = 0; i < sizeof(full); i++)
        out += full[i];
    assert_int_equal(out, BLOCKS * (LEAF_NICS + 9)); /* its own, and none of leaf 0 */
}

static double left_one_way(bool both)
{
    bool full[16 * ENDPOINTS * BLOCKS] = {false};
    struct bench b;

    open_bench(&b, HOSTS);
    for (int block = 0; block < BLOCKS; block++)
        for (int i = 0; i < 3; i++) /* leaf 1 sends in every second turn */
            send_up(&b, block, LEAF_NICS, both || b.turn % 2 == 0 ? log(0.5) : 0);
    send_alone(&b, MANY_ALONE, 0);
    return left_of(&b, full);
}

static void lost_uplinks_are_missing_both_ways(void **state)
{
    (void)state;
    assert_true(fabs(left_one_way(true) - 0.5) < 0.01);
    assert_true(left_one_way(false) == 1);
}

/* So many blocks are slow; hashed: and every fifth flow by itself. */
static double left_in(int blocks, bool hashed)
{
    bool full[16 * ENDPOINTS * BLOCKS] = {false};
    struct bench b;

    open_bench(&b, HOSTS);
    for (int block = 0; block < BLOCKS; block++) {
        send_up(&b, block, LEAF_NICS, block < blocks ? log(0.5) : 0);
        for (int i = b.looks - 2 * LEAF_NICS; i < b.looks && hashed; i += 5)
            b.look[i].y = b.r[i] = (float)log(0.5);
    }
    send_alone(&b, MANY_ALONE, 0);
    return left_of(&b, full);
}

static void most_blocks_show_lost_uplinks(void **state)
{
    (void)state;
    assert_true(left_in(3, false) == 1);
    assert_true(fabs(left_in(7, false) - 0.5) < 0.01);
    assert_true(fabs(left_in(8, true) - 0.5) < 0.01);
    assert_true(left_in(0, true) == 1);
}

/* Five busy turns a block, of which so many are slow.  Returns true if leaf 1 lost uplinks. */
static bool left_in_turns(int slow, bool hashed)
{
    bool full[16 * ENDPOINTS * BLOCKS] = {false}, lost;
    struct found *f;
    struct bench b;
    int n;

    open_bench(&b, HOSTS);
    for (int block = 0; block < BLOCKS; block++)
        for (int i = 0; i < 10; i++) /* each both ways */
            send_up(&b, block, LEAF_NICS, i / 2 < slow ? log(0.5) : 0);
    send_alone(&b, MANY_ALONE, 0);
    set_up(&b);
    b.v.hashed[LOOK_RATE * TIER_MAX + TIER_FABRIC] = hashed;
    f = uplinks_find(&b.v, full, &n);
    lost = n == 1 && f->a == 1;
    free(f);
    close_bench(&b);
    return lost;
}

/* Flows that collide leave some turns free, uplinks that are down none: nearly all of the busy turns must be slow. */
static void hashed_turns_are_nearly_all_slow_where_uplinks_are_lost(void **state)
{
    (void)state;
    assert_true(left_in_turns(3, false));
    assert_false(left_in_turns(3, true));
    assert_true(left_in_turns(4, true));
    assert_true(left_in_turns(5, true));
}

/* Chance of part 0 of so many that is at `own` in all of its blocks. */
static double chance_among(int parts, double own, double others)
{
    float z[16 * BLOCKS];
    struct steady s;
    struct rng rng;
    double p;

    rng_seed(&rng, seed);
    for (int i = 0; i < parts * BLOCKS; i++)
        z[i] = (float)((i < BLOCKS ? own : others) + 0.01 * rng_normal(&rng));
    steady_cells(&s, z, parts, BLOCKS, 2);
    p = s.p[0];
    free(s.like.back);
    steady_free(&s, 1);
    return p;
}

static void few_parts_are_compared_with_the_fastest(void **state)
{
    (void)state;
    assert_true(chance_among(4, -0.2, -0.2) > 0.1);
    assert_true(chance_among(4, -0.4, -0.2) < 1e-4);
    assert_true(chance_among(4, -0.2, 0) < 1e-4);
    assert_true(chance_among(4, 0, -0.2) == 1);
}

/* --- both stages --- */

static void suspects_of(struct bench *b, struct noise *n)
{
    set_up(b);
    noise_court_free(noise_suspects(n, &b->in));
    close_bench(b);
}

static double every_sixth(int src, int dst, int block, int turn)
{
    (void)block;
    (void)turn;
    return src % 6 == 0 || dst % 6 == 0 ? -0.3 : 0;
}

static void twenty_four_parts_are_measured_again(void **state)
{
    struct bench b;
    struct noise n;

    (void)state;
    open_bench(&b, 3 * HOSTS);
    measure_all(&b, MANY_SHIFTS, every_sixth);
    suspects_of(&b, &n);
    assert_int_equal(n.suspects, 24);
    noise_free(&n);
}

/* Chance of endpoint 20 at the edge of being suspected. */
static double chance_at_edge(void)
{
    double lo = -1, hi = 0, p = 0;

    for (int i = 0; i < 18; i++) {

        struct bench b;
        struct noise n;
        bool is = false;

        depth = (lo + hi) / 2;
        open_bench(&b, HOSTS);
        measure_all(&b, SHIFTS, one_nic);
        suspects_of(&b, &n);
        for (int k = 0; k < n.suspects; k++)
            if (n.suspect[k].part == PART_ENDPOINT && n.suspect[k].a == 20) {
                is = true;
                p = n.suspect[k].p;
            }
        noise_free(&n);
        *(is ? &lo : &hi) = depth;
    }
    return p;
}

static void one_of_fifty_healthy_parts_is_suspected(void **state)
{
    (void)state;
    noise_of_looks = 0.2; /* so that the effect at the edge is slow */
    assert_float_equal(chance_at_edge(), 0.02, 0.002);
    noise_of_looks = 0.001;
}

static bool knows_load(int alone)
{
    struct bench b;
    struct noise n;
    bool knows;

    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, healthy);
    for (int i = 0; i < alone; i++)
        put(&b,
            (struct look){.turn = b.turn + i,
                          .dst = 9 + i,
                          .tier = TIER_RAIL,
                          .alone = true,
                          .unselected = true},
            0);
    suspects_of(&b, &n);
    knows = !isnan(n.loaded[TIER_RAIL]);
    noise_free(&n);
    return knows;
}

static void four_pairs_tell_what_load_costs(void **state)
{
    (void)state;
    assert_false(knows_load(3));
    assert_true(knows_load(4));
}

/* --- what the like are --- */

/* Blocks are off by up to 3 %, and endpoint 20 by half in the last one. */
static double wide_blocks(int src, int dst, int block, int turn)
{
    (void)turn;
    return is_at(src, dst, 20) && block == 7 ? -0.5 : 0.01 * (block % 7 - 3);
}

/* Of -0.5, -0.03, -0.02, ... 0.03 the median is -0.005, that of the distances from it 0.02. */
static void a_block_counts_for_three_sigma_at_most(void **state)
{
    const double rest = 2 * (25e-6 + 225e-6 + 625e-6) + 1225e-6;
    struct bench b;
    struct steady s;

    (void)state;
    open_bench(&b, HOSTS);
    measure_all(&b, MANY_SHIFTS, wide_blocks);
    steady_of(&b, &s, RUNG_NIC);
    assert_float_equal(s.var[20], (rest + pow(3 * 1.4826 * 0.02, 2)) / 7, 2e-4);
    close_steady(&b, &s);
}

/* 80 values of -1 ... 1 %, whose sigma is 0.74 %, and 20 that are 3.4 sigma below. */
static void usual_is_what_is_within_four_sigma(void **state)
{
    double v[100], sigma;

    (void)state;
    for (int i = 0; i < 100; i++)
        v[i] = i < 80 ? 0.01 * (2 * i / 79. - 1) : -0.025;
    assert_float_equal(usual(v, 100, &sigma), -0.0029, 3e-4);
}

/* Pairs of which each has blocks that vary so much; weight of what they have in common. */
static struct likeness likeness_of(double ratio, int blocks)
{
    struct bench b;
    struct steady s;
    struct likeness like;

    open_bench(&b, HOSTS);
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < ENDPOINTS / 2; i++, b.turn++)
            put(&b,
                (struct look){.turn = b.turn,
                              .block = block,
                              .src = i,
                              .dst = i + ENDPOINTS / 2,
                              .tier = TIER_RAIL},
                0.01 * (block & 1) * pow(ratio, i % 5));
    steady_of(&b, &s, RUNG_NIC);
    like = s.like;
    close_steady(&b, &s);
    return like;
}

static void the_like_weigh_as_they_are_alike(void **state)
{
    (void)state;
    assert_float_equal(likeness_of(0.1, BLOCKS).d0, 3, 1e-9);
    assert_float_equal(likeness_of(1, BLOCKS).d0, 40, 1e-9);
    assert_float_equal(likeness_of(1, 2).d0, 4, 1e-9);
    assert_float_equal(likeness_of(1, 2).s0, 1e-4, 1e-9);
}

static void a_stray_block_is_three_sigma_below_delta(void **state)
{
    const struct likeness like = likeness_of(1, BLOCKS);

    (void)state;
    assert_float_equal((like.limit + 0.02) / sqrt(like.s0 + like.pop), -3, 0.01);
}

/* --- stage 2 --- */

/* Is a rack named in stage 2 if so many of its NICs were measured? */
static bool is_rack_named(int nics)
{
    struct bench b;
    struct claims asked = {0};
    bool is;

    open_bench(&b, HOSTS);
    for (int block = 0; block < BLOCKS; block++)
        for (int i = 0; i < nics; i++, b.turn++)
            put(&b,
                (struct look){
                    .turn = b.turn, .block = block, .src = 32 + 3 * i, .dst = i, .tier = TIER_RAIL},
                -0.3);
    set_up(&b);
    MEM_PUSH(asked.at, asked.count) =
        (struct claim){.rung = RUNG_RACK, .a = 2, .b = -1, .channel = &b.c};
    b.h.asked = &asked;
    for (int l = 0; l < LENS_MAX; l++)
        b.c.like[RUNG_RACK][l] = b.c.like[RUNG_NIC][l] = (struct likeness){
            .s0 = 1e-5, .d0 = 10, .pop = 1e-6, .blocks = 8, .seen = 1000, .least = 0.1};
    hunt_parts(&b.h);
    is = claim_of(&b, RUNG_RACK, 2) != NULL;
    free(asked.at);
    close_bench(&b);
    return is;
}

static void five_nics_stand_for_a_rack(void **state)
{
    (void)state;
    assert_false(is_rack_named(4));
    assert_true(is_rack_named(5));
}

/* --- shares of time --- */

/* The share of looks beside others that are slow of such a part. */
static double usual_share_of(const struct bench *b, int endpoint)
{
    const struct likely *l = &b->c.likely[1][0];

    return l->factor[endpoint] * l->risk[2 * TIER_RAIL];
}

/* The last host of 17 has a leaf for each NIC.  Its first is slow in two of 24 turns. */
static double lone_leaf(int src, int dst, int block, int turn)
{
    (void)block;
    return is_at(src, dst, 64) && turn % 12 == 0 ? -0.3 : 0;
}

static void a_leafs_share_is_shrunk_by_ten_looks(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b, HOSTS + 1);
    measure_all(&b, SHIFTS, lone_leaf);
    set_up(&b);
    spells_find(&b.h);
    assert_float_equal(usual_share_of(&b, 64), 0.06, 0.001);
    close_bench(&b);
}

/* Endpoint 20 sends slowly in four turns, another NIC of its leaf in the first ones. */
static double four_turns(int src, int dst, int block, int turn)
{
    (void)dst;
    (void)block;
    return (src == 20 && turn < 4) || (src == 8 && turn < many) ? -0.3 : 0;
}

/* The share of slow looks that is usual of endpoint 20. */
static double usual_share(int turns)
{
    struct bench b;
    double share;

    many = turns;
    open_bench(&b, HOSTS);
    measure_all(&b, SHIFTS, four_turns);
    set_up(&b);
    spells_find(&b.h);
    share = usual_share_of(&b, 20);
    close_bench(&b);
    return share;
}

/* Its chance is 0.8 in 1,000 with one slow turn of the other and 1.2 with two. */
static void who_stands_out_defines_nothing(void **state)
{
    (void)state;
    assert_float_equal(usual_share(1), 0.008, 0.002);
    assert_float_equal(usual_share(2), 0.021, 0.002);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_looks_have_a_median),
        cmocka_unit_test(of_two_pairs_neither_is_odd),
        cmocka_unit_test(a_fast_heap_holds_three_tenths),
        cmocka_unit_test(a_fast_heap_may_be_three_times_as_wide),
        cmocka_unit_test(less_than_two_percent_is_nobodys_fault),
        cmocka_unit_test(half_an_effect_is_shown),
        cmocka_unit_test(three_of_four_are_no_host),
        cmocka_unit_test(a_nic_that_is_explained_says_nothing_of_its_host),
        cmocka_unit_test(a_nic_below_a_rack_is_slower_by_a_tenth),
        cmocka_unit_test(one_side_is_judged_by_five_blocks),
        cmocka_unit_test(a_pair_is_judged_by_three_blocks),
        cmocka_unit_test(pairs_of_a_large_machine_are_left_to_stage_2),
        cmocka_unit_test(a_nic_of_few_partners_is_slow_with_nearly_all),
        cmocka_unit_test(four_looks_tell_what_is_inside),
        cmocka_unit_test(eight_pairs_are_measured_again),
        cmocka_unit_test(a_look_is_slow_from_eight_percent_on),
        cmocka_unit_test(a_slow_look_is_four_sigma_off),
        cmocka_unit_test(deep_is_what_strays_seldom_are),
        cmocka_unit_test(a_tenth_of_the_time_is_now_and_then),
        cmocka_unit_test(a_host_is_now_and_then_slow_within),
        cmocka_unit_test(a_nic_that_is_always_slow_makes_no_host_intermittent),
        cmocka_unit_test(who_answers_a_fifth_is_not_dead),
        cmocka_unit_test(a_partner_is_fine_down_to_four_percent),
        cmocka_unit_test(a_partner_is_fine_within_four_sigma),
        cmocka_unit_test(who_is_slow_to_half_of_its_partners_is_fine),
        cmocka_unit_test(three_looks_have_a_median),
        cmocka_unit_test(eight_looks_tell_what_a_turn_does),
        cmocka_unit_test(a_turn_costs_all_of_its_pairs_15_percent_at_most),
        cmocka_unit_test(the_fast_quarter_tells_what_a_turn_does),
        cmocka_unit_test(a_crowd_that_costs_a_sixth_is_left_out),
        cmocka_unit_test(a_fifth_of_looks_that_get_a_half_are_hashed),
        cmocka_unit_test(flows_that_are_slow_together_share_uplinks_and_are_not_hashed),
        cmocka_unit_test(what_does_not_collide_is_usual),
        cmocka_unit_test(a_tenth_of_looks_beside_others_shows_a_nic_where_flows_are_hashed),
        cmocka_unit_test(a_nic_is_doubted_that_collides_as_often_as_its_like),
        cmocka_unit_test(pairs_alone_show_what_is_slow_now_and_then_where_flows_are_hashed),
        cmocka_unit_test(one_way_is_sought_by_itself_where_flows_are_hashed),
        cmocka_unit_test(two_racks_explain_what_their_nics_show_seldom),
        cmocka_unit_test(a_pair_is_not_suspected_for_a_collision),
        cmocka_unit_test(stage_2_leaves_out_looks_that_may_collide),
        cmocka_unit_test(pairs_of_a_slow_nic_show_no_drift),
        cmocka_unit_test(the_fast_looks_alone_are_usual_if_a_slow_leaf_is_in_most),
        cmocka_unit_test(groups_are_judged_by_pairs_alone_where_flows_are_hashed),
        cmocka_unit_test(no_class_rules_alone),
        cmocka_unit_test(a_stray_has_three_quarters_of_the_depth),
        cmocka_unit_test(a_block_has_a_fifth_of_the_looks_of_the_best),
        cmocka_unit_test(eight_parts_tell_how_blocks_vary),
        cmocka_unit_test(strays_are_assumed_where_none_was_seen),
        cmocka_unit_test(the_only_block_of_a_part_tells_of_strays),
        cmocka_unit_test(forty_blocks_of_controls_tell_their_strays),
        cmocka_unit_test(slow_at_all_times_is_nearly_always),
        cmocka_unit_test(under_load_is_loud_beside_others_and_quiet_alone),
        cmocka_unit_test(stage_2_shows_half_of_what_stage_1_saw),
        cmocka_unit_test(a_step_of_the_clock_is_no_latency),
        cmocka_unit_test(slow_samples_explain_what_is_seldom_slow),
        cmocka_unit_test(half_of_the_busiest_turn_is_many_flows),
        cmocka_unit_test(four_fifths_of_the_busiest_turn_are_nearly_all),
        cmocka_unit_test(a_leaf_that_is_slow_while_few_send_has_its_uplinks),
        cmocka_unit_test(most_blocks_show_lost_uplinks),
        cmocka_unit_test(hashed_turns_are_nearly_all_slow_where_uplinks_are_lost),
        cmocka_unit_test(lost_uplinks_are_missing_both_ways),
        cmocka_unit_test(few_parts_are_compared_with_the_fastest),
        cmocka_unit_test(twenty_four_parts_are_measured_again),
        cmocka_unit_test(one_of_fifty_healthy_parts_is_suspected),
        cmocka_unit_test(four_pairs_tell_what_load_costs),
        cmocka_unit_test(a_block_counts_for_three_sigma_at_most),
        cmocka_unit_test(usual_is_what_is_within_four_sigma),
        cmocka_unit_test(the_like_weigh_as_they_are_alike),
        cmocka_unit_test(a_stray_block_is_three_sigma_below_delta),
        cmocka_unit_test(five_nics_stand_for_a_rack),
        cmocka_unit_test(a_leafs_share_is_shrunk_by_ten_looks),
        cmocka_unit_test(alike_looks_are_counted),
        cmocka_unit_test(who_stands_out_defines_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
