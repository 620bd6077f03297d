/* SPDX-License-Identifier: BSD-3-Clause */
/* units_foreign.c - units of other programs: each trap with a number whose meaning is known. */
#include "base/units.h"
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* What stands in a file of that program, and what it means. */
static const struct {
    enum foreign row;
    double theirs, ours;
} known[] = {
    {FOREIGN_NCCL_SPEED, 400000, 50e9},       /* one NDR port */
    {FOREIGN_NCCL_C2C, 44712, 44.712e9},      /* one C2C link of a GB300 */
    {FOREIGN_NCCL_GRAPH, 20, 20e9},           /* a channel of an H200 */
    {FOREIGN_SYSFS_IB, 400, 50e9},            /* "400 Gb/sec (4X NDR)" */
    {FOREIGN_IB_LANE, 100, 12.5e9},           /* NDR: 4xNDR is 50 GB/s */
    {FOREIGN_SYSFS_NET, 100000, 12.5e9},      /* 100 GbE */
    {FOREIGN_NVML_LINK, 53125, 53.125e9},     /* NVLink 5, one direction */
    {FOREIGN_ASTRA_BANDWIDTH, 1, 1073741824}, /* bw_GBps_to_Bpns() */
    {FOREIGN_ASTRA_LATENCY, 936.25, 936.25e-9},
    {FOREIGN_CALCULON_RATE, 450, 450e9}, /* NVLink of its h100 files */
    {FOREIGN_CALCULON_LATENCY, 0.00001, 10e-6},
    {FOREIGN_AIC_RATE, 25e9, 25e9},        /* inter_rack_bw: 25000000000 */
    {FOREIGN_AIC_LATENCY, 0.00001, 10e-6}, /* p2p_latency: 10 us */
    {FOREIGN_AIC_MESSAGE, 512, 1024},      /* 512 halves */
    {FOREIGN_AIC_PERF, 0.015538, 15.538e-6},
    {FOREIGN_SIMGRID_BANDWIDTH, 49.2e9, 49.2e9},
    {FOREIGN_SIMGRID_LATENCY, 2e-6, 2e-6},
    {FOREIGN_HWLOC_BANDWIDTH, 125625, 125.625e9},
    {FOREIGN_HWLOC_LATENCY, 100, 100e-9},
    {FOREIGN_SIMAI_BANDWIDTH, 400, 50e9},     /* "400Gbps" */
    {FOREIGN_SIMAI_LATENCY, 0.0005, 500e-9},  /* "0.0005ms" */
    {FOREIGN_KUBE_BANDWIDTH, 393600, 49.2e9}, /* "393600M" */
    {FOREIGN_TUNER_BANDWIDTH, 370.67, 370.67e9},
    {FOREIGN_TUNER_LATENCY, 12.5, 12.5e-6},
    {FOREIGN_TABLE_RATE, 49.2, 49.2e9},
    {FOREIGN_TABLE_TIME, 2.5, 2.5e-6},
};

TEST(each_trap_is_known)
{
    bool seen[FOREIGN_COUNT] = {false};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        double in = units_in(known[i].row, known[i].theirs);
        double out = units_out(known[i].row, known[i].ours);
        if (fabs(in / known[i].ours - 1) > 1e-12 || fabs(out / known[i].theirs - 1) > 1e-12)
            fail_msg("%s: %g is %g, %g is %g", foreign_unit[known[i].row].program, known[i].theirs,
                     in, known[i].ours, out);
        seen[known[i].row] = true;
    }
    for (int c = 0; c < FOREIGN_COUNT; c++)
        if (!seen[c])
            fail_msg("no known number for %s", foreign_unit[c].program);
}

/* Two programs that call different things by the same name. */
TEST(units_of_one_name_differ)
{
    assert_true(units_in(FOREIGN_ASTRA_BANDWIDTH, 1) > units_in(FOREIGN_CALCULON_RATE, 1));
    assert_true(units_in(FOREIGN_NCCL_SPEED, 8) == units_in(FOREIGN_NCCL_C2C, 1));
    assert_true(units_in(FOREIGN_AIC_LATENCY, 1) == 1000 * units_in(FOREIGN_AIC_PERF, 1));
    assert_true(units_in(FOREIGN_SIMAI_BANDWIDTH, 8) == units_in(FOREIGN_TUNER_BANDWIDTH, 1));
}

TEST(texts_carry_their_unit)
{
    char buf[FOREIGN_TEXT];

    assert_string_equal(units_foreign_text(buf, FOREIGN_SIMGRID_BANDWIDTH, 49.2e9), "4.92e+10Bps");
    assert_string_equal(units_foreign_text(buf, FOREIGN_SIMGRID_LATENCY, 9.9e-6), "9.9e-06s");
    assert_string_equal(units_foreign_text(buf, FOREIGN_SIMAI_BANDWIDTH, 50e9), "400Gbps");
    assert_string_equal(units_foreign_text(buf, FOREIGN_SIMAI_LATENCY, 500e-9), "0.0005ms");
    /* 10 * 2^30 bits/s, which Kubernetes writes 10Gi, in millions */
    assert_string_equal(units_foreign_text(buf, FOREIGN_KUBE_BANDWIDTH, 10 * 0x1p30 / 8), "10737M");
    assert_string_equal(units_foreign_text(buf, FOREIGN_HWLOC_BANDWIDTH, 125.625e9), "125625");
}

TEST(every_row_is_complete)
{
    for (int c = 0; c < FOREIGN_COUNT; c++) {
        assert_non_null(foreign_unit[c].program);
        assert_true(foreign_unit[c].factor > 0);
        assert_true(strlen(foreign_unit[c].unit) > 0 && strlen(foreign_unit[c].written) > 0);
    }
}
