/* SPDX-License-Identifier: BSD-3-Clause */
/* Each constant decides something: with it a fifth larger or smaller, what is said of some fabric changes.  And with the
 * constants as they are, what is said of these fabrics is what is written below: a constant that moves is seen. */
#include "noise/constants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "noise_fabric.h"

enum { SUMS = 10 };

/* Sums over findings, suspects and classes, each with a weight of its own. */
struct print {
    double sum[SUMS];
};

static double number_or_0(double x)
{
    return isfinite(x) ? x : 0;
}

static void add_found(double *sum, const struct found *f, int weight)
{
    sum[0] += weight * (f->part * 7 + f->state * 3 + f->side + f->tier + f->also);
    sum[1] += weight * (f->a + f->b + 2);
    sum[2] += weight * number_or_0(f->effect);
    sum[3] += weight * log10(fmax(f->p, 1e-12)) / 10 + f->share + number_or_0(f->sd);
}

static void print_noise(struct print *p, const struct noise *n)
{
    for (int i = 0; i < n->founds; i++)
        add_found(p->sum, &n->found[i], i + 1);
    for (int i = 0; i < n->suspects; i++)
        add_found(p->sum + 4, &n->suspect[i], i + 1);
    for (int i = 0; i < n->usuals; i++)
        p->sum[8] += (i + 1) * (n->usual[i].y + n->usual[i].sigma);
    for (int t = 0; t < 3; t++)
        p->sum[9] += number_or_0(n->loaded[t]);
    p->sum[9] += number_or_0(n->sd_turn) + number_or_0(n->sd_block) + number_or_0(n->sd_part);
}

struct scene {
    int hosts; /* 0: eight endpoints, all pairs */
    int kind;
    struct fault fault;
    double rare; /* share of looks that are lost, so that some parts have few */
};
static const struct scene scene[] = {
    {48, 1, {PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_INTERMITTENT, 0.72, 0.3, false}, 0.6},
    {48, 5, {PART_LEAF, 5, -1, SIDE_BOTH, STATE_SLOW, 0.9, 1, true}, 0},
    {48, 4, {PART_ENDPOINT, 33, -1, SIDE_BOTH, STATE_SMALL, 0.8, 1, false}, 0},
    {48, 2, {PART_HOST, 9, -1, SIDE_TX, STATE_SLOW, 0.93, 1, false}, 0.3},
    {48, 4, {PART_ENDPOINT, 50, -1, SIDE_BOTH, STATE_SAMPLES, 0.9, 1, false}, 0},
    {48, 1, {PART_ENDPOINT, 20, -1, SIDE_RX, STATE_LOADED, 0.88, 1, false}, 0},
    {2, 1, {PART_PAIR, 1, 6, SIDE_RX, STATE_SLOW, 0.9, 1, false}, 0},
    {1, 1, {PART_ENDPOINT, 2, -1, SIDE_BOTH, STATE_INTERMITTENT, 0.6, 0.6, false}, 0},
};
enum { SCENES = sizeof(scene) / sizeof(*scene), FEW = 2 };

static struct fabric fabric[SCENES];

/* Measured once, with the constants as they are. */
static int measure_scenes(void **state)
{
    (void)state;
    for (int i = 0; i < SCENES; i++) {
        struct noise n;

        if (scene[i].hosts <= FEW)
            continue;
        open_fabric(&fabric[i], scene[i].hosts, &kinds[scene[i].kind], &scene[i].fault, seed);
        for (int k = 0; k < fabric[i].looks; k++)
            if (rng_uniform(&fabric[i].rng) < scene[i].rare)
                fabric[i].look[k].y = NAN;
        both_stages(&n, &fabric[i]);
        noise_free(&n);
    }
    return 0;
}

static int free_scenes(void **state)
{
    (void)state;
    for (int i = 0; i < SCENES; i++)
        close_fabric(&fabric[i]);
    return 0;
}

static void print_scene(struct print *p, int i)
{
    struct noise n;

    *p = (struct print){{0}};
    if (scene[i].hosts <= FEW)
        few(&n, scene[i].hosts, &scene[i].fault);
    else
        judge(&n, &fabric[i], true);
    print_noise(p, &n);
    noise_free(&n);
}

static bool is_same(const struct print *a, const struct print *b)
{
    for (int i = 0; i < SUMS; i++)
        if (fabs(a->sum[i] - b->sum[i]) > 1e-4 * (1 + fabs(b->sum[i])))
            return false;
    return true;
}

#define NAME(name, value, reason) #name,
static const char *const name[] = {NOISE_CONSTANTS(NAME)};
enum { CONSTANTS = sizeof(name) / sizeof(*name) };

static bool changes(int constant, double factor, const struct print *as_is)
{
    double *c = (double *)&noise_constants + constant;
    const double was = *c;
    bool same = true;

    *c *= factor;
    for (int i = 0; i < SCENES && same; i++) {
        struct print p;

        print_scene(&p, i);
        same = is_same(&p, &as_is[i]);
    }
    *c = was;
    return !same;
}

static void each_constant_decides_on_both_sides(void **state)
{
    struct print as_is[SCENES];
    int idle = 0;

    (void)state;
    for (int i = 0; i < SCENES; i++)
        print_scene(&as_is[i], i);
    for (int c = 0; c < CONSTANTS; c++)
        for (int up = 0; up < 2; up++)
            if (!changes(c, up ? 1.25 : 0.8, as_is)) {
                print_message("%s %s: nothing changes\n", name[c], up ? "larger" : "smaller");
                idle++;
            }
    assert_int_equal(idle, 0);
}

static void fabrics_are_judged_as_ever(void **state)
{
    (void)state;
    for (int i = 0; i < SCENES; i++) {
        struct print p;

        print_scene(&p, i);
        if (getenv("NOISE_PRINT"))
            for (int k = 0; k < SUMS; k++)
                print_message("%s%.6g%s", k ? ", " : "    {{", p.sum[k], k + 1 < SUMS ? "" : "}},\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fabrics_are_judged_as_ever),
        cmocka_unit_test(each_constant_decides_on_both_sides),
    };

    return cmocka_run_group_tests(tests, measure_scenes, free_scenes);
}
