/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct args {
    const char *output, *first, *second, **more;
    int ranks, mores, called;
    size_t bytes;
    double limit, share, factor;
    unsigned long long seed;
    bool quiet, check;
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
    {"seed", 0, "N", "", OPT_INTO(struct args, seed)},
    {"no-check", 0, NULL, "", OPT_UNSET(struct args, check)},
    {0},
};

static const struct opt *words;

/* Words of one line, parsed without a sound. */
static int given(struct args *a, const char *line)
{
    static char text[256];
    const struct opt_line l = {.options = options, .words = words};
    char *argv[16] = {text}, *save = NULL;
    int argc = 0;

    snprintf(text, sizeof(text), "program %s", line);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    memset(a, 0, sizeof(*a));
    return opt_parse(&l, argc, argv, OPT_SILENT, a);
}

TEST(each_kind_of_value_finds_its_place)
{
    struct args a;

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

TEST(values_that_cannot_be_are_refused)
{
    static const char *const bad[] = {"--ranks 1",    "--ranks 9",   "--ranks 2x", "--bytes 4Q",
                                      "--limit soon", "--share 2",   "--factor 3", "--sure no",
                                      "--quiet=1",    "--nothing 1", "--ranks"};
    struct args a;

    words = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_not_equal(given(&a, bad[i]), 0);
}

static const struct opt two[] = {{"first", .help = "give a first", OPT_INTO(struct args, first)},
                                 {"second", OPT_INTO(struct args, second)},
                                 {0}};
static const struct opt many[] = {
    {"first", OPT_INTO(struct args, first)}, {"more", OPT_LIST(struct args, more, mores)}, {0}};

TEST(words_go_to_their_places)
{
    struct args a;

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

static int take_named(void *into, const char *name, const char *value, struct err *err)
{
    struct args *a = into;

    a->first = name;
    a->second = value;
    return *value == '-' ? err_usage(err, "no") : 0;
}

static const struct opt other[] = {{.help = "Others:"},
                                   {"limit", 0, "X", "", OPT_NAMED(take_named)},
                                   {"name", 'n', "X", "", OPT_NAMED(take_named)},
                                   {0}};

static int check_second(void *into, struct err *err)
{
    const struct args *a = into;

    return a->second && !strcmp(a->second, "odd") ? err_usage(err, "odd") : 0;
}

/* Options of a set go where the set lies; the line's own rows come first. */
TEST(sets_and_words_for_others)
{
    struct {
        struct args own, set;
    } a = {{.check = true}, {.first = NULL}};
    const struct opt_line l = {
        .options = options,
        .set = {{.rows = other, .at = sizeof(struct args), .check = check_second}}};
    char program[] = "program", limit[] = "--limit=2ms", name[] = "-n", value[] = "even",
         seed[] = "--seed=18446744073709551615", flag[] = "--no-check", again[] = "--name=odd";
    char *argv[] = {program, limit, name, value, seed, flag, NULL, NULL};
    struct words w = {NULL, 0};

    assert_int_equal(opt_parse(&l, 6, argv, OPT_SILENT, &a), 0);
    assert_true(a.own.limit == 2e-3 && a.own.seed == 18446744073709551615u && !a.own.check);
    assert_string_equal(a.set.first, "name");
    assert_string_equal(a.set.second, "even");
    opt_again(&l, 6, argv, options, &w);
    opt_again(&l, 6, argv, other, &w);
    const char *const want[] = {"--limit=2ms", "--seed=18446744073709551615", "--no-check",
                                "--limit=2ms", "--name=even"};
    assert_int_equal(w.count, 5);
    for (int i = 0; i < w.count; i++)
        assert_string_equal(w.word[i], want[i]);
    words_free(&w);
    argv[6] = again;
    assert_int_not_equal(opt_parse(&l, 7, argv, OPT_SILENT, &a), 0);
}
