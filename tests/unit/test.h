/* test.h - unit tests that register themselves.  A program of tests/unit is tests in a row, with no list of them:
 *
 *     TEST(empty_list_has_no_median) { assert_true(isnan(stats_median(NULL, 0))); }
 */
#ifndef RG_TESTS_TEST_H
#define RG_TESTS_TEST_H

#include <setjmp.h> /* these four for cmocka.h */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct CMUnitTest test_list[64];
static size_t test_count;
static int (*test_setup)(void **), (*test_teardown)(void **);

/* Define a test, with functions that run before and after it, or without.  Tests run in the order of their definition. */
#define TEST_WITH(name, before, after)                                                             \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_registers(void)                                \
    {                                                                                              \
        assert_true(test_count < sizeof(test_list) / sizeof(*test_list));                          \
        test_list[test_count++] = (struct CMUnitTest){#name, name, before, after, NULL};           \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Functions that run once, before the first test and after the last. */
#define TEST_GROUP(before, after)                                                                  \
    __attribute__((constructor)) static void test_group(void)                                      \
    {                                                                                              \
        test_setup = before;                                                                       \
        test_teardown = after;                                                                     \
    }

int main(void)
{
    return _cmocka_run_group_tests("tests", test_list, test_count, test_setup, test_teardown);
}

#endif
