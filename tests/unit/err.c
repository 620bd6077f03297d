/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void each_class_of_error_has_its_exit_code(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(err_set(&e, "x"), -1);
    assert_int_equal(e.code, 2);
    err_usage(&e, "x");
    assert_int_equal(e.code, 64);
    err_data(&e, "x");
    assert_int_equal(e.code, 65);
    err_noinput(&e, "x");
    assert_int_equal(e.code, 66);
    err_io(&e, "x");
    assert_int_equal(e.code, 74);
    err_config(&e, "x");
    assert_int_equal(e.code, 78);
    err_code(&e, EXIT_CUT, "%s:%d", "a", 7);
    assert_int_equal(e.code, 75);
    assert_string_equal(e.text, "a:7");
}

static void wrapping_puts_the_context_first_and_keeps_the_code(void **state)
{
    struct err e;

    (void)state;
    err_noinput(&e, "no such file");
    assert_int_equal(err_wrap(&e, "group %d", 3), -1);
    assert_string_equal(e.text, "group 3: no such file");
    assert_int_equal(e.code, EXIT_NOINPUT);
}

static void a_long_text_is_cut_and_stays_terminated(void **state)
{
    struct err e;
    char text[2000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_data(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_wrap(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void an_error_nobody_wants_to_read_is_still_an_error(void **state)
{
    (void)state;
    assert_int_equal(err_data(NULL, "x %d", 1), -1);
    assert_int_equal(err_code(NULL, 1, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_class_of_error_has_its_exit_code),
        cmocka_unit_test(wrapping_puts_the_context_first_and_keeps_the_code),
        cmocka_unit_test(a_long_text_is_cut_and_stays_terminated),
        cmocka_unit_test(an_error_nobody_wants_to_read_is_still_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
