/* retest.c - the second stage: who is measured again, beside whom, with which partners, in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/point.h"
#include "measure/schedule_impl.h"
#include "topo/fabrics/fabric.h"

/* A machine, and points of its plan as it is in truth. */
struct bed {
    struct fabric fabric;
    struct topo topo;
    struct plan plan;
    struct points points;
};

/* What is slow: NICs by endpoint, and one pair. */
struct truth {
    double *nic; /* rate left, by endpoint */
    int pair[2];
    double left;
};

static double noise_of(struct rng *r)
{
    return exp(0.02 * rng_normal(r));
}

static double rate_of(const struct topo *t, const struct truth *w, int a, int b)
{
    bool nic = topo_at(t, a, LEVEL_DOMAIN) != topo_at(t, b, LEVEL_DOMAIN);
    double rate = nic ? 5e10 * fmin(w->nic[a], w->nic[b]) : 8e11;

    if ((a == w->pair[0] && b == w->pair[1]) || (a == w->pair[1] && b == w->pair[0]))
        rate *= w->left;
    return rate;
}

static void measure(struct bed *b, const struct truth *w)
{
    struct rng rng;

    rng_seed(&rng, 5);
    for (int e = 0; e < PLAN_EPOCHS; e++)
        for (int i = 0; i < b->plan.rounds; i++) {
            const struct round *r = &b->plan.round[i];
            for (int g = 0; g < r->groups && r->epochs >> e & 1 && r->first == r->last; g++) {
                struct point_row row;
                point_describe(&row, r, g, e, r->first);
                double rate = rate_of(&b->topo, w, row.point.src, row.point.dst);
                double sec = r->op == OP_PAIR_LATENCY ? 5e-6 : (double)r->first / rate;
                sec *= noise_of(&rng);
                row.point.sec = point_secs(sec, sec, sec);
                row.point.tail = point_tail(sec * 1.03, sec);
                MEM_PUSH(b->points.point, b->points.count) = row.point;
            }
        }
}

static void bed_open(struct bed *b, const char *preset, int racks, struct truth *w)
{
    struct plan_opts o;
    struct err err;

    memset(b, 0, sizeof(*b));
    assert_int_equal(fabric_load(&b->fabric, preset, &err), 0);
    assert_int_equal(fabric_topo(&b->fabric, racks, false, &b->topo, &err), 0);
    plan_defaults(&o);
    o.ops = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW | 1u << OP_PAIR_BIBW;
    assert_int_equal(plan_make(&b->plan, &b->topo, &o, &err), 0);
    *w = (struct truth){mem_calloc((size_t)b->topo.endpoints, sizeof(double)), {-1, -1}, 1};
    for (int i = 0; i < b->topo.endpoints; i++)
        w->nic[i] = 1;
}

static void bed_close(struct bed *b, struct truth *w)
{
    free(w->nic);
    points_free(&b->points);
    plan_free(&b->plan);
    topo_free(&b->topo);
    fabric_free(&b->fabric);
}

/* Looks at each endpoint: all, alone, receiving, with partners on its own leaf; blocks. */
struct tally {
    int looks, alone, receives, near;
    unsigned blocks, sort[4]; /* blocks of all, and of looks alone or not, sending or receiving */
    int partner[64], partners;
};

static struct tally *tally_of(const struct plan *again, const struct topo *t, int *looks)
{
    struct tally *of = mem_calloc((size_t)t->endpoints, sizeof(*of));

    *looks = 0;
    for (int i = 0; i < again->rounds; i++) {
        const struct round *r = &again->round[i];
        const int end = stage_looks_at(r->stage);
        assert_int_equal(r->first, r->last);
        for (int g = 0; g < r->groups && end >= 0; g++) {
            const int *pair = r->group[g].members;
            struct tally *x = &of[pair[end]];
            ++*looks;
            x->looks++;
            x->alone += r->groups == 1;
            x->receives += end;
            x->near += topo_at(t, pair[0], LEVEL_LEAF) == topo_at(t, pair[1], LEVEL_LEAF);
            x->blocks |= r->epochs;
            x->sort[2 * (r->groups == 1) + end] |= r->epochs;
            x->partner[x->partners++ % 64] = pair[!end];
            assert_int_equal(__builtin_popcount(r->epochs), 1);
        }
    }
    return of;
}

static int different(const struct tally *x)
{
    int n = 0;

    for (int i = 0; i < x->partners; i++) {
        int k = 0;
        while (x->partner[k] != x->partner[i])
            k++;
        n += k == i;
    }
    return n;
}

static void a_suspect_is_measured_beside_controls_with_partners_that_are_neither(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};
    int looks, subjects = 0, near = 0, same_leaf = 0;

    (void)state;
    bed_open(&b, "gb200-nvl72", 4, &w);
    w.nic[17] = 0.6;
    measure(&b, &w);
    schedule_retest(&again, &b.topo, &b.points, false, false);
    struct tally *of = tally_of(&again, &b.topo, &looks);
    assert_true(looks <= RETEST_LOOKS);
    assert_int_equal(of[17].looks, 48);
    assert_int_equal(of[17].blocks, (1u << PLAN_EPOCHS) - 1);
    for (int i = 0; i < b.topo.endpoints; i++) {
        const struct tally *x = &of[i];
        if (!x->looks)
            continue;
        subjects++;
        assert_int_equal(x->looks, of[17].looks); /* controls as often as suspects, and likewise */
        assert_int_equal(2 * x->alone, x->looks);
        assert_int_equal(2 * x->receives, x->looks);
        assert_true(different(x) > 30);
        near += x->near;
        same_leaf += i != 17 && topo_at(&b.topo, i, LEVEL_LEAF) == topo_at(&b.topo, 17, LEVEL_LEAF);
        for (int k = 0; k < x->partners && k < 64; k++)
            assert_int_equal(of[x->partner[k]].looks, 0);
    }
    assert_true(subjects >= 2 + 6);
    assert_true(same_leaf >= 1);
    assert_true(near > 0.5 * looks && near < 0.75 * looks); /* half, and chance */
    free(of);
    plan_free(&again);
    bed_close(&b, &w);
}

/* Half of the looks of many suspects are alone, or three quarters where half of all flows collide; each sort of looks is
 * in as many blocks as it has looks. */
static void looks_of_a_sort_are_in_other_blocks(void **state)
{
    (void)state;
    for (int hashed = 0; hashed < 2; hashed++) {
        struct bed b;
        struct truth w;
        struct plan again = {NULL, 0};
        struct rng rng;
        int looks, seen = 0;

        bed_open(&b, "gb200-nvl72", 4, &w);
        for (int i = 0; i < 20; i++)
            w.nic[9 + 13 * i] = 0.6;
        measure(&b, &w);
        rng_seed(&rng, 7);
        for (int i = 0; i < b.points.count && hashed; i++) {
            struct point *p = &b.points.point[i];
            if (p->flows > 1 && p->op == OP_PAIR_BW && rng_uniform(&rng) < 0.5 &&
                topo_at(&b.topo, p->src, LEVEL_LEAF) != topo_at(&b.topo, p->dst, LEVEL_LEAF))
                p->sec.median = (float)(2 * p->sec.median);
        }
        schedule_retest(&again, &b.topo, &b.points, false, false);
        struct tally *of = tally_of(&again, &b.topo, &looks);
        for (int i = 0; i < b.topo.endpoints; i++) {
            const struct tally *x = &of[i];
            int alone = __builtin_popcount(x->sort[2]) + __builtin_popcount(x->sort[3]);

            if (x->looks < 12 || x->looks > 24)
                continue;
            seen++;
            if (hashed ? x->alone < 0.65 * x->looks : 2 * x->alone > x->looks + 1)
                fail_msg("%d of %d looks are alone", x->alone, x->looks);
            if (alone < (x->alone < 2 * PLAN_EPOCHS ? x->alone : 2 * PLAN_EPOCHS) - 1)
                fail_msg("%d looks alone in %d blocks", x->alone, alone);
        }
        assert_true(seen > 20);
        free(of);
        plan_free(&again);
        bed_close(&b, &w);
    }
}

static void looks_come_in_mixed_order_over_all_blocks(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};
    int block = 0, changes = 0, per[PLAN_EPOCHS] = {0};

    (void)state;
    bed_open(&b, "gb200-nvl72", 4, &w);
    w.nic[17] = 0.6;
    measure(&b, &w);
    schedule_retest(&again, &b.topo, &b.points, false, false);
    for (int i = 0; i < again.rounds; i++) {
        const struct round *r = &again.round[i];
        assert_int_equal(r->id, i);
        if (stage_looks_at(r->stage) < 0)
            continue;
        assert_true(__builtin_ctz(r->epochs) >= block);
        block = __builtin_ctz(r->epochs);
        per[block] += r->groups;
        changes += i > 0 && (r->stage != again.round[i - 1].stage ||
                             (r->groups == 1) != (again.round[i - 1].groups == 1));
    }
    for (int e = 0; e < PLAN_EPOCHS; e++)
        assert_true(per[e] >= 8);
    assert_true(changes > 20);
    plan_free(&again);
    bed_close(&b, &w);
}

/* All in memory, or read from a file, or with points of the second stage behind them. */
static void the_same_points_give_the_same_rounds(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again[4] = {{NULL, 0}};
    char *text[4];

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, &w);
    w.nic[17] = 0.6;
    w.nic[90] = 0.7;
    measure(&b, &w);
    schedule_retest(&again[0], &b.topo, &b.points, false, false);
    for (int i = 0; i < b.points.count; i++) {
        struct point_sec *s = &b.points.point[i].sec;
        s->median = point_sec(point_time(s->median));
    }
    schedule_retest(&again[1], &b.topo, &b.points, false, false);
    for (int g = 0; g < 8; g++) {
        struct point_row row;
        point_describe(&row, &again[0].round[g], 0, 0, again[0].round[g].first);
        row.point.sec = point_secs(1, 1, 1);
        MEM_PUSH(b.points.point, b.points.count) = row.point;
    }
    schedule_retest(&again[2], &b.topo, &b.points, false, false);
    b.points.plan_crc = 99; /* another seed, another order */
    schedule_retest(&again[3], &b.topo, &b.points, false, false);
    for (int i = 0; i < 4; i++)
        text[i] = plan_text(&again[i]);
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
    assert_string_not_equal(text[0], text[3]);
    for (int i = 0; i < 4; i++) {
        free(text[i]);
        plan_free(&again[i]);
    }
    bed_close(&b, &w);
}

/* Eight members; its controls are elsewhere, and some partners are on the leaf itself. */
static void of_a_slow_leaf_some_members_are_measured_again(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};
    int looks, members = 0, others = 0, near = 0;

    (void)state;
    bed_open(&b, "gb200-nvl72", 4, &w);
    const int leaf = topo_at(&b.topo, 2, LEVEL_LEAF);
    for (int i = 0; i < b.topo.endpoints; i++)
        if (topo_at(&b.topo, i, LEVEL_LEAF) == leaf)
            w.nic[i] = 0.7;
    measure(&b, &w);
    schedule_retest(&again, &b.topo, &b.points, false, false);
    struct tally *of = tally_of(&again, &b.topo, &looks);
    for (int i = 0; i < b.topo.endpoints; i++) {
        bool slow = topo_at(&b.topo, i, LEVEL_LEAF) == leaf;
        members += slow && of[i].looks;
        others += !slow && of[i].looks;
        near += slow ? of[i].near : 0;
    }
    assert_true(members >= 8 && members <= 10); /* a chance suspect may be among them */
    assert_true(others >= members && others <= members + 6 + 8);
    assert_true(near > 0);
    assert_true(looks <= RETEST_LOOKS);
    free(of);
    plan_free(&again);
    bed_close(&b, &w);
}

static void a_slow_pair_is_measured_again_beside_one_that_is_not(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};
    int slow = 0, rounds = 0;

    (void)state;
    bed_open(&b, "gb200-nvl72", 4, &w);
    for (int i = 0; i < b.plan.rounds && w.pair[0] < 0; i++) {
        const struct round *r = &b.plan.round[i];
        for (int g = 0; g < r->groups && r->stage == STAGE_CLASS && r->first > 8; g++)
            if (topo_at(&b.topo, r->group[g].members[0], LEVEL_DOMAIN) !=
                topo_at(&b.topo, r->group[g].members[1], LEVEL_DOMAIN))
                memcpy(w.pair, r->group[g].members, sizeof(w.pair));
    }
    w.left = 0.5;
    measure(&b, &w);
    schedule_retest(&again, &b.topo, &b.points, false, false);
    for (int i = 0; i < again.rounds; i++) {
        const struct round *r = &again.round[i];
        if (r->stage != STAGE_RETEST)
            continue;
        const int *m = r->group[0].members;
        rounds++;
        assert_int_equal(r->groups, 1);
        assert_int_equal(r->epochs, (1u << PLAN_EPOCHS) - 1);
        slow +=
            (m[0] == w.pair[0] && m[1] == w.pair[1]) || (m[0] == w.pair[1] && m[1] == w.pair[0]);
    }
    assert_int_equal(slow, 2);   /* each way */
    assert_int_equal(rounds, 3); /* and one as usual */
    plan_free(&again);
    bed_close(&b, &w);
}

/* Strays everywhere: no more pairs than are allowed, and none of one endpoint more than twice. */
static void of_many_odd_pairs_the_worst_are_measured_again(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};
    struct rng rng;
    int rounds = 0;

    (void)state;
    bed_open(&b, "gb200-nvl72", 4, &w);
    measure(&b, &w);
    rng_seed(&rng, 3);
    for (int i = 0; i < b.points.count; i++)
        if (rng_uniform(&rng) < 0.05)
            b.points.point[i].sec.median /= 0.8;
    schedule_retest(&again, &b.topo, &b.points, false, false);
    int *ends = mem_ints(b.topo.endpoints, 0);
    for (int i = 0; i < again.rounds; i++)
        if (again.round[i].stage == STAGE_RETEST) {
            rounds++;
            assert_true(++ends[again.round[i].group[0].members[0]] <= 2);
            assert_true(++ends[again.round[i].group[0].members[1]] <= 2);
        }
    assert_true(rounds > RETEST_PAIRS && rounds <= RETEST_PAIRS + b.topo.tiers);
    assert_true(again.rounds < RETEST_ROUNDS);
    free(ends);
    plan_free(&again);
    bed_close(&b, &w);
}

static void quick_measures_few_again(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};
    int looks;

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, &w);
    for (int i = 0; i < 20; i++)
        w.nic[7 * i] = 0.5;
    measure(&b, &w);
    schedule_retest(&again, &b.topo, &b.points, false, true);
    free(tally_of(&again, &b.topo, &looks));
    assert_true(looks > 0 && again.rounds <= b.topo.endpoints);
    for (int i = 0; i < again.rounds; i++)
        assert_int_equal(__builtin_popcount(again.round[i].epochs), 1);
    plan_free(&again);
    bed_close(&b, &w);
}

/* Who does not answer is neither asked again nor taken as a partner. */
static void the_dead_are_left_alone(void **state)
{
    struct bed b;
    struct truth w;
    struct plan again = {NULL, 0};

    (void)state;
    bed_open(&b, "gb200-nvl72", 4, &w);
    w.nic[17] = 0.6;
    measure(&b, &w);
    for (int i = 0; i < b.points.count; i++) {
        struct point *p = &b.points.point[i];
        if (p->src / 4 == 8 || p->dst / 4 == 8)
            p->stop = STOP_FAILED;
    }
    schedule_retest(&again, &b.topo, &b.points, false, false);
    assert_true(again.rounds > 0);
    for (int i = 0; i < again.rounds; i++)
        for (int g = 0; g < again.round[i].groups; g++)
            for (int k = 0; k < 2; k++)
                assert_int_not_equal(again.round[i].group[g].members[k] / 4, 8);
    plan_free(&again);
    bed_close(&b, &w);
}

/* Any number of endpoints, whoever is suspected: pairs are disjoint and of the topology. */
static void rounds_are_sound_however_small_the_machine(void **state)
{
    static const char *const preset[] = {"hgx-h100", "rtxpro6000-100gbe", "gb200-nvl72"};

    (void)state;
    for (int k = 0; k < 3; k++)
        for (int bad = 1; bad < 40; bad += 13) {
            struct bed b;
            struct truth w;
            struct plan again = {NULL, 0}, back;
            struct err err;
            bed_open(&b, preset[k], 1, &w);
            for (int i = 0; i < bad && i < b.topo.endpoints; i++)
                w.nic[i] = 0.5;
            measure(&b, &w);
            schedule_retest(&again, &b.topo, &b.points, false, false);
            if (again.rounds) /* its reader refuses what is not disjoint */
                assert_int_equal(
                    plan_parse(&back, "again", plan_text(&again), b.topo.endpoints, &err), 0);
            if (again.rounds)
                plan_free(&back);
            plan_free(&again);
            bed_close(&b, &w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspect_is_measured_beside_controls_with_partners_that_are_neither),
        cmocka_unit_test(looks_come_in_mixed_order_over_all_blocks),
        cmocka_unit_test(looks_of_a_sort_are_in_other_blocks),
        cmocka_unit_test(the_same_points_give_the_same_rounds),
        cmocka_unit_test(of_a_slow_leaf_some_members_are_measured_again),
        cmocka_unit_test(a_slow_pair_is_measured_again_beside_one_that_is_not),
        cmocka_unit_test(of_many_odd_pairs_the_worst_are_measured_again),
        cmocka_unit_test(quick_measures_few_again),
        cmocka_unit_test(the_dead_are_left_alone),
        cmocka_unit_test(rounds_are_sound_however_small_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
