/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tsv.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static int parse(struct tsv *t, const char *text, struct err *err)
{
    return tsv_parse(t, "t.tsv", mem_strdup(text), err);
}

TEST(a_table_keeps_names_rows_lines_and_comments)
{
    struct tsv t;
    struct err e;

    assert_int_equal(parse(&t, "# made by hand\na\tb\n1\tx\n\n# mid\n2\t\n3\ty", &e), 0);
    assert_int_equal(t.columns, 2);
    assert_int_equal(t.rows, 3);
    assert_int_equal(t.comments, 2);
    assert_string_equal(t.comment[0], "# made by hand");
    assert_int_equal(t.row[1].line, 6);
    assert_string_equal(t.row[1].cell[1], "");
    assert_string_equal(t.row[2].cell[1], "y");
    assert_int_equal(tsv_column(&t, "b", &e), 1);
    assert_int_equal(tsv_find(&t, "c"), -1);
    assert_int_equal(tsv_column(&t, "c", &e), -1);
    assert_string_equal(e.text, "t.tsv: no column \"c\"");
    assert_int_equal(e.code, EXIT_DATA);
    tsv_free(&t);
}

TEST(a_row_of_the_wrong_width_is_named_by_file_and_line)
{
    struct tsv t;
    struct err e;

    assert_int_equal(parse(&t, "a\tb\n1\t2\n3\n", &e), -1);
    assert_string_equal(e.text, "t.tsv:3: 1 columns where the header has 2");
    assert_int_equal(parse(&t, "a\tb\n1\t2\t3\n", &e), -1);
    assert_string_equal(e.text, "t.tsv:2: 3 columns where the header has 2");
}

TEST(a_file_without_a_header_is_refused)
{
    struct tsv t;
    struct err e;

    assert_int_equal(parse(&t, "", &e), -1);
    assert_string_equal(e.text, "t.tsv: no header line");
    assert_int_equal(parse(&t, "# only\n# comments\n\n", &e), -1);
    assert_string_equal(e.text, "t.tsv: no header line");
    assert_int_equal(e.code, EXIT_DATA);
}

TEST(too_many_columns_are_refused_before_they_are_stored)
{
    struct tsv t;
    struct err e;
    char text[700];

    memset(text, '\t', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(parse(&t, text, &e), -1);
    assert_string_equal(e.text, "t.tsv:1: 700 columns are more than 256");
}

TEST(a_bad_cell_is_named_by_line_column_and_value)
{
    struct tsv t;
    struct err e;
    double d;
    int i;
    size_t s;

    assert_int_equal(parse(&t, "n\tsize\n12\t64K\n1x\t-1\n", &e), 0);
    assert_int_equal(tsv_int(&t, 0, 0, 0, 100, &i, &e), 0);
    assert_int_equal(i, 12);
    assert_int_equal(tsv_size(&t, 0, 1, &s, &e), 0);
    assert_int_equal(s, 65536);
    assert_int_equal(tsv_double(&t, 0, 0, 0, 10, &d, &e), -1);
    assert_string_equal(e.text, "t.tsv:2: column n: 12 is outside 0..10");
    assert_int_equal(tsv_int(&t, 1, 0, 0, 100, &i, &e), -1);
    assert_string_equal(e.text, "t.tsv:3: column n: \"1x\" is not a whole number");
    assert_int_equal(tsv_size(&t, 1, 1, &s, &e), -1);
    assert_string_equal(e.text,
                        "t.tsv:3: column size: \"-1\" is not a size such as 8, 32K, 1M or 8G");
    assert_int_equal(e.code, EXIT_DATA);
    tsv_free(&t);
}

TEST(characters_that_steer_a_terminal_are_refused)
{
    struct tsv t;
    struct err e;

    assert_int_equal(parse(&t, "a\tb\n1\t\033[31m\n", &e), -1);
    assert_string_equal(e.text, "t.tsv:2: a control character (0x1b) at position 2");
    assert_int_equal(parse(&t, "a\tb\r\n1\t2\r\n", &e), -1);
    assert_string_equal(e.text, "t.tsv:1: a control character (0x0d) at position 3");
    assert_int_equal(parse(&t, "a\n\xc2\x9b\n", &e), -1);
    assert_string_equal(e.text, "t.tsv:2: a control character (0xc2) at position 0");
    assert_int_equal(parse(&t, "a\n\xc3\xa4\n", &e), 0);
    tsv_free(&t);
}

TEST(a_missing_file_is_no_input)
{
    struct tsv t;
    struct err e;

    assert_int_equal(tsv_load(&t, "/nonexistent/x.tsv", &e), -1);
    assert_string_equal(e.text, "/nonexistent/x.tsv: No such file or directory");
    assert_int_equal(e.code, EXIT_NOINPUT);
    tsv_free(&t);
}

TEST(what_is_clean_does_not_depend_on_where_it_stands)
{
    char text[40];

    for (size_t at = 0; at < sizeof(text); at++)
        for (int c = 0; c < 256; c++) {
            struct err e;
            memset(text, at % 2 ? '\t' : '~', sizeof(text));
            text[at] = (char)c;
            bool bad = (c < 0x20 && c != '\t') || c == 0x7f;
            assert_int_equal(tsv_clean("p", 1, text, sizeof(text), &e), bad ? -1 : 0);
        }
}
