/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct args {
    const char *output, *first, *second, **more;
    int ranks, mores, called;
    size_t bytes;
    double limit, share, factor;
    bool quiet;
};

static int take_word(void *args, char *value, struct err *err)
{
    struct args *a = args;

    a->called++;
    return strcmp(value, "yes") ? err_usage(err, "\"%s\" is not yes", value) : 0;
}

static const struct opt options[] = {
    {"output", 'o', "FILE", "", OPT_INTO(struct args, output)},
    {"out", 0, "FILE", .flags = OPTION_ALIAS},
    {"ranks", 0, "N", "", OPT_INT(struct args, ranks, 2, 8)},
    {"bytes", 0, "SIZE", "", OPT_INTO(struct args, bytes)},
    {"limit", 0, "TIME", "", OPT_SECONDS(struct args, limit)},
    {"share", 0, "SHARE", "", OPT_SHARE(struct args, share)},
    {"factor", 0, "X", "", OPT_REAL(struct args, factor, 1, 2)},
    {"sure", 0, "WORD", "", OPT_CALL(take_word)},
    {"quiet", 'q', NULL, "", OPT_INTO(struct args, quiet)},
    {0},
};

static const struct opt *words;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG || key == ARGP_KEY_END)
        return opt_words(words, state->input, key, arg, state);
    return opt_parse(options, state->input, key, arg, state);
}

/* Words of one line, parsed without a sound: 0, or argp's error. */
static int given(struct args *a, const char *line)
{
    static char text[256];
    struct argp_option table[OPT_ROWS + 1];
    const struct argp argp = {table, parse, NULL, NULL, NULL, NULL, NULL};
    char *argv[16] = {text}, *save = NULL;
    int argc = 0;

    snprintf(text, sizeof(text), "program %s", line);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    memset(a, 0, sizeof(*a));
    opt_argp(table, options);
    return argp_parse(&argp, argc, argv, ARGP_SILENT, NULL, a);
}

static void each_kind_of_value_finds_its_place(void **state)
{
    struct args a;

    (void)state;
    words = NULL;
    assert_int_equal(given(&a, "-o x --ranks 8 --bytes 4K --limit 2ms --share 3% --factor 1.5 -q"),
                     0);
    assert_string_equal(a.output, "x");
    assert_int_equal(a.ranks, 8);
    assert_int_equal(a.bytes, 4096);
    assert_true(a.limit == 2e-3 && a.share == 0.03 && a.factor == 1.5 && a.quiet);
    assert_int_equal(given(&a, "--out y --sure yes"), 0);
    assert_string_equal(a.output, "y");
    assert_int_equal(a.called, 1);
    assert_false(a.quiet);
}

static void values_that_cannot_be_are_refused(void **state)
{
    static const char *const bad[] = {"--ranks 1",    "--ranks 9",   "--ranks 2x", "--bytes 4Q",
                                      "--limit soon", "--share 2",   "--factor 3", "--sure no",
                                      "--quiet=1",    "--nothing 1", "--ranks"};
    struct args a;

    (void)state;
    words = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_not_equal(given(&a, bad[i]), 0);
}

static const struct opt two[] = {{"first", .help = "give a first", OPT_INTO(struct args, first)},
                                 {"second", OPT_INTO(struct args, second)},
                                 {0}};
static const struct opt many[] = {
    {"first", OPT_INTO(struct args, first)}, {"more", OPT_LIST(struct args, more, mores)}, {0}};

static void words_go_to_their_places(void **state)
{
    struct args a;

    (void)state;
    words = two;
    assert_int_equal(given(&a, "a --ranks 3 b"), 0);
    assert_string_equal(a.first, "a");
    assert_string_equal(a.second, "b");
    assert_int_equal(given(&a, "a"), 0);
    assert_null(a.second);
    assert_int_not_equal(given(&a, ""), 0);
    assert_int_not_equal(given(&a, "a b c"), 0);
    words = many;
    assert_int_equal(given(&a, "a b c d"), 0);
    assert_int_equal(a.mores, 3);
    assert_string_equal(a.more[2], "d");
    free(a.more);
    words = NULL;
    assert_int_not_equal(given(&a, "a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_value_finds_its_place),
        cmocka_unit_test(values_that_cannot_be_are_refused),
        cmocka_unit_test(words_go_to_their_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
