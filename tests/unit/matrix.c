/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "test.h"

#include "small.h"

static void near(double a, double b, double share)
{
    if (!(fabs(a - b) <= share * fabs(b)))
        fail_msg("%.9g is not within %g of %.9g", a, share, b);
}

TEST(a_pair_costs_what_its_tier_costs)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    matrix_pair(&m, 0, 1, 1e9, &c);
    near(c.sec, 0.1, 0.01);
    matrix_pair(&m, 0, 2, 8, &c);
    near(c.sec, 10e-6, 0.01);
    assert_string_equal(c.source, "measured pair of tier rack");
    matrix_pair(&m, 0, 15, 4e8, &c);
    near(c.sec, 1 + 60e-6, 0.01);
    assert_int_equal(c.exception, -1);
    matrix_pair(&m, 3, 3, 4e8, &c);
    assert_true(c.sec == 0);
    matrix_pair(&m, 3, 16, 4e8, &c);
    assert_true(isnan(c.sec));
    assert_string_equal(c.source, "no such endpoint");
    matrix_free(&m);
}

/* The latency ladder ends at 64 KiB, the bandwidth ladder begins at 1 MiB. */
TEST(short_ladders_are_joined)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    struct tier *t = &m.tier[2];
    while (t->curve[DIR_ONEWAY].point[t->curve[DIR_ONEWAY].points - 1].bytes > 65536)
        t->curve[DIR_ONEWAY].points--;
    t->curve[DIR_UNI].points = 0;
    curve_add(&t->curve[DIR_UNI], (struct curve_point){1 << 20, (1 << 20) / 0.4e9, 0, 0, 1});
    for (double s = 8; s < 1e10; s *= 3) {
        matrix_pair(&m, 0, 15, s, &c);
        near(c.sec, 60e-6 + s / 0.4e9, 0.007);
    }
    matrix_free(&m);
}

TEST(a_slow_endpoint_stretches_the_bandwidth_part_only)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    small_exception(&m, PART_ENDPOINT, 2, -1, -1, 0.5);
    matrix_pair(&m, 0, 2, 1e9, &c);
    near(c.sec, 2, 0.01);
    assert_int_equal(c.exception, 0);
    assert_string_equal(c.source,
                        "measured pair of tier rack; 50 % of normal by NIC of n01 (CPU 0)");
    matrix_pair(&m, 0, 2, 8, &c);
    near(c.sec, 10e-6, 0.01); /* latency does not know */
    matrix_pair(&m, 2, 3, 1e9, &c);
    near(c.sec, 0.1, 0.01); /* shm crosses no NIC */
    matrix_pair_healthy(&m, 0, 2, 1e9, &c);
    near(c.sec, 1, 0.01);
    matrix_free(&m);
}

/* The matrix of pairs measures one size of each: 8 bytes are all latency. */
TEST(one_size_of_latency_is_not_stretched)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    small_exception(&m, PART_ENDPOINT, 2, -1, -1, 0.5);
    m.tier[1].curve[DIR_ONEWAY].points = 1;
    curve_summarise(&m.tier[1].curve[DIR_ONEWAY]);
    matrix_pair(&m, 0, 2, 8, &c);
    near(c.sec, 10e-6, 0.01);
    matrix_free(&m);
}

TEST(sides_and_tiers_are_kept_apart_and_the_slowest_rules)
{
    struct matrix m;

    small_matrix(&m);
    small_exception(&m, PART_ENDPOINT, 2, -1, 1, 0.5)->side = SIDE_TX;
    small_exception(&m, PART_HOST, 7, -1, -1, 0.8);
    small_exception(&m, PART_RACK_PAIR, 0, 1, -1, 0.7);
    small_exception(&m, PART_PAIR, 0, 4, -1, 0.3)->side = SIDE_RX;
    near(matrix_factor(&m, 2, 0, NULL, NULL), 0.5, 1e-9);
    near(matrix_factor(&m, 0, 2, NULL, NULL), 1, 1e-9);
    near(matrix_factor(&m, 2, 12, NULL, NULL), 0.7, 1e-9); /* tier 1 only; the rack pair rules */
    near(matrix_factor(&m, 14, 12, NULL, NULL), 0.8, 1e-9);
    near(matrix_factor(&m, 4, 0, NULL, NULL), 0.3, 1e-9);
    near(matrix_factor(&m, 0, 4, NULL, NULL), 1, 1e-9);
    matrix_free(&m);
}

TEST(a_dead_part_takes_for_ever)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    small_exception(&m, PART_HOST, 1, -1, -1, 0);
    matrix_pair(&m, 0, 2, 8, &c);
    assert_true(isinf(c.sec));
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 2, 4, 6}, 4, 1e6, &c);
    assert_true(isinf(c.sec));
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 4, 6}, 3, 1e6, &c);
    assert_true(isfinite(c.sec));
    matrix_free(&m);
}

static void add_collective(struct matrix *m, enum op op, struct shape s, double alpha, double Bps)
{
    struct collective c = {.op = op, .shape = s, .basis = BASIS_MEASURED};

    curve_line(&c.curve, alpha, Bps);
    MEM_PUSH(m->collective, m->collectives) = c;
}

TEST(a_measured_shape_answers_for_itself)
{
    struct matrix m;
    struct cost c;
    const int ids[] = {0, 2, 4, 6};

    small_matrix(&m);
    add_collective(&m, OP_ALL_GATHER, (struct shape){4, 4, 1, 4, 1, 1}, 50e-6, 1.2e9);
    matrix_collective(&m, OP_ALL_GATHER, ids, 4, 1 << 20, &c);
    near(c.sec, 50e-6 + (1 << 20) / 1.2e9, 0.01);
    assert_int_equal(c.basis, BASIS_MEASURED);
    assert_string_equal(c.source, "measured all_gather 4 ranks, 4 domains of 1 at 1 MiB");
    /* the same hosts in two racks are another shape */
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 2, 8, 10}, 4, 1 << 20, &c);
    assert_int_equal(c.basis, BASIS_MODELLED);
    /* expected does not look at what was measured */
    matrix_collective_at(&m, OP_ALL_GATHER, ids, 4, 1, 1e9, true, &c);
    assert_int_equal(c.basis, BASIS_MODELLED);
    near(c.sec, 0.75, 0.01);
    matrix_free(&m);
}

/* Equal shapes, told apart by where the ring leaves a rack and by how many run side by side. */
TEST(of_curves_of_one_shape_the_likest_answers)
{
    struct matrix m;
    struct cost c;
    const struct shape four = {4, 4, 1, 4, 1, 2};
    const int aligned[] = {0, 2, 8, 10}, mixed[] = {0, 8, 2, 10};
    const int crossings[] = {2, 4, 2}, at_once[] = {1, 1, 4};

    small_matrix(&m);
    for (int i = 0; i < 3; i++) {
        add_collective(&m, OP_ALL_GATHER, four, 0, 1e9 / (i + 1));
        m.collective[i].crossings = crossings[i];
        m.collective[i].at_once = at_once[i];
    }
    matrix_collective(&m, OP_ALL_GATHER, aligned, 4, 1e9, &c);
    near(c.sec, 1, 0.01);
    matrix_collective(&m, OP_ALL_GATHER, mixed, 4, 1e9, &c);
    near(c.sec, 2, 0.01);
    matrix_collective_at(&m, OP_ALL_GATHER, aligned, 4, 4, 1e9, false, &c);
    near(c.sec, 3, 0.01);
    assert_non_null(strstr(c.source, ", 4 groups at once"));
    matrix_collective_at(&m, OP_ALL_GATHER, aligned, 4, 3, 1e9, false, &c);
    near(c.sec, 3, 0.01);
    matrix_free(&m);
}

TEST(between_two_shapes_it_is_interpolated_and_outside_scaled)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    add_collective(&m, OP_ALL_REDUCE, (struct shape){2, 2, 1, 2, 1, 1}, 10e-6, 1e9);
    add_collective(&m, OP_ALL_REDUCE, (struct shape){4, 4, 1, 4, 1, 1}, 20e-6, 0.5e9);
    matrix_collective(&m, OP_ALL_REDUCE, (int[]){0, 2, 4}, 3, 1e9, &c);
    double w = log2(3) - 1;
    near(c.sec, pow(1, 1 - w) * pow(2, w), 0.01);
    assert_non_null(strstr(
        c.source,
        "3 ranks, 3 domains of 1 between 2 ranks, 2 domains of 1 and 4 ranks, 4 domains of 1"));
    m.collective[1].op = OP_BROADCAST;
    matrix_collective(&m, OP_ALL_REDUCE, (int[]){0, 2, 4, 6}, 4, 1e9, &c);
    near(c.sec, 1.5, 0.01); /* busbw 1 GB/s kept: 2 * 3/4 */
    assert_non_null(strstr(c.source, "scaled from 2 ranks, 2 domains of 1"));
    matrix_free(&m);
}

TEST(a_slow_member_reaches_a_measured_collective)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    add_collective(&m, OP_ALL_GATHER, (struct shape){4, 4, 1, 4, 1, 1}, 0, 1.2e9);
    small_exception(&m, PART_HOST, 1, -1, 1, 0.25);
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 2, 4, 6}, 4, 1.2e9, &c);
    near(c.sec, 4, 0.01);
    assert_int_equal(c.exception, 0);
    assert_non_null(strstr(c.source, "; 25 % of normal by host n01"));
    matrix_collective(&m, OP_ALL_GATHER, (int[]){8, 10, 12, 14}, 4, 1.2e9, &c);
    near(c.sec, 1, 0.01);
    assert_int_equal(c.exception, -1);
    matrix_free(&m);
}

TEST(the_model_follows_the_ring)
{
    struct matrix m;
    struct cost c;
    int all[16];

    small_matrix(&m);
    for (int i = 0; i < 16; i++)
        all[i] = i;
    /* 16 ranks on 8 hosts: 8 hops inside, 7 between; one NIC a host, 0.4 GB/s on the trunk */
    matrix_collective(&m, OP_ALL_GATHER, all, 16, 0.4e9, &c);
    near(c.sec, 8e-6 + 7 * 60e-6 + 15.0 / 16, 1e-3);
    double gather = c.sec;
    matrix_collective(&m, OP_ALL_REDUCE, all, 16, 0.4e9, &c);
    near(c.sec, 2 * gather, 1e-9);
    matrix_collective(&m, OP_BROADCAST, all, 16, 0.4e9, &c);
    near(c.sec, 8e-6 + 7 * 60e-6 + 1, 1e-3);
    matrix_collective(&m, OP_SENDRECV, all, 16, 0.4e9, &c);
    near(c.sec, 60e-6 + 1, 1e-3);
    matrix_collective(&m, OP_ALL_TO_ALL, (int[]){0, 1}, 2, 1e9, &c);
    near(c.sec, 0.05, 1e-3);
    assert_string_equal(c.source, "modelled: point to point over shm");
    matrix_free(&m);
}

TEST(bad_orders_share_the_trunk)
{
    struct matrix m;
    struct cost good, bad;

    small_matrix(&m);
    m.tier[2].loaded = 0.25;
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 2, 4, 6, 8, 10, 12, 14}, 8, 1e9, &good);
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 8, 2, 10, 4, 12, 6, 14}, 8, 1e9, &bad);
    near(bad.sec, 4 * good.sec, 0.01);
    matrix_free(&m);
}

TEST(what_is_no_collective_is_refused_with_a_reason)
{
    struct matrix m;
    struct cost c;

    small_matrix(&m);
    matrix_collective(&m, OP_PAIR_BW, (int[]){0, 1}, 2, 8, &c);
    assert_true(isnan(c.sec));
    assert_string_equal(c.source, "pair_bw of 2 ranks is no collective");
    matrix_collective(&m, OP_ALL_GATHER, (int[]){0, 99}, 2, 8, &c);
    assert_string_equal(c.source, "no endpoint 99");
    matrix_collective(&m, OP_ALL_GATHER, (int[]){5}, 1, 8, &c);
    assert_true(c.sec == 0);
    matrix_free(&m);
}
