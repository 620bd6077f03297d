/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/asked/budget.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static void near(double is, double should, double share)
{
    if (!(fabs(is - should) <= share * fabs(should)))
        fail_msg("%.12g is not %.12g", is, should);
}

/* 100 GPUs, a million tokens in 2 s. */
static const struct prediction step = {.sec = 2, .lo = 1.5, .hi = 3, .tokens = 1e6, .ranks = 100};
static const struct recipe plain;

static struct budget made(const struct budget_opts *o)
{
    struct budget b;
    struct err err = {0, ""};

    if (budget_of(&b, o, &step, &plain, 25, &err) < 0)
        fail_msg("%s", err.text);
    return b;
}

TEST(tokens_become_days_hours_cost_and_energy)
{
    const struct budget_opts o = {.tokens = 1e9 + 1, .price = 3, .watts = 500, .pue = 1.2};
    struct budget b = made(&o);

    assert_true(b.steps == 1001);
    near(b.wall.is, 2002, 1e-12);
    near(b.wall.lo, 1501.5, 1e-12);
    near(b.wall.hi, 3003, 1e-12);
    near(b.gpu_hours.is, 200200 / 3600.0, 1e-12);
    near(b.cost.hi, 3 * 300300 / 3600.0, 1e-12);
    near(b.joules.is, 2002 * 500 * 100 * 1.2, 1e-12);
    near(b.step_joules, 120000, 1e-12);
    near(b.rate.is, 5e5, 1e-12);
    near(b.rate.lo, 1e6 / 3, 1e-12);
}

/* An exponential time to the next failure; a generator of its own, so that it is the same
 * everywhere. */
static double draw(uint64_t *state, double mean)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return -mean * log(((double)(*state >> 11) + 0.5) / 0x1p53);
}

/* The run itself: work of tau and a checkpoint, thrown away by a failure; restarts may fail too. */
static double simulated(double tau, double d, double restart, double m, double *again)
{
    uint64_t seed = 20261123;
    double clock = 0, next = draw(&seed, m), lost = 0;
    enum { SEGMENTS = 200000 };

    for (int done = 0; done < SEGMENTS;) {
        if (clock + tau + d <= next) {
            clock += tau + d;
            done++;
            continue;
        }
        lost += next - clock;
        for (;;) { /* restarts until one ends */
            clock = next;
            next = clock + draw(&seed, m);
            if (clock + restart <= next)
                break;
        }
        clock += restart;
    }
    *again = lost / clock;
    return SEGMENTS * tau / clock;
}

TEST(goodput_is_what_a_simulated_run_has)
{
    static const double cases[][4] = {/* tau, d, R, M */
                                      {3600, 60, 300, 3 * 3600.0},
                                      {900, 120, 600, 3600},
                                      {7200, 30, 1200, 86400},
                                      {100, 50, 900, 700}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const double *c = cases[i];
        struct budget_opts o = {.every = c[0], .checkpoint = c[1], .restart = c[2], .mtbf = c[3]};
        struct budget b = made(&o);
        double again, want = simulated(c[0], c[1], c[2], c[3], &again);
        near(b.goodput, want, 0.01);
        near(b.rework, again, 0.02);
        near(b.goodput + b.checkpoints + b.rework + b.restarts, 1, 1e-12);
    }
}

/* Nobody's interval is better by more than a tenth of a percent where a checkpoint is short. */
TEST(dalys_interval_is_the_best)
{
    static const double m[] = {600, 3600, 5 * 3600.0, 30 * 86400.0};

    for (size_t i = 0; i < sizeof(m) / sizeof(*m); i++) {
        struct budget_opts o = {.checkpoint = 45, .restart = 120, .mtbf = m[i]};
        struct budget best = made(&o);
        near(best.young, sqrt(2 * 45 * m[i]), 1e-12);
        for (double f = 0.2; f < 5; f *= 1.02) {
            o.every = best.interval * f;
            assert_true(made(&o).goodput <= best.goodput * 1.001);
        }
    }
    /* 1 + sqrt(1/32) / 3 + 1/288 of sqrt(2 x 60 x 960) = 339.41, less 60 */
    struct budget_opts o = {.checkpoint = 60, .mtbf = 960};
    near(made(&o).interval, 339.4112549695428 * (1 + 0.1767766952966369 / 3 + 0.03125 / 9) - 60,
         1e-12);
    o.checkpoint = 2000; /* longer than two of them lie apart */
    near(made(&o).interval, 960, 1e-12);
}

TEST(failures_of_parts_add_up)
{
    struct budget_opts o = {.tokens = 1e12, .checkpoint = 60, .mtbf = 3.6e6};

    near(made(&o).mtbf, 3.6e6, 1e-12);
    o.mtbf_of = BUDGET_OF_NODE;
    near(made(&o).mtbf, 3.6e6 / 25, 1e-12);
    o.mtbf_of = BUDGET_OF_GPU;
    struct budget b = made(&o);
    near(b.mtbf, 36000, 1e-12);
    near(b.failures, b.wall.is / 36000, 1e-12);
    near(b.wall.is, 2e6 / b.goodput, 1e-12);
}

TEST(checkpoints_without_failures_cost_their_share)
{
    const struct budget_opts o = {.checkpoint = 60, .every = 540};
    struct budget b = made(&o);

    near(b.goodput, 0.9, 1e-12);
    near(b.checkpoints, 0.1, 1e-12);
    assert_true(b.rework == 0 && b.restarts == 0);
}

TEST(what_cannot_be_is_refused)
{
    const struct budget_opts twice = {.checkpoint = 60, .every = 540};
    const struct budget_opts never = {.checkpoint = 60, .every = 1e6, .mtbf = 100};
    const struct recipe has = {.checkpoint_seconds = 1};
    struct budget b;
    struct err err = {0, ""};

    assert_int_equal(budget_of(&b, &twice, &step, &has, 1, &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    err = (struct err){0, ""};
    assert_int_equal(budget_of(&b, &never, &step, &plain, 1, &err), -1);
    assert_int_equal(err.code, EXIT_UNJUDGED);
}
