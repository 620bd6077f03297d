/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int parse(json_t **out, const char *text, struct err *err)
{
    return json_parse(out, text, strlen(text), "m.json", "railgauge-matrix", 2, err);
}

TEST(the_envelope_is_checked_with_what_was_found_and_needed)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"{\n\"a\": ]}", "m.json:2: unexpected token near ']'"},
        {"{\"a\": 1, \"a\": 2}", "m.json:1: duplicate object key near '\"a\"'"},
        {"[]", "m.json: format is \"(none)\" where \"railgauge-matrix\" is needed"},
        {"{\"format\": \"x\", \"version\": 1}",
         "m.json: format is \"x\" where \"railgauge-matrix\" is needed"},
        {"{\"format\": \"railgauge-matrix\", \"version\": 3}",
         "m.json: version 3 of railgauge-matrix is not one of 1..2 that this program reads"},
        {"{\"format\": \"railgauge-matrix\", \"version\": 0}",
         "m.json: version 0 of railgauge-matrix is not one of 1..2 that this program reads"},
        {"{\"format\": \"railgauge-matrix\", \"version\": \"1\"}",
         "m.json: version \"1\" of railgauge-matrix is not one of 1..2 that this program reads"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *root = NULL;
        struct err e = {0};
        assert_int_equal(parse(&root, bad[i].text, &e), -1);
        assert_string_equal(e.text, bad[i].message);
        assert_int_equal(e.code, EXIT_DATA);
        assert_null(root);
    }
}

TEST(unknown_and_missing_keys_are_errors_with_the_place)
{
    json_t *root = NULL;
    struct err e;
    const char *name;
    int z;

    assert_int_equal(
        parse(&root, "{\"format\": \"railgauge-matrix\", \"version\": 1, \"x\": {\"y\": 1}}", &e),
        0);
    assert_int_equal(json_take(json_object_get(root, "x"), "m.json: x", &e, "{s:s}", "name", &name),
                     -1);
    assert_string_equal(e.text, "m.json: x: key \"name\" is missing");
    assert_int_equal(json_take(json_object_get(root, "x"), "m.json: x", &e, "{}"), -1);
    assert_string_equal(e.text, "m.json: x: unknown key: y");
    assert_int_equal(
        json_take(json_object_get(root, "x"), "m.json: x", &e, "{s?i, s:s}", "z", &z, "y", &name),
        -1);
    assert_string_equal(e.text, "m.json: x: \"y\" is a whole number where text is needed");
    assert_int_equal(json_take(json_object_get(root, "version"), "m.json: version", &e, "{}"), -1);
    assert_string_equal(e.text, "m.json: version: a whole number where an object is needed");
    json_decref(root);
}

TEST(text_that_steers_a_terminal_is_refused_with_its_place)
{
    static const char *const bad[][2] = {
        {"\"a\": {\"b\": [\"ok\", \"x\\u001b[31m\"]}",
         "m.json: a.b[1]: a control character (0x1b) at position 1"},
        {"\"a\": \"\\u007f\"", "m.json: a: a control character (0x7f) at position 0"},
        {"\"a\": \"\\u009b\"", "m.json: a: a control character (0xc2) at position 0"},
        {"\"\\u0007\": 1", "m.json: a key with a control character"},
    };
    char text[200];
    json_t *root = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err e = {0};
        snprintf(text, sizeof(text), "{\"format\": \"railgauge-matrix\", \"version\": 1, %s}",
                 bad[i][0]);
        assert_int_equal(parse(&root, text, &e), -1);
        assert_string_equal(e.text, bad[i][1]);
    }
    assert_int_equal(parse(&root,
                           "{\"format\": \"railgauge-matrix\", \"version\": 1, \"provenance\": "
                           "\"a\\nb\", \"x\": \"\\u00e4\"}",
                           NULL),
                     0);
    json_decref(root);
}

TEST(numbers_are_bounded_and_optional_ones_keep_their_default)
{
    json_t *o = json_pack("{s:f, s:s, s:i}", "rate", 2.5, "name", "x", "big", 7);
    struct err e;
    double v = 1;

    assert_int_equal(json_number(o, "m.json: tiers[0]", "rate", 0, 3, 0, &v, &e), 0);
    assert_true(v == 2.5);
    assert_int_equal(json_number(o, "m.json: tiers[0]", "none", 0, 3, 1, &v, &e), 0);
    assert_true(v == 2.5);
    assert_int_equal(json_number(o, "m.json: tiers[0]", "none", 0, 3, 0, &v, &e), -1);
    assert_string_equal(e.text, "m.json: tiers[0]: \"none\" is missing");
    assert_int_equal(json_number(o, "m.json: tiers[0]", "name", 0, 3, 1, &v, &e), -1);
    assert_string_equal(e.text, "m.json: tiers[0]: \"name\" is not a number");
    assert_int_equal(json_number(o, "m.json: tiers[0]", "big", 0, 3, 0, &v, &e), -1);
    assert_string_equal(e.text, "m.json: tiers[0]: \"big\" is 7, outside 0..3");
    assert_true(v == 2.5);
    json_decref(o);
}

TEST(what_is_saved_is_read_back)
{
    char path[] = "/tmp/railgauge-json-XXXXXX";
    json_t *root, *back = NULL;
    struct err e;

    close(mkstemp(path));
    root = json_pack("{s:s, s:i, s:f}", "format", "railgauge-matrix", "version", 1, "beta",
                     1.0 / 3e11);
    assert_int_equal(json_save(root, path, &e), 0);
    assert_int_equal(json_open(&back, path, "railgauge-matrix", 1, &e), 0);
    assert_float_equal(json_real_value(json_object_get(back, "beta")) * 3e11, 1, 1e-8);
    assert_int_equal(json_save(root, "/nonexistent/m.json", &e), -1);
    assert_string_equal(e.text, "/nonexistent/m.json: No such file or directory");
    assert_int_equal(e.code, EXIT_IO);
    json_decref(root);
    json_decref(back);
    unlink(path);
}

/* How a number of this name is written. */
static char *written(char text[256], const char *key, double x)
{
    json_t *root = json_pack("{s:f}", key, x);
    FILE *f = fmemopen(text, 256, "w");

    assert_int_equal(json_print(f, root), 0);
    fclose(f);
    json_decref(root);
    text[strcspn(text, "}") - 1] = '\0'; /* the line's end before it */
    return strchr(text, ':') + 2;
}

TEST(whole_numbers_are_written_whole)
{
    unsigned seed = (unsigned)time(NULL);
    char text[256];

    print_message("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < 4000; i++) {
        double x = pow(10, rand() % 35 - 20) * ((double)rand() / RAND_MAX - 0.5);
        x = rand() % 3 ? x : round(x);
        const char *number = written(text, "Bps", x);
        double back = strtod(number, NULL);
        if (x == round(x) ? back != x : fabs(back - x) > 1e-8 * fabs(x))
            fail_msg("seed %u: %.17g is written %s", seed, x, number);
        if (strlen(number) > 2 && !strcmp(number + strlen(number) - 2, ".0"))
            fail_msg("seed %u: %.17g is written %s", seed, x, number);
        number = written(text, i % 2 ? "bytes" : "total_bytes", x);
        if (number[strspn(number, "-0123456789")] || strtod(number, NULL) != round(x))
            fail_msg("seed %u: %.17g bytes are written %s", seed, x, number);
    }
    assert_string_equal(written(text, "s", 4096.0), "4096");
    assert_string_equal(written(text, "s", 0.5), "0.5");
    assert_string_equal(written(text, "s", 1e300), "1e300");
}

TEST(provenance_holds_the_command_and_only_fabric_variables)
{
    char *argv[] = {"railgauge", "fit", "\xff"};

    setenv("NCCL_ALGO", "Ring", 1);
    setenv("RAILGAUGE_SECRET", "no", 1);
    json_provenance_argv(3, argv);
    setenv("NCCL_PROTO", "LL", 1); /* by the program: not the user's */
    json_t *p = json_provenance(), *env = json_object_get(p, "environment");
    json_t *set = json_object_get(p, "environment_set");
    assert_string_equal(json_string_value(json_object_get(p, "tool")), "railgauge");
    assert_string_equal(json_string_value(json_array_get(json_object_get(p, "command"), 1)), "fit");
    assert_string_equal(json_string_value(json_array_get(json_object_get(p, "command"), 2)),
                        "(not UTF-8)");
    assert_string_equal(json_string_value(json_object_get(env, "NCCL_ALGO")), "Ring");
    assert_null(json_object_get(env, "RAILGAUGE_SECRET"));
    assert_null(json_object_get(env, "NCCL_PROTO"));
    assert_string_equal(json_string_value(json_object_get(set, "NCCL_PROTO")), "LL");
    assert_int_equal(json_object_size(set), 1);
    assert_int_equal(strlen(json_string_value(json_object_get(p, "time_utc"))), 20);
    json_decref(p);
}
