/* SPDX-License-Identifier: BSD-3-Clause */
/* The fit against a shaped fabric that is a formula: hosts in racks, a NIC each, a trunk per rack
 * that the flows of a round share, a delay between racks; only host names are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fit/fit.h"
#include "small.h"

struct truth {
    int racks, per;
    double nic, trunk, delay; /* B/s, s */
    int slow;
    double slow_nic;
    double noise;
    int dead, corrupt; /* host that never answers, receives wrong data; -1 */
    double cut;        /* share of rack 0's trunk that is left; 0: all */
    int late;          /* hosts 0 and this one have 40 us more between them; 0: none */
    double
        rare; /* two hosts, `corrupt` and the last one, receive wrong data in this share of their checks,
                          in collectives too; 0: only `corrupt`, in all pairs */
    uint64_t hiccups; /* seed of which points of a second epoch are late; 0: none */
};

static const struct truth lab = {2, 4, 119e6, 47.8e6, 50e-6, -1, 0, 0.002, -1, -1, 0, 0, 0, 0};

static int far(const struct truth *t, int a, int b)
{
    return a / t->per != b / t->per;
}

/* Flows of the round that use the trunk of a's rack in the same direction. */
static int flows(const struct truth *t, const struct round *r, int a, int b)
{
    int n = 0;

    for (int g = 0; g < r->groups; g++) {
        const int *m = r->group[g].members;
        n += far(t, m[0], m[1]) && (m[0] / t->per == a / t->per || m[1] / t->per == b / t->per);
    }
    return n;
}

static double seconds(const struct truth *t, const struct round *r, int a, int b, double bytes)
{
    double ca = a == t->slow ? t->slow_nic : t->nic, cb = b == t->slow ? t->slow_nic : t->nic;
    double rate = fmin(ca, cb), alpha = 25e-6 + (far(t, a, b) ? t->delay : 0);

    if (far(t, a, b))
        rate = fmin(rate, t->trunk / (r->op == OP_PAIR_LATENCY ? 1 : flows(t, r, a, b)));
    if (far(t, a, b) && t->cut > 0 && (a < t->per || b < t->per))
        rate *= t->cut;
    if (t->late && a + b == t->late && a * b == 0)
        alpha += 40e-6;
    return r->op == OP_PAIR_LATENCY ? alpha + bytes / rate : 2e-6 + bytes / rate;
}

static double ring(const struct truth *t, const struct plan_group *g, double bytes)
{
    double rate = t->nic;
    int crosses = 0;

    for (int i = 0; i < g->size; i++) {
        int a = g->members[i], b = g->members[(i + 1) % g->size];
        rate = fmin(rate, a == t->slow || b == t->slow ? t->slow_nic : t->nic);
        crosses += far(t, a, b);
    }
    if (crosses)
        rate = fmin(rate, t->trunk);
    return (g->size - 1) * 25e-6 + bytes * (g->size - 1) / g->size / rate;
}

/* One in 20 takes up to three times as long in its second epoch, and says so with any interval. */
static double hiccup(const struct truth *t, const struct round *r, int epoch, int group, int step)
{
    struct rng rng;

    if (!t->hiccups || epoch != 1 || !op_is_pair(r->op))
        return 1;
    rng_seed(&rng, t->hiccups + 1000003 * (uint64_t)(r->id * 64 + group) + (uint64_t)step);
    return rng_uniform(&rng) < 0.05 ? 1 + 2 * rng_uniform(&rng) : 1;
}

/* Host 0 is in every group, and takes part in more failed checks than each culprit. */
static bool is_wrong(const struct truth *t, const struct point *q, const struct plan_group *x,
                     struct rng *rng)
{
    int last = t->racks * t->per - 1;
    bool meets = false;

    if (!(t->rare > 0))
        return q->dst == t->corrupt && op_is_pair(q->op);
    for (int i = op_is_pair(q->op); i < x->size; i++)
        meets |= x->members[i] == t->corrupt || x->members[i] == last;
    return rng_uniform(rng) < t->rare && meets;
}

static void add_points(struct points *p, const struct truth *t, const struct round *r,
                       struct rng *rng)
{
    for (int e = 0; e < PLAN_EPOCHS; e++)
        for (int g = 0; g < r->groups && r->epochs >> e & 1; g++)
            for (int s = 0; s < plan_steps(r); s++) {
                const struct plan_group *x = &r->group[g];
                struct point q = {
                    .round = r->id, .group = g, .epoch = e, .stage = r->stage, .op = r->op};
                q.bytes = plan_size(r, x->size, s);
                if (!q.bytes)
                    continue;
                q.ranks = x->size;
                q.src = x->members[0];
                q.dst = x->members[x->size - 1];
                q.flows = r->groups;
                double sec = op_is_pair(r->op) ? seconds(t, r, q.src, q.dst, (double)q.bytes)
                                               : ring(t, x, (double)q.bytes);
                sec *= exp(t->noise * rng_normal(rng)) * hiccup(t, r, e, g, s);
                q.sec = point_secs(sec, 0.99 * sec, 1.01 * sec);
                q.n = 16;
                q.stop = STOP_CI;
                for (int i = 0; i < x->size; i++)
                    if (x->members[i] == t->dead)
                        q.stop = STOP_FAILED;
                q.checked = true;
                q.wrong = is_wrong(t, &q, x, rng);
                MEM_PUSH(p->point, p->count) = q;
            }
}

/* Groups of three hosts, host 0 in each of them. */
static void add_groups_of_0(struct plan *p, int hosts)
{
    for (int k = 0; k < 8 * (hosts - 1); k++) {
        struct round *r = plan_add(p, STAGE_COLLECTIVE, OP_ALL_GATHER, 1);
        const int i = k % (hosts - 1) + 1, members[] = {0, i, i % (hosts - 1) + 1};
        r->first = r->last = 1 << 20;
        r->epochs = (1u << PLAN_EPOCHS) - 1;
        r->group[0] = (struct plan_group){mem_dup(members, 3, sizeof(int)), 3};
    }
}

/* Plan the fabric with only host names visible, measure it by formula, fit. */
static void fit(struct matrix *m, const struct truth *t)
{
    struct topo topo;
    struct plan plan;
    struct plan_opts po;
    struct points p = {.endpoints = t->racks * t->per, .transport = "mpi"};
    struct fit_opts o;
    struct err err;
    struct rng rng;

    small_topo(&topo, 1, t->racks * t->per, 1, false, ENDPOINT_CPU);
    topo_default_tiers(&topo);
    plan_defaults(&po);
    po.factor = 4;
    if (plan_make(&plan, &topo, &po, &err) < 0)
        fail_msg("%s", err.text);
    if (t->rare > 0)
        add_groups_of_0(&plan, t->racks * t->per);
    rng_seed(&rng, 3);
    for (int i = 0; i < plan.rounds; i++)
        add_points(&p, t, &plan.round[i], &rng);
    fit_defaults(&o);
    if (fit_matrix(m, &topo, &plan, &p, &o, &err) < 0)
        fail_msg("%s", err.text);
    free(p.point);
    plan_free(&plan);
    topo_free(&topo);
}

static const struct finding *finding(const struct matrix *m, const char *kind)
{
    for (int i = 0; i < m->findings; i++)
        if (!strcmp(m->finding[i].kind, kind))
            return &m->finding[i];
    return NULL;
}

/* Every pair's bandwidth at the size of the pair matrix and its latency are the truth's. */
static void pairs_are_truth(const struct matrix *m, const struct truth *t, double share)
{
    const struct round alone = {.op = OP_PAIR_BW, .groups = 0};

    for (int a = 0; a < t->racks * t->per; a++)
        for (int b = 0; b < t->racks * t->per; b++) {
            if (a == b || a == t->dead || b == t->dead)
                continue;
            struct plan_group g = {(int[]){a, b}, 2};
            struct round r = alone;
            r.group = &g;
            r.groups = 1;
            double want = seconds(t, &r, a, b, 262144), add;
            int tier = topo_tier(&m->topo, a, b);
            double got = curve_time(&m->tier[tier].curve[DIR_UNI], 262144) /
                         matrix_factor(m, a, b, NULL, &add);
            if (!(fabs(got / want - 1) < share))
                fail_msg("%d to %d: %g s where the truth is %g", a, b, got, want);
            double lat = 25e-6 + (far(t, a, b) ? t->delay : 0);
            if (t->delay > 0 && a != t->slow && b != t->slow)
                assert_true(fabs(m->tier[tier].curve[DIR_ONEWAY].alpha - lat) < 2e-6);
        }
}

static void racks_are_truth(const struct matrix *m, const struct truth *t)
{
    assert_int_equal(m->topo.group[LEVEL_RACK].count, t->racks);
    for (int i = 0; i < t->racks * t->per; i++) {
        if (m->topo.endpoint[i].place.at[LEVEL_RACK] != i / t->per)
            fail_msg("host %d in rack %d", i, m->topo.endpoint[i].place.at[LEVEL_RACK]);
        assert_int_equal(m->topo.endpoint[i].source[LEVEL_RACK], SOURCE_MEASURED);
    }
}

static void two_racks_are_found_with_their_tiers(void **state)
{
    struct matrix m;

    (void)state;
    fit(&m, &lab);
    racks_are_truth(&m, &lab);
    pairs_are_truth(&m, &lab, 0.01);
    assert_int_equal(m.exceptions, 0);
    assert_string_equal(m.tier[m.tiers - 2].rule.name, "rack");
    assert_string_equal(m.tier[m.tiers - 1].rule.name, "fabric");
    assert_string_equal(finding(&m, "racks")->text,
                        "2 racks found by bandwidth: n[00-03]; n[04-07]");
    matrix_free(&m);
}

static void a_shared_trunk_is_contention_and_no_bad_link(void **state)
{
    struct matrix m;

    (void)state;
    fit(&m, &lab);
    const struct finding *f = finding(&m, "contention");
    assert_non_null(f);
    assert_string_equal(f->text,
                        "rack-00 and rack-01: 4 flows at once each have 0.25 of the rate of one "
                        "alone: a shared trunk, not a bad link");
    assert_int_equal(m.exceptions, 0);
    matrix_free(&m);
}

/* The slow host is named, and nobody else. */
static void named(const struct truth *t, int exceptions)
{
    struct matrix m;

    fit(&m, t);
    pairs_are_truth(&m, t, 0.03);
    if (m.exceptions != exceptions)
        fail_msg("%d exceptions, the first: %s", m.exceptions,
                 m.exceptions ? m.exception[0].why : "");
    for (int i = 0; i < m.exceptions; i++) {
        assert_int_equal(m.exception[i].part, PART_ENDPOINT);
        assert_int_equal(m.exception[i].a, t->slow);
        assert_int_equal(m.exception[i].side, SIDE_BOTH);
    }
    matrix_free(&m);
}

static void a_degraded_host_is_named_and_its_peers_are_not(void **state)
{
    struct truth t = lab;

    (void)state;
    t.slow = 5;
    t.slow_nic = 72e6; /* above the trunk: only its own rack sees it */
    named(&t, 1);
    t.slow_nic = 36e6; /* below the trunk: both tiers, two factors */
    named(&t, 2);
    t.delay = 0; /* its rack is told by shared traffic alone */
    named(&t, 2);
    t.racks = 3;
    t.per = 3;
    named(&t, 2);
    t.racks = 4; /* with one neighbour nothing tells its rack, nor that one's: one factor for all */
    t.per = 2;
    t.slow = 2;
    named(&t, 1);
}

static void a_nic_slower_than_a_slow_trunk_has_a_factor_for_each_tier(void **state)
{
    struct truth t = lab;

    (void)state;
    t.racks = 2;
    t.per = 2;
    t.nic = 239e6;
    t.trunk = 143e6;
    t.delay = 200e-6;
    t.slow = 3;
    t.slow_nic = 107e6;
    named(&t, 2);
}

/* Where a rack is of two, one pair of it is all that says so. */
static void and_in_racks_of_two_or_three(void **state)
{
    (void)state;
    for (int k = 0; k < 48; k++) {
        struct truth t = lab;
        struct matrix m;
        t.racks = 2 + k % 4;
        t.per = k % 4 ? 2 + k % 2 : 3;
        t.slow = k % (t.racks * t.per);
        t.slow_nic = t.trunk * (0.3 + 0.6 * k / 48);
        fit(&m, &t);
        pairs_are_truth(&m, &t, 0.06);
        matrix_free(&m);
    }
}

static void a_lone_pair_that_cannot_say_which_end_is_slow_is_named_itself(void **state)
{
    struct matrix m;
    struct truth t = lab;

    (void)state;
    t.racks = 4;
    t.per = 2;
    t.nic = 71.7e6;
    t.trunk = 23.9e6;
    t.delay = 30e-6;
    t.slow = 6;
    t.slow_nic = 35.9e6;
    fit(&m, &t);
    pairs_are_truth(&m, &t, 0.03);
    assert_int_equal(m.exceptions, 1);
    assert_int_equal(m.exception[0].part, PART_PAIR);
    assert_int_equal(m.exception[0].a + m.exception[0].b, 13);
    assert_int_equal(m.exception[0].side, SIDE_BOTH);
    matrix_free(&m);
}

static void a_wide_trunk_leaves_latency_to_tell_racks_apart(void **state)
{
    struct truth t = lab;
    struct matrix m;

    (void)state;
    t.trunk = 900e6;
    fit(&m, &t);
    racks_are_truth(&m, &t);
    assert_non_null(strstr(finding(&m, "racks")->text, "found by latency"));
    assert_int_equal(m.exceptions, 0);
    matrix_free(&m);
}

static void latency_is_truth(const struct matrix *m, const struct truth *t)
{
    const struct round one = {.op = OP_PAIR_LATENCY};
    struct cost c;

    for (int a = 0; a < t->racks * t->per; a++)
        for (int b = 0; b < t->racks * t->per; b++) {
            double want = a == b ? 0 : seconds(t, &one, a, b, 8);
            matrix_pair(m, a, b, 8, &c);
            if (a != b && !(fabs(c.sec / want - 1) < 0.02))
                fail_msg("%d to %d: %g s where the truth is %g", a, b, c.sec, want);
        }
}

/* Trunks as wide as NICs but for one: bandwidth sets its rack apart, latency tells all three. */
static void a_cut_uplink_is_a_part_and_no_boundary(void **state)
{
    struct truth t = lab;
    struct matrix m;

    (void)state;
    t.racks = 3;
    t.per = 3;
    t.trunk = 10 * t.nic;
    t.delay = 60e-6;
    t.cut = 0.3;
    fit(&m, &t);
    racks_are_truth(&m, &t);
    assert_int_equal(m.topo.group[LEVEL_SPINE].count, 0);
    latency_is_truth(&m, &t);
    assert_int_equal(m.exceptions, 1);
    assert_int_equal(m.exception[0].part, PART_RACK_UPLINKS);
    assert_int_equal(m.exception[0].a, 0);
    matrix_free(&m);
}

/* Whatever is slow, points that are late in one of two epochs name nothing beside it and hide nothing; of six hosts they
 * may hide that two are a rack, seldom. */
static void a_hiccup_is_no_part(void **state)
{
    static const double cut[] = {0, 0.25, 0.25, 0}, slow[] = {0, 0, 0, 36e6};
    int lost = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct matrix m, calm;
        struct truth t = lab;
        t.racks = 3;
        t.per = 2 + (seed / 4 % 2);
        t.trunk = seed % 4 == 1 ? 10 * t.nic : t.trunk;
        t.cut = cut[seed % 4];
        t.slow = slow[seed % 4] > 0 ? 1 : -1;
        t.slow_nic = slow[seed % 4];
        fit(&calm, &t);
        t.hiccups = seed;
        fit(&m, &t);
        for (int i = 0; i < m.exceptions; i++) {
            int k = 0;
            while (k < calm.exceptions && (calm.exception[k].part != m.exception[i].part ||
                                           calm.exception[k].a != m.exception[i].a))
                k++;
            if (k == calm.exceptions)
                fail_msg("seed %d: %s", (int)seed, m.exception[i].why);
        }
        bool racks = m.topo.group[LEVEL_RACK].count == t.racks;
        lost += !racks;
        if (racks && m.exceptions < calm.exceptions)
            fail_msg("seed %d hides %s", (int)seed, calm.exception[0].why);
        matrix_free(&m);
        matrix_free(&calm);
    }
    assert_in_range(lost, 0, 400 / 20);
}

static void a_pair_that_answers_late_adds_its_latency(void **state)
{
    struct truth t = lab;
    struct matrix m;

    (void)state;
    t.late = 2;
    fit(&m, &t);
    latency_is_truth(&m, &t);
    assert_true(m.exceptions >= 1);
    for (int i = 0; i < m.exceptions; i++) {
        assert_int_equal(m.exception[i].part, PART_PAIR);
        assert_int_equal(m.exception[i].a + m.exception[i].b, 2);
        assert_true(m.exception[i].factor == 1);
        assert_true(fabs(m.exception[i].alpha_add / 40e-6 - 1) < 0.02);
    }
    matrix_free(&m);
}

static void one_rack_stays_one_tier(void **state)
{
    struct truth t = lab;
    struct matrix m;

    (void)state;
    t.racks = 1;
    t.per = 6;
    t.noise = 0.02;
    fit(&m, &t);
    assert_int_equal(m.topo.group[LEVEL_RACK].count, 0);
    assert_null(finding(&m, "racks"));
    assert_int_equal(m.exceptions, 0);
    t.slow = 3;
    t.slow_nic = 60e6;
    named(&t, 1);
    matrix_free(&m);
}

static void a_dead_host_is_one_exception_of_factor_0(void **state)
{
    struct truth t = lab;
    struct matrix m;
    struct cost c;

    (void)state;
    t.dead = 6;
    fit(&m, &t);
    assert_int_equal(m.exceptions, 1);
    assert_int_equal(m.exception[0].a, 6);
    assert_int_equal(m.exception[0].tier, -1);
    assert_true(m.exception[0].factor == 0);
    assert_non_null(strstr(m.exception[0].why, "no answer"));
    matrix_pair(&m, 1, 6, 8, &c);
    assert_true(isinf(c.sec));
    pairs_are_truth(&m, &t, 0.01);
    matrix_free(&m);
}

static void wrong_data_names_the_endpoint_and_its_times_do_not_count(void **state)
{
    struct truth t = lab;
    struct matrix m;

    (void)state;
    t.corrupt = 2;
    t.slow = 5;
    t.slow_nic = 36e6;
    fit(&m, &t);
    assert_int_equal(m.exceptions, 3);
    assert_int_equal(m.exception[0].part, PART_ENDPOINT); /* the worst comes first */
    assert_int_equal(m.exception[0].a, 2);
    assert_true(m.exception[0].wrong);
    assert_true(m.exception[0].factor == 0);
    assert_non_null(strstr(m.exception[0].why, "received wrong data in"));
    assert_int_equal(m.exception[1].a, 5);
    assert_false(m.exception[1].wrong);
    assert_null(finding(&m, "wrong_data"));
    matrix_free(&m);
}

/* The share of failed checks accuses, not their number. */
static void wrong_data_now_and_then_accuses_no_member_of_most_groups(void **state)
{
    struct truth t = lab;

    (void)state;
    t.corrupt = 2;
    for (t.rare = 0.1; t.rare < 0.9; t.rare += 0.2) {
        struct matrix m;
        bool named[8] = {false};
        fit(&m, &t);
        for (int i = 0; i < m.exceptions; i++) {
            const struct exception *e = &m.exception[i];
            assert_int_equal(e->part, PART_ENDPOINT);
            assert_int_equal(e->state, STATE_WRONG);
            named[e->a] = true;
            if (!(e->share > 0.1 * t.rare && e->share < 1.3 * t.rare))
                fail_msg("host %d: %s, share %g of %g", e->a, e->why, e->share, t.rare);
        }
        for (int i = 0; i < 8; i++)
            if (named[i] != (i == t.corrupt || i == 7))
                fail_msg("host %d, wrong in %.0f %% of the checks of 2 and 7", i, 100 * t.rare);
        matrix_free(&m);
    }
}

static void a_collective_with_a_slow_member_gives_back_what_was_measured(void **state)
{
    struct truth t = lab;
    struct matrix m;
    struct cost c, healthy;
    int all[8];

    (void)state;
    t.slow = 5;
    t.slow_nic = 24e6;
    fit(&m, &t);
    for (int i = 0; i < 8; i++)
        all[i] = i;
    struct plan_group g = {all, 8};
    matrix_collective(&m, OP_ALL_GATHER, all, 8, 1 << 20, &c);
    double want = ring(&t, &g, 1 << 20);
    if (!(fabs(c.sec / want - 1) < 0.03))
        fail_msg("%g s where %g was measured: %s", c.sec, want, c.source);
    assert_int_equal(c.basis, BASIS_FITTED);
    matrix_collective_at(&m, OP_ALL_GATHER, all, 8, 1, 1 << 20, true, &healthy);
    assert_true(healthy.sec < 0.7 * c.sec);
    matrix_free(&m);
}

static void points_of_another_topology_are_refused(void **state)
{
    struct topo topo;
    struct plan plan = {0};
    struct points p = {.endpoints = 5, .transport = "mpi"};
    struct fit_opts o;
    struct matrix m;
    struct err err;

    (void)state;
    small_topo(&topo, 1, 4, 1, false, ENDPOINT_CPU);
    topo_default_tiers(&topo);
    fit_defaults(&o);
    assert_int_equal(fit_matrix(&m, &topo, &plan, &p, &o, &err), -1);
    assert_string_equal(err.text, "the points are of 5 endpoints, the topology has 4");
    p.endpoints = 4;
    assert_int_equal(fit_matrix(&m, &topo, &plan, &p, &o, &err), -1);
    assert_string_equal(err.text, "no points: nothing to fit");
    topo_free(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_racks_are_found_with_their_tiers),
        cmocka_unit_test(a_shared_trunk_is_contention_and_no_bad_link),
        cmocka_unit_test(a_degraded_host_is_named_and_its_peers_are_not),
        cmocka_unit_test(a_nic_slower_than_a_slow_trunk_has_a_factor_for_each_tier),
        cmocka_unit_test(and_in_racks_of_two_or_three),
        cmocka_unit_test(a_lone_pair_that_cannot_say_which_end_is_slow_is_named_itself),
        cmocka_unit_test(a_wide_trunk_leaves_latency_to_tell_racks_apart),
        cmocka_unit_test(a_cut_uplink_is_a_part_and_no_boundary),
        cmocka_unit_test(a_hiccup_is_no_part),
        cmocka_unit_test(a_pair_that_answers_late_adds_its_latency),
        cmocka_unit_test(one_rack_stays_one_tier),
        cmocka_unit_test(a_dead_host_is_one_exception_of_factor_0),
        cmocka_unit_test(wrong_data_names_the_endpoint_and_its_times_do_not_count),
        cmocka_unit_test(wrong_data_now_and_then_accuses_no_member_of_most_groups),
        cmocka_unit_test(a_collective_with_a_slow_member_gives_back_what_was_measured),
        cmocka_unit_test(points_of_another_topology_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
