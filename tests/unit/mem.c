/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static void memory_is_zeroed_and_nothing_is_still_something(void **state)
{
    int *v = mem_calloc(100, sizeof(*v));

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(v[i], 0);
    free(v);
    void *p = mem_calloc(0, 8);
    assert_non_null(p);
    p = mem_realloc(p, 0, 8);
    assert_non_null(p);
    free(p);
}

static void a_pushed_array_keeps_every_item(void **state)
{
    int *v = NULL, n = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        MEM_PUSH(v, n) = i;
    assert_int_equal(n, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v[i], i);
    free(v);
}

static void texts_are_printed_to_their_length(void **state)
{
    char *s = mem_printf("%0600d", 7);

    (void)state;
    assert_int_equal(s[599], '7');
    free(s);
}

static void an_overflowing_request_ends_the_program_with_io(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        free(mem_realloc(NULL, SIZE_MAX / 2, 4));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_nothing_is_still_something),
        cmocka_unit_test(a_pushed_array_keeps_every_item),
        cmocka_unit_test(texts_are_printed_to_their_length),
        cmocka_unit_test(an_overflowing_request_ends_the_program_with_io),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
