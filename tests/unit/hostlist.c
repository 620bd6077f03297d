/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static char *joined(const char *list)
{
    char **names, *all = mem_strdup("");
    int n;
    struct err e;

    if (hostlist_expand(&names, &n, list, &e) < 0)
        fail_msg("%s: %s", list, e.text);
    for (int i = 0; i < n; i++) {
        char *more = mem_printf("%s%s%s", all, i ? " " : "", names[i]);
        free(all);
        all = more;
    }
    hostlist_free(names, n);
    return all;
}

TEST(lists_expand_as_slurm_writes_them)
{
    static const char *const good[][2] = {
        {"a", "a"},
        {"a,b", "a b"},
        {"n[1-3]", "n1 n2 n3"},
        {"n[08-10,12]", "n08 n09 n10 n12"},
        {"r[1-2]n[1-2],login", "r1n1 r1n2 r2n1 r2n2 login"},
        {"a[1]b", "a1b"},
        {"n[3-3]", "n3"},
        {"gb300-[007-009].cluster", "gb300-007.cluster gb300-008.cluster gb300-009.cluster"},
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char *all = joined(good[i][0]);
        assert_string_equal(all, good[i][1]);
        free(all);
    }
}

TEST(bad_lists_are_refused_with_the_reason)
{
    static const char *const bad[][2] = {
        {"", "host list: a name of 0 characters (1..255 are allowed)"},
        {"a,,b", "host list: a name of 0 characters (1..255 are allowed)"},
        {"a[1-2", "host list: unbalanced brackets in \"a[1-2\""},
        {"a]1", "host list: unbalanced brackets in \"a]1\""},
        {"a[[1]]", "host list: unbalanced brackets in \"a[[1]]\""},
        {"a[]", "host list: \"a[]\" has an empty or unclosed bracket"},
        {"a[2-1]", "host list: bad range in \"a[2-1]\""},
        {"a[1-]", "host list: bad range in \"a[1-]\""},
        {"a[-1]", "host list: bad range in \"a[-1]\""},
        {"a[1,]", "host list: bad range in \"a[1,]\""},
        {"a[x]", "host list: bad range in \"a[x]\""},
        {"a[1-2-3]", "host list: bad range in \"a[1-2-3]\""},
        {"a[1234567890]", "host list: bad range in \"a[1234567890]\""},
        {"a\033[31m", "host list: control character 0x1b"},
        {"n[0-1048576]", "host list: more than 1048576 hosts"},
        {"n[0-9999][0-9999]", "host list: more than 1048576 hosts"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char **names = NULL;
        int n = -1;
        struct err e = {0};
        if (hostlist_expand(&names, &n, bad[i][0], &e) == 0)
            fail_msg("\"%s\" was taken", bad[i][0]);
        assert_string_equal(e.text, bad[i][1]);
        assert_int_equal(e.code, EXIT_DATA);
        assert_null(names);
    }
}

TEST(a_name_of_256_characters_is_too_long)
{
    char name[257];
    char **names;
    int n;
    struct err e;

    memset(name, 'h', 256);
    name[256] = '\0';
    assert_int_equal(hostlist_expand(&names, &n, name, &e), -1);
    assert_string_equal(e.text, "host list: a name of 256 characters (1..255 are allowed)");
    name[255] = '\0';
    assert_int_equal(hostlist_expand(&names, &n, name, &e), 0);
    hostlist_free(names, n);
}

TEST(folding_is_short_and_keeps_the_order)
{
    static const char *const good[][2] = {
        {"n1,n2,n3,n5", "n[1-3,5]"},
        {"n3,n2,n1", "n[3,2,1]"},
        {"n08,n09,n10,n11", "n[08-11]"},
        {"n9,n10", "n9,n10"},
        {"a,b1,b2,a", "a,b[1-2],a"},
        {"n1,n1", "n[1,1]"},
        {"x", "x"},
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char **names;
        int n;
        assert_int_equal(hostlist_expand(&names, &n, good[i][0], NULL), 0);
        char *folded = hostlist_fold(names, n);
        assert_string_equal(folded, good[i][1]);
        char *once = joined(good[i][0]), *again = joined(folded);
        assert_string_equal(once, again);
        free(once);
        free(again);
        free(folded);
        hostlist_free(names, n);
    }
    char *none = hostlist_fold(NULL, 0);
    assert_string_equal(none, "");
    free(none);
}

TEST(ten_thousand_hosts_fold_to_one_range)
{
    char **names;
    int n;

    assert_int_equal(hostlist_expand(&names, &n, "gpu[00001-10000]", NULL), 0);
    assert_int_equal(n, 10000);
    char *folded = hostlist_fold(names, n);
    assert_string_equal(folded, "gpu[00001-10000]");
    free(folded);
    hostlist_free(names, n);
}
