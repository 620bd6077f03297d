/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/epochs.c - figures in blocks of time, made by hand; both sides of each constant's edge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "small.h"
#include "verdict/compare.h"

/* One figure of so many units, epochs and sizes; y of a point from its cell. */
typedef double value_of(int unit, int epoch, int size);

static void make(struct epochs *e, int units, int epochs, int sizes, bool rate, value_of *value)
{
    int n = units * epochs * sizes, at = 0;
    struct figure_cell *cell = mem_calloc((size_t)n, sizeof(*cell));
    double *y = mem_calloc((size_t)n, sizeof(*y));
    const struct figure g = {.key.tier = 0, .rate = rate, .nic = true, .points = n};
    const struct figures all = {.cell = cell};

    for (int u = 0; u < units; u++)
        for (int k = 0; k < epochs; k++)
            for (int s = 0; s < sizes; s++) {
                cell[at] = (struct figure_cell){.epoch = k, .unit = u};
                y[at++] = value(u, k, s);
            }
    epochs_of(e, &all, &g, y);
    free(y);
    free(cell);
}

static double ladder(int unit, int epoch, int size) /* 5 % of luck that all sizes share */
{
    return (unit == 1 ? 0.05 : 0) + 0.01 * epoch + 1e-6 * size;
}

static void sizes_are_no_evidence(void **state)
{
    struct epochs one, many;

    (void)state;
    make(&one, 3, 4, 1, true, ladder);
    make(&many, 3, 4, 9, true, ladder);
    assert_int_equal(many.blocks, 4);
    assert_int_equal(many.units, 3);
    assert_float_equal(many.level, 0.015, 1e-5);
    assert_float_equal(many.between, one.between, 1e-6);
    assert_float_equal(many.share, 1 / 3., 1e-9);
    assert_int_equal(many.lucks, 3);
    assert_float_equal(many.luck[1], 0.05 * sqrt(1.5), 1e-5); /* one of three: n / (n - 1) */
    epochs_free(&one);
    epochs_free(&many);
}

static double step(int unit, int epoch, int size)
{
    (void)size;
    return 0.02 + 0.001 * epoch + 1e-4 * unit;
}

static void so_many_epochs_are_needed(void **state)
{
    (void)state;
    for (int n = 1; n <= PLAN_EPOCHS; n++) {
        struct epochs e;
        make(&e, 4, n, 2, true, step);
        epochs_judge(&e, 1);
        assert_int_equal(isnan(e.p), n < EPOCHS_LEAST);
        assert_int_equal(n < 3, n < EPOCHS_LEAST);
        epochs_free(&e);
    }
}

/* One figure by itself: a plain t test with the floor under it. */
static void one_figure_has_a_t_test(void **state)
{
    struct epochs e;

    (void)state;
    make(&e, 1, 5, 1, true, step);
    epochs_judge(&e, 1);
    assert_float_equal(e.level, 0.022, 1e-9);
    assert_float_equal(e.se, sqrt(2.5e-6 / 5 + 25e-8), 1e-9);
    assert_float_equal(e.df, 4, 1e-9);
    assert_float_equal(e.p, 2 * dist_t_cdf(-0.022 / e.se, 4), 1e-12);
    epochs_free(&e);
}

static double still(int unit, int epoch, int size)
{
    (void)unit;
    (void)epoch;
    (void)size;
    return 0.001;
}

static void no_standard_error_is_below_the_floor(void **state)
{
    struct epochs e;

    (void)state;
    make(&e, 4, 5, 1, true, still);
    epochs_judge(&e, 1);
    assert_float_equal(e.se, 5e-4, 1e-9); /* EPOCHS_FLOOR: 0.1 % is t = 2 then, and no more */
    epochs_free(&e);
}

static double apart(int unit, int epoch, int size)
{
    (void)epoch;
    (void)size;
    return 0.01 * unit;
}

static void so_many_units_show_how_they_differ(void **state)
{
    (void)state;
    for (int units = 1; units < 6; units++) {
        struct epochs e;
        make(&e, units, 5, 1, true, apart);
        assert_int_equal(isnan(e.within), units < EPOCHS_UNITS);
        assert_int_equal(units < 3, units < EPOCHS_UNITS);
        epochs_free(&e);
    }
}

/* Luck that lasts for the campaign enters the standard error from the sixth unit on that shows it. */
static void so_many_units_show_luck(void **state)
{
    (void)state;
    for (int units = 4; units < 9; units++) {
        struct epochs e;
        make(&e, units, 5, 1, true, apart);
        epochs_judge(&e, 1);
        if (units < 6)
            assert_float_equal(e.se, EPOCHS_FLOOR, 1e-9);
        else
            assert_true(e.se > 0.01 * units / 5 / sqrt(units) &&
                        e.se < 0.01 * units / 2 / sqrt(units));
        epochs_free(&e);
    }
    assert_int_equal(EPOCHS_LUCK, 6);
}

/* A quarter of the variance of the others is no reason to be four times as sure. */
static void variances_are_moderated_by_the_others(void **state)
{
    struct epochs e[12];
    struct rng r;

    (void)state;
    rng_seed(&r, 5);
    for (int i = 0; i < 12; i++) {
        e[i] = (struct epochs){.kind = 3,
                               .blocks = 5,
                               .units = 2,
                               .cells = 1,
                               .between = 1e-4,
                               .within = NAN,
                               .luck_noise = NAN,
                               .level = 0.03};
        if (i)
            e[i].between *= 0.5 + rng_uniform(&r);
    }
    e[0].between = 1e-4 / 16;
    epochs_judge(e, 12);
    assert_float_equal(e[0].df, 8, 1e-6); /* the prior counts for no more than the own epochs */
    assert_true(e[0].se > 0.0030 && e[0].se < 0.0045);
    e[0].joined = true;
    epochs_judge(e, 12);
    assert_float_equal(e[0].df, 4, 1e-6);
    assert_float_equal(e[0].se, sqrt(1e-4 / 16 / 5 + 25e-8), 1e-6);
}

/* Variances that differ by factors of 1,000: the prior has no weight of its own, and keeps EPOCHS_PRIOR. */
static void no_variance_is_none(void **state)
{
    struct epochs e[13];

    (void)state;
    for (int i = 0; i < 13; i++)
        e[i] = (struct epochs){.kind = 3,
                               .blocks = 5,
                               .units = 2,
                               .cells = 1,
                               .between = 1e-4 * pow(10, i - 6),
                               .within = 1e-4,
                               .luck_noise = NAN,
                               .level = 0.5};
    e[0].between = 0;
    epochs_judge(e, 13);
    assert_float_equal(e[0].df, 4 + 1, 1e-6);
    assert_float_equal(e[0].se, sqrt(sqrt(10) * 1e-4 / 0.84 / 5 / 5), 1e-4);
}

static void a_mean_of_figures_has_the_epochs_of_all(void **state)
{
    struct epochs a, b, both;
    const struct epochs *const part[] = {&a, &b};

    (void)state;
    make(&a, 2, 5, 1, true, step);
    make(&b, 2, 4, 1, true, apart);
    epochs_join(&both, part, 2);
    assert_int_equal(both.blocks, 4);
    assert_float_equal(both.value[3], (0.02305 + 0.005) / 2, 1e-9);
    epochs_free(&a);
    epochs_free(&b);
    epochs_free(&both);
}

/* --- COMPARE_ALPHA and COMPARE_TOGETHER: two campaigns whose p-value is known --- */

/* Figures of the small machine: bandwidth within a rack and between racks, latency within a rack. */
enum { NEAR, FAR, TIME, MEASURED };

/* Log of the times of epoch e is off by change[figure] + noise * pattern, whose mean is 0. */
static void measure(struct points *p, const struct matrix *m, const double *change, double noise)
{
    static const double pattern[] = {-2, -1, 0, 1, 2};

    *p = (struct points){.endpoints = m->topo.endpoints};
    for (int e = 0; e < 5; e++)
        for (int k = 0; k < MEASURED; k++)
            if (!isnan(change[k]))
                MEM_PUSH(p->point, p->count) =
                    (struct point){.epoch = e,
                                   .stage = STAGE_CLASS,
                                   .op = k == TIME ? OP_PAIR_LATENCY : OP_PAIR_BW,
                                   .ranks = 2,
                                   .src = 0,
                                   .dst = k == FAR ? 8 : 2,
                                   .flows = 1,
                                   .bytes = k == TIME ? 8 : 4 << 20,
                                   .sec.median = 1e-3 * exp(change[k] + noise * pattern[e])};
}

/* What is said of each figure and, last, of all together; NAN: not measured. */
struct said {
    double p;
    enum change is[MEASURED + 1];
};

static struct said say(double near, double far, double time, double noise)
{
    const double change[] = {near, far, time}, none[] = {0 * near, 0 * far, 0 * time};
    struct said said = {.p = NAN};
    struct matrix m;
    struct points before, after;
    struct compare c;
    struct err err;

    small_matrix(&m);
    measure(&before, &m, none, 0);
    measure(&after, &m, change, noise);
    const struct campaign a = {.path = "a", .matrix = &m, .topo = &m.topo, .points = &before},
                          b = {.path = "b", .matrix = &m, .topo = &m.topo, .points = &after};
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), 0);
    for (int i = 0; i < c.figures; i++)
        said.is[!c.figure[i].rate                       ? TIME
                : strstr(c.figure[i].what, "tier rack") ? NEAR
                                                        : FAR] = c.figure[i].is;
    said.is[MEASURED] = c.together.is;
    said.p = c.together.p;
    compare_free(&c);
    free(before.point);
    free(after.point);
    matrix_free(&m);
    return said;
}

/* The noise of a change of 2 % at which one figure's p-value is at this level. */
static double noise_at(double level)
{
    double t = dist_t_quantile(1 - level / 2, 4), se = 0.02 / t;

    return sqrt((se * se - EPOCHS_FLOOR * EPOCHS_FLOOR) * 5 / 2.5);
}

static void alarms_are_as_rare_as_the_constants_say(void **state)
{
    (void)state;
    assert_float_equal(COMPARE_ALPHA, 0.005, 1e-12);
    struct said in = say(0.02, NAN, 0, 0.99 * noise_at(0.004)),
                out = say(0.02, NAN, 0, 1.01 * noise_at(0.004));
    assert_int_equal(in.is[MEASURED], CHANGE_WORSE);
    assert_int_equal(in.is[NEAR], CHANGE_WORSE); /* all together are this tier alone */
    assert_float_equal(in.p, 0.004, 2e-4);
    assert_int_equal(out.is[MEASURED], CHANGE_NONE);
    assert_int_equal(out.is[NEAR], CHANGE_NONE);
    /* Other figures share what is left, 0.001, and there are two. */
    in = say(0, NAN, 0.02, 0.99 * noise_at(0.0005));
    out = say(0, NAN, 0.02, 1.01 * noise_at(0.0005));
    assert_int_equal(in.is[TIME], CHANGE_WORSE);
    assert_int_equal(out.is[TIME], CHANGE_NONE);
    assert_int_equal(in.is[MEASURED], CHANGE_NONE);
}

/* Two tiers share 0.004 once both together have changed; where one makes up for the other, they do not. */
static void tiers_are_told_apart_once_together_have_changed(void **state)
{
    (void)state;
    struct said both = say(0.02, 0.0205, NAN, 0.99 * noise_at(0.002)),
                neither = say(0.02, 0.0200001, NAN, 1.01 * noise_at(0.002)),
                against = say(0.02, -0.02, NAN, 0.99 * noise_at(0.002));

    assert_int_equal(both.is[MEASURED], CHANGE_WORSE);
    assert_int_equal(both.is[NEAR], CHANGE_WORSE);
    assert_int_equal(both.is[FAR], CHANGE_WORSE);
    assert_int_equal(neither.is[MEASURED], CHANGE_WORSE);
    assert_int_equal(neither.is[NEAR], CHANGE_NONE);
    assert_int_equal(neither.is[FAR], CHANGE_NONE);
    assert_int_equal(against.is[MEASURED], CHANGE_NONE);
    assert_int_equal(against.is[NEAR], CHANGE_NONE);
}

static void what_is_below_the_tolerance_is_the_same(void **state)
{
    (void)state;
    assert_int_equal(say(0.0101, NAN, 0, 1e-5).is[MEASURED], CHANGE_WORSE);
    assert_int_equal(say(0.0098, NAN, 0, 1e-5).is[MEASURED], CHANGE_NONE);
    assert_int_equal(say(-0.0101, NAN, 0, 1e-5).is[MEASURED], CHANGE_BETTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_no_evidence),
        cmocka_unit_test(so_many_epochs_are_needed),
        cmocka_unit_test(one_figure_has_a_t_test),
        cmocka_unit_test(no_standard_error_is_below_the_floor),
        cmocka_unit_test(so_many_units_show_how_they_differ),
        cmocka_unit_test(so_many_units_show_luck),
        cmocka_unit_test(variances_are_moderated_by_the_others),
        cmocka_unit_test(no_variance_is_none),
        cmocka_unit_test(a_mean_of_figures_has_the_epochs_of_all),
        cmocka_unit_test(alarms_are_as_rare_as_the_constants_say),
        cmocka_unit_test(tiers_are_told_apart_once_together_have_changed),
        cmocka_unit_test(what_is_below_the_tolerance_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
