/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/table.h"
#include "test.h"

static const char *const none = NULL;

static void prints(const struct table *t, const char *wanted)
{
    char *text;
    size_t len;
    FILE *out = mem_stream(&text, &len);

    table_print(out, t, 0);
    mem_stream_end(out);
    assert_string_equal(text, wanted);
    free(text);
}

/* The same rows as text, TSV and JSON; each column may be in one of them only. */
TEST(test_cells)
{
    static const struct table_column columns[] = {{"name", "name", "text"},
                                                  {"of", NULL, "text?"},
                                                  {"n", "n", "count"},
                                                  {"bytes", "size", "bytes"},
                                                  {"s", "time", "seconds"},
                                                  {NULL, "bus", "rate"},
                                                  {"share", NULL, "%.1f"},
                                                  {"gain", "gain", "100*%+.1f %%"},
                                                  {"odd", "odd", "flag"},
                                                  {"more", NULL, "json"},
                                                  {0}};
    struct table t;
    json_t *nothing = NULL;

    table_open(&t, columns);
    table_add(&t, "é", "a", 12, 1024., 0.5, 2e9, 0.25, 0.03, 1, json_true());
    table_add(&t, none, none, 0, NAN, 0., INFINITY, NAN, -0.01, 0, nothing);
    prints(&t, "name   n   size    time        bus    gain  odd\n"
               "é     12  1 KiB  500 ms  2.00 GB/s  +3.0 %  yes\n"
               "-      0      -       -          -  -1.0 %  no\n");
    json_t *rows = table_rows(&t);
    char *json = json_dumps(rows, JSON_COMPACT);
    assert_string_equal(
        json, "[{\"name\":\"é\",\"of\":\"a\",\"n\":12,\"bytes\":1024.0,\"s\":0.5,\"share\":0.25,"
              "\"gain\":0.029999999999999999,\"odd\":true,\"more\":true},{\"of\":null,\"n\":0,"
              "\"bytes\":null,\"s\":0.0,\"share\":null,\"gain\":-0.01,\"odd\":false}]");
    free(json);
    json_decref(rows);
}

/* In TSV what is not known is empty, and a dead part takes for ever. */
TEST(test_tsv)
{
    static const struct table_column columns[] = {
        {"s", "s", "exact"}, {"share", "share", "%.2f"}, {"name", "name", "text"}, {0}};
    struct table t;
    char *text;
    size_t len;

    table_open(&t, columns);
    table_add(&t, 0.1234567891, 0.5, "a");
    table_add(&t, INFINITY, NAN, none);
    FILE *out = mem_stream(&text, &len);
    table_tsv(out, &t);
    mem_stream_end(out);
    assert_string_equal(text, "s\tshare\tname\n0.123456789\t0.50\ta\ninf\t\t\n");
    free(text);
    table_free(&t);
}

TEST(test_texts)
{
    static const struct table_column columns[] = {
        {NULL, "a", "figure"}, {NULL, "long", "text"}, {0}};
    struct table t;

    table_open(&t, columns);
    table_add(&t, none, "b");
    table_add(&t, "ccc", "");
    prints(&t, "  a  long\n  -  b\nccc\n");
    table_free(&t);
}

/* A table as wide as the terminal is left alone; one character less, and heads fold before texts;
 * figures are never broken, and a column without values is left out. */
TEST(test_fold)
{
    static const struct table_column columns[] = {
        {NULL, "pairs measured", "count"}, {NULL, "nothing", "rate"}, {NULL, "why", "text"}, {0}};
    struct table t;

    table_open(&t, columns);
    table_add(&t, 2307, NAN, "two of them");
    table_add(&t, 7, NAN, "none");
    setenv("COLUMNS", "27", 1);
    prints(&t, "pairs measured  why\n"
               "         2,307  two of them\n"
               "             7  none\n");
    setenv("COLUMNS", "26", 1);
    prints(&t, "        pairs\n"
               "     measured  why\n"
               "        2,307  two of them\n"
               "            7  none\n");
    setenv("COLUMNS", "16", 1);
    prints(&t, "   pairs\n"
               "measured  why\n"
               "   2,307  two of\n"
               "            them\n"
               "       7  none\n");
    table_free(&t);
}

/* Lines are as long as COLUMNS allows, to the character, and a longer word has its own. */
TEST(test_wrap)
{
    char *text;
    size_t len;
    FILE *out = mem_stream(&text, &len);

    setenv("COLUMNS", "10", 1);
    table_wrap(out, 2, "%s", "  one two three 12345678901 é6789012");
    setenv("COLUMNS", "9", 1);
    table_wrap(out, 2, "%s", "one two tw");
    table_wrap(out, 2, "%s", "at one 5 %");
    table_wrap(out, 2, "%s", "");
    mem_stream_end(out);
    assert_string_equal(
        text, "  one two\n  three\n  12345678901\n  é6789012\none two\n  tw\nat one\n  5 %\n\n");
    free(text);
}
