/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/declared.c, verdict/grouping.c - what is declared beside what was measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/stats.h"
#include "small.h"
#include "topo/groups.h"
#include "verdict/declared.h"

enum { HOSTS = 24, PER = 6 };

static void plain(struct grouping *g, int groups, const int *of)
{
    *g = (struct grouping){.source = SOURCE_SLURM, .level = LEVEL_RACK, .origin = mem_strdup("x")};
    g->of = mem_calloc(HOSTS + 1, sizeof(int));
    memcpy(g->of, of, HOSTS * sizeof(int));
    for (int i = 0; i < groups; i++)
        MEM_PUSH(g->name, g->groups) = mem_printf("g%d", i);
}

/* by(n): hosts in order, n to a group. */
static void by(struct grouping *g, int n)
{
    int of[HOSTS];

    for (int h = 0; h < HOSTS; h++)
        of[h] = h / n;
    plain(g, (HOSTS + n - 1) / n, of);
}

static enum relation relation(int a, int b)
{
    struct grouping x, y;
    struct compared c;

    by(&x, a);
    by(&y, b);
    grouping_compare(&c, &x, &y, HOSTS);
    enum relation r = c.relation;
    assert_int_equal(compared_differ(&c, &x), r == RELATION_CROSSING);
    compared_free(&c);
    grouping_free(&x);
    grouping_free(&y);
    return r;
}

static void nested_and_crossing(void **state)
{
    (void)state;
    assert_int_equal(relation(6, 6), RELATION_EQUAL);
    assert_int_equal(relation(3, 6), RELATION_FINER);
    assert_int_equal(relation(12, 6), RELATION_COARSER);
    assert_int_equal(relation(4, 6), RELATION_CROSSING);
    assert_int_equal(relation(1, 6), RELATION_NONE); /* every host alone: nothing is said */
}

/* Any number of hosts that changed places are found, each with its partner, and nobody else. */
static void shuffled_claims_are_found_exactly(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 50; seed++) {
        struct rng rng;
        int of[HOSTS], moved[HOSTS] = {0}, swaps = 1 + (int)(seed % 4), wanted = 0;
        struct grouping a, b;
        struct compared c;

        rng_seed(&rng, seed);
        for (int h = 0; h < HOSTS; h++)
            of[h] = h / PER;
        for (int s = 0; s < swaps; s++) { /* at most two of six hosts leave a group */
            int x = s * PER + (int)rng_below(&rng, 3),
                y = ((s + 1) * PER + 3 + (int)rng_below(&rng, 3)) % HOSTS, t = of[x];
            of[x] = of[y];
            of[y] = t;
            moved[x] = y + 1;
            moved[y] = x + 1;
        }
        for (int h = 0; h < HOSTS; h++)
            wanted += moved[h] > 0;
        plain(&a, HOSTS / PER, of);
        by(&b, PER);
        grouping_compare(&c, &a, &b, HOSTS);
        assert_int_equal(c.relation, RELATION_CROSSING);
        if (c.misfits != wanted)
            fail_msg("seed %u: %d misfits where %d hosts were moved", seed, c.misfits, wanted);
        for (int i = 0; i < c.misfits; i++) {
            int h = c.misfit[i].host;
            assert_true(moved[h] > 0);
            assert_int_equal(c.misfit[i].with, h / PER);
            assert_int_equal(c.misfit[i].in, of[h]);
            assert_int_equal(c.misfit[i].swap, moved[h] - 1);
        }
        compared_free(&c);
        grouping_free(&a);
        grouping_free(&b);
    }
}

static void a_misplaced_host_in_a_coarser_grouping_is_named(void **state)
{
    struct grouping a, b;
    struct compared c;

    (void)state;
    by(&a, 12);
    by(&b, 4);
    a.of[5] = 1; /* the others of 4..7 are in group 0 */
    grouping_compare(&c, &a, &b, HOSTS);
    assert_int_equal(c.relation, RELATION_CROSSING);
    assert_int_equal(c.misfits, 1);
    assert_int_equal(c.misfit[0].host, 5);
    assert_int_equal(c.misfit[0].with, 0);
    assert_int_equal(c.misfit[0].swap, -1);
    compared_free(&c);
    grouping_compare(&c, &b, &a, HOSTS); /* the other way round: 4..7 are torn apart */
    assert_int_equal(c.misfits, 1);
    assert_int_equal(c.misfit[0].host, 5);
    compared_free(&c);
    grouping_free(&a);
    grouping_free(&b);
}

/* Three of four groups equal, one split in two: a mistake, no other level. */
static void one_split_group_is_a_mistake(void **state)
{
    struct grouping a, b;
    struct compared c;

    (void)state;
    by(&a, PER);
    by(&b, PER);
    for (int h = 0; h < 3; h++)
        b.of[h] = b.groups;
    MEM_PUSH(b.name, b.groups) = mem_strdup("split");
    grouping_compare(&c, &a, &b, HOSTS);
    assert_int_equal(c.relation, RELATION_COARSER);
    assert_int_equal(c.same, 3);
    assert_true(compared_differ(&c, &a));
    assert_int_equal(c.misfits, 0);
    compared_free(&c);
    grouping_free(&a);
    grouping_free(&b);
}

/* --- with points --- */

/* One endpoint a host, racks of PER: 10 and 4 GB/s. */
static void measure(struct points *p, int hosts)
{
    memset(p, 0, sizeof(*p));
    p->endpoints = HOSTS;
    for (int a = 0; a < hosts; a++)
        for (int b = 0; b < hosts; b++)
            if (a != b) {
                struct point q = {
                    .op = OP_PAIR_BW, .src = a, .dst = b, .flows = 1, .bytes = 1 << 20};
                double sec = (1 << 20) / (a / PER == b / PER ? 10e9 : 4e9);
                q.sec = point_secs(sec, sec, sec);
                q.n = 9;
                MEM_PUSH(p->point, p->count) = q;
            }
}

static void claims(struct topo *t, bool swap)
{
    char name[8], host[8];

    for (int h = 0; h < HOSTS; h++) {
        int g = swap && h == 1 ? 2 : swap && h == 2 * PER ? 0 : h / PER;
        snprintf(name, sizeof(name), "b%d", g);
        snprintf(host, sizeof(host), "n%02d", h);
        group_add_host(t, SOURCE_SLURM, LEVEL_DOMAIN, "topology.conf", name, host);
    }
}

/* Coordinates that contradict are of no influence: they are declarations themselves. */
static void points_are_clustered_as_if_nothing_were_declared(void **state)
{
    struct topo t;
    struct points p;

    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct declared d;
        small_topo(&t, 3, 8, 1, true, ENDPOINT_CPU); /* racks of 8: wrong */
        topo_default_tiers(&t);
        claims(&t, swap);
        measure(&p, HOSTS);
        declared_init(&d, &t);
        declared_points(&d, &p);
        declared_compare(&d);
        assert_int_equal(d.measured, 1);
        assert_int_equal(d.grouping[0].groups, HOSTS / PER);
        assert_string_equal(d.grouping[0].name[1], "n[06-11]");
        assert_int_equal(d.groupings, 3);
        assert_int_equal(declared_code(&d), EXIT_BELOW); /* the user's racks of 8 cross */
        const struct comparison *c = &d.comparison[0];
        assert_int_equal(d.grouping[c->a].source, SOURCE_SLURM);
        assert_int_equal(c->differ, swap);
        if (swap)
            assert_string_equal(
                c->text, "slurm topology.conf, domain against measured racks (by bandwidth): "
                         "crossing: 2 of 24 hosts are elsewhere: b2 holds n01, measured with b0 "
                         "(5 of 5 pairs at 10.0 GB/s); swap suspected with n12");
        assert_int_equal(c->how.relation, swap ? RELATION_CROSSING : RELATION_EQUAL);
        json_t *json = declared_json(&d);
        assert_true(json_is_false(json_object_get(json, "agree")));
        assert_int_equal(json_array_size(json_object_get(json, "comparisons")), d.comparisons);
        json_decref(json);
        declared_free(&d);
        free(p.point);
        topo_free(&t);
    }
}

/* The last hosts were not measured: a quarter of them, or one more. */
static void groups_that_leave_out_many_hosts_judge_nobody(void **state)
{
    struct topo t;
    struct points p;

    (void)state;
    for (int lost = HOSTS / 4; lost <= HOSTS / 4 + 1; lost++) {
        struct declared d;
        small_topo(&t, 4, PER, 1, true, ENDPOINT_CPU);
        topo_default_tiers(&t);
        claims(&t, true);
        measure(&p, HOSTS - lost);
        declared_init(&d, &t);
        declared_points(&d, &p);
        declared_compare(&d);
        bool judged = lost == HOSTS / 4;
        assert_int_equal(d.measured, judged);
        assert_int_equal(d.unmeasured == NULL, judged);
        if (!judged)
            assert_string_equal(d.unmeasured,
                                "measuring places only 17 of 24 hosts: too few pairs");
        declared_free(&d);
        free(p.point);
        topo_free(&t);
    }
}

static void nothing_measured_is_not_judged(void **state)
{
    struct topo t;
    struct declared d;

    (void)state;
    small_topo(&t, 4, PER, 1, true, ENDPOINT_CPU);
    claims(&t, false);
    declared_init(&d, &t);
    declared_measured(&d, &t, "m.json");
    declared_compare(&d);
    assert_non_null(strstr(d.unmeasured, "m.json has no coordinate that was measured"));
    assert_int_equal(d.comparisons, 1); /* the two declarations, which agree */
    assert_false(d.comparison[0].differ);
    assert_int_equal(declared_code(&d), EXIT_UNJUDGED);
    declared_free(&d);
    for (int i = 0; i < t.endpoints; i++)
        t.endpoint[i].source[LEVEL_RACK] = SOURCE_MEASURED;
    declared_init(&d, &t);
    declared_measured(&d, &t, "m.json");
    declared_compare(&d);
    assert_null(d.unmeasured);
    assert_int_equal(declared_code(&d), EXIT_GOOD);
    declared_free(&d);
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_and_crossing),
        cmocka_unit_test(shuffled_claims_are_found_exactly),
        cmocka_unit_test(a_misplaced_host_in_a_coarser_grouping_is_named),
        cmocka_unit_test(one_split_group_is_a_mistake),
        cmocka_unit_test(points_are_clustered_as_if_nothing_were_declared),
        cmocka_unit_test(groups_that_leave_out_many_hosts_judge_nobody),
        cmocka_unit_test(nothing_measured_is_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
