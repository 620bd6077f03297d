/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "matrix/collective.h"

#include <math.h>
#include <string.h>

#include "small.h"

static void near(double a, double b, double share)
{
    if (!(fabs(a - b) <= share * fabs(b)))
        fail_msg("%.9g is not within %g of %.9g", a, share, b);
}

static void add(struct matrix *m, int ranks, int domains, double alpha, double dispatch,
                double combine)
{
    MEM_PUSH(m->ep, m->eps) = (struct ep_curve){.kernel = mem_strdup("DeepEP"),
                                                .ranks = ranks,
                                                .domains = domains,
                                                .alpha = alpha,
                                                .Bps = {dispatch, combine},
                                                .basis = BASIS_PRESET,
                                                .source = mem_strdup("test")};
}

/* 2 hosts of 8 GPUs, each a domain, 49 GB/s a NIC; kernels at 4 and 8 ranks inside, 16 across. */
static void two_hosts(struct matrix *m)
{
    matrix_init(m);
    m->transport = mem_strdup("nccl");
    small_topo(&m->topo, 1, 2, 8, true, ENDPOINT_GPU);
    small_tier(m, "nvlink", 1u << LEVEL_HOST, 7e-6, 370e9, false);
    small_tier(m, "rail", 0, 6e-6, 49e9, true);
    add(m, 8, 1, 100e-6, 300e9, 200e9);
    add(m, 2, 1, 60e-6, 100e9, 50e9);
    add(m, 16, 2, 150e-6, 40e9, 30e9);
}

static const int ids[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

TEST(dispatch_and_combine_have_rates_of_their_own)
{
    struct matrix m;
    struct cost c;

    two_hosts(&m);
    matrix_ep(&m, ids, 8, 300e6, NAN, NAN, true, &c);
    near(c.sec, 1.1e-3, 1e-9);
    assert_int_equal(c.basis, BASIS_PRESET);
    assert_non_null(strstr(c.source, "preset DeepEP dispatch 8 ranks, 1 domain"));
    assert_true(c.lo < c.sec && c.sec < c.hi);
    matrix_ep(&m, ids, 8, 300e6, NAN, NAN, false, &c);
    near(c.sec, 1.6e-3, 1e-9);
    matrix_free(&m);
}

TEST(between_two_sizes_of_groups_rates_are_interpolated)
{
    struct matrix m;
    struct cost c;

    two_hosts(&m);
    matrix_ep(&m, ids, 4, 200e6, NAN, NAN, true, &c); /* half way from 2 to 8 in logs */
    near(c.sec, 80e-6 + 200e6 / sqrt(100e9 * 300e9), 1e-9);
    assert_non_null(strstr(c.source, "rates between 2 and 8 ranks"));
    matrix_free(&m);
}

TEST(what_crosses_and_what_stays_run_side_by_side)
{
    struct matrix m;
    struct ways w;
    struct cost c;

    two_hosts(&m);
    matrix_ep(&m, ids, 16, 160e6, NAN, NAN, true, &c); /* half of it crosses */
    near(c.sec, 150e-6 + 80e6 / 40e9, 1e-9);
    ways_of(&w, &m, ids, 16, OP_ALL_TO_ALL, false);
    near(ep_inside(&w.shape, 160e6), 80e6, 1e-12);
    near(ep_time(&m, &w, 3e9, 1e6, true), 150e-6 + 3e9 / 300e9, 1e-9);
    matrix_ep(&m, ids, 16, 160e6, 160e6, 20e6, true, &c);
    near(c.sec, 150e-6 + 160e6 / 300e9, 1e-9);
    matrix_ep(&m, ids, 16, 160e6, 160e6, 40e6, false, &c);
    near(c.sec, 150e-6 + 40e6 / 30e9, 1e-9);
    m.ep[2].Bps[0] = 90e9; /* no kernel is faster than the NIC */
    near(ep_time(&m, &w, 0, 80e6, true), 150e-6 + 80e6 / 49e9, 1e-3);
    matrix_free(&m);
}

TEST(a_slow_nic_reaches_the_kernel_and_is_named)
{
    struct matrix m;
    struct cost c;

    two_hosts(&m);
    small_exception(&m, PART_ENDPOINT, 3, -1, 1, 0.5);
    matrix_ep(&m, ids, 16, 160e6, NAN, NAN, true, &c);
    near(c.sec, 150e-6 + 80e6 / 20e9, 1e-9);
    assert_int_equal(c.exception, 0);
    assert_non_null(strstr(c.source, "NIC of "));
    matrix_ep(&m, ids, 8, 300e6, NAN, NAN, true, &c);
    near(c.sec, 1.1e-3, 1e-9);
    small_exception(&m, PART_HOST, 1, -1, -1, 0);
    matrix_ep(&m, ids, 16, 160e6, NAN, NAN, true, &c);
    assert_true(isinf(c.sec));
    matrix_free(&m);
}

TEST(without_a_kernel_it_is_all_to_all_and_says_so)
{
    struct matrix m;
    struct cost c, plain;

    two_hosts(&m);
    m.ep[2].domains = 1; /* none that crosses */
    matrix_ep(&m, ids, 16, 160e6, NAN, NAN, true, &c);
    matrix_collective(&m, OP_ALL_TO_ALL, ids, 16, 160e6, &plain);
    assert_true(c.sec == plain.sec);
    assert_int_equal(c.basis, BASIS_ASSUMED);
    assert_true(!strncmp(c.source, "no EP kernel known, as all_to_all: modelled", 43));
    matrix_ep(&m, ids, 1, 160e6, NAN, NAN, true, &c);
    assert_true(c.sec == 0);
    matrix_ep(&m, (const int[]){0, 99}, 2, 1e6, NAN, NAN, true, &c);
    assert_true(isnan(c.sec) && strstr(c.source, "no endpoint 99"));
    matrix_free(&m);
}

/* What was published comes back: DeepEP and HybridEP at their own sizes and groups. */
static const struct {
    const char *fabric;
    int ranks;
    bool dispatch;
    double bytes, GBps;
} published[] = {
    {"gb200-nvl72", 8, true, 319.0e6, 550.1},  {"gb200-nvl72", 8, false, 319.0e6, 538.4},
    {"gb200-nvl72", 36, true, 431.3e6, 470.0}, {"hgx-b200", 8, true, 319.0e6, 535.9},
    {"hgx-h100", 8, true, 330.4e6, 328.9},     {"hgx-h100", 8, false, 331.7e6, 287.1},
    {"hgx-h100", 64, true, 121.1e6, 51.0},     {"hgx-h100", 32, false, 234.9e6, 57.0},
};

TEST(published_rates_come_back)
{
    struct fabric f;
    struct matrix m;
    struct cost c;
    int all[64];

    for (int i = 0; i < 64; i++)
        all[i] = i;
    for (size_t i = 0; i < sizeof(published) / sizeof(*published); i++) {
        assert_int_equal(fabric_load(&f, published[i].fabric, NULL), 0);
        assert_int_equal(matrix_from_fabric(&m, &f, 2, NULL), 0);
        matrix_ep(&m, all, published[i].ranks, published[i].bytes, NAN, NAN, published[i].dispatch,
                  &c);
        near(published[i].bytes / c.sec / 1e9, published[i].GBps, 0.01);
        matrix_free(&m);
        fabric_free(&f);
    }
}
