/* convert.h - the units of other programs: one table, so that no factor is written by hand.
 *
 * Inside everything is bytes, seconds, bytes/s and FLOP/s.  A row says what one of their units is
 * in ours, and where that is written.  What the names say is not always what the programs do:
 * "GB/s" of ASTRA-sim is 2^30 bytes/s, "speed" of NCCL is megabits. */
#ifndef RG_CONVERT_H
#define RG_CONVERT_H

#include <stddef.h>

enum convert {
    CONVERT_NCCL_SPEED,        /* <net speed>, Mb/s */
    CONVERT_NCCL_C2C,          /* <c2c bw>, MB/s of one link */
    CONVERT_NCCL_GRAPH,        /* bandwidth of a graph in NCCL's log, GB/s */
    CONVERT_SYSFS_IB,          /* "400 Gb/sec (4X NDR)" */
    CONVERT_IB_LANE,           /* data rate of a lane, Gb/s: 100 for NDR */
    CONVERT_SYSFS_NET,         /* /sys/class/net/NAME/speed, Mb/s */
    CONVERT_NVML_LINK,         /* NVLink speed fields, MB/s */
    CONVERT_ASTRA_BANDWIDTH,   /* "GB/s" of 2^30 bytes */
    CONVERT_ASTRA_LATENCY,     /* ns of one link */
    CONVERT_CALCULON_RATE,     /* GB/s */
    CONVERT_CALCULON_LATENCY,  /* s */
    CONVERT_AIC_RATE,          /* aiconfigurator, aisimulate: bytes/s */
    CONVERT_AIC_LATENCY,       /* node section: s */
    CONVERT_AIC_MESSAGE,       /* nccl_perf: elements of half */
    CONVERT_AIC_PERF,          /* nccl_perf: ms */
    CONVERT_SIMGRID_BANDWIDTH, /* text: "Bps" */
    CONVERT_SIMGRID_LATENCY,   /* text: "s" */
    CONVERT_HWLOC_BANDWIDTH,   /* MB/s */
    CONVERT_HWLOC_LATENCY,     /* ns */
    CONVERT_SIMAI_BANDWIDTH,   /* text: "Gbps" */
    CONVERT_SIMAI_LATENCY,     /* text: "ms" */
    CONVERT_KUBE_BANDWIDTH,    /* text: quantity of bits/s, "M" = 10^6 (not "Mi") */
    CONVERT_TUNER_BANDWIDTH,   /* optimize_config.py: "gbps" that are GB/s */
    CONVERT_TUNER_LATENCY,     /* us */
    CONVERT_TABLE_RATE,        /* our tables: GB/s */
    CONVERT_TABLE_TIME,        /* our tables: us */
    CONVERT_COUNT
};

enum convert_kind { CONVERT_IS_RATE, CONVERT_IS_TIME, CONVERT_IS_SIZE };

struct conversion {
    const char *program, *unit; /* "NCCL topology XML, speed", "Mb/s" */
    enum convert_kind kind;
    double factor;       /* one of theirs in bytes/s, s or bytes */
    const char *suffix;  /* of formats that write the unit behind the number; "" elsewhere */
    const char *written; /* where the unit is written down */
};
extern const struct conversion conversion[CONVERT_COUNT];

double convert_in(enum convert c, double theirs); /* to bytes/s, s or bytes */
double convert_out(enum convert c, double ours);
/* Nine significant digits and the suffix: "4.92e+10Bps"; quantities of Kubernetes are whole. */
enum { CONVERT_TEXT = 32 };
char *convert_text(char buf[CONVERT_TEXT], enum convert c, double ours);

#endif
