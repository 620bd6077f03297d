/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "step/pricer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/stats.h"
#include "small.h"

static void open_preset(struct matrix *m, const char *name, int racks)
{
    struct fabric f;

    assert_int_equal(fabric_load(&f, name, NULL), 0);
    assert_int_equal(matrix_from_fabric(m, &f, racks, NULL), 0);
    fabric_free(&f);
}

static int tier_named(const struct matrix *m, const char *name)
{
    for (int t = 0; t < m->tiers; t++)
        if (!strcmp(m->tier[t].rule.name, name))
            return t;
    fail_msg("no tier \"%s\"", name);
    return -1;
}

static int *shuffled(int n, uint64_t seed)
{
    int *order = mem_calloc((size_t)n, sizeof(*order));
    struct rng rng;

    rng_seed(&rng, seed);
    for (int i = 0; i < n; i++)
        order[i] = i;
    rng_shuffle(&rng, order, n);
    return order;
}

/* The truth: each group by itself. */
static double dearest(const struct matrix *m, const int *order, int ranks, struct span span,
                      enum op op, double bytes)
{
    int ids[1024], total = span_groups(&span, ranks);
    double most = 0;

    assert_true(span.size <= 1024);
    for (int g = 0; g < total; g++) {
        struct cost c;
        for (int i = 0; i < span.size; i++) {
            int rank = span_rank(&span, g, i);
            ids[i] = order ? order[rank] : rank;
        }
        matrix_collective_at(m, op, ids, span.size, total, bytes, false, &c);
        if (isnan(c.sec))
            return NAN;
        most = fmax(most, c.sec);
    }
    return most;
}

TEST(equal_groups_are_of_one_kind)
{
    struct span tp = {8, 1};
    struct matrix m;
    struct pricer *p;

    open_preset(&m, "gb200-nvl72", 112);
    assert_int_equal(pricer_open(&p, &m, NULL, 8064, NULL), 0);
    const struct groups *g = pricer_groups(p, tp);
    assert_int_equal(g->total, 1008);
    assert_int_equal(g->kinds, 1);
    assert_int_equal(g->kind[0].like, 1008);
    assert_ptr_equal(pricer_groups(p, tp), g);
    pricer_close(p);
    /* a slow NVLink makes one group differ; a slow NIC does not, inside a domain */
    small_exception(&m, PART_ENDPOINT, 4321, -1, tier_named(&m, "mnnvl"), 0.5);
    small_exception(&m, PART_ENDPOINT, 17, -1, -1, 0.5);
    assert_int_equal(pricer_open(&p, &m, NULL, 8064, NULL), 0);
    g = pricer_groups(p, tp);
    assert_int_equal(g->kinds, 2);
    assert_int_equal(g->kind[1].index, 4321 / 8);
    assert_int_equal(g->kind[1].like, 1);
    assert_int_equal(g->kind[0].like, 1007);
    /* across domains it does: the group of the slow NIC, and nothing of the slow NVLink in the
     * groups of one GPU per domain */
    g = pricer_groups(p, (struct span){112, 72});
    assert_int_equal(g->total, 72);
    assert_int_equal(g->kinds, 2);
    assert_int_equal(g->kind[1].index, 17);
    pricer_close(p);
    matrix_free(&m);
}

/* What a message of any operation takes; tokens of a kernel spread evenly. */
static double pricer_time(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                          double bytes)
{
    return pricer_message(
        p, &(struct message){.span = span, .op = op, .kernel = kernel, .bytes = bytes});
}

static void pricer_cost(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                        double bytes, struct cost *out, int *group)
{
    pricer_message_cost(
        p, &(struct message){.span = span, .op = op, .kernel = kernel, .bytes = bytes}, out, group);
}

/* What folding leaves must be what pricing each group by itself gives, also where every group is
 * another. */
TEST(folding_does_not_change_the_slowest)
{
    static const struct span spans[] = {{2, 1},  {4, 1},  {8, 1},  {3, 8},
                                        {27, 8}, {9, 24}, {6, 36}, {216, 1}};
    static const enum op ops[] = {OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_ALL_TO_ALL, OP_ALL_REDUCE,
                                  OP_SENDRECV};
    int *orders[] = {NULL, shuffled(216, 7)};
    struct matrix m;

    open_preset(&m, "gb200-nvl72", 3);
    small_exception(&m, PART_HOST, 20, -1, -1, 0.5);
    small_exception(&m, PART_ENDPOINT, 100, -1, tier_named(&m, "mnnvl"), 0.7);
    small_exception(&m, PART_PAIR, 3, 11, -1, 0.3)->alpha_add = 20e-6;
    small_exception(&m, PART_RACK_PAIR, 0, 2, -1, 0.8);
    for (size_t o = 0; o < 2; o++) {
        struct pricer *p;
        assert_int_equal(pricer_open(&p, &m, orders[o], 216, NULL), 0);
        for (size_t s = 0; s < sizeof(spans) / sizeof(*spans); s++)
            for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++) {
                struct cost c;
                int group;
                double truth = dearest(&m, orders[o], 216, spans[s], ops[k], 3e7);
                pricer_cost(p, spans[s], ops[k], EP_NONE, 3e7, &c, &group);
                assert_float_equal(c.sec / truth, 1, 1e-12);
                assert_in_range(group, 0, 216 / spans[s].size - 1);
            }
        pricer_close(p);
    }
    free(orders[1]);
    matrix_free(&m);
}

/* A ladder whose sizes are on no grid, with a jump where the protocol changes. */
static void add_odd_curve(struct matrix *m, enum op op, struct shape shape)
{
    struct collective c = {.op = op, .shape = shape, .basis = BASIS_MEASURED};

    for (double bytes = 1000; bytes < 3e9; bytes *= 3.7) {
        double sec = 20e-6 + bytes / 120e9 + (bytes > 2e5 ? 15e-6 : 0);
        curve_add(&c.curve, (struct curve_point){bytes, sec, sec, sec, 5});
    }
    curve_summarise(&c.curve);
    MEM_PUSH(m->collective, m->collectives) = c;
}

TEST(the_table_is_within_half_a_percent_of_the_exact_cost)
{
    static const struct span spans[] = {{2, 1},   {8, 1},  {16, 1}, {64, 1}, {128, 1},
                                        {512, 1}, {2, 64}, {8, 64}, {4, 8},  {16, 8},
                                        {64, 8},  {4, 16}, {32, 16}};
    static const enum op ops[] = {OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_ALL_TO_ALL,
                                  OP_ALL_REDUCE, OP_BROADCAST,      OP_SENDRECV};
    int *order = shuffled(512, 3);
    struct matrix m;
    struct rng rng;
    double worst = 0;

    open_preset(&m, "hgx-h100", 16);
    assert_true(m.topo.endpoints >= 512);
    add_odd_curve(&m, OP_ALL_GATHER, (struct shape){16, 2, 8, 2, 8, 0});
    add_odd_curve(&m, OP_ALL_TO_ALL, (struct shape){8, 1, 8, 1, 8, 0});
    small_exception(&m, PART_ENDPOINT, 37, -1, -1, 0.4);
    small_exception(&m, PART_HOST, 5, -1, -1, 0.9)->alpha_add = 30e-6;
    rng_seed(&rng, 11);
    for (int permuted = 0; permuted < 2; permuted++) {
        struct pricer *p;
        assert_int_equal(pricer_open(&p, &m, permuted ? order : NULL, 512, NULL), 0);
        for (int i = 0; i < 20000; i++) {
            struct span span = spans[rng_below(&rng, sizeof(spans) / sizeof(*spans))];
            enum op op = ops[rng_below(&rng, sizeof(ops) / sizeof(*ops))];
            double bytes = exp2(rng_uniform(&rng) * 48); /* 1 B .. 256 TiB: beyond the table too */
            struct cost exact;
            int group;
            pricer_cost(p, span, op, EP_NONE, bytes, &exact, &group);
            assert_true(exact.sec > 0);
            worst = fmax(worst, fabs(pricer_time(p, span, op, EP_NONE, bytes) / exact.sec - 1));
        }
        pricer_close(p);
    }
    print_message("worst of 40000: %.3f %%\n", 100 * worst);
    assert_true(worst < 0.005);
    assert_true(worst > 0); /* it is a table, not the same call */
    free(order);
    matrix_free(&m);
}

TEST(dead_parts_take_for_ever_and_unknown_tiers_are_not_numbers)
{
    struct span tp = {2, 1}, hosts = {8, 2}, racks = {2, 8};
    struct matrix m;
    struct pricer *p;
    struct cost c;
    int group;

    small_matrix(&m);
    small_exception(&m, PART_PAIR, 4, 5, -1, 0);
    assert_int_equal(pricer_open(&p, &m, NULL, 16, NULL), 0);
    assert_true(isinf(pricer_time(p, tp, OP_ALL_GATHER, EP_NONE, 12345)));
    assert_true(isinf(pricer_time(p, tp, OP_ALL_GATHER, EP_NONE, 1 << 20)));
    assert_true(isfinite(pricer_time(p, hosts, OP_ALL_GATHER, EP_NONE, 12345)));
    pricer_cost(p, tp, OP_ALL_GATHER, EP_NONE, 12345, &c, &group);
    assert_true(isinf(c.sec));
    assert_int_equal(group, 2);
    assert_int_equal(c.exception, 0);
    assert_float_equal(pricer_time(p, (struct span){1, 1}, OP_ALL_GATHER, EP_NONE, 1e6), 0, 0);
    pricer_close(p);
    for (int d = 0; d < DIR_COUNT; d++)
        curve_free(&m.tier[2].curve[d]);
    assert_int_equal(pricer_open(&p, &m, NULL, 16, NULL), 0);
    assert_true(isnan(pricer_time(p, racks, OP_ALL_TO_ALL, EP_NONE, 12345)));
    pricer_close(p);
    matrix_free(&m);
}

/* A kernel's own rates where the matrix has them; else the all_to_all that it replaces, in words.
 */
TEST(kernels_have_prices_of_their_own)
{
    static const double sizes[] = {1e3, 3e5, 4e6, 1e8};
    struct span ep = {8, 1}, wide = {16, 1};
    struct matrix m;
    struct pricer *p;
    struct cost plain, kernel, one;
    int group, ids[16];

    for (int i = 0; i < 16; i++)
        ids[i] = i;
    small_matrix(&m);
    assert_int_equal(pricer_open(&p, &m, NULL, 16, NULL), 0);
    pricer_cost(p, ep, OP_ALL_TO_ALL, EP_NONE, 1e6, &plain, &group);
    pricer_cost(p, ep, OP_ALL_TO_ALL, EP_DISPATCH, 1e6, &kernel, &group);
    assert_float_equal(plain.sec, kernel.sec, 0);
    assert_int_equal(kernel.basis, BASIS_ASSUMED);
    assert_non_null(strstr(kernel.source, "no EP kernel known, as all_to_all"));
    pricer_close(p);
    matrix_free(&m);

    open_preset(&m, "gb200-nvl72", 1);
    assert_true(m.eps > 0);
    assert_int_equal(pricer_open(&p, &m, NULL, 64, NULL), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (enum ep_kernel k = EP_DISPATCH; k <= EP_COMBINE; k++) {
            matrix_ep(&m, ids, 16, sizes[i], NAN, NAN, k == EP_DISPATCH, &one);
            pricer_cost(p, wide, OP_ALL_TO_ALL, k, sizes[i], &kernel, &group);
            assert_float_equal(kernel.sec, one.sec, 0);
            assert_string_equal(kernel.source, one.source);
            assert_float_equal(pricer_time(p, wide, OP_ALL_TO_ALL, k, sizes[i]) / one.sec, 1, 5e-3);
            pricer_cost(p, wide, OP_ALL_TO_ALL, EP_NONE, sizes[i], &plain, &group);
            assert_true(plain.sec != kernel.sec);
        }
    pricer_close(p);
    matrix_free(&m);
}

/* 64 ranks in 8 domains: 8 of 256 experts reach 8 x 0.66 domains, and 4 groups of 8 fewer; the
 * fewer, the cheaper, by table and exactly. */
TEST(tokens_of_a_kernel_cross_once_a_domain)
{
    struct message msg = {
        .span = {64, 1}, .op = OP_ALL_TO_ALL, .kernel = EP_DISPATCH, .bytes = 3e8};
    static const struct routing routes[] = {
        {0}, {64, 256, 8, 0, 0, 0}, {64, 256, 8, 8, 4, 0}, {64, 256, 8, 8, 4, 1}};
    double last = INFINITY;
    struct matrix m;
    struct pricer *p;
    struct cost cost;
    int group;

    open_preset(&m, "hgx-h100", 2);
    assert_true(m.eps > 0);
    for (size_t i = 1; i < sizeof(routes) / sizeof(*routes); i++) {
        assert_int_equal(pricer_open(&p, &m, NULL, 64, NULL), 0);
        msg.route = routes[i];
        pricer_message_cost(p, &msg, &cost, &group);
        assert_true(cost.sec < last);
        last = cost.sec;
        assert_float_equal(pricer_message(p, &msg) / cost.sec, 1, 5e-3);
        msg.route = routes[0]; /* another routing than the table's */
        double even = pricer_message(p, &msg);
        pricer_message_cost(p, &msg, &cost, &group);
        assert_float_equal(even, cost.sec, 0);
        pricer_close(p);
    }
    matrix_free(&m);
}

/* One order after another in one pricer is as each in its own: to the bit what the slowest costs,
 * and the same group.  Orders of hosts, of ranks, the same again, and back to one that was named as the
 * base, all of it or but for some ranks. */
TEST(the_next_order_is_as_the_first)
{
    static const struct span spans[] = {{8, 1}, {4, 8}, {16, 32}, {512, 1}, {128, 4}};
    struct matrix m;
    struct pricer *kept, *fresh;
    struct rng rng;

    open_preset(&m, "gb200-nvl72", 9);
    small_exception(&m, PART_ENDPOINT, 17, -1, -1, 0.5);
    small_exception(&m, PART_RACK_PAIR, 2, 5, -1, 0.3);
    small_exception(&m, PART_PAIR, 40, 140, -1, 0.2);
    rng_seed(&rng, 5);
    int *order = shuffled(648, 3), *base = shuffled(648, 3);
    assert_int_equal(pricer_open(&kept, &m, order, 512, NULL), 0);
    for (int turn = 0; turn < 90; turn++) {
        int from = (int)rng_below(&rng, 640);
        for (int i = 0; i < 648 && turn % 3 == 0; i++)
            order[i] = (i + from) % 648;
        for (int i = 0; i < 4 && turn % 3 == 1; i++) {
            int to = (int)rng_below(&rng, 648), keep = order[to];
            order[to] = order[(from + i) % 648];
            order[(from + i) % 648] = keep;
        }
        if (turn % 9 == 5 || turn % 9 == 7)
            memcpy(order, base, 648 * sizeof(*order));
        assert_int_equal(pricer_open(&fresh, &m, order, 512, NULL), 0);
        assert_int_equal(pricer_reorder(kept, order, NULL), 0);
        for (size_t k = 0; k < sizeof(spans) / sizeof(*spans); k++)
            for (int op = OP_ALL_GATHER; op <= OP_ALL_TO_ALL; op += OP_ALL_TO_ALL - OP_ALL_GATHER) {
                struct message msg = {.span = spans[k], .op = (enum op)op, .bytes = 3e7};
                double mean[2], sec = pricer_message_mean(fresh, &msg, &mean[0]);
                int group[2];
                struct cost cost;
                assert_true(pricer_message_mean(kept, &msg, &mean[1]) == sec);
                assert_float_equal(mean[0], mean[1], 1e-12 * mean[0]);
                assert_true(pricer_message(kept, &msg) == pricer_message(fresh, &msg));
                pricer_message_cost(fresh, &msg, &cost, &group[0]);
                pricer_message_cost(kept, &msg, &cost, &group[1]);
                assert_true(cost.sec == sec);
            }
        pricer_close(fresh);
        if (turn % 9 == 2) {
            pricer_base(kept);
            memcpy(base, order, 648 * sizeof(*order));
        }
    }
    free(base);
    order[3] = 648;
    assert_int_equal(pricer_reorder(kept, order, NULL), -1);
    pricer_close(kept);
    free(order);
    matrix_free(&m);
}

TEST(an_order_beyond_the_matrix_is_refused)
{
    int order[] = {0, 1, 99};
    struct matrix m;
    struct pricer *p;
    struct err err;

    small_matrix(&m);
    assert_int_equal(pricer_open(&p, &m, NULL, 17, &err), -1);
    assert_string_equal(err.text, "the layout needs 17 ranks and the matrix has 16 endpoints");
    assert_int_equal(err.code, EXIT_USAGE);
    assert_int_equal(pricer_open(&p, &m, order, 3, &err), -1);
    assert_string_equal(err.text, "rank 2 is placed on endpoint 99, and the matrix has 0..15");
    assert_null(p);
    pricer_close(p);
    matrix_free(&m);
}

/* 8,192 ranks, every power of two as size and stride, some slow parts: 91 spans. */
TEST(folding_is_fast_enough_for_a_search)
{
    struct matrix m;
    struct pricer *p;
    int spans = 0;

    open_preset(&m, "gb200-nvl72", 114);
    for (int i = 0; i < 8192; i += 800)
        small_exception(&m, PART_ENDPOINT, i, -1, -1, 0.5);
    clock_t start = clock();
    assert_int_equal(pricer_open(&p, &m, NULL, 8192, NULL), 0);
    for (int size = 2; size <= 8192; size *= 2)
        for (int stride = 1; size * stride <= 8192; stride *= 2, spans++)
            assert_true(pricer_groups(p, (struct span){size, stride})->kinds > 0);
    double sec = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%d spans folded in %.0f ms\n", spans, 1e3 * sec);
    assert_int_equal(spans, 91);
    assert_true(sec < 3); /* an order of magnitude of room for sanitizers and busy machines */
    pricer_close(p);
    matrix_free(&m);
}
