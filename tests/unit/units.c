/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"
#include "test.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

TEST(sizes_are_binary_and_whole)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"0", 0},
                {"8", 8},
                {"32K", 32768},
                {"1M", 1 << 20},
                {"8G", (size_t)8 << 30},
                {"1MiB", 1 << 20},
                {"4kB", 4096},
                {"1.5K", 1536},
                {"1P", (size_t)1 << 50}};

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        size_t got = 1;
        struct err e;
        assert_int_equal(units_bytes(&got, good[i].text, &e), 0);
        assert_int_equal(got, good[i].bytes);
    }
}

/* Each parser over its bad texts: the message holds the text and the class is usage. */
#define REFUSES(call, message)                                                                     \
    do {                                                                                           \
        struct err e = {0};                                                                        \
        assert_int_equal((call), -1);                                                              \
        assert_string_equal(e.text, message);                                                      \
        assert_int_equal(e.code, EXIT_USAGE);                                                      \
    } while (0)

TEST(what_is_not_a_size_is_refused_with_its_text)
{
    static const char *const bad[] = {"",    " 8",  "8 ",  "-8",  "K",   "8X", "0x10", "1e",
                                      "nan", "inf", "0.5", "8KK", "8iB", "+8", "1.3K", "8K8"};
    size_t v = 7;
    char text[80];

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err e = {0};
        snprintf(text, sizeof(text), "\"%s\" is not a size such as 8, 32K, 1M or 8G", bad[i]);
        if (units_bytes(&v, bad[i], &e) == 0)
            fail_msg("\"%s\" was taken for %zu", bad[i], v);
        assert_string_equal(e.text, text);
    }
    REFUSES(units_bytes(&v, "2P", &e), "size 2P is larger than 1 PiB");
    assert_int_equal(v, 7);
}

TEST(whole_numbers_have_bounds_and_nothing_around_them)
{
    int v = 5;
    uint64_t u;

    assert_int_equal(units_int(&v, "-3", -5, 5, NULL), 0);
    assert_int_equal(v, -3);
    REFUSES(units_int(&v, "9", 0, 8, &e), "9 is outside 0..8");
    REFUSES(units_int(&v, "99999999999999999999", 0, 8, &e),
            "99999999999999999999 is outside 0..8");
    REFUSES(units_int(&v, "3x", 0, 8, &e), "\"3x\" is not a whole number");
    REFUSES(units_int(&v, " 3", 0, 8, &e), "\" 3\" is not a whole number");
    REFUSES(units_int(&v, "+3", 0, 8, &e), "\"+3\" is not a whole number");
    REFUSES(units_int(&v, "", 0, 8, &e), "\"\" is not a whole number");
    assert_int_equal(v, -3);
    assert_int_equal(units_u64(&u, "18446744073709551615", NULL), 0);
    assert_true(u == UINT64_MAX);
    REFUSES(units_u64(&u, "18446744073709551616", &e),
            "\"18446744073709551616\" is not a whole number below 2^64");
    REFUSES(units_u64(&u, "-1", &e), "\"-1\" is not a whole number");
}

TEST(numbers_are_decimal_finite_and_bounded)
{
    double v = 0;

    assert_int_equal(units_double(&v, "-2.5e1", -30, 30, NULL), 0);
    assert_true(v == -25);
    assert_int_equal(units_double(&v, ".5", 0, 1, NULL), 0);
    REFUSES(units_double(&v, "2", 0, 1, &e), "2 is outside 0..1");
    REFUSES(units_double(&v, "1e400", 0, 1, &e), "\"1e400\" is not a number");
    REFUSES(units_double(&v, "nan", 0, 1, &e), "\"nan\" is not a number");
    REFUSES(units_double(&v, "0x1", 0, 1, &e), "\"0x1\" is not a number");
    REFUSES(units_double(&v, "1,5", 0, 2, &e), "\"1,5\" is not a number");
}

TEST(shares_and_durations_know_their_units)
{
    double v;

    assert_int_equal(units_share(&v, "3%", NULL), 0);
    assert_float_equal(v, 0.03, 1e-12);
    assert_int_equal(units_share(&v, "0.03", NULL), 0);
    assert_float_equal(v, 0.03, 1e-12);
    REFUSES(units_share(&v, "3", &e), "\"3\" is not a share such as 3% or 0.03");
    REFUSES(units_share(&v, "101%", &e), "\"101%\" is not a share such as 3% or 0.03");
    assert_int_equal(units_seconds(&v, "50us", NULL), 0);
    assert_float_equal(v, 50e-6, 1e-12);
    assert_int_equal(units_seconds(&v, "10m", NULL), 0);
    assert_float_equal(v, 600, 1e-9);
    assert_int_equal(units_seconds(&v, "3d", NULL), 0);
    assert_float_equal(v, 259200, 1e-9);
    assert_int_equal(units_seconds(&v, "1.5", NULL), 0);
    assert_float_equal(v, 1.5, 1e-9);
    REFUSES(units_seconds(&v, "5 s", &e),
            "\"5 s\" is not a duration such as 50us, 2ms, 1.5s or 10m");
    REFUSES(units_seconds(&v, "-1s", &e),
            "\"-1s\" is not a duration such as 50us, 2ms, 1.5s or 10m");
}

TEST(rates_are_bytes_or_bits_and_say_which)
{
    double v;

    assert_int_equal(units_rate(&v, "45GB/s", NULL), 0);
    assert_float_equal(v, 45e9, 1);
    assert_int_equal(units_rate(&v, "360Gb/s", NULL), 0);
    assert_float_equal(v, 45e9, 1);
    assert_int_equal(units_rate(&v, "100B/s", NULL), 0);
    assert_float_equal(v, 100, 1e-9);
    REFUSES(units_rate(&v, "45", &e),
            "\"45\" is not a rate such as 45GB/s (bytes) or 360Gb/s (bits)");
    REFUSES(units_rate(&v, "-1GB/s", &e),
            "\"-1GB/s\" is not a rate such as 45GB/s (bytes) or 360Gb/s (bits)");
    REFUSES(units_rate(&v, "45GiB/s", &e),
            "\"45GiB/s\" is not a rate such as 45GB/s (bytes) or 360Gb/s (bits)");
}

TEST(texts_have_three_digits_and_the_unit_that_fits)
{
    char b[UNITS_TEXT];

    assert_string_equal(units_bytes_text(b, 8), "8 B");
    assert_string_equal(units_bytes_text(b, 262144), "256 KiB");
    assert_string_equal(units_bytes_text(b, 1.5 * (1 << 30)), "1.50 GiB");
    assert_string_equal(units_seconds_text(b, 2.1e-6), "2.10 us");
    assert_string_equal(units_count_text(b, 16614.2, 3), "16,600");
    assert_string_equal(units_count_text(b, 99950, 3), "100,000");
    assert_string_equal(units_count_text(b, 999.6, 3), "1,000");
    assert_string_equal(units_count_text(b, 0.5234, 3), "0.523");
    assert_string_equal(units_count_text(b, 999, 0), "999");
    assert_string_equal(units_count_text(b, 1234567, 0), "1,234,567");
    assert_string_equal(units_count_text(b, -1000, 0), "-1,000");
    assert_string_equal(units_count_text(b, 0, 3), "0");
    assert_string_equal(units_seconds_text(b, 13.3), "13.3 s");
    assert_string_equal(units_seconds_text(b, 125), "2 m 05 s");
    assert_string_equal(units_seconds_text(b, 3720), "1 h 02 m");
    assert_string_equal(units_rate_text(b, 49.2e9), "49.2 GB/s");
    assert_string_equal(units_rate_text(b, 119e6), "119 MB/s");
    assert_string_equal(units_rate_text(b, 7.2e12), "7200 GB/s");
}

/* Any bits, times as they are measured, and numbers with few digits. */
static double any_double(struct rng *r, int kind)
{
    unsigned long long bits = rng_u64(r);
    double v;

    if (kind == 0) {
        memcpy(&v, &bits, sizeof(v));
        return isfinite(v) ? v : 0;
    }
    v = exp(rng_normal(r) * 5 - 9);
    if (kind == 1)
        return v;
    char text[64];
    snprintf(text, sizeof(text), "%.*e", (int)rng_below(r, 9), v);
    return strtod(text, NULL);
}

TEST(numbers_are_written_as_printf_writes_them)
{
    struct rng r;
    char got[UNITS_TEXT], want[64];

    rng_seed(&r, 20);
    for (int i = 0; i < 600000; i++) {
        int digits = 1 + (int)rng_below(&r, 9);
        double v = any_double(&r, i % 3);
        snprintf(want, sizeof(want), "%.*g", digits, v);
        size_t n = units_print(got, v, digits);
        if (strcmp(got, want) != 0 || n != strlen(want))
            fail_msg("%.17g with %d digits is \"%s\", not \"%s\"", v, digits, got, want);
    }
    static const double edge[] = {0,         -0.0,     1,   9.9999995, 9.99999949, 0.00009999999,
                                  0.0001,    1e15,     0.5, 1234567.5, 12345675,   1e-5,
                                  9999999.5, INFINITY, 2.5, 1e-12,     NAN,        -NAN};
    for (size_t i = 0; i < sizeof(edge) / sizeof(*edge); i++)
        for (int digits = 1; digits <= 9; digits++) {
            snprintf(want, sizeof(want), "%.*g", digits, edge[i]);
            units_print(got, edge[i], digits);
            assert_string_equal(got, want);
        }
}

TEST(whole_numbers_are_those_that_printf_writes)
{
    struct rng r;
    char got[UNITS_TEXT], want[64];

    rng_seed(&r, 21);
    for (int i = 0; i < 100000; i++) {
        uint64_t v = i < 1100 ? (uint64_t)i : i == 1100 ? UINT64_MAX : rng_u64(&r) >> i % 64;
        snprintf(want, sizeof(want), "%" PRIu64, v);
        size_t n = units_whole(got, v);
        if (n != strlen(want) || memcmp(got, want, n) != 0)
            fail_msg("%s is \"%.*s\"", want, (int)n, got);
    }
}

TEST(digits_are_those_that_printf_writes)
{
    struct rng r;
    char got[64], want[64];

    rng_seed(&r, 21);
    for (int i = 0; i < 300000; i++) {
        int digits = 1 + (int)rng_below(&r, 9), power;
        double v = fabs(any_double(&r, i % 3));
        if (!(v > 0) || v < 1e-250 || v > 1e250)
            continue;
        uint32_t whole = units_digits(v, digits, &power);
        snprintf(want, sizeof(want), "%.*e", digits - 1, v);
        snprintf(got, sizeof(got), "%" PRIu32 "e%d", whole, power);
        if (strtod(got, NULL) != strtod(want, NULL))
            fail_msg("%.17g with %d digits is %s, not %s", v, digits, got, want);
        if (abs(power) <= 22 && units_of_digits(whole, power) != strtod(want, NULL))
            fail_msg("%s is read as %.17g", got, units_of_digits(whole, power));
    }
}

TEST(numbers_are_read_as_strtod_reads_them)
{
    static const char *const odd[] = {"0",
                                      "00012.50",
                                      "0.000000000000000000000000000001",
                                      "12345678901234567890123",
                                      "1e22",
                                      "1e23",
                                      "9007199254740993",
                                      "000000000000000000000001",
                                      "1.",
                                      "0e999",
                                      "123456789012345",
                                      "1e+05"};
    struct rng r;
    char text[64];
    double got;
    struct err e;

    rng_seed(&r, 21);
    for (int i = 0; i < 600000; i++) {
        double v = fabs(any_double(&r, i % 3));
        if (v != 0 && (v < 1e-300 || v > 1e300))
            continue;
        snprintf(text, sizeof(text), i % 5 ? "%.*g" : "%.*e", 1 + (int)rng_below(&r, 18), v);
        assert_int_equal(units_double(&got, text, 0, 1e308, &e), 0);
        if (got != strtod(text, NULL))
            fail_msg("\"%s\" is read as %.17g", text, got);
    }
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        assert_int_equal(units_double(&got, odd[i], 0, 1e308, &e), 0);
        assert_true(got == strtod(odd[i], NULL));
    }
}
