/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's answer is the test's own: gethostname() below stands before that of libc. */
#include "base/host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *told; /* NULL: gethostname() fails */

/* As glibc's: cut without a terminator, and an error, where there is no room for all. */
int gethostname(char *name, size_t size)
{
    size_t need = told ? strlen(told) + 1 : 0;

    if (told)
        memcpy(name, told, need < size ? need : size);
    if (told && need <= size)
        return 0;
    errno = told ? ENAMETOOLONG : EFAULT;
    return -1;
}

static void the_name_is_the_kernels(void **state)
{
    char name[64];

    (void)state;
    told = "node0003.rack7";
    assert_ptr_equal(host_self(name, sizeof(name)), name);
    assert_string_equal(name, "node0003.rack7");
    told = "other"; /* nothing is remembered */
    assert_string_equal(host_self(name, sizeof(name)), "other");
}

static void a_long_name_is_cut_and_terminated(void **state)
{
    char name[8 + 1];

    (void)state;
    memset(name, '#', sizeof(name));
    told = "node0003.rack7";
    assert_string_equal(host_self(name, 8), "node000");
    assert_int_equal(name[8], '#');
    assert_string_equal(host_self(name, 1), "");
}

static void no_name_is_localhost(void **state)
{
    char name[64];

    (void)state;
    told = NULL;
    assert_string_equal(host_self(name, sizeof(name)), "localhost");
    told = "";
    assert_string_equal(host_self(name, sizeof(name)), "localhost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_the_kernels),
        cmocka_unit_test(a_long_name_is_cut_and_terminated),
        cmocka_unit_test(no_name_is_localhost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
