/* SPDX-License-Identifier: BSD-3-Clause */
/* Which level has fewer uplinks than NICs, and flows that are hashed onto the same ones: shares of flows as
 * a formula, both sides of each constant of uplinks.c. */
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

enum { LEAVES = 4, PODS = 2, BYTES = 1 << 20 };

/* What flow i of n gets in a turn of its kind (flows stay in their pod, or cross). */
struct scene {
    int per_leaf, turns; /* turns of each kind */
    double stay, cross;
    double slow; /* what slow flows get instead; 0: none is */
    double few,
        most; /* share of them that are slow, of every other group, or in every other turn */
    bool by_turn;
};

static void add(struct points *p, int round, int src, int dst, int flows, double share)
{
    struct point one = {.round = round,
                        .stage = flows > 1 ? STAGE_CLASS : STAGE_ISOLATED,
                        .op = OP_PAIR_BW,
                        .ranks = 2,
                        .src = src,
                        .dst = dst,
                        .flows = flows,
                        .bytes = BYTES,
                        .n = 16,
                        .stop = STOP_CI};

    one.sec = point_secs(1e-3 / share, 1e-3 / share, 1e-3 / share);
    MEM_PUSH(p->point, p->count) = one;
}

static void machine(struct topo *t, int per_leaf)
{
    char name[16];

    topo_init(t);
    t->tier[t->tiers++] = (struct tier_rule){"leaf", 1u << LEVEL_LEAF};
    t->tier[t->tiers++] = (struct tier_rule){"fabric", 0};
    for (int i = 0; i < LEAVES * per_leaf; i++) {
        snprintf(name, sizeof(name), "n%03d", i);
        int id = topo_add_endpoint(t, topo_add_host(t, name), ENDPOINT_GPU);
        snprintf(name, sizeof(name), "leaf-%d", i / per_leaf);
        topo_place(t, &t->endpoint[id], LEVEL_LEAF, name, SOURCE_USER);
        snprintf(name, sizeof(name), "pod-%d", i / per_leaf / (LEAVES / PODS));
        topo_place(t, &t->endpoint[id], LEVEL_SPINE, name, SOURCE_USER);
    }
}

/* Leaves 0 and 1 to each other, and 2 and 3; or 0 and 2, and 1 and 3. */
static int partner(int leaf, bool cross)
{
    return cross ? leaf ^ 2 : leaf ^ 1;
}

static void turn(struct points *p, const struct scene *s, int round, bool cross, bool back)
{
    int n = s->per_leaf;

    for (int leaf = 0; leaf < LEAVES; leaf++) {
        int to = partner(leaf, cross);
        bool few = (round / 2 + (s->by_turn ? 0 : cross ? leaf : leaf / 2)) % 2 == 0;
        int slow = (int)lround((few ? s->few : s->most) * n);
        if ((leaf < to) == back)
            continue;
        for (int i = 0; i < n; i++) {
            bool is = s->slow > 0 && (i + round) % n < slow;
            add(p, round, leaf * n + i, to * n + i, 2 * n,
                is      ? s->slow
                : cross ? s->cross
                        : s->stay);
        }
    }
}

static void measure(struct matrix *m, const struct scene *s)
{
    const struct plan plan = {NULL, 0};
    struct points p = {.endpoints = LEAVES * s->per_leaf, .transport = "sim"};
    struct fit_opts o;
    struct topo t;
    struct err err = {0, ""};
    int round = 0, n = s->per_leaf;

    fit_defaults(&o);
    machine(&t, n);
    for (int k = 0; k < s->turns; k++, round++) {
        turn(&p, s, round, false, k % 2);
        if (s->cross > 0)
            turn(&p, s, 1000 + round, true, k % 2);
    }
    for (int i = 0; i < LEAVES * n; i++) { /* alone, and below a leaf */
        int leaf = i / n;
        add(&p, 2000 + i, i, partner(leaf, i % 2) * n + i % n, 1, 1);
        add(&p, 3000, i, leaf * n + (i + 1) % n, LEAVES * n, 1);
    }
    if (fit_matrix(m, &t, &plan, &p, &o, &err) < 0)
        fail_msg("%s", err.text);
    free(p.point);
    topo_free(&t);
}

/* The ratio at a level; 0: none. */
static double taper(const struct matrix *m, int level)
{
    for (int i = 0; i < m->properties; i++)
        if (m->property[i].kind == PROPERTY_TAPER && m->property[i].level == level)
            return m->property[i].ratio;
    return 0;
}

static double collisions(const struct matrix *m)
{
    for (int i = 0; i < m->properties; i++)
        if (m->property[i].kind == PROPERTY_COLLISIONS)
            return m->property[i].ratio;
    return 0;
}

static void tapers_are(struct scene s, double leaf, double pod)
{
    struct matrix m;

    measure(&m, &s);
    if (fabs(taper(&m, LEVEL_LEAF) - leaf) > 0.03 || fabs(taper(&m, LEVEL_SPINE) - pod) > 0.03)
        fail_msg("stay %g, cross %g: leaves %g:1, pods %g:1", s.stay, s.cross,
                 taper(&m, LEVEL_LEAF), taper(&m, LEVEL_SPINE));
    assert_true(collisions(&m) == 0);
    if (leaf > 0 || pod > 0) /* prices under load */
        assert_true(fabs(m.tier[1].loaded * fmax(leaf, pod) - 1) < 0.03);
    assert_int_equal(matrix_faults(&m), 0);
    matrix_free(&m);
}

static void the_level_is_named(void **state)
{
    (void)state;
    tapers_are((struct scene){.per_leaf = 8, .turns = 4, .stay = 1, .cross = 1}, 0, 0);
    tapers_are((struct scene){.per_leaf = 8, .turns = 4, .stay = 0.5, .cross = 0.5}, 2, 0);
    tapers_are((struct scene){.per_leaf = 8, .turns = 4, .stay = 1, .cross = 0.5}, 0, 2);
    tapers_are((struct scene){.per_leaf = 8, .turns = 4, .stay = 0.8, .cross = 0.25}, 1.25, 4);
}

/* Uplinks are full below 0.85, and pods rule below 0.9 of what their leaves carry. */
static void edges_of_tapers(void **state)
{
    (void)state;
    tapers_are((struct scene){.per_leaf = 8, .turns = 4, .stay = 0.86, .cross = 0.86}, 0, 0);
    tapers_are((struct scene){.per_leaf = 8, .turns = 4, .stay = 0.84, .cross = 0.84}, 1.19, 0);
    struct matrix m;
    for (int k = 0; k < 2; k++) {
        measure(&m, &(struct scene){
                        .per_leaf = 8, .turns = 4, .stay = 0.8, .cross = 0.8 * (k ? 0.88 : 0.92)});
        assert_true((taper(&m, LEVEL_SPINE) > 0) == (k == 1));
        matrix_free(&m);
    }
    tapers_are((struct scene){.per_leaf = 8, .turns = 3, .stay = 0.5}, 2, 0);
    tapers_are((struct scene){.per_leaf = 8, .turns = 2, .stay = 0.5}, 0, 0); /* too few turns */
}

static void hashed_is(struct scene s, double share)
{
    struct matrix m;

    measure(&m, &s);
    if (fabs(collisions(&m) - share) > 0.02)
        fail_msg("%g and %g of %d at %g in %d turns: %g", s.few, s.most, s.per_leaf, s.slow,
                 s.turns, collisions(&m));
    matrix_free(&m);
}

/* Some flows of a leaf get a half while the others have all. */
static void hashed_flows_are_no_taper(void **state)
{
    const struct scene half = {
        .per_leaf = 16, .turns = 4, .stay = 1, .slow = 0.5, .few = 0.5, .most = 0.5};
    struct scene s = half;

    (void)state;
    hashed_is(s, 0.5);
    s.slow = 0.7; /* nearer to a half than to all: below 0.707 */
    hashed_is(s, 0.5);
    s.slow = 0.72;
    hashed_is(s, 0);
    s = half;
    s.few = s.most = 1.0 / 16; /* one in twenty or more */
    hashed_is(s, 1.0 / 16);
    s.per_leaf = 32;
    s.few = s.most = 1.0 / 32;
    hashed_is(s, 0);
    s = half;
    s.per_leaf = 6; /* flows of a leaf */
    hashed_is(s, 0.5);
    s.per_leaf = 5;
    s.few = s.most = 0.4;
    hashed_is(s, 0);
    s = half;
    s.turns = 2; /* eight leaves and ways: just enough; with one turn four */
    hashed_is(s, 0.5);
    s.turns = 1;
    hashed_is(s, 0);
}

/* Flows of a leaf that are slow together are so for another reason: the correlation is 0.2, and 0.35. */
static void another_job_is_no_collision(void **state)
{
    struct scene s = {.per_leaf = 16, .turns = 8, .stay = 1, .slow = 0.5};

    (void)state;
    s.few = 4.0 / 16;
    s.most = 12.0 / 16;
    hashed_is(s, 0.5);
    s.few = 3.0 / 16;
    s.most = 13.0 / 16;
    hashed_is(s, 0);
    s.by_turn = true; /* more flows at once collide more, in all groups alike */
    hashed_is(s, 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_level_is_named),
        cmocka_unit_test(edges_of_tapers),
        cmocka_unit_test(hashed_flows_are_no_taper),
        cmocka_unit_test(another_job_is_no_collision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
