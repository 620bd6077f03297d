/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.c - groups of hosts and what lies between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/stats.h"
#include "export/blocks_impl.h"
#include "small.h"

static const double bytes = 64 << 20;

static void preset(struct matrix *m, const char *name, int racks)
{
    struct err err;

    if (matrix_open(m, NULL, name, racks, &err) < 0)
        fail_msg("%s", err.text);
}

static void racks_of_nvl72_are_its_domains(void **state)
{
    struct matrix m;
    struct blocks b;
    struct err err;

    (void)state;
    preset(&m, "gb200-nvl72", 4);
    assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), 0);
    assert_int_equal(b.level, LEVEL_DOMAIN);
    assert_int_equal(b.source, SOURCE_PRESET);
    assert_int_equal(b.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(b.block[i].hosts, 18);
        assert_int_equal(b.block[i].host[17], 18 * i + 17);
        assert_int_equal(b.of[18 * i + 3], i);
        for (int k = 0; k < 4; k++)
            assert_true(i == k || b.sec[4 * i + k] > 5 * b.sec[4 * i + i]);
    }
    assert_string_equal(b.block[2].name, "domain-02");
    blocks_free(&b);
    matrix_free(&m);
}

/* Racks of 3 hosts of 2 endpoints; two racks share a spine, and the last rack lacks a host's
 * second endpoint.  Hosts of all racks are on one of two rails. */
static void spines_and_rails(struct matrix *m, int racks)
{
    char name[32];

    matrix_init(m);
    m->transport = mem_strdup("sim");
    small_topo(&m->topo, racks, 3, 2, true, ENDPOINT_CPU);
    m->topo.endpoints--;
    small_tier(m, "shm", 1u << LEVEL_HOST, 1e-6, 50e9, false);
    small_tier(m, "rack", 1u << LEVEL_RACK, 2e-6, 20e9, true);
    small_tier(m, "rail", 1u << LEVEL_RAIL | 1u << LEVEL_SPINE, 3e-6, 10e9, true);
    small_tier(m, "spine", 1u << LEVEL_SPINE, 4e-6, 5e9, true);
    small_tier(m, "fabric", 0, 5e-6, 2e9, true);
    for (int i = 0; i < m->topo.endpoints; i++) {
        struct place *p = &m->topo.endpoint[i].place;
        snprintf(name, sizeof(name), "spine-%d", p->at[LEVEL_RACK] / 2);
        p->at[LEVEL_SPINE] = topo_add_group(&m->topo, LEVEL_SPINE, name);
        snprintf(name, sizeof(name), "rail-%d",
                 (p->at[LEVEL_RACK] + m->topo.endpoint[i].local) % 2);
        p->at[LEVEL_RAIL] = topo_add_group(&m->topo, LEVEL_RAIL, name);
    }
}

/* The time between two blocks as the header says, pair by pair of 3 x 3 hosts. */
static double time_of(const struct matrix *m, const struct block *a, const struct block *b)
{
    double sec[BLOCKS_PAIRS];
    struct cost out, back;
    int n = 0;

    for (int p = 0; p < 9; p++) {
        int x = a->host[p / 3], y = b->host[p % 3], last = 2 * m->topo.hosts - 1;
        bool one = 2 * x + 1 == last || 2 * y + 1 == last; /* this host has one endpoint */
        if (x == y)
            continue;
        matrix_pair(m, 2 * x + (one ? 0 : p % 2), 2 * y + (one ? 0 : p % 2), bytes, &out);
        matrix_pair(m, 2 * y + (one ? 0 : p % 2), 2 * x + (one ? 0 : p % 2), bytes, &back);
        sec[n++] = fmax(out.sec, back.sec);
    }
    return stats_median(sec, n);
}

/* Times are looked up once for blocks of one kind; they must be those of every two blocks. */
static void times_are_those_of_every_two_blocks(void **state)
{
    enum { RACKS = 9 };
    struct matrix m;
    struct blocks b;
    struct err err;

    (void)state;
    for (int faults = 0; faults < 2; faults++) {
        spines_and_rails(&m, RACKS);
        if (faults) {
            for (int h = 6; h < 9; h++) /* all of the third rack */
                small_exception(&m, PART_HOST, h, -1, -1, 0.5)->side = h % 2 ? SIDE_TX : SIDE_BOTH;
            small_exception(&m, PART_RACK_PAIR, 4, 7, -1, 0.4);
        }
        assert_int_equal(blocks_make(&b, &m, LEVEL_RACK, bytes, &err), 0);
        assert_int_equal(b.count, RACKS);
        for (int i = 0; i < RACKS; i++)
            for (int k = 0; k < RACKS; k++) {
                bool swap = b.block[i].host[0] > b.block[k].host[0];
                double want = time_of(&m, &b.block[swap ? k : i], &b.block[swap ? i : k]);
                if (b.sec[RACKS * i + k] != want)
                    fail_msg("%d to %d: %g, not %g", i, k, b.sec[RACKS * i + k], want);
            }
        blocks_free(&b);
        matrix_free(&m);
    }
}

/* Each HGX host is a domain of its own and hangs on eight leaves at once. */
static void hosts_on_the_same_rails_are_one_block(void **state)
{
    struct matrix m;
    struct blocks b;
    struct err err;

    (void)state;
    preset(&m, "hgx-h100", 8);
    assert_int_equal(blocks_make(&b, &m, LEVEL_LEAF, bytes, &err), 0);
    int hosts = 0;
    for (int i = 0; i < b.count; i++)
        hosts += b.block[i].hosts;
    assert_int_equal(hosts, m.topo.hosts);
    assert_true(b.block[0].hosts > 1);
    assert_true(strstr(b.block[0].name, "(8)") != NULL);
    blocks_free(&b);
    assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), 0);
    assert_int_equal(b.level, LEVEL_RACK);
    blocks_free(&b);
    matrix_free(&m);
}

enum { PODS = 12, PER = 3 };

/* Pods in a row: the farther apart, the slower.  Racks are numbered in a shuffled order and only
 * pair exceptions tell where they stand. */
static void chain(struct matrix *m, const int *at)
{
    matrix_init(m);
    m->transport = mem_strdup("sim");
    small_topo(&m->topo, PODS, PER, 1, true, ENDPOINT_CPU);
    small_tier(m, "rack", 1u << LEVEL_RACK, 1e-6, 10e9, true);
    small_tier(m, "fabric", 0, 5e-6, 5e9, true);
    for (int a = 0; a < PODS; a++)
        for (int b = a + 1; b < PODS; b++)
            small_exception(m, PART_RACK_PAIR, a, b, 1, 1.0 / (1 + abs(at[a] - at[b])));
}

/* Medians of a few pairs differ by some percent: that is no order. */
static void noise_does_not_reorder(void **state)
{
    struct matrix m;
    struct blocks b;
    struct rng rng;
    struct err err;

    (void)state;
    matrix_init(&m);
    m.transport = mem_strdup("sim");
    small_topo(&m.topo, PODS, PER, 1, true, ENDPOINT_CPU);
    small_tier(&m, "rack", 1u << LEVEL_RACK, 1e-6, 10e9, true);
    small_tier(&m, "fabric", 0, 5e-6, 5e9, true);
    rng_seed(&rng, 7);
    for (int x = 0; x < PODS; x++)
        for (int y = x + 1; y < PODS; y++)
            small_exception(&m, PART_RACK_PAIR, x, y, 1, 0.97 + 0.03 * rng_uniform(&rng));
    assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), 0);
    assert_int_equal(b.count, PODS);
    for (int i = 0; i < PODS; i++)
        assert_int_equal(b.block[i].host[0], i * PER);
    assert_true(b.sec[1] != b.sec[2]); /* what was measured is kept */
    blocks_free(&b);
    matrix_free(&m);
}

static void a_shuffled_row_of_pods_is_put_in_order(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        int at[PODS];
        struct rng rng;
        struct matrix m;
        struct blocks b;
        struct err err;

        for (int i = 0; i < PODS; i++)
            at[i] = i;
        rng_seed(&rng, seed);
        rng_shuffle(&rng, at, PODS);
        chain(&m, at);
        assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), 0);
        assert_int_equal(b.level, LEVEL_RACK);
        int step = at[b.block[1].host[0] / PER] - at[b.block[0].host[0] / PER];
        assert_int_equal(abs(step), 1);
        for (int i = 1; i < PODS; i++) {
            assert_int_equal(at[b.block[i].host[0] / PER] - at[b.block[i - 1].host[0] / PER], step);
            for (int k = 0; k < PODS; k++)
                assert_true(k == i || b.sec[i * PODS + i - 1] <= b.sec[i * PODS + k] * 1.001);
            assert_int_equal(b.of[b.block[i].host[0]], i);
        }
        blocks_free(&b);
        matrix_free(&m);
    }
}

/* Two levels: racks of the same spine stand together although their numbers alternate. */
static void racks_of_a_spine_stand_together(void **state)
{
    struct matrix m;
    struct blocks b;
    struct err err;
    char name[32];

    (void)state;
    matrix_init(&m);
    small_topo(&m.topo, 9, 2, 1, true, ENDPOINT_CPU);
    for (int i = 0; i < m.topo.endpoints; i++) {
        snprintf(name, sizeof(name), "spine-%d", i / 2 % 3);
        m.topo.endpoint[i].place.at[LEVEL_SPINE] = topo_add_group(&m.topo, LEVEL_SPINE, name);
    }
    small_tier(&m, "rack", 1u << LEVEL_RACK, 1e-6, 10e9, true);
    small_tier(&m, "spine", 1u << LEVEL_SPINE, 1e-6, 5e9, true);
    small_tier(&m, "fabric", 0, 1e-6, 2e9, true);
    assert_int_equal(blocks_make(&b, &m, LEVEL_RACK, bytes, &err), 0);
    static const char *const want[] = {"rack-00", "rack-03", "rack-06", "rack-01", "rack-04",
                                       "rack-07", "rack-02", "rack-05", "rack-08"};
    for (int i = 0; i < 9; i++)
        assert_string_equal(b.block[i].name, want[i]);
    blocks_free(&b);
    assert_int_equal(blocks_make(&b, &m, LEVEL_SPINE, bytes, &err), 0);
    assert_int_equal(b.count, 3);
    assert_int_equal(b.block[1].hosts, 6);
    blocks_free(&b);
    matrix_free(&m);
}

static void without_curves_the_order_is_that_of_the_topology(void **state)
{
    struct matrix m;
    struct blocks b;
    struct err err;

    (void)state;
    matrix_init(&m);
    small_topo(&m.topo, 5, 2, 2, true, ENDPOINT_GPU);
    for (int tiers = 0; tiers < 2; tiers++) {
        if (tiers)
            m.tiers = m.topo.tiers = 1; /* a last tier that nobody measured */
        assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), 0);
        assert_int_equal(b.count, 5);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(b.block[i].host[0], 2 * i);
            for (int k = 0; k < 5; k++)
                assert_true(isnan(b.sec[5 * i + k]));
        }
        blocks_free(&b);
    }
    matrix_free(&m);
}

static void a_dead_host_does_not_move_its_block(void **state)
{
    struct matrix m;
    struct blocks b;
    struct err err;

    (void)state;
    matrix_init(&m);
    small_topo(&m.topo, 3, 3, 1, true, ENDPOINT_CPU);
    small_tier(&m, "rack", 1u << LEVEL_RACK, 1e-6, 10e9, true);
    small_tier(&m, "fabric", 0, 1e-6, 5e9, true);
    small_exception(&m, PART_HOST, 0, -1, -1, 0);
    assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), 0);
    for (int i = 0; i < 9; i++)
        assert_true(isfinite(b.sec[i]));
    blocks_free(&b);
    matrix_free(&m);
}

static void what_groups_nothing_is_refused(void **state)
{
    struct matrix m;
    struct blocks b;
    struct err err;

    (void)state;
    matrix_init(&m);
    small_topo(&m.topo, 2, 2, 1, false, ENDPOINT_CPU);
    assert_int_equal(blocks_make(&b, &m, -1, bytes, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
    assert_int_equal(blocks_make(&b, &m, LEVEL_SPINE, bytes, &err), -1);
    assert_string_equal(err.text, "no spine of any host is known");
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(racks_of_nvl72_are_its_domains),
        cmocka_unit_test(times_are_those_of_every_two_blocks),
        cmocka_unit_test(hosts_on_the_same_rails_are_one_block),
        cmocka_unit_test(noise_does_not_reorder),
        cmocka_unit_test(a_shuffled_row_of_pods_is_put_in_order),
        cmocka_unit_test(racks_of_a_spine_stand_together),
        cmocka_unit_test(without_curves_the_order_is_that_of_the_topology),
        cmocka_unit_test(a_dead_host_does_not_move_its_block),
        cmocka_unit_test(what_groups_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
