/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is to blame: random faults on random simulated fabrics; what the fit names is held against
 * what was injected.
 *
 * RAILGAUGE_CAMPAIGNS=200 RAILGAUGE_SEED=1000 build/tests/unit/blame runs more of them, and says
 * what was found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "fit/fit.h"
#include "measure/measure.h"
#include "transport/sim/sim.h"

enum { CAMPAIGNS = 20, FAULTS_MAX = 4, TEXT = 64 };

static char dir[] = "/tmp/rg-blame-XXXXXX";
static char path[64];

static const char *const fault_name[FAULT_COUNT] = {
    [FAULT_SLOW_LINK] = "slow-link",   [FAULT_SLOW_NIC] = "slow-nic",
    [FAULT_SLOW_GPU] = "slow-gpu",     [FAULT_SLOW_HOST] = "slow-host",
    [FAULT_SLOW_RACKS] = "slow-racks", [FAULT_DEAD_HOST] = "dead-host",
    [FAULT_CORRUPT] = "corrupt"};

struct scene {
    const char *fabric;
    int racks, faults;
    double noise;
    char fault[FAULTS_MAX][TEXT];
    unsigned long long seed;
};

struct score {
    int campaigns, false_parts;
    int put[FAULT_COUNT], found[FAULT_COUNT];
};

/* --- scenes --- */

static const struct {
    const char *fabric;
    int racks_max, hosts, per; /* of a rack */
} presets[] = {
    {"hgx-h100", 16, 4, 8},    {"gb200-nvl72", 4, 18, 4},           {"hgx-a100", 8, 4, 8},
    {"gb300-nvl72", 3, 18, 4}, {"gb300-nvl72-spectrumx", 2, 18, 4}, {"hgx-b200", 6, 4, 8}};

static void random_fault(struct scene *s, char *text, int hosts, int per, struct rng *rng)
{
    static const enum fault_kind kinds[] = {FAULT_SLOW_LINK, FAULT_SLOW_NIC,   FAULT_SLOW_GPU,
                                            FAULT_SLOW_HOST, FAULT_SLOW_RACKS, FAULT_DEAD_HOST,
                                            FAULT_CORRUPT};
    enum fault_kind kind = kinds[rng_below(rng, sizeof(kinds) / sizeof(*kinds))];
    int n = hosts * s->racks, a = (int)rng_below(rng, (unsigned)(n * per)),
        b = (a + 1 + (int)rng_below(rng, (unsigned)(n * per - 1))) % (n * per);
    double factor = 0.3 + 0.6 * rng_uniform(rng);

    if (kind == FAULT_SLOW_RACKS && s->racks < 3) /* two racks have no third to differ from */
        kind = FAULT_SLOW_NIC;
    if (kind == FAULT_SLOW_NIC && s->racks == 1 && hosts == 18) /* one NVLink domain: no NIC used */
        kind = FAULT_SLOW_GPU;
    if (kind == FAULT_SLOW_RACKS) {
        a %= s->racks;
        b = (a + 1 + b % (s->racks - 1)) % s->racks;
    }
    if (kind == FAULT_SLOW_HOST || kind == FAULT_DEAD_HOST)
        a %= n;
    const char *side = kind != FAULT_SLOW_NIC ? "" : (const char *[]){"", ":tx", ":rx"}[b % 3];
    if (kind == FAULT_DEAD_HOST || kind == FAULT_CORRUPT)
        snprintf(text, TEXT, "%s=%d", fault_name[kind], a);
    else if (kind == FAULT_SLOW_LINK || kind == FAULT_SLOW_RACKS)
        snprintf(text, TEXT, "%s=%d-%d:%.2f", fault_name[kind], a, b, factor);
    else
        snprintf(text, TEXT, "%s=%d:%.2f%s", fault_name[kind], a, factor, side);
}

static void random_scene(struct scene *s, unsigned long long seed, int racks_max)
{
    struct rng rng;

    rng_seed(&rng, seed);
    unsigned k = rng_below(&rng, sizeof(presets) / sizeof(*presets));
    int most = presets[k].racks_max < racks_max ? presets[k].racks_max : racks_max;
    *s = (struct scene){.fabric = presets[k].fabric,
                        .racks = 1 + (int)rng_below(&rng, (unsigned)most),
                        .faults = (int)rng_below(&rng, FAULTS_MAX + 1),
                        .noise = 0.01 + 0.07 * rng_uniform(&rng),
                        .seed = seed};
    for (int i = 0; i < s->faults; i++)
        random_fault(s, s->fault[i], presets[k].hosts, presets[k].per, &rng);
}

/* --- a campaign of pairs --- */

struct bed {
    struct fabric fabric;
    struct topo topo;
    struct sim sim;
    struct matrix m;
};

static void bed_fit(struct bed *b, const struct scene *s)
{
    struct plan plan;
    struct plan_opts po;
    struct measure_opts mo;
    struct fit_opts fo;
    struct points_log *log;
    struct err err = {0, ""};

    memset(b, 0, sizeof(*b));
    assert_int_equal(fabric_load(&b->fabric, s->fabric, &err), 0);
    assert_int_equal(fabric_topo(&b->fabric, s->racks, false, &b->topo, &err), 0);
    b->sim =
        (struct sim){.fabric = &b->fabric, .truth = &b->topo, .noise = s->noise, .seed = s->seed};
    for (int i = 0; i < s->faults; i++)
        if (sim_fault(&b->sim, s->fault[i], &err) < 0)
            fail_msg("%s", err.text);
    world_solo.ctx = &b->sim;
    plan_defaults(&po);
    po.ops = 1u << OP_PAIR_BW;
    po.max_bytes = (size_t)64 << 20;
    po.factor = 1024;
    assert_int_equal(plan_make(&plan, &b->topo, &po, &err), 0);
    mo = MEASURE_DEFAULTS;
    assert_int_equal(points_open(&log, path, plan_crc(&plan), &b->topo, "sim", &err), 0);
    if (measure_plan(&world_solo, transport_find("sim"), &b->topo, &plan, &mo, log, &err) < 0)
        fail_msg("%s", err.text);
    fit_defaults(&fo);
    struct topo seen;
    topo_copy(&seen, &b->topo);
    if (fit_matrix(&b->m, &seen, &plan, points_all(log), &fo, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(points_close(log, &err), 0);
    unlink(path);
    plan_free(&plan);
}

static void bed_free(struct bed *b)
{
    world_solo.ctx = NULL;
    matrix_free(&b->m);
    sim_free(&b->sim);
    topo_free(&b->topo);
    fabric_free(&b->fabric);
}

/* --- what was named against what was injected --- */

static bool same_two(const struct exception *e, const struct sim_fault *f)
{
    return (e->a == f->a && e->b == f->b) || (e->a == f->b && e->b == f->a);
}

/* Is this exception the fault, in the place and in the tiers where it acts? */
static bool names(const struct bed *b, const struct exception *e, const struct sim_fault *f)
{
    const struct topo *t = &b->topo;
    bool nic = e->tier < 0 || b->m.tier[e->tier].nic;
    int host = e->part == PART_HOST       ? e->a
               : e->part == PART_ENDPOINT ? t->endpoint[e->a].place.at[LEVEL_HOST]
                                          : -1;

    switch (f->kind) {
    case FAULT_SLOW_LINK:
        return e->part == PART_PAIR && same_two(e, f);
    case FAULT_SLOW_NIC:
        return e->part == PART_ENDPOINT && e->a == f->a && nic;
    case FAULT_SLOW_GPU:
        return e->part == PART_ENDPOINT && e->a == f->a && e->tier >= 0 && !nic;
    case FAULT_SLOW_HOST:
        return host == f->a;
    case FAULT_SLOW_RACKS:
        return e->part == PART_RACK_PAIR && same_two(e, f);
    case FAULT_DEAD_HOST:
        return host == f->a && e->factor <= 0;
    case FAULT_CORRUPT:
        return e->part == PART_ENDPOINT && e->a == f->a && e->wrong;
    default:
        return false;
    }
}

/* A pair between two slow racks that was measured alone of all: slow it is. */
static bool excuses(const struct bed *b, const struct exception *e, const struct sim_fault *f)
{
    return e->part == PART_PAIR && f->kind == FAULT_SLOW_RACKS &&
           sim_concerns(&b->sim, f, e->a, e->b, true);
}

/* A part that something says is bad has partners, and an interval around its factor. */
static void evidence_is_told(const struct exception *e)
{
    assert_true(e->partners >= 1 && e->partners <= 2 * e->evidence);
    assert_in_range(e->alone, 0, e->evidence + 1); /* pairs both ways are one evidence */
    if (e->factor > 0 && e->factor < 1) {
        assert_true(e->lo > 0 && e->lo <= e->hi);
        assert_true(e->lo <= e->factor * 1.1 && e->hi >= e->factor / 1.1);
    }
}

static void score_bed(const struct bed *b, const struct scene *s, struct score *score, bool loud)
{
    const struct sim *sim = &b->sim;
    char part[256];

    score->campaigns++;
    for (int k = 0; k < sim->faults; k++) {
        bool found = false;
        for (int i = 0; i < b->m.exceptions && !found; i++)
            found = names(b, &b->m.exception[i], &sim->fault[k]);
        score->put[sim->fault[k].kind]++;
        score->found[sim->fault[k].kind] += found;
        if (!found && loud)
            print_message("seed %llu: %s, %d racks, noise %.3f: %s is not found\n", s->seed,
                          s->fabric, s->racks, s->noise, s->fault[k]);
    }
    for (int i = 0; i < b->m.exceptions; i++) {
        const struct exception *e = &b->m.exception[i];
        bool true_part = false;
        evidence_is_told(e);
        for (int k = 0; k < sim->faults && !true_part; k++)
            true_part = names(b, e, &sim->fault[k]) || excuses(b, e, &sim->fault[k]);
        if (true_part)
            continue;
        score->false_parts++;
        print_message("seed %llu: %s, %d racks, noise %.3f: false: %s %.2f: %s\n", s->seed,
                      s->fabric, s->racks, s->noise, matrix_part(&b->m, e, part), e->factor,
                      e->why);
        for (int k = 0; k < s->faults; k++)
            print_message("    --fault %s\n", s->fault[k]);
    }
}

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

/* Endpoints and hosts have many pairs: they are found; one pair of thousands rarely is. */
static const enum fault_kind sure[] = {FAULT_SLOW_GPU, FAULT_SLOW_NIC, FAULT_SLOW_HOST,
                                       FAULT_DEAD_HOST, FAULT_CORRUPT};

static void what_is_named_is_what_was_injected(void **state)
{
    int wanted = from_environment("RAILGAUGE_CAMPAIGNS", 0), n = wanted ? wanted : CAMPAIGNS,
        first = from_environment("RAILGAUGE_SEED", 1), put = 0, found = 0;
    struct score score = {0};

    (void)state;
    for (int i = 0; i < n; i++) {
        struct scene s;
        struct bed b;
        random_scene(&s, (unsigned long long)(first + i), wanted ? 16 : 3);
        bed_fit(&b, &s);
        score_bed(&b, &s, &score, wanted);
        bed_free(&b);
    }
    for (int k = 0; k < FAULT_COUNT && wanted; k++)
        if (score.put[k])
            print_message("%-10s found %d of %d\n", fault_name[k], score.found[k], score.put[k]);
    if (wanted)
        print_message("%d campaigns, %d false parts\n", score.campaigns, score.false_parts);
    for (size_t k = 0; k < sizeof(sure) / sizeof(*sure); k++) {
        put += score.put[sure[k]];
        found += score.found[sure[k]];
    }
    assert_true(1000 * score.false_parts <= 3 * score.campaigns);
    if (found < 0.95 * put)
        fail_msg("%d of %d bad endpoints and hosts were found", found, put);
}

static void named_alone(const struct scene *s)
{
    struct score score = {0};
    struct bed b;

    bed_fit(&b, s);
    score_bed(&b, s, &score, true);
    assert_int_equal(score.false_parts, 0);
    for (int k = 0; k < FAULT_COUNT; k++)
        assert_int_equal(score.found[k], score.put[k]);
    bed_free(&b);
}

/* Where one sample of a slow GPU's NIC, the median of a few noisy ones, or the pairs of one slow
 * host once passed for evidence. */
static void scenes_that_once_accused_a_healthy_part(void **state)
{
    static const unsigned long long seeds[] = {1023, 1124, 1144, 1148, 1160, 1161, 1170, 1192};
    struct score score = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
        struct scene s;
        struct bed b;
        random_scene(&s, seeds[i], 16);
        bed_fit(&b, &s);
        score_bed(&b, &s, &score, false);
        bed_free(&b);
    }
    assert_int_equal(score.false_parts, 0);
}

static void two_slow_hosts_do_not_accuse_what_joins_their_racks(void **state)
{
    (void)state;
    named_alone(&(struct scene){"hgx-a100",
                                6,
                                3,
                                0.029,
                                {"slow-host=12:0.80", "slow-host=16:0.33", "slow-host=15:0.81"},
                                5388});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_named_is_what_was_injected),
        cmocka_unit_test(scenes_that_once_accused_a_healthy_part),
        cmocka_unit_test(two_slow_hosts_do_not_accuse_what_joins_their_racks),
    };

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/points.tsv", dir);
    log_setup("test", LOG_ERROR);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return rc;
}
