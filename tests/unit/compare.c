/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/compare.c - two campaigns of points made here: what changed is found, noise is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/stats.h"
#include "small.h"
#include "topo/host/nic.h"
#include "verdict/compare.h"
#include "verdict/versions.h"

enum { EPOCHS = 5 };

/* Every pair of the small machine at 4 MiB and at 8 bytes, with noise of each point; pairs of tier
 * `slow` take longer by `factor`. */
static void measure(struct points *p, const struct matrix *m, struct rng *rng, double noise,
                    int slow, double factor)
{
    const struct {
        enum op op;
        size_t bytes;
    } kinds[] = {{OP_PAIR_BW, 4 << 20}, {OP_PAIR_LATENCY, 8}};
    struct cost c;

    *p = (struct points){.endpoints = m->topo.endpoints};
    for (int e = 0; e < EPOCHS; e++)
        for (int i = 0; i < m->topo.endpoints; i++)
            for (int j = 0; j < m->topo.endpoints; j++)
                for (int k = 0; k < 2 && i != j; k++) {
                    matrix_pair(m, i, j, (double)kinds[k].bytes, &c);
                    double sec = c.sec * exp(noise * rng_normal(rng)) *
                                 (matrix_tier(m, i, j) == slow ? factor : 1);
                    MEM_PUSH(p->point, p->count) = (struct point){.epoch = e,
                                                                  .stage = STAGE_CLASS,
                                                                  .op = kinds[k].op,
                                                                  .ranks = 2,
                                                                  .src = i,
                                                                  .dst = j,
                                                                  .flows = 1,
                                                                  .bytes = kinds[k].bytes,
                                                                  .sec.median = sec};
                }
}

/* The small machine twice; how many figures are judged to be `is`, all tiers together included. */
static int changed(struct rng *rng, double noise, int slow, double factor, enum change is,
                   const char *only)
{
    struct matrix m;
    struct points before, after;
    struct compare c;
    struct err err;
    int n = 0;

    small_matrix(&m);
    measure(&before, &m, rng, noise, -1, 1);
    measure(&after, &m, rng, noise, slow, factor);
    const struct campaign a = {.path = "a", .matrix = &m, .topo = &m.topo, .points = &before},
                          b = {.path = "b", .matrix = &m, .topo = &m.topo, .points = &after};
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), 0);
    assert_int_equal(c.matched, before.count);
    assert_int_equal(c.unmatched, 0);
    assert_int_equal(c.figures, 6);
    for (int i = 0; i < c.figures; i++) {
        bool concerned = !only || strstr(c.figure[i].what, only);
        n += concerned && c.figure[i].is == is;
        assert_true(c.figure[i].lo <= c.figure[i].ratio && c.figure[i].ratio <= c.figure[i].hi);
    }
    n += !only && c.together.is == is;
    if (is == CHANGE_WORSE)
        assert_int_equal(compare_code(&c) == EXIT_BELOW, n > 0);
    compare_free(&c);
    free(before.point);
    free(after.point);
    matrix_free(&m);
    return n;
}

/* 2 in 400 are expected, at COMPARE_ALPHA; at four times as much 8 would be, and more than 5 in 8 of 10 runs. */
static void equal_campaigns_give_few_alarms(void **state)
{
    struct rng rng;
    int alarms = 0;

    (void)state;
    rng_seed(&rng, 1);
    for (int i = 0; i < 400; i++)
        alarms += changed(&rng, 0.01 + 0.0002 * i, -1, 1, CHANGE_NONE, NULL) < 7;
    assert_in_range(alarms, 0, 5);
}

/* 48 to 384 points a figure: 5 % are far outside of what 3 % of noise does to their median. */
static void what_changed_is_found_and_nothing_else(void **state)
{
    const char *const tier[] = {"tier shm", "tier rack", "tier fabric"};
    struct rng rng;

    (void)state;
    rng_seed(&rng, 2);
    for (int i = 0; i < 60; i++) {
        int slow = i % 3;
        assert_int_equal(changed(&rng, 0.03, slow, 1.08, CHANGE_WORSE, tier[slow]), 2);
    }
    for (int i = 0; i < 30; i++)
        assert_int_equal(changed(&rng, 0.03, i % 3, 1 / 1.08, CHANGE_BETTER, tier[i % 3]), 2);
}

static void other_machines_are_refused(void **state)
{
    struct matrix m, other;
    struct points p, q;
    struct compare c;
    struct rng rng;
    struct err err;

    (void)state;
    rng_seed(&rng, 3);
    small_matrix(&m);
    small_matrix(&other);
    measure(&p, &m, &rng, 0.01, -1, 1);
    measure(&q, &m, &rng, 0.01, -1, 1);
    const struct campaign a = {.path = "a", .matrix = &m, .topo = &m.topo, .points = &p},
                          b = {.path = "b", .matrix = &other, .topo = &other.topo, .points = &q};
    free(other.transport);
    other.transport = mem_strdup("nccl");
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(strstr(err.text, "a is of transport \"mpi\", b of \"nccl\""));
    compare_free(&c);
    /* The same hosts, nothing that both measured. */
    free(other.transport);
    other.transport = mem_strdup("mpi");
    for (int i = 0; i < q.count; i++)
        q.point[i].flows = 2;
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), -1);
    assert_non_null(strstr(err.text, "no point in common"));
    compare_free(&c);
    free(p.point);
    free(q.point);
    matrix_free(&m);
    matrix_free(&other);
}

/* A part that is there before and after, by name. */
static void parts_are_matched_by_name(void **state)
{
    const struct {
        double before, after;
        enum part_change_kind is;
    } rows[] = {{1, 0.6, PART_NEW},      {0.6, 1, PART_GONE},     {0.6, 0.4, PART_WORSE},
                {0.4, 0.6, PART_BETTER}, {0.6, 0.605, PART_SAME}, {0.6, 0, PART_WORSE}};
    struct rng rng;

    (void)state;
    rng_seed(&rng, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct matrix m, n;
        struct points p, q;
        struct compare c;
        small_matrix(&m);
        small_matrix(&n);
        measure(&p, &m, &rng, 0.01, -1, 1);
        measure(&q, &n, &rng, 0.01, -1, 1);
        if (rows[i].before < 1)
            small_exception(&m, PART_ENDPOINT, 3, -1, 1, rows[i].before);
        if (rows[i].after < 1)
            small_exception(&n, PART_ENDPOINT, 3, -1, 1, rows[i].after);
        const struct campaign a = {.path = "a", .matrix = &m, .topo = &m.topo, .points = &p},
                              b = {.path = "b", .matrix = &n, .topo = &n.topo, .points = &q};
        assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, NULL), 0);
        assert_int_equal(c.parts, 1);
        assert_string_equal(c.part[0].what, rows[i].after ? "NIC of n01 (CPU 1)" : "CPU 1 of n01");
        assert_int_equal(c.part[0].is, rows[i].is);
        compare_free(&c);
        free(p.point);
        free(q.point);
        matrix_free(&m);
        matrix_free(&n);
    }
}

/* Two groups of four with the same first and last member: of one host a pair each, and of one rack. */
static void collectives_are_told_by_the_shape_of_their_groups(void **state)
{
    int halves[] = {0, 1, 6, 7}, spread[] = {0, 2, 4, 7};
    struct plan_group group[] = {{halves, 4}, {spread, 4}};
    struct round round = {
        .id = 7, .stage = STAGE_COLLECTIVE, .op = OP_ALL_REDUCE, .group = group, .groups = 2};
    const struct plan plan = {&round, 1};
    struct points p = {0};
    struct figures f;
    struct matrix m;

    (void)state;
    small_matrix(&m);
    for (int g = 0; g < 2; g++)
        MEM_PUSH(p.point, p.count) = (struct point){.round = 7,
                                                    .group = g,
                                                    .epoch = g,
                                                    .stage = STAGE_COLLECTIVE,
                                                    .op = OP_ALL_REDUCE,
                                                    .ranks = 4,
                                                    .src = 0,
                                                    .dst = 7,
                                                    .flows = 1,
                                                    .bytes = 4 << 20,
                                                    .sec.median = 1e-3};
    struct campaign c[] = {
        {.path = "a", .matrix = &m, .topo = &m.topo, .points = &p, .plan = &plan},
        {.path = "b", .matrix = &m, .topo = &m.topo, .points = &p}};
    figures_match(&f, c, 2);
    assert_int_equal(f.figures, 2);
    assert_string_equal(f.figure[0].what, "all_reduce, 4 ranks, 4 domains of 1, large");
    assert_string_equal(f.figure[1].what, "all_reduce, 4 ranks, 2 domains of 2, large");
    figures_free(&f);
    c[0].plan = NULL;
    figures_match(&f, c, 2);
    assert_int_equal(f.figures, 1);
    assert_string_equal(f.figure[0].what, "all_reduce, 4 ranks, large");
    assert_int_equal(f.figure[0].points, 2);
    figures_free(&f);
    free(p.point);
    matrix_free(&m);
}

/* Firmware of one board on some NICs, and a driver that most have. */
static void versions_say_how_many_have_which(void **state)
{
    struct matrix m, n;
    struct versions v;

    (void)state;
    small_matrix(&m);
    small_matrix(&n);
    for (int i = 0; i < 6; i++) {
        struct nic one;
        nic_init(&one, i);
        snprintf(one.board, sizeof(one.board), "MT_1");
        snprintf(one.firmware, sizeof(one.firmware), "28.39.1002");
        snprintf(one.driver, sizeof(one.driver), "mlx5_core");
        MEM_PUSH(m.topo.nic, m.topo.nics) = one;
        snprintf(one.firmware, sizeof(one.firmware), i < 2 ? "28.40.1000" : "28.39.1002");
        MEM_PUSH(n.topo.nic, n.topo.nics) = one;
    }
    m.provenance = json_pack("{s:s, s:s}", "mpi", "Open MPI v4.1.4", "host", "a");
    n.provenance = json_pack("{s:s, s:s}", "mpi", "Open MPI v5.0.3", "host", "b");
    const struct campaign a = {.matrix = &m, .topo = &m.topo}, b = {.matrix = &n, .topo = &n.topo};
    versions_list(&v, (const struct campaign *const[]){&a, &b}, 2);
    assert_int_equal(v.rows, 3);
    assert_string_equal(v.row[0].what, "NIC driver");
    assert_string_equal(v.row[0].value[1], "mlx5_core");
    assert_string_equal(v.row[1].what, "NIC firmware, MT_1");
    assert_string_equal(v.row[1].value[0], "28.39.1002");
    assert_string_equal(v.row[1].value[1], "28.39.1002 on 4, 28.40.1000 on 2");
    assert_string_equal(v.row[2].value[1], "Open MPI v5.0.3");
    versions_free(&v);
    matrix_free(&m);
    matrix_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_campaigns_give_few_alarms),
        cmocka_unit_test(what_changed_is_found_and_nothing_else),
        cmocka_unit_test(other_machines_are_refused),
        cmocka_unit_test(parts_are_matched_by_name),
        cmocka_unit_test(collectives_are_told_by_the_shape_of_their_groups),
        cmocka_unit_test(versions_say_how_many_have_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
