/* SPDX-License-Identifier: BSD-3-Clause */
/* Random fabrics of which a campaign is told nothing but host names: the groups that it finds are
 * the truth's, and every pair has the truth's price, small and large. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit.h"
#include "measure/measure.h"
#include "transport/sim/sim.h"

enum { SEEDS = 24, LARGE = 64 << 20 };

enum wiring { FLAT, RACKS, RAILS, RAIL_BLOCKS, NVLINK_RACKS, WIRINGS };
static const char *const wiring_name[] = {"flat", "racks", "rails", "rails in blocks",
                                          "NVLink racks over rails"};

struct scene {
    unsigned seed;
    enum wiring wiring;
    struct fabric fabric;
    struct topo truth, seen;
    double noise, slower, narrower; /* fabric against rail: latency, bandwidth */
    struct sim sim;
    struct matrix matrix;
};

static double between(struct rng *rng, double lo, double hi)
{
    return lo * exp(rng_uniform(rng) * log(hi / lo));
}

static void shape(struct scene *s, struct rng *rng)
{
    struct fabric *f = &s->fabric;
    int racks = 2 + (int)rng_below(rng, 3), many = s->wiring >= RAILS ? 4 : 0;

    f->gpus_per_host = f->nics_per_host = many ? many << rng_below(rng, 2) : 1 << rng_below(rng, 3);
    f->hosts_per_rack = 3 + (int)rng_below(rng, 4);
    f->rail_optimised = s->wiring >= RAILS;
    f->hosts_per_leaf = s->wiring == RAIL_BLOCKS ? f->hosts_per_rack
                        : s->wiring == RACKS     ? f->hosts_per_rack
                                                 : racks * f->hosts_per_rack;
    f->hosts_per_domain = s->wiring == NVLINK_RACKS ? f->hosts_per_rack : 1;
    if (s->wiring == NVLINK_RACKS)
        f->tier[0].rule.same = 1u << LEVEL_DOMAIN;
    if (s->wiring == FLAT)
        s->slower = s->narrower = 1;
    f->tier[2].alpha.value = f->tier[1].alpha.value * s->slower;
    f->tier[2].Bps.value = f->tier[1].Bps.value / s->narrower;
    f->tier[2].bi_Bps.value = f->tier[2].Bps.value;
    struct err err;
    assert_int_equal(fabric_topo(f, racks, false, &s->truth, &err), 0);
    assert_int_equal(fabric_topo(f, racks, true, &s->seen, &err), 0);
}

static void campaign(struct scene *s)
{
    char path[] = "/tmp/rg-tiers-XXXXXX";
    struct measure_opts mo;
    struct plan_opts po;
    struct fit_opts fo;
    struct plan plan;
    struct points_log *log;
    struct err err;

    close(mkstemp(path));
    unlink(path);
    plan_defaults(&po);
    po.ops = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW;
    po.max_bytes = po.pair_bytes = LARGE;
    po.factor = 64;
    po.seed = s->seed;
    assert_int_equal(plan_make(&plan, &s->seen, &po, &err), 0);
    world_solo.ctx = &s->sim;
    mo = MEASURE_DEFAULTS;
    assert_int_equal(points_open(&log, path, plan_crc(&plan), &s->seen, "sim", &err), 0);
    if (measure_plan(&world_solo, transport_find("sim"), &s->seen, &plan, &mo, log, &err) < 0)
        fail_msg("%s", err.text);
    fit_defaults(&fo);
    struct topo seen;
    topo_copy(&seen, &s->seen);
    if (fit_matrix(&s->matrix, &seen, &plan, points_all(log), &fo, &err) < 0)
        fail_msg("%s", err.text);
    points_close(log, &err);
    unlink(path);
    plan_free(&plan);
    world_solo.ctx = NULL;
}

static void open_scene(struct scene *s, unsigned seed)
{
    struct rng rng;
    struct err err;

    memset(s, 0, sizeof(*s));
    rng_seed(&rng, seed);
    s->seed = seed;
    s->wiring = (enum wiring)(seed % WIRINGS);
    s->noise = between(&rng, 0.01, 0.05);
    s->slower = between(&rng, 1.08, 12);
    s->narrower = rng_below(&rng, 2) ? between(&rng, 1, 16) : 1;
    assert_int_equal(fabric_load(&s->fabric, "hgx-h100", &err), 0);
    shape(s, &rng);
    s->sim =
        (struct sim){.fabric = &s->fabric, .truth = &s->truth, .noise = s->noise, .seed = s->seed};
}

static void close_scene(struct scene *s)
{
    matrix_free(&s->matrix);
    sim_free(&s->sim);
    topo_free(&s->truth);
    topo_free(&s->seen);
    fabric_free(&s->fabric);
}

static void wrong(const struct scene *s, const char *what, int a, int b, double is, double should)
{
    for (int i = 0; i < s->matrix.findings; i++)
        print_message("%s: %s\n", s->matrix.finding[i].kind, s->matrix.finding[i].text);
    fail_msg("seed %u, %s, %d hosts of %d, noise %.1f %%, latency x %.2f, bandwidth / %.2f: %s of "
             "%d and %d: %g where the truth is %g",
             s->seed, wiring_name[s->wiring], s->truth.hosts, s->fabric.gpus_per_host,
             100 * s->noise, s->slower, s->narrower, what, a, b, is, should);
}

static int tier_of(const struct topo *t, int a, int b)
{
    return topo_tier(t, a, b);
}

/* Two pairs are in one tier of the matrix where they are in one of the truth. */
static void tiers_are_truth(const struct scene *s)
{
    int to[TIER_MAX], back[TIER_MAX], flat = s->wiring == FLAT;
    const struct topo *m = &s->matrix.topo;

    memset(to, -1, sizeof(to));
    memset(back, -1, sizeof(back));
    for (int a = 0; a < m->endpoints; a++)
        for (int b = a + 1; b < m->endpoints; b++) {
            int is = tier_of(m, a, b), should = tier_of(&s->truth, a, b);
            if (m->endpoint[a].place.at[LEVEL_HOST] == m->endpoint[b].place.at[LEVEL_HOST])
                continue;
            if (flat && should > 1)
                should = 1;
            if (to[should] < 0)
                to[should] = is;
            if (back[is] < 0)
                back[is] = should;
            if (to[should] != is || back[is] != should)
                wrong(s, "tier", a, b, is, to[should]);
        }
}

/* Is the pair within a leaf that is named for what leaves it, because no pair within it was measured? */
static bool was_unseen(const struct scene *s, int a, int b)
{
    int x = s->truth.endpoint[a].place.at[LEVEL_LEAF],
        y = s->truth.endpoint[b].place.at[LEVEL_LEAF];

    for (int i = 0; i < s->matrix.exceptions; i++) {
        const struct exception *e = &s->matrix.exception[i];
        if (e->part == PART_LEAF && e->tier >= 0 && e->a == x && x == y)
            return true;
    }
    return false;
}

static void prices_are_truth(const struct scene *s)
{
    struct cost c;

    for (int a = 0; a < s->truth.endpoints; a++)
        for (int b = 0; b < s->truth.endpoints; b++) {
            if (a == b || was_unseen(s, a, b))
                continue;
            for (int large = 0; large < 2; large++) {
                double bytes = large ? LARGE : 8;
                double want = sim_pair(&s->sim, OP_PAIR_LATENCY, a, b, bytes, 1);
                matrix_pair(&s->matrix, a, b, bytes, &c);
                if (!(fabs(c.sec / want - 1) < s->noise))
                    wrong(s, large ? "64 MiB" : "8 B", a, b, c.sec, want);
            }
        }
}

static unsigned first_seed(void)
{
    const char *text = getenv("RG_SEED");

    return text ? (unsigned)strtoul(text, NULL, 10) : 1;
}

static void random_fabrics_are_found_and_priced(void **state)
{
    (void)state;
    for (unsigned seed = first_seed(); seed < first_seed() + SEEDS; seed++) {
        struct scene s;
        open_scene(&s, seed);
        campaign(&s);
        tiers_are_truth(&s);
        prices_are_truth(&s);
        assert_int_equal(s.matrix.exceptions, 0);
        close_scene(&s);
    }
}

/* --- one cause, one line --- */

static void fault(struct scene *s, const char *kind, int a, int b)
{
    char text[64];
    struct err err;

    if (b < 0)
        snprintf(text, sizeof(text), "%s=%d:0.5", kind, a);
    else
        snprintf(text, sizeof(text), "%s=%d-%d:0.5", kind, a, b);
    if (sim_fault(&s->sim, text, &err) < 0)
        fail_msg("%s", err.text);
}

static void is_one(const struct scene *s, const char *what, enum part part, int at)
{
    const struct matrix *m = &s->matrix;
    char text[256];

    if (m->exceptions == 1 && m->exception[0].part == part && m->exception[0].a == at)
        return;
    for (int i = 0; i < m->findings; i++)
        print_message("%s: %s\n", m->finding[i].kind, m->finding[i].text);
    for (int i = 0; i < m->exceptions; i++)
        print_message("%s: %s\n", matrix_part(m, &m->exception[i], text), m->exception[i].why);
    fail_msg("seed %u, %s, %d hosts of %d, noise %.1f %%, latency x %.2f, bandwidth / %.2f, %s: %d "
             "lines",
             s->seed, wiring_name[s->wiring], s->truth.hosts, s->fabric.gpus_per_host,
             100 * s->noise, s->slower, s->narrower, what, m->exceptions);
}

/* The campaign is told of the fabric. */
static void tell(struct scene *s)
{
    topo_free(&s->seen);
    topo_copy(&s->seen, &s->truth);
}

static void slow_leaf(unsigned seed, bool told)
{
    struct scene s;

    open_scene(&s, seed);
    int at = s.truth.endpoint[s.truth.endpoints - 1].place.at[LEVEL_LEAF];
    for (int i = 0; i < s.truth.endpoints; i++)
        if (s.truth.endpoint[i].place.at[LEVEL_LEAF] == at)
            fault(&s, "slow-nic", i, -1);
    if (told)
        tell(&s);
    campaign(&s);
    is_one(&s, "a slow leaf", !told && s.wiring == RACKS ? PART_RACK : PART_LEAF, at);
    prices_are_truth(&s);
    close_scene(&s);
}

static void slow_uplinks(unsigned seed, bool told)
{
    struct scene s;

    open_scene(&s, seed);
    int racks = s.truth.group[LEVEL_RACK].count;
    for (int r = 0; r < racks; r++)
        if (r != 1)
            fault(&s, "slow-racks", 1, r);
    if (told)
        tell(&s);
    campaign(&s);
    if (racks >
        2) /* a rack with one leaf has the uplinks of that leaf, and where no tier is a leaf's its name */
        is_one(&s, "slow uplinks",
               told && s.matrix.exceptions == 1 && s.matrix.exception[0].part == PART_LEAF
                   ? PART_LEAF
                   : PART_RACK_UPLINKS,
               1);
    else /* all that there is between racks: the tier itself */
        assert_int_equal(s.matrix.exceptions, 0);
    prices_are_truth(&s);
    close_scene(&s);
}

static void a_slow_leaf_is_one_line(void **state)
{
    (void)state;
    for (unsigned seed = first_seed(); seed < first_seed() + 10; seed++)
        for (int told = 0; told < 2; told++)
            if (seed % WIRINGS >= RACKS && seed % WIRINGS <= RAIL_BLOCKS)
                slow_leaf(seed, told);
}

static void slow_uplinks_are_one_line_and_no_boundary(void **state)
{
    (void)state;
    for (unsigned seed = first_seed(); seed < first_seed() + 20; seed++)
        for (int told = 0; told < 2; told++)
            if (seed % WIRINGS == RACKS)
                slow_uplinks(seed, told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_fabrics_are_found_and_priced),
        cmocka_unit_test(a_slow_leaf_is_one_line),
        cmocka_unit_test(slow_uplinks_are_one_line_and_no_boundary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
