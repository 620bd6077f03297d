/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/convert.h"

#include <stdio.h>

#define BIT 0.125 /* bytes */

#define RATE CONVERT_IS_RATE
#define TIME CONVERT_IS_TIME

const struct conversion conversion[CONVERT_COUNT] = {
    [CONVERT_NCCL_SPEED] = {"NCCL topology XML, net speed", "Mb/s", RATE, 1e6 * BIT, "",
                            "NVIDIA/nccl src/graph/topo.cc (speed / 8000 is GB/s)"},
    [CONVERT_NCCL_C2C] = {"NCCL topology XML, c2c bw", "MB/s", RATE, 1e6, "",
                          "NVIDIA/nccl src/graph/topo.cc (bw * count / 1000 is GB/s)"},
    [CONVERT_NCCL_GRAPH] = {"NCCL log, graphs", "GB/s", RATE, 1e9, "",
                            "NVIDIA/nccl src/graph/search.cc"},
    [CONVERT_SYSFS_IB] = {"sysfs, InfiniBand rate", "Gb/s", RATE, 1e9 * BIT, " Gb/sec",
                          "Linux drivers/infiniband/core/sysfs.c"},
    [CONVERT_IB_LANE] = {"InfiniBand, data of a lane", "Gb/s", RATE, 1e9 * BIT, "",
                         "roadmap of the InfiniBand Trade Association"},
    [CONVERT_SYSFS_NET] = {"sysfs, Ethernet speed", "Mb/s", RATE, 1e6 * BIT, "",
                           "Linux Documentation/ABI/testing/sysfs-class-net"},
    [CONVERT_NVML_LINK] = {"NVML, NVLink speed", "MB/s", RATE, 1e6, "",
                           "nvml.h, NVML_FI_DEV_NVLINK_SPEED_MBPS_*"},
    [CONVERT_ASTRA_BANDWIDTH] = {"ASTRA-sim, bandwidth", "GB/s of 2^30 bytes", RATE, 0x1p30, "",
                                 "astra-network-analytical common/NetworkFunction.cpp"},
    [CONVERT_ASTRA_LATENCY] = {"ASTRA-sim, latency", "ns", TIME, 1e-9, "",
                               "astra-network-analytical common/Type.h"},
    [CONVERT_CALCULON_RATE] = {"Calculon, bandwidth", "GB/s", RATE, 1e9, "",
                               "calculon-ai/calculon calculon/network.py"},
    [CONVERT_CALCULON_LATENCY] = {"Calculon, latency", "s", TIME, 1, "",
                                  "calculon-ai/calculon calculon/network.py"},
    [CONVERT_AIC_RATE] = {"aiconfigurator, node bandwidths", "B/s", RATE, 1, "",
                          "ai-dynamo/aiconfigurator systems/*.yaml"},
    [CONVERT_AIC_LATENCY] = {"aiconfigurator, node latencies", "s", TIME, 1, "",
                             "ai-dynamo/aiconfigurator systems/*.yaml"},
    [CONVERT_AIC_MESSAGE] = {"aiconfigurator, message_size", "elements of half", CONVERT_IS_SIZE, 2,
                             "", "ai-dynamo/aiconfigurator collector/network/collect_nccl.py"},
    [CONVERT_AIC_PERF] = {"aiconfigurator, latency", "ms", TIME, 1e-3, "",
                          "ai-dynamo/aiconfigurator collector/network/collect_nccl.py"},
    [CONVERT_SIMGRID_BANDWIDTH] = {"SimGrid, bandwidth", "B/s", RATE, 1, "Bps",
                                   "SimGrid manual, Platform: link (plain numbers are bytes/s)"},
    [CONVERT_SIMGRID_LATENCY] = {"SimGrid, latency", "s", TIME, 1, "s",
                                 "SimGrid manual, Platform: link"},
    [CONVERT_HWLOC_BANDWIDTH] = {"hwloc distances, bandwidth", "MB/s", RATE, 1e6, "",
                                 "hwloc/distances.h, NVLinkBandwidth"},
    [CONVERT_HWLOC_LATENCY] = {"hwloc distances, latency", "ns", TIME, 1e-9, "",
                               "hwloc/memattrs.h, HWLOC_MEMATTR_ID_LATENCY"},
    [CONVERT_SIMAI_BANDWIDTH] = {"SimAI, bandwidth", "Gb/s", RATE, 1e9 * BIT, "Gbps",
                                 "topology text of ns-3's point-to-point helper"},
    [CONVERT_SIMAI_LATENCY] = {"SimAI, latency", "ms", TIME, 1e-3, "ms",
                               "topology text of ns-3's point-to-point helper"},
    [CONVERT_KUBE_BANDWIDTH] = {"scheduler-plugins NetworkTopology, bandwidthCapacity", "Mb/s",
                                RATE, 1e6 * BIT, "M",
                                "Kubernetes resource.Quantity; the unit is the user's: bits/s"},
    [CONVERT_TUNER_BANDWIDTH] = {"NCCL optimize_config, bandwidth_gbps", "GB/s", RATE, 1e9, "",
                                 "NVIDIA/nccl plugins/tuner/example/scripts/README.md"},
    [CONVERT_TUNER_LATENCY] = {"NCCL optimize_config, latency_us", "us", TIME, 1e-6, "",
                               "NVIDIA/nccl plugins/tuner/example/scripts/README.md"},
    [CONVERT_TABLE_RATE] = {"tables, GB/s", "GB/s", RATE, 1e9, "", "units.h"},
    [CONVERT_TABLE_TIME] = {"tables, us", "us", TIME, 1e-6, "", "units.h"},
};

double convert_in(enum convert c, double theirs)
{
    return theirs * conversion[c].factor;
}

double convert_out(enum convert c, double ours)
{
    return ours / conversion[c].factor;
}

char *convert_text(char buf[CONVERT_TEXT], enum convert c, double ours)
{
    const char *format = c == CONVERT_KUBE_BANDWIDTH ? "%.0f%s" : "%.9g%s";

    snprintf(buf, CONVERT_TEXT, format, convert_out(c, ours), conversion[c].suffix);
    return buf;
}
