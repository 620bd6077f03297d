/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML and JSON of other programs as jansson values: types, lines, limits. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/yaml.h"
#include "test.h"

static int parse(struct yaml *y, const char *text, struct err *err)
{
    return yaml_parse(y, text, strlen(text), "m.yaml", err);
}

static void refused(const char *text, const char *why)
{
    struct yaml y;
    struct err err = {0, ""};

    assert_int_equal(parse(&y, text, &err), -1);
    assert_string_equal(err.text, why);
    assert_int_equal(err.code, EXIT_DATA);
    yaml_done(&y);
}

/* The type of each plain scalar as JSON says it. */
TEST(test_scalars)
{
    static const char *const row[][2] = {
        {"18", "18"},
        {"-3", "-3"},
        {"0", "0"},
        {"007", "\"007\""},
        {"2.5", "2.5"},
        {"1e3", "1000.0"},
        {"1.", "\"1.\""},
        {".5", "\".5\""},
        {"true", "true"},
        {"False", "false"},
        {"yes", "\"yes\""},
        {"~", "null"},
        {"null", "null"},
        {"\"18\"", "\"18\""},
        {"'true'", "\"true\""},
        {"!!str 18", "\"18\""},
        {"node[01-18]", "\"node[01-18]\""},
        {"0x12", "\"0x12\""},
        {"1_000", "\"1_000\""},
        {"inf", "\"inf\""},
        {".inf", "\".inf\""},
        {"-", "[null]"},
        {"99999999999999999999", "\"99999999999999999999\""},
        {"1e999", "\"1e999\""},
        {"1e", "\"1e\""},
    };
    struct yaml y;
    struct err err;

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        assert_int_equal(parse(&y, row[i][0], &err), 0);
        char *is = json_dumps(y.root, JSON_ENCODE_ANY | JSON_COMPACT);
        assert_string_equal(is, row[i][1]);
        free(is);
        yaml_done(&y);
    }
}

TEST(test_lines)
{
    struct yaml y;
    struct err err;

    assert_int_equal(
        parse(&y, "# a comment\nblocks:\n- nodes: [a,\n    12]\n  size: 3\n  on: true\n", &err), 0);
    json_t *block = json_array_get(json_object_get(y.root, "blocks"), 0);
    json_t *nodes = json_object_get(block, "nodes");
    assert_string_equal(yaml_where(&y, y.root), "m.yaml:2");
    assert_string_equal(yaml_where(&y, block), "m.yaml:3");
    assert_string_equal(yaml_where(&y, json_array_get(nodes, 1)), "m.yaml:4");
    assert_string_equal(yaml_where(&y, json_object_get(block, "size")), "m.yaml:5");
    assert_string_equal(yaml_where(&y, json_object_get(block, "on")), "m.yaml");
    char *a = yaml_text(json_array_get(nodes, 0)), *b = yaml_text(json_array_get(nodes, 1));
    assert_string_equal(a, "a");
    assert_string_equal(b, "12");
    assert_null(yaml_text(nodes));
    free(a);
    free(b);
    yaml_done(&y);
    assert_int_equal(parse(&y, " {\"a\": [1, {}]}", &err), 0);
    assert_string_equal(yaml_where(&y, y.root), "m.yaml");
    yaml_done(&y);
    assert_int_equal(parse(&y, "", &err), 0);
    assert_true(json_is_null(y.root));
    yaml_done(&y);
}

TEST(test_refused)
{
    refused("a: &x [1]\nb: *x\n", "m.yaml:2: alias \"*x\": aliases are not read");
    refused("a: 1\nb: 2\na: 3\n", "m.yaml:3: key \"a\" is there twice");
    refused("a: !!binary aGk=\n", "m.yaml:1: tag \"tag:yaml.org,2002:binary\" is not read");
    refused("a: !mine {}\n", "m.yaml:1: tag \"!mine\" is not read");
    refused("? [a]\n: 1\n", "m.yaml:1: a key that is not text");
    refused("a: 1\n---\nb: 2\n", "m.yaml:2: a second document; one is read");
    refused("a: \"x\\0y\"\n", "m.yaml:1: a text with a byte of 0");
    refused("\"a\\0b\": 1\n", "m.yaml:1: a key that is not text");
    refused("a:\n\t- b\n", "m.yaml:2: found character that cannot start any token while scanning "
                           "for the next token");
    refused("{\"a\": 1, \"a\": 2}", "m.yaml:1: duplicate object key near '\"a\"'");
    refused("[1,\n2", "m.yaml:2: ']' expected near end of file");
}

/* Depth is refused while reading, before a stack or memory is used up. */
TEST(test_depth)
{
    char text[2 * YAML_DEPTH + 16];
    struct yaml y;
    struct err err;

    for (int json = 0; json < 2; json++)
        for (int extra = 0; extra < 2; extra++) {
            int depth = YAML_DEPTH + extra;
            char *w = text;
            if (!json) { /* a comment makes it YAML */
                memcpy(w, "#\n", 2);
                w += 2;
            }
            memset(w, '[', (size_t)depth);
            memset(w + depth, ']', (size_t)depth);
            w[2 * depth] = '\0';
            assert_int_equal(parse(&y, text, &err), -extra);
            if (extra)
                assert_non_null(strstr(err.text, "more than 64 levels deep"));
            yaml_done(&y);
        }
}
