/* measure.c - a whole campaign on the sim transport gives back the truth that it was made from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "measure/measure.h"
#include "transport/sim/sim.h"

static char dir[] = "/tmp/rg-measure-XXXXXX";
static char path[64];

struct bed {
    struct fabric fabric;
    struct topo topo;
    struct plan plan;
    struct sim sim;
    struct points_log *log;
    struct measure_opts opts;
};

static double healthy(const void *of, enum op op, const int *ids, int n, double bytes)
{
    (void)of;
    (void)op;
    (void)ids;
    return 1e-6 * n + bytes / 1e11;
}

static void bed_open(struct bed *b, const char *fabric, int racks, unsigned ops)
{
    struct err err;
    struct plan_opts o;

    memset(b, 0, sizeof(*b));
    assert_int_equal(fabric_load(&b->fabric, fabric, &err), 0);
    assert_int_equal(fabric_topo(&b->fabric, racks, false, &b->topo, &err), 0);
    plan_defaults(&o);
    o.ops = ops;
    o.max_bytes = 1 << 20;
    o.pair_bytes = 1 << 20;
    o.factor = 16;
    assert_int_equal(plan_make(&b->plan, &b->topo, &o, &err), 0);
    b->sim = (struct sim){.fabric = &b->fabric, .truth = &b->topo, .healthy = healthy, .seed = 7};
    world_solo.ctx = &b->sim;
    b->opts = MEASURE_DEFAULTS;
    unlink(path);
}

static int bed_measure(struct bed *b, struct err *err)
{
    assert_int_equal(points_open(&b->log, path, plan_crc(&b->plan), &b->topo, "sim", err), 0);
    return measure_plan(&world_solo, transport_find("sim"), &b->topo, &b->plan, &b->opts, b->log,
                        err);
}

static void bed_close(struct bed *b)
{
    struct err err;

    assert_int_equal(points_close(b->log, &err), 0);
    plan_free(&b->plan);
    topo_free(&b->topo);
    fabric_free(&b->fabric);
    sim_free(&b->sim);
}

#define PAIRS (1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW)

static void without_noise_every_pair_returns_the_formula(void **state)
{
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, PAIRS);
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    assert_true(p->count > 1000);
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        double want = sim_pair(&b.sim, q->op, q->src, q->dst, (double)q->bytes, 1);
        assert_true(fabs(q->sec.median / want - 1) < 1e-12);
        assert_int_equal(q->stop, STOP_CI);
        assert_false(q->wrong);
    }
    bed_close(&b);
}

static void every_endpoint_meets_at_least_k_partners_of_each_tier_it_has(void **state)
{
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, PAIRS);
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    for (int e = 0; e < b.topo.endpoints; e++) {
        int met[TIER_MAX] = {0};
        for (int i = 0; i < p->count; i++) {
            const struct point *q = &p->point[i];
            if (q->op == OP_PAIR_BW && q->stage == STAGE_CLASS && q->src == e)
                met[topo_tier(&b.topo, e, q->dst)]++;
        }
        for (int t = 0; t < b.topo.tiers; t++)
            assert_true(met[t] >= 7);
    }
    bed_close(&b);
}

static void equal_seeds_give_equal_files_and_other_seeds_do_not(void **state)
{
    double sum[3] = {0, 0, 0};
    struct err err;

    (void)state;
    for (int run = 0; run < 3; run++) {
        struct bed b;
        bed_open(&b, "hgx-h100", 1, PAIRS);
        b.sim.noise = 0.03;
        b.sim.seed = run < 2 ? 7 : 8;
        assert_int_equal(bed_measure(&b, &err), 0);
        const struct points *p = points_all(b.log);
        for (int i = 0; i < p->count; i++)
            sum[run] += p->point[i].sec.median;
        bed_close(&b);
    }
    assert_true(sum[0] == sum[1]);
    assert_true(sum[0] != sum[2]);
}

/* In looks of its own, half of them alone, beside others that are no slower. */
static void a_suspect_is_measured_again_with_others(void **state)
{
    struct bed b;
    struct err err;
    int again = 0, alone = 0, others = 0;

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, PAIRS);
    b.sim.noise = 0.02;
    assert_int_equal(sim_fault(&b.sim, "slow-nic=17:0.6", &err), 0);
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        if (stage_looks_at(q->stage) < 0)
            continue;
        int own = stage_looks_at(q->stage) ? q->dst : q->src;
        again += own == 17;
        alone += own == 17 && q->flows == 1;
        others += own != 17;
    }
    assert_int_equal(again, 48);
    assert_int_equal(alone, 24);
    assert_true(others >= 48);
    bed_close(&b);
}

/* Cut anywhere: the same rounds again, each point once. */
static void a_cut_second_stage_goes_on(void **state)
{
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, PAIRS);
    b.sim.noise = 0.02;
    assert_int_equal(sim_fault(&b.sim, "slow-nic=17:0.6", &err), 0);
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    const int whole = p->count;
    struct point last = p->point[whole - 1];
    assert_true(stage_is_retest(last.stage));
    assert_int_equal(points_close(b.log, &err), 0);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    assert_int_equal(ftruncate(fileno(f), ftell(f) - 12345), 0);
    fclose(f);
    assert_int_equal(bed_measure(&b, &err), 0);
    p = points_all(b.log);
    assert_int_equal(p->count, whole);
    const struct point *now = &p->point[whole - 1];
    assert_true(now->round == last.round && now->src == last.src && now->dst == last.dst &&
                now->epoch == last.epoch);
    bed_close(&b);
}

static void a_resume_measures_only_what_is_missing(void **state)
{
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b, "hgx-h100", 1, PAIRS);
    assert_int_equal(bed_measure(&b, &err), 0);
    int whole = points_all(b.log)->count;
    assert_int_equal(points_close(b.log, &err), 0);
    /* tear the file in the middle of a row */
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    assert_int_equal(ftruncate(fileno(f), ftell(f) / 2), 0);
    fclose(f);
    assert_int_equal(bed_measure(&b, &err), 0);
    assert_int_equal(points_all(b.log)->count, whole);
    bed_close(&b);
}

/* Noise that depends on time is that of the plan's order, not of when it is measured. */
static void a_resumed_campaign_in_a_world_is_the_unbroken_one(void **state)
{
    struct sim_world world;
    struct bed b;
    struct err err;
    struct point *once;

    (void)state;
    bed_open(&b, "hgx-h100", 2, PAIRS);
    assert_int_equal(sim_world_load(&world, "mix", &err), 0);
    world.drift = 0.1;
    world.turn = 0.01;
    b.sim.world = &world;
    b.sim.noise = world.sample;
    b.sim.varies = true;
    assert_int_equal(sim_fault(&b.sim, "slow-nic=17:0.6@time=0.4", &err), 0);
    assert_int_equal(bed_measure(&b, &err), 0);
    int whole = points_all(b.log)->count, slow = 0;
    once = malloc((size_t)whole * sizeof(*once));
    assert_non_null(once);
    memcpy(once, points_all(b.log)->point, (size_t)whole * sizeof(*once));
    assert_int_equal(points_close(b.log, &err), 0);
    assert_int_equal(truncate(path, 100000), 0);
    assert_int_equal(bed_measure(&b, &err), 0);
    assert_int_equal(points_all(b.log)->count, whole);
    for (int i = 0; i < whole; i++) {
        const struct point *p = &points_all(b.log)->point[i];
        if (p->round != once[i].round || p->epoch != once[i].epoch || p->n != once[i].n ||
            fabs(p->sec.median / once[i].sec.median - 1) > 1e-6) /* a file has seven digits */
            fail_msg("row %d of %d: %g s, at first %g", i, whole, p->sec.median,
                     once[i].sec.median);
        slow += stage_is_retest(p->stage);
    }
    assert_true(slow > 0);
    free(once);
    bed_close(&b);
}

static void a_dead_host_is_a_failed_point_that_says_so(void **state)
{
    struct bed b;
    struct err err;
    int failed = 0;

    (void)state;
    bed_open(&b, "gb200-nvl72", 1, PAIRS);
    assert_int_equal(sim_fault(&b.sim, "dead-host=3", &err), 0);
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    for (int i = 0; i < p->count; i++)
        if (p->point[i].stop == STOP_FAILED) {
            failed++;
            assert_string_equal(p->point[i].note, "no answer from host r00n03");
        }
    assert_true(failed > 0);
    bed_close(&b);
}

static void a_corrupt_rank_is_wrong_data_in_every_op_that_it_takes_part_in(void **state)
{
    struct bed b;
    struct err err;
    unsigned seen = 0;

    (void)state;
    bed_open(&b, "hgx-h100", 1, (1u << OP_COUNT) - 1);
    assert_int_equal(sim_fault(&b.sim, "corrupt=5", &err), 0);
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    for (int i = 0; i < p->count; i++)
        if (p->point[i].wrong) {
            seen |= 1u << p->point[i].op;
            assert_non_null(strstr(p->point[i].note, "endpoint 5"));
            assert_true(strstr(p->point[i].note, op_name(p->point[i].op)) == p->point[i].note);
        }
    assert_int_equal(seen, (1u << OP_COUNT) - 1);
    bed_close(&b);
}

static void the_stop_rule_asks_for_more_samples_when_it_is_noisy(void **state)
{
    long n[2] = {0, 0};
    struct err err;

    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        struct bed b;
        bed_open(&b, "hgx-h100", 1, PAIRS);
        b.sim.noise = noisy ? 0.2 : 0.001;
        assert_int_equal(bed_measure(&b, &err), 0);
        const struct points *p = points_all(b.log);
        for (int i = 0; i < p->count; i++) {
            n[noisy] += p->point[i].n;
            if (p->point[i].stop == STOP_CI)
                assert_true((point_sec(p->point[i].sec.hi) - point_sec(p->point[i].sec.lo)) / 2 <=
                            0.0501 * p->point[i].sec.median);
        }
        bed_close(&b);
    }
    assert_true(n[1] > 3 * n[0]);
}

/* Without noise two samples would be narrow; where four do not fit into the time they are no end by
 * their interval. */
static void two_samples_are_no_interval(void **state)
{
    int few = 0;
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b, "rtxpro6000-100gbe", 1, PAIRS);
    b.opts.time_cap = 30e-6; /* three of 1 MiB */
    assert_int_equal(bed_measure(&b, &err), 0);
    const struct points *p = points_all(b.log);
    for (int i = 0; i < p->count; i++) {
        few += p->point[i].n < 4;
        assert_true(p->point[i].n >= 4 || p->point[i].stop == STOP_TIME);
    }
    assert_true(few > 0);
    bed_close(&b);
}

static void faults_are_parsed_strictly(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"slow-nik=1:0.5",
         "--fault slow-nik=1:0.5: no fault \"slow-nik\" (did you mean \"slow-nic\"?); known: "},
        {"slow-nic=99999:0.5", "endpoint 99999: 99999 is outside 0..143"},
        {"slow-nic=1:1.5", "factor of slow-nic: 1.5 is outside 1e-06..1"},
        {"slow-nic=1:0.5:up", "side \"up\" is neither tx nor rx"},
        {"slow-link=4-4:0.5", "slow-link: the two ends are the same, 4"},
        {"dead-host=nowhere", "host nowhere: \"nowhere\" is not a whole number"},
        {"corrupt=3:0.5", "\"0.5\" is left over"},
    };
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b, "gb200-nvl72", 2, PAIRS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(sim_fault(&b.sim, bad[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        assert_non_null(strstr(err.text, bad[i].message));
    }
    assert_int_equal(sim_fault(&b.sim, "dead-host=r01n02", &err), 0);
    assert_int_equal(b.sim.fault[0].a, 20);
    plan_free(&b.plan);
    topo_free(&b.topo);
    fabric_free(&b.fabric);
    sim_free(&b.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_noise_every_pair_returns_the_formula),
        cmocka_unit_test(every_endpoint_meets_at_least_k_partners_of_each_tier_it_has),
        cmocka_unit_test(equal_seeds_give_equal_files_and_other_seeds_do_not),
        cmocka_unit_test(a_suspect_is_measured_again_with_others),
        cmocka_unit_test(a_cut_second_stage_goes_on),
        cmocka_unit_test(a_resume_measures_only_what_is_missing),
        cmocka_unit_test(a_resumed_campaign_in_a_world_is_the_unbroken_one),
        cmocka_unit_test(a_dead_host_is_a_failed_point_that_says_so),
        cmocka_unit_test(a_corrupt_rank_is_wrong_data_in_every_op_that_it_takes_part_in),
        cmocka_unit_test(two_samples_are_no_interval),
        cmocka_unit_test(the_stop_rule_asks_for_more_samples_when_it_is_noisy),
        cmocka_unit_test(faults_are_parsed_strictly),
    };

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/points.tsv", dir);
    log_setup("test", LOG_ERROR);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return rc;
}
