/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of devices in one fabric, and what each may have. */
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
#include "fit/classes_impl.h"
#include "topo/nic.h"

enum { GPUS = 4, HOSTS = 8, NVLINK = 0, FABRIC = 1 };

struct kind {
    const char *model;
    double nic_Bps;
};
static const struct kind newer = {"NVIDIA H100", 50e9}, older = {"NVIDIA A100", 25e9};

/* The last `old` of HOSTS hosts are of the second kind. */
static void scene(struct topo *t, struct kind most, struct kind other, int old)
{
    char name[16];

    topo_init(t);
    t->tier[t->tiers++] = (struct tier_rule){"nvlink", 1u << LEVEL_HOST};
    t->tier[t->tiers++] = (struct tier_rule){"fabric", 0};
    for (int h = 0; h < HOSTS; h++) {
        const struct kind *k = h < HOSTS - old ? &most : &other;
        snprintf(name, sizeof(name), "n%02d", h);
        topo_add_host(t, name);
        for (int g = 0; g < GPUS; g++) {
            int id = topo_add_endpoint(t, h, ENDPOINT_GPU);
            struct endpoint *e = &t->endpoint[id];
            snprintf(e->model, sizeof(e->model), "%s", k->model);
            if (k->nic_Bps > 0) {
                struct nic n;
                nic_init(&n, h);
                n.rate_Bps = k->nic_Bps;
                e->nic = t->nics;
                MEM_PUSH(t->nic, t->nics) = n;
            }
        }
    }
}

/* Every pair of `t`, where `slow` of a tier's rate is what the last `old` hosts reach. */
static void make(struct classes *c, const struct topo *t, int old, double slow, double slow_nvlink)
{
    static const double rate[] = {[NVLINK] = 370e9, [FABRIC] = 49e9};
    struct obs *o = NULL;
    struct rng rng;
    int n = 0;

    rng_seed(&rng, 7);
    for (int a = 0; a < t->endpoints; a++)
        for (int b = 0; b < t->endpoints; b++) {
            int tier = a == b ? -1 : topo_tier(t, a, b), from = (HOSTS - old) * GPUS;
            if (a == b)
                continue;
            bool is = a >= from || b >= from;
            double share = !is ? 1 : tier == NVLINK ? slow_nvlink : slow;
            MEM_PUSH(o, n) =
                (struct obs){.op = OP_PAIR_BW,
                             .src = a,
                             .dst = b,
                             .bytes = 1e6,
                             .sec = 1e6 / (rate[tier] * share * exp(0.01 * rng_normal(&rng)))};
        }
    classes_make(c, t, o, n, 1e6);
    free(o);
}

static void share_is(const struct classes *c, int src, int dst, int tier, double share)
{
    double is = classes_share(c, src, dst, tier);

    if (fabs(is / share - 1) > 0.02)
        fail_msg("%d to %d in tier %d: %.3f, not %.3f", src, dst, tier, is, share);
}

static void one_kind_has_no_classes(void **state)
{
    struct topo t;
    struct classes c;

    (void)state;
    scene(&t, newer, newer, 0);
    make(&c, &t, 2, 0.5, 0.5);
    assert_int_equal(c.count, 1);
    assert_true(classes_share(&c, 0, HOSTS * GPUS - 1, FABRIC) == 1);
    classes_free(&c);
    topo_free(&t);
}

static void the_slower_end_rules(void **state)
{
    const int last = HOSTS * GPUS - 1;
    struct topo t;
    struct classes c;

    (void)state;
    scene(&t, newer, older, 2);
    make(&c, &t, 2, 0.5, 0.5);
    assert_int_equal(c.count, 2);
    assert_string_equal(c.of[0].model, newer.model);
    assert_int_equal(c.of[1].hosts, 2);
    share_is(&c, 0, GPUS, FABRIC, 1);
    share_is(&c, 0, last, FABRIC, 0.5);
    share_is(&c, last, 0, FABRIC, 0.5);
    share_is(&c, last, last - GPUS, FABRIC, 0.5);
    share_is(&c, 0, 1, NVLINK, 1);
    share_is(&c, last, last - 1, NVLINK, 0.5); /* NVLink: as their model measures */
    assert_int_equal(classes_pair(&c, 0, last, FABRIC), 1);
    assert_false(c.own[FABRIC][1]);
    assert_true(c.own[NVLINK][1]);
    char *name = classes_name(&c, 1);
    assert_string_equal(name, "NVIDIA A100 with NICs of 200 Gb/s");
    free(name);
    classes_free(&c);
    topo_free(&t);
}

/* The reference is what most have, though it be the slower one. */
static void most_are_the_reference(void **state)
{
    struct topo t;
    struct classes c;

    (void)state;
    scene(&t, newer, older, 5);
    make(&c, &t, 5, 0.5, 0.5);
    assert_string_equal(c.of[0].model, older.model);
    share_is(&c, 0, 1, NVLINK, 2);
    share_is(&c, 0, GPUS, FABRIC, 2);
    share_is(&c, 0, HOSTS * GPUS - 1, FABRIC, 1);
    classes_free(&c);
    topo_free(&t);
    scene(&t, older, newer, 4); /* as many of both: the faster NICs */
    make(&c, &t, 4, 2, 2);
    assert_string_equal(c.of[0].model, newer.model);
    classes_free(&c);
    topo_free(&t);
}

/* A class against its declaration: two hosts may be bad, three that agree are a kind; and a rate within
 * 10 % is as declared. */
static void own_rate(int old, double reached, double share)
{
    struct topo t;
    struct classes c;

    scene(&t, newer, older, old);
    make(&c, &t, old, reached, 1);
    share_is(&c, 0, HOSTS * GPUS - 1, FABRIC, share);
    assert_true(c.own[FABRIC][1] == (share != 0.5));
    classes_free(&c);
    topo_free(&t);
}

static void hosts_that_agree_are_a_kind(void **state)
{
    (void)state;
    own_rate(2, 0.35, 0.5);
    own_rate(3, 0.35, 0.35);
    own_rate(3, 0.465, 0.5); /* 0.93 of the declaration */
    own_rate(3, 0.43, 0.43); /* 0.86 */
    own_rate(3, 0.535, 0.5); /* 1.07 */
    own_rate(3, 0.57, 0.57); /* 1.14 */
}

/* A slow half of a class does not move it. */
static void faults_are_no_class(void **state)
{
    struct topo t;
    struct classes c;
    struct obs *o = NULL;
    int n = 0;

    (void)state;
    scene(&t, newer, older, 3);
    for (int a = 0; a < t.endpoints; a++)
        for (int b = 0; b < t.endpoints; b++) {
            if (a / GPUS == b / GPUS)
                continue;
            bool is = a >= 5 * GPUS || b >= 5 * GPUS, bad = a / GPUS == 6 || b / GPUS == 6;
            double rate = 49e9 * (is ? 0.5 : 1) * (bad ? 0.6 : 1);
            MEM_PUSH(o, n) =
                (struct obs){.op = OP_PAIR_BW, .src = a, .dst = b, .bytes = 1e6, .sec = 1e6 / rate};
        }
    classes_make(&c, &t, o, n, 1e6);
    share_is(&c, 0, 6 * GPUS, FABRIC, 0.5);
    assert_false(c.own[FABRIC][1]);
    free(o);
    classes_free(&c);
    topo_free(&t);
}

/* Is the rate of the older three hosts their own, where so many of its pairs, of all, were measured at 0.8 of
 * what is declared, the others at all of it? */
static bool is_own(int slow, int pairs)
{
    struct topo t;
    struct classes c;
    struct obs *o = NULL;
    bool is;
    int n = 0;

    scene(&t, newer, older, 3);
    for (int i = 0; i < 2 * pairs; i++) {
        bool old = i < pairs;
        int a = i % GPUS, b = (old ? 5 : 1 + i % 2) * GPUS + i % (3 * GPUS) / (old ? 1 : 3);
        double rate = 49e9 * (old ? 0.5 : 1) * (i < slow ? 0.8 : 1);
        MEM_PUSH(o, n) =
            (struct obs){.op = OP_PAIR_BW, .src = a, .dst = b, .bytes = 1e6, .sec = 1e6 / rate};
    }
    classes_make(&c, &t, o, n, 1e6);
    is = c.own[FABRIC][1];
    free(o);
    classes_free(&c);
    topo_free(&t);
    return is;
}

static void twelve_pairs_and_a_slow_three_quarters_are_a_kind(void **state)
{
    (void)state;
    assert_false(is_own(11, 11));
    assert_true(is_own(12, 12));
    assert_false(is_own(70, 100));
    assert_true(is_own(80, 100));
}

static void sixteen_kinds_are_told_apart(void **state)
{
    struct topo t;
    struct classes c;

    (void)state;
    scene(&t, newer, older, 3);
    for (int i = 0; i < t.endpoints; i++)
        snprintf(t.endpoint[i].model, sizeof(t.endpoint[i].model), "kind %d", i);
    classes_make(&c, &t, NULL, 0, 1e6);
    assert_int_equal(c.count, 16);
    classes_free(&c);
    topo_free(&t);
}

static int classes_of(double a, double b)
{
    struct kind one = {"NVIDIA H100", a}, two = {"NVIDIA H100", b};
    struct topo t;
    struct classes c;

    scene(&t, one, two, 3);
    make(&c, &t, 3, 1, 1);
    int n = c.count;
    classes_free(&c);
    topo_free(&t);
    return n;
}

static void rates_that_drivers_round_are_one(void **state)
{
    (void)state;
    assert_int_equal(classes_of(50e9, 50e9), 1);
    assert_int_equal(classes_of(50e9, 49.2e9), 1);
    assert_int_equal(classes_of(50e9, 48.8e9), 2);
}

/* Nothing known of the NICs: no share but for three hosts that agree. */
static void unknown_rates_declare_nothing(void **state)
{
    struct kind unknown = {"NVIDIA A100", 0};
    struct topo t;
    struct classes c;

    (void)state;
    scene(&t, newer, unknown, 2);
    make(&c, &t, 2, 0.5, 0.5);
    share_is(&c, 0, HOSTS * GPUS - 1, FABRIC, 1);
    classes_free(&c);
    topo_free(&t);
    scene(&t, newer, unknown, 3);
    make(&c, &t, 3, 0.5, 0.5);
    assert_true(isnan(c.declared[FABRIC][1]));
    classes_free(&c);
    topo_free(&t);
}

/* Models of which few pairs without NICs were measured are not judged by those. */
static void few_pairs_without_nics(void **state)
{
    (void)state;
    for (int pairs = 3; pairs <= 4; pairs++) {
        struct topo t;
        struct classes c;
        struct obs o[16];
        int n = 0;
        scene(&t, newer, older, 1);
        for (int i = 0; i < 4; i++)
            o[n++] = (struct obs){
                .op = OP_PAIR_BW, .src = i, .dst = (i + 1) % 4, .bytes = 1e6, .sec = 1e-6};
        for (int i = 0; i < pairs; i++)
            o[n++] = (struct obs){.op = OP_PAIR_BW,
                                  .src = 28 + i,
                                  .dst = 28 + (i + 1) % 4,
                                  .bytes = 1e6,
                                  .sec = 2e-6};
        classes_make(&c, &t, o, n, 1e6);
        assert_true(classes_share(&c, 28, 29, NVLINK) == (pairs < 4 ? 1 : 0.5));
        classes_free(&c);
        topo_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kind_has_no_classes),
        cmocka_unit_test(the_slower_end_rules),
        cmocka_unit_test(most_are_the_reference),
        cmocka_unit_test(hosts_that_agree_are_a_kind),
        cmocka_unit_test(faults_are_no_class),
        cmocka_unit_test(rates_that_drivers_round_are_one),
        cmocka_unit_test(unknown_rates_declare_nothing),
        cmocka_unit_test(few_pairs_without_nics),
        cmocka_unit_test(twelve_pairs_and_a_slow_three_quarters_are_a_kind),
        cmocka_unit_test(sixteen_kinds_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
