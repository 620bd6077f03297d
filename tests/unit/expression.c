/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/case_impl.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* a.x is 8, b.x is 2; nothing else is known. */
static int find(void *ctx, const char *of, const char *what, double *out, struct err *err)
{
    (void)ctx;
    if (strcmp(what, "x") != 0)
        return err_data(err, "no quantity %s", what);
    *out = *of == 'a' ? 8 : 2;
    return 0;
}

static const struct expression_names names = {find, NULL};

static const struct {
    const char *text;
    double value;
} good[] = {
    {"3", 3},
    {" 2.5e3 ", 2500},
    {"a.x", 8},
    {"a.x / b.x - 1", 3},
    {"a.x - b.x - 1", 5},
    {"a.x / b.x / 2", 2},
    {"1 + 2 * 3 + 4 / 2", 9},
    {"(1 + 2) * (a.x - 3)", 15},
    {"((((7))))", 7},
    {"36 * b.x + 18 * 4 * b.x", 216},
};

TEST(sums_of_products_have_their_values)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct err err = {0, ""};
        double value;
        if (expression_value(&value, good[i].text, &names, &err) < 0)
            fail_msg("%s", err.text);
        assert_float_equal(value, good[i].value, 1e-12);
    }
}

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "\"\": no number, no NAME.NAME and no bracket at position 0"},
    {"a", "\"a\": no \".\" after the name at position 1"},
    {"a.", "\"a.\": no name of 1 to 63 letters, digits and \"_\" at position 2"},
    {"a.y", "\"a.y\": no quantity y"},
    {"1 +", "\"1 +\": no number, no NAME.NAME and no bracket at position 3"},
    {"1 2", "\"1 2\": something is left at position 2"},
    {"-1", "\"-1\": no number, no NAME.NAME and no bracket at position 0"},
    {"(1", "\"(1\": no \")\" at position 2"},
    {"1)", "\"1)\": something is left at position 1"},
    {"1e999", "\"1e999\": no finite decimal number at position 0"},
    {"0x10", "\"0x10\": no finite decimal number at position 0"},
    {"nan", "\"nan\": no \".\" after the name at position 3"},
};

TEST(what_is_no_expression_is_refused_with_its_position)
{
    struct err err;
    double value;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(expression_value(&value, bad[i].text, &names, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        assert_string_equal(err.text, bad[i].says);
    }
}

TEST(brackets_have_a_limit)
{
    char deep[200];
    struct err err;
    double value;

    memset(deep, '(', 100);
    strcpy(deep + 100, "1");
    assert_int_equal(expression_value(&value, deep, &names, &err), -1);
    assert_non_null(strstr(err.text, "brackets are too deep"));
    for (int i = 0; i < 40; i++) /* depth is not length */
        memcpy(deep + 4 * i, "+(1)", 5);
    assert_int_equal(expression_value(&value, deep + 1, &names, &err), 0);
    assert_float_equal(value, 40, 0);
}

TEST(names_are_letters_first)
{
    assert_true(expression_is_name("gb200x24") && expression_is_name("a_1"));
    assert_false(expression_is_name("") || expression_is_name("1a") || expression_is_name("a-b") ||
                 expression_is_name("_a") || expression_is_name("a.b"));
}
