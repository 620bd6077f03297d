/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/map.h"
#include "test.h"

TEST(test_numbers)
{
    struct map m = {0};

    assert_int_equal(map_find(&m, 7, NULL, NULL), MAP_NONE);
    for (int i = 0; i < 10000; i++) {
        int *at = map_at(&m, (uint64_t)i << 32, NULL, NULL); /* keys that differ high up only */
        assert_int_equal(*at, MAP_NONE);
        *at = i;
    }
    assert_int_equal(m.count, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(map_find(&m, (uint64_t)i << 32, NULL, NULL), i);
    assert_int_equal(*map_at(&m, 0, NULL, NULL), 0); /* 0 is a key like others */
    assert_int_equal(map_find(&m, 1, NULL, NULL), MAP_NONE);
    map_free(&m);
    assert_int_equal(map_find(&m, 0, NULL, NULL), MAP_NONE);
}

static const char *const word[] = {"rack", "leaf", "spine"};

static bool is_word(const void *wanted, int value)
{
    return !strcmp(wanted, word[value]);
}

/* Things whose keys are equal are told apart by what they are. */
TEST(test_equal_keys)
{
    struct map m = {0};

    for (int i = 0; i < 3; i++)
        *map_at(&m, 1, is_word, word[i]) = i;
    for (int i = 0; i < 3; i++)
        assert_int_equal(map_find(&m, 1, is_word, word[i]), i);
    assert_int_equal(map_find(&m, 1, is_word, "host"), MAP_NONE);
    assert_true(map_text("rack") != map_text("leaf") && map_text("a") != map_text("b"));
    map_free(&m);
}
