/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/stats.h"
#include "matrix/curve.h"
#include "test.h"

static void add(struct curve *c, double bytes, double sec)
{
    curve_add(c, (struct curve_point){bytes, sec, 0.9 * sec, 1.2 * sec, 16});
}

static void near(double a, double b, double share)
{
    if (!(fabs(a - b) <= share * fabs(b)))
        fail_msg("%.9g is not within %g of %.9g", a, share, b);
}

TEST(an_empty_curve_knows_nothing)
{
    struct curve c = {0};

    assert_true(isnan(curve_time(&c, 1024)));
    assert_true(curve_floor(&c) == 0);
}

TEST(points_are_sorted_and_met)
{
    struct curve c = {0};

    add(&c, 4096, 4e-6);
    add(&c, 1024, 1e-6);
    add(&c, 65536, 64e-6);
    assert_true(c.point[0].bytes == 1024 && c.point[2].bytes == 65536);
    near(curve_time(&c, 4096), 4e-6, 1e-12);
    near(curve_time(&c, 2048), 2e-6, 1e-9);
    near(curve_time(&c, 16384), 16e-6, 1e-9);
    curve_free(&c);
}

TEST(beyond_the_last_size_the_slope_goes_on)
{
    struct curve c = {0};
    double lo, hi, wider, high;

    add(&c, 1024, 1e-6);
    add(&c, 2048, 1.1e-6); /* still flat: latency-bound */
    near(curve_time(&c, 1), 1e-6, 1e-12);
    curve_summarise(&c);
    near(curve_time(&c, 4096), 1.1e-6 + 2048 * c.beta, 1e-9);
    assert_true(c.beta < 0.2e-6 / 1024);
    assert_true(curve_end(&c, 1500) == 0 && curve_end(&c, 4096) == 2048 &&
                curve_end(&c, 8) == 1024);
    curve_interval(&c, 4096, &lo, &hi);
    curve_interval(&c, 1 << 20, &wider, &high);
    assert_true(hi / curve_time(&c, 4096) > 1.2 && high / wider > hi / lo);
    curve_free(&c);
}

TEST(noise_in_the_last_point_does_not_grow_with_the_size)
{
    struct curve c = {0};

    add(&c, 262144, 262144e-8);
    add(&c, 1048576, 1.02 * 1048576e-8);
    near(curve_time(&c, 64 * 1048576.0), 64 * 1048576e-8, 0.03);
    curve_free(&c);
}

TEST(the_summary_is_a_slope_not_a_quotient)
{
    struct curve c = {0};

    for (double s = 8; s <= 1 << 20; s *= 2)
        add(&c, s, 200e-6 + s / 1e9); /* 200 us would spoil a quotient by 19 % */
    curve_summarise(&c);
    near(c.beta, 1e-9, 1e-6);
    near(c.alpha, 200e-6, 1e-3);
    near(curve_floor(&c), 200e-6, 1e-3);
    curve_free(&c);
}

TEST(one_point_gives_a_quotient)
{
    struct curve c = {0};

    add(&c, 1e6, 1e-3);
    curve_summarise(&c);
    near(c.beta, 1e-9, 1e-9);
    near(curve_time(&c, 2e6), 2e-3, 1e-9);
    curve_free(&c);
}

TEST(the_interval_is_the_wider_neighbours)
{
    struct curve c = {0};
    double lo, hi;

    add(&c, 1024, 1e-6);
    curve_add(&c, (struct curve_point){4096, 4e-6, 2e-6, 4e-6, 16});
    curve_interval(&c, 2048, &lo, &hi);
    near(lo, 1e-6, 1e-9);
    near(hi, 2.4e-6, 1e-9);
    curve_free(&c);
}

TEST(a_line_is_met_between_its_points)
{
    struct curve c = {0}, two = {0};

    curve_line(&c, 5e-6, 50e9);
    for (double s = 8; s < 1e10; s *= 1.07)
        near(curve_time(&c, s), 5e-6 + s / 50e9, 1e-12);
    add(&two, 1024, 5e-6 + 1024 / 50e9);
    add(&two, 0x1p30, 5e-6 + 0x1p30 / 50e9);
    for (double s = 1024; s < 0x1p30; s *= 1.3)
        near(curve_time(&two, s), 5e-6 + s / 50e9, 1e-12);
    curve_free(&c);
    curve_free(&two);
}

/* Two protocols: 10 us + 40 GB/s up to 4 MB, 160 us + 400 GB/s from 8 MB on. */
static double step(double bytes)
{
    return bytes <= 4e6 ? 10e-6 + bytes / 40e9 : 160e-6 + bytes / 400e9;
}

TEST(a_step_is_met_outside_its_own_gap_and_never_overshot_in_it)
{
    struct curve c = {0};

    for (double s = 1e6; s <= 64e6; s *= 2)
        add(&c, s, step(s));
    for (double s = 1e6; s <= 64e6; s *= 1.01) {
        if (s <= 4e6 || s >= 8e6)
            near(curve_time(&c, s), step(s), 1e-12);
        else
            assert_true(curve_time(&c, s) >= step(4e6) && curve_time(&c, s) <= step(8e6));
    }
    curve_free(&c);
}

/* Latency and rate of two protocols of which the faster one is taken at each size. */
static double faster(double bytes)
{
    return fmin(5e-6 + bytes / 10e9, 20e-6 + bytes / 100e9);
}

/* The chord misses the bend by most; a knee halves that, and changes nothing elsewhere. */
TEST(where_two_lines_meet_time_bends)
{
    struct curve c = {0}, apart = {0};
    double worst = 0, chord = 0;

    for (double s = 8192; s <= 16e6; s *= 2)
        add(&c, s, faster(s));
    for (double s = 8192; s <= 16e6; s *= 16)
        add(&apart, s, faster(s));
    for (double s = 8192; s <= 8e6; s *= 1.003) {
        int i = 0;
        while (c.point[i + 1].bytes <= s)
            i++;
        const struct curve_point *a = &c.point[i];
        double straight = a->sec + (a[1].sec - a->sec) * (s - a->bytes) / (a[1].bytes - a->bytes);
        worst = fmax(worst, fabs(curve_time(&c, s) / faster(s) - 1));
        chord = fmax(chord, fabs(straight / faster(s) - 1));
        assert_true(curve_time(&c, s) >= straight * (1 - 1e-9));
        assert_true(curve_time(&c, s) <= faster(s) * (1 + 1e-9));
    }
    assert_true(chord > 0.05 && worst < 0.55 * chord);
    near(curve_time(&apart, 1e6), /* too far apart: the chord */
         apart.point[1].sec + (apart.point[2].sec - apart.point[1].sec) *
                                  (1e6 - apart.point[1].bytes) /
                                  (apart.point[2].bytes - apart.point[1].bytes),
         1e-12);
    for (int i = 0; i < c.points; i++)
        near(curve_time(&c, c.point[i].bytes), c.point[i].sec, 1e-12);
    curve_free(&c);
    curve_free(&apart);
}

/* A size that took longer than a larger one stands alone: what follows it costs what that did. */
TEST(after_a_fall_time_is_the_next_point_s)
{
    struct curve c = {0};

    for (double s = 1024; s <= 65536; s *= 2)
        add(&c, s, s == 4096 ? 2e-5 : 1e-5 * (1 + s / 1e6));
    near(curve_time(&c, 4096), 2e-5, 1e-12);
    for (double s = 4096 + 256; s <= 8192; s += 64)
        near(curve_time(&c, s), 1e-5 * (1 + 8192 / 1e6), 1e-12);
    curve_free(&c);
}

/* Times that rise point by point rise between the points too; a knee adds half of the noise at
 * most. */
TEST(noise_stays_between_its_points)
{
    struct curve c = {0};
    struct rng rng;
    double before = 0;

    rng_seed(&rng, 7);
    for (double s = 4096; s <= 0x1p30; s *= 4)
        add(&c, s, (10e-6 + s / 100e9) * (1 + 0.02 * (2 * rng_uniform(&rng) - 1)));
    for (int i = 1; i < c.points; i++)
        assert_true(c.point[i].sec >= c.point[i - 1].sec || c.point[i].bytes < 1e6);
    for (double s = 4096; s <= 0x1p30; s *= 1.05) {
        double t = curve_time(&c, s);
        near(t, 10e-6 + s / 100e9, 0.03);
        assert_true(s < 1e6 || t >= before);
        before = t;
    }
    curve_free(&c);
}

/* Random ladders with noise within their intervals rise; a fall beyond them stays. */
TEST(time_rises_with_the_size_unless_it_was_measured_to_fall)
{
    for (unsigned long seed = 1; seed <= 200; seed++) {
        struct curve c = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        double noise = 0.01 + 0.07 * rng_uniform(&rng), alpha = 1e-5;
        int fall = (int)(20 * rng_uniform(&rng)) + 2; /* from here on half the latency */
        for (int i = 0; i < 24; i++) {
            double sec = (i < fall ? alpha : alpha / 2) * exp(noise / 4 * rng_normal(&rng));
            sec = fmin(fmax(sec, alpha / 2 * (1 - noise)), alpha * (1 + noise)) + ldexp(1e-16, i);
            curve_add(&c, (struct curve_point){ldexp(8, i), sec, sec * (1 - 2 * noise),
                                               sec * (1 + 2 * noise), 1 + i % 5});
        }
        curve_settle(&c);
        for (int i = 0; i + 1 < c.points; i++) {
            const struct curve_point *p = &c.point[i];
            assert_true(p->lo <= p->sec && p->sec <= p->hi);
            if (i + 1 == fall ? p[1].sec > 0.7 * p->sec : p[1].sec < p->sec)
                fail_msg("seed %lu: %g s at %g B, then %g s", seed, p->sec, p->bytes, p[1].sec);
        }
        curve_free(&c);
    }
}
