/* SPDX-License-Identifier: BSD-3-Clause */
/* Small fabrics with noise of several kinds: the part that was made slow is named, and nobody else. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "noise_fabric.h"

static void expect(const struct fault *x, const struct noise_kind *kind, unsigned long long with)
{
    struct fabric f;
    struct noise n;
    int named = 0, others = 0;

    open_fabric(&f, 48, kind, x, with);
    both_stages(&n, &f);
    for (int i = 0; i < n.founds; i++) {
        const struct found *s = &n.found[i];
        bool own = x && s->part == x->part && s->a == x->a && s->b == x->b;

        named += own;
        others += !own;
        if (own && (s->state != x->state || s->side != x->side))
            fail_msg("%s: %s %d is %s, %s; %s, %s was made (seed %llu)", kind->name,
                     part_name[s->part], s->a, part_state_name[s->state], side_name[s->side],
                     part_state_name[x->state], side_name[x->side], with);
        if (!own)
            print_message("%s: %s %d %s %.2f besides (seed %llu)\n", kind->name, part_name[s->part],
                          s->a, part_state_name[s->state], exp(s->effect), with);
    }
    if (x && !named)
        fail_msg("%s: %s %d, %s, is not named (seed %llu)", kind->name, part_name[x->part], x->a,
                 part_state_name[x->state], with);
    assert_int_equal(others, 0);
    noise_free(&n);
    close_fabric(&f);
}

static void in_all_kinds(const struct fault *x)
{
    for (int k = 0; k < KINDS; k++)
        expect(x, &kinds[k], seed + (unsigned long long)k);
}

/* --- what must be said --- */

static void nobody_is_named_in_a_healthy_fabric(void **state)
{
    (void)state;
    for (int s = 0; s < 4; s++)
        for (int k = 0; k < KINDS; k++)
            expect(NULL, &kinds[k], seed + 100 + (unsigned long long)s);
}

static void a_slow_nic_is_named(void **state)
{
    (void)state;
    in_all_kinds(&(struct fault){PART_ENDPOINT, 77, -1, SIDE_BOTH, STATE_SLOW, 0.8, 1, false});
}

static void a_nic_that_sends_slowly_is_not_intermittent(void **state)
{
    (void)state;
    in_all_kinds(&(struct fault){PART_ENDPOINT, 30, -1, SIDE_TX, STATE_SLOW, 0.7, 1, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 31, -1, SIDE_RX, STATE_SLOW, 0.6, 1, false});
}

static void groups_are_named_as_what_they_are(void **state)
{
    (void)state;
    in_all_kinds(&(struct fault){PART_HOST, 9, -1, SIDE_BOTH, STATE_SLOW, 0.8, 1, false});
    in_all_kinds(&(struct fault){PART_LEAF, 5, -1, SIDE_BOTH, STATE_SLOW, 0.8, 1, false});
    in_all_kinds(&(struct fault){PART_RACK, 3, -1, SIDE_BOTH, STATE_SLOW, 0.75, 1, false});
}

static void uplinks_are_told_from_the_leaf(void **state)
{
    struct fabric f;
    struct noise n;
    const struct fault up = {PART_LEAF, 5, -1, SIDE_BOTH, STATE_SLOW, 0.7, 1, true};

    (void)state;
    open_fabric(&f, 48, &kinds[0], &up, seed);
    both_stages(&n, &f);
    assert_int_equal(n.founds, 1);
    assert_int_equal(n.found->part, PART_LEAF);
    assert_int_equal(n.found->a, 5);
    assert_int_equal(n.found->tier, TIER_FABRIC);
    noise_free(&n);
    close_fabric(&f);
}

static void rack_uplinks_and_rack_pairs_are_named(void **state)
{
    (void)state;
    expect(&(struct fault){PART_RACK_UPLINKS, 4, -1, SIDE_BOTH, STATE_SLOW, 0.7, 1, true},
           &kinds[0], seed);
    expect(&(struct fault){PART_RACK_PAIR, 2, 7, SIDE_BOTH, STATE_SLOW, 0.6, 1, false}, &kinds[0],
           seed);
}

static void states_are_told_apart(void **state)
{
    (void)state;
    in_all_kinds(
        &(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_INTERMITTENT, 0.5, 0.5, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_LOADED, 0.5, 1, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_BOTH_WAYS, 0.5, 1, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_SMALL, 0.4, 1, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_LARGE, 0.5, 1, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_SAMPLES, 0.6, 1, false});
    in_all_kinds(&(struct fault){PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_LATE, 0.7, 1, false});
    in_all_kinds(&(struct fault){PART_LEAF, 6, -1, SIDE_BOTH, STATE_LATE, 0.75, 1, false});
}

static void the_dead_are_named(void **state)
{
    (void)state;
    expect(&(struct fault){PART_ENDPOINT, 12, -1, SIDE_BOTH, STATE_DEAD, 1, 1, false}, &kinds[1],
           seed);
    expect(&(struct fault){PART_HOST, 12, -1, SIDE_BOTH, STATE_DEAD, 1, 1, false}, &kinds[1], seed);
}

static void a_cable_is_no_nic(void **state)
{
    struct noise n;
    const struct fault pair = {PART_PAIR, 1, 6, SIDE_RX, STATE_SLOW, 0.5, 1, false};

    (void)state;
    few(&n, 2, &pair);
    assert_int_equal(n.founds, 1);
    assert_int_equal(n.found->part, PART_PAIR);
    assert_int_equal(n.found->a, 1);
    assert_int_equal(n.found->b, 6);
    assert_int_equal(n.found->side, SIDE_RX);
    noise_free(&n);
}

static void a_nic_of_four_is_found(void **state)
{
    struct noise n;
    const struct fault nic = {PART_ENDPOINT, 2, -1, SIDE_BOTH, STATE_SLOW, 0.7, 1, false};

    (void)state;
    few(&n, 1, &nic);
    assert_int_equal(n.founds, 1);
    assert_int_equal(n.found->a, 2);
    assert_int_equal(n.found->part, PART_ENDPOINT);
    noise_free(&n);
    few(&n, 1, NULL);
    assert_int_equal(n.founds, 0);
    noise_free(&n);
}

static void nothing_is_said_of_no_looks(void **state)
{
    struct fabric f = {.noise = &kinds[0]};
    struct noise n;

    (void)state;
    make_topo(&f.topo, 2);
    judge(&n, &f, true);
    assert_int_equal(n.founds, 0);
    assert_true(isnan(n.loaded[0]));
    noise_free(&n);
    close_fabric(&f);
}

static void assert_same(const struct noise *a, const struct noise *b)
{
    assert_int_equal(a->founds, b->founds);
    for (int i = 0; i < a->founds; i++) {
        assert_int_equal(a->found[i].part, b->found[i].part);
        assert_int_equal(a->found[i].a, b->found[i].a);
        assert_float_equal(a->found[i].effect, b->found[i].effect, 0);
        assert_float_equal(a->found[i].p, b->found[i].p, 0);
        assert_int_equal(a->found[i].looks, b->found[i].looks);
    }
    assert_int_equal(a->suspects, b->suspects);
    assert_int_equal(a->usuals, b->usuals);
    for (int i = 0; i < a->usuals; i++)
        assert_float_equal(a->usual[i].y, b->usual[i].y, 0);
}

/* Stage 1 is taken over only for the same looks of the same places.  change: of all looks; move: half of each
 * host to the next. */
static void stage_1_is_kept(float change, bool move, bool later)
{
    const struct fault fault = {PART_HOST, 5, -1, SIDE_BOTH, STATE_SLOW, 0.6, 1, false};
    struct fabric f;
    struct noise first, kept, again, last;
    struct noise_court *court;
    struct noise_input in;

    open_fabric(&f, 16, &kinds[5], &fault, seed);
    in = (struct noise_input){&f.topo, f.look, f.looks, {[TIER_RAIL] = true, [TIER_FABRIC] = true}};
    court = noise_suspects(&first, &in);
    if (later)
        measure_again(&f, &first);
    in.look = f.look;
    in.looks = f.looks;
    for (int i = 0; i < f.looks; i++)
        f.look[i].y += change;
    for (int i = 0; move && i < f.topo.endpoints; i++)
        f.topo.endpoint[i].place.at[LEVEL_HOST] = (i + 2) / 4;
    noise_judge(&kept, &in, court);
    noise_judge(&again, &in, NULL);
    assert_same(&kept, &again);
    assert_true(!later || change != 0 || move || kept.founds == 1);
    noise_judge(&last, &in, court); /* it is empty now */
    assert_same(&last, &again);
    noise_court_free(court);
    noise_free(&first);
    noise_free(&kept);
    noise_free(&again);
    noise_free(&last);
    close_fabric(&f);
}

static void stage_1_of_the_same_looks_is_not_judged_again(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        stage_1_is_kept(0, false, later);
        stage_1_is_kept(0.5F, false, later);
        stage_1_is_kept(0, true, later);
    }
}

/* A healthy fabric leaves no residuals behind; looks that come later are judged all the same. */
static void nothing_found_is_kept_too(void **state)
{
    (void)state;
    for (int later = 0; later < 3; later++) {
        struct fabric f;
        struct noise first, kept, again;
        struct noise_court *court;
        struct noise_input in;

        open_fabric(&f, 16, &kinds[0], NULL, seed);
        in = (struct noise_input){
            &f.topo, f.look, f.looks, {[TIER_RAIL] = true, [TIER_FABRIC] = true}};
        court = noise_suspects(&first, &in);
        assert_int_equal(first.suspects, 0);
        for (int i = 0; i < 8 * later; i++) {
            struct look k = f.look[f.looks - 1];

            k.fresh = k.same_pair = true;
            k.turn++;
            k.y = later > 1 ? -INFINITY : k.y;
            MEM_PUSH(f.look, f.looks) = k;
        }
        in.look = f.look;
        in.looks = f.looks;
        noise_judge(&kept, &in, court);
        noise_judge(&again, &in, NULL);
        assert_same(&kept, &again);
        assert_int_equal(kept.founds > 0, later > 1);
        noise_court_free(court);
        noise_free(&first);
        noise_free(&kept);
        noise_free(&again);
        close_fabric(&f);
    }
}

static void load_costs_what_random_pairs_lose(void **state)
{
    struct fabric f;
    struct noise n;

    (void)state;
    open_fabric(&f, 48, &kinds[0], NULL, seed);
    for (int i = 0; i < f.looks; i++)
        if (f.look[i].kind == LOOK_RATE && !f.look[i].alone && f.look[i].tier == TIER_FABRIC)
            f.look[i].y += (float)log(0.6);
    judge(&n, &f, true);
    assert_float_equal(n.loaded[TIER_FABRIC], 0.6, 0.01);
    assert_float_equal(n.loaded[TIER_RAIL], 1, 0.01);
    assert_int_equal(n.founds, 0);
    noise_free(&n);
    close_fabric(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_named_in_a_healthy_fabric),
        cmocka_unit_test(a_slow_nic_is_named),
        cmocka_unit_test(a_nic_that_sends_slowly_is_not_intermittent),
        cmocka_unit_test(groups_are_named_as_what_they_are),
        cmocka_unit_test(uplinks_are_told_from_the_leaf),
        cmocka_unit_test(rack_uplinks_and_rack_pairs_are_named),
        cmocka_unit_test(states_are_told_apart),
        cmocka_unit_test(the_dead_are_named),
        cmocka_unit_test(a_cable_is_no_nic),
        cmocka_unit_test(a_nic_of_four_is_found),
        cmocka_unit_test(nothing_is_said_of_no_looks),
        cmocka_unit_test(stage_1_of_the_same_looks_is_not_judged_again),
        cmocka_unit_test(nothing_found_is_kept_too),
        cmocka_unit_test(load_costs_what_random_pairs_lose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
