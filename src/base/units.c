/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ten[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}; /* all exact */
enum { TEN_MAX = sizeof(ten) / sizeof(*ten) - 1, EXACT_DIGITS = 15 };

/* Read digits into *v, counting them from the first non-zero on.  Returns the position behind. */
static const char *take_digits(const char *s, uint64_t *v, int *digits)
{
    const char *from = s;
    uint64_t sum = *v;

    while (*s == '0' && !*digits)
        from = ++s;
    for (unsigned d; (d = (unsigned)*s - '0') < 10; s++)
        sum = sum * 10 + d;
    *digits += (int)(s - from);
    *v = sum;
    return s;
}

/* Fast path for most numbers: 15 digits and powers of ten up to 22 are exact as doubles, so that
 * one product or quotient is rounded once, as in strtod() (Clinger, PLDI 1990).  NULL: other
 * numbers. */
static const char *short_number(double *out, const char *text)
{
    const char *s = text + (*text == '-'), *from;
    uint64_t v = 0, power = 0;
    int digits = 0, scale, unused = 0;

    s = take_digits(s, &v, &digits);
    if (s - text > EXACT_DIGITS + 1 || (*s | 32) == 'x')
        return NULL;
    from = *s == '.' ? ++s : s;
    s = take_digits(s, &v, &digits);
    scale = s - from > TEN_MAX ? -TEN_MAX - 1 : -(int)(s - from);
    if ((*s | 32) == 'e') {
        bool minus = s[1] == '-';
        from = s + 1 + (minus || s[1] == '+');
        s = take_digits(from, &power, &unused);
        if (s == from || s - from > 4)
            return NULL;
        scale += minus ? -(int)power : (int)power;
    }
    if (digits > EXACT_DIGITS || abs(scale) > TEN_MAX)
        return NULL;
    *out = scale < 0 ? (double)v / ten[-scale] : (double)v * ten[scale];
    *out = *text == '-' ? -*out : *out;
    return s;
}

/* Parse a plain decimal number: no hex, inf, nan or leading space.  Returns the end, or NULL. */
static const char *number(double *out, const char *text)
{
    char *end;

    if (!isdigit((unsigned char)text[text[0] == '-' || text[0] == '.']) ||
        (text[0] == '0' && (text[1] | 32) == 'x'))
        return NULL;
    const char *behind = short_number(out, text);
    if (behind)
        return behind;
    errno = 0;
    *out = strtod(text, &end);
    return errno || end == text || !isfinite(*out) ? NULL : end;
}

int units_bytes(size_t *out, const char *text, struct err *err)
{
    static const char prefix[] = "KMGTP";
    double v, unit = 1;
    const char *end = number(&v, text), *p;

    if (!end || v < 0)
        return err_usage(err, "\"%s\" is not a size such as 8, 32K, 1M or 8G", text);
    if (*end && (p = strchr(prefix, toupper((unsigned char)*end)))) {
        unit = ldexp(1, 10 * (int)(p - prefix + 1));
        end++;
        if (*end == 'i')
            end++;
    }
    if (*end == 'B' || *end == 'b')
        end++;
    if (*end || v * unit != floor(v * unit))
        return err_usage(err, "\"%s\" is not a size such as 8, 32K, 1M or 8G", text);
    if (v * unit > 0x1p50)
        return err_usage(err, "size %s is larger than 1 PiB", text);
    *out = (size_t)(v * unit);
    return 0;
}

int units_int(int *out, const char *text, int min, int max, struct err *err)
{
    uint64_t few = 0;
    int digits = 0;
    const bool minus = *text == '-';
    const char *s = take_digits(text + minus, &few, &digits);
    int whole = minus ? -(int)few : (int)few;
    char *end;

    if (!*s && s != text + minus && s - text < 10 && whole >= min && whole <= max) {
        *out = whole;
        return 0;
    }
    errno = 0;
    long v = strtol(text, &end, 10);

    if (end == text || *end || isspace((unsigned char)text[0]) || text[0] == '+')
        return err_usage(err, "\"%s\" is not a whole number", text);
    if (errno || v < min || v > max)
        return err_usage(err, "%s is outside %d..%d", text, min, max);
    *out = (int)v;
    return 0;
}

int units_u64(uint64_t *out, const char *text, struct err *err)
{
    char *end;

    errno = 0;
    if (!isdigit((unsigned char)text[0]))
        return err_usage(err, "\"%s\" is not a whole number", text);
    *out = strtoull(text, &end, 10);
    if (*end || errno)
        return err_usage(err, "\"%s\" is not a whole number below 2^64", text);
    return 0;
}

int units_double(double *out, const char *text, double min, double max, struct err *err)
{
    double v;
    const char *end = number(&v, text);

    if (!end || *end)
        return err_usage(err, "\"%s\" is not a number", text);
    if (v < min || v > max)
        return err_usage(err, "%s is outside %g..%g", text, min, max);
    *out = v;
    return 0;
}

int units_share(double *out, const char *text, struct err *err)
{
    double v;
    const char *end = number(&v, text);

    if (end && *end == '%') {
        v /= 100;
        end++;
    }
    if (!end || *end || v < 0 || v > 1)
        return err_usage(err, "\"%s\" is not a share such as 3%% or 0.03", text);
    *out = v;
    return 0;
}

int units_seconds(double *out, const char *text, struct err *err)
{
    static const struct {
        const char *name;
        double sec;
    } unit[] = {{"", 1},      {"s", 1},  {"ns", 1e-9}, {"us", 1e-6},
                {"ms", 1e-3}, {"m", 60}, {"h", 3600},  {"d", 86400}};
    double v;
    const char *end = number(&v, text);

    for (size_t i = 0; end && v >= 0 && i < sizeof(unit) / sizeof(*unit); i++)
        if (!strcmp(end, unit[i].name)) {
            *out = v * unit[i].sec;
            return 0;
        }
    return err_usage(err, "\"%s\" is not a duration such as 50us, 2ms, 1.5s or 10m", text);
}

int units_rate(double *out, const char *text, struct err *err)
{
    static const char prefix[] = "kMGT";
    double v, unit = 1;
    const char *end = number(&v, text), *p;

    if (end && *end && (p = strchr(prefix, *end))) {
        unit = pow(1000, (double)(p - prefix + 1));
        end++;
    }
    if (!end || v < 0 || (strcmp(end, "B/s") && strcmp(end, "b/s")))
        return err_usage(err, "\"%s\" is not a rate such as 45GB/s (bytes) or 360Gb/s (bits)",
                         text);
    *out = v * unit / (*end == 'b' ? 8 : 1);
    return 0;
}

/* Write digits[0..n) times 10^(power - n + 1) in the style of %e or %f. */
static size_t write_digits(char *to, const char *digit, int n, int power, bool scientific)
{
    char *at = to;

    if (!scientific && power < 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = power + 1; i < 0; i++)
            *at++ = '0';
    }
    for (int i = 0; i < n || (!scientific && i <= power); i++) {
        if (i == (scientific ? 1 : power + 1) && i > 0)
            *at++ = '.';
        *at++ = i < n ? digit[i] : '0';
    }
    if (scientific) {
        *at++ = 'e';
        *at++ = power < 0 ? '-' : '+';
        *at++ = (char)('0' + abs(power) / 10);
        *at++ = (char)('0' + abs(power) % 10);
    }
    *at = '\0';
    return (size_t)(at - to);
}

size_t units_whole(char to[UNITS_TEXT], uint64_t v)
{
    static const char two[] = "00010203040506070809101112131415161718192021222324252627282930313233"
                              "34353637383940414243444546474849505152535455565758596061626364656667"
                              "6869707172737475767778798081828384858687888990919293949596979899";
    char digit[UNITS_TEXT], *at = digit + sizeof(digit);

    for (; v >= 100; v /= 100)
        memcpy(at -= 2, &two[v % 100 * 2], 2);
    memcpy(at -= 2, &two[v * 2], 2);
    at += v < 10;
    size_t len = (size_t)(digit + sizeof(digit) - at);
    memcpy(to, at, len);
    return len;
}

/* Round with snprintf(), for values so near the midpoint between two results that a product of
 * doubles cannot decide, and for very large or small numbers. */
static uint32_t digits_of_text(double v, int digits, int *power)
{
    char text[UNITS_TEXT];
    uint64_t whole = 0;
    int unused = 0;

    snprintf(text, sizeof(text), "%.*e", digits - 1, v);
    const char *s = take_digits(text, &whole, &unused);
    if (*s == '.')
        s = take_digits(s + 1, &whole, &unused);
    *power = (int)strtol(s + 1, NULL, 10) - digits + 1;
    return (uint32_t)whole;
}

/* Product in doubles: its error is below 1e-6 of the last digit. */
uint32_t units_digits(double v, int digits, int *power)
{
    uint64_t bits;

    if (!(v >= 1e-12 && v < 1e12))
        return digits_of_text(v, digits, power);
    memcpy(&bits, &v, sizeof(bits));
    /* Power of ten from that of two; 1233 / 4096 is nearly log10(2). */
    int at = (((int)(bits >> 52) - 1023) * 1233) >> 12;
    double q = v;
    for (int i = 0; i < 2; i++) { /* the power is `at` or at + 1 */
        int scale = digits - 1 - at;
        q = scale < 0 ? v / ten[-scale] : v * ten[scale];
        if (q < ten[digits])
            break;
        at++;
    }
    uint32_t whole = (uint32_t)q; /* at most 9 digits */
    double rest = q - (double)whole;
    if (fabs(rest - 0.5) < 1e-4)
        return digits_of_text(v, digits, power);
    whole += rest > 0.5;
    if ((double)whole >= ten[digits]) {
        whole /= 10;
        at++;
    }
    *power = at - digits + 1;
    return whole;
}

double units_of_digits(uint32_t whole, int power)
{
    if (abs(power) > TEN_MAX)
        return whole * pow(10, power);
    return power < 0 ? whole / ten[-power] : whole * ten[power];
}

size_t units_print(char to[UNITS_TEXT], double v, int digits)
{
    char digit[16];
    int power, n = digits;

    if (v == 0 && !signbit(v))
        return write_digits(to, "0", 1, 0, false);
    if (isnan(v) && !signbit(v)) /* unknown values, in every row of a simulation */
        return (size_t)(stpcpy(to, "nan") - to);
    if (!(v >= 1e-12 && v < 1e12) || digits > 9)
        return (size_t)snprintf(to, UNITS_TEXT, "%.*g", digits, v);
    uint32_t whole = units_digits(v, digits, &power);
    power += digits - 1; /* power of the first digit */
    for (int i = digits - 1; i >= 0; i--, whole /= 10)
        digit[i] = (char)('0' + whole % 10);
    while (n > 1 && digit[n - 1] == '0')
        n--;
    return write_digits(to, digit, n, power, power < -4 || power >= digits);
}

/* Three significant digits with the fitting unit, in steps of 1000 or 1024. */
static char *scaled(char buf[UNITS_TEXT], double v, double base, const char *const *unit, int n)
{
    int i = 0;

    while (i + 1 < n && fabs(v) >= base * 0.99995) {
        v /= base;
        i++;
    }
    int digits = fabs(v) >= 99.95 ? 0 : fabs(v) >= 9.995 ? 1 : 2;
    if (v == floor(v) && base > 1000)
        digits = 0;
    snprintf(buf, UNITS_TEXT, "%.*f %s", digits, v, unit[i]);
    return buf;
}

char *units_bytes_text(char buf[UNITS_TEXT], double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

    return scaled(buf, bytes, 1024, unit, 6);
}

char *units_seconds_text(char buf[UNITS_TEXT], double seconds)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    unsigned whole = (unsigned)lround(fmin(fmax(seconds, 0), 1e9));

    if (whole >= 3600)
        snprintf(buf, UNITS_TEXT, "%u h %02u m", whole / 3600, whole % 3600 / 60);
    else if (seconds >= 99.95)
        snprintf(buf, UNITS_TEXT, "%u m %02u s", whole / 60, whole % 60);
    else
        scaled(buf, seconds * 1e9, 1000, unit, 4);
    return buf;
}

char *units_rate_text(char buf[UNITS_TEXT], double Bps)
{
    static const char *const unit[] = {"B/s", "kB/s", "MB/s", "GB/s"};

    return scaled(buf, Bps, 1000, unit, 4);
}

char *units_count_text(char buf[UNITS_TEXT], double n, int digits)
{
    double unit = digits && n > 0 ? pow(10, floor(log10(n)) + 1 - digits) : 1;

    if (unit < 1) {
        snprintf(buf, UNITS_TEXT, "%.*f", (int)lround(-log10(unit)), n);
        return buf;
    }
    int at = snprintf(buf, UNITS_TEXT, "%.0f", unit * round(n / unit));
    for (at -= 3; at > 0 && buf[at - 1] != '-' && strlen(buf) + 1 < UNITS_TEXT; at -= 3) {
        memmove(buf + at + 1, buf + at, strlen(buf + at) + 1);
        buf[at] = ',';
    }
    return buf;
}

const char *units_plural(long long n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

const char *units_s(long long n)
{
    return units_plural(n, "", "s");
}

enum { TAIL = 40 }; /* room for one more range and the count */

char *units_ranks_text(char *to, size_t size, const bool *set, int n)
{
    int count = 0, i = 0;
    const char *comma = "";

    for (int k = 0; k < n; k++)
        count += set[k];
    size_t len = (size_t)snprintf(to, size, count == 1 ? "rank " : "ranks ");
    for (; i < n && len + TAIL < size; i++) {
        int last = i;
        if (!set[i])
            continue;
        while (last + 1 < n && set[last + 1])
            last++;
        len += (size_t)snprintf(to + len, size - len, "%s%d", comma, i);
        if (last > i)
            len += (size_t)snprintf(to + len, size - len, last == i + 1 ? ", %d" : "-%d", last);
        comma = ", ";
        i = last;
    }
    while (i < n && !set[i])
        i++;
    if (i < n && len < size)
        snprintf(to + len, size - len, " ... (%d in all)", count);
    return to;
}

/* --- the units of other programs --- */

#define BIT 0.125 /* in bytes */

#define RATE FOREIGN_IS_RATE
#define TIME FOREIGN_IS_TIME

const struct foreign_unit foreign_unit[FOREIGN_COUNT] = {
    [FOREIGN_NCCL_SPEED] = {"NCCL topology XML, net speed", "Mb/s", RATE, 1e6 * BIT, "",
                            "NVIDIA/nccl src/graph/topo.cc (speed / 8000 is GB/s)"},
    [FOREIGN_NCCL_C2C] = {"NCCL topology XML, c2c bw", "MB/s", RATE, 1e6, "",
                          "NVIDIA/nccl src/graph/topo.cc (bw * count / 1000 is GB/s)"},
    [FOREIGN_NCCL_GRAPH] = {"NCCL log, graphs", "GB/s", RATE, 1e9, "",
                            "NVIDIA/nccl src/graph/search.cc"},
    [FOREIGN_SYSFS_IB] = {"sysfs, InfiniBand rate", "Gb/s", RATE, 1e9 * BIT, " Gb/sec",
                          "Linux drivers/infiniband/core/sysfs.c"},
    [FOREIGN_IB_LANE] = {"InfiniBand, data of a lane", "Gb/s", RATE, 1e9 * BIT, "",
                         "roadmap of the InfiniBand Trade Association"},
    [FOREIGN_SYSFS_NET] = {"sysfs, Ethernet speed", "Mb/s", RATE, 1e6 * BIT, "",
                           "Linux Documentation/ABI/testing/sysfs-class-net"},
    [FOREIGN_NVML_LINK] = {"NVML, NVLink speed", "MB/s", RATE, 1e6, "",
                           "nvml.h, NVML_FI_DEV_NVLINK_SPEED_MBPS_*"},
    [FOREIGN_ASTRA_BANDWIDTH] = {"ASTRA-sim, bandwidth", "GB/s of 2^30 bytes", RATE, 0x1p30, "",
                                 "astra-network-analytical common/NetworkFunction.cpp"},
    [FOREIGN_ASTRA_LATENCY] = {"ASTRA-sim, latency", "ns", TIME, 1e-9, "",
                               "astra-network-analytical common/Type.h"},
    [FOREIGN_CALCULON_RATE] = {"Calculon, bandwidth", "GB/s", RATE, 1e9, "",
                               "calculon-ai/calculon calculon/network.py"},
    [FOREIGN_CALCULON_LATENCY] = {"Calculon, latency", "s", TIME, 1, "",
                                  "calculon-ai/calculon calculon/network.py"},
    [FOREIGN_AIC_RATE] = {"aiconfigurator, node bandwidths", "B/s", RATE, 1, "",
                          "ai-dynamo/aiconfigurator systems/*.yaml"},
    [FOREIGN_AIC_LATENCY] = {"aiconfigurator, node latencies", "s", TIME, 1, "",
                             "ai-dynamo/aiconfigurator systems/*.yaml"},
    [FOREIGN_AIC_MESSAGE] = {"aiconfigurator, message_size", "elements of half", FOREIGN_IS_SIZE, 2,
                             "", "ai-dynamo/aiconfigurator collector/network/collect_nccl.py"},
    [FOREIGN_AIC_PERF] = {"aiconfigurator, latency", "ms", TIME, 1e-3, "",
                          "ai-dynamo/aiconfigurator collector/network/collect_nccl.py"},
    [FOREIGN_SIMGRID_BANDWIDTH] = {"SimGrid, bandwidth", "B/s", RATE, 1, "Bps",
                                   "SimGrid manual, Platform: link (plain numbers are bytes/s)"},
    [FOREIGN_SIMGRID_LATENCY] = {"SimGrid, latency", "s", TIME, 1, "s",
                                 "SimGrid manual, Platform: link"},
    [FOREIGN_HWLOC_BANDWIDTH] = {"hwloc distances, bandwidth", "MB/s", RATE, 1e6, "",
                                 "hwloc/distances.h, NVLinkBandwidth"},
    [FOREIGN_HWLOC_LATENCY] = {"hwloc distances, latency", "ns", TIME, 1e-9, "",
                               "hwloc/memattrs.h, HWLOC_MEMATTR_ID_LATENCY"},
    [FOREIGN_SIMAI_BANDWIDTH] = {"SimAI, bandwidth", "Gb/s", RATE, 1e9 * BIT, "Gbps",
                                 "topology text of ns-3's point-to-point helper"},
    [FOREIGN_SIMAI_LATENCY] = {"SimAI, latency", "ms", TIME, 1e-3, "ms",
                               "topology text of ns-3's point-to-point helper"},
    [FOREIGN_KUBE_BANDWIDTH] = {"scheduler-plugins NetworkTopology, bandwidthCapacity", "Mb/s",
                                RATE, 1e6 * BIT, "M",
                                "Kubernetes resource.Quantity; the unit is the user's: bits/s"},
    [FOREIGN_TUNER_BANDWIDTH] = {"NCCL optimize_config, bandwidth_gbps", "GB/s", RATE, 1e9, "",
                                 "NVIDIA/nccl plugins/tuner/example/scripts/README.md"},
    [FOREIGN_TUNER_LATENCY] = {"NCCL optimize_config, latency_us", "us", TIME, 1e-6, "",
                               "NVIDIA/nccl plugins/tuner/example/scripts/README.md"},
    [FOREIGN_TABLE_RATE] = {"tables, GB/s", "GB/s", RATE, 1e9, "", "units.h"},
    [FOREIGN_TABLE_TIME] = {"tables, us", "us", TIME, 1e-6, "", "units.h"},
};

double units_in(enum foreign c, double theirs)
{
    return theirs * foreign_unit[c].factor;
}

double units_out(enum foreign c, double ours)
{
    return ours / foreign_unit[c].factor;
}

char *units_foreign_text(char buf[FOREIGN_TEXT], enum foreign c, double ours)
{
    const char *format = c == FOREIGN_KUBE_BANDWIDTH ? "%.0f%s" : "%.9g%s";

    snprintf(buf, FOREIGN_TEXT, format, units_out(c, ours), foreign_unit[c].suffix);
    return buf;
}
