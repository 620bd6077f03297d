/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "fit/cluster.h"
#include "test.h"

/* A shaped fabric: units in racks, a cap per unit, a trunk, a delay, noise. */
struct truth {
    int racks, per;
    double nic, trunk, delay, noise;
    int slow; /* unit with another cap, -1 */
    double slow_cap;
    int shared; /* parallel traffic was measured too: 3 flows share a trunk */
};

static int edges_of(const struct truth *t, struct edge **out)
{
    int n = t->racks * t->per, count = 0;
    struct rng rng;

    rng_seed(&rng, 7);
    *out = NULL;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            int far = a / t->per != b / t->per;
            double ca = a == t->slow ? t->slow_cap : t->nic,
                   cb = b == t->slow ? t->slow_cap : t->nic;
            double rate = fmin(fmin(ca, cb), far ? t->trunk : INFINITY);
            double loaded = far ? fmin(rate, t->trunk / 3) : rate;
            struct edge e = {a, b, rate, 25e-6 + (far ? t->delay : 0), NAN, 0};
            if (t->shared)
                e.shared = loaded / rate;
            e.Bps *= exp(t->noise * rng_normal(&rng));
            e.sec *= exp(t->noise * rng_normal(&rng));
            MEM_PUSH(*out, count) = e;
        }
    return count;
}

static void run(struct clusters *c, const struct truth *t)
{
    struct edge *e;
    int n = edges_of(t, &e);

    cluster_units(c, t->racks * t->per, e, n);
    free(e);
}

/* Every unit is in its rack. */
static void is_truth(const struct truth *t)
{
    struct clusters c;

    run(&c, t);
    if (c.groups != t->racks)
        fail_msg("%d groups where there are %d racks (clue %d)", c.groups, t->racks, c.clue);
    for (int i = 0; i < t->racks * t->per; i++)
        if (c.of[i] != i / t->per)
            fail_msg("unit %d is in %d, not in %d", i, c.of[i], i / t->per);
    assert_int_equal(c.unresolved, 0);
    cluster_free(&c);
}

TEST(racks_are_found_by_bandwidth)
{
    is_truth(&(struct truth){2, 4, 1000, 400, 0, 0.01, -1, 0, 0});
    is_truth(&(struct truth){4, 6, 1000, 250, 50e-6, 0.03, -1, 0, 0});
    is_truth(&(struct truth){3, 2, 800, 300, 0, 0.02, -1, 0, 0});
    is_truth(&(struct truth){8, 18, 776, 49, 0, 0.03, -1, 0, 0});
}

TEST(a_degraded_unit_faster_than_the_trunk_stays_in_its_rack)
{
    is_truth(&(struct truth){2, 4, 1000, 400, 0, 0.01, 5, 600, 0});
    is_truth(&(struct truth){3, 3, 1000, 400, 0, 0.01, 0, 500, 0});
}

TEST(a_unit_slower_than_the_trunk_is_placed_by_latency)
{
    is_truth(&(struct truth){2, 4, 1000, 400, 50e-6, 0.03, 5, 300, 0});
    is_truth(&(struct truth){4, 3, 1000, 400, 50e-6, 0.03, 11, 100, 0});
}

TEST(without_delay_it_is_placed_by_what_shared_traffic_leaves)
{
    is_truth(&(struct truth){2, 4, 1000, 400, 0, 0.02, 5, 300, 1});
}

/* Flows that meet others on a trunk at random, one of them nobody: whom a unit loses least with says
 * nothing of its rack.
 * One that has no quick neighbour but the slow one is left out, never put elsewhere. */
TEST(what_a_trunk_leaves_by_chance_places_nobody)
{
    struct rng rng;

    rng_seed(&rng, 17);
    for (int k = 0; k < 200; k++) {
        struct truth t = {3 + k % 3, 2, 800, 400, 0, 0.02, 3, 240, 1};
        struct clusters c;
        struct edge *e;
        int n = edges_of(&t, &e);
        for (int i = 0; i < n; i++)
            if (e[i].a / 2 != e[i].b / 2)
                e[i].shared = 0.4 + 0.45 * rng_uniform(&rng);
        e[1].shared = 1; /* units 0 and 2 */
        cluster_units(&c, 2 * t.racks, e, n);
        for (int i = 0; i < 2 * t.racks; i++)
            if (c.of[i] >= 0)
                for (int j = 0; j < i; j++)
                    if (c.of[j] == c.of[i] && i / 2 != j / 2)
                        fail_msg("%d: %d racks: unit %d is with %d", k, t.racks, i, j);
        cluster_free(&c);
        free(e);
    }
}

TEST(with_neither_it_is_left_out_and_counted)
{
    struct clusters c;

    run(&c, &(struct truth){2, 4, 1000, 400, 0, 0.02, 5, 300, 0});
    assert_int_equal(c.groups, 2);
    assert_int_equal(c.unresolved, 1);
    assert_int_equal(c.of[5], -1);
    assert_int_equal(c.of[4], 1);
    cluster_free(&c);
}

TEST(racks_are_found_by_latency_when_the_trunk_is_wide)
{
    is_truth(&(struct truth){2, 4, 1000, 2000, 50e-6, 0.03, -1, 0, 0});
    is_truth(&(struct truth){2, 4, 1000, 2000, 50e-6, 0.03, 2, 500, 0});
}

TEST(one_rack_is_not_split_by_noise_or_by_a_slow_unit)
{
    is_truth(&(struct truth){1, 4, 1000, 400, 0, 0.03, -1, 0, 0});
    is_truth(&(struct truth){1, 8, 1000, 400, 0, 0.2, -1, 0, 0});
    is_truth(&(struct truth){1, 6, 1000, 400, 0, 0.02, 3, 300, 0});
    is_truth(&(struct truth){1, 3, 1000, 400, 0, 0.02, 2, 300, 0});
}

/* Three epochs' median, and its standard error as the fit knows it: from their range (Tippett 1925). */
static struct edge three_epochs(struct rng *rng, double sec, double sigma)
{
    double v[3];

    for (int i = 0; i < 3; i++)
        v[i] = sec * exp(sigma * rng_normal(rng));
    stats_sort(v, 3);
    return (struct edge){
        .sec = v[1], .shared = NAN, .noise = 1.25 / 1.69 / sqrt(3) * (v[2] - v[0]) / v[1]};
}

/* A rack's pairs have 1,000 MB/s and 13 us, others 400 and 65; few scatter several times as much as
 * most. */
static int scattered(struct rng *rng, int racks, int per, struct edge **e)
{
    int n = 0;

    *e = NULL;
    for (int a = 0; a < racks * per; a++)
        for (int b = a + 1; b < racks * per; b++) {
            bool far = a / per != b / per;
            double sigma = (far ? 0.05 : 0.1) * exp(0.8 * rng_normal(rng));
            struct edge x = three_epochs(rng, far ? 65e-6 : 13e-6, sigma);
            x.a = a;
            x.b = b;
            x.Bps = (far ? 400 : 1000) * exp(0.02 * rng_normal(rng));
            MEM_PUSH(*e, n) = x;
        }
    return n;
}

/* Pairs that were quick by luck are no level, and split no rack that bandwidth shows; where there is
 * one rack they may once in thousands. */
TEST(pairs_that_scatter_unlike_split_no_rack)
{
    struct rng rng;
    int split = 0;

    rng_seed(&rng, 5);
    for (int k = 0; k < 4000; k++) {
        int racks = 1 + (int)rng_below(&rng, 4), per = 3 + (int)rng_below(&rng, 5);
        struct edge *e;
        struct clusters c;
        int n = scattered(&rng, racks, per, &e);
        cluster_units(&c, racks * per, e, n);
        bool wrong = c.groups != racks || c.unresolved;
        if (wrong && racks > 1)
            fail_msg("%d: %d racks of %d: %d groups, %d hosts left out", k, racks, per, c.groups,
                     c.unresolved);
        split += wrong;
        cluster_free(&c);
        free(e);
    }
    if (split > 1)
        fail_msg("one rack was split %d times", split);
}

TEST(slow_pairs_that_make_no_partition_are_contradictions)
{
    struct truth t = {1, 8, 1000, 400, 0, 0.01, -1, 0, 0};
    struct clusters c;
    struct edge *e;
    int n = edges_of(&t, &e);

    for (int i = 0; i < n; i += 4)
        e[i].Bps *= 0.5;
    cluster_units(&c, 8, e, n);
    assert_int_equal(c.groups, 1);
    assert_int_equal(c.contradictions, 7);
    cluster_free(&c);
    free(e);
}
