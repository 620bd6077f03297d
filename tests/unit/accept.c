/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/accept.c, verdict/limits.c - a figure's interval beside its limit, and one verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/stats.h"
#include "small.h"
#include "topo/nic.h"
#include "verdict/accept.h"

/* The tiers of `m` once more at these shares of its rates. */
static void scaled(struct matrix *ref, double share)
{
    small_matrix(ref);
    for (int i = 0; i < ref->tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            small_scale(&ref->tier[i].curve[d], 1 / share);
}

static void measured(struct matrix *m)
{
    small_matrix(m);
    for (int i = 0; i < m->tiers; i++)
        m->tier[i].pairs = 10;
}

/* The last point's interval is what a rate's interval comes from. */
static void interval(struct curve *c, double lo, double hi)
{
    struct curve_point *p = (struct curve_point *)&c->point[c->points - 1];

    p->n = 10;
    p->lo = p->sec / hi;
    p->hi = p->sec / lo;
}

static struct limit tier_limit(double bound, enum limit_of of)
{
    return (struct limit){.check = CHECK_TIER_BANDWIDTH,
                          .bound = bound,
                          .warn = NAN,
                          .of = of,
                          .tier = (char *)"rack",
                          .op = -1,
                          .source = (char *)"test"};
}

static enum accept_is verdict(const struct matrix *m, const struct matrix *ref, struct limit l)
{
    const struct limits limits = {.limit = &l, .count = 1};
    struct accept a;
    struct parts parts;
    struct err err;

    assert_int_equal(parts_list(&parts, &(struct parts_input){.m = m, .no_cost = true}, &err), 0);
    accept_judge(&a, &(struct accept_input){.measured = m,
                                            .parts = &parts,
                                            .reference = ref,
                                            .reference_name = "ref",
                                            .why = "none",
                                            .limits = &limits});
    assert_int_equal(a.rows, 1);
    enum accept_is is = a.verdict;
    assert_int_equal(is, a.row[0].is);
    assert_int_equal(accept_code(&a), is == ACCEPT_FAIL      ? EXIT_BELOW
                                      : is == ACCEPT_UNKNOWN ? EXIT_UNJUDGED
                                                             : EXIT_GOOD);
    parts_free(&parts);
    accept_free(&a);
    return is;
}

/* Random intervals of few pairs around random bounds: the verdict is what the interval's ends say, but for one
 * hundredth of the bound that a value which keeps it may be too uncertain by. */
static void the_whole_interval_judges(void **state)
{
    const double rate = 1e9; /* of small_matrix()'s tier "rack" */
    int seen[ACCEPT_IS_COUNT] = {0};
    struct rng rng;

    (void)state;
    rng_seed(&rng, 11);
    for (int i = 0; i < 400; i++) {
        double lo = 1 - 0.3 * rng_uniform(&rng), hi = 1 + 0.3 * rng_uniform(&rng),
               share = 0.5 + rng_uniform(&rng);
        struct matrix m, ref;
        measured(&m);
        small_matrix(&ref);
        m.tier[1].pairs = 5;
        interval(&m.tier[1].curve[DIR_UNI], lo, hi);
        enum accept_is want = hi < share                         ? ACCEPT_FAIL
                              : share <= 1 && lo >= 0.99 * share ? ACCEPT_PASS
                                                                 : ACCEPT_WARN;
        if (fabs(lo - 0.99 * share) < 1e-4 || fabs(hi - share) < 1e-4 || fabs(share - 1) < 1e-4)
            want = ACCEPT_IS_COUNT; /* either is fine */
        enum accept_is absolute = verdict(&m, NULL, tier_limit(share * rate, LIMIT_ITSELF));
        enum accept_is relative = verdict(&m, &ref, tier_limit(share, LIMIT_OF_REFERENCE));
        if (want != ACCEPT_IS_COUNT) {
            assert_int_equal(absolute, want);
            assert_int_equal(relative, want);
            seen[want]++;
        }
        matrix_free(&ref);
        matrix_free(&m);
    }
    assert_true(seen[ACCEPT_PASS] > 40 && seen[ACCEPT_FAIL] > 40 && seen[ACCEPT_WARN] > 40);
}

/* Of six pairs and more it is the spread between them that tells how well their median is known: a MAD of 5 %
 * of 16 pairs is an error of 1.2533 * 1.4826 * 5 % / 4. */
static void many_pairs_know_their_median(void **state)
{
    const double half = 1.96 * 1.2533 * 1.4826 * 0.05 / 4;
    struct matrix m;

    (void)state;
    measured(&m);
    interval(&m.tier[1].curve[DIR_UNI], 0.5, 1.5);
    m.tier[1].pairs = 16;
    m.tier[1].spread = 0.05;
    double edge = 1e9 * exp(-half) / 0.99;
    assert_true(edge < 1e9);
    assert_int_equal(verdict(&m, NULL, tier_limit(edge * 0.9999, LIMIT_ITSELF)), ACCEPT_PASS);
    assert_int_equal(verdict(&m, NULL, tier_limit(edge * 1.0001, LIMIT_ITSELF)), ACCEPT_WARN);
    m.tier[1].spread = 0;
    m.tier[1].pairs = 6;
    assert_int_equal(verdict(&m, NULL, tier_limit(0.9e9, LIMIT_ITSELF)), ACCEPT_PASS);
    m.tier[1].pairs = 5;
    assert_int_equal(verdict(&m, NULL, tier_limit(0.9e9, LIMIT_ITSELF)), ACCEPT_WARN);
    matrix_free(&m);
}

/* All tiers alike at a share of the reference: no part stands out, the reference tells. */
static void a_whole_fabric_below_its_reference_fails(void **state)
{
    struct matrix m, ref;

    (void)state;
    for (double share = 0.3; share < 1.3; share += 0.1) {
        measured(&m);
        scaled(&ref, 1 / share);
        enum accept_is is = verdict(&m, &ref, tier_limit(0.9, LIMIT_OF_REFERENCE));
        assert_int_equal(is, share < 0.9 - 1e-6 ? ACCEPT_FAIL : is);
        assert_int_equal(is, share > 0.9 + 1e-6 ? ACCEPT_PASS : is);
        matrix_free(&ref);
        matrix_free(&m);
    }
}

static void what_is_not_known_is_not_good(void **state)
{
    struct matrix m, ref;

    (void)state;
    measured(&m);
    assert_int_equal(verdict(&m, NULL, tier_limit(0.9, LIMIT_OF_REFERENCE)), ACCEPT_UNKNOWN);
    assert_int_equal(verdict(&m, NULL, tier_limit(0.9, LIMIT_OF_DATA_SHEET)), ACCEPT_UNKNOWN);
    m.tier[1].peak_Bps = 1e9;
    assert_int_equal(verdict(&m, NULL, tier_limit(0.9, LIMIT_OF_DATA_SHEET)), ACCEPT_PASS);
    matrix_init(&ref);
    assert_int_equal(verdict(&m, &ref, tier_limit(0.9, LIMIT_OF_REFERENCE)), ACCEPT_UNKNOWN);
    matrix_free(&ref);
    matrix_free(&m);
}

static void a_part_is_judged_by_its_factor(void **state)
{
    struct limit l = {.check = CHECK_PART_SPEED, .bound = 0.9, .warn = 0.95, .op = -1, .state = -1};
    struct matrix m;

    (void)state;
    measured(&m);
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_PASS);
    struct exception *e = small_exception(&m, PART_ENDPOINT, 3, -1, -1, 0.97);
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_WARN); /* within the limit, but named */
    e->factor = 0.93;
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_WARN);
    e->factor = 0.6;
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_FAIL);
    e->factor = 0.89; /* the limit lies inside of its interval */
    e->lo = 0.87;
    e->hi = 0.92;
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_WARN);
    l.check = CHECK_DEAD_PARTS;
    l.bound = 0;
    l.warn = NAN;
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_PASS);
    e->factor = 0;
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_FAIL);
    e->wrong = true; /* that is another check's */
    assert_int_equal(verdict(&m, NULL, l), ACCEPT_PASS);
    matrix_free(&m);
}

/* Of blind campaigns the names of tiers are guesses. */
static void tiers_are_matched_by_name_then_by_coordinates(void **state)
{
    const unsigned rack = 1u << LEVEL_RACK, host = 1u << LEVEL_HOST, spine = 1u << LEVEL_SPINE;
    const struct {
        const char *name;
        unsigned same;
        bool nic;
        enum accept_is
            is; /* the reference has shm 10, rack 1 and fabric 0.4 GB/s; this one has 1 */
    } rows[] = {{"rack", spine, true, ACCEPT_PASS},
                {"leaf", rack, true, ACCEPT_PASS},
                {"other", spine, true, ACCEPT_PASS},
                {"nvlink", host, false, ACCEPT_FAIL},
                {"other", spine, false, ACCEPT_UNKNOWN}};
    struct matrix m, ref;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        measured(&m);
        small_matrix(&ref);
        snprintf(m.tier[1].rule.name, sizeof(m.tier[1].rule.name), "%s", rows[i].name);
        m.tier[1].rule.same = rows[i].same;
        m.tier[1].nic = rows[i].nic;
        struct limit l = tier_limit(0.9, LIMIT_OF_REFERENCE);
        l.tier = m.tier[1].rule.name;
        assert_int_equal(verdict(&m, &ref, l), rows[i].is);
        matrix_free(&ref);
        matrix_free(&m);
    }
}

/* A tier at `rate` under the name of the reference's fabric, which has 0.4 GB/s beside rack's 1. */
static enum accept_is as_fabric(double rate)
{
    struct matrix m, ref;

    measured(&m);
    small_matrix(&ref);
    curve_free(&m.tier[2].curve[DIR_UNI]);
    curve_line(&m.tier[2].curve[DIR_UNI], 15e-6, rate);
    struct limit l = tier_limit(0.9, LIMIT_OF_REFERENCE);
    l.tier = (char *)"fabric";
    enum accept_is is = verdict(&m, &ref, l);
    matrix_free(&ref);
    matrix_free(&m);
    return is;
}

/* Beyond 1.5 times its rate a tier is another one: the nearest within that, or none.  Slower is a fault. */
static void a_rate_beyond_a_tier_is_of_another(void **state)
{
    (void)state;
    assert_int_equal(as_fabric(0.2e9), ACCEPT_FAIL);
    assert_int_equal(as_fabric(0.59e9), ACCEPT_PASS);    /* 1.48 */
    assert_int_equal(as_fabric(0.61e9), ACCEPT_UNKNOWN); /* 1.53, and rack has 1.64 of it */
    assert_int_equal(as_fabric(0.65e9), ACCEPT_UNKNOWN);
    assert_int_equal(as_fabric(0.68e9), ACCEPT_FAIL); /* rack, within 1.5, but too slow for it */
    assert_int_equal(as_fabric(0.95e9), ACCEPT_PASS);
    assert_int_equal(as_fabric(10e9), ACCEPT_PASS); /* shm */
    assert_int_equal(as_fabric(100e9), ACCEPT_UNKNOWN);
}

/* Every endpoint gets a NIC of this rate. */
static void give_nics(struct topo *t, double Bps)
{
    struct nic n;

    nic_init(&n, 0);
    n.rate_Bps = Bps;
    MEM_PUSH(t->nic, t->nics) = n;
    for (int i = 0; i < t->endpoints; i++)
        t->endpoint[i].nic = t->nics - 1;
}

/* NICs of half the reference's rate may have half; those within 2 % are alike. */
static void other_nics_are_judged_by_their_rate(void **state)
{
    static const struct {
        double nics, rate;
        enum accept_is is;
    } row[] = {{50e9, 1e9, ACCEPT_PASS},      {50e9, 0.5e9, ACCEPT_FAIL},
               {25e9, 0.5e9, ACCEPT_PASS},    {25e9, 0.44e9, ACCEPT_FAIL},
               {0, 0.5e9, ACCEPT_FAIL},       {49.1e9, 0.89e9, ACCEPT_FAIL},
               {48.5e9, 0.89e9, ACCEPT_PASS}, {100e9, 1e9, ACCEPT_FAIL}};

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct matrix m, ref;
        measured(&m);
        small_matrix(&ref);
        give_nics(&m.topo, row[i].nics);
        give_nics(&ref.topo, 50e9);
        curve_free(&m.tier[1].curve[DIR_UNI]);
        curve_line(&m.tier[1].curve[DIR_UNI], 2e-6, row[i].rate);
        enum accept_is is = verdict(&m, &ref, tier_limit(0.9, LIMIT_OF_REFERENCE));
        if (is != row[i].is)
            fail_msg("NICs of %g at %g: %s", row[i].nics, row[i].rate, accept_name[is]);
        struct limit l =
            tier_limit(0.1e9, LIMIT_ITSELF); /* and a bound for some NICs is for those only */
        l.nic_Bps = 50e9;
        bool same = !row[i].nics || fabs(row[i].nics / 50e9 - 1) < 0.02;
        assert_int_equal(verdict(&m, &ref, l), same ? ACCEPT_PASS : ACCEPT_UNKNOWN);
        matrix_free(&ref);
        matrix_free(&m);
    }
}

/* Rows of one limit, and the verdict. */
static enum accept_is rows_of(const struct matrix *m, const struct matrix *ref, struct limit l,
                              enum accept_is *row, int rows)
{
    const struct limits limits = {.limit = &l, .count = 1};
    struct accept a;
    struct parts parts = {0};

    accept_judge(&a, &(struct accept_input){.measured = m,
                                            .parts = &parts,
                                            .reference = ref,
                                            .reference_name = "ref",
                                            .why = "none",
                                            .limits = &limits});
    assert_int_equal(a.rows, rows);
    for (int i = 0; i < rows; i++)
        row[i] = a.row[i].is;
    enum accept_is is = a.verdict;
    accept_free(&a);
    return is;
}

/* Devices of another kind reach 90 % of what they declare, or nobody knows what they should. */
static void each_class_is_judged_by_its_declaration(void **state)
{
    struct matrix m, ref;
    enum accept_is row[2];

    (void)state;
    measured(&m);
    small_matrix(&ref);
    struct property *p = matrix_property(&m, PROPERTY_CLASS, 1, 0.5);
    p->what = mem_strdup("older ones");
    for (int i = 0; i < 3; i++) {
        p->declared = i < 2 ? 0.5 : NAN;
        p->Bps = i == 0 ? 0.46e9 : 0.44e9;
        enum accept_is is = rows_of(&m, &ref, tier_limit(0.9, LIMIT_OF_REFERENCE), row, 2);
        assert_int_equal(row[0], ACCEPT_PASS);
        assert_int_equal(row[1], i == 0 ? ACCEPT_PASS : i == 1 ? ACCEPT_FAIL : ACCEPT_UNKNOWN);
        assert_int_equal(is,
                         i == 1 ? ACCEPT_FAIL : ACCEPT_PASS); /* the unknown counts for nothing */
    }
    matrix_free(&ref);
    matrix_free(&m);
}

static enum accept_is loaded(double share, int pairs, enum property_kind kind, double ratio,
                             double declared)
{
    struct limit l = {.check = CHECK_TIER_LOADED, .bound = 0.75, .warn = 0.9, .op = -1};
    struct matrix m, ref;
    enum accept_is row[3];

    measured(&m);
    small_matrix(&ref);
    ref.tier[2].loaded = declared;
    m.tier[0].pairs = m.tier[1].pairs = 0;
    m.tier[2].loaded = share;
    m.tier[2].loaded_pairs = pairs;
    if (ratio > 0)
        matrix_property(&m, kind, 2, ratio)->level = LEVEL_LEAF;
    rows_of(&m, &ref, l, row, 1);
    matrix_free(&ref);
    matrix_free(&m);
    return row[0];
}

static void under_load_is_judged_by_what_was_drawn_and_declared(void **state)
{
    enum property_kind none = PROPERTY_CLASS, taper = PROPERTY_TAPER;

    (void)state;
    assert_int_equal(loaded(0.99, 0, none, 0, NAN),
                     ACCEPT_PASS); /* who stood out is fine: so are all */
    assert_int_equal(loaded(0.91, 0, none, 0, NAN), ACCEPT_PASS);
    assert_int_equal(loaded(0.89, 0, none, 0, NAN), ACCEPT_UNKNOWN);
    assert_int_equal(loaded(0.5, 0, none, 0, NAN), ACCEPT_UNKNOWN);
    assert_int_equal(loaded(0.89, 1, none, 0, NAN), ACCEPT_WARN);
    assert_int_equal(loaded(0.74, 1, none, 0, NAN), ACCEPT_FAIL);
    assert_int_equal(loaded(0.5, 1, PROPERTY_COLLISIONS, 0.2, NAN), ACCEPT_UNKNOWN);
    assert_int_equal(loaded(0.5, 1, taper, 2, NAN), ACCEPT_FAIL); /* the reference has none */
    assert_int_equal(loaded(0.5, 0, taper, 2, 0.5), ACCEPT_PASS); /* declared 2:1 */
    assert_int_equal(loaded(0.36, 1, taper, 2.7, 0.5), ACCEPT_FAIL);
    assert_int_equal(loaded(0.39, 1, taper, 2.6, 0.5), ACCEPT_WARN);
}

static void shipped_limits_load(void **state)
{
    struct limits l = {0};
    struct err err;
    bool seen[CHECK_COUNT] = {false};

    (void)state;
    assert_int_equal(limits_builtin(&l, NULL, &err), 0);
    int defaults = l.count;
    for (int i = 0; i < l.count; i++) {
        assert_true(l.limit[i].source && *l.limit[i].source);
        seen[l.limit[i].check] = true;
    }
    for (int c = 0; c < CHECK_COUNT; c++)
        assert_true(seen[c]);
    limits_free(&l);
    assert_int_equal(limits_builtin(&l, "gb200-nvl72", &err), 0);
    assert_true(l.count > defaults);
    limits_free(&l);
}

static void bounds_are_text_again(void **state)
{
    char buf[LIMIT_TEXT];

    (void)state;
    assert_string_equal(limit_value_text(buf, LIMIT_RATE, 45e9), "45.0 GB/s");
    assert_string_equal(limit_value_text(buf, LIMIT_SHARE, 0.9), "90.0 %");
    assert_string_equal(limit_value_text(buf, LIMIT_TIME, 12e-6), "12.0 us");
    assert_string_equal(limit_value_text(buf, LIMIT_COUNT, 3), "3");
}

/* A pair of tier "rack", around 1 GB/s, among so many flows. */
static void add_pair(struct points *p, int epoch, int flows, double log_sec)
{
    MEM_PUSH(p->point, p->count) = (struct point){.epoch = epoch,
                                                  .stage = STAGE_CLASS,
                                                  .op = OP_PAIR_BW,
                                                  .ranks = 2,
                                                  .src = 0,
                                                  .dst = 2,
                                                  .flows = flows,
                                                  .bytes = 64 << 20,
                                                  .sec.median = 0.067 * exp(log_sec)};
}

/* In three epochs that differ by this, as logarithm. */
static void three_epochs(struct points *p, const struct matrix *m, double step)
{
    *p = (struct points){.endpoints = m->topo.endpoints};
    for (int e = 0; e < 3; e++)
        add_pair(p, e, 1, step * (e - 1));
}

static struct accept_row judged(const struct matrix *m, const struct points *p, struct limit *l)
{
    const struct limits limits = {.limit = l, .count = 1};
    struct accept a;
    struct parts parts;
    struct err err;

    assert_int_equal(parts_list(&parts, &(struct parts_input){.m = m, .no_cost = true}, &err), 0);
    accept_judge(
        &a, &(struct accept_input){
                .measured = m, .parts = &parts, .points = p, .why = "none", .limits = &limits});
    assert_int_equal(a.rows, 1);
    struct accept_row r = a.row[0];
    r.what = r.of = r.why = NULL;
    parts_free(&parts);
    accept_free(&a);
    return r;
}

/* t of 2 degrees of freedom is 4.303: epochs 2 % apart know their mean to 5 %. */
static void noise_between_epochs_widens_the_interval(void **state)
{
    struct limit l = tier_limit(1.04e9, LIMIT_ITSELF);
    struct matrix m;
    struct points p;

    (void)state;
    measured(&m);
    three_epochs(&p, &m, 0.02);
    struct accept_row r = judged(&m, &p, &l);
    assert_int_equal(r.is, ACCEPT_WARN);
    assert_float_equal(r.hi / r.value, exp(4.3027 * 0.02 / sqrt(3)), 1e-3);
    free(p.point);
    three_epochs(&p, &m, 0.015);
    assert_int_equal(judged(&m, &p, &l).is, ACCEPT_FAIL);
    free(p.point);
    matrix_free(&m);
}

/* How far the interval reaches above the value, as logarithm. */
static double reach(const struct matrix *m, const struct points *p)
{
    struct limit l = tier_limit(0.5e9, LIMIT_ITSELF);
    struct accept_row r = judged(m, p, &l);

    return log(r.hi / r.value);
}

/* Five epochs that drift steadily do not widen the interval, four do: too few for a line. */
static void drift_is_no_noise(void **state)
{
    struct matrix m;

    (void)state;
    measured(&m);
    for (int n = 4; n <= 5; n++) {
        struct points p = {.endpoints = m.topo.endpoints};
        for (int e = 0; e < n; e++)
            add_pair(&p, e, 1, 0.02 * e);
        assert_float_equal(reach(&m, &p), n == 4 ? 3.1824 * 0.02 * sqrt(5.0 / 3) / 2 : 0, 1e-4);
        free(p.point);
    }
    /* Residuals about the line are as they are without a drift: 2, -1, -2, -1 and 2 hundredths. */
    const double off[] = {0.02, -0.01, -0.02, -0.01, 0.02};
    struct points p = {.endpoints = m.topo.endpoints};
    for (int e = 0; e < 5; e++)
        add_pair(&p, e, 1, 0.03 * e + off[e]);
    assert_float_equal(reach(&m, &p), 3.1824 * sqrt(0.0014 / 3 / 5), 1e-4);
    free(p.point);
    matrix_free(&m);
}

/* Beside others a pair gets half in every other epoch; alone it always gets all. */
static void hashed_flows_say_nothing_of_a_pair_alone(void **state)
{
    struct points p;
    struct matrix m;

    (void)state;
    measured(&m);
    p = (struct points){.endpoints = m.topo.endpoints};
    for (int e = 0; e < 4; e++) {
        add_pair(&p, e, 1, 0);
        for (int k = 0; k < 3; k++)
            add_pair(&p, e, 8, e % 2 ? log(2) : 0);
    }
    assert_true(reach(&m, &p) > 0.3);
    matrix_property(&m, PROPERTY_COLLISIONS, 1, 0.4)->text = mem_strdup("");
    assert_true(reach(&m, &p) < 1e-4);
    free(p.point);
    matrix_free(&m);
}

/* An all_reduce of two hosts, measured by two groups at once in `epochs` epochs, of which the first `slow` points of the
 * second group, then those of the first, take a quarter longer.  Its curve takes `sec`. */
static enum accept_is all_reduce(double sec, int epochs, int slow)
{
    const double bytes = 64 << 20, rate = bytes / 0.01;
    struct limit l = {.check = CHECK_BUSBW,
                      .bound = 0.95 * rate,
                      .warn = NAN,
                      .op = -1,
                      .source = (char *)"test"};
    struct matrix m;
    struct points p = {.count = 0};

    measured(&m);
    p.endpoints = m.topo.endpoints;
    while (m.collectives)
        curve_free(&m.collective[--m.collectives].curve);
    struct collective *c = &MEM_PUSH(m.collective, m.collectives);
    *c = (struct collective){.op = OP_ALL_REDUCE,
                             .shape = {.ranks = 2, .domains = 2, .per_domain = 1},
                             .at_once = 2,
                             .basis = BASIS_MEASURED};
    curve_add(&c->curve, (struct curve_point){bytes, sec, 0.99 * sec, 1.01 * sec, 4});
    for (int i = 0; i < 2 * epochs; i++)
        MEM_PUSH(p.point, p.count) = (struct point){.epoch = (unsigned)(i % epochs % 8),
                                                    .round = i % epochs / 8,
                                                    .stage = STAGE_COLLECTIVE,
                                                    .op = OP_ALL_REDUCE,
                                                    .ranks = 2,
                                                    .group = i < epochs,
                                                    .src = i < epochs ? 0 : 1,
                                                    .dst = i < epochs ? 2 : 3,
                                                    .flows = 2,
                                                    .bytes = 64 << 20,
                                                    .sec.median = i < slow ? 0.0125 : 0.01};
    enum accept_is is = judged(&m, &p, &l).is;
    free(p.point);
    matrix_free(&m);
    return is;
}

/* The median of two groups is the mean of both: one group with two stray points of three moves it below the limit. */
static void stray_points_of_a_group_fail_no_collective(void **state)
{
    (void)state;
    assert_int_equal(all_reduce(0.01, 3, 0), ACCEPT_PASS);
    assert_int_equal(all_reduce(0.01, 20, 2), ACCEPT_PASS); /* what is well is not doubted */
    assert_int_equal(all_reduce(0.01125, 3, 2), ACCEPT_WARN);
    assert_int_equal(all_reduce(0.01125, 3, 5), ACCEPT_WARN);
    assert_int_equal(all_reduce(0.0125, 3, 6), ACCEPT_FAIL);
    /* of 40 points the interval of the median begins with the 13th */
    assert_int_equal(all_reduce(0.0125, 20, 27), ACCEPT_WARN);
    assert_int_equal(all_reduce(0.0125, 20, 28), ACCEPT_FAIL);
}

static void a_spread_of_few_pairs_is_left_out(void **state)
{
    struct limit l = {.check = CHECK_TIER_SPREAD,
                      .bound = 0.05,
                      .warn = NAN,
                      .op = -1,
                      .tier = (char *)"rack",
                      .source = (char *)"test"};
    struct points p;
    struct matrix m;

    (void)state;
    measured(&m);
    three_epochs(&p, &m, 0.001);
    for (int pairs = 1; pairs < 12; pairs++) {
        m.tier[1].pairs = pairs;
        m.tier[1].spread = 0.5;
        struct accept_row r = judged(&m, &p, &l);
        assert_int_equal(r.is, pairs < 6 ? ACCEPT_UNKNOWN : ACCEPT_FAIL);
        assert_int_equal(r.left_out, pairs < 6);
        assert_false(r.left_out && accept_lacks(&r));
    }
    /* Ten pairs: the limit must lie below the spread by a factor of exp(1.96 * 1.17 / sqrt(10)) = 2.07. */
    m.tier[1].pairs = 10;
    m.tier[1].spread = 0.05 * 2.0;
    assert_int_equal(judged(&m, &p, &l).is, ACCEPT_WARN);
    m.tier[1].spread = 0.05 * 2.1;
    assert_int_equal(judged(&m, &p, &l).is, ACCEPT_FAIL);
    free(p.point);
    matrix_free(&m);
}

static void a_busy_machine_is_not_failed_for_its_speed(void **state)
{
    struct limit l = tier_limit(1.5e9, LIMIT_ITSELF),
                 tainted = {
                     .check = CHECK_TAINTED, .warn = NAN, .op = -1, .source = (char *)"test"};
    struct matrix m;
    struct points p;

    (void)state;
    measured(&m);
    three_epochs(&p, &m, 0.001);
    assert_int_equal(judged(&m, &p, &l).is, ACCEPT_FAIL);
    assert_int_equal(judged(&m, &p, &tainted).is, ACCEPT_PASS);
    matrix_find(&m, "busy", "all of it moved");
    assert_int_equal(judged(&m, &p, &l).is, ACCEPT_UNKNOWN);
    assert_int_equal(judged(&m, &p, &tainted).is, ACCEPT_WARN);
    matrix_find(&m, "tainted", "a GPU was hot");
    assert_int_equal(judged(&m, &p, &tainted).is, ACCEPT_FAIL);
    free(p.point);
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_interval_judges),
        cmocka_unit_test(many_pairs_know_their_median),
        cmocka_unit_test(noise_between_epochs_widens_the_interval),
        cmocka_unit_test(drift_is_no_noise),
        cmocka_unit_test(hashed_flows_say_nothing_of_a_pair_alone),
        cmocka_unit_test(a_spread_of_few_pairs_is_left_out),
        cmocka_unit_test(stray_points_of_a_group_fail_no_collective),
        cmocka_unit_test(a_busy_machine_is_not_failed_for_its_speed),
        cmocka_unit_test(a_whole_fabric_below_its_reference_fails),
        cmocka_unit_test(what_is_not_known_is_not_good),
        cmocka_unit_test(a_part_is_judged_by_its_factor),
        cmocka_unit_test(tiers_are_matched_by_name_then_by_coordinates),
        cmocka_unit_test(a_rate_beyond_a_tier_is_of_another),
        cmocka_unit_test(other_nics_are_judged_by_their_rate),
        cmocka_unit_test(each_class_is_judged_by_its_declaration),
        cmocka_unit_test(under_load_is_judged_by_what_was_drawn_and_declared),
        cmocka_unit_test(shipped_limits_load),
        cmocka_unit_test(bounds_are_text_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
