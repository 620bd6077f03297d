/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plain decimal number: no hex, no inf, no nan, no leading space.  Returns the end, or NULL. */
static const char *number(double *out, const char *text)
{
    char *end;

    if (!isdigit((unsigned char)text[text[0] == '-' || text[0] == '.']) ||
        (text[0] == '0' && (text[1] | 32) == 'x'))
        return NULL;
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
    char *end;
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
                {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    double v;
    const char *end = number(&v, text);

    for (size_t i = 0; end && v >= 0 && i < sizeof(unit) / sizeof(*unit); i++)
        if (!strcmp(end, unit[i].name)) {
            *out = v * unit[i].sec;
            return 0;
        }
    return err_usage(err, "\"%s\" is not a duration such as 50us, 2ms, 1.5s or 10m", text);
}

/* Three significant digits, with the unit of the thousand (or 1024) that fits. */
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

const char *units_plural(long long n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

const char *units_s(long long n)
{
    return units_plural(n, "", "s");
}
