/* SPDX-License-Identifier: BSD-3-Clause */
/* What a crowd does to latency stays out of a tier's latency, even where bandwidth does not mind.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit.h"

enum { HOSTS = 4 };

static void add(struct points *p, enum op op, int src, int dst, int flows, size_t bytes, double sec)
{
    struct point one = {.round = p->count,
                        .stage = flows > 1 ? STAGE_TOURNAMENT : STAGE_ISOLATED,
                        .op = op,
                        .ranks = 2,
                        .src = src,
                        .dst = dst,
                        .flows = flows,
                        .bytes = bytes,
                        .sec = point_secs(sec, sec, sec),
                        .n = 16,
                        .stop = STOP_CI};

    MEM_PUSH(p->point, p->count) = one;
}

static void some_hosts(struct topo *t, int hosts)
{
    char name[16];

    topo_init(t);
    for (int i = 0; i < hosts; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        topo_add_endpoint(t, topo_add_host(t, name), ENDPOINT_CPU);
    }
    topo_default_tiers(t);
}

/* Without a plan; points and topology are gone then. */
static void fit(struct matrix *m, struct topo *t, struct points *p)
{
    const struct plan plan = {NULL, 0};
    struct fit_opts o;
    struct err err = {0, ""};

    fit_defaults(&o);
    if (fit_matrix(m, t, &plan, p, &o, &err) < 0)
        fail_msg("%s", err.text);
    free(p->point);
    topo_free(t);
}

static void four_hosts(struct topo *t)
{
    some_hosts(t, HOSTS);
}

static void latency_in_a_crowd_does_not_count_where_there_is_latency_alone(void **state)
{
    struct topo t;
    struct matrix m;
    struct points p = {.endpoints = HOSTS, .transport = "mpi"};

    (void)state;
    four_hosts(&t);
    for (int i = 0; i < HOSTS; i++)
        for (int j = 0; j < HOSTS; j++)
            for (int flows = 1; flows <= 2 && i != j; flows++) {
                if (i < j)
                    add(&p, OP_PAIR_LATENCY, i, j, flows, 8, flows > 1 ? 90e-6 : 10e-6);
                add(&p, OP_PAIR_BW, i, j, flows, 262144, 2e-3);
            }
    fit(&m, &t, &p);
    const struct tier *tier = &m.tier[m.tiers - 1];
    assert_true(tier->curve[DIR_ONEWAY].points == 1);
    assert_true(tier->curve[DIR_ONEWAY].alpha > 9.9e-6);
    assert_true(tier->curve[DIR_ONEWAY].alpha < 10.1e-6);
    assert_int_equal(tier->curve[DIR_UNI].point[0].n, 2 * HOSTS * (HOSTS - 1) * 16);
    matrix_free(&m);
}

static void a_slow_host_is_named_where_half_of_all_pairs_are_its_own(void **state)
{
    struct topo t;
    struct matrix m;
    struct points p = {.endpoints = HOSTS, .transport = "mpi"};

    (void)state;
    four_hosts(&t);
    for (int i = 0; i < HOSTS; i++)
        for (int j = 0; j < HOSTS; j++)
            if (i != j)
                add(&p, OP_PAIR_BW, i, j, 1, 262144, i == 3 || j == 3 ? 2.6e-3 : 2e-3 + i * 1e-6);
    fit(&m, &t, &p);
    assert_int_equal(m.exceptions, 1);
    assert_int_equal(m.exception[0].a, 3);
    assert_true(m.exception[0].factor > 0.75 && m.exception[0].factor < 0.79);
    matrix_free(&m);
}

/* One of five epochs was as usual: a machine with too few cores does that, a bad link does not. */
static void an_unstable_pair_is_no_evidence(void **state)
{
    struct topo t;
    struct matrix m;
    struct points p = {.endpoints = HOSTS, .transport = "mpi"};

    (void)state;
    four_hosts(&t);
    for (int i = 0; i < HOSTS; i++)
        for (int j = 0; j < HOSTS; j++)
            for (int epoch = 0; epoch < PLAN_EPOCHS && i != j; epoch++)
                add(&p, OP_PAIR_BW, i, j, 1, 262144,
                    i == 3 && j == 0 && epoch ? 14e-3 + epoch * 1e-4 : 2e-3 + i * 1e-6);
    fit(&m, &t, &p);
    assert_int_equal(m.exceptions, 0);
    matrix_free(&m);
}

static int findings(const struct matrix *m, const char *kind, const char **text)
{
    int n = 0;

    for (int i = 0; i < m->findings; i++)
        if (!strcmp(m->finding[i].kind, kind)) {
            *text = m->finding[i].text;
            n++;
        }
    return n;
}

/* Two racks of four; one NIC of the second is slower than what passes between racks.  Alone each pair
 * has the latency of its way, beside others up to thirty times as much. */
static void two_racks(struct points *p, struct rng *rng)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            for (int epoch = 0; epoch < 4 && i != j; epoch++) {
                bool far = i / 4 != j / 4, slow = i == 5 || j == 5;
                double sec = (far ? 65e-6 : 13e-6) * exp(0.05 * rng_normal(rng));
                int flows = epoch < 3 ? 1 : 2;
                if (i < j)
                    add(p, OP_PAIR_LATENCY, i, j, flows, 8,
                        flows > 1 ? sec * exp(3.4 * rng_uniform(rng)) : sec);
                add(p, OP_PAIR_BW, i, j, flows, 65536,
                    (slow  ? 1.8e-3
                     : far ? 1.35e-3
                           : 0.54e-3) *
                        exp(0.01 * rng_normal(rng)));
            }
}

static void racks_are_found_whatever_a_crowd_does_to_latency(void **state)
{
    struct rng rng;

    (void)state;
    rng_seed(&rng, 11);
    for (int k = 0; k < 200; k++) {
        struct topo t;
        struct matrix m;
        struct points p = {.endpoints = 8, .transport = "mpi"};
        const char *text = "";
        some_hosts(&t, 8);
        two_racks(&p, &rng);
        fit(&m, &t, &p);
        for (int i = 0; i < 8; i++)
            if (topo_at(&m.topo, i, LEVEL_RACK) != i / 4)
                fail_msg("%d: host %d is in rack %d", k, i, topo_at(&m.topo, i, LEVEL_RACK));
        if (findings(&m, "bimodal", &text))
            fail_msg("%d: %s", k, text);
        matrix_free(&m);
    }
}

/* Bandwidth and latency that double in every third epoch of the first `moved` pairs. */
static void fit_restless(struct matrix *m, int moved)
{
    struct topo t;
    struct points p = {.endpoints = HOSTS, .transport = "mpi"};

    four_hosts(&t);
    for (int epoch = 0; epoch < PLAN_EPOCHS; epoch++) {
        for (int i = 0, n = 0; i < HOSTS; i++)
            for (int j = 0; j < HOSTS; j++)
                if (i != j)
                    add(&p, OP_PAIR_BW, i, j, 1, 262144,
                        n++ < moved && epoch % 3 == 1 ? 4e-3 : 2e-3);
        for (int op = OP_ALL_GATHER; op <= OP_ALL_TO_ALL; op++) {
            add(&p, op, 0, HOSTS - 1, 1, 4096, moved && epoch % 3 == 1 ? 3e-4 : 1e-4);
            p.point[p.count - 1].round = 1000 + op;
            p.point[p.count - 1].epoch = epoch;
        }
    }
    fit(m, &t, &p);
}

static void a_busy_machine_is_one_sentence(void **state)
{
    struct matrix m;
    const char *text = NULL;

    (void)state;
    fit_restless(&m, HOSTS * (HOSTS - 1));
    assert_int_equal(findings(&m, "busy", &text), 1);
    assert_non_null(strstr(text, "15 of 15 measurements"));
    assert_non_null(strstr(text, "by 200 %"));
    matrix_free(&m);
    fit_restless(&m, 0);
    assert_int_equal(findings(&m, "busy", &text), 0);
    matrix_free(&m);
}

/* One rack: no two hosts are in the tier between racks. */
static void a_tier_without_pairs_is_not_called_unmeasured(void **state)
{
    struct topo t;
    struct matrix m;
    struct points p = {.endpoints = HOSTS, .transport = "mpi"};
    const char *text = NULL;

    (void)state;
    four_hosts(&t);
    topo_add_group(&t, LEVEL_RACK, "rack-0");
    for (int i = 0; i < HOSTS; i++)
        t.endpoint[i].place.at[LEVEL_RACK] = 0;
    t.tiers = 0;
    t.tier[t.tiers++] = (struct tier_rule){"rack", 1u << LEVEL_RACK};
    t.tier[t.tiers++] = (struct tier_rule){"fabric", 0};
    for (int i = 0; i < HOSTS; i++)
        for (int j = 0; j < HOSTS; j++)
            if (i != j)
                add(&p, OP_PAIR_BW, i, j, 1, 262144, 2e-3);
    fit(&m, &t, &p);
    assert_int_equal(findings(&m, "unmeasured", &text), 0);
    matrix_free(&m);
}

/* All in 27 % of turns, a half in 40 %, else a third. */
static double beside(struct rng *rng)
{
    double x = rng_uniform(rng);

    return (x < 0.27 ? 2e-3 : x < 0.67 ? 4e-3 : 6e-3) * exp(0.01 * rng_normal(rng));
}

/* Every pair of 16 hosts has all of its bandwidth alone; beside others it runs in so many epochs. */
static void fit_crowded(struct matrix *m, int epochs)
{
    enum { CROWD = 16 };
    struct points p = {.endpoints = CROWD, .transport = "mpi"};
    struct topo t;
    struct rng rng;

    rng_seed(&rng, 5);
    some_hosts(&t, CROWD);
    for (int i = 0; i < CROWD; i++)
        for (int j = 0; j < CROWD; j++)
            for (int k = 0; k < epochs && i != j; k++) {
                int first = p.count;
                if (i < j)
                    add(&p, OP_PAIR_BW, i, j, 1, 262144, 2e-3 * exp(0.01 * rng_normal(&rng)));
                add(&p, OP_PAIR_BW, i, j, 4, 262144, beside(&rng));
                for (int n = first; n < p.count; n++)
                    p.point[n].epoch = (i + j + k) % PLAN_EPOCHS;
            }
    fit(m, &t, &p);
}

/* What others take is no difference between pairs: no spread, and no second heap. */
static void what_others_take_is_no_spread_of_pairs(void **state)
{
    const char *text = NULL;
    struct matrix m;

    (void)state;
    for (int epochs = 1; epochs <= PLAN_EPOCHS; epochs += PLAN_EPOCHS - 1) {
        fit_crowded(&m, epochs);
        assert_true(m.tier[0].loaded < 0.85);
        assert_true(m.tier[0].spread < 0.02);
        assert_int_equal(findings(&m, "bimodal", &text), 0);
        matrix_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_in_a_crowd_does_not_count_where_there_is_latency_alone),
        cmocka_unit_test(a_slow_host_is_named_where_half_of_all_pairs_are_its_own),
        cmocka_unit_test(racks_are_found_whatever_a_crowd_does_to_latency),
        cmocka_unit_test(an_unstable_pair_is_no_evidence),
        cmocka_unit_test(a_busy_machine_is_one_sentence),
        cmocka_unit_test(what_others_take_is_no_spread_of_pairs),
        cmocka_unit_test(a_tier_without_pairs_is_not_called_unmeasured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
