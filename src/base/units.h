/* units.h - conversion between text and numbers; the only place that defines K = 1024 and G = 1e9.
 *
 * Sizes are binary (32K = 32768, as in nccl-tests), rates are decimal (GB/s = 1e9 B/s).  Parsing
 * is strict: the whole text must match, and errors quote it (EXIT_USAGE). */
#ifndef RG_UNITS_H
#define RG_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

int units_bytes(size_t *out, const char *text,
                struct err *err); /* "8", "32K", "1M", "8G", "1MiB" */
int units_int(int *out, const char *text, int min, int max, struct err *err);
int units_u64(uint64_t *out, const char *text, struct err *err);
int units_double(double *out, const char *text, double min, double max, struct err *err);
int units_share(double *out, const char *text, struct err *err); /* "3%" or "0.03", 0..1 */
int units_seconds(double *out, const char *text,
                  struct err *err); /* "50us", "2ms", "1.5", "10m", "2h", "3d" */
int units_rate(double *out, const char *text,
               struct err *err); /* "45GB/s", "360Gb/s"; the unit is required */

enum { UNITS_TEXT = 24 }; /* size of the text buffers below */
/* Write a whole number without a final NUL; returns the length. */
size_t units_whole(char to[UNITS_TEXT], uint64_t v);
/* Write v like "%.*g"; several times faster for up to 9 digits.  Returns the length. */
size_t units_print(char to[UNITS_TEXT], double v, int digits);
/* units_digits(): v > 0 rounded as by "%.*e" to a whole number of this many digits (at most 9),
 * and the power of ten of its last digit.  units_of_digits(): the double nearest to such a
 * number. */
uint32_t units_digits(double v, int digits, int *power);
double units_of_digits(uint32_t whole, int power);
char *units_bytes_text(char buf[UNITS_TEXT], double bytes); /* "256 KiB", "1.5 GiB" */
char *units_seconds_text(char buf[UNITS_TEXT],
                         double seconds);                /* "2.10 us", "13.3 s", "1 h 02 m" */
char *units_rate_text(char buf[UNITS_TEXT], double Bps); /* "49.2 GB/s", "119 MB/s" */
/* "16,600", "7,890", "0.523": rounded to this many significant digits (0: to a whole number), never
 * with an exponent. */
char *units_count_text(char buf[UNITS_TEXT], double n, int digits);
/* "7.5 %", "62 %", "99.6 %", "100 %": two digits, three from 99.5 % on, so that no exponent appears. */
static inline char *units_share_text(char buf[UNITS_TEXT], double share)
{
    snprintf(buf, UNITS_TEXT, "%.*g %%", share < 0.995 ? 2 : 3, 100 * share);
    return buf;
}

/* Plural ending of a counted word, "1 host", "2 hosts": "" for 1, else "s"; units_plural() chooses
 * between two words. */
const char *units_s(long long n);
const char *units_plural(long long n, const char *one, const char *many);

/* "rank 3", "ranks 0, 4-7", with " ... (90 in all)" at the end if longer than size; n entries of
 * set.  Returns `to`. */
char *units_ranks_text(char *to, size_t size, const bool *set, int n);

/* --- units of other programs: one table, so that no factor is written by hand ---
 *
 * Internally everything is bytes, seconds, bytes/s and FLOP/s.  A row gives the value of a foreign
 * unit in ours, and the place where that is documented.  Names can mislead: "GB/s" of ASTRA-sim is
 * 2^30 bytes/s, "speed" of NCCL is in megabits. */

enum foreign {
    FOREIGN_NCCL_SPEED,        /* <net speed>, Mb/s */
    FOREIGN_NCCL_C2C,          /* <c2c bw>, MB/s of one link */
    FOREIGN_NCCL_GRAPH,        /* bandwidth of a graph in NCCL's log, GB/s */
    FOREIGN_SYSFS_IB,          /* "400 Gb/sec (4X NDR)" */
    FOREIGN_IB_LANE,           /* data rate of a lane, Gb/s: 100 for NDR */
    FOREIGN_SYSFS_NET,         /* /sys/class/net/NAME/speed, Mb/s */
    FOREIGN_NVML_LINK,         /* NVLink speed fields, MB/s */
    FOREIGN_ASTRA_BANDWIDTH,   /* "GB/s" of 2^30 bytes */
    FOREIGN_ASTRA_LATENCY,     /* ns of one link */
    FOREIGN_CALCULON_RATE,     /* GB/s */
    FOREIGN_CALCULON_LATENCY,  /* s */
    FOREIGN_AIC_RATE,          /* aiconfigurator, aisimulate: bytes/s */
    FOREIGN_AIC_LATENCY,       /* node section: s */
    FOREIGN_AIC_MESSAGE,       /* nccl_perf: elements of half */
    FOREIGN_AIC_PERF,          /* nccl_perf: ms */
    FOREIGN_SIMGRID_BANDWIDTH, /* text: "Bps" */
    FOREIGN_SIMGRID_LATENCY,   /* text: "s" */
    FOREIGN_HWLOC_BANDWIDTH,   /* MB/s */
    FOREIGN_HWLOC_LATENCY,     /* ns */
    FOREIGN_SIMAI_BANDWIDTH,   /* text: "Gbps" */
    FOREIGN_SIMAI_LATENCY,     /* text: "ms" */
    FOREIGN_KUBE_BANDWIDTH,    /* text: quantity of bits/s, "M" = 10^6 (not "Mi") */
    FOREIGN_TUNER_BANDWIDTH,   /* optimize_config.py: "gbps" that are GB/s */
    FOREIGN_TUNER_LATENCY,     /* us */
    FOREIGN_TABLE_RATE,        /* our tables: GB/s */
    FOREIGN_TABLE_TIME,        /* our tables: us */
    FOREIGN_COUNT
};

enum foreign_kind { FOREIGN_IS_RATE, FOREIGN_IS_TIME, FOREIGN_IS_SIZE };

struct foreign_unit {
    const char *program, *unit; /* "NCCL topology XML, speed", "Mb/s" */
    enum foreign_kind kind;
    double factor;       /* one foreign unit in bytes/s, s or bytes */
    const char *suffix;  /* unit written after the number; "" in other formats */
    const char *written; /* place where the unit is documented */
};
extern const struct foreign_unit foreign_unit[FOREIGN_COUNT];

double units_in(enum foreign c, double theirs); /* result in bytes/s, s or bytes */
double units_out(enum foreign c, double ours);
/* Nine significant digits and the suffix: "4.92e+10Bps"; for Kubernetes whole numbers. */
enum { FOREIGN_TEXT = 32 };
char *units_foreign_text(char buf[FOREIGN_TEXT], enum foreign c, double ours);

#endif
