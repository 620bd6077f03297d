/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/compare.c - two campaigns of points made here: what changed is found, noise is not. */
#include <stdlib.h>

#include "test.h"

#include "base/stats.h"
#include "small.h"
#include "topo/nic.h"
#include "verdict/compare.h"
#include "verdict/versions.h"

enum { EPOCHS = 5 };

/* Every pair of the small machine at 4 MiB and at 8 bytes, with noise of each point; pairs of tier
 * `slow` take longer by `factor`. */
static void measure(struct points *p, const struct matrix *m, struct rng *rng, double noise,
                    int slow, double factor)
{
    const struct {
        enum op op;
        size_t bytes;
    } kinds[] = {{OP_PAIR_BW, 4 << 20}, {OP_PAIR_LATENCY, 8}};
    struct cost c;

    *p = (struct points){.endpoints = m->topo.endpoints};
    for (int e = 0; e < EPOCHS; e++)
        for (int i = 0; i < m->topo.endpoints; i++)
            for (int j = 0; j < m->topo.endpoints; j++)
                for (int k = 0; k < 2 && i != j; k++) {
                    matrix_pair(m, i, j, (double)kinds[k].bytes, &c);
                    double sec = c.sec * exp(noise * rng_normal(rng)) *
                                 (matrix_tier(m, i, j) == slow ? factor : 1);
                    MEM_PUSH(p->point, p->count) = (struct point){.epoch = e,
                                                                  .stage = STAGE_CLASS,
                                                                  .op = kinds[k].op,
                                                                  .ranks = 2,
                                                                  .src = i,
                                                                  .dst = j,
                                                                  .flows = 1,
                                                                  .bytes = kinds[k].bytes,
                                                                  .sec.median = sec};
                }
}

/* The small machine twice; how many figures are judged to be `is`, all tiers together included. */
static int changed(struct rng *rng, double noise, int slow, double factor, enum change is,
                   const char *only)
{
    struct matrix m;
    struct points before, after;
    struct compare c;
    struct err err;
    int n = 0;

    small_matrix(&m);
    measure(&before, &m, rng, noise, -1, 1);
    measure(&after, &m, rng, noise, slow, factor);
    const struct campaign a = {.path = "a", .matrix = &m, .topo = &m.topo, .points = &before},
                          b = {.path = "b", .matrix = &m, .topo = &m.topo, .points = &after};
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), 0);
    assert_int_equal(c.matched, before.count);
    assert_int_equal(c.unmatched, 0);
    assert_int_equal(c.figures, 6);
    for (int i = 0; i < c.figures; i++) {
        bool concerned = !only || strstr(c.figure[i].what, only);
        n += concerned && c.figure[i].is == is;
        assert_true(c.figure[i].lo <= c.figure[i].ratio && c.figure[i].ratio <= c.figure[i].hi);
    }
    n += !only && c.together.is == is;
    if (is == CHANGE_WORSE)
        assert_int_equal(compare_code(&c) == EXIT_BELOW, n > 0);
    compare_free(&c);
    free(before.point);
    free(after.point);
    matrix_free(&m);
    return n;
}

/* 2 in 400 are expected, at COMPARE_ALPHA; at four times as much 8 would be, and more than 5 in 8 of 10 runs. */
TEST(equal_campaigns_give_few_alarms)
{
    struct rng rng;
    int alarms = 0;

    rng_seed(&rng, 1);
    for (int i = 0; i < 400; i++)
        alarms += changed(&rng, 0.01 + 0.0002 * i, -1, 1, CHANGE_NONE, NULL) < 7;
    assert_in_range(alarms, 0, 5);
}

/* 48 to 384 points a figure: 5 % are far outside of what 3 % of noise does to their median. */
TEST(what_changed_is_found_and_nothing_else)
{
    const char *const tier[] = {"tier shm", "tier rack", "tier fabric"};
    struct rng rng;

    rng_seed(&rng, 2);
    for (int i = 0; i < 60; i++) {
        int slow = i % 3;
        assert_int_equal(changed(&rng, 0.03, slow, 1.08, CHANGE_WORSE, tier[slow]), 2);
    }
    for (int i = 0; i < 30; i++)
        assert_int_equal(changed(&rng, 0.03, i % 3, 1 / 1.08, CHANGE_BETTER, tier[i % 3]), 2);
}

TEST(other_machines_are_refused)
{
    struct matrix m, other;
    struct points p, q;
    struct compare c;
    struct rng rng;
    struct err err;

    rng_seed(&rng, 3);
    small_matrix(&m);
    small_matrix(&other);
    measure(&p, &m, &rng, 0.01, -1, 1);
    measure(&q, &m, &rng, 0.01, -1, 1);
    const struct campaign a = {.path = "a", .matrix = &m, .topo = &m.topo, .points = &p},
                          b = {.path = "b", .matrix = &other, .topo = &other.topo, .points = &q};
    free(other.transport);
    other.transport = mem_strdup("nccl");
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(strstr(err.text, "a is of transport \"mpi\", b of \"nccl\""));
    compare_free(&c);
    /* The same hosts, nothing that both measured. */
    free(other.transport);
    other.transport = mem_strdup("mpi");
    for (int i = 0; i < q.count; i++)
        q.point[i].flows = 2;
    assert_int_equal(compare_campaigns(&c, &a, &b, 0.01, &err), -1);
    assert_non_null(strstr(err.text, "no point in common"));
    compare_free(&c);
    free(p.point);
    free(q.point);
    matrix_free(&m);
    matrix_free(&other);
}

/* What endpoint 3 loses in points of an operation: log of the rate, log of slow messages' rate, or s. */
struct loss {
    enum op op;
    double rate, messages, late;
    bool both, loaded; /* bandwidth both ways; beside others only */
};

static void lose(struct points *p, const struct matrix *m, const struct loss *l)
{
    for (int i = 0; i < p->count; i++) {
        struct point *x = &p->point[i];
        if (l->both && x->op == OP_PAIR_BW)
            x->op = OP_PAIR_BIBW;
        x->flows = 1 + (x->epoch > 0); /* the first epoch alone: nothing under load shows there */
        bool own = (!l->loaded || x->flows > 1) && (x->src == 3 || x->dst == 3) &&
                   m->tier[matrix_tier(m, x->src, x->dst)].nic;
        if (x->op == l->op && own)
            x->sec.median = x->sec.median * exp(l->rate) + l->late;
        x->tail = point_tail(x->sec.median * exp(own ? l->messages : 0), x->sec.median);
    }
}

/* What is said of endpoint 3, which either campaign names or not (factor 1), and which loses so much in the second. */
static enum part_change_kind said(const struct exception *before, const struct exception *after,
                                  const struct loss *loss, char *name)
{
    const struct exception *said[] = {before, after};
    struct matrix m[2];
    struct points p[2];
    struct campaign c[2];
    struct compare compare;
    struct rng rng;

    rng_seed(&rng, 4);
    for (int i = 0; i < 2; i++) {
        small_matrix(&m[i]);
        measure(&p[i], &m[i], &rng, 0, -1, 1);
        lose(&p[i], &m[i], i ? loss : &(struct loss){.both = loss->both});
        c[i] = (struct campaign){
            .path = i ? "b" : "a", .matrix = &m[i], .topo = &m[i].topo, .points = &p[i]};
        if (said[i]->factor < 1 || said[i]->state || said[i]->alpha_add > 0) {
            struct exception *e = small_exception(&m[i], PART_ENDPOINT, 3, -1, -1, 1);
            e->factor = said[i]->factor;
            e->state = said[i]->state;
            e->share = said[i]->share;
            e->depth = said[i]->depth;
            e->alpha_add = said[i]->alpha_add;
        }
    }
    assert_int_equal(compare_campaigns(&compare, &c[0], &c[1], 0.01, NULL), 0);
    assert_int_equal(compare.parts, 1);
    enum part_change_kind is = compare.part[0].is;
    snprintf(name, 64, "%s", compare.part[0].what);
    compare_free(&compare);
    for (int i = 0; i < 2; i++) {
        free(p[i].point);
        matrix_free(&m[i]);
    }
    return is;
}

/* A part that is there before and after, by name. */
TEST(parts_are_matched_by_name)
{
    const struct {
        double before, after;
        enum part_change_kind is;
    } rows[] = {{1, 0.6, PART_NEW},      {0.6, 1, PART_GONE},     {0.6, 0.4, PART_WORSE},
                {0.4, 0.6, PART_BETTER}, {0.6, 0.605, PART_SAME}, {0.6, 0, PART_WORSE}};
    char name[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct loss loss = {.op = OP_PAIR_BW,
                                  .rate = log(rows[i].before / fmax(rows[i].after, 0.1))};
        assert_int_equal(said(&(struct exception){.factor = rows[i].before},
                              &(struct exception){.factor = rows[i].after}, &loss, name),
                         rows[i].is);
        assert_string_equal(name, rows[i].after ? "NIC of n01 (CPU 1)" : "CPU 1 of n01");
    }
}

/* One campaign alone names a part: COMPARE_SHOWN of its loss, and COMPARE_CAUGHT of that of slow messages, must show
 * in what both have measured, in points that the state concerns. */
TEST(a_part_that_one_alone_names_must_show)
{
    const double loss = -log(0.6);
    const struct {
        struct exception said;
        struct loss least;
    } rows[] = {
        {{.factor = 0.6}, {.op = OP_PAIR_BW, .rate = 0.5 * loss}},
        {{.factor = 0.7, .state = STATE_INTERMITTENT, .depth = 0.6, .share = 0.4},
         {.op = OP_PAIR_BW, .rate = 0.5 * 0.4 * loss}},
        {{.factor = 1, .state = STATE_LOADED, .depth = 0.6},
         {.op = OP_PAIR_BW, .rate = 0.5 * loss, .loaded = true}},
        {{.factor = 1, .state = STATE_BOTH_WAYS, .depth = 0.6},
         {.op = OP_PAIR_BIBW, .rate = 0.5 * loss, .both = true}},
        {{.factor = 1, .state = STATE_SAMPLES, .depth = 0.6, .share = 0.1},
         {.messages = 0.5 * 0.5 * loss}},
        {{.factor = 1, .alpha_add = 1e-5}, {.op = OP_PAIR_LATENCY, .late = 0.5 * 1e-5}},
    };
    const struct exception none = {.factor = 1};
    char name[64];

    assert_float_equal(COMPARE_SHOWN, 0.5, 1e-12);
    assert_float_equal(COMPARE_CAUGHT, 0.5, 1e-12);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int side = -1; side <= 1; side += 2) {
            const double k = 1 + 0.02 * side;
            const struct loss *l = &rows[i].least;
            const struct loss down = {l->op,       k * l->rate, k * l->messages,
                                      k * l->late, l->both,     l->loaded},
                              up = {l->op,        -k * l->rate, -k * l->messages,
                                    -k * l->late, l->both,      l->loaded};
            assert_int_equal(said(&none, &rows[i].said, &down, name),
                             side > 0 ? PART_NEW : PART_SAME);
            if (!(l->messages > 0)) /* no message is faster than the median */
                assert_int_equal(said(&rows[i].said, &none, &up, name),
                                 side > 0 ? PART_GONE : PART_SAME);
        }
}

/* States that a mean over points cannot tell are taken as they are said. */
TEST(states_of_few_points_are_taken_as_said)
{
    const struct exception rows[] = {
        {.factor = 1, .state = STATE_SMALL, .depth = 0.6, .bytes = 65536},
        {.factor = 1, .state = STATE_LARGE, .depth = 0.6, .bytes = 1e8},
        {.factor = 1, .state = STATE_LOST_UPLINKS, .depth = 0.6},
        {.factor = 0},
        {.factor = 0, .state = STATE_WRONG}};
    const struct exception none = {.factor = 1};
    const struct loss nothing = {0};
    char name[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(said(&none, &rows[i], &nothing, name), PART_NEW);
        assert_int_equal(said(&rows[i], &none, &nothing, name), PART_GONE);
    }
}

/* Two groups of four with the same first and last member: of one host a pair each, and of one rack. */
TEST(collectives_are_told_by_the_shape_of_their_groups)
{
    int halves[] = {0, 1, 6, 7}, spread[] = {0, 2, 4, 7};
    struct plan_group group[] = {{halves, 4}, {spread, 4}};
    struct round round = {
        .id = 7, .stage = STAGE_COLLECTIVE, .op = OP_ALL_REDUCE, .group = group, .groups = 2};
    const struct plan plan = {&round, 1};
    struct points p = {0};
    struct figures f;
    struct matrix m;

    small_matrix(&m);
    for (int g = 0; g < 2; g++)
        MEM_PUSH(p.point, p.count) = (struct point){.round = 7,
                                                    .group = g,
                                                    .epoch = g,
                                                    .stage = STAGE_COLLECTIVE,
                                                    .op = OP_ALL_REDUCE,
                                                    .ranks = 4,
                                                    .src = 0,
                                                    .dst = 7,
                                                    .flows = 1,
                                                    .bytes = 4 << 20,
                                                    .sec.median = 1e-3};
    struct campaign c[] = {
        {.path = "a", .matrix = &m, .topo = &m.topo, .points = &p, .plan = &plan},
        {.path = "b", .matrix = &m, .topo = &m.topo, .points = &p}};
    figures_match(&f, c, 2);
    assert_int_equal(f.figures, 2);
    assert_string_equal(f.figure[0].what, "all_reduce, 4 ranks, 4 domains of 1, large");
    assert_string_equal(f.figure[1].what, "all_reduce, 4 ranks, 2 domains of 2, large");
    figures_free(&f);
    c[0].plan = NULL;
    figures_match(&f, c, 2);
    assert_int_equal(f.figures, 1);
    assert_string_equal(f.figure[0].what, "all_reduce, 4 ranks, large");
    assert_int_equal(f.figure[0].points, 2);
    figures_free(&f);
    free(p.point);
    matrix_free(&m);
}

/* Firmware of one board on some NICs, and a driver that most have. */
TEST(versions_say_how_many_have_which)
{
    struct matrix m, n;
    struct versions v;

    small_matrix(&m);
    small_matrix(&n);
    for (int i = 0; i < 6; i++) {
        struct nic one;
        nic_init(&one, i);
        snprintf(one.board, sizeof(one.board), "MT_1");
        snprintf(one.firmware, sizeof(one.firmware), "28.39.1002");
        snprintf(one.driver, sizeof(one.driver), "mlx5_core");
        MEM_PUSH(m.topo.nic, m.topo.nics) = one;
        snprintf(one.firmware, sizeof(one.firmware), i < 2 ? "28.40.1000" : "28.39.1002");
        MEM_PUSH(n.topo.nic, n.topo.nics) = one;
    }
    m.provenance = json_pack("{s:s, s:s}", "mpi", "Open MPI v4.1.4", "host", "a");
    n.provenance = json_pack("{s:s, s:s}", "mpi", "Open MPI v5.0.3", "host", "b");
    const struct campaign a = {.matrix = &m, .topo = &m.topo}, b = {.matrix = &n, .topo = &n.topo};
    versions_list(&v, (const struct campaign *const[]){&a, &b}, 2);
    assert_int_equal(v.rows, 3);
    assert_string_equal(v.row[0].what, "NIC driver");
    assert_string_equal(v.row[0].value[1], "mlx5_core");
    assert_string_equal(v.row[1].what, "NIC firmware, MT_1");
    assert_string_equal(v.row[1].value[0], "28.39.1002");
    assert_string_equal(v.row[1].value[1], "28.39.1002 on 4, 28.40.1000 on 2");
    assert_string_equal(v.row[2].value[1], "Open MPI v5.0.3");
    versions_free(&v);
    matrix_free(&m);
    matrix_free(&n);
}
