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
#include "verdict/compare.h"

enum { EPOCHS = 3 };

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

/* The small machine twice; how many figures are judged to be `is`. */
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
    const struct campaign a = {"a", &m, &m.topo, &before}, b = {"b", &m, &m.topo, &after};
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), 0);
    assert_int_equal(c.matched, before.count);
    assert_int_equal(c.unmatched, 0);
    assert_int_equal(c.figures, 6);
    for (int i = 0; i < c.figures; i++) {
        bool concerned = !only || strstr(c.figure[i].what, only);
        n += concerned && c.figure[i].is == is;
        assert_true(c.figure[i].lo <= c.figure[i].ratio && c.figure[i].ratio <= c.figure[i].hi);
    }
    assert_int_equal(compare_code(&c) == EXIT_BELOW, is == CHANGE_WORSE && n > 0);
    compare_free(&c);
    free(before.point);
    free(after.point);
    matrix_free(&m);
    return n;
}

static void equal_campaigns_give_no_alarm(void **state)
{
    struct rng rng;

    (void)state;
    rng_seed(&rng, 1);
    for (int i = 0; i < 200; i++)
        assert_int_equal(changed(&rng, 0.01 + 0.0004 * i, -1, 1, CHANGE_NONE, NULL), 6);
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
    const struct campaign a = {"a", &m, &m.topo, &p}, b = {"b", &other, &other.topo, &q};
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
        const struct campaign a = {"a", &m, &m.topo, &p}, b = {"b", &n, &n.topo, &q};
        assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, NULL), 0);
        assert_int_equal(c.parts, 1);
        assert_int_equal(c.part[0].is, rows[i].is);
        compare_free(&c);
        free(p.point);
        free(q.point);
        matrix_free(&m);
        matrix_free(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_campaigns_give_no_alarm),
        cmocka_unit_test(what_changed_is_found_and_nothing_else),
        cmocka_unit_test(other_machines_are_refused),
        cmocka_unit_test(parts_are_matched_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
