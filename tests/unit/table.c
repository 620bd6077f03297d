/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/table.h"

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

/* The same rows as text and as JSON; each column may be in one of them only. */
static void test_cells(void **state)
{
    static const struct table_column columns[] = {
        {"name", "name", "text"},   {"n", "n", "count"},
        {"bytes", "size", "bytes"}, {"s", "time", "seconds"},
        {NULL, "bus", "rate"},      {"share", NULL, "%.1f"},
        {NULL, "gain", "%+.1f %%"}, {0}};
    struct table t;

    (void)state;
    table_open(&t, columns);
    table_add(&t, "é", 12, 1024., 0.5, 2e9, 0.25, 3.);
    table_add(&t, none, 0, NAN, 0., INFINITY, NAN, -1.);
    prints(&t, "name   n   size    time        bus    gain\n"
               "é     12  1 KiB  500 ms  2.00 GB/s  +3.0 %\n"
               "-      0      -       -          -  -1.0 %\n");
    char *json = json_dumps(t.rows, JSON_COMPACT);
    assert_string_equal(json,
                        "[{\"name\":\"é\",\"n\":12.0,\"bytes\":1024.0,\"s\":0.5,\"share\":0.25},"
                        "{\"n\":0.0,\"bytes\":null,\"s\":0.0,\"share\":null}]");
    free(json);
    table_free(&t);
}

static void test_texts(void **state)
{
    struct table t;

    (void)state;
    table_init(&t, "rl");
    table_row(&t, "a", "long");
    table_row(&t, none, "b");
    table_row(&t, "ccc", "");
    prints(&t, "  a  long\n  -  b\nccc  \n");
    table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
