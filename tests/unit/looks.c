/* looks.c - which points become looks, and what of them: turn, block, kind, who was looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "measure/looks.h"

enum { MATRIX = 64 << 20, SMALL = 64 << 10, LARGE = 256 << 20 };

/* Two hosts of two endpoints: 0, 1 and 2, 3. */
static void two_hosts(struct topo *t)
{
    topo_init(t);
    for (int h = 0; h < 2; h++) {
        int host = topo_add_host(t, h ? "b" : "a");
        for (int i = 0; i < 2; i++)
            topo_add_endpoint(t, host, ENDPOINT_CPU);
    }
    topo_default_tiers(t);
}

static struct point *add(struct points *p, enum stage stage, enum op op, size_t bytes, int round,
                         int epoch)
{
    struct point q = {.stage = stage,
                      .op = op,
                      .bytes = bytes,
                      .round = round,
                      .epoch = epoch,
                      .src = 0,
                      .dst = 2,
                      .ranks = 2,
                      .flows = 2,
                      .sec = point_secs(1e-3, 1e-3, 1e-3)};

    MEM_PUSH(p->point, p->count) = q;
    return &p->point[p->count - 1];
}

static void sizes_and_operations_are_kinds(void **state)
{
    struct points p = {0};
    struct topo t;
    int n, *of;

    (void)state;
    two_hosts(&t);
    add(&p, STAGE_CLASS, OP_PAIR_LATENCY, 8, 0, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, SMALL, 1, 0);
    add(&p, STAGE_LADDER, OP_PAIR_BW, SMALL, 2, 0);
    add(&p, STAGE_LADDER, OP_PAIR_BW, SMALL, 2, 1);
    add(&p, STAGE_COLLECTIVE, OP_ALL_GATHER, MATRIX, 3, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 4, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 4, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, LARGE, 5, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BIBW, MATRIX, 6, 0);
    add(&p, STAGE_NIC, OP_PAIR_BW, SMALL, 7, 0);
    struct look *k = looks_of(&p, &t, false, &of, &n);
    assert_int_equal(n, 6);
    static const enum look_kind want[] = {LOOK_LATENCY, LOOK_SMALL, LOOK_RATE,
                                          LOOK_RATE,    LOOK_LARGE, LOOK_BOTH_WAYS};
    static const int from[] = {0, 1, 5, 6, 7, 8};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(k[i].kind, want[i]);
        assert_int_equal(of[i], from[i]);
    }
    assert_true(fabsf(k[0].y - (float)log(1e3)) < 1e-5f);
    assert_true(fabsf(k[2].y - (float)log(MATRIX / 1e-3)) < 1e-5f);
    free(k);
    free(of);
    k = looks_of(&p, &t, true, NULL, &n); /* the pass through the NICs is another matrix */
    assert_int_equal(n, 1);
    assert_int_equal(k->kind, LOOK_RATE);
    free(k);
    free(p.point);
    topo_free(&t);
}

static void turns_are_rows_that_follow_each_other(void **state)
{
    static const int want[] = {0, 0, 1, 2, 3, 4};
    struct points p = {0};
    struct topo t;
    int n;

    (void)state;
    two_hosts(&t);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 1, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 1, 0)->src = 1;
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 2, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, SMALL, 2, 0);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 2, 1);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 1, 1);
    struct look *k = looks_of(&p, &t, false, NULL, &n);
    assert_int_equal(n, 6);
    for (int i = 0; i < n; i++)
        assert_int_equal(k[i].turn, want[i]);
    free(k);
    free(p.point);
    topo_free(&t);
}

/* Epochs are blocks from five on; turns of fewer epochs are dealt out to stretches of time. */
static void blocks_are_epochs_where_there_are_enough(void **state)
{
    (void)state;
    for (int epochs = 4; epochs <= 5; epochs++) {
        struct points p = {0};
        struct topo t;
        int n;
        two_hosts(&t);
        for (int i = 0; i < 16; i++)
            add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, i, i * epochs / 16);
        struct look *k = looks_of(&p, &t, false, NULL, &n);
        for (int i = 0; i < n; i++)
            assert_int_equal(k[i].block, epochs == 5 ? i * epochs / 16 : i / 2);
        free(k);
        free(p.point);
        topo_free(&t);
    }
}

static void the_stage_says_who_was_looked_at(void **state)
{
    static const struct {
        enum stage stage;
        unsigned flows;
        int block, looks_at;
        bool fresh, same, unselected;
    } want[] = {
        {STAGE_CLASS, 2, 3, -1, false, false, false},
        {STAGE_RANDOM, 1, 3, -1, false, false, true},
        {STAGE_ISOLATED, 1, 3, -1, false, false, true},
        {STAGE_RETEST, 1, PLAN_EPOCHS + 3, -1, true, true, false},
        {STAGE_FRESH_TX, 2, PLAN_EPOCHS + 3, 0, true, false, false},
        {STAGE_FRESH_RX, 1, PLAN_EPOCHS + 3, 1, true, false, false},
    };
    struct points p = {0};
    struct topo t;
    int n;

    (void)state;
    two_hosts(&t);
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
        add(&p, want[i].stage, OP_PAIR_BW, MATRIX, (int)i, 3)->flows = want[i].flows;
    for (int epoch = 0; epoch < 5; epoch++) { /* enough blocks of both stages */
        add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 100 + epoch, epoch);
        add(&p, STAGE_RETEST, OP_PAIR_BW, MATRIX, 200 + epoch, epoch);
    }
    struct look *k = looks_of(&p, &t, false, NULL, &n);
    assert_int_equal(n, sizeof(want) / sizeof(*want) + 10);
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        assert_int_equal(k[i].block, want[i].block);
        assert_int_equal(k[i].looks_at, want[i].looks_at);
        assert_int_equal(k[i].fresh, want[i].fresh);
        assert_int_equal(k[i].same_pair, want[i].same);
        assert_int_equal(k[i].unselected, want[i].unselected);
        assert_int_equal(k[i].alone, want[i].flows == 1);
    }
    free(k);
    free(p.point);
    topo_free(&t);
}

static void what_did_not_answer_is_a_look_as_well(void **state)
{
    struct points p = {0};
    struct topo t;
    int n;

    (void)state;
    two_hosts(&t);
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 0, 0)->stop = STOP_FAILED;
    add(&p, STAGE_CLASS, OP_PAIR_BW, MATRIX, 0, 0)->tail = point_tail(1.5e-3, 1e-3);
    struct look *k = looks_of(&p, &t, false, NULL, &n);
    assert_true(k[0].y == -INFINITY && isnan(k[0].tail));
    assert_true(fabs(k[1].tail - log(1.5)) < 1e-3);
    free(k);
    free(p.point);
    topo_free(&t);
}

static void pairs_of_a_host_cross_no_nic(void **state)
{
    bool crosses[TIER_MAX];
    struct topo t;

    (void)state;
    two_hosts(&t);
    assert_int_equal(t.tiers, 2);
    looks_crossing(&t, false, crosses);
    assert_true(!crosses[0] && crosses[1] && !crosses[2]);
    looks_crossing(&t, true, crosses);
    assert_true(crosses[0] && crosses[1] && !crosses[2]);
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_operations_are_kinds),
        cmocka_unit_test(turns_are_rows_that_follow_each_other),
        cmocka_unit_test(blocks_are_epochs_where_there_are_enough),
        cmocka_unit_test(the_stage_says_who_was_looked_at),
        cmocka_unit_test(what_did_not_answer_is_a_look_as_well),
        cmocka_unit_test(pairs_of_a_host_cross_no_nic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
